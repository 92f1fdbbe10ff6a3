"""How long Stop takes, while loading, prefilling and decoding.

    python tests/perf/bench_stop.py [--shape e2b] [--repeats 5]

From `EngineClient.stop` to the event that ends the request. Wanted: under 300 ms on a CPU.
"""

from __future__ import annotations

import argparse
import tempfile
import threading
import time
from pathlib import Path

from harness import engine, spread
from make_pair import SHAPES, get_pair, prompt

from support.engines import Engine
from tandem.engine.client import EngineClient, RequestStopped
from tandem.engine.protocol import Load


def stop_after(found: EngineClient, request: int, seconds: float, marks: list[float]) -> threading.Timer:
    """A timer that stops the request and notes when."""

    def stop() -> None:
        marks.append(time.perf_counter())
        found.stop(request)

    timer = threading.Timer(seconds, stop)
    timer.start()
    return timer


def loading(target: Path, drafter: Path, delays: list[float]) -> list[float]:
    """Seconds from stop to the end of the load, stopped so long after its begin."""
    times = []
    with tempfile.TemporaryDirectory() as logs, EngineClient(Path(logs)) as client:
        for delay in delays:
            load = Load(id=client.next_id(), target=bytes(target), drafter=bytes(drafter))
            marks: list[float] = []
            timer = stop_after(client, load.id, delay, marks)
            try:
                client.load(load)
                print(f"  loaded within {delay:.2f} s: nothing to stop")
                timer.join()
                break
            except RequestStopped:
                times.append(time.perf_counter() - marks[0])
    return times


def answering(found: Engine, tokens: int, delays: list[float]) -> list[float]:
    """Seconds from stop to `Done`, for a prompt of so many tokens."""
    times = []
    for delay in delays:
        request = found.request(tuple(prompt(tokens)), draft="3", ignore_eos=True, max_tokens=None, reuse=False)
        marks: list[float] = []
        events = found.client.generate(request)
        timer = stop_after(found.client, request.id, delay, marks)
        for _ in events:
            pass
        times.append(time.perf_counter() - marks[0])
        timer.join()
    return times


def main() -> None:
    """Prints median and range of the three."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--shape", choices=SHAPES, default="e2b")
    parser.add_argument("--repeats", type=int, default=5)
    options = parser.parse_args()
    pair = get_pair(SHAPES[options.shape], 0.7)
    delays = [0.15 + 0.37 * number for number in range(options.repeats)]
    times = loading(*pair, delays)
    if times:
        print("loading:   ", spread([1000 * value for value in times], "ms", 0))
    with engine(*pair, context=4096) as found:
        print("prefilling:", spread([1000 * value for value in answering(found, 3000, delays)], "ms", 0))
        later = [3.0 + delay for delay in delays]
        print("decoding:  ", spread([1000 * value for value in answering(found, 32, later)], "ms", 0))


if __name__ == "__main__":
    main()
