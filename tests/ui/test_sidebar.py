from __future__ import annotations

import datetime
import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from PySide6.QtCore import QLocale, QPoint, Qt
from PySide6.QtGui import QAction, QContextMenuEvent, QInputMethodEvent
from PySide6.QtWidgets import QApplication, QLineEdit, QWidget
from pytestqt.qtbot import QtBot

from tandem.chat.conversation import Hit, Summary
from tandem.ui import i18n
from tandem.ui.sidebar import Sidebar
from tandem.ui.sidebar_model import LONGEST_TITLE
from tandem.ui.sidebar_rows import Days, excerpt, utf16
from tandem.ui.theme import ThemeManager

NOW = datetime.datetime(2026, 3, 11, 15, 0)
ENTER = Qt.Key.Key_Return
LEFT = Qt.MouseButton.LeftButton

# Menus grab and raise, which the platform without a screen cannot do.
menus = pytest.mark.qt_log_ignore(r"This plugin does not support (raise\(\)|grabbing the keyboard)")


class Heard:
    """Everything that a sidebar emitted, in order."""

    NAMES = (
        "new_requested",
        "opened",
        "rename_requested",
        "delete_requested",
        "export_requested",
        "import_requested",
        "export_all_requested",
        "searched",
        "hit_opened",
    )

    def __init__(self, sidebar: Sidebar) -> None:
        self.all: list[tuple[Any, ...]] = []
        for name in self.NAMES:
            getattr(sidebar, name).connect(lambda *values, name=name: self.all.append((name, *values)))

    def of(self, name: str) -> list[tuple[Any, ...]]:
        return [entry[1:] for entry in self.all if entry[0] == name]


def ago(**parts: float) -> float:
    return (NOW - datetime.timedelta(**parts)).timestamp()


def chats() -> list[Summary]:
    return [
        Summary(1, "Sky", ago(minutes=1), "Because of **scattering**"),
        Summary(2, "파이썬 목록 정렬", ago(hours=3), "sorted() 함수"),
        Summary(3, "", ago(days=1), ""),
        Summary(4, "مرحبا كيف حالك", ago(days=3), "الجواب"),
        Summary(5, "Old", ago(days=400), "text"),
    ]


def hits() -> list[Hit]:
    return [
        Hit(1, 7, "Sky", "and the blue light is scattered", ((8, 12),), ago(minutes=1)),
        Hit(5, None, "Old blue", "Old blue", ((4, 8),), ago(days=400)),
    ]


@pytest.fixture
def manager(qapp: QApplication) -> ThemeManager:
    manager = ThemeManager()
    manager.apply(qapp, "light")
    return manager


@pytest.fixture
def sidebar(qtbot: QtBot, manager: ThemeManager) -> Sidebar:
    sidebar = Sidebar(manager, new_shortcut="Ctrl+N", search_shortcut="Ctrl+K")
    sidebar.model.days = Days.of(NOW)
    sidebar.set_conversations(chats())
    sidebar.resize(248, 640)
    qtbot.addWidget(sidebar)
    with qtbot.waitExposed(sidebar):
        sidebar.show()
    sidebar.activateWindow()
    sidebar.new_button.setFocus()
    qtbot.waitUntil(sidebar.new_button.hasFocus)
    return sidebar


@pytest.fixture
def heard(sidebar: Sidebar) -> Heard:
    return Heard(sidebar)


def shown(sidebar: Sidebar) -> list[str]:
    return [str(sidebar.model.index(row).data()) for row in range(sidebar.model.rowCount())]


def at(sidebar: Sidebar, conversation: int) -> QPoint:
    return sidebar.list.visualRect(sidebar.model.find(conversation)).center()


def stand_on(sidebar: Sidebar, conversation: int) -> None:
    sidebar.list.setFocus()
    sidebar.list.set_place(sidebar.model.find(conversation))


def here(sidebar: Sidebar) -> int:
    row = sidebar.model.row(sidebar.list.currentIndex())
    return row.conversation if row else 0


def actions(sidebar: Sidebar) -> dict[str, QAction]:
    assert sidebar.menu is not None
    assert sidebar.menu.isVisible()
    return {action.text(): action for action in sidebar.menu.actions() if action.text()}


def find(sidebar: Sidebar, qtbot: QtBot, text: str) -> None:
    with qtbot.waitSignal(sidebar.searched):
        qtbot.keyClicks(sidebar.search, text)


# ---- the list


def test_chats_stand_under_their_day_newest_first(sidebar: Sidebar) -> None:
    sidebar.set_conversations(chats()[::-1])
    assert shown(sidebar) == [
        "Today",
        "Sky",
        "파이썬 목록 정렬",
        "Yesterday",
        "New chat",
        "Previous 7 days",
        "مرحبا كيف حالك",
        "Older",
        "Old",
    ]


@pytest.mark.parametrize(
    ("moment", "group"),
    [
        (datetime.datetime(2026, 3, 11, 0, 0), "today"),
        (datetime.datetime(2026, 3, 10, 23, 59, 59), "yesterday"),
        (datetime.datetime(2026, 3, 10, 0, 0), "yesterday"),
        (datetime.datetime(2026, 3, 9, 23, 59, 59), "week"),
        (datetime.datetime(2026, 3, 4, 0, 0), "week"),
        (datetime.datetime(2026, 3, 3, 23, 59, 59), "older"),
        (datetime.datetime(2026, 3, 12, 9, 0), "today"),
    ],
)
def test_midnight_divides_the_days(moment: datetime.datetime, group: str) -> None:
    assert Days.of(NOW).group(moment.timestamp()) == group


@pytest.mark.parametrize("seconds", [float("nan"), float("inf"), float("-inf"), -1e18, 1e18])
def test_a_time_that_makes_no_sense_is_shown_somewhere(sidebar: Sidebar, seconds: float) -> None:
    sidebar.set_conversations([Summary(1, "x", seconds)])
    assert "x" in shown(sidebar)
    sidebar.grab()


def test_what_a_row_says(sidebar: Sidebar) -> None:
    QLocale.setDefault(QLocale("en_GB"))
    model = sidebar.model
    times = [model.when(row) for row in model.rows if row.kind == "chat"]
    assert times == ["14:59", "12:00", "15:00", "Sun", "04/02/2025"]
    assert model.rows[1].text == "Because of scattering"
    spoken = model.index(1).data(Qt.ItemDataRole.AccessibleTextRole)
    assert spoken == "Sky, 14:59"
    sidebar.set_current(1)
    assert model.index(1).data(Qt.ItemDataRole.AccessibleTextRole) == "Sky, 14:59, open"


def test_a_name_is_never_taken_for_html(sidebar: Sidebar) -> None:
    sidebar.set_conversations([Summary(1, "<img src='file:///etc/passwd'>\n<b>x", ago())])
    tip = sidebar.model.index(1).data(Qt.ItemDataRole.ToolTipRole)
    assert "<img" not in tip
    assert "&lt;img" in tip


def test_a_click_opens_a_chat_and_a_heading_does_nothing(sidebar: Sidebar, heard: Heard, qtbot: QtBot) -> None:
    viewport = sidebar.list.viewport()
    qtbot.mouseClick(viewport, LEFT, pos=at(sidebar, 2))
    qtbot.mouseClick(viewport, LEFT, pos=sidebar.list.visualRect(sidebar.model.index(0)).center())
    qtbot.mouseClick(sidebar.new_button, LEFT)
    assert heard.all == [("opened", 2), ("new_requested",)]


def test_the_keyboard_walks_over_headings(sidebar: Sidebar, heard: Heard, qtbot: QtBot) -> None:
    sidebar.set_current(2)
    sidebar.search.setFocus()
    qtbot.keyClick(sidebar.search, Qt.Key.Key_Tab)
    assert sidebar.list.hasFocus()
    places = [here(sidebar)]
    for key in (Qt.Key.Key_Down, Qt.Key.Key_Up, Qt.Key.Key_End, Qt.Key.Key_Down, Qt.Key.Key_Home):
        qtbot.keyClick(sidebar.list, key)
        places.append(here(sidebar))
    assert places == [2, 3, 2, 5, 5, 1]
    assert heard.all == []
    qtbot.keyClick(sidebar.list, Qt.Key.Key_PageDown)
    qtbot.keyClick(sidebar.list, ENTER)
    assert heard.all == [("opened", 5)]
    qtbot.keyClick(sidebar.list, Qt.Key.Key_PageUp)
    assert here(sidebar) == 1
    qtbot.keyClick(sidebar.list, Qt.Key.Key_Up)
    assert sidebar.search.hasFocus()


def test_page_keys_move_by_what_is_seen(sidebar: Sidebar, qtbot: QtBot) -> None:
    sidebar.set_conversations([Summary(n, f"Chat {n}", ago(minutes=n)) for n in range(1, 101)])
    stand_on(sidebar, 1)
    qtbot.keyClick(sidebar.list, Qt.Key.Key_PageDown)
    step = here(sidebar) - 1
    height = sidebar.list.visualRect(sidebar.model.find(1)).height()
    assert step == pytest.approx(sidebar.list.viewport().height() / height, abs=2)
    qtbot.keyClick(sidebar.list, Qt.Key.Key_PageUp)
    assert here(sidebar) == 1


def test_place_and_scroll_position_survive_new_rows(sidebar: Sidebar) -> None:
    many = [Summary(n, f"Chat {n}", ago(minutes=n)) for n in range(1, 101)]
    sidebar.set_conversations(many)
    stand_on(sidebar, 50)
    bar = sidebar.list.verticalScrollBar()
    bar.setValue(1000)
    # An answer in another chat moves it to the top.
    many = [Summary(99, "Chat 99", ago()), *many[:98], many[99]]
    sidebar.set_conversations(many)
    QApplication.processEvents()
    assert here(sidebar) == 50
    assert bar.value() == 1000
    # Its deletion leaves the keyboard on the one that took its place.
    sidebar.set_conversations([summary for summary in many if summary.id != 50])
    assert here(sidebar) == 51
    sidebar.set_conversations(many[:3])
    assert here(sidebar) == many[2].id
    sidebar.set_conversations([])
    assert here(sidebar) == 0


def test_the_open_chat_is_scrolled_to(sidebar: Sidebar) -> None:
    sidebar.set_conversations([Summary(n, f"Chat {n}", ago(minutes=n)) for n in range(1, 101)])
    sidebar.set_current(90)
    assert sidebar.list.viewport().rect().contains(at(sidebar, 90))
    sidebar.set_current(1)
    assert sidebar.list.verticalScrollBar().value() == 0
    sidebar.set_current(None)
    assert sidebar.model.open_chat is None


def test_midnight_moves_the_headings(sidebar: Sidebar, monkeypatch: pytest.MonkeyPatch) -> None:
    class Tomorrow(datetime.datetime):
        @classmethod
        def now(cls, tz: Any = None) -> datetime.datetime:
            assert tz is None
            return NOW + datetime.timedelta(days=1)

    monkeypatch.setattr("tandem.ui.sidebar.datetime.datetime", Tomorrow)
    sidebar.midnight.timeout.emit()
    assert shown(sidebar)[:3] == ["Yesterday", "Sky", "파이썬 목록 정렬"]
    assert sidebar.midnight.isActive()
    assert 0 < sidebar.midnight.interval() <= 24 * 3600 * 1000


def test_nothing_yet(sidebar: Sidebar) -> None:
    sidebar.set_conversations([])
    assert sidebar.stack.currentWidget() is sidebar.empty
    assert sidebar.empty.title.text() == "No conversations yet"
    sidebar.set_conversations(chats())
    assert sidebar.stack.currentWidget() is sidebar.list


def test_before_the_chats_are_read_nothing_is_claimed(qtbot: QtBot, manager: ThemeManager) -> None:
    sidebar = Sidebar(manager)
    qtbot.addWidget(sidebar)
    assert sidebar.stack.currentWidget() is sidebar.list


# ---- renaming


def rename_field(sidebar: Sidebar) -> QLineEdit:
    field = sidebar.list.viewport().findChild(QLineEdit, "rename")
    assert isinstance(field, QLineEdit)
    return field


def test_f2_renames_in_place(sidebar: Sidebar, heard: Heard, qtbot: QtBot) -> None:
    stand_on(sidebar, 2)
    qtbot.keyClick(sidebar.list, Qt.Key.Key_F2)
    field = rename_field(sidebar)
    assert field.hasFocus()
    assert field.selectedText() == "파이썬 목록 정렬"
    assert field.accessibleName()
    qtbot.keyClicks(field, "  New   name ")
    qtbot.keyClick(field, ENTER)
    qtbot.waitUntil(lambda: not sidebar.list.renaming)
    assert heard.all == [("rename_requested", 2, "New name")]
    # Shown before the store has answered.
    assert "New name" in shown(sidebar)
    assert sidebar.list.hasFocus()


@pytest.mark.parametrize("typed", ["", "   ", "Sky"])
def test_an_empty_or_unchanged_name_changes_nothing(sidebar: Sidebar, heard: Heard, qtbot: QtBot, typed: str) -> None:
    stand_on(sidebar, 1)
    qtbot.keyClick(sidebar.list, Qt.Key.Key_F2)
    field = rename_field(sidebar)
    field.setText(typed)
    qtbot.keyClick(field, ENTER)
    qtbot.waitUntil(lambda: not sidebar.list.renaming)
    assert heard.all == []
    assert "Sky" in shown(sidebar)


def test_escape_keeps_the_old_name(sidebar: Sidebar, heard: Heard, qtbot: QtBot) -> None:
    stand_on(sidebar, 1)
    qtbot.keyClick(sidebar.list, Qt.Key.Key_F2)
    field = rename_field(sidebar)
    qtbot.keyClicks(field, "other")
    qtbot.keyClick(field, Qt.Key.Key_Escape)
    qtbot.waitUntil(lambda: not sidebar.list.renaming)
    assert heard.all == []
    assert "Sky" in shown(sidebar)


def test_the_enter_of_an_input_method_does_not_end_renaming(sidebar: Sidebar, heard: Heard, qtbot: QtBot) -> None:
    stand_on(sidebar, 1)
    qtbot.keyClick(sidebar.list, Qt.Key.Key_F2)
    field = rename_field(sidebar)
    field.clear()
    QApplication.sendEvent(field, QInputMethodEvent("하늘", []))
    qtbot.keyClick(field, ENTER)
    event = QInputMethodEvent("", [])
    event.setCommitString("하늘")
    QApplication.sendEvent(field, event)
    qtbot.keyClick(field, ENTER)
    QApplication.processEvents()
    assert sidebar.list.renaming
    assert heard.all == []
    qtbot.keyClick(field, ENTER)
    qtbot.waitUntil(lambda: not sidebar.list.renaming)
    assert heard.all == [("rename_requested", 1, "하늘")]


def test_rows_that_come_while_a_name_is_typed_wait(sidebar: Sidebar, heard: Heard, qtbot: QtBot) -> None:
    stand_on(sidebar, 2)
    qtbot.keyClick(sidebar.list, Qt.Key.Key_F2)
    field = rename_field(sidebar)
    qtbot.keyClicks(field, "typed")
    sidebar.set_conversations([Summary(9, "Nine", ago()), *chats()])
    assert field.text() == "typed"
    assert "Nine" not in shown(sidebar)
    qtbot.keyClick(field, ENTER)
    qtbot.waitUntil(lambda: "Nine" in shown(sidebar))
    assert heard.all == [("rename_requested", 2, "typed")]


def test_a_name_has_an_end(sidebar: Sidebar, heard: Heard) -> None:
    sidebar.model.setData(sidebar.model.find(1), "x" * 5000)
    assert heard.of("rename_requested") == [(1, "x" * LONGEST_TITLE)]


# ---- menus


def test_delete_asks_for_the_chat_under_the_keyboard(sidebar: Sidebar, heard: Heard, qtbot: QtBot) -> None:
    stand_on(sidebar, 4)
    qtbot.keyClick(sidebar.list, Qt.Key.Key_Delete)
    assert heard.all == [("delete_requested", 4)]


@menus
@pytest.mark.parametrize("how", ["mouse", "menu key", "shift+f10", "dots"])
def test_the_menu_of_a_chat(sidebar: Sidebar, heard: Heard, qtbot: QtBot, how: str) -> None:
    stand_on(sidebar, 1)
    where = at(sidebar, 2)
    if how == "mouse":
        viewport = sidebar.list.viewport()
        event = QContextMenuEvent(QContextMenuEvent.Reason.Mouse, where, viewport.mapToGlobal(where))
        QApplication.sendEvent(viewport, event)
    elif how == "dots":
        rect = sidebar.list.delegate.more_rect(sidebar.list.visualRect(sidebar.model.find(2)))
        qtbot.mouseClick(sidebar.list.viewport(), LEFT, pos=rect.center())
    else:
        stand_on(sidebar, 2)
        key, modifier = (
            (Qt.Key.Key_Menu, Qt.KeyboardModifier.NoModifier)
            if how == "menu key"
            else (Qt.Key.Key_F10, Qt.KeyboardModifier.ShiftModifier)
        )
        qtbot.keyClick(sidebar.list, key, modifier)
    found = actions(sidebar)
    assert list(found) == ["Rename", "Export as Markdown…", "Export as JSON…", "Delete"]
    assert heard.all == []
    for text in list(found)[1:]:
        found[text].trigger()
    assert heard.all == [
        ("export_requested", 2, "markdown"),
        ("export_requested", 2, "json"),
        ("delete_requested", 2),
    ]
    assert sidebar.menu is not None
    sidebar.menu.close()
    found["Rename"].trigger()
    assert sidebar.list.renaming
    assert rename_field(sidebar).text() == "파이썬 목록 정렬"


@menus
def test_the_menu_key_asks_by_an_event_of_its_own_too(sidebar: Sidebar, qtbot: QtBot) -> None:
    stand_on(sidebar, 1)
    event = QContextMenuEvent(QContextMenuEvent.Reason.Keyboard, QPoint(0, 0), QPoint(0, 0))
    QApplication.sendEvent(sidebar.list.viewport(), event)
    first = sidebar.menu
    assert actions(sidebar)
    # Some platforms send the key and the event: one menu.
    qtbot.keyClick(sidebar.list, Qt.Key.Key_Menu)
    assert sidebar.menu is first


@menus
def test_import_and_export_of_everything(sidebar: Sidebar, heard: Heard, qtbot: QtBot) -> None:
    qtbot.mouseClick(sidebar.more_button, LEFT)
    found = actions(sidebar)
    assert list(found) == ["Import chats…", "Export all as Markdown…", "Export all as JSON…"]
    for action in found.values():
        action.trigger()
    assert heard.all == [
        ("import_requested",),
        ("export_all_requested", "markdown"),
        ("export_all_requested", "json"),
    ]
    assert sidebar.menu is not None
    sidebar.menu.close()
    sidebar.set_conversations([])
    qtbot.mouseClick(sidebar.more_button, LEFT)
    assert [action.isEnabled() for action in actions(sidebar).values()] == [True, False, False]


# ---- the search


def test_a_search_waits_until_the_typing_rests(sidebar: Sidebar, heard: Heard, qtbot: QtBot) -> None:
    find(sidebar, qtbot, "blue ")
    assert heard.all == [("searched", "blue")]
    # The chats stay until there is an answer.
    assert shown(sidebar)[0] == "Today"
    sidebar.show_hits(hits())
    assert shown(sidebar) == ["Sky", "Old blue"]
    assert sidebar.found_label.isVisible()
    assert "2" in sidebar.found_label.text()


def test_down_leads_into_what_was_found_and_enter_opens_it(sidebar: Sidebar, heard: Heard, qtbot: QtBot) -> None:
    sidebar.focus_search()
    find(sidebar, qtbot, "blue")
    sidebar.show_hits(hits())
    qtbot.keyClick(sidebar.search, ENTER)
    qtbot.keyClick(sidebar.search, Qt.Key.Key_Down)
    assert sidebar.list.hasFocus()
    qtbot.keyClick(sidebar.list, Qt.Key.Key_Down)
    qtbot.keyClick(sidebar.list, ENTER)
    assert heard.of("hit_opened") == [(1, 7), (5, None)]
    qtbot.keyClick(sidebar.list, Qt.Key.Key_Escape)
    assert sidebar.search.hasFocus()
    assert sidebar.search.text() == ""
    assert heard.all[-1] == ("searched", "")
    assert shown(sidebar)[0] == "Today"


def test_enter_before_the_typing_rested_searches_at_once(sidebar: Sidebar, heard: Heard, qtbot: QtBot) -> None:
    sidebar.show_hits(hits())
    qtbot.keyClicks(sidebar.search, "blue")
    qtbot.keyClick(sidebar.search, ENTER)
    assert heard.all == [("searched", "blue")]


def test_escape_leaves_the_search_and_late_hits_are_dropped(sidebar: Sidebar, heard: Heard, qtbot: QtBot) -> None:
    find(sidebar, qtbot, "blue")
    sidebar.show_hits(hits())
    qtbot.keyClick(sidebar.search, Qt.Key.Key_Escape)
    assert heard.of("searched") == [("blue",), ("",)]
    assert shown(sidebar)[0] == "Today"
    sidebar.show_hits(hits())
    assert shown(sidebar)[0] == "Today"


def test_a_syllable_is_searched_for_while_it_is_composed(sidebar: Sidebar, heard: Heard, qtbot: QtBot) -> None:
    sidebar.search.setText("😀 ")
    sidebar.search.setFocus()
    with qtbot.waitSignal(sidebar.searched):
        QApplication.sendEvent(sidebar.search, QInputMethodEvent("하늘", []))
    assert heard.of("searched")[-1] == ("😀 하늘",)
    sidebar.show_hits(hits())
    # It confirms the syllable; nothing is opened.
    qtbot.keyClick(sidebar.search, ENTER)
    qtbot.keyClick(sidebar.search, Qt.Key.Key_Escape)
    assert heard.of("hit_opened") == []
    assert sidebar.search.whole_text == "😀 하늘"


def test_nothing_found_says_so_whatever_was_typed(sidebar: Sidebar) -> None:
    width = sidebar.minimumSizeHint().width()
    for text in ("blue", "<b>" + "W" * 900, "하" * 900):
        sidebar.search.setText(text)
        sidebar.show_hits([])
        assert sidebar.stack.currentWidget() is sidebar.empty
        assert sidebar.empty.title.text().startswith("Nothing found for “" + text[:4])
        assert sidebar.empty.title.textFormat() == Qt.TextFormat.PlainText
        assert sidebar.minimumSizeHint().width() == width <= 220
    assert not sidebar.found_label.isVisible()


def test_a_deleted_chat_is_gone_from_what_was_found_and_comes_back_with_undo(sidebar: Sidebar, qtbot: QtBot) -> None:
    find(sidebar, qtbot, "blue")
    sidebar.show_hits(hits())
    sidebar.set_conversations(chats()[1:])
    assert shown(sidebar) == ["Old blue"]
    sidebar.set_conversations(chats())
    assert shown(sidebar) == ["Sky", "Old blue"]


_WORDS = st.text(alphabet=st.sampled_from("ab \n\t😀한é"), max_size=300)


@given(_WORDS, st.lists(st.tuples(st.integers(-5, 320), st.integers(-5, 320)), max_size=5))
def test_an_excerpts_matches_stand_where_they_stood(text: str, ranges: list[tuple[int, int]]) -> None:
    ranges = sorted(ranges)
    shown_text, kept = excerpt(text, ranges)
    flat = "".join(" " if c.isspace() else c for c in text)
    good = [(start, end) for start, end in ranges if 0 <= start < end <= len(text)]
    for (start, end), (old_start, old_end) in zip(kept, good, strict=False):
        assert flat[old_start:old_end].startswith(shown_text[start:end])
        assert 0 <= start < end <= len(shown_text)
    if good:
        # The first one can be seen without scrolling.
        assert kept[0][0] <= 26


def test_positions_are_counted_as_qt_does() -> None:
    assert [utf16("a😀b", n) for n in range(4)] == [0, 1, 3, 4]


# ---- the whole


def test_five_thousand_chats_do_not_lag(sidebar: Sidebar, qtbot: QtBot) -> None:
    many = [Summary(n, f"Chat number {n}", ago(hours=n), "A snippet of some text") for n in range(1, 5001)]

    def timed(action: Any) -> float:
        start = time.perf_counter()
        action()
        QApplication.processEvents()
        return time.perf_counter() - start

    filled = timed(lambda: sidebar.set_conversations(many))
    moved = timed(lambda: sidebar.set_conversations([Summary(5000, "Chat", ago()), *many[:-1]]))
    same = timed(lambda: sidebar.set_conversations([Summary(5000, "Chat", ago(), "more"), *many[:-1]]))
    opened = timed(lambda: sidebar.set_current(2500))
    scrolled = timed(lambda: sidebar.list.verticalScrollBar().setValue(100_000))
    stand_on(sidebar, 2500)
    stepped = timed(lambda: qtbot.keyClick(sidebar.list, Qt.Key.Key_Down))
    assert here(sidebar) == 2501
    took = {"filled": filled, "moved": moved, "same": same, "opened": opened, "scrolled": scrolled, "stepped": stepped}
    assert max(took.values()) < 10, took  # a guard against a hang; bench_gui.py measures


def test_every_control_has_a_name(sidebar: Sidebar) -> None:
    seen = 0
    for widget in [sidebar, *sidebar.findChildren(QWidget)]:
        if widget.focusPolicy() & Qt.FocusPolicy.TabFocus and widget.isVisible():
            assert widget.accessibleName() or getattr(widget, "text", str)(), widget
            seen += 1
    assert seen == 4


def test_another_language_is_spoken_at_once(sidebar: Sidebar, qapp: QApplication, qtbot: QtBot) -> None:
    i18n.install(qapp, "pseudo")
    qtbot.waitUntil(lambda: sidebar.new_button.text().startswith("⟦"))
    assert shown(sidebar)[0].startswith("⟦")
    assert sidebar.search.placeholderText().startswith("⟦")
    assert sidebar.list.accessibleName().startswith("⟦")
    assert sidebar.more_button.toolTip().startswith("⟦")


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("scale", [1.0, 1.6])
@pytest.mark.parametrize("width", [220, 320])
def test_it_is_painted_in_every_state(
    sidebar: Sidebar, manager: ThemeManager, qapp: QApplication, qtbot: QtBot, theme: str, scale: float, width: int
) -> None:
    manager.apply(qapp, theme, scale)
    sidebar.resize(width, 500)
    sidebar.set_current(2)
    stand_on(sidebar, 1)
    index = sidebar.model.find(1)
    QApplication.processEvents()
    assert sidebar.list.visualRect(index).height() >= 50 * scale
    before = sidebar.grab().toImage()
    assert before.pixelColor(3, 3) == manager.colour("sunken")
    qtbot.mouseMove(sidebar.list.viewport(), at(sidebar, 5))
    sidebar.search.setText("blue")
    sidebar.show_hits(hits())
    QApplication.processEvents()
    found = sidebar.grab().toImage()
    assert found != before
    marks = manager.colour("find").rgb()
    assert any(found.pixel(x, y) == marks for x in range(found.width()) for y in range(0, found.height(), 2))
