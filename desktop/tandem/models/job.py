"""How far a job is, kept while it runs and told to whoever asked. Only allowed steps from state to state."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Final

import msgspec

from tandem.errors import TandemError
from tandem.models.pace import Speed
from tandem.models.progress import FileProgress, JobProgress, Report, Waiting
from tandem.models.state import FileState, follows

_EVERY_S: Final = 0.1


class Job:
    """Progress of a download, or of work on files that are here.

    Changes of state are told at once, bytes some ten times a second.

    Args:
        key: The pair's, or what is done: "verify", "import", "move".
        files: As they are before it begins.
        report: Is told.
        clock: Seconds that only grow.
    """

    def __init__(
        self, key: str, files: Sequence[FileProgress], report: Report, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._report = report
        self._clock = clock
        self._speed = Speed()
        self._told = clock() - _EVERY_S
        self.progress = JobProgress(key=key, files=tuple(files))
        """The last news."""

    def begin(self, files: Sequence[FileProgress]) -> None:
        """The files as they are now, before anything is done."""
        self.progress = msgspec.structs.replace(self.progress, files=tuple(files))

    def state(self, index: int) -> FileState:
        """Where a file stands."""
        return self.progress.files[index].state

    def step(self, index: int, *states: FileState, done: int | None = None) -> None:
        """A file goes to another state, where needed by way of others.

        Args:
            index: Which.
            states: Each after the other.
            done: Bytes of it, None leaves them.

        Raises:
            ValueError: Such a step is not allowed.
        """
        for state in states:
            before = self.progress.files[index]
            if not follows(before.state, state):
                raise ValueError(f"{before.name}: {before.state} cannot become {state}")
            if before.state is not state or done not in (None, before.done):
                self._change(index, state=state, done=before.done if done is None else done)
                self._tell()

    def size(self, index: int, done: int, total: int | None = None) -> None:
        """What is on the disk of a file, and how much it will be."""
        self._change(index, done=done, total=self.progress.files[index].total if total is None else total)

    def came(self, index: int, done: int, received: int) -> None:
        """More of a file is on the disk.

        Args:
            index: Which.
            done: Bytes of it in all.
            received: Bytes that came over the network since the last time, written or not.
        """
        now = self._clock()
        self._speed.add(received, now)
        self._change(index, done=done)
        if now - self._told >= _EVERY_S:
            self._tell()

    def advance(self, index: int, done: int) -> None:
        """More of a file has been worked through: so many bytes of it in all."""
        self.came(index, done, max(0, done - self.progress.files[index].done))

    def say(self, sentence: str, remedy: str = "") -> None:
        """Tells something once, besides the figures."""
        self.progress = msgspec.structs.replace(self.progress, sentence=sentence, remedy=remedy)
        self._tell()
        self.progress = msgspec.structs.replace(self.progress, sentence="", remedy="")

    def waits(self, waiting: Waiting | None) -> None:
        """Nothing comes in until the next try; None: it goes on."""
        self._speed.restart()
        self.progress = msgspec.structs.replace(self.progress, waiting=waiting)
        self._tell()

    def quiet(self) -> None:
        """Nothing comes in any more."""
        self._speed.restart()

    def ended(self, error: TandemError) -> None:
        """Why it was paused or failed; is told with the next step."""
        fault = str(getattr(error, "fault", ""))
        self.progress = msgspec.structs.replace(
            self.progress, waiting=None, sentence=error.sentence, remedy=error.remedy, fault=fault
        )

    def tell(self) -> None:
        """Tells it as it is now."""
        self._tell()

    def _change(self, index: int, **fields: object) -> None:
        files = list(self.progress.files)
        files[index] = msgspec.structs.replace(files[index], **fields)
        self.progress = msgspec.structs.replace(self.progress, files=tuple(files))

    def _tell(self) -> None:
        now = self._told = self._clock()
        left = self.progress.total - self.progress.done
        running = self.progress.running
        self.progress = msgspec.structs.replace(
            self.progress,
            bytes_per_s=self._speed.rate(now) if running else None,
            left_s=self._speed.left_s(left, now) if running else None,
        )
        self._report(self.progress)
