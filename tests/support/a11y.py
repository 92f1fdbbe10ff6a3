"""What somebody meets who cannot see the window, or has no mouse, or reads another language: found by walking it.

    window.show()
    assert walk(window) == []
    assert cut(window) == []

`walk` finds controls that have no name for a screen reader and controls that the Tab key does not reach; `cut` finds
texts that do not fit where they stand. Both look at what is visible; go from page to page and call them on each.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from PySide6.QtCore import QCoreApplication, QEvent, QObject, QPoint, QRect, QSize, Qt
from PySide6.QtGui import QAccessible, QFontMetrics
from PySide6.QtTest import QTest
from PySide6.QtWidgets import (
    QAbstractButton,
    QAbstractItemView,
    QAbstractScrollArea,
    QAbstractSpinBox,
    QApplication,
    QCheckBox,
    QComboBox,
    QGroupBox,
    QLabel,
    QLineEdit,
    QPlainTextEdit,
    QProgressBar,
    QPushButton,
    QRadioButton,
    QScrollBar,
    QSlider,
    QStyle,
    QStyleOptionButton,
    QStyleOptionComboBox,
    QTabBar,
    QTextEdit,
    QToolButton,
    QWidget,
)

MAY_ELIDE: Final = "mayElide"
"""Dynamic property of a widget that shortens its own text on purpose and has the whole of it in its tooltip."""

ROWS: Final = 50
"""Rows of a list that are looked at."""

_CONTROLS: Final = (
    QAbstractButton,
    QAbstractItemView,
    QAbstractSpinBox,
    QComboBox,
    QLineEdit,
    QPlainTextEdit,
    QProgressBar,
    QSlider,
    QTabBar,
    QTextEdit,
)
_WHOLE: Final = (QComboBox, QAbstractSpinBox, QLineEdit, QTabBar, QAbstractItemView)  # their parts are Qt's affair
_MOST_TABS: Final = 2_000
_MOST_AT_ONE_PLACE: Final = 200  # a text may have many links, which Tab visits one after the other
_SLACK: Final = 1  # pixels, for rounding


def walk(window: QWidget) -> list[str]:
    """Every fault for somebody without eyes or mouse: `nameless` and `unreachable` together."""
    return nameless(window) + unreachable(window)


def controls(window: QWidget) -> list[QWidget]:
    """Every visible thing in the window that can be used or focused, in the order in which they were made."""
    return [widget for widget in _visible(window) if _is_control(widget) and not _is_part(widget, window)]


def nameless(window: QWidget) -> list[str]:
    """Controls, and rows of lists, that a screen reader has no word for."""
    _settle()
    faults = []
    for widget in controls(window):
        if not _name(widget):
            faults.append(f"no accessible name: {describe(widget)}")
        if isinstance(widget, QAbstractItemView):
            faults += [f"no text for row {row}: {describe(widget)}" for row in _silent_rows(widget)]
    return faults


def unreachable(window: QWidget) -> list[str]:
    """Enabled controls that pressing Tab does not come to, and those that it does not leave again.

    Of buttons that exclude each other one is enough: the arrow keys go to the others.
    """
    _settle()
    visited, traps = _tab_through(window)
    faults = [f"Tab does not leave it: {describe(widget)}" for widget in traps]
    for widget in controls(window):
        group = _group(widget)
        if widget.isEnabled() and not any(member in visited for member in group) and not _only_shows(widget):
            faults.append(f"Tab does not reach it: {describe(widget)}")
    return faults


def tab_order(window: QWidget) -> list[QWidget]:
    """What Tab comes to, one after the other, each once."""
    _settle()
    return _tab_through(window)[0]


def cut(window: QWidget) -> list[str]:
    """Texts of labels, buttons, boxes, tabs and place holders that do not fit, or that a parent cuts off."""
    _settle()
    faults = []
    for widget in _visible(window):
        if widget.property(MAY_ELIDE):
            if not widget.toolTip():
                faults.append(f"it may shorten its text, but has no tooltip with the whole: {describe(widget)}")
            continue
        if _inside_whole(widget, window):
            continue
        faults += [f"{text!r} is cut ({why}): {describe(widget)}" for text, why in _cut_texts(widget)]
        text = _shown_text(widget)
        if text and (why := _cut_by_parents(widget, window)):
            faults.append(f"{text!r} is cut ({why}): {describe(widget)}")
    return faults


def describe(widget: QWidget) -> str:
    """Where a widget stands: the classes from the window down, with names and texts where they have some."""
    steps: list[str] = []
    at: QWidget | None = widget
    while at is not None:
        words = at.objectName() or at.accessibleName() or _shown_text(at)
        steps.append(f"{type(at).__name__}({words!r})" if words else type(at).__name__)
        at = None if at.isWindow() else at.parentWidget()
    return " > ".join(reversed(steps))


def _visible(window: QWidget) -> list[QWidget]:
    found = [widget for widget in window.findChildren(QWidget) if widget.window() is window]
    return [widget for widget in found if widget.isVisibleTo(window)]


def _is_control(widget: QWidget) -> bool:
    return isinstance(widget, _CONTROLS) or widget.focusPolicy() != Qt.FocusPolicy.NoFocus


def _is_part(widget: QWidget, window: QWidget) -> bool:
    """Whether it belongs to a control that is looked at as a whole, or only passes the focus on."""
    if isinstance(widget, QScrollBar) or widget.focusProxy() is not None or widget.objectName().startswith("qt_"):
        return True
    parent = widget.parentWidget()
    if isinstance(parent, QAbstractScrollArea) and parent.viewport() is widget:
        return True
    return _inside_whole(widget, window)


def _inside_whole(widget: QWidget, window: QWidget) -> bool:
    at = widget.parentWidget()
    while at is not None and at is not window:
        if isinstance(at, _WHOLE):
            return True
        at = at.parentWidget()
    return False


def _only_shows(widget: QWidget) -> bool:
    """Whether it is there to be looked at; it needs a name, but no focus."""
    return isinstance(widget, QProgressBar)


def _name(widget: QWidget) -> str:
    interface = QAccessible.queryAccessibleInterface(widget)
    if interface is None:
        return ""
    name = interface.text(QAccessible.Text.Name).strip()
    if not name and isinstance(widget, QTabBar):  # each tab has its own
        name = " ".join(widget.tabText(index) for index in range(widget.count())).strip()
    return name if any(character.isalnum() for character in name) else ""


def _silent_rows(view: QAbstractItemView) -> Iterator[int]:
    model = view.model()
    if model is None:
        return
    for row in range(min(model.rowCount(view.rootIndex()), ROWS)):
        index = model.index(row, 0, view.rootIndex())
        if not index.flags() & Qt.ItemFlag.ItemIsSelectable:
            continue
        texts = (index.data(Qt.ItemDataRole.AccessibleTextRole), index.data(Qt.ItemDataRole.DisplayRole))
        if not any(isinstance(text, str) and text.strip() for text in texts):
            yield row


def _group(widget: QWidget) -> list[QWidget]:
    """The buttons that exclude each other, of which it is one; else it alone."""
    if isinstance(widget, QAbstractButton):
        group = widget.group()
        if group is not None and group.exclusive():
            return list(group.buttons())
        parent = widget.parentWidget()
        if widget.autoExclusive() and parent is not None:
            return [button for button in parent.findChildren(QAbstractButton) if button.autoExclusive()]
    return [widget]


def _tab_through(window: QWidget) -> tuple[list[QWidget], list[QWidget]]:
    """Presses Tab until it comes round; what it came to, and what did not let it go."""
    window.activateWindow()
    QTest.qWaitForWindowActive(window)
    visited: list[QWidget] = []
    traps: list[QWidget] = []
    here, presses = QApplication.focusWidget(), 0
    if here is not None and here.window() is window:
        visited.append(here)
    for _ in range(_MOST_TABS):
        eats = isinstance(here, QPlainTextEdit | QTextEdit) and not here.isReadOnly() and not here.tabChangesFocus()
        if here is not None and (eats or presses >= _MOST_AT_ONE_PLACE):
            traps.append(here)
            following = _next_in_chain(here)  # get out of it, to see the rest
            if following is None:
                break
            following.setFocus(Qt.FocusReason.TabFocusReason)
        else:
            QTest.keyClick(here or window, Qt.Key.Key_Tab)
        before, here = here, QApplication.focusWidget()
        presses = presses + 1 if here is before else 0
        if here is None or here.window() is not window:
            break
        if here is before:
            continue
        if here in visited:
            if here is visited[0] or here in traps:
                break
            continue
        visited.append(here)
    return visited, traps


def _next_in_chain(widget: QWidget) -> QWidget | None:
    at = widget.nextInFocusChain()
    while at is not widget:
        if at.focusPolicy() & Qt.FocusPolicy.TabFocus and at.isVisibleTo(widget.window()) and at.isEnabled():
            return at
        at = at.nextInFocusChain()
    return None


def _shown_text(widget: QObject) -> str:
    if isinstance(widget, QLabel | QAbstractButton):
        return widget.text()
    if isinstance(widget, QGroupBox):
        return widget.title()
    if isinstance(widget, QComboBox):
        return widget.currentText()
    return ""


def _cut_texts(widget: QWidget) -> Iterator[tuple[str, str]]:
    """Texts of one widget that do not fit into it, with the sizes."""
    if isinstance(widget, QLabel):
        yield from _cut_label(widget)
    elif isinstance(widget, QToolButton):
        if widget.text() and widget.toolButtonStyle() != Qt.ToolButtonStyle.ToolButtonIconOnly:
            yield from _too_small(widget.text(), _tool_button_needs(widget), widget.size())
    elif isinstance(widget, QPushButton | QCheckBox | QRadioButton) and type(widget).sizeHint in _PLAIN_HINTS:
        if widget.text():
            yield from _too_small(widget.text(), _text_size(widget, widget.text()), _button_room(widget))
    elif isinstance(widget, QAbstractButton | QGroupBox):
        text = _shown_text(widget)
        if text:  # it draws itself, and its hint is what it needs
            yield from _too_small(text, widget.minimumSizeHint(), widget.size())
    elif isinstance(widget, QComboBox):
        room = _combo_room(widget)
        for index in range(min(widget.count(), ROWS)):
            icon = widget.iconSize().width() + 4 if not widget.itemIcon(index).isNull() else 0
            wanted = _text_size(widget, widget.itemText(index)) + QSize(icon, 0)
            yield from _too_small(widget.itemText(index), wanted, room)
    elif isinstance(widget, QLineEdit):
        if widget.placeholderText() and not widget.text():
            margins = widget.textMargins()
            room = widget.contentsRect().width() - margins.left() - margins.right() - 4  # a cursor stands before it
            wanted = widget.fontMetrics().horizontalAdvance(widget.placeholderText())
            yield from _too_small(widget.placeholderText(), QSize(wanted, 0), QSize(room, 0))
    elif isinstance(widget, QTabBar):
        for index in range(widget.count()):
            wanted = _text_size(widget, widget.tabText(index))
            yield from _too_small(widget.tabText(index), wanted, widget.tabRect(index).size())


_PLAIN_HINTS: Final = (QPushButton.sizeHint, QCheckBox.sizeHint, QRadioButton.sizeHint)


def _cut_label(label: QLabel) -> Iterator[tuple[str, str]]:
    if not label.text():
        return
    if label.wordWrap():
        yield from _too_small(label.text(), QSize(0, label.heightForWidth(label.width())), label.size())
        words = label.text().replace("\u200b", " ").split()  # a space without width: a line may end there
        longest = max(words, key=len, default="")
        if label.textFormat() == Qt.TextFormat.PlainText:  # a word that is wider than the label cannot be broken
            yield from _too_small(
                longest, _text_size(label, longest), QSize(label.contentsRect().width(), label.height())
            )
    else:
        yield from _too_small(label.text(), label.sizeHint(), label.size())


def _too_small(text: str, wanted: QSize, room: QSize) -> Iterator[tuple[str, str]]:
    if wanted.width() > room.width() + _SLACK or wanted.height() > room.height() + _SLACK:
        yield text, f"needs {wanted.width()}×{wanted.height()}, has {room.width()}×{room.height()}"


def _text_size(widget: QWidget, text: str) -> QSize:
    return QFontMetrics(widget.font()).size(Qt.TextFlag.TextShowMnemonic, text)


def _button_room(button: QAbstractButton) -> QSize:
    """Room for the text of a button that Qt's style draws, beside its icon."""
    option = QStyleOptionButton()
    button.initStyleOption(option)  # type: ignore[attr-defined]
    element = QStyle.SubElement.SE_PushButtonContents
    if isinstance(button, QCheckBox):
        element = QStyle.SubElement.SE_CheckBoxContents
    elif isinstance(button, QRadioButton):
        element = QStyle.SubElement.SE_RadioButtonContents
    room = button.style().subElementRect(element, option, button).size()
    icon = 0 if button.icon().isNull() else button.iconSize().width() + 4
    return QSize(room.width() - icon, button.height())


def _tool_button_needs(button: QToolButton) -> QSize:
    text = _text_size(button, button.text())
    icon = QSize(0, 0) if button.icon().isNull() else button.iconSize()
    style = button.toolButtonStyle()
    if style == Qt.ToolButtonStyle.ToolButtonTextUnderIcon:
        return QSize(max(text.width(), icon.width()), text.height() + icon.height())
    if style == Qt.ToolButtonStyle.ToolButtonTextBesideIcon:
        return QSize(text.width() + icon.width() + 4, max(text.height(), icon.height()))
    return text


def _combo_room(box: QComboBox) -> QSize:
    option = QStyleOptionComboBox()
    box.initStyleOption(option)
    part = QStyle.SubControl.SC_ComboBoxEditField
    room = box.style().subControlRect(QStyle.ComplexControl.CC_ComboBox, option, part, box).size()
    return QSize(room.width(), box.height())


def _cut_by_parents(widget: QWidget, window: QWidget) -> str:
    """How a parent cuts it off, "" when none does. A scroll area cuts only where it does not scroll."""
    rect = QRect(QPoint(0, 0), widget.size())
    at: QWidget = widget
    while at is not window:
        parent = at.parentWidget()
        if parent is None:
            break
        rect = rect.translated(at.pos())
        at = parent
        area = at.parentWidget()
        if isinstance(area, QAbstractScrollArea) and area.viewport() is at:
            never = Qt.ScrollBarPolicy.ScrollBarAlwaysOff
            sideways = area.horizontalScrollBarPolicy() == never and not _within(rect.left(), rect.right(), at.width())
            upright = area.verticalScrollBarPolicy() == never and not _within(rect.top(), rect.bottom(), at.height())
            if sideways or upright:
                return f"{type(area).__name__} does not scroll that way"
            return ""  # one can scroll to it
        if not _within(rect.left(), rect.right(), at.width()) or not _within(rect.top(), rect.bottom(), at.height()):
            return f"outside of its {type(at).__name__}"
    return ""


def _within(start: int, end: int, size: int) -> bool:
    return start >= -_SLACK and end < size + _SLACK


def _settle() -> None:
    """Lets layouts that are due be done."""
    for _ in range(3):
        QCoreApplication.sendPostedEvents(None, QEvent.Type.LayoutRequest)
        QCoreApplication.processEvents()
