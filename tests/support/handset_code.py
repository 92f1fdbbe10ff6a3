"""Code words: the vectors by which hand-set embeddings name tokens.

An embedding row names the token that follows; an output row answers to its own token's word. With as many dimensions
as words the words are orthogonal and logits come out exactly as set; with more words than dimensions they are random
signs, whose products stay far below a word's product with itself.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]

LOGIT_ORTHOGONAL: Final = 120.0
LOGIT_RANDOM: Final = 60.0
"""Logit of the token that follows, before the target's soft cap (30 tanh(x / 30)). With random words of w dimensions
the logits of all others have a deviation of `LOGIT_RANDOM / sqrt(w)`, far enough below for probabilities of
1 - 1e-6 even over 262,144 tokens at E2B's width."""


class Code:
    """Words of `width` dimensions for the tokens that somebody says.

    Args:
        size: Size of the vocabulary.
        said: The tokens that are ever said; with orthogonal words, only these get one (others: zero).
        width: Dimensions.
        seed: For the words.
        exact: Whether orthogonal words may be used (their entries are not just +1 and -1).
    """

    def __init__(self, size: int, said: NDArray[np.int64], width: int, seed: int, exact: bool) -> None:
        rng = np.random.default_rng(seed)
        self.width: Final = width
        self.orthogonal: Final = exact and len(said) <= width
        if self.orthogonal:
            basis, _ = np.linalg.qr(rng.standard_normal((width, width)))
            self._words = np.zeros((size, width), dtype=np.float32)
            self._words[said] = (basis * np.sqrt(width))[: len(said)]
        else:
            self._bits = rng.integers(0, 256, (size, -(-width // 8)), dtype=np.uint8)

    def words(self, tokens: NDArray[np.int64]) -> Floats:
        """Words of `tokens`, shape [tokens, width]; each has a squared length of `width`."""
        if self.orthogonal:
            return self._words[tokens]
        bits = np.unpackbits(self._bits[tokens], axis=1)[:, : self.width]
        return bits.astype(np.float32) * 2.0 - 1.0

    def vector_for(self, candidates: Mapping[int, float], logit: float, soft_cap: float | None) -> Floats:
        """The vector after which the candidates have the given probabilities at temperature 1.

        The shortest vector x with `logit / width * words @ x` equal to the candidates' logits, these as large as
        its length (at most that of a word) and the soft cap allow.

        Args:
            candidates: Token to probability.
            logit: A word's product with itself as a logit, before the cap.
            soft_cap: The target's soft cap; None for a drafter.

        Raises:
            ValueError: The probabilities would be off by more than 0.1 % of the whole: too many candidates, too
                peaked, or words that are not orthogonal because too many tokens are said.
        """
        tokens = np.array(list(candidates), dtype=np.int64)
        wanted = np.array(list(candidates.values()))
        words = self.words(tokens).astype(np.float64)
        inverse = np.linalg.pinv(words)
        highest = 28.0 if soft_cap is None else 0.95 * soft_cap
        for top in np.arange(highest, 4.0, -0.25):
            logits = np.log(wanted) - np.log(wanted.max()) + top
            if logits.min() < -0.95 * (soft_cap or np.inf):
                continue
            before = logits if soft_cap is None else soft_cap * np.arctanh(logits / soft_cap)
            vector = inverse @ (before * self.width / logit)
            if vector @ vector <= self.width:
                break
        else:
            raise ValueError(f"No vector gives the probabilities {dict(candidates)}.")
        every = self.words(np.arange(self._size)) @ vector * (logit / self.width)
        if soft_cap is not None:
            every = soft_cap * np.tanh(every / soft_cap)
        given = np.exp(every - every.max())
        given /= given.sum()
        if np.abs(given[tokens] - wanted).sum() > 1e-3:
            raise ValueError(f"Wanted {dict(candidates)}, would be {given[tokens].tolist()}: say fewer tokens.")
        return np.asarray(vector, dtype=np.float32)

    @property
    def _size(self) -> int:
        return len(self._words) if self.orthogonal else len(self._bits)

    @property
    def logit(self) -> float:
        """The logit of a word after itself, before any soft cap."""
        return LOGIT_ORTHOGONAL if self.orthogonal else LOGIT_RANDOM
