"""Softmax and attention: by hand, against PyTorch, by property, and every error."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from attnlib import additive, causal_mask, padding_mask, scaled_dot_product_attention, softmax
from tests.helpers import steady

pytestmark = pytest.mark.filterwarnings("error")

N_Q, N_K, D_K, D_V, BATCH, HEADS = 5, 7, 3, 11, 2, 13
TOLERANCE = {np.float16: 2e-3, np.float32: 1e-6, np.float64: 1e-12}
DTYPES = list(TOLERANCE)


def arrays(*leading, n_q=N_Q, n_k=N_K, dtype=np.float64, seed=0):
    """Return random queries, keys and values with these leading axes."""
    rng = np.random.default_rng(seed)
    shapes = (n_q, D_K), (n_k, D_K), (n_k, D_V)
    return [rng.normal(size=leading + shape).astype(dtype) for shape in shapes]


def holes(*leading, seed=1):
    """Return a random bool mask in which row 0 is blocked throughout and row 1 is open."""
    mask = np.random.default_rng(seed).random((*leading, N_Q, N_K)) < 0.6
    mask[..., 0, :] = False
    mask[..., 1, :] = True
    return mask


def test_softmax_by_hand():
    e = math.exp(2 * math.sqrt(2))
    assert e == pytest.approx(16.918829, abs=5e-7)
    row = softmax([0.0, 2 * math.sqrt(2)])
    np.testing.assert_allclose(row, [1 / (1 + e), e / (1 + e)], rtol=1e-15)
    np.testing.assert_allclose(row, [0.055807, 0.944193], atol=5e-7)
    scores = np.log([[1.0, 2.0, 5.0], [3.0, 2.0, 5.0]])
    np.testing.assert_allclose(softmax(scores), [[1 / 8, 2 / 8, 5 / 8], [0.3, 0.2, 0.5]])
    for axis in (0, -2):
        down = softmax(scores, axis=axis)
        np.testing.assert_allclose(down, [[0.25, 0.5, 0.5], [0.75, 0.5, 0.5]])


def test_chai_piyo():
    Q, K, V = [[2.0, 0.0], [0.0, 2.0]], [[0.0, 2.0], [2.0, 0.0]], [[2.0, 0.0], [0.0, 2.0]]
    output, weights = scaled_dot_product_attention(Q, K, V)
    np.testing.assert_allclose(
        weights, [[0.055807, 0.944193], [0.944193, 0.055807]], rtol=0, atol=5e-7
    )
    np.testing.assert_allclose(
        output, [[0.111614, 1.888386], [1.888386, 0.111614]], rtol=0, atol=5e-7
    )


def test_scale_replaces_the_default():
    queries, keys, values = [[3.0, 0.0]], [[1.0, 0.0], [0.0, 1.0]], [[1.0], [0.0]]
    for scale, share in ((None, 3 / math.sqrt(2)), (1.0, 3), (0, 0), (-2, -6)):
        output, _ = scaled_dot_product_attention(queries, keys, values, scale=scale)
        assert output[0, 0] == pytest.approx(1 / (1 + math.exp(-share)), rel=1e-14)


def test_mask_by_hand():
    queries, keys, values = np.zeros((2, 1)), np.zeros((3, 1)), np.array([[1.0], [10.0], [100.0]])
    mask = [[True, True, False], [False, False, True]]
    output, weights = scaled_dot_product_attention(queries, keys, values, mask)
    assert weights.tolist() == [[0.5, 0.5, 0], [0, 0, 1]]
    assert output.tolist() == [[5.5], [100]]
    _, weights = scaled_dot_product_attention(queries, keys, values, [[0.0, math.log(3), -np.inf]])
    np.testing.assert_allclose(weights, [[0.25, 0.75, 0]] * 2, rtol=1e-15)


def test_causal_is_aligned_top_left():
    zeros = [np.zeros(shape) for shape in ((2, 1), (3, 1), (3, 1))]
    _, weights = scaled_dot_product_attention(*zeros, causal=True)
    assert weights.tolist() == [[1, 0, 0], [0.5, 0.5, 0]]
    zeros = [np.zeros(shape) for shape in ((3, 1), (2, 1), (2, 1))]
    _, weights = scaled_dot_product_attention(*zeros, causal=True)
    assert weights.tolist() == [[1, 0], [0.5, 0.5], [0.5, 0.5]]


def test_causal_applies_on_top_of_the_mask():
    mask = holes()
    both = scaled_dot_product_attention(*arrays(), mask, causal=True)
    one = scaled_dot_product_attention(*arrays(), mask & causal_mask(N_Q, N_K))
    floats = scaled_dot_product_attention(*arrays(), additive(mask, np.float64), causal=True)
    for result in (one, floats):
        np.testing.assert_array_equal(both[0], result[0])
        np.testing.assert_array_equal(both[1], result[1])


MASKS = {
    "none": lambda dtype: None,
    "bool": lambda dtype: holes(BATCH, HEADS),
    "shared by the heads": lambda dtype: holes(BATCH, 1),
    "shared by all": lambda dtype: holes(),
    "padding": lambda dtype: padding_mask([4, 7], N_K)[:, None],
    "-inf": lambda dtype: additive(holes(BATCH, HEADS), dtype),
    "finite bias": lambda dtype: (3 * np.random.default_rng(2).normal(size=(N_Q, N_K))).astype(
        dtype
    ),
}


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("kind", MASKS)
def test_equals_torch(kind, dtype):
    inputs, mask = arrays(BATCH, HEADS, dtype=dtype), MASKS[kind](dtype)
    output, _ = scaled_dot_product_attention(*inputs, mask)
    expected = torch.nn.functional.scaled_dot_product_attention(
        *map(torch.from_numpy, inputs),
        attn_mask=None if mask is None else torch.from_numpy(mask),
    )
    # Where a row is blocked throughout, this version of torch gives zeros as well.
    np.testing.assert_allclose(output, expected.numpy(), rtol=0, atol=TOLERANCE[dtype])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("scale", [None, 0.5])
@pytest.mark.parametrize(("n_q", "n_k"), [(5, 7), (7, 5), (5, 5)])
def test_causal_equals_torch(n_q, n_k, scale, dtype):
    inputs = arrays(BATCH, HEADS, n_q=n_q, n_k=n_k, dtype=dtype)
    output, _ = scaled_dot_product_attention(*inputs, causal=True, scale=scale)
    expected = torch.nn.functional.scaled_dot_product_attention(
        *map(torch.from_numpy, inputs), is_causal=True, scale=scale
    )
    np.testing.assert_allclose(output, expected.numpy(), rtol=0, atol=TOLERANCE[dtype])


@pytest.mark.parametrize("dtype", DTYPES)
def test_large_scores_do_not_overflow(dtype):
    with np.errstate(all="raise"):
        row = softmax(np.array([1e4, -1e4, 1e4], dtype))
        queries, keys = np.array([[100, 0], [-100, 0]], dtype), np.array([[100, 0], [0, 0]], dtype)
        _, weights = scaled_dot_product_attention(queries, keys, keys, scale=1.0)
    assert row.tolist() == [0.5, 0, 0.5]
    assert weights.tolist() == [[1, 0], [0, 1]]


@pytest.mark.parametrize("dtype", DTYPES)
def test_the_whole_range_of_finite_scores(dtype):
    limits = np.finfo(dtype)
    assert softmax(np.array([limits.max, limits.min], dtype)).tolist() == [1, 0]
    assert softmax(np.array([limits.min, limits.min], dtype)).tolist() == [0.5, 0.5]


def test_float16_is_worked_out_in_float32():
    queries, keys = np.full((1, 2), 6e4, np.float16), np.full((3, 2), 6e4, np.float16)
    output, weights = scaled_dot_product_attention(queries, keys, keys)  # scores of 5e9
    np.testing.assert_array_equal(weights, np.full((1, 3), 1 / 3, np.float16))
    np.testing.assert_array_equal(output, queries)
    assert softmax(np.zeros((2, 70001), np.float16), axis=1)[1, 0] == np.float16(1 / 70001)


@pytest.mark.parametrize("far", [-1e9, -1e300])
def test_a_large_finite_bias_does_not_block(far):
    queries, keys, values = arrays(dtype=np.float32)
    output, weights = scaled_dot_product_attention(queries, keys, values, np.full((N_Q, N_K), far))
    np.testing.assert_allclose(weights.sum(-1), 1, rtol=1e-6)
    assert output.dtype == np.float32


def test_softmax_of_nothing_but_minus_infinity_is_zero():
    scores = np.array([[-np.inf, -np.inf], [-np.inf, 1.0]])
    for axis in (-1, 0):
        weights = softmax(scores, axis)
        assert weights.tolist() == [[0, 0], [0, 1]]
        assert not np.signbit(weights).any()  # printed, -0 would be a puzzle
        for shape in ((3, 0), (0, 3), (2, 0, 5)):
            assert softmax(np.zeros(shape), axis).shape == shape


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_softmax_keeps_nan_and_infinity_in_their_row(bad):
    weights = softmax([[0.0, bad, 1.0], [0.0, 0.0, -np.inf]])
    assert np.isnan(weights[0]).all()
    assert weights[1].tolist() == [0.5, 0.5, 0]


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("as_float", [False, True])
@steady
@given(seed=st.integers(0, 2**32 - 1))
def test_what_is_blocked_never_leaks(seed, as_float, bad):
    """Each row blocks its own keys; each non-finite entry reaches exactly the rows that see it."""
    rng = np.random.default_rng(seed)
    mask = rng.random((N_Q, N_K)) < 0.5
    key, value = rng.integers(N_K, size=2)
    queries, keys, values = arrays(seed=seed)
    clean_output, clean_weights = scaled_dot_product_attention(queries, keys, values, mask)
    keys[key, rng.integers(D_K)] = bad
    column = rng.integers(D_V)
    values[value, column] = bad
    with np.errstate(all="raise"):
        output, weights = scaled_dot_product_attention(
            queries, keys, values, additive(mask, np.float64) if as_float else mask
        )
    hidden = ~mask[:, key]
    np.testing.assert_array_equal(weights[hidden], clean_weights[hidden])
    others = np.arange(D_V) != column
    np.testing.assert_allclose(
        output[hidden][:, others], clean_output[hidden][:, others], rtol=1e-14
    )
    sees_value = mask[:, value]
    np.testing.assert_allclose(
        output[hidden & ~sees_value], clean_output[hidden & ~sees_value], rtol=1e-14
    )
    np.testing.assert_array_equal(output[hidden & sees_value, column], bad)


def test_infinities_of_both_signs_meet_as_nan():
    queries, keys, values = np.zeros((3, 1)), np.zeros((2, 1)), np.array([[np.inf], [-np.inf]])
    mask = [[True, False], [False, True], [True, True]]
    output, _ = scaled_dot_product_attention(queries, keys, values, mask)
    np.testing.assert_array_equal(output, [[np.inf], [-np.inf], [np.nan]])


def test_nan_goes_where_it_is_attended_to():
    queries, keys, values = arrays()
    spoilt = keys.copy()
    spoilt[3, 1] = np.nan
    for result in scaled_dot_product_attention(queries, spoilt, values, causal=True):
        assert np.isfinite(result[:3]).all() and np.isnan(result[3:]).all()
    queries[[0, 2]] = np.nan
    output, weights = scaled_dot_product_attention(queries, keys, values, holes())
    assert not output[0].any()  # blocked throughout
    assert np.isnan(output[2]).all()
    assert np.isfinite(output[[1, 3, 4]]).all() and np.isfinite(weights[[1, 3, 4]]).all()


@pytest.mark.parametrize(
    ("queries", "keys", "values", "output", "weights"),
    [
        ((0, 3), (7, 3), (7, 11), (0, 11), (0, 7)),
        ((5, 3), (0, 3), (0, 11), (5, 11), (5, 0)),
        ((0, 3), (0, 3), (0, 11), (0, 11), (0, 0)),
        ((5, 3), (7, 3), (7, 0), (5, 0), (5, 7)),
        ((0, 5, 3), (0, 7, 3), (0, 7, 11), (0, 5, 11), (0, 5, 7)),
        ((2, 1, 5, 3), (13, 7, 3), (7, 11), (2, 13, 5, 11), (2, 13, 5, 7)),
        ((5, 3), (7, 3), (2, 7, 11), (2, 5, 11), (2, 5, 7)),
    ],
)
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("mask", [None, True, 0.0])
def test_shapes(queries, keys, values, output, weights, causal, mask):
    inputs = [np.ones(shape, np.float32) for shape in (queries, keys, values)]
    got = scaled_dot_product_attention(*inputs, mask, causal=causal)
    assert [array.shape for array in got] == [output, weights]
    assert [array.dtype for array in got] == [np.float32, np.float32]
    assert got[1].size == 0 or np.allclose(got[1].sum(-1), 1)
    assert np.allclose(got[0], 0 if keys[-2] == 0 else 1)


@pytest.mark.parametrize(
    "shape", [(), (1,), (N_K,), (N_Q, 1), (1, N_K), (N_Q, N_K), (BATCH, 1, N_K), (BATCH, N_Q, 1)]
)
@pytest.mark.parametrize("as_float", [False, True])
def test_a_mask_broadcasts_to_the_weights(shape, as_float):
    mask = np.random.default_rng(5).random(shape) < 0.6
    whole = np.broadcast_to(mask, (BATCH, N_Q, N_K)).copy()
    inputs = arrays(BATCH)
    small = scaled_dot_product_attention(*inputs, additive(mask) if as_float else mask)
    large = scaled_dot_product_attention(*inputs, whole)
    np.testing.assert_array_equal(small[0], large[0])
    np.testing.assert_array_equal(small[1], large[1])


@steady
@given(hnp.arrays(np.float64, (3, 5), elements=st.sampled_from([-np.inf, -7.0, 0.0, 2.5, 1e4])))
def test_rows_sum_to_one_or_zero(scores):
    weights = softmax(scores)
    assert (weights >= 0).all()
    assert (weights[scores == -np.inf] == 0).all()
    open_rows = (scores > -np.inf).any(-1)
    np.testing.assert_allclose(weights.sum(-1), open_rows, rtol=1e-14)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("of_mask", [None, bool, *DTYPES])
@pytest.mark.parametrize("scale", [None, 1, np.float64(0.5)])
def test_dtype_is_kept(dtype, of_mask, scale):
    mask = of_mask and np.ones((N_Q, N_K), of_mask)
    got = scaled_dot_product_attention(*arrays(dtype=dtype), mask, scale=scale)
    assert [array.dtype for array in got] == [dtype, dtype]
    exact = scaled_dot_product_attention(
        *(a.astype(float) for a in arrays(dtype=dtype)), scale=scale
    )
    np.testing.assert_allclose(got[0], exact[0], rtol=0, atol=TOLERANCE[dtype])
    assert softmax(np.zeros((2, 3), dtype)).dtype == dtype


def test_dtypes_meet_in_the_wider_one_and_byte_order_does_not_matter():
    queries, keys, values = arrays()
    got = scaled_dot_product_attention(queries.astype(np.float16), keys.astype(np.float32), values)
    assert [array.dtype for array in got] == [np.float64, np.float64]
    native = arrays(dtype=np.float32)
    swapped = scaled_dot_product_attention(*(array.astype(">f4") for array in native))
    for got, expected in zip(swapped, scaled_dot_product_attention(*native), strict=True):
        np.testing.assert_array_equal(got, expected)
        assert got.dtype.isnative


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("bad", [0, np.nan])
def test_inputs_are_unchanged(dtype, bad):
    inputs = arrays(BATCH, dtype=dtype)
    inputs[2][0, 0, 0] = bad
    masks = [holes(), additive(holes(), dtype)]
    for array in inputs + masks:
        array.setflags(write=False)
    copies = [array.copy() for array in inputs + masks]
    for mask in (None, *masks):
        for result in scaled_dot_product_attention(*inputs, mask, causal=True):
            assert result.flags.writeable
            assert not any(np.shares_memory(result, array) for array in inputs)
    softmax(inputs[0])
    for array, copy in zip(inputs + masks, copies, strict=True):
        np.testing.assert_array_equal(array, copy)


def test_other_kinds_of_arrays():
    """A matrix of NumPy's counts as what it holds; what hides numbers or gradients is refused."""
    rows = [[1.0, 2.0], [3.0, 5.0]]
    with pytest.warns(PendingDeprecationWarning):
        matrix = np.matrix(rows)
    np.testing.assert_array_equal(softmax(matrix), softmax(rows))
    with pytest.raises(TypeError, match=r"^scores must be an array; got Tensor: .*detach"):
        softmax(torch.tensor(rows, requires_grad=True))
