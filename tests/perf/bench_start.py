"""How long the window takes to come up, what it loads for that, and what memory it takes.

    python tests/perf/bench_start.py [--rounds 9] [--platform offscreen]

Each round is a new process of `python -m tandem` (see `first_paint.py`) with the home of somebody who has used it
before, and the real engine on the demo pair behind it. Measured are: from the start of the process to the end of the
first paint; modules imported by then; memory of the window's process after the pair was loaded. The first round warms
the caches and is dropped. Wanted: under 1.5 s, none of the heavy modules, under 180 MB.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import _path  # noqa: F401  (first: it makes the packages below importable)
from first_paint import HEAVY
from harness import spread
from window_harness import long_chat, platform, profile

CHILD: Final = Path(__file__).parent / "first_paint.py"


def measure(home: Path) -> dict[str, Any]:
    """One start. Times in seconds from the process's own start."""
    with tempfile.TemporaryDirectory() as folder:
        answer = Path(folder) / "answer.json"
        environment = {**os.environ, "TANDEM_HOME": str(home), "PYTHONPATH": sys.path[0]}
        start = time.monotonic()
        done = subprocess.run([sys.executable, CHILD, answer], env=environment, capture_output=True, text=True)
        if not answer.exists():
            raise SystemExit(f"the window did not come up:\n{done.stdout}{done.stderr}")
        found: dict[str, Any] = json.loads(answer.read_text())
        found["to_paint_ms"] = (found["painted"] - start) * 1000
        found["rc"], found["err"] = done.returncode, done.stderr
        return found


@contextmanager
def used_home() -> Iterator[Path]:
    """The home of somebody who has some chats."""
    with tempfile.TemporaryDirectory() as folder:
        profile(Path(folder), lambda history: history.bring_in(long_chat(20) for _ in range(50)))
        yield Path(folder)


def main() -> None:
    """Prints everything."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--platform", choices=("offscreen", "xcb"), default="offscreen")
    given = parser.parse_args()
    with platform(given.platform), used_home() as home:
        measure(home)
        rounds = [measure(home) for _ in range(given.rounds)]
    print(f"platform {given.platform}, {os.cpu_count()} CPUs, load {os.getloadavg()[0]:.1f}")
    print("start to first paint:", spread([found["to_paint_ms"] for found in rounds], "ms", 0))
    modules = rounds[-1]["modules"]
    early = [name for name in HEAVY if name in modules]
    print(f"modules before it: {len(modules)}; heavy ones: {', '.join(early) or 'none'}")
    late = [name for name in HEAVY if name in rounds[-1]["settled_modules"] and name not in early]
    print(f"heavy ones that came later: {', '.join(late) or 'none'}")
    print("memory at the first paint:", spread([found["painted_mb"] for found in rounds], "MB", 0))
    print("memory with the pair loaded:", spread([found["settled_mb"] for found in rounds], "MB", 0))
    for found in rounds:
        if found["rc"] or found["err"] or found["engines"] != 1:
            print(f"not as it should be: exit code {found['rc']}, {found['engines']} engines, {found['err'][-500:]}")


if __name__ == "__main__":
    main()
