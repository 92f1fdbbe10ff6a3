r"""From token ids to the text of two channels, thought and answer, while the tokens arrive.

Gemma 4 writes `<|channel>thought\n…<channel|>answer`. A stream gets token ids one by one and gives back the text that
is final by then. What it promises:

* The texts do not depend on how the bytes were cut into tokens or the tokens into passes: every decision is taken
  character by character.
* A character is never broken: bytes wait until it is whole. Bytes that are no UTF-8 at all become U+FFFD; a character
  that never gets whole, because the stream or its channel ends, is dropped.
* No marker is ever shown, whether it came as its own token or was spelled with ordinary ones, and not even when the
  removal of one marker would join the halves of another.
* Text that could still become a marker or a stop string waits, and so the joined chunks of a channel are its text.
* Every character says which token it came from, however long it waited: the one that made it whole.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Callable, Iterable, Sequence
from itertools import groupby
from typing import Final, Literal, NamedTuple

import msgspec

Channel = Literal["thought", "answer"]

_LONGEST_NAME: Final = 32
"""Characters of a channel's name, `thought` being the only one Gemma 4 uses. An opener that is followed by more than
this without a line break has no name, and nothing of what follows may be lost."""


class Chunk(NamedTuple):
    """Text that is final.

    Attributes:
        channel: Where it belongs.
        text: At least one character.
        token: Index of the token it came from, 0 for the stream's first. A character that several tokens hold bytes of
            came from the last of them; U+FFFD from the one that showed that the bytes are no text.
    """

    channel: Channel
    text: str
    token: int


class Markers(msgspec.Struct, frozen=True):
    """What begins and ends a thought, and what else must not be shown. The texts are those of Gemma 4's template.

    Attributes:
        open: Token id that opens a thought; `None` where the vocabulary has none.
        close: Token id that closes it; `None` where the vocabulary has none.
        open_text: The opener spelled out.
        close_text: The closer spelled out.
        texts: Other markers spelled out; they vanish from the text and do nothing else.
    """

    open: int | None = None
    close: int | None = None
    open_text: str = "<|channel>"
    close_text: str = "<channel|>"
    texts: tuple[str, ...] = ("<|channel>", "<channel|>", "<|turn>", "<turn|>", "<|think|>")


class AnswerStream:
    """Turns the tokens of one answer into text.

    A thought is opened and closed by the markers. A closer outside a thought and an opener inside one vanish. The
    name after an opener, up to the end of its line, is not shown, nor are line breaks between a closed thought and
    the answer. A thought that is never closed stays a thought.

    Args:
        piece: The bytes of a token, empty for control tokens.
        markers: What delimits thoughts.
        stop: Strings that end the answer where the first of them is complete; they do not count in thoughts, and the
            empty string never ends anything. A stop string is not shown.
        in_thought: The prompt already opened the thought and named it.

    Attributes:
        stopped: A stop string was completed; nothing after it is given out.
        channel: The channel that the next token belongs to.
    """

    def __init__(
        self,
        piece: Callable[[int], bytes],
        markers: Markers,
        stop: Sequence[str] = (),
        in_thought: bool = False,
    ) -> None:
        self.stopped: bool = False
        self.channel: Channel = "thought" if in_thought else "answer"
        self._piece: Final = piece
        self._markers: Final = markers
        self._stops: Final = frozenset(stop) - {""}
        hidden = frozenset({markers.open_text, markers.close_text, *markers.texts}) - {""}
        self._hidden: Final = _Patterns(hidden)
        self._lanes: Final[dict[Channel, _Lane]] = {
            "thought": _Lane(self._hidden),
            "answer": _Lane(_Patterns(hidden | self._stops)),
        }
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._token = -1  # index of the token pushed last
        self._name: str | None = None  # what came of the name of a thought just opened
        self._name_from: list[int] = []  # the token of each of its characters
        # After a thought: how much the answer's lane held back when the answer began again, until text of it is final.
        self._trim_at: int | None = None
        self._chunks: list[Chunk] = []

    def push(self, token: int) -> list[Chunk]:
        """Take the next token.

        Args:
            token: Its id.

        Returns:
            The text that became final, in order; often empty, and always after a stop.
        """
        self._token += 1
        if self.stopped:
            return []
        if token == self._markers.open:
            self._mark_by_id(self._open)
        elif token == self._markers.close:
            self._mark_by_id(self._close)
        else:
            text = self._decoder.decode(self._piece(token))
            if text:
                self._read(text, self._token)
        return self._take()

    def finish(self) -> list[Chunk]:
        """End the stream and give out what was held back.

        A marker cut short by the end is dropped if at least two of its characters came (`<|`); a lone `<` is text, and
        so is the beginning of a stop string.

        Returns:
            The last text, in order.
        """
        other: Channel = "answer" if self.channel == "thought" else "thought"
        for channel in (other, self.channel):
            lane = self._lanes[channel]
            cut = self._hidden.longest_begun(lane.tail + lane.held)
            self._emit(channel, lane.drain(len(lane.held) - (cut if cut >= 2 else 0)))
        self._name = None
        self._decoder.reset()
        return self._take()

    def _take(self) -> list[Chunk]:
        chunks, self._chunks = self._chunks, []
        return chunks

    def _emit(self, channel: Channel, runs: Iterable[_Run]) -> None:
        chunks = self._chunks
        for text, token in runs:
            if chunks and chunks[-1].channel == channel and chunks[-1].token == token:
                chunks[-1] = Chunk(channel, chunks[-1].text + text, token)
            else:
                chunks.append(Chunk(channel, text, token))

    def _mark_by_id(self, mark: Callable[[], None]) -> None:
        before = self.channel
        mark()
        if self.channel != before:
            # The channel ended inside a character. Where the marker vanishes, the character may still go on.
            self._decoder.reset()

    def _open(self) -> None:
        if self.channel == "answer":
            self.channel = "thought"
            self._name, self._name_from = "", []
            self._trim_at = None

    def _close(self) -> None:
        if self.channel == "thought":
            self.channel = "answer"
            self._name = None
            self._trim_at = len(self._lanes["answer"].held)

    def _read(self, text: str, token: int) -> None:
        """Work through decoded text of one token, up to a stop."""
        at, end = 0, len(text)
        while at < end and not self.stopped:
            if self._name is not None:
                self._read_name(text[at], token)
                at += 1
                continue
            lane = self._lanes[self.channel]
            until = end
            if self._trim_at is not None:
                if text[at] == "\n" and len(lane.held) == self._trim_at:
                    at += 1
                    continue
                until = at + 1
            at, final, found = lane.feed(text, at, until, token)
            if final:
                self._trim_at = None
                self._emit(self.channel, final)
            if found:
                self._found(found)

    def _found(self, pattern: str) -> None:
        """Act on a pattern that was completed in the current channel and taken out of its text."""
        if self.channel == "answer" and pattern in self._stops:
            self.stopped = True
            lane = self._lanes["answer"]
            self._emit("answer", lane.drain(len(lane.held)))
        elif pattern == self._markers.open_text:
            self._open()
        elif pattern == self._markers.close_text:
            self._close()
        if self._trim_at is not None:
            self._trim_at = min(self._trim_at, len(self._lanes["answer"].held))

    def _read_name(self, char: str, token: int) -> None:
        """Take one character of the name after an opener; it ends with its line."""
        name = (self._name or "") + char
        origins = self._name_from
        origins.append(token)
        if char == "\n":
            self._name = None
            return
        marker = self._hidden.ending(name)
        if marker:
            self._name = name[: -len(marker)]
            del origins[len(self._name) :]
            self._found(marker)
        elif len(name) > _LONGEST_NAME:
            self._name = None
            for run in _runs(name, origins):
                self._read(*run)
        else:
            self._name = name


_Run = tuple[str, int]
"""Characters, at least one, and the index of the token they came from."""


def _runs(text: str, origins: Sequence[int]) -> list[_Run]:
    """The runs of `text`, whose characters came from the tokens `origins`."""
    runs: list[_Run] = []
    start = 0
    for token, group in groupby(origins):
        end = start + sum(1 for _ in group)
        runs.append((text[start:end], token))
        start = end
    return runs


class _Patterns:
    """A set of strings to look for.

    Args:
        strings: Not empty ones.
    """

    __slots__ = ("begun", "first", "longest", "strings")

    def __init__(self, strings: Iterable[str]) -> None:
        # The longest first: of two that end at the same character the one that began earlier counts.
        self.strings: Final = tuple(sorted(set(strings), key=lambda one: (-len(one), one)))
        self.longest: Final = max(map(len, self.strings), default=0)
        self.begun: Final = frozenset(one[:size] for one in self.strings for size in range(1, len(one)))
        initials = "".join(sorted({one[0] for one in self.strings}))
        self.first: Final = re.compile(f"[{re.escape(initials)}]" if initials else r"(?!)")

    def ending(self, text: str) -> str:
        """The longest string that `text` ends with, or nothing."""
        return next((one for one in self.strings if text.endswith(one)), "")

    def longest_begun(self, text: str) -> int:
        """Length of the longest end of `text` with which a string begins, without being complete."""
        for size in range(min(self.longest - 1, len(text)), 0, -1):
            if text[-size:] in self.begun:
                return size
        return 0


class _Lane:
    """The text of one channel on its way out.

    Attributes:
        held: Text not given out yet, since it may be the beginning of a pattern.
        tail: The last characters given out, one less than the longest pattern has.
        begun: The longest end of tail + held that begins a pattern. Longer than `held` only after a pattern was taken
            out between the two.
    """

    __slots__ = ("_origins", "_patterns", "begun", "held", "tail")

    def __init__(self, patterns: _Patterns) -> None:
        self._patterns: Final = patterns
        self.held = ""
        self._origins: list[int] = []  # the token of each character held
        self.tail = ""
        self.begun = ""

    def feed(self, text: str, at: int, end: int, token: int) -> tuple[int, list[_Run], str]:
        """Read `text[at:end]`, of one token, up to the first completed pattern.

        Returns:
            Where reading stopped, the text that became final, and the pattern completed, or "". The pattern is gone
            from the text, as far as it was not given out before it could be recognised.
        """
        patterns = self._patterns
        out: list[_Run] = []
        found = ""
        while at < end and not found:
            if not self.begun:
                match = patterns.first.search(text, at, end)
                plain = match.start() if match else end
                if plain > at:
                    out.append((text[at:plain], token))
                    self._passed(text[at:plain])
                    at = plain
                    continue
            char = text[at]
            at += 1
            self.held += char
            self._origins.append(token)
            window = self.begun + char
            found = patterns.ending(window)
            if found:
                self.held = self.held[: max(len(self.held) - len(found), 0)]
                del self._origins[len(self.held) :]
                window = self.tail + self.held
            size = patterns.longest_begun(window)
            self.begun = window[len(window) - size :]
            if size < len(self.held):
                cut = len(self.held) - size
                out += _runs(self.held[:cut], self._origins[:cut])
                self._passed(self.held[:cut])
                self.held = self.held[cut:]
                del self._origins[:cut]
        return at, out, found

    def drain(self, count: int) -> list[_Run]:
        """Ends the lane: gives out the first `count` characters held, none if that is below 1, and forgets the rest."""
        count = max(count, 0)
        runs = _runs(self.held[:count], self._origins[:count])
        self.held = self.begun = ""
        self._origins.clear()
        return runs

    def _passed(self, text: str) -> None:
        """Remembers text just given out."""
        keep = self._patterns.longest - 1
        self.tail = (self.tail + text)[-keep:] if keep > 0 else ""
