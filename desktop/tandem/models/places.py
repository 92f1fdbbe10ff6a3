"""Model files that other programs have put on this disk: where they are, what they are called, how large they are.

Only folders are listed and small notes read, never a model: this must be quick, and it ends after so many files or
seconds. Where a program names its files by their sha256, that is told too, so that the catalog can recognise them
before a byte is read; importing one still hashes it.
"""

from __future__ import annotations

import json
import os
import re
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final, Literal

import msgspec
import platformdirs

from tandem.engine.gguf_header import printable
from tandem.files import read_beginning

MOST: Final = 500
"""Files listed at most."""

_SECONDS: Final = 3.0
_MOST_NAMES: Final = 50_000
_DEPTH: Final = 5
_MAX_NOTE: Final = 1 << 20
_SMALLEST: Final = 1 << 20  # nothing below it is a model; notes and pointers of Git LFS are
_SHA256: Final = re.compile(r"(?:sha256[-:])?([0-9a-f]{64})\Z")
_MODEL_LAYER: Final = "application/vnd.ollama.image.model"

Where = Literal["hub-cache", "lm-studio", "ollama", "llama.cpp", "downloads"]


class Known(msgspec.Struct, frozen=True):
    """A file that was found.

    Attributes:
        path: Where it is.
        name: What its program calls it.
        bytes: Its size.
        where: Whose it is.
        sha256: What its program says of it, not checked; "" where it says nothing.
    """

    path: Path
    name: str
    bytes: int
    where: Where
    sha256: str = ""


def known(environ: Mapping[str, str] = os.environ, home: Path | None = None) -> tuple[Known, ...]:
    """Lists what the Hub cache, LM Studio, Ollama, llama.cpp and the downloads folder hold.

    A file that two of them name is listed once.

    Args:
        environ: Says where programs keep their files, where that is not the usual place.
        home: None takes the user's.
    """
    search = _Search(environ, home)
    found: dict[str, Known] = {}
    for one in search.all():
        found.setdefault(os.path.realpath(one.path), one)
        if len(found) >= MOST:
            break
    return tuple(found.values())


class _Search:
    """One search, which ends after so many seconds or names."""

    def __init__(self, environ: Mapping[str, str], home: Path | None) -> None:
        self._environ = environ
        self._home = home or Path.home()
        self._downloads_folder = self._home / "Downloads" if home else Path(platformdirs.user_downloads_dir())
        self._shared_ollama = [] if home else [Path("/usr/share/ollama/.ollama/models")]
        self._until = time.monotonic() + _SECONDS
        self._names_left = _MOST_NAMES

    def all(self) -> Iterator[Known]:
        yield from self._hub_cache()
        yield from self._lm_studio()
        yield from self._ollama()
        yield from self._llama_cpp()
        yield from self._downloads()

    def _hub_cache(self) -> Iterator[Known]:
        """`models--owner--name/snapshots/commit/file` leads to `blobs/sha256`."""
        base = self._set("HF_HOME") or self._cache() / "huggingface"
        folder = self._set("HF_HUB_CACHE") or self._set("HUGGINGFACE_HUB_CACHE") or base / "hub"
        for repo in self._entries(folder):
            if repo.name.startswith("models--"):
                for path in self._ggufs(repo / "snapshots", _DEPTH):
                    yield from _listed(path, path.name, "hub-cache", _hash_in(Path(os.path.realpath(path)).name))

    def _lm_studio(self) -> Iterator[Known]:
        folders = [self._home / ".lmstudio" / "models", self._home / ".cache" / "lm-studio" / "models"]
        pointer = _note(self._home / ".lmstudio-home-pointer").decode("utf-8", "surrogateescape").strip()
        if pointer:
            folders.insert(0, Path(pointer) / "models")
        for folder in folders:
            for path in self._ggufs(folder, _DEPTH):
                yield from _listed(path, path.name, "lm-studio")

    def _ollama(self) -> Iterator[Known]:
        """Manifests name a model and the blob that holds it."""
        chosen = self._set("OLLAMA_MODELS")
        usual = [self._home / ".ollama" / "models", *self._shared_ollama]
        for folder in [chosen] if chosen else usual:
            for manifest in self._files(folder / "manifests", _DEPTH):
                for digest in _model_layers(manifest):
                    blob = folder / "blobs" / f"sha256-{digest}"
                    yield from _listed(blob, f"{manifest.parent.name}:{manifest.name}", "ollama", digest)

    def _llama_cpp(self) -> Iterator[Known]:
        folder = self._cache() / "llama.cpp"
        if sys.platform == "win32":
            folder = (self._set("LOCALAPPDATA") or self._home / "AppData" / "Local") / "llama.cpp"
        elif sys.platform == "darwin":
            folder = self._home / "Library" / "Caches" / "llama.cpp"
        for path in self._ggufs(self._set("LLAMA_CACHE") or folder, 2):
            yield from _listed(path, path.name, "llama.cpp")

    def _downloads(self) -> Iterator[Known]:
        for path in self._ggufs(self._downloads_folder, 1):
            yield from _listed(path, path.name, "downloads")

    def _set(self, name: str) -> Path | None:
        """The folder that a variable names."""
        text = self._environ.get(name, "")
        if text.startswith("~/"):
            return self._home / text[2:]
        return Path(text) if text else None

    def _cache(self) -> Path:
        return self._set("XDG_CACHE_HOME") or self._home / ".cache"

    def _ggufs(self, folder: Path, depth: int) -> Iterator[Path]:
        return (path for path in self._files(folder, depth) if path.name.lower().endswith(".gguf"))

    def _files(self, folder: Path, depth: int) -> Iterator[Path]:
        """Files of a folder and of those in it, by name; links to folders are not followed."""
        inner: list[Path] = []
        for path in self._entries(folder):
            if path.is_dir() and not path.is_symlink():
                inner.append(path)
            else:
                yield path
        for one in inner if depth > 1 else ():
            yield from self._files(one, depth - 1)

    def _entries(self, folder: Path) -> list[Path]:
        """What is in a folder; nothing where it cannot be read, or when the search has gone on for too long."""
        found: list[Path] = []
        if time.monotonic() > self._until:
            return found
        try:
            for path in folder.iterdir():
                if self._names_left <= 0:
                    break
                self._names_left -= 1
                found.append(path)
        except (OSError, ValueError):  # ValueError: a name that no file can have
            return []
        return sorted(found)


def _listed(path: Path, name: str, where: Where, sha256: str = "") -> Iterator[Known]:
    try:
        size = path.stat().st_size
    except OSError:  # a link that leads nowhere
        return
    if size >= _SMALLEST and path.is_file():
        yield Known(path, printable(name), size, where, sha256)


def _note(path: Path) -> bytes:
    try:
        return read_beginning(path, _MAX_NOTE) or b""
    except OSError:
        return b""


def _hash_in(name: str) -> str:
    match = _SHA256.match(name)
    return match.group(1) if match else ""


def _model_layers(manifest: Path) -> list[str]:
    """The sha256 of each model that a manifest of Ollama's names."""
    try:
        layers = json.loads(_note(manifest)).get("layers", [])
        kinds = [(layer.get("mediaType"), _hash_in(str(layer.get("digest")))) for layer in layers]
    except (ValueError, AttributeError, TypeError, RecursionError):
        return []
    return [digest for kind, digest in kinds if kind == _MODEL_LAYER and digest]
