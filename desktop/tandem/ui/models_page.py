"""The models: the pair in use, the sizes of Gemma 4 with a card each, and files of one's own."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QDragEnterEvent, QDragLeaveEvent, QDropEvent
from PySide6.QtWidgets import QFileDialog, QHBoxLayout, QVBoxLayout, QWidget

from tandem.hardware.machine import Machine
from tandem.models.catalog import Catalog, catalog
from tandem.models.progress import JobProgress
from tandem.models.state import FileState
from tandem.ui.chat_notices import ChatNotices
from tandem.ui.kit import SectionTitle, spaced
from tandem.ui.models_card import ModelCard
from tandem.ui.models_card_demo import CheckBar, DemoTile
from tandem.ui.models_card_files import ImportedCard, QuarantineCard
from tandem.ui.models_files import FilesCard, dropped_files
from tandem.ui.models_import import ImportDialog, Sheet
from tandem.ui.models_import_places import PlacesDialog
from tandem.ui.models_page_parts import DropHint, Fold, PageHead
from tandem.ui.models_pair import PairCard
from tandem.ui.page import Banner, Column, Speaking, Tiles
from tandem.ui.session_state import LoadState, NetworkView, Notice, PairState
from tandem.ui.settings_models_parts import offline_variable

if TYPE_CHECKING:
    from tandem.models.imports import Found
    from tandem.models.overview import Overview
    from tandem.models.places import Known
    from tandem.ui.pair_check import PairCheck
    from tandem.ui.theme import ThemeManager

WIDTH: Final = 860
_CARD: Final = 336


class ModelsPage(Speaking):
    """Shows what is here and what could be, and asks for it; it loads, fetches and checks nothing itself.

    Attributes:
        load_requested: A `PairChoice` is to be loaded.
        cancel_load_requested: The load under way is to be given up.
        check_requested: The headers of two files are to be read (`pair_check.check_files`); the answer goes to
            `set_check`.
        download_requested: A pair's key in the catalog.
        pause_requested: The download is to be paused.
        resume_requested: A pair's key.
        cancel_requested: A pair's key, and whether what has come in is kept.
        start_again_requested: A pair's key: from its first byte.
        use_requested: A pair's key: it is to be loaded.
        verify_requested: Installed files are to be hashed again.
        stop_check_requested: That, or an import, is to be stopped.
        remove_requested: A pair's key, or the path of an imported or quarantined file.
        look_requested: Paths of files that may be imported; the answer goes to `set_found`.
        take_requested: A file that was looked at, and how it is taken in: "copy", "link" or "in-place".
        places_requested: Files of other programs are to be listed; the answer goes to `set_places`.
        settings_requested: The settings of the network and the model folder are to be shown.
        notice_performed: A `Notice` whose button was pressed.
    """

    load_requested = Signal(object)
    cancel_load_requested = Signal()
    check_requested = Signal(str, str)
    download_requested = Signal(str)
    pause_requested = Signal()
    resume_requested = Signal(str)
    cancel_requested = Signal(str, bool)
    start_again_requested = Signal(str)
    use_requested = Signal(str)
    verify_requested = Signal()
    stop_check_requested = Signal()
    remove_requested = Signal(str)
    look_requested = Signal(list)
    take_requested = Signal(object, str)
    places_requested = Signal()
    settings_requested = Signal()
    notice_performed = Signal(object)

    def __init__(self, manager: ThemeManager, parent: QWidget | None = None, known: Catalog | None = None) -> None:
        super().__init__(manager, parent)
        self._known = known or catalog()
        self._network = NetworkView()
        self._pair = PairState()
        self._folded: bool | None = None  # None: nobody has said
        self.dialog: Sheet | None = None
        self.head = PageHead(manager)
        larger = [each.name.removeprefix("Gemma 4 ") for each in self._known.sizes if not each.main]
        self.fold = Fold(manager, ", ".join(larger))
        self.checking = CheckBar(manager)
        self.offline = Banner(manager, "warn")
        self.offline.hide()
        self.pair = PairCard(manager)
        self.demo = DemoTile(manager)
        self.demo.heir = self.fold.button
        self.cards: Final = {each.key: ModelCard(manager, each) for each in self._known.sizes}
        self.tiles, self.larger = Tiles(manager, _CARD, 2), Tiles(manager, _CARD, 2)
        for each in self._known.sizes:
            (self.tiles if each.main else self.larger).add(self.cards[each.key])
        self.imported = ImportedCard(manager)
        self.quarantined = QuarantineCard(manager)
        self.files = FilesCard(manager)
        self.notices = ChatNotices(manager, self.notice_performed.emit)
        self.hint = DropHint(manager, self)
        self._lay(manager)
        for part in (self.checking, self.imported, self.quarantined):
            for inner in part.findChildren(QWidget):
                inner.ensurePolished()  # they are not there yet, and follow the text size all the same
        self._connect()
        self.setAcceptDrops(True)
        self.retranslate()

    def _lay(self, manager: ThemeManager) -> None:
        pairs = SectionTitle(manager)
        self.say(pairs.setText, lambda: self.tr("Gemma 4 with its drafter"))
        self.column = Column(manager, WIDTH)
        body = self.column.body
        parts: tuple[QWidget, ...] = (
            self.head,
            self.checking,
            self.offline,
            self.pair,
            pairs,
            self.tiles,
            self.demo,
            self.fold,
            self.larger,
            self.imported,
            self.quarantined,
            self.files,
        )
        for part in parts:
            body.addWidget(part)
        body.addStretch(1)
        self.column.settle()
        foot = QHBoxLayout()
        spaced(foot, manager, "", ("l", "", "l", "s"))
        foot.addWidget(self.notices, 1)
        outer = QVBoxLayout(self)
        outer.setContentsMargins(0, 0, 0, 0)
        outer.setSpacing(0)
        outer.addWidget(self.column, 1)
        outer.addLayout(foot)

    def _connect(self) -> None:
        self.head.import_requested.connect(self.open_dialog)
        self.head.verify_requested.connect(self.verify_requested)
        self.head.places_requested.connect(self.places_requested)
        self.head.settings_requested.connect(self.settings_requested)
        self.fold.toggled.connect(self._on_fold)
        self.pair.load_requested.connect(self.load_requested)
        self.pair.cancel_requested.connect(self.cancel_load_requested)
        self.demo.load_requested.connect(self.load_requested)
        self.checking.stop_requested.connect(self.stop_check_requested)
        self.files.check_requested.connect(self.check_requested)
        self.files.load_requested.connect(self.load_requested)
        self.imported.use_requested.connect(self._use_file)
        for rows in (self.imported, self.quarantined):
            rows.verify_requested.connect(self.verify_requested)
            rows.remove_requested.connect(self.remove_requested)
        for card in self.cards.values():
            for name in (
                "download_requested",
                "pause_requested",
                "resume_requested",
                "cancel_requested",
                "start_again_requested",
                "use_requested",
                "verify_requested",
                "stop_check_requested",
                "remove_requested",
                "settings_requested",
            ):
                getattr(card, name).connect(getattr(self, name))

    # What it is told

    def set_overview(self, overview: Overview) -> None:
        """Every pair and file as it is now."""
        self.head.set_overview(overview)
        for card in self.cards.values():
            card.set_views(overview.pairs)
        self.imported.set_files(overview.imported)
        self.quarantined.set_files(overview.quarantined)
        self.retranslate()

    def set_job(self, job: JobProgress | None) -> None:
        """The download under way, or how the last one ended early; None for none."""
        for card in self.cards.values():
            card.set_job(job)
        self._show_fold()

    def set_checking(self, job: JobProgress | None) -> None:
        """Files that are being hashed, copied or moved; None for none."""
        self.checking.set_job(job)
        for card in self.cards.values():
            card.set_checking(job)

    def set_found(self, found: Sequence[Found]) -> None:
        """Files that were looked at: asks whether and how they are taken in."""
        if not found:
            return
        dialog = ImportDialog(self._manager, found, self.window(), self._known)
        dialog.taken.connect(self.take_requested)
        self._open(dialog)

    def set_places(self, places: Sequence[Known]) -> None:
        """Files in the folders of other programs: asks which of them are to be looked at."""
        dialog = PlacesDialog(self._manager, places, self.window(), self._known)
        dialog.chosen.connect(self.look_requested)
        self._open(dialog)

    def set_network(self, network: NetworkView) -> None:
        """How the Hub is reached."""
        self._network = network
        for card in self.cards.values():
            card.set_network(network)
        self.retranslate()

    def set_pair(self, pair: PairState) -> None:
        """The pair in use."""
        self._pair = pair
        self.pair.set_pair(pair)
        busy = pair.kind == "loading"
        self.demo.set_state(pair.kind == "loaded" and pair.choice.kind == "demo", busy)
        self.files.set_busy(busy)
        used = pair.choice.target if pair.choice.kind == "files" and pair.kind in ("loading", "loaded") else None
        for card in self.cards.values():
            card.set_pair(used or "", loading=busy)
        if pair.choice.kind == "files" and not any(self.files.asked):
            self.files.set_files(pair.choice.target or "", pair.choice.drafter or "")

    def set_load(self, load: LoadState) -> None:
        """How far a load is."""
        self.pair.set_load(load)

    def set_machine(self, machine: Machine) -> None:
        """Facts of this machine."""
        self.head.set_machine(machine)
        for card in self.cards.values():
            card.set_machine(machine)
        self.files.set_machine(machine)

    def set_check(self, check: PairCheck) -> None:
        """What was found in the files that `check_requested` named."""
        self.files.set_check(check)

    def tell(self, notice: Notice) -> None:
        """Shows a message at the foot of the page."""
        self.notices.tell(notice)

    # What it shows

    def show_files(self) -> None:
        """Brings the fields for files into view and puts the cursor there."""
        self.column.ensureWidgetVisible(self.files)
        self.files.target.path.setFocus()

    def show_card(self, key: str) -> None:
        """Brings the card of a pair into view and puts the keyboard on its button."""
        card = next((card for card in self.cards.values() if any(pair.key == key for pair in card.size_.pairs)), None)
        if card is None:
            return
        if not card.size_.main:
            self._folded = False
            self._show_fold()
        self.column.ensureWidgetVisible(card)
        card.action.button.setFocus(Qt.FocusReason.OtherFocusReason)

    def retranslate(self) -> None:
        """The network, and what is said while files are dragged."""
        self.offline.setVisible(self._network.offline)
        self.offline.set_text(
            self.tr("{variable} is set: Tandem opens no connection and downloads nothing.").format(
                variable=offline_variable(self._network)
            ),
            self.tr("Start Tandem without that variable to download models. Files of your own can be imported."),
        )
        self.hint.text.setText(self.tr("Drop files to import them"))
        self._show_fold()

    def open_dialog(self) -> QFileDialog:
        """Asks for files to import; it does not block."""
        dialog = QFileDialog(self.window(), self.tr("Import files"))
        dialog.setFileMode(QFileDialog.FileMode.ExistingFiles)
        dialog.setNameFilters([self.tr("Model files (*.gguf)"), self.tr("All files (*)")])
        dialog.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        dialog.filesSelected.connect(lambda files: self.look_requested.emit(list(files)))
        dialog.open()
        return dialog

    def _open(self, dialog: Sheet) -> None:
        self.dialog = dialog
        dialog.finished.connect(self._forget)
        dialog.open()

    def _forget(self, _result: int) -> None:
        self.dialog = None

    def _use_file(self, path: str) -> None:
        self.files.take([path])
        self.show_files()

    # The larger models

    def _on_fold(self, unfolded: bool) -> None:
        self._folded = not unfolded
        self._show_fold()

    def _show_fold(self) -> None:
        larger = [card for card in self.cards.values() if not card.size_.main]
        folded = self._folded
        if folded is None:  # what is here, or on its way, is never folded away
            folded = all(card.file_state is FileState.ABSENT for card in larger)
        self.fold.set_unfolded(not folded)
        self.fold.setVisible(bool(larger))
        self.larger.setVisible(bool(larger) and not folded)

    # Files that are dropped

    def dragEnterEvent(self, event: QDragEnterEvent) -> None:  # noqa: N802 - Qt's name
        """Takes files."""
        if dropped_files(event.mimeData()):
            event.acceptProposedAction()
            self.hint.setGeometry(self.rect().adjusted(8, 8, -8, -8))
            self.hint.raise_()
            self.hint.show()

    def dragLeaveEvent(self, event: QDragLeaveEvent) -> None:  # noqa: N802 - Qt's name
        """They went elsewhere."""
        self.hint.hide()
        super().dragLeaveEvent(event)

    def dropEvent(self, event: QDropEvent) -> None:  # noqa: N802 - Qt's name
        """Has the files looked at, to be imported."""
        self.hint.hide()
        files = dropped_files(event.mimeData())
        if files:
            event.acceptProposedAction()
            self.look_requested.emit(files)
