"""The transcript as a reader's place in a chat: what is loaded around it, and how one gets elsewhere."""

from __future__ import annotations

from typing import Final, NamedTuple

from PySide6.QtGui import QTextCursor
from PySide6.QtWidgets import QTextEdit, QWidget

from tandem.ui.theme import ThemeManager
from tandem.ui.transcript_flow import Job
from tandem.ui.transcript_links_view import LinkedView
from tandem.ui.transcript_section import Section
from tandem.ui.transcript_slices import Slices
from tandem.ui.transcript_stretch import ENOUGH, Stretch

MORE: Final = 6
"""Messages that are loaded at a time when the reader comes near the end of what is there."""


class _InSection(NamedTuple):
    """A reader's place in a message.

    Attributes:
        node: The message.
        ordinal: The first block in view, counted from the message's first.
        drop: Pixels from the window's upper edge to that block.
        share: Of the message's height that lies above the window.
        drafted: Whether the drafted tokens were shown.
    """

    node: int
    ordinal: int
    drop: float
    share: float
    drafted: bool


class TranscriptReader(LinkedView):
    """Loads what is read.

    Args:
        manager: The theme.
    """

    def __init__(self, manager: ThemeManager, parent: QWidget | None = None) -> None:
        super().__init__(manager, parent)
        self._slices = Slices(self, self.keeping_place)
        self._stretch = Stretch(self.document(), self.look, self._slices.add)
        self._stretch.clear(0)
        self.reached.connect(self._load_more)

    @property
    def busy(self) -> bool:
        """Whether something is still being written in portions."""
        return self._slices.busy

    def reveal(self, node: int, needle: str = "") -> None:
        """Goes to a message, and to a text in it, which is marked."""
        stretch = self._stretch
        at = stretch.index(node)
        if at is None:
            return
        found = stretch.nodes[at]
        if needle and needle.lower() not in found.text.lower() and needle.lower() in found.thought.lower():
            stretch.shared.opened.add(node)
        if needle and found.role == "user":
            stretch.shared.expanded.add(node)
        section = stretch.section(node)
        if section is None:
            self._render(at, at_end=False)
        elif needle:
            self.follow(False)
            self.keeping_place(section.rewrite)
        self._slices.after(lambda: self._mark(node, needle))

    def _render(self, at: int, at_end: bool) -> None:
        """Empties the document and writes it from a message on, as much as can be seen; the rest in portions."""
        stretch, bar = self._stretch, self.verticalScrollBar()
        self._slices.clear()
        self.focus_link(None)
        stretch.shared.look = self.look
        self.follow(at_end)

        def begin() -> None:
            stretch.clear(at)
            self.set_margins()

        self.keeping_place(begin)
        wanted = 1.5 * self.viewport().height()
        more, loads = True, (stretch.load_up if at_end else stretch.load_down)
        # A view that is not shown yet has no bar: then the number of messages ends it.
        while more and bar.maximum() < wanted and stretch.last - stretch.first < ENOUGH:
            before = stretch.last - stretch.first
            self.keeping_place(lambda: loads(2))
            more = stretch.last - stretch.first > before
        if not at_end:
            bar.setValue(0)
        self._slices.add(self._fill(0 if at_end else ENOUGH // 2))

    def _fill(self, below: int) -> Job:
        """Loads what is loaded without being asked for: so many messages first, and then earlier ones."""
        stretch = self._stretch
        while stretch.last - stretch.first < below and stretch.load_down():
            yield
        while stretch.last - stretch.first < ENOUGH and stretch.load_up():
            yield

    def ends_here(self) -> bool:
        """Whether the newest message is loaded."""
        return self._stretch.complete

    def jump_to_end(self) -> None:
        """Goes to the newest message."""
        self._to_newest()
        super().jump_to_end()

    def _to_newest(self) -> None:
        if not self._stretch.complete:
            self._render(len(self._stretch.nodes), at_end=True)

    def _load_more(self, at_end: bool) -> None:
        stretch = self._stretch
        if self._slices.busy or (stretch.complete if at_end else not stretch.first):
            return
        load = stretch.load_down if at_end else stretch.load_up

        def job() -> Job:
            for _ in range(MORE):
                if not load():
                    return
                yield

        self._slices.add(job())

    def rewrite(self) -> None:
        """Writes everything anew, for another width or language; the place is kept."""
        self._rewrite_at(self._place())

    def redress(self) -> None:
        """Writes everything anew for another theme or text size; the place is kept."""
        place = self._place()  # before the font is another
        self._dress()
        self._rewrite_at(place)

    def _rewrite_at(self, place: _InSection | None) -> None:
        stretch = self._stretch
        at = stretch.index(place.node) if place is not None else None
        if place is None or at is None:
            self._render(len(stretch.nodes), at_end=True)
            return
        self._render(at, at_end=False)
        self._return(place)
        if self._slices.busy:  # a long message is written in portions, and the place may be in one of the later ones
            self._slices.after(lambda: self._return(place))

    def _place(self) -> _InSection | None:
        """Where the reader is; None at the end."""
        document, value = self.document(), self.verticalScrollBar().value()
        block = document.findBlock(self.first_visible())
        stretch = self._stretch
        section = stretch.section_at(block.position()) or next(iter(stretch.sections), None)
        if section is None or self.following:
            return None
        if block.position() < section.start:
            block = document.findBlock(section.start)
        top, height = self._extent(section)
        drop = document.documentLayout().blockBoundingRect(block).top() - value
        ordinal = block.blockNumber() - document.findBlock(section.start).blockNumber()
        share = (value - top) / height if height else 0.0
        return _InSection(section.node.id, ordinal, drop, share, stretch.shared.drafted)

    def _return(self, place: _InSection) -> None:
        """Goes back to a place in a message that was written anew."""
        section, document = self._stretch.section(place.node), self.document()
        if section is None:
            return
        first = document.findBlock(section.start).blockNumber()
        block = document.findBlockByNumber(first + place.ordinal)
        if block.isValid() and place.drafted == self._stretch.shared.drafted:
            target = document.documentLayout().blockBoundingRect(block).top() - place.drop
        else:  # there are other blocks now
            top, height = self._extent(section)
            target = top + place.share * height
        self.verticalScrollBar().setValue(round(target))
        self.follow(False)

    def _extent(self, section: Section) -> tuple[float, float]:
        """Upper edge and height of a message in the document."""
        layout, document = self.document().documentLayout(), self.document()
        top = layout.blockBoundingRect(document.findBlock(section.start)).top()
        end = layout.blockBoundingRect(document.findBlock(self._stretch.end_of(section))).bottom()
        return top, end - top

    def _mark(self, node: int, needle: str) -> None:
        """Marks a text in a message and goes there."""
        section = self._stretch.section(node)
        if section is None:
            return
        found = self.document().find(needle, section.start) if needle else QTextCursor()
        inside = not found.isNull() and found.selectionEnd() <= self._stretch.end_of(section)
        if inside:
            mark = QTextEdit.ExtraSelection()
            chars = self.look.chars()
            chars.setBackground(self.look.theme.colour("find"))
            mark.cursor, mark.format = found, chars  # type: ignore[attr-defined]  # the stubs lack them
            self.setExtraSelections([mark])
        self.show_position(found.selectionStart() if inside else section.start, 0.3 if inside else 0.05)
