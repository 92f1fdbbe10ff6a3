"""What a run measured, and the identities that every figure must obey.

Definitions, the same in the window, the exports and the docs:

- *prefill*: the target's run over the prompt tokens that were not in the KV cache; its scores give the first token.
- *pass*: one run of the target that gave tokens: the prefill's last run (one token), then one verify pass after the
  other (one token and the accepted drafts). So **generated = accepted + passes**, unless a stop or a limit cut the last
  pass between its accepted drafts and the token after them; then generated = accepted + passes - 1.
- *verified*: drafts that the target judged. Drafts behind a stop inside an accepted run were not.
- *acceptance rate* = accepted / verified. *Acceptance at position i* = accepted_at[i] / drafted_at[i].
- *tokens per pass* = generated / passes.
- *decode tok/s* = (generated - 1) / time from the first token to the last.
- *time to first token*: from the request's arrival in the engine to the first token.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from tandem.engine.draft_length import MAX_DRAFT_LENGTH


class ChannelStats(msgspec.Struct):
    """Figures of the thought or of the answer alone; a pass counts for the channel of its first token.

    Attributes:
        generated: Tokens.
        passes: Passes.
        verified: Drafts judged.
        accepted: Drafts accepted.
        decode_s: Seconds of these passes after the first token of the run.
    """

    generated: int = 0
    passes: int = 0
    verified: int = 0
    accepted: int = 0
    decode_s: float = 0.0


class RunStats(msgspec.Struct):
    """Figures of one answer. Times in seconds; rates are None where there was nothing to divide by.

    Attributes:
        prompt_tokens: Tokens of the whole prompt.
        cached_tokens: Of these, reused from the KV cache.
        prefill_s: Time of the target's runs over the rest.
        time_to_first_token_s: From request to first token; None when there was none.
        generated: Tokens emitted, an end-of-turn token included.
        passes: See the module.
        verified: Drafts judged.
        accepted: Drafts accepted.
        accepted_at: By position in the draft, first position first.
        drafted_at: Likewise, drafts judged.
        decode_s: From the first token to the last.
        draft_s: Time in the drafter.
        verify_s: Time in the target's verify passes.
        thought: The thought's share.
        answer: The answer's share.
    """

    prompt_tokens: int = 0
    cached_tokens: int = 0
    prefill_s: float = 0.0
    time_to_first_token_s: float | None = None
    generated: int = 0
    passes: int = 0
    verified: int = 0
    accepted: int = 0
    accepted_at: list[int] = msgspec.field(default_factory=list)
    drafted_at: list[int] = msgspec.field(default_factory=list)
    decode_s: float = 0.0
    decode_tok_s: float | None = None
    draft_s: float = 0.0
    verify_s: float = 0.0
    tokens_per_pass: float | None = None
    acceptance_rate: float | None = None
    thought: ChannelStats = msgspec.field(default_factory=ChannelStats)
    answer: ChannelStats = msgspec.field(default_factory=ChannelStats)

    def count_pass(
        self, tokens: int, judged: int, accepted: int, seconds: float, draft_s: float, verify_s: float, thought: bool
    ) -> None:
        """Adds a pass.

        Args:
            tokens: Tokens it emitted.
            judged: Drafts it judged.
            accepted: Of these, accepted.
            seconds: Time since the pass before; 0 for the one that gave the first token.
            draft_s: Seconds in the drafter.
            verify_s: Seconds in the verify pass.
            thought: Whether its first token belongs to the thought.
        """
        if tokens not in (accepted, accepted + 1) or not 0 <= accepted <= judged <= MAX_DRAFT_LENGTH:
            raise AssertionError(f"a pass emitted {tokens} tokens with {accepted} of {judged} drafts accepted")
        self.generated += tokens
        self.passes += 1
        self.verified += judged
        self.accepted += accepted
        _grow(self.drafted_at, judged)
        _grow(self.accepted_at, judged)
        for position in range(judged):
            self.drafted_at[position] += 1
            self.accepted_at[position] += position < accepted
        self.decode_s += seconds
        self.draft_s += draft_s
        self.verify_s += verify_s
        channel = self.thought if thought else self.answer
        channel.generated += tokens
        channel.passes += 1
        channel.verified += judged
        channel.accepted += accepted
        channel.decode_s += seconds

    def finish(self) -> None:
        """Works out the rates and checks the identities.

        Raises:
            AssertionError: The counting is wrong; a fault of ours, never of the input.
        """
        cut = self.accepted + self.passes - self.generated
        if cut not in (0, 1) or self.generated != self.thought.generated + self.answer.generated:
            raise AssertionError(f"generated {self.generated}, accepted {self.accepted}, passes {self.passes}")
        if sum(self.drafted_at) != self.verified or sum(self.accepted_at) != self.accepted:
            raise AssertionError("acceptance by position does not add up")
        if self.generated > 1 and self.decode_s > 0:
            self.decode_tok_s = (self.generated - 1) / self.decode_s
        if self.passes:
            self.tokens_per_pass = self.generated / self.passes
        if self.verified:
            self.acceptance_rate = self.accepted / self.verified


def _grow(counts: list[int], length: int) -> None:
    counts += [0] * (length - len(counts))


def flags_of(drafts: Sequence[int], emitted: Sequence[int]) -> tuple[list[bool], list[bool]]:
    """Which emitted tokens had a draft at their place, and which of these drafts were accepted."""
    drafted = [index < len(drafts) for index in range(len(emitted))]
    accepted = [index < len(drafts) and drafts[index] == token for index, token in enumerate(emitted)]
    return drafted, accepted
