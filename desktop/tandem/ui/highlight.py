"""Colours for code, by Pygments.

A lexer is a set of regular expressions and runs to its end once it has begun, so it is only given what it can take:
not too much, and no endless lines. Its work comes in portions, so that the window can do something else in between.
"""

from __future__ import annotations

import functools
import importlib
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final, NamedTuple

if TYPE_CHECKING:
    from pygments.lexer import Lexer

MAX_CODE: Final = 200_000
"""Characters of code that are coloured; more stays plain."""
MAX_LINE: Final = 2_000
"""Characters of one line that a lexer is given."""

# The first that a token's type lies in counts.
_ROLES: Final = (
    ("Comment", "comment"),
    ("Literal.String", "string"),
    ("Literal.Number", "number"),
    ("Keyword.Constant", "constant"),
    ("Keyword.Type", "type"),
    ("Keyword", "keyword"),
    ("Operator.Word", "keyword"),
    ("Operator", "operator"),
    ("Name.Function", "function"),
    ("Name.Class", "type"),
    ("Name.Namespace", "type"),
    ("Name.Tag", "keyword"),
    ("Name.Attribute", "function"),
    ("Name.Decorator", "function"),
    ("Name.Builtin", "function"),
    ("Name.Exception", "type"),
    ("Name.Constant", "constant"),
    ("Name.Variable", "constant"),
    ("Generic.Heading", "keyword"),
    ("Generic.Subheading", "keyword"),
    ("Generic.Inserted", "string"),
    ("Generic.Deleted", "error"),
    ("Generic.Error", "error"),
)


class Colour(NamedTuple):
    """A stretch of one line, in UTF-16 units as Qt counts, and its role in `Theme.syntax`."""

    start: int
    length: int
    role: str


def can_colour(code: str, language: str) -> bool:
    """Whether there is a lexer for the language, and the code is such that it can be given to it."""
    return (
        len(code) <= MAX_CODE
        and language.lower() in _names()
        and max((len(line) for line in code.split("\n")), default=0) <= MAX_LINE
    )


def prepare(language: str) -> Iterator[None]:
    """Loads what `can_colour` and `colours` need for a language, in portions; so that it is there when code ends."""
    lexers = importlib.import_module("pygments.lexers")
    yield
    if language.lower() in _names():
        yield
        lexers.find_lexer_class_by_name(language.lower())  # loads its module
        yield
        _lexer(language.lower())  # compiles its expressions
        yield


def colours(code: str, language: str) -> Iterator[list[Colour]]:
    """The colours of each line of code, line by line; only for what `can_colour`."""
    line: list[Colour] = []
    place = 0
    for kind, text in _lexer(language.lower()).get_tokens(code):
        role = _role(kind)
        for number, part in enumerate(text.split("\n")):
            if number:
                yield line
                line, place = [], 0
            length = len(part) if part.isascii() else len(part.encode("utf-16-le", "replace")) // 2
            if role and length:
                line.append(Colour(place, length, role))
            place += length
    if line:
        yield line


@functools.cache
def _names() -> frozenset[str]:
    # Pygments is imported when the first code appears: the window opens without it.
    from pygments.lexers import get_all_lexers

    return frozenset(alias for _, aliases, _, _ in get_all_lexers(plugins=False) for alias in aliases)


@functools.cache
def _lexer(name: str) -> Lexer:
    from pygments.lexers import get_lexer_by_name

    return get_lexer_by_name(name, stripnl=False, ensurenl=False)


@functools.cache
def _role(kind: Any) -> str:
    name = str(kind).removeprefix("Token.")
    return next((role for start, role in _ROLES if name == start or name.startswith(f"{start}.")), "")
