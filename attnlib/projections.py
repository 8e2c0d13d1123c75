"""Projections: x @ w + b, and the random weights with which one begins."""

import numpy as np

from attnlib.inputs import read_dtype, read_generator


def project(x, w, b):
    """Return x @ w + b, without b where there is none."""
    y = x @ w
    if b is None:
        return y
    # In place where the dtype allows it: a second array of this size takes longer than the sum.
    return np.add(y, b, out=y if np.result_type(y, b) == y.dtype else None)


def xavier(d_in, d_out, rng, dtype):
    """Return a weight (d_in, d_out), uniform within +-sqrt(6 / (d_in + d_out))."""
    dtype, rng = read_dtype(dtype), read_generator(rng)
    limit = np.sqrt(6 / (d_in + d_out))
    return rng.uniform(-limit, limit, (d_in, d_out)).astype(dtype)
