"""A wrong file never counts as finished, and a Hub that is blocked is named: rows 8 and 10 of the field's problems."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from support.fetching import QUICK, TARGET, Fetching, fetching
from support.hub import FakeHub, dead_port
from support.hub_faults import Kind, Route
from tandem.models.download import Download
from tandem.models.errors import TransferError
from tandem.models.hub import Hub
from tandem.models.network import Network
from tandem.models.state import FileState


@pytest.fixture
def job(hub: FakeHub, tmp_path: Path) -> Fetching:
    return fetching(hub, tmp_path / "models")


# --- row 8: a wrong file that counts as finished


@pytest.mark.parametrize("kind", ["portal", "portal-redirect"])
@pytest.mark.parametrize("where", ["info", "resolve", "storage"])
def test_row_8_a_page_that_wants_a_sign_in_is_no_file(job: Fetching, hub: FakeHub, kind: Kind, where: Route) -> None:
    here = job.half()
    hub.misbehave(kind, where=where, times=None)
    final = job.run()
    assert (final.files[0].state, final.fault) == (FileState.FAILED, "portal")
    assert "sign in" in final.remedy
    assert job.part().stat().st_size == here  # nothing of it came near the part
    hub.behave()
    job.run()
    job.check_installed()


def test_row_8_a_page_that_says_it_is_a_file_is_no_file(job: Fetching, hub: FakeHub) -> None:
    stored = hub.repos[TARGET].files["small-target.gguf"]
    good = stored.path
    page = b"\n<!DOCTYPE html><html><body>Sign in</body></html>".ljust(stored.size)
    bad = job.store.folder.parent / "page"
    bad.write_bytes(page)
    stored.path = bad
    final = job.run()
    assert (final.files[0].state, final.fault) == (FileState.FAILED, "portal")
    stored.path = good
    job.run()
    job.check_installed()


@pytest.mark.parametrize("place", [0, 4, 500_000, 1_048_000])
def test_row_8_one_flipped_byte_is_found_and_set_aside(job: Fetching, hub: FakeHub, place: int) -> None:
    hub.misbehave("wrong-bytes", at=place)
    with job.download() as download:
        with pytest.raises(TransferError) as caught:
            download.run()
        assert caught.value.fault == "wrong-hash"
        assert download.progress.files[0].state is FileState.QUARANTINED
    assert job.store.find(job.pair.target) is None
    assert [one.fault for one in job.store.quarantined()] == ["wrong-hash"]
    job.run()
    job.check_installed()


def test_row_8_the_right_bytes_of_no_model_are_set_aside(hub: FakeHub, tmp_path: Path) -> None:
    job = fetching(hub, tmp_path)
    data = b"PK\x03\x04" + job.contents[0][4:]
    stored = hub.add(TARGET, "small-target.gguf", data)
    target = msgspec.structs.replace(job.pair.target, sha256=stored.sha256, bytes=stored.size)
    job.pair = msgspec.structs.replace(job.pair, target=target)
    final = job.run()
    assert (final.files[0].state, final.fault) == (FileState.QUARANTINED, "wrong-header")
    assert final.sentence.endswith(".")


def test_row_8_a_drafter_in_the_targets_place_is_set_aside(hub: FakeHub, tmp_path: Path) -> None:
    job = fetching(hub, tmp_path)
    stored = hub.add(TARGET, "small-target.gguf", job.contents[1])
    target = msgspec.structs.replace(job.pair.target, sha256=stored.sha256, bytes=stored.size)
    job.pair = msgspec.structs.replace(job.pair, target=target)
    final = job.run()
    assert (final.files[0].state, final.fault) == (FileState.QUARANTINED, "wrong-header")


# --- row 10, and who is not let in


def test_row_10_a_dead_proxy_is_named(job: Fetching) -> None:
    proxy = f"http://127.0.0.1:{dead_port()}"
    network = Network(endpoint=job.server.endpoint, proxy=proxy, proxy_from="settings")
    with Hub(network) as hub, pytest.raises(TransferError) as caught:
        Download(job.pair, job.store, hub, QUICK).run()
    assert caught.value.fault == "proxy"
    assert proxy in caught.value.sentence


def test_row_10_a_mirror_is_used(tmp_path: Path) -> None:
    with FakeHub(prefix="/mirror/hf", direct=True) as mirror:
        job = fetching(mirror, tmp_path)
        job.run()
        job.check_installed()


def test_row_10_offline_mode_is_said(job: Fetching) -> None:
    network = Network(endpoint=job.server.endpoint, offline=True, offline_from="HF_HUB_OFFLINE")
    with Hub(network) as hub:
        download = Download(job.pair, job.store, hub, QUICK)
        with pytest.raises(TransferError) as caught:
            download.run()
    assert caught.value.fault == "offline-mode"
    assert not job.server.requests
