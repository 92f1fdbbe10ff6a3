"""What every test of the chats gets: a store of its own, and a clock that it sets."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from support.chats import Clock, Talk
from tandem.chat.history import History


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "chats.db"


@pytest.fixture
def history(path: Path, clock: Clock) -> Iterator[History]:
    history = History.open(path, clock)
    yield history
    history.close()


@pytest.fixture
def talk(history: History) -> Talk:
    return Talk(history, "A chat")
