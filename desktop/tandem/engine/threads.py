"""How many threads a pass gets, and how they wait.

llama.cpp's threads meet at a barrier after every graph node, some thousand times a pass. A thread that waits by
spinning answers at once when it has its CPU to itself; when another program has that CPU, every barrier lasts one of
the scheduler's time slices and decoding falls a hundredfold. A thread that waits asleep never falls that far and is slower alone.

So the engine's OpenMP spins for a bounded time (`WAIT_ENVIRONMENT`), and `ThreadGovernor` watches for other work.
"""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

WAIT_ENVIRONMENT: Final = {"GOMP_SPINCOUNT": "10000"}
"""Read by libgomp when it loads, so it must be set before llama.cpp is imported."""

_CGROUP_V2: Final = Path("/sys/fs/cgroup/cpu.max")
_CGROUP_V1: Final = Path("/sys/fs/cgroup/cpu/cpu.cfs_quota_us"), Path("/sys/fs/cgroup/cpu/cpu.cfs_period_us")


def allowed_cpus() -> int:
    """CPUs this process may use: its affinity, and its cgroup's quota rounded up; at least 1."""
    count = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    quota = _quota()
    return max(1, min(count, -int(-quota // 1)) if quota else count)


def _quota() -> float | None:
    try:
        if _CGROUP_V2.exists():
            limit, period = _CGROUP_V2.read_text().split()
        else:
            limit, period = (path.read_text().strip() for path in _CGROUP_V1)
        return None if limit in ("max", "-1") else int(limit) / int(period)
    except (OSError, ValueError, ZeroDivisionError):
        return None


def candidates(cpus: int) -> list[int]:
    """Thread counts worth timing, most promising first: all, physical cores as a guess, halves, down to 1."""
    counts, count = [], cpus
    while count >= 1:
        counts.append(count)
        count //= 2
    return counts


def fastest(counts: list[int], run: Callable[[int], None], budget_s: float = 2.0) -> int:
    """The thread count with the shortest pass.

    Args:
        counts: What to try.
        run: Runs one pass with that many threads.
        budget_s: Stops trying further counts after this long.

    Returns:
        One of `counts`.
    """
    began = time.perf_counter()
    best, best_s = counts[0], float("inf")
    for count in counts:
        run(count)  # the first pass with a new count also starts its threads
        times = []
        for _ in range(3):
            start = time.perf_counter()
            run(count)
            times.append(time.perf_counter() - start)
        seconds = statistics.median(times)
        if seconds < best_s:
            best, best_s = count, seconds
        if time.perf_counter() - began > budget_s:
            break
    return best
