"""The settings while the app runs: changed in one place, stored in the background."""

from __future__ import annotations

from typing import Any

from PySide6.QtCore import QObject, Signal

from tandem.errors import TandemError
from tandem.settings import Loaded, Settings
from tandem.ui.errors_text import localised
from tandem.ui.session_state import Notice
from tandem.ui.store_worker import StoreWorker


class Preferences(QObject):
    """Holds the settings.

    Args:
        store: Writes them.
        known: Settings that were read already, if they were.
        parent: Qt's parent.

    Attributes:
        changed: The `Settings` as they are now.
        notice: A `Notice`.
    """

    changed = Signal(object)
    notice = Signal(object)

    def __init__(self, store: StoreWorker, known: Loaded | None, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._store = store
        self._known = known is not None
        self.now = Settings() if known is None else known.settings

    def get(self) -> Settings:
        """The settings as they are now."""
        return self.now

    def adopt(self, found: Loaded) -> None:
        """Takes settings that were read, and says what was wrong with their file.

        Those that were known before, and may have been changed since, stay.
        """
        if not self._known:
            self.now = found.settings
        self.changed.emit(self.now)
        if found.set_aside is not None:
            text = self.tr("The file with your settings could not be used as it is. It is kept as {path}.")
            self.notice.emit(Notice("warn", text.format(path=found.set_aside), sticky=True))
        if found.problem is not None:
            self._tell(found.problem, sticky=True)
        if found.defaulted:
            text = self.tr("Some settings made no sense and have their default now: {names}.")
            self.notice.emit(Notice("warn", text.format(names=", ".join(found.defaulted))))

    def change(self, **fields: Any) -> None:
        """Changes settings and stores them; a value that makes no sense changes nothing and is told."""
        try:
            after = self.now.changed(**fields)
        except TandemError as error:
            self._tell(error)
            return
        if after != self.now:
            self.now = after
            self._store.save_settings(after, self._tell)
            self.changed.emit(after)

    def _tell(self, error: TandemError, sticky: bool = False) -> None:
        self.notice.emit(Notice("bad", *localised(error.sentence, error.remedy), sticky=sticky))
