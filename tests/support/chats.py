"""Chats for tests: a clock that is set, and somebody who talks."""

from __future__ import annotations

from typing import Any

from tandem.chat.conversation import Conversation, Node, Role
from tandem.chat.history import History


class Clock:
    """Seconds since 1970, one more at each look."""

    def __init__(self) -> None:
        self.now = 1_000_000.0

    def __call__(self) -> float:
        self.now += 1
        return self.now


class Talk:
    """Adds messages to a new chat, each after the one before."""

    def __init__(self, history: History, title: str = "") -> None:
        self.history = history
        self.chat: Conversation = history.new(title)
        self.last: int | None = None

    def say(self, text: str, role: Role = "user", parent: int | None = None, **fields: Any) -> Node:
        """Adds a message; a parent of 0 makes it a first one."""
        after = self.last if parent is None else parent or None
        added = self.history.add(Node(0, self.chat.id, after, role, text, **fields))
        self.last = added.id
        return added
