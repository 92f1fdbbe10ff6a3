"""The safetensors files of a folder: one, or several with an index. Headers are checked, weights come in rows.

The package `safetensors` checks each header (its length, that tensors neither overlap nor leave the file, that sizes
fit shapes) but has no bf16 for numpy. So the bytes are read here, at the places that the checked header names, and
seen as 16-bit numbers.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from struct import Struct
from types import TracebackType
from typing import Any, BinaryIO, Final, Self

import msgspec
import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open

from tandem.engine.gguf_header import printable
from tandem.errors import ModelError

ONE_FILE: Final = "model.safetensors"
INDEX: Final = "model.safetensors.index.json"
_AGAIN: Final = "Download it again."
_ITEM_BYTES: Final[Mapping[str, int]] = {"BF16": 2, "F16": 2, "F32": 4}
_HEADER_LIMIT: Final = 64 << 20
_INDEX_LIMIT: Final = 16 << 20
_LENGTH: Final = Struct("<Q")


@dataclass(frozen=True, slots=True)
class SourceTensor:
    """A tensor of a safetensors file.

    Attributes:
        kind: As the file says: "BF16", "F32", …
        file: The file's name.
        start: Where its bytes start, from the beginning of the file.
    """

    name: str
    kind: str
    shape: tuple[int, ...]
    file: str
    start: int

    @property
    def rows(self) -> int:
        """The first dimension; 1 for a single number."""
        return self.shape[0] if self.shape else 1

    @property
    def width(self) -> int:
        """Numbers in a row."""
        return int(np.prod(self.shape[1:], dtype=np.int64))


class _Entry(msgspec.Struct):
    dtype: str
    shape: list[int]
    data_offsets: tuple[int, int]


class _Index(msgspec.Struct):
    weight_map: dict[str, str]


def read_small(folder: Path, name: str, limit: int) -> bytes:
    """The whole of a file that goes with the weights, such as config.json.

    Raises:
        ModelError: "missing", "unreadable", "not-a-file"; "corrupt" where it has more bytes than `limit`.
    """
    try:
        with _open(folder, name) as stream:
            data = stream.read(limit + 1)
    except OSError as error:
        raise _unreadable(name, error) from error
    if len(data) > limit:
        raise ModelError("corrupt", f"{printable(name)} is far too large.", _AGAIN)
    return data


def parse(data: bytes, name: str, kind: Any = Any) -> Any:
    """JSON as msgspec reads it into `kind`.

    Raises:
        ModelError: "corrupt".
    """
    try:
        return msgspec.json.decode(data, type=kind)
    except (msgspec.MsgspecError, RecursionError, UnicodeError) as error:
        raise ModelError("corrupt", f"{printable(name)} is damaged.", _AGAIN, str(error)) from error


class Source:
    """All tensors of a folder; a context manager that keeps its files open.

    Args:
        folder: Has `model.safetensors`, or parts of it and their index.

    Raises:
        ModelError: "missing", "unreadable", "not-a-file", "truncated", "corrupt".
    """

    def __init__(self, folder: Path) -> None:
        self.tensors: dict[str, SourceTensor] = {}
        self._streams: dict[str, BinaryIO] = {}
        self._stack = ExitStack()
        with self._stack:
            whose = _files(folder)
            for file in dict.fromkeys(whose.values()) if whose else [ONE_FILE]:
                self._add(folder, file)
            _compare(whose, self.tensors)
            self._stack = self._stack.pop_all()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.close()

    @property
    def files(self) -> tuple[str, ...]:
        """Names of the files that are read."""
        return tuple(self._streams)

    def bits(self, tensor: SourceTensor, first: int, last: int) -> NDArray[np.uint16]:
        """Rows of a bf16 tensor, as they are.

        Args:
            tensor: Of the kind "BF16".
            first: First row.
            last: The row after the last one.

        Returns:
            Shape [rows, width].

        Raises:
            ModelError: "unreadable", "truncated".
        """
        raw = self._read(tensor, first * tensor.width * 2, (last - first) * tensor.width * 2)
        return np.frombuffer(raw, dtype="<u2").reshape(last - first, tensor.width)

    def numbers(self, tensor: SourceTensor) -> NDArray[np.float32]:
        """The whole of a small tensor of the kind BF16, F16 or F32, shape [numbers].

        Raises:
            ModelError: "unreadable", "truncated"; "corrupt" for another kind.
        """
        count = tensor.rows * tensor.width
        if tensor.kind not in _ITEM_BYTES:
            raise ModelError(
                "corrupt",
                f"{printable(tensor.name)} holds numbers of the kind {printable(tensor.kind, 20)}.",
                "Get the drafter as it was published, in bf16.",
            )
        raw = self._read(tensor, 0, count * _ITEM_BYTES[tensor.kind])
        if tensor.kind == "BF16":
            return (np.frombuffer(raw, dtype="<u2").astype(np.uint32) << np.uint32(16)).view(np.float32)
        return np.frombuffer(raw, dtype="<f4" if tensor.kind == "F32" else "<f2").astype(np.float32)

    def _read(self, tensor: SourceTensor, offset: int, count: int) -> bytes:
        stream = self._streams[tensor.file]
        try:
            stream.seek(tensor.start + offset)
            raw = stream.read(count)
        except OSError as error:
            raise _unreadable(tensor.file, error) from error
        if len(raw) < count:  # it was whole when it was opened
            raise ModelError("truncated", f"{printable(tensor.file)} became shorter while it was read.", _AGAIN)
        return raw

    def _add(self, folder: Path, file: str) -> None:
        shown = printable(file)
        try:
            stream = self._stack.enter_context(_open(folder, file))
            size = os.fstat(stream.fileno()).st_size
            start = stream.read(_LENGTH.size)
            length = _LENGTH.unpack(start)[0] if len(start) == _LENGTH.size else 0
            header = stream.read(length) if length <= _HEADER_LIMIT else b""
        except OSError as error:
            raise _unreadable(file, error) from error
        if start.startswith(b"version "):
            raise ModelError(
                "not-a-file", f"{shown} is a Git LFS pointer, not the weights.", "Fetch it with git lfs pull."
            )
        cut = length <= _HEADER_LIMIT and header[:1] in {b"", b"{"} and len(header) < length
        if cut or size < _LENGTH.size:
            raise ModelError("truncated", f"{shown} ends too early.", "Let its download finish, or download it again.")
        if header[:1] != b"{":
            raise ModelError("corrupt", f"{shown} is not a safetensors file.", _AGAIN)
        entries = {
            name: parse(raw, file, _Entry)
            for name, raw in parse(header, file, dict[str, msgspec.Raw]).items()
            if name != "__metadata__"
        }
        end = _LENGTH.size + length + max((entry.data_offsets[1] for entry in entries.values()), default=0)
        if size < end:
            raise ModelError(
                "truncated",
                f"{shown} is not complete: it has {size:,} of {end:,} bytes.",
                "Let its download finish, or download it again.",
            )
        _check(folder / file, shown)
        for name, entry in entries.items():
            if name in self.tensors:
                raise ModelError("corrupt", f"The tensor {printable(name)} is there twice.", _AGAIN)
            place = _LENGTH.size + length + entry.data_offsets[0]
            self.tensors[name] = SourceTensor(name, entry.dtype, tuple(entry.shape), file, place)
        self._streams[file] = stream


def _check(path: Path, shown: str) -> None:
    try:
        with safe_open(path, framework="numpy"):
            pass
    except SafetensorError as error:
        raise ModelError("corrupt", f"{shown} is damaged.", _AGAIN, str(error)) from error
    except OSError as error:
        raise _unreadable(path.name, error) from error


def _files(folder: Path) -> Mapping[str, str]:
    """Which file has which tensor, by the index; empty where there is none."""
    if os.path.lexists(folder / ONE_FILE) or not os.path.lexists(folder / INDEX):
        return {}
    whose: dict[str, str] = parse(read_small(folder, INDEX, _INDEX_LIMIT), INDEX, _Index).weight_map
    for file in whose.values():
        if not file or "/" in file or "\\" in file or "\0" in file or file in {".", ".."}:
            raise ModelError("corrupt", f"{INDEX} names a file outside its folder.", _AGAIN)
    if not whose:
        raise ModelError("corrupt", f"{INDEX} names no files.", _AGAIN)
    return whose


def _compare(whose: Mapping[str, str], tensors: Mapping[str, SourceTensor]) -> None:
    """Index and files must name the same tensors."""
    if not whose:
        return
    for name in whose.keys() ^ tensors.keys():
        raise ModelError("corrupt", f"{INDEX} and its files disagree about the tensor {printable(name)}.", _AGAIN)
    for name, file in whose.items():
        if tensors[name].file != file:
            raise ModelError("corrupt", f"{INDEX} and its files disagree about the tensor {printable(name)}.", _AGAIN)


def _open(folder: Path, name: str) -> BinaryIO:
    """Opens an ordinary file; a pipe or a device is not waited for."""
    descriptor = os.open(folder / name, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise ModelError("not-a-file", f"{printable(name)} is no ordinary file.", "Put the file itself there.")
    return os.fdopen(descriptor, "rb")


def _unreadable(name: str, error: OSError) -> ModelError:
    shown = printable(name)
    if isinstance(error, FileNotFoundError | NotADirectoryError):
        return ModelError(
            "missing",
            f"There is no {shown} in the folder.",
            "Choose the folder that has the drafter's config.json, tokenizer.json and model.safetensors.",
            str(error),
        )
    reason = error.strerror or type(error).__name__
    return ModelError(
        "unreadable", f"{shown} cannot be read: {reason}.", "Check the disk and the file's permissions.", str(error)
    )
