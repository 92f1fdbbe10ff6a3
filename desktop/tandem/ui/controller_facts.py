"""What can be asked of the controller at any moment."""

from __future__ import annotations

from tandem.chat.conversation import Conversation, Node
from tandem.settings import Settings
from tandem.ui.controller_answer import Answers
from tandem.ui.controller_chats import Chats
from tandem.ui.controller_pair import PairKeeper
from tandem.ui.controller_settings import Preferences
from tandem.ui.controller_signals import ControllerSignals
from tandem.ui.controller_threads import Threads
from tandem.ui.session_state import DrafterState, LoadState, PairState


class ControllerFacts(ControllerSignals):
    """Reads what the controller's parts know; the parts are made by `tandem.ui.controller.Controller`."""

    threads: Threads
    preferences: Preferences
    pairs: PairKeeper
    chats: Chats
    answers: Answers

    @property
    def settings(self) -> Settings:
        """The settings as they are now."""
        return self.preferences.now

    @property
    def pair(self) -> PairState:
        """The pair."""
        return self.pairs.state

    @property
    def drafter(self) -> DrafterState:
        """The drafter."""
        return self.pairs.drafter

    @property
    def load_state(self) -> LoadState:
        """The load under way, or the last one."""
        return self.pairs.load_state

    @property
    def running(self) -> bool:
        """Whether an answer runs."""
        return self.answers.running

    @property
    def running_in(self) -> int | None:
        """The chat in which an answer runs."""
        run = self.answers.run
        return None if run is None else run.chat

    @property
    def conversation(self) -> Conversation | None:
        """The chat that is shown, None for a new one."""
        return self.chats.conversation

    def node(self, node: int) -> Node | None:
        """A message of the chat that is shown, on any of its branches."""
        return self.chats.tree[node] if node in self.chats.tree else None  # noqa: SIM401 - a tree has no `get`

    @property
    def engine_pid(self) -> int | None:
        """Process id of the engine."""
        return self.threads.engine.pid
