"""Messages of a conversation, without the machinery of `tandem.engine.template`."""

from __future__ import annotations

from typing import Literal

import msgspec

Role = Literal["system", "user", "assistant"]


class Message(msgspec.Struct, frozen=True):
    """One message of a conversation.

    Args:
        role: Who speaks.
        content: The text; an assistant's answer comes without its thought, since earlier thoughts are never sent back.
    """

    role: Role
    content: str


def clean(text: str) -> str:
    """Text that can be encoded as UTF-8.

    Halves of a surrogate pair that stand together become their character, lone ones U+FFFD. All else stays, NUL too.
    """
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text
