"""The pages Welcome and Compare, and an empty chat: what they show of a state, and what they ask for."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from PySide6.QtCore import QEvent
from PySide6.QtWidgets import QApplication, QWidget
from pytestqt.qtbot import QtBot

from support import model_views
from tandem.hardware.machine import NEEDS, Machine
from tandem.models.catalog import catalog
from tandem.models.state import FileState
from tandem.ui import i18n
from tandem.ui.chat_welcome import Suggestions
from tandem.ui.compare_page import ComparePage
from tandem.ui.models_card import ModelCard
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


@pytest.mark.parametrize(("machine", "best", "other"), [(LAPTOP, "e2b", "e4b"), (LARGE, "e4b", "e2b")])
def test_welcome_offers_the_model_that_fits_best_and_the_other_one(
    welcome: WelcomePage, qtbot: QtBot, machine: Machine, best: str, other: str
) -> None:
    welcome.set_machine(machine)
    with qtbot.waitSignal(welcome.download_requested) as said:
        welcome.download.click()
    assert said.args == [best]
    assert i18n.size(next(need for need in NEEDS if need.key == best).weights) in welcome.download.text()
    offered = [key for key, button in welcome.others.items() if button.isVisible()]
    assert offered == [other]
    with qtbot.waitSignal(welcome.download_requested) as said:
        welcome.others[other].click()
    assert said.args == [other]


@pytest.mark.parametrize("kind", ["welcome", "chat"])
def test_before_this_machine_is_known_no_size_is_named(
    manager: ThemeManager, welcome: WelcomePage, qtbot: QtBot, kind: str
) -> None:
    page: WelcomePage | Suggestions = welcome
    if kind == "chat":
        page = Suggestions(manager)
        _show(page, qtbot)
        page.set_demo(True)
    assert page.download.text() == "Download Gemma 4"
    with qtbot.waitSignal(page.models_requested), qtbot.assertNotEmitted(page.download_requested):
        page.download.click()
    page.set_machine(LARGE)
    assert "E4B" in page.download.text()


def test_offline_no_download_is_offered_and_the_welcome_says_why(welcome: WelcomePage) -> None:
    welcome.set_machine(LAPTOP)
    welcome.set_network(model_views.OFFLINE)
    assert not welcome.download.isEnabled()
    assert not any(button.isVisible() for button in welcome.others.values())
    assert "HF_HUB_OFFLINE" in welcome.coming.text()
    welcome.set_network(model_views.MIRROR)
    assert welcome.download.isEnabled()
    assert welcome.others["e4b"].isVisible()
    assert "HF_HUB_OFFLINE" not in welcome.coming.text()


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
    assert "Gemma 4 E2B · Downloading" in welcome.transfer.text
    assert not any(button.isVisible() for button in welcome.others.values())
    welcome.set_job(model_views.job("e2b", FileState.FAILED, sentence="It is broken.", remedy="Mend it."))
    assert (welcome.problem.text, welcome.problem.more, welcome.problem.kind) == ("It is broken.", "Mend it.", "bad")
    assert welcome.others["e4b"].isVisible()
    welcome.set_job(None)
    assert not welcome.transfer.isVisible()
    assert not welcome.problem.isVisible()
    assert welcome.download.isEnabled()


@pytest.mark.parametrize(
    ("state", "text", "signal", "arguments"),
    [
        (FileState.QUEUED, "Cancel", "cancel_requested", ["e4b", True]),
        (FileState.RESOLVING, "Pause", "pause_requested", []),
        (FileState.TRANSFERRING, "Pause", "pause_requested", []),
        (FileState.CHECKING, "Pause", "pause_requested", []),
        (FileState.PAUSED, "Resume", "resume_requested", ["e4b"]),
        (FileState.FAILED, "Try again", "resume_requested", ["e4b"]),
        (FileState.QUARANTINED, "Start again", "start_again_requested", ["e4b"]),
    ],
)
def test_the_welcome_s_button_is_what_can_be_done_about_the_download(
    welcome: WelcomePage, qtbot: QtBot, state: FileState, text: str, signal: str, arguments: list[object]
) -> None:
    welcome.set_machine(LAPTOP)
    welcome.set_job(model_views.job("e4b", state))
    assert (welcome.download.text(), welcome.download.isEnabled()) == (text, True)
    with qtbot.waitSignal(getattr(welcome, signal)) as said:
        welcome.download.click()
    assert said.args == arguments


@pytest.mark.parametrize(
    ("fault", "settings"), [("unreachable", True), ("proxy", True), ("server", False), ("", False)]
)
def test_after_a_fault_of_the_network_the_settings_are_beside_it(
    welcome: WelcomePage, qtbot: QtBot, fault: str, settings: bool
) -> None:
    welcome.set_job(model_views.job("e2b", FileState.FAILED, sentence="No way.", fault=fault))
    assert welcome.settings.isVisible() is settings
    if settings:
        with qtbot.waitSignal(welcome.settings_requested):
            welcome.settings.click()
    welcome.set_job(model_views.job("e2b", FileState.TRANSFERRING))
    assert not welcome.settings.isVisible()


@pytest.mark.parametrize("state", [FileState.FAILED, FileState.PAUSED, FileState.QUARANTINED])
def test_the_welcome_and_the_card_find_it_equally_grave(
    manager: ThemeManager, welcome: WelcomePage, qtbot: QtBot, state: FileState
) -> None:
    card = ModelCard(manager, catalog().sizes[0])
    qtbot.addWidget(card)
    ended = model_views.job("e2b", state, sentence="It is broken.", fault="disk-full")
    card.set_job(ended)
    welcome.set_job(ended)
    assert welcome.problem.kind == card.problem.kind


def test_what_is_here_already_goes_on_or_is_used(welcome: WelcomePage, qtbot: QtBot) -> None:
    welcome.set_machine(LAPTOP)
    welcome.set_overview(model_views.overview(model_views.pair_view("e4b", FileState.PAUSED, share=0.5)))
    assert "Gemma 4 E4B · Paused" in welcome.transfer.text
    with qtbot.waitSignal(welcome.resume_requested) as said:
        welcome.download.click()
    assert said.args == ["e4b"]
    welcome.set_overview(model_views.overview(model_views.pair_view("e2b", FileState.INSTALLED)))
    assert welcome.download.text() == "Use Gemma 4 E2B"
    assert not welcome.transfer.isVisible()
    with qtbot.waitSignal(welcome.use_requested) as said:
        welcome.download.click()
    assert said.args == ["e2b"]


def test_an_empty_chat_with_the_demo_offers_a_real_model(manager: ThemeManager, qtbot: QtBot) -> None:
    page = Suggestions(manager)
    _show(page, qtbot)
    assert not page.download.isVisible()
    page.set_demo(True)
    page.set_machine(LAPTOP)
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
    page.set_network(model_views.OFFLINE)
    assert not page.download.isVisible()
    page.set_network(model_views.MIRROR)
    assert page.download.isVisible()
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
