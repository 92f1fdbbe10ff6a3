"""Real engine processes for tests, and one call for one answer."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tandem.engine.client import EngineClient
from tandem.engine.protocol import Done, Generate, Load, Loaded, Pass, Progress
from tandem.engine.sampling import SamplingParams
from tandem.engine.template import Message

GREEDY = SamplingParams(temperature=0.0)
STORY = "Tell me a short story about a fox."


@dataclass
class Reply:
    """One answer, put together from its events."""

    done: Done
    passes: list[Pass] = field(default_factory=list)
    prefills: list[Progress] = field(default_factory=list)
    texts: dict[str, str] = field(default_factory=lambda: {"thought": "", "answer": ""})

    @property
    def text(self) -> str:
        return self.texts["answer"]

    @property
    def thought(self) -> str:
        return self.texts["thought"]

    @property
    def tokens(self) -> list[int]:
        return [token for event in self.passes for token in event.tokens]

    @property
    def accepted(self) -> list[bool]:
        return [flag for event in self.passes for flag in event.accepted]

    @property
    def drafted(self) -> list[bool]:
        return [flag for event in self.passes for flag in event.drafted]


class Engine:
    """A client with a loaded pair."""

    def __init__(self, client: EngineClient, loaded: Loaded) -> None:
        self.client = client
        self.loaded = loaded

    def request(self, prompt: object = STORY, **fields: Any) -> Generate:
        """A request; the prompt is text for one user message, a list of messages, or a tuple of token ids."""
        if isinstance(prompt, str):
            fields["messages"] = (Message("user", prompt),)
        elif isinstance(prompt, tuple):
            fields["tokens"] = prompt
        elif isinstance(prompt, list):
            fields["messages"] = tuple(prompt)
        fields.setdefault("sampling", GREEDY)
        fields.setdefault("max_tokens", 120)
        return Generate(id=self.client.next_id(), **fields)

    def ask(self, prompt: object = STORY, during: Callable[[Any], None] | None = None, **fields: Any) -> Reply:
        """Asks and collects; `during` sees each event as it comes."""
        passes, prefills, texts = [], [], {"thought": "", "answer": ""}
        done = None
        for event in self.client.generate(self.request(prompt, **fields)):
            if during is not None:
                during(event)
            if isinstance(event, Progress):
                prefills.append(event)
                continue
            for piece in event.text:
                texts[piece.channel] += piece.text
            if isinstance(event, Pass):
                passes.append(event)
            else:
                done = event
        assert done is not None
        return Reply(done, passes, prefills, texts)


@contextmanager
def running(logs: Path, target: Path, drafter: Path | None = None, **fields: Any) -> Iterator[Engine]:
    """An engine with this pair loaded; one thread unless said otherwise, so that a busy machine does not slow it."""
    fields.setdefault("threads", 1)
    with EngineClient(logs) as client:
        load = Load(
            id=client.next_id(),
            target=bytes(target),
            drafter=None if drafter is None else bytes(drafter),
            **fields,
        )
        yield Engine(client, client.load(load))
