"""Settings of what is kept and what leaves the machine: chats, logs, privacy, and what this program is."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QGridLayout, QHBoxLayout, QLabel, QVBoxLayout, QWidget

import tandem
from tandem.ui import icons
from tandem.ui.kit import QuietButton, label, spaced
from tandem.ui.session_state import NetworkView
from tandem.ui.settings_section import Section

if TYPE_CHECKING:
    from tandem.ui.theme import ThemeManager


HUB: Final = "huggingface.co"
"""Where models come from, unless another address is set."""


class Host(NamedTuple):
    """A host that Tandem can contact.

    Attributes:
        name: Its name.
        when: On what occasion, in the user's language.
        sent: What is sent, in the user's language.
    """

    name: str
    when: str
    sent: str


class _Buttons(QWidget):
    """Buttons side by side, at the right of a row."""

    def __init__(self, manager: ThemeManager, buttons: Sequence[QuietButton]) -> None:
        super().__init__()
        row = QHBoxLayout(self)
        spaced(row, manager, "s")
        for button in buttons:
            row.addWidget(button)
        self.setFocusProxy(buttons[0])


class DataSection(Section):
    """Chats in and out, the folders, the logs."""

    export_all_requested = Signal(str)
    import_requested = Signal()
    purge_requested = Signal()
    data_folder_requested = Signal()
    logs_folder_requested = Signal()
    logs_zip_requested = Signal()

    def __init__(self, manager: ThemeManager, parent: QWidget | None = None) -> None:
        super().__init__(manager, parent)
        self.entitle(lambda: self.tr("Chats and files"))
        self.markdown = self._button("export", lambda: self.tr("Markdown…"), lambda: self.tr("Export all as Markdown"))
        self.json = self._button("export", lambda: self.tr("JSON…"), lambda: self.tr("Export all as JSON"))
        self.markdown.clicked.connect(lambda: self.export_all_requested.emit("markdown"))
        self.json.clicked.connect(lambda: self.export_all_requested.emit("json"))
        self.field(
            _Buttons(manager, [self.markdown, self.json]),
            lambda: self.tr("Export all chats"),
            lambda: self.tr("Markdown to read, JSON to keep everything and read it in again."),
        )
        self.load = self._button("download", lambda: self.tr("Import…"), lambda: self.tr("Import chats"))
        self.load.clicked.connect(self.import_requested)
        self.field(
            _Buttons(manager, [self.load]),
            lambda: self.tr("Import chats"),
            lambda: self.tr("From a JSON file of Tandem's. Chats that are here stay as they are."),
        )
        self.purge = self._button("trash", lambda: self.tr("Remove now"), lambda: self.tr("Remove deleted chats now"))
        self.purge.clicked.connect(self.purge_requested)
        self.field(
            _Buttons(manager, [self.purge]),
            lambda: self.tr("Deleted chats"),
            lambda: self.tr("Kept in Tandem's file for at least a day, so that they can be brought back."),
        )
        self.folder = self._button("folder", lambda: self.tr("Open"), lambda: self.tr("Open Tandem's folder"))
        self.folder.clicked.connect(self.data_folder_requested)
        self.field(
            _Buttons(manager, [self.folder]),
            lambda: self.tr("Tandem's folder"),
            lambda: self.tr("Chats and settings, on this machine only."),
        )
        self.logs = self._button("folder", lambda: self.tr("Open"), lambda: self.tr("Open the folder with the logs"))
        self.logs.clicked.connect(self.logs_folder_requested)
        self.zip = self._button("file", lambda: self.tr("Save as zip…"), lambda: self.tr("Save logs as zip"))
        self.zip.clicked.connect(self.logs_zip_requested)
        self.field(
            _Buttons(manager, [self.logs, self.zip]),
            lambda: self.tr("Logs"),
            lambda: self.tr("What the engine said, for reporting a fault. They hold no chat text."),
        )

    def _button(self, icon: str, text: Callable[[], str], name: Callable[[], str]) -> QuietButton:
        button = QuietButton(self._manager, "", icon)
        self.say(button.setText, text)
        self.say(button.setAccessibleName, name)
        return button


class PrivacySection(Section):
    """Every host that the app can contact, and when."""

    def __init__(self, manager: ThemeManager, parent: QWidget | None = None) -> None:
        super().__init__(manager, parent)
        self._network = NetworkView()
        self.entitle(lambda: self.tr("Privacy"))
        self._picture = QLabel()
        self.statement = label(bold=True, wrap=True)
        self._telemetry = label(size="small", role="muted", wrap=True)
        self.say(
            self._telemetry.setText,
            lambda: self.tr(
                "No telemetry, no account, no check for updates. What you write and what is answered stays on this "
                "machine."
            ),
        )
        self._deleted = label(size="small", role="muted", wrap=True)
        self.say(
            self._deleted.setText,
            lambda: self.tr(
                "A deleted chat stays in Tandem's file for at least a day and is removed when Tandem next starts. "
                "“Remove now” under “Chats and files” removes it at once."
            ),
        )
        words = QVBoxLayout()
        spaced(words, manager, "xs")
        words.addWidget(self.statement)
        words.addWidget(self._telemetry)
        words.addWidget(self._deleted)
        block = QWidget()
        row = QHBoxLayout(block)
        spaced(row, manager, "m", ("", "s"))
        row.addWidget(self._picture, 0, Qt.AlignmentFlag.AlignTop)
        row.addLayout(words, 1)
        self.add(block)
        self.table = QWidget()
        self._grid = QGridLayout(self.table)
        spaced(self._grid, manager, "s", ("", "s"))
        for column in range(3):
            self._grid.setColumnStretch(column, 1)
        self.add(self.table)
        manager.changed.connect(self._retheme)
        self._retheme()
        self.retranslate()

    def set_network(self, network: NetworkView) -> None:
        """How the Hub is reached."""
        self._network = network
        self.retranslate()

    def retranslate(self) -> None:
        """The statement and the table."""
        statement = self.tr("Tandem goes online for one thing alone: to download a model, when you ask for it.")
        if self._network.offline:
            statement = self.tr("Offline mode is on: Tandem opens no network connection.")
        self.statement.setText(statement)
        while (item := self._grid.takeAt(0)) is not None:
            if (old := item.widget()) is not None:
                old.hide()
                old.deleteLater()
        rows = self._hosts()
        heading = Host(self.tr("Host"), self.tr("When"), self.tr("What is sent"))
        for line, host in enumerate((heading, *rows)):
            for column, text in enumerate(host):
                cell = label(text, size="small", role="text" if line else "muted", wrap=True)
                self._grid.addWidget(cell, line, column, Qt.AlignmentFlag.AlignTop)

    def _hosts(self) -> tuple[Host, ...]:
        """The Hub tells what a file is and where it lies; another host may keep its bytes."""
        hub, *stores = self._network.hosts or (HUB,)
        asked = self.tr("When you press Download, Resume, Try again or Start again.")
        sent = self.tr("The names of repository and file. Your token, if you have one.")
        rows = [Host(hub, asked, sent)]
        for store in stores or (self.tr("storage hosts that the Hub names"),):
            rows.append(
                Host(store, self.tr("During a download."), self.tr("Which part of the file comes next. No token."))
            )
        return tuple(rows)

    def _retheme(self) -> None:
        theme = self._manager.theme
        self._picture.setPixmap(icons.pixmap("lock", "good", theme.px(20), self.devicePixelRatioF(), theme))


class AboutSection(Section):
    """Version and licence, and where the shortcuts are."""

    shortcuts_requested = Signal()

    def __init__(self, manager: ThemeManager, parent: QWidget | None = None) -> None:
        super().__init__(manager, parent)
        self.entitle(lambda: self.tr("About"))
        self.shortcuts = QuietButton(manager, "", "keyboard")
        self.say(self.shortcuts.setText, lambda: self.tr("Keyboard shortcuts"))
        self.shortcuts.clicked.connect(self.shortcuts_requested)
        self.field(
            _Buttons(manager, [self.shortcuts]),
            lambda: self.tr("Tandem {version}").format(version=tandem.__version__),
            lambda: self.tr("Free software under the Apache licence 2.0."),
        )
