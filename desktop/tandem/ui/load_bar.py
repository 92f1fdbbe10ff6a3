"""The line under the header while something takes its time: a pair being loaded, a long prompt being read."""

from __future__ import annotations

from typing import Final

from PySide6.QtCore import QEvent, Signal
from PySide6.QtWidgets import QHBoxLayout, QSizePolicy, QWidget

from tandem.ui import i18n
from tandem.ui.kit import Meter, QuietButton, label, spaced
from tandem.ui.session_state import LoadState
from tandem.ui.theme import ThemeManager

_STEPS: Final = 1000
_LONG_PREFILL: Final = 256
"""Prompt tokens from which on reading them is shown."""


class LoadBar(QWidget):
    """Hidden unless something is under way.

    Args:
        manager: The theme.

    Attributes:
        cancel_requested: Give the load up.
    """

    cancel_requested = Signal()

    def __init__(self, manager: ThemeManager, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._load = LoadState()
        self._prefill = (0, 0)
        self.text = label(size="small", role="muted")
        self.bar = Meter(manager, "", warn_at=2.0, width=160)
        self.bar.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self.cancel = QuietButton(manager, "", "close")
        row = QHBoxLayout(self)
        spaced(row, manager, "m", ("l", "xs", "l", "xs"))
        row.addWidget(self.text)
        row.addWidget(self.bar, 1)
        row.addWidget(self.cancel)
        self.cancel.clicked.connect(self.cancel_requested)
        self.retranslate()

    def set_load(self, state: LoadState) -> None:
        """A load goes on or ends."""
        self._load = state
        self.retranslate()

    def set_prefill(self, done: int, total: int) -> None:
        """So many of the prompt's tokens are read; (0, 0) for none."""
        self._prefill = (done, total)
        self.retranslate()

    def retranslate(self) -> None:
        """Shows everything anew."""
        done, total = self._prefill
        reading = total >= _LONG_PREFILL and done < total
        self.setVisible(self._load.running or reading)
        self.cancel.setText(self.tr("Cancel"))
        self.cancel.setVisible(self._load.running)
        self.bar.setAccessibleName(self.tr("Progress"))
        if self._load.running:
            self.text.setText(
                {
                    "starting": self.tr("Starting the engine…"),
                    "target": self.tr("Loading the target…"),
                    "drafter": self.tr("Loading the drafter…"),
                    "threads": self.tr("Finding the fastest number of threads…"),
                }[self._load.phase]
            )
            self.bar.set_value(round(self._load.fraction * _STEPS), _STEPS)
        elif reading:
            text = self.tr("Reading the conversation: {done} of {total} tokens")
            self.text.setText(text.format(done=i18n.number(done), total=i18n.number(total)))
            self.bar.set_value(done, total)

    def changeEvent(self, event: QEvent) -> None:  # noqa: N802 - Qt's name
        """Follows the language."""
        if event.type() == QEvent.Type.LanguageChange:
            self.retranslate()
        super().changeEvent(event)
