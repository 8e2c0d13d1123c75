"""The checker of layer norm."""

import numpy as np

from attnlib import norms
from attnlib.check.arrays import float32, random_array, random_arrays
from attnlib.check.checker import Checker


def mean(x):
    """Return the mean of each row, its axis kept."""
    return x.mean(axis=-1, keepdims=True)


def variance(x, **options):
    """Return the variance of each row, its axis kept."""
    return x.var(axis=-1, keepdims=True, **options)


def root(x, eps=1e-5):
    """Return what each row is divided by."""
    return np.sqrt(variance(x) + eps)


def normed(x, center=mean, spread=root):
    """Return the rows without gamma and beta."""
    return (x - center(x)) / spread(x)


def scaled(**how):
    """Return layer norm with another center or spread, made of x."""
    return lambda x, gamma, beta: gamma * normed(x, **how) + beta


def along(axis):
    """Return layer norm along another axis, or other axes."""
    return scaled(
        center=lambda x: x.mean(axis=axis, keepdims=True),
        spread=lambda x: np.sqrt(x.var(axis=axis, keepdims=True) + 1e-5),
    )


def by_matrix(x, gamma, beta):
    """Return layer norm that takes each entry of the first axis as one row."""
    return np.stack([along(None)(each, gamma, beta) for each in x])


ORDINARY = random_array(5, 7), 1 + random_array(7, seed=1) / 2, random_array(7, seed=2)
SHORT = random_arrays((3,), (3,), seed=3)

layer_norm = Checker(
    """Check layer norm, Eq. (1) of "The encoder layer", with an epsilon of 1e-5.

    The function takes x (..., d), gamma (d,) and beta (d,) and returns an array of the shape of x.
    """,
    right=lambda x, gamma, beta: norms.layer_norm(x, gamma, beta),
    returns={"tokens": "as x"},
    cases={
        "ordinary rows": ORDINARY,
        # Where the variance is smaller than epsilon, the place of epsilon shows.
        "rows of small spread": (2 + ORDINARY[0] / 1e3, *ORDINARY[1:]),
        "more rows than columns": (random_array(7, 3, seed=5), *SHORT),
        "rows of equal numbers": (np.full((2, 3), 2.0), *SHORT),
        "three axes": (random_array(2, 5, 3, seed=6), *SHORT),
        "four axes": random_arrays((2, 3, 1, 5), (5,), (5,), seed=7),
        "a single token, one axis": (random_array(3, seed=10), *SHORT),
        "float32": float32(ORDINARY),
    },
    mistakes=[
        "For a matrix it is right, but there may be any number of axes before the last: axis=-1, "
        "not axis=1, and no loop over the first axis.",
        along(1),
        by_matrix,
        "You took mean and variance down the columns, over the tokens. Each token is normalized by "
        "itself: axis=-1.",
        along(0),
        "You took one mean and one variance for all entries. Each row has its own: axis=-1.",
        along(None),
        "Epsilon stands outside of the root. It belongs under it: sqrt(variance + epsilon).",
        scaled(spread=lambda x: x.std(axis=-1, keepdims=True) + 1e-5),
        "Your variance is divided by d - 1. Here it is divided by d: no ddof=1.",
        scaled(spread=lambda x: np.sqrt(variance(x, ddof=1) + 1e-5)),
        "Epsilon is missing: a row of equal numbers gives 0 / 0.",
        scaled(spread=lambda x: root(x, eps=0)),
        "Your epsilon is not 1e-5.",
        *[scaled(spread=lambda x, eps=eps: root(x, eps)) for eps in (1e-3, 1e-4, 1e-6, 1e-12)],
        "The root divides the mean alone. Brackets first: (x - mean) / root.",
        lambda x, gamma, beta: gamma * (x - mean(x) / root(x)) + beta,
        "Your variance is the mean of x**2. Take the mean of (x - mean)**2.",
        scaled(spread=lambda x: np.sqrt(mean(x**2) + 1e-5)),
        "You did not subtract the mean: divide x - mean, not x.",
        scaled(center=lambda x: 0),
        "This is RMSNorm: it divides by the root of the mean square and subtracts no mean.",
        scaled(center=lambda x: 0, spread=lambda x: np.sqrt(mean(x**2) + 1e-5)),
        "You only subtracted the mean. Divide by the root of the variance too.",
        scaled(spread=lambda x: 1),
        "You divided by the variance, not by its root.",
        scaled(spread=lambda x: variance(x) + 1e-5),
        "You divided by the length of the row. The variance is the mean of the squares, not their "
        "sum.",
        scaled(spread=lambda x: np.sqrt(x.shape[-1] * variance(x) + 1e-5)),
        "gamma and beta are missing.",
        lambda x, gamma, beta: normed(x),
        "gamma is missing: multiply by it.",
        lambda x, gamma, beta: normed(x) + beta,
        "beta is missing: add it at the end.",
        lambda x, gamma, beta: gamma * normed(x),
        "You added beta before you multiplied by gamma. First gamma, then beta.",
        lambda x, gamma, beta: gamma * (normed(x) + beta),
        "gamma and beta are exchanged: gamma multiplies, beta is added.",
        lambda x, gamma, beta: beta * normed(x) + gamma,
        "The mean or the variance of each row lost its axis: keep it with keepdims=True.",
        lambda x, gamma, beta: x - x.mean(axis=-1),
    ],
)
