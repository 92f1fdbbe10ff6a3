"""The mouse on the transcript's links: what they say, and what happens when they go."""

from __future__ import annotations

import pytest
from PySide6.QtCore import QEvent, QPoint
from PySide6.QtGui import QHelpEvent
from PySide6.QtWidgets import QApplication, QToolTip
from pytestqt.qtbot import QtBot

from support.transcripts import answer, figures, links, point_of, settle, shown, user
from tandem.ui.transcript import Transcript

PATH = [user(1), answer(2, figures=figures())]


@pytest.mark.qt_log_ignore(r"This plugin does not support raise\(\)")  # the platform without a screen
@pytest.mark.parametrize(
    ("act", "tip"),
    [
        ("copy", "Copy"),
        ("edit", "Edit"),
        ("regenerate", "Answer again"),
        ("previous", "Previous version"),
        ("next", "Next version"),
    ],
)
def test_all_of_an_icon_says_what_it_does(qtbot: QtBot, act: str, tip: str) -> None:
    view = shown(qtbot)
    view.show_path(PATH, {2: (2, 3)})
    settle(qtbot, view)
    link = links(view, act)[-1]
    view.show_position(link.start)
    middle = point_of(view, link)
    half = view.look.icon // 2 - 2
    for aside in (-half, 0, half):
        QToolTip.showText(QPoint(0, 0), f"something else than {tip}", view)
        place = middle + QPoint(aside, 0)
        rest_on(view, place)
        assert (aside, QToolTip.text()) == (aside, tip)
    rest_on(view, middle + QPoint(0, 3 * view.look.icon))
    qtbot.waitUntil(lambda: not QToolTip.isVisible())


def rest_on(view: Transcript, place: QPoint) -> None:
    """What happens when the mouse stays at a point of the viewport."""
    event = QHelpEvent(QEvent.Type.ToolTip, place, view.viewport().mapToGlobal(place))
    QApplication.sendEvent(view.viewport(), event)


# Each of these takes away what the mouse is on, and paints; a warning of Qt's about a place that is not there fails it.
@pytest.mark.parametrize("change", ["cut", "drafted", "clear"])
def test_text_may_go_from_under_the_mouse(qtbot: QtBot, change: str) -> None:
    view = shown(qtbot)
    view.show_path(PATH, {})
    settle(qtbot, view)
    link = links(view, "regenerate")[0]
    view.show_position(link.start)
    qtbot.mouseMove(view.viewport(), point_of(view, link) - QPoint(0, 60))
    before = view.grab().toImage()
    qtbot.mouseMove(view.viewport(), point_of(view, link))
    assert view.grab().toImage() != before  # the icon is marked
    if change == "cut":
        view.show_path(PATH[:1], {})
    elif change == "drafted":
        view.show_drafted(True)
    else:
        view.show_path([], {})
    view.grab()
    settle(qtbot, view)
    view.grab()
