"""The list of installed files, damaged in every way; and disks that cannot be written to."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from support.modelfiles import catalog_of, drafter_bytes, install_pair, llama_bytes, pair_of, put_part, target_bytes
from tandem.models.catalog import CatalogPair
from tandem.models.errors import TransferError
from tandem.models.records import Installed, to_json
from tandem.models.state import FileState
from tandem.models.store import Store
from tandem.models.verify import verify

posix = pytest.mark.skipif(sys.platform == "win32", reason="folders are protected in other ways there")


@pytest.fixture
def pair() -> CatalogPair:
    return pair_of()


@pytest.fixture
def store(tmp_path: Path, pair: CatalogPair) -> Store:
    store = Store(tmp_path / "models", catalog_of(pair))
    install_pair(store, pair)
    return store


def again(store: Store) -> Store:
    return Store(store.folder, store.catalog)


def test_paths_in_it_are_those_in_the_folder(store: Store, tmp_path: Path) -> None:
    said = json.loads(store.index.path.read_text(encoding="utf-8"))
    assert [one["path"] for one in said["files"]] == [
        "tester/target/e2b-target.gguf",
        "tester/drafter/e2b-drafter.gguf",
    ]
    moved = store.folder.rename(tmp_path / "elsewhere")
    other = Store(moved, store.catalog)
    assert [state for _entry, state in other.check()] == [FileState.INSTALLED] * 2
    assert all(entry.path.is_relative_to(moved) for entry in other.installed())


@pytest.mark.parametrize(
    "damage",
    [b"", b"{", b"\0" * 500, b"[]", b'{"version": 1}', b'{"files": 3}', b"\xff\xfe\x00", b"[" * 100_000, b"null"],
)
def test_a_damaged_list_is_set_aside_and_made_again_as_not_verified(
    store: Store, pair: CatalogPair, damage: bytes
) -> None:
    store.index.path.write_bytes(damage)
    fresh = again(store)
    assert {state for _entry, state in fresh.check()} == {FileState.CHANGED}
    target = fresh.entry(pair.target)
    assert target is not None
    assert target.verified_at is None
    assert target.sha256 == pair.target.pin  # what it should be; that it is must be shown
    assert target.role == "target"
    (kept,) = store.folder.glob("tandem-models.damaged-*.json")
    assert kept.read_bytes() == damage
    assert again(store).installed() == fresh.installed()  # and is not made again each time
    assert [one.good for one in verify(fresh)] == [True, True]
    assert fresh.pair_paths(pair) is not None


def test_a_list_that_is_gone_is_made_again(store: Store, pair: CatalogPair) -> None:
    store.index.path.unlink()
    fresh = again(store)
    assert len(fresh.installed()) == 2
    store.place(pair.target).write_bytes(drafter_bytes())
    (target,) = [one for one in verify(fresh) if one.role == "target"]
    assert target.state is FileState.QUARANTINED


def test_of_what_lies_in_the_folder_only_models_are_listed(store: Store) -> None:
    store.index.path.unlink()
    (store.folder / "loose.gguf").write_bytes(llama_bytes())
    (store.folder / "notes.gguf").write_bytes(b"no model")
    (store.folder / "quarantine").mkdir()
    (store.folder / "quarantine" / "bad.gguf").write_bytes(target_bytes())
    (store.folder / "tester" / "target" / "e2b-target.gguf.part").write_bytes(target_bytes())
    fresh = again(store)
    assert sorted((entry.path.name, entry.role) for entry in fresh.installed()) == [
        ("e2b-drafter.gguf", "drafter"),
        ("e2b-target.gguf", "target"),
        ("loose.gguf", "model"),
    ]
    loose = next(entry for entry in fresh.installed() if entry.path.name == "loose.gguf")
    assert (loose.sha256, loose.verified_at, loose.licence) == ("", None, None)
    verify(fresh, [loose])
    now = next(entry for entry in fresh.installed() if entry.path.name == "loose.gguf")
    assert len(now.sha256) == 64
    assert fresh.state(now) is FileState.INSTALLED


def test_entries_that_are_not_understood_are_kept_in_a_copy(store: Store) -> None:
    said = json.loads(store.index.path.read_text(encoding="utf-8"))
    said["files"][0]["bytes"] = "many"
    said["files"] += [7, {"path": 3}]
    text = json.dumps(said)
    store.index.path.write_text(text, encoding="utf-8")
    fresh = again(store)
    assert [entry.role for entry in fresh.installed()] == ["drafter"]
    assert (store.folder / "tandem-models.not-understood.json").read_text(encoding="utf-8") == text


def test_a_newer_tandems_list_is_read_and_kept(store: Store) -> None:
    said = json.loads(store.index.path.read_text(encoding="utf-8"))
    said["version"] = 2
    said["files"][0]["colour"] = "blue"
    store.index.path.write_text(json.dumps(said), encoding="utf-8")
    fresh = again(store)
    assert len(fresh.installed()) == 2
    assert (store.folder / "tandem-models.not-understood.json").exists()


@pytest.mark.parametrize("path", ["../outside.gguf", "a/../../outside.gguf", ".."])
def test_a_list_that_was_tampered_with_removes_nothing_outside(store: Store, tmp_path: Path, path: str) -> None:
    outside = tmp_path / "outside.gguf"
    outside.write_bytes(target_bytes())
    said = json.loads(store.index.path.read_text(encoding="utf-8"))
    said["files"][0]["path"] = path
    store.index.path.write_text(json.dumps(said), encoding="utf-8")
    for entry in again(store).installed():
        again(store).remove(entry)
    assert outside.exists()


def test_a_file_outside_is_never_deleted_even_if_the_list_calls_it_ours(store: Store, tmp_path: Path) -> None:
    outside = tmp_path / "outside.gguf"
    outside.write_bytes(target_bytes())
    entry = msgspec.structs.replace(store.installed()[0], path=outside, in_place=False)
    store.keep(entry)
    store.remove(entry)
    assert outside.exists()
    assert outside not in [one.path for one in store.installed()]


@posix
def test_names_that_are_no_unicode_are_kept(store: Store) -> None:
    name = os.fsdecode(b"caf\xe9 \xff.gguf")
    path = store.folder / name
    try:
        path.write_bytes(target_bytes(general__name="odd"))
    except OSError:
        pytest.skip("this file system takes Unicode only")
    entry = msgspec.structs.replace(store.installed()[0], path=path, sha256="b" * 64)
    store.keep(entry)
    assert path in [one.path for one in again(store).installed()]
    assert b"\\udce9" in to_json(entry)


@posix
def test_a_list_that_cannot_be_read(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(_path: Path, _most: int) -> bytes:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr("tandem.models.index.read_beginning", broken)
    with pytest.raises(TransferError) as caught:
        again(store).installed()
    assert caught.value.fault == "disk"
    assert str(store.folder) in caught.value.sentence


@pytest.mark.parametrize(
    ("number", "fault", "word"),
    [
        (28, "disk-full", "full"),
        (122, "disk-full", "full"),
        (30, "disk", "may not write"),
        (13, "disk", "may not write"),
        (27, "disk", "as large"),
        (2, "disk", "not there"),
        (5, "disk", "Input/output"),
    ],
)
@posix
def test_a_list_that_cannot_be_written_is_said_and_stays(
    store: Store, pair: CatalogPair, monkeypatch: pytest.MonkeyPatch, number: int, fault: str, word: str
) -> None:
    before = store.installed()

    def broken(_path: Path, _data: bytes) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr("tandem.models.index.write_private", broken)
    part = put_part(store, pair.target, target_bytes())
    store.place(pair.target).unlink()
    with pytest.raises(TransferError) as caught:
        store.install(pair.target, part, str(pair.target.pin), "new", len(target_bytes()), None)
    assert caught.value.fault == fault
    assert word in caught.value.sentence
    assert part.exists()
    monkeypatch.undo()
    assert again(store).installed() == before


HOLD = """
import sys
from filelock import FileLock
lock = FileLock(sys.argv[1])
lock.acquire()
print("held", flush=True)
sys.stdin.read()
"""


def test_another_process_that_holds_the_list_for_long_is_said(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tandem.models.index._LOCK_SECONDS", 0.05)
    lock = str(store.folder / ".tandem.lock")
    with subprocess.Popen([sys.executable, "-c", HOLD, lock], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"held\n"
        with pytest.raises(TransferError) as caught:
            again(store).forget(store.installed()[0])
        assert caught.value.fault == "busy"
        assert len(again(store).installed()) == 2  # reading needs no lock
        holder.communicate()
    again(store).forget(store.installed()[0])
    assert len(store.installed()) == 1  # and is seen by a store that had read before


def test_records_go_through_json(store: Store) -> None:
    for entry in store.installed():
        assert isinstance(entry, Installed)
        assert json.loads(to_json(entry))["sha256"] == entry.sha256
