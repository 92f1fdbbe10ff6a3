"""The list of chats itself: mouse, keyboard, and what stays where it was when the rows change."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, cast

from PySide6.QtCore import QEvent, QItemSelectionModel, QModelIndex, QPersistentModelIndex, QPoint, Qt, Signal
from PySide6.QtGui import QContextMenuEvent, QKeyEvent, QKeySequence, QMouseEvent
from PySide6.QtWidgets import QAbstractItemView, QFrame, QListView, QWidget

from tandem.ui.composer_ime import ENTER_KEYS
from tandem.ui.sidebar_delegate import RowDelegate
from tandem.ui.sidebar_model import ChatModel
from tandem.ui.sidebar_rows import Row
from tandem.ui.theme import ThemeManager

_Index = QModelIndex | QPersistentModelIndex
_ACTION: Final = QAbstractItemView.CursorAction


class ChatList(QListView):
    """Shows a `ChatModel`. The keyboard's place and the chat that is open are two things, as in a mail program.

    Args:
        manager: Colours, sizes and fonts.
        model: The rows.
        parent: The sidebar.

    Signals:
        chosen: A row that was clicked, or on which Enter was pressed.
        delete_pressed: Delete was pressed on a chat (its id).
        undo_pressed: The last delete is to be undone.
        menu_wanted: For a row, at a point of the screen.
        left_upwards: Up was pressed on the first row.
        escaped: Esc was pressed.
    """

    chosen = Signal(object)
    delete_pressed = Signal(int)
    undo_pressed = Signal()
    menu_wanted = Signal(object, QPoint)
    left_upwards = Signal()
    escaped = Signal()

    def __init__(self, manager: ThemeManager, model: ChatModel, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._manager = manager
        self._chats = model
        self._waiting: list[Row] | None = None
        self.delegate = RowDelegate(manager, model, self)
        self.setModel(model)
        self.setItemDelegate(self.delegate)
        self._revealed = False
        self.setProperty("kit", "plain")
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setSelectionMode(QAbstractItemView.SelectionMode.NoSelection)
        self.setEditTriggers(QAbstractItemView.EditTrigger.NoEditTriggers)
        self.setVerticalScrollMode(QAbstractItemView.ScrollMode.ScrollPerPixel)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setResizeMode(QListView.ResizeMode.Adjust)
        self.setMouseTracking(True)
        self.viewport().setAutoFillBackground(False)
        self.clicked.connect(self._clicked)
        manager.changed.connect(self._retheme)

    @property
    def renaming(self) -> bool:
        """Whether a name is being typed."""
        return self.state() == QAbstractItemView.State.EditingState

    def set_rows(self, rows: list[Row], *, keep_place: bool = True) -> None:
        """Shows other rows. While a name is being typed they wait until it is done.

        Args:
            rows: What to show.
            keep_place: Keep the scroll position and the keyboard's place; otherwise start at the top.
        """
        if self.renaming:
            self._waiting = rows
            return
        self._waiting = None
        place = self.currentIndex().row()
        row = self._chats.row(self.currentIndex())
        offset = self.verticalScrollBar().value()
        if not self._chats.set_rows(rows):
            if not keep_place:
                self.scrollToTop()
            return
        if not keep_place:
            self.scrollToTop()
            return
        index = self._chats.find(row.conversation if row else None)
        if not index.isValid() and row is not None:
            # The chat under the keyboard is gone: the one that took its place is next.
            number = self._chats.step(min(place, len(rows) - 1), 1)
            number = self._chats.step(len(rows) - 1, -1) if number is None else number
            index = self._chats.index(number) if number is not None else QModelIndex()
        self.executeDelayedItemsLayout()
        self.set_place(index)
        self.verticalScrollBar().setValue(offset)

    def set_place(self, index: QModelIndex) -> None:
        """Moves the keyboard's place without opening anything."""
        self.selectionModel().setCurrentIndex(index, QItemSelectionModel.SelectionFlag.NoUpdate)

    def reveal(self, index: QModelIndex) -> None:
        """Scrolls to a chat; to the first one with its heading. Before there is a size to scroll in, nothing moves."""
        if not index.isValid() or not self.isVisible():
            return
        if index.row() == self._chats.step(0, 1):
            self.scrollToTop()
        else:
            self.scrollTo(index)

    def enter_from_above(self) -> bool:
        """Takes the focus on the first chat; False, and nothing done, if there is none."""
        first = self._chats.step(0, 1)
        if first is None:
            return False
        self.setFocus(Qt.FocusReason.OtherFocusReason)
        self.set_place(self._chats.index(first))
        self.scrollToTop()
        return True

    def rename(self, index: QModelIndex) -> None:
        """Opens the field for a new name."""
        row = self._chats.row(index)
        if row is not None and row.kind != "heading":
            self.reveal(index)
            self.set_place(index)
            self.edit(index)

    def popup_point(self, index: QModelIndex) -> QPoint:
        """Where a menu for a row opens that was asked for by keyboard, on the screen."""
        rect = self.visualRect(index)
        return self.viewport().mapToGlobal(QPoint(rect.left() + self._manager.px(24), rect.bottom() - 4))

    def dataChanged(self, first: _Index, last: _Index, roles: Sequence[int] = ()) -> None:  # noqa: N802 - Qt's name
        """Only paints: a row's height never changes, and a QListView would ask for all of them."""
        QAbstractItemView.dataChanged(self, first, last, roles)
        self.viewport().update()

    def closeEditor(self, editor: QWidget, hint: Any) -> None:  # noqa: N802 - Qt's name
        """Ends renaming, and shows the rows that came meanwhile."""
        super().closeEditor(editor, hint)
        if self._waiting is not None:
            self.set_rows(self._waiting)

    def moveCursor(self, action: QAbstractItemView.CursorAction, modifiers: Any) -> QModelIndex:  # noqa: ARG002, N802
        """Steps over headings; Home and End find the first and last chat, and a page is what is seen."""
        last = self._chats.rowCount() - 1
        here = self.currentIndex().row()
        if here < 0:
            return self._at(0, 1) or QModelIndex()
        if action in (_ACTION.MoveDown, _ACTION.MoveNext):
            return self._at(here + 1, 1) or self.currentIndex()
        if action in (_ACTION.MoveUp, _ACTION.MovePrevious):
            return self._at(here - 1, -1) or self.currentIndex()
        if action == _ACTION.MoveHome:
            return self._at(0, 1) or self.currentIndex()
        if action == _ACTION.MoveEnd:
            return self._at(last, -1) or self.currentIndex()
        if action in (_ACTION.MovePageDown, _ACTION.MovePageUp):
            down = action == _ACTION.MovePageDown
            rect = self.visualRect(self.currentIndex())
            room = max(self.viewport().height() - rect.height(), rect.height())
            aim = rect.center().y() + (room if down else -room)
            target = here
            while True:
                following = self._at(target + (1 if down else -1), 1 if down else -1)
                if following is None:
                    break
                middle = self.visualRect(following).center().y()
                if (middle > aim if down else middle < aim) and target != here:
                    break
                target = following.row()
            return self._chats.index(target)
        return self.currentIndex()

    def keyPressEvent(self, event: QKeyEvent) -> None:  # noqa: N802 - Qt's name
        """Enter opens, F2 renames, Delete deletes, Ctrl+Z undoes that, Menu and Shift+F10 open the menu."""
        row = self._chats.row(self.currentIndex())
        key, shift = event.key(), bool(event.modifiers() & Qt.KeyboardModifier.ShiftModifier)
        if key == Qt.Key.Key_Escape:
            event.ignore()
            self.escaped.emit()
        elif key == Qt.Key.Key_Up and self.currentIndex().row() == self._chats.step(0, 1):
            self.left_upwards.emit()
        elif event.matches(QKeySequence.StandardKey.Undo):
            if not event.isAutoRepeat():
                self.undo_pressed.emit()
        elif row is None:
            super().keyPressEvent(event)
        elif key in ENTER_KEYS:
            self.chosen.emit(row)
        elif key == Qt.Key.Key_F2:
            self.rename(self.currentIndex())
        elif key == Qt.Key.Key_Delete and not event.isAutoRepeat():
            self.delete_pressed.emit(row.conversation)
        elif key == Qt.Key.Key_Menu or (key == Qt.Key.Key_F10 and shift):
            self.menu_wanted.emit(row, self.popup_point(self.currentIndex()))
        else:
            super().keyPressEvent(event)

    def showEvent(self, event: Any) -> None:  # noqa: N802 - Qt's name
        """Scrolls to the open chat when there is a size to scroll in for the first time."""
        super().showEvent(event)
        if not self._revealed:
            self._revealed = True
            self.reveal(self._chats.find(self._chats.open_chat))

    def focusInEvent(self, event: Any) -> None:  # noqa: N802 - Qt's name
        """The keyboard starts where the open chat is, or at the first."""
        super().focusInEvent(event)
        if not self.currentIndex().isValid():
            index = self._chats.find(self._chats.open_chat)
            self.set_place(index if index.isValid() else self._at(0, 1) or QModelIndex())

    def mousePressEvent(self, event: QMouseEvent) -> None:  # noqa: N802 - Qt's name
        """A press on "…" opens the menu and chooses nothing."""
        index = self.indexAt(event.position().toPoint())
        row = self._chats.row(index)
        if row is not None and row.kind != "heading" and event.button() == Qt.MouseButton.LeftButton:
            more = self.delegate.more_rect(self.visualRect(index))
            if more.contains(event.position().toPoint()):
                self.set_place(index)
                self.menu_wanted.emit(row, self.viewport().mapToGlobal(more.bottomLeft()))
                event.accept()
                return
        super().mousePressEvent(event)

    def contextMenuEvent(self, event: QContextMenuEvent) -> None:  # noqa: N802 - Qt's name
        """Opens the menu of the row under the mouse, or of the keyboard's."""
        by_key = event.reason() == QContextMenuEvent.Reason.Keyboard
        index = self.currentIndex() if by_key else self.indexAt(event.pos())
        row = self._chats.row(index)
        if row is not None and row.kind != "heading":
            self.menu_wanted.emit(row, self.popup_point(index) if by_key else event.globalPos())
        event.accept()

    def viewportEvent(self, event: QEvent) -> bool:  # noqa: N802 - Qt's name
        """The hand says what can be clicked."""
        if event.type() == QEvent.Type.MouseMove:
            row = self._chats.row(self.indexAt(cast("QMouseEvent", event).position().toPoint()))
            able = row is not None and row.kind != "heading"
            self.viewport().setCursor(Qt.CursorShape.PointingHandCursor if able else Qt.CursorShape.ArrowCursor)
        return super().viewportEvent(event)

    def _at(self, start: int, by: int) -> QModelIndex | None:
        number = self._chats.step(start, by)
        return None if number is None else self._chats.index(number)

    def _clicked(self, index: QModelIndex) -> None:
        row = self._chats.row(index)
        if row is not None and row.kind != "heading":
            self.chosen.emit(row)

    def _retheme(self) -> None:
        self.scheduleDelayedItemsLayout()
        self.viewport().update()
