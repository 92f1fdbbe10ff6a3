"""`tandem chat --prompt`, as scripts rely on it."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any, Final

import pytest

from support.command import Outcome, Running, started, tandem_run, watched
from support.handset import BOS, Pair, write_pair
from tandem import cli

STORY: Final = "Tell me a short story about a fox."
GREEDY: Final = ("--temperature", "0", "--threads", "1")
START: Final = 500
"""A normal token of a hand-set vocabulary."""
STATS: Final = {
    *("prompt_tokens", "cached_tokens", "prefill_s", "time_to_first_token_s", "generated", "passes", "verified"),
    *("accepted", "accepted_at", "drafted_at", "decode_s", "decode_tok_s", "draft_s", "verify_s"),
    *("tokens_per_pass", "acceptance_rate"),
}
ENGINE: Final = {
    "version",
    "llama_cpp",
    "method",
    "draft",
    "threads",
    "context",
    "kv_type",
    "device",
    "target",
    "drafter",
}


def answer(*flags: str | Path, stdin: str | bytes = "") -> dict[str, Any]:
    """The object of a run that went well, checked for what holds for every one."""
    outcome = tandem_run("chat", *flags, "--json", stdin=stdin)
    assert (outcome.code, outcome.err) == (0, "")
    check_object(outcome.json)
    return outcome.json


def check_object(result: dict[str, Any]) -> None:
    assert set(result) == {"text", "thought", "tokens", "drafted", "accepted", "stop", "stats", "engine"}
    stats = result["stats"]
    assert set(stats) >= STATS
    assert set(result["engine"]) >= ENGINE
    assert stats["generated"] == len(result["tokens"]) == len(result["drafted"]) == len(result["accepted"])
    assert stats["accepted"] + stats["passes"] - stats["generated"] in (0, 1)
    assert sum(result["accepted"]) == stats["accepted"] == sum(stats["accepted_at"])
    # a pass that rejects its first draft emits one token and has judged all of its drafts
    assert sum(result["drafted"]) <= stats["verified"] == sum(stats["drafted_at"])
    assert all(drafted for drafted, accepted in zip(result["drafted"], result["accepted"], strict=True) if accepted)


@pytest.fixture(scope="module")
def story() -> dict[str, Any]:
    """The command line of the README; thread count and all else is left to the program."""
    return answer("--pair", "demo", "--prompt", STORY, "--draft", "3", "--temperature", "0")


def test_a_drafted_answer_in_figures(story: dict[str, Any], demo_target: Path, demo_drafter: Path) -> None:
    assert story["text"].endswith("The end.")
    assert (story["thought"], story["stop"]) == ("", "end")
    stats = story["stats"]
    assert stats["tokens_per_pass"] > 3
    assert stats["tokens_per_pass"] == pytest.approx(stats["generated"] / stats["passes"])
    assert stats["acceptance_rate"] == pytest.approx(stats["accepted"] / stats["verified"])
    assert stats["decode_tok_s"] == pytest.approx((stats["generated"] - 1) / stats["decode_s"])
    assert len(stats["drafted_at"]) == 3
    engine = story["engine"]
    assert (engine["method"], engine["draft"], engine["device"]) == ("mtp", "3", "CPU")
    assert (engine["target"], engine["drafter"]) == (demo_target.name, demo_drafter.name)
    assert 1 <= engine["threads"] <= len(os.sched_getaffinity(0))


def test_the_kv_cache_may_be_kept_in_q8_0(story: dict[str, Any]) -> None:
    assert story["engine"]["kv_type"] == "f16"
    short = answer("--prompt", STORY, "--kv-type", "q8_0", "--max-tokens", "40", *GREEDY)
    assert (short["engine"]["kv_type"], short["engine"]["drafter_problem"]) == ("q8_0", None)
    assert short["stats"]["accepted"] > 0
    assert tandem_run("chat", "--prompt", STORY, "--kv-type", "q4").code == 2


def test_the_drafter_changes_no_letter(story: dict[str, Any]) -> None:
    plain = answer("--prompt", STORY, "--draft", "off", *GREEDY)
    assert (plain["text"], plain["tokens"], plain["stop"]) == (story["text"], story["tokens"], story["stop"])
    assert (plain["engine"]["draft"], plain["engine"]["threads"]) == ("off", 1)
    assert plain["stats"]["verified"] == 0
    assert plain["stats"]["generated"] == plain["stats"]["passes"]
    assert plain["stats"]["acceptance_rate"] is None


def test_text_mode_prints_the_answer_and_the_figures_apart(story: dict[str, Any]) -> None:
    outcome = tandem_run("chat", "--prompt", "-", *GREEDY, stdin=STORY)
    assert (outcome.code, outcome.out) == (0, story["text"] + "\n")
    assert outcome.err.count("\n") == 1
    for figure in ("tok/s", "tokens per pass", "of drafts accepted", "first token after", "drafter on, mtp, length 3"):
        assert figure in outcome.err


def test_raw_is_the_prompt_without_the_template(story: dict[str, Any]) -> None:
    spelled = f"<|turn>user\n{STORY}<turn|>\n<|turn>model\n"
    raw = answer("--raw", "--prompt", "-", "--max-tokens", "20", *GREEDY, stdin=spelled)
    assert raw["tokens"] == story["tokens"][:20]
    assert raw["stats"]["prompt_tokens"] == story["stats"]["prompt_tokens"]


@pytest.fixture(scope="module")
def handset(tmp_path_factory: pytest.TempPathFactory) -> Pair:
    """A pair of which every token is known beforehand."""
    return write_pair(tmp_path_factory.mktemp("handset"), wrong=0.3)


@pytest.mark.parametrize("raw", [[], ["--raw"]])
def test_tokens_are_taken_as_they_are(raw: list[str], handset: Pair, tmp_path: Path) -> None:
    (tmp_path / "ids.json").write_text(json.dumps([BOS, 300, START]), encoding="utf-8")
    pair = f"--target={handset.target}", f"--drafter={handset.drafter}"
    result = answer(*pair, "--tokens", tmp_path / "ids.json", *raw, "--max-tokens", "40", *GREEDY)
    assert result["tokens"] == handset.graph.follow(START, 40)
    assert (result["stop"], result["stats"]["prompt_tokens"]) == ("limit", 3)


def test_a_system_message_goes_before_the_prompt(story: dict[str, Any]) -> None:
    result = answer("--prompt", STORY, "--system", "Be brief.", "--max-tokens", "10", *GREEDY)
    assert result["stats"]["prompt_tokens"] > story["stats"]["prompt_tokens"] + 4


def test_past_the_end_of_the_turn_when_asked(story: dict[str, Any]) -> None:
    result = answer("--prompt", STORY, "--ignore-eos", "--max-tokens", "110", *GREEDY)
    assert result["stop"] == "limit"
    assert result["stats"]["generated"] == 110 > story["stats"]["generated"]
    end = story["tokens"][-1]
    assert end not in result["tokens"]
    assert result["tokens"][: len(story["tokens"]) - 1] == story["tokens"][:-1]


def test_a_full_context_ends_the_answer(story: dict[str, Any]) -> None:
    result = answer("--prompt", STORY, "--context", "64", *GREEDY)
    assert (result["stop"], result["engine"]["context"]) == ("context", 64)
    assert 64 <= result["stats"]["prompt_tokens"] + result["stats"]["generated"] <= 65
    assert story["text"].startswith(result["text"])


def test_a_seed_gives_its_text_again() -> None:
    flags = ("--prompt", STORY, "--temperature", "1.5", "--top-p", "1", "--top-k", "0", "--max-tokens", "40")
    one, two, other = (answer(*flags, "--threads", "1", "--seed", seed) for seed in ("7", "7", "8"))
    assert (one["tokens"], one["engine"]["seed"]) == (two["tokens"], 7)
    assert one["tokens"] != other["tokens"]


@pytest.mark.parametrize("narrow", [("--top-k", "1"), ("--top-p", "1e-6"), ("--min-p", "1")])
def test_the_narrowest_sampling_is_greedy(narrow: tuple[str, str], story: dict[str, Any]) -> None:
    result = answer("--prompt", STORY, "--temperature", "5", *narrow, "--max-tokens", "30", "--threads", "1")
    assert result["tokens"] == story["tokens"][:30]


@pytest.mark.parametrize("method", ["ngram", "draft-model"])
def test_other_drafters_change_no_letter(method: str, story: dict[str, Any], demo_target: Path) -> None:
    drafter = [f"--drafter={demo_target}"] if method == "draft-model" else []
    result = answer("--method", method, *drafter, "--prompt", STORY, "--device", "cpu", *GREEDY)
    assert result["tokens"] == story["tokens"]
    assert result["engine"]["method"] == method
    if method == "draft-model":  # it drafts for itself, so every draft is right
        assert result["stats"]["acceptance_rate"] == 1.0
        assert result["engine"]["drafter"] == demo_target.name
    else:
        assert result["engine"]["drafter"] is None


def test_thinking_through_the_models_own_template(thinker: list[str]) -> None:
    on, off = (answer(*thinker, "--prompt", "Hm?", "--thinking", switch, *GREEDY) for switch in ("on", "off"))
    assert (on["thought"], on["text"], on["stop"]) == ("Let me see.", "Yes, indeed.", "end")
    assert (off["thought"], off["text"], off["stop"]) == ("", "Yes, indeed.", "end")
    assert on["stats"]["thought"]["generated"] + on["stats"]["answer"]["generated"] == on["stats"]["generated"]
    shown = tandem_run("chat", *thinker, "--prompt", "Hm?", "--thinking", "on", *GREEDY)
    assert shown.out == "Let me see.\n\nYes, indeed.\n"


def test_a_model_without_a_thinking_switch_just_answers() -> None:
    result = answer("--prompt", "List seven animals.", "--thinking", "on", "--max-tokens", "20", *GREEDY)
    assert result["thought"] == ""
    assert result["text"]


# --- what is refused ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "flags",
    [
        ["--no-such-flag"],
        ["--pair", "other", "--prompt", "x"],
        ["--pair", "demo", "--target", "x.gguf", "--prompt", "x"],
        ["--drafter", "x.gguf", "--prompt", "x"],
        ["--method", "magic", "--prompt", "x"],
        ["--method", "draft-model", "--prompt", "x"],
        ["--thinking", "maybe", "--prompt", "x"],
        ["--max-tokens", "-1", "--prompt", "x"],
        ["--max-tokens", "many", "--prompt", "x"],
        ["--threads", "0", "--prompt", "x"],
        ["--temperature", "-0.1", "--prompt", "x"],
        ["--temperature", "nan", "--prompt", "x"],
        ["--temperature", "inf", "--prompt", "x"],
        ["--temperature", "warm", "--prompt", "x"],
        ["--top-p", "0", "--prompt", "x"],
        ["--top-p", "1.01", "--prompt", "x"],
        ["--top-k", "-1", "--prompt", "x"],
        ["--min-p", "nan", "--prompt", "x"],
        ["--seed", "-1", "--prompt", "x"],
        ["--seed", str(2**64), "--prompt", "x"],
        ["--draft", "-1", "--prompt", "x"],
        ["--draft", "17", "--prompt", "x"],
        ["--draft", "three", "--prompt", "x"],
        ["--prompt", ""],
        ["--prompt", " \n\t "],
        ["--raw"],
        ["--json"],
        ["--prompt", "x", "--tokens", "ids.json"],
    ],
    ids=" ".join,
)
def test_wrong_use_is_refused_before_anything_starts(
    flags: list[str], capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_engine(*_: object) -> None:
        pytest.fail("an engine was started")

    monkeypatch.setattr("tandem.engine.client.EngineClient.start", no_engine)
    code = cli.main(["chat", *flags])
    captured = capfd.readouterr()
    assert (code, captured.out) == (2, "")
    Outcome(code, captured.out, captured.err).complaint()


@pytest.mark.parametrize("content", ["", "{}", "[2, 1.5]", '["2"]', "[2,", "[[2]]", "\0"])
def test_a_token_file_that_holds_no_ids(content: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "ids.json").write_text(content, encoding="utf-8")
    assert cli.main(["chat", "--tokens", str(tmp_path / "ids.json"), "--json"]) == 2
    captured = capfd.readouterr()
    assert captured.out == ""
    assert "ids.json" in Outcome(2, "", captured.err).complaint()


def test_a_token_file_that_is_not_there(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["chat", "--tokens", str(tmp_path / "ids.json")]) == 2
    assert "ids.json" in Outcome(2, "", capfd.readouterr().err).complaint()


def refused(code: int, *flags: str | Path, stdin: str | bytes = "") -> str:
    """What a refused run says."""
    outcome = tandem_run("chat", *flags, "--json", stdin=stdin)
    assert (outcome.code, outcome.out) == (code, "")
    return outcome.complaint()


def test_the_process_itself_ends_with_two_on_wrong_use() -> None:
    assert "--draft-length" in refused(2, "--draft-length")


@pytest.mark.parametrize("context", ["31", "2049"])
def test_a_context_that_the_model_cannot_have(context: str) -> None:
    said = refused(2, "--prompt", "x", "--context", context)
    assert f"{int(context):,}" in said
    assert "2,048" in said


def test_an_unknown_device_is_answered_with_the_known_ones() -> None:
    said = refused(2, "--prompt", "x", "--device", "abacus")
    assert "abacus" in said
    assert "CPU" in said


def test_a_prompt_longer_than_the_context_is_refused_with_both_numbers() -> None:
    said = refused(2, "--prompt", "-", "--context", "64", "--threads", "1", stdin="fox " * 500)
    assert " 63" in said


def test_a_token_outside_the_vocabulary(tmp_path: Path) -> None:
    (tmp_path / "ids.json").write_text("[2, 999999]", encoding="utf-8")
    assert "4,095" in refused(2, "--tokens", tmp_path / "ids.json", "--threads", "1")


@pytest.mark.parametrize("problem", ["missing", "text", "reverse", "other drafter"])
def test_files_that_are_no_pair(
    problem: str, handset: Pair, tmp_path: Path, demo_target: Path, demo_drafter: Path
) -> None:
    target, drafter = demo_target, demo_drafter
    if problem == "missing":
        target = tmp_path / "nothing.gguf"
    elif problem == "text":
        target = tmp_path / "text.gguf"
        target.write_text("I am a text.\n" * 100, encoding="utf-8")
    elif problem == "reverse":
        target, drafter = drafter, target
    else:
        drafter = handset.drafter
    said = refused(3, "--target", target, "--drafter", drafter, "--prompt", "x", "--threads", "1")
    assert (drafter if problem == "other drafter" else target).name in said


# --- what comes from outside in the middle of an answer ----------------------------------------------------------


def test_ctrl_c_keeps_what_was_said(endless: list[str]) -> None:
    with started("chat", *endless, "--prompt", "Sing.") as run:
        run.wait_for("la li la li ")
        run.interrupt()
        outcome = run.end()
    assert outcome.code == 0
    assert outcome.err.endswith("· stopped\n")
    assert outcome.out.startswith("la li la li ")
    assert set(outcome.out.split()) <= {"la", "li"}


def in_the_middle(run: Running) -> None:
    """Waits until an answer is under way of which nothing shows: the spinner of the load has gone, and work goes on."""
    run.wait_for("Starting")
    run.wait_for_end_of_spinner()
    run.wait_for_work(0.5)


def test_ctrl_c_makes_a_whole_object(endless: list[str]) -> None:
    with watched("chat", *endless, "--prompt", "Sing.", "--json", "--ignore-eos") as run:
        in_the_middle(run)
        run.interrupt()
        outcome = run.end()
    assert outcome.code == 0
    check_object(outcome.json)
    assert outcome.json["stop"] == "stopped"
    assert outcome.json["text"].startswith("la li la ")


def test_a_killed_engine_leaves_what_was_said_and_four(endless: list[str]) -> None:
    with watched("chat", *endless, "--prompt", "Sing.", "--json") as run:
        in_the_middle(run)
        run.engine().kill()
        outcome = run.end()
    assert outcome.code == 4
    check_object(outcome.json)
    assert outcome.json["stop"] == "error"
    assert outcome.json["text"].startswith("la li la ")
    assert "tandem: The engine was ended from outside.\n" in run.seen


def test_a_reader_that_goes_away_is_no_error(endless: list[str]) -> None:
    with started("chat", *endless, "--prompt", "Sing.") as run:
        run.wait_for("la li ")
        run.close_screen()
        code = run.process.wait(60)
        assert run.process.stderr is not None
        assert (code, run.process.stderr.read()) == (0, b"")
