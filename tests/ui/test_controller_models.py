"""Model files in the window's hands: what is here, what is removed, the way to the Hub."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import keyring
import keyring.backend
import keyring.errors
import pytest
from pytestqt.qtbot import QtBot

from support.hub import FakeHub
from support.shelf import Shelf, alone, catalog, content, put, shelf
from tandem import paths
from tandem.models.overview import Overview
from tandem.models.state import FileState
from tandem.models.store import Store
from tandem.settings import PairChoice
from tandem.ui.session_state import NetworkView


@pytest.fixture
def hub() -> Iterator[FakeHub]:
    with FakeHub() as running:
        yield running


@pytest.fixture(autouse=True)
def _nobodys_sign_in(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    alone(monkeypatch, tmp_path / "hf")


@pytest.fixture
def table(qtbot: QtBot, hub: FakeHub) -> Iterator[Shelf]:
    with shelf(qtbot, hub) as made:
        yield made


def usual_store() -> Store:
    return Store(paths.models_dir(), catalog())


# What is here


def test_at_the_start_everything_is_absent(table: Shelf) -> None:
    assert [pair.key for pair in table.overview.pairs] == ["e2b", "e4b"]
    assert {pair.state for pair in table.overview.pairs} == {FileState.ABSENT}
    assert table.overview.folder == str(paths.models_dir())
    assert table.notices == []


def test_the_files_are_looked_at_only_when_the_chats_are_open(qtbot: QtBot, hub: FakeHub) -> None:
    with shelf(qtbot, hub) as table:
        order = [name for name, _ in table.desk.said]
        assert "ready" in order
        assert table.keeper.overview is not None


def test_what_has_changed_since_it_was_checked_is_told_at_the_start(qtbot: QtBot, hub: FakeHub) -> None:
    target, drafter = put(usual_store(), "e2b")
    with target.open("ab") as stream:
        stream.write(b"more")
    drafter.unlink()
    with shelf(qtbot, hub) as table:
        assert [file.state for file in table.pair().files] == [FileState.CHANGED, FileState.MISSING]
        table.wait(lambda: table.desk.notices)
        told = table.desk.notices[-1]
        assert (told.kind, told.action) == ("warn", "open-models")
        assert target.name in told.text
        assert drafter.name in told.text
        table.keeper.refresh()
        table.wait(lambda: not table.keeper.looking)
        assert len(table.desk.notices) == 1


def test_several_wishes_to_look_again_become_one(table: Shelf, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []
    workshop = table.keeper._workshop
    look = workshop.overview

    def overview(*arguments: Any) -> Overview:
        asked.append(1)
        return look(*arguments)

    monkeypatch.setattr(workshop, "overview", overview)
    for _ in range(20):
        table.keeper.refresh()
    table.wait(lambda: not table.keeper.looking)
    assert 1 <= len(asked) <= 2


def test_a_folder_that_cannot_be_used_is_told_once(qtbot: QtBot, hub: FakeHub, tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("not a folder")
    with shelf(qtbot, hub) as table:
        table.desk.controller.change_settings(models_folder=str(blocked))
        table.wait(lambda: any(notice.kind == "bad" for notice in table.notices))
        table.keeper.refresh()
        table.wait(lambda: not table.keeper.looking)
        assert len([notice for notice in table.notices if notice.kind == "bad"]) == 1


def test_using_a_pair_loads_it(qtbot: QtBot, hub: FakeHub) -> None:
    target, drafter = put(usual_store(), "e2b")
    with shelf(qtbot, hub) as table:
        table.keeper.use("e2b")
        controller = table.desk.controller
        table.wait(lambda: controller.pair.kind == "loaded")
        assert controller.settings.pair == PairChoice("files", str(target), str(drafter))


def test_a_pair_that_is_not_complete_is_not_used(table: Shelf) -> None:
    table.keeper.use("e2b")
    table.wait(lambda: table.notices)
    assert "Tiny E2B" in table.notices[0].text
    assert table.notices[0].action == "open-models"
    assert table.all("load_requested") == []


def test_an_unknown_pair_is_a_sentence(table: Shelf) -> None:
    table.keeper.use("nothing")
    table.wait(lambda: table.notices)
    assert "nothing" in table.notices[0].text
    table.keeper.download("nothing")
    assert len(table.notices) == 2
    assert table.jobs == []


# Removing


def test_removing_a_pair_deletes_its_files(qtbot: QtBot, hub: FakeHub) -> None:
    target, drafter = put(usual_store(), "e2b")
    with shelf(qtbot, hub) as table:
        assert table.state() is FileState.INSTALLED
        table.keeper.remove("e2b")
        table.until(FileState.ABSENT)
        assert not target.exists()
        assert not drafter.exists()
        assert [notice.kind for notice in table.notices] == ["good"]


def test_the_pair_in_use_is_not_removed(qtbot: QtBot, hub: FakeHub) -> None:
    target, _ = put(usual_store(), "e2b")
    with shelf(qtbot, hub) as table:
        table.keeper.use("e2b")
        table.wait(lambda: table.desk.controller.pair.kind == "loaded")
        table.keeper.remove("e2b")
        table.wait(lambda: table.notices)
        assert table.notices[-1].kind == "warn"
        assert target.exists()


def test_a_file_in_place_only_leaves_the_list(table: Shelf, tmp_path: Path) -> None:
    mine = tmp_path / "mine.gguf"
    mine.write_bytes(content("e2b", "target"))
    table.keeper.look([str(mine)])
    table.wait(lambda: table.all("found"))
    table.keeper.take(table.all("found")[0][0], "in-place")
    table.wait(lambda: not table.keeper.work.busy and not table.keeper.looking)
    assert table.pair().files[0].in_place
    table.keeper.remove(str(mine))
    table.wait(lambda: len(table.notices) == 2)
    table.until(FileState.ABSENT)
    assert mine.exists()


# The way to the Hub


class Ring(keyring.backend.KeyringBackend):
    """A keyring in memory."""

    priority = 1  # type: ignore[assignment]

    def __init__(self) -> None:
        self.kept: dict[tuple[str, str], str] = {}

    def get_password(self, service: str, username: str) -> str | None:
        return self.kept.get((service, username))

    def set_password(self, service: str, username: str, password: str) -> None:
        self.kept[service, username] = password

    def delete_password(self, service: str, username: str) -> None:
        del self.kept[service, username]


@pytest.fixture
def ring() -> Iterator[Ring]:
    before, made = keyring.get_keyring(), Ring()
    keyring.set_keyring(made)
    yield made
    keyring.set_keyring(before)


def test_a_token_is_kept_in_the_keyring_and_never_told(table: Shelf, ring: Ring) -> None:
    table.keeper.show_network(token=True)
    table.wait(lambda: table.all("network"))
    assert table.all("network")[-1].token is None
    table.keeper.keep_token("hf_secret")
    table.wait(lambda: table.all("network")[-1].token == "keyring")
    assert list(ring.kept.values()) == ["hf_secret"]
    assert "hf_secret" not in repr(table.said)
    table.keeper.forget_token()
    table.wait(lambda: table.all("network")[-1].token is None)
    assert ring.kept == {}
    assert [notice.kind for notice in table.notices] == ["good", "good"]


def test_the_keyring_is_left_alone_until_the_token_matters(
    table: Shelf, ring: Ring, monkeypatch: pytest.MonkeyPatch
) -> None:
    def asked(*_: object) -> None:
        pytest.fail("the keyring was asked")

    monkeypatch.setattr(ring, "get_password", asked)
    table.keeper.show_network()
    table.wait(lambda: table.all("network"))


def test_without_a_keyring_a_sentence_says_what_else_there_is(
    table: Shelf, ring: Ring, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise keyring.errors.NoKeyringError("none")

    monkeypatch.setattr(ring, "set_password", refuse)
    table.keeper.keep_token("hf_secret")
    table.wait(lambda: table.notices)
    assert table.notices[0].kind == "bad"
    assert "HF_TOKEN" in table.notices[0].remedy


def test_the_way_to_the_hub_is_told_again_when_it_changes(
    qtbot: QtBot, hub: FakeHub, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_ENDPOINT", "https://mirror.example")
    monkeypatch.setenv("HTTPS_PROXY", "http://me:word@proxy.example:3128")
    monkeypatch.setenv("HF_TOKEN", "hf_secret")
    with shelf(qtbot, hub, network=None) as table:
        views: list[NetworkView] = table.all("network")
        assert views == []  # nobody has asked
        table.keeper.show_network(token=True)
        table.wait(lambda: table.all("network"))
        view: NetworkView = table.all("network")[-1]
        assert (view.endpoint, view.endpoint_from) == ("https://mirror.example", "HF_ENDPOINT")
        assert view.proxy_from == "HTTPS_PROXY"
        assert view.token == "HF_TOKEN"
        assert view.hosts == ("mirror.example",)
        assert view.folder == str(paths.models_dir())
        assert {one.name for one in view.variables} >= {"HF_ENDPOINT", "HF_TOKEN", "HTTPS_PROXY"}
        assert "word" not in repr(view)
        assert "hf_secret" not in repr(view)
        table.desk.controller.change_settings(hub_endpoint="https://other.example")
        table.wait(lambda: table.all("network")[-1].endpoint == "https://other.example")
        assert table.all("network")[-1].endpoint_from == "settings"
        table.desk.controller.change_settings(hub_endpoint="no address at all")
        table.wait(lambda: table.all("network")[-1].sentence)
        assert table.all("network")[-1].remedy
        count = len(table.all("network"))
        table.desk.controller.change_settings(theme="dark")
        table.keeper.refresh()
        table.wait(lambda: not table.keeper.looking)
        assert len(table.all("network")) == count
