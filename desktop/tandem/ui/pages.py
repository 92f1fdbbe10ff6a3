"""The pages beside the chat: each is made when it is first shown, and then told everything that is known."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from PySide6.QtCore import QObject, Signal
from PySide6.QtWidgets import QWidget

from tandem import logs, paths
from tandem.errors import TandemError
from tandem.hardware import machine
from tandem.hardware.machine import Machine
from tandem.settings import PairChoice, Settings
from tandem.ui.compare_page import ComparePage
from tandem.ui.controller import Controller
from tandem.ui.errors_text import localised
from tandem.ui.models_page import ModelsPage
from tandem.ui.pair_check import check_files
from tandem.ui.session_state import LoadState, NetworkView, Notice, PairState
from tandem.ui.settings_page import SettingsPage
from tandem.ui.theme import ThemeManager

if TYPE_CHECKING:
    from tandem.models.overview import Overview
    from tandem.models.progress import JobProgress


class Pages(QObject):
    """Makes the pages Models, Compare and Settings, and connects them.

    Args:
        manager: The theme.
        controller: Does everything.
        question: Whether the chat that is shown has a question that could be answered again.
        parent: The window.

    Attributes:
        chat_requested: Show the chat.
        logs_requested: Show the folder with the logs.
        data_requested: Show the folder with chats and settings.
        logs_zip_requested: Save the logs as one file.
        shortcuts_requested: List the shortcuts.
        again_requested: Answer the last question again, with or without the drafter.
        export_all_requested: Export all chats, as "markdown" or "json".
        import_requested: Import chats.
        settings_requested: Show the page Settings.
        machine_known: `Machine`: its facts were read anew.
    """

    chat_requested = Signal()
    logs_requested = Signal()
    data_requested = Signal()
    logs_zip_requested = Signal()
    shortcuts_requested = Signal()
    again_requested = Signal(bool)
    export_all_requested = Signal(str)
    import_requested = Signal()
    settings_requested = Signal()
    machine_known = Signal(object)

    def __init__(
        self, manager: ThemeManager, controller: Controller, question: Callable[[], bool], parent: QObject
    ) -> None:
        super().__init__(parent)
        self._manager, self._controller, self._question = manager, controller, question
        self._models: ModelsPage | None = None
        self._compare: ComparePage | None = None
        self._settings: SettingsPage | None = None
        self._reading_machine = self._machine_old = False
        controller.pair_changed.connect(self._show_pair)
        controller.loading.connect(self._show_load)
        controller.settings_changed.connect(self._show_settings)
        controller.models.changed.connect(self._show_overview)
        controller.models.job.connect(self._show_job)
        controller.models.checking.connect(self._show_checking)
        controller.models.found.connect(lambda found: self.models.set_found(found))
        controller.models.places_found.connect(lambda places: self.models.set_places(places))
        controller.models.network.connect(self._show_network)
        controller.models.notice.connect(self._tell_models)
        for news in (controller.node_finished, controller.conversation_opened, controller.running_changed):
            news.connect(lambda *_: self._show_last())

    def page(self, name: str) -> QWidget:
        """The page "models", "compare" or "settings"."""
        if name == "compare":
            return self.compare
        self.want_machine()
        if name == "settings":
            return self.settings
        self._bring_up_to_date(self.models)
        return self.models

    @property
    def models(self) -> ModelsPage:
        """The page Models."""
        if self._models is None:
            keeper = self._controller.models
            made = self._models = ModelsPage(self._manager, known=keeper.catalog)
            made.load_requested.connect(self._load)
            made.cancel_load_requested.connect(self._controller.cancel_load)
            made.check_requested.connect(self._check)
            made.download_requested.connect(keeper.download)
            made.pause_requested.connect(keeper.pause)
            made.resume_requested.connect(keeper.resume)
            made.cancel_requested.connect(keeper.cancel)
            made.start_again_requested.connect(keeper.start_again)
            made.use_requested.connect(keeper.use)
            made.verify_requested.connect(keeper.verify)
            made.stop_check_requested.connect(keeper.stop_check)
            made.remove_requested.connect(keeper.remove)
            made.look_requested.connect(keeper.look)
            made.take_requested.connect(keeper.take)
            made.places_requested.connect(keeper.places)
            made.settings_requested.connect(self.show_network_settings)
            made.notice_performed.connect(self._perform)
            made.set_pair(self._controller.pair)
            made.set_load(self._controller.load_state)
            keeper.show_network()
        return self._models

    @property
    def compare(self) -> ComparePage:
        """The page Compare."""
        if self._compare is None:
            made = self._compare = ComparePage(self._manager)
            made.again_requested.connect(self.again_requested)
            self._show_last()
        return self._compare

    @property
    def settings(self) -> SettingsPage:
        """The page Settings."""
        if self._settings is None:
            made = self._settings = SettingsPage(self._manager)
            made.changed.connect(self._change)
            made.reload_requested.connect(self._controller.load_again)
            made.data_folder_requested.connect(self.data_requested)
            made.logs_folder_requested.connect(self.logs_requested)
            made.logs_zip_requested.connect(self.logs_zip_requested)
            made.export_all_requested.connect(self.export_all_requested)
            made.import_requested.connect(self.import_requested)
            made.purge_requested.connect(self._controller.files.purge_deleted)
            made.shortcuts_requested.connect(self.shortcuts_requested)
            made.folder_move_requested.connect(self._controller.models.move_folder)
            made.stop_move_requested.connect(self._controller.models.stop_check)
            made.token_keep_requested.connect(self._controller.models.keep_token)
            made.token_forget_requested.connect(self._controller.models.forget_token)
            made.set_settings(self._controller.settings)
            made.set_pair(self._controller.pair)
            made.set_devices(self._controller.pair.devices)
            made.set_checking(self._controller.models.work.progress)
            self._controller.models.show_network(token=True)
        return self._settings

    def tells(self, name: str, notice: Notice) -> bool:
        """Whether a page in view tells this itself."""
        return name == "models" and notice.action in ("open-models", "load-again")

    def want_machine(self) -> None:
        """Has the machine's facts read, in a worker and each time, as free memory changes; who shows them is told."""
        if self._reading_machine:
            self._machine_old = True  # what is being read was asked for earlier
        else:
            self._reading_machine, self._machine_old = True, False
            self._controller.threads.chores.submit(machine.read, self._tell_machine, self._no_machine)

    def show_network_settings(self) -> None:
        """Shows how the Hub is reached, to be changed."""
        self.settings_requested.emit()
        self.settings.show_section(self.settings.models)

    def save_logs(self, path: str) -> None:
        """Writes the logs as a zip file, in a worker; a notice tells the end."""

        def told(files: int) -> None:
            text = self.tr("%n log file(s) saved.", "", files)
            self._controller.notice.emit(Notice("good", text))

        def failed(error: TandemError) -> None:
            sentence, remedy = localised(error.sentence, error.remedy)
            self._controller.notice.emit(Notice("bad", sentence, remedy))

        self._controller.threads.chores.submit(lambda: logs.log_zip(paths.log_dir(), Path(path)), told, failed)

    def _bring_up_to_date(self, page: ModelsPage) -> None:
        """Tells a page what is known: while nobody sees it, it is not told of each step."""
        keeper = self._controller.models
        if keeper.overview is not None:
            page.set_overview(keeper.overview)
        page.set_job(keeper.last_job)
        page.set_checking(keeper.work.progress)
        if keeper.network_view is not None:
            page.set_network(keeper.network_view)
        keeper.refresh()

    def _perform(self, notice: Notice) -> None:
        """A button of a message on the page Models."""
        if not self._controller.perform(notice) and notice.action == "open-logs":
            self.logs_requested.emit()

    def _show_overview(self, overview: Overview) -> None:
        if self._models is not None:
            self._models.set_overview(overview)

    def _show_job(self, job: JobProgress | None) -> None:
        if self._models is not None and self._models.isVisible():
            self._models.set_job(job)

    def _show_checking(self, job: JobProgress | None) -> None:
        if self._models is not None and self._models.isVisible():
            self._models.set_checking(job)
        if self._settings is not None:
            self._settings.set_checking(job)

    def _show_network(self, view: NetworkView) -> None:
        if self._models is not None:
            self._models.set_network(view)
        if self._settings is not None:
            self._settings.set_network(view)

    def _tell_models(self, notice: Notice) -> None:
        """Who looks at the models need not go to the chat to read what became of them."""
        if self._models is not None and self._models.isVisible():
            self._models.tell(notice)

    def _load(self, choice: PairChoice) -> None:
        self._controller.load_pair(choice)

    def _change(self, fields: dict[str, Any]) -> None:
        self._controller.change_settings(**fields)

    def _check(self, target: str, drafter: str) -> None:
        self._controller.threads.chores.submit(lambda: check_files(target, drafter), self.models.set_check)

    def _no_machine(self, _error: TandemError) -> None:
        """The next page that wants the facts asks again."""
        self._reading_machine = False

    def _tell_machine(self, found: Machine) -> None:
        self._reading_machine = False
        if self._models is not None:
            self._models.set_machine(found)
        if self._settings is not None:
            self._settings.set_machine(found)
        self.machine_known.emit(found)
        if self._machine_old:
            self.want_machine()

    def _show_pair(self, state: PairState) -> None:
        if self._models is not None:
            self._models.set_pair(state)
        if self._settings is not None:
            self._settings.set_pair(state)
            self._settings.set_devices(state.devices)
        self._show_last()

    def _show_load(self, state: LoadState) -> None:
        if self._models is not None:
            self._models.set_load(state)

    def _show_settings(self, settings: Settings) -> None:
        if self._settings is not None:
            self._settings.set_settings(settings)

    def _show_last(self) -> None:
        if self._compare is not None:
            loaded = self._controller.pair.loaded
            drafts = loaded is not None and loaded.method != "none"
            self._compare.set_state(self._question(), drafts, self._controller.running)
