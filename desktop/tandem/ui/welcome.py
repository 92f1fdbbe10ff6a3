"""The first start: what this machine can run, and three ways to begin."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QHBoxLayout, QLabel, QVBoxLayout, QWidget

from tandem.hardware.machine import NEEDS, Machine, Need, best, fit
from tandem.models.progress import JobProgress
from tandem.ui import icons, models_state_text
from tandem.ui.errors_text import localised
from tandem.ui.fit_view import FitView
from tandem.ui.i18n import size
from tandem.ui.kit import Card, PrimaryButton, QuietButton, label, spaced
from tandem.ui.models_card_parts import JobView
from tandem.ui.models_pair import LoadView
from tandem.ui.page import Banner, Column, Speaking, Tiles
from tandem.ui.session_state import LoadState

if TYPE_CHECKING:
    from tandem.ui.theme import ThemeManager


class WelcomePage(Speaking):
    """Shown until a pair was chosen.

    Attributes:
        download_requested: A pair's key in the catalog.
        demo_requested: The demo pair is to be loaded and tried.
        files_requested: The user has files: the page with the models is to be shown.
        cancel_load_requested: The load under way is to be given up.
    """

    download_requested = Signal(str)
    demo_requested = Signal()
    files_requested = Signal()
    cancel_load_requested = Signal()

    def __init__(self, manager: ThemeManager, parent: QWidget | None = None) -> None:
        super().__init__(manager, parent)
        self._machine: Machine | None = None
        self._load = LoadState()
        self._job: JobProgress | None = None
        self._picture = QLabel()
        title = label(size="display", bold=True, wrap=True)
        self.say(title.setText, lambda: self.tr("Welcome to Tandem"))
        text = label(size="lead", role="muted", wrap=True)
        self.say(
            text.setText,
            lambda: self.tr(
                "Gemma 4 on your own machine, with a small drafter that guesses ahead and makes it faster. "
                "What you write stays on this machine."
            ),
        )
        for part in (self._picture, title, text):
            part.setAlignment(Qt.AlignmentFlag.AlignCenter)
        self.download = PrimaryButton(manager, "", "download")
        self.download.clicked.connect(lambda: self._ask(self._offered))
        self.demo = QuietButton(manager, "", "chat")
        self.say(self.demo.setText, lambda: self.tr("Try the demo"))
        self.demo.clicked.connect(self.demo_requested)
        self.files = QuietButton(manager, "", "folder")
        self.say(self.files.setText, lambda: self.tr("Use files I have…"))
        self.files.clicked.connect(self.files_requested)
        first, second = QHBoxLayout(), QHBoxLayout()
        for row, parts in ((first, (self.download,)), (second, (self.demo, self.files))):
            spaced(row, manager, "s")
            row.addStretch(1)
            for button in parts:
                row.addWidget(button)
            row.addStretch(1)
        buttons = QVBoxLayout()
        spaced(buttons, manager, "s", ("", "s"))
        buttons.addLayout(first)
        buttons.addLayout(second)
        self.transfer = JobView(manager)
        self.transfer.hide()
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
        self.others: dict[str, QuietButton] = {}
        for need in NEEDS:
            view = FitView(manager, need.memory())
            self.fits.append(view)
            other = self.others[need.key] = QuietButton(manager, "", "download")
            other.clicked.connect(lambda _=False, need=need: self._ask(need))
            weights = label(size="small", role="muted", wrap=True)
            self.say(weights.setText, partial(self._in_all, need))
            block = QWidget()
            inner = QVBoxLayout(block)
            spaced(inner, manager, "xs")
            inner.addWidget(label(need.name, bold=True))
            inner.addWidget(weights)
            inner.addWidget(view)
            inner.addStretch(1)
            inner.addWidget(other)
            tiles.add(block)
        card.body.addWidget(tiles)
        coming = label(size="small", role="muted", wrap=True)
        self.say(
            coming.setText,
            lambda: self.tr(
                "A download comes from Hugging Face, needs no account, is checked, and can be paused at any time. The "
                "demo pair is built in: it shows how a drafter works, and is not clever."
            ),
        )
        card.body.addWidget(coming)
        self.column = Column(manager, 620)
        self.column.body.addStretch(2)
        for part in (self._picture, title, text):
            self.column.body.addWidget(part)
        self.column.body.addLayout(buttons)
        self.column.body.addWidget(self.transfer)
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
        for view in self.fits:
            view.set_machine(machine)
        self.retranslate()

    def set_load(self, load: LoadState) -> None:
        """How far a load is, or why it failed."""
        self._load = load
        self.progress.set_load(load)
        self.retranslate()

    def set_job(self, job: JobProgress | None) -> None:
        """How far a download is; None for none."""
        self._job = job
        self.retranslate()

    @property
    def _offered(self) -> Need | None:
        """The model that fits best; before the machine is known the smallest one."""
        return next(iter(NEEDS), None) if self._machine is None else best(self._machine)

    def _in_all(self, need: Need) -> str:
        return self.tr("Two files, {weights} in all.").format(weights=size(need.weights))

    def _ask(self, need: Need | None) -> None:
        if need is not None:
            self.download_requested.emit(need.key)

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
        job = self._job
        shown = job is not None and (job.running or bool(job.sentence))
        self.transfer.set_job(
            job, "" if job is None else models_state_text.words(models_state_text.job_state(job)).text
        )
        self.transfer.setVisible(shown)
        self._show_downloads(fetching=shown)
        running = self._load.running
        self.progress.setVisible(running)
        self.demo.setEnabled(not running)
        self.files.setEnabled(not running)
        sentence, remedy = "", ""
        if self._load.phase == "failed":
            sentence, remedy = self._load.sentence, self._load.remedy
        elif job is not None and not job.running:
            sentence, remedy = job.sentence, job.remedy
        self.problem.setVisible(bool(sentence))
        self.problem.set_text(*map(models_state_text.fitted, localised(sentence, remedy)))

    def _show_downloads(self, *, fetching: bool) -> None:
        offered, machine = self._offered, self._machine
        self.download.setVisible(offered is not None)
        if offered is not None:
            text = self.tr("Download {name} ({size})")
            self.download.setText(text.format(name=offered.name, size=size(offered.weights)))
        self.download.setEnabled(not fetching)
        for need in NEEDS:
            other = self.others[need.key]
            other.setText(self.tr("Download this one"))
            other.setAccessibleName(self.tr("Download {name} ({size})").format(name=need.name, size=size(need.weights)))
            runs = machine is not None and fit(need.memory(), machine) != "too-large"
            other.setVisible(runs and need != offered and not fetching)

    def _retheme(self) -> None:
        theme = self._manager.theme
        self._picture.setPixmap(icons.pixmap("tandem", "accent", theme.px(48), self.devicePixelRatioF(), theme))
