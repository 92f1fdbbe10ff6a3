"""Drafters as Google ships them: a folder with config.json, a tokenizer and bf16 safetensors, made from a GGUF."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import numpy as np
from gguf import GGMLQuantizationType, GGUFReader, GGUFValueType, GGUFWriter, quants
from numpy.typing import NDArray
from safetensors import TensorSpec, serialize_file

from support.handset_vocab import Kind

Floats = NDArray[np.float32]
Bits = NDArray[np.uint16]
Named = dict[str, Floats]

_Q4_0: Final = GGMLQuantizationType.Q4_0
_ARCH: Final = "gemma4-assistant"
_LAYER: Final = {
    "attn_norm.weight": "input_layernorm.weight",
    "attn_q_norm.weight": "self_attn.q_norm.weight",
    "post_attention_norm.weight": "post_attention_layernorm.weight",
    "ffn_norm.weight": "pre_feedforward_layernorm.weight",
    "post_ffw_norm.weight": "post_feedforward_layernorm.weight",
    "layer_output_scale.weight": "layer_scalar",
    "attn_q.weight": "self_attn.q_proj.weight",
    "attn_output.weight": "self_attn.o_proj.weight",
    "ffn_gate.weight": "mlp.gate_proj.weight",
    "ffn_up.weight": "mlp.up_proj.weight",
    "ffn_down.weight": "mlp.down_proj.weight",
}
_WHOLE: Final = {
    "token_embd.weight": "model.embed_tokens.weight",
    "output_norm.weight": "model.norm.weight",
    "nextn.pre_projection.weight": "pre_projection.weight",
    "nextn.post_projection.weight": "post_projection.weight",
}


def bf16(values: Floats) -> Bits:
    """Numbers rounded to bf16 by way of 64-bit arithmetic, which the product does not use."""
    exact = values.astype(np.float64)
    with np.errstate(divide="ignore"):
        exponent = np.floor(np.log2(np.abs(exact, where=exact != 0, out=np.ones_like(exact))))
    unit = 2.0 ** (exponent - 7)
    rounded = (np.rint(exact / unit) * unit).astype("<f4")
    return np.asarray(rounded.view("<u4") >> 16, dtype="<u2")


def widen(bits: Bits) -> Floats:
    """bf16 as numbers."""
    return (bits.astype("<u4") << 16).view("<f4")


def on_grid(values: Floats) -> tuple[Floats, NDArray[np.uint8]]:
    """The weights of a QAT: each block of 32 laid on the grid that ggml would take, with a step that bf16 has.

    Returns:
        The weights, and the Q4_0 blocks that hold them exactly.
    """
    blocks = values.reshape(-1, 32)
    largest = np.take_along_axis(blocks, np.abs(blocks).argmax(axis=1)[:, None], axis=1)
    step = widen(bf16(largest / -8))
    codes = np.clip(np.rint(blocks / np.where(step == 0, 1, step)), -8, 7)
    packed = np.empty(len(blocks), dtype=[("d", "<f2"), ("q", "u1", 16)])
    packed["d"] = step[:, 0]
    halves = (codes + 8).astype(np.uint8).reshape(-1, 2, 16)
    packed["q"] = halves[:, 0] | halves[:, 1] << 4
    return np.asarray((codes * step).reshape(values.shape), dtype="<f4"), packed.view(np.uint8)


def weights_of(drafter: Path) -> Named:
    """All weights of a GGUF drafter under the names that they have in safetensors."""
    named: Named = {}
    for tensor in GGUFReader(drafter).tensors:
        values = quants.dequantize(tensor.data, tensor.tensor_type)
        if tensor.name in _WHOLE:
            named[_WHOLE[tensor.name]] = values
        elif tensor.name.startswith("blk."):
            _, layer, rest = tensor.name.split(".", 2)
            named[f"model.layers.{layer}.{_LAYER[rest]}"] = values
    return named


def _field(reader: GGUFReader, key: str) -> Any:
    field = reader.get_field(key)
    return None if field is None else field.contents()


def config_of(drafter: Path) -> dict[str, Any]:
    """config.json of a GGUF drafter, with the sizes in text_config as in the published ones."""
    reader = GGUFReader(drafter)

    def own(key: str) -> Any:
        return _field(reader, f"{_ARCH}.{key}")

    sliding = own("attention.sliding_window_pattern")
    text = {
        "model_type": "gemma4_text",
        "num_hidden_layers": own("block_count"),
        "max_position_embeddings": own("context_length"),
        "hidden_size": own("embedding_length"),
        "intermediate_size": own("feed_forward_length"),
        "num_attention_heads": own("attention.head_count"),
        "num_key_value_heads": own("attention.head_count_kv"),
        "head_dim": own("attention.key_length_swa"),
        "global_head_dim": own("attention.key_length"),
        "rms_norm_eps": 1e-6,
        "sliding_window": own("attention.sliding_window"),
        "num_kv_shared_layers": own("attention.shared_kv_layers"),
        "hidden_size_per_layer_input": 0,
        "layer_types": ["sliding_attention" if flag else "full_attention" for flag in sliding],
        "rope_parameters": {
            "full_attention": {
                "rope_type": "proportional",
                "partial_rotary_factor": 0.25,
                "rope_theta": own("rope.freq_base"),
            },
            "sliding_attention": {"rope_type": "default", "rope_theta": own("rope.freq_base_swa")},
        },
        "vocab_size": len(_field(reader, "tokenizer.ggml.tokens")),
        "tie_word_embeddings": True,
    }
    return {
        "architectures": ["Gemma4AssistantForCausalLM"],
        "model_type": "gemma4_assistant",
        "backbone_hidden_size": own("embedding_length_out"),
        "text_config": text,
    }


def tokenizer_of(drafter: Path) -> tuple[dict[str, Any], dict[str, Any]]:
    """tokenizer.json and tokenizer_config.json of a GGUF drafter."""
    reader = GGUFReader(drafter)
    texts, types = _field(reader, "tokenizer.ggml.tokens"), _field(reader, "tokenizer.ggml.token_type")
    added = [
        {"id": number, "content": text, "special": True}
        for number, (text, kind) in enumerate(zip(texts, types, strict=True))
        if kind in (Kind.CONTROL, Kind.USER)
    ]
    model = {
        "type": "BPE",
        "byte_fallback": True,
        "vocab": {text: number for number, text in enumerate(texts)},
        "merges": [merge.split(" ", 1) for merge in _field(reader, "tokenizer.ggml.merges")],
    }
    keys = {"bos": "bos", "eos": "eos", "unk": "unknown", "pad": "padding", "mask": "mask"}
    settings = {f"{name}_token": texts[_field(reader, f"tokenizer.ggml.{key}_token_id")] for name, key in keys.items()}
    settings["chat_template"] = _field(reader, "tokenizer.chat_template")
    return {"model": model, "added_tokens": added, "decoder": {"type": "Sequence"}}, settings


def write_safetensors(path: Path, tensors: Mapping[str, NDArray[Any]]) -> None:
    """Writes tensors; those of 16-bit numbers are taken for bf16."""
    kept = {name: np.ascontiguousarray(values) for name, values in tensors.items()}
    kinds = {np.dtype(np.uint16): "bfloat16", np.dtype(np.float32): "float32", np.dtype(np.int64): "int64"}
    specs = {
        name: TensorSpec(dtype=kinds[a.dtype], shape=a.shape, data_ptr=a.ctypes.data, data_len=a.nbytes)
        for name, a in kept.items()
    }
    serialize_file(specs, path, metadata={"format": "pt"})


def write_assistant(folder: Path, drafter: Path, weights: Named | None = None) -> dict[str, Bits]:
    """Writes the folder of a drafter.

    Args:
        folder: Created when missing.
        drafter: Gives the configuration and the tokenizer, and the weights where there are no others.
        weights: By their names in safetensors.

    Returns:
        What was written, in bf16.
    """
    folder.mkdir(parents=True, exist_ok=True)
    bits = {name: bf16(values) for name, values in (weights or weights_of(drafter)).items()}
    write_safetensors(folder / "model.safetensors", bits)
    tokenizer, settings = tokenizer_of(drafter)
    files = {"config.json": config_of(drafter), "tokenizer.json": tokenizer, "tokenizer_config.json": settings}
    for name, content in files.items():
        (folder / name).write_text(json.dumps(content, ensure_ascii=False), encoding="utf-8")
    return bits


def with_blocks(source: Path, target: Path, blocks: Mapping[str, NDArray[np.uint8]]) -> None:
    """Copies a GGUF, some of its tensors replaced by Q4_0 blocks."""
    reader = GGUFReader(source)
    writer = GGUFWriter(target, _ARCH)
    for field in reader.fields.values():
        if field.name.startswith("GGUF.") or field.name == "general.architecture":
            continue
        inner = field.types[-1] if field.types[0] is GGUFValueType.ARRAY else None
        writer.add_key_value(field.name, field.contents(), field.types[0], inner)
    for tensor in reader.tensors:
        data, kind = tensor.data, tensor.tensor_type
        if tensor.name in blocks:
            rows = tensor.shape[::-1]
            data, kind = blocks[tensor.name].reshape(int(rows[0]), -1), _Q4_0
        writer.add_tensor(tensor.name, data, raw_dtype=kind)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def names_in_gguf(layers: int) -> dict[str, str]:
    """Names in safetensors by names in GGUF."""
    names = dict(_WHOLE)
    for layer in range(layers):
        names |= {f"blk.{layer}.{ours}": f"model.layers.{layer}.{theirs}" for ours, theirs in _LAYER.items()}
    return names


class QatDrafter:
    """A drafter as a QAT would have made it: its GGUF, and the folder that it is repacked from.

    Args:
        place: For both.
        source: GGUF of a drafter, whose weights are laid on a grid.
    """

    def __init__(self, place: Path, source: Path) -> None:
        self.weights: Named = weights_of(source)
        self.blocks: dict[str, NDArray[np.uint8]] = {}
        for ours, theirs in names_in_gguf(4).items():
            values = self.weights[theirs]
            if values.ndim == 2:
                self.weights[theirs], self.blocks[ours] = on_grid(values)
            else:
                self.weights[theirs] = widen(bf16(values))
        self.gguf = place / "expected.gguf"
        with_blocks(source, self.gguf, self.blocks)
        self.folder = place / "drafter"
        self.bits = write_assistant(self.folder, source, self.weights)
