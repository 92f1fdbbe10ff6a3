"""Errors in the language of the window.

What fails below the window says so in English sentences, which go to the terminal and to logs as they are. Here each of
those sentences stands once more as a text to translate, with placeholders; one that comes in is recognised and put
together again in the window's language, with its values. A value that is itself a phrase of ours is translated too.
A sentence that is not known here is shown as it is. The texts are in `errors_files`, `errors_models`,
`errors_engine` and `errors_app`, and a test finds every sentence in the source that is missing there.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import cache
from typing import Final, NamedTuple

from PySide6.QtCore import QCoreApplication

from tandem.ui import errors_app, errors_engine, errors_files, errors_models

CONTEXT: Final = "Errors"
SENTENCES: Final = errors_app.SENTENCES + errors_engine.SENTENCES + errors_files.SENTENCES + errors_models.SENTENCES
PHRASES: Final = errors_engine.PHRASES + errors_files.PHRASES + errors_models.PHRASES
CHOICES: Final[Mapping[str, tuple[str, ...]]] = {
    "what": errors_files.PREDICATES,
    "instead": errors_engine.INSTEAD,
}
"""Placeholders that stand for one of these phrases (or a number) and for nothing else: without them, almost any
sentence would look like the one that they are in."""

_LONGEST: Final = 2000  # characters; none of ours comes near, and what a file brings in is cut long before
_PLACEHOLDER: Final = re.compile(r"\{(\w+)\}")


class _Pattern(NamedTuple):
    source: str
    expression: re.Pattern[str]


def localised(sentence: str, remedy: str = "") -> tuple[str, str]:
    """An error's sentence and remedy in the window's language; those not known here as they are."""
    return _translated(sentence, _sentences()), _translated(remedy, _sentences())


def _translated(text: str, patterns: tuple[_Pattern, ...]) -> str:
    if len(text) > _LONGEST:
        return text
    for source, expression in patterns:
        match = expression.fullmatch(text)
        if match is not None:
            values = {name: _value(name, value) for name, value in match.groupdict().items()}
            try:
                return QCoreApplication.translate(CONTEXT, source).format_map(values)
            except (LookupError, ValueError):  # a translation with other placeholders
                return text
    return text


def _value(name: str, value: str) -> str:
    """A value that is a phrase or a sentence of ours in the window's language; any other as it is."""
    if name == "facts":
        return "; ".join(_translated(fact, _phrases()) for fact in value.split("; "))
    return _translated(value, _phrases() + _sentences())


@cache
def _sentences() -> tuple[_Pattern, ...]:
    return _patterns(SENTENCES)


@cache
def _phrases() -> tuple[_Pattern, ...]:
    return _patterns([*PHRASES, *(phrase for phrases in CHOICES.values() for phrase in phrases)])


def _patterns(sources: Iterable[str]) -> tuple[_Pattern, ...]:
    """How each text is recognised; first the one with most letters of its own, the least likely to be mistaken."""
    ordered = sorted(sources, key=lambda source: -len(_PLACEHOLDER.sub("", source)))
    return tuple(_Pattern(source, re.compile(_expression(source, named=True), re.DOTALL)) for source in ordered)


def _expression(source: str, named: bool) -> str:
    parts = _PLACEHOLDER.split(source)  # text, name, text, name, …
    for at, name in enumerate(parts):
        if at % 2 == 0:
            parts[at] = re.escape(name)
            continue
        choices = [_expression(phrase, named=False) for phrase in CHOICES.get(name, ())]
        value = "|".join([*choices, r"[\d.,]+"]) if choices else ".+?"
        parts[at] = f"(?P<{name}>{value})" if named else f"(?:{value})"
    return "".join(parts)
