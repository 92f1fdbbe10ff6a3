"""What a GGUF's header says about a file by itself: its role, its licence, and whether it says that it is QAT."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from tandem.engine.gguf import GgufFacts, read_facts
from tandem.engine.gguf_header import printable
from tandem.engine.pairing import check_drafter, check_target
from tandem.errors import ModelError
from tandem.models.catalog import CatalogFile, Role
from tandem.models.disk import disk_error
from tandem.models.errors import TransferError
from tandem.models.records import InstalledRole

TARGET: Final = "gemma4"
DRAFTER: Final = "gemma4-assistant"

_SAYS_QAT: Final = ("general.name", "general.basename", "general.finetune", "general.base_model.0.name")


def role_of(facts: GgufFacts) -> InstalledRole:
    """What a file can be.

    Raises:
        ModelError: Neither a drafter nor anything to chat with; or it contradicts itself.
    """
    if facts.architecture == DRAFTER:
        check_drafter(facts)
        return "drafter"
    check_target(facts)
    return "target" if facts.architecture == TARGET else "model"


def check_role(facts: GgufFacts, role: Role) -> None:
    """Refuses a file that is not what the catalog says.

    Raises:
        ModelError: See `tandem.engine.pairing`.
    """
    if role == "drafter":
        check_drafter(facts)
        return
    check_target(facts)
    if facts.architecture != TARGET:
        architecture = printable(facts.architecture, 40)
        raise ModelError(
            "not-a-target",
            f"{facts.file_name} is not a Gemma 4 model: its architecture is {architecture}.",
            "Choose a Gemma 4 model.",
        )


def whole_facts(file: CatalogFile, path: Path, total: int) -> GgufFacts:
    """The header of a file that was downloaded, once size and role are right.

    Args:
        file: What it should be.
        path: Where it is.
        total: Bytes that it must have.

    Raises:
        TransferError: "wrong-size", "wrong-header"; "disk".
        ModelError: "unreadable": nothing is known of it.
    """
    try:
        size = path.stat().st_size
    except OSError as error:
        raise disk_error(error, path) from error
    if size != total:
        raise TransferError(
            "wrong-size", f"{file.file} has {size:,} bytes and should have {total:,}.", "Start its download again."
        )
    try:
        facts = read_facts(path)
        check_role(facts, file.role)
    except ModelError as error:
        if error.fault == "unreadable":
            raise
        raise TransferError(
            "wrong-header",
            error.sentence,
            "Start its download again, or choose the other source of this model.",
            error.details,
        ) from error
    return facts


def licence_of(facts: GgufFacts) -> str | None:
    """What the file says of its licence, None where it says nothing."""
    text = facts.text("general.license.name") or facts.text("general.license")
    return printable(text, 60) if text and text.strip() else None


def says_qat(facts: GgufFacts) -> bool:
    """Whether its name or its header says that it was trained for its quantisation (QAT)."""
    texts = [facts.path.name, *(facts.text(key) or "" for key in _SAYS_QAT)]
    return any("qat" in text.casefold() for text in texts)
