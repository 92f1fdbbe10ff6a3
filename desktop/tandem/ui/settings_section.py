"""What the sections of the settings are made of."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final

from PySide6.QtCore import QSignalBlocker, Signal
from PySide6.QtWidgets import QDoubleSpinBox, QSpinBox, QVBoxLayout, QWidget

from tandem.settings import Settings
from tandem.ui.kit import Card, ComboBox, SectionTitle, divider, spaced
from tandem.ui.page import Field, Speaking

if TYPE_CHECKING:
    from tandem.ui.theme import ThemeManager


BOX: Final = 136
"""Width of a field, in pixels at 100 %."""


class Section(Speaking):
    """A titled card of settings.

    It shows what `set_settings` gives it and says what was changed by `changed`: a dict of fields of `Settings`.
    """

    changed = Signal(object)

    def __init__(self, manager: ThemeManager, parent: QWidget | None = None) -> None:
        super().__init__(manager, parent)
        self.settings = Settings()
        self.title = SectionTitle(manager)
        self.name: Callable[[], str] = str
        self.rows = 0
        self.card = Card(manager)
        spaced(self.card.body, manager, "xs", ("l", "s"))
        column = QVBoxLayout(self)
        spaced(column, manager, "s")
        column.addWidget(self.title)
        column.addWidget(self.card)

    def entitle(self, name: Callable[[], str]) -> None:
        """Sets the title; `name` calls `self.tr` with a literal. Whoever lists the sections calls it too."""
        self.name = name
        self.say(self.title.setText, name)

    def set_settings(self, settings: Settings) -> None:
        """Shows these settings; nothing is emitted."""
        self.settings = settings
        self.show_settings(settings)

    def show_settings(self, settings: Settings) -> None:
        """Puts the values into the controls."""

    def field(self, control: QWidget, text: Callable[[], str], help_text: Callable[[], str] | None = None) -> Field:
        """Adds a row for a control; the texts call `self.tr` with a literal."""
        field = Field(self._manager, control)
        self.say(field.set_text, text)
        if help_text is not None:
            self.say(field.set_help, help_text)
        self.add(field)
        return field

    def add(self, widget: QWidget) -> None:
        """Adds anything else, under a hairline where it is not the first; a banner that comes and goes is none."""
        if self.rows:
            self.card.body.addWidget(divider())
        self.rows += 1
        self.card.body.addWidget(widget)

    def change(self, **fields: Any) -> None:
        """Says that fields were changed, unless they are what they were."""
        fields = {name: value for name, value in fields.items() if getattr(self.settings, name) != value}
        if fields:
            self.changed.emit(fields)


class Whole(QSpinBox):
    """A field for a whole number; it says so when Enter is pressed, the focus goes or an arrow is used."""

    def __init__(self, manager: ThemeManager, low: int, high: int, step: int = 1) -> None:
        super().__init__()
        self._manager = manager
        self.setRange(low, high)
        self.setSingleStep(step)
        self.setGroupSeparatorShown(True)
        self.setKeyboardTracking(False)
        manager.changed.connect(self._retheme)
        self._retheme()

    def show_value(self, value: int) -> None:
        """Shows a value without saying that it was changed."""
        with QSignalBlocker(self):
            self.setValue(value)

    def _retheme(self) -> None:
        self.setFixedWidth(self._manager.px(BOX))


class Decimal(QDoubleSpinBox):
    """A field for a number with two digits after the point; see `Whole`."""

    def __init__(self, manager: ThemeManager, low: float, high: float, step: float) -> None:
        super().__init__()
        self._manager = manager
        self.setDecimals(2)
        self.setRange(low, high)
        self.setSingleStep(step)
        self.setKeyboardTracking(False)
        manager.changed.connect(self._retheme)
        self._retheme()

    def show_value(self, value: float) -> None:
        """Shows a value without saying that it was changed."""
        with QSignalBlocker(self):
            self.setValue(value)

    def _retheme(self) -> None:
        self.setFixedWidth(self._manager.px(BOX))


class Choices(ComboBox):
    """A list of choices, each with its data."""

    def __init__(self, manager: ThemeManager) -> None:
        super().__init__()
        self._manager = manager
        self.setProperty("mayElide", True)  # a device's name may be of any length; the tooltip has all of it
        self.currentTextChanged.connect(self.setToolTip)
        manager.changed.connect(self._retheme)
        self._retheme()

    def show_choice(self, data: object) -> None:
        """Chooses the entry with these data, or the first, without saying that it was chosen."""
        with QSignalBlocker(self):
            self.setCurrentIndex(max(0, self.findData(data)))
        self.setToolTip(self.currentText())

    def set_entries(self, entries: Sequence[tuple[str, object]]) -> None:
        """Replaces the entries, (text, data) each; what was chosen stays chosen."""
        chosen = self.currentData()
        with QSignalBlocker(self):
            self.clear()
            for text, data in entries:
                self.addItem(text, data)
        self.show_choice(chosen)

    def showPopup(self) -> None:  # noqa: N802 - Qt's name
        """The list is as wide as its widest entry, whatever the box."""
        self.view().setMinimumWidth(self.view().sizeHintForColumn(0) + self._manager.px(16))
        super().showPopup()

    def _retheme(self) -> None:
        self.setMinimumWidth(self._manager.px(BOX))
        self.setMaximumWidth(self._manager.px(2 * BOX))
