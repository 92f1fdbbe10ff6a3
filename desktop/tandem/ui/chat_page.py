"""The page Chat: conversations at the left, the chat in the middle, what it runs on above it."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from PySide6.QtCore import QEvent, Qt, Signal
from PySide6.QtGui import QDragEnterEvent, QDragLeaveEvent, QDropEvent, QGuiApplication
from PySide6.QtWidgets import QHBoxLayout, QStackedWidget, QVBoxLayout, QWidget

from tandem.chat.conversation import Conversation, Node
from tandem.chat.export import Form
from tandem.settings import PairChoice, Settings
from tandem.ui.chat_dialogs import export_dialog, import_dialog, link_box
from tandem.ui.chat_notices import ChatNotices
from tandem.ui.chat_welcome import Suggestions
from tandem.ui.composer import Composer
from tandem.ui.controller import Controller
from tandem.ui.errors_text import localised
from tandem.ui.header import Header
from tandem.ui.kit import divider, spaced
from tandem.ui.load_bar import LoadBar
from tandem.ui.session_state import DrafterState, LoadState, Notice, PairState
from tandem.ui.shortcuts import SHORTCUTS
from tandem.ui.sidebar import Sidebar
from tandem.ui.theme import ThemeManager
from tandem.ui.transcript import Transcript
from tandem.ui.welcome import WelcomePage

SIDEBAR: Final = 248
"""Widest list of chats, in pixels at 100 %; it takes a third of a narrow page."""


class ChatPage(QWidget):
    """Puts the parts together and the controller behind them.

    Args:
        manager: The theme.
        controller: Does everything.

    Attributes:
        models_requested: Show the page Models.
        files_requested: Choose the files of a pair.
        logs_requested: Show the folder with the logs.
    """

    models_requested = Signal()
    files_requested = Signal()
    logs_requested = Signal()

    def __init__(self, manager: ThemeManager, controller: Controller, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._manager, self._controller = manager, controller
        self._path: list[Node] = []
        self._editing: int | None = None
        self._sought: tuple[int, int, str] | None = None  # a message that a search found, and the text to be marked
        new, search = (SHORTCUTS[name].keys[0] for name in ("new-chat", "search"))
        self.sidebar = Sidebar(manager, new_shortcut=new, search_shortcut=search)
        self.header = Header(manager)
        self.load_bar = LoadBar(manager)
        self.transcript = Transcript(manager)
        self.suggestions = Suggestions(manager)
        self.welcome = WelcomePage(manager)
        self.notices = ChatNotices(manager, self.perform)
        self.composer = Composer(manager)
        self.body = QStackedWidget()
        for part in (self.transcript, self.suggestions, self.welcome):
            self.body.addWidget(part)
        self.body.setCurrentWidget(self.suggestions)
        foot = QVBoxLayout()
        spaced(foot, manager, "s", ("", "", "", "s"))
        told = QHBoxLayout()
        spaced(told, manager, "", ("l", ""))
        told.addStretch(0)
        told.addWidget(self.notices, 1)
        told.addStretch(0)
        foot.addLayout(told)
        foot.addWidget(self.composer)
        column = QVBoxLayout()
        column.setSpacing(0)
        column.setContentsMargins(0, 0, 0, 0)
        column.addWidget(self.header)
        column.addWidget(divider())
        column.addWidget(self.load_bar)
        column.addWidget(self.body, 1)
        column.addLayout(foot)
        row = QHBoxLayout(self)
        row.setSpacing(0)
        row.setContentsMargins(0, 0, 0, 0)
        row.addWidget(self.sidebar, 1)
        row.addLayout(column, 2)
        keys = [SHORTCUTS[name].keys[0] for name in ("drafter", "thinking", "show-drafted")]
        self.composer.set_shortcuts(*keys)
        self.setAcceptDrops(True)
        manager.changed.connect(self._size)
        self._size()
        self._connect_controller()
        self._connect_parts()

    # What the window asks

    def show_notice(self, notice: Notice) -> None:
        """Shows a message above the composer."""
        self.notices.tell(notice)

    def perform(self, notice: Notice) -> None:
        """Does what a message's button says."""
        if notice.action == "open-models":
            self.models_requested.emit()
        elif notice.action == "open-logs":
            self.logs_requested.emit()
        else:
            self._controller.perform(notice)

    def has_question(self) -> bool:
        """Whether there is a question that could be answered again."""
        return bool(self._path)

    def toggle_sidebar(self) -> None:
        """Shows or hides the list of chats, and remembers it."""
        self._controller.change_settings(sidebar=self.sidebar.isHidden())

    def focus_search(self) -> None:
        """Goes to the search field, shown for it if need be."""
        if self.sidebar.isHidden():
            self.toggle_sidebar()
        self.sidebar.show()
        self.sidebar.focus_search()

    def escape(self) -> None:
        """Stops the answer, or else gives up editing."""
        if self._controller.running:
            self._controller.stop()
        else:
            self._end_edit()

    def regenerate_last(self, drafter: bool | None = None) -> None:
        """Answers the last question again."""
        if self._path:
            self._controller.regenerate(self._path[-1].id, drafter)

    def edit_last(self) -> None:
        """Edits the last message of the user."""
        for node in reversed(self._path):
            if node.role == "user":
                self._begin_edit(node.id)
                return

    def copy_last(self) -> None:
        """Copies the last answer."""
        for node in reversed(self._path):
            if node.role == "assistant":
                QGuiApplication.clipboard().setText(self.transcript.message_text(node.id))
                self.show_notice(Notice("good", self.tr("Copied.")))
                return

    def new_chat(self) -> None:
        """Opens a new chat, ready to type."""
        self.composer.flush()
        self._controller.new_chat()
        self.composer.focus()

    def open_chat(self, chat: int, node: object = None) -> None:
        """Opens a chat, at a message if one is given."""
        self._sought = None
        self.composer.flush()
        self._controller.open_chat(chat, node if isinstance(node, int) else None)

    def export(self, chat: int | None, kind: str) -> None:
        """Asks where to, and writes one chat, or all for None, as "markdown" or "json"."""
        form: Form = "json" if kind == "json" else "markdown"
        folder = self._controller.settings.export_folder or str(Path.home())
        dialog = export_dialog(self, folder, form, whole=chat is None)

        def chosen(path: str) -> None:
            self._controller.change_settings(export_folder=str(Path(path).parent))
            if chat is None:
                self._controller.export_all(Path(path), form)
            else:
                self._controller.export_chat(chat, Path(path), form)

        dialog.fileSelected.connect(chosen)
        dialog.open()

    def import_chats(self) -> None:
        """Asks for a file of exported chats and reads it."""
        folder = self._controller.settings.export_folder or str(Path.home())
        dialog = import_dialog(self, folder)
        dialog.fileSelected.connect(lambda path: self._controller.import_file(Path(path)))
        dialog.open()

    def dragEnterEvent(self, event: QDragEnterEvent) -> None:  # noqa: N802 - Qt's name
        """What is dropped anywhere on the page is meant for the composer."""
        self.composer.dragEnterEvent(event)

    def dragLeaveEvent(self, event: QDragLeaveEvent) -> None:  # noqa: N802 - Qt's name
        """It went away again."""
        self.composer.dragLeaveEvent(event)

    def dropEvent(self, event: QDropEvent) -> None:  # noqa: N802 - Qt's name
        """Text is taken, the rest refused with a reason."""
        self.composer.dropEvent(event)

    def changeEvent(self, event: QEvent) -> None:  # noqa: N802 - Qt's name
        """Follows the language."""
        if event.type() == QEvent.Type.LanguageChange:
            self._show_drafter(self._controller.drafter)
            self._show_load(self._controller.load_state)
        super().changeEvent(event)

    # The controller's news

    def _connect_controller(self) -> None:
        control = self._controller
        control.conversations_changed.connect(self.sidebar.set_conversations)
        control.conversation_opened.connect(self._show_path)
        control.node_added.connect(self._add)
        control.stream_begun.connect(self._begin)
        control.streamed.connect(self.transcript.stream)
        control.node_finished.connect(self._finish)
        control.hits.connect(self.sidebar.show_hits)
        control.chat_left.connect(self.composer.leave)
        control.draft_text.connect(self.composer.bring)
        control.text_returned.connect(self.composer.put_back)
        control.queued_changed.connect(self.composer.set_queued)
        control.running_changed.connect(self.composer.set_running)
        control.pair_changed.connect(self._show_pair)
        control.drafter_changed.connect(self._show_drafter)
        control.context_changed.connect(self.header.set_context)
        control.loading.connect(self._show_load)
        control.prefilled.connect(self.load_bar.set_prefill)
        control.settings_changed.connect(self._show_settings)
        control.notice.connect(self.show_notice)
        control.ready.connect(self.composer.focus)
        control.first_run.connect(self._show_welcome)

    def _show_path(self, chat: Conversation | None, path: list[Node], branches: dict[int, tuple[int, int]]) -> None:
        if all(node.id != self._editing for node in path):
            self._end_edit()
        self._path = list(path)
        self.sidebar.set_current(None if chat is None else chat.id)
        self.transcript.show_path(path, branches)
        self._show_body()
        sought, self._sought = self._sought, None
        if sought is not None and chat is not None and sought[0] == chat.id:
            self._reveal(*sought[1:])

    def _reveal(self, number: int, text: str) -> None:
        """Marks what was searched for, or of several words the longest that stands in the message."""
        node = self._controller.node(number)
        said = f"{node.text}\n{node.thought}".lower() if node is not None else ""
        words = (text, *sorted(text.split(), key=len, reverse=True))
        self.transcript.reveal(number, next((word for word in words if word.lower() in said), ""))

    def _add(self, node: Node) -> None:
        self._path.append(node)
        self._show_body()
        self.transcript.append(node)

    def _begin(self, node: Node) -> None:
        self._path.append(node)
        self._show_body()
        self.transcript.begin(node)

    def _finish(self, node: Node) -> None:
        self._path = [node if old.id == node.id else old for old in self._path]
        self.load_bar.set_prefill(0, 0)
        self.transcript.finish(node)

    def _show_body(self) -> None:
        if self._path:
            self.body.setCurrentWidget(self.transcript)
        elif self.body.currentWidget() is not self.welcome:
            self.body.setCurrentWidget(self.suggestions)

    def _show_welcome(self) -> None:
        self.body.setCurrentWidget(self.welcome)
        self.welcome.demo.setFocus(Qt.FocusReason.OtherFocusReason)

    def _show_pair(self, state: PairState) -> None:
        self.header.set_pair(state)
        if state.kind == "loaded":
            self.notices.loaded()
        if state.kind in ("loading", "loaded") and self.body.currentWidget() is self.welcome:
            self.body.setCurrentWidget(self.suggestions)
            self._show_body()
        self.suggestions.set_demo(state.kind != "none" and state.choice.kind == "demo")
        thinks = state.loaded is not None and state.loaded.switches_thinking
        reason = "" if thinks or state.loaded is None else self.tr("This model cannot think first.")
        self.composer.set_thinking(thinks, self._controller.settings.thinking, reason)

    def _show_drafter(self, state: DrafterState) -> None:
        self.header.set_drafter(state)
        settings = self._controller.settings
        available = state.kind in ("ready", "on", "low") or (state.kind == "off" and not state.reason)
        reason, _ = localised(state.reason, state.remedy)
        self.composer.set_drafter(available, settings.draft_on, settings.draft, "" if available else reason)

    def _show_load(self, state: LoadState) -> None:
        self.load_bar.set_load(state)
        self.welcome.set_load(state)

    def _show_settings(self, settings: Settings) -> None:
        self.sidebar.setVisible(settings.sidebar)
        self.transcript.show_drafted(settings.show_drafted)
        self.composer.set_show_drafted(settings.show_drafted)
        self._show_drafter(self._controller.drafter)
        self._show_pair(self._controller.pair)

    # What the user does

    def _connect_parts(self) -> None:
        control, side, composer = self._controller, self.sidebar, self.composer
        side.new_requested.connect(self.new_chat)
        side.opened.connect(self.open_chat)
        side.hit_opened.connect(self._open_hit)
        side.rename_requested.connect(control.rename)
        side.delete_requested.connect(control.delete)
        side.undo_delete_requested.connect(control.undo_delete)
        side.export_requested.connect(self.export)
        side.export_all_requested.connect(lambda kind: self.export(None, kind))
        side.import_requested.connect(self.import_chats)
        side.searched.connect(control.search)
        self.header.sidebar_requested.connect(self.toggle_sidebar)
        self.header.models_requested.connect(self.models_requested)
        self.header.drafter_requested.connect(control.set_draft)
        self.header.reload_requested.connect(control.load_again)
        self.load_bar.cancel_requested.connect(control.cancel_load)
        self.welcome.demo_requested.connect(self.try_demo)
        self.welcome.files_requested.connect(self.files_requested)
        self.welcome.cancel_load_requested.connect(control.cancel_load)
        self.suggestions.chosen.connect(self._suggest)
        self.transcript.action.connect(self._act)
        self.transcript.link_asked.connect(lambda address: link_box(self, address).open())
        composer.submitted.connect(self._submit)
        composer.stop_requested.connect(control.stop)
        composer.draft_toggled.connect(control.set_draft)
        composer.thinking_toggled.connect(control.set_thinking)
        composer.show_drafted_toggled.connect(control.set_show_drafted)
        composer.text_changed.connect(control.save_draft_text)
        composer.edit_cancelled.connect(self._end_edit)
        composer.edit_last_requested.connect(self.edit_last)
        composer.unqueue_requested.connect(control.take_back)
        composer.refused.connect(lambda text: self.show_notice(Notice("warn", text)))

    def try_demo(self) -> None:
        """Loads the built-in pair and goes to the composer."""
        self.composer.focus()  # first: whoever types at once, types into it
        self._controller.load_pair(PairChoice())

    def _suggest(self, text: str) -> None:
        self.composer.set_text(text)
        self.composer.focus()

    def _submit(self, text: str) -> None:
        node, self._editing = self._editing, None
        if node is not None and self.composer.editing:
            self._controller.edit(node, text)
        else:
            self._controller.send(text)

    def _begin_edit(self, node: int) -> None:
        found = self._controller.node(node)
        if found is not None:
            self._editing = node
            self.composer.begin_edit(found.text)

    def _end_edit(self) -> None:
        self._editing = None
        self.composer.end_edit()

    def _open_hit(self, chat: int, node: object) -> None:
        self.open_chat(chat, node)
        self._sought = (chat, node, self.sidebar.search_text) if isinstance(node, int) else None

    def _act(self, what: str, node: int) -> None:
        control = self._controller
        if what == "edit":
            self._begin_edit(node)
        elif what == "edit-question":
            answer = control.node(node)
            self._begin_edit(node if answer is None or answer.parent is None else answer.parent)
        elif what == "regenerate":
            control.regenerate(node)
        elif what in ("previous", "next"):
            control.switch_branch(node, 1 if what == "next" else -1)
        elif what.startswith("retry"):
            control.retry(node, what.removeprefix("retry").removeprefix("-") or "again")

    def _size(self) -> None:
        self.sidebar.setMaximumWidth(self._manager.px(SIDEBAR))
        self.notices.setMaximumWidth(self.composer.frame.maximumWidth())
