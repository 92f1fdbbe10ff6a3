from __future__ import annotations

import errno
import io
import os
import struct
from collections.abc import Callable
from functools import partial
from pathlib import Path

import gguf as gguf_package
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support.ggufbytes import Sections, Tensor, Value, array, drafter, sections, string, target, words
from tandem.engine import gguf
from tandem.engine.gguf import ArrayFacts, GgufFacts
from tandem.errors import ModelError

READ_FAULTS = {"empty", "not-gguf", "truncated", "corrupt", "load-failed", "unknown-architecture"}

Make = Callable[..., GgufFacts]


def fault_of(call: Callable[[], object]) -> ModelError:
    with pytest.raises(ModelError) as caught:
        call()
    error = caught.value
    for text in (error.sentence, error.remedy):
        assert text.endswith(".")
        assert text.isprintable()
        assert len(text) < 1000
    return error


@pytest.fixture
def refused(tmp_path: Path) -> Callable[[bytes], ModelError]:
    path = tmp_path / "hostile.gguf"

    def read(content: bytes) -> ModelError:
        path.write_bytes(content)
        return fault_of(lambda: gguf.read_facts(path))

    return read


@pytest.fixture
def make(tmp_path: Path) -> Make:
    """Facts of a file with this metadata."""

    def facts(metadata: dict[str, Value], name: str = "a.gguf", tensors: tuple[Tensor, ...] = (Tensor(),)) -> GgufFacts:
        path = tmp_path / name
        path.write_bytes(sections(metadata, tensors).joined())
        return gguf.read_facts(path)

    return facts


@pytest.fixture(scope="module")
def scratch(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("gguf") / "scratch.gguf"


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
        assert gguf._TENSOR_TYPES[int(kind)] == (kind.name, block, size)


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
    text = struct.pack("<I", 8) + string("x" * (gguf.STRING_LIMIT + 1))
    facts = make(target(long__text=text, long__array=array(0, 3_000_000, bytes(3_000_000)), after=7))
    assert "long.text" not in facts.metadata
    assert facts.metadata["long.array"] == ArrayFacts("u8", 3_000_000)
    assert facts.metadata["after"] == 7


def test_a_value_that_is_not_utf8_shows_replacement_characters(make: Make) -> None:
    assert make(target(general__name=struct.pack("<I", 8) + string(b"a\xffb"))).name == "a\ufffdb"


def test_facts_of_the_wrong_kind_are_not_given(make: Make) -> None:
    facts = make(target(gemma4__embedding_length="256", gemma4__context_length=True, tokenizer__ggml__model=3))
    assert (facts.embedding_length, facts.context_length, facts.tokenizer_model) == (None, None, None)


@settings(deadline=None, max_examples=30)
@given(chunk=st.integers(1, 3000))
def test_facts_do_not_depend_on_where_a_read_ends(chunk: int, demo_pair: tuple[Path, Path]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(gguf, "_CHUNK", chunk)
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
    assert len(sizes) <= path.stat().st_size // gguf._CHUNK + 2
    assert max(sizes) == gguf._CHUNK


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
    monkeypatch.setattr(gguf, "_CHUNK", 100)
    error = fault_of(lambda: gguf.read_facts(self_path))
    assert error.fault == "truncated"
    assert "100 bytes" in error.sentence


# --- what is not a GGUF file


def test_no_bytes(refused: Callable[[bytes], ModelError]) -> None:
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
def test_other_formats_are_named(refused: Callable[[bytes], ModelError], content: bytes, word: str) -> None:
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
def test_other_versions_are_refused(
    refused: Callable[[bytes], ModelError], version: int, fault: str, word: str
) -> None:
    error = refused(sections(target(), version=version).joined())
    assert error.fault == fault
    assert word in error.sentence


# --- files that end early


def test_a_cut_anywhere_is_told_with_both_sizes(tmp_path: Path) -> None:
    whole = sections(target(), (Tensor("a"), Tensor("b"))).joined()
    path = tmp_path / "a.gguf"
    for length in range(1, len(whole)):
        path.write_bytes(whole[:length])
        error = fault_of(lambda: gguf.read_facts(path))
        assert error.fault == "truncated", length
        assert f"it has {length:,} bytes" in error.sentence
    path.write_bytes(whole)
    assert gguf.read_facts(path).needed_bytes == len(whole)


def test_a_cut_at_each_section_says_what_it_needs(tmp_path: Path) -> None:
    parts = sections(target(), (Tensor("a"), Tensor("b")))
    whole, ends = parts.joined(), parts.ends()
    path = tmp_path / "a.gguf"
    for end, needed in zip(ends, (None, None, ends[-1], None), strict=True):
        path.write_bytes(whole[: end - 1])
        assert fault_of(lambda: gguf.read_facts(path)).fault == "truncated"
        if end == len(whole):
            break
        path.write_bytes(whole[:end])
        error = fault_of(lambda: gguf.read_facts(path))
        assert error.fault == "truncated"
        if needed:
            assert f"at least {needed:,}" in error.sentence


@settings(deadline=None, max_examples=100)
@given(data=st.data())
def test_a_cut_anywhere_in_the_demo_drafter(data: st.DataObject, demo_pair: tuple[Path, Path], scratch: Path) -> None:
    whole = demo_pair[1].read_bytes()
    needed = gguf.read_facts(demo_pair[1]).needed_bytes
    length = data.draw(st.one_of(st.integers(1, 160_000), st.integers(1, needed - 1)))
    scratch.write_bytes(whole[:length])
    assert fault_of(lambda: gguf.read_facts(scratch)).fault == "truncated"


# --- files that lie


def attempt(call: Callable[[], object]) -> ModelError | None:
    """The ModelError that a call ends with; any other exception fails the test."""
    try:
        call()
    except ModelError as error:
        return error
    return None


def everything(path: Path, partner: GgufFacts) -> None:
    """Reads and checks a file in every role; only facts or a ModelError may come of it."""
    error = attempt(lambda: gguf.read_facts(path))
    if error:
        assert error.fault in READ_FAULTS
        assert error.sentence.isprintable()
        return
    facts = gguf.read_facts(path)
    for check, first, second in (
        (gguf.check_pair, facts, partner),
        (gguf.check_pair, partner, facts),
        (gguf.check_draft_model, facts, partner),
        (gguf.check_draft_model, partner, facts),
    ):
        error = attempt(partial(check, first, second))
        assert error is None or error.sentence.isprintable()
    for name in ("quantisation", "vocabulary", "token_digest", "chat_template", "sliding_layers", "file_name"):
        getattr(facts, name)


@pytest.mark.parametrize(
    "metadata", [target(tokenizer__ggml__tokens=words(3)), drafter(tokenizer__ggml__tokens=words(3))]
)
def test_every_single_bit_flip_of_a_header(metadata: dict[str, Value], make: Make, tmp_path: Path) -> None:
    partner = make(target(tokenizer__ggml__tokens=words(3)), "partner.gguf")
    parts = sections(metadata, (Tensor("a"), Tensor("b", (64,), 0, 256)))
    whole, header = bytearray(parts.joined()), parts.ends()[2]
    path = tmp_path / "flipped.gguf"
    for bit in range(0, 8 * header):
        whole[bit // 8] ^= 1 << bit % 8
        path.write_bytes(whole)
        everything(path, partner)
        whole[bit // 8] ^= 1 << bit % 8


@settings(deadline=None, max_examples=100)
@given(flips=st.lists(st.tuples(st.integers(0, 155_871), st.integers(0, 7)), min_size=1, max_size=4))
def test_bit_flips_in_the_demo_drafters_header(
    flips: list[tuple[int, int]], demo_pair: tuple[Path, Path], scratch: Path
) -> None:
    whole = bytearray(demo_pair[1].read_bytes())
    for place, bit in flips:
        whole[place] ^= 1 << bit
    scratch.write_bytes(whole)
    everything(scratch, gguf.read_facts(demo_pair[0]))


@settings(deadline=None, max_examples=200)
@given(content=st.binary(max_size=300), tensors=st.integers(0, 3), pairs=st.integers(0, 3))
def test_noise_behind_a_good_beginning(
    content: bytes, tensors: int, pairs: int, demo_pair: tuple[Path, Path], scratch: Path
) -> None:
    scratch.write_bytes(b"GGUF" + struct.pack("<IQQ", 3, tensors, pairs) + content)
    everything(scratch, gguf.read_facts(demo_pair[0]))


HUGE = [2**31, 2**32, 2**40, 2**62, 2**63 - 1, 2**63, 2**64 - 1]


@pytest.mark.parametrize("number", HUGE)
def test_huge_counts_and_lengths(refused: Callable[[bytes], ModelError], number: int) -> None:
    count = struct.pack("<Q", number)
    metadata = {"general.architecture": "gemma4"}
    for content in (
        sections(metadata, tensor_count=number).joined(),
        sections(metadata, pair_count=number).joined(),
        sections(metadata, pair_count=2, extra=count + b"key").joined(),  # a key
        sections(metadata, pair_count=2, extra=string("a") + struct.pack("<I", 8) + count).joined(),  # a text
        sections(metadata, pair_count=2, extra=string("a") + array(8, number, string("b"))).joined(),
        sections(metadata, pair_count=2, extra=string("a") + array(8, 1, count)).joined(),  # a text in an array
        sections(metadata, pair_count=2, extra=string("tokenizer.ggml.tokens") + array(8, 1, count)).joined(),
        sections(metadata, pair_count=2, extra=string("a") + array(12, number, b"b")).joined(),
        sections(metadata, (Tensor(shape=(number,)),)).joined(),
        sections(metadata, (Tensor(shape=(32, number, 32, 32)),)).joined(),
        sections(metadata, (Tensor(shape=(number, number, number, number)),)).joined(),
    ):
        assert refused(content).fault in {"corrupt", "truncated"}


def test_counts_beyond_the_limits_are_refused_before_anything_is_read(refused: Callable[[bytes], ModelError]) -> None:
    for tensors, pairs, fault in (
        (gguf.TENSOR_LIMIT + 1, 0, "corrupt"),
        (0, gguf.PAIR_LIMIT + 1, "corrupt"),
        (gguf.TENSOR_LIMIT, gguf.PAIR_LIMIT, "truncated"),
    ):
        assert refused(sections({}, (), tensor_count=tensors, pair_count=pairs).joined()).fault == fault


def test_a_header_beyond_the_limit_is_refused_though_the_file_has_the_bytes(tmp_path: Path) -> None:
    path = tmp_path / "sparse.gguf"
    parts = sections({}, pair_count=1, extra=string("a") + array(0, gguf.HEADER_LIMIT, b""))
    path.write_bytes(parts.joined())
    os.truncate(path, 2 * gguf.HEADER_LIMIT)
    error = fault_of(lambda: gguf.read_facts(path))
    assert error.fault == "corrupt"
    assert "256 MiB" in error.sentence


def test_texts_are_kept_up_to_a_limit_only(refused: Callable[[bytes], ModelError]) -> None:
    text = struct.pack("<I", 8) + string("x" * gguf.STRING_LIMIT)
    metadata: dict[str, Value] = {f"key.{index}": text for index in range(16)}
    error = refused(sections(metadata).joined())
    assert error.fault == "corrupt"
    assert "16 MiB of text" in error.sentence


def test_lists_of_texts_have_a_limit_in_all(refused: Callable[[bytes], ModelError]) -> None:
    most = array(8, gguf.ARRAY_STRINGS_LIMIT, bytes(8 * gguf.ARRAY_STRINGS_LIMIT))
    assert refused(sections(target(one=most, two=["a"])).joined()).fault == "corrupt"


def test_numbers_are_kept_up_to_a_limit_in_all(make: Make) -> None:
    arrays: dict[str, Value] = {f"key.{index}": array(0, 4096, bytes(4096)) for index in range(70)}
    facts = make(target() | arrays)
    kept = [value.values for value in facts.metadata.values() if isinstance(value, ArrayFacts) and value.values]
    assert sum(map(len, kept)) <= gguf.KEPT_VALUES_IN_ALL
    assert facts.metadata["key.69"] == ArrayFacts("u8", 4096)


@pytest.mark.parametrize(
    ("content", "word"),
    [
        (sections(target(), pair_count=17, extra=string("general.name") + struct.pack("<II", 4, 1)), "twice"),
        (sections(target(), (Tensor("a"), Tensor("a"))), "twice"),
        (sections(target(), pair_count=17, extra=string("") + struct.pack("<II", 4, 1)), "length 0"),
        (sections(target(), pair_count=17, extra=string(b"\xff\xfe") + struct.pack("<II", 4, 1)), "not text"),
        (sections(target(), pair_count=17, extra=string("k" * 65_537) + struct.pack("<II", 4, 1)), "65,537"),
        (sections(target(odd=struct.pack("<I", 13))), "unknown type 13"),
        (sections(target(odd=struct.pack("<I", 2**32 - 1))), "unknown type"),
        (sections(target(odd=array(9, 1, array(0, 1, b"a")))), "list of lists"),
        (sections(target(odd=array(99, 1, b"a"))), "unknown type 99"),
        (sections(target(general__alignment=0)), "alignment"),
        (sections(target(general__alignment=48)), "alignment"),
        (sections(target(general__alignment=True)), "alignment"),
        (sections(target(general__alignment=struct.pack("<Ii", 5, 32))), "alignment"),
        (sections(target(general__alignment="32")), "alignment"),
        (sections(target(general__architecture=3)), "architecture"),
        (sections(target(general__architecture="")), "architecture"),
        (sections(target(), (Tensor(shape=(1, 1, 1, 1, 1)),)), "5 dimensions"),
        (sections(target(), (Tensor(shape=(2**33, 2**33)),)), "impossible shape"),
        (sections(target(), (Tensor(shape=(0, 2**63)),)), "impossible shape"),
        (sections(target(), (Tensor(shape=(33,)),)), "do not fit its type Q4_0"),
        (sections(target(), (Tensor(shape=()),)), "do not fit its type Q4_0"),
        (sections(target(), (Tensor(kind=43),)), "does not know"),
        (sections(target(), (Tensor(kind=2**32 - 1),)), "does not know"),
        (sections(target(), (Tensor("a"), Tensor("b", offset=64))), "does not begin"),
        (sections(target(), (Tensor("a", offset=32),)), "does not begin"),
        (sections(target(), (Tensor("n" * 64),)), "length 64"),
        (sections(target(), (Tensor(shape=(2**62,), kind=0, size=0), Tensor("b", offset=0))), "beyond any disk"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_contradictions_are_named(refused: Callable[[bytes], ModelError], content: Sections, word: str) -> None:
    error = refused(content.joined())
    assert error.fault == "corrupt"
    assert word in error.sentence


def test_a_hostile_name_does_not_reach_the_sentence(refused: Callable[[bytes], ModelError]) -> None:
    for hostile in ("\x1b[2J\u202e\n", "long" * 10_000):
        content = sections(target(), pair_count=17, extra=string(hostile) + struct.pack("<I", 13)).joined()
        assert refused(content).fault == "corrupt"  # fault_of looks at the sentence
    assert refused(sections(target(), (Tensor(b"\xff\n\x1b", kind=99),)).joined()).fault == "corrupt"


def test_an_old_tensor_format_is_no_damage(refused: Callable[[bytes], ModelError]) -> None:
    for kind in (4, 5, 31, 33, 36, 38):
        assert refused(sections(target(), (Tensor(kind=kind),)).joined()).fault == "load-failed"


def test_no_architecture(refused: Callable[[bytes], ModelError]) -> None:
    assert refused(sections({}).joined()).fault == "unknown-architecture"
    error = refused(sections({"split.no": 1, "split.count": 3}).joined())
    assert error.fault == "unknown-architecture"
    assert "part 2" in error.sentence


# --- roles


def test_roles_of_the_demo_pair(demo_pair: tuple[Path, Path]) -> None:
    model, helper = map(gguf.read_facts, demo_pair)
    gguf.check_target(model)
    gguf.check_drafter(helper)
    gguf.check_pair(model, helper)
    assert gguf.pair_differences(model, helper) == []
    assert fault_of(lambda: gguf.check_target(helper)).fault == "not-a-target"
    assert fault_of(lambda: gguf.check_drafter(model)).fault == "not-a-drafter"
    assert fault_of(lambda: gguf.check_pair(helper, model)).fault == "not-a-target"
    assert fault_of(lambda: gguf.check_pair(model, model)).fault == "not-a-drafter"


def test_a_renamed_drafter_still_pairs(demo_pair: tuple[Path, Path], tmp_path: Path) -> None:
    renamed = tmp_path / "a.gguf"
    renamed.write_bytes(demo_pair[1].read_bytes())
    gguf.check_pair(gguf.read_facts(demo_pair[0]), gguf.read_facts(renamed))


@pytest.mark.parametrize("architecture", ["gemma4_assistant", "gemma4_mtp"])
def test_drafters_of_other_programs_are_named_in_every_role(make: Make, architecture: str) -> None:
    fork, model = make(drafter(general__architecture=architecture), "b.gguf"), make(target())
    for fault, check in (
        ("not-a-target", lambda: gguf.check_target(fork)),
        ("not-a-drafter", lambda: gguf.check_drafter(fork)),
        ("not-a-drafter", lambda: gguf.check_draft_model(model, fork)),
    ):
        error = fault_of(check)
        assert error.fault == fault
        assert architecture in error.sentence


@pytest.mark.parametrize(
    "changes",
    [
        {"general__architecture": "eagle3"},
        {"general__architecture": "clip"},
        {"general__type": "mmproj"},
        {"general__type": "adapter"},
    ],
)
def test_files_that_are_no_language_model(make: Make, changes: dict[str, Value]) -> None:
    assert fault_of(lambda: gguf.check_target(make(target(**changes)))).fault == "not-a-target"
    other, model = make(target(**changes), "b.gguf"), make(target())
    assert fault_of(lambda: gguf.check_draft_model(model, other)).fault == "not-a-drafter"


def test_a_file_without_weights_is_no_target_unless_other_parts_hold_them(make: Make) -> None:
    assert fault_of(lambda: gguf.check_target(make(target(), tensors=()))).fault == "not-a-target"
    gguf.check_target(make(target(split__no=0, split__count=3), tensors=()))


def test_another_familys_model_can_be_a_target_but_not_of_a_gemma_4_drafter(make: Make) -> None:
    model = make({"general.architecture": "llama", "llama.block_count": 4, "tokenizer.ggml.tokens": words()})
    gguf.check_target(model)
    helper = make(drafter(), "b.gguf")
    error = fault_of(lambda: gguf.check_pair(model, helper))
    assert error.fault == "not-a-pair"
    assert "llama" in error.sentence


@pytest.mark.parametrize(
    "changes",
    [
        {"gemma4__block_count": b""},
        {"gemma4__block_count": 0},
        {"gemma4__block_count": 513},
        {"gemma4__attention__shared_kv_layers": 5},
    ],
)
def test_a_target_over_which_the_engine_would_abort(make: Make, changes: dict[str, Value]) -> None:
    assert fault_of(lambda: gguf.check_target(make(target(**changes)))).fault == "corrupt"


@pytest.mark.parametrize(
    "changes",
    [
        {"drafter__block_count": 1},
        {"drafter__nextn_predict_layers": 0},
        {"drafter__nextn_predict_layers": b""},
        {"drafter__nextn_predict_layers": 3},
        {"drafter__embedding_length_out": b""},
        {"drafter__embedding_length_out": 128},
        {"drafter__attention__sliding_window_pattern": [False, False]},
        {"drafter__attention__sliding_window_pattern": b""},
    ],
)
def test_a_drafter_over_which_the_engine_would_abort(make: Make, changes: dict[str, Value]) -> None:
    assert fault_of(lambda: gguf.check_drafter(make(drafter(**changes)))).fault == "corrupt"


# --- pairs


@pytest.mark.parametrize(
    ("changes", "fact", "values"),
    [
        ({"drafter__embedding_length_out": 2560}, "hidden size", (256, 2560)),
        ({"tokenizer__ggml__model": "llama"}, "tokenizer", ("gemma4", "llama")),
        ({"tokenizer__ggml__tokens": words(300)}, "vocabulary size", (256, 300)),
        ({"tokenizer__ggml__tokens": b""}, "vocabulary size", (256, None)),
        ({"drafter__attention__key_length": 512}, "head size of full layers", (128, 512)),
        ({"drafter__attention__key_length_swa": 256}, "head size of sliding layers", (64, 256)),
        ({"drafter__attention__head_count_kv": 2}, "key-value heads of sliding layers", (1, 2)),
        ({"drafter__attention__head_count_kv": [1, 1]}, "key-value heads of full layers", (2, 1)),
    ],
)
def test_each_fact_in_which_a_drafter_must_fit(
    make: Make, changes: dict[str, Value], fact: str, values: tuple[object, object]
) -> None:
    model, helper = make(target(), "target.gguf"), make(drafter(**changes), "drafter.gguf")
    assert gguf.pair_differences(model, helper) == [gguf.Difference(fact, *values)]  # type: ignore[arg-type]
    error = fault_of(lambda: gguf.check_pair(model, helper))
    assert error.fault == "not-a-pair"
    for part in (fact, "target.gguf", "drafter.gguf"):
        assert part in error.sentence
    for value in values:
        shown = "not given" if value is None else f"{value:,}" if isinstance(value, int) else value
        assert str(shown) in error.sentence


def test_all_differences_are_named_at_once(make: Make) -> None:
    helper = make(drafter(drafter__embedding_length_out=2560, tokenizer__ggml__tokens=words(300)), "b.gguf")
    sentence = fault_of(lambda: gguf.check_pair(make(target()), helper)).sentence
    assert "hidden size" in sentence
    assert "vocabulary size" in sentence


def test_the_targets_last_two_layers_must_be_those_that_the_drafter_reads(make: Make) -> None:
    helper = make(drafter(), "b.gguf")
    for pattern in ([True, True, True, True, False, True], [False] * 6, b""):
        model = make(target(gemma4__attention__sliding_window_pattern=pattern))
        assert [one.fact for one in gguf.pair_differences(model, helper)] == ["last two layers"]


def test_what_the_engine_does_not_compare_does_not_part_a_pair(make: Make) -> None:
    helper = make(
        drafter(
            drafter__attention__sliding_window=64,
            drafter__attention__head_count_kv=b"",
            drafter__attention__key_length=b"",
            general__name="any",
            tokenizer__chat_template="other",
        ),
        "b.gguf",
    )
    gguf.check_pair(make(target()), helper)


def test_another_token_list_of_the_same_size_parts_a_pair(make: Make) -> None:
    model, helper = make(target()), make(drafter(tokenizer__ggml__tokens=words(256, "mot")), "b.gguf")
    assert gguf.vocabulary_overlap(model, helper) == 0
    assert [one.fact for one in gguf.pair_differences(model, helper)] == ["token list"]
    assert "0% alike" in fault_of(lambda: gguf.check_pair(model, helper)).sentence


def test_a_few_other_tokens_do_not_part_a_pair(make: Make) -> None:
    tokens = words()
    tokens[105] = "<start_of_turn>"
    model, helper = make(target()), make(drafter(tokenizer__ggml__tokens=tokens), "b.gguf")
    assert gguf.vocabulary_overlap(model, helper) == 0.75
    assert model.token_digest != helper.token_digest
    gguf.check_pair(model, helper)


# --- classic draft models


def test_a_small_model_with_the_same_vocabulary_can_draft(make: Make) -> None:
    tokens = words()
    tokens[105] = "<start_of_turn>"
    small = {
        "general.architecture": "gemma3",
        "gemma3.block_count": 2,
        "tokenizer.ggml.model": "llama",
        "tokenizer.ggml.tokens": tokens,
    }
    gguf.check_draft_model(make(target()), make(small, "b.gguf"))


def test_a_small_model_with_another_vocabulary_cannot_draft(make: Make) -> None:
    model = make(target())
    for tokens, word in ((words(255), "255"), (words(256, "mot"), "token list")):
        small = make(target(tokenizer__ggml__tokens=tokens), "b.gguf")
        error = fault_of(partial(gguf.check_draft_model, model, small))
        assert error.fault == "not-a-pair"
        assert word in error.sentence


def test_an_assistant_is_no_classic_draft_model(demo_pair: tuple[Path, Path]) -> None:
    model, helper = map(gguf.read_facts, demo_pair)
    assert fault_of(lambda: gguf.check_draft_model(model, helper)).fault == "not-a-drafter"
    gguf.check_draft_model(model, model)
    assert fault_of(lambda: gguf.check_draft_model(helper, model)).fault == "not-a-target"
