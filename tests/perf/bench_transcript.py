"""What the transcript costs by itself, for each shape that an answer can have.

    python tests/perf/bench_transcript.py [--tokens 8000] [--shape NAME]

1. Flatness: an answer of 8,000 tokens in updates of 16 (500 tok/s at 30 updates a second), each laid out and painted;
   milliseconds per token for each 1,000 tokens, and the longest update. Wanted: the last quarter at most 1.5 times the
   first, no update over 50 ms, for every shape.
2. Opening: chats of 2,000 messages, from the call to the paint. Wanted: under 300 ms.
3. Stalls while the rest of a chat is loaded and while a user's message of 1 MB is shown. Wanted: none over 50 ms.
"""

from __future__ import annotations

import argparse
import os
import statistics
import time
from collections.abc import Iterator

os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")

import _path  # noqa: F401  (first: it makes the packages below importable)
from PySide6.QtWidgets import QApplication
from window_harness import Heart, long_chat, run_for, tail

from tandem.chat.conversation import Node
from tandem.ui.session_state import Piece
from tandem.ui.theme import ThemeManager
from tandem.ui.transcript import Transcript

UPDATE = 16
STEP = 1_000
WORDS = [
    "the",
    "drafter",
    "guesses",
    "ahead",
    "and",
    "a",
    "target",
    "checks",
    "what",
    "it",
    "has",
    "said",
    "in",
    "one",
    "pass",
    "over",
    "all",
    "of",
    "it",
]


def shape(name: str, tokens: int) -> Iterator[str]:
    """The tokens of an answer of a shape."""
    words = iter(WORDS[at % len(WORDS)] + " " for at in range(tokens))
    at = 0
    if name == "fence":
        yield "```python\n"
    if name == "table":
        yield "| a | b | c |\n|---|---|---|\n"
    for at, word in enumerate(words, 1):
        if name == "markdown":
            yield ("**" + word.strip() + "** " if at % 9 == 0 else word) + _mixed(at)
        elif name == "fence":
            yield word.replace(" ", "(x)\n    " if at % 6 == 0 else "_")
        elif name == "list":
            yield word + (f"\n{'  ' * (at // 60 % 3)}- " if at % 12 == 0 else "")
        elif name == "table":
            yield f"| {word}" if at % 3 else f"| {word}|\n"
        elif name == "quote":
            yield word + ("\n> " if at % 14 == 0 else "")
        elif name == "lines":
            yield word + ("\n" if at % 14 == 0 else "")
        elif name == "brackets":
            yield "[" if at % 2 else word
        else:
            yield word


def _mixed(at: int) -> str:
    if at % 400 == 0:
        return "\n\n```python\ndef f(x):\n    return x + 1\n\n\nprint(f(2))\n```\n\n"
    if at % 150 == 0:
        return "\n\n- one\n- two\n- three\n\n"
    return "\n\n" if at % 50 == 0 else ""


SHAPES = ("markdown", "paragraph", "fence", "list", "table", "quote", "lines", "brackets", "drafted")


def flatness(app: QApplication, name: str, tokens: int) -> None:
    """Part 1, for one shape."""
    manager = ThemeManager()
    manager.apply(app, "light")
    view = Transcript(manager)
    view.resize(900, 760)
    view.show()
    view.show_drafted(name == "drafted")
    view.append(Node(1, 1, None, "user", "Go on."))
    view.begin(Node(2, 1, 1, "assistant", "", state="streaming"))
    app.processEvents()
    texts = list(shape(name, tokens))
    updates: list[float] = []
    steps: list[float] = []
    spent = 0.0
    for start in range(0, len(texts), UPDATE):
        pieces = [Piece("answer", text, at // 3 % 3) for at, text in enumerate(texts[start : start + UPDATE], start)]
        begin = time.perf_counter()
        view.stream(pieces)
        view.flush()
        app.processEvents()
        updates.append(1000 * (time.perf_counter() - begin))
        spent += updates[-1]
        if (start + UPDATE) // STEP > start // STEP:
            steps.append(spent / STEP)
            spent = 0.0
    text = "".join(texts)
    begin = time.perf_counter()
    view.finish(Node(2, 1, 1, "assistant", text))
    app.processEvents()
    end = 1000 * (time.perf_counter() - begin)
    quarter = max(len(steps) // 4, 1)
    ratio = sum(steps[-quarter:]) / sum(steps[:quarter])
    worst = max(range(len(updates)), key=updates.__getitem__)
    figures = " ".join(f"{step:.2f}" for step in steps)
    print(
        f"{name:10} {figures} ms/token; last/first quarter {ratio:.2f}; "
        f"update median {statistics.median(updates):.1f}, longest {updates[worst]:.1f} ms ({worst}th); end {end:.0f} ms"
    )
    view.close()
    view.deleteLater()
    app.processEvents()


def opening(app: QApplication) -> None:
    """Parts 2 and 3."""
    manager = ThemeManager()
    manager.apply(app, "light")
    view = Transcript(manager)
    view.resize(900, 760)
    view.show()
    app.processEvents()
    _, nodes = long_chat(2_000)
    _, other = long_chat(2)
    taken = []
    heart = Heart()
    for _ in range(7):
        begin = time.perf_counter()
        view.show_path(nodes, {})
        view.repaint()
        taken.append(1000 * (time.perf_counter() - begin))
        heart.start()
        run_for(0.6)
        heart.stop()
        view.show_path(other, {})
        run_for(0.1)
    print(f"opening 2,000 messages: {tail(taken)}")
    print(f"  heartbeat while the rest loads: {tail(heart.gaps_ms)}")
    view.show_path(nodes, {})
    run_for(0.5)
    heart.start()
    for _ in range(30):
        view.verticalScrollBar().setValue(0)
        run_for(0.05)
    heart.stop()
    print(f"  heartbeat while scrolling up: {tail(heart.gaps_ms)}")
    big = Node(1, 1, None, "user", "A line of some length, to be read by nobody.\n" * 23_000)
    view.show_path([big], {})
    heart.start()
    view.reveal(1, "nobody")
    run_for(4)
    heart.stop()
    print(f"  heartbeat while 1 MB of a user's message is shown: {tail(heart.gaps_ms)}")
    view.close()


def main() -> None:
    """Prints a line for each shape, then the rest."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tokens", type=int, default=8_000)
    parser.add_argument("--shape", choices=SHAPES)
    options = parser.parse_args()
    app = QApplication(["tandem"])
    for name in [options.shape] if options.shape else SHAPES:
        flatness(app, name, options.tokens)
    if not options.shape:
        opening(app)


if __name__ == "__main__":
    main()
