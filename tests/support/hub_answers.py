"""How the Hub of the tests answers, well and wrongly: what its hosts have in common."""

from __future__ import annotations

import os
import socket
import struct
from contextlib import suppress
from http.server import BaseHTTPRequestHandler
from typing import TYPE_CHECKING, Any

from support.hub_faults import Fault, Kind

if TYPE_CHECKING:
    from support.hub import FakeHub

_PORTAL = b"<!DOCTYPE html><html><head><title>Welcome to Airport WiFi</title></head><body>Sign in</body></html>\n"
_STATUS: dict[Kind, tuple[int, dict[str, str]]] = {
    "401": (401, {"X-Error-Message": "Invalid credentials in Authorization header"}),
    "401-hub": (401, {"X-Error-Message": "Invalid username or password."}),
    "403": (403, {"X-Error-Message": "Forbidden"}),
    "gated": (403, {"X-Error-Code": "GatedRepo", "X-Error-Message": "Access to model is restricted."}),
    "gated-401": (401, {"X-Error-Code": "GatedRepo", "X-Error-Message": "Access to model is restricted."}),
    "disabled": (403, {"X-Error-Message": "Access to this resource is disabled."}),
    "no-repo": (404, {"X-Error-Code": "RepoNotFound", "X-Error-Message": "Repository not found"}),
    "no-revision": (404, {"X-Error-Code": "RevisionNotFound", "X-Error-Message": "Invalid rev id"}),
    "no-entry": (404, {"X-Error-Code": "EntryNotFound", "X-Error-Message": "Entry not found"}),
    "404": (404, {}),
    "429-bare": (429, {}),
    "500": (500, {}),
    "503": (503, {}),
    "416": (416, {}),
    "expired": (403, {"Content-Type": "application/xml"}),
}


class Answers(BaseHTTPRequestHandler):
    """One connection."""

    protocol_version = "HTTP/1.1"
    hub: FakeHub
    host: str

    def log_message(self, format: str, *args: Any) -> None:
        pass

    def wrong(self, fault: Fault) -> bool:
        """Answers as the fault says, unless it lies in the bytes of a file."""
        kind = fault.kind
        match kind:
            case "refuse":
                self.close_connection = True
            case "silent":
                self.hub.released.wait()
                self.close_connection = True
            case "429":
                self.status(429, {"Retry-After": str(fault.seconds)})
            case "429-ratelimit":
                policy = '"fixed window";"resolvers";q=3000;w=300'
                self.status(429, {"RateLimit": f'"resolvers";r=0;t={fault.seconds}', "RateLimit-Policy": policy})
            case "portal":
                self.body(_PORTAL, "text/html; charset=utf-8")
            case "portal-redirect":
                self.redirect(f"{self.hub.storage}/login?token=none")
            case "redirect-loop":
                self.redirect(self.path)
            case "garbage":
                self.wfile.write(b"\x16\x03\x01 this is no HTTP\r\n\r\n")
                self.close_connection = True
            case "echo":
                self.status(500, {"X-Error-Message": f"not for {self.headers.get('authorization', '')}"})
            case "bad-json":
                self.body(b'{"sha": ', "application/json")
            case "drop" | "reset" if self.host == "hub" and not self.hub.direct:
                if kind == "reset":
                    self.reset()
                self.close_connection = True
            case _ if kind in _STATUS:
                self.status(*_STATUS[kind])
            case _:
                return False
        return True

    def reset(self) -> None:
        """Closes the connection with a TCP reset instead of an orderly end."""
        self.close_connection = True
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        with suppress(OSError):
            os.close(self.connection.detach())

    def status(self, status: int, headers: dict[str, str]) -> None:
        text = b"" if self.command == "HEAD" else headers.get("X-Error-Message", "wrong").encode()
        self.head(status, {"Content-Length": str(len(text)), **headers})
        self.wfile.write(text)

    def body(self, body: bytes, kind: str) -> None:
        self.head(200, {"Content-Type": kind, "Content-Length": str(len(body))})
        if self.command != "HEAD":
            self.wfile.write(body)

    def head(self, status: int, headers: dict[str, str]) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        if self.close_connection:
            self.send_header("Connection", "close")
        self.end_headers()

    def redirect(self, location: str, headers: dict[str, str] | None = None, status: int = 302) -> None:
        text = f"Found. Redirecting to {location}".encode()
        self.head(status, {"Location": location, "Content-Length": str(len(text)), **(headers or {})})
        if self.command != "HEAD":
            self.wfile.write(text)
