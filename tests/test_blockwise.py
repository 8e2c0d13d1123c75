"""Blockwise attention: the numbers of the plain one for every block, and memory that is linear.

And the same numbers from groups of keys, joined in any order.
"""

import itertools
import tracemalloc

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from attnlib import (
    MultiHeadAttention,
    additive,
    blockwise_attention,
    merge_partials,
    scaled_dot_product_attention,
)
from tests.helpers import every_pair, steady, tokens
from tests.test_attention import BATCH, D_K, D_V, HEADS, N_K, N_Q, arrays, holes
from tests.test_attention import MASKS as PLAIN

pytestmark = pytest.mark.filterwarnings("error")

BLOCKS = [1, 2, 4, 5, 128]
TOLERANCE = {np.float16: 2e-3, np.float32: 1e-6, np.float64: 1e-12}


MASKS = PLAIN | {
    "one row for all": lambda dtype: holes()[3:4],
    "bias of each head": lambda dtype: tokens(HEADS, N_Q, N_K, dtype=dtype) * dtype(3),
    "bias beyond float32": lambda dtype: np.full((N_Q, N_K), -1e300),
}


@every_pair(kind=MASKS, causal=[False, True], block=BLOCKS, dtype=TOLERANCE)
def test_equals_the_plain_one(kind, causal, block, dtype):
    inputs, mask = arrays(BATCH, HEADS, dtype=dtype), MASKS[kind](dtype)
    for array in (*inputs, np.asarray(mask)):
        array.setflags(write=False)
    with np.errstate(all="raise"):
        output = blockwise_attention(*inputs, mask, causal=causal, block=block)
    expected, _ = scaled_dot_product_attention(*inputs, mask, causal=causal)
    assert output.dtype == dtype
    np.testing.assert_allclose(output, expected, rtol=0, atol=TOLERANCE[dtype])


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
    queries, keys = np.full((1, 2), 6e4, np.float16), np.full((3, 2), 6e4, np.float16)
    np.testing.assert_array_equal(blockwise_attention(queries, keys, keys), queries)


@pytest.mark.parametrize("size", [1e30, 1e-34])
def test_values_of_any_size_keep_their_digits(size):
    """Powers that fit into float32 may not fit when they are multiplied by values."""
    queries, keys = np.float32([[5]]), np.float32([[5], [4.9]] if size > 1 else [[-5], [-4.9]])
    values = np.float32([[1], [2]]) * np.float32(size)
    expected, _ = scaled_dot_product_attention(queries, keys, values)
    output = blockwise_attention(queries, keys, values)
    np.testing.assert_allclose(output, expected, rtol=1e-6)


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


def partial_results(queries, keys, values, mask=True):
    """Return m, l and o of one group of keys."""
    scores = np.where(mask, queries @ keys.mT, -np.inf)
    m = scores.max(-1, initial=-np.inf)
    exponentials = np.exp(scores - np.where(m == -np.inf, 0, m)[..., None])
    return m, exponentials.sum(-1), exponentials @ values


@steady
@given(st.permutations(range(5)), st.integers(1, 4), st.sampled_from([0, 1, -1, -3]), st.booleans())
def test_groups_join_in_any_order_and_in_any_number(order, cut, axis, far):
    queries, keys, values = arrays(BATCH, HEADS)
    mask = holes()
    if far:
        keys = keys * 300  # scores whose exponentials overflow unless each group has its maximum
    bounds = [0, 1, 4, 5, 5, N_K]  # one of the groups is empty
    groups = [
        partial_results(queries, keys[..., i:j, :], values[..., i:j, :], mask[:, i:j])
        for i, j in itertools.pairwise(bounds)
    ]
    groups = [groups[i] for i in order]

    def join(groups):
        m, l, o = zip(*groups, strict=True)  # noqa: E741
        at = axis % 4
        return merge_partials(np.stack(m, at), np.stack(l, at), np.stack(o, at), axis)

    _, l, o = join([join(groups[:cut]), join(groups[cut:])])  # noqa: E741
    expected, _ = scaled_dot_product_attention(queries, keys, values, mask, scale=1.0)
    got = o / np.where(l == 0, 1, l)[..., None]
    np.testing.assert_allclose(got, expected, rtol=0, atol=1e-12)


def test_a_sink_is_one_more_group():
    one = np.ones((1, 1))
    x, sink = np.array([[0.5], [-2.0], [3.0]]), 0.7
    groups = partial_results(x, x, x), (np.full(3, sink), np.ones(3), np.zeros((3, 1)))
    _, l, o = merge_partials(*map(np.stack, zip(*groups, strict=True)))  # noqa: E741
    expected, _ = MultiHeadAttention(one, one, one, one, 1, sink=[sink])(x)
    np.testing.assert_allclose(o / l[:, None], expected, rtol=0, atol=1e-14)
    narrow = merge_partials(*np.ones((2, 2, 3), np.float32), np.ones((2, 3, 5), np.float32))
    assert [x.dtype.type for x in narrow] == [np.float32] * 3
    assert [x.shape for x in narrow] == [(3,), (3,), (3, 5)]
