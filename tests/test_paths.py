"""Folders: under TANDEM_HOME or the platform's; resources in a checkout and in an installed package."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import platformdirs
import pytest

from tandem import paths
from tandem.errors import ModelError, TandemError

FOLDERS = [paths.data_dir, paths.cache_dir, paths.log_dir]


@pytest.mark.parametrize("folder", FOLDERS)
def test_a_throw_away_home_holds_every_folder(
    folder: Callable[[], Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TANDEM_HOME", str(tmp_path / "höme"))
    assert folder().parent == tmp_path / "höme"
    assert folder().is_dir()


def test_the_folders_differ() -> None:
    assert len({folder() for folder in FOLDERS}) == 3


def test_without_it_the_platform_decides(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TANDEM_HOME")
    for variable in ("XDG_DATA_HOME", "XDG_CACHE_HOME", "XDG_STATE_HOME"):
        monkeypatch.setenv(variable, str(tmp_path / variable))
    assert paths.data_dir() == platformdirs.user_data_path("tandem") == tmp_path / "XDG_DATA_HOME" / "tandem"
    assert paths.cache_dir() == tmp_path / "XDG_CACHE_HOME" / "tandem"
    assert paths.log_dir() == tmp_path / "XDG_STATE_HOME" / "tandem" / "log"


def test_a_folder_that_cannot_be_made_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("TANDEM_HOME", str(tmp_path / "file"))
    with pytest.raises(TandemError, match="cannot make its folder"):
        paths.data_dir()


def test_the_demo_pair_is_two_gguf_files(demo_pair: tuple[Path, Path]) -> None:
    assert [file.read_bytes()[:4] for file in demo_pair] == [b"GGUF", b"GGUF"]


def installed(folder: Path, *, resources: bool) -> Path:
    """A copy of the package as a wheel installs it."""
    source = Path(paths.__file__).parent
    package = folder / "site" / "tandem"
    package.mkdir(parents=True)
    for name in ("__init__.py", "errors.py", "paths.py"):
        shutil.copy(source / name, package)
    if resources:
        (package / "resources" / "demo").mkdir(parents=True)
    return package


def ask(package: Path, expression: str) -> str:
    """Evaluates an expression on a copy's `paths` in a Python of its own."""
    code = f"import sys; sys.path.insert(0, {str(package.parent)!r}); from tandem import errors, paths; {expression}"
    return subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout.strip()


def test_an_installed_package_has_its_own_resources(tmp_path: Path) -> None:
    package = installed(tmp_path, resources=True)
    assert ask(package, "print(paths.resources())") == str(package / "resources")


def test_a_missing_file_of_the_pair_is_a_model_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "demo").mkdir()
    monkeypatch.setattr(paths, "resources", lambda: tmp_path)
    with pytest.raises(ModelError, match="tiny-target") as caught:
        paths.demo_pair()
    assert caught.value.fault == "missing"


def test_an_installation_without_resources_says_so(tmp_path: Path) -> None:
    package = installed(tmp_path, resources=False)
    code = "\ntry: paths.resources()\nexcept errors.TandemError as error: print(error.remedy)"
    assert ask(package, code) == "Install Tandem again."
