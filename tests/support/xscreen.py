"""A real X screen that nobody looks at: Xvfb, with a keyboard and a pointer driven by xdotool. No window manager.

with screen() as display, display.running([sys.executable, "-m", "tandem"]) as process:
    window = display.window("Tandem", process)
    display.focus(window)
    display.type("Hello")
    display.key("Return")
    display.save(folder / "window.png")
"""

from __future__ import annotations

import ctypes
import os
import re
import select
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import ClassVar, Final

import psutil

from tandem.engine.lifeline import die_with_parent

PATIENCE_S: Final = 60.0
"""How long something that must come is waited for; only a failing test waits that long."""

# In a process of its own: this one's Qt, if there is one, is on another screen or on none.
_GRAB: Final = (
    "import sys\nfrom PySide6.QtGui import QGuiApplication\napp = QGuiApplication([])\n"
    "sys.exit(not app.primaryScreen().grabWindow(int(sys.argv[1])).save(sys.argv[2], 'PNG'))"
)

PROGRAMS: Final = ("Xvfb", "xdotool")


def missing() -> list[str]:
    """Programs that are needed and not installed."""
    return [name for name in PROGRAMS if shutil.which(name) is None]


@dataclass(frozen=True)
class Box:
    """A window's place on the screen, in pixels."""

    x: int
    y: int
    width: int
    height: int


class Screen:
    """A running X server.

    Args:
        display: Its name, such as ":7".
    """

    def __init__(self, display: str) -> None:
        self.display: Final = display

    def environment(self, **more: str) -> dict[str, str]:
        """Environment of a program that shall show itself here; Qt takes its plugin for X and no scale."""
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("QT_", "WAYLAND_"))}
        return {**kept, "DISPLAY": self.display, "QT_QPA_PLATFORM": "xcb", **more}

    @contextmanager
    def running(
        self, line: Sequence[str | Path], env: dict[str, str] | None = None, log: Path | None = None
    ) -> Iterator[subprocess.Popen[bytes]]:
        """A program on this screen. It is asked to end, then killed, when the block is left.

        Args:
            line: The command line.
            env: More of the environment.
            log: File for its output and errors; without one they go where the test's own go.
        """
        output = log.open("wb") if log is not None else None
        try:
            process = subprocess.Popen(line, env=self.environment(**(env or {})), stdout=output, stderr=output)
        finally:
            if output is not None:
                output.close()
        try:
            yield process
        finally:
            process.terminate()
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()

    def windows(self, title: str = "", window_class: str = "") -> list[int]:
        """Ids of visible windows whose title or class matches; both are regular expressions."""
        by = ["--class", window_class] if window_class else ["--name", title or "."]
        found = self._xdotool("search", "--onlyvisible", *by, check=False)
        windows = [int(line) for line in found.split()]
        if window_class and title:
            windows = [window for window in windows if re.search(title, self.title(window))]
        return windows

    def window(self, title: str = "", process: subprocess.Popen[bytes] | None = None, window_class: str = "") -> int:
        """Waits for the window and returns its id.

        Args:
            title: Regular expression.
            process: Whose window it is; the wait ends when it ends.
            window_class: Regular expression.
        """
        found: list[int] = []

        def shown() -> bool:
            assert process is None or process.poll() is None, f"the program ended with {process.poll()}"
            found[:] = [
                window for window in self.windows(title, window_class) if process is None or self._of(window, process)
            ]
            return bool(found)

        self.wait_until(shown, f"no window {title or window_class!r} on {self.display}")
        return found[-1]

    def title(self, window: int) -> str:
        """What stands in its title bar."""
        return self._xdotool("getwindowname", str(window), check=False).rstrip("\n")

    def box(self, window: int) -> Box:
        """Where it is."""
        lines = self._xdotool("getwindowgeometry", "--shell", str(window)).splitlines()
        values = dict(line.split("=", 1) for line in lines if "=" in line)
        return Box(int(values["X"]), int(values["Y"]), int(values["WIDTH"]), int(values["HEIGHT"]))

    def focus(self, window: int) -> None:
        """Gives it the keyboard, as no window manager does it."""
        self._xdotool("windowfocus", "--sync", str(window))

    def place(self, window: int, box: Box) -> None:
        """Moves it and gives it a size, as no window manager does it."""
        self._xdotool("windowsize", str(window), str(box.width), str(box.height))
        self._xdotool("windowmove", str(window), str(box.x), str(box.y))
        self.wait_until(lambda: self.box(window) == box, "the window did not move")

    def close(self, window: int) -> None:
        """Asks it to close, as the cross in its title bar would."""
        _send_delete(self.display, window)  # xdotool's `windowclose` takes it away by force

    def type(self, text: str, delay_ms: int = 5) -> None:
        """Types into what has the keyboard."""
        self._xdotool("type", "--delay", str(delay_ms), "--", text)

    def key(self, *names: str) -> None:
        """Presses keys, one after the other: "Return", "shift+Tab", "ctrl+n"."""
        self._xdotool("key", "--delay", "5", *names)

    def click(self, window: int, x: int, y: int, button: int = 1) -> None:
        """Clicks at a place in the window, in its own pixels."""
        self._xdotool("mousemove", "--sync", "--window", str(window), str(x), str(y))
        self._xdotool("click", str(button))

    def save(self, path: Path, window: int | None = None) -> Path:
        """A picture of the screen, or of one window, as PNG."""
        line = [sys.executable, "-c", _GRAB, str(window or 0), str(path)]
        done = subprocess.run(line, env=self.environment(), capture_output=True, text=True, timeout=PATIENCE_S)
        assert done.returncode == 0, done.stderr
        return path

    def wait_until(self, condition: Callable[[], bool], complaint: str) -> None:
        """Waits for something on the screen that sends no word of it."""
        deadline = time.monotonic() + PATIENCE_S
        while not condition():
            assert time.monotonic() < deadline, complaint
            select.select([], [], [], 0.02)

    def _of(self, window: int, process: subprocess.Popen[bytes]) -> bool:
        owner = self._xdotool("getwindowpid", str(window), check=False).strip()
        if not owner.isdecimal():
            return False
        if int(owner) == process.pid:
            return True
        try:  # its parent may be a launcher
            return any(parent.pid == process.pid for parent in psutil.Process(int(owner)).parents())
        except psutil.NoSuchProcess:
            return False

    def _xdotool(self, *arguments: str, check: bool = True) -> str:
        done = subprocess.run(
            ["xdotool", *arguments], env=self.environment(), capture_output=True, text=True, timeout=PATIENCE_S
        )
        assert not check or done.returncode == 0, f"xdotool {' '.join(arguments)}: {done.stderr}"
        return done.stdout


class _ClientMessage(ctypes.Structure):
    """Xlib's XClientMessageEvent, in the room of an XEvent."""

    _fields_: ClassVar = [
        ("type", ctypes.c_int),
        ("serial", ctypes.c_ulong),
        ("send_event", ctypes.c_int),
        ("display", ctypes.c_void_p),
        ("window", ctypes.c_ulong),
        ("message_type", ctypes.c_ulong),
        ("format", ctypes.c_int),
        ("data", ctypes.c_long * 5),
        ("rest", ctypes.c_long * 12),
    ]


def _send_delete(display: str, window: int) -> None:
    """The message by which a window manager asks a window to close."""
    x = ctypes.CDLL("libX11.so.6")
    x.XOpenDisplay.restype = ctypes.c_void_p
    x.XInternAtom.restype = ctypes.c_ulong
    server = ctypes.c_void_p(x.XOpenDisplay(display.encode()))
    assert server, f"no {display}"
    protocols, delete = (x.XInternAtom(server, name, 0) for name in (b"WM_PROTOCOLS", b"WM_DELETE_WINDOW"))
    client_message, current_time = 33, 0
    event = _ClientMessage(type=client_message, window=window, message_type=protocols, format=32)
    event.data[0], event.data[1] = delete, current_time
    x.XSendEvent(server, ctypes.c_ulong(window), 0, ctypes.c_long(0), ctypes.byref(event))
    x.XCloseDisplay(server)  # sends what is waiting


@contextmanager
def screen(width: int = 1366, height: int = 768, dpi: int = 96) -> Iterator[Screen]:
    """An X server on a display that is free, from the moment at which it answers."""
    ours, theirs = os.pipe()
    line = ["Xvfb", "-displayfd", str(theirs), "-screen", "0", f"{width}x{height}x24", "-dpi", str(dpi)]
    try:
        server = subprocess.Popen(
            [*line, "-nolisten", "tcp", "-noreset"],
            pass_fds=[theirs],
            stderr=subprocess.DEVNULL,
            preexec_fn=partial(die_with_parent, os.getpid()),  # a test run that is killed leaves no server behind
        )
    finally:
        os.close(theirs)
    try:
        yield Screen(f":{_number(ours)}")
    finally:
        os.close(ours)
        server.terminate()
        server.wait(PATIENCE_S)


def _number(answer: int) -> int:
    """The display's number, which the server writes when it is ready."""
    text = b""
    while not text.endswith(b"\n"):
        ready, _, _ = select.select([answer], [], [], PATIENCE_S)
        assert ready, "Xvfb does not answer"
        got = os.read(answer, 64)
        assert got, "Xvfb ended"
        text += got
    return int(text)
