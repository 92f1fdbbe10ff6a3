"""A file that is coming in: `<name>.part` and the record beside it.

The part is only ever appended to, so it is a clean beginning of the file at any moment. How much of it is surely on
the disk stands in the record, which is written after the bytes were flushed: whatever ends the process, or the
machine, a resume cuts the part back to that and goes on from there. Its sha256 is found while it is written.
"""

from __future__ import annotations

import errno
import os
import stat
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Final

import msgspec

from tandem.files import read_beginning, write_private
from tandem.models.digest import Digest, kept
from tandem.models.disk import FULL, disk_error
from tandem.models.errors import TransferError
from tandem.models.hashing import BLOCK, check, quietly, read_ahead
from tandem.models.ranges import Bytes
from tandem.models.stop import Stop

SYNC_BYTES: Final = 64 << 20
"""So many bytes are flushed at a time,"""

SYNC_S: Final = 5.0
"""or those of so many seconds;"""

SYNC_LEAST_S: Final = 1.0
"""but not more often than that: on a fast line it would only slow it down, and what a second brings is no loss."""

_ROOM: Final = 1 << 20
_MAX_RECORD: Final = 1 << 16


class PartRecord(msgspec.Struct, frozen=True):
    """What a part is a part of.

    Attributes:
        repo: The Hub's repository.
        file: The file's name there.
        commit: The Hub's commit.
        sha256: Of the whole file.
        bytes: Of the whole file.
        etag: What the storage host calls this content; "" for unknown.
        host: That host: another one calls it something else.
        synced: Bytes of the part that are surely on the disk.
    """

    repo: str
    file: str
    commit: str
    sha256: str
    bytes: int
    etag: str = ""
    host: str = ""
    synced: int = 0


def read_record(path: Path) -> PartRecord | None:
    """A record, None when there is none that can be read."""
    try:
        record = msgspec.json.decode(read_beginning(path, _MAX_RECORD) or b"", type=PartRecord)
    except (OSError, msgspec.DecodeError):
        return None
    return record if 0 <= record.synced <= record.bytes else None


class Part:
    """The part of one file, for one thread. Its lock must be held.

    Args:
        path: Where it is.
        record_path: Where its record is.
        wanted: What it has to be a part of.
        clock: Seconds that only grow.
    """

    def __init__(
        self, path: Path, record_path: Path, wanted: PartRecord, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.path: Final = path
        self.size = 0
        """Bytes of it that are right, as far as is known: the next one is written there."""

        self._record_path = record_path
        self._record = wanted
        self._clock = clock
        self._digest = Digest()
        self._descriptor = -1
        self._syncer: ThreadPoolExecutor | None = None  # flushes to the disk while more is written
        self._syncing: Future[None] | None = None
        self._sync_size = 0
        self._sync_time = clock()

    @property
    def etag(self) -> str:
        """What the storage host calls the content; "" for unknown."""
        return self._record.etag

    @property
    def host(self) -> str:
        """The host that calls it that."""
        return self._record.host

    @property
    def total(self) -> int:
        """Bytes that it has when it is whole."""
        return self._record.bytes

    def sha256(self) -> str:
        """Of the bytes that are there: 64 hex digits."""
        return self._digest.hexdigest()

    def open(self, stop: Stop | None = None, news: Callable[[int], None] = quietly) -> None:
        """Takes up what is there if it belongs to the wanted file, else begins at zero.

        What is there is read once, for the sha256.

        Args:
            stop: Ends the reading.
            news: Gets the bytes that were read.

        Raises:
            TransferError: "disk", "disk-full".
            Stopped: `stop` was set; what is there stays.
        """
        try:
            for path in (self.path, self._record_path):
                if path.is_symlink():  # what it leads to is not ours to write to
                    raise FileExistsError(errno.EEXIST, "a link", str(path))
            found = read_record(self._record_path)
            self._descriptor = os.open(
                self.path, os.O_RDWR | os.O_CREAT | getattr(os, "O_BINARY", 0) | getattr(os, "O_CLOEXEC", 0), 0o600
            )
            status = os.fstat(self._descriptor)
            if not stat.S_ISREG(status.st_mode):
                raise FileExistsError(errno.EEXIST, "no ordinary file", str(self.path))
            keep = 0
            # The same sha256 is the same content, whatever the commit: one that changed another file changes nothing.
            if found is not None and (found.sha256, found.bytes) == (self._record.sha256, self._record.bytes):
                keep = min(found.synced, status.st_size)
                self._record = msgspec.structs.replace(self._record, etag=found.etag, host=found.host)
            record = msgspec.structs.replace(self._record, synced=keep)
            if found != record:
                self._write(keep, record)
            os.ftruncate(self._descriptor, keep)
            self._read(keep, stop, news)
        except OSError as error:
            raise disk_error(error, self.path) from error
        self._syncer = ThreadPoolExecutor(1, "part-sync")
        self._sync_size, self._sync_time = self.size, self._clock()

    def known_as(self, etag: str, host: str) -> None:
        """Remembers what the storage host calls the content."""
        self._record = msgspec.structs.replace(self._record, etag=etag, host=host)

    def append(self, block: Bytes, done: Callable[[Bytes], None] = kept) -> None:
        """Writes and hashes the next bytes.

        Args:
            block: They must not change until they are done.
            done: Gets them when they are, in another thread.

        Raises:
            TransferError: "disk", "disk-full": the part ends where it ended before.
        """
        if self._syncing is not None and self._syncing.done():
            self._settle()
        try:
            _write_at(self._descriptor, block, self.size)
        except OSError as error:
            raise disk_error(error, self.path) from error
        self._digest.update(block, done)
        self.size += len(block)
        now = self._clock()
        due = self.size - self._sync_size >= SYNC_BYTES and now - self._sync_time >= SYNC_LEAST_S
        due = due or now - self._sync_time >= SYNC_S
        if due and self._syncing is None:
            assert self._syncer is not None
            self._sync_size, self._sync_time = self.size, now
            self._syncing = self._syncer.submit(self._sync, self.size, self._record)

    def reset(self) -> None:
        """Begins at zero again.

        Raises:
            TransferError: "disk", "disk-full".
        """
        try:
            self._settle()
            self._record = msgspec.structs.replace(self._record, etag="", host="")
            # First, so that nobody takes what is left of the old content for the new one.
            self._write(0, self._record)
            os.ftruncate(self._descriptor, 0)
        except OSError as error:
            raise disk_error(error, self.path) from error
        self.size = self._sync_size = 0
        self._digest.restart()

    def flush(self) -> None:
        """Puts all of it on the disk.

        Raises:
            TransferError: "disk", "disk-full".
        """
        try:
            self._settle()
            self._sync(self.size, self._record)
        except OSError as error:
            raise disk_error(error, self.path) from error

    def close(self, keep: bool = True) -> None:
        """Leaves it so that a later run can go on with all of it. Never fails: what cannot be flushed is not counted.

        Args:
            keep: False when it is to be removed anyway: nothing is flushed then.
        """
        self._digest.close()
        if self._descriptor < 0:
            return
        with suppress(TransferError):
            self._settle()
        if self._syncer is not None:
            self._syncer.shutdown()
        try:
            if keep and self._syncer is not None:  # it was opened to its end
                with suppress(OSError):
                    os.ftruncate(self._descriptor, self.size)  # a write that failed may have left some of it
                self._keep()
        finally:
            descriptor, self._descriptor = self._descriptor, -1
            os.close(descriptor)

    # --- inside

    def _read(self, count: int, stop: Stop | None, news: Callable[[int], None]) -> None:
        """Hashes the beginning of the file."""
        block = bytearray(BLOCK)
        view = memoryview(block)
        os.lseek(self._descriptor, 0, os.SEEK_SET)
        with open(self._descriptor, "rb", buffering=0, closefd=False) as stream:
            read_ahead(self._descriptor)
            while self.size < count and (got := stream.readinto(view[: count - self.size])):
                self._digest.take(view[:got])
                self.size += got
                news(self.size)
                check(stop)

    def _keep(self) -> None:
        """Flushes all of it and says so in the record."""
        try:
            self._sync(self.size, self._record)
        except OSError as error:
            if error.errno not in FULL:
                return
            # No room for the record: the part's last bytes make some.
            shorter = max(0, self.size - _ROOM)
            with suppress(OSError):
                os.ftruncate(self._descriptor, shorter)
                self._sync(shorter, self._record)

    def _sync(self, size: int, record: PartRecord) -> None:
        _flush(self._descriptor)
        self._write(size, record)

    def _settle(self) -> None:
        """Waits for the flush that is under way."""
        syncing, self._syncing = self._syncing, None
        if syncing is not None:
            try:
                syncing.result()
            except OSError as error:
                raise disk_error(error, self.path) from error

    def _write(self, synced: int, record: PartRecord) -> None:
        record = msgspec.structs.replace(record, synced=synced)
        write_private(self._record_path, msgspec.json.format(msgspec.json.encode(record)) + b"\n")


def _write_at(descriptor: int, block: Bytes, place: int) -> None:
    """Writes a block there, all of it."""
    view = memoryview(block)
    os.lseek(descriptor, place, os.SEEK_SET)
    while view:
        view = view[os.write(descriptor, view) :]


def _flush(descriptor: int) -> None:
    """Puts what was written on the disk; its times need not be."""
    if hasattr(os, "fdatasync"):
        os.fdatasync(descriptor)
    else:
        os.fsync(descriptor)
