"""Rules for the window's code that can be read from its source. Each rule is also shown to notice what it forbids."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeAlias

import pytest

import tandem

PACKAGE = Path(tandem.__file__).parent
UI = PACKAGE / "ui"
FILES = sorted(UI.rglob("*.py"))
NAMES = [str(path.relative_to(UI)) for path in FILES]

WORKERS = {"workers.py", "engine_worker.py", "store_worker.py"}
"""Modules whose code runs in threads of its own; only there may one wait for the engine, the network or the disk."""

READERS = WORKERS | {"theme.py", "i18n.py", "icons.py"}
"""These read the app's own small resources, once, before the window shows or when its looks change."""

SLOW_MODULES = ("tandem.engine.client", "tandem.engine.host", "sqlite3", "urllib", "http", "socket", "ssl", "shutil")
FILE_METHODS = {"read_text", "read_bytes", "write_text", "write_bytes", "iterdir", "rglob", "unlink", "mkdir", "touch"}
OWNED = {
    "QTimer": 0,
    "QThread": 0,
    "QProcess": 0,
    "QSequentialAnimationGroup": 0,
    "QParallelAnimationGroup": 0,
    "QVariantAnimation": 0,
    "QPropertyAnimation": 2,
    "QTimeLine": 1,
    "QShortcut": 1,
}
"""Classes whose objects need a parent, and the number of arguments that come before it."""

Rule: TypeAlias = Callable[[ast.Module, str], Iterator[tuple[ast.AST, str]]]


def called(node: ast.AST) -> str:
    """The last name of what is called, "" for anything else."""
    if not isinstance(node, ast.Call):
        return ""
    return getattr(node.func, "attr", getattr(node.func, "id", ""))


def no_nested_event_loop(tree: ast.Module, _name: str) -> Iterator[tuple[ast.AST, str]]:
    for node in ast.walk(tree):
        if called(node) in ("processEvents", "QEventLoop"):
            yield node, f"{called(node)}: events would be handled in the middle of handling an event"


def literal_texts(tree: ast.Module, name: str) -> Iterator[tuple[ast.AST, str]]:
    # Texts may stand in a table that is marked; that of errors is in modules of its own.
    marked = name == "errors_text.py" or any(called(node) == "QT_TRANSLATE_NOOP" for node in ast.walk(tree))
    for node in ast.walk(tree):
        kind = called(node)
        if not isinstance(node, ast.Call) or kind not in ("tr", "translate", "QT_TRANSLATE_NOOP", "QT_TR_NOOP"):
            continue
        if kind == "translate" and isinstance(node.func, ast.Attribute) and not _of_application(node.func):
            continue  # text.translate(table)
        texts = node.args[1:2] if kind in ("translate", "QT_TRANSLATE_NOOP") else node.args[:1]
        given = {keyword.arg for keyword in node.keywords}
        if not texts and not given & {"sourceText", "key"}:
            yield node, f"{kind} without a text"
        for text in texts:
            if isinstance(text, ast.JoinedStr):
                yield node, f"{kind} with an f-string, which is extracted and never found again"
            elif not isinstance(text, ast.Constant) and not (marked and kind == "translate"):
                yield node, f"{kind} of something that is not written out, which no tool extracts"


def _of_application(function: ast.Attribute) -> bool:
    owner = getattr(function.value, "attr", getattr(function.value, "id", ""))
    return owner in ("QCoreApplication", "QGuiApplication", "QApplication")


def no_slow_imports(tree: ast.Module, name: str) -> Iterator[tuple[ast.AST, str]]:
    if name in WORKERS:
        return
    for node in ast.walk(tree):
        modules: list[str] = []
        if isinstance(node, ast.Import):
            modules = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            modules = [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
        for slow in SLOW_MODULES:
            if slow == "socket" and name == "app.py":  # a pair of its own, by which signals wake the event loop
                continue
            if any(module == slow or module.startswith(f"{slow}.") for module in modules):
                yield node, f"{slow} is for the workers: the thread that paints must not wait for it"


def everything_has_a_parent(tree: ast.Module, _name: str) -> Iterator[tuple[ast.AST, str]]:
    for node in ast.walk(tree):
        kind = called(node)
        if isinstance(node, ast.Call) and kind in OWNED:
            parent = [keyword.value for keyword in node.keywords if keyword.arg == "parent"]
            before = OWNED[kind]
            parent += [argument for argument in node.args[before:] if _can_be_parent(argument)]
            if kind == "QShortcut":  # its parent may come first or second
                parent += [argument for argument in node.args if _can_be_parent(argument)]
            if not any(not isinstance(value, ast.Constant) for value in parent):
                yield node, f"{kind} without a parent: nothing ends it with its owner"


def _can_be_parent(argument: ast.expr) -> bool:
    return not isinstance(argument, ast.Constant | ast.JoinedStr | ast.BinOp)


def single_shots_end_with_their_owner(tree: ast.Module, _name: str) -> Iterator[tuple[ast.AST, str]]:
    for node in ast.walk(tree):
        if called(node) != "singleShot" or not isinstance(node, ast.Call) or len(node.args) != 2:
            continue  # with three, the middle one is the owner
        at_once = isinstance(node.args[0], ast.Constant) and node.args[0].value == 0
        method = isinstance(node.args[1], ast.Attribute)  # Qt drops the call when the method's object is gone
        if not at_once or not method:
            yield node, "singleShot(delay, function): name an owner (three arguments), or use a QTimer with a parent"


def no_print(tree: ast.Module, name: str) -> Iterator[tuple[ast.AST, str]]:
    if name == "app.py":  # when no window can be opened, a terminal is all there is
        return
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "print":
            yield node, "print: a window has nobody who reads it"


def no_file_access(tree: ast.Module, name: str) -> Iterator[tuple[ast.AST, str]]:
    if name in READERS:
        return
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call):
            continue
        if isinstance(node.func, ast.Name) and node.func.id in ("open", "QFile", "QSaveFile", "QDirIterator"):
            yield node, f"{node.func.id}: files are for the workers"
        elif isinstance(node.func, ast.Attribute):
            mode = node.args[0] if node.args else None
            opens = node.func.attr == "open" and isinstance(mode, ast.Constant) and isinstance(mode.value, str)
            if node.func.attr in FILE_METHODS or opens:
                yield node, f"{node.func.attr}: files are for the workers"


def no_other_settings(tree: ast.Module, _name: str) -> Iterator[tuple[ast.AST, str]]:
    for node in ast.walk(tree):
        if called(node) == "QSettings":
            yield node, "QSettings: settings stand in one file of our own"


def no_sleep(tree: ast.Module, name: str) -> Iterator[tuple[ast.AST, str]]:
    if name in WORKERS:
        return
    for node in ast.walk(tree):
        if called(node) in ("sleep", "msleep", "usleep"):
            yield node, f"{called(node)}: the window would stand still"


def painters_end(tree: ast.Module, _name: str) -> Iterator[tuple[ast.AST, str]]:
    ended = {id(item.context_expr) for node in ast.walk(tree) if isinstance(node, ast.With) for item in node.items}
    for node in ast.walk(tree):
        if called(node) == "QPainter" and id(node) not in ended:
            yield node, "QPainter outside `with`: an error keeps it alive longer than what it paints on, and Qt crashes"


RULES: list[tuple[Rule, str]] = [
    (no_nested_event_loop, "QApplication.processEvents()"),
    (no_nested_event_loop, "QEventLoop(self)"),
    (literal_texts, "self.tr(f'{count} files')"),
    (literal_texts, "self.tr(text)"),
    (literal_texts, "self.tr('a {n}'.format(n=1))"),
    (literal_texts, "QCoreApplication.translate('Context', f'{a}')"),
    (literal_texts, "QCoreApplication.translate('Context', text)"),
    (no_slow_imports, "import sqlite3"),
    (no_slow_imports, "import urllib.request"),
    (no_slow_imports, "from tandem.engine.client import EngineClient"),
    (no_slow_imports, "from tandem.engine import client"),
    (no_slow_imports, "def f():\n    import socket"),
    (everything_has_a_parent, "QTimer()"),
    (everything_has_a_parent, "QtCore.QTimer(None)"),
    (everything_has_a_parent, "QTimer(singleShot=True)"),
    (everything_has_a_parent, "QTimer(parent=None)"),
    (everything_has_a_parent, "QPropertyAnimation(self, b'pos')"),
    (everything_has_a_parent, "QThread()"),
    (single_shots_end_with_their_owner, "QTimer.singleShot(100, self.go)"),
    (single_shots_end_with_their_owner, "QTimer.singleShot(0, lambda: self.go())"),
    (no_print, "print('here')"),
    (no_file_access, "path.read_text('utf-8')"),
    (no_file_access, "open(path)"),
    (no_file_access, "path.open('rb')"),
    (no_file_access, "QFile(name)"),
    (no_other_settings, "QSettings('a', 'b')"),
    (no_sleep, "time.sleep(1)"),
    (painters_end, "painter = QPainter(self)"),
    (painters_end, "draw(QPainter(self))"),
]

FINE = [
    "self.tr('{count} files').format(count=count)",
    "self.tr('%n file(s)', '', count)",
    "QCoreApplication.translate('Context', 'a' 'b')",
    "text[1:].translate(table)",
    "QT_TRANSLATE_NOOP('A', 'b')\nQCoreApplication.translate('A', text)",
    "QTimer(self)",
    "QTimer(parent=self, singleShot=True)",
    "QTimer(self.parent())",
    "QPropertyAnimation(self, b'pos', self)",
    "QShortcut(QKeySequence('Esc'), self)",
    "QTimer.singleShot(0, self.go)",
    "QTimer.singleShot(100, self, self.go)",
    "dialog.open()",
    "with QPainter(self) as painter:\n    painter.drawLine(0, 0, 1, 1)",
    "from tandem.engine.protocol import Loaded",
    "console.print_to(pdf)",
]


@pytest.mark.parametrize(("rule", "source"), RULES, ids=[f"{rule.__name__}: {source}" for rule, source in RULES])
def test_a_rule_notices(rule: Rule, source: str) -> None:
    assert list(rule(ast.parse(source), "made_up.py"))


@pytest.mark.parametrize("source", FINE)
def test_a_rule_lets_through(source: str) -> None:
    assert [fault for rule in dict(RULES) for fault in rule(ast.parse(source), "made_up.py")] == []


@pytest.mark.parametrize("rule", dict(RULES), ids=lambda rule: rule.__name__)
def test_the_window_keeps_the_rules(rule: Rule) -> None:
    assert FILES
    faults = []
    for path, name in zip(FILES, NAMES, strict=True):
        for node, text in rule(ast.parse(path.read_text("utf-8")), name):
            faults.append(f"ui/{name}:{getattr(node, 'lineno', 0)}: {text}")
    assert not faults, "\n".join(faults)


def test_exceptions_to_the_rules_are_needed() -> None:
    # A module that is gone must not leave its exception behind.
    assert set(NAMES) >= READERS


def test_no_module_is_too_long() -> None:
    sizes = {path: len(path.read_text("utf-8").splitlines()) for path in PACKAGE.rglob("*.py")}
    assert {str(path.relative_to(PACKAGE)): size for path, size in sizes.items() if size > 400} == {}
