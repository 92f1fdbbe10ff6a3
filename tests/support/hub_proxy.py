"""A forward proxy on loopback, for what is asked in plain HTTP and through tunnels."""

from __future__ import annotations

import http.client
import select
import socket
import threading
from base64 import b64encode
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Self
from urllib.parse import urlsplit


class FakeProxy:
    """The proxy.

    Args:
        login: Name and password that it asks for; None for none.
        refuse: A status with which it answers everything.
    """

    def __init__(self, login: tuple[str, str] | None = None, refuse: int | None = None) -> None:
        self.login, self.refuse = login, refuse
        self.asked: list[str] = []
        self.headers: list[dict[str, str]] = []
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        self._server.daemon_threads = False
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,), name="fake-proxy")
        self.connections: set[socket.socket] = set()
        self.address = f"127.0.0.1:{self._server.server_address[1]}"
        self.url = f"http://{self.address}"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.shutdown()
        self._thread.join()
        for connection in list(self.connections):
            with suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)
        self._server.server_close()

    def lets_in(self, header: str | None) -> bool:
        """Whether the Proxy-Authorization is right."""
        if self.login is None:
            return True
        return header == "Basic " + b64encode(":".join(self.login).encode()).decode()


def _handler(proxy_: FakeProxy) -> type[_Handler]:
    class Bound(_Handler):
        proxy = proxy_

    return Bound


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    proxy: FakeProxy

    def log_message(self, format: str, *args: Any) -> None:
        pass

    def setup(self) -> None:
        super().setup()
        self.proxy.connections.add(self.connection)

    def finish(self) -> None:
        self.proxy.connections.discard(self.connection)
        super().finish()

    def do_GET(self) -> None:
        if not self._passes():
            return
        parts = urlsplit(self.path)
        assert parts.hostname is not None
        upstream = http.client.HTTPConnection(parts.hostname, parts.port)
        try:
            headers = {name: value for name, value in self.headers.items() if not name.lower().startswith("proxy-")}
            upstream.request(self.command, parts._replace(scheme="", netloc="").geturl(), headers=headers)
            answer = upstream.getresponse()
            body = answer.read()
            self.send_response(answer.status)
            for name, value in answer.getheaders():
                if name.lower() not in ("transfer-encoding", "connection"):
                    self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body)
        finally:
            upstream.close()

    def do_HEAD(self) -> None:
        self.do_GET()

    def do_CONNECT(self) -> None:
        if not self._passes():
            return
        host, _, port = self.path.rpartition(":")
        with socket.create_connection((host, int(port))) as upstream:
            self.send_response(200, "Connection established")
            self.end_headers()
            ends = {self.connection: upstream, upstream: self.connection}
            self.close_connection = True
            while True:
                for ready in select.select(list(ends), [], [])[0]:
                    data = ready.recv(1 << 16)
                    if not data:
                        return
                    ends[ready].sendall(data)

    def _passes(self) -> bool:
        self.proxy.asked.append(f"{self.command} {self.path}")
        self.proxy.headers.append({name.lower(): value for name, value in self.headers.items()})
        status = self.proxy.refuse
        if status is None and not self.proxy.lets_in(self.headers.get("Proxy-Authorization")):
            status = 407
        if status is None:
            return True
        self.send_response(status)
        self.send_header("Content-Length", "0")
        self.end_headers()
        return False
