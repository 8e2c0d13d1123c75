# ruff: noqa: N803 -- learners write A and dA as in the formula, and messages repeat them
"""The checker of the gradient of softmax."""

import math

import numpy as np

from attnlib import attention as exact
from attnlib import gradients
from attnlib.check.arrays import float32, random_array
from attnlib.check.checker import Checker


def right(A, dA):
    """Return the right gradient."""
    return gradients.softmax_backward(A, dA)


def row_sum(A, dA):
    """Return the sum of A * dA in each row, its axis kept."""
    return (A * dA).sum(axis=-1, keepdims=True)


def less(part):
    """Return the right formula with another part subtracted, made of A and dA."""
    return lambda A, dA: A * (dA - part(A, dA))


def jacobian(A, dA):
    """Return the Jacobian of each row, a matrix."""
    return A[..., None] * np.eye(A.shape[-1]) - A[..., :, None] * A[..., None, :]


def weights_and_gradient(n_q, n_k, seed=0):
    """Return weights A, and the gradient dA of a loss with respect to them."""
    return exact.softmax(random_array(n_q, n_k, seed=seed)), random_array(n_q, n_k, seed=seed + 1)


THREE_ROWS = weights_and_gradient(3, 5)
SETTLED = np.array([[0.0, 1.0, 0.0], [0.0, 0.0, 0.0], [0.25, 0.25, 0.5]])

softmax_backward = Checker(
    """Check the gradient of the scores, Eq. (2) of "Backpropagation by hand".

    The function takes weights A (n_q, n_k) and the gradient dA of a loss with respect to them, of
    the same shape; it returns dS (n_q, n_k), the gradient with respect to the scaled scores.
    """,
    right=right,
    returns={"dS": "one slope for each score"},
    cases={
        "three queries and five keys": THREE_ROWS,
        "seven queries and two keys": weights_and_gradient(7, 2, seed=2),
        # A lost axis fails above. Here it runs.
        "as many queries as keys": weights_and_gradient(5, 5, seed=4),
        "a row with a weight of 1 and a row of zeros": (SETTLED, random_array(3, 3, seed=6)),
        "float32": float32(THREE_ROWS),
    },
    mistakes=[
        "This is only the diagonal of the Jacobian, A (1 - A). A score changes every weight of its "
        "row: subtract the row's sum of A * dA.",
        lambda A, dA: A * (1 - A) * dA,
        "This leaves out the diagonal of the Jacobian: a score changes its own weight too.",
        lambda A, dA: A * (A * dA - row_sum(A, dA)),
        "Nothing is subtracted. What one weight gains the others lose: subtract the row's sum of "
        "A * dA from dA.",
        lambda A, dA: A * dA,
        "You subtracted the plain sum of dA. Each counts as much as its weight: sum A * dA.",
        less(lambda A, dA: dA.sum(axis=-1, keepdims=True)),
        "You subtracted the plain mean of dA. Each counts as much as its weight: sum A * dA.",
        less(lambda A, dA: dA.mean(axis=-1, keepdims=True)),
        "You subtracted the mean of A * dA. Its sum is the average: A weighs each already.",
        less(lambda A, dA: (A * dA).mean(axis=-1, keepdims=True)),
        "The sum is subtracted from A * dA. Brackets first: A * (dA - sum).",
        lambda A, dA: A * dA - row_sum(A, dA),
        "The sum runs down the columns. Each row has its own softmax: axis=-1.",
        less(lambda A, dA: (A * dA).sum(axis=0)),
        "There is one sum for all rows. Each row has its own softmax: axis=-1.",
        less(lambda A, dA: (A * dA).sum()),
        "The sum of each row lost its axis: keep it with keepdims=True.",
        less(lambda A, dA: (A * dA).sum(axis=-1)),
        "A @ dA.T multiplies every row by every other. Multiply entry by entry, A * dA, and sum.",
        less(lambda A, dA: A @ dA.T),
        "The factor A in front is missing: A * (dA - sum).",
        lambda A, dA: dA - row_sum(A, dA),
        "The sign is wrong: subtract the sum from dA, not dA from the sum.",
        lambda A, dA: A * (row_sum(A, dA) - dA),
        "You added the sum. What one weight gains the others lose: subtract it.",
        lambda A, dA: A * (dA + row_sum(A, dA)),
        "A and dA are exchanged: A * (dA - sum).",
        lambda A, dA: dA * (A - row_sum(A, dA)),
        "A holds weights already. Do not take their softmax once more.",
        lambda A, dA: right(exact.softmax(A), dA),
        "This is the Jacobian, a matrix for each row. Multiply it by the row of dA.",
        jacobian,
        "You divided by the square root of n_k. There is no such factor in the softmax.",
        lambda A, dA: right(A, dA) / math.sqrt(A.shape[-1]),
    ],
)
