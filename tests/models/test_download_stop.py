"""Pausing, cancelling and going on: at once, from any state, and without losing what is here."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec
import pytest

from support.fetching import QUICK, Fetching, fetching
from support.hub import FakeHub
from support.hub_faults import Kind, Route
from tandem.models.download import Download, Options
from tandem.models.hub import Hub
from tandem.models.network import Network
from tandem.models.part import read_record
from tandem.models.progress import JobProgress
from tandem.models.state import FileState

PROMPT_S = 5.0
"""A generous guard; what is waited for otherwise would take far longer."""

PATIENT = msgspec.structs.replace(QUICK, stall_s=600.0, backoff_s=600.0)


@pytest.fixture
def job(hub: FakeHub, tmp_path: Path) -> Fetching:
    return fetching(hub, tmp_path / "models")


@contextmanager
def running(job: Fetching, options: Options = PATIENT) -> Iterator[tuple[Download, Callable[[], None]]]:
    """A download under way, and what waits until it has ended, soon."""
    with job.download(options) as download:
        thread = threading.Thread(target=download.run)
        thread.start()

        def ended() -> None:
            began = time.monotonic()
            thread.join(PROMPT_S)
            assert not thread.is_alive()
            assert time.monotonic() - began < PROMPT_S

        yield download, ended
        thread.join()


def count(job: Fetching) -> int:
    return job.part().stat().st_size


def test_pausing_keeps_what_is_here(job: Fetching, hub: FakeHub) -> None:
    hub.misbehave("slow", times=None)
    with running(job) as (download, ended):
        hub.allow(400_000)
        hub.wait_for(lambda server: server.sent >= 400_000)
        download.pause()
        ended()
    final = download.progress
    assert [file.state for file in final.files] == [FileState.PAUSED] * 2
    assert (final.sentence, final.fault, final.running) == ("", "", False)
    record = read_record(job.record())
    assert record is not None
    assert record.synced == count(job) == final.files[0].done
    hub.behave()
    job.run()
    job.check_installed()


@pytest.mark.parametrize(
    ("kind", "where"),
    [
        ("silent", "info"),
        ("silent", "resolve"),
        ("silent", "storage"),
        ("stall", "storage"),
        ("slow", "storage"),
    ],
)
def test_pausing_works_at_once_wherever_it_waits(job: Fetching, hub: FakeHub, kind: Kind, where: Route) -> None:
    hub.misbehave(kind, where=where, times=None)
    with running(job) as (download, ended):
        hub.wait_for(lambda server: bool(server.seen(where)))
        download.pause()
        ended()
    assert download.progress.files[0].state is FileState.PAUSED
    hub.behave()
    job.run()
    job.check_installed()


def test_pausing_works_at_once_between_two_tries(job: Fetching, hub: FakeHub) -> None:
    hub.misbehave("429", where="info", seconds=200)
    with job.download(PATIENT) as download:
        waits = threading.Event()
        report = download._job._report
        download._job._report = lambda progress: (report(progress), progress.waiting and waits.set())
        thread = threading.Thread(target=download.run)
        thread.start()
        assert waits.wait(60)
        download.pause()
        thread.join(PROMPT_S)
        assert not thread.is_alive()
    assert download.progress.files[0].state is FileState.PAUSED
    assert download.progress.waiting is None


@pytest.mark.parametrize("where", ["hub", "storage"])
def test_pausing_works_at_once_while_a_name_is_looked_up(
    job: Fetching, monkeypatch: pytest.MonkeyPatch, where: str
) -> None:
    asked, release = threading.Event(), threading.Event()
    look_up = socket.getaddrinfo

    def never(host: str | bytes | None, *args: object, **kwargs: object) -> object:
        if str(host) == ("127.0.0.1" if where == "hub" else "127.0.0.2"):
            asked.set()
            release.wait(120)
        return look_up(host, *args, **kwargs)  # type: ignore[arg-type]

    with monkeypatch.context() as patch:
        patch.setattr(socket, "getaddrinfo", never)
        with running(job) as (download, ended):
            assert asked.wait(60)
            download.pause()
            ended()
            release.set()
            for one in [one for one in threading.enumerate() if one.name.startswith("download-")]:
                one.join(60)
    assert download.progress.files[0].state is FileState.PAUSED
    job.run()
    job.check_installed()


def test_pausing_before_it_begins(job: Fetching, hub: FakeHub) -> None:
    with job.download() as download:
        download.pause()
        final = download.run()
    assert [file.state for file in final.files] == [FileState.PAUSED] * 2
    assert not hub.requests


def test_pausing_after_the_end_changes_nothing(job: Fetching) -> None:
    with job.download() as download:
        download.run()
        download.pause()
        download.cancel(keep=False)
    job.check_installed()


def test_pausing_in_the_second_file_keeps_the_first(job: Fetching, hub: FakeHub) -> None:
    def report(progress: JobProgress) -> None:
        if progress.files[0].state is FileState.INSTALLED:
            hub.misbehave("stall", after=10_000, times=None)

    with job.hub() as real:
        download = Download(job.pair, job.store, real, PATIENT, report)
        thread = threading.Thread(target=download.run)
        thread.start()
        hub.wait_for(lambda server: any(f"/{job.pair.drafter.repo}/" in seen.path for seen in server.seen("storage")))
        download.pause()
        thread.join(PROMPT_S)
        assert not thread.is_alive()
    assert [file.state for file in download.progress.files] == [FileState.INSTALLED, FileState.PAUSED]
    hub.behave()
    job.run()
    job.check_installed()


def test_reading_what_is_there_can_be_paused(job: Fetching, hub: FakeHub, monkeypatch: pytest.MonkeyPatch) -> None:
    hub.misbehave("drop", at=600_000, times=None)
    job.run(msgspec.structs.replace(QUICK, connections=1, tries=2))
    hub.behave()
    here = count(job)
    with job.download() as download:
        # After each block that is read it looks whether it is to go on.
        monkeypatch.setattr("tandem.models.part.check", lambda _stop: (download.pause(), download._stop.check()))
        download.run()
    assert download.progress.files[0].state is FileState.PAUSED
    assert count(job) == here
    monkeypatch.undo()
    job.run()
    job.check_installed()


def test_cancelling_removes_the_part(job: Fetching, hub: FakeHub) -> None:
    hub.misbehave("slow", times=None)
    with running(job) as (download, ended):
        hub.allow(400_000)
        hub.wait_for(lambda server: server.sent >= 400_000)
        download.cancel(keep=False)
        ended()
    final = download.progress
    assert [(file.state, file.done) for file in final.files] == [(FileState.ABSENT, 0)] * 2
    assert [path.name for path in job.store.folder.rglob("*")] == []
    job.check_steps()
    hub.behave()
    job.run()
    job.check_installed()


def test_cancelling_removes_the_parts_of_both_files(job: Fetching, hub: FakeHub) -> None:
    part = job.part(1)
    part.parent.mkdir(parents=True)
    part.write_bytes(b"begun before")
    hub.misbehave("silent", where="info", times=None)
    with running(job) as (download, ended):
        hub.wait_for(lambda server: bool(server.seen("info")))
        download.cancel(keep=False)
        ended()
    assert not part.exists()


def test_cancelling_can_keep_the_part(job: Fetching, hub: FakeHub) -> None:
    hub.misbehave("slow", times=None)
    with running(job) as (download, ended):
        hub.allow(400_000)
        hub.wait_for(lambda server: server.sent >= 400_000)
        download.cancel(keep=True)
        ended()
    assert download.progress.files[0].state is FileState.PAUSED
    assert read_record(job.record()) is not None


def test_cancelling_after_pausing_counts(job: Fetching, hub: FakeHub) -> None:
    with job.download() as download:
        download.pause()
        download.cancel(keep=False)
        final = download.run()
    assert [file.state for file in final.files] == [FileState.ABSENT] * 2
    assert not hub.requests


def test_a_paused_download_leaves_no_connection(job: Fetching, hub: FakeHub) -> None:
    hub.misbehave("stall", after=1000, times=None)
    with running(job) as (download, ended):
        hub.wait_for(lambda server: len(server.seen("storage")) == 4)
        download.pause()
        ended()
    # Each reader's thread ends by itself, as its connection was shut down under it.
    for thread in [one for one in threading.enumerate() if one.name == "download-reader"]:
        thread.join(PROMPT_S)
        assert not thread.is_alive()


def test_what_an_abandoned_connection_still_brings_reaches_nothing(job: Fetching, hub: FakeHub) -> None:
    hub.misbehave("stall", after=100_000, times=None)
    with running(job) as (download, ended):
        hub.wait_for(lambda server: server.sent >= 100_000)
        download.pause()
        ended()
    size, data = count(job), job.part().read_bytes()
    hub.release()
    hub.behave()
    for thread in [one for one in threading.enumerate() if one.name == "download-reader"]:
        thread.join(60)
    assert (count(job), job.part().read_bytes()) == (size, data)
    assert job.contents[0].startswith(data)


def test_pausing_and_resuming_over_and_over(job: Fetching, hub: FakeHub) -> None:
    for turn in range(6):
        hub.misbehave("slow", times=None)
        with running(job) as (download, ended):
            before = hub.sent
            hub.allow(150_000)
            hub.wait_for(lambda server, least=before + 150_000: server.sent >= least)
            download.pause()
            ended()
        hub.behave()
        assert download.progress.files[0].state is FileState.PAUSED, turn
        assert job.contents[0].startswith(job.part().read_bytes())
    job.run()
    job.check_installed()


def test_a_proxy_that_never_answers_can_be_paused(job: Fetching) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:  # takes connections and says nothing
        proxy = f"http://127.0.0.1:{silent.getsockname()[1]}"
        network = Network(endpoint=job.server.endpoint, proxy=proxy, proxy_from="settings")
        with Hub(network) as hub:
            download = Download(job.pair, job.store, hub, PATIENT)
            thread = threading.Thread(target=download.run)
            thread.start()
            with silent.accept()[0]:
                download.pause()
                thread.join(PROMPT_S)
                assert not thread.is_alive()
    assert download.progress.files[0].state is FileState.PAUSED
