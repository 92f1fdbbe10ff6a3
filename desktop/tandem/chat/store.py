"""The file that holds the chats: opened, checked, brought up to date, and kept safe when it cannot be read.

SQLite with a write-ahead log. One process at a time uses it (a lock file says so), through one connection, from one
thread. A file that is damaged is renamed and kept, with its log, and a new one is begun; one that a newer Tandem wrote
is not touched at all.
"""

from __future__ import annotations

import errno
import functools
import os
import sqlite3
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Final

from tandem.chat import rows, search
from tandem.chat.errors import NewerDatabase, StoreDamaged, StoreError, StoreFull, StoreInUse, translated, unwritable
from tandem.chat.migrate import COMPANIONS, Migration, beside, migrate, migrations, pragma, version_of
from tandem.files import free_name, read_beginning, sync_folder

BUSY_TIMEOUT_S: Final = 2.0
"""For a program that only looks at the file, or a Tandem that is just closing."""

# Up to which size a file is read through at each start, and its index: about 0.1 s.
_CHECKED_BYTES: Final = 64 << 20
_INDEX_CHECKED_BYTES: Final = 8 << 20
# What SQLite says when it has understood the file and then cannot do what it always can: the shape is damaged.
_MISSHAPEN: Final = {
    sqlite3.SQLITE_ERROR,
    sqlite3.SQLITE_CONSTRAINT,
    sqlite3.SQLITE_MISMATCH,
    sqlite3.SQLITE_FULL,  # of numbers: nothing is written
}
_MAGIC: Final = b"SQLite format 3\0"


class Database:
    """The open file. Make it with `open_database`."""

    def __init__(
        self,
        path: Path,
        connection: sqlite3.Connection,
        lock: _Lock,
        set_aside: Path | None,
        steps: Sequence[Migration],
    ) -> None:
        self.path: Final = path
        self.connection = connection
        self.set_aside: Final = set_aside
        """Where a damaged file was kept that was in this one's place."""
        self._lock = lock
        self._steps = steps
        self._identity = _identity(path)
        self._depth = 0

    @contextmanager
    def guarded(self) -> Iterator[sqlite3.Connection]:
        """Turns SQLite's errors into ours; what is damaged is remembered for the next start.

        Raises:
            StoreError: SQLite could not do it.
        """
        try:
            yield self.connection
        except (sqlite3.Error, UnicodeDecodeError) as error:
            raise self._translated(error) from error

    @contextmanager
    def transaction(self) -> Iterator[sqlite3.Connection]:
        """All or nothing; inside another one, a part of that.

        Raises:
            StoreError: SQLite could not do it; nothing was changed.
        """
        if self._depth:
            yield self.connection
            return
        if _identity(self.path) != self._identity:
            self._put_back()
        with self.guarded() as connection:
            connection.execute("BEGIN IMMEDIATE")
            self._depth = 1
            try:
                yield connection
                connection.execute("COMMIT")
            except BaseException:
                if connection.in_transaction:  # SQLite ends it by itself when the disk is full
                    with suppress(sqlite3.Error):
                        connection.execute("ROLLBACK")
                raise
            finally:
                self._depth = 0

    def _put_back(self) -> None:
        """Writes the file anew that somebody removed while it was open; all that was in it can still be read.

        Raises:
            StoreError: It cannot be written, or another file is there.
        """
        if os.path.lexists(self.path):
            raise StoreError(
                f"The file with the chats, {self.path}, was replaced while Tandem was open.",
                "Export what you want to keep, then start Tandem again.",
            )
        whole = free_name(self.path, "saved")
        try:
            self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            os.close(os.open(whole, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600))
            with closing(sqlite3.connect(whole)) as copy:
                self.connection.backup(copy)
        except (OSError, sqlite3.Error) as error:
            with suppress(OSError):
                whole.unlink(missing_ok=True)
            found = _unwritten(error, self.path) if isinstance(error, OSError) else translated(error, self.path)
            raise found from error
        # From here on all is on the disk. What the old connection leaves would be taken for the new file's.
        self.close()
        try:
            for name in COMPANIONS:
                beside(self.path, name).unlink(missing_ok=True)
            whole.rename(self.path)
            self._lock = _Lock(self.path)
        except OSError as error:
            raise _unwritten(error, self.path) from error
        self.connection = _connect(self.path, self._steps)
        self._identity = _identity(self.path)

    def check_at_next_start(self) -> None:
        """Leaves a mark, so that the whole file is checked when it is opened next."""
        with suppress(OSError):
            _mark(self.path).touch(mode=0o600)

    def _translated(self, error: sqlite3.Error | UnicodeDecodeError) -> Exception:
        if isinstance(error, sqlite3.Error) and not hasattr(error, "sqlite_errorcode"):
            return error  # Python's module was used wrongly, which is a fault of ours
        found = translated(error, self.path)
        if isinstance(found, StoreDamaged):
            self.check_at_next_start()
        return found

    def close(self) -> None:
        """Writes the log back and lets go of the file; the second time without effect."""
        self.connection.close()
        self._lock.release()


def open_database(path: Path, steps: Sequence[Migration] | None = None) -> Database:
    """Opens the chats, and makes the file when there is none.

    Args:
        path: The database.
        steps: None takes those that come with this version.

    Raises:
        NewerDatabase: A newer Tandem wrote it; not a byte was changed.
        StoreInUse: Another process has it.
        StoreError: It cannot be made, read, brought up to date or set aside.
    """
    steps = migrations() if steps is None else steps
    try:
        _refuse_newer(path, steps[-1].version)
        lock = _Lock(path)
        try:
            _refuse_newer(path, steps[-1].version)  # the process before us may just have changed it
            connection, set_aside = _connected(path, steps)
        except BaseException:
            lock.release()
            raise
        return Database(path, connection, lock, set_aside, steps)
    except OSError as error:
        raise _unwritten(error, path) from error


def _unwritten(error: OSError, path: Path) -> StoreError:
    return (StoreFull if error.errno == errno.ENOSPC else unwritable)(path, str(error))


def _identity(path: Path) -> tuple[int, int] | None:
    """What tells a file from another one of the same name; None when there is none."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino


def _connected(path: Path, steps: Sequence[Migration]) -> tuple[sqlite3.Connection, Path | None]:
    set_aside = None
    if not _is_database(path):
        set_aside = _set_aside(path)
    try:
        return _connect(path, steps), set_aside
    except StoreDamaged:
        set_aside = _set_aside(path)
    return _connect(path, steps), set_aside


def _connect(path: Path, steps: Sequence[Migration]) -> sqlite3.Connection:
    # Only its owner may read it; the log gets the same permissions.
    os.close(os.open(path, os.O_RDWR | os.O_CREAT, 0o600))
    with suppress(OSError):
        path.chmod(0o600)
    size, marked = path.stat().st_size, _mark(path).exists()
    check = marked or size <= _CHECKED_BYTES or beside(path, "-wal").exists()
    connection = sqlite3.connect(path, timeout=BUSY_TIMEOUT_S, isolation_level=None, cached_statements=256)
    try:
        # A byte that is no UTF-8 costs that byte and not the message.
        connection.text_factory = functools.partial(str, encoding="utf-8", errors="replace")
        _set(
            connection,
            "trusted_schema = OFF",
            "cell_size_check = ON",
            "temp_store = MEMORY",  # temporary files would hold chat text
            "cache_size = -8000",
            "secure_delete = ON",
        )
        # Until here nothing is written, so that a file that is set aside is as it was.
        if check:
            _check(connection, path)
        version = version_of(connection, path)
        _set(connection, "journal_mode = WAL", "synchronous = NORMAL", "journal_size_limit = 16777216")
        migrate(connection, path, steps, version)
        _set(connection, "foreign_keys = ON")
        _probe(connection, path)
        connection.execute("BEGIN IMMEDIATE")
        search.mend(connection, thorough=marked or size <= _INDEX_CHECKED_BYTES)
        connection.execute("COMMIT")
        _mark(path).unlink(missing_ok=True)
    except (sqlite3.Error, UnicodeDecodeError) as error:
        connection.close()
        raise translated(error, path) from error
    except BaseException:
        connection.close()
        raise
    return connection


def _set(connection: sqlite3.Connection, *settings: str) -> None:
    for setting in settings:
        connection.execute(f"PRAGMA {setting}").fetchall()


def _check(connection: sqlite3.Connection, path: Path) -> None:
    """Raises StoreDamaged unless the whole file is in order."""
    ((verdict,),) = connection.execute("PRAGMA integrity_check(1)").fetchall()
    if verdict != "ok":
        raise StoreDamaged(path, str(verdict))


def _probe(connection: sqlite3.Connection, path: Path) -> None:
    """Raises StoreDamaged unless a chat can be stored: SQLite's own check does not look at what makes the tables."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        rows.probe(connection)
        search.probe(connection)
    except sqlite3.Error as error:
        if search.is_damage(error):
            return  # the index can be made again
        if getattr(error, "sqlite_errorcode", 0) & 0xFF in _MISSHAPEN:
            raise StoreDamaged(path, str(error)) from error
        raise
    finally:
        connection.execute("ROLLBACK")


def _set_aside(path: Path) -> Path:
    """Renames a damaged file and its companions, the log first: a log left behind would be taken for the new file's."""
    kept = free_name(path, "damaged")
    try:
        for name in (*COMPANIONS, ""):
            with suppress(FileNotFoundError):
                beside(path, name).rename(beside(kept, name))
    except OSError as error:
        raise StoreError(
            f"The file with the chats, {path}, is damaged and cannot be set aside.",
            "Move that file to another folder yourself, then start Tandem again.",
            str(error),
        ) from error
    sync_folder(path.parent)
    _mark(path).unlink(missing_ok=True)
    return kept


def _refuse_newer(path: Path, known: int) -> None:
    version = _stored_version(path)
    if version > known:
        raise NewerDatabase(path, version, known)


def _stored_version(path: Path) -> int:
    """`user_version` of a database, read without changing a byte; 0 when there is none to be read."""
    log = beside(path, "-wal")
    try:
        size = path.stat().st_size
        page = read_beginning(path, 65_536)
    except FileNotFoundError:
        return 0
    if page is None or not page.startswith(_MAGIC):
        return 0
    in_file = int.from_bytes(page[60:64].ljust(4, b"\0"), "big", signed=True)
    if not log.exists() or not log.stat().st_size:
        return in_file
    # The last process did not close it, and its log may know better. SQLite changes both when it opens them, so it
    # reads a copy: the version is on the first page, and the rest may be a hole.
    with tempfile.TemporaryDirectory(prefix="tandem-") as folder:
        copy = Path(folder) / "copy.db"
        copy.write_bytes(page)
        with copy.open("r+b") as stream:
            stream.truncate(size)
        beside(copy, "-wal").write_bytes(log.read_bytes())
        connection = sqlite3.connect(copy)
        try:
            return max(in_file, pragma(connection, "user_version"))
        except sqlite3.Error:
            return in_file
        finally:
            connection.close()


def _is_database(path: Path) -> bool:
    """Whether the file begins as ours do; one that is not there, or empty, will be made.

    SQLite reads some of these damaged bytes as a wish, such as never to be written, or of another way to write text.
    """
    try:
        header = read_beginning(path, 100)
    except FileNotFoundError:
        return True
    if not header:
        return header is not None  # what is no file of bytes keeps no chats
    return (
        len(header) == 100
        and header.startswith(_MAGIC)
        and header[18] in (1, 2)  # who may write and read: all, with a log of either kind
        and header[19] in (1, 2)
        and header[20:24] == b"\0\x40\x20\x20"  # fixed
        and int.from_bytes(header[44:48], "big") <= 4  # form of the schema
        and int.from_bytes(header[56:60], "big") <= 1  # UTF-8
    )


def _mark(path: Path) -> Path:
    return beside(path, ".check")


class _Lock:
    """One process at a time. The system lets go of it when the process ends, however it ends.

    Raises:
        StoreInUse: Another process, or another part of this one, has it.
        OSError: The lock file cannot be made.
    """

    def __init__(self, path: Path) -> None:
        self._descriptor: int | None = os.open(beside(path, ".lock"), os.O_RDWR | os.O_CREAT, 0o600)
        try:
            _lock(self._descriptor)
        except OSError as error:
            self.release()
            if isinstance(error, BlockingIOError | PermissionError):
                raise StoreInUse(path, str(error)) from error
            # A file system that knows no locks: SQLite's own are left.

    def release(self) -> None:
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None


if sys.platform == "win32":
    import msvcrt

    def _lock(descriptor: int) -> None:
        msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)

else:
    import fcntl

    def _lock(descriptor: int) -> None:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
