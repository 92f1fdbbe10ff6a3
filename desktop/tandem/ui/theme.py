"""The theme: colours and sizes as data, and the manager that dresses the app in them.

`resources/themes/light.toml` and `dark.toml` hold the colours, `sizes.toml` the sizes. A `Theme` is what they say,
with every size already multiplied by the user's text size. The `ThemeManager` reads them once, sets style, palette,
font and style sheet, follows the system's light or dark scheme while it runs, and tells widgets by `changed`.
"""

from __future__ import annotations

from typing import Any, Final, Literal, cast, get_args

import msgspec
from PySide6.QtCore import QCoreApplication, QDir, QObject, Qt, Signal
from PySide6.QtGui import QColor, QFont, QFontDatabase, QFontInfo, QPalette
from PySide6.QtWidgets import QApplication

from tandem import paths
from tandem.errors import TandemError
from tandem.ui import style

Name = Literal["light", "dark"]
Choice = Literal["system", "light", "dark"]
TypeSize = Literal["small", "body", "lead", "title", "display", "mono"]

APP_PROPERTY: Final = "tandemTheme"
SMALLEST_SCALE: Final = 0.8
LARGEST_SCALE: Final = 1.6
# Instead of what a bare Linux falls back to; on every other system its own font is the right one.
BETTER_SANS: Final = ("Inter", "Noto Sans")
POOR_SANS: Final = frozenset({"DejaVu Sans", "Bitstream Vera Sans", "Sans Serif", "Sans", "sans-serif", ""})
CJK_SANS: Final = ("Noto Sans CJK KR", "Noto Sans KR", "Malgun Gothic", "Apple SD Gothic Neo", "Noto Sans CJK SC")
MONO: Final = (
    "JetBrains Mono",
    "Cascadia Mono",
    "SF Mono",
    "Menlo",
    "Consolas",
    "Noto Sans Mono",
    "Liberation Mono",
    "DejaVu Sans Mono",
)
CJK_MONO: Final = ("Noto Sans Mono CJK KR", "D2Coding", *CJK_SANS)


class Space(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Distances in pixels, from `xs` inside a control to `xxl` around a page."""

    xs: int
    s: int
    m: int
    l: int  # noqa: E741 - one of a family
    xl: int
    xxl: int


class Radius(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Corner radii in pixels: controls, cards' inner parts, cards."""

    s: int
    m: int
    l: int  # noqa: E741 - one of a family


class Type(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Text sizes in pixels."""

    small: int
    body: int
    lead: int
    title: int
    display: int
    mono: int


class Control(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Sizes of controls in pixels: a button's height, an icon's edge."""

    height: int
    icon: int


class Syntax(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Colours of code, as `#RRGGBB`, all readable on `code_bg`."""

    text: str
    keyword: str
    type: str
    function: str
    string: str
    number: str
    comment: str
    operator: str
    constant: str
    error: str


class Colours(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What each colour is for, as `#RRGGBB`; the theme files say more."""

    window: str
    surface: str
    raised: str
    sunken: str
    line: str
    edge: str
    hover: str
    pressed: str
    thumb: str
    text: str
    muted: str
    faint: str
    disabled: str
    accent: str
    accent_hover: str
    accent_pressed: str
    accent_text: str
    accent_soft: str
    user_bubble: str
    code_bg: str
    good: str
    good_soft: str
    warn: str
    warn_soft: str
    bad: str
    bad_soft: str
    drafted_bg: str
    drafted_line: str
    rejected_line: str
    focus: str
    selection: str
    selection_text: str
    find: str


class Theme(Colours, frozen=True, kw_only=True):
    """One theme: the colours of `Colours`, and sizes already multiplied by `scale`."""

    name: Name
    dark: bool
    scale: float
    syntax: Syntax
    space: Space
    radius: Radius
    type: Type
    control: Control

    def colour(self, role: str) -> QColor:
        """The colour of a role, such as "accent", or of code, such as "syntax.keyword".

        Raises:
            AttributeError: There is no such role.
        """
        part = role.removeprefix("syntax.")
        return QColor(str(getattr(self if part == role else self.syntax, part)))

    def px(self, size: float) -> int:
        """A size given in pixels at 100 %, in pixels at this theme's scale; at least 1 for anything above 0."""
        return scaled(size, self.scale)


class _Sizes(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    space: Space
    radius: Radius
    type: Type
    control: Control


class _File(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    name: Name
    dark: bool
    colours: Colours
    syntax: Syntax


def scaled(size: float, scale: float) -> int:
    """A size in pixels, multiplied and rounded; at least 1 for anything above 0."""
    return max(1, round(size * scale)) if size > 0 else 0


def load(name: Name, scale: float = 1.0) -> Theme:
    """Reads a theme from the resources, its sizes multiplied by `scale`.

    Raises:
        TandemError: The files are missing or not what they should be.
    """
    folder = paths.resources() / "themes"
    try:
        file = msgspec.toml.decode((folder / f"{name}.toml").read_bytes(), type=_File)
        sizes = msgspec.toml.decode((folder / "sizes.toml").read_bytes(), type=_Sizes)
    except (OSError, msgspec.MsgspecError) as error:
        raise TandemError("A theme of Tandem's cannot be read.", "Install Tandem again.", str(error)) from error
    groups = {
        group: type(values)(**{key: scaled(value, scale) for key, value in msgspec.structs.asdict(values).items()})
        for group, values in msgspec.structs.asdict(sizes).items()
    }
    return Theme(
        **msgspec.structs.asdict(file.colours),
        **cast("Any", groups),
        name=file.name,
        dark=file.dark,
        scale=scale,
        syntax=file.syntax,
    )


def of_app() -> Theme | None:
    """The theme that the running application wears, or None before it wears one."""
    app = QCoreApplication.instance()
    theme = app.property(APP_PROPERTY) if app is not None else None
    return theme if isinstance(theme, Theme) else None


def contrast(one: str, other: str) -> float:
    """The contrast ratio of two `#RRGGBB` colours as WCAG 2 defines it: 1 to 21."""
    light, dark = sorted((_luminance(one), _luminance(other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


def _luminance(colour: str) -> float:
    """Relative luminance of `#RRGGBB`, 0 to 1, as WCAG 2 defines it."""
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    red, green, blue = (p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


class ThemeManager(QObject):
    """Holds the theme in use and dresses the application in it.

    One for the whole app; widgets take it in their constructor, read `theme` when they paint, and listen to
    `changed`, which comes after palette, font and style sheet are new. Before `apply` it holds the light theme.
    """

    changed = Signal()

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._choice: Choice = "system"
        self._app: QApplication | None = None
        self._worn = False
        self._families: list[str] = []
        self._mono: list[str] = []
        self._theme = load("light")

    @property
    def theme(self) -> Theme:
        """The theme in use, its sizes at the user's scale."""
        return self._theme

    @property
    def scale(self) -> float:
        """The text size: 1.0 is 100 %."""
        return self._theme.scale

    @property
    def choice(self) -> Choice:
        """What was asked for: a theme, or the system's."""
        return self._choice

    def apply(self, app: QApplication, choice: str = "system", scale: float = 1.0) -> None:
        """Dresses the app; the first call also sets the style and starts following the system's scheme.

        Args:
            app: The application.
            choice: "system", "light" or "dark"; anything else counts as "system".
            scale: Text size, held between 0.8 and 1.6.
        """
        if self._app is None:
            self._app = app
            app.setStyle("Fusion")
            QDir.setSearchPaths(style.SEARCH_PREFIX, [str(paths.resources())])
            app.styleHints().colorSchemeChanged.connect(self._follow)
        self._choice = cast("Choice", choice) if choice in get_args(Choice) else "system"
        scale = min(max(scale, SMALLEST_SCALE), LARGEST_SCALE)
        hints = app.styleHints()
        # The system's own parts, such as a title bar, follow where the platform can do it.
        asked = {"light": Qt.ColorScheme.Light, "dark": Qt.ColorScheme.Dark}.get(self._choice)
        hints.blockSignals(True)
        if asked is None:
            hints.unsetColorScheme()
        else:
            hints.setColorScheme(asked)
        hints.blockSignals(False)
        self._wear(load(self._wanted(app), scale))

    def font(self, size: TypeSize = "body", *, bold: bool = False, mono: bool = False) -> QFont:
        """A font of the theme: its text size, in the interface's or the monospaced family."""
        if not self._families:  # asking the font database costs milliseconds, so once
            self._families, self._mono = sans_families(), mono_families()
        font = QFont(self._mono if mono or size == "mono" else self._families)
        font.setPixelSize(int(getattr(self._theme.type, size)))
        font.setWeight(QFont.Weight.DemiBold if bold else QFont.Weight.Normal)
        font.setStyleStrategy(QFont.StyleStrategy.PreferAntialias)
        if mono or size == "mono":
            font.setStyleHint(QFont.StyleHint.Monospace)
            font.setFixedPitch(True)
        return font

    def colour(self, role: str) -> QColor:
        """The colour of a role of the theme in use."""
        return self._theme.colour(role)

    def px(self, size: float) -> int:
        """A size in pixels at 100 %, at the user's scale."""
        return self._theme.px(size)

    def _wanted(self, app: QApplication) -> Name:
        if self._choice != "system":
            return self._choice
        return "dark" if system_scheme(app) == Qt.ColorScheme.Dark else "light"

    def _follow(self) -> None:
        """The system changed its scheme."""
        if self._app is not None and self._wanted(self._app) != self._theme.name:
            self._wear(load(self._wanted(self._app), self._theme.scale))

    def _wear(self, theme: Theme) -> None:
        app = self._app
        if app is None or (self._worn and theme == self._theme):
            return
        self._theme, self._worn = theme, True
        app.setProperty(APP_PROPERTY, theme)
        app.setPalette(palette(theme))
        app.setFont(self.font())
        app.setStyleSheet(style.sheet(theme, self.font(mono=True).families()))
        self.changed.emit()


def system_scheme(app: QApplication) -> Qt.ColorScheme:
    """Whether the system is set to light or dark; unknown where it does not say."""
    return app.styleHints().colorScheme()


def system_family() -> str:
    """The family that the system asks for; a name for any sans serif where it asks for none in particular."""
    return QFontDatabase.systemFont(QFontDatabase.SystemFont.GeneralFont).family()


def has_family(family: str) -> bool:
    """Whether a font family is installed."""
    return QFontDatabase.hasFamily(family)


def sans_families() -> list[str]:
    """The interface's font, and what has Korean and Chinese letters where it has none."""
    own = system_family()
    better = [family for family in BETTER_SANS if has_family(family)] if own in POOR_SANS else []
    return [*(better[:1] or [own]), *(family for family in CJK_SANS if has_family(family))]


def mono_families() -> list[str]:
    """The font of code, and what has Korean and Chinese letters of two columns."""
    fixed = QFontInfo(QFontDatabase.systemFont(QFontDatabase.SystemFont.FixedFont)).family()
    first = [family for family in MONO if has_family(family)][:1] or [fixed]
    return [*first, *(family for family in CJK_MONO if has_family(family))]


def palette(theme: Theme) -> QPalette:
    """Qt's palette in the theme's colours, for what a style sheet does not reach."""
    roles = QPalette.ColorRole
    colours = {
        roles.Window: theme.window,
        roles.WindowText: theme.text,
        roles.Base: theme.surface,
        roles.AlternateBase: theme.sunken,
        roles.ToolTipBase: theme.raised,
        roles.ToolTipText: theme.text,
        roles.Text: theme.text,
        roles.PlaceholderText: theme.faint,
        roles.Button: theme.surface,
        roles.ButtonText: theme.text,
        roles.BrightText: theme.bad,
        roles.Light: theme.raised,
        roles.Midlight: theme.hover,
        roles.Mid: theme.line,
        roles.Dark: theme.edge,
        roles.Shadow: theme.sunken,
        roles.Highlight: theme.selection,
        roles.HighlightedText: theme.selection_text,
        roles.Link: theme.accent,
        roles.LinkVisited: theme.accent,
        roles.Accent: theme.accent,
    }
    made = QPalette()
    for role, colour in colours.items():
        made.setColor(role, QColor(colour))
    for role in (roles.WindowText, roles.Text, roles.ButtonText, roles.HighlightedText, roles.PlaceholderText):
        made.setColor(QPalette.ColorGroup.Disabled, role, QColor(theme.disabled))
    made.setColor(QPalette.ColorGroup.Disabled, roles.Highlight, QColor(theme.hover))
    return made
