"""Chats to files and back.

Markdown is for reading: the path that is shown. JSON holds everything, all versions of all messages with their
figures, and can be read in again. Ids in such a file count from 1 and mean nothing outside it; what is read in gets
new ones, so nothing that is there is ever overwritten. A file that is read in may come from anyone.
"""

from __future__ import annotations

import math
import stat
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import BinaryIO, Final, Literal

import msgspec

import tandem
from tandem.chat.conversation import Conversation, Node, checked_runs
from tandem.chat.history import Changes, History
from tandem.chat.markdown import Labels, as_markdown
from tandem.engine.draft_length import MAX_DRAFT_LENGTH
from tandem.errors import TandemError
from tandem.files import replacing

Form = Literal["markdown", "json"]

FORMAT: Final = "tandem-chats"
VERSION: Final = 1
"""Changes when an older Tandem could misunderstand the file."""

MOST_BYTES: Final = 256 << 20
MOST_CHATS: Final = 50_000
MOST_MESSAGES: Final = 500_000
_LONGEST_NAME: Final = 1000
_LAST_SECOND: Final = 253_402_214_400.0
"""The last day of the year 9999, beyond which no calendar goes."""


class Chat(msgspec.Struct, frozen=True):
    """A chat in a file, its messages oldest first."""

    conversation: Conversation
    messages: list[Node]


class _File(msgspec.Struct, frozen=True):
    format: str = ""
    version: int = 0
    written_by: str = ""
    exported: str = ""
    chats: list[msgspec.Raw] = []


class NotImported(TandemError):
    """A file holds no chats that can be read in; nothing was changed."""

    exit_code = 2


def export_chat(history: History, conversation: int, path: Path, form: Form, labels: Labels | None = None) -> None:
    """Writes one chat to a file, which is replaced if it is there.

    Args:
        history: The store.
        conversation: The chat.
        path: The file.
        form: Of the file.
        labels: Words for Markdown; None takes the English ones.

    Raises:
        StoreError: The chat cannot be read.
        TandemError: The file cannot be written; what was there still is.
    """
    _export(history, [conversation], path, form, labels)


def export_all(history: History, path: Path, form: Form, labels: Labels | None = None) -> int:
    """Writes all chats that are not deleted to one file, the newest first; arguments and errors as `export_chat`.

    Returns:
        How many there are.
    """
    return _export(history, [summary.id for summary in history.conversations()], path, form, labels)


def import_file(history: History, path: Path) -> Changes:
    """Adds the chats of a JSON file, all or none.

    Args:
        history: The store.
        path: The file.

    Returns:
        How many chats and messages were added.

    Raises:
        NotImported: The file cannot be read, or is none of ours, or does not make sense.
        StoreError: They cannot be stored.
    """
    data = _read(path)
    try:
        found = msgspec.json.decode(data, type=_File)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise _foreign(path, str(error)) from error
    if found.format != FORMAT or found.version < 1:
        raise _foreign(path, f"format {found.format[:40]!r}, version {found.version}")
    if found.version > VERSION:
        raise NotImported(
            f"{path.name} was written by a newer Tandem.", "Use that Tandem to read it in.", f"version {found.version}"
        )
    return history.bring_in(_chats(found.chats, path))


def _export(history: History, chats: Sequence[int], path: Path, form: Form, labels: Labels | None) -> int:
    with _writing(path) as stream:
        if form == "markdown":
            for number, conversation in enumerate(chats):
                text = as_markdown(*history.conversation(conversation), labels)
                stream.write((f"\n---\n\n{text}" if number else text).encode())
            return len(chats)
        head = _File(FORMAT, VERSION, f"Tandem {tandem.__version__}", datetime.now(UTC).isoformat(timespec="seconds"))
        stream.write(msgspec.json.encode(head).removesuffix(b"]}"))
        for number, conversation in enumerate(chats, 1):
            stream.write(b",\n" if number > 1 else b"\n")
            stream.write(msgspec.json.encode(_numbered(number, *history.conversation(conversation))))
        stream.write(b"\n]}\n")
    return len(chats)


@contextmanager
def _writing(path: Path) -> Iterator[BinaryIO]:
    try:
        with replacing(path) as stream:
            yield stream
    except OSError as error:
        raise TandemError(
            f"{path.name} cannot be written to {path.parent}.",
            "Choose another folder, or make room there and check that you may write to it.",
            str(error),
        ) from error


def _numbered(number: int, conversation: Conversation, nodes: Sequence[Node]) -> Chat:
    """The chat with ids that count from 1; a message whose parent is not there becomes a first one."""
    ids = {node.id: place for place, node in enumerate(nodes, 1)}
    changed = [
        msgspec.structs.replace(
            node, id=ids[node.id], conversation=number, parent=None if node.parent is None else ids.get(node.parent)
        )
        for node in nodes
    ]
    active = None if conversation.active is None else ids.get(conversation.active)
    return Chat(msgspec.structs.replace(conversation, id=number, active=active), changed)


def _read(path: Path) -> bytes:
    try:
        if not stat.S_ISREG(path.stat().st_mode):
            raise _foreign(path, "no regular file")
        with path.open("rb") as stream:
            data = stream.read(MOST_BYTES + 1)
    except (OSError, ValueError) as error:  # ValueError: a NUL in the name
        raise NotImported(
            f"{path.name} cannot be read.", "Check that the file is there and that you may read it.", str(error)
        ) from error
    if len(data) > MOST_BYTES:
        raise NotImported(
            f"{path.name} is larger than {MOST_BYTES >> 20} MiB, which is more than Tandem reads in.",
            "Export the chats one by one, and read in those files.",
        )
    return data.removeprefix(b"\xef\xbb\xbf")


def _foreign(path: Path, details: str) -> NotImported:
    return NotImported(
        f"{path.name} is no file of chats that Tandem has exported.",
        "Choose a JSON file that was exported from Tandem.",
        details,
    )


def _chats(raw: Sequence[msgspec.Raw], path: Path) -> Iterator[tuple[Conversation, list[Node]]]:
    """The chats of a file, each checked when it is reached: a large file is not in memory twice."""
    messages = 0
    for number, part in enumerate(raw, 1):
        try:
            chat = msgspec.json.decode(part, type=Chat)
            messages += len(chat.messages)
            if number > MOST_CHATS or messages > MOST_MESSAGES:
                raise NotImported(
                    f"{path.name} holds more chats or messages than Tandem reads in at once.",
                    "Export fewer chats at once, and read in those files.",
                )
            yield _checked(chat)
        except (msgspec.MsgspecError, ValueError, RecursionError, OverflowError) as error:
            raise NotImported(
                f"Chat {number} in {path.name} is damaged, so nothing was read in.",
                "Export the chats again where they come from.",
                str(error),
            ) from error


def _checked(chat: Chat) -> tuple[Conversation, list[Node]]:
    """The chat with messages numbered in their order.

    Raises:
        ValueError: An id stands twice, a message comes before its parent, or a time is none.
    """
    ids: dict[int, int] = {}
    nodes: list[Node] = []
    for place, node in enumerate(chat.messages, 1):
        if node.id in ids:
            raise ValueError(f"two messages with the id {node.id}")
        if node.parent is not None and node.parent not in ids:
            raise ValueError(f"message {node.id} comes before its parent {node.parent}")
        if not _is_time(node.created) or not (node.thought_s is None or 0 <= node.thought_s < math.inf):
            raise ValueError(f"message {node.id} has a time that is none")
        if not _is_shown(msgspec.to_builtins(node.figures)):
            raise ValueError(f"message {node.id} has figures that are none")
        ids[node.id] = place
        parent = None if node.parent is None else ids[node.parent]
        nodes.append(msgspec.structs.replace(node, id=place, parent=parent, runs=checked_runs(node, node.runs)))
    conversation = chat.conversation
    if not (_is_time(conversation.created) and _is_time(conversation.updated)):
        raise ValueError("the chat has a time that is none")
    active = None if conversation.active is None else ids.get(conversation.active)
    return msgspec.structs.replace(conversation, active=active), nodes


def _is_shown(value: object) -> bool:
    """Whether figures are of a size that real ones have, so that they can be shown."""
    if isinstance(value, dict):
        return all(map(_is_shown, value.values()))
    if isinstance(value, list):
        return len(value) <= MAX_DRAFT_LENGTH and all(map(_is_shown, value))
    if isinstance(value, int | float):
        return 0 <= value < 2**64
    return value is None or (isinstance(value, str) and len(value) <= _LONGEST_NAME)


def _is_time(seconds: float) -> bool:
    return 0 <= seconds <= _LAST_SECOND
