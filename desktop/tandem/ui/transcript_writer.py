"""Writes blocks into the transcript's document: paragraphs, headings, lists, quotes, code, formulas and tables."""

from __future__ import annotations

import itertools
from typing import Final

from PySide6.QtCore import QCoreApplication, Qt
from PySide6.QtGui import (
    QFont,
    QTextBlockFormat,
    QTextOption,
)

from tandem.ui.markdown import LINE_BREAK, Item, Leaf, right_to_left, visible
from tandem.ui.transcript_blocks import THOUGHT_BAR, BlockWriter, Card, Place
from tandem.ui.transcript_look import ACTS, BARS, CHROME, GROUP, PAINT, Paint, hanging, link
from tandem.ui.transcript_table import write_table

_BULLETS: Final = "•◦▪"
_HEADINGS: Final = (0, 1.5, 1.28, 1.12, 1.0, 1.0, 0.94)

_groups = itertools.count(1)


class Writer(BlockWriter):
    """Writes Markdown's blocks."""

    def leaf(self, leaf: Leaf, again: bool = False) -> None:
        """Writes a leaf; with `again` it goes on with the card, table or paragraph above."""
        above = 0 if again else self._above(leaf)
        if again:
            self.place = self.place._replace(owed=0)
        block = self._inset(leaf, above, again)
        kind = leaf.kind
        if kind in ("fence", "code"):
            self._code(leaf, block, again)
        elif kind == "table":
            write_table(self, leaf, block, again)
        elif kind == "rule":
            block.setProperty(PAINT, int(Paint.RULE))
            self.block(block, self.prose)
        elif kind == "math":
            self._formula(leaf, block)
        else:
            self._paragraph(leaf, block)
        self.place = self.place._replace(kind=kind, item=bool(leaf.containers))

    def _above(self, leaf: Leaf) -> int:
        """The distance to what stands above."""
        look, place = self.look, self.place
        if place.first:
            return 0
        if leaf.kind == "heading":
            return look.theme.px(22 if leaf.level < 3 else 16)
        if leaf.marker and place.item:
            return look.theme.px(5)
        if place.kind == "heading":
            return look.theme.px(6)
        return look.theme.px(8) if place.item and leaf.containers else look.gap

    def _inset(self, leaf: Leaf, above: int, again: bool) -> QTextBlockFormat:
        """The block's format with the margins of its quotes and items."""
        look = self.look
        prose = leaf.kind in ("paragraph", "heading", "empty")
        rtl = prose and right_to_left("".join(span.text for span in leaf.spans))
        inset: int = self._indent
        bars = [THOUGHT_BAR] if inset else []
        last = len(leaf.containers) - 1
        number = ""
        depth = 0
        for at, container in enumerate(leaf.containers):
            if container is None:
                bars.append(str(-inset - 1 if rtl else inset))
                inset += look.theme.px(18)
                continue
            depth += 1
            number = _marker(container, depth)
            if at < last or not leaf.marker or leaf.kind not in ("paragraph", "heading", "empty"):
                inset += self._step(number)
        block = look.block(above, 0 if rtl else inset, inset if rtl else 0, rtl=rtl)
        if rtl and self._indent:
            block.setLeftMargin(self._indent)
        if bars:
            block.setProperty(BARS, ",".join(bars))
        if leaf.marker and not again:
            if not prose:  # its marker stands in a line of its own
                own = self._inset(leaf._replace(kind="empty"), above, False)
                self._paragraph(leaf._replace(kind="empty", spans=()), own)
                block.setTopMargin(look.theme.px(4))
            else:
                hanging(block, self._step(number), rtl)
        return block

    def _step(self, number: str) -> int:
        return (
            max(self.look.step, round(self.look.advance(number)) + self.look.theme.px(10))
            if len(number) > 2
            else (self.look.step)
        )

    def _paragraph(self, leaf: Leaf, block: QTextBlockFormat) -> None:
        look, base = self.look, self.prose
        if leaf.kind == "heading":
            size = round(look.em * _HEADINGS[leaf.level])
            base = look.chars(self.role, size, QFont.Weight.DemiBold)
            block.setHeadingLevel(leaf.level)
            block.setLineHeight(round(size * 1.35), QTextBlockFormat.LineHeightTypes.MinimumHeight.value)
        self.block(block, base)
        if leaf.marker:
            items = [item for item in leaf.containers if item is not None]
            rtl = block.layoutDirection() == Qt.LayoutDirection.RightToLeft
            gap = "\u2003" if rtl else "\t"
            mark = leaf.info or _marker(items[-1], len(items))
            self.cursor.insertText(f"{mark}{gap}", look.chars("muted"))
        self.spans(leaf.spans, base)

    def _formula(self, leaf: Leaf, block: QTextBlockFormat) -> None:
        look = self.look
        block.setLeftMargin(block.leftMargin() + look.step)
        block.setLineHeight(round(look.em * 1.7), QTextBlockFormat.LineHeightTypes.MinimumHeight.value)
        chars = look.chars(self.role, look.theme.type.lead)
        self.block(block, chars)
        self.cursor.insertText(visible(leaf.code, code=True).replace("\n", LINE_BREAK), chars)

    # Code

    def _code(self, leaf: Leaf, block: QTextBlockFormat, again: bool) -> None:
        """A card: a line with language and Copy, then one block a line of code."""
        look, pad = self.look, self.look.card_pad
        place = self.place
        card = place.card if again else None
        first = card is None
        if card is None:
            card = Card(next(_groups), leaf.info)
            self.codes[card.group] = []
            self._card_head(card, block)
        shown = visible(leaf.code, code=True)
        del self.codes[card.group][place.parts if again else 0 :]  # what was written still open
        self.codes[card.group].append(leaf.code)
        line = look.block(0, int(block.leftMargin()) + pad, pad, leading=round(look.mono_px * 1.55))
        line.setProperty(PAINT, int(Paint.CODE))
        line.setProperty(GROUP, card.group)
        if block.hasProperty(BARS):
            line.setProperty(BARS, block.property(BARS))
        line.setAlignment(Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignAbsolute)
        chars = look.code()
        lines = shown.split("\n")
        if lines and not lines[-1]:
            lines.pop()
        for text in lines:
            if first:
                line.setTopMargin(look.theme.px(4))
            self.block(QTextBlockFormat(line), chars)
            if first:
                line.setTopMargin(0)
                first = False
            for at in range(0, max(len(text), 1), 4000):  # a line without an end is laid out in pieces
                if at:
                    self.block(QTextBlockFormat(line), chars)
                self.cursor.insertText(text[at : at + 4000], chars)
        self.place = Place(first=False, owed=pad, card=card, parts=len(self.codes[card.group]))

    def _card_head(self, card: Card, block: QTextBlockFormat) -> None:
        look, pad = self.look, self.look.card_pad
        head = look.block(
            int(block.topMargin()), int(block.leftMargin()) + pad, pad, leading=round(look.theme.type.small * 1.4)
        )
        head.setTopMargin(block.topMargin() + look.theme.px(7))
        head.setProperty(PAINT, int(Paint.CODE))
        head.setProperty(GROUP, card.group)
        head.setProperty(CHROME, True)
        if block.hasProperty(BARS):
            head.setProperty(BARS, block.property(BARS))
        chars = look.chars("muted", look.theme.type.small)
        translate = QCoreApplication.translate
        name = visible(card.language, code=True)[:40] or translate("Transcript", "code")
        width = look.column - head.leftMargin() - head.rightMargin()
        head.setTabPositions([QTextOption.Tab(width - 2, QTextOption.TabType.RightTab)])
        self.block(head, chars)
        act = link(chars, f"{ACTS}code/{card.group}", translate("Transcript", "Copy this code"))
        self.cursor.insertText(f"{name}\t", chars)
        self.cursor.insertText(translate("Transcript", "Copy"), act)


def _marker(item: Item, depth: int) -> str:
    return _BULLETS[min(depth, len(_BULLETS)) - 1] if item.number is None else f"{item.number}."
