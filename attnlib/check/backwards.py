# ruff: noqa: N803 -- learners write A and dA as in the formula, and messages repeat them
"""Checker of chapter 12: the softmax backwards."""

import math

import numpy as np

from attnlib import attention as exact
from attnlib import gradients
from attnlib.check.verdict import draw, judge


def softmax_backward(function):
    """Check the gradient of the scores, Eq. (1) of chapter 12.

    Parameters
    ----------
    function : callable
        Takes weights A (n_q, n_k) and the gradient dA of a loss with respect to them, of the same
        shape; returns dS (n_q, n_k), the gradient with respect to the scores.

    Returns
    -------
    Verdict
    """

    def right(A, dA):
        return gradients.softmax_backward(A, dA)

    def share(A, dA):
        return (A * dA).sum(axis=-1, keepdims=True)

    def less(part):
        """Return the right answer with another part subtracted, made of A and dA."""
        return lambda A, dA: A * (dA - part(A, dA))

    def jacobian(A):
        return A[..., None] * np.eye(A.shape[-1]) - A[..., :, None] * A[..., None, :]

    mistakes = [
        (
            "This is only the diagonal of the Jacobian, A (1 - A). A score moves every weight of "
            "its row: subtract the row's sum of A * dA.",
            lambda A, dA: A * (1 - A) * dA,
        ),
        (
            "This leaves out the diagonal of the Jacobian: a score moves its own weight too.",
            lambda A, dA: A * (A * dA - share(A, dA)),
        ),
        (
            "Nothing is subtracted. What one weight gains the others lose: subtract the row's sum "
            "of A * dA from dA.",
            lambda A, dA: A * dA,
        ),
        (
            "You subtracted the plain sum of dA. Each counts as much as its weight: sum A * dA.",
            less(lambda A, dA: dA.sum(axis=-1, keepdims=True)),
        ),
        (
            "You subtracted the plain mean of dA. Each counts as much as its weight: sum A * dA.",
            less(lambda A, dA: dA.mean(axis=-1, keepdims=True)),
        ),
        (
            "You subtracted the mean of A * dA. Its sum is the average: A weighs each already.",
            less(lambda A, dA: (A * dA).mean(axis=-1, keepdims=True)),
        ),
        (
            "The sum is taken from A * dA. Brackets first: A * (dA - sum).",
            lambda A, dA: A * dA - share(A, dA),
        ),
        (
            "The sum runs down the columns. Each row has its own softmax: axis=-1.",
            less(lambda A, dA: (A * dA).sum(axis=0)),
        ),
        (
            "There is one sum for all rows. Each row has its own softmax: axis=-1.",
            less(lambda A, dA: (A * dA).sum()),
        ),
        (
            "The sum of each row lost its axis: keep it with keepdims=True.",
            less(lambda A, dA: (A * dA).sum(axis=-1)),
        ),
        (
            "A @ dA.T meets every row with every other. Multiply entry by entry, A * dA, and sum.",
            less(lambda A, dA: A @ dA.T),
        ),
        (
            "The factor A in front is missing: A * (dA - sum).",
            lambda A, dA: dA - share(A, dA),
        ),
        (
            "The sign is wrong: dA less the sum, not the sum less dA.",
            lambda A, dA: A * (share(A, dA) - dA),
        ),
        (
            "You added the sum. What one weight gains the others lose: subtract it.",
            lambda A, dA: A * (dA + share(A, dA)),
        ),
        (
            "A and dA are exchanged: A * (dA - sum).",
            lambda A, dA: dA * (A - share(A, dA)),
        ),
        (
            "A holds weights already. Do not take their softmax once more.",
            lambda A, dA: right(exact.softmax(A), dA),
        ),
        (
            "This is the Jacobian, a table for each row. Multiply it by the row of dA.",
            lambda A, dA: jacobian(A),
        ),
        (
            "You divided by the square root of n_k. There is no such factor in the softmax.",
            lambda A, dA: right(A, dA) / math.sqrt(A.shape[-1]),
        ),
    ]

    def drawn(n_q, n_k, seed=0):
        return exact.softmax(draw(n_q, n_k, seed=seed)), draw(n_q, n_k, seed=seed + 1)

    A, dA = drawn(3, 5)
    settled = np.array([[0.0, 1.0, 0.0], [0.0, 0.0, 0.0], [0.25, 0.25, 0.5]])
    cases = {
        "three queries and five keys": (A, dA),
        "seven queries and two keys": drawn(7, 2, seed=2),
        # A lost axis fails above. Here it runs.
        "as many queries as keys": drawn(5, 5, seed=4),
        "a row with a weight of 1 and a row of zeros": (settled, draw(3, 3, seed=6)),
        "float32": (A.astype(np.float32), dA.astype(np.float32)),
    }
    return judge(function, right, mistakes, cases, {"dS": "one slope for each score"})
