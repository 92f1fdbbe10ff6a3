"""Pictures of every page: both themes, both languages, 100 % and 150 %, on a screen of 1366 × 768 without a monitor.

    screenshots.py FOLDER [--only PART]     e.g. --only en-dark-100

The window is the real one on the demo pair, and so are the answers. Made up are the conversation called "formats",
which shows how text is set, and the downloads. Needs what `make setup-tests` installs.
"""

from __future__ import annotations

import argparse
import itertools
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Final

ROOT: Final = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "tests")]

if TYPE_CHECKING:
    from tandem.ui.app import Application

SIZE: Final = (1366, 768)
PATIENCE_S: Final = 60.0

QUESTIONS: Final = {
    "en": ("Tell me a short story about a fox.", "Write a Python function that checks if a number is prime."),
    "ko": ("토끼에 대한 짧은 이야기를 써 주세요.", "Write a Python function that checks if a number is prime."),
}
FORMATS: Final = """Here is what text can look like.

## A heading, then a list

1. First, *measure* what it costs.
2. Then decide, with `draft_length = 3` or another number:
   - nested, with **weight**
   - and a [link](https://example.org) that asks first

| draft length | tok/s | gain |
|---:|---:|---|
| 0 | 36.0 | – |
| 1 | 47.8 | **+33 %** |
| 4 | 41.9 | +16 % |

```python
def is_prime(n: int) -> bool:
    \"\"\"Trial division; enough for small numbers.\"\"\"
    if n < 2:
        return False
    return all(n % d for d in range(2, int(n**0.5) + 1))
```

> The gain is $(1 + \\sum_i a_i) / (V(n+1)/V(1) + nD)$.

$$\\frac{a}{b} = \\sqrt{c^2}$$

And text from right to left, with a name in it:

السرعة مع Tandem أفضل من قبل.
"""


def shoot_all(folder: Path, only: str) -> int:
    """Takes every picture, each setting in a process of its own; returns the exit code."""
    from support.xscreen import screen  # Xvfb is needed here only

    folder.mkdir(parents=True, exist_ok=True)
    with screen(*SIZE) as display:
        for language, theme, scale in itertools.product(("en", "ko"), ("light", "dark"), (100, 150)):
            name = f"{language}-{theme}-{scale}"
            if only not in name:
                continue
            with tempfile.TemporaryDirectory() as home:
                settings = {"QT_SCALE_FACTOR": str(scale / 100), "TANDEM_HOME": home, "OMP_WAIT_POLICY": "PASSIVE"}
                line = [sys.executable, __file__, str(folder), "--shoot", name]
                done = subprocess.run(line, env=display.environment(**settings), check=False)
                if done.returncode:
                    return done.returncode
    print(f"{len(list(folder.glob('*.png')))} pictures in {folder}")
    return 0


class Photographer:
    """Leads one window from page to page.

    Args:
        application: The app, started.
        folder: Where pictures go.
        name: Language, theme and scale, as "en-dark-150".
    """

    def __init__(self, application: Application, folder: Path, name: str) -> None:
        self._application, self._folder, self._name = application, folder, name
        self._language = name.split("-")[0]

    def until(self, ready: Callable[[], bool], what: str) -> None:
        """Lets the window live until something is the case."""
        from PySide6.QtCore import QDeadlineTimer, QEventLoop, QTimer

        loop, limit = QEventLoop(), QDeadlineTimer(round(PATIENCE_S * 1000))
        timer = QTimer()
        found = [False]

        def look() -> None:
            try:
                found[0] = ready()
            except BaseException:
                loop.quit()
                raise
            if found[0] or limit.hasExpired():
                loop.quit()

        timer.timeout.connect(look)
        timer.start(30)
        loop.exec()
        timer.stop()
        if not found[0]:
            raise SystemExit(f"{self._name}: waited in vain for {what}")

    def picture(self, what: str) -> None:
        """Takes a picture of the window, after it has painted what there is to paint."""
        from PySide6.QtWidgets import QApplication

        painted = [0]
        self.until(lambda: painted.__setitem__(0, painted[0] + 1) or painted[0] > 5, "painting")  # type: ignore[func-returns-value]
        window = QApplication.activePopupWidget() or QApplication.activeModalWidget()
        main = self._application.window
        image = main.grab()
        if window is not None:
            from PySide6.QtGui import QPainter

            painter = QPainter(image)
            painter.drawPixmap(main.mapFromGlobal(window.mapToGlobal(window.rect().topLeft())), window.grab())
            painter.end()
        image.save(str(self._folder / f"{self._name}-{what}.png"))

    def session(self) -> None:
        """All pictures of one setting."""
        from tandem.chat.conversation import Node
        from tandem.chat.history import History
        from tandem.settings import PairChoice

        application = self._application
        control, window, chat = application.controller, application.window, application.window.chat
        window.resize(window.screen().availableGeometry().size())
        window.move(0, 0)
        self.until(lambda: chat.body.currentWidget() is chat.welcome, "the welcome")
        self.picture("welcome")
        chat.try_demo()
        self.until(lambda: control.pair.kind == "loaded", "the pair")
        chat.composer.focus()
        self.picture("empty")
        window.show_page("compare")
        self.picture("compare-empty")
        window.show_page("chat")
        for question in QUESTIONS[self._language]:
            chat.composer.set_text(question)
            chat.composer.editor.send_pressed.emit()
            self.until(lambda: control.running, "an answer")
            self.until(lambda: not control.running, "its end")
        self.picture("chat")
        control.set_show_drafted(True)
        self.picture("drafted")
        control.set_show_drafted(False)
        popover = chat.header.explain_drafter()
        self.picture("drafter")
        popover.close()

        def formats(history: History) -> int:
            made = history.new("Formats" if self._language == "en" else "서식")
            asked = history.add(Node(0, made.id, None, "user", "Show me everything that text can be.", created=1.0))
            thought = "Which formats are there? I list them."
            answer = Node(0, made.id, asked.id, "assistant", FORMATS, thought, created=2.0)
            history.set_active(made.id, history.add(answer).id)
            return made.id

        made: list[int] = []
        control.threads.store.ask(formats, made.append)
        self.until(lambda: bool(made), "the made-up chat")
        chat.open_chat(made[0])
        control.chats.refresh()
        self.until(lambda: control.conversation is not None and control.conversation.id == made[0], "the chat")
        self.picture("formats")
        chat.transcript.verticalScrollBar().setValue(0)
        self.picture("formats-top")
        chat.focus_search()
        chat.sidebar.search.setText("prime")
        self.until(lambda: chat.sidebar.stack.currentIndex() >= 0 and bool(chat.sidebar.search_text), "the search")
        self.picture("search")
        chat.sidebar.clear_search()
        window.show_page("models")
        self.picture("models")
        self._downloads()
        window.pages.models.show_files()
        self.picture("models-files")
        window.show_page("compare")
        self.picture("compare")
        window.show_page("settings")
        for section in window.pages.settings.sections:
            window.pages.settings.show_section(section)
            self.picture(f"settings-{window.pages.settings.sections.index(section)}")
        window.show_page("chat")
        window.show_shortcuts()
        self.picture("shortcuts")
        from PySide6.QtWidgets import QApplication

        dialog = QApplication.activeModalWidget()
        if dialog is not None:
            dialog.close()
        control.load_pair(PairChoice("files", "/no/such/model.gguf", None))
        self.until(lambda: control.pair.kind == "failed", "the failure")
        self.picture("failed")

    def _downloads(self) -> None:
        """A download under way, one that ran out of room, a pair in use, and a file that was set aside: all made up."""
        from support import model_views
        from tandem.models.state import FileState

        window, page = self._application.window, self._application.window.pages.models
        keeper = self._application.controller.models
        self.until(lambda: not keeper.looking, "a look at the model folder")
        job = model_views.job("e2b", FileState.TRANSFERRING, 0.43, bytes_per_s=11.4e6, left_s=131.0)
        page.set_overview(model_views.overview(model_views.pair_view("e2b", FileState.TRANSFERRING, share=0.43)))
        page.set_job(job)
        window.chat.header.set_job(job)
        self.picture("models-downloading")
        window.show_page("chat")
        self.picture("chat-downloading")
        window.show_page("models")
        self.until(lambda: not keeper.looking, "a look at the model folder")
        page.set_job(None)
        window.chat.header.set_job(None)
        paused = model_views.pair_view(
            "e4b",
            FileState.PAUSED,
            share=0.71,
            sentence="The disk with the model folder is full.",
            remedy="Make room, then press Resume.",
        )
        page.set_overview(model_views.overview(model_views.pair_view("e2b", FileState.INSTALLED), paused))
        self.picture("models-installed")
        keeper.refresh()


def shoot(folder: Path, name: str) -> int:
    """Takes the pictures of one setting in this process; returns the exit code."""
    from PySide6.QtWidgets import QApplication

    from tandem.settings import Loaded, Settings
    from tandem.ui.app import Application

    language, theme, _ = name.split("-")
    app = QApplication(["tandem"])
    application = Application(app, Loaded(Settings(language=language, theme=theme)))  # type: ignore[arg-type]
    application.start()
    try:
        Photographer(application, folder, name).session()
    finally:
        application.end()
    return 0


def main() -> int:
    """Reads the command line."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--only", default="")
    parser.add_argument("--shoot", default="")
    options = parser.parse_args()
    folder = options.folder.absolute()
    return shoot(folder, options.shoot) if options.shoot else shoot_all(folder, options.only)


if __name__ == "__main__":
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    sys.exit(main())
