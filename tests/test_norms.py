"""Norms: by hand, against PyTorch, by property, every error."""

import math

import numpy as np
import pytest
import torch
from torch.nn import functional

from attnlib import LayerNorm, RMSNorm, layer_norm, rms_norm
from tests.helpers import BATCH, D_FF, D_MODEL, N, tokens

pytestmark = pytest.mark.filterwarnings("error")

TOLERANCE = {np.float16: 2e-3, np.float32: 1e-6, np.float64: 1e-12}


def test_layer_norm_by_hand():
    # Mean 3, variance (4 + 1 + 0 + 9) / 4 = 3.5; with eps = 0.5 the root is 2.
    got = layer_norm([[1.0, 2, 3, 6]], eps=0.5)
    assert got.tolist() == [[-1, -0.5, 0, 1.5]]
    got = layer_norm([[1.0, 2, 3, 6]], [1.0, 2, 3, 4], [0.0, 0, 5, -1], eps=0.5)
    assert got.tolist() == [[-1, -1, 5, 5]]
    assert layer_norm([[1.0, 2, 3, 6]], beta=[0.0, 0, 5, -1], eps=0.5).tolist() == [
        [-1, -0.5, 5, 0.5]
    ]


def test_epsilon_stands_under_the_root():
    assert layer_norm([1.0, 3.0], eps=3).tolist() == [-0.5, 0.5]  # std + eps would give 1 / 4
    small = layer_norm([-1e-3, 1e-3])
    np.testing.assert_allclose(small, np.array([-1, 1]) * 1e-3 / math.sqrt(1.1e-5), rtol=1e-14)
    assert layer_norm([2.0, 2.0]).tolist() == [0, 0]


@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize("affine", ["neither", "gamma", "both"])
def test_layer_norm_equals_torch(affine, dtype):
    x = tokens(BATCH, N, D_MODEL, dtype=dtype) * dtype(3) + dtype(2)
    gamma, beta = tokens(D_MODEL, dtype=dtype, seed=2), tokens(D_MODEL, dtype=dtype, seed=3)
    given = {"neither": [], "gamma": [gamma], "both": [gamma, beta]}[affine]
    expected = functional.layer_norm(
        torch.from_numpy(x), (D_MODEL,), *map(torch.from_numpy, given), eps=1e-3
    ).numpy()
    got = layer_norm(x, *given, eps=np.float64(1e-3))
    assert got.dtype == dtype
    np.testing.assert_allclose(got, expected, rtol=TOLERANCE[dtype], atol=TOLERANCE[dtype])


def test_layer_norm_finds_the_variance_around_a_large_mean():
    """E[x^2] - E[x]^2 in float32 has no digit left at a mean of 1e4."""
    x = (tokens(N, 64) + 1e4).astype(np.float32)
    exact = layer_norm(x.astype(np.float64))
    np.testing.assert_allclose(layer_norm(x), exact, rtol=0, atol=1e-3)
    far = layer_norm((tokens(N, 64) + 1e4).astype(np.float64)) - layer_norm(tokens(N, 64))
    assert np.abs(far).max() < 1e-10


def test_rms_norm_by_hand():
    # The mean square of 1 and 7 is 25, that of 1, 1, 1 and 5 is 7; with eps = 2 the root is 3.
    assert rms_norm([1.0, 7.0], eps=0).tolist() == [1 / 5, 7 / 5]
    got = rms_norm([[1.0, 1, 1, 5]], [3.0, 6, 9, 3], eps=2)
    np.testing.assert_allclose(got, [[1, 2, 3, 5]], rtol=1e-15)
    assert rms_norm([0.0, 0.0]).tolist() == [0, 0]


@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize("scaled", [False, True])
def test_rms_norm_equals_torch(scaled, dtype):
    x = tokens(BATCH, N, D_MODEL, dtype=dtype) * dtype(3) + dtype(2)
    gamma = tokens(D_MODEL, dtype=dtype, seed=2) if scaled else None
    weight = None if gamma is None else torch.from_numpy(gamma)
    expected = functional.rms_norm(torch.from_numpy(x), (D_MODEL,), weight, eps=1e-3).numpy()
    for got in (rms_norm(x, gamma, np.float64(1e-3)), RMSNorm(gamma, 1e-3)(x)):
        assert got.dtype == dtype
        np.testing.assert_allclose(got, expected, rtol=TOLERANCE[dtype], atol=TOLERANCE[dtype])


@pytest.mark.parametrize("norm", [layer_norm, rms_norm, LayerNorm(), RMSNorm()])
def test_extremes_of_a_norm(norm):
    assert norm(np.array([[-3e4, 3e4]], np.float16)).tolist() == [[-1, 1]]  # squared in float32
    assert norm(np.zeros((2, 0, 3), np.float32)).shape == (2, 0, 3)
    x = tokens(N, D_FF)
    clean = norm(x)
    np.testing.assert_array_equal(norm(x[2]), clean[2])
    x[2, 1], x[4, 0] = np.nan, np.inf
    with np.errstate(all="raise"):
        got = norm(x)
    kept = [i not in (2, 4) for i in range(N)]
    assert np.isfinite(got).all(-1).tolist() == kept
    np.testing.assert_array_equal(got[kept], clean[kept])


@pytest.mark.parametrize("beta", [None, tokens(D_MODEL, seed=3)])
@pytest.mark.parametrize("gamma", [None, tokens(D_MODEL, seed=2)])
def test_norms_are_their_functions(gamma, beta):
    x = tokens(BATCH, N, D_MODEL)
    np.testing.assert_array_equal(LayerNorm(gamma, beta, 0.1)(x), layer_norm(x, gamma, beta, 0.1))
    np.testing.assert_array_equal(RMSNorm(gamma, 0.1)(x), rms_norm(x, gamma, 0.1))
    assert (LayerNorm().eps, RMSNorm().eps) == (1e-5, 1e-6)
