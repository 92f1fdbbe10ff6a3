"""Proxies, mirrors and certificates on the way to the Hub, with real servers."""

from __future__ import annotations

import hashlib
import socket
import sys
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import httpx2
import pytest

from support.hub import FakeHub, dead_port
from support.hub_proxy import FakeProxy
from tandem.models import connection
from tandem.models.catalog import CatalogFile
from tandem.models.errors import TransferError
from tandem.models.hub import Hub
from tandem.models.network import Network
from tandem.settings import Settings

REPO, NAME = "owner/repo-gguf", "file-q4_0.gguf"
DATA = bytes(range(256)) * 400
FILE = CatalogFile("target", REPO, NAME, hashlib.sha256(DATA).hexdigest())


def fetched(network: Network) -> bytes:
    """All the way: info, address, bytes."""
    with Hub(network) as real, network.client() as client:
        located = real.locate(real.resolve(FILE))
        try:
            response = client.get(located.location, headers=located.headers)
            response.raise_for_status()
        except httpx2.HTTPError as error:
            raise real.mapped(error, located.location, FILE.file) from None
        return response.content


def refused(network: Network) -> TransferError:
    with pytest.raises(TransferError) as caught:
        fetched(network)
    return caught.value


@pytest.fixture
def stocked(hub: FakeHub) -> FakeHub:
    hub.add(REPO, NAME, DATA)
    return hub


def through(server: FakeHub, proxy: str) -> Network:
    return Network.chosen(Settings(proxy=proxy), server.endpoint, {})


def test_everything_goes_through_the_proxy_of_the_settings(stocked: FakeHub) -> None:
    with FakeProxy() as proxy:
        assert fetched(through(stocked, proxy.url)) == DATA
        assert [one.split("?")[0] for one in proxy.asked] == [
            f"GET {stocked.endpoint}/api/models/{REPO}",
            f"HEAD {stocked.endpoint}/{REPO}/resolve/{stocked.repos[REPO].commit}/{NAME}",
            f"GET {stocked.storage}/{REPO}/{FILE.sha256}/{NAME}",
        ]


def test_a_proxy_of_the_environment_is_used_for_other_machines_only(
    stocked: FakeHub, monkeypatch: pytest.MonkeyPatch
) -> None:
    with FakeProxy() as proxy:
        environ = {"HTTP_PROXY": proxy.address}
        assert fetched(Network.chosen(None, stocked.endpoint, environ)) == DATA
        assert proxy.asked == []
        monkeypatch.setattr("tandem.models.network.is_loopback", lambda _host: False)
        assert fetched(Network.chosen(None, stocked.endpoint, environ)) == DATA
        assert len(proxy.asked) == 3
        storage = stocked.storage.removeprefix("http://").partition(":")[0]
        assert fetched(Network.chosen(None, stocked.endpoint, {**environ, "NO_PROXY": storage})) == DATA
        assert len(proxy.asked) == 5  # the storage host was asked directly
        assert fetched(Network.chosen(Settings(proxy="none"), stocked.endpoint, environ)) == DATA
        assert len(proxy.asked) == 5


def test_a_dead_proxy_is_named(stocked: FakeHub) -> None:
    dead = f"127.0.0.1:{dead_port()}"
    error = refused(through(stocked, f"me:geheim@{dead}"))
    assert error.fault == "proxy"
    assert f"http://•••@{dead}" in error.sentence
    assert error.host in error.sentence
    assert error.host == stocked.endpoint.removeprefix("http://")
    assert "proxy in Settings" in error.remedy
    assert "geheim" not in f"{error.sentence}{error.remedy}{error.details}"
    assert stocked.requests == []


def test_a_proxy_with_a_password(stocked: FakeHub) -> None:
    with FakeProxy(login=("me", "ge:heim é")) as proxy:
        error = refused(through(stocked, proxy.url))
        assert (error.fault, "asks for a name and a password" in error.sentence) == ("proxy", True)
        assert proxy.address in error.sentence
        assert fetched(through(stocked, f"http://me:ge%3Aheim%20%C3%A9@{proxy.address}")) == DATA


def test_a_proxy_that_lets_nothing_through(tmp_path: Path) -> None:
    tls = pytest.importorskip("support.hub_tls", exc_type=ImportError)
    _trusted, context = tls.authority(tmp_path)
    with FakeHub(tls=context) as server:
        for status, fault, words in (
            (403, "proxy", "does not let anything through"),
            (407, "proxy", "asks for a name and a password"),
            (502, "unreachable", "cannot reach"),
        ):
            with FakeProxy(refuse=status) as proxy:
                error = refused(through(server, proxy.url))
                assert error.fault == fault
                assert words in error.sentence
                assert proxy.address in error.sentence
                assert proxy.asked == [f"CONNECT {server.endpoint.removeprefix('https://')}"]


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere the system's store is no file that a variable names")
def test_the_systems_certificates_are_trusted_and_no_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tls = pytest.importorskip("support.hub_tls", exc_type=ImportError)
    trusted, context = tls.authority(tmp_path)
    with FakeHub(tls=context, prefix="/hf") as server, FakeProxy() as proxy:
        server.add(REPO, NAME, DATA)
        network = Network.chosen(endpoint=server.endpoint, environ={})
        error = refused(network)
        assert error.fault == "certificate"
        assert error.sentence == f"The certificate of {network.host} is not trusted by this system."
        assert refused(through(server, proxy.url)).fault == "certificate"  # and it is not the proxy's fault
        assert server.requests == []
        monkeypatch.setenv("SSL_CERT_FILE", str(trusted))
        assert fetched(network) == DATA
        assert fetched(through(server, proxy.url)) == DATA
        assert {one.split(" ")[0] for one in proxy.asked} == {"CONNECT"}


def test_a_certificate_for_another_host_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tls = pytest.importorskip("support.hub_tls", exc_type=ImportError)
    trusted, context = tls.authority(tmp_path, ("127.0.0.9",))
    monkeypatch.setenv("SSL_CERT_FILE", str(trusted))
    with FakeHub(tls=context) as server:
        assert refused(Network.chosen(endpoint=server.endpoint, environ={})).fault == "certificate"


def test_a_host_that_speaks_no_tls_is_named(stocked: FakeHub) -> None:
    network = Network.chosen(endpoint=stocked.endpoint.replace("http:", "https:"), environ={})
    error = refused(network)
    assert (error.fault, error.sentence) == ("certificate", f"No secure connection to {network.host} could be made.")


def test_a_mirror_stands_in_for_the_hub_and_is_named_when_it_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    with FakeHub(prefix="/mirror/hf") as mirror:
        mirror.add(REPO, NAME, DATA)
        network = Network.chosen(environ={"HF_ENDPOINT": mirror.endpoint + "/"})
        monkeypatch.setattr(connection, "CONNECT_S", 5.0)
        assert fetched(network) == DATA
        assert {one.headers["host"] for one in mirror.seen()} == {
            mirror.endpoint.removeprefix("http://").removesuffix("/mirror/hf"),
            mirror.storage.removeprefix("http://"),
        }
        mirror.unreachable()
        error = refused(network)
        assert (error.fault, error.host) == ("unreachable", network.host)
        assert network.host in error.sentence


def test_a_storage_host_that_is_blocked_is_the_one_that_is_named(stocked: FakeHub) -> None:
    stocked.elsewhere = f"http://127.0.0.2:{dead_port()}/x?Signature=geheim"
    error = refused(Network.chosen(endpoint=stocked.endpoint, environ={}))
    assert error.fault == "unreachable"
    assert error.host.startswith("127.0.0.2:")
    assert error.host in error.sentence
    assert "geheim" not in f"{error.sentence}{error.remedy}{error.details}"


@pytest.fixture
def hung_up() -> Iterator[str]:
    """The address of a host that hangs up as soon as it is spoken to."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()

        def hang_up() -> None:
            with suppress(OSError):
                while True:
                    listener.accept()[0].close()

        thread = threading.Thread(target=hang_up)
        thread.start()
        yield f"https://127.0.0.1:{listener.getsockname()[1]}"
        listener.shutdown(socket.SHUT_RDWR)
        thread.join()


def test_a_line_that_breaks_in_the_handshake_is_a_bad_line_and_no_bad_certificate(hung_up: str) -> None:
    assert refused(Network.chosen(endpoint=hung_up, environ={})).fault == "unreachable"


def test_offline_mode_holds_for_the_transfers_own_client(stocked: FakeHub) -> None:
    network = Network.chosen(endpoint=stocked.endpoint, environ={"HF_HUB_OFFLINE": "1"})
    with network.client() as client, pytest.raises(OSError, match="offline mode is on") as caught:
        client.get(stocked.storage)
    with Hub(network) as real:
        assert real.mapped(caught.value).fault == "offline-mode"  # type: ignore[arg-type]
    assert stocked.requests == []
