"""The pair: loading it, giving a load up, noticing that it is gone, and what is known of its drafter."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Final

import msgspec
from PySide6.QtCore import QObject, Signal, Slot

from tandem import paths
from tandem.engine.gguf_header import printable
from tandem.engine.protocol import DeviceInfo, Done, Hello, Load, Loaded, Pass, Progress
from tandem.errors import EngineDied, ModelError, TandemError, UsageError
from tandem.settings import PairChoice, Settings
from tandem.ui.engine_worker import EngineWorker, Halted, Problem, Report, Starting
from tandem.ui.errors_text import localised
from tandem.ui.session_state import DrafterMachine, DrafterState, LoadState, Notice, PairState

LEAST_CONTEXT: Final = 512
"""A smaller context is not offered."""


class PairKeeper(QObject):
    """Loads pairs and knows which one is there.

    Args:
        engine: Does the work.
        settings: Gives the settings as they are now.
        parent: Qt's parent.

    Attributes:
        pair_changed: A `PairState`.
        loading: A `LoadState`.
        drafter_changed: A `DrafterState`.
        notice: A `Notice`.
        ended: A load ended; whether a pair is there now.
    """

    pair_changed = Signal(object)
    loading = Signal(object)
    drafter_changed = Signal(object)
    notice = Signal(object)
    ended = Signal(bool)

    def __init__(self, engine: EngineWorker, settings: Callable[[], Settings], parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._engine = engine
        self._settings = settings
        self._request: int | None = None  # the load under way
        self._given_up: set[int] = set()
        self._loaded_with: tuple[object, ...] = ()
        self._refused_context: int | None = None
        self._machine = DrafterMachine()
        self._shown = DrafterState()
        self.last_context: int | None = None
        """Positions of the pair that was loaded last."""

        self.state = PairState()
        self.load_state = LoadState()

    @property
    def loaded(self) -> Loaded | None:
        """The pair's facts, None while there is none to talk to."""
        return self.state.loaded if self.state.kind == "loaded" else None

    @property
    def busy(self) -> bool:
        """Whether a load is under way."""
        return self._request is not None

    @property
    def drafter(self) -> DrafterState:
        """The drafter's state."""
        return self._shown

    def load(self, choice: PairChoice) -> None:
        """Loads a pair in place of the one that is there."""
        if self._request is not None:
            self._give_up(self._request)
        settings = self._settings()
        self._loaded_with = _load_options(settings)
        self._refused_context = None
        self._machine.unloaded()
        self._show_drafter()
        self._show_pair(PairState("loading", choice, devices=self.state.devices))
        self._start(choice, settings)

    def _start(self, choice: PairChoice, settings: Settings) -> None:
        request = self._request = self._engine.next_id()
        self._show_load(LoadState("starting"))
        self._engine.load(request, lambda: make_load(request, choice, settings))

    @Slot()
    def cancel(self) -> None:
        """Gives the load under way up; there is no pair then."""
        if self._request is None:
            return
        self._give_up(self._request)
        self._request = None
        self._show_pair(msgspec.structs.replace(self.state, kind="none", loaded=None))
        self._show_load(LoadState("stopped"))
        text = self.tr("Loading was stopped. There is no model in use.")
        self.notice.emit(Notice("info", text, action="load-again", action_text=self.tr("Load again")))
        self.ended.emit(False)

    def release(self, then: Callable[[], None]) -> None:
        """Lets go of the pair's files, and of the pair; calls `then` when no process has them open any more."""
        if self._request is not None:
            self._give_up(self._request)
            self._request = None
            self._show_load(LoadState("stopped"))
        self._machine.unloaded()
        self._show_drafter()
        self._show_pair(msgspec.structs.replace(self.state, kind="none", loaded=None, stale=False))
        self._engine.unload()
        self._engine.submit(lambda: None, lambda _: then())

    def follow_files(self, choice: PairChoice) -> None:
        """The pair in use is the same, its files lie elsewhere now."""
        self._show_pair(msgspec.structs.replace(self.state, choice=choice))

    def died(self, error: EngineDied) -> None:
        """The engine's process ended, and the pair with it."""
        if self._request is None and self.state.kind == "loaded":
            self._machine.unloaded()
            self._show_drafter()
            self._fail_pair(error)

    def settings_changed(self) -> None:
        """The settings are others now."""
        settings = self._settings()
        self._machine.switch(settings.draft_on, settings.draft)
        self._show_drafter()
        stale = self.state.kind == "loaded" and self._loaded_with != _load_options(settings)
        if stale != self.state.stale:
            self._show_pair(msgspec.structs.replace(self.state, stale=stale))

    def draft_for_next(self, wanted: bool | None = None) -> str:
        """Draft length of the next answer; `wanted` overrules the user's switch for it."""
        settings = self._settings()
        on = settings.draft_on if wanted is None else wanted
        length = settings.draft
        if wanted and length == "off":
            length = Settings().draft
        return length if on and self._machine.available else "off"

    def begin_answer(self, draft: str) -> None:
        """An answer begins that asks for drafts of this length."""
        self._machine.begin(draft)

    def follow(self, event: Pass | Done | None) -> None:
        """A pass of the answer that runs, its end, or None for an end without figures; `show` then tells."""
        if isinstance(event, Pass):
            self._machine.passed(event)
        elif isinstance(event, Done):
            self._machine.finished(event)
        else:
            self._machine.ended()

    def show(self) -> None:
        """Tells what the drafter does, if that has changed."""
        self._show_drafter()

    def on_report(self, report: Report) -> None:
        """Takes a report of the engine that may belong to a load."""
        if isinstance(report, Hello):
            self._show_devices(report.devices)
        elif isinstance(report, Loaded) and report.id in self._given_up:
            self._given_up.discard(report.id)
            if self._request is None:  # it was there before the stop arrived; the next load would end it by itself
                self._engine.unload()
        elif isinstance(report, Starting | Progress | Loaded | Halted | Problem) and report.id == self._request:
            self._on_load_report(report)

    def _on_load_report(self, report: Starting | Progress | Loaded | Halted | Problem) -> None:
        match report:
            case Starting():
                self._show_load(LoadState("starting"))
            case Progress(stage="target" | "drafter" | "threads" as stage):
                fraction = min(1.0, report.done / report.total) if report.total else 0.0
                self._show_load(LoadState(stage, fraction))
            case Loaded():
                self._on_loaded(report)
            case Halted():
                self.cancel()
            case Problem():
                self._on_load_problem(report.error)

    def _on_load_problem(self, error: TandemError) -> None:
        settings = self._settings()
        if isinstance(error, UsageError) and settings.context is not None and self._refused_context is None:
            # a context that was chosen for another model: this one then takes its own
            self._refused_context = settings.context
            self._start(self.state.choice, msgspec.structs.replace(settings, context=None))
            return
        self._request = None
        self._fail_pair(error)
        self._show_load(LoadState("failed", 0.0, error.sentence, error.remedy))
        self.ended.emit(False)

    def _on_loaded(self, loaded: Loaded) -> None:
        self._request = None
        self.last_context = loaded.context
        settings = self._settings()
        self._machine.loaded(loaded)
        self._machine.switch(settings.draft_on, settings.draft)
        stale = self._loaded_with != _load_options(settings)
        self._show_pair(msgspec.structs.replace(self.state, kind="loaded", loaded=loaded, stale=stale))
        self._show_load(LoadState("done", 1.0))
        self._show_drafter()
        if self._refused_context is not None:
            text = self.tr("This model cannot have a context of {wanted} tokens; it was loaded with {size}.")
            self.notice.emit(Notice("warn", text.format(wanted=self._refused_context, size=loaded.context)))
        self.ended.emit(True)

    def _give_up(self, request: int) -> None:
        self._given_up.add(request)
        self._engine.stop(request)

    def _fail_pair(self, error: TandemError) -> None:
        failed = msgspec.structs.replace(
            self.state, kind="failed", loaded=None, sentence=error.sentence, remedy=error.remedy, stale=False
        )
        self._show_pair(failed)
        text, remedy = localised(error.sentence, error.remedy)
        if isinstance(error, ModelError):
            self.notice.emit(Notice("bad", text, remedy, "open-models", self.tr("Choose a model"), sticky=True))
        else:
            self.notice.emit(Notice("bad", text, remedy, "load-again", self.tr("Load again"), sticky=True))

    def _show_devices(self, devices: tuple[DeviceInfo, ...]) -> None:
        if devices != self.state.devices:
            self._show_pair(msgspec.structs.replace(self.state, devices=devices))

    def _show_pair(self, state: PairState) -> None:
        self.state = state
        self.pair_changed.emit(state)

    def _show_load(self, state: LoadState) -> None:
        self.load_state = state
        self.loading.emit(state)

    def _show_drafter(self) -> None:
        before, after = self._shown, self._machine.state
        if after == before:
            return
        self._shown = after
        self.drafter_changed.emit(after)
        if after.kind == before.kind or after.kind not in ("failed", "low"):
            return
        text, remedy = localised(after.reason, after.remedy)
        if after.kind == "low":
            self.notice.emit(Notice("warn", text, remedy, "drafter-off", self.tr("Turn it off"), sticky=True))
        else:
            self.notice.emit(Notice("warn", self.tr("Without the drafter: {reason}").format(reason=text), remedy))


def make_load(request: int, choice: PairChoice, settings: Settings) -> Load:
    """The request that loads a pair. Looks at files, so not for the GUI thread.

    Raises:
        ModelError: A file of the demo pair is missing, or the choice names no file.
        TandemError: There are no resources.
    """
    target: str | Path | None = choice.target
    drafter: str | Path | None = choice.drafter or None
    if choice.kind == "demo":
        target, drafter = paths.demo_pair()
    if not target:
        raise ModelError("missing", "No model file is chosen.", "Choose one on the page Models.")
    return Load(
        id=request,
        target=_encoded(target),
        drafter=None if drafter is None else _encoded(drafter),
        method="none" if drafter is None else "mtp",
        context=settings.context,
        threads=settings.threads,
        device=settings.device,
        kv_type=settings.kv_type,
    )


def _encoded(path: str | Path) -> bytes:
    """A path as the system has it; one that no file can have names none."""
    try:
        return os.fsencode(path)
    except UnicodeEncodeError as error:
        sentence = f"There is no file {printable(os.path.basename(path))}."  # noqa: PTH119  (it need not be a path)
        raise ModelError("missing", sentence, "Check the path.", str(error)) from error


def _load_options(settings: Settings) -> tuple[object, ...]:
    """The settings that only a load makes true."""
    return settings.context, settings.threads, settings.device, settings.kv_type
