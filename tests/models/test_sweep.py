"""What a killed process has left: taken away where it is Tandem's and nobody holds it, and nothing else."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest
from filelock import FileLock

from support.modelfiles import catalog_of, install_pair, llama_bytes, pair_of, put_part, target_bytes
from tandem.models.catalog import CatalogPair
from tandem.models.locks import PartLock
from tandem.models.store import Store

DAY_S = 86_400.0


@pytest.fixture
def pair() -> CatalogPair:
    return pair_of()


@pytest.fixture
def store(tmp_path: Path, pair: CatalogPair) -> Store:
    store = Store(tmp_path / "모델", catalog_of(pair))
    (store.folder / "imported").mkdir(parents=True)
    return store


def put(path: Path, days: float = 0.0) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"left")
    when = time.time() - days * DAY_S
    os.utime(path, (when, when))
    return path


def test_an_unfinished_write_goes_after_an_hour(store: Store, pair: CatalogPair) -> None:
    old = [
        put(store.folder / ".tandem-abc.part", 1),
        put(store.place(pair.target).with_name(".tandem-x.part"), 1),
        put(store.folder / "quarantine" / ".tandem-y.part", 1),
    ]
    young = put(store.folder / ".tandem-new.part")
    store.check()
    assert [path.exists() for path in old] == [False] * 3
    assert young.exists()


@pytest.mark.parametrize("ending", [".json", ".lock"])
def test_what_is_left_of_a_part_that_is_gone(store: Store, pair: CatalogPair, ending: str) -> None:
    part = store.part(pair.target)
    left = put(part.with_name(part.name + ending))
    store.check()
    assert not left.exists()
    assert list(part.parent.iterdir()) == []


def test_what_belongs_to_a_part_stays(store: Store, pair: CatalogPair) -> None:
    part = put_part(store, pair.target, target_bytes()[:100])
    record = put(store.record_of(part))
    store.check()
    assert part.exists()
    assert record.exists()


def test_what_somebody_holds_stays(store: Store, pair: CatalogPair) -> None:
    lock = PartLock(store.part(pair.target))
    lock.acquire()
    record = put(store.record_of(store.part(pair.target)))
    copy = put(store.folder / "imported" / "a.gguf.copy", 30)
    with FileLock(copy.with_name(copy.name + ".lock")):
        store.check()
        assert record.exists()
        assert copy.exists()
    lock.release()
    store.check()
    assert not record.exists()
    assert not copy.exists()


def test_a_copy_goes_when_nobody_went_on_with_it_for_a_week(store: Store) -> None:
    old, young = (put(store.folder / "imported" / f"{days}.gguf.copy", days) for days in (8, 6))
    lock = put(store.folder / "imported" / "gone.gguf.copy.lock")
    store.check()
    assert not old.exists()
    assert not lock.exists()
    assert young.exists()


@pytest.mark.parametrize(
    "name", ["somebody/some/x.gguf.part.json", "somebody/x.part.lock", "x.gguf.copy", "somebody/some/x.copy.lock"]
)
def test_what_another_program_may_have_left_stays(store: Store, name: str) -> None:
    path = put(store.folder / name, 400)
    store.check()
    assert path.exists()


def test_what_is_installed_stays(store: Store, pair: CatalogPair) -> None:
    install_pair(store, pair)
    put(store.folder / "imported" / "m.gguf", 400).write_bytes(llama_bytes())
    before = sorted(store.folder.rglob("*"))
    store.check()
    assert sorted(store.folder.rglob("*")) == before
