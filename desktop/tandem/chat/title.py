"""The name that a chat gets from its first message."""

from __future__ import annotations

import re
import unicodedata
from typing import Final

LONGEST: Final = 60
"""Most characters of a made title."""

_JOINER: Final = "\u200d"
_CONTROLS: Final = re.compile(r"[\x00-\x1f\x7f-\x9f]")
# What reorders or hides text around it, and so has no place in a list of names.
_UNSEEN: Final = re.compile(r"[\u202a-\u202e\u2066-\u2069\u200e\u200f\u061c\ufeff]")
_MODIFIERS: Final = range(0x1F3FB, 0x1F400)
_FLAGS: Final = range(0x1F1E6, 0x1F200)


def title_of(text: str, longest: int = LONGEST) -> str:
    """The first line that says anything, cut at a word; empty when none does.

    Args:
        text: A message.
        longest: Most characters, the dots at a cut included.
    """
    for line in text.splitlines():
        if title := one_line(line):
            return _cut(title, longest)
    return ""


def one_line(text: str) -> str:
    """Text on one line, without control characters and what reorders its surroundings."""
    line = " ".join(unicodedata.normalize("NFC", text).split())
    if line.isprintable():
        return line
    return " ".join(_CONTROLS.sub(" ", _UNSEEN.sub("", line)).split())


def _cut(title: str, longest: int) -> str:
    if len(title) <= longest:
        return title
    end = longest - 1
    if title[end] != " ":
        space = title.rfind(" ", 0, end)
        # A word longer than a third of the title, or a language without spaces, is cut itself.
        end = space if space >= longest * 2 // 3 else _between_characters(title, end)
    return f"{title[:end].rstrip()}…"


def _between_characters(text: str, place: int) -> int:
    """The last place up to `place` that is not inside what is seen as one character."""
    end = place
    while end > 0 and (
        unicodedata.category(text[end]).startswith("M")
        or text[end] == _JOINER
        or text[end - 1] == _JOINER
        or ord(text[end]) in _MODIFIERS
    ):
        end -= 1
    flags = 0
    while end - flags > 0 and ord(text[end - flags - 1]) in _FLAGS:
        flags += 1
    if ord(text[end]) in _FLAGS and flags % 2:
        end -= 1
    return end or place
