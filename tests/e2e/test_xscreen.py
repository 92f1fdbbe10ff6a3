"""The real screen that other tests rely on: windows are found on it, typed into, clicked, seen and closed."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from PySide6.QtGui import QImage

from support import xscreen
from support.xscreen import Box, Screen

pytestmark = pytest.mark.skipif(bool(xscreen.missing()), reason=f"not installed: {', '.join(xscreen.missing())}")

WINDOW = """
import sys
from pathlib import Path
from PySide6.QtWidgets import QApplication, QLineEdit, QPushButton, QSizePolicy, QVBoxLayout, QWidget

class Window(QWidget):
    def closeEvent(self, event):
        Path(sys.argv[2]).write_text("closed")

app = QApplication([])
app.setStyleSheet("QWidget { background: #ff0000 }")
window = Window()
window.setWindowTitle(sys.argv[1])
field, button = QLineEdit(), QPushButton("Press")
button.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Expanding)
field.returnPressed.connect(lambda: window.setWindowTitle("typed " + field.text()))
button.clicked.connect(lambda: window.setWindowTitle("pressed"))
layout = QVBoxLayout(window)
layout.addWidget(field)
layout.addWidget(button)
window.resize(300, 200)
window.show()
app.exec()
"""


@pytest.fixture(scope="module")
def display() -> Iterator[Screen]:
    with xscreen.screen(800, 600) as found:
        yield found


def test_a_window_is_used_and_closed(display: Screen, tmp_path: Path) -> None:
    line = [sys.executable, "-c", WINDOW, "first", str(tmp_path / "closed")]
    with display.running(line, log=tmp_path / "log") as process:
        window = display.window("^first$", process)
        assert display.windows("^first$") == [window]
        assert display.windows(window_class="no-such-class") == []
        display.focus(window)
        display.type("Hello, you: 2 + 2?")
        display.key("Return")
        display.wait_until(lambda: display.title(window) == "typed Hello, you: 2 + 2?", display.title(window))
        display.place(window, Box(100, 50, 400, 300))
        display.click(window, 200, 240)
        display.wait_until(lambda: display.title(window) == "pressed", "the button was not pressed")
        display.close(window)
        assert process.wait(xscreen.PATIENCE_S) == 0
    assert (tmp_path / "closed").read_text() == "closed"
    assert (tmp_path / "log").read_text() == ""


def test_two_programs_are_told_apart(display: Screen, tmp_path: Path) -> None:
    def line(number: int) -> list[str]:
        return [sys.executable, "-c", WINDOW, "same", str(tmp_path / f"closed-{number}")]

    with display.running(line(1)) as first, display.running(line(2)) as second:
        windows = {display.window("^same$", first), display.window("^same$", second)}
        assert len(windows) == 2
        assert set(display.windows("^same$")) == windows


def test_a_picture_shows_what_is_there(display: Screen, tmp_path: Path) -> None:
    with display.running([sys.executable, "-c", WINDOW, "red", str(tmp_path / "closed")]) as process:
        window = display.window("^red$", process)
        display.place(window, Box(0, 0, 300, 200))

        def red() -> bool:
            image = QImage(str(display.save(tmp_path / "window.png", window)))
            return (image.width(), image.height()) == (300, 200) and image.pixelColor(2, 2).name() == "#ff0000"

        display.wait_until(red, "the window is not red")
        assert QImage(str(display.save(tmp_path / "screen.png"))).width() == 800
    assert display.windows("^red$") == []


def test_a_program_that_ends_is_not_waited_for(display: Screen) -> None:
    with (
        display.running([sys.executable, "-c", "raise SystemExit(3)"]) as process,
        pytest.raises(AssertionError, match="ended with 3"),
    ):
        display.window("never", process)


def test_screens_do_not_share_a_display(display: Screen) -> None:
    with xscreen.screen(320, 200) as second:
        assert second.display != display.display
        assert second.windows() == []
