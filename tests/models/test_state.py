"""The states of a file: every step, allowed and refused; and that the store and its jobs make allowed ones only."""

from __future__ import annotations

import itertools
import re
from contextlib import suppress
from pathlib import Path

import pytest

import tandem
from support.hub import FakeHub
from support.hub_faults import Kind
from support.modelfiles import catalog_of, drafter_bytes, flip, install, install_pair, pair_of, put_part, target_bytes
from tandem.models import imports
from tandem.models.catalog import CatalogPair
from tandem.models.download import Download, Options
from tandem.models.errors import TransferError
from tandem.models.hub import Hub
from tandem.models.job import Job
from tandem.models.network import Network
from tandem.models.overview import overview
from tandem.models.progress import FileProgress, JobProgress
from tandem.models.state import ACTIVE, TRANSITIONS, FileState, follows
from tandem.models.stop import Stop, Stopped
from tandem.models.store import Store
from tandem.models.verify import verify

S = FileState
DOCS = Path(tandem.__file__).parents[2] / "docs" / "models.md"


def drawn() -> set[tuple[str, str]]:
    found = re.findall(r"^ +(\w+) --> (\w+)", DOCS.read_text(encoding="utf-8"), re.MULTILINE)
    return {(before, after) for before, after in found}


def test_the_drawing_in_the_docs_is_the_table() -> None:
    assert drawn() == {(str(before), str(after)) for before, row in TRANSITIONS.items() for after in row}


@pytest.mark.parametrize(("before", "after"), list(itertools.product(S, S)))
def test_every_step_is_allowed_or_refused_as_it_is_drawn(before: S, after: S) -> None:
    allowed = before == after or (str(before), str(after)) in drawn()
    assert follows(before, after) is allowed
    told: list[JobProgress] = []
    work = Job("verify", [FileProgress("a.gguf", before)], told.append)
    work.tell()
    if allowed:
        work.step(0, after)
        assert told[-1].files[0].state is after
        return
    with pytest.raises(ValueError, match="cannot become"):
        work.step(0, after)
    assert told[-1].files[0].state is before


def test_every_state_can_be_reached_and_left() -> None:
    assert set(TRANSITIONS) == set(S)
    reached, queue = {S.ABSENT}, [S.ABSENT]
    while queue:
        new = TRANSITIONS[queue.pop()] - reached
        reached |= new
        queue += new
    assert reached == set(S)
    for state in S:  # nothing is stuck: from everywhere one can get rid of it, or begin again
        seen, queue = {state}, [state]
        while queue:
            new = TRANSITIONS[queue.pop()] - seen
            seen |= new
            queue += new
        assert S.ABSENT in seen
    assert not any(S.ABSENT in TRANSITIONS[state] and state not in seen for state in ACTIVE)


def steps_of(told: list[JobProgress]) -> list[FileState]:
    """A file's states in the order in which they were told, each once; every step is an allowed one."""
    states = [progress.files[0].state for progress in told]
    kept = [state for at, state in enumerate(states) if at == 0 or state is not states[at - 1]]
    assert all(follows(before, after) for before, after in itertools.pairwise(kept))
    return kept


def test_an_imported_file_goes_over_checking(tmp_path: Path) -> None:
    pair = pair_of()
    store = Store(tmp_path / "models", catalog_of(pair))
    source = tmp_path / "any name.gguf"
    source.write_bytes(target_bytes())
    told: list[JobProgress] = []
    imports.take(store, imports.look(source, store=store), "copy", report=told.append)
    assert steps_of(told) == [S.ABSENT, S.CHECKING, S.INSTALLED]


def test_states_that_the_disk_shows_follow_each_other_through_a_files_life(tmp_path: Path) -> None:
    pair = pair_of()
    store = Store(tmp_path, catalog_of(pair))
    seen: list[FileState] = []

    def look() -> FileState:
        seen.append(overview(store).pairs[0].files[0].state)
        return seen[-1]

    assert look() is S.ABSENT
    part = put_part(store, pair.target, target_bytes()[:1000])
    seen += [S.QUEUED, S.RESOLVING, S.TRANSFERRING]  # the download's own, which nothing on the disk shows
    assert look() is S.PAUSED
    part.write_bytes(target_bytes())
    seen += [S.QUEUED, S.RESOLVING, S.CHECKING]
    entry = install(store, pair.target, target_bytes())
    assert look() is S.INSTALLED
    entry.path.touch()
    assert look() is S.CHANGED
    told: list[JobProgress] = []
    verify(store, report=told.append)
    seen += steps_of(told)
    assert look() is S.INSTALLED
    away = entry.path.rename(tmp_path / "away")
    assert look() is S.MISSING
    away.rename(entry.path)
    assert look() is S.INSTALLED
    flip(entry.path)
    told.clear()
    verify(store, report=told.append)
    seen += steps_of(told)
    assert look() is S.QUARANTINED
    seen.append(S.QUEUED)
    for before, after in itertools.pairwise(seen):
        assert follows(before, after), (before, after)


@pytest.mark.parametrize("touched", [False, True])
def test_a_stopped_verify_leaves_a_file_as_it_was(tmp_path: Path, touched: bool) -> None:
    pair = pair_of()
    store = Store(tmp_path, catalog_of(pair))
    target, _drafter = install_pair(store, pair)
    if touched:
        target.path.touch()
    before = store.state(target)
    stop = Stop()
    stop.set("cancel")
    told: list[JobProgress] = []
    with pytest.raises(Stopped):
        verify(store, stop=stop, report=told.append)
    assert steps_of(told) == [before, S.VERIFYING, before]
    assert store.state(target) is before


def test_a_wrong_file_is_never_installed_on_the_way_to_quarantine(tmp_path: Path) -> None:
    pair = pair_of()
    store = Store(tmp_path, catalog_of(pair))
    with pytest.raises(TransferError) as caught:
        install(store, pair.target, drafter_bytes())
    assert caught.value.fault == "wrong-header"
    assert store.installed() == ()
    assert overview(store).pairs[0].files[0].state is S.QUARANTINED


def put_on(hub: FakeHub, pair: CatalogPair) -> None:
    for file, data in zip(pair.files, (target_bytes(), drafter_bytes()), strict=True):
        hub.add(file.repo, file.file, data)


def run(hub: FakeHub, store: Store, pair: CatalogPair) -> list[list[FileState]]:
    """Downloads a pair, whatever comes of it; each file's states, every step of which is an allowed one."""
    told: list[JobProgress] = []
    options = Options(connections=1, tries=1, backoff_s=0.0)
    with Hub(Network.chosen(endpoint=hub.endpoint, environ={})) as client:
        download = Download(pair, store, client, options, told.append)
        told.append(download.progress)
        with suppress(TransferError):
            download.run()
    told.append(download.progress)
    found = []
    for at in range(2):
        states = [progress.files[at].state for progress in told]
        assert all(follows(before, after) for before, after in itertools.pairwise(states)), states
        found.append([state for number, state in enumerate(states) if not number or state is not states[number - 1]])
    return found


@pytest.mark.parametrize(
    ("fault", "states", "rest"),
    [
        ("drop", [S.ABSENT, S.QUEUED, S.RESOLVING, S.TRANSFERRING, S.FAILED], S.PAUSED),
        ("gated", [S.ABSENT, S.QUEUED, S.RESOLVING, S.TRANSFERRING, S.FAILED], S.ABSENT),
        ("no-repo", [S.ABSENT, S.QUEUED, S.RESOLVING, S.FAILED], S.ABSENT),
        ("503", [S.ABSENT, S.QUEUED, S.RESOLVING, S.TRANSFERRING, S.FAILED], S.ABSENT),
        (
            "wrong-bytes",
            [S.ABSENT, S.QUEUED, S.RESOLVING, S.TRANSFERRING, S.CHECKING, S.QUARANTINED],
            S.QUARANTINED,
        ),
    ],
)
def test_a_download_that_fails_and_goes_on_makes_allowed_steps_only(
    hub: FakeHub, tmp_path: Path, fault: Kind, states: list[FileState], rest: FileState
) -> None:
    # Row 53 of the field problems: pause, failure, resume, done.
    pair = pair_of()
    store = Store(tmp_path, catalog_of(pair))
    put_on(hub, pair)
    hub.misbehave(fault, times=20, at=9000 if fault in {"drop", "wrong-bytes"} else None)
    assert run(hub, store, pair)[0] == states
    assert overview(store).pairs[0].files[0].state is rest
    hub.behave()
    after = run(hub, store, pair)
    assert [one[-1] for one in after] == [S.INSTALLED, S.INSTALLED]
    assert overview(store).pairs[0].state is S.INSTALLED
    assert run(hub, store, pair) == [[S.INSTALLED], [S.INSTALLED]]
