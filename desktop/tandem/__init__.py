"""Tandem: Gemma 4 with its drafter, fast and offline on a person's own machine."""

import os

# numpy's OpenBLAS starts a thread for each CPU, which Tandem never uses; with little memory left they keep a process
# from ending. It reads this when numpy is first imported.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

__version__ = "0.1.0"
