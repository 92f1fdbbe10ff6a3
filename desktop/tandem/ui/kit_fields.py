"""Fields: a search field, a row of choices, and boxes that a turning wheel does not change by accident."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import QLocale, QPointF, QSize, Qt, Signal
from PySide6.QtGui import QKeyEvent, QPainter, QPaintEvent, QResizeEvent, QWheelEvent
from PySide6.QtWidgets import (
    QButtonGroup,
    QComboBox,
    QDoubleSpinBox,
    QFrame,
    QHBoxLayout,
    QLineEdit,
    QPushButton,
    QSpinBox,
    QStyledItemDelegate,
    QToolButton,
    QWidget,
)

from tandem.ui import icons
from tandem.ui.kit_base import TextButton

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tandem.ui.theme import ThemeManager


class SearchField(QLineEdit):
    """A line to search with: a glass in front, a cross behind while there is text, Escape empties it."""

    def __init__(self, manager: ThemeManager, name: str, clear: str = "", *, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._manager = manager
        # Not QLineEdit's own actions: their icons stay at 16 px whatever the text size.
        self.cross = QToolButton(self)
        self.cross.setProperty("kit", "inside")
        self.cross.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        self.cross.setCursor(Qt.CursorShape.ArrowCursor)
        self.cross.clicked.connect(self._empty)
        self.cross.hide()
        self.textChanged.connect(self._changed)
        self.set_name(name, clear)
        manager.changed.connect(self._retheme)
        self._retheme()

    def set_name(self, name: str, clear: str = "") -> None:
        """Sets what it is for, shown while it is empty; `clear` names the cross."""
        self.setPlaceholderText(name)
        self.setAccessibleName(name)
        self.cross.setAccessibleName(clear or self.tr("Clear"))
        self.cross.setToolTip(clear or self.tr("Clear"))

    def paintEvent(self, event: QPaintEvent) -> None:  # noqa: N802 - Qt's name
        """Draws the glass over the line."""
        super().paintEvent(event)
        theme = self._manager.theme
        edge = theme.px(16)
        glass = icons.pixmap("search", "faint", edge, self.devicePixelRatioF(), theme)
        with QPainter(self) as painter:
            painter.drawPixmap(QPointF(theme.px(9), (self.height() - edge) / 2), glass)

    def resizeEvent(self, event: QResizeEvent) -> None:  # noqa: N802 - Qt's name
        """Keeps the cross at the end."""
        super().resizeEvent(event)
        self._place()

    def keyPressEvent(self, event: QKeyEvent) -> None:  # noqa: N802 - Qt's name
        """Escape empties it; in an empty one it is the page's."""
        if event.key() == Qt.Key.Key_Escape and self.text():
            self.clear()
            return
        super().keyPressEvent(event)

    def _empty(self) -> None:
        self.clear()
        self.setFocus(Qt.FocusReason.OtherFocusReason)

    def _changed(self, text: str) -> None:
        self.cross.setVisible(bool(text))

    def _place(self) -> None:
        side = self._manager.px(24)
        self.cross.setGeometry(self.width() - side - self._manager.px(4), (self.height() - side) // 2, side, side)

    def _retheme(self) -> None:
        theme = self._manager.theme
        edge = theme.px(14)
        self.cross.setIcon(icons.icon("close", "muted", edge, theme))
        self.cross.setIconSize(QSize(edge, edge))
        self.setTextMargins(theme.px(22), 0, theme.px(24), 0)
        self._place()
        self.update()


class Segmented(QFrame):
    """A few choices side by side, one of them chosen; arrow keys move between them."""

    chosen = Signal(str)

    def __init__(
        self, manager: ThemeManager, name: str, options: Sequence[tuple[str, str]], *, parent: QWidget | None = None
    ) -> None:
        """`options` are (key, text)."""
        super().__init__(parent)
        self._manager = manager
        self.setAccessibleName(name)
        self._group = QButtonGroup(self)
        self._group.setExclusive(True)
        self._buttons: dict[str, QPushButton] = {}
        row = QHBoxLayout(self)
        row.setContentsMargins(2, 2, 2, 2)
        row.setSpacing(2)
        for key, text in options:
            button = TextButton(text)
            button.setCheckable(True)
            button.setProperty("kit", "segment")
            button.setCursor(Qt.CursorShape.PointingHandCursor)
            self._group.addButton(button)
            self._buttons[key] = button
            row.addWidget(button)
        self._group.buttonClicked.connect(self._clicked)

    def set_texts(self, texts: Sequence[str]) -> None:
        """Sets the choices' texts, in their order."""
        for button, text in zip(self._buttons.values(), texts, strict=True):
            button.setText(text)

    def choose(self, key: str) -> None:
        """Shows a choice as chosen; `chosen` is not emitted. An unknown key changes nothing."""
        if key in self._buttons:
            self._buttons[key].setChecked(True)

    def current(self) -> str:
        """The chosen key, "" if none is."""
        return next((key for key, button in self._buttons.items() if button.isChecked()), "")

    def _clicked(self) -> None:
        self.chosen.emit(self.current())


class ComboBox(QComboBox):
    """A combo box whose list is styled too; the wheel scrolls the page unless the box has the focus."""

    def __init__(self, name: str = "", *, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setAccessibleName(name)
        # The default delegate draws its own selection and knows nothing of the style sheet.
        self.setItemDelegate(QStyledItemDelegate(self))
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setSizeAdjustPolicy(QComboBox.SizeAdjustPolicy.AdjustToContents)

    def showPopup(self) -> None:  # noqa: N802 - Qt's name
        """The list shows whole entries: Qt takes all rows for as high as the first, and another script's are higher."""
        view = self.view()
        # Qt takes the frame away for the box around the list, which no style sheet reaches.
        view.setFrameShape(QFrame.Shape.StyledPanel)
        view.ensurePolished()
        rows = min(self.count(), self.maxVisibleItems())
        high = sum(view.sizeHintForRow(row) for row in range(rows))
        view.setFixedHeight(high + 2 * view.frameWidth())
        super().showPopup()

    def wheelEvent(self, event: QWheelEvent) -> None:  # noqa: N802 - Qt's name
        """Leaves the wheel to the page."""
        if self.hasFocus():
            super().wheelEvent(event)
        else:
            event.ignore()


class SpinBox(QSpinBox):
    """A box for whole numbers, grouped as the language does; the wheel scrolls the page unless it has the focus."""

    def __init__(self, name: str = "", *, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setAccessibleName(name)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setGroupSeparatorShown(True)
        self.setLocale(QLocale())

    def wheelEvent(self, event: QWheelEvent) -> None:  # noqa: N802 - Qt's name
        """Leaves the wheel to the page."""
        if self.hasFocus():
            super().wheelEvent(event)
        else:
            event.ignore()


class DoubleSpinBox(QDoubleSpinBox):
    """A box for numbers with a fraction; the wheel scrolls the page unless it has the focus."""

    def __init__(self, name: str = "", *, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setAccessibleName(name)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setLocale(QLocale())

    def wheelEvent(self, event: QWheelEvent) -> None:  # noqa: N802 - Qt's name
        """Leaves the wheel to the page."""
        if self.hasFocus():
            super().wheelEvent(event)
        else:
            event.ignore()
