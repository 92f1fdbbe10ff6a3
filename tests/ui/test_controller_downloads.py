"""Downloads in the window's hands, with the real client, the real transfer and a Hub on loopback."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from pytestqt.qtbot import QtBot

from support.desk import defaults
from support.hub import FakeHub
from support.shelf import Shelf, alone, content, fill, held, shelf
from tandem import paths
from tandem.models.errors import TransferError
from tandem.models.state import FileState
from tandem.settings import PairChoice
from tandem.ui.controller_downloads import Downloads

S = FileState


@pytest.fixture(autouse=True)
def _nobodys_sign_in(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    alone(monkeypatch, tmp_path / "hf")


@pytest.fixture
def hub() -> Iterator[FakeHub]:
    with FakeHub() as running:
        fill(running)
        yield running


@pytest.fixture
def table(qtbot: QtBot, hub: FakeHub) -> Iterator[Shelf]:
    with shelf(qtbot, hub) as made:
        yield made


def parts() -> list[Path]:
    """What has come in of downloads that are not finished."""
    return sorted(paths.models_dir().rglob("*.part"))


def idle(table: Shelf) -> None:
    table.wait(lambda: not table.keeper.downloads.under_way and not table.keeper.looking)


def test_a_pair_is_downloaded_checked_and_offered_for_use(table: Shelf) -> None:
    target, drafter = table.installed()
    assert target.read_bytes() == content("e2b", "target")
    assert drafter.read_bytes() == content("e2b", "drafter")
    assert table.job is None
    assert all(job.key == "e2b" for job in table.jobs)
    assert table.jobs[0].files[0].state is S.QUEUED
    assert [notice.action for notice in table.notices] == ["use-pair"]
    table.desk.controller.perform(table.notices[0])
    controller = table.desk.controller
    table.wait(lambda: controller.pair.kind == "loaded")
    assert controller.settings.pair == PairChoice("files", str(target), str(drafter))
    assert table.desk.ask().text
    assert parts() == []


def test_a_download_goes_on_while_one_chats(qtbot: QtBot, hub: FakeHub) -> None:
    held(hub)
    with shelf(qtbot, hub, load=True) as table:
        table.keeper.download("e2b")
        table.under_way()
        assert table.desk.ask().text
        assert table.keeper.downloads.under_way == "e2b"
        hub.behave()
        table.wait(lambda: table.ready == ["e2b"])


def test_pause_keeps_the_part_and_resume_goes_on_from_it(table: Shelf, hub: FakeHub) -> None:
    held(hub)
    table.keeper.download("e2b")
    table.under_way(100_000)
    table.keeper.pause()
    table.until(S.PAUSED)
    assert table.job is not None
    assert not table.job.running
    assert parts()
    here = table.pair().on_disk
    assert here > 0
    assert table.notices == []  # whoever presses Pause knows
    hub.behave()
    table.keeper.resume("e2b")
    table.wait(lambda: table.ready == ["e2b"])
    table.until(S.INSTALLED)
    assert [file.done == file.total for file in table.pair().files] == [True, True]


def test_another_speed_limit_counts_at_once(table: Shelf, hub: FakeHub) -> None:
    table.desk.controller.change_settings(speed_limit=100 << 10)
    table.keeper.download("e2b")
    hub.wait_for(lambda one: bool(one.seen("storage")))
    table.desk.controller.change_settings(speed_limit=None)
    table.wait(lambda: table.ready == ["e2b"])  # with the old one that would take a minute


def test_pressing_twice_downloads_once(table: Shelf, hub: FakeHub) -> None:
    held(hub)
    table.keeper.download("e2b")
    table.keeper.download("e2b")
    table.under_way()
    table.keeper.resume("e2b")
    assert [job.key for job in table.keeper.downloads.jobs] == ["e2b"]
    hub.behave()
    table.wait(lambda: table.ready)
    idle(table)
    assert table.ready == ["e2b"]


@pytest.mark.parametrize("keep", [True, False])
def test_cancel_keeps_the_part_or_removes_it(table: Shelf, hub: FakeHub, keep: bool) -> None:
    held(hub)
    table.keeper.download("e2b")
    table.under_way(100_000)
    table.keeper.cancel("e2b", keep)
    table.until(S.PAUSED if keep else S.ABSENT)
    assert bool(parts()) is keep
    if not keep:
        assert table.job is None


def test_a_paused_download_can_be_given_up(table: Shelf, hub: FakeHub) -> None:
    held(hub)
    table.keeper.download("e2b")
    table.under_way(100_000)
    table.keeper.pause()
    table.until(S.PAUSED)
    table.keeper.cancel("e2b", False)
    table.until(S.ABSENT)
    assert parts() == []
    assert table.job is None


def test_one_after_the_other(table: Shelf, hub: FakeHub) -> None:
    held(hub)
    table.keeper.download("e2b")
    table.under_way()
    table.keeper.download("e4b")
    table.until(S.QUEUED, "e4b")
    assert [notice.kind for notice in table.notices] == ["info"]
    assert "Tiny E4B" in table.notices[0].text
    hub.behave()
    table.wait(lambda: table.ready == ["e2b", "e4b"])
    table.until(S.INSTALLED, "e4b")
    assert table.state("e2b") is S.INSTALLED


def test_one_that_waits_can_be_given_up(table: Shelf, hub: FakeHub) -> None:
    held(hub)
    table.keeper.download("e2b")
    table.under_way()
    table.keeper.download("e4b")
    table.until(S.QUEUED, "e4b")
    table.keeper.cancel("e4b", False)
    table.until(S.ABSENT, "e4b")
    assert table.keeper.downloads.under_way == "e2b"
    hub.behave()
    table.wait(lambda: table.ready)
    idle(table)
    assert table.ready == ["e2b"]


def test_when_one_is_paused_the_next_has_its_turn(table: Shelf, hub: FakeHub) -> None:
    held(hub)
    table.keeper.download("e2b")
    table.under_way()
    table.keeper.download("e4b")
    table.keeper.pause()
    table.wait(lambda: table.keeper.downloads.under_way == "e4b")
    hub.behave()
    table.wait(lambda: table.ready == ["e4b"])
    table.until(S.PAUSED, "e2b")


def test_pause_and_resume_at_once_goes_on(table: Shelf, hub: FakeHub) -> None:
    held(hub)
    table.keeper.download("e2b")
    table.under_way()
    table.keeper.pause()
    table.keeper.resume("e2b")
    hub.behave()
    table.wait(lambda: table.ready == ["e2b"])
    table.until(S.INSTALLED)


def test_a_pause_before_the_first_byte_is_heard(table: Shelf, hub: FakeHub) -> None:
    gate = threading.Event()
    table.desk.controller.threads.transfers.submit(lambda: gate.wait(30))
    table.keeper.download("e2b")
    table.keeper.pause()
    gate.set()
    idle(table)
    assert hub.seen(host="storage") == []
    assert table.ready == []
    table.keeper.resume("e2b")
    table.wait(lambda: table.ready == ["e2b"])


def test_start_again_begins_with_the_first_byte(table: Shelf, hub: FakeHub) -> None:
    held(hub)
    table.keeper.download("e2b")
    table.under_way(100_000)
    table.keeper.pause()
    table.until(S.PAUSED)
    assert parts()
    hub.behave()
    before = len(hub.seen("storage"))
    table.keeper.start_again("e2b")
    table.wait(lambda: table.ready == ["e2b"])
    asked = hub.seen("storage")[before:]
    assert any(one.range is None or one.range.startswith("bytes=0-") for one in asked)


def test_start_again_in_the_middle_of_it(table: Shelf, hub: FakeHub) -> None:
    held(hub)
    table.keeper.download("e2b")
    table.under_way(100_000)
    table.keeper.start_again("e2b")
    hub.behave()
    table.wait(lambda: table.ready == ["e2b"])
    table.until(S.INSTALLED)


def test_wrong_bytes_are_set_aside_and_start_again_helps(table: Shelf, hub: FakeHub) -> None:
    hub.misbehave("wrong-bytes", times=None)
    table.keeper.download("e2b")
    table.wait(lambda: table.notices)
    idle(table)
    assert table.notices[0].kind == "bad"
    assert table.notices[0].action == "open-models"
    assert table.state() in (S.QUARANTINED, S.FAILED)
    assert table.overview.quarantined
    assert table.job is not None
    assert table.job.fault == "wrong-hash"
    hub.behave()
    table.keeper.start_again("e2b")
    table.wait(lambda: table.ready == ["e2b"])
    table.until(S.INSTALLED)


@pytest.mark.parametrize(
    ("kind", "where", "fault"),
    [
        ("no-repo", None, "missing-repo"),
        ("gated", None, "gated"),
        ("portal", "info", "portal"),
        ("401", "info", "sign-in"),
    ],
)
def test_what_the_hub_refuses_is_told_with_the_host(
    table: Shelf, hub: FakeHub, kind: str, where: str | None, fault: str
) -> None:
    hub.misbehave(kind, times=None, where=where)  # type: ignore[arg-type]
    table.keeper.download("e2b")
    table.wait(lambda: table.notices)
    idle(table)
    assert table.job is not None
    assert table.job.fault == fault
    assert not table.job.running
    assert table.job.sentence
    told = table.notices[0]
    assert (told.kind, told.action) == ("bad", "open-models")
    assert table.state() in (S.FAILED, S.PAUSED)
    view = table.pair()
    assert view.sentence == table.job.sentence
    hub.behave()
    table.keeper.resume("e2b")
    table.wait(lambda: table.ready == ["e2b"])


def test_a_failed_one_does_not_keep_the_next_from_its_turn(table: Shelf, hub: FakeHub) -> None:
    hub.misbehave("no-repo", times=1)
    table.keeper.download("e2b")
    table.keeper.download("e4b")
    table.wait(lambda: table.ready == ["e4b"])
    table.until(S.INSTALLED, "e4b")
    assert table.state("e2b") is S.FAILED  # still told, with its sentence
    assert table.pair("e2b").sentence


def test_offline_mode_is_told(qtbot: QtBot, hub: FakeHub, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.setenv("HF_ENDPOINT", hub.endpoint)
    with shelf(qtbot, hub, network=None) as table:
        table.keeper.download("e2b")
        table.wait(lambda: table.notices)
        idle(table)
        assert table.job is not None
        assert table.job.fault == "offline-mode"
        assert hub.requests == []


def test_the_endpoint_of_the_settings_is_used(qtbot: QtBot, hub: FakeHub) -> None:
    with shelf(qtbot, hub, defaults(hub_endpoint=hub.endpoint), network=None) as table:
        table.installed()
        assert hub.requests


def test_no_room_is_said_before_the_first_byte(table: Shelf, hub: FakeHub, monkeypatch: pytest.MonkeyPatch) -> None:
    import shutil

    monkeypatch.setattr(shutil, "disk_usage", lambda _path: shutil._ntuple_diskusage(10**9, 10**9 - 1000, 1000))  # type: ignore[attr-defined]
    table.keeper.download("e2b")
    table.wait(lambda: table.notices)
    idle(table)
    assert table.job is not None
    assert table.job.fault == "no-room"
    assert hub.seen(host="storage") == []


def test_the_folder_moves_in_the_middle_of_a_download(table: Shelf, hub: FakeHub, tmp_path: Path) -> None:
    held(hub)
    table.keeper.download("e2b")
    table.under_way(100_000)
    new = tmp_path / "new"
    table.keeper.move_folder(str(new))
    table.wait(lambda: table.desk.controller.settings.models_folder == str(new))
    assert table.ready == []
    hub.behave()
    table.wait(lambda: table.ready == ["e2b"])
    table.until(S.INSTALLED)
    view = table.pair()
    assert view.target is not None
    assert Path(view.target).is_relative_to(new)
    assert parts() == []


def test_an_error_before_it_has_begun_is_a_failure_of_all_its_files(
    table: Shelf, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise TransferError("disk", "The disk is gone.", "Connect it.")

    monkeypatch.setattr(table.keeper._workshop, "network", refuse)
    table.keeper.download("e2b")
    table.wait(lambda: table.notices)
    idle(table)
    assert table.job is not None
    assert [file.state for file in table.job.files] == [S.FAILED, S.FAILED]
    assert (table.job.sentence, table.job.fault) == ("The disk is gone.", "disk")
    assert isinstance(table.keeper.downloads, Downloads)
