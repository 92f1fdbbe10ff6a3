"""`python -m tandem`: the same as the command `tandem`."""

from __future__ import annotations

if __name__ == "__main__":
    # Imported here and not above: a spawned engine process imports this module too, and needs none of it.
    import sys
    from multiprocessing import freeze_support

    freeze_support()

    from tandem.cli import main

    sys.exit(main())
