"""Verify files: hashed again, with progress, at any time; what is wrong is set aside and named."""

from __future__ import annotations

import errno
import hashlib
import os
from pathlib import Path

import msgspec
import pytest

from support.modelfiles import catalog_of, drafter_bytes, flip, install_pair, pair_of, sha256, target_bytes
from tandem.models import hashing, verify
from tandem.models.catalog import CatalogPair
from tandem.models.hashing import hash_file
from tandem.models.imports import look, take
from tandem.models.job import Job
from tandem.models.progress import FileProgress, JobProgress
from tandem.models.state import FileState
from tandem.models.stop import Stop, Stopped
from tandem.models.store import Store


@pytest.fixture
def pair() -> CatalogPair:
    return pair_of()


@pytest.fixture
def store(tmp_path: Path, pair: CatalogPair) -> Store:
    store = Store(tmp_path / "models", catalog_of(pair))
    install_pair(store, pair)
    return store


def test_files_that_are_right_are_verified_anew(store: Store) -> None:
    store.index.path.write_text(  # long ago
        store.index.path.read_text(encoding="utf-8").replace('"verified_at": "20', '"verified_at": "19'),
        encoding="utf-8",
    )
    told: list[JobProgress] = []
    checked = verify.verify(store, report=told.append)
    assert [one.good for one in checked] == [True, True]
    assert [one.sha256 for one in checked] == [sha256(target_bytes()), sha256(drafter_bytes())]
    assert all(one.sentence == "" for one in checked)
    assert all(entry.verified_at and entry.verified_at.year >= 2000 for entry in store.installed())
    assert {progress.key for progress in told} == {"verify"}
    assert told[-1].done == told[-1].total == len(target_bytes()) + len(drafter_bytes())
    assert not told[-1].running


def test_one_flipped_byte_is_found_set_aside_and_named(store: Store, pair: CatalogPair) -> None:
    # Row 56 of the field problems. Size, time and header are as they were.
    target, drafter = store.installed()
    flip(target.path)
    assert [state for _entry, state in store.check()] == [FileState.INSTALLED] * 2  # which the cheap check cannot see
    bad, good = verify.verify(store)
    assert good.good
    assert bad.state is FileState.QUARANTINED
    assert "e2b-target.gguf" in bad.sentence
    assert bad.sha256[:12] in bad.sentence
    assert bad.expected[:12] in bad.sentence
    assert bad.sentence.endswith(".")
    assert bad.remedy.endswith(".")
    assert not target.path.exists()
    assert store.installed() == (msgspec.structs.replace(drafter, verified_at=store.installed()[0].verified_at),)
    (kept,) = store.quarantined()
    assert kept.path == bad.moved_to
    assert Path(kept.path).stat().st_size == len(target_bytes())
    assert (kept.fault, kept.expected, kept.found) == ("wrong-hash", pair.target.pin, bad.sha256)
    assert store.pair_paths(pair) is None


def test_a_file_with_another_time_but_the_same_bytes_is_installed_again(store: Store, pair: CatalogPair) -> None:
    target = store.installed()[0]
    os.utime(target.path, (1_000_000_000, 1_000_000_000))
    assert store.find(pair.target) is None
    assert [one.good for one in verify.verify(store, [target])] == [True]
    assert store.find(pair.target) is not None


def test_only_the_files_asked_for_are_read(store: Store) -> None:
    target, drafter = store.installed()
    flip(drafter.path)
    assert [one.name for one in verify.verify(store, [target])] == ["e2b-target.gguf"]
    assert drafter.path.exists()


def test_a_file_that_is_gone(store: Store) -> None:
    target = store.installed()[0]
    target.path.unlink()
    checked = verify.verify(store)[0]
    assert checked.state is FileState.MISSING
    assert "no longer" in checked.sentence
    assert len(store.installed()) == 2


def test_a_file_in_place_is_marked_and_not_moved(store: Store, tmp_path: Path) -> None:
    mine = tmp_path / "모델.gguf"
    mine.write_bytes(target_bytes("e4b"))
    entry = take(store, look(mine, store=store), "in-place")
    flip(mine)
    checked = verify.verify(store, [entry])[0]
    assert checked.state is FileState.QUARANTINED
    assert checked.moved_to is None
    assert "모델.gguf" in checked.sentence
    assert mine.exists()
    assert store.quarantined() == ()
    marked = next(one for one in store.installed() if one.path == mine)
    assert store.state(marked) is FileState.QUARANTINED
    assert verify.verify(store, [marked])[0].state is FileState.QUARANTINED  # it does not become good by asking again


def test_an_imported_copy_is_not_told_to_be_downloaded(store: Store, tmp_path: Path) -> None:
    mine = tmp_path / "mine.gguf"
    mine.write_bytes(target_bytes("e4b"))
    entry = take(store, look(mine, store=store), "copy")
    flip(entry.path)
    checked = verify.verify(store, [entry])[0]
    assert checked.moved_to is not None
    assert "Import it again" in checked.remedy


def test_what_a_list_that_cannot_be_written_does_not_keep_is_told_all_the_same(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(path: Path, _data: bytes) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path))

    target, drafter = store.installed()
    flip(target.path)
    monkeypatch.setattr("tandem.models.index.write_private", full)
    bad, good = verify.verify(store)
    assert (bad.state, good.state) == (FileState.QUARANTINED, FileState.INSTALLED)
    assert bad.moved_to is not None
    assert store.installed() == (target, drafter)
    assert store.state(target) is FileState.MISSING


def test_a_wrong_file_in_a_folder_that_cannot_be_changed_at_all_is_told(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    def read_only(path: Path, *_rest: object) -> None:
        raise OSError(errno.EROFS, os.strerror(errno.EROFS), str(path))

    flip(store.installed()[0].path)
    monkeypatch.setattr("tandem.models.index.write_private", read_only)
    monkeypatch.setattr("tandem.models.quarantine.write_private", read_only)
    monkeypatch.setattr(Path, "rename", read_only)
    bad, good = verify.verify(store)
    assert (bad.state, bad.moved_to, good.good) == (FileState.QUARANTINED, None, True)
    assert Path(bad.path).exists()


def test_a_file_that_cannot_be_moved_is_marked(store: Store, pair: CatalogPair) -> None:
    (store.folder / "quarantine").write_bytes(b"a file where the folder should be")
    target = store.installed()[0]
    flip(target.path)
    checked = verify.verify(store, [target])[0]
    assert checked.state is FileState.QUARANTINED
    assert target.path.exists()
    assert store.find(pair.target) is None


def test_a_file_that_cannot_be_read_is_said(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(_path: Path, *_others: object) -> hashing.Hashed:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(verify, "hash_file", broken)
    checked = verify.verify(store)
    assert [one.state for one in checked] == [FileState.CHANGED] * 2
    assert "Input/output error" in checked[0].sentence
    assert len(store.installed()) == 2


def test_a_file_that_is_written_to_meanwhile(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    target = store.installed()[0]
    old = (1_000_000_000, 1_000_000_000)

    def disturbed(path: Path, *_others: object) -> hashing.Hashed:
        return hash_file(path, news=lambda _done: os.utime(path, old))

    monkeypatch.setattr(verify, "hash_file", disturbed)
    checked = verify.verify(store, [target])[0]
    assert checked.state is FileState.CHANGED
    assert "written to" in checked.sentence
    assert target.path.exists()


def test_it_stops_in_the_middle_and_keeps_what_it_found(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hashing, "BLOCK", 1024)
    target, drafter = store.installed()
    os.utime(target.path, (1_000_000_000, 1_000_000_000))
    stop = Stop()

    def stop_in_the_second(progress: JobProgress) -> None:
        if progress.files[1].state is FileState.VERIFYING:
            stop.set("pause")

    with pytest.raises(Stopped):
        verify.verify(store, stop=stop, report=stop_in_the_second)
    assert [store.state(entry) for entry in store.installed()] == [FileState.INSTALLED] * 2
    assert drafter in store.installed()


@pytest.mark.parametrize("size", [0, 1, hashing.BLOCK - 1, hashing.BLOCK, 3 * hashing.BLOCK + 7])
def test_hashes_are_right_whatever_the_size(tmp_path: Path, size: int) -> None:
    path = tmp_path / "Загрузки 🦙"
    data = os.urandom(size)
    path.write_bytes(data)
    news: list[int] = []
    hashed = hash_file(path, news=news.append)
    assert hashed == (hashlib.sha256(data).hexdigest(), size, path.stat().st_mtime_ns, True)
    assert news == sorted(news)
    assert not size or news[-1] == size


def test_a_store_without_files_has_nothing_to_verify(tmp_path: Path) -> None:
    told: list[JobProgress] = []
    assert verify.verify(Store(tmp_path), report=told.append) == ()
    assert told[-1].total == 0


def test_speed_and_time_left_are_told() -> None:
    clock = [0.0]
    told: list[JobProgress] = []
    work = Job("verify", [FileProgress("a", FileState.VERIFYING, 0, 400)], told.append, lambda: clock[-1])
    work.advance(0, 0)
    for seconds in (1, 2):
        clock.append(seconds)
        work.advance(0, 100 * seconds)
    assert told[0].bytes_per_s is None
    assert told[-1].bytes_per_s == pytest.approx(100.0)
    assert told[-1].left_s == pytest.approx(2.0)
