"""Closing in the middle of a download: no process, a part, and a window that never waited."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
from pytestqt.qtbot import QtBot

from support.desk import Heartbeat
from support.hub import FakeHub
from support.shelf import Shelf, alone, fill, held, shelf
from tandem import paths
from tandem.models.state import FileState

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


def test_closing_in_the_middle_leaves_a_part_that_the_next_start_lists(qtbot: QtBot, hub: FakeHub) -> None:
    held(hub)
    before = {child.pid for child in psutil.Process().children(recursive=True)}  # other tests share an engine
    with shelf(qtbot, hub) as table:
        table.keeper.download("e2b")
        table.under_way(100_000)
        table.keeper.download("e4b")  # waits
        transfers = table.desk.controller.threads.transfers
        table.desk.close()
        table.wait(transfers.isFinished)
        assert table.notices[1:] == []  # nobody is told of a pause that nobody asked for
    children = [child for child in psutil.Process().children(recursive=True) if child.pid not in before]
    assert [child for child in children if "resource_tracker" not in " ".join(child.cmdline())] == []
    assert parts()
    assert all(part.with_name(part.name + ".json").exists() for part in parts())
    with shelf(qtbot, hub) as table:
        table.until(S.PAUSED)
        view = table.pair()
        assert view.on_disk > 0
        assert table.state("e4b") is S.ABSENT
        hub.behave()
        table.keeper.resume("e2b")
        table.wait(lambda: table.ready == ["e2b"])


@pytest.mark.parametrize("silent", ["info", "resolve", "storage"])
def test_closing_while_the_line_is_silent_takes_no_time(qtbot: QtBot, hub: FakeHub, silent: str) -> None:
    hub.misbehave("silent", times=None, where=silent)  # type: ignore[arg-type]
    with shelf(qtbot, hub) as table:
        table.keeper.download("e2b")
        hub.wait_for(lambda one: any(seen.route == silent for seen in one.requests))
        transfers = table.desk.controller.threads.transfers
        table.desk.close()
        table.wait(transfers.isFinished, timeout=5_000)


def test_the_window_goes_on_while_bytes_come_in(table: Shelf) -> None:
    table.installed("e4b")  # what is imported once is imported
    with Heartbeat() as beat:
        table.installed("e2b")
    assert beat.beats > 3
    assert beat.longest_s < 0.5  # a machine that others use too; tests/perf measures it
