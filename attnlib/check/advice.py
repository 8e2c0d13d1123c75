"""Advice on the mistakes that several exercises invite, and the wrong answers that deserve it."""

import math

import numpy as np

UNSCALED = "You did not scale: divide the scores by the square root of d_k."
BY_D_K = "You divided by d_k, not by its square root."
HALVED = "d_k ** 1 / 2 is not a root: ** goes before /. Write d_k ** 0.5, or math.sqrt(d_k)."
MULTIPLIED = "You multiplied by the square root of d_k. Divide by it."
BY_ROOT_OF = {
    "d_v": "You divided by the square root of d_v, the width of the values. Use d_k, the width of "
    "the keys.",
    "n_k": "You divided by the square root of the number of keys, not of d_k.",
    "n_q": "You divided by the square root of the number of queries, not of d_k.",
    "d_model": "You divided by the square root of d_model, the width of X. Use d_k, the width of "
    "the keys.",
    "d_memory": "You divided by the square root of d_memory, the width of M. Use d_k, the width of "
    "the keys.",
    "n_heads": "You divided by the square root of the number of heads. Use d_k, the last axis.",
    "n_kv_heads": "You divided by the square root of the number of key heads. Use d_k, the last "
    "axis.",
}
TOO_LATE = "You divided by the square root of d_k after softmax. Divide the scores, before it."
COLUMNS = "Your rows do not sum to 1: softmax ran over the queries, not over the keys."
EVERYTHING = "The softmax ran over all entries at once. Each row must sum to 1 by itself."
NOT_DIVIDED = "Your rows do not sum to 1: divide the exponentials of each row by their sum."
NO_SOFTMAX = "Softmax is missing: the scaled scores were used as weights."
OVERFLOW = "Large scores overflow: subtract each row's largest score before you take exponentials."
AXIS_LOST = "The largest score or the sum of each row lost its axis: keep it with keepdims=True."
SWAPPED = (
    "Rows and columns are exchanged: each row must belong to a query and each column to a key. "
    "Either Q and K are swapped in Q K^T, or the result is transposed."
)
UPRIGHT = "K is not transposed: each score is a query times a key, Q K^T."
RESHAPED = "K is reshaped, not transposed. That mixes the numbers of different keys: use K.T."
KEYS_BLENDED = "You averaged the keys. They only make the weights; average the values with them."
MASKED_LATE = "You mask after softmax, so the rows no longer sum to 1: mask first, softmax second."
INVERTED = "Your mask is inverted: True means may attend, and you blocked those."


def wrong_divisors(divided, *sizes):
    """Return what goes wrong where scores are divided by the square root of d_k.

    Parameters
    ----------
    divided : callable
        Takes a function of the sizes, given by their names, d_k among them; returns the answer to
        the exercise with what that function returns in the place of the root.
    *sizes : str
        The sizes whose root is taken by mistake.

    Returns
    -------
    list of str and callable
        As the mistakes of a `Checker`.
    """
    found = [
        UNSCALED,
        divided(lambda **sizes: 1),
        BY_D_K,
        divided(lambda d_k, **sizes: d_k),
        HALVED,
        divided(lambda d_k, **sizes: 2 * d_k),
        divided(lambda d_k, **sizes: d_k / 2),
        MULTIPLIED,
        divided(lambda d_k, **sizes: 1 / math.sqrt(d_k)),
    ]
    for name in sizes:
        found += BY_ROOT_OF[name], divided(lambda name=name, **sizes: math.sqrt(sizes[name]))
    return found


def unshifted_softmax(scores):
    """Return softmax as its formula is written, without a shift: it overflows."""
    return np.exp(scores) / np.exp(scores).sum(axis=-1, keepdims=True)
