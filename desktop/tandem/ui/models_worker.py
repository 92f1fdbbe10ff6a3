"""What the window has done to model files, in worker threads; nothing here knows widgets.

What speaks to the Hub takes a while to be imported (its client, the system's certificates, the keyring), and so does
what reads GGUF headers: that happens when it is first needed, in the thread that needs it, and never while the window
opens.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal

import msgspec
from PySide6.QtCore import QObject, Qt, Signal

from tandem import paths
from tandem.errors import TandemError, UsageError
from tandem.models import catalog as models_catalog
from tandem.models.catalog import Catalog, CatalogFile, CatalogPair
from tandem.models.progress import FileProgress, JobProgress, Report
from tandem.models.state import FileState
from tandem.settings import PairChoice, Settings
from tandem.ui import models_work
from tandem.ui.session_state import NetworkView, VariableView
from tandem.ui.workers import Throttle

if TYPE_CHECKING:
    from tandem.models.download import Download
    from tandem.models.imports import Found
    from tandem.models.network import Network
    from tandem.models.overview import FileView, Overview, PairView
    from tandem.models.places import Known
    from tandem.models.stop import Stop
    from tandem.models.store import Store


EVERY_MS: Final = 200
"""News of a job are shown at most this often: each has a card, the header and their texts drawn anew."""


class Newest(QObject):
    """Carries reports from a worker thread to the window's; of several that wait only the newest arrives.

    Attributes:
        came: A report, in the thread that made this object; at most every `EVERY_MS`.
    """

    came = Signal(object)
    _arrived = Signal()

    def __init__(self, parent: QObject) -> None:
        super().__init__(parent)
        self._lock = threading.Lock()
        self._value: Any = None
        throttle = Throttle(self._deliver, EVERY_MS, self)
        self._arrived.connect(throttle.call, Qt.ConnectionType.QueuedConnection)

    def put(self, value: object) -> None:
        """Takes a report; any thread may call it."""
        with self._lock:
            told = self._value is not None
            self._value = value
        if not told:
            self._arrived.emit()

    def clear(self) -> None:
        """What has not arrived yet is forgotten."""
        with self._lock:
            self._value = None

    def _deliver(self) -> None:
        with self._lock:
            value, self._value = self._value, None
        if value is not None:
            self.came.emit(value)


class Turn:
    """A download from the moment on in which it is asked for: it can be stopped before it has begun, too.

    Args:
        key: The pair's key in the catalog.
        fresh: Whether what was kept of it is removed first.
    """

    def __init__(self, key: str, *, fresh: bool = False) -> None:
        self.key: Final = key
        self.fresh: Final = fresh
        self._lock = threading.Lock()
        self._before: JobProgress | None = None
        self._download: Download | None = None
        self._stop: Literal["", "pause", "keep", "drop"] = ""
        self._limit: tuple[int | None] | None = None

    @property
    def stopped(self) -> bool:
        """Whether it was asked to end."""
        return bool(self._stop)

    @property
    def progress(self) -> JobProgress | None:
        """How far it came; None before anybody has looked."""
        with self._lock:
            return self._before if self._download is None else self._download.progress

    def found(self, before: JobProgress) -> None:
        """What is here already, in a worker thread."""
        with self._lock:
            self._before = before

    def pause(self) -> None:
        """Ends it soon; what has come in is kept. Any thread may call it."""
        self._end("pause")

    def cancel(self, *, keep: bool) -> None:
        """Gives it up soon. Any thread may call it."""
        self._end("keep" if keep else "drop")

    def limit(self, bytes_per_s: int | None) -> None:
        """Another speed limit from now on; None for none. Any thread may call it."""
        with self._lock:
            self._limit = (bytes_per_s,)
            if self._download is not None:
                self._download.limit(bytes_per_s)

    def run(self, download: Download) -> JobProgress:
        """Does it, in a worker thread; see `Download.run`."""
        with self._lock:
            self._download = download
            if self._limit is not None:
                download.limit(*self._limit)
            self._pass_on()
        return download.run()

    def _end(self, how: Literal["pause", "keep", "drop"]) -> None:
        with self._lock:
            self._stop = how if self._stop != "drop" else "drop"  # what was given up is not merely paused after that
            self._pass_on()

    def _pass_on(self) -> None:
        if self._download is None or not self._stop:
            return
        if self._stop == "pause":
            self._download.pause()
        else:
            self._download.cancel(keep=self._stop == "keep")


class Workshop:
    """Does the work. Every method may take its time: only for worker threads.

    Args:
        catalog: None takes the one that comes with the app.
        network: None goes by the settings and the environment.
    """

    def __init__(self, catalog: Catalog | None = None, network: Network | None = None) -> None:
        self._catalog = catalog
        self._network = network
        self._lock = threading.Lock()
        self._store: Store | None = None

    def catalog(self) -> Catalog:
        """The models that there are.

        Raises:
            TandemError: The app's own list is damaged.
        """
        return self._catalog or models_catalog.catalog()

    def pair(self, key: str) -> CatalogPair:
        """The pair of that name.

        Raises:
            UsageError: There is none.
        """
        pair = self.catalog().pair(key)
        if pair is None:
            raise UsageError(f"There is no model {key} in Tandem's list.", "Choose one of the page Models.")
        return pair

    def name(self, key: str) -> str:
        """What a pair is called; any thread may ask once the catalog was read."""
        pair = self.catalog().pair(key)
        return key if pair is None else self.catalog().size_of(pair).name

    def first(self, key: str) -> JobProgress:
        """A download that waits for its turn; any thread may ask once the catalog was read.

        Raises:
            UsageError: There is no such pair.
        """
        files = tuple(FileProgress(file.file, FileState.QUEUED, 0, file.size) for file in self.pair(key).files)
        return JobProgress(key, files)

    def store(self, settings: Settings) -> Store:
        """The model folder of the settings.

        Raises:
            TandemError: It cannot be made; the one that was chosen is not there, as its disk is not connected.
        """
        trouble = self.trouble(settings)
        if trouble is not None:
            raise trouble
        return self._folder(settings)

    def trouble(self, settings: Settings) -> TandemError | None:
        """Why the chosen model folder cannot be used; None where it can, or none was chosen."""
        from tandem.models.disk import disk_error  # see the module's docstring

        folder = settings.models_folder
        try:
            if folder:
                os.stat(os.path.join(folder, ""))  # noqa: PTH116, PTH118  (a file is no folder)
        except OSError as error:
            return disk_error(error, Path(folder or "", "x"))
        return None

    def _folder(self, settings: Settings) -> Store:
        from tandem.models.store import Store  # see the module's docstring

        return Store.chosen(settings, self.catalog())

    def network(self, settings: Settings) -> Network:
        """How the Hub is reached.

        Raises:
            UsageError: An address makes no sense.
        """
        from tandem.models.network import Network  # see the module's docstring

        return self._network or Network.chosen(settings)

    def view(self, settings: Settings, look_for_token: bool) -> NetworkView:
        """The same, for people; a keyring that is looked into may ask the user to unlock it."""
        from tandem.models import network, tokens  # see the module's docstring

        folder = settings.models_folder or str(paths.models_dir())
        variables = tuple(VariableView(one.name, one.shown, one.effect) for one in network.environment(os.environ))
        token = tokens.find(os.environ) if look_for_token else None
        where = None if token is None else token.where
        try:
            chosen = self.network(settings)
        except TandemError as error:
            return NetworkView(folder, token=where, variables=variables, sentence=error.sentence, remedy=error.remedy)
        return NetworkView(
            folder,
            chosen.endpoint,
            chosen.endpoint_from,
            chosen.proxy_shown,
            chosen.proxy_from,
            chosen.offline,
            where,
            variables,
            network.hosts(chosen),
        )

    def overview(self, settings: Settings, jobs: Sequence[JobProgress] = ()) -> Overview:
        """Every pair and file as it is now, with the downloads that are under way, wait, or ended early."""
        from tandem.models.overview import overview  # see the module's docstring

        seen = overview(self._folder(settings), self.catalog(), jobs[0] if jobs else None)
        for job in jobs[1:]:
            seen = with_job(seen, job)
        return seen if self.trouble(settings) is None else msgspec.structs.replace(seen, free=0)

    def download(self, settings: Settings, turn: Turn, report: Report) -> JobProgress:
        """Downloads a pair; see `Download.run`."""
        from tandem.models import tokens  # see the module's docstring
        from tandem.models.download import Download, Options
        from tandem.models.hub import Hub

        pair, store = self.pair(turn.key), self.store(settings)
        if turn.fresh:
            self.drop_parts(settings, turn.key)
        turn.found(_here(pair, store))
        with Hub(self.network(settings), tokens.find(os.environ)) as hub:
            return turn.run(Download(pair, store, hub, Options.chosen(settings), report))

    def drop_parts(self, settings: Settings, key: str) -> None:
        """Removes what has come in of a download that was not finished."""
        store = self.store(settings)
        for file in self.pair(key).files:
            store.remove_part(file)

    def use(self, settings: Settings, key: str) -> PairChoice | None:
        """The installed files of a pair; None where they are not all here."""
        found = self.store(settings).pair_paths(self.pair(key))
        return None if found is None else PairChoice("files", *map(str, found))

    def verify(self, settings: Settings, stop: Stop, report: Report) -> models_work.Verified:
        """See `models_work.verify`."""
        return models_work.verify(self.store(settings), stop, report)

    def look(self, settings: Settings, files: Sequence[str], stop: Stop, report: Report) -> models_work.Looked:
        """See `models_work.look`."""
        return models_work.look(self.store(settings), files, stop, report)

    def take(
        self, settings: Settings, found: Found, how: models_work.How, stop: Stop, report: Report
    ) -> models_work.Taken | None:
        """See `models_work.take`."""
        return models_work.take(self.store(settings), self.catalog(), found, how, stop, report)

    def move(self, now: Callable[[], Settings], folder: str, stop: Stop, report: Report) -> models_work.Moved | None:
        """See `models_work.move`."""
        return models_work.move(self._folder(now()), folder, now, stop, report)

    def remove(self, settings: Settings, name: str, in_use: Sequence[str | None]) -> models_work.Removed:
        """See `models_work.remove`."""
        return models_work.remove(self.store(settings), self.catalog(), name, in_use)

    def places(self) -> list[Known]:
        """GGUF files in the folders of other apps."""
        from tandem.models import places  # see the module's docstring

        return list(places.known())

    def keep_token(self, text: str) -> None:
        """Keeps a sign-in token.

        Raises:
            TransferError: "keyring".
        """
        from tandem.models import tokens  # see the module's docstring

        tokens.keep(text)

    def forget_token(self) -> None:
        """Removes it.

        Raises:
            TransferError: "keyring".
        """
        from tandem.models import tokens  # see the module's docstring

        tokens.forget()


def _here(pair: CatalogPair, store: Store) -> JobProgress:
    """A download before it begins: what is installed, and what is kept of an earlier one."""

    def file(one: CatalogFile) -> FileProgress:
        entry = store.find(one)
        if entry is not None:
            return FileProgress(one.file, FileState.INSTALLED, entry.bytes, entry.bytes)
        return FileProgress(one.file, FileState.QUEUED, store.part_bytes(one), one.size)

    return JobProgress(pair.key, tuple(map(file, pair.files)))


def with_job(seen: Overview, job: JobProgress) -> Overview:
    """An overview with a download that waits for its turn, or ended early; what is on the disk counts for more."""

    def file(view: FileView) -> FileView:
        told = next((one for one in job.files if one.name == view.name), None)
        if told is None or view.state is FileState.INSTALLED or told.state is FileState.INSTALLED:
            return view
        told_why = told.state in (FileState.PAUSED, FileState.FAILED)
        sentence, remedy = (job.sentence, job.remedy) if told_why else ("", "")
        return msgspec.structs.replace(view, state=told.state, sentence=sentence, remedy=remedy)

    def pair(view: PairView) -> PairView:
        if view.key != job.key or view.state is FileState.INSTALLED:
            return view
        target, drafter = map(file, view.files)
        states = {target.state, drafter.state}
        state = next(
            (one for one in (FileState.QUEUED, FileState.FAILED, FileState.PAUSED) if one in states), view.state
        )
        return msgspec.structs.replace(
            view, state=state, files=(target, drafter), sentence=job.sentence, remedy=job.remedy
        )

    return msgspec.structs.replace(seen, pairs=tuple(map(pair, seen.pairs)))
