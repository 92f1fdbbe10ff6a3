"""Parts of the settings of the models: a line for an address, and the model folder with its move."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from PySide6.QtCore import QSize, Qt, Signal
from PySide6.QtWidgets import QHBoxLayout, QLineEdit, QVBoxLayout, QWidget

from tandem.ui.kit import QuietButton, label, spaced
from tandem.ui.models_card_parts import Elided, JobView
from tandem.ui.session_state import NetworkView
from tandem.ui.settings_section import BOX

if TYPE_CHECKING:
    from tandem.ui.theme import ThemeManager

_LINE: Final = 2 * BOX
_A_TOKEN: Final = "hf_…"
_LONGEST_TOKEN: Final = 500


class Address(QLineEdit):
    """A line for an address; it is told when Enter is pressed or the focus goes."""

    written = Signal(str)

    def __init__(self, manager: ThemeManager) -> None:
        super().__init__()
        self._manager = manager
        self.setClearButtonEnabled(True)
        self.editingFinished.connect(lambda: self.written.emit(self.text().strip()))
        self.textChanged.connect(self._cleared)
        manager.changed.connect(self._retheme)
        self._retheme()

    def show_text(self, text: str) -> None:
        """Shows a text, unless another is being written."""
        if not self.hasFocus() or self.text().strip() == text:
            self.setText(text)
            self.setCursorPosition(0)

    def sizeHint(self) -> QSize:  # noqa: N802 - Qt's name
        """Room for most addresses."""
        return QSize(self._manager.px(_LINE), super().sizeHint().height())

    def _cleared(self, text: str) -> None:
        if not text and self.hasFocus():  # by the cross
            self.written.emit("")

    def _retheme(self) -> None:
        self.setMinimumWidth(self._manager.px(BOX))
        self.setMaximumWidth(self._manager.px(_LINE))
        self.updateGeometry()


class FolderBlock(QWidget):
    """The model folder: its path on a line of its own, as it may be long, and its buttons.

    Attributes:
        path: The path.
        change: Chooses another folder.
        open: Shows it in the file manager.
    """

    def __init__(self, manager: ThemeManager) -> None:
        super().__init__()
        self.name = label(wrap=True)
        self.help = label(size="small", role="muted", wrap=True)
        self.path = Elided(manager, "small", "text")
        self.change = QuietButton(manager, "", "folder")
        self.open = QuietButton(manager, "")
        self.moving = JobView(manager)
        self.stop = QuietButton(manager, "", "stop")
        self.block = QWidget()
        moving = QHBoxLayout(self.block)
        spaced(moving, manager, "m", ("", "s", "", ""))
        moving.addWidget(self.moving, 1)
        moving.addWidget(self.stop, 0, Qt.AlignmentFlag.AlignTop)
        self.block.hide()
        row = QHBoxLayout()
        spaced(row, manager, "s")
        row.addWidget(self.path, 1)
        row.addWidget(self.open)
        row.addWidget(self.change)
        column = QVBoxLayout(self)
        spaced(column, manager, "xs", ("", "s"))
        column.addWidget(self.name)
        column.addWidget(self.help)
        column.addLayout(row)
        column.addWidget(self.block)


class TokenBlock(QWidget):
    """The sign-in token: a line that hides it, and its buttons.

    Attributes:
        line: Where it is written; it never shows one that is kept.
        keep: Keeps it.
        forget: Takes it away again.
        help: Where one was found.
    """

    def __init__(self, manager: ThemeManager) -> None:
        super().__init__()
        self._name = label(wrap=True)
        self.help = label(size="small", role="muted", wrap=True)
        self.line = QLineEdit()
        self.line.setEchoMode(QLineEdit.EchoMode.Password)
        self.line.setMaxLength(_LONGEST_TOKEN)
        self.line.setPlaceholderText(_A_TOKEN)
        self._name.setBuddy(self.line)
        self.keep = QuietButton(manager, "", "lock")
        self.forget = QuietButton(manager, "", "trash")
        row = QHBoxLayout()
        spaced(row, manager, "s")
        row.addWidget(self.line, 1)
        row.addWidget(self.keep)
        row.addWidget(self.forget)
        column = QVBoxLayout(self)
        spaced(column, manager, "xs", ("", "s"))
        column.addWidget(self._name)
        column.addWidget(self.help)
        column.addLayout(row)

    def set_name(self, text: str) -> None:
        """What it is."""
        self._name.setText(text)
        self.line.setAccessibleName(text)


def offline_variable(view: NetworkView) -> str:
    """Name of the variable that forbids connections."""
    return next((one.name for one in view.variables if one.effect == "offline"), "HF_HUB_OFFLINE")
