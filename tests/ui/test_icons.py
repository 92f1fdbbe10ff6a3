from __future__ import annotations

import ast
import re
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest
from PySide6.QtCore import QSize
from PySide6.QtGui import QIcon, QImage
from PySide6.QtSvg import QSvgRenderer
from PySide6.QtWidgets import QApplication

import tandem
from tandem import paths
from tandem.errors import TandemError
from tandem.ui import icons, theme
from tandem.ui.theme import ThemeManager

FOLDER = paths.resources() / "icons"
NAMES = icons.names()
# fmt: off
WANTED = {
    "plus", "search", "chat", "models", "compare", "settings", "send", "stop", "copy", "edit", "refresh",
    "trash", "more", "chevron-down", "chevron-right", "chevron-left", "check", "warning", "info", "close",
    "thinking", "bolt", "download", "upload", "export", "folder", "chip", "moon", "sun", "keyboard", "arrow-down",
    "undo", "lock", "file", "pin",
}
# fmt: on


def colours(image: QImage) -> set[str]:
    """The colours of the fully opaque pixels."""
    image = image.convertToFormat(QImage.Format.Format_ARGB32)
    spots = [image.pixelColor(x, y) for x in range(image.width()) for y in range(image.height())]
    return {spot.name().upper() for spot in spots if spot.alpha() == 255}


def drawn(image: QImage) -> set[tuple[int, int]]:
    """Where something is drawn."""
    image = image.convertToFormat(QImage.Format.Format_ARGB32)
    return {(x, y) for x in range(image.width()) for y in range(image.height()) if image.pixelColor(x, y).alpha() > 8}


def test_the_family_is_whole() -> None:
    assert set(NAMES) >= WANTED


@pytest.mark.parametrize("name", NAMES)
def test_a_drawing_is_of_the_family(name: str) -> None:
    text = (FOLDER / f"{name}.svg").read_text(encoding="utf-8")
    root = ET.fromstring(text)
    assert root.get("viewBox") == "0 0 24 24"
    assert (root.get("stroke"), root.get("stroke-width")) == ("currentColor", "1.75")
    assert (root.get("stroke-linecap"), root.get("stroke-linejoin"), root.get("fill")) == ("round", "round", "none")
    # Nothing but lines in the one colour: no text, no pictures, nothing from elsewhere.
    assert {element.tag.rpartition("}")[2] for element in root} <= {"path", "circle", "rect"}
    assert not re.search(r"#[0-9a-fA-F]{3,8}\b|href|style=", text)
    assert QSvgRenderer(text.encode()).isValid()


def test_drawings_keep_off_the_edge() -> None:
    for name in NAMES:
        spots = drawn(icons.pixmap(name, size=24, ratio=4).toImage())
        assert spots, name
        assert min(min(spot) for spot in spots) >= 4, name
        assert max(max(spot) for spot in spots) < 92, name


def test_no_two_drawings_are_the_same() -> None:
    seen: dict[frozenset[tuple[int, int]], str] = {}
    for name in NAMES:
        spots = frozenset(drawn(icons.pixmap(name, size=24).toImage()))
        assert spots not in seen, f"{name} and {seen[spots]}"
        seen[spots] = name


@pytest.mark.parametrize("role", ["text", "muted", "accent", "bad", "accent_text"])
def test_it_is_tinted_in_the_role_s_colour(role: str) -> None:
    dark = theme.load("dark")
    assert colours(icons.pixmap("stop", role, 48, theme=dark).toImage()) == {getattr(dark, role)}


def test_it_is_tinted_in_what_the_app_wears(qapp: QApplication) -> None:
    manager = ThemeManager()
    for name in ("light", "dark"):
        manager.apply(qapp, name)
        assert colours(icons.icon("stop", size=48).pixmap(48, 48).toImage()) == {manager.theme.text}


def test_it_is_greyed_where_its_widget_is_disabled() -> None:
    light = theme.load("light")
    made = icons.icon("stop", "accent", 48, light)
    assert colours(made.pixmap(QSize(48, 48), QIcon.Mode.Normal).toImage()) == {light.accent}
    assert colours(made.pixmap(QSize(48, 48), QIcon.Mode.Disabled).toImage()) == {light.disabled}


def test_it_is_sharp_on_a_dense_screen() -> None:
    made = icons.icon("chat", size=18)
    for ratio in icons.RATIOS:
        pixmap = made.pixmap(QSize(18, 18), ratio)
        assert (pixmap.width(), pixmap.devicePixelRatio()) == (round(18 * ratio), ratio)


def test_a_name_that_is_not_there() -> None:
    with pytest.raises(TandemError, match="unicorn"):
        icons.icon("unicorn")


def test_a_role_that_is_not_there() -> None:
    with pytest.raises(AttributeError):
        icons.icon("chat", "glitter")


def test_the_app_s_icon_has_every_size() -> None:
    made, light = icons.app_icon(), theme.load("light")
    assert [size.width() for size in made.availableSizes()] == list(icons.APP_SIZES)
    for size in icons.APP_SIZES:
        image = made.pixmap(QSize(size, size), 1.0).toImage()
        assert light.accent in colours(image)
        assert image.pixelColor(0, 0).alpha() == 0
    assert light.accent_text in colours(made.pixmap(QSize(64, 64), 1.0).toImage())


def test_none_is_empty() -> None:
    assert icons.none().isNull()


ICON_ARGUMENT = {
    "icon": 0,
    "pixmap": 0,
    "set_icon": 0,
    "add": 0,
    "IconButton": 1,
    "NavButton": 1,
    "ToggleChip": 1,
    "EmptyState": 1,
    "PrimaryButton": 2,
    "QuietButton": 2,
}


def test_every_icon_that_the_window_names_is_there() -> None:
    missing, found = [], 0
    for file in sorted((Path(tandem.__file__).parent / "ui").rglob("*.py")):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if not isinstance(node, ast.Call):
                continue
            place = ICON_ARGUMENT.get(getattr(node.func, "attr", getattr(node.func, "id", "")))
            given = [word.value for word in node.keywords if word.arg == "icon"]
            if place is not None and len(node.args) > place:
                given.append(node.args[place])
            for value in given:
                if isinstance(value, ast.Constant) and isinstance(value.value, str) and value.value:
                    found += 1
                    if value.value not in NAMES:
                        missing.append(f"{file.name}:{node.lineno}: {value.value}")
    assert found
    assert missing == []
