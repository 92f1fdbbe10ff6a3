"""The pairs that Tandem knows, as data: `resources/catalog.toml`.

A file is known by its sha256, whatever its name. Where none is known, the entry says "hub": then the Hub's own LFS
hash is taken at the first download, and remembered with the installed file.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Annotated, Final, Literal

import msgspec

from tandem import paths
from tandem.errors import TandemError
from tandem.files import read_beginning

FILE: Final = "catalog.toml"
HUB: Final = "hub"
"""In place of a sha256: ask the Hub."""

_MAX_BYTES: Final = 1 << 20

Role = Literal["target", "drafter"]
Sha256 = Annotated[str, msgspec.Meta(pattern=r"\A(hub|[0-9a-f]{64})\Z")]
Revision = Annotated[str, msgspec.Meta(pattern=r"\A[0-9a-f]{40}\Z")]
_Name = Annotated[str, msgspec.Meta(min_length=1, max_length=200, pattern=r"\A[^\x00-\x1f\x7f-\x9f]*\Z")]
_Bytes = Annotated[int, msgspec.Meta(gt=0, lt=1 << 60)]


class CatalogFile(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One file.

    Attributes:
        role: What it is in its pair.
        repo: The Hub's repository, "owner/name".
        file: Its path there; where the Hub has the sha256 under another name, that file is taken.
        sha256: 64 lower-case hex digits, or "hub".
        bytes: Its exact size, where known.
        about_bytes: Its size to a few per cent, where the exact one is not known.
        revision: The commit, where known.
    """

    role: Role
    repo: Annotated[str, msgspec.Meta(pattern=r"\A\w[\w.-]*/\w[\w.-]*\Z")]
    file: Annotated[str, msgspec.Meta(pattern=r"\A\w[\w.-]*\.gguf\Z")]
    sha256: Sha256
    bytes: _Bytes | None = None
    about_bytes: _Bytes | None = None
    revision: Revision | None = None

    @property
    def size(self) -> int:
        """Its size in bytes, exact or about."""
        return self.bytes or self.about_bytes or 0

    @property
    def pin(self) -> str | None:
        """The sha256 that it must have, None where the Hub's is taken."""
        return None if self.sha256 == HUB else self.sha256


class CatalogPair(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A target and its drafter from one source.

    Attributes:
        key: Its name on the command line: "e2b", "e2b-unsloth".
        source: Who published it.
        quantisation: Such as "Q4_0 (QAT), exact".
        licence: SPDX identifier.
        target: The target.
        drafter: The drafter.
    """

    key: _Name
    source: _Name
    quantisation: _Name
    licence: _Name
    target: CatalogFile
    drafter: CatalogFile

    @property
    def files(self) -> tuple[CatalogFile, CatalogFile]:
        """Both, the target first."""
        return self.target, self.drafter

    @property
    def size(self) -> int:
        """Bytes of both files, as far as they are known."""
        return self.target.size + self.drafter.size


class Shape(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What the KV cache's size follows from.

    Attributes:
        full_layers: Layers with a KV cache over the whole context.
        sliding_layers: Layers with a KV cache over a window.
        kv_heads: Key-value heads of each.
    """

    full_layers: Annotated[int, msgspec.Meta(gt=0)]
    sliding_layers: Annotated[int, msgspec.Meta(gt=0)]
    kv_heads: Annotated[int, msgspec.Meta(gt=0)]


class CatalogSize(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A size of the model, with all its pairs.

    Attributes:
        key: "e2b", "e4b", "12b", "26b-a4b", "31b".
        name: "Gemma 4 E2B".
        main: Whether it is one of the two that Tandem is made for.
        pairs: The default one first.
        shape: None where it is not known before a file's header is read.
    """

    key: _Name
    name: _Name
    main: bool
    pairs: Annotated[tuple[CatalogPair, ...], msgspec.Meta(min_length=1)]
    shape: Shape | None = None

    @property
    def default(self) -> CatalogPair:
        """The pair to take where nothing else was chosen."""
        return self.pairs[0]


class Place(msgspec.Struct, frozen=True):
    """Where in the catalog a file stands."""

    size: CatalogSize
    pair: CatalogPair
    file: CatalogFile


class Catalog(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """All of it.

    Attributes:
        version: Of the file's form.
        sizes: Smallest first.
    """

    version: Literal[1]
    sizes: Annotated[tuple[CatalogSize, ...], msgspec.Meta(min_length=1)]

    def pairs(self) -> Iterator[tuple[CatalogSize, CatalogPair]]:
        """Every pair, with its size."""
        for size in self.sizes:
            for pair in size.pairs:
                yield size, pair

    def pair(self, key: str) -> CatalogPair | None:
        """The pair of that name, in any case; None for none."""
        wanted = key.strip().casefold()
        return next((pair for _size, pair in self.pairs() if pair.key == wanted), None)

    def size_of(self, pair: CatalogPair) -> CatalogSize:
        """The size that a pair belongs to."""
        return next(size for size, one in self.pairs() if one.key == pair.key)

    def by_sha256(self, sha256: str) -> Place | None:
        """The file with that pinned hash; None for none."""
        for size, pair in self.pairs():
            for file in pair.files:
                if file.pin == sha256:
                    return Place(size, pair, file)
        return None

    def by_name(self, repo: str, file: str) -> Place | None:
        """The file of that repository and name; None for none."""
        for size, pair in self.pairs():
            for one in pair.files:
                if (one.repo, one.file) == (repo, file):
                    return Place(size, pair, one)
        return None


def load(path: Path) -> Catalog:
    """Reads a catalog.

    Raises:
        TandemError: It is not there, or is none.
    """
    try:
        return msgspec.toml.decode(read_beginning(path, _MAX_BYTES) or b"", type=Catalog)
    except (OSError, msgspec.DecodeError, RecursionError) as error:
        raise TandemError(
            "Tandem's list of models is damaged.", "Install Tandem again.", f"{path.name}: {error}"
        ) from error


@cache
def catalog() -> Catalog:
    """The one that comes with the app, read once.

    Raises:
        TandemError: It is not there, or is none.
    """
    return load(paths.resources() / FILE)
