"""The texts of the window: every one collected, translated, compiled. `packaging/translations.py` does the first and
the last. What lupdate collects is compared with what stands in the source, read another way: it takes several
spellings wrongly and says nothing."""

from __future__ import annotations

import ast
import importlib.util
import re
import shutil
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from pathlib import Path
from string import Formatter
from types import ModuleType
from typing import NamedTuple

import pytest

from tandem import paths

ROOT = Path(__file__).resolve().parents[2]
FOLDER = paths.resources() / "translations"
LANGUAGES = ("en", "ko")
UI = ROOT / "desktop" / "tandem" / "ui"
SOURCES = sorted(UI.rglob("*.py"))
BEFORE = "python packaging/translations.py brings it up to date"


class Text(NamedTuple):
    context: str
    source: str
    comment: str
    plural: bool


class Entry(NamedTuple):
    text: Text
    kind: str
    forms: tuple[str, ...]


def load_tool() -> ModuleType:
    spec = importlib.util.spec_from_file_location("translations", ROOT / "packaging" / "translations.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


tool = load_tool()


def entries(file: Path) -> list[Entry]:
    found = []
    for context in ET.parse(file).iter("context"):
        for message in context.iter("message"):
            translation = message.find("translation")
            assert translation is not None
            plural = message.get("numerus") == "yes"
            forms = (
                [form.text or "" for form in translation.findall("numerusform")] if plural else [translation.text or ""]
            )
            text = Text(
                context.findtext("name", ""), message.findtext("source", ""), message.findtext("comment", ""), plural
            )
            found.append(Entry(text, translation.get("type", ""), tuple(forms)))
    return found


# -- the texts as they stand in the source


class Collector(ast.NodeVisitor):
    """Collects texts from a module, and what is wrong with how they are written."""

    def __init__(self, file: str = "") -> None:
        self.file = file
        self.texts: set[Text] = set()
        self.faults: list[str] = []
        self.plural_classes: dict[str, str] = {}
        self.bases: set[str] = set()
        self._classes: list[str] = []

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        self.bases |= {getattr(base, "attr", getattr(base, "id", "")) for base in node.bases}
        self._classes.append(node.name)
        self.generic_visit(node)
        self._classes.pop()

    def visit_Call(self, node: ast.Call) -> None:
        self.generic_visit(node)
        name = getattr(node.func, "attr", getattr(node.func, "id", ""))
        if name == "tr":
            self._tr(node)
        elif name == "QT_TRANSLATE_NOOP" or (name == "translate" and self._is_qt(node.func)):
            self._translate(node)

    def _fault(self, node: ast.AST, text: str) -> None:
        self.faults.append(f"{self.file}:{getattr(node, 'lineno', 0)}: {text}")

    @staticmethod
    def _is_qt(func: ast.expr) -> bool:
        if isinstance(func, ast.Name):
            return True
        owner = getattr(func, "value", None)
        return getattr(owner, "attr", getattr(owner, "id", "")) in (
            "QCoreApplication",
            "QGuiApplication",
            "QApplication",
        )

    @staticmethod
    def _words(node: ast.Call, place: int) -> str | None:
        argument = node.args[place] if len(node.args) > place else None
        value = argument.value if isinstance(argument, ast.Constant) else None
        return value if isinstance(value, str) else None

    def _tr(self, node: ast.Call) -> None:
        func = node.func
        if not (isinstance(func, ast.Attribute) and isinstance(func.value, ast.Name) and func.value.id == "self"):
            self._fault(node, "tr of something else than self: lupdate files it under a wrong context")
            return
        source = self._words(node, 0)
        if source is None:
            self._fault(node, "tr without a literal text")
            return
        if node.keywords or len(node.args) > 3:
            self._fault(node, "tr takes at most three arguments, by position: lupdate overlooks the others")
            return
        plural = len(node.args) == 3
        if plural != ("%n" in source):
            self._fault(node, "%n and a number go together")
        if not self._classes:
            self._fault(node, "tr outside of a class")
            return
        if plural:
            self.plural_classes[self._classes[-1]] = f"{self.file}:{node.lineno}"
        self.texts.add(Text(self._classes[-1], source, self._words(node, 1) or "", plural))

    def _translate(self, node: ast.Call) -> None:
        context, source = self._words(node, 0), self._words(node, 1)
        if source is None:
            return  # from a table, whose texts stand in QT_TRANSLATE_NOOP
        if context is None:
            self._fault(node, "translate without a literal context")
            return
        plural = len(node.args) == 4
        if node.keywords or plural != ("%n" in source):
            self._fault(node, "%n and a number go together, as the fourth argument")
        self.texts.add(Text(context, source, self._words(node, 2) or "", plural))


def collect(text: str, file: str = "") -> Collector:
    collector = Collector(file)
    collector.visit(ast.parse(text))
    return collector


@pytest.fixture(scope="module")
def source() -> Collector:
    whole = Collector()
    for file in SOURCES:
        part = collect(file.read_text(encoding="utf-8"), file.name)
        whole.texts |= part.texts
        whole.faults += part.faults
        whole.plural_classes |= part.plural_classes
        whole.bases |= part.bases
    return whole


@pytest.fixture(scope="module")
def fresh(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """What lupdate makes of the sources today, beginning from the committed files."""
    folder = tmp_path_factory.mktemp("translations")
    for language in LANGUAGES:
        shutil.copy(FOLDER / f"tandem_{language}.ts", folder)
    return {language: tool.collect(folder, language) for language in LANGUAGES}


def test_texts_are_written_so_that_they_are_found(source: Collector) -> None:
    assert source.texts
    assert source.faults == []


def test_plurals_are_in_classes_that_none_derives_from(source: Collector) -> None:
    # In a derived object the first class asked writes the number into the text, and the base is never asked.
    assert {name: place for name, place in source.plural_classes.items() if name in source.bases} == {}


def test_lupdate_collects_what_stands_in_the_source(source: Collector, fresh: dict[str, Path]) -> None:
    collected = {entry.text for entry in entries(fresh["ko"])}
    assert collected - source.texts == set()
    assert source.texts - collected == set()


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("class A:\n def f(self, o): o.tr('a')", "something else than self"),
        ("class A:\n def f(self): super().tr('a')", "something else than self"),
        ("def f(): tr('Context', 'a')", "something else than self"),
        ("def f(self): self.tr('a')", "outside of a class"),
        ("class A:\n def f(self): self.tr(f'a {b}')", "literal text"),
        ("class A:\n def f(self): self.tr(a)", "literal text"),
        ("class A:\n def f(self, n): self.tr('%n a', n=n)", "three arguments"),
        ("class A:\n def f(self, n): self.tr('%n a')", "go together"),
        ("class A:\n def f(self, n): self.tr('a', '', n)", "go together"),
        ("def f(n): QCoreApplication.translate('C', '%n a')", "go together"),
        ("def f(n): QCoreApplication.translate('C', '%n a', n=n)", "go together"),
        ("def f(c): QCoreApplication.translate(c, 'a')", "literal context"),
    ],
)
def test_what_lupdate_would_take_wrongly_is_noticed(text: str, fault: str) -> None:
    faults = collect(text).faults
    assert len(faults) == 1
    assert fault in faults[0]


def test_what_is_written_well_is_collected() -> None:
    found = collect(
        "class A(B):\n"
        " def f(self, n):\n"
        "  self.tr('one ' 'text'); self.tr('Open', 'verb'); self.tr('%n a(s)', '', n)\n"
        "  text.translate(table)\n"
        "class C:\n"
        " def g(self, n): QCoreApplication.translate('Other', 'b'); translate('Other', '%n c(s)', '', n)\n"
    )
    assert found.faults == []
    assert found.bases == {"B"}
    assert found.texts == {
        Text("A", "one text", "", False),
        Text("A", "Open", "verb", False),
        Text("A", "%n a(s)", "", True),
        Text("Other", "b", "", False),
        Text("Other", "%n c(s)", "", True),
    }


# -- texts that are shown without going through a translation

SHOWN = {
    "setText": 0,
    "setToolTip": 0,
    "setPlaceholderText": 0,
    "setAccessibleName": 0,
    "setAccessibleDescription": 0,
    "setWindowTitle": 0,
    "setTitle": 0,
    "setInformativeText": 0,
    "setStatusTip": 0,
    "set_name": 0,
    "set_texts": 0,
    "show_notice": 0,
    "set_state": 1,
    "PrimaryButton": 1,
    "QuietButton": 1,
    "IconButton": 2,
    "NavButton": 2,
    "ToggleChip": 2,
    "StateChip": 2,
    "EmptyState": 2,
    "SectionTitle": 1,
    "SearchField": 1,
    "FormRow": 1,
    "Meter": 1,
    "Switch": 1,
    "ComboBox": 0,
    "SpinBox": 0,
    "DoubleSpinBox": 0,
    "label": 0,
    "set_label": 1,
    "QLabel": 0,
    "QPushButton": 0,
    "QCheckBox": 0,
    "QAction": 0,
}
# Names and values that are the same in every language.
SAME_EVERYWHERE = {"Tandem", "Gemma 4", "English", "한국어", "f16", "q8_0", "E2B", "E4B"}


def bare(text: str, file: str = "") -> Iterator[str]:
    for node in ast.walk(ast.parse(text)):
        if not isinstance(node, ast.Call):
            continue
        name = getattr(node.func, "attr", getattr(node.func, "id", ""))
        place = SHOWN.get(name)
        if place is None or len(node.args) <= place:
            continue
        if name == "set_state" and re.fullmatch("'[a-z_]+'", ast.unparse(node.args[place])):
            continue  # a kind or a colour's role, of another widget's method of that name
        shown = node.args[place]
        words = (
            [part for part in ast.walk(shown) if isinstance(part, ast.Constant)]
            if isinstance(shown, ast.JoinedStr)
            else [shown]
        )
        for part in words:
            value = part.value if isinstance(part, ast.Constant) else None
            if isinstance(value, str) and re.search(r"[^\W\d_]{2}", value) and value not in SAME_EVERYWHERE:
                yield f"{file}:{node.lineno}: {name}({value!r})"


def test_no_text_is_shown_past_the_translator() -> None:
    assert [fault for file in SOURCES for fault in bare(file.read_text(encoding="utf-8"), file.name)] == []


@pytest.mark.parametrize("text", ["a.setText('Hello')", "kit.IconButton(m, 'copy', 'Copy')", "a.setText(f'{n} files')"])
def test_a_bare_text_is_noticed(text: str) -> None:
    assert list(bare(text))


@pytest.mark.parametrize(
    "text", ["a.setText('Tandem')", "a.setText(self.tr('Hello'))", "a.setText('–')", "a.setText(f'{a} · {b}')"]
)
def test_what_needs_no_translation_is_let_through(text: str) -> None:
    assert list(bare(text)) == []


# -- the committed files


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_texts_are_up_to_date(language: str, fresh: dict[str, Path]) -> None:
    committed = {entry.text for entry in entries(FOLDER / f"tandem_{language}.ts")}
    now = {entry.text for entry in entries(fresh[language])}
    assert now - committed == set(), f"new texts; {BEFORE}"
    assert committed - now == set(), f"texts that are gone; {BEFORE}"


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_text_is_translated(language: str) -> None:
    found = entries(FOLDER / f"tandem_{language}.ts")
    assert found
    assert [entry.text for entry in found if entry.kind or not all(form.strip() for form in entry.forms)] == []
    assert len({entry.text for entry in found}) == len(found)


def placeholders(text: str) -> list[str]:
    """What must stand in a translation too: {fields} with their formats, line breaks, tags, a closing ellipsis."""
    fields = [f"{{{name}!{how}:{spec}}}" for _, name, spec, how in Formatter().parse(text) if name is not None]
    return sorted([*fields, *re.findall(r"<[^<>]+>|\n", text), *(["…"] if text.rstrip().endswith("…") else [])])


@pytest.mark.parametrize("language", LANGUAGES)
def test_translations_have_the_same_placeholders(language: str) -> None:
    wrong = []
    for entry in entries(FOLDER / f"tandem_{language}.ts"):
        for place, form in enumerate(entry.forms):
            # English may write "one" for the number; another language's only form needs it.
            number = "%n" in form or not entry.text.plural or (language == "en" and place == 0)
            if entry.kind == "" and (placeholders(form) != placeholders(entry.text.source) or not number):
                wrong.append((entry.text.source, form))
    assert wrong == []


def test_english_is_only_about_numbers() -> None:
    assert [entry.text for entry in entries(FOLDER / "tandem_en.ts") if not entry.text.plural] == []


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_compiled_file_is_that_of_the_texts(language: str, tmp_path: Path) -> None:
    compiled = tool.compile_to(tmp_path, FOLDER / f"tandem_{language}.ts")
    assert compiled.read_bytes() == (FOLDER / f"tandem_{language}.qm").read_bytes(), BEFORE


# -- the tool itself


def ts(folder: Path, body: str) -> Path:
    file = folder / "tandem_en.ts"
    head = '<?xml version="1.0" encoding="utf-8"?>\n<!DOCTYPE TS>\n<TS version="2.1" language="en">'
    file.write_text(f"{head}<context><name>C</name>{body}</context></TS>", encoding="utf-8")
    return file


def message(source: str, forms: tuple[str, ...] = ("", ""), kind: str = ' type="unfinished"') -> str:
    inner = "".join(f"<numerusform>{form}</numerusform>" for form in forms)
    return f'<message numerus="yes"><source>{source}</source><translation{kind}>{inner}</translation></message>'


def test_english_plurals_are_filled_in(tmp_path: Path) -> None:
    file = ts(
        tmp_path,
        message("%n chat(s) were exported.")
        + message("%n reply lost|replies lost")
        + message("%n file(s)", ("one file", "%n files"), ""),
    )
    assert tool.fill_plurals(file) == 1
    assert [(entry.kind, entry.forms) for entry in entries(file)] == [
        ("", ("%n chat was exported.", "%n chats were exported.")),
        ("unfinished", ("", "")),
        ("", ("one file", "%n files")),
    ]


def test_plurals_through_translate_are_collected_as_such(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    module = tmp_path / "module.py"
    module.write_text(
        "from PySide6.QtCore import QCoreApplication\n"
        "def f(n):\n"
        "    return QCoreApplication.translate('C', '%n “quoted” \\'file(s)\\'', '', n)\n",
        encoding="utf-8",
    )
    monkeypatch.setattr(tool, "SOURCES", tmp_path)
    source = "%n “quoted” 'file(s)'"
    for _ in range(2):  # the second time, with what is already translated
        found = entries(tool.collect(tmp_path, "en"))
        forms = ("%n “quoted” 'file'", "%n “quoted” 'files'")
        assert found == [Entry(Text("C", source, "", True), "", forms)]


def test_the_tool_says_what_failed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "tandem_en.ts").write_text("no xml", encoding="utf-8")
    assert tool.main(["--folder", str(tmp_path)]) == 1
    assert "translations:" in capsys.readouterr().err


def test_the_tool_makes_everything_from_nothing(tmp_path: Path, source: Collector) -> None:
    assert tool.main(["--folder", str(tmp_path)]) == 0
    assert {file.name for file in tmp_path.iterdir()} == {
        f"tandem_{name}.{end}" for name in LANGUAGES for end in ("ts", "qm")
    }
    assert {entry.text for entry in entries(tmp_path / "tandem_en.ts")} == {
        text for text in source.texts if text.plural
    }
