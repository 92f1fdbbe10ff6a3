"""Downloads in tests: a pair of made-up files on the Hub of the tests, and a model folder to get it into."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

import msgspec

from support.ggufbytes import Tensor, drafter, sections, target
from support.hub import FakeHub
from support.modelfiles import catalog_of, entry, sha256
from tandem.errors import TandemError
from tandem.models.catalog import CatalogFile, CatalogPair
from tandem.models.download import Download, Options
from tandem.models.hub import Hub
from tandem.models.network import Network
from tandem.models.part import read_record
from tandem.models.progress import JobProgress, Waiting
from tandem.models.state import FileState, follows
from tandem.models.store import Store

TARGET, DRAFTER = "tester/target", "tester/drafter"
QUICK = Options(connections=4, stall_s=20.0, tries=3, backoff_s=0.001, piece_bytes=1 << 16)
"""Small pieces, no waiting to speak of."""


def noise(role: str, size: int, seed: int = 1) -> bytes:
    """A file that is a target or a drafter by its header, with some `size` bytes of which none are alike."""
    rows = max(1, size // 18)
    made = sections(target() if role == "target" else drafter(), [Tensor(shape=(32, rows), size=18 * rows)])
    data = bytearray(random.Random(seed).randbytes(len(made.data)))
    return replace(made, data=bytes(data)).joined()


@dataclass
class Fetching:
    """A pair that is to be downloaded.

    Attributes:
        server: The Hub.
        store: The model folder.
        pair: The pair.
        contents: Its files' bytes, the target's first.
        told: All news of the last download.
    """

    server: FakeHub
    store: Store
    pair: CatalogPair
    contents: tuple[bytes, bytes]
    told: list[JobProgress] = field(default_factory=list)

    def hub(self, **environ: str) -> Hub:
        """The real client; to be closed."""
        return Hub(Network.chosen(endpoint=self.server.endpoint, environ=environ))

    @contextmanager
    def download(self, options: Options = QUICK) -> Iterator[Download]:
        """A download that has not begun."""
        self.told = []
        with self.hub() as hub:
            yield Download(self.pair, self.store, hub, options, self.told.append)

    def run(self, options: Options = QUICK) -> JobProgress:
        """Downloads; whatever it ends with."""
        with self.download(options) as download:
            said = ""
            try:
                download.run()
            except TandemError as error:
                said = error.sentence
            assert download.progress.sentence == said
            return download.progress

    def half(self) -> int:
        """Leaves a part of the target, as a run leaves it that gave up in the middle; its size."""
        self.server.misbehave("drop", at=600_000, times=None)
        self.run(msgspec.structs.replace(QUICK, connections=1, tries=2))
        self.server.behave()
        self.server.requests.clear()
        record = read_record(self.record())
        assert record is not None
        assert record.synced >= 500_000
        return record.synced

    def file(self, index: int) -> CatalogFile:
        return self.pair.files[index]

    def part(self, index: int = 0) -> Path:
        return self.store.part(self.file(index))

    def record(self, index: int = 0) -> Path:
        return self.store.record_of(self.part(index))

    def states(self) -> list[tuple[str, ...]]:
        """The states that were told, both files', without repetitions."""
        states: list[tuple[str, ...]] = []
        for progress in self.told:
            now = tuple(file.state.value for file in progress.files)
            if not states or states[-1] != now:
                states.append(now)
        return states

    def waitings(self) -> list[Waiting]:
        """Why it waited, each once."""
        found: list[Waiting] = []
        for before, progress in zip([None, *self.told], self.told, strict=False):
            if progress.waiting is not None and (before is None or before.waiting is None):
                found.append(progress.waiting)
        return found

    def ranges(self, index: int = 0) -> list[tuple[int, int] | None]:
        """What the storage was asked for of a file: first byte and the one behind the last; None for everything."""
        found: list[tuple[int, int] | None] = []
        for seen in self.server.seen("storage"):
            if f"/{self.file(index).repo}/" in seen.path:
                first, _, last = (seen.range or "").removeprefix("bytes=").partition("-")
                found.append((int(first), int(last) + 1) if seen.range else None)
        return found

    def check_steps(self) -> None:
        """Only allowed steps were told."""
        for before, after in zip(self.told, self.told[1:], strict=False):
            for one, other in zip(before.files, after.files, strict=True):
                assert follows(one.state, other.state), (one, other)

    def check_installed(self, killed: bool = False) -> None:
        """Both files are there, right, and nothing else is.

        Args:
            killed: A process was killed, which may have been writing a record just then; that is swept later.
        """
        self.check_steps()
        for index, content in enumerate(self.contents):
            place = self.store.place(self.file(index))
            assert place.read_bytes() == content
            found = self.store.find(self.file(index))
            assert found is not None
            assert found.sha256 == sha256(content)
            names = {path.name for path in place.parent.iterdir()}
            assert {name for name in names if not (killed and name.startswith(".tandem-"))} == {place.name}
        if self.told:
            assert [file.state for file in self.told[-1].files] == [FileState.INSTALLED] * 2


def fetching(server: FakeHub, folder: Path, sizes: tuple[int, int] = (1 << 20, 1 << 17), seed: int = 1) -> Fetching:
    """Puts a pair of files on the Hub.

    Args:
        server: The Hub.
        folder: The model folder.
        sizes: Bytes of target and drafter, about.
        seed: Another one makes other files.
    """
    contents = noise("target", sizes[0], seed), noise("drafter", sizes[1], seed + 1)
    names = "small-target.gguf", "small-drafter.gguf"
    server.add(TARGET, names[0], contents[0])
    server.add(DRAFTER, names[1], contents[1])
    pair = CatalogPair(
        key="small",
        source="tester",
        quantisation="Q4_0",
        licence="Apache-2.0",
        target=entry("target", contents[0], repo=TARGET, file=names[0]),
        drafter=entry("drafter", contents[1], repo=DRAFTER, file=names[1]),
    )
    return Fetching(server, Store(folder, catalog_of(pair)), pair, contents)
