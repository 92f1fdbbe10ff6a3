"""The thread that owns what must last: the chats' database and the settings file."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Final, TypeVar

import msgspec
from PySide6.QtCore import QObject, Signal

from tandem import settings
from tandem.chat.conversation import Hit
from tandem.chat.history import History
from tandem.errors import TandemError
from tandem.settings import Settings
from tandem.ui.workers import Faults, JobThread

_SLOW: Final = 10
"""Urgency of work that takes seconds, such as an export: whatever waits goes first."""

_T = TypeVar("_T")


class GaveUp(Exception):
    """Long work ended early because the app closes."""


class Opened(msgspec.Struct, frozen=True):
    """What was found at the start.

    Attributes:
        settings: The settings, and what was wrong with their file.
        set_aside: Where a damaged database was kept; a new one is in use.
        problem: Why there is no database: chats can neither be read nor written.
    """

    settings: settings.Loaded
    set_aside: Path | None = None
    problem: TandemError | None = None


class StoreWorker(JobThread):
    """Owns the history; everything that touches it runs here, one after the other.

    Args:
        faults: Gets errors that nobody expected.
        parent: Qt's parent.
        database: Where the chats are; None takes the usual place.

    Attributes:
        opened_late: The chats, which could not be opened at the start, are open now: where a damaged database was kept,
            and the unsent text of a new chat as it was at the last end.
    """

    opened_late = Signal(object, str)

    def __init__(self, faults: Faults, parent: QObject | None = None, database: Path | None = None) -> None:
        super().__init__("store worker", faults, parent)
        self._database = database
        self._history: History | None = None
        self._problem: TandemError | None = None
        self._newest_search = ""
        self._newest_settings: Settings | None = None
        self.ending: Final = threading.Event()
        """Set when the app closes: long work gives up then."""

    def open(self, known: settings.Loaded | None, done: Callable[[Opened], None]) -> None:
        """Reads the settings, unless they are known, and opens the chats; an error in one does not stop the other."""
        self.submit(lambda: self._open(known), done)

    def ask(
        self,
        job: Callable[[History], _T],
        done: Callable[[_T], None] | None = None,
        failed: Callable[[TandemError], None] | None = None,
        *,
        slow: bool = False,
    ) -> None:
        """Does something with the history; see `JobThread.submit`.

        Args:
            job: What to do.
            done: Gets what it gave, in the GUI thread.
            failed: Gets the error, in the GUI thread; also when there is no history.
            slow: Whatever else waits goes first.
        """
        self.submit(lambda: job(self._opened()), done, failed, urgency=_SLOW if slow else 0)

    def search(
        self, text: str, done: Callable[[list[Hit]], None], failed: Callable[[TandemError], None] | None = None
    ) -> None:
        """Searches, unless another search is asked for before its turn comes: then `done` is not called."""
        self._newest_search = text

        def job() -> list[Hit] | None:
            return self._opened().search(text) if self._newest_search == text else None

        def found(hits: list[Hit] | None) -> None:
            if hits is not None and self._newest_search == text:
                done(hits)

        self.submit(job, found, failed)

    def forget_search(self) -> None:
        """Nobody waits for a search any more."""
        self._newest_search = ""

    def breathe(self) -> None:
        """For long work, in this thread and outside a transaction: what is more urgent has its turn now.

        Raises:
            GaveUp: The app closes.
        """
        self.give_up_if_ending()
        while True:
            try:
                waiting = self._jobs.get_nowait()
            except queue.Empty:
                return
            if waiting[2] is None or waiting[0] >= _SLOW:
                self._jobs.put(waiting)
                return
            self._put(waiting[2]())

    def give_up_if_ending(self) -> None:
        """For long work, in this thread.

        Raises:
            GaveUp: The app closes.
        """
        if self.ending.is_set():
            raise GaveUp

    def save_settings(self, changed: Settings, failed: Callable[[TandemError], None]) -> None:
        """Writes the settings; of several that wait only the last are written."""
        self._newest_settings = changed

        def job() -> None:
            if self._newest_settings is changed:
                settings.save(changed)

        self.submit(job, failed=failed)

    def shut(self) -> None:
        """Ends the thread after what waits; long work gives up."""
        self.ending.set()
        super().shut()

    def _open(self, known: settings.Loaded | None) -> Opened:
        found = known or settings.load_anyway()
        if found.problem is not None:
            self._faults.note(self.objectName(), found.problem)
        try:
            self._history = History.open(self._database)
        except TandemError as error:
            self._faults.note(self.objectName(), error)
            self._problem = error
            return Opened(found, problem=error)
        return Opened(found, self._history.opened.set_aside)

    def _opened(self) -> History:
        """The history; one that could not be opened is tried again, for there may be room on the disk by now."""
        if self._history is not None:
            return self._history
        if self._problem is None:
            raise TandemError("The chats are not open.", "Start Tandem again.")
        self._history = History.open(self._database)
        self.opened_late.emit(self._history.opened.set_aside, self._history.draft())
        return self._history

    def _last(self) -> None:
        if self._history is not None:
            self._history.close()
