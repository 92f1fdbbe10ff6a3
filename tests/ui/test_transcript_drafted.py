"""The view of the drafted tokens: what the verify passes said, and nothing that they did not say."""

from __future__ import annotations

import msgspec
from PySide6.QtGui import QTextCharFormat
from pytestqt.qtbot import QtBot

from support.transcripts import (
    RICH,
    answer,
    blocks,
    chat,
    figures,
    looks,
    pieces,
    settle,
    shown,
    text_of,
    user,
    with_runs,
)
from tandem.chat.conversation import Run
from tandem.ui.session_state import Piece, pieces_of
from tandem.ui.transcript import Transcript
from tandem.ui.transcript_drafted import Legend
from tandem.ui.transcript_look import CHROME

Lines = QTextCharFormat.UnderlineStyle
KINDS = {Lines.NoUnderline: 0, Lines.SingleUnderline: 1, Lines.DotLine: 2}


def seen(view: Transcript) -> list[tuple[str, int]]:
    """Each stretch of an answer's text with the kind that its look says; what has no characters is left out."""
    found: list[tuple[str, int]] = []
    for block in blocks(view):
        if block.blockFormat().property(CHROME):
            continue
        for part in block:
            chars = part.fragment().charFormat()
            kind = KINDS[chars.underlineStyle()]
            tinted = chars.background().color() == view.look.theme.colour("drafted_bg") and kind == 1
            assert tinted == (kind == 1)
            found.append((part.fragment().text(), kind))
    return merged(found)


def merged(parts: list[tuple[str, int]]) -> list[tuple[str, int]]:
    found: list[tuple[str, int]] = []
    for text, kind in parts:
        text = text.replace("\n", "")
        if found and found[-1][1] == kind:
            found[-1] = found[-1][0] + text, kind
        elif text:
            found.append((text, kind))
    return found


def test_the_text_is_as_it_came_and_each_token_shows_its_kind(qtbot: QtBot) -> None:
    node = with_runs(answer(2, RICH, thought="A **thought**\nof two lines."))
    view = shown(qtbot)
    view.show_path([node], {})
    view.show_drafted(True)
    settle(qtbot, view)
    assert text_of(view) == f"{node.thought}\n\n{RICH}"
    assert seen(view) == merged([(piece.text, piece.kind) for piece in pieces_of(node.text, node.thought, node.runs)])


def test_it_is_the_same_while_it_streams(qtbot: QtBot) -> None:
    node = with_runs(answer(2, RICH * 2, thought="A thought", figures=figures(True)), seed=4)
    view, other = shown(qtbot), shown(qtbot)
    view.show_drafted(True)
    view.begin(answer(2, "", state="streaming", thinking=True))
    for piece in pieces_of(node.text, node.thought, node.runs):
        view.stream([piece])
        view.flush()
    view.finish(node)
    other.show_drafted(True)
    other.show_path([node], {})
    for found in (view, other):
        settle(qtbot, found)
    assert seen(view) == seen(other)
    assert looks(view) == looks(other)
    view.show_drafted(False)
    other.show_drafted(False)
    for found in (view, other):
        settle(qtbot, found)
    assert looks(view) == looks(other)
    assert "strong text with code" in text_of(view)


def test_switched_in_the_middle_of_an_answer(qtbot: QtBot) -> None:
    view = shown(qtbot)
    view.begin(answer(2, "", state="streaming"))
    view.stream([Piece("answer", "own ", 0), Piece("answer", "drafted", 1)])
    view.show_drafted(True)
    view.stream([Piece("answer", " more", 1), Piece("answer", " rejected", 2)])
    view.flush()
    assert seen(view) == [("own ", 0), ("drafted more", 1), (" rejected", 2)]


def test_without_flags_there_is_no_colour(qtbot: QtBot) -> None:
    view = shown(qtbot)
    view.show_drafted(True)
    plain = answer(2, "Some text.")
    zeros = msgspec.structs.replace(plain, id=4, runs=(Run("answer", 10, 0),))
    wrong = msgspec.structs.replace(plain, id=6, runs=(Run("answer", 999, 1),))
    for node in (plain, zeros, wrong):
        view.show_path([node], {})
        assert seen(view) == [("Some text.", 0)]


def test_users_messages_are_as_always(qtbot: QtBot) -> None:
    view = shown(qtbot)
    view.show_path([user(1, "**mine**"), with_runs(answer(2, "theirs"))], {})
    before = [look for look in looks(view) if "mine" in str(look)]
    view.show_drafted(True)
    assert [look for look in looks(view) if "mine" in str(look)] == before


def test_the_legend_says_what_it_means_in_words(qtbot: QtBot) -> None:
    view = shown(qtbot)
    legend = view.findChild(Legend)
    assert legend is not None
    assert not legend.isVisible()
    view.show_drafted(True)
    assert legend.isVisible()
    assert [text for _, text in legend.entries()] == ["accepted draft", "target's own token", "draft rejected here"]
    assert legend.accessibleName() == "Legend"
    assert all(text in legend.accessibleDescription() for _, text in legend.entries())
    assert view.viewport().y() >= legend.height() > 0
    view.resize(500, 400)
    assert legend.width() == 500
    view.show_drafted(False)
    assert not legend.isVisible()
    assert view.viewport().y() == 0


def test_the_place_is_kept_when_it_is_switched(qtbot: QtBot) -> None:
    view = shown(qtbot)
    view.show_path([with_runs(node) if node.role == "assistant" else node for node in chat(20)], {})
    settle(qtbot, view)
    bar = view.verticalScrollBar()
    bar.setValue(bar.maximum() // 2)
    settle(qtbot, view)
    section = view._stretch.section_at(view.first_visible())
    assert section is not None
    view.show_drafted(True)
    settle(qtbot, view)
    after = view._stretch.section_at(view.first_visible())
    assert after is not None
    assert abs(after.node.id - section.node.id) <= 1


def test_a_line_without_an_end_stays_cheap_and_whole(qtbot: QtBot) -> None:
    view = shown(qtbot)
    view.show_drafted(True)
    view.begin(answer(2, "", state="streaming"))
    text = "word " * 3000 + "x" * 9000
    for piece in pieces(text, 50, kind=1):
        view.stream([piece])
        view.flush()
    assert max(block.length() for block in blocks(view)) < 2500
    assert "".join(part for part, _ in seen(view)) == text


def test_a_huge_answer_is_marked_in_portions(qtbot: QtBot) -> None:
    view = shown(qtbot)
    view.show_drafted(True)
    node = with_runs(answer(2, "some words in a line\n" * 4000))
    view.show_path([node, user(3, "after")], {})
    assert view.busy
    settle(qtbot, view)
    assert "".join(text for text, _ in seen(view)) == node.text.replace("\n", "") + "after"
