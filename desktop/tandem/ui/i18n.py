"""Languages: which one, its translators, and numbers written its way.

Every text for people goes through `self.tr("literal")` in the class that it stands in, or through
`QCoreApplication.translate("Context", "literal")`; a change of language at run time reaches every widget as
`QEvent.Type.LanguageChange`. `packaging/translations.py` collects the texts.
"""

from __future__ import annotations

import re
from typing import Final, Literal, cast, get_args

from PySide6.QtCore import QCoreApplication, QLibraryInfo, QLocale, QObject, QTranslator

from tandem import paths

Language = Literal["en", "ko"]
Choice = Literal["system", "en", "ko"]

PSEUDO: Final = "pseudo"
TRANSLATORS_NAME: Final = "tandem-translator"
ACCENTS: Final = str.maketrans("AEIOUYaeiouycnsz", "ÅÉÎÕÛÝåéîõûýçñšž")
# What must come through untouched: {placeholders}, %n and %1, &mnemonics, tags.
KEPT: Final = re.compile(r"\{[^{}]*\}|%n|%L?\d+|&\w|<[^<>]*>")


def system_language() -> Language:
    """The first of the user's languages that Tandem speaks, English if it speaks none."""
    for name in ui_languages():
        code = name.replace("_", "-").split("-")[0].lower()
        if code in get_args(Language):
            return cast("Language", code)
    return "en"


def ui_languages() -> list[str]:
    """The languages that the user set, the most wanted first, such as "ko-KR"."""
    return QLocale.system().uiLanguages()


def install(app: QCoreApplication, choice: str = "system") -> str:
    """Makes the app speak a language; widgets hear of it by `LanguageChange`. Returns the language.

    Args:
        app: The application; it owns the translators, and those of an earlier call are removed.
        choice: "system", "en", "ko", or "pseudo" (longer, accented texts that show what is not translated or cut
            off); anything else counts as "system".
    """
    language: str = choice if choice in (*get_args(Language), PSEUDO) else system_language()
    old = app.findChildren(QTranslator, TRANSLATORS_NAME)
    locale = QLocale(QLocale.Language.Korean) if language == "ko" else QLocale(QLocale.Language.English)
    if language in ("en", PSEUDO) and QLocale.system().language() == QLocale.Language.English:
        locale = QLocale.system()
    QLocale.setDefault(locale)
    new: list[QTranslator] = []
    if language == PSEUDO:
        new.append(PseudoTranslator(app))
    else:
        own = QTranslator(app)
        qt = QTranslator(app)
        if qt.load(f"qtbase_{language}", QLibraryInfo.path(QLibraryInfo.LibraryPath.TranslationsPath)):
            new.append(qt)
        if own.load(f"tandem_{language}", str(paths.resources() / "translations")):
            new.append(own)
    for translator in old:
        app.removeTranslator(translator)
        translator.deleteLater()
    for translator in new:
        translator.setObjectName(TRANSLATORS_NAME)
        app.installTranslator(translator)
    return language


class PseudoTranslator(QTranslator):
    """Wraps each text in brackets, accents its letters and makes it about 40 % longer, for tests of layouts."""

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)

    def isEmpty(self) -> bool:  # noqa: N802 - Qt's name
        """It knows every text."""
        return False

    def translate(self, context: str, text: str, disambiguation: str | None = None, n: int = -1) -> str:  # noqa: ARG002
        """The text as `pseudo` makes it."""
        return pseudo(text)


def pseudo(text: str) -> str:
    """A text in the pseudo-language; placeholders, `%n`, mnemonics and tags stay as they are."""
    if not text.strip():
        return text
    parts, at = [], 0
    for match in KEPT.finditer(text):
        parts += [text[at : match.start()].translate(ACCENTS), match.group()]
        at = match.end()
    parts.append(text[at:].translate(ACCENTS))
    return f"⟦{''.join(parts)}{'·' * max(1, round(len(text) * 0.4) - 2)}⟧"


def number(value: float, digits: int = 0) -> str:
    """A number in the language in use, with so many digits after the point."""
    return QLocale().toString(float(value), ord("f"), digits)


def percent(share: float, digits: int = 0) -> str:
    """A share of 1 as per cent: 0.62 is "62%"."""
    return QCoreApplication.translate("Numbers", "{number}%").format(number=number(share * 100, digits))


def size(amount: int) -> str:
    """Bytes for people, in powers of 1,024 with their names: "3.2 GiB"."""
    return QLocale().formattedDataSize(amount, 1)


def duration(seconds: float) -> str:
    """A time for people: "85 ms", "3.1 s", "12.0 s", "3 min 5 s"."""
    if seconds < 0.9995:
        return QCoreApplication.translate("Numbers", "{number} ms").format(number=number(seconds * 1000))
    if seconds >= 59.95:
        minutes, rest = divmod(round(seconds), 60)
        text = QCoreApplication.translate("Numbers", "{minutes} min {seconds} s")
        return text.format(minutes=number(minutes), seconds=number(rest))
    return QCoreApplication.translate("Numbers", "{seconds} s").format(seconds=number(seconds, 1))
