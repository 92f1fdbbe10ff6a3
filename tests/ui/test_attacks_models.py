"""Rough use of the page Models: hasty clicks, orders nobody thought of, names made to hurt, a folder that is gone."""

from __future__ import annotations

import os
import shutil
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
import shiboken6
from PySide6.QtCore import QEvent, QPointF, Qt
from PySide6.QtGui import QMouseEvent
from PySide6.QtGui import Qt as GuiQt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QAbstractButton, QApplication, QMessageBox, QPushButton
from pytestqt.qtbot import QtBot

from support.hub import FakeHub
from support.shelf import alone, catalog, content, fill, held, put
from support.windows import User, drop, files, keep, opened, window
from tandem import paths
from tandem.models import catalog as models_catalog
from tandem.models import imports
from tandem.models.catalog import Catalog, CatalogSize
from tandem.models.state import FileState
from tandem.models.store import Store
from tandem.settings import PairChoice
from tandem.ui.models_card import ModelCard
from tandem.ui.models_page import ModelsPage

S = FileState
no_links = pytest.mark.skipif(os.name == "nt", reason="links and such names are not for everybody")


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[FakeHub]:
    """The Hub as HF_ENDPOINT names it, with a small catalog."""
    known = catalog()
    monkeypatch.setattr(models_catalog, "catalog", lambda: known)
    alone(monkeypatch, tmp_path / "hf")
    with FakeHub() as running:
        fill(running)
        monkeypatch.setenv("HF_ENDPOINT", running.endpoint)
        yield running


@pytest.fixture
def user(qtbot: QtBot, hub: FakeHub) -> Iterator[User]:
    assert hub.endpoint
    with window(qtbot) as somebody:
        yield somebody


def page(user: User) -> ModelsPage:
    user.press("Ctrl+2")
    shown = user.window.pages.models
    user.wait(lambda: shown.isVisible() and user.controller.models.overview is not None)
    return shown


def click(button: QAbstractButton) -> None:
    assert button.isVisible()
    assert button.isEnabled()
    QTest.mouseClick(button, Qt.MouseButton.LeftButton)


def press(user: User, made: ModelCard, *acts: str) -> None:
    """Presses a card's main button once it does one of these."""
    user.wait(lambda: made.action.act in acts and made.action.button.isEnabled(), f"the card never offers {acts}")
    user.window.pages.models.column.ensureWidgetVisible(made)
    click(made.action.button)


def paused(user: User, hub: FakeHub) -> ModelCard:
    """The card of a download that was paused with some of it here."""
    held(hub)
    made = page(user).cards["e2b"]
    press(user, made, "download")
    user.wait(lambda: made.job is not None and made.job.done > 100_000)
    press(user, made, "pause")
    user.wait(lambda: made.file_state is S.PAUSED)
    return made


def own(folder: Path, name: str, mark: str) -> Path:
    """A model that the catalog does not know."""
    path = folder / name
    path.write_bytes(content("e2b", "target").replace(b"tiny-gemma4", mark.encode().rjust(11, b"-")))
    return path


def imported(folder: Path, name: str, mark: str) -> None:
    """Such a model as if it had been imported."""
    store = Store(paths.models_dir(), catalog())
    imports.take(store, imports.look(own(folder, name, mark), store=store), "copy")


def said(shown: ModelsPage) -> list[str]:
    return [notice.text for notice in shown.notices.notices()]


# Hasty clicks and odd orders


def test_a_double_click_does_not_stop_what_it_began(user: User, hub: FakeHub) -> None:
    held(hub)
    made = page(user).cards["e2b"]
    press(user, made, "download")
    button = made.action.button  # another one by now: it stops the download
    assert made.action.act in ("cancel", "pause")
    place = QPointF(button.rect().center())
    left, no_keys = Qt.MouseButton.LeftButton, Qt.KeyboardModifier.NoModifier
    for kind in (QEvent.Type.MouseButtonDblClick, QEvent.Type.MouseButtonRelease):
        QApplication.sendEvent(button, QMouseEvent(kind, place, button.mapToGlobal(place), left, left, no_keys))
    user.wait(lambda: made.file_state is S.TRANSFERRING)
    press(user, made, "pause")
    user.wait(lambda: made.file_state is S.PAUSED)


def test_a_failure_is_over_when_the_files_came_another_way(user: User, hub: FakeHub, tmp_path: Path) -> None:
    hub.misbehave("no-repo", times=None)
    shown = page(user)
    made = shown.cards["e2b"]
    press(user, made, "download")
    user.wait(lambda: made.problem.isVisible())
    mine = tmp_path / "a.gguf", tmp_path / "b.gguf"
    mine[0].write_bytes(content("e2b", "target"))
    mine[1].write_bytes(content("e2b", "drafter"))
    drop(shown, files(*mine))
    user.wait(lambda: shown.dialog is not None and shown.dialog.isVisible())
    assert shown.dialog is not None
    click(shown.dialog.accept_button)
    user.back()
    user.wait(lambda: made.file_state is S.INSTALLED, "the card still tells of the download")
    assert not made.problem.isVisible()
    assert user.chat.header.job.isHidden()


def test_what_came_in_is_not_forgotten_when_the_next_try_cannot_begin(user: User, hub: FakeHub) -> None:
    made = paused(user, hub)
    user.controller.change_settings(hub_endpoint="ftp://mirror")
    press(user, made, "resume")
    user.wait(lambda: made.problem.isVisible())
    assert made.menu_facts.part > 100_000
    assert made.progress.isVisible()
    click(made.remedy)  # an address is put right in the settings
    assert user.window.page == "settings"
    user.controller.change_settings(hub_endpoint="")
    hub.behave()
    page(user)
    press(user, made, "resume", "try-again")
    user.wait(lambda: made.file_state is S.INSTALLED)


def test_a_download_waits_until_its_part_is_removed(user: User, hub: FakeHub) -> None:
    made = paused(user, hub)
    hub.behave()
    models, gate = user.controller.models, threading.Event()
    user.controller.threads.lists.submit(gate.wait)  # a slow disk
    models.cancel("e2b", False)
    models.download("e2b")
    assert models.downloads.under_way == ""
    gate.set()
    user.wait(lambda: made.file_state is S.INSTALLED)


def test_any_order_of_buttons_ends_well(user: User, hub: FakeHub, tmp_path: Path) -> None:
    held(hub)
    models, shown = user.controller.models, page(user)
    for folder in ("x", "y"):
        for act in (models.download, models.resume, models.start_again, models.start_again, models.use, models.remove):
            act("e2b")
            models.download("e4b")
            models.pause()
            models.verify()
            models.stop_check()
        models.cancel("e2b", True)
        models.cancel("e4b", False)
        models.cancel("e4b", False)
        models.move_folder(str(tmp_path / folder))
        models.move_folder(str(tmp_path / "never"))
        models.resume("e2b")
    user.wait(lambda: not models.work.busy and user.controller.settings.models_folder == str(tmp_path / "x"))
    hub.behave()
    models.download("e2b")
    models.download("e4b")
    user.wait(lambda: {card.file_state for card in shown.cards.values()} == {S.INSTALLED})
    assert not (tmp_path / "never").exists()


def test_moving_the_folder_while_its_pair_is_loaded_from_it(qtbot: QtBot, hub: FakeHub, tmp_path: Path) -> None:
    target, drafter = put(Store(paths.models_dir(), catalog()), "e2b")
    held(hub)
    with window(qtbot, PairChoice("files", str(target), str(drafter))) as user:
        shown = page(user)
        press(user, shown.cards["e4b"], "download")
        user.wait(lambda: shown.cards["e4b"].job is not None and shown.cards["e4b"].job.done > 100_000)
        user.controller.load_again()
        user.controller.models.move_folder(str(tmp_path / "new"))
        user.wait(lambda: user.controller.settings.models_folder == str(tmp_path / "new"))
        user.loaded()
        user.wait(lambda: shown.cards["e2b"].in_use)
        hub.behave()
        user.wait(lambda: shown.cards["e4b"].file_state is S.INSTALLED)
        user.press("Ctrl+1")
        assert user.ask().text


@no_links
def test_a_pair_in_use_is_not_removed_by_whatever_path_it_was_loaded(
    qtbot: QtBot, hub: FakeHub, tmp_path: Path
) -> None:
    assert hub.endpoint
    pair = put(Store(paths.models_dir(), catalog()), "e2b")
    link = tmp_path / "link"
    link.symlink_to(paths.models_dir())
    with window(
        qtbot, PairChoice("files", *(str(link / path.relative_to(paths.models_dir())) for path in pair))
    ) as user:
        shown = page(user)
        shown.remove_requested.emit("e2b")
        user.wait(lambda: said(shown))
        assert "is in use" in said(shown)[0]
        assert pair[0].exists()


# Questions


def test_a_question_is_about_what_it_was_asked_about(
    qtbot: QtBot, hub: FakeHub, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, other = (pair for _, pair in catalog().pairs())
    both = Catalog(1, (CatalogSize("e2b", "Tiny", True, (one, other)),))
    monkeypatch.setattr(models_catalog, "catalog", lambda: both)
    put(Store(paths.models_dir(), both), "e4b")
    held(hub)
    with window(qtbot) as user:
        shown = page(user)
        made = shown.cards["e2b"]
        made.choose_source("e4b")
        made.menu.ask_remove(made.menu_facts)
        user.controller.models.download("e2b")  # the card shows the source that is downloaded
        user.wait(lambda: made.pair.key == "e2b" and made.job is not None and made.job.done > 100_000)
        asked: list[str] = []
        shown.remove_requested.connect(asked.append)
        box = user.child(QMessageBox)
        click(next(button for button in box.buttons() if button.text() == "Remove"))
        assert asked == ["e4b"]
        user.back()


def test_enter_takes_nothing_away(user: User, hub: FakeHub) -> None:
    made = paused(user, hub)
    made.menu.ask_remove(made.menu_facts)
    asked: list[str] = []
    made.remove_requested.connect(asked.append)
    box = user.child(QMessageBox)
    user.wait(lambda: isinstance(user.focus, QPushButton) and user.focus.window() is box)
    user.press("Return")
    user.back()
    assert asked == []


def test_a_question_about_a_file_outlives_changes_of_the_list(qtbot: QtBot, hub: FakeHub, tmp_path: Path) -> None:
    assert hub.endpoint
    imported(tmp_path, "a.gguf", "first")
    imported(tmp_path, "b.gguf", "second")
    with window(qtbot) as user:
        shown = page(user)
        user.wait(lambda: len(shown.imported.rows) == 2)
        row = shown.imported.rows[0]
        row.ask_remove()
        imported(tmp_path, "c.gguf", "third")
        user.controller.models.refresh()
        user.wait(lambda: len(shown.imported.rows) == 3)
        box = user.child(QMessageBox)
        click(next(button for button in box.buttons() if button.text() == "Remove"))
        user.wait(lambda: [row.name.whole for row in shown.imported.rows] == ["b.gguf", "c.gguf"])
        user.back()
        row = shown.imported.rows[0]
        row.ask_remove()
        box = user.child(QMessageBox)
        Path(row.path).unlink()  # somebody else was faster
        user.controller.models.refresh()
        user.wait(lambda: not shiboken6.isValid(box) or not box.isVisible(), "the question is still asked")
        user.back()


# What is given to it


@no_links
def test_names_that_are_made_to_hurt(user: User, tmp_path: Path) -> None:
    names = ["a" * 240 + ".gguf", "x\u202efugg.gguf", "two\nlines.gguf", "<b>bold.gguf", "모델 🙂.gguf"]
    shown = page(user)
    shown.look_requested.emit([str(own(tmp_path, name, f"n{place}")) for place, name in enumerate(names)])
    user.wait(lambda: shown.dialog is not None and shown.dialog.isVisible())
    rows = shown.dialog.rows  # type: ignore[union-attr]
    assert [row.found.path.name for row in rows] == names
    height = rows[0].name.sizeHint().height()
    for row in rows:
        texts = (row.name.whole, row.name.text(), row.name.toolTip(), row.box.accessibleName())
        assert not any(character in text for text in texts for character in "\u202e\n")
        assert row.name.sizeHint().height() < 1.5 * height
    assert rows[3].name.text() == "<b>bold.gguf"
    assert "&lt;b&gt;bold" in rows[3].name.toolTip()
    click(shown.dialog.accept_button)  # type: ignore[union-attr]
    user.wait(lambda: len(shown.imported.rows) == len(names))
    user.back()
    for row in shown.imported.rows:
        assert not any(
            GuiQt.mightBeRichText(tip) and "&lt;" not in tip for tip in (row.name.toolTip(), row.more.toolTip())
        )


def test_a_whole_disk_that_is_dropped_can_be_stopped(
    user: User, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ended, walk = threading.Event(), os.walk

    def endless(top: Path) -> Iterator[tuple[Path, list[str], list[str]]]:
        while not ended.is_set():
            yield top, [], ["picture.jpg"]

    monkeypatch.setattr(os, "walk", lambda top: endless(top) if top == tmp_path else walk(top))
    shown = page(user)
    drop(shown, files(tmp_path))
    try:
        user.wait(shown.checking.isVisible, "nothing says that the folder is looked through")
        click(shown.checking.stop)
        user.wait(lambda: not user.controller.models.work.busy, "it is still looked through")
    finally:
        ended.set()


# A folder that is gone


def gone(tmp_path: Path) -> tuple[Path, PairChoice]:
    """A model folder on a drive, and the pair in it."""
    folder = tmp_path / "drive" / "models"
    pair = put(Store(folder, catalog()), "e2b")
    return folder, PairChoice("files", *map(str, pair))


def test_a_folder_whose_drive_is_not_there_at_the_start(qtbot: QtBot, hub: FakeHub, tmp_path: Path) -> None:
    assert hub.endpoint
    folder, choice = gone(tmp_path)
    keep(choice, models_folder=str(folder))
    folder.parent.rename(tmp_path / "unplugged")
    with opened(qtbot) as user:
        user.notice(f"The folder {folder} is not there. Connect its disk")
        shown = page(user)
        made = shown.cards["e2b"]
        press(user, made, "download")  # not onto the disk that is there instead
        user.wait(lambda: made.problem.isVisible())
        assert "is not there" in made.problem.text
        assert not folder.parent.exists()
        user.wait(lambda: user.controller.pair.kind == "failed")
        (tmp_path / "unplugged").rename(folder.parent)
        page(user)
        user.controller.models.refresh()
        user.wait(lambda: made.file_state is S.INSTALLED)
        press(user, made, "use")
        user.wait(lambda: made.in_use)


def test_a_folder_whose_drive_goes_while_its_pair_is_used(qtbot: QtBot, hub: FakeHub, tmp_path: Path) -> None:
    assert hub.endpoint
    folder, choice = gone(tmp_path)
    with window(qtbot, choice, models_folder=str(folder)) as user:
        shutil.rmtree(folder.parent)
        assert user.ask().text
        shown = page(user)
        user.wait(lambda: any("is not there" in text for text in said(shown)))
        shown.verify_requested.emit()
        user.wait(lambda: not user.controller.models.work.busy)
        assert {notice.kind for notice in shown.notices.notices()} == {"bad"}
        assert not folder.parent.exists()
