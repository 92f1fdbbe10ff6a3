"""For any schedule of faults: the right file, or a clear state from which pressing Resume reaches it."""

from __future__ import annotations

import tempfile
from pathlib import Path

import msgspec
from hypothesis import HealthCheck, event, given, settings
from hypothesis import strategies as st

from support.fetching import QUICK, Fetching, fetching
from support.hub import FakeHub
from support.hub_faults import TRANSFER_FAULTS, Fault, Kind, Route
from tandem.models.progress import JobProgress
from tandem.models.state import FileState

OPTIONS = msgspec.structs.replace(QUICK, piece_bytes=1 << 13, stall_s=1.0, tries=3, backoff_s=0.0005)
LASTING = msgspec.structs.replace(OPTIONS, stall_s=30.0)
AT_THE_HUB: tuple[Kind, ...] = ("500", "503", "429-bare", "401", "gated", "no-repo", "portal", "refuse", "garbage")

ENDED = {FileState.INSTALLED, FileState.PAUSED, FileState.FAILED, FileState.QUARANTINED, FileState.ABSENT}


def some(kinds: tuple[Kind, ...], most: int) -> st.SearchStrategy[list[Fault | None]]:
    """Answers, of which some are wrong."""
    fault = st.builds(
        Fault,
        st.sampled_from(kinds),
        after=st.integers(0, 40_000),
        at=st.one_of(st.none(), st.none(), st.integers(0, 40_000)),
        extra=st.integers(1, 100),
    )
    return st.lists(st.one_of(st.none(), fault), max_size=most)


def check_clear(job: Fetching, final: JobProgress) -> None:
    """Nothing is claimed that is not so."""
    job.check_steps()
    states = [file.state for file in final.files]
    assert set(states) <= ENDED
    assert not final.running
    if states != [FileState.INSTALLED] * 2:
        assert final.sentence.endswith(".")
        assert final.remedy.endswith(".")
        assert final.fault
    for index, file in enumerate(final.files):
        place, part = job.store.place(job.file(index)), job.part(index)
        assert (job.store.find(job.file(index)) is not None) == (file.state is FileState.INSTALLED)
        assert place.exists() == (file.state is FileState.INSTALLED)
        if file.state is FileState.INSTALLED:
            assert place.read_bytes() == job.contents[index]
        if file.state is FileState.PAUSED and part.exists():
            assert file.done <= part.stat().st_size


def press_resume(job: Fetching) -> None:
    # On a line that works. Wrong bytes that an earlier run kept show at the end only: then that is said.
    final = job.run(LASTING)
    check_clear(job, final)
    if final.fault == "wrong-hash":
        check_clear(job, job.run(LASTING))
    job.check_installed()


def resume(job: Fetching) -> None:
    """Presses Resume on a line that works."""
    final = job.run(LASTING)
    check_clear(job, final)
    if final.files[0].state is FileState.QUARANTINED or final.files[1].state is FileState.QUARANTINED:
        # Wrong bytes had come in before; that is said, and now it begins anew.
        assert final.fault == "wrong-hash"
        check_clear(job, job.run(LASTING))
    job.check_installed()


@given(
    storage=some(TRANSFER_FAULTS, 12),
    info=some(AT_THE_HUB, 3),
    resolve=some((*AT_THE_HUB, "other-commit", "wrong-linked-size", "redirect-loop"), 3),
    direct=st.booleans(),
    connections=st.integers(1, 4),
    runs=st.integers(1, 3),
)
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_schedule_of_faults(
    storage: list[Fault | None],
    info: list[Fault | None],
    resolve: list[Fault | None],
    direct: bool,
    connections: int,
    runs: int,
) -> None:
    with FakeHub(direct=direct) as hub, tempfile.TemporaryDirectory() as folder:
        job = fetching(hub, Path(folder) / "models", (40_000, 20_000))
        scripts: list[tuple[Route, list[Fault | None]]] = [("storage", storage), ("info", info), ("resolve", resolve)]
        for route, faults in scripts:
            hub.script(route, faults)
        for _run in range(runs):
            final = job.run(msgspec.structs.replace(OPTIONS, connections=connections))
            check_clear(job, final)
            event(f"ended {final.fault or 'well'}")
        hub.behave()
        press_resume(job)


@given(
    silences=st.lists(
        st.builds(Fault, st.sampled_from(("stall", "silent", "drip")), after=st.integers(0, 40_000)), max_size=3
    ),
    others=some(TRANSFER_FAULTS, 4),
    connections=st.integers(1, 4),
)
@settings(max_examples=8, deadline=None)
def test_silences_among_other_faults(silences: list[Fault], others: list[Fault | None], connections: int) -> None:
    with FakeHub() as hub, tempfile.TemporaryDirectory() as folder:
        job = fetching(hub, Path(folder) / "models", (40_000, 20_000))
        hub.script("storage", [*silences, *others])
        options = msgspec.structs.replace(OPTIONS, connections=connections, stall_s=0.3)
        check_clear(job, job.run(options))
        hub.behave()
        press_resume(job)
