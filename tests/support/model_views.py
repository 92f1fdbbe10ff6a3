"""Pairs, files and jobs in every state, as the window is told of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tandem.models.catalog import catalog
from tandem.models.imports import NOTE_LICENCE, NOTE_NOT_QAT, Found
from tandem.models.overview import FileView, Overview, PairView
from tandem.models.places import Known
from tandem.models.progress import FileProgress, JobProgress
from tandem.models.records import Quarantined, now
from tandem.models.state import FileState
from tandem.ui.session_state import NetworkView, VariableView

FOLDER = "/srv/models"
GIB = 1 << 30
_WHOLE = {FileState.INSTALLED, FileState.VERIFYING, FileState.CHANGED}
_PART = {FileState.PAUSED, FileState.FAILED, FileState.TRANSFERRING}


def pair_view(key: str, state: FileState, *, share: float = 0.0, sentence: str = "", remedy: str = "") -> PairView:
    """A pair both of whose files are in that state; of a part, `share` of the target is here."""
    pair = catalog().pair(key)
    assert pair is not None
    files = []
    for file in pair.files:
        done = file.size if state in _WHOLE else int(file.size * share) if state in _PART else 0
        if state in _PART and file.role == "drafter":
            done = 0
        files.append(
            FileView(
                file.file,
                file.role,
                state,
                done,
                file.size,
                path=f"{FOLDER}/{file.repo}/{file.file}" if done else None,
                verified_at="2026-12-03T10:00:00+00:00" if state is FileState.INSTALLED else None,
                licence=pair.licence,
                sentence=sentence,
                remedy=remedy,
            )
        )
    whole = state is FileState.INSTALLED
    return PairView(
        key,
        catalog().size_of(pair).key,
        state,
        (files[0], files[1]),
        sum(file.done for file in files),
        files[0].path if whole else None,
        files[1].path if whole else None,
        sentence,
        remedy,
    )


def overview(*views: PairView, **lists: Any) -> Overview:
    """Everything absent but these pairs."""
    told = {view.key: view for view in views}
    pairs = [told.get(pair.key) or pair_view(pair.key, FileState.ABSENT) for _size, pair in catalog().pairs()]
    return Overview(FOLDER, 123 * GIB, tuple(pairs), **lists)


def job(key: str, state: FileState, share: float = 0.4, **fields: Any) -> JobProgress:
    """A download whose target is in that state; the drafter waits for it."""
    pair = catalog().pair(key)
    assert pair is not None
    after = FileState.QUEUED if state in {FileState.RESOLVING, FileState.TRANSFERRING, FileState.CHECKING} else state
    target, drafter = pair.files
    files = (
        FileProgress(target.file, state, int(target.size * share), target.size),
        FileProgress(drafter.file, after, 0, drafter.size),
    )
    return JobProgress(key, files, **fields)


def check_job(key: str, name: str, state: FileState = FileState.VERIFYING) -> JobProgress:
    """A file that is hashed, copied or moved."""
    return JobProgress(key, (FileProgress(name, state, GIB, 3 * GIB),), 1.2 * GIB, 12.0)


def imported_files() -> tuple[FileView, ...]:
    """One that is used where it is, and one that is gone."""
    long = "a-very-long-name-of-a-model-that-somebody-made-themselves-and-that-never-ends-Q4_K_M.gguf"
    return (
        FileView(
            long,
            "target",
            FileState.INSTALLED,
            3 * GIB,
            3 * GIB,
            path=f"/srv/elsewhere/{long}",
            in_place=True,
            architecture="gemma4",
            quantisation="Q4_K_M",
        ),
        FileView(
            "모델.gguf",
            "model",
            FileState.MISSING,
            0,
            GIB,
            path=f"{FOLDER}/imported/모델.gguf",
            licence="MIT",
            architecture="llama",
            quantisation="Q8_0",
            sentence="모델.gguf is not where it was.",
            remedy="Put it back.",
        ),
    )


def set_aside() -> Quarantined:
    """A file that failed its check."""
    return Quarantined(
        f"{FOLDER}/quarantine/gemma.gguf.wrong-hash",
        "gemma-4-E4B-it-q4_0-exact.gguf",
        4_215_695_712,
        "wrong-hash",
        f"gemma-4-E4B-it-q4_0-exact.gguf has the sha256 {'a' * 64} instead of {'b' * 64}.",
        "Start the download again.",
        at=now(),
    )


def found(name: str, *, key: str | None = None, role: str = "target", installed: bool = False) -> Found:
    """A file that was looked at; with a key, one that the catalog knows."""
    pair = catalog().pair(key) if key else None
    file = None if pair is None else pair.target if role == "target" else pair.drafter
    return Found(
        path=Path("/srv/elsewhere") / name,
        bytes=3 * GIB,
        mtime_ns=1,
        sha256="c" * 64,
        role=role,  # type: ignore[arg-type]
        architecture="gemma4",
        name="Some model",
        quantisation="Q4_0",
        licence=None if pair is None else pair.licence,
        key=key,
        file=file,
        notes=() if pair is not None else (NOTE_LICENCE, NOTE_NOT_QAT),
        installed=installed,
    )


def places() -> tuple[Known, ...]:
    """One that the catalog knows by what its program says of it, and one that nobody knows."""
    known = catalog().sizes[0].default.target
    return (
        Known(Path(f"/srv/hub/{known.file}"), known.file, known.size, "hub-cache", known.sha256),
        Known(Path("/srv/ollama/blobs/sha256-1"), "gemma4:latest", GIB, "ollama"),
    )


MIRROR = NetworkView(
    FOLDER,
    "https://mirror.example.org",
    "HF_ENDPOINT",
    "http://•••@proxy.example.org:8080",
    "HTTPS_PROXY",
    token="keyring",
    variables=(
        VariableView("HF_ENDPOINT", "https://mirror.example.org", "endpoint"),
        VariableView("HTTPS_PROXY", "http://•••@proxy.example.org:8080", "proxy"),
    ),
    hosts=("mirror.example.org",),
)
OFFLINE = NetworkView(
    FOLDER,
    "https://huggingface.co",
    offline=True,
    variables=(VariableView("HF_HUB_OFFLINE", "1", "offline"),),
    hosts=("huggingface.co", "*.hf.co"),
)
