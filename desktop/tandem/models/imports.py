"""Files that are on the disk already: looked at, recognised, and taken over by copying, linking or using in place.

A file is recognised by its sha256 as one of the catalog, else by its header as a target, a drafter or another model.
A copy that was interrupted goes on where it stopped, and counts only when all of it has the sha256 that was found.
"""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import Final, Literal

import msgspec

from tandem.engine.gguf import GgufFacts, printable, read_facts
from tandem.errors import TandemError
from tandem.files import sync_folder
from tandem.models import quarantine
from tandem.models.catalog import Catalog, CatalogFile, Place
from tandem.models.catalog import catalog as the_catalog
from tandem.models.copying import copy_file
from tandem.models.disk import COPY, disk_error, require_room
from tandem.models.errors import TransferError
from tandem.models.file_facts import licence_of, role_of, says_qat
from tandem.models.hashing import hash_file
from tandem.models.index import IMPORTED
from tandem.models.job import Job
from tandem.models.locks import PART, Lock
from tandem.models.progress import FileProgress, Report, nobody
from tandem.models.records import Installed, InstalledRole, now
from tandem.models.state import FileState
from tandem.models.stop import Stop, Stopped
from tandem.models.store import Store, settle

KEY: Final = "import"
"""The key of the job's progress."""

NOTE_LICENCE: Final = "Its licence is not known: see to it yourself that you may use it."
NOTE_NOT_QAT: Final = "Nothing in it says that it was trained for its quantisation (QAT)."
NOTE_OTHER: Final = "It is not a Gemma 4 model: Tandem can chat with it, without a drafter of its own."
NOTE_COPIED: Final = "It is on another drive, where no hard link is possible: it is copied instead."

_LONGEST_STEM: Final = 180  # bytes, of the 255 of a name: quarantine makes it longer

How = Literal["copy", "link", "in-place"]

_NO_LINK: Final = frozenset(
    {errno.EXDEV, errno.EPERM, errno.EACCES, errno.EMLINK, errno.ENOSYS, errno.ENOTSUP, errno.EOPNOTSUPP, errno.EINVAL}
)


class Found(msgspec.Struct, frozen=True):
    """A file that was looked at.

    Attributes:
        path: Where it is, absolute, as it was given.
        bytes: Its size.
        mtime_ns: Time of its last change, in nanoseconds.
        sha256: 64 hex digits.
        role: What it is.
        architecture: By its header.
        name: The model's own name.
        quantisation: Such as "Q4_0".
        licence: Of the catalog, or as the file says; None for unknown.
        key: The key of the catalog's pair that it belongs to; None where the catalog does not know it.
        file: The catalog's entry; None likewise.
        notes: What is worth knowing (English), no reason to refuse.
        installed: It is in the model folder's list already.
    """

    path: Path
    bytes: int
    mtime_ns: int
    sha256: str
    role: InstalledRole
    architecture: str
    name: str | None
    quantisation: str
    licence: str | None = None
    key: str | None = None
    file: CatalogFile | None = None
    notes: tuple[str, ...] = ()
    installed: bool = False


def look(
    path: Path,
    stop: Stop | None = None,
    report: Report = nobody,
    catalog: Catalog | None = None,
    store: Store | None = None,
) -> Found:
    """Reads a file's header, and then all of it.

    Args:
        path: A GGUF, whatever its name.
        stop: Ends it.
        report: Gets the progress, under the key "import".
        catalog: None takes the store's, or the app's.
        store: Says whether the file is there already; None asks nobody.

    Raises:
        ModelError: It is no GGUF that could be used, or not there.
        TransferError: It cannot be read to its end.
        Stopped: `stop` was set.
    """
    path = Path(os.path.abspath(path))  # noqa: PTH100  (a link of another program's keeps its name)
    facts = read_facts(path)
    role = role_of(facts)
    name = printable(path.name)
    work = Job(KEY, [FileProgress(name, FileState.ABSENT, 0, facts.file_bytes)], report)
    work.tell()
    work.step(0, FileState.CHECKING)
    try:
        hashed = hash_file(path, stop, lambda done: work.advance(0, done))
    except OSError as error:
        work.step(0, FileState.FAILED)
        raise disk_error(error, path) from error
    except Stopped:
        work.step(0, FileState.ABSENT, done=0)
        raise
    if not hashed.steady:
        work.step(0, FileState.FAILED)
        raise TransferError(
            "wrong-hash", f"{name} was written to while it was read.", "Import it when nothing writes to it any more."
        )
    there = store is not None and _there(store, hashed.sha256) is not None
    work.step(0, FileState.INSTALLED if there else FileState.ABSENT)
    catalog = catalog or (store.catalog if store is not None else the_catalog())
    place = catalog.by_sha256(hashed.sha256) or _remembered(store, hashed.sha256)
    return Found(
        path=path,
        bytes=hashed.bytes,
        mtime_ns=hashed.mtime_ns,
        sha256=hashed.sha256,
        role=place.file.role if place is not None else role,
        architecture=facts.architecture,
        name=facts.name,
        quantisation=facts.quantisation,
        licence=place.pair.licence if place is not None else licence_of(facts),
        key=place.pair.key if place is not None else None,
        file=place.file if place is not None else None,
        notes=() if place is not None else _notes(facts, role),
        installed=there,
    )


def _remembered(store: Store | None, sha256: str) -> Place | None:
    """A file whose hash the Hub told at its first download."""
    if store is None:
        return None
    for entry in store.installed():
        if entry.sha256 == sha256 and entry.repo:
            return store.catalog.by_name(entry.repo, entry.file)
    return None


def _notes(facts: GgufFacts, role: InstalledRole) -> tuple[str, ...]:
    notes = [] if licence_of(facts) else [NOTE_LICENCE]
    if role == "model":
        notes.append(NOTE_OTHER)
    elif not says_qat(facts):
        notes.append(NOTE_NOT_QAT)
    return tuple(notes)


def _there(store: Store, sha256: str) -> Installed | None:
    return next(
        (one for one in store.installed() if one.sha256 == sha256 and store.state(one) is FileState.INSTALLED), None
    )


def take(store: Store, found: Found, how: How, stop: Stop | None = None, report: Report = nobody) -> Installed:
    """Puts a file that was looked at into the list.

    A hard link that is not possible becomes a copy, which the progress then says (`NOTE_COPIED`). A file that is
    installed already stays as it is; one that lies in the model folder is taken where it is.

    Args:
        store: The folder.
        found: What `look` gave.
        how: "copy"; "link": another name for the same bytes; "in-place": used where it is, and never changed.
        stop: Ends it; a copy is kept as far as it came, and goes on the next time.
        report: Gets the progress, under the key "import".

    Raises:
        TransferError: "wrong-hash" when the file is no longer the one that was looked at; "no-room", "disk-full",
            "disk", "busy".
        Stopped: `stop` was set.
    """
    there = _there(store, found.sha256)
    if there is not None:
        return there
    name = printable(found.path.name)
    work = Job(KEY, [FileProgress(name, FileState.ABSENT, 0, found.bytes)], report)
    work.tell()
    work.step(0, FileState.CHECKING)
    try:
        entry = _taken(store, found, how, work, stop)
    except Stopped as stopped:
        kept = how != "in-place" and stopped.why != "cancel"
        work.step(0, FileState.PAUSED if kept else FileState.ABSENT)
        raise
    except TandemError:
        work.step(0, FileState.FAILED)
        raise
    work.step(0, FileState.INSTALLED, done=found.bytes)
    return entry


def _taken(store: Store, found: Found, how: How, work: Job, stop: Stop | None) -> Installed:
    _require_unchanged(found)
    ours = _in_folder(store, found.path)
    if ours is not None or how == "in-place":
        path = ours or found.path
        entry = _entry(found, path, path, in_place=ours is None or not store.index.owns(ours))
        store.keep(entry)
    else:
        place = _place(store, found)
        if how == "copy" or not _linked(store, found, place):
            if how == "link":
                work.say(NOTE_COPIED)
            _copied(store, found, place, work, stop)
        entry = _entry(found, place, place, in_place=False)
        store.keep(entry)  # its time, as the disk has kept it
    return entry


def _in_folder(store: Store, path: Path) -> Path | None:
    """Where in the model folder a file is, whatever way its path takes there; None for one that is not in it.

    Raises:
        TransferError: It is not finished: a download or a copy goes on writing it.
    """
    place = Path(os.path.realpath(path.parent)) / path.name
    folder = Path(os.path.realpath(store.folder))
    if not place.is_relative_to(folder) or place.is_relative_to(folder / quarantine.FOLDER):
        return None
    if path.name.endswith((PART, COPY)):
        raise TransferError(
            "busy",
            f"{printable(path.name)} in the model folder is not finished.",
            "Wait for it to finish.",
        )
    return store.folder / place.relative_to(folder)


def _require_unchanged(found: Found) -> None:
    try:
        status = found.path.stat()
    except OSError as error:
        raise disk_error(error, found.path) from error
    if (status.st_size, status.st_mtime_ns) != (found.bytes, found.mtime_ns):
        raise _changed(found)


def _changed(found: Found) -> TransferError:
    name = printable(found.path.name)
    return TransferError("wrong-hash", f"{name} has changed since it was looked at.", "Import it again.")


def _place(store: Store, found: Found) -> Path:
    """Where a file goes: where the catalog has it, else a free name among the imported ones."""
    if found.file is not None:
        place = store.place(found.file)
        store.clear(place, found.sha256)
        return place
    stem, number = found.path.stem if found.path.suffix == ".gguf" else _plain(found), 2
    while len(os.fsencode(stem)) > _LONGEST_STEM:
        stem = stem[:-1]
    place = store.folder / IMPORTED / f"{stem}.gguf"
    while os.path.lexists(place):
        place, number = place.with_name(f"{stem}-{number}.gguf"), number + 1
    return place


def _plain(found: Found) -> str:
    """A file name for a blob whose own name says nothing."""
    words = f"{found.name or found.architecture} {found.quantisation} {found.sha256[:8]}"
    return "-".join("".join(c if c.isalnum() or c in "._" else " " for c in words).split())


def _linked(store: Store, found: Found, place: Path) -> bool:
    """Gives the file another name; False where that is not possible."""
    link = place.with_name(place.name + COPY)
    try:
        place.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with Lock(link):
            link.unlink(missing_ok=True)
            os.link(os.path.realpath(found.path), link)
            store.keep(_entry(found, link, place, in_place=False))
            link.replace(place)
            link.unlink(missing_ok=True)  # left where `place` was that very file already
    except OSError as error:
        if error.errno in _NO_LINK:
            return False
        raise disk_error(error, place) from error
    sync_folder(place.parent)
    return True


def _copied(store: Store, found: Found, place: Path, work: Job, stop: Stop | None) -> None:
    """A copy of its own, checked while it is written, and in the list before it has its name."""

    def ready(copy: Path) -> None:
        settle(copy)
        store.keep(_entry(found, copy, place, in_place=False))

    require_room(place.parent, found.bytes - _size(place.with_name(place.name + COPY)))
    try:
        place.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise disk_error(error, place) from error
    copy_file(
        found.path,
        place,
        expected=found.sha256,
        stop=stop,
        news=lambda done: work.advance(0, done),
        ready=ready,
    )


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0


def _entry(found: Found, now_at: Path, path: Path, in_place: bool) -> Installed:
    """The list's entry of a file that is, or will be, at `path`, with size and time of what is `now_at`.

    Raises:
        TransferError: It is not there, or is not as long as the file that was looked at.
    """
    try:
        status = now_at.stat()
    except OSError as error:
        raise disk_error(error, now_at) from error
    if status.st_size != found.bytes:
        raise _changed(found)
    file = found.file
    return Installed(
        path=path,
        role=found.role,
        bytes=status.st_size,
        mtime_ns=status.st_mtime_ns,
        sha256=found.sha256,
        installed_at=now(),
        verified_at=now(),
        in_place=in_place,
        repo=file.repo if file is not None else "",
        file=file.file if file is not None else "",
        commit=(file.revision or "") if file is not None else "",
        licence=found.licence,
        architecture=found.architecture,
        name=found.name,
        quantisation=found.quantisation,
    )
