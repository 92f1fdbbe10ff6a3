"""Threads that work for the window, and the one place where errors that nobody expected arrive.

A `JobThread` does one job after the other. Jobs are given to it from the GUI thread, and what they give or raise comes
back to the GUI thread; neither side ever waits for the other. `Threads` (in `controller`) makes all of them and ends
them.
"""

from __future__ import annotations

import itertools
import logging
import logging.handlers
import math
import queue
import sys
import threading
import time
import traceback
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Final, TypeVar

from PySide6.QtCore import QObject, QThread, QTimer, Signal, Slot

from tandem.errors import TandemError

LOG_NAME: Final = "tandem-window.log"
TOLD_EVERY_S: Final = 10.0
_LOG_BYTES: Final = 1 << 20
_T = TypeVar("_T")


class Faults(QObject):
    """Takes every error that is a fault of ours: it is logged, and somebody is told.

    What is logged are the kind of the error and the places in the code, never its message: that may hold chat text.

    Args:
        log_folder: Where the log goes.
        parent: Qt's parent.

    Attributes:
        reported: A fault was logged; the name of the part that it happened in. Arrives in the GUI thread, for each
            part at most every `TOLD_EVERY_S`: one in painting comes again with each, and a message is painted too.
    """

    reported = Signal(str)

    def __init__(self, log_folder: Path, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._folder = log_folder
        self._handler: logging.Handler | None = None
        self._lock = threading.Lock()
        self._hooks: tuple[Any, Any] | None = None
        self._told: dict[str, float] = {}
        self.count = 0

    def report(self, part: str, error: BaseException) -> None:
        """Logs a fault; any thread may call it."""
        frames = "".join(traceback.format_tb(error.__traceback__))
        if isinstance(error, TandemError):  # its sentence and details are made for the log
            frames += f"{error.sentence} {error.details}\n"
        self._write(f"{part}: {type(error).__name__}\n{frames}")
        with self._lock:
            now = time.monotonic()
            tell = now >= self._told.get(part, -math.inf) + TOLD_EVERY_S
            if tell:
                self._told[part] = now
        if tell:
            self.reported.emit(part)

    def note(self, part: str, error: TandemError) -> None:
        """Logs an error that the user is told of elsewhere; any thread may call it."""
        self._write(f"{part}: {type(error).__name__}: {error.sentence} {error.details[-2000:]}")

    def install(self) -> None:
        """Takes errors too that reach the top of any thread, the GUI's included."""
        if self._hooks is None:
            self._hooks = sys.excepthook, threading.excepthook
            sys.excepthook = self._on_exception
            threading.excepthook = self._on_thread_exception

    def close(self) -> None:
        """Gives the hooks back and closes the log. Safe to call twice."""
        if self._hooks is not None:
            sys.excepthook, threading.excepthook = self._hooks
            self._hooks = None
        with self._lock:
            if self._handler is not None:
                with suppress(OSError):  # what a full disk did not take yet
                    self._handler.close()
                self._handler = None

    def _write(self, text: str) -> None:
        record = logging.LogRecord("tandem.window", logging.ERROR, "", 0, text, None, None)
        with self._lock:
            self.count += 1
            try:
                if self._handler is None:
                    self._handler = _QuietHandler(
                        self._folder / LOG_NAME, maxBytes=_LOG_BYTES, backupCount=2, encoding="utf-8", errors="replace"
                    )
                    self._handler.setFormatter(logging.Formatter("%(asctime)s %(message)s"))
                self._handler.emit(record)
            except OSError:  # no log then; the window still tells that something happened
                self._handler = None

    def _on_exception(self, kind: type[BaseException], error: BaseException, trace: TracebackType | None, /) -> None:
        if isinstance(error, KeyboardInterrupt | SystemExit):
            sys.__excepthook__(kind, error, trace)
        else:
            self.report("window", error.with_traceback(trace))

    def _on_thread_exception(self, arguments: threading.ExceptHookArgs, /) -> None:
        if arguments.exc_value is not None and not isinstance(arguments.exc_value, SystemExit):
            self.report("thread", arguments.exc_value)


class _QuietHandler(logging.handlers.RotatingFileHandler):
    """Says nothing on stderr when the disk is full: the window tells of the fault all the same."""

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802 - logging's name
        """Nothing can be added."""


class JobThread(QThread):
    """A thread that does jobs one after the other.

    Args:
        name: For the log and for debuggers.
        faults: Gets what a job raises that is no `TandemError`.
        parent: Qt's parent.
    """

    _arrived = Signal()

    def __init__(self, name: str, faults: Faults, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self.setObjectName(name)
        self._faults = faults
        self._order = itertools.count()
        # by urgency, then in the order in which they came; None ends the thread
        self._jobs: queue.PriorityQueue[tuple[int, int, Callable[[], Callable[[], None] | None] | None]]
        self._jobs = queue.PriorityQueue()
        self._results: deque[Callable[[], None]] = deque()
        self._arrived.connect(self._deliver)

    def submit(
        self,
        job: Callable[[], _T],
        done: Callable[[_T], None] | None = None,
        failed: Callable[[TandemError], None] | None = None,
        *,
        urgency: int = 0,
    ) -> None:
        """Does a job in the thread; `done` or `failed` is then called in the thread that made this object.

        An error of ours is reported as a fault; `failed` gets a sentence about it.

        Args:
            job: What to do.
            done: Gets what it gave.
            failed: Gets the error; without it the error is reported as a fault, so that none is silent.
            urgency: Smaller is sooner.
        """

        def run() -> Callable[[], None] | None:
            try:
                result = job()
            except TandemError as error:
                self._faults.note(self.objectName(), error)
                return self._failure(error, failed)
            except Exception as error:
                self._faults.report(self.objectName(), error)
                return None if failed is None else _call(failed, unexpected())
            return None if done is None else _call(done, result)

        self._jobs.put((urgency, next(self._order), run))

    def shut(self) -> None:
        """Ends the thread after the jobs that wait; safe to call twice. The signal `finished` tells when."""
        self._jobs.put((1_000_000, next(self._order), None))

    def run(self) -> None:
        """The thread's life; see `QThread`."""
        try:
            while True:
                job = self._next()
                if job is None:
                    break
                self._put(job())
        finally:
            self._last()

    def _next(self) -> Callable[[], Callable[[], None] | None] | None:
        """The next job, None for the end. For subclasses that have something to do while idle."""
        return self._jobs.get()[2]

    def _last(self) -> None:
        """What to do at the very end, in the thread. For subclasses."""

    def _put(self, result: Callable[[], None] | None) -> None:
        if result is not None:
            self._results.append(result)
            self._arrived.emit()

    def _failure(self, error: TandemError, failed: Callable[[TandemError], None] | None) -> Callable[[], None] | None:
        if failed is not None:
            return _call(failed, error)
        self._faults.report(self.objectName(), error)
        return None

    @Slot()
    def _deliver(self) -> None:
        while self._results:
            self._results.popleft()()


def _call(function: Callable[[_T], None], value: _T) -> Callable[[], None]:
    return lambda: function(value)


def unexpected() -> TandemError:
    """What the user is told of a fault of ours."""
    return TandemError("Something went wrong inside Tandem.", "Try again; the log says what happened.")


class Throttle(QObject):
    """Calls a function at most every `interval_ms`: the first time at once, later ones together.

    Args:
        function: What to call.
        interval_ms: Least time between two calls.
        parent: Qt's parent.
    """

    def __init__(self, function: Callable[[], None], interval_ms: int, parent: QObject) -> None:
        super().__init__(parent)
        self._function = function
        self._waiting = False
        self._timer = QTimer(self)
        self._timer.setSingleShot(True)
        self._timer.setInterval(interval_ms)
        self._timer.timeout.connect(self._on_timeout)

    @Slot()
    def call(self) -> None:
        """Calls the function now or soon."""
        if self._timer.isActive():
            self._waiting = True
        else:
            self._timer.start()
            self._function()

    def stop(self) -> None:
        """Nothing is called any more until the next `call`."""
        self._timer.stop()
        self._waiting = False

    @Slot()
    def _on_timeout(self) -> None:
        if self._waiting:
            self._waiting = False
            self._timer.start()
            self._function()
