"""Who writes a file keeps all others from it, also other processes: a lock beside the file while it is written."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Final, Self

from filelock import FileLock, Timeout

from tandem.engine.gguf_header import printable
from tandem.models.disk import disk_error
from tandem.models.errors import TransferError

LOCK: Final = ".lock"
"""What is added to a file's name for its lock."""

PART: Final = ".part"
"""What is added to a file's name until its download is whole."""

PATIENCE_S: Final = 2.0
"""Whoever only looks whether a lock is free has it for a moment; who wants it waits for so long."""


class Lock:
    """The lock of one file; also a context manager. From any thread.

    Args:
        path: The file; its folder is made.
    """

    def __init__(self, path: Path) -> None:
        self._of = path
        self._path = path.with_name(path.name + LOCK)
        self._lock = FileLock(self._path, timeout=0, thread_local=False)

    def __enter__(self) -> Self:
        self.acquire()
        return self

    def __exit__(self, *_error: object) -> None:
        self.release()

    def acquire(self, patience_s: float = PATIENCE_S) -> None:
        """Takes it.

        Args:
            patience_s: How long to wait while somebody else has it.

        Raises:
            TransferError: "busy" when somebody else has it; "disk", "disk-full".
        """
        try:
            self._of.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._lock.acquire(timeout=patience_s, poll_interval=0.02)
        except Timeout as error:
            raise self.busy(printable(self._of.name)) from error
        except OSError as error:
            raise disk_error(error, self._of) from error

    def held(self) -> bool:
        """Whether somebody has it just now; ask before this one is taken."""
        if not self._path.exists():
            return False
        try:
            with self._lock:
                return False
        except Timeout:
            return True
        except OSError:
            return False

    def require_free(self) -> None:
        """Refuses while somebody has it.

        Raises:
            TransferError: "busy".
        """
        if self.held():
            raise self.busy(printable(self._of.name))

    def release(self) -> None:
        """Gives it back, and leaves nothing of it on the disk."""
        with suppress(OSError):
            self._path.unlink(missing_ok=True)
        self._lock.release()

    def busy(self, name: str) -> TransferError:
        """What is said when somebody else has it."""
        return TransferError("busy", f"{name} is being written by another program.", "Wait for it to finish.")


class PartLock(Lock):
    """The lock of what has come in of a file."""

    def busy(self, name: str) -> TransferError:
        """Somebody downloads it."""
        return TransferError(
            "busy",
            f"{name.removesuffix(PART)} is being downloaded by another Tandem.",
            "Wait until it is done there, or pause it there and resume it here.",
        )


class MovedPartLock(PartLock):
    """The same, for somebody who moves the folder."""

    def busy(self, name: str) -> TransferError:
        """Somebody downloads it."""
        return TransferError("busy", f"{name} is being downloaded.", "Pause the download, then move the folder.")
