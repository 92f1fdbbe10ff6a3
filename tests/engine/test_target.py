"""The KV cache, whatever was done to it: its scores are those of a cache filled from nothing.

Scores of the same tokens in other batches differ by rounding (activations are quantised), here by up to 0.1; a cache in
a wrong state is off by several units, which the last test shows.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tandem.engine import bindings
from tandem.engine.bindings import Context, Model
from tandem.engine.target import Target, common_prefix

ROUNDING = 0.25
SIZE = 2048
TEXT = "The fox walked to the old tree and looked for food. One day it started to rain. " * 60


@pytest.fixture(scope="module")
def model(demo_pair: tuple[Path, Path]) -> Iterator[Model]:
    bindings.set_log(lambda _level, _text: None)
    loaded = Model(demo_pair[0], None)
    yield loaded
    loaded.free()


def new_target(model: Model, batch: int) -> Target:
    return Target(model, Context(model, size=SIZE, batch=batch, rows=17, threads=1))


@pytest.fixture(scope="module")
def reference(model: Model) -> Iterator[Target]:
    target = new_target(model, 512)
    yield target
    target.context.free()


@pytest.fixture(params=[32, 128, 512])
def target(model: Model, request: pytest.FixtureRequest) -> Iterator[Target]:
    made = new_target(model, request.param)
    yield made
    made.context.free()


def off_by(target: Target, reference: Target) -> float:
    """Largest difference of the scores after the target's last token from those of a cache filled from nothing."""
    tokens = list(target.tokens)
    target.prefill(tokens)  # one token again
    reference.prefill(tokens, reuse=False)
    return float(np.abs(target.scores() - reference.scores()).max())


def noise(model: Model, seed: int, count: int) -> list[int]:
    return [int(token) for token in np.random.default_rng(seed).integers(30, model.vocabulary, count)]


@pytest.mark.parametrize("junk", [0, 1, 5, 16])
def test_rejected_drafts_leave_no_trace(target: Target, reference: Target, model: Model, junk: int) -> None:
    text = model.tokenize(TEXT, False)
    target.prefill(text[:100])
    for step in range(200):  # well past the window of 128, so that cells of the sliding layers are used again
        target.verify(text[100 + step], noise(model, step, junk))
        target.keep(1, of=1 + junk)
    assert target.tokens == text[:300]
    assert off_by(target, reference) < ROUNDING


def test_accepted_drafts_are_kept(target: Target, reference: Target, model: Model) -> None:
    text = model.tokenize(TEXT, False)
    target.prefill(text[:50])
    position = 50
    for step in range(60):
        kept = 1 + step % 4
        target.verify(text[position], [*text[position + 1 : position + kept], *noise(model, step, 3)])
        target.keep(kept, of=kept + 3)
        position += kept
    assert target.tokens == text[:position]
    assert off_by(target, reference) < ROUNDING


def test_editing_far_back_uses_a_checkpoint_or_starts_again(target: Target, reference: Target, model: Model) -> None:
    text = model.tokenize(TEXT, False)
    ends = [90, 230, 400, 700]
    start = 0
    for end in ends:  # turns: a prompt, a checkpoint at its end, an answer
        target.prefill(text[:end])
        target.checkpoint()
        start = end + 40
        for token in text[end:start]:
            target.verify(token, [])
    for keep in (720, 699, 450, 400, 240, 231, 60):  # back, and back again, each time with another ending
        changed = [*text[:keep], *noise(model, keep, 30)]
        done = target.prefill(changed)
        assert done.cached <= keep
        assert done.cached + done.processed == len(changed)
        assert target.tokens == changed
        assert off_by(target, reference) < ROUNDING


def test_a_checkpoint_is_reused_where_the_sliding_layers_have_moved_on(model: Model, reference: Target) -> None:
    target = new_target(model, 32)
    text = model.tokenize(TEXT, False)
    target.prefill(text[:400])
    target.checkpoint()
    for token in text[400:900]:
        target.verify(token, [])
    done = target.prefill([*text[:400], *noise(model, 1, 10)])
    assert done.cached == 400
    assert off_by(target, reference) < ROUNDING
    for token in text[400:900]:
        target.verify(token, [])
    assert target.prefill(text[:400]).cached == 399  # the same prompt again: its last token only
    assert off_by(target, reference) < ROUNDING
    for token in text[400:900]:
        target.verify(token, [])
    assert target.prefill([*text[:200], *noise(model, 2, 10)]).cached == 0
    assert off_by(target, reference) < ROUNDING
    target.context.free()


@settings(max_examples=25, deadline=None)
@given(data=st.data())
def test_any_history_of_prompts_passes_and_edits(model: Model, reference: Target, data: st.DataObject) -> None:
    target = new_target(model, 64)
    try:
        tokens = model.tokenize(TEXT, False)[: data.draw(st.integers(1, 300))]
        for _ in range(data.draw(st.integers(1, 8))):
            target.prefill(tokens)
            if data.draw(st.booleans()):
                target.checkpoint()
            for _ in range(data.draw(st.integers(0, 60))):
                drafts = noise(model, data.draw(st.integers(0, 99)), data.draw(st.integers(0, 6)))
                target.verify(tokens[-1], drafts)
                target.keep(data.draw(st.integers(1, 1 + len(drafts))), of=1 + len(drafts))
            cut = data.draw(st.integers(0, len(target.tokens)))
            tokens = [*target.tokens[:cut], *noise(model, cut, data.draw(st.integers(1, 40)))]
        target.prefill(tokens)
        assert target.tokens == tokens
        assert off_by(target, reference) < ROUNDING
    finally:
        target.context.free()


@given(st.lists(st.integers(0, 2)), st.lists(st.integers(0, 2)))
def test_common_prefix(a: list[int], b: list[int]) -> None:
    length = common_prefix(a, b)
    assert a[:length] == b[:length]
    assert length == min(len(a), len(b)) or a[length] != b[length]


def test_a_wrong_cache_is_far_off(model: Model, reference: Target) -> None:
    """What the tests above would show if the cache held other tokens than `tokens` says."""
    target = new_target(model, 128)
    text = model.tokenize(TEXT, False)
    target.prefill(noise(model, 0, 150))
    target.tokens[100:] = text[:50]
    target.prefill([*target.tokens[:100], *text[:60]])
    assert off_by(target, reference) > 4 * ROUNDING
    target.context.free()


def test_checkpoints_are_thinned_out_evenly_and_the_newest_stays(
    model: Model, reference: Target, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tandem.engine.target._CHECKPOINTS", 6)
    target = new_target(model, 32)
    text = model.tokenize(TEXT, False)
    for end in range(40, 1000, 40):
        target.prefill(text[:end])
        target.checkpoint()
    # the most that has to be processed again anywhere is a fraction of the whole
    for keep in (900, 700, 500, 300):
        done = target.prefill([*text[:keep], *noise(model, keep, 5)])
        assert keep - done.cached <= 320
        assert off_by(target, reference) < ROUNDING
    target.context.free()


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("rows", [2, 3, 4, 5, 6, 7, 17])
def test_scores_are_bit_for_bit_those_of_plain_decoding(model: Model, threads: int, rows: int) -> None:
    """On the CPU, with any number of threads and rejections, over several rounds of the sliding layers' cells.

    Up to 7 rows, draft length 6; beyond see packaging/engine/README.md.
    """
    text = model.tokenize(TEXT, False)[:700]
    plain = Target(model, Context(model, size=SIZE, batch=128, rows=17, threads=1))
    drafted = Target(model, Context(model, size=SIZE, batch=128, rows=17, threads=threads))
    for target in (plain, drafted):
        target.prefill(text[:40])
    position = 40
    while position < len(text) - rows:
        count = min(rows, drafted.steady_rows)
        kept = 1 + position * 7 % count  # from one to all
        drafted.verify(text[position], [*text[position + 1 : position + kept], *noise(model, position, count - kept)])
        for row in range(kept):
            plain.verify(text[position + row], [])
            differ = float(np.abs(plain.scores(0) - drafted.scores(row)).max())
            assert differ <= (0.0 if rows < 8 else 1e-4), f"position {position + row}"
        drafted.keep(kept, of=count)
        position += kept
    plain.context.free()
    drafted.context.free()


def test_drafts_stay_clear_of_the_last_cell_of_the_sliding_layers(model: Model) -> None:
    target = new_target(model, 128)  # 128 + 128 positions: 256 cells
    text = model.tokenize(TEXT, False)
    for held, rows in ((250, 5), (253, 2), (254, 1), (255, 1), (256, 255), (510, 1), (511, 1), (512, 255)):
        target.prefill(text[:held], reuse=False)
        assert target.steady_rows == rows
    target.context.free()
    wide = Target(model, Context(model, size=256, batch=128, rows=17, threads=1))
    assert wide.steady_rows == 128  # as many cells as the context has: never a second round
    wide.context.free()
