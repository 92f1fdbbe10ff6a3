"""The line above a chat: the pair, the device, what the drafter does, how full the context is. Always in view."""

from __future__ import annotations

from pathlib import PurePath
from typing import Final

from PySide6.QtCore import QCoreApplication, QEvent, Qt, Signal
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QHBoxLayout, QSizePolicy, QWidget

from tandem.engine.protocol import Loaded
from tandem.models.progress import JobProgress
from tandem.settings import PairChoice
from tandem.ui import i18n, models_state_text
from tandem.ui.errors_text import localised
from tandem.ui.kit import IconButton, Meter, QuietButton, StateChip, label, plain_tip, set_label, spaced
from tandem.ui.kit_status import Kind
from tandem.ui.popover import Popover
from tandem.ui.session_state import CONTEXT_WARNING, DrafterState, PairState
from tandem.ui.theme import ThemeManager

HEIGHT: Final = 52
_CHIPS: Final[dict[str, Kind]] = {
    "none": "idle",
    "off": "off",
    "ready": "idle",
    "on": "on",
    "low": "warn",
    "failed": "failed",
}
_NARROW: Final = 640
_NAME_LENGTH: Final = 28


class Header(QWidget):
    """Shows the session's state.

    Args:
        manager: The theme.

    Attributes:
        sidebar_requested: Show or hide the list of chats.
        models_requested: Show the page Models.
        drafter_requested: Use the drafter or not.
        reload_requested: Load the pair again.
    """

    sidebar_requested = Signal()
    models_requested = Signal()
    drafter_requested = Signal(bool)
    reload_requested = Signal()

    def __init__(self, manager: ThemeManager, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._manager = manager
        self._pair = PairState()
        self._drafter = DrafterState()
        self._job: JobProgress | None = None
        self._seen: JobProgress | None = None
        self._used = self._limit = 0
        self.sidebar = IconButton(manager, "sidebar", "", "Ctrl+B")
        self.pair = QuietButton(manager, "", "chip")
        self.device = label(size="small", role="muted")
        self.job = StateChip(manager, "busy", "")
        self.job.hide()
        self.drafter = StateChip(manager, "idle", "")
        self._meter_text = label(size="small", role="muted")
        self.meter = Meter(manager, "", warn_at=CONTEXT_WARNING, width=72)
        row = QHBoxLayout(self)
        spaced(row, manager, "s", ("m", "s", "l", "s"))
        left: tuple[QWidget, ...] = (self.sidebar, self.pair, self.device)
        right: tuple[QWidget, ...] = (self.job, self.drafter, self._meter_text, self.meter)
        for part in left:
            row.addWidget(part)
        row.addStretch(1)
        for part in right:
            row.addWidget(part, 0, Qt.AlignmentFlag.AlignVCenter)
        self.setSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Fixed)
        self.sidebar.clicked.connect(self.sidebar_requested)
        self.pair.clicked.connect(self.models_requested)
        self.job.clicked.connect(self.models_requested)
        self.drafter.clicked.connect(self.explain_drafter)
        manager.changed.connect(self._size)
        self._size()
        self.retranslate()

    def set_pair(self, state: PairState) -> None:
        """Shows which pair is in use and where it runs."""
        self._pair = state
        self.retranslate()

    def set_drafter(self, state: DrafterState) -> None:
        """Shows what the drafter does."""
        self._drafter = state
        self._show_drafter()

    def set_context(self, used: int, limit: int) -> None:
        """Shows how many of the context's tokens the conversation takes; a limit of 0 hides the meter."""
        self._used, self._limit = used, limit
        self._show_context()

    def set_job(self, job: JobProgress | None) -> None:
        """Shows how far a download is, or that it needs somebody; None takes it away."""
        self._job = job
        if job is None or job.running:
            self._seen = None
        self._show_job()

    def seen_job(self) -> None:
        """How the last download ended was seen elsewhere: it is not told here any longer."""
        if self._job is not None and not self._job.running:
            self._seen = self._job
            self._show_job()

    def explain_drafter(self) -> Popover:
        """Opens what there is to say about the drafter."""
        state, made = self._drafter, Popover(self._manager, self.drafter)
        made.add_text(self._drafter_text(), bold=True)
        made.add_text(self._drafter_meaning(), "small", "muted")
        if state.reason:
            reason, remedy = localised(state.reason, state.remedy)
            made.add_text(f"{reason} {remedy}".strip(), "small")
        if state.acceptance is not None:
            made.add_text(
                self.tr("Acceptance rate of the last answer: {rate}").format(rate=i18n.percent(state.acceptance)),
                "small",
            )
        if state.kind in ("on", "low", "ready"):
            made.add_button(self.tr("Turn the drafter off"), "bolt", lambda: self.drafter_requested.emit(False))
        elif state.kind == "off" and not state.reason:
            made.add_button(self.tr("Turn the drafter on"), "bolt", lambda: self.drafter_requested.emit(True))
        elif state.kind == "failed":
            made.add_button(self.tr("Load the pair again"), "refresh", self.reload_requested.emit)
        if state.reason or state.kind == "none":
            made.add_button(self.tr("Choose a model"), "models", self.models_requested.emit)
        made.open()
        return made

    def retranslate(self) -> None:
        """Sets every text anew."""
        self.sidebar.set_name(self.tr("Show or hide the list of chats"), "Ctrl+B")
        name = pair_name(self._pair)
        failed = self._pair.kind == "failed"
        if name and failed:
            name = self.tr("{name} · not loaded").format(name=name)
        self.pair.set_icon("warning" if failed else "chip")
        shown = name or {
            "loading": self.tr("Loading…"),
            "failed": self.tr("Not loaded"),
        }.get(self._pair.kind, self.tr("Choose a model"))
        self.pair.setText(shown if len(shown) <= _NAME_LENGTH else shown[: _NAME_LENGTH - 1].rstrip() + "…")
        self.pair.setAccessibleName(self.tr("Model: {name}").format(name=shown))
        self.pair.setToolTip(plain_tip(self._pair_details() or self.tr("Choose a model")))
        loaded = self._pair.loaded
        self.device.setText(self._device(loaded) if loaded is not None else "")
        self.meter.setAccessibleName(self.tr("Context used"))
        self._show_job()
        self._show_drafter()
        self._show_context()

    def changeEvent(self, event: QEvent) -> None:  # noqa: N802 - Qt's name
        """Follows the language."""
        if event.type() == QEvent.Type.LanguageChange:
            self.retranslate()
        super().changeEvent(event)

    def resizeEvent(self, event: QResizeEvent) -> None:  # noqa: N802 - Qt's name
        """Leaves out the meter's bar and a download's name where there is little room; the figures stay."""
        self._show_context()
        self._show_job()
        super().resizeEvent(event)

    def _show_job(self) -> None:
        job = self._job
        shown = job is not None and (job.running or (bool(job.sentence) and job != self._seen))
        self.job.setVisible(shown)
        if job is None or not shown:
            return
        name = short_name(job.key)
        state = models_state_text.words(models_state_text.job_state(job)).text
        left = models_state_text.left(job.left_s) if job.waiting is None else ""
        parts = [name, models_state_text.percent_done(job), left] if job.running else [name, state]
        if self.width() < self._manager.px(_NARROW):
            parts = parts[1:2]
        reason, remedy = localised(job.sentence, job.remedy)
        details = (f"{name}: {state}", models_state_text.amount(job), models_state_text.waiting(job), reason, remedy)
        kind: Kind = "warn" if job.waiting is not None else "busy"
        if not job.running:
            kind = "failed" if models_state_text.gravity(models_state_text.job_state(job)) == "bad" else "warn"
        text = " · ".join(part for part in parts if part)
        self.job.set_state(kind, text, "\n".join(part for part in details if part))

    def _size(self) -> None:
        self.setMinimumHeight(self._manager.px(HEIGHT))

    def _show_drafter(self) -> None:
        reason, remedy = localised(self._drafter.reason, self._drafter.remedy)
        detail = f"{reason} {remedy}".strip() or self._drafter_meaning()
        self.drafter.set_state(_CHIPS[self._drafter.kind], self._drafter_text(), detail)

    def _drafter_text(self) -> str:
        state = self._drafter
        if state.kind in ("on", "low"):
            return self.tr("Drafter on · length {length}").format(length=state.length)
        return {
            "none": self.tr("No drafter"),
            "off": self.tr("Drafter off"),
            "ready": self.tr("Drafter ready"),
            "failed": self.tr("Drafter failed"),
        }[state.kind]

    def _drafter_meaning(self) -> str:
        return {
            "none": self.tr("No pair is loaded."),
            "off": self.tr("Answers come from the target alone, one token per pass."),
            "ready": self.tr("Loaded. It counts as on as soon as the target has verified its first drafts."),
            "on": self.tr("The target has verified its drafts in this session."),
            "low": self.tr("The target verifies its drafts and rejects nearly all of them."),
            "failed": self.tr("Answers come from the target alone."),
        }[self._drafter.kind]

    def _show_context(self) -> None:
        known = self._limit > 0 and self._pair.kind == "loaded"
        wide = self.width() >= self._manager.px(_NARROW)
        self._meter_text.setVisible(known)
        self.meter.setVisible(known and wide)
        self.device.setVisible(bool(self.device.text()) and wide)
        if not known:
            return
        share = self._used / self._limit
        used, limit = i18n.number(self._used), i18n.number(self._limit)
        full = share >= CONTEXT_WARNING
        if full:
            text = self.tr("Context {share} full").format(share=i18n.percent(min(1.0, share)))
        else:
            text = f"{used} / {limit}"
        set_label(self._meter_text, text, "warn" if full else "muted")
        self.meter.set_value(self._used, self._limit)
        tip = self.tr("Context: {used} of {limit} tokens. When it is full, the oldest turns are left out.")
        for part in (self._meter_text, self.meter):
            part.setToolTip(tip.format(used=used, limit=limit))
        self.meter.setAccessibleDescription(tip.format(used=used, limit=limit))

    def _device(self, loaded: Loaded) -> str:
        if loaded.device.upper().startswith("CPU"):
            return f"{loaded.device} · {self._threads(loaded)}"
        return loaded.device

    def _threads(self, loaded: Loaded) -> str:
        return self.tr("%n thread(s)", "", loaded.threads)

    def _pair_details(self) -> str:
        loaded = self._pair.loaded
        if loaded is None:
            sentence, remedy = localised(self._pair.sentence, self._pair.remedy)
            return f"{sentence} {remedy}".strip()
        lines = [
            self.tr("Target: {file}, {kind}, {size}").format(
                file=loaded.target.file, kind=loaded.target.quantisation, size=i18n.size(loaded.target.bytes)
            )
        ]
        if loaded.drafter is not None:
            lines.append(
                self.tr("Drafter: {file}, {kind}, {size}").format(
                    file=loaded.drafter.file, kind=loaded.drafter.quantisation, size=i18n.size(loaded.drafter.bytes)
                )
            )
        lines.append(self.tr("Device: {device}, {threads}").format(device=loaded.device, threads=self._threads(loaded)))
        return "\n".join(lines)


def pair_name(state: PairState) -> str:
    """A short name of the pair in use, "" without one: E2B or E4B, the demo pair, or an imported file's own name."""
    if state.kind == "none":
        return ""
    return choice_name(state.choice, state.loaded)


def choice_name(choice: PairChoice, loaded: Loaded | None = None) -> str:
    """A short name of a pair: of the built-in one in the user's language, of files from what they say themselves."""
    if choice.kind == "demo":
        return QCoreApplication.translate("Pair", "Demo pair")
    name = (loaded.target.name or "") if loaded is not None else ""
    file = PurePath(choice.target or "").stem
    for size in ("E2B", "E4B"):
        if size.lower() in f"{name} {file}".lower():
            return f"Gemma 4 {size}"
    return name or file


def short_name(key: str) -> str:
    """A pair's model for where there is little room: "E2B"; the key itself for one that the catalog does not have."""
    return models_state_text.model_name(key).removeprefix("Gemma 4 ")
