"""Are two files a pair, and if not, which fact differs."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from support.ggufbytes import Value, words
from support.modelfiles import TOKENS, drafter_bytes, llama_bytes, target_bytes
from tandem.engine.gguf import read_facts
from tandem.engine.pairing import pair_differences
from tandem.models.pair_facts import QAT_DRAFTER_ONLY, QAT_TARGET_ONLY, SWAPPED, PairReport, compare


def written(folder: Path, name: str, data: bytes) -> Path:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    return path


def report(folder: Path, target: bytes, drafter: bytes) -> PairReport:
    return compare(written(folder, "t.gguf", target), written(folder, "d.gguf", drafter))


def differing(found: PairReport) -> set[str]:
    return {fact.name for fact in found.facts if not fact.fits}


@pytest.mark.parametrize("size", ["e2b", "e4b"])
@pytest.mark.parametrize("name", ["a.gguf", "田中/모델.gguf", "Загрузки/🦙.bin", "no suffix"])
def test_a_renamed_drafter_pairs(tmp_path: Path, size: str, name: str) -> None:
    # Rows 1 and 44 of the field problems.
    target = written(tmp_path, "model.gguf", target_bytes(size))
    drafter = written(tmp_path, name, drafter_bytes(size))
    found = compare(target, drafter)
    assert found.is_pair
    assert (found.target, found.drafter, found.swapped) == (str(target), str(drafter), False)
    assert not differing(found)
    assert found.sentence == found.remedy == found.fault == ""
    assert {"architecture", "hidden size", "vocabulary size", "tokenizer", "token list"} <= {
        fact.name for fact in found.facts
    }


@pytest.mark.parametrize(("target", "drafter"), [("e2b", "e4b"), ("e4b", "e2b")])
def test_a_drafter_of_the_other_size_is_no_pair_and_the_facts_are_named(
    tmp_path: Path, target: str, drafter: str
) -> None:
    # Row 1 of the field problems.
    found = report(tmp_path, target_bytes(target), drafter_bytes(drafter))
    assert not found.is_pair
    assert found.fault == "not-a-pair"
    assert differing(found) == {
        "hidden size",
        "key-value heads of sliding layers",
        "key-value heads of full layers",
    }
    assert "1,536" in found.sentence
    assert "2,560" in found.sentence
    (hidden,) = [fact for fact in found.facts if fact.name == "hidden size"]
    assert {hidden.target, hidden.drafter} == {"1,536", "2,560"}


def test_a_llama_drafter_beside_a_gemma_target(tmp_path: Path) -> None:
    # Row 62 of the field problems.
    found = report(tmp_path, target_bytes(), llama_bytes(TOKENS))
    assert not found.is_pair
    assert found.fault == "not-a-drafter"
    assert "llama" in found.sentence
    assert "vocabulary size" not in differing(found)  # which is equal, and no proof of anything
    assert {"architecture", "tokenizer", "token list"} <= differing(found)


@pytest.mark.parametrize("architecture", ["gemma4_assistant", "gemma4_mtp"])
def test_other_programs_drafters_are_named(tmp_path: Path, architecture: str) -> None:
    found = report(tmp_path, target_bytes(), drafter_bytes(general__architecture=architecture))
    assert not found.is_pair
    assert architecture in found.sentence
    assert "architecture" in differing(found)


@pytest.mark.parametrize("architecture", ["eagle3", "dflash", "clip", "llama", "gemma3"])
def test_foreign_targets_are_named(tmp_path: Path, architecture: str) -> None:
    found = report(tmp_path, target_bytes(general__architecture=architecture), drafter_bytes())
    assert not found.is_pair
    assert "architecture" in differing(found)
    assert found.sentence.endswith(".")


def test_two_files_the_wrong_way_round_are_put_right(tmp_path: Path) -> None:
    drafter = written(tmp_path, "d.gguf", drafter_bytes())
    target = written(tmp_path, "t.gguf", target_bytes())
    found = compare(drafter, target)
    assert found.is_pair
    assert found.swapped
    assert (found.target, found.drafter) == (str(target), str(drafter))
    assert found.notes == (SWAPPED,)
    other = compare(written(tmp_path, "e4b.gguf", drafter_bytes("e4b")), target)
    assert other.swapped
    assert not other.is_pair
    assert "hidden size" in differing(other)


@pytest.mark.parametrize("content", [target_bytes(), drafter_bytes()])
def test_twice_the_same_role(tmp_path: Path, content: bytes) -> None:
    found = report(tmp_path, content, content)
    assert not found.is_pair
    assert not found.swapped
    assert "architecture" in differing(found)


@pytest.mark.parametrize(
    ("changes", "fact"),
    [
        ({"drafter__embedding_length_out": 2048}, "hidden size"),
        ({"tokenizer__ggml__model": "llama"}, "tokenizer"),
        ({"tokenizer__ggml__tokens": words(TOKENS - 1)}, "vocabulary size"),
        ({"tokenizer__ggml__tokens": words(TOKENS, "token")}, "token list"),
        ({"drafter__attention__key_length": 256}, "head size of full layers"),
        ({"drafter__attention__key_length_swa": 128}, "head size of sliding layers"),
        ({"drafter__attention__head_count_kv": 4}, "key-value heads of full layers"),
    ],
)
def test_each_fact_alone_refuses_and_is_named(tmp_path: Path, changes: dict[str, Value], fact: str) -> None:
    found = report(tmp_path, target_bytes(), drafter_bytes(**changes))
    assert not found.is_pair
    assert fact in differing(found)
    assert fact in found.sentence


def test_a_few_other_control_tokens_do_not_refuse_a_good_pair(tmp_path: Path) -> None:
    # Row 62 of the field problems, the other way.
    tokens = words(TOKENS)
    tokens[5] = "<other>"
    found = report(tmp_path, target_bytes(), drafter_bytes(tokenizer__ggml__tokens=tokens))
    assert found.is_pair
    (fact,) = [fact for fact in found.facts if fact.name == "token list"]
    assert fact.fits
    assert fact.target != fact.drafter


def test_the_table_never_says_other_than_the_verdict(tmp_path: Path) -> None:
    for size in ("e2b", "e4b"):
        for tokens in (TOKENS, TOKENS + 64):
            for heads in (1, 2):
                target = written(tmp_path, "t.gguf", target_bytes(size))
                drafter = written(
                    tmp_path,
                    "d.gguf",
                    drafter_bytes(
                        "e2b", tokenizer__ggml__tokens=words(tokens), drafter__attention__head_count_kv=heads
                    ),
                )
                found = compare(target, drafter)
                different = {one.fact for one in pair_differences(read_facts(target), read_facts(drafter))}
                assert different <= differing(found)
                assert found.is_pair is not bool(different)
                assert found.is_pair is not bool(differing(found))


@pytest.mark.parametrize("data", [b"", b"<html>", b"GGUF", b"\0" * 100])
def test_what_cannot_be_read_is_said_and_raises_nothing(tmp_path: Path, data: bytes) -> None:
    found = report(tmp_path, target_bytes(), data)
    assert not found.is_pair
    assert found.sentence.startswith("d.gguf ")
    assert found.facts == ()
    missing = compare(tmp_path / "nothing.gguf", tmp_path / "t.gguf")
    assert missing.fault == "missing"
    assert "nothing.gguf" in missing.sentence


def test_a_mix_of_qat_and_not_is_said_and_not_refused(tmp_path: Path) -> None:
    plain = "Gemma 4 E2B It"
    found = report(tmp_path, target_bytes(), drafter_bytes(general__name=plain))
    assert found.is_pair
    assert found.notes == (QAT_TARGET_ONLY,)
    found = report(tmp_path, target_bytes(general__name=plain), drafter_bytes())
    assert found.is_pair
    assert found.notes == (QAT_DRAFTER_ONLY,)
    found = report(tmp_path, target_bytes(general__name=plain), drafter_bytes(general__name=plain))
    assert found.notes == ()


def test_the_demo_pair(demo_pair: tuple[Path, Path]) -> None:
    found = compare(*demo_pair)
    assert found.is_pair
    assert not differing(found)


def test_it_goes_into_json(tmp_path: Path) -> None:
    found = report(tmp_path, target_bytes(), drafter_bytes("e4b"))
    assert msgspec.json.decode(msgspec.json.encode(found), type=PairReport) == found
