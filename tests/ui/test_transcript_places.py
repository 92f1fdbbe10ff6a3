"""Long chats: opened at their end, read upwards, found in; and the reader's place when everything is written anew."""

from __future__ import annotations

import time

import pytest
from PySide6.QtCore import Qt, QUrl
from PySide6.QtGui import QTextCursor, QTextDocument
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from support.transcripts import (
    RICH,
    answer,
    block_with,
    blocks,
    chat,
    links,
    looks,
    pieces,
    settle,
    shown,
    text_of,
    user,
)
from tandem.ui.theme import ThemeManager
from tandem.ui.transcript import Transcript
from tandem.ui.transcript_look import CHROME
from tandem.ui.transcript_stretch import ENOUGH


def loaded(view: Transcript) -> list[str]:
    return [block.text() for block in blocks(view) if block.text().startswith("Question ")]


def top_line(view: Transcript) -> tuple[str, int]:
    """The first line of a message in view and where it stands."""
    block = view.document().findBlock(view.first_visible())
    while block.blockFormat().property(CHROME):
        block = block.next()
    return block.text(), view.cursorRect(QTextCursor(block)).top()


def test_a_chat_of_2000_messages_opens_at_its_end_at_once(qtbot: QtBot) -> None:
    view = shown(qtbot)
    nodes = chat(2000)
    view.show_path(nodes[:2], {})
    start = time.perf_counter()
    view.show_path(nodes, {})
    view.repaint()
    assert time.perf_counter() - start < 10  # a guard against a hang; the benchmark measures the 300 ms
    bar = view.verticalScrollBar()
    assert bar.value() == bar.maximum()
    assert loaded(view)[-1] == "Question 1999"
    assert len(loaded(view)) < 20
    settle(qtbot, view)
    assert len(loaded(view)) == ENOUGH // 2
    assert bar.value() == bar.maximum()


def test_scrolling_up_loads_more_and_nothing_jumps(qtbot: QtBot) -> None:
    view = shown(qtbot)
    view.show_path(chat(200), {})
    settle(qtbot, view)
    bar = view.verticalScrollBar()
    while len(loaded(view)) < 100:
        before = len(loaded(view))
        bar.setValue(40)
        seen = top_line(view)
        qtbot.waitUntil(lambda: len(loaded(view)) > before)  # noqa: B023  (it is waited for within the loop)
        settle(qtbot, view)
        assert top_line(view) == seen
    assert loaded(view)[0] == "Question 1"
    assert not links(view, "earlier")
    bar.setValue(0)
    settle(qtbot, view)
    assert loaded(view) == [f"Question {number}" for number in range(1, 200, 2)]


def test_earlier_messages_can_be_asked_for_by_a_link(qtbot: QtBot) -> None:
    view = shown(qtbot)
    view.show_path(chat(90), {})
    settle(qtbot, view)
    before = len(loaded(view))
    view.link_chosen.emit(links(view, "earlier")[0].href)
    settle(qtbot, view)
    assert len(loaded(view)) > before


def test_revealing_a_message_far_up(qtbot: QtBot) -> None:
    view = shown(qtbot)
    nodes = chat(1000)
    view.show_path(nodes, {})
    settle(qtbot, view)
    view.reveal(301)
    settle(qtbot, view)
    place = view.cursorRect(QTextCursor(block_with(view, "Question 301"))).top()
    assert 0 <= place < 200
    assert len(loaded(view)) < 40
    assert not view.following
    bar = view.verticalScrollBar()
    last = loaded(view)[-1]
    bar.setValue(bar.maximum())
    settle(qtbot, view)
    assert int(loaded(view)[-1].split()[1]) > int(last.split()[1])
    assert not view.following  # the end of what is loaded is not the end
    view.end_button.click()
    assert loaded(view)[-1] == "Question 999"
    assert view.following
    assert bar.value() == bar.maximum()


def test_a_new_message_leads_back_to_the_end(qtbot: QtBot) -> None:
    view = shown(qtbot)
    view.show_path(chat(300), {})
    view.reveal(3)
    settle(qtbot, view)
    view.append(user(301, "Question new"))
    assert loaded(view)[-2:] == ["Question 299", "Question new"]
    view.begin(answer(302, "", state="streaming"))
    view.stream(pieces("yes", 3))
    assert text_of(view).endswith("Question new\n\nyes")
    assert view.verticalScrollBar().value() == view.verticalScrollBar().maximum()


@pytest.mark.parametrize(
    ("text", "thought", "needle"),
    [
        (RICH * 20 + "\n\nthe NEEDLE here\n\n" + RICH * 5, "", "needle"),
        ("nothing", "In the thought a needle.", "needle"),
        ("한국어 문장에서 찾기", "", "찾기"),
    ],
)
def test_a_found_text_is_marked_and_in_view(qtbot: QtBot, text: str, thought: str, needle: str) -> None:
    view = shown(qtbot)
    nodes = chat(50)
    nodes[19] = answer(20, text, thought=thought)
    view.show_path(nodes, {})
    view.reveal(20, needle)
    settle(qtbot, view)
    (mark,) = view.extraSelections()
    assert mark.cursor.selectedText().lower() == needle
    assert mark.format.background().color() == view.look.theme.colour("find")
    assert view.viewport().rect().contains(view.cursorRect(mark.cursor))
    view.show_path(chat(2), {})
    assert not view.extraSelections()


def test_a_text_found_in_a_folded_message(qtbot: QtBot) -> None:
    view = shown(qtbot)
    view.show_path([user(1, "words\n" * 5000 + "needle"), answer(2)], {})
    view.reveal(1, "needle")
    settle(qtbot, view)
    (mark,) = view.extraSelections()
    assert view.viewport().rect().contains(view.cursorRect(mark.cursor))


def test_revealing_what_is_not_there(qtbot: QtBot) -> None:
    view = shown(qtbot)
    view.show_path(chat(4), {})
    view.reveal(77)
    view.reveal(2, "no such words")
    settle(qtbot, view)
    assert not view.extraSelections()


# Branches


def test_another_version_changes_only_what_is_different(qtbot: QtBot) -> None:
    view = shown(qtbot)
    nodes = chat(12)
    view.show_path(nodes, {})
    settle(qtbot, view)
    kept = QTextCursor(block_with(view, "Question 5"))
    other = [*nodes[:9], answer(20, "Another **answer**."), user(21, "Question 21")]
    view.show_path(other, {20: (2, 2)})
    settle(qtbot, view)
    assert kept.block().text() == "Question 5"  # nothing above was touched
    assert text_of(view).endswith("Another answer.\n\nQuestion 21")
    fresh = shown(qtbot)
    fresh.show_path(other, {20: (2, 2)})
    settle(qtbot, fresh)
    assert looks(view) == looks(fresh)
    view.show_path(nodes, {10: (1, 2)})
    fresh.show_path(nodes, {10: (1, 2)})
    for found in (view, fresh):
        settle(qtbot, found)
    assert looks(view) == looks(fresh)


def test_another_chat_replaces_it_and_an_empty_one_leaves_nothing(qtbot: QtBot) -> None:
    view = shown(qtbot)
    view.show_path(chat(6), {})
    view.show_path([user(100, "Elsewhere")], {})
    assert text_of(view) == "Elsewhere"
    view.show_path([], {})
    assert text_of(view) == ""
    view.append(user(1, "Again"))
    assert text_of(view) == "Again"


def test_another_chat_in_the_middle_of_an_answer(qtbot: QtBot) -> None:
    view = shown(qtbot)
    view.append(user(1))
    view.begin(answer(2, "", state="streaming"))
    view.stream(pieces("first", 5))
    view.stream(pieces(" second", 7))
    view.show_path([user(100, "Elsewhere")], {})
    view.finish(answer(2, "first second"))
    qtbot.wait(60)  # longer than an update may be held back
    assert text_of(view) == "Elsewhere"


# Written anew


@pytest.fixture
def manager(qapp: QApplication) -> ThemeManager:
    made = ThemeManager()
    made.apply(qapp, "light")
    return made


@pytest.mark.parametrize("share", [0.0, 0.3, 0.6, 1.0])
def test_another_theme_keeps_the_place(qtbot: QtBot, qapp: QApplication, manager: ThemeManager, share: float) -> None:
    view = shown(qtbot, manager)
    view.show_path(chat(30), {})
    settle(qtbot, view)
    bar = view.verticalScrollBar()
    bar.setValue(round(bar.maximum() * share))
    settle(qtbot, view)
    line, top = top_line(view)
    manager.apply(qapp, "dark")
    settle(qtbot, view)
    after, place = top_line(view)
    assert after == line
    assert abs(place - top) <= 3
    assert view.look.theme.name == "dark"
    icon = view.document().resource(
        QTextDocument.ResourceType.ImageResource.value, QUrl("tandem-icon:copy/muted/16/dark")
    )
    pixels = icon.toImage()
    strongest = max(
        (pixels.pixelColor(x, y) for x in range(pixels.width()) for y in range(pixels.height())),
        key=lambda c: c.alpha(),
    )
    assert strongest.lightness() > 128  # drawn for the dark theme
    image = view.viewport().grab().toImage()
    assert image.pixelColor(2, image.height() - 3).name().upper() == view.look.theme.window.upper()
    manager.apply(qapp, "dark", 1.5)
    settle(qtbot, view)
    words, place = top_line(view)
    assert words == line or view.following
    assert view.following is (share == 1)


def test_the_end_is_kept_at_any_width(qtbot: QtBot) -> None:
    view = shown(qtbot, width=900)
    view.show_path(chat(10), {})
    settle(qtbot, view)
    bar = view.verticalScrollBar()
    for width in (600, 1300, 420, 900):
        view.resize(width, 700)
        qtbot.waitUntil(lambda: not view.busy and not view.waits_for_width)
        assert bar.value() == bar.maximum()
        assert view.horizontalScrollBar().maximum() == 0
        bubble = block_with(view, "Question 9")
        room = view.look.column - bubble.blockFormat().leftMargin() - bubble.blockFormat().rightMargin()
        assert room >= view.look.advance("Question 9")
    fresh = shown(qtbot, width=900)
    fresh.show_path(chat(10), {})
    settle(qtbot, fresh)
    assert looks(view) == looks(fresh)


def test_the_column_stands_in_the_middle_and_is_never_too_wide(qtbot: QtBot) -> None:
    view = shown(qtbot, width=1600)
    view.show_path(chat(2), {})
    margins = view.document().rootFrame().frameFormat()
    assert view.look.column == 760
    assert abs(margins.leftMargin() - margins.rightMargin()) <= 1
    assert margins.leftMargin() + margins.rightMargin() + 760 == view.viewport().width()


def test_keys_scroll(qtbot: QtBot) -> None:
    view = shown(qtbot)
    view.show_path(chat(10), {})
    settle(qtbot, view)
    view.setFocus()
    bar = view.verticalScrollBar()
    end = bar.value()
    qtbot.keyClick(view, Qt.Key.Key_Up)
    up = bar.value()
    assert up < end
    qtbot.keyClick(view, Qt.Key.Key_PageUp)
    assert bar.value() < up - 300
    qtbot.keyClick(view, Qt.Key.Key_Down)
    qtbot.keyClick(view, Qt.Key.Key_Home)
    assert bar.value() == 0
    qtbot.keyClick(view, Qt.Key.Key_End)
    assert bar.value() == bar.maximum()
    assert view.following


def test_closing_in_the_middle_of_everything(qtbot: QtBot) -> None:
    view = shown(qtbot)
    view.show_path([answer(1, RICH * 300), user(2, "x\n" * 90_000)], {})
    view.begin(answer(3, "", state="streaming"))
    view.stream(pieces("a", 1))
    view.stream(pieces("b", 1))
    assert view.busy
    view.close()
