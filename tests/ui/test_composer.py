from __future__ import annotations

import time
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PySide6.QtCore import QEvent, QMimeData, QPoint, QPointF, Qt, QUrl
from PySide6.QtGui import QColor, QDragEnterEvent, QDropEvent, QGuiApplication, QImage, QInputMethodEvent, QKeyEvent
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QVBoxLayout, QWidget
from pytestqt.qtbot import QtBot

from tandem.ui import composer_editor, composer_text, i18n
from tandem.ui.composer import Composer
from tandem.ui.composer_editor import MOST_LINES
from tandem.ui.composer_text import MAX_CHARACTERS, clean, fits_field
from tandem.ui.theme import ThemeManager

ENTER = Qt.Key.Key_Return


class Heard:
    """Everything that a composer emitted, in order."""

    NAMES = (
        "submitted",
        "stop_requested",
        "draft_toggled",
        "thinking_toggled",
        "show_drafted_toggled",
        "text_changed",
        "edit_cancelled",
        "edit_last_requested",
        "unqueue_requested",
        "refused",
    )

    def __init__(self, composer: Composer) -> None:
        self.all: list[tuple[Any, ...]] = []
        for name in self.NAMES:
            getattr(composer, name).connect(lambda *values, name=name: self.all.append((name, *values)))

    def of(self, name: str) -> list[Any]:
        return [entry[1] if len(entry) > 1 else None for entry in self.all if entry[0] == name]


@pytest.fixture
def manager(qapp: QApplication) -> ThemeManager:
    manager = ThemeManager()
    manager.apply(qapp, "light")
    return manager


@pytest.fixture
def page(qtbot: QtBot, manager: ThemeManager) -> QWidget:
    """A page with a composer at its foot."""
    page = QWidget()
    column = QVBoxLayout(page)
    column.addStretch(1)
    column.addWidget(Composer(manager))
    page.resize(640, 480)
    qtbot.addWidget(page)
    with qtbot.waitExposed(page):
        page.show()
    page.activateWindow()
    return page


@pytest.fixture
def composer(page: QWidget, qtbot: QtBot) -> Composer:
    composer = page.findChild(Composer)
    assert composer is not None
    composer.focus()
    qtbot.waitUntil(composer.editor.hasFocus)
    return composer


@pytest.fixture
def heard(composer: Composer) -> Heard:
    return Heard(composer)


def preedit(composer: Composer, text: str) -> None:
    QApplication.sendEvent(composer.editor, QInputMethodEvent(text, []))


def commit(composer: Composer, text: str, then: str = "") -> None:
    event = QInputMethodEvent(then, [])
    event.setCommitString(text)
    QApplication.sendEvent(composer.editor, event)


def picture() -> QImage:
    image = QImage(4, 4, QImage.Format.Format_RGB32)
    image.fill(QColor("red"))
    return image


def drop(widget: QWidget, data: QMimeData) -> tuple[bool, Qt.DropAction]:
    """Drags data onto a widget and lets go; whether it may come in, and what became of it."""
    buttons, none = Qt.MouseButton.LeftButton, Qt.KeyboardModifier.NoModifier
    actions = Qt.DropAction.CopyAction | Qt.DropAction.MoveAction
    entering = QDragEnterEvent(QPoint(5, 5), actions, data, buttons, none)
    QApplication.sendEvent(widget, entering)
    dropping = QDropEvent(QPointF(5, 5), actions, data, buttons, none)
    QApplication.sendEvent(widget, dropping)
    return entering.isAccepted(), dropping.dropAction()


# ---- keys


def test_enter_sends_and_empties_it(composer: Composer, heard: Heard, qtbot: QtBot) -> None:
    qtbot.keyClicks(composer.editor, "Hello")
    qtbot.keyClick(composer.editor, ENTER)
    # The message first: its store must have it before the unsent text is forgotten.
    assert [entry for entry in heard.all if entry[0] in ("submitted", "text_changed")] == [
        ("submitted", "Hello"),
        ("text_changed", ""),
    ]
    assert composer.text() == ""
    assert composer.editor.hasFocus()


@pytest.mark.parametrize("key", [Qt.Key.Key_Return, Qt.Key.Key_Enter])
def test_shift_enter_breaks_the_line(composer: Composer, heard: Heard, qtbot: QtBot, key: Qt.Key) -> None:
    qtbot.keyClicks(composer.editor, "a")
    qtbot.keyClick(composer.editor, key, Qt.KeyboardModifier.ShiftModifier)
    qtbot.keyClicks(composer.editor, "b")
    assert composer.text() == "a\nb"
    assert composer.editor.document().blockCount() == 2
    qtbot.keyClick(composer.editor, key)
    assert heard.of("submitted") == ["a\nb"]


def test_white_space_is_not_sent(composer: Composer, heard: Heard, qtbot: QtBot) -> None:
    assert not composer.send_button.isEnabled()
    qtbot.keyClicks(composer.editor, "  ")
    qtbot.keyClick(composer.editor, ENTER, Qt.KeyboardModifier.ShiftModifier)
    assert not composer.send_button.isEnabled()
    qtbot.keyClick(composer.editor, ENTER)
    assert heard.of("submitted") == []
    qtbot.keyClicks(composer.editor, " x ")
    assert composer.send_button.isEnabled()
    qtbot.keyClick(composer.editor, ENTER)
    assert heard.of("submitted") == ["  \n x"]


def test_an_enter_held_down_sends_once(composer: Composer, heard: Heard) -> None:
    none = Qt.KeyboardModifier.NoModifier
    composer.set_text("x")
    for repeated in (False, True, True):
        QApplication.sendEvent(composer.editor, QKeyEvent(QEvent.Type.KeyPress, ENTER, none, "\r", repeated))
        composer.editor.insert("y")
    assert heard.of("submitted") == ["x"]
    assert composer.text() == "yyy"


def test_escape_stops_what_runs_before_it_cancels_an_edit(composer: Composer, heard: Heard, qtbot: QtBot) -> None:
    composer.begin_edit("old")
    composer.set_running(True)
    qtbot.keyClick(composer.editor, Qt.Key.Key_Escape)
    assert heard.of("stop_requested") == [None]
    assert composer.editing
    composer.set_running(False)
    qtbot.keyClick(composer.editor, Qt.Key.Key_Escape)
    assert heard.of("edit_cancelled") == [None]
    assert not composer.editing
    qtbot.keyClick(composer.editor, Qt.Key.Key_Escape)
    assert len(heard.all) == 2


def test_up_asks_for_the_last_message_only_where_nothing_is_written(
    composer: Composer, heard: Heard, qtbot: QtBot
) -> None:
    qtbot.keyClick(composer.editor, Qt.Key.Key_Up)
    assert heard.of("edit_last_requested") == [None]
    qtbot.keyClicks(composer.editor, "x")
    qtbot.keyClick(composer.editor, Qt.Key.Key_Up)
    composer.begin_edit("")
    qtbot.keyClick(composer.editor, Qt.Key.Key_Up)
    assert heard.of("edit_last_requested") == [None]


def test_tab_goes_through_chips_to_send(composer: Composer, qtbot: QtBot) -> None:
    composer.set_drafter(True, True, "3")
    composer.set_thinking(True, False)
    composer.set_text("x")
    chips = composer.chips
    for widget in (composer.editor, chips.drafter, chips.thinking, chips.drafted):
        assert QApplication.focusWidget() is widget
        qtbot.keyClick(widget, Qt.Key.Key_Tab)
    assert QApplication.focusWidget() is composer.send_button
    qtbot.keyClick(composer.send_button, ENTER)
    assert composer.text() == ""


# ---- input methods: what each sends, as Qt passes it on


def test_hangul_syllables_are_not_sent_by_the_enter_that_ends_them(
    composer: Composer, heard: Heard, qtbot: QtBot
) -> None:
    # 2-set: each syllable grows in the preedit text; the key that ends it comes right after the commit.
    for text in ("ㅎ", "하", "한"):
        preedit(composer, text)
    commit(composer, "한", "ㄱ")
    for text in ("그", "글"):
        preedit(composer, text)
    qtbot.keyClick(composer.editor, ENTER)
    assert (heard.of("submitted"), composer.text()) == ([], "한")
    commit(composer, "글")
    qtbot.keyClick(composer.editor, ENTER)
    assert (heard.of("submitted"), composer.text()) == ([], "한글")
    qtbot.keyClick(composer.editor, ENTER)
    assert heard.of("submitted") == ["한글"]


def test_a_space_ends_a_hangul_syllable_and_the_next_enter_sends(
    composer: Composer, heard: Heard, qtbot: QtBot
) -> None:
    preedit(composer, "네")
    commit(composer, "네")
    qtbot.keyClick(composer.editor, Qt.Key.Key_Space)
    qtbot.keyClick(composer.editor, ENTER)
    assert heard.of("submitted") == ["네"]


def test_pinyin_letters_confirmed_by_an_enter_that_the_input_method_keeps(
    composer: Composer, heard: Heard, qtbot: QtBot
) -> None:
    for text in ("n", "ni", "ni h", "ni hao"):
        preedit(composer, text)
    commit(composer, "nihao")
    assert (heard.of("submitted"), composer.text()) == ([], "nihao")
    # A candidate chosen by a number; some time later an Enter that is meant.
    preedit(composer, "shi jie")
    commit(composer, "世界")
    qtbot.waitUntil(lambda: not composer.editor.composition_just_ended)
    qtbot.keyClick(composer.editor, ENTER)
    assert heard.of("submitted") == ["nihao世界"]


def test_japanese_conversion_cleared_and_committed_in_two_events(
    composer: Composer, heard: Heard, qtbot: QtBot
) -> None:
    for text in ("か", "かn", "かん", "かんじ", "漢字", "感じ", "漢字"):
        preedit(composer, text)
        qtbot.keyClick(composer.editor, ENTER)
    assert (heard.of("submitted"), composer.text()) == ([], "")
    preedit(composer, "")
    commit(composer, "漢字")
    qtbot.keyClick(composer.editor, ENTER)
    assert (heard.of("submitted"), composer.text()) == ([], "漢字")
    qtbot.keyClick(composer.editor, ENTER)
    assert heard.of("submitted") == ["漢字"]


def test_while_composing_neither_shift_enter_nor_escape_do_anything(
    composer: Composer, heard: Heard, qtbot: QtBot
) -> None:
    composer.set_running(True)
    preedit(composer, "한")
    qtbot.keyClick(composer.editor, ENTER, Qt.KeyboardModifier.ShiftModifier)
    qtbot.keyClick(composer.editor, Qt.Key.Key_Escape)
    assert (heard.all, composer.text()) == ([], "")
    # The Esc that gave the composition up.
    preedit(composer, "")
    qtbot.keyClick(composer.editor, Qt.Key.Key_Escape)
    assert heard.all == []
    qtbot.keyClick(composer.editor, Qt.Key.Key_Escape)
    assert heard.of("stop_requested") == [None]


def test_while_composing_its_keys_are_no_shortcuts(composer: Composer) -> None:
    def taken(key: Qt.Key) -> bool:
        event = QKeyEvent(QEvent.Type.ShortcutOverride, key, Qt.KeyboardModifier.NoModifier)
        event.ignore()
        QApplication.sendEvent(composer.editor, event)
        return event.isAccepted()

    assert not taken(Qt.Key.Key_Escape)
    preedit(composer, "한")
    assert taken(Qt.Key.Key_Escape)
    assert taken(ENTER)
    assert not taken(Qt.Key.Key_F5)


def test_a_click_on_send_commits_what_is_composed(
    composer: Composer, heard: Heard, qtbot: QtBot, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []

    class Method:
        def commit(self) -> None:
            asked.append("commit")
            commit(composer, "글")

        def reset(self) -> None:
            asked.append("reset")

    class App(QGuiApplication):
        @staticmethod
        def inputMethod() -> Any:  # noqa: N802 - Qt's name
            return Method()

    preedit(composer, "한")
    commit(composer, "한", "글")
    assert composer.send_button.isEnabled()
    with monkeypatch.context() as patch:
        patch.setattr(composer_editor, "QGuiApplication", App)
        qtbot.mouseClick(composer.send_button, Qt.MouseButton.LeftButton)
    assert asked == ["commit"]
    assert heard.of("submitted") == ["한글"]


def test_where_the_platform_commits_nothing_the_composed_text_is_sent_all_the_same(
    composer: Composer, heard: Heard, qtbot: QtBot
) -> None:
    composer.set_text("x")
    preedit(composer, "한")
    qtbot.mouseClick(composer.send_button, Qt.MouseButton.LeftButton)
    assert heard.of("submitted") == ["x한"]
    assert (composer.text(), composer.editor.composing) == ("", False)


_STEPS = st.lists(st.sampled_from(["preedit", "commit", "commit+preedit", "clear", "enter", "shift"]), max_size=12)


@given(_STEPS)
@settings(max_examples=60, deadline=None)
def test_no_order_of_events_sends_while_composing_or_right_after(steps: list[str]) -> None:
    app = QApplication.instance()
    assert isinstance(app, QApplication)
    manager = ThemeManager()
    composer = Composer(manager)
    sent: list[str] = []
    composer.submitted.connect(sent.append)
    composer.editor.insert("x")
    committed, just_ended = "x", False
    for step in steps:
        composing = composer.editor.composing
        before = len(sent)
        if step == "preedit":
            preedit(composer, "ㄱ")
            just_ended = False
        elif step == "clear":
            preedit(composer, "")
            just_ended = just_ended or composing
        elif step == "commit":
            commit(composer, "가")
            committed += "가"
            just_ended = just_ended or composing
        elif step == "commit+preedit":
            commit(composer, "가", "ㄴ")
            committed += "가"
            just_ended = False
        else:
            modifier = Qt.KeyboardModifier.ShiftModifier if step == "shift" else Qt.KeyboardModifier.NoModifier
            QTest.keyClick(composer.editor, ENTER, modifier)
            if step == "shift":
                committed += "" if composing else "\n"
            elif not composing and not just_ended and committed.strip():
                assert sent[-1] == committed.strip("\n").rstrip()
                committed = ""
                before += 1
            just_ended = just_ended and composing
        assert len(sent) == before
        assert composer.text() == committed
    composer.deleteLater()


# ---- the unsent text


def test_the_unsent_text_is_told_soon_and_once_for_many_keys(composer: Composer, heard: Heard, qtbot: QtBot) -> None:
    with qtbot.waitSignal(composer.text_changed):
        qtbot.keyClicks(composer.editor, "Hello")
    assert heard.of("text_changed") == ["Hello"]


@pytest.mark.parametrize("how", ["focus", "hide", "close", "flush"])
def test_the_unsent_text_is_told_at_once_when_it_is_left(
    page: QWidget, composer: Composer, heard: Heard, qtbot: QtBot, how: str
) -> None:
    qtbot.keyClicks(composer.editor, "Hello")
    assert heard.of("text_changed") == []
    match how:
        case "focus":
            composer.chips.drafter.setFocus()
        case "hide":
            page.hide()
        case "close":
            page.close()
        case "flush":
            composer.flush()
    composer.flush()
    assert heard.of("text_changed") == ["Hello"]


def test_a_text_that_is_set_is_not_told_again(composer: Composer, heard: Heard) -> None:
    composer.set_text("from the store")
    composer.flush()
    assert heard.all == []
    assert composer.editor.textCursor().position() == len("from the store")
    composer.editor.insert("!")
    # Another chat is opened: its text must not be saved as this one's.
    composer.set_text("other")
    composer.flush()
    assert heard.all == []


def test_an_edited_message_never_becomes_the_unsent_text(composer: Composer, heard: Heard, qtbot: QtBot) -> None:
    qtbot.keyClicks(composer.editor, "unsent")
    composer.begin_edit("earlier")
    assert heard.of("text_changed") == ["unsent"]
    qtbot.keyClicks(composer.editor, " and more")
    composer.flush()
    assert heard.of("text_changed") == ["unsent"]
    assert composer.edit_bar.isVisible()
    during: list[bool] = []
    composer.submitted.connect(lambda _: during.append(composer.editing))
    qtbot.keyClick(composer.editor, ENTER)
    assert heard.of("submitted") == ["earlier and more"]
    assert during == [True]
    assert (composer.text(), composer.editing, composer.edit_bar.isVisible()) == ("unsent", False, False)


def test_the_cross_of_the_edit_bar_cancels(composer: Composer, heard: Heard, qtbot: QtBot) -> None:
    composer.set_text("unsent")
    composer.begin_edit("earlier")
    composer.begin_edit("another")
    qtbot.mouseClick(composer.edit_bar.button, Qt.MouseButton.LeftButton)
    assert heard.of("edit_cancelled") == [None]
    assert composer.text() == "unsent"


def test_a_message_comes_back_in_front_of_what_was_written_since(composer: Composer, heard: Heard) -> None:
    composer.put_back("first")
    assert composer.text() == "first"
    composer.put_back("zeroth")
    assert composer.text() == "zeroth\n\nfirst"
    composer.flush()
    assert heard.of("text_changed") == ["zeroth\n\nfirst"]


def test_an_edited_message_that_comes_back_at_once_is_not_lost(composer: Composer, heard: Heard, qtbot: QtBot) -> None:
    composer.set_text("unsent")
    composer.begin_edit("earlier")
    composer.submitted.connect(composer.put_back)
    qtbot.keyClick(composer.editor, ENTER)
    assert composer.text() == "earlier\n\nunsent"
    composer.flush()
    assert heard.of("text_changed")[-1] == "earlier\n\nunsent"


def test_a_message_that_comes_back_while_another_is_edited_waits_for_the_end_of_that(
    composer: Composer, heard: Heard
) -> None:
    composer.set_text("unsent")
    composer.begin_edit("earlier")
    composer.put_back("back again")
    assert composer.text() == "earlier"
    assert heard.of("text_changed") == ["back again\n\nunsent"]
    composer.end_edit()
    assert composer.text() == "back again\n\nunsent"


# ---- states


def test_send_and_stop_share_a_place(composer: Composer, heard: Heard, qtbot: QtBot) -> None:
    composer.set_running(True)
    assert composer.send_button.accessibleName() == "Stop"
    assert composer.send_button.isEnabled()
    qtbot.mouseClick(composer.send_button, Qt.MouseButton.LeftButton)
    assert heard.of("stop_requested") == [None]
    # A message that is sent meanwhile is the controller's to queue.
    qtbot.keyClicks(composer.editor, "next")
    qtbot.keyClick(composer.editor, ENTER)
    assert heard.of("submitted") == ["next"]
    composer.set_queued("next")
    assert composer.queued_bar.isVisible()
    assert "next" in composer.queued_bar.words.text()
    qtbot.mouseClick(composer.queued_bar.button, Qt.MouseButton.LeftButton)
    assert heard.of("unqueue_requested") == [None]
    composer.set_queued(None)
    composer.set_running(False)
    assert not composer.queued_bar.isVisible()
    assert composer.send_button.accessibleName() == "Send"


def test_chips_tell_what_was_switched_and_only_that(composer: Composer, heard: Heard, qtbot: QtBot) -> None:
    composer.set_shortcuts("Ctrl+D", "Ctrl+T", "Ctrl+Shift+D")
    composer.set_drafter(True, True, "3")
    composer.set_thinking(True, False)
    composer.set_show_drafted(False)
    assert heard.all == []
    chips = composer.chips
    assert chips.drafter.text() == "Drafter · 3"
    assert "Ctrl+D" in chips.drafter.toolTip()
    assert "Ctrl+T" in chips.thinking.toolTip()
    qtbot.mouseClick(chips.drafter, Qt.MouseButton.LeftButton)
    assert chips.drafter.text() == chips.drafter.accessibleName() == "Drafter"
    qtbot.keyClick(chips.thinking, Qt.Key.Key_Space)
    composer.toggle_show_drafted()
    composer.toggle_drafter()
    assert heard.all == [
        ("draft_toggled", False),
        ("thinking_toggled", True),
        ("show_drafted_toggled", True),
        ("draft_toggled", True),
    ]


def test_a_switch_that_cannot_be_used_says_why(composer: Composer, heard: Heard) -> None:
    composer.set_thinking(False, False, "This pair cannot think.")
    chip = composer.chips.thinking
    assert not chip.isEnabled()
    assert "This pair cannot think." in chip.toolTip()
    assert chip.accessibleDescription() == "This pair cannot think."
    composer.toggle_thinking()
    assert heard.all == [("refused", "This pair cannot think.")]
    composer.set_thinking(True, True)
    assert "This pair cannot think." not in chip.toolTip()


def test_every_control_has_a_name(composer: Composer) -> None:
    composer.begin_edit("x")
    composer.set_queued("y")
    composer.editor.big_paste.emit("z")
    seen = 0
    for widget in composer.findChildren(QWidget):
        if widget.focusPolicy() & Qt.FocusPolicy.TabFocus and widget.isVisible():
            text = getattr(widget, "text", str)()
            assert widget.accessibleName() or text, widget
            seen += 1
    assert seen >= 8


def test_another_language_is_spoken_at_once(composer: Composer, qapp: QApplication, qtbot: QtBot) -> None:
    composer.set_drafter(True, True, "3")
    i18n.install(qapp, "pseudo")
    qtbot.waitUntil(lambda: composer.hint.text().startswith("⟦"))
    texts = [
        composer.editor.placeholderText(),
        composer.editor.accessibleName(),
        composer.hint.text(),
        composer.send_button.accessibleName(),
        composer.chips.thinking.text(),
        composer.chips.drafter.toolTip(),
        composer.edit_bar.words.accessibleName(),
    ]
    assert all(text.startswith("⟦") for text in texts), texts
    assert "3" in composer.chips.drafter.text()


# ---- what is dropped or pasted


@pytest.mark.parametrize("place", ["editor", "frame"])
@pytest.mark.parametrize(
    "data",
    [
        pytest.param(lambda: _image(), id="picture"),
        pytest.param(lambda: _file("photo.png"), id="png file"),
        pytest.param(lambda: _file("song.mp3"), id="audio file"),
        pytest.param(lambda: _file("notes.txt", "/srv/notes.txt"), id="text file with its path as text"),
        pytest.param(lambda: _raw("audio/wav", b"RIFF"), id="sound"),
        pytest.param(lambda: _raw("application/x-unknown", b"?"), id="unknown"),
    ],
)
def test_what_is_no_text_is_refused(composer: Composer, heard: Heard, data: Any, place: str) -> None:
    composer.set_text("kept")
    widget = composer.editor.viewport() if place == "editor" else composer
    entered, action = drop(widget, data())
    # Let in, so that it can be answered; and never moved, for then its source would delete it.
    assert entered
    assert action == Qt.DropAction.IgnoreAction
    assert len(heard.of("refused")) == 1
    assert "Text only" in heard.of("refused")[0]
    assert composer.text() == "kept"


def _image() -> QMimeData:
    data = QMimeData()
    data.setImageData(picture())
    return data


def _file(name: str, text: str | None = None) -> QMimeData:
    data = QMimeData()
    data.setUrls([QUrl.fromLocalFile(f"/tmp/{name}")])
    if text is not None:
        data.setText(text)
    return data


def _raw(kind: str, content: bytes) -> QMimeData:
    data = QMimeData()
    data.setData(kind, content)
    return data


@pytest.mark.parametrize("place", ["editor", "frame"])
def test_dropped_text_is_inserted(composer: Composer, heard: Heard, place: str) -> None:
    data = QMimeData()
    data.setText("plain\r\nтекст\u00a0x")
    data.setHtml("<b>bold</b><img src='file:///etc/passwd'>")
    drop(composer.editor.viewport() if place == "editor" else composer, data)
    assert composer.text() == "plain\nтекст\u00a0x"
    assert heard.of("refused") == []


def test_a_pasted_picture_is_refused_and_an_office_programs_text_is_taken(
    composer: Composer, heard: Heard, qtbot: QtBot
) -> None:
    clipboard = QGuiApplication.clipboard()
    clipboard.setMimeData(_image())
    qtbot.keyClick(composer.editor, Qt.Key.Key_V, Qt.KeyboardModifier.ControlModifier)
    assert len(heard.of("refused")) == 1
    data = _image()
    data.setText("cell")
    data.setHtml("<table><tr><td style='color:red'>cell</td></tr></table>")
    clipboard.setMimeData(data)
    qtbot.keyClick(composer.editor, Qt.Key.Key_V, Qt.KeyboardModifier.ControlModifier)
    assert composer.text() == "cell"
    assert composer.editor.document().firstBlock().charFormat().foreground().style() == Qt.BrushStyle.NoBrush
    only = QMimeData()
    only.setHtml("<p>one</p><p>two <img src='http://example.org/x.png'></p>")
    clipboard.setMimeData(only)
    qtbot.keyClick(composer.editor, Qt.Key.Key_V, Qt.KeyboardModifier.ControlModifier)
    assert composer.text().startswith("cellone\ntwo")
    clipboard.clear()


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("x" * 1_000_000, id="one word"),
        pytest.param("안녕하세요 " * 170_000, id="one paragraph"),
        pytest.param("a line of text\n" * 70_000, id="lines"),
        pytest.param("\n" * 1_000_000 + "x", id="breaks"),
    ],
)
def test_a_huge_paste_does_not_freeze(composer: Composer, heard: Heard, qtbot: QtBot, text: str) -> None:
    qtbot.keyClicks(composer.editor, "Look:")
    data = QMimeData()
    data.setText(text)
    QGuiApplication.clipboard().setMimeData(data)
    start = time.perf_counter()
    qtbot.keyClick(composer.editor, Qt.Key.Key_V, Qt.KeyboardModifier.ControlModifier)
    QApplication.processEvents()
    qtbot.keyClicks(composer.editor, "!")
    QApplication.processEvents()
    took = time.perf_counter() - start
    # A text field alone takes from 0.3 s for the lines to 60 s for the word.
    assert took < 10, took  # a guard against the word; bench_gui.py measures
    assert composer.text() == f"Look:!\n\n{text}"
    assert composer.pasted_bar.isVisible()
    assert i18n.number(len(text)) in composer.pasted_bar.words.accessibleName()
    qtbot.keyClick(composer.editor, ENTER)
    assert heard.of("submitted") == [f"Look:!\n\n{text}".rstrip()]
    assert not composer.pasted_bar.isVisible()
    QGuiApplication.clipboard().clear()


def test_text_held_beside_the_field_survives_and_can_be_removed(composer: Composer, qtbot: QtBot) -> None:
    text = "x" * 200_000
    composer.set_text(text)
    assert composer.text() == text
    assert composer.send_button.isEnabled()
    qtbot.mouseClick(composer.pasted_bar.button, Qt.MouseButton.LeftButton)
    assert composer.text() == ""
    assert not composer.send_button.isEnabled()


def test_many_pastes_that_each_fit_do_not_add_up_to_a_stall(composer: Composer) -> None:
    for _ in range(20):
        composer.editor.insert("y" * 7_000)
    longest = max(len(line) for line in composer.editor.text().split("\n"))
    assert longest <= 2 * composer_text.FIELD_PARAGRAPH
    assert composer.text().count("y") == 140_000


def test_more_than_anything_could_take_is_refused(composer: Composer, heard: Heard) -> None:
    composer.editor.insert("x" * (MAX_CHARACTERS + 1))
    assert len(heard.of("refused")) == 1
    assert composer.text() == ""


@given(st.text())
def test_cleaned_text_has_one_kind_of_break_and_no_controls(text: str) -> None:
    cleaned = clean(text)
    assert clean(cleaned) == cleaned
    assert not set(cleaned) & set("\r\0\x1b\u2028\u2029\ufffc")
    assert fits_field("x" * composer_text.FIELD_PARAGRAPH)


@given(st.text())
@settings(max_examples=60, deadline=None)
def test_the_field_gives_back_what_was_put_in(text: str) -> None:
    composer = Composer(ThemeManager())
    composer.set_text(text)
    assert composer.text() == clean(text)
    composer.deleteLater()


# ---- looks


def test_it_grows_to_eight_lines_and_shrinks_again(composer: Composer, qtbot: QtBot) -> None:
    one = composer.editor.height()
    heights = []
    for number in range(1, MOST_LINES + 4):
        composer.set_text("\n".join(["한글 Ag"] * number))
        QApplication.processEvents()
        heights.append(composer.editor.height())
    assert heights == sorted(heights)
    assert heights[MOST_LINES + 2] == heights[MOST_LINES] <= (MOST_LINES + 1) * one
    assert heights[3] > heights[2]
    assert composer.editor.verticalScrollBar().maximum() > 0
    composer.set_text("one\ntwo")
    QApplication.processEvents()
    assert composer.editor.verticalScrollBar().maximum() == 0
    composer.clear()
    qtbot.waitUntil(lambda: composer.editor.height() == one)


def test_each_paragraph_runs_its_own_way(composer: Composer) -> None:
    composer.set_text("English\nمرحبا بالعالم\nEnglish again")
    QApplication.processEvents()
    block = composer.editor.document().firstBlock()
    places = []
    while block.isValid():
        places.append(block.layout().lineAt(0).naturalTextRect().x())
        block = block.next()
    assert places[0] == places[2] < 10
    assert places[1] > composer.editor.viewport().width() / 2


@pytest.mark.parametrize("scale", [1.0, 1.6])
@pytest.mark.parametrize("width", [360, 560, 1200])
def test_nothing_is_cut_off_at_any_width(
    composer: Composer, page: QWidget, manager: ThemeManager, qapp: QApplication, width: int, scale: float
) -> None:
    i18n.install(qapp, "pseudo")
    manager.apply(qapp, "light", scale)
    composer.set_drafter(True, True, "16")
    page.resize(width, 700)
    for _ in range(3):
        QApplication.processEvents()
    frame = composer.frame
    chips = composer.chips
    for part in (chips.drafter, chips.thinking, chips.drafted, composer.send_button):
        where = part.rect().translated(part.mapTo(frame, QPoint(0, 0)))
        assert frame.rect().contains(where), (part, where, frame.rect())
        assert part.size().width() >= min(part.sizeHint().width(), frame.width())
    for chip in (chips.drafter, chips.thinking, chips.drafted):
        assert not chip.geometry().intersects(composer.send_button.geometry().translated(-chips.pos()))
    manager.apply(qapp, "light", 1.0)


def test_the_bar_of_an_edit_is_as_high_as_its_button(composer: Composer, qtbot: QtBot) -> None:
    composer.begin_edit("An earlier message")
    bar = composer.edit_bar
    qtbot.waitUntil(bar.isVisible)
    assert bar.height() >= bar.button.height() > 0
