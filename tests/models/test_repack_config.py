from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from gguf import GGUFReader

from support.assistants import QatDrafter, write_safetensors
from support.handset_vocab import Kind
from tandem.errors import ModelError
from tandem.models.repack import repack
from tandem.models.repack_config import Config
from tandem.models.repack_tokens import Tokens

Change = Callable[[dict[str, Any]], object]


@pytest.fixture(scope="module")
def drafter(tmp_path_factory: pytest.TempPathFactory, demo_pair: tuple[Path, Path]) -> QatDrafter:
    return QatDrafter(tmp_path_factory.mktemp("qat"), demo_pair[1])


@pytest.fixture
def folder(drafter: QatDrafter, tmp_path: Path) -> Path:
    """A copy that can be changed."""
    return Path(shutil.copytree(drafter.folder, tmp_path / "drafter"))


def change(path: Path, how: Change) -> None:
    content = json.loads(path.read_text(encoding="utf-8"))
    how(content)
    path.write_text(json.dumps(content), encoding="utf-8")


def refused(folder: Path) -> ModelError:
    with pytest.raises(ModelError) as caught:
        repack(folder, folder.parent / "out.gguf")
    error = caught.value
    assert error.sentence.endswith(".")
    assert error.remedy.endswith(".")
    assert not (folder.parent / "out.gguf").exists()
    return error


def fields(path: Path) -> dict[str, Any]:
    return {key: field.contents() for key, field in GGUFReader(path).fields.items()}


def text(key: str, value: object) -> Change:
    """Sets a key of text_config; None takes it away."""

    def set_it(config: dict[str, Any]) -> None:
        config["text_config"][key] = value
        if value is None:
            del config["text_config"][key]

    return set_it


@pytest.mark.parametrize(
    "architecture", [["Gemma4AssistantForCausalLM"], ["Gemma4UnifiedAssistantForCausalLM"], None], ids=str
)
def test_drafters_by_name_or_kind(folder: Path, architecture: list[str] | None) -> None:
    change(folder / "config.json", lambda config: config.update(architectures=architecture))
    assert Config(folder).layers == 4


@pytest.mark.parametrize(
    ("architecture", "kind", "shown"),
    [
        (["Gemma4ForConditionalGeneration"], "gemma4", "Gemma4ForConditionalGeneration"),
        (["LlamaForCausalLM"], "llama", "LlamaForCausalLM"),
        (None, "qwen3", "qwen3"),
        ("Gemma4AssistantForCausalLM", None, "does not say what kind of model"),
        (None, None, "does not say what kind of model"),
        ([], 3, "does not say what kind of model"),
        ([3], "\x1b[0m", "[0m"),
    ],
)
def test_other_models_are_called_what_they_are(folder: Path, architecture: object, kind: object, shown: str) -> None:
    change(folder / "config.json", lambda config: config.update(architectures=architecture, model_type=kind))
    error = refused(folder)
    assert error.fault == "not-a-drafter"
    assert shown in error.sentence
    assert error.sentence.isprintable()


def test_sizes_may_stand_at_the_root(folder: Path) -> None:
    def flatten(config: dict[str, Any]) -> None:
        config.update(config.pop("text_config"))

    before = Config(folder).wanted()
    change(folder / "config.json", flatten)
    assert Config(folder).wanted() == before


def test_full_layers_may_be_told_one_by_one(folder: Path, tmp_path: Path) -> None:
    def one_by_one(config: dict[str, Any]) -> None:
        text("global_head_dim", None)(config)
        text("per_layer_config", {"3": {"head_dim": 128, "num_key_value_heads": 3}, "x": 4})(config)

    change(folder / "config.json", one_by_one)
    repack(folder, tmp_path / "out.gguf")
    found = fields(tmp_path / "out.gguf")
    assert found["gemma4-assistant.attention.key_length"] == 128
    assert found["gemma4-assistant.attention.head_count_kv"] == [1, 1, 1, 3]


def test_what_config_json_need_not_say(folder: Path, tmp_path: Path) -> None:
    for key in ("rope_parameters", "rms_norm_eps", "max_position_embeddings", "num_kv_shared_layers"):
        change(folder / "config.json", text(key, None))
    change(folder / "config.json", text("final_logit_softcapping", 30))
    repack(folder, tmp_path / "out.gguf")
    found = fields(tmp_path / "out.gguf")
    own = {
        "rope.freq_base": 1e6,
        "rope.freq_base_swa": 1e4,
        "context_length": 131072,
        "attention.shared_kv_layers": 4,
        "attention.layer_norm_rms_epsilon": pytest.approx(1e-6),
        "final_logit_softcapping": 30,
    }
    assert {key: found[f"gemma4-assistant.{key}"] for key in own} == own


def test_shared_layers_of_twice_the_width(folder: Path) -> None:
    change(folder / "config.json", text("use_double_wide_mlp", True))
    change(folder / "config.json", text("num_kv_shared_layers", 1))
    assert Config(folder).ffn == (256, 256, 256, 512)


@pytest.mark.parametrize(
    ("key", "value", "words"),
    [
        ("hidden_size", None, "does not give hidden_size"),
        ("hidden_size", -1, "hidden_size in config.json is not possible: -1"),
        ("hidden_size", True, "not possible"),
        ("hidden_size", "128", "not possible"),
        ("hidden_size", 64, "has the shape [4096, 128], and config.json says [4096, 64]"),
        ("num_hidden_layers", 1 << 30, "not possible"),
        ("num_hidden_layers", 5, "layer_types"),
        ("num_attention_heads", 3, "self_attn.q_proj.weight has the shape"),
        ("layer_types", None, "layer_types"),
        ("layer_types", ["sliding_attention"] * 3 + ["linear_attention"], "layer_types"),
        ("global_head_dim", None, "global_head_dim"),
        ("global_head_dim", 64, "has the shape"),
        ("sliding_window", None, "sliding_window"),
        ("rope_parameters", {"rope_theta": 1e6}, "rope_parameters"),
        ("rope_parameters", [1], "rope_parameters"),
        ("rms_norm_eps", "small", "rms_norm_eps"),
        ("vocab_size", 4000, "has the shape"),
        ("num_key_value_heads", 0, "not possible"),
        ("num_global_key_value_heads", 0, "not possible"),
    ],
)
def test_impossible_sizes(folder: Path, key: str, value: object, words: str) -> None:
    change(folder / "config.json", text(key, value))
    error = refused(folder)
    assert error.fault == "corrupt"
    assert words in error.sentence


def test_a_drafter_must_be_narrower_than_its_target(folder: Path, drafter: QatDrafter) -> None:
    # llama.cpp ends the load over that; the check of the finished file finds it before anybody gets it.
    change(folder / "config.json", lambda config: config.update(backbone_hidden_size=128))
    bits = dict(drafter.bits)
    bits["pre_projection.weight"] = bits["pre_projection.weight"][:, :256]
    bits["post_projection.weight"] = bits["post_projection.weight"][:128]
    write_safetensors(folder / "model.safetensors", bits)
    assert "embedding_length_out" in refused(folder).sentence


def spoil_tensors(folder: Path, drafter: QatDrafter, **changed: Any) -> None:
    bits: dict[str, Any] = {**drafter.bits, **{name.replace("__", "."): values for name, values in changed.items()}}
    write_safetensors(folder / "model.safetensors", {name: bits for name, bits in bits.items() if bits is not None})


@pytest.mark.parametrize(
    ("name", "values", "words"),
    [
        ("post_projection__weight", None, "The tensor post_projection.weight is missing"),
        ("pre_projection__weight", np.zeros((128, 512), np.float32), "pre_projection.weight holds F32, not bf16"),
        ("model__norm__weight", np.zeros(128, np.int64), "model.norm.weight holds numbers of the kind I64"),
        ("model__layers__0__self_attn__k_proj__weight", np.zeros((64, 128), np.uint16), "has no place for"),
        ("model__layers__4__mlp__up_proj__weight", np.zeros((64, 128), np.uint16), "has no place for"),
        ("lm_head__weight", np.zeros((4096, 128), np.uint16), "an output matrix of its own"),
        ("lm_head__weight", np.zeros((10, 128), np.uint16), "an output matrix of its own"),
    ],
)
def test_tensors_that_do_not_make_a_drafter(
    folder: Path, drafter: QatDrafter, name: str, values: object, words: str
) -> None:
    spoil_tensors(folder, drafter, **{name: values})
    error = refused(folder)
    assert error.fault == "corrupt"
    assert words in error.sentence


def test_small_tensors_may_be_f32_and_a_scalar_without_a_shape(
    folder: Path, drafter: QatDrafter, tmp_path: Path
) -> None:
    norm = np.linspace(0.1, 3, 128, dtype=np.float32)
    spoil_tensors(
        folder, drafter, model__norm__weight=norm, model__layers__0__layer_scalar=np.array(0x3F00, dtype=np.uint16)
    )
    repack(folder, tmp_path / "out.gguf")
    tensors = {tensor.name: tensor for tensor in GGUFReader(tmp_path / "out.gguf").tensors}
    assert tensors["output_norm.weight"].data.tobytes() == norm.tobytes()
    assert tensors["blk.0.layer_output_scale.weight"].data.tolist() == [0.5]


def test_names_of_a_part_of_another_model(folder: Path, drafter: QatDrafter, tmp_path: Path) -> None:
    parts = {name.replace("model.", "model.language_model.", 1): bits for name, bits in drafter.bits.items()}
    write_safetensors(
        folder / "model.safetensors", {**parts, "lm_head.weight": drafter.bits["model.embed_tokens.weight"]}
    )
    assert repack(folder, tmp_path / "out.gguf").bits_equal


def test_rows_that_are_no_multiple_of_32(folder: Path, drafter: QatDrafter) -> None:
    change(folder / "config.json", text("intermediate_size", 240))
    bits = dict(drafter.bits)
    for name in bits:
        if name.endswith("down_proj.weight"):
            bits[name] = bits[name][:, :240]
        elif ".mlp." in name:
            bits[name] = bits[name][:240]
    write_safetensors(folder / "model.safetensors", bits)
    assert "down_proj.weight are no multiple of 32" in refused(folder).sentence


def test_types_of_tokens(folder: Path) -> None:
    def fewer(tokenizer: dict[str, Any]) -> None:
        vocabulary = tokenizer["model"]["vocab"]
        last = len(vocabulary) - 2
        for name in [name for name, number in vocabulary.items() if number >= last]:
            del vocabulary[name]
        tokenizer["added_tokens"] = [
            {"id": last, "content": "<plain>", "special": False},
            {"id": last + 1, "content": "<special>", "special": True},
            {"id": 2, "content": "<bos>", "special": True},
        ]

    change(folder / "tokenizer.json", fewer)
    change(
        folder / "tokenizer_config.json",
        lambda settings: settings.update(
            additional_special_tokens=["<|tool>", {"content": "<|think|>"}, "not there"],
            extra_special_tokens={"image_token": "<|turn>"},
        ),
    )
    tokens = Tokens(folder)
    types = dict(zip(tokens.texts, tokens.types, strict=True))
    expected = {
        "<plain>": Kind.USER,
        "<special>": Kind.CONTROL,
        "<bos>": Kind.CONTROL,
        "<eos>": Kind.CONTROL,
        "<|tool>": Kind.CONTROL,
        "<|think|>": Kind.CONTROL,
        "<|turn>": Kind.CONTROL,
        "<turn|>": Kind.NORMAL,
        "<|channel>": Kind.USER,
        "<0x41>": Kind.BYTE,
        "\n": Kind.NORMAL,
    }
    assert {name: Kind(types[name]) for name in expected} == expected


def _unigram(tokenizer: dict[str, Any]) -> None:
    tokenizer["model"] = {"type": "Unigram", "vocab": [["a", 0.0]]}


def _no_fallback(tokenizer: dict[str, Any]) -> None:
    tokenizer["model"]["byte_fallback"] = False


def _gap(tokenizer: dict[str, Any]) -> None:
    tokenizer["model"]["vocab"]["beyond"] = 1 << 40


def _below_zero(tokenizer: dict[str, Any]) -> None:
    tokenizer["model"]["vocab"]["below"] = -1


def _same_id(tokenizer: dict[str, Any]) -> None:
    tokenizer["model"]["vocab"]["again"] = 7


def _other_content(tokenizer: dict[str, Any]) -> None:
    tokenizer["added_tokens"][0]["content"] = "<other>"


def _same_text(tokenizer: dict[str, Any]) -> None:
    tokenizer["added_tokens"].append({"id": 4096, "content": "<bos>"})


def _one_more(tokenizer: dict[str, Any]) -> None:
    tokenizer["model"]["vocab"]["one more"] = 4096


def _no_merges(tokenizer: dict[str, Any]) -> None:
    tokenizer["model"]["merges"] = []


def _odd_merges(tokenizer: dict[str, Any]) -> None:
    tokenizer["model"]["merges"] = [[1, 2, 3]]


def _no_unicode(tokenizer: dict[str, Any]) -> None:
    tokenizer["model"]["merges"].append(["\ud800", "a"])


@pytest.mark.parametrize(
    ("how", "words"),
    [
        (_unigram, "another kind of tokenizer"),
        (_no_fallback, "another kind of tokenizer"),
        (_gap, "have gaps"),
        (_below_zero, "have gaps"),
        (_same_id, "the same id"),
        (_other_content, "the same id"),
        (_same_text, "the same text"),
        (_one_more, "The drafter has 4,096 tokens, and its tokenizer 4,097."),
        (_no_merges, "no merges"),
        (_odd_merges, "cannot be understood"),
        (_no_unicode, "."),
    ],
)
def test_tokenizers_that_do_not_fit(folder: Path, how: Change, words: str) -> None:
    change(folder / "tokenizer.json", how)
    error = refused(folder)
    assert error.fault == "corrupt"
    assert words in error.sentence


def test_merges_may_be_texts_or_pairs(folder: Path, tmp_path: Path) -> None:
    repack(folder, tmp_path / "pairs.gguf")

    def as_texts(tokenizer: dict[str, Any]) -> None:
        tokenizer["model"]["merges"] = [" ".join(pair) for pair in tokenizer["model"]["merges"]]

    change(folder / "tokenizer.json", as_texts)
    repack(folder, tmp_path / "texts.gguf")
    assert (tmp_path / "pairs.gguf").read_bytes() == (tmp_path / "texts.gguf").read_bytes()


def test_without_settings_of_the_tokenizer(folder: Path, tmp_path: Path) -> None:
    (folder / "tokenizer_config.json").unlink()
    change(folder / "config.json", text("bos_token_id", 2))
    repack(folder, tmp_path / "out.gguf")
    found = fields(tmp_path / "out.gguf")
    assert found["tokenizer.ggml.bos_token_id"] == 2
    assert "tokenizer.chat_template" not in found
