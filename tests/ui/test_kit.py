from __future__ import annotations

import gc
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from PySide6.QtCore import SIGNAL, QEvent, QPoint, QPointF, QRectF, QSize, Qt
from PySide6.QtGui import QAccessible, QColor, QEnterEvent, QImage, QPainter, QWheelEvent
from PySide6.QtTest import QTest
from PySide6.QtWidgets import (
    QApplication,
    QCheckBox,
    QHBoxLayout,
    QLabel,
    QLineEdit,
    QMessageBox,
    QPlainTextEdit,
    QRadioButton,
    QSlider,
    QVBoxLayout,
    QWidget,
)
from pytestqt.qtbot import QtBot

from support import a11y
from tandem.errors import TandemError
from tandem.ui import kit, kit_base, kit_notices, kit_toggles, theme
from tandem.ui.kit_status import ROLES
from tandem.ui.theme import ThemeManager
from ui import gallery

KINDS: tuple[Any, ...] = tuple(ROLES)


@pytest.fixture
def manager(qapp: QApplication) -> ThemeManager:
    made = ThemeManager()
    made.apply(qapp, "light")
    return made


@pytest.fixture
def page(qtbot: QtBot, manager: ThemeManager) -> QWidget:  # noqa: ARG001 - the theme is worn first
    made = QWidget()
    QVBoxLayout(made)
    qtbot.addWidget(made)
    made.resize(480, 320)
    made.show()
    made.activateWindow()
    return made


def put(page: QWidget, part: QWidget) -> None:
    page.layout().addWidget(part)
    QApplication.processEvents()


def image(widget: QWidget) -> QImage:
    return widget.grab().toImage().convertToFormat(QImage.Format.Format_RGB32)


def changed(one: QImage, other: QImage, ratio: float = 1.0) -> int:
    """How many pixels differ by at least this contrast."""
    assert one.size() == other.size()
    pixels = [np.frombuffer(picture.constBits(), np.uint32) & 0xFFFFFF for picture in (one, other)]
    differ = pixels[0] != pixels[1]
    pairs, counts = np.unique(np.stack([part[differ] for part in pixels]), axis=1, return_counts=True)
    ratios = [theme.contrast(f"#{first:06x}", f"#{second:06x}") for first, second in pairs.T]
    return sum(int(count) for found, count in zip(ratios, counts, strict=True) if found >= ratio)


CONTROLS: dict[str, Callable[[ThemeManager], QWidget]] = {
    "IconButton": lambda m: kit.IconButton(m, "copy", "Copy"),
    "PrimaryButton": lambda m: kit.PrimaryButton(m, "Send", "send"),
    "QuietButton": lambda m: kit.QuietButton(m, "Export"),
    "danger": lambda m: kit.QuietButton(m, "Delete", danger=True),
    "NavButton": lambda m: kit.NavButton(m, "chat", "Chat"),
    "ToggleChip": lambda m: kit.ToggleChip(m, "bolt", "Drafter"),
    "StateChip": lambda m: kit.StateChip(m, "on", "On"),
    "Switch": lambda m: kit.Switch(m, "Switch"),
    "SearchField": lambda m: kit.SearchField(m, "Search"),
    "ComboBox": lambda _m: kit.ComboBox("Box"),
    "SpinBox": lambda _m: kit.SpinBox("Number"),
    "DoubleSpinBox": lambda _m: kit.DoubleSpinBox("Number"),
    "QLineEdit": lambda _m: QLineEdit(),
    "QPlainTextEdit": lambda _m: QPlainTextEdit(),
    "QCheckBox": lambda _m: QCheckBox("Box"),
    "QRadioButton": lambda _m: QRadioButton("Radio"),
    "QSlider": lambda _m: QSlider(Qt.Orientation.Horizontal),
}


@pytest.mark.parametrize("name", ["light", "dark"])
@pytest.mark.parametrize("kind", CONTROLS)
def test_focus_is_seen(kind: str, name: str, manager: ThemeManager, page: QWidget, qapp: QApplication) -> None:
    manager.apply(qapp, name)
    control, other = CONTROLS[kind](manager), kit.IconButton(manager, "plus", "Other")
    put(page, control)
    put(page, other)
    other.setFocus()
    assert not control.hasFocus()
    before = image(control)
    control.setFocus(Qt.FocusReason.TabFocusReason)
    assert control.hasFocus()
    ring = changed(before, image(control), 3.0)
    # As long as a ring around it is, as WCAG 2.2 asks for; half of it where lines of text are drawn over.
    assert ring >= (control.width() + control.height())


@pytest.mark.parametrize("kind", CONTROLS)
def test_disabled_is_seen(kind: str, manager: ThemeManager, page: QWidget) -> None:
    control = CONTROLS[kind](manager)
    put(page, control)
    before = image(control)
    control.setEnabled(False)
    assert changed(before, image(control)) > 20


@pytest.mark.parametrize("kind", CONTROLS)
def test_a_new_theme_and_text_size_reach_it(
    kind: str, manager: ThemeManager, page: QWidget, qapp: QApplication
) -> None:
    control = CONTROLS[kind](manager)
    put(page, control)
    before, size = image(page), control.sizeHint()
    manager.apply(qapp, "dark")
    assert changed(before, image(page), 5.0) > page.width() * page.height() // 2
    manager.apply(qapp, "dark", 1.5)
    assert control.fontMetrics().height() > 15 * 1.2
    if kind != "QPlainTextEdit":  # whose size does not depend on its font
        assert control.sizeHint().height() > size.height()


def test_every_control_of_the_gallery_is_named_reachable_and_whole(manager: ThemeManager, qtbot: QtBot) -> None:
    for language in ("en", "ko"):
        body = gallery.page(manager, language)
        qtbot.addWidget(body)
        body.resize(1280, 1000)
        body.show()
        QApplication.processEvents()
        assert a11y.walk(body) == []
        assert a11y.cut(body) == []
        body.close()


# -- buttons


def test_an_icon_button_says_what_it_does(manager: ThemeManager, page: QWidget) -> None:
    button = kit.IconButton(manager, "copy", "Copy", "Ctrl+C")
    put(page, button)
    interface = QAccessible.queryAccessibleInterface(button)
    assert interface is not None
    assert interface.text(QAccessible.Text.Name) == "Copy"
    assert button.toolTip() == "Copy  Ctrl+C"
    button.set_name("Kopieren")
    assert (button.accessibleName(), button.toolTip()) == ("Kopieren", "Kopieren")
    assert button.width() == button.height() == manager.theme.control.height


def test_an_icon_button_shows_another_icon(manager: ThemeManager, page: QWidget) -> None:
    button = kit.IconButton(manager, "sun", "Theme")
    put(page, button)
    before = image(button)
    button.set_icon("moon", "accent")
    assert changed(before, image(button)) > 10


@pytest.mark.parametrize("kind", ["IconButton", "PrimaryButton", "QuietButton", "NavButton", "ToggleChip", "StateChip"])
@pytest.mark.parametrize("key", [Qt.Key.Key_Space])
def test_a_key_presses_it(kind: str, key: Qt.Key, manager: ThemeManager, page: QWidget) -> None:
    control: Any = CONTROLS[kind](manager)
    put(page, control)
    clicks: list[int] = []
    control.clicked.connect(lambda: clicks.append(1))
    control.setFocus()
    QTest.keyClick(control, key)
    QTest.mouseClick(control, Qt.MouseButton.LeftButton)
    assert clicks == [1, 1]


@pytest.mark.parametrize("kind", ["PrimaryButton", "QuietButton", "IconButton", "ToggleChip", "StateChip", "NavButton"])
def test_hover_and_press_are_seen(kind: str, manager: ThemeManager, page: QWidget) -> None:
    control: Any = CONTROLS[kind](manager)
    put(page, control)
    put(page, kit.IconButton(manager, "plus", "Other"))
    rest = image(page)
    QTest.mouseMove(control)
    over = image(page)
    control.setDown(True)
    down = image(page)
    assert changed(rest, over) > 50
    assert changed(rest, down) > 50
    assert changed(over, down) > 50
    control.setDown(False)
    QTest.mouseMove(page, QPoint(page.width() - 2, page.height() - 2))
    assert changed(rest, image(page)) == 0


def test_nav_buttons_are_one_of_many(manager: ThemeManager, page: QWidget) -> None:
    buttons = [kit.NavButton(manager, "chat", "Chat"), kit.NavButton(manager, "models", "Models")]
    for button in buttons:
        put(page, button)
    buttons[0].setChecked(True)
    buttons[1].click()
    assert [button.isChecked() for button in buttons] == [False, True]


# -- toggles: the state is not told by colour alone


def monochrome(draw: Callable[[QPainter], None]) -> QImage:
    made = QImage(QSize(48, 48), QImage.Format.Format_RGB32)
    made.fill(Qt.GlobalColor.white)
    painter = QPainter(made)
    draw(painter)
    painter.end()
    return made


def test_a_switch_tells_its_state_by_shape(manager: ThemeManager) -> None:
    place = QRectF(4, 12, 40, 24)

    def draw(on: bool) -> QImage:  # disabled, on and off have the same colour
        return monochrome(lambda p: kit_toggles.draw_switch(p, place, manager.theme, on=on, able=False))

    assert changed(draw(True), draw(False), 1.5) > 100


@pytest.mark.parametrize("kind", ["ToggleChip", "Switch"])
def test_a_toggle_is_heard_as_one(kind: str, manager: ThemeManager, page: QWidget) -> None:
    control: Any = CONTROLS[kind](manager)
    put(page, control)
    interface = QAccessible.queryAccessibleInterface(control)
    assert interface is not None
    assert interface.role() == QAccessible.Role.CheckBox
    assert not interface.state().checked
    QTest.keyClick(control, Qt.Key.Key_Space)
    assert control.isChecked()
    assert interface.state().checked


def test_a_switch_can_be_clicked_anywhere(manager: ThemeManager, page: QWidget) -> None:
    switch = kit.Switch(manager, "Thinking")
    put(page, switch)
    for spot in (QPoint(2, 2), QPoint(switch.width() - 3, switch.height() - 3), switch.rect().center()):
        QTest.mouseClick(switch, Qt.MouseButton.LeftButton, pos=spot)
    assert switch.isChecked()


def test_a_chip_has_room_for_its_text(manager: ThemeManager, page: QWidget, qapp: QApplication) -> None:
    for text in ("Drafter · 3", "드래프터 켜짐", "⟦Ðŕåƒţéŕ···⟧"):
        for scale in (0.8, 1.0, 1.6):
            manager.apply(qapp, "light", scale)
            chip = kit.ToggleChip(manager, "bolt", text)
            put(page, chip)
            fixed = chip.sizeHint().width() - chip.fontMetrics().horizontalAdvance(text)
            assert chip.width() >= chip.sizeHint().width()
            assert fixed > manager.px(kit_toggles.TINY_SWITCH.width() + 16)
            chip.setText(text * 2)
            assert QAccessible.queryAccessibleInterface(chip).text(QAccessible.Text.Name) == text * 2


def test_an_error_while_painting_ends_the_painter(
    manager: ThemeManager, page: QWidget, monkeypatch: pytest.MonkeyPatch
) -> None:
    # One that outlives what it paints on takes the whole app with it; Qt warns of it, which fails a test here.
    def missing(*_: Any) -> None:
        raise TandemError("An icon is missing.", "Install Tandem again.")

    chip = kit.ToggleChip(manager, "bolt", "Drafter")
    put(page, chip)
    monkeypatch.setattr(kit_toggles.icons, "pixmap", missing)
    with pytest.raises(TandemError):
        chip.repaint()
    chip.hide()


# -- state


def test_a_state_says_what_it_is(manager: ThemeManager, page: QWidget) -> None:
    chip = kit.StateChip(manager, "off", "Drafter off")
    put(page, chip)
    chip.set_state("failed", "Drafter failed", "Not enough memory.")
    interface = QAccessible.queryAccessibleInterface(chip)
    assert interface is not None
    assert chip.kind == "failed"
    assert interface.text(QAccessible.Text.Name) == "Drafter failed"
    assert interface.text(QAccessible.Text.Description) == chip.toolTip() == "Not enough memory."


def test_states_differ_by_shape(manager: ThemeManager) -> None:
    # failed and warn share the triangle: both say "look here", and their texts differ.
    def mark(kind: Any) -> QImage:
        chip = kit.StateChip(manager, kind)
        return monochrome(lambda painter: chip._draw_mark(painter, QRectF(8, 8, 32, 32), QColor("black")))

    marks = {kind: mark(kind) for kind in KINDS if kind != "warn"}
    names = list(marks)
    for i, one in enumerate(names):
        for other in names[i + 1 :]:
            assert changed(marks[one], marks[other], 3) > 8, (one, other)


@pytest.mark.parametrize("kind", KINDS)
def test_a_state_in_full_is_not_cut(kind: Any, manager: ThemeManager, page: QWidget) -> None:
    row = QHBoxLayout()
    page.layout().addItem(row)
    for text in ("Drafter off", "Drafter on · length 3", "드래프터 켜짐 · 길이 3", "fffiiff ffl"):
        chip = kit.StateChip(manager, kind, text)
        row.addWidget(chip)
        QApplication.processEvents()
        room = chip.width() - manager.px(10) * 2 - manager.px(12) - manager.px(6)
        assert chip.fontMetrics().elidedText(text, Qt.TextElideMode.ElideRight, room) == text


def test_a_busy_state_turns_only_while_it_is_seen(manager: ThemeManager, page: QWidget, qtbot: QtBot) -> None:
    chip = kit.StateChip(manager, "busy", "Loading")
    put(page, chip)
    before = image(chip)
    qtbot.waitUntil(lambda: changed(before, image(chip)) > 0, timeout=3000)
    assert chip._timer.isActive()
    page.hide()
    assert not chip._timer.isActive()
    page.show()
    assert chip._timer.isActive()
    chip.set_state("on", "Ready")
    assert not chip._timer.isActive()


def test_a_meter_warns(manager: ThemeManager, page: QWidget) -> None:
    meter = kit.Meter(manager, "Context")
    put(page, meter)
    levels, pictures = [], []
    for used in (0, 79, 80, 99, 100, 5000):
        meter.set_value(used, 100)
        levels.append(meter.level)
        pictures.append(image(meter))
    assert levels == ["normal", "normal", "warn", "warn", "full", "full"]
    assert changed(pictures[1], pictures[2]) > 50
    interface = QAccessible.queryAccessibleInterface(meter)
    assert interface is not None
    assert interface.role() == QAccessible.Role.ProgressBar
    assert interface.text(QAccessible.Text.Name) == "Context"
    assert (meter.value(), meter.maximum()) == (100, 100)


@pytest.mark.parametrize(("used", "limit"), [(0, 0), (5, 0), (-3, 10)])
def test_a_meter_without_a_limit_is_empty(used: int, limit: int, manager: ThemeManager, page: QWidget) -> None:
    meter = kit.Meter(manager, "Context")
    put(page, meter)
    meter.set_value(used, limit)
    assert (meter.level, meter.value()) == ("normal", 0)


# -- notices


@pytest.fixture
def notices(manager: ThemeManager, page: QWidget) -> kit.Notices:
    made = kit.Notices(manager)
    put(page, made)
    return made


def test_a_notice_comes_and_goes(notices: kit.Notices, qtbot: QtBot) -> None:
    assert not notices.isVisible()
    notices.show_notice("Copied.", "good", seconds=0.05)
    assert notices.isVisible()
    assert notices.last == ("good", "Copied.")
    qtbot.waitUntil(lambda: not notices.notices(), timeout=3000)
    assert not notices.isVisible()
    assert notices.last == ("good", "Copied.")


def test_a_notice_s_button_acts_once_and_ends_it(notices: kit.Notices) -> None:
    done: list[str] = []
    notice = notices.show_notice("Deleted.", action="Undo", on_action=lambda: done.append("undone"))
    assert notice.button is not None
    notice.button.click()
    assert done == ["undone"]
    assert notices.notices() == []


def test_a_notice_can_be_dismissed_by_key(notices: kit.Notices) -> None:
    notice = notices.show_notice("Deleted.")
    notice.cross.setFocus()
    assert notice.cross.accessibleName()
    QTest.keyClick(notice.cross, Qt.Key.Key_Space)
    assert notices.notices() == []


def test_a_failure_stays_until_it_is_dismissed(notices: kit.Notices) -> None:
    assert not notices.show_notice("The disk is full.", "bad")._timer.isActive()
    assert notices.show_notice("Copied.")._timer.isActive()


def test_the_clock_stops_while_it_is_read(notices: kit.Notices, qtbot: QtBot) -> None:
    notice = notices.show_notice("Deleted.", action="Undo", seconds=30)
    QApplication.sendEvent(notice, QEnterEvent(QPointF(1, 1), QPointF(1, 1), QPointF(1, 1)))
    assert not notice._timer.isActive()
    QApplication.sendEvent(notice, QEvent(QEvent.Type.Leave))
    assert notice._timer.isActive()
    assert 0 < notice._timer.remainingTime() <= 32_000  # a coarse timer's five per cent
    assert notice.button is not None
    notice.button.setFocus()
    assert not notice._timer.isActive()
    notice.cross.setFocus()
    assert not notice._timer.isActive()
    notice.cross.clearFocus()
    qtbot.waitUntil(notice._timer.isActive, timeout=1000)


def test_the_same_text_is_shown_once_and_old_ones_make_room(notices: kit.Notices) -> None:
    for text in ("one", "two", "one"):
        notices.show_notice(text)
    assert [notice.text for notice in notices.notices()] == ["two", "one"]
    notices.show_notice("failed", "bad")
    for text in ("three", "four", "five"):
        notices.show_notice(text)
    assert [notice.text for notice in notices.notices()] == ["failed", "four", "five"]
    assert len(notices.notices()) == kit_notices.MOST
    notices.clear()
    assert not notices.isVisible()


def test_a_notice_is_said_aloud(notices: kit.Notices, monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[tuple[str, bool]] = []
    monkeypatch.setattr(kit_notices, "announce", lambda _widget, text, urgent: said.append((text, urgent)))
    notices.show_notice("Copied.")
    notices.show_notice("The disk is full.", "bad")
    assert said == [("Copied.", False), ("The disk is full.", True)]


def test_a_notice_s_text_is_plain(notices: kit.Notices) -> None:
    notice = notices.show_notice("<b>bold</b>")
    assert [part.textFormat() for part in notice.findChildren(QLabel) if part.text()] == [Qt.TextFormat.PlainText]


def test_kinds_of_notices_look_different(notices: kit.Notices) -> None:
    pictures = []
    for kind in ("info", "warn", "bad", "good"):
        notices.clear()
        notice = notices.show_notice("Same text", kind)
        QApplication.processEvents()
        pictures.append(image(notice))
    assert len({picture.pixel(20, 4) for picture in pictures}) == 4  # the fillings


# -- fields, rows, menus, boxes


def test_segments_are_chosen_by_mouse_and_key(manager: ThemeManager, page: QWidget, qtbot: QtBot) -> None:
    parts = kit.Segmented(manager, "Theme", [("system", "System"), ("light", "Light"), ("dark", "Dark")])
    put(page, parts)
    parts.choose("light")
    parts.choose("sepia")
    assert parts.current() == "light"
    with qtbot.waitSignal(parts.chosen) as caught:
        parts._buttons["dark"].click()
    assert caught.args == ["dark"]
    parts._buttons["dark"].setFocus()
    with qtbot.waitSignal(parts.chosen) as caught:
        QTest.keyClick(parts._buttons["dark"], Qt.Key.Key_Left)
    assert caught.args == ["light"]
    parts.set_texts(["시스템", "밝게", "어둡게"])
    assert [button.text() for button in parts._buttons.values()] == ["시스템", "밝게", "어둡게"]


def test_a_search_field_is_emptied_by_escape_and_cross(manager: ThemeManager, page: QWidget) -> None:
    field = kit.SearchField(manager, "Search chats")
    put(page, field)
    assert (field.placeholderText(), field.accessibleName()) == ("Search chats", "Search chats")
    field.setText("Busan")
    assert field.cross.isVisible()
    assert field.cross.accessibleName()
    assert field.rect().contains(field.cross.geometry())
    QTest.keyClick(field, Qt.Key.Key_Escape)
    assert field.text() == ""
    assert not field.cross.isVisible()
    field.setText("Busan")
    field.cross.click()
    assert (field.text(), field.hasFocus()) == ("", True)


@pytest.mark.parametrize("kind", ["ComboBox", "SpinBox", "DoubleSpinBox"])
def test_the_wheel_scrolls_the_page_not_the_value(kind: str, manager: ThemeManager, page: QWidget) -> None:
    control: Any = CONTROLS[kind](manager)
    if kind == "ComboBox":
        control.addItems(["a", "b", "c"])
    put(page, control)
    put(page, kit.IconButton(manager, "plus", "Other"))

    def value() -> object:
        return control.currentIndex() if kind == "ComboBox" else control.value()

    def turn() -> bool:
        delta = QPoint(0, -120 if kind == "ComboBox" else 120)
        spot = QPointF(control.rect().center())
        event = QWheelEvent(
            spot,
            QPointF(control.mapToGlobal(spot.toPoint())),
            QPoint(),
            delta,
            Qt.MouseButton.NoButton,
            Qt.KeyboardModifier.NoModifier,
            Qt.ScrollPhase.NoScrollPhase,
            False,
        )
        QApplication.sendEvent(control, event)
        return event.isAccepted()

    control.clearFocus()
    before = value()
    assert not turn()
    assert value() == before
    control.setFocus()
    assert turn()
    assert value() != before


def test_a_form_row_names_its_control(manager: ThemeManager, page: QWidget) -> None:
    box = kit.SpinBox()
    row = kit.FormRow(manager, "Context", box, "How many tokens stay in view.")
    put(page, row)
    interface = QAccessible.queryAccessibleInterface(box)
    assert interface is not None
    assert interface.text(QAccessible.Text.Name) == "Context"
    assert interface.text(QAccessible.Text.Description) == "How many tokens stay in view."
    assert any(part.buddy() is box for part in row.findChildren(QLabel))
    row.set_texts("컨텍스트")
    assert (box.accessibleName(), box.accessibleDescription()) == ("컨텍스트", "")


def test_an_empty_state_keeps_its_text_whole(manager: ThemeManager, page: QWidget) -> None:
    state = kit.EmptyState(manager, "chat", "No chats yet", "Ask something below. " * 6)
    state.add_button(kit.PrimaryButton(manager, "Try the demo"))
    put(page, state)
    for width in (320, 480, 900):
        page.resize(width, 420)
        QApplication.processEvents()
        assert a11y.cut(page) == []


def test_a_menu_s_entries(manager: ThemeManager, page: QWidget, qapp: QApplication) -> None:
    chosen: list[str] = []
    menu = kit.Menu(manager, page)
    rename = menu.add("edit", "Rename", lambda: chosen.append("rename"), "F2")
    delete = menu.add("trash", "Delete", danger=True)
    rename.trigger()
    assert chosen == ["rename"]
    assert (rename.text(), rename.shortcut().toString()) == ("Rename", "F2")
    before = delete.icon().pixmap(16, 16).toImage()
    manager.apply(qapp, "dark")
    assert delete.icon().pixmap(16, 16).toImage() != before


def test_a_box_asks_without_an_event_loop_of_its_own(manager: ThemeManager, page: QWidget, qtbot: QtBot) -> None:
    box = kit.message_box(
        manager,
        page,
        "warn",
        "Delete <b>all</b>?",
        "This cannot be undone.",
        [("Delete", "accept"), ("Keep", "reject")],
    )
    pressed: list[str] = []
    box.buttonClicked.connect(lambda button: pressed.append(button.text()))
    box.open()
    assert box.isVisible()
    assert box.textFormat() == Qt.TextFormat.PlainText
    assert box.defaultButton().text() == "Delete"
    assert not box.iconPixmap().isNull()
    with qtbot.waitSignal(box.finished):
        QTest.keyClick(box, Qt.Key.Key_Escape)
    assert pressed == ["Keep"]


def test_destroying_is_never_the_default(manager: ThemeManager, page: QWidget) -> None:
    box = kit.message_box(manager, page, "bad", "Delete?", buttons=[("Delete", "destroy"), ("Keep", "reject")])
    assert box.defaultButton() is None or box.buttonRole(box.defaultButton()) != QMessageBox.ButtonRole.DestructiveRole
    box.deleteLater()


# -- labels, spacing, life


def test_labels_follow_the_theme(manager: ThemeManager, page: QWidget, qapp: QApplication) -> None:
    text = kit.label("Title", "title", "muted", bold=True)
    put(page, text)
    assert (text.font().pixelSize(), text.font().bold() or text.font().weight() >= 600) == (20, True)
    manager.apply(qapp, "light", 1.5)
    assert text.font().pixelSize() == 30
    before = image(text)
    kit.set_label(text, "Title", "bad")
    assert changed(before, image(text)) > 10


def test_spacing_follows_the_text_size(manager: ThemeManager, page: QWidget, qapp: QApplication) -> None:
    row = QHBoxLayout()
    kit.spaced(row, manager, "s", ("l", "m"))
    page.layout().addItem(row)

    def sizes() -> tuple[int, ...]:
        margins = row.contentsMargins()
        return row.spacing(), margins.left(), margins.top(), margins.right(), margins.bottom()

    assert sizes() == (8, 16, 12, 16, 12)
    manager.apply(qapp, "light", 1.5)
    assert sizes() == (12, 24, 18, 24, 18)


def test_gone_widgets_are_not_told(manager: ThemeManager, qapp: QApplication) -> None:
    signal = SIGNAL("changed()")
    before = manager.receivers(signal)
    body = gallery.page(manager, "en")
    assert manager.receivers(signal) > before + 20
    body.deleteLater()
    QApplication.sendPostedEvents(None, QEvent.Type.DeferredDelete.value)
    del body
    gc.collect()
    assert manager.receivers(signal) == before
    manager.apply(qapp, "dark")


def test_the_ring_is_drawn_inside(manager: ThemeManager) -> None:
    def ring(painter: QPainter) -> None:
        kit_base.draw_focus(painter, QRectF(10, 10, 20, 20), 4, manager.colour("focus"))

    made, blank = monochrome(ring), monochrome(lambda _painter: None)
    assert changed(made, blank, 3) > 4 * 20
    for x in range(48):
        assert made.pixel(x, 8) == blank.pixel(x, 8)
        assert made.pixel(8, x) == blank.pixel(8, x)


@pytest.mark.parametrize("key", [Qt.Key.Key_Return, Qt.Key.Key_Enter, Qt.Key.Key_Space])
def test_every_button_is_pressed_by_enter_and_by_space(qtbot: QtBot, manager: ThemeManager, key: Qt.Key) -> None:
    for button in (
        kit.IconButton(manager, "copy", "Copy"),
        kit.PrimaryButton(manager, "Go"),
        kit.QuietButton(manager, "Go"),
        kit.NavButton(manager, "chat", "Chat"),
        kit.ToggleChip(manager, "bolt", "Drafter"),
        kit.StateChip(manager, "on", "Drafter on"),
    ):
        qtbot.addWidget(button)
        button.show()
        with qtbot.waitSignal(button.clicked):
            qtbot.keyClick(button, key)
