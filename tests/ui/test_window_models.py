"""Models from the window: downloaded, used, checked, imported and moved with clicks, from a Hub on loopback."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QAbstractButton
from pytestqt.qtbot import QtBot

from support.hub import FakeHub
from support.shelf import alone, catalog, content, fill, held, put
from support.windows import User, drop, files, keep, opened, window
from tandem import paths
from tandem.models import catalog as models_catalog
from tandem.models.state import FileState
from tandem.models.store import Store
from tandem.settings import PairChoice
from tandem.ui.models_card import ModelCard
from tandem.ui.models_page import ModelsPage

S = FileState


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


def card(user: User, key: str = "e2b") -> ModelCard:
    return page(user).cards[key]


def click(button: QAbstractButton) -> None:
    assert button.isVisible()
    assert button.isEnabled()
    QTest.mouseClick(button, Qt.MouseButton.LeftButton)


def press(user: User, made: ModelCard, act: str) -> None:
    """Presses a card's main button once it says that."""
    user.wait(lambda: made.action.act == act and made.action.button.isEnabled(), f"the card never offers {act!r}")
    user.window.pages.models.column.ensureWidgetVisible(made)
    click(made.action.button)


def test_download_and_use_with_two_clicks(user: User, hub: FakeHub) -> None:
    held(hub)
    made = card(user)
    press(user, made, "download")
    user.wait(lambda: made.file_state is S.TRANSFERRING and made.progress.isVisible())
    chip = user.chat.header.job
    user.press("Ctrl+1")
    user.wait(chip.isVisible, "the header says nothing of the download")
    assert user.ask().text  # and one can chat meanwhile
    click(chip)
    assert user.window.page == "models"
    hub.behave()
    user.wait(lambda: made.file_state is S.INSTALLED)
    press(user, made, "use")
    user.wait(lambda: made.in_use and user.controller.pair.kind == "loaded")
    user.press("Ctrl+1")
    user.wait(lambda: not chip.isVisible())
    assert user.ask().text


def test_pause_and_resume_on_the_card(user: User, hub: FakeHub) -> None:
    held(hub)
    made = card(user)
    press(user, made, "download")
    user.wait(lambda: made.file_state is S.TRANSFERRING)
    press(user, made, "pause")
    user.wait(lambda: made.file_state is S.PAUSED)
    hub.behave()
    press(user, made, "resume")
    user.wait(lambda: made.file_state is S.INSTALLED)


def test_an_error_is_told_where_one_looks(user: User, hub: FakeHub) -> None:
    hub.misbehave("no-repo", times=None)
    made = card(user)
    press(user, made, "download")
    user.wait(lambda: made.problem.isVisible())
    assert user.window.page == "models"  # nobody is sent away from it
    assert user.window.pages.models.notices.notices()
    hub.behave()
    press(user, made, "try-again")
    user.wait(lambda: made.file_state is S.INSTALLED)


def test_a_failure_is_told_above_the_chat_until_it_was_seen(user: User, hub: FakeHub) -> None:
    hub.misbehave("no-repo", times=None)
    chip = user.chat.header.job
    user.controller.models.download("e2b")
    user.wait(lambda: chip.isVisible() and "Could not be downloaded" in chip.text())
    click(chip)
    made = user.window.pages.models.cards["e2b"]
    user.wait(lambda: made.file_state is S.FAILED)
    user.press("Ctrl+1")
    assert not chip.isVisible()
    user.controller.models.download("e2b")
    user.wait(lambda: chip.isVisible() and "Could not" in chip.text())
    user.controller.models.cancel("e2b", False)  # dismissed
    user.wait(lambda: not chip.isVisible())
    assert card(user).state.text == "Not on this machine"


def test_an_error_comes_to_who_chats(user: User, hub: FakeHub) -> None:
    hub.misbehave("no-repo", times=None)
    user.controller.models.download("e2b")
    notice = user.notice("e2b")
    button = next(one for one in notice.findChildren(QAbstractButton) if one.text())
    click(button)
    assert user.window.page == "models"


def test_files_that_are_dropped_are_taken_in(user: User, tmp_path: Path) -> None:
    shown = page(user)
    mine = tmp_path / "내 모델.gguf"
    mine.write_bytes(content("e2b", "target"))
    assert drop(shown, files(mine)) is Qt.DropAction.CopyAction
    user.wait(lambda: shown.dialog is not None and shown.dialog.isVisible())
    assert shown.dialog is not None
    click(shown.dialog.accept_button)
    user.wait(lambda: user.controller.models.overview.pair("e2b").files[0].state is S.INSTALLED)  # type: ignore[union-attr]
    user.back()


def test_a_flipped_byte_is_found_from_the_page(qtbot: QtBot, hub: FakeHub) -> None:
    assert hub.endpoint
    target, _ = put(Store(paths.models_dir(), catalog()), "e2b")
    status, data = target.stat(), bytearray(target.read_bytes())
    data[-1000] ^= 1
    target.write_bytes(data)
    os.utime(target, ns=(status.st_atime_ns, status.st_mtime_ns))
    with window(qtbot) as user:
        shown = page(user)
        assert shown.cards["e2b"].file_state is S.INSTALLED
        shown.verify_requested.emit()
        user.wait(lambda: shown.cards["e2b"].file_state is S.QUARANTINED)
        user.wait(lambda: shown.quarantined.isVisible())
        press(user, shown.cards["e2b"], "start-again")
        user.wait(lambda: shown.cards["e2b"].file_state is S.INSTALLED)


def test_the_folder_moves_from_the_settings(qtbot: QtBot, hub: FakeHub, tmp_path: Path) -> None:
    assert hub.endpoint
    target, drafter = put(Store(paths.models_dir(), catalog()), "e2b")
    with window(qtbot, PairChoice("files", str(target), str(drafter))) as user:
        user.press("Ctrl+4")
        section = user.window.pages.settings.models
        user.wait(lambda: section.view.folder == str(paths.models_dir()))
        section.folder_move_requested.emit(str(tmp_path / "new"))
        user.wait(lambda: section.view.folder == str(tmp_path / "new"))
        assert card(user).in_use
        assert user.controller.settings.pair.target == str(tmp_path / "new" / target.relative_to(paths.models_dir()))


def test_a_part_of_the_last_time_is_listed_after_a_restart(qtbot: QtBot, hub: FakeHub) -> None:
    held(hub)
    keep(load=True)
    with opened(qtbot) as user:
        made = card(user)
        press(user, made, "download")
        user.wait(lambda: made.job is not None and made.job.done > 100_000)
        user.close()
    hub.behave()
    with opened(qtbot) as user:
        made = card(user)
        user.wait(lambda: made.file_state is S.PAUSED)
        press(user, made, "resume")
        user.wait(lambda: made.file_state is S.INSTALLED)


def test_the_welcome_is_no_dead_end_after_a_failure(qtbot: QtBot, hub: FakeHub) -> None:
    hub.misbehave("portal", times=None, where="info")
    with window(qtbot, load=False) as user:
        welcome = user.chat.welcome
        user.wait(lambda: "(" in welcome.download.text(), "this machine is never known")
        hub.allow(0)
        click(welcome.download)
        user.wait(lambda: welcome.download.text() == "Try again")
        assert welcome.problem.kind == "bad"
        click(welcome.settings)
        assert user.window.page == "settings"
        user.press("Ctrl+1")
        hub.behave()
        held(hub)
        click(welcome.download)
        user.wait(lambda: welcome.download.text() == "Pause" and not welcome.settings.isVisible())
        user.wait(lambda: welcome.transfer.isVisible())
        click(welcome.download)
        user.wait(lambda: welcome.download.text() == "Resume")
        hub.behave()
        click(welcome.download)
        user.wait(lambda: welcome.download.text().startswith("Use "))
        click(welcome.download)
        user.loaded()


def test_the_welcome_and_an_empty_chat_offer_the_same(user: User) -> None:
    offers = user.chat.suggestions
    user.wait(lambda: offers.download.isVisible() and "(" in offers.download.text(), "this machine is never known")
    assert offers.download.text() == user.chat.welcome.download.text()


def test_offline_no_download_is_offered(qtbot: QtBot, hub: FakeHub, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    with window(qtbot) as user:
        user.wait(lambda: not user.chat.suggestions.download.isVisible())
        assert not card(user).action.button.isEnabled()
    assert hub.requests == []


def test_the_welcome_downloads(qtbot: QtBot, hub: FakeHub) -> None:
    held(hub)
    with window(qtbot, load=False) as user:
        user.chat.welcome.download_requested.emit("e2b")
        user.wait(lambda: user.controller.models.downloads.under_way == "e2b")
        hub.behave()
        notice = user.notice("Tiny E2B")
        click(next(one for one in notice.findChildren(QAbstractButton) if one.text()))
        user.loaded()
