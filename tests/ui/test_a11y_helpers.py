"""The walks over a window notice the faults that they are there for: small windows made with one fault each."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from PySide6.QtCore import QSize, Qt
from PySide6.QtGui import QIcon, QPixmap, QStandardItem, QStandardItemModel
from PySide6.QtWidgets import (
    QButtonGroup,
    QCheckBox,
    QComboBox,
    QFormLayout,
    QGroupBox,
    QLabel,
    QLineEdit,
    QListView,
    QPlainTextEdit,
    QProgressBar,
    QPushButton,
    QRadioButton,
    QScrollArea,
    QSlider,
    QSpinBox,
    QTabWidget,
    QTextBrowser,
    QToolButton,
    QVBoxLayout,
    QWidget,
)
from pytestqt.qtbot import QtBot

from support.a11y import MAY_ELIDE, controls, cut, describe, nameless, tab_order, unreachable, walk

Show = Callable[..., QWidget]
LONG = "A text that is a good deal longer than the room it has"


@pytest.fixture
def show(qtbot: QtBot) -> Show:
    """Puts widgets one under the other into a window and shows it."""

    def show(*widgets: QWidget, width: int = 400, height: int = 300) -> QWidget:
        window = QWidget()
        qtbot.addWidget(window)
        layout = QVBoxLayout(window)
        for widget in widgets:
            layout.addWidget(widget)
        window.resize(width, height)
        window.show()
        qtbot.waitExposed(window)
        return window

    return show


def icon() -> QIcon:
    pixmap = QPixmap(16, 16)
    pixmap.fill(Qt.GlobalColor.black)
    return QIcon(pixmap)


def tool_button(text: str = "", name: str = "") -> QToolButton:
    button = QToolButton()
    button.setIcon(icon())
    button.setText(text)
    button.setAccessibleName(name)
    button.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
    return button


def named(widget: QWidget, name: str = "A name") -> QWidget:
    widget.setAccessibleName(name)
    return widget


def rows(*texts: str) -> QListView:
    view = QListView()
    view.setAccessibleName("Rows")
    model = QStandardItemModel(view)
    for text in texts:
        model.appendRow(QStandardItem(text))
    view.setModel(model)
    return view


@pytest.mark.parametrize(
    "make",
    [
        *(tool_button, QLineEdit, QComboBox, QSpinBox, QSlider, QTextBrowser, QProgressBar, QScrollArea, QCheckBox),
        *(lambda: QPushButton(""), lambda: QPushButton("…"), lambda: tool_button(name=" ")),
    ],
    ids=lambda make: getattr(make, "__name__", ""),
)
def test_a_control_without_a_name_is_found(show: Show, make: Callable[[], QWidget]) -> None:
    widget = make()
    window = show(widget, QLabel("Something beside it"))
    assert nameless(window) == [f"no accessible name: {describe(widget)}"]
    named(widget)
    assert nameless(window) == []


def test_names_come_from_texts_and_buddies_too(show: Show) -> None:
    form = QWidget()
    rows = QFormLayout(form)
    rows.addRow("&Temperature", QLineEdit())
    assert nameless(show(form, QPushButton("Go"), QCheckBox("Yes"), QRadioButton("One"))) == []


def test_a_disabled_control_needs_a_name_as_well(show: Show) -> None:
    field = QLineEdit()
    field.setEnabled(False)
    window = show(field)
    assert len(nameless(window)) == 1
    assert unreachable(window) == []


def test_rows_without_text_are_found(show: Show) -> None:
    silent = rows("First", "", "Third")
    assert nameless(show(silent)) == [f"no text for row 1: {describe(silent)}"]
    assert nameless(show(rows("First", "Second"))) == []


def test_what_is_not_shown_is_not_looked_at(show: Show) -> None:
    pages = QTabWidget()
    pages.addTab(QPushButton("On the first page"), "One")
    pages.addTab(QLineEdit(), "Two")
    window = show(pages)
    assert walk(window) == []
    pages.setCurrentIndex(1)
    assert len(walk(window)) == 1


def test_parts_of_a_control_are_not_controls(show: Show) -> None:
    box, spin, view = QComboBox(), QSpinBox(), rows("a")
    box.setEditable(True)
    assert controls(show(box, spin, view)) == [box, spin, view]


@pytest.mark.parametrize("policy", [Qt.FocusPolicy.NoFocus, Qt.FocusPolicy.ClickFocus])
def test_a_control_that_tab_does_not_reach_is_found(show: Show, policy: Qt.FocusPolicy) -> None:
    button = tool_button(name="Copy")
    button.setFocusPolicy(policy)
    assert unreachable(show(QPushButton("One"), button, QPushButton("Two"))) == [
        f"Tab does not reach it: {describe(button)}"
    ]


def test_all_is_reached_from_the_middle_too(show: Show) -> None:
    buttons = [QPushButton(str(number)) for number in range(4)]
    window = show(*buttons)
    buttons[2].setFocus()
    assert unreachable(window) == []
    assert set(tab_order(window)) == set(buttons)


def test_a_field_that_keeps_the_tab_key_is_found(show: Show) -> None:
    editor = named(QPlainTextEdit())
    assert isinstance(editor, QPlainTextEdit)
    first, last = QPushButton("One"), QPushButton("Two")
    window = show(first, editor, last)
    first.setFocus()
    assert unreachable(window) == [f"Tab does not leave it: {describe(editor)}"]
    assert editor.toPlainText() == ""
    editor.setTabChangesFocus(True)
    first.setFocus()
    assert unreachable(window) == []


def test_a_widget_that_takes_the_tab_key_for_itself_is_found(show: Show) -> None:
    class Greedy(QPushButton):
        def focusNextPrevChild(self, _next: bool) -> bool:  # noqa: N802  (Qt's name)
            return True

    greedy = Greedy("Mine")
    assert unreachable(show(QPushButton("One"), greedy, QPushButton("Two"))) == [
        f"Tab does not leave it: {describe(greedy)}"
    ]


def test_links_are_passed_one_by_one(show: Show) -> None:
    browser = QTextBrowser()
    named(browser)
    browser.setHtml(" ".join(f'<a href="https://example.org/{number}">{number}</a>' for number in range(20)))
    assert unreachable(show(QPushButton("One"), browser, QPushButton("Two"))) == []


def test_one_of_buttons_that_exclude_each_other_is_enough(show: Show) -> None:
    group = QButtonGroup()
    buttons = [tool_button(name=name) for name in ("One", "Two", "Three")]
    for button in buttons:
        button.setCheckable(True)
        group.addButton(button)
    buttons[1].setChecked(True)
    window = show(*buttons, QRadioButton("a"), QRadioButton("b"))
    group.setParent(window)
    assert walk(window) == []


@pytest.mark.parametrize(
    "make",
    [QLabel, QPushButton, QCheckBox, QRadioButton, QGroupBox],
    ids=lambda make: make.__name__,
)
def test_a_text_in_too_little_room_is_found(show: Show, make: type[QWidget]) -> None:
    widget = make(LONG)  # type: ignore[call-arg]
    window = show(widget, width=600)
    assert cut(window) == []
    widget.setFixedWidth(120)
    (fault,) = cut(window)
    assert fault.startswith(f"{LONG!r} is cut (needs ")
    assert fault.endswith(describe(widget))


@pytest.mark.parametrize(
    "style", [Qt.ToolButtonStyle.ToolButtonTextBesideIcon, Qt.ToolButtonStyle.ToolButtonTextUnderIcon]
)
def test_a_tool_buttons_text_is_looked_at(show: Show, style: Qt.ToolButtonStyle) -> None:
    button = tool_button("Settings and more")
    button.setToolButtonStyle(style)
    window = show(button)
    assert cut(window) == []
    button.setFixedSize(56, 52)
    assert len(cut(window)) == 1
    button.setToolButtonStyle(Qt.ToolButtonStyle.ToolButtonIconOnly)
    assert cut(window) == []


def test_style_sheets_are_reckoned_with(show: Show) -> None:
    button = QPushButton("Text")
    window = show(button)
    wide = button.fontMetrics().horizontalAdvance("Text") + 20
    button.setFixedWidth(wide)
    button.setStyleSheet("QPushButton { padding: 2px; border: 1px solid red }")
    assert cut(window) == []
    button.setStyleSheet("QPushButton { padding: 2px 14px; border: 1px solid red }")
    assert len(cut(window)) == 1


def test_every_choice_of_a_box_must_fit(show: Show) -> None:
    box = QComboBox()
    box.addItems(["On", LONG])
    window = show(box, width=600)
    assert cut(window) == []
    box.setFixedWidth(100)
    assert [fault.split(" is cut")[0] for fault in cut(window)] == [repr(LONG)]


def test_a_place_holder_must_fit(show: Show) -> None:
    field = QLineEdit()
    field.setPlaceholderText(LONG)
    window = show(field, width=600)
    assert cut(window) == []
    field.setFixedWidth(90)
    assert len(cut(window)) == 1


def test_tabs_must_fit(show: Show) -> None:
    pages = QTabWidget()
    pages.addTab(QWidget(), LONG)
    pages.addTab(QWidget(), LONG)
    window = show(pages, width=900)
    assert cut(window) == []
    pages.tabBar().setStyleSheet("QTabBar::tab { width: 60px }")
    assert len(cut(window)) == 2


def test_a_button_that_draws_itself_is_held_to_its_hint(show: Show) -> None:
    class Chip(QCheckBox):
        def sizeHint(self) -> QSize:  # noqa: N802  (Qt's name)
            return QSize(200, 30)

        minimumSizeHint = sizeHint  # noqa: N815  (Qt's name)

    chip = Chip("a")
    window = show(chip)
    assert cut(window) == []
    chip.setFixedWidth(190)
    assert len(cut(window)) == 1


def test_broken_lines_need_their_height(show: Show) -> None:
    label = QLabel(LONG)
    label.setWordWrap(True)
    window = show(label, width=200)
    assert cut(window) == []
    label.setFixedHeight(label.fontMetrics().height())
    assert len(cut(window)) == 1


def test_a_word_wider_than_its_label_is_found(show: Show) -> None:
    label = QLabel("a Donaudampfschifffahrtsgesellschaft b")
    label.setTextFormat(Qt.TextFormat.PlainText)
    label.setWordWrap(True)
    label.setFixedWidth(100)
    window = show(label)
    assert ["Donau" in fault for fault in cut(window)] == [True]


def test_what_a_parent_cuts_off_is_found(show: Show) -> None:
    frame = QWidget()
    label = QLabel("Here", frame)
    frame.setFixedSize(100, 40)
    window = show(frame)
    assert cut(window) == []
    label.move(90, 0)
    (fault,) = cut(window)
    assert "outside of its QWidget" in fault


def test_what_can_be_scrolled_to_is_not_cut(show: Show) -> None:
    area, inside = QScrollArea(), QWidget()
    column = QVBoxLayout(inside)
    for number in range(40):
        column.addWidget(QLabel(f"{number} {LONG}"))
    area.setWidget(inside)
    window = show(area, width=200)
    assert cut(window) == []
    area.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
    assert len(cut(window)) == 40


def test_what_shortens_itself_needs_a_tooltip(show: Show) -> None:
    label = QLabel(LONG)
    label.setProperty(MAY_ELIDE, True)
    label.setFixedWidth(50)
    window = show(label)
    assert ["no tooltip" in fault for fault in cut(window)] == [True]
    label.setToolTip(LONG)
    assert cut(window) == []
