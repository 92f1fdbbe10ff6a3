"""What this machine is, and whether a pair fits."""

from __future__ import annotations

import cpuinfo
import psutil
import pytest

from tandem.hardware import machine
from tandem.hardware.machine import MIB, NEEDS, Machine, Need, best, fit

GIB = 1 << 30
E2B, E4B = NEEDS


def _machine(total: float, free: float) -> Machine:
    return Machine("A CPU", 4, 8, int(total * GIB), int(free * GIB), "Linux 6")


# What the models' makers and users report for 8,192 positions at f16.
@pytest.mark.parametrize(("need", "mib"), [(E2B, 60), (E4B, 168)])
def test_the_kv_cache_is_what_is_known_of_the_models(need: Need, mib: int) -> None:
    assert need.kv(8192) == mib * MIB


def test_the_sliding_layers_stop_growing() -> None:
    assert E2B.kv(16384) - E2B.kv(8192) == 8192 * 3 * 2 * 512 * 2
    assert E2B.kv(1) == 3 * 2 * 512 * 2 + 12 * 2 * 256 * 2 * 256  # one cell is rounded up to 256


def test_the_estimate_holds_everything() -> None:
    for need in NEEDS:
        assert need.memory() == need.target + need.drafter + need.kv() + machine.COMPUTE + machine.MARGIN
        assert need.memory(32768) > need.memory()


def test_larger_pairs_come_later() -> None:
    assert [need.memory() for need in NEEDS] == sorted(need.memory() for need in NEEDS)


@pytest.mark.parametrize(
    ("total", "free", "expected"),
    [
        (8, 6, ("fits", "fits")),
        (8, 4, ("fits", "tight")),
        (4, 2, ("too-large", "too-large")),
        (5, 2, ("tight", "too-large")),
    ],
)
def test_fit_judges_by_free_memory_and_then_by_all_of_it(total: float, free: float, expected: tuple[str, str]) -> None:
    assert tuple(fit(need.memory(), _machine(total, free)) for need in NEEDS) == expected


def test_fit_at_its_limits() -> None:
    here = _machine(4, 2)
    assert fit(2 * GIB, here) == "fits"
    assert fit(2 * GIB + 1, here) == "tight"
    assert fit(3 * GIB, here) == "tight"
    assert fit(3 * GIB + 1, here) == "too-large"


@pytest.mark.parametrize(
    ("total", "free", "expected"), [(16, 12, E4B), (8, 4, E2B), (6.5, 1, E2B), (5, 1, E2B), (2, 1.5, None)]
)
def test_best_prefers_what_fits_now(total: float, free: float, expected: Need | None) -> None:
    assert best(_machine(total, free)) == expected


def test_read_tells_of_this_machine() -> None:
    here = machine.read()
    assert here.cpu
    assert here.cpu == here.cpu.strip()
    assert 1 <= here.cpus <= (psutil.cpu_count() or 1)
    assert here.memory_total == psutil.virtual_memory().total
    assert 0 < here.memory_free <= here.memory_total
    assert here.cores is None or here.cores >= 1
    assert here.system


def test_read_does_without_a_processor_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cpuinfo, "get_cpu_info", dict)
    assert machine.read().cpu
