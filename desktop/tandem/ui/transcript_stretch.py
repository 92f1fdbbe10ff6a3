"""The stretch of a chat that is in the document: messages next to each other, more of them on demand at both ends.

The document's first block belongs to no message: it holds a link to earlier messages, or nothing. While later messages
are left out, the last block holds a link to them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from PySide6.QtCore import QCoreApplication, Qt
from PySide6.QtGui import QTextCursor, QTextDocument

from tandem.chat.conversation import Node
from tandem.ui.session_state import Piece
from tandem.ui.transcript_blocks import pin
from tandem.ui.transcript_flow import Job
from tandem.ui.transcript_look import ACTS, CHROME, Look, link
from tandem.ui.transcript_section import Section, Shared

ENOUGH: Final = 40
"""Messages that are loaded without being asked for."""


class Stretch:
    """Keeps some messages of a path in a document.

    Whoever calls wraps changes in one edit block.

    Args:
        document: Written into.
        look: Formats.
        later: Takes a job that may be done in portions.
    """

    def __init__(self, document: QTextDocument, look: Look, later: Callable[[Job], None]) -> None:
        self._document = document
        self.shared = Shared(look, later, self.end_of)
        self.nodes: list[Node] = []
        self.sections: list[Section] = []
        self.first = 0
        self._live: Section | None = None
        self._bottom: QTextCursor | None = None

    @property
    def last(self) -> int:
        """Index behind the last loaded message."""
        return self.first + len(self.sections)

    @property
    def complete(self) -> bool:
        """Whether the newest message is loaded."""
        return self.last == len(self.nodes)

    @property
    def live(self) -> Section | None:
        """The answer that is being written."""
        return self._live

    def index(self, node: int) -> int | None:
        """Index of a message by its id."""
        return next((at for at, found in enumerate(self.nodes) if found.id == node), None)

    def section(self, node: int) -> Section | None:
        """The loaded message of that id."""
        return next((found for found in self.sections if found.node.id == node), None)

    def section_at(self, position: int) -> Section | None:
        """The message that a position of the document lies in."""
        found = None
        for section in self.sections:
            if section.start > position:
                break
            found = section
        return found

    def end_of(self, section: Section) -> int:
        """Position of a message's end."""
        at = self.sections.index(section)
        if at + 1 < len(self.sections):
            return self.sections[at + 1].start - 1
        if self._bottom is not None:
            return self._bottom.position() - 1
        return self._document.characterCount() - 1

    def clear(self, at: int) -> None:
        """Empties the document; loading will begin at the message with this index."""
        for section in self.sections:
            section.lift()
        self.sections.clear()
        self.shared.codes.clear()
        self._bottom = None
        self._document.clear()
        self.first = at
        self._mark_ends()

    def load_up(self, most: int = 1) -> int:
        """Loads earlier messages; gives how many."""
        loaded = 0
        while loaded < most and self.first > 0:
            section = self._made(self.nodes[self.first - 1])
            cursor = QTextCursor(self._document.firstBlock())
            cursor.movePosition(QTextCursor.MoveOperation.EndOfBlock)
            # In the list before it is written: it may be asked where it ends.
            self.sections.insert(0, section)
            self.first -= 1
            section.write(cursor)
            loaded += 1
        if loaded and not self.first:
            self._mark_ends()
        return loaded

    def load_down(self, most: int = 1) -> int:
        """Loads later messages; gives how many."""
        loaded = 0
        while loaded < most and not self.complete:
            section = self._made(self.nodes[self.last])
            cursor = QTextCursor(self._document)
            if self.sections:
                cursor.setPosition(self.end_of(self.sections[-1]))
            else:
                cursor.movePosition(QTextCursor.MoveOperation.EndOfBlock)
            self.sections.append(section)
            section.write(cursor)
            loaded += 1
        if loaded:
            self._mark_ends()
        return loaded

    def cut(self, at: int) -> None:
        """Takes the messages from an index on out of the document and the path."""
        while self.sections and self.last > at:
            section = self.sections[-1]
            section.remove()
            section.lift()
            self.sections.pop()
        del self.nodes[at:]
        self._live = self._live if self._live in self.sections else None

    def add(self, node: Node, live: bool = False) -> Section:
        """Adds a message at the end of the path; `complete` must be so."""
        self.nodes.append(node)
        if live:
            self._live = Section(node, self.shared)
            self._live.begin()
        self.load_down()
        return self.sections[-1]

    def drop_live(self) -> None:
        """Forgets the answer that is being written: another chat is shown."""
        self._live = None

    def stream(self, pieces: Sequence[Piece]) -> None:
        """Adds to the answer that is being written."""
        if self._live is not None:
            self._live.stream(pieces)

    def finish(self, node: Node) -> None:
        """Puts a message's final version in its place."""
        at = self.index(node.id)
        if at is None:
            return
        self.nodes[at] = node
        section = self._live if self._live is not None and self._live.node.id == node.id else self.section(node.id)
        if section is None:
            return
        if section is self._live:
            self._live = None
        section.finish(node)

    def _made(self, node: Node) -> Section:
        if self._live is not None and self._live.node.id == node.id:
            return self._live
        return Section(node, self.shared)

    def _mark_ends(self) -> None:
        """Sets the first block and the last one to what is left out there."""
        translate = QCoreApplication.translate
        cursor = QTextCursor(self._document.firstBlock())
        cursor.movePosition(QTextCursor.MoveOperation.EndOfBlock, QTextCursor.MoveMode.KeepAnchor)
        cursor.removeSelectedText()
        if self.first:
            self._fill(cursor, translate("Transcript", "Show earlier messages"), f"{ACTS}earlier/0")
        else:
            block, chars = self.shared.look.thin()
            cursor.setBlockFormat(block)
            cursor.setBlockCharFormat(chars)
            cursor.insertText("\u200b", chars)
        if self._bottom is not None and self.complete:
            cursor = QTextCursor(self._document)
            cursor.setPosition(self._bottom.position() - 1)
            cursor.movePosition(QTextCursor.MoveOperation.End, QTextCursor.MoveMode.KeepAnchor)
            cursor.removeSelectedText()
            self._bottom = None
        elif self._bottom is None and not self.complete and self.sections:
            cursor = QTextCursor(self._document)
            cursor.movePosition(QTextCursor.MoveOperation.End)
            cursor.insertBlock()
            self._bottom = QTextCursor(cursor)
            pin(self._bottom)
            self._fill(cursor, translate("Transcript", "Show later messages"), f"{ACTS}later/0")

    def _fill(self, cursor: QTextCursor, words: str, href: str) -> None:
        look = self.shared.look
        block = look.block(look.theme.px(16))
        block.setAlignment(Qt.AlignmentFlag.AlignHCenter)
        block.setProperty(CHROME, True)
        chars = link(look.chars("accent", look.theme.type.small), href)
        cursor.setBlockFormat(block)
        cursor.setBlockCharFormat(chars)
        cursor.insertText(words, chars)
