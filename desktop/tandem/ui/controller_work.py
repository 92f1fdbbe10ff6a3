"""Work on model files as the window has it: checks, imports, moves. One after the other, each can be stopped."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, TypeVar

from PySide6.QtCore import QObject, Signal

from tandem.errors import TandemError
from tandem.models.progress import JobProgress
from tandem.models.stop import Stop
from tandem.settings import Settings
from tandem.ui.controller_threads import Threads
from tandem.ui.errors_text import localised
from tandem.ui.models_work import How, Looked, Moved, Taken, Verified
from tandem.ui.models_worker import Newest, Workshop
from tandem.ui.session_state import Notice

if TYPE_CHECKING:
    from tandem.models.imports import Found

_T = TypeVar("_T")


class FileWork(QObject):
    """Has files hashed, taken in and moved.

    Args:
        threads: Do the work.
        workshop: Knows how.
        settings: Gives the settings as they are now.
        parent: Qt's parent.

    Attributes:
        checking: `JobProgress` of what is under way; None when all of it has ended.
        found: `list[Found]`: files that were looked at.
        ended: Some work has ended: the files may be others now.
        notice: A `Notice`.
    """

    checking = Signal(object)
    found = Signal(object)
    ended = Signal()
    notice = Signal(object)

    def __init__(
        self, threads: Threads, workshop: Workshop, settings: Callable[[], Settings], parent: QObject | None = None
    ) -> None:
        super().__init__(parent)
        self._threads = threads
        self._workshop = workshop
        self._settings = settings
        self._stops: list[Stop] = []  # of the work under way and of what waits
        self.progress: JobProgress | None = None
        """How far the work under way is."""

        self._verifying = False
        self._closing = False
        self._reports = Newest(self)
        self._reports.came.connect(self._on_report)

    @property
    def busy(self) -> bool:
        """Whether any work is under way or waits."""
        return bool(self._stops)

    def verify(self) -> None:
        """Hashes every installed file again, unless that is under way."""
        if not self._verifying:
            self._verifying = True
            self._begin(
                lambda settings, stop: self._workshop.verify(settings, stop, self._reports.put), self._on_verified
            )

    def look(self, paths: Sequence[str]) -> None:
        """Looks at files, and into folders for them."""
        wanted = list(paths)
        self._begin(
            lambda settings, stop: self._workshop.look(settings, wanted, stop, self._reports.put), self._on_looked
        )

    def take(self, found: Found, how: How) -> None:
        """Takes a file in that was looked at."""
        self._begin(
            lambda settings, stop: self._workshop.take(settings, found, how, stop, self._reports.put), self._on_taken
        )

    def move(self, folder: str, done: Callable[[Moved | None], None]) -> None:
        """Moves the model folder; `done` gets None when that failed, or was stopped."""
        self._begin(lambda _, stop: self._workshop.move(self._settings, folder, stop, self._reports.put), done)

    def stop(self) -> None:
        """Ends the work under way, and what waits is not begun."""
        for stop in self._stops:
            stop.set("cancel")

    def shut(self) -> None:
        """Ends all work soon, for good; a copy keeps what it has."""
        self._closing = True
        for stop in self._stops:
            stop.set("pause")

    def _begin(self, job: Callable[[Settings, Stop], _T], done: Callable[[_T | None], None]) -> None:
        settings, stop = self._settings(), Stop()

        def ended(result: _T | None) -> None:
            self._stops.remove(stop)
            self._reports.clear()
            if not self._stops:
                self._show(None)
            done(result)
            self.ended.emit()

        def failed(error: TandemError) -> None:
            if not stop.why:
                self._complain(error.sentence, error.remedy)
            ended(None)

        if self._closing:
            return
        self._stops.append(stop)
        self._threads.checks.submit(lambda: None if stop.why else job(settings, stop), ended, failed)

    def _on_report(self, progress: JobProgress) -> None:
        if self._stops:
            self._show(progress)

    def _show(self, progress: JobProgress | None) -> None:
        self.progress = progress
        self.checking.emit(progress)

    def _on_verified(self, verified: Verified | None) -> None:
        self._verifying = False
        if verified is None or self._closing:
            return
        for sentence, remedy in verified.problems:
            self._complain(sentence, remedy)
        if verified.stopped:
            text = self.tr("The check was stopped; %n file(s) were found intact.", "", verified.good)
            self.notice.emit(Notice("info", text))
        elif not verified.problems:
            text = self.tr("%n file(s) checked: no fault found.", "", verified.good)
            self.notice.emit(Notice("good", text))

    def _on_looked(self, looked: Looked | None) -> None:
        if looked is None or self._closing:
            return
        for error in looked.errors:
            self._complain(error.sentence, error.remedy)
        if not looked.found and not looked.errors and not looked.stopped:
            text, remedy = self.tr("There is no GGUF file there."), self.tr("Choose files whose names end in .gguf.")
            self.notice.emit(Notice("warn", text, remedy, "open-models", self.tr("Show the models")))
        self.found.emit(looked.found)

    def _on_taken(self, taken: Taken | None) -> None:
        if taken is None or self._closing:
            return
        note, _ = localised(taken.note)
        if not taken.complete:
            self.notice.emit(Notice("good", self.tr("{name} was taken in.").format(name=taken.name), note))
            return
        text = self.tr("{name} is complete: target and drafter are here.")
        text, action = text.format(name=self._workshop.name(taken.complete)), self.tr("Use it now")
        self.notice.emit(Notice("good", text, note, "use-pair", action, taken.complete, sticky=True))

    def _complain(self, sentence: str, remedy: str) -> None:
        if not self._closing:
            action = self.tr("Show the models")
            self.notice.emit(Notice("bad", *localised(sentence, remedy), "open-models", action))
