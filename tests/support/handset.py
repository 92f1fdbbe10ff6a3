"""Hand-set model pairs: real GGUF files of Gemma 4's architecture that follow a given token graph.

What is possible:

- Every pass is a real pass of a real Gemma 4 (`gemma4` and `gemma4-assistant`): sliding and full attention with a
  shared KV cache, per-layer embeddings, soft cap, a drafter on the target's KV cache. Weights that take part in
  nothing but the cost are random. Zero post-norms keep them out of the residual stream, so that the hidden state at
  the end is the last token's embedding.
- The target's next token depends on the last token only, and so does the drafter's guess: two arrays (`Graph`). A
  text that comes back to a token would go round in circles. `Script` therefore gives each element of a text a token
  of its own: any piece of text once as a normal token, and any byte, thus any ASCII character or split character,
  as often as wished (see `handset_vocab`). Markers at Gemma's ids appear once per pair.
- After chosen tokens the target (`branch`) or the drafter (`draft_branch`) has several candidates with set
  probabilities at temperature 1, for statistical tests of sampling; with `exact` shapes, and as long as no more
  tokens are said in all than the shape has room for (255 in `TINY`), they are met within 0.1 %.

What is not: nothing depends on the KV cache, so a cache left in a wrong state does not show in the text. Trained
pairs test that.

How: a row of the target's embedding is ``[word of the successor, 1 | word of the guess, 1]`` (`handset_code`). The
output matrix answers to the first part. The drafter's pre-projection takes the second part out of the target's
embedding, ignoring the hidden state that comes with it, and its own output rows answer to it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from support.handset_gguf import write_drafter, write_target
from support.handset_graph import Graph, Passes, Wrong, make_graph
from support.handset_shape import E2B, E4B, TINY, Shape
from support.handset_vocab import (
    BOS,
    BYTE,
    CHANNEL_CLOSE,
    CHANNEL_OPEN,
    CHAT_TEMPLATE,
    EOS,
    FIRST_FREE,
    NEWLINE,
    PAD,
    THINK,
    TOOL_RESPONSE,
    TURN_CLOSE,
    TURN_OPEN,
    Kind,
    Piece,
    large_vocabulary,
    private_byte,
    small_vocabulary,
    stored,
)

__all__ = [
    "BOS",
    "BYTE",
    "CHANNEL_CLOSE",
    "CHANNEL_OPEN",
    "CHAT_TEMPLATE",
    "E2B",
    "E4B",
    "EOS",
    "FIRST_FREE",
    "NEWLINE",
    "PAD",
    "THINK",
    "TINY",
    "TOOL_RESPONSE",
    "TURN_CLOSE",
    "TURN_OPEN",
    "Graph",
    "Kind",
    "Pair",
    "Passes",
    "Piece",
    "Script",
    "Shape",
    "Wrong",
    "large_vocabulary",
    "make_graph",
    "small_vocabulary",
    "write_pair",
]

_PRINTABLE: Final = range(0x20, 0x7F)


@dataclass(frozen=True)
class Pair:
    """Two files and what they say.

    Attributes:
        target: GGUF of the target.
        drafter: GGUF of the drafter.
        graph: What they say.
        vocabulary: Their tokens.
    """

    target: Path
    drafter: Path
    graph: Graph
    vocabulary: Sequence[Piece]


def write_pair(
    folder: Path,
    shape: Shape = TINY,
    successor: Mapping[int, int] | Callable[[int], int] | None = None,
    *,
    wrong: Wrong = 0.0,
    branch: Mapping[int, Mapping[int, float]] | None = None,
    draft_branch: Mapping[int, Mapping[int, float]] | None = None,
    vocabulary: Sequence[Piece] | None = None,
    chat_template: str | None = CHAT_TEMPLATE,
    seed: int = 0,
) -> Pair:
    """Writes a target and a drafter into `folder` (`{shape}-target.gguf`, `{shape}-drafter.gguf`).

    Args:
        folder: Created when missing.
        shape: Sizes of the two models.
        successor: The token after a token; where not given, the next normal token, the first after the last.
        wrong: Where the drafter guesses wrong: a share, a set of tokens, or a test of a token.
        branch: Target distributions after chosen tokens (`exact` shapes only).
        draft_branch: Drafter distributions after chosen tokens (`exact` shapes only).
        vocabulary: The tokens; without it `small_vocabulary` for `exact` shapes and Gemma's 262,144 for others.
        chat_template: Jinja template for both files, or None to leave it out.
        seed: For everything random.

    Raises:
        ValueError: The graph or the branches make no sense, or cannot be met by this shape.
    """
    if vocabulary is None:
        vocabulary = small_vocabulary() if shape.exact else large_vocabulary(262_144)
    if len({piece.text for piece in vocabulary}) != len(vocabulary):
        raise ValueError("Two tokens have the same text, which llama.cpp does not load.")
    if (branch or draft_branch) and not shape.exact:
        raise ValueError(f"Shape {shape.name} is all Q4_0: its tokens cannot branch.")
    graph = make_graph(vocabulary, successor, wrong=wrong, branch=branch, draft_branch=draft_branch, seed=seed)
    folder.mkdir(parents=True, exist_ok=True)
    target = folder / f"{shape.name}-target.gguf"
    drafter = folder / f"{shape.name}-drafter.gguf"
    write_target(target, shape, graph, vocabulary, chat_template, seed)
    write_drafter(drafter, shape, graph, vocabulary, chat_template, seed)
    return Pair(target, drafter, graph, vocabulary)


class Script:
    """Texts for a pair to say, each element a token of its own.

    ::

        script = Script()
        ids = script.say(NEWLINE, CHANNEL_OPEN, "thought", "\\n", "Hm.", CHANNEL_CLOSE, "Hello ", "🙂".encode())
        pair = script.write(folder)

    An answer in a chat starts after `NEWLINE`, the last token of the generation prompt. With a raw prompt of token
    ids it starts after whatever token is last, so that one pair can hold many texts: take a token of `token` for
    each to start from.
    """

    def __init__(self) -> None:
        self.vocabulary = small_vocabulary()
        self.successor: dict[int, int] = {}
        self._texts = {piece.text for piece in self.vocabulary}

    def token(self, what: str | int) -> int:
        """A new token of its own.

        Args:
            what: The text that it writes, or the value of the byte that it writes.

        Raises:
            ValueError: A token already writes this text, and it is longer than one ASCII character.
        """
        if isinstance(what, str):
            piece = Piece(stored(what))
            if piece.text in self._texts and len(what) == 1 and ord(what) in _PRINTABLE:
                what = ord(what)
            elif piece.text in self._texts:
                raise ValueError(f"A token already writes {what!r}; say it in other pieces, or as bytes.")
        if isinstance(what, int):
            piece = private_byte(what, len(self.vocabulary))
        self.vocabulary.append(piece)
        self._texts.add(piece.text)
        return len(self.vocabulary) - 1

    def say(self, start: int, *elements: str | bytes | int, then: int = TURN_CLOSE) -> list[int]:
        """Lays down what is said after `start`.

        Args:
            start: The last token of the prompt.
            elements: Text: one token. Bytes: one byte token each. A number: that token, such as a marker or one
                made by `token`; it can be said once per pair.
            then: The token after the last one: the end of the turn, or one of the text for an endless loop.

        Returns:
            The token ids of the elements, without `then`.

        Raises:
            ValueError: A token would need two successors.
        """
        said: list[int] = []
        for element in elements:
            if isinstance(element, bytes):
                said += [self.token(value) for value in element]
            else:
                said.append(element if isinstance(element, int) else self.token(element))
        for token, after in zip([start, *said], [*said, then], strict=True):
            if self.successor.setdefault(token, after) != after:
                raise ValueError(f"Token {token} ({self.vocabulary[token].text!r}) already has a successor.")
        return said

    def write(
        self,
        folder: Path,
        shape: Shape = TINY,
        *,
        wrong: Wrong = 0.0,
        branch: Mapping[int, Mapping[int, float]] | None = None,
        draft_branch: Mapping[int, Mapping[int, float]] | None = None,
        chat_template: str | None = CHAT_TEMPLATE,
        seed: int = 0,
    ) -> Pair:
        """Writes the pair; arguments as for `write_pair`. After tokens outside the texts comes the next normal one."""
        return write_pair(
            folder,
            shape,
            self.successor,
            wrong=wrong,
            branch=branch,
            draft_branch=draft_branch,
            vocabulary=self.vocabulary,
            chat_template=chat_template,
            seed=seed,
        )
