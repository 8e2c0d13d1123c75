"""Mixture of experts: by hand, against PyTorch, by property, every error."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from attnlib import MixtureOfExperts, SwiGLU
from tests.helpers import BATCH, D_FF, D_MODEL, DTYPES, N, steady, tokens

pytestmark = pytest.mark.filterwarnings("error")

EXPERTS, K = 5, 3


def mixture(dtype=np.float64, k=K):
    """Return a mixture of random networks."""
    shapes = (D_MODEL, D_FF), (D_MODEL, D_FF), (D_FF, D_MODEL)
    experts = [
        SwiGLU(*(tokens(*shape, dtype=dtype, seed=10 * e + i) for i, shape in enumerate(shapes)))
        for e in range(EXPERTS)
    ]
    router = tokens(D_MODEL, EXPERTS, dtype=dtype, seed=7)
    return MixtureOfExperts(router, experts, k, tokens(EXPERTS, dtype=dtype, seed=8))


def test_two_of_three_experts_by_hand():
    experts = [lambda x, times=times: times * x for times in (10, 20, 30)]
    moe = MixtureOfExperts(np.log([[2.0, 3.0, 1.0]]), experts, 2, [0.0, 0.0, 0.5])
    weights = moe.route([[1.0], [-1.0]])
    # Logits ln 2, ln 3, .5: e^.5 = 1.65 is the smallest. Then -ln 2, -ln 3, .5: 1/3 is.
    last = np.exp(0.5) / (0.5 + np.exp(0.5))
    np.testing.assert_allclose(weights, [[0.4, 0.6, 0], [1 - last, 0, last]], rtol=1e-14)
    expected = [[16], [-10 * (1 - last) - 30 * last]]
    np.testing.assert_allclose(moe([[1.0], [-1.0]]), expected, rtol=1e-14)


@pytest.mark.parametrize("dtype", DTYPES)
def test_equals_torch(dtype, parity):
    moe, x = mixture(dtype), tokens(BATCH, N, D_MODEL, dtype=dtype)
    t = torch.from_numpy(x)
    every = torch.stack([torch.from_numpy(expert(x)) for expert in moe.experts], -1)
    logits = t @ torch.from_numpy(moe.w_router) + torch.from_numpy(moe.b_router)
    # Over all, then the largest, then again to a sum of 1: the same numbers by another way.
    shares, chosen = logits.softmax(-1).topk(K)
    shares = shares / shares.sum(-1, keepdim=True)
    expected = (
        every.gather(-1, chosen[:, :, None].expand(-1, -1, D_MODEL, -1)) * shares[:, :, None]
    ).sum(-1)
    parity("MixtureOfExperts", "none", moe(x), expected.numpy())


@settings(steady, max_examples=20)
@given(st.integers(1, EXPERTS), st.integers(0, 20))
def test_each_token_asks_k_experts_and_no_other(k, seed):
    moe, x = mixture(k=k), tokens(BATCH, N, D_MODEL, seed=seed)
    weights = moe.route(x)
    assert ((weights > 0).sum(-1) == k).all()
    np.testing.assert_allclose(weights.sum(-1), 1, rtol=1e-14)
    asked = []
    moe.experts = [lambda y, e=e: asked.append((e, len(y))) or y for e in range(EXPERTS)]
    np.testing.assert_allclose(moe(x), x, rtol=1e-12)
    assert sum(count for _, count in asked) == k * BATCH * N
    alone = np.stack([mixture(k=k)(row) for row in x])  # no token sees another
    np.testing.assert_allclose(alone, mixture(k=k)(x), rtol=0, atol=1e-9)


def test_nan_stays_in_its_token_and_nothing_is_nothing():
    moe, x = mixture(), tokens(N, D_MODEL)
    clean = moe(x)
    x[2, 1] = np.nan
    with np.errstate(all="raise"):
        got = moe(x)
    assert np.isnan(got[2]).all()
    np.testing.assert_array_equal(np.delete(got, 2, 0), np.delete(clean, 2, 0))
    assert moe(np.ones((0, D_MODEL))).shape == (0, D_MODEL)
    assert mixture(np.float32)(tokens(N, D_MODEL)).dtype == np.float64


def of_width(d_model):
    return SwiGLU(*np.ones((2, d_model, 4)), np.ones((4, d_model)))
