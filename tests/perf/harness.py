"""What the benchmarks share: an engine with a pair, one request, and how a figure is printed."""

from __future__ import annotations

import statistics
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import _path  # noqa: F401  (first: it makes the packages below importable)

from support.engines import Engine, Reply, running


@contextmanager
def engine(target: Path, drafter: Path | None, **fields: Any) -> Iterator[Engine]:
    """A real engine process; its thread count is the default one unless given."""
    fields.setdefault("threads", None)
    with tempfile.TemporaryDirectory() as logs, running(Path(logs), target, drafter, **fields) as found:
        yield found


def measure(found: Engine, prompt: Sequence[int], draft: str, count: int) -> Reply:
    """One greedy answer of exactly `count` tokens from an empty cache."""
    return found.ask(tuple(prompt), draft=draft, max_tokens=count, ignore_eos=True, reuse=False)


def spread(values: Sequence[float], unit: str, digits: int = 2) -> str:
    """Median and range, as text."""
    low, high = min(values), max(values)
    return f"{statistics.median(values):.{digits}f} {unit} ({low:.{digits}f}–{high:.{digits}f}, n={len(values)})"
