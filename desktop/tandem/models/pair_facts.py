"""Are two files a pair, and if not, which fact differs: every fact that counts, side by side.

The headers decide, never the names. The verdict is `tandem.engine.pairing`'s; here the facts are laid out.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

import msgspec

from tandem.engine.gguf import GgufFacts, printable, read_facts
from tandem.engine.pairing import (
    SAME_VOCABULARY,
    check_pair,
    check_target,
    pair_differences,
    vocabulary_overlap,
)
from tandem.errors import ModelError
from tandem.models.file_facts import DRAFTER, TARGET, says_qat

SWAPPED: Final = "The two files are given the wrong way round: the first is the drafter, the second the target."
"""A note: they are put right."""
QAT_TARGET_ONLY: Final = (
    "The target says that it was trained for its quantisation (QAT), the drafter does not: "
    "a drafter of another training may get fewer of its tokens accepted."
)
"""A note: a mix that works and may be slower."""
QAT_DRAFTER_ONLY: Final = (
    "The drafter says that it was trained for QAT, the target does not: "
    "a drafter of another training may get fewer of its tokens accepted."
)
"""A note: a mix that works and may be slower."""


class Fact(msgspec.Struct, frozen=True):
    """A fact in which a target and its drafter must agree.

    Attributes:
        name: Which, as `tandem.engine.pairing` calls it.
        target: The target's, "" where its header does not give it.
        drafter: The drafter's.
        fits: Whether they go together; not all of them have to be equal for that.
    """

    name: str
    target: str
    drafter: str
    fits: bool


class PairReport(msgspec.Struct, frozen=True):
    """What was found.

    Attributes:
        is_pair: Whether the drafter can draft for the target, once both stand as `target` and `drafter` say.
        target: The target's path, as it should stand.
        drafter: The drafter's.
        swapped: They were given the wrong way round.
        facts: Every fact that counts; empty where a header cannot be read.
        sentence: What is wrong (English), "" for nothing.
        remedy: What to do about it.
        fault: Kind of what is wrong, see `tandem.errors.ModelFault`; "" for nothing.
        notes: What else is worth knowing (English); no reason to refuse.
    """

    is_pair: bool
    target: str
    drafter: str
    swapped: bool = False
    facts: tuple[Fact, ...] = ()
    sentence: str = ""
    remedy: str = ""
    fault: str = ""
    notes: tuple[str, ...] = ()


def compare(target: Path, drafter: Path) -> PairReport:
    """Reads both headers and compares them. Never raises for what a file holds or for one that is not there.

    Two files given the wrong way round are recognised and put right.
    """
    read: list[GgufFacts] = []
    for path in (target, drafter):
        try:
            read.append(read_facts(path))
        except ModelError as error:
            return _refused(PairReport(False, str(target), str(drafter)), error)
    one, other = read
    swapped = _can_draft(one) and not _can_draft(other) and _can_be_target(other)
    if swapped:
        one, other = other, one
    notes = [SWAPPED] if swapped else []
    if says_qat(one) != says_qat(other):
        notes.append(QAT_TARGET_ONLY if says_qat(one) else QAT_DRAFTER_ONLY)
    report = PairReport(True, str(one.path), str(other.path), swapped, _facts(one, other), notes=tuple(notes))
    try:
        check_pair(one, other)
    except ModelError as error:
        return _refused(report, error)
    return report


def _refused(report: PairReport, error: ModelError) -> PairReport:
    return msgspec.structs.replace(
        report, is_pair=False, sentence=error.sentence, remedy=error.remedy, fault=error.fault
    )


def _can_draft(facts: GgufFacts) -> bool:
    return facts.architecture == DRAFTER


def _can_be_target(facts: GgufFacts) -> bool:
    try:
        check_target(facts)
    except ModelError:
        return False
    return True


def _facts(target: GgufFacts, drafter: GgufFacts) -> tuple[Fact, ...]:
    """Each fact with its verdict, which is that of `pair_differences`."""
    both = target.architecture == TARGET and drafter.architecture == DRAFTER
    different = {one.fact: one for one in pair_differences(target, drafter)} if both else {}
    rows = [Fact("architecture", _shown(target.architecture), _shown(drafter.architecture), both)]
    alike = vocabulary_overlap(target, drafter)
    values: list[tuple[str, int | str | None, int | str | None]] = [
        ("hidden size", target.embedding_length, drafter.embedding_length_out),
        ("tokenizer", target.tokenizer_model, drafter.tokenizer_model),
        ("vocabulary size", target.vocabulary, drafter.vocabulary),
        ("token list", target.token_digest, f"{drafter.token_digest} ({alike:.0%} alike)".strip()),
    ]
    if both:
        last = ", ".join("sliding" if sliding else "full" for sliding in target.sliding_layers[-2:])
        values.append(("last two layers", last, "sliding, full"))
    for kind, suffix, sliding, layer in (("sliding", "_swa", True, -2), ("full", "", False, -1)):
        if not both or sliding not in drafter.sliding_layers:
            continue
        key, count = f"attention.key_length{suffix}", "attention.head_count_kv"
        index = drafter.sliding_layers.index(sliding)
        values.append((f"head size of {kind} layers", target.own(key, layer), drafter.own(key)))
        values.append((f"key-value heads of {kind} layers", target.own(count, layer), drafter.own(count, index)))
    for name, here, there in values:
        fits = name not in different if both else here is not None and here == there
        if name == "token list":  # not looked at by `pair_differences` where the sizes differ already
            fits = alike >= SAME_VOCABULARY
        rows.append(Fact(name, _shown(here), _shown(there), fits))
    listed = {row.name for row in rows}
    for name, one in different.items():
        if name not in listed:
            rows.append(Fact(name, _shown(one.target_value), _shown(one.drafter_value), False))
    return tuple(rows)


def _shown(value: int | str | None) -> str:
    if value is None:
        return ""
    return f"{value:,}" if isinstance(value, int) else printable(value, 60)
