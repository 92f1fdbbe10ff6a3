"""Files that are on the disk already: recognised, and taken over by copying, linking or in place."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Literal

import pytest

from support.modelfiles import (
    catalog_of,
    drafter_bytes,
    install,
    install_pair,
    llama_bytes,
    pair_of,
    put_part,
    sha256,
    target_bytes,
)
from tandem.errors import ModelError
from tandem.models import imports
from tandem.models.catalog import CatalogPair
from tandem.models.errors import TransferError
from tandem.models.imports import How, look, take
from tandem.models.overview import overview
from tandem.models.progress import JobProgress
from tandem.models.state import FileState
from tandem.models.stop import Stop, Stopped
from tandem.models.store import Store
from tandem.models.verify import verify

WAYS: list[How] = ["copy", "link", "in-place"]
NAMES = ["a.gguf", "田中.gguf", "모델 파일.gguf", "Загрузки.GGUF", "🦙.gguf", "sha256-0123", "no suffix"]


@pytest.fixture
def pair() -> CatalogPair:
    return pair_of()


@pytest.fixture
def store(tmp_path: Path, pair: CatalogPair) -> Store:
    return Store(tmp_path / "models", catalog_of(pair))


def source(folder: Path, data: bytes, name: str = "a.gguf") -> Path:
    path = folder / "somewhere" / name
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(data)
    return path


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("how", WAYS)
def test_a_file_of_the_catalog_is_known_by_its_hash_whatever_its_name(
    store: Store, pair: CatalogPair, tmp_path: Path, name: str, how: How
) -> None:
    # Rows 10 and 44 of the field problems.
    path = source(tmp_path, target_bytes(), name)
    found = look(path, store=store)
    assert (found.key, found.file, found.role) == ("e2b", pair.target, "target")
    assert found.sha256 == pair.target.pin
    assert found.licence == "Apache-2.0"
    assert found.notes == ()
    assert not found.installed
    entry = take(store, found, how)
    assert path.read_bytes() == target_bytes()  # it is never touched
    assert entry.path == (path if how == "in-place" else store.place(pair.target))
    assert entry.path.read_bytes() == target_bytes()
    assert entry.in_place is (how == "in-place")
    assert store.find(pair.target) == entry
    if how == "link":
        assert entry.path.samefile(path)
    assert not [
        one for one in store.folder.rglob("*") if one.name.endswith((".copy", ".lock")) and one.name != ".tandem.lock"
    ]
    assert look(path, store=store).installed
    assert [one.good for one in verify(store)] == [True]


def test_both_files_make_the_pair_installed(store: Store, pair: CatalogPair, tmp_path: Path) -> None:
    for data, name in ((target_bytes(), "x"), (drafter_bytes(), "y")):
        take(store, look(source(tmp_path, data, name), store=store), "in-place")
    assert store.pair_paths(pair) == (tmp_path / "somewhere" / "x", tmp_path / "somewhere" / "y")
    assert overview(store).pairs[0].state is FileState.INSTALLED


def test_a_file_whose_hash_the_hub_told_is_known_again(tmp_path: Path) -> None:
    pair = pair_of(hub_drafter=True)
    store = Store(tmp_path / "models", catalog_of(pair))
    path = source(tmp_path, drafter_bytes())
    assert look(path, store=store).key is None
    install(store, pair.drafter, drafter_bytes()).path.unlink()
    found = look(path, store=store)
    assert found.file == pair.drafter
    take(store, found, "copy")
    assert store.find(pair.drafter) is not None


@pytest.mark.parametrize(
    ("data", "role"), [(target_bytes("e4b"), "target"), (drafter_bytes("e4b"), "drafter"), (llama_bytes(), "model")]
)
def test_others_are_known_by_their_header(store: Store, tmp_path: Path, data: bytes, role: str) -> None:
    found = look(source(tmp_path, data), store=store)
    assert (found.role, found.key, found.file) == (role, None, None)
    assert imports.NOTE_LICENCE in found.notes
    assert (imports.NOTE_OTHER in found.notes) is (role == "model")
    entry = take(store, found, "copy")
    assert entry.role == role
    assert entry.path == store.folder / "imported" / "a.gguf"
    assert entry.licence is None
    assert [view.role for view in overview(store).imported] == [role]


def test_a_licence_that_the_file_names_and_no_qat_are_said(store: Store, tmp_path: Path) -> None:
    found = look(source(tmp_path, target_bytes(general__name="Gemma 4", general__license="gemma")), store=store)
    assert found.licence == "gemma"
    assert found.notes == (imports.NOTE_NOT_QAT,)
    assert look(source(tmp_path, target_bytes(general__license="  ")), store=store).licence is None


@pytest.mark.parametrize(
    ("data", "word"),
    [(b"", "empty"), (b"<html>", "web page"), (target_bytes()[:-40], "incomplete"), (b"PK\3\4", "GGUF")],
)
def test_what_is_no_model_is_refused_with_a_sentence(store: Store, tmp_path: Path, data: bytes, word: str) -> None:
    with pytest.raises(ModelError, match=word):
        look(source(tmp_path, data), store=store)
    with pytest.raises(ModelError, match="no file"):
        look(tmp_path / "nothing.gguf", store=store)


def test_a_file_that_is_there_already_stays_as_it_is(store: Store, pair: CatalogPair, tmp_path: Path) -> None:
    entry = install(store, pair.target, target_bytes())
    found = look(source(tmp_path, target_bytes()), store=store)
    assert found.installed
    assert take(store, found, "copy") == entry
    assert len(store.installed()) == 1


def test_one_whose_file_went_or_changed_is_put_back(store: Store, pair: CatalogPair, tmp_path: Path) -> None:
    target, _drafter = install_pair(store, pair)
    path = source(tmp_path, target_bytes())
    target.path.write_bytes(b"spoilt")
    take(store, look(path, store=store), "copy")
    assert store.pair_paths(pair) is not None
    assert [Path(one.path).read_bytes() for one in store.quarantined()] == [b"spoilt"]
    target.path.unlink()
    take(store, look(path, store=store), "link")
    assert store.pair_paths(pair) is not None
    assert len(store.installed()) == 2


def test_two_files_of_one_name_get_two(store: Store, tmp_path: Path) -> None:
    first = take(store, look(source(tmp_path, llama_bytes(64)), store=store), "copy")
    second = take(store, look(source(tmp_path, llama_bytes(65)), store=store), "copy")
    assert [first.path.name, second.path.name] == ["a.gguf", "a-2.gguf"]


def test_a_blob_gets_a_name_that_says_what_it_is(store: Store, tmp_path: Path) -> None:
    entry = take(store, look(source(tmp_path, llama_bytes(), "sha256-77"), store=store), "copy")
    assert entry.path.name.startswith("Some-Llama-")
    assert entry.path.suffix == ".gguf"


def test_a_file_in_the_model_folder_is_taken_where_it_is(store: Store) -> None:
    path = store.folder / "mine" / "x.gguf"
    path.parent.mkdir(parents=True)
    path.write_bytes(llama_bytes())
    entry = take(store, look(path, store=store), "copy")
    assert entry.path == path
    assert entry.in_place  # it was not Tandem that put it there
    assert [one.name for one in store.folder.rglob("*.gguf")] == ["x.gguf"]


def test_what_is_used_in_place_is_only_forgotten(store: Store, tmp_path: Path) -> None:
    path = source(tmp_path, target_bytes())
    entry = take(store, look(path, store=store), "in-place")
    store.remove(entry)
    assert path.exists()
    assert store.installed() == ()


def test_what_was_set_aside_can_be_used_in_place_and_forgotten(store: Store, pair: CatalogPair) -> None:
    with pytest.raises(TransferError):
        install(store, pair.target, llama_bytes())
    (kept,) = store.quarantined()
    entry = take(store, look(Path(kept.path), store=store), "in-place")
    assert entry.in_place
    store.remove(entry)
    assert Path(kept.path).exists()


def test_a_link_of_the_hub_cache_is_followed_or_kept(store: Store, pair: CatalogPair, tmp_path: Path) -> None:
    blob = source(tmp_path, target_bytes(), sha256(target_bytes()))
    link = blob.with_name("name.gguf")
    try:
        link.symlink_to(blob)
    except OSError:
        pytest.skip("no symbolic links here")
    linked = take(store, look(link, store=store), "link")
    assert not linked.path.is_symlink()
    assert linked.path.samefile(blob)
    store.remove(linked)
    assert blob.exists()
    assert take(store, look(link, store=store), "in-place").path == link
    assert store.find(pair.target) is not None


def test_a_file_that_changed_after_it_was_looked_at_is_refused(store: Store, tmp_path: Path) -> None:
    for how in WAYS:
        path = source(tmp_path, target_bytes())
        found = look(path, store=store)
        path.write_bytes(target_bytes("e4b"))
        os.utime(path, (1_000_000_000, 1_000_000_000))
        with pytest.raises(TransferError) as caught:
            take(store, found, how)
        assert caught.value.fault == "wrong-hash"
        path.unlink()
        with pytest.raises(TransferError):
            take(store, found, how)
        assert store.installed() == ()


def test_looking_can_be_stopped(store: Store, tmp_path: Path) -> None:
    stop = Stop()
    stop.set("cancel")
    with pytest.raises(Stopped):
        look(source(tmp_path, target_bytes()), stop, store=store)


def test_progress_of_looking_and_copying(store: Store, tmp_path: Path) -> None:
    told: list[JobProgress] = []
    found = look(source(tmp_path, target_bytes()), report=told.append, store=store)
    assert {progress.key for progress in told} == {"import"}
    assert told[-1].done == len(target_bytes()) or told[-1].total == len(target_bytes())
    told.clear()
    take(store, found, "copy", report=told.append)
    assert told[-1].done == told[-1].total == len(target_bytes())
    assert told[-1].files[0].state is FileState.INSTALLED


def test_a_part_of_the_same_file_is_left_alone(store: Store, pair: CatalogPair, tmp_path: Path) -> None:
    part = put_part(store, pair.target, target_bytes()[:99])
    take(store, look(source(tmp_path, target_bytes()), store=store), "copy")
    assert part.read_bytes() == target_bytes()[:99]
    assert overview(store).pairs[0].files[0].state is FileState.INSTALLED


@pytest.mark.skipif(sys.platform == "win32", reason="names are Unicode there")
def test_a_name_that_is_no_unicode(store: Store, tmp_path: Path) -> None:
    path = tmp_path / os.fsdecode(b"caf\xe9.gguf")
    try:
        path.write_bytes(llama_bytes())
    except OSError:
        pytest.skip("this file system takes Unicode only")
    entry = take(store, look(path, store=store), "in-place")
    assert Store(store.folder, store.catalog).installed() == (entry,)
    assert overview(store).imported[0].name.isprintable()
    copied = take(store, look(path, store=store), "copy")
    assert copied == entry  # it is there already


# --- the last news says how it is


def test_what_was_looked_at_is_not_being_checked_any_longer(store: Store, tmp_path: Path) -> None:
    told: list[JobProgress] = []
    path = source(tmp_path, target_bytes())
    found = look(path, report=told.append, store=store)
    assert told[-1].files[0].state is FileState.ABSENT
    take(store, found, "copy", report=told.append)
    assert told[-1].files[0].state is FileState.INSTALLED
    look(path, report=told.append, store=store)
    assert told[-1].files[0].state is FileState.INSTALLED
    assert not told[-1].running


@pytest.mark.parametrize(
    ("how", "why", "state"),
    [
        ("copy", "pause", FileState.PAUSED),
        ("copy", "cancel", FileState.ABSENT),
    ],
)
def test_a_taking_over_that_was_stopped_says_what_is_here(
    store: Store, tmp_path: Path, how: How, why: Literal["pause", "cancel"], state: FileState
) -> None:
    told: list[JobProgress] = []
    found = look(source(tmp_path, target_bytes()), store=store)
    stop = Stop()
    stop.set(why)
    with pytest.raises(Stopped):
        take(store, found, how, stop, told.append)
    assert told[-1].files[0].state is state


def test_a_stopped_look_and_a_failed_taking_over_end(store: Store, tmp_path: Path) -> None:
    told: list[JobProgress] = []
    path = source(tmp_path, target_bytes())
    stop = Stop()
    stop.set("cancel")
    with pytest.raises(Stopped):
        look(path, stop, told.append)
    assert told[-1].files[0].state is FileState.ABSENT
    found = look(path, store=store)
    path.write_bytes(llama_bytes())
    with pytest.raises(TransferError):
        take(store, found, "copy", report=told.append)
    assert told[-1].files[0].state is FileState.FAILED
