"""Files that are written whole or not at all, and seen by their owner only."""

from __future__ import annotations

import errno
import io
import os
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import datetime
from pathlib import Path
from typing import BinaryIO


@contextmanager
def replacing(path: Path) -> Iterator[BinaryIO]:
    """A new file that takes `path`'s place when the block ends without an error.

    Until then it has another name in the same folder; after an error nothing of it is left and `path` is as it was.
    Only its owner can read it. Where `path` is a link, what it leads to is replaced.

    Raises:
        OSError: It cannot be written, or what is there is no file of bytes: a device or a pipe would be gone.
    """
    try:
        target = Path(os.path.realpath(path))
    except ValueError as error:  # a name that no file can have
        raise OSError(errno.EINVAL, str(error)) from error
    if target.exists() and not target.is_file():
        raise FileExistsError(errno.EEXIST, "no ordinary file", str(path))
    descriptor, name = tempfile.mkstemp(prefix=".tandem-", suffix=".part", dir=target.parent)
    try:
        with os.fdopen(descriptor, "wb") as stream:
            yield stream
            stream.flush()
            os.fsync(stream.fileno())
        os.replace(name, target)  # noqa: PTH105  (a name, as mkstemp gave it)
    except BaseException:
        with suppress(OSError):
            os.unlink(name)  # noqa: PTH108
        raise
    sync_folder(target.parent)


def write_private(path: Path, data: bytes) -> None:
    """Writes a file in one step; see `replacing`.

    Raises:
        OSError: It cannot be written.
    """
    with replacing(path) as stream:
        stream.write(data)


def read_beginning(path: Path, most: int) -> bytes | None:
    """The first bytes of a file, at most `most`; None when what is there is no file of bytes but a pipe or a device.

    Those are not opened: a pipe would be waited for, and a device need not end.

    Raises:
        OSError: It is not there, is a folder, or cannot be read.
    """
    kind = stat.S_IFMT(path.stat().st_mode)
    if kind not in (stat.S_IFREG, stat.S_IFDIR):
        return None
    with path.open("rb") as stream:
        return stream.read(most)


def open_bytes(path: Path) -> io.FileIO:
    """An ordinary file, for reading. A pipe is not waited for, and a device, which need not end, is not opened.

    Raises:
        OSError: It is not there, is no file of bytes, or cannot be read.
    """
    try:
        _require_bytes(path.stat().st_mode, path)
        file = io.FileIO(path, opener=_without_waiting)
    except ValueError as error:  # a name that no file can have
        raise OSError(errno.EINVAL, str(error)) from error
    try:
        _require_bytes(os.fstat(file.fileno()).st_mode, path)  # it may be another one by now
    except BaseException:
        file.close()
        raise
    return file


def _without_waiting(path: str, flags: int) -> int:
    return os.open(path, flags | getattr(os, "O_NONBLOCK", 0))


def _require_bytes(mode: int, path: Path) -> None:
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    if not stat.S_ISREG(mode):
        raise FileExistsError(errno.EEXIST, "no ordinary file", str(path))


def sync_folder(folder: Path) -> None:
    """Makes a rename in `folder` last through a power cut, where the system can do that."""
    with suppress(OSError):  # Windows opens no folders, and some file systems cannot sync them
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def free_name(path: Path, word: str) -> Path:
    """A name beside `path` that is not taken, with a word and the time in it: `chats.damaged-20261130-024309.db`."""
    stem = f"{path.stem}.{word}-{datetime.now().strftime('%Y%m%d-%H%M%S')}"
    found, number = path.with_name(stem + path.suffix), 2
    while os.path.lexists(found):
        found, number = path.with_name(f"{stem}-{number}{path.suffix}"), number + 1
    return found
