"""GGUF files byte by byte, so that a test can get any of them wrong."""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

Value = bool | int | float | str | Sequence[bool] | Sequence[int] | Sequence[str] | bytes


def string(text: str | bytes) -> bytes:
    """A string with its length in front."""
    raw = text.encode("utf-8") if isinstance(text, str) else text
    return struct.pack("<Q", len(raw)) + raw


def array(kind: int, count: int, payload: bytes) -> bytes:
    """An array value: its own kind, the kind and number of its elements, the elements."""
    return struct.pack("<IIQ", 9, kind, count) + payload


def value(content: Value) -> bytes:
    """A value with its kind in front; bytes are taken as they are."""
    match content:
        case bytes():
            return content
        case bool():
            return struct.pack("<I?", 7, content)
        case int():
            return struct.pack("<II", 4, content)
        case float():
            return struct.pack("<If", 6, content)
        case str():
            return struct.pack("<I", 8) + string(content)
    texts = [item for item in content if isinstance(item, str)]
    if texts:
        return array(8, len(texts), b"".join(map(string, texts)))
    numbers = [item for item in content if isinstance(item, int)]
    if all(isinstance(item, bool) for item in numbers):
        return array(7, len(numbers), bytes(numbers))
    return array(5, len(numbers), struct.pack(f"<{len(numbers)}i", *numbers))


@dataclass(frozen=True, slots=True)
class Tensor:
    """One tensor record; `offset` None puts it where it belongs."""

    name: str | bytes = "token_embd.weight"
    shape: tuple[int, ...] = (32, 4)
    kind: int = 2
    size: int = 72
    offset: int | None = None


@dataclass(frozen=True, slots=True)
class Sections:
    """The parts of a file, in order."""

    counts: bytes
    metadata: bytes
    tensors: bytes
    data: bytes

    def joined(self) -> bytes:
        """The whole file."""
        return self.counts + self.metadata + self.tensors + self.data

    def ends(self) -> tuple[int, int, int, int]:
        """Where each part ends."""
        counts = len(self.counts)
        metadata = counts + len(self.metadata)
        tensors = metadata + len(self.tensors)
        return counts, metadata, tensors, tensors + len(self.data)


def sections(
    metadata: Mapping[str, Value],
    tensors: Sequence[Tensor] = (Tensor(),),
    *,
    version: int = 3,
    alignment: int = 32,
    tensor_count: int | None = None,
    pair_count: int | None = None,
    extra: bytes = b"",
) -> Sections:
    """A file in parts: `extra` follows the metadata, the counts may be false ones."""
    pairs = b"".join(string(key) + value(content) for key, content in metadata.items()) + extra
    records, data = b"", b""
    for tensor in tensors:
        data += bytes(-len(data) % alignment)
        offset = len(data) if tensor.offset is None else tensor.offset
        shape = struct.pack(f"<I{len(tensor.shape)}Q", len(tensor.shape), *tensor.shape)
        records += string(tensor.name) + shape + struct.pack("<IQ", tensor.kind, offset)
        data += bytes(tensor.size)
    counts = b"GGUF" + struct.pack(
        "<IQQ",
        version,
        len(tensors) if tensor_count is None else tensor_count,
        len(metadata) if pair_count is None else pair_count,
    )
    padding = bytes(-(len(counts) + len(pairs) + len(records)) % alignment) if tensors else b""
    return Sections(counts, pairs, records, padding + data)


def words(count: int = 256, stem: str = "word") -> list[str]:
    """A token list."""
    return [f"{stem}{index}" for index in range(count)]


def target(**changes: Value) -> dict[str, Value]:
    """Metadata of a small Gemma 4 target; `changes` use `__` for a dot, and b"" leaves a key out."""
    return _changed(
        {
            "general.architecture": "gemma4",
            "general.type": "model",
            "general.name": "small target",
            "general.file_type": 2,
            "gemma4.block_count": 6,
            "gemma4.context_length": 2048,
            "gemma4.embedding_length": 256,
            "gemma4.attention.head_count_kv": [1, 1, 1, 1, 1, 2],
            "gemma4.attention.key_length": 128,
            "gemma4.attention.key_length_swa": 64,
            "gemma4.attention.shared_kv_layers": 2,
            "gemma4.attention.sliding_window": 128,
            "gemma4.attention.sliding_window_pattern": [True, True, True, False, True, False],
            "tokenizer.ggml.model": "gemma4",
            "tokenizer.ggml.tokens": words(),
            "tokenizer.chat_template": "{{ messages }}",
        },
        changes,
    )


def drafter(**changes: Value) -> dict[str, Value]:
    """Metadata of the drafter of `target`."""
    own = "gemma4-assistant."
    return _changed(
        {
            "general.architecture": "gemma4-assistant",
            "general.file_type": 2,
            own + "block_count": 2,
            own + "embedding_length": 128,
            own + "embedding_length_out": 256,
            own + "nextn_predict_layers": 2,
            own + "attention.head_count_kv": [1, 2],
            own + "attention.key_length": 128,
            own + "attention.key_length_swa": 64,
            own + "attention.sliding_window": 128,
            own + "attention.sliding_window_pattern": [True, False],
            "tokenizer.ggml.model": "gemma4",
            "tokenizer.ggml.tokens": words(),
        },
        {key.replace("drafter__", own): content for key, content in changes.items()},
    )


def _changed(metadata: dict[str, Value], changes: Mapping[str, Value]) -> dict[str, Value]:
    for key, content in changes.items():
        if content == b"":
            metadata.pop(key.replace("__", "."))
        else:
            metadata[key.replace("__", ".")] = content
    return metadata
