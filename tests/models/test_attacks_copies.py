import os
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from support.fetching import Fetching, fetching
from support.hub import FakeHub
from support.modelfiles import (
    catalog_of,
    drafter_bytes,
    install_pair,
    large_bytes,
    pair_of,
    put_part,
    target_bytes,
)
from tandem.models import move as moving
from tandem.models.catalog import CatalogPair
from tandem.models.copying import copy_file
from tandem.models.errors import TransferError
from tandem.models.imports import How, look, take
from tandem.models.locks import Lock, PartLock
from tandem.models.move import move
from tandem.models.progress import JobProgress
from tandem.models.records import Installed
from tandem.models.store import Store

needs_pipes = pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no pipes in folders")


@pytest.fixture
def pair() -> CatalogPair:
    return pair_of()


@pytest.fixture
def store(tmp_path: Path, pair: CatalogPair) -> Store:
    return Store(tmp_path / "models", catalog_of(pair))


def model(path: Path, size: int = 1 << 20) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(large_bytes(size))
    return path


def imported(store: Store, path: Path, how: How = "copy") -> Installed:
    return take(store, look(path, store=store), how)


# --- copies


@pytest.mark.parametrize("kind", ["hard link", "link", "dead link", pytest.param("pipe", marks=needs_pipes)])
def test_a_copy_is_never_written_through_another_name_of_a_file(store: Store, tmp_path: Path, kind: str) -> None:
    theirs, mine = model(tmp_path / "a" / "m.gguf"), model(tmp_path / "b" / "m.gguf", 2 << 20)
    before = theirs.read_bytes()
    left = store.folder / "imported" / "m.gguf.copy"  # such as an import as a link leaves when it is killed
    left.parent.mkdir(parents=True)
    make: dict[str, Callable[[], object]] = {
        "hard link": lambda: left.hardlink_to(theirs),
        "link": lambda: left.symlink_to(theirs),
        "dead link": lambda: left.symlink_to(tmp_path / "new"),
        "pipe": lambda: os.mkfifo(left),
    }
    make[kind]()
    entry = imported(store, mine)
    assert theirs.read_bytes() == before
    assert entry.path.read_bytes() == mine.read_bytes()
    assert entry.path.stat().st_nlink == 1
    assert not entry.path.is_symlink()
    assert not (tmp_path / "new").exists()


@needs_pipes
def test_a_pipe_is_not_copied(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "x.gguf")
    with pytest.raises(TransferError, match=r"x\.gguf"):
        copy_file(tmp_path / "x.gguf", tmp_path / "y.gguf")
    assert not (tmp_path / "y.gguf").exists()


def test_a_link_waits_for_nobodys_copy(store: Store, tmp_path: Path) -> None:
    mine = model(tmp_path / "m.gguf")
    copy = store.folder / "imported" / "m.gguf.copy"
    copy.parent.mkdir(parents=True)
    copy.write_bytes(b"half of it")
    with Lock(copy), pytest.raises(TransferError) as caught:
        imported(store, mine, "link")
    assert caught.value.fault == "busy"
    assert copy.read_bytes() == b"half of it"


# --- imports


@pytest.mark.parametrize("ending", [".part", ".copy"])
@pytest.mark.parametrize("how", ["copy", "link", "in-place"])
def test_what_is_not_finished_in_the_folder_is_not_imported(
    store: Store, pair: CatalogPair, ending: str, how: How
) -> None:
    place = store.place(pair.target)
    place.parent.mkdir(parents=True)
    unfinished = place.with_name(place.name + ending)
    unfinished.write_bytes(target_bytes())
    with pytest.raises(TransferError) as caught:
        imported(store, unfinished, how)
    assert caught.value.fault == "busy"
    assert not store.installed()


def test_a_file_in_the_folder_is_ours_whatever_way_leads_there(store: Store, tmp_path: Path) -> None:
    path = model(store.folder / "imported" / "m.gguf")
    (tmp_path / "way").symlink_to(store.folder)
    entry = imported(store, tmp_path / "way" / "imported" / "m.gguf", "in-place")
    assert (entry.path, entry.in_place) == (path, False)
    (kept,) = move(store, tmp_path / "new").installed()
    assert kept.path.exists()


@pytest.mark.parametrize("how", ["copy", "link"])
@pytest.mark.parametrize("stem", ["x" * 250, "모" * 80])
def test_a_name_too_long_for_what_is_added_to_it_is_cut(store: Store, tmp_path: Path, how: How, stem: str) -> None:
    mine = model(tmp_path / f"{stem}.gguf")
    entry = imported(store, mine, how)
    assert entry.path.read_bytes() == mine.read_bytes()
    assert stem.startswith(entry.path.stem)
    aside = store.quarantine(entry.path, TransferError("wrong-hash", "No.", "Yes."))
    assert Path(aside.path).exists()


# --- parts


@pytest.fixture
def server() -> FakeHub:
    return FakeHub()


@pytest.fixture
def job(server: FakeHub, tmp_path: Path) -> Fetching:
    return fetching(server, tmp_path / "hub-models")


@pytest.mark.parametrize("which", ["part", "record"])
@pytest.mark.parametrize("kind", ["link", "dead link", "loop", "folder", pytest.param("pipe", marks=needs_pipes)])
def test_a_download_is_never_written_through_a_link(
    server: FakeHub, job: Fetching, tmp_path: Path, which: str, kind: str
) -> None:
    theirs = tmp_path / "theirs"
    theirs.write_bytes(b"precious")
    path = job.part() if which == "part" else job.record()
    path.parent.mkdir(parents=True)
    make: dict[str, Callable[[], object]] = {
        "link": lambda: path.symlink_to(theirs),
        "dead link": lambda: path.symlink_to(tmp_path / "new"),
        "loop": lambda: path.symlink_to(path),
        "folder": path.mkdir,
        "pipe": lambda: os.mkfifo(path),
    }
    make[kind]()
    with server:
        ended: JobProgress = job.run()
        assert ended.fault == "disk"
        assert path.name in ended.sentence
        assert theirs.read_bytes() == b"precious"
        assert not (tmp_path / "new").exists()
        if kind == "folder":
            path.rmdir()
        else:
            path.unlink()
        job.run()
    job.check_installed()


# --- moves


@pytest.fixture
def full(store: Store, pair: CatalogPair) -> Store:
    install_pair(store, pair)
    return store


def whole(store: Store, pair: CatalogPair) -> bool:
    found = store.pair_paths(pair)
    return found is not None and [path.read_bytes() for path in found] == [target_bytes(), drafter_bytes()]


def test_another_name_of_the_same_folder_is_chosen_and_nothing_is_cleared(
    full: Store, pair: CatalogPair, tmp_path: Path
) -> None:
    (tmp_path / "way").symlink_to(full.folder)
    chosen: list[Path] = []
    new = move(full, tmp_path / "way", chosen=chosen.append)
    assert whole(new, pair)
    assert whole(full, pair)
    assert chosen == [tmp_path / "way"]


def test_a_folder_within_by_another_name_is_refused(full: Store, pair: CatalogPair, tmp_path: Path) -> None:
    (full.folder / "within").mkdir()
    (tmp_path / "way").symlink_to(full.folder / "within")
    with pytest.raises(TransferError, match="lies in the model folder"):
        move(full, tmp_path / "way")
    assert whole(full, pair)


def test_a_folder_that_leads_back_by_a_link_is_refused(full: Store, pair: CatalogPair, tmp_path: Path) -> None:
    (tmp_path / "new").mkdir()
    (tmp_path / "new" / "tester").symlink_to(full.folder / "tester")
    with pytest.raises(TransferError, match="by another name"):
        move(full, tmp_path / "new")
    assert whole(full, pair)


def test_a_link_to_the_old_file_makes_way_for_the_file(full: Store, pair: CatalogPair, tmp_path: Path) -> None:
    link = tmp_path / "new" / pair.target.repo / pair.target.file
    link.parent.mkdir(parents=True)
    link.symlink_to(full.place(pair.target))
    new = move(full, tmp_path / "new")
    assert whole(new, pair)
    assert not link.is_symlink()


def test_a_model_that_is_a_link_arrives_as_a_file(full: Store, pair: CatalogPair, tmp_path: Path) -> None:
    place, blob = full.place(pair.target), tmp_path / "blob"
    place.rename(blob)
    place.symlink_to(os.path.relpath(blob, place.parent))
    new = move(full, tmp_path / "a" / "b" / "c")
    assert whole(new, pair)
    assert blob.read_bytes() == target_bytes()


def test_a_download_that_begins_while_files_are_moved_ends_the_move(
    full: Store, pair: CatalogPair, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    late = msgspec.structs.replace(pair.target, file="late.gguf")
    real, locks = moving._bring, list[PartLock]()

    def brought(*arguments: object) -> None:
        if not locks:
            locks.append(PartLock(put_part(full, late, b"some of it")))
            locks[0].acquire()
        real(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(moving, "_bring", brought)
    with pytest.raises(TransferError) as caught:
        move(full, tmp_path / "new")
    locks[0].release()
    assert caught.value.fault == "busy"
    assert whole(full, pair)
    assert full.part(late).read_bytes() == b"some of it"


def test_a_folder_that_cannot_be_is_refused(full: Store, pair: CatalogPair, tmp_path: Path) -> None:
    for bad in (tmp_path / ("x" * 300), tmp_path / "file" / "within"):
        (tmp_path / "file").write_bytes(b"")
        with pytest.raises(TransferError):
            move(full, bad)
        assert whole(full, pair)
