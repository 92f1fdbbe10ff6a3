"""Sizes of hand-set pairs: those of Gemma 4's small models, and one for tests."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True)
class Shape:
    """Sizes of a target and of its drafter, in Gemma 4's terms.

    Attributes:
        name: Short name for file names.
        hidden: Width of the target's residual stream.
        layers: Layers of the target.
        period: Every `period`-th layer of the target has full attention, the others a sliding window.
        shared: Last layers of the target that use the KV cache of an earlier one.
        heads: Query heads of the target.
        kv_heads: KV heads of target and drafter (the drafter reads the target's cache).
        head: Head size of sliding layers, of target and drafter.
        head_full: Head size of full layers.
        ffn: Feed-forward width of target layers with a KV cache of their own.
        ffn_shared: Feed-forward width of the `shared` last layers.
        per_layer: Width of the per-layer embeddings.
        window: Sliding window in tokens.
        context: Longest context in tokens.
        draft_hidden: Width of the drafter; its four layers are sliding, sliding, sliding, full.
        draft_heads: Query heads of the drafter.
        draft_ffn: Feed-forward width of the drafter.
        exact: Whether what decides the token is stored as F32 (small files only); else everything is Q4_0, as in
            Gemma's QAT files, and tokens cannot branch.
    """

    name: str
    hidden: int
    layers: int
    period: int
    shared: int
    heads: int
    kv_heads: int
    head: int
    head_full: int
    ffn: int
    ffn_shared: int
    per_layer: int
    window: int
    context: int
    draft_hidden: int
    draft_heads: int
    draft_ffn: int
    exact: bool = False

    def __post_init__(self) -> None:
        """Checks what llama.cpp takes for granted.

        Raises:
            ValueError: The sizes do not make a Gemma 4.
        """
        own = self.layers - self.shared
        # llama.cpp (llama-model.cpp) gives a shared layer the cache of the last sliding or full layer with one of
        # its own, and the drafter those of the target's last two layers, all of them by position.
        if not (self.is_sliding(own - 2) and not self.is_sliding(own - 1)):
            raise ValueError("The last two layers with their own KV cache must be sliding and full.")
        if not (self.is_sliding(self.layers - 2) and not self.is_sliding(self.layers - 1)):
            raise ValueError("The last two layers must be sliding and full.")
        if any(size % 32 for size in (self.hidden, self.per_layer, self.draft_hidden, self.ffn, self.draft_ffn)):
            raise ValueError("Q4_0 needs rows of a multiple of 32.")
        if self.draft_hidden >= self.hidden:
            raise ValueError("The drafter must be narrower than the target.")

    def is_sliding(self, layer: int) -> bool:
        """Whether a layer of the target has a sliding window."""
        return layer % self.period != self.period - 1


E2B: Final = Shape(
    name="e2b",
    hidden=1536,
    layers=35,
    period=5,
    shared=20,
    heads=8,
    kv_heads=1,
    head=256,
    head_full=512,
    ffn=6144,
    ffn_shared=12288,
    per_layer=256,
    window=512,
    context=131072,
    draft_hidden=256,
    draft_heads=4,
    draft_ffn=2048,
)
"""Gemma 4 E2B. With these sizes in Q4_0 the tensors and some 16 MB of tokenizer make the published 2,620,370,912
bytes of its target and 59.2 MB of its drafter. (The file written here is larger by the output matrix, 226 MB, which
in Gemma is the embedding once more: a pass reads the same number of bytes.)"""

E4B: Final = Shape(
    name="e4b",
    hidden=2560,
    layers=42,
    period=6,
    shared=18,
    heads=8,
    kv_heads=2,
    head=256,
    head_full=512,
    ffn=10240,
    ffn_shared=10240,
    per_layer=256,
    window=512,
    context=131072,
    draft_hidden=256,
    draft_heads=4,
    draft_ffn=2048,
)
"""Gemma 4 E4B, checked in the same way against its 4,215,695,712 and 59.7 MB."""

TINY: Final = Shape(
    name="tiny",
    hidden=384,
    layers=6,
    period=3,
    shared=3,
    heads=2,
    kv_heads=1,
    head=64,
    head_full=128,
    ffn=128,
    ffn_shared=256,
    per_layer=32,
    window=32,
    context=2048,
    draft_hidden=128,
    draft_heads=2,
    draft_ffn=128,
    exact=True,
)
"""For tests: a few megabytes, a pass in well under a millisecond, a window short enough to leave."""
