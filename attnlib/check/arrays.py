"""Arrays that the checkers hand to learners' functions."""

import numpy as np


def random_array(*shape, seed=0):
    """Return numbers of mean 0 and variance 1, the same at every call; no softmax saturates."""
    return np.random.default_rng(seed).standard_normal(shape)


def random_arrays(*shapes, seed=0):
    """Return an array of such numbers for each shape."""
    return tuple(random_array(*shape, seed=seed + i) for i, shape in enumerate(shapes))


def numbered(n, width):
    """Return a matrix whose numbers show where they are: 100 * row + column."""
    return 100.0 * np.arange(n)[:, None] + np.arange(width)


def float32(inputs):
    """Return the inputs of a case with arrays of float32 in the place of those of float64."""
    return tuple(
        each.astype(np.float32) if isinstance(each, np.ndarray) and each.dtype == float else each
        for each in inputs
    )
