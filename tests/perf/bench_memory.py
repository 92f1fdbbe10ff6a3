"""Memory of one engine over many messages.

    python tests/perf/bench_memory.py [--messages 200]

One conversation after the other on the demo pair, ten turns each, with drafts. The engine's resident memory after the
first conversation against the last: wanted within 2 %.
"""

from __future__ import annotations

import argparse

import psutil
from harness import engine

from tandem import paths
from tandem.engine.template import Message

QUESTIONS = ("Hello!", "List seven animals.", "Tell me a short story about a fox.", "What is 3 plus 4?", "Thank you.")


def main() -> None:
    """Prints the resident memory now and then, and its growth."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--messages", type=int, default=200)
    options = parser.parse_args()
    with engine(*paths.demo_pair()) as found:
        process = psutil.Process(found.client.pid)
        sizes = []
        history: list[Message] = []
        for number in range(options.messages):
            if number % 10 == 0:
                history = []
            asked = [*history, Message("user", QUESTIONS[number % len(QUESTIONS)])]
            reply = found.ask(asked, draft="3")
            history = [*asked, Message("assistant", reply.text)]
            sizes.append(process.memory_info().rss)
            if number % 20 == 19:
                print(f"{number + 1:4} messages: {sizes[-1] / 2**20:.1f} MiB", flush=True)
        start = max(sizes[10:20])
        print(f"growth from message 20 to {options.messages}: {sizes[-1] / start - 1:+.2%}")


if __name__ == "__main__":
    main()
