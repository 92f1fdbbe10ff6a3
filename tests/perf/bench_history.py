"""What the store of chats costs with many of them.

    python tests/perf/bench_history.py [--messages 100000] [--chats 5000] [--rounds 5]

Messages are half English, half Korean, of about the lengths that people and models write, with words as frequent as
in a language. Wanted: a search under 100 ms, whatever is searched for; a chat of 2,000 messages and the list of 5,000
chats well under the 300 ms in which they shall be on screen; saving far from being felt.
"""

from __future__ import annotations

import argparse
import random
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import _path  # noqa: F401  (first: it makes the packages below importable)
import msgspec
from harness import spread

from tandem.chat.conversation import ACCEPTED, OWN, Conversation, Figures, Node, Run
from tandem.chat.history import History
from tandem.engine.metrics import RunStats

LONG_CHAT = 2_000
LETTERS = "etaoinshrdlcumwfgypbvkjxqz"


def words(rng: random.Random, korean: bool) -> list[str]:
    """A vocabulary, the most frequent word first."""
    if korean:
        syllables = [chr(0xAC00 + int(11_172 * rng.random() ** 2)) for _ in range(1_200)]
        return ["".join(rng.choices(syllables, k=rng.choice((1, 2, 2, 3, 3, 4)))) for _ in range(20_000)]
    weights = [1 / (place + 2) for place in range(len(LETTERS))]
    return ["".join(rng.choices(LETTERS, weights, k=rng.randint(1, 11))) for _ in range(20_000)]


def texts(rng: random.Random) -> Iterator[str]:
    """Messages without end."""
    vocabularies = [words(rng, korean=False), words(rng, korean=True)]
    weights = [1 / (rank + 3) for rank in range(20_000)]
    pools = [rng.choices(vocabulary, weights, k=400_000) for vocabulary in vocabularies]
    while True:
        pool = pools[rng.random() < 0.5]
        length = 3 + min(int(rng.lognormvariate(3.7, 1.0)), 1_500)
        start = rng.randrange(len(pool) - length)
        yield " ".join(pool[start : start + length]) + rng.choice(("", ".", "?", ' "quoted" (a) AND b*'))


FIGURES = Figures(
    RunStats(prompt_tokens=500, generated=300, passes=120, verified=300, accepted=180, accepted_at=[90, 60, 30]),
    "3", "mtp", 1, "CPU", 2, 8192, "tiny-target-q4_0.gguf", "tiny-drafter-q4_0.gguf", "end",
)  # fmt: skip


def chat(source: Iterator[str], number: int, messages: int) -> tuple[Conversation, list[Node]]:
    """A chat in which user and model take turns, with figures and runs as real answers have them."""
    nodes: list[Node] = []
    for place in range(1, messages + 1):
        text = next(source)
        answer = place % 2 == 0
        runs = [Run("answer", 5, ACCEPTED if start % 10 else OWN) for start in range(0, len(text) - 5, 5)]
        nodes.append(
            Node(
                place, 0, place - 1 or None, "assistant" if answer else "user", text,
                created=1e9 + number, figures=FIGURES if answer else None, runs=tuple(runs) if answer else (),
            )
        )  # fmt: skip
    return Conversation(0, f"Chat {number} {next(source)[:30]}", 1e9 + number, 1e9 + number, messages), nodes


def timed(work: Callable[[], object], rounds: int) -> list[float]:
    """Milliseconds of each round."""
    found = []
    for _ in range(rounds):
        start = time.perf_counter()
        work()
        found.append((time.perf_counter() - start) * 1000)
    return found


def searches(rng: random.Random, source: Iterator[str]) -> list[str]:
    """What people type: one and two characters, words, parts of words, several words, what is nowhere, odd signs."""
    sample = [next(source) for _ in range(400)]
    english = [text for text in sample if text.isascii()]
    korean = [text for text in sample if not text.isascii()]
    some = [rng.choice(rng.choice(english).split()) for _ in range(20)]
    some += [rng.choice(rng.choice(korean).split()) for _ in range(20)]
    some += [word[:1] for word in some] + [word[:2] for word in some]
    some += [" ".join(rng.sample(rng.choice(sample).split(), 3)) for _ in range(10)]
    some += ["힣", "힣힣", "qzx", "zz", "nowhere at all in here", "가 나", "etaoin", "thethethe"]
    some += ['"', "AND b*", '"quoted" (a)', "(", "*", "NEAR(a b)", "a:b", "-", "%", "_", "'; DROP TABLE node; --"]
    return list(dict.fromkeys(some))


def main() -> None:
    """Prints everything."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--messages", type=int, default=100_000)
    parser.add_argument("--chats", type=int, default=5_000)
    parser.add_argument("--rounds", type=int, default=5)
    given = parser.parse_args()
    rng = random.Random(1)
    source = texts(rng)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "chats.db"
        history = History.open(path)
        each = (given.messages - LONG_CHAT) // (given.chats - 1)
        start = time.perf_counter()
        history.bring_in(chat(source, number, each) for number in range(given.chats - 1))
        history.bring_in([chat(source, given.chats, LONG_CHAT)])
        took = time.perf_counter() - start
        count = each * (given.chats - 1) + LONG_CHAT
        print(f"made {count:,} messages in {given.chats:,} chats: {took:.0f} s, {took / count * 1e6:.0f} µs each")
        history.close()
        print(f"file: {path.stat().st_size / 1e6:.0f} MB")

        print("opening after a clean end:", spread(timed(lambda: History.open(path).close(), given.rounds), "ms", 1))
        history = History.open(path)
        summaries = history.conversations()
        long = summaries[0].id
        print(f"list of {len(summaries):,} chats:", spread(timed(history.conversations, given.rounds), "ms", 1))
        conversation, nodes = history.conversation(long)
        print(
            f"chat of {len(nodes):,} messages:",
            spread(timed(lambda: history.conversation(long), given.rounds), "ms", 1),
        )

        worst: list[tuple[float, str, int]] = []
        for text in searches(rng, source):
            hits = len(history.search(text))
            times = timed(lambda text=text: history.search(text), given.rounds)  # type: ignore[misc]
            worst.append((max(times), text, hits))
        worst.sort(reverse=True)
        print(f"{len(worst)} searches, the slowest round of each:", spread([found[0] for found in worst], "ms", 1))
        for slowest, text, hits in worst[:5]:
            print(f"  {slowest:6.1f} ms  {hits:3} hits  {text!r}")

        def turn() -> None:
            user = history.add(Node(0, long, conversation.active, "user", next(source)))
            answer = history.add(Node(0, long, user.id, "assistant", "", state="streaming"))
            history.save(msgspec.structs.replace(answer, text=next(source), state="done", figures=FIGURES))

        print("one turn (two added, one saved):", spread(timed(turn, 100), "ms", 2))
        answer = history.add(Node(0, long, nodes[-1].id, "assistant", "", state="streaming"))
        runs = tuple(Run("answer", 5, place % 2) for place in range(6_000))
        partial = msgspec.structs.replace(answer, text="words " * 5_000, runs=runs)
        print("partial answer of 30,000 characters:", spread(timed(lambda: history.save(partial), 20), "ms", 2))
        huge = next(source) * 5_000
        print(
            f"message of {len(huge) / 1e6:.1f} million characters:",
            spread(timed(lambda: history.add(Node(0, long, None, "user", huge)), 3), "ms", 1),
        )
        history.close()


if __name__ == "__main__":
    main()
