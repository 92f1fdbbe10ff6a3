"""What a killed process has left in the model folder and nobody goes on with: taken away, where it is surely Tandem's.

An unfinished write goes after an hour, a copy that nobody went on with after a week; a record or a lock whose part is
gone, at once. What somebody holds, and what is not named as Tandem names it, stays.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Final

from tandem.models.disk import COPY
from tandem.models.errors import TransferError
from tandem.models.locks import LOCK, PART, Lock

_RECORD: Final = ".json"

_UNFINISHED: Final = f".tandem-*{PART}"  # as `files.replacing` names them
_UNFINISHED_S: Final = 3600.0
_COPY_S: Final = 7 * 86_400.0


def sweep(folder: Path, owns: Callable[[Path], bool], clock: Callable[[], float] = time.time) -> None:
    """Takes it away; never fails: what cannot be removed stays.

    Args:
        folder: The model folder.
        owns: Whether a file's place in it is one where only Tandem puts files.
        clock: The time, as files have it.
    """
    now = clock()
    with suppress(OSError):
        for depth in ("", "*/", "*/*/"):
            for path in list(folder.glob(f"{depth}{_UNFINISHED}")):
                if _age(path, now) > _UNFINISHED_S:
                    _removed(path)
            for path in list(folder.glob(f"{depth}*{PART}{LOCK}")) + list(folder.glob(f"{depth}*{PART}{_RECORD}")):
                part = path.with_name(path.name.removesuffix(LOCK).removesuffix(_RECORD))
                if owns(part.with_name(part.name.removesuffix(PART))) and not part.exists():
                    _if_free(part, part.with_name(part.name + _RECORD), partial(_gone, part))
            for path in list(folder.glob(f"{depth}*{COPY}")) + list(folder.glob(f"{depth}*{COPY}{LOCK}")):
                copy = path.with_name(path.name.removesuffix(LOCK))
                if owns(copy.with_name(copy.name.removesuffix(COPY))) and _old(copy, now):
                    _if_free(copy, copy, partial(_old, copy, now))


def _if_free(held: Path, path: Path, still: Callable[[], bool]) -> None:
    """Removes a file under the lock of what it belongs to, and the lock."""
    lock = Lock(held)
    with suppress(TransferError):
        lock.acquire(patience_s=0)
        try:
            if still():
                _removed(path)
        finally:
            lock.release()


def _gone(part: Path) -> bool:
    return not part.exists()


def _old(copy: Path, now: float) -> bool:
    """Whether nobody has written to a copy for long, or it is not there."""
    return not copy.exists() or _age(copy, now) > _COPY_S


def _age(path: Path, now: float) -> float:
    try:
        return now - path.lstat().st_mtime
    except OSError:
        return 0.0


def _removed(path: Path) -> None:
    with suppress(OSError):
        path.unlink(missing_ok=True)
