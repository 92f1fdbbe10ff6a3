"""A transcript on a window of its own, messages for it, and ways to see what it shows."""

from __future__ import annotations

import random
import re
from typing import Any

import msgspec
from PySide6.QtCore import QPoint, Qt
from PySide6.QtGui import QTextBlock, QTextCursor
from pytestqt.qtbot import QtBot

from tandem.chat.conversation import Figures, Node, Run
from tandem.engine.metrics import RunStats
from tandem.ui.session_state import Piece
from tandem.ui.theme import ThemeManager
from tandem.ui.transcript import Transcript
from tandem.ui.transcript_copy import text_between
from tandem.ui.transcript_links import Link, links_of
from tandem.ui.transcript_look import ACTS, BARS, MARKER, PAINT

RICH = """Some **strong** text with `code`, see [the paper](https://example.org/a?b=c).

## How it works

1. First
2. Second
   - nested
   - more

   Still second.
3. Third

```python
def f(x):
    return x + 1
```

> A quote
> of two lines.

| a | b |
|---|--:|
| one | 1 |
| two | 2 |

$$
\\frac{a}{b}
$$

The end 👨‍👩‍👧‍👦."""


def figures(thought: bool = False) -> Figures:
    """Figures of a run of which some was thought, if asked for."""
    stats = RunStats(prompt_tokens=420, cached_tokens=300, prefill_s=0.4, time_to_first_token_s=0.412)
    stats.count_pass(1, 0, 0, 0, 0, 0, thought)
    for number in range(40):
        own = thought and number < 15
        stats.count_pass(2 if own else 3, 3, 1 if own else 2, 0.08, 0.01, 0.06, own)
    stats.finish()
    return Figures(
        stats=stats, draft="3", method="mtp", seed=7, device="CPU", threads=2, context=8192,
        target="target.gguf", drafter="drafter.gguf", cut="end",
    )  # fmt: skip


def user(number: int, text: str = "A question?", **fields: Any) -> Node:
    """A user's message."""
    return Node(number, 1, number - 1 or None, "user", text, **fields)


def answer(number: int, text: str = RICH, **fields: Any) -> Node:
    """An answer."""
    return Node(number, 1, number - 1 or None, "assistant", text, **fields)


def chat(messages: int, text: str = RICH) -> list[Node]:
    """Questions and answers in turn; each question says its number."""
    return [user(at, f"Question {at}") if at % 2 else answer(at, text) for at in range(1, messages + 1)]


def with_runs(node: Node, seed: int = 1) -> Node:
    """The same answer with made-up runs of all kinds."""
    dice, runs = random.Random(seed), list[Run]()
    for channel, text in (("thought", node.thought), ("answer", node.text)):
        place = 0
        while place < len(text):
            length = min(dice.randint(1, 9), len(text) - place)
            runs.append(Run(channel, length, dice.choice([0, 1, 2])))  # type: ignore[arg-type]
            place += length
    return msgspec.structs.replace(node, runs=tuple(runs))


def pieces(text: str, size: int = 7, channel: str = "answer", kind: int = 0) -> list[Piece]:
    """A text in pieces."""
    return [Piece(channel, text[at : at + size], kind) for at in range(0, len(text), size)]  # type: ignore[arg-type]


def shown(qtbot: QtBot, manager: ThemeManager | None = None, width: int = 900, height: int = 700) -> Transcript:
    """A transcript in a window."""
    view = Transcript(manager or ThemeManager())
    qtbot.addWidget(view)
    view.resize(width, height)
    view.show()
    qtbot.waitExposed(view)
    return view


def settle(qtbot: QtBot, view: Transcript) -> None:
    """Waits until everything that is done in portions is done."""
    qtbot.waitUntil(lambda: not view.busy, timeout=20_000)


def text_of(view: Transcript) -> str:
    """All that was said."""
    return text_between(view.document(), 0, view.document().characterCount())


def blocks(view: Transcript) -> list[QTextBlock]:
    """All blocks of the document."""
    found, block = [], view.document().firstBlock()
    while block.isValid():
        found.append(block)
        block = block.next()
    return found


def block_with(view: Transcript, words: str) -> QTextBlock:
    """The first block that holds these words."""
    return next(block for block in blocks(view) if words in block.text())


def looks(view: Transcript) -> list[object]:
    """What the document shows: each block with what decides how it looks; nothing that only keeps things apart."""
    found: list[object] = []
    for block in blocks(view):
        made = block.blockFormat()
        if block.text() in ("", "\u200b") and not made.property(PAINT):
            continue
        table = QTextCursor(block).currentTable() is not None
        found.append(
            (
                block.text(),
                made.property(PAINT),
                made.property(BARS),
                made.property(MARKER),
                made.headingLevel(),
                made.layoutDirection(),
                made.leftMargin(),
                0 if table else made.topMargin(),
                [re.sub(r"code/\d+", "code/1", href) for _, _, href, _ in links_of(block)],
            )
        )
    return found


def links(view: Transcript, act: str = "") -> list[Link]:
    """The links in the document, all or those that do something."""
    found = [link for block in blocks(view) for link in links_of(block)]
    return [link for link in found if not act or link.href.startswith(f"{ACTS}{act}/")]


def point_of(view: Transcript, link: Link) -> QPoint:
    """A point inside a link, in the viewport."""
    cursor = QTextCursor(view.document())
    cursor.setPosition(link.start)
    left = view.cursorRect(cursor)
    cursor.setPosition(link.start + 1)
    right = view.cursorRect(cursor)
    return QPoint((left.left() + right.left()) // 2, left.center().y())


def click(qtbot: QtBot, view: Transcript, link: Link) -> None:
    """Brings a link into view and clicks on it."""
    view.show_position(link.start)
    qtbot.mouseMove(view.viewport(), point_of(view, link))
    qtbot.mouseClick(view.viewport(), Qt.MouseButton.LeftButton, pos=point_of(view, link))


def hit(qtbot: QtBot, view: Transcript, act: str) -> None:
    """Clicks on the first link that does something."""
    click(qtbot, view, links(view, act)[0])
