"""The body of an answer as it comes in."""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator
from typing import Any, Final, Protocol, runtime_checkable

import httpx2

from tandem.models.ranges import Bytes

BLOCK: Final = 1 << 20
"""Bytes that are handed on at a time, if they come fast."""

_EVERY_S: Final = 0.1


@runtime_checkable
class _Stream(Protocol):
    """A connection, as httpx2 shows it."""

    def get_extra_info(self, info: str) -> Any: ...


def connection_of(stream: object) -> socket.socket | None:
    """The socket of a connection of the client library, None for something else."""
    found = stream.get_extra_info("socket") if isinstance(stream, _Stream) else None
    return found if isinstance(found, socket.socket) else None


def joined(chunks: list[Bytes]) -> Bytes:
    """Several chunks as one."""
    return chunks[0] if len(chunks) == 1 else b"".join(chunks)


def arriving(
    response: httpx2.Response, count: int, buffer: Callable[[], bytearray] | None, clock: Callable[[], float]
) -> Iterator[Bytes]:
    """The body in chunks.

    Of a near host, the bytes are taken from the connection itself once the client library has given out all that it
    has read (it keeps nothing back): its own work on them costs more than all the rest. It then closes the connection.

    Args:
        response: Nothing of its body has been read.
        count: Bytes that are expected.
        buffer: Gives memory for a block of a near host; None for one that is not near.
        clock: Seconds that only grow.
    """
    chunks = response.iter_raw()  # what reads from it must live as long as the connection is used
    straight = None if buffer is None else _straight(response)
    for chunk in chunks:
        count -= len(chunk)
        yield chunk
        if straight is not None and count > 0:
            break
    while straight is not None and buffer is not None and count > 0:
        block, filled = memoryview(buffer())[:count], 0
        until = clock() + _EVERY_S
        while filled < len(block) and clock() < until:
            got = straight.recv_into(block[filled:])
            if not got:  # it was closed at the other end
                count = 0
                break
            filled += got
        count -= filled
        yield block[:filled]


def _straight(response: httpx2.Response) -> socket.socket | None:
    """The connection of a response whose body is nothing but so many bytes on it."""
    if "Content-Length" not in response.headers or response.http_version != "HTTP/1.1":
        return None
    stream = response.extensions.get("network_stream")
    connection = connection_of(stream)
    if connection is None or not isinstance(stream, _Stream):
        return None
    # Within a proxy's own encryption there is another one, which the socket knows nothing of.
    secure = stream.get_extra_info("ssl_object")
    return connection if secure is None or secure is connection else None
