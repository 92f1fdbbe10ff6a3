"""The counting and its identities."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tandem.engine.metrics import RunStats, flags_of


@st.composite
def passes(draw: st.DrawFn) -> tuple[int, int]:
    """Drafts judged and accepted in a pass that was not cut."""
    judged = draw(st.integers(0, 16))
    return judged, draw(st.integers(0, judged))


@given(st.lists(passes(), min_size=1, max_size=50), st.booleans())
def test_identities_hold_whatever_was_accepted(runs: list[tuple[int, int]], thinking: bool) -> None:
    stats = RunStats()
    stats.count_pass(1, 0, 0, 0.0, 0.0, 0.0, thought=thinking)
    for index, (judged, accepted) in enumerate(runs):
        stats.count_pass(accepted + 1, judged, accepted, 0.5, 0.1, 0.3, thought=thinking and index % 2 == 0)
    stats.finish()
    assert stats.generated == stats.accepted + stats.passes
    assert stats.decode_s == pytest.approx(0.5 * len(runs))
    assert stats.decode_tok_s == pytest.approx((stats.generated - 1) / stats.decode_s)
    assert stats.tokens_per_pass == pytest.approx(1 + stats.accepted / stats.passes)
    assert len(stats.accepted_at) == len(stats.drafted_at) == max(judged for judged, _ in runs)
    assert all(hit <= tried for hit, tried in zip(stats.accepted_at, stats.drafted_at, strict=True))
    if stats.verified:
        assert stats.acceptance_rate == stats.accepted / stats.verified


def test_a_pass_cut_inside_its_accepted_drafts_is_the_only_exception() -> None:
    stats = RunStats()
    stats.count_pass(1, 0, 0, 0.0, 0.0, 0.0, thought=False)
    stats.count_pass(2, 2, 2, 0.5, 0.1, 0.3, thought=False)
    stats.finish()
    assert stats.generated == stats.accepted + stats.passes - 1


def test_miscounting_is_noticed() -> None:
    stats = RunStats()
    with pytest.raises(AssertionError):
        stats.count_pass(3, 4, 1, 0.0, 0.0, 0.0, thought=False)
    with pytest.raises(AssertionError):
        stats.count_pass(2, 1, 2, 0.0, 0.0, 0.0, thought=False)
    stats.count_pass(1, 1, 1, 0.0, 0.0, 0.0, thought=False)
    stats.count_pass(1, 1, 1, 0.0, 0.0, 0.0, thought=False)
    with pytest.raises(AssertionError):
        stats.finish()


def test_an_answer_of_nothing_has_no_rates() -> None:
    stats = RunStats()
    stats.finish()
    assert (stats.decode_tok_s, stats.tokens_per_pass, stats.acceptance_rate) == (None, None, None)


@pytest.mark.parametrize(
    ("drafts", "emitted", "drafted", "accepted"),
    [
        ([], [5], [False], [False]),
        ([5, 6], [5, 6, 7], [True, True, False], [True, True, False]),
        ([5, 6], [5, 9], [True, True], [True, False]),
        ([5, 6], [9], [True], [False]),
        ([5, 6], [5], [True], [True]),
    ],
)
def test_flags_come_from_the_comparison_itself(
    drafts: list[int], emitted: list[int], drafted: list[bool], accepted: list[bool]
) -> None:
    assert flags_of(drafts, emitted) == (drafted, accepted)
