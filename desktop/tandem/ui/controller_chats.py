"""The list of chats and the one that is shown: opening, searching, renaming, deleting, switching branches."""

from __future__ import annotations

from collections import OrderedDict
from pathlib import Path
from typing import Final, Literal

import msgspec
from PySide6.QtCore import QCoreApplication, QObject, QTimer, Signal

from tandem.chat.conversation import Conversation, Node, Tree, shown_leaf
from tandem.chat.errors import Gone
from tandem.chat.history import History
from tandem.errors import TandemError
from tandem.ui.controller_save import RETRY_MS
from tandem.ui.errors_text import localised
from tandem.ui.session_state import Notice
from tandem.ui.store_worker import StoreWorker

_REMEMBERED: Final = 16
_LONGEST_NAME: Final = 60
"""Most characters of a title in a message."""


class Chats(QObject):
    """Knows which chat is shown.

    Args:
        store: Owns the history.
        parent: Qt's parent.

    Attributes:
        changed: The list of chats: `list[Summary]`.
        left: Another chat is about to be shown; unsent text still belongs to the one that is.
        opened: A path to show: `Conversation | None` (None: a new chat that is not stored yet), `list[Node]`, branches.
        hits: What a search found: `list[Hit] | None` (None: no search).
        draft_text: The unsent text of the chat that was opened.
        notice: A `Notice`.
    """

    changed = Signal(object)
    left = Signal()
    opened = Signal(object, object, object)
    hits = Signal(object)
    draft_text = Signal(str)
    notice = Signal(object)

    def __init__(self, store: StoreWorker, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._store = store
        self._opening = 0  # counts what was asked to be shown, so that only the last is
        self._known: OrderedDict[int, Node] = OrderedDict()
        self._deleting: set[int] = set()
        self._deleted: list[int] = []
        self._draft_problem = ""
        self._draft_due = True  # a new chat's unsent text was not shown since it became one
        self._drafts: dict[int | None, str] = {}  # unsent text by chat, on its way to the disk
        self._closed = False
        self._retry = QTimer(self)
        self._retry.setInterval(RETRY_MS)
        self._retry.timeout.connect(self._save_drafts)
        store.opened_late.connect(self._on_opened_late)
        self.conversation: Conversation | None = None
        self.tree = Tree()
        self.live: int | None = None
        """The answer that runs, in whichever chat: it is never part of a path, but streamed."""

    @property
    def view(self) -> int:
        """Changes with each chat that is opened or begun."""
        return self._opening

    @property
    def current(self) -> int | None:
        """The id of the chat that is shown, None for a new one."""
        return None if self.conversation is None else self.conversation.id

    @property
    def leaf(self) -> int | None:
        """The last message that is shown."""
        return None if self.conversation is None else self.conversation.active

    @property
    def path(self) -> list[Node]:
        """What is shown, without the answer that runs."""
        return [node for node in self.tree.path(self.leaf) if node.id != self.live]

    def refresh(self) -> None:
        """Reads the list of chats again."""
        self._store.ask(lambda history: history.conversations(), self.changed.emit, self.tell)

    def new(self) -> None:
        """Shows a new chat; it is stored with its first message."""
        self._opening += 1
        if self.conversation is not None:
            self.left.emit()
            self._draft_due = True
        self.conversation, self.tree = None, Tree()
        self._show()

        def on_draft(text: str) -> None:
            if self._draft_due and self.conversation is None:
                self._draft_due = False
                self.draft_text.emit(self._drafts.get(None, text))

        if self._draft_due:
            self._store.ask(lambda history: history.draft(None), on_draft, self.tell)

    def open(self, chat: int, node: int | None = None) -> None:
        """Shows a chat; with a message given, a path that it is on."""
        self._opening += 1
        opening = self._opening

        def on_read(found: tuple[Conversation, Tree]) -> None:
            if self._opening == opening:
                self._opened(*found, node)

        self._store.ask(lambda history: read(history, chat), on_read, self.tell)

    def adopt(
        self, conversation: Conversation, tree: Tree, added: Node | None, view: int
    ) -> Literal["", "added", "opened"]:
        """Takes over what a question changed, if its chat is shown.

        Args:
            conversation: The chat.
            tree: All of its messages.
            added: The user's message, if there is a new one and nothing else changed in what is shown.
            view: The `view` when the question was asked, which tells whether a new chat is still shown.

        Returns:
            "added": the path grew by one message; "opened": `opened` was emitted; "": the chat is not shown.
        """
        if self.current != conversation.id and not (self.current is None and self._opening == view):
            return ""
        grew = self.current is not None and added is not None and added.parent == self.leaf
        self.conversation, self.tree = conversation, self._with_known(tree)
        if not grew:
            self._show()
        return "added" if grew else "opened"

    def remember(self, node: Node) -> None:
        """A message is now like this; what is read from the store may be older."""
        self._known[node.id] = node
        self._known.move_to_end(node.id)
        while len(self._known) > _REMEMBERED:
            self._known.popitem(last=False)
        if node.id in self.tree and node.conversation == self.current:
            self.tree.replace(node)

    def switch_branch(self, node: int, step: int) -> None:
        """Shows another version of a message, `step` further on, with the newest messages under it."""
        if self.conversation is None or node not in self.tree:
            return
        versions = self.tree.siblings(node)
        place = versions.index(node) + step
        if 0 <= place < len(versions):
            leaf = self.tree.newest_leaf_under(versions[place])
            self._activate(leaf)
            self._show()

    def rename(self, chat: int, title: str) -> None:
        """Gives a chat another title; a blank one changes nothing."""
        title = " ".join(title.split())
        if not title:
            self.refresh()
            return
        if self.conversation is not None and self.conversation.id == chat:
            self.conversation = msgspec.structs.replace(self.conversation, title=title)
        self._store.ask(lambda history: history.rename(chat, title), lambda _: self.refresh(), self._tell_and_refresh)

    def delete(self, chat: int) -> None:
        """Deletes a chat; the notice offers to undo it."""
        if chat in self._deleting or chat in self._deleted:
            return  # the list does not show yet that it is gone

        def on_deleted(title: str) -> None:
            self._deleting.discard(chat)
            self._deleted.append(chat)
            if self.current == chat:
                self.new()
            self.refresh()
            name = title if len(title) <= _LONGEST_NAME else f"{title[: _LONGEST_NAME - 1].rstrip()}…"
            text = self.tr("Deleted “{title}”.").format(title=name or self.tr("New chat"))
            self.notice.emit(Notice("info", text, "", "undo-delete", self.tr("Undo"), chat))

        def on_kept(error: TandemError) -> None:
            self._deleting.discard(chat)
            self._tell_and_refresh(error)

        self._deleting.add(chat)
        self._store.ask(lambda history: history.delete(chat), on_deleted, on_kept)

    def undo_delete(self, chat: int | None = None) -> None:
        """Brings a deleted chat back and shows it; None takes the one deleted last."""
        if chat is None:
            if not self._deleted:
                return
            chat = self._deleted[-1]
        restored = chat
        if restored in self._deleted:
            self._deleted.remove(restored)  # at once: asked again, it is the one before

        def on_restored(_: object) -> None:
            self.refresh()
            self.open(restored)

        def on_not_restored(error: TandemError) -> None:
            if not isinstance(error, Gone):
                self._deleted.append(restored)
            self.tell(error)

        self._store.ask(lambda history: history.restore(restored), on_restored, on_not_restored)

    def forget_deleted(self) -> None:
        """The deleted chats are gone for good."""
        self._deleted.clear()

    def search(self, text: str) -> None:
        """Searches titles and messages; blank text ends the search."""
        if text.strip():
            self._store.search(text, self.hits.emit, self.tell)
        else:
            self._store.forget_search()
            self.hits.emit(None)

    def save_draft(self, text: str) -> None:
        """Keeps unsent text for the chat that is shown."""
        chat = self.current
        if self.conversation is not None:
            self.conversation = msgspec.structs.replace(self.conversation, draft=text)
        self._drafts[chat] = text
        self._save_draft(chat, text)

    def tell(self, error: TandemError, sticky: bool = False) -> None:
        """Tells the user of an error."""
        text, remedy = localised(error.sentence, error.remedy)
        self.notice.emit(Notice("bad", text, remedy, sticky=sticky))

    def tell_set_aside(self, kept: Path) -> None:
        """Tells the user that the database was damaged."""
        text = QCoreApplication.translate(
            "Controller", "The file with your chats was damaged. It is kept as {path}; a new one was begun."
        )
        self.notice.emit(Notice("bad", text.format(path=kept), sticky=True))

    def shut(self) -> None:
        """A last try for unsent text that is not saved; nothing is tried again after it."""
        self._retry.stop()
        self._closed = True
        self._save_drafts()

    def _save_draft(self, chat: int | None, text: str) -> None:
        def on_saved(_: object) -> None:
            if self._drafts.get(chat) is text:
                del self._drafts[chat]
            if not self._drafts:
                self._draft_problem = ""
                self._retry.stop()

        def on_unsaved(error: TandemError) -> None:
            if isinstance(error, Gone):  # it will not come back
                self._drafts.pop(chat, None)
            elif not self._closed:
                self._retry.start()
            if error.sentence != self._draft_problem:  # told once, not at every pause in typing
                self._draft_problem = error.sentence
                self.tell(error)

        self._store.ask(lambda history: history.set_draft(chat, text), on_saved, on_unsaved)

    def _save_drafts(self) -> None:
        for chat, text in list(self._drafts.items()):
            self._save_draft(chat, text)

    def _on_opened_late(self, set_aside: Path | None, unsent: str) -> None:
        if set_aside is not None:
            self.tell_set_aside(set_aside)
        self.refresh()
        if unsent and self.conversation is None:
            self.draft_text.emit(unsent)

    def _tell_and_refresh(self, error: TandemError) -> None:
        self.tell(error)
        self.refresh()

    def _opened(self, conversation: Conversation, tree: Tree, node: int | None) -> None:
        same = self.current == conversation.id
        if not same:
            self.left.emit()
        self.tree = self._with_known(tree)
        leaf = shown_leaf(self.tree, conversation.active)
        self.conversation = msgspec.structs.replace(conversation, active=leaf)
        if node is not None and node in self.tree and all(shown.id != node for shown in self.tree.path(leaf)):
            self._activate(self.tree.newest_leaf_under(node))
        self._show()
        if not same:
            self.draft_text.emit(self._drafts.get(conversation.id, conversation.draft))

    def _activate(self, leaf: int | None) -> None:
        assert self.conversation is not None
        chat = self.conversation.id
        self.conversation = msgspec.structs.replace(self.conversation, active=leaf)
        if leaf is not None:
            self._store.ask(lambda history: history.set_active(chat, leaf), None, self.tell)

    def _with_known(self, tree: Tree) -> Tree:
        for node in self._known.values():
            if node.id in tree:
                tree.replace(node)
        return tree

    def _show(self) -> None:
        self.opened.emit(self.conversation, self.path, self.tree.branches(self.leaf))


def read(history: History, chat: int) -> tuple[Conversation, Tree]:
    """A chat with its messages; for the store's thread.

    Raises:
        TandemError: It is not there, or cannot be read.
    """
    conversation, nodes = history.conversation(chat)
    return conversation, Tree(nodes)
