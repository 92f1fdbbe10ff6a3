"""Which files can be targets, drafters and pairs."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest

from support.ggufbytes import Value, drafter, target, words
from support.ggufchecks import Make, fault_of
from tandem.engine import gguf, pairing

# --- roles


def test_roles_of_the_demo_pair(demo_pair: tuple[Path, Path]) -> None:
    model, helper = map(gguf.read_facts, demo_pair)
    pairing.check_target(model)
    pairing.check_drafter(helper)
    pairing.check_pair(model, helper)
    assert pairing.pair_differences(model, helper) == []
    assert fault_of(lambda: pairing.check_target(helper)).fault == "not-a-target"
    assert fault_of(lambda: pairing.check_drafter(model)).fault == "not-a-drafter"
    assert fault_of(lambda: pairing.check_pair(helper, model)).fault == "not-a-target"
    assert fault_of(lambda: pairing.check_pair(model, model)).fault == "not-a-drafter"


def test_a_renamed_drafter_still_pairs(demo_pair: tuple[Path, Path], tmp_path: Path) -> None:
    renamed = tmp_path / "a.gguf"
    renamed.write_bytes(demo_pair[1].read_bytes())
    pairing.check_pair(gguf.read_facts(demo_pair[0]), gguf.read_facts(renamed))


@pytest.mark.parametrize("architecture", ["gemma4_assistant", "gemma4_mtp"])
def test_drafters_of_other_programs_are_named_in_every_role(make: Make, architecture: str) -> None:
    fork, model = make(drafter(general__architecture=architecture), "b.gguf"), make(target())
    for fault, check in (
        ("not-a-target", lambda: pairing.check_target(fork)),
        ("not-a-drafter", lambda: pairing.check_drafter(fork)),
        ("not-a-drafter", lambda: pairing.check_draft_model(model, fork)),
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
    assert fault_of(lambda: pairing.check_target(make(target(**changes)))).fault == "not-a-target"
    other, model = make(target(**changes), "b.gguf"), make(target())
    assert fault_of(lambda: pairing.check_draft_model(model, other)).fault == "not-a-drafter"


def test_a_file_without_weights_is_no_target_unless_other_parts_hold_them(make: Make) -> None:
    assert fault_of(lambda: pairing.check_target(make(target(), tensors=()))).fault == "not-a-target"
    pairing.check_target(make(target(split__no=0, split__count=3), tensors=()))


def test_another_familys_model_can_be_a_target_but_not_of_a_gemma_4_drafter(make: Make) -> None:
    model = make({"general.architecture": "llama", "llama.block_count": 4, "tokenizer.ggml.tokens": words()})
    pairing.check_target(model)
    helper = make(drafter(), "b.gguf")
    error = fault_of(lambda: pairing.check_pair(model, helper))
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
    assert fault_of(lambda: pairing.check_target(make(target(**changes)))).fault == "corrupt"


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
    assert fault_of(lambda: pairing.check_drafter(make(drafter(**changes)))).fault == "corrupt"


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
    assert pairing.pair_differences(model, helper) == [pairing.Difference(fact, *values)]  # type: ignore[arg-type]  # a plain tuple
    error = fault_of(lambda: pairing.check_pair(model, helper))
    assert error.fault == "not-a-pair"
    for part in (fact, "target.gguf", "drafter.gguf"):
        assert part in error.sentence
    for value in values:
        shown = "not given" if value is None else f"{value:,}" if isinstance(value, int) else value
        assert str(shown) in error.sentence


def test_all_differences_are_named_at_once(make: Make) -> None:
    helper = make(drafter(drafter__embedding_length_out=2560, tokenizer__ggml__tokens=words(300)), "b.gguf")
    sentence = fault_of(lambda: pairing.check_pair(make(target()), helper)).sentence
    assert "hidden size" in sentence
    assert "vocabulary size" in sentence


def test_the_targets_last_two_layers_must_be_those_that_the_drafter_reads(make: Make) -> None:
    helper = make(drafter(), "b.gguf")
    for pattern in ([True, True, True, True, False, True], [False] * 6, b""):
        model = make(target(gemma4__attention__sliding_window_pattern=pattern))
        assert [one.fact for one in pairing.pair_differences(model, helper)] == ["last two layers"]


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
    pairing.check_pair(make(target()), helper)


def test_another_token_list_of_the_same_size_parts_a_pair(make: Make) -> None:
    model, helper = make(target()), make(drafter(tokenizer__ggml__tokens=words(256, "mot")), "b.gguf")
    assert pairing.vocabulary_overlap(model, helper) == 0
    assert [one.fact for one in pairing.pair_differences(model, helper)] == ["token list"]
    assert "0% alike" in fault_of(lambda: pairing.check_pair(model, helper)).sentence


def test_a_few_other_tokens_do_not_part_a_pair(make: Make) -> None:
    tokens = words()
    tokens[105] = "<start_of_turn>"
    model, helper = make(target()), make(drafter(tokenizer__ggml__tokens=tokens), "b.gguf")
    assert pairing.vocabulary_overlap(model, helper) == 0.75
    assert model.token_digest != helper.token_digest
    pairing.check_pair(model, helper)


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
    pairing.check_draft_model(make(target()), make(small, "b.gguf"))


def test_a_small_model_with_another_vocabulary_cannot_draft(make: Make) -> None:
    model = make(target())
    for tokens, word in ((words(255), "255"), (words(256, "mot"), "token list")):
        small = make(target(tokenizer__ggml__tokens=tokens), "b.gguf")
        error = fault_of(partial(pairing.check_draft_model, model, small))
        assert error.fault == "not-a-pair"
        assert word in error.sentence


def test_an_assistant_is_no_classic_draft_model(demo_pair: tuple[Path, Path]) -> None:
    model, helper = map(gguf.read_facts, demo_pair)
    assert fault_of(lambda: pairing.check_draft_model(model, helper)).fault == "not-a-drafter"
    pairing.check_draft_model(model, model)
    assert fault_of(lambda: pairing.check_draft_model(helper, model)).fault == "not-a-target"
