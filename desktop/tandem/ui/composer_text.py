"""What may come into the composer: plain text, and how much of it a text field can take without stalling."""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from PySide6.QtCore import QMimeData
from PySide6.QtGui import QTextDocumentFragment

MAX_CHARACTERS: Final = 4_000_000
"""More than this is never taken: no model's context holds it, and laying it out or saving it takes seconds."""

# Laying out a text takes some 1 ms for each 1,000 characters, and a key press lays out its paragraph anew, at a cost
# that grows with the square of the longest word: 10 ms for 10,000 characters, 30 s for a million.
FIELD_CHARACTERS: Final = 30_000
FIELD_PARAGRAPH: Final = 8_000
FIELD_LINES: Final = 4_000

_BREAKS: Final = re.compile("\r\n|[\r\n\u2028\u2029\x0b\x0c\x85]")
# Control characters that no text needs, and what Qt takes for the borders of a frame or the place of a picture.
_CONTROLS: Final = re.compile("[\x00-\x08\x0e-\x1f\x7f\ufdd0\ufdd1\ufffc]")


class Found(NamedTuple):
    """What some dropped or pasted data are.

    Attributes:
        text: Their text; None where they hold none that could be taken.
        foreign: Whether they hold something else that a person would expect to be taken: a picture, a file.
    """

    text: str | None
    foreign: bool


def clean(text: str) -> str:
    """Text with ordinary line breaks and without control characters."""
    return _CONTROLS.sub("", _BREAKS.sub("\n", text))


def found_in(data: QMimeData | None) -> Found:
    """Looks into dropped or pasted data.

    Files count as foreign even where their paths come along as text; a picture beside real text, as office programs
    offer one, does not.
    """
    if data is None:
        return Found(None, False)
    if data.hasUrls() and any(url.isLocalFile() for url in data.urls()):
        return Found(None, True)
    if data.hasText() and data.text():
        return Found(data.text(), False)
    if data.hasHtml():
        return Found(QTextDocumentFragment.fromHtml(data.html()[:MAX_CHARACTERS]).toPlainText(), False)
    kinds = [str(kind) for kind in data.formats()]
    foreign = (
        data.hasImage() or data.hasUrls() or any(kind.startswith(("image/", "audio/", "video/")) for kind in kinds)
    )
    return Found(None, foreign or bool(kinds))


def fits_field(text: str) -> bool:
    """Whether a text field shows and edits a text without stalling."""
    if len(text) > FIELD_CHARACTERS or text.count("\n") > FIELD_LINES:
        return False
    return len(text) <= FIELD_PARAGRAPH or max(map(len, text.split("\n"))) <= FIELD_PARAGRAPH
