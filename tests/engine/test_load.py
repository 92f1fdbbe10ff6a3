"""Loading a pair: progress, what is reported, and drafters that cannot be used."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from support.engines import GREEDY, STORY, Engine, running
from support.handset import TINY, write_pair
from tandem.engine.client import EngineClient
from tandem.engine.protocol import Done, Generate, Load, Pass, Progress
from tandem.engine.template import Message
from tandem.errors import ModelError, UsageError


@pytest.fixture
def other_drafter(tmp_path: Path) -> Path:
    """A good drafter of another target."""
    return write_pair(tmp_path / "other", TINY).drafter


def test_progress_goes_from_nothing_to_all_stage_by_stage(demo_pair: tuple[Path, Path], tmp_path: Path) -> None:
    events: list[Progress] = []
    with EngineClient(tmp_path) as client:
        target, drafter = demo_pair
        load = Load(id=client.next_id(), target=bytes(target), drafter=bytes(drafter))
        loaded = client.load(load, events.append)
    stages = [event.stage for event in events]
    assert stages == sorted(stages, key=["target", "drafter", "threads"].index)
    for stage in ("target", "drafter"):
        done = [event.done / event.total for event in events if event.stage == stage]
        assert done == sorted(done)
        assert 0 <= done[0] <= 1
        assert done[-1] == 1
    assert loaded.load_s > 0
    assert loaded.threads >= 1


def test_what_is_reported_comes_from_the_files(demo: Engine, demo_pair: tuple[Path, Path]) -> None:
    loaded = demo.loaded
    assert (loaded.target.file, loaded.target.architecture) == (demo_pair[0].name, "gemma4")
    assert loaded.target.bytes == demo_pair[0].stat().st_size
    assert loaded.drafter is not None
    assert (loaded.drafter.file, loaded.drafter.architecture) == (demo_pair[1].name, "gemma4-assistant")
    assert (loaded.method, loaded.problem, loaded.device) == ("mtp", None, "CPU")
    assert (loaded.vocabulary, loaded.context, loaded.trained_context) == (4096, 2048, 2048)


def test_a_drafter_of_another_target_is_an_error_where_one_is_needed(
    demo_pair: tuple[Path, Path], other_drafter: Path, tmp_path: Path
) -> None:
    with EngineClient(tmp_path) as client:
        load = Load(
            id=client.next_id(), target=bytes(demo_pair[0]), drafter=bytes(other_drafter), threads=1, need_drafter=True
        )
        with pytest.raises(ModelError) as caught:
            client.load(load)
        assert caught.value.fault == "not-a-pair"
        assert "256" in caught.value.sentence  # the target's embedding length, beside the drafter's


def test_without_that_need_the_target_goes_on_alone_and_says_why(
    demo: Engine, demo_pair: tuple[Path, Path], other_drafter: Path, tmp_path: Path
) -> None:
    with running(tmp_path, demo_pair[0], other_drafter) as engine:
        assert (engine.loaded.method, engine.loaded.drafter) == ("none", None)
        assert engine.loaded.problem is not None
        assert engine.loaded.problem.reason.endswith(".")
        reply = engine.ask(draft="3")
        assert reply.done.stats.verified == 0
        assert reply.tokens == demo.ask(draft="off", reuse=False).tokens


def test_an_engine_that_dies_over_the_drafter_comes_back_with_the_target_alone(
    demo_pair: tuple[Path, Path], tmp_path: Path
) -> None:
    client = EngineClient(tmp_path)
    client.start()
    killed: list[int] = []

    def kill_once(event: Progress) -> None:
        if event.stage == "drafter" and not killed:
            killed.append(client.pid or 0)
            os.kill(client.pid or 0, signal.SIGKILL)

    target, drafter = demo_pair
    load = Load(id=client.next_id(), target=bytes(target), drafter=bytes(drafter), threads=1)
    loaded = client.load(load, kill_once)
    assert killed
    assert client.pid != killed[0]
    assert loaded.method == "none"
    assert loaded.problem is not None
    assert "killed" in loaded.problem.reason
    request = Generate(id=client.next_id(), messages=(Message("user", STORY),), draft="3", sampling=GREEDY)
    events = list(client.generate(request))
    assert any(isinstance(event, Pass) for event in events)
    assert isinstance(events[-1], Done)
    client.close()


@pytest.mark.parametrize("context", [0, 31, 2049, 10**9])
def test_contexts_that_make_no_sense_are_refused_with_the_range(
    demo_pair: tuple[Path, Path], tmp_path: Path, context: int
) -> None:
    with EngineClient(tmp_path) as client:
        with pytest.raises(UsageError) as caught:
            client.load(Load(id=client.next_id(), target=bytes(demo_pair[0]), context=context))
        assert "32" in caught.value.remedy
        assert "2,048" in caught.value.remedy


@pytest.mark.parametrize("context", [32, 33, 100, 257, 1000])
def test_small_contexts_hold_exactly_what_was_asked_for(
    demo_pair: tuple[Path, Path], tmp_path: Path, context: int
) -> None:
    with running(tmp_path, *demo_pair, context=context) as engine:
        assert engine.loaded.context == context
        for draft in ("off", "3", "16"):
            reply = engine.ask("Hello!", draft=draft, ignore_eos=True, max_tokens=None)
            assert reply.done.stop == "context"
            assert reply.done.stats.prompt_tokens + len(reply.tokens) == context + 1
