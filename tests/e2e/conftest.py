"""Pairs that say what a test needs."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from support.chat_templates import GEMMA4_31B
from support.handset import CHANNEL_CLOSE, CHANNEL_OPEN, NEWLINE, TINY, Pair, Script


@pytest.fixture(scope="session")
def thinker(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """The flags of a pair that thinks when asked to, through Gemma 4's own template."""
    script = Script()
    script.say(NEWLINE, CHANNEL_OPEN, "thought\n", "Let me ", "see.", CHANNEL_CLOSE, "Yes", ", indeed.")
    return _flags(script.write(tmp_path_factory.mktemp("thinker"), chat_template=GEMMA4_31B))


@pytest.fixture(scope="session")
def endless(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """The flags of a pair that goes on for minutes."""
    script = Script()
    first = script.token("la ")
    script.say(NEWLINE, first, "li ", then=first)
    shape = replace(TINY, name="endless", context=1 << 17)
    pair = script.write(tmp_path_factory.mktemp("endless"), shape)
    return [*_flags(pair), "--temperature", "0", "--context", "100000"]


def _flags(pair: Pair) -> list[str]:
    return [f"--target={pair.target}", f"--drafter={pair.drafter}", "--threads=1"]


@pytest.fixture(scope="session")
def demo_target(demo_pair: tuple[Path, Path]) -> Path:
    return demo_pair[0]


@pytest.fixture(scope="session")
def demo_drafter(demo_pair: tuple[Path, Path]) -> Path:
    return demo_pair[1]
