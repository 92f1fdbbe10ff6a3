"""One window a profile: a second start raises the first one's window and ends.

Two windows on one database would each hold an engine and overwrite each other's settings. The first one listens on a
local socket named after the profile's folder; a second one finds it answering.
"""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Final

from PySide6.QtCore import QObject, Signal
from PySide6.QtNetwork import QLocalServer, QLocalSocket

_WAIT_MS: Final = 500
_RAISE: Final = b"raise\n"


class SingleInstance(QObject):
    """Claims a profile.

    Args:
        folder: The profile's data folder.
        parent: Owner.
    """

    raised = Signal()
    """Another start asked for this window."""

    def __init__(self, folder: Path, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._name = "tandem-" + hashlib.sha256(str(folder).encode("utf-8", "surrogateescape")).hexdigest()[:24]
        self._server = QLocalServer(self)
        self._server.setSocketOptions(QLocalServer.SocketOption.UserAccessOption)
        self._server.newConnection.connect(self._connected)

    def claim(self) -> bool:
        """Whether this is the first window; if not, the first one was asked to show itself."""
        socket = QLocalSocket()
        socket.connectToServer(self._name)
        if socket.waitForConnected(_WAIT_MS):
            socket.write(_RAISE)
            socket.waitForBytesWritten(_WAIT_MS)
            socket.disconnectFromServer()
            return False
        QLocalServer.removeServer(self._name)  # what a killed window left
        # Without a socket (a full or read-only temporary folder) the window opens all the same.
        self._server.listen(self._name)
        return True

    def release(self) -> None:
        """Stops listening."""
        self._server.close()

    def _connected(self) -> None:
        while (socket := self._server.nextPendingConnection()) is not None:
            socket.disconnected.connect(socket.deleteLater)
            socket.disconnectFromServer()
            self.raised.emit()
