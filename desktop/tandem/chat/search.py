"""Finding text in a hundred thousand messages while a person types.

What is typed is split at white space; a message is found when it holds every part, anywhere, in any case. Nothing in
it is an operator.

SQLite's own index of three characters cannot find shorter parts, and most Korean and Chinese words are shorter. So the
index holds for each message every piece of one, two and three characters, once (`grams`). It says in which messages
all pieces of a search occur; that these are really found is then seen in their texts, newest first, until there are
enough. Nothing in the index is a text, so it can always be made again.
"""

from __future__ import annotations

import itertools
import sqlite3
import time
import unicodedata
from collections.abc import Sequence
from typing import Final

from tandem.chat.conversation import Hit, storable

EXCERPT: Final = 160
"""Most characters of an excerpt, without the dots where it was cut."""

_BEFORE: Final = 40
_MOST_GRAMS: Final = 64
_MOST_PARTS: Final = 32
_LONGEST: Final = 1000
_LATER: Final = 20_000
"""Characters from which on a text is not put into the index at once, so that it is saved at once."""

# The index splits at everything that is neither a letter or digit of ASCII nor beyond ASCII.
_STAND_INS: Final = {code: 0xE000 + code for code in range(128) if not chr(code).isalnum()}
# CROSS JOIN keeps SQLite to the order in which the tables stand here; any other would read all messages.
_SELECT: Final = """SELECT node.id, node.conversation, node.text, node.created, conversation.title FROM {source}
    CROSS JOIN conversation ON conversation.id = node.conversation
    WHERE {condition} AND conversation.deleted_at IS NULL ORDER BY {order} DESC"""
_FROM_INDEX: Final = _SELECT.format(
    source="gram CROSS JOIN node ON node.id = gram.rowid", condition="gram MATCH ?", order="gram.rowid"
)
_NOT_IN_INDEX: Final = _SELECT.format(
    source="unindexed CROSS JOIN node ON node.id = unindexed.node", condition="node.id > 0", order="unindexed.node"
)
_ALL: Final = _SELECT.format(source="node", condition="node.id > 0", order="node.id")


def composed(text: str) -> str:
    """Text with letters and their marks as one character each where there is one; Hangul typed elsewhere too."""
    return unicodedata.normalize("NFC", text)


def folded(text: str) -> str:
    """Composed text without the difference of upper and lower case, as long as it was."""
    if text.isascii():
        return text.lower()
    # Of all characters only İ has two when it is lower case; what σ looks like depends on where it stands.
    return text.replace("İ", "i").lower().replace("ς", "σ")


def grams(text: str) -> str:
    """Every piece of one to three characters that stands in a text, as the index takes it."""
    text = folded(composed(text)).translate(_STAND_INS)
    pieces = {*text, *map("".join, itertools.pairwise(text))}
    pieces.update(map("".join, zip(text, text[1:], text[2:], strict=False)))
    return " ".join(pieces)


def parts(search: str) -> list[str]:
    """What a message must hold to be found, longest first; empty when nothing is looked for."""
    found = dict.fromkeys(folded(composed(storable(search[:_LONGEST]))).split())
    return sorted(found, key=len, reverse=True)[:_MOST_PARTS]


def _condition(wanted: Sequence[str]) -> str:
    pieces: dict[str, None] = {}
    for part in wanted:
        text = part.translate(_STAND_INS)
        size = min(3, len(text))
        pieces.update(dict.fromkeys(text[start : start + size] for start in range(len(text) - size + 1)))
    return " ".join(f'"{piece}"' for piece in list(pieces)[:_MOST_GRAMS])


def find(connection: sqlite3.Connection, search: str, limit: int, indexed: bool = True) -> list[Hit]:
    """Chats whose title, and messages whose text, hold all parts of `search`: titles first, each newest first.

    Args:
        connection: The store.
        search: As typed.
        limit: Most hits, of titles and of messages each.
        indexed: Whether the index can be used; without it every message is read.

    Raises:
        sqlite3.Error: The store cannot be read.
    """
    wanted = parts(search)
    if not wanted or limit < 1:
        return []
    hits: list[Hit] = []
    for conversation, title, updated in connection.execute(
        "SELECT id, title, updated FROM conversation WHERE deleted_at IS NULL ORDER BY updated DESC, id DESC"
    ):
        name = composed(title)
        if _holds(folded(name), wanted):
            hits.append(Hit(conversation, None, title, name, _ranges(name, wanted), updated))
            if len(hits) == limit:
                break
    return hits + _messages(connection, wanted, limit, indexed)


def _messages(connection: sqlite3.Connection, wanted: Sequence[str], limit: int, indexed: bool) -> list[Hit]:
    queries = [(_NOT_IN_INDEX, ()), (_FROM_INDEX, (_condition(wanted),))] if indexed else [(_ALL, ())]
    hits: list[Hit] = []
    for query, values in queries:
        found = 0
        for node, conversation, text, created, title in connection.execute(query, values):
            text = composed(text)
            if _holds(lower := folded(text), wanted):
                start, length = min((lower.index(part), len(part)) for part in wanted)
                excerpt = _excerpt(text, start, length)
                hits.append(Hit(conversation, node, title, excerpt, _ranges(excerpt, wanted), created))
                found += 1
                if found == limit:
                    break
    hits.sort(key=lambda hit: -(hit.node or 0))
    return hits[:limit]


def _holds(lower: str, wanted: Sequence[str]) -> bool:
    return all(part in lower for part in wanted)


def _excerpt(text: str, match: int, length: int) -> str:
    """One line around a match, which is whole in it."""
    start = max(match - _BEFORE, 0)
    if start:  # not in the middle of a word, where there is a gap between words
        start = next((place for place in range(start, match) if text[place].isspace()), start)
    end = min(max(start + EXCERPT, match + length), len(text))
    line = " ".join(text[start:end].split())
    return f"{'…' if text[:start].strip() else ''}{line}{'…' if text[end:].strip() else ''}"


def _ranges(line: str, wanted: Sequence[str]) -> tuple[tuple[int, int], ...]:
    """Where the parts stand in composed text; parts that touch or overlap as one."""
    lower = folded(line)
    places: list[tuple[int, int]] = []
    for part in wanted:
        start = lower.find(part)
        while start >= 0:
            places.append((start, start + len(part)))
            start = lower.find(part, start + len(part))
    merged: list[tuple[int, int]] = []
    for start, end in sorted(places):
        if merged and start <= merged[-1][1]:
            merged[-1] = merged[-1][0], max(end, merged[-1][1])
        else:
            merged.append((start, end))
    return tuple(merged)


def put(connection: sqlite3.Connection, node: int, text: str) -> None:
    """Puts a message that is not in the index into it, inside a transaction; a very long one is left for `catch_up`.

    Args:
        connection: The store.
        node: The message.
        text: Its text.
    """
    if len(text) > _LATER:
        leave_out(connection, node)
    else:
        _put(connection, node, text)


def _put(connection: sqlite3.Connection, node: int, text: str) -> None:
    connection.execute("INSERT INTO gram (rowid, grams) VALUES (?, ?)", (node, grams(text)))
    connection.execute("DELETE FROM unindexed WHERE node = ?", (node,))


def leave_out(connection: sqlite3.Connection, node: int) -> None:
    """Remembers that a message is not in the index: its text is still growing, and is read at each search."""
    connection.execute("INSERT OR IGNORE INTO unindexed VALUES (?)", (node,))


def take_out(connection: sqlite3.Connection, node: int, text: str) -> None:
    """Takes a message out of the index if it is there, inside a transaction; `text` is the one that was put in."""
    if connection.execute("SELECT 1 FROM unindexed WHERE node = ?", (node,)).fetchone() is None:
        connection.execute("INSERT INTO gram (gram, rowid, grams) VALUES ('delete', ?, ?)", (node, grams(text)))


def clear(connection: sqlite3.Connection) -> None:
    """Empties the index, inside a transaction; `catch_up` fills it again."""
    connection.execute("INSERT INTO gram (gram) VALUES ('delete-all')")
    connection.execute("INSERT OR IGNORE INTO unindexed SELECT id FROM node")


def mend(connection: sqlite3.Connection, thorough: bool) -> None:
    """Empties the index when it is damaged, inside a transaction.

    Args:
        connection: The store.
        thorough: Whether all of it is looked at.

    Raises:
        sqlite3.Error: It cannot even be emptied.
    """
    try:
        probe(connection)
        if thorough:
            connection.execute("INSERT INTO gram (gram) VALUES ('integrity-check')")
    except sqlite3.DatabaseError as error:
        if not is_damage(error):
            raise
        clear(connection)


def probe(connection: sqlite3.Connection) -> None:
    """Uses the index, which raises sqlite3.Error when it cannot be used."""
    connection.execute("SELECT rowid FROM gram WHERE gram MATCH 'e' LIMIT 1").fetchall()


def is_damage(error: BaseException | None) -> bool:
    """Whether the index is damaged, and not the database."""
    return getattr(error, "sqlite_errorcode", 0) == sqlite3.SQLITE_CORRUPT_VTAB


def catch_up(connection: sqlite3.Connection, seconds: float) -> None:
    """Puts finished messages into the index that are not in it, newest first, inside a transaction.

    Args:
        connection: The store.
        seconds: After about this long the rest is left.
    """
    until = time.monotonic() + seconds
    waiting = connection.execute(
        "SELECT id, text FROM unindexed CROSS JOIN node ON node.id = unindexed.node WHERE state <> 'streaming'"
        " ORDER BY unindexed.node DESC LIMIT 1000"
    ).fetchall()
    for node, text in waiting:
        _put(connection, node, text)
        if time.monotonic() >= until:
            return
