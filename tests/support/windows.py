"""The app as a person has it: the real window on a home of its own, used with keys and clicks.

    with window(qtbot, pair=None) as user:
        user.load_demo()
        user.say("Hello!")
        assert user.answers

The engine is the real one, on the demo pair or on a pair made for the test.
"""

from __future__ import annotations

import os
import re
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar, cast

import psutil
from PySide6.QtCore import QMimeData, QObject, QPoint, QPointF, Qt, QUrl
from PySide6.QtGui import QDragEnterEvent, QDropEvent, QGuiApplication, QKeySequence, QTextCursor
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QDialog, QFileDialog, QLineEdit, QWidget
from pytestqt.qtbot import QtBot

from support.desk import GREEDY, STORY
from support.handset import Pair
from tandem import paths, settings
from tandem.chat.conversation import Node, Summary
from tandem.settings import PairChoice, Settings
from tandem.ui.app import Application
from tandem.ui.chat_page import ChatPage
from tandem.ui.controller import Controller
from tandem.ui.kit_notices import Notice
from tandem.ui.transcript import Transcript
from tandem.ui.transcript_links import Link, links_of
from tandem.ui.transcript_look import ACTS
from tandem.ui.window import MainWindow

SMALL = (911, 512)
"""1366 × 768 at 150 %, in logical pixels."""

PATIENCE_MS = 30_000
_UNFINISHED = (".part", ".tmp")
_Found = TypeVar("_Found", bound=QObject)


class User:
    """Somebody in front of the window.

    Attributes:
        application: The app.
        gone: How often the window said that it is gone.
    """

    def __init__(self, qtbot: QtBot, application: Application) -> None:
        self.qtbot, self.application = qtbot, application
        self.gone = 0
        application.window.gone.connect(self._on_gone)

    def _on_gone(self) -> None:
        self.gone += 1

    @property
    def window(self) -> MainWindow:
        return self.application.window

    @property
    def chat(self) -> ChatPage:
        return self.application.window.chat

    @property
    def controller(self) -> Controller:
        return self.application.controller

    @property
    def transcript(self) -> Transcript:
        return self.chat.transcript

    # What is seen

    @property
    def shown(self) -> str:
        """The text of the transcript."""
        return self.transcript.toPlainText()

    @property
    def path(self) -> list[Node]:
        """The messages of the chat that is shown, the answer that runs included."""
        controller = self.controller
        return controller.chats.tree.path(controller.chats.leaf)

    @property
    def answer(self) -> Node:
        """The last message, an answer."""
        node = self.path[-1]
        assert node.role == "assistant"
        return node

    @property
    def streamed(self) -> str:
        """What has come of the answer that runs, "" while none does."""
        run = self.controller.answers.run
        return "" if run is None else "".join(piece.text for piece in run.pieces() if piece.channel == "answer")

    @property
    def notices(self) -> list[Notice]:
        return self.chat.notices.notices()

    def notice(self, part: str) -> Notice:
        """The message in view with this text in it; waited for."""
        self.wait(lambda: any(part in notice.text for notice in self.notices), f"no message with {part!r}")
        return next(notice for notice in self.notices if part in notice.text)

    @property
    def chats(self) -> list[Summary]:
        """The chats as the sidebar lists them."""
        return list(self.chat.sidebar._summaries or ())

    @property
    def focus(self) -> QWidget | None:
        return QApplication.focusWidget()

    def link(self, what: str, node: int | None = None) -> Link:
        """The last link of the transcript that does this."""
        number = r"-?\d+" if node is None else str(node)
        found = [link for link in self.links() if re.fullmatch(f"{ACTS}{what}/{number}", link.href)]
        assert found, f"no link for {what} among {[link.href for link in self.links()]}"
        return found[-1]

    def links(self) -> list[Link]:
        """All links of the transcript."""
        found, block = [], self.transcript.document().begin()
        while block.isValid():
            found += links_of(block)
            block = block.next()
        return found

    # Waiting

    def wait(self, condition: Callable[[], object], what: str = "", timeout: int = PATIENCE_MS) -> None:
        """Lets the event loop run until the condition holds."""

        def check() -> None:
            assert condition(), what or "it never came"

        self.qtbot.waitUntil(check, timeout=timeout)

    def settled(self) -> None:
        """Waits until the store has done what it was asked so far, and its news were shown."""
        done: list[None] = []
        self.controller.threads.store.ask(lambda _: None, done.append, lambda _: done.append(None))
        self.wait(lambda: done)

    def child(self, kind: type[_Found], parent: QObject | None = None) -> _Found:
        """The visible child of this class; waited for."""
        top = parent or self.window

        def found() -> list[_Found]:
            return [one for one in top.findChildren(kind) if not isinstance(one, QWidget) or one.isVisible()]

        self.wait(found, f"no {kind.__name__} is shown")
        return found()[-1]

    # Doing

    def start(self) -> None:
        """Opens the window, and waits until it takes messages."""
        ready: list[None] = []
        self.controller.ready.connect(lambda: ready.append(None))
        self.application.start()
        QTest.qWaitForWindowActive(self.window)
        self.wait(lambda: ready, "the store never opened")
        self.settled()

    def loaded(self) -> None:
        """Waits for the pair."""
        self.wait(lambda: self.controller.pair.kind == "loaded", "the pair was not loaded")

    def press(self, keys: str, times: int = 1) -> None:
        """Presses keys such as "Ctrl+N" or "Return", where the keyboard is."""
        for _ in range(times):
            combination = QKeySequence(keys, QKeySequence.SequenceFormat.PortableText)[0]
            box = QApplication.activeModalWidget()
            if box is not None:
                self.wait(lambda box=box: self.focus is not None and self.focus.window() is box)
            target = self.focus or QApplication.activeWindow() or self.window
            QTest.keyClick(target, combination.key(), combination.keyboardModifiers())

    def type(self, text: str) -> None:
        """Types, where the keyboard is."""
        focus = self.focus
        assert focus is not None, "the keyboard is nowhere"
        QTest.keyClicks(focus, text)

    def write(self, text: str) -> None:
        """Types a message into the composer."""
        self.press("Ctrl+L")
        assert self.focus is self.chat.composer.editor
        self.type(text)

    def send(self, text: str = STORY) -> None:
        """Types a message and sends it."""
        self.write(text)
        self.press("Return")

    def ask(self, text: str = STORY) -> Node:
        """Sends a message and waits for its answer."""
        return self.answered(lambda: self.send(text))

    def answered(self, act: Callable[[], object]) -> Node:
        """Does something that gets an answer, and waits for its end."""
        ended: list[Node] = []
        self.controller.node_finished.connect(ended.append)
        act()
        self.wait(lambda: ended and not self.controller.running, "no answer")
        self.controller.node_finished.disconnect(ended.append)
        self.settled()
        return ended[-1]

    def begin(self, text: str = STORY, characters: int = 20) -> None:
        """Sends a message and waits until some of the answer is seen."""
        self.send(text)
        self.wait(lambda: len(self.streamed) >= characters and self.streamed[:characters] in self.shown, "no text came")

    def stopped(self) -> None:
        """Waits until no answer runs any more."""
        self.wait(lambda: not self.controller.running, "the answer still runs")
        self.settled()

    def follow(self, what: str, node: int | None = None) -> None:
        """Clicks a link of the transcript."""
        link = self.link(what, node)
        if not self.transcript.viewport().rect().contains(self.place_of(link)):
            self.transcript.show_position(link.start)
        QTest.mouseClick(self.transcript.viewport(), Qt.MouseButton.LeftButton, pos=self.place_of(link))

    def place_of(self, link: Link) -> QPoint:
        """A place on a link (its first character: it may go over several lines), in the transcript's viewport."""
        cursor = QTextCursor(self.transcript.document())
        cursor.setPosition(link.start)
        first = self.transcript.cursorRect(cursor)
        return QPoint(first.left() + 4, first.center().y())

    def choose_file(self, path: Path) -> None:
        """Writes a path into the file dialog that is open, and confirms it."""
        dialog = self.child(QFileDialog)
        field = dialog.findChild(QLineEdit, "fileNameEdit")
        assert field is not None
        field.setText(str(path))
        QTest.keyClick(field, Qt.Key.Key_Return)
        self.wait(lambda: not any(box.isVisible() for box in self.window.findChildren(QFileDialog)), "it stays open")

    def back(self) -> None:
        """Goes back to the window after a dialog; without a window manager nobody else does that."""
        self.wait(lambda: QApplication.activeModalWidget() is None, "a dialog is still open")
        self.window.activateWindow()
        QTest.qWaitForWindowActive(self.window)

    def dialog(self) -> QDialog:
        """The dialog that is open; waited for."""
        return self.child(QDialog)

    def kill_engine(self, number: signal.Signals = signal.SIGKILL) -> None:
        """Ends the engine's process from outside."""
        pid = self.controller.engine_pid
        assert pid is not None
        os.kill(pid, number)

    def close(self, how: Callable[[], object] | None = None) -> None:
        """Closes the window, as its cross does unless told otherwise, and waits until all of it has ended."""
        (how or self.window.close)()
        self.wait(lambda: self.gone, "it does not end")

    def end(self) -> None:
        """Closes what is still open, checks that nothing runs any more, and takes the window down."""
        pid = self.controller.engine_pid
        self.application.end()
        threads = self.controller.threads
        assert not any(one.isRunning() for one in (*threads.all, threads.engine.helper))
        assert pid is None or not psutil.pid_exists(pid) or psutil.Process(pid).status() == psutil.STATUS_ZOMBIE
        assert unfinished() == []
        self.window.hide()
        self.window.deleteLater()
        self.application.deleteLater()


@contextmanager
def window(qtbot: QtBot, pair: Pair | PairChoice | None = None, *, load: bool = True, **fields: Any) -> Iterator[User]:
    """The app, opened; closed at the end if the test did not.

    Args:
        qtbot: Of the test.
        pair: What the settings say to load; the demo pair for None.
        load: Whether to wait until it is loaded; without it (and without a pair) it is a first start.
        fields: Of the settings.
    """
    keep(pair, load=load, **fields)
    with opened(qtbot) as user:
        if load:
            user.loaded()
        yield user


def keep(pair: Pair | PairChoice | None = None, *, load: bool = True, **fields: Any) -> Settings:
    """Writes the settings that the next window finds: greedy, short answers on one thread, in English."""
    values: dict[str, Any] = {"sampling": GREEDY, "threads": 1, "context": 2048, "language": "en", "theme": "light"}
    if isinstance(pair, Pair):
        pair = PairChoice("files", str(pair.target), str(pair.drafter))
    if pair is not None:
        values["pair"] = pair
    if pair is not None or load:
        values["first_run_done"] = True
    values |= fields
    made = Settings().changed(**values)
    settings.save(made)
    return made


@contextmanager
def opened(qtbot: QtBot) -> Iterator[User]:
    """The app as the home has it."""
    user = User(qtbot, Application(cast("QApplication", QApplication.instance())))
    try:
        user.start()
        yield user
    finally:
        user.end()


def unfinished() -> list[str]:
    """Files that somebody began to write and did not finish; a download may go on after the next start."""
    home, models = paths.data_dir().parent, paths.models_dir()
    return [str(path) for path in home.rglob("*") if path.suffix in _UNFINISHED and models not in path.parents]


def drop(target: QWidget, data: QMimeData) -> Qt.DropAction:
    """Drops something on the middle of a widget, as the window system does: on whatever lies there and takes drops.

    Returns:
        What the source is told.
    """
    place = target.rect().center()
    inner = target.childAt(place) or target
    place = inner.mapFrom(target, place)
    copy, move = Qt.DropAction.CopyAction, Qt.DropAction.MoveAction
    about = (copy | move, data, Qt.MouseButton.LeftButton, Qt.KeyboardModifier.NoModifier)
    entering = QDragEnterEvent(place, *about)
    entering.ignore()
    QApplication.sendEvent(inner, entering)  # goes up to the first that accepts it, which then gets the drop
    if not entering.isAccepted():
        return Qt.DropAction.IgnoreAction
    dropping = QDropEvent(QPointF(place), *about)
    QApplication.sendEvent(inner, dropping)
    return dropping.dropAction()


def files(*named: Path) -> QMimeData:
    """Files as a file manager drags them."""
    data = QMimeData()
    data.setUrls([QUrl.fromLocalFile(str(path)) for path in named])
    return data


def clipboard() -> str:
    """The clipboard's text."""
    return QGuiApplication.clipboard().text()
