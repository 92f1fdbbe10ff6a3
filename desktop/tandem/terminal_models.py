"""The models' jobs in a terminal: downloading, verifying, importing, removing, comparing. Nothing here reads flags.

Each returns the exit code. What speaks to the Hub takes a while to import and is imported when a download starts.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from msgspec.structs import replace

from tandem.errors import ModelError, TandemError
from tandem.models import pair_facts
from tandem.models.catalog import CatalogPair
from tandem.models.errors import PASSING, WRONG
from tandem.models.locks import PartLock
from tandem.models.network import Network
from tandem.models.overview import Overview, PairView, overview
from tandem.models.progress import FileProgress, JobProgress, Report
from tandem.models.records import Installed
from tandem.models.repack import OffGrid, RepackReport, repack
from tandem.models.state import FileState
from tandem.models.stop import Stop
from tandem.models.store import Store
from tandem.models.verify import verify
from tandem.terminal import complain
from tandem.terminal_files import STOPPED, Models, chats, chosen
from tandem.terminal_progress import DOWNLOAD, REPACK, VERIFY, attend, one_line, size, view
from tandem.terminal_tables import (
    Paper,
    overview_json,
    print_json,
    show_checked,
    show_overview,
    show_pair,
    show_repacked,
)


def list_models(models: Models, as_json: bool) -> int:
    """What is here."""
    found = _with_others(models.store, overview(models.store))
    if as_json:
        print_json(overview_json(found))
    else:
        show_overview(found, models.store.catalog, chats(found))
    return 0


def _with_others(store: Store, found: Overview) -> Overview:
    """With what another Tandem is downloading just now: it holds the locks of those parts."""

    def seen(view: PairView) -> PairView:
        pair = store.catalog.pair(view.key)
        assert pair is not None
        held = [PartLock(store.part(file)).held() for file in pair.files]
        target, drafter = (
            replace(file, state=FileState.TRANSFERRING) if busy else file
            for file, busy in zip(view.files, held, strict=True)
        )
        return replace(view, state=FileState.TRANSFERRING, files=(target, drafter)) if any(held) else view

    return replace(found, pairs=tuple(map(seen, found.pairs)))


def installed_pair(store: Store, pair: CatalogPair) -> tuple[Path, Path]:
    """Both files of a pair.

    Raises:
        ModelError: They are not both installed, or no longer what was checked.
    """
    found = store.pair_paths(pair)
    if found is not None:
        return found
    entries = [store.entry(file) for file in pair.files]
    if all(entries):
        names = [entry.path.name for entry in entries if entry is not None and not _installed(store, entry)]
        bad = names[0] if names else pair.target.file  # it was put right a moment ago
        if any(entry is not None and entry.verified_at is None and entry.path.name == bad for entry in entries):
            raise ModelError(
                "missing", f"{one_line(bad)} has not been verified yet.", f"Verify it: tandem models verify {pair.key}."
            )
        raise ModelError(
            "missing",
            f"{one_line(bad)} of the pair {pair.key} is not what was installed.",
            "See what is wrong with tandem models list, then verify it or get it again.",
        )
    raise _not_installed(pair)


def _not_installed(pair: CatalogPair) -> ModelError:
    return ModelError(
        "missing", f"The pair {pair.key} is not installed.", f"Get it with tandem models download {pair.key}."
    )


def download(models: Models, pair: CatalogPair, endpoint: str | None) -> int:
    """Gets both files of a pair."""
    network = Network.chosen(models.settings, endpoint)
    if models.store.pair_paths(pair) is not None:
        return _ready(models, pair, "is installed already")
    # Only here: the Hub's client and the keyring take longer to import than all else that the terminal does.
    from tandem.models import tokens
    from tandem.models.download import Download, Options
    from tandem.models.hub import Hub

    def line(key: str) -> str:
        return models.again("download", key, *(["--endpoint", endpoint] if endpoint else []))

    others = [one.key for one in models.store.catalog.size_of(pair).pairs if one.key != pair.key]
    other = line(others[0]) if others else ""
    with Hub(network, tokens.find()) as hub:
        pump = _Pump()
        job = Download(pair, models.store, hub, Options.chosen(models.settings), pump)

        def run(report: Report) -> JobProgress:
            pump.report = report
            return job.run()

        try:
            # In offline mode nobody is asked, and so nobody is said to be.
            ended = attend(run, job.pause, view(DOWNLOAD, quiet=network.offline, stopping="Pausing…"))
        except TandemError as error:
            code = complain(error, other)
            _kept(models, pair, line(pair.key), getattr(error, "fault", ""))
            return code
    if models.store.pair_paths(pair) is not None:
        return _ready(models, pair, f"is installed in {models.store.folder}")
    _kept(models, pair, line(pair.key))
    return STOPPED + ended.signal


class _Pump:
    """Passes a download's reports on, once it is known where to."""

    report: Report | None = None

    def __call__(self, job: JobProgress) -> None:
        if self.report is not None:
            self.report(job)


def _ready(models: Models, pair: CatalogPair, how: str) -> int:
    paper = Paper()
    paper.line(f"{models.store.catalog.size_of(pair).name} ({pair.key}) {how}.", "green")
    paper.line(f"Chat with it: {models.chat(pair)}")
    return 0


def _kept(models: Models, pair: CatalogPair, again: str, fault: str | None = None) -> None:
    """What of a pair is here, and how to go on, where that makes sense.

    Args:
        models: Where it is.
        pair: It.
        again: The command line.
        fault: Why it ended; None where it was asked to.
    """
    paper, store = Paper(), models.store
    here = 0
    for file in pair.files:
        entry = store.find(file)
        here += entry.bytes if entry is not None else store.part_bytes(file)
    anew = fault in WRONG - {"pin-differs"}
    if here:
        whole = f" of {size(max(here, pair.size))}" if all(file.size for file in pair.files) else ""
        paper.line(f"Kept: {size(here)}{whole}.")
    elif fault is None or fault in PASSING:
        paper.line("Kept: nothing so far.")
    elif not anew:
        return
    paper.line(f"{'Start again' if anew else 'Go on'} with: {again}")


def verify_files(models: Models, names: Sequence[str], as_json: bool) -> int:
    """Hashes installed files again."""
    for pair in filter(None, map(models.store.catalog.pair, names)):
        if not any(map(models.store.entry, pair.files)):
            raise _not_installed(pair)
    entries = chosen(models.store, names).entries if names else list(models.store.installed())
    stop = Stop()
    ended = attend(lambda report: verify(models.store, entries, stop, report), stop.set, view(VERIFY, quiet=as_json))
    if ended.result is None:
        print("Stopped. What was verified before is kept.", file=sys.stderr)
        return STOPPED + ended.signal
    checked = ended.result
    bad = [one for one in checked if not one.good]
    wrong = any(one.state is not FileState.INSTALLED for one in bad)  # not what nothing can be compared with
    if as_json:
        print_json({"ok": not wrong, "files": checked})
    elif checked:
        show_checked(checked)
    else:
        print("There is no installed file to verify.")
    for one in bad:
        complain(ModelError("corrupt", one.sentence, one.remedy))
    return ModelError.exit_code if wrong else 0


def compare(target: Path, drafter: Path, as_json: bool) -> int:
    """Are two files a pair, and why not."""
    report = pair_facts.compare(target, drafter)
    if as_json:
        print_json(report)
    else:
        show_pair(report)
    return 0 if report.is_pair else complain(ModelError("not-a-pair", report.sentence, report.remedy))


def repack_drafter(folder: Path, out: Path, as_json: bool) -> int:
    """Makes an exact Q4_0 GGUF of a drafter's safetensors."""
    stop = Stop()

    def work(report: Report) -> RepackReport:
        def tell(done: float) -> None:
            progress = FileProgress(folder.name, FileState.CHECKING, round(done * 1000), 1000)
            report(JobProgress("repack", (progress,)))

        return repack(folder, out, stop, tell)

    try:
        ended = attend(work, stop.set, view(REPACK, quiet=as_json, amounts=False))
    except OffGrid as error:
        if as_json:
            print_json({"off_grid": error.off_grid, "blocks": error.blocks, "tensors": error.tensors})
        return complain(error)
    if ended.result is None:
        print("Stopped. Nothing was written.", file=sys.stderr)
        return STOPPED + ended.signal
    if as_json:
        print_json(ended.result)
    else:
        show_repacked(ended.result)
    return 0


def _installed(store: Store, entry: Installed) -> bool:
    return store.state(entry) is FileState.INSTALLED
