"""The HTTP client for the Hub and its storage hosts.

It trusts the system's certificates, keeps to the chosen proxy, and sends a token to the endpoint only. huggingface_hub
makes its requests with one client for the whole process: `install` gives it one that hands each request to the client
of whoever is speaking just then, so that two networks can be in use side by side.
"""

from __future__ import annotations

import logging
import re
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Final

import httpx2
import huggingface_hub
import truststore
from huggingface_hub import constants
from huggingface_hub.errors import OfflineModeIsEnabled
from huggingface_hub.utils._http import hf_request_event_hook

import tandem
from tandem.models.network import Network, masked

CONNECT_S: Final = 15.0
"""Seconds for a connection to be made."""

AGENT: Final = f"tandem/{tandem.__version__}"

_REDIRECTS: Final = 10
_MOST_ASIDE: Final = 1 << 20  # of a body that nobody asked for: a redirect's
_TALKATIVE: Final = ("httpx2", "httpcore2", "huggingface_hub")
_QUERY: Final = re.compile(r"\?[^\s'\"<>\]\)]+")
_SECRET: Final = re.compile(r"(?i)\b(bearer|basic)\s+[^\s'\"]+|\bhf_[a-z0-9]{16,}")

# Without this, huggingface_hub asks its own address, not the chosen one, for a list of programs to report itself to.
constants.HF_HUB_DISABLE_TELEMETRY = True
# A token goes along only where it is given for a call.
constants.HF_HUB_DISABLE_IMPLICIT_TOKEN = True

_speaking: ContextVar[httpx2.Client] = ContextVar("speaking")
_lock = threading.Lock()
_installed = False


class NotTheHub(httpx2.TransportError):
    """An answer that the Hub does not give: without end, packed so that it may have none, or in clear."""


def client(network: Network, read_s: float = 30.0, most: int | None = None) -> httpx2.Client:
    """A new client, to be closed by the caller. Follows redirects; no token leaves the endpoint's host with them.

    Args:
        network: Where to and how.
        read_s: Seconds of silence after which a read fails.
        most: Bytes that the body of an answer may have; None for bodies that are not held in memory.
    """
    made = httpx2.Client(
        transport=_Routes(network, most),
        event_hooks={"request": [_Watch(network)]},
        headers={"User-Agent": AGENT, "Accept-Encoding": "identity"},
        timeout=httpx2.Timeout(read_s, connect=CONNECT_S, pool=None),
        follow_redirects=True,
        max_redirects=_REDIRECTS,
        trust_env=False,
    )
    _quieten()
    return made


def install() -> None:
    """Makes huggingface_hub send its requests through the client that `speaking` names; others are refused."""
    global _installed
    with _lock:
        if not _installed:
            huggingface_hub.set_client_factory(_Dispatch)
            _installed = True


@contextmanager
def speaking(with_client: httpx2.Client) -> Iterator[None]:
    """What huggingface_hub sends in the block, in this thread, goes through that client."""
    before = _speaking.set(with_client)
    try:
        yield
    finally:
        _speaking.reset(before)


def discreet(text: str) -> str:
    """A text for the log without tokens, passwords, and the queries of addresses, which can be a signature."""
    return masked(_SECRET.sub("•••", _QUERY.sub("?•••", text)))


class _Routes(httpx2.BaseTransport):
    """Sends a request directly or through the proxy for its address."""

    def __init__(self, network: Network, most: int | None) -> None:
        self._network = network
        self._most = most
        self._trust = truststore.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        self._routes: dict[str | None, httpx2.HTTPTransport] = {}
        self._guard = threading.Lock()

    def handle_request(self, request: httpx2.Request) -> httpx2.Response:
        response = self._route(self._network.proxy_for(str(request.url))).handle_request(request)
        most = _MOST_ASIDE if response.has_redirect_location else self._most
        if most is not None and isinstance(response.stream, httpx2.SyncByteStream):
            response.stream = _Bounded(response.stream, response.headers, most)
        return response

    def _route(self, proxy: str | None) -> httpx2.HTTPTransport:
        with self._guard:
            if proxy not in self._routes:
                through = None
                if proxy is not None:
                    secure = self._trust if proxy.startswith("https:") else None
                    through = httpx2.Proxy(proxy, ssl_context=secure)
                self._routes[proxy] = httpx2.HTTPTransport(verify=self._trust, trust_env=False, proxy=through)
                _quieten()  # that has loaded more of the library
            return self._routes[proxy]

    def close(self) -> None:
        with self._guard:
            for route in self._routes.values():
                route.close()


class _Bounded(httpx2.SyncByteStream):
    """A body that is read into memory as a whole, which therefore has to have an end.

    Compressed, a few bytes can become any number of them: that was not asked for, and is not taken.
    """

    def __init__(self, stream: httpx2.SyncByteStream, headers: httpx2.Headers, most: int) -> None:
        self._stream = stream
        self._packed = headers.get("Content-Encoding", "").strip().casefold() not in ("", "identity")
        self._left = most

    def __iter__(self) -> Iterator[bytes]:
        for block in self._stream:
            self._left -= len(block)
            if self._packed or self._left < 0:
                raise NotTheHub("it is compressed" if self._packed else "it is too long")
            yield block

    def close(self) -> None:
        self._stream.close()


class _Watch:
    """Looks at every request before it is sent, those that follow a redirect too."""

    def __init__(self, network: Network) -> None:
        self._network = network

    def __call__(self, request: httpx2.Request) -> None:
        if self._network.offline:
            raise OfflineModeIsEnabled(f"{request.url.host} is not asked: offline mode is on")
        if request.url.scheme == "http" and self._network.endpoint.startswith("https:"):
            raise NotTheHub(f"{request.url.host} would be asked without encryption", request=request)
        if not self._network.trusts(str(request.url)):
            request.headers.pop("Authorization", None)
        hf_request_event_hook(request)


class _Dispatch(httpx2.Client):
    """What huggingface_hub takes for its client."""

    def __init__(self) -> None:
        super().__init__(transport=httpx2.BaseTransport(), trust_env=False)

    def send(self, request: httpx2.Request, **kwargs: Any) -> httpx2.Response:
        through = _speaking.get(None)
        if through is None:
            raise RuntimeError("huggingface_hub is to be used through tandem.models.hub")
        return through.send(request, **kwargs)


class _Discreet(logging.Filter):
    """Takes what nobody but the Hub may know out of what the libraries log."""

    def filter(self, record: logging.LogRecord) -> bool:
        record.msg, record.args = discreet(record.getMessage()), None
        return True


_discreet = _Discreet()


def _quieten() -> None:
    """Puts the filter on every logger of the libraries; one on a parent would not see what its children log."""
    for name in list(logging.Logger.manager.loggerDict):
        if name.split(".")[0] in _TALKATIVE:
            logging.getLogger(name).addFilter(_discreet)
