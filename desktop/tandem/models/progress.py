"""How far a download is, as values that a window and a terminal can show."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from tandem.models.state import ACTIVE, FileState


class FileProgress(msgspec.Struct, frozen=True):
    """One file of a job.

    Attributes:
        name: The file's name.
        state: Where it stands.
        done: Bytes that are on the disk.
        total: Bytes that it has when it is whole, exact as soon as the Hub has told.
    """

    name: str
    state: FileState
    done: int = 0
    total: int = 0


class Waiting(msgspec.Struct, frozen=True):
    """Why nothing comes in just now, and when it is tried again.

    Attributes:
        sentence: What happened (English, for `localised`).
        seconds: Until the next try.
        attempt: Which try that will be, from 2 on.
        tries: How many there will be at most without any progress; 0 for unknown.
    """

    sentence: str
    seconds: float
    attempt: int
    tries: int = 0


class JobProgress(msgspec.Struct, frozen=True):
    """A pair's download, or the check of files.

    Attributes:
        key: The pair's key in the catalog.
        files: Its files, the target first.
        bytes_per_s: Over the last seconds; None while it is not known.
        left_s: Seconds left at that speed; None while it is not known.
        waiting: Set between two tries.
        sentence: Why it was paused or failed (English), "" otherwise.
        remedy: What to do about it.
        fault: Which kind of fault that was, see `errors.TransferFault`; "" for none. A window offers a button by it.
    """

    key: str
    files: tuple[FileProgress, ...]
    bytes_per_s: float | None = None
    left_s: float | None = None
    waiting: Waiting | None = None
    sentence: str = ""
    remedy: str = ""
    fault: str = ""

    @property
    def done(self) -> int:
        """Bytes of all files that are here."""
        return sum(file.done for file in self.files)

    @property
    def total(self) -> int:
        """Bytes of all files."""
        return sum(file.total for file in self.files)

    @property
    def running(self) -> bool:
        """Whether anything is being done."""
        return any(file.state in ACTIVE for file in self.files)

    @property
    def current(self) -> FileProgress | None:
        """The file that is worked on; None for none."""
        at_work = [file for file in self.files if file.state in ACTIVE and file.state is not FileState.QUEUED]
        return at_work[0] if at_work else None


Report = Callable[[JobProgress], None]
"""Gets each news of a job, in the thread that does it, at most some ten times a second and at every change of state."""


def nobody(_progress: JobProgress) -> None:
    """Tells nobody."""
