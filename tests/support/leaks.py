"""What a test of the window may leave behind: nothing. Finds what it left, and says where that was started.

`watch` wraps the calls that start things (`QTimer.start`, `QThread.start`, `Popen` and so on) to note their place in
the code; only tests do that. A `Census` taken before a test knows afterwards what is new: running threads, active
timers and animations, top-level widgets, child processes.
"""

from __future__ import annotations

import gc
import multiprocessing.process
import multiprocessing.resource_tracker
import subprocess
import sys
import threading
import time
import traceback
import weakref
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

import psutil
import shiboken6
from PySide6.QtCore import (
    QAbstractAnimation,
    QCoreApplication,
    QEvent,
    QObject,
    QProcess,
    QThread,
    QThreadPool,
    QTimeLine,
    QTimer,
)
from PySide6.QtWidgets import QApplication, QWidget

GRACE_S: Final = 1.0
"""How long threads and processes that are about to end are waited for; nothing else is."""

_OWN_WINDOWS: Final = {"QTipLabel"}  # Qt keeps the tooltip that was shown last for a while
_SITE: Final = ("/site-packages/", "/lib/python3", "<frozen", __file__)
_MAIN: Final = threading.main_thread()


class _Register:
    """Started things that can be referred to weakly, with the place where each was started last."""

    def __init__(self) -> None:
        self._places: dict[int, tuple[weakref.ref[Any], traceback.StackSummary]] = {}
        self._lock = threading.RLock()  # reentrant: a weak reference may end while it is held

    def add(self, thing: object) -> None:
        key = id(thing)
        with self._lock:
            self._places[key] = (weakref.ref(thing, lambda _: self._forget(key)), _here())

    def _forget(self, key: int) -> None:
        with self._lock:
            found = self._places.get(key)
            if found is not None and found[0]() is None:  # else the address has a new owner
                del self._places[key]

    def alive(self) -> list[Any]:
        with self._lock:
            things = [reference() for reference, _ in self._places.values()]
        return [thing for thing in things if thing is not None and (not _of_qt(thing) or shiboken6.isValid(thing))]

    def place(self, thing: object) -> str:
        with self._lock:
            found = self._places.get(id(thing))
        return "(nobody saw where)" if found is None else _text(found[1])


_things: Final = _Register()
_timer_ids: Final[dict[int, set[int]]] = {}  # of QObject.startTimer, by the object's id
_process_places: Final[dict[int, traceback.StackSummary]] = {}
_translators: Final[list[QObject]] = []
_watching = False


def watch() -> None:
    """Notes from now on where things are started. Safe to call twice."""
    global _watching
    if _watching:
        return
    _watching = True
    _wrap_timer()
    for kind in (QThread, QAbstractAnimation, QTimeLine, threading.Thread):
        _wrap(kind, "start", _things.add)
    _wrap_timer_ids()
    _wrap(subprocess.Popen, "__init__", lambda popen: _note_process(popen.pid))
    _wrap(multiprocessing.process.BaseProcess, "start", lambda process: _note_process(process.pid))
    _wrap(QProcess, "start", lambda process: _note_process(process.processId()))
    install = QCoreApplication.installTranslator

    def install_translator(translator: QObject) -> bool:
        _translators.append(translator)
        return install(translator)  # type: ignore[arg-type]

    QCoreApplication.installTranslator = staticmethod(install_translator)  # type: ignore[method-assign]


def remove_translators() -> None:
    """Removes every translator that was installed while watching."""
    while _translators:
        translator = _translators.pop()
        if shiboken6.isValid(translator):
            QCoreApplication.removeTranslator(translator)  # type: ignore[arg-type]


def settle() -> None:
    """Lets everything happen that is due: deferred deletes and queued signals."""
    for _ in range(3):  # a delete may post another
        QCoreApplication.sendPostedEvents(None, QEvent.Type.DeferredDelete)
        QCoreApplication.processEvents()


class Census:
    """What was there already. Take it before a test; afterwards `left` tells what came and stayed."""

    def __init__(self, application: QApplication) -> None:
        self._application = application
        self._widgets = {_address(widget) for widget in application.topLevelWidgets()}
        self._active = [weakref.ref(thing) for thing in _active()]
        self._timer_ids = {key: set(ids) for key, ids in _timer_ids.items()}
        self._threads = set(_python_threads())
        self._processes = {child.pid for child in _children()}

    def left(self) -> list[str]:
        """One description for each thing that is still there, with the place where it was started."""
        settle()
        if next(self._found(), None) is not None:
            gc.collect()  # what only a cycle of references keeps is not left behind
            settle()
        soon = [text for kind, text in self._found() if kind not in ("thread", "process")]
        deadline = time.monotonic() + GRACE_S
        while self._ending() and time.monotonic() < deadline:
            QCoreApplication.processEvents()  # a thread may end only when it is told to
            QThread.msleep(5)
        return soon + [text for kind, text in self._found() if kind in ("thread", "process")]

    def remove(self) -> None:
        """Ends what is left, so that the next test starts clean. A thread that does not heed stays."""
        for thing in self._new_active():
            if isinstance(thing, QThread):
                thing.requestInterruption()
                thing.quit()
                thing.wait(1000)
            elif not isinstance(thing, threading.Thread):
                thing.stop()
        for widget in self._new_widgets():
            shiboken6.delete(widget)  # not `close`, which its class may have made its own
        for child in self._new_children():
            child.kill()
        settle()

    def _ending(self) -> bool:
        return any(kind in ("thread", "process") for kind, _ in self._found())

    def _found(self) -> Iterator[tuple[str, str]]:
        for thing in self._new_active():
            kind = "thread" if isinstance(thing, QThread) else "timer"
            yield kind, f"{_says(thing)}, started here:\n{_things.place(thing)}"
        for thing in _things.alive():
            ids = _timer_ids.get(id(thing), set()) - self._timer_ids.get(id(thing), set())
            if isinstance(thing, QObject) and ids and not isinstance(thing, QTimer):
                yield "timer", f"{_says(thing)} has a timer (startTimer), started here:\n{_things.place(thing)}"
        for widget in self._new_widgets():
            yield "widget", f"a top-level widget: {_says(widget)}, parent None"
        for thread in set(_python_threads()) - self._threads:
            yield "thread", f"{thread!r}, started here:\n{_things.place(thread)}"
        pool = QThreadPool.globalInstance().activeThreadCount()
        if pool:
            yield "thread", f"{pool} running thread(s) of the global QThreadPool"
        for child in self._new_children():
            place = _process_places.get(child.pid)
            yield "process", f"{_command(child)}, started here:\n{_text(place) if place else '(nobody saw where)'}"

    def _new_active(self) -> list[Any]:
        return [thing for thing in _active() if not any(thing is old() for old in self._active)]

    def _new_widgets(self) -> list[QWidget]:
        return [
            widget
            for widget in self._application.topLevelWidgets()
            if widget.parent() is None
            and _address(widget) not in self._widgets
            and widget.metaObject().className() not in _OWN_WINDOWS
        ]

    def _new_children(self) -> list[psutil.Process]:
        return [child for child in _children() if child.pid not in self._processes]


def _wrap(kind: type, name: str, note: Callable[[Any], None]) -> None:
    """Has `note` called with the object after each call of the method `name`."""
    original = getattr(kind, name)

    def wrapper(self: Any, *args: Any, **kwargs: Any) -> Any:
        result = original(self, *args, **kwargs)
        note(self)
        return result

    setattr(kind, name, wrapper)


def _wrap_timer() -> None:
    original = QTimer.start

    def start(self: QTimer, *args: Any) -> None:
        # As Qt matches a signal to this slot: an interval is taken, a text or a flag (`textChanged`) is left out.
        wanted = args if args and not isinstance(args[0], bool | str) else ()
        original(self, *wanted)
        _things.add(self)

    QTimer.start = start  # type: ignore[method-assign, assignment]


def _wrap_timer_ids() -> None:
    start, kill = QObject.startTimer, QObject.killTimer

    def start_timer(self: QObject, *args: Any, **kwargs: Any) -> int:
        made = start(self, *args, **kwargs)
        _timer_ids.setdefault(id(self), set()).add(made)
        weakref.finalize(self, _timer_ids.pop, id(self), None)
        _things.add(self)
        return made

    def kill_timer(self: QObject, made: int) -> None:
        _timer_ids.get(id(self), set()).discard(made)
        kill(self, made)

    QObject.startTimer = start_timer  # type: ignore[method-assign, assignment]
    QObject.killTimer = kill_timer  # type: ignore[method-assign, assignment]


def _note_process(pid: int | None) -> None:
    if pid:
        _process_places[pid] = _here()


def _active() -> list[Any]:
    """Timers, animations and QThreads that run."""
    return [thing for thing in _things.alive() if _runs(thing)]


def _runs(thing: object) -> bool:
    if isinstance(thing, QTimer):
        return thing.isActive()
    if isinstance(thing, QThread):
        return thing.isRunning()
    if isinstance(thing, QAbstractAnimation):
        # an animation of a group runs with it
        return thing.state() != QAbstractAnimation.State.Stopped and thing.group() is None
    if isinstance(thing, QTimeLine):
        return thing.state() != QTimeLine.State.NotRunning
    return False


def _python_threads() -> list[threading.Thread]:
    """Threads that Python started; one that Qt started and in which Python code ran is a `_DummyThread` for ever."""
    return [
        thread
        for thread in threading.enumerate()
        if thread is not _MAIN and not isinstance(thread, threading._DummyThread)
    ]


def _children() -> list[psutil.Process]:
    """Child processes that run; the one that multiprocessing keeps for itself does not count."""
    tracker = getattr(multiprocessing.resource_tracker._resource_tracker, "_pid", None)
    found = []
    for child in psutil.Process().children(recursive=True):
        try:
            if child.pid != tracker and child.status() != psutil.STATUS_ZOMBIE:
                found.append(child)
        except psutil.NoSuchProcess:
            continue
    return found


def _command(process: psutil.Process) -> str:
    try:
        return f"process {process.pid}: {' '.join(process.cmdline())[:200]}"
    except psutil.Error:
        return f"process {process.pid}"


def _of_qt(thing: object) -> bool:
    return isinstance(thing, QObject)


def _says(thing: Any) -> str:
    name = thing.objectName()
    parent = thing.parent()
    family = "" if isinstance(thing, QWidget) else f" of {type(parent).__name__ if parent is not None else 'no parent'}"
    return f"{type(thing).__module__}.{type(thing).__name__}{f' {name!r}' if name else ''}{family}"


def _address(widget: QWidget) -> int:
    return int(shiboken6.getCppPointer(widget)[0])


def _here() -> traceback.StackSummary:
    """The calls that led here, without the lines' texts, which are read only when they are shown."""
    return traceback.StackSummary.extract(traceback.walk_stack(sys._getframe(2)), limit=40, lookup_lines=False)


def _text(stack: traceback.StackSummary) -> str:
    """The innermost calls of our own code, outermost first."""
    ours = [frame for frame in stack if not any(part in frame.filename for part in _SITE)]
    lines = [f"  {_short(frame.filename)}:{frame.lineno} in {frame.name}: {frame.line}" for frame in ours[:8]]
    return "\n".join(reversed(lines)) or "(not in our own code)"


def _short(name: str) -> str:
    path = Path(name)
    for root in (Path(__file__).resolve().parents[2], Path.cwd()):
        if path.is_relative_to(root):
            return str(path.relative_to(root))
    return name
