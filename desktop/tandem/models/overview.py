"""All that a window or a terminal shows of the models, as one value: the pairs, other files, what was set aside."""

from __future__ import annotations

from typing import Final

import msgspec

from tandem.engine.gguf_header import printable
from tandem.models.catalog import Catalog, CatalogFile, CatalogPair, CatalogSize
from tandem.models.disk import free_bytes
from tandem.models.part import read_record
from tandem.models.problems import problem_of
from tandem.models.progress import FileProgress, JobProgress
from tandem.models.records import Installed, InstalledRole, Quarantined
from tandem.models.state import ACTIVE, FileState
from tandem.models.store import Store

_S = FileState
_ORDER: Final = (
    _S.VERIFYING,
    _S.TRANSFERRING,
    _S.CHECKING,
    _S.RESOLVING,
    _S.QUEUED,
    _S.FAILED,
    _S.QUARANTINED,
    _S.PAUSED,
    _S.CHANGED,
    _S.MISSING,
    _S.ABSENT,
    _S.INSTALLED,
)
"""Which of two files' states stands for their pair: the first of them here."""


class FileView(msgspec.Struct, frozen=True):
    """A file as it is shown.

    Attributes:
        name: Its name.
        role: What it is.
        state: Where it stands.
        done: Bytes that are here.
        total: Bytes of the whole file, as far as they are known.
        path: Where it is; None where nothing of it is here.
        sha256: That it has or must have; "" where the Hub's will be taken.
        verified_at: When its sha256 was last found right, ISO 8601 in UTC; None for never.
        in_place: It is used where it is and belongs to somebody else.
        licence: None for unknown.
        architecture: By its header; "" where none was read.
        quantisation: By its header.
        sentence: What is wrong (English), "" for nothing.
        remedy: What to do about it.
    """

    name: str
    role: InstalledRole
    state: FileState
    done: int
    total: int
    path: str | None = None
    sha256: str = ""
    verified_at: str | None = None
    in_place: bool = False
    licence: str | None = None
    architecture: str = ""
    quantisation: str = ""
    sentence: str = ""
    remedy: str = ""


class PairView(msgspec.Struct, frozen=True):
    """A pair of the catalog as it is shown.

    Attributes:
        key: Its key in the catalog, such as "e2b-unsloth".
        size: The key of its size, such as "e2b".
        state: Both files' state as one.
        files: Target and drafter.
        on_disk: Bytes of both that are here.
        target: The target's path; None unless both files are installed.
        drafter: The drafter's path; None unless both files are installed.
        sentence: What is wrong (English), "" for nothing.
        remedy: What to do about it.
    """

    key: str
    size: str
    state: FileState
    files: tuple[FileView, FileView]
    on_disk: int
    target: str | None = None
    drafter: str | None = None
    sentence: str = ""
    remedy: str = ""


class Overview(msgspec.Struct, frozen=True):
    """All of it.

    Attributes:
        folder: The model folder.
        free: Bytes free on its disk.
        pairs: Every pair of the catalog, in its order.
        imported: Installed files that are of no pair of the catalog.
        quarantined: Files that were set aside.
    """

    folder: str
    free: int
    pairs: tuple[PairView, ...]
    imported: tuple[FileView, ...] = ()
    quarantined: tuple[Quarantined, ...] = ()

    def pair(self, key: str) -> PairView | None:
        """The pair of that key; None for none."""
        return next((pair for pair in self.pairs if pair.key == key), None)


def overview(store: Store, catalog: Catalog | None = None, job: JobProgress | None = None) -> Overview:
    """Looks at the folder: sizes and times, and headers of installed files.

    Parts that an earlier run left are shown as paused, with their bytes.

    Args:
        store: The folder.
        catalog: None takes the store's.
        job: What is being done just now.

    Raises:
        TransferError: The folder is there and cannot be read.
    """
    catalog = catalog or store.catalog
    looked = _Looked(store)
    pairs = tuple(_pair(looked, size, pair, job) for size, pair in catalog.pairs())
    known = {id(entry) for _size, pair in catalog.pairs() for file in pair.files if (entry := looked.entry(file))}
    return Overview(
        folder=str(store.folder),
        free=free_bytes(store.folder),
        pairs=pairs,
        imported=tuple(_entry_view(entry, state) for entry, state in looked.checked if id(entry) not in known),
        quarantined=looked.quarantined,
    )


class _Looked:
    """One look at the folder."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.checked = store.check()
        self.quarantined = store.quarantined()

    def entry(self, file: CatalogFile) -> Installed | None:
        wanted = self.store.entry(file)
        return next((entry for entry, _state in self.checked if entry == wanted), None)

    def state(self, entry: Installed) -> FileState:
        return next(state for one, state in self.checked if one is entry)

    def set_aside(self, file: CatalogFile) -> Quarantined | None:
        """The newest in quarantine of that file."""
        mine = [one for one in self.quarantined if (one.repo, one.file) == (file.repo, file.file)]
        return mine[-1] if mine else None


def _pair(looked: _Looked, size: CatalogSize, pair: CatalogPair, job: JobProgress | None) -> PairView:
    mine = job is not None and job.key == pair.key and len(job.files) == 2
    work = job.files if job is not None and mine else (None, None)
    target, drafter = (_file(looked, pair, file, news, job) for file, news in zip(pair.files, work, strict=True))
    files = (target, drafter)
    state = min((target.state, drafter.state), key=_ORDER.index)
    if {target.state, drafter.state} == {_S.ABSENT, _S.INSTALLED}:
        state = _S.PAUSED  # half of a pair is here; the other half has only to be fetched
    speaking = next((file for file in files if file.sentence), None)
    whole = all(file.state is FileState.INSTALLED for file in files)
    return PairView(
        key=pair.key,
        size=size.key,
        state=state,
        files=files,
        on_disk=sum(file.done for file in files if file.state is not FileState.MISSING),
        target=target.path if whole else None,
        drafter=drafter.path if whole else None,
        sentence=speaking.sentence if speaking else "",
        remedy=speaking.remedy if speaking else "",
    )


def _file(
    looked: _Looked, pair: CatalogPair, file: CatalogFile, work: FileProgress | None, job: JobProgress | None
) -> FileView:
    view = _at_rest(looked, pair, file)
    if work is None or job is None:
        return view
    if view.state is FileState.INSTALLED and work.state not in ACTIVE:
        return view
    if not job.running and work.state not in {FileState.PAUSED, FileState.FAILED}:
        return view  # an old report: the disk knows better
    waiting = job.waiting.sentence if job.waiting is not None else ""
    told = work.state in {FileState.PAUSED, FileState.FAILED, FileState.TRANSFERRING, FileState.RESOLVING}
    return msgspec.structs.replace(
        view,
        state=work.state,
        done=work.done,
        total=work.total or view.total,
        sentence=(job.sentence or waiting) if told else "",
        remedy=job.remedy if told else "",
    )


def _at_rest(looked: _Looked, pair: CatalogPair, file: CatalogFile) -> FileView:
    """A file as the disk shows it, with nothing being done to it."""
    entry, part = looked.entry(file), looked.store.part(file)
    here = looked.store.part_bytes(file)
    if entry is not None and not (looked.state(entry) is FileState.MISSING and here):
        return _entry_view(entry, looked.state(entry), pair.licence)
    view = FileView(
        name=file.file,
        role=file.role,
        state=FileState.ABSENT,
        done=0,
        total=file.size,
        sha256=file.pin or "",
        licence=pair.licence,
    )
    if here:
        record = read_record(looked.store.record_of(part))
        total = (record.bytes if record is not None else 0) or file.size
        return msgspec.structs.replace(view, state=FileState.PAUSED, done=here, total=total, path=str(part))
    aside = looked.set_aside(file)
    if aside is not None:
        return msgspec.structs.replace(
            view, state=FileState.QUARANTINED, path=aside.path, sentence=aside.sentence, remedy=aside.remedy
        )
    return view


def _entry_view(entry: Installed, state: FileState, licence: str | None = None) -> FileView:
    problem = problem_of(entry, state)
    return FileView(
        name=printable(entry.path.name),
        role=entry.role,
        state=state,
        done=0 if state is FileState.MISSING else entry.bytes,
        total=entry.bytes,
        path=str(entry.path),
        sha256=entry.sha256,
        verified_at=entry.verified_at.isoformat() if entry.verified_at is not None else None,
        in_place=entry.in_place,
        licence=entry.licence or licence,
        architecture=entry.architecture,
        quantisation=entry.quantisation,
        sentence=problem.sentence if problem is not None else "",
        remedy=problem.remedy if problem is not None else "",
    )
