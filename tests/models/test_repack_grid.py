from __future__ import annotations

import numpy as np
import pytest
from gguf import GGMLQuantizationType, quants
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from support.assistants import bf16, on_grid, widen
from tandem.models import repack_grid as grid

Q4_0 = GGMLQuantizationType.Q4_0
EVERY_STEP = np.arange(0x0001, 0x7C00, dtype=np.uint16).view(np.float16).astype(np.float32)  # all above 0


def unpacked(found: grid.Grid) -> NDArray[np.float32]:
    packed = grid.pack(found).reshape(-1)
    return np.asarray(quants.dequantize(packed, Q4_0), dtype=np.float32).reshape(-1, 32)


def same_bits(found: grid.Grid, bits: NDArray[np.uint16]) -> NDArray[np.bool_]:
    again = bf16(unpacked(found))
    zero = ((again | bits) & 0x7FFF) == 0
    return np.asarray(((again == bits) | zero).all(axis=1))


def has_a_step(bits: NDArray[np.uint16]) -> bool:
    """Tries every step that f16 has, with either sign; slow, and without a thought."""
    values = widen(bits)
    for sign in (1, -1):
        reach = bf16(EVERY_STEP[:, None] * np.float32(sign) * np.arange(-8, 8, dtype=np.float32))
        left = np.ones(len(EVERY_STEP), dtype=bool)
        for value, wanted in zip(values, bits, strict=True):
            left &= (reach == wanted).any(axis=1) if value else True
        if left.any():
            return True
    return False


def block(step: float, codes: list[int]) -> NDArray[np.uint16]:
    return bf16((np.float32(np.float16(step)) * np.resize(codes, (1, 32))).astype(np.float32))


def codes(rng: np.random.Generator, count: int, least: int = -8, most: int = 7) -> NDArray[np.float32]:
    return rng.integers(least, most + 1, (count, 32)).astype(np.float32)


def test_blocks_that_ggml_made_get_the_same_bytes_again() -> None:
    rng = np.random.default_rng(0)
    weights, expected = on_grid(rng.normal(0, 0.02, (4096, 32)).astype(np.float32))
    found = grid.find(bf16(weights))
    assert found.found.all()
    assert grid.pack(found).tobytes() == expected.tobytes()
    assert grid.pack(found).tobytes() == np.ascontiguousarray(quants.quantize(weights, Q4_0)).tobytes()


@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize(("least", "most"), [(-8, 7), (-7, 7), (-3, 3), (0, 7), (-1, 1), (-5, 2)])
def test_a_step_that_bf16_has_is_found_again(sign: int, least: int, most: int) -> None:
    rng = np.random.default_rng(1)
    steps = widen(bf16(np.exp(rng.normal(-5, 1.5, (2000, 1))).astype(np.float32))) * sign
    wanted = steps * codes(rng, 2000, least, most)
    found = grid.find(bf16(wanted))
    assert found.found.all()
    assert np.array_equal(unpacked(found), wanted + 0.0)


@pytest.mark.parametrize("share", [1.0, 0.3, 0.05])
def test_any_f16_step_gives_the_same_bits(share: float) -> None:
    rng = np.random.default_rng(2)
    steps = np.exp(rng.normal(-5, 3, (4000, 1))).astype(np.float16).astype(np.float32)
    used = codes(rng, 4000) * (rng.random((4000, 32)) < share)
    bits = bf16(steps * used * rng.choice(np.float32([1, -1]), (4000, 1)))
    found = grid.find(bits)
    assert found.found.all()
    assert same_bits(found, bits).all()


@given(
    step=st.integers(0x0001, 0x7BFF).map(lambda raw: float(np.uint16(raw).view(np.float16))),
    sign=st.sampled_from([1, -1]),
    used=st.lists(st.integers(-8, 7), min_size=32, max_size=32),
)
@settings(deadline=None, max_examples=300)
def test_every_block_of_q4_0_is_on_a_grid(step: float, sign: int, used: list[int]) -> None:
    bits = block(step * sign, used)
    found = grid.find(bits)
    assert found.found.all()
    assert same_bits(found, bits).all()


@pytest.mark.parametrize("apart", [0, 1, 2, 3])
def test_a_grid_is_found_exactly_where_there_is_one(apart: int) -> None:
    # Blocks with steps in f32 and weights that are off by bits: whether there is a grid is a close thing.
    rng = np.random.default_rng(3 + apart)
    steps = np.exp(rng.normal(-5, 1, (12, 1))).astype(np.float32)
    bits = bf16(steps * codes(rng, 12, *[(-8, 7), (-7, 7), (-2, 2), (-6, 3)][apart]))
    bits[:, :apart] += (bits[:, :apart] & 0x7FFF != 0).astype(np.uint16)
    found = grid.find(bits)
    assert found.found.tolist() == [has_a_step(one) for one in bits]
    assert same_bits(found, bits)[found.found].all()


def test_some_steps_in_f32_have_no_f16_in_their_place() -> None:
    rng = np.random.default_rng(4)
    steps = np.exp(rng.normal(-5, 1, (4000, 1))).astype(np.float32)
    bits = bf16(steps * codes(rng, 4000))
    found = grid.find(bits)
    assert 0.9 < found.found.mean() < 1
    assert same_bits(found, bits)[found.found].all()
    assert not any(has_a_step(one) for one in bits[~found.found][:6])


def test_weights_of_no_grid_are_not_found() -> None:
    bits = bf16(np.random.default_rng(5).normal(0, 0.02, (500, 32)).astype(np.float32))
    found = grid.find(bits)
    assert not found.found.any()
    assert not found.steps.any()
    assert not found.codes.any()


@pytest.mark.parametrize("position", [0, 13, 31])
def test_one_weight_in_between_is_enough(position: int) -> None:
    bits = block(0.01, [-8, 7, 3, 0, -5, 1, 2, -7])
    assert grid.find(bits).found.all()
    bits[0, position] = bf16(np.float32([0.0349]))[0]  # three and a half steps
    assert not grid.find(bits).found.any()


def test_a_block_of_zeros_has_no_step() -> None:
    found = grid.find(np.zeros((2, 32), dtype=np.uint16))
    assert found.found.all()
    assert grid.pack(found).tobytes() == (b"\0\0" + b"\x88" * 16) * 2


def test_zeros_with_a_sign_are_zeros() -> None:
    bits = block(0.02, [-8, 4, 0, 3])
    bits[0, 2::4] = 0x8000
    found = grid.find(bits)
    assert found.found.all()
    assert not found.codes[0, 2::4].any()
    assert grid.find(np.full((1, 32), 0x8000, dtype=np.uint16)).steps.tolist() == [0]


@pytest.mark.parametrize("value", [1.0, -0.0123, 3e-5])
def test_blocks_of_one_value(value: float) -> None:
    bits = np.repeat(bf16(np.float32([[value]])), 32, axis=1)
    found = grid.find(bits)
    assert found.found.all()
    assert np.array_equal(unpacked(found), widen(bits))


@pytest.mark.parametrize("opposite", [8, 7, 5, 1])
def test_a_largest_weight_of_both_signs(opposite: int) -> None:
    # Both cannot have the code -8, so the grid that is stored is another one where the step was meant for 8.
    bits = block(0.0156, [opposite, -opposite, 0, 0])
    found = grid.find(bits)
    assert found.found.all()
    assert same_bits(found, bits).all()
    assert found.codes.min() > -8


def test_a_negative_step_only_for_the_extreme_code() -> None:
    assert grid.find(block(0.02, [-8, 7])).steps[0] > 0
    assert grid.find(block(-0.02, [-8, 7])).steps[0] < 0
    assert grid.find(block(-0.02, [-7, 7, 1])).steps[0] > 0


@pytest.mark.parametrize("bits", [0x7F80, 0xFF80, 0x7FC0, 0xFFFF], ids=["inf", "-inf", "nan", "-nan"])
def test_what_is_no_number_is_on_no_grid(bits: int) -> None:
    given_bits = block(0.02, [-8, 7, 1, 2])
    given_bits = np.vstack([given_bits, given_bits])
    given_bits[1, 5] = bits
    assert grid.find(given_bits).found.tolist() == [True, False]


@pytest.mark.parametrize("size", [1e-38, 1e-9, 1e7, 3e37])
def test_weights_out_of_the_reach_of_f16(size: float) -> None:
    bits = bf16(np.float32(size) * np.resize(np.float32([-8, 7, 1]), (1, 32)))
    assert not grid.find(bits).found.any()


def test_rounding_to_bf16_is_to_nearest_and_ties_to_even() -> None:
    rng = np.random.default_rng(6)
    values = np.concatenate([rng.normal(0, 1, 5000), np.exp(rng.normal(0, 20, 5000)), [0.0]]).astype(np.float32)
    ties = ((np.arange(0x3F80, 0x4080, dtype=np.uint32) << 16) | 0x8000).view(np.float32)
    for some in (values, ties, -ties):
        assert np.array_equal(grid.to_bf16(some), bf16(some))
    assert np.array_equal(grid.to_f32(np.uint16([0x3F80, 0xBF00, 0x0001])), np.float32([1, -0.5, 2.0**-133]))
