"""The icons: one family of line drawings (`resources/icons/*.svg`), tinted in the theme's colours.

An icon is made for the theme that the app wears at that moment; whoever shows one makes it anew when the theme
changes. The widgets of `kit` do that themselves.
"""

from __future__ import annotations

import functools
from typing import Final

from PySide6.QtCore import QByteArray, QPointF, QRectF, Qt
from PySide6.QtGui import QGuiApplication, QIcon, QPainter, QPixmap, QPixmapCache
from PySide6.QtSvg import QSvgRenderer

from tandem import paths
from tandem.errors import TandemError
from tandem.ui import theme as themes

# Screens on which an icon is sharp without being made again; the application's own ratio is added.
RATIOS: Final = (1.0, 2.0)
APP_SIZES: Final = (16, 24, 32, 48, 64, 128, 256)


def icon(name: str, role: str = "text", size: int = 18, theme: themes.Theme | None = None) -> QIcon:
    """An icon in a colour of the theme; greyed where its widget is disabled.

    Args:
        name: The drawing's file name without `.svg`.
        role: A colour of the theme, such as "muted" or "accent".
        size: Edge in logical pixels.
        theme: Whose colours; None takes those that the app wears, or the light ones before it wears any.

    Raises:
        TandemError: There is no such drawing.
        AttributeError: There is no such role.
    """
    theme = theme or themes.of_app() or _unworn()
    made = QIcon()
    app = QGuiApplication.instance()
    own = (app.devicePixelRatio(),) if isinstance(app, QGuiApplication) else ()
    for ratio in sorted({*RATIOS, *own}):
        for mode, colour in ((QIcon.Mode.Normal, theme.colour(role).name()), (QIcon.Mode.Disabled, theme.disabled)):
            made.addPixmap(_pixmap(name, colour, size, ratio), mode)
    return made


def pixmap(
    name: str, role: str = "text", size: int = 18, ratio: float = 1.0, theme: themes.Theme | None = None
) -> QPixmap:
    """The same drawing as a pixmap for a screen of the given device pixel ratio; errors as `icon`."""
    theme = theme or themes.of_app() or _unworn()
    return _pixmap(name, theme.colour(role).name(), size, ratio)


def app_icon() -> QIcon:
    """The app's own icon, for windows, docks and task switchers: the tandem on a tile, the same in every theme."""
    light = _unworn()
    made = QIcon()
    for size in APP_SIZES:
        tile = QPixmap(size, size)
        tile.fill(Qt.GlobalColor.transparent)
        with QPainter(tile) as painter:
            painter.setRenderHint(QPainter.RenderHint.Antialiasing)
            painter.setPen(Qt.PenStyle.NoPen)
            painter.setBrush(light.colour("accent"))
            edge = size / 32
            painter.drawRoundedRect(QRectF(edge, edge, size - 2 * edge, size - 2 * edge), size * 0.22, size * 0.22)
            inner = round(size * 0.76)
            place = (size - inner) / 2
            painter.drawPixmap(QPointF(place, place), _pixmap("tandem", light.accent_text, inner, 1.0))
        made.addPixmap(tile)
    return made


def none() -> QIcon:
    """The icon that shows nothing."""
    return QIcon()


@functools.cache
def names() -> list[str]:
    """Every icon there is, sorted."""
    return sorted(file.stem for file in (paths.resources() / "icons").glob("*.svg"))


def _pixmap(name: str, colour: str, size: int, ratio: float) -> QPixmap:
    key = f"tandem {name} {colour} {size} {ratio:g}"
    found = QPixmap()
    if QPixmapCache.find(key, found):
        return found
    made = QPixmap(round(size * ratio), round(size * ratio))
    made.fill(Qt.GlobalColor.transparent)
    made.setDevicePixelRatio(ratio)
    renderer = QSvgRenderer(QByteArray(_drawing(name).replace("currentColor", colour).encode()))
    with QPainter(made) as painter:
        renderer.render(painter, QRectF(0, 0, size, size))
    QPixmapCache.insert(key, made)
    return made


@functools.cache
def _drawing(name: str) -> str:
    try:
        return (paths.resources() / "icons" / f"{name}.svg").read_text(encoding="utf-8")
    except OSError as error:
        raise TandemError(f"Tandem's icon {name} is missing.", "Install Tandem again.", str(error)) from error


@functools.cache
def _unworn() -> themes.Theme:
    return themes.load("light")
