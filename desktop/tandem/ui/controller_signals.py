"""What the controller tells the window."""

from __future__ import annotations

from PySide6.QtCore import QObject, Signal


class ControllerSignals(QObject):
    """Every signal of `tandem.ui.controller.Controller`; all come in the GUI thread.

    Attributes:
        ready: Settings and chats are read; everything else may be used.
        first_run: No pair was ever chosen: welcome the user. Comes right after `ready`.
        closed: All threads and the engine have ended.
        conversations_changed: The list of chats, `list[Summary]`.
        chat_left: Another chat is about to be shown: `save_draft_text` must be given what is not sent yet, and the
            composer is then empty.
        conversation_opened: Show this path: `Conversation | None` (None: a new chat, not stored yet), `list[Node]`,
            `dict[int, tuple[int, int]]`: which version of how many. An answer that runs is not in the path:
            `stream_begun` and `streamed` follow with all of it.
        node_added: The user's message (`Node`), at the end of what is shown.
        stream_begun: An empty answer (`Node`), at the end of what is shown.
        streamed: Text of it, `list[Piece]`, at most 30 times a second.
        node_finished: The answer (`Node`) as it ended. Only answers that are shown are streamed and finished.
        drafter_changed: `DrafterState`.
        pair_changed: `PairState`.
        loading: `LoadState`.
        context_changed: Positions in use by what is shown, and their number (0: unknown).
        prefilled: Prompt tokens read, and their number, while the answer that is shown has not begun; 0, 0 when
            another path is shown.
        running_changed: Whether an answer runs, in whichever chat.
        queued_changed: Text of the message that waits for its turn ("": another answer waits), None for none.
        hits: What a search found, `list[Hit]`; None: the search ended.
        settings_changed: `Settings`.
        draft_text: The unsent text of the chat that was opened: it goes before what was typed since `chat_left`.
        text_returned: A message that could not be sent, or was taken back: it goes before what is in the composer.
        notice: `Notice`. Buttons on it call `perform`.
    """

    ready = Signal()
    first_run = Signal()
    closed = Signal()
    conversations_changed = Signal(object)
    chat_left = Signal()
    conversation_opened = Signal(object, object, object)
    node_added = Signal(object)
    stream_begun = Signal(object)
    streamed = Signal(object)
    node_finished = Signal(object)
    drafter_changed = Signal(object)
    pair_changed = Signal(object)
    loading = Signal(object)
    context_changed = Signal(int, int)
    prefilled = Signal(int, int)
    running_changed = Signal(bool)
    queued_changed = Signal(object)
    hits = Signal(object)
    settings_changed = Signal(object)
    draft_text = Signal(str)
    text_returned = Signal(str)
    notice = Signal(object)
