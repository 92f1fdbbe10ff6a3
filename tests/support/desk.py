"""The controller as the window has it, with somebody who listens to all it says."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psutil
from PySide6.QtCore import QObject, Qt, QTimer
from pytestqt.qtbot import QtBot

from support.handset import NEWLINE, TINY, Pair, Script
from tandem import settings
from tandem.chat.conversation import Conversation, Node, Summary
from tandem.chat.history import History
from tandem.settings import PairChoice, Sampling, Settings
from tandem.ui.controller import Controller
from tandem.ui.session_state import Notice, Piece

STORY = "Tell me a short story about a fox."
GREEDY = Sampling(temperature=0.0, max_tokens=60)
ENDLESS = Sampling(temperature=0.0)
"""For `endless_pair`."""

SIGNALS = (
    "ready",
    "first_run",
    "closed",
    "conversations_changed",
    "conversation_opened",
    "node_added",
    "stream_begun",
    "streamed",
    "node_finished",
    "drafter_changed",
    "pair_changed",
    "context_changed",
    "loading",
    "prefilled",
    "running_changed",
    "queued_changed",
    "hits",
    "settings_changed",
    "draft_text",
    "text_returned",
    "notice",
)


class Desk:
    """A controller, and everything that its signals brought.

    Attributes:
        said: Name and arguments of every signal, in order.
        shown: The messages a window would show: paths, added messages, and the answer that is streamed.
    """

    def __init__(self, qtbot: QtBot, **arguments: Any) -> None:
        self.qtbot = qtbot
        self.controller = Controller(**arguments)
        self.said: list[tuple[str, tuple[Any, ...]]] = []
        self.conversation: Conversation | None = None
        self.shown: list[Node] = []
        self.branches: dict[int, tuple[int, int]] = {}
        self.streaming: Node | None = None
        self.pieces: list[Piece] = []
        for name in SIGNALS:
            getattr(self.controller, name).connect(self._ear(name))

    def _ear(self, name: str) -> Callable[..., None]:
        def hear(*arguments: Any) -> None:
            self.said.append((name, arguments))
            handler = getattr(self, f"_on_{name}", None)
            if handler is not None:
                handler(*arguments)

        return hear

    def _on_conversation_opened(self, conversation: Conversation | None, path: list[Node], branches: Any) -> None:
        self.conversation, self.shown, self.branches = conversation, list(path), dict(branches)
        self.streaming, self.pieces = None, []

    def _on_node_added(self, node: Node) -> None:
        self.shown.append(node)

    def _on_stream_begun(self, node: Node) -> None:
        assert self.streaming is None, "two answers stream at once"
        self.streaming, self.pieces = node, []

    def _on_streamed(self, pieces: list[Piece]) -> None:
        assert self.streaming is not None, "text came without an answer"
        self.pieces += pieces

    def _on_node_finished(self, node: Node) -> None:
        assert self.streaming is None or self.streaming.id == node.id
        self.shown = [*(shown for shown in self.shown if shown.id != node.id), node]
        self.streaming = None

    def all(self, name: str) -> list[Any]:
        """The first argument of every such signal (None where it has none)."""
        return [arguments[0] if arguments else None for said, arguments in self.said if said == name]

    def last(self, name: str) -> Any:
        """The first argument of the last such signal."""
        return self.all(name)[-1]

    @property
    def notices(self) -> list[Notice]:
        return self.all("notice")

    @property
    def text(self) -> str:
        """What is streamed so far, of the answer."""
        return "".join(piece.text for piece in self.pieces if piece.channel == "answer")

    @property
    def chats(self) -> list[Summary]:
        found: list[Summary] = self.last("conversations_changed")
        return found

    @property
    def answer(self) -> Node:
        """The last message, an answer that ended."""
        node = self.shown[-1]
        assert node.role == "assistant"
        return node

    def wait(self, condition: Callable[[], object], timeout: int = 30_000) -> None:
        """Lets the event loop run until the condition holds."""
        self.qtbot.waitUntil(lambda: bool(condition()), timeout=timeout)

    def start(self) -> None:
        """Starts, and waits for the chats."""
        self.controller.start()
        self.wait(lambda: self.all("ready"))
        self.wait(lambda: self.controller.chats.conversation is None and self.all("conversation_opened"))

    def load(self, target: Path | None = None, drafter: Path | None = None) -> None:
        """Loads a pair, the demo pair unless one is given, and waits for it."""
        choice = PairChoice()
        if target is not None:
            choice = PairChoice("files", str(target), None if drafter is None else str(drafter))
        self.controller.load_pair(choice)
        self.wait(lambda: self.controller.pair.kind == "loaded")

    def ask(self, text: str = STORY) -> Node:
        """Sends a message and waits for the answer."""
        return self.answered(lambda: self.controller.send(text))

    def answered(self, act: Callable[[], object]) -> Node:
        """Does something that gets an answer, and waits for its end."""
        before = len(self.all("node_finished"))
        act()
        self.wait(lambda: len(self.all("node_finished")) > before and not self.controller.running)
        return self.answer

    def begin(self, text: str = STORY, characters: int = 20) -> None:
        """Sends a message and waits until some of the answer is there."""
        self.controller.send(text)
        self.wait(lambda: self.streaming is not None and len(self.text) >= characters)

    def settled(self) -> None:
        """Waits until the store has done what it was asked so far."""
        done: list[None] = []
        self.controller.threads.store.ask(lambda _: None, done.append, lambda _: done.append(None))
        self.wait(lambda: done)

    def stored(self, chat: int) -> list[Node]:
        """A chat's messages as they are on disk."""
        found: list[tuple[Conversation, list[Node]]] = []
        self.controller.threads.store.ask(lambda history: history.conversation(chat), found.append)
        self.wait(lambda: found)
        return found[0][1]

    def close(self) -> float:
        """Closes; gives the seconds until everything had ended."""
        began = time.monotonic()
        self.controller.close()
        self.wait(lambda: self.all("closed"))
        return time.monotonic() - began

    def destroy(self) -> None:
        """Closes if that is still to be done, and takes the object down."""
        pid = self.controller.engine_pid
        assert self.controller.join()
        assert pid is None or not psutil.pid_exists(pid) or psutil.Process(pid).status() == psutil.STATUS_ZOMBIE
        assert not any(one.isRunning() for one in self.controller.threads.all)
        assert not self.controller.threads.engine.helper.isRunning()
        self.controller.deleteLater()


def defaults(**fields: Any) -> settings.Loaded:
    """Settings for tests: greedy and short answers, one thread, so that a busy machine does not slow it."""
    values = {"sampling": GREEDY, "threads": 1, "context": 2048, **fields}
    return settings.Loaded(Settings().changed(**values))


@contextmanager
def desk(qtbot: QtBot, known: settings.Loaded | None = None, *, load: bool = True, **arguments: Any) -> Iterator[Desk]:
    """A controller that is started, with the demo pair loaded unless told otherwise; closed at the end."""
    made = Desk(qtbot, known=known or defaults(), **arguments)
    try:
        made.start()
        if load:
            made.load()
        yield made
    finally:
        made.destroy()


@contextmanager
def chats_on_disk(path: Path | None = None) -> Iterator[History]:
    """The store after the controller was closed."""
    history = History.open(path)
    try:
        yield history
    finally:
        history.close()


VAST = 131_072
"""A context that takes a prompt of 100,000 characters."""


def endless_pair(folder: Path, context: int = 32_768, wrong: float = 0.3) -> Pair:
    """A pair whose answers go on and on, for longer than any test; its drafter is wrong now and then."""
    script = Script()
    first = script.token("Once ")
    script.say(NEWLINE, first, "upon ", "a ", "time. ", then=first)
    return script.write(folder, dataclasses.replace(TINY, name="endless", context=context), wrong=wrong)


@contextmanager
def endless_desk(qtbot: QtBot, pair: Pair, context: int = 32_768, **arguments: Any) -> Iterator[Desk]:
    """A controller with that pair."""
    known = defaults(sampling=ENDLESS, context=context)
    with desk(qtbot, known, load=False, **arguments) as made:
        made.load(pair.target, pair.drafter)
        yield made


class Heartbeat(QObject):
    """Measures the longest time for which the event loop did nothing else."""

    def __init__(self, interval_ms: int = 5) -> None:
        super().__init__()
        self.longest_s = 0.0
        self.beats = 0
        self._last = time.perf_counter()
        self._timer = QTimer(self)
        self._timer.setTimerType(Qt.TimerType.PreciseTimer)
        self._timer.setInterval(interval_ms)
        self._timer.timeout.connect(self._beat)

    def __enter__(self) -> Heartbeat:
        self.longest_s, self.beats, self._last = 0.0, 0, time.perf_counter()
        self._timer.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._timer.stop()
        self._beat()
        self.deleteLater()

    def _beat(self) -> None:
        now = time.perf_counter()
        self.longest_s = max(self.longest_s, now - self._last)
        self._last = now
        self.beats += 1
