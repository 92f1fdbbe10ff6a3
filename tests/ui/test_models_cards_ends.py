"""Downloads that ended, and what the page Models does around its cards: the chip, the keyboard, the page's end."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from PySide6.QtCore import QPoint, Qt
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from support.model_views import GIB, job, overview, pair_view
from tandem.hardware.machine import Machine
from tandem.models.state import FileState
from tandem.settings import PairChoice
from tandem.ui.header import Header
from tandem.ui.kit_menu import PARTS
from tandem.ui.models_card import ModelCard
from tandem.ui.models_page import ModelsPage
from tandem.ui.session_state import PairState
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
def header(manager: ThemeManager, qtbot: QtBot) -> Header:
    made = Header(manager)
    qtbot.addWidget(made)
    made.resize(900, 52)
    made.show()
    return made


def _cancel(card: ModelCard) -> None:
    menu = card.menu.made(card.more, card.menu_facts)
    next(action for action in menu.actions() if action.text().startswith("Cancel the download")).trigger()


# --- given up


def test_a_failure_without_a_byte_is_dismissed_unasked(page: ModelsPage, qtbot: QtBot) -> None:
    card = page.cards["e2b"]
    page.set_overview(overview(pair_view("e2b", FileState.FAILED, sentence="No way.")))
    page.set_job(job("e2b", FileState.FAILED, 0.0, sentence="No way."))
    with qtbot.waitSignal(page.cancel_requested) as said:
        _cancel(card)
    assert said.args == ["e2b", False]
    page.set_overview(overview())
    page.set_job(None)
    assert (card.state.text, card.problem.isVisible()) == ("Not on this machine", False)


@pytest.mark.parametrize("state", [FileState.FAILED, FileState.PAUSED])
@pytest.mark.parametrize(("part", "keep"), [("accept", True), ("destroy", False), ("reject", None)])
def test_one_with_a_part_asks_what_becomes_of_it(
    page: ModelsPage, state: FileState, part: str, keep: bool | None
) -> None:
    said: list[tuple[str, bool]] = []
    page.cancel_requested.connect(lambda key, keep: said.append((key, keep)))
    page.set_job(job("e2b", state, sentence="No way."))
    card = page.cards["e2b"]
    _cancel(card)
    box = card.menu.box
    assert box is not None
    next(button for button in box.buttons() if box.buttonRole(button) == PARTS[part]).click()
    assert said == ([] if keep is None else [("e2b", keep)])


def test_half_of_a_pair_has_no_download_to_cancel(page: ModelsPage) -> None:
    page.set_overview(overview(pair_view("e2b", FileState.PAUSED)))  # no part, and nothing was told
    card = page.cards["e2b"]
    menu = card.menu.made(card.more, card.menu_facts)
    assert not any(action.text().startswith("Cancel") for action in menu.actions())


# --- the chip in the header


@pytest.mark.parametrize("state", [FileState.FAILED, FileState.PAUSED])
def test_the_chip_tells_an_end_until_it_was_seen(header: Header, state: FileState) -> None:
    ended = job("e2b", state, sentence="It is broken.")
    header.set_job(ended)
    assert header.job.isVisible()
    header.seen_job()
    assert not header.job.isVisible()
    header.resize(500, 52)
    header.set_job(ended)  # told again
    assert not header.job.isVisible()
    header.set_job(job("e2b", FileState.TRANSFERRING))
    assert header.job.isVisible()
    header.seen_job()  # what is under way stays
    assert header.job.isVisible()
    header.set_job(ended)  # the same end once more
    assert header.job.isVisible()
    header.set_job(None)  # dismissed
    assert not header.job.isVisible()


# --- the keyboard, and the page's place


def _top(page: ModelsPage) -> int:
    return page.column.verticalScrollBar().value()


def test_using_the_demo_pair_neither_scrolls_nor_loses_the_keyboard(page: ModelsPage) -> None:
    page.activateWindow()
    page.column.ensureWidgetVisible(page.demo)
    page.demo.button.setFocus(Qt.FocusReason.MouseFocusReason)
    QApplication.processEvents()
    before = _top(page)
    page.load_requested.connect(lambda choice: page.set_pair(PairState("loading", choice)))
    page.demo.button.click()
    assert not page.demo.button.isEnabled()
    page.set_pair(PairState("loaded", PairChoice("demo")))
    QApplication.processEvents()
    focused = page.focusWidget()
    assert focused is page.fold.button
    assert focused.isEnabled()
    assert _top(page) == before


def test_using_a_pair_leaves_the_keyboard_in_its_card(page: ModelsPage) -> None:
    view = pair_view("e4b", FileState.INSTALLED)
    page.set_overview(overview(view))
    page.activateWindow()
    card = page.cards["e4b"]
    page.column.ensureWidgetVisible(card)
    card.action.button.setFocus(Qt.FocusReason.MouseFocusReason)
    QApplication.processEvents()
    before = _top(page)
    page.set_pair(PairState("loading", PairChoice("files", view.target, view.drafter)))
    page.set_pair(PairState("loaded", PairChoice("files", view.target, view.drafter)))
    QApplication.processEvents()
    assert page.focusWidget() is card.more
    assert _top(page) == before


@pytest.mark.parametrize("width", [640, 860, 1400])
@pytest.mark.parametrize("scale", [1.0, 1.4])
def test_the_page_ends_with_its_last_card(
    page: ModelsPage, manager: ThemeManager, qapp: QApplication, qtbot: QtBot, width: int, scale: float
) -> None:
    manager.apply(qapp, "light", scale)
    page.resize(width, 700)
    page.fold.button.click()
    content = page.column.widget()

    def gap() -> int:
        return content.height() - page.files.mapTo(content, QPoint(0, page.files.height())).y()

    qtbot.waitUntil(lambda: page.larger.isVisible() and 0 <= gap() <= manager.theme.space.xl)


# --- where files come from


def test_a_drafter_of_somebody_else_is_said_to_be(page: ModelsPage) -> None:
    assert page.cards["31b"].only_source.text().startswith("google · drafter: unsloth")
    assert "drafter" not in page.cards["12b"].only_source.text()


def test_a_hash_that_only_the_hub_has_is_said_until_the_file_is_here(page: ModelsPage) -> None:
    page.fold.button.click()
    assert page.cards["26b-a4b"].unpinned.isVisible()
    assert not page.cards["31b"].unpinned.isVisible()
    page.set_overview(overview(pair_view("26b-a4b", FileState.INSTALLED)))
    assert not page.cards["26b-a4b"].unpinned.isVisible()
