"""What the disk says, as sentences: full, not writable, not there; and whether there is room."""

from __future__ import annotations

import errno
import os
import shutil
from pathlib import Path
from typing import Final

from tandem.engine.gguf_header import printable
from tandem.models.errors import TransferError

RESERVE: Final = 0.10
"""Room that must be left over, as a share of what is written."""

COPY: Final = ".copy"
"""What is added to a file's name until its copy is whole."""

FULL: Final = frozenset({errno.ENOSPC, errno.EDQUOT})
"""Error numbers of a full disk or a used-up quota."""

_NOT_ALLOWED: Final = frozenset({errno.EACCES, errno.EPERM, errno.EROFS})

_IN_THE_WAY: Final = frozenset({errno.EEXIST, errno.EISDIR, errno.ELOOP})  # a link, a folder, a device


def shown(path: Path) -> str:
    """A path for a sentence: whole where it is short, without what cannot be printed."""
    return printable(str(path), 160)


def disk_error(error: OSError, path: Path) -> TransferError:
    """What an error of the system means for somebody who writes to, or reads, `path`."""
    folder, reason = shown(path.parent), error.strerror or type(error).__name__
    details = f"{shown(path)}: {error}"
    if error.errno in FULL:
        return TransferError(
            "disk-full", f"The disk of {folder} is full.", "Make room on that disk, then go on.", details
        )
    if error.errno in _NOT_ALLOWED:
        return TransferError(
            "disk",
            f"Tandem may not write to {folder}.",
            "Choose another model folder in the settings, or change this one's permissions.",
            details,
        )
    if error.errno == errno.EFBIG:
        return TransferError(
            "disk",
            f"The disk of {folder} cannot hold files as large as this one.",
            "Choose a model folder on another disk in the settings.",
            details,
        )
    if error.errno in _IN_THE_WAY:
        name = printable(Path(os.fsdecode(error.filename)).name if error.filename else path.name)
        return TransferError(
            "disk",
            f"In {folder}, something else has the name {name}.",
            "Move it out of the way, then try again.",
            details,
        )
    if error.errno in {errno.ENOENT, errno.ENOTDIR}:
        return TransferError(
            "disk",
            f"The folder {folder} is not there.",
            "Connect its disk, or choose another model folder in the settings.",
            details,
        )
    return TransferError("disk", f"{folder} cannot be read or written: {reason}.", "Check the disk.", details)


def amount(count: int, up: bool = False) -> str:
    """Bytes for a sentence, as "2.4 GiB" or "12.3 MiB".

    Args:
        count: Bytes.
        up: Rounds up, otherwise down: what is there is never said to be as much as what is needed, if it is not.
    """
    unit, name = (1 << 30, "GiB") if count >= 1 << 30 else (1 << 20, "MiB")
    tenths = -(-10 * count // unit) if up else 10 * count // unit
    return f"{tenths / 10:,.1f} {name}"


def free_bytes(folder: Path) -> int:
    """Room on the disk that `folder` is on, or would be on; 0 where the system does not say."""
    for place in (folder, *folder.parents):
        try:
            return shutil.disk_usage(place).free
        except OSError:
            continue
    return 0


def require_room(folder: Path, needed: int) -> None:
    """Refuses where the disk has no room for so many bytes and `RESERVE` of them besides.

    Args:
        folder: Where they will be written; need not exist yet.
        needed: Bytes.

    Raises:
        TransferError: "no-room".
    """
    wanted, free = needed + int(needed * RESERVE), free_bytes(folder)
    if needed and free < wanted:
        raise TransferError(
            "no-room",
            f"The disk of {shown(folder)} has {amount(free)} free, and {amount(wanted, up=True)} are needed.",
            "Make room on that disk, or choose a model folder on another one in the settings.",
        )
