"""A Hub on loopback: the routes of the real one, and any misbehaviour that is asked for.

Two hosts: the Hub at 127.0.0.1, its storage at 127.0.0.2. A request of a route takes the first fault that waits for
that route; without one it is answered well.

    with FakeHub() as hub:
        hub.add("owner/repo", "file.gguf", b"...")
        hub.misbehave("drop", at=1000)
        Network.chosen(endpoint=hub.endpoint, environ={})
"""

from __future__ import annotations

import hashlib
import socket
import ssl
import tempfile
import threading
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import TracebackType
from typing import Self

from support.hub_faults import ROUTE_OF, Fault, Kind, Route
from support.hub_server import Server

COMMIT = "0123456789abcdef0123456789abcdef01234567"


@dataclass(frozen=True)
class Seen:
    """A request as it came in.

    Attributes:
        host: "hub" or "storage".
        route: "info", "resolve", "storage", or "other" for what the Hub does not know.
        method: Such as GET.
        path: With its query.
        headers: Names in lower case.
    """

    host: str
    route: str
    method: str
    path: str
    headers: dict[str, str]

    @property
    def range(self) -> str | None:
        """What was asked for."""
        return self.headers.get("range")

    @property
    def authorised(self) -> bool:
        """Whether any credentials came with it."""
        return "authorization" in self.headers or "cookie" in self.headers


@dataclass
class Stored:
    """A file of a repository."""

    repo: str
    name: str
    path: Path
    size: int
    sha256: str
    lfs: bool = True

    @property
    def etag(self) -> str:
        """The storage's own, quoted; not the sha256, as with the real one."""
        return f'"{self.sha256[:32]}-1"'


@dataclass
class Repo:
    """A repository: one commit, its files, who may see them.

    Attributes:
        name: "owner/name".
        commit: The only one, "main" too.
        gated: Whether it must be asked for.
        token: The one that may read; None lets everybody.
        files: By their names.
        aliases: Revisions that get `commit` though they are others.
    """

    name: str
    commit: str = COMMIT
    gated: bool = False
    token: str | None = None
    files: dict[str, Stored] = field(default_factory=dict)
    aliases: list[str] = field(default_factory=list)


class FakeHub:
    """The Hub and its storage.

    Args:
        prefix: A path in front of everything, as mirrors have: "/hf".
        direct: The Hub sends the bytes itself, without a redirect.
        tls: Both hosts speak TLS with that server context.
    """

    def __init__(self, prefix: str = "", direct: bool = False, tls: ssl.SSLContext | None = None) -> None:
        self.prefix, self.direct = prefix, direct
        self.repos: dict[str, Repo] = {}
        self.renamed: dict[str, str] = {}
        self.requests: list[Seen] = []
        self.released = threading.Event()
        self.closing = threading.Event()
        self.news = threading.Condition()
        self.credit = 0
        self.sent = 0
        self.generation = 0
        self.info: bytes | None = None  # what is said of every repository instead of the truth
        self.elsewhere: str | None = None  # where a redirect leads instead of to the storage
        self._faults: dict[Route, deque[Fault | None]] = {"info": deque(), "resolve": deque(), "storage": deque()}
        self._always: dict[Route, Fault] = {}
        self._folder = tempfile.TemporaryDirectory(prefix="hub-")
        scheme = "https" if tls is not None else "http"
        self._hub = Server("127.0.0.1", self, "hub", tls)
        self._storage = Server("127.0.0.2", self, "storage", tls)
        self.endpoint = f"{scheme}://127.0.0.1:{self._hub.port}{prefix}"
        self.storage = f"{scheme}://127.0.0.2:{self._storage.port}"

    def __enter__(self) -> Self:
        self._hub.start()
        self._storage.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Ends it, whatever it is in the middle of."""
        self.closing.set()
        self.release()
        self._hub.stop()
        self._storage.stop()
        self._folder.cleanup()

    def unreachable(self) -> None:
        """Ends both hosts: connections to them are refused from now on."""
        self.closing.set()
        self.release()
        self._hub.stop()
        self._storage.stop()

    # --- content

    def add(
        self,
        repo: str,
        name: str,
        data: bytes | Path,
        commit: str | None = None,
        lfs: bool = True,
        gated: bool = False,
        token: str | None = None,
        sha256: str | None = None,
    ) -> Stored:
        """Puts a file into a repository, which is made if needed; what had its name is replaced.

        Args:
            repo: "owner/name".
            name: The file's.
            data: Its content; a path is served from where it is and must stay.
            commit: The repository's from now on.
            lfs: Whether it is an LFS file, with a sha256.
            gated: Whether the repository is gated.
            token: The one that may read; None lets everybody.
            sha256: What the Hub says instead of the true one.
        """
        entry = self.repos.setdefault(repo, Repo(repo))
        entry.commit = commit or entry.commit
        entry.gated, entry.token = gated or entry.gated, token or entry.token
        if isinstance(data, bytes):
            path = Path(self._folder.name) / hashlib.sha256(f"{repo}/{name}".encode() + data).hexdigest()
            path.write_bytes(data)
        else:
            path = data
        with path.open("rb") as stream:
            digest = hashlib.file_digest(stream, "sha256").hexdigest()
        stored = Stored(repo, name, path, path.stat().st_size, sha256 or digest, lfs)
        entry.files[name] = stored
        return stored

    def rename(self, old: str, new: str) -> None:
        """Moves a repository; the old name leads on with a redirect."""
        entry = self.repos.pop(old)
        entry.name = new
        self.repos[new] = entry
        self.renamed[old] = new

    def rename_file(self, repo: str, old: str, new: str) -> None:
        """Gives a file another name in its repository."""
        stored = self.repos[repo].files.pop(old)
        self.repos[repo].files[new] = replace(stored, name=new)

    def expire_urls(self) -> None:
        """Makes every storage address that was handed out so far worthless."""
        self.generation += 1

    # --- misbehaviour

    def misbehave(
        self,
        kind: Kind,
        times: int | None = 1,
        where: Route | None = None,
        *,
        after: int = 0,
        at: int | None = None,
        seconds: int = 1,
        extra: int = 1,
    ) -> None:
        """Answers the next requests of a route wrongly, after those that were to be already.

        Args:
            kind: How, see `hub_faults.Kind`.
            times: How many of them; None for all from now on.
            where: The route; None takes the one that the fault belongs to, mostly the storage.
            after: See `Fault`.
            at: See `Fault`.
            seconds: See `Fault`.
            extra: See `Fault`.
        """
        fault = Fault(kind, after, at, seconds, extra)
        route = where or ROUTE_OF.get(kind, "storage")
        if times is None:
            self._always[route] = fault
        else:
            self.script(route, [fault] * times)

    def script(self, route: Route, faults: Iterable[Fault | None]) -> None:
        """Queues an answer each: a fault, or None for a good one."""
        with self.news:
            self._faults[route].extend(faults)

    def behave(self) -> None:
        """Takes back all misbehaviour that has not happened yet; who is kept waiting is let go."""
        with self.news:
            self._always.clear()
            for queue in self._faults.values():
                queue.clear()
        self.release()

    def release(self) -> None:
        """Lets go whoever is kept waiting ("stall", "silent", "drip", "slow"): the connection is closed."""
        with self.news:
            self.released.set()
            self.news.notify_all()
            if not self.closing.is_set():  # then nobody is kept waiting any more
                self.released = threading.Event()

    def allow(self, count: int) -> None:
        """Lets "slow" answers send so many bytes more."""
        with self.news:
            self.credit += count
            self.news.notify_all()

    # --- what happened

    def seen(self, route: str | None = None, host: str | None = None) -> list[Seen]:
        """The requests so far, of one route or host."""
        with self.news:
            return [one for one in self.requests if route in (None, one.route) and host in (None, one.host)]

    def wait_for(self, condition: Callable[[FakeHub], bool], timeout_s: float = 60.0) -> None:
        """Waits until `condition(hub)` holds; looked at whenever a request comes in or body bytes go out.

        Raises:
            TimeoutError: It did not.
        """
        with self.news:
            if not self.news.wait_for(lambda: condition(self), timeout_s):
                raise TimeoutError("what the test waits for did not happen")

    # --- for the server

    def note(self, seen: Seen) -> None:
        """Remembers a request."""
        with self.news:
            self.requests.append(seen)
            self.news.notify_all()

    def count(self, sent: int) -> None:
        """Adds to the body bytes of the storage that went out."""
        with self.news:
            self.sent += sent
            self.news.notify_all()

    def fault(self, route: Route, start: int = 0, end: int = 1) -> Fault | None:
        """Takes the fault for a request, which asks for the bytes from `start` to before `end`."""
        with self.news:
            queue = self._faults[route]
            for index, fault in enumerate(queue):
                if fault is None or fault.hits(start, end):
                    del queue[index]
                    return fault
            always = self._always.get(route)
            return always if always is not None and always.hits(start, end) else None

    def take_credit(self, most: int, released: threading.Event) -> int:
        """Waits until a "slow" answer may send and returns how much; 0 when it was let go."""
        with self.news:
            self.news.wait_for(lambda: self.credit > 0 or released.is_set())
            taken = 0 if released.is_set() else min(most, self.credit)
            self.credit -= taken
            return taken


def dead_port() -> int:
    """A port of 127.0.0.1 on which nobody listens."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
