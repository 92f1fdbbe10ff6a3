"""Exact repack: a QAT drafter that Google ships as bf16 safetensors, as a Q4_0 GGUF with the same weights.

The weights were trained for a grid of 16 values in each block of 32, and the bf16 that is published lies on it. A
conversion that rounds anew moves them off it; here each block's step is found (`repack_grid`) and stored together
with the codes that were always meant, and every weight is read back from the new file and compared, bit for bit.

::

    repack_source  the safetensors files of a folder, read in rows      repack_grid  the step of each block
    repack_config  config.json as GGUF keys, and the tensors it needs    repack_proof what the new file says, compared
    repack_tokens  tokenizer.json as GGUF keys                           repack_run   puts it all together

numpy, gguf and safetensors are loaded when the first repack starts: the window and the other commands do without.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from tandem.models.repack_report import OffGrid, RelativeError, RepackReport
from tandem.models.stop import Stop

__all__ = ["OffGrid", "RelativeError", "RepackReport", "repack"]


def nobody(_share: float) -> None:
    """Tells nobody."""


def repack(folder: Path, out: Path, stop: Stop | None = None, tell: Callable[[float], None] = nobody) -> RepackReport:
    """Makes the Q4_0 GGUF of a drafter out of its safetensors, exactly, or nothing at all.

    Args:
        folder: Has config.json, tokenizer.json and model.safetensors (or its parts and their index).
        out: The new file, replaced where there is one; it appears when it has been proved.
        stop: Ends it within a moment, and leaves nothing behind.
        tell: Gets the share that is done, 0 to 1.

    Raises:
        UsageError: The folder or `out` makes no sense.
        OffGrid: Blocks lie on no grid; how many, and in which tensors.
        ModelError: "missing", "unreadable", "truncated",
            "corrupt", "not-a-drafter" for a folder that is not such a drafter.
        TransferError: The disk is full, or `out` cannot be written.
        Stopped: `stop` was set.
    """
    from tandem.models.repack_run import run

    return run(folder, out, stop, tell)
