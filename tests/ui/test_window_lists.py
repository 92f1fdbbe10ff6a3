"""Chats as things: found, renamed, deleted, brought back, exported, read in; and what is dropped and clicked."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from PySide6.QtCore import QByteArray, QMimeData, Qt, QUrl
from PySide6.QtGui import QGuiApplication, QImage
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QLineEdit, QMessageBox, QWidget
from pytestqt.qtbot import QtBot

from support.desk import STORY
from support.handset import NEWLINE, Pair, Script
from support.windows import User, drop, files, opened, window
from tandem import settings

FOX, ANIMALS = "Tell me a story about a fox.", "List seven animals."

menus = pytest.mark.qt_log_ignore(r"This plugin does not support (raise\(\)|grabbing the keyboard)")


@pytest.fixture
def user(qtbot: QtBot) -> Iterator[User]:
    with window(qtbot) as somebody:
        yield somebody


@pytest.fixture
def two_chats(user: User) -> User:
    user.ask(FOX)
    user.press("Ctrl+N")
    user.settled()
    user.ask(ANIMALS)
    return user


def titles(user: User) -> list[str]:
    return [chat.title for chat in user.chats]


# Finding


def test_a_search_by_keyboard_leads_to_the_message(two_chats: User) -> None:
    user, side = two_chats, two_chats.chat.sidebar
    user.press("Ctrl+F")
    user.type("once upon")
    user.wait(side.found_label.isVisible)
    user.press("Down")
    assert user.focus is side.list
    user.press("Return")
    user.wait(lambda: "story about a fox" in user.shown)
    user.wait(user.transcript.extraSelections)
    (mark,) = user.transcript.extraSelections()
    assert mark.cursor.selectedText().lower() == "once upon"
    user.press("Ctrl+F")
    user.press("Esc")
    assert not side.found_label.isVisible()
    assert len(user.chats) == 2


def test_of_several_words_that_do_not_stand_together_the_longest_is_marked(two_chats: User) -> None:
    user = two_chats
    user.press("Ctrl+K")
    user.type("fox tell story")
    user.wait(user.chat.sidebar.found_label.isVisible)
    rows = [row for row in user.chat.sidebar.model.rows if row.hit is not None and row.hit.node is not None]
    user.chat.sidebar._chosen(rows[0])
    user.wait(user.transcript.extraSelections)
    assert user.transcript.extraSelections()[0].cursor.selectedText() == "story"


def test_enter_in_the_search_field_opens_the_first_hit(two_chats: User) -> None:
    user = two_chats
    user.press("Ctrl+K")
    user.type("fox")
    user.wait(user.chat.sidebar.found_label.isVisible)
    user.press("Return")
    user.wait(lambda: "story about a fox" in user.shown)


def test_a_hit_in_a_version_that_is_not_shown_shows_that_version(user: User) -> None:
    user.ask("Tell me about a walrus.")
    user.press("Ctrl+E")
    user.press("Ctrl+A")
    user.type("Tell me about a cow.")
    user.answered(lambda: user.press("Return"))
    assert "walrus" not in user.shown
    user.press("Ctrl+K")
    user.type("walrus.")
    user.wait(lambda: any(row.hit and row.hit.node for row in user.chat.sidebar.model.rows))
    rows = [row for row in user.chat.sidebar.model.rows if row.hit is not None and row.hit.node is not None]
    user.chat.sidebar._chosen(rows[0])
    user.wait(lambda: "walrus" in user.shown)
    assert user.path[0].text == "Tell me about a walrus."


@pytest.mark.parametrize("text", ["'", '"', "%", "_", "* OR 1", "(", "没有", "\\", "<b>"])
def test_odd_searches_say_that_nothing_was_found(user: User, text: str) -> None:
    user.ask()
    user.press("Ctrl+K")
    user.chat.sidebar.search.setText(f"{text}qq")
    user.wait(lambda: user.chat.sidebar.stack.currentWidget() is user.chat.sidebar.empty)


# Names, deleting


def test_a_chat_is_renamed_by_keyboard_and_keeps_its_name(qtbot: QtBot) -> None:
    with window(qtbot) as user:
        user.ask()
        user.chat.sidebar.focus_list()
        user.press("F2")
        field = user.child(QLineEdit, user.chat.sidebar.list)
        assert field.text() == STORY
        user.press("Ctrl+A")
        user.type("Foxes")
        user.press("Return")
        user.settled()
        assert titles(user) == ["Foxes"]
        user.press("F2")
        user.press("Ctrl+A")
        user.type("Wolves")
        user.press("Esc")
        user.settled()
        assert titles(user) == ["Foxes"]
        user.close()
    with opened(qtbot) as user:
        assert titles(user) == ["Foxes"]


def test_a_deleted_chat_is_gone_and_undo_brings_it_back_and_shows_it(two_chats: User) -> None:
    user = two_chats
    answer = user.answer
    user.chat.sidebar.focus_list()
    user.press("Delete")
    notice = user.notice("Deleted")
    user.settled()
    assert titles(user) == [FOX]
    assert user.path == []
    assert notice.button is not None
    assert notice.button.text() == "Undo"
    notice.button.setFocus()
    user.press("Return")
    user.wait(lambda: user.path[-1:] == [answer])
    assert ANIMALS in user.shown
    user.settled()
    assert titles(user) == [ANIMALS, FOX]
    assert not user.notices


def test_delete_twice_gives_two_notices_and_the_focus_stays_in_the_list(two_chats: User) -> None:
    user, side = two_chats, two_chats.chat.sidebar
    user.press("Ctrl+N")
    user.ask("Tell me of a hen.")
    user.settled()
    path = user.path
    chats = [summary.id for summary in user.chats]
    side.focus_list()
    user.press("Down")  # not the one that is open
    for left in (2, 1):
        user.press("Delete")
        user.wait(lambda left=left: len(user.chats) == left)
        user.settled()
        assert side.list.hasFocus()
    assert user.path == path  # nothing was opened
    assert side.model.row(side.list.currentIndex()).conversation == user.chats[0].id  # type: ignore[union-attr]
    texts = [notice.text for notice in user.notices]
    assert len([text for text in texts if text.startswith("Deleted “")]) == 2
    user.press("Ctrl+Z")
    user.wait(lambda: len(user.chats) == 2)
    user.press("Ctrl+Z")
    user.wait(lambda: [summary.id for summary in user.chats] == chats)
    user.settled()
    assert side.list.hasFocus()


def test_deleting_the_open_chat_leaves_the_focus_in_the_list_and_opens_no_other(two_chats: User) -> None:
    user, side = two_chats, two_chats.chat.sidebar
    side.focus_list()
    user.press("Delete")
    user.wait(lambda: len(user.chats) == 1)
    user.settled()
    assert side.list.hasFocus()
    assert user.controller.conversation is None
    assert side.model.row(side.list.currentIndex()).conversation == user.chats[0].id  # type: ignore[union-attr]


def test_two_chats_of_one_name_have_an_undo_each_that_stays(two_chats: User) -> None:
    user, side = two_chats, two_chats.chat.sidebar
    for summary in user.chats:
        user.controller.rename(summary.id, "Same")
    user.settled()
    side.focus_list()
    for left in (1, 0):
        user.press("Delete")
        user.wait(lambda left=left: len(user.chats) == left)  # type: ignore[misc]
        user.settled()
    assert [notice.text for notice in user.notices] == ["Deleted “Same”."] * 2
    assert all(notice.button is not None for notice in user.notices)


@menus
def test_the_menu_of_a_chat_deletes_and_exports(two_chats: User) -> None:
    user, side = two_chats, two_chats.chat.sidebar
    side.focus_list()
    user.press("Shift+F10")
    assert side.menu is not None
    actions = {action.text(): action for action in side.menu.actions() if action.text()}
    assert list(actions) == ["Rename", "Export as Markdown…", "Export as JSON…", "Delete"]
    side.menu.close()
    actions["Delete"].trigger()
    user.notice("Deleted")
    user.settled()
    assert len(user.chats) == 1


# Files


@menus
@pytest.mark.parametrize(("entry", "ending"), [("Export as Markdown…", "md"), ("Export as JSON…", "json")])
def test_a_chat_is_exported_through_the_dialog(two_chats: User, tmp_path: Path, entry: str, ending: str) -> None:
    user, side = two_chats, two_chats.chat.sidebar
    side.focus_list()
    user.press("Menu")
    assert side.menu is not None
    action = next(action for action in side.menu.actions() if action.text() == entry)
    side.menu.close()
    action.trigger()
    user.choose_file(tmp_path / "여우 chat")
    user.back()
    user.notice("exported")
    written = tmp_path / f"여우 chat.{ending}"
    assert "seven animals" in written.read_text("utf-8")
    assert "fox" not in written.read_text("utf-8")
    assert user.controller.settings.export_folder == str(tmp_path)


@menus
def test_all_chats_go_out_and_come_in_again(two_chats: User, tmp_path: Path) -> None:
    user, side = two_chats, two_chats.chat.sidebar
    side.more_button.click()
    assert side.menu is not None
    actions = {action.text(): action for action in side.menu.actions() if action.text()}
    side.menu.close()
    actions["Export all as JSON…"].trigger()
    user.choose_file(tmp_path / "all.json")
    user.notice("2 chats were exported")
    assert json.loads((tmp_path / "all.json").read_text("utf-8"))
    actions["Import chats…"].trigger()
    user.choose_file(tmp_path / "all.json")
    user.notice("0 imported, 2 were here already")
    user.settled()
    assert sorted(titles(user)) == sorted([ANIMALS, FOX])
    user.back()
    side.focus_list()
    user.press("Delete")
    user.wait(lambda: len(user.chats) == 1)
    actions["Import chats…"].trigger()
    user.choose_file(tmp_path / "all.json")
    user.notice("1 imported, 1 were here already")
    user.settled()
    assert sorted(titles(user)) == sorted([ANIMALS, FOX])


def test_a_file_that_is_no_export_is_refused_with_a_sentence(user: User, tmp_path: Path) -> None:
    (tmp_path / "no.json").write_text("[1, 2")
    user.press("Ctrl+4")
    user.window.pages.settings.import_requested.emit()
    user.choose_file(tmp_path / "no.json")
    user.wait(lambda: user.notices)
    assert user.notices[0].kind == "bad"
    assert user.window.page == "chat"  # a message of weight is seen


def test_exporting_into_a_place_that_cannot_be_written_is_said(user: User, tmp_path: Path) -> None:
    user.ask()
    (tmp_path / "file").write_text("")
    user.controller.export_all(tmp_path / "file" / "all.json", "json")
    user.wait(lambda: any(notice.kind == "bad" for notice in user.notices))


# What is dropped


def picture() -> QMimeData:
    data = QMimeData()
    data.setImageData(QImage(4, 4, QImage.Format.Format_RGB32))
    return data


def sound() -> QMimeData:
    data = QMimeData()
    data.setData("audio/mpeg", QByteArray(b"ID3"))
    return data


def picture_file() -> QMimeData:
    return files(Path("/srv/picture.png"))


def many_files() -> QMimeData:
    return files(Path("/srv/a.wav"), Path("/srv/b.gguf"))


def nothing() -> QMimeData:
    return QMimeData()


PARTS: list[Callable[[User], QWidget]] = [
    lambda user: user.transcript,
    lambda user: user.chat.composer.editor,
    lambda user: user.chat.composer,
    lambda user: user.chat.header,
    lambda user: user.chat.sidebar.list,
    lambda user: user.chat.sidebar.search,
]


@pytest.mark.parametrize("data", [picture, sound, picture_file, many_files])
def test_pictures_and_sound_dropped_anywhere_are_refused_with_a_sentence(
    user: User, data: Callable[[], QMimeData]
) -> None:
    user.ask()
    for part in PARTS:
        user.chat.notices.clear()
        widget = part(user)
        assert drop(widget, data()) != Qt.DropAction.MoveAction
        notice = user.notice("Text only for now")
        assert notice.kind == "warn"
        assert user.chat.composer.text() == ""
        assert user.chat.sidebar.search.text() == ""
        drop(widget, nothing())
    for page in ("models", "compare", "settings"):
        user.window.show_page(page)
        drop(user.window.stack.currentWidget(), data())
    user.window.show_page("chat")
    user.ask("And then?")


def test_text_dropped_anywhere_on_the_page_goes_into_the_composer(user: User) -> None:
    user.ask()
    data = QMimeData()
    data.setText("dropped")
    for part in PARTS[:-1]:
        user.chat.composer.clear()
        assert drop(part(user), data) == Qt.DropAction.CopyAction
        assert user.chat.composer.text() == "dropped"


def test_a_pasted_picture_is_refused_with_a_sentence(user: User) -> None:
    QGuiApplication.clipboard().setImage(QImage(4, 4, QImage.Format.Format_RGB32))
    user.press("Ctrl+L")
    user.press("Ctrl+V")
    assert user.notice("Text only for now")


# Links


@pytest.fixture(scope="module")
def linker(tmp_path_factory: pytest.TempPathFactory) -> Pair:
    """A pair that answers with links and a picture."""
    script = Script()
    script.say(
        NEWLINE,
        "See [here](https://example.org/a?b=c) or ![x](http://example.org/x.png) or [bad](file:///etc/passwd) ",
        "or [worse](javascript:alert(1)) or [long](https://example.org/" + "a" * 900 + ").",
    )
    return script.write(tmp_path_factory.mktemp("linker"))


def test_a_link_asks_first_and_opens_nothing_unasked(qtbot: QtBot, linker: Pair, opened_urls: list[str]) -> None:
    with window(qtbot, linker) as user:
        user.ask()
        links = [link for link in user.links() if link.href.startswith("https://example.org/a?")]
        assert {link.href.split(":")[0] for link in user.links()} == {"https", "tandem-do"}

        def click() -> QMessageBox:
            QTest.mouseClick(user.transcript.viewport(), Qt.MouseButton.LeftButton, pos=user.place_of(links[0]))
            return user.child(QMessageBox)

        box = click()
        assert opened_urls == []
        assert "https://example.org/a?b=c" in box.informativeText().replace("\u200b", "")
        assert box.defaultButton() is box.button(QMessageBox.StandardButton.Cancel)
        user.press("Return")
        user.back()
        assert opened_urls == []
        box = click()
        user.press("Esc")
        user.back()
        assert opened_urls == []
        box = click()
        opener = next(button for button in box.buttons() if button.text() == "Open")
        opener.click()
        user.back()
        assert opened_urls == ["https://example.org/a?b=c"]


def test_a_very_long_link_does_not_make_a_very_wide_box(qtbot: QtBot, linker: Pair, opened_urls: list[str]) -> None:
    with window(qtbot, linker) as user:
        address = "https://example.org/" + "a" * 5000 + "?end"
        user.transcript.link_asked.emit(address)
        box = user.child(QMessageBox)
        assert box.width() <= user.window.screen().availableGeometry().width()
        assert "https://example.org/" in box.informativeText().replace("\u200b", "")
        next(button for button in box.buttons() if button.text() == "Open").click()
        user.back()
        assert opened_urls == [QUrl(address).toString()]


def test_the_folders_are_opened_by_the_desktop(user: User, opened_urls: list[str]) -> None:
    user.press("Ctrl+4")
    user.window.pages.settings.data_folder_requested.emit()
    user.window.pages.settings.logs_folder_requested.emit()
    assert [url.startswith("file://") for url in opened_urls] == [True, True]
    assert settings.file().parent.as_posix() in opened_urls[0]
