"""Models in a terminal, as tables and as JSON: what is here, what two files have in common, what a check found."""

from __future__ import annotations

import io
import sys
from collections.abc import Mapping, Sequence
from typing import Any, Final

from rich.console import Console
from rich.table import Table
from rich.text import Text

from tandem.models.catalog import Catalog
from tandem.models.overview import FileView, Overview, PairView
from tandem.models.pair_facts import PairReport
from tandem.models.records import Quarantined, builtins, to_json
from tandem.models.repack import RepackReport
from tandem.models.state import FileState
from tandem.models.verify import Checked
from tandem.terminal_progress import one_line, size

NARROW: Final = 72
"""Columns below which a row takes two lines."""

WIDE: Final = 110
"""Columns from which on source and licence have their own."""

_MAY_WRAP: Final = ("Model", "Fact")
_PLAIN_WIDTH: Final = 1000
_STATES: Final = {
    FileState.ABSENT: ("not here", "dim"),
    FileState.QUEUED: ("queued", "cyan"),
    FileState.RESOLVING: ("asking the Hub", "cyan"),
    FileState.TRANSFERRING: ("being downloaded by another Tandem", "cyan"),  # nothing else runs while it is listed
    FileState.PAUSED: ("paused", "yellow"),
    FileState.FAILED: ("failed", "red"),
    FileState.CHECKING: ("checking", "cyan"),
    FileState.INSTALLED: ("installed", "green"),
    FileState.VERIFYING: ("verifying", "cyan"),
    FileState.CHANGED: ("changed", "red"),
    FileState.MISSING: ("missing", "red"),
    FileState.QUARANTINED: ("set aside", "red"),
}
_LEFT: Final = ("changed, not used", "red")  # what set aside is for a file in place, which is not ours to move


def print_json(value: Any) -> None:
    """One object on one line, as every `--json` prints it."""
    print(to_json(value, indent=None).decode(), end="", flush=True)


class Paper:
    """Stdout: with colours and in its width on a terminal, plain and never broken elsewhere."""

    def __init__(self) -> None:
        self.console: Final = Console(highlight=False)
        self.plain: Final = sys.stdout is None or not sys.stdout.isatty() or self.console.is_dumb_terminal
        self.width: Final = _PLAIN_WIDTH if self.plain else self.console.width

    def write(self, what: Table | Text) -> None:
        """Prints it."""
        if not self.plain:
            self.console.print(what, soft_wrap=isinstance(what, Text))
            return
        text = io.StringIO()
        Console(file=text, width=_PLAIN_WIDTH, color_system=None, force_terminal=False).print(what)
        for line in text.getvalue().splitlines():
            print(line.rstrip())

    def line(self, text: str = "", style: str = "") -> None:
        """Prints a line."""
        self.write(Text(one_line(text), style=style))


def overview_json(found: Overview) -> Any:
    """The same as plain values; a size that nobody knows is null."""
    plain = builtins(found)
    for pair in plain["pairs"]:
        for file in pair["files"]:
            file["total"] = file["total"] or None
    return plain


def show_overview(found: Overview, catalog: Catalog, chats: Mapping[str, str]) -> None:
    """Every pair of the catalog, other files, what was set aside, and the folder.

    Args:
        found: It.
        catalog: What there is to get.
        chats: The command line that chats with another file, by its path.
    """
    paper = Paper()
    _show_pairs(paper, found.pairs, catalog)
    troubled = [pair for pair in found.pairs if pair.sentence]
    for pair in troubled:
        paper.line()
        paper.line(pair.key, "bold")
        _show_problem(paper, pair.sentence, pair.remedy)
    if found.imported:
        paper.line()
        paper.line("Other files", "dim")
        for file in found.imported:
            _show_file(paper, file, chats.get(file.path or "", ""))
    if found.quarantined:
        paper.line()
        paper.line("Set aside", "dim")
        for one in found.quarantined:
            _show_quarantined(paper, one)
    paper.line()
    paper.line(f"Model folder: {found.folder} · {size(found.free)} free", "dim")


def show_pair(report: PairReport) -> None:
    """Two files' facts side by side, the verdict in words, notes."""
    paper = Paper()
    if report.facts and paper.width >= NARROW:
        table = _grid("Fact", "Target", "Drafter", "")
        for fact in report.facts:
            verdict = Text("fits", style="green") if fact.fits else Text("does not fit", style="bold red")
            table.add_row(fact.name, fact.target or "—", fact.drafter or "—", verdict)
        paper.write(table)
        paper.line()
    elif report.facts:
        for fact in report.facts:
            paper.line(fact.name)
            both = fact.target if fact.target == fact.drafter else f"{fact.target or '—'} and {fact.drafter or '—'}"
            if not fact.fits:
                paper.line(f"  does not fit: {both}", "bold red")
                continue
            said = f"  fits: {both}"
            paper.line(said if len(said) <= paper.width else f"  fits: {fact.target}", "dim")
        paper.line()
    if report.facts:  # else a file is not there, or is none that can be judged: the error says so
        paper.line("They are a pair." if report.is_pair else "They are not a pair.", "bold")
    for note in report.notes:
        paper.line(f"Note: {note}")


def show_checked(checked: Sequence[Checked]) -> None:
    """Each file with its verdict, and how many are right."""
    paper = Paper()
    table = _grid()
    for one in checked:
        left = one.state is FileState.QUARANTINED and one.moved_to is None
        word, style = ("right", "green") if one.good else _LEFT if left else _STATES[one.state]
        table.add_row(Text(word, style=style), size(one.bytes), one_line(one.name))
    paper.write(table)
    good, everything = sum(one.good for one in checked), len(checked)
    paper.line(f"{good} of {everything} {'file is' if everything == 1 else 'files are'} right.", "bold")
    for one in checked:
        if one.moved_to is not None:
            paper.line(f"{one.name} was set aside: {one.moved_to}")


def show_repacked(report: RepackReport) -> None:
    """What was made, and the proof that it is exact."""
    paper = Paper()
    table = _grid()
    equal = "all equal, bit for bit" if report.bits_equal else "not all equal"
    error, other = report.relative_error, report.q8_0_relative_error
    for name, value in (
        ("File", report.out),
        ("Size", f"{report.bytes:,} bytes; {report.q8_0_bytes:,} with Q8_0 matrices"),
        ("Matrices", f"{report.matrices} of {report.tensors} tensors, {report.weights:,} weights"),
        ("Blocks off the grid", f"{report.off_grid:,} of {report.blocks:,}"),
        ("Weights against bf16", equal),
        ("Relative error", f"{error.rms:.3g} rms, {error.max:.3g} at most"),
        ("The same for Q8_0", f"{other.rms:.3g} rms, {other.max:.3g} at most"),
        ("SHA-256", report.sha256),
    ):
        table.add_row(Text(name, style="dim"), one_line(value))
    paper.write(table)


def share(pair: PairView) -> int:
    """How much of a pair is here, in per cent, rounded down."""
    total = sum(file.total for file in pair.files)
    return min(100, pair.on_disk * 100 // total) if total else 0


def _show_pairs(paper: Paper, pairs: Sequence[PairView], catalog: Catalog) -> None:
    wide, narrow = paper.width >= WIDE, paper.width < NARROW
    table = _grid("Pair", "State", "Size", "Model", *(["Source", "Licence"] if wide else []))
    for view in pairs:
        pair = catalog.pair(view.key)
        assert pair is not None
        word, style = _STATES[view.state]
        if view.state in {FileState.PAUSED, FileState.TRANSFERRING} and all(file.total for file in view.files):
            word = f"{word}, {share(view)} %"
        amount = _size(view)
        model = f"{catalog.size_of(pair).name}, {pair.quantisation}"
        if narrow:
            paper.write(Text.assemble((view.key, "bold"), ": ", (word, style), f", {amount}"))
            paper.line(f"  {model}", "dim")
            continue
        row: list[Text | str] = [Text(view.key, style="bold"), Text(word, style=style), amount, model]
        table.add_row(*row, *([pair.source, pair.licence] if wide else []))
    if not narrow:
        paper.write(table)


def _size(view: PairView) -> str:
    """The size of a pair, as far as it is known."""
    known = [file.total for file in view.files if file.total]
    if not known:
        return "unknown"
    return size(sum(known)) if len(known) == len(view.files) else f"> {size(sum(known))}"


def _show_file(paper: Paper, file: FileView, chat: str) -> None:
    word, style = _LEFT if file.in_place and file.state is FileState.QUARANTINED else _STATES[file.state]
    kind = ", ".join(part for part in (file.role, file.architecture, file.quantisation) if part)
    where = "used in place" if file.in_place else ""
    licence = file.licence or "licence unknown"
    head = Text.assemble((one_line(file.name), "bold"), ": ", (word, style), f", {size(file.total)}")
    paper.write(head)
    paper.line("  " + ", ".join(part for part in (kind, licence, where) if part), "dim")
    if file.path:
        paper.line(f"  {file.path}", "dim")
    _show_problem(paper, file.sentence, file.remedy)
    if chat:
        paper.line(f"  Chat with it: {chat}")


def _show_quarantined(paper: Paper, one: Quarantined) -> None:
    paper.write(Text.assemble((one_line(one.name), "bold"), f", {size(one.bytes)}"))
    paper.line(f"  {one.path}", "dim")
    _show_problem(paper, one.sentence, one.remedy)


def _show_problem(paper: Paper, sentence: str, remedy: str) -> None:
    if sentence:
        paper.line(f"  {sentence} {remedy}".rstrip(), "yellow")


def _grid(*headers: str) -> Table:
    """A table without lines."""
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), show_header=bool(headers), header_style="dim")
    for header in headers:
        table.add_column(header, no_wrap=header not in _MAY_WRAP, overflow="fold")
    return table
