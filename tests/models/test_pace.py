"""Speed, time left, and the speed limit; the clock is given in."""

from __future__ import annotations

import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tandem.models.pace import Limit, Speed


def test_speed_is_unknown_at_first() -> None:
    speed = Speed()
    assert speed.rate(0.0) is None
    speed.add(1000, 0.0)
    assert speed.rate(0.4) is None
    assert speed.left_s(1000, 0.4) is None


def test_speed_is_bytes_over_seconds() -> None:
    speed = Speed()
    for step in range(1, 21):
        speed.add(1000, step * 0.1)
    assert speed.rate(2.0) == pytest.approx(20_000 / 1.9)
    assert speed.left_s(20_000, 2.0) == pytest.approx(1.9)


def test_speed_follows_the_last_seconds_only() -> None:
    speed = Speed(window_s=5.0)
    for step in range(100):
        speed.add(1_000_000, step * 0.1)
    for step in range(100, 200):
        speed.add(1000, step * 0.1)
    assert speed.rate(20.0) == pytest.approx(10_000, rel=0.05)


def test_speed_goes_down_to_nothing_when_nothing_comes() -> None:
    speed = Speed(window_s=5.0)
    speed.add(1000, 0.0)
    speed.add(1000, 1.0)
    assert speed.rate(30.0) == 0
    assert speed.left_s(1000, 30.0) is None


def test_after_a_pause_speed_is_counted_anew() -> None:
    speed = Speed()
    speed.add(1000, 0.0)
    speed.add(1000, 1.0)
    speed.restart()
    assert speed.rate(1.0) is None
    speed.add(500, 10.0)
    assert speed.rate(11.0) == pytest.approx(500)


def test_without_a_limit_nobody_waits() -> None:
    assert Limit().take(1 << 40, 0.0) == 0


def test_a_limit_is_kept_over_time() -> None:
    limit, now, count = Limit(1_000_000), 0.0, 0
    while now < 10.0:
        now += limit.take(1 << 16, now)
        count += 1 << 16
    assert count == pytest.approx(10_000_000, rel=0.05)


def test_what_was_not_used_is_not_kept_for_later() -> None:
    limit = Limit(1_000_000)
    limit.take(1000, 0.0)
    assert limit.take(5_000_000, 100.0) == pytest.approx(4.75)


def test_a_limit_can_be_changed_and_taken_away() -> None:
    limit = Limit(1000)
    assert limit.take(1_000_000, 0.0) > 900
    limit.change(1_000_000)
    assert limit.take(100_000, 1.0) == 0
    limit.change(None)
    assert limit.take(1 << 40, 1.0) == 0
    assert limit.bytes_per_s is None


def test_a_low_limit_lets_one_block_through_at_once() -> None:
    assert Limit(1024).take(1 << 16, 0.0) == 0


@given(
    rate=st.integers(1024, 1 << 30),
    steps=st.lists(st.tuples(st.integers(1, 1 << 20), st.floats(0.0, 2.0)), min_size=1, max_size=60),
)
def test_no_schedule_gets_more_than_the_limit(rate: int, steps: list[tuple[int, float]]) -> None:
    limit, now, taken = Limit(rate), 0.0, 0
    for count, idle in steps:
        now += idle
        taken += count
        now += limit.take(count, now)
    burst = max(0.25 * rate, 1 << 16) + 0.25 * rate
    assert taken <= rate * now + burst + 1


def test_threads_keep_to_it_together() -> None:
    limit = Limit(1_000_000)
    waits: list[float] = []

    def take() -> None:
        waits.extend(limit.take(10_000, 0.0) for _ in range(25))

    threads = [threading.Thread(target=take) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert max(waits) == pytest.approx(0.75)
