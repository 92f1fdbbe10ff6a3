"""Nothing that was typed is lost, and none of it turns up in another chat."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from pytestqt.qtbot import QtBot

from support.desk import STORY, Desk, defaults, desk, endless_desk, endless_pair
from support.handset import Pair
from tandem.settings import Sampling
from tandem.ui.controller import Controller


@pytest.fixture(scope="module")
def endless_files(tmp_path_factory: pytest.TempPathFactory) -> Pair:
    return endless_pair(tmp_path_factory.mktemp("endless"))


@pytest.fixture
def endless(qtbot: QtBot, endless_files: Pair) -> Iterator[Desk]:
    """Answers that go on until they are stopped."""
    with endless_desk(qtbot, endless_files) as made:
        yield made


def unsent(table: Desk, chat: int) -> str:
    """A chat's unsent text as it is on disk."""
    found: list[str] = []
    table.controller.threads.store.ask(lambda history: history.draft(chat), found.append)
    table.wait(lambda: found)
    return found[0]


def test_an_edited_message_leaves_the_unsent_text_alone(qtbot: QtBot) -> None:
    with desk(qtbot) as table:
        table.ask()
        chat = table.answer.conversation
        table.controller.save_draft_text("not sent yet")
        table.answered(lambda: table.controller.edit(table.shown[0].id, "Something else."))
        assert unsent(table, chat) == "not sent yet"


def test_an_edited_message_that_waits_stands_before_the_unsent_text_until_its_turn(endless: Desk) -> None:
    endless.controller.change_settings(sampling=Sampling(temperature=0.0, max_tokens=5))
    endless.ask()
    chat, edited = endless.answer.conversation, endless.shown[0].id
    endless.controller.save_draft_text("not sent yet")
    endless.controller.change_settings(sampling=Sampling(temperature=0.0))
    endless.controller.regenerate(edited)
    endless.wait(lambda: endless.streaming is not None and endless.text)
    endless.controller.change_settings(sampling=Sampling(temperature=0.0, max_tokens=5))
    endless.controller.edit(edited, "Something else.")
    assert endless.controller.answers.waiting is not None
    assert unsent(endless, chat) == "Something else.\n\nnot sent yet"
    endless.wait(lambda: endless.shown[0].text == "Something else." and not endless.controller.running)
    assert unsent(endless, chat) == "not sent yet"


def test_a_message_that_waited_in_another_chat_comes_back_there(endless: Desk) -> None:
    endless.begin()
    chat = endless.streaming.conversation  # type: ignore[union-attr]
    endless.controller.send("And then?")
    endless.controller.new_chat()
    endless.controller.take_back()
    assert endless.all("text_returned") == []
    endless.controller.stop()
    endless.controller.open_chat(chat)
    endless.wait(lambda: endless.last("draft_text") == "And then?")
    assert [node.text for node in endless.shown if node.role == "user"] == [STORY]


def test_settings_that_were_changed_before_the_chats_were_open_stay(qtbot: QtBot) -> None:
    table = Desk(qtbot, known=defaults())
    try:
        table.controller.change_settings(sidebar=False)
        table.start()
        assert not table.controller.settings.sidebar
        assert not table.last("settings_changed").sidebar
    finally:
        table.destroy()


def test_what_was_closed_before_it_began_does_not_begin(qtbot: QtBot) -> None:
    controller = Controller(known=defaults())
    with qtbot.waitSignal(controller.closed):
        controller.close()
    controller.start()
    assert not controller.threads.store.isRunning()
    assert not controller.threads.engine.isRunning()
    assert controller.join()
    controller.deleteLater()
