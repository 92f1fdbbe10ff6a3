"""The table of shortcuts, and the dialog that lists it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import pytest
from PySide6.QtCore import QEvent, Qt
from PySide6.QtWidgets import QApplication, QLabel, QScrollArea
from pytestqt.qtbot import QtBot

from tandem.ui import i18n
from tandem.ui.shortcuts import SHORTCUTS, ShortcutsDialog
from tandem.ui.theme import ThemeManager


@pytest.fixture
def dialog(qapp: QApplication, qtbot: QtBot) -> Iterator[ShortcutsDialog]:
    manager = ThemeManager(qapp)
    manager.apply(qapp, "light")
    made = ShortcutsDialog(manager)
    qtbot.addWidget(made)
    made.show()
    yield made
    manager.deleteLater()


@pytest.mark.usefixtures("qapp")
def test_every_key_is_one_and_stands_for_one_thing() -> None:
    keys = [sequence for shortcut in SHORTCUTS.values() for sequence in shortcut.sequences]
    assert all(sequence.count() == 1 and sequence.toString() for sequence in keys)
    assert [key for key, count in Counter(sequence.toString() for sequence in keys).items() if count > 1] == []


@pytest.mark.usefixtures("qapp")
def test_what_was_promised_is_there() -> None:
    first = {name: shortcut.keys[0] for name, shortcut in SHORTCUTS.items()}
    assert first["new-chat"] == "Ctrl+N"
    assert first["stop"] == "Esc"
    assert first["drafter"] == "Ctrl+D"
    assert [first[f"page-{name}"] for name in ("chat", "models", "compare", "settings")] == [
        "Ctrl+1",
        "Ctrl+2",
        "Ctrl+3",
        "Ctrl+4",
    ]
    assert len({shortcut.description for shortcut in SHORTCUTS.values()}) == len(SHORTCUTS)


def test_the_dialog_lists_every_shortcut_with_its_keys(dialog: ShortcutsDialog) -> None:
    texts = Counter(label.text() for label in dialog.findChildren(QLabel))
    for shortcut in SHORTCUTS.values():
        assert texts[shortcut.description] >= 1
        for sequence in shortcut.sequences:
            assert texts[sequence.toString(sequence.SequenceFormat.NativeText)] == 1


def test_the_dialog_speaks_the_other_language_and_closes_with_escape(
    dialog: ShortcutsDialog, qapp: QApplication, qtbot: QtBot
) -> None:
    i18n.install(qapp, "pseudo")
    QApplication.sendEvent(dialog, QEvent(QEvent.Type.LanguageChange))
    texts = [label.text() for label in dialog.findChildren(QLabel)]
    assert dialog.windowTitle() == i18n.pseudo("Keyboard shortcuts")
    assert i18n.pseudo("Quit") in texts
    assert i18n.pseudo("Message field") in texts
    qtbot.keyClick(dialog, Qt.Key.Key_Escape)
    assert not dialog.isVisible()


def test_the_dialog_shows_all_of_it_and_stays_on_the_screen(dialog: ShortcutsDialog, qtbot: QtBot) -> None:
    qtbot.waitExposed(dialog)
    room = dialog.screen().availableSize()
    assert dialog.width() <= room.width()
    assert dialog.height() <= room.height()
    scroll = dialog.findChildren(QScrollArea)[0]
    qtbot.waitUntil(lambda: scroll.verticalScrollBar().maximum() == 0)
