"""What shows a state: the chip with dot and text, the thin meter."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal

from PySide6.QtCore import QEvent, QPointF, QRectF, QSize, Qt, QTimer
from PySide6.QtGui import QHideEvent, QPainter, QPaintEvent, QPen, QPolygonF, QShowEvent
from PySide6.QtWidgets import QAbstractButton, QProgressBar, QSizePolicy, QWidget

from tandem.ui.kit_base import EnterPresses, draw_focus, plain_tip

if TYPE_CHECKING:
    from PySide6.QtGui import QColor

    from tandem.ui.theme import ThemeManager

Kind = Literal["on", "off", "busy", "failed", "idle", "warn"]

ROLES: Final[dict[str, str]] = {
    "on": "good",
    "off": "faint",
    "busy": "accent",
    "failed": "bad",
    "idle": "muted",
    "warn": "warn",
}
TURN_MS: Final = 60
# A text may be a fraction of a pixel wider than its whole-numbered advance; without this it would be elided.
SLACK: Final = 2
TURN_STEPS: Final = 16


class StateChip(EnterPresses, QAbstractButton):
    """A state always in view: a mark and a text, clickable for more.

    The mark's shape tells the kinds apart without colour: a full disc (on), a ring (off), a turning arc (busy), a
    triangle (failed, warn), a ring with a dot (idle).
    """

    def __init__(
        self, manager: ThemeManager, kind: Kind = "idle", text: str = "", *, parent: QWidget | None = None
    ) -> None:
        super().__init__(parent)
        self._manager = manager
        self._kind: Kind = kind
        self._step = 0
        self._timer = QTimer(self)
        self._timer.setInterval(TURN_MS)
        self._timer.timeout.connect(self._turn)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setCursor(Qt.CursorShape.PointingHandCursor)
        self.setSizePolicy(QSizePolicy.Policy.Maximum, QSizePolicy.Policy.Fixed)
        self.setAttribute(Qt.WidgetAttribute.WA_Hover)
        manager.changed.connect(self._retheme)
        self.set_state(kind, text)
        self._retheme()

    @property
    def kind(self) -> Kind:
        """What it shows."""
        return self._kind

    def set_state(self, kind: Kind, text: str, detail: str = "") -> None:
        """Shows a state; `detail` is the tooltip and what a screen reader says after the text."""
        self._kind = kind
        self.setText(text)
        self.setAccessibleName(text)
        self.setAccessibleDescription(detail)
        self.setToolTip(plain_tip(detail))
        self._run()
        self.updateGeometry()
        self.update()

    def sizeHint(self) -> QSize:  # noqa: N802 - Qt's name
        """Room for mark and text, in logical pixels."""
        theme = self._manager.theme
        text = self.fontMetrics().horizontalAdvance(self.text())
        return QSize(theme.px(10) * 2 + theme.px(12) + (theme.px(6) + text + SLACK if text else 0), theme.px(28))

    def minimumSizeHint(self) -> QSize:  # noqa: N802 - Qt's name
        """The mark and a little text; the rest is elided."""
        theme = self._manager.theme
        return QSize(min(self.sizeHint().width(), theme.px(72)), theme.px(28))

    def paintEvent(self, event: QPaintEvent) -> None:  # noqa: N802, ARG002 - Qt's name and signature
        """Draws the chip."""
        theme = self._manager.theme
        with QPainter(self) as painter:
            painter.setRenderHint(QPainter.RenderHint.Antialiasing)
            soft = {"failed": "bad_soft", "warn": "warn_soft"}.get(self._kind, "surface")
            fill = "pressed" if self.isDown() else "hover" if self.underMouse() and self.isEnabled() else soft
            rect = QRectF(self.rect()).adjusted(0.5, 0.5, -0.5, -0.5)
            painter.setPen(QPen(theme.colour("line"), 1))
            painter.setBrush(theme.colour(fill))
            painter.drawRoundedRect(rect, rect.height() / 2, rect.height() / 2)
            side = theme.px(12)
            place = QRectF(theme.px(10), (self.height() - side) / 2, side, side)
            self._draw_mark(painter, place, theme.colour(ROLES[self._kind]))
            x = theme.px(10) + side + theme.px(6)
            room = self.width() - x - theme.px(10)
            text = self.fontMetrics().elidedText(self.text(), Qt.TextElideMode.ElideRight, room)
            painter.setPen(theme.colour("text" if self.isEnabled() else "disabled"))
            painter.drawText(QRectF(x, 0, room + 1, self.height()), Qt.AlignmentFlag.AlignVCenter, text)
            if self.hasFocus():
                draw_focus(painter, QRectF(self.rect()), self.height() / 2, theme.colour("focus"))

    def showEvent(self, event: QShowEvent) -> None:  # noqa: N802 - Qt's name
        """Turns while it is seen."""
        super().showEvent(event)
        self._run()

    def hideEvent(self, event: QHideEvent) -> None:  # noqa: N802 - Qt's name
        """Turns no longer."""
        super().hideEvent(event)
        self._timer.stop()

    def changeEvent(self, event: QEvent) -> None:  # noqa: N802 - Qt's name
        """Makes room for another font."""
        if event.type() in (QEvent.Type.FontChange, QEvent.Type.StyleChange):
            self.updateGeometry()
        super().changeEvent(event)

    def _draw_mark(self, painter: QPainter, place: QRectF, colour: QColor) -> None:
        centre, size = place.center(), place.width()
        painter.setPen(
            QPen(colour, size / 7, Qt.PenStyle.SolidLine, Qt.PenCapStyle.RoundCap, Qt.PenJoinStyle.RoundJoin)
        )
        painter.setBrush(Qt.BrushStyle.NoBrush)
        if self._kind == "busy":
            arc = place.adjusted(1.5, 1.5, -1.5, -1.5)
            painter.drawArc(arc, -self._step * 360 * 16 // TURN_STEPS, 250 * 16)
        elif self._kind in ("failed", "warn"):
            painter.setBrush(colour)
            points = [(0, -0.36), (0.4, 0.34), (-0.4, 0.34)]
            painter.drawPolygon(QPolygonF([centre + QPointF(x * size, y * size) for x, y in points]))
        elif self._kind == "on":
            painter.setBrush(colour)
            painter.drawEllipse(centre, size / 3, size / 3)
        else:
            painter.drawEllipse(centre, size / 3, size / 3)
            if self._kind == "idle":
                painter.setBrush(colour)
                painter.drawEllipse(centre, size / 14, size / 14)

    def _run(self) -> None:
        if self._kind == "busy" and self.isVisible():
            self._timer.start()
        else:
            self._timer.stop()

    def _turn(self) -> None:
        self._step = (self._step + 1) % TURN_STEPS
        self.update()

    def _retheme(self) -> None:
        self.setFont(self._manager.font("small"))
        self.updateGeometry()
        self.update()


class Meter(QProgressBar):
    """A thin bar that fills; past `warn_at` of it, marked by a notch, it takes the warning colour."""

    def __init__(
        self, manager: ThemeManager, name: str, *, warn_at: float = 0.8, width: int = 96, parent: QWidget | None = None
    ) -> None:
        super().__init__(parent)
        self._manager, self._warn_at, self._width = manager, warn_at, width
        self.setTextVisible(False)
        self.setAccessibleName(name)
        self.setSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Fixed)
        self.setRange(0, 1)
        manager.changed.connect(self._retheme)

    @property
    def level(self) -> Literal["normal", "warn", "full"]:
        """How full it is: "warn" from `warn_at` on, "full" at its limit."""
        if self.maximum() <= 0 or self.value() < self.maximum() * self._warn_at:
            return "normal"
        return "full" if self.value() >= self.maximum() else "warn"

    def set_value(self, used: int, limit: int) -> None:
        """Shows `used` of `limit`, in whatever unit; a limit of 0 shows an empty bar."""
        self.setRange(0, max(limit, 1))
        self.setValue(min(max(used, 0), max(limit, 1)) if limit > 0 else 0)
        self.update()

    def sizeHint(self) -> QSize:  # noqa: N802 - Qt's name
        """The bar, in logical pixels."""
        return QSize(self._manager.px(self._width), self._manager.px(6))

    def minimumSizeHint(self) -> QSize:  # noqa: N802 - Qt's name
        """Short, but readable."""
        return QSize(self._manager.px(32), self._manager.px(6))

    def paintEvent(self, event: QPaintEvent) -> None:  # noqa: N802, ARG002 - Qt's name and signature
        """Draws track, filling and notch."""
        theme = self._manager.theme
        with QPainter(self) as painter:
            painter.setRenderHint(QPainter.RenderHint.Antialiasing)
            painter.setPen(Qt.PenStyle.NoPen)
            rect = QRectF(self.rect())
            radius = rect.height() / 2
            painter.setBrush(theme.colour("pressed"))
            painter.drawRoundedRect(rect, radius, radius)
            share = self.value() / self.maximum() if self.maximum() > 0 else 0.0
            if share > 0:
                role = {"normal": "accent", "warn": "warn", "full": "bad"}[self.level]
                painter.setBrush(theme.colour(role))
                painter.drawRoundedRect(
                    QRectF(0, 0, max(rect.width() * share, rect.height()), rect.height()), radius, radius
                )
            if self._warn_at < 1:
                x = rect.width() * self._warn_at
                painter.setBrush(theme.colour("window" if share > self._warn_at else "edge"))
                painter.drawRect(QRectF(x, 0, 1.5, rect.height()))

    def _retheme(self) -> None:
        self.updateGeometry()
        self.update()
