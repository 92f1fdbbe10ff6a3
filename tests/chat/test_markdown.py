"""A chat as a document for people."""

from __future__ import annotations

import msgspec
import pytest
from markdown_it import MarkdownIt

from tandem.chat.conversation import Conversation, Figures, Node
from tandem.chat.markdown import Labels, as_markdown
from tandem.engine.metrics import RunStats

CHAT = Conversation(1, "A title", 1_700_000_000.0, 1_700_000_000.0)
STATS = RunStats(decode_tok_s=23.44, tokens_per_pass=2.104, acceptance_rate=0.614, time_to_first_token_s=0.318)
FIGURES = Figures(STATS, "3", "mtp", 1, "CPU", 2, 8192, "a_b.gguf", "c.gguf", "end")
NODES = [
    Node(1, 1, None, "user", "Question?"),
    Node(2, 1, 1, "assistant", "An **answer**.", thought="First\n\nthen", thought_s=3.21, figures=FIGURES),
    Node(3, 1, 1, "assistant", "Another."),
]


def test_document() -> None:
    text = as_markdown(msgspec.structs.replace(CHAT, active=2), NODES)
    lines = text.split("\n")
    date = lines.pop(2)
    assert date.startswith("*2023-11-1")
    assert "\n".join(lines) == (
        "# A title\n\n\n## You\n\nQuestion?\n\n## Assistant\n\n"
        "<details>\n<summary>Thought for 3.2 s</summary>\n\n> First\n>\n> then\n\n</details>\n\n"
        "An **answer**.\n\n"
        r"*a\_b.gguf + c.gguf · 23.4 tok/s · 2.10 tokens per pass · 61 % acceptance rate · first token after 0.32 s"
        " · draft length 3*\n\n"
        "---\n\n*Other versions of messages in this chat that are not shown here: 1.*\n"
    )


def test_the_newest_path_when_none_is_remembered() -> None:
    text = as_markdown(CHAT, NODES)
    assert "Another." in text
    assert "An **answer**." not in text


def test_an_empty_chat_and_words_in_another_language() -> None:
    assert as_markdown(msgspec.structs.replace(CHAT, title=""), []).startswith("# Chat\n")
    labels = Labels(you="나", assistant="모델", thought="생각", untitled="대화", rate="초당 {rate}")
    text = as_markdown(msgspec.structs.replace(CHAT, title="", active=2), NODES, labels)
    assert text.startswith("# 대화\n")
    assert "## 나\n" in text
    assert "초당 23.4" in text


@pytest.mark.parametrize(
    ("state", "note"),
    [
        ("stopped", "*Stopped.*"),
        ("limit", "*Reached the longest answer.*"),
        ("context", "*The context was full.*"),
        ("failed", "*Failed: It died. Try again.*"),
        ("interrupted", "*Interrupted.*"),
    ],
)
def test_how_an_answer_ended(state: str, note: str) -> None:
    problem = ("It died.", "Try again.") if state == "failed" else ("", "")
    nodes = [msgspec.structs.replace(NODES[2], state=state, problem=problem[0], remedy=problem[1], parent=None)]
    assert note in as_markdown(CHAT, nodes)


def test_what_was_not_measured_is_left_out() -> None:
    nodes = [msgspec.structs.replace(NODES[2], parent=None, figures=msgspec.structs.replace(FIGURES, stats=RunStats()))]
    assert "·" not in as_markdown(CHAT, nodes)
    alone = msgspec.structs.replace(FIGURES, stats=RunStats(decode_tok_s=1.0), drafter=None, draft="off")
    nodes = [msgspec.structs.replace(NODES[2], parent=None, figures=alone)]
    assert r"*a\_b.gguf · 1.0 tok/s · draft length off*" in as_markdown(CHAT, nodes)


@pytest.mark.parametrize(
    "text", ["```python\nx = 1", "~~~~\n```\ncut", "a\n   ````\n```\nb", "```\na\n```\n```js", "```\r\ncut"]
)
def test_code_that_was_cut_off_takes_nothing_in(text: str) -> None:
    nodes = [msgspec.structs.replace(NODES[2], text=text, thought=text, parent=None), Node(4, 1, 3, "user", "after")]
    html = MarkdownIt().render(as_markdown(CHAT, nodes))
    assert "<p>after</p>" in html
    assert "<h2>You</h2>" in html
    assert html.count("</details>") == 1


@pytest.mark.parametrize("text", ["```a`b", "plain", "```\nx\n```", "    ```\nindented", "```\n````", "`code`"])
def test_whole_code_stays_as_it_is(text: str) -> None:
    assert f"## Assistant\n\n{text}\n" in as_markdown(CHAT, [msgspec.structs.replace(NODES[2], text=text, parent=None)])


def test_a_thought_cannot_leave_its_fold() -> None:
    nodes = [msgspec.structs.replace(NODES[2], parent=None, thought="</details>\n</DETAILS >\n<summary>x\n\n# Heading")]
    text = as_markdown(CHAT, nodes)
    assert text.lower().count("</details") == 1
    assert text.count("<summary>") == 1
    assert "\n> # Heading\n" in text
