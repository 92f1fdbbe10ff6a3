"""The transcript's context menu: what can be done with a message, also from the keyboard."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import QCoreApplication
from PySide6.QtWidgets import QWidget

from tandem.chat.conversation import Node
from tandem.errors import PromptTooLong
from tandem.ui.kit import Menu
from tandem.ui.theme import ThemeManager


def message_menu(
    manager: ThemeManager,
    parent: QWidget,
    node: Node | None,
    branch: tuple[int, int] | None,
    act: Callable[[str, int], None],
    *,
    selection: bool,
    link: str = "",
    code: int | None = None,
) -> Menu:
    """A menu, not shown yet.

    Args:
        manager: The theme.
        parent: Qt's parent.
        node: The message it is for.
        branch: Which of its versions it is, and how many there are.
        act: Called with what was chosen and the message's id (for "code" the card's number, else 0).
        selection: Whether text is selected.
        link: Address of the link under the cursor, which leads out of the app.
        code: Number of the card with code under the cursor.
    """
    translate = QCoreApplication.translate
    menu = Menu(manager, parent)

    def add(icon: str, words: str, what: str, number: int = 0, keys: str = "") -> None:
        menu.add(icon, words, lambda: act(what, number), keys)

    if selection:
        add("copy", translate("Transcript", "Copy selection"), "copy-selection", 0, "Ctrl+C")
    if link:
        add("globe", translate("Transcript", "Copy link address"), "copy-link")
    if code is not None:
        add("copy", translate("Transcript", "Copy code"), "code", code)
    if node is not None:
        if not menu.isEmpty():
            menu.addSeparator()
        add("copy", translate("Transcript", "Copy as text"), "copy", node.id)
        add("copy", translate("Transcript", "Copy as Markdown"), "copy-markdown", node.id)
        menu.addSeparator()
        if node.role == "user":
            add("edit", translate("Transcript", "Edit"), "edit", node.id)
        else:
            add("refresh", translate("Transcript", "Answer again"), "regenerate", node.id)
            if node.thought:
                add("thinking", translate("Transcript", "Show or hide the thought"), "thought", node.id)
            if node.figures is not None:
                add("info", translate("Transcript", "What the figures mean"), "figures", node.id)
        if node.state == "failed" and PromptTooLong.said(node.problem):
            add("edit", translate("Transcript", "Edit the message"), "edit-question", node.id)
        elif node.state == "failed":
            add("bolt", translate("Transcript", "Try without the drafter"), "retry-without-drafter", node.id)
            add("chip", translate("Transcript", "Try with a smaller context"), "retry-smaller-context", node.id)
        if branch is not None:
            number, count = branch
            if number > 1:
                add("chevron-left", translate("Transcript", "Previous version"), "previous", node.id)
            if number < count:
                add("chevron-right", translate("Transcript", "Next version"), "next", node.id)
    menu.addSeparator()
    add("", translate("Transcript", "Select all"), "select-all", 0, "Ctrl+A")
    return menu
