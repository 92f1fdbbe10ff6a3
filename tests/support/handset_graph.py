"""Token graphs: what a hand-set target says after each token, and what its drafter guesses."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from support.handset_vocab import Piece, normal_ids

Ints = NDArray[np.int64]
Wrong = float | Collection[int] | Callable[[int], bool]
"""Where the drafter guesses wrong: a share of all tokens (0..1), a set of tokens, or a test of one token."""


@dataclass(frozen=True)
class Passes:
    """What drafting with a graph must give, pass by pass (see `Graph.speculate`).

    Attributes:
        tokens: Everything said: the first token, which comes from the prefill, then those of each pass.
        verified: Drafts verified in each pass.
        accepted: Drafts accepted in each pass; a pass says `accepted + 1` tokens.
    """

    tokens: tuple[int, ...]
    verified: tuple[int, ...]
    accepted: tuple[int, ...]


@dataclass(frozen=True)
class Graph:
    """What the pair says: index is the last token, value the next one.

    Attributes:
        successor: Shape [vocabulary]. The target's greedy choice. For a branching token its likeliest candidate.
        guess: Shape [vocabulary]. The drafter's greedy choice.
        branch: For branching tokens the target's distribution at temperature 1: candidate to probability.
        draft_branch: The same for the drafter (its confidence is the probability of its guess).
    """

    successor: Ints
    guess: Ints
    branch: Mapping[int, Mapping[int, float]] = field(default_factory=dict)
    draft_branch: Mapping[int, Mapping[int, float]] = field(default_factory=dict)

    def follow(self, last: int, count: int) -> list[int]:
        """The `count` tokens that greedy decoding says when `last` is the last token of the prompt."""
        said = []
        for _ in range(count):
            last = int(self.successor[last])
            said.append(last)
        return said

    def speculate(self, last: int, passes: int, draft: int) -> Passes:
        """Plays greedy drafting through: the figures that an engine must report.

        Args:
            last: The last token of the prompt.
            passes: Target passes after the prefill.
            draft: Draft length in every pass.
        """
        last = int(self.successor[last])
        tokens = [last]
        accepted = []
        for _ in range(passes):
            guess = last
            hits = 0
            while hits < draft:
                guess = int(self.guess[guess])
                if guess != self.successor[last]:
                    break
                last = guess
                tokens.append(last)
                hits += 1
            accepted.append(hits)
            last = int(self.successor[last])
            tokens.append(last)
        return Passes(tuple(tokens), (draft,) * passes, tuple(accepted))


def _check(branch: Mapping[int, Mapping[int, float]], size: int) -> None:
    for token, candidates in branch.items():
        total = sum(candidates.values())
        if not candidates or abs(total - 1.0) > 1e-9 or min(candidates.values()) <= 0.0:
            raise ValueError(f"The probabilities after token {token} are not positive or add up to {total}, not 1.")
        if not all(0 <= number < size for number in (token, *candidates)):
            raise ValueError(f"The branch at token {token} leaves the vocabulary of {size}.")


def make_graph(
    vocabulary: Sequence[Piece],
    successor: Mapping[int, int] | Callable[[int], int] | None = None,
    *,
    wrong: Wrong = 0.0,
    branch: Mapping[int, Mapping[int, float]] | None = None,
    draft_branch: Mapping[int, Mapping[int, float]] | None = None,
    seed: int = 0,
) -> Graph:
    """Builds a graph over `vocabulary`.

    Args:
        vocabulary: The tokens; only their types matter here.
        successor: The next token for a token. Where a mapping has no entry, or without one, the next normal
            token follows, and the first one after the last.
        wrong: Where the drafter guesses another token than the target says.
        branch: Tokens after which the target has several candidates, with their probabilities at temperature 1.
        draft_branch: The same for the drafter; elsewhere it is all but certain of its guess.
        seed: For the choice of wrong tokens and wrong guesses.

    Raises:
        ValueError: A token is outside the vocabulary, or probabilities do not add up to 1.
    """
    size = len(vocabulary)
    branch = branch or {}
    draft_branch = draft_branch or {}
    _check(branch, size)
    _check(draft_branch, size)
    normal = np.array(normal_ids(vocabulary), dtype=np.int64)
    every = np.arange(size)
    place = np.searchsorted(normal, every, side="right")
    following = normal[place % len(normal)]
    if callable(successor):
        following = np.array([successor(token) for token in range(size)], dtype=np.int64)
    elif successor is not None:
        for token, after in successor.items():
            following[token] = after
    for token, candidates in branch.items():
        following[token] = max(candidates, key=lambda number: candidates[number])
    if following.min() < 0 or following.max() >= size:
        raise ValueError(f"A successor is outside the vocabulary of {size} tokens.")

    rng = np.random.default_rng(seed)
    if callable(wrong):
        misses = np.array([wrong(token) for token in range(size)], dtype=bool)
    elif isinstance(wrong, Collection):
        misses = np.isin(every, np.array(sorted(wrong), dtype=np.int64))
    else:
        misses = np.zeros(size, dtype=bool)
        # A share of the tokens that a text consists of, exactly, so that short cycles get it too.
        misses[rng.permutation(normal)[: round(wrong * len(normal))]] = True
    others = rng.permutation(normal)[rng.integers(0, len(normal) - 1, size)]
    clash = others == following
    others[clash] = np.where(normal[0] == following[clash], normal[1], normal[0])
    guess = np.where(misses, others, following)
    for token, candidates in draft_branch.items():
        guess[token] = max(candidates, key=lambda number: candidates[number])
    return Graph(following, guess, dict(branch), dict(draft_branch))
