"""Work on model files that takes a while: hashing, taking in, moving, removing. For worker threads, without widgets.

The modules that do it are imported when they are first needed, so that the window opens without them.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal

import msgspec

from tandem import settings
from tandem.errors import TandemError
from tandem.models.catalog import Catalog
from tandem.models.progress import JobProgress, Report
from tandem.models.state import FileState
from tandem.models.stop import Stop, Stopped
from tandem.settings import PairChoice, Settings

if TYPE_CHECKING:
    from tandem.models.imports import Found
    from tandem.models.store import Store

How = Literal["copy", "link", "in-place"]
SUFFIX: Final = ".gguf"
_MOST_FILES: Final = 200
"""A folder with more is not looked through to its end: somebody dropped a whole disk."""


class Verified(msgspec.Struct, frozen=True):
    """What a check found.

    Attributes:
        good: Files that are as they should be.
        problems: The others: sentence and remedy (English).
        stopped: Whether it ended before all files were read.
    """

    good: int
    problems: tuple[tuple[str, str], ...] = ()
    stopped: bool = False


class Looked(msgspec.Struct, frozen=True):
    """Files that were looked at.

    Attributes:
        found: Those that can be taken in.
        errors: Why others cannot.
        stopped: Whether it ended before all were looked at.
    """

    found: list[Found]
    errors: tuple[TandemError, ...] = ()
    stopped: bool = False


class Taken(msgspec.Struct, frozen=True):
    """A file that was taken in.

    Attributes:
        name: Its name.
        complete: Key of the catalog's pair that is whole now, "" for none.
        note: What happened otherwise than asked for (English), "" for nothing.
    """

    name: str
    complete: str = ""
    note: str = ""


class Removed(msgspec.Struct, frozen=True):
    """What was removed.

    Attributes:
        name: Of the pair or file; "" when there was nothing to remove.
        in_use: Nothing was removed: this is in use.
        kept: Only Tandem's list has it no more: the file is somebody else's.
    """

    name: str
    in_use: bool = False
    kept: bool = False


class Moved(msgspec.Struct, frozen=True):
    """The model folder has moved.

    Attributes:
        before: Where it was.
        folder: Where it is.
    """

    before: str
    folder: str

    def now_at(self, choice: PairChoice) -> PairChoice:
        """A choice of files that may have moved with it."""
        return PairChoice(choice.kind, self._at(choice.target), self._at(choice.drafter))

    def followed(self, before: Settings) -> Settings:
        """The settings with the new folder, and the pair where it is now."""
        return before.changed(models_folder=self.folder, pair=self.now_at(before.pair))

    def _at(self, path: str | None) -> str | None:
        if path is None or not Path(path).is_relative_to(self.before):
            return path
        return str(Path(self.folder) / Path(path).relative_to(self.before))


class _Ear:
    """Passes reports on and keeps what will be needed in the end."""

    def __init__(self, report: Report) -> None:
        self._report = report
        self.last: JobProgress | None = None
        self.sentence = ""

    def __call__(self, progress: JobProgress) -> None:
        self.last = progress
        self.sentence = progress.sentence or self.sentence
        self._report(progress)

    @property
    def good(self) -> int:
        files = () if self.last is None else self.last.files
        return sum(file.state is FileState.INSTALLED and file.done == file.total for file in files)


def verify(store: Store, stop: Stop, report: Report) -> Verified:
    """Hashes every installed file again; see `tandem.models.verify.verify`."""
    from tandem.models.verify import verify as check  # see the module's docstring

    ear = _Ear(report)
    try:
        checked = check(store, None, stop, ear)
    except Stopped:
        return Verified(ear.good, stopped=True)
    problems = tuple((one.sentence, one.remedy) for one in checked if not one.good)
    return Verified(len(checked) - len(problems), problems)


def look(store: Store, paths: Sequence[str], stop: Stop, report: Report) -> Looked:
    """Looks at files, and at those in folders; one that is no use does not keep the others from it."""
    from tandem.models import imports  # see the module's docstring

    found: list[Found] = []
    errors: list[TandemError] = []
    report(JobProgress(imports.KEY, ()))  # a whole disk takes a while to be looked through, and that can be stopped
    for path in _files(paths, stop):
        try:
            found.append(imports.look(path, stop, report, store=store))
        except Stopped:
            return Looked(found, tuple(errors), stopped=True)
        except TandemError as error:
            errors.append(error)
    return Looked(found, tuple(errors), stopped=stop.is_set())


def take(store: Store, catalog: Catalog, found: Found, how: How, stop: Stop, report: Report) -> Taken | None:
    """Takes a file in; None when that was stopped."""
    from tandem.models import imports  # see the module's docstring

    ear = _Ear(report)
    try:
        entry = imports.take(store, found, how, stop, ear)
    except Stopped:
        return None
    pair = catalog.pair(found.key) if found.key else None
    whole = pair is not None and store.pair_paths(pair) is not None
    return Taken(entry.path.name, pair.key if pair is not None and whole else "", ear.sentence)


def move(store: Store, folder: str, now: Callable[[], Settings], stop: Stop, report: Report) -> Moved | None:
    """Moves the model folder; None when that was stopped.

    Args:
        store: Where it is.
        folder: Where it goes.
        now: Gives the settings; they are written with the new folder before the old one is cleared.
        stop: Ends it.
        report: Is told.
    """
    from tandem.models.move import move as move_all  # see the module's docstring

    def chosen(new: Path) -> None:
        settings.save(Moved(str(store.folder), str(new)).followed(now()))

    try:
        after = move_all(store, Path(folder), stop, report, chosen)
    except Stopped:
        return None
    return Moved(str(store.folder), str(after.folder))


def remove(store: Store, catalog: Catalog, name: str, in_use: Sequence[str | None]) -> Removed:
    """Removes the files of a pair (by its key), or an installed or quarantined one (by its path).

    Args:
        store: The model folder.
        catalog: Knows the pairs.
        name: Key or path.
        in_use: Paths of the files that the engine has open.
    """
    pair = catalog.pair(name)
    if pair is None:
        aside = next((one for one in store.quarantined() if one.path == name), None)
        if aside is not None:
            store.remove_quarantined(aside)
            return Removed(aside.name)
        entries = [entry for entry in store.installed() if str(entry.path) == name]
        called = Path(name).name if entries else ""
    else:
        entries = [entry for file in pair.files if (entry := store.entry(file)) is not None]
        called = catalog.size_of(pair).name
    if any(_same(entry.path, path) for entry in entries for path in in_use if path):
        return Removed(called, in_use=True)
    for entry in entries:
        store.remove(entry)
    return Removed(called, kept=bool(entries) and all(entry.in_place for entry in entries))


def _same(one: Path, other: str) -> bool:
    """Whether two paths lead to one file, by whatever links."""
    try:
        return str(one) == other or one.samefile(other)
    except (OSError, ValueError):
        return False


def _files(paths: Sequence[str], stop: Stop) -> Iterator[Path]:
    """The files themselves, and the GGUFs in folders, links to other folders not followed; until it is stopped."""
    left = _MOST_FILES
    for path in map(Path, paths):
        if not path.is_dir():
            yield path
            continue
        for folder, _, names in os.walk(path):
            if stop.is_set():
                return
            if not left:
                break
            for name in [name for name in sorted(names) if name.lower().endswith(SUFFIX)][:left]:
                left -= 1
                yield Path(folder, name)
