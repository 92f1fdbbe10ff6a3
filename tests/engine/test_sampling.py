"""The sampler against brute force, against llama.cpp's own samplers, and its draws against exact probabilities."""

from __future__ import annotations

import ctypes
import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import llama_cpp
import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.stats import chisquare  # type: ignore[import-untyped,unused-ignore]  # scipy ships no types

from support.rows import Row, brute_order, rows
from tandem.engine.sampling import MAX_SEED, Sampler, SamplingParams
from tandem.errors import EngineError, UsageError

EVERYTHING = SamplingParams(top_k=0, top_p=1.0, seed=1)


def penalise(row: Row, recent: Sequence[int], penalty: float) -> Row:
    row = row.copy()
    for token in set(recent):
        row[token] = row[token] * np.float32(penalty) if row[token] <= 0 else row[token] / np.float32(penalty)
    return row


def brute_distribution(row: Row, params: SamplingParams) -> dict[int, float]:
    """The chain written down plainly, in float64 over the sorted row."""
    ids = brute_order(row)
    if params.temperature == 0:
        return {int(ids[0]): 1.0}
    if params.top_k:
        ids = ids[: params.top_k]
    logits = row[ids].astype(np.float64)
    shares = np.exp(logits - logits[0])
    shares /= shares.sum()
    keep = len(ids)
    if params.top_p < 1:
        reached = np.flatnonzero(np.cumsum(shares) >= params.top_p)
        keep = int(reached[0]) + 1 if len(reached) else keep
    if params.min_p:
        keep = min(keep, sum(1 for share in shares if share >= params.min_p * shares[0] * (1 - 1e-15)))
    weights = np.exp((logits[:keep] - logits[0]) / params.temperature)
    return dict(zip(ids[:keep].tolist(), (weights / weights.sum()).tolist(), strict=True))


@contextmanager
def scores_of_llama_cpp(row: Row, recent: Sequence[int], params: SamplingParams) -> Iterator[dict[int, float]]:
    """Run llama.cpp's own samplers, in its default order, over a row; give the ids left and their scores."""
    chain = llama_cpp.llama_sampler_chain_init(llama_cpp.llama_sampler_chain_default_params())
    penalties = llama_cpp.llama_sampler_init_penalties(len(row), params.repeat_last_n, params.repeat_penalty, 0.0, 0.0)
    llama_cpp.llama_sampler_chain_add(chain, penalties)
    llama_cpp.llama_sampler_chain_add(chain, llama_cpp.llama_sampler_init_top_k(params.top_k))
    llama_cpp.llama_sampler_chain_add(chain, llama_cpp.llama_sampler_init_top_p(params.top_p, 1))
    llama_cpp.llama_sampler_chain_add(chain, llama_cpp.llama_sampler_init_min_p(params.min_p, 1))
    llama_cpp.llama_sampler_chain_add(chain, llama_cpp.llama_sampler_init_temp_ext(params.temperature, 0.0, 1.0))
    data = np.zeros(len(row), [("id", np.int32), ("logit", np.float32), ("p", np.float32)])
    data["id"] = np.arange(len(row))
    data["logit"] = row
    pointer = data.ctypes.data_as(ctypes.POINTER(llama_cpp.llama_token_data))
    candidates = llama_cpp.llama_token_data_array(data=pointer, size=len(row), selected=-1, sorted=False)
    try:
        for token in recent:
            llama_cpp.llama_sampler_accept(chain, token)
        llama_cpp.llama_sampler_apply(chain, ctypes.byref(candidates))
        left = [candidates.data[i] for i in range(candidates.size)]
        yield {int(one.id): float(one.logit) for one in left}
    finally:
        llama_cpp.llama_sampler_free(chain)


class TestDistribution:
    @settings(deadline=None, max_examples=300)
    @given(
        row=rows(),
        temperature=st.sampled_from([0.0, 1e-3, 0.7, 1.0, 3.0]),
        top_k=st.sampled_from([0, 1, 2, 40, 64, 5000]),
        top_p=st.sampled_from([1e-9, 0.31, 0.951, 0.9999, 1.0]),
        min_p=st.sampled_from([0.0, 0.0512, 1.0]),
        penalty=st.sampled_from([1.0, 1.3, 0.5]),
    )
    def test_equals_the_chain_written_plainly(
        self, row: Row, temperature: float, top_k: int, top_p: float, min_p: float, penalty: float
    ) -> None:
        params = SamplingParams(temperature, top_k, top_p, min_p, penalty, 64, 1)
        recent = [token for token in (0, 3, 3, 17, 60) if token < len(row)]
        sampler = Sampler(params, len(row))
        sampler.begin(recent)
        before = row.copy()
        ids, shares = sampler.distribution(row)
        token = sampler.choose(row)
        assert np.array_equal(row, before)
        expected = brute_distribution(penalise(row, recent, penalty), params)
        # Equal shares may make the two sums of top-p differ by rounding at the very limit.
        assert abs(len(ids) - len(expected)) <= (1 if top_p < 1 else 0)
        if len(ids) == len(expected):
            assert ids.tolist() == list(expected)
            assert shares == pytest.approx(list(expected.values()), rel=1e-9, abs=1e-15)
        assert shares[ids.tolist().index(token)] > 0

    @settings(deadline=None, max_examples=150)
    @given(
        number=st.integers(0, 2**32),
        size=st.sampled_from([30, 500, 3000, 20_000]),
        spread=st.sampled_from([0.5, 2.0, 5.0]),
        top_k=st.sampled_from([0, 1, 40, 64]),
        top_p=st.sampled_from([0.3, 0.8, 0.95, 1.0]),
        min_p=st.sampled_from([0.0, 0.02, 0.3]),
        temperature=st.sampled_from([0.6, 1.0, 1.7]),
        penalty=st.sampled_from([1.0, 1.1, 0.8]),
    )
    def test_llama_cpp_leaves_the_same_candidates_and_scores(
        self,
        number: int,
        size: int,
        spread: float,
        top_k: int,
        top_p: float,
        min_p: float,
        temperature: float,
        penalty: float,
    ) -> None:
        random = np.random.default_rng(number)
        row = random.normal(0, spread, size).astype(np.float32)
        recent = random.integers(0, size, 90).tolist()
        params = SamplingParams(temperature, top_k, top_p, min_p, penalty, 64, 1)
        sampler = Sampler(params, size)
        sampler.begin(recent[:50])
        for token in recent[50:]:
            sampler.accept(token)
        ids, shares = sampler.distribution(row)
        with scores_of_llama_cpp(row, recent, params) as theirs:
            odd = set(ids.tolist()) ^ set(theirs)
            # float32 sums against float64: only tokens at the very limit may differ, and their share is tiny.
            weights = np.exp(row.astype(np.float64) - row.max())
            assert sum(weights[list(odd)]) / weights.sum() <= 1e-4
            assert len(odd) <= (8 if top_k == 0 else 1)
            both = [i for i, token in enumerate(ids.tolist()) if token in theirs]
            logits = np.array([theirs[int(ids[i])] for i in both], np.float64)
        ours = np.log(shares[both])
        assert ours - ours[0] == pytest.approx(logits - logits[0], abs=1e-4)

    def test_llama_cpp_takes_the_same_best_token_among_equals(self) -> None:
        row = np.array([1, 5, 2, 5, 5], np.float32)
        greedy = llama_cpp.llama_sampler_init_greedy()
        data = (llama_cpp.llama_token_data * 5)(
            *(llama_cpp.llama_token_data(i, score, 0) for i, score in enumerate(row))
        )
        array = llama_cpp.llama_token_data_array(data=data, size=5, selected=-1, sorted=False)
        llama_cpp.llama_sampler_apply(greedy, ctypes.byref(array))
        selected = int(array.selected)
        llama_cpp.llama_sampler_free(greedy)
        assert Sampler(SamplingParams(temperature=0.0), 5).choose(row) == selected == 1


class TestDraws:
    @pytest.mark.parametrize(
        "params",
        [
            SamplingParams(seed=11),
            SamplingParams(temperature=0.6, top_k=5, top_p=1.0, seed=12),
            SamplingParams(temperature=2.0, top_k=0, top_p=0.8, seed=13),
            SamplingParams(top_k=0, top_p=1.0, min_p=0.1, seed=14),
            SamplingParams(top_k=0, top_p=1.0, temperature=1.3, seed=15),
            SamplingParams(repeat_penalty=1.5, top_p=1.0, seed=16),
        ],
    )
    def test_follow_the_exact_probabilities(self, params: SamplingParams) -> None:
        row = np.random.default_rng(2).normal(0, 1.2, 24).astype(np.float32)
        expected = brute_distribution(penalise(row, [3, 4], params.repeat_penalty), params)
        sampler = Sampler(params, len(row))
        sampler.begin([3, 4])
        counts = dict.fromkeys(expected, 0)
        draws = 20_000
        for _ in range(draws):
            counts[sampler.choose(row)] += 1  # KeyError: a token that was cut off
        frequencies = [share * draws for share in expected.values()]
        assert chisquare(list(counts.values()), frequencies).pvalue > 1e-3

    def test_over_a_whole_large_vocabulary_follow_the_exact_probabilities(self) -> None:
        # Flat enough that the first look holds a small part: the draw has to widen it, to the full order at times.
        row = np.random.default_rng(4).normal(0, 0.3, 6000).astype(np.float32)
        sampler = Sampler(EVERYTHING, len(row))
        weights = np.exp(row.astype(np.float64))
        order = brute_order(row)
        bins = np.array_split(order, 12)
        of = np.empty(len(row), np.intp)
        for number, members in enumerate(bins):
            of[members] = number
        draws = 1500
        counts = np.bincount([of[sampler.choose(row)] for _ in range(draws)], minlength=12)
        expected = np.array([weights[members].sum() for members in bins])
        assert chisquare(counts, expected / expected.sum() * draws).pvalue > 1e-3

    def test_lazy_draw_equals_a_draw_from_the_full_order(self) -> None:
        row = np.random.default_rng(9).normal(0, 1, 9000).astype(np.float32)
        lazy = Sampler(EVERYTHING, len(row))
        full = Sampler(msgspec.structs.replace(EVERYTHING, top_k=len(row)), len(row))
        assert [lazy.choose(row) for _ in range(60)] == [full.choose(row) for _ in range(60)]

    @pytest.mark.parametrize("params", [SamplingParams(seed=5), EVERYTHING, SamplingParams(top_k=1, seed=5)])
    def test_use_one_random_number_each(self, params: SamplingParams) -> None:
        row = np.random.default_rng(1).normal(0, 2, 300).astype(np.float32)
        certain = np.full(300, -np.inf, np.float32)
        certain[7] = 0
        one, other = Sampler(params, 300), Sampler(params, 300)
        first = [one.choose(row) for _ in range(6)]
        # The same place in the stream is reached over rows that leave a single token.
        assert [other.choose(certain) for _ in range(3)] == [7, 7, 7]
        assert [other.choose(row) for _ in range(3)] == first[3:]

    def test_same_seed_same_tokens_and_begin_rewinds(self) -> None:
        row = np.random.default_rng(1).normal(0, 2, 300).astype(np.float32)
        sampler = Sampler(SamplingParams(), 300)
        first = [sampler.choose(row) for _ in range(20)]
        sampler.begin([])
        assert [sampler.choose(row) for _ in range(20)] == first
        again = Sampler(SamplingParams(seed=sampler.seed), 300)
        assert [again.choose(row) for _ in range(20)] == first
        assert Sampler(SamplingParams(), 300).seed != sampler.seed

    def test_a_seed_means_the_same_on_every_machine(self) -> None:
        row = np.zeros(1000, np.float32)
        sampler = Sampler(SamplingParams(seed=42, top_k=0, top_p=1.0), 1000)
        # PCG64(42): random() gives 0.7739…, 0.4388…, 0.8585…, 0.6973… (numpy's documented stream).
        assert [sampler.choose(row) for _ in range(4)] == [773, 438, 858, 697]

    def test_never_a_token_of_no_probability(self) -> None:
        row = np.array([-np.inf, 1, -np.inf, 1, -np.inf], np.float32)
        sampler = Sampler(SamplingParams(top_p=1.0, seed=3), 5)
        assert {sampler.choose(row) for _ in range(50)} == {1, 3}

    @pytest.mark.parametrize("temperature", [5e-324, 1e-300, 1e-9])
    def test_tiny_temperatures_take_the_best(self, temperature: float) -> None:
        row = np.random.default_rng(1).normal(0, 2, 300).astype(np.float32)
        for top_k in (0, 64):
            sampler = Sampler(SamplingParams(temperature=temperature, top_k=top_k, top_p=1.0), 300)
            assert sampler.choose(row) == row.argmax()

    def test_huge_temperature_makes_all_kept_equal(self) -> None:
        row = np.random.default_rng(1).normal(0, 2, 300).astype(np.float32)
        _, shares = Sampler(SamplingParams(temperature=1e300, top_p=1.0), 300).distribution(row)
        assert shares == pytest.approx([1 / 64] * 64)


class TestRepeatPenalty:
    ROW = np.array([2.0, 1.9, -1.0, -1.05, 0.0], np.float32)

    def greedy(self, **values: float) -> Sampler:
        return Sampler(SamplingParams(temperature=0.0, **values), 5)  # type: ignore[arg-type]  # mixed values

    def test_positive_scores_are_divided_and_negative_ones_multiplied(self) -> None:
        sampler = Sampler(SamplingParams(top_k=5, top_p=1.0, repeat_penalty=2.0), 5)
        sampler.begin([0, 2])
        ids, shares = sampler.distribution(self.ROW)
        weights = {token: math.exp(score) for token, score in enumerate([1.0, 1.9, -2.0, -1.05, 0.0])}
        assert ids.tolist() == [1, 0, 4, 3, 2]
        assert shares == pytest.approx([weights[token] / sum(weights.values()) for token in ids.tolist()], rel=1e-6)

    def test_below_one_makes_recent_tokens_likelier(self) -> None:
        sampler = self.greedy(repeat_penalty=0.5)
        sampler.begin([1])
        assert sampler.choose(self.ROW) == 1

    def test_accepted_tokens_enter_and_leave_the_window(self) -> None:
        sampler = self.greedy(repeat_penalty=2.0, repeat_last_n=2)
        sampler.begin([])
        assert sampler.choose(self.ROW) == 0
        sampler.accept(0)
        assert sampler.choose(self.ROW) == 1
        sampler.accept(3)
        assert sampler.choose(self.ROW) == 1
        sampler.accept(3)
        assert sampler.choose(self.ROW) == 0

    def test_only_the_last_tokens_of_the_prompt_count(self) -> None:
        sampler = self.greedy(repeat_penalty=2.0, repeat_last_n=2)
        sampler.begin([0, 3, 3])
        assert sampler.choose(self.ROW) == 0
        sampler.begin([3, 3, 0])
        assert sampler.choose(self.ROW) == 1
        sampler.begin([])
        assert sampler.choose(self.ROW) == 0

    def test_no_reach_or_ids_outside_the_vocabulary_change_nothing(self) -> None:
        sampler = self.greedy(repeat_penalty=2.0, repeat_last_n=0)
        sampler.begin([0])
        sampler.accept(0)
        assert sampler.choose(self.ROW) == 0
        sampler = self.greedy(repeat_penalty=2.0)
        sampler.begin([-5, 5, 10**6])
        assert sampler.choose(self.ROW) == 0

    def test_the_row_is_never_written_to(self) -> None:
        row = self.ROW.copy()
        row.flags.writeable = False
        for temperature in (0.0, 1.0):
            sampler = Sampler(SamplingParams(temperature=temperature, repeat_penalty=1.7), 5)
            sampler.begin([0, 1, 2, 3, 4])
            sampler.choose(row)


class TestUnusableRows:
    @pytest.mark.parametrize("size", [5, 64 * 70, 64 * 70 + 5])
    @pytest.mark.parametrize("where", [0, -1])
    @pytest.mark.parametrize("value", [np.nan, np.inf])
    def test_one_bad_score_is_told(self, size: int, where: int, value: float) -> None:
        row = np.random.default_rng(1).normal(0, 2, size).astype(np.float32)
        row[where] = value
        samplers = [Sampler(params, size) for params in (SamplingParams(), SamplingParams(temperature=0.0), EVERYTHING)]
        for sampler in samplers:
            with pytest.raises(EngineError, match="no usable scores"):
                sampler.choose(row)

    def test_nothing_but_minus_infinity_is_told(self) -> None:
        row = np.full(64 * 70, -np.inf, np.float32)
        for params in (SamplingParams(), SamplingParams(temperature=0.0), EVERYTHING):
            with pytest.raises(EngineError, match="no usable scores"):
                Sampler(params, len(row)).choose(row)

    def test_a_row_of_another_shape_is_refused(self) -> None:
        with pytest.raises(ValueError, match="6 scores"):
            Sampler(SamplingParams(), 6).choose(np.zeros(5, np.float32))

    @settings(deadline=None, max_examples=100)
    @given(row=arrays(np.float32, st.integers(1, 300), elements=st.floats(width=32)))
    def test_any_floats_give_a_token_or_the_error(self, row: Row) -> None:
        for params in (SamplingParams(), EVERYTHING, SamplingParams(temperature=0.0)):
            try:
                token = Sampler(params, len(row)).choose(row)
            except EngineError:
                assert np.isnan(row).any() or not math.isfinite(row.max())
            else:
                assert math.isfinite(row[token])


class TestParams:
    def test_defaults_are_gemma_4s_own(self) -> None:
        assert SamplingParams() == SamplingParams(1.0, 64, 0.95, 0.0, 1.0, 64, None)
        SamplingParams().check()

    @pytest.mark.parametrize(
        "params",
        [
            SamplingParams(temperature=0.0, top_k=0, top_p=1.0, min_p=1.0, repeat_last_n=0),
            SamplingParams(seed=0),
            SamplingParams(seed=MAX_SEED),
            SamplingParams(repeat_penalty=0.5),
        ],
    )
    def test_edges_are_allowed(self, params: SamplingParams) -> None:
        params.check()
        Sampler(params, 3).choose(np.zeros(3, np.float32))

    @pytest.mark.parametrize(
        ("name", "value", "said"),
        [
            *(("temperature", value, "temperature") for value in (-0.1, math.nan, math.inf)),
            ("top_k", -1, "top-k"),
            *(("top_p", value, "top-p") for value in (0.0, -1.0, 1.001, math.nan)),
            *(("min_p", value, "min-p") for value in (-0.1, 1.1, math.nan)),
            *(("repeat_penalty", value, "repeat penalty") for value in (0.0, -1.0, math.nan, math.inf)),
            ("repeat_last_n", -1, "reach"),
            *(("seed", value, "seed") for value in (-1, 2**64)),
        ],
    )
    def test_nonsense_is_refused_with_a_sentence(self, name: str, value: float, said: str) -> None:
        params = msgspec.structs.replace(SamplingParams(), **{name: value})
        with pytest.raises(UsageError) as caught:
            Sampler(params, 10)
        assert said in caught.value.sentence
        assert str(value) in caught.value.sentence
        assert caught.value.sentence.endswith(".")
        assert caught.value.remedy.endswith(".")
