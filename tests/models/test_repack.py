from __future__ import annotations

import hashlib
import json
from dataclasses import replace
from pathlib import Path

import msgspec
import numpy as np
import pytest
from gguf import GGMLQuantizationType, GGUFReader
from numpy.typing import NDArray

from support.assistants import (
    QatDrafter,
    bf16,
    names_in_gguf,
    weights_of,
    widen,
    write_assistant,
    write_safetensors,
)
from support.engines import running
from support.handset import BOS, TINY, Pair, small_vocabulary, write_pair
from support.reference_loop import Loop
from tandem.engine.gguf import read_facts
from tandem.engine.pairing import check_drafter
from tandem.models import repack_run
from tandem.models.repack import OffGrid, RepackReport, repack
from tandem.models.stop import Stop, Stopped

START = 500


@pytest.fixture(scope="module")
def drafter(tmp_path_factory: pytest.TempPathFactory, demo_pair: tuple[Path, Path]) -> QatDrafter:
    return QatDrafter(tmp_path_factory.mktemp("qat"), demo_pair[1])


@pytest.fixture(scope="module")
def made(drafter: QatDrafter, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, RepackReport]:
    out = tmp_path_factory.mktemp("made") / "드래프터 🙂.gguf"
    return out, repack(drafter.folder, out)


@pytest.fixture(scope="module")
def handset(tmp_path_factory: pytest.TempPathFactory) -> Pair:
    # Not "exact": all its matrices are Q4_0, with steps that f16 has and bf16 has not.
    shape = replace(TINY, exact=False)
    return write_pair(tmp_path_factory.mktemp("handset"), shape, wrong=0.3, vocabulary=small_vocabulary())


def test_matrices_are_the_expected_blocks_byte_for_byte(drafter: QatDrafter, made: tuple[Path, RepackReport]) -> None:
    names = names_in_gguf(4)
    tensors = {tensor.name: tensor for tensor in GGUFReader(made[0]).tensors}
    assert tensors.keys() == {*names, "rope_freqs.weight"}
    for ours, theirs in names.items():
        tensor, weights = tensors[ours], drafter.weights[theirs]
        assert [int(size) for size in tensor.shape] == list(weights.shape)[::-1]
        if weights.ndim == 2:
            assert tensor.tensor_type is GGMLQuantizationType.Q4_0
            assert tensor.data.tobytes() == drafter.blocks[ours].tobytes()
        else:
            assert tensor.tensor_type is GGMLQuantizationType.F32
            assert tensor.data.tobytes() == weights.astype("<f4").tobytes()


def test_keys_are_those_of_the_file_that_the_folder_was_made_of(
    drafter: QatDrafter, made: tuple[Path, RepackReport]
) -> None:
    ours, theirs = (
        {key: (field.types, field.contents()) for key, field in GGUFReader(path).fields.items()}
        for path in (made[0], drafter.gguf)
    )
    assert ours.pop("general.name")[1] == "drafter"
    theirs.pop("general.name")
    assert ours == theirs
    frequencies = {tensor.name: tensor for tensor in GGUFReader(drafter.gguf).tensors}["rope_freqs.weight"]
    found = {tensor.name: tensor for tensor in GGUFReader(made[0]).tensors}["rope_freqs.weight"]
    assert found.data.tobytes() == frequencies.data.tobytes()


def test_the_report_says_what_the_file_holds(drafter: QatDrafter, made: tuple[Path, RepackReport]) -> None:
    out, report = made
    matrices = [bits for bits in drafter.bits.values() if bits.ndim == 2]
    given = np.concatenate([widen(bits).ravel() for bits in matrices]).astype(np.float64)
    stored = np.concatenate([drafter.weights[n].ravel() for n, b in drafter.bits.items() if b.ndim == 2])
    apart = stored.astype(np.float64) - given
    some = given != 0
    assert report.out == str(out)
    assert report.bytes == out.stat().st_size == read_facts(out).needed_bytes
    assert report.sha256 == hashlib.sha256(out.read_bytes()).hexdigest()
    assert (report.tensors, report.matrices) == (len(drafter.bits) + 1, len(matrices))
    assert (report.weights, report.blocks) == (len(given), len(given) // 32)
    assert (report.off_grid, report.bits_equal) == (0, True)
    assert report.negative_zeros == sum(int((bits == 0x8000).sum()) for bits in matrices) > 0
    assert report.relative_error.rms == pytest.approx(np.sqrt((apart**2).sum() / (given**2).sum()))
    assert report.relative_error.max == pytest.approx((np.abs(apart)[some] / np.abs(given)[some]).max())
    assert report.relative_error.max < 2**-8  # no more than bf16's own rounding
    assert report.q8_0_relative_error.rms > 2 * report.relative_error.rms
    assert report.q8_0_bytes == report.bytes + report.blocks * (34 - 18)
    assert msgspec.json.decode(msgspec.json.encode(report), type=RepackReport) == report


def test_a_q8_0_conversion_loses_what_this_keeps(tmp_path: Path, demo_pair: tuple[Path, Path]) -> None:
    # Steps that are powers of two: bf16 holds every weight, so nothing at all is lost.
    rng = np.random.default_rng(0)
    weights = weights_of(demo_pair[1])
    for name, values in weights.items():
        if values.ndim == 2:
            codes = rng.integers(-8, 8, values.shape).astype(np.float32)
            weights[name] = codes * np.float32(2.0**-7)
    write_assistant(tmp_path / "drafter", demo_pair[1], weights)
    report = repack(tmp_path / "drafter", tmp_path / "out.gguf")
    assert (report.relative_error.rms, report.relative_error.max) == (0, 0)
    assert report.q8_0_relative_error.rms > 0.001


def test_it_drafts_in_the_real_engine_as_the_original_does(
    drafter: QatDrafter, made: tuple[Path, RepackReport], demo_pair: tuple[Path, Path], tmp_path: Path
) -> None:
    facts = read_facts(made[0])
    check_drafter(facts)
    assert facts.quantisation == "Q4_0"
    replies = []
    for path in (drafter.gguf, made[0]):
        with running(tmp_path / path.stem, demo_pair[0], path) as engine:
            replies.append(engine.ask(draft="3"))
    original, repacked = replies
    assert any(repacked.accepted)
    assert (repacked.tokens, repacked.drafted, repacked.accepted) == (
        original.tokens,
        original.drafted,
        original.accepted,
    )


@pytest.mark.parametrize("draft", [1, 2, 4])
def test_a_hand_set_drafter_guesses_as_it_was_set(handset: Pair, tmp_path: Path, draft: int) -> None:
    write_assistant(tmp_path / "drafter", handset.drafter)
    report = repack(tmp_path / "drafter", tmp_path / "repacked.gguf")
    assert (report.off_grid, report.bits_equal) == (0, True)
    expected = handset.graph.speculate(START, 40, draft)
    for path in (handset.drafter, tmp_path / "repacked.gguf"):
        with Loop(handset.target, path) as loop:
            assert loop.greedy([BOS, START], 40, draft) == expected


def test_blocks_off_the_grid_are_counted_by_tensor_and_refused(drafter: QatDrafter, tmp_path: Path) -> None:
    bits = {name: values.copy() for name, values in drafter.bits.items()}
    spoilt = {"pre_projection.weight": 3, "model.embed_tokens.weight": 40, "model.layers.2.mlp.up_proj.weight": 1}
    for name, count in spoilt.items():
        bits[name].reshape(-1, 32)[:count] = bf16(np.linspace(0.011, 0.0123, 32, dtype=np.float32))
    folder = tmp_path / "drafter"
    write_assistant(folder, drafter.gguf, drafter.weights)
    write_safetensors(folder / "model.safetensors", bits)
    out = tmp_path / "out.gguf"
    out.write_bytes(b"as it was")
    with pytest.raises(OffGrid) as caught:
        repack(folder, out)
    error = caught.value
    assert error.tensors == spoilt
    assert (error.fault, error.exit_code, error.off_grid) == ("off-grid", 3, 44)
    assert error.blocks == sum(values.size for values in bits.values() if values.ndim == 2) // 32
    assert error.sentence.startswith(f"44 of {error.blocks:,} blocks of weights lie on no 4-bit grid, in ")
    assert all(name in error.sentence for name in spoilt)
    assert out.read_bytes() == b"as it was"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["drafter", "out.gguf"]


def test_a_drafter_that_was_not_trained_for_it_is_refused(demo_pair: tuple[Path, Path], tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    weights = weights_of(demo_pair[1])
    weights = {name: v + rng.normal(0, 0.01, v.shape).astype(np.float32) for name, v in weights.items()}
    write_assistant(tmp_path / "drafter", demo_pair[1], weights)
    with pytest.raises(OffGrid) as caught:
        repack(tmp_path / "drafter", tmp_path / "out.gguf")
    assert caught.value.off_grid == caught.value.blocks
    assert len(caught.value.tensors) == 23
    assert caught.value.sentence.endswith(" and 20 more.")
    assert not (tmp_path / "out.gguf").exists()


def test_parts_with_an_index_give_the_same_file(
    drafter: QatDrafter, made: tuple[Path, RepackReport], tmp_path: Path
) -> None:
    folder = tmp_path / "drafter"
    write_assistant(folder, drafter.gguf, drafter.weights)
    (folder / "model.safetensors").unlink()
    whose = {name: f"model-0000{1 + number % 3}-of-00003.safetensors" for number, name in enumerate(drafter.bits)}
    for file in set(whose.values()):
        write_safetensors(folder / file, {name: b for name, b in drafter.bits.items() if whose[name] == file})
    (folder / "model.safetensors.index.json").write_text(json.dumps({"metadata": {}, "weight_map": whose}))
    assert repack(folder, tmp_path / "out.gguf").sha256 == made[1].sha256


def test_rows_are_read_a_few_at_a_time(
    drafter: QatDrafter, made: tuple[Path, RepackReport], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sizes: list[int] = []
    find = repack_run.grid.find

    def noted(bits: NDArray[np.uint16]) -> repack_run.grid.Grid:
        sizes.append(bits.size)
        return find(bits)

    monkeypatch.setattr(repack_run, "_CHUNK", 5000)
    monkeypatch.setattr(repack_run.grid, "find", noted)
    report = repack(drafter.folder, tmp_path / "out.gguf")
    assert max(sizes) <= 5000
    assert len(sizes) > 100
    assert report.sha256 == made[1].sha256


def test_what_the_engine_does_not_use_is_left_out(
    drafter: QatDrafter, made: tuple[Path, RepackReport], tmp_path: Path
) -> None:
    folder = tmp_path / "drafter"
    write_assistant(folder, drafter.gguf, drafter.weights)
    more = {
        "masked_embedding.centroids.weight": np.ones((32, 128), dtype=np.uint16),
        "masked_embedding.token_ordering": np.arange(4096, dtype=np.int64),
        "lm_head.weight": drafter.bits["model.embed_tokens.weight"],
    }
    write_safetensors(folder / "model.safetensors", {**drafter.bits, **more})
    assert repack(folder, tmp_path / "out.gguf").sha256 == made[1].sha256


def test_progress_goes_up_to_the_end(drafter: QatDrafter, tmp_path: Path) -> None:
    shares: list[float] = []
    repack(drafter.folder, tmp_path / "out.gguf", tell=shares.append)
    assert shares == sorted(shares)
    assert (0 < shares[0] < 0.5, shares[-1]) == (True, 1.0)


@pytest.mark.parametrize("share", [0.0, 0.2, 0.7])
def test_stopping_leaves_nothing(drafter: QatDrafter, tmp_path: Path, share: float) -> None:
    stop, shares = Stop(), []

    def tell(done: float) -> None:
        shares.append(done)
        if done > share:
            stop.set("cancel")

    if not share:
        stop.set("cancel")
    with pytest.raises(Stopped):
        repack(drafter.folder, tmp_path / "out.gguf", stop, tell)
    assert not list(tmp_path.iterdir())
    assert max(shares, default=0.0) < 0.95


def test_the_licence_is_taken_from_the_readme(drafter: QatDrafter, tmp_path: Path) -> None:
    folder = tmp_path / "models--google--gemma-4-tiny-assistant" / "snapshots" / "0123abc"
    write_assistant(folder, drafter.gguf, drafter.weights)
    (folder / "README.md").write_text("---\nlibrary_name: transformers\nlicense: apache-2.0\n---\n# Gemma\n")
    repack(folder, tmp_path / "out.gguf")
    facts = read_facts(tmp_path / "out.gguf")
    assert (facts.text("general.license"), facts.name) == ("apache-2.0", "gemma-4-tiny-assistant")
