"""What is seen of the drafter, of thinking and of the context: chips, switches for the next message, marked tokens."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QTextCharFormat
from PySide6.QtWidgets import QAbstractButton
from pytestqt.qtbot import QtBot

from support.chat_templates import GEMMA4_E2B
from support.desk import ENDLESS, endless_pair
from support.handset import CHANNEL_CLOSE, CHANNEL_OPEN, NEWLINE, Pair, Script
from support.windows import User, window
from tandem.settings import PairChoice, Sampling
from tandem.ui.popover import Popover

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


# The drafter


def test_the_drafter_counts_as_on_only_after_drafts_were_verified(user: User) -> None:
    chip = user.chat.header.drafter
    assert (chip.kind, chip.text()) == ("idle", "Drafter ready")
    seen: list[str] = []
    user.controller.streamed.connect(lambda _: seen.append(chip.kind))
    user.ask()
    assert (chip.kind, chip.text()) == ("on", "Drafter on · length 3")
    assert chip.accessibleName() == chip.text()
    assert "on" in seen  # during the answer, not only after it


def test_the_drafter_is_switched_for_the_next_message_without_a_reload(user: User) -> None:
    pid = user.controller.engine_pid
    loads: list[object] = []
    user.controller.loading.connect(loads.append)
    chip, switch = user.chat.header.drafter, user.chat.composer.chips.drafter
    for number in range(6):
        on = number % 2 == 0
        if switch.isChecked() is not on:
            switch.click()
        answer = user.ask(f"Tell me story {number}.")
        assert answer.figures is not None
        assert (answer.figures.stats.verified > 0) is on
        assert chip.kind == ("on" if on else "off")
        assert chip.text() == ("Drafter on · length 3" if on else "Drafter off")
    assert user.controller.engine_pid == pid
    assert not loads


@pytest.mark.qt_log_ignore(r"This plugin does not support (raise\(\)|grabbing the keyboard)")
def test_the_chip_says_what_the_drafter_does_and_switches_it(user: User) -> None:
    user.ask()
    chip = user.chat.header.drafter
    chip.setFocus()
    user.press("Return")
    panel = user.child(Popover)
    words = " ".join(label.text() for label in panel.findChildren(type(user.chat.header.device)))
    assert "length 3" in words
    assert "Acceptance rate" in words
    button = panel.findChildren(QAbstractButton)[0]
    assert button.text() == "Turn the drafter off"
    button.click()
    assert not user.controller.settings.draft_on
    assert not user.chat.composer.chips.drafter.isChecked()
    user.wait(lambda: not user.window.findChildren(Popover))


@pytest.mark.qt_log_ignore(r"This plugin does not support (raise\(\)|grabbing the keyboard)")
def test_a_drafter_that_failed_says_why_and_offers_to_load_again(
    qtbot: QtBot, endless_files: Pair, demo_pair: tuple[Path, Path]
) -> None:
    mixed = PairChoice("files", str(endless_files.target), str(demo_pair[1]))
    with window(qtbot, mixed) as user:
        chip = user.chat.header.drafter
        assert (chip.kind, chip.text()) == ("failed", "Drafter failed")
        assert chip.accessibleDescription()
        switch = user.chat.composer.chips.drafter
        assert not switch.isEnabled()
        user.press("Ctrl+D")
        assert user.notices
        panel = user.chat.header.explain_drafter()
        assert [button.text() for button in panel.findChildren(QAbstractButton)] == [
            "Load the pair again",
            "Choose a model",
        ]
        panel.findChildren(QAbstractButton)[0].click()
        user.wait(lambda: user.controller.load_state.running)
        user.loaded()
        assert chip.kind == "failed"
        user.back()
        assert user.ask().state in ("done", "limit")


# Thinking


def test_thinking_is_switched_for_the_next_message_and_the_thought_opens(qtbot: QtBot, thinker: Pair) -> None:
    with window(qtbot, thinker) as user:
        pid = user.controller.engine_pid
        switch = user.chat.composer.chips.thinking
        assert switch.isEnabled()
        assert not switch.isChecked()
        user.press("Ctrl+T")
        assert switch.isChecked()
        answer = user.ask("What is 2 + 2?")
        assert answer.thought == "Let me see."
        assert "It is four." in user.shown
        assert "Let me see." not in user.shown
        user.follow("thought", answer.id)
        assert "Let me see." in user.shown
        user.follow("thought", answer.id)
        assert "Let me see." not in user.shown
        switch.click()
        user.press("Ctrl+N")
        user.settled()
        assert not user.ask("What is 2 + 2?").thinking
        assert user.controller.engine_pid == pid


def test_the_demo_pair_says_that_it_cannot_think(user: User) -> None:
    switch = user.chat.composer.chips.thinking
    assert not switch.isEnabled()
    assert "cannot think" in switch.toolTip()


# Drafted tokens


def looks(user: User) -> set[tuple[UNDERLINE, bool]]:
    """How the characters of the answers look: their underline, and whether there is a tint behind them."""
    found = set()
    block = user.transcript.document().begin()
    while block.isValid():
        for part in block:  # type: ignore[attr-defined]  # the stubs lack __next__
            chars = part.fragment().charFormat()
            found.add((chars.underlineStyle(), chars.background().style() != Qt.BrushStyle.NoBrush))
        block = block.next()
    return found


def test_drafted_tokens_are_marked_from_the_flags_while_streaming_and_later(endless: User) -> None:
    accepted, rejected = (UNDERLINE.SingleUnderline, True), (UNDERLINE.DotLine, False)
    endless.begin(characters=100)
    assert not {accepted, rejected} & looks(endless)
    endless.press("Ctrl+Shift+D")
    assert endless.chat.composer.chips.drafted.isChecked()
    endless.wait(lambda: {accepted, rejected} <= looks(endless))
    endless.press("Ctrl+L")
    endless.press("Esc")
    endless.stopped()
    assert {run.kind for run in endless.answer.runs} == {0, 1, 2}
    assert {accepted, rejected} <= looks(endless)
    assert endless.transcript._legend.isVisible()
    endless.chat.composer.chips.drafted.click()
    assert not {accepted, rejected} & looks(endless)
    assert not endless.transcript._legend.isVisible()


def test_without_a_drafter_nothing_is_marked(user: User) -> None:
    user.press("Ctrl+D")
    user.press("Ctrl+Shift+D")
    answer = user.ask()
    assert {run.kind for run in answer.runs} == {0}
    assert looks(user) & {(UNDERLINE.SingleUnderline, True), (UNDERLINE.DotLine, False)} == set()


# The context


def test_the_meter_counts_and_warns_when_the_context_is_nearly_full(qtbot: QtBot) -> None:
    with window(qtbot, context=512, sampling=Sampling(temperature=0.0, max_tokens=40)) as user:
        header = user.chat.header
        levels, words = [], []
        for number in range(12):
            user.ask(f"Tell me the story of the fox number {number}, please.")
            levels.append(header.meter.level)
            words.append(header._meter_text.text())
            if levels[-1] == "warn":
                break
        assert levels[0] == "normal"
        assert words[0].endswith("/ 512")
        assert levels[-1] == "warn"
        assert "full" in words[-1]
        assert header._meter_text.property("role") == "warn"
        assert "512" in header.meter.accessibleDescription()
        user.press("Ctrl+N")
        user.settled()
        assert header.meter.level == "normal"


def test_a_chat_that_outgrows_the_context_says_what_is_left_out(qtbot: QtBot) -> None:
    with window(qtbot, context=512) as user:
        for _ in range(6):
            user.ask("Tell me a long story about a fox and a hen. " * 8)
            if any("left out" in notice.text for notice in user.notices):
                break
        assert user.notice("left out")
        assert user.answer.text
