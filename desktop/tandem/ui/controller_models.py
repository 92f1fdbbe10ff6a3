"""The models as the window has them: downloads, checks, imports, the folder and the way to the Hub."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Final, TypeVar

from PySide6.QtCore import QObject, Signal, Slot

from tandem.errors import TandemError
from tandem.models.state import FileState
from tandem.settings import PairChoice, Settings
from tandem.ui.controller_downloads import Downloads
from tandem.ui.controller_pair import PairKeeper
from tandem.ui.controller_settings import Preferences
from tandem.ui.controller_threads import Threads
from tandem.ui.controller_work import FileWork
from tandem.ui.errors_text import localised
from tandem.ui.models_worker import Workshop
from tandem.ui.session_state import NetworkView, Notice

if TYPE_CHECKING:
    from tandem.models.catalog import Catalog
    from tandem.models.imports import Found
    from tandem.models.network import Network
    from tandem.models.overview import Overview
    from tandem.models.progress import JobProgress
    from tandem.ui.models_work import How, Moved, Removed

RELEASE_FIRST: Final = os.name == "nt"
"""Whether a file that the engine has open cannot be moved."""

_NETWORK: Final = ("models_folder", "hub_endpoint", "proxy")
_T = TypeVar("_T")


class ModelsKeeper(QObject):
    """Asks for what is to be done with model files, and tells what became of it; nothing here waits.

    Args:
        threads: Do the work.
        preferences: The settings.
        pairs: Knows the pair in use.
        parent: Qt's parent.
        catalog: The models that can be downloaded; None takes the one that comes with the app.
        network: How the Hub is reached; None goes by the settings and the environment.

    Attributes:
        changed: `Overview`: every pair and file as it is now.
        job: `JobProgress`: the download under way, or the last one as it ended, paused or failed (not `running`, with
            its sentence); None when there is none, or it ended well or was given up.
        checking: `JobProgress`: files are hashed, copied or moved; None when that has ended.
        found: `list[Found]`: files that were looked at, to be taken in; after `look`.
        places_found: `list` of GGUF files in the folders of other apps, only listed; after `places`.
        network: `NetworkView`; after `show_network`, and again when it changes.
        notice: `Notice`, in the user's language.
        pair_ready: Key of a pair whose download has just been completed.
        load_requested: `PairChoice` to be loaded.
        release_requested: No process may have the pair's files open; then `released` is to be called.
    """

    changed = Signal(object)
    job = Signal(object)
    checking = Signal(object)
    found = Signal(object)
    places_found = Signal(object)
    network = Signal(object)
    notice = Signal(object)
    pair_ready = Signal(str)
    load_requested = Signal(object)
    release_requested = Signal()

    def __init__(
        self,
        threads: Threads,
        preferences: Preferences,
        pairs: PairKeeper,
        parent: QObject | None = None,
        catalog: Catalog | None = None,
        network: Network | None = None,
    ) -> None:
        super().__init__(parent)
        self._threads, self._preferences, self._pairs = threads, preferences, pairs
        self._workshop = Workshop(catalog, network)
        self.downloads: Final = Downloads(threads, self._workshop, preferences.get, self)
        self.work: Final = FileWork(threads, self._workshop, preferences.get, self)
        self.overview: Overview | None = None
        """The files as they were seen last."""

        self.last_job: JobProgress | None = None
        """What `job` told last."""

        self.network_view: NetworkView | None = None
        """The way to the Hub as it was seen last."""

        self._refreshing = self._stale = False
        self._ended: tuple[JobProgress | None] | None = None  # a download's end, until its files were looked at
        self._trouble = ""  # what was wrong with the folder when it was last looked at
        self._seen = False  # whether what had changed since the last start was told
        self._network_wanted = self._token_wanted = False
        self._way: tuple[object, ...] = ()  # the settings that decide where models are and where they come from
        self._limit: int | None = None
        self._moving_to = ""
        self._released = False
        self._closing = False
        self.downloads.job.connect(self._on_job)
        for part in (self.downloads, self.work):
            part.notice.connect(self.notice)
        self.work.checking.connect(self.checking)
        self.work.found.connect(self.found)
        self.work.ended.connect(self.refresh)
        self.downloads.ready.connect(self.pair_ready)
        self.downloads.moved_on.connect(self.refresh)

    @property
    def catalog(self) -> Catalog:
        """The models that can be downloaded; read once."""
        return self._workshop.catalog()

    @property
    def looking(self) -> bool:
        """Whether the files are being looked at."""
        return self._refreshing

    # Start and end

    def start(self) -> None:
        """Looks at the files for the first time; the settings are known now."""
        settings = self._preferences.get()
        self._way, self._limit = self._way_of(settings), settings.speed_limit
        self.refresh()

    def shut(self) -> None:
        """Ends all work soon: a download keeps what has come in, a check, an import or a move is given up."""
        self._closing = True
        self.downloads.shut()
        self.work.shut()

    def set_settings(self, settings: Settings) -> None:
        """The settings are others now."""
        if settings.speed_limit != self._limit:
            self._limit = settings.speed_limit
            self.downloads.limit(settings.speed_limit)
        way = self._way_of(settings)
        if way != self._way and self._way:
            self._way = way
            self.refresh()
            if self._network_wanted:
                self.show_network()

    # What is here

    @Slot()
    def refresh(self) -> None:
        """Looks at the files again; `changed` tells."""
        if self._closing:
            return
        if self._refreshing:
            self._stale = True
            return
        self._refreshing, self._stale = True, False
        settings, jobs, shop = self._preferences.get(), self.downloads.jobs, self._workshop
        self._threads.lists.submit(
            lambda: (shop.overview(settings, jobs), shop.trouble(settings)), self._on_overview, self._on_no_overview
        )

    @Slot(str)
    def use(self, key: str) -> None:
        """Has an installed pair loaded."""

        def use(choice: PairChoice | None) -> None:
            if choice is not None:
                self.load_requested.emit(choice)
                return
            text = self.tr("{name} is not complete here.").format(name=self._workshop.name(key))
            self.notice.emit(
                Notice("warn", text, self.tr("Download it first."), "open-models", self.tr("Show the models"))
            )
            self.refresh()

        self._ask(lambda settings: self._workshop.use(settings, key), use)

    @Slot(str)
    def remove(self, name: str) -> None:
        """Removes a pair's files (by its key), or an installed or quarantined file (by its path)."""
        choice = self._pairs.state.choice
        in_use = () if self._pairs.state.kind not in ("loaded", "loading") else (choice.target, choice.drafter)

        def done(removed: Removed) -> None:
            if removed.in_use:
                text = self.tr("{name} is in use.").format(name=removed.name)
                self.notice.emit(Notice("warn", text, self.tr("Use another model first, then remove it.")))
            elif removed.kept:
                text = self.tr("{name} is out of Tandem's list; the file itself stays where it is.")
                self.notice.emit(Notice("info", text.format(name=removed.name)))
            elif removed.name:
                self.notice.emit(Notice("good", self.tr("{name} was removed.").format(name=removed.name)))
            self.refresh()

        self._ask(lambda settings: self._workshop.remove(settings, name, in_use), done)

    # Downloads

    @Slot(str)
    def download(self, key: str) -> None:
        """Downloads a pair, or what of it is missing; while another is downloaded it waits for its turn."""
        self.downloads.download(key)

    @Slot()
    def pause(self) -> None:
        """Pauses the download under way; what has come in is kept."""
        self.downloads.pause()

    @Slot(str)
    def resume(self, key: str) -> None:
        """Goes on with a download."""
        self.downloads.download(key)

    @Slot(str, bool)
    def cancel(self, key: str, keep: bool) -> None:
        """Gives a download up, one that waits or is paused too.

        Args:
            key: The pair.
            keep: Whether what has come in stays on the disk.
        """
        self.downloads.cancel(key, keep=keep)

    @Slot(str)
    def start_again(self, key: str) -> None:
        """Downloads a pair from its first byte; what was kept of it is removed, what is installed stays."""
        self.downloads.start_again(key)

    # Checks, imports, the folder

    @Slot()
    def verify(self) -> None:
        """Hashes every installed file again; `checking` tells how far."""
        self.work.verify()

    @Slot()
    def stop_check(self) -> None:
        """Stops the check, import or move under way."""
        self.work.stop()

    @Slot(list)
    def look(self, paths: Sequence[str]) -> None:
        """Looks at files to be imported, and into folders for them; `found` tells what they are."""
        self.work.look(paths)

    @Slot(object, str)
    def take(self, found: Found, how: How) -> None:
        """Takes a file in that was looked at: how is "copy", "link" or "in-place"."""
        self.work.take(found, how)

    @Slot()
    def places(self) -> None:
        """Looks for GGUF files in the folders of other apps; `places_found` tells."""
        self._ask(lambda _settings: self._workshop.places(), self.places_found.emit)

    @Slot(str)
    def move_folder(self, folder: str) -> None:
        """Moves the folder with the models, and all that is in it; downloads wait meanwhile."""
        if self._moving_to or self._closing:
            return
        self._moving_to = folder
        state = self._pairs.state
        loads = state.kind == "loading"  # it would look for the files where they are no more
        self._released = state.choice.kind == "files" and (loads or (RELEASE_FIRST and state.kind == "loaded"))
        self.downloads.hold(self.release_requested.emit if self._released else self.released)

    @Slot()
    def released(self) -> None:
        """No process has a model file open that could not be moved."""
        self.work.move(self._moving_to, self._on_moved)

    # The way to the Hub

    def show_network(self, *, token: bool = False) -> None:
        """Wants to know how the Hub is reached; `network` tells, now and when it changes.

        Args:
            token: Whether to look for a sign-in token too; a keyring may ask the user to unlock it.
        """
        self._network_wanted = True
        self._token_wanted = self._token_wanted or token

        def done(view: NetworkView) -> None:
            self.network_view = view
            self.network.emit(view)

        # Not in the thread for lists: while a keyring asks the user to unlock it, the files can still be seen.
        settings, token = self._preferences.get(), self._token_wanted
        self._threads.chores.submit(lambda: self._workshop.view(settings, token), done, self._complain)

    @Slot(str)
    def keep_token(self, text: str) -> None:
        """Keeps a sign-in token in the system's keyring."""
        self._change_token(partial(self._workshop.keep_token, text), self.tr("The token is in the system's keyring."))

    @Slot()
    def forget_token(self) -> None:
        """Removes the token from the keyring."""
        self._change_token(self._workshop.forget_token, self.tr("The token was removed from the system's keyring."))

    # Inside

    @staticmethod
    def _way_of(settings: Settings) -> tuple[object, ...]:
        return tuple(getattr(settings, name) for name in _NETWORK)

    def _ask(self, job: Callable[[Settings], _T], done: Callable[[_T], None]) -> None:
        """Does something quick with the list of files."""
        settings = self._preferences.get()

        def arrived(result: _T) -> None:
            if not self._closing:
                done(result)

        if not self._closing:
            self._threads.lists.submit(lambda: job(settings), arrived, self._complain)

    def _change_token(self, job: Callable[[], None], text: str) -> None:
        def done(_: None) -> None:
            self.notice.emit(Notice("good", text))
            self.show_network()

        self._threads.chores.submit(job, done, self._complain)

    def _on_job(self, job: JobProgress | None) -> None:
        """The end of a download is told with its files as they are then: no card shows it as missing in between."""
        if job is not None and job.running:
            self._ended = None
            self._show_job(job)
        else:
            self._ended = (job,)

    def _on_overview(self, found: tuple[Overview, TandemError | None]) -> None:
        if self._closing:
            return
        overview, trouble = found
        self._tell_trouble(trouble)
        self.downloads.whole([pair.key for pair in overview.pairs if pair.state is FileState.INSTALLED])
        self.overview = overview
        self.changed.emit(overview)
        if not self._seen:
            self._seen = True
            self._tell_changes(overview)
        self._looked()

    def _on_no_overview(self, error: TandemError) -> None:
        self._tell_trouble(error)
        self._looked()

    def _tell_trouble(self, error: TandemError | None) -> None:
        """What is wrong with the model folder is said once."""
        if error is not None and error.sentence != self._trouble:
            self._complain(error, sticky=True)
        self._trouble = "" if error is None else error.sentence

    def _looked(self) -> None:
        self._refreshing = False
        if self._stale:
            self.refresh()
        elif self._ended is not None:
            (job,), self._ended = self._ended, None
            self._show_job(job)

    def _show_job(self, job: JobProgress | None) -> None:
        self.last_job = job
        self.job.emit(job)

    def _tell_changes(self, overview: Overview) -> None:
        files = [file for pair in overview.pairs for file in pair.files] + list(overview.imported)
        odd = [file.name for file in files if file.state in (FileState.CHANGED, FileState.MISSING)]
        if odd:
            text = self.tr("%n model file(s) are missing or changed since the last check: {names}.", "", len(odd))
            text, action = text.format(names=", ".join(odd)), self.tr("Show the models")
            self.notice.emit(Notice("warn", text, "", "open-models", action, sticky=True))

    def _on_moved(self, moved: Moved | None) -> None:
        self._moving_to = ""
        if moved is not None:
            self._preferences.change(models_folder=moved.folder, pair=moved.now_at(self._preferences.get().pair))
            self._pairs.follow_files(moved.now_at(self._pairs.state.choice))
            if not self._closing:
                text = self.tr("The models are in {folder} now.").format(folder=moved.folder)
                self.notice.emit(Notice("good", text))
        if self._released and not self._closing:
            self._released = False
            self.load_requested.emit(self._preferences.get().pair)
        self.downloads.go_on()

    def _complain(self, error: TandemError, *, sticky: bool = False) -> None:
        if not self._closing:
            said, action = localised(error.sentence, error.remedy), self.tr("Show the models")
            self.notice.emit(Notice("bad", *said, "open-models", action, sticky=sticky))
