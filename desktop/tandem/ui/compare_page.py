"""Compare, until it measures by itself: what can be compared today, and buttons that do it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QGridLayout, QLabel, QVBoxLayout, QWidget

from tandem.ui import icons
from tandem.ui.kit import Card, PrimaryButton, QuietButton, label, spaced
from tandem.ui.page import Column, Speaking

if TYPE_CHECKING:
    from tandem.ui.theme import ThemeManager


class ComparePage(Speaking):
    """Says how to compare by hand, and answers the last question again.

    Attributes:
        again_requested: The last question is to be answered again, with (True) or without (False) the drafter.
    """

    again_requested = Signal(bool)

    def __init__(self, manager: ThemeManager, parent: QWidget | None = None) -> None:
        super().__init__(manager, parent)
        self._question = self._drafter = self._running = False
        self._picture = QLabel()
        title = label(size="title", bold=True, wrap=True)
        self.say(title.setText, lambda: self.tr("With and without the drafter"))
        text = label(role="muted", wrap=True)
        self.say(
            text.setText,
            lambda: self.tr(
                "Measuring both ways with one click, with repeats and their spread, comes with a later version. "
                "Nothing is drawn here until it was measured."
            ),
        )
        for part in (self._picture, title, text):
            part.setAlignment(Qt.AlignmentFlag.AlignCenter)
        card = Card(manager)
        heading = label(bold=True, wrap=True)
        self.say(heading.setText, lambda: self.tr("What you can do today"))
        card.body.addWidget(heading)
        steps = QGridLayout()
        spaced(steps, manager, "s")
        steps.setColumnStretch(1, 1)
        texts: tuple[Callable[[], str], ...] = (
            lambda: self.tr("Ask something in the chat. Under the answer stand its figures."),
            lambda: self.tr("Have the same question answered without the drafter. Both answers are kept."),
            lambda: self.tr("Switch between them with ‹ and › under the answer and compare the tok/s."),
        )
        for index, step in enumerate(texts):
            words = label(wrap=True)
            self.say(words.setText, step)
            steps.addWidget(label(str(index + 1), role="accent", bold=True), index, 0, Qt.AlignmentFlag.AlignTop)
            steps.addWidget(words, index, 1)
        card.body.addLayout(steps)
        self.without = PrimaryButton(manager, "", "refresh")
        self.say(self.without.setText, lambda: self.tr("Answer again without the drafter"))
        self.without.clicked.connect(lambda: self.again_requested.emit(False))
        self.with_drafter = QuietButton(manager, "", "bolt")
        self.say(self.with_drafter.setText, lambda: self.tr("Answer again with the drafter"))
        self.with_drafter.clicked.connect(lambda: self.again_requested.emit(True))
        for button in (self.without, self.with_drafter):
            card.body.addWidget(button)
        self._reason = label(size="small", role="muted", wrap=True)
        card.body.addWidget(self._reason)
        note = label(size="small", role="muted", wrap=True)
        self.say(
            note.setText,
            lambda: self.tr(
                "One pair of runs proves little: other programs, the text and its length change the speed. At a "
                "temperature above 0 the two texts differ as well."
            ),
        )
        card.body.addWidget(note)
        column = Column(manager, 520)
        column.body.addStretch(1)
        for part in (self._picture, title, text):
            column.body.addWidget(part)
        column.body.addWidget(card)
        column.body.addStretch(2)
        outer = QVBoxLayout(self)
        outer.setContentsMargins(0, 0, 0, 0)
        outer.addWidget(column)
        self.column = column
        manager.changed.connect(self._retheme)
        self._retheme()
        self.retranslate()

    def set_state(self, question: bool, drafter: bool, running: bool) -> None:
        """What can be done now.

        Args:
            question: Whether the open chat has a question to answer again.
            drafter: Whether a drafter is loaded and works.
            running: Whether an answer runs.
        """
        self._question, self._drafter, self._running = question, drafter, running
        self.retranslate()

    @property
    def reason(self) -> str:
        """Why a button cannot be used, "" when both can."""
        return self._reason.text()

    def retranslate(self) -> None:
        """Which buttons can be used, and why not."""
        reason = ""
        if self._running:
            reason = self.tr("An answer is running.")
        elif not self._question:
            reason = self.tr("The open chat has no question yet.")
        elif not self._drafter:
            reason = self.tr("There is no working drafter in use, so every answer is one without it.")
        self.without.setEnabled(self._question and not self._running)
        self.with_drafter.setEnabled(self._question and self._drafter and not self._running)
        self._reason.setText(reason)
        self._reason.setVisible(bool(reason))

    def _retheme(self) -> None:
        theme = self._manager.theme
        self._picture.setPixmap(icons.pixmap("compare", "accent", theme.px(40), self.devicePixelRatioF(), theme))
