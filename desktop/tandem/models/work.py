"""Progress of work on files that are here: verifying, importing, moving. Only allowed steps from state to state."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Sequence
from typing import Final

import msgspec

from tandem.models.progress import FileProgress, JobProgress, Report
from tandem.models.state import FileState, follows

_EVERY_S: Final = 0.1
_WINDOW_S: Final = 3.0


class Work:
    """Keeps a job's progress and tells it: each change of state at once, bytes some ten times a second.

    Args:
        key: What is done: "verify", "import", "move".
        files: In the order they will be worked on.
        report: Is told.
        clock: Seconds that only grow.
    """

    def __init__(
        self, key: str, files: Sequence[FileProgress], report: Report, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._files = list(files)
        self._key = key
        self._report = report
        self._clock = clock
        self._told = -_EVERY_S
        self._passed = 0  # bytes worked through, of all files
        self._seen: deque[tuple[float, int]] = deque([(clock(), 0)])
        self._tell()

    def state(self, index: int) -> FileState:
        """Where a file stands."""
        return self._files[index].state

    def step(self, index: int, state: FileState, done: int | None = None) -> None:
        """A file goes to another state.

        Args:
            index: Which file.
            state: Its new one.
            done: Its bytes, None leaves them.

        Raises:
            ValueError: That step is not allowed.
        """
        before = self._files[index]
        if not follows(before.state, state):
            raise ValueError(f"{before.name}: {before.state} cannot become {state}")
        self._files[index] = msgspec.structs.replace(before, state=state, done=before.done if done is None else done)
        self._tell()

    def advance(self, index: int, done: int) -> None:
        """More of a file has been worked through.

        Args:
            index: Which file.
            done: Bytes of it, in all.
        """
        before = self._files[index]
        self._passed += max(0, done - before.done)
        self._files[index] = msgspec.structs.replace(before, done=done)
        if self._clock() - self._told >= _EVERY_S:
            self._tell()

    def say(self, sentence: str, remedy: str = "") -> None:
        """Tells something besides the figures."""
        self._tell(sentence, remedy)

    def _tell(self, sentence: str = "", remedy: str = "") -> None:
        now = self._told = self._clock()
        self._seen.append((now, self._passed))
        while len(self._seen) > 2 and now - self._seen[0][0] > _WINDOW_S:
            self._seen.popleft()
        began, before = self._seen[0]
        speed = (self._passed - before) / (now - began) if now > began and self._passed > before else None
        left = sum(max(0, file.total - file.done) for file in self._files)
        self._report(
            JobProgress(
                key=self._key,
                files=tuple(self._files),
                bytes_per_s=speed,
                left_s=left / speed if speed else None,
                sentence=sentence,
                remedy=remedy,
            )
        )
