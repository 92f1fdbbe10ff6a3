"""Facts of good files, and refusals of what is no GGUF file or cannot be read."""

from __future__ import annotations

import errno
import io
import os
import shutil
import struct
from pathlib import Path

import gguf as gguf_package
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support.ggufbytes import Tensor, array, sections, string, target, words
from support.ggufchecks import Make, Refused, fault_of
from tandem.engine import gguf, gguf_header
from tandem.engine.gguf import ArrayFacts

# --- what is read


def test_demo_pair_reads_as_the_package_gguf_reads_it(demo_pair: tuple[Path, Path]) -> None:
    for path in demo_pair:
        facts = gguf.read_facts(path)
        reader = gguf_package.GGUFReader(path)
        fields = {key: one.contents() for key, one in reader.fields.items() if not key.startswith("GGUF.")}
        assert set(facts.metadata) == set(fields)
        for key, value in facts.metadata.items():
            if not isinstance(value, ArrayFacts):
                assert value == fields[key]
                continue
            assert value.length == len(fields[key])
            if value.values is not None:
                assert list(value.values) == fields[key]
        assert facts.tensor_count == len(reader.tensors)
        assert facts.needed_bytes == max(tensor.data_offset + tensor.n_bytes for tensor in reader.tensors)
        assert facts.needed_bytes <= facts.file_bytes == path.stat().st_size


def test_demo_target_says_what_it_is(demo_pair: tuple[Path, Path]) -> None:
    facts = gguf.read_facts(demo_pair[0])
    assert (facts.architecture, facts.vocabulary, facts.tokenizer_model) == ("gemma4", 4096, "gemma4")
    assert (facts.embedding_length, facts.embedding_length_out, facts.block_count) == (256, None, 6)
    assert (facts.context_length, facts.sliding_window) == (2048, 128)
    assert facts.sliding_layers == (True, True, True, False, True, False)
    assert (facts.file_type, facts.quantisation) == (2, "Q4_0")
    template = facts.chat_template
    assert template is not None
    assert "<|turn>" in template


def test_tensor_sizes_are_those_of_the_package_gguf() -> None:
    for kind, (block, size) in gguf_package.GGML_QUANT_SIZES.items():
        if kind.name == "Q8_1":
            size = 36  # the package says 40; llama.cpp's block_q8_1 is two halves and 32 bytes
        assert gguf_header.TENSOR_TYPES[int(kind)] == (kind.name, block, size)


def test_versions_two_and_three_are_read(tmp_path: Path) -> None:
    for version in (2, 3):
        path = tmp_path / f"{version}.gguf"
        path.write_bytes(sections(target(), version=version).joined())
        assert gguf.read_facts(path).version == version


def test_an_own_alignment_moves_the_weights(tmp_path: Path) -> None:
    path = tmp_path / "a.gguf"
    metadata = target(general__alignment=1024)
    whole = sections(metadata, (Tensor("a"), Tensor("b")), alignment=1024)
    path.write_bytes(whole.joined())
    assert gguf.read_facts(path).needed_bytes == whole.ends()[-1]


def test_bytes_after_the_weights_do_no_harm(tmp_path: Path) -> None:
    path = tmp_path / "a.gguf"
    whole = sections(target()).joined()
    path.write_bytes(whole + bytes(100))
    facts = gguf.read_facts(path)
    assert (facts.needed_bytes, facts.file_bytes) == (len(whole), len(whole) + 100)


def test_the_type_of_most_weights_is_named_where_the_file_type_is_not(make: Make) -> None:
    tensors = (Tensor("a", (32, 4), 2, 72), Tensor("b", (64,), 0, 256))
    assert make(target(general__file_type=b""), tensors=tensors).quantisation == "F32"
    assert make(target(general__file_type=15), tensors=tensors).quantisation == "Q4_K_M"


def test_every_kind_of_value_is_read(make: Make) -> None:
    codes = {0: "<B", 1: "<b", 2: "<H", 3: "<h", 4: "<I", 5: "<i", 6: "<f", 10: "<Q", 11: "<q", 12: "<d"}
    metadata = target()
    for kind, code in codes.items():
        metadata[f"one.{kind}"] = struct.pack("<I", kind) + struct.pack(code, 7)
        metadata[f"many.{kind}"] = array(kind, 3, struct.pack(code, 5) * 3)
    facts = make(metadata)
    for kind in codes:
        many = facts.metadata[f"many.{kind}"]
        assert facts.metadata[f"one.{kind}"] == 7
        assert isinstance(many, ArrayFacts)
        assert (many.length, many.values) == (3, (5, 5, 5))


def test_long_arrays_and_texts_are_passed_over(make: Make) -> None:
    text = struct.pack("<I", 8) + string("x" * (gguf_header.STRING_LIMIT + 1))
    facts = make(target(long__text=text, long__array=array(0, 3_000_000, bytes(3_000_000)), after=7))
    assert "long.text" not in facts.metadata
    assert facts.metadata["long.array"] == ArrayFacts("u8", 3_000_000)
    assert facts.metadata["after"] == 7


def test_more_tensors_than_the_largest_gemma_4_has_are_read(make: Make) -> None:
    assert make(target(), tensors=tuple(Tensor(f"blk.{index}") for index in range(2000))).tensor_count == 2000


def test_a_value_that_is_not_utf8_shows_replacement_characters(make: Make) -> None:
    assert make(target(general__name=struct.pack("<I", 8) + string(b"a\xffb"))).name == "a\ufffdb"


def test_facts_of_the_wrong_kind_are_not_given(make: Make) -> None:
    facts = make(target(gemma4__embedding_length="256", gemma4__context_length=True, tokenizer__ggml__model=3))
    assert (facts.embedding_length, facts.context_length, facts.tokenizer_model) == (None, None, None)


@settings(deadline=None, max_examples=30)
@given(chunk=st.integers(1, 3000))
def test_facts_do_not_depend_on_where_a_read_ends(chunk: int, demo_pair: tuple[Path, Path]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(gguf_header, "_CHUNK", chunk)
        facts = gguf.read_facts(demo_pair[1])
    assert facts == gguf.read_facts(demo_pair[1])


def test_a_header_with_gemma_4s_vocabulary_is_read_in_few_and_small_reads(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sizes = []

    class Counting(io.FileIO):
        def read(self, size: int | None = -1, /) -> bytes:
            sizes.append(size or 0)
            return super().read(size)

    metadata = target(tokenizer__ggml__tokens=words(262_144), tokenizer__ggml__merges=words(514_906))
    path = tmp_path / "a.gguf"
    path.write_bytes(sections(metadata).joined())
    monkeypatch.setattr(io, "FileIO", Counting)
    facts = gguf.read_facts(path)
    assert facts.vocabulary == 262_144
    assert len(facts.token_blocks) == 262_144 // 64 * 8
    assert len(sizes) <= path.stat().st_size // gguf_header._CHUNK + 2
    assert max(sizes) == gguf_header._CHUNK


# --- what is not a file that can be read


def test_no_file(tmp_path: Path) -> None:
    assert fault_of(lambda: gguf.read_facts(tmp_path / "gone.gguf")).fault == "missing"


@pytest.mark.parametrize("name", ["a\0b.gguf", "\ud800.gguf", "n" * 5000])
def test_a_name_that_no_file_can_have(tmp_path: Path, name: str) -> None:
    assert fault_of(lambda: gguf.read_facts(tmp_path / name)).fault == "missing"


def test_a_file_taken_for_a_folder(tmp_path: Path) -> None:
    (tmp_path / "a.gguf").write_bytes(b"GGUF")
    assert fault_of(lambda: gguf.read_facts(tmp_path / "a.gguf" / "b.gguf")).fault == "missing"


@pytest.mark.skipif(os.name == "nt", reason="Windows has no such names")
def test_a_name_of_odd_bytes_is_read_and_shown_clean(tmp_path: Path) -> None:
    path = Path(os.fsdecode(os.fsencode(tmp_path) + b"/\xff\x1b[31m\xe2\x80\xae.gguf"))
    path.write_bytes(sections(target()).joined())
    assert gguf.read_facts(path).architecture == "gemma4"
    path.write_bytes(b"")
    assert fault_of(lambda: gguf.read_facts(path)).sentence == "\ufffd\ufffd[31m\ufffd.gguf is empty."


def test_a_folder(tmp_path: Path) -> None:
    assert fault_of(lambda: gguf.read_facts(tmp_path)).fault == "not-a-file"


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no FIFOs here")
def test_a_fifo_does_not_hang(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.gguf")
    assert fault_of(lambda: gguf.read_facts(tmp_path / "pipe.gguf")).fault == "not-a-file"


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no FIFOs here")
def test_a_fifo_put_in_place_after_the_first_look_does_not_hang(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ordinary = tmp_path.parent.stat
    (tmp_path / "a.gguf").write_bytes(b"GGUF")
    status = (tmp_path / "a.gguf").stat()
    os.mkfifo(tmp_path / "pipe.gguf")
    monkeypatch.setattr(Path, "stat", lambda self, **more: status if self.name == "pipe.gguf" else ordinary(**more))
    assert fault_of(lambda: gguf.read_facts(tmp_path / "pipe.gguf")).fault == "not-a-file"


@pytest.mark.skipif(not Path("/dev/zero").is_char_device(), reason="no /dev/zero here")
def test_a_device() -> None:
    assert fault_of(lambda: gguf.read_facts(Path("/dev/zero"))).fault == "not-a-file"


@pytest.mark.skipif(os.name == "nt", reason="links need a privilege there")
def test_links(tmp_path: Path) -> None:
    (tmp_path / "circle.gguf").symlink_to("circle.gguf")
    assert fault_of(lambda: gguf.read_facts(tmp_path / "circle.gguf")).fault == "unreadable"
    (tmp_path / "nowhere.gguf").symlink_to("gone.gguf")
    assert fault_of(lambda: gguf.read_facts(tmp_path / "nowhere.gguf")).fault == "missing"
    (tmp_path / "real.gguf").write_bytes(sections(target()).joined())
    (tmp_path / "good.gguf").symlink_to("real.gguf")
    assert gguf.read_facts(tmp_path / "good.gguf").architecture == "gemma4"


@pytest.mark.skipif(not hasattr(os, "seteuid"), reason="no users to change to")
def test_no_permission_as_another_user_where_the_tests_run_as_root(tmp_path: Path) -> None:
    path = tmp_path / "secret.gguf"
    path.write_bytes(sections(target()).joined())
    path.chmod(0)
    own = os.geteuid()
    if own == 0:
        os.seteuid(65534)
    try:
        assert fault_of(lambda: gguf.read_facts(path)).fault == "unreadable"
    finally:
        os.seteuid(own)


def test_no_permission_with_an_open_that_refuses(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> int:
        raise PermissionError(errno.EACCES, "no")

    (tmp_path / "a.gguf").write_bytes(b"GGUF")
    monkeypatch.setattr(gguf, "_open_without_waiting", refuse)
    assert fault_of(lambda: gguf.read_facts(tmp_path / "a.gguf")).fault == "unreadable"


def test_a_disk_that_fails_while_reading(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Failing(io.FileIO):
        def read(self, _size: int | None = -1, /) -> bytes:
            raise OSError(errno.EIO, "Input/output error")

    (tmp_path / "a.gguf").write_bytes(b"GGUF")
    monkeypatch.setattr(io, "FileIO", Failing)
    error = fault_of(lambda: gguf.read_facts(tmp_path / "a.gguf"))
    assert error.fault == "unreadable"
    assert "Input/output error" in error.sentence


def test_a_file_that_shrinks_while_it_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Shrinking(io.FileIO):
        def read(self, size: int | None = -1, /) -> bytes:
            part = super().read(size)
            self_path.write_bytes(b"")
            return part

    self_path = tmp_path / "a.gguf"
    self_path.write_bytes(sections(target()).joined())
    monkeypatch.setattr(io, "FileIO", Shrinking)
    monkeypatch.setattr(gguf_header, "_CHUNK", 100)
    error = fault_of(lambda: gguf.read_facts(self_path))
    assert error.fault == "truncated"
    assert "100 bytes" in error.sentence


# --- what is not a GGUF file


def test_no_bytes(refused: Refused) -> None:
    assert refused(b"").fault == "empty"


@pytest.mark.parametrize(
    ("content", "word"),
    [
        (b"This is a text that someone named .gguf\n", "not a GGUF"),
        (b"x", "not a GGUF"),
        (b"\n<!DOCTYPE html><title>Log in</title>", "web page"),
        (b"version https://git-lfs.github.com/spec/v1\n", "Git LFS"),
        (struct.pack("<Q", 20) + b'{"__metadata__":{}}  ', "safetensors"),
        (b"tjgg" + bytes(40), "GGML"),
        (bytes(4096), "not a GGUF"),
    ],
)
def test_other_formats_are_named(refused: Refused, content: bytes, word: str) -> None:
    error = refused(content)
    assert error.fault == "not-gguf"
    assert word in error.sentence


@pytest.mark.parametrize(
    ("version", "fault", "word"),
    [
        (0x03000000, "load-failed", "big-endian"),
        (1, "load-failed", "version 1"),
        (4, "load-failed", "version 4"),
        (0, "corrupt", "version 0"),
        (70_003, "corrupt", "version 70003"),
    ],
)
def test_other_versions_are_refused(refused: Refused, version: int, fault: str, word: str) -> None:
    error = refused(sections(target(), version=version).joined())
    assert error.fault == fault
    assert word in error.sentence


def test_a_good_model_with_a_hole_of_terabytes_behind_it_is_corrupt(
    demo_pair: tuple[Path, Path], tmp_path: Path
) -> None:
    file = tmp_path / "sparse.gguf"
    shutil.copy(demo_pair[0], file)
    os.truncate(file, 1 << 40)
    assert fault_of(lambda: gguf.read_facts(file)).fault == "corrupt"
