"""Files that are not what they should be: set aside in `quarantine/` under another name, with the reason beside."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Final

import msgspec

from tandem.errors import TandemError
from tandem.files import free_name, read_beginning, sync_folder, write_private
from tandem.models.disk import disk_error
from tandem.models.records import Quarantined, now, to_json

FOLDER: Final = "quarantine"
WHY: Final = ".why.json"

_MAX_BYTES: Final = 1 << 16


def set_aside(
    path: Path,
    models_folder: Path,
    error: TandemError,
    *,
    name: str = "",
    repo: str = "",
    file: str = "",
    expected: str = "",
    found: str = "",
) -> Quarantined:
    """Moves a file into quarantine, with the reason; the reason goes first, so that no file is there without one.

    Args:
        path: The file.
        models_folder: Quarantine is made in it.
        error: Why.
        name: The name it should have; "" takes the one it has.
        repo: The Hub's repository it should be from.
        file: Its name there.
        expected: The sha256 it should have.
        found: The sha256 it has.

    Raises:
        TransferError: It cannot be moved; it is then still where it was.
    """
    fault = str(getattr(error, "fault", "")) or "refused"
    try:
        folder = models_folder / FOLDER
        folder.mkdir(mode=0o700, exist_ok=True)
        target = free_name(folder / (name or path.name), fault)
        record = Quarantined(
            path=str(target),
            name=name or path.name,
            bytes=path.lstat().st_size,  # a link that leads nowhere too
            fault=fault,
            sentence=error.sentence,
            remedy=error.remedy,
            repo=repo,
            file=file,
            expected=expected,
            found=found,
            at=now(),
        )
        with suppress(OSError):  # a disk so full that the reason cannot be kept: the file goes without
            write_private(_why(target), to_json(msgspec.structs.replace(record, path=target.name)))
        path.rename(target)
    except OSError as problem:
        raise disk_error(problem, path) from problem
    sync_folder(folder)
    sync_folder(path.parent)
    return record


def listed(models_folder: Path) -> tuple[Quarantined, ...]:
    """What is in quarantine, oldest first by name; a reason without a file is left out."""
    folder = models_folder / FOLDER
    try:
        paths = sorted(path for path in folder.iterdir() if not path.name.endswith((WHY, ".part")))
        return tuple(_read(path) for path in paths)
    except OSError:
        return ()


def remove(record: Quarantined, models_folder: Path) -> None:
    """Deletes a file in quarantine, and its reason.

    Raises:
        TransferError: It cannot be deleted.
    """
    path = Path(record.path)
    if path.parent != models_folder / FOLDER:
        return
    try:
        path.unlink(missing_ok=True)
        _why(path).unlink(missing_ok=True)
    except OSError as error:
        raise disk_error(error, path) from error
    with suppress(OSError):  # not empty
        path.parent.rmdir()


def _why(path: Path) -> Path:
    return path.with_name(path.name + WHY)


def _read(path: Path) -> Quarantined:
    size = path.lstat().st_size
    try:
        record = msgspec.json.decode(read_beginning(_why(path), _MAX_BYTES) or b"", type=Quarantined)
    except (OSError, msgspec.DecodeError):
        return Quarantined(path=str(path), name=path.name, bytes=size)
    return msgspec.structs.replace(record, path=str(path), bytes=size)
