"""The app killed or asked to end in the middle of work on models, in a process of its own, and started again."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest
from pytestqt.qtbot import QtBot

from support.hub import FakeHub
from support.shelf import alone, catalog, content, fill, held, put
from support.windows import User, keep, opened
from tandem import paths
from tandem.models import catalog as models_catalog
from tandem.models.state import FileState
from tandem.models.store import Store
from tandem.settings import PairChoice
from tandem.ui.models_card import ModelCard

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="there is no SIGTERM that asks")
S = FileState
TESTS = Path(__file__).parents[1]
PATIENCE_S = 60.0

DRIVER = """
import sys
from support.shelf import catalog
from tandem.models import catalog as models_catalog, copying, download, hashing, move
from tandem.models.state import FileState
from tandem.ui import app

stage, mine, other = sys.argv[1:]
known, real = catalog(), hashing.check
models_catalog.catalog = lambda: known
DOWNLOADS = ("resolving", "transferring", "waiting", "checking")
BLOCKED = {"verifying": hashing, "importing": copying, "moving": move}


def here(*_):
    print("HERE", flush=True)


def blocked(stop):  # between two blocks of a file
    here()
    stop.wait()
    real(stop)


class Slow(download.Download):
    def _check(self, *rest):
        here()
        self._stop.wait()
        return super()._check(*rest)


class Driven(app.Application):
    def start(self):
        super().start()
        self.controller.ready.connect(self.act)

    def act(self):
        models = self.controller.models
        models.job.connect(self.on_job)
        models.found.connect(lambda found: [models.take(one, "copy") for one in found])
        if stage in DOWNLOADS:
            models.download("e2b")
        acts = {"verifying": models.verify, "importing": lambda: models.look([mine])}
        acts |= {"moving": lambda: models.move_folder(other)}
        acts.get(stage, lambda: None)()

    def on_job(self, job):
        if job is None:
            return
        states = {file.state for file in job.files}
        reached = {
            "resolving": FileState.RESOLVING in states,
            "transferring": job.running and job.done > 2_000_000,
            "waiting": job.waiting is not None,
        }
        if reached.get(stage):
            here()


if stage == "checking":
    download.Download = Slow
if stage in BLOCKED:
    BLOCKED[stage].check = blocked
app.Application = Driven
sys.exit(app.main())
"""
"""The app with the small catalog; it begins something, says when it is in the middle of it, and stays there."""


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[FakeHub]:
    """The Hub as HF_ENDPOINT names it, with a small catalog."""
    known = catalog()
    monkeypatch.setattr(models_catalog, "catalog", lambda: known)
    alone(monkeypatch, tmp_path / "hf")
    with FakeHub() as running:
        fill(running)
        monkeypatch.setenv("HF_ENDPOINT", running.endpoint)
        yield running


@contextmanager
def at_work(stage: str, mine: Path, other: Path) -> Iterator[subprocess.Popen[bytes]]:
    """The app in the middle of something."""
    keep(load=True, pair=pair_of() if stage in ("verifying", "moving") else None)
    folders = os.pathsep.join((str(TESTS), str(TESTS.parent / "desktop")))
    process = subprocess.Popen(
        [sys.executable, "-c", DRIVER, stage, str(mine), str(other)],
        env={**os.environ, "PYTHONPATH": folders},
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,  # a helper that was just being started says that nobody is there any more
    )
    try:
        assert process.stdout is not None
        assert process.stdout.readline().strip() == b"HERE"
        yield process
    finally:
        process.kill()
        process.communicate()


def pair_of() -> PairChoice:
    """A pair that is installed, and loaded."""
    return PairChoice("files", *map(str, put(Store(paths.models_dir(), catalog()), "e2b")))


def ended(process: subprocess.Popen[bytes], number: int) -> int:
    """Ends it, and waits until nothing of it is left; gives its exit code."""
    children = psutil.Process(process.pid).children(recursive=True)
    process.send_signal(number)
    code = process.wait(PATIENCE_S)
    _, alive = psutil.wait_procs(children, timeout=PATIENCE_S)
    assert [child for child in alive if child.status() != psutil.STATUS_ZOMBIE] == []
    return code


@contextmanager
def again(qtbot: QtBot) -> Iterator[tuple[User, ModelCard]]:
    """The app, started once more and looked at."""
    with opened(qtbot) as user:
        user.press("Ctrl+2")
        models = user.controller.models
        user.wait(lambda: models.overview is not None and not models.looking)
        yield user, user.window.pages.models.cards["e2b"]
        user.wait(lambda: not models.looking and not models.work.busy)


@pytest.mark.parametrize(
    ("stage", "number"),
    [
        ("resolving", signal.SIGTERM),
        ("transferring", signal.SIGKILL),
        ("transferring", signal.SIGTERM),
        ("waiting", signal.SIGTERM),
        ("checking", signal.SIGKILL),
        ("checking", signal.SIGTERM),
    ],
)
def test_a_download_goes_on(qtbot: QtBot, hub: FakeHub, tmp_path: Path, stage: str, number: signal.Signals) -> None:
    if stage == "resolving":
        hub.misbehave("silent", times=None, where="info")
    elif stage == "transferring":
        held(hub)
    elif stage == "waiting":
        hub.misbehave("503", times=None)
    with at_work(stage, tmp_path, tmp_path) as process:
        assert ended(process, number) == (0 if number == signal.SIGTERM else -number)
    hub.behave()
    asked = len(hub.seen("storage"))
    with again(qtbot) as (user, made):
        assert made.file_state is (S.ABSENT if stage in ("resolving", "waiting") else S.PAUSED)
        user.controller.models.resume("e2b")
        user.wait(lambda: made.file_state is S.INSTALLED)
        if number == signal.SIGTERM and stage == "transferring":  # of a killed one counts what was flushed
            begun = [seen for seen in hub.seen("storage")[asked:] if (seen.range or "").startswith("bytes=0-")]
            assert len(begun) == 1  # the drafter
    assert not list(paths.models_dir().rglob("*.part*"))


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_an_import_leaves_nothing_that_is_taken_for_a_model(
    qtbot: QtBot, hub: FakeHub, tmp_path: Path, number: signal.Signals
) -> None:
    assert hub.endpoint
    mine = tmp_path / "mine.gguf"
    mine.write_bytes(content("e4b", "target").replace(b"like-gemma4", b"mine-gemma4"))
    with at_work("importing", mine, tmp_path) as process:
        ended(process, number)
    with again(qtbot) as (user, _):
        models, page = user.controller.models, user.window.pages.models
        assert not page.imported.rows
        models.look([str(mine)])
        user.wait(lambda: page.dialog is not None and page.dialog.isVisible())
        page.dialog.hows["copy"].setChecked(True)  # type: ignore[union-attr]
        page.dialog.accept()  # type: ignore[union-attr]
        user.wait(lambda: page.imported.rows)
        assert Path(page.imported.rows[0].path).read_bytes() == mine.read_bytes()
    assert not [path for path in paths.models_dir().rglob("*") if ".copy" in path.name]


@pytest.mark.parametrize(
    ("stage", "number"), [("verifying", signal.SIGTERM), ("moving", signal.SIGKILL), ("moving", signal.SIGTERM)]
)
def test_installed_files_stay_as_they_are(
    qtbot: QtBot, hub: FakeHub, tmp_path: Path, stage: str, number: signal.Signals
) -> None:
    assert hub.endpoint
    new = tmp_path / "new"
    with at_work(stage, tmp_path, new) as process:
        ended(process, number)
    with again(qtbot) as (user, made):
        user.loaded()
        user.wait(lambda: made.in_use)
        user.controller.models.move_folder(str(new))
        user.wait(lambda: user.controller.settings.models_folder == str(new))
        user.controller.models.verify()
        user.wait(lambda: not user.controller.models.work.busy)
        assert made.file_state is S.INSTALLED
    assert not list(paths.models_dir().rglob("*.gguf"))
