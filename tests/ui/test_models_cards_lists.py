"""What stands around the cards: lists of files, the import, the larger models, checks, the header."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from PySide6.QtCore import QEvent, QMimeData, QPoint, QPointF, Qt, QUrl
from PySide6.QtGui import QDragEnterEvent, QDragLeaveEvent, QDropEvent
from PySide6.QtWidgets import QApplication, QDialog, QMessageBox
from pytestqt.qtbot import QtBot

from support import a11y, model_views
from support.model_views import check_job, found, job, overview, pair_view
from tandem.models.progress import JobProgress
from tandem.models.state import FileState
from tandem.ui import i18n
from tandem.ui import models_state_text as texts
from tandem.ui.header import Header
from tandem.ui.kit import Menu
from tandem.ui.kit_menu import PARTS
from tandem.ui.models_card_files import FileRow
from tandem.ui.models_import import ImportDialog
from tandem.ui.models_import_places import PlacesDialog
from tandem.ui.models_page import ModelsPage
from tandem.ui.session_state import Notice
from tandem.ui.theme import ThemeManager


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
    made.set_overview(overview())
    return made


def _drag(page: ModelsPage, *paths: str) -> QMimeData:
    data = QMimeData()
    data.setUrls([QUrl.fromLocalFile(path) for path in paths])
    keys = (Qt.MouseButton.LeftButton, Qt.KeyboardModifier.NoModifier)
    QApplication.sendEvent(page, QDragEnterEvent(QPoint(10, 10), Qt.DropAction.CopyAction, data, *keys))
    return data


def _drop(page: ModelsPage, data: QMimeData) -> None:
    keys = (Qt.MouseButton.LeftButton, Qt.KeyboardModifier.NoModifier)
    QApplication.sendEvent(page, QDropEvent(QPointF(10, 10), Qt.DropAction.CopyAction, data, *keys))


def _remove(row: FileRow, part: str) -> QMessageBox:
    row.ask_remove()
    box = row.box
    assert box is not None
    next(button for button in box.buttons() if box.buttonRole(button) == PARTS[part]).click()
    return box


# --- files that were imported, and those that were set aside


def test_imported_files_are_listed_with_what_is_to_be_known(page: ModelsPage, qtbot: QtBot) -> None:
    assert not page.imported.isVisible()
    page.set_overview(overview(imported=model_views.imported_files()))
    first, second = page.imported.rows
    assert page.imported.isVisible()
    for words in ("Target", "gemma4", "licence unknown", "used where it is"):
        assert words in first.detail.text()
    assert not first.state.isVisible()
    assert second.state.text == "Missing"
    assert second.problem.text() == "모델.gguf is not where it was. Put it back."
    assert not second.use.isEnabled()
    with qtbot.waitSignal(page.check_requested) as said:
        first.use.click()
    assert said.args == [first.path, ""]
    page.set_overview(overview())
    assert not page.imported.isVisible()


def test_the_same_list_again_leaves_the_rows_alone(page: ModelsPage) -> None:
    page.set_overview(overview(imported=model_views.imported_files()))
    rows = page.imported.rows
    rows[0].more.setFocus()
    page.set_overview(overview(imported=model_views.imported_files()))
    assert page.imported.rows is rows
    assert page.focusWidget() is rows[0].more


def test_a_listed_file_can_be_shown_verified_and_after_a_question_removed(
    page: ModelsPage, manager: ThemeManager, qtbot: QtBot, opened_urls: list[str]
) -> None:
    page.set_overview(overview(imported=model_views.imported_files(), quarantined=(model_views.set_aside(),)))
    row = page.imported.rows[0]
    menu = Menu(manager, page)
    row.fill(menu)
    actions = {action.text(): action for action in menu.actions()}
    with qtbot.waitSignal(page.verify_requested):
        actions["Verify files"].trigger()
    actions["Show in folder"].trigger()
    assert opened_urls == [QUrl.fromLocalFile("/srv/elsewhere").toString()]
    with qtbot.assertNotEmitted(page.remove_requested):
        assert "stays where it is" in _remove(row, "reject").informativeText()
    with qtbot.waitSignal(page.remove_requested) as said:
        _remove(row, "destroy")
    assert said.args == [row.path]
    aside = page.quarantined.rows[0]
    with qtbot.waitSignal(page.remove_requested) as said:
        assert "cannot be brought back" in _remove(aside, "destroy").informativeText()
    assert said.args == [model_views.set_aside().path]


def test_a_file_that_was_set_aside_says_why_and_when(page: ModelsPage) -> None:
    record = model_views.set_aside()
    page.set_overview(overview(quarantined=(record,)))
    row = page.quarantined.rows[0]
    assert row.name.whole == record.name
    assert record.at is not None
    assert texts.day(record.at.isoformat()) in row.detail.text()
    assert "aaaaaaaaaaaa… instead of bbbbbbbbbbbb…" in row.problem.text()
    assert "Start the download again." in row.problem.text()


# --- import


def test_files_dropped_anywhere_are_looked_at(page: ModelsPage, qtbot: QtBot) -> None:
    data = _drag(page, "/srv/모델.gguf", "/srv/b.gguf")
    assert page.hint.isVisible()
    QApplication.sendEvent(page, QDragLeaveEvent())
    assert not page.hint.isVisible()
    _drag(page, "/srv/모델.gguf", "/srv/b.gguf")
    with qtbot.waitSignal(page.look_requested) as said:
        _drop(page, data)
    assert said.args == [["/srv/모델.gguf", "/srv/b.gguf"]]
    assert not page.hint.isVisible()


def test_an_address_of_the_web_is_not_taken(page: ModelsPage) -> None:
    data = QMimeData()
    data.setUrls([QUrl("https://example.org/model.gguf")])
    keys = (Qt.MouseButton.LeftButton, Qt.KeyboardModifier.NoModifier)
    event = QDragEnterEvent(QPoint(1, 1), Qt.DropAction.CopyAction, data, *keys)
    event.ignore()
    QApplication.sendEvent(page, event)
    assert not event.isAccepted()
    assert not page.hint.isVisible()


def test_files_can_be_chosen_for_import(page: ModelsPage, qtbot: QtBot) -> None:
    dialog = page.open_dialog()
    assert dialog.isVisible()
    with qtbot.waitSignal(page.look_requested) as said:
        dialog.filesSelected.emit(["/srv/a.gguf"])
    assert said.args == [["/srv/a.gguf"]]
    dialog.reject()


def test_it_is_asked_once_for_all_files_how_they_are_taken_in(page: ModelsPage, qtbot: QtBot) -> None:
    files = [
        found("a.gguf", key="e2b"),
        found("b.gguf", key="e2b", role="drafter", installed=True),
        found("모델.gguf"),
    ]
    page.set_found(files)
    dialog = page.dialog
    assert isinstance(dialog, ImportDialog)
    known, here, own = dialog.rows
    assert known.known.text() == "Recognised by its sha256: Gemma 4 E2B, target, from xbill9."
    assert "It is here already." in here.known.text()
    assert (here.box.isChecked(), here.box.isEnabled()) == (False, False)
    assert not own.known.isVisible()
    assert "target" in own.detail.text()
    assert "licence" in own.notes.text()
    assert "2" in dialog.accept_button.text()
    known.box.click()
    assert "1" in dialog.accept_button.text()
    own.box.click()
    assert not dialog.accept_button.isEnabled()
    known.box.click()
    own.box.click()
    dialog.hows["in-place"].click()
    taken: list[tuple[object, str]] = []
    page.take_requested.connect(lambda file, how: taken.append((file, how)))
    dialog.accept_button.click()
    assert taken == [(files[0], "in-place"), (files[2], "in-place")]
    qtbot.waitUntil(lambda: page.dialog is None)


def test_an_import_that_is_not_wanted_takes_nothing(page: ModelsPage, qtbot: QtBot) -> None:
    page.set_found([])
    assert page.dialog is None
    page.set_found([found("a.gguf")])
    assert isinstance(page.dialog, ImportDialog)
    assert page.dialog.how == "link"
    with qtbot.assertNotEmitted(page.take_requested):
        page.dialog.cancel.click()


def test_files_of_other_programs_are_listed_and_looked_at(page: ModelsPage, qtbot: QtBot) -> None:
    with qtbot.waitSignal(page.places_requested):
        page.head.places_requested.emit()
    page.set_places(model_views.places())
    dialog = page.dialog
    assert isinstance(dialog, PlacesDialog)
    known, other = dialog.rows
    assert (known.box.isChecked(), other.box.isChecked()) == (True, False)
    assert "probably Gemma 4 E2B" in known.detail.text()
    assert "of Ollama" in other.detail.text()
    other.box.click()
    assert "2" in dialog.accept_button.text()
    with qtbot.waitSignal(page.look_requested) as said:
        dialog.accept_button.click()
    assert said.args == [[str(place.path) for place in model_views.places()]]


def test_no_files_of_other_programs_is_said_too(page: ModelsPage) -> None:
    page.set_places([])
    assert isinstance(page.dialog, PlacesDialog)
    assert "None was found" in page.dialog.text.text()
    assert not page.dialog.accept_button.isVisible()
    page.dialog.cancel.click()


@pytest.mark.parametrize("language", ["en", "pseudo"])
@pytest.mark.parametrize("scale", [1.0, 1.6])
def test_both_dialogs_fit_and_can_be_used_without_a_mouse(
    manager: ThemeManager, qapp: QApplication, qtbot: QtBot, language: str, scale: float
) -> None:
    manager.apply(qapp, "dark", scale)
    i18n.install(qapp, language)
    long = "a-very-long-name-of-a-model-that-somebody-made-themselves-and-that-never-ends-Q4_K_M.gguf"
    dialogs: tuple[QDialog, ...] = (
        ImportDialog(manager, [found("a.gguf", key="e4b"), found(long), found("b.gguf", installed=True)]),
        PlacesDialog(manager, model_views.places()),
        PlacesDialog(manager, []),
    )
    for dialog in dialogs:
        qtbot.addWidget(dialog)
        dialog.show()
        room = dialog.screen().availableSize()
        assert (dialog.width() <= room.width(), dialog.height() <= room.height()) == (True, True)
        assert a11y.cut(dialog) == []
        assert a11y.nameless(dialog) == []
        if len(a11y.controls(dialog)) > 1:  # one alone keeps the focus
            assert a11y.unreachable(dialog) == []
        dialog.hide()


def test_an_open_question_speaks_the_other_language(page: ModelsPage, qapp: QApplication) -> None:
    page.set_found([found("a.gguf", key="e2b")])
    dialog = page.dialog
    assert isinstance(dialog, ImportDialog)
    i18n.install(qapp, "pseudo")
    QApplication.sendEvent(dialog, QEvent(QEvent.Type.LanguageChange))
    assert dialog.title.text() == i18n.pseudo("Import files")
    assert dialog.cancel.text() == i18n.pseudo("Cancel")
    dialog.reject()


# --- larger models, checks, messages


def test_larger_models_are_folded_away_until_one_is_here_or_wanted(page: ModelsPage) -> None:
    assert not page.larger.isVisible()
    page.fold.button.click()
    assert page.larger.isVisible()
    assert page.cards["31b"].isVisible()
    page.fold.button.click()
    assert not page.larger.isVisible()


def test_a_larger_model_that_is_fetched_is_not_folded_away(page: ModelsPage) -> None:
    page.set_job(job("12b", FileState.TRANSFERRING))
    assert page.cards["12b"].isVisible()
    assert page.fold.button.isChecked()
    page.set_job(None)
    assert not page.larger.isVisible()
    page.show_card("12b")
    assert page.focusWidget() is page.cards["12b"].action.button


@pytest.mark.parametrize(
    ("key", "title"), [("verify", "Verifying files"), ("import", "Importing files"), ("move", "Moving the models")]
)
def test_what_is_done_to_files_is_shown_and_can_be_stopped(
    page: ModelsPage, qtbot: QtBot, key: str, title: str
) -> None:
    assert not page.checking.isVisible()
    page.set_checking(check_job(key, "모델.gguf", FileState.CHECKING))
    assert page.checking.isVisible()
    assert page.checking.progress.text.startswith(title)
    assert "모델.gguf" in page.checking.progress.text
    with qtbot.waitSignal(page.stop_check_requested):
        page.checking.stop.click()
    page.set_checking(None)
    assert not page.checking.isVisible()


def test_the_card_whose_file_is_hashed_says_so(page: ModelsPage) -> None:
    view = pair_view("e2b", FileState.INSTALLED)
    page.set_overview(overview(view, pair_view("e4b", FileState.INSTALLED)))
    page.set_checking(check_job("verify", view.files[0].name))
    assert (page.cards["e2b"].state.text, page.cards["e4b"].state.text) == ("Verifying", "Installed")
    page.set_checking(None)
    assert page.cards["e2b"].state.text == "Installed"


def test_a_message_is_shown_where_one_looks_and_its_button_works(page: ModelsPage, qtbot: QtBot) -> None:
    notice = Notice("good", "Gemma 4 E2B is here.", action="use-pair", action_text="Use it now", argument="e2b")
    page.tell(notice)
    assert page.notices.last == ("good", "Gemma 4 E2B is here.")
    button = page.notices.notices()[0].button
    assert button is not None
    with qtbot.waitSignal(page.notice_performed) as said:
        button.click()
    assert said.args == [notice]


# --- words


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (None, ""),
        (0.2, "5 s left"),
        (41.0, "45 s left"),
        (58.0, "1 min left"),
        (190.0, "3 min left"),
        (3599.0, "1 h 0 min left"),
        (7500.0, "2 h 5 min left"),
        (1e9, "more than two days left"),
    ],
)
def test_the_time_left_is_told_in_steps(seconds: float | None, words: str, qapp: QApplication) -> None:
    i18n.install(qapp, "en")
    assert texts.left(seconds) == words


def test_nothing_is_said_to_be_done_while_it_runs() -> None:
    running = job("e2b", FileState.CHECKING, 1.0)
    whole = JobProgress(running.key, running.files[:1])
    assert texts.percent_done(whole) == i18n.percent(0.99)
    assert texts.percent_done(JobProgress("e2b", ())) == i18n.percent(0.0)


def test_a_long_word_may_be_broken_and_a_path_that_is_no_hash_stays() -> None:
    long = str(Path("/srv") / ("x" * 60))
    assert texts.fitted(long).replace("\u200b", "") == long
    assert max(len(part) for part in texts.fitted(long).split("\u200b")) <= 24
    assert texts.shortened("f" * 63) == "f" * 63
    assert texts.day("no day") == ""


# --- the header


@pytest.fixture
def header(manager: ThemeManager, qtbot: QtBot) -> Header:
    made = Header(manager)
    qtbot.addWidget(made)
    made.resize(900, 52)
    made.show()
    return made


def test_the_header_shows_a_download_and_leads_to_the_models(header: Header, qtbot: QtBot) -> None:
    assert not header.job.isVisible()
    header.set_job(job("e2b-unsloth", FileState.TRANSFERRING, left_s=600.0))
    assert header.job.isVisible()
    assert header.job.text() == "E2B · 39% · 10 min left"
    assert header.job.kind == "busy"
    with qtbot.waitSignal(header.models_requested):
        header.job.click()
    header.resize(500, 52)
    assert header.job.text() == "39%"
    header.resize(900, 52)
    header.set_job(job("e2b", FileState.FAILED, sentence="It is broken.", remedy="Mend it."))
    assert (header.job.kind, header.job.text()) == ("failed", "E2B · Could not be downloaded")
    assert "It is broken.\nMend it." in header.job.toolTip()
    header.set_job(job("e2b", FileState.PAUSED))  # paused by the user: nothing to say
    assert not header.job.isVisible()
    header.set_job(None)
    assert not header.job.isVisible()
