"""Blocks and the text in them, as they are written into the transcript's document."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from PySide6.QtCore import QCoreApplication, Qt
from PySide6.QtGui import QFont, QTextBlockFormat, QTextCharFormat, QTextCursor

from tandem.ui.markdown import Span, Style
from tandem.ui.transcript_look import BARS, Look, link

THOUGHT_BAR: Final = "7"
"""Where the line along a thought stands; see `transcript_look.BARS`."""
_ISOLATE, _END = "\u2066", "\u2069"


def pin(cursor: QTextCursor) -> None:
    """Lets a cursor stay where it is when something is inserted there."""
    cursor.setKeepPositionOnInsert(True)


def unpin(cursor: QTextCursor) -> None:
    """Lets it move along again. Qt has only kept its position in place: the other end of its selection has moved."""
    cursor.setKeepPositionOnInsert(False)
    cursor.setPosition(cursor.position())


class Card(NamedTuple):
    """Code in the document."""

    group: int
    language: str


class Place(NamedTuple):
    """What the next block has to know of what stands above it.

    Attributes:
        first: Whether nothing does.
        owed: Pixels that the background above reaches below its last line.
        card: The card that is open still.
        parts: How many parts of its code are final.
        columns: Widths in pixels of the table that is open still.
        kind: Kind of the leaf above.
        item: Whether that stood in a list.
    """

    first: bool = True
    owed: int = 0
    card: Card | None = None
    parts: int = 0
    columns: tuple[int, ...] = ()
    kind: str = ""
    item: bool = False


class BlockWriter:
    """Writes behind a cursor.

    Args:
        cursor: Stands at the end of the block behind which blocks are to be added; moves along.
        look: Formats.
        codes: Gets the code of each card, by its group.
        role: Colour of prose; "" for the usual one.
        indent: Pixels that all of it is moved in, with a line along it like a quote's.
    """

    def __init__(
        self,
        cursor: QTextCursor,
        look: Look,
        *,
        codes: dict[int, list[str]],
        role: str = "",
        indent: int = 0,
    ) -> None:
        self.cursor = cursor
        self.look = look
        self.place = Place()
        self.codes = codes
        self.role = role
        self._indent = indent
        self.prose = look.chars(role)

    @property
    def indent(self) -> int:
        """Pixels that all of it is moved in."""
        return self._indent

    def code(self, group: int) -> list[str]:
        """The parts of a card's code."""
        return self.codes.get(group, [])

    def block(self, block: QTextBlockFormat, chars: QTextCharFormat) -> None:
        """Begins a block, below whatever the background above still needs."""
        place = self.place
        if place.owed:
            block.setTopMargin(block.topMargin() + place.owed)
        if self._indent and not block.hasProperty(BARS):
            block.setProperty(BARS, THOUGHT_BAR)
        self.cursor.insertBlock(block, chars)
        self.place = Place(first=False)

    def spans(self, spans: Sequence[Span], base: QTextCharFormat) -> None:
        """Writes spans at the end of the block; code and formulas run from left to right wherever they stand."""
        rtl = self.cursor.blockFormat().layoutDirection() == Qt.LayoutDirection.RightToLeft
        for span in spans:
            if span.style is Style.NONE and not span.href:
                self.cursor.insertText(span.text, base)
                continue
            text, chars = self._styled(span, base)
            if rtl and (Style.CODE | Style.MATH) & span.style:
                text = f"{_ISOLATE}{text}{_END}"
            self.cursor.insertText(text, chars)

    def _styled(self, span: Span, base: QTextCharFormat) -> tuple[str, QTextCharFormat]:
        look, style, text = self.look, span.style, span.text
        chars = QTextCharFormat(base)
        if Style.CODE in style:
            chars.merge(look.inline_code())
        if Style.STRONG in style:
            chars.setFontWeight(QFont.Weight.DemiBold)
        if Style.EMPHASIS in style:
            chars.setFontItalic(True)
        if Style.STRIKE in style:
            chars.setFontStrikeOut(True)
        if Style.IMAGE in style:
            chars.setForeground(look.theme.colour("muted"))
            chars.setFontItalic(True)
            translate = QCoreApplication.translate
            named = translate("Transcript", "[Image: {alt} – not loaded]").format(alt=text)
            text = named if text.strip() else translate("Transcript", "[Image – not loaded]")
        if span.href:
            chars = link(chars, span.href, span.href)
            chars.setForeground(look.theme.colour("accent"))
            chars.setFontUnderline(True)
        return text, chars
