from __future__ import annotations

import errno
import hashlib
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO

import numpy as np
import pytest
from numpy.typing import NDArray

from support.assistants import QatDrafter
from tandem.errors import ModelError, UsageError
from tandem.models import repack_run
from tandem.models.errors import TransferError
from tandem.models.repack import repack


@pytest.fixture(scope="module")
def drafter(tmp_path_factory: pytest.TempPathFactory, demo_pair: tuple[Path, Path]) -> QatDrafter:
    return QatDrafter(tmp_path_factory.mktemp("qat"), demo_pair[1])


def _folder_missing(folder: Path, place: Path) -> tuple[Path, Path]:
    return folder / "nowhere", place / "out.gguf"


def _a_file(folder: Path, place: Path) -> tuple[Path, Path]:
    return folder / "model.safetensors", place / "out.gguf"


def _another_ending(folder: Path, place: Path) -> tuple[Path, Path]:
    return folder, place / "out.safetensors"


def _no_folder_for_it(folder: Path, place: Path) -> tuple[Path, Path]:
    return folder, place / "nowhere" / "out.gguf"


def _over_a_folder(folder: Path, place: Path) -> tuple[Path, Path]:
    (place / "out.gguf").mkdir()
    return folder, place / "out.gguf"


def _over_its_weights(folder: Path, place: Path) -> tuple[Path, Path]:
    os.link(folder / "model.safetensors", place / "out.gguf")
    return folder, place / "out.gguf"


def _over_a_link_to_its_weights(folder: Path, place: Path) -> tuple[Path, Path]:
    (place / "out.gguf").symlink_to(folder / "model.safetensors")
    return folder, place / "out.gguf"


@pytest.mark.parametrize(
    "wrong",
    [
        _folder_missing,
        _a_file,
        _another_ending,
        _no_folder_for_it,
        _over_a_folder,
        _over_its_weights,
        _over_a_link_to_its_weights,
    ],
)
def test_senseless_places(
    drafter: QatDrafter, tmp_path: Path, wrong: Callable[[Path, Path], tuple[Path, Path]]
) -> None:
    before = (drafter.folder / "model.safetensors").read_bytes()
    with pytest.raises(UsageError) as caught:
        repack(*wrong(drafter.folder, tmp_path))
    assert caught.value.sentence.endswith(".")
    assert caught.value.remedy.endswith(".")
    assert (drafter.folder / "model.safetensors").read_bytes() == before


def test_a_link_keeps_leading_to_the_new_file(drafter: QatDrafter, tmp_path: Path) -> None:
    real = tmp_path / "real.gguf"
    real.write_bytes(b"old")
    (tmp_path / "link.gguf").symlink_to(real)
    report = repack(drafter.folder, tmp_path / "link.gguf")
    assert (tmp_path / "link.gguf").is_symlink()
    assert hashlib.sha256(real.read_bytes()).hexdigest() == report.sha256


def test_no_room_leaves_the_old_file(drafter: QatDrafter, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    out = tmp_path / "out.gguf"
    out.write_bytes(b"as it was")
    monkeypatch.setattr(repack_run, "free_bytes", lambda _folder: 1000)
    with pytest.raises(TransferError) as caught:
        repack(drafter.folder, out)
    assert (caught.value.fault, caught.value.exit_code) == ("no-room", 5)
    assert out.read_bytes() == b"as it was"
    assert [path.name for path in tmp_path.iterdir()] == ["out.gguf"]


@pytest.mark.parametrize(
    ("number", "fault", "words"),
    [
        (errno.ENOSPC, "disk-full", "is full"),
        (errno.EDQUOT, "disk-full", "is full"),
        (errno.EROFS, "disk", "may not write"),
        (errno.EIO, "disk", "cannot be written"),
    ],
)
@pytest.mark.parametrize("after", [0, 10, 40])
def test_errors_of_the_disk_while_writing(
    drafter: QatDrafter,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    number: int,
    fault: str,
    words: str,
    after: int,
) -> None:
    pads = iter(range(after + 1))
    pad = repack_run._pad

    def failing(stream: BinaryIO) -> None:
        if next(pads) == after:
            raise OSError(number, os.strerror(number))
        pad(stream)

    monkeypatch.setattr(repack_run, "_pad", failing)
    with pytest.raises(TransferError) as caught:
        repack(drafter.folder, tmp_path / "out.gguf")
    assert caught.value.fault == fault
    assert words in caught.value.sentence
    assert not list(tmp_path.iterdir())


@pytest.mark.skipif(os.name != "posix", reason="limits of a process")
def test_a_disk_that_ends_while_it_is_written(drafter: QatDrafter, tmp_path: Path) -> None:
    # The limit of a process on the size of its files, as a stand-in for a disk that is too small.
    script = (
        "import resource, signal, sys\n"
        "from pathlib import Path\n"
        "from tandem.models.errors import TransferError\n"
        "from tandem.models.repack import repack\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (500_000, 500_000))\n"
        "try:\n"
        "    repack(Path(sys.argv[1]), Path(sys.argv[2]))\n"
        "except TransferError as error:\n"
        "    print(error.fault, error.sentence)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, drafter.folder, tmp_path / "out.gguf"],
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    assert done.stdout.startswith("disk ")
    assert not list(tmp_path.iterdir())


def test_nothing_heavy_is_loaded_before_a_repack() -> None:
    script = (
        "import sys\n"
        "import tandem.models.repack\n"
        "print(*sorted({'numpy', 'gguf', 'safetensors'} & sys.modules.keys()))\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=120, check=True)
    assert done.stdout.split() == []


def test_weights_that_change_on_the_way_to_the_disk_are_noticed(
    drafter: QatDrafter, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pack = repack_run.grid.pack

    def spoilt(found: repack_run.grid.Grid) -> NDArray[np.uint8]:
        packed = pack(found)
        packed[-1, 9] ^= 0x10
        return packed

    monkeypatch.setattr(repack_run.grid, "pack", spoilt)
    with pytest.raises(ModelError) as caught:
        repack(drafter.folder, tmp_path / "out.gguf")
    assert "does not hold the same weights: 23 of 1,343,488 differ" in caught.value.sentence
    assert not list(tmp_path.iterdir())
