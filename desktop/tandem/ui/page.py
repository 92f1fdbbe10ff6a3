"""What the pages share: texts that follow the language, a scrolling column, fields with a problem under them."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from PySide6.QtCore import QEvent, QObject, QSize, Qt
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import (
    QAbstractSlider,
    QAbstractSpinBox,
    QComboBox,
    QFrame,
    QGridLayout,
    QHBoxLayout,
    QLabel,
    QLineEdit,
    QScrollArea,
    QSizePolicy,
    QVBoxLayout,
    QWidget,
)

from tandem.ui import icons
from tandem.ui.kit import FormRow, QuietButton, TextRole, label, set_label, spaced
from tandem.ui.kit_base import Gap, repolish

if TYPE_CHECKING:
    from tandem.ui.theme import ThemeManager

COLUMN: Final = 720
"""Widest column of text and controls, in pixels at 100 %."""

Kind = str  # "info", "good", "warn" or "bad"
_ICONS: Final = {"info": "info", "good": "check", "warn": "warning", "bad": "warning"}
_ROLES: Final[dict[str, TextRole]] = {"info": "accent", "good": "good", "warn": "warn", "bad": "bad"}


class Texts:
    """Texts that are set now and again whenever the language changes."""

    def __init__(self) -> None:
        self._said: list[Callable[[], None]] = []

    def say(self, setter: Callable[[str], object], text: Callable[[], str]) -> None:
        """Calls `setter(text())`, now and at every `again`."""

        def apply() -> None:
            setter(text())

        self._said.append(apply)
        apply()

    def again(self) -> None:
        """The language is another one."""
        for apply in self._said:
            apply()


class Speaking(QWidget):
    """A widget whose texts follow the language."""

    def __init__(self, manager: ThemeManager, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._manager = manager
        self._texts = Texts()

    def say(self, setter: Callable[[str], object], text: Callable[[], str]) -> None:
        """Sets a text now and whenever the language changes; `text` calls `self.tr` with a literal."""
        self._texts.say(setter, text)

    def retranslate(self) -> None:
        """For texts that depend on data; called after those of `say`."""

    def changeEvent(self, event: QEvent) -> None:  # noqa: N802 - Qt's name
        """Speaks the other language."""
        if event.type() == QEvent.Type.LanguageChange:
            self._texts.again()
            self.retranslate()
        super().changeEvent(event)


class Content(QWidget):
    """What scrolls: as high as its texts are at its width, while their least heights are those of narrow texts."""

    def minimumSizeHint(self) -> QSize:  # noqa: N802 - Qt's name
        """Of the height only what the width asks for, which the scroll area finds out itself."""
        return QSize(super().minimumSizeHint().width(), 0)


class Column(QScrollArea):
    """A page's content: one column in the middle, scrolled up and down only.

    Args:
        manager: The theme.
        width: Widest, in pixels at 100 %.
        gap: Between its parts.
        parent: Qt's parent.

    Attributes:
        body: Where the content goes.
    """

    def __init__(
        self, manager: ThemeManager, width: int = COLUMN, gap: Gap = "m", parent: QWidget | None = None
    ) -> None:
        super().__init__(parent)
        self._manager, self._width = manager, width
        self.setWidgetResizable(True)
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self.viewport().setAutoFillBackground(False)
        content, self._middle = Content(), QWidget()
        content.setAutoFillBackground(False)
        row = QHBoxLayout(content)
        row.setContentsMargins(0, 0, 0, 0)
        row.addStretch(1)
        row.addWidget(self._middle, 1000)
        row.addStretch(1)
        self.body = QVBoxLayout(self._middle)
        spaced(self.body, manager, gap, "xl")
        self.setWidget(content)
        self._calm = Calm(self)
        manager.changed.connect(self._retheme)
        self._retheme()

    def settle(self) -> None:
        """To be called once the content is there: a turn of the wheel over a field scrolls and changes nothing."""
        for kind in (QAbstractSpinBox, QComboBox, QAbstractSlider):
            for field in self._middle.findChildren(kind):
                field.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
                field.installEventFilter(self._calm)

    def _retheme(self) -> None:
        self._middle.setMaximumWidth(self._manager.px(self._width))


class Calm(QObject):
    """Keeps the wheel from changing a field that does not have the focus."""

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:  # noqa: N802 - Qt's name
        """Lets the page have the wheel."""
        if event.type() == QEvent.Type.Wheel and isinstance(watched, QWidget) and not watched.hasFocus():
            event.ignore()
            return True
        return super().eventFilter(watched, event)


class Tiles(QWidget):
    """Widgets of one width side by side, in as many columns as there is room for.

    Args:
        manager: The theme.
        least: Narrowest tile, in pixels at 100 %.
        most: Most columns.
        gap: Between them.
        parent: Qt's parent.
    """

    def __init__(
        self, manager: ThemeManager, least: int, most: int, gap: Gap = "m", parent: QWidget | None = None
    ) -> None:
        super().__init__(parent)
        self._manager, self._least, self._most = manager, least, most
        self._tiles: list[QWidget] = []
        self._columns = 0
        self._grid = QGridLayout(self)
        spaced(self._grid, manager, gap)
        self.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Minimum)

    def add(self, tile: QWidget) -> None:
        """Adds a tile behind the others."""
        self._tiles.append(tile)
        self._columns = 0
        self._arrange()

    @property
    def columns(self) -> int:
        """Columns now."""
        return self._columns

    def resizeEvent(self, event: QResizeEvent) -> None:  # noqa: N802 - Qt's name
        """Arranges them anew where the number of columns changes."""
        super().resizeEvent(event)
        self._arrange()

    def _arrange(self) -> None:
        gap = self._grid.horizontalSpacing()
        room = (self.width() + gap) // (self._manager.px(self._least) + gap)
        columns = max(1, min(room, self._most, len(self._tiles)))
        if columns == self._columns:
            return
        self._columns = columns
        for index, tile in enumerate(self._tiles):
            self._grid.addWidget(tile, index // columns, index % columns)
        for column in range(self._most):
            self._grid.setColumnStretch(column, int(column < columns))


class Mark(QWidget):
    """A small icon and a few words in its colour: a state that is seen and read, and does nothing."""

    def __init__(self, manager: ThemeManager, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._manager = manager
        self.icon = "info"
        self._role: TextRole = "muted"
        self._picture = QLabel()
        self._words = label(bold=True, size="small", wrap=True)
        row = QHBoxLayout(self)
        spaced(row, manager, "xs")
        row.addWidget(self._picture, 0, Qt.AlignmentFlag.AlignTop)
        row.addWidget(self._words, 1)
        manager.changed.connect(self._retheme)

    @property
    def text(self) -> str:
        """The words."""
        return self._words.text()

    def set_state(self, icon: str, role: TextRole, text: str) -> None:
        """Shows another state."""
        self.icon, self._role = icon, role
        set_label(self._words, text, role)
        self._retheme()

    def _retheme(self) -> None:
        theme = self._manager.theme
        ratio = self.devicePixelRatioF()
        self._picture.setPixmap(icons.pixmap(self.icon, self._role, theme.px(16), ratio, theme))


class Banner(QFrame):
    """A message that stays where it belongs, with a button where something can be done about it.

    Args:
        manager: The theme.
        kind: "info", "good", "warn" or "bad".
        icon: Of the button, if wanted.
        parent: Qt's parent.

    Attributes:
        button: Hidden until it has a text.
    """

    def __init__(
        self, manager: ThemeManager, kind: Kind = "info", icon: str = "", parent: QWidget | None = None
    ) -> None:
        super().__init__(parent)
        self._manager = manager
        self.kind = kind
        self.setProperty("kit", "notice")
        self.setProperty("kind", kind)
        self._picture = QLabel()
        self._text = label(wrap=True)
        self._more = label(size="small", role="muted", wrap=True)
        self.button = QuietButton(manager, "", icon)
        self.button.hide()
        self._more.hide()
        words = QGridLayout()
        spaced(words, manager, "xs")
        words.setRowStretch(0, 1)
        words.setColumnStretch(1, 1)
        words.addWidget(self._picture, 1, 0, Qt.AlignmentFlag.AlignTop)
        words.addWidget(self._text, 1, 1)
        words.addWidget(self._more, 2, 1)
        words.setRowStretch(3, 1)
        row = QHBoxLayout(self)
        spaced(row, manager, "s", ("m", "s", "m", "s"))
        row.addLayout(words, 1)
        row.addWidget(self.button, 0, Qt.AlignmentFlag.AlignVCenter)
        manager.changed.connect(self._retheme)
        self._retheme()

    @property
    def text(self) -> str:
        """What it says."""
        return self._text.text()

    @property
    def more(self) -> str:
        """The second line."""
        return self._more.text()

    def set_text(self, text: str, more: str = "") -> None:
        """What happened, and smaller under it what to do."""
        self._text.setText(text)
        self._more.setText(more)
        self._more.setVisible(bool(more))

    def set_kind(self, kind: Kind) -> None:
        """How grave it is."""
        if kind != self.kind:
            self.kind = kind
            self.setProperty("kind", kind)
            repolish(self)
            self._retheme()

    def set_button(self, text: str) -> None:
        """The button's text; "" takes it away."""
        self.button.setText(text)
        self.button.setVisible(bool(text))

    def _retheme(self) -> None:
        theme = self._manager.theme
        ratio = self.devicePixelRatioF()
        self._picture.setPixmap(icons.pixmap(_ICONS[self.kind], _ROLES[self.kind], theme.control.icon, ratio, theme))


class Field(QWidget):
    """A row of a form with room for a problem under it.

    Attributes:
        row: The row.
    """

    def __init__(self, manager: ThemeManager, control: QWidget, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.row = FormRow(manager, "", control)
        self._problem = label(size="small", role="warn", wrap=True)
        foot = QVBoxLayout()
        spaced(foot, manager, "", ("", "", "", "s"))
        foot.addWidget(self._problem)
        self._foot = QWidget()
        self._foot.setLayout(foot)
        self._foot.hide()
        column = QVBoxLayout(self)
        spaced(column, manager, "")
        column.addWidget(self.row)
        column.addWidget(self._foot)
        self._text = self._help = ""

    @property
    def problem(self) -> str:
        """What is wrong with the value, "" when nothing is."""
        return self._problem.text()

    def set_text(self, text: str) -> None:
        """The setting's name."""
        self._text = text
        self._set()

    def set_help(self, text: str) -> None:
        """A sentence about it."""
        self._help = text
        self._set()

    def set_problem(self, text: str, role: TextRole = "bad") -> None:
        """Says what is wrong with the value; "" says nothing."""
        set_label(self._problem, text, role)
        self._foot.setVisible(bool(text))
        self.row.control.setAccessibleDescription(text or self._help)

    def _set(self) -> None:
        self.row.set_texts(self._text, self._help)
        for kind in (QLineEdit, QAbstractSlider):  # the parts of a control that hold the focus
            for part in self.row.control.findChildren(kind):
                part.setAccessibleName(self._text)
