"""Tables in the transcript's document: quiet lines, columns as wide as their words need."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from PySide6.QtCore import Qt
from PySide6.QtGui import (
    QFont,
    QTextBlockFormat,
    QTextCursor,
    QTextFrameFormat,
    QTextLength,
    QTextTableCellFormat,
    QTextTableFormat,
)

from tandem.ui.markdown import Leaf, Span, right_to_left
from tandem.ui.transcript_blocks import BlockWriter, Place
from tandem.ui.transcript_look import BARS, Look

MAX_COLUMNS: Final = 12
"""Columns of a table that is shown as one; with more, each row is a paragraph."""
WORD: Final = 24
"""Characters of a word in a table that are not broken."""
_CELL_LEFT, _CELL_RIGHT = 4, 12


def write_table(writer: BlockWriter, leaf: Leaf, block: QTextBlockFormat, again: bool) -> None:
    """Writes a table's rows; with `again` as a continuation of the table above, without its heading."""
    look = writer.look
    columns = len(leaf.rows[0]) if leaf.rows else 0
    room = look.column - int(block.leftMargin())
    if not columns:
        return
    kept = again and len(writer.place.columns) == columns
    widths = writer.place.columns if kept else _widths(look, leaf.rows, room)
    if not widths:
        _records(writer, leaf, block)
        return
    rows = leaf.rows[1:] if again else leaf.rows
    if not rows:
        return
    made = QTextTableFormat()
    made.setBorder(0)
    made.setBorderCollapse(True)
    made.setCellSpacing(0)
    made.setCellPadding(0)
    made.setLeftMargin(block.leftMargin())
    made.setTopMargin(0 if again else block.topMargin() + writer.place.owed)
    made.setWidth(QTextLength(QTextLength.Type.FixedLength, room))
    made.setColumnWidthConstraints([QTextLength(QTextLength.Type.FixedLength, width) for width in widths])
    if not again:
        made.setHeaderRowCount(1)
    table = writer.cursor.insertTable(len(rows), columns, made)
    formats = {head: _cell_format(look, head) for head in (True, False)}
    for at, row in enumerate(rows):
        head = not again and at == 0
        for column, cell in enumerate(row):
            place = table.cellAt(at, column)
            _cell(writer, place.firstCursorPosition(), cell, leaf.aligns[column], head, block)
            place.setFormat(formats[head])  # last: Qt keeps it in the format of the cell's first block
    writer.cursor.setPosition(table.lastPosition() + 1)
    thin, chars = look.thin()
    writer.cursor.setBlockFormat(thin)
    writer.cursor.setBlockCharFormat(chars)
    writer.cursor.insertText("\u200b", chars)  # Qt puts an empty block beside the table instead of below it
    writer.place = Place(first=False, columns=widths)


def _widths(look: Look, rows: Sequence[Sequence[Sequence[Span]]], room: int) -> tuple[int, ...]:
    """Widths of a table's columns in pixels, no word broken; nothing when there is no room for that."""
    if len(rows[0]) > MAX_COLUMNS:
        return ()
    least, wished = [], []
    pad = look.theme.px(_CELL_LEFT + _CELL_RIGHT) + look.theme.px(4)
    for column in range(len(rows[0])):
        texts = ["".join(span.text for span in row[column]) for row in rows[:40] if column < len(row)]
        words = [word[:WORD] for text in texts for word in text.split()] or [""]
        least.append(look.advance(max(words, key=len)) + pad)
        wished.append(max(min(look.advance(max(texts, key=len)[:200]), room * 0.6) + pad, least[-1]))
    if sum(least) > room:
        return ()
    spare = room - sum(least)
    wants = [wish - little for wish, little in zip(wished, least, strict=True)]
    share = min(spare / sum(wants), 1.0) if sum(wants) else 0.0
    widths = [little + share * want for little, want in zip(least, wants, strict=True)]
    left = (room - sum(widths)) / len(widths)
    return tuple(int(width + left) for width in widths)


def _cell(
    writer: BlockWriter, cursor: QTextCursor, cell: Sequence[Span], align: str, head: bool, outer: QTextBlockFormat
) -> None:
    look = writer.look
    rtl = right_to_left("".join(span.text for span in cell))
    block = look.block(leading=round(look.em * 1.45), rtl=rtl)
    if outer.hasProperty(BARS):
        block.setProperty(BARS, outer.property(BARS))
    sides = {"right": Qt.AlignmentFlag.AlignRight, "center": Qt.AlignmentFlag.AlignHCenter}
    block.setAlignment(sides.get(align, Qt.AlignmentFlag.AlignLeft))
    cursor.setBlockFormat(block)
    base = look.chars(writer.role, look.theme.type.body, QFont.Weight.DemiBold if head else 0)
    cursor.setBlockCharFormat(base)
    inner = BlockWriter(cursor, look, codes=writer.codes, role=writer.role)
    inner.spans(cell, base)


def _cell_format(look: Look, head: bool) -> QTextTableCellFormat:
    made = QTextTableCellFormat()
    made.setTopPadding(look.theme.px(5))
    made.setBottomPadding(look.theme.px(6))
    made.setLeftPadding(look.theme.px(_CELL_LEFT))
    made.setRightPadding(look.theme.px(_CELL_RIGHT))
    made.setBottomBorder(1)
    made.setBottomBorderStyle(QTextFrameFormat.BorderStyle.BorderStyle_Solid)
    made.setBottomBorderBrush(look.theme.colour("edge" if head else "line"))
    return made


def _records(writer: BlockWriter, leaf: Leaf, block: QTextBlockFormat) -> None:
    """A table too wide for the column: each row is a paragraph of names and values."""
    head, *rows = leaf.rows
    base = writer.look.chars(writer.role, writer.look.theme.type.body)
    bold = writer.look.chars(writer.role, writer.look.theme.type.body, QFont.Weight.DemiBold)
    for row in rows or [head]:
        writer.block(QTextBlockFormat(block), base)
        for at, cell in enumerate(row):
            if at:
                writer.cursor.insertText("  ·  ", writer.look.chars("faint"))
            if rows and at < len(head):
                writer.spans(head[at], bold)
                writer.cursor.insertText("\u00a0", base)
            writer.spans(cell, base)
        block.setTopMargin(writer.look.theme.px(8))
