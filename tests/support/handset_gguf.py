"""Writes the two GGUF files of a hand-set pair, tensor by tensor, so that gigabytes need little memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

import numpy as np
from gguf import GGMLQuantizationType, GGUFEndian, GGUFValueType, GGUFWriter
from numpy.typing import NDArray

from support.handset_code import Code, Floats
from support.handset_graph import Graph
from support.handset_shape import Shape
from support.handset_vocab import BOS, EOS, MASK, PAD, UNK, Piece, merges

Bytes = NDArray[np.uint8]
Rows = Callable[[int, int], Floats]
"""Rows `first` to `last` (exclusive) of a matrix."""

SOFT_CAP: Final = 30.0
"""Gemma 4's final logit soft cap."""
_ALIGNMENT: Final = 32  # of tensor data, GGUF's default
_ROWS: Final = 8192  # rows of a matrix made at a time
_POOL_BLOCKS: Final = 1 << 16
_BLOCK: Final = np.dtype([("d", "<f2"), ("q", "u1", 16)])
"""Q4_0: 32 weights d * (q - 8); byte i holds q of weight i in its low half, of weight i + 16 in its high half."""
_F32: Final = GGMLQuantizationType.F32
_Q4_0: Final = GGMLQuantizationType.Q4_0


def q4_0(rows: Floats, scale: float) -> Bytes:
    """Packs rows whose entries are multiples of `scale` from -8 to 7, exactly (up to the scale's own F16 rounding).

    Args:
        rows: Shape [rows, width], width a multiple of 32.
        scale: The value of one step.

    Returns:
        The blocks as bytes, shape [bytes].
    """
    steps = np.rint(rows / scale).astype(np.int8) + 8
    halves = steps.astype(np.uint8).reshape(-1, 2, 16)
    blocks = np.empty(len(halves), dtype=_BLOCK)
    blocks["d"] = scale
    blocks["q"] = halves[:, 0] | (halves[:, 1] << 4)
    return blocks.view(np.uint8)


class _Plan:
    """Tensors in file order, each with something that makes its bytes when its turn comes."""

    def __init__(self, seed: int) -> None:
        self.tensors: list[tuple[str, Sequence[int], GGMLQuantizationType, Callable[[], Iterator[Bytes]]]] = []
        rng = np.random.default_rng(seed)
        pool = np.empty(_POOL_BLOCKS, dtype=_BLOCK)
        # A deviation of 0.023, about that of a matrix of 2,000 columns which keeps the size of what it multiplies.
        pool["d"] = 0.005
        pool["q"] = rng.integers(0, 256, (_POOL_BLOCKS, 16), dtype=np.uint8)
        self._pool = pool.view(np.uint8)

    def constant(self, name: str, values: Sequence[float] | Floats) -> None:
        """A vector in F32."""
        data = np.asarray(values, dtype="<f4")
        self.tensors.append((f"{name}.weight", data.shape, _F32, lambda: iter([data.view(np.uint8)])))

    def noise(self, name: str, columns: int, rows: int) -> None:
        """A random Q4_0 matrix that maps `columns` to `rows`: it costs what a real one does, and says nothing."""
        total = rows * columns // 32 * _BLOCK.itemsize

        def chunks() -> Iterator[Bytes]:
            for start in range(0, total, len(self._pool)):
                yield self._pool[: total - start]

        self.tensors.append((f"{name}.weight", (rows, columns), _Q4_0, chunks))

    def matrix(self, name: str, columns: int, rows: int, make: Rows, scale: float | None) -> None:
        """A matrix that says something: F32 when `scale` is None, else Q4_0 in multiples of it."""

        def chunks() -> Iterator[Bytes]:
            for first in range(0, rows, _ROWS):
                part = np.ascontiguousarray(make(first, min(rows, first + _ROWS)), dtype="<f4")
                yield part.reshape(-1).view(np.uint8) if scale is None else q4_0(part, scale)

        kind = _F32 if scale is None else _Q4_0
        self.tensors.append((f"{name}.weight", (rows, columns), kind, chunks))

    def write(self, path: Path, writer: GGUFWriter) -> None:
        """Writes header and tensors to `path`."""
        for name, shape, kind, _ in self.tensors:
            count = int(np.prod(shape))
            size = count * 4 if kind is _F32 else count // 32 * _BLOCK.itemsize
            writer.add_tensor_info(name, shape, np.dtype(np.float32), size, kind)
        writer.write_header_to_file(path)
        writer.write_kv_data_to_file()
        writer.write_ti_data_to_file()
        writer.close()
        with path.open("ab") as file:
            for _, _, _, chunks in self.tensors:
                file.write(bytes(-file.tell() % _ALIGNMENT))
                for chunk in chunks():
                    chunk.tofile(file)
            file.write(bytes(-file.tell() % _ALIGNMENT))


def _words(graph: Graph, shape: Shape, seed: int) -> tuple[Code, Code]:
    """The code words of what the target says and of what the drafter guesses."""
    size = len(graph.successor)
    # One dimension of each part is the filler that gives every row the same length.
    widths = (shape.hidden - shape.draft_hidden - 1, shape.draft_hidden - 1)
    codes = []
    for number, (greedy, branch) in enumerate([(graph.successor, graph.branch), (graph.guess, graph.draft_branch)]):
        others = [token for candidates in branch.values() for token in candidates]
        said = np.unique(np.concatenate([greedy, np.array(others, dtype=np.int64)]))
        codes.append(Code(size, said, widths[number], seed + number, shape.exact))
    return codes[0], codes[1]


def _part(code: Code, after: NDArray[np.int64], branches: Mapping[int, Floats], first: int) -> Floats:
    """One half of embedding rows `first`..: the word of what comes after each token, and the filler.

    Args:
        code: Its words.
        after: What comes after the tokens of these rows.
        branches: Vectors of branching tokens, by token.
        first: The token of the first row.
    """
    part = np.ones((len(after), code.width + 1), dtype=np.float32)
    part[:, :-1] = code.words(after)
    for token, vector in branches.items():
        if first <= token < first + len(after):
            part[token - first, :-1] = vector
            part[token - first, -1] = np.sqrt(code.width + 1 - vector @ vector)
    return part


def _vectors(code: Code, branch: Mapping[int, Mapping[int, float]], soft_cap: float | None) -> dict[int, Floats]:
    return {token: code.vector_for(candidates, code.logit, soft_cap) for token, candidates in branch.items()}


def _outputs(code: Code, columns: int) -> tuple[Rows, float]:
    """Output rows that give `code.logit` for a word after itself, and the step that they are multiples of."""
    scale = code.logit / code.width

    def rows(first: int, last: int) -> Floats:
        made = np.zeros((last - first, columns), dtype=np.float32)
        made[:, : code.width] = code.words(np.arange(first, last)) * scale
        return made

    return rows, scale


def _header(shape: Shape, drafter: bool, vocabulary: Sequence[Piece], chat_template: str | None) -> GGUFWriter:
    """A writer with every key that llama.cpp reads of a target or a drafter."""
    arch = "gemma4-assistant" if drafter else "gemma4"
    writer = GGUFWriter(None, arch, endianess=GGUFEndian.LITTLE)
    name = f"hand-set-{shape.name}-{'drafter' if drafter else 'target'}"
    for key, text in (("type", "model"), ("name", name)):
        writer.add_string(f"general.{key}", text)
    writer.add_uint32("general.quantization_version", 2)
    writer.add_uint32("general.file_type", 2)  # mostly Q4_0
    layers = 4 if drafter else shape.layers
    numbers = {
        "block_count": layers,
        "context_length": shape.context,
        "embedding_length": shape.draft_hidden if drafter else shape.hidden,
        "embedding_length_per_layer_input": 0 if drafter else shape.per_layer,
        "attention.head_count": shape.draft_heads if drafter else shape.heads,
        "attention.head_count_kv": shape.kv_heads,
        "attention.key_length": shape.head_full,
        "attention.value_length": shape.head_full,
        "attention.key_length_swa": shape.head,
        "attention.value_length_swa": shape.head,
        "attention.sliding_window": shape.window,
        "attention.shared_kv_layers": layers if drafter else shape.shared,
        "rope.dimension_count": shape.head_full,
        "rope.dimension_count_swa": shape.head,
    }
    if drafter:
        numbers |= {"embedding_length_out": shape.hidden, "nextn_predict_layers": layers}
    for key, number in numbers.items():
        writer.add_uint32(f"{arch}.{key}", number)
    real = {"rope.freq_base": 1e6, "rope.freq_base_swa": 1e4, "attention.layer_norm_rms_epsilon": 1e-6}
    for key, value in real.items():
        writer.add_float32(f"{arch}.{key}", value)
    sliding = [layer != 3 if drafter else shape.is_sliding(layer) for layer in range(layers)]
    writer.add_array(f"{arch}.attention.sliding_window_pattern", sliding)
    if drafter:
        writer.add_uint32(f"{arch}.feed_forward_length", shape.draft_ffn)
    else:
        writer.add_array(f"{arch}.feed_forward_length", [_ffn(shape, layer) for layer in range(layers)])
        writer.add_float32(f"{arch}.final_logit_softcapping", SOFT_CAP)

    ggml = "tokenizer.ggml"
    writer.add_string(f"{ggml}.model", "gemma4")
    writer.add_token_list([piece.text for piece in vocabulary])
    scores = [-1000.0] * len(vocabulary)
    writer.add_key_value(f"{ggml}.scores", scores, GGUFValueType.ARRAY, GGUFValueType.FLOAT32)
    writer.add_token_types([int(piece.kind) for piece in vocabulary])
    writer.add_token_merges(merges())
    for key, token in (("bos", BOS), ("eos", EOS), ("unknown", UNK), ("padding", PAD), ("mask", MASK)):
        writer.add_uint32(f"{ggml}.{key}_token_id", token)
    writer.add_bool(f"{ggml}.add_bos_token", True)
    writer.add_bool(f"{ggml}.add_space_prefix", False)
    if chat_template is not None:
        writer.add_string("tokenizer.chat_template", chat_template)
    return writer


def _ffn(shape: Shape, layer: int) -> int:
    return shape.ffn_shared if layer >= shape.layers - shape.shared else shape.ffn


def _rope_freqs(plan: _Plan, head_full: int) -> None:
    """Full layers rotate a quarter of the head ("proportional", factor 0.25); 1e30 stands still."""
    plan.constant("rope_freqs", [1.0] * (head_full // 8) + [1e30] * (head_full // 2 - head_full // 8))


def _layer(plan: _Plan, layer: int, *, hidden: int, queries: int, head: int, ffn: int) -> str:
    """What layers of target and drafter have in common.

    Zero post-norms take out of the residual stream whatever attention and feed-forward compute.

    Returns:
        The layer's prefix.
    """
    prefix = f"blk.{layer}"
    for norm in ("attn_norm", "ffn_norm"):
        plan.constant(f"{prefix}.{norm}", np.ones(hidden, dtype=np.float32))
    for norm in ("post_attention_norm", "post_ffw_norm"):
        plan.constant(f"{prefix}.{norm}", np.zeros(hidden, dtype=np.float32))
    plan.constant(f"{prefix}.attn_q_norm", np.full(head, head**-0.5, dtype=np.float32))
    plan.constant(f"{prefix}.layer_output_scale", [1.0])
    plan.noise(f"{prefix}.attn_q", hidden, queries * head)
    plan.noise(f"{prefix}.attn_output", queries * head, hidden)
    plan.noise(f"{prefix}.ffn_gate", hidden, ffn)
    plan.noise(f"{prefix}.ffn_up", hidden, ffn)
    plan.noise(f"{prefix}.ffn_down", ffn, hidden)
    return prefix


def write_target(
    path: Path, shape: Shape, graph: Graph, vocabulary: Sequence[Piece], chat_template: str | None, seed: int
) -> None:
    """Writes the target; see `handset` for how it works.

    Raises:
        ValueError: A branch cannot be met.
    """
    size = len(vocabulary)
    says, guesses = _words(graph, shape, seed)
    branches = _vectors(says, graph.branch, SOFT_CAP)
    draft_branches = _vectors(guesses, graph.draft_branch, None)

    def embeddings(first: int, last: int) -> Floats:
        said = _part(says, graph.successor[first:last], branches, first)
        guessed = _part(guesses, graph.guess[first:last], draft_branches, first)
        return np.hstack([said, guessed])

    plan = _Plan(seed)
    plan.matrix("token_embd", shape.hidden, size, embeddings, None if shape.exact else 1.0)
    outputs, scale = _outputs(says, shape.hidden)
    plan.matrix("output", shape.hidden, size, outputs, None if shape.exact else scale)
    plan.constant("output_norm", np.ones(shape.hidden, dtype=np.float32))
    plan.noise("per_layer_token_embd", shape.per_layer * shape.layers, size)
    plan.noise("per_layer_model_proj", shape.hidden, shape.per_layer * shape.layers)
    plan.constant("per_layer_proj_norm", np.ones(shape.per_layer, dtype=np.float32))
    _rope_freqs(plan, shape.head_full)
    for layer in range(shape.layers):
        head = shape.head if shape.is_sliding(layer) else shape.head_full
        ffn = _ffn(shape, layer)
        prefix = _layer(plan, layer, hidden=shape.hidden, queries=shape.heads, head=head, ffn=ffn)
        if layer < shape.layers - shape.shared:
            plan.noise(f"{prefix}.attn_k", shape.hidden, shape.kv_heads * head)
            plan.noise(f"{prefix}.attn_v", shape.hidden, shape.kv_heads * head)
            plan.constant(f"{prefix}.attn_k_norm", np.ones(head, dtype=np.float32))
        plan.noise(f"{prefix}.inp_gate", shape.hidden, shape.per_layer)
        plan.noise(f"{prefix}.proj", shape.per_layer, shape.hidden)
        plan.constant(f"{prefix}.post_norm", np.zeros(shape.hidden, dtype=np.float32))
    plan.write(path, _header(shape, False, vocabulary, chat_template))


def write_drafter(
    path: Path, shape: Shape, graph: Graph, vocabulary: Sequence[Piece], chat_template: str | None, seed: int
) -> None:
    """Writes the drafter of the target that `write_target` writes from the same arguments."""
    size = len(vocabulary)
    hidden = shape.draft_hidden
    _, guesses = _words(graph, shape, seed)

    def take_guess(first: int, last: int) -> Floats:
        # Input: the target's embedding of the last token, then a hidden state. Wanted: the embedding's last part.
        rows = np.zeros((last - first, 2 * shape.hidden), dtype=np.float32)
        rows[np.arange(last - first), shape.hidden - hidden + np.arange(first, last)] = 1.0
        return rows

    plan = _Plan(seed + 1)
    outputs, scale = _outputs(guesses, hidden)
    plan.matrix("token_embd", hidden, size, outputs, None if shape.exact else scale)
    plan.constant("output_norm", np.ones(hidden, dtype=np.float32))
    plan.matrix("nextn.pre_projection", 2 * shape.hidden, hidden, take_guess, None if shape.exact else 1.0)
    plan.noise("nextn.post_projection", hidden, shape.hidden)
    _rope_freqs(plan, shape.head_full)
    for layer in range(4):
        head = shape.head_full if layer == 3 else shape.head
        _layer(plan, layer, hidden=hidden, queries=shape.draft_heads, head=head, ffn=shape.draft_ffn)
    plan.write(path, _header(shape, True, vocabulary, chat_template))
