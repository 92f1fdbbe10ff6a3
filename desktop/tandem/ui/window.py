"""The main window: pages at the left edge, the page in the middle, and every shortcut."""

from __future__ import annotations

import base64
from collections.abc import Callable
from functools import partial
from typing import Final

from PySide6.QtCore import QByteArray, QEvent, QSize, Qt, QUrl, Signal
from PySide6.QtGui import QAction, QCloseEvent, QDesktopServices, QShowEvent
from PySide6.QtWidgets import QDialog, QFileDialog, QHBoxLayout, QMainWindow, QStackedWidget, QVBoxLayout, QWidget

from tandem import paths
from tandem.errors import TandemError
from tandem.models.progress import JobProgress
from tandem.ui.chat_page import ChatPage
from tandem.ui.controller import Controller
from tandem.ui.kit import NavButton, divider, spaced
from tandem.ui.pages import Pages
from tandem.ui.session_state import Notice
from tandem.ui.shortcuts import SHORTCUTS, ShortcutsDialog
from tandem.ui.theme import LARGEST_SCALE, SMALLEST_SCALE, ThemeManager

PAGES: Final = ("chat", "models", "compare", "settings")
FIRST_SIZE: Final = (1120, 760)
LEAST_SIZE: Final = (640, 420)
MOST_LEAST: Final = (900, 500)
"""Smallest window at 100 %, and at any size of text: what a screen of 1366 × 768 has at 150 %, less a taskbar."""
_FRAME: Final = (16, 48)
"""Room that is left for the frame around the window, which nobody knows before it is shown."""
_SCALE_STEP: Final = 0.1


class MainWindow(QMainWindow):
    """The window.

    Args:
        manager: The theme.
        controller: Does everything.

    Attributes:
        painted: The window was shown for the first time.
        gone: The window was closed, and all that it had started has ended.
    """

    painted = Signal()
    gone = Signal()

    def __init__(self, manager: ThemeManager, controller: Controller) -> None:
        super().__init__()
        self._manager, self._controller = manager, controller
        self._closing = self._closed = False
        self.setWindowTitle("Tandem")
        self.chat = ChatPage(manager, controller)
        self.pages: Final = Pages(manager, controller, self.chat.has_question, self)
        self.stack = QStackedWidget()
        self.stack.addWidget(self.chat)
        self.nav = {name: NavButton(manager, "chat" if name == "chat" else name, "") for name in PAGES}
        self._build()
        self._actions: dict[str, QAction] = {}
        self._make_actions()
        self._connect()
        self._size()
        self.retranslate()
        self.chat.composer.focus()  # from the first moment on: what is typed before all is read is not lost

    def show_page(self, name: str) -> None:
        """Shows "chat", "models", "compare" or "settings"; a page is made when it is first shown."""
        page = self.chat if name == "chat" else self.pages.page(name)
        if self.stack.indexOf(page) < 0:
            self.stack.addWidget(page)
        self.stack.setCurrentWidget(page)
        self.nav[name].setChecked(True)
        if name == "chat":
            self.chat.composer.focus()
        elif name == "models":
            self.chat.header.seen_job()

    @property
    def page(self) -> str:
        """The page in view."""
        return next(name for name, button in self.nav.items() if button.isChecked())

    def action(self, name: str) -> QAction:
        """The action of a shortcut, by its id in `SHORTCUTS`."""
        return self._actions[name]

    def retranslate(self) -> None:
        """Sets every text anew."""
        texts = {
            "chat": self.tr("Chat"),
            "models": self.tr("Models"),
            "compare": self.tr("Compare"),
            "settings": self.tr("Settings"),
        }
        for place, name in enumerate(PAGES, 1):
            self.nav[name].set_name(texts[name], f"Ctrl+{place}")
        for name, action in self._actions.items():
            action.setText(SHORTCUTS[name].description)

    def changeEvent(self, event: QEvent) -> None:  # noqa: N802 - Qt's name
        """Follows the language."""
        if event.type() == QEvent.Type.LanguageChange:
            self.retranslate()
        super().changeEvent(event)

    def showEvent(self, event: QShowEvent) -> None:  # noqa: N802 - Qt's name
        """Tells that it is there."""
        super().showEvent(event)
        self.painted.emit()

    def closeEvent(self, event: QCloseEvent) -> None:  # noqa: N802 - Qt's name
        """Ends everything first: the window goes at once, the process when all of it has ended."""
        if self._closed:
            event.accept()
            return
        event.ignore()
        if not self._closing:
            self._closing = True
            self.chat.composer.flush()
            for dialog in self.findChildren(QDialog):
                dialog.reject()
            geometry = base64.b64encode(self.saveGeometry().data()).decode("ascii")
            self._controller.change_settings(geometry=geometry)
            self.hide()
            self._controller.close()

    def restore(self, geometry: str) -> None:
        """Puts the window where it was; on a screen that is there and no larger than that."""
        if not geometry or not self.restoreGeometry(QByteArray.fromBase64(geometry.encode("ascii", "ignore"))):
            screen = self.screen().availableGeometry()
            self.resize(QSize(*FIRST_SIZE).boundedTo(screen.size() - QSize(*_FRAME)))
            self.move(screen.center() - self.rect().center())

    def raise_up(self) -> None:
        """Comes to the front."""
        self.setWindowState(self.windowState() & ~Qt.WindowState.WindowMinimized)
        self.show()
        self.raise_()
        self.activateWindow()

    def _build(self) -> None:
        rail = QWidget()
        rail.setProperty("kit", "sunken")
        rail.setAttribute(Qt.WidgetAttribute.WA_StyledBackground)
        column = QVBoxLayout(rail)
        spaced(column, self._manager, "xs", ("xs", "s"))
        for name in PAGES[:-1]:
            column.addWidget(self.nav[name])
        column.addStretch(1)
        column.addWidget(self.nav["settings"])
        centre = QWidget()
        row = QHBoxLayout(centre)
        row.setSpacing(0)
        row.setContentsMargins(0, 0, 0, 0)
        row.addWidget(rail)
        row.addWidget(divider(vertical=True))
        row.addWidget(self.stack, 1)
        self.setCentralWidget(centre)
        self.nav["chat"].setChecked(True)

    def _connect(self) -> None:
        for name, button in self.nav.items():
            button.clicked.connect(lambda _=False, name=name: self.show_page(name))
        self.chat.models_requested.connect(lambda: self.show_page("models"))
        self.chat.files_requested.connect(self._choose_files)
        self.chat.logs_requested.connect(self.open_logs)
        self._connect_offers()
        self.pages.settings_requested.connect(lambda: self.show_page("settings"))
        self.pages.chat_requested.connect(lambda: self.show_page("chat"))
        self.pages.logs_requested.connect(self.open_logs)
        self.pages.data_requested.connect(self.open_data)
        self.pages.logs_zip_requested.connect(self.zip_logs)
        self.pages.shortcuts_requested.connect(self.show_shortcuts)
        self.pages.again_requested.connect(self._again)
        self.pages.export_all_requested.connect(lambda kind: self.chat.export(None, kind))
        self.pages.import_requested.connect(self.chat.import_chats)
        self._controller.notice.connect(self._on_notice)
        self._controller.closed.connect(self._on_closed)
        self._manager.changed.connect(self._size)

    def _connect_offers(self) -> None:
        """The welcome and an empty chat offer downloads, both by the same facts, which are read at the start."""
        models, welcome, offers = self._controller.models, self.chat.welcome, self.chat.suggestions
        self._controller.ready.connect(self.pages.want_machine)
        self._controller.ready.connect(models.show_network)
        for part in (welcome, offers):
            part.download_requested.connect(models.download)
            part.models_requested.connect(lambda: self.show_page("models"))
            self.pages.machine_known.connect(part.set_machine)
            models.changed.connect(part.set_overview)
            models.network.connect(part.set_network)
        welcome.pause_requested.connect(models.pause)
        welcome.resume_requested.connect(models.resume)
        welcome.cancel_requested.connect(models.cancel)
        welcome.start_again_requested.connect(models.start_again)
        welcome.use_requested.connect(models.use)
        welcome.settings_requested.connect(self.pages.show_network_settings)
        models.job.connect(self._show_job)

    def _make_actions(self) -> None:
        does: dict[str, Callable[[], object]] = {
            **{f"page-{name}": partial(self.show_page, name) for name in PAGES},
            "new-chat": self._on_chat(self.chat.new_chat),
            "search": self._on_chat(self.chat.focus_search),
            "sidebar": self._toggle_sidebar,
            "composer": self._on_chat(self.chat.composer.focus),
            "stop": self.chat.escape,
            "regenerate": self._on_chat(self.chat.regenerate_last),
            "edit-last": self._on_chat(self.chat.edit_last),
            "copy-last": self._on_chat(self.chat.copy_last),
            "drafter": self.chat.composer.toggle_drafter,
            "thinking": self.chat.composer.toggle_thinking,
            "show-drafted": self.chat.composer.toggle_show_drafted,
            "text-larger": lambda: self._scale(_SCALE_STEP),
            "text-smaller": lambda: self._scale(-_SCALE_STEP),
            "text-normal": lambda: self._controller.change_settings(text_scale=1.0),
            "full-screen": self._full_screen,
            "shortcuts": self.show_shortcuts,
            "quit": self.close,
        }
        for name, do in does.items():
            action = QAction(self)
            action.setShortcuts(SHORTCUTS[name].sequences)
            action.triggered.connect(lambda _=False, do=do: do())
            self.addAction(action)
            self._actions[name] = action

    def _on_chat(self, do: Callable[[], object]) -> Callable[[], None]:
        """The same, on the page Chat."""

        def act() -> None:
            if self.page != "chat":
                self.show_page("chat")
            do()

        return act

    def _toggle_sidebar(self) -> None:
        """From another page it leads to the list of chats, and does not take it away unseen."""
        away = self.page != "chat"
        if away:
            self.show_page("chat")
        if not away or self.chat.sidebar.isHidden():
            self.chat.toggle_sidebar()

    def show_shortcuts(self) -> None:
        """Lists every shortcut."""
        dialog = ShortcutsDialog(self._manager, self)
        dialog.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        dialog.open()

    def open_logs(self) -> None:
        """Shows the folder with the logs in the system's file manager."""
        self._open_folder(paths.log_dir)

    def open_data(self) -> None:
        """Shows the folder with chats and settings."""
        self._open_folder(paths.data_dir)

    def zip_logs(self) -> None:
        """Asks where to, and writes the logs as one file to send."""
        dialog = QFileDialog(self, self.tr("Save logs"), "", self.tr("Zip files (*.zip)"))
        dialog.setAcceptMode(QFileDialog.AcceptMode.AcceptSave)
        dialog.setDefaultSuffix("zip")
        dialog.selectFile("tandem-logs.zip")
        dialog.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        dialog.fileSelected.connect(self.pages.save_logs)
        dialog.open()

    def _open_folder(self, folder: Callable[[], object]) -> None:
        try:
            address = QUrl.fromLocalFile(str(folder()))
        except TandemError as error:
            self.chat.show_notice(Notice("bad", error.sentence, error.remedy))
            return
        if not QDesktopServices.openUrl(address):
            text = self.tr("No program here shows folders. It is: {folder}").format(folder=address.toLocalFile())
            self.chat.show_notice(Notice("warn", text, sticky=True))
            self.show_page("chat")

    def _choose_files(self) -> None:
        self.show_page("models")
        self.pages.models.show_files()

    def _again(self, drafter: bool) -> None:
        self.show_page("chat")
        self.chat.regenerate_last(drafter)

    def _on_notice(self, notice: Notice) -> None:
        """A message of weight must be seen, whatever page is in view."""
        if notice.kind == "bad" and self.page != "chat" and not self.pages.tells(self.page, notice):
            self.show_page("chat")

    def _show_job(self, job: JobProgress | None) -> None:
        self.chat.header.set_job(job)
        if self.page == "models":  # its card tells how it ended
            self.chat.header.seen_job()
        if self.chat.body.currentWidget() is self.chat.welcome:
            self.chat.welcome.set_job(job)

    def _full_screen(self) -> None:
        self.setWindowState(self.windowState() ^ Qt.WindowState.WindowFullScreen)

    def _scale(self, step: float) -> None:
        scale = round(self._controller.settings.text_scale + step, 2)
        self._controller.change_settings(text_scale=min(max(scale, SMALLEST_SCALE), LARGEST_SCALE))

    def _size(self) -> None:
        self.setMinimumSize(QSize(*map(self._manager.px, LEAST_SIZE)).boundedTo(QSize(*MOST_LEAST)))

    def _on_closed(self) -> None:
        self._closed = True
        self.close()
        self.gone.emit()
