"""The bytes of one large file, from hosts that are near and from hosts that are not."""

from __future__ import annotations

import random
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec
import pytest

from support.hub import FakeHub
from support.hub_faults import Fault
from support.hub_tls import authority
from tandem.models import transfer as module
from tandem.models.catalog import CatalogFile
from tandem.models.errors import TransferError
from tandem.models.hub import Hub
from tandem.models.network import Network
from tandem.models.pace import Limit
from tandem.models.part import Part, PartRecord
from tandem.models.retries import Retries
from tandem.models.stop import Stop
from tandem.models.transfer import Options, Transfer

NAME, REPO = "large.gguf", "owner/large"
SIZE = 48 << 20
OPTIONS = Options(stall_s=20.0, tries=3, backoff_s=0.001, piece_bytes=1 << 20)


@pytest.fixture(scope="module")
def content(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("content") / NAME
    path.write_bytes(random.Random(1).randbytes(SIZE))
    return path


@pytest.fixture(autouse=True)
def _near(monkeypatch: pytest.MonkeyPatch) -> None:
    # Whatever this machine is busy with: what comes from loopback is near.
    monkeypatch.setattr(module, "NEAR", 1)
    monkeypatch.setattr(module, "_PROBE_S", 1000.0)


@contextmanager
def transfer(server: FakeHub, folder: Path, options: Options = OPTIONS) -> Iterator[tuple[Transfer, Part, list[int]]]:
    received: list[int] = []
    with Hub(Network.chosen(endpoint=server.endpoint, environ={})) as hub:
        resolved = hub.resolve(CatalogFile("target", REPO, NAME, "hub"))
        record = PartRecord(REPO, NAME, resolved.commit, resolved.sha256, resolved.bytes)
        part, stop = Part(folder / "large.part", folder / "large.json", record), Stop()
        part.open()
        retries = Retries(options.tries, options.backoff_s, stop, lambda _waiting: None)
        try:
            yield Transfer(hub, resolved, part, stop, Limit(), options, retries, received.append), part, received
        finally:
            part.close()


def check(server: FakeHub, part: Part) -> None:
    assert part.size == SIZE
    assert part.sha256() == server.repos[REPO].files[NAME].sha256


def test_a_near_host_sends_all_on_one_connection(hub: FakeHub, content: Path, tmp_path: Path) -> None:
    hub.add(REPO, NAME, content)
    with transfer(hub, tmp_path) as (job, part, received):
        job.run()
        check(hub, part)
    assert hub.seen("storage")[-1].range == f"bytes={part_start(hub)}-{SIZE - 1}"
    assert SIZE <= sum(received) < SIZE + (16 << 20)
    assert (tmp_path / "large.part").read_bytes() == content.read_bytes()


def part_start(server: FakeHub) -> int:
    asked = server.seen("storage")[-1].range
    assert asked is not None
    start = int(asked.removeprefix("bytes=").split("-")[0])
    assert 0 < start <= 16 << 20
    return start


def test_a_near_host_that_drops_is_asked_for_the_rest(hub: FakeHub, content: Path, tmp_path: Path) -> None:
    hub.add(REPO, NAME, content)
    for place in (20 << 20, (30 << 20) + 17, SIZE - 1):
        hub.misbehave("drop", at=place)
    with transfer(hub, tmp_path) as (job, part, _received):
        job.run()
        check(hub, part)


def test_a_near_host_that_falls_silent_is_given_up(hub: FakeHub, content: Path, tmp_path: Path) -> None:
    hub.add(REPO, NAME, content)
    hub.misbehave("stall", at=30 << 20)
    with transfer(hub, tmp_path, msgspec.structs.replace(OPTIONS, stall_s=0.5)) as (job, part, _received):
        job.run()
        check(hub, part)


def test_a_near_host_that_becomes_slow_is_read_in_pieces_again(
    hub: FakeHub, content: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hub.add(REPO, NAME, content)
    monkeypatch.setattr(module, "_SLOWER_S", 0.05)
    # The first pieces come well; then one connection that has to wait for what it may send.
    hub.script("storage", [*[None] * 9])
    with transfer(hub, tmp_path) as (job, part, _received):
        thread = threading.Thread(target=job.run)
        hub.misbehave("slow", at=SIZE - 1, times=1)
        thread.start()
        hub.wait_for(lambda server: any(seen.range and seen.range.endswith(f"-{SIZE - 1}") for seen in server.requests))
        monkeypatch.setattr(module, "NEAR", 1 << 60)
        thread.join(120)
        assert not thread.is_alive()
        check(hub, part)
    last = [seen.range for seen in hub.seen("storage")][-8:]
    assert len(set(last)) == len(last)


def test_a_host_that_is_not_near_gets_several_connections(
    hub: FakeHub, content: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "NEAR", 1 << 60)
    hub.add(REPO, NAME, content)
    with transfer(hub, tmp_path) as (job, part, _received):
        job.run()
        check(hub, part)
    asked = [seen.range for seen in hub.seen("storage")]
    assert len(asked) >= SIZE >> 20
    assert not any(
        one and one.endswith(f"-{SIZE - 1}") and not one.startswith(f"bytes={SIZE - (1 << 20)}") for one in asked
    )


def test_memory_stays_bounded_when_the_first_piece_is_late(
    hub: FakeHub, content: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "NEAR", 1 << 60)
    hub.add(REPO, NAME, content)
    hub.misbehave("stall", after=1000)
    most = [0]
    with transfer(hub, tmp_path, msgspec.structs.replace(OPTIONS, stall_s=2.0)) as (job, part, _received):
        ready = module.Window.ready

        def noted(window: module.Window) -> list[module.Bytes]:
            most[0] = max(most[0], window.waiting)
            return ready(window)

        monkeypatch.setattr(module.Window, "ready", noted)
        job.run()
        check(hub, part)
    assert 0 < most[0] <= OPTIONS.piece_bytes * (OPTIONS.connections + 3)


@pytest.mark.parametrize("near", [True, False])
def test_over_tls(content: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, near: bool) -> None:
    trusted, context = authority(tmp_path)
    monkeypatch.setenv("SSL_CERT_FILE", str(trusted))
    monkeypatch.setattr(module, "NEAR", 1 if near else 1 << 60)
    with FakeHub(tls=context) as server:
        server.add(REPO, NAME, content)
        with transfer(server, tmp_path) as (job, part, _received):
            job.run()
            check(server, part)


def test_a_server_without_ranges_over_a_large_file(hub: FakeHub, content: Path, tmp_path: Path) -> None:
    hub.add(REPO, NAME, content)
    hub.misbehave("no-range", times=None)
    with transfer(hub, tmp_path) as (job, part, _received):
        job.run()
        check(hub, part)
    assert hub.seen("storage")[-1].range is None


def test_what_came_in_before_it_gave_up_is_kept(
    hub: FakeHub, content: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "NEAR", 1 << 60)
    hub.add(REPO, NAME, content)
    hub.script("storage", [None] * 10)
    hub.misbehave("503", times=None)
    with transfer(hub, tmp_path) as (job, part, _received):
        with pytest.raises(TransferError) as caught:
            job.run()
        assert caught.value.fault == "server"
        here = part.size
        assert 8 << 20 <= here <= 10 << 20  # the last of these answers may have been for pieces behind a gap
    hub.behave()
    with transfer(hub, tmp_path) as (job, part, _received):
        assert part.size == here
        job.run()
        check(hub, part)


def test_it_goes_through_many_drops(hub: FakeHub, content: Path, tmp_path: Path) -> None:
    hub.add(REPO, NAME, content)
    rnd = random.Random(3)
    hub.script("storage", [Fault("drop", after=rnd.randrange(1 << 15, 4 << 20)) for _turn in range(40)])
    with transfer(hub, tmp_path) as (job, part, _received):
        job.run()
        check(hub, part)
