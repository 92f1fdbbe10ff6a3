"""Menus and questions: a menu whose icons follow the theme, a box that asks and answers through a signal."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal, cast

from PySide6.QtCore import Qt
from PySide6.QtGui import QKeySequence
from PySide6.QtWidgets import QMenu, QMessageBox, QWidget

from tandem.ui import icons

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from PySide6.QtGui import QAction
    from PySide6.QtWidgets import QPushButton

    from tandem.ui.theme import ThemeManager

BoxKind = Literal["question", "info", "warn", "bad"]
Part = Literal["accept", "reject", "destroy", "other"]

BOX_ICONS: Final[dict[str, tuple[str, str]]] = {
    "question": ("help", "accent"),
    "info": ("info", "accent"),
    "warn": ("warning", "warn"),
    "bad": ("warning", "bad"),
}
PARTS: Final[dict[str, QMessageBox.ButtonRole]] = {
    "accept": QMessageBox.ButtonRole.AcceptRole,
    "reject": QMessageBox.ButtonRole.RejectRole,
    "destroy": QMessageBox.ButtonRole.DestructiveRole,
    "other": QMessageBox.ButtonRole.ActionRole,
}


class Menu(QMenu):
    """A menu with the family's icons; `add` fills it."""

    def __init__(self, manager: ThemeManager, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._manager = manager
        self._drawings: list[tuple[QAction, str, str]] = []
        manager.changed.connect(self._retheme)

    def add(
        self,
        icon: str,
        text: str,
        on_chosen: Callable[[], object] | None = None,
        shortcut: str = "",
        *,
        danger: bool = False,
    ) -> QAction:
        """Adds an entry.

        Args:
            icon: The drawing; "" for none.
            text: What it says.
            on_chosen: Called when it is chosen.
            shortcut: Shown at the right, as portable text; where it works is the page's matter.
            danger: It takes something away.
        """
        action = self.addAction(text)
        if shortcut:
            action.setShortcut(QKeySequence(shortcut))
            # Only shown: the page has its own shortcut, and two for the same keys would block each other.
            action.setShortcutContext(Qt.ShortcutContext.WidgetShortcut)
            action.setShortcutVisibleInContextMenu(True)
        if on_chosen is not None:
            action.triggered.connect(lambda _checked=False: on_chosen())
        if icon:
            self._drawings.append((action, icon, "bad" if danger else "muted"))
            self._retheme()
        return action

    def _retheme(self) -> None:
        theme = self._manager.theme
        for action, icon, role in self._drawings:
            action.setIcon(icons.icon(icon, role, theme.px(16), theme))


def message_box(
    manager: ThemeManager,
    parent: QWidget | None,
    kind: BoxKind,
    text: str,
    details: str = "",
    buttons: Sequence[tuple[str, Part]] = (),
) -> QMessageBox:
    """A box in the app's looks, made but not shown; use `open()` and `buttonClicked`, never a nested event loop.

    Args:
        manager: Whose theme.
        parent: The window that it stands over.
        kind: Its icon.
        text: The question or message; plain text.
        details: A sentence under it; plain text.
        buttons: (text, part) in order. The first "accept" is the default, else "reject", which is Escape's.
    """
    box = QMessageBox(parent)
    box.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
    box.setTextFormat(Qt.TextFormat.PlainText)
    box.setText(text)
    box.setInformativeText(details)
    icon, role = BOX_ICONS[kind]
    edge = manager.px(28)
    box.setIconPixmap(icons.pixmap(icon, role, edge, box.devicePixelRatioF(), manager.theme))
    for words, part in buttons:
        button = box.addButton(words, PARTS[part])
        if part == "accept" and box.defaultButton() is None:
            box.setDefaultButton(button)
        if part == "reject":
            box.setEscapeButton(button)
    if box.defaultButton() is None and box.escapeButton() is not None:
        box.setDefaultButton(cast("QPushButton", box.escapeButton()))  # Enter takes nothing away that was not meant
    return box
