"""Moves the model folder: its files, its parts, its quarantine and its list, onto another drive too.

The old folder stays whole until the new one is. On one drive each file gets a second name (a hard link), which takes
no time and no room; elsewhere it is copied, flushed, and read back. Only then is the new list written, the caller told
to choose the new folder, and the old one cleared. Killed before that, the old folder is as it was, and what was copied
is found and used by the next attempt. What is not Tandem's in the old folder stays there.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import msgspec

from tandem.engine.gguf_header import printable
from tandem.files import sync_folder
from tandem.models import index, quarantine
from tandem.models.copying import copy_file
from tandem.models.disk import disk_error, require_room, shown
from tandem.models.errors import TransferError
from tandem.models.hashing import check, hash_file
from tandem.models.job import Job
from tandem.models.locks import LOCK, PART, MovedPartLock
from tandem.models.progress import FileProgress, Report, nobody
from tandem.models.records import Installed
from tandem.models.state import FileState
from tandem.models.stop import Stop
from tandem.models.store import Store

KEY: Final = "move"
"""The key of the job's progress."""


@dataclass(frozen=True, slots=True)
class _Item:
    """A file to move: where it is, its bytes, the state it ends in, and the sha256 it must have, "" for any."""

    path: Path
    bytes: int
    state: FileState
    expected: str = ""


def nothing(_folder: Path) -> None:
    """Chooses nothing."""


def move(
    store: Store,
    new_folder: Path,
    stop: Stop | None = None,
    report: Report = nobody,
    chosen: Callable[[Path], object] = nothing,
) -> Store:
    """Moves the model folder.

    Args:
        store: The folder as it is.
        new_folder: Where it goes; files that are there already stay, models of Tandem's there are kept in the list.
        stop: Ends it before the old folder is touched.
        report: Gets the progress, under the key "move".
        chosen: Called with the new folder when it is whole, before the old one is cleared: keeps the choice, so that
            a process killed between the two still finds its models. What it raises ends the move, nothing being lost.

    Returns:
        The store of the new folder.

    Raises:
        TransferError: "busy" while something is downloaded into it; "no-room", "disk-full", "disk"; "wrong-hash" for
            a file that is not what it was, or where another file has its place.
        Stopped: `stop` was set.
    """
    new = Store(new_folder, store.catalog)
    if new.folder == store.folder:
        return store
    if _same_place(new.folder, store.folder):  # another name of it
        chosen(new.folder)
        return new
    if any(
        _same_place(folder, store.folder)
        for folder in (*new.folder.parents, *Path(os.path.realpath(new.folder)).parents)
    ):
        raise TransferError(
            "disk",
            f"{shown(new.folder)} lies in the model folder that is to be moved.",
            "Choose a folder outside of it.",
        )
    with ExitStack() as held:
        items = tuple(_items(store))
        for item in items:
            if item.path.name.endswith(PART):
                held.enter_context(MovedPartLock(item.path))
        work = Job(KEY, _progress(items), report)
        work.tell()
        _room(store, new, items)
        for at, item in enumerate(items):
            _bring(store, new, item, at, work, stop)
        with store.index.changing() as entries:
            added = [item for item in _items(store) if item not in items]
            late = Job(KEY, _progress(added), nobody)
            for at, item in enumerate(added):
                if item.path.name.endswith(PART):
                    held.enter_context(MovedPartLock(item.path))
                _bring(store, new, item, at, late, stop)
            check(stop)
            _listed(store, new, tuple(entries))
        chosen(new.folder)
        _clear(store, (*items, *added))
    return new


def _items(store: Store) -> Iterator[_Item]:
    """What is Tandem's in the folder."""
    seen = set()
    for entry in store.installed():
        state = store.state(entry)
        if entry.path.is_relative_to(store.folder) and not entry.in_place and state is not FileState.MISSING:
            seen.add(entry.path)
            expected = entry.sha256 if state is FileState.INSTALLED else ""
            yield _Item(entry.path, _size(entry.path), FileState.INSTALLED, expected)
    for part in sorted(store.folder.glob(f"*/*/[!.]*{PART}")):  # not what an unfinished write has left
        yield _Item(part, _size(part), FileState.PAUSED)
        record = store.record_of(part)
        if record.exists():
            yield _Item(record, _size(record), FileState.PAUSED)
    for path in sorted((store.folder / quarantine.FOLDER).glob("*")):
        if path.is_file() and path not in seen:
            yield _Item(path, _size(path), FileState.QUARANTINED)


def _progress(items: Sequence[_Item]) -> list[FileProgress]:
    return [FileProgress(printable(item.path.name), FileState.ABSENT, 0, item.bytes) for item in items]


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0


def _room(store: Store, new: Store, items: tuple[_Item, ...]) -> None:
    """Room for what is copied and not there yet; links need none."""
    try:
        new.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        same_drive = not items or new.folder.stat().st_dev == store.folder.stat().st_dev
    except OSError as error:
        raise disk_error(error, new.folder / "x") from error
    if not same_drive:
        require_room(new.folder, sum(item.bytes for item in items if _size(_there(store, new, item)) != item.bytes))


def _there(store: Store, new: Store, item: _Item) -> Path:
    return new.folder / item.path.relative_to(store.folder)


def _bring(store: Store, new: Store, item: _Item, at: int, work: Job, stop: Stop | None) -> None:
    """One file, linked or copied into the new folder."""
    target = _there(store, new, item)
    check(stop)
    work.step(at, FileState.CHECKING)
    try:
        target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        _require_another(store, item, target)
        if os.path.lexists(target) and not _same(item, target, stop):
            if item.state is FileState.INSTALLED:
                raise TransferError(
                    "wrong-hash",
                    f"There is another file named {printable(target.name)} in {shown(target.parent)}.",
                    "Move or remove that file, or choose another folder.",
                )
            target.unlink()
        if not os.path.lexists(target):
            _linked_or_copied(item, target, at, work, stop)
    except OSError as error:
        raise disk_error(error, target) from error
    work.step(at, item.state, done=item.bytes)


def _same_place(one: Path, other: Path) -> bool:
    """Whether two paths lead to the same folder; not, where one of them leads nowhere."""
    try:
        return one.samefile(other)
    except (OSError, ValueError):  # ValueError: a name that no folder can have
        return False


def _require_another(store: Store, item: _Item, target: Path) -> None:
    """A target that leads to the file itself would be gone with it: by way of a linked folder, or as a link to it.

    Raises:
        TransferError: It is the file itself.
    """
    if _same_place(target.parent, item.path.parent):
        raise TransferError(
            "disk",
            f"{shown(target.parent)} is a folder of the old model folder, by another name.",
            "Choose a folder outside of it.",
        )
    if target.is_symlink() and Path(os.path.realpath(target)).is_relative_to(os.path.realpath(store.folder)):
        target.unlink()


def _same(item: _Item, target: Path, stop: Stop | None) -> bool:
    """Whether a file at the target is this one: another name of it, or a copy from an earlier attempt."""
    if item.path.samefile(target):
        return True
    if _size(target) != item.bytes:
        return False
    return hash_file(target, stop).sha256 == (item.expected or hash_file(item.path, stop).sha256)


def _linked_or_copied(item: _Item, target: Path, at: int, work: Job, stop: Stop | None) -> None:
    try:
        os.link(os.path.realpath(item.path), target)  # not a link, which may not lead there from another folder
    except OSError:  # another drive, or one without hard links; what is really wrong, copying will say
        copy_file(
            item.path,
            target,
            expected=item.expected,
            proof=True,
            stop=stop,
            news=lambda done: work.advance(at, done),
        )
    else:
        sync_folder(target.parent)


def _listed(store: Store, new: Store, entries: tuple[Installed, ...]) -> None:
    """Writes the new list: the moment from which the new folder is whole."""
    moved = [_moved(store, new, entry) for entry in entries]
    with new.index.changing() as there:
        paths, hashes = {one.path for one in moved}, {one.sha256 for one in moved if one.sha256}
        there[:] = [one for one in there if one.path not in paths and one.sha256 not in hashes] + moved


def _moved(store: Store, new: Store, entry: Installed) -> Installed:
    if entry.in_place or not entry.path.is_relative_to(store.folder):
        return entry
    path = new.folder / entry.path.relative_to(store.folder)
    if store.state(entry) is not FileState.INSTALLED:
        return msgspec.structs.replace(entry, path=path)
    try:
        return msgspec.structs.replace(entry, path=path, mtime_ns=path.stat().st_mtime_ns)
    except OSError as error:
        raise disk_error(error, path) from error


def _clear(store: Store, items: tuple[_Item, ...]) -> None:
    """Takes the old folder's files away; what cannot be removed stays, and does no harm."""
    extra = [item.path.with_name(item.path.name + LOCK) for item in items if item.path.name.endswith(PART)]
    gone = [item.path for item in items] + extra + [store.index.path, store.folder / index.LOCK]
    for path in gone:
        with suppress(OSError):
            path.unlink(missing_ok=True)
    for folder in sorted({path.parent for path in gone}, key=lambda folder: -len(folder.parts)):
        store.tidy(folder)
    with suppress(OSError):
        store.folder.rmdir()
