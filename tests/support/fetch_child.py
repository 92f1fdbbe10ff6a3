"""Downloads a pair in a process of its own: started by tests that kill it.

    python fetch_child.py ENDPOINT FOLDER PAIR-AS-JSON SYNC-BYTES

Prints the bytes that are here, a line for each news, then "installed", or the sentence of what went wrong.
"""

from __future__ import annotations

import sys
from pathlib import Path

_TESTS = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(_TESTS), str(_TESTS.parent / "desktop")]

import msgspec  # noqa: E402

from support.fetching import QUICK  # noqa: E402
from support.modelfiles import catalog_of  # noqa: E402
from tandem.errors import TandemError  # noqa: E402
from tandem.models import part  # noqa: E402
from tandem.models.catalog import CatalogPair  # noqa: E402
from tandem.models.download import Download  # noqa: E402
from tandem.models.hub import Hub  # noqa: E402
from tandem.models.network import Network  # noqa: E402
from tandem.models.progress import JobProgress  # noqa: E402
from tandem.models.store import Store  # noqa: E402


def main() -> None:
    """Does it."""
    endpoint, folder, plain, sync = sys.argv[1:]
    # So that a small file is flushed more than once.
    part.SYNC_BYTES, part.SYNC_LEAST_S = int(sync), 0.0  # type: ignore[misc]
    pair = msgspec.json.decode(plain, type=CatalogPair)

    def report(progress: JobProgress) -> None:
        print(progress.done, flush=True)

    with Hub(Network.chosen(endpoint=endpoint, environ={})) as hub:
        try:
            # One connection: what the server lets through is then all at the beginning of the file.
            options = msgspec.structs.replace(QUICK, connections=1)
            Download(pair, Store(Path(folder), catalog_of(pair)), hub, options, report).run()
        except TandemError as error:
            print(error.sentence, flush=True)
        else:
            print("installed", flush=True)


if __name__ == "__main__":
    main()
