"""Rows of scores for tests, and their order by brute force."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st
from numpy.typing import NDArray

Row = NDArray[np.float32]

# Sizes below one block, at its edges, with a tail, and with more columns than k.
sizes = st.one_of(st.integers(1, 70), st.sampled_from([63, 64, 65, 127, 128, 129, 4095, 4096, 4097, 5000, 12_345]))


@st.composite
def rows(draw: st.DrawFn) -> Row:
    """Rows with ties and -inf, at least one score being a number."""
    size = draw(sizes)
    kind = draw(st.sampled_from(["normal", "few values", "equal", "peaked", "mostly -inf"]))
    random = np.random.default_rng(draw(st.integers(0, 2**32)))
    if kind == "few values":
        row = random.integers(-3, 3, size).astype(np.float32)
    elif kind == "equal":
        row = np.full(size, -2.5, np.float32)
    else:
        row = random.normal(0, 4, size).astype(np.float32)
    if kind == "peaked":
        row[random.integers(0, size)] = 90
    if kind == "mostly -inf":
        row[random.random(size) < 0.97] = -np.inf
        row[random.integers(0, size)] = 1
    return row


def brute_order(row: Row) -> NDArray[np.intp]:
    """All ids by falling score, equal scores by rising id."""
    order: NDArray[np.intp] = np.lexsort((np.arange(len(row)), -row))
    return order
