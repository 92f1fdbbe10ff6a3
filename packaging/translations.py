"""Collects the window's texts into `resources/translations/*.ts` and compiles them to the `.qm` that the app loads.

    python packaging/translations.py [--folder FOLDER]

Run it with the checkout's Python (`.venv/bin/python`), after texts in `desktop/tandem/ui` changed and after
translating. What is already translated stays; texts that are no longer there are dropped. English needs plural forms
only: those of regular nouns, written "message(s)" in the source, are filled in here.

Exit status: 0 done; 1 a tool failed.
"""

from __future__ import annotations

import argparse
import ast
import re
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ET
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import PySide6

ROOT: Final = Path(__file__).resolve().parent.parent
SOURCES: Final = ROOT / "desktop" / "tandem" / "ui"
FOLDER: Final = ROOT / "resources" / "translations"
LANGUAGES: Final = ("en", "ko")
PLURAL_MARK: Final = "(s)"
# What else changes in an English sentence about one.
SINGULAR: Final = (("were", "was"), ("are", "is"), ("have", "has"))


def tool(name: str, *arguments: str | Path) -> None:
    """Runs one of Qt's tools that come with PySide6.

    Raises:
        RuntimeError: It failed; with what it said.
    """
    program = Path(PySide6.__file__).parent / (f"{name}.exe" if sys.platform == "win32" else name)
    done = subprocess.run([program, *arguments], capture_output=True, text=True, encoding="utf-8", check=False)
    if done.returncode:
        raise RuntimeError(f"{name}: {(done.stderr or done.stdout).strip()}")


def sources() -> list[Path]:
    """Every file with texts for people."""
    return sorted(SOURCES.rglob("*.py"))


def collect(folder: Path, language: str) -> Path:
    """Brings `tandem_<language>.ts` in a folder up to date with the sources; returns it."""
    file = folder / f"tandem_{language}.ts"
    only: list[str | Path] = ["-pluralonly"] if language == "en" else []
    # Without line numbers: a text that only moves changes no file.
    options: list[str | Path] = [
        "-silent",
        "-no-obsolete",
        "-locations",
        "none",
        "-source-language",
        "en",
        "-target-language",
        language,
    ]
    with tempfile.TemporaryDirectory() as helpers:
        helper = Path(helpers) / "plurals.py"
        helper.write_text(plurals(sources()), encoding="utf-8")
        # The helper first: of two messages that are the same, lupdate keeps what it saw first.
        arguments: list[str | Path] = [*options, *only, helper, *sources(), "-ts", file]
        tool("lupdate", *arguments)
        if language == "en" and fill_plurals(file):
            tool("lupdate", *arguments)  # writes the file its own way again
    return file


def plurals(files: Sequence[Path]) -> str:
    """Python source that says the plurals of `translate("Context", "%n …", "", n)` as lupdate understands them.

    It takes a plural only from `self.tr("%n …", "", n)`, and the fourth argument of `translate` for nothing.
    """
    lines = []
    for file in files:
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if not isinstance(node, ast.Call) or len(node.args) != 4:
                continue
            name = getattr(node.func, "attr", getattr(node.func, "id", ""))
            words = [part.value if isinstance(part, ast.Constant) else None for part in node.args[:3]]
            context, text, comment = words[0], words[1], words[2] or ""
            if name == "translate" and isinstance(context, str) and isinstance(text, str):
                lines += [f"class {context}:", "    def say(self, n):", f"        self.tr({text!r}, {comment!r}, n)"]
    return "\n".join(lines)


def fill_plurals(file: Path) -> int:
    """Writes the English forms of "… message(s)" where they are missing; returns how many."""
    tree = ET.parse(file)
    filled = 0
    for message in tree.iter("message"):
        source, translation = message.findtext("source", ""), message.find("translation")
        if translation is None or translation.get("type") != "unfinished" or PLURAL_MARK not in source:
            continue
        one = source.replace(PLURAL_MARK, "")
        for many, single in SINGULAR:
            one = re.sub(rf"\b{many}\b", single, one)
        forms = (one, source.replace(PLURAL_MARK, "s"))
        for element, form in zip(translation.findall("numerusform"), forms, strict=True):
            element.text = form
        del translation.attrib["type"]
        filled += 1
    if filled:
        tree.write(file, encoding="utf-8", xml_declaration=True)
    return filled


def compile_to(folder: Path, file: Path) -> Path:
    """Compiles a `.ts` file into a folder; returns the `.qm`. Unfinished texts are left out."""
    compiled = folder / f"{file.stem}.qm"
    tool("lrelease", "-silent", "-nounfinished", file, "-qm", compiled)
    return compiled


def main(arguments: Sequence[str] | None = None) -> int:
    """Does it for every language; returns the exit status."""
    parser = argparse.ArgumentParser(description="Collects and compiles the window's texts.")
    parser.add_argument("--folder", type=Path, default=FOLDER, help="where the .ts and .qm files are")
    folder = parser.parse_args(arguments).folder
    try:
        for language in LANGUAGES:
            compile_to(folder, collect(folder, language))
    except (OSError, RuntimeError, ET.ParseError) as error:
        print(f"translations: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
