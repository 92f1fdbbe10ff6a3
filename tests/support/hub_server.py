"""The two HTTP servers of `support.hub`; tests talk to `FakeHub`."""

from __future__ import annotations

import gzip
import json
import re
import socket
import ssl
import threading
from contextlib import suppress
from http.server import ThreadingHTTPServer
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, quote, unquote, urlsplit

from support.hub_answers import Answers
from support.hub_faults import Fault

if TYPE_CHECKING:
    from support.hub import FakeHub, Repo, Stored

_CHUNK = 1 << 16
_INFO = re.compile(r"/api/models/([^/]+/[^/]+)(?:/revision/([^/]+))?")
_RESOLVE = re.compile(r"/([^/]+/[^/]+)/resolve/([^/]+)/(.+)")


class Server:
    """One host.

    Args:
        address: To listen on.
        hub: Whose host it is.
        host: "hub" or "storage".
        tls: None for plain HTTP.
    """

    def __init__(self, address: str, hub: FakeHub, host: str, tls: ssl.SSLContext | None) -> None:
        self._server = _Listener((address, 0), _handler(hub, host))
        self._server.tls = tls
        self.port = int(self._server.server_address[1])
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,), name=f"fake-{host}")

    def start(self) -> None:
        """Answers from now on."""
        self._thread.start()

    def stop(self) -> None:
        """Closes the port and every connection; waits for all threads."""
        if self._thread.is_alive():
            self._server.shutdown()
            self._thread.join()
        self._server.end()


class _Listener(ThreadingHTTPServer):
    daemon_threads = False  # so that they are waited for
    request_queue_size = 64
    tls: ssl.SSLContext | None = None

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self._open: set[socket.socket] = set()
        self._ended = False
        self._guard = threading.Lock()

    def finish_request(self, request: Any, client_address: Any) -> None:
        request.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if self.tls is not None:
            with self._guard:
                self._open.add(request)
            try:
                wrapped = self.tls.wrap_socket(request, server_side=True)
            except OSError:
                return
            finally:
                with self._guard:
                    self._open.discard(request)
            request = wrapped
        with self._guard:
            self._open.add(request)
            if self._ended:
                request.shutdown(socket.SHUT_RDWR)
        try:
            super().finish_request(request, client_address)
        finally:
            with self._guard:
                self._open.discard(request)
            if self.tls is not None:
                request.close()

    def end(self) -> None:
        with self._guard:
            self._ended = True
            for connection in self._open:
                with suppress(OSError):
                    connection.shutdown(socket.SHUT_RDWR)
        self.server_close()

    def handle_error(self, request: Any, client_address: Any) -> None:
        pass  # who asked has gone; what matters the test sees at its own end


def _handler(hub_: FakeHub, host_: str) -> type[_Handler]:
    class Bound(_Handler):
        hub, host = hub_, host_

    return Bound


class _Handler(Answers):
    def do_HEAD(self) -> None:  # noqa: N802
        self._answer()

    def do_GET(self) -> None:  # noqa: N802
        self._answer()

    # --- which route

    def _answer(self) -> None:
        path = urlsplit(self.path).path
        inner = path.removeprefix(self.hub.prefix) if self.host == "hub" else path
        info, resolve = _INFO.fullmatch(inner), _RESOLVE.fullmatch(inner)
        if self.host == "storage":
            self._note("storage")
            self._from_storage(inner)
        elif not path.startswith(self.hub.prefix):
            self._note("other")
            self.status(404, {})
        elif info:
            self._note("info")
            self._info(unquote(info[1]), unquote(info[2]) if info[2] else None)
        elif resolve:
            self._note("resolve")
            self._resolve(unquote(resolve[1]), unquote(resolve[2]), unquote(resolve[3]))
        else:
            self._note("other")
            self.status(404, {})

    def _note(self, route: str) -> None:
        from support.hub import Seen  # it imports this module

        headers = {name.lower(): value for name, value in self.headers.items()}
        self.hub.note(Seen(self.host, route, self.command, self.path, headers))

    # --- the Hub

    def _repo(self, name: str, revision: str | None, open_to_all: bool) -> Repo | None:
        """The repository, or None when an answer went out instead."""
        if name in self.hub.renamed:
            self.redirect(self.path.replace(name, self.hub.renamed[name], 1), status=307)
            return None
        repo = self.hub.repos.get(name)
        if repo is None:
            self.wrong(Fault("401-hub" if "authorization" not in self.headers else "no-repo"))
        elif repo.token is not None and not (open_to_all and repo.gated):
            sent = self.headers.get("authorization")
            if sent == f"Bearer {repo.token}":
                return self._at(repo, revision)
            if repo.gated:
                self.wrong(Fault("gated-401" if sent is None else "gated"))
            else:
                self.wrong(Fault("401-hub" if sent is None else "no-repo"))
        else:
            return self._at(repo, revision)
        return None

    def _at(self, repo: Repo, revision: str | None) -> Repo | None:
        if revision in (None, "main", repo.commit, *repo.aliases):
            return repo
        self.wrong(Fault("no-revision"))
        return None

    def _info(self, name: str, revision: str | None) -> None:
        fault = self.hub.fault("info")
        if fault is not None and self.wrong(fault):
            return
        repo = self._repo(name, revision, open_to_all=True)
        if repo is None:
            return
        blobs = "blobs" in parse_qs(urlsplit(self.path).query)
        body = {
            "_id": "0" * 24,
            "id": repo.name,
            "modelId": repo.name,
            "sha": repo.commit,
            "private": False,
            "gated": "manual" if repo.gated else False,
            "disabled": False,
            "tags": ["gguf"],
            "downloads": 1,
            "likes": 0,
            "siblings": [_sibling(stored, blobs) for stored in repo.files.values()],
        }
        self.body(self.hub.info or json.dumps(body).encode(), "application/json; charset=utf-8")

    def _resolve(self, name: str, revision: str, file: str) -> None:
        fault = self.hub.fault("resolve")
        if fault is not None and self.wrong(fault):
            return
        repo = self._repo(name, revision, open_to_all=False)
        if repo is None:
            return
        stored = repo.files.get(file)
        if stored is None:
            self.wrong(Fault("no-entry"))
            return
        kind = fault.kind if fault is not None else None
        linked = {"X-Repo-Commit": "f" * 40 if kind == "other-commit" else repo.commit}
        if stored.lfs:
            linked["X-Linked-Etag"] = f'"{"0" * 64 if kind == "wrong-linked-etag" else stored.sha256}"'
            linked["X-Linked-Size"] = str(stored.size + 1 if kind == "wrong-linked-size" else stored.size)
        if self.hub.direct or not stored.lfs:
            self._file(stored, linked)
            return
        query = f"Expires=4102444800&Signature={self.hub.generation}-{stored.sha256[:12]}SECRET&filename={quote(file)}"
        self.redirect(
            self.hub.elsewhere or f"{self.hub.storage}/{name}/{stored.sha256}/{quote(file, safe='')}?{query}", linked
        )

    # --- the storage

    def _from_storage(self, path: str) -> None:
        if path == "/login":
            self.wrong(Fault("portal"))
            return
        parts = [unquote(part) for part in path.strip("/").split("/")]
        repo = self.hub.repos.get("/".join(parts[:2])) or self.hub.repos.get(
            self.hub.renamed.get("/".join(parts[:2]), "")
        )
        stored = repo.files.get(parts[3]) if repo is not None and len(parts) == 4 else None
        signature = parse_qs(urlsplit(self.path).query).get("Signature", [""])[0]
        if stored is None or not signature.startswith(f"{self.hub.generation}-"):
            self.wrong(Fault("expired"))
            return
        self._file(stored, {})

    def _file(self, stored: Stored, linked: dict[str, str]) -> None:
        start, end, ranged = self._range(stored)
        self._released = self.hub.released  # before its fault: who is let go in between is not kept waiting
        fault = self.hub.fault("storage", start, end) if self.command == "GET" else None
        if fault is not None and self.wrong(fault):
            return
        kind = fault.kind if fault is not None else None
        etag, size = stored.etag, stored.size
        headers = {"Content-Type": "application/octet-stream", "Accept-Ranges": "bytes", **linked}
        if kind == "changed-etag":
            etag = f'"changed-{etag[1:]}'
        headers["ETag"] = etag
        wanted = self.headers.get("if-range")
        if ranged and (kind in ("200-to-range", "no-range") or (wanted is not None and wanted != etag)):
            start, end, ranged = 0, size, False
        if kind == "no-range":
            del headers["Accept-Ranges"]
        if start >= end and size:
            self.head(416, {"Content-Range": f"bytes */{size}", "Content-Length": "0"})
            return
        if ranged:
            if kind == "wrong-content-range":
                start, end = (start - 1, end - 1) if start else (min(1, end - 1), end)
            said = start + 1 if kind == "lying-content-range" else start
            total = size + 1 if kind == "wrong-total" else size
            if kind != "no-content-range":
                headers["Content-Range"] = f"bytes {said}-{end - 1}/{total}"
        self._send(206 if ranged else 200, headers, stored, start, end, fault)

    def _range(self, stored: Stored) -> tuple[int, int, bool]:
        """First byte, the one behind the last, whether a part was asked for."""
        match = re.fullmatch(r"bytes=(\d+)-(\d*)", self.headers.get("range", ""))
        if match is None:
            return 0, stored.size, False
        start, last = int(match[1]), int(match[2]) if match[2] else stored.size - 1
        return start, min(last + 1, stored.size), True

    def _send(
        self, status: int, headers: dict[str, str], stored: Stored, start: int, end: int, fault: Fault | None
    ) -> None:
        kind = fault.kind if fault is not None else None
        if fault is None or kind not in ("changed-etag", "gzip", "short", "long", "no-length", "wrong-bytes"):
            self.head(status, {**headers, "Content-Length": str(end - start)})
            if self.command != "HEAD":
                self._pour(stored, start, end, fault)
            return
        with stored.path.open("rb") as stream:
            stream.seek(start)
            body = stream.read(end - start)
        match kind:
            case "changed-etag":
                body = body.translate(bytes(255 - value for value in range(256)))
            case "gzip":
                body = gzip.compress(body, 1)
                headers = {**headers, "Content-Encoding": "gzip"}
            case "short":
                body = body[: -fault.extra]
            case "long":
                body += bytes(fault.extra)
            case "wrong-bytes":
                place = min(max(fault.good_bytes(start), 0), len(body) - 1)
                body = body[:place] + bytes([body[place] ^ 1]) + body[place + 1 :]
        if kind == "no-length":
            self.head(status, {**headers, "Transfer-Encoding": "chunked"})
            for place in range(0, len(body), _CHUNK):
                part = body[place : place + _CHUNK]
                self.wfile.write(b"%x\r\n%s\r\n" % (len(part), part))
            self.wfile.write(b"0\r\n\r\n")
        else:
            self.head(status, {**headers, "Content-Length": str(len(body))})
            self.wfile.write(body)
        self.hub.count(len(body))

    def _pour(self, stored: Stored, start: int, end: int, fault: Fault | None) -> None:
        """Sends bytes of a file, as far as the fault lets it."""
        kind = fault.kind if fault is not None else None
        released = self._released
        good = end - start
        if fault is not None and kind in ("drop", "reset", "stall", "drip"):
            good = max(0, min(fault.good_bytes(start), good))
        with stored.path.open("rb") as stream:
            if kind == "slow":
                while start < end and (most := self.hub.take_credit(min(_CHUNK, end - start), released)):
                    self.connection.sendfile(stream, start, most)
                    start += most
                    self.hub.count(most)
                self.close_connection = start < end
                return
            place = start
            while place < start + good:
                # In steps, so that a test can wait for a byte count; large ones, so that it stays fast.
                step = min(16 << 20, start + good - place)
                self.connection.sendfile(stream, place, step)
                place += step
                self.hub.count(step)
            if kind == "drip":
                while place < end and not released.wait(0.02):
                    self.connection.sendfile(stream, place, 1)
                    place += 1
                    self.hub.count(1)
        if kind == "stall":
            released.wait()
        if kind == "reset":
            self.reset()
        if kind in ("drop", "reset", "stall", "drip"):
            self.close_connection = True


def _sibling(stored: Stored, blobs: bool) -> dict[str, Any]:
    plain: dict[str, Any] = {"rfilename": stored.name}
    if blobs:
        plain |= {"blobId": stored.sha256[:40], "size": stored.size}
        if stored.lfs:
            plain["lfs"] = {"sha256": stored.sha256, "size": stored.size, "pointerSize": 135}
    return plain
