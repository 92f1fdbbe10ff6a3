"""The settings of models and network: what they show, what they say was changed, and what they refuse."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import msgspec
import pytest
from PySide6.QtCore import QRect, Qt
from PySide6.QtWidgets import QApplication, QLabel, QLineEdit
from pytestqt.qtbot import QtBot

from support import model_views
from support.model_views import check_job
from tandem.models.network import NO_PROXY, Effect
from tandem.models.state import FileState
from tandem.settings import Settings
from tandem.ui.session_state import NetworkView, VariableView
from tandem.ui.settings_models import MIB, ModelsSection
from tandem.ui.settings_models import NO_PROXY as SHOWN_NO_PROXY
from tandem.ui.settings_page import SettingsPage
from tandem.ui.theme import ThemeManager


@pytest.fixture
def manager(qapp: QApplication) -> Iterator[ThemeManager]:
    made = ThemeManager(qapp)
    made.apply(qapp, "light")
    yield made
    made.deleteLater()


@pytest.fixture
def page(manager: ThemeManager, qtbot: QtBot) -> SettingsPage:
    made = SettingsPage(manager)
    qtbot.addWidget(made)
    made.resize(1000, 700)
    made.show()
    made.show_section(made.models)
    return made


@pytest.fixture
def section(page: SettingsPage) -> ModelsSection:
    return page.models


class Store:
    """Stands for the controller: takes what was changed, keeps it as the real settings do, and shows it."""

    def __init__(self, page: SettingsPage, settings: Settings) -> None:
        self.page, self.settings = page, settings
        self.said: list[dict[str, Any]] = []
        page.changed.connect(self.change)
        page.set_settings(settings)

    def change(self, fields: dict[str, Any]) -> None:
        self.said.append(fields)
        self.settings = self.settings.changed(**fields)
        self.page.set_settings(self.settings)


@pytest.fixture
def store(page: SettingsPage) -> Store:
    return Store(page, Settings())


def _write(qtbot: QtBot, line: QLineEdit, text: str) -> None:
    line.setFocus()
    line.selectAll()
    qtbot.keyClicks(line, text)
    qtbot.keyClick(line, Qt.Key.Key_Return)


def _texts(section: ModelsSection) -> str:
    return "\n".join(label.text() for label in section.findChildren(QLabel) if label.isVisible())


def test_it_shows_everything_and_says_nothing(page: SettingsPage, section: ModelsSection) -> None:
    settings = Settings(
        hub_endpoint="https://mirror.example.org",
        proxy="http://proxy.example.org:3128",
        speed_limit=3 * MIB,
        connections=2,
    )
    store = Store(page, settings)
    page.set_network(model_views.MIRROR)
    assert store.said == []
    assert section.endpoint.text() == "https://mirror.example.org"
    assert section.proxy_kind.currentData() == "own"
    assert section.proxy.text() == "http://proxy.example.org:3128"
    assert (section.speed.value(), section.connections.value()) == (3.0, 2)
    assert section.folder.path.whole == model_views.FOLDER


# --- the Hub and the proxy


def test_a_mirror_counts_when_it_was_written(store: Store, section: ModelsSection, qtbot: QtBot) -> None:
    _write(qtbot, section.endpoint, " https://mirror.example.org ")
    assert store.said == [{"hub_endpoint": "https://mirror.example.org"}]
    section.endpoint.clear()  # by the cross in the line
    assert store.settings.hub_endpoint == ""


@pytest.mark.parametrize("text", ["ftp://mirror.example.org", "https://", "two words"])
def test_what_is_no_address_is_said_and_not_kept(store: Store, section: ModelsSection, qtbot: QtBot, text: str) -> None:
    _write(qtbot, section.endpoint, text)
    assert "not an address" in section.endpoint_field.problem
    assert store.said == []
    _write(qtbot, section.endpoint, "mirror.example.org")  # a bare host is enough
    assert section.endpoint_field.problem == ""
    assert store.settings.hub_endpoint == "mirror.example.org"


def test_a_proxy_is_automatic_none_or_one_of_one_s_own(store: Store, section: ModelsSection, qtbot: QtBot) -> None:
    def choose(kind: str) -> None:
        section.proxy_kind.setCurrentIndex(section.proxy_kind.findData(kind))

    assert SHOWN_NO_PROXY == NO_PROXY
    assert not section.proxy_address.isVisible()
    choose("none")
    assert store.settings.proxy == NO_PROXY
    choose("own")
    assert store.settings.proxy == NO_PROXY  # nothing counts before an address is there
    assert section.proxy_address.isVisible()
    _write(qtbot, section.proxy, "socks5://proxy.example.org")
    assert section.proxy_address.problem != ""
    assert store.settings.proxy == NO_PROXY
    _write(qtbot, section.proxy, "http://proxy.example.org:3128")
    assert store.settings.proxy == "http://proxy.example.org:3128"
    assert section.proxy_kind.currentData() == "own"
    choose("auto")
    assert store.settings.proxy == ""
    assert not section.proxy_address.isVisible()
    assert section.proxy.text() == ""


def test_the_view_says_where_an_address_comes_from(page: SettingsPage, section: ModelsSection) -> None:
    page.set_network(model_views.MIRROR)
    texts = _texts(section).replace("\u200b", "")
    assert "In use: https://mirror.example.org, from HF_ENDPOINT." in texts
    assert "In use: http://•••@proxy.example.org:8080, from HTTPS_PROXY." in texts
    page.set_network(NetworkView(endpoint="https://huggingface.co", proxy="http://p.example.org", proxy_from="system"))
    texts = _texts(section).replace("\u200b", "")
    assert "HF_ENDPOINT" not in texts
    assert "from the system" in texts


def test_the_variables_stand_in_columns_with_a_gap(page: SettingsPage, section: ModelsSection, qtbot: QtBot) -> None:
    page.set_network(model_views.MIRROR)
    grid = section._grid
    gap = section._manager.theme.space.l
    assert grid.horizontalSpacing() == gap

    def cells(line: int) -> list[QRect]:
        found = [grid.itemAtPosition(line, column) for column in range(3)]
        return [cell.widget().geometry() for cell in found if cell is not None]

    lines = range(len(model_views.MIRROR.variables))
    qtbot.waitUntil(lambda: all(len(cells(line)) == 3 and cells(line)[2].left() > 0 for line in lines))
    assert len({tuple(cell.left() for cell in cells(line)) for line in lines}) == 1
    for line in lines:
        assert {after.left() - before.right() - 1 for before, after in pairwise(cells(line))} == {gap}


def test_a_setting_that_cannot_be_used_is_said(page: SettingsPage, section: ModelsSection) -> None:
    assert not section.problem.isVisible()
    page.set_network(NetworkView(sentence="The address is none.", remedy="Give another."))
    assert (section.problem.text, section.problem.more) == ("The address is none.", "Give another.")
    page.set_network(model_views.OFFLINE)
    assert "HF_HUB_OFFLINE is set" in section.problem.text
    page.set_network(NetworkView())
    assert not section.problem.isVisible()


# --- limits


def test_speed_and_connections_count_at_once(store: Store, section: ModelsSection) -> None:
    section.speed.setValue(5.0)
    section.connections.setValue(1)
    assert store.said == [{"speed_limit": 5 * MIB}, {"connections": 1}]
    section.speed.setValue(0.0)
    assert store.settings.speed_limit is None
    assert section.speed.text() == "No limit"
    for box in (section.speed, section.connections):
        for value in (box.minimum(), box.maximum()):
            box.setValue(value)  # type: ignore[arg-type]
            assert msgspec.convert(msgspec.to_builtins(store.settings), Settings) == store.settings


# --- the folder


def test_another_folder_is_asked_for_and_its_move_is_shown(
    page: SettingsPage, section: ModelsSection, qtbot: QtBot, opened_urls: list[str]
) -> None:
    page.set_network(model_views.MIRROR)
    dialog = section.open_dialog()
    assert dialog.isVisible()
    with qtbot.assertNotEmitted(page.folder_move_requested):
        dialog.fileSelected.emit(model_views.FOLDER)  # where they are already
    with qtbot.waitSignal(page.folder_move_requested) as said:
        dialog.fileSelected.emit("/srv/모델")
    assert said.args == ["/srv/모델"]
    dialog.reject()
    page.set_checking(check_job("verify", "a.gguf"))
    assert not section.folder.block.isVisible()
    page.set_checking(check_job("move", "a.gguf", FileState.CHECKING))
    assert section.folder.block.isVisible()
    assert not section.folder.change.isEnabled()
    with qtbot.waitSignal(page.stop_move_requested):
        section.folder.stop.click()
    page.set_checking(None)
    assert section.folder.change.isEnabled()
    section.folder.open.click()
    assert opened_urls == [f"file://{model_views.FOLDER}"]


# --- the token, and the environment


def test_a_token_is_handed_over_once_and_never_shown(page: SettingsPage, section: ModelsSection, qtbot: QtBot) -> None:
    assert section.token.echoMode() == QLineEdit.EchoMode.Password
    assert not section.keep.isEnabled()
    qtbot.keyClicks(section.token, " hf_secret ")
    with qtbot.waitSignal(page.token_keep_requested) as said:
        section.keep.click()
    assert said.args == ["hf_secret"]
    assert section.token.text() == ""
    assert "hf_secret" not in _texts(section)


@pytest.mark.parametrize(
    ("where", "words", "forgets"),
    [
        (None, "needs none", False),
        ("keyring", "keyring", True),
        ("HF_TOKEN", "HF_TOKEN", False),
        ("file", "login", False),
    ],
)
def test_it_is_said_where_a_token_was_found(
    page: SettingsPage, section: ModelsSection, qtbot: QtBot, where: str | None, words: str, forgets: bool
) -> None:
    page.set_network(NetworkView(token=where))
    assert words in section.token_help.text()
    assert section.forget.isVisible() == forgets
    if forgets:
        with qtbot.waitSignal(page.token_forget_requested):
            section.forget.click()


def test_every_variable_that_counts_stands_with_what_it_does(
    page: SettingsPage, section: ModelsSection, qtbot: QtBot
) -> None:
    assert "None of the variables" in _texts(section)
    effects = Effect.__args__  # type: ignore[attr-defined]
    variables = tuple(VariableView(f"NAME_{place}", f"value {place}", effect) for place, effect in enumerate(effects))
    page.set_network(NetworkView(variables=variables))

    def cells() -> list[str]:
        return [label.text() for label in section.variables.findChildren(QLabel) if label.isVisible()]

    qtbot.waitUntil(lambda: len(cells()) == 3 * len(effects))
    assert all(cells())
    assert "value 0" in cells()


def test_privacy_names_every_host_and_when_it_is_contacted(page: SettingsPage, qtbot: QtBot) -> None:
    def shown() -> list[str]:
        return [label.text() for label in page.privacy.table.findChildren(QLabel) if not label.isHidden()]

    assert "huggingface.co" in shown()
    assert "when you ask for it" in page.privacy.statement.text()
    page.set_network(model_views.MIRROR)
    qtbot.waitUntil(lambda: "mirror.example.org" in shown() and "huggingface.co" not in shown())
    page.set_network(model_views.OFFLINE)
    assert "no network connection" in page.privacy.statement.text()
    qtbot.waitUntil(lambda: "*.hf.co" in shown())
