"""What the window's process and the engine's process say to each other.

Messages are msgspec structs sent as JSON, one message a frame of a `multiprocessing` pipe; never pickle. File names
travel as the operating system's bytes, so that any name survives. A request carries an `id`; every event that answers
it carries the same. `PROTOCOL` changes whenever a message changes shape; the first event names it.
"""

from __future__ import annotations

from typing import Final, Literal

import msgspec

from tandem.engine.messages import Message
from tandem.engine.metrics import RunStats
from tandem.engine.params import SamplingParams
from tandem.errors import EngineError, ModelError, ModelFault, PromptTooLong, TandemError, UsageError

PROTOCOL: Final = 2

Method = Literal["mtp", "draft-model", "ngram", "none"]
KvType = Literal["f16", "q8_0"]
StopReason = Literal["end", "limit", "stopped", "context"]
Stage = Literal["target", "drafter", "threads", "prefill"]


class Load(msgspec.Struct, tag="load", frozen=True):
    """Loads a pair; the engine holds one pair and is ended to change it.

    Attributes:
        id: Answered by `Progress`, then `Loaded` or `Failed`.
        target: The target's file name, as bytes.
        drafter: The drafter's, for `mtp` and `draft-model`.
        method: Who drafts.
        context: Positions; None takes 8,192 or what the model was trained for, whichever is less.
        threads: None chooses by a short timing.
        device: A name of `DeviceInfo.name`; None takes the best.
        gpu_layers: Layers on a GPU; -1 is all.
        flash_attention: None lets llama.cpp choose.
        kv_type: How the target's KV cache is kept; "q8_0" takes about half the memory and needs flash attention. A
            drafter that reads the target's cache reads it as it is; one with a cache of its own keeps it in f16.
        need_drafter: Whether a drafter whose facts do not fit is an error; else the target goes on alone and says why.
    """

    id: int
    target: bytes
    drafter: bytes | None = None
    method: Method = "mtp"
    context: int | None = None
    threads: int | None = None
    device: str | None = None
    gpu_layers: int = -1
    flash_attention: bool | None = None
    kv_type: KvType = "f16"
    need_drafter: bool = False


class Generate(msgspec.Struct, tag="generate", frozen=True):
    """Asks for an answer; one of `messages`, `prompt` and `tokens` is given.

    Attributes:
        id: Answered by `Progress`, then `Pass` events, then `Done` or `Failed`.
        messages: A conversation, rendered through the model's own template.
        prompt: Raw text; control tokens spelled in it are control tokens.
        tokens: Token ids.
        thinking: Whether the template asks for a thought.
        draft: "off", a number, or "auto".
        sampling: How tokens are chosen.
        stop: Texts that end the answer.
        max_tokens: None leaves it to the context.
        ignore_eos: Never ends a turn; for measuring.
        trim: Leaves out the oldest turns instead of refusing a prompt that is too long.
        reuse: Whether the KV cache's common beginning is used; off for measuring.
    """

    id: int
    messages: tuple[Message, ...] | None = None
    prompt: str | None = None
    tokens: tuple[int, ...] | None = None
    thinking: bool = False
    draft: str = "off"
    sampling: SamplingParams = SamplingParams()
    stop: tuple[str, ...] = ()
    max_tokens: int | None = None
    ignore_eos: bool = False
    trim: bool = False
    reuse: bool = True


class Count(msgspec.Struct, tag="count", frozen=True):
    """Asks how many tokens a conversation has; answered by `Counted`."""

    id: int
    messages: tuple[Message, ...]
    thinking: bool = False


class Stop(msgspec.Struct, tag="stop", frozen=True):
    """Stops the request `id` (loading, prefill or decode), running or waiting; without effect when it has ended."""

    id: int


Request = Load | Generate | Count | Stop


class DeviceInfo(msgspec.Struct, frozen=True):
    """A compute device; memory in bytes."""

    name: str
    description: str
    kind: str
    free: int
    total: int


class Hello(msgspec.Struct, tag="hello", frozen=True):
    """The first event: the engine is up and complete."""

    protocol: int
    version: str
    llama_cpp_python: str
    llama_cpp: str
    devices: tuple[DeviceInfo, ...]
    cpus: int


class Progress(msgspec.Struct, tag="progress", frozen=True):
    """How far a stage is: `done` of `total` (1.0 for loading, tokens for prefill)."""

    id: int
    stage: Stage
    done: float
    total: float


class ModelInfo(msgspec.Struct, frozen=True):
    """A loaded model as its own header tells it."""

    file: str
    name: str | None
    architecture: str
    quantisation: str
    bytes: int


class DrafterProblem(msgspec.Struct, frozen=True):
    """Why there is no drafter although one was asked for."""

    reason: str
    remedy: str


class Loaded(msgspec.Struct, tag="loaded", frozen=True):
    """The pair is ready.

    Attributes:
        id: The request.
        target: Facts of the target.
        drafter: Facts of the drafter, None for `ngram` and `none`.
        method: Who drafts now; "none" when the drafter failed.
        problem: Why it failed.
        context: Positions.
        trained_context: Positions the model was trained for.
        threads: Threads of a pass.
        device: Where it runs.
        vocabulary: Tokens.
        switches_thinking: Whether the template can ask for a thought.
        load_s: Seconds.
        kv_type: How the target's KV cache is kept.
    """

    id: int
    target: ModelInfo
    drafter: ModelInfo | None
    method: Method
    problem: DrafterProblem | None
    context: int
    trained_context: int
    threads: int
    device: str
    vocabulary: int
    switches_thinking: bool
    load_s: float
    kv_type: KvType


class Text(msgspec.Struct, frozen=True, array_like=True):
    """Text that became final in a pass: characters that stand together and came from one token.

    Attributes:
        channel: "thought" or "answer".
        text: At least one character.
        token: Index of the token they came from, counted over all tokens of the answer from 0; it may be of an earlier
            pass, where text had to wait. A character whose bytes are spread over tokens came from the last of them.
    """

    channel: str
    text: str
    token: int


class Pass(msgspec.Struct, tag="pass", frozen=True, omit_defaults=True):
    """One pass; see `PassReport`. Times in seconds; a confidence of None means the drafter has no opinion."""

    id: int
    tokens: tuple[int, ...]
    text: tuple[Text, ...]
    drafted: tuple[bool, ...]
    accepted: tuple[bool, ...]
    confidences: tuple[float | None, ...]
    draft_s: float
    verify_s: float


class Done(msgspec.Struct, tag="done", frozen=True):
    """The answer ended.

    Attributes:
        id: The request.
        stop: Why.
        stats: Figures.
        text: Text still held back when it ended.
        dropped: Oldest messages that were left out.
        draft: The draft length used, as asked for.
        seed: The seed used, given or made.
        problem: Why the drafter stopped working in the middle, if it did.
    """

    id: int
    stop: StopReason
    stats: RunStats
    text: tuple[Text, ...]
    dropped: int
    draft: str
    seed: int
    problem: DrafterProblem | None = None


class Stopped(msgspec.Struct, tag="stopped", frozen=True):
    """A load or count was stopped, or a request was stopped before its turn came."""

    id: int


class Counted(msgspec.Struct, tag="counted", frozen=True):
    """Prompt tokens of a conversation and the most that fit."""

    id: int
    tokens: int
    limit: int


class Failed(msgspec.Struct, tag="failed", frozen=True):
    """A request failed; the engine goes on.

    Attributes:
        id: The request.
        kind: The exception's class name.
        sentence: What happened.
        remedy: What to do.
        details: For the log.
        fault: Kind of model fault, for a ModelError.
        exit_code: Of the command line.
        numbers: Prompt tokens and limit, for PromptTooLong.
    """

    id: int
    kind: str
    sentence: str
    remedy: str
    details: str = ""
    fault: ModelFault | None = None
    exit_code: int = 4
    numbers: tuple[int, int] | None = None


Event = Hello | Progress | Loaded | Pass | Done | Stopped | Counted | Failed

encode = msgspec.json.Encoder().encode
decode_request = msgspec.json.Decoder(Request).decode
decode_event = msgspec.json.Decoder(Event).decode


def as_error(event: Failed) -> TandemError:
    """The exception that a `Failed` event stands for."""
    if event.numbers is not None:
        return PromptTooLong(*event.numbers)
    if event.fault is not None:
        return ModelError(event.fault, event.sentence, event.remedy, event.details)
    kind = UsageError if event.exit_code == UsageError.exit_code else EngineError
    return kind(event.sentence, event.remedy, event.details)
