"""Speculative decoding: draft, verify, accept, emit.

The drafter guesses a few tokens. The target runs once over the last token and all guesses, which costs little more than
running over one. Row i of its scores says what the target itself would say after guess i-1, so the target's own choice
is made row by row; a guess that equals the choice is accepted, the first that differs ends the pass, and what the
target chose there is kept. The text is therefore the target's own: at temperature 0 token for token, above it with the
target's distribution, because every token is drawn from the target's row and a guess only decides whether the next row
is usable (Leviathan et al., 2023, "Fast Inference from Transformers via Speculative Decoding", with sample
matching in place of the rejection rule).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from tandem.engine.bindings import Aborted, DecodeFailed
from tandem.engine.draft_length import DraftLength, PassOutcome
from tandem.engine.drafters import Draft, Drafter
from tandem.engine.metrics import RunStats, flags_of
from tandem.engine.protocol import DrafterProblem, StopReason
from tandem.engine.sampling import Sampler
from tandem.engine.stream import AnswerStream, Chunk
from tandem.engine.target import Target
from tandem.errors import EngineError

_NOTHING: Final = Draft([], [])


@dataclass(frozen=True, slots=True)
class PassReport:
    """One pass, as it is streamed.

    Attributes:
        tokens: Ids emitted.
        chunks: Text that became final, by channel.
        drafted: For each token, whether a draft stood at its place.
        accepted: For each token, whether that draft was the target's own choice.
        confidences: The drafter's confidence in each of its drafts, rejected ones included; NaN if it has none.
        draft_s: Seconds in the drafter.
        verify_s: Seconds in the target; 0 for the pass that is the prefill's last run.
    """

    tokens: list[int]
    chunks: list[Chunk]
    drafted: list[bool]
    accepted: list[bool]
    confidences: list[float]
    draft_s: float
    verify_s: float


@dataclass(frozen=True, slots=True)
class Limits:
    """When to end.

    Attributes:
        max_tokens: Most tokens to emit; None leaves it to the context.
        ends: Tokens that end the turn; they are emitted and give no text.
    """

    max_tokens: int | None
    ends: frozenset[int]


class Speculation:
    """One answer in the making. Call `run` once, after the prompt is prefilled.

    Args:
        target: Holds the prompt in its KV cache.
        drafter: Guesses; None is plain decoding.
        length: How far to draft each time.
        sampler: Chooses tokens on the target's rows; `begin` was called.
        stream: Turns tokens into text.
        limits: When to end.
        stats: Is filled in.
        emit: Gets each pass as it happens.
    """

    def __init__(
        self,
        target: Target,
        drafter: Drafter | None,
        length: DraftLength,
        sampler: Sampler,
        stream: AnswerStream,
        limits: Limits,
        stats: RunStats,
        emit: Callable[[PassReport], None],
    ) -> None:
        self._target = target
        self._drafter = drafter
        self._length = length
        self._sampler = sampler
        self._stream = stream
        self._limits = limits
        self._stats = stats
        self._emit = emit
        self._text: list[int] = list(target.tokens)  # prompt and answer, the last token not yet in the KV cache
        self._clock = 0.0
        self.problem: DrafterProblem | None = None
        """Why the drafter was given up in the middle, if it was; the target went on alone."""

    def run(self) -> StopReason:
        """Generates until something ends it.

        Returns:
            Why it ended. Stopping (`StopFlag`) is not an error: what was emitted stays.
        """
        if self._limits.max_tokens is not None and self._limits.max_tokens <= 0:
            return "limit"
        reason = self._accept(_NOTHING, 0.0, 0.0, first=True)
        self._target.checkpoint()
        try:
            while reason is None:
                reason = self._pass()
        except Aborted:
            reason = "stopped"
        return reason

    def _pass(self) -> StopReason | None:
        target, room = self._target, self._target.room
        if room < 1:
            return "context"
        began = time.perf_counter()
        draft = self._draft(min(room, target.steady_rows) - 1)
        drafted = time.perf_counter()
        target.verify(self._text[-1], draft.tokens)
        verified = time.perf_counter()
        return self._accept(draft, drafted - began, verified - drafted, first=False)

    def _draft(self, room: int) -> Draft:
        if self._drafter is None:
            return _NOTHING
        length = min(self._length.next(), room)
        if self._limits.max_tokens is not None:  # the token after the drafts is the target's own
            length = min(length, self._limits.max_tokens - self._stats.generated - 1)
        if length <= 0:
            return _NOTHING
        try:
            return self._drafter.draft(self._text, length)
        except (DecodeFailed, EngineError) as error:
            self._drafter = None
            self.problem = DrafterProblem(f"The drafter failed: {error}", "The answer went on without it; try again.")
            return _NOTHING

    def _accept(self, draft: Draft, draft_s: float, verify_s: float, first: bool) -> StopReason | None:
        """Chooses tokens row by row for as long as the drafts agree, emits them and tidies the cache."""
        thought = self._stream.channel == "thought"
        emitted: list[int] = []
        chunks: list[Chunk] = []
        reason: StopReason | None = None
        for row in range(len(draft.tokens) + 1):
            token = self._sampler.choose(self._target.scores(None if first else row))
            self._sampler.accept(token)
            emitted.append(token)
            chunks += self._stream.push(token)
            reason = self._ended(token, len(emitted))
            if reason is not None or row == len(draft.tokens) or token != draft.tokens[row]:
                break
        self._text += emitted
        if not first:
            self._target.keep(len(emitted), of=len(draft.tokens) + 1)
        self._report(draft, emitted, chunks, thought, draft_s, verify_s, ended=reason is not None)
        return reason

    def _ended(self, token: int, emitted: int) -> StopReason | None:
        if token in self._limits.ends or self._stream.stopped:
            return "end"
        if self._limits.max_tokens is not None and self._stats.generated + emitted >= self._limits.max_tokens:
            return "limit"
        return None

    def _report(
        self,
        draft: Draft,
        emitted: Sequence[int],
        chunks: list[Chunk],
        thought: bool,
        draft_s: float,
        verify_s: float,
        ended: bool,
    ) -> None:
        drafted, accepted = flags_of(draft.tokens, emitted)
        # drafts behind a stop were never judged; behind a disagreement they were, together with it
        judged = (
            min(len(emitted), len(draft.tokens)) if ended and all(accepted[: len(draft.tokens)]) else len(draft.tokens)
        )
        now = time.perf_counter()
        since = now - self._clock if self._clock else 0.0
        self._clock = now
        self._stats.count_pass(len(emitted), judged, sum(accepted), since, draft_s, verify_s, thought)
        self._length.observe(
            PassOutcome(judged, sum(accepted), tuple(draft.confidences), len(self._text), draft_s, verify_s)
        )
        self._emit(PassReport(list(emitted), chunks, drafted, accepted, draft.confidences, draft_s, verify_s))
