"""Threads that work for the window."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from PySide6.QtCore import QObject, QThread
from pytestqt.qtbot import QtBot

from tandem.chat.history import History
from tandem.engine.protocol import Done, Generate, Hello, Load, Loaded, Pass, Progress
from tandem.engine.sampling import SamplingParams
from tandem.engine.template import Message
from tandem.errors import EngineDied, TandemError
from tandem.settings import Settings
from tandem.ui.engine_worker import EngineWorker, Halted, Problem, Report, Starting
from tandem.ui.store_worker import GaveUp, StoreWorker
from tandem.ui.workers import LOG_NAME, Faults, JobThread, Throttle

SECRET = "what the user wrote"


@pytest.fixture
def faults(tmp_path: Path) -> Iterator[Faults]:
    made = Faults(tmp_path)
    yield made
    made.close()
    made.deleteLater()


@pytest.fixture
def worker(faults: Faults) -> Iterator[JobThread]:
    made = JobThread("tester", faults)
    yield made
    made.shut()
    assert not made.isRunning() or made.wait(5000)
    made.deleteLater()


def test_jobs_run_in_order_and_their_results_come_in_the_gui_thread(qtbot: QtBot, worker: JobThread) -> None:
    ran: list[tuple[int, QThread]] = []
    came: list[tuple[int, QThread]] = []

    def job(number: int) -> Callable[[], int]:
        def run() -> int:
            ran.append((number, QThread.currentThread()))
            return number

        return run

    for number in range(20):
        worker.submit(job(number), lambda result: came.append((result, QThread.currentThread())))
    worker.start()
    qtbot.waitUntil(lambda: len(came) == 20)
    assert [number for number, _ in ran] == [number for number, _ in came] == list(range(20))
    assert {thread for _, thread in ran} == {worker}
    assert {thread for _, thread in came} == {worker.thread()}


def test_more_urgent_jobs_go_first(qtbot: QtBot, worker: JobThread) -> None:
    ran: list[str] = []
    for name, urgency in (("slow", 10), ("usual", 0), ("at once", -1), ("usual too", 0)):
        worker.submit(lambda name=name: ran.append(name), urgency=urgency)  # type: ignore[misc]
    worker.start()
    worker.shut()
    qtbot.waitUntil(worker.isFinished)
    assert ran == ["at once", "usual", "usual too", "slow"]


def test_an_error_goes_to_whoever_asked(qtbot: QtBot, worker: JobThread) -> None:
    told: list[TandemError] = []

    def refuse() -> None:
        raise TandemError("It does not work.", "Try another.")

    worker.submit(refuse, lambda _: pytest.fail("it did not work"), told.append)
    worker.start()
    qtbot.waitUntil(lambda: bool(told))
    assert told[0].sentence == "It does not work."


@pytest.mark.parametrize("listens", [True, False])
def test_an_error_nobody_expected_is_logged_without_its_message_and_told(
    qtbot: QtBot, worker: JobThread, faults: Faults, tmp_path: Path, listens: bool
) -> None:
    told: list[TandemError] = []
    reported: list[str] = []
    faults.reported.connect(reported.append)

    def break_down() -> None:
        raise ValueError(SECRET)

    worker.submit(break_down, None, told.append if listens else None)
    after: list[int] = []
    worker.submit(lambda: 1, after.append)
    worker.start()
    qtbot.waitUntil(lambda: after == [1] and bool(reported))
    log = (tmp_path / LOG_NAME).read_text()
    assert reported == ["tester"]
    assert "ValueError" in log
    assert "break_down" in log
    assert SECRET not in log
    assert len(told) == listens


def test_an_error_that_nobody_waits_for_is_not_silent(qtbot: QtBot, worker: JobThread, faults: Faults) -> None:
    reported: list[str] = []
    faults.reported.connect(reported.append)

    def refuse() -> None:
        raise TandemError("It does not work.", "Try another.")

    worker.submit(refuse)
    worker.start()
    qtbot.waitUntil(lambda: reported == ["tester"])


def test_errors_at_the_top_of_any_thread_are_taken_and_the_hooks_given_back(
    qtbot: QtBot, faults: Faults, tmp_path: Path
) -> None:
    before = sys.excepthook, threading.excepthook
    faults.install()
    faults.install()
    reported: list[str] = []
    faults.reported.connect(reported.append)

    def break_down() -> None:
        raise RuntimeError(SECRET)

    thread = threading.Thread(target=break_down)
    thread.start()
    thread.join()
    try:
        break_down()
    except RuntimeError as error:
        sys.excepthook(type(error), error, error.__traceback__)
    qtbot.waitUntil(lambda: len(reported) == 2)
    faults.close()
    assert (sys.excepthook, threading.excepthook) == before
    assert sorted(reported) == ["thread", "window"]
    assert SECRET not in (tmp_path / LOG_NAME).read_text()


def test_a_log_that_cannot_be_written_stops_nothing(tmp_path: Path) -> None:
    faults = Faults(tmp_path / "not there")
    reported: list[str] = []
    faults.reported.connect(reported.append)
    faults.report("here", ValueError())
    assert reported == ["here"]
    faults.close()
    faults.deleteLater()


def test_a_throttle_calls_at_once_then_together(qtbot: QtBot) -> None:
    parent = QObject()
    calls: list[float] = []
    throttle = Throttle(lambda: calls.append(time.monotonic()), 60, parent)
    throttle.call()
    assert len(calls) == 1
    for _ in range(10):
        throttle.call()
    assert len(calls) == 1
    qtbot.waitUntil(lambda: len(calls) == 2)
    assert calls[1] - calls[0] >= 0.05
    throttle.call()
    throttle.stop()
    qtbot.wait(100)
    assert len(calls) == 2
    parent.deleteLater()


# The engine's thread


class Listener:
    """An engine worker, and all it reported."""

    def __init__(self, qtbot: QtBot, folder: Path, faults: Faults, hang_after_s: float = 60.0) -> None:
        self.qtbot = qtbot
        self.worker = EngineWorker(folder, faults, hang_after_s=hang_after_s)
        self.worker.arrived.connect(self._hear)
        self.reports: list[Report] = []
        self.worker.start()

    def _hear(self) -> None:
        self.reports += self.worker.take()

    def load(self, pair: tuple[Path, Path]) -> int:
        number = self.worker.next_id()
        self.worker.load(
            number, lambda: Load(id=number, target=bytes(pair[0]), drafter=bytes(pair[1]), context=2048, threads=1)
        )
        return number

    def generate(self, text: str = "Tell me a story.", tokens: int = 1500) -> int:
        number = self.worker.next_id()
        sampling = SamplingParams(temperature=0.0)
        messages = (Message("user", text),)
        self.worker.generate(
            Generate(id=number, messages=messages, draft="3", sampling=sampling, max_tokens=tokens, ignore_eos=True)
        )
        return number

    def of(self, kind: type[Report], number: int | None = None) -> list[Report]:
        return [r for r in self.reports if isinstance(r, kind) and (number is None or r.id == number)]  # type: ignore[union-attr]

    def wait(self, kind: type[Report], number: int | None = None, timeout: int = 30_000) -> Report:
        self.qtbot.waitUntil(lambda: bool(self.of(kind, number)), timeout=timeout)
        return self.of(kind, number)[0]

    def end(self) -> float:
        began = time.monotonic()
        pid = self.worker.pid
        self.worker.shut()
        self.worker.shut()
        self.qtbot.waitUntil(self.worker.isFinished, timeout=10_000)
        assert not self.worker.helper.isRunning()
        assert pid is None or not Path(f"/proc/{pid}").exists()
        self.worker.deleteLater()
        return time.monotonic() - began


@pytest.fixture
def listener(qtbot: QtBot, tmp_path: Path, faults: Faults) -> Iterator[Listener]:
    made = Listener(qtbot, tmp_path, faults)
    yield made
    made.end()


def test_a_load_and_an_answer_report_their_stages(listener: Listener, demo_pair: tuple[Path, Path]) -> None:
    load = listener.load(demo_pair)
    loaded = listener.wait(Loaded, load)
    kinds = [type(report) for report in listener.reports]
    assert kinds[0] is Starting
    assert kinds[1] is Hello
    assert {r.stage for r in listener.of(Progress)} >= {"target", "drafter"}  # type: ignore[union-attr]
    assert isinstance(loaded, Loaded)
    assert loaded.method == "mtp"
    answer = listener.generate(tokens=20)
    listener.wait(Done, answer)
    assert sum(len(report.tokens) for report in listener.of(Pass, answer)) == 20  # type: ignore[union-attr]


def test_another_load_takes_another_process(listener: Listener, demo_pair: tuple[Path, Path]) -> None:
    listener.wait(Loaded, listener.load(demo_pair))
    first = listener.worker.pid
    listener.wait(Loaded, listener.load(demo_pair))
    assert listener.worker.pid != first
    assert not Path(f"/proc/{first}").exists()


def test_requests_that_wait_can_be_stopped(listener: Listener, demo_pair: tuple[Path, Path]) -> None:
    listener.wait(Loaded, listener.load(demo_pair))
    first, second = listener.generate(), listener.generate()
    listener.worker.stop(second)
    listener.wait(Pass, first)
    listener.worker.stop(first)
    listener.wait(Halted, second)
    listener.wait(Done, first)
    assert not listener.of(Pass, second)
    listener.wait(Done, listener.generate(tokens=5))


@pytest.mark.parametrize("moment", ["asked", Starting, Hello, Progress])
def test_a_load_stops_at_any_moment_and_leaves_no_process(
    listener: Listener, demo_pair: tuple[Path, Path], moment: type[Report] | str
) -> None:
    load = listener.load(demo_pair)
    if not isinstance(moment, str):
        listener.wait(moment, load if moment is not Hello else None)
    began = time.monotonic()
    listener.worker.stop(load)
    listener.wait(Halted, load)
    assert time.monotonic() - began < 10
    assert listener.worker.pid is None
    listener.wait(Loaded, listener.load(demo_pair))


def test_an_idle_engine_that_dies_is_noticed(listener: Listener, demo_pair: tuple[Path, Path]) -> None:
    listener.wait(Loaded, listener.load(demo_pair))
    os.kill(listener.worker.pid or 0, signal.SIGKILL)
    report = listener.wait(Problem)
    assert isinstance(report, Problem)
    assert isinstance(report.error, EngineDied)
    assert (report.id, report.error.reason) == (0, "killed")
    assert listener.worker.pid is None
    listener.wait(Loaded, listener.load(demo_pair))


def test_a_kill_over_a_stop_is_told_as_such(listener: Listener, demo_pair: tuple[Path, Path]) -> None:
    listener.wait(Loaded, listener.load(demo_pair))
    answer = listener.generate()
    listener.wait(Pass, answer)
    os.kill(listener.worker.pid or 0, signal.SIGSTOP)
    listener.worker.stop(answer)
    listener.worker.kill()
    assert listener.wait(Halted, answer) == Halted(answer, lost=True)


def test_an_error_in_the_worker_ends_the_request_and_not_the_thread(
    listener: Listener, demo_pair: tuple[Path, Path], faults: Faults
) -> None:
    number = listener.worker.next_id()

    def break_down() -> Load:
        raise RuntimeError("a fault")

    listener.worker.load(number, break_down)
    report = listener.wait(Problem, number)
    assert isinstance(report, Problem)
    assert report.error.sentence.endswith(".")
    assert faults.count == 1
    listener.wait(Loaded, listener.load(demo_pair))


@pytest.mark.parametrize("moment", ["new", "asked", Starting, Hello, Progress, Loaded])
def test_it_ends_at_any_moment_of_a_load(
    qtbot: QtBot, tmp_path: Path, faults: Faults, demo_pair: tuple[Path, Path], moment: type[Report] | str
) -> None:
    listener = Listener(qtbot, tmp_path, faults)
    if moment != "new":
        listener.load(demo_pair)
    if not isinstance(moment, str):
        listener.wait(moment)
    assert listener.end() < 15


@pytest.mark.parametrize("asleep", [False, True])
def test_it_ends_in_the_middle_of_an_answer_even_if_the_engine_does_not_react(
    qtbot: QtBot, tmp_path: Path, faults: Faults, demo_pair: tuple[Path, Path], asleep: bool
) -> None:
    listener = Listener(qtbot, tmp_path, faults)
    listener.wait(Loaded, listener.load(demo_pair))
    answer = listener.generate()
    listener.wait(Pass, answer)
    if asleep:
        os.kill(listener.worker.pid or 0, signal.SIGSTOP)
    assert listener.end() < 15


def test_it_ends_with_a_request_larger_than_the_pipe_before_an_engine_that_does_not_read(
    qtbot: QtBot, tmp_path: Path, faults: Faults, demo_pair: tuple[Path, Path]
) -> None:
    listener = Listener(qtbot, tmp_path, faults)
    listener.wait(Loaded, listener.load(demo_pair))
    os.kill(listener.worker.pid or 0, signal.SIGSTOP)
    answer = listener.generate("fox " * 500_000)
    listener.worker.stop(answer)
    assert listener.end() < 15


def test_a_worker_that_never_started_can_be_ended(qtbot: QtBot, tmp_path: Path, faults: Faults) -> None:
    worker = EngineWorker(tmp_path, faults)
    worker.shut()
    worker.start()
    qtbot.waitUntil(worker.isFinished)
    assert not worker.helper.isRunning()
    worker.deleteLater()


# The store's thread


@pytest.fixture
def store(faults: Faults, tmp_path: Path, qtbot: QtBot) -> Iterator[StoreWorker]:
    made = StoreWorker(faults, database=tmp_path / "chats.db")
    made.start()
    opened: list[object] = []
    made.open(None, opened.append)
    qtbot.waitUntil(lambda: bool(opened))
    yield made
    made.shut()
    qtbot.waitUntil(made.isFinished)
    made.deleteLater()


def test_of_searches_that_wait_only_the_last_is_done(qtbot: QtBot, store: StoreWorker) -> None:
    gate, searched = threading.Event(), []
    store.ask(lambda history: history.new("a fox and a hen"))
    store.ask(lambda _: gate.wait(10))
    for text in ("f", "fo", "fox"):
        store.search(text, lambda hits, text=text: searched.append((text, len(hits))))  # type: ignore[misc]
    gate.set()
    qtbot.waitUntil(lambda: bool(searched))
    after: list[object] = []
    store.ask(lambda _: 1, after.append)
    qtbot.waitUntil(lambda: bool(after))
    assert searched == [("fox", 1)]


def test_of_settings_that_wait_only_the_last_are_written(
    qtbot: QtBot, store: StoreWorker, monkeypatch: pytest.MonkeyPatch
) -> None:
    from tandem import settings

    written: list[float] = []
    save = settings.save

    def counting(changed: Settings, path: Path | None = None) -> None:
        written.append(changed.text_scale)
        save(changed, path)

    monkeypatch.setattr(settings, "save", counting)
    gate = threading.Event()
    store.ask(lambda _: gate.wait(10))
    for step in range(5):
        store.save_settings(Settings(text_scale=1.0 + step / 10), lambda error: pytest.fail(error.sentence))
    gate.set()
    qtbot.waitUntil(lambda: bool(written))
    after: list[object] = []
    store.ask(lambda _: 1, after.append)
    qtbot.waitUntil(lambda: bool(after))
    assert written == [1.4]
    assert settings.load().settings.text_scale == 1.4


def test_a_fault_that_goes_on_is_told_once(faults: Faults) -> None:
    told: list[str] = []
    faults.reported.connect(told.append)
    for _ in range(20):
        faults.report("window", ValueError("at each painting"))
    assert (told, faults.count) == (["window"], 20)


@pytest.mark.parametrize("line", range(1, 4))
def test_settings_are_written_that_change_while_older_ones_are(
    qtbot: QtBot, store: StoreWorker, monkeypatch: pytest.MonkeyPatch, line: int
) -> None:
    """The store's thread may take what waits between any two steps of the thread that gives it more."""
    from tandem import settings

    written: list[float] = []
    monkeypatch.setattr(settings, "save", lambda changed: written.append(changed.text_scale))
    gate, idle, lines = threading.Event(), threading.Event(), 0

    def tell(error: TandemError) -> None:
        pytest.fail(error.sentence)

    def trace(frame: Any, event: str, _argument: object) -> Any:
        nonlocal lines
        if frame.f_code is StoreWorker.save_settings.__code__ and event == "line":
            lines += 1
            if lines == line:
                gate.set()
                store.ask(lambda _: idle.set())
                idle.wait(10)
        return trace

    store.ask(lambda _: gate.wait(10))
    store.save_settings(Settings(text_scale=1.1), tell)
    before = sys.gettrace()
    sys.settrace(trace)
    try:
        store.save_settings(Settings(text_scale=1.2), tell)
    finally:
        sys.settrace(before)
    assert idle.is_set()
    qtbot.waitUntil(lambda: 1.2 in written)


def test_urgent_work_passes_long_work_and_the_end_stops_it(qtbot: QtBot, store: StoreWorker) -> None:
    steps: list[str] = []
    begun, go_on = threading.Event(), threading.Event()

    def long(_history: History) -> None:
        begun.set()
        try:
            for step in range(1000):
                go_on.wait(10)
                store.breathe()
                steps.append(f"step {step}")
        except GaveUp:
            steps.append("gave up")

    store.ask(long, slow=True)
    qtbot.waitUntil(begun.is_set)
    store.ask(lambda _: steps.append("urgent"))
    store.ask(lambda _: steps.append("slow too"), slow=True)
    store.ask(lambda _: store.ending.set())
    go_on.set()
    qtbot.waitUntil(lambda: "slow too" in steps)
    assert steps.index("urgent") == 0
    assert "gave up" in steps
    assert steps.index("gave up") < steps.index("slow too")


def test_without_a_database_every_question_is_answered_with_why(qtbot: QtBot, faults: Faults, tmp_path: Path) -> None:
    (tmp_path / "chats.db").mkdir()
    store = StoreWorker(faults, database=tmp_path / "chats.db")
    store.start()
    opened: list[object] = []
    told: list[TandemError] = []
    store.open(None, opened.append)
    store.ask(lambda history: history.conversations(), lambda _: pytest.fail("there is none"), told.append)
    qtbot.waitUntil(lambda: bool(told))
    assert opened[0].problem.sentence == told[0].sentence  # type: ignore[attr-defined]
    store.shut()
    qtbot.waitUntil(store.isFinished)
    store.deleteLater()
