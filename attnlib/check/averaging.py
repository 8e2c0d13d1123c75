"""The checker of averages whose weights depend on the data."""

import math

import numpy as np

from attnlib import attention as exact
from attnlib.check.arrays import random_array
from attnlib.check.checker import Checker


def weights(x):
    """Return the weights A for a signal x (n,) of d = 1."""
    return exact.softmax(np.outer(x, x))


def exponentials(x):
    """Return e to each score x_i x_j."""
    return np.exp(np.outer(x, x))


weighted_average = Checker(
    """Check a data-dependent average: y = A x with the weights A of Eq. (2) of "Why attention".

    The function takes a signal x (n,), each number of which is a vector of d = 1, and returns its
    averages (n,).
    """,
    right=lambda x: weights(x) @ x,
    returns={"averages": "one for each number"},
    cases={
        "seven numbers": (random_array(7) * 0.8,),
        "five numbers": (random_array(5, seed=1) * 0.8,),
        "a single number": (np.array([0.7]),),
        "a signal of float32": (random_array(3, seed=2).astype(np.float32),),
    },
    mistakes=[
        "These are the weights. Multiply them by the signal: y = A x.",
        weights,
        "A * x multiplies entry by entry. The matrix product A @ x also adds up each row.",
        lambda x: weights(x) * x,
        "Your weights sum to 1 down the columns, not along the rows: a wrong axis, a transposed "
        "matrix, or a sum of rows without keepdims=True.",
        lambda x: weights(x).T @ x,
        "Your weights sum to 1 over the whole matrix. Each row must sum to 1 by itself.",
        lambda x: exponentials(x) @ x / exponentials(x).sum(),
        "Your weights are not normalized: divide each row of exponentials by its sum.",
        lambda x: exponentials(x) @ x,
        "You used the scores as weights. Raise e to them, then divide each row by its sum.",
        lambda x: np.outer(x, x) @ x,
        "You divided the scores by their sum. Raise e to each score first.",
        lambda x: (np.outer(x, x) / np.outer(x, x).sum(axis=1, keepdims=True)) @ x,
        "This is the plain mean, in which all weights are equal. Here they follow from the "
        "products x_i x_j.",
        lambda x: np.full_like(x, x.mean()),
        "There is one average for all positions. Each position i needs weights of its own, from "
        "its scores x_i x_j.",
        lambda x: exact.softmax(x) @ x,
        lambda x: np.full_like(x, exact.softmax(x) @ x),
        "You divided the scores by the square root of n. Divide by that of d, which is 1 here.",
        lambda x: exact.softmax(np.outer(x, x) / math.sqrt(len(x))) @ x,
    ],
)
