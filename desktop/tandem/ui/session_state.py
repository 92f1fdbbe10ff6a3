"""What the window knows about its session, as values: the drafter, the pair, a load, a notice, a piece of an answer.

Nothing here knows Qt, files or the engine's process; the machines are fed with the engine's events and can be tested
with made-up ones. Sentences that are kept (`DrafterState.reason`, `LoadState.sentence`, `PairState.sentence`) are the
engine's own English; whoever shows them puts them through `errors_text.localised`. A `Notice` comes ready to show.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from typing import Final, Literal, NamedTuple

import msgspec

from tandem.chat.conversation import Run
from tandem.engine.protocol import DeviceInfo, Done, DrafterProblem, Loaded, Pass, Text
from tandem.settings import PairChoice

CONTEXT_WARNING: Final = 0.8
"""Share of the context from which on the meter warns."""

NO_DRAFTS_AFTER: Final = 64
"""Tokens without a single draft, although drafts were asked for, after which the drafter counts as failed."""

LOW_ACCEPTANCE: Final = 0.1
LOW_ACCEPTANCE_PASSES: Final = 50
"""An acceptance rate under `LOW_ACCEPTANCE` over that many verified passes is an alarm."""


Channel = Literal["thought", "answer"]


class Piece(NamedTuple):
    """Some characters of an answer that have everything in common.

    Attributes:
        channel: "thought" or "answer".
        text: The characters.
        kind: 0 the target's own token, 1 an accepted draft, 2 a draft stood there and was rejected.
    """

    channel: Channel
    text: str
    kind: int


class DrafterState(msgspec.Struct, frozen=True):
    """The drafter, as the header shows it.

    Attributes:
        kind: "none" no pair is loaded; "off" switched off, or the pair has none; "ready" loaded and nothing verified
            yet; "on" drafts were really verified; "low" likewise, but hardly any was accepted; "failed".
        length: Draft length asked for: "1" to "16", "" where it means nothing.
        acceptance: Accepted / verified drafts of the answer that runs or ran last; None before the first.
        reason: Why, for "off", "low" and "failed": an English sentence.
        remedy: What to do about it.
    """

    kind: Literal["none", "off", "ready", "on", "low", "failed"] = "none"
    length: str = ""
    acceptance: float | None = None
    reason: str = ""
    remedy: str = ""


class PairState(msgspec.Struct, frozen=True):
    """The pair in use.

    Attributes:
        kind: "none" nothing is loaded; "loading"; "loaded"; "failed" it could not be loaded, or its engine died.
        choice: Which pair was asked for.
        loaded: Its facts, when loaded.
        devices: Devices that the engine found; empty before an engine ran.
        sentence: Why it failed (English).
        remedy: What to do.
        stale: Whether the settings of context, threads, device or KV type differ from those it was loaded with.
    """

    kind: Literal["none", "loading", "loaded", "failed"] = "none"
    choice: PairChoice = PairChoice()
    loaded: Loaded | None = None
    devices: tuple[DeviceInfo, ...] = ()
    sentence: str = ""
    remedy: str = ""
    stale: bool = False


class LoadState(msgspec.Struct, frozen=True):
    """A load under way, or how the last one ended.

    Attributes:
        phase: "idle" none was asked for; "starting" the engine's process; "target", "drafter", "threads" the stages of
            a load; then "done", "stopped" or "failed".
        fraction: Of this stage, 0 to 1.
        sentence: Why it failed (English).
        remedy: What to do.
    """

    phase: Literal["idle", "starting", "target", "drafter", "threads", "done", "stopped", "failed"] = "idle"
    fraction: float = 0.0
    sentence: str = ""
    remedy: str = ""

    @property
    def running(self) -> bool:
        """Whether a load is under way."""
        return self.phase in ("starting", "target", "drafter", "threads")


class Notice(msgspec.Struct, frozen=True):
    """Something to tell the user, in the user's language.

    Attributes:
        kind: How grave.
        text: What happened.
        remedy: What to do; may be empty.
        action: What a button on it does, to be given to `Controller.perform`; "" for no button.
        action_text: The button's text.
        argument: Goes with the action: a conversation's or a node's id, or a pair's key in the catalog.
        sticky: Whether it stays until it is closed.
    """

    kind: Literal["info", "good", "warn", "bad"]
    text: str
    remedy: str = ""
    action: Literal["", "undo-delete", "load-again", "open-models", "open-logs", "drafter-off", "use-pair"] = ""
    action_text: str = ""
    argument: int | str | None = None
    sticky: bool = False


class VariableView(msgspec.Struct, frozen=True):
    """An environment variable that counts and is set.

    Attributes:
        name: Such as "HF_ENDPOINT".
        shown: Its value as it may be seen: of a token only that there is one.
        effect: What it does, as a key: see `tandem.models.network.Variable`.
    """

    name: str
    shown: str
    effect: str


class NetworkView(msgspec.Struct, frozen=True):
    """How Tandem reaches the Hub and where models are kept, as the settings show it.

    Attributes:
        folder: The folder in which models are kept.
        endpoint: Address of the Hub or of a mirror; "" while it is not known.
        endpoint_from: Where that came from: "settings", the variable's name, or "default".
        proxy: Address of the proxy, credentials masked; None for none.
        proxy_from: Likewise.
        offline: Whether HF_HUB_OFFLINE forbids every connection.
        token: Where a sign-in token was found: "HF_TOKEN", "keyring" or "file"; None for none.
        variables: The environment variables that count and are set.
        hosts: Hosts that a download may contact.
        sentence: Why the settings cannot be used (English), "" otherwise.
        remedy: What to do about it.
    """

    folder: str = ""
    endpoint: str = ""
    endpoint_from: str = "default"
    proxy: str | None = None
    proxy_from: str = "default"
    offline: bool = False
    token: str | None = None
    variables: tuple[VariableView, ...] = ()
    hosts: tuple[str, ...] = ()
    sentence: str = ""
    remedy: str = ""


class TokenKinds:
    """Remembers of each token of a run whether it was drafted, and cuts the run's text by it."""

    def __init__(self) -> None:
        self._kinds = bytearray()

    @property
    def tokens(self) -> int:
        """Tokens so far."""
        return len(self._kinds)

    def add(self, event: Pass) -> None:
        """Takes the flags of a pass."""
        for drafted, accepted in zip(event.drafted, event.accepted, strict=True):
            self._kinds.append(1 if accepted else 2 if drafted else 0)

    def pieces(self, texts: Iterable[Text]) -> list[Piece]:
        """The pieces of some text; the passes that its tokens came in were added before."""
        found = []
        for text in texts:
            kind = self._kinds[text.token] if 0 <= text.token < len(self._kinds) else 0
            found.append(Piece("thought" if text.channel == "thought" else "answer", text.text, kind))
        return found


def joined(pieces: Iterable[Piece]) -> list[Piece]:
    """The same text in as few pieces as possible."""
    found: list[Piece] = []
    texts: list[str] = []
    for piece in pieces:
        if found and (found[-1].channel, found[-1].kind) == (piece.channel, piece.kind):
            texts.append(piece.text)
            continue
        if found:
            found[-1] = found[-1]._replace(text="".join(texts))
        found.append(piece)
        texts = [piece.text]
    if found:
        found[-1] = found[-1]._replace(text="".join(texts))
    return [piece for piece in found if piece.text]


class AnswerText:
    """The text of an answer as it grows, with its runs; adding costs the same at any length."""

    def __init__(self) -> None:
        self._texts: dict[str, list[str]] = {}
        self._runs: list[Run] = []

    def add(self, pieces: Sequence[Piece]) -> None:
        """Adds pieces at the end."""
        for piece in pieces:
            self._texts.setdefault(piece.channel, []).append(piece.text)
            last = self._runs[-1] if self._runs else None
            if last is not None and (last.channel, last.kind) == (piece.channel, piece.kind):
                self._runs[-1] = Run(last.channel, last.length + len(piece.text), last.kind)
            else:
                self._runs.append(Run(piece.channel, len(piece.text), piece.kind))

    def text(self, channel: str) -> str:
        """What a channel holds."""
        parts = self._texts.get(channel, [])
        if len(parts) > 1:
            parts[:] = ["".join(parts)]
        return parts[0] if parts else ""

    @property
    def runs(self) -> tuple[Run, ...]:
        """Who wrote which characters, in the order in which they came."""
        return tuple(self._runs)

    def pieces(self) -> list[Piece]:
        """All of it again, as it came."""
        return pieces_of(self.text("answer"), self.text("thought"), self._runs)


def pieces_of(answer: str, thought: str, runs: Iterable[Run]) -> list[Piece]:
    """The pieces of a stored answer; empty when its runs do not belong to its texts."""
    texts, places, found = {"answer": answer, "thought": thought}, {"answer": 0, "thought": 0}, []
    for run in runs:
        if run.channel not in texts or run.length < 0:
            return []
        start = places[run.channel]
        places[run.channel] = start + run.length
        found.append(Piece(run.channel, texts[run.channel][start : start + run.length], run.kind))
    return found if all(places[name] == len(text) for name, text in texts.items()) else []


class DrafterMachine:
    """Follows the drafter through loads, switches and passes.

    "on" needs verified drafts: loading a drafter is not enough, nor is asking for drafts.
    """

    def __init__(self) -> None:
        self._loaded: Loaded | None = None
        self._wanted = True
        self._length = ""
        self._asked = False  # whether the answer that runs asked for drafts
        self._problem: DrafterProblem | None = None
        self._proved = False
        self._dry = 0  # tokens since the last draft, of answers that asked for drafts
        self._verified = self._accepted = 0  # of the answer that runs or ran last
        self._recent: deque[tuple[int, int]] = deque(maxlen=LOW_ACCEPTANCE_PASSES)

    @property
    def available(self) -> bool:
        """Whether the pair has a drafter that can be asked for drafts."""
        return self._loaded is not None and self._loaded.method != "none"

    @property
    def state(self) -> DrafterState:
        """See `DrafterState`."""
        if self._loaded is None:
            return DrafterState()
        if self._problem is not None:
            return DrafterState("failed", "", None, self._problem.reason, self._problem.remedy)
        if self._loaded.method == "none":
            missing = DrafterProblem("This pair has no drafter.", "Choose a drafter that belongs to the model.")
            return DrafterState("off", "", None, missing.reason, missing.remedy)
        if not self._wanted:
            return DrafterState("off", "", None)
        if not self._proved:
            return DrafterState("ready", self._length)
        acceptance = self._accepted / self._verified if self._verified else None
        if self._low:
            low = DrafterProblem(
                "Hardly any draft is accepted, so the drafter costs more than it gives.",
                "Turn it off, lower the temperature, or choose a drafter made for this model.",
            )
            return DrafterState("low", self._length, acceptance, low.reason, low.remedy)
        return DrafterState("on", self._length, acceptance)

    @property
    def _low(self) -> bool:
        verified = sum(judged for judged, _ in self._recent)
        full = len(self._recent) == LOW_ACCEPTANCE_PASSES
        return full and sum(accepted for _, accepted in self._recent) < LOW_ACCEPTANCE * verified

    def unloaded(self) -> None:
        """The pair is gone."""
        self._loaded = None

    def loaded(self, loaded: Loaded) -> None:
        """A pair is there; everything known of the last one is forgotten."""
        self._loaded, self._problem = loaded, loaded.problem
        self._proved, self._dry = False, 0
        self._verified = self._accepted = 0
        self._recent.clear()

    def switch(self, on: bool, length: str) -> None:
        """The user's switch and the draft length of the next answer."""
        self._wanted = on and length != "off"
        self._length = length if self._wanted else ""

    def begin(self, draft: str) -> None:
        """An answer begins that asks for drafts of this length, or "off"."""
        self._asked = draft != "off" and self.available
        if self._asked:
            self._verified = self._accepted = 0

    def passed(self, event: Pass) -> None:
        """A pass of that answer."""
        if not self._asked or self._loaded is None:
            return
        drafts = len(event.confidences)  # one for each draft, rejected ones included
        if not drafts:
            self._dry += len(event.tokens)
            if self._dry >= NO_DRAFTS_AFTER and self._loaded.method != "ngram":  # a look-up may well find nothing
                self._problem = DrafterProblem(
                    "The drafter is loaded, but no draft came from it.",
                    "Load the pair again, or choose another drafter.",
                )
            return
        accepted = sum(event.accepted)
        self._dry, self._proved, self._problem = 0, True, None  # a drafter that drafts has not failed
        self._verified += drafts
        self._accepted += accepted
        self._recent.append((drafts, accepted))

    def finished(self, done: Done) -> None:
        """That answer ended; its own figures replace what was counted along the way."""
        if not self._asked:
            return
        self._asked = False
        if done.problem is not None:
            self._problem = done.problem
        if done.stats.verified:
            self._verified, self._accepted = done.stats.verified, done.stats.accepted

    def ended(self) -> None:
        """That answer ended without figures: it failed, or its engine did."""
        self._asked = False
