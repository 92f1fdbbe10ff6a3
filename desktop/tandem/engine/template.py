"""From a conversation to token ids, through the model file's own chat template.

What a person typed must never be read as a control token, and must not be able to fool the template either. So:

1. The template is rendered with a placeholder in the place of each message's text (`ChatTemplate.render`). Only the
   white space around the text stands beside the placeholder, for the template to trim or keep. The texts are put in
   afterwards, and `Rendered` remembers where they stand.
2. The prompt is tokenised as a whole with control tokens recognised, which is the official result. Only where a
   message's text holds the text of a control token is the prompt cut, one character into that text, and the runs
   between cuts are tokenised each by itself (`encode`), so that no control token can match across a cut. Asking
   llama.cpp not to parse control tokens is not enough: it still reads user-defined ones such as `<|channel>`.
"""

from __future__ import annotations

import functools
import re
import secrets
from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final, NamedTuple, Protocol

from tandem.engine.jinja_sandbox import BoundedTemplate, TemplateRefusal
from tandem.engine.messages import Message, Role, clean
from tandem.errors import ModelError, PromptTooLong, TandemError, UsageError

__all__ = [
    "ChatTemplate",
    "Message",
    "Rendered",
    "Role",
    "Span",
    "TokenCodec",
    "clean",
    "drop_oldest",
    "encode",
    "is_marker",
]

_MAX_REASON: Final = 200
_FIRST_TURNS: Final = 64
_MARKER: Final = re.compile(r"<\|.*>|<.*\|>", re.DOTALL)


class Span(NamedTuple):
    """Where one message's own text stands in a rendered prompt, in characters, end exclusive."""

    start: int
    end: int
    message: int
    """Index in the list of messages that was rendered."""
    role: Role


@dataclass(frozen=True)
class Rendered:
    """A conversation as the template writes it.

    Args:
        text: The whole prompt, control tokens as text.
        literal: Where the messages' own texts stand in it, in order, without the white space around them.
    """

    text: str
    literal: tuple[Span, ...]


class TokenCodec(Protocol):
    """What `encode` needs of a vocabulary."""

    @property
    def bos(self) -> int | None:
        """The id that the vocabulary wants at the start of each prompt, None where it wants none."""

    @property
    def special_texts(self) -> Sequence[str]:
        """The vocabulary's own texts of control and unknown tokens, and of user-defined ones with `is_marker`."""

    def tokenize(self, text: str, special: bool) -> list[int]:
        """Token ids of `text`, nothing added at either end; `special`: control tokens are recognised."""


def is_marker(text: str) -> bool:
    """Is the text of a user-defined token a marker (`<|…>` or `<…|>`) rather than common text such as `<table>`?"""
    return _MARKER.fullmatch(text) is not None


class ChatTemplate:
    """A model file's chat template. One rendering at a time.

    Args:
        source: Jinja source, `tokenizer.chat_template` of the GGUF.
        bos: Text of the token that begins a text, as the template prints it.
        eos: Text of the token that ends one.

    Raises:
        ModelError: "corrupt", when there is no source or it does not compile.
    """

    def __init__(self, source: str, bos: str, eos: str) -> None:
        if not source.strip():
            raise _unusable("The model file has no chat template.")
        try:
            self._template = BoundedTemplate(source)
        except Exception as error:  # foreign source: Jinja's errors, and SyntaxError, ValueError, … from compiling it
            raise _unusable("The model file's chat template does not compile.", error) from error
        self._special = {"bos_token": bos, "eos_token": eos}
        self.switches_thinking: Final = self._differs_with_thinking()
        """Does the prompt differ between thinking on and off?"""

    def _differs_with_thinking(self) -> bool:
        probe = [Message("user", "Hello")]
        try:
            return self.render(probe, thinking=True) != self.render(probe, thinking=False)
        except TandemError:
            return False  # rendering a real conversation says what is wrong

    def render(self, messages: Sequence[Message], thinking: bool, add_generation_prompt: bool = True) -> Rendered:
        """The conversation as the template writes it.

        The result is what the template gives for the texts themselves, as long as it only trims, splits at markers
        and prints them. Leading and trailing white space is the template's to keep or drop.

        Args:
            messages: A system message first or not at all.
            thinking: The model shall think before it answers, where the template has that switch.
            add_generation_prompt: End with the start of the model's turn; the last message is then a user's.

        Raises:
            UsageError: No message, roles that make no sense, or the template refuses the conversation.
            ModelError: "corrupt", when the template fails or leaves out the last user message.
        """
        _check_roles(messages, add_generation_prompt)
        contents = [clean(message.content) for message in messages]
        mark = _unused_mark(contents)
        indices: dict[str, int] = {}
        entries: list[dict[str, str]] = []
        for index, content in enumerate(contents):
            inner = content.strip()
            if inner:
                indices[str(index)] = index
                before, _, after = content.partition(inner)
                content = f"{before}{mark}{index}\ue002{after}"
            entries.append({"role": messages[index].role, "content": content})
        output = self._run(entries, thinking, add_generation_prompt, mark)

        pieces: list[str] = []
        spans: list[Span] = []
        end = 0
        for number, piece in enumerate(re.split(f"{mark}([0-9]+)\ue002", output)):
            if number % 2 and piece in indices:
                index = indices[piece]
                piece = contents[index].strip()
                spans.append(Span(end, end + len(piece), index, messages[index].role))
            pieces.append(piece)
            end += len(piece)
        last = max((index for index, message in enumerate(messages) if message.role == "user"), default=None)
        if last is not None and contents[last].strip() and all(span.message != last for span in spans):
            raise _unusable("The model file's chat template leaves out the message.")
        return Rendered("".join(pieces), tuple(spans))

    def _run(self, entries: list[dict[str, str]], thinking: bool, generation: bool, mark: str) -> str:
        variables: dict[str, object] = {
            "messages": entries,
            "enable_thinking": thinking,
            "add_generation_prompt": generation,
            "tools": None,
            "documents": None,
            **self._special,
        }
        try:
            return clean(self._template.render(variables, len(entries)))
        except TemplateRefusal as refusal:
            reason = re.sub(f"{mark}[0-9]+\ue002", "…", " ".join(str(refusal).split()))[:_MAX_REASON].rstrip(" .")
            raise UsageError(
                f"The model's chat template does not take this conversation: {reason or 'it gives no reason'}.",
                "Change the conversation, or start a new one.",
            ) from refusal
        except Exception as error:  # foreign code: any error there means that the template is of no use
            raise _unusable("The model file's chat template fails on this conversation.", error) from error


def _unusable(sentence: str, error: BaseException | None = None) -> ModelError:
    details = f"{type(error).__name__}: {error}" if error else ""
    return ModelError("corrupt", sentence, "Use another file of this model, or prompt it without a template.", details)


def _check_roles(messages: Sequence[Message], add_generation_prompt: bool) -> None:
    remedy = "Send a list of messages that ends with one from the user."
    if not messages:
        raise UsageError("The conversation holds no message.", remedy)
    if any(message.role == "system" for message in messages[1:]):
        raise UsageError("A system message stands in the middle of the conversation.", "Put it first.")
    if add_generation_prompt and messages[-1].role != "user":
        raise UsageError(f"The conversation ends with a message of the role {messages[-1].role!r}.", remedy)


def _unused_mark(contents: Sequence[str]) -> str:
    """The start of a placeholder that occurs in no text: private-use characters and digits, which no filter changes."""
    while True:
        mark = f"\ue000{secrets.randbits(64)}\ue001"
        if not any(mark in content for content in contents):
            return mark


@functools.lru_cache(maxsize=4)
def _lengths_by_start(special_texts: tuple[str, ...]) -> tuple[re.Pattern[str] | None, Mapping[str, tuple[int, ...]]]:
    """For finding special texts fast (Gemma 4 has thousands of `<unused…>`): their lengths by first two characters.

    A text of one character cannot be cut and is left out; no known vocabulary has such a control token.
    """
    lengths: dict[str, set[int]] = {}
    for text in special_texts:
        if len(text) >= 2:
            lengths.setdefault(text[:2], set()).add(len(text))
    if not lengths:
        return None, {}
    firsts = "".join(re.escape(first) for first in sorted({start[0] for start in lengths}))
    return re.compile(f"[{firsts}]"), {start: tuple(sorted(found, reverse=True)) for start, found in lengths.items()}


def _cuts(rendered: Rendered, special_texts: tuple[str, ...]) -> Iterator[int]:
    """Positions strictly inside each special text that has a character in a literal.

    All lie in a literal or at its border, so the template's own control tokens stay whole.
    """
    pattern, lengths = _lengths_by_start(special_texts)
    if pattern is None:
        return
    known = frozenset(special_texts)
    longest = max(max(found) for found in lengths.values())
    text = rendered.text
    for span in rendered.literal:
        for match in pattern.finditer(text, max(span.start - longest + 1, 0), span.end):
            start = match.start()
            for length in lengths.get(text[start : start + 2], ()):
                if start + length > span.start and text[start : start + length] in known:
                    yield max(start + 1, span.start)
                    break


def encode(
    rendered: Rendered,
    codec: TokenCodec,
    known_answers: Callable[[str], Sequence[int] | None] = lambda _text: None,
) -> list[int]:
    """Token ids of a rendered conversation, in which no message's text is read as a control token.

    Where no text holds a control token's text these are exactly the ids of the whole prompt tokenised at once.

    Args:
        rendered: The prompt.
        codec: The vocabulary.
        known_answers: For the text of an assistant's message the ids that the model generated it with, if known; they
            must stand for exactly that text and hold no control token. They are used as they are, so that the prompt
            goes on where the KV cache ends: the same text tokenised again may give other ids.

    Returns:
        The ids, beginning with the vocabulary's `bos` once, whether the template prints it or not.
    """
    text = rendered.text
    cuts = sorted({*_cuts(rendered, tuple(codec.special_texts)), len(text)})

    def tokenize(start: int, end: int) -> Iterator[int]:
        inner = cuts[bisect_left(cuts, start + 1) : bisect_left(cuts, end)]
        for left, right in pairwise((start, *inner, end)):
            if left < right:
                yield from codec.tokenize(text[left:right], special=True)

    ids: list[int] = []
    position = 0
    for span in rendered.literal:
        if span.role != "assistant":
            continue
        generated = known_answers(text[span.start : span.end])
        if generated is not None:
            # The ids before an answer ended exactly here when it was generated: the prompt was tokenised up to here.
            ids.extend(tokenize(position, span.start))
            ids.extend(generated)
            position = span.end
    ids.extend(tokenize(position, len(text)))
    if codec.bos is not None and ids[:1] != [codec.bos]:
        ids.insert(0, codec.bos)
    return ids


def drop_oldest(
    messages: Sequence[Message], count: Callable[[Sequence[Message]], int], limit: int
) -> tuple[list[Message], int]:
    """Leaves out the oldest turns until the conversation fits.

    A turn is a user message and what follows up to the next. The system message and the last turn stay.

    Args:
        messages: The conversation.
        count: Prompt tokens of a conversation. Called once for a chat of usual length that fits, else a few times,
            and never with much more than twice of what fits: rendering can grow with the square of the length.
        limit: The most prompt tokens that fit.

    Returns:
        The messages that stay, and how many were left out. The conversation that stays has been counted.

    Raises:
        PromptTooLong: The system message and the last turn are too long by themselves.
    """
    first = 1 if messages and messages[0].role == "system" else 0
    # Where the conversation may begin, newest first; what is before the first user message is a turn of its own.
    later = [index for index, message in enumerate(messages) if index > first and message.role == "user"]
    starts = [*reversed(later), first]

    def kept(turns: int) -> list[Message]:
        return [*messages[:first], *messages[starts[turns - 1] :]]

    fits, fits_tokens, turns = 0, 0, min(_FIRST_TURNS, len(starts))
    while (tokens := count(kept(turns))) <= limit:
        fits, fits_tokens = turns, tokens
        if turns == len(starts):
            return list(messages), 0
        turns = min(turns * 2, len(starts))
    too_many, too_many_tokens = turns, tokens
    if fits == 0:
        fits, fits_tokens = 1, count(kept(1)) if too_many > 1 else tokens
        if fits_tokens > limit:
            raise PromptTooLong(fits_tokens, limit)
    halve = False
    while too_many - fits > 1:
        # By turns where the limit would be if all turns were equal, which is mostly near, and the middle, for safety.
        share = 0.5 if halve else (limit - fits_tokens) / (too_many_tokens - fits_tokens)
        halve = not halve
        turns = min(max(fits + int((too_many - fits) * share), fits + 1), too_many - 1)
        tokens = count(kept(turns))
        if tokens <= limit:
            fits, fits_tokens = turns, tokens
        else:
            too_many, too_many_tokens = turns, tokens
    return kept(fits), starts[fits - 1] - first
