"""`tandem chat` without a prompt, in a terminal and in a pipe."""

from __future__ import annotations

import re
from typing import Final

from support.command import Running, in_terminal, started, tandem_run
from tandem.terminal import harmless

PROMPT: Final = "You > "
FIGURES: Final = r"([\d,]+) of ([\d,]+) prompt tokens reused.*\n"
DEMO: Final = ("--temperature", "0", "--threads", "1")


def say(run: Running, text: str) -> str:
    """Types a message when asked for one; returns what came up to the line of figures, that line included."""
    run.wait_for(PROMPT)
    run.type(text + "\n")
    return run.wait_for(FIGURES)


def reused(shown: str) -> tuple[int, int]:
    """Prompt tokens that were reused, and all."""
    found = re.findall(FIGURES, shown)
    assert len(found) == 1, shown
    return int(found[0][0].replace(",", "")), int(found[0][1].replace(",", ""))


def test_a_conversation_in_a_terminal() -> None:
    with in_terminal("chat", *DEMO) as run:
        first = say(run, "List seven animals.")
        assert "Elephant" in first or "Dog" in first
        assert re.search(
            r"tok/s · \d\.\d\d tokens per pass · \d+% of drafts accepted · .*drafter on, mtp, length 3", first
        )
        _, before = reused(first)
        cached, prompt = reused(say(run, "Tell me a short story about a fox."))
        assert before < cached < prompt  # the first question and its answer are still there

        run.wait_for(PROMPT)
        run.type("/help\n")
        assert "Ctrl-D leaves" in run.wait_for("/quit")
        run.wait_for(PROMPT)
        run.type("/draft off\n")
        third = say(run, "Hello")
        assert "drafter off" in third
        assert reused(third)[0] > prompt
        run.wait_for(PROMPT)
        run.type("/draft many\n")
        assert "many" in run.wait_for("Choose off")
        run.wait_for(PROMPT)
        run.type("/drafts 3\n")
        assert "no command /drafts 3" in run.wait_for("Ctrl-D leaves")
        run.wait_for(PROMPT)
        run.type("/draft 2\n")
        run.wait_for(PROMPT)
        run.type("/new\n")
        run.wait_for("A new conversation")
        again = say(run, "List seven animals.")
        assert reused(again)[1] == before
        assert "length 2" in again

        run.wait_for(PROMPT)
        run.wait_until_it_reads()
        run.type("half a line\x03")  # Ctrl-C while writing gives the line up and not the program
        run.wait_for("Ctrl-D leaves")
        run.wait_for(PROMPT)
        run.type("\x04")
        assert run.end().code == 0


def test_ctrl_c_stops_the_answer_and_not_the_conversation(endless: list[str]) -> None:
    with in_terminal("chat", *endless) as run:
        for _ in range(2):
            run.wait_for(PROMPT)
            run.type("Sing.\n")
            run.wait_for("la li la li la ")
            run.type("\x03")
            assert "stopped" in run.wait_for(FIGURES)
        run.wait_for(PROMPT)
        run.type("/quit\n")
        assert run.end().code == 0


def test_a_conversation_ends_with_its_engine(endless: list[str]) -> None:
    with in_terminal("chat", *endless) as run:
        run.wait_for(PROMPT)
        run.type("Sing.\n")
        run.wait_for("la li la li la ")
        run.engine().kill()
        run.wait_for(r"The engine was ended from outside\.")
        assert run.end().code == 4


def test_a_conversation_through_a_pipe() -> None:
    lines = [
        "List seven animals.",
        "",
        "/draft off",
        "Tell me a short story about a fox.",
        "/nonsense",
        "/new",
        "Hello",
    ]
    outcome = tandem_run("chat", *DEMO, "--system", "Be kind.", stdin="\n".join(lines))
    assert (outcome.code, outcome.err) == (0, "")
    figures = re.findall(FIGURES, outcome.out)
    assert len(figures) == 3
    (_, before), (cached, _), (_, anew) = ((int(a.replace(",", "")), int(b.replace(",", ""))) for a, b in figures)
    assert cached > before
    assert anew < before
    assert outcome.out.count("drafter on, mtp, length 3") == 1
    assert outcome.out.count("drafter off") == 2
    assert "\x1b" not in outcome.out


def test_thoughts_are_shown_and_not_sent_back(thinker: list[str]) -> None:
    outcome = tandem_run(
        "chat", *thinker, "--temperature", "0", stdin="/thinking on\nHm?\n/thinking off\nHm?\n/quit\nno\n"
    )
    assert outcome.code == 0
    assert outcome.out.count("Let me see.\n\nYes, indeed.\n") == 1
    assert outcome.out.count("Yes, indeed.") == 2
    (_, first), (_, second) = re.findall(FIGURES, outcome.out)
    # "Hm?" again, an answer of a few pieces and two turns' markers; a thought sent back would be some 20 more
    assert int(second) < 2 * int(first) + len("Yes, indeed.") + 4


def test_ctrl_c_in_a_pipe_stops_the_answer(endless: list[str]) -> None:
    with started("chat", *endless, stdin=-1) as run:
        assert run.process.stdin is not None
        run.process.stdin.write(b"Sing.\n")
        run.process.stdin.flush()
        run.wait_for("la li la li la ")
        run.interrupt()
        assert "stopped" in run.wait_for(FIGURES)
        run.process.stdin.close()
        assert run.end().code == 0


def test_control_characters_of_a_model_do_not_reach_a_terminal() -> None:
    assert harmless("a\x1b[2Jb\x07\x9b31m\tc\n\x00d") == "a[2Jb31m\tc\nd"
