"""Moving the model folder: on one drive and to another, stopped, killed, and with somebody else's files in it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from filelock import FileLock

from support.drives import other_drive
from support.modelfiles import (
    catalog_of,
    drafter_bytes,
    flip,
    install_pair,
    large_bytes,
    llama_bytes,
    pair_of,
    put_part,
    sha256,
    target_bytes,
)
from tandem.errors import TandemError
from tandem.models import move as moving
from tandem.models.catalog import CatalogPair
from tandem.models.errors import TransferError
from tandem.models.imports import look, take
from tandem.models.move import move
from tandem.models.overview import overview
from tandem.models.progress import JobProgress
from tandem.models.state import FileState
from tandem.models.stop import Stop, Stopped
from tandem.models.store import Store
from tandem.models.verify import verify


@pytest.fixture
def pair() -> CatalogPair:
    return pair_of()


@pytest.fixture
def store(tmp_path: Path, pair: CatalogPair) -> Store:
    """A folder with all there can be: a pair, a part, an imported file, one in place, one in quarantine."""
    other = pair_of("e4b", size="e4b")
    store = Store(tmp_path / "old" / "모델", catalog_of(pair, other))
    install_pair(store, pair)
    part = put_part(store, other.target, target_bytes("e4b")[:3000])
    store.record_of(part).write_bytes(b'{"bytes": 9999}')
    mine = tmp_path / "mine.gguf"
    mine.write_bytes(llama_bytes(64))
    take(store, look(mine, store=store), "in-place")
    large = tmp_path / "large.gguf"
    large.write_bytes(large_bytes(2 << 20))
    take(store, look(large, store=store), "copy")
    with pytest.raises(TransferError):
        store.install(other.drafter, put_part(store, other.drafter, b"<html>"), "0" * 64, "", 6, None)
    (store.folder / "notes of mine.txt").write_text("keep", encoding="utf-8")
    return store


@pytest.fixture(params=["same drive", "no links", "other drive"])
def new(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Where it goes."""
    if request.param == "other drive":
        with other_drive(tmp_path / "drive") as drive:
            yield drive / "Загрузки 🦙"
        return
    if request.param == "no links":

        def refuse(*_paths: object) -> None:
            raise OSError(1, "Operation not permitted")

        monkeypatch.setattr(os, "link", refuse)
    yield tmp_path / "new" / "田中"


def content(folder: Path) -> dict[str, bytes]:
    """What is in a folder, but for locks and the list, whose times may differ."""
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and not path.name.endswith(".lock") and path.name != "tandem-models.json"
    }


def test_all_that_is_ours_moves_and_what_is_not_stays(store: Store, pair: CatalogPair, new: Path) -> None:
    before, seen = content(store.folder), overview(store)
    notes = before.pop("notes of mine.txt")
    chosen: list[Path] = []
    told: list[JobProgress] = []
    moved = move(store, new, report=told.append, chosen=chosen.append)
    assert moved.folder == new
    assert chosen == [new]
    assert content(new) == before
    assert content(store.folder) == {"notes of mine.txt": notes}
    assert sorted(path.name for path in store.folder.iterdir()) == ["notes of mine.txt"]
    now = overview(moved)
    assert [one.state for one in now.pairs] == [one.state for one in seen.pairs]
    assert [one.state for one in now.imported] == [FileState.INSTALLED] * 2
    assert len(now.quarantined) == 1
    assert now.pairs[1].files[0].done == 3000
    assert moved.pair_paths(pair) == (moved.place(pair.target), moved.place(pair.drafter))
    assert all(one.good for one in verify(moved))
    assert {progress.key for progress in told} == {"move"}
    assert told[-1].done == told[-1].total > 2 << 20
    assert not told[-1].running


def test_an_old_folder_that_has_become_empty_is_removed(tmp_path: Path, pair: CatalogPair) -> None:
    store = Store(tmp_path / "old", catalog_of(pair))
    install_pair(store, pair)
    move(store, tmp_path / "new")
    assert not store.folder.exists()


def test_a_folder_in_which_there_is_nothing_yet(tmp_path: Path, pair: CatalogPair) -> None:
    moved = move(Store(tmp_path / "never made", catalog_of(pair)), tmp_path / "new")
    assert moved.installed() == ()
    assert moved.folder.is_dir()
    assert not (tmp_path / "never made").exists()


def test_on_one_drive_nothing_is_copied(store: Store, pair: CatalogPair, tmp_path: Path) -> None:
    inode = store.place(pair.target).stat().st_ino
    moved = move(store, tmp_path / "new")
    assert moved.place(pair.target).stat().st_ino == inode


def test_the_choice_is_kept_before_the_old_folder_is_touched(store: Store, new: Path) -> None:
    before = content(store.folder)

    def refuse(_folder: Path) -> None:
        assert content(store.folder) == before
        raise TandemError("The settings cannot be written.", "Make room.")

    with pytest.raises(TandemError):
        move(store, new, chosen=refuse)
    assert content(store.folder) == before
    assert [state for _entry, state in store.check()] == [FileState.INSTALLED] * 4
    assert move(store, new).installed()  # and it can be done again


def test_stopped_in_the_middle_the_old_folder_is_whole(store: Store, new: Path) -> None:
    before = content(store.folder)
    stop = Stop()

    def after_the_first(progress: JobProgress) -> None:
        if progress.files[1].state is FileState.CHECKING:
            stop.set("pause")

    with pytest.raises(Stopped):
        move(store, new, stop, after_the_first)
    assert content(store.folder) == before
    assert [state for _entry, state in store.check()] == [FileState.INSTALLED] * 4
    assert Store(new, store.catalog).index.path.exists() is False
    moved = move(store, new)
    before.pop("notes of mine.txt")
    assert content(new) == before
    assert [state for _entry, state in moved.check()] == [FileState.INSTALLED] * 4


MOVING = """
import sys
from pathlib import Path
from tandem.models import move
from tandem.models.catalog import catalog
from tandem.models.store import Store

where = sys.argv[3]

def wait(*_anything):
    print("there", flush=True)
    sys.stdin.read()

def news(progress):
    if where == "copying" and [file.state for file in progress.files][2:3] == ["checking"]:
        wait()

def chosen(_folder):
    if where == "chosen":
        wait()

if where == "clearing":
    move._clear = wait
move.move(Store(Path(sys.argv[1])), Path(sys.argv[2]), report=news, chosen=chosen)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="no SIGKILL there")
@pytest.mark.parametrize("where", ["copying", "chosen", "clearing"])
def test_killed_at_any_point_the_old_folder_is_whole(store: Store, new: Path, where: str) -> None:
    before = content(store.folder)
    desktop = str(Path(moving.__file__).parents[2])
    command = [sys.executable, "-c", MOVING, str(store.folder), str(new), where]
    environment = {**os.environ, "PYTHONPATH": desktop}
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"there\n"
        process.send_signal(signal.SIGKILL)
    assert content(store.folder) == before
    again = Store(store.folder, store.catalog)
    assert [state for _entry, state in again.check()] == [FileState.INSTALLED] * 4
    moved = move(again, new)
    before.pop("notes of mine.txt")
    assert content(new) == before
    assert [state for _entry, state in moved.check()] == [FileState.INSTALLED] * 4


def test_a_folder_into_which_something_is_downloaded_stays(store: Store, tmp_path: Path) -> None:
    (part,) = store.folder.rglob("*.part")
    with FileLock(part.with_name(part.name + ".lock")), pytest.raises(TransferError) as caught:
        move(store, tmp_path / "new")
    assert caught.value.fault == "busy"
    assert part.exists()
    assert not (tmp_path / "new").exists()


def test_another_file_in_the_new_place_is_not_overwritten(store: Store, pair: CatalogPair, tmp_path: Path) -> None:
    there = tmp_path / "new" / store.place(pair.target).relative_to(store.folder)
    there.parent.mkdir(parents=True)
    there.write_bytes(b"somebody's")
    before = content(store.folder)
    with pytest.raises(TransferError) as caught:
        move(store, tmp_path / "new")
    assert there.name in caught.value.sentence
    assert there.read_bytes() == b"somebody's"
    assert content(store.folder) == before


def test_models_that_are_in_the_new_folder_stay_in_its_list(tmp_path: Path, pair: CatalogPair) -> None:
    other = pair_of("e4b", size="e4b")
    catalog = catalog_of(pair, other)
    here, there = Store(tmp_path / "a", catalog), Store(tmp_path / "b", catalog)
    install_pair(here, pair)
    install_pair(there, other, "e4b")
    install_pair(there, pair)  # and the same pair once more
    moved = move(here, tmp_path / "b")
    assert moved.pair_paths(pair) is not None
    assert moved.pair_paths(other) is not None
    assert len(moved.installed()) == 4
    assert not here.folder.exists()


def test_the_same_folder_and_one_within(store: Store) -> None:
    assert move(store, store.folder) is store
    with pytest.raises(TransferError, match="lies in the model folder"):
        move(store, store.folder / "inner")
    assert [state for _entry, state in store.check()] == [FileState.INSTALLED] * 4


def test_into_the_folder_above(store: Store, pair: CatalogPair) -> None:
    moved = move(store, store.folder.parent)
    assert moved.pair_paths(pair) is not None


def test_a_silently_damaged_file_stops_a_copy_and_nothing_is_lost(
    store: Store, pair: CatalogPair, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_paths: object) -> None:
        raise OSError(18, "Invalid cross-device link")

    monkeypatch.setattr(os, "link", refuse)
    flip(store.place(pair.target))
    before = content(store.folder)
    with pytest.raises(TransferError) as caught:
        move(store, tmp_path / "new")
    assert caught.value.fault == "wrong-hash"
    assert content(store.folder) == before
    verify(store)  # sets it aside
    assert move(store, tmp_path / "new").installed()


def test_a_changed_file_moves_and_is_still_a_changed_one(store: Store, pair: CatalogPair, new: Path) -> None:
    store.place(pair.target).write_bytes(drafter_bytes())
    store.place(pair.drafter).unlink()
    moved = move(store, new)
    states = {entry.file: state for entry, state in moved.check() if entry.file}
    assert states == {pair.target.file: FileState.CHANGED, pair.drafter.file: FileState.MISSING}


def test_a_drive_that_keeps_times_to_two_seconds(
    store: Store, pair: CatalogPair, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    utime = os.utime

    def coarse(path: Path, ns: tuple[int, int]) -> None:
        utime(path, ns=(ns[0], ns[1] // 2_000_000_000 * 2_000_000_000))

    def refuse(*_paths: object) -> None:
        raise OSError(18, "Invalid cross-device link")

    linked = tmp_path / "linked.gguf"
    linked.write_bytes(llama_bytes(99))
    utime(linked, ns=(1_234_567_891, 1_234_567_891))
    take(store, look(linked, store=store), "link")  # another program's file keeps the time it has
    monkeypatch.setattr(os, "link", refuse)
    monkeypatch.setattr(os, "utime", coarse)
    moved = move(store, tmp_path / "new")
    assert {state for _entry, state in moved.check()} == {FileState.INSTALLED}
    assert moved.pair_paths(pair) is not None


def test_no_room_on_the_other_drive(store: Store, tmp_path: Path) -> None:
    with other_drive(tmp_path / "small", "1m") as drive:
        before = content(store.folder)
        with pytest.raises(TransferError) as caught:
            move(store, drive / "models")
        assert caught.value.fault == "no-room"
        assert content(store.folder) == before


def test_the_other_drive_fills_up(store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(moving, "require_room", lambda *_args: None)
    with other_drive(tmp_path / "small", "1m") as drive:
        before = content(store.folder)
        with pytest.raises(TransferError) as caught:
            move(store, drive / "models")
        assert caught.value.fault == "disk-full"
        assert content(store.folder) == before
    assert [state for _entry, state in store.check()] == [FileState.INSTALLED] * 4


def test_a_file_installed_meanwhile_moves_too(tmp_path: Path, pair: CatalogPair) -> None:
    store = Store(tmp_path / "old", catalog_of(pair))
    target, _drafter = install_pair(store, pair)
    late = tmp_path / "late.gguf"
    late.write_bytes(llama_bytes())
    found = look(late, store=store)

    def import_one(progress: JobProgress) -> None:
        if progress.files[0].state is FileState.INSTALLED and len(store.installed()) == 2:
            take(store, found, "copy")

    moved = move(store, tmp_path / "new", report=import_one)
    assert sorted(entry.path.name for entry in moved.installed()) == [
        "e2b-drafter.gguf",
        "e2b-target.gguf",
        "late.gguf",
    ]
    assert [state for _entry, state in moved.check()] == [FileState.INSTALLED] * 3
    assert not target.path.exists()
    assert sha256(moved.place(pair.target).read_bytes()) == pair.target.pin
