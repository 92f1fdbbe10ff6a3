"""A disk that is full, read-only or gone: a sentence, and nothing lost. Row 9 of the field's problems."""

from __future__ import annotations

import shutil
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.drives import other_drive
from support.fetching import QUICK, fetching
from support.hub import FakeHub
from tandem.models.disk import amount
from tandem.models.download import Download
from tandem.models.errors import TransferError
from tandem.models.part import read_record
from tandem.models.progress import JobProgress
from tandem.models.state import FileState

MB = 1_000_000


@pytest.fixture
def drive(tmp_path: Path) -> Iterator[Path]:
    """A file system of 100 MB."""
    with other_drive(tmp_path / "drive", "100m") as folder:
        yield folder


def fill(folder: Path, leave: int) -> Path:
    """Takes all room but so much."""
    filler = folder / "filler"
    count = shutil.disk_usage(folder).free - leave
    with filler.open("ab") as stream:
        while count > 0:
            stream.write(bytes(min(count, MB)))
            count -= MB
    return filler


def test_row_9_room_for_the_pair_is_checked_before_the_first_byte(hub: FakeHub, drive: Path) -> None:
    # The target alone would fit, with the drafter it does not.
    job = fetching(hub, drive / "models", (85 * MB, 15 * MB))
    final = job.run()
    assert (final.files[0].state, final.fault) == (FileState.FAILED, "no-room")
    needed = sum(map(len, job.contents)) * 11 // 10
    assert f"{amount(needed, up=True)} are needed." in final.sentence
    assert f"{amount(shutil.disk_usage(drive).free)} free" in final.sentence
    assert not hub.seen("storage")


def test_row_9_what_is_here_needs_no_room_again(hub: FakeHub, drive: Path) -> None:
    job = fetching(hub, drive / "models", (50 * MB, 1 * MB))
    hub.misbehave("drop", at=40 * MB, times=None)
    job.run()
    hub.behave()
    here = job.part().stat().st_size
    assert here > 20 * MB
    filler = fill(drive, int((52 * MB - here) * 1.1) + MB)
    job.run()
    job.check_installed()
    filler.unlink()


def test_row_9_a_disk_that_fills_up_pauses_and_loses_nothing(hub: FakeHub, drive: Path) -> None:
    job = fetching(hub, drive / "models", (60 * MB, 5 * MB))
    hub.misbehave("slow", times=None)
    with job.download() as download:
        caught: list[Exception] = []

        def run() -> None:
            try:
                download.run()
            except TransferError as error:
                caught.append(error)

        thread = threading.Thread(target=run)
        thread.start()
        hub.allow(10 * MB)
        hub.wait_for(lambda server: server.sent >= 10 * MB)
        filler = fill(drive, 20 * MB)  # somebody else
        hub.allow(1 << 40)
        thread.join()
    final = download.progress
    assert (final.files[0].state, final.fault) == (FileState.PAUSED, "disk-full")
    assert [error.fault for error in caught if isinstance(error, TransferError)] == ["disk-full"]
    assert str(drive) in final.sentence
    assert "Make room" in final.remedy
    record = read_record(job.record())
    assert record is not None
    assert record.synced == job.part().stat().st_size > 10 * MB
    assert job.contents[0].startswith(job.part().read_bytes())

    # Still no room: a sentence again, and still nothing lost.
    hub.behave()
    again = job.run()
    assert again.fault in ("no-room", "disk-full")
    assert job.part().stat().st_size >= record.synced - MB

    filler.unlink()
    hub.requests.clear()
    job.run()
    job.check_installed()
    assert min(asked[0] for asked in job.ranges() if asked) >= record.synced - MB


def test_row_9_no_room_for_the_list_of_installed_files(hub: FakeHub, drive: Path) -> None:
    job = fetching(hub, drive / "models", (5 * MB, 1 * MB))
    fillers: list[Path] = []

    def report(progress: JobProgress) -> None:
        if progress.files[0].state is FileState.CHECKING and not fillers:
            fillers.append(fill(drive, 0))

    with job.hub() as real:
        download = Download(job.pair, job.store, real, QUICK, report)
        with pytest.raises(TransferError) as caught:
            download.run()
        assert caught.value.fault == "disk-full"
        assert download.progress.files[0].state is FileState.PAUSED
    fillers[0].unlink()
    job.run()
    job.check_installed()


def test_row_9_a_disk_that_is_full_from_the_start(hub: FakeHub, drive: Path) -> None:
    job = fetching(hub, drive / "models", (5 * MB, 1 * MB))
    filler = fill(drive, 0)
    final = job.run()
    assert final.fault in ("no-room", "disk-full")
    assert final.files[0].state in (FileState.FAILED, FileState.PAUSED)
    filler.unlink()
    job.run()
    job.check_installed()


def test_a_disk_that_may_not_be_written_to(hub: FakeHub, drive: Path) -> None:
    job = fetching(hub, drive / "models", (1 * MB, 1 * MB))
    subprocess.run(["mount", "-o", "remount,ro", str(drive)], check=True)
    final = job.run()
    assert (final.files[0].state, final.fault) == (FileState.FAILED, "disk")
    assert "may not write" in final.sentence
    assert not hub.seen("storage")
    subprocess.run(["mount", "-o", "remount,rw", str(drive)], check=True)
    job.run()
    job.check_installed()


def test_a_folder_that_goes_away_meanwhile(hub: FakeHub, tmp_path: Path) -> None:
    job = fetching(hub, tmp_path / "models")

    def report(progress: JobProgress) -> None:
        if progress.files[0].state is FileState.CHECKING:
            shutil.rmtree(job.store.folder, ignore_errors=True)

    with job.hub() as real:
        download = Download(job.pair, job.store, real, QUICK, report)
        with pytest.raises(TransferError) as caught:
            download.run()
        assert caught.value.fault == "disk"
        assert "is not there" in caught.value.sentence
        assert download.progress.files[0].state is FileState.FAILED
    job.run()
    job.check_installed()


def test_a_folder_that_is_a_file(hub: FakeHub, tmp_path: Path) -> None:
    (tmp_path / "models").write_bytes(b"not a folder")
    job = fetching(hub, tmp_path / "models")
    final = job.run()
    assert (final.files[0].state, final.fault) == (FileState.FAILED, "disk")
    assert not hub.requests
    (tmp_path / "models").unlink()
    job.run()
    job.check_installed()
