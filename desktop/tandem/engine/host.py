"""The engine's process: requests in, events out, stop at any moment, never outliving its parent.

Two threads. The main one loads and decodes. The reader takes requests off the pipe, sets the stop flag the moment a
`Stop` arrives, and ends the process when the pipe ends, even while the main thread is inside llama.cpp.
"""

from __future__ import annotations

import faulthandler
import os
import queue
import signal
import sys
import tempfile
import threading
import traceback
from contextlib import suppress
from multiprocessing.connection import Connection
from pathlib import Path
from typing import TYPE_CHECKING, Final

import msgspec

import tandem
from tandem.engine import protocol
from tandem.engine.lifeline import die_with_parent
from tandem.engine.threads import WAIT_ENVIRONMENT, allowed_cpus
from tandem.errors import EngineError, ModelError, PromptTooLong, TandemError, UsageError

try:
    import resource
except ImportError:  # Windows, which writes no core files
    resource = None  # type: ignore[assignment]  # the same name on every system

if TYPE_CHECKING:
    from tandem.engine.session import Session


_PRIVATE_ENVIRONMENT: Final = {"GGML_NO_BACKTRACE": "1"}
"""An abort must not start a debugger, which takes seconds and prints arguments: they can be chat text."""


class _Unreadable(msgspec.Struct):
    """A frame that is JSON and has an id but is no request: the caller's fault, and it should be told."""

    id: int


class _Inbox:
    """Requests that wait, and which one runs, so that a stop finds it wherever it is."""

    def __init__(self) -> None:
        self.waiting: Final[queue.SimpleQueue[protocol.Request | _Unreadable]] = queue.SimpleQueue()
        self._lock = threading.Lock()
        self._running: int | None = None
        self._stopped: set[int] = set()
        self._last = 0

    def begin(self, request: int, session: Session) -> bool:
        """Marks a request as running; False when it was stopped while it waited."""
        with self._lock:
            session.stop.set(False)
            self._running = self._last = request
            return request not in self._stopped

    def end(self) -> None:
        """Nothing runs."""
        with self._lock:
            self._stopped.discard(self._running or 0)
            self._running = None

    def stop(self, request: int, session: Session) -> None:
        """Stops a request, running or waiting."""
        with self._lock:
            if request == self._running:
                session.stop.set()
            elif request > self._last:  # one that has ended needs no stop; ids only grow
                self._stopped.add(request)


def main(connection: Connection, parent: int, log: str) -> None:
    """Entry point of the process.

    Args:
        connection: The pipe.
        parent: Process id of the parent.
        log: File that gets everything printed, by Python or by native code.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C in a terminal reaches the whole group; the parent decides
    _redirect(log)
    die_with_parent(parent)
    for name, value in {**WAIT_ENVIRONMENT, **_PRIVATE_ENVIRONMENT}.items():
        os.environ.setdefault(name, value)
    _serve(connection)


def _redirect(log: str) -> None:
    if resource is not None:
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))  # a core dump holds the conversation
    descriptor = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    for stream in (sys.stdout, sys.stderr):
        if stream is not None:  # a windowed program has none
            stream.flush()
    os.dup2(descriptor, 1)
    os.dup2(descriptor, 2)
    os.close(descriptor)
    sys.stdout = sys.stderr = os.fdopen(2, "w", buffering=1, encoding="utf-8", errors="replace", closefd=False)
    faulthandler.enable(sys.stderr)


def _serve(connection: Connection) -> None:
    def emit(event: protocol.Event) -> None:
        try:
            connection.send_bytes(protocol.encode(event))
        except OSError:
            os._exit(0)  # nobody listens any more

    try:
        # llama.cpp is loaded only now: its OpenMP reads WAIT_ENVIRONMENT at that moment and never again
        from tandem.engine import bindings
        from tandem.engine.loader import LogTail
        from tandem.engine.session import Session

        bindings.check_symbols()
        python, native = bindings.versions()
        found = tuple(protocol.DeviceInfo(*device[:5]) for device in bindings.devices())
    except TandemError as error:
        emit(_failed(0, error))
        return
    except (ImportError, AttributeError, OSError, RuntimeError) as error:  # llama_cpp binds its symbols when imported
        traceback.print_exc()
        sentence = f"The engine's build of llama.cpp cannot be used: {error}."
        emit(_failed(0, EngineError(sentence, "Install the engine that Tandem was built for.")))
        return
    log = LogTail(sys.stderr.write)
    bindings.set_log(log)
    emit(protocol.Hello(protocol.PROTOCOL, tandem.__version__, python, native, found, allowed_cpus()))
    session, inbox = Session(log, emit), _Inbox()
    threading.Thread(target=_read, args=(connection, inbox, session), daemon=True).start()
    while True:
        request = inbox.waiting.get()
        if isinstance(request, protocol.Stop):
            continue
        try:
            if isinstance(request, _Unreadable):
                raise UsageError("The engine cannot read this request.", "Report this fault of Tandem's.")
            if inbox.begin(request.id, session):
                _handle(request, session)
            else:
                emit(protocol.Stopped(request.id))
        except bindings.Aborted:
            emit(protocol.Stopped(request.id))
        except TandemError as error:
            emit(_failed(request.id, error))
        except MemoryError:
            emit(protocol.Failed(request.id, "EngineError", "Memory ran out.", "Close other programs and try again."))
        except Exception:
            traceback.print_exc()
            sentence = "The engine met a fault of its own."
            emit(protocol.Failed(request.id, "EngineError", sentence, "Try again; the log says what happened."))
        finally:
            inbox.end()


def _handle(request: protocol.Load | protocol.Generate | protocol.Count, session: Session) -> None:
    match request:
        case protocol.Load():
            session.load(request)
        case protocol.Generate():
            session.generate(request)
        case protocol.Count():
            session.count(request)


def _read(connection: Connection, inbox: _Inbox, session: Session) -> None:
    """The reader thread. It leaves by ending the process: the main thread may be deep inside C."""
    try:
        while True:
            frame = connection.recv_bytes()
            try:
                request = protocol.decode_request(frame)
            except msgspec.ValidationError:
                inbox.waiting.put(msgspec.json.decode(frame, type=_Unreadable))
                continue
            if isinstance(request, protocol.Stop):
                inbox.stop(request.id, session)
            else:
                inbox.waiting.put(request)
    except (EOFError, OSError):
        os._exit(0)
    except BaseException:  # a frame we cannot read: the two sides are not of one version
        traceback.print_exc()
        os._exit(1)


def _failed(request: int, error: TandemError) -> protocol.Failed:
    return protocol.Failed(
        id=request,
        kind=type(error).__name__,
        sentence=error.sentence,
        remedy=error.remedy,
        details=error.details[-4000:],
        fault=error.fault if isinstance(error, ModelError) else None,
        exit_code=error.exit_code,
        numbers=(error.prompt_tokens, error.limit) if isinstance(error, PromptTooLong) else None,
    )


def log_file(folder: Path, keep: int = 10) -> Path:
    """A log file for a new engine in `folder`; the oldest beyond `keep` are removed."""
    with suppress(OSError):  # another engine starts too, or Windows holds one open
        logs = sorted(folder.glob("engine-*.log"), key=lambda path: path.stat().st_mtime)
        for old in logs[: max(0, len(logs) - keep + 1)]:
            old.unlink(missing_ok=True)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        descriptor, name = tempfile.mkstemp(prefix="engine-", suffix=".log", dir=folder)
    except OSError as error:
        sentence = f"Tandem cannot write its log in {folder}."
        raise EngineError(sentence, "Make room, or make the folder writable.", str(error)) from error
    os.close(descriptor)
    return Path(name)
