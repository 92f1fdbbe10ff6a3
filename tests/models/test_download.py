"""A pair is downloaded: both files as one job, from nothing or from what is there, to two installed files."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from support.fetching import DRAFTER, QUICK, TARGET, Fetching, fetching
from support.hub import COMMIT, FakeHub
from support.modelfiles import catalog_of, put_part
from tandem.models import tokens
from tandem.models.catalog import CatalogFile
from tandem.models.download import Download, Options
from tandem.models.errors import TransferError
from tandem.models.hub import Hub
from tandem.models.network import Network
from tandem.models.part import read_record
from tandem.models.state import FileState
from tandem.models.store import Store
from tandem.settings import Settings


@pytest.fixture
def job(hub: FakeHub, tmp_path: Path) -> Iterator[Fetching]:
    folder = tmp_path / "models"
    yield fetching(hub, folder)
    assert {path.name for path in folder.rglob("*.lock")} <= {".tandem.lock"}


def test_a_pair_becomes_installed(job: Fetching) -> None:
    job.run()
    job.check_installed()
    assert job.states() == [
        ("queued", "absent"),
        ("queued", "queued"),
        ("resolving", "queued"),
        ("transferring", "queued"),
        ("checking", "queued"),
        ("installed", "queued"),
        ("installed", "resolving"),
        ("installed", "transferring"),
        ("installed", "checking"),
        ("installed", "installed"),
    ]
    found = job.store.find(job.pair.target)
    assert found is not None
    assert (found.commit, found.licence, found.role) == (COMMIT, "Apache-2.0", "target")
    assert found.verified_at is not None


def test_the_news_say_how_far_it_is(job: Fetching) -> None:
    final = job.run()
    total = sum(map(len, job.contents))
    assert (final.key, final.done, final.total, final.running) == ("small", total, total, False)
    dones = [progress.done for progress in job.told]
    assert dones == sorted(dones)
    assert all(progress.done <= progress.total for progress in job.told)
    assert final.sentence == final.remedy == final.fault == ""
    assert {progress.current.name for progress in job.told if progress.current is not None} == {
        file.file for file in job.pair.files
    }


def test_both_are_asked_for_before_the_first_byte(job: Fetching) -> None:
    job.run()
    routes = [seen.route for seen in job.server.requests]
    assert routes[:3] == ["info", "info", "resolve"]
    assert "storage" not in routes[:3]


def test_several_connections_are_used(job: Fetching, hub: FakeHub) -> None:
    hub.misbehave("slow", times=None)
    with job.download() as download:
        thread = threading.Thread(target=download.run)
        thread.start()
        hub.wait_for(lambda server: len(server.seen("storage")) >= 4)
        assert len(set(job.ranges())) == 4
        hub.allow(1 << 30)
        thread.join()
    job.check_installed()


def test_one_connection_is_one_connection(job: Fetching) -> None:
    job.run(msgspec.structs.replace(QUICK, connections=1))
    job.check_installed()
    assert job.ranges() == sorted(job.ranges())


def test_what_is_installed_already_is_not_asked_for(job: Fetching, hub: FakeHub) -> None:
    job.run()
    before = len(hub.requests)
    final = job.run()
    assert len(hub.requests) == before
    assert [file.state for file in final.files] == [FileState.INSTALLED] * 2
    assert job.told == [final]


def test_only_the_file_that_is_missing_is_fetched(job: Fetching, hub: FakeHub) -> None:
    job.run()
    found = job.store.find(job.pair.drafter)
    assert found is not None
    job.store.remove(found)
    hub.requests.clear()
    job.run()
    job.check_installed()
    assert not [seen for seen in hub.requests if TARGET in seen.path]


def test_a_file_that_was_changed_on_the_disk_is_fetched_again(job: Fetching) -> None:
    job.run()
    place = job.store.place(job.pair.target)
    place.write_bytes(b"something else")
    job.run()
    job.check_installed()
    assert [one.name for one in job.store.quarantined()] == ["small-target.gguf"]


def test_the_hubs_own_hash_is_taken_and_remembered(hub: FakeHub, tmp_path: Path) -> None:
    job = fetching(hub, tmp_path)
    drafter = msgspec.structs.replace(job.pair.drafter, sha256="hub", bytes=None, about_bytes=100_000)
    job.pair = msgspec.structs.replace(job.pair, drafter=drafter)
    job.store = Store(tmp_path, catalog_of(job.pair))
    job.run()
    job.check_installed()
    assert job.told[-1].total == sum(map(len, job.contents))  # no longer the catalog's guess


def test_a_pin_that_differs_stops_before_the_first_byte(job: Fetching, hub: FakeHub) -> None:
    hub.add(DRAFTER, "small-drafter.gguf", b"another file")
    final = job.run()
    assert final.fault == "pin-differs"
    assert [file.state for file in final.files] == [FileState.ABSENT, FileState.FAILED]
    assert not hub.seen("storage")
    assert not any(job.store.folder.rglob("*.gguf*"))


def test_names_that_are_no_ascii(hub: FakeHub, tmp_path: Path) -> None:
    job = fetching(hub, tmp_path / "Загрузки" / "모델 🦜")
    job.run()
    job.check_installed()


def test_a_folder_whose_name_is_no_unicode(hub: FakeHub, tmp_path: Path) -> None:
    folder = tmp_path / "caf\udce9"
    try:
        folder.mkdir()
    except (OSError, UnicodeError):
        pytest.skip("this file system takes Unicode only")
    job = fetching(hub, folder)
    job.run()
    job.check_installed()


def test_a_job_runs_once(job: Fetching) -> None:
    with job.download() as download:
        download.run()
        with pytest.raises(RuntimeError):
            download.run()


def test_a_second_download_of_the_same_part_says_busy(job: Fetching, hub: FakeHub) -> None:
    hub.misbehave("slow", times=None)
    with job.download() as first, job.hub() as other:
        thread = threading.Thread(target=first.run)
        thread.start()
        hub.wait_for(lambda server: bool(server.seen("storage")))
        second = Download(job.pair, Store(job.store.folder, job.store.catalog), other, QUICK)
        with pytest.raises(TransferError) as caught:
            second.run()
        assert caught.value.fault == "busy"
        assert second.progress.files[0].state is FileState.PAUSED
        hub.allow(1 << 30)
        thread.join()
    job.check_installed()


def test_a_download_takes_up_what_another_run_left(job: Fetching, hub: FakeHub) -> None:
    hub.misbehave("stall", at=700_000, times=None)
    options = msgspec.structs.replace(QUICK, stall_s=0.5, tries=1, connections=1)
    final = job.run(options)
    assert (final.files[0].state, final.fault) == (FileState.FAILED, "stalled")
    record = read_record(job.record())
    assert record is not None
    here = job.part().stat().st_size
    assert record.synced == here >= 600_000
    assert record.etag == hub.repos[TARGET].files["small-target.gguf"].etag
    hub.behave()
    hub.requests.clear()
    job.run()
    job.check_installed()
    first = hub.seen("storage")[0]
    assert first.range is not None
    assert first.range.startswith(f"bytes={here}-")
    assert first.headers["if-range"] == record.etag
    assert min(asked[0] for asked in job.ranges() if asked) == here


def test_a_part_that_is_whole_is_only_checked(job: Fetching, hub: FakeHub) -> None:
    with job.download() as download:
        download.run()
    place = job.store.place(job.pair.target)
    data = place.read_bytes()
    found = job.store.find(job.pair.target)
    assert found is not None
    job.store.remove(found)
    part = job.part()
    part.parent.mkdir(parents=True, exist_ok=True)
    part.write_bytes(data)
    job.record().write_bytes(
        msgspec.json.encode(
            {
                "repo": TARGET,
                "file": place.name,
                "commit": COMMIT,
                "sha256": job.pair.target.sha256,
                "bytes": len(data),
                "synced": len(data),
            }
        )
    )
    hub.requests.clear()
    job.run()
    job.check_installed()
    assert not hub.seen("storage")


def test_options_are_the_settings() -> None:
    options = Options.chosen(Settings(connections=2, speed_limit=1 << 20))
    assert (options.connections, options.bytes_per_s) == (2, 1 << 20)
    assert Options().stall_s == 30.0


def test_a_speed_limit_is_kept(job: Fetching) -> None:
    began = time.monotonic()
    job.run(msgspec.structs.replace(QUICK, bytes_per_s=1 << 20))
    job.check_installed()
    # A lower bound holds on any machine: what is over the first burst takes its time.
    total = sum(map(len, job.contents))
    assert time.monotonic() - began >= (total - (1 << 18) - (1 << 16)) / (1 << 20) * 0.9


def test_a_speed_limit_can_be_taken_away_meanwhile(job: Fetching, hub: FakeHub) -> None:
    with job.download(msgspec.structs.replace(QUICK, bytes_per_s=1)) as download:
        thread = threading.Thread(target=download.run)
        thread.start()
        hub.wait_for(lambda server: bool(server.seen("storage")))
        download.limit(None)
        thread.join(120)
        assert not thread.is_alive()
    job.check_installed()


def test_the_token_never_leaves_the_endpoint(hub: FakeHub, tmp_path: Path) -> None:
    job = fetching(hub, tmp_path)
    hub.repos[TARGET].token = "hf_secret"
    token = tokens.find({"HF_TOKEN": "hf_secret"})
    with Hub(Network.chosen(endpoint=hub.endpoint, environ={}), token) as real:
        Download(job.pair, job.store, real, QUICK).run()
    job.check_installed()
    assert any(seen.authorised for seen in hub.seen(host="hub"))
    assert not any(seen.authorised for seen in hub.seen(host="storage"))


def test_without_a_second_host_the_token_is_sent_for_the_bytes(tmp_path: Path) -> None:
    with FakeHub(direct=True, prefix="/mirror") as hub:
        job = fetching(hub, tmp_path)
        hub.repos[TARGET].token = "hf_secret"
        token = tokens.find({"HF_TOKEN": "hf_secret"})
        with Hub(Network.chosen(endpoint=hub.endpoint, environ={}), token) as real:
            Download(job.pair, job.store, real, QUICK).run()
        job.check_installed()
        assert any(seen.range and seen.authorised for seen in hub.requests)


def test_a_part_that_cannot_be_removed_is_said_and_kept(job: Fetching, monkeypatch: pytest.MonkeyPatch) -> None:
    part = put_part(job.store, job.file(0), b"something")

    def refused(_store: Store, file: CatalogFile, held: bool = False) -> None:
        raise TransferError("disk", f"Tandem may not write to {file.repo}.", f"Held: {held}.")

    monkeypatch.setattr(Store, "remove_part", refused)
    with job.download() as download:
        download.cancel(keep=False)
        with pytest.raises(TransferError):
            download.run()
    assert part.exists()
    assert not download.progress.running
    assert download.progress.fault == "disk"
    assert download.progress.files[0].state is FileState.PAUSED
    job.check_steps()
