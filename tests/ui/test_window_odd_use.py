"""Somebody who presses and clicks whatever there is, and whose engine dies now and then: the window goes on."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest
from PySide6.QtGui import QKeySequence
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QAbstractButton, QApplication, QWidget
from pytestqt.qtbot import QtBot

from support.desk import endless_pair
from support.handset import Pair
from support.windows import User, window
from tandem.settings import Sampling
from tandem.ui.shortcuts import SHORTCUTS

ACTS = 80
KEYS = [key for name, shortcut in SHORTCUTS.items() if name != "quit" for key in shortcut.keys]
KEYS += ["Return", "Esc", "Tab", "Space", "Down", "Shift+F10"]

pytestmark = pytest.mark.qt_log_ignore(r"This plugin does not support (raise\(\)|grabbing the keyboard)")


@pytest.fixture(scope="module")
def endless(tmp_path_factory: pytest.TempPathFactory) -> Pair:
    return endless_pair(tmp_path_factory.mktemp("endless"))


def front() -> QWidget | None:
    return QApplication.activePopupWidget() or QApplication.activeModalWidget()


def press(user: User, dice: random.Random) -> str:
    name = dice.choice(KEYS)
    key = QKeySequence(name, QKeySequence.SequenceFormat.PortableText)[0]
    target = QApplication.activePopupWidget() or user.focus or front() or user.window
    QTest.keyClick(target, key.key(), key.keyboardModifiers())
    return name


def write(user: User, dice: random.Random) -> str:
    text = dice.choice(["fox", "Tell me", "x" * 60])
    if user.focus is not None:
        QTest.keyClicks(user.focus, text)
    return text


def send(user: User, dice: random.Random) -> str:
    if front() is None:
        user.chat.composer.focus()
        write(user, dice)
        user.chat.composer._submit()
    return "send"


def follow(user: User, dice: random.Random) -> str:
    links = user.links()
    if not links:
        return "no link"
    link = dice.choice(links)
    user.transcript.link_chosen.emit(link.href)
    return link.href


def click(user: User, dice: random.Random) -> str:
    top = front() or user.window
    buttons = [one for one in top.findChildren(QAbstractButton) if one.isVisible() and one.isEnabled()]
    if not buttons:
        return "no button"
    button = dice.choice(buttons)
    said = button.accessibleName() or button.text()
    button.click()
    return said


def kill(user: User, _dice: random.Random) -> str:
    if user.controller.engine_pid is not None:
        user.kill_engine()
    return "kill"


def change(user: User, dice: random.Random) -> str:
    user.window.resize(dice.randint(640, 1400), dice.randint(420, 900))
    user.controller.change_settings(language=dice.choice(["en", "ko"]), theme=dice.choice(["dark", "light"]))
    return "change"


ACTIONS: list[tuple[Callable[[User, random.Random], str], int]] = [
    (press, 40),
    (write, 12),
    (send, 10),
    (follow, 12),
    (click, 18),
    (kill, 2),
    (change, 6),
]


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_whatever_is_pressed_the_window_goes_on(qtbot: QtBot, endless: Pair, seed: int) -> None:
    dice, done = random.Random(seed), list[str]()
    with window(qtbot, endless if seed % 2 else None, sampling=Sampling(temperature=0.0, max_tokens=300)) as user:
        for _ in range(ACTS):
            (act,) = dice.choices([act for act, _ in ACTIONS], [weight for _, weight in ACTIONS])
            done.append(act(user, dice))
            qtbot.wait(dice.choice([0, 0, 5, 40]))
            before = front()
            if before is not None and dice.random() < 0.7:
                before.close()
            if front() is None and not user.window.isActiveWindow():
                user.window.activateWindow()
        while (left := front()) is not None:
            left.close()
        assert not [notice for notice in user.notices if "inside Tandem" in notice.text], done
        # and it still answers
        user.back()
        user.controller.change_settings(language="en")
        user.controller.stop()
        user.controller.take_back()
        user.stopped()
        user.press("Ctrl+N")
        user.settled()
        user.chat.composer.clear()
        answer = user.ask("Tell me a story.")
        if answer.state == "failed":  # its engine was killed a moment ago, and nobody had noticed yet
            answer = user.ask("Tell me a story.")
        assert answer.state in ("done", "limit", "context"), done
