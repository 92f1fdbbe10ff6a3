"""From two files to a working pair, or to a sentence that says why not.

Headers are read before llama.cpp sees a file, because they tell apart what llama.cpp reports alike. What goes wrong
after that is read from its log. A drafter that cannot be used never takes the target down with it: the pair then has
no drafter and a `DrafterProblem`.
"""

from __future__ import annotations

import os
import re
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tandem.engine import bindings, threads
from tandem.engine.bindings import Aborted, Batch, Context, DecodeFailed, Device, Model, StopFlag
from tandem.engine.draft_length import MAX_DRAFT_LENGTH
from tandem.engine.drafters import Drafter, DraftModel, MtpDrafter, NgramDrafter
from tandem.engine.gguf import GgufFacts, read_facts
from tandem.engine.pairing import check_draft_model, check_drafter, check_pair, check_target
from tandem.engine.protocol import DrafterProblem, Load, Method, ModelInfo, Stage
from tandem.engine.target import Target
from tandem.errors import ModelError, TandemError, UsageError

DEFAULT_CONTEXT: Final = 8192
MIN_CONTEXT: Final = 32
_GPU_BATCH: Final = 512  # llama.cpp's default
# Measured on an E2B-shaped pair: 512, 256, 128 and 64 differ by less than 5 %. The small batch reports progress four
# times as often and needs less memory (compute buffer, cells of the sliding layers). It is never adapted to the
# machine's speed: other batches give other rounding, and the same seed must give the same text.
_CPU_BATCH: Final = 128
_USUAL_ROWS: Final = 4  # of a verify pass at the usual draft length, 3

_OUT_OF_MEMORY: Final = re.compile(
    r"out of memory|(failed|unable) to alloc|cannot allocate|insufficient memory|bad_alloc|ErrorOutOfDeviceMemory",
    re.IGNORECASE,
)
_NOT_QUANTISED: Final = re.compile(r"cache type \S+ with block size|requires flash_?attn|requires Flash Attention")
_ARCHITECTURE: Final = re.compile(r"unknown model architecture: '([^']*)'")

StageProgress = Callable[[Stage, float], bool]


class LogTail:
    """The last lines that llama.cpp logged, passed on to `write` as they come; never holds chat text."""

    def __init__(self, write: Callable[[str], object]) -> None:
        self._write = write
        self._lines: deque[str] = deque(maxlen=400)

    def __call__(self, _level: int, text: str) -> None:
        """The sink for `bindings.set_log`."""
        self._lines.append(text)
        self._write(text)

    def clear(self) -> None:
        """Forgets what came before the next step."""
        self._lines.clear()

    def text(self) -> str:
        """What was logged since `clear`."""
        return "".join(self._lines)


@dataclass
class Pair:
    """A loaded target and its drafter.

    Attributes:
        target: The target.
        drafter: The drafter, None for plain decoding and for ngram (made anew for each answer).
        method: Who drafts.
        problem: Why there is no drafter although one was asked for.
        device: Where it runs.
        thread_count: Threads of a pass.
        target_info: The target's header.
        drafter_info: The drafter's header.
        template: The GGUF's chat template.
        load_s: Seconds it took.
    """

    target: Target
    drafter: Drafter | None
    method: Method
    problem: DrafterProblem | None
    device: Device
    thread_count: int
    target_info: ModelInfo
    drafter_info: ModelInfo | None
    template: str | None
    load_s: float

    def drafter_now(self) -> Drafter | None:
        """The drafter for one answer."""
        return NgramDrafter() if self.method == "ngram" else self.drafter

    def free(self) -> None:
        """Gives all memory back, the drafter's first because it shares the target's cache."""
        if self.drafter is not None:
            self.drafter.free()
        self.target.context.free()
        self.target.model.free()


def load_pair(request: Load, stop: StopFlag, log: LogTail, progress: StageProgress) -> Pair:
    """Loads what the request asks for.

    Args:
        request: The files and how to run them.
        stop: Ends the load; also attached to the contexts, to end their decodes.
        log: Receives llama.cpp's log.
        progress: Called with the stage and 0..1; returning False ends the load.

    Raises:
        Aborted: The load was stopped.
        ModelError: A file or the pair cannot be used.
        UsageError: The request makes no sense (context, device, KV type).
    """
    began = time.perf_counter()
    if request.kv_type != "f16" and request.flash_attention is False:
        raise UsageError(
            f"A KV cache of the type {request.kv_type} needs flash attention, which is turned off.",
            "Turn flash attention on, or choose the KV type f16.",
        )
    path = Path(os.fsdecode(request.target))
    facts = read_facts(path)
    check_target(facts)
    drafter_facts, problem = _read_drafter(request, facts)
    size = _context_size(request.context, facts)
    device = choose_device(request.device, bindings.devices())
    cpus = threads.allowed_cpus()
    count = max(1, min(request.threads or cpus, cpus))

    model = _load_model(path, facts, device, request.gpu_layers, log, lambda done: progress("target", done))
    try:
        target = _make_target(model, size, device, count, request, facts, log)
        stop.attach(target.context)
    except BaseException:
        model.free()
        raise
    pair = Pair(
        target=target,
        drafter=None,
        method="ngram" if request.method == "ngram" else "none",
        problem=problem,
        device=device,
        thread_count=count,
        target_info=_info(facts),
        drafter_info=None,
        template=model.chat_template,
        load_s=0.0,
    )
    try:
        if drafter_facts is not None:
            _add_drafter(pair, request, drafter_facts, stop, log, progress)
        if request.threads is None:
            _choose_threads(pair, cpus, progress)
        else:
            _govern(pair, count, maximum=count, prefill=count)
        if stop.is_set:
            raise Aborted
    except BaseException:
        pair.free()
        raise
    pair.load_s = time.perf_counter() - began
    return pair


def choose_device(name: str | None, found: list[Device]) -> Device:
    """The device called `name`; without a name a discrete GPU, else an integrated one, else the CPU."""
    if name is None:
        order = ("gpu", "integrated gpu", "cpu")
        ranked = sorted((d for d in found if d.kind in order), key=lambda d: order.index(d.kind))
        return ranked[0]
    for device in found:
        if device.name.casefold() == name.casefold():
            return device
    raise UsageError(f"There is no device “{name}”.", f"Choose one of: {', '.join(d.name for d in found)}.")


def _context_size(wanted: int | None, facts: GgufFacts) -> int:
    trained = facts.context_length or DEFAULT_CONTEXT
    if wanted is None:
        return min(DEFAULT_CONTEXT, trained)
    if not MIN_CONTEXT <= wanted <= trained:
        raise UsageError(
            f"A context of {wanted:,} tokens is not possible with this model.",
            f"Choose between {MIN_CONTEXT} and {trained:,}, which it was trained for.",
        )
    return wanted


def _read_drafter(request: Load, target: GgufFacts) -> tuple[GgufFacts | None, DrafterProblem | None]:
    if request.method not in ("mtp", "draft-model") or request.drafter is None:
        return None, None
    try:
        facts = read_facts(Path(os.fsdecode(request.drafter)))
        if request.method == "mtp":
            check_drafter(facts)
            check_pair(target, facts)
        else:
            check_draft_model(target, facts)
    except ModelError as error:
        if request.need_drafter:
            raise
        return None, DrafterProblem(error.sentence, error.remedy)
    return facts, None


def _info(facts: GgufFacts) -> ModelInfo:
    return ModelInfo(
        file=facts.file_name,
        name=facts.name,
        architecture=facts.architecture,
        quantisation=facts.quantisation,
        bytes=facts.file_bytes,
    )


def _load_model(
    path: Path, facts: GgufFacts, device: Device, layers: int, log: LogTail, progress: Callable[[float], bool]
) -> Model:
    log.clear()
    try:
        return Model(path, device, layers, progress)
    except DecodeFailed as error:
        raise _load_error(facts, log.text()) from error


def _make_target(
    model: Model, size: int, device: Device, count: int, request: Load, facts: GgufFacts, log: LogTail
) -> Target:
    log.clear()
    try:
        context = Context(
            model,
            size=size,
            batch=min(_CPU_BATCH if device.kind == "cpu" else _GPU_BATCH, size),
            rows=MAX_DRAFT_LENGTH + 1,
            threads=count,
            flash_attention=request.flash_attention,
            kv_type=request.kv_type,
        )
    except DecodeFailed as error:
        raise _load_error(facts, log.text(), context=size, kv_type=request.kv_type) from error
    return Target(model, context)


def _load_error(facts: GgufFacts, text: str, context: int | None = None, kv_type: str = "f16") -> ModelError:
    """Reads llama.cpp's log after a failed load."""
    name = facts.file_name
    if kv_type != "f16" and _NOT_QUANTISED.search(text):
        return ModelError(
            "load-failed", f"{name} cannot keep its KV cache in {kv_type}.", "Choose the KV type f16.", text
        )
    if _OUT_OF_MEMORY.search(text):
        what = f"a context of {context:,} tokens" if context else "the model"
        return ModelError(
            "out-of-memory",
            f"There is not enough memory for {what} ({facts.file_bytes / 2**30:.1f} GiB file).",
            "Close other programs, choose a smaller context, or a smaller model.",
            text,
        )
    if unknown := _ARCHITECTURE.search(text):
        return ModelError(
            "unknown-architecture",
            f"{name} is of the architecture “{unknown[1]}”, which this engine does not know.",
            "Choose a Gemma 4 model, or update Tandem.",
            text,
        )
    if "not within the file bounds" in text:
        return ModelError("truncated", f"{name} ends too early.", "Download it again.", text)
    if "missing tensor" in text or "wrong shape" in text or "wrong number of tensors" in text:
        return ModelError("corrupt", f"{name} lacks parts that its kind of model needs.", "Download it again.", text)
    return ModelError("load-failed", f"llama.cpp could not load {name}.", "The log says why.", text)


def _add_drafter(
    pair: Pair, request: Load, facts: GgufFacts, stop: StopFlag, log: LogTail, progress: StageProgress
) -> None:
    """Loads the drafter; a failure becomes `pair.problem`, a stop is passed on."""
    path = Path(os.fsdecode(request.drafter or b""))
    model = None
    try:
        model = _load_model(path, facts, pair.device, -1, log, lambda done: progress("drafter", done))
        log.clear()
        if request.method == "mtp":
            mtp = MtpDrafter(model, pair.target, pair.thread_count, stop)
            pair.drafter = mtp
            if not mtp.linked:
                raise DecodeFailed(-5)
        else:
            pair.drafter = DraftModel(model, pair.target.context.size, pair.thread_count, stop)
        pair.method = request.method
        pair.drafter_info = _info(facts)
    except (DecodeFailed, TandemError) as error:
        if pair.drafter is not None:
            pair.drafter.free()
            pair.drafter = None
        elif model is not None:
            model.free()
        sentence = error.sentence if isinstance(error, TandemError) else _context_fault(facts, log.text())
        pair.problem = DrafterProblem(sentence, "Answers come from the target alone; try the pair again or another.")


def _context_fault(facts: GgufFacts, text: str) -> str:
    if _OUT_OF_MEMORY.search(text):
        return f"There is not enough memory left for the drafter {facts.file_name}."
    return f"The drafter {facts.file_name} could not be linked to the target."


def _choose_threads(pair: Pair, cpus: int, progress: StageProgress) -> None:
    """Times a pass of the target with different thread counts and keeps the fastest."""
    counts = threads.candidates(cpus)
    if len(counts) == 1:
        return
    if not progress("threads", 0.0):
        raise Aborted
    target = pair.target
    rows = _USUAL_ROWS if pair.drafter is not None else 1
    batch = Batch(rows)

    def run(count: int) -> None:
        target.context.set_threads(count)
        target.context.remove_from(0)
        batch.fill([max(target.model.bos, 0)] * rows, 0, all_rows=True)
        target.context.decode(batch)

    chosen, disturbed = threads.fastest(counts, run)
    target.reset()
    # a busy machine makes few threads look best; then more of them are tried once it is idle
    _govern(pair, chosen, cpus if disturbed else chosen, cpus)


def _govern(pair: Pair, count: int, maximum: int, prefill: int) -> None:
    """Sets the threads, and lets a governor change them while the machine is shared.

    Args:
        pair: What runs.
        count: Threads of a pass now.
        maximum: Most threads of a pass.
        prefill: Threads of a prefill, which gains from more than a pass does.
    """
    target = pair.target
    pair.thread_count = count

    def apply(threads_now: int) -> None:
        crowded = governor.crowded or threads_now < count
        target.set_threads(threads_now, prefill=threads_now if crowded else prefill)
        if pair.drafter is not None:
            pair.drafter.set_threads(threads_now)

    governor = threads.ThreadGovernor(count, maximum, apply)
    apply(count)
    if max(maximum, prefill) > 1:
        target.governor = governor
