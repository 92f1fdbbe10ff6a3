"""What is typed while the store is slow, or not open yet, is not lost."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import cast

from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from support.windows import User, keep, opened
from tandem.chat.history import History
from tandem.paths import data_dir
from tandem.ui.app import Application


@contextmanager
def busy_store(user: User) -> Iterator[None]:
    """The store does nothing else meanwhile, and then everything that waits."""
    gate = threading.Event()
    user.controller.threads.store.ask(lambda _: gate.wait(30))
    try:
        yield
    finally:
        gate.set()
    user.settled()
    user.settled()  # what was asked for in answer to what came


def unsent(user: User, chat: int | None) -> str:
    found: list[str] = []
    user.controller.threads.store.ask(lambda history: history.draft(chat), found.append)
    user.wait(lambda: found)
    return found[0]


def two_chats(user: User) -> tuple[int, int]:
    made: list[tuple[int, int]] = []
    user.controller.threads.store.ask(lambda history: (history.new("A").id, history.new("B").id), made.append)
    user.wait(lambda: made)
    return made[0]


def test_in_a_new_chat(qtbot: QtBot) -> None:
    keep(load=False, first_run_done=True)
    with opened(qtbot) as user:
        old, _ = two_chats(user)
        user.chat.composer.editor.insert("of before")
        user.chat.open_chat(old)
        user.settled()
        with busy_store(user):
            user.chat.new_chat()
            user.chat.new_chat()
            user.write("typed since")
        assert user.chat.composer.text() == "of before\n\ntyped since"


def test_while_another_chat_is_opened_it_belongs_to_the_one_that_is_still_shown(qtbot: QtBot) -> None:
    keep(load=False, first_run_done=True)
    with opened(qtbot) as user:
        first, second = two_chats(user)
        user.chat.open_chat(first)
        user.settled()
        with busy_store(user):
            user.chat.open_chat(second)
            user.write("to the first")
        assert user.chat.composer.text() == ""
        assert (unsent(user, first), unsent(user, second)) == ("to the first", "")


def test_the_same_chat_opened_again_changes_nothing(qtbot: QtBot) -> None:
    keep(load=False, first_run_done=True)
    with opened(qtbot) as user:
        first, _ = two_chats(user)
        for again in (lambda: user.chat.open_chat(first), user.chat.new_chat):
            again()
            user.settled()
            with busy_store(user):
                again()
                user.write("typed")
            assert user.chat.composer.text() == "typed"
            user.chat.composer.set_text("")


def test_before_the_chats_are_open(qtbot: QtBot) -> None:
    keep(load=False, first_run_done=True)
    history = History.open(data_dir() / "chats.db")
    history.set_draft(None, "of yesterday")
    history.close()
    user = User(qtbot, Application(cast("QApplication", QApplication.instance())))
    ready: list[None] = []
    user.controller.ready.connect(lambda: ready.append(None))
    try:
        user.window.show()
        user.chat.composer.editor.insert("typed early")
        user.chat.composer.flush()  # as half a second later
        user.application.start()
        user.wait(lambda: ready)
        user.settled()
        assert user.chat.composer.text() == "of yesterday\n\ntyped early"
        user.chat.composer.flush()
        assert unsent(user, None) == "of yesterday\n\ntyped early"
    finally:
        user.end()
