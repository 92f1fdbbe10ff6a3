"""How the window closes, at odd moments too, and what the next one finds: its place, unsent text, damaged files."""

from __future__ import annotations

import base64
import json
import sqlite3
from collections.abc import Iterator

import psutil
import pytest
from PySide6.QtCore import QByteArray, QPoint, Qt
from PySide6.QtWidgets import QApplication, QFileDialog, QMainWindow
from pytestqt.qtbot import QtBot

from support.desk import ENDLESS, STORY, chats_on_disk, endless_pair
from support.handset import Pair
from support.windows import User, keep, opened, unfinished, window
from tandem import paths, settings
from tandem.chat import history
from tandem.ui.single import SingleInstance

FRAME = 4  # the platform without a screen frames windows, and Qt learns of it late


@pytest.fixture(scope="module")
def endless(tmp_path_factory: pytest.TempPathFactory) -> Pair:
    return endless_pair(tmp_path_factory.mktemp("endless"))


@pytest.fixture
def user(qtbot: QtBot) -> Iterator[User]:
    with window(qtbot) as somebody:
        yield somebody


# Closing


def test_closing_twice_is_harmless(user: User) -> None:
    user.window.close()
    user.window.close()
    user.wait(lambda: user.gone)
    user.window.close()
    assert user.gone == 1
    assert user.window.isHidden()


def test_closing_with_a_box_open_closes_that_too(user: User) -> None:
    user.ask()
    user.chat.export(None, "json")
    user.child(QFileDialog)
    user.window.show_shortcuts()
    user.close()
    assert not [top for top in QApplication.topLevelWidgets() if top.isVisible()]


OTHERS: set[int] = set()


@pytest.fixture(autouse=True)
def _others() -> None:
    """Engines that other tests of the same run share do not count."""
    OTHERS.clear()
    OTHERS.update(child.pid for child in psutil.Process().children(recursive=True))


def children() -> list[psutil.Process]:
    return [
        child
        for child in psutil.Process().children(recursive=True)
        if child.pid not in OTHERS
        and child.status() != psutil.STATUS_ZOMBIE
        and not any("resource_tracker" in part for part in child.cmdline())
    ]


def test_ctrl_q_in_a_load_leaves_no_process_and_no_half_a_file(qtbot: QtBot, endless: Pair) -> None:
    keep(endless)
    with opened(qtbot) as user:
        user.wait(lambda: user.controller.load_state.running and children())
        user.close(lambda: user.press("Ctrl+Q"))
        assert user.window.isHidden()
        assert children() == []
        assert unfinished() == []


def test_ctrl_q_in_an_answer_keeps_it_and_leaves_no_process(qtbot: QtBot, endless: Pair) -> None:
    with window(qtbot, endless, context=32_768, sampling=ENDLESS) as user:
        user.begin(characters=200)
        seen = user.shown
        user.write("not sent yet")
        user.close(lambda: user.press("Ctrl+Q"))
        assert children() == []
        assert unfinished() == []
    with chats_on_disk() as kept:
        (chat,) = kept.conversations()
        conversation, (_, answer) = kept.conversation(chat.id)
        assert (answer.state, conversation.draft) == ("stopped", "not sent yet")
        assert answer.text[:150] in seen
        assert len(answer.text) >= 200


def test_text_that_was_not_sent_is_there_after_a_restart(qtbot: QtBot) -> None:
    with window(qtbot) as user:
        user.write("a new question, half")
        user.close()
    with opened(qtbot) as user:
        user.wait(lambda: user.chat.composer.text() == "a new question, half")


def test_chats_are_there_after_a_restart(qtbot: QtBot) -> None:
    with window(qtbot) as user:
        answer = user.ask()
        user.close()
    with opened(qtbot) as user:
        user.loaded()
        assert [chat.title for chat in user.chats] == [STORY]
        user.press("Ctrl+K")
        user.press("Down")
        user.press("Return")
        user.wait(lambda: answer.text in user.shown)
        assert user.path[-1] == answer


# Where the window stands


def test_it_comes_back_where_it_was(qtbot: QtBot) -> None:
    with window(qtbot, load=False) as user:
        user.window.resize(700, 500)
        user.window.move(31, 47)
        user.close()
    with opened(qtbot) as user:
        assert (user.window.width(), user.window.height()) == (700, 500)
        assert user.window.pos() == QPoint(31, 47)


def geometry(x: int, y: int, width: int, height: int) -> str:
    """As a window on another, larger desk would have kept it."""
    other = QMainWindow()
    other.setGeometry(x, y, width, height)
    kept = base64.b64encode(other.saveGeometry().data()).decode("ascii")
    other.deleteLater()
    return kept


@pytest.mark.parametrize(
    "kept", [(5000, 4000, 800, 600), (-3000, -2000, 800, 600), (100, 100, 6000, 5000), (-700, -500, 720, 520)]
)
def test_a_place_on_a_screen_that_is_gone_is_repaired(qtbot: QtBot, kept: tuple[int, int, int, int]) -> None:
    with window(qtbot, load=False, geometry=geometry(*kept)) as user:
        screen = user.window.screen().availableGeometry()
        frame = user.window.frameGeometry()
        assert frame.width() <= screen.width() + FRAME
        assert frame.height() <= screen.height() + FRAME
        # enough of the top edge to take hold of it
        top = frame.adjusted(0, 0, 0, 40 - frame.height()).intersected(screen)
        assert top.width() >= 200
        assert top.height() >= 20


@pytest.mark.parametrize("kept", ["nonsense", "!!!!", base64.b64encode(b"\x01\xd9\xd0\xcb" + bytes(60)).decode()])
def test_a_place_that_makes_no_sense_is_passed_over(qtbot: QtBot, kept: str) -> None:
    with window(qtbot, load=False, geometry=kept) as user:
        screen = user.window.screen().availableGeometry()
        assert screen.contains(user.window.frameGeometry())
        assert user.window.width() >= 640


# Damaged files at the start


def test_damaged_settings_are_kept_and_said_and_the_app_opens(qtbot: QtBot) -> None:
    settings.file().parent.mkdir(parents=True, exist_ok=True)
    settings.file().write_bytes(b"\x00" * 100)
    with opened(qtbot) as user:
        notice = user.notice("your settings")
        (kept,) = [path for path in settings.file().parent.iterdir() if path.read_bytes() == b"\x00" * 100]
        assert str(kept) in notice.text
        assert user.chat.body.currentWidget() is user.chat.welcome


def test_a_single_setting_that_makes_no_sense_is_named(qtbot: QtBot) -> None:
    keep(load=False)
    found = json.loads(settings.file().read_text())
    found["text_scale"] = 99
    settings.file().write_text(json.dumps(found))
    with opened(qtbot) as user:
        assert "text_scale" in user.notice("default").text
        assert user.application.manager.scale == 1.0


def test_a_damaged_database_is_kept_and_said_and_the_app_answers(qtbot: QtBot) -> None:
    keep()
    history.file().write_bytes(b"\x00" * 8192)
    with opened(qtbot) as user:
        notice = user.notice("damaged")
        kept = [path for path in history.file().parent.iterdir() if path.read_bytes() == b"\x00" * 8192]
        assert [str(path) for path in kept if str(path) in notice.text]
        user.loaded()
        assert user.ask().state in ("done", "limit")


def test_a_newer_database_is_left_alone_and_sending_is_refused_with_the_reason(qtbot: QtBot) -> None:
    keep()
    with sqlite3.connect(history.file()) as newer:
        newer.execute("PRAGMA user_version = 999")
        newer.execute("CREATE TABLE chats_of_tomorrow (id INTEGER)")
    newer.close()
    before = history.file().read_bytes()
    with opened(qtbot) as user:
        first = user.notice("newer").text
        user.loaded()
        user.send()
        user.wait(lambda: user.chat.composer.text() == STORY)
        assert user.notice("newer").text == first
        assert not user.controller.running
        for keys in ("Ctrl+N", "Ctrl+R", "Ctrl+E", "Ctrl+K"):
            user.press(keys)
        user.type("fox")
        user.settled()
        user.chat.sidebar.clear_search()
        user.close()
    assert history.file().read_bytes() == before


@pytest.mark.qt_log_ignore(r"This plugin does not support raise\(\)")
def test_a_second_window_of_one_profile_raises_the_first(user: User) -> None:
    first, second = SingleInstance(paths.data_dir()), SingleInstance(paths.data_dir())
    other = SingleInstance(paths.data_dir().parent / "other")
    first.raised.connect(user.window.raise_up)
    assert first.claim()
    user.window.setWindowState(Qt.WindowState.WindowMinimized)
    assert not second.claim()
    user.wait(lambda: not user.window.isMinimized())
    assert other.claim()
    for one in (first, second, other):
        one.release()
    assert second.claim()
    second.release()


def test_bytes_of_a_place_can_be_read_back(user: User) -> None:
    user.close()
    kept = settings.load().settings.geometry
    assert QMainWindow().restoreGeometry(QByteArray.fromBase64(kept.encode()))
