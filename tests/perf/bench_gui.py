"""What the window costs while an answer streams, and how fast it is meanwhile.

    python tests/perf/bench_gui.py [--seconds 60] [--rounds 7] [--platform offscreen]

The real window, controller, store and engine client; in the engine's place a process that speaks its protocol at an
exact pace (`scripted_engine.py`). Parts, in this order:

1. Idle: CPU with nothing to do but the heartbeat.
2. Bursts: 5 tokens a pass, 500 tok/s, while somebody types. Wanted: the 99.9th percentile of a 5 ms heartbeat under
   50 ms, the whole process under 40 % of a core, a typed letter on screen in under 50 ms (99th percentile).
3. Flatness: one answer of 8,000 tokens; CPU time of the thread that paints, per token, for each 1,000 tokens. Wanted:
   the last quarter at most 1.5 times the first.
4. Opening: a chat of 2,000 messages from the click to the paint. Wanted: under 300 ms.
"""

from __future__ import annotations

import argparse
import os
import statistics
import time
from typing import TYPE_CHECKING

import _path  # noqa: F401  (first: it makes the packages below importable)
import psutil
import scripted_engine
from harness import spread
from window_harness import Heart, Painted, Typist, long_chat, platform, run_for, tail, wait_until, window

from tandem.chat.history import History

if TYPE_CHECKING:
    from tandem.ui.app import Application

RATE = 500
LONG_ANSWER = 8_000
STEP = 1_000
LONG_CHAT, SHORT_CHAT = 2_000, 4


def prepare(history: History) -> None:
    """A long and a short chat."""
    history.bring_in([long_chat(LONG_CHAT), long_chat(SHORT_CHAT)])


def resident_mb() -> float:
    """Memory of this process."""
    return float(psutil.Process().memory_info().rss) / 1e6


def answer(app: Application, tokens: int) -> None:
    """Has an answer of so many tokens stream into a new chat, to its end."""
    app.controller.new_chat()
    finished: list[object] = []
    connection = app.controller.node_finished.connect(finished.append)
    app.controller.send(scripted_engine.question(tokens, RATE))
    wait_until(lambda: bool(finished), "the answer did not end")
    app.controller.node_finished.disconnect(connection)


def idle(app: Application) -> None:
    """Part 1."""
    del app
    heart = Heart()
    run_for(1)
    heart.start()
    run_for(3)
    print(f"idle: {heart.stop():.1%} of a core with the heartbeat, {tail(heart.gaps_ms)}")


def bursts(app: Application, seconds: int) -> None:
    """Part 2."""
    heart = Heart()
    composer = app.window.chat.composer
    composer.focus()
    typist = Typist(composer.editor, composer.text, composer.editor.viewport())
    heart.start()
    typist.start()
    start = time.perf_counter()
    answer(app, seconds * RATE)
    took = time.perf_counter() - start
    typist.stop()
    share = heart.stop()
    composer.clear()
    print(f"bursts: {seconds * RATE:,} tokens in {took:.1f} s, 5 a pass, {share:.1%} of a core")
    print(f"  heartbeat: {tail(heart.gaps_ms)}")
    print(f"  typing: {tail(typist.latencies_ms)}")
    print(f"  memory of the window's process: {resident_mb():.0f} MB")


def flatness(app: Application) -> None:
    """Part 3."""
    heart = Heart()
    heart.start()
    answer(app, LONG_ANSWER)
    heart.stop()
    costs, before = [], 0.0
    for step in range(1, LONG_ANSWER // STEP + 1):
        until = step * STEP / RATE
        spent = [cpu for at, cpu in heart.cost if at <= until][-1]
        costs.append((spent - before) / STEP * 1e6)
        before = spent
    quarter = len(costs) // 4
    ratio = statistics.mean(costs[-quarter:]) / statistics.mean(costs[:quarter])
    print(
        f"cost of a token, µs for each {STEP:,}: {' '.join(f'{cost:.0f}' for cost in costs)}; last / first: {ratio:.2f}"
    )
    print(f"  heartbeat: {tail(heart.gaps_ms)}")


def opening(app: Application, rounds: int) -> None:
    """Part 4."""
    shown: list[float] = []
    opened: list[object] = []
    painted = Painted(app.window.chat.transcript.viewport(), lambda: opened and shown.append(time.perf_counter()))
    app.controller.conversation_opened.connect(lambda _chat, path, _branches: opened.append(path))
    chats = {LONG_CHAT: 1, SHORT_CHAT: 2}
    for size in (SHORT_CHAT, LONG_CHAT):
        times = []
        for _ in range(rounds):
            app.controller.new_chat()
            run_for(0.5)
            opened.clear()
            shown.clear()
            start = time.perf_counter()
            app.controller.open_chat(chats[size])
            wait_until(lambda: bool(shown), "the chat was not painted")
            times.append((shown[0] - start) * 1000)
        print(f"a chat of {size:,} messages opens in {spread(times, 'ms', 0)}")
    painted.deleteLater()
    print(f"memory of the window's process: {resident_mb():.0f} MB")


def main() -> None:
    """Prints everything."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=int, default=60, help="of bursts")
    parser.add_argument("--rounds", type=int, default=7, help="of opening")
    parser.add_argument("--platform", choices=("offscreen", "xcb"), default="offscreen")
    given = parser.parse_args()
    with platform(given.platform), window(prepare) as app:
        print(f"platform {given.platform}, {os.cpu_count()} CPUs, load {os.getloadavg()[0]:.1f}")
        idle(app)
        bursts(app, given.seconds)
        flatness(app)
        opening(app, given.rounds)


if __name__ == "__main__":
    main()
