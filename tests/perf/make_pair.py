"""Makes hand-set pairs with the sizes of Gemma 4's small models, for benchmarks, in the user's cache.

    python tests/perf/make_pair.py --shape e2b --share .7

writes 2.8 GB once (under a minute) and prints the two paths; a second call finds them there. The target says some
normal token after each token, in one long cycle; the drafter guesses right after `share` of them, so that drafts of
length n are accepted up to the first wrong one: share, share^2, ... per position.
"""

from __future__ import annotations

import argparse
import dataclasses
import hashlib
import json
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import _path  # noqa: F401  (first: it makes the packages below importable)
from llama_server import cache_folder

from support.handset import E2B, E4B, FIRST_FREE, TINY, Shape, write_pair

SHAPES: Final = {shape.name: shape for shape in (TINY, E2B, E4B)}
_FORMAT: Final = 1  # raise it when what `write_pair` writes changes


def get_pair(shape: Shape, share: float, seed: int = 0) -> tuple[Path, Path]:
    """Target and drafter, written first where the cache does not have them.

    Args:
        shape: Sizes; one of `SHAPES`.
        share: Share of tokens after which the drafter is right, 0..1.
        seed: For everything random.
    """
    sizes = json.dumps([_FORMAT, dataclasses.asdict(shape), share, seed])
    key = hashlib.sha256(sizes.encode()).hexdigest()[:10]
    folder = cache_folder() / f"pair-{shape.name}-{round(share * 100)}-{key}"
    target, drafter = folder / f"{shape.name}-target.gguf", folder / f"{shape.name}-drafter.gguf"
    if not folder.exists():
        # Under another name until complete: a run that was broken off is not taken for a pair.
        scratch = folder.with_suffix(".part")
        shutil.rmtree(scratch, ignore_errors=True)
        write_pair(scratch, shape, wrong=1.0 - share, seed=seed)
        scratch.rename(folder)
    return target, drafter


def prompt(length: int) -> Sequence[int]:
    """Token ids of a prompt for these pairs: begin of sequence and normal tokens, in the vocabularies of all."""
    return [2, *(FIRST_FREE + number % 100 for number in range(length - 1))]


def main() -> None:
    """Prints the paths of the pair."""
    parser = argparse.ArgumentParser(description="Make a hand-set pair for benchmarks.")
    parser.add_argument("--shape", choices=SHAPES, default="e2b", help="whose sizes")
    parser.add_argument("--share", type=float, default=0.7, help="share of right guesses, 0..1")
    parser.add_argument("--seed", type=int, default=0, help="for everything random")
    options = parser.parse_args()
    if not 0.0 <= options.share <= 1.0:
        sys.exit("--share is a share, from 0 to 1")
    print(*get_pair(SHAPES[options.shape], options.share, options.seed), sep="\n")


if __name__ == "__main__":
    main()
