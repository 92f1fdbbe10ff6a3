"""The sha256 of a file, stoppable and with progress, as fast as the disk or the processor is."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable
from pathlib import Path
from typing import Final, NamedTuple

from tandem.files import open_bytes
from tandem.models.stop import Stop, Stopped

BLOCK: Final = 1 << 18
"""Bytes hashed at a time: they stay in the processor's cache between reading and hashing."""


class Hashed(NamedTuple):
    """What was read.

    Attributes:
        sha256: 64 hex digits.
        bytes: How many.
        mtime_ns: The file's time when it was opened.
        steady: Whether size and time were the same at the end.
    """

    sha256: str
    bytes: int
    mtime_ns: int
    steady: bool


def quietly(_done: int) -> None:
    """Tells nobody."""


def hash_file(path: Path, stop: Stop | None = None, news: Callable[[int], None] = quietly) -> Hashed:
    """Reads a file once, from its beginning.

    Args:
        path: The file.
        stop: Ends it between two blocks.
        news: Gets the bytes read so far, after each block.

    Raises:
        OSError: It cannot be read, or is no file of bytes.
        Stopped: `stop` was set.
    """
    digest, done = hashlib.sha256(), 0
    block = bytearray(BLOCK)
    view = memoryview(block)
    with open_bytes(path) as stream:
        before = os.fstat(stream.fileno())
        read_ahead(stream.fileno())
        while count := stream.readinto(block):
            digest.update(view[:count])
            done += count
            news(done)
            check(stop)
        after = os.fstat(stream.fileno())
    same = (before.st_size, before.st_mtime_ns) == (after.st_size, after.st_mtime_ns)
    return Hashed(digest.hexdigest(), done, before.st_mtime_ns, same and done == before.st_size)


def check(stop: Stop | None) -> None:
    """Ends what is being done.

    Raises:
        Stopped: `stop` was set.
    """
    if stop is not None and stop.is_set():
        raise Stopped(stop.why or "cancel")


def read_ahead(descriptor: int) -> None:
    """Tells the system that a file is read from end to end."""
    if hasattr(os, "posix_fadvise"):
        os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_SEQUENTIAL)
