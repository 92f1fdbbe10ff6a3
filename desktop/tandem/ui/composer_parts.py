"""Parts of the composer: the Send button, the bars above the text, a row of chips that breaks where it must."""

from __future__ import annotations

from typing import Final

from PySide6.QtCore import QPoint, QRect, QRectF, QSize, Qt, Signal
from PySide6.QtGui import QEnterEvent, QKeyEvent, QKeySequence, QPainter, QPaintEvent, QPen, QResizeEvent
from PySide6.QtWidgets import (
    QAbstractButton,
    QHBoxLayout,
    QLabel,
    QLayout,
    QLayoutItem,
    QPushButton,
    QSizePolicy,
    QVBoxLayout,
    QWidget,
)

from tandem.ui import icons
from tandem.ui.composer_ime import ENTER_KEYS
from tandem.ui.kit import IconButton, draw_focus, label, spaced
from tandem.ui.kit_base import TextButton
from tandem.ui.theme import ThemeManager

_EDGE: Final = 34


class SendButton(QAbstractButton):
    """A round button that sends, or stops what runs: same place, another icon and another name."""

    def __init__(self, manager: ThemeManager, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._manager = manager
        self.running = False
        # A click must not take the focus out of the text: that would end a composition in the middle.
        self.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        self.setCursor(Qt.CursorShape.PointingHandCursor)
        self.setAttribute(Qt.WidgetAttribute.WA_Hover)
        manager.changed.connect(self._retheme)
        self._retheme()

    def set_state(self, running: bool, name: str, shortcut: str) -> None:
        """Sends or stops; its name is heard, and seen in the tooltip with the key."""
        self.running = running
        keys = QKeySequence(shortcut).toString(QKeySequence.SequenceFormat.NativeText)
        self.setAccessibleName(name)
        self.setToolTip(f"{name}  {keys}" if keys else name)
        self.update()

    def sizeHint(self) -> QSize:  # noqa: N802 - Qt's name
        """A square."""
        edge = self._manager.px(_EDGE)
        return QSize(edge, edge)

    def keyPressEvent(self, event: QKeyEvent) -> None:  # noqa: N802 - Qt's name
        """Enter presses it too, not only the space bar."""
        if event.key() in ENTER_KEYS:
            if not event.isAutoRepeat():
                self.click()
            event.accept()
            return
        super().keyPressEvent(event)

    def enterEvent(self, event: QEnterEvent) -> None:  # noqa: N802 - Qt's name
        """Shows that it can be used."""
        self.update()
        super().enterEvent(event)

    def paintEvent(self, event: QPaintEvent) -> None:  # noqa: ARG002, N802 - Qt's name and signature
        """Draws disc and icon."""
        theme = self._manager.theme
        with QPainter(self) as painter:
            painter.setRenderHint(QPainter.RenderHint.Antialiasing)
            able = self.isEnabled()
            accent = "accent_pressed" if self.isDown() else "accent_hover" if self.underMouse() else "accent"
            painter.setPen(Qt.PenStyle.NoPen)
            painter.setBrush(theme.colour(accent if able else "pressed"))
            gap = 3.0
            painter.drawEllipse(QRectF(self.rect()).adjusted(gap, gap, -gap, -gap))
            edge = theme.px(16)
            role = "accent_text" if able else "disabled"
            drawing = icons.pixmap("stop" if self.running else "send", role, edge, self.devicePixelRatioF(), theme)
            painter.drawPixmap((self.width() - edge) // 2, (self.height() - edge) // 2, drawing)
            if self.hasFocus():
                draw_focus(painter, QRectF(self.rect()), self.width() / 2, theme.colour("focus"))

    def _retheme(self) -> None:
        edge = self._manager.px(_EDGE)
        self.setFixedSize(edge, edge)
        self.update()


class Bar(QWidget):
    """A line above the text that says something about it, with a button that undoes it.

    Args:
        manager: Colours, sizes and fonts.
        icon: A drawing.
        with_text: Whether the button shows text; otherwise it shows a cross.

    Signals:
        pressed: Its button.
    """

    pressed = Signal()

    def __init__(self, manager: ThemeManager, icon: str, *, with_text: bool = False) -> None:
        super().__init__()
        self._manager, self._icon = manager, icon
        self._whole = ""
        self._picture = QLabel()
        self.words = label(size="small", role="muted")
        self.words.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Preferred)
        self.button: QAbstractButton = TextButton() if with_text else IconButton(manager, "close", "", size=14)
        if isinstance(self.button, QPushButton):
            self.button.setFlat(True)
        self.button.clicked.connect(self.pressed)
        row = QHBoxLayout(self)
        spaced(row, manager, "s", ("s", "", "xs", ""))
        row.addWidget(self._picture)
        row.addWidget(self.words, 1)
        row.addWidget(self.button)
        manager.changed.connect(self._retheme)
        self._retheme()
        self.hide()

    def set_texts(self, text: str, button: str) -> None:
        """Sets what it says and what its button does."""
        self._whole = text
        self.words.setToolTip("")
        if isinstance(self.button, IconButton):
            self.button.set_name(button)
        else:
            self.button.setText(button)
        self._elide()

    def paintEvent(self, event: QPaintEvent) -> None:  # noqa: ARG002, N802 - Qt's name and signature
        """Draws the ground."""
        theme = self._manager.theme
        with QPainter(self) as painter:
            painter.setRenderHint(QPainter.RenderHint.Antialiasing)
            painter.setPen(Qt.PenStyle.NoPen)
            painter.setBrush(theme.colour("sunken"))
            painter.drawRoundedRect(QRectF(self.rect()), theme.radius.m, theme.radius.m)

    def resizeEvent(self, event: QResizeEvent) -> None:  # noqa: N802 - Qt's name
        """Shows as much of the text as fits."""
        super().resizeEvent(event)
        self._elide()

    def _elide(self) -> None:
        width = self.words.width()
        self.words.setText(self.words.fontMetrics().elidedText(self._whole, Qt.TextElideMode.ElideRight, width))
        self.words.setAccessibleName(self._whole)

    def _retheme(self) -> None:
        theme = self._manager.theme
        # The field of text arranges its column anew while that is being arranged, and what was squeezed would stay so.
        self.setMinimumHeight(theme.control.height)
        edge = theme.px(16)
        self._picture.setPixmap(icons.pixmap(self._icon, "muted", edge, self.devicePixelRatioF(), theme))
        self._elide()
        self.update()


class Frame(QWidget):
    """The rounded field around text and chips; its outline says where the keyboard is.

    Args:
        manager: Colours and sizes.
    """

    def __init__(self, manager: ThemeManager) -> None:
        super().__init__()
        self._manager = manager
        self._lit = False
        self.column = QVBoxLayout(self)
        spaced(self.column, manager, "s", ("m", "s", "s", "s"))
        manager.changed.connect(self._retheme)
        self._retheme()

    def light(self, on: bool) -> None:
        """Shows that the text has the keyboard, or something is about to be dropped."""
        if on != self._lit:
            self._lit = on
            self.update()

    def paintEvent(self, event: QPaintEvent) -> None:  # noqa: ARG002, N802 - Qt's name and signature
        """Draws ground and outline."""
        theme = self._manager.theme
        with QPainter(self) as painter:
            painter.setRenderHint(QPainter.RenderHint.Antialiasing)
            width = 2.0 if self._lit else 1.0
            painter.setPen(QPen(theme.colour("focus" if self._lit else "edge"), width))
            painter.setBrush(theme.colour("surface"))
            rect = QRectF(self.rect()).adjusted(width / 2, width / 2, -width / 2, -width / 2)
            painter.drawRoundedRect(rect, theme.radius.l + theme.px(4), theme.radius.l + theme.px(4))

    def _retheme(self) -> None:
        self.setMaximumWidth(self._manager.px(792))
        self.update()


class FlowRow(QLayout):
    """Puts widgets side by side and breaks the row where the width ends."""

    def __init__(self) -> None:
        super().__init__()
        self._items: list[QLayoutItem] = []

    def addItem(self, item: QLayoutItem) -> None:  # noqa: N802 - Qt's name
        """Adds one at the end."""
        self._items.append(item)

    def count(self) -> int:
        """How many."""
        return len(self._items)

    def itemAt(self, index: int) -> QLayoutItem | None:  # noqa: N802 - Qt's name
        """One of them, None past the end."""
        return self._items[index] if 0 <= index < len(self._items) else None

    def takeAt(self, index: int) -> QLayoutItem | None:  # type: ignore[override]  # noqa: N802 - Qt may get None
        """Takes one out, None past the end."""
        return self._items.pop(index) if 0 <= index < len(self._items) else None

    def expandingDirections(self) -> Qt.Orientation:  # noqa: N802 - Qt's name
        """None: it needs what its widgets need."""
        return Qt.Orientation(0)

    def hasHeightForWidth(self) -> bool:  # noqa: N802 - Qt's name
        """A narrow row is a high one."""
        return True

    def heightForWidth(self, width: int) -> int:  # noqa: N802 - Qt's name
        """Height at a width, in logical pixels."""
        return self._place(QRect(0, 0, width, 0), move=False)

    def setGeometry(self, rect: QRect) -> None:  # noqa: N802 - Qt's name
        """Places the widgets."""
        super().setGeometry(rect)
        self._place(rect, move=True)

    def sizeHint(self) -> QSize:  # noqa: N802 - Qt's name
        """All in one row."""
        sizes = [item.sizeHint() for item in self._items]
        width = sum(size.width() for size in sizes) + self.spacing() * max(len(sizes) - 1, 0)
        return QSize(width, max((size.height() for size in sizes), default=0))

    def minimumSize(self) -> QSize:  # noqa: N802 - Qt's name
        """As wide as the widest."""
        sizes = [item.minimumSize() for item in self._items]
        return QSize(
            max((size.width() for size in sizes), default=0), max((size.height() for size in sizes), default=0)
        )

    def _place(self, rect: QRect, *, move: bool) -> int:
        x = y = high = 0
        gap = max(self.spacing(), 0)
        parent = self.parentWidget()
        mirrored = parent is not None and parent.isRightToLeft()
        for item in self._items:
            size = item.sizeHint()
            if x and x + size.width() > rect.width():
                x, y, high = 0, y + high + gap, 0
            if move:
                left = rect.right() + 1 - x - size.width() if mirrored else rect.left() + x
                item.setGeometry(QRect(QPoint(left, rect.top() + y), size))
            x += size.width() + gap
            high = max(high, size.height())
        return y + high
