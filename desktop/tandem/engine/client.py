"""The other end of the pipe: starts the engine's process, talks to it, and notices when it dies.

One thread uses a client; `stop` and `kill` may come from any. Nothing here imports llama.cpp or Qt. Start it from a
thread that lives as long as the engine shall: on Linux the engine dies with that thread.
"""

from __future__ import annotations

import itertools
import multiprocessing
import os
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from multiprocessing.connection import Connection, wait
from multiprocessing.context import SpawnProcess
from pathlib import Path
from typing import Any, Final, TypeVar

import msgspec

from tandem.engine import host, protocol
from tandem.engine.deaths import DEATHS, describe_death
from tandem.engine.lifeline import interrupts_ignored, tie_child
from tandem.engine.messages import Message, clean
from tandem.engine.protocol import (
    Count,
    Counted,
    Done,
    DrafterProblem,
    Event,
    Failed,
    Generate,
    Hello,
    Load,
    Loaded,
    Pass,
    Progress,
    Stop,
    Stopped,
)
from tandem.errors import EngineDied, EngineError, TandemError

START_TIMEOUT_S: Final = 120.0
"""Loading the libraries takes about a second; a cold disk or a virus scanner can take a minute."""

HANG_AFTER_S: Final = 300.0
"""A busy engine that says nothing for this long is hung. A prefill batch of a large model can take a minute."""

_PIPE_BYTES: Final = 32_768  # what any system's pipe takes without a reader
_LAST_WAIT_S: Final = 5.0  # for the end of a process that was killed; a stuck driver can keep it for ever
_STOP_WAIT_S: Final = 0.05  # for another thread that sends; an engine that reads takes a large request in less
_LOAD_STOP_S: Final = 0.15  # a stopped load gets this long before its process is ended
_TAIL_BYTES: Final = 4000
_T = TypeVar("_T", bound=Event)


class RequestStopped(Exception):
    """A load or a count ended because it was stopped."""


class _Loading:
    """A load under way, which `EngineClient.stop` may have to end by force from another thread."""

    def __init__(self, asked: int, current: int) -> None:
        self.asked: Final = asked
        self.current = current
        self.killed = False
        self._done = False
        self._lock = threading.Lock()

    def finish(self) -> bool:
        """The load has ended by itself; False when it was killed before that."""
        with self._lock:
            self._done = True
            return not self.killed

    def kill(self, kill: Callable[[], None]) -> None:
        """Ends the process unless the load has ended."""
        with self._lock:
            if not self._done:
                self.killed = True
                kill()


class EngineClient:
    """An engine process.

    Args:
        log_folder: Where the engine's log goes.
        hang_after_s: Seconds without an event, while busy, after which the engine counts as hung and is ended.
    """

    def __init__(self, log_folder: Path, hang_after_s: float = HANG_AFTER_S) -> None:
        self._log_folder = log_folder
        self._hang_after_s = hang_after_s
        self._ids = itertools.count(1)
        self._sending = threading.Lock()
        self._connection: Connection[Any, Any] | None = None
        self._process: SpawnProcess | None = None
        self._job: Any = None
        self._log: Path | None = None
        self._loading: _Loading | None = None
        self._ending = False
        self.hello: Hello | None = None

    @property
    def pid(self) -> int | None:
        """Process id, None when it does not run."""
        return self._process.pid if self._process is not None else None

    @property
    def alive(self) -> bool:
        """Whether the process runs."""
        return self._process is not None and self._process.is_alive()

    def start(self) -> Hello:
        """Starts the process and waits until it is up.

        Raises:
            EngineDied: It did not come up.
            EngineError: Its build of llama.cpp lacks something.
        """
        self.close()
        self._ending = False
        context = multiprocessing.get_context("spawn")
        ours, theirs = context.Pipe()
        self._log = host.log_file(self._log_folder)
        self._process = context.Process(
            target=host.main, args=(theirs, os.getpid(), str(self._log)), name="tandem-engine", daemon=True
        )
        with interrupts_ignored():
            self._process.start()
        theirs.close()
        self._connection = ours
        self._job = tie_child(self._process.pid or 0)
        try:
            self.hello = self._answer(0, Hello, START_TIMEOUT_S)
            if self.hello.protocol != protocol.PROTOCOL:
                raise EngineError("The engine is of another version than the app.", "Install Tandem again.")
        except TandemError:
            self.close()
            raise
        return self.hello

    def load(self, request: Load, progress: Callable[[Progress], None] = lambda _: None) -> Loaded:
        """Loads a pair, in a new process if there is none.

        If the engine dies over the drafter it is started again and the target goes on alone.

        Raises:
            RequestStopped: `stop` was called; the process may have been ended for it.
            ModelError: A file or the pair cannot be used.
            EngineDied: The process ended.
        """
        if self._connection is None:
            self.start()
        loading = self._loading = _Loading(request.id, request.id)
        try:
            loaded = self._load(request, loading, progress)
            if loading.finish():
                return loaded
        except EngineDied:
            if not loading.killed:
                raise
        finally:
            # A timer of `stop` must not meet the next engine, nor the next load an engine that it has ended.
            if not loading.finish():
                self.close()
            self._loading = None
        raise RequestStopped

    def _load(self, request: Load, loading: _Loading, progress: Callable[[Progress], None]) -> Loaded:
        stage = "target"

        def on_progress(event: Progress) -> None:
            nonlocal stage
            stage = event.stage
            progress(event)

        try:
            return self._answer(self.send(request), Loaded, progress=on_progress)
        except EngineDied as error:
            if stage != "drafter" or loading.killed or self._ending:
                raise
            self.close()
            self.start()
            loading.current = self.next_id()
            alone = msgspec.structs.replace(request, id=loading.current, drafter=None, method="none")
            loaded = self._answer(self.send(alone), Loaded, progress=progress)
            remedy = "Answers come from the target alone; try the pair again or another."
            problem = DrafterProblem(f"The engine ended while it loaded the drafter ({error.reason}).", remedy)
            return msgspec.structs.replace(loaded, id=request.id, problem=problem)

    def count(self, request: Count) -> Counted:
        """Counts a conversation's tokens."""
        cleaned = msgspec.structs.replace(request, messages=_clean(request.messages))
        return self._answer(self.send(cleaned), Counted)

    def generate(self, request: Generate) -> Iterator[Progress | Pass | Done]:
        """Sends the request at once; yields its events, `Done` last.

        Text that is no Unicode (lone surrogates) is cleaned on the way.

        Raises:
            UsageError: The request makes no sense.
            EngineError: The engine failed over it and goes on.
            EngineDied: The process ended; what was yielded before is all there is.
        """
        request.sampling.check()  # NaN has no JSON
        cleaned = msgspec.structs.replace(
            request,
            messages=None if request.messages is None else _clean(request.messages),
            prompt=None if request.prompt is None else clean(request.prompt),
            stop=tuple(clean(text) for text in request.stop),
        )
        return self._stream(self.send(cleaned))

    def next_id(self) -> int:
        """An id for a request."""
        return next(self._ids)

    def stop(self, request: int) -> None:
        """Stops a request; it then ends with `Done` (reason "stopped") or `RequestStopped`. Any thread may call it.

        It never waits long: while another thread still sends a large request, the stop follows that by itself. A load
        that does not heed it is ended with its process: llama.cpp cannot be interrupted while it maps a file.
        """
        loading, connection = self._loading, self._connection
        mine = loading is not None and request == loading.asked
        stop = Stop(loading.current if loading is not None and mine else request)
        if connection is not None and not self._deliver(connection, stop, _STOP_WAIT_S):
            later = (connection, stop, self._hang_after_s)
            threading.Thread(target=self._deliver, args=later, daemon=True).start()
        if loading is not None and mine:
            timer = threading.Timer(_LOAD_STOP_S, loading.kill, (self.kill,))
            timer.daemon = True
            timer.start()

    def _deliver(self, connection: Connection[Any, Any], stop: Stop, wait_s: float) -> bool:
        """Sends a stop as soon as nobody else sends; False when that took longer than `wait_s`."""
        if not self._sending.acquire(timeout=wait_s):
            return False
        try:
            with suppress(OSError, TypeError):  # the pipe is closed: then it has stopped
                connection.send_bytes(protocol.encode(stop))
        finally:
            self._sending.release()
        return True

    def send(self, request: protocol.Request) -> int:
        """Sends a request and returns its id."""
        connection = self._connection
        if connection is None:
            raise EngineDied("exited", "The engine is not running.", "Start it again.")
        frame = protocol.encode(request)
        if not self._sending.acquire(timeout=self._hang_after_s):
            self.kill()
            raise self._death("hung")
        try:
            if len(frame) <= _PIPE_BYTES:
                connection.send_bytes(frame)
            else:
                self._send_large(connection, frame)
        except OSError as error:
            raise self._death() from error
        finally:
            self._sending.release()
        return request.id

    def _send_large(self, connection: Connection[Any, Any], frame: bytes) -> None:
        """Sends a frame that the pipe cannot hold: an engine that does not read would block us for ever."""
        failures: list[Exception] = []

        def send() -> None:
            try:
                connection.send_bytes(frame)
            except (OSError, TypeError) as error:  # TypeError: `close` took the pipe away in the middle
                failures.append(error)

        thread = threading.Thread(target=send, daemon=True)
        thread.start()
        thread.join(self._hang_after_s)
        if thread.is_alive():
            self.kill()
            thread.join(_LAST_WAIT_S)  # with its reader gone the write fails
            raise self._death("hung")
        if failures:
            raise OSError("the pipe broke") from failures[0]

    def kill(self) -> None:
        """Ends the process at once. Any thread may call it."""
        process = self._process
        if process is not None:
            self._ending = True
            with suppress(ValueError):  # it is closed already
                process.kill()

    def close(self) -> None:
        """Ends the process and waits for its end. Safe to call twice."""
        connection, process = self._connection, self._process
        self._connection = self._process = self._job = None
        if connection is not None:
            connection.close()  # its reader thread ends it
        if process is not None:
            process.join(1.0)
            if process.is_alive():
                process.kill()
                process.join(_LAST_WAIT_S)
            with suppress(ValueError):  # its end was collected by somebody else, so nothing is known of it
                process.close()

    def __enter__(self) -> EngineClient:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _stream(self, request: int) -> Iterator[Progress | Pass | Done]:
        event: Event | None = None
        try:
            while not isinstance(event, Done):
                event = self._next(request, self._hang_after_s)
                if isinstance(event, Stopped):
                    raise RequestStopped
                if not isinstance(event, Progress | Pass | Done):
                    raise EngineError("The engine answered out of turn.", "Start it again.", repr(type(event)))
                yield event
        except GeneratorExit:
            self.stop(request)  # nobody wants the rest
            raise

    def _answer(
        self,
        request: int,
        kind: type[_T],
        timeout_s: float | None = None,
        progress: Callable[[Progress], None] = lambda _: None,
    ) -> _T:
        while True:
            event = self._next(request, timeout_s or self._hang_after_s)
            if isinstance(event, kind):
                return event
            if isinstance(event, Stopped):
                raise RequestStopped
            if isinstance(event, Progress):
                progress(event)

    def _next(self, request: int, timeout_s: float) -> Event:
        """The next event that belongs to `request`; a failure becomes its exception."""
        while True:
            event = self._receive(timeout_s)
            if isinstance(event, Hello):
                return event
            if event.id != request:
                continue  # the tail of an answer that was given up
            if isinstance(event, Failed):
                raise protocol.as_error(event)
            return event

    def _receive(self, timeout_s: float) -> Event:
        connection, process = self._connection, self._process
        if connection is None or process is None:
            raise EngineDied("exited", "The engine is not running.", "Start it again.")
        ready = wait([connection, process.sentinel], timeout_s)
        if not ready:
            process.kill()
            process.join(_LAST_WAIT_S)
            raise self._death("hung")
        try:
            if connection not in ready and not connection.poll(0):
                raise EOFError
            # events may still be in the pipe of a process that has ended
            return protocol.decode_event(connection.recv_bytes())
        except (EOFError, OSError) as error:
            raise self._death() from error

    def _death(self, reason: str | None = None) -> EngineDied:
        process = self._process
        code = None
        if process is not None:
            process.join(_LAST_WAIT_S)
            code = process.exitcode
        tail = self._tail()
        name, sentence, remedy = describe_death(code, tail) if reason is None else DEATHS[reason]
        return EngineDied(name if reason is None else reason, sentence, remedy, tail)

    def _tail(self) -> str:
        try:
            with (self._log or Path()).open("rb") as file:
                file.seek(0, os.SEEK_END)
                file.seek(max(0, file.tell() - _TAIL_BYTES))
                return file.read().decode("utf-8", "replace")
        except OSError:
            return ""


def _clean(messages: tuple[Message, ...]) -> tuple[Message, ...]:
    return tuple(Message(message.role, clean(message.content)) for message in messages)
