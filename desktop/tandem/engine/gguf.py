"""Facts from the header of a GGUF file, read safely.

Why not the reader of the package `gguf`: it maps the file (a file that shrinks while mapped ends the process with
SIGBUS), builds a Python object for each element of each array (seconds for a vocabulary of 262,144 tokens and its
merges) and trusts every count and length in the file. How it is read here, and what is refused, is in
`tandem.engine.gguf_header`; what the facts say about targets, drafters and pairs is in `tandem.engine.pairing`.
"""

from __future__ import annotations

import errno
import hashlib
import io
import os
import stat
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from struct import Struct
from types import MappingProxyType
from typing import Final, NoReturn

from tandem.engine.gguf_header import (
    AGAIN,
    CHOOSE,
    FINISH,
    ONLY_NAMED,
    PAIR_LIMIT,
    TENSOR_LIMIT,
    TENSOR_TYPES,
    ArrayFacts,
    Header,
    Scalar,
    printable,
    read_metadata,
    read_tensors,
)
from tandem.errors import ModelError

__all__ = ["ArrayFacts", "GgufFacts", "Scalar", "printable", "read_facts"]

# fmt: off
# general.file_type: LlamaFileType in llama.cpp's gguf-py/constants.py.
_FILE_TYPES: Final[Mapping[int, str]] = {
    0: "F32", 1: "F16", 2: "Q4_0", 3: "Q4_1", 7: "Q8_0", 8: "Q5_0", 9: "Q5_1", 10: "Q2_K", 11: "Q3_K_S",
    12: "Q3_K_M", 13: "Q3_K_L", 14: "Q4_K_S", 15: "Q4_K_M", 16: "Q5_K_S", 17: "Q5_K_M", 18: "Q6_K", 19: "IQ2_XXS",
    20: "IQ2_XS", 21: "Q2_K_S", 22: "IQ3_XS", 23: "IQ3_XXS", 24: "IQ1_S", 25: "IQ4_NL", 26: "IQ3_S", 27: "IQ3_M",
    28: "IQ2_S", 29: "IQ2_M", 30: "IQ4_XS", 31: "IQ1_M", 32: "BF16", 36: "TQ1_0", 37: "TQ2_0", 38: "MXFP4",
    39: "NVFP4", 40: "Q1_0", 41: "Q2_0",
}
# fmt: on

_MUCH_MORE: Final = 1 << 30  # the engine would map and touch a file of holes as if it were a model


@dataclass(frozen=True, slots=True)
class GgufFacts:
    """What the header of one GGUF file says.

    Attributes:
        needed_bytes: End of the last tensor's data; the file is complete when it has that many.
        metadata: Scalars and strings up to 1 MiB, arrays as `ArrayFacts`. Bytes that are not UTF-8 show as U+FFFD.
        weight_type: Tensor type that holds the most bytes, such as "Q4_0"; empty without tensors.
        token_blocks: One 8-byte hash for each 64 tokens, see `pairing.vocabulary_overlap`.
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
        raise ModelError("not-a-file", f"{name} is a device or a pipe, not an ordinary file.", CHOOSE)


def _refuse_other_format(header: Header, start: bytes) -> NoReturn:
    if len(start) < 4 and b"GGUF".startswith(start):
        header.truncated(24)
    named = header.name.lower().endswith(".gguf")
    what, remedy = "is not a GGUF file", ONLY_NAMED if named else CHOOSE
    if start.lstrip()[:1] == b"<":
        what, remedy = "is a web page, not a GGUF file", "Download it again; a login page may have answered instead."
    elif start.startswith(b"version https://git-lfs"):
        what, remedy = "is a Git LFS pointer, not the model itself", "Fetch the file with git lfs pull, or download it."
    elif start[8:9] == b"{":
        what, remedy = "is a safetensors file, not a GGUF file", "Choose a GGUF conversion of this model."
    elif start[:4] in {b"lmgg", b"fmgg", b"tjgg", b"algg"}:
        what, remedy = "has the old GGML format from before GGUF", "Get a newer file of this model."
    header.corrupt(what, remedy, "not-gguf")


def _read_counts(header: Header) -> tuple[int, int, int]:
    """Version, number of tensors, number of keys."""
    start = header.take(min(24, header.size))
    if start[:4] != b"GGUF":
        _refuse_other_format(header, start)
    if header.size < 24:
        header.truncated(24)
    version, tensors, pairs = Struct("<IQQ").unpack_from(start, 4)
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
    header = Header(file, size, name)
    version, tensors, pairs = _read_counts(header)
    metadata, token_blocks = read_metadata(header, pairs)
    alignment = metadata.get("general.alignment", 32)
    if not isinstance(alignment, int) or alignment <= 0 or alignment & (alignment - 1):
        header.corrupt("its alignment is not a power of two")
    needed, by_type = read_tensors(header, tensors, alignment)
    architecture, part = metadata.get("general.architecture"), metadata.get("split.no")
    if architecture is None and isinstance(part, int) and part > 0:
        what = f"is part {part + 1} of a model in several files"
        header.corrupt(what, "Choose the first part.", "unknown-architecture")
    if architecture is None:
        header.corrupt("does not say which architecture it has", AGAIN, "unknown-architecture")
    if not isinstance(architecture, str) or not architecture:
        header.corrupt("its architecture is not a name")
    if needed > header.size:
        header.truncated(needed)
    if header.size > 2 * needed + _MUCH_MORE:
        header.corrupt("is far longer than what is in it")
    model = metadata.get("general.name")
    return GgufFacts(
        path=path,
        version=version,
        file_bytes=header.size,
        needed_bytes=needed,
        architecture=architecture,
        name=model if isinstance(model, str) else None,
        tensor_count=tensors,
        weight_type=TENSOR_TYPES[max(by_type, key=by_type.__getitem__)][0] if by_type else "",
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
                raise ModelError("empty", f"{name} is empty.", FINISH)
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
