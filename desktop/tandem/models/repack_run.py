"""Puts a repack together: reads, finds the grids, writes beside the new file's place, proves, and moves it there."""

from __future__ import annotations

import errno
import os
import re
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, Final, NamedTuple

import msgspec
import numpy as np
from gguf import GGMLQuantizationType, GGUFEndian, GGUFWriter, LlamaFileType, size_label

from tandem.engine.gguf import read_facts
from tandem.engine.gguf_header import printable
from tandem.engine.pairing import check_drafter
from tandem.errors import ModelError, UsageError
from tandem.files import sync_folder
from tandem.models import repack_grid as grid
from tandem.models.disk import FULL, amount, free_bytes, shown
from tandem.models.errors import TransferError
from tandem.models.hashing import check, hash_file
from tandem.models.repack_config import ARCHITECTURE, CONFIG, EMBEDDING, OUTPUT, Config, Wanted, match
from tandem.models.repack_proof import Q4_0, Q8_0, Proof, size_of
from tandem.models.repack_report import OffGrid, RepackReport
from tandem.models.repack_source import INDEX, Source, SourceTensor, read_small
from tandem.models.repack_tokens import SETTINGS, TOKENIZER, Tokens
from tandem.models.stop import Stop

_ALIGNMENT: Final = 32  # of tensor data, GGUF's default
_CHUNK: Final = 1 << 19  # weights at a time: some 60 MB while they are searched
_F32: Final = GGMLQuantizationType.F32
_QUANTISATION_VERSION: Final = 2
_FINDING: Final = 0.5  # share of the time until the proof starts
_README_LIMIT: Final = 1 << 20
_LICENCE: Final = re.compile(rb"---\n(?:(?!---).*\n)*?license:[ ]*([A-Za-z0-9.+-]{1,60})[ ]*\n")


class _Placed(NamedTuple):
    """A matrix, and where its blocks are in the new file."""

    want: Wanted
    tensor: SourceTensor
    start: int


class _Progress:
    """Counts weights, and ends the work when it is to stop."""

    def __init__(self, total: int, stop: Stop | None, tell: Callable[[float], None]) -> None:
        self._total, self._done = max(1, total), 0
        self.stop, self._tell = stop, tell

    def check(self) -> None:
        check(self.stop)

    def step(self, weights: int, first: float, last: float) -> None:
        """More is done of a part of the work that goes from one share to another."""
        self.check()
        self._done += weights
        self._tell(first + (last - first) * min(1.0, self._done / self._total))

    def again(self) -> None:
        self._done = 0


def run(folder: Path, out: Path, stop: Stop | None, tell: Callable[[float], None]) -> RepackReport:
    """See `repack.repack`."""
    folder, out = _places(folder, out)
    config = Config(folder)
    with Source(folder) as source:
        _require_other(folder, out, source)
        pairs = match(config, source.tensors)
        _require_one_embedding(source)
        tokens = Tokens(folder)
        if len(tokens.texts) != config.vocabulary:
            raise ModelError(
                "corrupt",
                f"The drafter has {config.vocabulary:,} tokens, and its tokenizer {len(tokens.texts):,}.",
                "Get tokenizer.json and config.json from the same repository.",
            )
        progress = _Progress(sum(_weights(want) for want, _ in pairs if want.matrix), stop, tell)
        progress.check()
        writer = _header(folder, config, tokens, pairs)
        with _beside(out) as part:
            report = _make(source, pairs, config, writer, part, progress)
            progress.check()
            os.replace(part, out)  # noqa: PTH105  (both are names on one disk)
        sync_folder(out.parent)
    tell(1.0)
    return msgspec.structs.replace(report, out=os.fspath(out))


def _make(
    source: Source,
    pairs: list[tuple[Wanted, SourceTensor]],
    config: Config,
    writer: GGUFWriter,
    part: Path,
    progress: _Progress,
) -> RepackReport:
    """Writes and proves the file `part`."""
    try:
        writer.write_header_to_file(part)
        writer.write_kv_data_to_file()
        writer.write_ti_data_to_file()
    except UnicodeError as error:
        raise ModelError(
            "corrupt", "The tokenizer's files hold text that is no Unicode.", "Download them again.", str(error)
        ) from error
    finally:
        writer.close()
    progress.check()
    with part.open("r+b") as stream:
        stream.seek(0, os.SEEK_END)
        _require_room(part.parent, sum(size_of(Q4_0 if want.matrix else _F32, _weights(want)) for want, _ in pairs))
        placed = _write(source, pairs, config, stream, progress)
        stream.flush()
        os.fsync(stream.fileno())
        proof = _prove(source, placed, stream, progress)
    facts = read_facts(part)  # whatever else the engine would refuse is our fault or the folder's: not moved
    check_drafter(facts)
    if proof.different or facts.needed_bytes > facts.file_bytes:
        raise ModelError(
            "corrupt",
            f"The new file does not hold the same weights: {proof.different:,} of {proof.weights:,} differ.",
            "Check the disk, then try again.",
        )
    saved = size_of(Q8_0, proof.weights) - size_of(Q4_0, proof.weights)
    return RepackReport(
        out=os.fspath(part),
        bytes=facts.file_bytes,
        sha256=hash_file(part, progress.stop).sha256,
        tensors=facts.tensor_count,
        matrices=len(placed),
        weights=proof.weights,
        blocks=proof.weights // grid.BLOCK,
        off_grid=0,  # else it would have been refused
        bits_equal=proof.different == 0,
        negative_zeros=proof.negative_zeros,
        relative_error=proof.relative_error,
        q8_0_bytes=facts.file_bytes + saved,
        q8_0_relative_error=proof.q8_0_relative_error,
    )


def _header(folder: Path, config: Config, tokens: Tokens, pairs: list[tuple[Wanted, SourceTensor]]) -> GGUFWriter:
    writer = GGUFWriter(None, ARCHITECTURE, endianess=GGUFEndian.LITTLE)
    writer.add_type("model")
    writer.add_name(_name(folder))
    if licence := _licence(folder):
        writer.add_license(licence)
    writer.add_size_label(size_label(sum(_weights(want) for want, _ in pairs), 0, 0, 0))
    config.write(writer)
    tokens.write(writer)
    writer.add_quantization_version(_QUANTISATION_VERSION)
    writer.add_file_type(LlamaFileType.MOSTLY_Q4_0)
    factors = config.rope_factors()
    writer.add_tensor_info("rope_freqs.weight", (len(factors),), np.dtype(np.float32), 4 * len(factors), _F32)
    for want, _ in pairs:
        kind = Q4_0 if want.matrix else _F32
        size = size_of(kind, _weights(want))
        writer.add_tensor_info(want.name, want.shape, np.dtype(np.float32), size, kind)
    return writer


def _name(folder: Path) -> str:
    """The repository's name, also where the folder is one of the Hub's cache: models--owner--name/snapshots/commit."""
    name = folder.parent.parent.name if folder.parent.name == "snapshots" else folder.name
    return printable(name.rpartition("--")[2] if name.startswith("models--") else name, 200)


def _licence(folder: Path) -> str | None:
    """What the head of the README says, as on the Hub."""
    try:
        readme = read_small(folder, "README.md", _README_LIMIT)
    except ModelError:
        return None
    found = _LICENCE.match(readme.replace(b"\r\n", b"\n"))
    return found[1].decode("ascii") if found else None


def _write(
    source: Source,
    pairs: list[tuple[Wanted, SourceTensor]],
    config: Config,
    stream: BinaryIO,
    progress: _Progress,
) -> list[_Placed]:
    """Writes the tensors; where blocks are off the grid, it goes on counting and refuses at the end."""
    placed: list[_Placed] = []
    off: dict[str, int] = {}
    blocks = 0
    _pad(stream)
    stream.write(np.asarray(config.rope_factors(), dtype="<f4").tobytes())
    for want, tensor in pairs:
        _pad(stream)
        if not want.matrix:
            stream.write(source.numbers(tensor).astype("<f4").tobytes())
            continue
        placed.append(_Placed(want, tensor, stream.tell()))
        for bits in _chunks(source, tensor):
            found = grid.find(bits.reshape(-1, grid.BLOCK))
            blocks += len(found.found)
            if missed := int((~found.found).sum()):
                off[tensor.name] = off.get(tensor.name, 0) + missed
            stream.write(grid.pack(found).tobytes())
            progress.step(bits.size, 0, _FINDING)
    _pad(stream)
    if off:
        raise OffGrid(off, blocks)
    return placed


def _prove(source: Source, placed: list[_Placed], stream: BinaryIO, progress: _Progress) -> Proof:
    proof = Proof()
    progress.again()
    for _, tensor, start in placed:
        stream.seek(start)
        for bits in _chunks(source, tensor):
            packed = stream.read(size_of(Q4_0, bits.size))
            proof.add(np.frombuffer(packed, dtype=np.uint8), bits.reshape(-1))
            progress.step(bits.size, _FINDING, 0.98)
    return proof


def _chunks(source: Source, tensor: SourceTensor) -> Iterator[grid.Bits]:
    """The rows of a matrix, some at a time."""
    rows = max(1, _CHUNK // tensor.width)
    for first in range(0, tensor.rows, rows):
        yield source.bits(tensor, first, min(tensor.rows, first + rows))


def _weights(want: Wanted) -> int:
    return int(np.prod(want.shape, dtype=np.int64))


def _pad(stream: BinaryIO) -> None:
    stream.write(bytes(-stream.tell() % _ALIGNMENT))


def _places(folder: Path, out: Path) -> tuple[Path, Path]:
    """Both, absolute and without links."""
    try:
        if not folder.is_dir():
            raise UsageError(
                f"{shown(folder)} is not a folder.", "Give the folder that holds the drafter's model.safetensors."
            )
        if out.suffix.lower() != ".gguf":
            raise UsageError("The new file's name must end in .gguf.", "Give another name for it.")
        place = Path(os.path.realpath(out))
        if place.exists() and not place.is_file():
            raise UsageError(f"{shown(out)} is there and is no ordinary file.", "Give another name for the new file.")
        if not place.parent.is_dir():
            raise UsageError(f"There is no folder {shown(out.parent)}.", "Make it first, or give another name.")
    except (OSError, ValueError) as error:
        raise UsageError(f"{shown(out)} is not a possible name.", "Give another name.", str(error)) from error
    return Path(os.path.realpath(folder)), place


def _require_other(folder: Path, out: Path, source: Source) -> None:
    """Never writes over what is read."""
    for name in (*source.files, CONFIG, TOKENIZER, SETTINGS, INDEX):
        path = folder / name
        if path.exists() and out.exists() and path.samefile(out):
            raise UsageError(f"{printable(name)} would be written over.", "Give another name for the new file.")


def _require_one_embedding(source: Source) -> None:
    """An output matrix of its own would be lost."""
    tensors = {name.replace("language_model.", ""): tensor for name, tensor in source.tensors.items()}
    output, embedding = tensors.get(OUTPUT), tensors[EMBEDDING]
    if output is None:
        return
    same = (output.kind, output.shape) == (embedding.kind, embedding.shape) and all(
        np.array_equal(one, other)
        for one, other in zip(_chunks(source, output), _chunks(source, embedding), strict=True)
    )
    if not same:
        raise ModelError(
            "corrupt",
            "The drafter has an output matrix of its own, and the engine uses the embedding.",
            "Use a drafter that is converted already.",
        )


def _require_room(folder: Path, needed: int) -> None:
    free = free_bytes(folder)
    if free < needed:
        raise TransferError(
            "no-room",
            f"The disk of {shown(folder.parent)} has {amount(free)} free, and {amount(needed, up=True)} are needed.",
            "Make room on that disk, or write the new file to another one.",
        )


@contextmanager
def _beside(out: Path) -> Iterator[Path]:
    """A place for the new file on the same disk; whatever is left there at the end is removed.

    Raises:
        TransferError: The disk is full, or cannot be written.
    """
    try:
        with tempfile.TemporaryDirectory(prefix=".tandem-", dir=out.parent, ignore_cleanup_errors=True) as folder:
            yield Path(folder) / out.name
    except OSError as error:
        where, details = shown(out.parent), str(error)
        if error.errno in FULL:
            raise TransferError(
                "disk-full", f"The disk of {where} is full.", "Make room, then try again.", details
            ) from error
        if error.errno in {errno.EACCES, errno.EPERM, errno.EROFS}:
            raise TransferError(
                "disk", f"Tandem may not write to {where}.", "Give another place for the new file.", details
            ) from error
        reason = error.strerror or type(error).__name__
        raise TransferError("disk", f"{where} cannot be written: {reason}.", "Check the disk.", details) from error
