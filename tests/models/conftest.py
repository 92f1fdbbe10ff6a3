"""What the tests of the models get: a Hub on loopback, and no trace of the user's own sign-in or network settings."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from support.hub import FakeHub

_VARIABLES = (
    "HF_ENDPOINT",
    "HF_TOKEN",
    "HUGGING_FACE_HUB_TOKEN",
    "HF_HUB_OFFLINE",
    "TRANSFORMERS_OFFLINE",
    "HF_TOKEN_PATH",
    "XDG_CACHE_HOME",
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "ALL_PROXY",
    "NO_PROXY",
)


@pytest.fixture(autouse=True)
def _no_network_of_the_user(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> None:
    for name in _VARIABLES:
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.lower(), raising=False)
    monkeypatch.setenv("HF_HOME", str(tmp_path_factory.mktemp("hf-home")))


@pytest.fixture
def hub() -> Iterator[FakeHub]:
    """The Hub and its storage host, without any file."""
    with FakeHub() as running:
        yield running
