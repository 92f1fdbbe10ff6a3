"""Thread counts: what is allowed, what is fastest, and what the governor does when the machine is shared."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from support.engines import running
from tandem.engine import threads
from tandem.engine.threads import ThreadGovernor, allowed_cpus, candidates, fastest


class Machine:
    """A machine of `cpus` CPUs on which `others` programs run, and a model whose work splits well. Its clock is ours.

    A pass takes 0.1 s of CPU time. Threads that get no CPU of their own make all wait for the scheduler.
    """

    def __init__(self, cpus: int, sync_s: float = 0.0) -> None:
        self.cpus, self.others, self.sync_s = cpus, 0, sync_s
        self.now = self.cpu = self.asked = 0.0
        self.history: list[int] = []

    def run(self, count: int) -> None:
        free = self.cpus - self.others
        crowded = count > free
        wall = 0.1 / count * (6 if crowded else 1) + self.sync_s * (count - 1)
        self.now += wall
        self.cpu += wall * count * (0.4 if crowded else 1.0)

    def idle(self) -> float:
        return self.cpus - self.others - (self.history[-1] if self.history else 0)

    def passes(self, governor: ThreadGovernor, number: int, rows: int = 4) -> list[int]:
        counts = []
        for _ in range(number):
            governor.begin()
            self.run(governor.count)
            governor.end(rows)
            counts.append(governor.count)
        return counts

    def governor(self, count: int, maximum: int) -> ThreadGovernor:
        self.history = [count]
        return ThreadGovernor(
            count, maximum, self.history.append, idle=self.idle, clock=lambda: self.now, cpu=lambda: self.cpu
        )


def test_governor_leaves_a_quiet_machine_alone() -> None:
    machine = Machine(8)
    assert set(machine.passes(machine.governor(8, 8), 200)) == {8}


@pytest.mark.parametrize(("cpus", "others", "expected"), [(2, 1, 1), (8, 1, 7), (8, 3, 5), (4, 4, 1)])
def test_governor_gives_cpus_to_other_work_and_takes_them_back(cpus: int, others: int, expected: int) -> None:
    machine = Machine(cpus)
    governor = machine.governor(cpus, cpus)
    machine.passes(governor, 10)
    machine.others = others
    counts = machine.passes(governor, 40)
    assert counts[3 * (cpus - expected) - 1] == expected  # three passes for each thread that is given up
    assert counts[-1] == expected
    machine.others = 0
    assert machine.passes(governor, 400)[-1] == cpus


def test_governor_finds_the_cpus_that_were_busy_while_loading() -> None:
    machine = Machine(2)
    assert machine.passes(machine.governor(1, 2), 100)[-1] == 2


def test_governor_drops_a_thread_that_brings_nothing_and_asks_ever_more_rarely() -> None:
    machine = Machine(2, sync_s=0.2)  # a small model: meeting at the barriers costs more than the second CPU gives
    governor = machine.governor(1, 2)
    counts = machine.passes(governor, 2000)
    assert counts[-1] == 1
    assert counts[:500].count(2) > counts[-500:].count(2)
    assert counts.count(2) < 100


def test_governor_never_goes_below_one_or_above_its_maximum() -> None:
    machine = Machine(4)
    machine.others = 4
    governor = machine.governor(2, 3)
    assert set(machine.passes(governor, 50)) <= {1, 2}
    machine.others = 0
    assert max(machine.passes(governor, 500)) == 3


def test_candidates_go_from_all_to_one() -> None:
    assert candidates(1) == [1]
    assert candidates(2) == [2, 1]
    assert candidates(12) == [12, 6, 3, 1]


def test_fastest_takes_the_shortest_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]
    monkeypatch.setattr(threads.time, "perf_counter", lambda: now[0])
    monkeypatch.setattr(threads.time, "process_time", lambda: 100.0 * now[0])
    times = {8: 0.3, 4: 0.1, 2: 0.2, 1: 0.4}

    def run(count: int) -> None:
        now[0] += times[count]

    assert fastest([8, 4, 2, 1], run, budget_s=100.0) == (4, False)
    monkeypatch.setattr(threads.time, "process_time", lambda: 0.5 * now[0])
    assert fastest([8, 4, 2, 1], run, budget_s=100.0) == (4, True)
    assert fastest([8, 4, 2, 1], run, budget_s=0.5) == (8, True)  # no time to try more


def test_allowed_cpus_follows_the_affinity_of_the_process() -> None:
    code = "from tandem.engine.threads import allowed_cpus; print(allowed_cpus())"
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    one = next(iter(os.sched_getaffinity(0)))
    limited = subprocess.run(
        ["taskset", "-c", str(one), sys.executable, "-c", code], capture_output=True, text=True, env=environment
    )
    assert limited.stdout.strip() == "1"
    assert 1 <= allowed_cpus() <= len(os.sched_getaffinity(0))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("max 100000", 8),
        ("150000 100000", 2),
        ("100000 100000", 1),
        ("10000 100000", 1),
        ("900000 100000", 8),
        ("x", 8),
    ],
)
def test_allowed_cpus_follows_a_cgroup_quota(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, expected: int
) -> None:
    file = tmp_path / "cpu.max"
    file.write_text(text)
    monkeypatch.setattr(threads, "_CGROUP_V2", file)
    monkeypatch.setattr(threads.os, "sched_getaffinity", lambda _pid: set(range(8)))
    assert allowed_cpus() == expected


@pytest.mark.parametrize("asked", [None, 64])
def test_the_engine_never_uses_more_threads_than_it_may(
    demo_pair: tuple[Path, Path], tmp_path: Path, asked: int | None
) -> None:
    with running(tmp_path, *demo_pair, threads=asked) as engine:
        assert 1 <= engine.loaded.threads <= allowed_cpus()
        process = psutil.Process(engine.client.pid)
        engine.ask(draft="3")
        assert process.num_threads() < 64  # OpenMP starts no more than it was told
