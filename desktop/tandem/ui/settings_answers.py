"""Settings of the answers: drafting, thinking, sampling, the system prompt."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec
from PySide6.QtCore import QSignalBlocker, QTimer
from PySide6.QtWidgets import QHBoxLayout, QPlainTextEdit, QVBoxLayout, QWidget

from tandem.engine.draft_length import MAX_DRAFT_LENGTH
from tandem.settings import Sampling, Settings
from tandem.ui.i18n import number
from tandem.ui.kit import QuietButton, Switch, label, spaced
from tandem.ui.settings_section import Decimal, Section, Whole

if TYPE_CHECKING:
    from PySide6.QtGui import QHideEvent

    from tandem.ui.theme import ThemeManager

USUAL_LENGTH: Final = 3
HOT: Final = 2.0
"""A temperature above which hardly any model writes sense."""

LONGEST_PROMPT: Final = 200_000
"""Characters of a system prompt that the settings can hold."""

_SAVE_AFTER_MS: Final = 800


class DraftingSection(Section):
    """The drafter, thinking, the view of drafted tokens: what new chats start with."""

    def __init__(self, manager: ThemeManager, parent: QWidget | None = None) -> None:
        super().__init__(manager, parent)
        self.entitle(lambda: self.tr("Drafting and thinking"))
        self.on = Switch(manager)
        self.on.toggled.connect(self._switched)
        self.field(
            self.on,
            lambda: self.tr("Use the drafter"),
            lambda: self.tr("A small model guesses ahead; the large one keeps only what it would have said itself."),
        )
        self.length = Whole(manager, 1, MAX_DRAFT_LENGTH)
        self.length.valueChanged.connect(lambda value: self.change(draft=str(value)))
        self.length_field = self.field(
            self.length,
            lambda: self.tr("Draft length"),
            lambda: self.tr("Guesses a pass. More is not always faster: later ones fit less often."),
        )
        self.thinking = Switch(manager)
        self.thinking.toggled.connect(lambda on: self.change(thinking=on))
        self.field(
            self.thinking,
            lambda: self.tr("Think first"),
            lambda: self.tr("Asks the model for a thought before its answer, where it can."),
        )
        self.drafted = Switch(manager)
        self.drafted.toggled.connect(lambda on: self.change(show_drafted=on))
        self.field(
            self.drafted,
            lambda: self.tr("Show drafted tokens"),
            lambda: self.tr("Marks in each answer what the drafter had guessed, and where it guessed wrong."),
        )

    def show_settings(self, settings: Settings) -> None:
        """Puts the values into the controls."""
        self.length.show_value(USUAL_LENGTH if settings.draft == "off" else int(settings.draft))
        self.length_field.setEnabled(settings.draft_on and settings.draft != "off")
        switches = (
            (self.on, settings.draft_on and settings.draft != "off"),
            (self.thinking, settings.thinking),
            (self.drafted, settings.show_drafted),
        )
        for switch, value in switches:
            with QSignalBlocker(switch):
                switch.setChecked(value)

    def _switched(self, on: bool) -> None:
        length = {"draft": str(self.length.value())} if on and self.settings.draft == "off" else {}
        self.change(draft_on=on, **length)


class SamplingSection(Section):
    """How the next token is chosen, with Gemma's own values one click away."""

    def __init__(self, manager: ThemeManager, parent: QWidget | None = None) -> None:
        super().__init__(manager, parent)
        self.entitle(lambda: self.tr("How words are chosen"))
        self.temperature = Decimal(manager, 0.0, 100.0, 0.1)
        self.temperature.valueChanged.connect(lambda value: self._change(temperature=value))
        self.temperature_field = self.field(
            self.temperature,
            lambda: self.tr("Temperature"),
            lambda: self.tr("Higher is more surprising. At 0 the likeliest token is taken each time."),
        )
        self.top_k = Whole(manager, 0, 1 << 20)
        self.top_k.valueChanged.connect(lambda value: self._change(top_k=value))
        self.field(self.top_k, lambda: self.tr("Top-k"), lambda: self.tr("Only the k likeliest tokens. 0 is no limit."))
        self.top_p = Decimal(manager, 0.01, 1.0, 0.05)
        self.top_p.valueChanged.connect(lambda value: self._change(top_p=value))
        self.field(
            self.top_p,
            lambda: self.tr("Top-p"),
            lambda: self.tr("Only the likeliest tokens that together reach this share. 1 is no limit."),
        )
        self.min_p = Decimal(manager, 0.0, 1.0, 0.01)
        self.min_p.valueChanged.connect(lambda value: self._change(min_p=value))
        self.field(
            self.min_p,
            lambda: self.tr("Min-p"),
            lambda: self.tr("Nothing less likely than this share of the likeliest token. 0 is no limit."),
        )
        self.penalty = Decimal(manager, 0.01, 100.0, 0.05)
        self.penalty.valueChanged.connect(lambda value: self._change(repeat_penalty=value))
        self.field(
            self.penalty,
            lambda: self.tr("Repeat penalty"),
            lambda: self.tr("Above 1 makes recent tokens less likely. 1 does nothing."),
        )
        self.most = Whole(manager, 0, 1 << 20, 256)
        self.most.valueChanged.connect(lambda value: self._change(max_tokens=value or None))
        self.field(
            self.most,
            lambda: self.tr("Longest answer"),
            lambda: self.tr("In tokens. Without a limit an answer may fill the context."),
        )
        self.say(self.most.setSpecialValueText, lambda: self.tr("No limit"))
        self.reset = QuietButton(manager, "", "undo")
        self.say(self.reset.setText, lambda: self.tr("Reset sampling to Gemma's defaults"))
        self.reset.clicked.connect(lambda: self.change(sampling=Sampling()))
        foot = QWidget()
        row = QHBoxLayout(foot)
        spaced(row, manager, "", ("", "s"))
        row.addStretch(1)
        row.addWidget(self.reset)
        self.add(foot)

    def show_settings(self, settings: Settings) -> None:
        """Puts the values into the controls."""
        sampling = settings.sampling
        self.temperature.show_value(sampling.temperature)
        self.top_k.show_value(sampling.top_k)
        self.top_p.show_value(sampling.top_p)
        self.min_p.show_value(sampling.min_p)
        self.penalty.show_value(sampling.repeat_penalty)
        self.most.show_value(sampling.max_tokens or 0)
        self.reset.setEnabled(sampling != Sampling())
        self.retranslate()

    def retranslate(self) -> None:
        """The warning about high temperatures."""
        hot = self.settings.sampling.temperature > HOT
        warning = self.tr("Above 2 an answer hardly makes sense any more.")
        self.temperature_field.set_problem(warning if hot else "", "warn")

    def _change(self, **fields: float | None) -> None:
        self.change(sampling=msgspec.structs.replace(self.settings.sampling, **fields))


class PromptSection(Section):
    """The system prompt that chats without one of their own begin with."""

    def __init__(self, manager: ThemeManager, parent: QWidget | None = None) -> None:
        super().__init__(manager, parent)
        self.entitle(lambda: self.tr("System prompt"))
        self.edit = QPlainTextEdit()
        self.edit.setTabChangesFocus(True)
        self.say(self.edit.setAccessibleName, lambda: self.tr("System prompt"))
        self.say(self.edit.setPlaceholderText, lambda: self.tr("For example: Answer briefly and in plain words."))
        self._problem = label(size="small", role="bad", wrap=True)
        self._problem.hide()
        sentence = label(size="small", role="muted", wrap=True)
        self.say(sentence.setText, lambda: self.tr("Stands before every chat: who the model is, how it should answer."))
        self.say(self.edit.setAccessibleDescription, sentence.text)
        block = QWidget()
        column = QVBoxLayout(block)
        spaced(column, manager, "s", ("", "s"))
        for part in (sentence, self.edit, self._problem):
            column.addWidget(part)
        self.add(block)
        self._timer = QTimer(self)
        self._timer.setSingleShot(True)
        self._timer.setInterval(_SAVE_AFTER_MS)
        self._timer.timeout.connect(self.save)
        self.edit.textChanged.connect(self._timer.start)
        manager.changed.connect(self._retheme)
        self._retheme()

    @property
    def problem(self) -> str:
        """What is wrong with the text, "" when nothing is."""
        return self._problem.text()

    def show_settings(self, settings: Settings) -> None:
        """Puts the text into the field, unless the user is writing there."""
        if not self._timer.isActive() and self.edit.toPlainText() != settings.system_prompt:
            with QSignalBlocker(self.edit):
                self.edit.setPlainText(settings.system_prompt)

    def retranslate(self) -> None:
        """What is said of a text that is too long."""
        too_long = len(self.edit.toPlainText()) > LONGEST_PROMPT
        text = self.tr("Longer than {limit} characters. It is not kept.").format(limit=number(LONGEST_PROMPT))
        self._problem.setText(text if too_long else "")
        self._problem.setVisible(too_long)

    def hideEvent(self, event: QHideEvent) -> None:  # noqa: N802 - Qt's name
        """Keeps what was written before the page goes away."""
        if self._timer.isActive():
            self.save()
        super().hideEvent(event)

    def save(self) -> None:
        """Says that the text was changed, unless it is too long."""
        self._timer.stop()
        self.retranslate()
        text = self.edit.toPlainText()
        if len(text) <= LONGEST_PROMPT:
            self.change(system_prompt=text)

    def _retheme(self) -> None:
        self.edit.setFixedHeight(self._manager.px(104))
