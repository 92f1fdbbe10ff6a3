"""The card that loads a pair from the user's own files: two fields, what is found in the files, and a button."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from PySide6.QtCore import QMimeData, Qt, QTimer, QUrl, Signal
from PySide6.QtGui import QDragEnterEvent, QDropEvent
from PySide6.QtWidgets import QFileDialog, QHBoxLayout, QLineEdit, QVBoxLayout, QWidget

from tandem.settings import PairChoice
from tandem.ui.errors_text import localised
from tandem.ui.fit_view import FitView
from tandem.ui.i18n import number, size
from tandem.ui.kit import Card, PrimaryButton, QuietButton, SectionTitle, label, set_label, spaced
from tandem.ui.page import Speaking
from tandem.ui.pair_check import FileFacts, PairCheck, name_of

if TYPE_CHECKING:
    from tandem.hardware.machine import Machine
    from tandem.ui.theme import ThemeManager

SUFFIX: Final = ".gguf"
_CHECK_AFTER_MS: Final = 300


def dropped_files(data: QMimeData) -> list[str]:
    """Paths of the files in a drag, in their order; empty where it holds anything else."""
    urls: list[QUrl] = data.urls()
    return [url.toLocalFile() for url in urls] if urls and all(url.isLocalFile() for url in urls) else []


class FileField(Speaking):
    """One file: a name, a line for its path, a button to look for it, and what was found in it.

    Attributes:
        edited: The path was changed by the user.
    """

    edited = Signal()

    def __init__(self, manager: ThemeManager, parent: QWidget | None = None) -> None:
        super().__init__(manager, parent)
        self._setting = False
        self.name = label(bold=True)
        self.hint = label(size="small", role="muted", wrap=True)
        self.path = QLineEdit()
        self.path.setClearButtonEnabled(True)
        self.path.setAcceptDrops(False)  # it would take a file's address as text; the field takes the file
        self.path.textEdited.connect(lambda _text: self.edited.emit())
        self.path.textChanged.connect(self._cleared)
        self.name.setBuddy(self.path)
        self.browse = QuietButton(manager, "", "folder")
        self.say(self.browse.setText, lambda: self.tr("Browse…"))
        self.browse.clicked.connect(self.open_dialog)
        self._found = label(size="small", role="muted", wrap=True)
        self._found.hide()
        row = QHBoxLayout()
        spaced(row, manager, "s")
        row.addWidget(self.path, 1)
        row.addWidget(self.browse)
        column = QVBoxLayout(self)
        spaced(column, manager, "xs")
        column.addWidget(self.name)
        column.addWidget(self.hint)
        column.addLayout(row)
        column.addWidget(self._found)
        self.setAcceptDrops(True)

    @property
    def text(self) -> str:
        """The path, "" for none."""
        return self.path.text().strip()

    @property
    def found(self) -> str:
        """What is said about the file."""
        return self._found.text()

    def set_text(self, path: str) -> None:
        """Shows a path without saying that it was changed."""
        # Its signals are not blocked: the line's own cross comes and goes by them.
        self._setting = True
        self.path.setText(path)
        self._setting = False
        self.path.setCursorPosition(len(path))

    def set_name(self, name: str) -> None:
        """Which file this is."""
        self.name.setText(name)
        self.path.setAccessibleName(name)
        self.retranslate()

    def retranslate(self) -> None:
        """The button's name, of two texts that change one after the other."""
        self.browse.setAccessibleName(f"{self.browse.text()} {self.name.text()}")

    def set_found(self, text: str, bad: bool = False) -> None:
        """Says something about the file; "" says nothing."""
        set_label(self._found, text, "bad" if bad else "muted")
        self._found.setVisible(bool(text))
        self.path.setAccessibleDescription(text)

    def open_dialog(self) -> QFileDialog:
        """Lets the user look for the file; the dialog does not block."""
        dialog = QFileDialog(self.window(), self.name.text())
        dialog.setFileMode(QFileDialog.FileMode.ExistingFile)
        dialog.setNameFilters([self.tr("Model files (*.gguf)"), self.tr("All files (*)")])
        if self.text:
            dialog.selectFile(self.text)
        dialog.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        dialog.fileSelected.connect(self.choose)
        dialog.open()
        return dialog

    def choose(self, path: str) -> None:
        """Takes a path as if the user had typed it."""
        self.set_text(path)
        self.edited.emit()

    def dragEnterEvent(self, event: QDragEnterEvent) -> None:  # noqa: N802 - Qt's name
        """Takes one file."""
        if len(dropped_files(event.mimeData())) == 1:
            event.acceptProposedAction()

    def dropEvent(self, event: QDropEvent) -> None:  # noqa: N802 - Qt's name
        """The file goes into this field; whether it is a model is seen by its header."""
        files = dropped_files(event.mimeData())
        if len(files) == 1:
            event.acceptProposedAction()
            self.choose(files[0])

    def _cleared(self, text: str) -> None:
        if not text and not self._setting:  # by the cross, which edits nothing
            self.edited.emit()


class FilesCard(Speaking):
    """Two files of the user's, looked at before they are loaded.

    Attributes:
        check_requested: The headers of these two files are to be read; the drafter's path is "" for none.
        load_requested: A `PairChoice`.
    """

    check_requested = Signal(str, str)
    load_requested = Signal(object)

    def __init__(self, manager: ThemeManager, parent: QWidget | None = None) -> None:
        super().__init__(manager, parent)
        self._check: PairCheck | None = None
        self._busy = False
        self._remark = ""
        title = SectionTitle(manager)
        self.say(title.setText, lambda: self.tr("Use files I have"))
        text = label(role="muted", wrap=True)
        self.say(
            text.setText,
            lambda: self.tr(
                "Any Gemma 4 as a GGUF file, and the drafter made for it. Drop them here in any order: their contents "
                "tell which is which."
            ),
        )
        self.target = FileField(manager)
        self.say(self.target.set_name, lambda: self.tr("Model (target)"))
        self.say(self.target.hint.setText, lambda: self.tr("The large file: it says every word."))
        self.drafter = FileField(manager)
        self.say(self.drafter.set_name, lambda: self.tr("Drafter (may be left out)"))
        self.say(
            self.drafter.hint.setText,
            lambda: self.tr("The small file: it guesses ahead. Its architecture is gemma4-assistant."),
        )
        self._timer = QTimer(self)
        self._timer.setSingleShot(True)
        self._timer.setInterval(_CHECK_AFTER_MS)
        self._timer.timeout.connect(self._ask)
        self.fit = FitView(manager)
        self.fit.hide()
        self.load = PrimaryButton(manager, "", "check")
        self.say(self.load.setText, lambda: self.tr("Load this pair"))
        self.load.clicked.connect(self._load)
        card = Card(manager)
        for part in (title, text, self.target, self.drafter, self.fit, self.load):
            card.body.addWidget(part)
        for field in (self.target, self.drafter):
            field.edited.connect(self._edited)
        self.setAcceptDrops(True)
        column = QVBoxLayout(self)
        spaced(column, manager, "")
        column.addWidget(card)
        self.retranslate()

    @property
    def asked(self) -> tuple[str, str]:
        """The two paths as they stand."""
        return self.target.text, self.drafter.text

    def set_machine(self, machine: Machine) -> None:
        """The machine to judge by."""
        self.fit.set_machine(machine)

    def set_busy(self, busy: bool) -> None:
        """Whether a load is under way."""
        self._busy = busy
        self.retranslate()

    def set_files(self, target: str, drafter: str = "") -> None:
        """Fills the fields and asks for a check."""
        self.target.set_text(target)
        self.drafter.set_text(drafter)
        self._check, self._remark = None, ""
        self.retranslate()
        self._ask()

    def take(self, files: Sequence[str]) -> None:
        """Takes dropped files: two fill both fields, one the first field that is free, else the target's."""
        models = [path for path in files if path.lower().endswith(SUFFIX)]
        if not models:
            self._remark = name_of(files[0])
            self.retranslate()
        elif len(models) > 1:
            self.set_files(models[0], models[1])
        elif self.target.text and not self.drafter.text:
            self.set_files(self.target.text, models[0])
        else:
            self.set_files(models[0], self.drafter.text)

    def set_check(self, check: PairCheck) -> None:
        """What was found in the files; an answer to an older question is passed over."""
        if check.asked != self.asked:
            return
        self.target.set_text(check.target)
        self.drafter.set_text(check.drafter)
        self._check = check
        self.retranslate()

    def dragEnterEvent(self, event: QDragEnterEvent) -> None:  # noqa: N802 - Qt's name
        """Takes files."""
        if dropped_files(event.mimeData()):
            event.acceptProposedAction()

    def dropEvent(self, event: QDropEvent) -> None:  # noqa: N802 - Qt's name
        """Fills the fields with the files."""
        files = dropped_files(event.mimeData())
        if files:
            event.acceptProposedAction()
            self.take(files)

    def retranslate(self) -> None:
        """What is said about the files."""
        check = self._check
        facts = (check.target_facts, check.drafter_facts) if check is not None else (None, None)
        for key, field, found in (("target", self.target, facts[0]), ("drafter", self.drafter, facts[1])):
            text = self._facts(found) if found is not None else ""
            bad = check is not None and check.field == key
            if check is not None and bad:
                text = " ".join(localised(check.sentence, check.remedy))
            elif check is not None and key == "target" and not check.target and check.drafter:
                text = self.tr("Now choose the model that this drafter was made for.")
            field.set_found(text, bad)
        if self._remark:
            text = self.tr("{name} is not a GGUF file. Only GGUF files can be loaded.").format(name=self._remark)
            self.target.set_found(text, bad=True)
        good = check is not None and check.good
        self.fit.set_needed(check.memory if check is not None and good else 0)
        self.fit.setVisible(good)
        self.load.setEnabled(good and not self._busy)

    def _facts(self, facts: FileFacts) -> str:
        parts = [facts.name or facts.file, facts.architecture, facts.quantisation, size(facts.bytes)]
        if facts.context:
            parts.append(self.tr("context {tokens}").format(tokens=number(facts.context)))
        return " · ".join(part for part in parts if part)

    def _edited(self) -> None:
        self._check, self._remark = None, ""
        self.retranslate()
        self._timer.start()

    def _ask(self) -> None:
        self._timer.stop()
        if any(self.asked):
            self.check_requested.emit(*self.asked)

    def _load(self) -> None:
        check = self._check
        if check is not None and check.good and not self._busy:
            self.load_requested.emit(PairChoice("files", check.target, check.drafter or None))
