"""Plain text out of the transcript: what was said, without what the window put around it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from PySide6.QtGui import QTextBlock, QTextCursor, QTextDocument

from tandem.ui.transcript_flow import Flow
from tandem.ui.transcript_look import CHROME, GROUP, MARKER, Look
from tandem.ui.transcript_writer import Writer

_OWN: re.Pattern[str] = re.compile("[\ufffc\u200b\u2066\u2069]")


def selected_text(cursor: QTextCursor) -> str:
    """The text of a selection: no icons, no buttons, no lines of figures; table cells divided by tabulators."""
    if not cursor.hasSelection():
        return ""
    if cursor.hasComplexSelection():  # cells of a table, of which its ends do not tell
        return _cells(cursor)
    return text_between(cursor.document(), cursor.selectionStart(), cursor.selectionEnd())


def text_between(document: QTextDocument, start: int, end: int) -> str:
    """The text between two positions of the document."""
    parts: list[str] = []
    before: QTextBlock | None = None
    apart = False  # whether something that is not copied stands between the two
    for block in _blocks(document, start, end):
        if block.blockFormat().property(CHROME):
            apart = apart or block.text() != "\u200b"
            continue
        first, last = max(start - block.position(), 0), min(end - block.position(), block.length() - 1)
        raw = block.text().encode("utf-16-le", "surrogatepass")[2 * first : 2 * last]
        text = _OWN.sub("", raw.decode("utf-16-le", "replace")).replace("\u2028", "\n").replace("\u00a0", " ")
        if block.blockFormat().property(MARKER):
            text = text.replace("\t", " ", 1).replace("\u2003", " ", 1)
        if before is not None:
            parts.append("\n\n" if apart else _between(before, block))
        parts.append(text)
        before, apart = block, False
    return "".join(parts)


def plain_text(markdown: str, look: Look) -> str:
    """Markdown as plain text, as the transcript would show it."""
    document = QTextDocument()
    document.setUndoRedoEnabled(False)
    cursor = QTextCursor(document)
    flow = Flow(Writer(cursor, look, codes={}), lambda _job: None)
    for _ in flow.fill(markdown):
        pass
    return text_between(document, 0, document.characterCount()).strip("\n")


def _cells(cursor: QTextCursor) -> str:
    table = cursor.currentTable()
    found: Any = cursor  # the stubs give the call's C++ arguments
    first_row, rows, first_column, columns = found.selectedTableCells()
    lines = []
    for row in range(first_row, first_row + rows):
        cells = [table.cellAt(row, column) for column in range(first_column, first_column + columns)]
        texts = [text_between(cursor.document(), cell.firstPosition(), cell.lastPosition()) for cell in cells]
        lines.append("\t".join(texts))
    return "\n".join(lines)


def _blocks(document: QTextDocument, start: int, end: int) -> Iterator[QTextBlock]:
    block = document.findBlock(start)
    while block.isValid() and block.position() < max(end, start + 1):
        yield block
        block = block.next()


def _between(before: QTextBlock, block: QTextBlock) -> str:
    """What divides two blocks: nothing is asked of the layout, which may not have come that far."""
    table, last = QTextCursor(block).currentTable(), QTextCursor(before).currentTable()
    if table is not None and table == last:
        return "\t" if table.cellAt(block.position()).row() == table.cellAt(before.position()).row() else "\n"
    fmt, other = block.blockFormat(), before.blockFormat()
    if table is not None or last is not None or other.headingLevel():
        return "\n\n"
    if fmt.property(GROUP) is not None and fmt.property(GROUP) == other.property(GROUP):
        return "\n"
    if fmt.property(MARKER) and fmt.topMargin() < 10:
        return "\n"
    return "\n\n" if fmt.topMargin() else "\n"
