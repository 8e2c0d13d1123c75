"""Positions: by hand, by the property that defines each, against other formulas, every error."""

import math
from fractions import Fraction

import numpy as np
import pytest

from attnlib import (
    alibi_bias,
    relative_position_bias,
    rotary,
    rotary_frequencies,
    sinusoidal_positions,
)
from tests.helpers import raises, tokens

pytestmark = pytest.mark.filterwarnings("error")

N, D, BATCH, HEADS = 7, 10, 3, 5
FLOATS = [np.float16, np.float32, np.float64]
LAYOUTS = ["interleaved", "halves"]


@pytest.mark.parametrize("d_model", [1, 12, 13])
def test_each_entry_of_the_sinusoids(d_model):
    n, base = 11, 50.0
    encoding = sinusoidal_positions(n, d_model, base=base)
    assert encoding.shape == (n, d_model)
    for p, column in np.ndindex(n, d_model):
        wave = math.cos if column % 2 else math.sin
        expected = wave(p / base ** ((column - column % 2) / d_model))
        assert encoding[p, column] == pytest.approx(expected, abs=1e-15)
    assert sinusoidal_positions(0, d_model).shape == (0, d_model)
    for dtype in FLOATS:
        narrow = sinusoidal_positions(n, d_model, base=base, dtype=dtype)
        np.testing.assert_array_equal(narrow, encoding.astype(dtype), strict=True)


def test_rotary_by_hand():
    x = np.array([[1.0, 0, 0, 2], [1, 0, 0, 2], [0, 1, 2, 0]])
    got = rotary(x, base=100)  # angles p and p / 10
    expected = [
        [1, 0, 0, 2],
        [math.cos(1), math.sin(1), -2 * math.sin(0.1), 2 * math.cos(0.1)],
        [-math.sin(2), math.cos(2), 2 * math.cos(0.2), 2 * math.sin(0.2)],
    ]
    np.testing.assert_allclose(got, expected, rtol=0, atol=1e-15)
    halves = rotary(x[1:2], [3], base=100, layout="halves")  # the pairs (1, 0) and (0, 2)
    expected = [[math.cos(3), -2 * math.sin(0.3), math.sin(3), 2 * math.cos(0.3)]]
    np.testing.assert_allclose(halves, expected, rtol=0, atol=1e-15)
    assert rotary(np.zeros((BATCH, 0, D))).shape == (BATCH, 0, D)
    assert rotary(np.zeros((0, D)), []).shape == (0, D)
    assert rotary([[3.0, 4.0]]).tolist() == [[3, 4]]


@pytest.mark.parametrize("layout", LAYOUTS)
def test_positions_of_rotary(layout):
    x = tokens(BATCH, N, D)
    whole = rotary(x, layout=layout)
    np.testing.assert_array_equal(rotary(x, list(range(N)), layout=layout), whole)
    np.testing.assert_array_equal(rotary(x, np.arange(N, dtype=np.uint8), layout=layout), whole)
    np.testing.assert_array_equal(rotary(x[:, 4:], [4, 5, 6], layout=layout), whole[:, 4:])
    order = [3, 0, 6, 5, 1, 2, 4]
    np.testing.assert_array_equal(rotary(x[:, order], order, layout=layout), whole[:, order])
    twice = rotary(rotary(x, np.full(N, 0.25), layout=layout), np.full(N, 0.5), layout=layout)
    at_once = rotary(x, np.full(N, 0.75, np.float16), layout=layout)
    np.testing.assert_allclose(twice, at_once, rtol=0, atol=1e-14)
    back = rotary(whole, -np.arange(N), layout=layout)
    np.testing.assert_allclose(back, x, rtol=0, atol=1e-14)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_scale_of_rotary_divides_the_positions(layout):
    x = tokens(BATCH, N, D)
    np.testing.assert_array_equal(rotary(x, scale=1, layout=layout), rotary(x, layout=layout))
    squeezed = rotary(x, np.arange(N) / 3, layout=layout)
    np.testing.assert_allclose(rotary(x, scale=3.0, layout=layout), squeezed, rtol=0, atol=1e-14)
    # A text of twice the length ends where one of the usual length did.
    np.testing.assert_array_equal(
        rotary(x, np.arange(N) * 2, scale=2.0, layout=layout), rotary(x, layout=layout)
    )


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("dtype", FLOATS)
def test_rotary_keeps_the_dtype_and_rounds_once(dtype, layout):
    x = tokens(HEADS, 3000, D, dtype=dtype)
    x.setflags(write=False)
    for positions in (None, np.arange(3000, dtype=np.float32), np.arange(3000)):
        got = rotary(x, positions, base=np.float64(10000), layout=layout)
        assert got.dtype == dtype and not np.shares_memory(got, x)
        exact = rotary(x.astype(np.float64), layout=layout)
        np.testing.assert_array_equal(got, exact.astype(dtype))


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_rotary_keeps_what_is_not_finite_in_its_row(bad):
    x = tokens(N, D)
    clean = rotary(x)
    x[3] = bad
    with np.errstate(all="raise"):
        got = rotary(x)
    assert not np.isfinite(got[3]).any()
    others = np.arange(N) != 3
    np.testing.assert_array_equal(got[others], clean[others])


def slopes(n_heads):
    return -alibi_bias(n_heads, 1, 2)[:, 0, 1]


@pytest.mark.parametrize("n_heads", range(1, 40))
def test_slopes_follow_the_rule_of_the_authors_code(n_heads):
    power = max(2**i for i in range(6) if 2**i <= n_heads)
    start = 2 ** (-8 / power)
    expected = [start ** (head + 1) for head in range(power)]
    if n_heads > power:
        expected += [*slopes(2 * power)[::2][: n_heads - power]]
    np.testing.assert_allclose(slopes(n_heads), expected, rtol=1e-14)


def test_alibi_by_hand():
    bias = alibi_bias(8, 2, 4)
    assert bias.shape == (8, 2, 4)
    assert bias[0].tolist() == [[0, -0.5, -1, -1.5], [-0.5, 0, -0.5, -1]]
    assert bias[7].tolist() == [
        [0, -1 / 256, -2 / 256, -3 / 256],
        [-1 / 256, 0, -1 / 256, -2 / 256],
    ]
    assert not np.signbit(bias[:, 0, 0]).any()  # printed, -0 would be a puzzle


def test_relative_bias_by_hand():
    table = [[10.0, 20, 30, 40, 50], [1, 2, 3, 4, 5]]  # offsets -2 ... 2
    bias = relative_position_bias(table, 4, 5)
    assert bias[0].tolist() == [
        [30, 40, 50, 50, 50],
        [20, 30, 40, 50, 50],
        [10, 20, 30, 40, 50],
        [10, 10, 20, 30, 40],
    ]
    np.testing.assert_array_equal(bias[1], bias[0] / 10)
    one = relative_position_bias([[7.0], [8.0]], 2, 3)  # one entry is one number a head
    assert one.tolist() == [[[7] * 3] * 2, [[8] * 3] * 2]


@pytest.mark.parametrize("dtype", FLOATS)
def test_biases_keep_the_dtype_and_alibi_is_a_relative_one(dtype):
    alibi, table = alibi_bias(12, N, 5, dtype=dtype), tokens(HEADS, 5, dtype=dtype)
    np.testing.assert_array_equal(alibi, alibi_bias(12, N, 5).astype(dtype), strict=True)
    assert alibi_bias(HEADS, 0).shape == (HEADS, 0, 0) and alibi_bias(1, 1).dtype == np.float64
    table.setflags(write=False)
    bias = relative_position_bias(table, N)
    assert bias.dtype == dtype and not np.shares_memory(bias, table)
    assert relative_position_bias(table, 2, 0).shape == (HEADS, 2, 0)
    table = -slopes(HEADS)[:, None] * np.abs(np.arange(-N, N + 1))
    np.testing.assert_array_equal(relative_position_bias(table, N), alibi_bias(HEADS, N))


def test_each_rule_by_hand():
    f, gain = rotary_frequencies(8, base=16.0)
    np.testing.assert_allclose(f, [1, 1 / 2, 1 / 4, 1 / 8], rtol=1e-15)
    assert gain == 1

    def stretched(**stretch):
        return rotary_frequencies(8, base=16.0, stretch={"factor": 4.0} | stretch)

    np.testing.assert_allclose(stretched(rope_type="linear")[0], f / 4, rtol=1e-15)
    np.testing.assert_array_equal(stretched(type="linear")[0], f / 4)  # as older files say it
    # The slowest pair as in "linear", the fastest as before, a power between them.
    ntk = [1, 4 ** (-1 / 3) / 2, 4 ** (-2 / 3) / 4, 1 / 32]
    np.testing.assert_allclose(stretched(rope_type="ntk")[0], ntk, rtol=1e-14)
    # 20 pi positions are 10, 5, 2.5 and 1.25 turns; 1.25 is half of the way from .25 to 2.25.
    limits = {"low_freq_factor": 0.25, "high_freq_factor": 2.25}
    trained = {"original_max_position_embeddings": 20 * math.pi}
    found, gain = stretched(rope_type="llama3", **limits, **trained)
    np.testing.assert_allclose(found, [1, 1 / 2, 1 / 4, 5 / 64], rtol=1e-14)
    assert gain == 1
    # Of 10 L / L turns, pair log2(10 / 8) = .3 makes 8, and pair log2(10 / 1.5) = 2.7 makes 1.5.
    rounded = {"beta_fast": 8.0, "beta_slow": 1.5}
    found, gain = stretched(rope_type="yarn", **rounded, **trained)
    np.testing.assert_allclose(found, [1, 3 / 8, 1 / 8, 1 / 32], rtol=1e-14)
    assert math.isclose(gain, 1 + 0.1 * math.log(4))
    # Beyond the first pair it begins with that one, and beyond pair d - 1 = 7 it ends there.
    found, _ = stretched(rope_type="yarn", beta_fast=80, beta_slow=0.01, **trained)
    np.testing.assert_allclose(found, f * (1 - np.arange(4) / 7 * 3 / 4), rtol=1e-14)
    first, last = math.log2(10 / 8), math.log2(10 / 1.5)
    kept = 1 - np.clip((np.arange(4) - first) / (last - first), 0, 1)
    exact = stretched(rope_type="yarn", truncate=False, attention_factor=3.0, **rounded, **trained)
    np.testing.assert_allclose(exact[0], f * (kept + (1 - kept) / 4), rtol=1e-14)
    assert exact[1] == 3


def test_the_dynamic_rule_grows_with_the_text():
    stretch = {"rope_type": "dynamic", "factor": 3.0, "original_max_position_embeddings": 10}
    for length, factor in ((0, 1), (10, 1), (11, 1.3), (20, 4)):
        got, _ = rotary_frequencies(10, stretch=stretch, length=length)
        ntk = {"rope_type": "ntk", "factor": factor}
        np.testing.assert_allclose(got, rotary_frequencies(10, stretch=ntk)[0], rtol=1e-14)
    with raises(TypeError, "length must be a whole number; got None"):
        rotary_frequencies(10, stretch=stretch)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_rotary_takes_frequencies_and_a_gain(layout):
    x = tokens(BATCH, N, D)
    frequencies, _ = rotary_frequencies(D, base=50.0)
    expected = rotary(x, base=50.0, layout=layout, scale=3.0)
    got = rotary(x, layout=layout, scale=3.0, frequencies=frequencies, gain=2.5)
    np.testing.assert_allclose(got, 2.5 * expected, rtol=0, atol=1e-14)
    linear, _ = rotary_frequencies(D, base=50.0, stretch={"rope_type": "linear", "factor": 3.0})
    got = rotary(x, layout=layout, frequencies=linear)
    np.testing.assert_allclose(got, expected, rtol=0, atol=1e-14)


@pytest.mark.parametrize("base", [100, np.float32(100), Fraction(100)])
def test_any_real_number_is_a_base(base):
    x = tokens(N, D)
    np.testing.assert_array_equal(rotary(x, base=base), rotary(x, base=100.0))
    np.testing.assert_array_equal(
        sinusoidal_positions(2, 4, base=base), sinusoidal_positions(2, 4, base=100.0)
    )
