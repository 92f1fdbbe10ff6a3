"""A conversation as it is seen and used: asking, stopping, asking again, editing, branches, the drafter, thinking."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QTextCharFormat
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QAbstractButton
from pytestqt.qtbot import QtBot

from support.chat_templates import GEMMA4_E2B
from support.desk import ENDLESS, STORY, endless_pair
from support.handset import CHANNEL_CLOSE, CHANNEL_OPEN, NEWLINE, Pair, Script
from support.windows import User, keep, opened, window

UNDERLINE = QTextCharFormat.UnderlineStyle


@pytest.fixture(scope="module")
def endless_files(tmp_path_factory: pytest.TempPathFactory) -> Pair:
    return endless_pair(tmp_path_factory.mktemp("endless"))


@pytest.fixture(scope="module")
def thinker(tmp_path_factory: pytest.TempPathFactory) -> Pair:
    """A pair that thinks before it answers, with a template that can switch that."""
    script = Script()
    script.say(NEWLINE, CHANNEL_OPEN, b"thought\n", "Let me ", "see.", CHANNEL_CLOSE, b"\n", "It is ", "four.")
    return script.write(tmp_path_factory.mktemp("thinker"), chat_template=GEMMA4_E2B)


@pytest.fixture
def user(qtbot: QtBot) -> Iterator[User]:
    with window(qtbot) as somebody:
        yield somebody


@pytest.fixture
def endless(qtbot: QtBot, endless_files: Pair) -> Iterator[User]:
    """Answers that go on until they are stopped."""
    with window(qtbot, endless_files, context=32_768, sampling=ENDLESS) as somebody:
        yield somebody


def send_button(user: User) -> QAbstractButton:
    return user.chat.composer.send_button


# Asking


def test_enter_sends_what_was_typed_and_the_answer_is_shown_with_its_figures(user: User) -> None:
    user.write("Tell me a ")
    user.press("Shift+Return")
    user.type("short story.")
    answer = user.answered(lambda: user.press("Return"))
    assert [node.text for node in user.path] == ["Tell me a \nshort story.", answer.text]
    assert user.chat.composer.text() == ""
    assert user.chat.composer.editor.hasFocus()
    assert answer.text in user.shown
    assert "tokens per pass" in user.shown
    assert user.chat.body.currentWidget() is user.transcript
    assert user.chat.sidebar.model.open_chat == answer.conversation


def test_a_click_on_send_sends(user: User) -> None:
    user.write(STORY)
    user.answered(lambda: QTest.mouseClick(send_button(user), Qt.MouseButton.LeftButton))


def test_text_appears_as_it_comes_and_esc_keeps_what_has_come(endless: User) -> None:
    endless.send()
    endless.wait(lambda: endless.streamed and endless.streamed[:5] in endless.shown)
    assert send_button(endless).accessibleName() == "Stop"
    early = endless.shown
    endless.wait(lambda: len(endless.shown) > len(early) + 200)
    assert endless.shown.startswith(early[:40])
    endless.press("Esc")
    endless.stopped()
    answer = endless.answer
    assert answer.state == "stopped"
    assert answer.text.startswith("Once upon a time.")
    assert answer.text.strip() in endless.shown
    assert send_button(endless).accessibleName() == "Send"
    endless.press("Ctrl+N")
    endless.settled()
    endless.chat.open_chat(answer.conversation)
    endless.wait(lambda: answer.text.strip() in endless.shown)


@pytest.mark.parametrize("place", ["composer", "transcript", "list", "search", "button", "page"])
def test_esc_stops_wherever_the_keyboard_is(endless: User, place: str) -> None:
    endless.begin()
    chat = endless.chat
    {
        "composer": lambda: None,
        "transcript": endless.transcript.setFocus,
        "list": chat.sidebar.focus_list,
        "search": lambda: endless.press("Ctrl+K"),
        "button": chat.header.pair.setFocus,
        "page": lambda: endless.press("Ctrl+4"),
    }[place]()
    endless.press("Esc")
    endless.stopped()
    assert endless.answer.state == "stopped"


def test_esc_leaves_a_search_first_and_stops_the_answer_next(endless: User) -> None:
    endless.begin()
    endless.press("Ctrl+K")
    endless.type("fox")
    endless.wait(lambda: endless.chat.sidebar.found_label.isVisible())
    endless.press("Esc")
    assert endless.chat.sidebar.search.text() == ""
    assert endless.controller.running
    endless.type("fox")
    endless.wait(lambda: endless.chat.sidebar.found_label.isVisible())
    endless.press("Down")
    assert endless.focus is endless.chat.sidebar.list
    endless.press("Esc")
    assert endless.chat.sidebar.search.text() == ""
    assert endless.controller.running
    endless.press("Esc")
    endless.stopped()


def test_the_stop_button_stops(endless: User) -> None:
    endless.begin()
    QTest.mouseClick(send_button(endless), Qt.MouseButton.LeftButton)
    endless.stopped()
    assert endless.answer.state == "stopped"


def test_a_message_typed_while_another_is_answered_waits_and_can_be_taken_back(endless: User) -> None:
    endless.begin()
    endless.send("And then?")
    bar = endless.chat.composer.queued_bar
    assert bar.isVisible()
    assert "And then?" in bar.words.accessibleName()
    assert endless.chat.composer.text() == ""
    bar.button.click()
    assert not bar.isVisible()
    assert endless.chat.composer.text() == "And then?"
    endless.press("Ctrl+L")
    endless.press("Return")
    assert bar.isVisible()
    endless.type("One more")
    endless.press("Return")  # one waits, and no more
    assert endless.notice("waits already")
    assert endless.chat.composer.text() == "One more"
    endless.press("Esc")
    endless.wait(lambda: "And then?" in endless.shown and endless.controller.running)
    assert not bar.isVisible()
    endless.wait(lambda: len(endless.streamed) > 20)
    assert [node.text for node in endless.path if node.role == "user"] == [STORY, "And then?"]


def test_a_message_sent_while_the_pair_is_loading_waits_for_it(qtbot: QtBot) -> None:
    keep()
    with opened(qtbot) as user:
        assert user.controller.load_state.running
        assert user.chat.load_bar.isVisible()
        user.answered(user.send)
        assert not user.chat.load_bar.isVisible()


def test_another_chat_while_one_is_answered_and_back_again(endless: User) -> None:
    endless.begin()
    live = endless.controller.running_in
    assert live is not None
    endless.press("Ctrl+N")
    endless.settled()
    assert endless.chat.body.currentWidget() is endless.chat.suggestions
    endless.write("the next question")
    assert send_button(endless).accessibleName() == "Stop"
    mark = len(endless.streamed)
    endless.wait(lambda: len(endless.streamed) > mark + 200)
    endless.press("Ctrl+K")
    endless.press("Down")
    endless.press("Return")
    endless.wait(lambda: endless.chat.sidebar.model.open_chat == live)
    endless.wait(lambda: endless.streamed[: mark + 200] in endless.shown)
    assert endless.chat.composer.text() == ""
    more = len(endless.shown)
    endless.wait(lambda: len(endless.shown) > more + 100)
    endless.press("Ctrl+L")
    endless.press("Esc")
    endless.stopped()
    assert endless.answer.text.strip() in endless.shown
    endless.press("Ctrl+N")
    endless.wait(lambda: endless.chat.composer.text() == "the next question")


# Versions


def test_answering_again_and_the_way_back_by_mouse_and_keyboard(user: User) -> None:
    first = user.ask()
    user.controller.change_settings(sampling=ENDLESS)
    second = user.answered(lambda: user.follow("regenerate"))
    assert second.parent == first.parent
    assert "2/2" in user.shown
    assert len(second.text) > len(first.text)
    user.follow("previous", second.id)
    assert "1/2" in user.shown
    assert user.path[-1] == first
    user.transcript.setFocus()
    for _ in range(12):
        user.press("Tab")
        link = user.transcript.focused_link
        if link is not None and link.href.endswith(f"next/{first.id}"):
            break
    user.press("Return")
    assert "2/2" in user.shown
    assert user.path[-1] == second
    third = user.answered(lambda: user.press("Ctrl+R"))
    assert "3/3" in user.shown
    assert third.parent == first.parent


def test_an_earlier_message_is_edited_and_its_old_answers_stay(user: User) -> None:
    user.ask("Tell me about a fox.")
    user.ask("And about a hen.")
    before = user.path
    user.write("unsent")
    user.follow("edit", before[0].id)
    composer = user.chat.composer
    assert composer.edit_bar.isVisible()
    assert composer.text() == "Tell me about a fox."
    assert user.focus is composer.editor
    user.press("Esc")
    assert not composer.editing
    assert composer.text() == "unsent"
    user.follow("edit", before[0].id)
    user.press("Ctrl+A")
    user.type("Tell me about a cow.")
    user.answered(lambda: user.press("Return"))
    assert not composer.editing
    assert composer.text() == "unsent"
    assert [node.text for node in user.path if node.role == "user"] == ["Tell me about a cow."]
    assert "And about a hen." not in user.shown
    user.follow("previous", user.path[0].id)
    assert user.path == before
    assert "And about a hen." in user.shown
    user.follow("next", before[0].id)
    assert user.path[0].text == "Tell me about a cow."


def test_up_in_the_empty_composer_edits_the_last_message(user: User) -> None:
    user.ask()
    user.press("Ctrl+L")
    user.press("Up")
    assert user.chat.composer.editing
    assert user.chat.composer.text() == STORY
    user.chat.composer.edit_bar.button.click()
    assert not user.chat.composer.editing


def test_an_edit_goes_on_while_the_message_that_waited_is_sent(endless: User) -> None:
    endless.begin()
    endless.send("And then?")
    endless.follow("edit", endless.path[0].id)
    endless.press("Ctrl+A")
    endless.type("Tell me about a cow.")
    endless.chat.composer.send_button.click()  # it says Stop
    endless.wait(lambda: "And then?" in endless.shown and len(endless.streamed) > 20)
    assert endless.chat.composer.editing
    assert endless.chat.composer.text() == "Tell me about a cow."
    endless.press("Return")  # in place of what has just been asked
    endless.wait(lambda: "about a cow" in endless.shown and len(endless.streamed) > 20)
    assert [node.text for node in endless.path if node.role == "user"] == ["Tell me about a cow."]


def test_what_is_typed_right_after_a_new_chat_was_begun_stays(user: User) -> None:
    user.ask()
    user.write("unsent")
    user.press("Ctrl+N")
    user.type("typed at once")
    user.settled()
    assert user.chat.composer.text() == "typed at once"
    user.press("Ctrl+K")
    user.press("Down")
    user.press("Return")
    user.wait(lambda: user.chat.composer.text() == "unsent")
    user.press("Ctrl+N")
    user.wait(lambda: user.chat.composer.text() == "typed at once")


def test_unsent_text_stays_with_its_chat_when_that_is_deleted_and_brought_back(user: User) -> None:
    user.ask()
    user.write("unsent")
    user.chat.sidebar.focus_list()
    user.press("Delete")
    undo = user.notice("Deleted").button
    user.settled()
    assert undo is not None
    undo.click()
    user.wait(lambda: STORY in user.shown and user.chat.composer.text() == "unsent")
    user.press("Ctrl+N")
    user.settled()
    assert user.chat.composer.text() == ""


def test_editing_ends_with_the_chat_it_belongs_to(user: User) -> None:
    user.ask()
    user.press("Ctrl+E")
    user.press("Ctrl+N")
    user.settled()
    assert not user.chat.composer.editing
    answer = user.ask("Something new.")
    assert user.path[0].text == "Something new."
    assert user.path[0].parent is None
    assert answer.parent == user.path[0].id
