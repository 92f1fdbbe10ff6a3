"""Settings of the engine: they take effect when the pair is loaded, which one click does again."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from PySide6.QtCore import Signal

from tandem.settings import Settings
from tandem.ui.i18n import number, size
from tandem.ui.kit import Segmented
from tandem.ui.page import Banner
from tandem.ui.session_state import PairState
from tandem.ui.settings_section import Choices, Section, Whole

if TYPE_CHECKING:
    from collections.abc import Sequence

    from PySide6.QtWidgets import QWidget

    from tandem.engine.protocol import DeviceInfo
    from tandem.ui.theme import ThemeManager

LEAST_CONTEXT: Final = 512
MOST_CONTEXT: Final = 1 << 24
MOST_THREADS: Final = 4096


class EngineSection(Section):
    """Context, threads, device, type of the KV cache."""

    reload_requested = Signal()

    def __init__(self, manager: ThemeManager, parent: QWidget | None = None) -> None:
        super().__init__(manager, parent)
        self._pair = PairState()
        self._devices: tuple[DeviceInfo, ...] = ()
        self._cpus: int | None = None
        self._context: int | None = None
        self._refused = False  # a context was written that is not used; it stays in view with its problem
        self.entitle(lambda: self.tr("Engine"))
        self.stale = Banner(manager, "info", "refresh")
        self.stale.button.clicked.connect(self.reload_requested)
        self.say(
            lambda text: self.stale.set_text(text),
            lambda: self.tr("Takes effect when the pair is loaded again."),
        )
        self.say(self.stale.set_button, lambda: self.tr("Load again now"))
        self.stale.hide()
        self.card.body.addWidget(self.stale)
        self.context = Whole(manager, 0, MOST_CONTEXT, 1024)
        self.context.valueChanged.connect(self._context_changed)
        self.context_field = self.field(
            self.context,
            lambda: self.tr("Context"),
            lambda: self.tr("Tokens of a chat that the model sees at once. More takes more memory."),
        )
        self.threads = Whole(manager, 0, MOST_THREADS)
        self.threads.valueChanged.connect(lambda value: self.change(threads=value or None))
        self.threads_field = self.field(
            self.threads,
            lambda: self.tr("Threads"),
            lambda: self.tr("Automatic measures at each load which number is fastest here."),
        )
        for box in (self.context, self.threads):
            self.say(box.setSpecialValueText, lambda: self.tr("Automatic"))
        self.device = Choices(manager)
        self.device.currentIndexChanged.connect(lambda _index: self.change(device=self.device.currentData()))
        self.field(
            self.device,
            lambda: self.tr("Device"),
            lambda: self.tr("Where target and drafter run. Automatic takes the fastest that the engine finds."),
        )
        self.kv = Segmented(manager, "", [("f16", "f16"), ("q8_0", "q8_0")])
        self.kv.chosen.connect(lambda key: self.change(kv_type=key))
        self.kv_field = self.field(
            self.kv,
            lambda: self.tr("Type of the KV cache"),
            lambda: self.tr("f16 is exact. q8_0 takes half the memory for the context."),
        )
        self.retranslate()

    def set_pair(self, pair: PairState) -> None:
        """Shows whether the pair must be loaded again, and what it was trained for."""
        self._pair = pair
        self.set_devices(pair.devices)

    def set_devices(self, devices: Sequence[DeviceInfo]) -> None:
        """The devices that the engine found; none before an engine ran."""
        self._devices = tuple(devices) or self._devices
        self.retranslate()

    def set_cpus(self, cpus: int) -> None:
        """CPUs that Tandem may use."""
        self._cpus = cpus
        self.retranslate()

    def show_settings(self, settings: Settings) -> None:
        """Puts the values into the controls."""
        if not self._refused or settings.context != self._context:
            self.context.show_value(settings.context or 0)
            self._refused = False
        self._context = settings.context
        self.threads.show_value(settings.threads or 0)
        self.kv.choose(settings.kv_type)
        self.retranslate()

    def retranslate(self) -> None:
        """Devices, problems, warnings."""
        self.stale.setVisible(self._pair.stale)
        entries: list[tuple[str, object]] = [(self.tr("Automatic"), None)]
        for device in self._devices:
            text = self.tr("{name} · {memory}") if device.total else "{name}"
            name = device.description or device.name
            entries.append((text.format(name=name, memory=size(device.total)), device.name))
        wanted = self.settings.device
        if wanted is not None and wanted not in [data for _text, data in entries]:
            missing = self.tr("{name} (not found)") if self._devices else "{name}"
            entries.append((missing.format(name=wanted), wanted))
        self.device.set_entries(entries)
        self.device.show_choice(wanted)
        self.context_field.set_problem(self._context_problem(self.context.value()))
        too_many = self._cpus is not None and self.threads.value() > self._cpus
        text = self.tr("More threads than the %n CPU(s) here make every answer slower.", "", self._cpus or 0)
        self.threads_field.set_problem(text if too_many else "", "warn")
        warning = self.tr(
            "With q8_0 the target's numbers change a little, and the drafter's guesses may no longer fit: acceptance "
            "once fell to almost nothing. Tandem says so when it happens."
        )
        self.kv_field.set_problem(warning if self.settings.kv_type == "q8_0" else "", "warn")

    def _context_changed(self, value: int) -> None:
        self.retranslate()
        self._refused = bool(self.context_field.problem)
        if not self._refused:
            self.change(context=value or None)

    def _context_problem(self, value: int) -> str:
        if 0 < value < LEAST_CONTEXT:
            return self.tr("At least {least} tokens; this is not used.").format(least=number(LEAST_CONTEXT))
        loaded = self._pair.loaded
        if loaded is not None and value > loaded.trained_context:
            text = self.tr("This model was trained for {most} tokens at most; this is not used.")
            return text.format(most=number(loaded.trained_context))
        return ""
