"""Asking and answering, with the real engine on the demo pair."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from pytestqt.qtbot import QtBot

from support.chat_templates import GEMMA4_E2B
from support.desk import ENDLESS, STORY, Desk, chats_on_disk, defaults, desk, endless_desk, endless_pair
from support.handset import CHANNEL_CLOSE, CHANNEL_OPEN, NEWLINE, Pair, Script
from tandem import settings
from tandem.chat import history
from tandem.chat.conversation import Figures, Node, Tree
from tandem.settings import Sampling
from tandem.ui.session_state import joined, pieces_of


@pytest.fixture
def table(qtbot: QtBot) -> Iterator[Desk]:
    with desk(qtbot) as made:
        yield made


@pytest.fixture(scope="module")
def endless_files(tmp_path_factory: pytest.TempPathFactory) -> Pair:
    return endless_pair(tmp_path_factory.mktemp("endless"))


@pytest.fixture
def endless(qtbot: QtBot, endless_files: Pair) -> Iterator[Desk]:
    """Answers that go on until they are stopped."""
    with endless_desk(qtbot, endless_files) as made:
        yield made


@pytest.fixture(scope="module")
def thinker(tmp_path_factory: pytest.TempPathFactory) -> Pair:
    """A pair that thinks before it answers, with a template that can switch that."""
    script = Script()
    script.say(NEWLINE, CHANNEL_OPEN, b"thought\n", "Let me ", "see.", CHANNEL_CLOSE, b"\n", "It is ", "four.")
    return script.write(tmp_path_factory.mktemp("thinker"), chat_template=GEMMA4_E2B)


def figures(node: Node) -> Figures:
    assert node.figures is not None
    return node.figures


# One message


def test_a_message_is_answered_and_both_are_on_disk(table: Desk) -> None:
    answer = table.ask()
    assert answer.state in ("done", "limit")
    assert answer.text.startswith("Once upon a time")
    assert [node.role for node in table.shown] == ["user", "assistant"]
    assert table.conversation is not None
    assert table.conversation.title == STORY
    assert [chat.title for chat in table.chats] == [STORY]
    assert table.stored(table.conversation.id) == table.shown


def test_what_was_streamed_is_what_was_stored_with_the_same_colours(table: Desk) -> None:
    answer = table.ask()
    streamed = joined(table.pieces)
    assert streamed == joined(pieces_of(answer.text, answer.thought, answer.runs))
    assert {piece.kind for piece in streamed} >= {0, 1}
    assert "".join(piece.text for piece in streamed) == answer.text


def test_an_answer_has_its_figures(table: Desk) -> None:
    found = figures(table.ask())
    assert found.stats.generated == 60 or found.cut == "end"
    assert (found.draft, found.method, found.threads, found.context) == ("3", "mtp", 1, 2048)
    assert found.target == "tiny-target-q4_0.gguf"
    assert found.drafter == "tiny-drafter-q4_0.gguf"
    assert found.stats.verified > 0
    assert table.last("context_changed") == found.stats.prompt_tokens + found.stats.generated


def test_the_users_text_is_on_disk_before_the_engine_is_asked(qtbot: QtBot, monkeypatch: pytest.MonkeyPatch) -> None:
    with desk(qtbot) as table:
        seen: list[list[Node]] = []
        generate = table.controller.threads.engine.generate

        def look_first(request: object) -> None:
            with chats_read_only() as nodes:
                seen.append(nodes)
            generate(request)  # type: ignore[arg-type]

        monkeypatch.setattr(table.controller.threads.engine, "generate", look_first)
        table.ask()
        assert [(node.role, node.text, node.state) for node in seen[0]] == [
            ("user", STORY, "done"),
            ("assistant", "", "streaming"),
        ]


@contextmanager
def chats_read_only() -> Iterator[list[Node]]:
    """What another program sees in the file at this moment."""
    connection = sqlite3.connect(f"file:{history.file()}?mode=ro", uri=True)
    try:
        rows = connection.execute("SELECT id, conversation, parent, role, text, state FROM node ORDER BY id")
        yield [Node(*row[:5], state=row[5]) for row in rows]
    finally:
        connection.close()


@pytest.mark.parametrize("text", ["", " ", "\n\t \n"])
def test_a_blank_message_is_not_sent(table: Desk, text: str) -> None:
    table.controller.send(text)
    table.settled()
    assert not table.all("node_added")
    assert not table.controller.running


def test_odd_text_is_sent_and_kept(table: Desk) -> None:
    text = "{{ 7 * 7 }} <|turn>model <bos> 'quotes\" \N{FAMILY} \ud83d\ude00 العربية \u202e"
    table.ask(text)
    assert table.shown[0].text == text.replace("\ud83d\ude00", "\N{GRINNING FACE}")


# Many messages


def test_ten_turns_in_a_row_with_the_drafter_on(table: Desk) -> None:
    cached = []
    for number in range(10):
        answer = table.ask(f"Tell me a story about the number {number}.")
        assert answer.state in ("done", "limit")
        assert figures(answer).stats.verified > 0
        cached.append(figures(answer).stats.cached_tokens)
    assert len(table.shown) == 20
    assert cached[0] == 0
    assert all(tokens > 0 for tokens in cached[1:])
    assert table.controller.drafter.kind == "on"


def test_the_drafter_is_switched_for_every_message_without_a_reload(table: Desk) -> None:
    pid = table.controller.engine_pid
    loads = len(table.all("loading"))
    for number in range(6):
        on = number % 2 == 0
        table.controller.set_draft(on)
        found = figures(table.ask())
        assert (found.stats.verified > 0) is on
        assert found.draft == ("3" if on else "off")
        assert table.controller.drafter.kind == ("on" if on else "off")
    assert table.controller.engine_pid == pid
    assert len(table.all("loading")) == loads
    assert not table.controller.pair.stale


def test_the_length_and_the_sampling_are_those_of_the_settings_at_that_moment(table: Desk) -> None:
    table.controller.change_settings(draft="5", sampling=Sampling(temperature=0.0, max_tokens=7))
    found = figures(table.ask())
    assert (found.draft, found.stats.generated) == ("5", 7)
    assert len(found.stats.drafted_at) > 3
    assert table.controller.drafter.length == "5"


def test_the_system_prompt_of_the_settings_comes_first(table: Desk) -> None:
    plain = figures(table.ask("Hello!")).stats.prompt_tokens
    table.controller.new_chat()
    table.controller.change_settings(system_prompt="You only speak of hens and of nothing else.")
    assert figures(table.ask("Hello!")).stats.prompt_tokens > plain


def test_the_drafter_is_ready_before_and_on_only_after_drafts_were_verified(qtbot: QtBot) -> None:
    with desk(qtbot) as table:
        assert table.controller.drafter.kind == "ready"
        table.ask()
        kinds = [state.kind for state in table.all("drafter_changed")]
        assert kinds[0] == "ready"
        assert kinds[-1] == "on"
        first_text = next(i for i, (name, _) in enumerate(table.said) if name == "node_finished")
        assert "on" in [arguments[0].kind for name, arguments in table.said[:first_text] if name == "drafter_changed"]
        stats = figures(table.answer).stats
        assert table.controller.drafter.acceptance == stats.acceptance_rate


def test_thinking_is_asked_for_or_not_and_the_thought_is_kept_apart(qtbot: QtBot, thinker: Pair) -> None:
    with desk(qtbot, load=False) as table:
        table.load(thinker.target, thinker.drafter)
        assert table.controller.pair.loaded is not None
        assert table.controller.pair.loaded.switches_thinking
        without = table.ask("What is 2 + 2?")
        table.controller.new_chat()
        table.controller.set_thinking(True)
        with_thought = table.ask("What is 2 + 2?")
        assert (with_thought.thought, with_thought.text) == ("Let me see.", "It is four.")
        assert with_thought.thinking
        assert not without.thinking
        assert with_thought.thought_s is not None
        assert {run.channel for run in with_thought.runs} == {"thought", "answer"}
        # the rendered prompt differs, with a system prompt and without
        assert figures(with_thought).stats.prompt_tokens > figures(without).stats.prompt_tokens
        table.controller.change_settings(system_prompt="Be brief.")
        table.controller.new_chat()
        with_both = table.ask("What is 2 + 2?")
        table.controller.set_thinking(False)
        table.controller.new_chat()
        with_system = table.ask("What is 2 + 2?")
        assert figures(with_both).stats.prompt_tokens > figures(with_system).stats.prompt_tokens


def test_a_pair_that_cannot_think_is_not_asked_to(qtbot: QtBot) -> None:
    with desk(qtbot, defaults(thinking=True)) as table:
        assert not table.ask().thinking


def test_earlier_thoughts_are_not_sent_back(qtbot: QtBot, thinker: Pair) -> None:
    with desk(qtbot, defaults(thinking=True), load=False) as table:
        table.load(thinker.target, thinker.drafter)
        first = figures(table.ask("What is 2 + 2?")).stats
        second = figures(table.ask("What is 2 + 2?")).stats
        # the second prompt holds the first answer, but not its thought
        assert second.prompt_tokens < 2 * first.prompt_tokens + first.answer.generated + 8


def test_a_chat_that_is_too_long_loses_its_oldest_turns_and_says_so(qtbot: QtBot) -> None:
    with desk(qtbot, defaults(context=512)) as table:
        for _ in range(6):
            answer = table.ask("Tell me a long story about a fox and a hen and the farm. " * 8)
            assert answer.state in ("done", "limit")
        assert figures(answer).dropped > 0
        told = [notice for notice in table.notices if notice.kind == "warn"]
        assert told
        assert str(figures(answer).dropped) in told[-1].text or len(told) == 1


def test_a_message_that_no_context_holds_fails_with_a_sentence_and_the_chat_goes_on(qtbot: QtBot) -> None:
    with desk(qtbot, defaults(context=512)) as table:
        answer = table.ask("fox " * 3000)
        assert answer.state == "failed"
        assert answer.problem.endswith(".")
        assert answer.remedy.endswith(".")
        assert table.controller.pair.kind == "loaded"
        assert table.controller.drafter.kind == "ready"
        table.controller.new_chat()
        assert table.ask().state in ("done", "limit")


# Branches


def test_answering_again_keeps_the_first_answer(table: Desk) -> None:
    first = table.ask()
    second = table.answered(lambda: table.controller.regenerate(first.id, drafter=False))
    assert second.id != first.id
    assert second.parent == first.parent
    assert figures(second).draft == "off"
    assert table.branches == {second.id: (2, 2)}
    third = table.answered(lambda: table.controller.regenerate(second.id, drafter=True))
    assert figures(third).draft == "3"
    assert [node.id for node in table.shown] == [first.parent, third.id]
    table.controller.switch_branch(third.id, -1)
    assert table.shown[-1] == second
    table.controller.switch_branch(second.id, -1)
    assert table.shown[-1] == first
    assert table.branches == {first.id: (1, 3)}
    table.controller.switch_branch(first.id, -1)
    assert table.shown[-1] == first


def test_with_the_drafter_overrules_the_switch_for_one_answer(table: Desk) -> None:
    table.controller.set_draft(False)
    first = table.ask()
    assert figures(first).draft == "off"
    second = table.answered(lambda: table.controller.regenerate(first.id, drafter=True))
    assert figures(second).stats.verified > 0
    assert not table.controller.settings.draft_on


def test_editing_turn_1_of_5_keeps_the_other_branch_and_switching_back_shows_all_of_it(table: Desk) -> None:
    for number in range(5):
        table.ask(f"Tell me story number {number}.")
    before = list(table.shown)
    edited = table.answered(lambda: table.controller.edit(before[0].id, "Tell me about a hen."))
    assert [node.text for node in table.shown] == ["Tell me about a hen.", edited.text]
    user = table.shown[0]
    assert user.parent is None
    assert table.branches[user.id] == (2, 2)
    table.controller.switch_branch(user.id, -1)
    assert table.shown == before
    assert table.branches == {before[0].id: (1, 2)}
    assert table.conversation is not None
    chat = table.conversation.id
    table.settled()
    table.controller.new_chat()
    table.controller.open_chat(chat)
    table.wait(lambda: table.conversation is not None)
    assert table.shown == before  # the branch that was shown is remembered
    assert len(table.stored(chat)) == 12
    table.controller.switch_branch(before[0].id, 1)
    assert table.shown == [user, edited]


def test_editing_turn_3_goes_on_from_there(table: Desk) -> None:
    for number in range(4):
        table.ask(f"Tell me story number {number}.")
    before = list(table.shown)
    table.answered(lambda: table.controller.edit(before[4].id, "Tell me about a hen."))
    assert table.shown[:4] == before[:4]
    assert [node.text for node in table.shown[4:]] == ["Tell me about a hen.", table.answer.text]
    after = table.ask("And then?")
    assert after.parent == table.shown[-2].id
    assert len(table.shown) == 8


def test_the_prompt_is_that_of_the_branch(table: Desk) -> None:
    first = table.ask("A fox. " * 20)
    long = figures(first).stats.prompt_tokens
    edited = table.answered(lambda: table.controller.edit(table.shown[0].id, "A fox."))
    assert figures(edited).stats.prompt_tokens < long
    table.ask("And then?")
    assert figures(table.answer).stats.prompt_tokens < long + 80


# Chats


def test_text_goes_only_to_the_chat_it_belongs_to_and_the_rest_is_there_when_it_is_opened(endless: Desk) -> None:
    endless.begin()
    live = endless.streaming
    assert live is not None
    chat = live.conversation
    endless.controller.new_chat()
    assert endless.streaming is None
    endless.qtbot.wait(200)
    assert endless.streaming is None
    assert endless.controller.running
    assert endless.controller.running_in == chat
    endless.controller.open_chat(chat)
    endless.wait(lambda: endless.streaming is not None)
    assert endless.streaming.id == live.id  # type: ignore[attr-defined]
    assert [node.role for node in endless.shown] == ["user"]
    shown_at_once = endless.text
    endless.wait(lambda: len(endless.text) > len(shown_at_once))
    endless.controller.stop()
    endless.wait(lambda: not endless.controller.running)
    assert endless.text == endless.answer.text
    assert endless.answer.text.startswith(shown_at_once)


def test_an_answer_that_ends_while_another_chat_is_shown_is_there_when_it_is_opened(table: Desk) -> None:
    table.begin(characters=1)
    chat = table.streaming.conversation  # type: ignore[union-attr]
    table.controller.new_chat()
    table.wait(lambda: not table.controller.running)
    assert not table.all("node_finished")
    table.controller.open_chat(chat)
    table.wait(lambda: table.conversation is not None)
    assert table.answer.state in ("done", "limit")
    assert table.answer.text.startswith("Once upon a time")


def test_switching_away_from_the_branch_that_streams_and_back(endless: Desk) -> None:
    endless.controller.change_settings(sampling=Sampling(temperature=0.0, max_tokens=10))
    first = endless.ask()
    endless.controller.change_settings(sampling=ENDLESS)
    endless.controller.regenerate(first.id)
    endless.wait(lambda: endless.streaming is not None and len(endless.text) > 10)
    live = endless.streaming
    assert live is not None
    assert endless.branches == {live.id: (2, 2)}
    endless.controller.switch_branch(live.id, -1)
    assert endless.shown[-1] == first
    assert endless.streaming is None
    endless.controller.switch_branch(first.id, 1)
    assert endless.streaming == live
    assert endless.text
    endless.controller.stop()
    endless.wait(lambda: not endless.controller.running)
    assert endless.answer.id == live.id


def test_a_message_waits_for_the_answer_before_it_and_more_than_one_does_not(endless: Desk) -> None:
    endless.begin()
    endless.controller.send("And then?")
    assert endless.last("queued_changed") == "And then?"
    endless.controller.send("And after that?")
    assert endless.all("text_returned") == ["And after that?"]
    assert endless.notices[-1].kind == "info"
    endless.controller.change_settings(sampling=Sampling(temperature=0.0, max_tokens=5))
    endless.controller.stop()
    endless.wait(lambda: len(endless.all("node_finished")) == 2)
    assert endless.last("queued_changed") is None
    assert [node.text for node in endless.shown if node.role == "user"] == [STORY, "And then?"]
    assert endless.shown[2].parent == endless.shown[1].id


def test_a_message_that_waits_can_be_taken_back(endless: Desk) -> None:
    endless.begin()
    endless.controller.send("And then?")
    endless.controller.take_back()
    assert endless.last("queued_changed") is None
    assert endless.all("text_returned") == ["And then?"]
    endless.controller.stop()
    endless.wait(lambda: not endless.controller.running)
    endless.settled()
    assert len(endless.shown) == 2


def test_a_message_to_another_chat_waits_and_goes_there(endless: Desk) -> None:
    endless.begin()
    first = endless.streaming.conversation  # type: ignore[union-attr]
    endless.controller.new_chat()
    endless.controller.send("Something else.")
    assert endless.last("queued_changed") == "Something else."
    endless.controller.change_settings(sampling=Sampling(temperature=0.0, max_tokens=5))
    endless.controller.stop()
    endless.wait(lambda: endless.all("node_finished") and not endless.controller.running)
    assert endless.shown[0].text == "Something else."
    assert endless.shown[0].conversation != first
    assert [node.role for node in endless.stored(first)] == ["user", "assistant"]


def test_editing_while_an_answer_runs_stops_it_and_answers_the_new_text(endless: Desk) -> None:
    endless.begin()
    first = endless.streaming
    assert first is not None
    endless.controller.edit(first.parent or 0, "Something else.")
    endless.wait(lambda: endless.streaming is not None and endless.streaming.id != first.id and endless.text)
    assert [node.text for node in endless.shown] == ["Something else."]
    stopped = endless.controller.node(first.id)
    assert stopped is not None
    assert (stopped.state, bool(stopped.text)) == ("stopped", True)


def test_answering_again_while_an_answer_runs_waits_and_mixes_nothing(endless: Desk) -> None:
    """As a comparison does: with and without the drafter, one after the other."""
    endless.controller.change_settings(sampling=Sampling(temperature=0.0, max_tokens=150))
    endless.controller.send(STORY)
    endless.wait(lambda: endless.streaming is not None and endless.text)
    first = endless.streaming
    assert first is not None
    endless.controller.regenerate(first.parent or 0, drafter=False)
    assert endless.last("queued_changed") == ""
    endless.wait(lambda: len(endless.all("node_finished")) == 2 and not endless.controller.running)
    with_drafter, without = endless.all("node_finished")
    assert with_drafter.state == without.state == "limit"
    assert with_drafter.text == without.text  # greedy, and the pair says the same whoever drafts
    assert (figures(with_drafter).draft, figures(without).draft) == ("3", "off")
    assert endless.answer.id == without.id


def test_two_messages_in_a_new_chat_before_it_is_stored_stand_in_one_chat(endless: Desk) -> None:
    endless.controller.change_settings(sampling=Sampling(temperature=0.0, max_tokens=5))
    endless.controller.send("One.")
    endless.controller.send("Two.")
    endless.wait(lambda: len(endless.all("node_finished")) == 2 and not endless.controller.running)
    assert [node.text for node in endless.shown if node.role == "user"] == ["One.", "Two."]
    endless.settled()
    assert len(endless.chats) == 1


def test_a_message_that_waits_survives_the_end_as_unsent_text(qtbot: QtBot, endless_files: Pair) -> None:
    with endless_desk(qtbot, endless_files) as table:
        table.begin()
        chat = table.streaming.conversation  # type: ignore[union-attr]
        table.controller.send("And then?")
        table.controller.save_draft_text("typed since")
    with desk(qtbot, load=False) as table:
        table.controller.open_chat(chat)
        table.wait(lambda: table.conversation is not None and table.all("draft_text"))
        assert table.last("draft_text") == "And then?\n\ntyped since"


def test_unsent_text_is_kept_for_each_chat_and_over_a_restart(qtbot: QtBot) -> None:
    with desk(qtbot) as table:
        table.ask()
        chat = table.conversation.id  # type: ignore[union-attr]
        table.controller.save_draft_text("for the old chat")
        table.controller.new_chat()
        table.controller.save_draft_text("for a new chat")
        table.controller.open_chat(chat)
        table.wait(lambda: table.last("draft_text") == "for the old chat")
        table.controller.new_chat()
        table.wait(lambda: table.last("draft_text") == "for a new chat")
    with desk(qtbot, load=False) as table:
        table.wait(lambda: table.all("draft_text") and table.last("draft_text") == "for a new chat")
        table.controller.open_chat(chat)
        table.wait(lambda: table.last("draft_text") == "for the old chat")


def test_a_message_that_is_sent_is_no_longer_unsent(table: Desk) -> None:
    table.controller.save_draft_text("Tell me a st")
    table.ask()
    table.controller.new_chat()
    table.wait(lambda: table.last("draft_text") == "")
    table.controller.open_chat(table.chats[0].id)
    table.wait(lambda: table.conversation is not None)
    assert table.last("draft_text") == ""


def test_the_list_can_be_renamed_deleted_and_restored(table: Desk) -> None:
    table.ask()
    chat = table.conversation.id  # type: ignore[union-attr]
    table.controller.rename(chat, "  Foxes  and   hens ")
    table.wait(lambda: table.chats[0].title == "Foxes and hens")
    table.controller.rename(chat, " ")
    table.settled()
    assert table.chats[0].title == "Foxes and hens"
    shown = list(table.shown)
    table.controller.delete(chat)
    table.wait(lambda: table.chats == [])
    assert table.conversation is None
    assert table.shown == []
    notice = table.notices[-1]
    assert (notice.action, notice.argument) == ("undo-delete", chat)
    assert table.controller.perform(notice)
    table.wait(lambda: table.conversation is not None)
    assert table.shown == shown
    assert table.chats[0].title == "Foxes and hens"


def test_deleting_the_chat_that_is_answered_in_stops_the_answer(endless: Desk) -> None:
    endless.begin()
    chat = endless.streaming.conversation  # type: ignore[union-attr]
    endless.controller.delete(chat)
    endless.wait(lambda: not endless.controller.running and endless.conversation is None)
    endless.wait(lambda: endless.chats == [])
    endless.controller.undo_delete()
    endless.wait(lambda: endless.conversation is not None)
    assert endless.answer.state == "stopped"
    assert endless.answer.text


def test_each_deleted_chat_is_named_and_undone_on_its_own(table: Desk) -> None:
    chats = []
    for text in ("One.", "Two.", "Three."):
        table.ask(text)
        chats.append(table.conversation.id)  # type: ignore[union-attr]
        table.controller.rename(chats[-1], text)
        table.controller.new_chat()
    table.settled()
    for chat in chats:
        table.controller.delete(chat)
        table.controller.delete(chat)  # the list still shows it
    table.wait(lambda: table.chats == [])
    table.settled()
    told = [notice for notice in table.notices if notice.action == "undo-delete"]
    assert [notice.text for notice in told] == ["Deleted “One.”.", "Deleted “Two.”.", "Deleted “Three.”."]
    table.controller.perform(told[0])
    table.wait(lambda: [chat.id for chat in table.chats] == chats[:1])
    table.controller.undo_delete()
    table.controller.undo_delete()
    table.controller.undo_delete()
    table.wait(lambda: len(table.chats) == 3)
    table.settled()
    assert not [notice for notice in table.notices if notice.kind == "bad"]


def test_deleted_chats_are_removed_for_good(table: Desk) -> None:
    table.ask()
    chat = table.conversation.id  # type: ignore[union-attr]
    table.controller.delete(chat)
    table.wait(lambda: table.chats == [])
    table.controller.files.purge_deleted()
    table.wait(lambda: "removed for good" in table.notices[-1].text)
    assert "1" in table.notices[-1].text
    table.controller.undo_delete()  # there is none
    table.settled()
    assert table.chats == []
    assert not [notice for notice in table.notices if notice.kind == "bad"]


def test_search_finds_and_blank_text_ends_it(table: Desk) -> None:
    table.ask("Tell me of Reynard.")
    table.controller.search("reynard")
    table.wait(lambda: table.all("hits"))
    assert {hit.conversation for hit in table.last("hits")} == {table.conversation.id}  # type: ignore[union-attr]
    table.controller.search("  ")
    assert table.last("hits") is None


def test_a_hit_on_another_branch_is_opened_on_its_branch(table: Desk) -> None:
    first = table.ask("Tell me of Reynard.")
    table.answered(lambda: table.controller.edit(first.parent or 0, "Tell me of a hen."))
    chat = table.conversation.id  # type: ignore[union-attr]
    table.controller.new_chat()
    table.controller.open_chat(chat, first.parent)
    table.wait(lambda: table.conversation is not None)
    assert [node.id for node in table.shown] == [first.parent, first.id]


def test_only_the_last_chat_that_was_clicked_is_opened(table: Desk) -> None:
    table.ask("One.")
    one = table.conversation.id  # type: ignore[union-attr]
    table.controller.new_chat()
    table.ask("Two.")
    two = table.conversation.id  # type: ignore[union-attr]
    opened = len(table.all("conversation_opened"))
    table.controller.open_chat(one)
    table.controller.open_chat(two)
    table.settled()
    table.wait(lambda: len(table.all("conversation_opened")) > opened)
    assert len(table.all("conversation_opened")) == opened + 1
    assert table.shown[0].text == "Two."


@pytest.mark.parametrize("form", ["json", "markdown"])
def test_a_chat_is_exported(table: Desk, tmp_path: Path, form: str) -> None:
    answer = table.ask()
    file = tmp_path / "fox.out"
    table.controller.export_chat(answer.conversation, file, form)  # type: ignore[arg-type]
    table.wait(lambda: table.notices and table.notices[-1].kind == "good")
    assert STORY in file.read_text("utf-8")
    assert "fox.out" in table.notices[-1].text
    assert [path.name for path in tmp_path.iterdir()] == ["fox.out"]


def test_all_chats_go_out_and_come_in_again_beside_what_is_there(table: Desk, tmp_path: Path) -> None:
    first = table.ask()
    table.answered(lambda: table.controller.regenerate(first.id, drafter=False))
    table.controller.export_all(tmp_path / "all.json", "json")
    table.wait(lambda: table.notices and table.notices[-1].kind == "good")
    table.controller.import_file(tmp_path / "all.json")
    table.wait(lambda: table.notices[-1].text == "0 imported, 1 were here already.")
    assert len(table.chats) == 1
    content = json.loads((tmp_path / "all.json").read_text("utf-8"))
    content["chats"][0]["conversation"]["created"] += 1
    (tmp_path / "all.json").write_text(json.dumps(content), "utf-8")
    table.controller.import_file(tmp_path / "all.json")
    table.wait(lambda: len(table.chats) == 2)
    old, new = (Tree(table.stored(chat.id)) for chat in table.chats)
    assert [(n.role, n.text, n.state, n.figures, n.runs) for n in old.nodes] == [
        (n.role, n.text, n.state, n.figures, n.runs) for n in new.nodes
    ]


def test_an_import_that_makes_no_sense_changes_nothing_and_says_why(table: Desk, tmp_path: Path) -> None:
    (tmp_path / "bad.json").write_bytes(b"\0" * 100)
    table.controller.import_file(tmp_path / "bad.json")
    table.wait(lambda: table.notices and table.notices[-1].kind == "bad")
    assert table.notices[-1].remedy
    table.settled()
    assert table.chats == []


# Settings


def test_settings_are_kept_and_a_value_that_makes_no_sense_is_refused(qtbot: QtBot) -> None:
    with desk(qtbot, load=False) as table:
        table.controller.change_settings(text_scale=1.25, theme="dark")
        table.controller.set_show_drafted(True)
        assert table.last("settings_changed").text_scale == 1.25
        count = len(table.all("settings_changed"))
        table.controller.change_settings(text_scale=9.0)
        assert len(table.all("settings_changed")) == count
        assert table.notices[-1].kind == "bad"
    found = settings.load().settings
    assert (found.text_scale, found.theme, found.show_drafted) == (1.25, "dark", True)


def test_what_only_a_load_makes_true_is_marked_until_then(table: Desk) -> None:
    assert not table.controller.pair.stale
    table.controller.change_settings(context=1024)
    assert table.controller.pair.stale
    table.controller.load_again()
    table.wait(lambda: table.controller.pair.kind == "loaded")
    assert not table.controller.pair.stale
    assert table.controller.pair.loaded is not None
    assert table.controller.pair.loaded.context == 1024
    assert table.said[-1][0] == "context_changed" or ("context_changed", (0, 1024)) in table.said


def test_the_chats_survive_a_restart(qtbot: QtBot) -> None:
    with desk(qtbot) as table:
        table.ask()
        shown = table.shown
    with chats_on_disk() as kept:
        (chat,) = kept.conversations()
        assert kept.conversation(chat.id)[1] == shown


@pytest.mark.faults_expected
def test_an_error_nobody_expected_reaches_the_user(qtbot: QtBot) -> None:
    with desk(qtbot, load=False) as table:

        def break_down(_history: object) -> None:
            raise ZeroDivisionError

        table.controller.threads.store.ask(break_down)
        table.wait(lambda: table.notices)
        assert table.notices[-1].action == "open-logs"
        assert not table.controller.perform(table.notices[-1])  # the window's business
