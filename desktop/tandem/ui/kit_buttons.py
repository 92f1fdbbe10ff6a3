"""Buttons: with an icon alone, primary, quiet, for the navigation."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import QEvent, QRectF, QSize, Qt
from PySide6.QtGui import QFont, QFontMetrics, QKeySequence, QPainter, QPaintEvent
from PySide6.QtWidgets import QPushButton, QSizePolicy, QToolButton, QWidget

from tandem.ui import icons
from tandem.ui.kit_base import EnterPresses, draw_focus, plain_tip

if TYPE_CHECKING:
    from tandem.ui.theme import ThemeManager


class IconButton(EnterPresses, QToolButton):
    """A square button that shows only an icon; its name is heard, and seen in the tooltip with its shortcut.

    The shortcut is shown, not installed: the page decides where it works.
    """

    def __init__(
        self,
        manager: ThemeManager,
        icon: str,
        name: str,
        shortcut: str = "",
        *,
        role: str = "muted",
        size: int = 18,
        parent: QWidget | None = None,
    ) -> None:
        super().__init__(parent)
        self._manager, self._icon, self._role, self._size = manager, icon, role, size
        self.setAutoRaise(True)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setCursor(Qt.CursorShape.PointingHandCursor)
        self.set_name(name, shortcut)
        manager.changed.connect(self._retheme)
        self._retheme()

    def set_name(self, name: str, shortcut: str = "") -> None:
        """Sets what is heard and shown in the tooltip; `shortcut` is portable text such as "Ctrl+N"."""
        self.setAccessibleName(name)
        keys = QKeySequence(shortcut).toString(QKeySequence.SequenceFormat.NativeText)
        self.setToolTip(plain_tip(f"{name}  {keys}" if keys else name))

    def set_icon(self, icon: str, role: str | None = None) -> None:
        """Shows another drawing, and another colour where a role is given."""
        self._icon, self._role = icon, role or self._role
        self._retheme()

    def _retheme(self) -> None:
        edge = self._manager.px(self._size)
        self.setIcon(icons.icon(self._icon, self._role, edge, self._manager.theme))
        self.setIconSize(QSize(edge, edge))
        side = self._manager.theme.control.height
        self.setFixedSize(side, side)


class _TextButton(EnterPresses, QPushButton):
    """A push button with text and perhaps an icon, its colours from the style sheet by class name."""

    ROLE: str = "text"

    def __init__(self, manager: ThemeManager, text: str, icon: str = "", *, parent: QWidget | None = None) -> None:
        super().__init__(text, parent)
        self._manager, self._icon = manager, icon
        self.setCursor(Qt.CursorShape.PointingHandCursor)
        self.setSizePolicy(QSizePolicy.Policy.Maximum, QSizePolicy.Policy.Fixed)
        manager.changed.connect(self._retheme)
        self._retheme()

    def set_icon(self, icon: str) -> None:
        """Shows another drawing; "" shows none."""
        if icon != self._icon:
            self._icon = icon
            self._retheme()

    def _role(self) -> str:
        return self.ROLE

    def _retheme(self) -> None:
        edge = self._manager.theme.control.icon
        self.setIconSize(QSize(edge, edge))
        theme = self._manager.theme
        self.setIcon(icons.icon(self._icon, self._role(), edge, theme) if self._icon else icons.none())


class PrimaryButton(_TextButton):
    """The one thing to do here."""

    ROLE = "accent_text"

    def paintEvent(self, event: QPaintEvent) -> None:  # noqa: N802 - Qt's name
        """Draws the focus inside the filling: a ring in the accent's own colour would not be seen around it."""
        super().paintEvent(event)
        if self.hasFocus():
            theme = self._manager.theme
            inside = QRectF(self.rect()).adjusted(3, 3, -3, -3)
            with QPainter(self) as painter:
                draw_focus(painter, inside, theme.radius.m - 3, theme.colour("accent_text"))


class QuietButton(_TextButton):
    """Everything else to do here; `danger` for what takes something away."""

    def __init__(
        self, manager: ThemeManager, text: str, icon: str = "", *, danger: bool = False, parent: QWidget | None = None
    ) -> None:
        self._danger = danger
        super().__init__(manager, text, icon, parent=parent)
        self.setProperty("danger", danger)

    def _role(self) -> str:
        return "bad" if self._danger else "text"


class NavButton(EnterPresses, QToolButton):
    """A page's button in the navigation: icon over a small label, checked while its page is shown."""

    def __init__(
        self, manager: ThemeManager, icon: str, text: str, shortcut: str = "", *, parent: QWidget | None = None
    ) -> None:
        super().__init__(parent)
        self._manager, self._icon = manager, icon
        self.setCheckable(True)
        self.setAutoExclusive(True)
        self.setToolButtonStyle(Qt.ToolButtonStyle.ToolButtonTextUnderIcon)
        self.setSizePolicy(QSizePolicy.Policy.Minimum, QSizePolicy.Policy.Fixed)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setCursor(Qt.CursorShape.PointingHandCursor)
        self.set_name(text, shortcut)
        manager.changed.connect(self._retheme)
        self.toggled.connect(self._retheme)
        self._retheme()

    def set_name(self, text: str, shortcut: str = "") -> None:
        """Sets the label, and the shortcut that the tooltip shows."""
        self.setText(text)
        self.setAccessibleName(text)
        keys = QKeySequence(shortcut).toString(QKeySequence.SequenceFormat.NativeText)
        self.setToolTip(f"{text}  {keys}" if keys else text)
        self.updateGeometry()

    def sizeHint(self) -> QSize:  # noqa: N802 - Qt's name
        """As wide as its text, and as all of them usually are at least."""
        px, font = self._manager.px, QFont(self.font())
        font.setWeight(QFont.Weight.DemiBold)  # as it is while checked
        return QSize(max(px(56), QFontMetrics(font).horizontalAdvance(self.text()) + px(6)), px(52))

    def minimumSizeHint(self) -> QSize:  # noqa: N802 - Qt's name
        """Its text is never cut."""
        return self.sizeHint()

    def changeEvent(self, event: QEvent) -> None:  # noqa: N802 - Qt's name
        """Makes room for another font."""
        if event.type() in (QEvent.Type.FontChange, QEvent.Type.StyleChange):
            self.updateGeometry()
        super().changeEvent(event)

    def _retheme(self) -> None:
        edge = self._manager.px(20)
        role = "accent" if self.isChecked() else "muted"
        self.setIcon(icons.icon(self._icon, role, edge, self._manager.theme))
        self.setIconSize(QSize(edge, edge))
        self.setFixedHeight(self._manager.px(52))
        self.updateGeometry()
