"""`tandem doctor`, and the command's outermost corners."""

from __future__ import annotations

import json

import tandem
from support.command import tandem_run


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


def test_the_command_names_its_version_and_its_help() -> None:
    assert tandem.__version__ in tandem_run("--version").out
    shown = tandem_run("chat", "--help").out
    for flag in ("--prompt", "--tokens", "--draft", "--thinking", "--json"):
        assert flag in shown
