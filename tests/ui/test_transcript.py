"""What the transcript shows of messages that are there already."""

from __future__ import annotations

import time

import pytest
from PySide6.QtCore import Qt, QUrl
from PySide6.QtGui import QTextCursor, QTextDocument
from pytestqt.qtbot import QtBot

from support.transcripts import (
    RICH,
    answer,
    block_with,
    blocks,
    chat,
    figures,
    links,
    settle,
    shown,
    text_of,
    user,
)
from tandem.ui.transcript_look import BARS, CHROME, MARKER, PAINT, Paint

PLAIN = """Some strong text with code, see the paper.

How it works

1. First
2. Second
◦ nested
◦ more

Still second.
3. Third

def f(x):
    return x + 1

A quote
of two lines.

a\tb
one\t1
two\t2

a/b

The end 👨‍👩‍👧‍👦."""


def test_markdown_becomes_text_without_marks(qtbot: QtBot) -> None:
    view = shown(qtbot)
    view.show_path([user(1), answer(2)], {})
    settle(qtbot, view)
    assert text_of(view) == f"A question?\n\n{PLAIN}"
    assert view.message_text(2) == PLAIN
    assert view.message_text(2, markdown=True) == RICH
    assert view.message_text(1) == "A question?"


def test_what_stands_behind_the_text(qtbot: QtBot) -> None:
    view = shown(qtbot)
    view.show_path([user(1), answer(2), answer(3, "", state="failed", problem="It broke.", remedy="Mend it.")], {})
    settle(qtbot, view)
    paint = {
        words: block_with(view, words).blockFormat().property(PAINT)
        for words in ("A question?", "def f(x)", "It broke.", "Some ")
    }
    assert paint == {
        "A question?": int(Paint.BUBBLE),
        "def f(x)": int(Paint.CODE),
        "It broke.": int(Paint.FAILURE),
        "Some ": None,
    }
    assert block_with(view, "A quote").blockFormat().property(BARS) == "0"
    assert block_with(view, "First").blockFormat().property(MARKER)
    assert block_with(view, "How it works").blockFormat().headingLevel() == 2
    table = QTextCursor(block_with(view, "one")).currentTable()
    assert table.columns() == 2
    lines = [table.cellAt(row, 1).format().toTableCellFormat().bottomBorderBrush().color() for row in (0, 1)]
    assert lines == [view.look.theme.colour("edge"), view.look.theme.colour("line")]
    assert block_with(view, "two").layout().boundingRect().height() > 0
    view.show_position(block_with(view, "A question?").position())
    grab = view.grab().toImage()
    ratio = view.devicePixelRatioF()
    bubble = block_with(view, "A question?")
    cursor = QTextCursor(bubble)
    spot = view.cursorRect(cursor).center() + view.viewport().pos()
    colours = {
        grab.pixelColor(round((spot.x() - 6) * ratio), round((spot.y() + dy) * ratio)).name() for dy in range(-3, 4)
    }
    assert view.look.theme.user_bubble.lower() in colours


def test_the_bubble_is_as_wide_as_its_text_and_stands_at_the_right(qtbot: QtBot) -> None:
    view = shown(qtbot)
    view.show_path([user(1, "Short"), user(2, "long " * 100)], {})
    short, long = block_with(view, "Short"), block_with(view, "long")
    look = view.look
    width = look.column - short.blockFormat().leftMargin() - short.blockFormat().rightMargin()
    assert look.advance("Short") <= width <= look.advance("Short") + 6
    assert short.layout().lineCount() == 1
    assert long.blockFormat().leftMargin() >= look.column * 0.15
    assert long.layout().lineCount() > 1


def test_each_paragraph_has_its_direction_and_code_is_left_to_right(qtbot: QtBot) -> None:
    view = shown(qtbot)
    text = "مرحبا English `code()` نص\n\nEnglish مرحبا\n\n- عنصر\n\n```js\nمرحبا = 1\n```\n\n> اقتباس\n\n한국어 문단"
    view.show_path([user(1, "مرحبا؟"), answer(2, text)], {})
    right, left = Qt.LayoutDirection.RightToLeft, Qt.LayoutDirection.LeftToRight
    directions = {
        words: block_with(view, words).blockFormat().layoutDirection()
        for words in ("مرحبا؟", "مرحبا English", "English مرحبا", "عنصر", "مرحبا = 1", "اقتباس", "한국어")
    }
    assert directions == {
        "مرحبا؟": right,
        "مرحبا English": right,
        "English مرحبا": left,
        "عنصر": right,
        "مرحبا = 1": left,
        "اقتباس": right,
        "한국어": left,
    }
    paragraph = block_with(view, "مرحبا English")
    line = paragraph.layout().lineAt(0)
    # It begins at the right, and its code, in it, keeps its order.
    assert line.cursorToX(0)[0] > line.cursorToX(paragraph.length() - 1)[0]
    code = paragraph.text().index("code()")
    places = [line.cursorToX(code + step)[0] for step in range(1, 5)]
    assert places == sorted(places)
    assert "code()" in view.message_text(2)
    assert "\u2066" not in view.message_text(2)


def test_every_script_and_emoji_is_there_whole(qtbot: QtBot) -> None:
    view = shown(qtbot)
    text = "한국어 **굵게** 👨‍👩‍👧‍👦 🇰🇷 e\u0301 日本語 ไทย हिन्दी"
    view.show_path([user(1, text.replace("*", "")), answer(2, text)], {})
    assert text_of(view) == f"{text.replace('*', '')}\n\n{text.replace('*', '')}"


def test_control_characters_are_harmless(qtbot: QtBot) -> None:
    view = shown(qtbot)
    nasty = "a\0b \u202egnp.exe \ufdd0\ufdd1 \ufffc \u2029c \x1b[1m"
    view.show_path([user(1, nasty), answer(2, nasty + "\n\n```\n\u2066x\n```"), answer(3, "after")], {})
    text = text_of(view)
    assert "a␀b [U+202E]gnp.exe" in text
    assert "[U+2066]x" in text
    assert text.endswith("after")
    assert not any(mark in view.toPlainText() for mark in "\0\u202e\ufdd0\x1b")


def test_long_code_lines_and_wide_tables(qtbot: QtBot) -> None:
    view = shown(qtbot, width=600)
    wide = (
        "|"
        + "|".join(f"h{at}" for at in range(50))
        + "|\n"
        + "|-" * 50
        + "|\n"
        + "|".join(f"v{at}" for at in range(50))
    )
    view.show_path([answer(1, f"{wide}\n\n```\n{'y' * 9000}\n```\n\nlast")], {})
    settle(qtbot, view)
    text = text_of(view)
    assert all(f"h{at} v{at}" in text for at in range(50))
    assert text.count("y") == 9000
    assert view.horizontalScrollBar().maximum() == 0
    assert text.endswith("last")


def test_a_narrow_table_does_not_break_words(qtbot: QtBot) -> None:
    view = shown(qtbot, width=600)
    view.show_path(
        [
            answer(
                1,
                "| Draft length | Acceptance | Tokens per pass | Gain |\n|---|---|---|---|\n| 1 | 82 % | 1.82 | 1.3 |",
            )
        ],
        {},
    )
    block = block_with(view, "Acceptance")
    assert QTextCursor(block).currentTable() is not None
    assert block.layout().lineCount() == 1


def test_nothing_is_ever_loaded(qtbot: QtBot) -> None:
    view = shown(qtbot)
    view.show_path(
        [answer(1, "![x](file:///etc/passwd) ![y](http://evil/z.png) ![](tandem-icon:copy/muted/16/light)")], {}
    )
    image = QTextDocument.ResourceType.ImageResource.value
    for address in (
        "file:///etc/hostname",
        "http://evil/z.png",
        "tandem-icon:../../x/muted/16/light",
        "tandem-icon:copy/x/16/light",
    ):
        assert view.loadResource(image, QUrl(address)) is None
        assert view.loadResource(QTextDocument.ResourceType.StyleSheetResource.value, QUrl(address)) is None
    assert not view.loadResource(image, QUrl("tandem-icon:copy/muted/16/light")).isNull()
    assert text_of(view) == "[Image: x – not loaded] [Image: y – not loaded] [Image – not loaded]"


def test_a_huge_message_is_folded_and_can_be_shown(qtbot: QtBot) -> None:
    view = shown(qtbot)
    whole = "\n".join(f"line {at} of a message that is far too long to be read" for at in range(20_000))
    assert len(whole) > 1_000_000
    start = time.perf_counter()
    view.show_path([user(1, whole), answer(2, "short")], {})
    assert time.perf_counter() - start < 10
    assert len(blocks(view)) < 60
    assert "Show all (1" in block_with(view, "Show all").text()
    view.link_chosen.emit(links(view, "expand")[0].href)
    settle(qtbot, view)
    assert whole in text_of(view)
    assert text_of(view).endswith("short")
    view.link_chosen.emit(links(view, "fold")[0].href)
    settle(qtbot, view)
    assert len(blocks(view)) < 60
    assert view.message_text(1) == whole


def test_a_huge_answer_is_written_in_portions_and_whole(qtbot: QtBot) -> None:
    view = shown(qtbot)
    text = "\n\n".join(f"Paragraph {at}, with **strong** words in it." for at in range(4_000))
    view.show_path([answer(1, text), user(2, "after")], {})
    assert view.busy
    settle(qtbot, view)
    assert text_of(view) == text.replace("*", "") + "\n\nafter"


# How an answer ended


def test_a_thought_is_folded(qtbot: QtBot) -> None:
    view = shown(qtbot)
    view.show_path([answer(1, "The answer.", thought="A *deep* thought.", thought_s=3.21, figures=figures(True))], {})
    head = block_with(view, "Thought for")
    assert "Thought for 3.2 s · 31 token" in head.text()
    assert "deep" not in text_of(view)
    view.link_chosen.emit(links(view, "thought")[0].href)
    assert text_of(view) == "A deep thought.\n\nThe answer."
    view.link_chosen.emit(links(view, "thought")[0].href)
    assert text_of(view) == "The answer."


def test_an_empty_answer_shows_its_thought_and_says_so(qtbot: QtBot) -> None:
    view = shown(qtbot)
    view.show_path([answer(1, " \n", thought="Only a thought.")], {})
    assert text_of(view) == "Only a thought."
    assert block_with(view, "The answer is empty; all that came is in the thought.")
    view.link_chosen.emit(links(view, "thought")[0].href)
    assert text_of(view) == ""


@pytest.mark.parametrize(
    ("state", "words"),
    [
        ("stopped", "Stopped."),
        ("limit", "longest length"),
        ("context", "The context is full"),
        ("interrupted", "Tandem ended while"),
        ("done", ""),
    ],
)
def test_how_an_answer_ended_is_said(qtbot: QtBot, state: str, words: str) -> None:
    view = shown(qtbot)
    view.show_path([answer(1, "Some text.", state=state, figures=figures())], {})
    chrome = [block.text() for block in blocks(view) if block.blockFormat().property(CHROME)]
    assert any(words in line for line in chrome)
    assert text_of(view) == "Some text."
    assert any("tok/s" in line for line in chrome)


def test_a_failed_answer_says_why_and_what_can_be_done(qtbot: QtBot) -> None:
    view = shown(qtbot)
    view.show_path([answer(1, "Half an ans", state="failed", problem="The engine broke.", remedy="Try again.")], {})
    assert text_of(view) == "Half an ans"
    assert block_with(view, "The engine broke.")
    assert block_with(view, "Try again.")
    for act in ("retry", "retry-without-drafter", "retry-smaller-context"):
        assert len(links(view, act)) == 1


def test_versions_of_a_message(qtbot: QtBot) -> None:
    view = shown(qtbot)
    view.show_path(chat(6), {2: (1, 3), 4: (2, 3), 6: (3, 3)})
    settle(qtbot, view)
    switches = {act: [link.href[-1] for link in links(view, act)] for act in ("previous", "next")}
    assert switches == {"previous": ["4", "6"], "next": ["2", "4"]}
    assert block_with(view, "2/3")
