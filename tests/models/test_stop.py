"""Telling work to end."""

from __future__ import annotations

import threading

import pytest

from tandem.models.stop import Stop, Stopped


def test_it_is_not_set_at_first() -> None:
    stop = Stop()
    assert not stop.is_set()
    assert stop.why is None
    assert not stop.wait(0)
    stop.check()


def test_it_stays_set() -> None:
    stop = Stop()
    stop.set("pause")
    assert stop.is_set()
    assert stop.wait(0)
    with pytest.raises(Stopped) as caught:
        stop.check()
    assert caught.value.why == "pause"


def test_a_cancel_after_a_pause_counts_but_not_the_other_way_round() -> None:
    stop = Stop()
    stop.set("pause")
    stop.set("cancel")
    assert stop.why == "cancel"
    stop.set("pause")
    assert stop.why == "cancel"


def test_who_waits_is_woken() -> None:
    stop = Stop()
    woken: list[bool] = []
    thread = threading.Thread(target=lambda: woken.append(stop.wait(60)))
    thread.start()
    stop.set()
    thread.join()
    assert woken == [True]


def test_callbacks_are_called_once() -> None:
    stop, called = Stop(), []
    stop.on_set(lambda: called.append("before"))
    stop.set("pause")
    stop.set("cancel")
    assert called == ["before"]
    stop.on_set(lambda: called.append("after"))
    assert called == ["before", "after"]


def test_a_callback_can_be_taken_back() -> None:
    stop, called = Stop(), []
    forget = stop.on_set(lambda: called.append("called"))
    forget()
    forget()
    stop.set()
    assert called == []
