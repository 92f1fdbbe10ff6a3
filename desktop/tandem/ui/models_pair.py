"""The card of the pair in use: what it is, how a load goes, why it failed."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QGridLayout, QHBoxLayout, QVBoxLayout, QWidget

from tandem.engine.protocol import Loaded, ModelInfo
from tandem.settings import PairChoice
from tandem.ui.errors_text import localised
from tandem.ui.i18n import duration, number, size
from tandem.ui.kit import Card, Meter, QuietButton, SectionTitle, TextRole, label, spaced
from tandem.ui.page import Banner, Mark, Speaking
from tandem.ui.pair_check import name_of
from tandem.ui.session_state import LoadState, PairState

if TYPE_CHECKING:
    from tandem.ui.theme import ThemeManager

STEPS: Final = 1000
"""Parts of a stage that the bar tells apart."""


class PairCard(Speaking):
    """The pair in use.

    Attributes:
        load_requested: A `PairChoice` is to be loaded (again).
        cancel_requested: The load under way is to be given up.
    """

    load_requested = Signal(object)
    cancel_requested = Signal()

    def __init__(self, manager: ThemeManager, parent: QWidget | None = None) -> None:
        super().__init__(manager, parent)
        self._pair = PairState()
        self._load = LoadState()
        title = SectionTitle(manager)
        self.say(title.setText, lambda: self.tr("In use"))
        self.state = Mark(manager)
        self.name = label(bold=True, wrap=True)
        self._grid = QGridLayout()
        spaced(self._grid, manager, "xs")
        self._grid.setColumnStretch(1, 1)
        self._facts = QWidget()
        self._facts.setLayout(self._grid)
        self.problem = Banner(manager, "warn")
        self.progress = LoadView(manager)
        self.progress.cancel_requested.connect(self.cancel_requested)
        self.again = QuietButton(manager, "", "refresh")
        self.again.clicked.connect(lambda: self.load_requested.emit(self._pair.choice))
        head = QHBoxLayout()
        spaced(head, manager, "s")
        head.addWidget(title)
        head.addWidget(self.state, 1, Qt.AlignmentFlag.AlignVCenter)
        head.addWidget(self.again)
        card = Card(manager)
        card.body.addLayout(head)
        for part in (self.name, self._facts, self.problem, self.progress):
            card.body.addWidget(part)
        column = QVBoxLayout(self)
        spaced(column, manager, "")
        column.addWidget(card)
        manager.changed.connect(self._retheme)
        self._retheme()
        self.retranslate()

    def set_pair(self, pair: PairState) -> None:
        """The pair in use."""
        self._pair = pair
        self.retranslate()

    def set_load(self, load: LoadState) -> None:
        """How far a load is."""
        self._load = load
        self.progress.set_load(load)
        self.retranslate()

    def retranslate(self) -> None:
        """All of it, from the two states."""
        pair = self._pair
        states: dict[str, tuple[str, TextRole, str]] = {
            "none": ("info", "muted", self.tr("Nothing loaded")),
            "loading": ("refresh", "accent", self.tr("Loading")),
            "loaded": ("check", "good", self.tr("Ready")),
            "failed": ("warning", "bad", self.tr("Failed")),
        }
        self.state.set_state(*states[pair.kind])
        self.name.setText(self._name(pair.choice, pair.loaded))
        self._show_facts(pair.loaded if pair.kind == "loaded" else None)
        self._show_problem()
        self.progress.setVisible(pair.kind == "loading")
        self.again.setText(self.tr("Load again") if pair.kind == "loaded" else self.tr("Try again"))
        if pair.kind == "none":
            self.again.setText(self.tr("Load"))
        self.again.setVisible(pair.kind != "loading")

    def _name(self, choice: PairChoice, loaded: Loaded | None) -> str:
        if choice.kind == "demo":
            return self.tr("Demo pair")
        if loaded is not None and loaded.target.name:
            return loaded.target.name
        return name_of(choice.target or "")

    def _show_problem(self) -> None:
        pair = self._pair
        self.problem.hide()
        if pair.kind == "failed":
            self.problem.set_kind("bad")
            self.problem.set_text(*localised(pair.sentence, pair.remedy))
            self.problem.show()
        elif pair.kind == "loaded" and pair.loaded is not None and pair.loaded.problem is not None:
            problem = pair.loaded.problem
            self.problem.set_kind("warn")
            self.problem.set_text(*localised(problem.reason, problem.remedy))
            self.problem.show()
        elif pair.stale:
            self.problem.set_kind("info")
            self.problem.set_text(self.tr("Settings of the engine were changed. They count from the next load on."))
            self.problem.show()

    def _show_facts(self, loaded: Loaded | None) -> None:
        while (item := self._grid.takeAt(0)) is not None:
            if (old := item.widget()) is not None:
                old.hide()
                old.deleteLater()
        self._facts.setVisible(loaded is not None)
        if loaded is None:
            return
        drafter = self._model(loaded.drafter) if loaded.drafter is not None else self.tr("none")
        if loaded.method == "ngram":
            drafter = self.tr("a look-up in the text so far")
        context = self.tr("{tokens} tokens, trained for {trained}").format(
            tokens=number(loaded.context), trained=number(loaded.trained_context)
        )
        where = self.tr("{device} · %n thread(s)", "", loaded.threads).format(device=loaded.device)
        rows = (
            (self.tr("Target"), self._model(loaded.target)),
            (self.tr("Drafter"), drafter),
            (self.tr("Context"), context),
            (self.tr("Runs on"), where),
            (self.tr("Loaded in"), duration(loaded.load_s)),
        )
        for line, (name, value) in enumerate(rows):
            self._grid.addWidget(label(name, size="small", role="muted"), line, 0, Qt.AlignmentFlag.AlignTop)
            self._grid.addWidget(label(value, size="small", wrap=True), line, 1)

    def _retheme(self) -> None:
        self._grid.setHorizontalSpacing(self._manager.theme.space.l)

    def _model(self, info: ModelInfo) -> str:
        return " · ".join((info.file, info.architecture, info.quantisation, size(info.bytes)))


class LoadView(Speaking):
    """How far a load is, and a button to give it up; empty while none runs.

    Attributes:
        cancel_requested: The load is to be given up.
    """

    cancel_requested = Signal()

    def __init__(self, manager: ThemeManager, parent: QWidget | None = None) -> None:
        super().__init__(manager, parent)
        self._load = LoadState()
        self._stage = label(size="small", role="muted", wrap=True)
        self.meter = Meter(manager, "", warn_at=1.0, width=200)
        self.cancel = QuietButton(manager, "", "close")
        self.say(self.cancel.setText, lambda: self.tr("Cancel"))
        self.cancel.clicked.connect(self.cancel_requested)
        words = QVBoxLayout()
        spaced(words, manager, "xs")
        words.addStretch(1)
        words.addWidget(self._stage)
        words.addWidget(self.meter)
        words.addStretch(1)
        row = QHBoxLayout(self)
        spaced(row, manager, "m")
        row.addLayout(words, 1)
        row.addWidget(self.cancel)
        self.retranslate()

    @property
    def stage(self) -> str:
        """What is being done."""
        return self._stage.text()

    def set_load(self, load: LoadState) -> None:
        """How far it is."""
        self._load = load
        self.retranslate()

    def retranslate(self) -> None:
        """The stage's name."""
        stages: dict[str, Callable[[], str]] = {
            "starting": lambda: self.tr("Starting the engine…"),
            "target": lambda: self.tr("Loading the model…"),
            "drafter": lambda: self.tr("Loading the drafter…"),
            "threads": lambda: self.tr("Measuring how many threads are fastest…"),
        }
        text = stages[self._load.phase]() if self._load.phase in stages else ""
        self._stage.setText(text)
        self.meter.setAccessibleName(text or self.tr("Loading"))
        # A stage that is done is no alarm: the bar stays a hair under its end, where it would turn red.
        self.meter.set_value(min(round(self._load.fraction * STEPS), STEPS - 1), STEPS)
        self.cancel.setEnabled(self._load.running)
