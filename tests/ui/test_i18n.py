from __future__ import annotations

import re
from pathlib import Path

import pytest
from PySide6.QtCore import QCoreApplication, QEvent, QLocale, QObject, QTranslator
from PySide6.QtWidgets import QApplication, QDialogButtonBox, QLabel, QWidget
from pytestqt.qtbot import QtBot

from tandem import paths
from tandem.ui import i18n


class Speaker(QWidget):
    """Says one text and how often it was told to say it again."""

    def __init__(self) -> None:
        super().__init__()
        self.changes = 0

    def changeEvent(self, event: QEvent) -> None:  # noqa: N802 - Qt's name
        self.changes += event.type() == QEvent.Type.LanguageChange
        super().changeEvent(event)


class Base(QObject):
    def said(self) -> str:
        return self.tr("Settings")

    def counted(self, count: int) -> str:
        return self.tr("%n message(s)", "", count)


class Derived(Base):
    pass


class Dictionary(QTranslator):
    """Knows the texts of `Base` only."""

    def isEmpty(self) -> bool:  # noqa: N802 - Qt's name
        return False

    def translate(self, context: str, text: str, _disambiguation: str | None = None, n: int = -1) -> str | None:
        return f"{context}: {text} ({n})" if context == "Base" else None


def translators(app: QApplication) -> list[QTranslator]:
    return app.findChildren(QTranslator, i18n.TRANSLATORS_NAME)


@pytest.mark.parametrize("choice", ["en", "ko", i18n.PSEUDO])
def test_a_language_is_installed(choice: str, qapp: QApplication) -> None:
    assert i18n.install(qapp, choice) == choice
    assert translators(qapp)


def test_qt_s_own_texts_follow(qapp: QApplication, qtbot: QtBot) -> None:
    i18n.install(qapp, "ko")
    box = QDialogButtonBox(QDialogButtonBox.StandardButton.Cancel)
    qtbot.addWidget(box)
    assert box.button(QDialogButtonBox.StandardButton.Cancel).text() == "취소"


def test_a_change_reaches_every_widget_and_leaves_no_translator_behind(qapp: QApplication, qtbot: QtBot) -> None:
    widget = Speaker()
    child = QLabel("a", widget)
    qtbot.addWidget(widget)
    widget.show()
    counts = []
    for _ in range(3):
        for choice in ("ko", i18n.PSEUDO, "en"):
            widget.changes = 0
            i18n.install(qapp, choice)
            qtbot.waitUntil(lambda: widget.changes >= 1, timeout=2000)
            QApplication.sendPostedEvents(None, QEvent.Type.DeferredDelete.value)
        counts.append(len(translators(qapp)))
    assert counts[0] == counts[-1] <= 2
    assert child.text() == "a"


def test_an_unknown_choice_is_the_system_s(qapp: QApplication, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(i18n, "ui_languages", lambda: ["ko-KR", "en-US"])
    assert i18n.install(qapp, "klingon") == "ko"


@pytest.mark.parametrize(
    ("languages", "language"),
    [
        (["ko-KR", "en-US"], "ko"),
        (["en-GB", "ko-KR"], "en"),
        (["fr-FR", "ko"], "ko"),
        (["de_DE"], "en"),
        (["kok-IN"], "en"),
        (["C"], "en"),
        ([], "en"),
    ],
)
def test_the_system_s_language(languages: list[str], language: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(i18n, "ui_languages", lambda: languages)
    assert i18n.system_language() == language


def test_a_missing_translation_is_no_fault(qapp: QApplication, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(paths, "resources", lambda: tmp_path)
    assert i18n.install(qapp, "ko") == "ko"
    assert QCoreApplication.translate("Nowhere", "Settings") == "Settings"


def test_a_text_of_a_base_class_is_found_from_a_derived_one(qapp: QApplication) -> None:
    dictionary = Dictionary(qapp)
    qapp.installTranslator(dictionary)
    assert Derived().said() == Base().said() == "Base: Settings (-1)"
    # Not so a plural: the first class asked writes the number, and that counts as found. test_translations.py
    # therefore refuses plurals in classes that others derive from.
    assert Base().counted(3) == "Base: 3 message(s) (3)"
    assert Derived().counted(3) == "3 message(s)"
    qapp.removeTranslator(dictionary)
    dictionary.deleteLater()


# -- the pseudo-language


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("Loaded {file} in {seconds:.1f} s", ["{file}", "{seconds:.1f}"]),
        ("%n message(s)", ["%n"]),
        ("&Open", ["&O"]),
        ("Use <b>this</b>", ["<b>", "</b>"]),
        ("%1 of %L2", ["%1", "%L2"]),
    ],
)
def test_pseudo_keeps_what_is_not_text(text: str, kept: list[str]) -> None:
    made = i18n.pseudo(text)
    assert [part for part in kept if part not in made] == []
    assert made != text


def test_pseudo_is_longer_accented_and_bracketed() -> None:
    made = i18n.pseudo("Settings")
    assert re.fullmatch(r"⟦.*⟧", made)
    assert "Settings" not in made
    assert len(made) >= 1.3 * len("Settings")
    assert (i18n.pseudo(""), i18n.pseudo("  ")) == ("", "  ")


def test_pseudo_reaches_tr_and_format(qapp: QApplication) -> None:
    i18n.install(qapp, i18n.PSEUDO)
    assert Base().said() == i18n.pseudo("Settings")
    assert Base().counted(2).startswith("⟦2 ")
    text = QCoreApplication.translate("Context", "Loaded {file}").format(file="a.gguf")
    assert "a.gguf" in text


# -- numbers


def test_numbers_in_the_language_s_way() -> None:
    QLocale.setDefault(QLocale(QLocale.Language.English, QLocale.Country.UnitedStates))
    assert (i18n.number(1234567), i18n.number(12.345, 1), i18n.number(-0.5, 2)) == ("1,234,567", "12.3", "-0.50")
    QLocale.setDefault(QLocale(QLocale.Language.German))
    assert i18n.number(1234.5, 1) == "1.234,5"


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "0 ms"),
        (0.0854, "85 ms"),
        (0.999, "999 ms"),
        (0.9996, "1.0 s"),
        (3.14, "3.1 s"),
        (42.42, "42.4 s"),
        (59.94, "59.9 s"),
        (59.96, "1 min 0 s"),
    ],
)
def test_durations(seconds: float, text: str) -> None:
    QLocale.setDefault(QLocale(QLocale.Language.English))
    assert i18n.duration(seconds) == text


def test_long_durations() -> None:
    QLocale.setDefault(QLocale(QLocale.Language.English))
    assert (i18n.duration(185), i18n.duration(3600)) == ("3 min 5 s", "60 min 0 s")


def test_shares_and_sizes() -> None:
    QLocale.setDefault(QLocale(QLocale.Language.English))
    assert (i18n.percent(0.624), i18n.percent(0.0051, 1)) == ("62%", "0.5%")
    assert (i18n.size(3_435_973_837), i18n.size(1536)) == ("3.2 GiB", "1.5 KiB")
