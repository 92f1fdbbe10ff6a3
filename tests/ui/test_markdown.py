"""Markdown as the transcript takes it apart: what it is, what it is not allowed to be, and while it grows."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tandem.ui.markdown import Item, Leaf, Span, Style, parse, right_to_left, spans, visible
from tandem.ui.transcript_math import tidy
from tandem.ui.transcript_tail import LONG_PARAGRAPH, Tail, mended

RICH = """# Hi **there**
para one
two with `code` and [link](https://x.y), $x^2$ and \\(a_1\\)

1. a
1. b
   - c
   - d

     para
     ```py
     x = 1
     ```
2. e

> quote
> - in
>> deeper

| a | b |
|---|--:|
| 1 | 2 |

$$
\\frac{a}{b}
$$

\\[ x^2 \\]
- [ ] todo
- [x] done
-
- - n
---
    code

text
- |a|b|
  |-|-|
  |1|2|
- ```
  x

  y
  ```
~~~
open
"""
TABLE = "|a|b|\n|-|-|\n" + "".join(f"|{row}|x|\n" for row in range(60)) + "\nafter\n"
CODE = "text\n\n    code\n    more\n\n    rest\n" + "    line\n" * 50 + "\nafter\n"
FENCE = "1. x\n   ```py\n" + "   def f():\n\n       pass\n" * 40 + "   ```\n2. y\n"


def texts(found: tuple[Span, ...]) -> str:
    return "".join(span.text for span in found)


def shape(leaves: list[Leaf]) -> list[object]:
    """What of the leaves must not depend on how the text came."""
    return [
        (
            leaf.kind,
            tuple(item.number if isinstance(item, Item) else "quote" for item in leaf.containers),
            leaf.marker,
            leaf.level,
            leaf.info,
            leaf.code.rstrip("\n"),
            texts(leaf.spans).replace("\u2028", " "),
            tuple(tuple(map(texts, row)) for row in leaf.rows),
            leaf.aligns,
        )
        for leaf in leaves
    ]


def grown(pieces: Iterator[str]) -> list[Leaf]:
    """The leaves when the text comes in pieces."""
    tail, found = Tail(), list[Leaf]()

    def add(leaf: Leaf, again: bool) -> None:
        last = found[-1] if found else None
        if not again or last is None or last.kind != leaf.kind:
            found.append(leaf)
        elif leaf.kind == "table":
            found[-1] = last._replace(rows=last.rows + leaf.rows[1:])
        elif leaf.kind in ("fence", "code"):
            found[-1] = last._replace(code=last.code + leaf.code)
        else:
            found[-1] = last._replace(spans=(*last.spans, Span(glue[0]), *leaf.spans))

    glue = [" "]
    for piece in [*pieces, None]:
        if piece is not None:
            tail.feed(piece)
        while True:
            step = tail.step(final=piece is None)
            for at, leaf in enumerate(step.leaves[: step.settled]):
                add(leaf, step.again and not at)
            if step.lines or step.rows:
                leaf = step.leaves[step.settled]
                code = "".join(f"{line}\n" for line in leaf.code.split("\n")[: step.lines])
                add(leaf._replace(code=code, rows=leaf.rows[: step.rows + 1]), step.again and not step.settled)
            if not step.divided:
                break
            glue = [step.glue]
    return found


def cut(text: str, size: int) -> Iterator[str]:
    return (text[at : at + size] for at in range(0, len(text), size))


@pytest.mark.parametrize("size", [1, 2, 3, 5, 7, 11, 16, 23, 38, 100])
@pytest.mark.parametrize("text", [RICH, TABLE, CODE, FENCE], ids=["rich", "table", "code", "fence"])
def test_a_text_that_comes_in_pieces_is_the_same_text(text: str, size: int) -> None:
    assert shape(grown(cut(text, size))) == shape(parse(text))


BITS = [
    "a ",
    "**b** ",
    "`c` ",
    "\n",
    "\n\n",
    "- ",
    "1. ",
    "  ",
    "> ",
    "```\n",
    "|",
    "---",
    "# ",
    "$x$ ",
    "한글 ",
    "[l](http://x) ",
]


@settings(max_examples=150, deadline=None)
@given(st.lists(st.sampled_from(BITS), max_size=40), st.integers(1, 9))
def test_whatever_comes_in_pieces_keeps_its_words(bits: list[str], size: int) -> None:
    text = "".join(bits)
    whole, streamed = shape(parse(text)), shape(grown(cut(text, size)))
    # A list may end and begin anew where a text that is known whole would go on with it; no word is lost.
    words = ["".join(str(leaf) for leaf in found) for found in (whole, streamed)]
    for word in ("a", "b", "c", "한글"):
        assert words[0].count(word) == words[1].count(word)


def test_a_long_paragraph_is_divided_and_nothing_is_lost() -> None:
    for lead, sentence in [
        ("", "word **word**. Another (word) here "),
        ("- ", "one `two`, three. "),
        ("> ", "한국어 문장. "),
    ]:
        text = lead + sentence * 300
        tail = Tail()
        longest = 0
        for piece in cut(text, 16):
            tail.feed(piece)
            while tail.step().divided:
                pass
            longest = max(longest, tail.length)
        assert longest < 2 * LONG_PARAGRAPH
        words = texts(tuple(span for leaf in grown(cut(text, 16)) for span in leaf.spans))
        assert words.split() == texts(parse(text.strip())[0].spans).split() or len(text) > 8000
        assert "*" not in words
        assert "`" not in words


def test_a_paragraph_without_a_single_gap_is_divided_in_the_end() -> None:
    tail = Tail()
    for piece in cut("x" * 20_000, 50):
        tail.feed(piece)
        while tail.step().divided:
            pass
        assert tail.length < 6_000


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("some **bold", "some **bold**"),
        ("some **", "some "),
        ("a `co", "a `co`"),
        ("a [link](http://x", "a link"),
        ("done\n-", "done\n"),
        ("done\n|-", "done\n"),
        ("plain", "plain"),
        ("a `b`:\n```\nx = `", "a `b`:\n```\nx = `"),
        ("2 * 3", "2 * 3"),
        ("it is **bold*", "it is **bold**"),
    ],
)
def test_half_a_markup_does_not_flicker(text: str, shown: str) -> None:
    assert mended(text) == shown


# What it is not


@pytest.mark.parametrize(
    "address", ["file:///etc/passwd", "javascript:alert(1)", "tandem-do:retry/1", "ftp://x/y", "//x"]
)
def test_only_the_web_and_mail_are_links(address: str) -> None:
    found = spans(f"see [here]({address}) and <{address}>")
    assert not any(span.href for span in found)
    assert "here" in texts(found)


def test_links() -> None:
    found = spans("[a](https://x.y/z?q=1) <http://b.c> https://d.e, mail <me@x.y>")
    assert [span.href for span in found if span.href] == [
        "https://x.y/z?q=1",
        "http://b.c",
        "https://d.e",
        "mailto:me@x.y",
    ]


def test_an_image_is_its_description() -> None:
    found = spans("![a *cat*](http://evil/x.png) ![](file:///x)")
    assert [(span.text, span.style) for span in found if Style.IMAGE in span.style] == [
        ("a cat", Style.IMAGE),
        ("", Style.IMAGE),
    ]
    assert not any(span.href for span in found)


def test_html_is_text() -> None:
    assert texts(parse('<img src="http://x/y.png"><script>x</script>')[0].spans).startswith("<img src=")


HOSTILE = {
    "quotes": ">" * 1000,
    "spaced quotes": "> " * 1000,
    "lists": "- " * 1000,
    "brackets": "[" * 50_000,
    "images": "![" * 25_000,
    "pairs": "[" * 4000 + "a" + "]" * 4000,
    "angles": "<a:" * 2600,
    "links": "[a](" * 2000,
    "stars": "a**b" * 2000,
    "underscores": "_a" * 4000,
    "ticks": "".join("`" * length + " " for length in range(1, 125)),
    "dollars": "$a" * 4000,
    "braces": "$" + "{" * 4000 + "$",
    "fractions": "$" + "\\frac{" * 600 + "}" * 600 + "$",
    "escapes": "\\(" * 2000,
    "table": "|" * 3000 + "\n" + "|-" * 1500,
    "columns": "|a" * 50 + "|\n" + "|-" * 50 + "|\n" + "|b" * 50 + "|",
    "steps": "\n".join(" " * (2 * depth) + "- a" for depth in range(200)),
    "deeper quotes": "\n".join(">" * depth + "a" for depth in range(200)),
    "references": "[a]: " * 1600,
    "entities": "&a" * 4000,
}


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE.keys())
def test_hostile_text_neither_hangs_nor_disappears(text: str) -> None:
    start = time.perf_counter()
    leaves = parse(text)
    assert time.perf_counter() - start < 10
    assert leaves
    start = time.perf_counter()
    grown(cut(text, 500))
    assert time.perf_counter() - start < 10


def test_what_is_too_deep_is_shown_as_it_is() -> None:
    assert texts(parse(">" * 1000 + " deep")[0].spans) == ">" * 1000 + " deep"
    steps = "\n".join(" " * (2 * depth) + f"- a{depth}" for depth in range(60))
    assert all(f"a{depth}" in str(shape(parse(steps))) for depth in range(60))


# Characters


def test_characters_that_do_something_are_seen_instead() -> None:
    assert visible("a\0b\x1b[31m\x7f") == "a␀b␛[31m␡"
    assert visible("a\r\nb\rc\u2028d") == "a\nb\nc\nd"
    assert visible("\ufdd0\ufdd1\ufffc\ud800") == "\ufffd" * 4
    assert visible("a\u202eb") == "a[U+202E]b"
    assert visible("ok\u200fok") == "ok\u200fok"
    assert visible("ok\u2066ok", code=True) == "ok[U+2066]ok"
    family = "👨‍👩‍👧‍👦 🇰🇷 e\u0301 한국어"
    assert visible(family) == family


def test_a_line_end_divided_between_two_pieces_is_one() -> None:
    tail = Tail()
    tail.feed("a\r")
    tail.feed("\nb")
    assert texts(tail.step(final=True).leaves[0].spans) == "a\u2028b"


@pytest.mark.parametrize(
    ("text", "rtl"),
    [
        ("مرحبا English", True),
        ("English مرحبا", False),
        ("1. 👍 שלום", True),
        ("한국어", False),
        ("123", False),
        ("", False),
    ],
)
def test_direction_is_the_first_letters(text: str, rtl: bool) -> None:
    assert right_to_left(text) is rtl


# Formulas


@pytest.mark.parametrize(
    ("formula", "text"),
    [
        (r"\frac{a}{b}", "a/b"),
        (r"\frac{\frac{1}{2}}{3}", "(1/2)/3"),
        (r"x_1^2 + y_{n+1}", "x₁² + yₙ₊₁"),
        (r"\sqrt{x^2+1}", "√(x²+1)"),
        (r"\frac{-b \pm \sqrt{b^2-4ac}}{2a}", "(-b ± √(b²-4ac))/(2a)"),
        (r"\sum_{i=1}^{n} i \leq \infty", "∑ᵢ₌₁ⁿ i ≤ ∞"),
        (r"e^{i\pi}+1=0", "e^(iπ)+1=0"),
        (r"\begin{aligned} a &= b \\ c &= d \end{aligned}", "a = b\nc = d"),
        (r"\text{speed} = 5\%", "speed = 5%"),
        (r"\left( \mathbb{R}^n \right)", "( ℝⁿ )"),
        (r"\unknown{x}", "unknownx"),
    ],
)
def test_formulas_are_tidy(formula: str, text: str) -> None:
    assert tidy(formula) == text


def test_money_is_no_formula() -> None:
    for text in ("$5 and $6", "It costs $5, she has $HOME and $PATH.", "US$5-$6"):
        assert spans(text) == (Span(text),)


def test_formulas_are_found() -> None:
    assert [leaf.code for leaf in parse("$$\\frac{a}{b}$$")] == ["a/b"]
    assert [leaf.code for leaf in parse("\\[\nx^2\n\\]")] == ["x²"]
    assert Span("a₁", Style.MATH) in spans("so $a_1$ is")
    assert Span("a₁", Style.MATH) in spans("so \\(a_1\\) is")
