"""The connections of a download: threads that fetch pieces of a file and bring them into memory.

They never touch the file. A reader that was abandoned, because it is silent or the download was paused, is left to
itself: its connection is shut down, what it brings later is refused, and as a daemon it keeps nothing from ending.
"""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any, Final

import httpx2

from tandem.models.answers import Ask, changed, judge, wrong_count
from tandem.models.bodies import BLOCK, arriving, connection_of, joined
from tandem.models.errors import PASSING, TransferError
from tandem.models.hub import Hub, Located
from tandem.models.hub_errors import REACH, not_the_hub
from tandem.models.network import host_of
from tandem.models.pace import Limit
from tandem.models.ranges import Bytes, Piece, Window
from tandem.models.stop import Stop, Stopped

WORTH: Final = 1 << 14
"""Bytes that make a try one that was worth it."""

STILL: Final = 4 << 10
"""Fewer bytes than that in the time that silence may last are silence."""

_EVERY_S: Final = 0.1
_TICK_S: Final = 0.25
_LATER_S: Final = 5.0


def passes(error: Exception) -> bool:
    """Whether it may be gone a moment later."""
    return isinstance(error, TransferError) and error.fault in PASSING


@dataclass(frozen=True)
class Source:
    """What is fetched, and from where.

    Attributes:
        hub: Gives clients, and sentences for what goes wrong.
        located: Where the bytes are.
        name: The file's name, for sentences.
        ranged: Whether the host is asked for parts.
        near: Whether it sends so fast that one connection is enough, and that every copy of the bytes counts.
        stall_s: Seconds of silence after which a connection is given up.
        named: Whether it is minded what the host calls the content.
    """

    hub: Hub
    located: Located
    name: str
    ranged: bool
    near: bool
    stall_s: float
    named: bool = True


class Crew:
    """The readers of one file, for the thread that writes it.

    Args:
        source: What they fetch.
        window: Which bytes.
        etag: What the host calls the content, "" for unknown.
        limit: How fast they may be.
        stop: Ends the waiting for them.
        clock: Seconds that only grow.

    Attributes:
        etag: What the host calls the content, as soon as one has been told.
    """

    def __init__(
        self,
        source: Source,
        window: Window,
        etag: str,
        limit: Limit,
        stop: Stop,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.source: Final = source
        self.etag = etag
        self.changed: Final = threading.Condition()
        self.clock: Final = clock
        self.window: Final = window
        self.limit: Final = limit
        self._stop = stop
        self._readers: list[_Reader] = []
        self._free: list[bytearray] = []
        self._error: Exception | None = None

    def start(self, count: int) -> None:
        """Begins with so many connections, of which some may find nothing to do."""
        with self.changed:
            for _number in range(count):
                reader = _Reader(self)
                self._readers.append(reader)
                reader.start()

    def wait(self) -> list[Bytes]:
        """Waits for bytes; those that can be written now, in order; none from time to time when nothing comes in.

        Raises:
            Stopped: It was asked for.
            Odd: The file has to be asked for in another way.
            TransferError: Nobody is left to bring anything, or it makes no sense to go on.
        """
        with self.changed:
            if not self.window.readable and not self._fatal and self._readers and not self._stop.is_set():
                self.changed.wait(min(_TICK_S, self.source.stall_s / 4))
            if self._stop.is_set():
                raise Stopped(self._stop.why or "pause")
            if self._fatal and self._error is not None:
                raise self._error
            blocks = self.window.ready()
            if blocks:
                self.changed.notify_all()
            self._drop_silent()
            if not blocks and not self._readers and not self.window.finished:
                raise self._error or self._stalled()
            return blocks

    def written(self, block: Bytes) -> None:
        """A block is written and hashed: its memory is used again, which is faster than getting new memory."""
        if isinstance(block, memoryview) and isinstance(block.obj, bytearray):
            self._free.append(block.obj)

    def wake(self) -> None:
        """Has `wait` look whether it is to end."""
        with self.changed:
            self.changed.notify_all()

    def leave(self) -> None:
        """Abandons all readers; returns at once."""
        with self.changed:
            for reader in self._readers[:]:
                self._abandon(reader)
            self.changed.notify_all()

    # --- for the readers

    def buffer(self) -> bytearray:
        """Memory for a block."""
        return self._free.pop() if self._free else bytearray(BLOCK)

    def next(self, reader: _Reader) -> Piece | None:
        """A piece to fetch, waited for: what others fetch can come back. None when it is over."""
        with self.changed:
            if reader.piece is not None:  # its line broke in the middle of it
                self.window.give_back(reader.piece, reader)
            reader.piece = None
            while not reader.abandoned:
                piece = self.window.take(reader)
                if piece is not None:
                    reader.begin(self.clock(), piece)
                    return piece
                self.changed.wait()
            return None

    def told(self, reader: _Reader, etag: str) -> bool:
        """What the host calls the content; False when another reader was told something else."""
        with self.changed:
            if reader.abandoned or not etag or not self.source.named:
                return True
            self.etag = self.etag or etag
            return self.etag == etag

    def put(self, reader: _Reader, piece: Piece, block: Bytes) -> bool:
        """Brings bytes; False when nobody wants them any more. Waits while too many wait to be written."""
        with self.changed:
            if not self.window.put(piece, reader, block):
                return False
            if self.window.readable:
                self.changed.notify_all()
            reader.moved(self.clock())
            with self._resting(reader):
                while self.window.full and self.window.readable and piece.owner is reader:
                    self.changed.wait()
            return piece.owner is reader

    def rest(self, reader: _Reader, piece: Piece, seconds: float) -> None:
        """Keeps a reader to the speed limit."""
        with self.changed, self._resting(reader):
            until = self.clock() + seconds
            while piece.owner is reader and (left := until - self.clock()) > 0:
                self.changed.wait(left)

    def noted(self, reader: _Reader, connection: socket.socket) -> None:
        """A reader has a connection."""
        with self.changed:
            reader.connections.append(connection)
            if reader.abandoned:
                reader.shut()

    def gone(self, reader: _Reader, error: Exception | None) -> None:
        """A reader has ended."""
        with self.changed:
            reader.connections.clear()
            if reader.abandoned:
                return
            self._readers.remove(reader)
            if reader.piece is not None:
                self.window.give_back(reader.piece, reader)
            if error is not None and (self._error is None or passes(self._error)):
                self._error = error
            self.changed.notify_all()

    # --- inside

    @contextmanager
    def _resting(self, reader: _Reader) -> Iterator[None]:
        """What it waits for in the block is not the host."""
        reader.rest(self.clock())
        try:
            yield
        finally:
            reader.wake(self.clock())

    @property
    def _fatal(self) -> bool:
        """Whether it makes no sense to go on, even if others still bring something."""
        return self._error is not None and not passes(self._error)

    def _drop_silent(self) -> None:
        """Abandons the connections on which nothing comes in."""
        now = self.clock()
        for reader in self._readers[:]:
            if reader.silent(now, self.source.stall_s):
                self._abandon(reader)
                self._error = self._error or self._stalled()
                self.changed.notify_all()

    def _abandon(self, reader: _Reader) -> None:
        reader.abandoned = True
        self._readers.remove(reader)
        if reader.piece is not None:
            self.window.give_back(reader.piece, reader)
        reader.shut()

    def _stalled(self) -> TransferError:
        host = self.source.located.host
        return TransferError(
            "stalled",
            f"Nothing came from {host} for {self.source.stall_s:.0f} seconds.",
            REACH,
            host=host,
        )


class _Reader(threading.Thread):
    """One connection.

    Attributes:
        abandoned: It is over for this one.
        piece: What it fetches.
        connections: Those that it has made.
    """

    def __init__(self, crew: Crew) -> None:
        super().__init__(name="download-reader", daemon=True)
        self.abandoned = False
        self.piece: Piece | None = None
        self.connections: list[socket.socket] = []
        self._crew = crew
        self._since = 0.0
        self._got = 0
        self._resting: float | None = None

    # --- under the crew's lock

    def begin(self, now: float, piece: Piece) -> None:
        """It waits for bytes of that piece from now on."""
        self.piece = piece
        self._since, self._got = now, piece.got

    def moved(self, now: float) -> None:
        """Some have come in."""
        if self.piece is not None and self.piece.got - self._got >= STILL:
            self._since, self._got = now, self.piece.got

    def rest(self, now: float) -> None:
        """It waits for the writer or the speed limit now, not for the host."""
        self._resting = now

    def wake(self, now: float) -> None:
        """It waits for the host again."""
        if self._resting is not None:
            self._since += now - self._resting
            self._resting = None

    def silent(self, now: float, stall_s: float) -> bool:
        """Whether it has brought nothing to speak of for so long."""
        until = now if self._resting is None else self._resting
        return self.piece is not None and until - self._since >= stall_s

    def shut(self) -> None:
        """Wakes the thread from whatever it does on its connections."""
        for one in self.connections:
            with suppress(OSError):
                # Not an SSLSocket's own, which forgets the encryption while another thread is reading.
                socket.socket.shutdown(one, socket.SHUT_RDWR)

    # --- in its own thread

    def run(self) -> None:
        error: Exception | None = None
        source = self._crew.source
        try:
            with source.hub.network.client(source.stall_s + _LATER_S) as client:
                while (piece := self._crew.next(self)) is not None:
                    before = piece.got
                    try:
                        self._fetch(client, piece)
                    except TransferError as problem:
                        # A line that broke after it had brought something is used again at once.
                        if not passes(problem) or (piece.got - before < WORTH and not piece.whole):
                            raise
        except Exception as problem:  # whatever it is, the thread that writes has to know
            error = problem
        self._crew.gone(self, error)

    def _fetch(self, client: httpx2.Client, piece: Piece) -> None:
        crew, source = self._crew, self._crew.source
        ranged = source.ranged or piece.at > 0
        ask = Ask(source.name, piece.at, piece.end, crew.window.total, crew.etag, ranged)
        address, headers = source.located.location, ask.headers(source.located)
        try:
            with client.stream("GET", address, headers=headers, extensions={"trace": self._watch}) as response:
                etag = judge(response, ask, source.hub)
                if not crew.told(self, etag):
                    raise changed(host_of(str(response.url)), ask, etag)
                self._take(response, ask, piece)
        except (httpx2.HTTPError, httpx2.InvalidURL, OSError, ValueError) as error:
            # Not chained: an address can be signed.
            raise source.hub.mapped(error, address, source.name) from None

    def _take(self, response: httpx2.Response, ask: Ask, piece: Piece) -> None:
        """Brings the body, in blocks, so that the threads meet seldom."""
        crew, host = self._crew, host_of(str(response.url))
        left, since = ask.end - ask.start, crew.clock()
        held: list[Bytes] = []
        count = 0
        try:
            for chunk in arriving(response, left, crew.buffer if crew.source.near else None, crew.clock):
                if left == ask.end and bytes(chunk[:64]).lstrip()[:1] == b"<":  # the file's beginning, and no GGUF's
                    raise not_the_hub(host, "it looks like a web page")
                left -= len(chunk)
                if left < 0:
                    raise wrong_count(host, ask.name, f"more than {ask.end - ask.start} bytes")
                held.append(chunk)
                count += len(chunk)
                now = crew.clock()
                pause = crew.limit.take(len(chunk), now)
                if count >= BLOCK or now - since >= _EVERY_S or pause:
                    block, held, count, since = joined(held), [], 0, now
                    if not crew.put(self, piece, block):
                        return
                if pause:
                    crew.rest(self, piece, pause)
        finally:
            if held:
                crew.put(self, piece, joined(held))
        if left and not self.abandoned:
            raise TransferError("unreachable", f"The connection to {host} broke off.", REACH, f"{left} missing", host)

    def _watch(self, _event: str, info: dict[str, Any]) -> None:
        """Follows what the client does, for the connections that it makes."""
        connection = connection_of(info.get("return_value"))
        if connection is not None:
            self._crew.noted(self, connection)
