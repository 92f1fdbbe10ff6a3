"""What the window feels of a download: gaps of its heartbeat while bytes come in as fast as they can.

    python tests/perf/bench_download_gui.py [--shape e2b] [--rounds 3] [--platform offscreen]

The real window on the page Models, the real client and transfer, and a Hub in another process on loopback that gives a
pair with E2B's sizes (`make_pair.py`), without a speed limit. Wanted: the 99.9th percentile of a 5 ms heartbeat under
20 ms, while nothing else runs and while one types. Then the same while the files are verified.
"""

from __future__ import annotations

import argparse
import hashlib
import multiprocessing
import os
import shutil
import time
from multiprocessing.connection import Connection
from pathlib import Path
from typing import TYPE_CHECKING

import _path  # noqa: F401  (first: it makes the packages below importable)
from make_pair import SHAPES, get_pair
from window_harness import Heart, platform, run_for, tail, wait_until, window

from support.hub import FakeHub
from tandem.models import catalog as models_catalog
from tandem.models.catalog import Catalog, CatalogFile, CatalogPair, CatalogSize

if TYPE_CHECKING:
    from tandem.ui.app import Application

KEY = "e2b"
REPO = "made/pair"


def serve(files: list[Path], pipe: Connection) -> None:
    """A process of its own: its work must not count as the window's."""
    with FakeHub() as hub:
        for file in files:
            hub.add(REPO, file.name, file)
        pipe.send(hub.endpoint)
        pipe.recv()


def catalog_of(target: Path, drafter: Path) -> Catalog:
    """A catalog of this pair only."""

    def entry(role: str, file: Path) -> CatalogFile:
        with file.open("rb") as stream:
            digest = hashlib.file_digest(stream, "sha256").hexdigest()
        return CatalogFile(role, REPO, file.name, digest, file.stat().st_size)  # type: ignore[arg-type]

    pair = CatalogPair(KEY, "made", "Q4_0", "Apache-2.0", entry("target", target), entry("drafter", drafter))
    return Catalog(1, (CatalogSize(KEY, "Made pair", True, (pair,)),))


def measured(heart: Heart, what: str, size: int, begin: object, ended: object) -> None:
    """Runs something to its end, and prints what the heartbeat was meanwhile."""
    heart.start()
    start = time.perf_counter()
    begin()  # type: ignore[operator]
    wait_until(ended, f"{what} did not end")  # type: ignore[arg-type]
    took = time.perf_counter() - start
    share = heart.stop()
    print(f"{what}: {size / took / 1e6:,.0f} MB/s, {share:.0%} of a core; heartbeat: {tail(heart.gaps_ms)}")


def rounds(app: Application, count: int, size: int) -> None:
    """Downloads, verifies and removes the pair, over and over."""
    keeper, heart = app.controller.models, Heart()
    app.window.show_page("models")
    wait_until(lambda: keeper.overview is not None)
    run_for(1)
    heart.start()
    run_for(3)
    heart.stop()
    print(f"idle: {tail(heart.gaps_ms)}")
    for _ in range(count):
        ready: list[str] = []
        connection = keeper.pair_ready.connect(ready.append)
        measured(heart, "download", size, lambda: keeper.download(KEY), lambda ready=ready: bool(ready))
        keeper.pair_ready.disconnect(connection)
        measured(heart, "verify", size, keeper.verify, lambda: not keeper.work.busy)
        shutil.rmtree(keeper.overview.folder)  # type: ignore[union-attr]
        keeper.refresh()
        wait_until(lambda: not keeper.looking)


def main() -> None:
    """Prints everything."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--shape", choices=SHAPES, default="e2b")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--platform", choices=("offscreen", "xcb"), default="offscreen")
    given = parser.parse_args()
    files = list(get_pair(SHAPES[given.shape], 0.7))
    known = catalog_of(*files)
    models_catalog.catalog = lambda: known  # type: ignore[assignment]
    context = multiprocessing.get_context("spawn")
    here, there = context.Pipe()
    server = context.Process(target=serve, args=(files, there), daemon=True)
    server.start()
    os.environ["HF_ENDPOINT"] = here.recv()
    size = sum(file.stat().st_size for file in files)
    with platform(given.platform), window() as app:
        print(f"platform {given.platform}, {os.cpu_count()} CPUs, load {os.getloadavg()[0]:.1f}, {size / 1e9:.2f} GB")
        rounds(app, given.rounds, size)
    here.send(None)
    server.join()


if __name__ == "__main__":
    main()
