"""Messages that come and go at the edge of a page."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal

from PySide6.QtCore import QEvent, QTimer, Signal
from PySide6.QtWidgets import QApplication, QFrame, QHBoxLayout, QLabel, QVBoxLayout, QWidget

from tandem.ui import icons
from tandem.ui.kit_base import announce, label, spaced
from tandem.ui.kit_buttons import IconButton, QuietButton

if TYPE_CHECKING:
    from collections.abc import Callable

    from PySide6.QtCore import QObject
    from PySide6.QtGui import QEnterEvent

    from tandem.ui.theme import ThemeManager

Kind = Literal["info", "good", "warn", "bad"]

ICONS: Final[dict[str, str]] = {"info": "info", "good": "check", "warn": "warning", "bad": "warning"}
ROLES: Final[dict[str, str]] = {"info": "accent", "good": "good", "warn": "warn", "bad": "bad"}
MOST: Final = 3


class Notice(QFrame):
    """One message: icon, text, perhaps a button, a cross. It goes after `seconds` unless pointed at or focused."""

    closed = Signal()

    def __init__(
        self,
        manager: ThemeManager,
        text: str,
        kind: Kind = "info",
        action: str = "",
        on_action: Callable[[], object] | None = None,
        seconds: float = 8.0,
        *,
        parent: QWidget | None = None,
    ) -> None:
        super().__init__(parent)
        self._manager = manager
        self._on_action = on_action
        self.text, self.kind = text, kind
        self.setProperty("kit", "notice")
        self.setProperty("kind", kind)
        self._picture = QLabel()
        self._label = label(text, wrap=True)
        row = QHBoxLayout(self)
        spaced(row, manager, "s", ("m", "s", "s", "s"))
        row.addWidget(self._picture)
        row.addWidget(self._label, 1)
        self.button: QuietButton | None = None
        if action:
            self.button = QuietButton(manager, action)
            self.button.clicked.connect(self._act)
            row.addWidget(self.button)
        self.cross = IconButton(manager, "close", self.tr("Dismiss"), size=16)
        self.cross.clicked.connect(self.close_notice)
        row.addWidget(self.cross)
        self._timer = QTimer(self)
        self._timer.setSingleShot(True)
        self._timer.timeout.connect(self.close_notice)
        self._left_ms = int(seconds * 1000)
        for part in (self.cross, *([self.button] if self.button else [])):
            part.installEventFilter(self)
        manager.changed.connect(self._retheme)
        self._retheme()
        self._go_on()

    def close_notice(self) -> None:
        """Takes the message away."""
        self._timer.stop()
        self.closed.emit()

    def enterEvent(self, event: QEnterEvent) -> None:  # noqa: N802 - Qt's name
        """Stops the clock while the message is pointed at."""
        self._pause()
        super().enterEvent(event)

    def leaveEvent(self, event: QEvent) -> None:  # noqa: N802 - Qt's name
        """Lets the clock go on."""
        super().leaveEvent(event)
        self._go_on()

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:  # noqa: N802 - Qt's name
        """Stops the clock while something in the message has the focus."""
        if event.type() == QEvent.Type.FocusIn:
            self._pause()
        elif event.type() == QEvent.Type.FocusOut:
            self._go_on()
        return super().eventFilter(watched, event)

    def changeEvent(self, event: QEvent) -> None:  # noqa: N802 - Qt's name
        """Names the cross in the new language; the message itself stays as it was said."""
        if event.type() == QEvent.Type.LanguageChange:
            self.cross.set_name(self.tr("Dismiss"))
        super().changeEvent(event)

    def _pause(self) -> None:
        if self._timer.isActive():
            self._left_ms = min(max(self._timer.remainingTime(), 1), self._left_ms)
            self._timer.stop()

    def _go_on(self) -> None:
        focus = QApplication.focusWidget()
        focused = focus is not None and self.isAncestorOf(focus)
        if self._left_ms > 0 and not focused and not self.underMouse():
            self._timer.start(self._left_ms)

    def _act(self) -> None:
        self.close_notice()
        if self._on_action is not None:
            self._on_action()

    def _retheme(self) -> None:
        theme = self._manager.theme
        edge = theme.control.icon
        self._picture.setPixmap(icons.pixmap(ICONS[self.kind], ROLES[self.kind], edge, self.devicePixelRatioF(), theme))


class Notices(QWidget):
    """The stack of messages of a page; hidden while there is none. `last` remembers the newest for tests."""

    def __init__(self, manager: ThemeManager, *, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._manager = manager
        self._stack = QVBoxLayout(self)
        spaced(self._stack, manager, "s")
        self.last: tuple[str, str] | None = None
        self.hide()

    def show_notice(
        self,
        text: str,
        kind: Kind = "info",
        action: str = "",
        on_action: Callable[[], object] | None = None,
        seconds: float | None = None,
        *,
        repeats: bool = False,
    ) -> Notice:
        """Shows a message under those already there, and has it said aloud; no more than three stay, failures longest.

        The same text again replaces the older one.

        Args:
            text: The sentence.
            kind: "info", "good", "warn" or "bad".
            action: A button's text, such as "Undo"; "" for none.
            on_action: Called when that button is clicked.
            seconds: How long it stays; None is 8 s, and for "bad" until it is closed. 0 is until it is closed.
            repeats: Whether the same text again may stand beside the older one, as of two chats of one name.
        """
        self.last = (kind, text)
        for old in self.notices():
            if old.text == text and not repeats:
                self._remove(old)
        while len(shown := self.notices()) >= MOST:
            self._remove(next((old for old in shown if old.kind != "bad"), shown[0]))
        stay = (0.0 if kind == "bad" else 8.0) if seconds is None else seconds
        made = Notice(self._manager, text, kind, action, on_action, stay, parent=self)
        made.closed.connect(self._closed)
        self._stack.addWidget(made)
        self.show()
        announce(self, text, urgent=kind == "bad")
        return made

    def notices(self) -> list[Notice]:
        """The messages in view, oldest first."""
        widgets = [self._stack.itemAt(i).widget() for i in range(self._stack.count())]
        return [widget for widget in widgets if isinstance(widget, Notice)]

    def clear(self) -> None:
        """Takes every message away."""
        for notice in self.notices():
            self._remove(notice)

    def _closed(self) -> None:
        sender = self.sender()
        if isinstance(sender, Notice):
            self._remove(sender)

    def _remove(self, notice: Notice) -> None:
        self._stack.removeWidget(notice)
        notice.hide()
        notice.deleteLater()
        self.setVisible(bool(self.notices()))
