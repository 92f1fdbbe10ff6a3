"""Puts `desktop/` and `tests/` on the import path, so that a benchmark runs as `python tests/perf/bench_x.py`."""

from __future__ import annotations

import sys
from pathlib import Path

_ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(_ROOT / "desktop"), str(_ROOT / "tests")]
