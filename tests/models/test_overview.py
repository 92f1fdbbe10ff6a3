"""What a window or a terminal is shown of the models."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from support.modelfiles import (
    catalog_of,
    drafter_bytes,
    flip,
    install,
    install_pair,
    llama_bytes,
    pair_of,
    put_part,
    target_bytes,
)
from tandem.models.catalog import CatalogPair, catalog
from tandem.models.errors import TransferError
from tandem.models.imports import look, take
from tandem.models.overview import FileView, Overview, overview
from tandem.models.progress import FileProgress, JobProgress, Waiting
from tandem.models.state import FileState
from tandem.models.store import Store
from tandem.models.verify import verify

S = FileState


@pytest.fixture
def pair() -> CatalogPair:
    return pair_of()


@pytest.fixture
def store(tmp_path: Path, pair: CatalogPair) -> Store:
    return Store(tmp_path / "models", catalog_of(pair, pair_of("e4b", size="e4b")))


def files(store: Store, job: JobProgress | None = None) -> tuple[FileView, FileView]:
    return overview(store, job=job).pairs[0].files


def test_nothing_is_there(tmp_path: Path) -> None:
    seen = overview(Store(tmp_path / "none"))
    assert [pair.key for pair in seen.pairs] == [pair.key for _size, pair in catalog().pairs()]
    assert {pair.state for pair in seen.pairs} == {S.ABSENT}
    assert {pair.on_disk for pair in seen.pairs} == {0}
    assert seen.free > 0
    assert seen.folder == str(tmp_path / "none")
    assert not (tmp_path / "none").exists()
    assert seen.pairs[0].files[0].total == 2620370912
    assert seen.pair("e4b") is not None
    assert seen.pair("none") is None


def test_an_installed_pair(store: Store, pair: CatalogPair) -> None:
    target, drafter = install_pair(store, pair)
    seen = overview(store).pairs[0]
    assert seen.state is S.INSTALLED
    assert (seen.target, seen.drafter) == (str(target.path), str(drafter.path))
    assert seen.on_disk == pair.size
    assert seen.files[0].verified_at is not None
    assert seen.files[0].verified_at.endswith("+00:00")
    assert seen.files[0].licence == "Apache-2.0"
    assert overview(store).pairs[1].state is S.ABSENT
    assert overview(store).imported == ()


def test_a_part_of_an_earlier_run_is_listed_with_its_bytes(store: Store, pair: CatalogPair) -> None:
    # Row 54 of the field problems.
    part = put_part(store, pair.target, target_bytes()[:4000])
    view = files(store)[0]
    assert (view.state, view.done, view.total, view.path) == (S.PAUSED, 4000, pair.target.size, str(part))
    assert overview(store).pairs[0].state is S.PAUSED
    assert overview(store).pairs[0].on_disk == 4000


RECORD = b'{"repo": "a/b", "file": "f", "commit": "c", "sha256": "s", "bytes": %s}'


@pytest.mark.parametrize(
    ("record", "total"),
    [(RECORD % b"12345", 12345), (b"", None), (b"[]", None), (RECORD % b'"x"', None), (RECORD % b"true", None)],
)
def test_the_whole_size_is_the_one_the_hub_told(tmp_path: Path, record: bytes, total: int | None) -> None:
    pair = pair_of(hub_drafter=True)
    store = Store(tmp_path, catalog_of(pair))
    part = put_part(store, pair.drafter, b"x" * 10)
    store.record_of(part).write_bytes(record)
    assert files(store)[1].total == (total or pair.drafter.size)


KILLED = """
import sys
from pathlib import Path
part = Path(sys.argv[1])
part.parent.mkdir(parents=True)
with part.open("wb", buffering=0) as stream:
    stream.write(bytes(int(sys.argv[2])))
    print("written", flush=True)
    sys.stdin.read()
"""


@pytest.mark.skipif(sys.platform == "win32", reason="no SIGKILL there")
def test_the_list_is_made_again_after_a_kill_at_40_per_cent(store: Store, pair: CatalogPair) -> None:
    # Row 54 of the field problems.
    forty = pair.target.size * 2 // 5
    command = [sys.executable, "-c", KILLED, str(store.part(pair.target)), str(forty)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"written\n"
        process.send_signal(signal.SIGKILL)
    view = files(Store(store.folder, store.catalog))[0]
    assert (view.state, view.done) == (S.PAUSED, forty)


def test_half_a_pair_can_be_resumed(store: Store, pair: CatalogPair) -> None:
    install(store, pair.target, target_bytes())
    seen = overview(store).pairs[0]
    assert seen.state is S.PAUSED
    assert [file.state for file in seen.files] == [S.INSTALLED, S.ABSENT]
    assert seen.target is None
    assert seen.drafter is None


def test_what_changed_and_what_is_gone_is_said(store: Store, pair: CatalogPair) -> None:
    target, drafter = install_pair(store, pair)
    target.path.touch()
    drafter.path.unlink()
    views = files(store)
    assert [view.state for view in views] == [S.CHANGED, S.MISSING]
    assert "changed" in views[0].sentence
    assert "no longer" in views[1].sentence
    assert views[1].done == 0
    assert overview(store).pairs[0].sentence == views[0].sentence
    put_part(store, pair.drafter, drafter_bytes()[:50])  # it is being fetched again
    assert files(store)[1].state is S.PAUSED


def test_what_was_set_aside_is_listed_and_shown_until_it_is_there_again(store: Store, pair: CatalogPair) -> None:
    target, _drafter = install_pair(store, pair)
    flip(target.path)
    verify(store)
    seen = overview(store)
    assert seen.pairs[0].files[0].state is S.QUARANTINED
    assert seen.pairs[0].state is S.QUARANTINED
    assert seen.pairs[0].sentence == seen.quarantined[0].sentence != ""
    install(store, pair.target, target_bytes())
    seen = overview(store)
    assert seen.pairs[0].state is S.INSTALLED
    assert len(seen.quarantined) == 1


def test_verified_and_failed_are_never_shown_at_once(store: Store, pair: CatalogPair) -> None:
    # Row 53 of the field problems: one state a file, whatever came before.
    put_part(store, pair.target, target_bytes()[:100])
    assert files(store)[0].state is S.PAUSED
    store.remove_part(pair.target)
    with pytest.raises(TransferError):
        install(store, pair.target, b"<html>")
    assert files(store)[0].state is S.QUARANTINED
    put_part(store, pair.target, target_bytes()[:100])
    assert (files(store)[0].state, files(store)[0].sentence) == (S.PAUSED, "")
    install(store, pair.target, target_bytes())
    view = files(store)[0]
    assert (view.state, view.sentence, view.remedy) == (S.INSTALLED, "", "")
    assert view.verified_at is not None


def job(pair: CatalogPair, target: FileState, drafter: FileState, **more: object) -> JobProgress:
    both = (
        FileProgress(pair.target.file, target, 7, pair.target.size),
        FileProgress(pair.drafter.file, drafter, 3, pair.drafter.size),
    )
    return msgspec.structs.replace(JobProgress(pair.key, both), **more)


def test_a_job_that_runs_is_shown_in_its_pair_only(store: Store, pair: CatalogPair) -> None:
    put_part(store, pair.target, b"x" * 5)
    seen = overview(store, job=job(pair, S.TRANSFERRING, S.QUEUED))
    assert [(file.state, file.done) for file in seen.pairs[0].files] == [(S.TRANSFERRING, 7), (S.QUEUED, 3)]
    assert seen.pairs[0].state is S.TRANSFERRING
    assert seen.pairs[1].state is S.ABSENT


def test_a_job_that_waits_or_failed_says_why(store: Store, pair: CatalogPair) -> None:
    waiting = Waiting("The line broke.", 3.0, 2)
    assert files(store, job(pair, S.TRANSFERRING, S.QUEUED, waiting=waiting))[0].sentence == "The line broke."
    failed = job(pair, S.FAILED, S.PAUSED, sentence="It is not there.", remedy="Choose another.")
    view = files(store, failed)[0]
    assert (view.state, view.sentence, view.remedy) == (S.FAILED, "It is not there.", "Choose another.")


def test_an_old_report_does_not_hide_what_is_installed(store: Store, pair: CatalogPair) -> None:
    install_pair(store, pair)
    for old in (S.PAUSED, S.FAILED, S.ABSENT):
        assert overview(store, job=job(pair, old, old)).pairs[0].state is S.INSTALLED


def test_imported_files_are_listed_by_themselves(store: Store, tmp_path: Path, pair: CatalogPair) -> None:
    install_pair(store, pair)
    other = tmp_path / "llama.gguf"
    other.write_bytes(llama_bytes())
    take(store, look(other, store=store), "in-place")
    (view,) = overview(store).imported
    assert (view.name, view.role, view.state, view.in_place) == ("llama.gguf", "model", S.INSTALLED, True)
    assert view.licence is None
    assert view.architecture == "llama"


def test_it_goes_into_json_and_back(store: Store, pair: CatalogPair) -> None:
    target, _drafter = install_pair(store, pair)
    flip(target.path)
    verify(store)
    seen = overview(store)
    assert msgspec.json.decode(msgspec.json.encode(seen), type=Overview) == seen
    plain = json.loads(msgspec.json.encode(seen))
    assert plain["pairs"][0]["files"][0]["state"] == "quarantined"
    assert os.fspath(store.folder) == plain["folder"]
