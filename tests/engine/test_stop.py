"""Stop, at every moment: what was there is kept and the engine stays usable."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import psutil
import pytest

from support.engines import Engine
from tandem.engine.client import EngineClient, RequestStopped
from tandem.engine.protocol import Count, Done, Load, Pass, Progress, Stopped
from tandem.engine.template import Message


def test_stop_while_decoding_keeps_text_and_figures(demo: Engine) -> None:
    request = demo.request(draft="3", ignore_eos=True, max_tokens=None)
    text, tokens, done = "", 0, None
    for event in demo.client.generate(request):
        if isinstance(event, Pass):
            text += "".join(piece.text for piece in event.text)
            tokens += len(event.tokens)
            if tokens > 20:
                demo.client.stop(request.id)
        if isinstance(event, Done):
            done = event
            text += "".join(piece.text for piece in event.text)
    assert done is not None
    assert done.stop == "stopped"
    assert done.stats.generated == tokens < 2000
    assert text.startswith("Once upon a time")
    assert demo.ask(draft="3").text.startswith(text[:40])


def test_stop_while_prefilling(demo: Engine) -> None:
    long = ("The fox walked to the old tree and looked for food. " * 100, "off")
    request = demo.request(long[0], draft=long[1], reuse=False)
    done = None
    for event in demo.client.generate(request):
        if isinstance(event, Progress) and event.done < event.total:
            demo.client.stop(request.id)
        if isinstance(event, Done):
            done = event
    assert done is not None
    assert (done.stop, done.stats.generated) == ("stopped", 0)
    again = demo.ask(long[0], draft="3")
    assert again.done.stats.cached_tokens > 0  # what was prefilled before the stop is of use
    assert again.tokens[:4] == demo.ask(long[0], draft="off", reuse=False).tokens[:4]


def test_stop_while_waiting_in_the_queue(demo: Engine) -> None:
    first = demo.request(draft="3", ignore_eos=True, max_tokens=400)
    second = demo.request(draft="3")
    demo.client.send(first)
    demo.client.send(second)
    demo.client.stop(second.id)
    ended: dict[int, object] = {}
    while len(ended) < 2:
        event = demo.client._receive(60.0)  # the two requests' events as they come
        if isinstance(event, Done | Stopped):
            ended[event.id] = event
        if isinstance(event, Pass):
            assert event.id == first.id
            demo.client.stop(first.id)
    assert isinstance(ended[second.id], Stopped)
    assert isinstance(ended[first.id], Done)
    counted = demo.client.count(Count(demo.client.next_id(), (Message("user", "Hello!"),)))
    assert counted.tokens > 0
    assert demo.ask().done.stop == "end"


def test_a_stop_that_comes_too_late_stops_nothing_else(demo: Engine) -> None:
    request = demo.request(draft="3")
    for event in demo.client.generate(request):
        assert not isinstance(event, Done) or event.stop == "end"
    demo.client.stop(request.id)
    assert demo.ask(draft="3").done.stop == "end"


def stopped_while_loading(client: EngineClient, demo_pair: tuple[Path, Path]) -> bool:
    load = Load(id=client.next_id(), target=bytes(demo_pair[0]), drafter=bytes(demo_pair[1]), threads=1)
    try:
        client.load(load, lambda _event: client.stop(load.id))
    except RequestStopped:
        return True
    return False


def test_stop_while_loading(demo_pair: tuple[Path, Path], tmp_path: Path) -> None:
    for _attempt in range(10):  # the pair is small: on a busy machine a stop can come after the load's end
        with EngineClient(tmp_path) as client:
            if stopped_while_loading(client, demo_pair):
                loaded = client.load(Load(id=client.next_id(), target=bytes(demo_pair[0]), threads=1))
                assert loaded.method == "none"
                return
    pytest.fail("no load was stopped")


def test_stop_from_another_thread_reaches_a_decode_that_runs(demo: Engine) -> None:
    """One long prefill batch, the stop sent while it runs: it must end inside the batch, not after the prompt."""
    prompt = (2, *[demo.ask("Hello!").tokens[0]] * 1900)
    events: list[Any] = []
    request = demo.request(prompt, reuse=False)
    started = threading.Event()

    def stop() -> None:
        started.wait()
        demo.client.stop(request.id)

    thread = threading.Thread(target=stop)
    thread.start()
    for event in demo.client.generate(request):
        events.append(event)
        started.set()
    thread.join()
    assert events[-1].stop == "stopped"
    assert not any(isinstance(event, Pass) for event in events)


def test_a_load_that_does_not_heed_a_stop_is_ended_with_its_process(
    demo_pair: tuple[Path, Path], tmp_path: Path
) -> None:
    """The engine is suspended in the middle of the load, as it is deaf while it maps a large file."""
    with EngineClient(tmp_path) as client:
        first = client.pid
        load = Load(id=client.next_id(), target=bytes(demo_pair[0]), drafter=bytes(demo_pair[1]), threads=1)

        def suspend_and_stop(_event: Progress) -> None:
            psutil.Process(client.pid).suspend()
            client.stop(load.id)

        with pytest.raises(RequestStopped):
            client.load(load, suspend_and_stop)
        assert not psutil.pid_exists(first or 0)
        loaded = client.load(Load(id=client.next_id(), target=bytes(demo_pair[0]), threads=1))
        assert loaded.method == "none"
        assert client.pid != first
