"""The log folder as one file to send to somebody. Logs hold no chat text, and nothing else is packed."""

from __future__ import annotations

import os
import stat
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from tandem.errors import TandemError
from tandem.files import replacing

LARGEST: Final = 16 << 20
"""Bytes taken of one log, its end: where the fault stands."""

_ELSEWHERE: Final = "Choose another folder, or make room there."


def log_zip(folder: Path, target: Path) -> int:
    """Packs the logs in `folder` into the zip file `target`; all of it is there, or nothing.

    Logs are regular files that lie in the folder itself and are named `*.log` or `*.log.*`; links are not followed.
    A log that vanishes meanwhile is left out. A file that was at `target` is replaced.

    Returns:
        Number of logs in it; 0 makes an empty zip file.

    Raises:
        TandemError: The folder cannot be read, or the file cannot be written.
    """
    try:
        logs = sorted(_regular(folder))
    except OSError as error:
        raise TandemError("The folder with the logs cannot be read.", "Check its permissions.", str(error)) from error
    try:
        with replacing(target) as file, zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
            return sum(_add(archive, log) for log in logs)
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise TandemError(f"The logs cannot be saved there: {reason}.", _ELSEWHERE, str(error)) from error


def _regular(folder: Path) -> Iterator[Path]:
    for path in folder.iterdir():
        if ".log" in path.suffixes and path.is_file() and not path.is_symlink():
            yield path


def _add(archive: zipfile.ZipFile, log: Path) -> bool:
    """Whether the log could still be read."""
    try:
        # A pipe that took the file's place must not be waited for, nor a link be followed.
        handle = os.open(log, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOFOLLOW", 0))
        with os.fdopen(handle, "rb") as file:
            status = os.fstat(file.fileno())
            if not stat.S_ISREG(status.st_mode):
                return False
            file.seek(max(0, status.st_size - LARGEST))
            text = file.read(LARGEST)
    except OSError:
        return False
    archive.writestr(os.fsencode(log.name).decode("utf-8", "replace"), text)
    return True
