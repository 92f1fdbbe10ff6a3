"""The settings: one calm column of sections, with a list of them beside it where there is room."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from PySide6.QtCore import QSignalBlocker, Qt, Signal
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QFrame, QHBoxLayout, QListWidget, QListWidgetItem, QWidget

from tandem.settings import Settings
from tandem.ui.kit import label
from tandem.ui.page import Column, Speaking
from tandem.ui.settings_answers import DraftingSection, PromptSection, SamplingSection
from tandem.ui.settings_data import AboutSection, DataSection, PrivacySection
from tandem.ui.settings_engine import EngineSection
from tandem.ui.settings_looks import AppearanceSection
from tandem.ui.settings_models import ModelsSection

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tandem.engine.protocol import DeviceInfo
    from tandem.hardware.machine import Machine
    from tandem.models.progress import JobProgress
    from tandem.ui.session_state import NetworkView, PairState
    from tandem.ui.settings_section import Section
    from tandem.ui.theme import ThemeManager

LIST_FROM: Final = 760
LIST_WIDTH: Final = 200
MOST_LIST_WIDTH: Final = 264
"""Width of the page from which on the list is shown, and its own at least and at most, in pixels at 100 %."""


class SettingsPage(Speaking):
    """Shows the settings and says what was changed; it changes nothing itself.

    Attributes:
        changed: A dict of fields of `Settings` with their new values.
        reload_requested: The pair is to be loaded again.
        data_folder_requested: The folder with chats and settings is to be shown.
        logs_folder_requested: The folder with the logs is to be shown.
        logs_zip_requested: The logs are to be saved as a zip file.
        export_all_requested: All chats are to be exported, as "markdown" or "json".
        import_requested: Chats are to be imported.
        purge_requested: Deleted chats are to be removed for good.
        shortcuts_requested: The list of shortcuts is to be shown.
        folder_move_requested: The folder that the models are to be moved to.
        stop_move_requested: That is to be stopped.
        token_keep_requested: A sign-in token, to be kept in the keyring.
        token_forget_requested: It is to be taken out again.
    """

    changed = Signal(object)
    reload_requested = Signal()
    data_folder_requested = Signal()
    logs_folder_requested = Signal()
    logs_zip_requested = Signal()
    export_all_requested = Signal(str)
    import_requested = Signal()
    purge_requested = Signal()
    shortcuts_requested = Signal()
    folder_move_requested = Signal(str)
    stop_move_requested = Signal()
    token_keep_requested = Signal(str)
    token_forget_requested = Signal()

    def __init__(self, manager: ThemeManager, parent: QWidget | None = None) -> None:
        super().__init__(manager, parent)
        self._going = False  # towards a section chosen in the list
        self.appearance = AppearanceSection(manager)
        self.drafting = DraftingSection(manager)
        self.sampling = SamplingSection(manager)
        self.prompt = PromptSection(manager)
        self.engine = EngineSection(manager)
        self.models = ModelsSection(manager)
        self.data = DataSection(manager)
        self.privacy = PrivacySection(manager)
        self.about = AboutSection(manager)
        self.sections: Final[tuple[Section, ...]] = (
            self.appearance,
            self.drafting,
            self.sampling,
            self.prompt,
            self.engine,
            self.models,
            self.data,
            self.privacy,
            self.about,
        )
        self.heading = label(size="title", bold=True)
        self.say(self.heading.setText, lambda: self.tr("Settings"))
        self.column = Column(manager, gap="xl")
        self.column.body.addWidget(self.heading)
        for section in self.sections:
            self.column.body.addWidget(section)
            section.changed.connect(self.changed)
        self.column.body.addStretch(1)
        self.column.settle()
        self.list = QListWidget()
        self.list.setFrameShape(QFrame.Shape.NoFrame)
        self.list.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.list.currentRowChanged.connect(self._go)
        self.list.itemClicked.connect(lambda item: self._go(self.list.row(item)))  # the marked one too
        self.column.verticalScrollBar().valueChanged.connect(self._follow)
        row = QHBoxLayout(self)
        row.setContentsMargins(0, 0, 0, 0)
        row.setSpacing(0)
        row.addWidget(self.list, 0, Qt.AlignmentFlag.AlignTop)
        row.addWidget(self.column, 1)
        self.engine.reload_requested.connect(self.reload_requested)
        self.models.folder_move_requested.connect(self.folder_move_requested)
        self.models.stop_move_requested.connect(self.stop_move_requested)
        self.models.token_keep_requested.connect(self.token_keep_requested)
        self.models.token_forget_requested.connect(self.token_forget_requested)
        self.data.export_all_requested.connect(self.export_all_requested)
        self.data.import_requested.connect(self.import_requested)
        self.data.purge_requested.connect(self.purge_requested)
        self.data.data_folder_requested.connect(self.data_folder_requested)
        self.data.logs_folder_requested.connect(self.logs_folder_requested)
        self.data.logs_zip_requested.connect(self.logs_zip_requested)
        self.about.shortcuts_requested.connect(self.shortcuts_requested)
        manager.changed.connect(self._retheme)
        self.retranslate()
        self._retheme()

    def set_settings(self, settings: Settings) -> None:
        """Shows these settings; nothing is emitted."""
        for section in self.sections:
            section.set_settings(settings)

    def set_pair(self, pair: PairState) -> None:
        """The pair in use: its trained context, and whether it must be loaded again."""
        self.engine.set_pair(pair)

    def set_devices(self, devices: Sequence[DeviceInfo]) -> None:
        """The devices that the engine found."""
        self.engine.set_devices(devices)

    def set_machine(self, machine: Machine) -> None:
        """Facts of this machine."""
        self.engine.set_cpus(machine.cpus)

    def set_network(self, network: NetworkView) -> None:
        """How the Hub is reached, and where the models are."""
        self.models.set_network(network)
        self.privacy.set_network(network)

    def set_checking(self, job: JobProgress | None) -> None:
        """Files that are being hashed, copied or moved; only a move is shown here."""
        self.models.set_move(job if job is not None and job.key == "move" else None)

    def show_section(self, section: Section) -> None:
        """Scrolls to a section."""
        self._going = True
        self.column.verticalScrollBar().setValue(self._top(section))
        self._going = False
        with QSignalBlocker(self.list):
            self.list.setCurrentRow(self.sections.index(section))

    def retranslate(self) -> None:
        """The list's texts."""
        self.list.setAccessibleName(self.tr("Sections"))
        with QSignalBlocker(self.list):
            chosen = max(0, self.list.currentRow())
            self.list.clear()
            for section in self.sections:
                QListWidgetItem(section.name(), self.list)
            self.list.setCurrentRow(chosen)
        self._size_list()

    def resizeEvent(self, event: QResizeEvent) -> None:  # noqa: N802 - Qt's name
        """Shows the list where there is room."""
        super().resizeEvent(event)
        self._retheme()

    def _top(self, section: Section) -> int:
        return max(0, section.y() - self._manager.theme.space.xl)

    def _go(self, row: int) -> None:
        if row >= 0:
            self.show_section(self.sections[row])

    def _follow(self, value: int) -> None:
        """Marks the section that stands where one reads: a quarter down the page; at the ends, first and last."""
        if self._going:
            return
        bar = self.column.verticalScrollBar()
        high = self.column.viewport().height()
        lead = min(high / 4, value)
        # Over the last page the line sinks to its foot, so that short sections at the end have their turn too.
        last = max(1, min(high, bar.maximum()))
        lead += (high - lead) * max(0.0, 1 - (bar.maximum() - value) / last)
        rows = [row for row, section in enumerate(self.sections) if section.y() <= value + lead]
        row = max(rows, default=0)
        with QSignalBlocker(self.list):
            self.list.setCurrentRow(row)

    def _retheme(self) -> None:
        px = self._manager.px
        self.list.setVisible(self.width() >= px(LIST_FROM))
        theme = self._manager.theme
        sheet = f"""
            QListWidget {{ background: transparent; border: 2px solid transparent; border-radius: {theme.radius.m}px;
                margin: {theme.space.l}px 0 0 {theme.space.s}px; padding: 0; outline: none; }}
            QListWidget:focus {{ border-color: {theme.focus}; }}
            QListWidget::item {{ padding: {px(7)}px {px(10)}px; border-radius: {theme.radius.m}px;
                color: {theme.muted}; }}
            QListWidget::item:selected {{ color: {theme.text}; background: {theme.accent_soft}; }}
        """
        if sheet != self.list.styleSheet():
            self.list.setStyleSheet(sheet)
            self._size_list()

    def _size_list(self) -> None:
        """As high as its entries, so that the ring of focus is around them."""
        self.list.doItemsLayout()
        frame = self.list.height() - self.list.viewport().height()
        margin = self.list.width() - self.list.viewport().width()
        width = min(margin + self.list.sizeHintForColumn(0), self._manager.px(MOST_LIST_WIDTH))
        self.list.setFixedWidth(max(width, self._manager.px(LIST_WIDTH)))
        self.list.setFixedHeight(frame + sum(self.list.sizeHintForRow(row) for row in range(self.list.count())))
