"""What else can be done with a pair: a menu, and the questions before anything is taken away."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

from PySide6.QtCore import QObject, QPoint, QUrl, Signal
from PySide6.QtGui import QDesktopServices, QGuiApplication
from PySide6.QtWidgets import QAbstractButton, QMessageBox, QWidget

from tandem.models.state import FileState
from tandem.ui.i18n import size as in_bytes
from tandem.ui.kit import Menu, announce, message_box
from tandem.ui.kit_menu import PARTS, Part

if TYPE_CHECKING:
    from PySide6.QtGui import QAction

    from tandem.ui.theme import ThemeManager

_S = FileState
_RUNNING = frozenset({_S.QUEUED, _S.RESOLVING, _S.TRANSFERRING, _S.CHECKING})
_STANDING = frozenset({_S.PAUSED, _S.FAILED})


class MenuFacts(NamedTuple):
    """What the menu goes by.

    Attributes:
        name: The model's name.
        state: Where the pair stands.
        in_use: Whether it is loaded.
        part: Bytes of a download that was not finished.
        on_disk: Bytes of finished files.
        in_place: Whether none of its files is Tandem's own.
        folder: Where its files are, "" for nowhere.
        address: Where they can be had, a line each.
        key: The pair's key: what is asked stays about it, whatever the card shows when it is answered.
        told: Whether it is told how its last download ended.
    """

    name: str
    state: FileState
    in_use: bool = False
    part: int = 0
    on_disk: int = 0
    in_place: bool = False
    folder: str = ""
    address: str = ""
    key: str = ""
    told: bool = False


class CardMenu(QObject):
    """Makes the menu, asks, and tells what was wanted.

    Attributes:
        cancel_requested: The pair's key: its download is given up; whether what has come in is kept.
        start_again_requested: The pair's key: from the first byte.
        verify_requested: Installed files are to be hashed.
        remove_requested: The pair's key: its files are to be removed.
        menu: The last menu.
        box: The last question.
    """

    cancel_requested = Signal(str, bool)
    start_again_requested = Signal(str)
    verify_requested = Signal()
    remove_requested = Signal(str)

    def __init__(self, manager: ThemeManager, parent: QWidget) -> None:
        super().__init__(parent)
        self._manager, self._owner = manager, parent
        self.menu: Menu | None = None
        self.box: QMessageBox | None = None

    def open(self, anchor: QWidget, facts: MenuFacts) -> Menu:
        """Opens the menu under a button."""
        menu = self.made(anchor, facts)
        menu.popup(anchor.mapToGlobal(QPoint(0, anchor.height() + 2)))
        return menu

    def made(self, anchor: QWidget, facts: MenuFacts) -> Menu:
        """The menu, not shown."""
        if self.menu is not None:
            self.menu.deleteLater()
        menu = self.menu = Menu(self._manager, self._owner)
        if facts.state in _STANDING:
            menu.add("refresh", self.tr("Start again from the beginning"), lambda: self._start_again(facts))
        if facts.state in _RUNNING or (facts.state in _STANDING and (facts.part or facts.told)):
            text = self.tr("Cancel the download…") if facts.part else self.tr("Cancel the download")
            menu.add("close", text, lambda: self.ask_cancel(facts))
        if facts.state in (_S.INSTALLED, _S.MISSING):
            menu.add("check", self.tr("Verify files"), self.verify_requested.emit)
        if facts.folder:
            menu.add("folder", self.tr("Show in folder"), lambda: show_folder(facts.folder))
        if facts.address:
            menu.add("copy", self.tr("Copy address and file names"), lambda: self._copy(facts.address, anchor))
        if facts.on_disk and facts.state not in _RUNNING:
            menu.addSeparator()
            remove: QAction = menu.add("trash", self.tr("Remove…"), lambda: self.ask_remove(facts), danger=True)
            if facts.in_use:
                remove.setText(self.tr("Remove… (not while it is in use)"))
            remove.setEnabled(not facts.in_use)
        return menu

    def ask_cancel(self, facts: MenuFacts) -> None:
        """Asks what becomes of what has come in; with nothing there, there is nothing to ask."""
        if not facts.part:
            self._cancel(facts, keep=False)
            return
        text = self.tr("Cancel the download of {name}?").format(name=facts.name)
        details = self.tr("{size} here so far. If this is kept, the next download goes on from there.")
        keep, drop = self.tr("Cancel, keep it"), self.tr("Cancel, remove it")
        back = self.tr("Go on downloading") if facts.state in _RUNNING else self.tr("Not now")
        box = message_box(
            self._manager,
            self._owner.window(),
            "question",
            text,
            details.format(size=in_bytes(facts.part)),
            [(keep, "accept"), (drop, "destroy"), (back, "reject")],
        )
        answers = {"accept": lambda: self._cancel(facts, keep=True), "destroy": lambda: self._cancel(facts, keep=False)}
        self._ask(box, answers)

    def ask_remove(self, facts: MenuFacts) -> None:
        """Asks before files are removed."""
        text = self.tr("Remove {name} from this machine?").format(name=facts.name)
        details = self.tr("This frees {size}. It can be downloaded again at any time.")
        if facts.in_place:
            details = self.tr("Tandem forgets its files. They stay where they are.")
        box = self._sure(text, details.format(size=in_bytes(facts.on_disk)))
        self._ask(box, {"destroy": lambda: self.remove_requested.emit(facts.key)})

    def _sure(self, text: str, details: str) -> QMessageBox:
        parts: list[tuple[str, Part]] = [(self.tr("Remove"), "destroy"), (self.tr("Keep"), "reject")]
        return message_box(self._manager, self._owner.window(), "question", text, details, parts)

    def _ask(self, box: QMessageBox, answers: dict[str, Callable[[], None]]) -> None:
        roles = {PARTS[part]: answer for part, answer in answers.items()}

        def answered(button: QAbstractButton) -> None:
            then = roles.get(box.buttonRole(button))
            if then is not None:
                then()

        box.buttonClicked.connect(answered)
        self.box = box
        box.open()

    def _cancel(self, facts: MenuFacts, *, keep: bool) -> None:
        self.cancel_requested.emit(facts.key, keep)

    def _start_again(self, facts: MenuFacts) -> None:
        self.start_again_requested.emit(facts.key)

    def _copy(self, address: str, anchor: QWidget) -> None:
        QGuiApplication.clipboard().setText(address)
        announce(anchor, self.tr("Copied"))


def show_folder(folder: str) -> None:
    """Opens a folder in the system's file manager."""
    QDesktopServices.openUrl(QUrl.fromLocalFile(folder))
