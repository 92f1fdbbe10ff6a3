"""Another drive for a test: a small file system of its own, where the system lets us have one."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest


@contextmanager
def other_drive(folder: Path, size: str = "8m") -> Iterator[Path]:
    """A file system in memory at `folder`; the test is skipped where none can be made.

    Args:
        folder: Is made.
        size: As `mount` takes it.
    """
    folder.mkdir(parents=True)
    if not sys.platform.startswith("linux"):
        pytest.skip("only Linux gives a test a drive of its own")
    made = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(folder)], capture_output=True, check=False
    )
    if made.returncode:
        pytest.skip("not allowed to make a drive here")
    try:
        yield folder
    finally:
        subprocess.run(["umount", str(folder)], check=True)
