"""Work in the window's own thread that is done in portions, so that nothing has to wait for it."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterator
from typing import Final

from PySide6.QtCore import QObject, QTimer

BUDGET_S: Final = 0.008
"""Time that jobs get at a stretch, in seconds; events come in between."""


class Slices(QObject):
    """Does jobs, one after the other, whenever there is nothing else to do.

    Args:
        parent: Qt's parent; the work ends with it.
        around: Called with what does one stretch of work.
    """

    def __init__(self, parent: QObject, around: Callable[[Callable[[], None]], None]) -> None:
        super().__init__(parent)
        self._around = around
        self._jobs: deque[Iterator[None]] = deque()
        self._after: list[Callable[[], None]] = []
        self._timer = QTimer(self)
        self._timer.setInterval(0)
        self._timer.timeout.connect(self._stretch)

    @property
    def busy(self) -> bool:
        """Whether there is something left to do."""
        return bool(self._jobs or self._after)

    def add(self, job: Iterator[None]) -> None:
        """Adds a job: each `next` does a portion."""
        self._jobs.append(job)
        self._timer.start()

    def after(self, step: Callable[[], None]) -> None:
        """Calls something once, when there is nothing left to do; what it does is not part of a stretch."""
        self._after.append(step)
        self._timer.start()

    def clear(self) -> None:
        """Forgets all jobs and what was to come after them."""
        self._jobs.clear()
        self._after.clear()
        self._timer.stop()

    def _stretch(self) -> None:
        if self._jobs:
            self._around(self._work)
        if self._jobs:
            return
        self._timer.stop()
        steps, self._after = self._after, []
        for step in steps:
            step()

    def _work(self) -> None:
        latest = time.perf_counter() + BUDGET_S
        while self._jobs and time.perf_counter() < latest:
            job = self._jobs[0]
            try:
                next(job)
            except BaseException as end:  # at its end, or by a fault: it is not begun again
                if self._jobs and self._jobs[0] is job:
                    self._jobs.popleft()
                if not isinstance(end, StopIteration):
                    raise
