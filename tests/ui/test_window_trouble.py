"""When something goes wrong: what is kept, what is said, and that every way out that is offered leads out."""

from __future__ import annotations

import os
import signal
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest
from pytestqt.qtbot import QtBot

from support.desk import ENDLESS, STORY, chats_on_disk, endless_pair
from support.handset import Pair
from support.windows import User, keep, opened, window
from tandem.chat import history
from tandem.settings import PairChoice


@pytest.fixture(scope="module")
def endless_files(tmp_path_factory: pytest.TempPathFactory) -> Pair:
    return endless_pair(tmp_path_factory.mktemp("endless"))


@pytest.fixture
def user(qtbot: QtBot) -> Iterator[User]:
    with window(qtbot) as somebody:
        yield somebody


@pytest.fixture
def endless(qtbot: QtBot, endless_files: Pair) -> Iterator[User]:
    """Answers that go on until they are stopped."""
    with window(qtbot, endless_files, context=32_768, sampling=ENDLESS) as somebody:
        yield somebody


@pytest.fixture
def widow(endless: User) -> User:
    """The engine died in the middle of an answer."""
    endless.begin(characters=200)
    endless.kill_engine()
    endless.stopped()
    return endless


# The engine's death


@pytest.mark.parametrize(
    ("number", "word"), [(signal.SIGKILL, "outside"), (signal.SIGSEGV, "crashed"), (signal.SIGABRT, "gave up")]
)
def test_the_engines_death_keeps_the_answer_and_says_why_with_three_ways_on(
    endless: User, number: signal.Signals, word: str
) -> None:
    endless.begin(characters=200)
    endless.kill_engine(number)
    endless.stopped()
    answer = endless.answer
    assert (answer.state, word in answer.problem) == ("failed", True)
    assert len(answer.text) >= 200
    assert answer.text.strip() in endless.shown
    assert answer.problem in endless.shown
    assert answer.remedy in endless.shown
    for what in ("retry", "retry-without-drafter", "retry-smaller-context"):
        assert endless.link(what, answer.id).name
    assert endless.chat.header.pair.text().lower().endswith("not loaded")
    assert endless.chat.header.drafter.text() == "No drafter"
    assert endless.notice(answer.problem).button is not None
    assert endless.controller.engine_pid is None  # nothing is tried again by itself
    assert endless.chat.composer.send_button.accessibleName() == "Send"


def again(user: User, what: str) -> None:
    failed = user.answer
    user.follow(what, failed.id)
    user.wait(lambda: len(user.streamed) > 50 and user.streamed[:40] in user.shown)
    assert "2/2" not in user.shown  # not under an answer that still runs
    user.press("Ctrl+L")
    user.press("Esc")
    user.stopped()
    assert user.answer.parent == failed.parent
    assert user.answer.id != failed.id
    assert user.controller.node(failed.id) == failed


def test_try_again(widow: User) -> None:
    again(widow, "retry")
    figures = widow.answer.figures
    assert figures is not None
    assert figures.draft == "3"


def test_try_without_the_drafter_by_keyboard(widow: User) -> None:
    user = widow
    user.transcript.setFocus()
    for _ in range(40):
        user.press("Tab")
        link = user.transcript.focused_link
        if link is not None and "without-drafter" in link.href:
            break
    user.press("Return")
    user.wait(lambda: len(user.streamed) > 50)
    user.press("Esc")
    user.stopped()
    figures = user.answer.figures
    assert figures is not None
    assert (figures.draft, figures.stats.verified) == ("off", 0)
    assert user.controller.settings.draft_on  # for this answer only


def test_try_with_a_smaller_context(widow: User) -> None:
    again(widow, "retry-smaller-context")
    assert widow.controller.pair.loaded is not None
    assert widow.controller.pair.loaded.context == 16_384
    assert widow.chat.header._meter_text.text().endswith("/ 16,384")


def test_the_notice_loads_the_pair_again(widow: User) -> None:
    button = widow.notice("outside").button
    assert button is not None
    assert button.text() == "Load again"
    button.click()
    widow.loaded()
    assert not [notice for notice in widow.notices if notice.kind == "bad"]


def test_the_next_message_loads_the_pair_again(widow: User) -> None:
    widow.send("And then?")
    widow.wait(lambda: len(widow.streamed) > 20)
    assert [node.text for node in widow.path if node.role == "user"] == [STORY, "And then?"]


def test_an_engine_that_dies_idle_is_told_and_loaded_again_for_the_next_message(user: User) -> None:
    user.kill_engine()
    user.notice("outside")
    assert user.chat.header.pair.text().lower().endswith("not loaded")
    assert user.ask().state in ("done", "limit")
    assert user.chat.header.pair.text() == "Demo pair"


def test_a_message_that_waits_comes_back_when_the_engine_dies(endless: User) -> None:
    endless.begin()
    endless.send("And then?")
    endless.kill_engine()
    endless.stopped()
    assert endless.chat.composer.text() == "And then?"
    assert not endless.chat.composer.queued_bar.isVisible()


def test_a_failed_answer_is_still_there_after_a_restart(qtbot: QtBot, endless_files: Pair) -> None:
    with window(qtbot, endless_files, context=32_768, sampling=ENDLESS) as user:
        user.begin(characters=200)
        user.kill_engine()
        user.stopped()
        answer = user.answer
        user.close()
    with opened(qtbot) as user:
        user.chat.open_chat(answer.conversation)
        user.wait(lambda: answer.problem in user.shown)
        user.loaded()
        again(user, "retry")


def test_an_answer_that_a_crash_of_the_app_cut_off_is_marked(qtbot: QtBot, endless_files: Pair) -> None:
    with window(qtbot, endless_files, context=32_768, sampling=ENDLESS) as user:
        user.begin()
        user.close()
    with chats_on_disk() as kept:  # as a killed app leaves it
        _, (_, answer) = kept.conversation(1)
        kept.save(msgspec.structs.replace(answer, state="streaming"))
    with opened(qtbot) as user:
        user.chat.open_chat(user.chats[0].id)
        user.wait(lambda: user.path and user.answer.state == "interrupted")
        assert user.answer.text.strip() in user.shown
        assert len(user.shown) > len(STORY) + len(answer.text) + 40  # and a line that says so


# Loads


def test_a_load_shows_how_far_it_is_and_can_be_given_up_and_taken_up_again(qtbot: QtBot, endless_files: Pair) -> None:
    with window(qtbot, endless_files) as user:
        bar, seen = user.chat.load_bar, set()

        def look() -> None:
            seen.add((bar.text.text(), bar.isVisible()))
            if "target" in bar.text.text():
                bar.cancel.click()

        user.controller.loading.connect(look)
        user.controller.load_again()
        button = user.notice("Loading was stopped").button
        assert {("Starting the engine…", True), ("Loading the target…", True)} <= seen
        assert not bar.isVisible()
        assert user.controller.pair.kind == "none"
        user.controller.loading.disconnect(look)
        assert button is not None
        button.click()
        user.loaded()
        assert not bar.isVisible()


def test_a_load_is_given_up_from_the_models_page_and_from_the_welcome(qtbot: QtBot) -> None:
    with window(qtbot, load=False) as user:
        user.chat.welcome.demo.click()
        user.press("Ctrl+2")
        card = user.window.pages.models.pair
        user.wait(lambda: card.progress.isVisible() and card.progress.stage)
        card.progress.cancel.click()
        user.wait(lambda: not card.progress.isVisible())
        assert user.controller.pair.kind == "none"
        card.again.click()
        user.loaded()


def test_a_long_prompt_shows_that_it_is_read_and_can_be_stopped(qtbot: QtBot, tmp_path: Path) -> None:
    pair = endless_pair(tmp_path, context=131_072)
    with window(qtbot, pair, context=131_072, sampling=ENDLESS) as user:
        user.chat.composer.set_text("fox " * 25_000)
        user.press("Ctrl+L")
        user.press("Return")
        bar = user.chat.load_bar
        user.wait(lambda: bar.isVisible() and "tokens" in bar.text.text())
        assert not bar.cancel.isVisible()  # Esc and Stop do that
        user.press("Esc")
        user.stopped()
        assert not bar.isVisible()
        assert (user.answer.state, user.answer.text) == ("stopped", "")


# Files that are no models


def test_a_model_that_is_gone_is_said_with_the_way_to_the_models_and_the_chats_can_be_read(
    qtbot: QtBot, tmp_path: Path
) -> None:
    with window(qtbot) as user:
        answer = user.ask()
        user.close()
    keep(PairChoice("files", str(tmp_path / "gone.gguf")))
    with opened(qtbot) as user:
        user.wait(lambda: user.controller.pair.kind == "failed")
        notice = user.notice("gone.gguf")
        user.chat.open_chat(answer.conversation)
        user.wait(lambda: answer.text in user.shown)
        user.write("still to be asked")
        assert notice.button is not None
        notice.button.click()
        assert user.window.page == "models"
        problem = user.window.pages.models.pair.problem
        assert problem.isVisible()
        assert "gone.gguf" in problem.text
        assert problem.more
        user.window.pages.models.demo.button.click()
        user.loaded()
        user.press("Ctrl+1")
        assert user.chat.composer.text() == "still to be asked"
        user.answered(lambda: user.press("Return"))


@pytest.mark.parametrize("content", [b"", b"GGUF", b"\x00" * 4096, b"not a model at all"])
def test_a_file_that_is_no_model_is_refused_before_and_after_the_load(
    user: User, tmp_path: Path, content: bytes
) -> None:
    wrong = tmp_path / "wrong.gguf"
    wrong.write_bytes(content)
    user.ask()
    user.press("Ctrl+2")
    page = user.window.pages.models
    page.files.target.path.setFocus()
    page.files.target.choose(str(wrong))
    user.wait(lambda: page.files.target.found)
    assert not page.files.load.isEnabled()
    assert page.files.target.found.endswith(".")
    assert user.controller.pair.kind == "loaded"
    user.controller.load_pair(PairChoice("files", str(wrong)))  # as settings from elsewhere would
    user.wait(lambda: user.controller.pair.kind == "failed")
    assert user.window.page == "models"  # the page in view says it itself
    assert page.pair.problem.isVisible()
    assert STORY in user.shown


def test_a_pair_of_ones_own_files_is_loaded_through_the_page(
    user: User, endless_files: Pair, demo_pair: tuple[Path, Path]
) -> None:
    user.press("Ctrl+2")
    page = user.window.pages.models
    page.files.take([str(endless_files.drafter), str(endless_files.target)])  # in any order
    user.wait(page.files.load.isEnabled)
    assert page.files.asked == (str(endless_files.target), str(endless_files.drafter))
    page.files.load.click()
    user.wait(lambda: user.controller.pair.choice.kind == "files" and user.controller.pair.kind == "loaded")
    assert page.pair.state.text == "Ready"
    assert demo_pair[0].name not in page.pair.name.text()
    user.press("Ctrl+1")
    assert user.chat.header.pair.text() not in ("Demo pair", "")


# The disk


def test_a_message_that_cannot_be_stored_comes_back_and_nothing_is_asked(user: User) -> None:
    user.ask()
    reader = sqlite3.connect(history.file())
    reader.execute("BEGIN IMMEDIATE")  # nobody else may write, for as long as this lasts
    try:
        user.send("And then?")
        user.wait(lambda: user.chat.composer.text() == "And then?", timeout=60_000)
        assert [notice.kind for notice in user.notices].count("bad") == 1
        assert not user.controller.running
    finally:
        reader.close()
    assert [node.text for node in user.path if node.role == "user"] == [STORY]
    user.chat.notices.clear()
    user.press("Ctrl+L")
    user.answered(lambda: user.press("Return"))


def test_what_was_answered_is_on_disk_while_it_streams(endless: User) -> None:
    endless.begin()
    connection = sqlite3.connect(f"file:{history.file()}?mode=ro", uri=True)

    def stored() -> str:
        row = connection.execute("SELECT text FROM node WHERE role = 'assistant'").fetchone()
        return str(row[0]) if row else ""

    endless.wait(lambda: len(stored()) > 100)
    assert endless.controller.running
    connection.close()


def test_nothing_of_the_chats_is_in_the_logs(user: User) -> None:
    answer = user.ask("A very particular question about walruses.")
    user.close()
    logs = [path.read_text("utf-8", "replace") for path in history.file().parent.parent.rglob("*.log")]
    assert logs
    assert not any("walrus" in log or answer.text[:60] in log for log in logs)
    with chats_on_disk() as kept:
        assert kept.conversations()
    assert os.environ["TANDEM_HOME"] in str(history.file())
