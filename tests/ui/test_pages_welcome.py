"""The pages Welcome and Compare, and an empty chat: what they show of a state, and what they ask for."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from PySide6.QtCore import QEvent
from PySide6.QtWidgets import QApplication, QWidget
from pytestqt.qtbot import QtBot

from support import model_views
from tandem.hardware.machine import NEEDS, Machine
from tandem.models.state import FileState
from tandem.ui import i18n
from tandem.ui.chat_welcome import Suggestions
from tandem.ui.compare_page import ComparePage
from tandem.ui.session_state import LoadState
from tandem.ui.theme import ThemeManager
from tandem.ui.welcome import WelcomePage

GIB = 1 << 30
LAPTOP = Machine("A processor", 4, 8, 8 * GIB, 4 * GIB, "Linux 6")
LARGE = Machine("A processor", 16, 32, 64 * GIB, 48 * GIB, "Linux 6")
SMALL = Machine("A processor", 1, 1, 2 * GIB, GIB, "Linux 6")


@pytest.fixture
def manager(qapp: QApplication) -> Iterator[ThemeManager]:
    made = ThemeManager(qapp)
    made.apply(qapp, "light")
    yield made
    made.deleteLater()


def _show(page: QWidget, qtbot: QtBot) -> None:
    qtbot.addWidget(page)
    page.resize(1000, 700)
    page.show()


@pytest.fixture
def welcome(manager: ThemeManager, qtbot: QtBot) -> WelcomePage:
    page = WelcomePage(manager)
    _show(page, qtbot)
    return page


@pytest.fixture
def compare(manager: ThemeManager, qtbot: QtBot) -> ComparePage:
    page = ComparePage(manager)
    _show(page, qtbot)
    return page


def test_welcome_says_what_this_machine_can_run(welcome: WelcomePage) -> None:
    welcome.set_machine(LAPTOP)
    assert [fit.fit for fit in welcome.fits] == ["fits", "tight"]
    assert welcome.advice.text() == "This machine can run Gemma 4 E2B."
    assert "A processor" in welcome.here.text()
    welcome.set_machine(SMALL)
    assert [fit.fit for fit in welcome.fits] == ["too-large", "too-large"]
    assert "too little memory" in welcome.advice.text()


@pytest.mark.parametrize(
    ("machine", "best", "other"), [(None, "e2b", None), (LAPTOP, "e2b", "e4b"), (LARGE, "e4b", "e2b")]
)
def test_welcome_offers_the_model_that_fits_best_and_the_other_one(
    welcome: WelcomePage, qtbot: QtBot, machine: Machine | None, best: str, other: str | None
) -> None:
    if machine is not None:
        welcome.set_machine(machine)
    with qtbot.waitSignal(welcome.download_requested) as said:
        welcome.download.click()
    assert said.args == [best]
    assert i18n.size(next(need for need in NEEDS if need.key == best).weights) in welcome.download.text()
    offered = [key for key, button in welcome.others.items() if button.isVisible()]
    assert offered == ([other] if other else [])
    if other:
        with qtbot.waitSignal(welcome.download_requested) as said:
            welcome.others[other].click()
        assert said.args == [other]


def test_welcome_offers_no_download_to_a_machine_that_is_too_small(welcome: WelcomePage) -> None:
    welcome.set_machine(SMALL)
    assert not welcome.download.isVisible()
    assert not any(button.isVisible() for button in welcome.others.values())
    assert welcome.demo.isVisible()


def test_welcome_shows_the_download_and_why_it_failed(welcome: WelcomePage) -> None:
    welcome.set_machine(LAPTOP)
    welcome.set_job(model_views.job("e2b", FileState.TRANSFERRING, bytes_per_s=1024.0 * 1024, left_s=600.0))
    assert welcome.transfer.isVisible()
    assert "10 min left" in welcome.transfer.text
    assert not welcome.download.isEnabled()
    welcome.set_job(model_views.job("e2b", FileState.FAILED, sentence="It is broken.", remedy="Mend it."))
    assert (welcome.problem.text, welcome.problem.more) == ("It is broken.", "Mend it.")
    welcome.set_job(None)
    assert not welcome.transfer.isVisible()
    assert not welcome.problem.isVisible()
    assert welcome.download.isEnabled()


def test_an_empty_chat_with_the_demo_offers_a_real_model(manager: ThemeManager, qtbot: QtBot) -> None:
    page = Suggestions(manager)
    _show(page, qtbot)
    assert not page.download.isVisible()
    page.set_demo(True)
    assert page.download.isVisible()
    with qtbot.waitSignal(page.download_requested) as said:
        page.download.click()
    assert said.args == ["e2b"]
    page.set_overview(model_views.overview(model_views.pair_view("e4b", FileState.PAUSED)))
    assert not page.download.isVisible()
    page.set_overview(model_views.overview())
    assert page.download.isVisible()
    page.set_machine(LARGE)
    assert "Gemma 4 E4B" in page.download.text()
    page.set_machine(SMALL)
    assert not page.download.isVisible()
    page.set_machine(LAPTOP)
    page.set_demo(False)
    assert not page.download.isVisible()


def test_welcome_offers_the_demo_and_files(welcome: WelcomePage, qtbot: QtBot) -> None:
    with qtbot.waitSignal(welcome.demo_requested):
        welcome.demo.click()
    with qtbot.waitSignal(welcome.files_requested):
        welcome.files.click()


def test_welcome_shows_the_load_and_why_it_failed(welcome: WelcomePage, qtbot: QtBot) -> None:
    assert not welcome.progress.isVisible()
    welcome.set_load(LoadState("starting"))
    assert welcome.progress.isVisible()
    assert not welcome.demo.isEnabled()
    with qtbot.waitSignal(welcome.cancel_load_requested):
        welcome.progress.cancel.click()
    welcome.set_load(LoadState("failed", sentence="It is broken.", remedy="Mend it."))
    assert not welcome.progress.isVisible()
    assert welcome.demo.isEnabled()
    assert (welcome.problem.text, welcome.problem.more) == ("It is broken.", "Mend it.")
    welcome.set_load(LoadState("starting"))
    assert not welcome.problem.isVisible()


def test_compare_does_what_it_says_and_nothing_else(compare: ComparePage, qtbot: QtBot) -> None:
    assert not compare.without.isEnabled()
    assert "no question" in compare.reason
    compare.set_state(question=True, drafter=True, running=False)
    assert compare.reason == ""
    for button, drafter in ((compare.without, False), (compare.with_drafter, True)):
        with qtbot.waitSignal(compare.again_requested) as said:
            button.click()
        assert said.args == [drafter]


@pytest.mark.parametrize(
    ("question", "drafter", "running", "enabled", "word"),
    [
        (False, True, False, (False, False), "question"),
        (True, False, False, (True, False), "drafter"),
        (True, True, True, (False, False), "running"),
    ],
)
def test_compare_says_why_a_button_cannot_be_used(
    compare: ComparePage, question: bool, drafter: bool, running: bool, enabled: tuple[bool, bool], word: str
) -> None:
    compare.set_state(question, drafter, running)
    assert (compare.without.isEnabled(), compare.with_drafter.isEnabled()) == enabled
    assert word in compare.reason


def test_they_speak_the_other_language_at_once(welcome: WelcomePage, compare: ComparePage, qapp: QApplication) -> None:
    welcome.set_machine(LAPTOP)
    i18n.install(qapp, "pseudo")
    for page in (welcome, compare):
        QApplication.sendEvent(page, QEvent(QEvent.Type.LanguageChange))
    assert welcome.advice.text() == i18n.pseudo("This machine can run {name}.").format(name="Gemma 4 E2B")
    assert compare.reason == i18n.pseudo("The open chat has no question yet.")
