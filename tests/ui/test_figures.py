"""The figures in words."""

from __future__ import annotations

import re
from pathlib import Path

import msgspec
import pytest

from support.transcripts import figures
from tandem.engine.metrics import RunStats
from tandem.ui.figures import definitions, duration, figures_line, figures_tip

README = Path(__file__).parents[2] / "README.md"


def test_the_definitions_are_those_of_the_readme() -> None:
    table = README.read_text("utf-8").split("## What the figures mean\n")[1].split("\n## ")[0]
    rows = re.findall(r"^\| (?!figure|-)(.*?) \| (.*?) \|$", table, re.MULTILINE)
    assert [(found.name, found.meaning) for found in definitions()] == rows


def test_the_line_has_what_there_is() -> None:
    found = figures()
    assert figures_line(found) == "37.5 tok/s · 2.95 tokens per pass · 67 % accepted · first token 412 ms"
    without = msgspec.structs.replace(found, stats=RunStats(decode_tok_s=12.34, time_to_first_token_s=2.0))
    assert figures_line(without) == "12.3 tok/s · first token 2.0 s"
    assert figures_line(msgspec.structs.replace(found, stats=RunStats())) == ""


def test_thought_and_answer_apart() -> None:
    tip = figures_tip(figures(thought=True))
    cells = re.findall(r"<tr><td>acceptance rate</td><td[^>]*><b>(.*?)</b></td><td><b>(.*?)</b></td></tr>", tip)
    assert ("33 %", "67 %") in cells  # the thought's, the answer's
    assert not re.search(r"<td>tokens</td>", figures_tip(figures()))


def test_names_of_files_are_text() -> None:
    assert "<b>x" not in figures_tip(msgspec.structs.replace(figures(), target="<b>x.gguf"))


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (None, "–"),
        (0.0, "0 ms"),
        (0.0854, "85 ms"),
        (0.9996, "1.0 s"),
        (3.21, "3.2 s"),
        (59.96, "1 min 0 s"),
        (125, "2 min 5 s"),
    ],
)
def test_durations(seconds: float | None, text: str) -> None:
    assert duration(seconds) == text
