"""Asking a host for bytes of a file, and judging the answer before any of them is believed.

::

    206, the range that was asked for, the same ETag, not compressed     taken
    200 to a request without a range                                     taken
    200 to a request for a range                                         Whole
    another ETag than before                                             Changed
    401, 403, 404, 410 of a storage host                                 Expired
    anything else                                                        a TransferError
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

import httpx2
from huggingface_hub.errors import HfHubHTTPError
from huggingface_hub.utils._http import hf_raise_for_status

from tandem.models.errors import TransferError
from tandem.models.hub import Hub, Located
from tandem.models.hub_errors import AGAIN, not_the_hub
from tandem.models.network import host_of

_STRONG: Final = re.compile(r'"[!-~]*"')
_GONE: Final = frozenset({401, 403, 404, 410})


class Odd(Exception):
    """An answer after which the file has to be asked for in another way.

    Args:
        error: What to say when that has been tried often enough.
    """

    def __init__(self, error: TransferError) -> None:
        super().__init__(error.sentence)
        self.error: Final = error


class Whole(Odd):
    """The host sends all of the file, though a part was asked for: it has no ranges."""


class Changed(Odd):
    """The host has another content than before."""


class Expired(Odd):
    """The address of the bytes is no longer good."""


@dataclass(frozen=True)
class Ask:
    """A request for bytes of a file.

    Attributes:
        name: The file's name, for sentences.
        start: The first byte.
        end: The byte behind the last one.
        total: Bytes of the file.
        etag: What the host calls the content, "" where that is not known yet.
        ranged: Whether a part is asked for; without, everything, and `start` is 0.
    """

    name: str
    start: int
    end: int
    total: int
    etag: str
    ranged: bool

    def headers(self, located: Located) -> dict[str, str]:
        """What is sent."""
        headers = {**located.headers, "Accept-Encoding": "identity"}
        if self.ranged:
            headers["Range"] = f"bytes={self.start}-{self.end - 1}"
            if _STRONG.fullmatch(self.etag):  # a weak one says nothing about bytes
                headers["If-Range"] = self.etag
        return headers


def judge(response: httpx2.Response, ask: Ask, hub: Hub) -> str:
    """Whether the body of an answer is what was asked for; nothing of it is read.

    Args:
        response: Status and headers have come.
        ask: What was asked.
        hub: Makes sentences of refusals.

    Returns:
        What the host calls the content, "" when it does not say.

    Raises:
        Whole: All of the file comes.
        Changed: It is another content.
        Expired: The address is no longer good.
        TransferError: It is refused, or is something else.
    """
    host = host_of(str(response.url))
    if response.status_code not in (200, 206):
        _refused(response, ask, hub, host)
    headers = response.headers
    kind = headers.get("Content-Type", "").partition(";")[0].strip().casefold()
    if kind in ("text/html", "application/xhtml+xml"):
        raise not_the_hub(host, f"{response.status_code}, {kind}")
    if headers.get("Content-Encoding", "identity").strip().casefold() not in ("", "identity"):
        raise TransferError(
            "server",
            f"{host} sends {ask.name} compressed, which it was asked not to do.",
            AGAIN,
            f"Content-Encoding: {headers['Content-Encoding']}",
            host,
        )
    etag = headers.get("ETag", "")
    if ask.etag and etag and etag != ask.etag:
        raise changed(host, ask, etag)
    if response.status_code == 200 and ask.ranged:
        raise Whole(TransferError("server", f"{host} cannot go on with {ask.name} where it stopped.", AGAIN, "", host))
    said, expected = headers.get("Content-Range", ""), f"bytes {ask.start}-{ask.end - 1}/{ask.total}"
    if response.status_code == 206 and not (ask.ranged and _same_range(said, ask)):
        raise TransferError(
            "server",
            f"{host} sends other bytes of {ask.name} than those it was asked for.",
            AGAIN,
            f"{said or 'no range'} instead of {expected}",
            host,
        )
    length = headers.get("Content-Length")
    if length is not None and length != str(ask.end - ask.start):
        raise wrong_count(host, ask.name, f"{length} bytes for {expected}")
    return etag


def changed(host: str, ask: Ask, etag: str) -> Changed:
    """Another ETag than before."""
    details = f"{ask.etag or 'another'}, then {etag}"
    return Changed(
        TransferError("server", f"{ask.name} changes at {host} while it is downloaded.", AGAIN, details, host)
    )


def wrong_count(host: str, name: str, details: str) -> TransferError:
    """More or fewer bytes than were asked for."""
    return TransferError(
        "server", f"{host} sends another number of bytes of {name} than it was asked for.", AGAIN, details, host
    )


def _same_range(said: str, ask: Ask) -> bool:
    wanted = f"bytes {ask.start}-{ask.end - 1}"
    return said.strip() in (f"{wanted}/{ask.total}", f"{wanted}/*")


def _refused(response: httpx2.Response, ask: Ask, hub: Hub, host: str) -> None:
    """Raises what another status than 200 and 206 means."""
    # Without its body, which may never end.
    bare = httpx2.Response(response.status_code, headers=_without_length(response.headers), request=response.request)
    try:
        hf_raise_for_status(bare)
    except HfHubHTTPError as refusal:
        error = hub.mapped(refusal, str(response.url), ask.name)
    else:  # a status that is no error, and no answer to this either
        error = wrong_count(host, ask.name, f"status {response.status_code}")
    if response.status_code in _GONE and host != hub.network.host:
        raise Expired(error) from None
    raise error from None


def _without_length(headers: httpx2.Headers) -> httpx2.Headers:
    kept = headers.copy()
    for name in ("Content-Length", "Content-Encoding", "Transfer-Encoding"):
        kept.pop(name, None)
    return kept
