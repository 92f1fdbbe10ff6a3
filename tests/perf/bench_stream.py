"""What streaming to the parent costs.

    python tests/perf/bench_stream.py [--rounds 7]

1. Event rate: a process sends pass events through the engine's own protocol and pipe, `EngineClient` reads them.
   Wanted: 5,000 passes a second.
2. Cost to the engine: the demo pair answers with events sent to another process, and with events thrown away, in
   turns. Wanted: under 2 % of decode time at 500 tok/s, that is 40 microseconds for an event of one token.
"""

from __future__ import annotations

import argparse
import contextlib
import multiprocessing
import os
import statistics
import time
from multiprocessing.connection import Connection
from typing import Any

import _path  # noqa: F401  (first: it makes the packages below importable)

from tandem import paths
from tandem.engine import protocol
from tandem.engine.client import EngineClient
from tandem.engine.metrics import RunStats
from tandem.engine.protocol import Done, Generate, Load, Pass, Text
from tandem.engine.sampling import SamplingParams

EVENT = Pass(
    id=1,
    tokens=(1024, 323, 1225, 679),
    text=tuple(Text("answer", piece, token) for token, piece in enumerate(("the", " old", " tree", " stood"), 200)),
    drafted=(True, True, True, False),
    accepted=(True, True, True, False),
    confidences=(0.9731, 0.8123, 0.4555),
    draft_s=0.00123,
    verify_s=0.01234,
)


def send(connection: Connection[Any, Any], count: int) -> None:
    """The engine's side: as many events as fast as the pipe takes them."""
    for _ in range(count):
        connection.send_bytes(protocol.encode(EVENT))
    done = Done(1, "end", RunStats(), (), 0, "3", 0)
    connection.send_bytes(protocol.encode(done))
    with contextlib.suppress(EOFError):  # wait until everything was read
        connection.recv_bytes()


def drain(connection: Connection[Any, Any]) -> None:
    """A parent that only reads and decodes."""
    with contextlib.suppress(EOFError):
        while True:
            protocol.decode_event(connection.recv_bytes())


def event_rate(rounds: int, count: int = 20_000) -> list[float]:
    """Events per second that the client reads."""
    rates = []
    context = multiprocessing.get_context("spawn")
    for _ in range(rounds):
        ours, theirs = context.Pipe()
        process = context.Process(target=send, args=(theirs, count), daemon=True)
        client = EngineClient(paths.log_dir())
        client._connection, client._process = ours, process  # a client whose engine only sends
        process.start()
        theirs.close()
        events = client._stream(1)
        next(events)
        start = time.perf_counter()
        seen = sum(1 for _ in events)
        rates.append(seen / (time.perf_counter() - start))
        client.close()
    return rates


def costs(rounds: int) -> tuple[list[float], list[float]]:
    """Seconds per event that sending takes, and decode time with events over decode time without, by round."""
    from tandem.engine.bindings import set_log
    from tandem.engine.loader import LogTail
    from tandem.engine.session import Session

    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    context.Process(target=drain, args=(theirs,), daemon=True).start()
    theirs.close()
    sent: list[float] = []
    seen: list[Done] = []
    sending = True

    def emit(event: protocol.Event) -> None:
        start = time.perf_counter()
        if sending:
            ours.send_bytes(protocol.encode(event))
        if isinstance(event, Pass):
            sent.append(time.perf_counter() - start)
        if isinstance(event, Done):
            seen.append(event)

    log = LogTail(lambda _text: None)
    set_log(log)
    session = Session(log, emit)
    target, drafter = paths.demo_pair()
    session.load(Load(id=1, target=os.fsencode(target), drafter=os.fsencode(drafter), threads=1))
    per_event, ratios = [], []
    for _ in range(rounds):
        seconds = {}
        for sending in (True, False):
            sent.clear()
            session.generate(
                Generate(
                    id=1,
                    tokens=(2, 5, 634, 280),
                    sampling=SamplingParams(temperature=0.0),
                    ignore_eos=True,
                    max_tokens=600,
                    reuse=False,
                )
            )
            seconds[sending] = seen[-1].stats.decode_s
            if sending:
                per_event.append(statistics.median(sent))
        ratios.append(seconds[True] / seconds[False])
    session.close()
    return per_event, ratios


def main() -> None:
    """Prints medians."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=7)
    options = parser.parse_args()
    rates = event_rate(options.rounds)
    print(f"event rate: {statistics.median(rates):,.0f} passes/s ({min(rates):,.0f}–{max(rates):,.0f})")
    per_event, ratios = costs(options.rounds)
    cost = statistics.median(per_event)
    print(f"cost of an event: {cost * 1e6:.1f} us, {cost * 500:.2%} of decode time at 500 tok/s without drafts")
    spread = f"{statistics.median(ratios):.3f} ({min(ratios):.3f}–{max(ratios):.3f})"
    print(f"decode time with events / without, demo pair: {spread}")


if __name__ == "__main__":
    main()
