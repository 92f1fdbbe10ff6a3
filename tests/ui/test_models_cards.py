"""The cards of the page Models: what they show in each state of a pair, and what they ask for."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from PySide6.QtCore import QUrl
from PySide6.QtGui import QAction
from PySide6.QtWidgets import QApplication, QMessageBox, QPushButton, QWidget
from pytestqt.qtbot import QtBot

from support import model_views
from support.model_views import GIB, job, overview, pair_view
from tandem.hardware.machine import Machine
from tandem.models.progress import Waiting
from tandem.models.state import ACTIVE, FileState
from tandem.settings import PairChoice
from tandem.ui import i18n
from tandem.ui import models_state_text as texts
from tandem.ui.kit import Menu
from tandem.ui.kit_menu import PARTS
from tandem.ui.models_card import ModelCard
from tandem.ui.models_card_menu import CardMenu, MenuFacts
from tandem.ui.models_page import ModelsPage
from tandem.ui.session_state import NetworkView, PairState
from tandem.ui.theme import ThemeManager

LAPTOP = Machine("A processor", 4, 8, 8 * GIB, 4 * GIB, "Linux 6")


@pytest.fixture
def manager(qapp: QApplication) -> Iterator[ThemeManager]:
    made = ThemeManager(qapp)
    made.apply(qapp, "light")
    yield made
    made.deleteLater()


@pytest.fixture
def page(manager: ThemeManager, qtbot: QtBot) -> ModelsPage:
    made = ModelsPage(manager)
    qtbot.addWidget(made)
    made.resize(1000, 700)
    made.show()
    made.set_machine(LAPTOP)
    made.set_overview(overview())
    return made


@pytest.fixture
def card(page: ModelsPage) -> ModelCard:
    return page.cards["e2b"]


def _entries(menu: Menu) -> list[str]:
    return [action.text() for action in menu.actions() if not action.isSeparator()]


def _entry(menu: Menu, text: str) -> QAction:
    return next(action for action in menu.actions() if action.text().startswith(text))


def _menu(card: ModelCard) -> Menu:
    return card.menu.made(card.more, card.menu_facts)


def _answer(box: QMessageBox | None, part: str) -> None:
    assert box is not None
    next(button for button in box.buttons() if box.buttonRole(button) == PARTS[part]).click()


def _in_use(page: ModelsPage, key: str, kind: str = "loaded") -> None:
    view = pair_view(key, FileState.INSTALLED)
    page.set_pair(PairState(kind, PairChoice("files", view.target, view.drafter)))  # type: ignore[arg-type]


# --- one state, one mark, one action


@pytest.mark.parametrize(
    ("state", "mark", "act", "asks"),
    [
        (FileState.ABSENT, "Not on this machine", "Download", ("download_requested", ["e2b"])),
        (FileState.QUEUED, "Waits for its turn", "Cancel", ("cancel_requested", ["e2b", True])),
        (FileState.RESOLVING, "Asking the Hub", "Pause", ("pause_requested", [])),
        (FileState.TRANSFERRING, "Downloading", "Pause", ("pause_requested", [])),
        (FileState.PAUSED, "Paused", "Resume", ("resume_requested", ["e2b"])),
        (FileState.FAILED, "Could not be downloaded", "Try again", ("resume_requested", ["e2b"])),
        (FileState.CHECKING, "Checking", "Pause", ("pause_requested", [])),
        (FileState.INSTALLED, "Installed", "Use", ("use_requested", ["e2b"])),
        (FileState.VERIFYING, "Verifying", "Stop", ("stop_check_requested", [])),
        (FileState.CHANGED, "Changed since it was checked", "Verify files", ("verify_requested", [])),
        (FileState.MISSING, "Missing", "Download", ("download_requested", ["e2b"])),
        (FileState.QUARANTINED, "Set aside", "Start again", ("start_again_requested", ["e2b"])),
    ],
)
def test_every_state_has_its_words_and_its_one_action(
    page: ModelsPage,
    card: ModelCard,
    qtbot: QtBot,
    state: FileState,
    mark: str,
    act: str,
    asks: tuple[str, list[object]],
) -> None:
    page.set_overview(overview(pair_view("e2b", state, share=0.5)))
    assert (card.state.text, card.action.button.text()) == (mark, act)
    shown = [button for button in card.action.findChildren(QPushButton) if button.isVisible()]
    assert shown == [card.action.button]
    assert "Gemma 4 E2B" in card.action.button.accessibleName()
    assert card.source.isEnabled() == (state not in ACTIVE)
    with qtbot.waitSignal(getattr(page, asks[0])) as said:
        card.action.button.click()
    assert said.args == asks[1]


def test_all_states_were_looked_at() -> None:
    assert len({texts.words(state).text for state in FileState}) == len(FileState)
    for state in FileState:
        assert texts.action(state).text


def test_a_job_counts_more_than_what_lay_there_before(page: ModelsPage, card: ModelCard) -> None:
    page.set_overview(overview(pair_view("e2b", FileState.PAUSED, share=0.1)))
    page.set_job(job("e2b", FileState.TRANSFERRING, bytes_per_s=12.5 * (1 << 20), left_s=190.0))
    assert card.state.text == "Downloading"
    for part in ("3 min left", "12.5 MiB/s", "(file 1 of 2)", "39%"):
        assert part in card.progress.text
    assert page.cards["e4b"].state.text == "Not on this machine"
    page.set_job(None)
    assert card.state.text == "Paused"
    assert card.progress.isVisible()  # what was kept stays in view
    assert "left" not in card.progress.text


def test_a_download_that_waits_says_why_and_for_how_long(page: ModelsPage, card: ModelCard) -> None:
    waiting = Waiting("The line was lost.", 7.2, 3)
    page.set_job(job("e2b", FileState.TRANSFERRING, waiting=waiting, bytes_per_s=1.0, left_s=9.0))
    assert "The line was lost. Try 3 begins in 8 s." in card.progress.text
    assert "left" not in card.progress.text
    page.set_job(job("e2b", FileState.TRANSFERRING))
    assert "lost" not in card.progress.text


def test_the_keyboard_stays_on_the_button_when_its_action_changes(page: ModelsPage, card: ModelCard) -> None:
    page.activateWindow()
    card.action.button.setFocus()
    page.set_job(job("e2b", FileState.TRANSFERRING))
    assert card.action.button.text() == "Pause"
    assert page.focusWidget() is card.action.button
    page.set_job(None)
    assert page.focusWidget() is card.action.button


def test_the_pair_in_use_says_so_and_can_only_be_loaded_once(page: ModelsPage, card: ModelCard) -> None:
    page.set_overview(overview(pair_view("e2b", FileState.INSTALLED), pair_view("e4b", FileState.INSTALLED)))
    assert card.action.button.isEnabled()
    _in_use(page, "e2b", "loading")
    assert not card.action.button.isEnabled()
    _in_use(page, "e2b")
    assert (card.action.button.text(), card.action.button.isEnabled()) == ("In use", False)
    assert page.cards["e4b"].action.button.text() == "Use"
    page.set_pair(PairState("loaded", PairChoice("demo")))
    assert card.action.button.text() == "Use"


def test_installed_files_say_their_size_and_when_they_were_checked(page: ModelsPage, card: ModelCard) -> None:
    page.set_overview(overview(pair_view("e2b", FileState.INSTALLED)))
    assert "on disk" in card.bytes.text()
    assert texts.day("2026-12-03T10:00:00+00:00") in card.bytes.text()
    page.set_overview(overview(pair_view("e2b", FileState.CHANGED)))
    assert "checked" not in card.bytes.text()
    assert card.licence.text() == "Apache-2.0"


def test_a_pair_of_which_one_size_is_unknown_says_so(page: ModelsPage) -> None:
    assert page.cards["26b-a4b"].bytes.text().startswith("more than")
    assert not page.cards["e2b"].bytes.text().startswith("more than")


# --- errors


@pytest.mark.parametrize(
    ("fault", "button"),
    [
        ("no-room", "Open settings"),
        ("proxy", "Open settings"),
        ("sign-in", "Open settings"),
        ("pin-differs", "Other source"),
        ("wrong-hash", ""),
        ("", ""),
    ],
)
def test_an_error_is_a_sentence_with_the_button_that_helps(
    page: ModelsPage, card: ModelCard, fault: str, button: str
) -> None:
    page.set_job(job("e2b", FileState.FAILED, 0.0, sentence="It is broken.", remedy="Mend it.", fault=fault))
    assert (card.problem.text, card.problem.more, card.problem.kind) == ("It is broken.", "Mend it.", "bad")
    assert card.remedy.isVisible() == bool(button)
    assert card.remedy.text() == button
    assert not card.progress.isVisible()  # nothing came in
    page.set_job(None)
    assert not card.problem.isVisible()
    assert not card.remedy.isVisible()


def test_the_button_beside_an_error_leads_to_what_helps(page: ModelsPage, card: ModelCard, qtbot: QtBot) -> None:
    page.set_job(job("e2b", FileState.FAILED, sentence="No room.", fault="no-room"))
    with qtbot.waitSignal(page.settings_requested):
        card.remedy.click()
    page.set_job(job("e2b", FileState.FAILED, sentence="Another file.", fault="pin-differs"))
    card.remedy.click()
    assert card.pair.key == "e2b-unsloth"
    with qtbot.waitSignal(page.download_requested) as said:
        card.action.button.click()
    assert said.args == ["e2b-unsloth"]


def test_a_model_with_one_source_offers_no_other(page: ModelsPage) -> None:
    page.set_job(job("31b", FileState.FAILED, sentence="Another file.", fault="pin-differs"))
    assert not page.cards["31b"].remedy.isVisible()


def test_a_hash_is_shortened_and_the_whole_is_in_the_tooltip(page: ModelsPage, card: ModelCard) -> None:
    said = f"It is {'a' * 64}, and not {'b' * 64}."
    page.set_job(job("e2b", FileState.FAILED, sentence=said))
    assert card.problem.text == f"It is {'a' * 12}…, and not {'b' * 12}…."
    assert said in card.problem.toolTip()


def test_offline_nothing_can_be_fetched_and_the_page_says_why(page: ModelsPage, card: ModelCard) -> None:
    page.set_overview(overview(pair_view("e4b", FileState.INSTALLED)))
    page.set_network(model_views.OFFLINE)
    assert page.offline.isVisible()
    assert "HF_HUB_OFFLINE" in page.offline.text
    assert not card.action.button.isEnabled()
    assert page.cards["e4b"].action.button.isEnabled()
    page.set_network(NetworkView())
    assert not page.offline.isVisible()
    assert card.action.button.isEnabled()


# --- sources


def test_what_is_here_is_shown_before_the_default_source(page: ModelsPage, card: ModelCard) -> None:
    assert card.pair.key == "e2b"
    page.set_overview(overview(pair_view("e2b-unsloth", FileState.PAUSED, share=0.5)))
    assert card.pair.key == "e2b-unsloth"
    page.set_overview(
        overview(pair_view("e2b", FileState.INSTALLED), pair_view("e2b-unsloth", FileState.PAUSED, share=0.5))
    )
    assert card.pair.key == "e2b"
    assert "(here)" in card.source.currentText()
    card.source.setCurrentIndex(card.source.findData("e2b-unsloth"))
    assert (card.pair.key, card.state.text) == ("e2b-unsloth", "Paused")
    page.set_job(job("e2b", FileState.TRANSFERRING))  # what is downloaded is what is shown
    assert card.pair.key == "e2b"


def test_a_model_that_is_too_large_is_not_pressed_upon_anybody(page: ModelsPage) -> None:
    assert page.cards["31b"].fit.fit == "too-large"
    assert page.cards["31b"].action.button is page.cards["31b"].action.quiet
    assert page.cards["e2b"].action.button is page.cards["e2b"].action.primary


# --- the menu


def test_the_menu_has_what_the_state_allows(page: ModelsPage, card: ModelCard) -> None:
    def entries(state: FileState) -> list[str]:
        page.set_overview(overview(pair_view("e2b", state, share=0.5)))
        return _entries(_menu(card))

    assert entries(FileState.ABSENT) == ["Copy address and file names"]
    assert entries(FileState.TRANSFERRING)[0] == "Cancel the download…"
    for state in (FileState.PAUSED, FileState.FAILED):
        assert entries(state)[:2] == ["Start again from the beginning", "Cancel the download…"]
    assert entries(FileState.INSTALLED) == ["Verify files", "Show in folder", "Copy address and file names", "Remove…"]
    _in_use(page, "e2b")
    assert not _entry(_menu(card), "Remove").isEnabled()


@pytest.mark.qt_log_ignore("This plugin does not support")
def test_the_menu_opens_under_its_button(card: ModelCard) -> None:
    card.more.click()
    popup = QApplication.activePopupWidget()
    assert popup is card.menu.menu
    assert popup is not None
    popup.close()


def test_the_addresses_of_the_files_can_be_copied(page: ModelsPage, card: ModelCard) -> None:
    page.set_network(model_views.MIRROR)
    _entry(_menu(card), "Copy").trigger()
    lines = QApplication.clipboard().text().split("\n")
    assert lines == [f"https://mirror.example.org/{file.repo} · {file.file}" for file in card.pair.files]


def test_the_folder_of_installed_files_is_shown(page: ModelsPage, card: ModelCard, opened_urls: list[str]) -> None:
    view = pair_view("e2b", FileState.INSTALLED)
    page.set_overview(overview(view))
    _entry(_menu(card), "Show in folder").trigger()
    folder = f"{model_views.FOLDER}/{card.pair.target.repo}"
    assert opened_urls == [QUrl.fromLocalFile(folder).toString()]


@pytest.mark.parametrize(("part", "keep"), [("accept", True), ("destroy", False), ("reject", None)])
def test_cancelling_asks_what_becomes_of_what_has_come_in(
    page: ModelsPage, card: ModelCard, part: str, keep: bool | None
) -> None:
    said: list[tuple[str, bool]] = []
    page.cancel_requested.connect(lambda key, keep: said.append((key, keep)))
    page.set_job(job("e2b", FileState.TRANSFERRING))
    _entry(_menu(card), "Cancel").trigger()
    assert card.menu.box is not None
    assert i18n.size(card.menu_facts.part) in card.menu.box.informativeText()
    _answer(card.menu.box, part)
    assert said == ([] if keep is None else [("e2b", keep)])


def test_cancelling_what_has_not_begun_asks_nothing(page: ModelsPage, card: ModelCard, qtbot: QtBot) -> None:
    page.set_job(job("e2b", FileState.RESOLVING, 0.0))
    with qtbot.waitSignal(page.cancel_requested) as said:
        card.menu.ask_cancel(card.menu_facts)
    assert said.args == ["e2b", False]


@pytest.mark.parametrize(
    ("state", "entry", "asked"),
    [
        (FileState.PAUSED, "Cancel the download", ("cancel_requested", ["e2b", False])),
        (FileState.FAILED, "Cancel the download", ("cancel_requested", ["e2b", False])),
        (FileState.INSTALLED, "Remove…", ("remove_requested", ["e2b"])),
    ],
)
def test_nothing_is_removed_unasked(
    page: ModelsPage,
    card: ModelCard,
    qtbot: QtBot,
    state: FileState,
    entry: str,
    asked: tuple[str, list[object]],
) -> None:
    page.set_overview(overview(pair_view("e2b", state, share=0.5)))
    signal = getattr(page, asked[0])
    for part, comes in (("reject", False), ("destroy", True)):
        with qtbot.assertNotEmitted(signal):
            _entry(_menu(card), entry).trigger()
        if comes:
            with qtbot.waitSignal(signal) as said:
                _answer(card.menu.box, part)
            assert said.args == asked[1]
        else:
            with qtbot.assertNotEmitted(signal):
                _answer(card.menu.box, part)


def test_files_used_in_place_are_only_forgotten(manager: ThemeManager, qtbot: QtBot) -> None:
    owner = QWidget()
    qtbot.addWidget(owner)
    menu = CardMenu(manager, owner)
    menu.ask_remove(MenuFacts("Gemma 4 E2B", FileState.INSTALLED, on_disk=GIB, in_place=True))
    assert menu.box is not None
    assert "stay where they are" in menu.box.informativeText()
    menu.box.reject()
