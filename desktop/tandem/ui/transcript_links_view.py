"""The links of the transcript, by mouse and by keyboard: where the focus is, what the mouse is on, what was chosen."""

from __future__ import annotations

from typing import Final

from PySide6.QtCore import QEvent, QPoint, QRectF, Qt, QUrl, Signal
from PySide6.QtGui import (
    QFocusEvent,
    QHelpEvent,
    QKeyEvent,
    QMouseEvent,
    QPainter,
    QPaintEvent,
    QTextCursor,
    QWheelEvent,
)
from PySide6.QtWidgets import QToolTip, QWidget

from tandem.ui.kit import announce, draw_focus
from tandem.ui.theme import ThemeManager
from tandem.ui.transcript_links import Link, links_of, next_link, previous_link, tip_of
from tandem.ui.transcript_view import TranscriptView

_BY_KEY: Final = (Qt.FocusReason.TabFocusReason, Qt.FocusReason.BacktabFocusReason, Qt.FocusReason.ShortcutFocusReason)
_ENTER: Final = (Qt.Key.Key_Return, Qt.Key.Key_Enter, Qt.Key.Key_Select)


class LinkedView(TranscriptView):
    """A transcript whose links can be used.

    Args:
        manager: The theme.

    Attributes:
        link_chosen: A link was clicked, or Enter pressed on it; its address.
    """

    link_chosen = Signal(str)

    def __init__(self, manager: ThemeManager, parent: QWidget | None = None) -> None:
        super().__init__(manager, parent)
        self._focused: QTextCursor | None = None
        self._hovered: QTextCursor | None = None  # the text may change under the mouse
        self._by_key = False
        self.anchorClicked.connect(self._clicked)
        self.viewport().setMouseTracking(True)

    def paint_behind(self, painter: QPainter) -> None:
        """Draws the icon that the mouse is on as one that can be used."""
        if self._hovered is not None and self._hovered.hasSelection():
            painter.setPen(Qt.PenStyle.NoPen)
            painter.setBrush(self.look.theme.colour("hover"))
            radius = self.look.theme.radius.s
            painter.drawRoundedRect(
                self._rect_of(self._hovered.selectionStart(), self._hovered.selectionEnd()), radius, radius
            )

    def paintEvent(self, event: QPaintEvent) -> None:  # noqa: N802 - Qt's name
        """The text, and the ring around what has the focus: a link, or all of it."""
        super().paintEvent(event)
        if not self.hasFocus() or (self._focused is None and not self._by_key):
            return
        rect = QRectF(self.viewport().rect())
        if self._focused is not None:
            rect = self._rect_of(self._focused.selectionStart(), self._focused.selectionEnd())
        with QPainter(self.viewport()) as painter:
            draw_focus(painter, rect, self.look.theme.radius.s, self.look.theme.colour("focus"))

    def focusInEvent(self, event: QFocusEvent) -> None:  # noqa: N802 - Qt's name
        """Notes whether the focus came from the keyboard: it is shown then, even where no link has it."""
        self._by_key = event.reason() in _BY_KEY
        super().focusInEvent(event)
        self.viewport().update()

    def focusOutEvent(self, event: QFocusEvent) -> None:  # noqa: N802 - Qt's name
        """The ring goes with the focus."""
        super().focusOutEvent(event)
        self.viewport().update()

    def _rect_of(self, start: int, end: int) -> QRectF:
        """Around a link, in the viewport; around all of its lines where there are several."""
        cursor = QTextCursor(self.document())
        cursor.setPosition(start)
        first = QRectF(self.cursorRect(cursor))
        cursor.setPosition(end)
        last = QRectF(self.cursorRect(cursor))
        rect = first.united(last)
        if last.top() > first.top() + 1:
            rect.setLeft(self._left())
            rect.setRight(self._left() + self.look.column)
        pad = self.look.theme.px(3)
        return rect.adjusted(-pad, -1, pad, 1)

    def _clicked(self, url: QUrl) -> None:
        self.link_chosen.emit(url.toString(QUrl.ComponentFormattingOption.FullyEncoded))

    @property
    def focused_link(self) -> Link | None:
        """The link that has the focus."""
        if self._focused is None:
            return None
        start = self._focused.selectionStart()
        return next((link for link in links_of(self.document().findBlock(start)) if link.start == start), None)

    def focus_link(self, link: Link | None) -> None:
        """Gives a link the focus, shows it, and has a screen reader say its name."""
        if link is None:
            self._focused = None
        else:
            self._focused = self._cursor_on(link)
            self._show_rect(self._rect_of(link.start, link.end))
            announce(self, self.tr("{name}, link").format(name=link.name))
        self.viewport().update()

    def _cursor_on(self, link: Link) -> QTextCursor:
        """A cursor that keeps to a link, whatever is written elsewhere; without a selection when the link has gone."""
        cursor = QTextCursor(self.document())
        cursor.setPosition(link.start)
        cursor.setPosition(link.end, QTextCursor.MoveMode.KeepAnchor)
        return cursor

    def _show_rect(self, rect: QRectF) -> None:
        bar, height, gap = self.verticalScrollBar(), self.viewport().height(), self.look.theme.px(24)
        if rect.top() < gap:
            bar.setValue(round(bar.value() + rect.top() - gap))
        elif rect.bottom() > height - gap:
            bar.setValue(round(bar.value() + rect.bottom() - height + gap))

    def focusNextPrevChild(self, forward: bool) -> bool:  # noqa: N802 - Qt's name
        """Goes from link to link, from the first one in view on, and then to the next widget."""
        focused = self.focused_link
        document = self.document()
        if focused is not None:
            block = document.findBlock(focused.start)
            found = next_link(block, focused.start) if forward else previous_link(block, focused.start)
        elif forward:
            start = self.first_visible()
            found = next_link(document.findBlock(start), start - 1)
        else:
            end = self.cursorForPosition(QPoint(self._left(), self.viewport().height())).position()
            found = previous_link(document.findBlock(end), end + 1)
        self.focus_link(found)
        return found is not None or QWidget.focusNextPrevChild(self, forward)

    def keyPressEvent(self, event: QKeyEvent) -> None:  # noqa: N802 - Qt's name
        """Enter follows the link that has the focus; Home and End go to the ends; the rest scrolls."""
        bar, key = self.verticalScrollBar(), event.key()
        link = self.focused_link
        plain = event.modifiers() & ~Qt.KeyboardModifier.KeypadModifier == Qt.KeyboardModifier.NoModifier
        if key in _ENTER and link is not None:
            self.link_chosen.emit(link.href)
        elif key in (Qt.Key.Key_Up, Qt.Key.Key_Down) and plain:
            bar.triggerAction(
                bar.SliderAction.SliderSingleStepAdd if key == Qt.Key.Key_Down else bar.SliderAction.SliderSingleStepSub
            )
        elif key == Qt.Key.Key_Home:
            bar.setValue(bar.minimum())
        elif key == Qt.Key.Key_End:
            self.jump_to_end()
        else:
            super().keyPressEvent(event)
            return
        event.accept()

    def wheelEvent(self, event: QWheelEvent) -> None:  # noqa: N802 - Qt's name
        """Scrolls; the text size is the settings' matter, not the wheel's."""
        if event.modifiers() & Qt.KeyboardModifier.ControlModifier:
            event.ignore()
        else:
            super().wheelEvent(event)

    def mouseMoveEvent(self, event: QMouseEvent) -> None:  # noqa: N802 - Qt's name
        """Notes which of our icons the mouse is on."""
        super().mouseMoveEvent(event)
        self._hover(event.position().toPoint())

    def mousePressEvent(self, event: QMouseEvent) -> None:  # noqa: N802 - Qt's name
        """The mouse takes the focus from a link."""
        self._focused, self._by_key = None, False
        super().mousePressEvent(event)

    def leaveEvent(self, event: QEvent) -> None:  # noqa: N802 - Qt's name
        """The mouse is on nothing any more."""
        super().leaveEvent(event)
        self._hover(None)

    def viewportEvent(self, event: QEvent) -> bool:  # noqa: N802 - Qt's name
        """Says what the link under the mouse does, on all of it: Qt goes by the character in front of the mouse."""
        if event.type() != QEvent.Type.ToolTip or not isinstance(event, QHelpEvent):
            return super().viewportEvent(event)
        link = self._link_at(event.pos())
        tip = tip_of(self.document().findBlock(link.start), link) if link is not None else ""
        if link is not None and tip:
            QToolTip.showText(event.globalPos(), tip, self.viewport(), self._rect_of(link.start, link.end).toRect())
        else:
            QToolTip.hideText()
        return True

    def _link_at(self, point: QPoint) -> Link | None:
        """The link at a point of the viewport."""
        href = self.anchorAt(point)
        if not href:
            return None
        position = self.cursorForPosition(point).position()
        block = self.document().findBlock(position)
        return next(
            (link for link in links_of(block) if link.href == href and link.start <= position <= link.end),
            None,
        )

    def _hover(self, point: QPoint | None) -> None:
        link = self._link_at(point) if point is not None else None
        found = self._cursor_on(link) if link is not None and link.end == link.start + 1 else None
        if found != self._hovered:
            self._hovered = found
            self.viewport().update()
