"""Getting the bytes of one file: readers bring them, this thread writes them in order, whatever the line does.

What can be gone a moment later is tried again, with more and more time between; a host that has no ranges is read in
one go; a content that changed, or an address that is no longer good, is asked for anew. How often, is limited.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Annotated, Final

import msgspec

from tandem.models.answers import Changed, Expired, Odd, Whole
from tandem.models.hub import Hub, Located, Resolved
from tandem.models.pace import Limit
from tandem.models.part import Part
from tandem.models.ranges import Window
from tandem.models.readers import WORTH, Crew, Source
from tandem.models.retries import Retries, answered
from tandem.models.stop import Stop
from tandem.settings import Settings

NEAR: Final = 150_000_000
"""Bytes a second from which a host is near: several connections would only cost time there."""

_PROBE_BYTES: Final = 8 << 20
_PROBE_S: Final = 0.2
_SLOWER_S: Final = 2.0
_NEAR_AHEAD: Final = 4 << 20
_ODD: Final = 3


class Options(msgspec.Struct, frozen=True):
    """How a download is done.

    Attributes:
        connections: Most at a time.
        bytes_per_s: Most bytes a second of all of them; None for no limit.
        stall_s: Seconds of silence after which a connection is given up.
        tries: How often in a row without any progress.
        backoff_s: Seconds before the second try, about; they double with each, up to a minute.
        piece_bytes: What a connection asks for at a time. Twice as much for each is held in memory at most.
    """

    connections: Annotated[int, msgspec.Meta(ge=1, le=16)] = 4
    bytes_per_s: int | None = None
    stall_s: float = 30.0
    tries: int = 8
    backoff_s: float = 1.0
    piece_bytes: int = 8 << 20

    @classmethod
    def chosen(cls, settings: Settings) -> Options:
        """What the settings say."""
        return cls(connections=settings.connections, bytes_per_s=settings.speed_limit)


class _Mark:
    """The most bytes that were here at the same time: what comes in again after a new beginning is no progress."""

    def __init__(self, size: int) -> None:
        self._most = size

    def passed(self, window: Window) -> bool:
        """Whether clearly more is here than when this was last asked."""
        if window.have < self._most + WORTH and not window.finished:
            return False
        self._most = window.have
        return True


class _Gauge:
    """Tells whether a host is near, by how fast it sends.

    Args:
        near: What is known of it; None for nothing.
        received: Bytes that came in before.
    """

    def __init__(self, near: bool | None, received: int) -> None:
        self.near = near
        self._mark, self._since = received, time.monotonic()
        self._waits = True

    def says(self, received: int) -> bool | None:
        """Whether it is, after so many bytes; None while that is not known."""
        now = time.monotonic()
        count, seconds = received - self._mark, now - self._since
        if self.near is None:
            if self._waits and count:  # what came before the first bytes is no measure
                self._mark, self._since, self._waits = received, now, False
            elif count >= _PROBE_BYTES:
                self.near = count >= NEAR * seconds
            elif seconds >= _PROBE_S:
                self.near = False
        elif self.near and seconds >= _SLOWER_S:
            self.near = count >= NEAR / 4 * seconds
            self._mark, self._since = received, now
        return self.near


class Transfer:
    """Gets what is missing of one file.

    Args:
        hub: Says where it is.
        resolved: What it is.
        part: Open; it is left open.
        stop: Ends it.
        limit: How fast it may be.
        options: How it is done.
        retries: Tries again.
        news: Is told how many bytes have come in since the last time, some ten times a second or more.
    """

    def __init__(
        self,
        hub: Hub,
        resolved: Resolved,
        part: Part,
        stop: Stop,
        limit: Limit,
        options: Options,
        retries: Retries,
        news: Callable[[int], None],
    ) -> None:
        self._hub = hub
        self._resolved = resolved
        self._part = part
        self._stop = stop
        self._limit = limit
        self._options = options
        self._retries = retries
        self._news = news
        self._ranged = True
        self._near: bool | None = None  # not known yet
        self._try_mark = _Mark(part.size)
        self._odd_mark = _Mark(part.size)
        self._odd = 0
        self._wholes = 0
        self._named = True  # whether the host's name for the content is minded
        self._located: Located | None = None
        self._window = self._new_window()

    def run(self) -> None:
        """Returns when all bytes are written; their sha256 is not compared here.

        Raises:
            TransferError: It cannot be finished now; what came in is in the part.
            Stopped: It was asked for.
        """
        self._retries(self._attempt, lambda: self._try_mark.passed(self._window))

    # --- inside

    def _attempt(self) -> None:
        """Goes on until the file is there or a line gives up."""
        self._located = None
        while not self._window.finished:
            try:
                self._pour()
            except Odd as odd:
                if self._odd_mark.passed(self._window):
                    self._odd = 0
                self._odd += 1
                self._turn(odd)
                if self._odd > _ODD:
                    raise odd.error from None

    def _turn(self, odd: Odd) -> None:
        """Sees to it that the file is asked for in another way."""
        if isinstance(odd, Expired):
            self._located = None
        elif isinstance(odd, Changed):
            # Once. A mirror's nodes can each have another name for the same content: then the sha256 decides.
            if self._named:
                self._named = False
                self._from_zero()
        elif isinstance(odd, Whole):
            self._wholes += 1
            if self._window.have and self._wholes == 1:
                return  # one such answer may be a mishap, and all that is here would be lost
            self._ranged = False
            self._from_zero()

    def _from_zero(self) -> None:
        self._part.reset()
        self._window = self._new_window()

    def _new_window(self) -> Window:
        """What is missing, in pieces, or in one piece for a host without ranges."""
        total, size, piece = self._resolved.bytes, self._part.size, self._options.piece_bytes
        if self._near:
            return Window(total, size, max(1, total - size), _NEAR_AHEAD)
        ahead = piece * (self._options.connections + 2)
        return Window(total, size, piece if self._ranged else max(1, total - size), ahead)

    def _pour(self) -> None:
        """Writes what the readers bring, until the file is there or something is wrong."""
        located = self._located
        if located is None:
            located = self._located = answered(
                lambda: self._hub.locate(self._resolved),
                self._stop,
                2 * self._options.stall_s,
                self._hub.network.host,
            )
        part, window, near = self._part, self._window, bool(self._near)
        source = Source(self._hub, located, self._resolved.file, self._ranged, near, self._options.stall_s, self._named)
        # Each host has its own names for a content.
        etag = part.etag if part.host == located.host and self._named else ""
        crew = Crew(source, window, etag, self._limit, self._stop)
        forget = self._stop.on_set(crew.wake)
        received, gauge = window.received, _Gauge(self._near, window.received)
        try:
            crew.start(self._options.connections if self._ranged and self._near is False else 1)
            while not window.finished:
                blocks = crew.wait()
                if crew.etag and crew.etag != etag:
                    etag = crew.etag
                    part.known_as(etag, located.host)
                for block in blocks:
                    part.append(block, crew.written)
                self._news(window.received - received)
                received = window.received
                if self._ranged and gauge.says(received) is not self._near:
                    self._near = gauge.near
                    if near or self._near:
                        self._window = self._new_window()
                        return
                    crew.start(self._options.connections - 1)
        finally:
            forget()
            crew.leave()
