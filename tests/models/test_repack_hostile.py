from __future__ import annotations

import json
import os
import shutil
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from support.assistants import QatDrafter, write_safetensors
from tandem.errors import ModelError
from tandem.models.repack import repack

WEIGHTS, INDEX = "model.safetensors", "model.safetensors.index.json"


@pytest.fixture(scope="module")
def drafter(tmp_path_factory: pytest.TempPathFactory, demo_pair: tuple[Path, Path]) -> QatDrafter:
    return QatDrafter(tmp_path_factory.mktemp("qat"), demo_pair[1])


@pytest.fixture
def folder(drafter: QatDrafter, tmp_path: Path) -> Path:
    """A copy that can be spoilt."""
    return Path(shutil.copytree(drafter.folder, tmp_path / "drafter"))


def refused(folder: Path) -> ModelError:
    out = folder.parent / "out.gguf"
    with pytest.raises(ModelError) as caught:
        repack(folder, out)
    error = caught.value
    assert error.sentence.endswith(".")
    assert error.remedy.endswith(".")
    assert "\n" not in error.sentence
    assert [path.name for path in folder.parent.iterdir()] == [folder.name]
    return error


def header(path: Path) -> tuple[dict[str, Any], bytes]:
    raw = path.read_bytes()
    length = struct.unpack_from("<Q", raw)[0]
    return json.loads(raw[8 : 8 + length]), raw[8 + length :]


def with_header(path: Path, entries: dict[str, Any], data: bytes) -> None:
    text = json.dumps(entries).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + data)


def _cut(path: Path, size: int) -> None:
    os.truncate(path, size if size >= 0 else path.stat().st_size + size)


@pytest.mark.parametrize("size", [0, 3, 8, 100, 50_000, -1])
def test_weights_that_end_too_early(folder: Path, size: int) -> None:
    _cut(folder / WEIGHTS, size)
    error = refused(folder)
    assert error.fault == "truncated"
    assert error.sentence.startswith("model.safetensors ")


@pytest.mark.parametrize(
    "content",
    [
        b"<html><body>Please log in</body></html>" * 20,
        b"GGUF" + bytes(400),
        struct.pack("<Q", 1 << 62) + b"{}",
        struct.pack("<Q", 2) + b"[]",
        struct.pack("<Q", 12) + b'{"a": {"b":}' + bytes(9),
        struct.pack("<Q", 40_000) + b"{" * 40_000,
    ],
    ids=["page", "gguf", "endless", "list", "json", "deep"],
)
def test_weights_that_are_something_else(folder: Path, content: bytes) -> None:
    (folder / WEIGHTS).write_bytes(content)
    assert refused(folder).fault in {"corrupt", "truncated"}


def test_a_pointer_of_git_lfs_is_called_one(folder: Path) -> None:
    (folder / WEIGHTS).write_text("version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 157000000\n")
    assert "Git LFS pointer" in refused(folder).sentence


def _overlap(entries: dict[str, Any]) -> None:
    entries["model.norm.weight"]["data_offsets"] = entries["model.layers.0.layer_scalar"]["data_offsets"]


def _backwards(entries: dict[str, Any]) -> None:
    entries["model.norm.weight"]["data_offsets"].reverse()


def _beyond(entries: dict[str, Any]) -> None:
    entries["model.norm.weight"]["data_offsets"][1] += 1 << 40


def _negative(entries: dict[str, Any]) -> None:
    entries["model.norm.weight"]["data_offsets"] = [-2, 254]


def _huge(entries: dict[str, Any]) -> None:
    entries["model.norm.weight"]["shape"] = [1 << 40, 1 << 40]


def _unknown(entries: dict[str, Any]) -> None:
    entries["model.norm.weight"]["dtype"] = "BF15"


def _no_shape(entries: dict[str, Any]) -> None:
    del entries["model.norm.weight"]["shape"]


@pytest.mark.parametrize("spoil", [_overlap, _backwards, _beyond, _negative, _huge, _unknown, _no_shape])
def test_headers_that_lie(folder: Path, spoil: Callable[[dict[str, Any]], None]) -> None:
    entries, data = header(folder / WEIGHTS)
    spoil(entries)
    with_header(folder / WEIGHTS, entries, data)
    assert refused(folder).fault in {"corrupt", "truncated"}


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no pipes with names")
@pytest.mark.parametrize("name", [WEIGHTS, "config.json", "tokenizer.json"])
def test_a_pipe_is_not_waited_for(folder: Path, name: str) -> None:
    (folder / name).unlink()
    os.mkfifo(folder / name)
    assert refused(folder).fault == "not-a-file"


@pytest.mark.parametrize("name", [WEIGHTS, "config.json", "tokenizer.json"])
def test_files_that_are_missing_are_named(folder: Path, name: str) -> None:
    (folder / name).unlink()
    error = refused(folder)
    assert (error.fault, error.sentence) == ("missing", f"There is no {name} in the folder.")


@pytest.mark.parametrize("name", ["config.json", "tokenizer.json", "tokenizer_config.json"])
@pytest.mark.parametrize("content", [b"", b"{", b"\xff\xfe", b"[" * 100_000, b"12", b"[]", b"null"])
def test_damaged_json(folder: Path, name: str, content: bytes) -> None:
    (folder / name).write_bytes(content)
    assert refused(folder).fault == "corrupt"


def split(folder: Path, drafter: QatDrafter) -> dict[str, str]:
    (folder / WEIGHTS).unlink()
    whose = {name: f"part-{number % 2}.safetensors" for number, name in enumerate(drafter.bits)}
    for file in set(whose.values()):
        write_safetensors(folder / file, {name: bits for name, bits in drafter.bits.items() if whose[name] == file})
    return whose


@pytest.mark.parametrize("name", ["../drafter/part-0.safetensors", "/etc/passwd", "..", "", "a\\b", "a\0b"])
def test_an_index_cannot_lead_out_of_the_folder(folder: Path, drafter: QatDrafter, name: str) -> None:
    whose = split(folder, drafter)
    whose["model.norm.weight"] = name
    (folder / INDEX).write_text(json.dumps({"weight_map": whose}))
    assert refused(folder).sentence == f"{INDEX} names a file outside its folder."


def test_an_index_whose_part_is_missing(folder: Path, drafter: QatDrafter) -> None:
    (folder / INDEX).write_text(json.dumps({"weight_map": split(folder, drafter)}))
    (folder / "part-1.safetensors").unlink()
    assert refused(folder).sentence == "There is no part-1.safetensors in the folder."


@pytest.mark.parametrize("change", ["more", "fewer", "other", "none"])
def test_an_index_that_disagrees(folder: Path, drafter: QatDrafter, change: str) -> None:
    whose = split(folder, drafter)
    name = "model.norm.weight"
    if change == "more":
        whose["model.layers.9.x"] = "part-0.safetensors"
    elif change == "fewer":
        del whose[name]
    elif change == "other":
        whose[name] = "part-0.safetensors" if whose[name] == "part-1.safetensors" else "part-1.safetensors"
    else:
        whose.clear()
    (folder / INDEX).write_text(json.dumps({"weight_map": whose}))
    assert refused(folder).fault == "corrupt"


def test_a_tensor_in_two_parts(folder: Path, drafter: QatDrafter) -> None:
    whose = split(folder, drafter)
    name = next(name for name, file in whose.items() if file == "part-0.safetensors")
    other = {name: drafter.bits[name] for name, file in whose.items() if file == "part-1.safetensors"}
    write_safetensors(folder / "part-1.safetensors", {**other, name: drafter.bits[name]})
    (folder / INDEX).write_text(json.dumps({"weight_map": whose}))
    assert refused(folder).sentence == f"The tensor {name} is there twice."


def test_names_that_cannot_be_printed_stay_out_of_sentences(folder: Path, drafter: QatDrafter) -> None:
    more = {"evil\x1b[31m\nname" + "x" * 500: np.zeros((1,), dtype=np.uint16)}
    write_safetensors(folder / WEIGHTS, {**drafter.bits, **more})
    sentence = refused(folder).sentence
    assert sentence.isprintable()
    assert len(sentence) < 400


@pytest.mark.skipif(os.name != "posix", reason="names of bytes")
def test_folders_whose_names_are_no_text(drafter: QatDrafter, tmp_path: Path) -> None:
    place = Path(os.fsdecode(os.fsencode(tmp_path) + b"/\xff\xfe \xea\xb0\x80"))
    shutil.copytree(drafter.folder, place)
    report = repack(place, place / os.fsdecode(b"\xff.gguf"))
    assert report.bits_equal
    assert (place / os.fsdecode(b"\xff.gguf")).stat().st_size == report.bytes


def test_weights_that_shrink_while_they_are_read(folder: Path) -> None:
    def tell(_share: float) -> None:
        _cut(folder / WEIGHTS, 2_000_000)

    with pytest.raises(ModelError) as caught:
        repack(folder, folder.parent / "out.gguf", tell=tell)
    assert caught.value.sentence == "model.safetensors became shorter while it was read."
    assert not (folder.parent / "out.gguf").exists()
