"""Chats and messages as rows of the store's tables."""

from __future__ import annotations

import sqlite3
from typing import Any, Final, TypeVar

import msgspec

from tandem.chat.conversation import Conversation, Figures, Node, Run, storable

CONVERSATION: Final = "id, title, created, updated, active, draft, system"
"""Columns, in the order of `Conversation`."""

NODE: Final = (
    "id, conversation, parent, role, text, thought, created, state, problem, remedy, figures, runs, thinking, thought_s"
)
"""Columns, as `node_of` takes them."""

_STATES: Final = {"streaming", "done", "stopped", "limit", "context", "failed", "interrupted"}
_T = TypeVar("_T")

_encode = msgspec.json.Encoder().encode
_figures: Final = msgspec.json.Decoder(Figures)
_runs: Final = msgspec.json.Decoder(tuple[Run, ...])


def insert_conversation(connection: sqlite3.Connection, chat: Conversation) -> Conversation:
    """Adds a chat, which gets an id."""
    number = connection.execute(
        "INSERT INTO conversation (title, created, updated, active, draft, system) VALUES (?, ?, ?, ?, ?, ?)",
        (chat.title, chat.created, chat.updated, chat.active, chat.draft, chat.system),
    ).lastrowid
    return msgspec.structs.replace(chat, id=number)


def insert_node(connection: sqlite3.Connection, node: Node) -> Node:
    """Adds a message, which gets an id."""
    number = connection.execute(
        "INSERT INTO node (conversation, parent, role, created, text, thought, state, problem, remedy, figures, runs,"
        " thinking, thought_s) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (node.conversation, node.parent, node.role, node.created, *_changing(node)),
    ).lastrowid
    return msgspec.structs.replace(node, id=number)


def update_node(connection: sqlite3.Connection, node: Node) -> None:
    """Writes what can change of a message."""
    connection.execute(
        "UPDATE node SET text = ?, thought = ?, state = ?, problem = ?, remedy = ?, figures = ?, runs = ?,"
        " thinking = ?, thought_s = ? WHERE id = ?",
        (*_changing(node), node.id),
    )


def probe(connection: sqlite3.Connection) -> None:
    """Uses every column, inside a transaction that will be undone; raises sqlite3.Error where that is not possible."""
    chat = insert_conversation(connection, Conversation(0, "", 0.0, 0.0))
    node = insert_node(connection, Node(0, chat.id, None, "user", ""))
    update_node(connection, node)
    connection.execute("UPDATE conversation SET active = ?, deleted_at = 0 WHERE id = ?", (node.id, chat.id))
    connection.execute("INSERT INTO unindexed (node) VALUES (?)", (node.id,))
    connection.execute("REPLACE INTO note (name, text) VALUES ('draft', '')")
    connection.execute(f"SELECT {CONVERSATION} FROM conversation WHERE id = ?", (chat.id,)).fetchall()
    connection.execute(f"SELECT {NODE} FROM node WHERE id = ?", (node.id,)).fetchall()


def _changing(node: Node) -> tuple[Any, ...]:
    """A message's columns that can change, in the order in which they are written."""
    return (
        node.text,
        node.thought,
        node.state,
        node.problem,
        node.remedy,
        None if node.figures is None else _encode(node.figures).decode(),
        _encode(node.runs).decode() if node.runs else None,
        node.thinking,
        node.thought_s,
    )


def node_of(row: tuple[Any, ...]) -> Node:
    """A message as it is in the file; what cannot be understood of one costs no other."""
    (number, conversation, parent, role, text, thought, created) = row[:7]
    (state, problem, remedy, figures, runs, thinking, thought_s) = row[7:]
    return Node(
        id=number,
        conversation=conversation,
        parent=parent,
        role=role if role in ("user", "assistant") else "assistant",
        text=_text(text),
        thought=_text(thought),
        created=_seconds(created) or 0.0,
        state=state if state in _STATES else "interrupted",
        problem=_text(problem),
        remedy=_text(remedy),
        figures=_decoded(_figures, figures),
        runs=_decoded(_runs, runs) or (),
        thinking=bool(thinking),
        thought_s=_seconds(thought_s),
    )


def _text(value: object) -> str:
    return value if isinstance(value, str) else str(value)


def _seconds(value: object) -> float | None:
    return float(value) if isinstance(value, int | float) else None


def _decoded(decoder: msgspec.json.Decoder[_T], data: object) -> _T | None:
    try:
        return decoder.decode(data) if isinstance(data, str) else None
    except (msgspec.MsgspecError, UnicodeEncodeError):
        return None


def kept_node(node: Node) -> Node:
    """The message with texts that can be stored."""
    return msgspec.structs.replace(
        node,
        text=storable(node.text),
        thought=storable(node.thought),
        problem=storable(node.problem),
        remedy=storable(node.remedy),
    )
