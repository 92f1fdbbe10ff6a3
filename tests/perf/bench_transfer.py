"""How fast a file comes in from the same server: `curl` against the transfer, which also hashes it; and a resume.

    python tests/perf/bench_transfer.py [--size 1024] [--rounds 5] [--folder DIR]

1. The Hub of the tests serves a file from another process; `curl` and the transfer get it in turns, into the same
   folder. The transfer finds the sha256 in the same pass. Wanted: 80 % of curl.
2. The same with both flushed to the disk (`sync FILE` after curl; the transfer does it before a file counts).
3. A part that is all but whole is taken up: what is there is read once. Against `sha256sum` over the same file.
   Wanted: 90 % of it, and no byte read twice.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import _path  # noqa: F401  (first: it makes the packages below importable)
from harness import spread

from support.hub import FakeHub
from tandem.models.catalog import CatalogFile
from tandem.models.hub import Hub, Resolved
from tandem.models.network import Network
from tandem.models.pace import Limit
from tandem.models.part import Part, PartRecord
from tandem.models.progress import Waiting
from tandem.models.retries import Retries
from tandem.models.stop import Stop
from tandem.models.transfer import Options, Transfer

REPO, NAME = "bench/file", "file.gguf"


def serve(path: str) -> None:
    """The other process: serves until its input ends."""
    with FakeHub() as server:
        server.add(REPO, NAME, Path(path))
        print(server.endpoint, flush=True)
        sys.stdin.read()


@contextmanager
def served(path: Path) -> Iterator[str]:
    """The address of a Hub that has the file."""
    command = [sys.executable, __file__, "--serve", str(path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        yield process.stdout.readline().strip()
        process.stdin.close()


def seconds_of(command: list[str]) -> float:
    """How long a command takes."""
    began = time.perf_counter()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - began


def part_of(found: Resolved, folder: Path) -> Part:
    """Where it comes in."""
    record = PartRecord(found.repo, found.file, found.commit, found.sha256, found.bytes)
    return Part(folder / "file.part", folder / "file.part.json", record)


def by_us(hub: Hub, found: Resolved, folder: Path) -> tuple[float, float]:
    """Seconds until all is there and hashed, and until it is on the disk."""
    stop, options = Stop(), Options()
    began = time.perf_counter()
    part = part_of(found, folder)
    part.open(stop)
    retries = Retries(options.tries, options.backoff_s, stop, _waits)
    Transfer(hub, found, part, stop, Limit(), options, retries, _news).run()
    assert part.sha256() == found.sha256
    here = time.perf_counter() - began
    part.flush()
    flushed = time.perf_counter() - began
    part.close()
    return here, flushed


def _waits(waiting: Waiting | None) -> None:
    if waiting is not None:
        raise SystemExit(f"the server failed: {waiting.sentence}")


def _news(_received: int) -> None:
    pass


def read_bytes() -> int | None:
    """Bytes that this process has read so far, where the system says."""
    try:
        lines = Path("/proc/self/io").read_text().splitlines()
    except OSError:
        return None
    return int(dict(line.split(": ") for line in lines)["rchar"])


def compare(hub: Hub, found: Resolved, address: str, folder: Path, rounds: int) -> None:
    """Rounds 1 and 2."""
    ours: list[tuple[float, float]] = []
    theirs: list[tuple[float, float]] = []
    target = folder / "curl.out"
    for _round in range(rounds + 1):
        here = seconds_of(["curl", "-sfL", "-o", str(target), address])
        theirs.append((here, here + seconds_of(["sync", str(target)])))
        target.unlink()
        ours.append(by_us(hub, found, folder))
        (folder / "file.part").unlink()
    for name, index in (("there", 0), ("flushed", 1)):
        # The first round warms up; each round's ratio is of two that followed each other.
        fast = [found.bytes / one[index] / 1e6 for one in theirs[1:]]
        slow = [found.bytes / one[index] / 1e6 for one in ours[1:]]
        ratios = [b / a for a, b in zip(fast, slow, strict=True)]
        print(f"{name}: curl {spread(fast, 'MB/s', 0)}, transfer with its hash {spread(slow, 'MB/s', 0)}")
        print(f"  ratio {spread(ratios, 'of curl')} (wanted 0.80)")


def resume(found: Resolved, folder: Path, rounds: int) -> None:
    """Round 3."""
    whole = folder / "file.part"
    theirs, ours, reads = [], [], []
    for _round in range(rounds + 1):
        theirs.append(seconds_of(["sha256sum", str(whole)]))
        before, began = read_bytes(), time.perf_counter()
        part = part_of(found, folder)
        part.open()
        ours.append(time.perf_counter() - began)
        after = read_bytes()
        assert part.sha256() == found.sha256
        if before is not None and after is not None:
            reads.append((after - before) / found.bytes)
        part.close()
    rates = [[found.bytes / one / 1e6 for one in seconds[1:]] for seconds in (theirs, ours)]
    print(f"resume: sha256sum {spread(rates[0], 'MB/s', 0)}, reading what is there {spread(rates[1], 'MB/s', 0)}")
    ratio = statistics.median(b / a for a, b in zip(*rates, strict=True))
    print(f"  ratio {ratio:.2f} of sha256sum (wanted 0.90); read {max(reads, default=0):.3f} times (wanted 1)")


def main() -> None:
    """Prints all of it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--size", type=int, default=1024, help="MiB")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--folder", type=Path, help="where it is written; a file system in memory leaves the disk out")
    parser.add_argument("--serve", help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.serve:
        serve(chosen.serve)
        return
    with tempfile.TemporaryDirectory(dir=chosen.folder) as name:
        folder = Path(name)
        content = folder / NAME
        with content.open("wb") as stream:
            for _mib in range(chosen.size):
                stream.write(os.urandom(1 << 20))
        with served(content) as endpoint, Hub(Network.chosen(endpoint=endpoint, environ={})) as hub:
            found = hub.resolve(CatalogFile("target", REPO, NAME, "hub"))
            compare(hub, found, found.url, folder, chosen.rounds)
            by_us(hub, found, folder)
            resume(found, folder, chosen.rounds)
    print(f"load of this machine: {os.getloadavg()[0]:.2f} (on an idle one, 1.5 or so from this benchmark alone)")


if __name__ == "__main__":
    main()
