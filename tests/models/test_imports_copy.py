"""Copies while importing: stopped, killed, gone on with, on a full disk, on another drive."""

from __future__ import annotations

import errno
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from support.drives import other_drive
from support.modelfiles import catalog_of, large_bytes, pair_of, sha256
from tandem.models import copying, hashing, imports
from tandem.models.copying import copy_file
from tandem.models.disk import amount
from tandem.models.errors import TransferError
from tandem.models.imports import Found, look, take
from tandem.models.progress import JobProgress
from tandem.models.stop import Stop, Stopped, Why
from tandem.models.store import Store

SIZE = 4 << 20


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "models", catalog_of(pair_of()))


@pytest.fixture
def large(tmp_path: Path) -> Path:
    """Some MiB, every block of them another one."""
    path = tmp_path / "large.gguf"
    path.write_bytes(large_bytes(SIZE))
    return path


def copies(store: Store) -> list[Path]:
    return sorted(store.folder.rglob("*.copy"))


def test_a_copy_that_was_paused_goes_on_where_it_was(
    store: Store, large: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = look(large, store=store)
    with pytest.raises(Stopped):
        copied_until(store, found, SIZE // 2, "pause")
    (copy,) = copies(store)
    kept = copy.stat().st_size
    assert SIZE // 2 <= kept < large.stat().st_size
    written: list[int] = []
    write = copying._write

    def counted(to: copying.io.FileIO, data: memoryview) -> None:
        written.append(len(data))
        write(to, data)

    monkeypatch.setattr(copying, "_write", counted)
    entry = take(store, found, "copy")
    assert entry.path.read_bytes() == large.read_bytes()
    assert sum(written) == large.stat().st_size - kept
    assert copies(store) == []


def copied_until(store: Store, found: Found, enough: int, why: Why) -> None:
    stop = Stop()

    def enough_now(done: int) -> None:
        if done >= enough:
            stop.set(why)

    place = store.folder / "imported" / found.path.name
    place.parent.mkdir(parents=True, exist_ok=True)
    copy_file(found.path, place, expected=found.sha256, stop=stop, news=enough_now)


def test_a_copy_that_was_cancelled_is_removed(store: Store, large: Path) -> None:
    with pytest.raises(Stopped):
        copied_until(store, look(large, store=store), SIZE // 2, "cancel")
    assert copies(store) == []


@pytest.mark.parametrize("spoil", ["zeros", "longer", "another file"])
def test_what_an_earlier_copy_left_is_not_trusted(store: Store, large: Path, spoil: str) -> None:
    found = look(large, store=store)
    with pytest.raises(Stopped):
        copied_until(store, found, SIZE // 2, "pause")
    (copy,) = copies(store)
    if spoil == "zeros":  # as a power cut leaves it
        with copy.open("r+b") as stream:
            stream.seek(hashing.BLOCK)
            stream.write(bytes(hashing.BLOCK))
    elif spoil == "longer":
        copy.write_bytes(large.read_bytes() + b"x")
    else:
        copy.write_bytes(os.urandom(1000))
    assert take(store, found, "copy").path.read_bytes() == large.read_bytes()


COPYING = """
import sys
from pathlib import Path
from tandem.models.copying import copy_file

def news(done):
    if done >= int(sys.argv[4]):
        print("there", flush=True)
        sys.stdin.read()

copy_file(Path(sys.argv[1]), Path(sys.argv[2]), expected=sys.argv[3], news=news)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="no SIGKILL there")
@pytest.mark.parametrize("percent", [40, 99])
def test_a_process_killed_while_copying_leaves_nothing_wrong(store: Store, large: Path, percent: int) -> None:
    found = look(large, store=store)
    place = store.folder / "imported" / large.name
    place.parent.mkdir(parents=True)
    command = [sys.executable, "-c", COPYING, str(large), str(place), found.sha256, str(found.bytes * percent // 100)]
    desktop = str(Path(imports.__file__).parents[2])
    environment = {**os.environ, "PYTHONPATH": desktop}
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"there\n"
        with pytest.raises(TransferError) as caught:  # nobody else may write it meanwhile
            take(store, found, "copy")
        assert caught.value.fault == "busy"
        process.send_signal(signal.SIGKILL)
    assert not place.exists()
    assert [entry.path for entry in store.installed()] == []
    entry = take(store, found, "copy")
    assert sha256(entry.path.read_bytes()) == found.sha256
    assert store.state(entry) == "installed"


def test_killed_before_the_copy_got_its_name(store: Store, large: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = look(large, store=store)

    class Killed(BaseException):
        pass

    def killed(_self: Path, _target: Path) -> Path:
        raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(Path, "replace", killed)
        with pytest.raises(Killed):
            take(store, found, "copy")
    (entry,) = store.installed()
    assert store.state(entry) == "missing"
    again = take(store, found, "copy")
    assert again.path == entry.path
    assert store.installed() == (again,)
    assert store.state(again) == "installed"


def test_a_source_that_changes_while_it_is_copied_is_refused(store: Store, large: Path) -> None:
    found = look(large, store=store)
    data = bytearray(large.read_bytes())
    data[-1] ^= 1
    status = large.stat()
    large.write_bytes(data)
    os.utime(large, ns=(status.st_atime_ns, status.st_mtime_ns))
    with pytest.raises(TransferError) as caught:
        take(store, found, "copy")
    assert caught.value.fault == "wrong-hash"
    assert store.installed() == ()
    assert copies(store) == []
    assert not (store.folder / "imported" / large.name).exists()


def test_no_room_is_said_before_the_first_byte(store: Store, large: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # Row 9 of the field problems.
    found = look(large, store=store)
    nearly = found.bytes + found.bytes // 20
    monkeypatch.setattr(shutil, "disk_usage", lambda _path: shutil._ntuple_diskusage(1 << 40, 0, nearly))
    with pytest.raises(TransferError) as caught:
        take(store, found, "copy")
    assert caught.value.fault == "no-room"
    assert amount(nearly) in caught.value.sentence
    assert copies(store) == []
    entry = take(store, found, "link")  # needs none
    assert entry.path.samefile(large)


def test_a_hard_link_to_another_drive_becomes_a_copy_and_that_is_said(
    store: Store, large: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def other(*_paths: object) -> None:
        raise OSError(errno.EXDEV, "Invalid cross-device link")

    monkeypatch.setattr(os, "link", other)
    told: list[JobProgress] = []
    entry = take(store, look(large, store=store), "link", report=told.append)
    assert not entry.path.samefile(large)
    assert entry.path.read_bytes() == large.read_bytes()
    assert imports.NOTE_COPIED in {progress.sentence for progress in told}


def test_a_real_other_drive(large: Path, tmp_path: Path) -> None:
    with other_drive(tmp_path / "drive") as drive:
        store = Store(drive / "models", catalog_of(pair_of()))
        entry = take(store, look(large, store=store), "link")
        assert entry.path.read_bytes() == large.read_bytes()
        assert store.state(entry) == "installed"


def test_a_disk_that_fills_up_while_copying(large: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # Row 9 of the field problems: there seemed to be room, then there was none.
    with other_drive(tmp_path / "drive", "2m") as drive:
        store = Store(drive / "models", catalog_of(pair_of()))
        found = look(large, store=store)
        monkeypatch.setattr(imports, "require_room", lambda *_args: None)
        with pytest.raises(TransferError) as caught:
            take(store, found, "copy")
        assert caught.value.fault == "disk-full"
        assert str(drive / "models" / "imported") in caught.value.sentence
        assert copies(store) == []  # a copy can be made again: the room is more useful
        assert store.installed() == ()
    assert large.exists()


def test_a_source_that_cannot_be_read_to_its_end_names_its_own_folder(
    store: Store, large: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = look(large, store=store)

    class Broken(copying.io.FileIO):
        def readinto(self, buffer: object) -> int:
            del buffer
            raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(copying, "open_bytes", Broken)
    with pytest.raises(TransferError) as caught:
        take(store, found, "copy")
    assert str(large.parent) in caught.value.sentence
    assert "Input/output" in caught.value.sentence


def test_a_copy_read_back_differently_is_refused(large: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(copying, "hash_file", lambda *_args: hashing.Hashed("0" * 64, 1, 1, True))
    with pytest.raises(TransferError, match="may be failing"):
        copy_file(large, tmp_path / "copy.gguf", proof=True)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["large.gguf"]
