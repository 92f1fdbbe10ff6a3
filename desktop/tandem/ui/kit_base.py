"""What the kit's widgets share: labels by role, spacing that follows the text size, the focus ring."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal, cast

from PySide6.QtCore import QObject, QRectF, Qt
from PySide6.QtGui import QAccessible, QAccessibleAnnouncementEvent, QColor, QKeyEvent, QPainter, QPen
from PySide6.QtGui import Qt as GuiQt
from PySide6.QtWidgets import QFrame, QLabel, QPushButton, QSizePolicy, QWidget

if TYPE_CHECKING:
    from PySide6.QtWidgets import QAbstractButton, QLayout

    from tandem.ui.theme import ThemeManager

TextRole = Literal["text", "muted", "faint", "accent", "good", "warn", "bad"]
Gap = Literal["", "xs", "s", "m", "l", "xl", "xxl"]

FOCUS_WIDTH: Final = 2.0


class _Spacing(QObject):
    """Keeps a layout's spacing and margins at the theme's; lives and dies with the layout."""

    def __init__(self, layout: QLayout, manager: ThemeManager, gap: Gap, margins: tuple[Gap, Gap, Gap, Gap]) -> None:
        super().__init__(layout)
        self._layout, self._manager, self._gap, self._margins = layout, manager, gap, margins
        manager.changed.connect(self._set)
        self._set()

    def _set(self) -> None:
        space = self._manager.theme.space
        sizes = [getattr(space, name) if name else 0 for name in (self._gap, *self._margins)]
        self._layout.setSpacing(sizes[0])
        self._layout.setContentsMargins(*sizes[1:])


def spaced(
    layout: QLayout,
    manager: ThemeManager,
    gap: Gap = "s",
    margins: Gap | tuple[Gap, Gap] | tuple[Gap, Gap, Gap, Gap] = "",
) -> None:
    """Gives a layout spacing and margins from the theme's scale, now and whenever the text size changes.

    Args:
        layout: The layout.
        manager: Whose theme.
        gap: Between items; "" is none.
        margins: One name for all sides, (sides, top and bottom), or (left, top, right, bottom).
    """
    if isinstance(margins, str):
        margins = (margins, margins, margins, margins)
    elif len(margins) == 2:
        margins = (margins[0], margins[1], margins[0], margins[1])
    _Spacing(layout, manager, gap, margins)


def label(
    text: str = "", size: str = "body", role: TextRole = "text", *, bold: bool = False, wrap: bool = False
) -> QLabel:
    """A label in one of the theme's text sizes and colours; it follows the theme by the style sheet alone.

    Args:
        text: Shown as plain text.
        size: "small", "body", "lead", "title", "display" or "mono".
        role: The colour.
        bold: Half bold.
        wrap: Break lines.
    """
    made = QLabel()
    made.setTextFormat(Qt.TextFormat.PlainText)
    made.setText(text)
    made.setWordWrap(wrap)
    if wrap:
        made.setSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Minimum)
    for key, value in (("type", size), ("role", role), ("bold", bold)):
        made.setProperty(key, value)
    return made


def set_label(made: QLabel, text: str, role: TextRole | None = None) -> None:
    """Changes a label's text, and its colour where a role is given."""
    made.setText(text)
    if role is not None and made.property("role") != role:
        made.setProperty("role", role)
        repolish(made)


def divider(*, vertical: bool = False) -> QFrame:
    """A hairline."""
    line = QFrame()
    line.setProperty("kit", "divider")
    line.setFrameShape(QFrame.Shape.NoFrame)
    if vertical:
        line.setFixedWidth(1)
    else:
        line.setFixedHeight(1)
    return line


def repolish(widget: QWidget) -> None:
    """Makes the style sheet look again at a widget whose properties changed."""
    widget.style().unpolish(widget)
    widget.style().polish(widget)
    widget.update()


def plain_tip(text: str) -> str:
    """A tooltip that shows a text as it is: what looks like HTML, as a file's name can, Qt would take for HTML."""
    return GuiQt.convertFromPlainText(text) if GuiQt.mightBeRichText(text) else text


def announce(widget: QWidget, text: str, *, urgent: bool = False) -> None:
    """Has a screen reader say a text that no focus leads to; `urgent` interrupts what it is saying."""
    event = QAccessibleAnnouncementEvent(widget, text)
    if urgent:
        event.setPoliteness(QAccessible.AnnouncementPoliteness.Assertive)
    QAccessible.updateAccessibility(event)


def draw_focus(painter: QPainter, rect: QRectF, radius: float, colour: QColor) -> None:
    """Draws the focus ring just inside `rect`, both in logical pixels."""
    painter.save()
    painter.setRenderHint(QPainter.RenderHint.Antialiasing)
    painter.setPen(QPen(colour, FOCUS_WIDTH))
    painter.setBrush(Qt.BrushStyle.NoBrush)
    half = FOCUS_WIDTH / 2
    painter.drawRoundedRect(rect.adjusted(half, half, -half, -half), max(radius - half, 0), max(radius - half, 0))
    painter.restore()


class EnterPresses:
    """Makes Enter press a button that has the keyboard, as everywhere outside Qt; Space does so by itself.

    A mixin for subclasses of `QAbstractButton`.
    """

    def keyPressEvent(self, event: QKeyEvent) -> None:  # noqa: N802 - Qt's name
        """Presses it on Enter."""
        if event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter) and not event.isAutoRepeat():
            cast("QAbstractButton", self).click()
            event.accept()
        else:
            super().keyPressEvent(event)  # type: ignore[misc]  # the button's


class TextButton(EnterPresses, QPushButton):
    """A push button that Enter presses; its look comes from the style sheet."""
