"""The first start: what this machine can run, and three ways to begin."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QHBoxLayout, QLabel, QVBoxLayout, QWidget

from tandem.hardware.machine import NEEDS, Machine, Need, best, fit
from tandem.models.progress import JobProgress
from tandem.models.state import FileState
from tandem.ui import icons
from tandem.ui import models_state_text as texts
from tandem.ui.errors_text import localised
from tandem.ui.fit_view import FitView
from tandem.ui.i18n import size
from tandem.ui.kit import Card, PrimaryButton, QuietButton, label, spaced
from tandem.ui.models_card_parts import ActionButton, JobView
from tandem.ui.models_pair import LoadView
from tandem.ui.page import Banner, Column, Speaking, Tiles
from tandem.ui.session_state import LoadState, NetworkView
from tandem.ui.settings_models_parts import offline_variable

if TYPE_CHECKING:
    from collections.abc import Callable

    from tandem.models.overview import Overview
    from tandem.ui.theme import ThemeManager


_EARLY: Final = frozenset({FileState.PAUSED, FileState.FAILED, FileState.QUARANTINED})
"""Ways in which a download ends before it is done."""


class WelcomePage(Speaking):
    """Shown until a pair was chosen.

    Attributes:
        download_requested: A pair's key in the catalog.
        pause_requested: The download is to be paused.
        resume_requested: A pair's key: its download goes on, or is tried again.
        cancel_requested: A pair's key, and whether what has come in is kept.
        start_again_requested: A pair's key: from its first byte.
        use_requested: A pair's key: it is to be loaded.
        settings_requested: The settings of the network are to be shown.
        models_requested: The page with the models is to be shown.
        demo_requested: The demo pair is to be loaded and tried.
        files_requested: The user has files: the page with the models is to be shown.
        cancel_load_requested: The load under way is to be given up.
    """

    download_requested = Signal(str)
    pause_requested = Signal()
    resume_requested = Signal(str)
    cancel_requested = Signal(str, bool)
    start_again_requested = Signal(str)
    use_requested = Signal(str)
    settings_requested = Signal()
    models_requested = Signal()
    demo_requested = Signal()
    files_requested = Signal()
    cancel_load_requested = Signal()

    def __init__(self, manager: ThemeManager, parent: QWidget | None = None) -> None:
        super().__init__(manager, parent)
        self._machine: Machine | None = None
        self._load = LoadState()
        self._job: JobProgress | None = None
        self._overview: Overview | None = None
        self._network = NetworkView()
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
        self.action = ActionButton(manager)
        self.action.pressed.connect(self._act)
        self.settings = QuietButton(manager, "", "settings")
        self.say(self.settings.setText, lambda: self.tr("Open settings"))
        self.settings.clicked.connect(self.settings_requested)
        self.demo = QuietButton(manager, "", "chat")
        self.say(self.demo.setText, lambda: self.tr("Try the demo"))
        self.demo.clicked.connect(self.demo_requested)
        self.action.heir = self.demo
        self.files = QuietButton(manager, "", "folder")
        self.say(self.files.setText, lambda: self.tr("Use files I have…"))
        self.files.clicked.connect(self.files_requested)
        first, second = QHBoxLayout(), QHBoxLayout()
        for row, parts in ((first, (self.action, self.settings)), (second, (self.demo, self.files))):
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
            other.clicked.connect(lambda _=False, need=need: self.download_requested.emit(need.key))
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
        self.coming = label(size="small", role="muted", wrap=True)
        card.body.addWidget(self.coming)
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

    def set_overview(self, overview: Overview) -> None:
        """What is here already: a model that is, is offered for use, and what is here of one goes on."""
        self._overview = overview
        self.retranslate()

    def set_network(self, network: NetworkView) -> None:
        """How the Hub is reached, and whether it may be asked at all."""
        self._network = network
        self.retranslate()

    @property
    def download(self) -> PrimaryButton | QuietButton:
        """The main button."""
        return self.action.button

    @property
    def _shown_job(self) -> JobProgress | None:
        """The download that is spoken of: under way, ended early, or what is here of one."""
        job = self._job
        if job is not None and (job.running or texts.job_state(job) in _EARLY):
            return job
        views = () if self._overview is None else self._overview.pairs
        kept = next((view for view in views if view.state is FileState.PAUSED), None)
        return None if kept is None or self._usable else texts.kept(kept)

    @property
    def _usable(self) -> str:
        """Key of a pair that is here, "" for none."""
        views = () if self._overview is None else self._overview.pairs
        return next((view.key for view in views if view.state is FileState.INSTALLED), "")

    def _in_all(self, need: Need) -> str:
        return self.tr("Two files, {weights} in all.").format(weights=size(need.weights))

    def _act(self, act: str) -> None:
        job, usable = self._shown_job, self._usable
        offered = None if self._machine is None else best(self._machine)
        key = job.key if job is not None else usable or (offered.key if offered is not None else "")
        asked: dict[str, Callable[[], None]] = {
            "download": lambda: self.download_requested.emit(key) if key else self.models_requested.emit(),
            "cancel": lambda: self.cancel_requested.emit(key, True),
            "pause": self.pause_requested.emit,
            "resume": lambda: self.resume_requested.emit(key),
            "try-again": lambda: self.resume_requested.emit(key),
            "start-again": lambda: self.start_again_requested.emit(key),
            "use": lambda: self.use_requested.emit(key),
        }
        if act in asked:
            asked[act]()

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
        text = self.tr(
            "A download comes from Hugging Face, needs no account, is checked, and can be paused at any time. The demo "
            "pair is built in: it shows how a drafter works, and is not clever."
        )
        if self._network.offline:
            text = self.tr("{variable} is set: Tandem opens no connection and downloads nothing.")
            text = text.format(variable=offline_variable(self._network))
        self.coming.setText(text)
        job = self._shown_job
        if job is not None:
            self.transfer.set_job(job, f"{texts.model_name(job.key)} · {texts.words(texts.job_state(job)).text}")
        self.transfer.setVisible(job is not None and (job.running or job.done > 0))
        self._show_downloads(job)
        running = self._load.running
        self.progress.setVisible(running)
        self.demo.setEnabled(not running)
        self.files.setEnabled(not running)
        sentence, remedy, kind = "", "", "bad"
        if self._load.phase == "failed":
            sentence, remedy = self._load.sentence, self._load.remedy
        elif job is not None and not job.running:
            sentence, remedy, kind = job.sentence, job.remedy, texts.gravity(texts.job_state(job))
        self.problem.setVisible(bool(sentence))
        self.problem.set_kind(kind)
        self.problem.set_text(*map(texts.fitted, localised(sentence, remedy)))

    def _show_downloads(self, job: JobProgress | None) -> None:
        """The main button says what can be done about the download, or which model is offered."""
        machine, usable, offline = self._machine, self._usable, self._network.offline
        offered = None if machine is None else best(machine)
        state = texts.job_state(job) if job is not None else FileState.INSTALLED if usable else FileState.ABSENT
        action = texts.action(state)
        key = job.key if job is not None else usable
        if state is FileState.INSTALLED:
            action = action._replace(text=self.tr("Use {name}").format(name=texts.model_name(key)))
        elif job is None and machine is None:
            action = action._replace(text=self.tr("Download Gemma 4"))
        elif job is None and offered is not None:
            text = self.tr("Download {name} ({size})")
            action = action._replace(text=text.format(name=offered.name, size=size(offered.weights)))
        name = texts.model_name(key) if job is not None else ""
        self.action.set_action(action, name, enabled=not (offline and action.act in texts.ONLINE))
        self.action.setVisible(bool(key) or machine is None or offered is not None)
        at_rest = job is not None and not job.running
        self.settings.setVisible(
            at_rest and job is not None and texts.cure(job.fault, other_source=False) == "settings"
        )
        taken = {key, offered.key if offered is not None and job is None and not usable else ""}
        fetching = job is not None and job.running
        for need in NEEDS:
            other = self.others[need.key]
            other.setText(self.tr("Download this one"))
            other.setAccessibleName(self.tr("Download {name} ({size})").format(name=need.name, size=size(need.weights)))
            runs = machine is not None and fit(need.memory(), machine) != "too-large"
            other.setVisible(runs and need.key not in taken and not fetching and not offline)

    def _retheme(self) -> None:
        theme = self._manager.theme
        self._picture.setPixmap(icons.pixmap("tandem", "accent", theme.px(48), self.devicePixelRatioF(), theme))
