"""Rough use: disks that are full or gone, things under the names of files that are none, texts made to hurt."""

from __future__ import annotations

import os
import shutil
import sys
from contextlib import closing
from pathlib import Path

import pytest
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from support import xscreen
from support.desk import ENDLESS, desk, endless_pair
from support.handset import Pair
from support.transcripts import chat
from support.windows import User, keep, opened, window
from tandem import paths
from tandem.chat.conversation import Node
from tandem.chat.history import History
from tandem.settings import PairChoice, Settings
from tandem.ui.theme import ThemeManager
from tandem.ui.transcript import Transcript
from tandem.ui.transcript_stretch import ENOUGH
from tandem.ui.transcript_tail import Tail

no_pipes = pytest.mark.skipif(sys.platform == "win32", reason="no pipes and devices among files")


@pytest.fixture(scope="module")
def endless(tmp_path_factory: pytest.TempPathFactory) -> Pair:
    return endless_pair(tmp_path_factory.mktemp("endless"))


def data(name: str) -> Path:
    return paths.data_dir() / name


def first_message(user: User) -> str:
    """The first message of the newest chat, as it is read from disk."""
    user.wait(lambda: user.chats)
    user.controller.open_chat(user.chats[0].id)
    user.wait(lambda: user.path)
    return user.path[0].text


# What is found at the start


@no_pipes
@pytest.mark.parametrize("name", ["settings.json", "chats.db"])
def test_a_pipe_is_kept_aside_and_nobody_waits_for_it(qtbot: QtBot, name: str) -> None:
    keep(load=False)
    data(name).unlink(missing_ok=True)
    os.mkfifo(data(name))
    with opened(qtbot) as user:
        notice = user.notice("damaged")
        (kept,) = [found for found in paths.data_dir().iterdir() if "damaged" in found.name]
        assert str(kept) in notice.text
        user.close()
    assert kept.is_fifo()
    assert data(name).is_file()


def test_settings_that_cannot_be_read_do_not_keep_the_window_shut(qtbot: QtBot) -> None:
    data("settings.json").mkdir()
    with opened(qtbot) as user:
        user.notice("It is kept as")
        assert user.controller.settings == Settings()
        user.close()
    assert data("settings.json").is_file()


def test_settings_that_can_neither_be_read_nor_kept_aside_are_told(
    qtbot: QtBot, monkeypatch: pytest.MonkeyPatch
) -> None:
    data("settings.json").mkdir()

    def rename(_path: Path, _target: Path) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "rename", rename)
    with opened(qtbot) as user:
        assert "Check the permissions" in user.notice("cannot be read").text


def test_chats_that_another_program_holds_are_there_as_soon_as_it_lets_go(qtbot: QtBot) -> None:
    keep(first_run_done=True)
    history = History.open()
    history.set_draft(None, "written before")
    try:
        with opened(qtbot) as user:
            user.loaded()
            assert "Close the other Tandem" in user.notice("is using the chats").text
            history.close()
            user.write("written now")
            user.chat.composer.flush()
            user.wait(lambda: user.chat.composer.text() == "written before\n\nwritten now")
            user.press("Return")
            user.wait(lambda: user.path and not user.controller.running)
            user.close()
    finally:
        history.close()
    with opened(qtbot) as user:
        assert first_message(user) == "written before\n\nwritten now"


@pytest.mark.skipif(bool(xscreen.missing()), reason="needs a screen of its own")
def test_a_folder_that_cannot_be_made_is_told_in_a_box(tmp_path: Path) -> None:
    (tmp_path / "logs").touch()
    line = [sys.executable, "-m", "tandem"]
    with xscreen.screen() as screen, screen.running(line, {paths.HOME_VARIABLE: str(tmp_path)}) as process:
        screen.focus(screen.window("Tandem", process))
        screen.key("Return")
        assert process.wait(10) == 4


# Disks


@no_pipes
@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no device that is full")
def test_a_log_on_a_full_disk_does_not_keep_the_app_from_ending(qtbot: QtBot) -> None:
    (paths.log_dir() / "tandem-window.log").symlink_to("/dev/full")
    with window(qtbot, PairChoice("files", "/no/such/file"), load=False) as user:
        user.notice("There is no file")
        user.close()
        assert user.gone == 1


def test_unsent_text_that_found_no_room_is_stored_when_there_is_some(
    qtbot: QtBot, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tandem.ui.controller_chats.RETRY_MS", 50)
    with desk(qtbot, load=False) as table:
        store = table.controller.threads.store
        store.ask(lambda history: history._database.connection.execute("PRAGMA query_only = ON"))
        table.controller.save_draft_text("one")
        table.wait(lambda: table.notices)
        store.ask(lambda history: history._database.connection.execute("PRAGMA query_only = OFF"))
        kept: list[str] = []

        def is_kept() -> bool:
            store.ask(lambda history: history.draft(), kept.append)
            return "one" in kept

        table.wait(is_kept)
        assert len(table.notices) == 1


def test_unsent_text_that_found_no_room_is_stored_at_the_end(qtbot: QtBot) -> None:
    with desk(qtbot, load=False) as table:
        store = table.controller.threads.store
        store.ask(lambda history: history._database.connection.execute("PRAGMA query_only = ON"))
        table.controller.save_draft_text("one")
        table.wait(lambda: table.notices)
        store.ask(lambda history: history._database.connection.execute("PRAGMA query_only = OFF"))
        table.close()
    with closing(History.open()) as history:
        assert history.draft() == "one"


@pytest.mark.skipif(sys.platform == "win32", reason="a file in use cannot be removed there")
@pytest.mark.parametrize("what", ["all", "database", "database and log"])
def test_chats_that_are_removed_while_they_are_open_are_written_anew(qtbot: QtBot, endless: Pair, what: str) -> None:
    with window(qtbot, endless, context=32_768, sampling=ENDLESS) as user:
        user.begin("Will it be kept?", 50)
        if what == "all":
            shutil.rmtree(paths.data_dir())
        else:
            data("chats.db").unlink()
            for companion in ("-wal", "-shm") if what == "database and log" else ():
                data(f"chats.db{companion}").unlink()
        user.controller.stop()
        user.stopped()
        answer = user.answer
        user.write("and this")
        user.close()
    keep(load=False, first_run_done=False)
    with opened(qtbot) as user:
        assert first_message(user) == "Will it be kept?"
        assert user.answer == answer
        assert user.chat.composer.text() == "and this"


@pytest.mark.skipif(sys.platform == "win32", reason="a file in use cannot be replaced there")
def test_chats_that_are_replaced_while_they_are_open_are_not_overwritten(qtbot: QtBot) -> None:
    keep(load=False)
    with opened(qtbot) as user:
        data("chats.db").rename(data("elsewhere"))
        data("chats.db").write_bytes(b"somebody's")
        user.write("a word")
        assert "Export" in user.notice("was replaced").text
        assert data("chats.db").read_bytes() == b"somebody's"


# Names of files


@no_pipes
@pytest.mark.parametrize("name", ["pipe", "link to a pipe", "n\0ul", "half \ud800", ""])
def test_an_export_to_what_is_no_file_is_refused_and_leaves_it_there(qtbot: QtBot, tmp_path: Path, name: str) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "link to a pipe").symlink_to("pipe")
    with desk(qtbot, load=False) as table:
        table.controller.export_all(tmp_path / name, "json")
        table.wait(lambda: table.notices)
        assert table.notices[-1].kind == "bad"
        assert "cannot be written" in table.notices[-1].text
        assert table.notices[-1].remedy
    assert (tmp_path / "pipe").is_fifo()
    assert sorted(found.name for found in tmp_path.iterdir()) == ["link to a pipe", "pipe"]


def test_a_path_that_no_file_can_have_is_told(qtbot: QtBot) -> None:
    with desk(qtbot, load=False) as table:
        for choice in (PairChoice("files", "/half \ud800.gguf"), PairChoice("files", "/n\0ul.gguf")):
            table.controller.load_pair(choice)
            table.wait(lambda: table.controller.pair.kind == "failed")
            assert table.controller.pair.sentence.startswith("There is no file")


# Texts


def test_a_long_chat_that_is_opened_first_is_not_written_at_once(qtbot: QtBot, qapp: QApplication) -> None:
    manager = ThemeManager()
    manager.apply(qapp, "light", 1.0)
    transcript = Transcript(manager)
    qtbot.addWidget(transcript)
    transcript.show_path(chat(600, "Short."), {})  # nobody has shown it yet, so it has no height
    assert len(transcript._stretch.sections) <= ENOUGH


@pytest.mark.parametrize("start", [">", "> ", "- ", "1. ", "> - ", "  >"])
def test_marks_without_end_are_shown_and_come_to_an_end(start: str) -> None:
    tail, text = Tail(), start * 5000
    steps = 0
    for at in range(0, len(text), 2000):
        tail.feed(text[at : at + 2000])
        while tail.step().divided:
            steps += 1
            assert steps < 200
    tail.step(final=True)


def test_an_answer_of_marks_only_can_be_opened(qtbot: QtBot) -> None:
    keep(load=False, first_run_done=False)
    with closing(History.open()) as history:
        made = history.new("Marks")
        question = history.add(Node(0, made.id, None, "user", "Quote!"))
        history.add(Node(0, made.id, question.id, "assistant", ">" * 20_000))
    with opened(qtbot) as user:
        assert first_message(user) == "Quote!"
        user.wait(lambda: user.shown.count(">") == 20_000)
