"""Whatever the hosts do wrong: the right file, or a sentence and a state from which Resume reaches it.

Rows 6 and 7 of the field's problems are here, 8 and 10 in `test_download_trust.py`.
"""

from __future__ import annotations

import threading
from pathlib import Path

import msgspec
import pytest

from support.fetching import QUICK, Fetching, fetching
from support.hub import FakeHub
from support.hub_faults import Fault, Kind, Route
from tandem.errors import TandemError
from tandem.models.state import FileState

SHORT = msgspec.structs.replace(QUICK, stall_s=0.5)
ONE = msgspec.structs.replace(QUICK, connections=1)


@pytest.fixture
def job(hub: FakeHub, tmp_path: Path) -> Fetching:
    return fetching(hub, tmp_path / "models")


# --- gone a moment later


@pytest.mark.parametrize(
    "kind",
    [
        "drop",
        "reset",
        "refuse",
        "500",
        "503",
        "429-bare",
        "gzip",
        "short",
        "long",
        "no-length",
        "garbage",
        "expired",
        "404",
        "416",
        "wrong-content-range",
        "lying-content-range",
        "wrong-total",
        "no-content-range",
        "200-to-range",
        "no-range",
        "changed-etag",
    ],
)
def test_what_is_wrong_once_is_got_over(job: Fetching, hub: FakeHub, kind: Kind) -> None:
    hub.misbehave(kind, at=300_000)
    job.run()
    job.check_installed()


@pytest.mark.parametrize("place", [0, 1, 3, 65_535, 65_536, 700_001, 1_048_000])
def test_a_connection_can_drop_at_any_byte(job: Fetching, hub: FakeHub, place: int) -> None:
    hub.misbehave("drop", at=place, times=2)
    job.run()
    job.check_installed()


def test_only_what_is_missing_of_a_range_is_asked_for_again(job: Fetching, hub: FakeHub) -> None:
    hub.misbehave("drop", at=100_000)
    job.run(ONE)
    job.check_installed()
    assert (100_000, 131_072) in job.ranges()
    assert (65_536, 131_072) in job.ranges()


@pytest.mark.parametrize("where", ["info", "resolve"])
@pytest.mark.parametrize("kind", ["500", "503", "refuse", "429-bare"])
def test_the_hub_too_is_asked_again(job: Fetching, hub: FakeHub, kind: Kind, where: Route) -> None:
    hub.misbehave(kind, where=where, times=2)
    job.run()
    job.check_installed()
    assert job.waitings()


def test_what_it_waits_for_is_said(job: Fetching, hub: FakeHub) -> None:
    hub.misbehave("503", times=8)
    job.run(ONE)
    waits = [waiting.attempt for waiting in job.waitings()]
    assert waits[:2] == [2, 3]
    assert "error 503" in job.waitings()[0].sentence


def test_tries_end_when_nothing_helps(job: Fetching, hub: FakeHub) -> None:
    hub.misbehave("503", times=None)
    final = job.run(ONE)
    assert (final.files[0].state, final.fault) == (FileState.FAILED, "server")
    assert len(hub.seen("storage")) == ONE.tries
    hub.behave()
    job.run()
    job.check_installed()


def test_tries_are_counted_anew_when_something_comes_in(job: Fetching, hub: FakeHub) -> None:
    hub.script("storage", [None, *[Fault("503")] * 2, None, *[Fault("503")] * 2, None, *[Fault("503")] * 2])
    job.run(ONE)
    job.check_installed()


def test_a_busy_server_gets_fewer_connections(job: Fetching, hub: FakeHub) -> None:
    hub.script("storage", [Fault("slow"), *[Fault("503")] * 3])
    with job.download() as download:
        thread = threading.Thread(target=download.run)
        thread.start()
        hub.wait_for(lambda server: len(server.seen("storage")) == 4)
        hub.allow(1 << 30)
        thread.join()
    job.check_installed()
    assert not job.waitings()  # the connection that works went on meanwhile


def test_a_rate_limit_is_kept_to(job: Fetching, hub: FakeHub) -> None:
    hub.misbehave("429", where="resolve", seconds=1)
    job.run(ONE)
    job.check_installed()
    (waiting,) = job.waitings()
    assert 0.5 < waiting.seconds <= 1
    assert "asks to wait for 1 seconds" in waiting.sentence


def test_a_rate_limit_that_takes_too_long_pauses(job: Fetching, hub: FakeHub) -> None:
    hub.misbehave("429-ratelimit", where="resolve", seconds=1200)
    final = job.run()
    assert (final.files[0].state, final.fault) == (FileState.FAILED, "rate-limited")
    assert "1200 seconds" in final.sentence
    job.run()
    job.check_installed()


# --- row 6: a resume that fails its checksum


def test_row_6_a_server_that_answers_200_to_a_range_corrupts_nothing(job: Fetching, hub: FakeHub) -> None:
    here = job.half()
    hub.misbehave("200-to-range", times=None)
    job.run()
    job.check_installed()
    asked = job.ranges()
    assert asked[0] is not None
    assert asked[0][0] == here
    assert asked[-1] is None  # from zero, in one go


def test_row_6_one_such_answer_does_not_cost_what_is_here(job: Fetching, hub: FakeHub) -> None:
    here = job.half()
    hub.misbehave("200-to-range")
    job.run()
    job.check_installed()
    assert min(asked[0] for asked in job.ranges() if asked) == here
    assert None not in job.ranges()


def test_row_6_a_server_without_ranges_is_read_in_one_go(job: Fetching, hub: FakeHub) -> None:
    hub.misbehave("no-range", times=None)
    job.run()
    job.check_installed()
    assert job.ranges()[-1] is None
    assert len(job.ranges()) <= 5


def test_row_6_a_server_without_ranges_that_drops_begins_at_zero(job: Fetching, hub: FakeHub) -> None:
    hub.script("storage", [Fault("no-range"), Fault("drop", after=400_000), *[Fault("no-range")] * 9])
    job.run()
    job.check_installed()


def test_row_6_a_server_that_never_gets_past_the_middle_is_given_up(tmp_path: Path) -> None:
    with FakeHub() as server:
        job = fetching(server, tmp_path)
        # Every answer is all of the file, and the second half of it never comes.
        server.script("storage", [Fault("200-to-range"), *[Fault("drop", after=500_000), Fault("no-range")] * 30])
        final = job.run()
        assert final.files[0].state in (FileState.FAILED, FileState.INSTALLED)
        server.behave()
        job.run()
        job.check_installed()


def test_row_6_content_that_changed_begins_at_zero(job: Fetching, hub: FakeHub) -> None:
    job.half()
    hub.misbehave("changed-etag")
    job.run()
    job.check_installed()
    assert 0 in [asked[0] for asked in job.ranges() if asked]


def test_row_6_the_etag_of_another_host_says_nothing(job: Fetching, tmp_path: Path) -> None:
    here = job.half()
    with FakeHub() as mirror:
        other = fetching(mirror, tmp_path / "models")
        for name, repo in mirror.repos.items():
            for stored in repo.files.values():
                stored.sha256 = job.server.repos[name].files[stored.name].sha256
        other.run()
        other.check_installed()
        first = mirror.seen("storage")[0]
        assert "if-range" not in first.headers
        assert other.ranges()[0] is not None
        assert min(asked[0] for asked in other.ranges() if asked) == here


def test_row_6_a_part_that_was_damaged_is_named_and_the_next_run_is_clean(job: Fetching) -> None:
    job.half()
    data = bytearray(job.part().read_bytes())
    data[1000] ^= 1
    job.part().write_bytes(data)
    final = job.run()
    assert (final.files[0].state, final.fault) == (FileState.QUARANTINED, "wrong-hash")
    assert job.pair.target.sha256[:12] in final.sentence
    assert "again" in final.remedy
    (kept,) = job.store.quarantined()
    assert kept.bytes == len(job.contents[0])
    assert not job.part().exists()
    job.run()
    job.check_installed()


# --- row 7: hangs


@pytest.mark.parametrize("place", [0, 10_000, 1_000_000])
def test_row_7_an_open_silent_connection_is_given_up_and_another_one_used(
    job: Fetching, hub: FakeHub, place: int
) -> None:
    hub.misbehave("stall", at=place)
    job.run(SHORT)
    job.check_installed()


@pytest.mark.parametrize("kind", ["stall", "silent", "drip"])
def test_row_7_a_host_that_stays_silent_is_said(job: Fetching, hub: FakeHub, kind: Kind) -> None:
    hub.misbehave(kind, after=1000, times=None)
    final = job.run(msgspec.structs.replace(SHORT, tries=2))
    assert (final.files[0].state, final.fault) == (FileState.FAILED, "stalled")
    assert final.sentence.startswith("Nothing came from 127.0.0.2")
    assert "Nothing came from" in job.waitings()[0].sentence
    hub.behave()
    job.run()
    job.check_installed()


def test_row_7_a_hub_that_does_not_answer_is_said(job: Fetching, hub: FakeHub) -> None:
    hub.misbehave("silent", where="info", times=None)
    final = job.run(msgspec.structs.replace(SHORT, tries=2))
    assert (final.files[0].state, final.fault) == (FileState.FAILED, "timeout")
    assert "did not answer in time" in final.sentence
    hub.behave()
    job.run()
    job.check_installed()


# --- who is not let in


def test_a_hub_that_is_not_there_names_the_host(job: Fetching, hub: FakeHub) -> None:
    hub.unreachable()
    final = job.run()
    assert (final.files[0].state, final.fault) == (FileState.FAILED, "unreachable")
    assert "127.0.0.1" in final.sentence


@pytest.mark.parametrize(
    ("kind", "where", "fault"),
    [
        ("401", "resolve", "sign-in"),
        ("gated", "resolve", "gated"),
        ("no-repo", "info", "missing-repo"),
        ("no-revision", "info", "missing-revision"),
        ("no-entry", "resolve", "missing-file"),
        ("redirect-loop", "resolve", "portal"),
        ("bad-json", "info", "portal"),
        ("wrong-linked-etag", "resolve", "pin-differs"),
        ("wrong-linked-size", "resolve", "pin-differs"),
        ("other-commit", "resolve", "pin-differs"),
    ],
)
def test_what_no_second_try_can_help_is_said_at_once(
    job: Fetching, hub: FakeHub, kind: Kind, where: Route, fault: str
) -> None:
    hub.misbehave(kind, where=where, times=None)
    with job.download() as download:
        with pytest.raises(TandemError) as caught:
            download.run()
        assert caught.value.exit_code == (3 if fault == "pin-differs" else 5)
        final = download.progress
    assert (final.files[0].state, final.fault) == (FileState.FAILED, fault)
    assert not job.waitings()
    assert final.sentence.endswith(".")
    assert final.remedy.endswith(".")
    hub.behave()
    job.run()
    job.check_installed()


def test_addresses_that_expire_are_asked_for_anew(job: Fetching, hub: FakeHub) -> None:
    here = job.half()
    hub.misbehave("expired", times=4)
    job.run()
    job.check_installed()
    assert min(asked[0] for asked in job.ranges() if asked) == here
    assert len(hub.seen("resolve")) >= 3


def test_addresses_that_are_refused_for_ever_are_given_up(job: Fetching, hub: FakeHub) -> None:
    hub.misbehave("expired", times=None)
    final = job.run()
    assert (final.files[0].state, final.fault) == (FileState.FAILED, "server")
    assert "127.0.0.2" in final.sentence
    assert "SECRET" not in final.sentence
