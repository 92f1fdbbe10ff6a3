"""Looks at two files before they are loaded: are they a pair, which is which, and how much memory will they take.

No Qt here: it reads the disk and runs in a worker. The headers alone decide, never the names.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final, Literal

import msgspec

from tandem.engine.gguf import GgufFacts, read_facts
from tandem.engine.pairing import check_pair, check_target
from tandem.errors import ModelError
from tandem.hardware.machine import COMPUTE, MARGIN, USUAL_CONTEXT

DRAFTER_ARCHITECTURE: Final = "gemma4-assistant"

_F16_BYTES: Final = 2
_UBATCH: Final = 512


class FileFacts(msgspec.Struct, frozen=True):
    """A model file as its header tells it.

    Attributes:
        file: Its name.
        name: The model's own name.
        architecture: Such as "gemma4".
        quantisation: Such as "Q4_0".
        bytes: Size on disk.
        context: Positions it was trained for.
    """

    file: str
    name: str | None
    architecture: str
    quantisation: str
    bytes: int
    context: int | None


class PairCheck(msgspec.Struct, frozen=True):
    """What was found.

    Attributes:
        asked: The two paths as they were given; the drafter's is "" for none.
        target: The target's path as it should stand; another than the one given when the two were the wrong way round.
        drafter: Likewise.
        target_facts: What the target's header says; None where there is none or it cannot be read.
        drafter_facts: Likewise.
        field: Which file is at fault; "" when they can be loaded.
        sentence: What is wrong (English).
        remedy: What to do about it.
        memory: Bytes the pair will take at most, an estimate; 0 when it cannot be loaded.
    """

    asked: tuple[str, str]
    target: str
    drafter: str
    target_facts: FileFacts | None = None
    drafter_facts: FileFacts | None = None
    field: Literal["", "target", "drafter"] = ""
    sentence: str = ""
    remedy: str = ""
    memory: int = 0

    @property
    def good(self) -> bool:
        """Whether they can be loaded."""
        return not self.field and self.target_facts is not None


def check_files(target: str, drafter: str = "") -> PairCheck:
    """Reads the headers of a target and, unless it is "", a drafter; never raises for what a file holds.

    Two files given the wrong way round are put right. A file given alone in the other's place moves to its own.
    """
    asked = (target, drafter)
    found: dict[str, GgufFacts] = {}
    problems: dict[str, ModelError] = {}
    for path in filter(None, asked):
        try:
            found[path] = read_facts(_path(path))
        except ModelError as error:
            problems[path] = error
    drafter_first = _is_drafter(found.get(target)) and not _is_drafter(found.get(drafter)) and drafter not in problems
    model_alone = not target and drafter in found and _is_model(found[drafter])
    if drafter_first or model_alone:
        target, drafter = drafter, target
    target_facts, drafter_facts = found.get(target), found.get(drafter)
    check = PairCheck(asked, target, drafter, _shown(target_facts), _shown(drafter_facts))
    for field, path in (("target", target), ("drafter", drafter)):
        if path in problems:
            return _refused(check, field, problems[path])
    if target_facts is None:
        return check
    try:
        check_target(target_facts)
    except ModelError as error:
        return _refused(check, "target", error)
    if drafter_facts is not None:
        try:
            check_pair(target_facts, drafter_facts)
        except ModelError as error:
            return _refused(check, "drafter", error)
    return msgspec.structs.replace(check, memory=_memory(target_facts, drafter_facts))


def _path(path: str) -> Path:
    try:
        return Path(path).expanduser()
    except RuntimeError:  # the home of a user that there is not
        return Path(path)


def name_of(path: str) -> str:
    """The file's name in a path."""
    return os.path.basename(path)  # noqa: PTH119  (a string that need not be a path)


def kv_bytes(facts: GgufFacts, context: int = USUAL_CONTEXT) -> int:
    """KV cache at f16 of a Gemma 4 target, by its header; 0 where the header does not say enough."""
    layers = (facts.block_count or 0) - (facts.own("attention.shared_kv_layers") or 0)
    total = 0
    for layer, sliding in enumerate(facts.sliding_layers[: max(0, layers)]):
        suffix = "_swa" if sliding else ""
        heads = facts.own("attention.head_count_kv", layer) or 0
        width = (facts.own(f"attention.key_length{suffix}") or 0) + (facts.own(f"attention.value_length{suffix}") or 0)
        cells = min(context, (facts.sliding_window or 0) + _UBATCH) if sliding else context
        total += heads * width * cells * _F16_BYTES
    return total


def _memory(target: GgufFacts, drafter: GgufFacts | None) -> int:
    context = min(USUAL_CONTEXT, target.context_length or USUAL_CONTEXT)
    weights = target.file_bytes + (drafter.file_bytes if drafter else 0)
    return weights + kv_bytes(target, context) + COMPUTE + MARGIN


def _is_drafter(facts: GgufFacts | None) -> bool:
    return facts is not None and facts.architecture == DRAFTER_ARCHITECTURE


def _is_model(facts: GgufFacts) -> bool:
    """Whether it is a model to chat with, which nothing but a target can be."""
    try:
        check_target(facts)
    except ModelError:
        return False
    return True


def _shown(facts: GgufFacts | None) -> FileFacts | None:
    if facts is None:
        return None
    return FileFacts(
        facts.file_name, facts.name, facts.architecture, facts.quantisation, facts.file_bytes, facts.context_length
    )


def _refused(check: PairCheck, field: str, error: ModelError) -> PairCheck:
    return msgspec.structs.replace(check, field=field, sentence=error.sentence, remedy=error.remedy)
