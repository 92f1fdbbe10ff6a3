"""Every keyboard shortcut of the window, in one table, and the dialog that lists them.

The window makes its actions from this table, tooltips take their keys from it, and the dialog shows it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from PySide6.QtCore import QCoreApplication, QEvent, QSize, Qt
from PySide6.QtGui import QKeySequence, QResizeEvent
from PySide6.QtWidgets import (
    QApplication,
    QDialog,
    QFrame,
    QHBoxLayout,
    QLabel,
    QScrollArea,
    QSizePolicy,
    QVBoxLayout,
    QWidget,
)

from tandem.ui.kit import QuietButton, label, spaced
from tandem.ui.page import Tiles

if TYPE_CHECKING:
    from tandem.ui.theme import ThemeManager

# Under a name of its own: after `QCoreApplication.translate(…)` lupdate puts the next `self.tr` into a false context.
translate = QCoreApplication.translate

_GENERAL, _SIZE, _CHATS, _ANSWER, _MESSAGE = "general", "size", "chats", "answer", "message"
_WIDTH: Final = 760  # in pixels at 100 %
_AROUND_ACROSS, _AROUND_DOWN = 32, 64
_GROUPS: Final[Mapping[str, Callable[[], str]]] = MappingProxyType(
    {
        _GENERAL: lambda: translate("Shortcuts", "General"),
        _SIZE: lambda: translate("Shortcuts", "Text size"),
        _CHATS: lambda: translate("Shortcuts", "Chats"),
        _ANSWER: lambda: translate("Shortcuts", "Answer"),
        _MESSAGE: lambda: translate("Shortcuts", "Message field"),
    }
)


@dataclass(frozen=True, slots=True)
class Shortcut:
    """One shortcut.

    Attributes:
        keys: In Qt's portable spelling; all do the same, the first one is shown.
        group: Part of the dialog in which it stands.
        text: Gives what it does, in the user's language.
        action: Whether the window makes an action of it; else a field or list handles the key itself.
    """

    keys: tuple[str, ...]
    group: str
    text: Callable[[], str]
    action: bool = True

    @property
    def sequences(self) -> list[QKeySequence]:
        """The keys as Qt takes them."""
        return [QKeySequence(key, QKeySequence.SequenceFormat.PortableText) for key in self.keys]

    @property
    def shown(self) -> str:
        """The first key as this system writes it."""
        return self.sequences[0].toString(QKeySequence.SequenceFormat.NativeText)

    @property
    def description(self) -> str:
        """What it does, in the user's language."""
        return self.text()


def _shortcut(keys: str, group: str, text: Callable[[], str], *, action: bool = True) -> Shortcut:
    return Shortcut(tuple(keys.split(" | ")), group, text, action)


# fmt: off
SHORTCUTS: Final[Mapping[str, Shortcut]] = MappingProxyType({
    "page-chat": _shortcut("Ctrl+1", _GENERAL, lambda: translate("Shortcuts", "Chat page")),
    "page-models": _shortcut("Ctrl+2", _GENERAL, lambda: translate("Shortcuts", "Models page")),
    "page-compare": _shortcut("Ctrl+3", _GENERAL, lambda: translate("Shortcuts", "Compare page")),
    "page-settings": _shortcut("Ctrl+4 | Ctrl+,", _GENERAL, lambda: translate("Shortcuts", "Settings page")),
    "text-larger": _shortcut("Ctrl++ | Ctrl+=", _SIZE, lambda: translate("Shortcuts", "Larger text")),
    "text-smaller": _shortcut("Ctrl+-", _SIZE, lambda: translate("Shortcuts", "Smaller text")),
    "text-normal": _shortcut("Ctrl+0", _SIZE, lambda: translate("Shortcuts", "Normal text size")),
    "full-screen": _shortcut("F11", _GENERAL, lambda: translate("Shortcuts", "Full screen")),
    "shortcuts": _shortcut("F1 | Ctrl+/", _GENERAL, lambda: translate("Shortcuts", "Keyboard shortcuts")),
    "quit": _shortcut("Ctrl+Q", _GENERAL, lambda: translate("Shortcuts", "Quit")),
    "new-chat": _shortcut("Ctrl+N", _CHATS, lambda: translate("Shortcuts", "New chat")),
    "search": _shortcut("Ctrl+K | Ctrl+F", _CHATS, lambda: translate("Shortcuts", "Search chats")),
    "sidebar": _shortcut("Ctrl+B", _CHATS, lambda: translate("Shortcuts", "Show or hide the list of chats")),
    "rename": _shortcut("F2", _CHATS, lambda: translate("Shortcuts", "Rename the selected chat"), action=False),
    "delete": _shortcut("Del", _CHATS, lambda: translate("Shortcuts", "Delete the selected chat"), action=False),
    "undo-delete": _shortcut("Ctrl+Z", _CHATS, lambda: translate("Shortcuts", "Undo the last delete"), action=False),
    "send": _shortcut("Enter", _MESSAGE, lambda: translate("Shortcuts", "Send"), action=False),
    "new-line": _shortcut("Shift+Enter", _MESSAGE, lambda: translate("Shortcuts", "New line"), action=False),
    "edit-last-empty": _shortcut(
        "Up", _MESSAGE, lambda: translate("Shortcuts", "Edit the last message, when the field is empty"), action=False
    ),
    "composer": _shortcut("Ctrl+L", _MESSAGE, lambda: translate("Shortcuts", "Go to the message field")),
    "drafter": _shortcut("Ctrl+D", _MESSAGE, lambda: translate("Shortcuts", "Drafter on or off")),
    "thinking": _shortcut("Ctrl+T", _MESSAGE, lambda: translate("Shortcuts", "Thinking on or off")),
    "stop": _shortcut("Esc", _ANSWER, lambda: translate("Shortcuts", "Stop the answer")),
    "regenerate": _shortcut("Ctrl+R", _ANSWER, lambda: translate("Shortcuts", "Answer again")),
    "edit-last": _shortcut("Ctrl+E", _ANSWER, lambda: translate("Shortcuts", "Edit the last message")),
    "copy-last": _shortcut("Ctrl+Shift+C", _ANSWER, lambda: translate("Shortcuts", "Copy the last answer")),
    "show-drafted": _shortcut("Ctrl+Shift+D", _ANSWER, lambda: translate("Shortcuts", "Show drafted tokens")),
})
# fmt: on
"""Every shortcut by its id. No key stands for two of them."""


class ShortcutsDialog(QDialog):
    """Lists every shortcut, by group; closes with Esc.

    Args:
        manager: The theme.
        parent: The window it belongs to.
    """

    def __init__(self, manager: ThemeManager, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._manager = manager
        self._headings: list[tuple[QLabel, str]] = []
        self._rows: list[tuple[QLabel, list[QLabel], Shortcut]] = []
        self._column_of_all = column = QVBoxLayout(self)
        spaced(column, manager, "l", "xl")
        self._title = label(size="title", bold=True)
        column.addWidget(self._title)
        self._lists = lists = Tiles(manager, 300, 2, gap="xl")
        groups: dict[str, list[Shortcut]] = {}
        for shortcut in SHORTCUTS.values():
            groups.setdefault(shortcut.group, []).append(shortcut)
        halves = ((_GENERAL, _MESSAGE), (_CHATS, _ANSWER, _SIZE))
        self._lists.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Preferred)
        for half in halves:
            lists.add(self._column({group: groups[group] for group in half}))
        self._scroll = QScrollArea()
        self._scroll.setWidget(lists)
        self._scroll.setWidgetResizable(True)
        self._scroll.setFrameShape(QFrame.Shape.NoFrame)
        self._scroll.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self._scroll.setFocusPolicy(Qt.FocusPolicy.StrongFocus)  # so that the arrow keys scroll it
        column.addWidget(self._scroll, 1)
        self._close = QuietButton(manager, "")
        self._close.clicked.connect(self.accept)
        self._close.setDefault(True)
        foot = QHBoxLayout()
        foot.addStretch(1)
        foot.addWidget(self._close)
        column.addLayout(foot)
        self._retranslate()
        self._fit()
        self._grown = False
        self._scroll.verticalScrollBar().rangeChanged.connect(self._grow)

    def _grow(self, _least: int, most: int) -> None:
        """Grows once by what is still out of sight: labels that break know their least height only when shown."""
        if most > 0 and not self._grown:
            self._grown = True
            self.resize(self.width(), max(self.height(), min(self.height() + most, self._room().height())))

    def _room(self) -> QSize:
        """What the app's screen has for it; the window's own frame takes some."""
        parent = self.parentWidget()
        screen = (parent.window() if parent is not None else self).screen().availableSize()
        return screen - QSize(_AROUND_ACROSS, _AROUND_DOWN)

    def _fit(self) -> None:
        """Is as high as what it lists, where the screen has room for it."""
        for part in self.findChildren(QWidget):
            part.ensurePolished()  # a label is higher with the sheet's font and padding than without
            if (layout := part.layout()) is not None:
                layout.invalidate()
        theme, room = self._manager.theme, self._room()
        width = min(theme.px(_WIDTH), room.width())
        inner = width - 2 * theme.space.xl
        self._lists.resize(inner, self._lists.height())
        QApplication.sendEvent(self._lists, QResizeEvent(self._lists.size(), QSize()))  # none comes while it is hidden
        # A scroll area never asks for all that it holds.
        needed = max(self._lists.heightForWidth(inner), self._lists.minimumSizeHint().height())
        rest = self._column_of_all.sizeHint().height() - self._scroll.sizeHint().height()
        self.resize(width, min(rest + needed, room.height()))

    def changeEvent(self, event: QEvent) -> None:  # noqa: N802 - Qt's name
        """Speaks the other language."""
        if event.type() == QEvent.Type.LanguageChange:
            self._retranslate()
        super().changeEvent(event)

    def _column(self, groups: Mapping[str, list[Shortcut]]) -> QWidget:
        made = QWidget()
        column = QVBoxLayout(made)
        spaced(column, self._manager, "s")
        for group, shortcuts in groups.items():
            heading = label(bold=True, role="muted", size="small")
            self._headings.append((heading, group))
            column.addWidget(heading)
            for shortcut in shortcuts:
                text = label(wrap=True)
                row = QHBoxLayout()
                spaced(row, self._manager, "s")
                row.addWidget(text, 1)
                keys = [label(size="small", role="muted") for _key in shortcut.keys]
                for key in keys:
                    key.setProperty("kit", "key")
                    row.addWidget(key, 0, Qt.AlignmentFlag.AlignVCenter)
                self._rows.append((text, keys, shortcut))
                column.addLayout(row)
            column.addSpacing(self._manager.theme.space.s)
        column.addStretch(1)
        return made

    def _retranslate(self) -> None:
        self.setWindowTitle(self.tr("Keyboard shortcuts"))
        self._title.setText(self.tr("Keyboard shortcuts"))
        self._scroll.setAccessibleName(self.tr("Keyboard shortcuts"))
        self._close.setText(self.tr("Close"))
        for heading, group in self._headings:
            heading.setText(_GROUPS[group]())
        for text, keys, shortcut in self._rows:
            text.setText(shortcut.description)
            for key, sequence in zip(keys, shortcut.sequences, strict=True):
                key.setText(sequence.toString(QKeySequence.SequenceFormat.NativeText))
