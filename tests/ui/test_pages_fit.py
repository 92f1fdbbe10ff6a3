"""The pages for everybody: names, keyboard, and room for every text on a small screen in a long language."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from PySide6.QtWidgets import QApplication, QPushButton, QScrollArea, QVBoxLayout, QWidget
from pytestqt.qtbot import QtBot

from support import a11y, model_views
from support.model_views import job, overview, pair_view
from tandem import paths
from tandem.engine.protocol import DrafterProblem, Loaded, ModelInfo
from tandem.hardware.machine import Machine
from tandem.models.progress import Waiting
from tandem.models.state import FileState
from tandem.settings import PairChoice, Sampling, Settings
from tandem.ui import i18n
from tandem.ui.chat_welcome import Suggestions
from tandem.ui.compare_page import ComparePage
from tandem.ui.header import Header
from tandem.ui.models_page import ModelsPage
from tandem.ui.pair_check import check_files
from tandem.ui.session_state import LoadState, PairState
from tandem.ui.settings_page import SettingsPage
from tandem.ui.shortcuts import ShortcutsDialog
from tandem.ui.theme import ThemeManager
from tandem.ui.welcome import WelcomePage

GIB = 1 << 30
LAPTOP = Machine("Intel(R) Core(TM) i5-8250U CPU @ 1.60GHz", 4, 8, 8 * GIB, 4 * GIB, "Linux 6")
LOADED = Loaded(
    id=1,
    target=ModelInfo("gemma-4-E2B-it-qat-UD-Q4_K_XL.gguf", "Gemma 4 E2B it", "gemma4", "Q4_K_M", 3 * GIB),
    drafter=ModelInfo("mtp-gemma-4-E2B-it.gguf", None, "gemma4-assistant", "Q8_0", 60 << 20),
    method="none",
    problem=DrafterProblem("The drafter does not fit.", "Choose the one that was made for it."),
    context=8192,
    trained_context=131072,
    threads=8,
    device="CPU",
    vocabulary=4,
    switches_thinking=True,
    load_s=12.5,
    kv_type="f16",
)
# What is left of 1366 × 768 at 150 %: 911 × 512 less the navigation.
SMALL = (847, 512)


def _settings(manager: ThemeManager) -> SettingsPage:
    page = SettingsPage(manager)
    page.set_settings(Settings(kv_type="q8_0", sampling=Sampling(temperature=3.0), threads=64, context=9))
    page.set_pair(PairState("loaded", loaded=LOADED, stale=True))
    page.set_machine(LAPTOP)
    page.set_network(model_views.MIRROR)
    return page


def _settings_moving(manager: ThemeManager) -> SettingsPage:
    page = SettingsPage(manager)
    page.set_settings(Settings(proxy="http://proxy.example.org:8080", speed_limit=5 << 20))
    page.set_network(model_views.OFFLINE)
    page.set_checking(model_views.check_job("move", "gemma-4-E2B-it-q4_0-exact.gguf", FileState.CHECKING))
    return page


def _models(manager: ThemeManager) -> ModelsPage:
    page = ModelsPage(manager)
    page.set_machine(LAPTOP)
    page.set_pair(PairState("loaded", PairChoice("files", "/models/gemma.gguf", "/models/mtp.gguf"), LOADED))
    files = [*map(str, paths.demo_pair())]
    page.files.set_files(*files)
    page.set_check(check_files(*files))
    return page


def _models_loading(manager: ThemeManager) -> ModelsPage:
    page = ModelsPage(manager)
    page.set_pair(PairState("loading", PairChoice("files", "/models/gemma.gguf", "/models/mtp.gguf")))
    page.set_load(LoadState("threads", 0.4))
    page.files.set_files("/models/gemma.gguf")
    page.set_check(check_files("/models/gemma.gguf"))
    return page


def _models_fetching(manager: ThemeManager) -> ModelsPage:
    page = ModelsPage(manager)
    page.set_machine(LAPTOP)
    waiting = Waiting("The connection to cdn-lfs.huggingface.co was lost.", 7.4, 3)
    page.set_overview(
        overview(
            pair_view("e4b", FileState.INSTALLED),
            imported=model_views.imported_files(),
            quarantined=(model_views.set_aside(),),
        )
    )
    page.set_job(job("e2b", FileState.TRANSFERRING, bytes_per_s=12.5 * (1 << 20), left_s=8000.0, waiting=waiting))
    page.set_checking(model_views.check_job("verify", "gemma-4-E4B-it-q4_0-exact.gguf"))
    page.fold.button.click()
    return page


def _models_trouble(manager: ThemeManager) -> ModelsPage:
    page = ModelsPage(manager)
    page.set_machine(LAPTOP)
    gone = pair_view("e4b", FileState.MISSING, sentence="gemma-4-E4B-it-q4_0-exact.gguf is gone.", remedy="Get it.")
    page.set_overview(
        overview(gone, pair_view("12b", FileState.CHANGED), pair_view("31b", FileState.PAUSED, share=0.5))
    )
    said = f"gemma-4-E2B-it-q4_0-exact.gguf on the Hub is another: {'a' * 64} there, {'b' * 64} here."
    page.set_job(job("e2b", FileState.FAILED, sentence=said, remedy="Choose the other source.", fault="pin-differs"))
    page.set_network(model_views.OFFLINE)
    return page


def _header(manager: ThemeManager) -> Header:
    header = Header(manager)
    header.set_job(job("e2b", FileState.TRANSFERRING, left_s=8000.0))
    header.set_pair(PairState("loaded", PairChoice("files", "/models/gemma.gguf", "/models/mtp.gguf"), LOADED))
    header.set_context(7000, 8192)
    return header


def _compare(manager: ThemeManager) -> ComparePage:
    page = ComparePage(manager)
    page.set_state(question=True, drafter=False, running=False)
    return page


def _welcome(manager: ThemeManager) -> WelcomePage:
    page = WelcomePage(manager)
    page.set_machine(LAPTOP)
    return page


def _welcome_loading(manager: ThemeManager) -> WelcomePage:
    page = WelcomePage(manager)
    page.set_load(LoadState("threads", 0.4))
    page.set_job(job("e4b", FileState.TRANSFERRING, bytes_per_s=1e6, left_s=8000.0))
    return page


def _empty_chat(manager: ThemeManager) -> Suggestions:
    page = Suggestions(manager)
    page.set_demo(True)
    page.set_machine(LAPTOP)
    return page


Make = Callable[[ThemeManager], QWidget]
PAGES: tuple[Make, ...] = (
    _settings,
    _settings_moving,
    _models,
    _models_loading,
    _models_fetching,
    _models_trouble,
    _compare,
    _welcome,
    _welcome_loading,
    _empty_chat,
    ShortcutsDialog,
)


@pytest.fixture
def manager(qapp: QApplication) -> Iterator[ThemeManager]:
    made = ThemeManager(qapp)
    yield made
    made.deleteLater()


@pytest.mark.parametrize("make", PAGES)
@pytest.mark.parametrize("language", ["en", "ko", "pseudo"])
@pytest.mark.parametrize("scale", [1.0, 1.6])
def test_every_text_has_room_on_a_small_screen(
    manager: ThemeManager, qapp: QApplication, qtbot: QtBot, make: Make, language: str, scale: float
) -> None:
    manager.apply(qapp, "light", scale)
    i18n.install(qapp, language)
    page = make(manager)
    qtbot.addWidget(page)
    page.resize(*SMALL)
    page.show()
    qtbot.waitExposed(page)
    assert page.width() == SMALL[0]
    for area in page.findChildren(QScrollArea):
        assert area.widget().minimumSizeHint().width() <= area.viewport().width()
    assert a11y.cut(page) == []


@pytest.mark.parametrize("make", PAGES)
def test_everything_has_a_name_and_is_reached_by_tab(
    manager: ThemeManager, qapp: QApplication, qtbot: QtBot, make: Make
) -> None:
    manager.apply(qapp, "dark")
    window = QWidget()
    qtbot.addWidget(window)
    row = QVBoxLayout(window)
    row.addWidget(QPushButton("Another place for the focus"))
    row.addWidget(make(manager))
    window.resize(*SMALL)
    window.show()
    assert a11y.walk(window) == []


@pytest.mark.parametrize("make", PAGES)
def test_another_theme_and_size_reach_every_part(
    manager: ThemeManager, qapp: QApplication, qtbot: QtBot, make: Make
) -> None:
    manager.apply(qapp, "light")
    page = make(manager)
    qtbot.addWidget(page)
    page.resize(*SMALL)
    page.show()
    light = page.grab().toImage()
    manager.apply(qapp, "dark", 1.2)
    qtbot.waitUntil(lambda: page.grab().toImage().pixelColor(3, 3) != light.pixelColor(3, 3) or page.isHidden())
    manager.apply(qapp, "dark", 1.6)
    assert a11y.cut(page) == []
    manager.apply(qapp, "light", 0.8)
    assert a11y.cut(page) == []


@pytest.mark.parametrize("language", ["en", "ko", "pseudo"])
@pytest.mark.parametrize("scale", [1.0, 1.6])
def test_the_header_has_room_for_a_download_beside_a_list_of_chats(
    manager: ThemeManager, qapp: QApplication, qtbot: QtBot, language: str, scale: float
) -> None:
    manager.apply(qapp, "light", scale)
    i18n.install(qapp, language)
    header = _header(manager)
    qtbot.addWidget(header)
    header.resize(570, header.sizeHint().height())
    header.show()
    assert header.job.isVisible()
    assert a11y.nameless(header) == []
    assert header.job.x() + header.job.width() <= header.drafter.x()
    assert header.meter.x() <= header.width()
