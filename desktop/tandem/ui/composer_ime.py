"""Keeps the Enter of an input method from doing anything else.

Who writes Korean, Chinese or Japanese confirms a syllable or a candidate with Enter. Some input methods keep that key
to themselves, some pass it on before the text is committed, some right after it: the Hangul and Windows ones do. A
`CompositionGate` hears of both, the text and the keys, and says which keys belong to the composition.
"""

from __future__ import annotations

from typing import Final

from PySide6.QtCore import QObject, Qt, QTimer, Signal
from PySide6.QtGui import QDragEnterEvent, QInputMethodEvent, QKeyEvent
from PySide6.QtWidgets import QLineEdit, QWidget

from tandem.ui.composer_text import found_in

SAME_KEY_MS: Final = 80
"""A key that comes within this time after a composition ended is the one that ended it. The event loop sees the two
within a few milliseconds; nobody types two keys that quickly on purpose."""

ENTER_KEYS: Final = frozenset({Qt.Key.Key_Return, Qt.Key.Key_Enter})
_GUARDED: Final = ENTER_KEYS | {Qt.Key.Key_Escape}
_MODIFIERS: Final = frozenset(
    {Qt.Key.Key_Shift, Qt.Key.Key_Control, Qt.Key.Key_Alt, Qt.Key.Key_AltGr, Qt.Key.Key_Meta, Qt.Key.Key_CapsLock}
)


class CompositionGate(QObject):
    """Tells the keys of a composition from those of the application.

    Args:
        parent: The field that is typed in; the gate lives as long.
    """

    def __init__(self, parent: QObject) -> None:
        super().__init__(parent)
        self._just_ended = QTimer(self)
        self._just_ended.setSingleShot(True)
        self._just_ended.setInterval(SAME_KEY_MS)

    @property
    def just_ended(self) -> bool:
        """Whether a composition ended so recently that the next Enter or Esc is the one that ended it."""
        return self._just_ended.isActive()

    def saw(self, event: QInputMethodEvent, before: bool, after: bool) -> None:
        """Hears of an input method event.

        Args:
            event: The event.
            before: Whether there was preedit text before it.
            after: Whether there is some now.
        """
        if after:
            self._just_ended.stop()
        elif before or (self.just_ended and event.commitString()):
            # Some clear the preedit text first and commit in a second event.
            self._just_ended.start()

    def holds(self, event: QKeyEvent, composing: bool) -> bool:
        """Whether a pressed key must do nothing, because it belongs to a composition.

        Args:
            event: The press.
            composing: Whether there is preedit text now.
        """
        if event.key() in _MODIFIERS:
            return False
        if event.key() in _GUARDED and composing:
            return True
        # Whatever it is, it is the key that ended the composition: the next Enter is meant.
        ended, shift = self.just_ended, bool(event.modifiers() & Qt.KeyboardModifier.ShiftModifier)
        self._just_ended.stop()
        return event.key() in _GUARDED and ended and not shift


class ComposingLineEdit(QLineEdit):
    """A line edit whose Enter and Esc wait for the input method, and that tells what is being composed.

    Signals:
        typed: The text with the preedit text in its place, after any change of either: a search need not wait for
            the last syllable to be committed.
    """

    typed = Signal(str)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._preedit = ""
        self._gate = CompositionGate(self)
        self.textChanged.connect(self._tell)

    @property
    def composing(self) -> bool:
        """Whether there is preedit text."""
        return bool(self._preedit)

    @property
    def whole_text(self) -> str:
        """The text with the preedit text at the cursor."""
        if not self._preedit:
            return self.text()
        # Qt counts UTF-16 units.
        raw = self.text().encode("utf-16-le")
        at = 2 * self.cursorPosition()
        return (raw[:at] + self._preedit.encode("utf-16-le") + raw[at:]).decode("utf-16-le", "replace")

    def holds(self, event: QKeyEvent) -> bool:
        """Whether a pressed key belongs to a composition and must do nothing."""
        return self._gate.holds(event, self.composing)

    def inputMethodEvent(self, event: QInputMethodEvent) -> None:  # noqa: N802 - Qt's name
        """Follows the composition."""
        before = self.composing
        self._preedit = event.preeditString()
        super().inputMethodEvent(event)
        self._gate.saw(event, before, self.composing)
        self._tell()

    def keyPressEvent(self, event: QKeyEvent) -> None:  # noqa: N802 - Qt's name
        """Swallows the keys that belong to a composition, and keeps Enter from the field's parents."""
        if self.holds(event):
            event.accept()
            return
        super().keyPressEvent(event)
        if event.key() in ENTER_KEYS:
            event.accept()

    def dragEnterEvent(self, event: QDragEnterEvent) -> None:  # noqa: N802 - Qt's name
        """Takes text alone; the address of a dropped file is none."""
        if found_in(event.mimeData()).text is None:
            event.ignore()
        else:
            super().dragEnterEvent(event)

    def _tell(self) -> None:
        self.typed.emit(self.whole_text)
