"""Parts that the cards of models share: a line that shortens itself, a button that changes its weight, a job's bar."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from PySide6.QtCore import QEvent, QObject, QSize, Qt, Signal
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QHBoxLayout, QLabel, QSizePolicy, QVBoxLayout, QWidget

from tandem.models.progress import JobProgress
from tandem.ui import models_state_text as texts
from tandem.ui.kit import Meter, PrimaryButton, QuietButton, label, plain_tip, spaced
from tandem.ui.models_state_text import Action
from tandem.ui.page import Speaking

if TYPE_CHECKING:
    from tandem.ui.kit_buttons import _TextButton
    from tandem.ui.theme import ThemeManager

STEPS: Final = 1000
"""Parts of a job that the bar tells apart."""

_LEAST: Final = 96


class Elided(QLabel):
    """A name or path of any length on one line; its middle is left out where it does not fit, the tooltip has all."""

    def __init__(self, manager: ThemeManager, size: str = "small", role: str = "muted") -> None:
        super().__init__()
        self._manager = manager
        self.whole = ""
        self.setTextFormat(Qt.TextFormat.PlainText)
        self.setSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Fixed)
        for key, value in (("type", size), ("role", role), ("bold", False)):
            self.setProperty(key, value)

    def set_whole(self, text: str) -> None:
        """Sets the text; what cannot be printed in it, such as a line's end in a file's name, is marked."""
        text = texts.path_text(text)
        if text == self.whole:
            return
        self.whole = text
        self.setToolTip(plain_tip(text))
        self.setProperty("mayElide", bool(text))
        self.setAccessibleName(text)
        self.updateGeometry()
        self._elide()

    def sizeHint(self) -> QSize:  # noqa: N802 - Qt's name
        """Room for all of it."""
        return QSize(self.fontMetrics().horizontalAdvance(self.whole) + 2, super().sizeHint().height())

    def minimumSizeHint(self) -> QSize:  # noqa: N802 - Qt's name
        """Room for some of it."""
        hint = self.sizeHint()
        return QSize(min(hint.width(), self._manager.px(_LEAST)), hint.height())

    def resizeEvent(self, event: QResizeEvent) -> None:  # noqa: N802 - Qt's name
        """Shows as much as fits."""
        super().resizeEvent(event)
        self._elide()

    def changeEvent(self, event: QEvent) -> None:  # noqa: N802 - Qt's name
        """Fits again in another font."""
        super().changeEvent(event)
        if event.type() in (QEvent.Type.FontChange, QEvent.Type.StyleChange):
            self.updateGeometry()
            self._elide()

    def _elide(self) -> None:
        text = self.fontMetrics().elidedText(self.whole, Qt.TextElideMode.ElideMiddle, self.width())
        if text != self.text():
            self.setText(text)


class ActionButton(QWidget):
    """One button that is drawn with weight where it brings one further, and quietly where it stops something.

    Attributes:
        pressed: An `Act`.
        heir: Gets the keyboard when the button that has it can be pressed no more; without one Qt would give it to
            something further on, and the page would scroll there.
    """

    pressed = Signal(str)

    def __init__(self, manager: ThemeManager, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._action = Action("", "", "")
        self._weighty = True
        self.heir: QWidget | None = None
        self.primary = PrimaryButton(manager, "")
        self.quiet = QuietButton(manager, "")
        row = QHBoxLayout(self)
        row.setContentsMargins(0, 0, 0, 0)
        row.setSpacing(0)
        for button in (self.primary, self.quiet):
            row.addWidget(button)
            button.clicked.connect(lambda: self.pressed.emit(self._action.act))
            button.installEventFilter(self)
        self.quiet.hide()
        self.setSizePolicy(QSizePolicy.Policy.Maximum, QSizePolicy.Policy.Fixed)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:  # noqa: N802 - Qt's name
        """Of a double click only the first counts: what that began, the button under the second would stop again."""
        return event.type() == QEvent.Type.MouseButtonDblClick or super().eventFilter(watched, event)

    @property
    def button(self) -> PrimaryButton | QuietButton:
        """The one that is shown."""
        return self.primary if self._weighty and self._action.act in texts.MAIN else self.quiet

    @property
    def act(self) -> texts.Act:
        """What it asks for."""
        return self._action.act

    def set_action(self, action: Action, name: str, *, enabled: bool = True, weighty: bool = True) -> None:
        """Shows another action; who had the keyboard on the button keeps it there.

        Args:
            action: What it does and says.
            name: What it is done to, for those who only hear the button.
            enabled: Whether it can be pressed; one without an act never can.
            weighty: False draws it quietly whatever it does.
        """
        focused = self.primary.hasFocus() or self.quiet.hasFocus()
        self._action, self._weighty = action, weighty
        shown: _TextButton = self.button
        other = self.quiet if shown is self.primary else self.primary
        shown.setText(action.text)
        shown.set_icon(action.icon)
        shown.setAccessibleName(f"{action.text} · {name}")
        pressable = enabled and bool(action.act)
        if focused and not pressable and self.heir is not None:
            self.heir.setFocus(Qt.FocusReason.OtherFocusReason)
        shown.setEnabled(pressable)
        shown.show()
        if focused and shown.isEnabled():
            shown.setFocus(Qt.FocusReason.OtherFocusReason)
        other.hide()


class JobView(Speaking):
    """How far a job is: bytes, a bar, speed and time left, the file at work, and why it waits."""

    def __init__(self, manager: ThemeManager, parent: QWidget | None = None) -> None:
        super().__init__(manager, parent)
        self._job: JobProgress | None = None
        self._title = ""
        self._amount = label(size="small", wrap=True)
        self._left = label(size="small", role="muted")
        self.meter = Meter(manager, "", warn_at=1.0, width=200)
        self._pace = label(size="small", role="muted")
        self._file = Elided(manager)
        self._waiting = label(size="small", role="warn", wrap=True)
        head, foot = QHBoxLayout(), QHBoxLayout()
        spaced(head, manager, "s")
        head.addWidget(self._amount, 1)
        head.addWidget(self._left, 0, Qt.AlignmentFlag.AlignTop)
        spaced(foot, manager, "s")
        foot.addWidget(self._file, 1)
        foot.addWidget(self._pace)
        column = QVBoxLayout(self)
        spaced(column, manager, "xs")
        column.addLayout(head)
        column.addWidget(self.meter)
        column.addLayout(foot)
        column.addWidget(self._waiting)
        self._waiting.hide()

    @property
    def text(self) -> str:
        """All that it says."""
        parts = (self._amount.text(), self._left.text(), self._pace.text(), self._file.whole, self._waiting.text())
        return "\n".join(part for part in parts if part)

    def set_job(self, job: JobProgress | None, title: str = "") -> None:
        """Shows a job; the title stands before its bytes where no other words say what is done."""
        self._job, self._title = job, title
        self.retranslate()

    def retranslate(self) -> None:
        """All of it, from the job."""
        job = self._job
        if job is None:
            return
        amount = texts.amount(job)
        self._amount.setText(" · ".join(part for part in (self._title, amount) if part))
        self._left.setText(texts.left(job.left_s) if job.running and job.waiting is None else "")
        pace = texts.speed(job) if job.running and job.waiting is None else ""
        self._pace.setText(pace)
        self._pace.setVisible(bool(pace))
        file = texts.which_file(job)
        self._file.set_whole(file)
        self._file.setVisible(bool(file))
        waiting = texts.waiting(job)
        self._waiting.setText(texts.fitted(waiting))
        self._waiting.setVisible(bool(waiting))
        self.meter.setAccessibleName(self._title or texts.words(texts.job_state(job)).text)
        self.meter.setAccessibleDescription(self.text)
        # A job that is done is no alarm: the bar stays a hair under its end, where it would turn red.
        self.meter.set_value(min(round(texts.share(job) * STEPS), STEPS - 1), STEPS)
