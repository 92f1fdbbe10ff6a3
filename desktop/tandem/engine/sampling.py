"""The choice of the next token from the target's scores, and never from the drafter's.

The order and the formulas are those of llama.cpp's default chain (`common_params_sampling::samplers` in
`common/common.h`, the samplers themselves in `src/llama-sampler.cpp`, at commit 0c1e57098):

1. repeat penalty: scores of recent tokens are divided by it where positive, else multiplied
   (`llama_sampler_penalties_apply`);
2. top-k: the k best (`llama_sampler_top_k_impl`);
3. top-p: the smallest set of best tokens whose share of what is left reaches p, at least one
   (`llama_sampler_top_p_apply`);
4. min-p: scores of at least `best + ln(min_p)` (`llama_sampler_min_p_apply`);
5. temperature: scores are divided by it (`llama_sampler_temp_impl`), 0 takes the best (`llama_sampler_greedy_apply`);
6. one draw from the softmax of what is left (`llama_sampler_dist_apply`).

llama.cpp adds probabilities up in float32 and this module in float64, so a token that stands within rounding of a
limit may fall on its other side. The passes over whole rows are in `tandem.engine.scores`.
"""

from __future__ import annotations

import math
import secrets
from collections import deque
from collections.abc import Iterable, Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from tandem.engine.params import MAX_SEED, SamplingParams
from tandem.engine.scores import CHUNK, Ids, Scores, Scratch, top_candidates, unusable

__all__ = ["MAX_SEED", "Sampler", "SamplingParams"]

# How far a search over the whole vocabulary looks at first, and by how much it widens.
_FIRST_LOOK: Final = 256
_WIDEN: Final = 16


class Sampler:
    """Chooses the tokens of one answer.

    Alternate `choose` and `accept`. With a temperature above 0 each `choose` uses exactly one random number, so the
    text of a seed depends on the target's rows alone and not on who drafted what.

    Args:
        params: How to choose.
        vocabulary: Scores in a row.

    Raises:
        UsageError: The params make no sense.
    """

    def __init__(self, params: SamplingParams, vocabulary: int) -> None:
        params.check()
        self.params: Final = params
        # A fresh seed has 32 bits: people read it off and type it again, and scripts may hold numbers as doubles.
        self.seed: Final[int] = secrets.randbits(32) if params.seed is None else params.seed
        self._scratch: Final = Scratch(vocabulary)
        self._penalty: Final = np.float32(params.repeat_penalty)
        self._penalises: Final = params.repeat_penalty != 1.0 and params.repeat_last_n > 0
        self._recent: Final[deque[int]] = deque(maxlen=params.repeat_last_n)
        self._recent_ids: Ids | None = None
        self._stream = np.random.PCG64(self.seed)
        self._banned: Ids = np.empty(0, np.intp)

    @property
    def greedy(self) -> bool:
        """Whether the best token is always taken, and no random number used."""
        return self.params.temperature == 0.0

    def begin(self, prompt: Sequence[int]) -> None:
        """Start an answer: rewind the random stream, forget the last answer's tokens.

        Args:
            prompt: The token ids of the prompt; its last `repeat_last_n` count for the repeat penalty.
        """
        self._stream = np.random.PCG64(self.seed)
        self._recent.clear()
        self._recent.extend(prompt[-self.params.repeat_last_n :] if self.params.repeat_last_n else ())
        self._recent_ids = None

    def ban(self, tokens: Iterable[int]) -> None:
        """Never choose these from now on, as llama.cpp does for `ignore_eos`: their scores become -inf."""
        self._banned = np.fromiter(tokens, np.intp)

    def accept(self, token: int) -> None:
        """Let a token that is now part of the answer count for the repeat penalty."""
        if self._penalises:
            self._recent.append(token)
            self._recent_ids = None

    def choose(self, row: Scores) -> int:
        """Choose the next token.

        Args:
            row: The target's raw scores (logits), shape (vocabulary,), float32. It is only read.

        Returns:
            A token id.

        Raises:
            EngineError: The row holds NaN or +inf, or nothing but -inf.
        """
        scores = self._penalised(row)
        if self.greedy:
            best = int(scores.argmax())  # the first of equals, and the first NaN if there is one
            if not math.isfinite(scores[best]):
                raise unusable()
            return best
        # The 53 high bits of one raw number. Raw streams of a numpy bit generator are frozen for good (NEP 19),
        # what Generator.random makes of them is not.
        share = (self._stream.random_raw() >> 11) * 2.0**-53
        if self._keeps_all:
            return self._choose_of_all(scores, share)
        ids, logits = self._kept(scores)
        running = np.cumsum(_weights(logits, self.params.temperature))
        return int(ids[_position(running, share * running[-1])])

    def distribution(self, row: Scores) -> tuple[Ids, NDArray[np.float64]]:
        """The distribution that `choose` draws from. Uses no random number; sorts the row when nothing is cut off.

        Args:
            row: As for `choose`.

        Returns:
            Token ids by falling score, equal scores by rising id, and their probabilities (sum 1).

        Raises:
            EngineError: As for `choose`.
        """
        scores = self._penalised(row)
        if self.greedy:
            ids, _ = top_candidates(scores, 1, self._scratch)
            return ids, np.ones(1)
        if self._keeps_all:
            ids, logits = top_candidates(scores, len(scores), self._scratch)
        else:
            ids, logits = self._kept(scores)
        weights = _weights(logits, self.params.temperature)
        return ids, weights / weights.sum()

    @property
    def _keeps_all(self) -> bool:
        return self.params.top_k == 0 and self.params.top_p >= 1.0 and self.params.min_p == 0.0

    def _penalised(self, row: Scores) -> Scores:
        """The row itself, or a copy with the repeat penalty applied."""
        if row.shape != (self._scratch.vocabulary,):
            raise ValueError(f"a row of {self._scratch.vocabulary} scores is needed, not {row.shape}")
        if not self._penalises and not len(self._banned):
            return row
        scores = self._scratch.copy(row)
        scores[self._banned] = -np.inf
        if not self._penalises:
            return scores
        if self._recent_ids is None:
            ids = {token for token in self._recent if 0 <= token < self._scratch.vocabulary}
            self._recent_ids = np.fromiter(ids, np.intp, len(ids))
        old = scores[self._recent_ids]
        scores[self._recent_ids] = np.where(old <= 0, old * self._penalty, old / self._penalty)
        return scores

    def _kept(self, scores: Scores) -> tuple[Ids, Scores]:
        """What top-k, top-p and min-p leave, best first."""
        size = len(scores)
        if self.params.top_k > 0:
            ids, logits = top_candidates(scores, self.params.top_k, self._scratch)
            return self._narrow(ids, logits, None)
        # Without top-k the limits are over the whole vocabulary. They cut off the end of the descending order: look at
        # the best few, and widen the look until the cut is inside it.
        total: float | None = None
        look = min(_FIRST_LOOK, size)
        while True:
            ids, logits = top_candidates(scores, look, self._scratch)
            if total is None and self.params.top_p < 1.0:
                total = _sum_of_weights(scores, float(logits[0]), 1.0)
            ids, logits = self._narrow(ids, logits, total)
            if len(ids) < look or look == size:
                return ids, logits
            look = min(look * _WIDEN, size)

    def _narrow(self, ids: Ids, logits: Scores, total: float | None) -> tuple[Ids, Scores]:
        """Apply top-p, then min-p, to the best tokens.

        `total` is the sum of all weights that top-p is a share of, None where the tokens given are all there are.
        """
        keep = len(ids)
        if self.params.top_p < 1.0:
            running = np.cumsum(_weights(logits, 1.0))
            goal = self.params.top_p * (running[-1] if total is None else total)
            keep = min(keep, int(running.searchsorted(goal)) + 1)
        if self.params.min_p > 0.0:
            least = float(logits[0]) + math.log(self.params.min_p)
            keep = min(keep, int(np.count_nonzero(logits >= least)))
        return ids[:keep], logits[:keep]

    def _choose_of_all(self, scores: Scores, share: float) -> int:
        """Draw from the whole vocabulary, in the same descending order, without sorting more of it than needed."""
        size = len(scores)
        look = min(_FIRST_LOOK, size)
        goal: float | None = None
        while True:
            ids, logits = top_candidates(scores, look, self._scratch)
            if goal is None:
                goal = share * _sum_of_weights(scores, float(logits[0]), self.params.temperature)
            running = np.cumsum(_weights(logits, self.params.temperature))
            if running[-1] > goal or look == size:
                return int(ids[_position(running, goal)])
            look = min(look * _WIDEN, size)


def _weights(logits: Scores, temperature: float) -> NDArray[np.float64]:
    """exp((logit - best) / temperature) of scores in falling order, in float64."""
    exact = logits.astype(np.float64)
    with np.errstate(over="ignore"):  # a tiny temperature sends all but the best to exp(-inf) = 0, as it should
        weights: NDArray[np.float64] = np.exp((exact - exact[0]) / temperature)
    return weights


def _sum_of_weights(row: Scores, best: float, temperature: float) -> float:
    """The sum of `_weights` over a whole row in any order."""
    total = 0.0
    for start in range(0, len(row), CHUNK):
        part = row[start : start + CHUNK].astype(np.float64)
        with np.errstate(over="ignore"):
            total += float(np.exp((part - best) / temperature).sum())
    return total


def _position(running: NDArray[np.float64], goal: float) -> int:
    """The first position whose running sum passes the goal; never one of weight 0."""
    found = int(running.searchsorted(goal, side="right"))
    # Rounding can put the goal at or above the last sum: then it is the last position that added anything.
    return found if found < len(running) else int(running.searchsorted(running[-1]))
