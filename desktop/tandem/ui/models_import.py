"""The question before files are taken in: which of them, and whether they are copied, linked or used where they are."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final, Literal

from PySide6.QtCore import QCoreApplication, QEvent, QSize, Qt, Signal
from PySide6.QtWidgets import (
    QButtonGroup,
    QCheckBox,
    QDialog,
    QFrame,
    QHBoxLayout,
    QRadioButton,
    QScrollArea,
    QVBoxLayout,
    QWidget,
)

from tandem.models.catalog import Catalog, catalog
from tandem.ui.errors_text import localised
from tandem.ui.i18n import size as in_bytes
from tandem.ui.kit import PrimaryButton, QuietButton, label, plain_tip, spaced
from tandem.ui.models_card_parts import Elided
from tandem.ui.models_state_text import path_text
from tandem.ui.page import Content, Speaking

if TYPE_CHECKING:
    from tandem.models.imports import Found
    from tandem.ui.theme import ThemeManager

# Under a name of its own: after `QCoreApplication.translate(…)` lupdate puts the next `self.tr` into a false context.
translate = QCoreApplication.translate

How = Literal["copy", "link", "in-place"]
HOWS: Final[tuple[How, ...]] = ("link", "copy", "in-place")

WIDTH: Final = 560
_LEAST_HIGH: Final = 72
_INDENT: Final = 8
_AROUND: Final = QSize(48, 96)
"""Room around a dialog on a small screen, in pixels."""


class Sheet(QDialog):
    """A dialog with a title, a list, and buttons; it fits the screen, and what has no room there scrolls.

    Attributes:
        list: The files.
        foot: Below them; it scrolls too.
    """

    def __init__(self, manager: ThemeManager, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._manager = manager
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self.title = label(size="title", bold=True, wrap=True)
        self.text = label(role="muted", wrap=True)
        self._inner = Content()
        inner = QVBoxLayout(self._inner)
        spaced(inner, manager, "m", ("", "", "s", ""))
        self.list, self.foot = QVBoxLayout(), QVBoxLayout()
        spaced(self.list, manager, "m")
        spaced(self.foot, manager, "xs")
        inner.addWidget(self.text)
        inner.addLayout(self.list)
        inner.addStretch(1)
        inner.addLayout(self.foot)
        self._content = inner
        self.area = QScrollArea()
        self.area.setWidget(self._inner)
        self.area.setWidgetResizable(True)
        self.area.setFrameShape(QFrame.Shape.NoFrame)
        self.area.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.area.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self.area.viewport().setAutoFillBackground(False)
        self._inner.setAutoFillBackground(False)
        self.accept_button = PrimaryButton(manager, "", "check")
        self.accept_button.setDefault(True)
        self.accept_button.clicked.connect(self.accept)
        self.cancel = QuietButton(manager, "")
        self.cancel.clicked.connect(self.reject)
        buttons = QHBoxLayout()
        spaced(buttons, manager, "s")
        buttons.addStretch(1)
        buttons.addWidget(self.cancel)
        buttons.addWidget(self.accept_button)
        self._column = column = QVBoxLayout(self)
        spaced(column, manager, "m", "xl")
        column.addWidget(self.title)
        column.addWidget(self.area, 1)
        column.addLayout(buttons)

    def fit(self) -> None:
        """Is as large as what it holds, where the screen has room for it; what has no room is scrolled to."""
        parent = self.parentWidget()
        screen = (parent.window() if parent is not None else self).screen().availableSize() - _AROUND
        theme = self._manager.theme
        width = min(theme.px(WIDTH), screen.width())
        for part in self.findChildren(QWidget):
            part.ensurePolished()  # a label is higher with the sheet's font and padding than without
            if (layout := part.layout()) is not None:
                layout.invalidate()
        self.area.setMinimumHeight(theme.px(_LEAST_HIGH))
        inner = width - 2 * theme.space.xl
        high = max(self._content.totalHeightForWidth(inner), self.area.minimumHeight())
        around = 2 * theme.space.xl + 2 * self._column.spacing()
        rest = self.title.heightForWidth(inner) + self.cancel.sizeHint().height() + around
        self.resize(width, min(high + rest, screen.height()))

    def retranslate(self) -> None:
        """Texts; a subclass adds its own."""
        self.cancel.setText(self.tr("Cancel"))

    def changeEvent(self, event: QEvent) -> None:  # noqa: N802 - Qt's name
        """Follows the language."""
        if event.type() == QEvent.Type.LanguageChange:
            self.retranslate()
        super().changeEvent(event)


class FoundRow(Speaking):
    """A file that was looked at, with a box to tick.

    Attributes:
        found: What was found.
        box: Whether it is taken in.
    """

    def __init__(self, manager: ThemeManager, found: Found, known: Catalog, parent: QWidget | None = None) -> None:
        super().__init__(manager, parent)
        self.found: Final = found
        self._known = known
        self.box = QCheckBox()
        self.box.setChecked(not found.installed)
        self.box.setEnabled(not found.installed)
        self.name = Elided(manager, "body", "text")
        self._file = path_text(found.path.name)
        self.name.set_whole(self._file)
        self.name.setToolTip(plain_tip(path_text(found.path)))
        self.detail = label(size="small", role="muted", wrap=True)
        self.known = label(size="small", role="good", wrap=True)
        self.notes = label(size="small", role="warn", wrap=True)
        words = QVBoxLayout()
        spaced(words, manager, "xs")
        for part in (self.name, self.known, self.detail, self.notes):
            words.addWidget(part)
        row = QHBoxLayout(self)
        spaced(row, manager, "s")
        row.addWidget(self.box, 0, Qt.AlignmentFlag.AlignTop)
        row.addLayout(words, 1)
        self.retranslate()

    def retranslate(self) -> None:
        """What it is."""
        found = self.found
        known = ""
        pair = self._known.pair(found.key) if found.key else None
        if pair is not None:
            known = self.tr("Recognised by its sha256: {name}, {role}, from {source}.").format(
                name=self._known.size_of(pair).name, role=role_name(found.role), source=pair.source
            )
        if found.installed:
            known = " ".join((known, self.tr("It is here already."))).strip()
        self.known.setText(known)
        self.known.setVisible(bool(known))
        parts = (
            "" if pair is not None else role_name(found.role),
            found.name or "",
            found.architecture,
            found.quantisation,
            in_bytes(found.bytes),
            found.licence or "",
        )
        self.detail.setText(" · ".join(part for part in parts if part))
        notes = " ".join(localised(note)[0] for note in found.notes)
        self.notes.setText(notes)
        self.notes.setVisible(bool(notes))
        self.box.setAccessibleName(self.tr("Import {name}").format(name=self._file))
        self.box.setAccessibleDescription(f"{known} {self.detail.text()} {notes}".strip())


class ImportDialog(Sheet):
    """Asks once for all files that were looked at.

    Attributes:
        taken: A file that was looked at, and how it is taken in; once for each that is ticked.
    """

    taken = Signal(object, str)

    def __init__(
        self,
        manager: ThemeManager,
        found: Sequence[Found],
        parent: QWidget | None = None,
        known: Catalog | None = None,
    ) -> None:
        super().__init__(manager, parent)
        known = known or catalog()
        self.rows: Final = tuple(FoundRow(manager, each, known) for each in found)
        for row in self.rows:
            self.list.addWidget(row)
            row.box.toggled.connect(self._count)
        self._group = QButtonGroup(self)
        self.hows: Final = {how: QRadioButton() for how in HOWS}
        self._helps = {how: label(size="small", role="muted", wrap=True) for how in HOWS}
        self._question = label(bold=True, wrap=True)
        self.foot.addWidget(self._question)
        for how, button in self.hows.items():
            self._group.addButton(button)
            indent, choice = QHBoxLayout(), QVBoxLayout()
            spaced(indent, manager, "", ("xl", "", "", ""))
            spaced(choice, manager, "")
            indent.addSpacing(_INDENT)
            indent.addWidget(self._helps[how], 1)
            choice.addWidget(button)
            choice.addLayout(indent)
            self.foot.addLayout(choice)
        self.hows["link"].setChecked(True)
        self.accepted.connect(self._take)
        self.retranslate()
        self.fit()

    @property
    def how(self) -> How:
        """The chosen way."""
        return next(how for how, button in self.hows.items() if button.isChecked())

    def retranslate(self) -> None:
        """Sets every text anew."""
        super().retranslate()
        self.setWindowTitle(self.tr("Import files"))
        self.title.setText(self.tr("Import files"))
        self.text.setText(self.tr("What each file is was read from its contents, not from its name."))
        self._question.setText(self.tr("How to import"))
        texts: dict[How, tuple[str, str]] = {
            "link": (
                self.tr("Link"),
                self.tr("A second name for the same bytes, which takes no room. From another drive it is a copy."),
            ),
            "copy": (self.tr("Copy"), self.tr("Tandem gets files of its own, which take as much room again.")),
            "in-place": (
                self.tr("Use where they are"),
                self.tr("Nothing is copied. When another program removes or changes them, they are gone here too."),
            ),
        }
        for how, (text, help_text) in texts.items():
            self.hows[how].setText(text)
            self.hows[how].setAccessibleDescription(help_text)
            self._helps[how].setText(help_text)
        self._count()

    def _count(self) -> None:
        chosen = [row for row in self.rows if row.box.isChecked()]
        count = translate("ImportDialog", "Import %n file(s)", "", len(chosen))
        self.accept_button.setText(count)
        self.accept_button.setEnabled(bool(chosen))

    def _take(self) -> None:
        for row in self.rows:
            if row.box.isChecked():
                self.taken.emit(row.found, self.how)


def role_name(role: str) -> str:
    """What a file is in a pair."""
    table: dict[str, Callable[[], str]] = {
        "target": lambda: translate("ImportDialog", "target"),
        "drafter": lambda: translate("ImportDialog", "drafter"),
        "model": lambda: translate("ImportDialog", "model without a drafter"),
    }
    return table[role]()
