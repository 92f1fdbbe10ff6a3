"""One answer while it runs: what has come so far, and the message that it becomes."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import PurePath
from typing import Final

import msgspec

from tandem.chat.conversation import Figures, Node, State
from tandem.engine.protocol import Done, Generate, Loaded, Pass, Progress, StopReason
from tandem.ui.session_state import AnswerText, Piece, TokenKinds

STATES: Final[dict[StopReason, State]] = {"end": "done", "limit": "limit", "stopped": "stopped", "context": "context"}
"""How an answer's end is stored."""


class Run:
    """An answer that runs.

    Args:
        node: The empty answer as it is stored.
        request: What the engine was asked.
        loaded: The pair that answers.
    """

    def __init__(self, node: Node, request: Generate, loaded: Loaded) -> None:
        self._node = node
        self._loaded = loaded
        self._text = AnswerText()
        self._kinds = TokenKinds()
        self._thought_began: float | None = None
        self._thought_ended: float | None = None
        self._saved_tokens = 0
        self.request: Final = request
        self.prompt_tokens = 0
        self.stopping = False

    @property
    def id(self) -> int:
        """The message's id."""
        return self._node.id

    @property
    def chat(self) -> int:
        """The chat's id."""
        return self._node.conversation

    @property
    def blank(self) -> Node:
        """The message as it was when it began."""
        return self._node

    @property
    def tokens(self) -> int:
        """Tokens so far."""
        return self._kinds.tokens

    @property
    def used(self) -> int:
        """Positions of the context in use."""
        return self.prompt_tokens + self._kinds.tokens

    @property
    def unsaved(self) -> bool:
        """Whether there is text that no `node` was made of."""
        return self._kinds.tokens > self._saved_tokens

    def pieces(self) -> list[Piece]:
        """All that has come."""
        return self._text.pieces()

    def add(self, event: Progress | Pass | Done) -> Sequence[Piece]:
        """Takes an event; gives the text that came with it."""
        if isinstance(event, Progress):
            self.prompt_tokens = int(event.total)
            return ()
        if isinstance(event, Pass):
            self._kinds.add(event)
        pieces = self._kinds.pieces(event.text)
        self._text.add(pieces)
        for piece in pieces:
            if piece.channel == "thought":
                self._thought_began = self._thought_began or time.monotonic()
            elif self._thought_began is not None and self._thought_ended is None:
                self._thought_ended = time.monotonic()
        return pieces

    def node(self, state: State = "streaming", done: Done | None = None, problem: str = "", remedy: str = "") -> Node:
        """The message as it is now."""
        self._saved_tokens = self._kinds.tokens
        return msgspec.structs.replace(
            self._node,
            text=self._text.text("answer"),
            thought=self._text.text("thought"),
            runs=self._text.runs,
            state=state,
            problem=problem,
            remedy=remedy,
            thought_s=self._thought_s(),
            figures=None if done is None else self._figures(done),
        )

    def _thought_s(self) -> float | None:
        if self._thought_began is None:
            return None
        return (self._thought_ended or time.monotonic()) - self._thought_began

    def _figures(self, done: Done) -> Figures:
        loaded = self._loaded
        return Figures(
            stats=done.stats,
            draft=done.draft,
            method=loaded.method,
            seed=done.seed,
            device=loaded.device,
            threads=loaded.threads,
            context=loaded.context,
            target=PurePath(loaded.target.file).name,
            drafter=None if loaded.drafter is None else PurePath(loaded.drafter.file).name,
            cut=done.stop,
            dropped=done.dropped,
        )
