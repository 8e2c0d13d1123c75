"""Blockwise attention: the numbers of the plain one for every block, and memory that is linear."""

import tracemalloc

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from attnlib import additive, blockwise_attention, padding_mask, scaled_dot_product_attention
from tests.helpers import REFUSED, raises, steady

pytestmark = pytest.mark.filterwarnings("error")

N_Q, N_K, D_K, D_V, BATCH, HEADS = 17, 23, 3, 5, 2, 7
BLOCKS = [1, 2, 5, 16, 17, 128]
TOLERANCE = {np.float16: 2e-3, np.float32: 1e-6, np.float64: 1e-12}


def arrays(*leading, n_q=N_Q, n_k=N_K, dtype=np.float64, seed=0):
    """Return random queries, keys and values with these leading axes."""
    rng = np.random.default_rng(seed)
    shapes = (n_q, D_K), (n_k, D_K), (n_k, D_V)
    return [rng.normal(size=leading + shape).astype(dtype) for shape in shapes]


def holes(*leading, seed=1):
    """Return a random bool mask in which some rows are blocked throughout."""
    mask = np.random.default_rng(seed).random((*leading, N_Q, N_K)) < 0.4
    mask[..., [0, 6, 16], :] = False
    return mask


MASKS = {
    "none": lambda dtype: None,
    "bool": lambda dtype: holes(BATCH, HEADS),
    "shared by the heads": lambda dtype: holes(BATCH, 1),
    "shared by all": lambda dtype: holes(),
    "one row for all": lambda dtype: holes()[3:4],
    "padding": lambda dtype: padding_mask([0, 19], N_K)[:, None],
    "-inf": lambda dtype: additive(holes(BATCH, HEADS), dtype),
    "bias": lambda dtype: np.random.default_rng(2).normal(0, 3, (HEADS, N_Q, N_K)).astype(dtype),
    "bias beyond float32": lambda dtype: np.full((N_Q, N_K), -1e300),
}


@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize("block", BLOCKS)
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("kind", MASKS)
def test_equals_the_plain_one(kind, causal, block, dtype):
    inputs, mask = arrays(BATCH, HEADS, dtype=dtype), MASKS[kind](dtype)
    with np.errstate(all="raise"):
        output = blockwise_attention(*inputs, mask, causal=causal, block=block)
    expected, _ = scaled_dot_product_attention(*inputs, mask, causal=causal)
    assert output.dtype == dtype
    np.testing.assert_allclose(output, expected, rtol=0, atol=TOLERANCE[dtype])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(("n_q", "n_k"), [(17, 23), (23, 17), (17, 17)])
@pytest.mark.parametrize("scale", [None, 0.3])
def test_equals_torch(n_q, n_k, scale, dtype):
    inputs = arrays(BATCH, HEADS, n_q=n_q, n_k=n_k, dtype=dtype)
    output = blockwise_attention(*inputs, causal=True, scale=scale, block=4)
    expected = torch.nn.functional.scaled_dot_product_attention(
        *map(torch.from_numpy, inputs), is_causal=True, scale=scale
    )
    np.testing.assert_allclose(output, expected.numpy(), rtol=0, atol=TOLERANCE[dtype])


@steady
@given(
    seed=st.integers(0, 2**32 - 1),
    sizes=st.tuples(*[st.integers(0, 9)] * 2),
    block=st.integers(1, 11),
    causal=st.booleans(),
    bad=st.sampled_from([np.nan, np.inf, -np.inf, 1.0]),
    as_float=st.booleans(),
)
def test_what_is_not_finite_shows_where_it_shows_in_the_plain_one(
    seed, sizes, block, causal, bad, as_float
):
    n_q, n_k = sizes
    rng = np.random.default_rng(seed)
    queries, keys, values = arrays(n_q=n_q, n_k=n_k, seed=seed)
    if n_k:
        keys[rng.integers(n_k), rng.integers(D_K)] = bad
        values[rng.integers(n_k), rng.integers(D_V)] = bad
    mask = rng.random((n_q, n_k)) < 0.5
    mask = additive(mask) if as_float else mask
    with np.errstate(all="raise"):
        output = blockwise_attention(queries, keys, values, mask, causal=causal, block=block)
    expected, _ = scaled_dot_product_attention(queries, keys, values, mask, causal=causal)
    np.testing.assert_allclose(output, expected, rtol=0, atol=1e-12)


@pytest.mark.parametrize(
    "shape", [((2, 1), (7,), ()), ((), (), (2,)), ((0,), (), ()), ((), (), ())]
)
def test_leading_axes_broadcast(shape):
    inputs = [
        np.ones((*leading, n, d), np.float32)
        for leading, n, d in zip(shape, (N_Q, N_K, N_K), (D_K, D_K, D_V), strict=True)
    ]
    expected, _ = scaled_dot_product_attention(*inputs)
    output = blockwise_attention(*inputs, block=4)
    assert output.shape == expected.shape and output.dtype == np.float32
    np.testing.assert_allclose(output, expected, rtol=1e-6)


def test_large_scores_do_not_overflow():
    queries, keys = np.array([[100.0], [-100.0]]), np.array([[100.0], [0.0]])
    with np.errstate(all="raise"):
        output = blockwise_attention(queries, keys, keys, scale=1.0, block=1)
    assert output.tolist() == [[100], [0]]


@pytest.mark.parametrize("size", [1e30, 1e-34])
def test_values_of_any_size_keep_their_digits(size):
    """Powers that fit into float32 may not fit when they are multiplied by values."""
    queries, keys = np.float32([[5]]), np.float32([[5], [4.9]] if size > 1 else [[-5], [-4.9]])
    values = np.float32([[1], [2]]) * np.float32(size)
    expected, _ = scaled_dot_product_attention(queries, keys, values)
    output = blockwise_attention(queries, keys, values)
    np.testing.assert_allclose(output, expected, rtol=1e-6)


def test_float16_is_worked_out_in_float32():
    queries, keys = np.full((1, 2), 6e4, np.float16), np.full((3, 2), 6e4, np.float16)
    np.testing.assert_array_equal(blockwise_attention(queries, keys, keys), queries)


def test_inputs_stay_as_they_are():
    inputs, mask = arrays(), additive(holes(), np.float64)
    copies = [array.copy() for array in [*inputs, mask]]
    blockwise_attention(*inputs, mask, causal=True, block=4)
    for array, copy in zip([*inputs, mask], copies, strict=True):
        np.testing.assert_array_equal(array, copy)


@pytest.mark.parametrize("causal", [False, True])
def test_memory_is_one_buffer_and_the_output(causal):
    inputs = arrays(HEADS, n_q=1031, n_k=1031, dtype=np.float32)
    blockwise_attention(*arrays())  # what Python itself keeps is there from now on
    tracemalloc.start()
    output = blockwise_attention(*inputs, causal=causal, block=16)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    buffer = 16 * 1031 * 4
    assert peak - output.nbytes < 2 * buffer  # one head's scores alone are 64 buffers


def test_errors_of_the_block():
    with raises(ValueError, "block must be 1 or more; got 0"):
        blockwise_attention(*arrays(), block=0)
    for block in (2.0, True, None):
        with raises(TypeError, f"block must be a whole number; got {block!r}"):
            blockwise_attention(*arrays(), block=block)


@pytest.mark.parametrize(("inputs", "options"), REFUSED)
def test_errors_are_those_of_the_plain_one(inputs, options):
    with pytest.raises((TypeError, ValueError)) as plain:
        scaled_dot_product_attention(*inputs, **options)
    with raises(plain.type, str(plain.value)):
        blockwise_attention(*inputs, **options)
