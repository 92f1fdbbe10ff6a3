"""The window: its first start, its pages, its shortcuts."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

import pytest
from PySide6.QtGui import QKeySequence
from PySide6.QtWidgets import QWidget
from pytestqt.qtbot import QtBot

from support.desk import STORY
from support.windows import User, clipboard, window
from tandem import settings
from tandem.ui.shortcuts import SHORTCUTS, ShortcutsDialog

FIRST_ANSWER_S = 15.0


@pytest.fixture
def user(qtbot: QtBot) -> Iterator[User]:
    with window(qtbot) as somebody:
        yield somebody


# The first start


def test_a_first_start_leads_through_the_demo_to_an_answer(qtbot: QtBot) -> None:
    began = time.monotonic()
    with window(qtbot, load=False) as user:
        assert user.chat.body.currentWidget() is user.chat.welcome
        assert user.focus is user.chat.welcome.demo
        user.wait(lambda: "memory free" in user.chat.welcome.here.text())
        assert user.chat.header.pair.text() == "Choose a model"
        assert user.chat.header.drafter.text() == "No drafter"
        user.press("Return")
        assert user.focus is user.chat.composer.editor
        assert user.chat.body.currentWidget() is user.chat.suggestions
        user.loaded()
        assert user.chat.header.pair.text() == "Demo pair"
        assert user.chat.header.drafter.text() == "Drafter ready"
        user.type(STORY)
        answer = user.answered(lambda: user.press("Return"))
        assert time.monotonic() - began < FIRST_ANSWER_S
        assert answer.text[:40] in user.shown
        assert user.chat.header.drafter.text() == "Drafter on · length 3"
        assert [chat.title for chat in user.chats] == [STORY]
    assert settings.load().settings.first_run_done


def test_a_message_at_a_first_start_is_given_back_with_a_way_to_a_model(qtbot: QtBot) -> None:
    with window(qtbot, load=False) as user:
        user.send()
        notice = user.notice("no model")
        assert user.chat.composer.text() == STORY
        assert notice.button is not None
        notice.button.click()
        assert user.window.page == "models"


def test_files_of_ones_own_lead_from_the_welcome_to_the_models(qtbot: QtBot) -> None:
    with window(qtbot, load=False) as user:
        user.chat.welcome.files.click()
        assert user.window.page == "models"
        assert user.focus is user.window.pages.models.files.target.path


def test_a_suggestion_goes_into_the_composer_and_is_not_sent(user: User) -> None:
    idea = user.chat.suggestions.ideas[1]
    idea.click()
    assert user.chat.composer.text() == idea.whole == "List some animals."
    assert user.focus is user.chat.composer.editor
    assert not user.path


# Shortcuts


def test_no_two_shortcuts_have_the_same_keys() -> None:
    owners: dict[str, str] = {}
    for name, shortcut in SHORTCUTS.items():
        for key in shortcut.sequences:
            text = key.toString(QKeySequence.SequenceFormat.PortableText)
            assert text
            assert text not in owners, f"{text} stands for {name} and {owners[text]}"
            owners[text] = name


def test_every_shortcut_of_the_table_is_an_action_with_its_name(user: User) -> None:
    for name, shortcut in SHORTCUTS.items():
        if shortcut.action:
            assert user.window.action(name).shortcuts() == shortcut.sequences
            assert user.window.action(name).text() == shortcut.description


def in_the_chat(user: User) -> QWidget:
    user.press("Ctrl+L")
    return user.chat.composer.editor


def in_the_search(user: User) -> QWidget:
    user.press("Ctrl+K")
    return user.chat.sidebar.search


def in_the_transcript(user: User) -> QWidget:
    user.press("Ctrl+1")
    user.transcript.setFocus()
    return user.transcript


def in_the_settings(user: User) -> QWidget:
    user.press("Ctrl+4")
    field = user.window.pages.settings.sampling.temperature
    field.setFocus()
    return field


def in_a_path(user: User) -> QWidget:
    user.press("Ctrl+2")
    field = user.window.pages.models.files.target.path
    field.setFocus()
    return field


PLACES = [in_the_chat, in_the_search, in_the_transcript, in_the_settings, in_a_path]


@pytest.mark.parametrize("place", PLACES)
def test_every_shortcut_does_its_thing_wherever_the_keyboard_is(user: User, place: Callable[[User], QWidget]) -> None:
    answer = user.ask()
    window, chat, control = user.window, user.chat, user.controller

    def go() -> None:
        field = place(user)
        assert user.focus is field

    for keys, page in (("Ctrl+3", "compare"), ("Ctrl+2", "models"), ("Ctrl+4", "settings"), ("Ctrl+1", "chat")):
        go()
        user.press(keys)
        assert window.page == page
    go()
    user.press("Ctrl+,")
    assert window.page == "settings"
    for keys in ("Ctrl+K", "Ctrl+F"):
        go()
        user.press(keys)
        assert (window.page, user.focus) == ("chat", chat.sidebar.search)
    go()
    user.press("Ctrl+L")
    assert user.focus is chat.composer.editor
    for _ in range(2):
        go()
        before = chat.sidebar.isVisibleTo(window)
        user.press("Ctrl+B")
        assert chat.sidebar.isVisibleTo(window) is not before
        if place in (in_the_settings, in_a_path):  # from there it leads to the list
            assert chat.sidebar.isVisibleTo(window)
    for drafting in (False, True):
        go()
        user.press("Ctrl+D")
        assert control.settings.draft_on is drafting
    for marked in (True, False):
        go()
        user.press("Ctrl+Shift+D")
        assert control.settings.show_drafted is marked
    go()
    user.press("Ctrl+T")  # the demo pair cannot think
    assert not control.settings.thinking
    assert user.notice("cannot think")
    go()
    user.press("Ctrl+Shift+C")
    assert clipboard() == answer.text
    sizes = [("Ctrl++", 1.1), ("Ctrl+=", 1.2), ("Ctrl+-", 1.1), ("Ctrl+0", 1.0)]
    for keys, scale in sizes:
        go()
        user.press(keys)
        assert control.settings.text_scale == scale
        user.wait(lambda scale=scale: user.application.manager.scale == scale)
    for full in (True, False):
        go()
        user.press("F11")
        assert window.isFullScreen() is full
    for keys in ("F1", "Ctrl+/"):
        go()
        user.press(keys)
        dialog = user.child(ShortcutsDialog)
        user.press("Esc")
        assert not dialog.isVisible()
        user.back()
    go()
    user.press("Ctrl+E")
    assert chat.composer.editing
    assert chat.composer.text() == STORY
    user.press("Esc")
    assert not chat.composer.editing
    go()
    again = user.answered(lambda: user.press("Ctrl+R"))
    assert again.parent == answer.parent
    assert again.id != answer.id
    go()
    user.press("Ctrl+N")
    user.settled()
    assert (window.page, user.focus, user.path) == ("chat", chat.composer.editor, [])
    if place is not in_the_transcript:  # a new chat has none
        go()
    user.close(lambda: user.press("Ctrl+Q"))


def test_the_sidebar_and_its_line_are_hidden_and_remembered(user: User) -> None:
    user.press("Ctrl+B")
    assert user.chat.sidebar.isHidden()
    user.press("Ctrl+F")  # comes back for a search
    assert user.focus is user.chat.sidebar.search
    user.chat.header.sidebar.click()
    assert user.chat.sidebar.isHidden()
    user.close()
    assert not settings.load().settings.sidebar


def test_every_button_of_the_navigation_shows_its_page(user: User) -> None:
    for name in ("models", "compare", "settings", "chat"):
        user.window.nav[name].click()
        assert user.window.page == name
        assert user.window.stack.currentWidget() is (user.chat if name == "chat" else user.window.pages.page(name))
    assert user.focus is user.chat.composer.editor


def test_the_header_leads_to_the_models(user: User) -> None:
    user.chat.header.pair.click()
    assert user.window.page == "models"
