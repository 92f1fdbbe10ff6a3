"""Going on with a part: it is read again, which is told; and mirrors that have many names for one content."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.fetching import QUICK, Fetching, fetching
from support.hub import FakeHub
from support.hub_faults import Fault
from tandem.models import part
from tandem.models.progress import JobProgress
from tandem.models.state import FileState


@pytest.fixture
def job(hub: FakeHub, tmp_path: Path) -> Fetching:
    return fetching(hub, tmp_path / "models")


def reading(told: list[JobProgress]) -> list[int]:
    """What was told of the target before anything came in."""
    return [one.files[0].done for one in told if one.files[0].state is FileState.RESOLVING]


@pytest.fixture
def _each_block(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(part, "BLOCK", 1 << 16)
    monkeypatch.setattr("tandem.models.job._EVERY_S", 0.0)


@pytest.mark.usefixtures("_each_block")
def test_what_is_here_is_read_and_that_is_told(job: Fetching) -> None:
    here = job.half()
    job.run()
    job.check_installed()
    blocks = [count for count in reading(job.told) if count < here]
    assert blocks == sorted(blocks)
    assert len(blocks) >= here // (1 << 16) - 1
    assert all(one.bytes_per_s is None for one in job.told if one.files[0].state is FileState.RESOLVING)


@pytest.mark.usefixtures("_each_block")
def test_the_reading_ends_at_once_and_all_that_is_here_stays(job: Fetching) -> None:
    here = job.half()
    with job.download(QUICK) as download:
        told = job.told.append

        def stop(progress: JobProgress) -> None:
            told(progress)
            if progress.files[0].state is FileState.RESOLVING and 0 < progress.files[0].done < here:
                download.pause()

        download._job._report = stop
        final = download.run()
    assert final.files[0].state is FileState.PAUSED
    assert final.files[0].done == here == job.part().stat().st_size
    assert len([count for count in reading(job.told) if count < here]) <= 2
    assert job.ranges() == []
    job.run()
    job.check_installed()


def test_nodes_with_many_names_for_one_content_cost_one_new_beginning(job: Fetching, hub: FakeHub) -> None:
    job.half()
    nodes = ('"node-0"', '"node-1"', '"node-2"')
    stored = hub.repos["tester/target"].files["small-target.gguf"]
    names = iter(nodes * 1000)
    type_of = type(stored)
    real = type_of.etag

    def etag(self: object) -> str:
        return next(names) if self is stored else real.fget(self)  # type: ignore[misc]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(type_of, "etag", property(etag))
        job.run()
    job.check_installed()
    assert [asked[0] for asked in job.ranges() if asked].count(0) <= 1
    asked = [one for one in hub.seen("storage") if "/tester/target/" in one.path]
    assert "if-range" not in asked[-1].headers


def test_other_content_that_comes_again_and_again_is_found_out_by_its_hash(job: Fetching, hub: FakeHub) -> None:
    job.half()
    hub.script("storage", [Fault("changed-etag"), None] * 40)
    final = job.run()
    assert (final.files[0].state, final.fault) == (FileState.QUARANTINED, "wrong-hash")
