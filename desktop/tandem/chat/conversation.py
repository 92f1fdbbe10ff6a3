"""What a chat is: messages that form a tree, of which one path from a root to a leaf is shown.

Editing an earlier message, or asking again, adds a sibling; nothing that was said is lost. The structs here are what
`tandem.chat.history` stores and what the window shows; all are values, changed with `msgspec.structs.replace`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final, Literal

import msgspec

from tandem.engine.messages import Message, clean
from tandem.engine.metrics import RunStats

Role = Literal["user", "assistant"]
State = Literal["streaming", "done", "stopped", "limit", "context", "failed", "interrupted"]
"""How an answer ended; `interrupted`: the app ended while it ran. A user's message is always `done`."""

OWN: Final = 0
ACCEPTED: Final = 1
REJECTED: Final = 2
"""Kinds of `Run`."""


class Run(msgspec.Struct, frozen=True, array_like=True):
    """Characters of an answer that came from the same kind of token, in the order in which they came.

    Attributes:
        channel: "thought" or "answer".
        length: Characters (Python's) of that channel's text.
        kind: `OWN`: the target's own token; `ACCEPTED`: an accepted draft; `REJECTED`: the target's own token in a
            place for which another one had been drafted.
    """

    channel: Literal["thought", "answer"]
    length: int
    kind: int


class Figures(msgspec.Struct, frozen=True):
    """What was measured while an answer was made, and on what.

    Attributes:
        stats: Figures of the run.
        draft: Draft length as asked for.
        method: Who drafted: "mtp", "draft-model", "ngram" or "none".
        seed: The seed used.
        device: Where it ran.
        threads: Threads of a pass.
        context: Positions.
        target: File name of the target.
        drafter: File name of the drafter, None without one.
        cut: Why it ended, the engine's `StopReason`.
        dropped: Oldest messages that were left out of the prompt.
    """

    stats: RunStats
    draft: str
    method: str
    seed: int
    device: str
    threads: int
    context: int
    target: str
    drafter: str | None
    cut: str
    dropped: int = 0


class Node(msgspec.Struct, frozen=True):
    """One message.

    Attributes:
        id: Made by the store; 0 before.
        conversation: The conversation's id.
        parent: The message before it, which has a smaller id; None at a root.
        role: Who speaks.
        text: The message, or the answer.
        thought: What the model thought before the answer.
        created: Seconds since 1970.
        state: How it ended.
        problem: A sentence that says why it failed.
        remedy: A sentence that says what to do about it.
        figures: None for a user's message and where nothing was measured.
        runs: Where drafts were accepted; empty when unknown.
        thinking: Whether a thought was asked for.
        thought_s: Seconds the thought took.
    """

    id: int
    conversation: int
    parent: int | None
    role: Role
    text: str
    thought: str = ""
    created: float = 0.0
    state: State = "done"
    problem: str = ""
    remedy: str = ""
    figures: Figures | None = None
    runs: tuple[Run, ...] = ()
    thinking: bool = False
    thought_s: float | None = None


class Conversation(msgspec.Struct, frozen=True):
    """A chat without its messages.

    Attributes:
        id: Made by the store.
        title: Empty until it has a name.
        created: Seconds since 1970.
        updated: Seconds since 1970, of the last message.
        active: The leaf whose path is shown; None while there is no message.
        draft: Text in the composer that was not sent.
        system: This chat's system prompt; None takes the one from the settings.
    """

    id: int
    title: str
    created: float
    updated: float
    active: int | None = None
    draft: str = ""
    system: str | None = None


class Summary(msgspec.Struct, frozen=True):
    """A line of the list of chats: `snippet` is the beginning of the last message shown, on one line."""

    id: int
    title: str
    updated: float
    snippet: str = ""


class Hit(msgspec.Struct, frozen=True):
    """Something found.

    Attributes:
        conversation: Its chat.
        node: Its message; None when the title was found.
        title: The chat's title.
        excerpt: One line of text around the first match, or the title.
        ranges: Where the matches stand in `excerpt`: start and end in Python's characters, ascending, not overlapping.
        updated: Seconds since 1970: of the message, or of the chat.
    """

    conversation: int
    node: int | None
    title: str
    excerpt: str
    ranges: tuple[tuple[int, int], ...]
    updated: float


def storable(text: str) -> str:
    """Text that every part of the store can keep: halves of surrogate pairs joined or replaced, NUL replaced."""
    try:
        text.encode()
    except UnicodeEncodeError:
        text = clean(text)
    return text.replace("\0", "\ufffd")


class Tree:
    """The messages of one conversation.

    A message whose parent is unknown, or not older than itself, counts as a root; so no order and no damage can make
    a circle.

    Args:
        nodes: In any order.
    """

    def __init__(self, nodes: Iterable[Node] = ()) -> None:
        self._nodes: dict[int, Node] = {}
        self._children: dict[int | None, list[int]] = {None: []}
        for node in sorted(nodes, key=lambda node: node.id):
            self.add(node)

    def __len__(self) -> int:
        return len(self._nodes)

    def __contains__(self, node: object) -> bool:
        return node in self._nodes

    def __getitem__(self, node: int) -> Node:
        return self._nodes[node]

    @property
    def nodes(self) -> list[Node]:
        """All messages, oldest first."""
        return [self._nodes[node] for node in sorted(self._nodes)]

    def add(self, node: Node) -> None:
        """Adds a message.

        Raises:
            ValueError: There is one with its id.
        """
        if node.id in self._nodes:
            raise ValueError(f"two messages with the id {node.id}")
        self._nodes[node.id] = node
        self._children.setdefault(self._parent(node), []).append(node.id)

    def replace(self, node: Node) -> None:
        """Puts a new version of a message in the place of the old one, under the same parent.

        Raises:
            KeyError: There is none with its id.
            ValueError: Its parent is another.
        """
        if node.parent != self._nodes[node.id].parent:
            raise ValueError(f"message {node.id} moved")
        self._nodes[node.id] = node

    def _parent(self, node: Node) -> int | None:
        return node.parent if node.parent in self._nodes and node.parent < node.id else None

    def path(self, leaf: int | None) -> list[Node]:
        """The messages from a root down to `leaf`; empty for None.

        Raises:
            KeyError: There is no such message.
        """
        found: list[Node] = []
        while leaf is not None:
            node = self._nodes[leaf]
            found.append(node)
            leaf = self._parent(node)
        found.reverse()
        return found

    def children(self, node: int | None) -> list[int]:
        """The messages that follow one directly, oldest first; of None, the roots."""
        return sorted(self._children.get(node, ()))

    def siblings(self, node: int) -> list[int]:
        """The versions of a message, itself included, oldest first.

        Raises:
            KeyError: There is no such message.
        """
        return self.children(self._parent(self._nodes[node]))

    def branches(self, leaf: int | None) -> dict[int, tuple[int, int]]:
        """For each message on a path that has other versions: which one it is, from 1, and how many there are."""
        found: dict[int, tuple[int, int]] = {}
        for node in self.path(leaf):
            versions = self.siblings(node.id)
            if len(versions) > 1:
                found[node.id] = versions.index(node.id) + 1, len(versions)
        return found

    def newest_leaf_under(self, node: int | None) -> int | None:
        """The newest message without a successor among those under `node`, or `node` itself where there are none.

        Of None: of the whole tree, None when it is empty.

        Raises:
            KeyError: There is no such message.
        """
        if node is not None and node not in self._nodes:
            raise KeyError(node)
        newest, waiting = node, [node]
        while waiting:
            children = self._children.get(waiting.pop(), ())
            waiting += children
            # The largest id of all is a leaf, since every child's is larger than its parent's.
            newest = max((newest or 0, *children)) if children else newest
        return newest

    def messages(self, leaf: int | None, system: str = "") -> tuple[Message, ...]:
        """The conversation up to `leaf` as the engine takes it.

        Failed and empty answers are left out, and thoughts always.

        Args:
            leaf: The last message.
            system: Goes first, unless it is blank.

        Raises:
            KeyError: There is no such message.
        """
        first = [Message("system", system)] if system.strip() else []
        return (*first, *(Message(node.role, node.text) for node in self.path(leaf) if _counts(node)))


def _counts(node: Node) -> bool:
    return node.role == "user" or (bool(node.text.strip()) and node.state != "failed")


def shown_leaf(tree: Tree, active: int | None) -> int | None:
    """The leaf to show when `active` was remembered: itself if it is there, else the newest."""
    return active if active is not None and active in tree else tree.newest_leaf_under(None)


def checked_runs(node: Node, runs: Sequence[Run]) -> tuple[Run, ...]:
    """The runs if they fit the message's texts exactly, else none: colour that may be wrong is not shown."""
    left = {"thought": len(node.thought), "answer": len(node.text)}
    for run in runs:
        if run.length < 0 or run.kind not in (OWN, ACCEPTED, REJECTED):
            return ()
        left[run.channel] -= run.length
    return tuple(runs) if not any(left.values()) else ()
