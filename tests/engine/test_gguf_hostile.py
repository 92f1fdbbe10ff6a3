"""Files that end early and files that lie: always a refusal, never another exception."""

from __future__ import annotations

import os
import struct
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support.ggufbytes import Sections, Tensor, Value, array, drafter, sections, string, target, words
from support.ggufchecks import Make, Refused, fault_of
from tandem.engine import gguf, gguf_header, pairing
from tandem.engine.gguf import ArrayFacts, GgufFacts
from tandem.errors import ModelError

READ_FAULTS = {"empty", "not-gguf", "truncated", "corrupt", "load-failed", "unknown-architecture"}


@pytest.fixture(scope="module")
def scratch(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("gguf") / "scratch.gguf"


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
        (pairing.check_pair, facts, partner),
        (pairing.check_pair, partner, facts),
        (pairing.check_draft_model, facts, partner),
        (pairing.check_draft_model, partner, facts),
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
def test_huge_counts_and_lengths(refused: Refused, number: int) -> None:
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


def test_counts_beyond_the_limits_are_refused_before_anything_is_read(refused: Refused) -> None:
    for tensors, pairs, fault in (
        (gguf_header.TENSOR_LIMIT + 1, 0, "corrupt"),
        (0, gguf_header.PAIR_LIMIT + 1, "corrupt"),
        (gguf_header.TENSOR_LIMIT, gguf_header.PAIR_LIMIT, "truncated"),
    ):
        assert refused(sections({}, (), tensor_count=tensors, pair_count=pairs).joined()).fault == fault


def test_a_header_beyond_the_limit_is_refused_though_the_file_has_the_bytes(tmp_path: Path) -> None:
    path = tmp_path / "sparse.gguf"
    parts = sections({}, pair_count=1, extra=string("a") + array(0, gguf_header.HEADER_LIMIT, b""))
    path.write_bytes(parts.joined())
    os.truncate(path, 2 * gguf_header.HEADER_LIMIT)
    error = fault_of(lambda: gguf.read_facts(path))
    assert error.fault == "corrupt"
    assert "256 MiB" in error.sentence


def test_texts_are_kept_up_to_a_limit_only(refused: Refused) -> None:
    text = struct.pack("<I", 8) + string("x" * gguf_header.STRING_LIMIT)
    metadata: dict[str, Value] = {f"key.{index}": text for index in range(16)}
    error = refused(sections(metadata).joined())
    assert error.fault == "corrupt"
    assert "16 MiB of text" in error.sentence


def test_lists_of_texts_have_a_limit_in_all(refused: Refused) -> None:
    most = array(8, gguf_header.ARRAY_STRINGS_LIMIT, bytes(8 * gguf_header.ARRAY_STRINGS_LIMIT))
    assert refused(sections(target(one=most, two=["a"])).joined()).fault == "corrupt"


@pytest.mark.parametrize("key", ["tokenizer.ggml.tokens", "tokenizer.ggml.merges"])
def test_a_text_in_a_list_has_a_limit_though_the_file_has_the_bytes(refused: Refused, key: str) -> None:
    long = array(8, 1, string(bytes(3 * gguf_header.STRING_LIMIT)))
    error = refused(sections(target() | {key: long}).joined())
    assert error.fault == "corrupt"
    assert "1 MiB in a list" in error.sentence


def test_numbers_are_kept_up_to_a_limit_in_all(make: Make) -> None:
    arrays: dict[str, Value] = {f"key.{index}": array(0, 4096, bytes(4096)) for index in range(70)}
    facts = make(target() | arrays)
    kept = [value.values for value in facts.metadata.values() if isinstance(value, ArrayFacts) and value.values]
    assert sum(map(len, kept)) <= gguf_header.KEPT_VALUES_IN_ALL
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
def test_contradictions_are_named(refused: Refused, content: Sections, word: str) -> None:
    error = refused(content.joined())
    assert error.fault == "corrupt"
    assert word in error.sentence


def test_a_hostile_name_does_not_reach_the_sentence(refused: Refused) -> None:
    for hostile in ("\x1b[2J\u202e\n", "long" * 10_000):
        content = sections(target(), pair_count=17, extra=string(hostile) + struct.pack("<I", 13)).joined()
        assert refused(content).fault == "corrupt"  # fault_of looks at the sentence
    assert refused(sections(target(), (Tensor(b"\xff\n\x1b", kind=99),)).joined()).fault == "corrupt"


def test_an_old_tensor_format_is_no_damage(refused: Refused) -> None:
    for kind in (4, 5, 31, 33, 36, 38):
        assert refused(sections(target(), (Tensor(kind=kind),)).joined()).fault == "load-failed"


def test_no_architecture(refused: Refused) -> None:
    assert refused(sections({}).joined()).fault == "unknown-architecture"
    error = refused(sections({"split.no": 1, "split.count": 3}).joined())
    assert error.fault == "unknown-architecture"
    assert "part 2" in error.sentence
