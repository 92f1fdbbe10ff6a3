"""The name that a chat gets from its first message."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tandem.chat.title import LONGEST, one_line, title_of

FAMILY = "👨‍👩‍👧"


@pytest.mark.parametrize(
    ("text", "title"),
    [
        ("Hello", "Hello"),
        ("\n \t\n  First line  \nsecond", "First line"),
        ("a  b\tc", "a b c"),
        ("", ""),
        (" \n\0\n\u202e\n", ""),
        ("x" * 60, "x" * 60),
        ("x" * 61, "x" * 59 + "…"),
        ("word " * 20, "word " * 11 + "word…"),
        ("a\u202eb\u2066c", "abc"),
        ("한" * 80, "한" * 59 + "…"),
        # A very long word at the end does not leave half of the title empty.
        ("short " + "x" * 100, "short " + "x" * 53 + "…"),
        ("cafe\u0301", "café"),
    ],
)
def test_title(text: str, title: str) -> None:
    assert title_of(text) == title


@pytest.mark.parametrize("whole", [FAMILY, "👍🏽", "🇰🇷", "ก็", "e\u0329", "✈️"])
def test_what_is_seen_as_one_character_is_not_cut(whole: str) -> None:
    for before in range(LONGEST - 8, LONGEST + 2):
        title = title_of("x" * before + whole + "y" * 40)
        rest = title.removesuffix("…")[before:]
        assert rest.startswith(whole) or rest == "", (before, title)
        assert len(title) <= LONGEST


def test_flags_are_cut_between_flags() -> None:
    for before in (0, 1):
        title = title_of("x" * before + "🇰🇷" * 60)
        assert (len(title) - 1 - before) % 2 == 0
        assert len(title) in (LONGEST, LONGEST - 1)


@given(st.text(max_size=200))
def test_a_title_is_short_and_one_line(text: str) -> None:
    title = title_of(text)
    assert len(title) <= LONGEST
    assert not any(unicodedata.category(character) in ("Cc", "Zl", "Zp") for character in title)
    assert title == title.strip()
    assert one_line(title) == title


def test_a_megabyte_is_no_matter() -> None:
    assert title_of("\n" * 500_000 + "x" * 500_000) == "x" * 59 + "…"
