"""One message in the transcript's document: written, streamed into, changed and written anew."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

import msgspec
from PySide6.QtGui import QTextCursor

from tandem.chat.conversation import Node, checked_runs
from tandem.ui import transcript_parts as parts
from tandem.ui.markdown import visible
from tandem.ui.session_state import AnswerText, Channel, Piece, pieces_of
from tandem.ui.transcript_blocks import pin, unpin
from tandem.ui.transcript_drafted import DraftedFlow
from tandem.ui.transcript_flow import Flow, Job
from tandem.ui.transcript_look import Look
from tandem.ui.transcript_writer import Writer

AT_ONCE: Final = 3
"""Portions of an answer that are written at once; the rest follows later."""
PORTION: Final = 6_000
"""Characters of a user's message that are written in one portion."""


class Shared:
    """What all messages have in common.

    Attributes:
        look: Formats of the theme in use.
        codes: The code of each card.
        branches: Of a message with versions: which one it is, and how many there are.
        drafted: Whether the drafted tokens are shown.
        opened: Messages whose thought is open.
        shut: Messages whose thought was closed by hand.
        expanded: Long messages that are shown whole.
        later: Takes a job.
        end_of: Gives the position of a section's end.
    """

    def __init__(self, look: Look, later: Callable[[Job], None], end_of: Callable[[Section], int]) -> None:
        self.look = look
        self.later = later
        self.end_of = end_of
        self.codes: dict[int, list[str]] = {}
        self.branches: dict[int, tuple[int, int]] = {}
        self.drafted = False
        self.opened: set[int] = set()
        self.shut: set[int] = set()
        self.expanded: set[int] = set()


class Section:
    """A message's place in the document.

    The caller wraps what it does in one edit block, and removes it by `Transcript`'s list of sections.

    Args:
        node: The message.
        shared: What all have in common.
    """

    def __init__(self, node: Node, shared: Shared) -> None:
        self.node = node
        self._shared = shared
        self._start: QTextCursor | None = None
        self._revision = 0
        self._live: AnswerText | None = None
        self._begun: set[str] = set()  # channels of which something has come
        self._flows: dict[str, Flow | DraftedFlow] = {}
        self._thought_line: QTextCursor | None = None
        self._waiting: QTextCursor | None = None  # in the line that stands where the answer will

    @property
    def start(self) -> int:
        """Position of its first block; -1 while it is not in the document."""
        return self._start.position() if self._start is not None else -1

    @property
    def placed(self) -> bool:
        """Whether it is in the document."""
        return self._start is not None

    @property
    def streaming(self) -> bool:
        """Whether an answer is being written into it."""
        return self._live is not None

    @property
    def thought_open(self) -> bool:
        """Whether its thought can be read."""
        shared, node = self._shared, self.node
        if shared.drafted or node.id in shared.opened:
            return True
        alone = not node.text.strip() and not self.streaming
        return alone and node.id not in shared.shut

    def write(self, cursor: QTextCursor) -> None:
        """Writes all of it behind the block that the cursor stands at the end of; the cursor ends behind it."""
        self._revision += 1
        self._flows.clear()
        self._thought_line = self._waiting = None
        writer = self._writer(cursor)
        parts.speaker(writer, self.node.role)
        self._start = QTextCursor(writer.cursor)
        self._start.setPosition(writer.cursor.block().position())
        pin(self._start)
        if self.node.role == "user":
            self._user(writer)
        else:
            self._answer(writer)
        cursor.setPosition(writer.cursor.position())

    def begin(self) -> None:
        """Makes it one that an answer will be written into; before `write`."""
        self._live = AnswerText()

    def stream(self, pieces: Sequence[Piece]) -> None:
        """Adds what came to the answer."""
        if self._live is None:
            return
        self._live.add(pieces)
        new = {piece.channel for piece in pieces if piece.text} - self._begun
        self._begun |= new
        if "answer" in new:
            self.node = msgspec.structs.replace(self.node, text=self._live.text("answer"))
        if not self.placed:
            return
        line = self._thought_line is not None
        idle = line and "answer" in new and not self._live.text("thought").strip()
        if self._waiting is not None or idle or ("thought" in new and not line):
            self.rewrite()  # what stood there for want of text goes
            return
        if "answer" in new:
            self._retitle_thought()
        self._grow(pieces)

    def finish(self, node: Node) -> None:
        """Ends the answer: what stood open is closed, and the lines below it are written."""
        live, self._live = self._live, None
        same = live is not None and live.text("answer") == node.text and live.text("thought") == node.thought
        was_open = "thought" in self._flows
        self.node = node
        if not self.placed:
            return
        if not same or "answer" not in self._flows or (bool(node.thought) and was_open != self.thought_open):
            self.rewrite()
            return
        for flow in self._flows.values():
            if isinstance(flow, Flow):
                flow.show(final=True)
        self._retitle_thought()
        writer = self._writer(self._cursor(self._shared.end_of(self)))
        writer.place = self._flows["answer"].place
        self._foot(writer)

    def rewrite(self) -> None:
        """Writes all of it anew in its place."""
        self.write(self.remove())

    def remove(self) -> QTextCursor:
        """Takes it out of the document; gives a cursor at the end of the block above."""
        self._revision += 1
        end = self._shared.end_of(self)
        cursor = self._cursor(self.start - 1)
        block, chars = cursor.blockFormat(), cursor.blockCharFormat()
        cursor.setPosition(end, QTextCursor.MoveMode.KeepAnchor)
        cursor.removeSelectedText()
        if cursor.blockFormat() != block:
            cursor.setBlockFormat(block)
            cursor.setBlockCharFormat(chars)
        return cursor

    def lift(self) -> None:
        """Forgets its place, when the whole document was cleared."""
        self._revision += 1
        self._start = self._thought_line = self._waiting = None
        self._flows.clear()

    # Parts

    def _cursor(self, position: int) -> QTextCursor:
        assert self._start is not None
        cursor = QTextCursor(self._start)
        unpin(cursor)
        cursor.setPosition(position)
        return cursor

    def _writer(self, cursor: QTextCursor, role: str = "", indent: int = 0) -> Writer:
        shared = self._shared
        return Writer(QTextCursor(cursor), shared.look, codes=shared.codes, role=role, indent=indent)

    def _user(self, writer: Writer) -> None:
        node, shared = self.node, self._shared
        whole = visible(node.text)
        short = parts.folded(whole)
        is_open = node.id in shared.expanded
        inner = self._writer(writer.cursor)
        bubble = parts.Bubble(inner, whole if is_open else short, whole)
        foot = parts.expander(node, is_open) if len(short) < len(whole) else None
        if bubble.write(PORTION):
            pin(inner.cursor)
            self._later(bubble.rest(PORTION, foot))
        elif foot is not None:
            bubble.foot(*foot)
        writer.cursor.setPosition(inner.cursor.position())
        writer.place = inner.place
        parts.actions(writer, node, shared.branches.get(node.id))

    def _answer(self, writer: Writer) -> None:
        node = self.node
        thought = node.thought or (self._live.text("thought") if self._live else "")
        text = self._live.text("answer") if self._live else node.text
        if thought.strip() or (self.streaming and node.thinking and not text):
            words = parts.thought_words(node, self.streaming)
            self._thought_line = parts.thought_line(writer, node, words, self.thought_open)
            if self.thought_open:
                self._write_thought(writer, thought)
            parts.separator(writer)
        elif self.streaming and not text:
            parts.note(writer, parts.waiting_words(), "")
            self._waiting = QTextCursor(writer.cursor)
            return
        if text or self.streaming:
            self._write_text(writer, text)
        if not self.streaming:
            self._foot(writer)

    def _write_thought(self, writer: Writer, thought: str) -> None:
        """The thought's text behind the writer, which is moved along."""
        look = self._shared.look
        inner = self._writer(writer.cursor, "muted", look.theme.px(20))
        self._flows["thought"] = self._body(inner, "thought", thought)
        writer.cursor.setPosition(inner.cursor.position())

    def _write_text(self, writer: Writer, text: str) -> None:
        inner = self._writer(writer.cursor)
        inner.place = writer.place
        flow = self._body(inner, "answer", text)
        self._flows["answer"] = flow
        writer.cursor.setPosition(inner.cursor.position())
        writer.place = flow.place

    def _body(self, writer: Writer, channel: Channel, text: str) -> Flow | DraftedFlow:
        """One channel's text, as Markdown or as it came."""
        if self._shared.drafted:
            drafted = DraftedFlow(writer, "muted" if channel == "thought" else "")
            portions = drafted.fill(self._pieces(channel, text))
            next(portions, None)
            if self.streaming:
                for _ in portions:
                    pass
            else:
                self._later(portions)
            return drafted
        flow = Flow(writer, self._later)
        if self.streaming:
            for _ in flow.fill(text, final=False):
                pass
            return flow
        job, done = flow.fill(text), object()
        for _ in range(AT_ONCE):
            if next(job, done) is done:
                return flow
        flow.unsettled = True
        self._later(job)
        return flow

    def _pieces(self, channel: Channel, text: str) -> list[Piece]:
        """The pieces of a channel; one without flags where they are not known for certain."""
        node = self.node
        if self._live is not None:
            found = self._live.pieces()
        else:
            found = pieces_of(node.text, node.thought, checked_runs(node, node.runs))
        return [piece for piece in found if piece.channel == channel] or [Piece(channel, text, 0)]

    def _grow(self, pieces: Sequence[Piece]) -> None:
        for channel, flow in self._flows.items():
            mine = [piece for piece in pieces if piece.channel == channel]
            if not mine:
                continue
            if isinstance(flow, DraftedFlow):
                flow.add(mine)
            else:
                flow.feed("".join(piece.text for piece in mine))
                flow.show()

    def _foot(self, writer: Writer) -> None:
        node = self.node
        words = parts.ending(node)
        if words:
            parts.note(writer, words)
        if node.state == "failed":
            parts.failure(writer, node)
        parts.figures(writer, node)
        parts.actions(writer, node, self._shared.branches.get(node.id))

    def _retitle_thought(self) -> None:
        """Sets the words on the thought's line anew."""
        if self._thought_line is None:
            return
        cursor = QTextCursor(self._thought_line)
        unpin(cursor)
        cursor.movePosition(QTextCursor.MoveOperation.EndOfBlock, QTextCursor.MoveMode.KeepAnchor)
        chars = cursor.charFormat()
        cursor.insertText(parts.thought_words(self.node, self.streaming), chars)

    def _later(self, job: Job) -> None:
        """Hands a job on; it ends when the section is written anew."""
        self._shared.later(self._while_current(job, self._revision))

    def _while_current(self, job: Job, revision: int) -> Job:
        while self._revision == revision:
            try:
                next(job)
            except StopIteration:
                return
            yield
