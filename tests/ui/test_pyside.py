"""The binding itself: a fault of PySide6 6.12.0's that ends the process after some thousands of calls."""

from __future__ import annotations

import sys
from collections.abc import Callable

import pytest
from PySide6.QtCore import QObject, QRect, QSize, QTimer, Signal
from PySide6.QtGui import QColor, QImage, QPainter, QTextCursor, QTextDocument
from PySide6.QtWidgets import QWidget
from pytestqt.qtbot import QtBot

CALLS = 1_000


class Sender(QObject):
    sent = Signal()


class Receiver(QWidget):
    """Python code that Qt calls, which gives None back to it."""

    def resizeEvent(self, event: object) -> None:  # noqa: N802  (Qt's name)
        pass

    def heard(self) -> None:
        pass


def set_interval(receiver: Receiver) -> Callable[[], object]:
    timer = QTimer(receiver)
    return lambda: timer.setInterval(5)


def set_name(receiver: Receiver) -> Callable[[], object]:
    return lambda: receiver.setObjectName("name")


def update(receiver: Receiver) -> Callable[[], object]:
    return receiver.update


def emit(receiver: Receiver) -> Callable[[], object]:
    sender = Sender(receiver)
    sender.sent.connect(receiver.heard)
    return sender.sent.emit


def resize(receiver: Receiver) -> Callable[[], object]:
    receiver.show()  # only a window that is seen is told of each size
    sizes = [QSize(200, 200), QSize(210, 210)]

    def call() -> None:
        sizes.reverse()
        receiver.resize(sizes[0])

    return call


def paint(_receiver: Receiver) -> Callable[[], object]:
    image = QImage(8, 8, QImage.Format.Format_RGB32)

    def call() -> None:
        painter = QPainter(image)
        painter.fillRect(QRect(0, 0, 4, 4), QColor("red"))
        painter.end()

    return call


def write(receiver: Receiver) -> Callable[[], object]:
    cursor = QTextCursor(QTextDocument(receiver))
    return lambda: cursor.insertText("a")


@pytest.mark.parametrize("make", [set_interval, set_name, update, emit, resize, paint, write])
def test_none_keeps_its_references(make: Callable[[Receiver], Callable[[], object]], qtbot: QtBot) -> None:
    receiver = Receiver()
    qtbot.addWidget(receiver)
    call = make(receiver)
    call()
    before = sys.getrefcount(None)
    for _ in range(CALLS):
        call()
    assert sys.getrefcount(None) > before - CALLS // 10
