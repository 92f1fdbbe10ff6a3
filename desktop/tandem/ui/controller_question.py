"""A question on its way: what was asked where, and how it is put on disk before anything runs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import msgspec

from tandem.chat.conversation import Conversation, Node, Tree, shown_leaf
from tandem.chat.history import History
from tandem.chat.title import title_of
from tandem.engine.messages import Message
from tandem.engine.params import SamplingParams
from tandem.engine.protocol import Generate
from tandem.errors import TandemError
from tandem.settings import Settings


@dataclass(frozen=True)
class Question:
    """What is to be answered.

    Attributes:
        chat: The chat's id, None for a new one.
        view: `Chats.view` when it was asked.
        place: "end" a new message at the end of what is shown; "beside" a new version of the message `node`;
            "under" another answer to the user's message `node` (or to the one that the answer `node` answers).
        text: The new message; empty for "under".
        node: See `place`.
        drafter: Whether the drafter is used for this answer; None leaves it to the settings.
        queued: Whether it had to wait; its text then stands at the beginning of the chat's unsent text.
    """

    chat: int | None
    view: int
    place: Literal["end", "beside", "under"]
    text: str = ""
    node: int | None = None
    drafter: bool | None = None
    queued: bool = False


@dataclass(frozen=True)
class Prepared:
    """A question on disk.

    Attributes:
        question: The question.
        conversation: Its chat.
        tree: All messages of the chat, the new ones included.
        user: The user's message, if it is new.
        answer: The empty answer; None when it could not be stored.
        messages: What the engine gets.
        problem: Why the answer could not be stored.
    """

    question: Question
    conversation: Conversation
    tree: Tree
    user: Node | None
    answer: Node | None
    messages: tuple[Message, ...]
    problem: TandemError | None = None


def prepare(history: History, question: Question, settings: Settings) -> Prepared:
    """Stores the user's message, and the empty answer under it. For the store's thread.

    Raises:
        TandemError: Nothing was stored.
    """
    if question.chat is None:
        conversation, tree = history.new(title_of(question.text)), Tree()
    else:
        conversation, nodes = history.conversation(question.chat)
        tree = Tree(nodes)
    try:
        user = _user(history, question, conversation, tree)
    except TandemError:
        if question.chat is None:
            history.delete(conversation.id)  # a chat without a message is of no use
        raise
    leaf = user.id
    answer, problem = None, None
    thinking = settings.thinking
    unsent = conversation.draft if question.chat is not None else history.draft(None)
    if question.queued:
        unsent = without(unsent, question.text)
    elif question.place == "end":
        unsent = ""  # it was this message
    try:
        blank = Node(0, conversation.id, user.id, "assistant", "", state="streaming", thinking=thinking)
        answer = history.add(blank)
        tree.add(answer)
        leaf = answer.id
        if question.text:
            history.set_draft(question.chat, unsent)
    except TandemError as error:
        problem = error
    system = settings.system_prompt if conversation.system is None else conversation.system
    return Prepared(
        question=question,
        conversation=msgspec.structs.replace(conversation, active=leaf, draft=""),
        tree=tree,
        user=None if question.place == "under" else user,
        answer=answer,
        messages=tree.messages(user.id, system),
        problem=problem,
    )


def _user(history: History, question: Question, conversation: Conversation, tree: Tree) -> Node:
    """The user's message that is to be answered, stored."""
    if question.place == "end":
        parent = shown_leaf(tree, conversation.active)
    else:
        node = tree[question.node] if question.node is not None and question.node in tree else None
        if node is not None and node.role == "assistant" and question.place == "under":
            node = tree[node.parent] if node.parent is not None and node.parent in tree else None
        if node is None or node.role != "user":
            raise TandemError("This message is not there any more.", "Open the chat again.")
        if question.place == "under":
            return node
        parent = node.parent
    user = history.add(Node(0, conversation.id, parent, "user", question.text))
    tree.add(user)
    return user


def keep_unsent(history: History, question: Question) -> None:
    """Puts a message that waits at the beginning of its chat's unsent text. For the store's thread.

    A message "end" was that text until now; another version of an earlier one was written beside it.

    Raises:
        TandemError: Nothing was stored.
    """
    unsent = history.draft(question.chat) if question.place == "beside" else ""
    history.set_draft(question.chat, f"{question.text}\n\n{unsent}" if unsent else question.text)


def without(unsent: str, text: str) -> str:
    """Unsent text without the waiting message at its beginning."""
    return unsent[len(text) :].lstrip("\n") if unsent.startswith(text) else unsent


def request_for(prepared: Prepared, number: int, draft: str, settings: Settings) -> Generate:
    """What the engine is asked.

    Args:
        prepared: The question; its answer was stored.
        number: The request's id.
        draft: Draft length, or "off".
        settings: For the sampling.
    """
    chosen = settings.sampling
    return Generate(
        id=number,
        messages=prepared.messages,
        thinking=prepared.answer is not None and prepared.answer.thinking,
        draft=draft,
        sampling=SamplingParams(
            temperature=chosen.temperature,
            top_k=chosen.top_k,
            top_p=chosen.top_p,
            min_p=chosen.min_p,
            repeat_penalty=chosen.repeat_penalty,
        ),
        max_tokens=chosen.max_tokens,
        trim=True,
    )
