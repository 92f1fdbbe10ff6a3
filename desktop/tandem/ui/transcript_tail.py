"""Which part of a Markdown text that still grows is final, and what has to be parsed again for the part that is not.

A block is final as soon as another one has begun behind it in a line that is complete. What is left, the *tail*, is the
last block only; of a fence, a table or a paragraph without an end even less. So the cost of a step depends on what came
since the last one and never on the length of the text.

To parse a tail alone the way it would be parsed in its place, the lines that its containers began with stand before it
(the *prefix*), emptied: `- # ` opens the same item as `- a long text`. Blocks of the prefix are not shown.
"""

from __future__ import annotations

import re
from typing import Any, Final, NamedTuple

from tandem.ui.markdown import LINE_BREAK, MARKERS, Item, Leaf, parse, visible

LONG_PARAGRAPH: Final = 1600
"""Characters after which a paragraph that still grows is divided; it is joined again when it ends."""
FORCED: Final = 4000
"""Characters after which it is divided anywhere."""
LONGEST_LEAD: Final = LONG_PARAGRAPH // 6
"""Most characters of containers' marks that are said again before the rest of it: each piece must make it shorter."""
OPEN_ROWS: Final = 10
"""Rows of a table that are written again while it grows."""
SLICE: Final = 4096
"""Characters in which a finished text is fed."""

_ENDS: Final = re.compile(r"(?:(?<=[.!?…:;])[ \n]+|(?<=[。！？])|\n)(?=[^\W\d_])")
_GAPS: Final = re.compile(r"[ \n]+(?=[^\W\d_])|(?<=[\u3040-\u9fff\uac00-\ud7af])(?=[\u3040-\u9fff\uac00-\ud7af])")
_HALF_LINE: Final = re.compile(
    r"[ \t]*(?:[-=*+#_]{1,6}|\d{1,3}[.)]?|\|[-|: ]*|[-|: ]{2,}|>|[`~]{1,2}|\$\$?|!|\[|\\)[ \t]*"
)
_HALF_LINK: Final = re.compile(r"!?\[([^\[\]\n]{0,200})(?:\]\([^)\s]*|\])$")
_FENCES: Final = re.compile(r"^[ \t>]*(?:`{3,}|~{3,})", re.MULTILINE)
_FENCE_END: Final = re.compile(r"[ \t>]*(`{1,}|~{1,})[ \t]*")


class Step(NamedTuple):
    """What changed.

    Attributes:
        leaves: In place of the tail shown before.
        settled: How many of these are final.
        lines: Of the first leaf behind them, if it is code: complete lines, which are final too.
        rows: Likewise of a table: rows, without the heading.
        again: Whether the first leaf goes on with the block before it: the same card, table or paragraph.
        divided: Whether this is a piece of a paragraph that goes on; another step gives the rest.
        glue: What stands between that piece and the rest.
    """

    leaves: list[Leaf]
    settled: int = 0
    lines: int = 0
    rows: int = 0
    again: bool = False
    divided: bool = False
    glue: str = ""


class Tail:
    """Takes text and gives steps."""

    def __init__(self) -> None:
        self._prefix: list[str] = []
        self._numbers: tuple[int | None, ...] = ()
        self._text = self._held = ""
        self._env: dict[str, Any] = {}
        self._again = False
        self._kind = ""  # of the tail's block, "" before the first
        self._head = 0  # lines at the end of the prefix that the block itself began with: a fence's, a table's
        self._moved = 0  # by how many lines the last cut moved the tail's block up

    @property
    def length(self) -> int:
        """Characters that the next step will parse."""
        return len(self._text)

    def feed(self, text: str) -> None:
        """Adds text as it came from the model."""
        text = self._held + text
        self._held = "\r" if text.endswith("\r") else ""  # a line feed may follow in the next piece
        self._text += visible(text.removesuffix("\r"))

    def step(self, final: bool = False) -> Step:
        """Parses the tail.

        Args:
            final: Whether nothing more will come: all of it is settled then.
        """
        if not final and self._kind == "paragraph" and len(self._text) > LONG_PARAGRAPH:
            divided = self._divide()
            if divided is not None:
                return divided
        source, complete = self._source(final)
        leaves = self._parse(source)
        again, self._again = self._again, False
        if final:
            self._prefix, self._text, self._kind = [], "", ""
            return Step(leaves, len(leaves), again=again)
        settled = max((at for at, leaf in enumerate(leaves) if leaf.line < complete), default=0)
        if not leaves:
            self._again = again
            return Step([], again=again)
        while settled and leaves[settled - 1].line == leaves[settled].line:
            settled -= 1  # `- - text`: an item in an item
        tail, lines = leaves[settled], source.split("\n")
        if tail.kind == "fence" and tail.closed and tail.end <= complete:  # final without anything behind it
            self._cut(lines, tail.end, tail._replace(line=tail.end))
            self._kind, self._again = "", False
            return Step(leaves, settled + 1, again=again)
        if settled:
            self._cut(lines, tail.line, tail)
            complete, tail = complete - self._moved, tail._replace(line=tail.line - self._moved)
            lines = [*self._prefix, *self._text.split("\n")]
        else:
            self._again = again
        self._kind = tail.kind
        done_lines = done_rows = 0
        if tail.kind in ("fence", "code"):
            done_lines = self._cut_code(lines, tail, complete)
        elif tail.kind == "table" and len(tail.rows) > OPEN_ROWS:
            done_rows = self._cut_table(lines, tail, complete)
        leaves[settled] = _without_half_end(tail) if tail.kind == "fence" and not self._text.endswith("\n") else tail
        return Step(leaves, settled, done_lines, done_rows, again)

    def _parse(self, source: str) -> list[Leaf]:
        first = len(self._prefix) - self._head
        return [leaf for leaf in parse(source, self._env, self._numbers) if leaf.line >= first]

    def _source(self, final: bool) -> tuple[str, int]:
        """What to parse, and how many of its lines are complete."""
        text = self._text
        complete = len(self._prefix) + text.count("\n") + final
        if not final and self._kind not in ("fence", "code"):
            text = mended(text)
        return "\n".join([*self._prefix, text]), complete

    def _cut(self, lines: list[str], at: int, leaf: Leaf) -> None:
        """Lets the tail begin at a line of the source, the first one of a leaf."""
        items = [item for item in leaf.containers if item is not None]
        prefix = [_emptied(lines[line]) for line in sorted({item.line for item in items if item.line < at})]
        kept = sum(line < at for line in range(len(self._prefix)))
        skipped = at - kept  # lines of the text itself
        self._moved = at - len(prefix)
        text = self._text
        for _ in range(skipped):
            text = text[text.index("\n") + 1 :]
        self._text, self._prefix, self._head = text, prefix, 0
        self._numbers = tuple(item.number for item in items)

    def _cut_code(self, lines: list[str], leaf: Leaf, complete: int) -> int:
        """Takes the complete lines of code out of the tail; gives how many of the leaf's own there are."""
        fence = leaf.kind == "fence"
        start = leaf.line + fence
        if (leaf.closed and fence) or complete <= start:
            return 0
        end = complete
        while not fence and end > start and not lines[end - 1].strip():
            end -= 1  # blank lines may be the end of it
        if end <= start or (not fence and end - start < OPEN_ROWS):
            return 0
        head = lines[leaf.line] if fence else ""
        self._cut(lines, end, leaf._replace(line=end))
        if fence:
            inside = leaf.line in _item_lines(leaf)
            self._prefix = [*(self._prefix[:-1] if inside else self._prefix), head]
            self._head = 1
        self._again = True
        return end - start

    def _cut_table(self, lines: list[str], leaf: Leaf, complete: int) -> int:
        """Takes the complete rows out of the tail; gives how many there are."""
        complete = min(complete, leaf.end)  # a blank line behind it ends it, and must stay
        rows = complete - leaf.line - 2
        if rows < OPEN_ROWS:
            return 0
        head = lines[leaf.line : leaf.line + 2]
        inside = leaf.line in _item_lines(leaf)
        self._cut(lines, complete, leaf._replace(line=complete))
        self._prefix = [*(self._prefix[:-1] if inside else self._prefix), *head]
        self._head = 2
        self._again = True
        return min(rows, len(leaf.rows) - 1)

    def _divide(self) -> Step | None:
        """Divides a paragraph that goes on and on, at a place where no markup is open if there is one."""
        first, _, _ = self._text.partition("\n")
        markers = MARKERS.match(first)
        lead = markers[0] if markers else ""
        if len(lead) > LONGEST_LEAD:
            lead = ""
        place = _place(self._text)
        if place is None:
            return None
        source = "\n".join([*self._prefix, self._text[:place]])
        leaves = self._parse(source)
        if len(leaves) != 1 or leaves[0].kind != "paragraph":
            return None
        items = [item for item in leaves[0].containers if item is not None]
        begun = [item for item in items if item.line >= len(self._prefix)]
        if begun:
            self._prefix = [*self._prefix, _emptied(first)]
            self._numbers = tuple(item.number for item in items)
        glue = self._text[len(self._text[:place].rstrip(" \n")) : place]
        self._text = re.sub(r"[^>\s]", " ", lead) + self._text[place:].lstrip(" \n")
        again, self._again = self._again, True
        return Step(leaves, 1, again=again, divided=True, glue=LINE_BREAK if "\n" in glue else glue[:1])


def _item_lines(leaf: Leaf) -> list[int]:
    return [item.line for item in leaf.containers if isinstance(item, Item)]


def _emptied(line: str) -> str:
    """A container's first line with an empty heading in place of what it held: nothing can go on with that."""
    found = MARKERS.match(line)
    lead = found[0] if found else ""
    return f"{lead if lead[-1:] in ('', ' ', chr(9), '>') else lead + ' '}#"


def _without_half_end(leaf: Leaf) -> Leaf:
    """An open fence without a last line that may become its end."""
    head, newline, last = leaf.code.removesuffix("\n").rpartition("\n")
    return leaf._replace(code=head + newline) if not leaf.closed and _FENCE_END.fullmatch(last) else leaf


def _place(text: str) -> int | None:
    """Where to divide a long paragraph."""
    window = text[LONG_PARAGRAPH // 3 : LONG_PARAGRAPH]
    offset = LONG_PARAGRAPH // 3
    for pattern in (_ENDS, _GAPS):
        places = [offset + found.end() for found in pattern.finditer(window)]
        for place in reversed(places[-40:]):
            if _is_balanced(text[:place]):
                return place
    if len(text) < FORCED:
        return None
    return next((offset + found.end() for found in _GAPS.finditer(window)), LONG_PARAGRAPH)


def _is_balanced(text: str) -> bool:
    even = all(text.count(mark) % 2 == 0 for mark in ("`", "*", "$", "~~", "__"))
    return even and text.count("[") == text.count("]") and text.count("(") == text.count(")")


def mended(text: str) -> str:
    """Text that still grows, as it should look now: markup that has begun is closed, half a marker is left out."""
    if len(_FENCES.findall(text)) % 2:
        return text  # in code nothing is markup
    start = text.rfind("\n\n") + 1
    head, body = text[:start], text[start:]
    line = body.rpartition("\n")[2]
    if line and _HALF_LINE.fullmatch(line):
        return head + body[: len(body) - len(line)]
    body = _HALF_LINK.sub(r"\1", body)
    if body.count("`") % 2:
        return head + (body[:-1] if body.endswith("`") else body + "`")
    stripped = body.rstrip("*_~")
    if stripped != body and stripped[-1:] in ("", " ", "\n", "("):
        body = stripped
    elif body.endswith("*") and not body.endswith("**") and body.count("**") % 2:
        body += "*"  # half of the end of strong text
    if body.count("**") % 2:
        body = body.rstrip(" ") + "**"
    return head + body
