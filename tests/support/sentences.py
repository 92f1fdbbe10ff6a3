"""Every sentence that an error of the app can carry, found in its source.

Looked for are the texts given to `TandemError` and its kin, to `DrafterProblem` and to `Failed`. A text is followed to
where it stands as a literal: through variables, constants of other modules, conditions, arguments of functions and
what functions return. Values that cannot be known, such as a file's name, are holes.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path


@dataclass(frozen=True)
class Hole:
    """A place in a text for a value; `texts` are those of its possible values that stand in the source."""

    texts: frozenset[Found]


@dataclass(frozen=True)
class Found:
    """A text, its parts in order, and where it was found (`module.py:line`)."""

    parts: tuple[str | Hole, ...]
    place: str = field(compare=False)

    @property
    def shape(self) -> str:
        """The text with `{}` for each hole."""
        return "".join(part if isinstance(part, str) else "{}" for part in self.parts)


@dataclass(frozen=True)
class _Scope:
    """Where an expression stands: its module and the functions around it, the innermost last."""

    module: str
    functions: tuple[ast.FunctionDef, ...]


class Source:
    """The source of a package.

    Args:
        folder: The package.
        skip: Modules that are left out, by file name.
    """

    def __init__(self, folder: Path, skip: frozenset[str] = frozenset()) -> None:
        self._trees: dict[str, ast.Module] = {}
        self._calls: list[tuple[ast.Call, _Scope]] = []
        self._functions: dict[str, list[tuple[ast.FunctionDef, _Scope]]] = {}
        self._errors: dict[str, tuple[str, list[str] | None]] = {}  # class: its base, names of what it takes
        self._known: dict[int, list[Found]] = {}
        for path in sorted(folder.rglob("*.py")):
            if path.name not in skip:
                name = str(path.relative_to(folder))
                self._trees[name] = ast.parse(path.read_text(encoding="utf-8"))
                self._enter(self._trees[name], _Scope(name, ()))

    def sentences(self) -> Iterator[tuple[str, list[Found]]]:
        """For each text given to an error, where that is and what it can be; nothing known is an empty list."""
        for call, scope in self._calls:
            for argument in self._texts_of(call, scope):
                yield f"{scope.module}:{call.lineno}", self._follow(argument, scope)

    def texts_given_to(self, name: str, position: int) -> Iterator[Found]:
        """The texts given to calls of `name` at a position."""
        for call, scope in self._calls:
            if _name(call.func) == name and len(call.args) > position:
                yield from self._follow(call.args[position], scope)

    def _enter(self, node: ast.AST, scope: _Scope) -> None:
        for child in ast.iter_child_nodes(node):
            inner = scope
            if isinstance(child, ast.ClassDef):
                bases = [_name(base) for base in child.bases]
                self._errors[child.name] = (bases[0] if bases else "", _parameters(child))
            if isinstance(child, ast.FunctionDef):
                self._functions.setdefault(child.name, []).append((child, scope))
                inner = _Scope(scope.module, (*scope.functions, child))
            if isinstance(child, ast.Call):
                self._calls.append((child, scope))
            self._enter(child, inner)

    def _texts_of(self, call: ast.Call, scope: _Scope) -> list[ast.expr]:
        """The arguments of a call that are sentences of an error."""
        name = _name(call.func)
        if name == "__init__" and isinstance(call.func, ast.Attribute) and _name(call.func.value) == "super":
            name = self._class_of(scope)
            name = self._errors[name][0] if name in self._errors else ""
        takes = self._takes(name)
        if takes is None:
            return []
        given = {keyword.arg: keyword.value for keyword in call.keywords}
        given |= dict(zip(takes, call.args, strict=False))
        wanted = ("sentence", "remedy") if "sentence" in takes else ("reason", "remedy")
        return [given[one] for one in wanted if one in given and not self._passed_on(given[one], scope)]

    def _passed_on(self, node: ast.expr, scope: _Scope) -> bool:
        """Whether it is the text of another error, or one that an error's class was given."""
        if isinstance(node, ast.Attribute):
            return node.attr in ("sentence", "remedy", "reason")
        return (
            isinstance(node, ast.Name) and node.id in ("sentence", "remedy") and scope.functions[-1].name == "__init__"
        )

    def _class_of(self, scope: _Scope) -> str:
        for node in ast.walk(self._trees[scope.module]):
            if isinstance(node, ast.ClassDef) and scope.functions and scope.functions[-1] in node.body:
                return node.name
        return ""

    def _takes(self, name: str) -> list[str] | None:
        """Names of what the class takes, if sentences are among them."""
        line = [name]  # the class and those above it
        while line[-1] in self._errors:
            line.append(self._errors[line[-1]][0])
        if not {"TandemError", "DrafterProblem", "Failed"}.intersection(line):
            return None
        takes = next((found for one in line[:-1] if (found := self._errors[one][1]) is not None), [])
        return takes if "remedy" in takes else None

    def _follow(self, node: ast.expr, scope: _Scope) -> list[Found]:
        """What a text can be; empty where nothing is known."""
        known = self._known.get(id(node))
        if known is None:
            self._known[id(node)] = []  # a text that is made of itself is not followed for ever
            known = self._known[id(node)] = list(dict.fromkeys(self._read(node, scope)))
        return known

    def _read(self, node: ast.expr, scope: _Scope) -> list[Found]:
        place = f"{scope.module}:{node.lineno}"
        match node:
            case ast.Constant(value=str(text)):
                return [Found((text,), place)]
            case ast.JoinedStr(values=values):
                parts: list[str | Hole] = []
                for value in values:
                    if isinstance(value, ast.FormattedValue):
                        parts.append(Hole(frozenset(self._follow(value.value, scope))))
                    elif isinstance(value, ast.Constant):
                        parts.append(str(value.value))
                return [Found(tuple(parts), place)]
            case ast.IfExp(body=body, orelse=other):
                return self._all([body, other], scope)
            case ast.BoolOp(values=values):
                return self._all(values, scope)
            case ast.BinOp(left=left, op=ast.Add(), right=right):
                return [
                    Found((*one.parts, *other.parts), place)
                    for one in self._follow(left, scope)
                    for other in self._follow(right, scope)
                ]
            case ast.Call(func=ast.Attribute(attr="join"), args=[ast.GeneratorExp(elt=element)]):
                return self._follow(element, scope)
            case ast.Call(func=ast.Name(id=name)):
                return [
                    found
                    for function, outer in self._defined(name, scope.module)
                    for found in self._returned(function, outer)
                ]
            case ast.Name(id=name):
                return self._named(name, scope)
        return []

    def _all(self, nodes: Sequence[ast.expr], scope: _Scope) -> list[Found]:
        return [found for node in nodes for found in self._follow(node, scope)]

    def _returned(self, function: ast.FunctionDef, outer: _Scope) -> list[Found]:
        inner = _Scope(outer.module, (*outer.functions, function))
        returns = [node.value for node in ast.walk(function) if isinstance(node, ast.Return) and node.value]
        return self._all(returns, inner)

    def _named(self, name: str, scope: _Scope) -> list[Found]:
        for level in range(len(scope.functions), 0, -1):
            function = scope.functions[level - 1]
            here = _Scope(scope.module, scope.functions[:level])
            values = list(_assigned(function, name))
            if values:
                return self._all(values, here)
            names = _names(function)
            if name in names:
                return self._given(function, scope.module, name)
        values = [value for node in self._trees[scope.module].body for value in _assigned(node, name)]
        if values:
            return self._all(values, _Scope(scope.module, ()))
        for node in ast.walk(self._trees[scope.module]):
            if isinstance(node, ast.ImportFrom) and name in [alias.name for alias in node.names]:
                module = "/".join((node.module or "").split(".")[1:]) + ".py"
                if module in self._trees and module != scope.module:
                    return self._named(name, _Scope(module, ()))
        return []

    def _defined(self, name: str, module: str) -> list[tuple[ast.FunctionDef, _Scope]]:
        """Functions of that name; of a private one those of the module only."""
        return [one for one in self._functions.get(name, []) if not name.startswith("_") or one[1].module == module]

    def _given(self, function: ast.FunctionDef, module: str, name: str) -> list[Found]:
        """What callers give a function as its parameter `name`, and its default. Callers are known by its name only."""
        defined = self._defined(function.name, module)
        if len(defined) != 1:
            return []
        names = _names(function)
        found = []
        defaults = dict(zip(reversed(names), reversed(function.args.defaults), strict=False))
        if name in defaults:
            found += self._follow(defaults[name], defined[0][1])
        for call, scope in self._calls:
            if _name(call.func) != function.name or (function.name.startswith("_") and scope.module != module):
                continue
            given = [keyword.value for keyword in call.keywords if keyword.arg == name]
            given += call.args[names.index(name) : names.index(name) + 1]
            found += self._all(given, scope)
        return found


def _name(node: ast.expr) -> str:
    """The last part of a name; of a call, of what is called."""
    if isinstance(node, ast.Call):
        return _name(node.func)
    return node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else ""


def _names(function: ast.FunctionDef) -> list[str]:
    names = [argument.arg for argument in (*function.args.args, *function.args.kwonlyargs)]
    return names[1:] if names[:1] == ["self"] else names


def _parameters(node: ast.ClassDef) -> list[str] | None:
    """Names of what a class takes; None where it says nothing of its own."""
    for child in node.body:
        if isinstance(child, ast.FunctionDef) and child.name == "__init__":
            return _names(child)
    targets = [child.target for child in node.body if isinstance(child, ast.AnnAssign)]
    return [target.id for target in targets if isinstance(target, ast.Name)] or None


def _assigned(node: ast.AST, name: str) -> Iterator[ast.expr]:
    """What is assigned to a name within a node."""
    for child in ast.walk(node):
        if isinstance(child, ast.AnnAssign | ast.NamedExpr) and child.value is not None:
            yield from _matching(child.target, child.value, name)
        elif isinstance(child, ast.Assign):
            for target in child.targets:
                yield from _matching(target, child.value, name)


def _matching(target: ast.expr, value: ast.expr, name: str) -> Iterator[ast.expr]:
    if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple):
        for one, other in zip(target.elts, value.elts, strict=False):
            yield from _matching(one, other, name)
    elif isinstance(target, ast.Name) and target.id == name:
        yield value
