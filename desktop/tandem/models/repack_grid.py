"""The grid that a block of 32 bf16 weights lies on.

A Q4_0 block holds a step d in f16 and 32 codes q from 0 to 15, and stands for the weights d * (q - 8). A block of
bf16 weights lies on such a grid when there are a d and codes for which every d * (q - 8), rounded to bf16, is the
given weight bit for bit. Nothing says beforehand which code the largest weight has (the extreme one need not be
used) nor how the step was rounded, so both are searched for:

- The step that ggml's own quantiser takes is tried first: it gives the largest weight the code -8.
- Then, for each code that the largest weight may have, the other codes follow, and each weight says between which
  bounds d must be. The f16 numbers within all bounds are few, and each is tried on all 32 weights. One that bf16 has
  too goes before one that it has not, since the weights were most likely made with it; then the smaller error
  against the bf16 values counts, then the finer grid.

The step may have either sign (the code -8 has no opposite). It is negative only where the largest weight is positive
and has that code: otherwise both signs give the same weights, and the positive one is taken.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

Bits = NDArray[np.uint16]
Floats = NDArray[np.float32]
Doubles = NDArray[np.float64]
Steps = NDArray[np.float16]
Codes = NDArray[np.int8]
Flags = NDArray[np.bool_]

BLOCK: Final = 32
"""Weights in a block."""
BLOCK_BYTES: Final = 18
"""Bytes of a Q4_0 block: the step, then 16 bytes of codes."""

_SIGN, _MAGNITUDE, _INFINITY = np.uint16(0x8000), np.uint16(0x7FFF), np.uint16(0x7F80)
_EXTREME: Final = 8
_SMALLEST, _LARGEST = 2.0**-26, 2.0**20
"""Beyond these a largest weight is no multiple of a step that f16 has."""
_LAYOUT: Final = np.dtype([("d", "<f2"), ("q", "u1", BLOCK // 2)])
"""Byte i holds the code of weight i in its low half and that of weight i + 16 in its high half."""


class Grid(NamedTuple):
    """What was found for some blocks.

    Attributes:
        steps: Shape [blocks]; 0 for a block of zeros, and where there is no grid.
        codes: Shape [blocks, 32], from -8 to 7.
        found: Shape [blocks], whether there is a grid.
    """

    steps: Steps
    codes: Codes
    found: Flags


def to_f32(bits: Bits) -> Floats:
    """bf16 as the numbers they are."""
    return (bits.astype(np.uint32) << np.uint32(16)).view(np.float32)


def to_bf16(values: Floats) -> Bits:
    """Numbers (none of them a NaN) rounded to bf16, to nearest and ties to even."""
    raw = np.ascontiguousarray(values, dtype=np.float32).view(np.uint32)
    return ((raw + np.uint32(0x7FFF) + ((raw >> np.uint32(16)) & np.uint32(1))) >> np.uint32(16)).astype(np.uint16)


def find(bits: Bits) -> Grid:
    """Finds the grid of each block.

    Args:
        bits: bf16, shape [blocks, 32].
    """
    magnitudes = bits & _MAGNITUDE
    finite = (magnitudes < _INFINITY).all(axis=1)
    values = np.where(finite[:, None], to_f32(bits), np.float32(0))
    largest = np.take_along_axis(values, magnitudes.argmax(axis=1)[:, None], axis=1)[:, 0]
    steps, codes, fits = _as_ggml_would(values, bits, largest)
    found = fits & finite
    within = (np.abs(largest) > _SMALLEST) & (np.abs(largest) < _LARGEST)
    left = np.flatnonzero(finite & ~found & within)
    if len(left):
        steps[left], codes[left], found[left] = _search(bits[left], values[left], largest[left])
    steps[~found], codes[~found] = 0, 0
    return Grid(steps, codes, found)


def pack(grid: Grid) -> NDArray[np.uint8]:
    """Q4_0 blocks, shape [blocks, 18]."""
    codes = (grid.codes + np.int8(_EXTREME)).astype(np.uint8).reshape(-1, 2, BLOCK // 2)
    blocks = np.empty(len(codes), dtype=_LAYOUT)
    blocks["d"] = grid.steps
    blocks["q"] = codes[:, 0] | (codes[:, 1] << np.uint8(4))
    return blocks.view(np.uint8).reshape(-1, BLOCK_BYTES)


def _as_ggml_would(values: Floats, bits: Bits, largest: Floats) -> tuple[Steps, Codes, Flags]:
    """The step that gives the largest weight the code -8, and where that fits; blocks of zeros have the step 0."""
    with np.errstate(over="ignore", under="ignore"):
        steps = (largest / np.float32(-_EXTREME)).astype(np.float16)
    usable = np.isfinite(steps) & (steps != 0)
    wide = np.where(usable, steps, np.float16(1)).astype(np.float32)[:, None]
    codes = np.clip(np.rint(values / wide), -_EXTREME, _EXTREME - 1)
    same = (to_bf16(codes * wide) == bits) | ((codes == 0) & (values == 0))
    empty = largest == 0
    return np.where(empty, np.float16(0), steps), codes.astype(np.int8), (usable & same.all(axis=1)) | empty


def _search(bits: Bits, values: Floats, largest: Floats) -> tuple[Steps, Codes, Flags]:
    """Tries every code that the largest weight can have; see the module."""
    count = len(bits)
    steps, codes = np.zeros(count, dtype=np.float16), np.zeros((count, BLOCK), dtype=np.int8)
    best = np.full(count, np.inf)
    for extreme in range(_EXTREME, 0, -1):
        open_ = np.flatnonzero(best > 0)  # without an error it cannot be beaten
        signs = -np.sign(largest[open_]) if extreme == _EXTREME else np.ones(len(open_), dtype=np.float32)
        per_step = signs * (np.float32(extreme) / np.abs(largest[open_]))
        guess = np.rint(values[open_] * per_step[:, None])
        fits = ((guess == 0) == (values[open_] == 0)).all(axis=1) & (guess < _EXTREME).all(axis=1)
        at, guess, signs = open_[fits], guess[fits], signs[fits]
        if not len(at):
            continue
        found, ranks = _best_step(bits[at] & _MAGNITUDE, np.abs(guess))
        better = ranks < best[at]
        at = at[better]
        best[at] = ranks[better]
        steps[at] = (found * signs)[better].astype(np.float16)
        codes[at] = guess[better].astype(np.int8)
    return steps, codes, np.isfinite(best)


def _best_step(magnitudes: Bits, codes: Floats) -> tuple[Floats, Doubles]:
    """The f16 number that fits best, given the codes without their signs.

    Args:
        magnitudes: bf16 without signs, shape [blocks, 32].
        codes: 0 (exactly where the weight is 0) to 8, shape [blocks, 32].

    Returns:
        Steps, shape [blocks], and how bad each is: its squared error relative to the weights, 1 more where bf16 does
        not have it, infinite where no step fits.
    """
    some = codes > 0
    with np.errstate(divide="ignore", invalid="ignore"):
        lowest = np.where(some, _between(magnitudes - some, magnitudes) / codes, 0.0).max(axis=1)
        highest = np.where(some, _between(magnitudes, magnitudes + some) / codes, np.inf).min(axis=1)
    steps, ranks = np.zeros(len(codes), dtype=np.float32), np.full(len(codes), np.inf)
    at = np.flatnonzero(lowest <= highest)
    magnitudes, codes = magnitudes[at], codes[at]
    weights, wide = to_f32(magnitudes).astype(np.float64), codes.astype(np.float64)
    middle = (weights * wide).sum(axis=1) / (wide * wide).sum(axis=1)
    power = (weights**2).sum(axis=1)
    for step in _candidates(lowest[at], np.clip(middle, lowest[at], highest[at]), highest[at]):
        usable = np.isfinite(step) & (step > 0)
        single = np.where(usable, step, 0).astype(np.float32)
        products = single[:, None] * codes  # 11 bits times 4 bits: exact
        fits = usable & (to_bf16(products) == magnitudes).all(axis=1)
        rank = ((products - weights) ** 2).sum(axis=1) / power + (to_f32(to_bf16(single)) != single)
        better = fits & (rank < ranks[at])
        ranks[at[better]], steps[at[better]] = rank[better], single[better]
    return steps, ranks


def _candidates(lowest: Doubles, middle: Doubles, highest: Doubles) -> list[Steps]:
    """f16 numbers around the middle and at both bounds, and bf16 numbers around the middle.

    If any f16 number lies within the bounds, one of these does. Whether a bound itself is within depends on the
    weight's last bit, so the number beside it is tried too.
    """
    short = to_bf16(middle.astype(np.float32))
    with np.errstate(over="ignore", under="ignore"):
        near, low, high = middle.astype(np.float16), lowest.astype(np.float16), highest.astype(np.float16)
        shorts = [to_f32(bits).astype(np.float16) for bits in (short, short + np.uint16(1), short - np.uint16(1))]
    up, down = np.float16(np.inf), np.float16(0)
    low = np.where(low < lowest, np.nextafter(low, up), low)
    high = np.where(high > highest, np.nextafter(high, down), high)
    around = [np.nextafter(near, up), np.nextafter(near, down)]
    return [*shorts, near, *around, low, np.nextafter(low, up), high, np.nextafter(high, down)]


def _between(first: Bits, second: Bits) -> Doubles:
    """Half way between two bf16 numbers: where rounding goes over from one to the other."""
    return (to_f32(first).astype(np.float64) + to_f32(second).astype(np.float64)) / 2
