"""Decode speed alone and beside one busy process, on the same pair, in turns.

    python tests/perf/bench_contention.py [--shape e2b] [--draft off 3] [--repeats 3] [--env NAME=VALUE ...]

Wanted: at least half of the speed alone. The busy process computes without a pause, at the same priority. `--env` sets
variables of the engine, to compare ways of waiting (`OMP_WAIT_POLICY=ACTIVE`, `GOMP_SPINCOUNT=…`).
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from harness import engine, measure, spread
from make_pair import SHAPES, get_pair, prompt

from tandem import paths


@contextmanager
def busy(processes: int) -> Iterator[None]:
    """So many programs that want a CPU all the time."""
    running = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(processes)]
    try:
        yield
    finally:
        for process in running:
            process.kill()
            process.wait()


def main() -> None:
    """Prints a line for each draft length."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--shape", choices=[*SHAPES, "demo"], default="e2b")
    parser.add_argument("--draft", nargs="+", default=["off", "3"])
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--tokens", type=int, default=96)
    parser.add_argument("--busy", type=int, default=1, help="busy processes")
    parser.add_argument("--threads", type=int, help="fixed, without timing and without the governor")
    parser.add_argument("--env", nargs="*", default=[], metavar="NAME=VALUE")
    options = parser.parse_args()
    os.environ.update(item.split("=", 1) for item in options.env)
    pair = paths.demo_pair() if options.shape == "demo" else get_pair(SHAPES[options.shape], 0.7)
    with engine(*pair, context=2048, threads=options.threads) as found:
        print(f"{found.loaded.threads} threads; tok/s, median (range)")
        for draft in options.draft:
            alone, beside = [], []
            for _ in range(options.repeats):
                alone.append(measure(found, prompt(32), draft, options.tokens).done.stats.decode_tok_s or 0.0)
                with busy(options.busy):
                    beside.append(measure(found, prompt(32), draft, options.tokens).done.stats.decode_tok_s or 0.0)
            ratio = statistics.median(beside) / statistics.median(alone)
            print(
                f"draft {draft:>3}: alone {spread(alone, 'tok/s')}, beside {spread(beside, 'tok/s')}, ratio {ratio:.2f}"
            )


if __name__ == "__main__":
    main()
