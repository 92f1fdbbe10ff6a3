"""Markdown as a list of blocks that the transcript can write: no HTML, no images, no links but to the web and mail.

markdown-it-py does the parsing. What it gives is flattened here into leaves (a paragraph, a heading, a fence, a table),
each with the quotes and list items it stands in, and their text into spans. Text comes from a model or a file and is
not trusted: whatever would be slow or deep to parse is shown as it is.
"""

from __future__ import annotations

import functools
import re
import unicodedata
from collections.abc import Iterable, Sequence
from enum import Flag, auto
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple

from tandem.ui.transcript_math import tidy

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.token import Token

MAX_NESTING: Final = 40
"""Levels of markdown-it's tokens; a quote is one, an item of a list two."""
MAX_INLINE_NESTING: Final = 6
"""Links and images in each other."""
MAX_MARKERS: Final = 24
"""Quote and list markers at the beginning of one line; with more the line is plain text."""
MAX_INLINE: Final = 8000
"""Characters of one paragraph with markup; a longer one is plain text."""
MAX_BRACKETS: Final = 200
"""Characters of one paragraph that begin a link which may turn out not to be there."""
MAX_MARKS: Final = 600
"""Likewise of code, formulas and escapes."""
LINE_BREAK: Final = "\u2028"

LINKS: Final = re.compile(r"(?:https?://|mailto:)", re.IGNORECASE)
MARKERS: Final = re.compile(r"(?:[ \t]*(?:>|(?:[-*+]|\d{1,9}[.)])(?=[ \t]|$)))*[ \t]*")
_TASK: Final = re.compile(r"\[([ xX])\][ \t]+")

LeafKind = Literal["paragraph", "heading", "fence", "code", "rule", "table", "math", "empty"]


class Style(Flag):
    """How a span is set."""

    NONE = 0
    STRONG = auto()
    EMPHASIS = auto()
    STRIKE = auto()
    CODE = auto()
    MATH = auto()
    IMAGE = auto()


class Span(NamedTuple):
    """Text of one style; `href` is an address that may be asked for, or empty."""

    text: str
    style: Style = Style.NONE
    href: str = ""


class Item(NamedTuple):
    """A list item that a leaf stands in: the source line it begins in, and its number, None for a bullet."""

    line: int
    number: int | None


class Leaf(NamedTuple):
    """A block without blocks in it.

    Attributes:
        kind: What it is; "empty" is an item of a list with nothing in it yet.
        line: Its first source line.
        end: The line after its last.
        containers: What it stands in, outermost first: an `Item`, or None for a quote.
        marker: Whether it is the first of its innermost item, and shows the item's marker.
        spans: Text of a paragraph or heading.
        level: Of a heading, 1 to 6.
        info: Of a fence, its language; of an item of a list of tasks, its box.
        code: Of code or a formula, the text.
        closed: Of a fence, whether its end was there.
        rows: Of a table, the cells by rows; the first row is the heading.
        aligns: Of a table, "left", "right" or "center" by column.
    """

    kind: LeafKind
    line: int
    end: int
    containers: tuple[Item | None, ...] = ()
    marker: bool = False
    spans: tuple[Span, ...] = ()
    level: int = 0
    info: str = ""
    code: str = ""
    closed: bool = True
    rows: tuple[tuple[tuple[Span, ...], ...], ...] = ()
    aligns: tuple[str, ...] = ()


def parse(source: str, env: dict[str, Any] | None = None, numbers: Sequence[int | None] = ()) -> list[Leaf]:
    """The leaves of some Markdown.

    Args:
        source: The text, cleaned by `visible`.
        env: Keeps link definitions from one call to the next.
        numbers: Of the first list at each depth, the number of its first item, where the source's does not count.
    """
    lines = source.split("\n")
    if any(too_deep(line) for line in lines):
        return _plain(lines)
    env = {} if env is None else env
    tokens = _parser().parse(source, env)
    if any(token.level >= MAX_NESTING - 1 for token in tokens):  # the parser left something out
        return _plain(lines)
    return _Walk(numbers, env).leaves(tokens)


def too_deep(line: str) -> bool:
    """Whether a line begins with more markers than anybody means."""
    found = MARKERS.match(line)
    return found is not None and len(found[0].replace(">", "> ").split()) > MAX_MARKERS


@functools.cache
def _parser() -> MarkdownIt:
    return _made(MAX_NESTING)


@functools.cache
def _inline_parser() -> MarkdownIt:
    """For text alone: nothing nests deeply there, and looking for it is what makes brackets dear."""
    return _made(MAX_INLINE_NESTING)


def _made(nesting: int) -> MarkdownIt:
    # Only here: the parser is not needed before there is a text, and the window shall be there first.
    from markdown_it import MarkdownIt
    from mdit_py_plugins.dollarmath import dollarmath_plugin
    from mdit_py_plugins.gfm_autolink import gfm_autolink_plugin
    from mdit_py_plugins.texmath import texmath_plugin

    parser = MarkdownIt("commonmark", {"html": False, "maxNesting": nesting})
    parser.enable(["table", "strikethrough"])
    parser.disable(["html_block", "html_inline", "inline"])  # inline text is parsed by `spans`, within its limits
    dollarmath_plugin(
        parser,
        allow_labels=False,
        allow_space=False,
        allow_digits=False,
        allow_blank_lines=False,
        double_inline=True,
    )
    texmath_plugin(parser, "brackets")
    gfm_autolink_plugin(parser)
    # `spans` sees to which addresses are links, and shows the text of those that are not.
    parser.validateLink = lambda url: True  # type: ignore[method-assign]  # noqa: ARG005
    return parser


def _plain(lines: Sequence[str]) -> list[Leaf]:
    return [Leaf("paragraph", at, at + 1, spans=(Span(line),)) for at, line in enumerate(lines) if line.strip()]


class _Walk:
    """Flattens markdown-it's tokens."""

    def __init__(self, numbers: Sequence[int | None], env: dict[str, Any]) -> None:
        self._numbers = numbers
        self._env = env
        self._seen: set[int] = set()  # depths at which a list was met
        self._containers: list[Item | None] = []
        self._lists: list[int | None] = []  # the next number of each open list
        self._fresh: list[bool] = []  # of each open item, whether it shows its marker still
        self._found: list[Leaf] = []

    def leaves(self, tokens: Sequence[Token]) -> list[Leaf]:
        at = 0
        while at < len(tokens):
            token = tokens[at]
            kind = token.type
            if kind == "blockquote_open":
                self._settle(token.map)
                self._containers.append(None)
            elif kind == "blockquote_close":
                self._containers.pop()
            elif kind in ("bullet_list_open", "ordered_list_open"):
                self._open_list(token)
            elif kind in ("bullet_list_close", "ordered_list_close"):
                self._lists.pop()
            elif kind == "list_item_open":
                self._open_item(token)
            elif kind == "list_item_close":
                if self._fresh[-1]:
                    line = self._containers[-1]
                    start = line.line if line is not None else 0
                    self._add("empty", [start, start + 1])
                self._fresh.pop()
                self._containers.pop()
            elif kind in ("paragraph_open", "heading_open"):
                inline = tokens[at + 1]
                level = int(token.tag[1]) if kind == "heading_open" else 0
                text = inline.content
                marker = bool(self._fresh and self._fresh[-1])
                task = _TASK.match(text) if marker else None
                if task:
                    text = text[task.end() :]
                box = "" if task is None else "☐" if task[1] == " " else "☑"
                shown = spans(text, self._env)
                self._add("heading" if level else "paragraph", token.map, spans=shown, level=level, info=box)
                at += 2
            elif kind in ("fence", "code_block"):
                closed = kind == "code_block" or _is_closed(token)
                words = token.info.split()
                self._add(
                    "fence" if kind == "fence" else "code",
                    token.map,
                    info=words[0] if words else "",
                    code=token.content,
                    closed=closed,
                )
            elif kind == "hr":
                self._add("rule", token.map)
            elif kind.startswith("math_"):
                self._add("math", token.map, code=tidy(token.content))
            elif kind == "table_open":
                at = self._table(tokens, at)
            at += 1
        return self._found

    def _open_list(self, token: Token) -> None:
        depth = len(self._lists)
        number: int | None = None
        if token.type == "ordered_list_open":
            number = int(token.attrGet("start") or 1) if token.attrGet("start") != 0 else 0
            if depth not in self._seen and depth < len(self._numbers):
                number = self._numbers[depth]
        self._seen.add(depth)
        self._lists.append(number)

    def _open_item(self, token: Token) -> None:
        self._settle(token.map)
        number = self._lists[-1]
        if number is not None:
            self._lists[-1] = number + 1
        self._containers.append(Item(token.map[0] if token.map else 0, number))
        self._fresh.append(True)

    def _settle(self, lines: list[int] | None) -> None:
        """Another container begins where an item's first leaf should be: the item's marker gets a line of its own."""
        if self._fresh and self._fresh[-1] and self._containers and self._containers[-1] is not None:
            self._add("empty", lines)

    def _add(self, kind: LeafKind, lines: list[int] | None, **fields: Any) -> None:
        last = self._found[-1].end if self._found else 0
        start, end = lines or (last, last + 1)  # texmath's blocks do not say where they are
        marker = False
        # The marker belongs to the innermost item; a quote in between has settled it already.
        if self._fresh and self._fresh[-1]:
            marker, self._fresh[-1] = True, False
        self._found.append(Leaf(kind, start, end, tuple(self._containers), marker, **fields))

    def _table(self, tokens: Sequence[Token], at: int) -> int:
        lines = tokens[at].map
        rows: list[tuple[tuple[Span, ...], ...]] = []
        row: list[tuple[Span, ...]] = []
        aligns: list[str] = []
        while tokens[at].type != "table_close":
            token = tokens[at]
            if token.type in ("th_open", "td_open"):
                if token.type == "th_open":
                    style = str(token.attrGet("style") or "")
                    aligns.append(style.removeprefix("text-align:") or "left")
                row.append(spans(tokens[at + 1].content, self._env))
            elif token.type == "tr_close":
                rows.append(tuple(row))
                row = []
            at += 1
        self._add("table", lines, rows=tuple(rows), aligns=tuple(aligns))
        return at


def _is_closed(token: Token) -> bool:
    """Whether a fence's last line was there: then its lines are two more than its content's."""
    start, end = token.map or (0, 0)
    content = token.content
    return end - start >= content.count("\n") + (content[-1:] not in ("", "\n")) + 2


def spans(text: str, env: dict[str, Any] | None = None) -> tuple[Span, ...]:
    """The spans of a paragraph's text; plain where it would be slow to parse."""
    brackets, marks = text.count("[") + text.count("<"), text.count("`") + text.count("$") + text.count("\\")
    if len(text) > MAX_INLINE or brackets > MAX_BRACKETS or marks > MAX_MARKS:
        return (Span(text.replace("\n", LINE_BREAK)),)
    parser = _inline_parser()
    tokens = parser.inline.parse(text, parser, {} if env is None else env, [])
    found: list[Span] = []
    style, hrefs, strongs = Style.NONE, [""], {"strong": Style.STRONG, "em": Style.EMPHASIS, "s": Style.STRIKE}
    for token in tokens:
        kind = token.type
        if kind == "text":
            found.append(Span(token.content, style, hrefs[-1]))
        elif kind in ("softbreak", "hardbreak"):
            found.append(Span(LINE_BREAK, style))
        elif kind == "code_inline":
            found.append(Span(visible(token.content, code=True), style | Style.CODE, hrefs[-1]))
        elif kind.startswith("math_"):
            found.append(Span(tidy(token.content), style | Style.MATH, hrefs[-1]))
        elif kind == "link_open":
            href = str(token.attrGet("href") or "")
            hrefs.append(href if LINKS.match(href) else "")
        elif kind == "link_close":
            hrefs.pop()
        elif kind == "image":
            alt = "".join(span.text for span in _text_of(token.children or ()))
            found.append(Span(alt.replace(LINE_BREAK, " "), style | Style.IMAGE))
        elif kind.removesuffix("_open") in strongs:
            style |= strongs[kind.removesuffix("_open")]
        elif kind.removesuffix("_close") in strongs:
            style &= ~strongs[kind.removesuffix("_close")]
        elif token.content:
            found.append(Span(token.content, style, hrefs[-1]))
    return tuple(span for span in found if span.text or Style.IMAGE in span.style)


def _text_of(tokens: Iterable[Token]) -> Iterable[Span]:
    for token in tokens:
        if token.children:
            yield from _text_of(token.children)
        else:
            yield Span(" " if token.type in ("softbreak", "hardbreak") else token.content)


_HARMFUL: Final = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\u202d\u202e\ufdd0-\ufdef\ufffc\ufffe\uffff\ud800-\udfff]"
)
_HARMFUL_IN_CODE: Final = re.compile("[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")
_DELETE: Final = 0x7F


def visible(text: str, code: bool = False) -> str:
    """The text without characters that would do something instead of being seen.

    Control characters become their pictures; the two overrides of direction, which can make a text read as another,
    are spelled out, in code every mark of direction is. Lines end with a newline.
    """
    if not text.isascii() or "\r" in text or not text.replace("\n", "").replace("\t", "").isprintable():
        text = _HARMFUL.sub(_shown, text.replace("\r\n", "\n"))
        if code:
            text = _HARMFUL_IN_CODE.sub(_shown, text)
    return text


def _shown(found: re.Match[str]) -> str:
    code = ord(found[0])
    if found[0] in "\r\u2028\u2029\x0b\x0c\x85":
        return "\n"
    if code < 0x20:
        return chr(0x2400 + code)
    if code == _DELETE:
        return "␡"
    if code in (0xFFFC, 0xFFFE, 0xFFFF) or 0xD800 <= code <= 0xDFFF or 0xFDD0 <= code <= 0xFDEF:
        return "\ufffd"
    return f"[U+{code:04X}]"


def right_to_left(text: str) -> bool:
    """Whether the first letter that has a direction runs from right to left."""
    if text.isascii():
        return False
    for character in text[:500]:
        kind = unicodedata.bidirectional(character)
        if kind in ("R", "AL"):
            return True
        if kind == "L":
            return False
    return False
