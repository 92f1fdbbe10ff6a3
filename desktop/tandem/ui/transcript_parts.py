"""The parts of a message besides its text: who speaks, the bubble, notes, the failure card, figures and actions."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import Final

from PySide6.QtCore import QCoreApplication, QLocale, Qt
from PySide6.QtGui import QFont, QTextBlockFormat, QTextCharFormat, QTextCursor, QTextImageFormat

from tandem.chat.conversation import Node
from tandem.errors import PromptTooLong
from tandem.ui.errors_text import localised
from tandem.ui.figures import figures_line, figures_tip
from tandem.ui.i18n import duration
from tandem.ui.markdown import right_to_left, visible
from tandem.ui.transcript_blocks import pin, unpin
from tandem.ui.transcript_look import ACTS, CHROME, GROUP, PAINT, Look, Paint, link
from tandem.ui.transcript_writer import Writer

SHORT: Final = 3_000
"""Characters of a user's message that are shown whole."""
SHORT_LINES: Final = 40
FOLDED: Final = 1_500
"""Characters that are shown of a longer one."""
FOLDED_LINES: Final = 16
LONGEST_LINE: Final = 4_000
"""Characters of a line that are laid out as one paragraph."""

_groups = itertools.count(1 << 20)


def speaker(writer: Writer, role: str) -> None:
    """The first block of a message, for those who cannot see the bubble: who speaks. It takes no room."""
    look, translate = writer.look, QCoreApplication.translate
    block, chars = look.thin()
    block.setTopMargin(look.theme.px(22))
    chars.setForeground(look.theme.colour("window"))
    writer.block(block, chars)
    words = translate("Transcript", "You said:") if role == "user" else translate("Transcript", "Answer:")
    writer.cursor.insertText(words, chars)
    writer.place = writer.place._replace(first=True)


def separator(writer: Writer) -> None:
    """A block without height, which keeps two texts that grow apart."""
    block, chars = writer.look.thin()
    place = writer.place
    writer.block(block, chars)
    writer.cursor.insertText("\u200b", chars)
    writer.place = writer.place._replace(first=place.first)


def folded(text: str) -> str:
    """The beginning of a long message; the message itself when it is short."""
    if len(text) <= SHORT and text.count("\n") < SHORT_LINES:
        return text
    return "\n".join(text[:FOLDED].split("\n")[:FOLDED_LINES])


def bubble_margin(look: Look, lines: Sequence[str]) -> int:
    """The left margin that puts a bubble around these lines at the right edge."""
    widest = look.column * 0.82 - 2 * look.bubble_pad
    longest = widest if any(len(line) > 240 for line in lines) else max(map(look.advance, lines), default=0.0) + 2
    return round(look.column - look.bubble_pad - min(max(longest, look.em), widest))


class Bubble:
    """A user's message; its lines are written one by one, so that a very long one can be written in portions."""

    def __init__(self, writer: Writer, text: str, whole: str) -> None:
        self._writer = writer
        self._lines = text.split("\n")
        self._margin = bubble_margin(writer.look, self._lines if len(text) < SHORT else [whole[:1000] * 2])
        self._group = next(_groups)
        self._at = 0

    def write(self, most: int = 1 << 30) -> bool:
        """Writes lines of up to so many characters; gives whether there are more."""
        writer, look = self._writer, self._writer.look
        chars = look.chars()
        while self._at < len(self._lines) and most > 0:
            line = self._lines[self._at]
            for start in range(0, max(len(line), 1), LONGEST_LINE):
                writer.block(self._block(right_to_left(line), first=not self._at and not start), chars)
                writer.cursor.insertText(line[start : start + LONGEST_LINE], chars)
            self._at += 1
            most -= len(line) + 1
        writer.place = writer.place._replace(owed=look.bubble_pad_y)
        return self._at < len(self._lines)

    def rest(self, most: int, foot: tuple[str, str] | None) -> Iterator[None]:
        """Writes the rest in portions of about so many characters, and then the foot."""
        cursor, more = self._writer.cursor, True
        while more:
            unpin(cursor)
            more = self.write(most)
            if not more and foot is not None:
                self.foot(*foot)
            pin(cursor)
            yield

    def foot(self, words: str, href: str) -> None:
        """A link inside the bubble, below the text."""
        writer, look = self._writer, self._writer.look
        writer.place = writer.place._replace(owed=0)
        block = self._block(False, first=False)
        block.setTopMargin(look.theme.px(4))
        block.setProperty(CHROME, True)
        chars = _linked(look, href, "accent", look.theme.type.small)
        writer.block(block, chars)
        writer.cursor.insertText(words, chars)
        writer.place = writer.place._replace(owed=look.bubble_pad_y)

    def _block(self, rtl: bool, first: bool) -> QTextBlockFormat:
        look = self._writer.look
        block = look.block(look.bubble_pad_y if first else 0, self._margin, look.bubble_pad, rtl=rtl)
        block.setProperty(PAINT, int(Paint.BUBBLE))
        block.setProperty(GROUP, self._group)
        return block


def expander(node: Node, is_open: bool) -> tuple[str, str]:
    """Words and address of the link that shows all of a message, or less."""
    translate = QCoreApplication.translate
    if is_open:
        return translate("Transcript", "Show less"), f"{ACTS}fold/{node.id}"
    size = QLocale().toString(len(node.text))
    return translate("Transcript", "Show all ({number} characters)").format(number=size), f"{ACTS}expand/{node.id}"


def thought_words(node: Node, streaming: bool) -> str:
    """What stands on the line of a thought."""
    translate = QCoreApplication.translate
    if streaming and not node.text:
        return translate("Transcript", "Thinking …")
    tokens = node.figures.stats.thought.generated if node.figures is not None else 0
    words = translate("Transcript", "Thought")
    if node.thought_s is not None:
        words = translate("Transcript", "Thought for {time}").format(time=duration(node.thought_s))
    return f"{words} · {translate('Transcript', '%n token(s)', '', tokens)}" if tokens else words


def thought_line(writer: Writer, node: Node, words: str, is_open: bool) -> QTextCursor:
    """The line that opens and closes the thought; gives a cursor that stays in front of its words."""
    look, translate = writer.look, QCoreApplication.translate
    block = look.block(leading=round(look.theme.type.body * 1.7))
    block.setProperty(CHROME, True)
    tip = translate("Transcript", "Hide the thought") if is_open else translate("Transcript", "Show the thought")
    chars = _linked(look, f"{ACTS}thought/{node.id}", "muted", look.theme.type.body, tip)
    writer.block(block, chars)
    for icon in ("chevron-down" if is_open else "chevron-right", "thinking"):
        writer.cursor.insertImage(_image(look, icon, chars))
        writer.cursor.insertText("\u00a0", chars)
    before = QTextCursor(writer.cursor)
    pin(before)
    writer.cursor.insertText(words, chars)
    return before


def waiting_words() -> str:
    """What stands where an answer will, before anything has come."""
    return QCoreApplication.translate("Transcript", "Working …")


def ending(node: Node) -> str:
    """A note that says how an answer ended, where that needs one."""
    translate = QCoreApplication.translate
    if node.state == "streaming":
        return ""
    said = {
        "stopped": translate("Transcript", "Stopped."),
        "limit": translate("Transcript", "The answer reached its longest length and ends here."),
        "context": translate("Transcript", "The context is full; the answer ends here."),
        "interrupted": translate("Transcript", "Tandem ended while this answer was being written."),
    }.get(node.state, "")
    if not node.text.strip() and node.state == "done":
        thought = translate("Transcript", "The answer is empty; all that came is in the thought.")
        said = thought if node.thought.strip() else translate("Transcript", "The answer is empty.")
    if node.figures is not None and node.figures.dropped:
        left = translate("Transcript", "%n older message(s) did not fit in the context.", "", node.figures.dropped)
        said = f"{said} {left}".strip()
    return said


def note(writer: Writer, words: str, icon: str = "info") -> None:
    """A quiet line, with an icon unless that is ""."""
    look = writer.look
    small = look.theme.type.small
    block = look.block(look.theme.px(8), leading=round(small * 1.6))
    block.setProperty(CHROME, True)
    chars = look.chars("muted", small)
    writer.block(block, chars)
    if icon:
        writer.cursor.insertImage(look.image(icon, "muted", look.theme.px(14)))
        words = f"\u00a0\u00a0{words}"
    writer.cursor.insertText(words, chars)


def failure(writer: Writer, node: Node) -> None:
    """The card that says why an answer failed and what can be done."""
    look, translate = writer.look, QCoreApplication.translate
    sentence, remedy = localised(node.problem, node.remedy)
    group, pad = next(_groups), look.card_pad

    def line(above: int) -> QTextBlockFormat:
        block = look.block(above, pad, pad)
        block.setProperty(PAINT, int(Paint.FAILURE))
        block.setProperty(GROUP, group)
        block.setProperty(CHROME, True)
        return block

    strong = look.chars("bad", look.theme.type.body, QFont.Weight.DemiBold)
    writer.block(line(look.gap + pad), strong)
    writer.cursor.insertImage(look.image("warning", "bad", look.icon))
    shown = visible(sentence).replace("\n", " ") or translate("Transcript", "The answer failed.")
    writer.cursor.insertText(f"\u00a0\u00a0{shown}", strong)
    if remedy:
        chars = look.chars("", look.theme.type.body)
        writer.block(line(look.theme.px(2)), chars)
        writer.cursor.insertText(visible(remedy).replace("\n", " "), chars)
    ways = [
        ("retry", translate("Transcript", "Try again")),
        ("retry-without-drafter", translate("Transcript", "Try without the drafter")),
        ("retry-smaller-context", translate("Transcript", "Try with a smaller context")),
    ]
    if PromptTooLong.said(node.problem):  # the same again, or less room, cannot help
        ways = [("edit-question", translate("Transcript", "Edit the message"))]
    plain = look.chars("faint", look.theme.type.body)
    writer.block(line(look.theme.px(6)), plain)
    for at, (act, words) in enumerate(ways):
        if at:
            writer.cursor.insertText("   ·   ", plain)
        writer.cursor.insertText(words, _linked(look, f"{ACTS}{act}/{node.id}", "accent", look.theme.type.body))
    writer.place = writer.place._replace(owed=pad)


def figures(writer: Writer, node: Node) -> None:
    """The quiet line of figures; hovering, or Enter on it, gives what they mean."""
    if node.figures is None:
        return
    words = figures_line(node.figures)
    if not words:
        return
    look = writer.look
    block = look.block(look.theme.px(10), leading=round(look.theme.type.small * 1.6))
    block.setProperty(CHROME, True)
    chars = _linked(look, f"{ACTS}figures/{node.id}", "faint", look.theme.type.small, figures_tip(node.figures))
    chars.setFontUnderline(False)
    writer.block(block, chars)
    writer.cursor.insertText(words, chars)


def actions(writer: Writer, node: Node, branch: tuple[int, int] | None) -> None:
    """The icons below a message, each a link, and the switch between its versions."""
    look, translate = writer.look, QCoreApplication.translate
    user = node.role == "user"
    block = look.block(look.theme.px(4), leading=look.theme.px(26))
    block.setProperty(CHROME, True)
    if user:
        block.setAlignment(Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignAbsolute)
    plain = look.chars("faint", look.theme.type.small)
    writer.block(block, plain)
    entries = [("copy", "copy", translate("Transcript", "Copy"))]
    if user:
        entries.append(("edit", "edit", translate("Transcript", "Edit")))
    else:
        entries.append(("regenerate", "refresh", translate("Transcript", "Answer again")))
    for at, (act, icon, tip) in enumerate(entries):
        if at:
            writer.cursor.insertText("\u00a0\u00a0\u00a0", plain)
        _icon_link(writer, act, icon, tip, node)
    if branch is not None:
        number, count = branch
        writer.cursor.insertText("\u00a0\u00a0\u00a0", plain)
        if number > 1:
            _icon_link(writer, "previous", "chevron-left", translate("Transcript", "Previous version"), node)
        locale = QLocale()
        writer.cursor.insertText(f"\u00a0{locale.toString(number)}/{locale.toString(count)}\u00a0", plain)
        if number < count:
            _icon_link(writer, "next", "chevron-right", translate("Transcript", "Next version"), node)


def _icon_link(writer: Writer, act: str, icon: str, tip: str, node: Node) -> None:
    look = writer.look
    made = link(look.image(icon, "muted", look.icon), f"{ACTS}{act}/{node.id}", tip)
    writer.cursor.insertImage(made.toImageFormat())


def _image(look: Look, icon: str, chars: QTextCharFormat) -> QTextImageFormat:
    made = link(look.image(icon, "muted", look.icon), chars.anchorHref(), chars.toolTip())
    return made.toImageFormat()


def _linked(look: Look, href: str, role: str, size: int, tip: str = "") -> QTextCharFormat:
    return link(look.chars(role, size), href, tip)
