"""The values of a session and the machine that follows the drafter, without Qt and without an engine."""

from __future__ import annotations

import itertools

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tandem.chat.conversation import Run
from tandem.engine.metrics import RunStats
from tandem.engine.protocol import Done, DrafterProblem, Loaded, ModelInfo, Pass, Text
from tandem.ui.session_state import (
    LOW_ACCEPTANCE_PASSES,
    NO_DRAFTS_AFTER,
    AnswerText,
    DrafterMachine,
    LoadState,
    Piece,
    TokenKinds,
    joined,
    pieces_of,
)

INFO = ModelInfo("a.gguf", "a", "gemma4", "Q4_0", 1)
PAIR = Loaded(
    id=1,
    target=INFO,
    drafter=INFO,
    method="mtp",
    problem=None,
    context=2048,
    trained_context=2048,
    threads=1,
    device="CPU",
    vocabulary=10,
    switches_thinking=False,
    load_s=0.1,
    kv_type="f16",
)
ALONE = msgspec.structs.replace(PAIR, method="none", drafter=None)
BROKEN = msgspec.structs.replace(ALONE, problem=DrafterProblem("It is of another model.", "Choose another."))


def verified(drafts: int, accepted: int) -> Pass:
    """A pass that judged so many drafts."""
    emitted = accepted + 1
    return Pass(
        id=1,
        tokens=(7,) * emitted,
        text=(),
        drafted=tuple(index < drafts for index in range(emitted)),
        accepted=tuple(index < accepted for index in range(emitted)),
        confidences=(None,) * drafts,
        draft_s=0.0,
        verify_s=0.0,
    )


def done(judged: int = 0, accepted: int = 0, problem: DrafterProblem | None = None) -> Done:
    stats = RunStats(verified=judged, accepted=accepted)
    return Done(id=1, stop="end", stats=stats, text=(), dropped=0, draft="3", seed=1, problem=problem)


def ready(length: str = "3") -> DrafterMachine:
    machine = DrafterMachine()
    machine.loaded(PAIR)
    machine.switch(True, length)
    return machine


def test_without_a_pair_there_is_no_drafter() -> None:
    machine = DrafterMachine()
    assert machine.state.kind == "none"
    machine.switch(True, "3")
    assert machine.state.kind == "none"


def test_a_loaded_drafter_is_ready_and_not_on() -> None:
    assert (ready().state.kind, ready().state.length) == ("ready", "3")


def test_asking_for_drafts_is_not_enough_to_be_on() -> None:
    machine = ready()
    machine.begin("3")
    assert machine.state.kind == "ready"
    machine.passed(verified(0, 0))
    assert machine.state.kind == "ready"
    machine.passed(verified(3, 1))
    state = machine.state
    assert (state.kind, state.length, state.acceptance) == ("on", "3", 1 / 3)


def test_on_lasts_between_answers_and_the_figure_is_that_of_the_last_one() -> None:
    machine = ready()
    machine.begin("3")
    machine.passed(verified(3, 3))
    machine.finished(done(2, 1))  # of the last pass's drafts only those before the stop count
    assert machine.state.acceptance == 0.5
    machine.begin("3")
    assert machine.state.kind == "on"
    assert machine.state.acceptance is None
    machine.passed(verified(4, 1))
    assert machine.state.acceptance == 0.25


def test_off_by_the_switch_by_the_length_and_by_the_pair() -> None:
    machine = ready()
    machine.switch(False, "3")
    assert machine.state.kind == "off"
    machine.switch(True, "off")
    assert machine.state.kind == "off"
    machine.switch(True, "5")
    assert (machine.state.kind, machine.state.length) == ("ready", "5")
    machine.loaded(ALONE)
    assert machine.state.kind == "off"
    assert machine.state.reason
    assert not machine.available


def test_a_drafter_that_could_not_be_loaded_has_failed_with_its_reason() -> None:
    machine = ready()
    machine.loaded(BROKEN)
    state = machine.state
    assert (state.kind, state.reason, state.remedy) == ("failed", "It is of another model.", "Choose another.")


def test_64_tokens_without_a_draft_are_a_failure_and_a_draft_mends_it() -> None:
    machine = ready()
    machine.begin("3")
    for _ in range(NO_DRAFTS_AFTER - 1):
        machine.passed(verified(0, 0))
    assert machine.state.kind == "ready"
    machine.passed(verified(0, 0))
    assert machine.state.kind == "failed"
    assert machine.state.reason.endswith(".")
    assert machine.state.remedy.endswith(".")
    machine.finished(done())
    assert machine.state.kind == "failed"
    machine.begin("3")
    machine.passed(verified(2, 2))
    assert machine.state.kind == "on"


def test_short_answers_without_drafts_add_up() -> None:
    machine = ready()
    for _ in range(4):
        machine.begin("3")
        for _ in range(NO_DRAFTS_AFTER // 4):
            machine.passed(verified(0, 0))
        machine.finished(done())
    assert machine.state.kind == "failed"


def test_answers_that_asked_for_no_drafts_prove_nothing() -> None:
    machine = ready()
    machine.begin("off")
    for _ in range(3 * NO_DRAFTS_AFTER):
        machine.passed(verified(0, 0))
    machine.finished(done())
    assert machine.state.kind == "ready"


def test_a_look_up_that_finds_nothing_has_not_failed() -> None:
    machine = ready()
    machine.loaded(msgspec.structs.replace(PAIR, method="ngram", drafter=None))
    machine.begin("3")
    for _ in range(3 * NO_DRAFTS_AFTER):
        machine.passed(verified(0, 0))
    assert machine.state.kind == "ready"


def test_acceptance_under_a_tenth_over_fifty_passes_is_an_alarm() -> None:
    machine = ready()
    machine.begin("3")
    for number in range(LOW_ACCEPTANCE_PASSES):
        assert machine.state.kind in ("ready", "on")
        machine.passed(verified(3, 1 if number % 5 == 0 else 0))  # 10 of 150
    state = machine.state
    assert state.kind == "low"
    assert state.acceptance == pytest.approx(10 / 150)
    assert state.remedy
    for _ in range(5):
        machine.passed(verified(3, 3))
    assert machine.state.kind == "on"


def test_exactly_a_tenth_is_no_alarm() -> None:
    machine = ready()
    machine.begin("2")
    for number in range(LOW_ACCEPTANCE_PASSES):
        machine.passed(verified(2, 1 if number % 5 == 0 else 0))  # 10 of 100
    assert machine.state.kind == "on"


def test_a_drafter_that_fails_in_the_middle_says_so() -> None:
    machine = ready()
    machine.begin("3")
    machine.passed(verified(3, 1))
    machine.finished(done(3, 1, DrafterProblem("It broke.", "Try again.")))
    assert (machine.state.kind, machine.state.reason) == ("failed", "It broke.")
    machine.begin("3")
    machine.passed(verified(3, 1))
    assert machine.state.kind == "on"


def test_a_new_pair_forgets_the_old_one() -> None:
    machine = ready()
    machine.begin("3")
    for _ in range(LOW_ACCEPTANCE_PASSES):
        machine.passed(verified(3, 0))
    assert machine.state.kind == "low"
    machine.unloaded()
    assert machine.state.kind == "none"
    machine.loaded(PAIR)
    assert machine.state.kind == "ready"
    assert machine.state.acceptance is None


def test_only_loads_under_way_are_running() -> None:
    running = [phase for phase in ("starting", "target", "drafter", "threads") if LoadState(phase).running]
    assert len(running) == 4
    assert not any(LoadState(phase).running for phase in ("idle", "done", "stopped", "failed"))


def test_kinds_come_from_the_flags_of_the_token_even_when_its_text_came_later() -> None:
    kinds = TokenKinds()
    kinds.add(verified(3, 2))  # tokens 0 and 1 accepted, 2 the target's own where a draft stood
    kinds.add(verified(0, 0))  # token 3
    found = kinds.pieces([Text("thought", "a", 1), Text("answer", "b", 2), Text("answer", "c", 3)])
    assert found == [Piece("thought", "a", 1), Piece("answer", "b", 2), Piece("answer", "c", 0)]
    assert kinds.tokens == 4


def test_flags_that_are_all_false_give_no_colour() -> None:
    kinds = TokenKinds()
    for _ in range(3):
        kinds.add(verified(0, 0))
    assert {piece.kind for piece in kinds.pieces(Text("answer", "x", number) for number in range(3))} == {0}


def test_a_token_that_nobody_announced_gets_no_colour() -> None:
    assert TokenKinds().pieces([Text("answer", "x", 5)]) == [Piece("answer", "x", 0)]


some_pieces = st.lists(
    st.builds(Piece, st.sampled_from(["thought", "answer"]), st.text(max_size=5), st.sampled_from([0, 1, 2]))
)


@given(some_pieces)
def test_joining_changes_no_text_and_leaves_no_equal_neighbours(pieces: list[Piece]) -> None:
    short = joined(pieces)
    spread = [(c, k, letter) for c, text, k in pieces for letter in text]
    assert [(c, k, letter) for c, text, k in short for letter in text] == spread
    assert all((a.channel, a.kind) != (b.channel, b.kind) for a, b in itertools.pairwise(joined(short)))


@given(st.lists(some_pieces))
def test_an_answer_put_together_is_the_same_when_read_again(parts: list[list[Piece]]) -> None:
    answer = AnswerText()
    for part in parts:
        answer.add(part)
    everything = joined(itertools.chain(*parts))
    assert answer.text("answer") == "".join(piece.text for piece in everything if piece.channel == "answer")
    assert joined(answer.pieces()) == everything
    assert joined(pieces_of(answer.text("answer"), answer.text("thought"), answer.runs)) == everything


def test_runs_that_do_not_fit_the_text_are_not_shown() -> None:
    assert pieces_of("abc", "", [Run("answer", 2, 0)]) == []
    assert pieces_of("abc", "", [Run("answer", 4, 0)]) == []
    assert pieces_of("abc", "", [Run("answer", -1, 0), Run("answer", 4, 0)]) == []
    assert pieces_of("abc", "", [Run("answer", 3, 1)]) == [Piece("answer", "abc", 1)]
