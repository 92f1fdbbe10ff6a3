"""`tandem models pair` and `tandem models repack`: what two files are to each other, and a drafter made exactly."""

from __future__ import annotations

import hashlib
import re
from pathlib import Path

import numpy as np
import pytest

from support.assistants import QatDrafter, write_assistant
from support.command import environment, in_terminal
from support.model_command import Shell
from support.modelfiles import drafter_bytes, llama_bytes, target_bytes


@pytest.fixture
def shell(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> Shell:
    return Shell.at(tmp_path, capfd)


@pytest.fixture
def files(tmp_path: Path) -> Path:
    """A folder of files whose names tell nothing, or the wrong thing."""
    folder = tmp_path / "Загрузки 모델"
    folder.mkdir()
    for name, data in (
        ("a.gguf", target_bytes("e2b")),
        ("b.bin", drafter_bytes("e2b")),
        ("e2b-target.gguf", target_bytes("e4b")),
        ("e2b-drafter.gguf", drafter_bytes("e4b")),
        ("gemma-4-drafter.gguf", llama_bytes()),
        ("fork.gguf", drafter_bytes("e2b", general__architecture="gemma4_mtp")),
        ("page.gguf", b"<html>Sign in to this network</html>"),
    ):
        (folder / name).write_bytes(data)
    return folder


NO_MODELS = ("page.gguf", "nothing.gguf")


@pytest.mark.parametrize(("target", "drafter"), [("a.gguf", "b.bin"), ("e2b-target.gguf", "e2b-drafter.gguf")])
def test_a_pair_whatever_the_names(target: str, drafter: str, files: Path, shell: Shell) -> None:
    found = shell.models("pair", files / target, files / drafter)
    assert (found.code, found.err) == (0, "")
    assert found.out.splitlines()[-1] == "They are a pair."
    assert "does not fit" not in found.out
    (row,) = [line for line in found.out.splitlines() if line.startswith("architecture")]
    assert row.split() == ["architecture", "gemma4", "gemma4-assistant", "fits"]  # they need not be equal
    report = shell.models("pair", files / target, files / drafter, "--json").json
    assert report["is_pair"]
    assert not report["swapped"]
    assert all(fact["fits"] for fact in report["facts"])


@pytest.mark.parametrize(("target", "drafter"), [("a.gguf", "e2b-drafter.gguf"), ("e2b-target.gguf", "b.bin")])
def test_another_sizes_drafter_and_the_fact_that_differs(target: str, drafter: str, files: Path, shell: Shell) -> None:
    found = shell.models("pair", files / target, files / drafter)
    assert found.code == 3
    assert found.out.splitlines()[-1] == "They are not a pair."
    (row,) = [line for line in found.out.splitlines() if line.startswith("hidden size")]
    assert row.endswith(" does not fit")
    assert {"1,536", "2,560"} < set(row.split())
    assert "1,536" in found.complaint()
    assert "2,560" in found.complaint()
    as_json = shell.models("pair", files / target, files / drafter, "--json")
    assert (as_json.code, as_json.json["is_pair"], as_json.json["fault"]) == (3, False, "not-a-pair")
    assert as_json.complaint() == found.complaint()


def test_the_wrong_way_round_is_put_right(files: Path, shell: Shell) -> None:
    found = shell.models("pair", files / "b.bin", files / "a.gguf", "--json")
    assert found.code == 0
    assert found.json["swapped"]
    assert (found.json["target"], found.json["drafter"]) == (str(files / "a.gguf"), str(files / "b.bin"))
    assert "wrong way round" in shell.models("pair", files / "b.bin", files / "a.gguf").out


@pytest.mark.parametrize(
    ("target", "drafter", "word"),
    [
        ("a.gguf", "gemma-4-drafter.gguf", "llama"),
        ("gemma-4-drafter.gguf", "b.bin", "llama"),
        ("a.gguf", "fork.gguf", "gemma4_mtp"),
        ("a.gguf", "page.gguf", "web page"),
        ("a.gguf", "nothing.gguf", "nothing.gguf"),
        ("nothing.gguf", "b.bin", "nothing.gguf"),
    ],
)
def test_what_cannot_be_a_pair_at_all(target: str, drafter: str, word: str, files: Path, shell: Shell) -> None:
    for flags in ([], ["--json"]):
        found = shell.models("pair", files / target, files / drafter, *flags)
        assert found.code == 3
        assert word in found.complaint()
        if not flags:
            # Without two models there are no facts: the error says all there is to say.
            assert ("They are not a pair." in found.out) == ({target, drafter}.isdisjoint(NO_MODELS))


@pytest.mark.parametrize("columns", [80, 40])
def test_the_facts_keep_to_the_terminal(
    columns: int, files: Path, shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    del shell
    monkeypatch.setattr("support.command.environment", lambda: {**environment(), "COLUMNS": str(columns)})
    with in_terminal("models", "pair", files / "a.gguf", files / "e2b-drafter.gguf") as run:
        found = run.end()
    assert found.code == 3
    facts, _, _ = found.out.partition("They are not a pair.")
    assert "hidden size" in facts
    assert "does not fit" in facts
    assert max(map(len, facts.splitlines())) <= columns


# --- repack


@pytest.fixture(scope="module")
def qat(tmp_path_factory: pytest.TempPathFactory, demo_drafter: Path) -> QatDrafter:
    return QatDrafter(tmp_path_factory.mktemp("qat"), demo_drafter)


def test_an_exact_repack_and_its_proof(qat: QatDrafter, shell: Shell, tmp_path: Path, demo_target: Path) -> None:
    out = tmp_path / "모델.gguf"
    found = shell.models("repack", qat.folder, out, "--json")
    assert (found.code, found.err) == (0, "")
    report = found.json
    assert (report["off_grid"], report["bits_equal"]) == (0, True)
    assert report["bytes"] == out.stat().st_size < report["q8_0_bytes"]
    assert report["sha256"] == hashlib.sha256(out.read_bytes()).hexdigest()
    assert report["relative_error"]["rms"] < report["q8_0_relative_error"]["rms"]
    assert shell.models("pair", demo_target, out).code == 0
    text = shell.models("repack", qat.folder, out)
    assert text.code == 0
    assert re.search(rf"^Blocks off the grid +0 of {report['blocks']:,}$", text.out, re.MULTILINE)
    assert re.search(r"^Weights against bf16 +all equal, bit for bit$", text.out, re.MULTILINE)
    assert text.err.splitlines()[-1] == f"Repacking {qat.folder.name}: 100 %"


def test_weights_off_the_grid_are_refused_with_their_count(qat: QatDrafter, shell: Shell, tmp_path: Path) -> None:
    weights = {name: values.copy() for name, values in qat.weights.items()}
    weights["pre_projection.weight"].reshape(-1, 32)[:3] = np.linspace(0.011, 0.0123, 32, dtype=np.float32)
    write_assistant(tmp_path / "drafter", qat.gguf, weights)
    out = tmp_path / "out.gguf"
    found = shell.models("repack", tmp_path / "drafter", out, "--json")
    assert (found.code, found.json["off_grid"]) == (3, 3)
    assert found.json["tensors"] == {"pre_projection.weight": 3}
    assert found.complaint().startswith(f"tandem: 3 of {found.json['blocks']:,} blocks")
    assert not out.exists()


def test_a_config_that_says_nothing(shell: Shell, tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text("{}")
    (tmp_path / "model.safetensors").write_bytes(b"")
    found = shell.models("repack", tmp_path, tmp_path / "out.gguf")
    assert (found.code, found.out) == (3, "")
    assert found.complaint().startswith("tandem: config.json does not say what kind of model this is.\n")


def test_a_folder_that_is_not_there(shell: Shell, tmp_path: Path) -> None:
    found = shell.models("repack", tmp_path / "nothing", tmp_path / "out.gguf")
    assert (found.code, found.out) == (2, "")
    assert "nothing" in found.complaint()
