"""A chat as a Markdown document that reads well anywhere."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import datetime
from typing import Final

import msgspec

from tandem.chat.conversation import Conversation, Figures, Node, Tree, shown_leaf

_FENCE: Final = re.compile(r" {0,3}(`{3,}|~{3,})(.*)")


class Labels(msgspec.Struct, frozen=True):
    """The words in a document that do not come from the chat, so that they can be in any language.

    Attributes:
        untitled: Title of a chat without one.
        you: Heading of a user's message.
        assistant: Heading of an answer.
        thought: Name of a thought.
        thought_time: The same with `{seconds}`.
        stopped: Note under an answer that was stopped.
        limit: Under one that reached its longest length.
        context: Under one for which the context was too small.
        failed: Under one that failed, before the reason.
        interrupted: Under one during which the app ended.
        rate: With `{rate}`, tokens a second.
        per_pass: With `{tokens}`, tokens per pass.
        acceptance: With `{percent}`, acceptance rate.
        first_token: With `{seconds}`, time to first token.
        draft: With `{length}`, draft length.
        versions: With `{count}`, messages that are not on the path shown.
    """

    untitled: str = "Chat"
    you: str = "You"
    assistant: str = "Assistant"
    thought: str = "Thought"
    thought_time: str = "Thought for {seconds} s"
    stopped: str = "Stopped"
    limit: str = "Reached the longest answer"
    context: str = "The context was full"
    failed: str = "Failed"
    interrupted: str = "Interrupted"
    rate: str = "{rate} tok/s"
    per_pass: str = "{tokens} tokens per pass"
    acceptance: str = "{percent} % acceptance rate"
    first_token: str = "first token after {seconds} s"
    draft: str = "draft length {length}"
    versions: str = "Other versions of messages in this chat that are not shown here: {count}."


def as_markdown(conversation: Conversation, nodes: Sequence[Node], labels: Labels | None = None) -> str:
    """The path of a chat that is shown, with thoughts folded and figures under each answer.

    Args:
        conversation: The chat.
        nodes: All its messages.
        labels: None takes the English ones.
    """
    labels = labels or Labels()
    tree = Tree(nodes)
    path = tree.path(shown_leaf(tree, conversation.active))
    begun = datetime.fromtimestamp(conversation.created).astimezone().strftime("%Y-%m-%d %H:%M")
    parts = [f"# {conversation.title or labels.untitled}", f"*{begun}*"]
    for node in path:
        parts += _message(node, labels)
    if others := len(tree) - len(path):
        parts += ["---", f"*{labels.versions.format(count=others)}*"]
    return "\n\n".join(parts) + "\n"


def _message(node: Node, labels: Labels) -> list[str]:
    parts = [f"## {labels.you if node.role == 'user' else labels.assistant}"]
    if node.thought.strip():
        parts.append(_thought(node, labels))
    if node.text.strip():
        parts.append(_closed(node.text.strip("\n")))
    notes = {
        "stopped": labels.stopped,
        "limit": labels.limit,
        "context": labels.context,
        "failed": labels.failed,
        "interrupted": labels.interrupted,
    }
    if note := notes.get(node.state):
        reason = f": {node.problem} {node.remedy}".rstrip() if node.problem else "."
        parts.append(f"*{note}{reason}*")
    if node.figures is not None and (line := _figures(node.figures, labels)):
        parts.append(f"*{line}*")
    return parts


def _thought(node: Node, labels: Labels) -> str:
    name = labels.thought
    if node.thought_s is not None:
        name = labels.thought_time.format(seconds=f"{node.thought_s:.1f}")
    # The thought cannot end the fold it stands in.
    text = re.sub(r"<(/?)(details|summary)\b", r"&lt;\1\2", _closed(node.thought.strip("\n")), flags=re.IGNORECASE)
    quoted = "\n".join(f"> {line}".rstrip() for line in text.split("\n"))
    return f"<details>\n<summary>{name}</summary>\n\n{quoted}\n\n</details>"


def _closed(text: str) -> str:
    """Text in which a block of code that was cut off is closed, so that it does not take in what follows."""
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    fence = ""
    for line in text.split("\n"):
        match = _FENCE.match(line)
        if match is None:
            continue
        marks, rest = match.groups()
        if not fence:
            # Back ticks after back ticks are code in a line.
            fence = "" if marks[0] == "`" and "`" in rest else marks
        elif marks.startswith(fence) and not rest.strip():
            fence = ""
    return f"{text}\n{fence}" if fence else text


def _figures(figures: Figures, labels: Labels) -> str:
    """One line; what was not measured is left out."""
    stats = figures.stats
    found: list[str] = []
    if stats.decode_tok_s is not None:
        found.append(labels.rate.format(rate=f"{stats.decode_tok_s:.1f}"))
    if stats.tokens_per_pass is not None:
        found.append(labels.per_pass.format(tokens=f"{stats.tokens_per_pass:.2f}"))
    if stats.acceptance_rate is not None:
        found.append(labels.acceptance.format(percent=f"{stats.acceptance_rate * 100:.0f}"))
    if stats.time_to_first_token_s is not None:
        found.append(labels.first_token.format(seconds=f"{stats.time_to_first_token_s:.2f}"))
    if found:
        found.append(labels.draft.format(length=figures.draft))
        names = figures.target if figures.drafter is None else f"{figures.target} + {figures.drafter}"
        found.insert(0, names.replace("*", r"\*").replace("_", r"\_"))
    return " · ".join(found)
