"""Model files in a terminal: taken over from elsewhere, named, removed. Each job returns the exit code."""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final, cast

import click

from tandem.engine.gguf import GgufFacts, read_facts
from tandem.engine.pairing import check_pair
from tandem.errors import ModelError, TandemError, UsageError
from tandem.models import imports, pair_facts
from tandem.models.catalog import CatalogFile, CatalogPair
from tandem.models.imports import Found, How
from tandem.models.locks import PartLock
from tandem.models.overview import Overview
from tandem.models.progress import JobProgress, Report
from tandem.models.records import Installed, Quarantined
from tandem.models.state import FileState
from tandem.models.stop import Stop
from tandem.models.store import Store
from tandem.settings import Settings
from tandem.terminal import complain, interrupts
from tandem.terminal_progress import LOOK, TAKE, Attended, attend, one_line, size, view
from tandem.terminal_tables import Paper

STOPPED: Final = 128
"""To this the number of the signal that stopped a job is added, as shells do."""


@dataclass(frozen=True)
class Models:
    """The model folder of a command.

    Attributes:
        store: It.
        settings: The user's.
        given: It was named on the command line, and so has to be named again.
        catalog: A list of pairs that was named there; None for the app's.
    """

    store: Store
    settings: Settings
    given: bool = False
    catalog: Path | None = None

    def again(self, *words: str) -> str:
        """A command line that means this folder, for a shell."""
        folder = ["--dir", str(self.store.folder)] if self.given else []
        return spelled("models", *self._listed, *words, *folder)

    def chat(self, pair: CatalogPair) -> str:
        """The command line that chats with an installed pair."""
        if not self.given:
            return spelled("chat", *self._listed, "--pair", pair.key)
        target, drafter = self.store.place(pair.target), self.store.place(pair.drafter)
        if (found := self.store.pair_paths(pair)) is not None:
            target, drafter = found
        return spelled("chat", "--target", str(target), "--drafter", str(drafter))

    @property
    def _listed(self) -> list[str]:
        return [] if self.catalog is None else ["--catalog", str(self.catalog)]


def spelled(*words: str) -> str:
    """A command line of ours, as it is typed into a shell."""
    line = ["tandem", *words]
    return subprocess.list2cmdline(line) if os.name == "nt" else shlex.join(line)


_TAKEN: Final = {"copy": "copied", "link": "linked", "in-place": "used where it is"}


def import_files(models: Models, paths: Sequence[Path], how: How | None) -> int:
    """Takes over files that are on the disk; one that cannot be is said, and the others are taken nevertheless."""
    code, taken = 0, list[Installed]()
    for path in paths:
        try:
            looked = _look(models.store, path)
            if looked.result is None:
                return STOPPED + looked.signal
            found = looked.result
            how = how or (_asked_how(models.store, found) if not found.installed else None)
            ended = _take(models.store, found, how or "copy")
            if ended.result is None:
                print("Stopped. Import the file again to go on with its copy.", file=sys.stderr)
                return STOPPED + ended.signal
            taken.append(ended.result)
        except TandemError as error:
            said = complain(error)
            code = code or said
    _show_pair_of(models, taken)
    return code


def _look(store: Store, path: Path) -> Attended[Found]:
    stop = Stop()
    return attend(lambda report: imports.look(path, stop, report, store=store), stop.set, view(LOOK))


def _take(store: Store, found: Found, how: How) -> Attended[Installed]:
    stop, said = Stop(), list[str]()

    def work(report: Report) -> Installed:
        def heard(job: JobProgress) -> None:
            if job.sentence and job.sentence not in said:
                said.append(job.sentence)
            report(job)

        return imports.take(store, found, how, stop, heard)

    ended = attend(work, stop.set, view(TAKE))
    if (entry := ended.result) is not None:
        paper = Paper()
        facts = ", ".join(part for part in (found.architecture, found.quantisation) if part)
        what = f"the {found.role} of {found.key}" if found.key else f"a {found.role} ({facts})"
        done = _TAKEN[how] if not said else _TAKEN["copy"]
        if found.installed:
            done = "installed already"
        elif entry.path == found.path and (how != "in-place" or not entry.in_place):
            done = "taken where it is, in the model folder"
        paper.line(f"{found.path.name}: {what}, {done}", "green")
        if entry.path != found.path:
            paper.line(f"  {entry.path}", "dim")
        for note in (*said, *found.notes):
            paper.line(f"  {note}", "yellow")
    return ended


def _asked_how(store: Store, found: Found) -> How:
    """Copy, link or in place: asked where somebody is there to answer, else a copy, which is never wrong."""
    if found.path.is_relative_to(store.folder) or not (sys.stdin and sys.stdin.isatty() and sys.stderr.isatty()):
        return "copy"
    click.echo("copy: a copy of its own in the model folder; link: a second name for the same bytes,", err=True)
    click.echo("without taking room; in-place: used where it is, which has to stay as it is.", err=True)
    choice = click.Choice(["copy", "link", "in-place"])
    with interrupts(signal.default_int_handler):
        return cast("How", click.prompt("How shall it be taken?", type=choice, default="copy", err=True))


def _show_pair_of(models: Models, taken: Sequence[Installed]) -> None:
    """Whether what was imported makes a pair, where that is a question."""
    paper = Paper()
    for _size, pair in models.store.catalog.pairs():
        mine = any(entry is not None and entry in taken for entry in map(models.store.entry, pair.files))
        if mine and models.store.pair_paths(pair) is not None:
            paper.line(f"The pair {pair.key} is complete. Chat with it: {models.chat(pair)}")
            return
    targets = [entry for entry in taken if entry.role == "target"]
    drafters = [entry for entry in taken if entry.role == "drafter"]
    if len(targets) != 1 or len(drafters) != 1:
        return
    report = pair_facts.compare(targets[0].path, drafters[0].path)
    if report.is_pair:
        for note in report.notes:
            paper.line(f"Note: {note}")
        line = spelled("chat", "--target", report.target, "--drafter", report.drafter)
        paper.line(f"They are a pair. Chat with it: {line}")
    else:
        paper.line(f"They are not a pair. {report.sentence} {report.remedy}", "yellow")


def chats(found: Overview) -> dict[str, str]:
    """How to chat with files that are of no pair of the catalog, by their paths: alone, or with a drafter that fits.

    Only headers are read.
    """
    others = [one for one in found.imported if one.state is FileState.INSTALLED and one.path]
    ours = [one for pair in found.pairs for one in pair.files if one.state is FileState.INSTALLED and one.path]
    targets = [Path(one.path or "") for one in others if one.role != "drafter"]
    drafters = [Path(one.path or "") for one in (*others, *ours) if one.role == "drafter"] if targets else []
    heads = dict[Path, GgufFacts]()
    for path in (*targets, *drafters):
        with suppress(ModelError):  # it has changed just now
            heads[path] = read_facts(path)
    lines = dict[str, str]()
    for target in filter(heads.__contains__, targets):
        fits = [drafter for drafter in drafters if drafter in heads and _are_pair(heads[target], heads[drafter])]
        lines[str(target)] = spelled("chat", "--target", str(target), *(["--drafter", str(fits[0])] if fits else []))
    return lines


def _are_pair(target: GgufFacts, drafter: GgufFacts) -> bool:
    try:
        check_pair(target, drafter)
    except ModelError:
        return False
    return True


@dataclass
class Chosen:
    """What names on a command line mean."""

    entries: list[Installed]
    parts: list[CatalogFile]
    aside: list[Quarantined]


def chosen(store: Store, names: Sequence[str]) -> Chosen:
    """Pairs by their keys, files by their names or paths.

    Raises:
        UsageError: There is nothing of that name, or more than one file.
    """
    found = Chosen([], [], [])
    installed, aside = store.installed(), store.quarantined()
    files = [file for _size, pair in store.catalog.pairs() for file in pair.files]
    for name in names:
        pair = store.catalog.pair(name)
        if pair is not None:
            found.entries += [entry for file in pair.files if (entry := store.entry(file)) is not None]
            found.parts += [file for file in pair.files if store.part_bytes(file)]
            continue
        path = Path(os.path.abspath(name))  # noqa: PTH100  (a link is a name of its own)
        entries = [one for one in installed if one.path == path] or [one for one in installed if one.path.name == name]
        parts = [file for file in files if store.part(file) == path or (not entries and file.file == name)]
        parts = [file for file in parts if store.part_bytes(file)]
        put_aside = [one for one in aside if Path(one.path) == path or Path(one.path).name == name]
        count = len(entries) + len(parts) + len(put_aside)
        if count > 1:
            raise UsageError(f"There are {count} files called {name}.", "Give the path of the one that you mean.")
        if not count:
            raise UsageError(
                f"There is no pair and no file called {one_line(name)} here.", "See what there is: tandem models list."
            )
        found.entries, found.parts = found.entries + entries, found.parts + parts
        found.aside += put_aside
    return found


def remove_files(models: Models, names: Sequence[str], sure: bool) -> int:
    """Deletes files and parts; of files that are used in place only the entries."""
    store, paper = models.store, Paper()
    found = chosen(store, names)
    pairs = filter(None, map(store.catalog.pair, names))
    for file in (*found.parts, *(file for pair in pairs for file in pair.files)):
        PartLock(store.part(file)).require_free()
    rows = [(one.path.name, 0 if one.in_place else one.bytes) for one in found.entries]
    rows += [(store.part(file).name, store.part_bytes(file)) for file in found.parts]
    rows += [(Path(one.path).name, one.bytes) for one in found.aside]
    if not rows:
        paper.line("Nothing of it is here.")
        return 0
    if not sure:
        if not (sys.stdin and sys.stdin.isatty()):
            raise UsageError(
                "Nobody can be asked here, so nothing was removed.", "Say --yes to remove it without a question."
            )
        for name, amount in rows:
            click.echo(one_line(f"{name}  {size(amount)}" if amount else f"{name}  stays where it is"), err=True)
        with interrupts(signal.default_int_handler):
            listed = len(found.entries) == len(rows) and all(entry.in_place for entry in found.entries)
            sure = click.confirm("Take it off the list? The file stays." if listed else "Remove this?", err=True)
        if not sure:
            paper.line("Nothing was removed.")
            return 0
    for entry in found.entries:
        store.remove(entry)
        ending = "taken off the list; the file stays" if entry.in_place else f"removed, {size(entry.bytes)}"
        paper.line(f"{entry.path.name}: {ending}")
    for file in found.parts:
        amount = store.part_bytes(file)
        store.remove_part(file)
        paper.line(f"{store.part(file).name}: removed, {size(amount)}")
    for one in found.aside:
        store.remove_quarantined(one)
        paper.line(f"{Path(one.path).name}: removed, {size(one.bytes)}")
    return 0
