"""The composer: where a message is written, with what changes from message to message beside its Send button."""

from __future__ import annotations

from typing import Final

from PySide6.QtCore import QEvent, QMimeData, QSignalBlocker, Qt, QTimer, Signal
from PySide6.QtGui import QDragEnterEvent, QDragLeaveEvent, QDropEvent, QHideEvent, QMouseEvent
from PySide6.QtWidgets import QHBoxLayout, QSizePolicy, QVBoxLayout, QWidget

from tandem.ui import i18n
from tandem.ui.composer_chips import Chips
from tandem.ui.composer_editor import MessageEditor
from tandem.ui.composer_parts import Bar, Frame, SendButton
from tandem.ui.composer_text import MAX_CHARACTERS, clean, fits_field, found_in
from tandem.ui.kit import label, spaced
from tandem.ui.theme import ThemeManager

SAVE_DELAY_MS: Final = 500
"""How long a change waits before it is told by `text_changed`, at most."""


class Composer(QWidget):
    """Writes a message, and switches drafter, thinking and the view of drafted tokens.

    A text too big for a text field is held beside it, as "Pasted text"; `text` gives both. While an earlier message
    is edited, the unsent text waits and comes back afterwards.

    Args:
        manager: Colours, sizes and fonts.
        parent: The page.

    Signals:
        submitted: A message to send; not blank. The composer is empty by then, except that `editing` is still true
            for an edited message.
        stop_requested: Stop what runs.
        draft_toggled, thinking_toggled, show_drafted_toggled: The user switched one.
        text_changed: The unsent text, at most `SAVE_DELAY_MS` after a change; never an edited message's.
        edit_cancelled: The edit was given up; the unsent text is back.
        edit_last_requested: Up was pressed in the empty composer.
        unqueue_requested: The waiting message is to be taken back.
        refused: Why something was not taken, for the user to read.
    """

    submitted = Signal(str)
    stop_requested = Signal()
    draft_toggled = Signal(bool)
    thinking_toggled = Signal(bool)
    show_drafted_toggled = Signal(bool)
    text_changed = Signal(str)
    edit_cancelled = Signal()
    edit_last_requested = Signal()
    unqueue_requested = Signal()
    refused = Signal(str)

    def __init__(self, manager: ThemeManager, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._manager = manager
        self._pasted = ""
        self._unsent: str | None = None
        self._queued: str | None = None
        self._save_timer = QTimer(self)
        self._save_timer.setSingleShot(True)
        self._save_timer.setInterval(SAVE_DELAY_MS)
        self._save_timer.timeout.connect(self._tell)
        self._build()
        self.setAcceptDrops(True)
        self._retranslate()
        self._refresh()

    # ---- what the window asks and tells

    @property
    def editing(self) -> bool:
        """Whether an earlier message is edited."""
        return self._unsent is not None

    @property
    def running(self) -> bool:
        """Whether an answer is being made."""
        return self.send_button.running

    def text(self) -> str:
        """Everything that would be sent, the text held beside the field included."""
        typed = self.editor.text()
        return f"{typed}\n\n{self._pasted}" if typed and self._pasted else typed or self._pasted

    def set_text(self, text: str) -> None:
        """Shows the unsent text of another chat; `text_changed` does not come, and an edit ends unheard."""
        self._unsent = None
        self._save_timer.stop()
        self._put(text)
        self._refresh()

    def bring(self, text: str) -> None:
        """Shows the unsent text of the chat that was opened, in front of what was typed since then."""
        (self.put_back if self.text().strip() else self.set_text)(text)

    def leave(self) -> None:
        """Another chat will be shown: a change is told now, and what is there goes."""
        self.flush()
        self.clear()

    def clear(self) -> None:
        """Empties it, as `set_text` does."""
        self.set_text("")

    def put_back(self, text: str) -> None:
        """Brings back a message that was not sent, in front of what was written since; an edit goes on undisturbed."""
        now = self.text() if self._unsent is None else self._unsent
        both = "\n\n".join(part for part in (text, now) if part.strip())
        if self._unsent is None:
            self._put(both)
            self._changed()
        else:
            self._unsent = both
            self.text_changed.emit(both)

    def flush(self) -> None:
        """Tells a change by `text_changed` now, if there is one that waits."""
        if self._save_timer.isActive():
            self._save_timer.stop()
            self._tell()

    def set_running(self, running: bool) -> None:
        """Shows Stop instead of Send, or Send again."""
        self.send_button.running = running
        self._refresh()

    def set_drafter(self, available: bool, on: bool, length: str = "", reason: str = "") -> None:
        """Sets the drafter's switch: `length` is the draft length in use, `reason` why there is nothing to switch."""
        self.chips.set_drafter(available, on, length, reason)

    def set_thinking(self, available: bool, on: bool, reason: str = "") -> None:
        """Sets the switch of thinking; `reason` says why it is not available."""
        self.chips.set_thinking(available, on, reason)

    def set_show_drafted(self, on: bool) -> None:
        """Sets the switch of the token view."""
        self.chips.set_show_drafted(on)

    def set_shortcuts(self, drafter: str = "", thinking: str = "", show_drafted: str = "") -> None:
        """Sets the keys that the tooltips show, such as "Ctrl+D"; they are installed elsewhere."""
        self.chips.set_shortcuts(drafter, thinking, show_drafted)

    def toggle_drafter(self) -> None:
        """What the drafter's key does: the same as a click, or why not."""
        self.chips.toggle(self.chips.drafter)

    def toggle_thinking(self) -> None:
        """What the key of thinking does."""
        self.chips.toggle(self.chips.thinking)

    def toggle_show_drafted(self) -> None:
        """What the key of the token view does."""
        self.chips.toggle(self.chips.drafted)

    def begin_edit(self, text: str) -> None:
        """Shows an earlier message to be changed; the unsent text waits."""
        if self._unsent is None:
            self.flush()
            self._unsent = self.text()
        self._put(text)
        self._refresh()
        self.focus()

    def end_edit(self) -> None:
        """Brings the unsent text back; nothing happens if nothing is edited."""
        if self._unsent is not None:
            unsent, self._unsent = self._unsent, None
            self._put(unsent)
            self._refresh()

    def set_queued(self, text: str | None) -> None:
        """Shows which message waits for the answer that runs; None for none."""
        self._queued = text
        self._name_bars()
        self.queued_bar.setVisible(text is not None)

    def focus(self) -> None:
        """Leads into the text."""
        self.editor.setFocus(Qt.FocusReason.OtherFocusReason)

    def take(self, data: QMimeData) -> bool:
        """Inserts the text of something dropped anywhere in the window, or says by `refused` why not.

        Returns:
            Whether it was text.
        """
        return self.editor.take(data)

    # ---- its parts

    def _build(self) -> None:
        manager = self._manager
        self.editor = MessageEditor(manager)
        self.edit_bar = Bar(manager, "edit")
        self.queued_bar = Bar(manager, "chat", with_text=True)
        self.pasted_bar = Bar(manager, "file")
        self.chips = Chips(manager)
        self.send_button = SendButton(manager)
        self.hint = label(size="small", role="faint", wrap=True)
        self.hint.setAlignment(Qt.AlignmentFlag.AlignCenter)
        below = QHBoxLayout()
        spaced(below, manager, "s")
        below.addWidget(self.chips, 1)
        below.addWidget(self.send_button, 0, Qt.AlignmentFlag.AlignBottom)
        self.frame = Frame(manager)
        for part in (self.queued_bar, self.edit_bar, self.editor, self.pasted_bar):
            self.frame.column.addWidget(part)
        self.frame.column.addLayout(below)
        middle = QHBoxLayout()
        middle.setContentsMargins(0, 0, 0, 0)
        middle.addStretch(0)
        middle.addWidget(self.frame, 1)
        middle.addStretch(0)
        column = QVBoxLayout(self)
        spaced(column, manager, "xs", ("l", "", "l", "xs"))
        column.addLayout(middle)
        column.addWidget(self.hint)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Minimum)

        self.editor.textChanged.connect(self._changed)
        self.editor.send_pressed.connect(self._submit)
        self.editor.escape_pressed.connect(self._escape)
        self.editor.up_pressed.connect(self._up)
        self.editor.foreign.connect(self._refuse_foreign)
        self.editor.too_long.connect(self._refuse_long)
        self.editor.big_paste.connect(self._hold)
        self.editor.left.connect(self.flush)
        self.editor.installEventFilter(self)
        self.edit_bar.pressed.connect(self._cancel_edit)
        self.queued_bar.pressed.connect(self.unqueue_requested)
        self.pasted_bar.pressed.connect(self._drop_pasted)
        self.send_button.clicked.connect(self._pressed)
        self.chips.drafter.clicked.connect(self.draft_toggled)
        self.chips.thinking.clicked.connect(self.thinking_toggled)
        self.chips.drafted.clicked.connect(self.show_drafted_toggled)
        self.chips.refused.connect(self.refused)

    def eventFilter(self, watched: object, event: QEvent) -> bool:  # noqa: N802 - Qt's name
        """The outline shows whether the text has the keyboard."""
        if watched is self.editor and event.type() in (QEvent.Type.FocusIn, QEvent.Type.FocusOut):
            self.frame.light(event.type() == QEvent.Type.FocusIn)
        return False

    def changeEvent(self, event: QEvent) -> None:  # noqa: N802 - Qt's name
        """Speaks another language at once."""
        if event.type() in (QEvent.Type.LanguageChange, QEvent.Type.LocaleChange):
            self._retranslate()
        super().changeEvent(event)

    def hideEvent(self, event: QHideEvent) -> None:  # noqa: N802 - Qt's name
        """What was typed is told before it is out of sight."""
        self.flush()
        super().hideEvent(event)

    def mousePressEvent(self, event: QMouseEvent) -> None:  # noqa: N802 - Qt's name
        """The whole field leads into the text."""
        self.focus()
        super().mousePressEvent(event)

    def dragEnterEvent(self, event: QDragEnterEvent) -> None:  # noqa: N802 - Qt's name
        """Something may be dropped beside the text too."""
        found = found_in(event.mimeData())
        if found.text is not None or found.foreign:
            event.setDropAction(Qt.DropAction.CopyAction)
            event.accept()
            self.frame.light(True)

    def dragLeaveEvent(self, event: QDragLeaveEvent) -> None:  # noqa: N802 - Qt's name
        """It went away again."""
        self.frame.light(self.editor.hasFocus())
        super().dragLeaveEvent(event)

    def dropEvent(self, event: QDropEvent) -> None:  # noqa: N802 - Qt's name
        """Takes text, refuses the rest with a reason."""
        self.frame.light(self.editor.hasFocus())
        taken = self.take(event.mimeData())
        # Never "moved": its source would delete it.
        event.setDropAction(Qt.DropAction.CopyAction if taken else Qt.DropAction.IgnoreAction)
        event.accept()

    # ---- what happens in it

    def _pressed(self) -> None:
        if self.running:
            self.stop_requested.emit()
        else:
            self._submit()

    def _submit(self) -> None:
        self.editor.finish_composition()
        text = self.text().strip("\n").rstrip()
        if not text.strip():
            return
        if self.editing:
            self.submitted.emit(text)
            self.end_edit()
            return
        self.clear()
        self.submitted.emit(text)
        if not self.text():
            self.text_changed.emit("")

    def _escape(self) -> None:
        if self.running:
            self.stop_requested.emit()
        elif self.editing:
            self._cancel_edit()

    def _cancel_edit(self) -> None:
        if self.editing:
            self.end_edit()
            self.focus()
            self.edit_cancelled.emit()

    def _up(self) -> None:
        if not self.editing and not self._pasted:
            self.edit_last_requested.emit()

    def _refuse_foreign(self) -> None:
        self.refused.emit(self.tr("Text only for now: Tandem cannot take pictures, sound or files yet."))

    def _refuse_long(self) -> None:
        text = self.tr("That is more text than any model can take: {limit} characters is the limit.")
        self.refused.emit(text.format(limit=i18n.number(MAX_CHARACTERS)))

    def _hold(self, text: str) -> None:
        """Keeps text beside the field that the field would stall on."""
        if len(self._pasted) + len(text) > MAX_CHARACTERS:
            self._refuse_long()
            return
        self._pasted = f"{self._pasted}\n\n{text}" if self._pasted else text
        self._changed()

    def _drop_pasted(self) -> None:
        self._pasted = ""
        self._changed()
        self.focus()

    def _put(self, text: str) -> None:
        """Shows a text, in the field or beside it, and tells nobody."""
        blocker = QSignalBlocker(self.editor)
        text = clean(text[:MAX_CHARACTERS])
        fits = fits_field(text)
        self._pasted = "" if fits else text
        self.editor.set_text(text if fits else "")
        blocker.unblock()
        self.editor.updateGeometry()

    def _changed(self) -> None:
        if not self.editing and not self._save_timer.isActive():
            self._save_timer.start()
        self._refresh()

    def _tell(self) -> None:
        if not self.editing:
            self.text_changed.emit(self.text())

    def _refresh(self) -> None:
        """Brings button, bars and hint in line with the state."""
        blank = self.editor.blank and not self._pasted
        running = self.running
        name, key = (self.tr("Stop"), "Esc") if running else (self.tr("Send"), "Return")
        self.send_button.set_state(running, name, key)
        self.send_button.setEnabled(running or not blank)
        self.edit_bar.setVisible(self.editing)
        self._name_bars()
        self.pasted_bar.setVisible(bool(self._pasted))
        self.hint.setText(self.tr("Enter sends · Shift+Enter starts a new line"))

    def _retranslate(self) -> None:
        self.editor.setPlaceholderText(self.tr("Write a message…"))
        self.editor.setAccessibleName(self.tr("Message"))
        self._refresh()

    def _name_bars(self) -> None:
        self.edit_bar.set_texts(self.tr("Editing an earlier message — Esc cancels"), self.tr("Cancel the edit"))
        if self._pasted:
            text = self.tr("Pasted text · {count} characters").format(count=i18n.number(len(self._pasted)))
            self.pasted_bar.set_texts(text, self.tr("Remove the pasted text"))
        if self._queued is not None:
            start = " ".join(self._queued[:200].split())
            self.queued_bar.set_texts(
                self.tr("Sent after this answer: {text}").format(text=start), self.tr("Take back")
            )
