"""Two files, looked at before they are loaded."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.ggufbytes import Value, drafter, sections, target
from tandem import paths
from tandem.engine.gguf import read_facts
from tandem.hardware.machine import COMPUTE, MARGIN
from tandem.ui.pair_check import check_files, kv_bytes, name_of


def _write(path: Path, metadata: dict[str, Value]) -> str:
    path.write_bytes(sections(metadata).joined())
    return str(path)


@pytest.fixture
def pair(tmp_path: Path) -> tuple[str, str]:
    return _write(tmp_path / "가.gguf", target()), _write(tmp_path / "b.gguf", drafter())


def test_a_pair_is_good_and_its_memory_is_estimated() -> None:
    files = paths.demo_pair()
    check = check_files(*map(str, files))
    assert check.good
    assert (check.target, check.drafter) == check.asked == tuple(map(str, files))
    assert check.target_facts is not None
    assert (check.target_facts.architecture, check.target_facts.bytes) == ("gemma4", files[0].stat().st_size)
    weights = sum(file.stat().st_size for file in files)
    kv = kv_bytes(read_facts(files[0]), 2048)
    assert kv > 0
    assert check.memory == weights + kv + COMPUTE + MARGIN


def test_a_target_alone_is_good(pair: tuple[str, str]) -> None:
    check = check_files(pair[0])
    assert check.good
    assert check.drafter_facts is None


def test_two_files_the_wrong_way_round_are_put_right(pair: tuple[str, str]) -> None:
    check = check_files(pair[1], pair[0])
    assert check.good
    assert (check.target, check.drafter) == pair
    assert check.asked == (pair[1], pair[0])


def test_a_drafter_alone_goes_to_its_own_place(pair: tuple[str, str]) -> None:
    check = check_files(pair[1])
    assert (check.target, check.drafter) == ("", pair[1])
    assert not check.good
    assert not check.field
    assert check.drafter_facts is not None


def test_a_drafter_of_another_size_is_refused_at_its_field(pair: tuple[str, str], tmp_path: Path) -> None:
    other = _write(tmp_path / "other.gguf", drafter(drafter__embedding_length_out=2560))
    check = check_files(pair[0], other)
    assert check.field == "drafter"
    assert "hidden size" in check.sentence
    assert check.remedy
    assert check.memory == 0


def test_two_drafters_are_refused_at_the_targets_field(pair: tuple[str, str]) -> None:
    check = check_files(pair[1], pair[1])
    assert check.field == "target"
    assert not check.good


@pytest.mark.parametrize("place", [0, 1])
def test_what_is_no_model_is_refused_where_it_stands(pair: tuple[str, str], tmp_path: Path, place: int) -> None:
    page = tmp_path / "page.gguf"
    page.write_text("<html>Please log in</html>", "utf-8")
    files = [*pair]
    files[place] = str(page)
    check = check_files(*files)
    assert check.field == ("target", "drafter")[place]
    assert "web page" in check.sentence
    assert check.target == files[0]


def test_a_file_that_is_not_there_is_a_sentence(pair: tuple[str, str]) -> None:
    check = check_files("/nowhere/model.gguf", pair[1])
    assert (check.field, check.sentence) == ("target", "There is no file model.gguf.")


def test_a_path_may_begin_at_home(pair: tuple[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(Path(pair[0]).parent))
    assert check_files("~/가.gguf").good


def test_a_home_that_there_is_not_is_a_sentence() -> None:
    assert check_files("~nobody-of-that-name/x.gguf").field == "target"


def test_the_kv_cache_by_the_header(tmp_path: Path) -> None:
    made = {"gemma4__attention__value_length": 128, "gemma4__attention__value_length_swa": 64}
    facts = read_facts(Path(_write(tmp_path / "a.gguf", target(**made))))
    # Of 6 layers 2 share the others' cache; of the 4 that are left one is full, with one head of its own.
    full, sliding = 256 * 1000 * 2, 3 * 128 * 640 * 2
    assert kv_bytes(facts, 1000) == full + sliding


def test_names() -> None:
    assert name_of("/models/모델.gguf") == "모델.gguf"
    assert name_of("") == ""


def test_a_file_that_only_ends_like_a_model_is_told_so(tmp_path: Path) -> None:
    text = tmp_path / "text.gguf"
    text.write_text("Only some words, and no model at all.")
    check = check_files(str(text))
    assert check.sentence == "text.gguf is not a GGUF file."
    assert check.remedy.startswith("Only its name ends in .gguf")
