"""A model folder that was another program's: its files are listed, used, and never moved or deleted."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.modelfiles import catalog_of, install, install_pair, llama_bytes, pair_of, target_bytes
from tandem.models.catalog import CatalogPair
from tandem.models.errors import TransferError
from tandem.models.imports import How, look, take
from tandem.models.move import move
from tandem.models.state import FileState
from tandem.models.store import Store
from tandem.models.verify import verify


@pytest.fixture
def pair() -> CatalogPair:
    return pair_of()


@pytest.fixture
def store(tmp_path: Path, pair: CatalogPair) -> Store:
    return Store(tmp_path / "lm-studio", catalog_of(pair))


def put(path: Path, data: bytes) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    return path


@pytest.mark.parametrize("name", ["publisher/model/x.gguf", "model/x.gguf", "x.gguf", "tester/target/other.gguf"])
def test_a_file_of_somebody_elses_is_neither_moved_nor_deleted(store: Store, tmp_path: Path, name: str) -> None:
    path = put(store.folder / name, llama_bytes())
    (entry,) = store.installed()
    assert (entry.path, entry.in_place) == (path, True)
    verify(store)
    new = move(store, tmp_path / "new")
    (entry,) = new.installed()
    assert (entry.path, entry.in_place, new.state(entry)) == (path, True, FileState.INSTALLED)
    assert list(new.folder.rglob("*.gguf")) == []
    new.remove(entry)
    assert path.read_bytes() == llama_bytes()
    assert new.installed() == ()


def test_a_wrong_one_is_left_where_it_is(store: Store) -> None:
    path = put(store.folder / "publisher" / "model" / "x.gguf", llama_bytes())
    verify(store)
    path.write_bytes(llama_bytes(600))
    (checked,) = verify(store)
    assert (checked.state, checked.moved_to) == (FileState.QUARANTINED, None)
    assert path.exists()


@pytest.mark.parametrize("how", ["copy", "link", "in-place"])
def test_one_that_is_imported_stays_its_owners(store: Store, how: How) -> None:
    path = put(store.folder / "publisher" / "model" / "x.gguf", llama_bytes())
    entry = take(store, look(path, store=store), how)
    assert (entry.path, entry.in_place) == (path, True)
    store.remove(entry)
    assert path.exists()


def test_what_is_where_only_tandem_puts_it_is_tandems(store: Store, pair: CatalogPair, tmp_path: Path) -> None:
    install_pair(store, pair)
    put(store.folder / "imported" / "m.gguf", llama_bytes())
    store.index.path.unlink()
    again = Store(store.folder, store.catalog)
    assert [entry.in_place for entry in again.installed()] == [False] * 3
    new = move(again, tmp_path / "new")
    assert len(list(new.folder.rglob("*.gguf"))) == 3
    assert not store.folder.exists()


# --- a file of the Hub whose sha256 nobody knows any longer


def test_there_is_nothing_to_compare_a_file_with(tmp_path: Path) -> None:
    pair = pair_of(hub_drafter=True)
    store = Store(tmp_path / "models", catalog_of(pair))
    install_pair(store, pair)
    store.index.path.unlink()
    store = Store(store.folder, store.catalog)
    for _ in range(2):  # and a second time it is no better
        by_role = {one.role: one for one in verify(store)}
        assert by_role["target"].good
        drafter = by_role["drafter"]
        assert drafter.state is FileState.INSTALLED
        assert not drafter.good
        assert "nothing to compare" in drafter.sentence
        entry = store.entry(pair.drafter)
        assert entry is not None
        assert entry.verified_at is None
        assert store.state(entry) is FileState.INSTALLED
    assert store.pair_paths(pair) is not None  # it can be used
    store.place(pair.drafter).write_bytes(target_bytes())
    assert {one.role: one.state for one in verify(store)}["drafter"] is FileState.QUARANTINED


# --- an installation that fails at its last step


def test_what_was_installed_is_kept_when_the_new_one_cannot_take_its_place(
    store: Store, pair: CatalogPair, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = install(store, pair.target, target_bytes())

    def broken(self: Path, target: Path) -> Path:
        if target == store.place(pair.target):
            raise OSError(5, "broken")
        return real(self, target)

    real = Path.replace
    monkeypatch.setattr(Path, "replace", broken)
    with pytest.raises(TransferError):
        install(store, pair.target, target_bytes(), commit="d" * 40)
    assert store.installed() == (before,)
    assert store.find(pair.target) == before
