"""A text that grows at its end: Markdown, of which only the open tail is ever written again."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import Final

from PySide6.QtGui import QTextCharFormat, QTextCursor, QTextLayout

from tandem.ui import highlight
from tandem.ui.markdown import Leaf, visible
from tandem.ui.transcript_blocks import Place, pin, unpin
from tandem.ui.transcript_look import CHROME, GROUP, Look
from tandem.ui.transcript_tail import SLICE, Step, Tail
from tandem.ui.transcript_writer import Writer

JOINABLE: Final = 12_000
"""Characters of a paragraph that was divided while it grew and is joined when it ends."""
AT_ONCE: Final = 4_000
"""Characters of code that are coloured at once; more is coloured in portions."""
PORTION: Final = 40
"""Lines of code that are coloured in one portion."""

Job = Iterator[None]


class Flow:
    """Shows Markdown behind a place in the document.

    The caller wraps what it does in one edit block.

    Args:
        writer: Stands where the text is to begin: at the end of the block above.
        later: Takes a job that may be done in portions.
    """

    def __init__(self, writer: Writer, later: Callable[[Job], None]) -> None:
        self._writer = writer
        self._later = later
        self._tail = Tail()
        self._mark = QTextCursor(writer.cursor)  # behind the last block that is final
        pin(self._mark)
        self._place = writer.place
        self._joints: list[tuple[QTextCursor, str]] = []
        self._divided = 0  # characters of the paragraph that is divided now
        self._prepared: set[str] = set()  # languages
        self.unsettled = False  # whether more is to come although something stands behind it already
        pin(writer.cursor)

    @property
    def place(self) -> Place:
        """What a block behind it has to know."""
        place = self._writer.place
        return place._replace(owed=self._writer.look.card_pad) if self.unsettled else place

    def feed(self, text: str) -> None:
        """Takes text; `show` shows it."""
        self._tail.feed(text)

    def show(self, final: bool = False) -> None:
        """Brings the document up to date.

        Args:
            final: Whether the text is complete.
        """
        writer = self._writer
        unpin(writer.cursor)
        while self._step(self._tail.step(final)):
            pass
        pin(writer.cursor)

    def fill(self, text: str, final: bool = True) -> Job:
        """Feeds a text in portions; `final` says whether it is complete."""
        at = 0
        while at < len(text):
            end = at + SLICE
            if end < len(text):
                end = text.rfind("\n", at + 1, end) + 1 or end
            self.feed(text[at:end])
            self.show(final=final and end >= len(text))
            at = end
            yield

    def _step(self, step: Step) -> bool:
        """Writes a step; gives whether there is another."""
        writer, leaves = self._writer, step.leaves
        self._clear()
        for at, leaf in enumerate(leaves[: step.settled]):
            self._write(leaf, step.again and at == 0)
            if self._joints and not step.divided:
                self._join()
            if leaf.kind == "fence" and writer.place.card is not None:
                self._colour()
            self._settle()
        rest = leaves[step.settled :]
        again = step.again and step.settled == 0
        if step.divided:
            joint = QTextCursor(writer.cursor)
            pin(joint)
            self._joints.append((joint, step.glue))
            self._divided += sum(len(span.text) for span in leaves[0].spans)
        elif rest:
            first = rest[0]
            if step.lines:
                lines = first.code.split("\n")
                self._write(first._replace(code="".join(f"{line}\n" for line in lines[: step.lines])), again)
                self._settle()
                first, again = first._replace(code="\n".join(lines[step.lines :])), True
            elif step.rows:
                self._write(first._replace(rows=first.rows[: step.rows + 1]), again)
                self._settle()
                first, again = first._replace(rows=(first.rows[0], *first.rows[step.rows + 1 :])), True
            self._write(first, again)
            for leaf in rest[1:]:
                self._write(leaf, False)
        return step.divided

    def _write(self, leaf: Leaf, again: bool) -> None:
        writer = self._writer
        if leaf.kind == "fence" and leaf.info and leaf.info not in self._prepared:
            self._prepared.add(leaf.info)
            self._later(highlight.prepare(leaf.info))
        writer.leaf(leaf, again and writer.place.kind == leaf.kind)

    def _settle(self) -> None:
        self._mark.setPosition(self._writer.cursor.position())
        self._place = self._writer.place

    def _clear(self) -> None:
        """Takes away what was not final."""
        cursor, start = self._writer.cursor, self._mark.position()
        if cursor.position() != start:
            block, chars = self._mark.blockFormat(), self._mark.blockCharFormat()
            cursor.setPosition(start, QTextCursor.MoveMode.KeepAnchor)
            cursor.removeSelectedText()
            if cursor.blockFormat() != block:  # an empty block takes over the format of the one behind it
                cursor.setBlockFormat(block)
                cursor.setBlockCharFormat(chars)
        self._writer.place = self._place

    def _join(self) -> None:
        """Makes one paragraph of the pieces of one, unless that would be endless."""
        if self._divided <= JOINABLE:
            for cursor, glue in self._joints:
                unpin(cursor)
                cursor.deleteChar()
                cursor.insertText(glue)
        self._joints.clear()
        self._divided = 0

    def _colour(self) -> None:
        """Colours the card that has just been completed."""
        writer, card = self._writer, self._writer.place.card
        code = visible("".join(writer.code(card.group)), code=True) if card is not None else ""
        if card is None or not highlight.can_colour(code, card.language):
            return
        cursor = QTextCursor(writer.cursor)
        while cursor.block().blockFormat().property(GROUP) == card.group and cursor.movePosition(
            QTextCursor.MoveOperation.PreviousBlock
        ):
            pass
        job = coloured(cursor, card.group, code, card.language, writer.look)
        if len(code) > AT_ONCE:
            self._later(job)
            return
        for _ in job:
            pass


def coloured(cursor: QTextCursor, group: int, code: str, language: str, look: Look) -> Job:
    """Colours the lines of a card, some at a time; ends early when the card has gone.

    Args:
        cursor: In the block before the card's first.
        group: The card's.
        code: As it is shown.
        language: A name that Pygments knows.
        look: Whose colours.
    """
    formats: dict[str, QTextCharFormat] = {}
    lines = highlight.colours(code, language)
    edit = QTextCursor(cursor)
    while portion := list(itertools.islice(lines, PORTION)):
        edit.beginEditBlock()
        there = all(_colour_line(cursor, group, line, look, formats) for line in portion)
        edit.endEditBlock()
        if not there:
            return
        yield


def _colour_line(
    cursor: QTextCursor, group: int, line: list[highlight.Colour], look: Look, formats: dict[str, QTextCharFormat]
) -> bool:
    """Colours the next line of the card; gives whether there was one."""
    block = cursor.block().next()
    while block.isValid() and block.blockFormat().property(CHROME):
        block = block.next()
    if not block.isValid() or block.blockFormat().property(GROUP) != group:
        return False
    cursor.setPosition(block.position())
    ranges = []
    for colour in line:
        if colour.role not in formats:
            formats[colour.role] = look.chars(f"syntax.{colour.role}")
        made = QTextLayout.FormatRange()
        made.start, made.length = colour.start, colour.length  # type: ignore[attr-defined]  # the stubs lack them
        made.format = formats[colour.role]  # type: ignore[attr-defined]
        ranges.append(made)
    if ranges:
        block.layout().setFormats(ranges)
    return True
