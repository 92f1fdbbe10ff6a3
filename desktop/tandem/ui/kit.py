"""The widgets that every page is made of. Each takes the app's `ThemeManager` and re-dresses itself when it changes.

Texts come in translated from whoever owns the widget, and are set again there when the language changes. What can be
used shows its focus, has an accessible name, and does not tell its state by colour alone.
"""

from __future__ import annotations

from tandem.ui.kit_base import TextRole, announce, divider, draw_focus, label, plain_tip, set_label, spaced
from tandem.ui.kit_buttons import IconButton, NavButton, PrimaryButton, QuietButton
from tandem.ui.kit_fields import ComboBox, DoubleSpinBox, SearchField, Segmented, SpinBox
from tandem.ui.kit_layout import Card, EmptyState, FormRow, SectionTitle
from tandem.ui.kit_menu import Menu, message_box
from tandem.ui.kit_notices import Notice, Notices
from tandem.ui.kit_status import Meter, StateChip
from tandem.ui.kit_toggles import Switch, ToggleChip

__all__ = [
    "Card",
    "ComboBox",
    "DoubleSpinBox",
    "EmptyState",
    "FormRow",
    "IconButton",
    "Menu",
    "Meter",
    "NavButton",
    "Notice",
    "Notices",
    "PrimaryButton",
    "QuietButton",
    "SearchField",
    "SectionTitle",
    "Segmented",
    "SpinBox",
    "StateChip",
    "Switch",
    "TextRole",
    "ToggleChip",
    "announce",
    "divider",
    "draw_focus",
    "label",
    "message_box",
    "plain_tip",
    "set_label",
    "spaced",
]
