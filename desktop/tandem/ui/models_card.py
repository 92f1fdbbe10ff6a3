"""A card for each size of the model: what it needs here, where it comes from, how it stands, and one thing to do."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import PurePath
from typing import TYPE_CHECKING, Final

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QGridLayout, QHBoxLayout, QVBoxLayout, QWidget

from tandem.hardware.machine import Machine, need_of
from tandem.models.catalog import CatalogPair, CatalogSize
from tandem.models.progress import JobProgress
from tandem.models.state import ACTIVE, FileState
from tandem.ui import models_state_text as texts
from tandem.ui.errors_text import localised
from tandem.ui.fit_view import FitView
from tandem.ui.i18n import size as in_bytes
from tandem.ui.kit import Card, IconButton, QuietButton, divider, label, plain_tip, spaced
from tandem.ui.models_card_menu import CardMenu, MenuFacts
from tandem.ui.models_card_parts import ActionButton, JobView
from tandem.ui.page import Banner, Mark, Speaking
from tandem.ui.session_state import NetworkView
from tandem.ui.settings_section import Choices

if TYPE_CHECKING:
    from tandem.models.overview import PairView
    from tandem.ui.theme import ThemeManager

_HERE: Final = frozenset({FileState.INSTALLED, FileState.VERIFYING, FileState.CHANGED, FileState.MISSING})


class ModelCard(Speaking):
    """One size of the model, from one of its sources.

    Attributes:
        download_requested: A pair's key.
        pause_requested: The download is to be paused.
        resume_requested: A pair's key.
        cancel_requested: A pair's key, and whether what has come in is kept.
        start_again_requested: A pair's key: from its first byte.
        use_requested: A pair's key: it is to be loaded.
        verify_requested: Installed files are to be hashed again.
        stop_check_requested: That is to be stopped.
        remove_requested: A pair's key.
        settings_requested: The settings of the network and the model folder are to be shown.
    """

    download_requested = Signal(str)
    pause_requested = Signal()
    resume_requested = Signal(str)
    cancel_requested = Signal(str, bool)
    start_again_requested = Signal(str)
    use_requested = Signal(str)
    verify_requested = Signal()
    stop_check_requested = Signal()
    remove_requested = Signal(str)
    settings_requested = Signal()

    def __init__(self, manager: ThemeManager, size: CatalogSize, parent: QWidget | None = None) -> None:
        super().__init__(manager, parent)
        self.size_: Final = size
        self._views: dict[str, PairView] = {}
        self._job: JobProgress | None = None
        self._wanted: str | None = None  # the source that the user chose
        self._checking: JobProgress | None = None
        self._in_use = self._loading = ""
        self._host, self._offline = "", False
        name = label(size.name, size="lead", bold=True, wrap=True)
        self.state = Mark(manager)
        what = label(size="small", role="muted", wrap=True)
        about = self._about()
        self.say(what.setText, about.get(size.key, lambda: size.name))
        self.source = Choices(manager)
        self.say(self.source.setAccessibleName, lambda: self.tr("Source of {name}").format(name=size.name))
        self.source.currentIndexChanged.connect(self._choose)
        self.only_source = label(size="small", wrap=True)
        self.bytes = label(size="small", wrap=True)
        self.licence = label(size="small", wrap=True)
        self.unpinned = label(size="small", role="muted", wrap=True)
        self.say(
            self.unpinned.setText,
            lambda: self.tr("The drafter's hash is taken from the Hub at the first download."),
        )
        need = need_of(size)
        self.fit = FitView(manager, need.memory(), exact=need.exact)
        self.progress = JobView(manager)
        self.problem = Banner(manager, "bad")
        self.remedy = QuietButton(manager, "")
        self.remedy.clicked.connect(self._cure)
        self.action = ActionButton(manager)
        self.action.pressed.connect(self._act)
        self.more = self.action.heir = IconButton(manager, "more", "")
        self.more.clicked.connect(self.open_menu)
        self.menu: Final = CardMenu(manager, self)
        self.menu.cancel_requested.connect(self.cancel_requested)
        self.menu.start_again_requested.connect(self.start_again_requested)
        self.menu.verify_requested.connect(self.verify_requested)
        self.menu.remove_requested.connect(self.remove_requested)
        self._lay(manager, name, what)
        self.retranslate()

    def _lay(self, manager: ThemeManager, name: QWidget, what: QWidget) -> None:
        self._grid = QGridLayout()
        spaced(self._grid, manager, "xs")
        self._grid.setColumnStretch(1, 1)
        sources, inside = QWidget(), QVBoxLayout()
        sources.setLayout(inside)
        spaced(inside, manager, "")
        inside.addWidget(self.source)
        inside.addWidget(self.only_source)
        many = len(self.size_.pairs) > 1
        self.source.setVisible(many)
        self.only_source.setVisible(not many)
        rows: tuple[tuple[Callable[[], str], QWidget], ...] = (
            (lambda: self.tr("Source"), sources),
            (lambda: self.tr("Size"), self.bytes),
            (lambda: self.tr("Licence"), self.licence),
        )
        for line, (text, value) in enumerate(rows):
            term = label(size="small", role="muted")
            self.say(term.setText, text)
            centred = Qt.AlignmentFlag.AlignVCenter if value is sources and many else Qt.AlignmentFlag.AlignTop
            self._grid.addWidget(term, line, 0, centred)
            self._grid.addWidget(value, line, 1)
        self._grid.addWidget(self.unpinned, len(rows), 0, 1, 2)
        foot = QHBoxLayout()
        spaced(foot, manager, "s")
        foot.addWidget(self.action)
        foot.addWidget(self.remedy)
        foot.addStretch(1)
        foot.addWidget(self.more)
        card = Card(manager)
        spaced(card.body, manager, "s", "l")
        title = QVBoxLayout()
        spaced(title, manager, "xs")
        title.addWidget(name)
        title.addWidget(self.state)
        card.body.addLayout(title)
        card.body.addWidget(what)
        card.body.addLayout(self._grid)
        card.body.addWidget(self.fit)
        card.body.addStretch(1)
        card.body.addWidget(divider())
        card.body.addWidget(self.progress)
        card.body.addWidget(self.problem)
        card.body.addLayout(foot)
        column = QVBoxLayout(self)
        spaced(column, manager, "")
        column.addWidget(card)
        manager.changed.connect(self._retheme)
        self._retheme()

    # What it is told

    def set_machine(self, machine: Machine) -> None:
        """The machine to judge by."""
        self.fit.set_machine(machine)
        self.retranslate()

    def set_views(self, views: Sequence[PairView]) -> None:
        """How its pairs stand; those of other sizes are passed over."""
        keys = {pair.key for pair in self.size_.pairs}
        self._views = {view.key: view for view in views if view.key in keys}
        self.retranslate()

    def set_job(self, job: JobProgress | None) -> None:
        """The download under way, or how the last one ended; that of another size counts as none."""
        mine = job is not None and any(pair.key == job.key for pair in self.size_.pairs)
        self._job = job if mine else None
        self.retranslate()

    def set_checking(self, job: JobProgress | None) -> None:
        """The check of files under way; a card shows it while one of its own files is hashed."""
        self._checking = job
        self.retranslate()

    def set_pair(self, target: str, *, loading: bool) -> None:
        """The target's path of the pair in use, "" for none of the user's files, and whether it is being loaded."""
        self._in_use, self._loading = ("", target) if loading else (target, "")
        self.retranslate()

    def set_network(self, network: NetworkView) -> None:
        """How the Hub is reached: its address, and whether it may be asked at all."""
        self._host, self._offline = network.endpoint, network.offline
        self.retranslate()

    # What it shows

    @property
    def pair(self) -> CatalogPair:
        """The pair that is shown: what is downloaded; else what was chosen; else what is here; else the default."""
        if self._job is not None and self._job.running:
            return self._by_key(self._job.key)
        if self._wanted is not None:
            return self._by_key(self._wanted)
        if self._job is not None:
            return self._by_key(self._job.key)
        here = sorted(self._views.values(), key=lambda view: (not self._used(view), view.state not in _HERE))
        found = next((view for view in here if view.state is not FileState.ABSENT), None)
        return self.size_.default if found is None else self._by_key(found.key)

    @property
    def view(self) -> PairView | None:
        """How that pair stands; None before anything is known."""
        return self._views.get(self.pair.key)

    @property
    def job(self) -> JobProgress | None:
        """The download of that pair, under way or ended with a sentence."""
        job = self._job
        return job if job is not None and job.key == self.pair.key and (job.running or job.sentence) else None

    @property
    def file_state(self) -> FileState:
        """Where that pair stands."""
        if self.job is not None:
            return texts.job_state(self.job)
        if self.view is None:
            return FileState.ABSENT
        if self._checking is not None and self.view.state in _HERE:
            names = {file.name for file in self.view.files}
            if any(file.state is FileState.VERIFYING and file.name in names for file in self._checking.files):
                return FileState.VERIFYING
        return self.view.state

    @property
    def in_use(self) -> bool:
        """Whether that pair is the one that is loaded."""
        return self.view is not None and self._used(self.view)

    @property
    def fault(self) -> str:
        """What went wrong last, see `tandem.models.errors.TransferFault`; "" for nothing, or nobody knows."""
        return self.job.fault if self.job is not None else ""

    def retranslate(self) -> None:
        """All of it, from what is known."""
        pair, state, view, job = self.pair, self.file_state, self.view, self.job
        words = texts.words(state)
        self.state.set_state(*words)
        self._show_sources(pair)
        self.bytes.setText(self._size_text(pair, state))
        self.licence.setText(pair.licence)
        self.unpinned.setVisible(pair.drafter.pin is None and state not in _HERE)
        need = need_of(self.size_, pair)
        self.fit.set_needed(need.memory(), exact=need.exact)
        shown = job if job is not None else self._kept()
        if shown is not None and (state is FileState.QUEUED or not (shown.running or shown.done)):
            shown = None
        self.progress.set_job(shown)
        self.progress.setVisible(shown is not None)
        self._show_problem(state)
        action = texts.action(state, in_use=self.in_use)
        loading = view is not None and bool(self._loading) and view.target == self._loading
        barred = (action.act == "use" and loading) or (action.act in texts.ONLINE and self._offline)
        weighty = action.act != "download" or self.fit.fit != "too-large"
        self.action.set_action(action, self.size_.name, enabled=not barred, weighty=weighty)
        self.more.set_name(self.tr("More for {name}").format(name=self.size_.name))

    def open_menu(self) -> None:
        """Opens what else can be done."""
        self.menu.open(self.more, self.menu_facts)

    @property
    def menu_facts(self) -> MenuFacts:
        """What the menu goes by."""
        pair, view, job, state = self.pair, self.view, self.job, self.file_state
        files = () if view is None else view.files
        here = [file for file in files if file.state in _HERE and file.path]
        part = sum(file.done for file in files if file.state not in _HERE)
        if job is not None:
            part = sum(file.done for file in job.files if file.state not in _HERE)
        folder = next((str(PurePath(file.path).parent) for file in files if file.path), "")
        lines = [f"{self._host}/{file.repo} · {file.file}" for file in pair.files]
        return MenuFacts(
            name=self.size_.name,
            state=state,
            in_use=self.in_use,
            part=part,
            on_disk=sum(file.done for file in here),
            in_place=bool(here) and all(file.in_place for file in here),
            folder=folder,
            address="\n".join(lines),
            key=pair.key,
            told=job is not None or state is FileState.FAILED,
        )

    def choose_source(self, key: str) -> None:
        """Shows the pair of another source."""
        self._wanted = key
        self.retranslate()

    def _show_sources(self, pair: CatalogPair) -> None:
        self.only_source.setText(f"{texts.source(pair)} · {pair.quantisation}")
        entries: list[tuple[str, object]] = []
        for each in self.size_.pairs:
            view = self._views.get(each.key)
            here = view is not None and view.state in _HERE and view.state is not FileState.MISSING
            text = self.tr("{source} · {quantisation} (here)") if here else "{source} · {quantisation}"
            entries.append((text.format(source=texts.source(each), quantisation=each.quantisation), each.key))
        self.source.set_entries(entries)
        self.source.show_choice(pair.key)
        self.source.setEnabled(self.file_state not in ACTIVE)

    def _size_text(self, pair: CatalogPair, state: FileState) -> str:
        view = self.view
        if view is not None and state in _HERE and view.on_disk:
            text = self.tr("{size} on disk").format(size=in_bytes(view.on_disk))
            day = texts.day(min((file.verified_at or "" for file in view.files), default=""))
            return self.tr("{size}, checked on {day}").format(size=text, day=day) if day else text
        text = self.tr("{size} in two files")
        if not all(file.size for file in pair.files):
            text = self.tr("more than {size} in two files")
        return text.format(size=in_bytes(pair.size))

    def _kept(self) -> JobProgress | None:
        """A part that is here although no job is, as a job that stands still."""
        view = self.view
        if view is None or view.state not in (FileState.PAUSED, FileState.FAILED):
            return None
        return texts.kept(view)

    def _show_problem(self, state: FileState) -> None:
        sentence = remedy = ""
        if self.job is not None:
            if not self.job.running:
                sentence, remedy = self.job.sentence, self.job.remedy
        elif self.view is not None:
            sentence, remedy = self.view.sentence, self.view.remedy
        self.problem.setVisible(bool(sentence))
        self.problem.set_kind(texts.gravity(state))
        said = localised(sentence, remedy)
        self.problem.set_text(*map(texts.fitted, said))
        self.problem.setToolTip(plain_tip("\n".join(said)) if said[0] != texts.shortened(said[0]) else "")
        cures = {"settings": self.tr("Open settings"), "other-source": self.tr("Other source"), "": ""}
        cure = self._cure_of() if sentence else ""
        self.remedy.setText(cures[cure])
        self.remedy.setVisible(bool(cure))

    # What it asks for

    def _act(self, act: str) -> None:
        key = self.pair.key
        asked: dict[str, Callable[[], None]] = {
            "download": lambda: self.download_requested.emit(key),
            "cancel": lambda: self.cancel_requested.emit(key, True),
            "pause": self.pause_requested.emit,
            "resume": lambda: self.resume_requested.emit(key),
            "try-again": lambda: self.resume_requested.emit(key),
            "start-again": lambda: self.start_again_requested.emit(key),
            "use": lambda: self.use_requested.emit(key),
            "verify": self.verify_requested.emit,
            "stop-check": self.stop_check_requested.emit,
        }
        if act in asked:
            asked[act]()

    def _cure_of(self) -> texts.Cure:
        return texts.cure(self.fault, other_source=len(self.size_.pairs) > 1)

    def _cure(self) -> None:
        if self._cure_of() == "settings":
            self.settings_requested.emit()
        else:
            keys = [pair.key for pair in self.size_.pairs]
            self.choose_source(keys[(keys.index(self.pair.key) + 1) % len(keys)])
            self.action.button.setFocus(Qt.FocusReason.OtherFocusReason)

    def _choose(self, _index: int) -> None:
        key = self.source.currentData()
        if isinstance(key, str):
            self.choose_source(key)

    def _used(self, view: PairView) -> bool:
        return bool(self._in_use) and view.target == self._in_use

    def _by_key(self, key: str) -> CatalogPair:
        return next((pair for pair in self.size_.pairs if pair.key == key), self.size_.default)

    def _about(self) -> dict[str, Callable[[], str]]:
        return {
            "e2b": lambda: self.tr("The smaller one: quick, good for everyday questions."),
            "e4b": lambda: self.tr("The larger one: better answers, more slowly."),
            "12b": lambda: self.tr("Better answers, on machines with memory to spare."),
            "26b-a4b": lambda: self.tr("A mixture of experts: large in memory, a part of it works on each token."),
            "31b": lambda: self.tr("The largest: the best answers, slow without a graphics card."),
        }

    def _retheme(self) -> None:
        self._grid.setHorizontalSpacing(self._manager.theme.space.l)
