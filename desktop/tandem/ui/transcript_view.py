"""The transcript as something to look at: the column in the middle, its backgrounds, and the place that one looks at.

It knows nothing of messages. Nothing is ever loaded from outside: the only images are our own icons.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from PySide6.QtCore import QEvent, Qt, QTimer, QUrl, Signal
from PySide6.QtGui import (
    QPainter,
    QPaintEvent,
    QResizeEvent,
    QTextCursor,
    QTextDocument,
)
from PySide6.QtWidgets import QAbstractScrollArea, QFrame, QTextBrowser, QWidget

from tandem.ui import icons
from tandem.ui.kit import IconButton
from tandem.ui.theme import ThemeManager
from tandem.ui.transcript_look import COLUMN, ICONS, Look
from tandem.ui.transcript_paint import paint_grounds, visible_blocks

_SLACK: Final = 8
"""Pixels from the end at which the reader still counts as being there."""
_RELAYOUT_MS: Final = 150
"""Time after the last change of the width after which everything is written for it."""
_NARROWEST: Final = 240

_ROLES: Final = frozenset(("muted", "faint", "accent", "bad", "good"))


class TranscriptView(QTextBrowser):
    """The document in a column.

    Args:
        manager: The theme.

    Attributes:
        reached: The reader came near the beginning (False) or the end (True) of what is loaded.
    """

    reached = Signal(bool)

    def __init__(self, manager: ThemeManager, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._manager = manager
        self._following = True
        self._moving = False
        self.setUndoRedoEnabled(False)
        self.setOpenLinks(False)
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        # Its room is always kept: coming and going, it would move the column and have all of it laid out again.
        self.setVerticalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOn)
        self.document().setDocumentMargin(0)
        self.end_button = IconButton(manager, "arrow-down", "", role="text", parent=self)
        self.end_button.setObjectName("jumpToEnd")
        self.end_button.hide()
        self.end_button.clicked.connect(self.jump_to_end)
        self._relayout = QTimer(self)
        self._relayout.setSingleShot(True)
        self._relayout.setInterval(_RELAYOUT_MS)
        self._relayout.timeout.connect(self._on_new_width)
        self.look = Look(manager, self._column())
        self.verticalScrollBar().valueChanged.connect(self._scrolled)
        self.verticalScrollBar().rangeChanged.connect(self._range_changed)
        self._dress()

    # What belongs to the one who fills it

    def rewrite(self) -> None:
        """Writes everything anew for `look`; to be overridden."""

    def ends_here(self) -> bool:
        """Whether the document's end is the end of all there is; to be overridden."""
        return True

    def jump_to_end(self) -> None:
        """Goes to the end and follows it from there on."""
        self._following = True
        self._to_end()
        self._place_button()

    # The place

    @property
    def following(self) -> bool:
        """Whether the view stays at the end as that moves down."""
        return self._following

    @property
    def waits_for_width(self) -> bool:
        """Whether everything will be written anew for another width of the column."""
        return self._relayout.isActive()

    def follow(self, on: bool) -> None:
        """Lets the view stay at the end, or not."""
        self._following = on

    def keeping_place(self, work: Callable[[], object]) -> None:
        """Changes the document in one go; what the reader looks at stays where it is, or the end does."""
        anchor = None if self._following else self._anchor()
        edit = QTextCursor(self.document())
        self._moving = True
        edit.beginEditBlock()
        try:
            work()
        finally:
            edit.endEditBlock()
            if self._following:
                self._to_end()
            elif anchor is not None:
                self._restore(*anchor)
            self._moving = False
        self._place_button()

    def show_position(self, position: int, above: float = 0.25) -> None:
        """Scrolls a position of the document to a share of the height."""
        block = self.document().findBlock(position)
        top = self.document().documentLayout().blockBoundingRect(block).top()
        cursor = QTextCursor(self.document())
        cursor.setPosition(position)
        if block.layout().lineCount() > 1:
            top = self.cursorRect(cursor).top() + self.verticalScrollBar().value()
        self._following = False
        self.verticalScrollBar().setValue(round(top - above * self.viewport().height()))

    def first_visible(self) -> int:
        """Position of the first block that can be seen."""
        top = self.verticalScrollBar().value()
        for block, rect in visible_blocks(self.document(), self._left() + 1, top, top + self.viewport().height()):
            if rect.bottom() > top:
                return block.position()
        return 0

    def _anchor(self) -> tuple[QTextCursor, float]:
        cursor = QTextCursor(self.document())
        cursor.setPosition(self.first_visible())
        cursor.setKeepPositionOnInsert(False)
        return cursor, self._top_of(cursor) - self.verticalScrollBar().value()

    def _restore(self, cursor: QTextCursor, offset: float) -> None:
        self.verticalScrollBar().setValue(round(self._top_of(cursor) - offset))

    def _top_of(self, cursor: QTextCursor) -> float:
        return self.document().documentLayout().blockBoundingRect(cursor.block()).top()

    def _to_end(self) -> None:
        self._moving = True
        bar = self.verticalScrollBar()
        bar.setValue(bar.maximum())
        self._moving = False

    def _scrolled(self, value: int) -> None:
        bar = self.verticalScrollBar()
        if not self._moving:
            self._following = value >= bar.maximum() - _SLACK and self.ends_here()
            page = self.viewport().height()
            if value < page:
                self.reached.emit(False)
            if value > bar.maximum() - page:
                self.reached.emit(True)
        self._place_button()

    def _range_changed(self) -> None:
        bar = self.verticalScrollBar()
        bar.setEnabled(bar.maximum() > bar.minimum())  # and so without a handle where there is nothing to scroll
        if self._following:
            self._to_end()
        self._place_button()

    def _place_button(self) -> None:
        button, view = self.end_button, self.viewport()
        bar = self.verticalScrollBar()
        wanted = not self._following and (bar.value() < bar.maximum() - _SLACK or not self.ends_here())
        if wanted:
            gap = self.look.theme.px(12)
            button.move(
                view.x() + (view.width() - button.width()) // 2, view.y() + view.height() - button.height() - gap
            )
        if wanted != button.isVisibleTo(self):
            if not wanted and button.hasFocus():
                self.setFocus()
            button.setVisible(wanted)
            button.raise_()

    # Looks

    def _column(self) -> int:
        wide = self._manager.px(COLUMN)
        side = self._manager.px(24)
        return max(min(wide, self.viewport().width() - 2 * side), _NARROWEST)

    def _left(self) -> int:
        return max((self.viewport().width() - self.look.column) // 2, 0)

    def _dress(self) -> None:
        """Takes font, colours and distances from the theme."""
        self.look = Look(self._manager, self._column())
        theme = self.look.theme
        self.document().setDefaultFont(self.look.font)
        round_side = theme.control.height // 2
        self.setStyleSheet(
            f"TranscriptView, Transcript {{ border: none; padding: 0; background: {theme.window}; }}"
            "QScrollBar::handle:vertical:disabled { background: transparent; }"
            f"QToolButton#jumpToEnd {{ background: {theme.raised}; border: 1px solid {theme.edge};"
            f" border-radius: {round_side}px; }}"
            f"QToolButton#jumpToEnd:hover {{ background: {theme.hover}; }}"
            f"QToolButton#jumpToEnd:focus {{ border: 2px solid {theme.focus}; }}"
        )
        self._set_margins()

    def set_margins(self) -> None:
        """Puts the column in the middle; after the document was cleared."""
        self._set_margins()

    def _set_margins(self) -> None:
        root = self.document().rootFrame()
        made = root.frameFormat()
        left = self._left()
        right = max(self.viewport().width() - left - self.look.column, 0)
        bottom = self.look.theme.px(28)
        if (made.leftMargin(), made.rightMargin(), made.bottomMargin()) != (left, right, bottom):
            made.setLeftMargin(left)
            made.setRightMargin(right)
            made.setBottomMargin(bottom)
            made.setTopMargin(self.look.theme.px(8))
            root.setFrameFormat(made)

    def resizeEvent(self, event: QResizeEvent) -> None:  # noqa: N802 - Qt's name
        """Keeps the column in the middle; writes anew for another width of it a little later."""

        def resize() -> None:
            QTextBrowser.resizeEvent(self, event)
            if self._column() != self.look.column:
                self.look.column = self._column()
                if self.document().characterCount() > 3:  # what there is in an empty one
                    self._relayout.start()
            self._set_margins()

        # All of it, since Qt lays everything out for the new width at once.
        self.keeping_place(resize)

    def _on_new_width(self) -> None:
        self.rewrite()

    def changeEvent(self, event: QEvent) -> None:  # noqa: N802 - Qt's name
        """The text's font is the theme's: Qt would take the widget's, and lay everything out for it."""
        if event.type() in (QEvent.Type.FontChange, QEvent.Type.ApplicationFontChange):
            QAbstractScrollArea.changeEvent(self, event)
        else:
            super().changeEvent(event)

    def loadResource(self, kind: int, name: QUrl | str) -> Any:  # noqa: N802 - Qt's name
        """Our own icons; nothing else, whatever a text asks for."""
        address = name.toString() if isinstance(name, QUrl) else name
        parts = address.removeprefix(ICONS).split("/")
        if kind != QTextDocument.ResourceType.ImageResource.value or not address.startswith(ICONS) or len(parts) != 4:
            return None
        icon, role, size, _ = parts
        if role not in _ROLES or icon not in icons.names() or not size.isdecimal():
            return None
        return icons.pixmap(icon, role, int(size), self.devicePixelRatioF(), self.look.theme)

    def paintEvent(self, event: QPaintEvent) -> None:  # noqa: N802 - Qt's name
        """The backgrounds, and the text on them."""
        area = event.rect()
        scrolled = self.verticalScrollBar().value()
        with QPainter(self.viewport()) as painter:
            painter.fillRect(area, self.look.theme.colour("window"))
            painter.translate(-self.horizontalScrollBar().value(), -scrolled)
            paint_grounds(
                painter, self.document(), self.look, self._left(), area.top() + scrolled, area.bottom() + 1 + scrolled
            )
            painter.resetTransform()
            self.paint_behind(painter)
        super().paintEvent(event)

    def paint_behind(self, painter: QPainter) -> None:
        """Draws more behind the text, in the viewport's coordinates; to be overridden."""
