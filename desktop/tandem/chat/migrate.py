"""Brings the file that holds the chats to this version's shape.

The shape's number is SQLite's `user_version`; the steps are numbered SQL files. A file that holds anything is copied
before it is changed, and each step is done whole or not at all.
"""

from __future__ import annotations

import os
import re
import sqlite3
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

from tandem.chat.errors import StoreDamaged, StoreError
from tandem.files import free_name, sync_folder

APPLICATION: Final = 0x54414E44
"""`application_id` of our databases: "TAND"."""

COMPANIONS: Final = ("-wal", "-shm", "-journal")
"""What SQLite adds to a database's name for the files that belong to it."""

_TABLES: Final = {"conversation", "node", "note", "gram", "unindexed"}
_MIGRATIONS: Final = Path(__file__).with_name("migrations")


class Migration(NamedTuple):
    """A step from the version before to `version`."""

    version: int
    sql: str


def migrations() -> list[Migration]:
    """All steps, in order."""
    found = [
        Migration(int(file.name[:4]), file.read_text("utf-8"))
        for file in sorted(_MIGRATIONS.iterdir())
        if re.fullmatch(r"\d{4}_\w+\.sql", file.name)
    ]
    if not found or [step.version for step in found] != list(range(1, len(found) + 1)):
        raise StoreError(
            "Tandem's own files are not where they should be.",
            "Install Tandem again.",
            f"migrations in {_MIGRATIONS}: {[step.version for step in found]}",
        )
    return found


def version_of(connection: sqlite3.Connection, path: Path) -> int:
    """The shape's number, 0 for a new file.

    Raises:
        StoreDamaged: Something is missing, or another program made it.
    """
    version = pragma(connection, "user_version")
    tables = {name for (name,) in connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")}
    if not (version > 0 and tables >= _TABLES) and not (version == 0 and not tables):
        raise StoreDamaged(path, f"of another program, or not complete: version {version}, {sorted(tables)}")
    return version


def migrate(connection: sqlite3.Connection, path: Path, steps: Sequence[Migration], version: int) -> None:
    """Brings the file from `version` up to date, after a copy was made where there is anything to lose."""
    todo = [step for step in steps if step.version > version]
    if not todo:
        return
    kept = _copy(connection, path, version) if version else None
    try:
        _run(connection, path, todo)
    except BaseException:
        if kept is not None and pragma(connection, "user_version") == version:
            kept.unlink(missing_ok=True)  # nothing was changed, and the next start makes another
        raise
    # The version then stands in the file itself, where an older Tandem sees it without opening the log.
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()


def _run(connection: sqlite3.Connection, path: Path, todo: Sequence[Migration]) -> None:
    for step in todo:
        connection.execute("BEGIN IMMEDIATE")
        try:
            for statement in _statements(step.sql):
                connection.execute(statement)
            if bad := connection.execute("PRAGMA foreign_key_check").fetchall():
                raise sqlite3.IntegrityError(f"step {step.version} leaves rows that refer to nothing: {bad[:3]}")
            connection.execute(f"PRAGMA application_id = {APPLICATION}")
            connection.execute(f"PRAGMA user_version = {step.version}")
            connection.execute("COMMIT")
        except BaseException as error:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            if isinstance(error, sqlite3.IntegrityError | sqlite3.ProgrammingError):
                raise StoreError(
                    f"The chats in {path} could not be brought to this version's form.",
                    "Use the Tandem that wrote them; they are unchanged.",
                    str(error),
                ) from error
            raise


def _statements(sql: str) -> Iterator[str]:
    statement = ""
    for line in sql.splitlines(keepends=True):
        statement += line
        if sqlite3.complete_statement(statement):
            yield statement
            statement = ""
    if re.sub(r"--.*", "", statement).strip():
        raise sqlite3.ProgrammingError("a migration ends in the middle of a statement")


def _copy(connection: sqlite3.Connection, path: Path, version: int) -> Path:
    """Keeps the file as it is before a change of its shape: `chats.version-1-20261130-024309.db`."""
    kept = free_name(path, f"version-{version}")
    try:
        os.close(os.open(kept, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600))
        copy = sqlite3.connect(kept, isolation_level=None)
        try:
            connection.backup(copy)
        finally:
            copy.close()
    except BaseException:
        for name in ("", *COMPANIONS):
            beside(kept, name).unlink(missing_ok=True)
        raise
    sync_folder(kept.parent)
    return kept


def pragma(connection: sqlite3.Connection, name: str) -> int:
    """A setting of the database that is a number."""
    row: tuple[Any, ...] = connection.execute(f"PRAGMA {name}").fetchone()
    return int(row[0])


def beside(path: Path, suffix: str) -> Path:
    """The file with more at the end of its name."""
    return path.with_name(path.name + suffix)
