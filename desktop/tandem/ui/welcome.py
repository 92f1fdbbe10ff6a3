"""The first start: what this machine can run, and two ways to begin."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QHBoxLayout, QLabel, QVBoxLayout, QWidget

from tandem.hardware.machine import NEEDS, Machine, best
from tandem.ui import icons
from tandem.ui.errors_text import localised
from tandem.ui.fit_view import FitView
from tandem.ui.i18n import size
from tandem.ui.kit import Card, PrimaryButton, QuietButton, label, spaced
from tandem.ui.models_pair import LoadView
from tandem.ui.page import Banner, Column, Speaking, Tiles
from tandem.ui.session_state import LoadState

if TYPE_CHECKING:
    from tandem.ui.theme import ThemeManager


class WelcomePage(Speaking):
    """Shown until a pair was chosen.

    Attributes:
        demo_requested: The demo pair is to be loaded and tried.
        files_requested: The user has files: the page with the models is to be shown.
        cancel_load_requested: The load under way is to be given up.
    """

    demo_requested = Signal()
    files_requested = Signal()
    cancel_load_requested = Signal()

    def __init__(self, manager: ThemeManager, parent: QWidget | None = None) -> None:
        super().__init__(manager, parent)
        self._machine: Machine | None = None
        self._load = LoadState()
        self._picture = QLabel()
        title = label(size="display", bold=True, wrap=True)
        self.say(title.setText, lambda: self.tr("Welcome to Tandem"))
        text = label(size="lead", role="muted", wrap=True)
        self.say(
            text.setText,
            lambda: self.tr(
                "Gemma 4 on your own machine, with a small drafter that guesses ahead and makes it faster. "
                "Nothing leaves this machine."
            ),
        )
        for part in (self._picture, title, text):
            part.setAlignment(Qt.AlignmentFlag.AlignCenter)
        self.demo = PrimaryButton(manager, "", "chat")
        self.say(self.demo.setText, lambda: self.tr("Try the demo"))
        self.demo.clicked.connect(self.demo_requested)
        self.files = QuietButton(manager, "", "folder")
        self.say(self.files.setText, lambda: self.tr("Use files I have…"))
        self.files.clicked.connect(self.files_requested)
        buttons = QHBoxLayout()
        spaced(buttons, manager, "s", ("", "s"))
        buttons.addStretch(1)
        buttons.addWidget(self.demo)
        buttons.addWidget(self.files)
        buttons.addStretch(1)
        self.progress = LoadView(manager)
        self.progress.cancel_requested.connect(self.cancel_load_requested)
        self.problem = Banner(manager, "bad")
        card = Card(manager)
        self.advice = label(bold=True, wrap=True)
        self.here = label(size="small", role="muted", wrap=True)
        card.body.addWidget(self.advice)
        card.body.addWidget(self.here)
        tiles = Tiles(manager, 220, len(NEEDS))
        self.fits = []
        for need in NEEDS:
            fit = FitView(manager, need.memory())
            self.fits.append(fit)
            block = QWidget()
            inner = QVBoxLayout(block)
            spaced(inner, manager, "xs")
            inner.addWidget(label(need.name, bold=True))
            inner.addWidget(fit)
            inner.addStretch(1)
            tiles.add(block)
        card.body.addWidget(tiles)
        coming = label(size="small", role="muted", wrap=True)
        self.say(
            coming.setText,
            lambda: self.tr(
                "Downloading Gemma 4 from within Tandem comes with the next version. Until then: files that you have, "
                "or the small demo pair, which shows how it works and is not clever."
            ),
        )
        card.body.addWidget(coming)
        self.column = Column(manager, 620)
        self.column.body.addStretch(2)
        for part in (self._picture, title, text):
            self.column.body.addWidget(part)
        self.column.body.addLayout(buttons)
        self.column.body.addWidget(self.progress)
        self.column.body.addWidget(self.problem)
        self.column.body.addWidget(card)
        self.column.body.addStretch(3)
        outer = QVBoxLayout(self)
        outer.setContentsMargins(0, 0, 0, 0)
        outer.addWidget(self.column)
        manager.changed.connect(self._retheme)
        self._retheme()
        self.retranslate()

    def set_machine(self, machine: Machine) -> None:
        """Facts of this machine."""
        self._machine = machine
        for fit in self.fits:
            fit.set_machine(machine)
        self.retranslate()

    def set_load(self, load: LoadState) -> None:
        """How far a load is, or why it failed."""
        self._load = load
        self.progress.set_load(load)
        self.retranslate()

    def retranslate(self) -> None:
        """The advice, and what depends on the load."""
        machine = self._machine
        if machine is None:
            self.advice.setText(self.tr("Looking at what this machine can run…"))
            self.here.setText("")
        else:
            found = best(machine)
            text = self.tr("This machine can run {name}.")
            none = self.tr("This machine has too little memory for Gemma 4; the demo pair runs.")
            self.advice.setText(text.format(name=found.name) if found is not None else none)
            text = self.tr("{cpu} · %n CPU(s) · {free} of {total} memory free", "", machine.cpus)
            sizes = {"free": size(machine.memory_free), "total": size(machine.memory_total)}
            self.here.setText(text.format(cpu=machine.cpu, **sizes))
        self.here.setVisible(machine is not None)
        running = self._load.running
        self.progress.setVisible(running)
        self.demo.setEnabled(not running)
        self.files.setEnabled(not running)
        failed = self._load.phase == "failed"
        self.problem.setVisible(failed)
        if failed:
            self.problem.set_text(*localised(self._load.sentence, self._load.remedy))

    def _retheme(self) -> None:
        theme = self._manager.theme
        self._picture.setPixmap(icons.pixmap("tandem", "accent", theme.px(48), self.devicePixelRatioF(), theme))
