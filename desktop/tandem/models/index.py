"""The list of installed files: `tandem-models.json` in the model folder, so that the folder moves as a whole.

It is replaced in one step and changed under a lock, by any number of threads and processes. What can be made neither
head nor tail of is set aside, and the list is made again from the files that are there: by their headers, as not
verified, since nothing says any longer what they should be.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final

import msgspec
from filelock import FileLock, Timeout

from tandem.engine.gguf import read_facts
from tandem.errors import ModelError
from tandem.files import free_name, read_beginning, write_private
from tandem.models.catalog import Catalog
from tandem.models.disk import disk_error, shown
from tandem.models.errors import TransferError
from tandem.models.file_facts import role_of
from tandem.models.records import NO_HASH, Installed, builtins, installed_from, now, to_json

FILE: Final = "tandem-models.json"
LOCK: Final = ".tandem.lock"
QUARANTINE: Final = "quarantine"

IMPORTED: Final = "imported"
"""Folder, in the model folder, of files that are not in the catalog."""

VERSION: Final = 1

_MAX_BYTES: Final = 8 << 20
_MAX_FOUND: Final = 500  # files that a list is made from again
_LOCK_SECONDS: Final = 20.0
_LONGEST_NAME: Final = 255

_Stamp = tuple[int, int, int] | None


class Index:
    """The list of one folder; cheap to make, read when first asked.

    Args:
        folder: The model folder; need not exist.
        catalog: Tells which file belongs where, when the list is made again.
    """

    def __init__(self, folder: Path, catalog: Catalog) -> None:
        self.folder: Final = folder
        self.path: Final = folder / FILE
        self._catalog = catalog
        self._lock = FileLock(folder / LOCK, timeout=_LOCK_SECONDS)  # once for each thread, again within it
        self._read: tuple[_Stamp, tuple[Installed, ...]] | None = None

    def entries(self) -> tuple[Installed, ...]:
        """All files in the list, in the order they came; read again when another process has changed it.

        Raises:
            TransferError: The folder is there and cannot be read.
        """
        stamp = self._stamp()
        if self._read is not None and self._read[0] == stamp:
            return self._read[1]
        found = self._parsed()
        if found is None:
            found = self._made_again()
            stamp = self._stamp()
        self._read = stamp, found
        return found

    def owns(self, path: Path) -> bool:
        """Whether a file of this folder is where only Tandem puts one; any other one is somebody else's."""
        inside = path.relative_to(self.folder).parts
        return inside[0] == IMPORTED or (
            len(inside) == 3 and self._catalog.by_name("/".join(inside[:2]), inside[-1]) is not None
        )

    @contextmanager
    def changing(self) -> Iterator[list[Installed]]:
        """The list to change; written when the block ends without an error, if it differs.

        Raises:
            TransferError: "busy" when another process holds it for long; "disk" and "disk-full".
        """
        with self._locked():
            before = self.entries()
            entries = list(before)
            yield entries
            if tuple(entries) != before:
                self._write(entries)

    @contextmanager
    def _locked(self) -> Iterator[None]:
        try:
            self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._lock.acquire()
        except Timeout as error:
            raise TransferError(
                "busy",
                f"Another program is changing the models in {shown(self.folder)}.",
                "Wait for it to finish, then try again.",
            ) from error
        except OSError as error:
            raise disk_error(error, self.path) from error
        try:
            yield
        finally:
            self._lock.release()

    def _stamp(self) -> _Stamp:
        try:
            status = self.path.stat()
        except OSError:
            return None
        return status.st_mtime_ns, status.st_size, status.st_ino

    def _write(self, entries: list[Installed]) -> None:
        plain = [self._relative(entry) for entry in entries]
        try:
            write_private(self.path, to_json({"version": VERSION, "files": plain}))
        except OSError as error:
            raise disk_error(error, self.path) from error
        self._read = self._stamp(), tuple(entries)

    def _relative(self, entry: Installed) -> Any:
        plain = builtins(entry)
        if entry.path.is_relative_to(self.folder):
            plain["path"] = entry.path.relative_to(self.folder).as_posix()
        return plain

    def _parsed(self) -> tuple[Installed, ...] | None:
        """What the file says; None where it is not there, or says nothing that can be understood."""
        try:
            data = read_beginning(self.path, _MAX_BYTES + 1)
        except (FileNotFoundError, IsADirectoryError):
            return None
        except OSError as error:
            raise disk_error(error, self.path) from error
        try:
            raw = json.loads(data or b"") if len(data or b"") <= _MAX_BYTES else None
        except (ValueError, RecursionError):
            raw = None
        files = raw.get("files") if isinstance(raw, dict) else None
        if not isinstance(raw, dict) or not isinstance(files, list):
            return None
        found = [self._entry(plain) for plain in files]
        kept = tuple(entry for entry in found if entry is not None)
        if len(kept) < len(found) or raw.get("version") != VERSION:
            self._keep_copy(data or b"")
        return kept

    def _entry(self, plain: Any) -> Installed | None:
        try:
            entry = installed_from(plain)
        except (msgspec.ValidationError, ValueError, OverflowError):
            return None
        path = self.folder / entry.path
        if not _can_be(path) or path in (self.folder, self.path, self.folder / LOCK):  # somebody has tampered with it
            return None
        inside = path.is_relative_to(self.folder)
        if not inside and not entry.path.is_absolute():
            return None
        # What lies elsewhere is somebody else's, whatever the list says: it is never moved or deleted.
        return msgspec.structs.replace(entry, path=path, in_place=entry.in_place or not inside)

    def _keep_copy(self, data: bytes) -> None:
        """Keeps what was not understood, once: the next change leaves it out."""
        kept = self.path.with_name(f"{self.path.stem}.not-understood.json")
        if not kept.exists():
            with suppress(OSError):  # where this cannot be written, nothing will be left out either
                write_private(kept, data)

    def _made_again(self) -> tuple[Installed, ...]:
        """The list from what is on the disk; kept if the folder can be written to."""
        found = self._on_disk()
        damaged = self.path.exists()
        if not found and not damaged:
            return ()
        try:
            with self._locked():
                again = self._parsed()  # another process may have been faster
                if again is not None:
                    return again
                if damaged:
                    self.path.rename(free_name(self.path, "damaged"))
                self._write(list(found))
        except (OSError, TransferError):  # read only: it is made again each time
            return found
        return found

    def _on_disk(self) -> tuple[Installed, ...]:
        found: list[Installed] = []
        for pattern in ("*/*/*.gguf", "*/*.gguf", "*.gguf"):
            for path in sorted(self.folder.glob(pattern)):
                inside = path.relative_to(self.folder).parts
                if inside[0] == QUARANTINE or inside[0].startswith(".") or len(found) >= _MAX_FOUND:
                    continue
                entry = self._by_header(path, inside)
                if entry is not None:
                    found.append(entry)
        return tuple(found)

    def _by_header(self, path: Path, inside: tuple[str, ...]) -> Installed | None:
        try:
            facts, status = read_facts(path), path.stat()
            role = role_of(facts)
        except (ModelError, OSError):
            return None
        place = self._catalog.by_name("/".join(inside[:2]), inside[-1]) if len(inside) == 3 else None
        expected = place.file.pin if place is not None else None
        return Installed(
            path=path,
            role=role,
            bytes=status.st_size,
            mtime_ns=status.st_mtime_ns,
            sha256=expected or NO_HASH,
            in_place=not self.owns(path),  # the folder may be another program's
            repo=place.file.repo if place is not None else "",
            file=place.file.file if place is not None else "",
            licence=place.pair.licence if place is not None else None,
            installed_at=now(),
            architecture=facts.architecture,
            name=facts.name,
            quantisation=facts.quantisation,
        )


def _can_be(path: Path) -> bool:
    """Whether a file can have that path, and it leads nowhere but where it seems to."""
    try:
        lengths = [len(os.fsencode(name)) for name in path.parts]
    except UnicodeEncodeError:  # a lone surrogate that stands for no byte
        return False
    return "\0" not in str(path) and ".." not in path.parts and max(lengths) <= _LONGEST_NAME
