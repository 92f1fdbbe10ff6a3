"""All chats, kept on disk.

Whatever a method was given is in the file when it returns, and survives the end of the process; a method that raises
has changed nothing. One `History` is used from one thread.
"""

from __future__ import annotations

import functools
import math
import sqlite3
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Final, NamedTuple, ParamSpec, TypeVar

import msgspec

from tandem.chat import purge, search
from tandem.chat.conversation import Conversation, Hit, Node, Summary, Tree, shown_leaf, storable
from tandem.chat.errors import Gone, StoreDamaged
from tandem.chat.known import Known
from tandem.chat.migrate import Migration
from tandem.chat.rows import CONVERSATION, NODE, insert_conversation, insert_node, kept_node, node_of, update_node
from tandem.chat.store import Database, open_database
from tandem.chat.title import one_line
from tandem.paths import data_dir

LONGEST_TITLE: Final = 200
PURGE_AFTER_S: Final = 86_400.0
"""A deleted chat can be restored for this long."""

_SNIPPET: Final = 120
_BUDGET_S: Final = 0.2
_P = ParamSpec("_P")
_T = TypeVar("_T")


class Opened(NamedTuple):
    """What opening the store found.

    Attributes:
        set_aside: Where a damaged file was kept, with which the chats before now are.
        interrupted: Answers that were running when the app ended.
        purged: Deleted chats that are gone for good now.
    """

    set_aside: Path | None
    interrupted: int
    purged: int


class Changes(NamedTuple):
    """How much was added, and how many chats were not because they are here already."""

    chats: int
    messages: int
    known: int = 0


def file() -> Path:
    """Where the chats are.

    Raises:
        TandemError: The folder cannot be made.
    """
    return data_dir() / "chats.db"


def _mending(work: Callable[_P, _T]) -> Callable[_P, _T]:
    """A method that empties the index and tries again when it was not done for a damaged index."""

    @functools.wraps(work)
    def mended(*args: _P.args, **values: _P.kwargs) -> _T:
        try:
            return work(*args, **values)
        except StoreDamaged as error:
            history = args[0]
            if not isinstance(history, History) or not search.is_damage(error.__cause__):
                raise
            history.forget_index()
            return work(*args, **values)

    return mended


class History:
    """The store of chats. Make it with `History.open`.

    Every method raises `StoreError` (a TandemError with a sentence and a remedy) when the file cannot be read or
    written, and its kind `Gone` when a chat or message that is named is not there.
    """

    def __init__(self, database: Database, clock: Callable[[], float]) -> None:
        self._database = database
        self._clock = clock
        interrupted = self.interrupt_streaming()
        purged = self.purge()
        self.opened: Final = Opened(database.set_aside, interrupted, purged)
        self._catch_up()

    @classmethod
    def open(
        cls,
        path: Path | None = None,
        clock: Callable[[], float] = time.time,
        migrations: Sequence[Migration] | None = None,
    ) -> History:
        """Opens the store, and makes it when there is none.

        Args:
            path: None takes `file()`.
            clock: Seconds since 1970.
            migrations: None takes those of this version.

        Raises:
            NewerDatabase: A newer Tandem wrote it; it was not touched.
            StoreInUse: Another process has it.
            StoreError: It cannot be made, read, or set aside.
        """
        path = path or file()
        database = open_database(path, migrations)
        try:
            try:
                return cls(database, clock)
            except StoreDamaged:
                # Only reading found it. The mark that this left has the whole file checked now.
                database.close()
                database = open_database(path, migrations)
                return cls(database, clock)
        except BaseException:
            database.close()
            raise

    @property
    def path(self) -> Path:
        """The file."""
        return self._database.path

    def close(self) -> None:
        """Closes the file; the second time without effect."""
        self._database.close()

    # Chats

    def conversations(self) -> list[Summary]:
        """All chats that are not deleted, the one with the newest message first."""
        with self._database.guarded() as connection:
            rows = connection.execute(
                "SELECT conversation.id, title, updated, substr(text, 1, 200) FROM conversation"
                " LEFT JOIN node ON node.id = active WHERE deleted_at IS NULL ORDER BY updated DESC,"
                " conversation.id DESC"
            )
            return [
                Summary(number, title, updated, one_line(text)[:_SNIPPET] if text else "")
                for number, title, updated, text in rows
            ]

    def conversation(self, number: int) -> tuple[Conversation, list[Node]]:
        """A chat and all its messages, oldest first."""
        with self._database.guarded() as connection:
            row = connection.execute(
                f"SELECT {CONVERSATION} FROM conversation WHERE id = ? AND deleted_at IS NULL", (number,)
            ).fetchone()
            if row is None:
                raise Gone(f"chat {number}")
            rows = connection.execute(f"SELECT {NODE} FROM node WHERE conversation = ? ORDER BY id", (number,))
            nodes = [node_of(row) for row in rows]
        return Conversation(*row), nodes

    def new(self, title: str = "") -> Conversation:
        """Makes a chat without messages."""
        now = self._clock()
        return self._make(Conversation(0, _title(title), now, now))

    def rename(self, number: int, title: str) -> None:
        """Gives a chat another title."""
        self._change("UPDATE conversation SET title = ? WHERE id = ? AND deleted_at IS NULL", _title(title), number)

    def delete(self, number: int) -> str:
        """Takes a chat out of the list, and returns its title; `restore` brings it back for a day."""
        with self._database.transaction() as connection:
            self._change("UPDATE conversation SET deleted_at = ? WHERE id = ?", self._clock(), number)
            return str(connection.execute("SELECT title FROM conversation WHERE id = ?", (number,)).fetchone()[0])

    def restore(self, number: int) -> None:
        """Brings a deleted chat back; without effect on one that is not deleted."""
        self._change("UPDATE conversation SET deleted_at = NULL WHERE id = ?", number)

    @_mending
    def purge(self, older_than_s: float = PURGE_AFTER_S, seconds: float = _BUDGET_S) -> int:
        """Removes chats for good that were deleted a while ago.

        Args:
            older_than_s: How long ago.
            seconds: After about this long the rest is left for the next time.

        Returns:
            How many were removed.
        """
        until = time.monotonic() + seconds
        with self._database.guarded() as connection:
            due = purge.due(connection, self._clock() - older_than_s)
        for removed, number in enumerate(due, 1):
            with self._database.transaction() as connection:
                purge.remove(connection, number)
            if time.monotonic() >= until:
                return removed
        return len(due)

    def purge_now(self) -> int:
        """Removes all deleted chats, so that nothing of their texts is left in the file; returns how many."""
        removed = self.purge(older_than_s=0, seconds=math.inf)
        self._wipe()
        return removed

    # Messages

    @_mending
    def add(self, node: Node) -> Node:
        """Adds a message to its chat and makes it the one that is shown.

        Args:
            node: Its id does not count. `created` 0 takes the time.

        Returns:
            The message as it is kept, with its id.
        """
        kept = kept_node(msgspec.structs.replace(node, created=node.created or self._clock()))
        with self._database.transaction() as connection:
            if not connection.execute(
                "SELECT 1 FROM conversation WHERE id = ? AND deleted_at IS NULL", (kept.conversation,)
            ).fetchone():
                raise Gone(f"chat {kept.conversation}")
            kept = self._insert(kept)
            connection.execute(
                "UPDATE conversation SET active = ?, updated = max(updated, ?) WHERE id = ?",
                (kept.id, self._clock(), kept.conversation),
            )
        return kept

    @_mending
    def save(self, node: Node) -> Node:
        """Writes a message that is there already; its chat, parent, role and time of creation stay.

        Returns:
            The message as it is kept.
        """
        kept = kept_node(node)
        with self._database.transaction() as connection:
            row = connection.execute("SELECT text FROM node WHERE id = ?", (kept.id,)).fetchone()
            if row is None:
                raise Gone(f"message {kept.id}")
            (before,) = row
            finished = kept.state != "streaming"
            waiting = connection.execute("SELECT 1 FROM unindexed WHERE node = ?", (kept.id,)).fetchone() is not None
            if not waiting and (before != kept.text or not finished):
                search.take_out(connection, kept.id, before)
                search.leave_out(connection, kept.id)
                waiting = True
            update_node(connection, kept)
            if waiting and finished:
                search.put(connection, kept.id, kept.text)
            connection.execute(
                "UPDATE conversation SET updated = max(updated, ?) WHERE id = ?", (self._clock(), kept.conversation)
            )
        if finished:
            self._catch_up()
        return kept

    def set_active(self, conversation: int, leaf: int | None) -> None:
        """Remembers which leaf of a chat is shown."""
        self._change("UPDATE conversation SET active = ? WHERE id = ?", leaf, conversation)

    @_mending
    def interrupt_streaming(self) -> int:
        """Marks answers that were still running as interrupted; returns how many."""
        with self._database.transaction() as connection:
            rows = connection.execute(
                "SELECT id, text FROM unindexed CROSS JOIN node ON node.id = unindexed.node WHERE state = 'streaming'"
            ).fetchall()
            for node, text in rows:
                connection.execute("UPDATE node SET state = 'interrupted' WHERE id = ?", (node,))
                search.put(connection, node, text)
        return len(rows)

    # Drafts

    def set_draft(self, conversation: int | None, text: str) -> None:
        """Keeps what stands in the composer of a chat; None: of the new chat that is not yet made."""
        if conversation is not None:
            self._change("UPDATE conversation SET draft = ? WHERE id = ?", storable(text), conversation)
            return
        with self._database.transaction() as connection:
            connection.execute("REPLACE INTO note VALUES ('draft', ?)", (storable(text),))

    def draft(self, conversation: int | None = None) -> str:
        """What stood in the composer of a chat; None: of the new chat that is not yet made."""
        with self._database.guarded() as connection:
            if conversation is None:
                row = connection.execute("SELECT text FROM note WHERE name = 'draft'").fetchone()
                return str(row[0]) if row else ""
            row = connection.execute("SELECT draft FROM conversation WHERE id = ?", (conversation,)).fetchone()
            if row is None:
                raise Gone(f"chat {conversation}")
            return str(row[0])

    # Finding

    def search(self, text: str, limit: int = 50) -> list[Hit]:
        """Chats by title and messages by text; see `tandem.chat.search.find`.

        Args:
            text: As typed; nothing in it is an operator.
            limit: Most hits, of titles and of messages each.
        """
        with self._database.guarded() as connection:
            try:
                return search.find(connection, text, limit)
            except sqlite3.DatabaseError as error:
                if not search.is_damage(error):
                    raise
            self._database.check_at_next_start()
            return search.find(connection, text, limit, indexed=False)

    def forget_index(self) -> None:
        """Empties the index, which fills again while other things are done; until then a search reads more."""
        with self._database.transaction() as connection:
            search.clear(connection)

    # Whole chats

    def bring_in(self, chats: Iterable[tuple[Conversation, Sequence[Node]]]) -> Changes:
        """Adds whole chats under new ids, all or none, but for those that are here; what is there stays as it is.

        Args:
            chats: Their messages' ids and parents refer to each other, a parent's being smaller. They are trusted to
                be as `tandem.chat.export` checks them.
        """
        done_chats = done_messages = skipped = 0
        with self._database.transaction() as connection:
            known = Known(connection)
            for conversation, nodes in chats:
                if known.holds(conversation, _title(conversation.title), nodes):
                    skipped += 1
                    continue
                kept = self._make(msgspec.structs.replace(conversation, active=None))
                ids: dict[int | None, int] = {}
                for node in sorted(nodes, key=lambda node: node.id):
                    parent = None if node.parent is None else ids[node.parent]
                    state = "interrupted" if node.state == "streaming" else node.state
                    new = msgspec.structs.replace(node, conversation=kept.id, parent=parent, state=state)
                    ids[node.id] = self._insert(kept_node(new)).id
                leaf = shown_leaf(Tree(nodes), conversation.active)
                connection.execute("UPDATE conversation SET active = ? WHERE id = ?", (ids.get(leaf), kept.id))
                done_chats += 1
                done_messages += len(nodes)
        return Changes(done_chats, done_messages, skipped)

    # Inside

    def _change(self, statement: str, *values: object) -> None:
        with self._database.transaction() as connection:
            if connection.execute(statement, values).rowcount != 1:
                raise Gone(f"{values[-1]}")

    def _make(self, conversation: Conversation) -> Conversation:
        with self._database.transaction() as connection:
            made = msgspec.structs.replace(
                conversation,
                title=_title(conversation.title),
                draft=storable(conversation.draft),
                system=None if conversation.system is None else storable(conversation.system),
            )
            return insert_conversation(connection, made)

    def _insert(self, node: Node) -> Node:
        with self._database.transaction() as connection:
            kept = insert_node(connection, node)
            if kept.state == "streaming":
                search.leave_out(connection, kept.id)
            else:
                search.put(connection, kept.id, kept.text)
        return kept

    @_mending
    def _wipe(self) -> None:
        with self._database.guarded() as connection:
            purge.wipe(connection)

    @_mending
    def _catch_up(self) -> None:
        with self._database.transaction() as connection:
            search.catch_up(connection, _BUDGET_S)


def _title(title: str) -> str:
    return one_line(storable(title))[:LONGEST_TITLE].rstrip()
