"""Facts from the header of a GGUF file, read safely, and what they say about targets, drafters and pairs.

Why not the reader of the package `gguf`: it maps the file (a file that shrinks while mapped ends the process with
SIGBUS), builds a Python object for each element of each array (seconds for a vocabulary of 262,144 tokens and its
merges) and trusts every count and length in the file. Here reads are plain and buffered, arrays are walked and not
built, and nothing is allocated because a number in the file says so. The layout is that of `ggml/docs/gguf.md`; the
rules of what is acceptable are those of `gguf_init_from_reader` in llama.cpp's `ggml/src/gguf.cpp`.

Faults: a file that ends before its own header or weights do is "truncated"; one that contradicts itself or goes
past the limits below is "corrupt". All sizes are bytes.
"""

from __future__ import annotations

import errno
import hashlib
import io
import os
import stat
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from struct import Struct
from types import MappingProxyType
from typing import Final, NoReturn

from tandem.errors import ModelError, ModelFault

Scalar = int | float | bool | str

HEADER_LIMIT: Final = 256 << 20
"""Most bytes before the weights; Gemma 4's header has some 20 MB."""
PAIR_LIMIT, TENSOR_LIMIT, KEY_LIMIT, STRING_LIMIT = 1 << 16, 1 << 17, 1 << 16, 1 << 20
ARRAY_STRINGS_LIMIT: Final = 1 << 21
"""Most strings in all arrays together; Gemma 4 has 777,000 (tokens and merges)."""
KEPT_TEXT_LIMIT: Final = 16 << 20
"""Most bytes of keys and string values together."""
KEPT_VALUES, KEPT_VALUES_IN_ALL = 4096, 1 << 18
TOKEN_BLOCK: Final = 64
"""Tokens under one hash, see `vocabulary_overlap`."""
SAME_VOCABULARY: Final = 0.5
"""Share of equal token blocks from which two token lists count as the same, see `vocabulary_overlap`."""

_CHUNK: Final = 1 << 20
_INT64_MAX: Final = (1 << 63) - 1
_MAX_LAYERS: Final = 512  # LLAMA_MAX_LAYERS in llama.cpp: beyond it the engine's process aborts
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
# Tensor types: id, name, numbers in a block, bytes of a block; GGML_QUANT_SIZES in llama.cpp's gguf-py/constants.py.
# fmt: off
_TENSOR_TYPES: Final[Mapping[int, tuple[str, int, int]]] = {
    0: ("F32", 1, 4), 1: ("F16", 1, 2), 2: ("Q4_0", 32, 18), 3: ("Q4_1", 32, 20), 6: ("Q5_0", 32, 22),
    7: ("Q5_1", 32, 24), 8: ("Q8_0", 32, 34), 9: ("Q8_1", 32, 36), 10: ("Q2_K", 256, 84), 11: ("Q3_K", 256, 110),
    12: ("Q4_K", 256, 144), 13: ("Q5_K", 256, 176), 14: ("Q6_K", 256, 210), 15: ("Q8_K", 256, 292),
    16: ("IQ2_XXS", 256, 66), 17: ("IQ2_XS", 256, 74), 18: ("IQ3_XXS", 256, 98), 19: ("IQ1_S", 256, 50),
    20: ("IQ4_NL", 32, 18), 21: ("IQ3_S", 256, 110), 22: ("IQ2_S", 256, 82), 23: ("IQ4_XS", 256, 136),
    24: ("I8", 1, 1), 25: ("I16", 1, 2), 26: ("I32", 1, 4), 27: ("I64", 1, 8), 28: ("F64", 1, 8),
    29: ("IQ1_M", 256, 56), 30: ("BF16", 1, 2), 34: ("TQ1_0", 256, 54), 35: ("TQ2_0", 256, 66),
    39: ("MXFP4", 32, 17), 40: ("NVFP4", 64, 36), 41: ("Q1_0", 128, 18), 42: ("Q2_0", 64, 18),
}
_TENSOR_RECORDS: Final = tuple(Struct(f"<{dimensions}QIQ") for dimensions in range(5))  # shape, type, offset
_TENSOR_TYPE_COUNT: Final = 43  # ids below it that are not in the table were removed from llama.cpp
# general.file_type: LlamaFileType in the same file.
_FILE_TYPES: Final[Mapping[int, str]] = {
    0: "F32", 1: "F16", 2: "Q4_0", 3: "Q4_1", 7: "Q8_0", 8: "Q5_0", 9: "Q5_1", 10: "Q2_K", 11: "Q3_K_S",
    12: "Q3_K_M", 13: "Q3_K_L", 14: "Q4_K_S", 15: "Q4_K_M", 16: "Q5_K_S", 17: "Q5_K_M", 18: "Q6_K", 19: "IQ2_XXS",
    20: "IQ2_XS", 21: "Q2_K_S", 22: "IQ3_XS", 23: "IQ3_XXS", 24: "IQ1_S", 25: "IQ4_NL", 26: "IQ3_S", 27: "IQ3_M",
    28: "IQ2_S", 29: "IQ2_M", 30: "IQ4_XS", 31: "IQ1_M", 32: "BF16", 36: "TQ1_0", 37: "TQ2_0", 38: "MXFP4",
    39: "NVFP4", 40: "Q1_0", 41: "Q2_0",
}
# fmt: on
_AGAIN: Final = "Download or copy the file again."
_FINISH: Final = "Let the download finish, or download the file again."
_CHOOSE: Final = "Choose a .gguf file."

_TARGET_ARCH: Final = "gemma4"
_DRAFTER_ARCH: Final = "gemma4-assistant"
_FORK_DRAFTERS: Final = frozenset({"gemma4_assistant", "gemma4_mtp"})
_OTHER_DRAFTERS: Final = frozenset({"eagle3", "dflash"})


@dataclass(frozen=True, slots=True)
class ArrayFacts:
    """What is kept of an array: element type ("u32", "str", …), length, and numbers where it is a short one."""

    type: str
    length: int
    values: tuple[int | float | bool, ...] | None = None


@dataclass(frozen=True, slots=True)
class GgufFacts:
    """What the header of one GGUF file says.

    Attributes:
        needed_bytes: End of the last tensor's data; the file is complete when it has that many.
        metadata: Scalars and strings up to 1 MiB, arrays as `ArrayFacts`. Bytes that are not UTF-8 show as U+FFFD.
        weight_type: Tensor type that holds the most bytes, such as "Q4_0"; empty without tensors.
        token_blocks: One 8-byte hash for each 64 tokens, see `vocabulary_overlap`.
    """

    path: Path
    version: int
    file_bytes: int
    needed_bytes: int
    architecture: str
    name: str | None
    tensor_count: int
    weight_type: str
    metadata: Mapping[str, Scalar | ArrayFacts] = field(repr=False)
    token_blocks: bytes = field(repr=False)

    def integer(self, key: str, layer: int = -1) -> int | None:
        """The whole number under `key`, or of one layer where the key holds one for each; None where it is neither."""
        value = self.metadata.get(key)
        if isinstance(value, ArrayFacts):
            values = value.values or ()
            value = values[layer] if -len(values) <= layer < len(values) else None
        return value if isinstance(value, int) and not isinstance(value, bool) else None

    def own(self, key: str, layer: int = -1) -> int | None:
        """`integer` of a key in the architecture's own namespace, such as "attention.key_length"."""
        return self.integer(f"{self.architecture}.{key}", layer)

    def text(self, key: str) -> str | None:
        """The string under `key`."""
        value = self.metadata.get(key)
        return value if isinstance(value, str) else None

    @property
    def file_name(self) -> str:
        """The file's name with what cannot be printed replaced, for sentences."""
        return printable(self.path.name or str(self.path))

    @property
    def vocabulary(self) -> int | None:
        """Number of tokens."""
        tokens = self.metadata.get("tokenizer.ggml.tokens")
        return tokens.length if isinstance(tokens, ArrayFacts) else self.own("vocab_size")

    @property
    def tokenizer_model(self) -> str | None:
        """Such as "gemma4" or "llama"."""
        return self.text("tokenizer.ggml.model")

    @property
    def token_digest(self) -> str:
        """A short hash of the whole token list, empty without one."""
        return hashlib.sha256(self.token_blocks).hexdigest()[:12] if self.token_blocks else ""

    @property
    def chat_template(self) -> str | None:
        """The Jinja source."""
        return self.text("tokenizer.chat_template")

    @property
    def embedding_length(self) -> int | None:
        """Hidden size."""
        return self.own("embedding_length")

    @property
    def embedding_length_out(self) -> int | None:
        """In a drafter: hidden size of the target that it was made for."""
        return self.own("embedding_length_out")

    @property
    def context_length(self) -> int | None:
        """Tokens the model was trained for."""
        return self.own("context_length")

    @property
    def block_count(self) -> int | None:
        """Layers."""
        return self.own("block_count")

    @property
    def sliding_window(self) -> int | None:
        """Tokens that a sliding layer sees."""
        return self.own("attention.sliding_window")

    @property
    def sliding_layers(self) -> tuple[bool, ...]:
        """For each layer whether it is a sliding one; empty where the file does not say."""
        pattern = self.metadata.get(f"{self.architecture}.attention.sliding_window_pattern")
        return tuple(bool(value) for value in pattern.values or ()) if isinstance(pattern, ArrayFacts) else ()

    @property
    def file_type(self) -> int | None:
        """`general.file_type`, a LlamaFileType of llama.cpp."""
        return self.integer("general.file_type")

    @property
    def quantisation(self) -> str:
        """Name of the file type, such as "Q4_K_M"; the type of most weights where the file does not say."""
        return _FILE_TYPES.get(-1 if self.file_type is None else self.file_type, self.weight_type)


@dataclass(frozen=True, slots=True)
class Difference:
    """A fact in which two files must agree and do not; None is "not given"."""

    fact: str
    target_value: int | str | None
    drafter_value: int | str | None


def printable(text: str, limit: int = 80) -> str:
    """Text from a file or a path, safe in a sentence: no control, bidirectional or surrogate characters, not long."""
    clean = "".join(character if character.isprintable() else "\ufffd" for character in text[: limit + 1])
    return clean if len(clean) <= limit else clean[: limit - 1] + "…"


class _Header:
    """Forward reading within one open file; each read is bounded by the file's size and the header limit."""

    def __init__(self, file: io.FileIO, size: int, name: str) -> None:
        self.size = size
        self._file, self._name = file, name
        self._buffer, self._at, self._start = b"", 0, 0  # position in the file = _start + _at
        self._strings_left = ARRAY_STRINGS_LIMIT

    @property
    def position(self) -> int:
        return self._start + self._at

    def corrupt(self, what: str, remedy: str = _AGAIN, fault: ModelFault = "corrupt") -> NoReturn:
        sentence = f"{self._name} is damaged: {what}." if fault == "corrupt" else f"{self._name} {what}."
        raise ModelError(fault, sentence, remedy, f"near byte {self.position}")

    def truncated(self, needed: int) -> NoReturn:
        raise ModelError(
            "truncated",
            f"{self._name} is incomplete: it has {self.size:,} bytes and needs at least {needed:,}.",
            _FINISH,
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
        if len(self._buffer) - self._at < count:
            self._fill(count)
        taken = self._buffer[self._at : self._at + count]
        self._at += count
        return taken

    def skip(self, count: int) -> None:
        if count <= len(self._buffer) - self._at:
            self._at += count
            return
        self._require(count)
        self._start, self._at, self._buffer = self.position + count, 0, b""
        self._file.seek(self._start)

    def u32(self) -> int:
        return int(_U32.unpack(self.take(4))[0])

    def u64(self) -> int:
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


def _open_without_waiting(path: str, flags: int) -> int:
    # A FIFO put in the file's place after the check of its kind must not hang us.
    return os.open(path, flags | getattr(os, "O_NONBLOCK", 0))


def _can_be_a_path(path: Path) -> bool:
    try:
        return b"\0" not in os.fsencode(path)
    except UnicodeEncodeError:  # a lone surrogate that stands for no byte
        return False


def _require_file(mode: int, name: str) -> None:
    if stat.S_ISDIR(mode):
        raise ModelError("not-a-file", f"{name} is a folder, not a file.", "Choose a .gguf file inside it.")
    if not stat.S_ISREG(mode):
        raise ModelError("not-a-file", f"{name} is a device or a pipe, not an ordinary file.", _CHOOSE)


def _read_value(header: _Header, key: str, kind: int, budget: list[int]) -> Scalar | None:
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


def _read_array(header: _Header, key: str, budget: list[int], blocks: list[bytes]) -> ArrayFacts:
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


def _read_metadata(header: _Header, count: int) -> tuple[dict[str, Scalar | ArrayFacts], bytes]:
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


def _tensor_bytes(header: _Header, name: bytes, shape: tuple[int, ...], kind: int) -> int:
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
    if kind not in _TENSOR_TYPES:
        what = f"uses an old tensor format (type {kind}) that the engine no longer reads"
        header.corrupt(what, "Get a newer file of this model.", "load-failed")
    type_name, block, block_bytes = _TENSOR_TYPES[kind]
    if (shape[0] if shape else 1) % block:
        header.corrupt(f"the rows of the tensor {_tensor_name(name)} do not fit its type {type_name}")
    return elements // block * block_bytes


def _tensor_name(name: bytes) -> str:
    return printable(name.decode("utf-8", "replace"))


def _read_tensors(header: _Header, count: int, alignment: int) -> tuple[int, dict[int, int]]:
    """All tensor records: the end of the last tensor's data within the file, and bytes by tensor type."""
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


def _refuse_other_format(header: _Header, start: bytes) -> NoReturn:
    if len(start) < 4 and b"GGUF".startswith(start):
        header.truncated(24)
    what, remedy = "is not a GGUF file", _CHOOSE
    if start.lstrip()[:1] == b"<":
        what, remedy = "is a web page, not a GGUF file", "Download it again; a login page may have answered instead."
    elif start.startswith(b"version https://git-lfs"):
        what, remedy = "is a Git LFS pointer, not the model itself", "Fetch the file with git lfs pull, or download it."
    elif start[8:9] == b"{":
        what, remedy = "is a safetensors file, not a GGUF file", "Choose a GGUF conversion of this model."
    elif start[:4] in {b"lmgg", b"fmgg", b"tjgg", b"algg"}:
        what, remedy = "has the old GGML format from before GGUF", "Get a newer file of this model."
    header.corrupt(what, remedy, "not-gguf")


def _read_counts(header: _Header) -> tuple[int, int, int]:
    """Version, number of tensors, number of keys."""
    start = header.take(min(24, header.size))
    if start[:4] != b"GGUF":
        _refuse_other_format(header, start)
    if header.size < 24:
        header.truncated(24)
    version, tensors, pairs = int(_U32.unpack_from(start, 4)[0]), *Struct("<QQ").unpack_from(start, 8)
    if version & 0xFFFF == 0 and version:
        header.corrupt("is a big-endian GGUF file", "Get the little-endian file of this model.", "load-failed")
    if version == 1:
        header.corrupt(
            "is a GGUF file of version 1, which is too old", "Get a newer file of this model.", "load-failed"
        )
    if 3 < version < 256:
        what = f"is a GGUF file of version {version}, which this engine does not know"
        header.corrupt(what, "Update Tandem, or get a file of version 3.", "load-failed")
    if version not in {2, 3}:
        header.corrupt(f"it has the impossible GGUF version {version}")
    if tensors > TENSOR_LIMIT:
        header.corrupt(f"it claims to have {tensors:,} tensors")
    if pairs > PAIR_LIMIT:
        header.corrupt(f"it claims to have {pairs:,} keys")
    return version, tensors, pairs


def _read_open(file: io.FileIO, size: int, path: Path, name: str) -> GgufFacts:
    header = _Header(file, size, name)
    version, tensors, pairs = _read_counts(header)
    metadata, token_blocks = _read_metadata(header, pairs)
    alignment = metadata.get("general.alignment", 32)
    if not isinstance(alignment, int) or alignment <= 0 or alignment & (alignment - 1):
        header.corrupt("its alignment is not a power of two")
    needed, by_type = _read_tensors(header, tensors, alignment)
    architecture, part = metadata.get("general.architecture"), metadata.get("split.no")
    if architecture is None and isinstance(part, int) and part > 0:
        what = f"is part {part + 1} of a model in several files"
        header.corrupt(what, "Choose the first part.", "unknown-architecture")
    if architecture is None:
        header.corrupt("does not say which architecture it has", _AGAIN, "unknown-architecture")
    if not isinstance(architecture, str) or not architecture:
        header.corrupt("its architecture is not a name")
    if needed > header.size:
        header.truncated(needed)
    model = metadata.get("general.name")
    return GgufFacts(
        path=path,
        version=version,
        file_bytes=header.size,
        needed_bytes=needed,
        architecture=architecture,
        name=model if isinstance(model, str) else None,
        tensor_count=tensors,
        weight_type=_TENSOR_TYPES[max(by_type, key=by_type.__getitem__)][0] if by_type else "",
        metadata=MappingProxyType(metadata),
        token_blocks=token_blocks,
    )


def read_facts(path: Path) -> GgufFacts:
    """Reads the header of a GGUF file (version 2 or 3, little-endian).

    Never blocks on a pipe or device, takes well under a second and 300 MB whatever the file says.

    Raises:
        ModelError: missing, unreadable, not-a-file, empty, not-gguf, truncated, corrupt; load-failed for a version,
            byte order or tensor format that the engine does not read; unknown-architecture where none is named.
    """
    name = printable(path.name or str(path))
    try:
        if not _can_be_a_path(path):
            raise FileNotFoundError(errno.ENOENT, "a character that no file name has")
        _require_file(path.stat().st_mode, name)
        with io.FileIO(path, opener=_open_without_waiting) as file:
            status = os.fstat(file.fileno())
            _require_file(status.st_mode, name)
            if not status.st_size:
                raise ModelError("empty", f"{name} is empty.", _FINISH)
            return _read_open(file, status.st_size, path, name)
    except (FileNotFoundError, NotADirectoryError) as error:
        raise ModelError("missing", f"There is no file {name}.", "Check the path.", str(error)) from error
    except PermissionError as error:
        sentence = f"You are not allowed to read {name}."
        raise ModelError("unreadable", sentence, "Change the file's permissions, or copy it.", str(error)) from error
    except OSError as error:
        if error.errno == errno.ENAMETOOLONG:
            raise ModelError("missing", f"There is no file {name}.", "Check the path.", str(error)) from error
        if error.errno == errno.ELOOP:
            sentence = f"{name} is a link that leads in a circle."
            raise ModelError("unreadable", sentence, "Choose the file itself.", str(error)) from error
        reason = error.strerror or type(error).__name__
        raise ModelError("unreadable", f"{name} cannot be read: {reason}.", "Check the disk.", str(error)) from error


def _contradiction(facts: GgufFacts, what: str) -> NoReturn:
    raise ModelError("corrupt", f"{facts.file_name} contradicts itself: {what}.", _AGAIN)


def _refuse_fork(facts: GgufFacts, fault: ModelFault) -> None:
    if facts.architecture in _FORK_DRAFTERS:
        sentence = f"{facts.file_name} is a drafter in another program's format ({facts.architecture})."
        raise ModelError(fault, sentence, f"Get the drafter as a file of the architecture {_DRAFTER_ARCH}.")


def _refuse_no_language_model(facts: GgufFacts, fault: ModelFault) -> None:
    """Image parts, adapters and files without weights: neither a target nor a draft model."""
    kind = facts.text("general.type") or "model"
    if facts.architecture == "clip" or kind == "mmproj":
        what = "holds the image and audio part of a model, not the model"
    elif kind != "model":
        what = f"is not a model but of the type {printable(kind, 30)}"
    elif not facts.tensor_count and (facts.integer("split.count") or 1) <= 1:
        what = "holds no weights"
    else:
        return
    raise ModelError(fault, f"{facts.file_name} {what}.", "Choose the file with the model's weights.")


def _check_layers(facts: GgufFacts) -> int:
    layers = facts.block_count
    if layers is None or not 0 < layers <= _MAX_LAYERS:
        _contradiction(facts, f"its number of layers is {_shown(layers)}")
    return layers


def check_target(facts: GgufFacts) -> None:
    """Refuses a file that cannot be a target; any architecture that is not a drafter's can be one.

    Raises:
        ModelError: "not-a-target"; "corrupt" where the engine's process would abort over the file's own figures.
    """
    if facts.architecture == _DRAFTER_ARCH:
        sentence = f"{facts.file_name} is a drafter, not a model to chat with."
        raise ModelError("not-a-target", sentence, "Give it as the drafter, and the Gemma 4 model as the target.")
    _refuse_fork(facts, "not-a-target")
    if facts.architecture in _OTHER_DRAFTERS:
        sentence = f"{facts.file_name} is a drafter of another method ({facts.architecture}), not a model to chat with."
        raise ModelError("not-a-target", sentence, "Choose the model itself as the target.")
    _refuse_no_language_model(facts, "not-a-target")
    layers = _check_layers(facts)
    if facts.architecture == _TARGET_ARCH and layers - (facts.own("attention.shared_kv_layers") or 0) < 2:
        _contradiction(facts, "too few layers have keys and values of their own")


def check_drafter(facts: GgufFacts) -> None:
    """Refuses a file that cannot draft with MTP: `src/models/gemma4-assistant.cpp` is what must accept it.

    Raises:
        ModelError: "not-a-drafter"; "corrupt" where the engine's process would abort over the file's own figures.
    """
    _refuse_fork(facts, "not-a-drafter")
    if facts.architecture != _DRAFTER_ARCH:
        sentence = f"{facts.file_name} is not a drafter: its architecture is {printable(facts.architecture, 40)}."
        remedy = f"Choose a file of the architecture {_DRAFTER_ARCH}, or draft with the method draft-model."
        raise ModelError("not-a-drafter", sentence, remedy)
    _refuse_no_language_model(facts, "not-a-drafter")
    layers = _check_layers(facts)
    draft_layers = facts.own("nextn_predict_layers")
    if draft_layers is None or not 0 < draft_layers <= layers:
        _contradiction(facts, f"its number of drafting layers is {_shown(draft_layers)}, of {layers}")
    if facts.embedding_length_out in {None, 0, facts.embedding_length}:
        _contradiction(facts, "it does not give the hidden size of its target (embedding_length_out)")
    if not any(facts.sliding_layers):
        _contradiction(facts, "none of its layers is a sliding one")


def _shown(value: int | str | None) -> str:
    if value is None:
        return "not given"
    return f"{value:,}" if isinstance(value, int) else printable(value, 60)


def vocabulary_overlap(first: GgufFacts, second: GgufFacts) -> float:
    """Share (0 to 1) of token blocks that are equal, byte for byte and at the same ids.

    A digest of the whole list would refuse good pairs: converters differ in a few control tokens, and Gemma 3 (a
    usual draft model for Gemma 4) has other turn markers at the same ids. Lists of unrelated models share nothing.
    """
    one, other = first.token_blocks, second.token_blocks
    if one == other:
        return 1.0
    places = range(0, min(len(one), len(other)), 8)
    return 8 * sum(one[at : at + 8] == other[at : at + 8] for at in places) / max(len(one), len(other))


def _vocabulary_differences(target: GgufFacts, drafter: GgufFacts) -> list[Difference]:
    if target.vocabulary != drafter.vocabulary:
        return [Difference("vocabulary size", target.vocabulary, drafter.vocabulary)]
    overlap = vocabulary_overlap(target, drafter)
    if overlap >= SAME_VOCABULARY:
        return []
    return [Difference("token list", target.token_digest, f"{drafter.token_digest} ({overlap:.0%} alike)")]


def pair_differences(target: GgufFacts, drafter: GgufFacts) -> list[Difference]:
    """Facts in which an MTP drafter does not fit a target; empty when they are a pair.

    Besides hidden size and vocabulary, the drafter reads the keys and values of the target's last layer but one
    (its sliding layers) and of its last one (the others), through its own figures for head sizes and counts
    (`llama_kv_cache::get_k`, and `share` in `llama-model.cpp`): these must be the target's. The window need not be.
    """
    if target.architecture != _TARGET_ARCH:
        return [Difference("architecture of the target", target.architecture, f"made for {_TARGET_ARCH}")]
    differences = []
    if target.embedding_length != drafter.embedding_length_out:
        differences.append(Difference("hidden size", target.embedding_length, drafter.embedding_length_out))
    if target.tokenizer_model != drafter.tokenizer_model:
        differences.append(Difference("tokenizer", target.tokenizer_model, drafter.tokenizer_model))
    differences += _vocabulary_differences(target, drafter)
    if target.sliding_layers[-2:] != (True, False):
        last = ", ".join("sliding" if sliding else "full" for sliding in target.sliding_layers[-2:])
        differences.append(Difference("last two layers", last or None, "sliding, full"))
    for kind, suffix, sliding, layer in (("sliding", "_swa", True, -2), ("full", "", False, -1)):
        if sliding not in drafter.sliding_layers:
            continue
        for fact, key, own_layer in (
            (f"head size of {kind} layers", f"attention.key_length{suffix}", -1),
            (f"key-value heads of {kind} layers", "attention.head_count_kv", drafter.sliding_layers.index(sliding)),
        ):
            values = target.own(key, layer), drafter.own(key, own_layer)
            # Where a file leaves one out, the engine has a default of its own and the last word.
            if None not in values and values[0] != values[1]:
                differences.append(Difference(fact, *values))
    return differences


def _refuse_differences(target: GgufFacts, drafter: GgufFacts, differences: list[Difference], remedy: str) -> None:
    if differences:
        facts = "; ".join(
            f"{difference.fact}: {_shown(difference.target_value)} in the target, "
            f"{_shown(difference.drafter_value)} in the drafter"
            for difference in differences
        )
        sentence = f"{drafter.file_name} does not fit {target.file_name} ({facts})."
        raise ModelError("not-a-pair", sentence, remedy)


def check_pair(target: GgufFacts, drafter: GgufFacts) -> None:
    """Refuses two files that are not a pair for MTP, whatever their names are.

    Raises:
        ModelError: "not-a-pair" with every fact that differs; what `check_target` and `check_drafter` raise.
    """
    check_target(target)
    check_drafter(drafter)
    remedy = "Choose the drafter that was made for this size of the model, or chat without a drafter."
    _refuse_differences(target, drafter, pair_differences(target, drafter), remedy)


def check_draft_model(target: GgufFacts, facts: GgufFacts) -> None:
    """Refuses a classic draft model (a whole small model) whose token ids are not the target's.

    The tokenizer's kind is not compared: Gemma 3 says "llama" and Gemma 4 "gemma4" for the same ids.

    Raises:
        ModelError: "not-a-drafter" or "not-a-pair"; what `check_target` raises for the target.
    """
    check_target(target)
    _refuse_fork(facts, "not-a-drafter")
    if facts.architecture == _DRAFTER_ARCH or facts.architecture in _OTHER_DRAFTERS:
        sentence = f"{facts.file_name} cannot draft by itself: it works on the target's own state."
        raise ModelError("not-a-drafter", sentence, "Use it with the method mtp, or choose a whole small model.")
    _refuse_no_language_model(facts, "not-a-drafter")
    _check_layers(facts)
    remedy = "Choose a small model with the same vocabulary, or draft with the method ngram."
    _refuse_differences(target, facts, _vocabulary_differences(target, facts), remedy)
