"""What pages are built of: cards, section titles, rows of a form, the empty state."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QFrame, QHBoxLayout, QLabel, QSizePolicy, QVBoxLayout, QWidget

from tandem.ui import icons
from tandem.ui.kit_base import label, spaced

if TYPE_CHECKING:
    from PySide6.QtWidgets import QAbstractButton

    from tandem.ui.theme import ThemeManager


class Card(QFrame):
    """A rounded surface with a hairline; put things into `body`."""

    def __init__(self, manager: ThemeManager, *, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setProperty("kit", "card")
        self.body = QVBoxLayout(self)
        spaced(self.body, manager, "m", "l")


class SectionTitle(QLabel):
    """The heading of a section; heard as a heading's text."""

    def __init__(self, manager: ThemeManager, text: str = "", *, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._manager = manager
        self.setTextFormat(Qt.TextFormat.PlainText)
        self.setText(text)
        for key, value in (("type", "lead"), ("role", "text"), ("bold", True)):
            self.setProperty(key, value)


class FormRow(QWidget):
    """A setting: its name and a sentence about it at the left, its control at the right.

    The name is the control's buddy and its accessible name, the sentence its accessible description.
    """

    def __init__(
        self, manager: ThemeManager, text: str, control: QWidget, help_text: str = "", *, parent: QWidget | None = None
    ) -> None:
        super().__init__(parent)
        self.control = control
        self._name = label(wrap=True)
        self._help = label(size="small", role="muted", wrap=True)
        self._name.setBuddy(control)
        words = QVBoxLayout()
        spaced(words, manager, "xs")
        words.addWidget(self._name)
        words.addWidget(self._help)
        row = QHBoxLayout(self)
        spaced(row, manager, "l", ("", "s"))
        row.addLayout(words, 1)
        row.addWidget(control, 0, Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter)
        self.set_texts(text, help_text)

    def set_texts(self, text: str, help_text: str = "") -> None:
        """Sets name and sentence."""
        self._name.setText(text)
        self._help.setText(help_text)
        self._help.setVisible(bool(help_text))
        self.control.setAccessibleName(text)
        self.control.setAccessibleDescription(help_text)


class EmptyState(QWidget):
    """What a page shows when it has nothing yet: an icon, what this is, what to do, and buttons to do it."""

    def __init__(
        self, manager: ThemeManager, icon: str, title: str, text: str, *, parent: QWidget | None = None
    ) -> None:
        super().__init__(parent)
        self._manager, self._icon = manager, icon
        self._picture = QLabel()
        self._title = label(size="title", bold=True, wrap=True)
        self._text = label(role="muted", wrap=True)
        for part in (self._picture, self._title, self._text):
            part.setAlignment(Qt.AlignmentFlag.AlignCenter)
        self._buttons = QHBoxLayout()
        spaced(self._buttons, manager, "s", ("", "s", "", ""))
        self._buttons.setAlignment(Qt.AlignmentFlag.AlignCenter)
        self._column = QWidget()
        column = QVBoxLayout(self._column)
        spaced(column, manager, "s")
        column.addWidget(self._picture)
        column.addWidget(self._title)
        column.addWidget(self._text)
        column.addLayout(self._buttons)
        centred = QHBoxLayout()
        centred.addStretch(1)
        centred.addWidget(self._column, 1000)
        centred.addStretch(1)
        outer = QVBoxLayout(self)
        spaced(outer, manager, "", "xl")
        outer.addStretch(2)
        outer.addLayout(centred)
        outer.addStretch(3)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Expanding)
        self.set_texts(title, text)
        manager.changed.connect(self._retheme)
        self._retheme()

    def set_texts(self, title: str, text: str) -> None:
        """Sets title and text."""
        self._title.setText(title)
        self._text.setText(text)

    def add_button(self, button: QAbstractButton) -> None:
        """Adds a button after those already there."""
        self._buttons.addWidget(button)

    def _retheme(self) -> None:
        edge = self._manager.px(40)
        ratio = self.devicePixelRatioF()
        self._picture.setPixmap(icons.pixmap(self._icon, "accent", edge, ratio, self._manager.theme))
        self._column.setMaximumWidth(self._manager.px(460))
