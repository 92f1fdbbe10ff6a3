"""The model folder: what is installed, what has come in in part, and how a file becomes installed.

A file is installed when its size, its sha256 and its header agreed. The list says so *before* the file gets its name:
a process that is killed between the two leaves a part that is whole, which the next download only checks.
"""

from __future__ import annotations

import os
import stat
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import Final

from tandem import paths
from tandem.engine.gguf import GgufFacts, read_facts
from tandem.errors import ModelError, TandemError
from tandem.files import sync_folder
from tandem.models import quarantine
from tandem.models.catalog import Catalog, CatalogFile, CatalogPair
from tandem.models.catalog import catalog as the_catalog
from tandem.models.disk import COPY, disk_error
from tandem.models.errors import WRONG, TransferError
from tandem.models.file_facts import whole_facts
from tandem.models.index import Index
from tandem.models.locks import LOCK, PART, PartLock
from tandem.models.records import Installed, Quarantined, now
from tandem.models.state import FileState
from tandem.models.sweep import sweep
from tandem.settings import Settings

RECORD: Final = ".json"

_FAT_TICK_NS: Final = 2_000_000_000


class Store:
    """A model folder; cheap to make, and safe to use from any number of threads and processes.

    Args:
        folder: Need not exist; it is made by the first thing that is kept in it.
        catalog: None takes the app's.
    """

    def __init__(self, folder: Path, catalog: Catalog | None = None) -> None:
        self.folder: Final = Path(os.path.abspath(folder))  # noqa: PTH100  (without following links)
        self.catalog: Final = catalog or the_catalog()
        self.index: Final = Index(self.folder, self.catalog)

    @classmethod
    def chosen(cls, settings: Settings, catalog: Catalog | None = None) -> Store:
        """The folder that the settings name, or the usual one.

        Raises:
            TandemError: The usual folder cannot be made.
        """
        return cls(Path(settings.models_folder) if settings.models_folder else paths.models_dir(), catalog)

    # --- where things are

    def place(self, file: CatalogFile) -> Path:
        """Where the installed file is, or will be."""
        owner, repo = file.repo.split("/")
        return self.folder / owner / repo / file.file

    def part(self, file: CatalogFile) -> Path:
        """Where what has come in of it is."""
        place = self.place(file)
        return place.with_name(place.name + PART)

    def record_of(self, part: Path) -> Path:
        """Where it is written what a part is a part of."""
        return part.with_name(part.name + RECORD)

    # --- what is there

    def installed(self) -> tuple[Installed, ...]:
        """All files in the list, whatever has become of them since.

        Raises:
            TransferError: The list cannot be read.
        """
        return self.index.entries()

    def entry(self, file: CatalogFile) -> Installed | None:
        """The list's entry of a file, whatever has become of it: by its sha256, or by its name where none is pinned."""
        for entry in self.installed():
            if entry.sha256 == file.pin if file.pin else (entry.repo, entry.file) == (file.repo, file.file):
                return entry
        return None

    def find(self, file: CatalogFile) -> Installed | None:
        """The file, if it is installed: there, and as it was when it was checked; None otherwise."""
        entry = self.entry(file)
        return entry if entry is not None and self.state(entry) is FileState.INSTALLED else None

    def state(self, entry: Installed) -> FileState:
        """Where an entry's file stands, by its size and time only: INSTALLED, CHANGED, MISSING or QUARANTINED.

        QUARANTINED is a file in place that failed its check: it is not ours to move.
        """
        if entry.problem:
            return FileState.QUARANTINED
        try:
            status = entry.path.stat()
        except (FileNotFoundError, NotADirectoryError):
            return FileState.MISSING
        except (OSError, ValueError):
            return FileState.CHANGED
        same = (status.st_size, status.st_mtime_ns) == (entry.bytes, entry.mtime_ns)
        known = entry.verified_at is not None or entry.unproven
        whole = stat.S_ISREG(status.st_mode) and same and known
        return FileState.INSTALLED if whole else FileState.CHANGED

    def check(self) -> tuple[tuple[Installed, FileState], ...]:
        """The cheap check at start: size, time and header of every file; takes away what a kill has left.

        A header with a large vocabulary takes some 0.1 s; it is read once, until size or time change.

        Raises:
            TransferError: The list cannot be read.
        """
        checked = tuple((entry, self._checked(entry)) for entry in self.installed())
        sweep(self.folder, self.index.owns)
        return checked

    def pair_paths(self, pair: CatalogPair) -> tuple[Path, Path] | None:
        """Target and drafter, if both are installed."""
        target, drafter = self.find(pair.target), self.find(pair.drafter)
        return (target.path, drafter.path) if target is not None and drafter is not None else None

    def part_bytes(self, file: CatalogFile) -> int:
        """What has come in of a file; 0 for nothing."""
        try:
            return self.part(file).stat().st_size
        except OSError:
            return 0

    def quarantined(self) -> tuple[Quarantined, ...]:
        """What was set aside and is still here."""
        return quarantine.listed(self.folder)

    # --- changes

    def install(
        self, file: CatalogFile, part: Path, sha256: str, commit: str, total: int, licence: str | None
    ) -> Installed:
        """Makes a whole part an installed file; what is wrong is set aside.

        Args:
            file: What it is.
            part: All of its bytes, in this folder's file system.
            sha256: Of these bytes, found by the caller, who has compared it.
            commit: The Hub's, "" for none.
            total: Bytes that it must have.
            licence: SPDX identifier, None for unknown.

        Raises:
            TransferError: "wrong-size", "wrong-header" (it is in quarantine then); "disk", "disk-full", "busy".
        """
        facts = self._looked_at(file, part, total)
        place = self.place(file)
        self.clear(place, sha256)
        try:
            settle(part)
            place.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            status = part.stat()
        except OSError as error:
            raise disk_error(error, part) from error
        entry = Installed(
            path=place,
            role=file.role,
            bytes=status.st_size,
            mtime_ns=status.st_mtime_ns,
            sha256=sha256,
            installed_at=now(),
            verified_at=now(),
            repo=file.repo,
            file=file.file,
            commit=commit,
            licence=licence,
            architecture=facts.architecture,
            name=facts.name,
            quantisation=facts.quantisation,
        )
        before = [one for one in self.installed() if one.path == place or one.sha256 == sha256]
        self.keep(entry)
        try:
            part.replace(place)
        except OSError as error:
            with self.index.changing() as entries:  # what it was to take the place of is still there
                entries[:] = [one for one in entries if one != entry] + before
            raise disk_error(error, place) from error
        sync_folder(place.parent)
        with suppress(OSError):
            self.record_of(part).unlink(missing_ok=True)
        return entry

    def keep(self, entry: Installed) -> None:
        """Puts an entry into the list, in place of those with its path or its sha256.

        Raises:
            TransferError: "disk", "disk-full", "busy".
        """
        with self.index.changing() as entries:
            entries[:] = [one for one in entries if one.path != entry.path and one.sha256 != entry.sha256]
            entries.append(entry)

    def change(self, before: Installed, after: Installed) -> None:
        """Puts an entry in another one's place; if that has gone meanwhile, nothing happens.

        Raises:
            TransferError: "disk", "disk-full", "busy".
        """
        with self.index.changing() as entries:
            entries[:] = [after if one == before else one for one in entries]

    def forget(self, entry: Installed) -> None:
        """Takes an entry out of the list; its file stays as it is.

        Raises:
            TransferError: "disk", "disk-full", "busy".
        """
        with self.index.changing() as entries:
            entries[:] = [one for one in entries if one.path != entry.path]

    def remove(self, entry: Installed) -> None:
        """Deletes a file and its entry; of a file in place only the entry.

        Raises:
            TransferError: "disk", "busy".
        """
        if not entry.in_place and entry.path.is_relative_to(self.folder):
            try:
                entry.path.unlink(missing_ok=True)
            except OSError as error:
                raise disk_error(error, entry.path) from error
            self.tidy(entry.path.parent)
        self.forget(entry)

    def remove_part(self, file: CatalogFile, held: bool = False) -> None:
        """Deletes what has come in of a file, and what is written of it.

        Args:
            file: Which.
            held: Whether the caller has the part's lock.

        Raises:
            TransferError: "busy" while it is being downloaded; "disk".
        """
        part, place = self.part(file), self.place(file)
        paths = (part, self.record_of(part), place.with_name(place.name + COPY))
        if not any(map(os.path.lexists, (*paths, part.with_name(part.name + LOCK)))):
            return
        lock = PartLock(part)
        if not held:
            lock.acquire()
        try:
            for path in paths:
                path.unlink(missing_ok=True)
        except OSError as error:
            raise disk_error(error, part) from error
        finally:
            if not held:
                lock.release()
        self.tidy(part.parent)

    def quarantine(
        self, path: Path, error: TandemError, file: CatalogFile | None = None, expected: str = "", found: str = ""
    ) -> Quarantined:
        """Sets a file of this folder aside: a part, or an installed file, whose entry goes too.

        Args:
            path: The file.
            error: Why.
            file: What it should be, if the catalog knows.
            expected: The sha256 that it should have.
            found: The sha256 that it has.

        Raises:
            TransferError: "disk": it is still where it was.
        """
        name = file.file if file is not None else path.name.removesuffix(PART)
        repo, its_name = (file.repo, file.file) if file is not None else ("", "")
        record = quarantine.set_aside(
            path, self.folder, error, name=name, repo=repo, file=its_name, expected=expected, found=found
        )
        with suppress(OSError):
            self.record_of(path).unlink(missing_ok=True)
        with suppress(TransferError), self.index.changing() as entries:  # else the list calls it missing
            entries[:] = [one for one in entries if one.path != path]
        self.tidy(path.parent)
        return record

    def remove_quarantined(self, record: Quarantined) -> None:
        """Deletes a file that was set aside.

        Raises:
            TransferError: "disk".
        """
        quarantine.remove(record, self.folder)

    # --- inside

    def _checked(self, entry: Installed) -> FileState:
        state = self.state(entry)
        if state is FileState.INSTALLED:
            try:
                _header_is_read(entry.path, entry.bytes, entry.mtime_ns)
            except ModelError:
                return FileState.CHANGED
        return state

    def _looked_at(self, file: CatalogFile, part: Path, total: int) -> GgufFacts:
        """The header of a whole part, once size and role are right."""
        try:
            return whole_facts(file, part, total)
        except TransferError as wrong:
            if wrong.fault in WRONG:
                self.quarantine(part, wrong, file, expected=file.pin or "")
            raise

    def clear(self, place: Path, sha256: str) -> None:
        """Sets aside what stands where a file is to be installed, unless it is that file."""
        if not os.path.lexists(place):
            return
        for entry in self.installed():
            if entry.path == place and entry.sha256 == sha256 and self.state(entry) is FileState.INSTALLED:
                return
        error = TransferError(
            "wrong-hash",
            f"{place.name} was another file than it should be; the right one has taken its place.",
            "Remove the set-aside file if you do not need it.",
        )
        self.quarantine(place, error)

    def tidy(self, folder: Path) -> None:
        """Removes folders that have become empty, up to the model folder."""
        while folder != self.folder and folder.is_relative_to(self.folder):
            try:
                folder.rmdir()
            except OSError:
                return
            folder = folder.parent


@lru_cache(maxsize=256)
def _header_is_read(path: Path, size: int, mtime_ns: int) -> None:
    """Reads a header, once for each size and time of a file; one that cannot be read is tried again each time.

    Raises:
        ModelError: It cannot be read.
    """
    del size, mtime_ns
    read_facts(path)


def settle(path: Path) -> None:
    """Makes a file's bytes and time last: flushed to the disk, its time one that every file system can keep.

    A time between two ticks of FAT (2 s) would come back changed after the drive was taken out and put in again.

    Raises:
        OSError: It cannot be flushed.
    """
    status = path.stat()
    with suppress(OSError):
        os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns // _FAT_TICK_NS * _FAT_TICK_NS))
    descriptor = os.open(path, os.O_RDWR | getattr(os, "O_BINARY", 0))
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
