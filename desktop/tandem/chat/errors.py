"""What can go wrong with the file that holds the chats.

::

    TandemError
    └── StoreError           the chats cannot be read or written
        ├── NewerDatabase    a newer Tandem wrote them; they are not touched
        ├── StoreInUse       another Tandem is using them
        ├── StoreDamaged     a part of the file cannot be read
        ├── StoreFull        no room; what was there before is still there
        └── Gone             the chat or message is no longer there
"""

from __future__ import annotations

import sqlite3
from pathlib import Path

from tandem.errors import TandemError


class StoreError(TandemError):
    """The chats cannot be read or written."""


class NewerDatabase(StoreError):
    """A newer Tandem wrote the chats. The file was not touched."""

    def __init__(self, path: Path, version: int, known: int) -> None:
        super().__init__(
            f"The chats in {path} were written by a newer Tandem.",
            "Use the newer Tandem, or move that file elsewhere to begin with no chats.",
            f"version {version}, known {known}",
        )


class StoreInUse(StoreError):
    """Another process holds the chats."""

    def __init__(self, path: Path, details: str = "") -> None:
        super().__init__(
            f"Another program is using the chats in {path}.", "Close the other Tandem window, then try again.", details
        )


class StoreDamaged(StoreError):
    """A part of the file cannot be read."""

    def __init__(self, path: Path, details: str = "") -> None:
        super().__init__(
            f"The file with the chats, {path}, is damaged.",
            "Start Tandem again: it then keeps that file under another name and begins a new one.",
            details,
        )


class StoreFull(StoreError):
    """There is no room for what should be written. What was there before is still there."""

    def __init__(self, path: Path, details: str = "") -> None:
        super().__init__(
            f"The disk with {path.parent} is full, so the chat cannot be saved.",
            "Make room on that disk, then try again.",
            details,
        )


class Gone(StoreError):
    """A chat or message that is no longer there."""

    def __init__(self, details: str = "") -> None:
        super().__init__("That chat or message is no longer there.", "Open another chat.", details)


def translated(error: sqlite3.Error | UnicodeDecodeError, path: Path) -> StoreError:
    """What SQLite says, for a person.

    Args:
        error: One that SQLite itself raised; or what Python makes of SQLite's message when damaged bytes stand in it.
        path: The database.
    """
    if isinstance(error, UnicodeDecodeError):
        return StoreDamaged(path, repr(error))
    details = f"{getattr(error, 'sqlite_errorname', type(error).__name__)}: {error}"
    match getattr(error, "sqlite_errorcode", 0) & 0xFF:
        case sqlite3.SQLITE_FULL:
            return StoreFull(path, details)
        case sqlite3.SQLITE_BUSY | sqlite3.SQLITE_LOCKED:
            return StoreInUse(path, details)
        case sqlite3.SQLITE_CORRUPT | sqlite3.SQLITE_NOTADB:
            return StoreDamaged(path, details)
        case sqlite3.SQLITE_READONLY | sqlite3.SQLITE_CANTOPEN | sqlite3.SQLITE_PERM | sqlite3.SQLITE_AUTH:
            return unwritable(path, details)
        case sqlite3.SQLITE_CONSTRAINT:
            return Gone(details)
        case sqlite3.SQLITE_TOOBIG:
            return StoreError("The message is too long to be saved.", "Send it in parts.", details)
        case _:
            return StoreError(
                f"The chats in {path} could not be read or written.",
                "Check that the disk has room and is in order, then try again.",
                details,
            )


def unwritable(path: Path, details: str) -> StoreError:
    """The folder or the file does not let us write."""
    return StoreError(
        f"Tandem may not write its chats to {path}.",
        "Check the permissions of that file and its folder.",
        details,
    )
