"""Engines that tests share: a real process each, loaded once."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from support.engines import Engine, running
from support.ggufchecks import Make, Refused, facts_in, refusals_in


@pytest.fixture(scope="session")
def demo(demo_pair: tuple[Path, Path], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    """The demo pair with its MTP drafter."""
    with running(tmp_path_factory.mktemp("demo-logs"), *demo_pair) as engine:
        yield engine


@pytest.fixture(scope="session")
def demo_ngram(demo_pair: tuple[Path, Path], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    """The demo target with prompt lookup."""
    with running(tmp_path_factory.mktemp("ngram-logs"), demo_pair[0], method="ngram") as engine:
        yield engine


@pytest.fixture(scope="session")
def demo_draft_model(demo_pair: tuple[Path, Path], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    """The demo target drafting for itself, as a classic draft model of the same vocabulary."""
    logs = tmp_path_factory.mktemp("draft-model-logs")
    with running(logs, demo_pair[0], demo_pair[0], method="draft-model") as engine:
        yield engine


@pytest.fixture
def refused(tmp_path: Path) -> Refused:
    """Headers that must be refused, written and read."""
    return refusals_in(tmp_path)


@pytest.fixture
def make(tmp_path: Path) -> Make:
    """Headers that are fine, written and read."""
    return facts_in(tmp_path)
