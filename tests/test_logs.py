"""The log folder as one zip file."""

from __future__ import annotations

import os
import zipfile
from pathlib import Path

import pytest

from tandem import logs
from tandem.errors import TandemError
from tandem.logs import log_zip


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "logs"
    folder.mkdir()
    (folder / "engine-a.log").write_text("one", "utf-8")
    (folder / "tandem.log.1").write_text("zwei ü", "utf-8")
    return folder


def _texts(archive: Path) -> dict[str, str]:
    with zipfile.ZipFile(archive) as opened:
        assert opened.testzip() is None
        return {name: opened.read(name).decode() for name in opened.namelist()}


def test_every_log_is_in_it(folder: Path, tmp_path: Path) -> None:
    target = tmp_path / "로그.zip"
    assert log_zip(folder, target) == 2
    assert _texts(target) == {"engine-a.log": "one", "tandem.log.1": "zwei ü"}


def test_nothing_but_logs_is_in_it(folder: Path, tmp_path: Path) -> None:
    secret = tmp_path / "chats.log"
    secret.write_text("what was said", "utf-8")
    (folder / "link.log").symlink_to(secret)
    (folder / "history.db").write_text("what was said", "utf-8")
    (folder / "more.log").mkdir()
    os.mkfifo(folder / "pipe.log")
    target = folder / "logs.zip"
    assert log_zip(folder, target) == 2
    assert log_zip(folder, target) == 2
    assert set(_texts(target)) == {"engine-a.log", "tandem.log.1"}


def test_of_a_huge_log_the_end_is_kept(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(logs, "LARGEST", 8)
    (folder / "engine-a.log").write_text("a long beginning; the end", "utf-8")
    log_zip(folder, tmp_path / "logs.zip")
    assert _texts(tmp_path / "logs.zip")["engine-a.log"] == " the end"


def test_a_log_that_vanishes_is_left_out(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    gone = folder / "gone.log"
    monkeypatch.setattr(logs, "_regular", lambda _folder: iter([gone, folder / "engine-a.log"]))
    assert log_zip(folder, tmp_path / "logs.zip") == 1


def test_a_name_that_is_no_text_is_packed(folder: Path, tmp_path: Path) -> None:
    Path(os.fsdecode(os.fsencode(folder) + b"/engine-\xff.log")).write_text("odd", "utf-8")
    assert log_zip(folder, tmp_path / "logs.zip") == 3
    assert "odd" in _texts(tmp_path / "logs.zip").values()


def test_a_file_that_was_there_stays_when_saving_fails(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = tmp_path / "logs.zip"
    target.write_text("before", "utf-8")

    def full(_handle: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(TandemError, match="No space left on device"):
        log_zip(folder, target)
    assert target.read_text("utf-8") == "before"
    assert [path.name for path in tmp_path.iterdir() if path.suffix == ".part"] == []


def test_folders_that_are_not_there_are_sentences(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(TandemError, match="cannot be read"):
        log_zip(tmp_path / "none", tmp_path / "logs.zip")
    with pytest.raises(TandemError, match="cannot be saved"):
        log_zip(folder, tmp_path / "none" / "logs.zip")
