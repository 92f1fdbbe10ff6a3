"""The chat as it is read: messages in one document, streamed into at the end, with what can be done with them."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Final

from PySide6.QtCore import QEvent, QMimeData, QPoint, Qt, QTimer, Signal
from PySide6.QtGui import QContextMenuEvent, QGuiApplication, QKeyEvent, QResizeEvent, QTextCursor
from PySide6.QtWidgets import QToolTip, QWidget

from tandem.chat.conversation import Node
from tandem.ui.errors_text import localised
from tandem.ui.figures import figures_tip
from tandem.ui.kit import Menu, announce
from tandem.ui.markdown import LINKS
from tandem.ui.session_state import Piece
from tandem.ui.theme import ThemeManager
from tandem.ui.transcript_copy import plain_text, selected_text
from tandem.ui.transcript_drafted import Legend
from tandem.ui.transcript_links import dress, find_link
from tandem.ui.transcript_look import ACTS, GROUP, PAINT, Paint
from tandem.ui.transcript_menu import message_menu
from tandem.ui.transcript_reader import TranscriptReader
from tandem.ui.transcript_stretch import ENOUGH

FLUSH_MS: Final = 33
"""Shortest time between two updates while an answer streams."""
DUTY: Final = 4
"""An update is followed by a rest of at least so many times as long as it took."""
ANNOUNCED: Final = 600
"""Characters of a finished answer that a screen reader is given."""
FEEDBACK_MS: Final = 1600

_OURS: Final = frozenset(("copy", "copy-markdown"))


class Transcript(TranscriptReader):
    """A chat.

    Args:
        manager: The theme.

    Attributes:
        action: Something was asked for, and of which message: "copy" and "copy-markdown" (done already),
            "regenerate", "edit", "previous", "next", "retry", "retry-without-drafter", "retry-smaller-context".
        link_asked: A link that leads out of the app was chosen; nothing has been opened.
    """

    action = Signal(str, int)
    link_asked = Signal(str)

    def __init__(self, manager: ThemeManager, parent: QWidget | None = None) -> None:
        super().__init__(manager, parent)
        self._waiting: list[Piece] = []
        self._flush_timer = QTimer(self)
        self._flush_timer.setSingleShot(True)
        self._flush_timer.setTimerType(Qt.TimerType.PreciseTimer)
        self._flush_timer.timeout.connect(self.flush)
        self._feedback: list[tuple[str, str, str]] = []
        self._feedback_timer = QTimer(self)
        self._feedback_timer.setSingleShot(True)
        self._feedback_timer.timeout.connect(self._end_feedback)
        self._legend = Legend(manager, self)
        self._legend.hide()
        self.link_chosen.connect(self._follow_link)
        manager.changed.connect(self._retheme)
        self._retranslate()

    # What is shown

    def show_path(self, nodes: Sequence[Node], branches: dict[int, tuple[int, int]]) -> None:
        """Shows a chat at its end; only what is different from the one shown before is written anew.

        Args:
            nodes: From the first message to the last.
            branches: Of a message with several versions: which one it is, from 1, and how many there are.
        """
        self._drop_waiting()
        stretch = self._stretch
        same = 0
        for old, new in zip(stretch.nodes, nodes, strict=False):
            versions = stretch.shared.branches.get(old.id), branches.get(new.id)
            if (old is not new and old != new) or versions[0] != versions[1]:
                break
            same += 1
        stretch.shared.branches = dict(branches)
        self.setExtraSelections([])
        if stretch.sections and stretch.first < same and stretch.live is None and stretch.complete:

            def change() -> None:
                stretch.cut(same)
                stretch.nodes.extend(nodes[same:])
                stretch.load_down(len(nodes))

            if len(nodes) - same < ENOUGH:
                self.keeping_place(change)
                return
        stretch.nodes = list(nodes)
        stretch.drop_live()
        self._render(len(nodes), at_end=True)

    def append(self, node: Node) -> None:  # type: ignore[override]  # a message instead of a paragraph
        """Adds a message at the end and goes there."""
        self._drop_waiting()
        self._to_newest()
        self.follow(True)
        self.keeping_place(lambda: self._stretch.add(node))

    def begin(self, node: Node) -> None:
        """Adds an answer that will be streamed."""
        self._drop_waiting()
        self._to_newest()
        self.keeping_place(lambda: self._stretch.add(node, live=True))

    def stream(self, pieces: Sequence[Piece]) -> None:
        """Adds to the answer that was begun: the first pieces at once, later ones at most 30 times a second."""
        self._waiting += pieces
        if not self._flush_timer.isActive():
            self.flush()

    def finish(self, node: Node) -> None:
        """Puts the final version of a message in its place, with its figures and what went wrong."""
        live = self._stretch.live
        if live is not None and live.node.id == node.id:
            self.flush()
            self._flush_timer.stop()
        self.keeping_place(lambda: self._stretch.finish(node))
        self._announce(node)

    def show_drafted(self, on: bool) -> None:
        """Shows texts as they came, with the drafted tokens marked, or as Markdown."""
        if on == self._stretch.shared.drafted:
            return
        self._stretch.shared.drafted = on
        self._legend.setVisible(on)
        self._place_legend()
        self.rewrite()

    def message_text(self, node: int, markdown: bool = False) -> str:
        """A message as text, or as it was written."""
        at = self._stretch.index(node)
        if at is None:
            return ""
        found = self._stretch.nodes[at]
        return found.text if markdown or found.role == "user" else plain_text(found.text, self.look)

    def selected_text(self) -> str:
        """The selected text without what belongs to the window."""
        return selected_text(self.textCursor())

    # Streaming

    def flush(self) -> None:
        """Shows what has come and was held back until the next update."""
        if not self._waiting:
            return
        pieces, self._waiting = self._waiting, []
        begun = time.perf_counter()
        self.keeping_place(lambda: self._stretch.stream(pieces))
        cost_ms = 1000 * (time.perf_counter() - begun)
        self._flush_timer.start(max(FLUSH_MS, round(DUTY * cost_ms)))

    def _drop_waiting(self) -> None:
        """What was not shown yet of an answer that is left behind; the store has it."""
        self._flush_timer.stop()
        self._waiting.clear()

    def _announce(self, node: Node) -> None:
        if node.role != "assistant":
            return
        if node.state == "failed":
            words = self.tr("The answer failed: {reason}").format(reason=localised(node.problem, node.remedy)[0])
        else:
            text = plain_text(node.text[: 2 * ANNOUNCED], self.look)[:ANNOUNCED]
            words = self.tr("The answer is finished: {text}").format(text=text)
        announce(self, words)

    # Links and actions

    def _follow_link(self, href: str) -> None:
        if href.startswith(ACTS):
            what, _, number = href.removeprefix(ACTS).partition("/")
            self._act(what, int(number) if number.lstrip("-").isdecimal() else 0)
        elif LINKS.match(href):
            self.link_asked.emit(href)

    def _act(self, what: str, number: int) -> None:
        shared = self._stretch.shared
        clipboard = QGuiApplication.clipboard()
        if what in ("earlier", "later"):
            self._load_more(what == "later")
        elif what == "code":
            clipboard.setText("".join(shared.codes.get(number, [])))
            self._show_feedback(f"{ACTS}code/{number}", "check", self.tr("Copied"))
        elif what == "thought":
            self._toggle_thought(number)
        elif what in ("expand", "fold"):
            (shared.expanded.add if what == "expand" else shared.expanded.discard)(number)
            self._rewrite_section(number)
        elif what == "figures":
            self._show_figures(number)
        elif what == "copy-selection":
            self.copy()
        elif what == "select-all":
            self.selectAll()
        else:
            if what in _OURS:
                clipboard.setText(self.message_text(number, markdown=what == "copy-markdown"))
                self._show_feedback(f"{ACTS}copy/{number}", "check", "")
            self.action.emit(what, number)

    def _toggle_thought(self, node: int) -> None:
        shared, section = self._stretch.shared, self._stretch.section(node)
        if section is None:
            return
        if section.thought_open:
            shared.opened.discard(node)
            shared.shut.add(node)
        else:
            shared.opened.add(node)
            shared.shut.discard(node)
        self._rewrite_section(node)

    def _rewrite_section(self, node: int) -> None:
        section, focused = self._stretch.section(node), self.focused_link
        if section is None:
            return
        following = self.following
        self.follow(False)
        self.keeping_place(section.rewrite)
        self.follow(following and section.streaming)
        if focused is not None:
            end = self._stretch.end_of(section)
            self.focus_link(find_link(self.document(), focused.href, section.start, end))

    def _show_figures(self, node: int) -> None:
        at = self._stretch.index(node)
        figures = self._stretch.nodes[at].figures if at is not None else None
        section = self._stretch.section(node)
        if figures is None or section is None:
            return
        link = find_link(self.document(), f"{ACTS}figures/{node}", section.start, self._stretch.end_of(section))
        place = self._rect_of(link.start, link.end).bottomLeft().toPoint() if link else QPoint()
        QToolTip.showText(self.viewport().mapToGlobal(place), figures_tip(figures), self.viewport())

    def _show_feedback(self, href: str, icon: str, words: str) -> None:
        """Lets a link say for a moment that it was heard."""
        section = self._stretch.section_at(self.first_visible())
        start = section.start if section is not None else 0
        link = find_link(self.document(), href, start, self.document().characterCount())
        if link is None or any(found[0] == href for found in self._feedback):
            return
        focused = self.focused_link
        self._feedback.append((href, "copy", link.name))
        self.keeping_place(lambda: dress(self.document(), link, icon, words))
        if focused is not None and focused.href == href:
            self.focus_link(find_link(self.document(), href, link.start, link.start + 200))
        announce(self, self.tr("Copied"))
        self._feedback_timer.start(FEEDBACK_MS)

    def _end_feedback(self) -> None:
        waiting, self._feedback = self._feedback, []

        def restore() -> None:
            for href, icon, words in waiting:
                link = find_link(self.document(), href, 0, self.document().characterCount())
                if link is not None:
                    dress(self.document(), link, icon, words)

        self.keeping_place(restore)

    # Events

    def contextMenuEvent(self, event: QContextMenuEvent) -> None:  # noqa: N802 - Qt's name
        """Shows the menu for the message under the mouse or, from the keyboard, at the focus or in view."""
        if event.reason() == QContextMenuEvent.Reason.Keyboard:
            link = self.focused_link
            position = link.start if link is not None else self._middle()
            href = link.href if link is not None else ""
            place = self.viewport().mapToGlobal(self._point_of(position))
        else:
            position = self.cursorForPosition(event.pos()).position()
            href = self.anchorAt(event.pos())
            place = event.globalPos()
        self.menu_at(position, href).popup(place)
        event.accept()

    def menu_at(self, position: int, href: str = "") -> Menu:
        """The menu for a position of the document; it goes when it is closed."""
        section = self._stretch.section_at(position)
        node = section.node if section is not None else None
        made = self.document().findBlock(position).blockFormat()
        code = made.property(GROUP) if made.property(PAINT) == int(Paint.CODE) else None
        outside = href if LINKS.match(href) else ""

        def act(what: str, number: int) -> None:
            if what == "copy-link":
                QGuiApplication.clipboard().setText(outside)
            else:
                self._act(what, number)

        branch = self._stretch.shared.branches.get(node.id) if node is not None else None
        menu = message_menu(
            self._manager,
            self,
            node if node is not None and not (section is not None and section.streaming) else None,
            branch,
            act,
            selection=self.textCursor().hasSelection(),
            link=outside,
            code=code,
        )
        menu.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        return menu

    def createMimeDataFromSelection(self) -> QMimeData:  # noqa: N802 - Qt's name
        """A selection is copied as plain text."""
        data = QMimeData()
        data.setText(self.selected_text())
        return data

    def changeEvent(self, event: QEvent) -> None:  # noqa: N802 - Qt's name
        """Follows the language."""
        if event.type() == QEvent.Type.LanguageChange:
            self._retranslate()
            self._place_legend()
            self.rewrite()
        super().changeEvent(event)

    def resizeEvent(self, event: QResizeEvent) -> None:  # noqa: N802 - Qt's name
        """The legend is as wide as the transcript."""
        super().resizeEvent(event)
        self._place_legend()

    def keyPressEvent(self, event: QKeyEvent) -> None:  # noqa: N802 - Qt's name
        """Shift+F10 where the system does not make a menu event of it."""
        shifted = event.modifiers() & Qt.KeyboardModifier.ShiftModifier
        if event.key() == Qt.Key.Key_F10 and shifted:
            middle = QPoint(self.viewport().width() // 2, self.viewport().height() // 2)
            place = self.viewport().mapToGlobal(middle)
            self.contextMenuEvent(QContextMenuEvent(QContextMenuEvent.Reason.Keyboard, middle, place))
            event.accept()
            return
        super().keyPressEvent(event)

    def _middle(self) -> int:
        """Position of the text in the middle of the window."""
        return self.cursorForPosition(QPoint(self.viewport().width() // 2, self.viewport().height() // 2)).position()

    def _point_of(self, position: int) -> QPoint:
        cursor = QTextCursor(self.document())
        cursor.setPosition(position)
        return self.cursorRect(cursor).bottomLeft()

    def _retheme(self) -> None:
        self.redress()
        self._place_legend()

    def _retranslate(self) -> None:
        self.setAccessibleName(self.tr("Conversation"))
        self.end_button.set_name(self.tr("Jump to the end"), "End")

    def _place_legend(self) -> None:
        # Set explicitly shown rather than asked for: the transcript itself may be hidden still.
        height = self._legend.heightForWidth(self.width()) if self._stretch.shared.drafted else 0
        self.setViewportMargins(0, height, 0, 0)
        self._legend.setGeometry(0, 0, self.width(), height)
