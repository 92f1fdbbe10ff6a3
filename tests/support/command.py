"""The command `tandem` as a person or a script meets it: a process, its output, its exit code, a terminal around it."""

from __future__ import annotations

import json
import os
import re
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Final

import psutil

import tandem

PATIENCE_S: Final = 60.0
"""How long a test waits for what must come; only a failing test waits that long."""

_ESCAPE: Final = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|\x1b\]8;[^\x1b]*\x1b\\")
# A session leader without a terminal gets the one that it holds as its input: then Ctrl-C and Ctrl-D mean something.
_IN_TERMINAL: Final = (
    "import fcntl, os, sys, termios\nfcntl.ioctl(0, termios.TIOCSCTTY, 0)\nos.execv(sys.argv[1], sys.argv[1:])"
)


@dataclass(frozen=True)
class Outcome:
    """How a run of the command ended."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> dict[str, Any]:
        """The one object on stdout; anything beside it fails."""
        found = json.loads(self.out)
        assert isinstance(found, dict)
        assert self.out.count("\n") == 1
        return found

    def complaint(self) -> str:
        """Stderr, after checking that it is one sentence and a remedy."""
        lines = self.err.splitlines()
        assert len(lines) == 2, self.err
        assert re.fullmatch(r"tandem: .*\S.*", lines[0]), self.err
        assert lines[1].strip(), self.err
        return self.err


def environment() -> dict[str, str]:
    """Environment of the command: this one's, the package's folder, and a wide terminal."""
    root = Path(tandem.__file__).parents[1]
    return {**os.environ, "PYTHONPATH": str(root), "COLUMNS": "200", "TERM": "xterm-256color"}


def command(*arguments: str | Path) -> list[str]:
    """The command line, run by this Python."""
    return [sys.executable, "-m", "tandem", *map(str, arguments)]


def tandem_run(*arguments: str | Path, stdin: str | bytes = "") -> Outcome:
    """Runs the command to its end."""
    given = stdin if isinstance(stdin, bytes) else stdin.encode()
    done = subprocess.run(
        command(*arguments), input=given, capture_output=True, env=environment(), timeout=PATIENCE_S, check=False
    )
    out, err = done.stdout.decode(), done.stderr.decode()
    assert "Traceback" not in out + err, err
    return Outcome(done.returncode, out, err)


class Running:
    """A command in the middle of its work, in a process group of its own.

    Args:
        process: It, with pipes or one end of a terminal.
        screen: File descriptor that what it shows is read from.
    """

    def __init__(self, process: subprocess.Popen[bytes], screen: int) -> None:
        self.process: Final = process
        self._screen = screen
        self._seen = b""
        self._read_to = 0

    @property
    def seen(self) -> str:
        """All that was shown, without colours."""
        return _ESCAPE.sub("", self._seen.decode("utf-8", "replace")).replace("\r\n", "\n")

    def wait_for(self, pattern: str) -> str:
        """Reads until `pattern` is shown after what the last call found; returns what came up to its end."""
        deadline = time.monotonic() + PATIENCE_S
        while (found := re.compile(pattern).search(self.seen, self._read_to)) is None:
            assert self._more(deadline), f"{pattern!r} never came; seen:\n{self.seen}"
        start, self._read_to = self._read_to, found.end()
        return self.seen[start : found.end()]

    def wait_for_end_of_spinner(self) -> None:
        """Waits until the terminal shows its cursor again, which a spinner hides."""
        deadline = time.monotonic() + PATIENCE_S
        while b"\x1b[?25h" not in self._seen:
            assert self._more(deadline), f"the spinner never ended; seen:\n{self.seen}"

    def close_screen(self) -> None:
        """Stops reading, as `head` does when it has enough."""
        assert self.process.stdout is not None
        self.process.stdout.close()

    def type(self, text: str) -> None:
        """Types at the terminal; "\\x03" is Ctrl-C, "\\x04" Ctrl-D."""
        os.write(self._screen, text.encode())

    def interrupt(self) -> None:
        """Ctrl-C in a shell: the whole process group gets it."""
        os.killpg(self.process.pid, signal.SIGINT)

    def engine(self) -> psutil.Process:
        """The engine's process."""
        children = psutil.Process(self.process.pid).children(recursive=True)
        (engine,) = [child for child in children if "spawn_main" in " ".join(child.cmdline())]
        return engine

    def wait_until_it_reads(self) -> None:
        """Waits until a program that has shown its prompt is really reading, so that a signal meets it there."""
        process = psutil.Process(self.process.pid)
        eventually(lambda: process.status() == psutil.STATUS_SLEEPING)

    def wait_for_work(self, seconds: float) -> None:
        """Waits until the engine has used this much more CPU time, for where nothing shows that it is at work."""
        engine = self.engine()

        def used() -> float:
            times = engine.cpu_times()
            return times.user + times.system

        wanted = used() + seconds
        eventually(lambda: used() >= wanted)

    def end(self) -> Outcome:
        """Waits for the end of the process; `out` is all that was shown."""
        deadline = time.monotonic() + PATIENCE_S
        while self._more(deadline):
            pass
        rest = self.process.stdout.read().decode() if self.process.stdout and self._own_stdout else ""
        err = self.process.stderr.read().decode() if self.process.stderr else ""
        code = self.process.wait(PATIENCE_S)
        assert "Traceback" not in self.seen + rest + err, self.seen + err
        return Outcome(code, rest if self._own_stdout else self.seen, err)

    @property
    def _own_stdout(self) -> bool:
        return self.process.stdout is not None and self.process.stdout.fileno() != self._screen

    def _more(self, deadline: float) -> bool:
        left = deadline - time.monotonic()
        ready, _, _ = select.select([self._screen], [], [], max(left, 0.0))
        assert ready, f"nothing more came; seen:\n{self.seen}"
        try:
            got = os.read(self._screen, 65536)
        except OSError:  # how a terminal says that its other end is closed
            return False
        self._seen += got
        return bool(got)


def eventually(condition: Callable[[], bool]) -> None:
    """Waits until something is so that sends no word of it."""
    deadline = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < deadline, "it never came"
        select.select([], [], [], 0.01)


@contextmanager
def started(*arguments: str | Path, stdin: IO[bytes] | int | None = subprocess.DEVNULL) -> Iterator[Running]:
    """The command with its output in a pipe."""
    with _process(
        command(*arguments), stdin=stdin, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True
    ) as process:
        assert process.stdout is not None
        yield Running(process, process.stdout.fileno())


@contextmanager
def watched(*arguments: str | Path) -> Iterator[Running]:
    """The command with its stdout in a pipe and a terminal for its stderr, which is what is read."""
    import pty

    ours, theirs = pty.openpty()
    try:
        with _process(
            command(*arguments),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=theirs,
            start_new_session=True,
        ) as process:
            os.close(theirs)
            yield Running(process, ours)
    finally:
        os.close(ours)


@contextmanager
def in_terminal(*arguments: str | Path) -> Iterator[Running]:
    """The command in a terminal of its own."""
    import pty

    ours, theirs = pty.openpty()
    try:
        line = [sys.executable, "-c", _IN_TERMINAL, *command(*arguments)]
        with _process(line, stdin=theirs, stdout=theirs, stderr=theirs, start_new_session=True) as process:
            os.close(theirs)
            yield Running(process, ours)
    finally:
        os.close(ours)


@contextmanager
def _process(line: Sequence[str], **how: Any) -> Iterator[subprocess.Popen[bytes]]:
    with subprocess.Popen(line, env=environment(), **how) as process:
        try:
            yield process
        finally:
            process.kill()
