"""The figures in words."""

from __future__ import annotations

import re
from pathlib import Path

import msgspec
import pytest
from PySide6.QtCore import QCoreApplication

from support.transcripts import figures
from tandem.engine.metrics import RunStats
from tandem.ui.figures import SHORT, definitions, figures_line, figures_tip

README = Path(__file__).parents[2] / "README.md"


def test_the_definitions_are_those_of_the_readme() -> None:
    table = README.read_text("utf-8").split("## What the figures mean\n")[1].split("\n## ")[0]
    rows = re.findall(r"^\| (?!figure|-)(.*?) \| (.*?) \|$", table, re.MULTILINE)
    assert [(found.name, found.meaning) for found in definitions()] == rows


def test_the_line_has_what_there_is() -> None:
    found = figures()
    assert (
        figures_line(found) == "37.5 tok/s · 2.95 tokens per pass · 67% accepted · first token 412 ms · draft length 3"
    )
    without = msgspec.structs.replace(found, stats=RunStats(decode_tok_s=12.34, time_to_first_token_s=2.0))
    assert figures_line(without) == "12.3 tok/s · first token 2.0 s · draft length 3"
    assert figures_line(msgspec.structs.replace(found, stats=RunStats())) == ""


def test_thought_and_answer_apart() -> None:
    tip = figures_tip(figures(thought=True))
    cells = re.findall(r"<tr><td>acceptance rate</td><td[^>]*><b>(.*?)</b></td><td><b>(.*?)</b></td></tr>", tip)
    assert ("33%", "67%") in cells  # the thought's, the answer's
    assert not re.search(r"<td>tokens</td>", figures_tip(figures()))


def test_names_of_files_are_text() -> None:
    assert "<b>x" not in figures_tip(msgspec.structs.replace(figures(), target="<b>x.gguf"))


@pytest.mark.parametrize("fields", [{"draft": "off"}, {"method": "none"}])
def test_without_drafting_it_says_so(fields: dict[str, str]) -> None:
    found = msgspec.structs.replace(figures(), **fields)
    assert figures_line(found).endswith(" · drafter off")
    assert "drafter off" in figures_tip(found)
    assert "draft length" not in figures_line(found) + figures_tip(found)


def test_the_tip_has_what_the_rates_rest_on() -> None:
    translate, found = QCoreApplication.translate, figures()
    cells = re.findall(r"<tr><td>(.*?)</td><td[^>]*><b>(.*?)</b></td><td><i>(.*?)</i></td></tr>", figures_tip(found))
    rows = {name: (value, meaning) for name, value, meaning in cells}
    assert rows["generated"] == (translate("Figures", "%n token(s)", "", 121), "decoded in 3.2 s")
    reused = "300 of them reused from the KV cache"
    assert rows["prompt"] == (translate("Figures", "%n token(s)", "", 420), reused)
    assert rows["pass"][0] == translate("Figures", "%n pass(es)", "", 41)


def test_rates_of_short_answers_are_not_to_be_trusted() -> None:
    def short(tokens: int) -> bool:
        return "vary much" in figures_tip(msgspec.structs.replace(figures(), stats=RunStats(generated=tokens)))

    assert short(SHORT - 1)
    assert not short(SHORT)
