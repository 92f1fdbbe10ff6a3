"""The list of chats as Qt wants it."""

from __future__ import annotations

import html
from collections.abc import Sequence
from typing import Any, Final

from PySide6.QtCore import (
    QAbstractListModel,
    QDateTime,
    QLocale,
    QModelIndex,
    QObject,
    QPersistentModelIndex,
    Qt,
    Signal,
)

from tandem.ui.sidebar_rows import Days, Row, one_line

LONGEST_TITLE: Final = 200
"""Characters that a chat's name may have."""

_FARTHEST_S: Final = 1e11
"""Seconds since 1970; no time of ours is some 3,000 years from then."""

_NO_PARENT: Final = QModelIndex()
_Index = QModelIndex | QPersistentModelIndex


class ChatModel(QAbstractListModel):
    """Headings, chats and hits, one a row.

    Signals:
        renamed: A chat's id and the new name that was typed for it.
    """

    renamed = Signal(int, str)

    def __init__(self, days: Days, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self.days = days
        self._rows: list[Row] = []
        self._open: int | None = None

    @property
    def rows(self) -> Sequence[Row]:
        """Every row, in order."""
        return self._rows

    @property
    def open_chat(self) -> int | None:
        """Id of the chat that is shown beside the list."""
        return self._open

    def set_open_chat(self, conversation: int | None) -> None:
        """Marks the rows of the chat that is shown."""
        before, self._open = self._open, conversation
        for number, row in enumerate(self._rows):
            if row.conversation and row.conversation in (before, conversation):
                self._touch(number, number)

    def set_rows(self, rows: list[Row]) -> bool:
        """Replaces the rows.

        Returns:
            Whether the model was reset; if not, the same lines stand in the same order and only their texts changed.
        """
        if len(rows) == len(self._rows) and all(map(_same_line, rows, self._rows)):
            self._rows = rows
            if rows:
                self._touch(0, len(rows) - 1)
            return False
        self.beginResetModel()
        self._rows = rows
        self.endResetModel()
        return True

    def row(self, index: _Index) -> Row | None:
        """The row at an index, None where there is none."""
        return self._rows[index.row()] if index.isValid() and index.row() < len(self._rows) else None

    def find(self, conversation: int | None) -> QModelIndex:
        """Where a chat stands first; an invalid index if nowhere."""
        if conversation:
            for number, row in enumerate(self._rows):
                if row.conversation == conversation:
                    return self.index(number)
        return QModelIndex()

    def step(self, start: int, by: int) -> int | None:
        """The next row that is no heading, looking from `start` (itself included) in steps of `by`, 1 or -1."""
        number = start
        while 0 <= number < len(self._rows):
            if self._rows[number].kind != "heading":
                return number
            number += by
        return None

    def heading(self, row: Row) -> str:
        """What a heading says."""
        return {
            "today": self.tr("Today"),
            "yesterday": self.tr("Yesterday"),
            "week": self.tr("Previous 7 days"),
            "older": self.tr("Older"),
        }.get(row.group, "")

    def title(self, row: Row) -> str:
        """A chat's name, or what stands in its place while it has none."""
        return row.title or self.tr("New chat")

    def when(self, row: Row) -> str:
        """When a chat was last written in: a time, a weekday or a date, as short as it can be."""
        locale = QLocale()
        if not -_FARTHEST_S < row.updated < _FARTHEST_S:
            return ""
        moment = QDateTime.fromMSecsSinceEpoch(int(row.updated * 1000))
        if row.updated >= self.days.yesterday:
            return locale.toString(moment.time(), QLocale.FormatType.ShortFormat)
        if row.updated >= self.days.week:
            return locale.toString(moment.date(), "ddd")
        if row.updated >= self.days.year:
            return locale.toString(moment.date(), self.tr("d MMM", "a date of this year, in Qt's format"))
        return locale.toString(moment.date(), QLocale.FormatType.ShortFormat)

    def rowCount(self, parent: _Index = _NO_PARENT) -> int:  # noqa: N802 - Qt's name
        """Rows, headings included."""
        return 0 if parent.isValid() else len(self._rows)

    def flags(self, index: _Index) -> Qt.ItemFlag:
        """A heading can neither be chosen nor renamed."""
        row = self.row(index)
        if row is None or row.kind == "heading":
            return Qt.ItemFlag.NoItemFlags
        return Qt.ItemFlag.ItemIsEnabled | Qt.ItemFlag.ItemIsSelectable | Qt.ItemFlag.ItemIsEditable

    def data(self, index: _Index, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        """Texts for the view, for screen readers and for the rename field."""
        row = self.row(index)
        if row is None:
            return None
        if role in (Qt.ItemDataRole.DisplayRole, Qt.ItemDataRole.AccessibleTextRole) and row.kind == "heading":
            return self.heading(row)
        if role == Qt.ItemDataRole.DisplayRole:
            return self.title(row)
        if role == Qt.ItemDataRole.EditRole:
            return row.title
        if role == Qt.ItemDataRole.ToolTipRole and row.kind != "heading":
            # Escaped: a name is anybody's text, and Qt would take it for HTML if it looked like some.
            return f"<qt>{html.escape(self.title(row))}</qt>"
        if role == Qt.ItemDataRole.AccessibleTextRole:
            parts = [self.title(row), self.when(row)]
            if row.conversation == self._open:
                parts.append(self.tr("open", "said of the chat that is shown"))
            return ", ".join(part for part in parts if part)
        if role == Qt.ItemDataRole.AccessibleDescriptionRole:
            return row.text
        return None

    def setData(self, index: _Index, value: Any, role: int = Qt.ItemDataRole.EditRole) -> bool:  # noqa: N802 - Qt's name
        """Takes a new name: shows it at once and tells; an empty or unchanged one is dropped."""
        row = self.row(index)
        if row is None or row.kind == "heading" or role != Qt.ItemDataRole.EditRole:
            return False
        title = one_line(" ".join(str(value).split()))[:LONGEST_TITLE].rstrip()
        if not title or title == row.title:
            return False
        for number, other in enumerate(self._rows):
            if other.conversation == row.conversation:
                self._rows[number] = other._replace(title=title)
                self._touch(number, number)
        self.renamed.emit(row.conversation, title)
        return True

    def _touch(self, first: int, last: int) -> None:
        self.dataChanged.emit(self.index(first), self.index(last))


def _same_line(one: Row, other: Row) -> bool:
    if (one.kind, one.conversation, one.group) != (other.kind, other.conversation, other.group):
        return False
    return one.hit is other.hit or (one.hit is not None and other.hit is not None and one.hit.node == other.hit.node)
