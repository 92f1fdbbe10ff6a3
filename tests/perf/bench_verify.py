"""Hashing an installed file again, against `sha256sum`, in turns.

    python tests/perf/bench_verify.py [--mebibytes 2500] [--repeats 5]

Wanted: within 10 % of `sha256sum`. The file lies in memory after the first run, so that the program is measured and
not the disk.
"""

from __future__ import annotations

import argparse
import os
import shutil
import statistics
import subprocess
import tempfile
import time
from pathlib import Path

import _path  # noqa: F401  (makes the packages importable)

from support.modelfiles import catalog_of, install, large_bytes, pair_of
from tandem.models.store import Store
from tandem.models.verify import verify


def main() -> None:
    """Prints medians and their ratio."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--mebibytes", type=int, default=2500)
    parser.add_argument("--repeats", type=int, default=5)
    options = parser.parse_args()
    program = shutil.which("sha256sum")
    if program is None:
        raise SystemExit("There is no sha256sum here.")
    with tempfile.TemporaryDirectory() as folder:
        pair = pair_of()
        store = Store(Path(folder), catalog_of(pair))
        entry = install(store, pair.target, large_bytes(options.mebibytes << 20))
        ours, theirs = [], []
        for turn in range(options.repeats + 1):
            began = time.perf_counter()
            checked = verify(store)
            middle = time.perf_counter()
            said = subprocess.run([program, os.fspath(entry.path)], capture_output=True, check=True, text=True).stdout
            ended = time.perf_counter()
            if said.split()[0] != checked[0].sha256:
                raise SystemExit(f"{said.split()[0]} is not {checked[0].sha256}")
            if turn:  # the first warms up
                ours.append(entry.bytes / (middle - began) / 1e6)
                theirs.append(entry.bytes / (ended - middle) / 1e6)
        ratio = statistics.median(ours) / statistics.median(theirs)
        for name, values in (("verify", ours), ("sha256sum", theirs)):
            print(f"{name:>9}: {statistics.median(values):,.0f} MB/s ({min(values):,.0f}–{max(values):,.0f})")
        print(f"ratio {ratio:.2f} (wanted: 0.90 or more)")


if __name__ == "__main__":
    main()
