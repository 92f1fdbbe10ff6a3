"""config.json of a Gemma 4 drafter as GGUF keys, and the tensors that llama.cpp asks for.

Keys and names are those of `Gemma4AssistantModel` in llama.cpp's conversion/gemma.py and of its
src/models/gemma4-assistant.cpp: the drafter has queries only (it reads the target's keys and values), its embedding
is its output matrix as well, and its norms are stored as they are (nothing is added). The converter leaves
`masked_embedding` out, which sorts the vocabulary into clusters and which this engine does not use; so do we.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from gguf import GGUFWriter

from tandem.engine.gguf_header import printable
from tandem.errors import ModelError
from tandem.models.repack_source import SourceTensor, parse, read_small

ARCHITECTURE: Final = "gemma4-assistant"
CONFIG: Final = "config.json"
EMBEDDING, OUTPUT = "model.embed_tokens.weight", "lm_head.weight"

_LIMIT: Final = 16 << 20
_CLASSES: Final = frozenset({"Gemma4AssistantForCausalLM", "Gemma4UnifiedAssistantForCausalLM"})
_KINDS: Final = frozenset({"gemma4_assistant", "gemma4_unified_assistant"})
_LAYERS: Final = 512
_AGAIN: Final = "Get config.json from the drafter's repository again."
# What the library of the original takes where config.json is silent (Gemma4TextConfig).
_CONTEXT, _EPSILON = 131072, 1e-6
_ROPE: Final[dict[str, Any]] = {
    "full_attention": {"rope_type": "proportional", "partial_rotary_factor": 0.25, "rope_theta": 1e6},
    "sliding_attention": {"rope_theta": 1e4},
}


@dataclass(frozen=True, slots=True)
class Wanted:
    """A tensor of the new file.

    Attributes:
        name: Its name there.
        source: Its name in the safetensors file.
        shape: Its shape there.
        matrix: Whether it becomes Q4_0; else F32.
    """

    name: str
    source: str
    shape: tuple[int, ...]
    matrix: bool


class Config:
    """A drafter's sizes.

    Args:
        folder: Has config.json.

    Raises:
        ModelError: "missing", "unreadable", "corrupt"; "not-a-drafter" for another model's.
    """

    def __init__(self, folder: Path) -> None:
        root = parse(read_small(folder, CONFIG, _LIMIT), CONFIG)
        if not isinstance(root, dict):
            raise ModelError("corrupt", "config.json is damaged.", _AGAIN)
        _require_drafter(root)
        text = root.get("text_config")
        self._values: dict[str, Any] = {**root, **(text if isinstance(text, dict) else {})}
        self.layers: Final = self._integer("num_hidden_layers", most=_LAYERS)
        self.hidden: Final = self._integer("hidden_size")
        self.backbone: Final = self._integer("backbone_hidden_size")
        self.vocabulary: Final = self._integer("vocab_size")
        self.heads: Final = self._integer("num_attention_heads")
        self.head: Final = self._integer("head_dim")
        self.head_full: Final = self._of_full_layers("global_head_dim", "head_dim")
        self.sliding: Final = self._sliding()
        self.shared: Final = self._integer("num_kv_shared_layers", self.layers, least=0, most=self.layers)
        self.ffn: Final = self._ffn()
        self.rope: Final = self._rope()

    def wanted(self) -> list[Wanted]:
        """The tensors of the new file but `rope_freqs`, in its order."""
        hidden, both = self.hidden, 2 * self.backbone
        tensors = [
            Wanted("token_embd.weight", EMBEDDING, (self.vocabulary, hidden), True),
            Wanted("output_norm.weight", "model.norm.weight", (hidden,), False),
            Wanted("nextn.pre_projection.weight", "pre_projection.weight", (hidden, both), True),
            Wanted("nextn.post_projection.weight", "post_projection.weight", (self.backbone, hidden), True),
        ]
        for layer in range(self.layers):
            head = self.head if self.sliding[layer] else self.head_full
            queries, ffn = self.heads * head, self.ffn[layer]
            norms = {
                "attn_norm": ("input_layernorm", hidden),
                "attn_q_norm": ("self_attn.q_norm", head),
                "post_attention_norm": ("post_attention_layernorm", hidden),
                "ffn_norm": ("pre_feedforward_layernorm", hidden),
                "post_ffw_norm": ("post_feedforward_layernorm", hidden),
            }
            matrices = {
                "attn_q": ("self_attn.q_proj", (queries, hidden)),
                "attn_output": ("self_attn.o_proj", (hidden, queries)),
                "ffn_gate": ("mlp.gate_proj", (ffn, hidden)),
                "ffn_up": ("mlp.up_proj", (ffn, hidden)),
                "ffn_down": ("mlp.down_proj", (hidden, ffn)),
            }
            ours, theirs = f"blk.{layer}", f"model.layers.{layer}"
            for name, (source, size) in norms.items():
                tensors.append(Wanted(f"{ours}.{name}.weight", f"{theirs}.{source}.weight", (size,), False))
            # A buffer of the original, not a weight: its name has no ".weight".
            tensors.append(Wanted(f"{ours}.layer_output_scale.weight", f"{theirs}.layer_scalar", (1,), False))
            for name, (source, shape) in matrices.items():
                tensors.append(Wanted(f"{ours}.{name}.weight", f"{theirs}.{source}.weight", shape, True))
        return tensors

    def rope_factors(self) -> list[float]:
        """Of full layers: 1 for the pairs that rotate, 1e30 for those that stand still, half a head in all."""
        rotating = int(self.head_full * self.rope["partial_rotary_factor"] / 2)
        return [1.0] * rotating + [1e30] * (self.head_full // 2 - rotating)

    def write(self, writer: GGUFWriter) -> None:
        """Adds the keys of the architecture."""
        values = self._values
        writer.add_block_count(self.layers)
        writer.add_context_length(self._integer("max_position_embeddings", _CONTEXT))
        writer.add_embedding_length(self.hidden)
        writer.add_feed_forward_length(self.ffn[0] if len(set(self.ffn)) == 1 else list(self.ffn))
        writer.add_head_count(self.heads)
        writer.add_head_count_kv(self._kv_heads())
        writer.add_rope_freq_base(self.rope["full"])
        writer.add_rope_freq_base_swa(self.rope["sliding"])
        writer.add_layer_norm_rms_eps(self._real("rms_norm_eps", _EPSILON))
        writer.add_key_length(self.head_full)
        writer.add_value_length(self.head_full)
        if values.get("final_logit_softcapping"):
            writer.add_final_logit_softcapping(self._real("final_logit_softcapping", 0.0))
        writer.add_sliding_window(self._integer("sliding_window"))
        writer.add_shared_kv_layers(self.shared)
        writer.add_embedding_length_per_layer_input(self._integer("hidden_size_per_layer_input", 0, least=0))
        writer.add_sliding_window_pattern(list(self.sliding))
        writer.add_key_length_swa(self.head)
        writer.add_value_length_swa(self.head)
        writer.add_rope_dimension_count(self.head_full)
        writer.add_rope_dimension_count_swa(self.head)
        writer.add_embedding_length_out(self.backbone)
        writer.add_nextn_predict_layers(self.layers)

    def _integer(self, key: str, default: int | None = None, *, least: int = 1, most: int = (1 << 31) - 1) -> int:
        value = self._values.get(key)
        value = default if value is None else value
        if value is None:
            raise ModelError("corrupt", f"config.json does not give {key}.", _AGAIN)
        if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= most:
            raise ModelError("corrupt", f"{key} in config.json is not possible: {printable(str(value), 40)}.", _AGAIN)
        return value

    def _real(self, key: str, default: float) -> float:
        return _real(self._values.get(key, default), key)

    def _of_full_layers(self, key: str, own: str) -> int:
        """A figure of full layers: under its own key, or under `own` in the configuration of one of them."""
        layers, kinds = self._values.get("per_layer_config"), self._values.get("layer_types")
        if self._values.get(key) is None and isinstance(layers, dict) and isinstance(kinds, list):
            for number, layer in layers.items():
                full = number.isdecimal() and int(number) < len(kinds) and kinds[int(number)] == "full_attention"
                if full and isinstance(layer, dict) and isinstance(layer.get(own), int):
                    self._values[key] = layer[own]
                    break
        return self._integer(key)

    def _kv_heads(self) -> int | list[int]:
        sliding = self._integer("num_key_value_heads")
        try:
            full = self._of_full_layers("num_global_key_value_heads", "num_key_value_heads")
        except ModelError:
            if self._values.get("num_global_key_value_heads") is not None:
                raise
            return sliding
        return [sliding if is_sliding else full for is_sliding in self.sliding]

    def _sliding(self) -> tuple[bool, ...]:
        kinds = self._values.get("layer_types")
        if not isinstance(kinds, list) or len(kinds) != self.layers:
            raise ModelError("corrupt", "config.json does not give layer_types for each layer.", _AGAIN)
        if not {"sliding_attention", "full_attention"}.issuperset(kind for kind in kinds if isinstance(kind, str)):
            raise ModelError("corrupt", "config.json names layer_types that Gemma 4 does not have.", _AGAIN)
        return tuple(kind == "sliding_attention" for kind in kinds)

    def _ffn(self) -> tuple[int, ...]:
        width = self._integer("intermediate_size")
        wide = self.layers - self.shared if self._values.get("use_double_wide_mlp") is True else self.layers
        return tuple(width if layer < wide else 2 * width for layer in range(self.layers))

    def _rope(self) -> dict[str, float]:
        given = self._values.get("rope_parameters") or _ROPE
        full = given.get("full_attention") if isinstance(given, dict) else None
        sliding = given.get("sliding_attention") if isinstance(given, dict) else None
        if not isinstance(full, dict) or not isinstance(sliding, dict) or full.get("rope_type") != "proportional":
            raise ModelError(
                "corrupt", "config.json does not turn positions as Gemma 4 does (rope_parameters).", _AGAIN
            )
        factor = _real(full.get("partial_rotary_factor"), "partial_rotary_factor")
        if factor > 1:
            raise ModelError("corrupt", f"partial_rotary_factor in config.json is not possible: {factor:g}.", _AGAIN)
        return {
            "partial_rotary_factor": factor,
            "full": _real(full.get("rope_theta"), "rope_theta"),
            "sliding": _real(sliding.get("rope_theta"), "rope_theta"),
        }


def is_left_out(name: str) -> bool:
    """Whether the engine has no use for a tensor of the original; `OUTPUT` has to be the embedding once more."""
    return name == OUTPUT or "masked_embedding." in name or name.endswith(".rotary_emb.inv_freq")


def match(config: Config, tensors: Mapping[str, SourceTensor]) -> list[tuple[Wanted, SourceTensor]]:
    """Finds every tensor of the new file, and refuses what it has no place for.

    Raises:
        ModelError: "corrupt".
    """
    # A model that was saved as a part of another one has this in its names.
    given = {name.replace("language_model.", ""): tensor for name, tensor in tensors.items()}
    wanted, found = config.wanted(), []
    for want in wanted:
        tensor = given.pop(want.source, None)
        if tensor is None:
            raise ModelError("corrupt", f"The tensor {want.source} is missing.", "Download the drafter again.")
        if (tensor.shape or (1,)) != want.shape:
            has, says = list(tensor.shape), list(want.shape)
            raise ModelError(
                "corrupt",
                f"The tensor {want.source} has the shape {has}, and config.json says {says}.",
                "Download the drafter again, all of its files.",
            )
        if want.matrix and tensor.kind != "BF16":
            raise ModelError(
                "corrupt",
                f"The tensor {want.source} holds {printable(tensor.kind, 20)}, not bf16.",
                "Get the drafter as it was published, in bf16.",
            )
        if want.matrix and want.shape[-1] % 32:
            raise ModelError(
                "corrupt",
                f"The rows of the tensor {want.source} are no multiple of 32 long.",
                "Q4_0 cannot hold them; use a drafter of the published sizes.",
            )
        found.append((want, tensor))
    for name in given:
        if not is_left_out(name):
            raise ModelError(
                "corrupt",
                f"The engine has no place for the tensor {printable(name)}.",
                "Update Tandem, or use a drafter that is converted already.",
            )
    return found


def _real(value: object, key: str) -> float:
    if not isinstance(value, int | float) or isinstance(value, bool) or not 0 < value < 1e30:
        raise ModelError("corrupt", f"{key} in config.json is not possible: {printable(str(value), 40)}.", _AGAIN)
    return float(value)


def _require_drafter(root: Mapping[str, Any]) -> None:
    classes, kind = root.get("architectures"), root.get("model_type")
    names = [name for name in classes if isinstance(name, str)] if isinstance(classes, list) else []
    if not _CLASSES.isdisjoint(names) or kind in _KINDS:
        return
    if not names and not (isinstance(kind, str) and kind):
        raise ModelError("not-a-drafter", "config.json does not say what kind of model this is.", _AGAIN)
    what = printable(names[0] if names else str(kind), 60)
    raise ModelError(
        "not-a-drafter",
        f"The folder holds a model of the kind {what}, not a Gemma 4 drafter.",
        "Choose the folder of a drafter: its name ends in qat-q4_0-unquantized-assistant.",
    )
