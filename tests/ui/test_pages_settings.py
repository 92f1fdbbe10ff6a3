"""The settings page: what it shows, and what it says was changed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec
import pytest
from PySide6.QtCore import QEvent, QPoint, QPointF, Qt
from PySide6.QtGui import QWheelEvent
from PySide6.QtWidgets import QApplication, QLineEdit, QPushButton
from pytestqt.qtbot import QtBot

from tandem.engine.protocol import DeviceInfo, Loaded, ModelInfo
from tandem.settings import Sampling, Settings
from tandem.ui import i18n
from tandem.ui.session_state import PairState
from tandem.ui.settings_answers import LONGEST_PROMPT
from tandem.ui.settings_page import SettingsPage
from tandem.ui.theme import ThemeManager

LOADED = Loaded(
    id=1,
    target=ModelInfo("a.gguf", "A", "gemma4", "Q4_0", 1),
    drafter=None,
    method="none",
    problem=None,
    context=2048,
    trained_context=4096,
    threads=2,
    device="CPU",
    vocabulary=4,
    switches_thinking=True,
    load_s=0.1,
    kv_type="f16",
)
CPU = DeviceInfo("CPU", "A processor", "cpu", 1 << 30, 1 << 31)


@pytest.fixture
def manager(qapp: QApplication) -> Iterator[ThemeManager]:
    made = ThemeManager(qapp)
    made.apply(qapp, "light")
    yield made
    made.deleteLater()


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
def page(manager: ThemeManager, qtbot: QtBot) -> SettingsPage:
    made = SettingsPage(manager)
    qtbot.addWidget(made)
    made.resize(1000, 700)
    made.show()
    return made


@pytest.fixture
def store(page: SettingsPage) -> Store:
    return Store(page, Settings())


def _write(qtbot: QtBot, box: Any, text: str) -> None:
    line = box.findChild(QLineEdit)
    line.setFocus()
    line.selectAll()
    qtbot.keyClicks(line, text)
    qtbot.keyClick(line, Qt.Key.Key_Return)


def test_it_shows_everything_and_says_nothing(page: SettingsPage) -> None:
    settings = Settings(
        theme="dark",
        text_scale=1.2,
        language="ko",
        draft="5",
        draft_on=False,
        thinking=True,
        show_drafted=True,
        context=4096,
        threads=2,
        device="CPU",
        kv_type="q8_0",
        sampling=Sampling(0.5, 10, 0.5, 0.25, 1.25, 512),
        system_prompt="Be brief.",
    )
    store = Store(page, settings)
    page.set_devices([CPU])
    assert store.said == []
    looks, drafting, sampling, engine = page.appearance, page.drafting, page.sampling, page.engine
    assert (looks.theme.current(), looks.text_size.slider.value(), looks.language.currentData()) == ("dark", 120, "ko")
    assert looks.text_size.number.text() == i18n.percent(1.2)
    assert (drafting.on.isChecked(), drafting.length.value()) == (False, 5)
    assert (drafting.thinking.isChecked(), drafting.drafted.isChecked()) == (True, True)
    assert (sampling.temperature.value(), sampling.top_k.value(), sampling.top_p.value()) == (0.5, 10, 0.5)
    assert (sampling.min_p.value(), sampling.penalty.value(), sampling.most.value()) == (0.25, 1.25, 512)
    assert page.prompt.edit.toPlainText() == "Be brief."
    assert (engine.context.value(), engine.threads.value(), engine.device.currentData()) == (4096, 2, "CPU")
    assert engine.kv.current() == "q8_0"


def test_choices_count_at_once(store: Store, page: SettingsPage, qtbot: QtBot) -> None:
    segments = {button.text(): button for button in page.appearance.theme.findChildren(QPushButton)}
    qtbot.mouseClick(segments["Dark"], Qt.MouseButton.LeftButton)
    page.appearance.language.setCurrentIndex(page.appearance.language.findData("ko"))
    page.drafting.thinking.click()
    page.drafting.drafted.click()
    page.drafting.length.setValue(7)
    kv = {button.text(): button for button in page.engine.kv.findChildren(QPushButton)}
    qtbot.mouseClick(kv["q8_0"], Qt.MouseButton.LeftButton)
    page.engine.threads.setValue(3)
    assert store.said == [
        {"theme": "dark"},
        {"language": "ko"},
        {"thinking": True},
        {"show_drafted": True},
        {"draft": "7"},
        {"kv_type": "q8_0"},
        {"threads": 3},
    ]


def test_every_field_of_sampling_is_said_and_reset_brings_all_back(store: Store, page: SettingsPage) -> None:
    section = page.sampling
    assert not section.reset.isEnabled()
    section.temperature.setValue(0.4)
    section.top_k.setValue(20)
    section.top_p.setValue(0.8)
    section.min_p.setValue(0.1)
    section.penalty.setValue(1.1)
    section.most.setValue(256)
    assert store.settings.sampling == Sampling(0.4, 20, 0.8, 0.1, 1.1, 256)
    section.reset.click()
    assert store.settings.sampling == Sampling()
    assert section.temperature.value() == 1.0
    assert section.most.text() == "No limit"
    assert not section.reset.isEnabled()


def test_a_number_counts_when_it_was_written_to_its_end(store: Store, page: SettingsPage, qtbot: QtBot) -> None:
    _write(qtbot, page.engine.context, "4096")
    assert store.said == [{"context": 4096}]


def test_no_field_takes_what_the_settings_refuse(store: Store, page: SettingsPage) -> None:
    section = page.sampling
    for box in (section.temperature, section.top_k, section.top_p, section.min_p, section.penalty, section.most):
        for value in (box.minimum(), box.maximum()):
            box.setValue(value)
            assert msgspec.convert(msgspec.to_builtins(store.settings), Settings) == store.settings
    for box in (page.drafting.length, page.engine.threads):
        box.setValue(box.minimum())
        box.setValue(box.maximum())
    page.engine.context.setValue(page.engine.context.maximum())
    assert len(store.said) > 8


def test_a_high_temperature_is_warned_of(store: Store, page: SettingsPage) -> None:
    page.sampling.temperature.setValue(2.0)
    assert page.sampling.temperature_field.problem == ""
    page.sampling.temperature.setValue(2.1)
    assert "sense" in page.sampling.temperature_field.problem
    assert store.settings.sampling.temperature == 2.1


def test_the_drafter_comes_on_with_a_length(page: SettingsPage) -> None:
    store = Store(page, Settings(draft="off"))
    assert not page.drafting.on.isChecked()
    assert not page.drafting.length_field.isEnabled()
    page.drafting.on.click()
    assert (store.settings.draft_on, store.settings.draft) == (True, "3")
    assert page.drafting.length_field.isEnabled()
    page.drafting.on.click()
    assert (store.settings.draft_on, store.settings.draft) == (False, "3")


@pytest.mark.parametrize(("value", "word"), [(100, "At least"), (4097, "was trained for")])
def test_a_context_that_cannot_be_is_said_and_not_kept(store: Store, page: SettingsPage, value: int, word: str) -> None:
    page.set_pair(PairState("loaded", loaded=LOADED))
    page.engine.context.setValue(value)
    assert word in page.engine.context_field.problem
    assert store.said == []
    page.engine.threads.setValue(2)  # another change does not take what is written there away
    assert page.engine.context.value() == value
    page.engine.context.setValue(4096)
    assert page.engine.context_field.problem == ""
    assert store.settings.context == 4096
    page.engine.context.setValue(0)
    assert store.settings.context is None


def test_more_threads_than_cpus_are_warned_of(store: Store, page: SettingsPage) -> None:
    page.engine.set_cpus(4)
    page.engine.threads.setValue(4)
    assert page.engine.threads_field.problem == ""
    page.engine.threads.setValue(5)
    assert page.engine.threads_field.problem != ""
    assert store.settings.threads == 5


def test_q8_0_stands_with_its_warning(store: Store, page: SettingsPage) -> None:
    assert page.engine.kv_field.problem == ""
    store.change({"kv_type": "q8_0"})
    assert "acceptance" in page.engine.kv_field.problem


def test_what_takes_effect_later_says_so_and_offers_it_now(page: SettingsPage, qtbot: QtBot) -> None:
    assert not page.engine.stale.isVisible()
    page.set_pair(PairState("loaded", loaded=LOADED, stale=True))
    page.show_section(page.engine)
    assert page.engine.stale.isVisible()
    with qtbot.waitSignal(page.reload_requested):
        page.engine.stale.button.click()
    page.set_pair(PairState("loaded", loaded=LOADED))
    assert not page.engine.stale.isVisible()


def test_a_device_that_is_gone_stays_chosen_and_is_named(page: SettingsPage) -> None:
    store = Store(page, Settings(device="Vulkan1"))
    assert page.engine.device.currentText() == "Vulkan1"
    page.set_pair(PairState("loaded", loaded=LOADED, devices=(CPU,)))
    assert page.engine.device.currentText() == "Vulkan1 (not found)"
    page.engine.device.setCurrentIndex(0)
    assert store.said == [{"device": None}]
    assert page.engine.device.findData("Vulkan1") < 0
    assert page.engine.device.findData("CPU") > 0


def test_the_system_prompt_is_kept_after_a_pause(store: Store, page: SettingsPage, qtbot: QtBot) -> None:
    page.show_section(page.prompt)
    page.prompt.edit.setFocus()
    qtbot.keyClicks(page.prompt.edit, "Be brief.")
    assert store.said == []
    qtbot.waitUntil(lambda: store.settings.system_prompt == "Be brief.")
    assert store.said == [{"system_prompt": "Be brief."}]


def test_the_system_prompt_is_kept_when_the_page_goes(store: Store, page: SettingsPage) -> None:
    page.prompt.edit.setPlainText("Be kind.")
    page.hide()
    assert store.settings.system_prompt == "Be kind."


def test_a_prompt_that_is_written_is_not_overwritten(store: Store, page: SettingsPage) -> None:
    page.prompt.edit.setPlainText("Half a sen")
    store.change({"thinking": True})
    assert page.prompt.edit.toPlainText() == "Half a sen"
    page.prompt.save()
    assert store.settings.system_prompt == "Half a sen"


def test_a_prompt_that_is_too_long_is_said_and_not_kept(store: Store, page: SettingsPage) -> None:
    page.prompt.edit.setPlainText("x" * (LONGEST_PROMPT + 1))
    page.prompt.save()
    assert page.prompt.problem
    assert store.said == []
    page.prompt.edit.setPlainText("x" * LONGEST_PROMPT)
    page.prompt.save()
    assert page.prompt.problem == ""
    assert len(store.settings.system_prompt) == LONGEST_PROMPT


def test_the_text_size_counts_when_the_slider_is_let_go(store: Store, page: SettingsPage, qtbot: QtBot) -> None:
    slider = page.appearance.text_size.slider
    slider.setSliderDown(True)
    slider.setSliderPosition(150)
    assert page.appearance.text_size.number.text() == i18n.percent(1.5)
    assert store.said == []
    slider.setSliderDown(False)
    assert store.said == [{"text_scale": 1.5}]
    slider.setFocus()
    qtbot.keyClick(slider, Qt.Key.Key_Left)
    assert store.settings.text_scale == 1.4
    assert (slider.minimum(), slider.maximum()) == (80, 160)


def test_the_buttons_say_what_is_wanted(page: SettingsPage, qtbot: QtBot) -> None:
    for button, signal in (
        (page.data.load, page.import_requested),
        (page.data.folder, page.data_folder_requested),
        (page.data.logs, page.logs_folder_requested),
        (page.data.zip, page.logs_zip_requested),
        (page.about.shortcuts, page.shortcuts_requested),
    ):
        with qtbot.waitSignal(signal):
            button.click()
    for button, form in ((page.data.markdown, "markdown"), (page.data.json, "json")):
        with qtbot.waitSignal(page.export_all_requested) as said:
            button.click()
        assert said.args == [form]


def test_the_wheel_scrolls_the_page_and_changes_nothing(store: Store, page: SettingsPage) -> None:
    for box in (page.sampling.top_k, page.engine.threads, page.appearance.language, page.appearance.text_size.slider):
        page.setFocus()
        box.clearFocus()
        event = QWheelEvent(
            QPointF(5, 5),
            QPointF(box.mapToGlobal(QPoint(5, 5))),
            QPoint(),
            QPoint(0, -120),
            Qt.MouseButton.NoButton,
            Qt.KeyboardModifier.NoModifier,
            Qt.ScrollPhase.NoScrollPhase,
            False,
        )
        QApplication.sendEvent(box, event)
        assert not event.isAccepted()
    assert store.said == []


def test_the_list_leads_to_sections_and_follows(page: SettingsPage, qtbot: QtBot) -> None:
    assert page.list.isVisible()
    bar = page.column.verticalScrollBar()
    qtbot.waitUntil(lambda: bar.maximum() > 0)
    page.list.setCurrentRow(4)
    assert bar.value() > 0
    top = page.engine.mapTo(page.column.viewport(), QPoint(0, 0)).y()
    assert 0 <= top <= 40
    bar.setValue(0)
    assert page.list.currentRow() == 0
    bar.setValue(bar.maximum())
    assert page.list.currentRow() == len(page.sections) - 1


def test_the_list_goes_where_there_is_no_room(page: SettingsPage) -> None:
    page.resize(700, 500)
    assert not page.list.isVisible()
    page.resize(900, 500)
    assert page.list.isVisible()


def test_it_speaks_the_other_language_at_once_and_keeps_what_was_chosen(
    store: Store, page: SettingsPage, qapp: QApplication
) -> None:
    store.change({"language": "ko", "device": "CPU"})
    i18n.install(qapp, "pseudo")
    QApplication.sendEvent(page, QEvent(QEvent.Type.LanguageChange))
    assert page.heading.text() == i18n.pseudo("Settings")
    assert page.list.item(4).text() == i18n.pseudo("Engine")
    assert page.engine.device.itemText(0) == i18n.pseudo("Automatic")
    assert page.engine.context.text() == i18n.pseudo("Automatic")
    assert page.models.proxy_kind.itemText(0) == i18n.pseudo("Automatic")
    assert page.privacy.statement.text() == i18n.pseudo(
        "Tandem goes online for one thing alone: to download a model, when you ask for it."
    )
    assert (page.appearance.language.currentData(), page.engine.device.currentData()) == ("ko", "CPU")
    assert page.appearance.language.itemText(2) == "한국어"  # each language by its own name


@pytest.mark.qt_log_ignore(r"This plugin does not support (raise\(\)|grabbing the keyboard)")
def test_the_list_of_languages_shows_every_entry_whole(page: SettingsPage, qtbot: QtBot) -> None:
    box = page.appearance.language
    box.showPopup()
    view = box.view()
    qtbot.waitUntil(view.isVisible)
    last = view.visualRect(box.model().index(box.count() - 1, 0))
    assert view.viewport().rect().contains(last)
    box.hidePopup()


def test_a_scrolled_section_is_marked_and_the_marked_one_leads_back(page: SettingsPage, qtbot: QtBot) -> None:
    bar = page.column.verticalScrollBar()
    row = page.sections.index(page.prompt)
    bar.setValue(page.prompt.y() - 60)  # its title a little under the top
    assert page.list.currentRow() == row
    top = page.prompt.y()
    bar.setValue(top - 90)
    assert page.list.currentRow() == row
    rect = page.list.visualItemRect(page.list.item(row))
    qtbot.mouseClick(page.list.viewport(), Qt.MouseButton.LeftButton, pos=rect.center())
    assert bar.value() > top - 90


def test_no_line_stands_before_the_first_row(page: SettingsPage) -> None:
    for section in page.sections:
        parts = [section.card.body.itemAt(index).widget() for index in range(section.card.body.count())]
        shown = [part for part in parts if part is not None and not part.isHidden()]
        assert shown[0].property("kit") != "divider"
