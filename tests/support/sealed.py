"""A program in a network namespace of its own that has no interface, with every socket that it asks for written down.

Seen from the system, so that nothing escapes: Python, Qt, the engine, and all their processes. Both halves matter: the
namespace shows that the program does not need a network, the list shows that it does not even try to use one.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from support.command import PATIENCE_S, Outcome, environment

NEEDED: Final = {"unshare": "util-linux", "strace": "strace"}
"""Programs, and the Debian packages that have them."""

_SOCKET: Final = re.compile(r"\bsocket\((\w+), ")


@dataclass(frozen=True)
class Sealed:
    """How a sealed run ended.

    Attributes:
        outcome: Its exit code and what it printed.
        families: The address family of every socket that it or a child asked for, such as "AF_INET"; a pair of sockets
            that its processes talk through is none of these, as it leads nowhere else.
        trace: All that was written down.
    """

    outcome: Outcome
    families: tuple[str, ...]
    trace: str


def sealed(line: Sequence[str], trace: Path, stdin: str = "", **variables: str) -> Sealed:
    """Runs a program to its end.

    Args:
        line: Its command line.
        trace: A file for what is written down.
        stdin: What it reads.
        variables: Of the environment, besides the usual ones.
    """
    missing = [package for program, package in NEEDED.items() if shutil.which(program) is None]
    assert not missing, f"this test needs the packages {' '.join(missing)}"
    seal = ["unshare", "--net"] if os.geteuid() == 0 else ["unshare", "--map-root-user", "--net"]
    watch = ["strace", "-f", "-qq", "-e", "trace=socket", "-e", "signal=none", "-o", str(trace)]
    done = subprocess.run(
        [*seal, *watch, *line],
        input=stdin.encode(),
        capture_output=True,
        env={**environment(), **variables},
        timeout=PATIENCE_S,
        check=False,
    )
    out, err = done.stdout.decode(), done.stderr.decode()
    assert trace.exists(), f"no namespace without a network, or no tracing, is to be had here: {err}"
    text = trace.read_text()
    return Sealed(Outcome(done.returncode, out, err), tuple(_SOCKET.findall(text)), text)


def python(*arguments: str | Path) -> list[str]:
    """A command line for this Python."""
    return [sys.executable, *map(str, arguments)]
