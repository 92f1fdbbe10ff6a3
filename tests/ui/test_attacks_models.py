"""Rough use of the models in the window."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from PySide6.QtCore import QEvent, QPoint, QPointF, Qt
from PySide6.QtGui import QMouseEvent, Qt as GQt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QAbstractButton, QApplication, QLabel, QMessageBox, QWidget
from pytestqt.qtbot import QtBot

from support.hub import FakeHub
from support.shelf import alone, catalog, content, fill, held, named, put
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


from support import windows as _w
_orig=User.wait
def _wait(self, condition, what="", timeout=8000):
    _orig(self, condition, what, timeout)
User.wait=_wait  # EXPLORE


def page(user: User) -> ModelsPage:
    user.press("Ctrl+2")
    shown = user.window.pages.models
    user.wait(lambda: shown.isVisible() and user.controller.models.overview is not None)
    return shown


def click(button: QAbstractButton) -> None:
    assert button.isVisible()
    assert button.isEnabled()
    QTest.mouseClick(button, Qt.MouseButton.LeftButton)


def press(user: User, made: ModelCard, act: str) -> None:
    user.wait(lambda: made.action.act == act and made.action.button.isEnabled(), f"the card never offers {act!r}: {made.action.act} {made.file_state}")
    user.window.pages.models.column.ensureWidgetVisible(made)
    click(made.action.button)


def double(user: User, widget: QWidget) -> None:
    """Double-click as the window system: on the window, wherever the place is."""
    top = user.window.windowHandle()
    place = widget.mapTo(user.window, widget.rect().center())
    QTest.mouseClick(top, Qt.MouseButton.LeftButton, Qt.KeyboardModifier.NoModifier, place)
    QTest.mouseClick(top, Qt.MouseButton.LeftButton, Qt.KeyboardModifier.NoModifier, place)


def test_double_click(user: User, hub: FakeHub) -> None:
    held(hub)
    shown = page(user)
    made = shown.cards["e2b"]
    user.wait(lambda: made.action.act == "download")
    shown.column.ensureWidgetVisible(made)
    double(user, made.action.button)
    user.wait(lambda: made.file_state is S.TRANSFERRING, f"it is {made.file_state}")


def test_failed_then_imported(user: User, hub: FakeHub, tmp_path: Path) -> None:
    hub.misbehave("no-repo", times=None)
    shown = page(user)
    made = shown.cards["e2b"]
    press(user, made, "download")
    user.wait(lambda: made.problem.isVisible())
    mine = [tmp_path / "a.gguf", tmp_path / "b.gguf"]
    for path, role in zip(mine, ("target", "drafter")):
        path.write_bytes(content("e2b", role))
    drop(shown, files(*mine))
    user.wait(lambda: shown.dialog is not None and shown.dialog.isVisible())
    click(shown.dialog.accept_button)
    user.wait(lambda: user.controller.models.overview.pair("e2b").state is S.INSTALLED)
    user.back()
    user.wait(lambda: not user.controller.models.looking)
    user.wait(lambda: made.file_state is S.INSTALLED, f"it is {made.file_state}")
    assert not made.problem.isVisible()
    assert not user.chat.header.job.isVisibleTo(user.chat.header)


def test_bad_endpoint_keeps_bytes(qtbot: QtBot, user: User, hub: FakeHub, monkeypatch) -> None:
    held(hub)
    shown = page(user)
    made = shown.cards["e2b"]
    press(user, made, "download")
    user.wait(lambda: made.job is not None and made.job.done > 100_000)
    press(user, made, "pause")
    user.wait(lambda: made.file_state is S.PAUSED)
    user.controller.change_settings(hub_endpoint="ftp://%%%")
    press(user, made, "resume")
    user.wait(lambda: made.problem.isVisible())
    print(made.file_state, made.problem.findChildren(QLabel)[1].text() if made.problem.findChildren(QLabel) else "", made.progress.text, made.menu_facts, made.remedy.isVisible(), made.remedy.text())
    assert made.menu_facts.part > 0
    assert made.progress.isVisible()
    assert made.remedy.isVisible()


def test_hostile_names(user: User, tmp_path: Path) -> None:
    shown = page(user)
    names = ["a" * 240 + ".gguf", "x\u202egpj.gguf", "new\nline.gguf", "<b>big.gguf", "모델 🙂.gguf", os.fsdecode(b"bad\xff.gguf")]
    mine = []
    for number, name in enumerate(names):
        path = tmp_path / name
        path.write_bytes(content("e2b", "target") .replace(b"tiny-gemma4", b"x%d-%s" % (number, b"y" * 8))[: None])
        mine.append(path)
    shown.look_requested.emit([str(path) for path in mine])
    user.wait(lambda: shown.dialog is not None and shown.dialog.isVisible())
    for row in shown.dialog.rows:
        print(repr(row.name.text()), repr(row.name.toolTip()), repr(row.box.accessibleName()), row.name.height())
    bad = [row for row in shown.dialog.rows if any(c in row.name.whole + row.name.toolTip() for c in "\u202e\n") or GQt.mightBeRichText(row.name.toolTip())]
    print([row.name.whole for row in bad])
    click(shown.dialog.accept_button)
    user.wait(lambda: len(user.controller.models.overview.imported) == len(names), str(len(user.controller.models.overview.imported)))
    user.back()
    for row in shown.imported.rows:
        print(repr(row.name.whole), repr(row.name.toolTip()), row.path)
        row.ask_remove()
        print(repr(row.box.text()))
        row.box.reject()
    print([n.text for n in shown.notices.notices()])
    assert not bad


def test_same_twice(user: User, tmp_path: Path) -> None:
    shown = page(user)
    mine = tmp_path / "mine.gguf"
    mine.write_bytes(content("e2b", "target").replace(b"tiny-gemma4", b"abcd-gemma4"))
    shown.look_requested.emit([str(mine), str(mine)])
    shown.look_requested.emit([str(mine)])
    user.wait(lambda: not user.controller.models.work.busy)
    from tandem.ui.models_import import ImportDialog
    dialogs = [d for d in user.window.findChildren(ImportDialog) if d.isVisible()]
    print(len(dialogs), [len(d.rows) for d in dialogs])
    for d in dialogs[::-1]:
        d.hows["copy"].setChecked(True)
        click(d.accept_button)
    user.wait(lambda: not user.controller.models.work.busy and len(user.controller.models.overview.imported))
    user.wait(lambda: not user.controller.models.looking)
    print(sorted(paths.models_dir().rglob("*")), [v.path for v in user.controller.models.overview.imported])
    print([n.text for n in shown.notices.notices()])
    assert len(list(paths.models_dir().rglob("*.gguf"))) == 1


def test_language_theme_during_download(user: User, hub: FakeHub) -> None:
    held(hub)
    shown = page(user)
    made = shown.cards["e2b"]
    press(user, made, "download")
    user.wait(lambda: made.job is not None and made.job.done > 100_000)
    user.controller.models.download("e4b")
    before = (made.state.text, made.progress.text, user.chat.header.job.accessibleName())
    print(before)
    for language in ("ko", "pseudo", "en"):
        user.controller.change_settings(language=language)
        user.qtbot.wait(100)
        print(language, made.action.button.text(), made.action.button.accessibleName(), "|", made.progress.text, "|", user.chat.header.job.accessibleName(), user.chat.header.job.toolTip(), [n.text for n in shown.notices.notices()], [n.button.text() for n in shown.notices.notices() if n.button])
    for scale in (2.0, 0.8, 1.0):
        for theme in ("dark", "light"):
            user.controller.change_settings(text_scale=scale, theme=theme)
            user.qtbot.wait(400)
    assert made.file_state is S.TRANSFERRING


def test_drop_huge_folder(user: User, hub: FakeHub, tmp_path: Path, monkeypatch) -> None:
    shown = page(user)
    asked = []
    real = os.walk
    def walk(top, *a, **k):
        n = 0
        while True:
            asked.append(1)
            yield top, [], ["x.txt"]
    monkeypatch.setattr(os, "walk", walk)
    shown.look_requested.emit([str(tmp_path)])
    user.wait(lambda: len(asked) > 1000)
    print("checking visible", shown.checking.isVisible())
    shown.stop_check_requested.emit()
    try:
        user.wait(lambda: not user.controller.models.work.busy)
    finally:
        def stop(*a, **k):
            raise OSError
        # end the endless walk
        import tandem.ui.models_work as mw
        class B(BaseException): ...
        asked_len = len(asked)
        class Bad(list):
            def append(self, x): raise StopIteration
        monkeypatch.undo()
        os._exit(7) if user.controller.models.work.busy else None


def test_fifo_and_odd(user: User, tmp_path: Path) -> None:
    shown = page(user)
    os.mkfifo(tmp_path / "pipe.gguf")
    (tmp_path / "dir.gguf").mkdir()
    (tmp_path / "empty.gguf").write_bytes(b"")
    (tmp_path / "loop.gguf").symlink_to(tmp_path / "loop.gguf")
    shown.look_requested.emit([str(tmp_path)])
    user.wait(lambda: not user.controller.models.work.busy)
    print([n.text for n in shown.notices.notices()])
    shown.look_requested.emit(["/dev/zero", "/dev/null", "/nonexistent", ""])
    user.wait(lambda: not user.controller.models.work.busy)
    print([n.text for n in shown.notices.notices()])


def test_unplugged_at_start(qtbot: QtBot, hub: FakeHub, tmp_path: Path) -> None:
    away = tmp_path / "stick" / "models"
    put(Store(away, catalog()), "e2b")
    t, d = (away / "tiny/e2b" / named("e2b", r) for r in ("target", "drafter"))
    keep(PairChoice("files", str(t), str(d)), models_folder=str(away))
    (tmp_path / "stick").rename(tmp_path / "gone")
    with opened(qtbot) as user:
        shown = page(user)
        user.wait(lambda: user.controller.pair.kind == "failed")
        print([n.text for n in user.notices], [n.text for n in shown.notices.notices()])
        print(shown.cards["e2b"].file_state, shown.head.folder.whole, (tmp_path/"stick").exists())


def test_unplugged_while_loaded(qtbot: QtBot, hub: FakeHub, tmp_path: Path) -> None:
    away = tmp_path / "stick" / "models"
    put(Store(away, catalog()), "e2b")
    t, d = (away / "tiny/e2b" / named("e2b", r) for r in ("target", "drafter"))
    with window(qtbot, PairChoice("files", str(t), str(d)), models_folder=str(away)) as user:
        shown = page(user)
        assert shown.cards["e2b"].in_use
        shutil.rmtree(tmp_path / "stick")
        user.press("Ctrl+1")
        assert user.ask().text
        shown = page(user)
        user.wait(lambda: not user.controller.models.looking)
        print([n.text for n in user.notices], [n.text for n in shown.notices.notices()])
        print(shown.cards["e2b"].file_state, shown.cards["e2b"].in_use, shown.head.folder.whole, (tmp_path/"stick").exists())
        shown.verify_requested.emit()
        user.wait(lambda: not user.controller.models.work.busy)
        print([n.text for n in shown.notices.notices()])
        print(shown.cards["e2b"].file_state, (tmp_path/"stick").exists())


def test_read_only(qtbot: QtBot, hub: FakeHub, tmp_path: Path) -> None:
    away = tmp_path / "file"
    away.write_text("not a folder")
    with window(qtbot, models_folder=str(away)) as user:
        shown = page(user) if False else None
        user.press("Ctrl+2")
        shown = user.window.pages.models
        user.wait(lambda: not user.controller.models.looking)
        print(user.controller.models.overview, [n.text for n in user.notices], [n.text for n in shown.notices.notices()])
        made = shown.cards["e2b"]
        press(user, made, "download")
        user.wait(lambda: made.problem.isVisible())
        print([n.text for n in shown.notices.notices()], made.file_state, made.remedy.text())
