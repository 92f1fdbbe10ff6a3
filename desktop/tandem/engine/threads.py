"""How many threads a pass gets, and how they wait.

llama.cpp's threads meet at a barrier after every graph node, some thousand times a pass. A thread that waits by
spinning answers at once when it has its CPU to itself. When another program has that CPU, every barrier lasts one of
the scheduler's time slices, and decoding falls a hundredfold. Threads that wait asleep never fall that far, but are
slower on a machine that has nothing else to do.

The engine has both: its OpenMP spins for a bounded time and then sleeps (`WAIT_ENVIRONMENT`), and `ThreadGovernor`
gives a CPU up when something else wants it and takes it back when it is idle again.
"""

from __future__ import annotations

import os
import statistics
import time
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import Final

import psutil

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
    """Thread counts worth timing: all CPUs, half of them (a guess at physical cores), a quarter, … down to 1."""
    counts, count = [], cpus
    while count >= 1:
        counts.append(count)
        count //= 2
    return counts


BUSY: Final = 0.85
"""Share of threads * wall time in CPU time below which something else was running on our CPUs."""


def fastest(counts: list[int], run: Callable[[int], None], budget_s: float = 2.0) -> tuple[int, bool]:
    """The thread count with the shortest pass, and whether something else disturbed the timing.

    Args:
        counts: What to try.
        run: Runs one pass with that many threads.
        budget_s: Stops trying further counts after this long.

    Returns:
        One of `counts`, and whether the machine was busy with other work.
    """
    began = time.perf_counter()
    best, best_s, disturbed = counts[0], float("inf"), False
    for count in counts:
        run(count)  # the first pass with a new count also starts its threads
        times = []
        wall, cpu = time.perf_counter(), time.process_time()
        for _ in range(3):
            start = time.perf_counter()
            run(count)
            times.append(time.perf_counter() - start)
        disturbed |= time.process_time() - cpu < BUSY * count * (time.perf_counter() - wall)
        seconds = statistics.median(times)
        if seconds < best_s:
            best, best_s = count, seconds
        if time.perf_counter() - began > budget_s:
            break
    return best, disturbed


class IdleCpus:
    """How many CPUs' worth of time nobody used since the last call, over the whole machine."""

    def __init__(self) -> None:
        self._last = psutil.cpu_times()
        self._at = time.perf_counter()

    def __call__(self) -> float:
        """CPUs idle on average since the last call."""
        now, at = psutil.cpu_times(), time.perf_counter()
        idle = now.idle - self._last.idle + getattr(now, "iowait", 0.0) - getattr(self._last, "iowait", 0.0)
        elapsed = at - self._at
        self._last, self._at = now, at
        return idle / elapsed if elapsed > 0 else 0.0


class ThreadGovernor:
    """Keeps the number of threads to what the machine really gives.

    A pass in which nobody disturbs keeps its threads busy all the time: they work or spin. CPU time well below
    threads * wall time means that some of them were waiting for a CPU, or asleep at a barrier for one that was. Then
    one thread less is faster. When a CPU has been idle for a while one more is tried, and kept if passes get shorter.

    Args:
        count: Threads now.
        maximum: Most threads.
        apply: Sets the number of threads.
        idle: CPUs idle since its last call.
        clock: Wall time in seconds.
        cpu: CPU time of all threads of this process in seconds.
    """

    _PASSES: Final = 3  # passes that must agree, or
    _LONG_S: Final = 0.25  # this much time in one
    _LOOK_S: Final = 0.5  # how often idle CPUs are looked for
    _LONGEST_S: Final = 16.0

    def __init__(
        self,
        count: int,
        maximum: int,
        apply: Callable[[int], None],
        idle: Callable[[], float] | None = None,
        clock: Callable[[], float] = time.perf_counter,
        cpu: Callable[[], float] = time.process_time,
    ) -> None:
        self.count = count
        self._maximum = maximum
        self._apply = apply
        self._idle = idle or IdleCpus()
        self._clock = clock
        self._cpu = cpu
        self._recent: deque[tuple[float, float]] = deque(maxlen=self._PASSES)  # CPU time, wall time * threads
        self._seconds: dict[tuple[int, int], float] = {}  # (threads, rows) -> smoothed time of a pass
        self._began = (0.0, 0.0)
        self._look_at = 0.0
        self._pause_s = self._LOOK_S
        self._trial: int | None = None  # passes left until a raise is judged
        self.crowded = False
        """Something else wants our CPUs."""

    def begin(self) -> None:
        """A pass begins."""
        self._began = self._clock(), self._cpu()

    def end(self, rows: int, count: int | None = None) -> None:
        """A run over `rows` tokens ended; changes the number of threads for the next one if that is better.

        A prefill may run with more threads than `count` of the governor. When it is disturbed, `apply` is called with
        the governor's own count, and should then use no more for prefills until a CPU is idle again.
        """
        wall = self._clock() - self._began[0]
        if wall <= 0:
            return
        if count is not None and count != self.count:
            self._end_prefill(wall * count)
            return
        before = self._seconds.get((self.count, rows), wall)
        self._seconds[self.count, rows] = 0.7 * before + 0.3 * wall
        self._recent.append((self._cpu() - self._began[1], wall * self.count))
        if self._trial is not None:
            self._trial -= 1
        if self.count > 1 and (self._disturbed() or (self._trial == 0 and self._slower(rows))):
            self.crowded = self._trial is None
            self._change(self.count - 1)
            if self._trial is not None:
                self._pause_s = min(2 * self._pause_s, self._LONGEST_S)
            self._trial = None
        elif self._trial == 0:
            self._trial = None
            self._pause_s = self._LOOK_S
        elif (self.crowded or self.count < self._maximum) and self._trial is None:
            self._look()

    def _end_prefill(self, given: float) -> None:
        disturbed = self._cpu() - self._began[1] < BUSY * given
        if disturbed and given > self._LONG_S:
            self.crowded = True
            self._change(self.count)

    def _disturbed(self) -> bool:
        used = sum(cpu for cpu, _ in self._recent)
        given = sum(wall for _, wall in self._recent)
        enough = len(self._recent) == self._PASSES or given > self._LONG_S * self.count
        return enough and used < BUSY * given

    def _slower(self, rows: int) -> bool:
        fewer = self._seconds.get((self.count - 1, rows))
        return fewer is not None and self._seconds[self.count, rows] > fewer

    def _look(self) -> None:
        now = self._clock()
        if now < self._look_at:
            return
        idle = self._look_at > 0 and self._idle() > 0.8
        if idle and self.crowded:
            self.crowded = False
            self._change(self.count)
        elif idle and self.count < self._maximum:
            self._change(self.count + 1)
            self._trial = self._PASSES
        else:
            self._look_at = now + self._pause_s

    def _change(self, count: int) -> None:
        self.count = count
        self._recent.clear()
        self._seconds = {key: value for key, value in self._seconds.items() if key[0] != count}
        self._apply(count)
        self._idle()  # what was idle before says nothing about what is idle now
        self._look_at = self._clock() + self._pause_s
