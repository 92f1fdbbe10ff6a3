"""What is wrong with an installed file, as errors that are shown and not raised."""

from __future__ import annotations

from tandem.engine.gguf_header import printable
from tandem.errors import TandemError
from tandem.models.disk import shown
from tandem.models.errors import TransferError
from tandem.models.records import Installed
from tandem.models.state import FileState


def problem_of(entry: Installed, state: FileState) -> TandemError | None:
    """What to say of a file in that state; None for nothing."""
    name = printable(entry.path.name)
    if state is FileState.MISSING:
        return TransferError(
            "disk",
            f"{name} is no longer in {shown(entry.path.parent)}.",
            "Connect its disk, or get the file again.",
        )
    if state is FileState.CHANGED and entry.verified_at is None:
        return TransferError(
            "wrong-hash",
            f"{name} was found on the disk and has not been verified yet.",
            "Verify the file.",
        )
    if state is FileState.CHANGED:
        return TransferError(
            "wrong-hash",
            f"{name} has changed since it was checked.",
            "Verify the file: if it is still the right one, it can be used again.",
        )
    if state is FileState.QUARANTINED:
        return TransferError(
            "wrong-hash",
            f"{name} is not the file it was when it was added. It was left where it is and is not used.",
            "Remove it from the list, then get it again.",
        )
    return None


def unproven(name: str) -> TransferError:
    """Nothing says which sha256 a file of the Hub should have: the list that said it was lost."""
    return TransferError(
        "wrong-hash",
        f"There is nothing to compare {name} with: its sha256 is not known.",
        "It can be used; remove it and download it again to be sure of it.",
    )


def wrong_hash(name: str, expected: str, found: str, imported: bool = False) -> TransferError:
    """A file whose sha256 is not what it must be.

    Args:
        name: The file's name.
        expected: The sha256 it must have.
        found: The sha256 it has.
        imported: It cannot be downloaded again.
    """
    remedy = "Start its download again; this one was set aside."
    if imported:
        remedy = "Import it again from where it came; this one was set aside."
    return TransferError(
        "wrong-hash",
        f"{name} is not the file it should be: its sha256 is {found[:12]}…, not {expected[:12]}….",
        remedy,
        f"{name}: sha256 {found}, expected {expected}",
    )
