"""Which token each piece of an answer's text came from, and what the verify pass said of it, on the real engine."""

from __future__ import annotations

import codecs
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.chat_templates import GEMMA4_E2B
from support.engines import Engine, Reply, running
from support.handset import BOS, Script
from support.vocabulary import Vocabulary
from tandem.engine.protocol import Text
from tandem.engine.sampling import SamplingParams

WILD = SamplingParams(temperature=5.0, top_k=0, top_p=1.0, seed=3)


@pytest.fixture(scope="module")
def vocabulary(demo_pair: tuple[Path, Path]) -> Iterator[Vocabulary]:
    found = Vocabulary(demo_pair[0])
    yield found
    found.close()


def by_token(reply: Reply) -> list[str]:
    """The text of each token of an answer."""
    found = [""] * len(reply.tokens)
    for piece in pieces(reply):
        found[piece.token] += piece.text
    return found


def pieces(reply: Reply) -> list[Text]:
    return [piece for event in (*reply.passes, reply.done) for piece in event.text]


def one_by_one(tokens: list[int], vocabulary: Vocabulary) -> list[str]:
    """The text that each token adds, decoded by itself except where a character is spread over several."""
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    return [decoder.decode(vocabulary.piece(token)) for token in tokens]


@pytest.mark.parametrize("draft", ["off", "1", "3", "8"])
@pytest.mark.parametrize(
    ("prompt", "sampling"),
    [
        ("Tell me a short story about a fox.", SamplingParams(temperature=0.0)),
        ("토끼에 대한 짧은 이야기를 써 주세요.", SamplingParams(temperature=0.0)),
        ("Write a Python function that checks if a number is prime.", SamplingParams(temperature=0.0)),
        ("Tell me a short story about a fox.", WILD),
    ],
    ids=["story", "korean", "code", "wild"],
)
def test_the_text_of_a_token_is_what_the_token_decodes_to(
    demo: Engine, vocabulary: Vocabulary, prompt: str, sampling: SamplingParams, draft: str
) -> None:
    reply = demo.ask(prompt, draft=draft, sampling=sampling, ignore_eos=sampling is WILD)
    assert not reply.thought
    assert by_token(reply) == one_by_one(reply.tokens, vocabulary)
    assert len(reply.drafted) == len(reply.accepted) == len(reply.tokens)
    told = {piece.token for piece in pieces(reply)}
    if draft == "off":
        assert not any(reply.drafted)
    elif sampling is not WILD:
        assert any(reply.accepted[token] for token in told)
        assert any(not reply.accepted[token] for token in told)


def test_the_wild_answer_above_has_characters_spread_over_tokens(demo: Engine, vocabulary: Vocabulary) -> None:
    reply = demo.ask("Tell me a short story about a fox.", draft="3", sampling=WILD, ignore_eos=True)
    parts = [vocabulary.piece(token) for token in reply.tokens]
    assert any(part and part.decode("utf-8", "ignore") == "" for part in parts)


@pytest.fixture(scope="module")
def actor(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Engine, dict[str, int]]]:
    """Says texts after start tokens of their own."""
    script = Script()
    starts = {name: script.token(f"<{name}>") for name in ("thought", "held", "stop", "fox")}
    script.say(starts["thought"], "So. ", "<|chan", "nel>", b"thought", "\nOh", "!", b"<chan", "nel|>", b"\n", "Five")
    script.say(starts["held"], "See <|chan", "ging", b" <chan")
    script.say(starts["stop"], "One ", b"EN", "TER ", b"EN", "D two")
    script.say(starts["fox"], "A ", "🦊".encode(), " and ", "👩‍👧".encode(), ".")
    wrong = {token for token in range(len(script.vocabulary)) if token % 3 == 0}
    pair = script.write(tmp_path_factory.mktemp("actor"), wrong=wrong, chat_template=GEMMA4_E2B)
    with running(tmp_path_factory.mktemp("actor-logs"), pair.target, pair.drafter) as engine:
        yield engine, starts


@pytest.mark.parametrize("draft", ["off", "1", "3", "16"])
@pytest.mark.parametrize(
    ("start", "stop", "expected"),
    [
        ("thought", (), [("answer", "So. ", 0), ("thought", "Oh", 10), ("thought", "!", 11), ("answer", "Five", 19)]),
        ("held", (), [("answer", "See ", 0), ("answer", "<|chan", 0), ("answer", "ging", 1), ("answer", " ", 2)]),
        (
            "held",
            ("ging <channel|>",),
            [("answer", "See ", 0), ("answer", "<|chan", 0), ("answer", "ging", 1), ("answer", " ", 2)],
        ),
        ("stop", ("END",), [("answer", "One ", 0), ("answer", "E", 1), ("answer", "N", 2), ("answer", "TER ", 3)]),
        (
            "fox",
            (),
            [
                ("answer", "A ", 0),
                ("answer", "🦊", 4),
                ("answer", " and ", 5),
                ("answer", "👩", 9),
                ("answer", "\u200d", 12),
                ("answer", "👧", 16),
                ("answer", ".", 17),
            ],
        ),
    ],
)
def test_text_that_waited_or_surrounds_a_marker_keeps_its_token(
    actor: tuple[Engine, dict[str, int]],
    start: str,
    stop: tuple[str, ...],
    expected: list[tuple[str, str, int]],
    draft: str,
) -> None:
    engine, starts = actor
    reply = engine.ask((BOS, starts[start]), draft=draft, stop=stop)
    assert [(piece.channel, piece.text, piece.token) for piece in pieces(reply)] == expected
    if draft != "off":
        assert 0 < sum(reply.accepted) < len(reply.tokens)
