"""Whether a chat that is to be read in is here already."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from typing import Final

from tandem.chat.conversation import Conversation, Node, storable

_MOST_ALIKE: Final = 16
"""Chats of one time of creation that are looked into; a real one shares it with none."""


class Known:
    """The chats that are here now and not deleted.

    Args:
        connection: The store.
    """

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self._by_time: dict[float, list[tuple[int, str]]] = {}
        for number, title, created in connection.execute(
            "SELECT id, title, created FROM conversation WHERE deleted_at IS NULL ORDER BY id"
        ):
            self._by_time.setdefault(created, []).append((number, title))

    def holds(self, conversation: Conversation, title: str, nodes: Sequence[Node]) -> bool:
        """Whether one of them was made at the same time and has all these messages; one without any, the same title.

        Args:
            conversation: The chat as it was read.
            title: Its title as it would be kept.
            nodes: Its messages. One that goes on where the chat here ends is not here yet, and so nothing is lost.
        """
        wanted = {(node.role, storable(node.text), node.created) for node in nodes}
        for number, name in self._by_time.get(conversation.created, [])[:_MOST_ALIKE]:
            if not wanted and name != title:
                continue
            rows = self._connection.execute("SELECT role, text, created FROM node WHERE conversation = ?", (number,))
            if wanted <= set(rows):
                return True
        return False
