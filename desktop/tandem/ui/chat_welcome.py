"""What an empty chat shows: what one could ask, and why these."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from PySide6.QtCore import QT_TRANSLATE_NOOP, QCoreApplication, QEvent, QSize, Qt, Signal
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QLabel, QVBoxLayout, QWidget

from tandem.hardware.machine import Machine, Need, best
from tandem.models.state import FileState
from tandem.ui import icons
from tandem.ui.i18n import size
from tandem.ui.kit import QuietButton, label
from tandem.ui.page import Column
from tandem.ui.theme import ThemeManager

if TYPE_CHECKING:
    from tandem.models.overview import Overview
    from tandem.ui.session_state import NetworkView

IDEAS: Final = (
    str(QT_TRANSLATE_NOOP("Suggestions", "Write a Python function that checks if a number is prime.")),
    str(QT_TRANSLATE_NOOP("Suggestions", "List some animals.")),
    str(QT_TRANSLATE_NOOP("Suggestions", "Tell me a short story about an animal.")),
    str(QT_TRANSLATE_NOOP("Suggestions", "Hello! Who are you?")),
)
"""Code, a list, a story, small talk: kinds of text that differ in how well they can be guessed."""

_WIDTH: Final = 620
_LEAST: Final = 120
_GAP: Final = 8
"""Widest column, and narrowest idea, in pixels at 100 %."""


class Idea(QuietButton):
    """A text that could be asked; where there is no room for all of it, its tooltip has it."""

    def __init__(self, manager: ThemeManager) -> None:
        self.whole = ""
        super().__init__(manager, "")
        self.setProperty("mayElide", True)

    def set_whole(self, text: str) -> None:
        """Sets the text."""
        self.whole = text
        self.setToolTip(text)
        self.setAccessibleName(text)
        self.updateGeometry()
        self._elide()

    def sizeHint(self) -> QSize:  # noqa: N802 - Qt's name
        """Room for all of the text."""
        metrics, hint = self.fontMetrics(), super().sizeHint()
        more = metrics.horizontalAdvance(self.whole) - metrics.horizontalAdvance(self.text())
        return QSize(hint.width() + more + 2, hint.height())

    def minimumSizeHint(self) -> QSize:  # noqa: N802 - Qt's name
        """Room for some of it."""
        hint = self.sizeHint()
        return QSize(min(hint.width(), self._manager.px(_LEAST)), hint.height())

    def resizeEvent(self, event: QResizeEvent) -> None:  # noqa: N802 - Qt's name
        """Shows as much as fits."""
        super().resizeEvent(event)
        self._elide()

    def _elide(self) -> None:
        metrics = self.fontMetrics()
        frame = self.sizeHint().width() - metrics.horizontalAdvance(self.whole)
        text = metrics.elidedText(self.whole, Qt.TextElideMode.ElideRight, self.width() - frame + 2)
        if text != self.text():
            self.setText(text)


class Suggestions(QWidget):
    """An empty chat.

    Args:
        manager: The theme.

    Attributes:
        chosen: A text for the composer.
        download_requested: The key of a pair in the catalog.
        models_requested: The page with the models is to be shown.
    """

    chosen = Signal(str)
    download_requested = Signal(str)
    models_requested = Signal()

    def __init__(self, manager: ThemeManager, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._manager = manager
        self._demo = False
        self._here = False  # a model of the catalog is, or it is on its way
        self._machine: Machine | None = None
        self._offline = False
        self._picture = QLabel()
        self._title = label(size="title", bold=True, wrap=True)
        self._text = label(role="muted", wrap=True)
        self.ideas: Final = [Idea(manager) for _ in IDEAS]
        column = Column(manager, _WIDTH, "s")  # a low window scrolls it
        column.body.addStretch(2)
        for part in (self._picture, self._title, self._text):
            part.setAlignment(Qt.AlignmentFlag.AlignCenter)
            column.body.addWidget(part)
        column.body.addSpacing(_GAP)
        for idea in self.ideas:
            column.body.addWidget(idea, 0, Qt.AlignmentFlag.AlignHCenter)
            idea.clicked.connect(lambda _=False, idea=idea: self.chosen.emit(idea.whole))
        self.download = QuietButton(manager, "", "download")
        self.download.clicked.connect(self._ask)
        column.body.addWidget(self.download, 0, Qt.AlignmentFlag.AlignHCenter)
        column.body.addStretch(3)
        outer = QVBoxLayout(self)
        outer.setContentsMargins(0, 0, 0, 0)
        outer.addWidget(column)
        manager.changed.connect(self._retheme)
        self._retheme()
        self.retranslate()

    def retranslate(self) -> None:
        """Sets every text anew."""
        self._title.setText(self.tr("What shall we talk about?"))
        text = self.tr(
            "Everything stays on this machine. The drafter guesses ahead; under each answer you see what it saved."
        )
        if self._demo:
            text = self.tr("The demo pair shows how drafting works. What it says is not clever.")
        self._text.setText(text)
        offer = self._offer
        offered = self._demo and (offer is not None or self._machine is None) and not self._here and not self._offline
        self.download.setVisible(offered)
        self.ideas[-1].setVisible(not offered)  # it takes that one's place: a low window has room for no more
        text = self.tr("Download Gemma 4")
        if offer is not None:
            text = self.tr("Download {name} ({size})").format(name=offer.name, size=size(offer.weights))
        self.download.setText(text)
        for place, idea in enumerate(self.ideas):
            idea.set_whole(QCoreApplication.translate("Suggestions", IDEAS[place]))

    def set_demo(self, demo: bool) -> None:
        """Whether the built-in pair answers: of that nobody should expect much."""
        if demo != self._demo:
            self._demo = demo
            self.retranslate()

    def set_machine(self, machine: Machine) -> None:
        """This machine: the model that fits it best is offered; before it is known, none is named."""
        self._machine = machine
        self.retranslate()

    def set_network(self, network: NetworkView) -> None:
        """How the Hub is reached: where it may not be asked, nothing is offered."""
        self._offline = network.offline
        self.retranslate()

    def set_overview(self, overview: Overview) -> None:
        """What is here: once a model is, or is on its way, none is offered."""
        self._here = any(pair.state is not FileState.ABSENT for pair in overview.pairs)
        self.retranslate()

    @property
    def _offer(self) -> Need | None:
        return None if self._machine is None else best(self._machine)

    def _ask(self) -> None:
        offer = self._offer
        if offer is not None:
            self.download_requested.emit(offer.key)
        else:
            self.models_requested.emit()

    def changeEvent(self, event: QEvent) -> None:  # noqa: N802 - Qt's name
        """Follows the language."""
        if event.type() == QEvent.Type.LanguageChange:
            self.retranslate()
        super().changeEvent(event)

    def _retheme(self) -> None:
        theme = self._manager.theme
        self._picture.setPixmap(icons.pixmap("tandem", "accent", theme.px(40), self.devicePixelRatioF(), theme))
