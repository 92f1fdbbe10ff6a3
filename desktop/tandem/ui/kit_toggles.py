"""What stays on or off: the chip and the switch."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from PySide6.QtCore import QEvent, QPointF, QRectF, QSize, Qt
from PySide6.QtGui import QColor, QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QAbstractButton, QCheckBox, QSizePolicy, QWidget

from tandem.ui import icons
from tandem.ui.kit_base import EnterPresses, draw_focus

if TYPE_CHECKING:
    from PySide6.QtGui import QEnterEvent

    from tandem.ui.theme import Theme, ThemeManager

TINY_SWITCH: Final = QSize(22, 12)
SWITCH: Final = QSize(38, 22)


class ToggleChip(EnterPresses, QAbstractButton):
    """A pill with icon, text and a small switch: on or off by the knob's place, not by colour alone."""

    def __init__(self, manager: ThemeManager, icon: str, text: str, *, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._manager, self._icon = manager, icon
        self.setCheckable(True)
        self.setText(text)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setCursor(Qt.CursorShape.PointingHandCursor)
        self.setSizePolicy(QSizePolicy.Policy.Maximum, QSizePolicy.Policy.Fixed)
        self.setAttribute(Qt.WidgetAttribute.WA_Hover)
        manager.changed.connect(self._retheme)
        self._retheme()

    def set_icon(self, icon: str) -> None:
        """Shows another drawing."""
        self._icon = icon
        self.update()

    def sizeHint(self) -> QSize:  # noqa: N802 - Qt's name
        """Room for icon, text and switch, in logical pixels."""
        theme = self._manager.theme
        text = self.fontMetrics().horizontalAdvance(self.text())
        switch = theme.px(TINY_SWITCH.width())
        width = theme.space.m * 2 + theme.px(16) + theme.px(6) + text + theme.space.s + switch
        return QSize(width, theme.px(30))

    def minimumSizeHint(self) -> QSize:  # noqa: N802 - Qt's name
        """The same: the text is never cut."""
        return self.sizeHint()

    def paintEvent(self, event: QPaintEvent) -> None:  # noqa: N802, ARG002 - Qt's name and signature
        """Draws the pill."""
        theme = self._manager.theme
        with QPainter(self) as painter:
            painter.setRenderHint(QPainter.RenderHint.Antialiasing)
            on, able = self.isChecked(), self.isEnabled()
            rect = QRectF(self.rect()).adjusted(0.5, 0.5, -0.5, -0.5)
            fill, line = _chip_colours(self, theme)
            painter.setPen(QPen(line, 1))
            painter.setBrush(fill)
            painter.drawRoundedRect(rect, rect.height() / 2, rect.height() / 2)
            role = "disabled" if not able else "accent" if on else "muted"
            x = theme.space.m
            edge = theme.px(16)
            ratio = self.devicePixelRatioF()
            painter.drawPixmap(
                QPointF(x, (self.height() - edge) / 2), icons.pixmap(self._icon, role, edge, ratio, theme)
            )
            x += edge + theme.px(6)
            switch = QSize(theme.px(TINY_SWITCH.width()), theme.px(TINY_SWITCH.height()))
            right = self.width() - theme.space.m - switch.width()
            painter.setPen(theme.colour("disabled" if not able else "text" if on else "muted"))
            painter.drawText(QRectF(x, 0, right - x, self.height()), Qt.AlignmentFlag.AlignVCenter, self.text())
            place = QRectF(right, (self.height() - switch.height()) / 2, switch.width(), switch.height())
            draw_switch(painter, place, theme, on=on, able=able)
            if self.hasFocus():
                draw_focus(painter, QRectF(self.rect()), self.height() / 2, theme.colour("focus"))

    def changeEvent(self, event: QEvent) -> None:  # noqa: N802 - Qt's name
        """Makes room for another font."""
        if event.type() in (QEvent.Type.FontChange, QEvent.Type.StyleChange):
            self.updateGeometry()
        super().changeEvent(event)

    def _retheme(self) -> None:
        self.setFont(self._manager.font("small"))
        self.updateGeometry()
        self.update()


class Switch(QCheckBox):
    """An on-off switch for settings; heard as a check box. Give it a name unless it shows text."""

    def __init__(self, manager: ThemeManager, name: str = "", *, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._manager = manager
        self.setAccessibleName(name)
        self.setCursor(Qt.CursorShape.PointingHandCursor)
        self.setSizePolicy(QSizePolicy.Policy.Fixed, QSizePolicy.Policy.Fixed)
        manager.changed.connect(self._retheme)

    def sizeHint(self) -> QSize:  # noqa: N802 - Qt's name
        """The switch and the room of its focus ring, in logical pixels."""
        theme = self._manager.theme
        return QSize(theme.px(SWITCH.width()) + 8, theme.px(SWITCH.height()) + 8)

    def minimumSizeHint(self) -> QSize:  # noqa: N802 - Qt's name
        """The same."""
        return self.sizeHint()

    def hitButton(self, pos: object) -> bool:  # noqa: N802, ARG002 - Qt's name and signature
        """All of it can be clicked."""
        return True

    def enterEvent(self, event: QEnterEvent) -> None:  # noqa: N802 - Qt's name
        """Shows that it can be used."""
        self.update()
        super().enterEvent(event)

    def paintEvent(self, event: QPaintEvent) -> None:  # noqa: N802, ARG002 - Qt's name and signature
        """Draws track and knob."""
        theme = self._manager.theme
        with QPainter(self) as painter:
            size = QSize(theme.px(SWITCH.width()), theme.px(SWITCH.height()))
            rect = QRectF(
                (self.width() - size.width()) / 2, (self.height() - size.height()) / 2, size.width(), size.height()
            )
            draw_switch(painter, rect, theme, on=self.isChecked(), able=self.isEnabled())
            if self.hasFocus():
                draw_focus(painter, rect.adjusted(-4, -4, 4, 4), rect.height() / 2 + 4, theme.colour("focus"))

    def _retheme(self) -> None:
        self.updateGeometry()
        self.update()


def draw_switch(painter: QPainter, rect: QRectF, theme: Theme, *, on: bool, able: bool) -> None:
    """Draws a switch in `rect`: filled with the knob at the end when on, hollow with the knob at the start when off."""
    painter.save()
    painter.setRenderHint(QPainter.RenderHint.Antialiasing)
    radius = rect.height() / 2
    edge = theme.colour("disabled" if not able else "accent" if on else "edge")
    painter.setPen(QPen(edge, max(1.0, rect.height() / 12)))
    painter.setBrush(edge if on else Qt.BrushStyle.NoBrush)
    inner = rect.adjusted(0.75, 0.75, -0.75, -0.75)
    painter.drawRoundedRect(inner, radius, radius)
    knob = radius * (0.62 if on else 0.5)
    x = rect.right() - radius if on else rect.left() + radius
    painter.setPen(Qt.PenStyle.NoPen)
    painter.setBrush(
        theme.colour("accent_text" if on else "edge") if able else theme.colour("surface" if on else "disabled")
    )
    painter.drawEllipse(QPointF(x, rect.center().y()), knob, knob)
    painter.restore()


def _chip_colours(button: QAbstractButton, theme: Theme) -> tuple[QColor, QColor]:
    """Fill and outline of a chip in its state."""
    if not button.isEnabled():
        return QColor(Qt.GlobalColor.transparent), theme.colour("line")
    over = button.underMouse()
    if button.isDown():
        return theme.colour("pressed"), theme.colour("edge")
    if button.isChecked():
        return theme.colour("accent_soft"), theme.colour("accent")
    return (theme.colour("hover") if over else theme.colour("surface")), theme.colour("edge" if over else "line")
