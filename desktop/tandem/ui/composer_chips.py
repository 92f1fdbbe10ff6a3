"""The chips beside Send: what may change from message to message without loading anything again."""

from __future__ import annotations

from PySide6.QtCore import QEvent, Qt, Signal
from PySide6.QtGui import QKeySequence
from PySide6.QtWidgets import QSizePolicy, QWidget

from tandem.ui.composer_parts import FlowRow
from tandem.ui.kit import ToggleChip, spaced
from tandem.ui.theme import ThemeManager


class Chips(QWidget):
    """The switches of the drafter, of thinking and of the token view; their `clicked` tells what the user switched.

    Args:
        manager: Colours, sizes and fonts.

    Signals:
        refused: Why a switch that was asked for by its key cannot be used.
    """

    refused = Signal(str)

    def __init__(self, manager: ThemeManager) -> None:
        super().__init__()
        self.drafter = ToggleChip(manager, "bolt", "")
        self.thinking = ToggleChip(manager, "thinking", "")
        self.drafted = ToggleChip(manager, "highlight", "")
        self._length = ""
        self._reasons: dict[ToggleChip, str] = {}
        self._keys = ("", "", "")
        row = FlowRow()
        spaced(row, manager, "xs")
        for chip in (self.drafter, self.thinking, self.drafted):
            row.addWidget(chip)
        self.setLayout(row)
        policy = QSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Minimum)
        policy.setHeightForWidth(True)
        self.setSizePolicy(policy)
        self.drafter.toggled.connect(self._retranslate)
        self._retranslate()

    def set_drafter(self, available: bool, on: bool, length: str, reason: str) -> None:
        """See `Composer.set_drafter`."""
        self._length = length
        self._set(self.drafter, available, on, reason)

    def set_thinking(self, available: bool, on: bool, reason: str) -> None:
        """See `Composer.set_thinking`."""
        self._set(self.thinking, available, on, reason)

    def set_show_drafted(self, on: bool) -> None:
        """See `Composer.set_show_drafted`."""
        self._set(self.drafted, True, on, "")

    def set_shortcuts(self, drafter: str, thinking: str, drafted: str) -> None:
        """Sets the keys that the tooltips show, as portable text."""
        self._keys = (drafter, thinking, drafted)
        self._retranslate()

    def toggle(self, chip: ToggleChip) -> None:
        """Clicks a chip, or says why it cannot be used."""
        if chip.isEnabled():
            chip.click()
        elif self._reasons.get(chip):
            self.refused.emit(self._reasons[chip])

    def changeEvent(self, event: QEvent) -> None:  # noqa: N802 - Qt's name
        """Speaks another language at once."""
        if event.type() in (QEvent.Type.LanguageChange, QEvent.Type.LocaleChange):
            self._retranslate()
        super().changeEvent(event)

    def _set(self, chip: ToggleChip, available: bool, on: bool, reason: str) -> None:
        self._reasons[chip] = "" if available else reason
        chip.setEnabled(available)
        chip.setChecked(on)
        chip.setCursor(Qt.CursorShape.PointingHandCursor if available else Qt.CursorShape.ArrowCursor)
        self._retranslate()

    def _retranslate(self) -> None:
        name = self.tr("Drafter")
        if self._length and self.drafter.isChecked():
            name = self.tr("Drafter · {length}").format(length=self._length)
        what = self.tr("The drafter proposes the next tokens; the model checks them together in one pass.")
        self._name(self.drafter, name, what, self._keys[0])
        what = self.tr("The model thinks before it answers; the thought is folded above the answer.")
        self._name(self.thinking, self.tr("Thinking"), what, self._keys[1])
        what = self.tr("Marks the tokens that the drafter proposed: which were accepted, and where one was rejected.")
        self._name(self.drafted, self.tr("Drafted tokens"), what, self._keys[2])

    def _name(self, chip: ToggleChip, name: str, what: str, shortcut: str) -> None:
        keys = QKeySequence(shortcut).toString(QKeySequence.SequenceFormat.NativeText)
        said = self._reasons.get(chip) or what
        chip.setText(name)
        chip.setAccessibleName(name)
        chip.setAccessibleDescription(said)
        chip.setToolTip(f"{said}  {keys}" if keys else said)
        chip.updateGeometry()
