"""Exports and imports of chats. They run in the store's thread, let more urgent work pass, and give up at the end."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TypeVar, cast

from PySide6.QtCore import QObject, Signal

from tandem.chat import export
from tandem.chat.conversation import Conversation, Node, Summary
from tandem.chat.export import Form
from tandem.chat.history import Changes, History
from tandem.chat.markdown import Labels
from tandem.ui import i18n
from tandem.ui.controller_chats import Chats
from tandem.ui.session_state import Notice
from tandem.ui.store_worker import GaveUp, StoreWorker

_T = TypeVar("_T")


class ChatFiles(QObject):
    """Writes chats to files and reads them in.

    Args:
        store: Owns the history.
        chats: Is told of new ones.
        parent: Qt's parent.

    Attributes:
        notice: A `Notice`: how it ended.
    """

    notice = Signal(object)

    def __init__(self, store: StoreWorker, chats: Chats, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._store = store
        self._chats = chats

    def export_chat(self, chat: int, path: Path, form: Form) -> None:
        """Writes one chat to a file."""
        labels = self._labels()

        def job(history: History) -> str:
            export.export_chat(self._breathing(history), chat, path, form, labels)
            return path.name

        def done(name: str) -> None:
            self.notice.emit(Notice("good", self.tr("The chat was exported to {file}.").format(file=name)))

        self._submit(job, done)

    def export_all(self, path: Path, form: Form) -> None:
        """Writes all chats to one file."""
        labels = self._labels()

        def job(history: History) -> int:
            return export.export_all(self._breathing(history), path, form, labels)

        def done(count: int) -> None:
            text = self.tr("%n chat(s) were exported to {file}.", "", count).format(file=path.name)
            self.notice.emit(Notice("good", text))

        self._submit(job, done)

    def import_file(self, path: Path) -> None:
        """Adds the chats of an exported file to those that are there."""

        def job(history: History) -> Changes:
            return export.import_file(self._breathing(history), path)

        def done(added: Changes) -> None:
            self._chats.refresh()
            text = self.tr("%n chat(s) were read in.", "", added.chats)
            if added.known:
                text = self.tr("{n} imported, {m} were here already.")
                text = text.format(n=i18n.number(added.chats), m=i18n.number(added.known))
            self.notice.emit(Notice("good" if added.chats or not added.known else "info", text))

        self._submit(job, done)

    def purge_deleted(self) -> None:
        """Removes the deleted chats for good."""

        def done(removed: int) -> None:
            self._chats.forget_deleted()
            self.notice.emit(Notice("good", self.tr("%n deleted chat(s) removed for good.", "", removed)))

        self._submit(lambda history: history.purge_now(), done)

    def _submit(self, job: Callable[[History], _T], done: Callable[[_T], None]) -> None:
        def run(history: History) -> _T | None:
            try:
                return job(history)
            except GaveUp:
                return None

        def on_done(result: _T | None) -> None:
            if result is not None:
                done(result)

        self._store.ask(run, on_done, self._chats.tell, slow=True)

    def _breathing(self, history: History) -> History:
        return cast("History", _Breathing(history, self._store))

    def _labels(self) -> Labels:
        return Labels(
            untitled=self.tr("Chat"),
            you=self.tr("You"),
            assistant=self.tr("Assistant"),
            thought=self.tr("Thought"),
            thought_time=self.tr("Thought for {seconds} s"),
            stopped=self.tr("Stopped"),
            limit=self.tr("Reached the longest answer"),
            context=self.tr("The context was full"),
            failed=self.tr("Failed"),
            interrupted=self.tr("Interrupted"),
            rate=self.tr("{rate} tok/s"),
            per_pass=self.tr("{tokens} tokens per pass"),
            acceptance=self.tr("{percent} % acceptance rate"),
            first_token=self.tr("first token after {seconds} s"),
            draft=self.tr("draft length {length}"),
            versions=self.tr("Other versions of messages in this chat that are not shown here: {count}."),
        )


class _Breathing:
    """What an export or import uses of a history; between two chats it lets others have their turn."""

    def __init__(self, history: History, store: StoreWorker) -> None:
        self._history = history
        self._store = store

    def conversations(self) -> list[Summary]:
        self._store.breathe()
        return self._history.conversations()

    def conversation(self, number: int) -> tuple[Conversation, list[Node]]:
        self._store.breathe()
        return self._history.conversation(number)

    def bring_in(self, chats: Iterable[tuple[Conversation, Sequence[Node]]]) -> Changes:
        return self._history.bring_in(self._interruptible(chats))

    def _interruptible(
        self, chats: Iterable[tuple[Conversation, Sequence[Node]]]
    ) -> Iterable[tuple[Conversation, Sequence[Node]]]:
        for chat in chats:
            self._store.give_up_if_ending()  # all of it is one transaction: nobody else can have a turn
            yield chat
