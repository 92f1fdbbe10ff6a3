"""The models: the pair in use, the pairs that Tandem is made for, and files of one's own."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QDragEnterEvent, QDropEvent, QGuiApplication
from PySide6.QtWidgets import QHBoxLayout, QVBoxLayout, QWidget

from tandem.hardware.machine import NEEDS, Machine, Need
from tandem.settings import PairChoice
from tandem.ui.fit_view import FitView
from tandem.ui.i18n import size
from tandem.ui.kit import Card, IconButton, PrimaryButton, QuietButton, SectionTitle, label, spaced
from tandem.ui.kit_base import announce
from tandem.ui.models_files import FilesCard, dropped_files
from tandem.ui.models_pair import PairCard
from tandem.ui.page import Column, Speaking, Tiles
from tandem.ui.session_state import LoadState, PairState

if TYPE_CHECKING:
    from tandem.ui.pair_check import PairCheck
    from tandem.ui.theme import ThemeManager

WIDTH: Final = 820
_TILE: Final = 232


class DemoTile(Speaking):
    """The built-in pair."""

    load_requested = Signal(object)

    def __init__(self, manager: ThemeManager, parent: QWidget | None = None) -> None:
        super().__init__(manager, parent)
        self._in_use = self._busy = False
        name = label(bold=True, wrap=True)
        self.say(name.setText, lambda: self.tr("Demo pair"))
        text = label(size="small", role="muted", wrap=True)
        self.say(
            text.setText,
            lambda: self.tr(
                "Comes with Tandem and runs anywhere. It shows how a drafter works; what it says is not clever."
            ),
        )
        self.button = PrimaryButton(manager, "", "chat")
        self.button.clicked.connect(lambda: self.load_requested.emit(PairChoice("demo")))
        _in_card(self, manager, (name, text, None, self.button))
        self.retranslate()

    def set_state(self, in_use: bool, busy: bool) -> None:
        """Whether it is the pair in use, and whether a load is under way."""
        self._in_use, self._busy = in_use, busy
        self.retranslate()

    def retranslate(self) -> None:
        """The button."""
        self.button.setText(self.tr("In use") if self._in_use else self.tr("Use the demo pair"))
        self.button.setEnabled(not self._in_use and not self._busy)


class Source(Speaking):
    """Where the two files of a pair are, as text to select or copy; it opens nothing itself.

    Attributes:
        names: The place and the two files, a line each.
        copy: Copies all three.
    """

    def __init__(self, manager: ThemeManager, need: Need, parent: QWidget | None = None) -> None:
        super().__init__(manager, parent)
        place = f"{need.host}/{need.repository}"
        title = label(need.name, bold=True, wrap=True)
        self.copy = IconButton(manager, "copy", "", size=14)
        self.say(self.copy.set_name, lambda: self.tr("Copy address and file names"))
        self.copy.clicked.connect(self._copy)
        self.names = label("\n".join((place, need.target_file, need.drafter_file)), size="small", wrap=True)
        self.names.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        self.names.setFocusPolicy(Qt.FocusPolicy.NoFocus)  # the keyboard has the button
        self.say(
            self.names.setAccessibleName,
            lambda: self.tr("Where to get the files of {name}").format(name=need.name),
        )
        head = QHBoxLayout()
        spaced(head, manager, "xs")
        head.addWidget(title, 1)
        head.addWidget(self.copy)
        column = QVBoxLayout(self)
        spaced(column, manager, "")
        column.addLayout(head)
        column.addWidget(self.names)

    def _copy(self) -> None:
        QGuiApplication.clipboard().setText(self.names.text())
        announce(self.copy, self.tr("Copied"))


class NeedTile(Speaking):
    """One of the pairs that Tandem is made for: what it needs, and whether this machine has it."""

    files_requested = Signal()

    def __init__(self, manager: ThemeManager, need: Need, parent: QWidget | None = None) -> None:
        super().__init__(manager, parent)
        self.need: Final = need
        texts: dict[str, Callable[[], str]] = {
            "e2b": lambda: self.tr("The smaller one: quick, good for everyday questions."),
            "e4b": lambda: self.tr("The larger one: better answers, more slowly."),
        }
        name = label(need.name, bold=True, wrap=True)
        text = label(size="small", role="muted", wrap=True)
        self.say(text.setText, texts[need.key])
        weights = label(size="small", role="muted", wrap=True)
        self.say(
            weights.setText,
            lambda: self.tr("Two files, {weights} in all.").format(weights=size(need.weights)),
        )
        self.fit = FitView(manager, need.memory())
        self.button = QuietButton(manager, "", "folder")
        self.say(self.button.setText, lambda: self.tr("Use files I have…"))
        self.say(self.button.setAccessibleName, lambda: self.tr("Use files I have of {name}").format(name=need.name))
        self.button.clicked.connect(self.files_requested)
        _in_card(self, manager, (name, text, weights, self.fit, None, self.button))


def _in_card(tile: QWidget, manager: ThemeManager, parts: tuple[QWidget | None, ...]) -> None:
    """Puts parts into a card that fills the tile; None is room that grows."""
    card = Card(manager)
    spaced(card.body, manager, "s", "l")
    for part in parts:
        if part is None:
            card.body.addStretch(1)
        else:
            card.body.addWidget(part)
    column = QVBoxLayout(tile)
    spaced(column, manager, "")
    column.addWidget(card)


class ModelsPage(Speaking):
    """Shows what is loaded and what could be, and asks for loads; it loads nothing itself.

    Attributes:
        load_requested: A `PairChoice` is to be loaded.
        cancel_load_requested: The load under way is to be given up.
        check_requested: The headers of two files are to be read (`pair_check.check_files`); the answer goes to
            `set_check`.
    """

    load_requested = Signal(object)
    cancel_load_requested = Signal()
    check_requested = Signal(str, str)

    def __init__(self, manager: ThemeManager, parent: QWidget | None = None) -> None:
        super().__init__(manager, parent)
        self._machine: Machine | None = None
        self._pair = PairState()
        heading = label(size="title", bold=True)
        self.say(heading.setText, lambda: self.tr("Models"))
        self.here = label(size="small", role="muted", wrap=True)
        self.pair = PairCard(manager)
        pairs = SectionTitle(manager)
        self.say(pairs.setText, lambda: self.tr("Pairs"))
        self.demo = DemoTile(manager)
        self.needs: Final = tuple(NeedTile(manager, need) for need in NEEDS)
        self.tiles = Tiles(manager, _TILE, 1 + len(self.needs))
        for tile in (self.demo, *self.needs):
            self.tiles.add(tile)
        self.sources: Final = tuple(Source(manager, need) for need in NEEDS)
        where = Card(manager)
        where_title = SectionTitle(manager)
        self.say(where_title.setText, lambda: self.tr("Where to get the files"))
        coming = label(role="muted", wrap=True)
        self.say(
            coming.setText,
            lambda: self.tr(
                "Downloading Gemma 4 from within Tandem comes with the next version. Until then, get the two files "
                "with a web browser, from Hugging Face. Tandem itself opens no connection."
            ),
        )
        for part in (where_title, coming, *self.sources):
            where.body.addWidget(part)
        self.files = FilesCard(manager)
        self.column = Column(manager, WIDTH)
        for part in (heading, self.here, self.pair, pairs, self.tiles, where, self.files):
            self.column.body.addWidget(part)
        self.column.body.addStretch(1)
        outer = QVBoxLayout(self)
        outer.setContentsMargins(0, 0, 0, 0)
        outer.addWidget(self.column)
        self.pair.load_requested.connect(self.load_requested)
        self.pair.cancel_requested.connect(self.cancel_load_requested)
        self.demo.load_requested.connect(self.load_requested)
        for need in self.needs:
            need.files_requested.connect(self.show_files)
        self.files.check_requested.connect(self.check_requested)
        self.files.load_requested.connect(self.load_requested)
        self.setAcceptDrops(True)
        self.retranslate()

    def set_pair(self, pair: PairState) -> None:
        """The pair in use."""
        self._pair = pair
        self.pair.set_pair(pair)
        busy = pair.kind == "loading"
        self.demo.set_state(pair.kind == "loaded" and pair.choice.kind == "demo", busy)
        self.files.set_busy(busy)
        if pair.choice.kind == "files" and not any(self.files.asked):
            self.files.set_files(pair.choice.target or "", pair.choice.drafter or "")

    def set_load(self, load: LoadState) -> None:
        """How far a load is."""
        self.pair.set_load(load)

    def set_machine(self, machine: Machine) -> None:
        """Facts of this machine."""
        self._machine = machine
        for tile in self.needs:
            tile.fit.set_machine(machine)
        self.files.set_machine(machine)
        self.retranslate()

    def set_check(self, check: PairCheck) -> None:
        """What was found in the files that `check_requested` named."""
        self.files.set_check(check)

    def show_files(self) -> None:
        """Brings the fields for files into view and puts the cursor there."""
        self.column.ensureWidgetVisible(self.files)
        self.files.target.path.setFocus()

    def retranslate(self) -> None:
        """The line about this machine."""
        machine = self._machine
        if machine is None:
            self.here.setText(self.tr("Looking at this machine…"))
            return
        text = self.tr("{cpu} · %n CPU(s) · {free} of {total} memory free", "", machine.cpus)
        self.here.setText(
            text.format(cpu=machine.cpu, free=size(machine.memory_free), total=size(machine.memory_total))
        )

    def dragEnterEvent(self, event: QDragEnterEvent) -> None:  # noqa: N802 - Qt's name
        """Takes files."""
        if dropped_files(event.mimeData()):
            event.acceptProposedAction()

    def dropEvent(self, event: QDropEvent) -> None:  # noqa: N802 - Qt's name
        """Fills the fields with the files."""
        files = dropped_files(event.mimeData())
        if files:
            event.acceptProposedAction()
            self.files.take(files)
            self.show_files()
