"""Closing at any moment: no process, no thread, no half-written file, and nothing that had come is lost."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest
from pytestqt.qtbot import QtBot

from support.desk import STORY, VAST, Desk, Heartbeat, chats_on_disk, defaults, desk, endless_desk, endless_pair
from support.handset import Pair
from tandem import settings
from tandem.chat.conversation import Conversation, Node
from tandem.chat.history import History
from tandem.settings import PairChoice


@pytest.fixture(scope="module")
def endless_files(tmp_path_factory: pytest.TempPathFactory) -> Pair:
    return endless_pair(tmp_path_factory.mktemp("endless"))


@pytest.fixture(scope="module")
def vast_files(tmp_path_factory: pytest.TempPathFactory) -> Pair:
    return endless_pair(tmp_path_factory.mktemp("vast"), context=VAST)


@pytest.fixture
def fresh(qtbot: QtBot) -> Iterator[Desk]:
    """A controller that is not started yet."""
    made = Desk(qtbot, known=defaults(first_run_done=True))
    yield made
    made.destroy()


OTHERS: set[int] = set()


@pytest.fixture(autouse=True)
def _others() -> None:
    """Engines that other tests of the same run share do not count."""
    OTHERS.clear()
    OTHERS.update(child.pid for child in psutil.Process().children(recursive=True))


def children() -> list[psutil.Process]:
    """Engines of this process; not Python's own helper process for shared resources."""
    return [
        child
        for child in psutil.Process().children(recursive=True)
        if child.pid not in OTHERS
        and child.status() != psutil.STATUS_ZOMBIE
        and not any("resource_tracker" in part for part in child.cmdline())
    ]


def all_ended(table: Desk) -> None:
    controller = table.controller
    assert len(table.all("closed")) == 1
    assert not controller.threads.engine.isRunning()
    assert not controller.threads.engine.helper.isRunning()
    assert not controller.threads.store.isRunning()
    assert controller.engine_pid is None
    assert children() == []


def before_the_start(_table: Desk) -> None:
    """Nothing yet."""


def right_after_the_start(table: Desk) -> None:
    table.controller.start()


def while_the_engine_starts(table: Desk) -> None:
    table.controller.start()
    table.wait(lambda: table.all("loading") and table.last("loading").phase == "starting")


def while_loading(table: Desk) -> None:
    table.controller.start()
    table.wait(lambda: any(state.phase in ("target", "drafter", "threads") for state in table.all("loading")))


def when_loaded(table: Desk) -> None:
    table.controller.start()
    table.wait(lambda: table.controller.pair.kind == "loaded")


def while_a_message_is_stored(table: Desk) -> None:
    when_loaded(table)
    table.controller.send(STORY)


def when_the_answer_begins(table: Desk) -> None:
    when_loaded(table)
    table.controller.send(STORY)
    table.wait(lambda: table.all("stream_begun"))


MOMENTS = [
    before_the_start,
    right_after_the_start,
    while_the_engine_starts,
    while_loading,
    when_loaded,
    while_a_message_is_stored,
    when_the_answer_begins,
]


@pytest.mark.parametrize("moment", MOMENTS)
def test_it_closes_at_any_moment(fresh: Desk, moment: Callable[[Desk], None]) -> None:
    moment(fresh)
    assert fresh.close() < 3.0
    all_ended(fresh)
    fresh.controller.close()
    assert fresh.controller.join()
    all_ended(fresh)


@pytest.mark.parametrize("moment", MOMENTS)
def test_it_ends_without_an_event_loop_too(fresh: Desk, moment: Callable[[Desk], None]) -> None:
    moment(fresh)
    assert fresh.controller.join()
    all_ended(fresh)


def test_closing_while_an_answer_runs_keeps_what_has_come(qtbot: QtBot, endless_files: Pair) -> None:
    with endless_desk(qtbot, endless_files) as table:
        table.begin(characters=200)
        table.controller.save_draft_text("not sent yet")
        assert table.close() < 3.0
        all_ended(table)
        text = table.text
    with chats_on_disk() as kept:
        (chat,) = kept.conversations()
        conversation, (user, answer) = kept.conversation(chat.id)
        assert conversation.draft == "not sent yet"
        assert user.text == STORY
        assert answer.state == "stopped"
        assert answer.text == text
        assert len(text) >= 200


def test_closing_in_a_long_prefill(qtbot: QtBot, vast_files: Pair) -> None:
    with endless_desk(qtbot, vast_files, VAST) as table:
        table.controller.send("fox " * 25_000)
        table.wait(lambda: any(done > 0 for done in table.all("prefilled")))
        assert table.close() < 3.0
        all_ended(table)
    with chats_on_disk() as kept:
        assert [node.state for node in kept.conversation(1)[1]] == ["done", "stopped"]


def test_closing_with_an_engine_that_does_not_react_kills_it(qtbot: QtBot, endless_files: Pair) -> None:
    with endless_desk(qtbot, endless_files) as table:
        table.begin()
        pid = table.controller.engine_pid or 0
        os.kill(pid, signal.SIGSTOP)
        assert table.close() < 4.0
        assert not psutil.pid_exists(pid)
        all_ended(table)


def test_closing_with_an_engine_that_just_died(qtbot: QtBot, endless_files: Pair) -> None:
    with endless_desk(qtbot, endless_files) as table:
        table.begin()
        os.kill(table.controller.engine_pid or 0, signal.SIGKILL)
        assert table.close() < 3.0
        all_ended(table)
    with chats_on_disk() as kept:
        assert kept.conversation(1)[1][-1].text


def test_closing_does_not_stop_the_event_loop(qtbot: QtBot, endless_files: Pair) -> None:
    stalls = []
    while len(stalls) < 3 and not (stalls and min(stalls) < 0.1):  # other programs may have the CPU once
        with endless_desk(qtbot, endless_files) as table:
            table.begin()
            os.kill(table.controller.engine_pid or 0, signal.SIGSTOP)
            with Heartbeat() as heart:
                table.close()
            stalls.append(heart.longest_s)
    assert min(stalls) < 0.1


def test_settings_changed_last_are_stored(qtbot: QtBot) -> None:
    with desk(qtbot, load=False) as table:
        table.controller.change_settings(text_scale=1.5)
        table.close()
    assert settings.load().settings.text_scale == 1.5


def test_nothing_is_done_after_closing(qtbot: QtBot) -> None:
    with desk(qtbot) as table:
        table.close()
        said = len(table.said)
        table.controller.send(STORY)
        table.controller.load_pair(PairChoice())
        table.controller.stop()
        table.controller.regenerate(1)
        assert table.all("text_returned") == [STORY]
        assert not table.controller.running
        assert len(table.said) == said + 1


def many_chats(opened: History) -> None:
    chats = []
    for number in range(400):
        nodes = [Node(1, number, None, "user", "word " * 200), Node(2, number, 1, "assistant", "word " * 2000)]
        chats.append((Conversation(number, f"Chat {number}", 1.0, 1.0), nodes))
    opened.bring_in(chats)


@pytest.mark.parametrize("form", ["json", "markdown"])
def test_closing_in_the_middle_of_an_export_leaves_no_half_of_a_file(
    qtbot: QtBot, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, form: str
) -> None:
    file = tmp_path / "chats.out"
    file.write_text("the export before")
    with desk(qtbot, load=False) as table:
        store = table.controller.threads.store
        store.ask(many_chats)
        table.settled()
        reached, go_on, counted = threading.Event(), threading.Event(), iter(range(1000))
        breathe = store.breathe

        def breathe_slowly() -> None:
            if next(counted) == 50:
                reached.set()
                go_on.wait(10)
            breathe()

        monkeypatch.setattr(store, "breathe", breathe_slowly)
        table.controller.export_all(file, form)  # type: ignore[arg-type]
        table.wait(reached.is_set)
        assert len(list(tmp_path.iterdir())) == 2  # the new one is being written beside the old one
        table.controller.close()
        go_on.set()
        table.wait(lambda: table.all("closed"))
        all_ended(table)
        assert not [notice for notice in table.notices if notice.kind in ("bad", "good")]
    assert [path.name for path in tmp_path.iterdir()] == ["chats.out"]
    assert file.read_text() == "the export before"


def test_closing_in_the_middle_of_an_import_adds_nothing(
    qtbot: QtBot, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "chats.json"
    with desk(qtbot, load=False) as table:
        store = table.controller.threads.store
        store.ask(many_chats)
        table.controller.export_all(file, "json")
        table.wait(lambda: table.notices and table.notices[-1].kind == "good")
        reached, go_on, counted = threading.Event(), threading.Event(), iter(range(1000))
        give_up = store.give_up_if_ending

        def slowly() -> None:
            if next(counted) == 50:
                reached.set()
                go_on.wait(10)
            give_up()

        monkeypatch.setattr(store, "give_up_if_ending", slowly)
        table.controller.import_file(file)
        table.wait(reached.is_set)
        table.controller.close()
        go_on.set()
        table.wait(lambda: table.all("closed"))
    with chats_on_disk() as kept:
        assert len(kept.conversations()) == 400


def test_a_message_sent_during_a_long_export_does_not_wait_for_it(
    qtbot: QtBot, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with desk(qtbot) as table:
        store = table.controller.threads.store
        store.ask(many_chats)
        table.settled()
        answered = threading.Event()
        waited: list[bool] = []
        breathe = store.breathe

        def until_answered() -> None:
            breathe()
            while not waited and not answered.wait(0.01):
                breathe()
            waited.append(True)

        monkeypatch.setattr(store, "breathe", until_answered)
        table.controller.export_all(tmp_path / "all.json", "json")
        table.ask()
        answered.set()
        table.wait(lambda: table.notices and table.notices[-1].kind == "good")


def test_five_rounds_leave_no_thread_behind(qtbot: QtBot) -> None:
    with desk(qtbot) as table:
        table.ask()
    before = psutil.Process().num_threads()
    for _ in range(5):
        with desk(qtbot) as table:
            table.ask()
    # the system takes a moment longer than Qt to see the end of a thread
    qtbot.waitUntil(lambda: psutil.Process().num_threads() <= before)
