"""The proof of a repack: what the new file says is compared with the bf16 that it was made of, weight by weight.

The blocks are read back from the file and unpacked by the package gguf, not by the code that packed them. The same
weights go through gguf's Q8_0 too, to show what a conversion to twice the size would have given.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from gguf import GGML_QUANT_SIZES, GGMLQuantizationType, quants
from numpy.typing import NDArray

from tandem.models.repack_grid import Bits, Floats, to_bf16, to_f32
from tandem.models.repack_report import RelativeError

Q4_0: Final = GGMLQuantizationType.Q4_0
Q8_0: Final = GGMLQuantizationType.Q8_0
_ZERO, _MINUS_ZERO = np.uint16(0), np.uint16(0x8000)


def size_of(kind: GGMLQuantizationType, count: int) -> int:
    """Bytes of so many weights in a tensor type."""
    block, size = GGML_QUANT_SIZES[kind]
    return int(count // block * size)


def _unsigned_zeros(bits: Bits) -> Bits:
    """Both zeros as one: Q4_0 has no sign for them (a negative step makes -0 of the code for zero)."""
    return np.where(bits == _MINUS_ZERO, _ZERO, bits)


class _Sum:
    """Adds up differences."""

    def __init__(self) -> None:
        self._squares = 0.0
        self._power = 0.0
        self._most = 0.0

    def add(self, made: Floats, given: Floats) -> None:
        exact = given.astype(np.float64)
        apart = made - exact
        self._squares += float((apart**2).sum())
        self._power += float((exact**2).sum())
        some = given != 0
        self._most = max(self._most, float(np.max(np.abs(apart[some]) / np.abs(exact[some]), initial=0.0)))

    def result(self) -> RelativeError:
        return RelativeError(float(np.sqrt(self._squares / self._power)) if self._power else 0.0, self._most)


class Proof:
    """Compares chunk by chunk."""

    def __init__(self) -> None:
        self._ours, self._theirs = _Sum(), _Sum()
        self.weights = 0
        self.different = 0
        self.negative_zeros = 0

    def add(self, packed: NDArray[np.uint8], bits: Bits) -> None:
        """Takes a chunk.

        Args:
            packed: Q4_0 blocks of the new file, shape [blocks * 18].
            bits: What they were made of, shape [blocks * 32].
        """
        made = quants.dequantize(packed, Q4_0)
        given = to_f32(bits)
        self.different += int((_unsigned_zeros(to_bf16(made)) != _unsigned_zeros(bits)).sum())
        self.negative_zeros += int((bits == _MINUS_ZERO).sum())
        self.weights += bits.size
        self._ours.add(made, given)
        self._theirs.add(quants.dequantize(quants.quantize(given, Q8_0), Q8_0), given)

    @property
    def relative_error(self) -> RelativeError:
        """Of the new file."""
        return self._ours.result()

    @property
    def q8_0_relative_error(self) -> RelativeError:
        """Of a Q8_0 conversion."""
        return self._theirs.result()
