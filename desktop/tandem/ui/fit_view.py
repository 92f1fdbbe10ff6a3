"""Shows whether something fits this machine's memory: a sentence, and a bar of what is taken, needed and free."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from PySide6.QtCore import QRectF, QSize, Qt
from PySide6.QtGui import QPainter, QPainterPath, QPaintEvent
from PySide6.QtWidgets import QSizePolicy, QVBoxLayout, QWidget

from tandem.hardware.machine import Fit, Machine, fit
from tandem.ui.i18n import size
from tandem.ui.kit import TextRole, label, spaced
from tandem.ui.page import Mark, Speaking

if TYPE_CHECKING:
    from tandem.ui.theme import ThemeManager

_LOOKS: Final[dict[Fit, tuple[str, TextRole]]] = {
    "fits": ("check", "good"),
    "tight": ("warning", "warn"),
    "too-large": ("close", "bad"),
}
_UNSURE: Final[tuple[str, TextRole]] = ("info", "text")
"""Of what is known it fits; but more is needed than is known."""


class FitView(Speaking):
    """Whether `needed` bytes fit. It says that it does not know until it is given the machine.

    Args:
        manager: The theme.
        needed: Bytes to judge; 0 for nothing.
        exact: False where the KV cache is not counted, so that more is needed than `needed`.
        parent: Qt's parent.

    Attributes:
        bar: The bar.
    """

    def __init__(
        self, manager: ThemeManager, needed: int = 0, *, exact: bool = True, parent: QWidget | None = None
    ) -> None:
        super().__init__(manager, parent)
        self._needed, self._exact = needed, exact
        self._machine: Machine | None = None
        self._verdict = Mark(manager)
        self._detail = label(size="small", role="muted", wrap=True)
        self.bar = MemoryBar(manager)
        column = QVBoxLayout(self)
        spaced(column, manager, "xs")
        column.addWidget(self._verdict)
        column.addWidget(self.bar)
        column.addWidget(self._detail)
        self.setSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Minimum)
        self.retranslate()

    @property
    def fit(self) -> Fit | None:
        """The verdict; None while the machine is not known, or there is nothing to judge."""
        return fit(self._needed, self._machine) if self._machine is not None and self._needed else None

    @property
    def text(self) -> str:
        """All that it says."""
        return f"{self._verdict.text} {self._detail.text()}"

    def set_machine(self, machine: Machine) -> None:
        """The machine to judge by."""
        self._machine = machine
        self.retranslate()

    def set_needed(self, needed: int, *, exact: bool = True) -> None:
        """Bytes to judge; 0 for nothing. See `exact` above."""
        self._needed, self._exact = needed, exact
        self.retranslate()

    def retranslate(self) -> None:
        """Verdict and detail."""
        verdicts = {
            "fits": self.tr("Fits this machine") if self._exact else self.tr("Probably fits"),
            "tight": self.tr("Tight: close other programs first"),
            "too-large": self.tr("Too large for this machine"),
        }
        verdict, machine = self.fit, self._machine
        if verdict is None or machine is None:
            self._verdict.set_state("chip", "muted", self.tr("Looking at this machine…"))
            text = self.tr("Needs about {needed} of memory (an estimate).")
            if not self._exact:
                text = self.tr("Needs more than {needed} of memory.")
            self._detail.setText(text.format(needed=size(self._needed)))
        else:
            icon, role = _LOOKS[verdict] if self._exact or verdict != "fits" else _UNSURE
            self._verdict.set_state(icon, role, verdicts[verdict])
            text = self.tr("About {needed} needed · {free} of {total} free")
            if not self._exact:
                text = self.tr("More than {needed} needed · {free} of {total} free")
            sizes = {"needed": self._needed, "free": machine.memory_free, "total": machine.memory_total}
            self._detail.setText(text.format(**{name: size(value) for name, value in sizes.items()}))
            taken = machine.memory_total - machine.memory_free
            self.bar.set_shares(taken, self._needed, machine.memory_total, verdict, role)
        text = self.tr("An estimate, for a chat of usual length.")
        if not self._exact:
            text = self.tr("An estimate, without the memory of the chat itself.")
        for part in (self._detail, self.bar):
            part.setToolTip(text)
            part.setAccessibleDescription(text)
        self.bar.setAccessibleName(self.text)


class MemoryBar(QWidget):
    """All of the memory as a bar: what others take, then what is needed, then what stays free."""

    def __init__(self, manager: ThemeManager, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._manager = manager
        self._taken, self._needed, self._total = 0, 0, 0
        self._verdict: Fit = "fits"
        self._role: TextRole = "good"
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        manager.changed.connect(self.updateGeometry)

    def set_shares(self, taken: int, needed: int, total: int, verdict: Fit, role: TextRole) -> None:
        """Bytes taken by others, needed and in all, what that means, and its colour."""
        self._taken, self._needed, self._total, self._verdict = taken, needed, total, verdict
        self._role = role
        self.update()

    def sizeHint(self) -> QSize:  # noqa: N802 - Qt's name
        """In logical pixels."""
        return QSize(self._manager.px(160), self._manager.px(8))

    def minimumSizeHint(self) -> QSize:  # noqa: N802 - Qt's name
        """Short, but readable."""
        return QSize(self._manager.px(48), self._manager.px(8))

    def paintEvent(self, event: QPaintEvent) -> None:  # noqa: N802, ARG002 - Qt's name and signature
        """Draws the three parts; what is needed shows at least a little, and ends with the bar."""
        theme = self._manager.theme
        with QPainter(self) as painter:
            painter.setRenderHint(QPainter.RenderHint.Antialiasing)
            painter.setPen(Qt.PenStyle.NoPen)
            rect = QRectF(self.rect())
            shape = QPainterPath()
            shape.addRoundedRect(rect, rect.height() / 2, rect.height() / 2)
            painter.setClipPath(shape)
            painter.fillRect(rect, theme.colour("pressed"))
            if self._total > 0:
                taken = rect.width() * min(1.0, self._taken / self._total)
                needed = min(max(rect.width() * self._needed / self._total, 3.0), rect.width())
                start = min(taken, rect.width() - 3.0) if self._verdict == "fits" else min(taken, rect.width() - needed)
                painter.fillRect(QRectF(0, 0, taken, rect.height()), theme.colour("edge"))
                painter.fillRect(QRectF(start, 0, needed, rect.height()), theme.colour(self._role))
