"""`tandem models remove`: who is asked, and what is left."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from support.command import PATIENCE_S, command, environment, in_terminal
from support.model_command import Shell
from support.modelfiles import flip, target_bytes
from support.shelf import put


@pytest.fixture
def shell(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> Shell:
    return Shell.at(tmp_path, capfd)


def test_remove_takes_a_pair_and_its_parts(shell: Shell) -> None:
    target, drafter = put(shell.store, "e2b")
    other = shell.store.part(shell.pair("e4b").target)
    other.parent.mkdir(parents=True)
    other.write_bytes(b"GGUF")
    found = shell.models("remove", "--yes", "e2b", "e4b")
    assert found.code == 0
    assert not target.exists()
    assert not drafter.exists()
    assert not other.exists()
    assert f"{target.name}: removed, 5.5 MiB" in found.out
    assert f"{other.name}: removed, 4 bytes" in found.out
    assert shell.models("remove", "e2b").out == "Nothing of it is here.\n"


def test_remove_leaves_a_file_in_place_where_it_is(shell: Shell, tmp_path: Path) -> None:
    file = tmp_path / "mine.gguf"
    file.write_bytes(target_bytes())
    shell.models("import", "--in-place", file)
    found = shell.models("remove", "-y", "mine.gguf")
    assert (found.code, found.out) == (0, "mine.gguf: taken off the list; the file stays\n")
    assert file.exists()
    assert shell.store.installed() == ()


def test_remove_takes_what_was_set_aside_by_its_name(shell: Shell) -> None:
    target, _ = put(shell.store, "e2b")
    flip(target)
    shell.models("verify")
    (aside,) = shell.store.quarantined()
    assert shell.models("remove", "--yes", Path(aside.path).name).code == 0
    assert shell.store.quarantined() == ()


def test_remove_asks_at_a_terminal(tmp_path: Path) -> None:
    shell = Shell.at(tmp_path)
    target, _ = put(shell.store, "e2b")
    for answer, there in (("n\n", True), ("\x03", True), ("y\n", False)):
        with in_terminal("models", "--catalog", shell.catalog, "remove", "e2b") as run:
            run.wait_for(r"Remove this\? \[y/N\]: ")
            run.wait_until_it_reads()
            run.type(answer)
            outcome = run.end()
        assert outcome.code == (130 if answer == "\x03" else 0)
        assert target.exists() == there


def test_where_nobody_can_be_asked_nothing_is_removed(shell: Shell) -> None:
    target, _ = put(shell.store, "e2b")
    found = shell.models("remove", "e2b")
    assert (found.code, found.out) == (2, "")
    assert found.complaint() == (
        "tandem: Nobody can be asked here, so nothing was removed.\nSay --yes to remove it without a question.\n"
    )
    assert target.exists()


@pytest.mark.parametrize(("answer", "there"), [(b"n\n", True), (b"y\n", False)])
def test_errors_that_go_into_a_file_do_not_skip_the_question(answer: bytes, there: bool, tmp_path: Path) -> None:
    import pty

    shell = Shell.at(tmp_path)
    target, _ = put(shell.store, "e2b")
    ours, theirs = pty.openpty()
    try:
        os.write(ours, answer)
        with (tmp_path / "log").open("wb") as log:
            line = command("models", "--catalog", shell.catalog, "remove", "e2b")
            done = subprocess.run(
                line,
                stdin=theirs,
                stdout=subprocess.PIPE,
                stderr=log,
                env=environment(),
                timeout=PATIENCE_S,
                check=True,
            )
    finally:
        os.close(ours)
        os.close(theirs)
    assert "Remove this? [y/N]:" in (tmp_path / "log").read_text()
    assert target.exists() == there
    assert (b"Nothing was removed." in done.stdout) == there


def test_of_a_file_in_place_it_is_asked_whether_to_forget_it(tmp_path: Path) -> None:
    file = tmp_path / "mine.gguf"
    file.write_bytes(target_bytes())
    with in_terminal("models", "import", "--in-place", file) as run:
        assert run.end().code == 0
    with in_terminal("models", "remove", "mine.gguf") as run:
        run.wait_for(r"Take it off the list\? The file stays\. \[y/N\]: ")
        run.wait_until_it_reads()
        run.type("y\n")
        outcome = run.end()
    assert outcome.code == 0
    assert "mine.gguf: taken off the list; the file stays" in outcome.out
    assert file.exists()
