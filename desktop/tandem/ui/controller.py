"""The centre of the window, without looks: pages call its slots and show what its signals bring.

Nothing here is painted and nothing here waits: what takes time is done by `EngineWorker` and `StoreWorker`, and comes
back as a signal. `tandem.ui.session_state` has the values that the signals carry.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from PySide6.QtCore import QObject, Slot

from tandem import settings
from tandem.chat.conversation import Conversation, Node
from tandem.chat.export import Form
from tandem.settings import PairChoice, Settings
from tandem.ui import i18n
from tandem.ui.controller_answer import Answers
from tandem.ui.controller_chats import Chats
from tandem.ui.controller_facts import ControllerFacts
from tandem.ui.controller_files import ChatFiles
from tandem.ui.controller_models import ModelsKeeper
from tandem.ui.controller_pair import LEAST_CONTEXT, PairKeeper
from tandem.ui.controller_question import Question, without
from tandem.ui.controller_settings import Preferences
from tandem.ui.controller_threads import Threads
from tandem.ui.engine_worker import HANG_AFTER_S
from tandem.ui.session_state import Notice, PairState
from tandem.ui.store_worker import Opened
from tandem.ui.workers import Throttle

if TYPE_CHECKING:
    from tandem.models.catalog import Catalog
    from tandem.models.network import Network

DRAIN_EVERY_MS: Final = 33
"""The engine's events reach the view at most this often."""


class Controller(ControllerFacts):
    """What the window does, apart from showing it; its signals are those of `ControllerSignals`.

    Args:
        parent: Qt's parent.
        known: Settings that were read already, so that the window could be shown with them; None reads them in `start`.
        hang_after_s: Seconds of silence after which a busy engine is ended.
        database: Where the chats are; None takes the usual place.
        catalog: The models that can be downloaded; None takes the one that comes with the app.
        network: How the Hub is reached; None goes by the settings and the environment.

    Raises:
        TandemError: The log folder cannot be made.
    """

    def __init__(
        self,
        parent: QObject | None = None,
        known: settings.Loaded | None = None,
        hang_after_s: float = HANG_AFTER_S,
        database: Path | None = None,
        catalog: Catalog | None = None,
        network: Network | None = None,
    ) -> None:
        super().__init__(parent)
        self._known = known
        self._used = 0
        self._is_ready = False
        self._closing = False
        self.threads = Threads(self, hang_after_s, database)
        store, engine = self.threads.store, self.threads.engine
        self.preferences = Preferences(store, known, self)
        self.pairs = PairKeeper(engine, self.preferences.get, self)
        self.chats = Chats(store, self)
        self.files: Final = ChatFiles(store, self.chats, self)
        self.answers = Answers(store, engine, self.chats, self.pairs, self.preferences.get, self)
        self.models: Final = ModelsKeeper(self.threads, self.preferences, self.pairs, self, catalog, network)
        self._drain = Throttle(self._on_reports, DRAIN_EVERY_MS, self)
        self._connect()

    def _connect(self) -> None:
        self.threads.closed.connect(self.closed)
        self.threads.faults.reported.connect(self._on_fault)
        self.threads.engine.arrived.connect(self._drain.call)
        self.preferences.changed.connect(self._on_settings)
        for part in (self.preferences, self.pairs, self.chats, self.files, self.answers, self.models):
            part.notice.connect(self.notice)
        self.models.load_requested.connect(self.load_pair)
        self.models.release_requested.connect(self._on_release)
        self.pairs.pair_changed.connect(self._on_pair)
        self.pairs.loading.connect(self.loading)
        self.pairs.drafter_changed.connect(self.drafter_changed)
        self.chats.changed.connect(self.conversations_changed)
        self.chats.left.connect(self.chat_left)
        self.chats.opened.connect(self._on_opened)
        self.chats.hits.connect(self.hits)
        self.chats.draft_text.connect(self._on_draft_text)
        for name in ("node_added", "stream_begun", "streamed", "node_finished", "running_changed"):
            getattr(self.answers, name).connect(getattr(self, name))
        for name in ("prefilled", "queued_changed", "text_returned"):
            getattr(self.answers, name).connect(getattr(self, name))
        self.answers.used_changed.connect(self._on_used)

    # Start and end

    @Slot()
    def start(self) -> None:
        """Starts the threads, reads settings and chats, and loads the pair in the background."""
        self.threads.start()
        self.threads.store.open(self._known, self._on_store_opened)

    @Slot()
    def close(self) -> None:
        """Ends everything in stages: the answer (what has come is stored), the engine, the store. `closed` tells when.

        Returns at once. Safe to call twice, and at any moment.
        """
        if not self._closing:
            self._closing = True
            self._drain.stop()
            self.answers.shut()
            self.chats.shut()
            self.models.shut()
            self.threads.shut()

    def join(self) -> bool:
        """Closes, and waits for the end: for when no event loop runs any more.

        Returns:
            Whether all threads have ended.
        """
        self.close()
        return self.threads.join()

    # Messages

    @Slot(str)
    def send(self, text: str) -> None:
        """Sends a message at the end of what is shown, or keeps it until it is its turn; a blank one is not sent."""
        if text.strip() and self._usable(text):
            self.answers.ask(Question(self.chats.current, self.chats.view, "end", text))

    def edit(self, node: int, text: str) -> None:
        """Sends another version of the user's message `node`; the old one stays, as another branch."""
        if text.strip() and self._usable(text):
            self.answers.ask(Question(self.chats.current, self.chats.view, "beside", text, node))

    def regenerate(self, node: int, drafter: bool | None = None) -> None:
        """Answers again what the answer `node` answers (or the user's message `node`), with or without the drafter.

        Args:
            node: The message.
            drafter: For this answer only; None leaves it to the settings.
        """
        if self._usable():
            self.answers.ask(Question(self.chats.current, self.chats.view, "under", "", node, drafter))

    def retry(self, node: int, how: str) -> None:
        """Answers a failed answer's question again.

        Args:
            node: The failed answer.
            how: "again", "without-drafter", or "smaller-context": the pair is loaded with half the context first.
        """
        if how == "smaller-context":
            loaded = self.pairs.last_context or self.settings.context or 2 * LEAST_CONTEXT
            smaller = max(LEAST_CONTEXT, loaded // 2)
            self.change_settings(context=smaller)
            text = self.tr("The context is now {n} tokens. Settings › Engine changes it.")
            self.notice.emit(Notice("info", text.format(n=i18n.number(smaller))))
            self.load_pair(self.settings.pair)
        self.regenerate(node, False if how == "without-drafter" else None)

    @Slot()
    def stop(self) -> None:
        """Stops the answer that runs; what has come is kept."""
        self.answers.stop()

    @Slot()
    def take_back(self) -> None:
        """The message that waits goes back into the composer."""
        self.answers.take_back()

    # Chats

    @Slot()
    def new_chat(self) -> None:
        """Shows a new chat."""
        self.chats.new()

    def open_chat(self, chat: int, node: int | None = None) -> None:
        """Shows a chat; with a message given, a path that it is on."""
        self.chats.open(chat, node)

    def switch_branch(self, node: int, step: int) -> None:
        """Shows the version of a message that is `step` (+1 or -1) further on."""
        self.chats.switch_branch(node, step)

    def rename(self, chat: int, title: str) -> None:
        """Gives a chat another title."""
        self.chats.rename(chat, title)

    def delete(self, chat: int) -> None:
        """Deletes a chat, with a notice that offers to undo it; an answer that runs in it is stopped."""
        if self.running_in == chat:
            self.stop()
        self.chats.delete(chat)

    def undo_delete(self, chat: int | None = None) -> None:
        """Brings a chat back; None takes the one deleted last."""
        self.chats.undo_delete(chat)

    @Slot(str)
    def search(self, text: str) -> None:
        """Searches titles and messages; `hits` brings what was found, None for blank text."""
        self.chats.search(text)

    @Slot(str)
    def save_draft_text(self, text: str) -> None:
        """Keeps unsent text for the chat that is shown; not before it is known what was unsent at the last end."""
        if not self._is_ready:
            return
        waiting = self.answers.waiting
        if waiting is not None and waiting.text and waiting.chat == self.chats.current:
            text = f"{waiting.text}\n\n{text}" if text else waiting.text
        self.chats.save_draft(text)

    # Switches, settings, the pair

    def set_draft(self, on: bool) -> None:
        """Switches the drafter for the next answers; nothing is loaded again."""
        self.change_settings(draft_on=on)

    def set_thinking(self, on: bool) -> None:
        """Asks for a thought before the next answers, or no more."""
        self.change_settings(thinking=on)

    def set_show_drafted(self, on: bool) -> None:
        """Remembers whether answers show which tokens were drafted."""
        self.change_settings(show_drafted=on)

    def change_settings(self, **fields: Any) -> None:
        """Changes settings and stores them; a value that makes no sense changes nothing and is told."""
        self.preferences.change(**fields)

    def load_pair(self, choice: PairChoice) -> None:
        """Loads a pair and remembers it; an answer that runs is stopped first."""
        if self._closing:
            return
        self.change_settings(pair=choice, first_run_done=True)
        self.answers.stop()
        self.pairs.load(self.settings.pair)

    @Slot()
    def load_again(self) -> None:
        """Loads the pair of the settings, with the settings as they are now."""
        self.load_pair(self.settings.pair)

    @Slot()
    def cancel_load(self) -> None:
        """Gives up the load under way."""
        self.pairs.cancel()

    def perform(self, notice: Notice) -> bool:
        """Does what the button of a notice offers.

        Returns:
            False when that is the window's business: "open-models", "open-logs".
        """
        match notice.action:
            case "undo-delete":
                self.undo_delete(None if notice.argument is None else int(notice.argument))
            case "load-again":
                self.load_again()
            case "drafter-off":
                self.set_draft(False)
            case "use-pair":
                self.models.use(str(notice.argument))
            case _:
                return False
        return True

    # Files

    def export_chat(self, chat: int, path: Path, form: Form) -> None:
        """Writes a chat to a file, as "markdown" or "json"; a notice tells the end."""
        self.files.export_chat(chat, path, form)

    def export_all(self, path: Path, form: Form) -> None:
        """Writes all chats to one file; a notice tells the end."""
        self.files.export_all(path, form)

    def import_file(self, path: Path) -> None:
        """Adds the chats of an exported JSON file to those that are there; a notice tells the end."""
        self.files.import_file(path)

    # Inside

    def _usable(self, text: str = "") -> bool:
        """Whether anything can be asked; if not, the text is given back."""
        if text and (self._closing or not self._is_ready):
            self.text_returned.emit(text)
        return self._is_ready and not self._closing

    def _on_store_opened(self, found: Opened) -> None:
        if self._closing:
            return
        self._is_ready = True
        self.preferences.adopt(found.settings)
        if found.set_aside is not None:
            self.chats.tell_set_aside(found.set_aside)
        if found.problem is not None:
            self.chats.tell(found.problem, sticky=True)
        else:
            self.chats.refresh()
            self.chats.new()
        self.ready.emit()
        self.models.start()
        if self.settings.first_run_done:
            self.pairs.load(self.settings.pair)
        else:
            self.first_run.emit()

    @Slot()
    def _on_release(self) -> None:
        """Model files are about to be moved."""
        self.answers.stop()
        self.pairs.release(self.models.released)

    @Slot(object)
    def _on_settings(self, changed: Settings) -> None:
        self.pairs.settings_changed()
        self.models.set_settings(changed)
        self.settings_changed.emit(changed)

    @Slot()
    def _on_reports(self) -> None:
        for report in [] if self._closing else self.threads.engine.take():
            self.pairs.on_report(report)
            self.answers.on_report(report)
        self.answers.flush()

    @Slot(object, object, object)
    def _on_opened(
        self, conversation: Conversation | None, path: list[Node], branches: dict[int, tuple[int, int]]
    ) -> None:
        self.prefilled.emit(0, 0)
        self.conversation_opened.emit(conversation, path, branches)
        self.answers.show_live()
        self._on_used(next((_used(node) for node in reversed(path) if node.figures is not None), 0))

    @Slot(str)
    def _on_draft_text(self, text: str) -> None:
        waiting = self.answers.waiting
        if waiting is not None and waiting.chat == self.chats.current:
            text = without(text, waiting.text)
        self.draft_text.emit(text)

    @Slot(object)
    def _on_pair(self, state: PairState) -> None:
        self.pair_changed.emit(state)
        self._on_used(self._used)

    @Slot(int)
    def _on_used(self, used: int) -> None:
        self._used = used
        loaded = self.pairs.loaded
        self.context_changed.emit(used, 0 if loaded is None else loaded.context)

    @Slot(str)
    def _on_fault(self, _part: str) -> None:
        text, remedy = self.tr("Something went wrong inside Tandem."), self.tr("The log says what happened.")
        self.notice.emit(Notice("bad", text, remedy, "open-logs", self.tr("Open the logs")))


def _used(node: Node) -> int:
    """Positions that the conversation up to an answer takes."""
    return 0 if node.figures is None else node.figures.stats.prompt_tokens + node.figures.stats.generated
