"""What the transcript's text looks like: formats and distances for one theme, and the properties that blocks carry.

Backgrounds are not the document's: `transcript_paint` draws them behind it, from the properties of the blocks.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Final

from PySide6.QtCore import Qt
from PySide6.QtGui import (
    QColor,
    QFont,
    QFontMetricsF,
    QTextBlockFormat,
    QTextCharFormat,
    QTextFormat,
    QTextImageFormat,
    QTextOption,
)

from tandem.ui.theme import ThemeManager

_USER: Final = QTextFormat.Property.UserProperty.value
PAINT: Final = _USER + 1
"""Of a block: its `Paint`."""
GROUP: Final = _USER + 2
"""Of a block: a number; blocks with the same one, which follow each other, share one background."""
BARS: Final = _USER + 3
"""Of a block: where the lines of the quotes around it stand, in pixels from the column's left edge, as "0,24"; with
a minus sign from its right edge."""
CHROME: Final = _USER + 4
"""Of a block: that it is not part of a message and is never copied."""
MARKER: Final = _USER + 5
"""Of a block: that it begins with a list's marker and a tabulator."""
ICONS: Final = "tandem-icon:"
"""Scheme of the images in the document, all of them our own icons: `tandem-icon:copy/muted/16/dark`."""
ACTS: Final = "tandem-do:"
"""Scheme of the links that do something here: `tandem-do:copy/12`. Text from outside never gets one."""

COLUMN: Final = 760
"""Widest column of text, in pixels at 100 %."""


class Paint(IntEnum):
    """What is drawn behind a block."""

    NOTHING = 0
    BUBBLE = 1
    CODE = 2
    FAILURE = 3
    RULE = 4


class Look:
    """Formats and distances.

    Args:
        manager: Whose theme they are for.
        column: Width of the column of text in pixels.
    """

    def __init__(self, manager: ThemeManager, column: int) -> None:
        theme = manager.theme
        self.theme = theme
        self.column = column
        self.font = QFont(manager.font("body"))
        self.em = theme.px(15)
        self.font.setPixelSize(self.em)
        self.mono = manager.font("mono", mono=True)
        self.mono_px = theme.px(13)
        self.leading = round(self.em * 1.6)
        self.step = theme.px(26)
        self.gap = theme.px(12)
        self.card_pad = theme.px(12)
        self.bubble_pad = theme.px(14)
        self.bubble_pad_y = theme.px(9)
        self.icon = theme.px(16)
        self._metrics = QFontMetricsF(self.font)

    def advance(self, text: str) -> float:
        """Width of a line of prose in pixels."""
        return self._metrics.horizontalAdvance(text)

    def chars(self, role: str = "", size: int = 0, weight: int = 0, italic: bool = False) -> QTextCharFormat:
        """A character format that differs from prose in what is given: a colour's role, a size in pixels, a weight."""
        made = QTextCharFormat()
        if role:
            made.setForeground(QColor(self.theme.colour(role)))
        if size:
            made.setProperty(QTextFormat.Property.FontPixelSize, size)
        if weight:
            made.setFontWeight(weight)
        if italic:
            made.setFontItalic(True)
        return made

    def code(self, role: str = "syntax.text") -> QTextCharFormat:
        """Code in a card."""
        made = self.chars(role, self.mono_px)
        made.setFontFamilies(self.mono.families())
        made.setFontFixedPitch(True)
        made.setFontStyleHint(QFont.StyleHint.Monospace)
        return made

    def inline_code(self) -> QTextCharFormat:
        """Code in a line of prose."""
        made = self.code("text")
        made.setProperty(QTextFormat.Property.FontPixelSize, self.theme.px(13.5))
        made.setBackground(self.theme.colour("hover"))
        return made

    def block(
        self, above: int = 0, left: int = 0, right: int = 0, leading: int | None = None, rtl: bool = False
    ) -> QTextBlockFormat:
        """A block format: space above, margins, height of its lines at least `leading`, direction."""
        made = QTextBlockFormat()
        made.setTopMargin(above)
        made.setLeftMargin(left)
        made.setRightMargin(right)
        height = self.leading if leading is None else leading
        made.setLineHeight(height, QTextBlockFormat.LineHeightTypes.MinimumHeight.value)
        made.setLayoutDirection(Qt.LayoutDirection.RightToLeft if rtl else Qt.LayoutDirection.LeftToRight)
        return made

    def thin(self) -> tuple[QTextBlockFormat, QTextCharFormat]:
        """Formats of a block that must be there and should not be seen, such as the one behind a table."""
        block = QTextBlockFormat()
        block.setLineHeight(1, QTextBlockFormat.LineHeightTypes.FixedHeight.value)
        block.setProperty(CHROME, True)
        return block, self.chars(size=1)

    def image(self, name: str, role: str, size: int) -> QTextImageFormat:
        """One of our icons as a character."""
        made = QTextImageFormat()
        made.setName(f"{ICONS}{name}/{role}/{size}/{self.theme.name}")
        made.setWidth(size)
        made.setHeight(size)
        made.setVerticalAlignment(QTextCharFormat.VerticalAlignment.AlignMiddle)
        return made


def hanging(block: QTextBlockFormat, indent: int, rtl: bool) -> None:
    """Lets the first line begin `indent` pixels before the others, for a list's marker and a tabulator."""
    if rtl:
        block.setRightMargin(block.rightMargin() + indent)
    else:
        block.setLeftMargin(block.leftMargin() + indent)
    block.setTextIndent(-indent)
    block.setTabPositions([QTextOption.Tab(indent, QTextOption.TabType.LeftTab)])
    block.setProperty(MARKER, True)


def link(chars: QTextCharFormat, href: str, tip: str = "") -> QTextCharFormat:
    """The same format as a link."""
    made = QTextCharFormat(chars)
    made.setAnchor(True)
    made.setAnchorHref(href)
    if tip:
        made.setToolTip(tip)
    return made
