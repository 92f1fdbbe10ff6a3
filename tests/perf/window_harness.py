"""What the benchmarks of the window share: the real window on a scripted engine, and ways to watch its event loop."""

from __future__ import annotations

import os
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

import _path  # noqa: F401  (first: it makes the packages below importable)
import scripted_engine
from PySide6.QtCore import QEvent, QEventLoop, QObject, Qt, QTimer
from PySide6.QtGui import QKeyEvent
from PySide6.QtWidgets import QApplication, QWidget

from support import xscreen
from tandem import paths, settings
from tandem.chat.conversation import Conversation, Figures, Node, Run
from tandem.chat.history import History, file
from tandem.engine.metrics import RunStats

if TYPE_CHECKING:
    from tandem.ui.app import Application

BEAT_MS: Final = 5
PATIENCE_MS: Final = 120_000
SIZE: Final = (1120, 760)


@contextmanager
def platform(name: str) -> Iterator[None]:
    """Qt's platform: "offscreen", or "xcb" on a screen of its own. Before the QApplication is made."""
    with ExitStack() as stack:
        if name == "xcb":
            os.environ["DISPLAY"] = stack.enter_context(xscreen.screen(1366, 768)).display
        os.environ["QT_QPA_PLATFORM"] = name
        yield


@contextmanager
def window(prepare: Callable[[History], None] = lambda _: None) -> Iterator[Application]:
    """The app with its window shown, a home of its own, and the scripted engine in the real one's place.

    Args:
        prepare: Puts chats into the store, before the app opens it.
    """
    with tempfile.TemporaryDirectory() as home:
        os.environ[paths.HOME_VARIABLE] = home
        profile(Path(home), prepare)
        scripted_engine.install()
        # Here and not above: the engine's process imports this module too, and needs no window.
        from tandem.ui.app import Application

        app = QApplication(["tandem"])
        found = Application(app)
        found.window.resize(*SIZE)
        try:
            found.start()
            wait_until(lambda: found.controller.pair.kind == "loaded")
            yield found
        finally:
            found.window.close()
            found.end()


def profile(home: Path, prepare: Callable[[History], None] = lambda _: None) -> None:
    """Makes the home of somebody who has used the app before."""
    os.environ[paths.HOME_VARIABLE] = str(home)
    settings.save(settings.Settings().changed(first_run_done=True, theme="light"))
    history = History.open(file())
    prepare(history)
    history.close()


def long_chat(messages: int) -> tuple[Conversation, list[Node]]:
    """A chat of that many messages, with the answers' Markdown, figures and runs."""
    stats = RunStats(prompt_tokens=500, generated=300, passes=120, verified=300, accepted=180)
    stats.decode_tok_s, stats.tokens_per_pass, stats.acceptance_rate = 25.0, 2.5, 0.6
    figures = Figures(
        stats=stats, draft="3", method="mtp", seed=1, device="CPU", threads=2, context=8192,
        target="tiny-target-q4_0.gguf", drafter="tiny-drafter-q4_0.gguf", cut="end",
    )  # fmt: skip
    text = scripted_engine.MARKDOWN
    nodes: list[Node] = []
    for place in range(1, messages + 1):
        if place % 2:
            nodes.append(Node(place, 0, place - 1 or None, "user", f"Question {place}: why is a draft checked at all?"))
            continue
        runs = tuple(Run("answer", min(5, len(text) - start), start // 5 % 3) for start in range(0, len(text), 5))
        nodes.append(Node(place, 0, place - 1, "assistant", text, figures=figures, runs=runs))
    return Conversation(0, f"A chat of {messages} messages", 1e9, 1e9, messages), nodes


def wait_until(condition: Callable[[], bool], what: str = "") -> None:
    """Runs the event loop until something is so; looks a hundred times a second."""
    loop, timer, late = QEventLoop(), QTimer(interval=10), QTimer(interval=PATIENCE_MS, singleShot=True)
    timer.timeout.connect(lambda: condition() and loop.quit())
    late.timeout.connect(lambda: loop.exit(1))
    timer.start()
    late.start()
    if loop.exec():
        raise TimeoutError(what or "it never came")


def run_for(seconds: float) -> None:
    """Runs the event loop for that long."""
    loop = QEventLoop()
    QTimer.singleShot(round(seconds * 1000), loop.quit)
    loop.exec()


class Heart(QObject):
    """Beats every 5 ms while the event loop is free; what it misses are the window's stalls.

    Attributes:
        gaps_ms: Milliseconds from beat to beat.
        cost: At each beat: seconds since the start, CPU seconds of the thread that paints since the start.
    """

    def __init__(self) -> None:
        super().__init__()
        self.gaps_ms: list[float] = []
        self.cost: list[tuple[float, float]] = []
        self._timer = QTimer(self, interval=BEAT_MS, timerType=Qt.TimerType.PreciseTimer)
        self._timer.timeout.connect(self._beat)

    def start(self) -> None:
        """Begins, with nothing recorded."""
        self.gaps_ms.clear()
        self.cost.clear()
        self._start = self._last = time.perf_counter()
        self._thread_start = time.thread_time()
        self._process_start = time.process_time()
        self._timer.start()

    def stop(self) -> float:
        """Ends; returns the CPU time of the whole process, as a share of one core."""
        self._timer.stop()
        return (time.process_time() - self._process_start) / (time.perf_counter() - self._start)

    def _beat(self) -> None:
        now = time.perf_counter()
        self.gaps_ms.append((now - self._last) * 1000)
        self.cost.append((now - self._start, time.thread_time() - self._thread_start))
        self._last = now


class Painted(QObject):
    """Tells when a widget was painted: calls `then` right after each time."""

    def __init__(self, widget: QWidget, then: Callable[[], None]) -> None:
        super().__init__(widget)
        self._then = then
        widget.installEventFilter(self)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:  # noqa: N802, ARG002  (Qt's name and signature)
        """Waits for the end of this round of painting."""
        if event.type() == QEvent.Type.Paint:
            QTimer.singleShot(0, self, self._then)
        return False


class Typist(QObject):
    """Types a letter every `interval_ms` and measures how long each takes to be painted.

    Attributes:
        latencies_ms: From the key event's post to the end of the first paint after the letter was in.
    """

    def __init__(self, editor: QWidget, text: Callable[[], str], viewport: QWidget, interval_ms: int = 150) -> None:
        super().__init__(editor)
        self.latencies_ms: list[float] = []
        self._editor, self._text = editor, text
        self._sent: float | None = None
        self._length = 0
        self._painted = Painted(viewport, self._on_paint)
        self._timer = QTimer(self, interval=interval_ms)
        self._timer.timeout.connect(self._type)

    def start(self) -> None:
        """Begins, with nothing recorded."""
        self.latencies_ms.clear()
        self._timer.start()

    def stop(self) -> None:
        """Ends."""
        self._timer.stop()

    def _type(self) -> None:
        if self._sent is None:
            self._length, self._sent = len(self._text()), time.perf_counter()
            for kind in (QEvent.Type.KeyPress, QEvent.Type.KeyRelease):
                event = QKeyEvent(kind, Qt.Key.Key_A, Qt.KeyboardModifier.NoModifier, "a")
                QApplication.postEvent(self._editor, event)

    def _on_paint(self) -> None:
        if self._sent is not None and len(self._text()) > self._length:
            self.latencies_ms.append((time.perf_counter() - self._sent) * 1000)
            self._sent = None


def percentile(values: Sequence[float], share: float) -> float:
    """The value that this share of all values does not exceed (nearest rank)."""
    ordered = sorted(values)
    return ordered[max(0, -(-round(share * len(ordered) * 1000) // 1000) - 1)]


def tail(values: Sequence[float], unit: str = "ms") -> str:
    """Median, the far end, and the worst, as text."""
    parts = [f"median {statistics.median(values):.1f}"]
    parts += [f"{name} {percentile(values, share):.1f}" for name, share in (("p99", 0.99), ("p99.9", 0.999))]
    return ", ".join([*parts, f"worst {max(values):.1f}"]) + f" {unit} (n={len(values):,})"
