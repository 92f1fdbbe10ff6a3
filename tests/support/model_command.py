"""`tandem models` within a test: a small catalog, a folder, and what the command said."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest

from support.catalogs import write_catalog
from support.command import Outcome
from support.shelf import catalog as small_catalog
from tandem import cli, paths
from tandem.models.catalog import CatalogPair
from tandem.models.store import Store


@dataclass
class Shell:
    """Somebody at a shell who uses the small catalog: "e2b" is the demo pair, "e4b" one like it.

    Attributes:
        catalog: Its file.
        capfd: Of the test, to run the command in its process.
    """

    catalog: Path
    capfd: pytest.CaptureFixture[str] | None = None

    @classmethod
    def at(cls, folder: Path, capfd: pytest.CaptureFixture[str] | None = None) -> Shell:
        """With the catalog's file in that folder."""
        return cls(write_catalog(folder / "catalog.toml", small_catalog()), capfd)

    @property
    def store(self) -> Store:
        """The usual model folder."""
        return Store(paths.models_dir(), small_catalog())

    def pair(self, key: str = "e2b") -> CatalogPair:
        found = small_catalog().pair(key)
        assert found is not None
        return found

    def models(self, *arguments: str | Path) -> Outcome:
        """Runs `tandem models …`; the output is not that of a terminal."""
        return self.tandem("models", "--catalog", self.catalog, *arguments)

    def tandem(self, *arguments: str | Path) -> Outcome:
        """Runs `tandem …` in this process."""
        assert self.capfd is not None, "what it says can only be caught by a test that captures"
        self.capfd.readouterr()
        try:
            code = cli.main([str(argument) for argument in arguments])
        except SystemExit as ended:
            code = int(ended.code or 0)
        captured = self.capfd.readouterr()
        assert "Traceback" not in captured.err
        return Outcome(code, captured.out, captured.err)
