"""Once a pair is here, a chat needs no network and does not look for one: no socket to anywhere is ever asked for."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Final

import pytest

from support import chat_in_window
from support.command import command
from support.model_command import Shell
from support.sealed import Sealed, python, sealed
from support.shelf import put
from tandem import settings
from tandem.settings import PairChoice, Settings

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="namespaces and strace are Linux's")

STORY: Final = "Tell me a short story about a fox."
WITHIN: Final = {"AF_UNIX", "AF_LOCAL"}
"""Sockets between processes of this machine: the window's, to be the only one, and its screen's."""

ONLINE: Final = {
    "HF_ENDPOINT": "https://mirror.invalid",
    "HF_TOKEN": "hf_not_a_real_one",
    "HTTPS_PROXY": "http://proxy.invalid:3128",
    "HF_HUB_OFFLINE": "0",
}
"""All that could tempt it."""


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    return tmp_path / "trace.txt"


def outward(run: Sealed) -> list[str]:
    """The families of the sockets that could leave this machine."""
    return [family for family in run.families if family not in WITHIN]


def test_the_seal_has_no_network_and_misses_no_socket_of_a_child(trace: Path) -> None:
    inner = (
        "import socket\n"
        "print([name for _, name in socket.if_nameindex() if name != 'lo'])\n"
        "try: socket.create_connection(('127.0.0.1', 9), 1)\n"
        "except OSError as error: print(error.strerror)\n"
    )
    outer = f"import subprocess, sys\nsubprocess.run([sys.executable, '-c', {inner!r}], check=True)"
    run = sealed(python("-c", outer), trace)
    assert run.outcome.out == "[]\nNetwork is unreachable\n"
    assert "AF_INET" in outward(run)


@pytest.fixture
def installed(tmp_path: Path) -> tuple[Shell, Path, Path]:
    """The demo pair as if it had been downloaded, in the usual model folder."""
    shell = Shell.at(tmp_path)
    target, drafter = put(shell.store, "e2b")
    return shell, target, drafter


def test_a_chat_in_the_terminal_asks_for_no_socket_at_all(installed: tuple[Shell, Path, Path], trace: Path) -> None:
    line = command("chat", "--catalog", installed[0].catalog, "--pair", "e2b", "--threads", "1", "--max-tokens", "40")
    run = sealed(line, trace, f"{STORY}\nAnd another one.\n", **ONLINE)
    assert (run.outcome.code, run.outcome.err) == (0, "")
    assert run.outcome.out.count("drafter on, mtp, length 3") == 2
    assert run.families == ()


@pytest.mark.parametrize("words", [["list"], ["verify"], ["remove", "--yes", "e2b"]], ids=" ".join)
def test_looking_after_installed_files_asks_for_none_either(
    words: list[str], installed: tuple[Shell, Path, Path], trace: Path
) -> None:
    run = sealed(command("models", "--catalog", installed[0].catalog, *words), trace, **ONLINE)
    assert run.outcome.code == 0, run.outcome.err
    assert run.families == ()


def test_a_chat_in_the_window_asks_for_none_that_leaves_the_machine(
    installed: tuple[Shell, Path, Path], trace: Path
) -> None:
    _, target, drafter = installed
    pair = PairChoice("files", str(target), str(drafter))
    settings.save(Settings().changed(pair=pair, first_run_done=True, threads=1, language="en"))
    run = sealed(python(chat_in_window.__file__, STORY), trace, **ONLINE)
    state, _, answer = run.outcome.out.partition("\n")
    assert (run.outcome.code, state) == (0, "done"), run.outcome.err
    assert len(answer.strip()) > 40
    assert set(run.families) & WITHIN, "the window's own socket is not in the trace, so it would hide others too"
    assert outward(run) == []


def test_offline_mode_asks_for_none_even_to_download(installed: tuple[Shell, Path, Path], trace: Path) -> None:
    line = command("models", "--catalog", installed[0].catalog, "download", "e4b")
    run = sealed(line, trace, **{**ONLINE, "HF_HUB_OFFLINE": "1"})
    assert run.outcome.code == 5
    assert "HF_HUB_OFFLINE" in run.outcome.err
    assert outward(run) == []
