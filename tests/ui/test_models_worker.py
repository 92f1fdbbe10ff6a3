"""What carries reports between threads, what stops a download, and what the window does not load beforehand."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import pytest
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from support.shelf import catalog, named
from tandem.errors import UsageError
from tandem.models.overview import FileView, Overview, PairView
from tandem.models.progress import FileProgress, JobProgress
from tandem.models.state import FileState
from tandem.settings import Settings
from tandem.ui.models_worker import Newest, Turn, Workshop, with_job

if TYPE_CHECKING:
    from tandem.models.download import Download

S = FileState
HEAVY = ("huggingface_hub", "httpx2", "keyring", "truststore", "tenacity", "filelock", "gguf", "safetensors")
HUB = ("huggingface_hub", "httpx2", "keyring", "truststore", "gguf", "safetensors")


class Box(Newest):
    """With the reports that arrived."""

    def __init__(self, owner: Any) -> None:
        super().__init__(owner)
        self.got: list[Any] = []
        self.threads: set[int] = set()
        self.came.connect(self.hear)

    def hear(self, value: Any) -> None:
        self.got.append(value)
        self.threads.add(threading.get_ident())


@pytest.fixture
def box(qapp: QApplication) -> Iterator[Box]:
    made = Box(qapp)
    yield made
    made.setParent(None)
    made.deleteLater()


def from_elsewhere(job: Any) -> None:
    thread = threading.Thread(target=job)
    thread.start()
    thread.join()


def test_of_many_reports_the_newest_arrives_in_the_window_s_thread(box: Box, qtbot: QtBot) -> None:
    from_elsewhere(lambda: [box.put(number) for number in range(1, 1001)])
    assert box.got == []  # nothing is delivered in the other thread
    qtbot.waitUntil(lambda: bool(box.got))
    assert box.got == [1000]
    assert box.threads == {threading.get_ident()}
    from_elsewhere(lambda: box.put(1001))
    qtbot.waitUntil(lambda: box.got == [1000, 1001])


def test_what_was_cleared_does_not_arrive(box: Box, qtbot: QtBot) -> None:
    box.put(1)
    box.clear()
    box.put(2)
    qtbot.waitUntil(lambda: bool(box.got))
    assert box.got == [2]


class Scripted:
    """In a download's place: notes what it was told."""

    def __init__(self) -> None:
        self.told: list[str] = []
        self.progress = JobProgress("e2b", ())

    def pause(self) -> None:
        self.told.append("pause")

    def cancel(self, keep: bool) -> None:
        self.told.append(f"cancel {keep}")

    def limit(self, bytes_per_s: int | None) -> None:
        self.told.append(f"limit {bytes_per_s}")

    def run(self) -> JobProgress:
        self.told.append("run")
        return self.progress


@pytest.mark.parametrize(
    ("stop", "told"),
    [
        (lambda turn: turn.pause(), "pause"),
        (lambda turn: turn.cancel(keep=True), "cancel True"),
        (lambda turn: turn.cancel(keep=False), "cancel False"),
    ],
)
def test_a_stop_before_the_download_exists_is_passed_on_when_it_does(stop: Any, told: str) -> None:
    turn, download = Turn("e2b"), Scripted()
    assert turn.progress is None
    stop(turn)
    assert turn.stopped
    assert turn.run(cast("Download", download)) is download.progress
    assert download.told == [told, "run"]
    stop(turn)
    assert download.told == [told, "run", told]
    assert turn.progress is download.progress


def test_a_speed_limit_is_passed_on() -> None:
    turn, download = Turn("e2b"), Scripted()
    turn.limit(5)
    turn.limit(None)
    turn.run(cast("Download", download))
    turn.limit(7)
    assert download.told == ["limit None", "run", "limit 7"]


def test_the_workshop_knows_its_pairs() -> None:
    shop = Workshop(catalog())
    assert shop.name("e2b") == "Tiny E2B"
    assert shop.name("gone") == "gone"
    first = shop.first("e4b")
    assert [file.name for file in first.files] == [named("e4b", "target"), named("e4b", "drafter")]
    assert {file.state for file in first.files} == {S.QUEUED}
    assert first.total == sum(file.size for file in shop.pair("e4b").files)
    with pytest.raises(UsageError):
        shop.pair("gone")
    assert shop.overview(Settings()).pairs[0].key == "e2b"


def seen(target: FileState, drafter: FileState) -> Overview:
    files = (FileView("t.gguf", "target", target, 1, 2), FileView("d.gguf", "drafter", drafter, 1, 2))
    return Overview("folder", 0, (PairView("e2b", "e2b", target if target is drafter else S.PAUSED, files, 2),))


@pytest.mark.parametrize(
    ("here", "told", "expected"),
    [
        ((S.ABSENT, S.ABSENT), (S.QUEUED, S.QUEUED), (S.QUEUED, S.QUEUED, S.QUEUED)),
        ((S.INSTALLED, S.ABSENT), (S.QUEUED, S.QUEUED), (S.INSTALLED, S.QUEUED, S.QUEUED)),
        ((S.PAUSED, S.ABSENT), (S.FAILED, S.QUEUED), (S.FAILED, S.QUEUED, S.QUEUED)),
        ((S.PAUSED, S.ABSENT), (S.FAILED, S.ABSENT), (S.FAILED, S.ABSENT, S.FAILED)),
        ((S.INSTALLED, S.PAUSED), (S.INSTALLED, S.PAUSED), (S.INSTALLED, S.PAUSED, S.PAUSED)),
    ],
)
def test_a_job_is_seen_in_the_overview(
    here: tuple[FileState, FileState],
    told: tuple[FileState, FileState],
    expected: tuple[FileState, FileState, FileState],
) -> None:
    job = JobProgress(
        "e2b", (FileProgress("t.gguf", told[0]), FileProgress("d.gguf", told[1])), sentence="Why.", remedy="What."
    )
    pair = with_job(seen(*here), job).pairs[0]
    assert (pair.files[0].state, pair.files[1].state, pair.state) == expected
    assert (pair.sentence, pair.remedy) == ("Why.", "What.")
    for file in pair.files:
        assert file.sentence == ("Why." if file.state in (S.FAILED, S.PAUSED) else "")


def test_an_installed_pair_stays_installed_whatever_a_job_said() -> None:
    before = seen(S.INSTALLED, S.INSTALLED)
    job = JobProgress("e2b", (FileProgress("t.gguf", S.FAILED),), sentence="Why.")
    assert with_job(before, job) == before
    assert with_job(before, JobProgress("e4b", job.files)) == before


WINDOW = """
import json, sys
from PySide6.QtCore import QTimer
from PySide6.QtWidgets import QApplication
from tandem.ui.app import Application
loaded = {"imported": sorted(sys.modules)}
app = QApplication(["tandem"])
application = Application(app)
models = application.controller.models
loaded["made"] = sorted(sys.modules)
def seen(_overview):
    loaded["seen"] = sorted(sys.modules)
    application.window.close()
models.changed.connect(seen)
application.start()
app.exec()
ended = application.end()
print(json.dumps(loaded))
sys.exit(0 if ended else 1)
"""


def test_the_window_loads_nothing_of_the_hub_s_before_a_download(tmp_path: Path) -> None:
    environment = os.environ | {"QT_QPA_PLATFORM": "offscreen", "TANDEM_HOME": str(tmp_path)}
    command = [sys.executable, "-c", WINDOW]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120, check=True)
    loaded = json.loads(done.stdout.splitlines()[-1])
    assert set(HEAVY).isdisjoint(loaded["imported"])
    assert set(HEAVY).isdisjoint(loaded["made"])
    assert set(HUB).isdisjoint(loaded["seen"])
