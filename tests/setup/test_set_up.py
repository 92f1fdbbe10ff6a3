"""Set-up's decisions: which Python, which system packages, what is still to be done. Nothing is installed here."""

from __future__ import annotations

import importlib
import os
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

PACKAGING = Path(__file__).resolve().parents[2] / "packaging"


@pytest.fixture
def bootstrap(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The script as `packaging/setup.sh` starts it, with its own folder on the path."""
    monkeypatch.syspath_prepend(str(PACKAGING))
    for name in ("bootstrap", "engine", "engine.build"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    return importlib.import_module("bootstrap")


@pytest.fixture
def checkout(bootstrap: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """A checkout in a temporary folder whose parts only write down that they were made."""
    made: list[str] = []
    venv = tmp_path / ".venv"
    monkeypatch.setattr(bootstrap, "VENV", venv)
    monkeypatch.setattr(bootstrap, "DONE", venv / "set-up.json")
    monkeypatch.setattr(bootstrap, "missing_packages", lambda **_: [])

    def make_packages() -> None:
        made.append("packages")
        (venv / "bin").mkdir(parents=True, exist_ok=True)
        (venv / "bin" / "python").touch()

    monkeypatch.setattr(bootstrap, "make_packages", make_packages)
    monkeypatch.setattr(bootstrap, "make_engine", lambda: made.append("engine"))
    monkeypatch.setattr(bootstrap, "make_tandem", lambda: made.append("tandem"))
    return made


def test_a_second_set_up_has_nothing_to_do(
    bootstrap: ModuleType, checkout: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert bootstrap.main() == 0
    assert checkout == ["packages", "engine", "tandem"]
    capsys.readouterr()
    assert bootstrap.main() == 0
    assert checkout == ["packages", "engine", "tandem"]
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(
    ("part", "again"),
    [("tandem", ["tandem"]), ("engine", ["engine"]), ("packages", ["packages", "engine", "tandem"])],
)
def test_only_what_changed_is_made_again(
    bootstrap: ModuleType, checkout: list[str], monkeypatch: pytest.MonkeyPatch, part: str, again: list[str]
) -> None:
    bootstrap.set_up()
    checkout.clear()
    changed = bootstrap.wanted() | {part: "something else"}
    monkeypatch.setattr(bootstrap, "wanted", lambda: changed)
    bootstrap.set_up()
    assert checkout == again


@pytest.mark.parametrize("text", ["", "[]", "{", '{"packages": 1}'])
def test_a_spoilt_note_means_all_anew(bootstrap: ModuleType, checkout: list[str], text: str) -> None:
    bootstrap.set_up()
    bootstrap.DONE.write_text(text)
    checkout.clear()
    bootstrap.set_up()
    assert checkout == ["packages", "engine", "tandem"]


def test_it_goes_on_where_it_broke_off(
    bootstrap: ModuleType, checkout: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def no_compiler() -> None:
        raise bootstrap.build.BuildError("It failed.")

    with monkeypatch.context() as patch:
        patch.setattr(bootstrap, "make_engine", no_compiler)
        assert bootstrap.main() == 1
    assert capsys.readouterr().err.splitlines()[-1] == "set-up: It failed."
    assert bootstrap.main() == 0
    assert checkout == ["packages", "engine", "tandem"]


def test_a_bare_machine_lacks_them_all(bootstrap: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bootstrap.shutil, "which", lambda _name: None)
    monkeypatch.setattr(bootstrap.importlib.util, "find_spec", lambda _name: None)
    monkeypatch.setattr(bootstrap, "loads", lambda _library: False)
    monkeypatch.setattr(bootstrap, "venv_package", lambda: "python3-venv")
    window = list(bootstrap.WINDOW_LIBRARIES.values())
    assert bootstrap.missing_packages(compile_engine=True) == ["gcc", "g++", "python3-venv", "libgomp1", *window]
    assert bootstrap.missing_packages(compile_engine=False) == ["python3-venv", "libgomp1", *window]


@pytest.mark.usefixtures("checkout")
def test_the_tests_packages_are_asked_for_only_for_the_tests(
    bootstrap: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    installed: list[list[str]] = []
    monkeypatch.setattr(bootstrap, "install_packages", installed.append)
    monkeypatch.setattr(bootstrap, "TEST_PROGRAMS", {"sh": "dash", "no-such-program": "nothing"})
    monkeypatch.setattr(bootstrap, "TEST_FONTS", {"/": "root", "/no/such/font": "fonts-none"})
    assert bootstrap.main() == 0
    assert installed == []
    assert bootstrap.main(["--tests"]) == 0
    assert installed == [["nothing", "fonts-none"]]


def test_a_user_is_told_one_command(bootstrap: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bootstrap.shutil, "which", lambda name: f"/usr/bin/{name}")
    monkeypatch.setattr(bootstrap.os, "geteuid", lambda: 1000)
    with pytest.raises(bootstrap.build.BuildError, match=r"^Please run this first: sudo apt-get install gcc g\+\+$"):
        bootstrap.install_packages(["gcc", "g++"])


def test_without_apt_the_names_are_given(bootstrap: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bootstrap.shutil, "which", lambda _name: None)
    with pytest.raises(bootstrap.build.BuildError, match=r"by your system's names for them: gcc$"):
        bootstrap.install_packages(["gcc"])


def test_root_installs_them_without_questions(
    bootstrap: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    ran: list[tuple[str, str]] = []

    def run(command: list[str], environment: dict[str, str], log: Path, _failure: str) -> None:
        ran.append((" ".join(command), environment["DEBIAN_FRONTEND"]))
        log.touch()

    monkeypatch.setattr(bootstrap, "ROOT", tmp_path)
    monkeypatch.setattr(bootstrap.shutil, "which", lambda name: f"/usr/bin/{name}")
    monkeypatch.setattr(bootstrap.os, "geteuid", lambda: 0)
    monkeypatch.setattr(bootstrap.build, "run", run)
    bootstrap.install_packages(["gcc"])
    install = "apt-get install --yes --no-install-recommends gcc"
    assert ran == [("apt-get update", "noninteractive"), (install, "noninteractive")]
    assert list(tmp_path.iterdir()) == []


def choose(path: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """Runs setup.sh with only `path` and the basic programs to choose a Python from."""
    for name in ("dirname", "sh"):
        if not (path / name).exists():
            (path / name).symlink_to(f"/usr/bin/{name}")
    kept = {name: value for name, value in os.environ.items() if name != "PYTHON"}
    return subprocess.run(
        ["/bin/sh", str(PACKAGING / "setup.sh")],
        env=kept | {"PATH": str(path)} | environment,
        capture_output=True,
        text=True,
    )


def pretend(path: Path, *, fits: bool) -> None:
    """A program that answers setup.sh's question about its version, and else says its own name."""
    path.write_text(f'#!/bin/sh\n[ "$1" = -c ] && exit {0 if fits else 1}\necho "${{0##*/}} ${{1##*/}}"\n')
    path.chmod(0o755)


def test_the_newest_python_that_fits_is_taken(tmp_path: Path) -> None:
    pretend(tmp_path / "python3", fits=True)
    assert choose(tmp_path).stdout == "python3 bootstrap.py\n"
    pretend(tmp_path / "python3.12", fits=True)
    pretend(tmp_path / "python3.13", fits=False)
    assert choose(tmp_path).stdout == "python3.12 bootstrap.py\n"


def test_the_python_that_is_asked_for_is_taken(tmp_path: Path) -> None:
    pretend(tmp_path / "python3", fits=True)
    pretend(tmp_path / "my python", fits=True)
    assert choose(tmp_path, PYTHON=str(tmp_path / "my python")).stdout == "my python bootstrap.py\n"


@pytest.mark.parametrize(
    ("environment", "line"),
    [
        ({}, "needs Python 3.11 or later. Please run this first: sudo apt-get install python3 python3-venv"),
        ({"PYTHON": "absent"}, "PYTHON is absent, which is not a Python 3.11 or later."),
    ],
)
def test_no_python_is_one_clear_line(tmp_path: Path, environment: dict[str, str], line: str) -> None:
    pretend(tmp_path / "python3", fits=False)
    result = choose(tmp_path, **environment)
    assert result.returncode == 1
    assert result.stdout == ""
    assert len(result.stderr.splitlines()) == 1
    assert line in result.stderr
