"""Model files of other programs: found where those keep them, quickly, and never read."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import pytest

from support.modelfiles import catalog_of, large_bytes, pair_of, sha256
from tandem.models import places
from tandem.models.imports import look, take
from tandem.models.places import Known, known
from tandem.models.store import Store

DATA = large_bytes(2 << 20)
DIGEST = sha256(DATA)


def put(path: Path, data: bytes = DATA) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    return path


def linked(path: Path, blob: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        path.symlink_to(os.path.relpath(blob, path.parent))
    except OSError:
        pytest.skip("no symbolic links here")
    return path


def hub_cache(base: Path, name: str = "x.gguf") -> Path:
    repo = base / "models--owner--repo-GGUF"
    blob = put(repo / "blobs" / DIGEST)
    return linked(repo / "snapshots" / ("c" * 40) / name, blob)


def ollama(base: Path) -> Path:
    blob = put(base / "blobs" / f"sha256-{DIGEST}")
    layers = [
        {"mediaType": "application/vnd.ollama.image.template", "digest": "sha256:" + "a" * 64},
        {"mediaType": "application/vnd.ollama.image.model", "digest": f"sha256:{DIGEST}"},
    ]
    manifest = base / "manifests" / "registry.ollama.ai" / "library" / "gemma4" / "e2b"
    put(manifest, json.dumps({"layers": layers}).encode())
    return blob


def test_nothing_anywhere(tmp_path: Path) -> None:
    assert known({}, tmp_path) == ()


def test_each_program_in_its_usual_place(tmp_path: Path) -> None:
    cache = tmp_path / ".cache"
    expected = [
        Known(hub_cache(cache / "huggingface" / "hub"), "x.gguf", len(DATA), "hub-cache", DIGEST),
        Known(put(tmp_path / ".lmstudio" / "models" / "o" / "r" / "모델.gguf"), "모델.gguf", len(DATA), "lm-studio"),
        Known(ollama(tmp_path / ".ollama" / "models"), "gemma4:e2b", len(DATA), "ollama", DIGEST),
        Known(put(tmp_path / "Downloads" / "Загрузки 🦙.GGUF"), "Загрузки 🦙.GGUF", len(DATA), "downloads"),
    ]
    assert [one for one in known({}, tmp_path) if one.where != "llama.cpp"] == expected


def test_each_program_where_the_user_told_it(tmp_path: Path) -> None:
    environ = {
        "HF_HOME": str(tmp_path / "h"),
        "OLLAMA_MODELS": "~/o",
        "LLAMA_CACHE": str(tmp_path / "l"),
    }
    hub_cache(tmp_path / "h" / "hub")
    ollama(tmp_path / "o")
    put(tmp_path / "l" / "owner_repo_y.gguf")
    (tmp_path / ".lmstudio-home-pointer").write_text(str(tmp_path / "studio") + "\n", encoding="utf-8")
    put(tmp_path / "studio" / "models" / "o" / "r" / "z.gguf")
    put(tmp_path / ".ollama" / "models" / "blobs" / "sha256-1")  # not asked any more
    assert [(one.where, one.name) for one in known(environ, tmp_path)] == [
        ("hub-cache", "x.gguf"),
        ("lm-studio", "z.gguf"),
        ("ollama", "gemma4:e2b"),
        ("llama.cpp", "owner_repo_y.gguf"),
    ]
    direct = known({**environ, "HF_HUB_CACHE": str(tmp_path / "nowhere")}, tmp_path)
    assert "hub-cache" not in {one.where for one in direct}


def test_one_file_that_two_programs_know_is_listed_once(tmp_path: Path) -> None:
    link = hub_cache(tmp_path / ".cache" / "huggingface" / "hub")
    linked(tmp_path / "Downloads" / "y.gguf", Path(os.path.realpath(link)))
    assert [one.where for one in known({}, tmp_path)] == ["hub-cache"]


def test_links_that_lead_nowhere_notes_and_folders_are_left_out(tmp_path: Path) -> None:
    downloads = tmp_path / "Downloads"
    put(downloads / "pointer.gguf", b"version https://git-lfs.github.com/spec/v1\n")
    put(downloads / "notes.txt")
    put(downloads / "folder.gguf" / "inner.gguf")
    linked(downloads / "broken.gguf", tmp_path / "gone")
    linked(downloads / "circle.gguf", downloads / "circle.gguf")
    assert known({}, tmp_path) == ()


@pytest.mark.parametrize(
    "manifest",
    [
        b"",
        b"[]",
        b"{",
        b'{"layers": 3}',
        b'{"layers": [3]}',
        b'{"layers": [{"mediaType": 1, "digest": []}]}',
        json.dumps(
            {"layers": [{"mediaType": "application/vnd.ollama.image.model", "digest": "sha256:../../x"}]}
        ).encode(),
    ],
)
def test_manifests_that_are_none(tmp_path: Path, manifest: bytes) -> None:
    ollama(tmp_path / ".ollama" / "models")
    put(tmp_path / ".ollama" / "models" / "manifests" / "a" / "b" / "c" / "d", manifest)
    assert [one.name for one in known({}, tmp_path)] == ["gemma4:e2b"]


def test_it_ends_after_so_many_files_or_names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = put(tmp_path / "Downloads" / "0.gguf")
    for number in range(1, 6):
        shutil.copyfile(first, first.with_name(f"{number}.gguf"))
    monkeypatch.setattr(places, "MOST", 4)
    assert len(known({}, tmp_path)) == 4
    monkeypatch.setattr(places, "_MOST_NAMES", 2)
    assert len(known({}, tmp_path)) == 2
    monkeypatch.setattr(places, "_SECONDS", -1.0)
    assert known({}, tmp_path) == ()


def test_what_was_found_can_be_imported(tmp_path: Path) -> None:
    # Row 10 of the field problems: a model that is here already needs no Hub.
    store = Store(tmp_path / "models", catalog_of(pair_of()))
    ollama(tmp_path / ".ollama" / "models")
    (found,) = known({}, tmp_path)
    entry = take(store, look(found.path, store=store), "link")
    assert entry.sha256 == found.sha256
    assert entry.path.suffix == ".gguf"
