"""The pair's keeper with an engine that does what a test tells it to."""

from __future__ import annotations

import itertools
from typing import Any, cast

import msgspec
from PySide6.QtWidgets import QApplication

from tandem.engine.protocol import Loaded, ModelInfo
from tandem.settings import PairChoice, Settings
from tandem.ui.controller_pair import PairKeeper
from tandem.ui.engine_worker import EngineWorker

INFO = ModelInfo("a.gguf", "a", "gemma4", "Q4_0", 1)


class Engine:
    """Remembers what it was asked."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, int]] = []
        self._ids = itertools.count(1)

    def next_id(self) -> int:
        return next(self._ids)

    def load(self, request: int, _make: Any) -> None:
        self.asked.append(("load", request))

    def stop(self, request: int) -> None:
        self.asked.append(("stop", request))

    def unload(self) -> None:
        self.asked.append(("unload", 0))


def loaded(request: int) -> Loaded:
    return Loaded(
        id=request,
        target=INFO,
        drafter=None,
        method="none",
        problem=None,
        context=2048,
        trained_context=2048,
        threads=1,
        device="CPU",
        vocabulary=10,
        switches_thinking=False,
        load_s=0.1,
        kv_type="f16",
    )


def keeper(engine: Engine) -> PairKeeper:
    return PairKeeper(cast("EngineWorker", engine), Settings)


def test_a_pair_that_came_after_it_was_given_up_is_unloaded(qapp: QApplication) -> None:  # noqa: ARG001 - for tr
    engine = Engine()
    pairs = keeper(engine)
    pairs.load(PairChoice())
    pairs.cancel()
    pairs.on_report(loaded(1))
    assert engine.asked == [("load", 1), ("stop", 1), ("unload", 0)]
    assert pairs.state.kind == "none"


def test_a_pair_that_came_after_the_next_was_asked_for_does_not_take_that_one_away(qapp: QApplication) -> None:  # noqa: ARG001 - for tr
    engine = Engine()
    pairs = keeper(engine)
    pairs.load(PairChoice())
    pairs.load(PairChoice("files", "/another.gguf"))
    pairs.on_report(loaded(1))
    pairs.on_report(loaded(2))
    assert engine.asked == [("load", 1), ("stop", 1), ("load", 2)]
    assert pairs.state.kind == "loaded"
    assert pairs.state.loaded == msgspec.structs.replace(loaded(1), id=2)
