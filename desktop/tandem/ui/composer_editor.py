"""The text field of the composer: what its keys do, what may be put into it, how high it is."""

from __future__ import annotations

from typing import Any, Final, cast

from PySide6.QtCore import QEvent, QMimeData, QSize, Qt, Signal
from PySide6.QtGui import (
    QDragEnterEvent,
    QDragMoveEvent,
    QDropEvent,
    QFocusEvent,
    QGuiApplication,
    QInputMethodEvent,
    QKeyEvent,
    QResizeEvent,
    QTextCursor,
)
from PySide6.QtWidgets import QFrame, QSizePolicy, QTextEdit, QWidget

from tandem.ui.composer_ime import ENTER_KEYS, CompositionGate
from tandem.ui.composer_text import FIELD_CHARACTERS, FIELD_PARAGRAPH, MAX_CHARACTERS, clean, fits_field, found_in
from tandem.ui.theme import ThemeManager

MOST_LINES: Final = 8
_LINE: Final = 21
"""Height of a line in pixels at 100 %, enough for Korean."""
_BLANK_BLOCKS: Final = 200


class MessageEditor(QTextEdit):
    """Plain text that grows from one line to `MOST_LINES`, then scrolls.

    A QTextEdit, although it holds plain text only: a QPlainTextEdit sets right-to-left paragraphs at the left.

    Enter asks to send and Shift+Enter breaks the line; neither does anything while, or right after, an input method
    composes (see `composer_ime`). Tab leaves the field.

    Args:
        manager: Sizes and fonts.
        parent: The composer.

    Signals:
        send_pressed: Enter.
        escape_pressed: Esc.
        up_pressed: Up, in an empty field.
        foreign: Something that is no text was dropped or pasted.
        too_long: More text than anything could take was dropped or pasted.
        big_paste: Text that the field would stall on; it was not put in.
        left: The field lost the focus.
    """

    send_pressed = Signal()
    escape_pressed = Signal()
    up_pressed = Signal()
    foreign = Signal()
    too_long = Signal()
    big_paste = Signal(str)
    left = Signal()

    def __init__(self, manager: ThemeManager, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._manager = manager
        self._gate = CompositionGate(self)
        self._growing = False
        self.setProperty("kit", "plain")
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setAcceptRichText(False)
        self.setTabChangesFocus(True)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self.setCursorWidth(2)
        self.viewport().setAutoFillBackground(False)
        option = self.document().defaultTextOption()
        # Each paragraph runs the way its own letters do.
        option.setTextDirection(Qt.LayoutDirection.LayoutDirectionAuto)
        self.document().setDefaultTextOption(option)
        self.document().setDocumentMargin(2)
        self.document().documentLayout().documentSizeChanged.connect(self._grow)
        self.textChanged.connect(self._grow)
        manager.changed.connect(self._retheme)
        self._retheme()

    @property
    def composing(self) -> bool:
        """Whether there is preedit text."""
        return bool(self.textCursor().block().layout().preeditAreaText())

    @property
    def composition_just_ended(self) -> bool:
        """Whether the next Enter is taken for the one that ended a composition."""
        return self._gate.just_ended

    @property
    def empty(self) -> bool:
        """Whether there is nothing at all in it, not even preedit text."""
        return self.document().isEmpty() and not self.composing

    @property
    def blank(self) -> bool:
        """Whether there is nothing but white space. Cheap whatever is in it; thousands of blank lines count as text."""
        block = self.document().firstBlock()
        for _ in range(_BLANK_BLOCKS):
            if not block.isValid():
                return True
            if not block.text().isspace() and block.length() > 1:
                return False
            block = block.next()
        return False

    def text(self) -> str:
        """The text, character for character; `toPlainText` would turn no-break spaces into spaces."""
        return self.document().toRawText().replace("\u2029", "\n").replace("\u2028", "\n")

    def finish_composition(self) -> None:
        """Commits what an input method composes, so that it is part of the text."""
        method = QGuiApplication.inputMethod()
        method.commit()
        text = self.textCursor().block().layout().preeditAreaText()
        if text:
            # Not every platform commits on request; what is seen must not be lost.
            method.reset()
            event = QInputMethodEvent()
            event.setCommitString(text)
            self.inputMethodEvent(event)

    def set_text(self, text: str) -> None:
        """Replaces the text; undo does not bring the former one back."""
        self.setPlainText(text)
        self._grow()
        self.moveCursor(QTextCursor.MoveOperation.End)
        self.ensureCursorVisible()

    def insert(self, text: str) -> None:
        """Inserts text at the cursor, or reports why not."""
        if len(text) > MAX_CHARACTERS:
            self.too_long.emit()
            return
        text = clean(text)
        room = self.document().characterCount() + len(text) <= 2 * FIELD_CHARACTERS
        if fits_field(text) and self.textCursor().block().length() <= FIELD_PARAGRAPH and room:
            self.insertPlainText(text)
            self.ensureCursorVisible()
        else:
            self.big_paste.emit(text)

    def take(self, data: QMimeData | None) -> bool:
        """Inserts the text of dropped or pasted data; anything else is reported by `foreign`.

        Returns:
            Whether it was text.
        """
        found = found_in(data)
        if found.text is not None:
            self.insert(found.text)
            return True
        if found.foreign:
            self.foreign.emit()
        return False

    def sizeHint(self) -> QSize:  # noqa: N802 - Qt's name
        """As high as its text, between one line and `MOST_LINES`."""
        return QSize(self._manager.px(200), self._wanted_height())

    def minimumSizeHint(self) -> QSize:  # noqa: N802 - Qt's name
        """The same height: the page gives way, not the field."""
        return QSize(self._manager.px(80), self._wanted_height())

    def canInsertFromMimeData(self, source: QMimeData) -> bool:  # noqa: N802 - Qt's name
        """Anything may be tried; what is no text is refused with a reason."""
        found = found_in(source)
        return found.text is not None or found.foreign

    def insertFromMimeData(self, source: QMimeData) -> None:  # noqa: N802 - Qt's name
        """Pastes the text alone."""
        self.take(source)

    def inputMethodEvent(self, event: QInputMethodEvent) -> None:  # noqa: N802 - Qt's name
        """Follows the composition."""
        before = self.composing
        super().inputMethodEvent(event)
        self._gate.saw(event, before, self.composing)
        self._grow()

    def keyPressEvent(self, event: QKeyEvent) -> None:  # noqa: N802 - Qt's name
        """Enter, Esc and Up have meanings of their own; the rest is the field's."""
        key = event.key()
        shift = bool(event.modifiers() & (Qt.KeyboardModifier.ShiftModifier | Qt.KeyboardModifier.AltModifier))
        if self._gate.holds(event, self.composing):
            event.accept()
        elif key in ENTER_KEYS:
            event.accept()
            if shift:
                # A paragraph of its own, not a line within one: it may run the other way.
                self.textCursor().insertBlock()
                self.ensureCursorVisible()
            elif not event.isAutoRepeat():
                self.send_pressed.emit()
        elif key == Qt.Key.Key_Escape:
            event.ignore()
            self.escape_pressed.emit()
        elif key == Qt.Key.Key_Up and self.empty and not event.modifiers() & ~Qt.KeyboardModifier.KeypadModifier:
            event.accept()
            self.up_pressed.emit()
        else:
            super().keyPressEvent(event)

    def event(self, event: QEvent) -> bool:
        """While an input method composes, its keys are no shortcuts of the window's."""
        if event.type() == QEvent.Type.ShortcutOverride and self.composing:
            press = cast("QKeyEvent", event)
            if press.key() in ENTER_KEYS or press.key() == Qt.Key.Key_Escape:
                event.accept()
                return True
        return super().event(event)

    def dragEnterEvent(self, event: QDragEnterEvent) -> None:  # noqa: N802 - Qt's name
        """Lets everything in that can be answered."""
        self._judge(event)
        if event.isAccepted() and found_in(event.mimeData()).text is not None:
            super().dragEnterEvent(event)

    def dragMoveEvent(self, event: QDragMoveEvent) -> None:  # noqa: N802 - Qt's name
        """Likewise."""
        if found_in(event.mimeData()).text is not None:
            super().dragMoveEvent(event)
        else:
            self._judge(event)

    def dropEvent(self, event: QDropEvent) -> None:  # noqa: N802 - Qt's name
        """Takes text. What is refused is never "moved": its source would delete it."""
        if found_in(event.mimeData()).text is not None:
            super().dropEvent(event)
            return
        self.take(event.mimeData())
        event.setDropAction(Qt.DropAction.IgnoreAction)
        event.accept()

    def focusOutEvent(self, event: QFocusEvent) -> None:  # noqa: N802 - Qt's name
        """Tells that the field was left."""
        super().focusOutEvent(event)
        self.left.emit()

    def resizeEvent(self, event: QResizeEvent) -> None:  # noqa: N802 - Qt's name
        """Another width means other lines."""
        super().resizeEvent(event)
        self._grow()

    def _judge(self, event: QDropEvent) -> None:
        if self.canInsertFromMimeData(event.mimeData()):
            event.setDropAction(Qt.DropAction.CopyAction)
            event.accept()
        else:
            event.ignore()

    def _wanted_height(self) -> int:
        """Of the text, in pixels; one line is as high as any script needs it."""
        margin = 2 * round(self.document().documentMargin())
        line = self._manager.px(_LINE)
        return min(max(round(self.document().size().height()), line + margin), self._most() + margin)

    def _most(self) -> int:
        """Height of the most lines, in pixels: fewer in a low window."""
        line = self._manager.px(_LINE)
        return line * max(min(MOST_LINES, round(0.4 * self.window().height() / line)), 2)

    def _grow(self, *_: Any) -> None:
        wanted = self._wanted_height()
        # Without this a scroll bar flashes up before each new line has got its room.
        full = wanted >= self._most()
        policy = Qt.ScrollBarPolicy.ScrollBarAsNeeded if full else Qt.ScrollBarPolicy.ScrollBarAlwaysOff
        if policy != self.verticalScrollBarPolicy():
            self.setVerticalScrollBarPolicy(policy)
        if self.height() != wanted and not self._growing:
            self._growing = True
            self.updateGeometry()
            # One layout after the other would take as many turns of the event loop, and each would be seen.
            widget = self.parentWidget()
            while widget is not None:
                if (layout := widget.layout()) is not None:
                    layout.activate()
                widget = None if widget.isWindow() else widget.parentWidget()
            self._growing = False

    def _retheme(self) -> None:
        self.setFont(self._manager.font("body"))
        self.viewport().setFont(self.font())  # the place holder's
        self.updateGeometry()
