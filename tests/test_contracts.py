"""What holds for the project as a whole: who imports whom, sizes, pins, and what may stand in a file."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from tandem import __version__

ROOT = Path(__file__).resolve().parent.parent
LOCKS = [ROOT / "packaging" / "lock" / "requirements.txt", ROOT / "packaging" / "engine" / "tools.txt"]
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))

# A folder that only one machine has: home folders, temporary folders and the usual places of builds.
MACHINE_PATH = re.compile(rb"(?<![\w.~$}<>*/-])/(?:home|Users|root|work|tmp|builds|workspace)/[\w.-]+")


def project_files() -> list[Path]:
    """Every file that is, or will be, under version control."""
    if (ROOT / ".git").exists():
        listing = ["git", "-C", str(ROOT), "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
        names = subprocess.run(listing, check=True, capture_output=True).stdout.decode().split("\0")
        return [ROOT / name for name in names if name and (ROOT / name).is_file()]
    made = {".venv", "__pycache__", "build", "dist"}
    found = (path for path in ROOT.rglob("*") if path.is_file())
    return [path for path in found if not any(part in made or part.endswith("_cache") for part in path.parts)]


def lint_imports(root: Path) -> subprocess.CompletedProcess[str]:
    """Runs import-linter with this project's contracts on `root`/desktop."""
    return subprocess.run(
        [Path(sys.executable).parent / "lint-imports", "--no-cache", "--no-logo", ROOT / "pyproject.toml"],
        cwd=root,
        env=os.environ | {"PYTHONPATH": str(root / "desktop"), "COLUMNS": "200"},
        capture_output=True,
        text=True,
    )


def test_imports_go_one_way() -> None:
    result = lint_imports(ROOT)
    assert result.returncode == 0, result.stdout + result.stderr


@pytest.mark.parametrize(
    ("module", "line", "contract"),
    [
        ("engine/extra.py", "import tandem.chat", "Arrows between rooms"),
        ("engine/extra.py", "import tandem.paths", "its own room"),
        ("engine/extra.py", "import PySide6.QtCore", "Qt is used"),
        ("chat/extra.py", "from PySide6 import QtCore", "Qt is used"),
        ("cli.py", "import llama_cpp", "knows llama_cpp"),
        ("engine/extra.py", "from llama_cpp import llama_cpp", "knows llama_cpp"),
        ("chat/extra.py", "import tandem.ui", "Arrows between rooms"),
        ("paths.py", "import tandem.engine", "Arrows between rooms"),
    ],
)
def test_a_forbidden_import_is_noticed(tmp_path: Path, module: str, line: str, contract: str) -> None:
    for source in (ROOT / "desktop").rglob("*.py"):
        copy = tmp_path / source.relative_to(ROOT)
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(source, copy)
    package = tmp_path / "desktop" / "tandem"
    for room in ("chat", "ui"):
        (package / room).mkdir(exist_ok=True)
        (package / room / "__init__.py").touch()
    (package / module).write_text(f"{line}\n", "utf-8")

    result = lint_imports(tmp_path)

    assert result.returncode != 0
    broken = [report for report in result.stdout.splitlines() if " BROKEN" in report]
    assert any(contract in report for report in broken), result.stdout


def test_no_module_is_longer_than_400_lines() -> None:
    modules = [path for path in project_files() if path.suffix == ".py" and "tests" not in path.relative_to(ROOT).parts]
    sizes = {str(path.relative_to(ROOT)): len(path.read_text("utf-8").splitlines()) for path in modules}
    assert "desktop/tandem/paths.py" in sizes
    assert {path: size for path, size in sizes.items() if size > 400} == {}


def test_packaging_is_no_package() -> None:
    # It would hide the distribution of that name from everything that imports it, PyInstaller first.
    assert list((ROOT / "packaging").rglob("__init__.py")) == []


@pytest.mark.parametrize("lock", LOCKS, ids=lambda path: path.name)
def test_every_locked_package_has_one_version_and_hashes(lock: Path) -> None:
    text = lock.read_text("utf-8")
    entries = re.split(r"\n(?=\S)", text.replace("\\\n", "").strip())
    assert len(entries) > 4
    for entry in entries:
        assert re.match(r"[a-z0-9][a-z0-9._-]*==[\w.]+(\s*;[^#]+?)?\s+--hash=sha256:[0-9a-f]{64}", entry), entry
    assert "://" not in text


def test_everything_asked_for_is_locked() -> None:
    project = PYPROJECT["project"]
    locked = {line.partition("==")[0] for line in LOCKS[0].read_text("utf-8").splitlines() if "==" in line}
    asked = [*project["dependencies"], *project["optional-dependencies"]["dev"], *PYPROJECT["build-system"]["requires"]]
    names = {re.split(r"[^\w.-]", requirement)[0].lower() for requirement in asked}
    # The engine is built from source by packaging/engine, which pins it.
    assert names - locked == {"llama-cpp-python"}


def test_the_engine_has_one_version() -> None:
    build = (ROOT / "packaging" / "engine" / "build.py").read_text("utf-8")
    version = re.search(r'^VERSION: Final = "(.+)"$', build, re.MULTILINE)
    assert version is not None
    assert f"llama-cpp-python=={version[1]}" in PYPROJECT["project"]["dependencies"]


def test_the_build_backend_has_one_version() -> None:
    (hatchling,) = PYPROJECT["build-system"]["requires"]
    assert f"{hatchling} \\" in LOCKS[0].read_text("utf-8").splitlines()
    assert hatchling in (ROOT / "packaging" / "lock" / "update.sh").read_text("utf-8")


def test_the_changelog_knows_this_version() -> None:
    text = (ROOT / "CHANGELOG.md").read_text("utf-8")
    newest = re.split(r"^## ", text, flags=re.MULTILINE)[1]
    assert newest.startswith(("[Unreleased]", f"[{__version__}]"))
    assert re.search(rf"\b{re.escape(__version__)}\b", newest)


def test_continuous_integration_runs_what_developers_run() -> None:
    script = ROOT / ".ci" / "run"
    commands = [line for line in script.read_text("utf-8").splitlines() if line and not line.startswith("#")]
    assert commands == ["set -euo pipefail", 'cd "$(dirname "${BASH_SOURCE[0]}")/.."', "exec make test"]


def test_no_file_names_a_folder_of_the_machine_it_was_made_on() -> None:
    files = project_files()
    assert ROOT / "pyproject.toml" in files
    found = {
        str(path.relative_to(ROOT)): match[0].decode()
        for path in files
        if (match := MACHINE_PATH.search(path.read_bytes()))
    }
    assert found == {}


def test_a_machine_path_would_be_noticed() -> None:
    folder = "/".join(["", "home", "someone", "tandem"])
    assert MACHINE_PATH.search(f'model = "{folder}"'.encode())
    assert not MACHINE_PATH.search(b"docs/home/page ~/work/x https://example.org/home/page")
