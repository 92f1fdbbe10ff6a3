"""The application's style sheet, written from a theme.

Written by parts, each a function from the theme to text. Colours come from the theme's roles, sizes from its scales.
A widget asks for a look of its own by its class (`PrimaryButton`) or by the property `kit` ("card", "plain", ...);
labels by `type`, `role` and `bold`. The marks in check boxes and arrows are the files in `icons/marks`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tandem.ui.theme import Theme

SEARCH_PREFIX: Final = "tandem"


def sheet(theme: Theme, mono: Sequence[str]) -> str:
    """The style sheet of the whole application.

    Args:
        theme: Colours and sizes.
        mono: Monospaced families, the best first.
    """
    parts = (_base, _labels, _buttons, _kit, _fields, _spins, _checks, _bars, _views, _popups, _dialogs)
    return "\n".join(part(theme) for part in parts) + _mono(mono)


def _mark(theme: Theme, name: str) -> str:
    return f"url({SEARCH_PREFIX}:icons/marks/{name}-{theme.name}.svg)"


def _veil(colour: str) -> str:
    """A colour at two fifths: for a border that only separates."""
    red, green, blue = (int(colour[i : i + 2], 16) for i in (1, 3, 5))
    return f"rgba({red}, {green}, {blue}, 40%)"


def _base(t: Theme) -> str:
    return f"""
QWidget {{ color: {t.text}; selection-background-color: {t.selection}; selection-color: {t.selection_text}; }}
QWidget:disabled {{ color: {t.disabled}; }}
QMainWindow, QDialog, QMessageBox, QFileDialog {{ background: {t.window}; }}
QScrollArea, QStackedWidget, QAbstractScrollArea::corner {{ background: transparent; border: none; }}
QScrollArea > QWidget > QWidget {{ background: transparent; }}
QWidget[kit="page"] {{ background: {t.window}; }}
QWidget[kit="sunken"] {{ background: {t.sunken}; }}
QFrame[kit="divider"] {{ background: {t.line}; border: none; }}
QSplitter::handle {{ background: {t.line}; }}
QSplitter::handle:hover {{ background: {t.edge}; }}
QSplitter::handle:horizontal {{ width: 1px; }}
QSplitter::handle:vertical {{ height: 1px; }}
"""


def _labels(t: Theme) -> str:
    sizes = "".join(
        f'QLabel[type="{name}"] {{ font-size: {getattr(t.type, name)}px; }}\n' for name in t.type.__struct_fields__
    )
    roles = "".join(
        f'QLabel[role="{role}"] {{ color: {getattr(t, role)}; }}\n'
        for role in ("muted", "faint", "accent", "good", "warn", "bad")
    )
    return f"""
QLabel {{ background: transparent; }}
{sizes}{roles}
QLabel[bold="true"] {{ font-weight: 600; }}
QLabel:disabled {{ color: {t.disabled}; }}
"""


def _buttons(t: Theme) -> str:
    """Push buttons and tool buttons; a focused one has a border of 2 px, its padding 1 px less."""
    across, down = t.px(14), t.px(5)
    return f"""
QPushButton {{
    background: {t.surface}; color: {t.text}; border: 1px solid {t.edge}; border-radius: {t.radius.m}px;
    padding: {down}px {across}px; min-height: {t.px(20)}px;
}}
QPushButton:hover {{ background: {t.hover}; }}
QPushButton:pressed {{ background: {t.pressed}; }}
QPushButton:focus {{ border: 2px solid {t.focus}; padding: {down - 1}px {across - 1}px; outline: none; }}
QPushButton:disabled {{ color: {t.disabled}; background: transparent; border: 1px solid {t.line}; }}
QPushButton:flat {{ background: transparent; border-color: transparent; }}
QPushButton:flat:hover {{ background: {t.hover}; }}
QPushButton:flat:focus {{ border-color: {t.focus}; }}
PrimaryButton, QDialogButtonBox QPushButton:default {{
    background: {t.accent}; color: {t.accent_text}; border: 1px solid {t.accent}; font-weight: 600;
}}
PrimaryButton:hover, QDialogButtonBox QPushButton:default:hover {{
    background: {t.accent_hover}; border-color: {t.accent_hover};
}}
PrimaryButton:pressed, QDialogButtonBox QPushButton:default:pressed {{
    background: {t.accent_pressed}; border-color: {t.accent_pressed};
}}
PrimaryButton:focus {{ border: 1px solid {t.accent}; padding: {down}px {across}px; }}
QDialogButtonBox QPushButton:default:focus {{ border: 2px solid {t.text}; }}
PrimaryButton:disabled {{ background: {t.pressed}; color: {t.disabled}; border-color: {t.pressed}; }}
QuietButton {{ background: {t.surface}; border: 1px solid {t.line}; }}
QuietButton:hover {{ background: {t.hover}; border-color: {t.edge}; }}
QuietButton:pressed {{ background: {t.pressed}; }}
QuietButton:disabled {{ background: transparent; border-color: {t.line}; }}
QuietButton[danger="true"] {{ color: {t.bad}; }}
QuietButton[danger="true"]:hover {{ background: {t.bad_soft}; border-color: {t.bad}; }}
QuietButton:focus {{ border: 2px solid {t.focus}; padding: {down - 1}px {across - 1}px; }}
QToolButton {{
    background: transparent; border: 2px solid transparent; border-radius: {t.radius.m}px; padding: {t.px(3)}px;
}}
QToolButton:hover {{ background: {t.hover}; }}
QToolButton:pressed {{ background: {t.pressed}; }}
QToolButton:checked {{ background: {t.accent_soft}; }}
QToolButton:focus {{ border-color: {t.focus}; }}
QToolButton::menu-indicator {{ image: none; width: 0; }}
NavButton {{ padding: {t.px(4)}px 0; font-size: {t.px(11)}px; color: {t.muted}; border-radius: {t.radius.l}px; }}
NavButton:checked {{ color: {t.accent}; background: {t.accent_soft}; font-weight: 600; }}
"""


def _kit(t: Theme) -> str:
    bars = "".join(
        f'QFrame[kit="notice"][kind="{kind}"] {{ background: {fill}; border: 1px solid {line}; }}\n'
        for kind, fill, line in (
            ("info", t.raised, t.line),
            ("good", t.good_soft, _veil(t.good)),
            ("warn", t.warn_soft, _veil(t.warn)),
            ("bad", t.bad_soft, _veil(t.bad)),
        )
    )
    return f"""
QFrame[kit="card"] {{ background: {t.surface}; border: 1px solid {t.line}; border-radius: {t.radius.l}px; }}
QFrame[kit="drop"] {{
    background: {t.accent_soft}; border: 2px dashed {t.accent}; border-radius: {t.radius.l}px;
}}
QLabel[kit="key"] {{
    background: {t.sunken}; border: 1px solid {t.line}; border-radius: {t.radius.s}px;
    padding: {t.px(1)}px {t.px(6)}px;
}}
QFrame[kit="notice"] {{ border-radius: {t.radius.l}px; }}
{bars}
Segmented {{ background: {t.sunken}; border: 1px solid {t.line}; border-radius: {t.radius.m}px; }}
QPushButton[kit="segment"] {{
    background: transparent; border: 2px solid transparent; border-radius: {t.radius.s}px; color: {t.muted};
    padding: {t.px(3)}px {t.px(12)}px; min-height: {t.px(18)}px;
}}
QPushButton[kit="segment"]:hover {{ color: {t.text}; background: {t.hover}; }}
QPushButton[kit="segment"]:checked {{ color: {t.text}; background: {t.surface}; font-weight: 600; }}
QPushButton[kit="segment"]:focus {{ border-color: {t.focus}; padding: {t.px(3)}px {t.px(12)}px; }}
"""


def _fields(t: Theme) -> str:
    """Fields for text, and combo boxes."""
    across, down = t.px(10), t.px(5)
    fields = ("QLineEdit", "QPlainTextEdit", "QTextEdit", "QComboBox", "QAbstractSpinBox")

    def each(state: str = "") -> str:
        return ", ".join(name + state for name in fields)

    return f"""
{each()} {{
    background: {t.surface}; border: 1px solid {t.edge}; border-radius: {t.radius.m}px;
    padding: {down}px {across}px; min-height: {t.px(20)}px;
}}
{each(":hover")} {{ border-color: {t.muted}; }}
{each(":focus")} {{ border: 2px solid {t.focus}; padding: {down - 1}px {across - 1}px; }}
{each(":disabled")} {{ background: transparent; border: 1px solid {t.line}; color: {t.disabled}; }}
QTextBrowser, QPlainTextEdit[kit="plain"], QTextEdit[kit="plain"], QLineEdit[kit="plain"] {{
    background: transparent; border: none; padding: 0; min-height: 0;
}}
QToolButton[kit="inside"] {{ padding: 0; border-radius: {t.radius.s}px; }}
QComboBox {{ padding-right: {t.px(28)}px; }}
QComboBox {{ combobox-popup: 0; }}
QComboBox:on {{ background: {t.pressed}; }}
QComboBox::drop-down {{
    subcontrol-origin: border; subcontrol-position: center right; width: {t.px(28)}px; border: none;
}}
QComboBox::down-arrow {{ image: {_mark(t, "down")}; width: {t.px(16)}px; height: {t.px(16)}px; }}
QComboBox::down-arrow:disabled {{ image: {_mark(t, "down-off")}; }}
QComboBox QLineEdit {{ border: none; padding: 0; background: transparent; }}
QComboBox QAbstractItemView {{
    background: {t.raised}; border: 1px solid {t.line}; padding: {t.px(4)}px; outline: none;
    border-radius: 0; selection-background-color: {t.accent_soft}; selection-color: {t.text};
}}
QComboBox QAbstractItemView:focus {{ border: 1px solid {t.line}; }}
QComboBox QAbstractItemView::item {{ min-height: {t.px(28)}px; padding: 0 {t.px(8)}px; border-radius: {t.radius.s}px; }}
QComboBox QAbstractItemView::item:selected {{ background: {t.accent_soft}; color: {t.text}; }}
"""


def _spins(t: Theme) -> str:
    return f"""
QAbstractSpinBox {{ padding-right: {t.px(26)}px; }}
QAbstractSpinBox::up-button, QAbstractSpinBox::down-button {{
    subcontrol-origin: border; width: {t.px(24)}px; border: none; background: transparent;
}}
QAbstractSpinBox::up-button {{
    subcontrol-position: top right; margin: 2px 2px 0 0; border-top-right-radius: {t.radius.s}px;
}}
QAbstractSpinBox::down-button {{
    subcontrol-position: bottom right; margin: 0 2px 2px 0; border-bottom-right-radius: {t.radius.s}px;
}}
QAbstractSpinBox::up-button:hover, QAbstractSpinBox::down-button:hover {{ background: {t.hover}; }}
QAbstractSpinBox::up-button:pressed, QAbstractSpinBox::down-button:pressed {{ background: {t.pressed}; }}
QAbstractSpinBox::up-arrow {{ image: {_mark(t, "up")}; width: {t.px(12)}px; height: {t.px(12)}px; }}
QAbstractSpinBox::down-arrow {{ image: {_mark(t, "down")}; width: {t.px(12)}px; height: {t.px(12)}px; }}
QAbstractSpinBox::up-arrow:disabled, QAbstractSpinBox::up-arrow:off {{ image: {_mark(t, "up-off")}; }}
QAbstractSpinBox::down-arrow:disabled, QAbstractSpinBox::down-arrow:off {{ image: {_mark(t, "down-off")}; }}
QSlider {{ min-height: {t.px(24)}px; border: 2px solid transparent; border-radius: {t.radius.m}px; }}
QSlider:focus {{ border-color: {t.focus}; }}
QSlider::groove:horizontal {{ height: {t.px(4)}px; border-radius: {t.px(4) // 2}px; background: {t.thumb}; }}
QSlider::sub-page:horizontal {{ border-radius: {t.px(4) // 2}px; background: {t.accent}; }}
QSlider::handle:horizontal {{
    width: {t.px(14)}px; height: {t.px(14)}px; margin: -{t.px(6)}px 0; border-radius: {t.px(8)}px;
    background: {t.surface}; border: 2px solid {t.accent};
}}
QSlider::handle:horizontal:hover {{ background: {t.accent_soft}; }}
QSlider::handle:horizontal:pressed {{ background: {t.accent}; }}
QSlider::groove:horizontal:disabled, QSlider::sub-page:horizontal:disabled {{ background: {t.line}; }}
QSlider::handle:horizontal:disabled {{ border-color: {t.disabled}; background: {t.window}; }}
"""


def _checks(t: Theme) -> str:
    """Check boxes and radio buttons; the ring of focus goes around the whole control."""
    box = t.px(16)
    boxes = ("QCheckBox::indicator", "QGroupBox::indicator", "QAbstractItemView::indicator")

    def each(state: str = "") -> str:
        return ", ".join(name + state for name in boxes)

    return f"""
QCheckBox, QRadioButton {{
    spacing: {t.px(8)}px; padding: {t.px(3)}px; border: 2px solid transparent; border-radius: {t.radius.s}px;
    background: transparent;
}}
QCheckBox:focus, QRadioButton:focus {{ border-color: {t.focus}; outline: none; }}
{each()} {{
    width: {box}px; height: {box}px; border: 1px solid {t.edge}; border-radius: {t.px(4)}px; background: {t.surface};
}}
{each(":hover")} {{ border-color: {t.accent}; background: {t.accent_soft}; }}
{each(":checked")} {{ border-color: {t.accent}; background: {t.accent}; image: {_mark(t, "check")}; }}
{each(":indeterminate")} {{ border-color: {t.accent}; background: {t.accent}; image: {_mark(t, "dash")}; }}
{each(":disabled")} {{ border-color: {t.line}; background: {t.sunken}; }}
{each(":checked:disabled")} {{ border-color: {t.disabled}; background: {t.disabled}; }}
QRadioButton::indicator {{
    width: {box}px; height: {box}px; border: 1px solid {t.edge}; border-radius: {box // 2 + 1}px;
    background: {t.surface};
}}
QRadioButton::indicator:hover {{ border-color: {t.accent}; background: {t.accent_soft}; }}
QRadioButton::indicator:checked {{
    border-color: {t.accent};
    background: qradialgradient(cx: 0.5, cy: 0.5, radius: 0.5, fx: 0.5, fy: 0.5,
        stop: 0 {t.accent}, stop: 0.52 {t.accent}, stop: 0.6 {t.surface}, stop: 1 {t.surface});
}}
QRadioButton::indicator:disabled {{ border-color: {t.line}; background: {t.sunken}; }}
"""


def _bars(t: Theme) -> str:
    """Scroll bars, slim and without arrows; progress bars; status bar and tool bar."""
    thick, inset = t.px(12), t.px(3)
    round_ = max((thick - 2 * inset) // 2, 1)
    return f"""
QScrollBar {{ background: transparent; border: none; margin: 0; }}
QScrollBar:vertical {{ width: {thick}px; }}
QScrollBar:horizontal {{ height: {thick}px; }}
QScrollBar::handle {{ background: {t.thumb}; border-radius: {round_}px; margin: {inset}px; }}
QScrollBar::handle:vertical {{ min-height: {t.px(36)}px; }}
QScrollBar::handle:horizontal {{ min-width: {t.px(36)}px; }}
QScrollBar::handle:hover, QScrollBar::handle:pressed {{ background: {t.edge}; }}
QScrollBar::add-line, QScrollBar::sub-line {{ width: 0; height: 0; border: none; background: none; }}
QScrollBar::add-page, QScrollBar::sub-page {{ background: transparent; }}
QProgressBar {{
    background: {t.pressed}; border: none; border-radius: {t.px(3)}px; min-height: {t.px(6)}px; max-height: {t.px(6)}px;
}}
QProgressBar::chunk {{ background: {t.accent}; border-radius: {t.px(3)}px; }}
QStatusBar, QToolBar {{ background: {t.window}; border: none; }}
"""


def _views(t: Theme) -> str:
    """Lists, trees and tables, and their headers; tabs; groups."""
    return f"""
QAbstractItemView {{
    background: {t.surface}; alternate-background-color: {t.sunken}; border: 1px solid {t.line};
    border-radius: {t.radius.m}px; outline: none; gridline-color: {t.line};
    selection-background-color: {t.accent_soft}; selection-color: {t.text};
}}
QAbstractItemView:focus {{ border: 2px solid {t.focus}; }}
QAbstractItemView[kit="plain"] {{ background: transparent; border: none; }}
QListView::item, QTreeView::item {{ padding: {t.px(4)}px {t.px(8)}px; border-radius: {t.radius.s}px; }}
QListView::item:hover, QTreeView::item:hover {{ background: {t.hover}; }}
QListView::item:selected, QTreeView::item:selected, QTableView::item:selected {{
    background: {t.accent_soft}; color: {t.text};
}}
QTableView::item {{ padding: 0 {t.px(8)}px; }}
QTreeView::branch {{ background: transparent; }}
QHeaderView {{ background: transparent; border: none; }}
QHeaderView::section {{
    background: transparent; color: {t.muted}; border: none; border-bottom: 1px solid {t.line};
    padding: {t.px(6)}px {t.px(8)}px;
}}
QTableCornerButton::section {{ background: {t.surface}; border: none; }}
QTabWidget::pane {{ border: 1px solid {t.line}; border-radius: {t.radius.m}px; }}
QTabBar::tab {{
    color: {t.muted}; padding: {t.px(6)}px {t.px(12)}px; border: none; border-bottom: 2px solid transparent;
    background: transparent;
}}
QTabBar::tab:selected {{ color: {t.text}; border-bottom-color: {t.accent}; }}
QTabBar::tab:hover {{ color: {t.text}; }}
QGroupBox {{
    border: 1px solid {t.line}; border-radius: {t.radius.l}px; margin-top: {t.px(12)}px; padding: {t.px(12)}px;
}}
QGroupBox::title {{ subcontrol-origin: margin; left: {t.px(12)}px; padding: 0 {t.px(4)}px; color: {t.muted}; }}
"""


def _popups(t: Theme) -> str:
    return f"""
QMenu {{
    background: {t.raised}; border: 1px solid {t.line}; padding: {t.px(5)}px; icon-size: {t.px(16)}px;
}}
QMenu::item {{
    padding: {t.px(6)}px {t.px(28)}px {t.px(6)}px {t.px(10)}px; border-radius: {t.radius.s}px; background: transparent;
    min-width: {t.px(120)}px;
}}
QMenu::item:selected {{ background: {t.accent_soft}; color: {t.text}; }}
QMenu::item:disabled {{ color: {t.disabled}; background: transparent; }}
QMenu::icon {{ padding-left: {t.px(8)}px; }}
QMenu::separator {{ height: 1px; background: {t.line}; margin: {t.px(5)}px {t.px(8)}px; }}
QMenu::indicator {{ width: {t.px(16)}px; height: {t.px(16)}px; left: {t.px(6)}px; }}
QMenu::indicator:checked {{ image: {_mark(t, "tick")}; }}
QMenu::right-arrow {{ image: {_mark(t, "right")}; width: {t.px(14)}px; height: {t.px(14)}px; }}
QMenuBar {{ background: {t.window}; border: none; }}
QMenuBar::item {{ padding: {t.px(4)}px {t.px(10)}px; border-radius: {t.radius.s}px; background: transparent; }}
QMenuBar::item:selected {{ background: {t.hover}; }}
QToolTip {{
    background: {t.raised}; color: {t.text}; border: 1px solid {t.edge}; padding: {t.px(4)}px {t.px(8)}px;
    font-size: {t.type.small}px;
}}
"""


def _dialogs(t: Theme) -> str:
    return f"""
QMessageBox QLabel#qt_msgbox_label {{ font-size: {t.type.body}px; min-width: {t.px(280)}px; }}
QMessageBox QLabel#qt_msgbox_informativelabel {{ color: {t.muted}; }}
QDialogButtonBox {{ dialogbuttonbox-buttons-have-icons: 0; }}
QDialogButtonBox QPushButton {{ min-width: {t.px(64)}px; }}
"""


def _mono(families: Sequence[str]) -> str:
    names = ", ".join(f'"{family}"' for family in families)
    return f'\nQLabel[type="mono"] {{ font-family: {names}; }}\n'
