"""Messages of Qt's that come when pytest-qt is not listening: it stops at the end of a test's call, before teardown."""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence

from PySide6.QtCore import QMessageLogContext, QtMsgType, qInstallMessageHandler

_BAD = (QtMsgType.QtWarningMsg, QtMsgType.QtCriticalMsg, QtMsgType.QtFatalMsg)
_messages: list[str] = []


def _handle(kind: QtMsgType, context: QMessageLogContext, message: str | None) -> None:
    line = f"{kind.name}: {context.category or 'default'}: {message}"
    print(line, file=sys.stderr)
    if kind in _BAD:
        _messages.append(line)


def listen() -> None:
    """Listens from now on, whenever nobody else does. pytest-qt gives the messages back to us when it stops."""
    qInstallMessageHandler(_handle)


def take(ignore: Sequence[str] = ()) -> list[str]:
    """Messages of warning level or worse since the last call, without those that match one of the expressions."""
    taken = [line for line in _messages if not any(re.search(pattern, line) for pattern in ignore)]
    _messages.clear()
    return taken
