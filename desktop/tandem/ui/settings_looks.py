"""Settings of the window's looks: theme, text size, language."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from PySide6.QtCore import QSignalBlocker, Qt
from PySide6.QtWidgets import QHBoxLayout, QSlider, QWidget

from tandem.settings import Settings
from tandem.ui.i18n import percent
from tandem.ui.kit import Segmented, label, spaced
from tandem.ui.settings_section import Choices, Section
from tandem.ui.theme import LARGEST_SCALE, SMALLEST_SCALE

if TYPE_CHECKING:
    from tandem.ui.theme import ThemeManager

# Each language by its own name: whoever cannot read the window's language finds theirs.
LANGUAGES: Final = (("en", "English"), ("ko", "한국어"))
_STEP: Final = 10  # per cent


class AppearanceSection(Section):
    """Theme, text size, language; all at once."""

    def __init__(self, manager: ThemeManager, parent: QWidget | None = None) -> None:
        super().__init__(manager, parent)
        self.entitle(lambda: self.tr("Appearance"))
        self.theme = Segmented(manager, "", [(key, "") for key in ("system", "light", "dark")])
        self.theme.chosen.connect(lambda key: self.change(theme=key))
        self.field(
            self.theme,
            lambda: self.tr("Theme"),
            lambda: self.tr("System follows light and dark of your desktop as they change."),
        )
        self.text_size = TextSize(manager)
        self.text_size.slider.valueChanged.connect(lambda value: self.change(text_scale=value / 100))
        self.field(
            self.text_size,
            lambda: self.tr("Text size"),
            lambda: self.tr("Of everything in the window, spacing included."),
        )
        self.language = Choices(manager)
        self.language.currentIndexChanged.connect(lambda _index: self.change(language=self.language.currentData()))
        self.field(
            self.language,
            lambda: self.tr("Language"),
            lambda: self.tr("Of the window. The model answers in the language that you write in."),
        )
        self.retranslate()

    def retranslate(self) -> None:
        """Names of the choices, and the number."""
        self.text_size.show_value(self.text_size.slider.value())
        self.theme.set_texts([self.tr("System"), self.tr("Light"), self.tr("Dark")])
        self.language.set_entries(
            [(self.tr("As the system"), "system"), *((own_name, code) for code, own_name in LANGUAGES)]
        )

    def show_settings(self, settings: Settings) -> None:
        """Puts the values into the controls."""
        self.theme.choose(settings.theme)
        self.text_size.show_value(round(settings.text_scale * 100))
        self.language.show_choice(settings.language)


class TextSize(QWidget):
    """A slider from 80 to 160 per cent that shows the number while it moves and says it when it is let go."""

    def __init__(self, manager: ThemeManager, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._manager = manager
        self.slider = QSlider(Qt.Orientation.Horizontal)
        self.slider.setRange(round(SMALLEST_SCALE * 100), round(LARGEST_SCALE * 100))
        self.slider.setSingleStep(_STEP)
        self.slider.setPageStep(2 * _STEP)
        # Everything in the window moves when the size changes, the slider under the mouse too: only when let go.
        self.slider.setTracking(False)
        self.number = label(role="muted")
        self.number.setAlignment(Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter)
        self.setFocusProxy(self.slider)
        row = QHBoxLayout(self)
        spaced(row, manager, "s")
        row.addWidget(self.slider)
        row.addWidget(self.number)
        self.slider.sliderMoved.connect(self._show)
        self.slider.valueChanged.connect(self._show)
        manager.changed.connect(self._retheme)
        self._retheme()
        self.show_value(100)

    def show_value(self, value: int) -> None:
        """Shows a size in per cent without saying that it was changed."""
        with QSignalBlocker(self.slider):
            self.slider.setValue(value)
        self._show(value)

    def _show(self, value: int) -> None:
        self.number.setText(percent(value / 100))

    def _retheme(self) -> None:
        self.slider.setFixedWidth(self._manager.px(160))
        self.number.setMinimumWidth(self._manager.px(48))
