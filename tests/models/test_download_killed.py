"""A download whose process is killed, or whose machine loses its power, goes on afterwards and ends right."""

from __future__ import annotations

import random
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec
import pytest

from support import fetch_child
from support.fetching import Fetching, fetching
from support.hub import FakeHub
from tandem.models.overview import overview
from tandem.models.part import PartRecord, read_record
from tandem.models.state import FileState
from tandem.models.store import Store

SYNC_BYTES = 1 << 16


@pytest.fixture
def job(hub: FakeHub, tmp_path: Path) -> Fetching:
    return fetching(hub, tmp_path / "models 🐦", (2 << 20, 1 << 16))


@contextmanager
def child(job: Fetching, folder: Path | None = None) -> Iterator[subprocess.Popen[str]]:
    """The download in a process of its own."""
    plain = msgspec.json.encode(job.pair).decode()
    folder = folder or job.store.folder
    command = [sys.executable, fetch_child.__file__, job.server.endpoint, str(folder), plain, str(SYNC_BYTES)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            yield process
        finally:
            process.kill()


def lines(process: subprocess.Popen[str]) -> Iterator[str]:
    assert process.stdout is not None
    return (line.strip() for line in process.stdout)


def killed_at(job: Fetching, share: float) -> PartRecord:
    """Kills a download when so much of the target is on the disk; what its record says then."""
    job.server.misbehave("slow", times=None)
    wanted = int(len(job.contents[0]) * share)
    job.server.allow(wanted)
    with child(job) as process:
        # A line comes from time to time though nothing comes in any more; by then some of it was flushed.
        for line in lines(process):
            noted = read_record(job.record())
            if int(line) >= wanted - (1 << 18) and noted is not None and noted.synced:
                break
        process.kill()  # SIGKILL
        assert process.wait(60) != 0
    job.server.behave()
    job.server.credit = 0
    job.server.requests.clear()
    record = read_record(job.record())
    assert record is not None
    return record


@pytest.mark.parametrize("share", [0.4, 0.99])
def test_row_6_kill_9_then_start_again_and_the_hash_is_right(job: Fetching, share: float) -> None:
    record = killed_at(job, share)
    assert 0 < record.synced <= job.part().stat().st_size
    with child(job) as process:
        assert list(lines(process))[-1] == "installed"
    job.check_installed(killed=True)
    asked = [one[0] for one in job.ranges() if one]
    assert min(asked) == record.synced  # it went on, and did not begin again


def test_row_6_killed_again_and_again(job: Fetching) -> None:
    for share in (0.2, 0.4, 0.6, 0.8):
        killed_at(job, share)
        assert job.contents[0].startswith(job.part().read_bytes())
    job.run()
    job.check_installed(killed=True)


def test_row_54_what_was_killed_is_listed_as_paused(job: Fetching) -> None:
    record = killed_at(job, 0.4)
    seen = overview(Store(job.store.folder, job.store.catalog), job.store.catalog, None)
    (view,) = seen.pairs
    assert (view.files[0].state, view.state) == (FileState.PAUSED, FileState.PAUSED)
    assert view.files[0].done >= record.synced
    assert view.files[0].total == len(job.contents[0])
    assert view.files[1].state is FileState.ABSENT


@pytest.mark.parametrize("seed", range(6))
def test_power_is_lost(job: Fetching, seed: int) -> None:
    # What was flushed is there; of what was not, anything may be: lost, zeros, other bytes, more or less of it.
    rnd = random.Random(seed)
    record = killed_at(job, 0.5)
    beginning = job.part().read_bytes()[: record.synced]
    tail = rnd.choice([b"", bytes(rnd.randrange(1, 100_000)), rnd.randbytes(rnd.randrange(1, 100_000))])
    job.part().write_bytes(beginning + tail)
    (job.part().parent / ".tandem-x1.part").write_bytes(b"a record that was being written")
    job.run()
    job.check_installed(killed=True)


def test_two_processes_on_one_part_do_not_meet(job: Fetching) -> None:
    job.server.misbehave("slow", times=None)
    with child(job) as first:
        assert next(lines(first)) == "0"
        job.server.wait_for(lambda hub: bool(hub.seen("storage")))
        with child(job) as second:
            *_news, last = lines(second)
            assert last == "small-target.gguf is being downloaded by another Tandem."
        job.server.behave()
        assert list(lines(first))[-1] == "installed"
    job.check_installed(killed=True)
