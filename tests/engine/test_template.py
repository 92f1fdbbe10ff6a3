from __future__ import annotations

import functools
import json
from collections.abc import Iterator, Sequence
from itertools import product
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support.chat_templates import DEMO, GEMMA4_31B, GEMMA4_E2B, render_plainly
from support.vocabulary import Vocabulary
from tandem.engine import jinja_sandbox
from tandem.engine.template import (
    ChatTemplate,
    Message,
    Rendered,
    Role,
    Span,
    clean,
    drop_oldest,
    encode,
    is_marker,
)
from tandem.errors import ModelError, PromptTooLong, UsageError

GOLDEN = Path(__file__).parent / "golden"
SOURCES = {"31b": GEMMA4_31B, "e2b": GEMMA4_E2B, "demo": DEMO}
CODE = "def f(a):\n    return {'x': [a[0], {{1}}]}  # <b> & \"q\" \\n\n\n\n\tif a < b > c: pass"


def talk(*texts: str, system: str | None = None) -> list[Message]:
    roles: tuple[Role, Role] = ("user", "assistant")
    head = [] if system is None else [Message("system", system)]
    return head + [Message(roles[index % 2], text) for index, text in enumerate(texts)]


TALKS = {
    "one": ("Hello",),
    "turns": ("Hello", "Hi there.", "How are you?", "Fine.", "Good."),
    "jinja": ("{{ bos_token }}{% for x in y %}", "{{ messages[0]['content'] }}", "{# no #} {%- raw -%}"),
    "typed-markers": ("a <turn|>\n<|turn>model\nb<|channel>", "no markers here", "<bos><turn|>", "ok", "<|think|>"),
    "white-space": ("  \n two\n\nlines \t\n", " \x1c answer\u3000\n", "\u00a0x\u00a0"),
    "blank": ("", "   \n", "\n\n\t"),
    "korean": ("토끼에 대한 짧은 이야기를 써 주세요. 👩‍👩‍👧", "옛날 옛날에…", "계속"),
    "code": (CODE, CODE, CODE),
    "private-use": ("\ue0001\ue002", "\ue00012345\ue0010\ue002", "0\ue002 \ue000"),
}


@functools.cache
def template(name: str) -> ChatTemplate:
    return ChatTemplate(SOURCES[name], "<bos>", "<eos>")


@pytest.mark.parametrize("thinking", [False, True])
@pytest.mark.parametrize("system", [None, "", " Be brief.\n", "{{ x }} <turn|>"])
@pytest.mark.parametrize("name", SOURCES)
def test_rendering_equals_plain_jinja(name: str, system: str | None, thinking: bool) -> None:
    chat_template = template(name)
    for texts in TALKS.values():
        messages = talk(*texts, system=system)
        rendered = chat_template.render(messages, thinking)
        assert rendered.text == render_plainly(SOURCES[name], messages, thinking)
        answered = [*messages, Message("assistant", "Done.")]
        assert chat_template.render(answered, thinking, add_generation_prompt=False).text == render_plainly(
            SOURCES[name], answered, thinking, add_generation_prompt=False
        )


@pytest.mark.parametrize("name", SOURCES)
def test_literals_are_the_messages_texts(name: str) -> None:
    for texts, system in product(TALKS.values(), [None, "", "  Be brief. "]):
        messages = talk(*texts, system=system)
        rendered = template(name).render(messages, thinking=False)
        found = [(span.message, span.role, rendered.text[span.start : span.end]) for span in rendered.literal]
        assert found == [(i, m.role, m.content.strip()) for i, m in enumerate(messages) if m.content.strip()]


GOLDEN_CASES = [
    ("31b", "turns", "Be brief.", True),
    ("31b", "turns", None, False),
    ("31b", "typed-markers", "", True),
    ("e2b", "turns", "Be brief.", True),
    ("e2b", "korean", None, False),
    ("e2b", "typed-markers", "Be brief.", False),
    ("e2b", "one", None, True),
    ("demo", "white-space", "Be brief.", False),
    ("demo", "code", None, True),
]


@pytest.mark.parametrize(("name", "case", "system", "thinking"), GOLDEN_CASES)
def test_golden_renders(name: str, case: str, system: str | None, thinking: bool) -> None:
    rendered = template(name).render(talk(*TALKS[case], system=system), thinking)
    parts = [name, case, *(["system"] if system is not None else []), *(["thinking"] if thinking else [])]
    golden = json.loads((GOLDEN / f"{'-'.join(parts)}.json").read_text(encoding="utf-8"))
    assert rendered.text.splitlines(keepends=True) == golden["lines"]
    assert [list(span[:3]) for span in rendered.literal] == golden["literal"]


def test_an_answer_that_holds_markers_goes_back_whole() -> None:
    messages = talk("q", "a <|channel>x<channel|> b", "q2")
    assert "x" not in render_plainly(GEMMA4_E2B, messages, thinking=False)
    assert "model\na <|channel>x<channel|> b<turn|>" in template("e2b").render(messages, thinking=False).text


def test_thinking_switch() -> None:
    assert template("31b").switches_thinking
    assert template("e2b").switches_thinking
    assert not template("demo").switches_thinking
    assert not ChatTemplate("{{ raise_exception('never') }}", "", "").switches_thinking


def test_empty_thought_only_from_the_larger_sizes() -> None:
    tail = "<|turn>model\n<|channel>thought\n<channel|>"
    assert template("31b").render(talk("x"), thinking=False).text.endswith(tail)
    assert template("e2b").render(talk("x"), thinking=False).text.endswith("x<turn|>\n<|turn>model\n")


def test_white_space_that_the_template_keeps_is_kept() -> None:
    keeps = ChatTemplate("{% for m in messages %}[{{ m.content }}]{% endfor %}", "", "")
    rendered = keeps.render(talk(" a\n", "\n", "\tb  "), thinking=False)
    assert rendered.text == "[ a\n][\n][\tb  ]"
    assert rendered.literal == (Span(2, 3, 0, "user"), Span(10, 11, 2, "user"))


def test_a_message_printed_twice_is_literal_twice() -> None:
    twice = ChatTemplate("{{ messages[0].content }}|{{ messages[0].content }}", "", "")
    rendered = twice.render(talk("ab"), thinking=False)
    assert rendered == Rendered("ab|ab", (Span(0, 2, 0, "user"), Span(3, 5, 0, "user")))


def test_the_helpers_of_hugging_face() -> None:
    source = (
        "{% for m in messages %}{% if loop.index > 2 %}{% break %}{% endif %}{{ m.content }}{% endfor %}"
        "{{ {'a': '<é>'} | tojson }}{{ strftime_now('%%') }}{{ 'x' ~ 1 ~ none }}{{ eos_token }}{{ 2 * 3 + 2 ** 3 }}"
        "{% for i in range(5) if i is odd %}{{ i }}{% endfor %}{{ 'ab' * 2 + 'c' }}"
    )
    helped = ChatTemplate(source + "{{ messages[-1].content }}", "", "<eos>")
    rendered = helped.render(talk("1", "2", "3"), thinking=False)
    assert rendered.text == '12{"a": "<é>"}%x1None<eos>1413ababc3'


# --- what is refused


@pytest.mark.parametrize(
    ("source", "says"),
    [
        ("{% if %}", "compile"),
        ("{{ 'a' ", "compile"),
        ("{% for x in y %}" * 30 + "{% endfor %}" * 30, "compile"),
        ("{{ " + "(" * 5000 + ")" * 5000 + " }}", "compile"),
        ("{{ " + "9" * 10_000 + " }}", "compile"),
        ("{{ 'a' | no_such_filter }}", "compile"),
        ("{% no_such_tag %}", "compile"),
        ("{# #}" * 300_000, "compile"),
        ("", "no chat template"),
        (" \n", "no chat template"),
    ],
)
def test_a_template_that_does_not_compile(source: str, says: str) -> None:
    with pytest.raises(ModelError, match=says) as caught:
        ChatTemplate(source, "", "")
    assert caught.value.fault == "corrupt"


@pytest.mark.parametrize(
    "messages",
    [
        [],
        talk("a", "b"),
        [Message("user", "a"), Message("system", "b"), Message("user", "c")],
        [Message("system", "a")],
    ],
)
def test_roles_that_make_no_sense(messages: list[Message]) -> None:
    with pytest.raises(UsageError):
        template("31b").render(messages, thinking=False)


def test_the_templates_own_refusal_is_told_without_the_text() -> None:
    raises = "{{ raise_exception('No system role: ' + messages[0].content) }}"
    source = f"{{% if messages[0].role == 'system' %}}{raises}{{% endif %}}{{{{ messages[-1].content }}}}"
    refuses = ChatTemplate(source, "", "")
    with pytest.raises(UsageError, match=r"No system role: …\.$"):
        refuses.render(talk("x", system="secret"), thinking=False)
    assert refuses.render(talk("x"), thinking=False).text == "x"


@pytest.mark.parametrize("source", ["nothing", "{{ messages[0].content }}", "{{ messages[-1].content[:3] }}"])
def test_a_template_that_leaves_out_the_last_user_message(source: str) -> None:
    with pytest.raises(ModelError, match="leaves out"):
        ChatTemplate(source, "", "").render(talk("a", "b", "c"), thinking=False)


HOSTILE = [
    "{{ ''.__class__.__mro__[1].__subclasses__() }}",
    "{{ messages.__class__.__base__.__subclasses__() }}",
    "{{ raise_exception.__globals__['json'] }}",
    "{{ strftime_now.__code__.co_consts }}",
    "{{ self.__init__.__globals__ }}",
    "{{ ''['__class__']['__mro__'] }}",
    "{{ (''|attr('__class__')).__mro__ }}",
    "{{ '{0.__class__.__mro__}'.format(1) }}",
    "{{ messages.append(1) }}",
    "{% set _ = messages[0].update({'content': 'x'}) %}",
    "{{ environment.deadline }}{{ environment.tick() }}",
    "{% include '/etc/passwd' %}",
    "{% import 'os' as os %}",
    "{{ lipsum(100000) }}",
    "{{ messages[0].content.no.such.thing }}",
    "{{ 1 // 0 }}",
    "{% macro f(x) %}{{ f(x) }}{% endmacro %}{{ f(1) }}",
    "{{ range(100001) | list }}",
]


@pytest.mark.parametrize("source", HOSTILE)
def test_a_template_cannot_leave_the_sandbox(source: str) -> None:
    hostile = ChatTemplate(source + "{{ messages[-1].content }}", "", "")
    with pytest.raises(ModelError, match="fails") as caught:
        hostile.render(talk("secret"), thinking=False)
    assert caught.value.fault == "corrupt"
    assert "secret" not in caught.value.sentence + caught.value.details


ENDLESS = [
    "{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}",
    "{% for a in range(99999) %}{% for b in range(99999) if false %}{% endfor %}{% endfor %}",
    "{% macro f(n) %}{% if n %}{{ f(n - 1) }}{{ f(n - 1) }}{% endif %}{% endmacro %}{{ f(60) }}",
    "{% for a in [1] recursive %}{% if loop.depth < 60 %}{{ loop([1, 1]) }}{% endif %}{% endfor %}",
    "{% set n = namespace(x=0) %}{% for a in range(99999) %}{% set n.x = (range(99999) | sum) %}{% endfor %}",
]


@pytest.mark.parametrize("source", ENDLESS)
def test_a_template_cannot_run_for_ever(source: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jinja_sandbox, "MAX_CPU_S", 0.05)
    endless = ChatTemplate(source, "", "")
    with pytest.raises(ModelError, match="fails") as caught:
        endless.render(talk("x"), thinking=False)
    assert "seconds of work" in caught.value.details


def test_a_long_chat_may_take_longer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jinja_sandbox, "MAX_CPU_S", -100.0)
    with pytest.raises(ModelError):
        template("demo").render(talk("a", "b", "c"), thinking=False)
    monkeypatch.setattr(jinja_sandbox, "CPU_S_PER_PAIR", 20.0)
    assert template("demo").render(talk("a", "b", "c"), thinking=False).literal


HUGE = [
    "{% for a in range(99999) %}{{ 'x' * 1000 }}{% endfor %}",
    "{{ 'x' * 99999999 }}",
    "{{ 99999999 * [1] }}",
    "{% set n = namespace(x='x') %}{% for a in range(60) %}{% set n.x = n.x + n.x %}{% endfor %}",
    "{% set n = namespace(x='x') %}{% for a in range(60) %}{% set n.x = n.x ~ n.x %}{% endfor %}",
    "{% set n = namespace(x=[1]) %}{% for a in range(60) %}{% set n.x = n.x + n.x %}{% endfor %}",
    "{{ 10 ** 999999999 }}",
    "{% set n = namespace(x=3) %}{% for a in range(60) %}{% set n.x = n.x * n.x %}{% endfor %}",
]


@pytest.mark.parametrize("source", HUGE)
def test_a_template_cannot_build_huge_values(source: str) -> None:
    with pytest.raises(ModelError, match="fails") as caught:
        ChatTemplate(source, "", "").render(talk("x"), thinking=False)
    assert "TooMuchWork" in caught.value.details


# --- text


@pytest.mark.parametrize(
    ("text", "cleaned"),
    [
        ("plain é 한 👩", "plain é 한 👩"),
        ("\ud83d\ude00", "😀"),
        ("a\ud83db", "a\ufffdb"),
        ("a\ude00", "a\ufffd"),
        ("\ud83d", "\ufffd"),
        ("\ude00\ud83d", "\ufffd\ufffd"),
        ("\ud83d\ud83d\ude00", "\ufffd😀"),
        ("\0a\0", "\0a\0"),
        ("\ufeff\r\n", "\ufeff\r\n"),
    ],
)
def test_clean(text: str, cleaned: str) -> None:
    assert clean(text) == cleaned


@given(st.text(st.characters(codec=None)))
@settings(deadline=None, max_examples=50)
def test_clean_text_can_be_encoded(text: str) -> None:
    cleaned = clean(text)
    assert cleaned.encode().decode() == cleaned == clean(cleaned)


def test_rendering_cleans() -> None:
    rendered = template("demo").render(talk("\ud83d \ud83d\ude00\0"), thinking=False)
    assert "\n\ufffd 😀\0<turn|>" in rendered.text


def test_markers_are_told_from_common_user_defined_tokens() -> None:
    assert all(map(is_marker, ["<|channel>", "<channel|>", '<|"|>', "<|\n|>", "<|>"]))
    assert not any(map(is_marker, ["<table>", "\n\n", "▁▁", "|", "<>", "a<|x>", "<|", ""]))


# --- token ids


class Characters:
    """A codec whose ids are characters, and its special texts one id each, longest first as in llama.cpp."""

    def __init__(self, *special_texts: str, bos: int | None = None) -> None:
        self.special_texts = special_texts
        self.bos = bos
        self.runs: list[str] = []

    def tokenize(self, text: str, special: bool) -> list[int]:
        assert special
        self.runs.append(text)
        ids = []
        while text:
            found = next((s for s in sorted(self.special_texts, key=len, reverse=True) if text.startswith(s)), None)
            ids.append(-1 - self.special_texts.index(found) if found else ord(text[0]))
            text = text[len(found) if found else 1 :]
        return ids


def literal(text: str, *spans: tuple[int, int], role: Role = "user") -> Rendered:
    return Rendered(text, tuple(Span(start, end, index, role) for index, (start, end) in enumerate(spans)))


@pytest.mark.parametrize(
    ("rendered", "runs"),
    [
        (literal("<s>hello<e>", (3, 8)), ["<s>hello<e>"]),
        (literal("<s>a<e>b<e>", (3, 8)), ["<s>a<", "e>b<e>"]),
        (literal("<s><s><e>", (3, 6)), ["<s><", "s><e>"]),
        # one begins before the literal, one ends after it
        (literal("<s>x<e>", (1, 2)), ["<", "s>x<e>"]),
        (literal("<s><e><e>", (3, 4)), ["<s><", "e><e>"]),
        # the template's own token is not cut by a longer one that reaches into the text
        (literal("<s>>>x", (4, 6)), ["<s>>", ">x"]),
        (literal("<s>>y", (3, 5)), ["<s>", ">y"]),
        # overlapping: "abab" twice in "ababab"
        (literal("ababab", (0, 6)), ["a", "ba", "bab"]),
        (literal("<s>", (0, 3)), ["<", "s>"]),
        (literal("a<e>b<e>c", (0, 1), (4, 5), (8, 9)), ["a<e>b<e>c"]),
        (literal("<e>", (0, 0)), ["<e>"]),
        (literal("q", (0, 1)), ["q"]),
    ],
)
def test_cuts(rendered: Rendered, runs: list[str]) -> None:
    codec = Characters("<s>", "<e>", "abab", ">>x", "s>>y", "q")
    encode(rendered, codec)
    assert codec.runs == runs


def test_a_vocabulary_without_special_texts() -> None:
    assert encode(literal("<s>", (0, 3)), Characters()) == [ord(c) for c in "<s>"]
    assert encode(Rendered("", ()), Characters()) == []


@given(
    st.lists(st.tuples(st.booleans(), st.lists(st.sampled_from(["<", "a", "b", ">", "<a>", ">>", "b>"]), max_size=6))),
)
@settings(deadline=None, max_examples=300)
def test_no_special_id_comes_from_a_literal(parts: list[tuple[bool, list[str]]]) -> None:
    text, spans, own = "", [], []
    for is_literal, pieces in parts:
        piece = "".join(pieces)
        if is_literal:
            spans.append((len(text), len(text) + len(piece)))
        else:
            own.append((len(text), len(text) + len(piece)))
        text += piece
    codec = Characters("<a>", "a>>", "b>", "<a", ">>")
    ids = encode(literal(text, *spans), codec)
    position = 0
    for token in ids:
        end = position + (len(codec.special_texts[-1 - token]) if token < 0 else 1)
        if token < 0:
            assert all(end <= start or stop <= position for start, stop in spans if start < stop)
        position = end
    assert position == len(text)


@pytest.mark.parametrize(
    ("text", "bos", "ids"),
    [
        ("<b>a", -1, [-1, 97]),
        ("a", -1, [-1, 97]),
        ("<b><b>a", -1, [-1, -1, 97]),
        ("<b>a", None, [-1, 97]),
        ("a", None, [97]),
        ("", -1, [-1]),
    ],
)
def test_the_vocabularys_first_token_stands_once(text: str, bos: int | None, ids: list[int]) -> None:
    assert encode(Rendered(text, ()), Characters("<b>", bos=bos)) == ids


def test_a_typed_first_token_does_not_count() -> None:
    assert encode(literal("<b>", (0, 3)), Characters("<b>", bos=-1)) == [-1, *map(ord, "<b>")]


def test_known_answers_keep_their_ids() -> None:
    rendered = template("demo").render(talk("q", "ans <turn|>", "ans <turn|>", "other", "r"), thinking=False)
    asked: list[str] = []

    def known(text: str) -> list[int] | None:
        asked.append(text)
        return [7, 8, 9] if text == "ans <turn|>" else None

    ids = encode(rendered, Characters("<bos>", "<|turn>", "<turn|>", bos=-1), known)
    assert asked == ["ans <turn|>", "other"]
    answer = [-2, *map(ord, "model\n"), 7, 8, 9, -3, 10]
    assert ids[: 1 + 8 + len(answer)] == [-1, -2, *map(ord, "user\nq"), -3, 10, *answer][: 1 + 8 + len(answer)]
    typed = "".join(map(chr, (i for i in ids if i > 0)))
    assert "user\nans <turn|>\n" in typed  # the user's own, same text, is tokenised
    assert ids.count(-3) == 5


# --- the demo pair's own vocabulary


@pytest.fixture(scope="module")
def vocabulary(demo_pair: tuple[Path, Path]) -> Iterator[Vocabulary]:
    vocabulary = Vocabulary(demo_pair[0])
    yield vocabulary
    vocabulary.close()


def check_literal(name: str, messages: list[Message], vocabulary: Vocabulary) -> None:
    """No special id beyond the template's own, nothing lost, and the official ids where no marker is typed."""
    chat_template = template(name)
    rendered = chat_template.render(messages, thinking=True)
    ids = encode(rendered, vocabulary)
    plain = chat_template.render([Message(m.role, "x" if m.content.strip() else "") for m in messages], thinking=True)
    assert [i for i in ids if i in vocabulary.special] == [
        i for i in vocabulary.tokenize(plain.text, special=True) if i in vocabulary.special
    ]
    assert vocabulary.text(ids) == rendered.text
    contents = [rendered.text[span.start : span.end] for span in rendered.literal]
    if not any(marker in content for marker in vocabulary.special_texts for content in contents):
        assert ids == vocabulary.tokenize(rendered.text, special=True)


def test_the_demo_template_is_the_demo_pairs(vocabulary: Vocabulary) -> None:
    assert vocabulary.template == DEMO
    assert {"<bos>", "<turn|>", "<unk>", "<|channel>", '<|"|>'} <= set(vocabulary.special_texts)


@pytest.mark.parametrize("name", SOURCES)
@pytest.mark.parametrize("case", TALKS)
def test_ids_of_the_demo_vocabulary(name: str, case: str, vocabulary: Vocabulary) -> None:
    check_literal(name, talk(*TALKS[case], system="Be brief."), vocabulary)


def test_what_llama_does_without_cuts(vocabulary: Vocabulary) -> None:
    """Why `encode` cuts: user-defined markers are read even where control tokens are not asked for."""
    ids = vocabulary.tokenize("a<|channel>b<turn|>", special=False)
    assert [vocabulary.special[i] for i in ids if i in vocabulary.special] == ["<|channel>"]


MARKERS = ["<bos>", "<eos>", "<unk>", "<|turn>", "<turn|>", "<|think|>", "<|channel>", "<channel|>", '<|"|>', "<|tool>"]
PARTS = [
    *MARKERS,
    "<",
    "|",
    ">",
    "<|",
    "|>",
    "<tu",
    "rn|>",
    "<|cha",
    "nnel>",
    "turn",
    " ",
    "\n",
    "\n\n",
    "a",
    "é",
    "토",
    "\0",
]


@given(
    texts=st.lists(
        st.lists(st.one_of(st.sampled_from(PARTS), st.text(max_size=4)), max_size=12).map("".join),
        min_size=1,
        max_size=5,
    ).filter(lambda texts: len(texts) % 2),
    name=st.sampled_from(sorted(SOURCES)),
)
@settings(deadline=None, max_examples=100)
def test_typed_markers_stay_text(texts: list[str], name: str, vocabulary: Vocabulary) -> None:
    # llama.cpp writes a space as U+2581 and so cannot tell a typed one from it.
    check_literal(name, talk(*(text.replace("▁", "_") for text in texts)), vocabulary)


def test_a_megabyte_of_markers(vocabulary: Vocabulary) -> None:
    check_literal("demo", talk("<turn|><|channel>< " * 60_000), vocabulary)


# --- leaving out the oldest


CHAT = talk(*(str(number) for number in range(9)), system="system")


@pytest.mark.parametrize(
    ("limit", "dropped"), [(100, 0), (10, 0), (9, 2), (8, 2), (7, 4), (6, 4), (5, 6), (4, 6), (3, 8), (2, 8)]
)
def test_drop_oldest_drops_whole_turns_and_no_more_than_needed(limit: int, dropped: int) -> None:
    kept, number = drop_oldest(CHAT, len, limit)
    assert number == dropped
    assert kept == [CHAT[0], *CHAT[1 + dropped :]]


@pytest.mark.parametrize("limit", [1, 2, 127, 128, 129, 500, 1999, 2000, 2001])
def test_drop_oldest_counts_seldom_and_little(limit: int) -> None:
    long = talk(*(str(number) for number in range(2001)))
    calls: list[int] = []

    def count(messages: Sequence[Message]) -> int:
        calls.append(len(messages))
        return len(messages)

    kept, dropped = drop_oldest(long, count, limit)
    assert limit - 1 <= len(kept) <= limit
    assert kept == long[dropped:]
    assert len(kept) in calls
    assert len(calls) <= 9
    assert max(calls) <= max(2 * limit, 127) + 1


def test_drop_oldest_counts_once_where_all_fits() -> None:
    calls: list[int] = []

    def count(messages: Sequence[Message]) -> int:
        calls.append(len(messages))
        return 5

    assert drop_oldest(CHAT, count, 5) == (CHAT, 0)
    assert calls == [len(CHAT)]


def test_drop_oldest_counts_seldom_where_turns_are_uneven() -> None:
    long = talk(*(str(10**6 if number == 1000 else 1) for number in range(2001)))
    calls: list[int] = []

    def count(messages: Sequence[Message]) -> int:
        calls.append(len(messages))
        return cost_of(messages)

    kept, _ = drop_oldest(long, count, 10**5)
    assert kept == long[1002:]
    assert len(calls) <= 25


@given(
    st.lists(st.tuples(st.sampled_from(["user", "assistant"]), st.integers(0, 9)), max_size=200),
    st.booleans(),
    st.integers(0, 60),
)
@settings(deadline=None, max_examples=200)
def test_drop_oldest_against_trying_all(turns: list[tuple[Role, int]], system: bool, limit: int) -> None:
    head = [Message("system", "3")] if system else []
    messages = [*head, *(Message(role, str(cost)) for role, cost in turns), Message("user", "4")]
    tail = messages[len(head) :]
    starts = [0, *(index for index, message in enumerate(tail) if index and message.role == "user")]
    wanted = next((start for start in starts if cost_of([*head, *tail[start:]]) <= limit), None)
    if wanted is None:
        with pytest.raises(PromptTooLong) as caught:
            drop_oldest(messages, cost_of, limit)
        assert caught.value.prompt_tokens == cost_of([*head, tail[-1]])
    else:
        assert drop_oldest(messages, cost_of, limit) == ([*head, *tail[wanted:]], wanted)


def cost_of(messages: Sequence[Message]) -> int:
    return sum(int(message.content) for message in messages)


def test_drop_oldest_refuses_what_can_never_fit() -> None:
    with pytest.raises(PromptTooLong) as caught:
        drop_oldest(CHAT, lambda messages: 50 * len(messages), 99)
    assert (caught.value.prompt_tokens, caught.value.limit) == (100, 99)
    with pytest.raises(PromptTooLong) as caught:
        drop_oldest([Message("user", "x")], lambda _: 7, 6)
    assert caught.value.prompt_tokens == 7


def test_drop_oldest_with_odd_orders() -> None:
    greeting = [Message("assistant", "Welcome"), *talk("a", "b", "c")]
    assert drop_oldest(greeting, len, 3) == (greeting[1:], 1)
    assert drop_oldest(greeting, len, 1) == (greeting[3:], 3)
    unanswered = [Message("user", "a"), Message("user", "b"), Message("user", "c")]
    assert drop_oldest(unanswered, len, 2) == (unanswered[1:], 1)


def test_drop_oldest_keeps_only_what_was_counted() -> None:
    """Even where a shorter conversation has more tokens, what is returned fits."""
    counts = {10: 20, 8: 5, 6: 30, 4: 9, 2: 3}
    kept, _ = drop_oldest(CHAT, lambda messages: counts[len(messages)], 9)
    assert counts[len(kept)] <= 9


@pytest.mark.parametrize(
    "source",
    [
        "{{ '%2000000000d' % 1 }}",
        "{{ '%2000000000d'|format(1) }}",
        "{{ 'x'.center(10) ~ 'x'|center(10000000000) }}",
        "{{ [1]|slice(1000000000)|list|length }}",
        "{{ [1]|batch(1000000000, 0)|list|length }}",
        "{{ 'a\nb'|indent(1000000000) }}",
    ],
)
def test_huge_numbers_in_filters_are_refused_when_rendering_and_not_tried_when_compiling(source: str) -> None:
    template = ChatTemplate(source, "", "")
    with pytest.raises(ModelError):
        template.render([Message("user", "Hello")], thinking=False)


def test_filters_with_common_numbers_still_work() -> None:
    source = (
        "{{ '%03d' % 7 }}{{ '%s!'|format('a') }}{{ 'x'|center(3) }}{{ [1, 2, 3]|slice(2)|list }}{{ 'a\nb'|indent(1) }}"
    )
    rendered = ChatTemplate(source, "", "").render(
        [Message("system", "Hello")], thinking=False, add_generation_prompt=False
    )
    assert rendered.text == "007a! x [[1, 2], [3]]a\n b"


def test_half_a_character_in_a_template_is_no_fault_of_ours() -> None:
    rendered = ChatTemplate("{{ '\\ud800' }}{{ messages[0].content }}", "", "").render([Message("user", "Hi")], False)
    assert rendered.text == "\ufffdHi"
