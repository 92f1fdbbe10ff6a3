"""The pages beside the chat, in the window: settings that reach everything at once, comparing, the models, notices."""

from __future__ import annotations

import dataclasses
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from PySide6.QtCore import QPoint, Qt
from PySide6.QtGui import QColor
from PySide6.QtWidgets import QAbstractButton, QLabel
from pytestqt.qtbot import QtBot

from support.desk import ENDLESS, STORY, endless_pair
from support.handset import Pair
from support.windows import User, opened, window
from tandem import settings
from tandem.hardware import machine
from tandem.ui.i18n import size
from tandem.ui.shortcuts import ShortcutsDialog

PAGES = ("chat", "models", "compare", "settings")


@pytest.fixture(scope="module")
def endless_files(tmp_path_factory: pytest.TempPathFactory) -> Pair:
    return endless_pair(tmp_path_factory.mktemp("endless"))


@pytest.fixture
def user(qtbot: QtBot) -> Iterator[User]:
    with window(qtbot) as somebody:
        yield somebody


# Looks


def lightness(user: User, page: str) -> list[int]:
    """How light the grounds of a page are, at places where nothing stands."""
    user.window.show_page(page)
    image = user.window.grab().toImage()
    places = [QPoint(4, image.height() // 2), QPoint(image.width() - 8, image.height() - 8)]
    return [QColor(image.pixel(place)).lightness() for place in places]


def test_free_memory_is_read_again_each_time_a_page_that_tells_it_is_shown(
    user: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = machine.read()
    free = [1 << 30]
    monkeypatch.setattr(machine, "read", lambda: dataclasses.replace(here, memory_free=free[0]))
    user.press("Ctrl+2")
    user.wait(lambda: size(1 << 30) in user.window.pages.models.head.here.text())
    user.press("Ctrl+1")
    free[0] = 2 << 30
    user.press("Ctrl+2")
    user.wait(lambda: size(2 << 30) in user.window.pages.models.head.here.text())


def test_deleted_chats_are_removed_from_the_settings(user: User) -> None:
    user.ask()
    user.chat.sidebar.focus_list()
    user.press("Delete")
    user.notice("Deleted")
    user.press("Ctrl+4")
    user.window.pages.settings.data.purge.click()
    user.notice("removed for good")
    user.settled()
    assert user.chats == []


def test_the_theme_changes_at_once_on_every_page(user: User) -> None:
    user.ask()
    page = user.window.pages.settings.appearance
    for theme in ("dark", "light", "dark"):
        user.press("Ctrl+4")
        page.theme._buttons[theme].click()
        assert user.controller.settings.theme == theme
        for name in PAGES:
            grounds = lightness(user, name)
            assert all((value < 90) is (theme == "dark") for value in grounds), (theme, name, grounds)
    user.close()
    assert settings.load().settings.theme == "dark"


def test_text_grows_at_once_on_every_page_and_the_window_does_not_break(user: User) -> None:
    user.ask()
    for name in PAGES:
        user.window.show_page(name)
    before = user.chat.composer.editor.font().pixelSize()
    user.press("Ctrl+0")
    user.press("Ctrl+=", times=8)
    assert user.controller.settings.text_scale == 1.6  # and no further
    user.wait(lambda: user.chat.composer.editor.font().pixelSize() > 1.4 * before)
    user.press("Ctrl+-", times=12)
    assert user.controller.settings.text_scale == 0.8
    user.press("Ctrl+0")
    user.wait(lambda: user.chat.composer.editor.font().pixelSize() == before)
    user.press("Ctrl+4")
    slider = user.window.pages.settings.appearance.text_size.slider
    slider.setFocus()
    user.press("Right")
    user.wait(lambda: user.controller.settings.text_scale == 1.1)


def words(user: User) -> str:
    """Every text of the window that is seen or heard."""
    found = [user.shown]
    for child in user.window.findChildren(QLabel) + user.window.findChildren(QAbstractButton):
        if not (child.isHidden() and child.testAttribute(Qt.WidgetAttribute.WA_WState_ExplicitShowHide)):
            found += [child.text(), child.accessibleName()]
    return "\n".join(found)


def figureless(text: str) -> set[str]:
    """The lines without those that tell how much memory is free at the moment."""
    return {line for line in text.split("\n") if "free" not in line}


def test_the_language_changes_at_once_on_every_page(user: User) -> None:
    user.ask()
    for name in PAGES:
        user.window.show_page(name)
    user.wait(lambda: "Fits this machine" in words(user))  # the machine's facts come from a worker,
    user.wait(lambda: user.window.pages.settings.models.view.folder)  # and so does the way to the Hub
    english = words(user)
    language = user.window.pages.settings.appearance.language
    language.setCurrentIndex(language.findData("ko"))
    user.wait(lambda: user.controller.settings.language == "ko")
    user.wait(lambda: "대화" in words(user) or "채팅" in words(user))
    korean = words(user)
    assert user.chat.header.drafter.text() not in english
    assert user.chat.composer.send_button.accessibleName() not in ("Send", "")
    for gone in ("New chat", "Thinking", "Settings", "Models", "Answer again without the drafter"):
        assert gone in english
        assert gone not in korean.split("\n")
    for action in ("new-chat", "quit"):
        assert user.window.action(action).text() not in ("New chat", "Quit")
    language.setCurrentIndex(language.findData("en"))
    user.wait(lambda: "New chat" in words(user))
    assert figureless(words(user)) == figureless(english)


def test_a_korean_window_opens_in_korean(qtbot: QtBot) -> None:
    with window(qtbot, language="ko") as user:
        assert user.window.nav["settings"].text() not in ("Settings", "")
        assert user.chat.sidebar.new_button.text() not in ("New chat", "")
        answer = user.ask()
        assert answer.text[:40] in user.shown


def test_the_language_changes_in_the_middle_of_an_answer(qtbot: QtBot, endless_files: Pair) -> None:
    with window(qtbot, endless_files, context=32_768, sampling=ENDLESS) as user:
        user.begin()
        user.controller.change_settings(language="ko", theme="dark", text_scale=1.2)
        mark = len(user.streamed)
        user.wait(lambda: len(user.streamed) > mark + 100 and user.streamed[:mark] in user.shown)
        user.press("Esc")
        user.stopped()
        assert user.answer.text.strip() in user.shown


# Settings that the engine takes


def test_a_setting_of_the_engine_says_that_it_waits_and_loads_again_at_a_click(user: User) -> None:
    user.press("Ctrl+4")
    engine = user.window.pages.settings.engine
    assert not engine.stale.isVisibleTo(user.window)
    engine.context.setValue(1024)
    user.wait(lambda: user.controller.settings.context == 1024)
    assert engine.stale.isVisibleTo(user.window)
    engine.stale.button.click()
    user.wait(lambda: user.controller.load_state.running)
    user.loaded()
    assert not engine.stale.isVisibleTo(user.window)
    assert user.controller.pair.loaded is not None
    assert user.controller.pair.loaded.context == 1024
    user.press("Ctrl+1")
    assert user.chat.header._meter_text.text().endswith("/ 1,024")


def test_the_devices_are_those_that_the_engine_found(user: User) -> None:
    user.press("Ctrl+4")
    box = user.window.pages.settings.engine.device
    names = [box.itemData(index) for index in range(box.count())]
    assert names[0] is None
    assert len(names) == 1 + len(user.controller.pair.devices)


def test_settings_of_an_answer_count_from_the_next_one_on(user: User) -> None:
    user.press("Ctrl+4")
    page = user.window.pages.settings
    page.sampling.most.setValue(256)
    page.sampling.most.setValue(12)
    page.drafting.length.setValue(5)
    page.prompt.edit.setPlainText("You only speak of hens.")
    page.prompt.edit.clearFocus()
    user.press("Ctrl+1")
    answer = user.ask()
    assert answer.figures is not None
    assert (answer.figures.stats.generated, answer.figures.draft) == (12, "5")
    user.wait(lambda: user.controller.settings.system_prompt == "You only speak of hens.")
    assert user.chat.header.drafter.text() == "Drafter on · length 5"


def test_switches_of_the_settings_and_of_the_composer_are_one(user: User) -> None:
    user.press("Ctrl+4")
    page, chips = user.window.pages.settings.drafting, user.chat.composer.chips
    page.on.click()
    assert not chips.drafter.isChecked()
    page.drafted.click()
    assert chips.drafted.isChecked()
    user.press("Ctrl+1")
    chips.drafter.click()
    chips.drafted.click()
    assert page.on.isChecked()
    assert not page.drafted.isChecked()


def test_the_shortcuts_are_listed_from_the_settings(user: User) -> None:
    user.press("Ctrl+4")
    user.window.pages.settings.about.shortcuts.click()
    dialog = user.child(ShortcutsDialog)
    listed = " ".join(label.text() for label in dialog.findChildren(QLabel))
    for name in ("Stop the answer", "Esc", "Ctrl+K", "Show drafted tokens"):
        assert name in listed
    user.press("Esc")
    user.wait(lambda: not user.window.findChildren(ShortcutsDialog))


def test_the_logs_are_saved_as_a_zip(user: User, tmp_path: Path) -> None:
    user.ask()
    user.press("Ctrl+4")
    user.window.pages.settings.data.zip.click()
    user.choose_file(tmp_path / "logs")
    user.notice("log file")
    with zipfile.ZipFile(tmp_path / "logs.zip") as packed:
        names = packed.namelist()
        assert names
        assert not any(STORY in packed.read(name).decode("utf-8", "replace") for name in names)


# Comparing


def test_comparing_answers_the_question_again_both_ways(user: User) -> None:
    user.press("Ctrl+3")
    page = user.window.pages.compare
    assert not page.without.isEnabled()
    assert page.reason
    user.press("Ctrl+1")
    first = user.ask()
    user.press("Ctrl+3")
    assert page.without.isEnabled()
    assert page.with_drafter.isEnabled()
    second = user.answered(page.without.click)
    assert user.window.page == "chat"
    assert second.parent == first.parent
    assert second.figures is not None
    assert second.figures.draft == "off"
    user.press("Ctrl+3")
    third = user.answered(page.with_drafter.click)
    assert third.figures is not None
    assert third.figures.draft == "3"
    assert "3/3" in user.shown
    user.press("Ctrl+N")
    user.settled()
    assert not page.without.isEnabled()


def test_comparing_waits_while_an_answer_runs(qtbot: QtBot, endless_files: Pair) -> None:
    with window(qtbot, endless_files, context=32_768, sampling=ENDLESS) as user:
        user.begin()
        user.press("Ctrl+3")
        page = user.window.pages.compare
        assert not page.without.isEnabled()
        assert "running" in page.reason
        user.press("Esc")
        user.stopped()
        assert page.without.isEnabled()


# Notices


def test_a_grave_message_is_seen_whatever_page_is_in_view(user: User) -> None:
    user.press("Ctrl+4")
    user.kill_engine()
    user.notice("outside")
    assert user.window.page == "chat"


def test_a_notice_can_be_dismissed_by_keyboard_and_stays_while_it_has_the_focus(user: User) -> None:
    user.press("Ctrl+T")
    notice = user.notice("cannot think")
    notice.cross.setFocus()
    assert not notice._timer.isActive()
    user.press("Return")
    assert not user.notices
    assert not user.chat.notices.isVisible()


def test_after_a_notice_is_gone_the_keyboard_is_somewhere(user: User) -> None:
    user.press("Ctrl+T")
    user.notice("cannot think").cross.setFocus()
    user.press("Return")
    assert user.focus is not None
    user.press("Ctrl+L")
    user.type("still works")
    assert user.chat.composer.text() == "still works"


def test_the_first_page_after_a_restart_is_the_chat(qtbot: QtBot) -> None:
    with window(qtbot) as user:
        user.press("Ctrl+4")
        user.close()
    with opened(qtbot) as user:
        assert user.window.page == "chat"
        assert user.focus is user.chat.composer.editor
