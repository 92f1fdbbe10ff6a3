"""Models to download in tests of the window: a small catalog, its files on the Hub of the tests, and who listens.

    with FakeHub() as hub, shelf(qtbot, hub) as table:
        table.keeper.download("e2b")
        table.wait(lambda: table.ready == ["e2b"])

"e2b" is the demo pair; "e4b" is the same with other names in its headers, so that its hashes are others.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from pytestqt.exceptions import TimeoutError as QtTimeout
from pytestqt.qtbot import QtBot

from support.desk import Desk, desk
from support.hub import FakeHub
from tandem import paths
from tandem.models.catalog import Catalog, CatalogFile, CatalogPair, CatalogSize, Role
from tandem.models.network import Network
from tandem.models.overview import Overview, PairView
from tandem.models.progress import JobProgress
from tandem.models.state import FileState
from tandem.models.store import Store
from tandem.settings import Loaded
from tandem.ui.controller_models import ModelsKeeper
from tandem.ui.session_state import Notice

SIGNALS = ("changed", "job", "checking", "found", "places_found", "network", "notice", "pair_ready", "load_requested")
KEYS = ("e2b", "e4b")


def alone(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    """Takes the user's own sign-in and network settings away; `folder` is the home of the Hub's tools."""
    monkeypatch.setenv("HF_HOME", str(folder))
    for name in ("HF_TOKEN", "HF_ENDPOINT", "HF_HUB_OFFLINE", "HTTPS_PROXY", "HTTP_PROXY", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.lower(), raising=False)


def content(key: str, role: Role) -> bytes:
    """The bytes of a pair's file."""
    data = paths.demo_pair()[0 if role == "target" else 1].read_bytes()
    return data if key == "e2b" else data.replace(b"tiny-gemma4", b"like-gemma4")


def named(key: str, role: Role) -> str:
    """Its name."""
    return f"tiny-{key}-{role}.gguf"


def catalog() -> Catalog:
    """The two pairs."""

    def file(key: str, role: Role) -> CatalogFile:
        data = content(key, role)
        digest = hashlib.sha256(data).hexdigest()
        return CatalogFile(role, f"tiny/{key}", named(key, role), digest, len(data))

    pairs = [CatalogPair(key, "tiny", "Q4_0", "Apache-2.0", file(key, "target"), file(key, "drafter")) for key in KEYS]
    sizes = [CatalogSize(pair.key, f"Tiny {pair.key.upper()}", True, (pair,)) for pair in pairs]
    return Catalog(1, tuple(sizes))


def fill(hub: FakeHub) -> None:
    """Puts both pairs on the Hub."""
    for key in KEYS:
        for role in ("target", "drafter"):
            hub.add(f"tiny/{key}", named(key, role), content(key, role))


def held(hub: FakeHub, credit: int = 2_500_000) -> None:
    """The storage sends so much, and then only what `hub.allow` allows."""
    hub.misbehave("slow", times=None)
    hub.allow(credit)


def put(store: Store, key: str) -> tuple[Path, Path]:
    """A pair as if it had been downloaded before."""
    pair = store.catalog.pair(key)
    assert pair is not None
    for file in pair.files:
        part = store.part(file)
        part.parent.mkdir(parents=True, exist_ok=True)
        part.write_bytes(content(key, file.role))
        assert file.pin is not None
        store.install(file, part, file.pin, "", file.size, pair.licence)
    found = store.pair_paths(pair)
    assert found is not None
    return found


class Shelf:
    """A controller's keeper of the models, and everything that its signals brought.

    Attributes:
        said: Name and argument of every signal, in order.
    """

    def __init__(self, table: Desk, hub: FakeHub) -> None:
        self.desk, self.hub = table, hub
        self.keeper: ModelsKeeper = table.controller.models
        self.said: list[tuple[str, Any]] = []
        for name in SIGNALS:
            getattr(self.keeper, name).connect(self._ear(name))

    def _ear(self, name: str) -> Callable[[Any], None]:
        def hear(argument: Any) -> None:
            self.said.append((name, argument))

        return hear

    def all(self, name: str) -> list[Any]:
        return [argument for said, argument in self.said if said == name]

    @property
    def ready(self) -> list[str]:
        return self.all("pair_ready")

    @property
    def jobs(self) -> list[JobProgress]:
        """All news of downloads, without "none"."""
        return [job for job in self.all("job") if job is not None]

    @property
    def job(self) -> JobProgress | None:
        """The last news of a download; None too where there were none."""
        told = self.all("job")
        return told[-1] if told else None

    @property
    def notices(self) -> list[Notice]:
        return self.all("notice")

    @property
    def overview(self) -> Overview:
        found = self.keeper.overview
        assert found is not None
        return found

    @property
    def store(self) -> Store:
        return Store.chosen(self.desk.controller.settings, catalog())

    def pair(self, key: str = "e2b") -> PairView:
        found = self.overview.pair(key)
        assert found is not None
        return found

    def state(self, key: str = "e2b") -> FileState | None:
        """Where a pair stands; None before anything was looked at."""
        return None if self.keeper.overview is None else self.pair(key).state

    def wait(self, condition: Callable[[], object], timeout: int = 30_000) -> None:
        self.desk.wait(condition, timeout)

    def until(self, state: FileState, key: str = "e2b") -> None:
        """Waits until a pair stands there, and nothing is being looked at any more."""
        self.wait(lambda: self.state(key) is state and not self.keeper.looking)

    def under_way(self, least: int = 1) -> JobProgress:
        """Waits until some bytes of a download are here."""
        told = len(self.jobs)
        try:
            self.wait(lambda: self.job is not None and self.job.running and self.job.done >= least)
        except QtTimeout as error:
            raise AssertionError(f"it is not under way: {self.jobs[max(0, told - 1) :]}") from error
        assert self.job is not None
        return self.job

    def installed(self, key: str = "e2b") -> tuple[Path, Path]:
        """Downloads a pair."""
        self.keeper.download(key)
        self.wait(lambda: key in self.ready)
        self.until(FileState.INSTALLED, key)
        view = self.pair(key)
        assert view.target is not None
        assert view.drafter is not None
        return Path(view.target), Path(view.drafter)


@contextmanager
def shelf(
    qtbot: QtBot, hub: FakeHub, known: Loaded | None = None, *, load: bool = False, **arguments: Any
) -> Iterator[Shelf]:
    """A controller on the small catalog and the Hub of the tests, started; closed at the end."""
    arguments.setdefault("catalog", catalog())
    arguments.setdefault("network", Network.chosen(endpoint=hub.endpoint, environ={}))
    with desk(qtbot, known, load=load, **arguments) as table:
        made = Shelf(table, hub)
        made.wait(lambda: made.keeper.overview is not None)
        yield made
