"""What the drafter may change (time) and what it may not (the text), on the real engine."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from scipy import stats

from support.engines import GREEDY, Engine, running
from support.handset import BOS, NEWLINE, TINY, TURN_CLOSE, Script, small_vocabulary, write_pair
from support.handset_vocab import normal_ids
from tandem.engine.sampling import SamplingParams
from tandem.errors import UsageError

PROMPTS = {
    "code": "Write a Python function that checks if a number is prime.",
    "list": "List seven animals.",
    "story": "Tell me a short story about a fox.",
    "korean": "토끼에 대한 짧은 이야기를 써 주세요.",
    "json": "Return a JSON object for Alice, who is 30 years old and lives in Paris.",
}
# accepted and drafted at lengths 1..4 by llama.cpp's own server on these files (draft-mtp, temperature 0, 120 tokens)
LLAMA_CPP = {
    "code": ((59, 59), (79, 79), (89, 89), (95, 95)),
    "list": ((20, 20), (25, 28), (28, 33), (30, 36)),
    "story": ((47, 47), (63, 64), (70, 72), (74, 80)),
    "korean": ((14, 15), (19, 22), (21, 24), (23, 28)),
    "json": ((18, 18), (23, 26), (26, 30), (27, 36)),
}


@pytest.fixture(params=["demo", "demo_ngram", "demo_draft_model"])
def any_drafter(request: pytest.FixtureRequest) -> Engine:
    engine = request.getfixturevalue(request.param)
    assert isinstance(engine, Engine)
    return engine


@pytest.mark.parametrize("prompt", PROMPTS.values(), ids=PROMPTS)
def test_greedy_text_is_that_of_plain_decoding_at_every_length(any_drafter: Engine, prompt: str) -> None:
    plain = any_drafter.ask(prompt, draft="off", reuse=False)
    assert len(plain.tokens) > 10
    for length in (1, 2, 3, 4, 5, 8, 16):
        drafted = any_drafter.ask(prompt, draft=str(length), reuse=False)
        assert drafted.tokens == plain.tokens, f"length {length}"
        assert drafted.text == plain.text


def test_every_drafter_really_drafts(any_drafter: Engine) -> None:
    figures = any_drafter.ask("one two three four. one two three four. one two three", draft="3").done.stats
    assert figures.verified > 0


def test_draft_model_that_is_the_target_itself_is_always_right(demo_draft_model: Engine) -> None:
    assert demo_draft_model.loaded.method == "draft-model"
    figures = demo_draft_model.ask(draft="4").done.stats
    assert figures.acceptance_rate == 1.0


@pytest.mark.parametrize("kind", PROMPTS)
def test_acceptance_is_that_of_llama_cpp_itself(demo: Engine, kind: str) -> None:
    """llama.cpp leaves an end of turn inside a draft unaccepted, and counts the drafts behind it."""
    for length, (accepted, drafted) in enumerate(LLAMA_CPP[kind], start=1):
        reply = demo.ask(PROMPTS[kind], draft=str(length), reuse=False)
        figures = reply.done.stats
        if reply.done.stop == "limit":
            assert (figures.accepted, figures.verified) == (accepted, drafted)
        assert abs(figures.accepted - accepted) <= 1
        assert 0 <= drafted - figures.verified < length or drafted == figures.verified


def test_identities_hold_for_every_answer(any_drafter: Engine) -> None:
    for prompt in PROMPTS.values():
        for length in ("off", "1", "3", "8"):
            reply = any_drafter.ask(prompt, draft=length)
            figures = reply.done.stats
            assert figures.generated == len(reply.tokens)
            assert figures.passes == len(reply.passes)
            assert figures.accepted == sum(reply.accepted)
            assert 0 <= figures.accepted + figures.passes - figures.generated <= 1
            assert figures.tokens_per_pass == figures.generated / figures.passes
            assert sum(figures.accepted_at) == figures.accepted
            assert sum(figures.drafted_at) == figures.verified
            assert all(not accepted or drafted for drafted, accepted in zip(reply.drafted, reply.accepted, strict=True))
            if length == "off":
                assert figures.verified == 0
                assert figures.passes == figures.generated


def test_story_at_length_three_gives_more_than_three_tokens_a_pass(demo: Engine) -> None:
    reply = demo.ask(PROMPTS["story"], draft="3", max_tokens=None)
    assert reply.done.stats.tokens_per_pass is not None
    assert reply.done.stats.tokens_per_pass > 3


def test_pass_events_carry_confidences_and_times(demo: Engine) -> None:
    reply = demo.ask(PROMPTS["story"], draft="3")
    first, *rest = reply.passes
    assert (len(first.tokens), first.drafted, first.confidences) == (1, (False,), ())
    full = [event for event in rest if len(event.confidences) == 3]
    assert full
    for event in full:
        assert all(confidence is not None and 0 < confidence <= 1 for confidence in event.confidences)
        assert event.draft_s > 0
        assert event.verify_s > 0


def test_ngram_has_no_opinion_of_its_own(demo_ngram: Engine) -> None:
    reply = demo_ngram.ask("one two three four. one two three four. one two three", draft="3")
    confidences = [confidence for event in reply.passes for confidence in event.confidences]
    assert confidences
    assert set(confidences) == {None}


@pytest.mark.parametrize("seed", [0, 1, 2, 3, 2**63])
def test_a_seed_gives_the_same_text_with_and_without_the_drafter(any_drafter: Engine, seed: int) -> None:
    sampling = SamplingParams(temperature=0.9, seed=seed)
    texts = {any_drafter.ask(draft=draft, sampling=sampling).text for draft in ("off", "off", "3", "3", "8")}
    assert len(texts) == 1


def test_a_seed_that_was_made_up_is_told_and_gives_the_text_again(demo: Engine) -> None:
    first = demo.ask(sampling=SamplingParams(temperature=1.2), draft="2")
    again = demo.ask(sampling=SamplingParams(temperature=1.2, seed=first.done.seed), draft="2")
    assert again.tokens == first.tokens


def test_repeat_penalty_changes_greedy_text_the_same_way_at_every_length(demo: Engine) -> None:
    penalised = SamplingParams(temperature=0.0, repeat_penalty=1.3)
    texts = [demo.ask(PROMPTS["code"], draft=draft, sampling=penalised).tokens for draft in ("off", "2", "5")]
    assert texts[0] == texts[1] == texts[2]
    assert texts[0] != demo.ask(PROMPTS["code"], draft="off").tokens


def test_sampled_distribution_is_the_targets_own_with_a_drafter_that_guesses_otherwise(tmp_path: Path) -> None:
    """Chi-square over many seeds, at the first token; the next test looks at tokens that were drafted."""
    ids = normal_ids(small_vocabulary())
    start, candidates = ids[0], ids[10:15]
    odds = dict(zip(candidates, (0.4, 0.25, 0.2, 0.1, 0.05), strict=True))
    guesses = dict(zip(candidates, (0.05, 0.1, 0.2, 0.25, 0.4), strict=True))
    pair = write_pair(tmp_path, TINY, branch={start: odds}, draft_branch={start: guesses})
    counts = {"off": dict.fromkeys(candidates, 0), "2": dict.fromkeys(candidates, 0)}
    with running(tmp_path / "logs", pair.target, pair.drafter, context=128) as engine:
        before = ids[1]
        for draft, found in counts.items():
            for seed in range(600):
                sampling = SamplingParams(top_k=0, top_p=1.0, seed=seed)
                reply = engine.ask((BOS, before, start), draft=draft, max_tokens=3, sampling=sampling, ignore_eos=True)
                found[reply.tokens[0]] += 1
    expected = [600 * share for share in odds.values()]
    for found in counts.values():
        assert sum(found.values()) == 600
        assert stats.chisquare(list(found.values()), expected).pvalue > 0.001
    assert counts["off"] == counts["2"]  # the same draws, so the very same choices


def test_drafted_positions_keep_the_targets_distribution(tmp_path: Path) -> None:
    """Here the branch is reached inside a pass, where the token is accepted or not."""
    ids = normal_ids(small_vocabulary())
    first, start, candidates = ids[0], ids[1], ids[10:15]
    odds = dict(zip(candidates, (0.35, 0.3, 0.2, 0.1, 0.05), strict=True))
    guesses = dict(zip(candidates, (0.1, 0.1, 0.1, 0.2, 0.5), strict=True))
    pair = write_pair(tmp_path, TINY, {first: start}, branch={start: odds}, draft_branch={start: guesses})
    found = dict.fromkeys(candidates, 0)
    accepted = 0
    with running(tmp_path / "logs", pair.target, pair.drafter, context=128) as engine:
        for seed in range(800):
            sampling = SamplingParams(top_k=0, top_p=1.0, seed=seed)
            reply = engine.ask((BOS, ids[20], first), draft="3", max_tokens=4, sampling=sampling, ignore_eos=True)
            assert reply.tokens[0] == start
            found[reply.tokens[1]] += 1
            accepted += reply.accepted[1]
    assert stats.chisquare(list(found.values()), [800 * share for share in odds.values()]).pvalue > 0.001
    assert 0 < accepted < 800  # the drafter was right now and then, so both ways of emitting were taken


@pytest.fixture(scope="module")
def scripted(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Engine, dict[str, int]]]:
    """A drafter that is always right, and texts with what ends them inside accepted runs."""
    script = Script()
    starts = {}
    for name, elements in {
        "plain": ["One ", "fine ", "day ", "we ", "went ", "out."],
        "stop": ["alpha ", "be", "ta ga", "mma ", "delta"],
        "emoji": ["Hi ", "👩‍👩‍👧‍👦".encode(), "한글".encode(), "!"],
    }.items():
        starts[name] = script.token(f"<{name}>")
        script.say(starts[name], *elements)
    pair = script.write(tmp_path_factory.mktemp("scripted"))
    with running(tmp_path_factory.mktemp("scripted-logs"), pair.target, pair.drafter) as engine:
        yield engine, starts


@pytest.mark.parametrize("draft", ["off", "1", "2", "3", "4", "5", "6", "8", "16"])
def test_end_of_turn_inside_an_accepted_run_ends_there(scripted: tuple[Engine, dict[str, int]], draft: str) -> None:
    engine, starts = scripted
    reply = engine.ask((BOS, starts["plain"]), draft=draft)
    assert reply.text == "One fine day we went out."
    assert reply.tokens[-1] == TURN_CLOSE
    assert reply.done.stop == "end"
    assert len(reply.tokens) == 7
    figures = reply.done.stats
    assert figures.acceptance_rate in (None, 1.0)  # drafts behind the end were never judged


@pytest.mark.parametrize("limit", range(1, 8))
@pytest.mark.parametrize("draft", ["off", "2", "3", "8"])
def test_max_tokens_cuts_inside_an_accepted_run(
    scripted: tuple[Engine, dict[str, int]], draft: str, limit: int
) -> None:
    engine, starts = scripted
    reply = engine.ask((BOS, starts["plain"]), draft=draft, max_tokens=limit)
    assert len(reply.tokens) == limit
    assert reply.done.stop == ("end" if limit == 7 else "limit")
    assert "One fine day we went out.".startswith(reply.text)


def test_max_tokens_of_zero_only_prefills(demo: Engine) -> None:
    reply = demo.ask(max_tokens=0)
    assert (reply.tokens, reply.done.stop, reply.done.stats.time_to_first_token_s) == ([], "limit", None)


@pytest.mark.parametrize("draft", ["off", "1", "2", "3", "4", "8"])
@pytest.mark.parametrize(
    ("stop", "text"),
    [
        ("beta", "alpha "),
        ("gamma", "alpha beta "),
        ("a g", "alpha bet"),
        ("ta gamma d", "alpha be"),
        ("delta", "alpha beta gamma "),
    ],
)
def test_stop_strings_span_tokens_and_accepted_runs(
    scripted: tuple[Engine, dict[str, int]], draft: str, stop: str, text: str
) -> None:
    engine, starts = scripted
    reply = engine.ask((BOS, starts["stop"]), draft=draft, stop=("never", stop))
    assert reply.text == text
    assert reply.done.stop == "end"
    assert reply.done.stats.generated == len(reply.tokens)


@pytest.mark.parametrize("draft", ["off", "1", "2", "3", "5", "16"])
def test_characters_split_over_tokens_and_passes_arrive_whole(
    scripted: tuple[Engine, dict[str, int]], draft: str
) -> None:
    engine, starts = scripted
    reply = engine.ask((BOS, starts["emoji"]), draft=draft)
    assert reply.text == "Hi 👩‍👩‍👧‍👦한글!"
    assert all("\ufffd" not in piece.text for event in reply.passes for piece in event.text)
    cut = engine.ask((BOS, starts["emoji"]), draft=draft, max_tokens=4)  # ends inside the first emoji
    assert cut.text == "Hi "


def test_ignore_eos_goes_on_past_the_end_of_turn(demo: Engine) -> None:
    reply = demo.ask("List seven animals.", draft="3", ignore_eos=True, max_tokens=100)
    assert len(reply.tokens) == 100
    assert reply.done.stop == "limit"
    plain = demo.ask("List seven animals.", draft="off", ignore_eos=True, max_tokens=100)
    assert plain.tokens == reply.tokens


@pytest.mark.parametrize("draft", ["-1", "17", "9999999", "", "three", "auto", "\uff13"])
def test_draft_lengths_that_make_no_sense_are_refused(demo: Engine, draft: str) -> None:
    with pytest.raises(UsageError) as caught:
        demo.ask(draft=draft)
    assert "off" in caught.value.remedy


def test_a_prompt_that_ends_right_after_a_newline_works(scripted: tuple[Engine, dict[str, int]]) -> None:
    engine, _ = scripted
    assert engine.ask((BOS, NEWLINE), max_tokens=4, sampling=GREEDY).done.stats.generated == 4
