"""Downloads as the window has them: one after the other, each to be paused, given up and taken up again."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection
from functools import partial
from typing import Literal

import msgspec
from PySide6.QtCore import QObject, Signal, Slot

from tandem.errors import TandemError, UsageError
from tandem.models.errors import TransferError
from tandem.models.progress import JobProgress
from tandem.models.state import ACTIVE, FileState
from tandem.settings import Settings
from tandem.ui.controller_threads import Threads
from tandem.ui.errors_text import localised
from tandem.ui.models_worker import Newest, Turn, Workshop
from tandem.ui.session_state import Notice


class Downloads(QObject):
    """Has pairs downloaded.

    Args:
        threads: Do the work.
        workshop: Knows how.
        settings: Gives the settings as they are now.
        parent: Qt's parent.

    Attributes:
        job: `JobProgress`: the download under way, or the last one as it ended, paused or failed; None when there is
            none, or it ended well or was given up.
        moved_on: A download began, ended, waits, or waits no more.
        ready: Key of a pair that is whole now.
        notice: A `Notice`.
    """

    job = Signal(object)
    moved_on = Signal()
    ready = Signal(str)
    notice = Signal(object)

    def __init__(
        self, threads: Threads, workshop: Workshop, settings: Callable[[], Settings], parent: QObject | None = None
    ) -> None:
        super().__init__(parent)
        self._threads = threads
        self._workshop = workshop
        self._settings = settings
        self._turn: Turn | None = None
        self._queue: deque[Turn] = deque()
        self._ended: dict[str, JobProgress] = {}  # paused or failed since the window was opened, by key
        self.shown: JobProgress | None = None
        """The last news."""

        self._closing = False
        self._dropping: list[str] = []  # keys of pairs whose parts are just being removed
        self._held: Callable[[], None] | None = None
        self._is_held = False
        self._reports = Newest(self)
        self._reports.came.connect(self._on_report)

    @property
    def jobs(self) -> tuple[JobProgress, ...]:
        """The download under way, those that wait, and those that ended early."""
        running = () if self._turn is None or self.shown is None else (self.shown,)
        waiting = tuple(self._workshop.first(turn.key) for turn in self._queue)
        return running + waiting + tuple(self._ended.values())

    @property
    def under_way(self) -> str:
        """Key of the pair that is downloaded now, "" for none."""
        return "" if self._turn is None else self._turn.key

    def download(self, key: str, *, fresh: bool = False) -> None:
        """Downloads a pair, or what of it is missing; see `ModelsKeeper.download`."""
        if self._closing or any(turn.key == key for turn in self._queue):
            return
        try:
            self._workshop.pair(key)
        except TandemError as error:  # a pair that another version of the catalog had
            self._tell(error)
            return
        if self._turn is not None and self._turn.key == key:
            if self._turn.stopped:  # it is about to end: then it goes on
                self._queue.appendleft(Turn(key, fresh=fresh))
            return
        self._ended.pop(key, None)
        self._queue.append(Turn(key, fresh=fresh))
        self._next()
        if not self._queue or not (self._is_held or self.under_way):
            return  # it has begun, or begins in a moment
        name, other = self._workshop.name(key), self._workshop.name(self.under_way)
        if self._is_held:
            text = self.tr("{name} is downloaded as soon as the model folder has moved.").format(name=name)
        else:
            text = self.tr("{name} is downloaded as soon as {other} is done.").format(name=name, other=other)
        self.notice.emit(Notice("info", text))

    @Slot()
    def pause(self) -> None:
        """Pauses the one under way."""
        if self._turn is not None:
            self._drop(self._turn.key)
            self._turn.pause()

    def cancel(self, key: str, *, keep: bool) -> None:
        """Gives one up, whether it is under way, waits, or ended early."""
        self._drop(key)
        if self._turn is not None and self._turn.key == key:
            self._turn.cancel(keep=keep)
            return
        self._ended.pop(key, None)
        if self.shown is not None and self.shown.key == key:
            self._show(None)
        if keep:
            self.moved_on.emit()
            return
        settings = self._settings()

        def dropped(error: TandemError | None = None) -> None:
            self._dropping.remove(key)
            if error is not None:
                self._tell(error)
            self._next()

        self._dropping.append(key)
        self._threads.lists.submit(lambda: self._workshop.drop_parts(settings, key), lambda _: dropped(), dropped)

    def start_again(self, key: str) -> None:
        """Downloads a pair from its first byte."""
        if self._turn is not None and self._turn.key == key:
            self._turn.cancel(keep=False)
            self._drop(key)
            self._queue.appendleft(Turn(key, fresh=True))
        else:
            self.cancel(key, keep=True)
            self.download(key, fresh=True)

    def whole(self, keys: Collection[str]) -> None:
        """These pairs are here, however they came: how their last download ended is of no interest any more."""
        for key in keys:
            self._ended.pop(key, None)
        if self._turn is None and self.shown is not None and self.shown.key in keys:
            self._show(None)

    def limit(self, bytes_per_s: int | None) -> None:
        """Another speed limit from now on; None for none."""
        if self._turn is not None:
            self._turn.limit(bytes_per_s)

    def hold(self, then: Callable[[], None]) -> None:
        """Pauses the one under way and begins none until `go_on`; calls `then` when nothing is at work any more."""
        self._is_held = True
        if self._turn is None:
            then()
            return
        self._held = then
        if not self._turn.stopped:
            self._drop(self._turn.key)
            self._queue.appendleft(Turn(self._turn.key))
        self._turn.pause()

    def go_on(self) -> None:
        """What was held goes on."""
        self._is_held = False
        self._next()

    def shut(self) -> None:
        """Pauses everything, for good."""
        self._closing = True
        self._queue.clear()
        self.pause()

    def _drop(self, key: str) -> None:
        """That pair waits no more."""
        self._queue = deque(turn for turn in self._queue if turn.key != key)

    def _next(self) -> None:
        turn = self._queue[0] if self._queue else None
        held = self._is_held or self._closing or self._turn is not None
        if turn is not None and not held and turn.key not in self._dropping:
            self._turn = self._queue.popleft()
            settings = self._settings()
            self._reports.clear()
            self._show(self._workshop.first(turn.key))
            self._threads.transfers.submit(
                lambda: self._workshop.download(settings, turn, self._reports.put),
                partial(self._on_ended, turn),
                partial(self._on_failed, turn),
            )
        self.moved_on.emit()

    def _on_report(self, progress: JobProgress) -> None:
        if self._turn is not None and progress.key == self._turn.key:
            self._show(progress)

    def _on_ended(self, turn: Turn, progress: JobProgress) -> None:
        states = {file.state for file in progress.files}
        name = self._workshop.name(turn.key)
        if states == {FileState.INSTALLED}:
            self._drop(turn.key)
            self._finish(turn, None)
            if not self._closing:
                text, action = self.tr("{name} is here: both files are checked."), self.tr("Use it now")
                self.notice.emit(Notice("good", text.format(name=name), "", "use-pair", action, turn.key, sticky=True))
                self.ready.emit(turn.key)
        elif states & {FileState.PAUSED, FileState.FAILED, FileState.QUARANTINED}:
            self._finish(turn, progress)
            if progress.sentence and not self._closing:
                self._complain("warn", progress.sentence, progress.remedy)
        else:
            self._finish(turn, None)

    def _on_failed(self, turn: Turn, error: TandemError) -> None:
        before = turn.progress or self._workshop.first(turn.key)
        files = tuple(
            msgspec.structs.replace(file, state=FileState.FAILED) if file.state in ACTIVE else file
            for file in before.files
        )
        fault = "address" if isinstance(error, UsageError) else ""  # the Hub's or the proxy's, which makes no sense
        if isinstance(error, TransferError):
            fault = error.fault
        self._finish(
            turn,
            msgspec.structs.replace(
                before, files=files, waiting=None, sentence=error.sentence, remedy=error.remedy, fault=fault
            ),
        )
        if not self._closing:
            over = any(file.state in (FileState.FAILED, FileState.QUARANTINED) for file in files)
            self._complain("bad" if over else "warn", error.sentence, error.remedy)

    def _finish(self, turn: Turn, left: JobProgress | None) -> None:
        """The download has ended; what is left of it to go on with is remembered."""
        self._turn = None
        self._reports.clear()
        if left is not None and not any(one.key == turn.key for one in self._queue):
            self._ended[turn.key] = left
        self._show(left)
        then, self._held = self._held, None
        if then is not None:
            then()
        self._next()

    def _show(self, progress: JobProgress | None) -> None:
        self.shown = progress
        self.job.emit(progress)

    def _complain(self, kind: Literal["warn", "bad"], sentence: str, remedy: str) -> None:
        action = self.tr("Show the models")
        self.notice.emit(Notice(kind, *localised(sentence, remedy), "open-models", action))

    def _tell(self, error: TandemError) -> None:
        self.notice.emit(Notice("bad", *localised(error.sentence, error.remedy)))
        self.moved_on.emit()
