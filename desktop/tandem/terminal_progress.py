"""Long jobs in a terminal: a bar where there is a terminal, plain lines elsewhere, and an end when it is asked for.

The job runs in a thread of its own and only reports; whatever is printed is printed by the main thread, which is also
the one that signals come to. Ctrl-C and a polite kill stop the job and wait for its tidy end; a second one does not.
"""

from __future__ import annotations

import os
import queue
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from dataclasses import dataclass
from types import FrameType
from typing import Final, Generic, Protocol, TypeVar

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from tandem.engine.gguf_header import printable
from tandem.models.progress import JobProgress, Report, Waiting
from tandem.models.state import FileState
from tandem.models.stop import Stopped

STEP_PERCENT: Final = 5
"""Plain lines come at most once in so many per cent."""

DOWNLOAD: Final[Mapping[FileState, str]] = {
    FileState.QUEUED: "Waiting to get",
    FileState.RESOLVING: "Asking the Hub about",
    FileState.TRANSFERRING: "Downloading",
    FileState.CHECKING: "Checking",
}
LOOK: Final[Mapping[FileState, str]] = {FileState.CHECKING: "Reading"}
TAKE: Final[Mapping[FileState, str]] = {FileState.CHECKING: "Taking over"}
REPACK: Final[Mapping[FileState, str]] = {FileState.CHECKING: "Repacking"}
VERIFY: Final[Mapping[FileState, str]] = {FileState.VERIFYING: "Verifying"}

_LONGEST: Final = 10_000
_TICK_S: Final = 0.1
_UNITS: Final = ("KiB", "MiB", "GiB", "TiB")
_SIGNALS: Final = (signal.SIGINT, signal.SIGTERM)
_T = TypeVar("_T")


def one_line(text: str) -> str:
    """Text that stays on its line, whatever a file or a folder is called."""
    return printable(text, _LONGEST)


def size(amount: float) -> str:
    """Bytes for people, as the window says them: "2.4 GiB"."""
    if amount < 1024:
        return f"{amount:,.0f} bytes"
    power = 1
    while amount / 1024**power >= 1023.95 and power < len(_UNITS):
        power += 1
    return f"{amount / 1024**power:,.1f} {_UNITS[power - 1]}"


def duration(seconds: float) -> str:
    """A time for people: "12 s", "3 min 5 s", "1 h 20 min"."""
    whole = max(0, round(seconds))
    if whole < 60:
        return f"{whole} s"
    minutes, rest = divmod(whole, 60)
    if minutes < 60:
        return f"{minutes} min {rest} s"
    return f"{minutes // 60:,} h {minutes % 60} min"


def percent(job: JobProgress) -> int | None:
    """How much of a job is done, rounded down: 100 means all of it. None while its size is not known."""
    return min(100, job.done * 100 // job.total) if job.total else None


def fancy() -> bool:
    """Whether stderr is a terminal that can move its cursor."""
    return sys.stderr is not None and sys.stderr.isatty() and not Console(stderr=True).is_dumb_terminal


class View(Protocol):
    """Shows a job."""

    def shown(self) -> AbstractContextManager[object]:
        """While this is open, it may draw."""

    def tell(self, job: JobProgress) -> None:
        """There is news."""

    def tick(self) -> None:
        """Some time has passed."""

    def stopping(self) -> None:
        """The job was asked to end."""


@dataclass(frozen=True)
class Attended(Generic[_T]):
    """How a job ended that did not fail.

    Attributes:
        result: What it gave; None where it was stopped and gives nothing then.
        signal: Number of the signal that it was stopped by; 0 for none.
    """

    result: _T | None
    signal: int = 0


def attend(work: Callable[[Report], _T], stop: Callable[[], None], view: View) -> Attended[_T]:
    """Has a job done and shows it.

    Args:
        work: The job; gets what it shall report to, and is called in another thread.
        stop: Asks it to end soon; called in the main thread.
        view: Shows it.

    Raises:
        Exception: Whatever the job raised, except that it was stopped.
    """
    news: queue.SimpleQueue[JobProgress | int | None] = queue.SimpleQueue()
    results: list[_T] = []
    failures: list[BaseException] = []

    def job() -> None:
        try:
            results.append(work(news.put))
        except BaseException as error:
            failures.append(error)
        finally:
            news.put(None)

    worker = threading.Thread(target=job, name="models", daemon=True)
    number, insisted = 0, False
    # A signal is only put into the queue: its handler may run in the middle of anything.
    with _signals(lambda number, _frame: news.put(int(number))):
        worker.start()
        try:
            with view.shown():
                for event in _until_none(news):
                    if isinstance(event, JobProgress):
                        view.tell(event)
                    elif event == 0:
                        view.tick()
                    elif number:  # what has come in is safe at any moment: no need to wait for a tidy end
                        insisted = True
                        break
                    else:
                        number = event
                        view.stopping()
                        stop()
        except BaseException:  # nobody to show it to any more
            stop()
            worker.join()
            raise
        if insisted and not (results or failures):
            os._exit(128 + number)
    if failures and not isinstance(failures[0], Stopped):
        raise failures[0]
    return Attended(results[0] if results else None, number)


def _until_none(news: queue.SimpleQueue[JobProgress | int | None]) -> Iterator[JobProgress | int]:
    """What comes in, and 0 for each moment in which nothing does; in short waits, as some systems keep signals back."""
    while True:
        try:
            event = news.get(timeout=_TICK_S)
        except queue.Empty:
            yield 0
            continue
        if event is None:
            return
        yield event


@contextmanager
def _signals(handler: Callable[[int, FrameType | None], object]) -> Iterator[None]:
    before = {number: signal.signal(number, handler) for number in _SIGNALS}
    try:
        yield
    finally:
        for number, old in before.items():
            signal.signal(number, old)


def view(
    words: Mapping[FileState, str], *, quiet: bool = False, stopping: str = "Stopping…", amounts: bool = True
) -> View:
    """What fits stderr: a bar, or lines.

    Args:
        words: What is done to a file in each state, such as "Downloading".
        quiet: No lines where no bar is possible.
        stopping: Said when the job was asked to end.
        amounts: Whether the job counts bytes; without, only per cent are shown.
    """
    return Bar(words, stopping, amounts) if fancy() else Lines(words, quiet, stopping, amounts)


class Lines:
    """Plain lines: one for each file and what is done to it, and one in so many per cent.

    Args:
        words: See `view`.
        quiet: See `view`.
        stopping: See `view`.
        amounts: See `view`.
    """

    def __init__(
        self, words: Mapping[FileState, str], quiet: bool = False, stopping: str = "", amounts: bool = True
    ) -> None:
        self._words, self._quiet, self._stopping, self._amounts = words, quiet, stopping, amounts
        self._at: tuple[str, FileState] | None = None
        self._step = -1
        self._attempt = 0

    def shown(self) -> AbstractContextManager[object]:
        """Nothing to open."""
        return nullcontext()

    def tick(self) -> None:
        """Lines do not move."""

    def stopping(self) -> None:
        """Says so."""
        self._say(self._stopping)

    def tell(self, job: JobProgress) -> None:
        """Prints what is worth a line."""
        if job.waiting is not None:
            if job.waiting.attempt != self._attempt:
                self._attempt = job.waiting.attempt
                self._say(f"{again(job.waiting, job.waiting.seconds)}: {job.waiting.sentence}")
            return
        self._attempt = 0
        current = job.current
        if current is None:
            return
        step, new = (percent(job) or 0) // STEP_PERCENT, (current.name, current.state) != self._at
        if not new and step <= self._step:
            return
        self._at = (current.name, current.state)
        self._step = max(step, self._step)
        said = f"{self._words.get(current.state, current.state.value)} {current.name}"
        self._say(
            f"{said}: {', '.join(figures(job, self._amounts))}" if current.state is not FileState.RESOLVING else said
        )

    def _say(self, line: str) -> None:
        if not self._quiet:
            print(one_line(line), file=sys.stderr, flush=True)


class Bar:
    """What is done, a bar, and figures; it goes when the job has ended.

    Args:
        words: See `view`.
        stopping: See `view`.
        amounts: See `view`.
    """

    def __init__(self, words: Mapping[FileState, str], stopping: str = "", amounts: bool = True) -> None:
        self._words, self._stopping, self._amounts = words, stopping, amounts
        self._console = Console(stderr=True, highlight=False)
        self._live: Live | None = None
        self._job: JobProgress | None = None
        self._came = 0.0
        self._ending = False

    @contextmanager
    def shown(self) -> Iterator[None]:
        """The part of the screen that it draws on."""
        with Live(
            console=self._console,
            transient=True,
            auto_refresh=False,
            redirect_stdout=False,
            redirect_stderr=False,
            get_renderable=self._draw,
        ) as self._live:
            yield
        self._live = None

    def tell(self, job: JobProgress) -> None:
        """Keeps it until it is drawn."""
        self._job, self._came = job, time.monotonic()
        self.tick()

    def stopping(self) -> None:
        """Says so from now on."""
        self._ending = True
        self.tick()

    def tick(self) -> None:
        """Draws."""
        if self._live is not None:
            with suppress(OSError):  # the terminal has gone: the job has not
                self._live.refresh()

    def _draw(self) -> RenderableType:
        job = self._job
        current = job.current if job is not None else None
        if job is None or (current is None and job.waiting is None and not self._ending):
            return Text("")
        width = self._console.width
        rows: list[RenderableType] = []
        if current is not None:
            said = f"{self._words.get(current.state, current.state.value)} {current.name}"
            rows.append(Text(_fitted(one_line(said), width), no_wrap=True))
        done = percent(job)
        if done is not None:
            line = Table.grid(padding=(0, 1), expand=True)
            line.add_column(ratio=1)
            line.add_column(width=5, justify="right")
            line.add_row(
                ProgressBar(total=100, completed=done, complete_style="cyan", finished_style="green"), f"{done} %"
            )
            rows.append(line)
        rows.append(self._below(job, width))
        return Group(*rows)

    def _below(self, job: JobProgress, width: int) -> Text:
        if self._ending:
            return Text(self._stopping, style="yellow")
        if job.waiting is not None:
            left = job.waiting.seconds - (time.monotonic() - self._came)
            return Text(one_line(f"{again(job.waiting, left)}: {job.waiting.sentence}"), style="yellow")
        parts = figures(job, self._amounts)[1:]
        while len(parts) > 1 and len(" · ".join(parts)) > width:
            parts.pop(0)
        return Text(" · ".join(parts), style="dim", no_wrap=True, overflow="ellipsis")


def again(waiting: Waiting, seconds: float) -> str:
    """That it is tried again, when, and for which time of how many at most."""
    count = f"{waiting.attempt} of {waiting.tries}" if waiting.tries else str(waiting.attempt)
    return f"Trying again in {duration(seconds)} ({count})" if seconds >= 1 else f"Trying again ({count})"


def figures(job: JobProgress, amounts: bool = True) -> list[str]:
    """Per cent, bytes, speed and time left, as far as they are known.

    Args:
        job: What is being done.
        amounts: Whether it counts bytes.
    """
    parts = [f"{percent(job) or 0} %"]
    if not amounts:
        return parts
    parts.append(f"{size(job.done)} of {size(job.total)}" if job.total else size(job.done))
    if job.bytes_per_s is not None:
        parts.append(f"{size(job.bytes_per_s)}/s")
    if job.left_s is not None:
        parts.append(f"{duration(job.left_s)} left")
    return parts


def _fitted(text: str, width: int) -> str:
    """A line in that width, cut in its middle: the end of a file's name tells more than its middle."""
    if len(text) <= width or width < 5:
        return text[:width]
    head = (width - 1) // 2
    return f"{text[:head]}…{text[len(text) - (width - 1 - head) :]}"
