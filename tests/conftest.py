"""What every test gets: a home of its own, and the demo pair when it asks."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tandem import paths


@pytest.fixture(scope="session", autouse=True)
def _session_home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """For what lives longer than a test, such as a shared engine."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(paths.HOME_VARIABLE, str(tmp_path_factory.mktemp("session-home")))
        yield


@pytest.fixture(autouse=True)
def _home(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """No test sees the user's folders, nor what another test left."""
    monkeypatch.setenv(paths.HOME_VARIABLE, str(tmp_path_factory.mktemp("home")))


@pytest.fixture(scope="session")
def demo_pair() -> tuple[Path, Path]:
    """The built-in pair: target, drafter."""
    return paths.demo_pair()
