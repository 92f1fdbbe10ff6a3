"""Time of one choice at Gemma 4's vocabulary, medians in microseconds.

    python tests/perf/bench_sampling.py [--vocabulary 262144] [--rounds 300]

Each case goes round 8 different rows (8 MiB), as a verify pass does, so that a row is not always warm in the cache.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable

import numpy as np

from tandem.engine.sampling import Sampler, SamplingParams
from tandem.engine.scores import Scratch, confidence, top_candidates

ROWS = 8


def median_us(rounds: int, call: Callable[[int], object]) -> float:
    """Median time of `call(i)` in microseconds, after a warm-up over all rows."""
    for index in range(ROWS):
        call(index)
    times = []
    for index in range(rounds):
        start = time.perf_counter_ns()
        call(index % ROWS)
        times.append(time.perf_counter_ns() - start)
    return statistics.median(times) / 1000


def main() -> None:
    """Print one line per case."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--vocabulary", type=int, default=262_144)
    parser.add_argument("--rounds", type=int, default=300)
    options = parser.parse_args()
    size = options.vocabulary
    random = np.random.default_rng(7)
    # Scores as a soft-capped head gives them: a broad bulk, a few that stand out, all within 30.
    rows = [30 * np.tanh(random.normal(-6, 4, size) / 30).astype(np.float32) for _ in range(ROWS)]
    for row in rows:
        row[random.integers(0, size, 40)] += random.uniform(5, 22, 40).astype(np.float32)
    scratch = Scratch(size)
    best = [int(row.argmax()) for row in rows]
    cases: dict[str, tuple[SamplingParams, float]] = {
        "greedy": (SamplingParams(temperature=0.0), 100),
        "greedy, repeat penalty 1.1": (SamplingParams(temperature=0.0, repeat_penalty=1.1), 0),
        "sampled, top-k 64 top-p .95": (SamplingParams(seed=1), 350),
        "sampled, repeat penalty 1.1": (SamplingParams(seed=1, repeat_penalty=1.1), 0),
        "sampled, top-p .95 alone": (SamplingParams(seed=1, top_k=0), 0),
        "sampled, no limit": (SamplingParams(seed=1, top_k=0, top_p=1.0), 0),
    }
    print(f"vocabulary {size:,}, {options.rounds} rounds, microseconds a row (target)")
    for name, (params, target) in cases.items():
        sampler = Sampler(params, size)
        sampler.begin(list(range(1000, 1064)))
        took = median_us(options.rounds, lambda i, sampler=sampler: sampler.choose(rows[i]))  # type: ignore[misc]  # bound now
        print(f"  {name:30} {took:8.1f}" + (f"  ({target})" if target else ""))
    print(f"  {'top 64 alone':30} {median_us(options.rounds, lambda i: top_candidates(rows[i], 64, scratch)):8.1f}")
    took = median_us(options.rounds, lambda i: confidence(rows[i], best[i], scratch))
    print(f"  {'confidence':30} {took:8.1f}  (250)")
    flat = np.zeros(size, np.float32)
    print(f"  {'top 64, all scores equal':30} {median_us(50, lambda _: top_candidates(flat, 64, scratch)):8.1f}")


if __name__ == "__main__":
    main()
