"""The second turn of a long chat: only its new tokens are processed.

    python tests/perf/bench_prefix.py [--shape e2b] [--tokens 4000]

A prompt of so many tokens is answered, then the same with the answer and a short question behind it. Printed: prompt
tokens, reused, processed, and the time to the first token of both turns.
"""

from __future__ import annotations

import argparse

from harness import engine
from make_pair import SHAPES, get_pair, prompt


def main() -> None:
    """Prints a line for each turn."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--shape", choices=SHAPES, default="e2b")
    parser.add_argument("--tokens", type=int, default=4000)
    options = parser.parse_args()
    with engine(*get_pair(SHAPES[options.shape], 0.7), context=8192 if options.shape != "tiny" else None) as found:
        first = tuple(prompt(options.tokens))
        answer = found.ask(first, draft="3", max_tokens=32, ignore_eos=True, reuse=False)
        second = found.ask((*first, *answer.tokens, *prompt(20)[1:]), draft="3", max_tokens=8, ignore_eos=True)
        for name, reply in (("first", answer), ("second", second)):
            figures = reply.done.stats
            print(
                f"{name:>6} turn: {figures.prompt_tokens:,} prompt tokens, {figures.cached_tokens:,} reused, "
                f"{figures.prompt_tokens - figures.cached_tokens:,} processed, prefill {figures.prefill_s:.2f} s, "
                f"first token after {figures.time_to_first_token_s:.2f} s"
            )


if __name__ == "__main__":
    main()
