"""Small vocabularies for hand-set models: Gemma 4's markers at Gemma 4's ids, bytes, letters, a few words.

The tokenizer is llama.cpp's `gemma4`: byte-pair merges on raw UTF-8 with "▁" for a space, and byte tokens
`<0x00>`..`<0xFF>` for whatever is not in the vocabulary. Two tokens may not have the same text (llama.cpp asserts
it), with one way round: of a byte token only the two hexadecimal digits are read, so `<0x41>#1` and `<0x41>#2` are
two more tokens that both write "A".
"""

from __future__ import annotations

import string
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Final

PAD: Final = 0
EOS: Final = 1
BOS: Final = 2
UNK: Final = 3
MASK: Final = 4
TOOL_RESPONSE: Final = 50
THINK: Final = 98
CHANNEL_OPEN: Final = 100
CHANNEL_CLOSE: Final = 101
TURN_OPEN: Final = 105
TURN_CLOSE: Final = 106
NEWLINE: Final = 107
"""Newline: the last token of the generation prompt `<|turn>model\\n`, so where an answer in a chat starts from."""
BYTE: Final = 238
"""Id of `<0x00>`; byte b is token `BYTE + b`."""
FIRST_FREE: Final = BYTE + 256

_SPACE: Final = "\u2581"

CHAT_TEMPLATE: Final = (
    "{{ bos_token }}"
    "{% set system = messages[0]['content'] if messages and messages[0]['role'] == 'system' else '' %}"
    "{% if enable_thinking or system %}"
    "{{ '<|turn>system\n' }}{% if enable_thinking %}{{ '<|think|>' }}{% endif %}{{ system | trim }}{{ '<turn|>\n' }}"
    "{% endif %}"
    "{% for m in messages if m['role'] != 'system' %}"
    "{{ '<|turn>' + ('model' if m['role'] == 'assistant' else m['role']) + '\n' }}"
    "{{ m['content'] | trim }}{{ '<turn|>\n' }}"
    "{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|turn>model\n' }}{% endif %}"
)
"""A template in the manner of Gemma 4's: a real system turn, thinking switched on by `<|think|>` at its start."""


class Kind(IntEnum):
    """Token types as GGUF numbers them (`tokenizer.ggml.token_type`)."""

    NORMAL = 1
    CONTROL = 3
    USER = 4
    UNUSED = 5
    BYTE = 6


@dataclass(frozen=True)
class Piece:
    """One token of a vocabulary.

    Attributes:
        text: As stored in the file: "▁" for a space, `<0x41>` for a byte.
        kind: Its type.
    """

    text: str
    kind: Kind = Kind.NORMAL


_MARKERS: Final = {
    PAD: Piece("<pad>", Kind.CONTROL),
    EOS: Piece("<eos>", Kind.CONTROL),
    BOS: Piece("<bos>", Kind.CONTROL),
    UNK: Piece("<unk>", Kind.CONTROL),
    MASK: Piece("<mask>", Kind.CONTROL),
    46: Piece("<|tool>", Kind.CONTROL),
    47: Piece("<tool|>", Kind.CONTROL),
    48: Piece("<|tool_call>", Kind.USER),
    49: Piece("<tool_call|>", Kind.USER),
    TOOL_RESPONSE: Piece("<|tool_response>", Kind.USER),
    51: Piece("<tool_response|>", Kind.USER),
    52: Piece('<|"|>', Kind.USER),
    THINK: Piece("<|think|>", Kind.CONTROL),
    CHANNEL_OPEN: Piece("<|channel>", Kind.USER),
    CHANNEL_CLOSE: Piece("<channel|>", Kind.USER),
    TURN_OPEN: Piece("<|turn>", Kind.CONTROL),
    TURN_CLOSE: Piece("<turn|>", Kind.CONTROL),
    NEWLINE: Piece("\n"),
    NEWLINE + 1: Piece("\n\n"),
    NEWLINE + 2: Piece("\n\n\n"),
}

WORDS: Final = (
    *("user", "model", "system", "thought"),
    *("▁the", "▁a", "▁and", "▁fox", "▁is", "▁to", "▁was", "▁not"),
    *("안", "녕", "하", "세", "요", "토", "끼", "안녕"),
    *("é", "ß", "中", "文", "🙂", "🚀"),
)
"""Pieces beyond the letters: the chat's own words, words with their space, Hangul syllables, two emoji.
Every other character of a prompt goes through byte tokens."""


def stored(text: str) -> str:
    """`text` as the file stores it: "▁" for a space."""
    return text.replace(" ", _SPACE)


def private_byte(value: int, number: int) -> Piece:
    """A further token that writes the byte `value`; `number` tells it from the others."""
    return Piece(f"<0x{value:02X}>#{number}", Kind.BYTE)


def _stems(word: str) -> Iterator[str]:
    """All beginnings of a word from two characters on: what the merges build on the way to it."""
    return (word[:end] for end in range(2, len(word) + 1))


def small_vocabulary(words: Iterable[str] = WORDS) -> list[Piece]:
    """Markers at Gemma's ids, 256 bytes from `BYTE` on, then printable ASCII, "▁" and `words` with their stems.

    Args:
        words: Pieces of one or more characters, "▁" for a space. Their beginnings become tokens too, since the
            merges pass through them.

    Returns:
        The vocabulary, about 640 tokens; the index is the id.
    """
    pieces = [_MARKERS.get(number, Piece(f"<unused{number}>", Kind.UNUSED)) for number in range(BYTE)]
    pieces += [Piece(f"<0x{value:02X}>", Kind.BYTE) for value in range(256)]
    texts = {piece.text for piece in pieces}
    wanted = [_SPACE, *(string.ascii_letters + string.digits + string.punctuation)]
    for word in words:
        wanted += [*word, *_stems(word)]
    for text in wanted:
        if text not in texts:
            texts.add(text)
            pieces.append(Piece(text))
    return pieces


def large_vocabulary(size: int) -> list[Piece]:
    """`small_vocabulary` filled up to `size` tokens with made-up words of some four to six characters.

    Args:
        size: Number of tokens, such as Gemma's 262,144.
    """
    pieces = small_vocabulary()
    letters = string.ascii_lowercase
    for number in range(size - len(pieces)):
        text = ""
        rest = number
        for _ in range(4):  # 26^4 = 456,976 words of four letters: enough for any of Gemma's vocabularies
            rest, letter = divmod(rest, 26)
            text = letters[letter] + text
        pieces.append(Piece(f"{_SPACE}{text}"))
    return pieces[:size]


def merges(words: Iterable[str] = WORDS) -> list[str]:
    """The byte-pair merges that lead to `words`, in order of rank, as the file stores them ("left right")."""
    found: dict[str, None] = {}
    for word in words:
        for stem in _stems(word):
            found[f"{stem[:-1]} {stem[-1]}"] = None
    return list(found)


def normal_ids(vocabulary: Sequence[Piece]) -> list[int]:
    """Ids of the tokens of type normal."""
    return [number for number, piece in enumerate(vocabulary) if piece.kind is Kind.NORMAL]
