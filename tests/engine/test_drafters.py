"""Prompt lookup and the draft length, which need no model."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tandem.engine.draft_length import MAX_DRAFT_LENGTH, Fixed, draft_length
from tandem.engine.drafters import NgramDrafter
from tandem.errors import UsageError


def test_ngram_proposes_what_followed_the_same_tokens_last_time() -> None:
    text = [1, 2, 3, 4, 5, 1, 2, 3, 9, 9, 2, 3]
    assert NgramDrafter().draft(text, 2).tokens == [9, 9]


def test_ngram_prefers_the_longest_match() -> None:
    text = [7, 1, 2, 3, 50, 8, 2, 3, 60, 7, 1, 2, 3]
    assert NgramDrafter().draft(text, 1).tokens == [50]


def test_ngram_has_nothing_to_say_about_what_it_never_saw() -> None:
    assert NgramDrafter().draft([1, 2, 3, 4], 4).tokens == []
    assert NgramDrafter().draft([], 4).tokens == []
    assert NgramDrafter().draft([1], 4).tokens == []


def test_ngram_never_proposes_more_than_was_asked_or_than_it_saw() -> None:
    drafter = NgramDrafter()
    assert drafter.draft([1, 2, 3, 1, 2], 8).tokens == [3, 1, 2]
    assert drafter.draft([1, 2, 3, 1, 2], 1).tokens == [3]


def slow_lookup(text: list[int], length: int) -> list[int]:
    """The same rule, written without an index."""
    for size in (4, 3, 2):
        if len(text) <= size:
            continue
        suffix = text[-size:]
        for end in range(len(text) - 1, size - 1, -1):
            if text[end - size : end] == suffix:
                return text[end : end + length]
    return []


@given(st.lists(st.integers(0, 3), max_size=40), st.integers(1, 8), st.integers(1, 5))
def test_ngram_index_equals_a_search_however_the_text_grows(text: list[int], length: int, step: int) -> None:
    drafter = NgramDrafter()
    for size in range(0, len(text) + 1, step):
        draft = drafter.draft(text[:size], length)
        assert draft.tokens == slow_lookup(text[:size], length)
        assert len(draft.confidences) == len(draft.tokens)
        assert all(math.isnan(confidence) for confidence in draft.confidences)


def test_fixed_lengths() -> None:
    assert (Fixed(0).next(), Fixed(0).label) == (0, "off")
    assert (Fixed(3).next(), Fixed(3).label) == (3, "3")
    for length in (-1, MAX_DRAFT_LENGTH + 1):
        with pytest.raises(UsageError):
            Fixed(length)


@pytest.mark.parametrize(("label", "length"), [("off", 0), ("0", 0), ("1", 1), ("16", 16), ("007", 7)])
def test_labels_that_make_sense(label: str, length: int) -> None:
    assert draft_length(label).next() == length
