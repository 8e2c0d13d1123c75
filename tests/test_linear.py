"""Attention without a softmax: by hand, as masked products, by property, every error."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from attnlib import causal_mask, delta_rule, linear_attention
from tests.helpers import steady, tokens

pytestmark = pytest.mark.filterwarnings("error")

BATCH, HEADS, N, D_K, D_V = 2, 3, 11, 5, 7
TOLERANCE = {np.float16: 2e-2, np.float32: 1e-5, np.float64: 1e-12}


def arrays(dtype=np.float64, seed=0):
    """Return queries, keys of length 1, and values."""
    q, k, v = (
        tokens(BATCH, HEADS, N, d, dtype=dtype, seed=seed + i)
        for i, d in enumerate((D_K, D_K, D_V))
    )
    return q, (k / np.linalg.norm(k, axis=-1, keepdims=True)).astype(dtype), v


def test_the_pencil_exercise():
    """Two orthogonal keys; the first is written again, at half the rate."""
    k = [[1.0, 0.0], [0.0, 1.0], [1.0, 0.0]]
    v, q = [[2.0], [4.0], [8.0]], [[1.0, 1.0]] * 3
    assert linear_attention(q, k, v).tolist() == [[2], [6], [14]]
    # The state is 2, then 2 and 4, then 2 + .5 (8 - 2) = 5 and 4.
    assert delta_rule(q, k, v, [1.0, 1.0, 0.5]).tolist() == [[2], [6], [9]]


@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize("causal", [False, True])
def test_the_recurrence_is_a_masked_product(causal, dtype):
    q, k, v = arrays(dtype)
    with np.errstate(all="raise"):
        got = linear_attention(q, k, v, causal=causal)
    wide = [x.astype(np.float64) for x in (q, k, v)]
    scores = wide[0] @ wide[1].mT * (causal_mask(N) if causal else 1)
    assert got.dtype == dtype
    np.testing.assert_allclose(got, scores @ wide[2], rtol=0, atol=10 * TOLERANCE[dtype])


def test_features_and_a_column_of_ones_give_weights_that_sum_to_1():
    """The attention of Katharopoulos et al., whose features are elu(x) + 1."""
    q, k, v = arrays()
    q, k = (np.where(x > 0, x + 1, np.exp(np.minimum(x, 0))) for x in (q, k))
    found = linear_attention(q, k, np.concatenate([v, np.ones((BATCH, HEADS, N, 1))], -1))
    weights = q @ k.mT * causal_mask(N)
    weights /= weights.sum(-1, keepdims=True)
    np.testing.assert_allclose(found[..., :-1] / found[..., -1:], weights @ v, rtol=0, atol=1e-12)


@settings(steady, max_examples=20)
@given(st.integers(0, 50))
def test_the_delta_rule_recalls_exactly_what_was_written_last(seed):
    q, k, v = arrays(seed=seed)
    once = delta_rule(k, k, v, np.ones(N))
    np.testing.assert_allclose(once, v, rtol=0, atol=1e-12)
    # Keys that do not touch: nothing is there to be replaced, so both rules agree.
    apart = np.eye(N)
    np.testing.assert_array_equal(delta_rule(apart, apart, v, np.ones(N)), v)
    many = tokens(BATCH, HEADS, N, N, seed=seed)
    np.testing.assert_allclose(
        delta_rule(many, apart, v, np.ones(N)), linear_attention(many, apart, v), rtol=0, atol=1e-12
    )
    assert (delta_rule(q, k, v, np.zeros(N)) == 0).all()


def test_the_delta_rule_is_a_step_down_the_error_of_recall():
    q, k, v = arrays()
    beta = np.random.default_rng(3).random((BATCH, HEADS, N))
    state = np.zeros((BATCH, HEADS, D_K, D_V))
    for t in range(N):
        # The gradient of |S^T k - v|^2 / 2 by S.
        error = np.einsum("bhkv,bhk->bhv", state, k[:, :, t]) - v[:, :, t]
        state -= beta[..., t, None, None] * np.einsum("bhk,bhv->bhkv", k[:, :, t], error)
        expected = np.einsum("bhkv,bhk->bhv", state, q[:, :, t])
        got = delta_rule(*(x[:, :, : t + 1] for x in (q, k, v)), beta[..., : t + 1])[..., t, :]
        np.testing.assert_allclose(got, expected, rtol=0, atol=1e-12)


@pytest.mark.parametrize("dtype", TOLERANCE)
def test_dtypes_shapes_and_inputs_of_the_delta_rule(dtype):
    q, k, v = arrays(dtype)
    for array in (q, k, v):
        array.setflags(write=False)
    beta = np.full((HEADS, 1), 0.5, dtype)
    with np.errstate(all="raise"):
        got = delta_rule(q[0], k, v[:, :1], beta)
    assert (got.dtype, got.shape) == (dtype, (BATCH, HEADS, N, D_V))
    alone = delta_rule(q[0, 2], k[1, 2], v[1, 0], beta[2].repeat(N))
    one_number = delta_rule(q[0, 2], k[1, 2], v[1, 0], beta[2, 0])
    assert (one_number == alone).all()
    np.testing.assert_allclose(got[1, 2], alone, rtol=0, atol=TOLERANCE[dtype])
    assert delta_rule(q, k, v, np.float64([0.5])).dtype == np.float64
    assert delta_rule(q[..., :0, :], k[..., :0, :], v[..., :0, :], beta[:, :0]).shape == (
        BATCH, HEADS, 0, D_V
    )  # fmt: skip
    other = linear_attention(q[..., :4, :], k, v, causal=False)  # fewer queries than keys
    assert (other.dtype, other.shape) == (dtype, (BATCH, HEADS, 4, D_V))
