"""How the Hub is reached: its address or a mirror's, the proxy, offline mode, and where each of them came from.

The command line comes before the settings, these before the environment. Nothing here opens a connection or imports
what does: `tandem.models.connection` makes a client of it.
"""

from __future__ import annotations

import ipaddress
import os
import re
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, Literal
from urllib.parse import SplitResult, urlsplit

from tandem.errors import UsageError
from tandem.settings import Settings

if TYPE_CHECKING:
    import httpx2

HUB: Final = "https://huggingface.co"
"""The Hub's own address."""

NO_PROXY: Final = "none"
"""In place of a proxy's address in the settings: go without, whatever the environment says."""

Effect = Literal["endpoint", "token", "token-file", "proxy", "no-proxy", "offline", "certificates"]
"""What an environment variable does."""

_EFFECTS: Final[tuple[tuple[str, Effect], ...]] = (
    ("HF_ENDPOINT", "endpoint"),
    ("HF_TOKEN", "token"),
    ("HUGGING_FACE_HUB_TOKEN", "token"),
    ("HF_HUB_OFFLINE", "offline"),
    ("TRANSFORMERS_OFFLINE", "offline"),
    ("HTTPS_PROXY", "proxy"),
    ("HTTP_PROXY", "proxy"),
    ("ALL_PROXY", "proxy"),
    ("NO_PROXY", "no-proxy"),
    ("HF_HOME", "token-file"),
    ("HF_TOKEN_PATH", "token-file"),
    ("SSL_CERT_FILE", "certificates"),
    ("SSL_CERT_DIR", "certificates"),
)
_TRUE: Final = frozenset({"1", "ON", "YES", "TRUE"})
_UNFIT: Final = re.compile(r"[\s\x00-\x20\x7f]")
_CREDENTIALS: Final = re.compile(r"(^|//)[^/@\s]*@")
_PORTS: Final = {"http": 80, "https": 443}


@dataclass(frozen=True)
class Variable:
    """An environment variable that counts and is set.

    Attributes:
        name: As it is set.
        shown: Its value as it may be seen: of a token only that there is one.
        effect: What it does.
    """

    name: str
    shown: str
    effect: Effect


@dataclass(frozen=True, repr=False)
class Network:
    """How the Hub is reached. Shows no credentials when it is printed.

    Attributes:
        endpoint: Address of the Hub or of a mirror, without a slash at its end.
        endpoint_from: "command line", "settings", "HF_ENDPOINT" or "default".
        proxy: Address of the proxy for the endpoint, with its credentials; None for none.
        proxy_from: "settings", a variable's name, "system" or "default".
        offline: Whether no connection may be made.
        offline_from: A variable's name or "default".
        proxies: By scheme ("http", "https"), where they are not the settings'.
        no_proxy: Hosts for which these are not used, as in NO_PROXY.
    """

    endpoint: str = HUB
    endpoint_from: str = "default"
    proxy: str | None = None
    proxy_from: str = "default"
    offline: bool = False
    offline_from: str = "default"
    proxies: tuple[tuple[str, str], ...] = ()
    no_proxy: str = ""

    @classmethod
    def chosen(
        cls,
        settings: Settings | None = None,
        endpoint: str | None = None,
        environ: Mapping[str, str] = os.environ,
    ) -> Network:
        """What holds now.

        Args:
            settings: The user's; None for none.
            endpoint: From the command line.
            environ: The environment.

        Raises:
            UsageError: An address is none, or a proxy is of a kind that cannot be used.
        """
        settings = settings or Settings()
        address, source = HUB, "default"
        for text, where in (
            (endpoint, "command line"),
            (settings.hub_endpoint, "settings"),
            (environ.get("HF_ENDPOINT"), "HF_ENDPOINT"),
        ):
            if text and text.strip():
                address, source = _endpoint(text.strip()), where
                break
        offline_from = next(
            (name for name in ("HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE") if environ.get(name, "").upper() in _TRUE), ""
        )
        plain = cls(address, source, offline=bool(offline_from), offline_from=offline_from or "default")
        wanted = settings.proxy.strip()
        if wanted:
            proxy = None if wanted.casefold() == NO_PROXY else _proxy(wanted)
            return replace(plain, proxy=proxy, proxy_from="settings")
        return _with_environment(plain, environ)

    @property
    def host(self) -> str:
        """The endpoint's host."""
        return host_of(self.endpoint)

    @property
    def proxy_shown(self) -> str | None:
        """The proxy without its credentials."""
        return None if self.proxy is None else masked(self.proxy)

    def proxy_for(self, url: str) -> str | None:
        """The proxy that a request goes through; None goes directly.

        One from the environment is never used for this machine itself.
        """
        if self.proxy_from == "settings":
            return self.proxy
        parts = urlsplit(url)
        host = parts.hostname or ""
        found = dict(self.proxies).get(parts.scheme)
        if found is None or is_loopback(host) or self._passes_by(parts, host):
            return None
        return found

    def trusts(self, url: str) -> bool:
        """Whether a token may be sent there: to the endpoint's own host and port, and not in clear over a network."""
        parts = _split(url)
        if parts is None:
            return False
        safe = parts.scheme == "https" or is_loopback(parts.hostname or "")
        return safe and _origin(parts) == _origin(urlsplit(self.endpoint))

    def client(self, read_s: float = 30.0) -> httpx2.Client:
        """A new HTTP client that keeps to all this; see `tandem.models.connection.client`."""
        from tandem.models import connection  # a window that downloads nothing need not load what it takes

        return connection.client(self, read_s)

    def _passes_by(self, parts: SplitResult, host: str) -> bool:
        if self.proxy_from == "system":
            return bool(urllib.request.proxy_bypass(host))
        port = _port(parts)
        where = f"{host}:{port}" if port is not None else host
        # It reads "*", domains and ports as curl does. typeshed does not know it.
        return bool(urllib.request.proxy_bypass_environment(where, {"no": self.no_proxy}))  # type: ignore[attr-defined]

    def __repr__(self) -> str:
        return f"Network({self.endpoint}, proxy {self.proxy_shown}, {'offline' if self.offline else 'online'})"


def environment(environ: Mapping[str, str] = os.environ) -> tuple[Variable, ...]:
    """The variables that count and are set, to be shown; no token, and no credentials of a proxy."""
    found: list[Variable] = []
    for name, effect in _EFFECTS:
        for spelling in (name, name.lower()) if effect in ("proxy", "no-proxy") else (name,):
            value = environ.get(spelling, "")
            if value.strip():
                shown = "••••••••" if effect == "token" else masked(value.strip())
                found.append(Variable(spelling, shown, effect))
                break
    return tuple(found)


def hosts(network: Network) -> tuple[str, ...]:
    """The hosts that a download may contact: the endpoint's and, where that is the Hub's own, its storage's.

    A mirror's storage is not known before the mirror has named it.
    """
    if network.host == host_of(HUB):
        return network.host, "*.huggingface.co", "*.hf.co"
    return (network.host,)


def host_of(url: str) -> str:
    """The host of an address; with its port where that is not the usual one."""
    parts = urlsplit(url)
    host, port = parts.hostname or "", _port(parts)
    shown = f"[{host}]" if ":" in host else host
    return shown if port in (None, _PORTS.get(parts.scheme)) else f"{shown}:{port}"


def masked(url: str) -> str:
    """An address without the name and password in it."""
    return _CREDENTIALS.sub(r"\1•••@", url)


def is_loopback(host: str) -> bool:
    """Whether a host is this machine."""
    name = host.casefold().rstrip(".")
    if name == "localhost" or name.endswith(".localhost"):
        return True
    try:
        return ipaddress.ip_address(name.strip("[]")).is_loopback
    except ValueError:
        return False


def _port(parts: SplitResult) -> int | None:
    """The port in an address; None for none, and for what is none."""
    try:
        return parts.port
    except ValueError:
        return None


def _origin(parts: SplitResult) -> tuple[str, str, int | None]:
    return parts.scheme, (parts.hostname or "").casefold(), parts.port or _PORTS.get(parts.scheme)


def _split(text: str) -> SplitResult | None:
    """The parts of a web address, None when it is none."""
    if _UNFIT.search(text):
        return None
    try:
        parts = urlsplit(text)
        _ = parts.port  # raises for what is no port
    except ValueError:
        return None
    return parts if parts.scheme in _PORTS and parts.hostname else None


def _is_host(parts: SplitResult) -> bool:
    """Whether what was written without "https://" can be meant as a host: any other word is taken for none."""
    host = parts.hostname or ""
    return "." in host.strip(".") or ":" in host or parts.port is not None or is_loopback(host)


def _endpoint(text: str) -> str:
    parts = _split(text if "://" in text else f"https://{text}")
    if parts is None or parts.query or parts.fragment or ("://" not in text and not _is_host(parts)):
        raise UsageError(
            f"The address of the Hub, {masked(text)}, is no web address.",
            "Give it as https://host, with a path behind it if the mirror has one.",
        )
    if "@" in parts.netloc:
        raise UsageError(
            "The address of the Hub has a name or a password in it.",
            "Leave them out, and give a token instead.",
        )
    return parts.geturl().rstrip("/")


def _proxy(text: str) -> str:
    if text.casefold().startswith("socks"):
        raise UsageError(
            f"The proxy {masked(text)} speaks SOCKS, which Tandem does not.",
            "Give an HTTP proxy as http://host:port in Settings, or none to go without.",
        )
    parts = _split(text if "://" in text else f"http://{text}")
    if parts is None or parts.path not in ("", "/") or parts.query or parts.fragment:
        raise UsageError(
            f"The proxy {masked(text)} is no address of a proxy.",
            "Give it as http://host:port in Settings, or none to go without.",
        )
    return parts.geturl().rstrip("/")


def _with_environment(network: Network, environ: Mapping[str, str]) -> Network:
    """The network with the proxies of the environment or, where that has none, of the system's settings."""
    found: dict[str, tuple[str, str]] = {}
    for scheme in _PORTS:
        for variable in (f"{scheme}_proxy", f"{scheme.upper()}_PROXY", "all_proxy", "ALL_PROXY"):
            text = environ.get(variable, "").strip()
            if text:
                found[scheme] = (text, variable)
                break
    if not found and environ is os.environ:
        # Windows and macOS keep one in their settings.
        found = {scheme: (text, "system") for scheme, text in urllib.request.getproxies().items() if scheme in _PORTS}
    no_proxy = environ.get("no_proxy", "") or environ.get("NO_PROXY", "")
    scheme = urlsplit(network.endpoint).scheme
    source = found[scheme][1] if scheme in found else "default"
    raw = tuple((one, text) for one, (text, _variable) in found.items())
    network = replace(network, proxies=raw, no_proxy=no_proxy, proxy_from=source)
    needed = network.proxy_for(network.endpoint) is not None
    usable: list[tuple[str, str]] = []
    for one, text in raw:
        try:
            usable.append((one, _proxy(text)))
        except UsageError:
            if needed and one == scheme:
                raise
    network = replace(network, proxies=tuple(usable))
    proxy = network.proxy_for(network.endpoint)
    return replace(network, proxy=proxy, proxy_from=source if proxy is not None else "default")
