"""The figures under an answer, in words, and what each of them means. The same words everywhere in the window."""

from __future__ import annotations

import html
from typing import Final, NamedTuple

from PySide6.QtCore import QCoreApplication

from tandem.chat.conversation import Figures
from tandem.engine.metrics import ChannelStats, RunStats
from tandem.ui import i18n

SHORT: Final = 20
"""Generated tokens below which the rates of an answer say little."""


class Definition(NamedTuple):
    """A figure's name and its meaning, in the user's language."""

    name: str
    meaning: str


def definitions() -> list[Definition]:
    """Every figure and what it means, in the README's order."""
    translate = QCoreApplication.translate
    return [
        Definition(
            translate("Figures", "prefill tok/s"),
            translate(
                "Figures",
                "prompt tokens really processed / prefill time (what an earlier turn left in the cache is not counted)",
            ),
        ),
        Definition(
            translate("Figures", "decode tok/s"),
            translate("Figures", "(generated − 1) / time from the first to the last token"),
        ),
        Definition(
            translate("Figures", "time to first token"),
            translate("Figures", "from sending the message to the first token"),
        ),
        Definition(
            translate("Figures", "pass"),
            translate(
                "Figures",
                "one run of the target that gave tokens: the last one over the prompt, which gives the first token, "
                "then one verify pass after the other",
            ),
        ),
        Definition(
            translate("Figures", "tokens per pass"), translate("Figures", "generated / passes: 1 without drafting")
        ),
        Definition(translate("Figures", "acceptance rate"), translate("Figures", "accepted / verified drafts")),
        Definition(
            translate("Figures", "acceptance at position i"),
            translate("Figures", "passes in which draft i was accepted / passes that had a draft i"),
        ),
        Definition(
            translate("Figures", "gain"),
            translate("Figures", "decode tok/s with / without drafting, same prompt, same length, paired"),
        ),
    ]


def figures_line(figures: Figures) -> str:
    """The quiet line under an answer: what there is of its figures, and how it was drafted; "" without figures."""
    translate, stats = QCoreApplication.translate, figures.stats
    parts = []
    if stats.decode_tok_s is not None:
        parts.append(translate("Figures", "{rate} tok/s").format(rate=_number(stats.decode_tok_s, 1)))
    if stats.tokens_per_pass is not None:
        number = _number(stats.tokens_per_pass, 2)
        parts.append(translate("Figures", "{number} tokens per pass").format(number=number))
    if stats.acceptance_rate is not None:
        parts.append(translate("Figures", "{share} accepted").format(share=_percent(stats.acceptance_rate)))
    if stats.time_to_first_token_s is not None:
        parts.append(translate("Figures", "first token {time}").format(time=_duration(stats.time_to_first_token_s)))
    return " · ".join([*parts, _drafting(figures)]) if parts else ""


def figures_tip(figures: Figures) -> str:
    """Rich text: each figure with its definition, thought and answer apart, and what the answer was made with."""
    translate, stats = QCoreApplication.translate, figures.stats
    values = [
        (1, _number(stats.decode_tok_s, 1)),
        (4, _number(stats.tokens_per_pass, 2)),
        (5, _percent(stats.acceptance_rate)),
        (2, _duration(stats.time_to_first_token_s)),
        (0, _number((stats.prompt_tokens - stats.cached_tokens) / stats.prefill_s, 1) if stats.prefill_s > 0 else "–"),
        (3, translate("Figures", "%n pass(es)", "", stats.passes)),
    ]
    names = definitions()
    rows = [(names[at].name, value, names[at].meaning) for at, value in values]
    parts = [
        _table([(name, value, f"<i>{html.escape(meaning)}</i>") for name, value, meaning in _amounts(stats) + rows])
    ]
    if stats.accepted_at:
        shares = [_percent(hit / of) for hit, of in zip(stats.accepted_at, stats.drafted_at, strict=True) if of]
        parts.append(f"<p>{html.escape(names[6].name)}: {html.escape(', '.join(shares))}</p>")
    if stats.thought.generated:
        head = ("", translate("Figures", "thought"), translate("Figures", "answer"))
        rows = [head, *_apart(stats.thought, stats.answer)]
        parts.append(_table([(name, one, f"<b>{html.escape(other)}</b>") for name, one, other in rows]))
    if stats.generated < SHORT:
        words = translate("Figures", "The rates of an answer as short as this vary much from one run to the next.")
        parts.append(f"<p>{html.escape(words)}</p>")
    made = [figures.target, *([figures.drafter] if figures.drafter else []), figures.device, _drafting(figures)]
    made.append(translate("Figures", "seed {seed}").format(seed=figures.seed))
    return "".join([*parts, f"<p>{html.escape(' · '.join(made))}</p>"])


def _drafting(figures: Figures) -> str:
    """How an answer was drafted."""
    if figures.draft == "off" or figures.method == "none":
        return QCoreApplication.translate("Figures", "drafter off")
    return QCoreApplication.translate("Figures", "draft length {length}").format(length=figures.draft)


def _amounts(stats: RunStats) -> list[tuple[str, str, str]]:
    """How much was generated and read, on which the rates rest; the cache explains a short time to first token."""
    translate = QCoreApplication.translate
    time = translate("Figures", "decoded in {time}").format(time=i18n.duration(stats.decode_s))
    reused = translate("Figures", "{number} of them reused from the KV cache")
    return [
        (
            translate("Figures", "generated"),
            translate("Figures", "%n token(s)", "", stats.generated),
            time if stats.decode_s > 0 else "",
        ),
        (
            translate("Figures", "prompt"),
            translate("Figures", "%n token(s)", "", stats.prompt_tokens),
            reused.format(number=i18n.number(stats.cached_tokens)),
        ),
    ]


def _apart(thought: ChannelStats, answer: ChannelStats) -> list[tuple[str, str, str]]:
    """The rows that compare the two; the run's first token, which no decode time belongs to, is the thought's."""
    translate = QCoreApplication.translate

    def rate(stats: ChannelStats, first: int) -> str:
        return _number((stats.generated - first) / stats.decode_s if stats.decode_s > 0 else None, 1)

    def per_pass(stats: ChannelStats) -> str:
        return _number(stats.generated / stats.passes if stats.passes else None, 2)

    def accepted(stats: ChannelStats) -> str:
        return _percent(stats.accepted / stats.verified if stats.verified else None)

    return [
        (translate("Figures", "tokens"), i18n.number(thought.generated), i18n.number(answer.generated)),
        (translate("Figures", "decode tok/s"), rate(thought, 1), rate(answer, 0)),
        (translate("Figures", "tokens per pass"), per_pass(thought), per_pass(answer)),
        (translate("Figures", "acceptance rate"), accepted(thought), accepted(answer)),
    ]


def _table(rows: list[tuple[str, str, str]]) -> str:
    """Three columns: plain, plain, and the last as it is."""
    cells = [
        f"<tr><td>{html.escape(first)}</td><td style='padding:0 10px'><b>{html.escape(second)}</b></td>"
        f"<td>{third}</td></tr>"
        for first, second, third in rows
    ]
    return f"<table>{''.join(cells)}</table>"


def _number(value: float | None, digits: int) -> str:
    return "–" if value is None else i18n.number(value, digits)


def _percent(share: float | None) -> str:
    return "–" if share is None else i18n.percent(share)


def _duration(seconds: float | None) -> str:
    return "–" if seconds is None else i18n.duration(seconds)
