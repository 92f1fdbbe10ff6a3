"""`tandem doctor`, and the command's outermost corners."""

from __future__ import annotations

import json

import pytest

import tandem
from support.command import environment, tandem_run


def test_doctor_says_what_works() -> None:
    outcome = tandem_run("doctor")
    assert (outcome.code, outcome.err) == (0, "")
    for what in (tandem.__version__, "Python", "CPU", "Memory", "llama.cpp", "complete", "Self-test", "same text"):
        assert what in outcome.out
    assert "the texts with and without differ" not in outcome.out


def test_doctor_for_scripts() -> None:
    outcome = tandem_run("doctor", "--json")
    assert (outcome.code, outcome.err) == (0, "")
    report = json.loads(outcome.out)
    assert report["tandem"] == tandem.__version__
    assert report["cpu"]["threads"] >= report["engine"]["cpus_allowed"] >= 1
    assert report["memory"]["total"] > report["memory"]["free"] > 0
    assert report["engine"]["symbols"] == "complete"
    assert {"name", "kind", "free", "total"} <= set(report["engine"]["devices"][0])
    test = report["self_test"]
    assert (test["same_text"], test["drafter"], test["drafter_problem"]) == (True, "on", None)
    assert test["runs"]["3"]["tokens_per_pass"] > 3
    assert test["runs"]["off"]["tokens_per_pass"] == 1


@pytest.mark.parametrize("of", [[], ["models"]], ids=str)
def test_the_list_of_commands_has_no_line_that_is_cut(of: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("support.command.environment", lambda: {**environment(), "COLUMNS": "80"})
    shown = tandem_run(*of, "--help").out.partition("Commands:\n")[2]
    assert shown.count("\n") >= 3
    assert "..." not in shown


def test_the_command_names_its_version_and_its_help() -> None:
    assert tandem.__version__ in tandem_run("--version").out
    shown = tandem_run("chat", "--help").out
    for flag in ("--prompt", "--tokens", "--draft", "--thinking", "--json"):
        assert flag in shown
