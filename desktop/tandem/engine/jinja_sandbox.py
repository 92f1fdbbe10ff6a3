"""Foreign Jinja source, run with bounds.

A GGUF file brings its own chat template: a small program by whoever made the file. It runs in Jinja's immutable
sandbox (no Python internals, no changes to what it is given), with the settings and helpers that Hugging Face's
`apply_chat_template` gives a template, and with bounds that Jinja lacks: each loop round and macro call looks at the
CPU time used, values, output and the numbers that filters take have a largest size. An operation that is huge by itself
in another way is not seen until it is done; against that stands only that the engine is a process that can be ended.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable
from datetime import datetime
from typing import Any, Final, NoReturn

from jinja2 import Template, nodes, pass_context
from jinja2.runtime import Context
from jinja2.sandbox import ImmutableSandboxedEnvironment
from jinja2.utils import Namespace
from jinja2.visitor import NodeTransformer

MAX_SOURCE: Final = 1 << 20
"""Characters in a template's source; the longest in common use has about 20,000."""
MAX_WIDTH: Final = 1_000_000
"""Largest number that a format or a filter takes."""
MAX_SIZE: Final = 64 << 20
"""Characters of output, and of any value that a template builds with `+`, `*` or `~`; list items count as 8."""
_CHARACTERS_PER_ITEM: Final = 8
MAX_POWER_BITS: Final = 1 << 16
"""Bits of a whole number that a template may build."""
MAX_CPU_S: Final = 10.0
"""Seconds of CPU time for one rendering; a chat of a hundred turns takes some 50 ms."""
CPU_S_PER_PAIR: Final = 5e-6
"""Seconds more for each pair of messages: Gemma 4's template looks back over all messages for each message, which takes
under 1 µs a pair on a common CPU (2,000 messages: 3 s)."""


class TemplateRefusal(Exception):
    """The template called `raise_exception`: it does not take this conversation."""


class TooMuchWork(Exception):
    """The template went past one of the bounds of this module."""


def _raise_exception(message: object) -> NoReturn:
    raise TemplateRefusal(str(message))


def _strftime_now(layout: str) -> str:
    return datetime.now().strftime(layout)


def _tojson(
    value: object,
    ensure_ascii: bool = False,
    indent: int | None = None,
    separators: tuple[str, str] | None = None,
    sort_keys: bool = False,
) -> str:
    """JSON as Hugging Face's templates expect it: Jinja's own filter escapes characters for HTML."""
    return json.dumps(value, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)


def _size(value: object) -> int:
    """Characters, or what items take in the place of characters."""
    if isinstance(value, list | tuple):
        return len(value) * _CHARACTERS_PER_ITEM
    return len(value) if isinstance(value, str) else 0


class _Bounded(ImmutableSandboxedEnvironment):
    intercepted_binops = frozenset({"+", "*", "**", "%"})  # an intercepted one is not evaluated while compiling

    def __init__(self) -> None:
        # Not optimised: the optimiser would evaluate constant expressions while compiling, outside the bounds.
        super().__init__(
            trim_blocks=True, lstrip_blocks=True, extensions=["jinja2.ext.loopcontrols"], optimized=False, cache_size=0
        )
        self.filters["tojson"] = _tojson
        for name in ("batch", "center", "format", "indent", "round", "slice"):
            self.filters[name] = _with_bounds(name, self.filters[name])
        self.globals["raise_exception"] = _raise_exception
        self.globals["strftime_now"] = _strftime_now
        del self.globals["lipsum"]
        self.deadline = 0.0

    @property
    def tick(self) -> None:
        """Read by the compiled template in each loop round and macro call.

        A property, since a call would go through the sandbox's checks, and there can be many rounds.
        """
        if time.thread_time() > self.deadline:
            raise TooMuchWork("too many seconds of work")

    def is_safe_attribute(self, obj: Any, attr: str, value: Any) -> bool:
        """As the base says, sooner for a namespace: all that it has is what the template put in it."""
        if isinstance(obj, Namespace):
            return not attr.startswith("_")
        return super().is_safe_attribute(obj, attr, value)

    def join_bounded(self, *parts: object) -> str:
        """Jinja's `~`."""
        strings = [str(part) for part in parts]
        _check_size(sum(map(len, strings)))
        return "".join(strings)

    def call_binop(self, context: Context, operator: str, left: Any, right: Any) -> Any:
        if operator == "+":
            _check_size(_size(left) + _size(right))
        elif operator == "%" and isinstance(left, str):
            _check_numbers(left)
        elif isinstance(left, int) and isinstance(right, int):
            bits = left.bit_length() * max(right, 1) if operator == "**" else left.bit_length() + right.bit_length()
            if bits > MAX_POWER_BITS:
                raise TooMuchWork("a number that is too large")
        elif operator == "*":
            _check_size(max(_size(left) * (right if isinstance(right, int) else 0), 0))
            _check_size(max(_size(right) * (left if isinstance(left, int) else 0), 0))
        return super().call_binop(context, operator, left, right)


def _check_size(size: int) -> None:
    if size > MAX_SIZE:
        raise TooMuchWork("a value that is too large")


def _check_numbers(text: str) -> None:
    """Refuses a format string that asks for a very wide field."""
    if any(int(number[:12]) > MAX_WIDTH for number in re.findall(r"[0-9]+", text)):
        raise TooMuchWork("a field that is too wide")


def _with_bounds(name: str, filter_: Callable[..., Any]) -> Callable[..., Any]:
    """A filter whose numbers are bounded. Taking the context also keeps Jinja from evaluating it while compiling."""

    @pass_context
    def bounded(context: Context, value: Any, *args: Any, **kwargs: Any) -> Any:
        for number in (*args, *kwargs.values()):
            if isinstance(number, int) and abs(number) > MAX_WIDTH:
                raise TooMuchWork("a number that is too large")
        if name == "format":
            _check_numbers(str(value))
        before = (context.eval_ctx,) if name == "slice" else ()  # what Jinja hands to this one
        return filter_(*before, value, *args, **kwargs)

    return bounded


class _AddBounds(NodeTransformer):
    """Puts a look at `tick` where a template can repeat itself, and `join_bounded` in the place of `~`."""

    def _ticking(self, node: nodes.For | nodes.Macro | nodes.CallBlock) -> nodes.Node:
        self.generic_visit(node)
        node.body.insert(0, nodes.ExprStmt(nodes.EnvironmentAttribute("tick"), lineno=node.lineno))
        return node

    visit_For = visit_Macro = visit_CallBlock = _ticking  # noqa: N815 - Jinja's visitor finds them by these names

    def visit_Concat(self, node: nodes.Concat) -> nodes.Node:  # noqa: N802 - as above
        self.generic_visit(node)
        return nodes.Call(nodes.EnvironmentAttribute("join_bounded"), node.nodes, [], None, None, lineno=node.lineno)


class BoundedTemplate:
    """A compiled template that can be rendered, one rendering at a time.

    Args:
        source: Jinja source.

    Raises:
        TooMuchWork: The source is longer than `MAX_SOURCE`.
        Exception: Whatever Jinja or Python raises for source that does not compile.
    """

    def __init__(self, source: str) -> None:
        if len(source) > MAX_SOURCE:
            raise TooMuchWork(f"more than {MAX_SOURCE:,} characters of source")
        self._environment = _Bounded()
        tree = self._environment.parse(source)
        _AddBounds().visit(tree)
        tree.set_environment(self._environment)
        code = self._environment.compile(tree, name="chat_template")
        self._template = Template.from_code(self._environment, code, self._environment.make_globals(None))

    def render(self, variables: dict[str, object], messages: int) -> str:
        """The template's output.

        Args:
            variables: What the template sees, beside the helpers.
            messages: How many messages are among them, for the time that it may take.

        Raises:
            TemplateRefusal: The template called `raise_exception`.
            TooMuchWork: It went past a bound.
            Exception: Whatever Jinja or Python raises for a template that fails while it runs.
        """
        self._environment.deadline = time.thread_time() + MAX_CPU_S + messages**2 * CPU_S_PER_PAIR
        pieces: list[str] = []
        size = 0
        for piece in self._template.generate(variables):
            size += len(piece)
            if size > MAX_SIZE:
                raise TooMuchWork(f"more than {MAX_SIZE:,} characters of output")
            pieces.append(piece)
        return "".join(pieces)
