"""The engine, as the window sees it: requests go in, events come out in the GUI thread, nobody waits.

`EngineWorker` is a thread that lives as long as the window. It starts the engine's process itself, since on Linux that
process dies with the thread that started it, and only this thread reads from it. A stop goes through a helper thread:
sending may block while the pipe is full, and this thread may be busy with the very request that is to be stopped.
"""

from __future__ import annotations

import queue
import threading
import time
from collections import deque
from collections.abc import Callable
from contextlib import closing, suppress
from pathlib import Path
from typing import Final

import msgspec
from PySide6.QtCore import QObject, QThread, QTimer, Signal, Slot

from tandem.engine import client
from tandem.engine.client import EngineClient, RequestStopped
from tandem.engine.protocol import Count, Event, Generate, Load, Loaded, Progress
from tandem.errors import EngineDied, TandemError
from tandem.ui.workers import Faults, JobThread, unexpected

HANG_AFTER_S: Final = client.HANG_AFTER_S
"""A busy engine that says nothing for this long is ended."""

KILL_AFTER_MS: Final = 1000
"""A closing engine gets this long to end by itself."""

_IDLE_CHECK_S: Final = 1.0  # how often an idle engine is looked after
_KILL_AGAIN_MS: Final = 100
_START_POLL_S: Final = 0.02


class Starting(msgspec.Struct, frozen=True):
    """The engine's process is being started for the load `id`."""

    id: int


class Halted(msgspec.Struct, frozen=True):
    """The request ended without a result because it was stopped; `lost` when the engine's process ended with it."""

    id: int
    lost: bool = False


class Problem(msgspec.Struct, frozen=True):
    """The request failed; with an `EngineDied` the pair is gone as well. Id 0: an idle engine died."""

    id: int
    error: TandemError


Report = Event | Starting | Halted | Problem
"""What comes out of the worker."""


class EngineWorker(JobThread):
    """Owns the engine's process.

    Args:
        log_folder: Where the engine's log goes.
        faults: Gets errors that nobody expected.
        parent: Qt's parent.
        hang_after_s: Seconds of silence after which a busy engine is ended.

    Attributes:
        arrived: There are reports to `take`. Emitted once for all that lie there.
    """

    arrived = Signal()

    def __init__(
        self, log_folder: Path, faults: Faults, parent: QObject | None = None, hang_after_s: float = HANG_AFTER_S
    ) -> None:
        super().__init__("engine worker", faults, parent)
        self._client = EngineClient(log_folder, hang_after_s)
        self._helper = JobThread("engine helper", faults, self)
        self._reports: deque[Report] = deque()
        self._told = threading.Event()
        self._stopped: set[int] = set()  # requests that are not wanted any more
        self._starting: int | None = None
        self._running: int | None = None
        self._up = False  # there is a process that should be alive
        self._closing = False
        self._killer = QTimer(self)
        self._killer.timeout.connect(self._kill_for_close)
        self.finished.connect(self._killer.stop)

    @property
    def pid(self) -> int | None:
        """Process id of the engine, None when none runs."""
        with suppress(AttributeError, ValueError):  # it is being ended at this very moment
            return self._client.pid
        return None

    @property
    def helper(self) -> JobThread:
        """The thread that stops requests; for those who count threads."""
        return self._helper

    def next_id(self) -> int:
        """An id for a request."""
        return self._client.next_id()

    def load(self, request: int, make: Callable[[], Load]) -> None:
        """Loads a pair in a new process; the one before is ended.

        Reports `Starting`, `Hello`, `Progress` and in the end `Loaded`, `Halted` or `Problem`.

        Args:
            request: An id from `next_id`.
            make: Makes the `Load` with that id, in the worker's thread; may look at files and raise `TandemError`.
        """
        self._ask(request, lambda: self._load(request, make))

    def generate(self, request: Generate) -> None:
        """Asks for an answer; reports its events and in the end `Done`, `Halted` or `Problem`."""
        self._ask(request.id, lambda: self._generate(request))

    def count(self, request: Count) -> None:
        """Counts a conversation's tokens; reports `Counted`, `Halted` or `Problem`."""
        self._ask(request.id, lambda: self._report(self._client.count(request)))

    def stop(self, request: int) -> None:
        """Stops a request, whether it waits or runs; it then reports its end. Returns at once."""
        self._stopped.add(request)
        self._helper.submit(lambda: self._stop(request), urgency=-1)

    def unload(self) -> None:
        """Ends the engine's process after what runs now, and with it the pair; reports nothing."""
        self.submit(self._end_process)

    def kill(self) -> None:
        """Ends the engine's process at once, by a signal; what runs then reports an `EngineDied`. Never blocks."""
        with suppress(AttributeError, OSError):  # AttributeError: it is being started at this very moment
            self._client.kill()

    def take(self) -> list[Report]:
        """All reports that lie there, oldest first."""
        self._told.clear()
        reports = []
        with suppress(IndexError):
            while True:
                reports.append(self._reports.popleft())
        return reports

    def start(self, priority: QThread.Priority = QThread.Priority.InheritPriority) -> None:
        """Starts the thread and its helper."""
        self._helper.start()
        super().start(priority)

    def shut(self) -> None:
        """Ends engine, helper and thread. Returns at once; `finished` tells when. Safe to call twice."""
        if self._closing:
            return
        self._closing = True
        running = self._running
        if running is not None:
            self.stop(running)
        super().shut()
        self._killer.start(KILL_AFTER_MS)

    def _ask(self, request: int, job: Callable[[], None]) -> None:
        def run() -> None:
            self._running = request
            try:
                if self._closing or request in self._stopped:
                    self._report(Halted(request))
                else:
                    job()
            except RequestStopped:
                self._report(Halted(request))
            except TandemError as error:
                if isinstance(error, EngineDied):
                    self._end_process()
                self._faults.note(self.objectName(), error)
                stopped = request in self._stopped and isinstance(error, EngineDied)
                self._report(Halted(request, lost=True) if stopped else Problem(request, error))
            except Exception as error:
                self._faults.report(self.objectName(), error)
                self._report(Problem(request, unexpected()))
            finally:
                self._running = None
                self._stopped.discard(request)

        self.submit(run)

    def _load(self, request: int, make: Callable[[], Load]) -> None:
        self._end_process()
        self._report(Starting(request))
        load = make()
        self._starting = request
        try:
            hello = self._client.start()
        finally:
            self._starting = None
        self._up = True
        self._report(hello)
        loaded: Loaded | None = None
        try:
            if request not in self._stopped:
                loaded = self._client.load(load, self._on_progress)
        finally:
            if loaded is None or request in self._stopped:  # it holds memory and is of no use
                self._end_process()
        self._report(Halted(request) if request in self._stopped else loaded or Halted(request))

    def _on_progress(self, event: Progress) -> None:
        self._report(event)
        if event.id in self._stopped:  # it was stopped before the engine knew of it
            self._client.stop(event.id)

    def _generate(self, request: Generate) -> None:
        with closing(self._client.generate(request)) as events:  # type: ignore[type-var]  # a generator
            for event in events:
                self._report(event)

    def _stop(self, request: int) -> None:
        """In the helper's thread."""
        while self._starting == request:  # a start cannot be stopped otherwise, and may only just begin
            self.kill()
            time.sleep(_START_POLL_S)
        self._client.stop(request)

    def _end_process(self) -> None:
        self._up = False
        self._client.close()

    def _report(self, report: Report) -> None:
        self._reports.append(report)
        if not self._told.is_set():
            self._told.set()
            self.arrived.emit()

    def _next(self) -> Callable[[], Callable[[], None] | None] | None:
        """The next job; an engine that dies while there is none is noticed."""
        while True:
            with suppress(queue.Empty):
                return self._jobs.get(timeout=_IDLE_CHECK_S)[2] if self._up else self._jobs.get()[2]
            if not self._client.alive:
                self._notice_death()

    def _notice_death(self) -> None:
        try:
            self._client.count(Count(self.next_id(), ()))  # fails, and says why
        except TandemError as error:
            self._faults.note(self.objectName(), error)
            self._report(Problem(0, error))
        self._end_process()

    def _last(self) -> None:
        self._end_process()
        self._helper.shut()
        self._helper.wait()

    @Slot()
    def _kill_for_close(self) -> None:
        if not self.isRunning():  # also if it never began
            self._killer.stop()
        else:  # again and again: it may be starting one
            self._killer.setInterval(_KILL_AGAIN_MS)
            self.kill()
