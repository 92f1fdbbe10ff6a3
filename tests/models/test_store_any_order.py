"""Whatever happens to files in whatever order: nothing wrong counts as verified, and nothing is lost."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from support.modelfiles import catalog_of, drafter_bytes, flip, install, llama_bytes, pair_of, sha256, target_bytes
from tandem.models.imports import look, take
from tandem.models.move import move
from tandem.models.overview import overview
from tandem.models.state import FileState
from tandem.models.store import Store
from tandem.models.verify import verify

PAIR = pair_of()
CATALOG = catalog_of(PAIR)
GOOD = {PAIR.target.file: target_bytes(), PAIR.drafter.file: drafter_bytes(), "llama.gguf": llama_bytes()}


class World:
    """A model folder, a user's file, and the things that befall them."""

    def __init__(self, base: Path) -> None:
        self.base = base
        self.store = Store(base / "models", CATALOG)
        self.mine = base / "llama.gguf"
        self.mine.write_bytes(GOOD["llama.gguf"])
        self.moves = 0

    def places(self) -> list[Path]:
        return [entry.path for entry in self.store.installed() if entry.path.is_file() and not entry.in_place]

    def fetch_target(self) -> None:
        install(self.store, PAIR.target, target_bytes())

    def fetch_drafter(self) -> None:
        install(self.store, PAIR.drafter, drafter_bytes())

    def import_copy(self) -> None:
        take(self.store, look(self.mine, store=self.store), "copy")

    def import_link(self) -> None:
        take(self.store, look(self.mine, store=self.store), "link")

    def import_in_place(self) -> None:
        take(self.store, look(self.mine, store=self.store), "in-place")

    def rot(self) -> None:
        for path in self.places()[:1]:
            if not path.samefile(self.mine):  # a link to the user's file is the user's file
                flip(path)

    def touch(self) -> None:
        for path in self.places()[-1:]:
            path.touch()

    def lose(self) -> None:
        for path in self.places()[:1]:
            path.unlink()

    def verify(self) -> None:
        verify(self.store)

    def forget_the_list(self) -> None:
        self.store.index.path.unlink(missing_ok=True)
        self.restart()

    def damage_the_list(self) -> None:
        if self.store.index.path.exists():
            self.store.index.path.write_bytes(b"{")
        self.restart()

    def remove_first(self) -> None:
        for entry in self.store.installed()[:1]:
            self.store.remove(entry)

    def move(self) -> None:
        self.moves += 1
        self.store = move(self.store, self.base / f"models {self.moves}")

    def restart(self) -> None:
        self.store = Store(self.store.folder, CATALOG)


DEEDS: list[Callable[[World], None]] = [
    World.fetch_target,
    World.fetch_drafter,
    World.import_copy,
    World.import_link,
    World.import_in_place,
    World.rot,
    World.touch,
    World.lose,
    World.verify,
    World.forget_the_list,
    World.damage_the_list,
    World.remove_first,
    World.move,
    World.restart,
]


@settings(max_examples=60, deadline=None)
@given(deeds=st.lists(st.sampled_from(DEEDS), max_size=12))
def test_any_order_of_events(deeds: list[Callable[[World], None]]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        world = World(Path(folder))
        for deed in deeds:
            deed(world)
            seen = overview(world.store)
            views = [view for pair in seen.pairs for view in pair.files] + list(seen.imported)
            assert all(view.state is FileState.INSTALLED or not view.path or view.sentence for view in views)
        verify(world.store)
        for entry in world.store.installed():
            if world.store.state(entry) is FileState.INSTALLED:
                assert sha256(entry.path.read_bytes()) == entry.sha256
                # A file that no catalog knows, found again after the list was lost, is what it is by then.
                assert not entry.repo or entry.sha256 == sha256(GOOD[entry.file])
        assert world.mine.read_bytes() == GOOD["llama.gguf"]  # the user's own file is never touched
        world.fetch_target()  # from everywhere, the pair can be had again
        world.fetch_drafter()
        assert overview(world.store).pairs[0].state is FileState.INSTALLED
        assert all(one.good for one in verify(world.store, [e for e in world.store.installed() if e.repo]))
