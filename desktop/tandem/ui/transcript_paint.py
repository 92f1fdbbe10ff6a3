"""What lies behind the transcript's text: bubbles, cards, the lines of quotes; and the rings around links."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from PySide6.QtCore import QPointF, QRectF, Qt
from PySide6.QtGui import QColor, QPainter, QPen, QTextBlock, QTextDocument

from tandem.ui.transcript_look import BARS, GROUP, PAINT, Look, Paint

_BEYOND: Final = 64.0
"""Pixels by which a background that goes on outside the window reaches out of it."""


class _Ground:
    """A background that grows block by block; in the document's coordinates."""

    def __init__(self, paint: Paint, group: object, rect: QRectF) -> None:
        self.paint = paint
        self.group = group
        self.rect = rect


def visible_blocks(document: QTextDocument, x: float, top: float, bottom: float) -> Iterator[tuple[QTextBlock, QRectF]]:
    """The blocks between two heights of the document, with the boxes of their lines; a few more may come."""
    layout = document.documentLayout()
    position = layout.hitTest(QPointF(x, top), Qt.HitTestAccuracy.FuzzyHit)
    block = document.findBlock(max(position, 0))
    if block.previous().isValid():
        block = block.previous()
    while block.isValid():
        rect = layout.blockBoundingRect(block)
        lines = block.layout()
        if lines.lineCount():
            last = lines.lineAt(lines.lineCount() - 1)
            rect.setBottom(rect.top() + last.y() + last.height())
        if rect.top() > bottom:
            return
        yield block, rect
        block = block.next()


def paint_grounds(
    painter: QPainter, document: QTextDocument, look: Look, left: float, top: float, bottom: float
) -> None:
    """Draws what lies behind the blocks between two heights.

    Args:
        painter: In the document's coordinates.
        document: The document.
        look: Colours and distances.
        left: The column's left edge.
        top: Upper edge of what is to be drawn.
        bottom: Lower edge.
    """
    painter.setRenderHint(QPainter.RenderHint.Antialiasing)
    painter.setPen(Qt.PenStyle.NoPen)
    ground: _Ground | None = None
    for block, rect in visible_blocks(document, left + 1, top, bottom):
        made = block.blockFormat()
        paint = made.property(PAINT) or 0
        group = made.property(GROUP)
        if ground is not None and (not paint or group != ground.group):
            _draw(painter, ground, look)
            ground = None
        if paint == Paint.RULE:
            middle = rect.center().y()
            painter.fillRect(QRectF(left, middle, look.column, 1), look.theme.colour("line"))
        elif paint:
            box = _box(Paint(paint), block, rect, look, left)
            if ground is None:
                before = block.previous()
                if before.isValid() and before.blockFormat().property(GROUP) == group:
                    box.setTop(box.top() - _BEYOND)
                ground = _Ground(Paint(paint), group, box)
            else:
                ground.rect.setBottom(box.bottom())
            following = block.next()
            if rect.bottom() > bottom and following.isValid() and following.blockFormat().property(GROUP) == group:
                ground.rect.setBottom(rect.bottom() + _BEYOND)
        if made.hasProperty(BARS):
            _bars(painter, block, rect, str(made.property(BARS)), look, left)
    if ground is not None:
        _draw(painter, ground, look)


def _box(paint: Paint, block: QTextBlock, rect: QRectF, look: Look, left: float) -> QRectF:
    """The background's box around one block."""
    pad, above, below = look.card_pad, look.theme.px(7), look.card_pad
    if paint is Paint.BUBBLE:
        pad, above, below = look.bubble_pad, look.bubble_pad_y - look.theme.px(3), look.bubble_pad_y
    elif paint is Paint.FAILURE:
        above = look.card_pad - look.theme.px(3)
    made = block.blockFormat()
    return QRectF(
        QPointF(left + made.leftMargin() - pad, rect.top() - above),
        QPointF(left + look.column - made.rightMargin() + pad, rect.bottom() + below),
    )


def _draw(painter: QPainter, ground: _Ground, look: Look) -> None:
    fill, line, radius = {
        Paint.BUBBLE: ("user_bubble", "", look.theme.px(16)),
        Paint.CODE: ("code_bg", "line", look.theme.radius.l),
        Paint.FAILURE: ("bad_soft", "bad", look.theme.radius.l),
    }[ground.paint]
    painter.setBrush(look.theme.colour(fill))
    rect = ground.rect
    if line:
        colour = QColor(look.theme.colour(line))
        colour.setAlphaF(0.4 if line == "bad" else 1.0)
        painter.setPen(QPen(colour, 1))
        rect = rect.adjusted(0.5, 0.5, -0.5, -0.5)
    painter.drawRoundedRect(rect, radius, radius)
    painter.setPen(Qt.PenStyle.NoPen)


def _bars(painter: QPainter, block: QTextBlock, rect: QRectF, bars: str, look: Look, left: float) -> None:
    before = block.previous()
    above = str(before.blockFormat().property(BARS) or "").split(",") if before.isValid() else []
    paint = block.blockFormat().property(PAINT) or 0
    below = look.card_pad if paint else 0
    width = look.theme.px(3)
    for bar in bars.split(","):
        place = int(bar)
        x = left + place if place >= 0 else left + look.column + place + 1 - width
        top = rect.top() - (block.blockFormat().topMargin() if bar in above else 0)
        painter.fillRect(QRectF(x, top - 0.5, width, rect.bottom() - top + below + 1), look.theme.colour("line"))
