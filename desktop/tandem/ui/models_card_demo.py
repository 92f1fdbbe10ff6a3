"""The pair that comes with Tandem, and the bar that shows files being hashed, copied or moved."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QHBoxLayout, QVBoxLayout, QWidget

from tandem.models.progress import JobProgress
from tandem.settings import PairChoice
from tandem.ui.kit import Card, QuietButton, label, spaced
from tandem.ui.models_card_parts import JobView
from tandem.ui.page import Speaking

if TYPE_CHECKING:
    from tandem.ui.theme import ThemeManager


class DemoTile(Speaking):
    """The built-in pair.

    Attributes:
        load_requested: A `PairChoice`.
        heir: Gets the keyboard when the button that has it can be pressed no more, see `ActionButton`.
    """

    load_requested = Signal(object)

    def __init__(self, manager: ThemeManager, parent: QWidget | None = None) -> None:
        super().__init__(manager, parent)
        self._in_use = self._busy = False
        self.heir: QWidget | None = None
        name = label(bold=True, wrap=True)
        self.say(name.setText, lambda: self.tr("Demo pair"))
        text = label(size="small", role="muted", wrap=True)
        self.say(
            text.setText,
            lambda: self.tr(
                "Comes with Tandem and runs anywhere. It shows how a drafter works; what it says is not clever."
            ),
        )
        self.button = QuietButton(manager, "", "chat")
        self.button.clicked.connect(lambda: self.load_requested.emit(PairChoice("demo")))
        words = QVBoxLayout()
        spaced(words, manager, "xs")
        words.addWidget(name)
        words.addWidget(text)
        row = QHBoxLayout()
        spaced(row, manager, "m")
        row.addLayout(words, 1)
        row.addWidget(self.button, 0, Qt.AlignmentFlag.AlignVCenter)
        card = Card(manager)
        card.body.addLayout(row)
        column = QVBoxLayout(self)
        spaced(column, manager, "")
        column.addWidget(card)
        self.retranslate()

    def set_state(self, in_use: bool, busy: bool) -> None:
        """Whether it is the pair in use, and whether a load is under way."""
        self._in_use, self._busy = in_use, busy
        self.retranslate()

    def retranslate(self) -> None:
        """The button."""
        self.button.setText(self.tr("In use") if self._in_use else self.tr("Use the demo pair"))
        pressable = not self._in_use and not self._busy
        if not pressable and self.button.hasFocus() and self.heir is not None:
            self.heir.setFocus(Qt.FocusReason.OtherFocusReason)
        self.button.setEnabled(pressable)


class CheckBar(Speaking):
    """Files that are being hashed, copied or moved; not there while none are.

    Attributes:
        stop_requested: That is to be stopped.
    """

    stop_requested = Signal()

    def __init__(self, manager: ThemeManager, parent: QWidget | None = None) -> None:
        super().__init__(manager, parent)
        self._job: JobProgress | None = None
        self.progress = JobView(manager)
        self.stop = QuietButton(manager, "", "stop")
        self.say(self.stop.setText, lambda: self.tr("Stop"))
        self.stop.clicked.connect(self.stop_requested)
        row = QHBoxLayout()
        spaced(row, manager, "m")
        row.addWidget(self.progress, 1)
        row.addWidget(self.stop, 0, Qt.AlignmentFlag.AlignVCenter)
        card = Card(manager)
        card.body.addLayout(row)
        column = QVBoxLayout(self)
        spaced(column, manager, "")
        column.addWidget(card)
        self.hide()

    def set_job(self, job: JobProgress | None) -> None:
        """What is being done; None for nothing."""
        self._job = job
        self.retranslate()
        self.setVisible(job is not None)

    def retranslate(self) -> None:
        """What it is."""
        titles = {
            "verify": self.tr("Verifying files"),
            "import": self.tr("Importing files"),
            "move": self.tr("Moving the models"),
        }
        title = titles.get(self._job.key, "") if self._job is not None else ""
        self.progress.set_job(self._job, title)
        self.stop.setAccessibleName(f"{self.stop.text()} · {title}" if title else self.stop.text())
