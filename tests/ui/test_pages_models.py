"""The page Models: the pair in use, whether models fit, files of one's own. Its cards are in test_models_cards.py."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest
from PySide6.QtCore import QEvent, QMimeData, QPoint, QPointF, Qt, QUrl
from PySide6.QtGui import QDragEnterEvent, QDropEvent
from PySide6.QtWidgets import QApplication, QLabel, QToolButton, QWidget
from pytestqt.qtbot import QtBot

from tandem import paths
from tandem.engine.protocol import DrafterProblem, Loaded, ModelInfo
from tandem.hardware.machine import NEEDS, Machine
from tandem.settings import PairChoice
from tandem.ui import i18n
from tandem.ui.fit_view import FitView
from tandem.ui.models_page import ModelsPage
from tandem.ui.pair_check import check_files
from tandem.ui.session_state import LoadState, PairState
from tandem.ui.theme import ThemeManager

GIB = 1 << 30
LAPTOP = Machine("A processor", 4, 8, 8 * GIB, 4 * GIB, "Linux 6")
LARGE = Machine("A processor", 16, 32, 64 * GIB, 48 * GIB, "Linux 6")
LOADED = Loaded(
    id=1,
    target=ModelInfo("a.gguf", "Some model", "gemma4", "Q4_0", 3 << 20),
    drafter=ModelInfo("b.gguf", None, "gemma4-assistant", "Q8_0", 1 << 20),
    method="mtp",
    problem=None,
    context=2048,
    trained_context=4096,
    threads=2,
    device="CPU",
    vocabulary=4,
    switches_thinking=True,
    load_s=0.25,
    kv_type="f16",
)


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
def models(manager: ThemeManager, qtbot: QtBot) -> ModelsPage:
    page = ModelsPage(manager)
    _show(page, qtbot)
    return page


@pytest.fixture
def demo() -> tuple[str, str]:
    target, drafter = paths.demo_pair()
    return str(target), str(drafter)


def _colours(widget: QWidget) -> set[str]:
    image = widget.grab().toImage()
    return {image.pixelColor(x, y).name() for x in range(image.width()) for y in range(image.height())}


def _texts(widget: QWidget) -> str:
    return "\n".join(label.text() for label in widget.findChildren(QLabel) if label.isVisibleTo(widget))


def _answer(page: ModelsPage) -> None:
    """Reads the headers, as the store's worker does for the window."""
    page.check_requested.connect(lambda target, drafter: page.set_check(check_files(target, drafter)))


def _drop(widget: QWidget, *files: str) -> bool:
    data = QMimeData()
    data.setUrls([QUrl.fromLocalFile(file) for file in files])
    at, action = QPoint(10, 10), Qt.DropAction.CopyAction
    keys = (Qt.MouseButton.LeftButton, Qt.KeyboardModifier.NoModifier)
    enter = QDragEnterEvent(at, action, data, *keys)
    enter.ignore()
    QApplication.sendEvent(widget, enter)
    if not enter.isAccepted():
        return False
    QApplication.sendEvent(widget, QDropEvent(QPointF(at), action, data, *keys))
    return True


# --- the pair in use


def test_the_pair_in_use_stands_there_with_its_facts(models: ModelsPage, qtbot: QtBot) -> None:
    models.set_pair(PairState("loaded", PairChoice("files", "/x/a.gguf", "/x/b.gguf"), LOADED))
    assert models.pair.state.text == "Ready"
    assert models.pair.name.text() == "Some model"
    qtbot.waitUntil(lambda: "b.gguf" in _texts(models.pair))
    texts = _texts(models.pair)
    for fact in (
        "a.gguf",
        "gemma4-assistant",
        "Q8_0",
        i18n.number(2048),
        i18n.number(4096),
        "CPU",
        i18n.duration(0.25),
    ):
        assert fact in texts
    with qtbot.waitSignal(models.load_requested) as said:
        models.pair.again.click()
    assert said.args == [PairChoice("files", "/x/a.gguf", "/x/b.gguf")]


def test_a_drafter_that_failed_stands_there_with_its_remedy(models: ModelsPage) -> None:
    loaded = msgspec.structs.replace(LOADED, problem=DrafterProblem("It is broken.", "Get another."), method="none")
    models.set_pair(PairState("loaded", PairChoice(), loaded))
    assert models.pair.problem.isVisible()
    assert (models.pair.problem.text, models.pair.problem.more) == ("It is broken.", "Get another.")
    models.set_pair(PairState("loaded", PairChoice(), LOADED))
    assert not models.pair.problem.isVisible()


def test_a_load_shows_how_far_it_is_and_can_be_given_up(models: ModelsPage, qtbot: QtBot) -> None:
    assert not models.pair.progress.isVisible()
    models.set_pair(PairState("loading", PairChoice("files", "/x/모델.gguf")))
    models.set_load(LoadState("target", 0.5))
    progress = models.pair.progress
    assert progress.isVisible()
    assert models.pair.name.text() == "모델.gguf"
    assert "model" in progress.stage
    assert progress.meter.value() * 2 == progress.meter.maximum()
    models.set_load(LoadState("threads", 1.0))
    assert "threads" in progress.stage
    assert progress.meter.level == "normal"
    with qtbot.waitSignal(models.cancel_load_requested):
        progress.cancel.click()
    models.set_load(LoadState("stopped"))
    models.set_pair(PairState("none", PairChoice("files", "/x/모델.gguf")))
    assert not progress.isVisible()


def test_a_load_that_failed_says_why_and_its_files_can_be_put_right(models: ModelsPage, demo: tuple[str, str]) -> None:
    _answer(models)
    choice = PairChoice("files", "/nowhere/a.gguf", demo[1])
    models.set_pair(PairState("failed", choice, sentence="There is no file a.gguf.", remedy="Check the path."))
    assert (models.pair.state.icon, models.pair.state.text) == ("warning", "Failed")
    assert (models.pair.problem.text, models.pair.problem.more) == ("There is no file a.gguf.", "Check the path.")
    assert models.files.asked == ("/nowhere/a.gguf", demo[1])
    assert models.files.target.found == "There is no file a.gguf. Check the path."


def test_the_demo_is_one_click_away_until_it_is_in_use(models: ModelsPage, qtbot: QtBot) -> None:
    with qtbot.waitSignal(models.load_requested) as said:
        models.demo.button.click()
    assert said.args == [PairChoice("demo")]
    models.set_pair(PairState("loading", PairChoice("demo")))
    assert not models.demo.button.isEnabled()
    models.set_pair(PairState("loaded", PairChoice("demo"), LOADED))
    assert models.demo.button.text() == "In use"
    models.set_pair(PairState("loaded", PairChoice("files", "/x/a.gguf"), LOADED))
    assert models.demo.button.isEnabled()


# --- does it fit


def test_fit_is_judged_against_this_machine(models: ModelsPage) -> None:
    e2b, e4b = models.cards["e2b"], models.cards["e4b"]
    assert e2b.fit.fit is None
    models.set_machine(LAPTOP)
    assert (e2b.fit.fit, e4b.fit.fit) == ("fits", "tight")
    assert i18n.size(NEEDS[0].memory()) in e2b.fit.text
    assert "estimate" in e2b.fit.bar.toolTip()
    assert e2b.fit.bar.accessibleDescription() == e2b.fit.bar.toolTip()
    assert i18n.size(LAPTOP.memory_free) in e2b.fit.text
    assert e2b.fit.bar.accessibleName() == e2b.fit.text
    assert "A processor" in models.head.here.text()


def test_what_is_not_known_of_a_model_is_not_counted_as_if_it_were(manager: ThemeManager, models: ModelsPage) -> None:
    models.set_machine(LAPTOP)
    unsure = models.cards["12b"].fit
    assert "More than" in unsure.text
    models.set_machine(LARGE)
    assert (unsure.fit, unsure.text.startswith("Probably fits")) == ("fits", True)
    assert models.cards["e2b"].fit.text.startswith("Fits this machine")
    for card, promised in (("12b", False), ("e2b", True)):
        colours = _colours(models.cards[card].fit)
        assert (manager.colour("good").name() in colours) is promised


@pytest.mark.parametrize(
    ("needed", "free", "colour"), [(2 * GIB, 4 * GIB, "good"), (5 * GIB, 4 * GIB, "warn"), (9 * GIB, 4 * GIB, "bad")]
)
def test_the_bar_shows_what_is_needed_in_the_colour_of_the_verdict(
    manager: ThemeManager, qtbot: QtBot, needed: int, free: int, colour: str
) -> None:
    view = FitView(manager, needed)
    _show(view, qtbot)
    view.set_machine(Machine("A processor", 1, 1, 8 * GIB, free, "Linux 6"))
    image = view.bar.grab().toImage()
    row = [image.pixelColor(x, image.height() // 2).name() for x in range(image.width())]
    share = row.count(manager.colour(colour).name()) / len(row)
    assert share == pytest.approx(min(1.0, needed / (8 * GIB)), abs=0.03)


# --- files of one's own


def test_files_are_chosen_looked_at_and_loaded(models: ModelsPage, demo: tuple[str, str], qtbot: QtBot) -> None:
    _answer(models)
    models.set_machine(LAPTOP)
    files = models.files
    assert not files.load.isEnabled()
    files.target.choose(demo[0])
    qtbot.waitUntil(files.load.isEnabled)  # a drafter may be left out
    files.drafter.choose(demo[1])
    assert not files.load.isEnabled()  # not before it was looked at
    qtbot.waitUntil(files.load.isEnabled)
    assert "gemma4-assistant" in files.drafter.found
    assert files.fit.isVisible()
    assert files.fit.fit == "fits"
    with qtbot.waitSignal(models.load_requested) as said:
        files.load.click()
    assert said.args == [PairChoice("files", *demo)]
    models.set_pair(PairState("loading", PairChoice("files", *demo)))
    assert not files.load.isEnabled()


def test_a_file_that_cannot_be_used_is_explained_at_its_field(
    models: ModelsPage, demo: tuple[str, str], qtbot: QtBot
) -> None:
    _answer(models)
    files = models.files
    files.set_files(demo[0], demo[0])
    assert "is not a drafter" in files.drafter.found
    assert "gemma4" in files.target.found
    assert not files.load.isEnabled()
    assert files.drafter.path.accessibleDescription() == files.drafter.found
    files.drafter.path.setFocus()
    files.drafter.path.clear()  # the cross in the field
    qtbot.waitUntil(files.load.isEnabled)


def test_a_drafter_alone_asks_for_its_model(models: ModelsPage, demo: tuple[str, str]) -> None:
    _answer(models)
    models.files.set_files(demo[1])
    assert models.files.asked == ("", demo[1])
    assert "Now choose the model" in models.files.target.found
    assert not models.files.load.isEnabled()


def test_an_answer_to_an_older_question_is_passed_over(models: ModelsPage, demo: tuple[str, str]) -> None:
    models.files.set_files(*demo)
    models.set_check(check_files(demo[0]))
    assert not models.files.load.isEnabled()
    models.set_check(check_files(*demo))
    assert models.files.load.isEnabled()


@pytest.mark.parametrize("backwards", [False, True])
def test_two_dropped_files_find_their_fields(models: ModelsPage, demo: tuple[str, str], backwards: bool) -> None:
    _answer(models)
    assert _drop(models.files, *(demo[::-1] if backwards else demo))
    assert models.files.asked == demo
    assert models.files.load.isEnabled()


def test_one_dropped_file_after_the_other_fills_both_fields(models: ModelsPage, demo: tuple[str, str]) -> None:
    _answer(models)
    assert _drop(models.files, demo[1])
    assert models.files.asked == ("", demo[1])
    assert _drop(models.files, demo[0])
    assert models.files.asked == demo
    assert models.files.load.isEnabled()


def test_a_file_dropped_on_a_field_goes_there(models: ModelsPage, demo: tuple[str, str], qtbot: QtBot) -> None:
    _answer(models)
    assert not models.files.target.path.acceptDrops()  # it would take the address as text
    assert _drop(models.files.drafter, demo[1])
    assert _drop(models.files.target, demo[0])
    qtbot.waitUntil(models.files.load.isEnabled)
    assert models.files.asked == demo


def test_other_files_are_refused_with_a_word(models: ModelsPage, tmp_path: Path) -> None:
    _answer(models)
    assert _drop(models.files, str(tmp_path / "picture.png"))
    assert models.files.target.found == "picture.png is not a GGUF file. Only GGUF files can be loaded."
    data = QMimeData()
    data.setUrls([QUrl("https://example.org/model.gguf")])
    event = QDragEnterEvent(
        QPoint(1, 1), Qt.DropAction.CopyAction, data, Qt.MouseButton.LeftButton, Qt.KeyboardModifier.NoModifier
    )
    event.ignore()
    QApplication.sendEvent(models, event)
    assert not event.isAccepted()


def test_browse_opens_a_dialog_that_does_not_block(models: ModelsPage, demo: tuple[str, str], qtbot: QtBot) -> None:
    _answer(models)
    dialog = models.files.target.open_dialog()
    assert dialog.isVisible()
    dialog.fileSelected.emit(demo[0])
    dialog.reject()
    assert models.files.target.text == demo[0]
    qtbot.waitUntil(models.files.load.isEnabled)


def test_somebody_with_files_is_led_to_the_fields(models: ModelsPage) -> None:
    models.show_files()
    assert models.focusWidget() is models.files.target.path
    view = models.column.viewport()
    assert view.rect().contains(models.files.target.path.mapTo(view, QPoint(1, 1)))


# --- another language


def test_it_speaks_the_other_language_at_once(models: ModelsPage, qapp: QApplication) -> None:
    models.set_pair(PairState("loaded", PairChoice(), LOADED))
    i18n.install(qapp, "pseudo")
    QApplication.sendEvent(models, QEvent(QEvent.Type.LanguageChange))
    assert models.pair.state.text == i18n.pseudo("Ready")
    assert models.demo.button.text() == i18n.pseudo("In use")
    assert models.cards["e2b"].state.text == i18n.pseudo("Not on this machine")
    assert models.cards["e2b"].action.button.text() == i18n.pseudo("Download")


def test_a_model_alone_in_the_drafter_s_field_moves_and_leaves_no_cross(
    models: ModelsPage, qtbot: QtBot, demo: tuple[str, str]
) -> None:
    _answer(models)
    field = models.files.drafter
    field.choose(demo[0])
    qtbot.waitUntil(lambda: models.files.target.text == demo[0])
    assert field.text == ""
    crosses = field.path.findChildren(QToolButton)
    qtbot.waitUntil(lambda: not any(cross.isVisible() and cross.isEnabled() for cross in crosses))


def test_a_drafter_alone_asks_for_its_model_quietly(models: ModelsPage, demo: tuple[str, str]) -> None:
    models.set_check(check_files("", ""))
    models.files.set_files("", demo[1])
    models.set_check(check_files("", demo[1]))
    shown = [label for label in models.files.target.findChildren(QLabel) if label.text().startswith("Now choose")]
    assert [label.property("role") for label in shown] == ["muted"]
