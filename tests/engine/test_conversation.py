"""Many turns in one KV cache: how much is reused, and that the answers go on as from a fresh cache.

Texts are compared by how they begin: the same prompt in other batches is rounded otherwise, so that a near tie may fall
the other way. That the cache itself is right is shown score by score in `test_target`.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest

from support.engines import Engine, Reply, running
from tandem.engine.sampling import SamplingParams
from tandem.engine.template import Message
from tandem.errors import PromptTooLong

QUESTIONS = [
    "Hello!",
    "List seven animals.",
    "Tell me a short story about a fox.",
    "What is 3 plus 4?",
    "Write a Python function that adds two numbers.",
    "토끼에 대한 짧은 이야기를 써 주세요.",
    "List three colours.",
    "Return a JSON object for Alice, who is 30 years old and lives in Paris.",
    "Thank you.",
    "Tell me a short story about a turtle.",
]


@pytest.fixture(scope="module")
def fresh(demo_pair: tuple[Path, Path], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    """The reference: never reuses anything."""
    with running(tmp_path_factory.mktemp("fresh"), *demo_pair) as engine:
        yield engine


def turn(engine: Engine, history: list[Message], question: str, **fields: object) -> list[Message]:
    """Asks; returns the history with question and answer."""
    asked = [*history, Message("user", question)]
    return [*asked, Message("assistant", engine.ask(asked, **fields).text)]


def begins_like(one: Reply, other: Reply) -> bool:
    """A wrong cache shows in the very first tokens."""
    return one.tokens[:4] == other.tokens[:4] and len(one.tokens) > 0


def check(demo: Engine, fresh: Engine, messages: list[Message], draft: str = "3") -> int:
    """The same answer as from an empty cache; returns how many prompt tokens were reused."""
    reply = demo.ask(messages, draft=draft)
    expected = fresh.ask(messages, draft="off", reuse=False)
    assert begins_like(reply, expected)
    assert expected.done.stats.cached_tokens == 0
    assert reply.done.stats.prompt_tokens == expected.done.stats.prompt_tokens
    return reply.done.stats.cached_tokens


def test_ten_turns_edit_the_third_and_go_on(demo: Engine, fresh: Engine) -> None:
    history: list[Message] = []
    lengths = []
    for question in QUESTIONS:
        asked = [*history, Message("user", question)]
        cached = check(demo, fresh, asked)
        lengths.append(cached)
        history = turn(demo, history, question, draft="3")
    assert all(later > earlier for earlier, later in pairwise(lengths))
    # the model's window is 128 positions, the conversation is several times as long
    total = demo.ask([*history, Message("user", "Hello!")]).done.stats
    assert total.prompt_tokens > 500
    assert total.cached_tokens > total.prompt_tokens - 20

    edited = [*history[:4], Message("user", "List five fruits.")]
    cached = check(demo, fresh, edited)
    # the two turns before the edit are still there, but for what lies behind the nearest checkpoint
    two_turns = fresh.ask(history[:3], reuse=False).done.stats.prompt_tokens
    assert cached >= two_turns - 1
    history = [*edited, Message("assistant", demo.ask(edited).text)]
    for question in QUESTIONS[3:6]:
        check(demo, fresh, [*history, Message("user", question)])
        history = turn(demo, history, question)


def test_regenerate_processes_one_token(demo: Engine, fresh: Engine) -> None:
    history = turn(demo, turn(demo, [], QUESTIONS[2]), QUESTIONS[1])
    asked = [*history, Message("user", QUESTIONS[2])]
    first = demo.ask(asked, draft="3")
    again = demo.ask(asked, draft="3")
    assert begins_like(again, first)
    assert begins_like(again, fresh.ask(asked, reuse=False))
    assert again.done.stats.cached_tokens == again.done.stats.prompt_tokens - 1


def test_regenerate_after_an_answer_longer_than_the_sliding_cache(demo: Engine, fresh: Engine) -> None:
    asked = [Message("user", QUESTIONS[4])]
    demo.ask(asked, draft="3", ignore_eos=True, max_tokens=1200)
    again = demo.ask(asked, draft="3")
    assert begins_like(again, fresh.ask(asked, reuse=False))
    assert again.done.stats.cached_tokens == again.done.stats.prompt_tokens - 1  # from the checkpoint


def test_going_back_further_than_any_checkpoint_prefills_again(demo: Engine, fresh: Engine) -> None:
    demo.ask([Message("user", "Something else entirely.")], reuse=False)
    demo.ask([Message("user", QUESTIONS[4])], ignore_eos=True, max_tokens=1200)
    asked = [Message("user", QUESTIONS[4][:20])]
    reply = demo.ask(asked)
    assert begins_like(reply, fresh.ask(asked, reuse=False))
    assert reply.done.stats.cached_tokens == 0


def test_second_turn_of_a_long_chat_prefills_only_its_new_tokens(demo: Engine) -> None:
    story = " ".join(["The fox walked to the old tree and looked for food."] * 110)
    history = turn(demo, [], story, max_tokens=20)
    reply = demo.ask([*history, Message("user", "Hello!")], draft="3")
    figures = reply.done.stats
    assert figures.prompt_tokens > 1200
    new = figures.prompt_tokens - figures.cached_tokens
    assert new <= 16  # the last emitted token, two turn borders, and the question
    assert [event.total for event in reply.prefills] == [figures.prompt_tokens]


def test_drafter_can_be_switched_for_each_message(demo: Engine, fresh: Engine) -> None:
    history: list[Message] = []
    for index, question in enumerate(QUESTIONS[:6]):
        draft = "off" if index % 2 else "4"
        asked = [*history, Message("user", question)]
        reply = demo.ask(asked, draft=draft)
        assert (reply.done.stats.verified == 0) == (draft == "off")
        assert begins_like(reply, fresh.ask(asked, reuse=False))
        history = [*asked, Message("assistant", reply.text)]


def test_sampled_turns_go_on_from_the_cache(demo: Engine) -> None:
    """Sampled ids are not always what their text tokenises to; the ids that were generated are used again."""
    history: list[Message] = []
    as_rendered = False
    for seed, question in enumerate(QUESTIONS):
        asked = [*history, Message("user", question)]
        reply = demo.ask(asked, draft="3", sampling=SamplingParams(seed=seed))
        figures = reply.done.stats
        if history and as_rendered:
            assert figures.prompt_tokens - figures.cached_tokens <= 8 + 2 * len(question.encode())
        # a thought is left out of the history and white space at the ends is trimmed, so these are processed again
        as_rendered = figures.thought.generated == 0 and reply.text == reply.text.strip()
        history = [*asked, Message("assistant", reply.text)]


def test_a_full_context_ends_with_its_own_reason(demo: Engine) -> None:
    for draft in ("off", "1", "3", "16"):
        reply = demo.ask("Hello!", draft=draft, ignore_eos=True, max_tokens=None)
        assert reply.done.stop == "context"
        figures = reply.done.stats
        # every position is used, and the last token needs none
        assert figures.prompt_tokens + figures.generated == demo.loaded.context + 1


def test_a_prompt_too_long_is_refused_with_both_numbers(demo: Engine) -> None:
    words = "fox " * 3000
    with pytest.raises(PromptTooLong) as caught:
        demo.ask(words)
    assert caught.value.limit == demo.loaded.context - 1
    assert caught.value.prompt_tokens > 3000
    assert f"{caught.value.prompt_tokens:,}" in caught.value.sentence
    assert f"{caught.value.limit:,}" in caught.value.sentence
    assert demo.ask().text  # and the engine goes on


def test_oldest_turns_are_left_out_when_asked_to(demo: Engine, fresh: Engine) -> None:
    history: list[Message] = []
    for index in range(6):
        filler = f"Turn {index}. " + "The fox walked to the old tree. " * 40
        history += [Message("user", filler), Message("assistant", f"Answer {index}.")]
    asked = [Message("system", "Be kind."), *history, Message("user", "Hello!")]
    with pytest.raises(PromptTooLong):
        demo.ask(asked)
    reply = demo.ask(asked, trim=True, max_tokens=None)
    assert reply.done.stop == "end"  # there is room for the answer
    assert reply.done.dropped > 0
    assert reply.done.dropped % 2 == 0
    kept = [asked[0], *asked[1 + reply.done.dropped :]]
    assert begins_like(reply, fresh.ask(kept, reuse=False))
    assert reply.done.stats.prompt_tokens < demo.loaded.context


def test_a_full_chat_goes_on_from_the_cache_turn_after_turn(demo: Engine) -> None:
    """When turns must go, enough go at once, so that the prompt then begins the same for several turns."""
    history: list[Message] = []
    reused = []
    for index in range(14):
        asked = [*history, Message("user", f"Turn {index}. " + "The fox walked to the old tree. " * 25)]
        reply = demo.ask(asked, trim=True, max_tokens=60)
        figures = reply.done.stats
        assert figures.prompt_tokens <= demo.loaded.context - 60
        if reply.done.dropped:
            reused.append(figures.cached_tokens / figures.prompt_tokens)
        history = [*asked, Message("assistant", reply.text.strip() or "Yes.")]
    assert len(reused) >= 5
    assert sum(share > 0.5 for share in reused) > len(reused) / 2


@pytest.mark.parametrize("seed", [None, 1, 2])
def test_long_texts_are_the_same_with_and_without_the_drafter(demo: Engine, seed: int | None) -> None:
    """Past the 256 cells of the sliding layers and past 512 positions, where rounding once gave the drafter away."""
    sampling = SamplingParams(temperature=0.0) if seed is None else SamplingParams(seed=seed)
    texts = [
        demo.ask(QUESTIONS[4], draft=draft, ignore_eos=True, max_tokens=900, sampling=sampling, reuse=False).tokens
        for draft in ("off", "2", "3", "6")
    ]
    assert len(texts[0]) == 900
    assert texts[0] == texts[1] == texts[2] == texts[3]


def test_exactly_full_prompts_are_accepted_and_one_more_is_not(demo: Engine) -> None:
    limit = demo.loaded.context - 1
    token = demo.ask("Hello!").tokens[0]
    reply = demo.ask((2, *[token] * (limit - 1)), draft="3", max_tokens=None, ignore_eos=True)
    assert (reply.done.stop, reply.done.stats.generated) == ("context", 2)
    with pytest.raises(PromptTooLong):
        demo.ask((2, *[token] * limit))
