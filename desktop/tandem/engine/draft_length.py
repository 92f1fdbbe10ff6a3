"""How far to draft: off, or a fixed length.

`DraftLength` is the seat for `auto`, which will choose each step's length from what a pass costs on this machine and
from what was accepted so far; `observe` already tells it both.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Protocol

from tandem.errors import UsageError

MAX_DRAFT_LENGTH: Final = 16
"""Longest draft of any drafter. It bounds the verify batch, and with it the score buffer."""


@dataclass(frozen=True, slots=True)
class PassOutcome:
    """What one verify pass did, for a `DraftLength` that learns.

    Attributes:
        drafted: Drafts that the target judged.
        accepted: Drafts accepted.
        confidences: The drafter's own confidence in each draft, 0..1; NaN where it has none.
        position: Tokens of prompt and answer after the pass.
        draft_s: Seconds spent in the drafter.
        verify_s: Seconds spent in the target.
    """

    drafted: int
    accepted: int
    confidences: tuple[float, ...]
    position: int
    draft_s: float
    verify_s: float


class DraftLength(Protocol):
    """Chooses the draft length of each step."""

    label: str

    def next(self) -> int:
        """How many tokens to draft now, 0..MAX_DRAFT_LENGTH."""
        ...

    def observe(self, outcome: PassOutcome) -> None:
        """Learns from a pass."""
        ...


class Fixed:
    """Always the same length; 0 is off.

    Args:
        length: 0..MAX_DRAFT_LENGTH.

    Raises:
        UsageError: The length is outside that range.
    """

    def __init__(self, length: int) -> None:
        if not 0 <= length <= MAX_DRAFT_LENGTH:
            raise UsageError(
                f"A draft length of {length} is not possible.",
                f"Choose off, or a number from 1 to {MAX_DRAFT_LENGTH}.",
            )
        self._length: Final = length
        self.label = str(length) if length else "off"

    def next(self) -> int:
        """The fixed length."""
        return self._length

    def observe(self, outcome: PassOutcome) -> None:
        """Nothing to learn."""


def draft_length(label: str) -> DraftLength:
    """The `DraftLength` of "off" or a number.

    Raises:
        UsageError: Anything else; "auto" comes with the measuring of this machine.
    """
    if label == "off":
        return Fixed(0)
    if label.isascii() and label.isdigit():
        return Fixed(int(label[:6]))
    if label == "auto":
        raise UsageError(
            "This version cannot choose the draft length by itself yet.",
            f"Choose off, or a number from 1 to {MAX_DRAFT_LENGTH}.",
        )
    raise UsageError(f"“{label}” is no draft length.", f"Choose off, or a number from 1 to {MAX_DRAFT_LENGTH}.")
