"""Work on model files in the window's hands: checks, imports, moving the folder."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pytestqt.qtbot import QtBot

from support.hub import FakeHub
from support.shelf import Shelf, alone, catalog, content, named, put, shelf
from tandem import paths, settings
from tandem.models import imports
from tandem.models.progress import JobProgress
from tandem.models.state import FileState
from tandem.models.store import Store
from tandem.settings import PairChoice, Settings
from tandem.ui import controller_models
from tandem.ui.models_work import Moved


@pytest.fixture
def hub() -> Iterator[FakeHub]:
    with FakeHub() as running:
        yield running


@pytest.fixture(autouse=True)
def _nobodys_sign_in(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    alone(monkeypatch, tmp_path / "hf")


@pytest.fixture
def table(qtbot: QtBot, hub: FakeHub) -> Iterator[Shelf]:
    with shelf(qtbot, hub) as made:
        yield made


def flip(path: Path) -> None:
    """One byte of the weights is another; size and time stay."""
    status = path.stat()
    with path.open("r+b") as stream:
        stream.seek(-1000, os.SEEK_END)
        byte = stream.read(1)[0]
        stream.seek(-1, os.SEEK_CUR)
        stream.write(bytes([byte ^ 1]))
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))


def usual_store() -> Store:
    return Store(paths.models_dir(), catalog())


class Holder:
    """Keeps the thread for long file work busy until it is let go."""

    def __init__(self, table: Shelf) -> None:
        self.gate = threading.Event()
        table.desk.controller.threads.checks.submit(lambda: self.gate.wait(30))


# Checks


def test_a_check_hashes_everything_and_tells(qtbot: QtBot, hub: FakeHub) -> None:
    put(usual_store(), "e2b")
    put(usual_store(), "e4b")
    with shelf(qtbot, hub) as table:
        table.keeper.verify()
        table.keeper.verify()  # once is enough
        table.wait(lambda: table.notices)
        assert [notice.kind for notice in table.notices] == ["good"]
        assert "4" in table.notices[0].text
        told = table.all("checking")
        assert told[-1] is None
        assert all(isinstance(one, JobProgress) and one.key == "verify" for one in told[:-1])
        table.wait(lambda: not table.keeper.looking)
        assert table.state() is FileState.INSTALLED


def test_one_flipped_byte_is_found_and_the_file_is_set_aside(qtbot: QtBot, hub: FakeHub) -> None:
    target, _ = put(usual_store(), "e2b")
    flip(target)
    with shelf(qtbot, hub) as table:
        assert table.state() is FileState.INSTALLED  # which the cheap check cannot see
        table.keeper.verify()
        table.until(FileState.QUARANTINED)
        told = [notice for notice in table.notices if notice.kind == "bad"]
        assert len(told) == 1
        assert target.name in told[0].text
        assert told[0].action == "open-models"
        assert not target.exists()
        assert len(table.overview.quarantined) == 1
        aside = table.overview.quarantined[0].path
        assert Path(aside).exists()
        table.keeper.remove(aside)
        table.until(FileState.PAUSED)  # half of it is here
        assert table.pair().files[0].state is FileState.ABSENT
        assert not Path(aside).exists()


def test_a_check_can_be_stopped_before_it_has_begun(qtbot: QtBot, hub: FakeHub) -> None:
    put(usual_store(), "e2b")
    with shelf(qtbot, hub) as table:
        holder = Holder(table)
        table.keeper.verify()
        assert table.keeper.work.busy
        table.keeper.stop_check()
        holder.gate.set()
        table.wait(lambda: not table.keeper.work.busy)
        assert table.all("checking") == [None]
        assert [notice for notice in table.notices if notice.kind in ("bad", "good")] == []
        table.keeper.verify()  # and begun again
        table.wait(lambda: any(notice.kind == "good" for notice in table.notices))


def test_a_check_under_way_can_be_stopped(qtbot: QtBot, hub: FakeHub, monkeypatch: pytest.MonkeyPatch) -> None:
    for key in ("e2b", "e4b"):
        put(usual_store(), key)
    with shelf(qtbot, hub) as table:
        keeper = table.keeper
        put_report, stopped = keeper.work._reports.put, threading.Event()

        def put_and_wait(progress: JobProgress) -> None:
            put_report(progress)
            if any(file.state is FileState.VERIFYING for file in progress.files[1:]):
                stopped.wait(30)

        monkeypatch.setattr(keeper.work._reports, "put", put_and_wait)
        keeper.verify()
        table.wait(lambda: keeper.work.progress is not None and keeper.work.progress.running)
        keeper.stop_check()
        stopped.set()
        table.wait(lambda: not keeper.work.busy)
        assert [notice.kind for notice in table.notices] == ["info"]
        table.wait(lambda: not keeper.looking)
        assert {pair.state for pair in table.overview.pairs} == {FileState.INSTALLED}


# Imports


def test_files_are_recognised_taken_in_and_offered_for_use(table: Shelf, tmp_path: Path) -> None:
    folder = tmp_path / "모델 Загрузки 🦊"
    folder.mkdir()
    for role in ("target", "drafter"):
        (folder / f"{role[0]}.gguf").write_bytes(content("e4b", role))  # type: ignore[arg-type]
    (folder / "readme.txt").write_text("not a model")
    table.keeper.look([str(folder)])
    table.wait(lambda: table.all("found"))
    found = table.all("found")[0]
    assert [(one.key, one.role) for one in found] == [("e4b", "drafter"), ("e4b", "target")]
    for one in found:
        table.keeper.take(one, "copy")
    table.until(FileState.INSTALLED, "e4b")
    table.wait(lambda: len(table.notices) == 2)
    assert [notice.action for notice in table.notices] == ["", "use-pair"]
    assert table.notices[1].argument == "e4b"
    assert (paths.models_dir() / "tiny" / "e4b" / named("e4b", "target")).exists()
    table.desk.controller.perform(table.notices[1])
    table.wait(lambda: table.desk.controller.pair.kind == "loaded")


def test_one_bad_file_does_not_keep_the_others_from_being_found(table: Shelf, tmp_path: Path) -> None:
    bad, good = tmp_path / "bad.gguf", tmp_path / "good.gguf"
    bad.write_bytes(b"<html>" + b" " * 100)
    good.write_bytes(content("e2b", "drafter"))
    table.keeper.look([str(bad), str(tmp_path / "gone.gguf"), str(good)])
    table.wait(lambda: table.all("found"))
    assert [one.path for one in table.all("found")[0]] == [good]
    assert [notice.kind for notice in table.notices] == ["bad", "bad"]
    assert "bad.gguf" in table.notices[0].text


def test_a_folder_without_models_is_said(table: Shelf, tmp_path: Path) -> None:
    table.keeper.look([str(tmp_path)])
    table.wait(lambda: table.notices)
    assert table.notices[0].kind == "warn"
    assert table.all("found") == [[]]


def test_a_hard_link_that_is_not_possible_becomes_a_copy_and_says_so(
    table: Shelf, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mine = tmp_path / "mine.gguf"
    mine.write_bytes(content("e2b", "target"))
    table.keeper.look([str(mine)])
    table.wait(lambda: table.all("found"))

    def refuse(*_: object, **__: object) -> None:
        raise OSError(18, "Invalid cross-device link")

    monkeypatch.setattr(os, "link", refuse)
    table.keeper.take(table.all("found")[0][0], "link")
    table.wait(lambda: table.notices)
    assert table.notices[0].kind == "good"
    assert imports.NOTE_COPIED in table.notices[0].remedy


def test_what_changed_since_it_was_looked_at_is_not_taken_in(table: Shelf, tmp_path: Path) -> None:
    mine = tmp_path / "mine.gguf"
    mine.write_bytes(content("e2b", "target"))
    table.keeper.look([str(mine)])
    table.wait(lambda: table.all("found"))
    mine.write_bytes(content("e2b", "target") + b"more")
    table.keeper.take(table.all("found")[0][0], "in-place")
    table.wait(lambda: table.notices)
    assert table.notices[0].kind == "bad"
    assert mine.name in table.notices[0].text


def test_files_of_other_apps_are_listed(table: Shelf, tmp_path: Path) -> None:
    snapshot = tmp_path / "hf" / "hub" / "models--tiny--e2b" / "snapshots" / "abc"
    snapshot.mkdir(parents=True)
    (snapshot / "model.gguf").write_bytes(content("e2b", "target"))
    table.keeper.places()
    table.wait(lambda: table.all("places_found"))
    assert [one.path for one in table.all("places_found")[0] if one.where == "hub-cache"] == [snapshot / "model.gguf"]


# The folder


def test_the_folder_moves_with_the_pair_in_use(qtbot: QtBot, hub: FakeHub, tmp_path: Path) -> None:
    put(usual_store(), "e2b")
    new = tmp_path / "elsewhere" / "모델"
    with shelf(qtbot, hub) as table:
        controller = table.desk.controller
        table.keeper.use("e2b")
        table.wait(lambda: controller.pair.kind == "loaded")
        loads = len(table.desk.all("loading"))
        table.keeper.move_folder(str(new))
        table.wait(lambda: controller.settings.models_folder == str(new))
        table.wait(lambda: table.overview.folder == str(new) and not table.keeper.looking)
        view = table.pair()
        assert view.state is FileState.INSTALLED
        assert controller.settings.pair == PairChoice("files", view.target, view.drafter)
        assert controller.pair.choice == controller.settings.pair
        assert controller.pair.kind == "loaded"
        assert len(table.desk.all("loading")) == loads  # it was not loaded again
        table.desk.ask()
        assert not (paths.models_dir() / "tiny").exists()
        table.desk.settled()
        assert settings.load().settings.models_folder == str(new)


def test_where_open_files_cannot_move_the_pair_is_let_go_first(
    qtbot: QtBot, hub: FakeHub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(controller_models, "RELEASE_FIRST", True)
    put(usual_store(), "e2b")
    with shelf(qtbot, hub) as table:
        controller = table.desk.controller
        table.keeper.use("e2b")
        table.wait(lambda: controller.pair.kind == "loaded")
        alive: list[int | None] = []
        workshop = table.keeper._workshop
        move = workshop.move

        def moving(*arguments: Any) -> Moved | None:
            alive.append(controller.engine_pid)
            return move(*arguments)

        monkeypatch.setattr(workshop, "move", moving)
        table.keeper.move_folder(str(tmp_path / "new"))
        table.wait(lambda: alive)
        table.wait(lambda: controller.pair.kind == "loaded")
        assert alive == [None]
        assert controller.pair.choice.target is not None
        assert controller.pair.choice.target.startswith(str(tmp_path / "new"))


def test_a_move_that_fails_leaves_everything_as_it_was(qtbot: QtBot, hub: FakeHub, tmp_path: Path) -> None:
    put(usual_store(), "e2b")
    blocked = tmp_path / "file"
    blocked.write_text("in the way")
    with shelf(qtbot, hub) as table:
        table.keeper.move_folder(str(blocked / "models"))
        table.wait(lambda: table.notices)
        assert table.notices[0].kind == "bad"
        table.until(FileState.INSTALLED)
        assert table.desk.controller.settings.models_folder is None
        table.keeper.move_folder(str(tmp_path / "new"))  # and can be tried again
        table.wait(lambda: table.desk.controller.settings.models_folder == str(tmp_path / "new"))


def test_moved_files_are_followed_and_others_are_not(tmp_path: Path) -> None:
    moved = Moved(str(tmp_path / "old"), str(tmp_path / "new"))
    inside, outside = str(tmp_path / "old" / "a" / "b.gguf"), str(tmp_path / "older" / "c.gguf")
    assert moved.now_at(PairChoice("files", inside, outside)) == PairChoice(
        "files", str(tmp_path / "new" / "a" / "b.gguf"), outside
    )
    assert moved.now_at(PairChoice()) == PairChoice()
    assert moved.followed(Settings(pair=PairChoice("files", inside, None))).pair.target == str(
        tmp_path / "new" / "a" / "b.gguf"
    )
