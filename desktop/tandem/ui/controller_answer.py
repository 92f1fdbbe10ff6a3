"""Answers: a question goes to disk, then to the engine; what comes back goes to the view and to disk.

One answer runs at a time. A question that comes meanwhile, or while a pair is loaded, waits: one, and no more.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Final

import msgspec
from PySide6.QtCore import QObject, QTimer, Signal, Slot

from tandem.chat.conversation import Node, State
from tandem.engine.protocol import Done, Pass, Progress
from tandem.errors import EngineDied, TandemError
from tandem.settings import Settings
from tandem.ui.controller_chats import Chats
from tandem.ui.controller_pair import PairKeeper
from tandem.ui.controller_question import Prepared, Question, keep_unsent, prepare, request_for
from tandem.ui.controller_run import STATES, Run
from tandem.ui.controller_save import NodeSaver
from tandem.ui.engine_worker import EngineWorker, Halted, Problem, Report
from tandem.ui.session_state import Notice, Piece, joined
from tandem.ui.store_worker import StoreWorker

SAVE_EVERY_MS: Final = 2000
STOP_SHOWN_MS: Final = 250
"""A stop shows after this long even if the engine has not answered."""

STOP_FORCED_MS: Final = 10_000
"""An engine that does not heed a stop for this long is ended and started again."""

_NO_PAIR: Final = {"state": "failed", "problem": "No model is loaded.", "remedy": "Load a pair first."}


class Answers(QObject):
    """Asks and answers.

    Args:
        store: Puts things on disk.
        engine: Answers.
        chats: The chat that is shown.
        pairs: The pair.
        settings: Gives the settings as they are now.
        parent: Qt's parent.

    Attributes:
        node_added: The user's message, stored.
        stream_begun: An empty answer (`Node`) that begins at the end of what is shown.
        streamed: Its text: `list[Piece]`.
        node_finished: The answer as it ended; only while its path is shown.
        running_changed: Whether an answer runs, in whichever chat.
        prefilled: Prompt tokens read, and their number.
        used_changed: Positions of the context in use by what is shown.
        queued_changed: The text of the question that waits, None when there is none.
        text_returned: Text that could not be sent and belongs back into the composer.
        notice: A `Notice`.
    """

    node_added = Signal(object)
    stream_begun = Signal(object)
    streamed = Signal(object)
    node_finished = Signal(object)
    running_changed = Signal(bool)
    prefilled = Signal(int, int)
    used_changed = Signal(int)
    queued_changed = Signal(object)
    text_returned = Signal(str)
    notice = Signal(object)

    def __init__(
        self,
        store: StoreWorker,
        engine: EngineWorker,
        chats: Chats,
        pairs: PairKeeper,
        settings: Callable[[], Settings],
        parent: QObject | None = None,
    ) -> None:
        super().__init__(parent)
        self._store, self._engine, self._chats, self._pairs = store, engine, chats, pairs
        self._settings = settings
        self._preparing: Question | None = None
        self._stop_asked = False
        self._waiting: Question | None = None
        self._run: Run | None = None
        self._lingering: int | None = None  # a stopped request that the engine has not ended yet
        self._pieces: list[Piece] = []
        self._saver = NodeSaver(store, self)
        self._saver.notice.connect(self.notice)
        self._dropped: dict[int, int] = {}  # by chat: messages left out, as last told
        self._closed = False
        self._ticker, self._shower, self._forcer = QTimer(self), QTimer(self), QTimer(self)
        self._ticker.setInterval(SAVE_EVERY_MS)
        self._ticker.timeout.connect(self._save_partial)
        for timer, interval, slot in (
            (self._shower, STOP_SHOWN_MS, self._show_stop),
            (self._forcer, STOP_FORCED_MS, self._force_stop),
        ):
            timer.setSingleShot(True)
            timer.setInterval(interval)
            timer.timeout.connect(slot)
        pairs.ended.connect(self._on_load_ended)

    @property
    def running(self) -> bool:
        """Whether an answer runs or is about to."""
        return self._run is not None or self._preparing is not None

    @property
    def run(self) -> Run | None:
        """The answer that runs."""
        return self._run

    @property
    def waiting(self) -> Question | None:
        """The question that waits."""
        return self._waiting

    def ask(self, question: Question) -> None:
        """Answers a question, now or when it is its turn."""
        if self._closed:
            return
        if self.running or self._lingering is not None or self._pairs.busy:
            queued = self._enqueue(question)
            if queued and question.place == "beside" and self._run is not None and self._run.chat == question.chat:
                self.stop()  # what it answers has just been replaced
        elif self._pairs.loaded is not None:
            self._prepare(question)
        elif not self._settings().first_run_done:
            self._give_back(question)
            text, remedy = self.tr("There is no model in use yet."), self.tr("Choose one, or try the demo.")
            self.notice.emit(Notice("info", text, remedy, "open-models", self.tr("Choose a model")))
        else:
            self._enqueue(question)
            self._pairs.load(self._settings().pair)

    @Slot()
    def stop(self) -> None:
        """Stops the answer that runs; what has come is kept."""
        if self._preparing is not None:
            self._stop_asked = True
        elif self._run is not None and not self._run.stopping:
            self._run.stopping = True
            self._engine.stop(self._run.request.id)
            self._shower.start()
            self._forcer.start()

    def take_back(self) -> None:
        """The question that waits goes back into the composer."""
        question, self._waiting = self._waiting, None
        if question is not None:
            self.queued_changed.emit(None)
            self._give_back(question)

    def show_live(self) -> None:
        """The answer that runs, from its beginning, if it belongs to what is shown now."""
        run = self._run
        if run is not None and self._shown(run):
            self._pieces.clear()
            self.stream_begun.emit(run.blank)
            if pieces := run.pieces():
                self.streamed.emit(pieces)

    def on_report(self, report: Report) -> None:
        """Takes a report of the engine that may belong to an answer; `flush` then shows what came."""
        if isinstance(report, Problem) and isinstance(report.error, EngineDied) and not self._pairs.busy:
            self._on_death(report.error)
        elif self._run is not None and getattr(report, "id", None) == self._run.request.id:
            self._on_run_report(self._run, report)
        elif isinstance(report, Done | Halted | Problem) and report.id == self._lingering:
            self._end_lingering(lost=isinstance(report, Halted) and report.lost)

    def flush(self) -> None:
        """Shows what came since the last time."""
        run = self._run
        if run is None:
            return
        if self._shown(run):
            if self._pieces:
                self.streamed.emit(joined(self._pieces))
            self.used_changed.emit(run.used)
        self._pieces.clear()
        self._pairs.show()

    def shut(self) -> None:
        """Ends what runs, and puts on disk what has come. Nothing is answered any more. Safe to call twice."""
        self._closed = True
        if self._run is not None:
            self._finish("stopped")
        for timer in (self._ticker, self._shower, self._forcer):
            timer.stop()
        self._saver.shut()

    def _enqueue(self, question: Question) -> bool:
        """Lets a question wait; False when another one waits already."""
        if self._waiting is not None:
            self._give_back(question)
            text = self.tr("One message waits already."), self.tr("Send this one when the answer is there.")
            self.notice.emit(Notice("info", *text))
            return False
        self._waiting = dataclasses.replace(question, queued=True)
        self._keep_waiting(question)
        self.queued_changed.emit(question.text)
        return True

    def _keep_waiting(self, question: Question) -> None:
        """On disk too, should the app end before its turn."""
        if question.text:
            self._store.ask(lambda history: keep_unsent(history, question), None, self._chats.tell)

    def _give_back(self, question: Question) -> None:
        """Into the composer; what waited in a chat that is not shown is in that chat's unsent text."""
        if question.text and (question.chat == self._chats.current or not question.queued):
            self.text_returned.emit(question.text)

    def _next(self) -> None:
        """Asks the question that waits."""
        question = self._waiting
        if question is None or self.running or self._lingering is not None or self._pairs.busy:
            return
        self._waiting = None
        self.queued_changed.emit(None)
        self.ask(question)

    @Slot(bool)
    def _on_load_ended(self, loaded: bool) -> None:
        if loaded:
            self._next()
        else:
            self.take_back()

    def _prepare(self, question: Question) -> None:
        self._preparing, self._stop_asked = question, False
        self.running_changed.emit(True)
        settings = self._settings()
        loaded = self._pairs.loaded
        if settings.thinking and (loaded is None or not loaded.switches_thinking):
            settings = settings.changed(thinking=False)
        self._store.ask(lambda history: prepare(history, question, settings), self._on_prepared, self._on_unprepared)

    def _on_unprepared(self, error: TandemError) -> None:
        question, self._preparing = self._preparing, None
        self.running_changed.emit(False)
        if question is not None:
            self._give_back(question)
        self._chats.tell(error)
        self._next()

    def _on_prepared(self, prepared: Prepared) -> None:
        self._preparing = None
        if self._closed:
            return
        loaded, answer = self._pairs.loaded, prepared.answer
        if answer is not None and loaded is not None:
            draft = self._pairs.draft_for_next(prepared.question.drafter)
            request = request_for(prepared, self._engine.next_id(), draft, self._settings())
            self._run = Run(answer, request, loaded)
            self._chats.live = answer.id
        self._tell_prepared(prepared)
        if self._run is not None:
            self._begin(self._run)
            return
        self.running_changed.emit(False)
        if prepared.problem is not None:
            self._chats.tell(prepared.problem)
        elif answer is not None:  # the pair went away in this very moment
            end = {"state": "stopped"} if self._stop_asked else _NO_PAIR
            self._keep(msgspec.structs.replace(answer, **end), show=True)
        self._next()

    def _tell_prepared(self, prepared: Prepared) -> None:
        """Shows the new messages where their chat is shown."""
        user, waiting = prepared.user, self._waiting
        if waiting is not None and waiting.chat is None and waiting.view == prepared.question.view:
            # asked in the same new chat before it had an id
            self._waiting = waiting = dataclasses.replace(waiting, chat=prepared.conversation.id)
            self._store.ask(lambda history: history.set_draft(None, ""), None, self._chats.tell)
            self._keep_waiting(waiting)
        how = self._chats.adopt(prepared.conversation, prepared.tree, user, prepared.question.view)
        if how == "added" and user is not None:
            self.node_added.emit(user)
            self.show_live()  # after "opened" the controller does it
        self._chats.refresh()

    def _begin(self, run: Run) -> None:
        self._pairs.begin_answer(run.request.draft)
        self._engine.generate(run.request)
        self._ticker.start()
        if self._stop_asked:
            self.stop()

    def _on_run_report(self, run: Run, report: Report) -> None:
        if isinstance(report, Progress | Pass | Done):
            self._pieces += run.add(report)
        match report:
            case Progress() if self._shown(run):
                self.prefilled.emit(int(report.done), int(report.total))
            case Pass():
                self._pairs.follow(report)
            case Done():
                self._pairs.follow(report)
                self._tell_dropped(run, report.dropped)
                self._finish(STATES[report.stop], report)
            case Halted():
                self._finish("stopped")
                if report.lost:
                    self._reload()
            case Problem():
                self._finish("failed", error=report.error)

    def _on_death(self, error: EngineDied) -> None:
        """The engine is gone, in the middle of an answer or while it had nothing to do."""
        if self._closed:
            return
        self.take_back()  # whatever ended it may end it again
        run = self._run
        if run is not None:
            self._finish("stopped" if run.stopping else "failed", error=None if run.stopping else error)
        self._lingering = None
        self._pairs.died(error)

    def _finish(
        self, state: State, done: Done | None = None, error: TandemError | None = None, *, lingers: bool = False
    ) -> None:
        """The answer that runs ends here; `lingers`: the engine has not ended it yet."""
        run = self._run
        assert run is not None
        self.flush()
        self._ticker.stop()
        self._shower.stop()
        if done is None:
            self._pairs.follow(None)
        self._pairs.show()
        shown = self._shown(run)
        self._run = self._chats.live = None
        if lingers:
            self._lingering = run.request.id
        else:
            self._forcer.stop()
        problem = ("", "") if error is None else (error.sentence, error.remedy)
        self._keep(run.node(state, done, *problem), shown)
        if shown and done is not None:
            self.used_changed.emit(done.stats.prompt_tokens + done.stats.generated)
        elif error is not None and not shown and not isinstance(error, EngineDied):
            self._chats.tell(error)
        self.running_changed.emit(False)
        self._next()

    def _keep(self, node: Node, show: bool) -> None:
        """Stores an answer that ended, and shows it."""
        self._chats.remember(node)
        self._saver.save(node)
        if show:
            self.node_finished.emit(node)
        if not self._closed:
            self._chats.refresh()

    def _shown(self, run: Run) -> bool:
        return self._chats.current == run.chat and self._chats.leaf == run.id

    def _tell_dropped(self, run: Run, dropped: int) -> None:
        if dropped > self._dropped.get(run.chat, 0):
            text = self.tr("%n oldest message(s) did not fit into the context and were left out.", "", dropped)
            remedy = self.tr("A larger context in the settings keeps more of a long chat.")
            self.notice.emit(Notice("warn", text, remedy))
        self._dropped[run.chat] = dropped

    @Slot()
    def _show_stop(self) -> None:
        """The engine has not answered to a stop yet: the answer ends here all the same."""
        if self._run is not None and self._run.stopping:
            self._finish("stopped", lingers=True)

    @Slot()
    def _force_stop(self) -> None:
        if self._lingering is not None:
            self._engine.kill()

    def _end_lingering(self, lost: bool) -> None:
        self._lingering = None
        self._forcer.stop()
        if lost:
            self._reload()
        else:
            self._next()

    def _reload(self) -> None:
        """The engine had to be ended over a stop: the pair comes back by itself."""
        self._lingering = None
        if not self._pairs.busy and not self._closed:
            self._pairs.load(self._pairs.state.choice)

    @Slot()
    def _save_partial(self) -> None:
        if self._run is not None and self._run.unsaved:
            self._saver.save(self._run.node())
