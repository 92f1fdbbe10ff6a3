"""The target: one model, one context, one conversation's KV cache.

`Target.tokens` is the exact content of the cache: position i holds tokens[i]. Every method keeps that true, also when a
decode is stopped half-way.

Gemma 4's sliding layers keep only the last `window` positions (and whatever their cells have not reused yet), so the
cache cannot always be cut back to an earlier position. `prefill` then restores a checkpoint of the sliding part, taken
at the end of an earlier prompt, or starts again from zero; `Prefill.cached` says how many tokens were reused.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from tandem.engine.bindings import Batch, Context, Floats, Model
from tandem.engine.threads import ThreadGovernor

_PADDING: Final = 256  # llama.cpp rounds the cells of a KV cache up to this
_CHECKPOINTS: Final = 32
_CHECKPOINT_BYTES: Final = 128 << 20  # all of them together; one is 6 MiB for E2B, 20 MiB for E4B


@dataclass(frozen=True, slots=True)
class Prefill:
    """What a prefill did.

    Attributes:
        cached: Prompt tokens whose KV was reused.
        processed: Prompt tokens that the model ran over.
        seconds: Time of these runs.
    """

    cached: int
    processed: int
    seconds: float


@dataclass(frozen=True, slots=True)
class _Checkpoint:
    end: int  # positions 0..end-1 were held
    window: bytes


def common_prefix(a: Sequence[int], b: Sequence[int]) -> int:
    """Length of the longest common beginning."""
    length = min(len(a), len(b))
    if a[:length] == b[:length]:
        return length
    differs = np.asarray(a[:length], np.int64) != np.asarray(b[:length], np.int64)
    return int(np.argmax(differs))


class Target:
    """The model that has the last word.

    Args:
        model: The loaded target.
        context: Its context; must allow `MAX_DRAFT_LENGTH + 1` rows of scores.
    """

    def __init__(self, model: Model, context: Context) -> None:
        self.model: Final = model
        self.context: Final = context
        self.tokens: list[int] = []
        self.hidden: Final = np.zeros(model.width_out, np.float32)
        """The hidden row an MTP drafter starts from: that of the last position whose scores were used."""
        self.governor: ThreadGovernor | None = None
        self._threads = self._prefill_threads = 0  # 0: as the context was made
        self._batch = Batch(context.batch_size)
        self._checkpoints: list[_Checkpoint] = []
        self._nextn = False
        # llama_kv_cache_iswa: cells of the sliding layers; as many as the context has are never used twice
        cells = -(-(model.window + context.batch_size) // _PADDING) * _PADDING
        self._cells = cells if model.window > 0 and cells < context.size else 0
        self._last = 0  # batch row of the last prompt token

    @property
    def room(self) -> int:
        """Positions still free in the context."""
        return self.context.size - len(self.tokens)

    @property
    def steady_rows(self) -> int:
        """Most tokens of a verify pass whose rejected part leaves no trace in where the cache keeps things.

        The sliding layers' cells are used round and round. When tokens on both sides of the last cell, or in it, are
        taken back, llama.cpp goes on at another cell than it would have; the same keys then stand in another order, and
        sums over them are rounded otherwise. So no pass with drafts reaches the last cell; a pass of one token does.
        Without this the text could depend on the drafter once the cells are in their second round.
        """
        if self._cells == 0:
            return self.context.batch_size
        return max(1, self._cells - len(self.tokens) % self._cells - 1)

    def expose_hidden(self) -> None:
        """Makes every later decode keep hidden rows, for an MTP drafter."""
        self.context.expose_nextn(all_rows=True)
        self._nextn = True

    def set_threads(self, decode: int, prefill: int) -> None:
        """Changes how many threads passes and prefills get.

        They differ because a prefill's many rows keep more threads busy than the few rows of a pass.
        """
        self._threads, self._prefill_threads = decode, prefill
        self._use_threads(decode)

    def reset(self) -> None:
        """Forgets the conversation."""
        self.context.remove_from(0)
        self.tokens.clear()
        self._checkpoints.clear()

    def prefill(
        self, prompt: Sequence[int], reuse: bool = True, progress: Callable[[int, int], None] | None = None
    ) -> Prefill:
        """Brings the cache to exactly `prompt`; the scores after its last token are then in row 0 of `scores`.

        Args:
            prompt: At least one token, at most `context.size`.
            reuse: Whether a common beginning of cache and prompt may stay.
            progress: Called after each batch with the prompt tokens in the cache and their number in all.

        Raises:
            Aborted: Stopped; the cache holds what was processed so far.
        """
        wanted = min(common_prefix(self.tokens, prompt), len(prompt) - 1) if reuse else 0
        start = self._cut(wanted) if reuse else self._restart()
        began = time.perf_counter()
        position = start
        try:
            while position < len(prompt):
                part = prompt[position : position + self.context.batch_size]
                self._use_threads(self._prefill_threads)
                self._governed(part, all_rows=False)
                position += len(part)
                self._last = len(part) - 1
                if progress is not None:
                    progress(position, len(prompt))
        finally:
            self._use_threads(self._threads)
        seconds = time.perf_counter() - began
        self._keep_hidden(self._last)
        return Prefill(cached=start, processed=len(prompt) - start, seconds=seconds)

    def scores(self, row: int | None = None) -> Floats:
        """Scores that follow verify row `row`, or the last prompt token (None); shape (vocabulary,), a view."""
        return self.context.logits(self._last if row is None else row)

    def verify(self, last: int, drafts: Sequence[int]) -> None:
        """One verify pass: runs over the last emitted token and the drafts; row i scores what follows draft i-1.

        Raises:
            Aborted: Stopped; nothing of the pass is in the cache.
        """
        self._governed([last, *drafts], all_rows=True)

    def keep(self, rows: int, of: int) -> None:
        """After a verify pass over `of` tokens keeps the first `rows` of them in the cache and drops the rest."""
        if rows < of:
            del self.tokens[len(self.tokens) - (of - rows) :]
            self.context.remove_from(len(self.tokens))
        self._keep_hidden(rows - 1)

    def checkpoint(self) -> None:
        """Remembers the sliding layers as they are now, so that a later turn can come back to this position."""
        if self.model.window <= 0 or not self.tokens:
            return
        end = len(self.tokens)
        self._checkpoints = [c for c in self._checkpoints if c.end != end]
        if window := self.context.save_window(_CHECKPOINT_BYTES):
            self._checkpoints.append(_Checkpoint(end, window))
        while (
            len(self._checkpoints) > _CHECKPOINTS or sum(len(c.window) for c in self._checkpoints) > _CHECKPOINT_BYTES
        ):
            self._thin_out()

    def _thin_out(self) -> None:
        """Drops the checkpoint that is missed least: its neighbours are nearest to each other. The newest stays."""
        ends = [0, *(c.end for c in self._checkpoints)]
        gaps = [after - before for before, after in zip(ends, ends[2:], strict=False)]
        del self._checkpoints[gaps.index(min(gaps)) if gaps else 0]

    def _keep_hidden(self, row: int) -> None:
        if self._nextn:
            self.context.copy_nextn(row, self.hidden)

    def _use_threads(self, count: int) -> None:
        if count:
            self.context.set_threads(count)

    def _governed(self, tokens: Sequence[int], all_rows: bool) -> None:
        """A decode that the governor watches."""
        governor = self.governor
        if governor is None:
            self._decode(tokens, all_rows)
            return
        governor.begin()
        self._decode(tokens, all_rows)
        governor.end(len(tokens), self._threads if all_rows else self._prefill_threads)

    def _decode(self, tokens: Sequence[int], all_rows: bool) -> None:
        self._batch.fill(tokens, len(self.tokens), all_rows)
        try:
            self.context.decode(self._batch)
        except BaseException:
            self.context.remove_from(len(self.tokens))
            raise
        self.tokens += tokens

    def _restart(self) -> int:
        self.reset()
        return 0

    def _cut(self, wanted: int) -> int:
        """Cuts the cache back to `wanted` positions, or to fewer where the sliding layers cannot; returns how many."""
        if wanted <= 0:
            return self._restart()
        if wanted == len(self.tokens):
            return wanted
        low = self.context.lowest()
        reachable = wanted
        # decoding position p looks back at p - window + 1; llama_hparams::is_masked_swa
        if self.model.window > 0 and low > max(0, wanted - self.model.window + 1):
            # a checkpoint of `end` positions holds what decoding positions end-1 and end needs, no earlier one
            usable = [c for c in self._checkpoints if c.end <= wanted + 1]
            best = max(usable, key=lambda c: c.end, default=None)
            if best is None or not self.context.restore_window(best.window):
                return self._restart()
            reachable = min(best.end, wanted)
        self.context.remove_from(reachable)
        del self.tokens[reachable:]
        self._checkpoints = [c for c in self._checkpoints if c.end <= reachable + 1]
        return reachable
