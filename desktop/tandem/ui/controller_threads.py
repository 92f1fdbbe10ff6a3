"""All threads of the window: made in one place, ended in stages, joined."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Final

from PySide6.QtCore import QObject, QTimer, Signal, Slot

from tandem import paths
from tandem.ui.engine_worker import EngineWorker
from tandem.ui.store_worker import StoreWorker
from tandem.ui.workers import Faults, JobThread

_JOIN_S: Final = 8.0
_POLL_MS: Final = 50


class Threads(QObject):
    """The threads, and the place for faults in any of them.

    Args:
        parent: Qt's parent.
        hang_after_s: Seconds of silence after which a busy engine is ended.
        database: Where the chats are; None takes the usual place.

    Raises:
        TandemError: The log folder cannot be made.

    Attributes:
        closed: All have ended, and the engine's process too.
    """

    closed = Signal()

    def __init__(self, parent: QObject, hang_after_s: float, database: Path | None) -> None:
        super().__init__(parent)
        logs = paths.log_dir()
        self.faults: Final = Faults(logs, self)
        self.store: Final = StoreWorker(self.faults, self, database)
        self.engine: Final = EngineWorker(logs, self.faults, self, hang_after_s)
        self.chores: Final = JobThread("chores", self.faults, self)
        """For what takes a while and has nothing to do with chats: a first message must not wait for it."""

        self.lists: Final = JobThread("model lists", self.faults, self)
        """For looking at model files without reading them, which is quick."""

        self.transfers: Final = JobThread("transfers", self.faults, self)
        """For downloads."""

        self.checks: Final = JobThread("file checks", self.faults, self)
        """For hashing, copying and moving model files, which can take minutes."""

        # Nobody waits for these before the window is gone, but the process does before it ends.
        self._others = (self.chores, self.lists, self.transfers, self.checks)
        self.all: Final[tuple[JobThread, ...]] = (self.engine, self.store, *self._others)

        self._closing = False
        self._closed = False
        for thread in (self.engine, self.store):
            thread.finished.connect(self._on_finished)

    def start(self) -> None:
        """Starts them, unless they are to end already."""
        if not self._closing:
            self.store.start()
            self.engine.start()
            for thread in self._others:
                thread.start()

    def shut(self) -> None:
        """Asks them to end after what they have to finish. Returns at once; `closed` tells the end."""
        if self._closing:
            return
        self._closing = True
        self.engine.shut()
        self.store.shut()
        for thread in self._others:
            thread.shut()
        QTimer.singleShot(0, self, self._on_finished)  # they may never have been started

    def join(self) -> bool:
        """Waits for their end without an event loop, and kills the engine when it takes its time.

        Returns:
            Whether all have ended.
        """
        self.shut()
        until = time.monotonic() + _JOIN_S
        kill_from = time.monotonic() + 1.0
        while not all(thread.wait(_POLL_MS) for thread in self.all):
            if time.monotonic() > until:
                return False
            if time.monotonic() > kill_from:
                self.engine.kill()
        self._on_finished()
        return True

    @Slot()
    def _on_finished(self) -> None:
        if self._closed or not self._closing or self.engine.isRunning() or self.store.isRunning():
            return
        self._closed = True
        for thread in (self.engine, self.store):
            thread.wait()  # `finished` comes a moment before the end
        self.faults.close()
        self.closed.emit()
