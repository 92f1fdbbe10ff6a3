"""How a row of the list of chats looks, and the field in which one is renamed."""

from __future__ import annotations

from typing import Any, Final, cast

from PySide6.QtCore import (
    QAbstractItemModel,
    QEvent,
    QModelIndex,
    QObject,
    QPersistentModelIndex,
    QPointF,
    QRect,
    QSize,
    Qt,
)
from PySide6.QtGui import QFont, QFontMetrics, QKeyEvent, QPainter, QPen, QTextCharFormat, QTextLayout, QTextOption
from PySide6.QtWidgets import QStyle, QStyledItemDelegate, QStyleOptionViewItem, QWidget

from tandem.ui import icons
from tandem.ui.composer_ime import ComposingLineEdit
from tandem.ui.sidebar_model import LONGEST_TITLE, ChatModel
from tandem.ui.sidebar_rows import Row, utf16
from tandem.ui.theme import ThemeManager

_Index = QModelIndex | QPersistentModelIndex

EXCERPT_LINES: Final = 2


class RowDelegate(QStyledItemDelegate):
    """Paints headings, chats and hits.

    Args:
        manager: Colours, sizes and fonts.
        model: The rows.
        parent: The list.
    """

    def __init__(self, manager: ThemeManager, model: ChatModel, parent: QWidget) -> None:
        super().__init__(parent)
        self._manager = manager
        self._chats = model
        self._measure()
        manager.changed.connect(self._measure)

    def _measure(self) -> None:
        """Takes fonts and heights from the theme. A line is as high as Korean needs it, whatever it holds."""
        manager = self._manager
        self._body = manager.font("body")
        self._strong = manager.font("body", bold=True)
        self._small = manager.font("small")
        self._small_strong = manager.font("small", bold=True)
        self._title_line = manager.px(20)
        self._small_line = manager.px(18)
        pad = 2 * manager.px(8)
        gap = manager.px(2)
        heights = {
            "heading": manager.px(32),
            "chat": self._title_line + self._small_line + pad + gap,
            "hit": self._title_line + EXCERPT_LINES * self._small_line + pad + gap,
        }
        self._sizes = {kind: QSize(manager.px(120), height) for kind, height in heights.items()}

    def more_rect(self, rect: QRect) -> QRect:
        """Where in a row's rectangle the button "…" is."""
        edge = self._manager.px(26)
        return QRect(rect.right() - self._manager.px(14) - edge, rect.top() + self._manager.px(5), edge, edge)

    def sizeHint(self, option: QStyleOptionViewItem, index: _Index) -> QSize:  # noqa: ARG002, N802 - Qt's
        """As high as its kind needs; the list gives the width."""
        # The list asks for every row whenever there is a new one, so this is as short as can be.
        return self._sizes[self._chats.rows[index.row()].kind]

    def paint(self, painter: QPainter, option: QStyleOptionViewItem, index: _Index) -> None:
        """Paints one row."""
        model = self._chats
        row = model.row(index)
        if row is None:
            return
        painter.save()
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        rect = cast("QRect", getattr(option, "rect"))  # noqa: B009 - unknown to the stubs
        if row.kind == "heading":
            self._paint_heading(painter, rect, model.heading(row))
        else:
            self._paint_row(painter, rect, cast("QStyle.StateFlag", getattr(option, "state")), row, model)  # noqa: B009
        painter.restore()

    def _paint_heading(self, painter: QPainter, rect: QRect, text: str) -> None:
        manager = self._manager
        inner = rect.adjusted(manager.px(18), 0, -manager.px(16), -manager.px(5))
        painter.setFont(self._small_strong)
        painter.setPen(manager.colour("muted"))
        shown = QFontMetrics(self._small_strong).elidedText(text, Qt.TextElideMode.ElideRight, inner.width())
        painter.drawText(inner, Qt.AlignmentFlag.AlignLeading | Qt.AlignmentFlag.AlignBottom, shown)

    def _paint_row(self, painter: QPainter, rect: QRect, state: QStyle.StateFlag, row: Row, model: ChatModel) -> None:
        manager = self._manager
        is_open = row.conversation == model.open_chat
        hover = bool(state & QStyle.StateFlag.State_MouseOver)
        focus = bool(state & QStyle.StateFlag.State_HasFocus)
        box = rect.adjusted(manager.px(8), 1, -manager.px(8), -1)
        radius = manager.theme.radius.m
        if is_open or hover:
            painter.setPen(Qt.PenStyle.NoPen)
            painter.setBrush(manager.colour("accent_soft" if is_open else "hover"))
            painter.drawRoundedRect(box, radius, radius)
        if is_open:
            # Not by colour alone: the bar says it too.
            painter.setBrush(manager.colour("accent"))
            height = box.height() - 2 * manager.px(12)
            painter.drawRoundedRect(QRect(box.left(), box.top() + manager.px(12), manager.px(3), height), 1.5, 1.5)
        if focus:
            painter.setPen(QPen(manager.colour("focus"), 2))
            painter.setBrush(Qt.BrushStyle.NoBrush)
            painter.drawRoundedRect(box.adjusted(1, 1, -1, -1), radius - 1, radius - 1)
        inner = box.adjusted(manager.px(10), manager.px(7), -manager.px(10), -manager.px(7))
        quiet = "muted" if is_open or hover else "faint"
        # A chat without a message yet has one line, in the middle.
        top = inner.top() if row.text else inner.center().y() - self._title_line // 2
        line = QRect(inner.left(), top, inner.width(), self._title_line)
        if hover or focus:
            used = rect.right() - self.more_rect(rect).left() - manager.px(18)
            self._paint_more(painter, self.more_rect(rect))
        else:
            used = self._paint_when(painter, line, quiet, model.when(row))
        font = self._strong if row.kind == "hit" else self._body
        painter.setPen(manager.colour("text" if row.title else "muted"))
        self._line(painter, font, line.adjusted(0, 0, -used - manager.px(8) if used else 0, 0), model.title(row))
        below = QRect(inner.left(), line.bottom() + 1 + manager.px(2), inner.width(), inner.bottom() - line.bottom())
        if row.kind == "hit":
            self._paint_excerpt(painter, below, row)
        elif row.text:
            painter.setPen(manager.colour("muted"))
            self._line(painter, self._small, below, row.text)

    def _line(self, painter: QPainter, font: QFont, rect: QRect, text: str) -> None:
        painter.setFont(font)
        shown = QFontMetrics(font).elidedText(text, Qt.TextElideMode.ElideRight, rect.width())
        flags = Qt.AlignmentFlag.AlignLeading | Qt.AlignmentFlag.AlignVCenter
        painter.drawText(rect, int(flags) | Qt.TextFlag.TextSingleLine, shown)

    def _paint_when(self, painter: QPainter, line: QRect, role: str, text: str) -> int:
        """Paints the time at the end of the title's line; returns its width."""
        painter.setFont(self._small)
        painter.setPen(self._manager.colour(role))
        painter.drawText(line, Qt.AlignmentFlag.AlignTrailing | Qt.AlignmentFlag.AlignVCenter, text)
        return QFontMetrics(self._small).horizontalAdvance(text)

    def _paint_more(self, painter: QPainter, rect: QRect) -> None:
        size = self._manager.theme.control.icon
        device = painter.device()
        ratio = device.devicePixelRatio() if device is not None else 1.0
        drawing = icons.pixmap("more", "muted", size, ratio, self._manager.theme)
        painter.drawPixmap(rect.center().x() + 1 - size // 2, rect.center().y() + 1 - size // 2, drawing)

    def _paint_excerpt(self, painter: QPainter, rect: QRect, row: Row) -> None:
        shown, raw = row.text, row.text.encode("utf-16-le")
        layout, end = self._laid_out(shown, row, rect.width())
        for _ in range(4):
            if 2 * end >= len(shown.encode("utf-16-le")):
                break
            # What is left out is said; the mark itself may need a word's room.
            shown = raw[: 2 * max(end - 1, 0)].decode("utf-16-le", "ignore").rstrip() + "…"
            layout, end = self._laid_out(shown, row, rect.width())
        painter.setPen(self._manager.colour("muted"))
        layout.draw(painter, QPointF(rect.topLeft()))

    def _laid_out(self, text: str, row: Row, width: int) -> tuple[QTextLayout, int]:
        """Sets the beginning of a row's text in as many lines as fit, its matches marked; and where they end."""
        layout = QTextLayout(text, self._small)
        option = QTextOption()
        option.setWrapMode(QTextOption.WrapMode.WrapAtWordBoundaryOrAnywhere)
        layout.setTextOption(option)
        found = QTextCharFormat()
        found.setBackground(self._manager.colour("find"))
        found.setForeground(self._manager.colour("text"))
        found.setFontWeight(QFont.Weight.DemiBold)
        formats = []
        for start, stop in row.ranges:
            part: Any = QTextLayout.FormatRange()  # the stubs know none of its fields
            part.start = utf16(row.text, start)
            part.length = utf16(row.text, stop) - part.start
            part.format = found
            formats.append(part)
        layout.setFormats(formats)
        layout.beginLayout()
        end = 0
        for number in range(EXCERPT_LINES):
            line = layout.createLine()
            if not line.isValid():
                break
            line.setLineWidth(width)
            line.setPosition(QPointF(0, number * self._small_line))
            end = line.textStart() + line.textLength()
        layout.endLayout()
        return layout, end

    def createEditor(self, parent: QWidget, option: QStyleOptionViewItem, index: _Index) -> QWidget:  # noqa: ARG002, N802 - Qt's
        """The field for a new name."""
        field = ComposingLineEdit(parent)
        field.setObjectName("rename")
        field.setAccessibleName(self.tr("Name of the chat"))
        field.setMaxLength(LONGEST_TITLE)
        field.setFont(self._body)
        return field

    def setEditorData(self, editor: QWidget, index: _Index) -> None:  # noqa: N802 - Qt's name
        """Fills in the name as it is."""
        field = cast("ComposingLineEdit", editor)
        # Qt asks again when the row's data change: what was typed meanwhile stays.
        if not field.isModified():
            field.setText(str(index.data(Qt.ItemDataRole.EditRole) or ""))
            field.selectAll()

    def setModelData(self, editor: QWidget, model: QAbstractItemModel, index: _Index) -> None:  # noqa: N802 - Qt's name
        """Hands over what was typed."""
        model.setData(index, cast("ComposingLineEdit", editor).text(), Qt.ItemDataRole.EditRole)

    def updateEditorGeometry(self, editor: QWidget, option: QStyleOptionViewItem, index: _Index) -> None:  # noqa: ARG002, N802 - Qt's
        """Puts the field over the row's whole box: nothing of the row peeps out around it."""
        rect = cast("QRect", getattr(option, "rect"))  # noqa: B009 - unknown to the stubs
        side = self._manager.px(8)
        editor.setGeometry(rect.adjusted(side, 1, -side, -1))

    def eventFilter(self, editor: QObject, event: QEvent) -> bool:  # noqa: N802 - Qt's name
        """Enter ends the renaming, unless it belongs to an input method."""
        if (
            event.type() == QEvent.Type.KeyPress
            and isinstance(editor, ComposingLineEdit)
            and editor.holds(cast("QKeyEvent", event))
        ):
            return True
        return cast("bool", cast("Any", super()).eventFilter(editor, event))
