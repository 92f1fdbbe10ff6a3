"""The rows of the list of chats: which there are, under which heading, and what of an excerpt fits into one."""

from __future__ import annotations

import datetime
import re
from collections.abc import Iterable, Sequence
from typing import Final, Literal, NamedTuple
from unicodedata import category

import msgspec

from tandem.chat.conversation import Hit, Summary

Group = Literal["today", "yesterday", "week", "older"]
Kind = Literal["heading", "chat", "hit"]

_LEAD: Final = 24
"""Characters that may stand before the first match of an excerpt, so that it is seen in a narrow list."""
_LONGEST: Final = 240
"""Characters of one row's text that are looked at; more never fits."""
_MARKS: Final = re.compile(r"\*\*|`+|^\s*(?:#{1,6}|>)\s+")


class Row(NamedTuple):
    """A line of the list.

    Attributes:
        kind: What it is.
        conversation: The chat's id; 0 for a heading.
        group: Of a heading; "" otherwise.
        title: Of a chat or a hit, on one line; may be empty.
        text: Snippet or excerpt, on one line.
        updated: Seconds since 1970.
        ranges: The matches in `text`, in Python's characters.
        hit: The hit that it shows.
    """

    kind: Kind
    conversation: int = 0
    group: Group | Literal[""] = ""
    title: str = ""
    text: str = ""
    updated: float = 0.0
    ranges: tuple[tuple[int, int], ...] = ()
    hit: Hit | None = None


class Days(msgspec.Struct, frozen=True):
    """The days that a list is divided by.

    Attributes:
        today: Seconds since 1970 of the last midnight, local time.
        yesterday: Of the one before.
        week: Of the one seven days before today's.
        year: Of the first of January.
        tomorrow: Of the next midnight.
    """

    today: float
    yesterday: float
    week: float
    year: float
    tomorrow: float

    @classmethod
    def of(cls, now: datetime.datetime) -> Days:
        """The days around a moment, given in local time. A day may have 23 or 25 hours."""
        midnight = datetime.datetime.combine(now.date(), datetime.time())

        def days(number: int) -> float:
            return (midnight + datetime.timedelta(days=number)).timestamp()

        return cls(
            today=days(0),
            yesterday=days(-1),
            week=days(-7),
            year=midnight.replace(month=1, day=1).timestamp(),
            tomorrow=days(1),
        )

    def group(self, seconds: float) -> Group:
        """Under which heading a moment stands; what lies in the future counts as today, nonsense as older."""
        if seconds >= self.today:
            return "today"
        if seconds >= self.yesterday:
            return "yesterday"
        return "week" if seconds >= self.week else "older"


def chats(summaries: Iterable[Summary], days: Days) -> list[Row]:
    """The rows for some chats, newest first, with the headings of the groups that are not empty."""
    rows: list[Row] = []
    group: Group | Literal[""] = ""
    for summary in sorted(summaries, key=_age):
        mine = days.group(summary.updated)
        if mine != group:
            group = mine
            rows.append(Row("heading", group=group))
        rows.append(
            Row("chat", summary.id, title=one_line(summary.title), text=plain(summary.snippet), updated=summary.updated)
        )
    return rows


def hits(found: Iterable[Hit], known: frozenset[int] | None = None) -> list[Row]:
    """The rows for what a search found.

    Args:
        found: In the order in which they are shown.
        known: Chats that still exist; None leaves nothing out.
    """
    rows = []
    for hit in found:
        if known is not None and hit.conversation not in known:
            continue
        text, ranges = excerpt(hit.excerpt, hit.ranges)
        rows.append(Row("hit", hit.conversation, "", one_line(hit.title), text, hit.updated, ranges, hit))
    return rows


def one_line(text: str) -> str:
    """A text's beginning on one line: breaks, tabs and runs of spaces become single spaces."""
    if len(text) <= _LONGEST and text.isprintable():
        return text  # thousands of them: nearly all are like this
    return " ".join(text[: 2 * _LONGEST].split())[:_LONGEST]


def plain(text: str) -> str:
    """The same, without the commonest marks of Markdown: a snippet is read, not rendered."""
    return one_line(_MARKS.sub("", text[: 2 * _LONGEST]).strip())


def excerpt(text: str, ranges: Sequence[tuple[int, int]]) -> tuple[str, tuple[tuple[int, int], ...]]:
    """An excerpt cut so that its first match is near the beginning.

    Args:
        text: Any text.
        ranges: Start and end of each match, in Python's characters; those outside the text are left out.

    Returns:
        The text on one line, character for character (a break becomes a space), and the matches in it.
    """
    good = [(start, end) for start, end in ranges if 0 <= start < end <= len(text)]
    first = good[0][0] if good else 0
    cut = 0
    if first > _LEAD:
        # At a space, if one is near: half a word tells nothing.
        space = text.find(" ", first - _LEAD, first)
        cut = space + 1 if space >= 0 else first - _LEAD
    mark = "… " if cut else ""
    shown = mark + "".join(" " if c.isspace() or category(c) == "Cc" else c for c in text[cut : cut + _LONGEST])
    move = len(mark) - cut
    kept = ((start + move, min(end + move, len(shown))) for start, end in good)
    return shown, tuple((start, end) for start, end in kept if start < end)


def utf16(text: str, position: int) -> int:
    """A position in Python's characters, as Qt counts it."""
    return position + sum(1 for character in text[:position] if character > "\uffff")


def _age(summary: Summary) -> tuple[float, int]:
    return (-summary.updated, -summary.id) if summary.updated == summary.updated else (0.0, -summary.id)
