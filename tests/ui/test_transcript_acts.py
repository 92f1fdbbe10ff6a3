"""What can be done with messages, by mouse, by keyboard and by menu; and what may not happen."""

from __future__ import annotations

import pytest
from PySide6.QtCore import QMimeData, QPoint, Qt, QTranslator
from PySide6.QtGui import QAccessible, QAccessibleEvent, QContextMenuEvent, QGuiApplication, QTextCursor
from PySide6.QtWidgets import QApplication, QLineEdit, QMenu, QToolTip, QVBoxLayout, QWidget
from pytestqt.qtbot import QtBot

from support.transcripts import (
    RICH,
    answer,
    block_with,
    blocks,
    chat,
    click,
    figures,
    hit,
    links,
    pieces,
    point_of,
    settle,
    shown,
    text_of,
    user,
)
from tandem.ui.figures import definitions
from tandem.ui.kit import Menu
from tandem.ui.theme import ThemeManager
from tandem.ui.transcript import FEEDBACK_MS, Transcript

# What the platform without a screen says when something pops up.
pops_up = pytest.mark.qt_log_ignore(r"This plugin does not support (raise\(\)|grabbing the keyboard)")

PATH = [user(1), answer(2, figures=figures())]


def clipboard() -> str:
    return QGuiApplication.clipboard().text()


def failed() -> list[object]:
    return [user(1), answer(2, "Half", state="failed", problem="It broke.", remedy="Mend it.")]


@pytest.mark.parametrize(
    ("act", "expected"),
    [
        ("copy", ("copy", 1)),
        ("edit", ("edit", 1)),
        ("regenerate", ("regenerate", 2)),
        ("previous", ("previous", 2)),
        ("next", ("next", 2)),
    ],
)
def test_icons_can_be_clicked(qtbot: QtBot, act: str, expected: tuple[str, int]) -> None:
    view = shown(qtbot)
    view.show_path(PATH, {2: (2, 3)})
    settle(qtbot, view)
    with qtbot.waitSignal(view.action) as signal:
        hit(qtbot, view, act)
    assert tuple(signal.args) == expected


@pytest.mark.parametrize("act", ["retry", "retry-without-drafter", "retry-smaller-context"])
def test_what_can_be_done_after_a_failure(qtbot: QtBot, act: str) -> None:
    view = shown(qtbot)
    view.show_path(failed(), {})
    with qtbot.waitSignal(view.action) as signal:
        hit(qtbot, view, act)
    assert tuple(signal.args) == (act, 2)


def test_a_message_is_copied_and_says_so_for_a_moment(qtbot: QtBot) -> None:
    view = shown(qtbot)
    view.show_path(PATH, {})
    settle(qtbot, view)
    link = links(view, "copy")[1]

    def icon() -> str:
        cursor = QTextCursor(view.document())
        cursor.setPosition(link.end)
        return cursor.charFormat().toImageFormat().name().split("/")[0]

    assert icon() == "tandem-icon:copy"
    click(qtbot, view, link)
    assert clipboard() == view.message_text(2)
    assert "**" not in clipboard()
    assert icon() == "tandem-icon:check"
    qtbot.waitUntil(lambda: icon() == "tandem-icon:copy", timeout=FEEDBACK_MS + 3000)
    view.link_chosen.emit("tandem-do:copy-markdown/2")
    assert clipboard() == RICH


def test_code_is_copied_as_it_was_written(qtbot: QtBot) -> None:
    view = shown(qtbot)
    code = "def f():\n\treturn '\u202e'  # 😀\n\n\nx = 1\n"
    view.begin(answer(2, "", state="streaming"))
    text = f"Look:\n\n```python\n{code}```\nand\n\n    indented\n"
    for piece in pieces(text, 3):
        view.stream([piece])
        view.flush()
    view.finish(answer(2, text))
    settle(qtbot, view)
    click(qtbot, view, links(view, "code")[0])
    # The override was made harmless when it was taken in.
    assert clipboard() == code.replace("\u202e", "[U+202E]")
    assert block_with(view, "python\tCopied")
    qtbot.waitUntil(lambda: "Copied" not in view.toPlainText(), timeout=FEEDBACK_MS + 3000)
    assert block_with(view, "python\tCopy")
    click(qtbot, view, links(view, "code")[1])
    assert clipboard() == "indented\n"


def test_a_selection_is_copied_without_what_is_not_text(qtbot: QtBot) -> None:
    view = shown(qtbot)
    view.show_path([user(1), answer(2, RICH, thought="thinking", figures=figures()), user(3, "After")], {})
    settle(qtbot, view)
    view.selectAll()
    view.setFocus()
    qtbot.keyClick(view, Qt.Key.Key_C, Qt.KeyboardModifier.ControlModifier)
    assert clipboard() == text_of(view)
    assert not set("\ufffc\u200b\u2029\u00a0") & set(clipboard())
    assert "tok/s" not in clipboard()
    assert "Copy" not in clipboard()
    assert clipboard().endswith("After")
    data: QMimeData = QGuiApplication.clipboard().mimeData()
    assert not data.hasHtml()


def test_a_selection_of_half_an_emoji_and_of_cells(qtbot: QtBot) -> None:
    view = shown(qtbot)
    view.show_path([answer(1, "a😀b\n\n| x | y |\n|---|---|\n| 1 | 2 |")], {})
    cursor = view.document().find("😀b")
    assert cursor.hasSelection()
    view.setTextCursor(cursor)
    assert view.selected_text() == "😀b"
    cursor.setPosition(block_with(view, "x").position())
    cursor.setPosition(block_with(view, "2").position() + 1, QTextCursor.MoveMode.KeepAnchor)
    view.setTextCursor(cursor)
    assert view.selected_text() == "x\ty\n1\t2"


# Links out of the app


def test_a_link_is_asked_for_and_nothing_is_opened(qtbot: QtBot, opened_urls: list[str]) -> None:
    view = shown(qtbot)
    view.show_path(PATH, {})
    settle(qtbot, view)
    link = next(link for link in links(view) if link.href.startswith("https:"))
    with qtbot.waitSignal(view.link_asked) as signal:
        click(qtbot, view, link)
    assert signal.args == ["https://example.org/a?b=c"]
    assert not opened_urls
    assert view.source().isEmpty()


def test_a_text_cannot_press_our_buttons(qtbot: QtBot) -> None:
    view = shown(qtbot)
    view.show_path([answer(2, "[x](tandem-do:regenerate/2) [y](file:///etc/passwd) [z](#top) <tandem-do:edit/2>")], {})
    hrefs = {link.href for link in links(view)}
    assert hrefs == {"tandem-do:copy/2", "tandem-do:regenerate/2"}  # the icons below
    words = block_with(view, "x").text()
    assert all(not part.fragment().charFormat().isAnchor() for part in block_with(view, words))
    with qtbot.assertNotEmitted(view.link_asked):
        for address in ("file:///etc/passwd", "javascript:x", "data:text/html,x", "tandem-icon:copy/muted/16/light"):
            view.link_chosen.emit(address)


# Keyboard


def test_tab_goes_through_the_links_in_view_and_then_on(qtbot: QtBot) -> None:
    window = QWidget()
    qtbot.addWidget(window)
    column = QVBoxLayout(window)
    before, after = QLineEdit(), QLineEdit()
    view = Transcript(ThemeManager())
    for widget in (before, view, after):
        column.addWidget(widget)
    window.resize(900, 700)
    window.show()
    qtbot.waitExposed(window)
    view.show_path(PATH, {})
    settle(qtbot, view)
    view.show_position(block_with(view, "A question?").position())
    before.setFocus()
    bare = view.viewport().grab().toImage()
    qtbot.keyClick(before, Qt.Key.Key_Tab)
    assert view.hasFocus()
    focus = view.look.theme.colour("focus")
    assert bare.pixelColor(200, 1) != focus
    assert view.viewport().grab().toImage().pixelColor(200, 1) == focus  # around all of it, before a link has it
    names = []
    for _ in range(20):
        qtbot.keyClick(view, Qt.Key.Key_Tab)
        if not view.hasFocus():
            break
        link = view.focused_link
        assert link is not None
        names.append(link.name)
        rect = view.cursorRect(QTextCursor(view.document().findBlock(link.start)))
        assert view.viewport().rect().intersects(rect)
    figures_name = block_with(view, "tok/s").text()
    assert names == ["Copy", "Edit", "the paper", "Copy", figures_name, "Copy", "Answer again"]
    assert view.focused_link is None
    while QApplication.focusWidget() is not view:
        qtbot.keyClick(QApplication.focusWidget(), Qt.Key.Key_Backtab)
    qtbot.keyClick(view, Qt.Key.Key_Backtab)
    assert view.focused_link is not None
    assert view.focused_link.name == "Answer again"


def test_enter_does_what_the_link_says_and_the_focus_is_seen(qtbot: QtBot) -> None:
    view = shown(qtbot)
    view.show_path(PATH, {})
    settle(qtbot, view)
    view.activateWindow()
    view.setFocus()
    qtbot.waitUntil(view.hasFocus)
    bare = view.viewport().grab().toImage()
    view.focus_link(links(view, "regenerate")[0])
    focused = view.viewport().grab().toImage()
    ring = view.look.theme.colour("focus").name()
    point = point_of(view, links(view, "regenerate")[0])
    around = {
        focused.pixelColor(point.x() + dx, point.y() + dy).name() for dx in range(-20, 20) for dy in range(-20, 20)
    }
    assert focused != bare
    assert ring in around
    with qtbot.waitSignal(view.action) as signal:
        qtbot.keyClick(view, Qt.Key.Key_Return)
    assert tuple(signal.args) == ("regenerate", 2)


def test_a_link_says_its_name_when_it_gets_the_focus(qtbot: QtBot, monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[str] = []

    def heard(event: QAccessibleEvent) -> None:
        if event.type() == QAccessible.Event.Announcement:
            said.append(event.message())  # type: ignore[attr-defined]

    monkeypatch.setattr(QAccessible, "updateAccessibility", heard)
    view = shown(qtbot)
    view.show_path(PATH, {})
    view.focus_link(links(view, "regenerate")[0])
    assert said == ["Answer again, link"]


def test_it_has_a_name_and_says_who_speaks(qtbot: QtBot) -> None:
    view = shown(qtbot)
    view.show_path(PATH, {})
    assert view.accessibleName() == "Conversation"
    assert view.end_button.accessibleName() == "Jump to the end"
    text = QAccessible.queryAccessibleInterface(view).text(QAccessible.Text.Value) or view.toPlainText()
    assert "You said:" in text
    assert "Answer:" in text


def test_a_thought_opens_by_enter_and_keeps_the_focus(qtbot: QtBot) -> None:
    view = shown(qtbot)
    view.show_path([answer(2, "The answer.", thought="A thought.")], {})
    view.setFocus()
    view.focus_link(links(view, "thought")[0])
    qtbot.keyClick(view, Qt.Key.Key_Return)
    assert text_of(view).startswith("A thought.")
    assert view.focused_link is not None
    assert view.focused_link.href == "tandem-do:thought/2"
    qtbot.keyClick(view, Qt.Key.Key_Return)
    assert text_of(view) == "The answer."


# Figures


@pops_up
def test_the_figures_say_what_they_mean(qtbot: QtBot) -> None:
    view = shown(qtbot)
    node = answer(2, "Text", thought="Thought", figures=figures(True))
    view.show_path([node], {})
    (link,) = links(view, "figures")
    tip = view.document().findBlock(link.start).begin().fragment().charFormat().toolTip()
    assert all(definition.meaning in tip for definition in definitions()[:6])
    view.link_chosen.emit(link.href)
    qtbot.waitUntil(QToolTip.isVisible)
    assert QToolTip.text() == tip
    assert link.name.count("·") == 4


# The menu


def entries(menu: QMenu) -> list[str]:
    return [action.text() for action in menu.actions() if not action.isSeparator()]


@pops_up
def test_the_menu_by_keyboard_is_for_the_message_at_the_focus(qtbot: QtBot) -> None:
    view = shown(qtbot)
    view.show_path(PATH, {2: (2, 2)})
    settle(qtbot, view)
    view.setFocus()
    view.focus_link(links(view, "regenerate")[0])
    qtbot.keyClick(view, Qt.Key.Key_F10, Qt.KeyboardModifier.ShiftModifier)
    menu = QApplication.activePopupWidget()
    assert isinstance(menu, Menu)
    assert entries(menu) == [
        "Copy as text",
        "Copy as Markdown",
        "Answer again",
        "What the figures mean",
        "Previous version",
        "Select all",
    ]
    with qtbot.waitSignal(view.action) as signal:
        menu.actions()[1].trigger()
    assert tuple(signal.args) == ("copy-markdown", 2)
    assert clipboard() == RICH
    menu.close()


@pops_up
def test_the_menu_by_mouse(qtbot: QtBot) -> None:
    view = shown(qtbot)
    view.show_path(PATH, {})
    settle(qtbot, view)

    def menu_for(words: str, href: str = "") -> Menu:
        return view.menu_at(block_with(view, words).position() + 1, href)

    assert "Copy code" in entries(menu_for("return x"))
    assert "Edit" in entries(menu_for("A question?"))
    menu = menu_for("Some ", "https://example.org/a")
    assert "Copy link address" in entries(menu)
    next(action for action in menu.actions() if action.text() == "Copy link address").trigger()
    assert clipboard() == "https://example.org/a"
    view.setTextCursor(view.document().find("strong"))
    menu = menu_for("Some ")
    next(action for action in menu.actions() if action.text() == "Copy selection").trigger()
    assert clipboard() == "strong"
    next(action for action in menu_for("return x").actions() if action.text() == "Copy code").trigger()
    assert clipboard() == "def f(x):\n    return x + 1\n"
    menu = menu_for("Some ")
    next(action for action in menu.actions() if action.text() == "Select all").trigger()
    assert view.selected_text() == text_of(view)
    view.show_position(block_with(view, "Some ").position())
    place = view.cursorRect(QTextCursor(block_with(view, "Some "))).center()
    event = QContextMenuEvent(QContextMenuEvent.Reason.Mouse, place, view.viewport().mapToGlobal(place))
    QApplication.sendEvent(view.viewport(), event)
    popup = QApplication.activePopupWidget()
    assert isinstance(popup, Menu)
    assert "Answer again" in entries(popup)
    popup.close()


def test_the_menu_while_an_answer_streams_and_after_a_failure(qtbot: QtBot) -> None:
    view = shown(qtbot)
    view.begin(answer(2, "", state="streaming"))
    view.stream(pieces("some text", 20))
    assert entries(view.menu_at(block_with(view, "some text").position())) == ["Select all"]
    view.show_path(failed(), {})
    found = entries(view.menu_at(block_with(view, "It broke.").position()))
    assert "Try without the drafter" in found
    assert "Try with a smaller context" in found


def test_hovering_an_icon_shows_that_it_can_be_used(qtbot: QtBot) -> None:
    view = shown(qtbot)
    view.show_path(chat(2), {})
    settle(qtbot, view)
    point = point_of(view, links(view, "regenerate")[0])
    bare = view.viewport().grab().toImage()
    qtbot.mouseMove(view.viewport(), point)
    qtbot.waitUntil(lambda: view.viewport().grab().toImage() != bare)
    assert view.viewport().cursor().shape() == Qt.CursorShape.PointingHandCursor
    qtbot.mouseMove(view.viewport(), QPoint(3, 3))
    qtbot.waitUntil(lambda: view.viewport().grab().toImage() == bare)


def test_another_language_is_followed(qtbot: QtBot) -> None:
    view = shown(qtbot)
    view.show_path(chat(2), {})

    class Shout(QTranslator):
        def isEmpty(self) -> bool:  # noqa: N802
            return False

        def translate(self, context: str, text: str, *_more: object) -> str:
            return text.upper() if context == "Transcript" else ""

    shout = Shout(view)
    QApplication.installTranslator(shout)
    settle(qtbot, view)
    assert view.accessibleName() == "CONVERSATION"
    assert any(block.text() == "YOU SAID:" for block in blocks(view))
    assert "ANSWER AGAIN" in [link.name for link in links(view)]
    QApplication.removeTranslator(shout)
