"""The sidebar: the chats, a search over them, and what can be done to each."""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from typing import Final, cast

from PySide6.QtCore import QEvent, QPoint, Qt, QTimer, Signal
from PySide6.QtGui import QAction, QFontMetrics, QKeyEvent, QKeySequence, QPainter, QPaintEvent
from PySide6.QtWidgets import QHBoxLayout, QLabel, QLineEdit, QMenu, QSizePolicy, QStackedWidget, QVBoxLayout, QWidget

from tandem.chat.conversation import Hit, Summary
from tandem.ui import icons, sidebar_rows
from tandem.ui.composer_ime import ENTER_KEYS, ComposingLineEdit
from tandem.ui.kit import IconButton, QuietButton, label, spaced
from tandem.ui.sidebar_list import ChatList
from tandem.ui.sidebar_model import ChatModel
from tandem.ui.sidebar_rows import Days, Row
from tandem.ui.theme import ThemeManager

SEARCH_DELAY_MS: Final = 120
"""How long the typing must rest before a search starts."""
_LONGEST_WAIT_S: Final = 24 * 3600


class Sidebar(QWidget):
    """Lists the conversations by day, finds in them, and says what is to be done to one. It changes nothing itself.

    Args:
        manager: Colours, sizes and fonts.
        parent: The window's page.
        new_shortcut: Key of "New chat", such as "Ctrl+N", shown in its tooltip.
        search_shortcut: Key that leads into the search field, likewise.

    Signals:
        new_requested: A new chat.
        opened: A chat's id.
        rename_requested: A chat's id and its new name; the list shows it already.
        delete_requested: A chat's id; who listens offers the undo.
        undo_delete_requested: The chat deleted last is to come back.
        export_requested: A chat's id and "markdown" or "json".
        import_requested: Chats from a file.
        export_all_requested: "markdown" or "json".
        searched: What to search for, once the typing rests; "" when the search was left.
        hit_opened: A chat's id and the message found (its id), None where the chat's name was.
    """

    new_requested = Signal()
    opened = Signal(int)
    rename_requested = Signal(int, str)
    delete_requested = Signal(int)
    undo_delete_requested = Signal()
    export_requested = Signal(int, str)
    import_requested = Signal()
    export_all_requested = Signal(str)
    searched = Signal(str)
    hit_opened = Signal(int, object)

    def __init__(
        self,
        manager: ThemeManager,
        parent: QWidget | None = None,
        *,
        new_shortcut: str = "",
        search_shortcut: str = "",
    ) -> None:
        super().__init__(parent)
        self._manager = manager
        self._shortcuts = (new_shortcut, search_shortcut)
        self._summaries: list[Summary] | None = None
        self._known: frozenset[int] = frozenset()
        self._hits: list[Hit] | None = None
        self.menu: QMenu | None = None
        """The menu that was opened last; for tests."""
        self.model = ChatModel(Days.of(datetime.datetime.now()), self)
        self.model.renamed.connect(self.rename_requested)
        self.list = ChatList(manager, self.model, self)
        self._build()
        self._search_timer = QTimer(self)
        self._search_timer.setSingleShot(True)
        self._search_timer.setInterval(SEARCH_DELAY_MS)
        self._search_timer.timeout.connect(self._search)
        self.midnight = QTimer(self)
        self.midnight.setSingleShot(True)
        self.midnight.timeout.connect(self._new_day)
        self._wait_for_midnight()
        manager.changed.connect(self._retheme)
        self._retheme()
        self._retranslate()

    # ---- what the window tells it

    def set_conversations(self, summaries: Sequence[Summary]) -> None:
        """Shows these chats, the last written in first; place and scroll position stay."""
        self._summaries = list(summaries)
        self._known = frozenset(summary.id for summary in summaries)
        self._show()

    def set_current(self, conversation: int | None) -> None:
        """Marks the chat that is open, None for none (a new one), and brings it into view."""
        if conversation == self.model.open_chat:
            return
        self.model.set_open_chat(conversation)
        index = self.model.find(conversation)
        if index.isValid():
            if not self.list.hasFocus():
                self.list.set_place(index)
            if self._hits is None:
                self.list.reveal(index)

    def show_hits(self, hits: Sequence[Hit] | None) -> None:
        """Shows what a search found instead of the chats; None shows the chats again.

        Hits that come after the search was left are dropped.
        """
        entering = self._hits is None
        self._hits = list(hits) if hits is not None and self.search_text else None
        self._show(keep_place=not (entering or self._hits is not None))

    def focus_search(self) -> None:
        """Leads into the search field, its text selected."""
        self.search.setFocus(Qt.FocusReason.ShortcutFocusReason)
        self.search.selectAll()

    def focus_list(self) -> None:
        """Leads into the list."""
        self.list.setFocus(Qt.FocusReason.ShortcutFocusReason)

    def clear_search(self) -> None:
        """Leaves the search."""
        self.search.clear()

    @property
    def search_text(self) -> str:
        """What is searched for, "" without a search."""
        return self.search.whole_text.strip()

    # ---- its parts

    def _build(self) -> None:
        self.new_button = QuietButton(self._manager, "", "plus")
        self.new_button.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self.new_button.clicked.connect(self.new_requested)
        self.more_button = IconButton(self._manager, "more", "")
        self.more_button.clicked.connect(self._open_more)
        self.search = ComposingLineEdit()
        self.search.setMaxLength(1000)
        self._glass = QAction(self.search)
        self._glass.triggered.connect(self.focus_search)
        self._cross = QAction(self.search)
        self._cross.setVisible(False)
        self._cross.triggered.connect(self.clear_search)
        self.search.addAction(self._glass, QLineEdit.ActionPosition.LeadingPosition)
        self.search.addAction(self._cross, QLineEdit.ActionPosition.TrailingPosition)
        self.search.typed.connect(self._typed)
        for part in (self.search, self.list):
            part.installEventFilter(self)
        self.list.chosen.connect(self._chosen)
        self.list.delete_pressed.connect(self.delete_requested)
        self.list.undo_pressed.connect(self.undo_delete_requested)
        self.list.menu_wanted.connect(self._open_menu)
        self.list.left_upwards.connect(self.focus_search)
        self.list.escaped.connect(self._escaped)
        self.found_label = label(size="small", role="muted")
        self.empty = _Empty(self._manager)
        self.stack = QStackedWidget()
        self.stack.addWidget(self.list)
        self.stack.addWidget(self.empty)
        head = QHBoxLayout()
        spaced(head, self._manager, "xs")
        head.addWidget(self.new_button, 1)
        head.addWidget(self.more_button)
        top = QVBoxLayout()
        spaced(top, self._manager, "s", ("s", "s", "s", "s"))
        top.addLayout(head)
        top.addWidget(self.search)
        top.addWidget(self.found_label)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(0)
        column.addLayout(top)
        column.addWidget(self.stack, 1)
        QWidget.setTabOrder(self.new_button, self.more_button)
        QWidget.setTabOrder(self.more_button, self.search)
        QWidget.setTabOrder(self.search, self.list)

    def paintEvent(self, event: QPaintEvent) -> None:  # noqa: ARG002, N802 - Qt's name and signature
        """Paints the ground, and a hairline to the page beside it."""
        with QPainter(self) as painter:
            painter.fillRect(self.rect(), self._manager.colour("sunken"))
            painter.setPen(self._manager.colour("line"))
            edge = 0 if self.isRightToLeft() else self.width() - 1
            painter.drawLine(edge, 0, edge, self.height())

    def changeEvent(self, event: QEvent) -> None:  # noqa: N802 - Qt's name
        """Speaks another language at once."""
        if event.type() in (QEvent.Type.LanguageChange, QEvent.Type.LocaleChange):
            self._retranslate()
        super().changeEvent(event)

    def eventFilter(self, watched: object, event: QEvent) -> bool:  # noqa: N802 - Qt's name
        """Keys of the search field: Down leads into the list, Enter opens the first hit, Esc leaves the search.

        While there is a search, Esc is not the window's, neither here nor in the list.
        """
        if event.type() == QEvent.Type.ShortcutOverride:
            escape = cast("QKeyEvent", event).key() == Qt.Key.Key_Escape
            if escape and self.search.whole_text:
                event.accept()
            return escape
        if watched is not self.search or event.type() != QEvent.Type.KeyPress:
            return False
        press = cast("QKeyEvent", event)
        if self.search.holds(press):
            return True
        if press.key() == Qt.Key.Key_Down:
            return self.stack.currentWidget() is self.list and self.list.enter_from_above()
        if press.key() in ENTER_KEYS:
            self._enter()
            return True
        if press.key() == Qt.Key.Key_Escape and self.search.text():
            self.clear_search()
            return True
        return False

    # ---- what happens in it

    def _enter(self) -> None:
        if self._search_timer.isActive():
            # What is listed belongs to an earlier text.
            self._search_timer.stop()
            self._search()
        elif self._hits is not None and (first := self.model.step(0, 1)) is not None:
            self._chosen(self.model.rows[first])

    def _typed(self, text: str) -> None:
        self._cross.setVisible(bool(text))
        if text.strip():
            self._search_timer.start()
            return
        was_searching = self._search_timer.isActive() or self._hits is not None
        self._search_timer.stop()
        self.show_hits(None)
        if was_searching:
            self.searched.emit("")

    def _search(self) -> None:
        if self.search_text:
            self.searched.emit(self.search_text)

    def _chosen(self, row: Row) -> None:
        if row.hit is not None:
            self.hit_opened.emit(row.conversation, row.hit.node)
        else:
            self.opened.emit(row.conversation)

    def _escaped(self) -> None:
        if self.search.text():
            self.clear_search()
            self.search.setFocus(Qt.FocusReason.OtherFocusReason)

    def _show(self, *, keep_place: bool = True) -> None:
        """Brings rows, heading line and empty state in line with what there is."""
        if self._hits is not None:
            rows = sidebar_rows.hits(self._hits, self._known if self._summaries is not None else None)
        else:
            rows = sidebar_rows.chats(self._summaries or (), self.model.days)
        self.list.set_rows(rows, keep_place=keep_place)
        self.found_label.setVisible(bool(self._hits is not None and rows))
        self.found_label.setText(self.tr("%n result(s)", "", len(rows)))
        if rows or (self._summaries is None and self._hits is None):
            self.stack.setCurrentWidget(self.list)
        elif self._hits is not None:
            # A word that is too long would widen the sidebar.
            metrics = QFontMetrics(self._manager.font("body", bold=True))
            text = metrics.elidedText(self.search_text, Qt.TextElideMode.ElideRight, self._manager.px(150))
            self.empty.show_texts("search", self.tr("Nothing found for “{text}”").format(text=text), "")
            self.stack.setCurrentWidget(self.empty)
        else:
            text = self.tr("What you ask and what is answered is kept here, on this machine only.")
            self.empty.show_texts("chat", self.tr("No conversations yet"), text)
            self.stack.setCurrentWidget(self.empty)

    def _open_menu(self, row: Row, point: QPoint) -> None:
        if self.menu is not None and self.menu.isVisible():
            return
        chat = row.conversation
        menu = QMenu(self)
        # The keys are shown here and work in the list.
        rename = self._add(menu, "edit", self.tr("Rename"), "F2")
        rename.triggered.connect(lambda: self.list.rename(self.model.find(chat)))
        menu.addSeparator()
        markdown = self._add(menu, "export", self.tr("Export as Markdown…"))
        markdown.triggered.connect(lambda: self.export_requested.emit(chat, "markdown"))
        json = self._add(menu, "export", self.tr("Export as JSON…"))
        json.triggered.connect(lambda: self.export_requested.emit(chat, "json"))
        menu.addSeparator()
        delete = self._add(menu, "trash", self.tr("Delete"), "Delete", role="bad")
        delete.triggered.connect(lambda: self.delete_requested.emit(chat))
        self._pop_up(menu, point)

    def _open_more(self) -> None:
        menu = QMenu(self)
        self._add(menu, "upload", self.tr("Import chats…")).triggered.connect(self.import_requested)
        menu.addSeparator()
        markdown = self._add(menu, "export", self.tr("Export all as Markdown…"))
        markdown.triggered.connect(lambda: self.export_all_requested.emit("markdown"))
        json = self._add(menu, "export", self.tr("Export all as JSON…"))
        json.triggered.connect(lambda: self.export_all_requested.emit("json"))
        for action in (markdown, json):
            action.setEnabled(bool(self._summaries))
        self._pop_up(menu, self.more_button.mapToGlobal(QPoint(0, self.more_button.height() + 2)))

    def _add(self, menu: QMenu, icon: str, text: str, key: str = "", *, role: str = "muted") -> QAction:
        action = QAction(icons.icon(icon, role, self._manager.px(16), self._manager.theme), text, menu)
        if key:
            action.setShortcut(QKeySequence(key))
            action.setShortcutVisibleInContextMenu(True)
            # Shown only: in the list the key itself is handled.
            action.setShortcutContext(Qt.ShortcutContext.WidgetShortcut)
        menu.addAction(action)
        return action

    def _pop_up(self, menu: QMenu, point: QPoint) -> None:
        if self.menu is not None:
            self.menu.deleteLater()
        self.menu = menu
        menu.popup(point)

    def _new_day(self) -> None:
        """The headings mean other days now."""
        self.model.days = Days.of(datetime.datetime.now())
        self._wait_for_midnight()
        self._show()

    def _wait_for_midnight(self) -> None:
        left = self.model.days.tomorrow - datetime.datetime.now().timestamp()
        self.midnight.start(int(min(max(left, 1), _LONGEST_WAIT_S) * 1000))

    def _retheme(self) -> None:
        theme = self._manager.theme
        self._glass.setIcon(icons.icon("search", "faint", theme.px(16), theme))
        self._cross.setIcon(icons.icon("close", "muted", theme.px(14), theme))
        self.update()

    def _retranslate(self) -> None:
        new, find = (QKeySequence(key).toString(QKeySequence.SequenceFormat.NativeText) for key in self._shortcuts)
        self.setAccessibleName(self.tr("Conversations"))
        self.list.setAccessibleName(self.tr("Conversations"))
        self.new_button.setText(self.tr("New chat"))
        self.new_button.setToolTip(f"{self.tr('New chat')}  {new}" if new else "")
        self.more_button.set_name(self.tr("Import and export"))
        self.search.setPlaceholderText(self.tr("Search chats"))
        self.search.setAccessibleName(self.tr("Search chats"))
        searched = self.tr("Search names and messages")  # lupdate overlooks what stands within an f-string
        self.search.setToolTip(f"{searched}  {find}" if find else "")
        self._glass.setText(self.tr("Search chats"))
        self._cross.setText(self.tr("Clear the search"))
        self._cross.setToolTip(self.tr("Clear the search"))
        self.list.viewport().update()
        self._show()


class _Empty(QWidget):
    """What stands where the list would, small enough for the sidebar."""

    def __init__(self, manager: ThemeManager) -> None:
        super().__init__()
        self._manager, self._icon = manager, "chat"
        self.picture = QLabel()
        self.title = label(bold=True, wrap=True)
        self.text = label(size="small", role="muted", wrap=True)
        column = QVBoxLayout(self)
        spaced(column, manager, "s", ("l", "xl"))
        column.addStretch(1)
        for part in (self.picture, self.title, self.text):
            part.setAlignment(Qt.AlignmentFlag.AlignCenter)
            column.addWidget(part)
        column.addStretch(3)
        manager.changed.connect(self._retheme)
        self._retheme()

    def show_texts(self, icon: str, title: str, text: str) -> None:
        """Says why there is nothing."""
        self._icon = icon
        self.title.setText(title)
        self.text.setText(text)
        self.text.setVisible(bool(text))
        self._retheme()

    def _retheme(self) -> None:
        edge = self._manager.px(28)
        ratio = self.devicePixelRatioF()
        self.picture.setPixmap(icons.pixmap(self._icon, "faint", edge, ratio, self._manager.theme))
