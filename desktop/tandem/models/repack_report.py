"""What a repack reports: its proof, or the blocks that it could not store."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import msgspec

from tandem.errors import ModelError

_SHOWN: Final = 3  # tensors that a sentence names


class OffGrid(ModelError):
    """Weights do not lie on a 4-bit grid: this is not a QAT drafter, or it was changed.

    Args:
        tensors: Blocks off the grid, by tensor.
        blocks: All blocks.
    """

    def __init__(self, tensors: Mapping[str, int], blocks: int) -> None:
        count, names = sum(tensors.values()), list(tensors)
        more = f" and {len(names) - _SHOWN:,} more" if len(names) > _SHOWN else ""
        super().__init__(
            "off-grid",
            f"{count:,} of {blocks:,} blocks of weights lie on no 4-bit grid, in {', '.join(names[:_SHOWN])}{more}.",
            "Use the QAT drafter, whose name ends in qat-q4_0-unquantized-assistant, or one that is converted already.",
            "\n".join(f"{name}: {number:,}" for name, number in tensors.items()),
        )
        self.tensors: Final = dict(tensors)
        self.off_grid: Final = count
        self.blocks: Final = blocks


class RelativeError(msgspec.Struct, frozen=True):
    """How far weights are from the bf16 they were made of.

    Attributes:
        rms: Root of the summed squares of the differences, over that of the weights.
        max: The largest difference of a weight, relative to that weight (zeros left out).
    """

    rms: float
    max: float


class RepackReport(msgspec.Struct, frozen=True):
    """What a repack did, and its proof.

    Attributes:
        out: The new file.
        bytes: Its size.
        sha256: Of the new file, 64 hex digits.
        tensors: Tensors in it.
        matrices: Those of them that are Q4_0; the others are small and F32.
        weights: Weights in the matrices.
        blocks: Blocks of 32 of them.
        off_grid: Blocks that no step fits: 0, since such a file is refused.
        bits_equal: Every weight, read back and rounded to bf16, is the given one bit for bit; a zero's sign, which
            Q4_0 cannot keep, is left out.
        negative_zeros: Weights that were -0 and are 0 now.
        relative_error: Of the new file's matrices, before any rounding to bf16.
        q8_0_bytes: Size that the file would have with its matrices in Q8_0.
        q8_0_relative_error: The same for a Q8_0 conversion of the same matrices.
    """

    out: str
    bytes: int
    sha256: str
    tensors: int
    matrices: int
    weights: int
    blocks: int
    off_grid: int
    bits_equal: bool
    negative_zeros: int
    relative_error: RelativeError
    q8_0_bytes: int
    q8_0_relative_error: RelativeError
