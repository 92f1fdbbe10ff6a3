"""The command `tandem`, and `python -m tandem`: without arguments the window, else the jobs in a terminal."""

from __future__ import annotations

import sys

from tandem import screen


def main() -> int:
    """Entry point of the console script; returns the exit code.

    Each side is imported only when it is wanted: a terminal needs no Qt, the window shall open at once, and a spawned
    engine process imports this module too and needs neither.
    """
    if len(sys.argv) == 1 and screen.available():
        from tandem.ui import app

        return app.main()
    from tandem import cli

    return cli.main()


if __name__ == "__main__":
    from multiprocessing import freeze_support

    freeze_support()
    sys.exit(main())
