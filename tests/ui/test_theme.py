from __future__ import annotations

import gc
import re
import weakref
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QPalette
from PySide6.QtWidgets import (
    QApplication,
    QCheckBox,
    QComboBox,
    QLineEdit,
    QListView,
    QPlainTextEdit,
    QPushButton,
    QRadioButton,
    QSlider,
    QSpinBox,
    QToolButton,
    QWidget,
)
from pytestqt.qtbot import QtBot

from tandem import paths
from tandem.errors import TandemError
from tandem.ui import kit, style, theme
from tandem.ui.theme import Theme, ThemeManager, contrast

NAMES: tuple[theme.Name, ...] = ("light", "dark")

# Where each colour of text stands. WCAG AA: 4.5 for text, 3 for outlines and marks of what can be used.
PLACES = ("window", "surface", "raised", "sunken", "hover", "accent_soft", "user_bubble", "code_bg", "drafted_bg")
TEXT_ON = [
    *(("text", place) for place in (*PLACES, "pressed", "good_soft", "warn_soft", "bad_soft", "selection", "find")),
    *(("muted", place) for place in (*PLACES, "pressed", "good_soft", "warn_soft", "bad_soft")),
    *(("faint", place) for place in PLACES),
    *(("accent", place) for place in PLACES),
    *(
        (role, place)
        for role in ("good", "warn", "bad")
        for place in ("window", "surface", "raised", "sunken", "hover")
    ),
    *((role, f"{role}_soft") for role in ("good", "warn", "bad")),
    *(("accent_text", fill) for fill in ("accent", "accent_hover", "accent_pressed")),
    ("selection_text", "selection"),
]
MARKS_ON = [
    *(("edge", place) for place in ("window", "surface", "raised", "sunken")),
    *(("focus", place) for place in (*PLACES, "pressed", "good_soft", "warn_soft", "bad_soft")),
    *(("accent", place) for place in PLACES),
    *((role, place) for role in ("drafted_line", "rejected_line") for place in ("window", "code_bg", "drafted_bg")),
    *((role, "pressed") for role in ("accent", "warn", "bad")),  # a meter's filling on its track
    ("accent_text", "accent"),  # a switch's knob, the ring of focus in a primary button
]


@pytest.fixture
def manager(qapp: QApplication) -> Iterator[ThemeManager]:
    made = ThemeManager(qapp)
    yield made
    made.deleteLater()


@pytest.fixture(params=NAMES)
def either(request: pytest.FixtureRequest) -> Theme:
    return theme.load(request.param)


@pytest.mark.parametrize(
    ("one", "other", "ratio"),
    [
        ("#000000", "#FFFFFF", 21.0),
        ("#FFFFFF", "#FFFFFF", 1.0),
        ("#777777", "#FFFFFF", 4.48),
        ("#0000FF", "#FFFFFF", 8.59),
    ],
)
def test_contrast_is_that_of_wcag(one: str, other: str, ratio: float) -> None:
    assert contrast(one, other) == pytest.approx(ratio, abs=0.01)
    assert contrast(other, one) == contrast(one, other)


def faint_pairs(colours: Theme, pairs: list[tuple[str, str]], least: float) -> list[str]:
    ratios = {pair: contrast(getattr(colours, pair[0]), getattr(colours, pair[1])) for pair in pairs}
    return [f"{front} on {back}: {ratio:.2f}" for (front, back), ratio in ratios.items() if ratio < least]


def test_text_can_be_read(either: Theme) -> None:
    assert faint_pairs(either, TEXT_ON, 4.5) == []


def test_outlines_and_marks_can_be_seen(either: Theme) -> None:
    assert faint_pairs(either, MARKS_ON, 3) == []


def test_code_can_be_read(either: Theme) -> None:
    parts = {part: contrast(getattr(either.syntax, part), either.code_bg) for part in theme.Syntax.__struct_fields__}
    assert {part: ratio for part, ratio in parts.items() if ratio < 4.5} == {}


def test_a_pair_that_cannot_be_read_is_noticed(either: Theme) -> None:
    assert faint_pairs(either, [("disabled", "window"), ("text", "window")], 4.5)[0].startswith("disabled on window")


def test_colours_are_opaque_hex(either: Theme) -> None:
    colours = [getattr(either, role) for role in theme.Colours.__struct_fields__]
    colours += [getattr(either.syntax, part) for part in theme.Syntax.__struct_fields__]
    assert [colour for colour in colours if not re.fullmatch(r"#[0-9A-F]{6}", colour)] == []


def test_themes_are_what_they_are_called() -> None:
    light, dark = theme.load("light"), theme.load("dark")
    assert (light.name, light.dark, dark.name, dark.dark) == ("light", False, "dark", True)
    assert contrast(light.window, "#FFFFFF") < 1.1
    assert contrast(dark.window, "#000000") < 1.3
    assert (light.space, light.type, light.radius) == (dark.space, dark.type, dark.radius)


def test_sizes_follow_the_scale() -> None:
    one, more = theme.load("light"), theme.load("light", 1.5)
    assert (one.space.m, one.type.body, one.control.height) == (12, 14, 32)
    assert (more.space.m, more.type.body, more.control.height) == (18, 21, 48)
    assert (one.px(5), more.px(5), more.px(0), theme.scaled(0.2, 1)) == (5, 8, 0, 1)


def test_colour_of_a_role() -> None:
    light = theme.load("light")
    assert light.colour("accent").name().upper() == light.accent
    assert light.colour("syntax.keyword").name().upper() == light.syntax.keyword
    with pytest.raises(AttributeError):
        light.colour("glitter")


@pytest.mark.parametrize("text", ["", "name = 'light'", "not toml ==", "[colours]\nwindow = 3"])
def test_a_damaged_theme_is_a_sentence(text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "themes"
    folder.mkdir()
    (folder / "light.toml").write_text(text, encoding="utf-8")
    (folder / "sizes.toml").write_bytes((paths.resources() / "themes" / "sizes.toml").read_bytes())
    monkeypatch.setattr(paths, "resources", lambda: tmp_path)
    with pytest.raises(TandemError) as caught:
        theme.load("light")
    assert caught.value.remedy


def test_an_unknown_role_in_a_theme_file_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "themes"
    folder.mkdir()
    for name in ("light.toml", "sizes.toml"):
        text = (paths.resources() / "themes" / name).read_text(encoding="utf-8")
        (folder / name).write_text(text.replace("[colours]", '[colours]\nglitter = "#FFFFFF"'), encoding="utf-8")
    monkeypatch.setattr(paths, "resources", lambda: tmp_path)
    with pytest.raises(TandemError):
        theme.load("light")


def test_marks_are_in_their_theme_s_colours() -> None:
    files = sorted((paths.resources() / "icons" / "marks").glob("*.svg"))
    assert len(files) == len(NAMES) * len({file.stem.rpartition("-")[0] for file in files})
    roles = {"check": "accent_text", "dash": "accent_text", "tick": "accent"}
    for file in files:
        shape, _, name = file.stem.rpartition("-")
        colours = theme.load(name)  # type: ignore[arg-type]
        role = "disabled" if shape.endswith("-off") else roles.get(shape, "muted")
        assert re.findall(r'stroke="(#\w+)"', file.read_text(encoding="utf-8")) == [getattr(colours, role)], file.name


def test_every_file_of_the_style_sheet_is_there(either: Theme) -> None:
    found = re.findall(rf"url\({style.SEARCH_PREFIX}:([^)]+)\)", style.sheet(either, ["Mono"]))
    assert found
    assert [name for name in found if not (paths.resources() / name).is_file()] == []


def test_the_style_sheet_uses_the_theme_s_colours_only(either: Theme) -> None:
    own = {getattr(either, role) for role in theme.Colours.__struct_fields__}
    assert set(re.findall(r"#[0-9A-Fa-f]{6}\b", style.sheet(either, ["Mono"]))) <= own


@pytest.mark.parametrize("name", NAMES)
def test_qt_understands_every_line(name: str, manager: ThemeManager, qapp: QApplication, qtbot: QtBot) -> None:
    # A mistake in a style sheet or a missing picture is a warning of Qt's, and that fails the test.
    manager.apply(qapp, name)
    parts: list[QWidget] = [QPushButton("a"), QLineEdit(), QComboBox(), QSpinBox(), QCheckBox("b"), QRadioButton("c")]
    parts += [QSlider(), QPlainTextEdit(), QListView(), QToolButton()]
    for part in parts:
        qtbot.addWidget(part)
        part.show()
        assert not part.grab().isNull()


def test_palette_style_and_font_are_the_theme_s(manager: ThemeManager, qapp: QApplication) -> None:
    manager.apply(qapp, "dark")
    assert qapp.palette().color(QPalette.ColorRole.Window).name().upper() == manager.theme.window
    assert qapp.palette().color(QPalette.ColorGroup.Disabled, QPalette.ColorRole.Text).name().upper() == (
        manager.theme.disabled
    )
    assert qapp.font().pixelSize() == manager.theme.type.body
    assert theme.of_app() == manager.theme


def test_the_style_is_fusion(manager: ThemeManager, qapp: QApplication) -> None:
    manager.apply(qapp, "light")
    qapp.setStyleSheet("")
    assert qapp.style().name() == "fusion"


def test_a_change_is_told_once_and_only_when_there_is_one(manager: ThemeManager, qapp: QApplication) -> None:
    told: list[str] = []
    manager.changed.connect(lambda: told.append(manager.theme.name))
    manager.apply(qapp, "light")
    manager.apply(qapp, "light")
    manager.apply(qapp, "dark")
    manager.apply(qapp, "dark", 1.2)
    assert told == ["light", "dark", "dark"]
    assert (manager.choice, manager.scale) == ("dark", 1.2)


@pytest.mark.parametrize(("asked", "got"), [(0.1, 0.8), (9.0, 1.6), (1.25, 1.25)])
def test_the_scale_is_held_in_bounds(asked: float, got: float, manager: ThemeManager, qapp: QApplication) -> None:
    manager.apply(qapp, "light", asked)
    assert manager.scale == got


def test_an_unknown_choice_is_the_system_s(manager: ThemeManager, qapp: QApplication) -> None:
    manager.apply(qapp, "sepia")
    assert manager.choice == "system"


class Hints:
    """The system's scheme, changed by the test: the platform without a screen has none."""

    def __init__(self, manager: ThemeManager) -> None:
        self.scheme = Qt.ColorScheme.Light
        self.manager = manager

    def change(self, scheme: Qt.ColorScheme) -> None:
        self.scheme = scheme
        QApplication.styleHints().colorSchemeChanged.emit(scheme)


@pytest.fixture
def hints(manager: ThemeManager, monkeypatch: pytest.MonkeyPatch) -> Hints:
    made = Hints(manager)
    monkeypatch.setattr(theme, "system_scheme", lambda _app: made.scheme)
    return made


def test_the_system_is_followed_while_the_app_runs(manager: ThemeManager, qapp: QApplication, hints: Hints) -> None:
    manager.apply(qapp, "system", 1.1)
    assert manager.theme.name == "light"
    hints.change(Qt.ColorScheme.Dark)
    assert (manager.theme.name, manager.scale) == ("dark", 1.1)
    hints.change(Qt.ColorScheme.Unknown)
    assert manager.theme.name == "light"


def test_a_chosen_theme_stays_when_the_system_changes(manager: ThemeManager, qapp: QApplication, hints: Hints) -> None:
    manager.apply(qapp, "light")
    hints.change(Qt.ColorScheme.Dark)
    assert manager.theme.name == "light"
    manager.apply(qapp, "system")
    assert manager.theme.name == "dark"


def test_a_gone_manager_hears_nothing(qapp: QApplication, hints: Hints) -> None:
    made = ThemeManager()
    made.apply(qapp, "system")
    gone = weakref.ref(made)
    del made
    gc.collect()
    assert gone() is None
    hints.change(Qt.ColorScheme.Dark)


def test_changes_leave_nothing_behind(manager: ThemeManager, qapp: QApplication, qtbot: QtBot) -> None:
    page = QWidget()
    qtbot.addWidget(page)
    for _ in range(3):
        kit.IconButton(manager, "copy", "Copy", parent=page)
        kit.Card(manager, parent=page)
    page.show()
    manager.apply(qapp, "light")
    children = len(page.findChildren(QWidget))
    gc.collect()
    before = len(gc.get_objects())
    for _ in range(5):
        manager.apply(qapp, "dark", 1.2)
        manager.apply(qapp, "light")
    gc.collect()
    assert len(page.findChildren(QWidget)) == children
    assert len(gc.get_objects()) - before < 200


def test_fonts_prefer_what_looks_better_than_a_bare_linux(
    manager: ThemeManager, qapp: QApplication, monkeypatch: pytest.MonkeyPatch
) -> None:
    manager.apply(qapp, "light")
    monkeypatch.setattr(theme, "system_family", lambda: "DejaVu Sans")
    for there, first in (({"Inter", "Noto Sans"}, "Inter"), ({"Noto Sans"}, "Noto Sans"), (set(), "DejaVu Sans")):
        monkeypatch.setattr(theme, "has_family", there.__contains__)
        assert theme.sans_families()[0] == first
    monkeypatch.setattr(theme, "system_family", lambda: "Segoe UI")
    monkeypatch.setattr(theme, "has_family", {"Inter", "Malgun Gothic"}.__contains__)
    assert theme.sans_families() == ["Segoe UI", "Malgun Gothic"]


def test_monospaced_fonts_have_one_family_and_its_korean_company(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(theme, "has_family", {"Consolas", "Menlo", "Noto Sans Mono CJK KR"}.__contains__)
    assert theme.mono_families() == ["Menlo", "Noto Sans Mono CJK KR"]


def test_fonts_have_the_theme_s_sizes(manager: ThemeManager, qapp: QApplication) -> None:
    manager.apply(qapp, "light", 1.25)
    assert manager.font("title").pixelSize() == 25
    assert manager.font(bold=True).weight() > manager.font().weight()
    mono = manager.font("mono")
    assert (mono.pixelSize(), mono.fixedPitch()) == (16, True)
    assert mono.families() != manager.font().families()


def test_a_theme_can_be_written_and_read(either: Theme) -> None:
    # What a test or a tool saves of it comes back the same.
    assert msgspec.json.decode(msgspec.json.encode(either), type=Theme) == either
