"""What the facts of GGUF files say about targets, drafters and pairs.

A file is judged by its header alone, never by its name. Where the engine would end its process over a file's own
figures (an assertion in llama.cpp, not an error), the file is "corrupt" here before the engine sees it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, NoReturn

from tandem.engine.gguf import GgufFacts
from tandem.engine.gguf_header import AGAIN, printable
from tandem.errors import ModelError, ModelFault

SAME_VOCABULARY: Final = 0.5
"""Share of equal token blocks from which two token lists count as the same, see `vocabulary_overlap`."""

_MAX_LAYERS: Final = 512  # LLAMA_MAX_LAYERS in llama.cpp: beyond it the engine's process aborts
_TARGET_ARCH: Final = "gemma4"
_DRAFTER_ARCH: Final = "gemma4-assistant"
_FORK_DRAFTERS: Final = frozenset({"gemma4_assistant", "gemma4_mtp"})
_OTHER_DRAFTERS: Final = frozenset({"eagle3", "dflash"})


@dataclass(frozen=True, slots=True)
class Difference:
    """A fact in which two files must agree and do not; None is "not given"."""

    fact: str
    target_value: int | str | None
    drafter_value: int | str | None


def _contradiction(facts: GgufFacts, what: str) -> NoReturn:
    raise ModelError("corrupt", f"{facts.file_name} contradicts itself: {what}.", AGAIN)


def _refuse_fork(facts: GgufFacts, fault: ModelFault) -> None:
    if facts.architecture in _FORK_DRAFTERS:
        sentence = f"{facts.file_name} is a drafter in another program's format ({facts.architecture})."
        raise ModelError(fault, sentence, f"Get the drafter as a file of the architecture {_DRAFTER_ARCH}.")


def _refuse_no_language_model(facts: GgufFacts, fault: ModelFault) -> None:
    """Image parts, adapters and files without weights: neither a target nor a draft model."""
    kind = facts.text("general.type") or "model"
    if facts.architecture == "clip" or kind == "mmproj":
        what = "holds the image and audio part of a model, not the model"
    elif kind != "model":
        what = f"is not a model but of the type {printable(kind, 30)}"
    elif not facts.tensor_count and (facts.integer("split.count") or 1) <= 1:
        what = "holds no weights"
    else:
        return
    raise ModelError(fault, f"{facts.file_name} {what}.", "Choose the file with the model's weights.")


def _check_layers(facts: GgufFacts) -> int:
    layers = facts.block_count
    if layers is None or not 0 < layers <= _MAX_LAYERS:
        _contradiction(facts, f"its number of layers is {_shown(layers)}")
    return layers


def check_target(facts: GgufFacts) -> None:
    """Refuses a file that cannot be a target; any architecture that is not a drafter's can be one.

    Raises:
        ModelError: "not-a-target"; "corrupt" where the engine's process would abort over the file's own figures.
    """
    if facts.architecture == _DRAFTER_ARCH:
        sentence = f"{facts.file_name} is a drafter, not a model to chat with."
        raise ModelError("not-a-target", sentence, "Give it as the drafter, and the Gemma 4 model as the target.")
    _refuse_fork(facts, "not-a-target")
    if facts.architecture in _OTHER_DRAFTERS:
        sentence = f"{facts.file_name} is a drafter of another method ({facts.architecture}), not a model to chat with."
        raise ModelError("not-a-target", sentence, "Choose the model itself as the target.")
    _refuse_no_language_model(facts, "not-a-target")
    layers = _check_layers(facts)
    if facts.architecture == _TARGET_ARCH and layers - (facts.own("attention.shared_kv_layers") or 0) < 2:
        _contradiction(facts, "too few layers have keys and values of their own")


def check_drafter(facts: GgufFacts) -> None:
    """Refuses a file that cannot draft with MTP: `src/models/gemma4-assistant.cpp` is what must accept it.

    Raises:
        ModelError: "not-a-drafter"; "corrupt" where the engine's process would abort over the file's own figures.
    """
    _refuse_fork(facts, "not-a-drafter")
    if facts.architecture != _DRAFTER_ARCH:
        sentence = f"{facts.file_name} is not a drafter: its architecture is {printable(facts.architecture, 40)}."
        remedy = f"Choose a file of the architecture {_DRAFTER_ARCH}, or draft with the method draft-model."
        raise ModelError("not-a-drafter", sentence, remedy)
    _refuse_no_language_model(facts, "not-a-drafter")
    layers = _check_layers(facts)
    draft_layers = facts.own("nextn_predict_layers")
    if draft_layers is None or not 0 < draft_layers <= layers:
        _contradiction(facts, f"its number of drafting layers is {_shown(draft_layers)}, of {layers}")
    if facts.embedding_length_out in {None, 0, facts.embedding_length}:
        _contradiction(facts, "it does not give the hidden size of its target (embedding_length_out)")
    if not any(facts.sliding_layers):
        _contradiction(facts, "none of its layers is a sliding one")


def _shown(value: int | str | None) -> str:
    if value is None:
        return "not given"
    return f"{value:,}" if isinstance(value, int) else printable(value, 60)


def vocabulary_overlap(first: GgufFacts, second: GgufFacts) -> float:
    """Share (0 to 1) of token blocks that are equal, byte for byte and at the same ids.

    A digest of the whole list would refuse good pairs: converters differ in a few control tokens, and Gemma 3 (a
    usual draft model for Gemma 4) has other turn markers at the same ids. Lists of unrelated models share nothing.
    """
    one, other = first.token_blocks, second.token_blocks
    if one == other:
        return 1.0
    places = range(0, min(len(one), len(other)), 8)
    return 8 * sum(one[at : at + 8] == other[at : at + 8] for at in places) / max(len(one), len(other))


def _vocabulary_differences(target: GgufFacts, drafter: GgufFacts) -> list[Difference]:
    if target.vocabulary != drafter.vocabulary:
        return [Difference("vocabulary size", target.vocabulary, drafter.vocabulary)]
    overlap = vocabulary_overlap(target, drafter)
    if overlap >= SAME_VOCABULARY:
        return []
    return [Difference("token list", target.token_digest, f"{drafter.token_digest} ({overlap:.0%} alike)")]


def pair_differences(target: GgufFacts, drafter: GgufFacts) -> list[Difference]:
    """Facts in which an MTP drafter does not fit a target; empty when they are a pair.

    Besides hidden size and vocabulary, the drafter reads the keys and values of the target's last layer but one
    (its sliding layers) and of its last one (the others), through its own figures for head sizes and counts
    (`llama_kv_cache::get_k`, and `share` in `llama-model.cpp`): these must be the target's. The window need not be.
    """
    if target.architecture != _TARGET_ARCH:
        return [Difference("architecture of the target", target.architecture, f"made for {_TARGET_ARCH}")]
    differences = []
    if target.embedding_length != drafter.embedding_length_out:
        differences.append(Difference("hidden size", target.embedding_length, drafter.embedding_length_out))
    if target.tokenizer_model != drafter.tokenizer_model:
        differences.append(Difference("tokenizer", target.tokenizer_model, drafter.tokenizer_model))
    differences += _vocabulary_differences(target, drafter)
    if target.sliding_layers[-2:] != (True, False):
        last = ", ".join("sliding" if sliding else "full" for sliding in target.sliding_layers[-2:])
        differences.append(Difference("last two layers", last or None, "sliding, full"))
    for kind, suffix, sliding, layer in (("sliding", "_swa", True, -2), ("full", "", False, -1)):
        if sliding not in drafter.sliding_layers:
            continue
        for fact, key, own_layer in (
            (f"head size of {kind} layers", f"attention.key_length{suffix}", -1),
            (f"key-value heads of {kind} layers", "attention.head_count_kv", drafter.sliding_layers.index(sliding)),
        ):
            values = target.own(key, layer), drafter.own(key, own_layer)
            # Where a file leaves one out, the engine has a default of its own and the last word.
            if None not in values and values[0] != values[1]:
                differences.append(Difference(fact, *values))
    return differences


def _refuse_differences(target: GgufFacts, drafter: GgufFacts, differences: list[Difference], remedy: str) -> None:
    if differences:
        facts = "; ".join(
            f"{difference.fact}: {_shown(difference.target_value)} in the target, "
            f"{_shown(difference.drafter_value)} in the drafter"
            for difference in differences
        )
        sentence = f"{drafter.file_name} does not fit {target.file_name} ({facts})."
        raise ModelError("not-a-pair", sentence, remedy)


def check_pair(target: GgufFacts, drafter: GgufFacts) -> None:
    """Refuses two files that are not a pair for MTP, whatever their names are.

    Raises:
        ModelError: "not-a-pair" with every fact that differs; what `check_target` and `check_drafter` raise.
    """
    check_target(target)
    check_drafter(drafter)
    remedy = "Choose the drafter that was made for this size of the model, or chat without a drafter."
    _refuse_differences(target, drafter, pair_differences(target, drafter), remedy)


def check_draft_model(target: GgufFacts, facts: GgufFacts) -> None:
    """Refuses a classic draft model (a whole small model) whose token ids are not the target's.

    The tokenizer's kind is not compared: Gemma 3 says "llama" and Gemma 4 "gemma4" for the same ids.

    Raises:
        ModelError: "not-a-drafter" or "not-a-pair"; what `check_target` raises for the target.
    """
    check_target(target)
    _refuse_fork(facts, "not-a-drafter")
    if facts.architecture == _DRAFTER_ARCH or facts.architecture in _OTHER_DRAFTERS:
        sentence = f"{facts.file_name} cannot draft by itself: it works on the target's own state."
        raise ModelError("not-a-drafter", sentence, "Use it with the method mtp, or choose a whole small model.")
    _refuse_no_language_model(facts, "not-a-drafter")
    _check_layers(facts)
    remedy = "Choose a small model with the same vocabulary, or draft with the method ngram."
    _refuse_differences(target, facts, _vocabulary_differences(target, facts), remedy)
