"""Messages go to disk; one that cannot is kept in memory and tried again."""

from __future__ import annotations

from typing import Final

from PySide6.QtCore import QObject, QTimer, Signal, Slot

from tandem.chat.conversation import Node
from tandem.chat.errors import Gone
from tandem.errors import TandemError
from tandem.ui.errors_text import localised
from tandem.ui.session_state import Notice
from tandem.ui.store_worker import StoreWorker

RETRY_MS: Final = 5000


class NodeSaver(QObject):
    """Saves messages.

    Args:
        store: Owns the history.
        parent: Qt's parent.

    Attributes:
        notice: A `Notice`: a message cannot be saved, told once until one could be saved again.
    """

    notice = Signal(object)

    def __init__(self, store: StoreWorker, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._store = store
        self._unsaved: dict[int, Node] = {}
        self._told = False
        self._retry = QTimer(self)
        self._retry.setInterval(RETRY_MS)
        self._retry.timeout.connect(self._again)

    @property
    def unsaved(self) -> int:
        """Messages of which the store has only an older version."""
        return len(self._unsaved)

    def save(self, node: Node) -> None:
        """Saves a message as it is now; the one before of the same id need not be saved any more."""

        def on_saved(_: object) -> None:
            if self._unsaved.get(node.id) is node:
                del self._unsaved[node.id]
            if not self._unsaved:
                self._told = False
                self._retry.stop()

        self._unsaved[node.id] = node

        def on_unsaved(error: TandemError) -> None:
            if isinstance(error, Gone):  # its chat was deleted for good meanwhile: there is nowhere to save it
                on_saved(None)
            else:
                self._on_unsaved(error)

        self._store.ask(lambda history: history.save(node), on_saved, on_unsaved)

    def shut(self) -> None:
        """A last try for what is not saved; nothing is tried again after it."""
        self._retry.stop()
        self._told = True
        self._again()

    def _on_unsaved(self, error: TandemError) -> None:
        if self._told:
            return
        self._told = True
        self._retry.start()
        text, remedy = localised(error.sentence, error.remedy)
        self.notice.emit(Notice("bad", text, remedy, sticky=True))

    @Slot()
    def _again(self) -> None:
        for node in list(self._unsaved.values()):
            self.save(node)
