"""*Verify files*: hashes installed files again, says of each whether it is what it was, and sets aside what is not."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from contextlib import suppress
from typing import Final

import msgspec

from tandem.engine.gguf_header import printable
from tandem.errors import TandemError
from tandem.models.disk import disk_error
from tandem.models.errors import TransferError
from tandem.models.hashing import Hashed, hash_file
from tandem.models.job import Job
from tandem.models.problems import problem_of, unproven, wrong_hash
from tandem.models.progress import FileProgress, Report, nobody
from tandem.models.records import NO_HASH, Installed, InstalledRole, now
from tandem.models.state import FileState
from tandem.models.stop import Stop
from tandem.models.store import Store

KEY: Final = "verify"
"""The key of the job's progress."""

_log: Final = logging.getLogger(__name__)


class Checked(msgspec.Struct, frozen=True):
    """What was found of one file.

    Attributes:
        name: The file's name.
        path: Where it was.
        role: What it is.
        bytes: Its size.
        state: INSTALLED, CHANGED, MISSING or QUARANTINED.
        expected: The sha256 that it must have; "" where none was known.
        sha256: The one that it has; "" where it could not be read.
        moved_to: Where it is now, if it was set aside.
        sentence: What is wrong (English), "" for nothing.
        remedy: What to do about it.
    """

    name: str
    path: str
    role: InstalledRole
    bytes: int
    state: FileState
    expected: str = ""
    sha256: str = ""
    moved_to: str | None = None
    sentence: str = ""
    remedy: str = ""

    @property
    def good(self) -> bool:
        """Whether it is what it should be; not, where nothing says what that is."""
        return self.state is FileState.INSTALLED and not self.sentence


def verify(
    store: Store, entries: Sequence[Installed] | None = None, stop: Stop | None = None, report: Report = nobody
) -> tuple[Checked, ...]:
    """Hashes files again. What it finds is kept as it goes: a stopped run leaves the files before it verified.

    Args:
        store: The folder.
        entries: Which files; None takes all.
        stop: Ends it.
        report: Gets the progress, under the key "verify".

    Raises:
        Stopped: `stop` was set; the file that was being read is as it was before.
        TransferError: The list of files cannot be read.
    """
    wanted = store.installed() if entries is None else tuple(entries)
    names = [printable(entry.path.name) for entry in wanted]
    files = [FileProgress(name, store.state(entry), 0, entry.bytes) for name, entry in zip(names, wanted, strict=True)]
    work = Job(KEY, files, report)
    work.tell()
    return tuple(_verified(store, entry, index, work, stop) for index, entry in enumerate(wanted))


def _verified(store: Store, entry: Installed, index: int, work: Job, stop: Stop | None) -> Checked:
    before = work.state(index)
    if before in {FileState.MISSING, FileState.QUARANTINED}:
        return _checked(entry, before, problem_of(entry, before))
    work.step(index, FileState.VERIFYING)
    try:
        hashed = hash_file(entry.path, stop, lambda done: work.advance(index, done))
    except (FileNotFoundError, NotADirectoryError):
        work.step(index, FileState.MISSING)
        return _checked(entry, FileState.MISSING, problem_of(entry, FileState.MISSING))
    except OSError as error:
        work.step(index, FileState.CHANGED)
        return _checked(entry, FileState.CHANGED, disk_error(error, entry.path))
    except BaseException:
        work.step(index, before, done=0)
        raise
    if not hashed.steady:
        work.step(index, FileState.CHANGED)
        return _checked(entry, FileState.CHANGED, _moving(entry), hashed)
    if entry.sha256 in {NO_HASH, hashed.sha256}:
        after = _confirmed(store, entry, hashed)
        _keep(store, entry, after)
        work.step(index, FileState.INSTALLED)
        problem = unproven(printable(entry.path.name)) if after.unproven else None
        return _checked(entry, FileState.INSTALLED, problem, hashed)
    checked = _set_aside(store, entry, hashed)
    work.step(index, FileState.QUARANTINED)
    return checked


def _confirmed(store: Store, entry: Installed, hashed: Hashed) -> Installed:
    """The entry as it stands now; one without a known sha256 gets the one it has, and what the catalog says of it."""
    after = msgspec.structs.replace(
        entry, sha256=hashed.sha256, bytes=hashed.bytes, mtime_ns=hashed.mtime_ns, verified_at=now()
    )
    place = store.catalog.by_sha256(hashed.sha256)
    if entry.repo and place is None and (entry.sha256 == NO_HASH or entry.unproven):  # the Hub's, and it is not asked
        return msgspec.structs.replace(after, verified_at=None, unproven=True)
    if after.unproven:  # the catalog has come to know it
        after = msgspec.structs.replace(after, unproven=False)
    if entry.repo or place is None:
        return after
    return msgspec.structs.replace(
        after, repo=place.file.repo, file=place.file.file, licence=place.pair.licence, role=place.file.role
    )


def _set_aside(store: Store, entry: Installed, hashed: Hashed) -> Checked:
    """A file that is not what it was: into quarantine; one in place, or one that cannot be moved, is marked."""
    place = store.catalog.by_name(entry.repo, entry.file)
    error: TandemError = wrong_hash(printable(entry.path.name), entry.sha256, hashed.sha256, imported=place is None)
    if not entry.in_place:
        with suppress(TransferError):
            record = store.quarantine(
                entry.path, error, place.file if place else None, expected=entry.sha256, found=hashed.sha256
            )
            checked = _checked(entry, FileState.QUARANTINED, error, hashed)
            return msgspec.structs.replace(checked, moved_to=record.path)
    _keep(store, entry, msgspec.structs.replace(entry, problem="wrong-hash"))
    return _checked(entry, FileState.QUARANTINED, problem_of(entry, FileState.QUARANTINED), hashed)


def _keep(store: Store, before: Installed, after: Installed) -> None:
    """Keeps what was found; where the list cannot be written, it is told all the same."""
    try:
        store.change(before, after)
    except TransferError as error:
        _log.warning("What was found of a file could not be kept: %s", error.details or error.sentence)


def _moving(entry: Installed) -> TransferError:
    name = printable(entry.path.name)
    return TransferError(
        "wrong-hash", f"{name} was written to while it was read.", "Verify it again when nothing writes to it."
    )


def _checked(entry: Installed, state: FileState, problem: TandemError | None, hashed: Hashed | None = None) -> Checked:
    return Checked(
        name=printable(entry.path.name),
        path=str(entry.path),
        role=entry.role,
        bytes=entry.bytes,
        state=state,
        expected=entry.sha256,
        sha256=hashed.sha256 if hashed is not None else "",
        sentence=problem.sentence if problem is not None else "",
        remedy=problem.remedy if problem is not None else "",
    )
