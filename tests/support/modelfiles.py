"""Small model files in the shapes of Gemma 4's sizes, catalogs of them, and stores that hold them."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping
from pathlib import Path

from support.ggufbytes import Tensor, Value, drafter, sections, target, words
from tandem.models.catalog import Catalog, CatalogFile, CatalogPair, CatalogSize
from tandem.models.records import Installed
from tandem.models.store import Store

TOKENS = 2048

_SHAPES = {"e2b": (1536, 35, 20, 5, 1), "e4b": (2560, 42, 18, 6, 2)}


def target_bytes(size: str = "e2b", **changes: Value) -> bytes:
    """A file whose header is that of a target of that size; only the vocabulary is smaller."""
    hidden, layers, shared, period, kv_heads = _SHAPES[size]
    own: dict[str, Value] = {
        "general__name": f"Gemma 4 {size.upper()} It Qat",
        "gemma4__embedding_length": hidden,
        "gemma4__block_count": layers,
        "gemma4__attention__shared_kv_layers": shared,
        "gemma4__attention__sliding_window": 512,
        "gemma4__attention__sliding_window_pattern": [layer % period != period - 1 for layer in range(layers)],
        "gemma4__attention__head_count_kv": kv_heads,
        "gemma4__attention__key_length": 512,
        "gemma4__attention__key_length_swa": 256,
        "tokenizer__ggml__tokens": words(TOKENS),
    }
    return sections(target(**{**own, **changes})).joined()


def drafter_bytes(size: str = "e2b", **changes: Value) -> bytes:
    """A file whose header is that of the drafter of that size."""
    hidden, _layers, _shared, _period, kv_heads = _SHAPES[size]
    own: dict[str, Value] = {
        "general__name": f"Gemma 4 {size.upper()} It Qat Assistant",
        "drafter__block_count": 4,
        "drafter__embedding_length": 256,
        "drafter__embedding_length_out": hidden,
        "drafter__nextn_predict_layers": 4,
        "drafter__attention__sliding_window": 512,
        "drafter__attention__sliding_window_pattern": [True, True, True, False],
        "drafter__attention__head_count_kv": kv_heads,
        "drafter__attention__key_length": 512,
        "drafter__attention__key_length_swa": 256,
        "tokenizer__ggml__tokens": words(TOKENS),
    }
    return sections(drafter(**{**own, **changes})).joined()


def llama_bytes(tokens: int = 512) -> bytes:
    """A file of another family's model."""
    metadata: Mapping[str, Value] = {
        "general.architecture": "llama",
        "general.name": "Some Llama",
        "llama.block_count": 4,
        "llama.embedding_length": 2048,
        "tokenizer.ggml.model": "llama",
        "tokenizer.ggml.tokens": words(tokens, "other"),
    }
    return sections(metadata).joined()


def large_bytes(size: int = 4 << 20) -> bytes:
    """A target of about that many bytes, every one of them random."""
    rows = size // 18
    whole = sections(target(), [Tensor(shape=(32, rows), size=rows * 18)]).joined()
    return whole[: -rows * 18] + os.urandom(rows * 18)


def sha256(data: bytes) -> str:
    """Its 64 hex digits."""
    return hashlib.sha256(data).hexdigest()


def entry(role: str, data: bytes, *, repo: str, file: str, hub: bool = False) -> CatalogFile:
    """The catalog's entry of a file with that content."""
    return CatalogFile(
        role="drafter" if role == "drafter" else "target",
        repo=repo,
        file=file,
        sha256="hub" if hub else sha256(data),
        bytes=None if hub else len(data),
        about_bytes=len(data) if hub else None,
    )


def pair_of(key: str = "e2b", *, hub_drafter: bool = False, size: str = "e2b") -> CatalogPair:
    """A pair of `target_bytes` and `drafter_bytes`."""
    return CatalogPair(
        key=key,
        source="tester",
        quantisation="Q4_0",
        licence="Apache-2.0",
        target=entry("target", target_bytes(size), repo="tester/target", file=f"{size}-target.gguf"),
        drafter=entry(
            "drafter", drafter_bytes(size), repo="tester/drafter", file=f"{size}-drafter.gguf", hub=hub_drafter
        ),
    )


def catalog_of(*pairs: CatalogPair) -> Catalog:
    """A catalog with these pairs, each the only one of a size."""
    sizes = tuple(CatalogSize(key=f"size-{pair.key}", name=pair.key, main=True, pairs=(pair,)) for pair in pairs)
    return Catalog(version=1, sizes=sizes)


def put_part(store: Store, file: CatalogFile, data: bytes) -> Path:
    """Bytes that have come in of a file."""
    part = store.part(file)
    part.parent.mkdir(parents=True, exist_ok=True)
    part.write_bytes(data)
    return part


def install(store: Store, file: CatalogFile, data: bytes, commit: str = "c" * 40) -> Installed:
    """Installs a file from its bytes."""
    return store.install(file, put_part(store, file, data), sha256(data), commit, len(data), "Apache-2.0")


def install_pair(store: Store, pair: CatalogPair, size: str = "e2b") -> tuple[Installed, Installed]:
    """Installs both files of a pair of `pair_of`."""
    return install(store, pair.target, target_bytes(size)), install(store, pair.drafter, drafter_bytes(size))


def flip(path: Path, at: int = -1) -> None:
    """Turns one byte of a file into another, at the same size and time."""
    status = path.stat()
    data = bytearray(path.read_bytes())
    data[at] ^= 1
    path.write_bytes(data)
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
