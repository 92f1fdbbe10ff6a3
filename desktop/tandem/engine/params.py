"""How tokens are to be chosen: what a request says, without the machinery of `tandem.engine.sampling`."""

from __future__ import annotations

import math
from typing import Final

import msgspec

from tandem.errors import UsageError

MAX_SEED: Final = 2**64 - 1
"""The largest seed: what fits an unsigned 64-bit number."""

_LONGEST_REACH: Final = 1 << 20
_PENALTY_RANGE: Final = (0.01, 100.0)


class SamplingParams(msgspec.Struct, frozen=True):
    """How a token is chosen. The defaults are the ones Gemma 4's model card gives.

    Attributes:
        temperature: Divides the scores, without unit; 0 always takes the best token.
        top_k: Tokens kept, the best ones; 0 keeps all.
        top_p: Share of probability kept, in (0, 1]; 1 keeps all.
        min_p: Least probability kept, as a share of the best token's, in [0, 1]; 0 keeps all.
        repeat_penalty: Above 1 makes recent tokens less likely, below 1 more; 1 does nothing.
        repeat_last_n: Recent tokens, of prompt and answer, that the penalty counts; 0 does nothing.
        seed: Start of the random stream, 0 to 2**64 - 1; `None` takes a fresh one.
    """

    temperature: float = 1.0
    top_k: int = 64
    top_p: float = 0.95
    min_p: float = 0.0
    repeat_penalty: float = 1.0
    repeat_last_n: int = 64
    seed: int | None = None

    def check(self) -> None:
        """Refuse values that make no sense.

        Raises:
            UsageError: The first value that is out of its range, NaN included.
        """
        # Written so that NaN, which compares false with everything, fails each test.
        if not 0.0 <= self.temperature < math.inf:
            raise _refused("temperature", self.temperature, "0 or more", "0 for the likeliest token each time, or 1.0")
        if not self.top_k >= 0:
            raise _refused("top-k", self.top_k, "0 or more", "0 for no limit, or 64")
        if not 0.0 < self.top_p <= 1.0:
            raise _refused("top-p", self.top_p, "above 0 and at most 1", "1 for no limit, or 0.95")
        if not 0.0 <= self.min_p <= 1.0:
            raise _refused("min-p", self.min_p, "between 0 and 1", "0 for no limit")
        low, high = _PENALTY_RANGE
        if not low <= self.repeat_penalty <= high:
            raise _refused("repeat penalty", self.repeat_penalty, f"between {low:g} and {high:g}", "1 for no penalty")
        if not 0 <= self.repeat_last_n <= _LONGEST_REACH:
            raise _refused("repeat penalty's reach", self.repeat_last_n, f"0 to {_LONGEST_REACH:,} tokens", "64")
        if self.seed is not None and not 0 <= self.seed <= MAX_SEED:
            raise _refused("seed", self.seed, f"a whole number between 0 and {MAX_SEED}", "another, or none at all")


def _refused(what: str, value: float, wanted: str, instead: str) -> UsageError:
    return UsageError(f"The {what} is {value} and must be {wanted}.", f"Use {instead}.")
