"""Lists of single files: those that were imported, and those that were set aside."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import PurePath
from typing import TYPE_CHECKING, TypeVar

from PySide6.QtCore import QPoint, Qt, Signal
from PySide6.QtWidgets import QHBoxLayout, QMessageBox, QVBoxLayout, QWidget

from tandem.models.state import FileState
from tandem.ui import models_state_text as texts
from tandem.ui.errors_text import localised
from tandem.ui.i18n import size as in_bytes
from tandem.ui.kit import (
    Card,
    IconButton,
    Menu,
    QuietButton,
    SectionTitle,
    divider,
    label,
    message_box,
    set_label,
    spaced,
)
from tandem.ui.kit_menu import PARTS
from tandem.ui.models_card_menu import show_folder
from tandem.ui.models_card_parts import Elided
from tandem.ui.page import Mark, Speaking

if TYPE_CHECKING:
    from PySide6.QtWidgets import QAbstractButton

    from tandem.models.overview import FileView
    from tandem.models.records import Quarantined
    from tandem.ui.theme import ThemeManager


_File = TypeVar("_File")


class FileRow(Speaking):
    """One file: its name, what it is, what is wrong, and what can be done.

    Attributes:
        use_requested: Its path: it is wanted for a pair.
        verify_requested: Installed files are to be hashed again.
        remove_requested: Its path.
    """

    use_requested = Signal(str)
    verify_requested = Signal()
    remove_requested = Signal(str)

    def __init__(self, manager: ThemeManager, parent: QWidget | None = None) -> None:
        super().__init__(manager, parent)
        self.path = ""
        self.name = Elided(manager, "body", "text")
        self.state = Mark(manager)
        self.detail = label(size="small", role="muted", wrap=True)
        self.problem = label(size="small", role="warn", wrap=True)
        self.use = QuietButton(manager, "")
        self.use.clicked.connect(lambda: self.use_requested.emit(self.path))
        self.more = IconButton(manager, "more", "")
        self.more.clicked.connect(self.open_menu)
        self.menu: Menu | None = None
        self.box: QMessageBox | None = None
        words = QVBoxLayout()
        spaced(words, manager, "xs")
        for part in (self.name, self.detail, self.state, self.problem):
            words.addWidget(part)
        row = QHBoxLayout(self)
        spaced(row, manager, "s", ("", "xs"))
        row.addLayout(words, 1)
        row.addWidget(self.use, 0, Qt.AlignmentFlag.AlignTop)
        row.addWidget(self.more, 0, Qt.AlignmentFlag.AlignTop)

    def open_menu(self) -> Menu:
        """Opens what can be done with the file."""
        if self.menu is not None:
            self.menu.deleteLater()
        menu = self.menu = Menu(self._manager, self)
        self.fill(menu)
        menu.popup(self.more.mapToGlobal(QPoint(0, self.more.height() + 2)))
        return menu

    def fill(self, menu: Menu) -> None:
        """Puts what can be done into the menu."""
        menu.add("folder", self.tr("Show in folder"), lambda: show_folder(str(PurePath(self.path).parent)))
        menu.addSeparator()
        menu.add("trash", self.tr("Remove…"), self.ask_remove, danger=True)

    def ask_remove(self) -> None:
        """Asks before the file is removed."""
        text = self.tr("Remove {name}?").format(name=self.name.whole)
        box = message_box(
            self._manager,
            self.window(),
            "question",
            text,
            self.removal(),
            [(self.tr("Remove"), "destroy"), (self.tr("Keep"), "reject")],
        )

        def answered(button: QAbstractButton) -> None:
            if box.buttonRole(button) == PARTS["destroy"]:
                self.remove_requested.emit(self.path)

        box.buttonClicked.connect(answered)
        box.finished.connect(self._forget)
        self.box = box
        box.open()

    def leave(self) -> None:
        """The file is not in the list any more, or is another one now: a question about it is taken back."""
        if self.box is not None:
            self.box.reject()

    def _forget(self, _result: int) -> None:
        self.box = None

    def removal(self) -> str:
        """What removing it does."""
        return ""

    def named(self) -> None:
        """Gives the buttons names with the file's."""
        self.use.setText(self.tr("Use…"))
        self.use.setAccessibleName(self.tr("Use {name}").format(name=self.name.whole))
        self.more.set_name(self.tr("More for {name}").format(name=self.name.whole))


class ImportedRow(FileRow):
    """A file that is of no pair of the catalog."""

    def __init__(self, manager: ThemeManager, view: FileView, parent: QWidget | None = None) -> None:
        super().__init__(manager, parent)
        self._view = view
        self.path = view.path or ""
        self.retranslate()

    def retranslate(self) -> None:
        """All of it, from the view."""
        view = self._view
        roles = {
            "target": self.tr("Target"),
            "drafter": self.tr("Drafter"),
            "model": self.tr("Model without a drafter"),
        }
        where = self.tr("used where it is") if view.in_place else ""
        licence = self.tr("licence unknown") if view.licence is None else view.licence
        size = in_bytes(view.total)
        parts = (roles[view.role], view.architecture, view.quantisation, size, licence, where)
        self.name.set_whole(view.name)
        self.detail.setText(" · ".join(part for part in parts if part))
        self.state.set_state(*texts.words(view.state))
        self.state.setVisible(view.state is not FileState.INSTALLED)
        sentence = " ".join(part for part in localised(view.sentence, view.remedy) if part)
        set_label(self.problem, texts.fitted(sentence), "warn")
        self.problem.setVisible(bool(sentence))
        self.use.setEnabled(view.state is FileState.INSTALLED)
        self.named()

    def fill(self, menu: Menu) -> None:
        """Installed files can be hashed again too."""
        menu.add("check", self.tr("Verify files"), self.verify_requested.emit)
        super().fill(menu)

    def removal(self) -> str:
        """A file of somebody else's is only forgotten."""
        if self._view.in_place:
            return self.tr("Tandem forgets it. The file stays where it is.")
        return self.tr("This frees {size}.").format(size=in_bytes(self._view.total))


class QuarantinedRow(FileRow):
    """A file that is not what it should be."""

    def __init__(self, manager: ThemeManager, record: Quarantined, parent: QWidget | None = None) -> None:
        super().__init__(manager, parent)
        self._record = record
        self.path = record.path
        self.state.hide()
        self.use.hide()
        self.retranslate()

    def retranslate(self) -> None:
        """All of it, from the record."""
        record = self._record
        self.name.set_whole(record.name)
        when = texts.day(record.at.isoformat()) if record.at is not None else ""
        aside = self.tr("set aside on {day}").format(day=when) if when else ""
        self.detail.setText(" · ".join(part for part in (in_bytes(record.bytes), aside) if part))
        sentence = " ".join(part for part in localised(record.sentence, record.remedy) if part)
        set_label(self.problem, texts.fitted(sentence), "bad")
        self.problem.setVisible(bool(sentence))
        self.named()

    def removal(self) -> str:
        """It is deleted."""
        return self.tr("This frees {size}. The file cannot be brought back.").format(size=in_bytes(self._record.bytes))


class _Rows(Speaking):
    """A card with a title, a sentence, and a row for each file; not there while there is none."""

    use_requested = Signal(str)
    verify_requested = Signal()
    remove_requested = Signal(str)

    def __init__(self, manager: ThemeManager, parent: QWidget | None = None) -> None:
        super().__init__(manager, parent)
        self.rows: tuple[FileRow, ...] = ()
        self._shown: Sequence[object] = ()
        self.card = Card(manager)
        self.title = SectionTitle(manager)
        self.text = label(size="small", role="muted", wrap=True)
        self.card.body.addWidget(self.title)
        self.card.body.addWidget(self.text)
        self._column = QVBoxLayout()
        spaced(self._column, manager, "xs")
        self.card.body.addLayout(self._column)
        column = QVBoxLayout(self)
        spaced(column, manager, "")
        column.addWidget(self.card)
        self.hide()

    def show_rows(self, files: Sequence[_File], make: Callable[[_File], FileRow]) -> None:
        """Shows a row for each; that of a file which is as it was stays, and who has the keyboard in it keeps it."""
        if tuple(files) == tuple(self._shown):
            return
        before = list(zip(self._shown, self.rows, strict=True))
        rows = []
        for file in files:
            known = next((pair for pair in before if pair[0] == file), None)
            if known is not None:
                before.remove(known)
            rows.append(known[1] if known is not None else self._made(make(file)))
        self._shown, self.rows = tuple(files), tuple(rows)
        while (item := self._column.takeAt(0)) is not None:
            old = item.widget()
            if old is not None and old not in self.rows:
                old.hide()
                old.deleteLater()
        for _, row in before:
            row.leave()
        for place, row in enumerate(self.rows):
            if place:
                self._column.addWidget(divider())
            self._column.addWidget(row)
        self.setVisible(bool(self.rows))

    def _made(self, row: FileRow) -> FileRow:
        row.use_requested.connect(self.use_requested)
        row.verify_requested.connect(self.verify_requested)
        row.remove_requested.connect(self.remove_requested)
        return row


class ImportedCard(_Rows):
    """The files of one's own that Tandem keeps or knows."""

    def __init__(self, manager: ThemeManager, parent: QWidget | None = None) -> None:
        super().__init__(manager, parent)
        self.say(self.title.setText, lambda: self.tr("Your own files"))
        self.say(
            self.text.setText,
            lambda: self.tr("Imported files that Tandem does not know. Use one to make a pair."),
        )

    def set_files(self, files: Sequence[FileView]) -> None:
        """Shows these files."""
        self.show_rows(files, lambda file: ImportedRow(self._manager, file))


class QuarantineCard(_Rows):
    """The files that were set aside, each with the reason."""

    def __init__(self, manager: ThemeManager, parent: QWidget | None = None) -> None:
        super().__init__(manager, parent)
        self.say(self.title.setText, lambda: self.tr("Set aside"))
        self.say(
            self.text.setText,
            lambda: self.tr("These files are not what they should be. Tandem does not use them, and deletes none."),
        )

    def set_files(self, files: Sequence[Quarantined]) -> None:
        """Shows these files."""
        self.show_rows(files, lambda file: QuarantinedRow(self._manager, file))
