"""The app killed or asked to end in the middle of work on models, in a process of its own, and started again."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
from pytestqt.qtbot import QtBot

from support.hub import FakeHub
from support.shelf import alone, catalog, content, fill, held, put
from support.windows import User, keep, opened
from tandem import paths, settings
from tandem.models import catalog as models_catalog
from tandem.models.state import FileState
from tandem.models.store import Store
from tandem.settings import PairChoice

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="signals")
S = FileState
STAGES = ("resolving", "transferring", "waiting", "checking", "verifying", "importing", "moving")

DRIVER = r"""
import os, sys, threading
from PySide6.QtCore import QTimer
from PySide6.QtWidgets import QApplication
from support.shelf import catalog
from tandem.models import catalog as models_catalog
known = catalog()
models_catalog.catalog = lambda: known
stage, mine, other = sys.argv[1:]

def at(*_):
    print("AT", flush=True)

def blocked(stop):
    at()
    if stop is None: threading.Event().wait()
    stop.wait()
    real(stop)

from tandem.models import copying, hashing, job, move, part
real = hashing.check
from tandem.models.state import FileState
if stage == "checking":
    from tandem.models import download
    class Slow(download.Download):
        def _check(self, *rest):
            at()
            self._stop.wait()
            return super()._check(*rest)
    download.Download = Slow
if stage == "verifying":
    hashing.check = blocked
if stage == "importing":
    copying.check = blocked
if stage == "moving":
    move.check = blocked

from tandem.ui import app as the_app
class Driven(the_app.Application):
    def start(self):
        super().start()
        self.controller.ready.connect(self.act)
    def act(self):
        models = self.controller.models
        if stage in ("resolving", "transferring", "waiting", "checking"):
            models.job.connect(self.on_job)
            models.download("e2b")
            if stage == "resolving": self.told = False
        if stage == "verifying": models.verify()
        if stage == "importing":
            models.found.connect(lambda found: [models.take(one, "copy") for one in found])
            models.look([mine])
        if stage == "moving": models.move_folder(other)
    def on_job(self, job):
        if job is None: return
        states = {file.state for file in job.files}
        if stage == "resolving" and FileState.RESOLVING in states: at()
        if stage == "transferring" and job.done > 2_000_000 and job.running: at()
        if stage == "waiting" and job.waiting is not None: at()
the_app.Application = Driven
sys.exit(the_app.main())
"""


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[FakeHub]:
    known = catalog()
    monkeypatch.setattr(models_catalog, "catalog", lambda: known)
    alone(monkeypatch, tmp_path / "hf")
    with FakeHub() as running:
        fill(running)
        monkeypatch.setenv("HF_ENDPOINT", running.endpoint)
        yield running


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
@pytest.mark.parametrize("stage", STAGES)
def test_ends(qtbot: QtBot, hub: FakeHub, tmp_path: Path, stage: str, number: signal.Signals) -> None:
    mine = tmp_path / "mine.gguf"
    mine.write_bytes(content("e4b", "target").replace(b"like-gemma4", b"mine-gemma4"))
    other = tmp_path / "other"
    if stage == "resolving":
        hub.misbehave("silent", times=None, where="info")
    if stage == "transferring":
        held(hub)
    if stage == "waiting":
        hub.misbehave("503", times=None)
    choice = None
    if stage in ("verifying", "moving"):
        choice = PairChoice("files", *map(str, put(Store(paths.models_dir(), catalog()), "e2b")))
    keep(choice, load=True)
    root = Path(__file__).parents[2]
    environment = {**os.environ, "PYTHONPATH": f"{root / 'tests'}:{root / 'desktop'}", "QT_QPA_PLATFORM": "offscreen"}
    process = subprocess.Popen([sys.executable, "-c", DRIVER, stage, str(mine), str(other)], env=environment, stdout=subprocess.PIPE)
    try:
        assert process.stdout is not None
        line = process.stdout.readline()
        assert line.strip() == b"AT", line
        children = psutil.Process(process.pid).children(recursive=True)
        process.send_signal(number)
        code = process.wait(10)
        print(stage, number, code, [c.pid for c in children])
        psutil.wait_procs(children, timeout=10)
        assert not [c for c in children if c.is_running() and c.status() != psutil.STATUS_ZOMBIE]
    finally:
        process.kill()
        process.wait()
        process.stdout.close()
    hub.behave()
    print(sorted(str(p.relative_to(tmp_path.parent)) if p.is_relative_to(tmp_path.parent) else str(p) for p in [*paths.models_dir().rglob("*"), *other.rglob("*")] if p.is_file()), settings.load().settings.models_folder)
    with opened(qtbot) as user:
        user.press("Ctrl+2")
        shown = user.window.pages.models
        user.wait(lambda: user.controller.models.overview is not None)
        user.wait(lambda: not user.controller.models.looking)
        made = shown.cards["e2b"]
        print(made.file_state, made.progress.text, [n.text for n in user.notices])
        models = user.controller.models
        if stage in ("resolving", "transferring", "waiting", "checking"):
            assert made.file_state is (S.ABSENT if stage in ("resolving", ) else S.PAUSED) or stage == "waiting"
            models.download("e2b")
            user.wait(lambda: made.file_state is S.INSTALLED)
        elif stage == "importing":
            assert not models.overview.imported
            found = []
            models.found.connect(found.extend)
            models.look([str(mine)])
            user.wait(lambda: found)
            user.press("Esc")
            models.take(found[0], "copy")
            user.wait(lambda: models.overview.imported)
        else:
            user.loaded()
            assert made.in_use
            if stage == "moving":
                models.move_folder(str(other))
                user.wait(lambda: user.controller.settings.models_folder == str(other))
                user.wait(lambda: made.in_use and made.view.target.startswith(str(other)))
            else:
                models.verify()
                user.wait(lambda: not models.work.busy)
        user.wait(lambda: not models.looking and not models.work.busy)
        folder = Path(models.overview.folder)
        left = [str(p) for p in folder.rglob("*") if p.is_file() and p.suffix not in (".gguf",)]
        print("left", left)
