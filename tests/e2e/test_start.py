"""`python -m tandem` with its real engine: it opens, loads the demo pair, closes, and needed nothing heavy for it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from perf.first_paint import HEAVY
from support.command import PATIENCE_S, environment
from tandem import settings

FIRST_PAINT = Path(__file__).parents[1] / "perf" / "first_paint.py"


@pytest.fixture(scope="module")
def start(tmp_path_factory: pytest.TempPathFactory) -> dict[str, object]:
    """What was seen of one start; see `first_paint`."""
    folder = tmp_path_factory.mktemp("start")
    home, answer = folder / "home", folder / "answer.json"
    env = {**environment(), "TANDEM_HOME": str(home), "QT_QPA_PLATFORM": "offscreen"}
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TANDEM_HOME", str(home))
        settings.save(settings.Settings().changed(first_run_done=True))
    before = {child.pid for child in psutil.Process().children(recursive=True)}
    done = subprocess.run(
        [sys.executable, FIRST_PAINT, answer], env=env, capture_output=True, text=True, timeout=PATIENCE_S
    )
    assert answer.exists(), done.stdout + done.stderr
    left = [child for child in psutil.Process().children(recursive=True) if child.pid not in before]
    found = json.loads(answer.read_text("utf-8"))
    return {**found, "code": done.returncode, "out": done.stdout + done.stderr, "left": left}


def test_it_opens_and_closes_without_a_word(start: dict[str, object]) -> None:
    assert start["out"] == ""
    assert start["code"] == 0


def test_its_engine_runs_and_ends_with_it(start: dict[str, object]) -> None:
    assert start["engines"] == 1
    assert start["left"] == []


def test_nothing_heavy_is_loaded_before_the_first_paint(start: dict[str, object]) -> None:
    modules = start["modules"]
    assert isinstance(modules, list)
    assert "tandem.ui.window" in modules
    assert [name for name in HEAVY if name in modules] == []


def test_the_window_alone_is_small(start: dict[str, object]) -> None:
    assert float(str(start["settled_mb"])) < 180
