"""Removing chats for good, so that nothing of them is left in the file."""

from __future__ import annotations

import sqlite3

from tandem.chat import search


def due(connection: sqlite3.Connection, until: float) -> list[int]:
    """Ids of the chats that were deleted at `until` (seconds since 1970) or before, the longest deleted first."""
    rows = connection.execute("SELECT id FROM conversation WHERE deleted_at <= ? ORDER BY deleted_at", (until,))
    return [number for (number,) in rows]


def remove(connection: sqlite3.Connection, number: int) -> None:
    """Removes a chat and its messages; within a transaction."""
    for node, text in connection.execute("SELECT id, text FROM node WHERE conversation = ?", (number,)).fetchall():
        search.take_out(connection, node, text)
    connection.execute("UPDATE conversation SET active = NULL WHERE id = ?", (number,))
    connection.execute("DELETE FROM node WHERE conversation = ?", (number,))
    connection.execute("DELETE FROM conversation WHERE id = ?", (number,))


def wipe(connection: sqlite3.Connection) -> None:
    """Rids the index and the log of what was removed before; outside a transaction.

    What is removed from the tables is overwritten at once (`secure_delete`), but the index only notes that a message
    is gone until its parts are merged, and the log keeps older versions of pages until it is cut off.
    """
    connection.execute("INSERT INTO gram (gram) VALUES ('optimize')")
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
