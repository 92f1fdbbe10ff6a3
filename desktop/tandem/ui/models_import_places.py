"""Files that other programs have put on this disk: which of them are to be looked at."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final

from PySide6.QtCore import QCoreApplication, Qt, Signal
from PySide6.QtWidgets import QCheckBox, QHBoxLayout, QVBoxLayout, QWidget

from tandem.models.catalog import Catalog, catalog
from tandem.ui.i18n import size as in_bytes
from tandem.ui.kit import label, plain_tip, spaced
from tandem.ui.models_card_parts import Elided
from tandem.ui.models_import import Sheet
from tandem.ui.models_state_text import path_text
from tandem.ui.page import Speaking

if TYPE_CHECKING:
    from tandem.models.places import Known
    from tandem.ui.theme import ThemeManager

# Under a name of its own: after `QCoreApplication.translate(…)` lupdate puts the next `self.tr` into a false context.
translate = QCoreApplication.translate


class PlaceRow(Speaking):
    """A file of another program's, with a box to tick.

    Attributes:
        place: The file.
        box: Whether it is looked at.
    """

    def __init__(self, manager: ThemeManager, place: Known, known: Catalog, parent: QWidget | None = None) -> None:
        super().__init__(manager, parent)
        self.place: Final = place
        self._catalog = known
        self._known = known.by_sha256(place.sha256) if place.sha256 else None
        self.box = QCheckBox()
        self.box.setChecked(self._known is not None)
        self.name = Elided(manager, "body", "text")
        self.name.set_whole(place.name)
        self.name.setToolTip(plain_tip(path_text(place.path)))
        self.detail = label(size="small", role="muted", wrap=True)
        words = QVBoxLayout()
        spaced(words, manager, "xs")
        words.addWidget(self.name)
        words.addWidget(self.detail)
        row = QHBoxLayout(self)
        spaced(row, manager, "s")
        row.addWidget(self.box, 0, Qt.AlignmentFlag.AlignTop)
        row.addLayout(words, 1)
        self.retranslate()

    def retranslate(self) -> None:
        """Whose it is."""
        owners: dict[str, Callable[[], str]] = {
            "hub-cache": lambda: self.tr("in the Hub's cache"),
            "lm-studio": lambda: self.tr("of LM Studio"),
            "ollama": lambda: self.tr("of Ollama"),
            "llama.cpp": lambda: self.tr("of llama.cpp"),
            "downloads": lambda: self.tr("among the downloads"),
        }
        known = ""
        if self._known is not None:
            known = self.tr("probably {name}").format(name=self._known.size.name)
        parts = (in_bytes(self.place.bytes), owners[self.place.where](), known)
        self.detail.setText(" · ".join(part for part in parts if part))
        self.box.setAccessibleName(self.tr("Look at {name}").format(name=self.name.whole))
        self.box.setAccessibleDescription(self.detail.text())


class PlacesDialog(Sheet):
    """Lists what was found.

    Attributes:
        chosen: Paths of the files that are to be looked at.
    """

    chosen = Signal(list)

    def __init__(
        self,
        manager: ThemeManager,
        places: Sequence[Known],
        parent: QWidget | None = None,
        known: Catalog | None = None,
    ) -> None:
        super().__init__(manager, parent)
        known = known or catalog()
        self.rows: Final = tuple(PlaceRow(manager, place, known) for place in places)
        for row in self.rows:
            self.list.addWidget(row)
            row.box.toggled.connect(self._count)
        self.accepted.connect(self._choose)
        self.retranslate()
        self.fit()

    def retranslate(self) -> None:
        """Sets every text anew."""
        super().retranslate()
        self.setWindowTitle(self.tr("Files of other programs"))
        self.title.setText(self.tr("Files of other programs"))
        text = self.tr("Choose what Tandem is to look at. Reading a file of some GiB takes a few seconds.")
        if not self.rows:
            text = self.tr(
                "None was found in the Hub's cache, LM Studio, Ollama, llama.cpp or your Downloads folder. Files "
                "elsewhere can be dropped on the page Models."
            )
        self.text.setText(text)
        self._count()

    def _count(self) -> None:
        count = sum(row.box.isChecked() for row in self.rows)
        text = translate("PlacesDialog", "Look at %n file(s)", "", count)
        self.accept_button.setText(text)
        self.accept_button.setEnabled(bool(count))
        self.accept_button.setVisible(bool(self.rows))
        self.cancel.setText(self.tr("Cancel") if self.rows else self.tr("Close"))

    def _choose(self) -> None:
        paths = [str(row.place.path) for row in self.rows if row.box.isChecked()]
        if paths:
            self.chosen.emit(paths)
