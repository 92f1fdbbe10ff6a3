"""A part on the disk: what a resume goes on with, whatever ended the run before."""

from __future__ import annotations

import errno
import hashlib
import os
import random
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tandem.models import part as module
from tandem.models.errors import TransferError
from tandem.models.locks import PartLock
from tandem.models.part import Part, PartRecord, read_record
from tandem.models.stop import Stop, Stopped

DATA = random.Random(1).randbytes(300_000)
WANTED = PartRecord("owner/repo", "file.gguf", "c" * 40, hashlib.sha256(DATA).hexdigest(), len(DATA))
HALF = 150_000


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "모델 📦" / "file.gguf.part"


def record_of(path: Path) -> Path:
    return path.with_name(path.name + ".json")


@pytest.fixture(autouse=True)
def _folder(path: Path) -> Iterator[None]:
    path.parent.mkdir()
    yield
    assert not [one for one in path.parent.iterdir() if one.name.startswith(".tandem-")]


def opened(path: Path, wanted: PartRecord = WANTED) -> Part:
    part = Part(path, record_of(path), wanted)
    part.open()
    return part


def left(path: Path, count: int = HALF) -> None:
    """A part that was closed in order."""
    part = opened(path)
    part.append(DATA[:count])
    part.known_as('"etag"', "host")
    part.close()


def finish(part: Part) -> None:
    """Fetches the rest; the sha256 must be right then."""
    part.append(DATA[part.size :])
    assert part.sha256() == WANTED.sha256
    part.flush()
    part.close(keep=False)
    assert part.path.read_bytes() == DATA


def test_a_file_comes_in_and_is_hashed_meanwhile(path: Path) -> None:
    part = opened(path)
    for start in range(0, len(DATA), 7000):
        part.append(DATA[start : start + 7000])
    finish(part)


def test_a_resume_reads_what_is_there_once(path: Path) -> None:
    left(path)
    told: list[int] = []
    part = Part(path, record_of(path), WANTED)
    part.open(news=told.append)
    assert part.size == HALF == told[-1]
    assert told == sorted(set(told))
    assert (part.etag, part.host) == ('"etag"', "host")
    finish(part)


def test_after_a_power_cut_only_what_was_flushed_counts(path: Path) -> None:
    left(path)
    with path.open("ab") as stream:
        stream.write(b"\0" * 5000)  # the size was kept, the bytes were not
    part = opened(path)
    assert part.size == HALF
    finish(part)


@given(
    flushed=st.integers(0, len(DATA)),
    tail=st.one_of(st.binary(max_size=200), st.integers(0, 5000).map(bytes)),
    lost=st.integers(0, 3000),
)
@settings(max_examples=60, deadline=None)
def test_whatever_a_power_cut_leaves_the_hash_is_right(flushed: int, tail: bytes, lost: int) -> None:
    # Up to `flushed` all is there, behind it anything may be; or the file is even shorter than it should be.
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "file.gguf.part"
        left(path, flushed)
        data = (DATA[:flushed] + tail)[: max(0, flushed + len(tail) - lost)]
        path.write_bytes(data)
        part = opened(path)
        assert part.size == min(flushed, len(data))
        finish(part)


def test_a_part_shorter_than_its_record_goes_on_where_it_ends(path: Path) -> None:
    left(path)
    os.truncate(path, 1000)
    part = opened(path)
    assert part.size == 1000
    finish(part)


@pytest.mark.parametrize("change", [{"sha256": "0" * 64}, {"bytes": len(DATA) + 1}])
def test_a_part_of_another_file_is_not_gone_on_with(path: Path, change: dict[str, object]) -> None:
    left(path)
    part = opened(path, msgspec.structs.replace(WANTED, **change))
    assert part.size == 0
    assert part.etag == ""
    part.close()
    assert path.stat().st_size == 0


def test_another_commit_with_the_same_content_is_gone_on_with(path: Path) -> None:
    left(path)
    part = opened(path, msgspec.structs.replace(WANTED, commit="d" * 40))
    assert part.size == HALF
    finish(part)
    record = read_record(record_of(path))
    assert record is not None
    assert record.commit == "d" * 40


@pytest.mark.parametrize("damage", [b"", b"{", b"\xff\x00", b"[]", b'{"synced": -1}', b"x" * 100_000])
def test_a_part_without_a_record_that_can_be_read_begins_at_zero(path: Path, damage: bytes) -> None:
    left(path)
    record_of(path).write_bytes(damage)
    part = opened(path)
    assert part.size == 0
    finish(part)


def test_a_part_without_a_record_begins_at_zero(path: Path) -> None:
    path.write_bytes(b"what somebody else put there")
    finish(opened(path))


def test_a_record_that_claims_too_much_is_not_believed(path: Path) -> None:
    left(path)
    record_of(path).write_bytes(msgspec.json.encode(msgspec.structs.replace(WANTED, synced=len(DATA) + 1)))
    finish(opened(path))


def test_reset_begins_at_zero_and_forgets_the_etag(path: Path) -> None:
    left(path)
    part = opened(path)
    part.reset()
    assert (part.size, part.etag, part.host) == (0, "", "")
    record = read_record(record_of(path))
    assert record is not None
    assert record.synced == 0
    finish(part)


def test_reading_what_is_there_can_be_stopped(path: Path) -> None:
    left(path)
    stop = Stop()
    stop.set("pause")
    part = Part(path, record_of(path), WANTED)
    with pytest.raises(Stopped):
        part.open(stop)
    part.close()
    finish(opened(path))


def test_what_was_written_is_flushed_again_and_again(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "SYNC_BYTES", 50_000)
    monkeypatch.setattr(module, "SYNC_LEAST_S", 0.0)
    flushed = threading.Event()
    write = module.write_private

    def note(where: Path, data: bytes) -> None:
        write(where, data)
        if b'"synced": 0' not in data:
            flushed.set()

    monkeypatch.setattr(module, "write_private", note)
    part = opened(path)
    part.append(DATA[:100_000])
    assert flushed.wait(60)
    record = read_record(record_of(path))
    assert record is not None
    assert record.synced == 100_000
    part.append(DATA[100_000:200_000])
    # The process is killed here; the system still has all of the file, and the record what is certain.
    again = opened(path)
    assert again.size >= 100_000
    finish(again)
    part.close(keep=False)


def test_a_fast_line_is_flushed_once_a_second_only(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "SYNC_BYTES", 1000)
    now, flushes = [0.0], []
    monkeypatch.setattr(module, "_flush", lambda _descriptor: flushes.append(now[0]))
    part = Part(path, record_of(path), WANTED, clock=lambda: now[0])
    part.open()
    for turn in range(100):
        now[0] = turn * 0.05
        part.append(DATA[turn * 2000 : turn * 2000 + 2000])
    part._settle()
    assert 1 <= len(flushes) <= 5
    part.close()


def test_what_is_flushed_by_time(path: Path) -> None:
    now = [0.0]
    part = Part(path, record_of(path), WANTED, clock=lambda: now[0])
    part.open()
    part.append(DATA[:1000])
    now[0] = module.SYNC_S + 1
    part.append(DATA[1000:2000])
    part.append(DATA[2000:3000])
    part.close()
    record = read_record(record_of(path))
    assert record is not None
    assert record.synced == 3000


class FullDisk:
    """Writes as long as there is room."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, room: int, number: int = errno.ENOSPC) -> None:
        self.room, self._write = room, os.write
        self.number = number
        monkeypatch.setattr(os, "write", self)

    def __call__(self, descriptor: int, data: bytes | memoryview) -> int:
        if not self.room:
            raise OSError(self.number, os.strerror(self.number))
        count = self._write(descriptor, data[: self.room])
        self.room -= count
        return count


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT])
def test_a_full_disk_loses_nothing_that_was_written(path: Path, monkeypatch: pytest.MonkeyPatch, number: int) -> None:
    part = opened(path)
    with monkeypatch.context() as patch:
        FullDisk(patch, 100_000, number)
        part.append(DATA[:90_000])
        with pytest.raises(TransferError) as caught:
            part.append(DATA[90_000:180_000])
        assert caught.value.fault == "disk-full"
        part.close()
    assert path.stat().st_size == 90_000
    again = opened(path)
    assert again.size == 90_000
    finish(again)


def test_with_no_room_for_the_record_the_part_makes_some(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_ROOM", 10_000)
    write = module.write_private

    def full(where: Path, data: bytes) -> None:
        if path.stat().st_size > 80_000:
            raise OSError(errno.ENOSPC, "full")
        write(where, data)

    part = opened(path)
    part.append(DATA[:90_000])
    with monkeypatch.context() as patch:
        patch.setattr(module, "write_private", full)
        part.close()
    again = opened(path)
    assert again.size == 80_000
    finish(again)


def test_a_flush_that_fails_is_said_and_not_counted(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    left(path, 1000)
    part = opened(path)
    part.append(DATA[1000:50_000])

    def broken(_descriptor: int) -> None:
        raise OSError(errno.EIO, "Input/output error")

    with monkeypatch.context() as patch:
        patch.setattr(module, "_flush", broken)
        with pytest.raises(TransferError) as caught:
            part.flush()
        assert caught.value.fault == "disk"
        part.close()
    again = opened(path)
    assert again.size == 1000
    finish(again)


def test_a_flush_beside_the_writing_that_fails_is_said(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "SYNC_BYTES", 1)
    monkeypatch.setattr(module, "SYNC_LEAST_S", 0.0)
    tried = threading.Event()

    def broken(_descriptor: int) -> None:
        tried.set()
        raise OSError(errno.ENOSPC, "full")

    part = opened(path)
    with monkeypatch.context() as patch:
        patch.setattr(module, "_flush", broken)
        part.append(DATA[:1000])
        assert tried.wait(60)
        part._syncer.shutdown()  # type: ignore[union-attr]  # so that it is sure to be noticed next time
        with pytest.raises(TransferError) as caught:
            part.append(DATA[:1000])
        assert caught.value.fault == "disk-full"
    part.close()


def test_what_is_no_file_is_refused(path: Path) -> None:
    path.mkdir()
    with pytest.raises(TransferError) as caught:
        opened(path)
    assert caught.value.fault == "disk"


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no pipes with a name here")
def test_a_pipe_in_its_place_is_refused(path: Path) -> None:
    os.mkfifo(path)
    part = Part(path, record_of(path), WANTED)
    with pytest.raises(TransferError) as caught:
        part.open()
    assert caught.value.fault == "disk"
    part.close()


def test_a_folder_that_has_gone_is_said(path: Path) -> None:
    path.parent.rmdir()
    with pytest.raises(TransferError) as caught:
        opened(path)
    assert (caught.value.fault, "is not there" in caught.value.sentence) == ("disk", True)
    path.parent.mkdir()


def test_a_part_is_locked_against_a_second_one(path: Path) -> None:
    first, second = PartLock(path), PartLock(path)
    first.acquire()
    with pytest.raises(TransferError) as caught:
        second.acquire()
    assert caught.value.fault == "busy"
    assert caught.value.sentence.startswith("file.gguf is")
    first.release()
    second.acquire()
    second.release()
    assert list(path.parent.iterdir()) == []


def test_only_one_of_many_gets_the_lock(path: Path) -> None:
    holders, most, guard = [0], [0], threading.Lock()

    def hold() -> None:
        for _turn in range(50):
            lock = PartLock(path)
            try:
                lock.acquire()
            except TransferError:
                continue
            with guard:
                holders[0] += 1
                most[0] = max(most[0], holders[0])
            with guard:
                holders[0] -= 1
            lock.release()

    threads = [threading.Thread(target=hold) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert most == [1]


def test_a_lock_makes_the_folder(tmp_path: Path) -> None:
    lock = PartLock(tmp_path / "owner" / "repo" / "file.gguf.part")
    lock.acquire()
    assert (tmp_path / "owner" / "repo").is_dir()
    lock.release()
