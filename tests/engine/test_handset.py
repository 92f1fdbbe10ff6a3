"""Hand-set pairs do what their docstring says, on the real engine."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from support.handset import (
    BOS,
    BYTE,
    CHANNEL_CLOSE,
    CHANNEL_OPEN,
    E2B,
    E4B,
    EOS,
    NEWLINE,
    THINK,
    TINY,
    TOOL_RESPONSE,
    TURN_CLOSE,
    TURN_OPEN,
    Graph,
    Pair,
    Script,
    Shape,
    large_vocabulary,
    make_graph,
    small_vocabulary,
    write_pair,
)
from support.handset_gguf import q4_0
from support.handset_vocab import normal_ids
from support.reference_loop import Loop

START = 500
DRAFTS = range(5)


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Pair:
    return write_pair(tmp_path_factory.mktemp("pair"), wrong=0.3)


@pytest.fixture(scope="module")
def loop(pair: Pair) -> Iterator[Loop]:
    with Loop(pair.target, pair.drafter) as loop:
        yield loop


def probabilities(logits: NDArray[np.float32]) -> NDArray[np.float64]:
    grown = np.exp(logits.astype(np.float64) - logits.max())
    return np.asarray(grown / grown.sum())


@pytest.mark.parametrize("draft", DRAFTS)
def test_text_and_counts_follow_the_graph(pair: Pair, loop: Loop, draft: int) -> None:
    prompt = [BOS, TURN_OPEN, START]
    assert loop.greedy(prompt, 60, draft) == pair.graph.speculate(START, 60, draft)


def test_text_is_the_same_at_every_draft_length(pair: Pair, loop: Loop) -> None:
    for draft in DRAFTS:
        tokens = loop.greedy([BOS, START], 30, draft).tokens
        assert list(tokens) == pair.graph.follow(START, len(tokens))


def test_a_long_answer_leaves_the_sliding_window(pair: Pair, loop: Loop) -> None:
    passes = loop.greedy([BOS, START], 120, 3)
    assert len(passes.tokens) > 4 * TINY.window
    assert passes == pair.graph.speculate(START, 120, 3)


@pytest.mark.parametrize("wrong", [0.0, 0.25, 1.0])
def test_the_share_of_wrong_guesses_is_exact(wrong: float) -> None:
    vocabulary = small_vocabulary()
    graph = make_graph(vocabulary, wrong=wrong)
    normal = normal_ids(vocabulary)
    misses = np.count_nonzero(graph.guess[normal] != graph.successor[normal])
    assert misses == round(wrong * len(normal))


def test_wrong_guesses_where_asked(tmp_path: Path) -> None:
    pair = write_pair(tmp_path, wrong={START + 2})
    with Loop(pair.target, pair.drafter) as loop:
        passes = loop.greedy([BOS, START], 3, 3)
    # Said: START + 1, then drafts + 2 (right) and the one after it (wrong), then all right.
    assert passes.accepted == (1, 3, 3)
    assert make_graph(pair.vocabulary, wrong=lambda token: token == 7).guess[7] != pair.graph.successor[7]


def test_seeds_give_the_same_files_and_others_do_not(tmp_path: Path) -> None:
    one, two, other = (
        write_pair(tmp_path / name, wrong=0.3, seed=seed) for name, seed in (("1", 5), ("2", 5), ("3", 6))
    )
    assert one.target.read_bytes() == two.target.read_bytes()
    assert one.drafter.read_bytes() == two.drafter.read_bytes()
    assert one.target.read_bytes() != other.target.read_bytes()


def test_more_tokens_than_dimensions_get_random_words(tmp_path: Path) -> None:
    pair = write_pair(tmp_path, vocabulary=large_vocabulary(3000), wrong=0.3)
    start = normal_ids(pair.vocabulary)[700]
    with Loop(pair.target, pair.drafter) as loop:
        for draft in (0, 3):
            assert loop.greedy([BOS, start], 60, draft) == pair.graph.speculate(start, 60, draft)
            assert probabilities(loop.logits(0)).max() > 0.9999


def test_all_in_q4_0_as_in_the_large_shapes(tmp_path: Path) -> None:
    sizes = {field: getattr(TINY, field) for field in TINY.__dataclass_fields__} | {"exact": False, "name": "q4"}
    pair = write_pair(tmp_path, Shape(**sizes), vocabulary=small_vocabulary(), wrong=0.3)
    with Loop(pair.target, pair.drafter) as loop:
        for draft in (0, 4):
            assert loop.greedy([BOS, START], 40, draft) == pair.graph.speculate(START, 40, draft)


def test_q4_0_packs_as_the_reference_unpacks() -> None:
    from gguf import GGMLQuantizationType
    from gguf.quants import dequantize

    rows = np.random.default_rng(0).integers(-8, 8, (6, 64)).astype(np.float32) * 0.5
    unpacked = dequantize(q4_0(rows, 0.5).reshape(6, -1), GGMLQuantizationType.Q4_0)
    np.testing.assert_array_equal(unpacked, rows)


def test_a_script_spells_its_text_markers_and_split_characters(tmp_path: Path) -> None:
    script = Script()
    emoji = "🙂".encode()
    said = script.say(
        NEWLINE, CHANNEL_OPEN, "thought\n", "Hm", "m", "m", CHANNEL_CLOSE, " Hello ", emoji, "한글", "end", " of", " it"
    )
    pair = script.write(tmp_path, wrong={said[3]})
    with Loop(pair.target, pair.drafter) as loop:
        for draft in DRAFTS:
            passes = loop.greedy([BOS, NEWLINE], len(said), draft)
            assert passes == pair.graph.speculate(NEWLINE, len(said), draft)
            assert passes.tokens[: len(said) + 1] == (*said, TURN_CLOSE)
        text = b"".join(loop.piece(token) for token in said).decode()
        assert [loop.piece(token) for token in said[7:11]] == [bytes([value]) for value in emoji]
    assert text == "<|channel>thought\nHmmm<channel|> Hello 🙂한글end of it"


def test_the_end_of_the_turn_inside_an_accepted_run(tmp_path: Path) -> None:
    script = Script()
    said = script.say(NEWLINE, "one", " two")
    pair = script.write(tmp_path)
    passes = pair.graph.speculate(NEWLINE, 1, 4)
    assert passes.accepted == (4,)
    assert passes.tokens.index(TURN_CLOSE) == len(said) < len(passes.tokens) - 1


def test_scripts_from_several_starts_share_a_pair(tmp_path: Path) -> None:
    script = Script()
    starts = [script.token(name) for name in ("first:", "second:")]
    texts = [script.say(start, text, then=start) for start, text in zip(starts, ("A", "B"), strict=True)]
    pair = script.write(tmp_path)
    with Loop(pair.target, pair.drafter) as loop:
        for start, text in zip(starts, texts, strict=True):
            assert loop.greedy([BOS, start], 4, 0).tokens == (*text, start, *text, start, *text)


def test_a_script_refuses_a_token_with_two_successors() -> None:
    script = Script()
    script.say(NEWLINE, "once")
    with pytest.raises(ValueError, match="already has a successor"):
        script.say(NEWLINE, "twice")
    with pytest.raises(ValueError, match="already writes"):
        script.token("once")


def test_branches_have_the_probabilities_asked_for(tmp_path: Path) -> None:
    script = Script()
    start = script.token("choose:")
    options = [script.token(f"option {number}") for number in range(8)]
    wanted = np.array([0.4, 0.25, 0.15, 0.1, 0.05, 0.03, 0.015, 0.005])
    guessed = np.array([0.5, 0.3, 0.2])
    pair = script.write(
        tmp_path,
        branch={start: dict(zip(options, wanted.tolist(), strict=True))},
        draft_branch={start: dict(zip(options[1:4], guessed.tolist(), strict=True))},
    )
    with Loop(pair.target, pair.drafter) as loop:
        loop.decode([BOS, start], 0)
        given = probabilities(loop.logits(1))
        drafted = probabilities(loop.draft_step(start, loop.nextn(1), 2)[0])
    np.testing.assert_allclose(given[options], wanted, atol=1e-5)
    np.testing.assert_allclose(drafted[options[1:4]], guessed, atol=1e-5)
    assert pair.graph.successor[start] == options[0]
    assert pair.graph.guess[start] == options[1]


@pytest.mark.parametrize(
    ("branch", "message"),
    [
        ({500: {501: 0.5, 502: 0.4}}, "add up"),
        ({500: {501: 1.5, 502: -0.5}}, "positive"),
        ({500: {10**6: 1.0}}, "vocabulary"),
        ({500: {501: 1.0 - 1e-30, 502: 1e-30}}, "No vector"),
    ],
)
def test_branches_that_cannot_be(tmp_path: Path, branch: dict[int, dict[int, float]], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        write_pair(tmp_path, branch=branch)


def test_the_vocabulary_is_gemmas_in_small(loop: Loop) -> None:
    assert [loop.piece(token) for token in (BOS, THINK, TURN_OPEN, TURN_CLOSE)] == [
        b"<bos>",
        b"<|think|>",
        b"<|turn>",
        b"<turn|>",
    ]
    assert {token for token in range(loop.size) if loop.ends(token)} == {EOS, TOOL_RESPONSE, TURN_CLOSE}
    assert [loop.piece(BYTE + value) for value in range(256)] == [bytes([value]) for value in range(256)]
    assert loop.tokenize("<|turn>model\n", special=True)[::2] == [TURN_OPEN, NEWLINE]


@pytest.mark.parametrize("text", ["the fox is not a bug", "안녕하세요 🙂 €uro", "a\n\nb", " two  spaces ", "中文é"])
def test_any_text_comes_back_from_its_tokens(loop: Loop, text: str) -> None:
    tokens = loop.tokenize(text)
    assert b"".join(loop.piece(token) for token in tokens).decode() == text
    assert len(tokens) <= len(text.encode())


@pytest.mark.parametrize(("shape", "published"), [(E2B, 2_620_370_912), (E4B, 4_215_695_712)])
def test_shapes_weigh_what_gemma_does(shape: Shape, published: int) -> None:
    """Q4_0 weights and F32 norms, with the embedding counted once, and a tokenizer of 14 to 18 MB."""
    weights = norms = 0
    for layer in range(shape.layers):
        head = shape.head if shape.is_sliding(layer) else shape.head_full
        own = layer < shape.layers - shape.shared
        weights += shape.hidden * head * 2 * (shape.heads + (shape.kv_heads if own else 0))
        weights += shape.hidden * 3 * (shape.ffn if own else shape.ffn_shared) + shape.hidden * 2 * shape.per_layer
        norms += 5 * shape.hidden + 2 * head
    weights += 262_144 * (shape.hidden + shape.layers * shape.per_layer)
    weights += shape.hidden * shape.layers * shape.per_layer
    rest = published - weights * 18 // 32 - norms * 4
    assert 14e6 < rest < 18e6


def test_graph_plays_drafting_through() -> None:
    following = np.array([1, 2, 3, 0])
    graph = Graph(following, np.array([1, 2, 0, 0]))  # wrong after 2
    passes = graph.speculate(3, 3, 2)
    assert passes.tokens == (0, 1, 2, 3, 0, 1, 2, 3)
    assert passes.accepted == (2, 2, 0)
