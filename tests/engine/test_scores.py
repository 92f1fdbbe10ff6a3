"""The best of a row and its confidence, against a full sort and the whole softmax."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support.rows import Row, brute_order, rows
from tandem.engine.scores import Scratch, confidence, top_candidates
from tandem.errors import EngineError


class TestTopCandidates:
    @settings(deadline=None, max_examples=200)
    @given(row=rows(), k=st.one_of(st.integers(1, 100), st.sampled_from([256, 4096, 10**6])))
    def test_equals_a_full_sort(self, row: Row, k: int) -> None:
        ids, logits = top_candidates(row, k, Scratch(len(row)))
        expected = brute_order(row)[:k]
        assert ids.tolist() == expected.tolist()
        assert logits.tolist() == row[expected].tolist()

    @pytest.mark.parametrize("size", [262_144, 262_145, 262_207])
    def test_at_gemmas_vocabulary(self, size: int) -> None:
        row = np.random.default_rng(3).normal(0, 3, size).astype(np.float32)
        row[-1] = 50  # in the part that is no whole block, where there is one
        ids, _ = top_candidates(row, 64, Scratch(size))
        assert ids.tolist() == brute_order(row)[:64].tolist()
        assert ids[0] == size - 1

    def test_all_scores_equal_at_gemmas_vocabulary(self) -> None:
        ids, logits = top_candidates(np.zeros(262_144, np.float32), 64, Scratch(262_144))
        assert ids.tolist() == list(range(64))
        assert not logits.any()

    def test_best_scores_all_in_one_column_of_blocks(self) -> None:
        # The worst case for the bound: the block maxima know one of the 64 best.
        row = np.zeros(64 * 100, np.float32)
        row[7::100] = np.arange(1, 65)
        ids, _ = top_candidates(row, 64, Scratch(len(row)))
        assert ids.tolist() == list(range(63 * 100 + 7, 0, -100))

    def test_buffers_are_reused_without_leaving_traces(self) -> None:
        scratch = Scratch(5000)
        random = np.random.default_rng(1)
        for _ in range(5):
            row = random.normal(0, 1, 5000).astype(np.float32)
            assert top_candidates(row, 10, scratch)[0].tolist() == brute_order(row)[:10].tolist()

    def test_a_row_of_another_vocabulary_is_refused(self) -> None:
        with pytest.raises(ValueError, match="5 scores"):
            top_candidates(np.zeros(5, np.float32), 1, Scratch(6))


class TestConfidence:
    @settings(deadline=None, max_examples=100)
    @given(row=rows(), data=st.data())
    def test_equals_softmax(self, row: Row, data: st.DataObject) -> None:
        token = data.draw(st.sampled_from([int(row.argmax()), len(row) - 1, 0]))
        exact = np.exp(row.astype(np.float64) - row.max())
        assert confidence(row, token, Scratch(len(row))) == pytest.approx(exact[token] / exact.sum(), rel=1e-5)

    def test_large_rows_and_large_scores(self) -> None:
        row = np.random.default_rng(5).normal(1e6, 3, 200_001).astype(np.float32)
        exact = np.exp(row.astype(np.float64) - row.max())
        best = int(row.argmax())
        assert confidence(row, best, Scratch(len(row))) == pytest.approx(exact[best] / exact.sum(), rel=1e-5)


@pytest.mark.parametrize("size", [5, 64 * 70, 64 * 70 + 5])
@pytest.mark.parametrize("where", [0, -1])
@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_one_bad_score_is_told(size: int, where: int, value: float) -> None:
    row = np.random.default_rng(1).normal(0, 2, size).astype(np.float32)
    row[where] = value
    scratch = Scratch(size)
    calls: list[Callable[[], object]] = [
        lambda: top_candidates(row, 3, scratch),
        lambda: top_candidates(row, size, scratch),
        lambda: confidence(row, 1, scratch),
    ]
    for call in calls:
        with pytest.raises(EngineError, match="no usable scores"):
            call()
