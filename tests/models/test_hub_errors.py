"""What the Hub can refuse and how it can fail: each has its own sentence, which names the host."""

from __future__ import annotations

import hashlib
import json
import socket
import ssl
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import get_args

import httpx2
import pytest
from huggingface_hub.errors import HfHubHTTPError, OfflineModeIsEnabled

from support.hub import FakeHub
from support.hub_faults import Kind, Route
from tandem.errors import UsageError
from tandem.models.catalog import CatalogFile
from tandem.models.errors import PASSING, RateLimited, TransferError, TransferFault
from tandem.models.hub import Hub
from tandem.models.hub_errors import mapped, wait_of
from tandem.models.network import Network

REPO, NAME = "owner/repo-gguf", "file-q4_0.gguf"
DATA = bytes(1000)
FILE = CatalogFile("target", REPO, NAME, hashlib.sha256(DATA).hexdigest())

REFUSALS: list[tuple[Kind, Route, TransferFault, str]] = [
    ("401", "info", "sign-in", "not signed in"),
    ("401-hub", "info", "sign-in", "not signed in"),
    ("401-hub", "resolve", "sign-in", "not signed in"),
    ("403", "info", "gated", "asked for access"),
    ("gated", "resolve", "gated", "asked for access"),
    ("gated-401", "resolve", "gated", "asked for access"),
    ("disabled", "info", "missing-repo", "disabled"),
    ("no-repo", "info", "missing-repo", f"has no {REPO}"),
    ("404", "info", "missing-repo", f"has no {REPO}"),
    ("no-revision", "info", "missing-revision", "revision"),
    ("no-entry", "resolve", "missing-file", NAME),
    ("429", "info", "rate-limited", "17 seconds"),
    ("429-ratelimit", "resolve", "rate-limited", "17 seconds"),
    ("429-bare", "info", "rate-limited", "a while"),
    ("500", "info", "server", "error 500"),
    ("503", "resolve", "server", "error 503"),
    ("portal", "info", "portal", "not the Hub"),
    ("portal", "resolve", "portal", "not the Hub"),
    ("portal-redirect", "info", "portal", "not the Hub"),
    ("bad-json", "info", "portal", "not the Hub"),
    ("redirect-loop", "info", "portal", "without end"),
    ("redirect-loop", "resolve", "portal", "without end"),
    ("refuse", "info", "unreachable", "broke off"),
    ("drop", "resolve", "unreachable", "broke off"),
    ("reset", "info", "unreachable", "broke off"),
    ("garbage", "info", "unreachable", "broke off"),
]


@pytest.fixture
def asked(hub: FakeHub) -> Iterator[Hub]:
    hub.add(REPO, NAME, DATA)
    with Hub(Network.chosen(endpoint=hub.endpoint, environ={})) as real:
        yield real


def refused(real: Hub) -> TransferError:
    with pytest.raises(TransferError) as caught:
        real.locate(real.resolve(FILE))
    return caught.value


@pytest.mark.parametrize(("kind", "route", "fault", "words"), REFUSALS)
def test_every_refusal_has_its_own_sentence(
    kind: Kind, route: Route, fault: TransferFault, words: str, hub: FakeHub, asked: Hub
) -> None:
    hub.misbehave(kind, None, route, seconds=17)
    error = refused(asked)
    assert error.fault == fault
    assert words in error.sentence
    assert asked.network.host in error.sentence + error.remedy
    assert error.host
    assert error.sentence.endswith(".")
    assert error.remedy.endswith(".")
    assert "\n" not in error.sentence + error.remedy
    hub.behave()
    assert asked.locate(asked.resolve(FILE)).etag == FILE.sha256


def test_rate_limits_carry_their_wait(hub: FakeHub, asked: Hub) -> None:
    hub.misbehave("429", where="info", seconds=9)
    hub.misbehave("429-ratelimit", where="info", seconds=120)
    hub.misbehave("429-bare", where="info")
    waits = []
    for _ in range(3):
        error = refused(asked)
        assert isinstance(error, RateLimited)
        waits.append(error.wait_s)
    assert waits == [9.0, 120.0, None]
    assert len(hub.requests) == 3  # nothing was tried again behind our back


@pytest.mark.parametrize(
    ("headers", "wait"),
    [
        ({}, None),
        ({"Retry-After": "soon"}, None),
        ({"Retry-After": "-5"}, None),
        ({"Retry-After": " 30 "}, 30.0),
        ({"Retry-After": "Wed, 21 Oct 2015 07:28:00 GMT"}, 0.0),
        ({"RateLimit": '"api";r=3;t=55', "Retry-After": "4"}, 4.0),
        ({"RateLimit": '"api";r=0;t=55', "Retry-After": "4"}, 55.0),
        ({"RateLimit": "nonsense"}, None),
        ({"RateLimit": f'"api";r=0;t={"9" * 5000}', "Retry-After": "4"}, 4.0),
        ({"Retry-After": b"\xb2"}, None),
    ],
)
def test_a_wait_is_read_from_either_header(headers: dict[str, str | bytes], wait: float | None) -> None:
    raw = [(name, value.encode() if isinstance(value, str) else value) for name, value in headers.items()]
    assert wait_of(httpx2.Response(429, headers=[(name.encode(), value) for name, value in raw])) == wait


def test_a_wait_until_a_time_of_day() -> None:
    then = format_datetime(datetime.now(UTC) + timedelta(seconds=100), usegmt=True)
    found = wait_of(httpx2.Response(429, headers={"Retry-After": then}))
    assert found is not None
    assert 0 < found <= 100


def test_offline_mode_asks_nobody(hub: FakeHub) -> None:
    hub.add(REPO, NAME, DATA)
    with Hub(Network.chosen(endpoint=hub.endpoint, environ={"HF_HUB_OFFLINE": "1"})) as real:
        error = refused(real)
    assert error.fault == "offline-mode"
    assert real.network.host in error.sentence
    assert "HF_HUB_OFFLINE" in error.remedy
    assert hub.requests == []


def test_a_host_that_refuses_connections_is_named(hub: FakeHub, asked: Hub) -> None:
    hub.unreachable()
    error = refused(asked)
    assert (error.fault, error.sentence) == ("unreachable", f"{asked.network.host} cannot be reached.")
    assert "mirror or a proxy" in error.remedy


def test_a_name_that_nobody_knows_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def unknown(*_args: object, **_kwargs: object) -> list[object]:
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", unknown)
    with Hub(Network()) as real:
        error = refused(real)
    assert (error.fault, error.sentence) == ("unreachable", "The address of huggingface.co was not found.")


@pytest.mark.parametrize("route", ["info", "resolve"])
def test_silence_is_not_waited_for_without_end(
    route: Route, hub: FakeHub, asked: Hub, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tandem.models.hub.ASK_S", 0.2)
    hub.misbehave("silent", where=route)
    error = refused(asked)
    assert error.fault == "timeout"
    assert error.sentence == f"{asked.network.host} did not answer in time."


ODD: list[object] = [
    [],
    None,
    "text",
    {},
    {"id": "a/b"},
    {"id": "a/b", "sha": 5},
    {"id": "a/b", "sha": "main", "siblings": []},
    {"id": "a/b", "sha": "0" * 40, "siblings": 5},
    {"id": "a/b", "sha": "0" * 40, "siblings": ["x"]},
    {"id": "a/b", "sha": "0" * 40, "siblings": [{}]},
    {"id": "a/b", "sha": "0" * 40, "siblings": [{"rfilename": NAME, "lfs": []}]},
    {
        "id": "a/b",
        "sha": "0" * 40,
        "siblings": [{"rfilename": NAME, "lfs": {"sha256": 5, "size": 1, "pointerSize": 1}}],
    },
]


@pytest.mark.parametrize("answer", ODD, ids=str)
def test_an_answer_of_another_form_is_refused(answer: object, hub: FakeHub, asked: Hub) -> None:
    hub.info = json.dumps(answer).encode()
    assert refused(asked).fault in ("portal", "pin-differs")


def test_an_answer_that_is_nested_without_end_is_refused(hub: FakeHub, asked: Hub) -> None:
    hub.info = b"[" * 200_000
    assert refused(asked).fault == "portal"


def request_error(kind: type[httpx2.RequestError], cause: BaseException | None = None) -> httpx2.RequestError:
    error = kind("text", request=httpx2.Request("GET", "https://cdn.example/f?Signature=geheim"))
    error.__cause__ = cause
    return error


@pytest.mark.parametrize(
    ("error", "fault"),
    [
        (request_error(httpx2.ConnectError), "unreachable"),
        (request_error(httpx2.ConnectError, ssl.SSLEOFError("eof")), "unreachable"),
        (request_error(httpx2.ConnectError, ssl.SSLError("wrong version number")), "certificate"),
        (request_error(httpx2.ConnectError, ssl.SSLCertVerificationError("self-signed")), "certificate"),
        (request_error(httpx2.ConnectTimeout), "timeout"),
        (request_error(httpx2.ReadTimeout), "timeout"),
        (request_error(httpx2.PoolTimeout), "timeout"),
        (request_error(httpx2.ReadError, ssl.SSLError("bad record mac")), "unreachable"),
        (request_error(httpx2.RemoteProtocolError), "unreachable"),
        (request_error(httpx2.DecodingError), "unreachable"),
        (request_error(httpx2.UnsupportedProtocol), "portal"),
        (request_error(httpx2.TooManyRedirects), "portal"),
    ],
)
def test_errors_of_a_transfer_are_mapped_and_name_the_host_that_failed(
    error: httpx2.RequestError, fault: TransferFault
) -> None:
    found = mapped(error, "huggingface.co")
    assert (found.fault, found.host) == (fault, "cdn.example")
    assert "cdn.example" in found.sentence
    assert "geheim" not in found.details


@pytest.mark.parametrize(
    ("status", "fault"),
    [(401, "server"), (403, "server"), (404, "server"), (408, "server"), (416, "server"), (500, "server"),
     (502, "server"), (429, "rate-limited"), (407, "proxy"), (511, "portal"), (400, "portal"), (451, "portal")],
)  # fmt: skip
@pytest.mark.parametrize("kind", [httpx2.HTTPStatusError, HfHubHTTPError])
def test_refusals_of_a_storage_host_are_mapped(status: int, fault: TransferFault, kind: type) -> None:
    request = httpx2.Request("GET", "https://cdn.example/f?Signature=geheim")
    response = httpx2.Response(status, request=request)
    if kind is HfHubHTTPError:
        error: Exception = HfHubHTTPError("for https://cdn.example/f?Signature=geheim", response=response)
    else:
        error = httpx2.HTTPStatusError("text", request=request, response=response)
    found = mapped(error, "huggingface.co", what="x.gguf")
    assert (found.fault, found.host) == (fault, "cdn.example")
    assert "geheim" not in f"{found.sentence}{found.remedy}{found.details}"


def test_what_is_an_error_already_stays_and_others_have_a_sentence() -> None:
    mine = TransferError("stalled", "Nothing came.", "Wait.")
    assert mapped(mine, "h.example") is mine
    usage = mapped(UsageError("This makes no sense.", "Do not."), "h.example")
    assert (usage.sentence, usage.host) == ("This makes no sense.", "h.example")
    assert mapped(OfflineModeIsEnabled("x"), "h.example").fault == "offline-mode"
    assert mapped(ConnectionResetError(), "h.example:8").host == "h.example:8"
    assert mapped(OSError(), "https://h.example/path?x=1").sentence == "The connection to h.example broke off."


def test_what_may_pass_is_tried_again_and_the_rest_is_not() -> None:
    assert set(get_args(TransferFault)) > PASSING
    assert {fault for _kind, _route, fault, _words in REFUSALS if fault in PASSING} == {
        "rate-limited",
        "server",
        "unreachable",
    }
