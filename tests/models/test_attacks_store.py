import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from support.catalogs import write_catalog
from support.modelfiles import catalog_of, drafter_bytes, install, install_pair, pair_of, put_part
from tandem.errors import TandemError
from tandem.files import open_bytes
from tandem.models.catalog import load
from tandem.models.errors import TransferError
from tandem.models.hashing import hash_file
from tandem.models.overview import overview
from tandem.models.state import FileState
from tandem.models.store import Store
from tandem.models.verify import verify
from tandem.settings import Settings

PAIR = pair_of()
needs_pipes = pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no pipes in folders")


def a_store(folder: Path) -> Store:
    return Store(folder, catalog_of(PAIR))


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return a_store(tmp_path / "models")


@pytest.fixture
def victim(tmp_path: Path) -> Path:
    path = tmp_path / "victim"
    path.write_bytes(b"precious")
    return path


def listed(store: Store, path: Path | str, **fields: Any) -> Store:
    """The same folder, with a list that names that file, written by somebody else."""
    plain = {
        "path": str(path),
        "role": "target",
        "bytes": 8,
        "mtime_ns": 1,
        "sha256": "a" * 64,
        "installed_at": "2026-01-01T00:00:00Z",
        "verified_at": "2026-01-01T00:00:00Z",
        **fields,
    }
    store.folder.mkdir(exist_ok=True)
    store.index.path.write_text(json.dumps({"version": 1, "files": [plain]}))
    return a_store(store.folder)


@pytest.mark.parametrize(
    "way", ["../victim", "./../victim", "a/../../victim", "{folder}/../victim", "{folder}/../x/../victim"]
)
@pytest.mark.usefixtures("victim")
def test_a_list_that_leads_out_of_the_folder_is_not_followed(store: Store, way: str) -> None:
    assert not listed(store, way.format(folder=store.folder)).installed()


def test_a_file_elsewhere_is_never_moved_or_deleted_whatever_the_list_says(store: Store, victim: Path) -> None:
    store = listed(store, victim, in_place=False)
    (checked,) = verify(store)
    assert (checked.state, checked.moved_to) == (FileState.QUARANTINED, None)
    for entry in store.installed():
        store.remove(entry)
    assert victim.read_bytes() == b"precious"
    assert not store.installed()


@pytest.mark.parametrize("path", ["", ".", "tandem-models.json", ".tandem.lock", "a\0b", "\ud800/x", "x" * 256])
def test_what_no_model_can_be_called_is_not_in_the_list(store: Store, path: str) -> None:
    store = listed(store, path)
    assert not store.installed()
    assert verify(store) == ()
    assert (store.folder / "tandem-models.not-understood.json").exists()


@pytest.mark.parametrize(
    "fields", [{"bytes": -1}, {"bytes": 10**30}, {"mtime_ns": 10**400}, {"sha256": "\x1b[2J"}, {"sha256": "../x"}]
)
def test_numbers_and_hashes_that_cannot_be_are_not_taken(store: Store, fields: dict[str, Any]) -> None:
    store = listed(store, "a/b/c.gguf", **fields)
    assert not store.installed()
    assert not overview(store).imported


@needs_pipes
def test_a_pipe_is_not_waited_for(store: Store) -> None:
    store.folder.mkdir()
    os.mkfifo(store.folder / "x.gguf")
    (checked,) = verify(listed(store, "x.gguf"))
    assert checked.state is FileState.CHANGED
    assert "x.gguf" in checked.sentence


@pytest.mark.skipif(not Path("/dev/zero").exists(), reason="this system has no such device")
def test_a_device_is_not_read(store: Store) -> None:
    (checked,) = verify(listed(store, "/dev/zero"))
    assert checked.state is FileState.CHANGED
    with pytest.raises(FileExistsError):
        hash_file(Path("/dev/zero"))


def test_a_folder_and_a_name_that_cannot_be_are_no_files(tmp_path: Path) -> None:
    with pytest.raises(IsADirectoryError):
        open_bytes(tmp_path)
    with pytest.raises(OSError, match="null"):
        open_bytes(tmp_path / "a\0b")


def test_a_folder_in_the_lists_place_is_set_aside(store: Store) -> None:
    store.index.path.mkdir(parents=True)
    assert store.installed() == ()
    install_pair(store, PAIR)
    assert a_store(store.folder).pair_paths(PAIR) is not None
    assert any("damaged" in path.name for path in store.folder.iterdir())


# --- what stands in the way


def in_the_way(path: Path, kind: str, victim: Path) -> None:
    make: dict[str, Callable[[], object]] = {
        "folder": path.mkdir,
        "full folder": lambda: (path / "x").mkdir(parents=True),
        "link": lambda: path.symlink_to(victim),
        "dead link": lambda: path.symlink_to(victim.with_name("nowhere")),
        "loop": lambda: path.symlink_to(path),
        "pipe": lambda: os.mkfifo(path),
        "file": lambda: path.write_bytes(b"a user's"),
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    make[kind]()


KINDS = ["folder", "full folder", "link", "dead link", "loop", "file", pytest.param("pipe", marks=needs_pipes)]


@pytest.mark.parametrize("kind", KINDS)
def test_what_stands_in_a_files_place_is_set_aside_and_shown(store: Store, victim: Path, kind: str) -> None:
    in_the_way(store.place(PAIR.target), kind, victim)
    install_pair(store, PAIR)
    assert store.pair_paths(PAIR) is not None
    assert victim.read_bytes() == b"precious"
    (aside,) = store.quarantined()
    assert os.path.lexists(aside.path)
    if kind != "full folder":
        return
    with pytest.raises(TransferError):
        store.remove_quarantined(aside)
    assert (Path(aside.path) / "x").exists()


@pytest.mark.parametrize("kind", ["link", "dead link", "pipe"])
def test_removing_what_was_set_aside_removes_nothing_else(store: Store, victim: Path, kind: str) -> None:
    if kind == "pipe" and not hasattr(os, "mkfifo"):
        pytest.skip("this system has no pipes in folders")
    in_the_way(store.place(PAIR.target), kind, victim)
    install_pair(store, PAIR)
    for aside in store.quarantined():
        store.remove_quarantined(aside)
    assert not store.quarantined()
    assert victim.read_bytes() == b"precious"


@pytest.mark.parametrize("kind", ["folder", "link", "dead link"])
def test_what_stands_in_the_locks_place_is_named(store: Store, victim: Path, kind: str) -> None:
    in_the_way(store.folder / ".tandem.lock", kind, victim)
    part = put_part(store, PAIR.drafter, drafter_bytes())
    with pytest.raises(TransferError, match=r"\.tandem\.lock"):
        install(store, PAIR.drafter, drafter_bytes())
    assert part.exists()
    assert victim.read_bytes() == b"precious"


@pytest.mark.parametrize("kind", ["file", "loop"])
def test_what_stands_in_quarantines_place_is_named_and_the_file_stays(store: Store, victim: Path, kind: str) -> None:
    in_the_way(store.folder / "quarantine", kind, victim)
    part = put_part(store, PAIR.target, b"no model")
    with pytest.raises(TransferError, match="quarantine"):
        store.install(PAIR.target, part, "a" * 64, "c" * 40, 8, None)
    assert part.read_bytes() == b"no model"


# --- catalogs and settings


def written(path: Path, pair: dict[str, Any], target: dict[str, Any]) -> Path:
    changed = msgspec.structs.replace(PAIR, target=msgspec.structs.replace(PAIR.target, **target), **pair)
    return write_catalog(path, catalog_of(changed))


def test_the_catalog_of_these_tests_is_one(tmp_path: Path) -> None:
    assert load(written(tmp_path / "c.toml", {}, {})) == catalog_of(PAIR)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("repo", "../.."),
        ("repo", "a/.."),
        ("repo", "./a"),
        ("repo", "a/b/c"),
        ("file", "../x.gguf"),
        ("file", "..gguf"),
        ("file", ".gguf"),
        ("bytes", 1 << 60),
        ("bytes", -1),
    ],
)
def test_a_catalog_cannot_lead_out_of_the_folder(tmp_path: Path, field: str, value: object) -> None:
    path = written(tmp_path / "c.toml", {}, {field: value})
    with pytest.raises(TandemError):
        load(path)


@pytest.mark.parametrize("field", ["key", "source", "quantisation", "licence"])
def test_a_catalog_cannot_speak_to_the_terminal(tmp_path: Path, field: str) -> None:
    with pytest.raises(TandemError):
        load(written(tmp_path / "c.toml", {field: "\x1b[2J"}, {}))


@pytest.mark.parametrize("text", [b"a=" + b"[" * 100_000, b"\xff", b"version = 1" + b" " * (2 << 20)])
def test_a_catalog_without_end_is_none(tmp_path: Path, text: bytes) -> None:
    path = tmp_path / "c.toml"
    path.write_bytes(text)
    with pytest.raises(TandemError):
        load(path)


@needs_pipes
def test_a_pipe_is_no_catalog(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "c.toml")
    with pytest.raises(TandemError):
        load(tmp_path / "c.toml")


def test_settings_with_a_folder_that_cannot_be_are_none() -> None:
    with pytest.raises(msgspec.ValidationError):
        msgspec.convert({"models_folder": "a\0b"}, Settings)
