"""Which bytes of a file are fetched by whom, and which can be written: pieces in order, of which several are under way.

Pure: no threads and no network here; the caller holds a lock.
"""

from __future__ import annotations

from collections import deque
from typing import Final

Bytes = bytes | memoryview
"""A block of a file. A memoryview is one of bytes, and nobody changes them any more."""


class Piece:
    """A range of the file that one reader fetches.

    Args:
        start: Its first byte.
        end: The byte behind its last one.

    Attributes:
        got: Bytes of it that have come in.
        owner: Who fetches it; None when nobody does.
    """

    __slots__ = ("blocks", "end", "got", "owner", "start")

    def __init__(self, start: int, end: int) -> None:
        self.start: Final = start
        self.end: Final = end
        self.got = 0
        self.owner: object | None = None
        self.blocks: list[Bytes] = []  # that came in and were not taken yet

    @property
    def at(self) -> int:
        """The next byte that it needs."""
        return self.start + self.got

    @property
    def whole(self) -> bool:
        """Whether all of it has come in."""
        return self.at == self.end

    def __repr__(self) -> str:
        return f"Piece({self.start}-{self.end}, {self.got} here)"


class Window:
    """The part of a file that is under way: behind it everything is with the writer, before it nothing was asked for.

    Args:
        total: Bytes of the file.
        position: Bytes of it that are there already.
        piece_bytes: Size of a piece.
        ahead_bytes: How far behind the writer's position a piece may begin, so that memory is bounded.

    Attributes:
        position: The next byte that the writer gets.
        received: Bytes that came in, in all.
    """

    def __init__(self, total: int, position: int, piece_bytes: int, ahead_bytes: int) -> None:
        self.total: Final = total
        self.position = position
        self.received = 0
        self._piece_bytes = piece_bytes
        self._ahead_bytes = ahead_bytes
        self._next = position  # the first byte in no piece yet
        self._pieces: deque[Piece] = deque()
        self.waiting = 0
        """Bytes that came in and were not taken yet."""

    @property
    def finished(self) -> bool:
        """Whether the writer has got everything."""
        return self.position == self.total

    @property
    def have(self) -> int:
        """Bytes that are with the writer or here."""
        return self.position + self.waiting

    @property
    def full(self) -> bool:
        """Whether so much waits for the writer that no more should come in."""
        return self.waiting >= self._ahead_bytes

    def take(self, owner: object) -> Piece | None:
        """The first piece that nobody fetches; None for none just now.

        Args:
            owner: Who fetches it from now on.
        """
        for piece in self._pieces:
            if piece.owner is None and not piece.whole:
                piece.owner = owner
                return piece
        if self._next >= self.total or self._next - self.position >= self._ahead_bytes:
            return None
        piece = Piece(self._next, min(self._next + self._piece_bytes, self.total))
        piece.owner = owner
        self._next = piece.end
        self._pieces.append(piece)
        return piece

    def put(self, piece: Piece, owner: object, block: Bytes) -> bool:
        """Bytes of a piece have come in.

        Args:
            piece: Which.
            owner: Who brings them.
            block: They follow those that came before; no more than it needs.

        Returns:
            Whether they were taken: not from somebody who no longer fetches it.
        """
        if piece.owner is not owner:
            return False
        if len(block) > piece.end - piece.at:
            raise ValueError(f"{len(block)} bytes are too many for {piece}")
        piece.blocks.append(block)
        piece.got += len(block)
        self.waiting += len(block)
        self.received += len(block)
        return True

    def give_back(self, piece: Piece, owner: object) -> None:
        """Somebody no longer fetches a piece; what came in of it is kept."""
        if piece.owner is owner:
            piece.owner = None

    def ready(self) -> list[Bytes]:
        """What the writer can write now, in order; it is taken."""
        blocks: list[Bytes] = []
        while self._pieces:
            head = self._pieces[0]
            blocks += head.blocks
            head.blocks = []
            if not head.whole:
                break
            self._pieces.popleft()
        count = sum(map(len, blocks))
        self.position += count
        self.waiting -= count
        return blocks

    @property
    def readable(self) -> bool:
        """Whether `ready` would give anything."""
        return bool(self._pieces and (self._pieces[0].blocks or self._pieces[0].whole))
