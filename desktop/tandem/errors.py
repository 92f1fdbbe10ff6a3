"""The one exception tree of Tandem.

::

    TandemError              what happened, what to do, and details for the log
    ├── UsageError           the command or request makes no sense       (exit 2)
    │   └── PromptTooLong    more prompt tokens than the context holds   (exit 2)
    ├── ModelError           a file or a pair cannot be used             (exit 3)
    ├── EngineError          the engine is alive but refused or failed   (exit 4)
    └── EngineDied           the engine's process ended under us         (exit 4)

Every error carries a sentence a person can act on: `sentence` says what happened, `remedy` what to do next;
`details` is for the log and never shown by default. The command line prints the first two and exits with
`exit_code`; the window shows the remedy as a button.
"""

from __future__ import annotations

import re
from typing import Final, Literal

_TOO_LONG: Final = re.compile(r"The prompt has [\d,]+ tokens and the context holds [\d,]+\.")

ModelFault = Literal[
    "missing",
    "unreadable",
    "not-a-file",
    "empty",
    "not-gguf",
    "truncated",
    "corrupt",
    "unknown-architecture",
    "not-a-target",
    "not-a-drafter",
    "not-a-pair",
    "out-of-memory",
    "load-failed",
    "off-grid",
]
"""Kinds of `ModelError`."""


class TandemError(Exception):
    """Base of every error that is shown to a person.

    Args:
        sentence: What happened, one sentence that ends with a full stop.
        remedy: What to do about it, one sentence that ends with a full stop.
        details: Anything useful for the log; never contains chat text.
    """

    exit_code: int = 4

    def __init__(self, sentence: str, remedy: str, details: str = "") -> None:
        super().__init__(sentence)
        self.sentence: Final = sentence
        self.remedy: Final = remedy
        self.details: Final = details


class UsageError(TandemError):
    """The command or request makes no sense as given."""

    exit_code = 2


class PromptTooLong(UsageError):
    """The prompt does not fit the context.

    Args:
        prompt_tokens: Tokens that the prompt has after the template.
        limit: The most prompt tokens that fit (context less one for the answer).
    """

    def __init__(self, prompt_tokens: int, limit: int) -> None:
        super().__init__(
            f"The prompt has {prompt_tokens:,} tokens and the context holds {limit:,}.",
            "Shorten it, or choose a larger context if the model allows one.",
        )
        self.prompt_tokens: Final = prompt_tokens
        self.limit: Final = limit

    @staticmethod
    def said(sentence: str) -> bool:
        """Whether a sentence that was kept is the one of this error: asking the same again cannot help then."""
        return _TOO_LONG.fullmatch(sentence) is not None


class ModelError(TandemError):
    """A model file, or two files as a pair, cannot be used.

    Args:
        fault: Which kind, see `ModelFault`.
    """

    exit_code = 3

    def __init__(self, fault: ModelFault, sentence: str, remedy: str, details: str = "") -> None:
        super().__init__(sentence, remedy, details)
        self.fault: Final = fault


class EngineError(TandemError):
    """The engine is alive but could not do what was asked."""

    exit_code = 4


class EngineDied(TandemError):
    """The engine's process ended while it was needed.

    Args:
        reason: Short and stable: "out of memory", "illegal instruction", "aborted", "crashed", "killed",
            "exited", "hung".
        log_tail: The last lines the process logged; no chat text is ever logged.
    """

    exit_code = 4

    def __init__(self, reason: str, sentence: str, remedy: str, log_tail: str = "") -> None:
        super().__init__(sentence, remedy, log_tail)
        self.reason: Final = reason
        self.log_tail: Final = log_tail
