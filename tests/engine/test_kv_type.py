"""KV caches of other types than f16: what they hold, and that the drafter still reads them right."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import pytest

from support.engines import Engine, running
from support.handset import TINY, write_pair
from tandem.engine.client import EngineClient
from tandem.engine.protocol import Generate, KvType, Load
from tandem.engine.template import Message
from tandem.errors import ModelError, UsageError

PROMPTS = ("Tell me a short story about a fox.", "List seven animals.", "토끼에 대한 짧은 이야기를 써 주세요.")


class Cache(NamedTuple):
    """What llama.cpp logged about its caches: those it made room for, and all that it uses."""

    buffers_mib: list[float]
    key_types: list[str]


def caches(logs: Path) -> Cache:
    (log,) = logs.glob("engine-*.log")
    text = log.read_text()
    buffers = re.findall(r"KV buffer size = +([\d.]+) MiB", text)
    return Cache([float(size) for size in buffers], re.findall(r"MiB \(.*seqs\), K \((\w+)\)", text))


@pytest.fixture(scope="module")
def logs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("q8-logs")


@pytest.fixture(scope="module")
def quantised(demo_pair: tuple[Path, Path], logs: Path) -> Iterator[Engine]:
    with running(logs, *demo_pair, kv_type="q8_0") as engine:
        yield engine


def acceptance(engine: Engine) -> float:
    """Share of drafts accepted over long answers, in which not all is easy."""
    figures = [engine.ask(prompt, draft="3", max_tokens=300, ignore_eos=True).done.stats for prompt in PROMPTS]
    return sum(one.accepted for one in figures) / sum(one.verified for one in figures)


def test_f16_is_the_default_and_is_said(demo: Engine) -> None:
    assert demo.loaded.kv_type == "f16"


def test_the_targets_cache_is_quantised_and_the_drafter_has_none_of_its_own(
    quantised: Engine, logs: Path, demo_pair: tuple[Path, Path], tmp_path: Path
) -> None:
    assert (quantised.loaded.kv_type, quantised.loaded.problem) == ("q8_0", None)
    found = caches(logs)
    with running(tmp_path, *demo_pair):
        plain = caches(tmp_path)
    assert found.key_types[:2] == ["q8_0", "q8_0"]  # full and sliding layers of the target
    assert len(found.buffers_mib) == len(plain.buffers_mib) == 2
    assert sum(found.buffers_mib) < 0.6 * sum(plain.buffers_mib)


def test_the_drafter_is_right_about_as_often_as_with_f16(quantised: Engine, demo: Engine) -> None:
    assert acceptance(quantised) == pytest.approx(acceptance(demo), abs=0.08)


@pytest.mark.parametrize("prompt", PROMPTS)
def test_greedy_text_is_that_of_plain_decoding(quantised: Engine, prompt: str) -> None:
    plain = quantised.ask(prompt, draft="off", reuse=False)
    assert len(plain.tokens) > 10
    for length in (1, 2, 3, 6):
        drafted = quantised.ask(prompt, draft=str(length), reuse=False)
        assert drafted.tokens == plain.tokens, f"length {length}"
        assert drafted.done.stats.accepted > 0


def test_turns_edits_and_checkpoints_work_as_with_f16(quantised: Engine) -> None:
    history: list[Message] = []
    for turn in range(8):
        asked = [*history, Message("user", PROMPTS[turn % 3])]
        reply = quantised.ask(asked, draft="3")
        assert reply.done.stats.verified > 0
        if turn:
            assert reply.done.stats.cached_tokens > 0
        history = [*asked, Message("assistant", reply.text)]
    assert quantised.ask([*history, Message("user", "Hello!")]).done.stats.prompt_tokens > 300
    edited = [*history[:4], Message("user", "List five fruits.")]  # behind the sliding layers: from a checkpoint
    reply = quantised.ask(edited, draft="3")
    assert reply.done.stats.cached_tokens > 0
    assert reply.tokens[:4] == quantised.ask(edited, draft="off", reuse=False).tokens[:4]


def test_a_draft_model_keeps_its_own_cache_in_f16(demo_pair: tuple[Path, Path], tmp_path: Path) -> None:
    with running(tmp_path, demo_pair[0], demo_pair[0], method="draft-model", kv_type="q8_0") as engine:
        assert engine.loaded.method == "draft-model"
        assert caches(tmp_path).key_types == ["q8_0", "q8_0", "f16", "f16"]
        assert engine.ask(draft="3").done.stats.accepted > 0


@pytest.mark.parametrize("flash_attention", [True, False])
def test_the_drafter_reads_the_cache_as_the_target_wrote_it(
    demo: Engine, demo_pair: tuple[Path, Path], tmp_path: Path, flash_attention: bool
) -> None:
    """Without flash attention the values stand in another order; a drafter that has it on would read nonsense."""
    with running(tmp_path, *demo_pair, flash_attention=flash_attention) as engine:
        assert acceptance(engine) == pytest.approx(acceptance(demo), abs=0.08)


def test_without_flash_attention_it_is_refused(demo_pair: tuple[Path, Path], tmp_path: Path) -> None:
    with EngineClient(tmp_path) as client:
        target, drafter = demo_pair
        load = Load(
            client.next_id(), target=bytes(target), drafter=bytes(drafter), kv_type="q8_0", flash_attention=False
        )
        with pytest.raises(UsageError) as caught:
            client.load(load)
        assert "flash attention" in caught.value.sentence
        assert "f16" in caught.value.remedy


def test_a_model_whose_heads_do_not_fit_the_type_is_told(tmp_path: Path) -> None:
    pair = write_pair(tmp_path / "odd", replace(TINY, head=48))
    with running(tmp_path / "logs", pair.target, pair.drafter) as engine:
        assert engine.loaded.problem is None
    with EngineClient(tmp_path / "logs") as client:
        load = Load(client.next_id(), target=bytes(pair.target), kv_type="q8_0", threads=1)
        with pytest.raises(ModelError) as caught:
            client.load(load)
        assert (caught.value.fault, caught.value.remedy) == ("load-failed", "Choose the KV type f16.")
        assert "q8_0" in caught.value.sentence
        assert client.load(Load(client.next_id(), target=bytes(pair.target), threads=1)).kv_type == "f16"
        assert list(client.generate(Generate(client.next_id(), prompt="x", max_tokens=2)))


def test_a_type_that_there_is_not_is_no_request(tmp_path: Path) -> None:
    unknown: KvType = "q2_k"  # type: ignore[assignment]
    with EngineClient(tmp_path) as client, pytest.raises(UsageError):
        client.load(Load(client.next_id(), target=b"x", kv_type=unknown))
