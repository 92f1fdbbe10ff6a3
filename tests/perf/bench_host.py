"""Time of a pass that is not llama.cpp's, at Gemma's vocabulary of 262,144.

    python tests/perf/bench_host.py [--passes 150]

The engine's own loop runs in this process on a pair with the real vocabulary and small layers; every `Context.decode`
is timed, and what is left of a pass is the host's. Allowed: greedy 1.0 ms + 0.25 ms per verify row; sampled (top-k 64,
top-p .95) 1.0 ms + 0.5 ms per row. Events go to a pipe that a thread empties, as in the real engine.
"""

from __future__ import annotations

import argparse
import dataclasses
import os
import statistics
import threading
import time
from itertools import pairwise
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from typing import Any

import _path  # noqa: F401  (first: it makes the packages below importable)
from make_pair import get_pair, prompt

from support.handset import E2B, Shape
from tandem.engine import bindings, protocol
from tandem.engine.loader import LogTail
from tandem.engine.protocol import Generate, Load, Pass
from tandem.engine.sampling import SamplingParams
from tandem.engine.session import Session

WIDE: Shape = dataclasses.replace(
    E2B,
    name="wide",
    layers=10,
    shared=0,
    ffn=256,
    ffn_shared=256,
    per_layer=32,
    hidden=256,
    draft_hidden=128,
    draft_ffn=256,
)


def main() -> None:
    """Prints medians for each draft length, greedy and sampled."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--passes", type=int, default=150)
    options = parser.parse_args()
    target, drafter = get_pair(WIDE, 0.8)
    ours, theirs = Pipe()
    threading.Thread(target=_drain, args=(theirs,), daemon=True).start()
    decoding = [0.0]
    plain_decode = bindings.Context.decode

    def timed_decode(context: bindings.Context, batch: bindings.Batch) -> None:
        start = time.perf_counter()
        try:
            plain_decode(context, batch)
        finally:
            decoding[0] += time.perf_counter() - start

    bindings.Context.decode = timed_decode  # type: ignore[method-assign]  # the measuring itself
    marks: list[tuple[float, float, int]] = []

    def emit(event: protocol.Event) -> None:
        ours.send_bytes(protocol.encode(event))
        if isinstance(event, Pass):
            marks.append((time.perf_counter(), decoding[0], len(event.confidences) + 1))

    log = LogTail(lambda _text: None)
    bindings.set_log(log)
    session = Session(log, emit)
    session.load(Load(id=1, target=os.fsencode(target), drafter=os.fsencode(drafter), context=2048, threads=1))
    print("kind     draft  rows  host ms per pass  allowed ms  ratio")
    for kind, sampling in {"greedy": SamplingParams(temperature=0.0), "sampled": SamplingParams(seed=1)}.items():
        for draft in (0, 1, 2, 3, 4, 8):
            marks.clear()
            request = Generate(
                id=2,
                tokens=tuple(prompt(32)),
                draft=str(draft),
                sampling=sampling,
                ignore_eos=False,
                max_tokens=options.passes,
                reuse=False,
            )
            session.generate(request)
            full = [
                (now - before - (decoded - decoded_before), rows)
                for (before, decoded_before, _), (now, decoded, rows) in pairwise(marks)
                if rows == draft + 1
            ]
            host = statistics.median(seconds for seconds, _ in full) * 1000
            allowed = 1.0 + (0.25 if kind == "greedy" else 0.5) * (draft + 1)
            print(f"{kind:8} {draft:5} {draft + 1:5} {host:17.3f} {allowed:11.2f} {host / allowed:6.2f}")
    session.close()


def _drain(connection: Connection[Any, Any]) -> None:
    while True:
        connection.recv_bytes()


if __name__ == "__main__":
    main()
