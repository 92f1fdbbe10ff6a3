"""Low-level reading of a GGUF header: bounded reads, metadata, tensor records, and the tables they need.

The layout is that of `ggml/docs/gguf.md`; what is acceptable is what `gguf_init_from_reader` in llama.cpp's
`ggml/src/gguf.cpp` accepts. Reads are plain and buffered, arrays are walked and not built, and nothing is allocated
because a number in the file says so. `tandem.engine.gguf` makes facts of it.

Faults: a file that ends before its own header or weights do is "truncated"; one that contradicts itself or goes
past the limits below is "corrupt". All sizes are bytes.
"""

from __future__ import annotations

import hashlib
import io
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from struct import Struct
from typing import Final, NoReturn

from tandem.errors import ModelError, ModelFault

Scalar = int | float | bool | str

HEADER_LIMIT: Final = 256 << 20
"""Most bytes before the weights; Gemma 4's header has some 20 MB."""
PAIR_LIMIT, KEY_LIMIT, STRING_LIMIT = 1 << 16, 1 << 16, 1 << 20
TENSOR_LIMIT: Final = 1 << 14
"""Most tensors; Gemma 4 31B has fewer than 2,000."""
ARRAY_STRINGS_LIMIT: Final = 1 << 21
"""Most strings in all arrays together; Gemma 4 has 777,000 (tokens and merges)."""
KEPT_TEXT_LIMIT: Final = 16 << 20
"""Most bytes of keys and string values together."""
KEPT_VALUES, KEPT_VALUES_IN_ALL = 4096, 1 << 18
TOKEN_BLOCK: Final = 64
"""Tokens under one hash of `GgufFacts.token_blocks`."""

AGAIN: Final = "Download or copy the file again."
FINISH: Final = "Let the download finish, or download the file again."
CHOOSE: Final = "Choose a .gguf file."
ONLY_NAMED: Final = "Only its name ends in .gguf; its content is something else. Get the file again, or choose another."

_CHUNK: Final = 1 << 20
_INT64_MAX: Final = (1 << 63) - 1
_U32, _U64 = Struct("<I"), Struct("<Q")
_U32_KIND, _STRING, _ARRAY = 4, 8, 9
_KINDS: Final[Mapping[int, tuple[str, Struct]]] = {
    kind: (name, Struct("<" + code))
    for kind, name, code in zip(
        (0, 1, 2, 3, 4, 5, 6, 7, 10, 11, 12),
        ("u8", "i8", "u16", "i16", "u32", "i32", "f32", "bool", "u64", "i64", "f64"),
        "BbHhIif?Qqd",
        strict=True,
    )
}
# fmt: off
TENSOR_TYPES: Final[Mapping[int, tuple[str, int, int]]] = {
    0: ("F32", 1, 4), 1: ("F16", 1, 2), 2: ("Q4_0", 32, 18), 3: ("Q4_1", 32, 20), 6: ("Q5_0", 32, 22),
    7: ("Q5_1", 32, 24), 8: ("Q8_0", 32, 34), 9: ("Q8_1", 32, 36), 10: ("Q2_K", 256, 84), 11: ("Q3_K", 256, 110),
    12: ("Q4_K", 256, 144), 13: ("Q5_K", 256, 176), 14: ("Q6_K", 256, 210), 15: ("Q8_K", 256, 292),
    16: ("IQ2_XXS", 256, 66), 17: ("IQ2_XS", 256, 74), 18: ("IQ3_XXS", 256, 98), 19: ("IQ1_S", 256, 50),
    20: ("IQ4_NL", 32, 18), 21: ("IQ3_S", 256, 110), 22: ("IQ2_S", 256, 82), 23: ("IQ4_XS", 256, 136),
    24: ("I8", 1, 1), 25: ("I16", 1, 2), 26: ("I32", 1, 4), 27: ("I64", 1, 8), 28: ("F64", 1, 8),
    29: ("IQ1_M", 256, 56), 30: ("BF16", 1, 2), 34: ("TQ1_0", 256, 54), 35: ("TQ2_0", 256, 66),
    39: ("MXFP4", 32, 17), 40: ("NVFP4", 64, 36), 41: ("Q1_0", 128, 18), 42: ("Q2_0", 64, 18),
}
# fmt: on
"""Tensor types: id, name, numbers in a block, bytes of a block; GGML_QUANT_SIZES in gguf-py/constants.py."""
_TENSOR_RECORDS: Final = tuple(Struct(f"<{dimensions}QIQ") for dimensions in range(5))  # shape, type, offset
_TENSOR_TYPE_COUNT: Final = 43  # ids below it that are not in the table were removed from llama.cpp


@dataclass(frozen=True, slots=True)
class ArrayFacts:
    """What is kept of an array: element type ("u32", "str", …), length, and numbers where it is a short one."""

    type: str
    length: int
    values: tuple[int | float | bool, ...] | None = None


def printable(text: str, limit: int = 80) -> str:
    """Text from a file or a path, safe in a sentence: no control, bidirectional or surrogate characters, not long."""
    clean = "".join(character if character.isprintable() else "\ufffd" for character in text[: limit + 1])
    return clean if len(clean) <= limit else clean[: limit - 1] + "…"


class Header:
    """Forward reading within one open file; each read is bounded by the file's size and the header limit.

    What reads raises ModelError: "truncated" at the end of the file, "corrupt" past a limit.

    Args:
        file: Open for reading, unbuffered, at its beginning.
        size: Its size in bytes.
        name: The file's name, printable, for sentences.
    """

    def __init__(self, file: io.FileIO, size: int, name: str) -> None:
        self.size = size
        self.name = name
        self._file = file
        self._buffer, self._at, self._start = b"", 0, 0  # position in the file = _start + _at
        self._strings_left = ARRAY_STRINGS_LIMIT

    @property
    def position(self) -> int:
        """Bytes read or skipped so far."""
        return self._start + self._at

    def corrupt(self, what: str, remedy: str = AGAIN, fault: ModelFault = "corrupt") -> NoReturn:
        """Raises ModelError: the file is damaged by `what`, or, with another fault, the file `what`."""
        sentence = f"{self.name} is damaged: {what}." if fault == "corrupt" else f"{self.name} {what}."
        raise ModelError(fault, sentence, remedy, f"near byte {self.position}")

    def truncated(self, needed: int) -> NoReturn:
        """Raises ModelError: the file has fewer than the `needed` bytes."""
        raise ModelError(
            "truncated",
            f"{self.name} is incomplete: it has {self.size:,} bytes and needs at least {needed:,}.",
            FINISH,
            f"header read up to byte {self.position}",
        )

    def _require(self, count: int) -> None:
        end = self.position + count
        if end > HEADER_LIMIT:
            self.corrupt(f"its header would pass {HEADER_LIMIT >> 20} MiB")
        if end > self.size:
            self.truncated(end)

    def _fill(self, count: int) -> None:
        """Makes `count` bytes from the position on available in the buffer."""
        self._require(count)
        parts, have = [self._buffer[self._at :]], len(self._buffer) - self._at
        self._start, self._at = self.position, 0
        while have < count:
            part = self._file.read(max(_CHUNK, count - have))
            if not part:  # it shrank since its size was taken
                self.size = self._start + have
                self.truncated(self._start + count)
            parts.append(part)
            have += len(part)
        self._buffer = b"".join(parts)

    def take(self, count: int) -> bytes:
        """The next `count` bytes."""
        if len(self._buffer) - self._at < count:
            self._fill(count)
        taken = self._buffer[self._at : self._at + count]
        self._at += count
        return taken

    def skip(self, count: int) -> None:
        """Passes over `count` bytes."""
        if count <= len(self._buffer) - self._at:
            self._at += count
            return
        self._require(count)
        self._start, self._at, self._buffer = self.position + count, 0, b""
        self._file.seek(self._start)

    def u32(self) -> int:
        """The next 4 bytes as an unsigned number."""
        return int(_U32.unpack(self.take(4))[0])

    def u64(self) -> int:
        """The next 8 bytes as an unsigned number."""
        return int(_U64.unpack(self.take(8))[0])

    def walk_strings(self, count: int, hashes: list[bytes] | None) -> None:
        """Passes over an array of strings; adds to `hashes` one for each `TOKEN_BLOCK` of them (lengths and bytes)."""
        if count > self._strings_left:
            self.corrupt(f"it lists more than {ARRAY_STRINGS_LIMIT:,} strings")
        self._strings_left -= count
        self._require(8 * count)
        while count:
            block = count if hashes is None else min(TOKEN_BLOCK, count)
            digest = hashlib.blake2b(digest_size=8)
            self._walk_block(block, None if hashes is None else digest.update)
            count -= block
            if hashes is not None:
                hashes.append(digest.digest())

    def _walk_block(self, count: int, update: Callable[[memoryview], None] | None) -> None:
        unpack = _U64.unpack_from
        while count:
            buffer, at, end = self._buffer, self._at, len(self._buffer)
            needed = walked = 0
            for walked in range(count):  # noqa: B007 - how far it came
                if at + 8 > end:
                    needed = 8
                    break
                following = at + 8 + unpack(buffer, at)[0]
                if following > end:
                    needed = following - at
                    break
                at = following
            if update:
                update(memoryview(buffer)[self._at : at])
            self._at = at
            if not needed:
                return
            count -= walked
            if needed > STRING_LIMIT + 8:
                self.corrupt(f"it has a text of more than {STRING_LIMIT >> 20} MiB in a list")
            self._fill(needed)


def _read_value(header: Header, key: str, kind: int, budget: list[int]) -> Scalar | None:
    """One value; `budget` is [text bytes, array values] that may still be kept."""
    if kind != _STRING:
        if kind not in _KINDS:
            header.corrupt(f"the value of {printable(key)} has the unknown type {kind}")
        code = _KINDS[kind][1]
        value: Scalar = code.unpack(header.take(code.size))[0]
        return value
    length = header.u64()
    if length > STRING_LIMIT:
        header.skip(length)
        return None
    budget[0] -= length
    if budget[0] < 0:
        header.corrupt(f"its header has more than {KEPT_TEXT_LIMIT >> 20} MiB of text")
    return header.take(length).decode("utf-8", "replace")


def _read_array(header: Header, key: str, budget: list[int], blocks: list[bytes]) -> ArrayFacts:
    kind, length = header.u32(), header.u64()
    if kind == _STRING:
        header.walk_strings(length, blocks if key == "tokenizer.ggml.tokens" else None)
        return ArrayFacts("str", length)
    if kind not in _KINDS:
        what = "a list of lists" if kind == _ARRAY else f"a list of the unknown type {kind}"
        header.corrupt(f"{printable(key)} is {what}")
    name, code = _KINDS[kind]
    if length > min(KEPT_VALUES, budget[1]):
        header.skip(length * code.size)
        return ArrayFacts(name, length)
    budget[1] -= length
    return ArrayFacts(name, length, tuple(value for (value,) in code.iter_unpack(header.take(length * code.size))))


def read_metadata(header: Header, count: int) -> tuple[dict[str, Scalar | ArrayFacts], bytes]:
    """`count` keys and their values, and the hashes of the token list, one of 8 bytes for each `TOKEN_BLOCK` tokens.

    Raises:
        ModelError: "truncated" or "corrupt".
    """
    metadata: dict[str, Scalar | ArrayFacts] = {}
    seen: set[str] = set()
    budget, blocks = [KEPT_TEXT_LIMIT, KEPT_VALUES_IN_ALL], list[bytes]()
    for _ in range(count):
        length = header.u64()
        if not 0 < length <= KEY_LIMIT:
            header.corrupt(f"a key has the impossible length {length:,}")
        budget[0] -= length
        try:
            key = header.take(length).decode("utf-8")
        except UnicodeDecodeError:
            header.corrupt("a key is not text")
        if key in seen:
            header.corrupt(f"the key {printable(key)} occurs twice")
        seen.add(key)
        kind = header.u32()
        if key == "general.alignment" and kind != _U32_KIND:
            header.corrupt("its alignment has the wrong type")
        value = _read_array(header, key, budget, blocks) if kind == _ARRAY else _read_value(header, key, kind, budget)
        if value is not None:
            metadata[key] = value
    return metadata, b"".join(blocks)


def _tensor_bytes(header: Header, name: bytes, shape: tuple[int, ...], kind: int) -> int:
    """Bytes of one tensor's data; `shape` has the row first."""
    elements = 1
    for extent in shape:
        elements *= extent
        if extent > _INT64_MAX or elements > _INT64_MAX:
            header.corrupt(f"the tensor {_tensor_name(name)} has an impossible shape")
    if kind >= _TENSOR_TYPE_COUNT:
        newer = "Update Tandem if the file is newer than it, or download the file again."
        what = f"the tensor {_tensor_name(name)} has the type {kind}, which this engine does not know"
        header.corrupt(what, newer)
    if kind not in TENSOR_TYPES:
        what = f"uses an old tensor format (type {kind}) that the engine no longer reads"
        header.corrupt(what, "Get a newer file of this model.", "load-failed")
    type_name, block, block_bytes = TENSOR_TYPES[kind]
    if (shape[0] if shape else 1) % block:
        header.corrupt(f"the rows of the tensor {_tensor_name(name)} do not fit its type {type_name}")
    return elements // block * block_bytes


def _tensor_name(name: bytes) -> str:
    return printable(name.decode("utf-8", "replace"))


def read_tensors(header: Header, count: int, alignment: int) -> tuple[int, dict[int, int]]:
    """`count` tensor records: the end of the last tensor's data within the file, and bytes by tensor type.

    Raises:
        ModelError: "truncated" or "corrupt"; "load-failed" for a tensor format that the engine no longer reads.
    """
    seen: set[bytes] = set()
    by_type: dict[int, int] = {}
    offset = end = 0
    for _ in range(count):
        length = header.u64()
        if length >= 64:  # GGML_MAX_NAME
            header.corrupt(f"a tensor's name has the impossible length {length:,}")
        name = header.take(length)
        if name in seen:
            header.corrupt(f"the tensor {_tensor_name(name)} occurs twice")
        seen.add(name)
        dimensions = header.u32()
        if dimensions >= len(_TENSOR_RECORDS):
            header.corrupt(f"the tensor {_tensor_name(name)} has {dimensions:,} dimensions")
        record = _TENSOR_RECORDS[dimensions]
        *shape, kind, begin = record.unpack(header.take(record.size))
        size = _tensor_bytes(header, name, tuple(shape), kind)
        if begin != offset:
            header.corrupt(f"the tensor {_tensor_name(name)} does not begin where the one before it ends")
        end = offset + size
        offset = -(-end // alignment) * alignment
        if offset > _INT64_MAX:
            header.corrupt(f"the tensor {_tensor_name(name)} ends beyond any disk")
        by_type[kind] = by_type.get(kind, 0) + size
    if not count:
        return header.position, by_type
    return -(-header.position // alignment) * alignment + end, by_type
