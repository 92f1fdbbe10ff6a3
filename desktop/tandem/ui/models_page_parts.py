"""Parts of the page Models that belong to no model: its head, what folds, what is shown while files are dragged."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import QPoint, Qt, Signal
from PySide6.QtWidgets import QFrame, QHBoxLayout, QVBoxLayout, QWidget

from tandem.hardware.machine import Machine
from tandem.ui.i18n import size
from tandem.ui.kit import IconButton, Menu, QuietButton, label, spaced
from tandem.ui.models_card_menu import show_folder
from tandem.ui.models_card_parts import Elided
from tandem.ui.page import Speaking

if TYPE_CHECKING:
    from tandem.models.overview import Overview
    from tandem.ui.theme import ThemeManager


class DropHint(QFrame):
    """Lies over the page while files are dragged there, and says what dropping does."""

    def __init__(self, manager: ThemeManager, parent: QWidget) -> None:
        super().__init__(parent)
        self.setProperty("kit", "drop")
        self.setAttribute(Qt.WidgetAttribute.WA_TransparentForMouseEvents)
        self.text = label(size="title", role="accent", bold=True, wrap=True)
        self.text.setAlignment(Qt.AlignmentFlag.AlignCenter)
        column = QVBoxLayout(self)
        spaced(column, manager, "", "xl")
        column.addWidget(self.text)
        self.hide()


class PageHead(Speaking):
    """The title, what can be done with all files, this machine, and the model folder.

    Attributes:
        import_requested: Files are to be chosen for import.
        verify_requested: Installed files are to be hashed again.
        places_requested: Files of other programs are to be listed.
        settings_requested: The settings of the network and the model folder are to be shown.
        menu: The last menu.
    """

    import_requested = Signal()
    verify_requested = Signal()
    places_requested = Signal()
    settings_requested = Signal()

    def __init__(self, manager: ThemeManager, parent: QWidget | None = None) -> None:
        super().__init__(manager, parent)
        self._machine: Machine | None = None
        self._overview: Overview | None = None
        heading = label(size="title", bold=True)
        self.say(heading.setText, lambda: self.tr("Models"))
        self.here = label(size="small", role="muted", wrap=True)
        self.folder = Elided(manager)
        self.load = QuietButton(manager, "", "plus")
        self.say(self.load.setText, lambda: self.tr("Import files…"))
        self.load.clicked.connect(self.import_requested)
        self.more = IconButton(manager, "more", "")
        self.say(self.more.set_name, lambda: self.tr("More for all models"))
        self.more.clicked.connect(self.open_menu)
        self.menu: Menu | None = None
        row = QHBoxLayout()
        spaced(row, manager, "s")
        row.addWidget(heading)
        row.addStretch(1)
        row.addWidget(self.load)
        row.addWidget(self.more)
        column = QVBoxLayout(self)
        spaced(column, manager, "xs")
        column.addLayout(row)
        column.addWidget(self.here)
        column.addWidget(self.folder)
        self.retranslate()

    def set_machine(self, machine: Machine) -> None:
        """Facts of this machine."""
        self._machine = machine
        self.retranslate()

    def set_overview(self, overview: Overview) -> None:
        """The model folder, and the room on its disk."""
        self._overview = overview
        self.retranslate()

    def retranslate(self) -> None:
        """The lines about this machine and the folder."""
        machine, overview = self._machine, self._overview
        if machine is None:
            self.here.setText(self.tr("Looking at this machine…"))
        else:
            text = self.tr("{cpu} · %n CPU(s) · {free} of {total} memory free", "", machine.cpus)
            sizes = {"free": size(machine.memory_free), "total": size(machine.memory_total)}
            self.here.setText(text.format(cpu=machine.cpu, **sizes))
        self.folder.setVisible(overview is not None)
        if overview is not None:
            text = self.tr("{free} free in {folder}")
            self.folder.set_whole(text.format(free=size(overview.free), folder=overview.folder))

    def open_menu(self) -> Menu:
        """Opens what can be done with all files."""
        if self.menu is not None:
            self.menu.deleteLater()
        menu = self.menu = Menu(self._manager, self)
        menu.add("check", self.tr("Verify files"), self.verify_requested.emit)
        menu.add("search", self.tr("Find files of other programs"), self.places_requested.emit)
        overview = self._overview
        if overview is not None:
            menu.add("folder", self.tr("Show the model folder"), lambda: show_folder(overview.folder))
        menu.addSeparator()
        menu.add("settings", self.tr("Models and network"), self.settings_requested.emit)
        menu.popup(self.more.mapToGlobal(QPoint(0, self.more.height() + 2)))
        return menu


class Fold(Speaking):
    """A button that folds the larger models away and out, and what they are.

    Attributes:
        toggled: Whether they are shown, when the user says so.
        button: The button.
    """

    toggled = Signal(bool)

    def __init__(self, manager: ThemeManager, names: str, parent: QWidget | None = None) -> None:
        super().__init__(manager, parent)
        self.button = QuietButton(manager, "", "chevron-right")
        self.button.setCheckable(True)
        self.button.clicked.connect(self.toggled)
        self.say(self.button.setText, lambda: self.tr("Larger models"))
        text = label(size="small", role="muted", wrap=True)
        self.say(text.setText, lambda: self.tr("{names}: for machines with much memory.").format(names=names))
        self.button.setAccessibleDescription(text.text())
        row = QHBoxLayout(self)
        spaced(row, manager, "m")
        row.addWidget(self.button)
        row.addWidget(text, 1)

    def set_unfolded(self, unfolded: bool) -> None:
        """Whether they are shown."""
        self.button.setChecked(unfolded)
        self.button.set_icon("chevron-down" if unfolded else "chevron-right")
