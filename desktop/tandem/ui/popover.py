"""A small panel that opens under a control and closes when one clicks elsewhere or presses Esc."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from PySide6.QtCore import QPoint, Qt
from PySide6.QtWidgets import QFrame, QLabel, QVBoxLayout, QWidget

from tandem.ui.kit import QuietButton, TextRole, label, spaced
from tandem.ui.theme import ThemeManager

_WIDTH: Final = 320


class Popover(QFrame):
    """Texts and buttons under a control. It deletes itself when it closes.

    Args:
        manager: The theme.
        anchor: What it opens under.
    """

    def __init__(self, manager: ThemeManager, anchor: QWidget) -> None:
        super().__init__(anchor, Qt.WindowType.Popup)
        self._manager, self._anchor = manager, anchor
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self.setProperty("kit", "card")
        self.setAccessibleName(anchor.accessibleName())
        self._column = QVBoxLayout(self)
        spaced(self._column, manager, "s", "l")
        self.setFixedWidth(manager.px(_WIDTH))

    def add_text(self, text: str, size: str = "body", role: TextRole = "text", *, bold: bool = False) -> QLabel:
        """A paragraph."""
        made = label(text, size, role, bold=bold, wrap=True)
        self._column.addWidget(made)
        return made

    def add_button(self, text: str, icon: str, then: Callable[[], object]) -> QuietButton:
        """A button that closes the panel and does something."""
        button = QuietButton(self._manager, text, icon)

        def act() -> None:
            self.close()
            then()

        button.clicked.connect(act)
        self._column.addWidget(button)
        return button

    def open(self) -> None:
        """Shows it under its anchor, inside the screen."""
        self.adjustSize()
        place = self._anchor.mapToGlobal(QPoint(0, self._anchor.height() + 4))
        screen = self._anchor.screen().availableGeometry()
        x = min(max(screen.left() + 4, place.x()), screen.right() - self.width() - 4)
        y = min(place.y(), screen.bottom() - self.height() - 4)
        self.move(x, max(screen.top() + 4, y))
        self.show()
        first = self.findChild(QuietButton)
        if first is not None:
            first.setFocus(Qt.FocusReason.PopupFocusReason)
