"""Passes over whole rows of scores: the best of a row, and how sure the model is of one of them.

A row at Gemma 4's vocabulary is 1 MiB: few passes, into kept buffers, and no sort.
"""

from __future__ import annotations

import math
from typing import Final

import numpy as np
from numpy.typing import NDArray

from tandem.errors import EngineError

# Block maxima are taken down the columns of a (64, vocabulary / 64) view: numpy vectorises that direction, and it
# leaves 4,096 maxima of 262,144 scores, enough for a tight bound at k = 64 (measured: 32 to 256 rows differ little).
_BLOCK: Final = 64
# Scores whose exponentials are added up at a time: 256 KiB of float32 stay in the second cache level, and the pairwise
# sum of a chunk is added in float64. Smaller chunks cost more calls than they save (measured).
CHUNK: Final = 65_536

Ids = NDArray[np.intp]
Scores = NDArray[np.float32]


class Scratch:
    """Buffers for rows of one vocabulary, so that no row costs an allocation. Not for two threads at once.

    Args:
        vocabulary: Scores in a row.
    """

    __slots__ = ("_penalised", "chunk", "maxima", "passed", "vocabulary")

    def __init__(self, vocabulary: int) -> None:
        if vocabulary < 1:
            raise ValueError("a vocabulary has at least one token")
        self.vocabulary: Final = vocabulary
        self.maxima: Final[Scores] = np.empty(vocabulary // _BLOCK, np.float32)
        self.passed: Final[NDArray[np.bool_]] = np.empty(vocabulary, np.bool_)
        self.chunk: Final[Scores] = np.empty(min(vocabulary, CHUNK), np.float32)
        self._penalised: Scores | None = None

    def copy(self, row: Scores) -> Scores:
        """Copy `row` into a buffer that may be written to, valid until the next call."""
        if self._penalised is None:
            self._penalised = np.empty(self.vocabulary, np.float32)
        np.copyto(self._penalised, row)
        return self._penalised


def top_candidates(row: Scores, k: int, scratch: Scratch) -> tuple[Ids, Scores]:
    """The k best scores of a row, exactly.

    The k-th largest of the maxima of disjoint blocks cannot be above the k-th largest score, so whatever is below it
    is out. Few scores pass, and only those are ordered.

    Args:
        row: Scores, shape (vocabulary,), float32. It is only read.
        k: How many; more than the vocabulary means all.
        scratch: Buffers for this vocabulary.

    Returns:
        Token ids and their scores, by falling score, equal scores by rising id.

    Raises:
        EngineError: The row holds NaN or +inf, or nothing but -inf.
    """
    size = len(row)
    if size != scratch.vocabulary or k < 1:
        raise ValueError(f"cannot take {k} of {size} scores with buffers for {scratch.vocabulary}")
    columns = len(scratch.maxima)
    if k > columns:
        _require_usable(row.max())
        ids = _best(row, min(k, size))
        return ids, row[ids]
    whole = columns * _BLOCK
    maxima = np.maximum.reduce(row[:whole].reshape(_BLOCK, columns), axis=0, out=scratch.maxima)
    top = maxima.max()
    if whole < size:
        top = np.maximum(top, row[whole:].max())  # unlike max(), hands a NaN on
    _require_usable(top)
    bound = np.partition(maxima, columns - k)[columns - k]
    passed = np.flatnonzero(np.greater_equal(row, bound, out=scratch.passed))
    values = row[passed]
    order = _best(values, k)
    return passed[order], values[order]


def confidence(row: Scores, best: int, scratch: Scratch) -> float:
    """The softmax probability of one token over the whole row.

    Args:
        row: Scores, shape (vocabulary,), float32. It is only read.
        best: The token's id, usually that of the largest score.
        scratch: Buffers for this vocabulary.

    Returns:
        A probability, 0 to 1, right to about 1e-6 of itself.

    Raises:
        EngineError: The row holds NaN or +inf, or nothing but -inf.
    """
    if len(row) != scratch.vocabulary:
        raise ValueError(f"a row of {scratch.vocabulary} scores is needed, not {len(row)}")
    # The token is nearly always the best one, so its own score is what to subtract, and the row need not be searched
    # for its maximum. Where that overflows or meets NaN, the maximum decides.
    with np.errstate(over="ignore", invalid="ignore"):
        total = _sum_of_exponentials(row, row[best], scratch)
    if math.isfinite(total):
        return 1.0 / total
    top = row.max()
    _require_usable(top)
    return math.exp(float(row[best]) - float(top)) / _sum_of_exponentials(row, top, scratch)


def _sum_of_exponentials(row: Scores, origin: np.float32, scratch: Scratch) -> float:
    total = 0.0
    for start in range(0, len(row), CHUNK):
        part = row[start : start + CHUNK]
        buffer = scratch.chunk[: len(part)]
        np.subtract(part, origin, out=buffer)
        np.exp(buffer, out=buffer)
        total += float(buffer.sum())
    return total


def _best(values: Scores, k: int) -> Ids:
    """Positions of the k largest values, falling, the first of equals first. k is 1 to len(values)."""
    size = len(values)
    if size <= 4 * k:
        return np.argsort(-values, kind="stable")[:k]
    least = np.partition(values, size - k)[size - k]
    above = np.flatnonzero(values > least)
    equal = np.flatnonzero(values == least)[: k - len(above)]
    return np.concatenate((above[np.argsort(-values[above], kind="stable")], equal))


def _require_usable(top: np.float32) -> None:
    if not math.isfinite(top):
        raise unusable()


def unusable() -> EngineError:
    """The error for a row that nothing can be chosen from."""
    return EngineError(
        "The model produced no usable scores for the next token.",
        "Try again or choose another device; if it happens every time, the model file is likely damaged.",
        "the row of logits holds NaN or +inf, or nothing but -inf",
    )
