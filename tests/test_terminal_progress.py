"""Long jobs in a terminal: what is printed, and how they end."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import threading
from contextlib import AbstractContextManager, nullcontext

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tandem.errors import TandemError
from tandem.models.progress import FileProgress, JobProgress, Report, Waiting
from tandem.models.state import FileState
from tandem.models.stop import Stop, Stopped
from tandem.terminal_progress import DOWNLOAD, Bar, Lines, again, attend, duration, figures, percent, size

PATIENCE_S = 60.0
TOTAL = 200_000_000


def job(done: int, state: FileState = FileState.TRANSFERRING, *, name: str = "target.gguf") -> JobProgress:
    return JobProgress("e2b", (FileProgress(name, state, done, TOTAL),), bytes_per_s=25e6, left_s=(TOTAL - done) / 25e6)


# --- numbers


@pytest.mark.parametrize(
    ("amount", "said"),
    [
        (0, "0 bytes"),
        (1023, "1,023 bytes"),
        (1024, "1.0 KiB"),
        (1_048_524, "1,023.9 KiB"),
        (1_048_575, "1.0 MiB"),
        (2_620_370_912, "2.4 GiB"),
        (5 * 1024**4, "5.0 TiB"),
        (5000 * 1024**4, "5,000.0 TiB"),
    ],
)
def test_bytes_for_people(amount: int, said: str) -> None:
    assert size(amount) == said


@pytest.mark.parametrize(
    ("seconds", "said"),
    [(-1, "0 s"), (0.4, "0 s"), (59.4, "59 s"), (59.6, "1 min 0 s"), (185, "3 min 5 s"), (4800, "1 h 20 min")],
)
def test_times_for_people(seconds: float, said: str) -> None:
    assert duration(seconds) == said


def test_a_hundred_per_cent_is_all_of_it_and_not_nearly_all() -> None:
    assert percent(job(TOTAL - 1)) == 99
    assert percent(job(TOTAL)) == 100
    assert percent(JobProgress("e2b", (FileProgress("target.gguf", FileState.RESOLVING),))) is None


# --- lines


def lines(*news: JobProgress, capsys: pytest.CaptureFixture[str]) -> list[str]:
    view = Lines(DOWNLOAD)
    for one in news:
        view.tell(one)
    captured = capsys.readouterr()
    assert captured.out == ""
    return captured.err.splitlines()


def test_a_download_in_lines(capsys: pytest.CaptureFixture[str]) -> None:
    waiting = JobProgress(
        "e2b",
        (FileProgress("target.gguf", FileState.TRANSFERRING, 30_000_000, TOTAL),),
        waiting=Waiting("The line to the Hub broke.", 4.0, 2, 8),
    )
    said = lines(
        JobProgress("e2b", (FileProgress("target.gguf", FileState.RESOLVING),)),
        job(0),
        job(9_999_999),
        job(10_000_000),
        waiting,
        waiting,
        job(30_000_000),
        job(TOTAL, FileState.CHECKING),
        job(TOTAL, FileState.INSTALLED),
        capsys=capsys,
    )
    assert said == [
        "Asking the Hub about target.gguf",
        "Downloading target.gguf: 0 %, 0 bytes of 190.7 MiB, 23.8 MiB/s, 8 s left",
        "Downloading target.gguf: 5 %, 9.5 MiB of 190.7 MiB, 23.8 MiB/s, 8 s left",
        "Trying again in 4 s (2 of 8): The line to the Hub broke.",
        "Downloading target.gguf: 15 %, 28.6 MiB of 190.7 MiB, 23.8 MiB/s, 7 s left",
        "Checking target.gguf: 100 %, 190.7 MiB of 190.7 MiB, 23.8 MiB/s, 0 s left",
    ]


@given(st.lists(st.integers(0, TOTAL), max_size=300))
def test_never_more_than_a_line_in_five_per_cent(amounts: list[int]) -> None:
    view, said = Lines(DOWNLOAD), list[str]()
    view._say = said.append  # type: ignore[method-assign]
    for amount in sorted(amounts):
        view.tell(job(amount))
    steps = [int(re.findall(r"(\d+) %", line)[0]) // 5 for line in said]
    assert len(steps) == len(set(steps)) <= 21


def test_a_name_cannot_move_the_cursor(capsys: pytest.CaptureFixture[str]) -> None:
    (line,) = lines(job(0, name="a\x1b[2Jb\r\n.gguf"), capsys=capsys)
    assert line.isprintable()


# --- a bar


def drawn(news: JobProgress, columns: int, monkeypatch: pytest.MonkeyPatch, ending: bool = False) -> list[str]:
    monkeypatch.setenv("COLUMNS", str(columns))
    bar = Bar(DOWNLOAD, "Pausing…")
    bar.tell(news)
    if ending:
        bar.stopping()
    with bar._console.capture() as capture:
        bar._console.print(bar._draw())
    return capture.get().splitlines()


@pytest.mark.parametrize("columns", [200, 80, 40, 20])
def test_the_bar_keeps_to_its_width(columns: int, monkeypatch: pytest.MonkeyPatch) -> None:
    news = job(82_000_000, name="gemma-4-E2B-it-qat-assistant-q4_0-exact.gguf")
    rows = drawn(news, columns, monkeypatch)
    assert len(rows) == 3
    assert max(map(len, rows)) <= columns
    assert rows[0].startswith("Downloa")
    assert rows[0].endswith("xact.gguf")
    assert rows[1].rstrip().endswith("41 %")
    assert "s left" in rows[2]
    assert ("23.8 MiB/s" in rows[2]) == (columns >= 40)


def test_the_bar_says_why_it_waits_and_that_it_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    news = JobProgress(
        "e2b",
        (FileProgress("target.gguf", FileState.TRANSFERRING, 1, TOTAL),),
        waiting=Waiting("The line to the Hub broke.", 4.4, 2, 3),
    )
    assert drawn(news, 80, monkeypatch)[2].startswith("Trying again in 4 s (2 of 3): The line to the Hub broke.")
    assert drawn(news, 80, monkeypatch, ending=True)[2].startswith("Pausing…")


@pytest.mark.parametrize(
    ("seconds", "tries", "said"),
    [
        (75.0, 8, "Trying again in 1 min 15 s (3 of 8)"),
        (1.0, 8, "Trying again in 1 s (3 of 8)"),
        (0.9, 8, "Trying again (3 of 8)"),
        (-1.0, 3, "Trying again (3 of 3)"),
        (0.0, 0, "Trying again (3)"),
    ],
)
def test_nobody_waits_for_no_seconds(seconds: float, tries: int, said: str) -> None:
    assert again(Waiting("The line broke.", seconds, 3, tries), seconds) == said


# --- the end


class Watcher:
    """A view that keeps what it is told."""

    def __init__(self, fail: bool = False) -> None:
        self.told: list[JobProgress] = []
        self.stops = 0
        self.fail = fail
        self.threads: set[threading.Thread] = set()

    def shown(self) -> AbstractContextManager[object]:
        return nullcontext()

    def tell(self, job: JobProgress) -> None:
        self.threads.add(threading.current_thread())
        self.told.append(job)
        if self.fail:
            raise BrokenPipeError

    def tick(self) -> None:
        pass

    def stopping(self) -> None:
        self.stops += 1


def test_every_report_comes_in_order_and_in_the_main_thread() -> None:
    news = [job(amount) for amount in range(50)]

    def work(report: Report) -> str:
        assert threading.current_thread() is not threading.main_thread()
        for one in news:
            report(one)
        return "done"

    watcher = Watcher()
    ended = attend(work, pytest.fail, watcher)
    assert (ended.result, ended.signal, watcher.told) == ("done", 0, news)
    assert watcher.threads == {threading.main_thread()}


def test_what_a_job_raises_is_raised() -> None:
    def work(_report: Report) -> None:
        raise TandemError("It went wrong.", "Try again.")

    with pytest.raises(TandemError, match="went wrong"):
        attend(work, pytest.fail, Watcher())


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_stops_the_job_politely(number: signal.Signals) -> None:
    stop, before = Stop(), signal.getsignal(number)

    def work(report: Report) -> None:
        report(job(1))
        os.kill(os.getpid(), number)
        assert stop.wait(PATIENCE_S)
        report(job(2))
        stop.check()

    watcher = Watcher()
    ended = attend(work, stop.set, watcher)
    assert (ended.result, ended.signal, watcher.stops) == (None, number, 1)
    assert watcher.told == [job(1), job(2)]
    assert signal.getsignal(number) is before


def test_a_job_that_ends_well_in_spite_of_a_signal_has_its_result() -> None:
    stop = Stop()

    def work(_report: Report) -> str:
        os.kill(os.getpid(), signal.SIGINT)
        assert stop.wait(PATIENCE_S)
        return "done all the same"

    assert attend(work, stop.set, Watcher()).result == "done all the same"


STUBBORN = """
import signal, sys, threading
from tandem.terminal_progress import LOOK, Lines, attend

def work(report):
    print("begun", flush=True)
    threading.Event().wait()

attend(work, lambda: print("asked to stop", flush=True), Lines(LOOK))
"""


def test_a_second_signal_does_not_wait_for_a_job_that_hangs() -> None:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    line = [sys.executable, "-c", STUBBORN]
    with subprocess.Popen(line, env=environment, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "begun\n"
        process.send_signal(signal.SIGINT)
        assert process.stdout.readline() == "asked to stop\n"
        process.send_signal(signal.SIGINT)
        assert process.wait(PATIENCE_S) == 130


def test_a_view_that_fails_takes_the_job_along() -> None:
    stop, ended = Stop(), threading.Event()

    def work(report: Report) -> None:
        report(job(1))
        try:
            assert stop.wait(PATIENCE_S)
        finally:
            ended.set()
        raise Stopped("pause")

    with pytest.raises(BrokenPipeError):
        attend(work, stop.set, Watcher(fail=True))
    assert ended.is_set()


def test_figures_without_bytes_are_per_cent() -> None:
    assert figures(job(TOTAL // 2), amounts=False) == ["50 %"]
