"""Copies of large files: under another name until all of them is there, hashed as they are written, and resumable."""

from __future__ import annotations

import hashlib
import io
import os
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from tandem.engine.gguf_header import printable
from tandem.files import open_bytes, sync_folder
from tandem.models.disk import COPY, FULL, disk_error
from tandem.models.errors import TransferError
from tandem.models.hashing import BLOCK, check, hash_file, quietly, read_ahead
from tandem.models.locks import Lock
from tandem.models.stop import Stop, Stopped

_SYNC_BYTES: Final = 64 << 20


def copy_file(
    source: Path,
    target: Path,
    *,
    expected: str = "",
    proof: bool = False,
    stop: Stop | None = None,
    news: Callable[[int], None] = quietly,
    ready: Callable[[Path], object] = bool,
) -> str:
    """Copies a file; what is at `target` is replaced when the copy is whole, flushed and right, and not before.

    Args:
        source: What is copied.
        target: Its new name; the folder must be there.
        expected: The sha256 it must have; with it, a copy that was interrupted goes on where it stopped.
        proof: Read the copy back from the disk and compare it.
        stop: Ends it; "cancel" removes what was copied, anything else keeps it.
        news: Gets the bytes that are done.
        ready: Called with the whole copy, under the name it still has, right before it gets its own.

    Returns:
        The sha256.

    Raises:
        TransferError: "wrong-hash" when the bytes are not those expected; "busy", "disk", "disk-full".
        Stopped: `stop` was set.
    """
    copy = target.with_name(target.name + COPY)
    with Lock(copy):
        try:
            resumed = bool(expected) and _begun(copy)
            found = _poured(source, copy, resumed, stop, news)
            if resumed and found != expected:  # what an earlier run left was not all written, or of another file
                found = _poured(source, copy, False, stop, news)
            if expected and found != expected:
                _removed(copy)
                name = printable(source.name)
                raise TransferError(
                    "wrong-hash",
                    f"{name} is not what it was when it was checked.",
                    "Verify it, or get it again.",
                    f"sha256 {found}, expected {expected}",
                )
            _finished(copy, source, found if proof else "", stop)
            ready(copy)
            copy.replace(target)
        except Stopped as stopped:
            if stopped.why == "cancel":
                _removed(copy)
            raise
        except OSError as error:
            if error.errno in FULL:
                _removed(copy)
            raise disk_error(error, target) from error
    sync_folder(target.parent)
    return found


def _begun(copy: Path) -> bool:
    """Whether a copy was begun that can be gone on with: a file of its own, not a link to somebody else's."""
    try:
        status = copy.lstat()
    except FileNotFoundError:
        return False
    return stat.S_ISREG(status.st_mode) and status.st_nlink <= 1


def _poured(source: Path, copy: Path, resumed: bool, stop: Stop | None, news: Callable[[int], None]) -> str:
    """Copies the bytes, those of an earlier run first read back; their sha256 in the end."""
    digest, block = hashlib.sha256(), bytearray(BLOCK)
    view, done, unsynced = memoryview(block), 0, 0
    if not resumed:
        copy.unlink(missing_ok=True)  # never emptied: it could be another name of somebody's file
    with io.FileIO(copy, "r+" if resumed else "x+") as to, _opened(source) as stream:
        while resumed and (count := to.readinto(block)):
            digest.update(view[:count])
            done += count
            news(done)
            check(stop)
        stream.seek(done)
        while count := _read(stream, block, source):
            _write(to, view[:count])
            digest.update(view[:count])
            done, unsynced = done + count, unsynced + count
            if unsynced >= _SYNC_BYTES:  # so that the end does not wait for all of it at once
                os.fsync(to.fileno())
                unsynced = 0
            news(done)
            check(stop)
    return digest.hexdigest()


@contextmanager
def _opened(source: Path) -> Iterator[io.FileIO]:
    try:
        stream = open_bytes(source)
    except OSError as error:
        raise disk_error(error, source) from error
    with stream:
        read_ahead(stream.fileno())
        yield stream


def _read(stream: io.FileIO, block: bytearray, source: Path) -> int:
    try:
        return stream.readinto(block) or 0
    except OSError as error:  # the disk that is read, not the one that is written
        raise disk_error(error, source) from error


def _write(to: io.FileIO, data: memoryview) -> None:
    while data:
        data = data[to.write(data) or 0 :]


def _finished(copy: Path, source: Path, proof: str, stop: Stop | None) -> None:
    """Flushes a copy and gives it its source's time; with `proof`, reads it back from the disk."""
    status = source.stat()
    os.utime(copy, ns=(status.st_atime_ns, status.st_mtime_ns))
    descriptor = os.open(copy, os.O_RDWR | getattr(os, "O_BINARY", 0))
    try:
        os.fsync(descriptor)
        if proof and hasattr(os, "posix_fadvise"):  # from the disk, not from memory
            os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
    finally:
        os.close(descriptor)
    if proof and hash_file(copy, stop).sha256 != proof:
        _removed(copy)
        raise TransferError(
            "wrong-hash",
            f"The copy of {printable(source.name)} is not what was written: its disk may be failing.",
            "Check that disk, or choose another one.",
        )


def _removed(path: Path) -> None:
    with suppress(OSError):
        path.unlink(missing_ok=True)
