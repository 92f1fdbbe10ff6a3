"""Whatever can go wrong between here and the Hub, as a `TransferError` with its own sentence.

A sentence names the host that it was about: behind a redirect that is not the one that was asked first.
"""

from __future__ import annotations

import socket
import ssl
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Final
from urllib.parse import urlsplit

import httpx2
from huggingface_hub.errors import (
    DisabledRepoError,
    EntryNotFoundError,
    GatedRepoError,
    HfHubHTTPError,
    OfflineModeIsEnabled,
    RepositoryNotFoundError,
    RevisionNotFoundError,
)
from huggingface_hub.utils._http import parse_ratelimit_headers

from tandem.errors import TandemError
from tandem.models.connection import NotTheHub, discreet
from tandem.models.errors import RateLimited, TransferError
from tandem.models.network import Network, host_of, masked

REACH: Final = "Check the internet connection; where the Hub is blocked, set a mirror or a proxy in Settings."
AGAIN: Final = "Try again; what came in so far is kept."
OTHER_SOURCE: Final = "Choose the other source of this model, or update Tandem."
PORTAL: Final = "Open a web browser and sign in to this network, or check the Hub address in Settings; then try again."
_LONGEST_S: Final = 1e9
SIGN_IN: Final = "Sign in with a token in Settings, or choose the other source of this model."


def mapped(
    error: Exception, host: str, network: Network | None = None, what: str = "", token: str = ""
) -> TransferError:
    """The error that a person sees.

    Args:
        error: What was raised by huggingface_hub, httpx2, or what reads an answer of theirs.
        host: The host or address that was asked; what the error itself says comes first.
        network: How it was reached; None for the Hub's usual way.
        what: The file or repository that it was about, for the sentence.
        token: The one that was sent, "" for none; it is kept out of the details.
    """
    if isinstance(error, TransferError):
        return error
    network = network or Network()
    url = _url_of(error) or (host if "://" in host else f"{urlsplit(network.endpoint).scheme}://{host}")
    name = host_of(url)
    details = discreet(f"{type(error).__name__}: {error}")
    if token:
        details = details.replace(token, "•••")
    if isinstance(error, TandemError):
        return TransferError("unreachable", error.sentence, error.remedy, details, name)
    if isinstance(error, OfflineModeIsEnabled):
        variable = network.offline_from if network.offline else "HF_HUB_OFFLINE"
        return TransferError(
            "offline-mode",
            f"Offline mode is on, so {name} was not asked.",
            f"Unset {variable} and start Tandem again, or import the files from this computer.",
            details,
            name,
        )
    if isinstance(error, HfHubHTTPError | httpx2.HTTPStatusError):
        return _status(error, name, network, what or name, details, bool(token))
    if isinstance(error, httpx2.HTTPError | httpx2.InvalidURL | OSError):
        return _connection(error, url, name, network, details)
    # No JSON, JSON of another form, an answer without the headers that the Hub gives.
    return not_the_hub(name, details)


def not_the_hub(host: str, details: str = "") -> TransferError:
    """Something answered in the Hub's place: the page of a network that wants a sign-in, or a wrong mirror."""
    return TransferError(
        "portal",
        f"What answered as {host} is not the Hub but some other page.",
        PORTAL,
        details,
        host,
    )


def wait_of(response: httpx2.Response) -> float | None:
    """Seconds that an answer asks to wait, None when it does not say."""
    with suppress(ValueError):  # a number without end
        limit = parse_ratelimit_headers(response.headers)
        if limit is not None and limit.remaining == 0:
            return float(min(limit.reset_in_seconds, _LONGEST_S))
    text = response.headers.get("Retry-After", "").strip()
    if text.isdecimal():
        return min(float(text), _LONGEST_S)
    with suppress(ValueError, TypeError, OverflowError):
        when = parsedate_to_datetime(text)
        if when.tzinfo is None:
            when = when.replace(tzinfo=UTC)
        return max(0.0, (when - datetime.now(UTC)).total_seconds())
    return None


def _url_of(error: Exception) -> str | None:
    """The address of the request that failed."""
    with suppress(RuntimeError):  # there was none yet
        if isinstance(error, HfHubHTTPError | httpx2.HTTPStatusError):
            return str(error.response.request.url.copy_with(query=None))
        if isinstance(error, httpx2.RequestError):
            return str(error.request.url.copy_with(query=None))
    return None


def _chain(error: BaseException) -> Iterator[BaseException]:
    """The error and what it came from."""
    seen: set[int] = set()
    at: BaseException | None = error
    while at is not None and id(at) not in seen:
        seen.add(id(at))
        yield at
        at = at.__cause__ or at.__context__


def _connection(error: Exception, url: str, name: str, network: Network, details: str) -> TransferError:
    """No answer, or none to its end."""
    causes = list(_chain(error))
    proxy = network.proxy_for(url)
    if any(isinstance(one, ssl.SSLCertVerificationError) for one in causes):
        return TransferError(
            "certificate",
            f"The certificate of {name} is not trusted by this system.",
            "Check this computer's clock; a proxy that inspects traffic needs its certificate in the system's store.",
            details,
            name,
        )
    if isinstance(error, httpx2.ProxyError):
        return _proxy(proxy, name, details, str(error)[:3])
    not_tls = not any(isinstance(one, ssl.SSLError) for one in causes)  # behind a tunnel that is not the proxy's
    if proxy is not None and not_tls and isinstance(error, httpx2.ConnectError | httpx2.ConnectTimeout):
        return TransferError(
            "proxy",
            f"The proxy {masked(proxy)}, through which {name} is reached, does not answer.",
            "Check the proxy in Settings and the variables HTTPS_PROXY and ALL_PROXY.",
            details,
            name,
        )
    if isinstance(error, httpx2.TimeoutException | TimeoutError):
        return TransferError("timeout", f"{name} did not answer in time.", REACH, details, name)
    if any(isinstance(one, socket.gaierror) for one in causes):
        return TransferError("unreachable", f"The address of {name} was not found.", REACH, details, name)
    if isinstance(error, httpx2.ConnectError):
        # A connection that ends in the middle of the handshake is a bad line; what is said in it is not.
        broken = (ssl.SSLEOFError, ssl.SSLZeroReturnError)
        if any(isinstance(one, ssl.SSLError) and not isinstance(one, broken) for one in causes):
            return TransferError(
                "certificate",
                f"No secure connection to {name} could be made.",
                "Check the Hub address and the proxy in Settings; a network that wants a sign-in can be the cause too.",
                details,
                name,
            )
        return TransferError("unreachable", f"{name} cannot be reached.", REACH, details, name)
    if isinstance(error, httpx2.TooManyRedirects):
        return TransferError("portal", f"{name} leads from one address to the next without end.", PORTAL, details, name)
    if isinstance(error, httpx2.InvalidURL | httpx2.UnsupportedProtocol | NotTheHub):
        return not_the_hub(name, details)
    return TransferError("unreachable", f"The connection to {name} broke off.", REACH, details, name)


def _proxy(proxy: str | None, name: str, details: str, status: str) -> TransferError:
    """What a proxy answered in place of the host."""
    shown = masked(proxy or name)
    if status in ("500", "502", "503", "504"):
        return TransferError("unreachable", f"The proxy {shown} cannot reach {name}.", REACH, details, name)
    if status == "407":
        return TransferError(
            "proxy",
            f"The proxy {shown} asks for a name and a password.",
            "Give the proxy in Settings as http://name:password@host:port.",
            details,
            name,
        )
    return TransferError(
        "proxy",
        f"The proxy {shown} does not let anything through to {name}.",
        "Check the proxy in Settings, or ask who runs it to allow this host.",
        details,
        name,
    )


def _status(
    error: HfHubHTTPError | httpx2.HTTPStatusError,
    name: str,
    network: Network,
    what: str,
    details: str,
    signed_in: bool,
) -> TransferError:
    """An answer that is a refusal."""
    response = error.response
    status = response.status_code
    at_hub = network.host == name
    if isinstance(error, GatedRepoError):
        return _gated(name, network, what, details, signed_in)
    if isinstance(error, RevisionNotFoundError):
        return TransferError(
            "missing-revision", f"The pinned revision of {what} is no longer at {name}.", OTHER_SOURCE, details, name
        )
    if isinstance(error, EntryNotFoundError):
        return TransferError("missing-file", f"{what} is no longer at {name}.", OTHER_SOURCE, details, name)
    if isinstance(error, DisabledRepoError):
        return TransferError("missing-repo", f"{name} has disabled {what}.", OTHER_SOURCE, details, name)
    if status == 429:
        return RateLimited(name, wait_of(response))
    if status == 407:
        return _proxy(network.proxy_for(str(response.url)), name, details, "407")
    if status == 401 and at_hub:
        return _sign_in(name, what, details, signed_in)
    if isinstance(error, RepositoryNotFoundError) or (status == 404 and at_hub):
        return TransferError("missing-repo", f"{name} has no {what}.", OTHER_SOURCE, details, name)
    if status == 403 and at_hub:
        return _gated(name, network, what, details, signed_in)
    if status == 511:
        return not_the_hub(name, details)
    if status >= 500 or status in (401, 403, 404, 408, 416):
        return TransferError("server", f"{name} answered with error {status}.", AGAIN, details, name)
    return TransferError(
        "portal", f"{name} answered with status {status}, which makes no sense here.", PORTAL, details, name
    )


def _sign_in(name: str, what: str, details: str, signed_in: bool) -> TransferError:
    if signed_in:
        return TransferError(
            "sign-in",
            f"{name} does not accept your token for {what}.",
            "Give a new token in Settings, or remove the old one: most models need none.",
            details,
            name,
        )
    return TransferError(
        "sign-in",
        f"{name} shows no {what} to somebody who is not signed in; it is private, or no longer there.",
        SIGN_IN,
        details,
        name,
    )


def _gated(name: str, network: Network, what: str, details: str, signed_in: bool) -> TransferError:
    page = "/".join([network.endpoint, *what.split("/")[:2]]) if "/" in what else network.endpoint
    if signed_in:
        return TransferError(
            "gated",
            f"{name} does not give {what} to your account.",
            f"Ask for access on its page at {page}, then try again.",
            details,
            name,
        )
    return TransferError(
        "gated",
        f"{name} gives {what} only to people who asked for access.",
        f"Ask for access on its page at {page}, then sign in with a token in Settings.",
        details,
        name,
    )
