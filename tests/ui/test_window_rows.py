"""The window for everybody: names, the Tab key, and room for every text on a small screen in a long language."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from PySide6.QtWidgets import QAbstractScrollArea, QApplication, QScrollBar, QWidget
from pytestqt.qtbot import QtBot

from support import a11y
from support.chat_templates import GEMMA4_E2B
from support.desk import ENDLESS, endless_pair
from support.handset import CHANNEL_CLOSE, CHANNEL_OPEN, NEWLINE, Pair, Script
from support.windows import SMALL, User, window
from tandem.settings import PairChoice
from tandem.ui import i18n
from tandem.ui.popover import Popover
from tandem.ui.session_state import Notice
from tandem.ui.shortcuts import ShortcutsDialog

LAPTOP = (1366, 768)
REST_MS = 1000
LANGUAGES = ("en", "ko", "pseudo")


@pytest.fixture(scope="module")
def endless_files(tmp_path_factory: pytest.TempPathFactory) -> Pair:
    return endless_pair(tmp_path_factory.mktemp("endless"))


@pytest.fixture(scope="module")
def thinker(tmp_path_factory: pytest.TempPathFactory) -> Pair:
    script = Script()
    script.say(NEWLINE, CHANNEL_OPEN, b"thought\n", "Let me ", "see.", CHANNEL_CLOSE, b"\n", "It is ", "four.")
    return script.write(tmp_path_factory.mktemp("thinker"), chat_template=GEMMA4_E2B)


@pytest.fixture
def user(qtbot: QtBot) -> Iterator[User]:
    with window(qtbot) as somebody:
        yield somebody


def speak(user: User, language: str) -> None:
    """The pseudo-language cannot be chosen in the settings."""
    if language == i18n.PSEUDO:
        i18n.install(QApplication.instance(), i18n.PSEUDO)  # type: ignore[arg-type]  # it is one
    else:
        user.controller.change_settings(language=language)


def resize(user: User, size: tuple[int, int]) -> None:
    user.window.resize(*size)
    user.wait(lambda: (user.window.width(), user.window.height()) == size)


def faults(top: QWidget) -> list[str]:
    """What does not fit: texts that are cut, and what can be scrolled sideways."""
    found = a11y.cut(top)
    for area in top.findChildren(QAbstractScrollArea):
        bar: QScrollBar = area.horizontalScrollBar()
        if area.isVisible() and bar.maximum() > bar.minimum():
            found.append(f"it scrolls sideways: {a11y.describe(area)}")
    return found


def all_fits(user: User, when: object, top: QWidget | None = None) -> None:
    """Everything fits, at the latest when the layouts have come to rest."""
    with contextlib.suppress(user.qtbot.TimeoutError):
        user.wait(lambda: not faults(top or user.window), timeout=REST_MS)
    assert faults(top or user.window) == [], when


# What there is to see


def empty_chat(user: User) -> None:
    """Nothing yet."""


def answers(user: User) -> None:
    for text in ("Tell me a short story about a fox.", "List seven animals."):
        user.ask(text)
    user.answered(lambda: user.press("Ctrl+R"))


def drafted_tokens(user: User) -> None:
    user.ask()
    user.press("Ctrl+Shift+D")


def editing(user: User) -> None:
    user.ask()
    user.press("Ctrl+E")


def searching(user: User) -> None:
    user.ask()
    user.press("Ctrl+K")
    user.type("fox")
    user.wait(user.chat.sidebar.found_label.isVisible)


def nothing_found(user: User) -> None:
    user.press("Ctrl+K")
    user.type("zebra")
    user.wait(lambda: user.chat.sidebar.stack.currentWidget() is user.chat.sidebar.empty)


def failed_answer(user: User) -> None:
    user.press("Ctrl+L")
    user.chat.composer.set_text("fox " * 3000)  # more than the context holds
    user.answered(lambda: user.press("Return"))
    assert user.answer.state == "failed"
    user.kill_engine()
    user.notice("outside")


def notices(user: User) -> None:
    user.controller.notice.emit(Notice("info", "Deleted “Foxes”.", "", "undo-delete", "Undo", 1))
    user.controller.notice.emit(Notice("warn", "Something of weight. " * 6, "This is what can be done about it."))
    user.controller.notice.emit(Notice("bad", "The engine crashed.", "Try again.", "load-again", "Load again"))


def a_full_context(user: User) -> None:
    user.chat.header.set_context(1900, 2048)


def models(user: User) -> None:
    user.press("Ctrl+2")
    user.wait(lambda: "memory free" in user.window.pages.models.head.here.text())


def models_with_files(user: User) -> None:
    models(user)
    pair = user.controller.pair.loaded
    assert pair is not None
    user.window.pages.models.files.take([str(path) for path in Path(__file__).parents[2].glob("resources/demo/*.gguf")])
    user.wait(user.window.pages.models.files.load.isEnabled)


def models_refused(user: User) -> None:
    models(user)
    user.controller.load_pair(PairChoice("files", "/a/long/way/to/a/file/that/is/not/there/model-of-mine.gguf"))
    user.wait(lambda: user.controller.pair.kind == "failed")


def compare(user: User) -> None:
    user.ask()
    user.press("Ctrl+3")


def settings(user: User) -> None:
    user.press("Ctrl+4")


def no_sidebar(user: User) -> None:
    user.ask()
    user.press("Ctrl+B")


SIGHTS: list[Callable[[User], None]] = [
    empty_chat,
    answers,
    drafted_tokens,
    editing,
    searching,
    nothing_found,
    failed_answer,
    notices,
    a_full_context,
    models,
    models_with_files,
    models_refused,
    compare,
    settings,
    no_sidebar,
]


@pytest.mark.parametrize("sight", SIGHTS)
def test_every_text_has_room_and_every_control_a_name(user: User, sight: Callable[[User], None]) -> None:
    sight(user)
    for language in LANGUAGES:
        speak(user, language)
        for size in (SMALL, LAPTOP):
            resize(user, size)
            all_fits(user, (language, size))
            assert a11y.nameless(user.window) == [], (language, size)


@pytest.mark.parametrize("sight", SIGHTS)
def test_the_tab_key_reaches_every_control(user: User, sight: Callable[[User], None]) -> None:
    sight(user)
    resize(user, SMALL)
    assert a11y.unreachable(user.window) == []


def test_the_welcome_fits_and_is_reached(qtbot: QtBot) -> None:
    with window(qtbot, load=False) as user:
        user.wait(lambda: "memory free" in user.chat.welcome.here.text())
        for language in LANGUAGES:
            speak(user, language)
            for size in (SMALL, LAPTOP):
                resize(user, size)
                all_fits(user, (language, size))
        assert a11y.walk(user.window) == []


def test_a_load_fits_and_is_reached(qtbot: QtBot, endless_files: Pair) -> None:
    """In the middle of a load, held there."""
    with window(qtbot, endless_files) as user:
        seen: list[str] = []

        def look(_: object) -> None:
            if user.chat.load_bar.isVisible():
                seen.extend(a11y.cut(user.window) + a11y.nameless(user.window))
                seen.append("looked")

        resize(user, SMALL)
        for language in LANGUAGES:
            speak(user, language)
            user.controller.loading.connect(look)
            user.controller.load_again()
            user.loaded()
            user.controller.loading.disconnect(look)
        assert set(seen) == {"looked"}


def test_a_running_answer_with_a_message_that_waits_fits(qtbot: QtBot, endless_files: Pair) -> None:
    with window(qtbot, endless_files, context=32_768, sampling=ENDLESS) as user:
        user.begin()
        user.send("And then? " * 20)
        for language in LANGUAGES:
            speak(user, language)
            resize(user, SMALL)
            all_fits(user, language)
        assert a11y.nameless(user.window) == []


def test_a_thought_that_is_open_fits(qtbot: QtBot, thinker: Pair) -> None:
    with window(qtbot, thinker, thinking=True) as user:
        answer = user.ask("What is 2 + 2?")
        user.follow("thought", answer.id)
        for language in LANGUAGES:
            speak(user, language)
            resize(user, SMALL)
            all_fits(user, language)


@pytest.mark.qt_log_ignore(r"This plugin does not support (raise\(\)|grabbing the keyboard)")
def test_boxes_and_panels_fit_and_are_reached(user: User) -> None:
    user.ask()
    resize(user, SMALL)
    for language in LANGUAGES:
        speak(user, language)
        panel = user.chat.header.explain_drafter()
        user.child(Popover)
        all_fits(user, language, panel)
        assert a11y.nameless(panel) == [], language
        assert panel.isAncestorOf(user.focus or user.window)
        panel.close()
        user.window.show_shortcuts()
        dialog = user.child(ShortcutsDialog)
        dialog.resize(min(dialog.width(), SMALL[0]), min(dialog.height(), SMALL[1]))
        all_fits(user, language, dialog)
        assert a11y.walk(dialog) == [], language
        dialog.accept()
        user.back()


@pytest.mark.parametrize("scale", [0.8, 1.0, 1.3, 1.6])
def test_the_smallest_window_fits_a_laptop_at_150_per_cent_and_holds_everything(user: User, scale: float) -> None:
    user.ask()
    user.controller.change_settings(text_scale=scale)
    # what is half again as long as English, and half again as large, may break
    for language in LANGUAGES if scale < 1.6 else LANGUAGES[:2]:
        speak(user, language)
        for name in ("chat", "models", "compare", "settings"):
            user.window.show_page(name)
            least = user.window.minimumSize()
            assert least.width() <= SMALL[0]
            assert least.height() <= SMALL[1]
            resize(user, (least.width(), least.height()))
            all_fits(user, (language, name))


@pytest.mark.parametrize("sight", [answers, notices, models_refused, settings, compare, a_full_context])
def test_larger_text_fits_on_a_laptop(user: User, sight: Callable[[User], None]) -> None:
    sight(user)
    user.controller.change_settings(text_scale=1.3)
    for language in LANGUAGES:
        speak(user, language)
        resize(user, LAPTOP)
        all_fits(user, language)


def test_an_empty_chat_needs_no_scrolling_on_a_small_screen(user: User) -> None:
    resize(user, SMALL)
    for language in LANGUAGES[:2]:
        speak(user, language)
        (area,) = user.chat.suggestions.findChildren(QAbstractScrollArea)
        user.wait(lambda area=area: area.isVisible() and area.verticalScrollBar().maximum() == 0)


def test_the_legend_of_drafted_tokens_breaks_where_there_is_no_room(user: User) -> None:
    user.ask()
    user.press("Ctrl+Shift+D")
    legend = user.transcript._legend
    for scale in (1.0, 1.3, 1.6):
        user.controller.change_settings(text_scale=scale)
        user.wait(lambda scale=scale: user.window._manager.px(100) == round(100 * scale))  # a moment later
        for language in LANGUAGES:
            speak(user, language)
            for size in (LAPTOP, (user.window.minimumWidth(), 500)):
                resize(user, size)
                user.settled()
                assert legend.height() == legend.heightForWidth(legend.width())
                assert legend.width() == user.transcript.width()
                for line in legend.lines(legend.width()):
                    assert sum(width for *_, width in line) <= legend.width() or len(line) == 1
    assert len(legend.lines(2000)) == 1
    assert len(legend.lines(300)) == 3


def test_no_text_keeps_its_old_size(user: User) -> None:
    """Larger text is larger everywhere, in fields that are empty too."""
    user.ask()
    for name in ("models", "compare", "settings", "chat"):
        user.window.show_page(name)
    before = {widget: widget.font().pixelSize() for widget in user.window.findChildren(QWidget)}
    user.controller.change_settings(text_scale=1.6)
    user.settled()
    after = {widget: widget.font().pixelSize() for widget in user.window.findChildren(QWidget)}
    small = [widget for widget in before.keys() & after.keys() if after[widget] < 1.4 * before[widget]]
    # Qt's own boxes around scroll bars show no text.
    assert [a11y.describe(one) for one in small if not one.objectName().endswith("container")] == []


def test_what_has_the_keyboard_is_seen(user: User) -> None:
    """Going on with Tab changes the picture each time: nothing has the keyboard unseen."""
    user.ask()
    resize(user, LAPTOP)
    user.press("Ctrl+L")
    for _ in range(14):
        before = user.window.grab().toImage()
        user.press("Tab")
        user.qtbot.waitUntil(lambda: user.focus is not None)
        assert user.window.grab().toImage() != before, a11y.describe(user.focus or user.window)
