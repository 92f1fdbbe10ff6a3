"""A catalog as a file, for the hidden option `--catalog`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec

from tandem.models.catalog import Catalog


def write_catalog(path: Path, catalog: Catalog) -> Path:
    """Writes it as TOML; returns `path`."""
    plain = msgspec.to_builtins(catalog)
    lines = [f"version = {plain['version']}"]
    for size in plain["sizes"]:
        lines += ["[[sizes]]", *_values(size)]
        for pair in size["pairs"]:
            lines += ["[[sizes.pairs]]", *_values(pair)]
            for role in ("target", "drafter"):
                lines += [f"[sizes.pairs.{role}]", *_values(pair[role])]
    path.write_text("\n".join([*lines, ""]), encoding="utf-8")
    return path


def _values(record: dict[str, Any]) -> list[str]:
    """The plain fields; JSON's strings, numbers and truth values are TOML's."""
    return [f"{name} = {json.dumps(one)}" for name, one in record.items() if isinstance(one, str | int)]
