"""A token goes to the endpoint and nowhere else: not to a storage host, not into a log, not into an error."""

from __future__ import annotations

import hashlib
import logging
import traceback
from collections.abc import Iterator

import pytest
from huggingface_hub import constants, get_hf_file_metadata

from support.hub import FakeHub
from support.hub_faults import Kind, Route
from tandem.models import connection
from tandem.models.catalog import CatalogFile
from tandem.models.errors import TransferError
from tandem.models.hub import Hub
from tandem.models.network import Network
from tandem.models.tokens import Token

SECRET = "hf_GeheimesWort0123456789"
REPO, NAME = "owner/repo-gguf", "file-q4_0.gguf"
DATA = bytes(1000)
FILE = CatalogFile("target", REPO, NAME, hashlib.sha256(DATA).hexdigest())


@pytest.fixture(autouse=True)
def _everything_is_logged(caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(constants, "HF_DEBUG", True)
    for name in ("", "httpx2", "httpcore2", "huggingface_hub"):
        caplog.set_level(logging.DEBUG, name)
    # huggingface_hub keeps its records to itself.
    monkeypatch.setattr(logging.getLogger("huggingface_hub"), "propagate", True)


@pytest.fixture
def asked(hub: FakeHub) -> Iterator[Hub]:
    hub.add(REPO, NAME, DATA, token=SECRET)
    with Hub(Network.chosen(endpoint=hub.endpoint, environ={}), Token(SECRET, "HF_TOKEN")) as real:
        yield real


def test_a_token_opens_the_hub_and_never_reaches_the_storage_host(
    hub: FakeHub, asked: Hub, caplog: pytest.LogCaptureFixture
) -> None:
    located = asked.locate(asked.resolve(FILE))
    assert [one.headers["authorization"] for one in hub.seen(host="hub")] == [f"Bearer {SECRET}"] * 2
    assert "Authorization" not in located.headers
    with asked.network.client() as client:
        assert client.get(located.location, headers=located.headers).content == DATA
    assert [one.authorised for one in hub.seen(host="storage")] == [False]
    assert len(caplog.records) > 10  # the libraries did log
    assert "HTTP Request: GET" in caplog.text
    assert SECRET not in caplog.text
    assert "Signature=" not in caplog.text


def test_even_a_client_that_is_told_to_send_it_along_does_not(hub: FakeHub, asked: Hub) -> None:
    headers = {"Authorization": f"Bearer {SECRET}"}
    url = f"{hub.endpoint}/{REPO}/resolve/main/{NAME}"
    location = asked.locate(asked.resolve(FILE)).location
    with asked.network.client() as client:
        assert client.get(url, headers=headers).content == DATA  # through the redirect
        assert client.get(location, headers=headers).content == DATA  # straight to the storage
    assert [one.authorised for one in hub.seen(host="storage")] == [False, False]


def test_a_mirror_that_leads_to_another_hub_gets_nothing_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    with FakeHub() as elsewhere, FakeHub() as mirror:
        elsewhere.add(REPO, NAME, DATA)
        mirror.add(REPO, NAME, DATA)
        # As huggingface_hub sees a host that it holds for a Hub: it follows and would send the token there.
        origin = ("http", "127.0.0.1", int(elsewhere.endpoint.rpartition(":")[2]))
        monkeypatch.setattr("huggingface_hub.utils._http._HUB_ORIGINS", frozenset({origin}))
        mirror.elsewhere = f"{elsewhere.endpoint}/{REPO}/resolve/main/{NAME}"
        with Hub(Network.chosen(endpoint=mirror.endpoint, environ={}), Token(SECRET, "HF_TOKEN")) as real:
            resolved = real.resolve(FILE)
            assert real.locate(resolved).etag == FILE.sha256
        assert [one.authorised for one in mirror.seen()] == [True, True]
        assert [one.authorised for one in elsewhere.seen()] == [False]


def test_a_hub_that_sends_the_bytes_itself_gets_the_token_with_each_request() -> None:
    with FakeHub(direct=True) as server:
        server.add(REPO, NAME, DATA, token=SECRET)
        network = Network.chosen(endpoint=server.endpoint, environ={})
        with Hub(network, Token(SECRET, "file")) as real, network.client() as client:
            located = real.locate(real.resolve(FILE))
            assert client.get(located.location, headers=located.headers).content == DATA
            assert SECRET not in repr(located)


@pytest.mark.parametrize(
    ("kind", "route"),
    [
        ("401", "info"),
        ("401-hub", "resolve"),
        ("gated", "resolve"),
        ("403", "info"),
        ("no-repo", "info"),
        ("no-entry", "resolve"),
        ("429", "info"),
        ("500", "resolve"),
        ("portal", "info"),
        ("bad-json", "info"),
        ("redirect-loop", "resolve"),
        ("refuse", "info"),
        ("garbage", "resolve"),
        ("echo", "info"),
        ("echo", "resolve"),
    ],
)
def test_no_error_holds_the_token(
    kind: Kind, route: Route, hub: FakeHub, asked: Hub, caplog: pytest.LogCaptureFixture
) -> None:
    hub.misbehave(kind, None, route)
    with pytest.raises(TransferError) as caught:
        asked.locate(asked.resolve(FILE))
    error = caught.value
    text = "".join(traceback.format_exception(error))
    assert SECRET not in f"{error} {error!r} {error.sentence} {error.remedy} {error.details} {text} {vars(error)}"
    assert SECRET not in caplog.text
    assert error.details or error.fault == "rate-limited"


def test_a_token_that_is_refused_does_not_close_what_is_open_to_all(hub: FakeHub) -> None:
    hub.add(REPO, NAME, DATA)
    hub.misbehave("401", where="info")
    with Hub(Network.chosen(endpoint=hub.endpoint, environ={}), Token("hf_expired", "file")) as real:
        assert real.locate(real.resolve(FILE)).etag == FILE.sha256
    assert [one.authorised for one in hub.requests] == [True, False, False]


def test_a_token_that_is_refused_is_said_where_it_is_needed(hub: FakeHub) -> None:
    hub.add(REPO, NAME, DATA, token=SECRET)
    with Hub(Network.chosen(endpoint=hub.endpoint, environ={}), Token("hf_other", "file")) as real:
        hub.misbehave("401", where="info")
        with pytest.raises(TransferError, match="does not accept your token") as caught:
            real.resolve(FILE)
        assert caught.value.fault == "sign-in"
        with pytest.raises(TransferError):
            real.resolve(FILE)
        assert hub.requests[-1].authorised  # it is not left out from then on


def test_gated_files_say_whether_to_sign_in_or_to_ask(hub: FakeHub) -> None:
    hub.add(REPO, NAME, DATA, gated=True, token=SECRET)
    network = Network.chosen(endpoint=hub.endpoint, environ={})
    with Hub(network) as stranger:
        resolved = stranger.resolve(FILE)
        with pytest.raises(TransferError) as caught:
            stranger.locate(resolved)
        assert (caught.value.fault, "sign in with a token" in caught.value.remedy) == ("gated", True)
        assert f"at {hub.endpoint}/{REPO}, then" in caught.value.remedy
    with Hub(network, Token("hf_somebody", "file")) as other, pytest.raises(TransferError) as caught:
        other.locate(resolved)
    assert (caught.value.fault, "your account" in caught.value.sentence) == ("gated", True)
    with Hub(network, Token(SECRET, "file")) as mine:
        assert mine.locate(resolved).etag == FILE.sha256


def test_huggingface_hub_adds_no_token_and_no_request_of_its_own(hub: FakeHub, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_TOKEN", SECRET)
    hub.add(REPO, NAME, DATA)
    with Hub(Network.chosen(endpoint=hub.endpoint, environ={})) as real:
        real.locate(real.resolve(FILE))
    assert not any(one.authorised for one in hub.requests)
    assert {one.route for one in hub.requests} == {"info", "resolve"}
    with pytest.raises(RuntimeError, match="is to be used through"):
        get_hf_file_metadata(f"{hub.endpoint}/{REPO}/resolve/main/{NAME}", token=False)
    assert len(hub.requests) == 2


def test_a_token_does_not_go_in_clear_over_a_network(hub: FakeHub, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tandem.models.network.is_loopback", lambda _host: False)
    hub.add(REPO, NAME, DATA, token=SECRET)
    network = Network.chosen(endpoint=hub.endpoint, environ={})
    with Hub(network, Token(SECRET, "file")) as real, pytest.raises(TransferError, match="not signed in"):
        real.resolve(FILE)
    assert not any(one.authorised for one in hub.requests)


@pytest.mark.parametrize(
    ("text", "clean"),
    [
        (f"Bearer {SECRET}", "•••"),
        (f"b'authorization', b'Bearer {SECRET}'", "b'authorization', b'•••'"),
        (f"token {SECRET}.", "token •••."),
        ("GET https://cdn.example/f?Expires=1&Signature=ab%20c next", "GET https://cdn.example/f?••• next"),
        ("[(b'Location', b'http://a.example/x?y=z')]", "[(b'Location', b'http://a.example/x?•••')]"),
        ("proxy http://me:geheim@p.example:1 is dead", "proxy http://•••@p.example:1 is dead"),
        ("nothing to hide", "nothing to hide"),
    ],
)
def test_what_is_cut_out_of_texts_for_the_log(text: str, clean: str) -> None:
    assert connection.discreet(text) == clean
