"""The model folder: how a file becomes installed, what is kept, what goes."""

from __future__ import annotations

import os
import sys
import threading
from pathlib import Path

import msgspec
import pytest

from support.modelfiles import (
    catalog_of,
    drafter_bytes,
    flip,
    install,
    install_pair,
    llama_bytes,
    pair_of,
    put_part,
    sha256,
    target_bytes,
)
from tandem.models.catalog import Catalog, CatalogPair
from tandem.models.errors import TransferError
from tandem.models.locks import PartLock
from tandem.models.state import FileState
from tandem.models.store import Store
from tandem.settings import Settings

FOLDERS = ["models", "田中", "모델", "Загрузки", "🦙 models", "a b"]


@pytest.fixture
def pair() -> CatalogPair:
    return pair_of()


@pytest.fixture
def catalog(pair: CatalogPair) -> Catalog:
    return catalog_of(pair, pair_of("e4b", size="e4b"))


@pytest.fixture
def store(tmp_path: Path, catalog: Catalog) -> Store:
    return Store(tmp_path / "models", catalog)


def refused(store: Store, pair: CatalogPair, data: bytes, total: int | None = None) -> TransferError:
    part = put_part(store, pair.target, data)
    store.record_of(part).write_bytes(b"{}")
    with pytest.raises(TransferError) as caught:
        store.install(pair.target, part, sha256(data), "", total or len(data), None)
    error = caught.value
    assert error.sentence.endswith(".")
    assert error.remedy.endswith(".")
    assert not part.exists()
    assert not store.record_of(part).exists()
    assert not store.place(pair.target).exists()
    assert store.installed() == ()
    (kept,) = store.quarantined()
    assert Path(kept.path).read_bytes() == data
    assert kept.fault == error.fault
    assert kept.sentence == error.sentence
    assert (kept.repo, kept.file) == (pair.target.repo, pair.target.file)
    assert kept.at is not None
    return error


def test_an_empty_store_needs_no_folder(store: Store, pair: CatalogPair) -> None:
    assert store.installed() == ()
    assert store.find(pair.target) is None
    assert store.pair_paths(pair) is None
    assert store.quarantined() == ()
    assert store.check() == ()
    assert not store.folder.exists()


def test_the_usual_folder_and_the_chosen_one(tmp_path: Path) -> None:
    assert Store.chosen(Settings()).folder.name == "models"
    assert Store.chosen(Settings(models_folder=str(tmp_path / "x"))).folder == tmp_path / "x"


@pytest.mark.parametrize("name", FOLDERS)
def test_a_pair_is_installed_in_folders_of_any_name(tmp_path: Path, catalog: Catalog, name: str) -> None:
    # Row 44 of the field problems.
    pair = next(pair for _size, pair in catalog.pairs())
    store = Store(tmp_path / name, catalog)
    target, drafter = install_pair(store, pair)
    assert target.path == tmp_path / name / "tester" / "target" / "e2b-target.gguf"
    assert target.path.read_bytes() == target_bytes()
    assert store.pair_paths(pair) == (target.path, drafter.path)
    again = Store(tmp_path / name, catalog)
    assert again.installed() == (target, drafter)
    assert again.find(pair.target) == target
    assert [state for _entry, state in again.check()] == [FileState.INSTALLED] * 2


def test_what_is_kept_of_an_installed_file(store: Store, pair: CatalogPair) -> None:
    entry = install(store, pair.target, target_bytes(), commit="a" * 40)
    assert entry.role == "target"
    assert entry.sha256 == pair.target.pin
    assert (entry.repo, entry.file, entry.commit) == (pair.target.repo, pair.target.file, "a" * 40)
    assert entry.licence == "Apache-2.0"
    assert (entry.architecture, entry.name, entry.quantisation) == ("gemma4", "Gemma 4 E2B It Qat", "Q4_0")
    assert entry.verified_at is not None
    assert entry.verified_at.utcoffset() is not None
    assert not entry.in_place
    assert list(store.place(pair.target).parent.iterdir()) == [entry.path]  # no part, no record


def test_the_real_pair_is_installed(demo_pair: tuple[Path, Path], tmp_path: Path) -> None:
    store = Store(tmp_path)
    data = demo_pair[0].read_bytes()
    entry = install(store, pair_of().target, data)
    assert entry.architecture == "gemma4"
    assert entry.bytes == len(data)


def test_a_file_system_of_two_second_ticks_changes_nothing(store: Store, pair: CatalogPair) -> None:
    entry = install(store, pair.target, target_bytes())
    assert entry.mtime_ns % 2_000_000_000 == 0


def test_half_a_pair_is_no_pair(store: Store, pair: CatalogPair) -> None:
    # Row 57 of the field problems: a pair is looked at as one.
    install(store, pair.target, target_bytes())
    assert store.pair_paths(pair) is None
    put_part(store, pair.drafter, drafter_bytes()[:100])
    assert store.pair_paths(pair) is None
    assert store.part_bytes(pair.drafter) == 100


@pytest.mark.parametrize("total", [len(target_bytes()) + 1, len(target_bytes()) - 1])
def test_too_short_and_too_long(store: Store, pair: CatalogPair, total: int) -> None:
    error = refused(store, pair, target_bytes(), total)
    assert error.fault == "wrong-size"
    assert f"{len(target_bytes()):,}" in error.sentence
    assert f"{total:,}" in error.sentence


def test_the_page_of_a_captive_portal_is_named(store: Store, pair: CatalogPair) -> None:
    # Row 8 of the field problems, behind the download's own checks.
    error = refused(store, pair, b"<!DOCTYPE html><html>Please sign in to the hotel's network</html>")
    assert error.fault == "wrong-header"
    assert "web page" in error.sentence


@pytest.mark.parametrize("data", [drafter_bytes(), llama_bytes(), target_bytes()[:-1], b"\0" * 5000, b"GGUF"])
def test_a_wrong_header(store: Store, pair: CatalogPair, data: bytes) -> None:
    error = refused(store, pair, data)
    assert error.fault == "wrong-header"
    assert error.remedy == "Start its download again, or choose the other source of this model."


def test_a_drafter_of_another_architecture_is_no_drafter(store: Store, pair: CatalogPair) -> None:
    with pytest.raises(TransferError, match="llama"):
        install(store, pair.drafter, llama_bytes())


def test_a_file_is_found_by_its_hash_and_one_of_the_hub_by_its_name(tmp_path: Path) -> None:
    pair = pair_of(hub_drafter=True)
    store = Store(tmp_path, catalog_of(pair))
    _target, drafter = install_pair(store, pair)
    assert store.find(pair.drafter) == drafter
    assert drafter.sha256 == sha256(drafter_bytes())


def test_one_that_changed_or_went_is_not_found_but_stays_in_the_list(store: Store, pair: CatalogPair) -> None:
    target, drafter = install_pair(store, pair)
    target.path.touch()
    drafter.path.unlink()
    assert store.find(pair.target) is None
    assert store.find(pair.drafter) is None
    assert [state for _entry, state in store.check()] == [FileState.CHANGED, FileState.MISSING]
    assert store.entry(pair.target) == target
    assert store.pair_paths(pair) is None


@pytest.mark.parametrize("what", ["longer", "shorter", "folder", "header"])
def test_what_the_cheap_check_sees(store: Store, pair: CatalogPair, what: str) -> None:
    entry = install(store, pair.target, target_bytes())
    if what == "longer":
        entry.path.write_bytes(target_bytes() + b"x")
    elif what == "shorter":
        os.truncate(entry.path, 100)
    elif what == "folder":
        entry.path.unlink()
        entry.path.mkdir()
    else:
        flip(entry.path, at=0)  # same size, same time: only the header tells
    assert store.check() == ((entry, FileState.CHANGED),)


def test_installing_over_something_else_sets_that_aside(store: Store, pair: CatalogPair) -> None:
    place = store.place(pair.target)
    place.parent.mkdir(parents=True)
    place.write_bytes(b"somebody's notes")
    entry = install(store, pair.target, target_bytes())
    assert entry.path.read_bytes() == target_bytes()
    (kept,) = store.quarantined()
    assert Path(kept.path).read_bytes() == b"somebody's notes"


def test_installing_twice_keeps_one(store: Store, pair: CatalogPair) -> None:
    install(store, pair.target, target_bytes())
    entry = install(store, pair.target, target_bytes())
    assert store.installed() == (entry,)
    assert store.quarantined() == ()


def test_remove(store: Store, pair: CatalogPair) -> None:
    target, drafter = install_pair(store, pair)
    store.remove(target)
    assert not target.path.exists()
    assert not target.path.parent.exists()
    assert drafter.path.exists()
    assert store.installed() == (drafter,)
    store.remove(drafter)
    assert sorted(path.name for path in store.folder.iterdir()) == [".tandem.lock", "tandem-models.json"]


def test_remove_a_part(store: Store, pair: CatalogPair) -> None:
    part = put_part(store, pair.target, b"x")
    store.record_of(part).write_bytes(b"{}")
    store.remove_part(pair.target)
    assert not part.parent.exists()
    store.remove_part(pair.target)  # nothing there: nothing wrong
    assert not part.parent.exists()


def test_a_part_that_is_downloaded_by_somebody_is_not_removed(store: Store, pair: CatalogPair) -> None:
    part = put_part(store, pair.target, b"x")
    lock = PartLock(part)
    lock.acquire()
    with pytest.raises(TransferError) as caught:
        store.remove_part(pair.target)
    assert caught.value.fault == "busy"
    assert part.exists()
    store.remove_part(pair.target, held=True)
    assert not part.exists()
    assert part.with_name(part.name + ".lock").exists()  # its holder's
    lock.release()
    store.remove_part(pair.target)


def test_quarantine_goes_when_it_is_told_to(store: Store, pair: CatalogPair) -> None:
    refused(store, pair, b"<html>")
    (kept,) = store.quarantined()
    assert Path(kept.path).parent.name == "quarantine"
    assert "wrong-header" in Path(kept.path).name
    store.remove_quarantined(kept)
    assert store.quarantined() == ()
    assert not Path(kept.path).parent.exists()


def test_only_what_is_in_quarantine_is_removed_from_it(store: Store, pair: CatalogPair, tmp_path: Path) -> None:
    refused(store, pair, b"<html>")
    other = tmp_path / "mine.gguf"
    other.write_bytes(b"mine")
    (kept,) = store.quarantined()
    store.remove_quarantined(msgspec.structs.replace(kept, path=str(other)))
    assert other.exists()


@pytest.mark.parametrize("why", [None, b"", b"[]", b"{not json", b"\xff\xfe"])
def test_a_file_in_quarantine_without_a_reason_is_listed_all_the_same(
    store: Store, pair: CatalogPair, why: bytes | None
) -> None:
    refused(store, pair, b"<html>")
    (kept,) = store.quarantined()
    note = Path(kept.path).with_name(Path(kept.path).name + ".why.json")
    if why is None:
        note.unlink()
    else:
        note.write_bytes(why)
    (found,) = store.quarantined()
    assert (found.path, found.bytes) == (kept.path, kept.bytes)


def test_all_of_a_file_is_on_the_disk_before_it_gets_its_name(
    store: Store, pair: CatalogPair, monkeypatch: pytest.MonkeyPatch
) -> None:
    done: list[tuple[str, int]] = []
    real_fsync, real_replace = os.fsync, Path.replace

    def fsync(descriptor: int) -> None:
        real_fsync(descriptor)
        done.append(("flushed", os.fstat(descriptor).st_ino))

    def replace(path: Path, target: Path) -> Path:
        done.append(("named", path.stat().st_ino))
        return real_replace(path, target)

    monkeypatch.setattr(os, "fsync", fsync)
    monkeypatch.setattr(Path, "replace", replace)
    path = install(store, pair.target, target_bytes()).path
    named = done.index(("named", path.stat().st_ino))
    assert ("flushed", path.stat().st_ino) in done[:named]
    assert ("flushed", store.index.path.stat().st_ino) in done[:named]
    if sys.platform != "win32":
        assert ("flushed", path.parent.stat().st_ino) in done[named:]


def test_a_process_killed_before_the_file_got_its_name_loses_nothing(store: Store, pair: CatalogPair) -> None:
    entry = install(store, pair.target, target_bytes())
    entry.path.rename(store.part(pair.target))  # as it was between the two
    again = Store(store.folder, store.catalog)
    assert again.find(pair.target) is None
    install(again, pair.target, target_bytes())
    assert again.find(pair.target) is not None
    assert len(again.installed()) == 1


@pytest.mark.skipif(sys.platform == "win32", reason="folders are protected in other ways there")
def test_a_name_that_cannot_be_given_leaves_the_part_and_no_entry(
    store: Store, pair: CatalogPair, monkeypatch: pytest.MonkeyPatch
) -> None:
    part = put_part(store, pair.target, target_bytes())

    def full(_self: Path, _target: Path) -> Path:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "replace", full)
    with pytest.raises(TransferError) as caught:
        store.install(pair.target, part, sha256(target_bytes()), "", len(target_bytes()), None)
    assert caught.value.fault == "disk-full"
    assert part.read_bytes() == target_bytes()
    assert store.installed() == ()


def test_threads_and_stores_of_one_folder_lose_no_entry(tmp_path: Path, catalog: Catalog, pair: CatalogPair) -> None:
    template = install(Store(tmp_path, catalog), pair.target, target_bytes())
    threads = 8
    begin = threading.Barrier(threads)
    shared = Store(tmp_path, catalog)

    def add(number: int) -> None:
        store = shared if number % 2 else Store(tmp_path, catalog)
        begin.wait(timeout=60)
        for turn in range(5):
            path, digest = tmp_path / f"{number}-{turn}.gguf", f"{number * 5 + turn:064x}"
            store.keep(msgspec.structs.replace(template, path=path, sha256=digest))

    workers = [threading.Thread(target=add, args=(number,)) for number in range(threads)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(timeout=60)
    assert len(Store(tmp_path, catalog).installed()) == 1 + threads * 5
    assert len(shared.installed()) == 1 + threads * 5
