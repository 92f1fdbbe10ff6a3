"""Where guesses come from.

A drafter proposes the next tokens; only the target decides. So a drafter may be wrong, never harmful: the text is the
target's own whatever it proposes.

- `MtpDrafter`: Gemma 4's own drafter (multi-token prediction). A very small model that reads the target's KV cache and
  its last hidden row (llama.cpp, common/speculative.cpp, `draft_mtp` with shared memory).
- `DraftModel`: classic speculation, a small ordinary model with the same vocabulary.
- `NgramDrafter`: prompt lookup; repeats what followed the last few tokens the last time they stood together
  (A. Saxena, "Prompt Lookup Decoding", 2023). No model, no memory.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple, Protocol

import numpy as np

from tandem.engine.bindings import Batch, Context, Model, StopFlag
from tandem.engine.draft_length import MAX_DRAFT_LENGTH
from tandem.engine.scores import Scratch, confidence
from tandem.engine.target import Target

DRAFTER_BATCH: Final = 8
"""Physical batch of an MTP drafter: it only ever runs one token, and its compute buffer is most of its memory."""


class Draft(NamedTuple):
    """A proposal: token ids and the drafter's own confidence in each, 0..1 (NaN where it has none)."""

    tokens: list[int]
    confidences: list[float]


class Drafter(Protocol):
    """Proposes tokens."""

    method: str

    def draft(self, tokens: Sequence[int], length: int) -> Draft:
        """Proposes up to `length` tokens to follow `tokens`, whose last one is emitted but not yet in the KV cache."""
        ...

    def set_threads(self, count: int) -> None:
        """Changes how many threads it may use."""
        ...

    def free(self) -> None:
        """Gives its memory back; must come before the target's."""
        ...


class MtpDrafter:
    """Gemma 4's drafter on the target's KV cache.

    Args:
        model: The loaded `gemma4-assistant` model.
        target: The target it was trained for.
        threads: Threads of a draft step.
        stop: Ends a draft step early.

    Raises:
        DecodeFailed: llama.cpp made no context: the two do not fit together, or memory ran out.
    """

    method = "mtp"

    def __init__(self, model: Model, target: Target, threads: int, stop: StopFlag) -> None:
        self._target = target
        self._model = model
        self._context = Context(
            model,
            size=target.context.size,
            batch=DRAFTER_BATCH,
            rows=1,
            threads=threads,
            shared_with=target.context,
            flash_attention=target.context.flash_attention,
        )
        stop.attach(self._context)
        target.expose_hidden()
        self._context.expose_nextn(all_rows=False)
        self._batch = Batch(1, model.width_in)
        self._scratch = Scratch(model.vocabulary)

    @property
    def linked(self) -> bool:
        """Whether it really reads the target's KV cache."""
        return self._context.shares(self._target.context)

    def draft(self, tokens: Sequence[int], length: int) -> Draft:
        """See `Drafter`. Every step asks at the position of the last token, as the drafter was trained."""
        proposed: list[int] = []
        confidences: list[float] = []
        last, position = tokens[-1], len(tokens) - 1
        self._batch.embeddings[0] = self._target.hidden
        for step in range(length):
            self._batch.fill([last], position, all_rows=True)
            self._context.decode(self._batch)
            row = self._context.logits(0)
            last = int(row.argmax())
            proposed.append(last)
            confidences.append(confidence(row, last, self._scratch))
            if step + 1 < length:
                self._context.copy_nextn(0, self._batch.embeddings[0])
        return Draft(proposed, confidences)

    def set_threads(self, count: int) -> None:
        """See `Drafter`."""
        self._context.set_threads(count)

    def free(self) -> None:
        """See `Drafter`."""
        self._context.free()
        self._model.free()


class DraftModel:
    """A small ordinary model with the target's vocabulary; it keeps a KV cache of its own.

    Args:
        model: The loaded model.
        size: Context positions, the target's.
        threads: Threads of a draft step.
        stop: Ends a draft step early.
    """

    method = "draft-model"

    def __init__(self, model: Model, size: int, threads: int, stop: StopFlag) -> None:
        context = Context(model, size=size, batch=256, rows=1, threads=threads)
        stop.attach(context)
        self._own = Target(model, context)
        self._scratch = Scratch(model.vocabulary)

    def draft(self, tokens: Sequence[int], length: int) -> Draft:
        """See `Drafter`."""
        proposed: list[int] = []
        confidences: list[float] = []
        if length:
            self._own.prefill(list(tokens))
        for step in range(length):
            row = self._own.scores() if step == 0 else self._own.scores(0)
            best = int(row.argmax())
            proposed.append(best)
            confidences.append(confidence(row, best, self._scratch))
            if step + 1 < length:
                self._own.verify(best, [])
        return Draft(proposed, confidences)

    def set_threads(self, count: int) -> None:
        """See `Drafter`."""
        self._own.set_threads(count, count)

    def free(self) -> None:
        """See `Drafter`."""
        self._own.context.free()
        self._own.model.free()


class NgramDrafter:
    """Prompt lookup over one request: prompt and answer so far, which may only grow.

    Args:
        longest: Longest run of tokens that is looked up; the longest match wins.
        shortest: Shortest run that counts as a match.
    """

    method = "ngram"

    def __init__(self, longest: int = 4, shortest: int = 2) -> None:
        self._sizes: Final = range(longest, shortest - 1, -1)
        self._seen: list[int] = []
        self._ends: dict[tuple[int, ...], int] = {}  # run of tokens -> index just after its latest occurrence

    def draft(self, tokens: Sequence[int], length: int) -> Draft:
        """See `Drafter`. Confidences are NaN: a lookup has no opinion."""
        self._learn(tokens)
        for size in self._sizes:
            end = self._ends.get(tuple(tokens[-size:])) if len(tokens) > size else None
            if end is not None:
                found = self._seen[end : end + min(length, MAX_DRAFT_LENGTH)]
                return Draft(found, [float(np.nan)] * len(found))
        return Draft([], [])

    def _learn(self, tokens: Sequence[int]) -> None:
        known = len(self._seen)
        self._seen += tokens[known:]
        # a run that ends at the very last token has nothing after it yet: it is learned with the next one
        for end in range(max(known, 1), len(self._seen)):
            for size in self._sizes:
                if end >= size:
                    self._ends[tuple(self._seen[end - size : end])] = end

    def set_threads(self, count: int) -> None:
        """Uses none."""

    def free(self) -> None:
        """Holds nothing."""
