"""tokenizer.json of a Gemma 4 model as GGUF keys, as llama.cpp's `Gemma4Model.set_vocab` writes them.

Merges, ids of special tokens and the chat template come from gguf's own `SpecialVocab`. Tokens and their types are
read here: llama.cpp's converter starts the whole library `transformers` for them.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, Final

import msgspec
from gguf import GGUFValueType, GGUFWriter, SpecialVocab, TokenType

from tandem.errors import ModelError
from tandem.models.repack_source import parse, read_small

TOKENIZER, SETTINGS = "tokenizer.json", "tokenizer_config.json"

_LIMIT: Final = 256 << 20
_SMALL: Final = 16 << 20
_AGAIN: Final = "Get tokenizer.json and tokenizer_config.json from the drafter's repository again."
_BYTE: Final = re.compile(r"<0x[0-9A-Fa-f]{2}>")
_SCORE: Final = -1000.0
_SHOWN: Final = frozenset(
    ("<|channel>", "<channel|>", "<|tool_call>", "<tool_call|>", "<|tool_response>", "<tool_response|>", '<|"|>')
)
"""Special tokens whose text must come out, so that the reader of an answer finds them."""
_NAMED: Final = ("bos", "eos", "unk", "sep", "pad", "cls", "mask")


class _Added(msgspec.Struct):
    id: int
    content: str
    special: bool = False


class _Model(msgspec.Struct):
    type: str
    vocab: dict[str, int]
    byte_fallback: bool | None = False


class _File(msgspec.Struct):
    model: _Model
    added_tokens: list[_Added] = []


class _Kind(msgspec.Struct):
    type: str = ""


class _Probe(msgspec.Struct):
    model: _Kind


class Tokens:
    """A tokenizer.

    Args:
        folder: Has tokenizer.json, and mostly tokenizer_config.json.

    Raises:
        ModelError: "missing", "unreadable", "corrupt".
    """

    def __init__(self, folder: Path) -> None:
        data = read_small(folder, TOKENIZER, _LIMIT)
        kind = parse(data, TOKENIZER, _Probe).model.type
        if kind != "BPE":
            raise ModelError("corrupt", "tokenizer.json holds another kind of tokenizer than Gemma 4's.", _AGAIN)
        file: _File = parse(data, TOKENIZER, _File)
        del data
        if not file.model.byte_fallback:
            raise ModelError("corrupt", "tokenizer.json holds another kind of tokenizer than Gemma 4's.", _AGAIN)
        special = {token.id for token in file.added_tokens if token.special} | _named(folder, file)
        self.texts: Final = _by_id(file)
        base = len(file.model.vocab)
        self.types: Final = [_type(text, number, base, special) for number, text in enumerate(self.texts)]
        self._special = _read_special(folder, len(self.texts))

    def write(self, writer: GGUFWriter) -> None:
        """Adds the keys of the tokenizer."""
        writer.add_tokenizer_model("gemma4")
        writer.add_token_list(self.texts)
        scores = [_SCORE] * len(self.texts)
        writer.add_key_value("tokenizer.ggml.scores", scores, GGUFValueType.ARRAY, GGUFValueType.FLOAT32)
        writer.add_token_types(self.types)
        self._special.add_special_token["bos"] = True
        self._special.add_to_gguf(writer, quiet=True)
        writer.add_add_space_prefix(False)


def _by_id(file: _File) -> list[str]:
    """All texts, by id."""
    texts = {number: text for text, number in file.model.vocab.items()}
    if len(texts) < len(file.model.vocab):
        raise ModelError("corrupt", "Two tokens in tokenizer.json have the same id.", _AGAIN)
    for token in file.added_tokens:
        if texts.setdefault(token.id, token.content) != token.content:
            raise ModelError("corrupt", "Two tokens in tokenizer.json have the same id.", _AGAIN)
    if len(set(texts.values())) < len(texts):  # llama.cpp ends its process over that
        raise ModelError("corrupt", "Two tokens in tokenizer.json have the same text.", _AGAIN)
    if not texts or min(texts) != 0 or max(texts) != len(texts) - 1:
        raise ModelError("corrupt", "The ids of the tokens in tokenizer.json have gaps.", _AGAIN)
    return [texts[number] for number in range(len(texts))]


def _type(text: str, number: int, base: int, special: set[int]) -> int:
    if text in _SHOWN:
        return int(TokenType.USER_DEFINED)
    if number in special:
        return int(TokenType.CONTROL)
    if number >= base:
        return int(TokenType.USER_DEFINED)
    return int(TokenType.BYTE if _BYTE.fullmatch(text) else TokenType.NORMAL)


def _named(folder: Path, file: _File) -> set[int]:
    """Ids of the tokens that tokenizer_config.json calls special."""
    try:
        settings = parse(read_small(folder, SETTINGS, _SMALL), SETTINGS)
    except ModelError as error:
        if error.fault == "missing":
            return set()
        raise
    if not isinstance(settings, dict):
        raise ModelError("corrupt", "tokenizer_config.json is damaged.", _AGAIN)
    entries: list[Any] = [settings.get(f"{name}_token") for name in _NAMED]
    for key in ("additional_special_tokens", "extra_special_tokens"):
        more = settings.get(key)
        entries += more.values() if isinstance(more, dict) else more if isinstance(more, list) else []
    texts = {entry.get("content") if isinstance(entry, dict) else entry for entry in entries if entry}
    ids = {token.content: token.id for token in file.added_tokens}
    return {found for text in texts if isinstance(text, str) and (found := _id(text, ids, file)) is not None}


def _id(text: str, added: dict[str, int], file: _File) -> int | None:
    return added.get(text, file.model.vocab.get(text))


def _read_special(folder: Path, count: int) -> SpecialVocab:
    try:
        special = SpecialVocab(folder, load_merges=True, n_vocab=count)
    except Exception as error:  # it expects well-formed files, and fails on others in any way
        raise ModelError("corrupt", "The tokenizer's files cannot be understood.", _AGAIN, repr(error)) from error
    if not special.merges:
        raise ModelError("corrupt", "tokenizer.json holds no merges.", _AGAIN)
    return special
