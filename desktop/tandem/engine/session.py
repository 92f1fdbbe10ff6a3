"""One loaded pair and its conversation: turns requests into answers.

Runs on the main thread of the engine's process. `stop` may be set from the thread that reads requests; everything
else happens one after the other.
"""

from __future__ import annotations

import math
import time
from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import Final

from tandem.engine.bindings import Aborted, DecodeFailed, Model, StopFlag
from tandem.engine.draft_length import draft_length
from tandem.engine.loader import LogTail, Pair, load_pair
from tandem.engine.messages import Message, clean
from tandem.engine.metrics import RunStats
from tandem.engine.protocol import (
    Count,
    Counted,
    Done,
    Event,
    Generate,
    Load,
    Loaded,
    Pass,
    Progress,
    Stage,
    StopReason,
    Text,
)
from tandem.engine.sampling import Sampler
from tandem.engine.speculate import Limits, PassReport, Speculation
from tandem.engine.stream import AnswerStream, Chunk, Markers
from tandem.engine.template import ChatTemplate, drop_oldest, encode
from tandem.errors import EngineError, ModelError, PromptTooLong, UsageError

Emit = Callable[[Event], None]

_REMEMBERED_ANSWERS: Final = 256
_LONGEST_STOP: Final = 1000  # every beginning of a stop text is remembered
_MOST_STOPS: Final = 1000
_TRIM_TO: Final = 0.6  # share of the room that the prompt keeps when turns are left out


class VocabularyCodec:
    """The model's vocabulary as `template.encode` wants it."""

    def __init__(self, model: Model) -> None:
        self._model = model
        self.specials: Final = model.special_tokens()
        self.special_texts: Final = tuple(self.specials)
        self.ids: Final = frozenset(self.specials.values())
        self.bos: Final = model.bos if model.add_bos else None

    def tokenize(self, text: str, special: bool) -> list[int]:
        """See `TokenCodec`."""
        return self._model.tokenize(text, special)


class Session:
    """The pair and the state that outlives a request.

    Args:
        log: Receives llama.cpp's log.
        emit: Sends events.
    """

    def __init__(self, log: LogTail, emit: Emit) -> None:
        self.stop: Final = StopFlag()
        self._log = log
        self._emit = emit
        self._pair: Pair | None = None
        self._codec: VocabularyCodec | None = None
        self._template: ChatTemplate | None = None
        self._dropped = 0  # oldest messages left out last time
        self._dropped_messages: Sequence[Message] = ()
        self._no_template: ModelError | None = None
        self._answers: OrderedDict[str, tuple[int, ...]] = OrderedDict()

    def load(self, request: Load) -> None:
        """Loads a pair and reports `Loaded`.

        Raises:
            UsageError: A pair is loaded already; end the engine to change it.
            Aborted: Stopped.
            ModelError: See `load_pair`.
        """
        if self._pair is not None:
            raise UsageError("A pair is loaded already.", "End the engine and start another to change the pair.")

        def progress(stage: Stage, done: float) -> bool:
            self._emit(Progress(request.id, stage, done, 1.0))
            return not self.stop.is_set

        pair = load_pair(request, self.stop, self._log, progress)
        model = pair.target.model
        self._codec = VocabularyCodec(model)
        self._pair = pair
        names = {token: text for text, token in self._codec.specials.items()}
        try:
            self._template = ChatTemplate(pair.template or "", names.get(model.bos, ""), names.get(model.eos, ""))
        except ModelError as error:
            self._no_template = error  # raw prompts work without one
        self._emit(
            Loaded(
                id=request.id,
                target=pair.target_info,
                drafter=pair.drafter_info,
                method=pair.method,
                problem=pair.problem,
                context=pair.target.context.size,
                trained_context=model.context_length,
                threads=pair.thread_count,
                device=pair.device.name,
                vocabulary=model.vocabulary,
                switches_thinking=self._template is not None and self._template.switches_thinking,
                load_s=pair.load_s,
                kv_type=request.kv_type,
            )
        )

    def count(self, request: Count) -> None:
        """Reports `Counted`."""
        tokens = len(self._render(request.messages, request.thinking))
        self._emit(Counted(request.id, tokens, self._limit()))

    def generate(self, request: Generate) -> None:
        """Answers; reports `Progress`, `Pass` and `Done`.

        Raises:
            UsageError: The request makes no sense, or the prompt is too long.
            EngineError: llama.cpp failed.
        """
        began = time.perf_counter()
        pair = self._loaded()
        length = draft_length(request.draft)
        if max((len(text) for text in request.stop), default=0) > _LONGEST_STOP or len(request.stop) > _MOST_STOPS:
            raise UsageError(
                "A stop text is too long, or there are too many.",
                f"Give at most {_MOST_STOPS:,} of at most {_LONGEST_STOP:,} characters.",
            )
        if request.max_tokens is not None and request.max_tokens < 0:
            raise UsageError("An answer cannot have less than no tokens.", "Choose 0 or more tokens at most.")
        sampler = Sampler(request.sampling, pair.target.model.vocabulary)
        prompt, dropped = self._prompt(request)
        stats = RunStats(prompt_tokens=len(prompt))
        stream = self._stream(request, prompt)
        ends = pair.target.model.ends
        sampler.begin(prompt)
        if request.ignore_eos:
            sampler.ban(ends)
        answer: list[int] = []
        in_answer = stream.channel == "answer"

        def on_pass(report: PassReport) -> None:
            if stats.time_to_first_token_s is None:
                stats.time_to_first_token_s = time.perf_counter() - began
            answer.extend(report.tokens)
            self._emit(
                Pass(
                    id=request.id,
                    tokens=tuple(report.tokens),
                    text=_texts(report.chunks),
                    drafted=tuple(report.drafted),
                    accepted=tuple(report.accepted),
                    confidences=tuple(None if math.isnan(c) else round(c, 4) for c in report.confidences),
                    draft_s=report.draft_s,
                    verify_s=report.verify_s,
                )
            )

        speculation: Speculation | None = None
        try:
            prefill = pair.target.prefill(
                prompt,
                reuse=request.reuse,
                progress=lambda done, total: self._emit(Progress(request.id, "prefill", done, total)),
            )
            stats.cached_tokens, stats.prefill_s = prefill.cached, prefill.seconds
            speculation = Speculation(
                target=pair.target,
                drafter=pair.drafter_now(),
                length=length,
                sampler=sampler,
                stream=stream,
                limits=Limits(request.max_tokens, frozenset() if request.ignore_eos else ends),
                stats=stats,
                emit=on_pass,
            )
            reason: StopReason = speculation.run()
        except Aborted:
            reason = "stopped"
        except DecodeFailed as error:
            pair.target.reset()
            raise EngineError(
                "The engine could not go on with this answer.",
                "Try again; if it happens again, use a smaller context or turn the drafter off.",
                f"llama_decode returned {error.code}\n{self._log.text()}",
            ) from error
        rest = _texts(stream.finish())
        stats.finish()
        if in_answer and request.messages is not None:
            self._remember(answer, ends)
        problem = speculation.problem if speculation is not None else None
        self._emit(Done(request.id, reason, stats, rest, dropped, length.label, sampler.seed, problem))

    def close(self) -> None:
        """Gives all memory back."""
        if self._pair is not None:
            self._pair.free()
            self._pair = None

    def _loaded(self) -> Pair:
        if self._pair is None:
            raise UsageError("No model is loaded.", "Load a pair first.")
        return self._pair

    def _limit(self) -> int:
        return self._loaded().target.context.size - 1

    def _prompt(self, request: Generate) -> tuple[list[int], int]:
        """Token ids of the prompt and how many old messages were left out."""
        model = self._loaded().target.model
        given = [part for part in (request.messages, request.prompt, request.tokens) if part is not None]
        if len(given) != 1:
            raise UsageError("A request needs messages, a prompt or tokens.", "Give exactly one of them.")
        limit, dropped = self._limit(), 0
        if request.messages is not None:
            messages: Sequence[Message] = request.messages
            if not messages or not messages[-1].content.strip():
                raise UsageError("The prompt is empty.", "Write something to answer.")
            if request.trim:
                messages, dropped = self._trim(messages, request)
            prompt = self._render(messages, request.thinking)
        elif request.prompt is not None:
            prompt = model.tokenize(clean(request.prompt), special=True)
            if model.add_bos and prompt[:1] != [model.bos]:
                prompt.insert(0, model.bos)
        else:
            prompt = list(request.tokens or ())
            if not all(0 <= token < model.vocabulary for token in prompt):
                raise UsageError("A token id is outside the vocabulary.", f"Ids go from 0 to {model.vocabulary - 1:,}.")
        if not prompt:
            raise UsageError("The prompt is empty.", "Write something to answer.")
        if len(prompt) > limit:
            raise PromptTooLong(len(prompt), limit)
        return prompt, dropped

    def _trim(self, messages: Sequence[Message], request: Generate) -> tuple[Sequence[Message], int]:
        """Leaves out the oldest turns so that the prompt fits and the answer has room.

        When turns must go, so many go that the next ones fit too: the beginning of the prompt then stays the same for
        a while, and with it the KV cache.
        """
        size = self._loaded().target.context.size
        reserve = size // 4 if request.max_tokens is None else min(request.max_tokens, size // 4)
        limit = max(1, self._limit() - reserve)

        def count(part: Sequence[Message]) -> int:
            if self.stop.is_set:
                raise Aborted
            return len(self._render(part, request.thinking))

        first = 1 if messages[0].role == "system" else 0
        kept = [*messages[:first], *messages[first + self._dropped :]]
        same = self._dropped and messages[first : first + self._dropped] == self._dropped_messages
        if same and count(kept) <= limit:
            return kept, self._dropped
        try:
            if count(messages) <= limit:
                return messages, 0
            kept, dropped = drop_oldest(messages, count, int(limit * _TRIM_TO))
        except PromptTooLong:  # the last turn alone may take all the room there is
            kept, dropped = drop_oldest(messages, count, self._limit())
        self._dropped, self._dropped_messages = dropped, messages[first : first + dropped]
        return kept, dropped

    def _render(self, messages: Sequence[Message], thinking: bool) -> list[int]:
        self._loaded()
        if self._template is None or self._codec is None:
            assert self._no_template is not None
            raise self._no_template
        cleaned = [Message(m.role, clean(m.content)) for m in messages]
        return encode(self._template.render(cleaned, thinking), self._codec, self._answers.get)

    def _stream(self, request: Generate, prompt: Sequence[int]) -> AnswerStream:
        assert self._codec is not None
        markers = Markers(
            open=self._codec.specials.get("<|channel>"),
            close=self._codec.specials.get("<channel|>"),
        )
        # the prompt itself may end inside a thought: the last marker in it tells
        last = next((t for t in reversed(prompt) if t in (markers.open, markers.close)), None)
        in_thought = last is not None and last == markers.open
        piece = self._loaded().target.model.piece
        return AnswerStream(piece, markers, tuple(clean(text) for text in request.stop), in_thought)

    def _remember(self, tokens: Sequence[int], ends: frozenset[int]) -> None:
        """Keeps the ids an answer was generated with, so that its next rendering matches the KV cache."""
        model = self._loaded().target.model
        assert self._codec is not None
        ids = list(tokens[:-1] if tokens and tokens[-1] in ends else tokens)
        if not self._codec.ids.isdisjoint(ids):
            return  # a thought or a stray marker: the history holds only part of these ids
        try:
            text = b"".join(model.piece(token) for token in ids).decode()
        except UnicodeDecodeError:
            return  # cut inside a character
        if text and text == text.strip():
            self._answers[text] = tuple(ids)
            while len(self._answers) > _REMEMBERED_ANSWERS:
                self._answers.popitem(last=False)


def _texts(chunks: Sequence[Chunk]) -> tuple[Text, ...]:
    return tuple(Text(chunk.channel, chunk.text, chunk.token) for chunk in chunks)
