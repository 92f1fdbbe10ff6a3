"""The view of the drafted tokens: an answer's text exactly as it came, with what the verify passes said about it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from PySide6.QtCore import QEvent, QPointF, QRectF, QSize, Qt
from PySide6.QtGui import QFontMetricsF, QPainter, QPaintEvent, QPen, QTextBlockFormat, QTextCharFormat
from PySide6.QtWidgets import QSizePolicy, QWidget

from tandem.chat.conversation import ACCEPTED, REJECTED
from tandem.ui.markdown import visible
from tandem.ui.session_state import Piece
from tandem.ui.theme import ThemeManager
from tandem.ui.transcript_blocks import Place, pin, unpin
from tandem.ui.transcript_look import Look
from tandem.ui.transcript_writer import Writer

LONGEST_BLOCK: Final = 1_600
"""Characters after which a paragraph goes on in another block, so that what is laid out again stays small."""
PORTION: Final = 800
"""Pieces that are added at a stretch when the text is there already."""
_SAMPLE: Final = 26
_GAP: Final = 7
_BETWEEN: Final = 20
_LINE: Final = 24
_PAD: Final = 10
"""Sizes in the legend, in pixels at 100 %."""
_SPACE: Final = re.compile(r"\s")


def token_formats(look: Look, role: str = "") -> dict[int, QTextCharFormat]:
    """The character formats of a piece's kinds: a line and a tint, dots, nothing. Never colour alone."""
    own, accepted, rejected = look.chars(role), look.chars(role), look.chars(role)
    accepted.setBackground(look.theme.colour("drafted_bg"))
    accepted.setUnderlineStyle(QTextCharFormat.UnderlineStyle.SingleUnderline)
    accepted.setUnderlineColor(look.theme.colour("drafted_line"))
    rejected.setUnderlineStyle(QTextCharFormat.UnderlineStyle.DotLine)
    rejected.setUnderlineColor(look.theme.colour("rejected_line"))
    return {ACCEPTED: accepted, REJECTED: rejected, 0: own}


class DraftedFlow:
    """Shows pieces of text as they come; nothing is ever written again.

    Args:
        writer: Stands where the text is to begin.
        role: Colour of the text; "" for the usual one.
    """

    def __init__(self, writer: Writer, role: str = "") -> None:
        self._writer = writer
        self._formats = token_formats(writer.look, role)
        self._length = -1  # of the block; -1 before the first
        pin(writer.cursor)

    @property
    def place(self) -> Place:
        """What a block behind it has to know."""
        return self._writer.place

    def add(self, pieces: Iterable[Piece]) -> None:
        """Adds pieces at the end."""
        writer = self._writer
        unpin(writer.cursor)
        for piece in pieces:
            chars = self._formats.get(piece.kind, self._formats[0])
            for number, line in enumerate(visible(piece.text).split("\n")):
                if number or self._length < 0:
                    self._begin(self._length < 0)
                self._insert(line, chars)
        pin(writer.cursor)

    def fill(self, pieces: Sequence[Piece]) -> Iterator[None]:
        """Adds the pieces of a complete text in portions."""
        for start in range(0, len(pieces), PORTION):
            self.add(pieces[start : start + PORTION])
            yield

    def _insert(self, text: str, chars: QTextCharFormat) -> None:
        while self._length + len(text) > LONGEST_BLOCK:
            room = max(LONGEST_BLOCK - self._length, 0)
            gap = _SPACE.search(text, min(room, len(text)))
            end = gap.end() if gap and gap.end() < room + 200 else room
            if end >= len(text) and self._length + len(text) < LONGEST_BLOCK + 200:
                break
            self._writer.cursor.insertText(text[:end], chars)
            text = text[end:]
            self._begin(False)
        self._writer.cursor.insertText(text, chars)
        self._length += len(text)

    def _begin(self, first: bool) -> None:
        look = self._writer.look
        block = look.block(look.gap if first else 0, left=self._writer.indent)
        block.setLayoutDirection(Qt.LayoutDirection.LayoutDirectionAuto)
        self._writer.block(QTextBlockFormat(block), self._formats[0])
        self._length = 0


class Legend(QWidget):
    """What the lines and tints mean, above the transcript while they are shown."""

    def __init__(self, manager: ThemeManager, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._manager = manager
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self.setAutoFillBackground(False)
        self._retranslate()
        manager.changed.connect(self.updateGeometry)

    def changeEvent(self, event: QEvent) -> None:  # noqa: N802 - Qt's name
        """Follows the language."""
        if event.type() == QEvent.Type.LanguageChange:
            self._retranslate()
        super().changeEvent(event)

    def entries(self) -> list[tuple[int, str]]:
        """Kinds and their names."""
        return [
            (ACCEPTED, self.tr("accepted draft")),
            (0, self.tr("target's own token")),
            (REJECTED, self.tr("draft rejected here")),
        ]

    def heightForWidth(self, width: int) -> int:  # noqa: N802 - Qt's name
        """As many lines of small text as it takes at a width, in pixels."""
        return self._manager.px(_LINE) * len(self.lines(width)) + self._manager.px(_PAD)

    def sizeHint(self) -> QSize:  # noqa: N802 - Qt's name
        """A line of small text."""
        return QSize(200, self._manager.px(_LINE + _PAD))

    def lines(self, width: int) -> list[list[tuple[int, str, float]]]:
        """The entries, each with its width, in lines that are no wider than this unless an entry is."""
        theme, metrics = self._manager.theme, QFontMetricsF(self._manager.font("small"))
        found: list[list[tuple[int, str, float]]] = []
        left = 0.0
        for kind, text in self.entries():
            wanted = theme.px(_SAMPLE) + theme.px(_GAP) + metrics.horizontalAdvance(text)
            if not found or wanted > left:
                found.append([])
                left = width - 2 * theme.px(_GAP)
            found[-1].append((kind, text, wanted))
            left -= wanted + theme.px(_BETWEEN)
        return found

    def paintEvent(self, _event: QPaintEvent) -> None:  # noqa: N802 - Qt's name
        """Samples and names, in the middle, in as many lines as they take."""
        with QPainter(self) as painter:
            self._paint(painter)

    def _paint(self, painter: QPainter) -> None:
        theme = self._manager.theme
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.fillRect(self.rect(), theme.colour("window"))
        painter.setPen(theme.colour("line"))
        painter.drawLine(0, self.height() - 1, self.width(), self.height() - 1)
        font = self._manager.font("small")
        painter.setFont(font)
        metrics = QFontMetricsF(font)
        sample, gap, between = theme.px(_SAMPLE), theme.px(_GAP), theme.px(_BETWEEN)
        lines = self.lines(self.width())
        for place, line in enumerate(lines):
            middle = self.height() / 2 + (place - (len(lines) - 1) / 2) * theme.px(_LINE)
            x = max((self.width() - sum(width for *_, width in line) - between * (len(line) - 1)) / 2, gap)
            for kind, text, width in line:
                self._sample(painter, QRectF(x, middle - theme.px(15) / 2, sample, theme.px(15)), kind)
                painter.setPen(theme.colour("muted"))
                painter.drawText(QPointF(x + sample + gap, middle + (metrics.ascent() - metrics.descent()) / 2), text)
                x += width + between

    def _sample(self, painter: QPainter, box: QRectF, kind: int) -> None:
        theme = self._manager.theme
        if kind == ACCEPTED:
            painter.fillRect(box, theme.colour("drafted_bg"))
        line = {
            ACCEPTED: QPen(theme.colour("drafted_line"), theme.px(1)),
            REJECTED: QPen(theme.colour("rejected_line"), theme.px(1), Qt.PenStyle.DotLine),
        }.get(kind)
        painter.setPen(theme.colour("text"))
        painter.drawText(box.adjusted(0, -1, 0, -1), Qt.AlignmentFlag.AlignCenter, "abc")
        if line is not None:
            painter.setPen(line)
            painter.drawLine(QPointF(box.left(), box.bottom() - 1), QPointF(box.right(), box.bottom() - 1))

    def _retranslate(self) -> None:
        self.setAccessibleName(self.tr("Legend"))
        self.setAccessibleDescription(
            self.tr(
                "Underlined on a tint: accepted draft. Plain: target's own token. "
                "Dotted underline: draft rejected here."
            )
        )
        self.update()
