# ruff: noqa: N803 -- learners write Q, K and V as in the formula, and messages repeat them
"""Checkers for the exercises: hand one your function, and it says in words what is wrong.

>>> softmax(lambda scores: np.exp(scores) / np.exp(scores).sum())
Softmax ran over all entries at once. Each row must sum to 1 by itself.

A checker is a list: the right answer, the mistakes that people make, and inputs on which no two
of them agree. `judge` runs the learner's function on the inputs. If the results are those of a
mistake, it answers with the words that stand beside that mistake; if they are nobody's, it says
what differs and where. To add a checker, copy a short one such as `scaled_scores`, then plant the
mistakes in `tests/test_check.py`, which also proves that the inputs tell them apart.
"""

import inspect
import math
import re
import traceback
import warnings
from dataclasses import dataclass

import numpy as np

from attnlib import attention as exact
from attnlib import masks

# What several exercises can get wrong.
UNSCALED = "You did not scale: divide the scores by the square root of d_k."
BY_D_K = "You divided by d_k, not by its square root."
MULTIPLIED = "You multiplied by the square root of d_k. Divide by it."
BY_D_V = "You divided by the square root of d_v, the size of the values. Use d_k, that of the keys."
BY_N_K = "You divided by the square root of the number of keys, not of d_k."
BY_N_Q = "You divided by the square root of the number of queries, not of d_k."
TOO_LATE = "You divided by the square root of d_k after softmax. Divide the scores, before it."
COLUMNS = "Your rows do not sum to 1: softmax ran over the queries (axis 0), not over the keys."
EVERYTHING = "Softmax ran over all entries at once. Each row must sum to 1 by itself."
NOT_DIVIDED = "Your rows do not sum to 1: divide the powers of each row by their sum."
OVERFLOW = "Large scores overflow: subtract each row's largest score before you raise e to it."
AXIS_LOST = "The largest score or the sum of each row lost its axis: keep it with keepdims=True."
SWAPPED = "Q and K are swapped: rows ask, columns answer, so the scores are Q K^T."
UPRIGHT = "K is not transposed: each score is a query times a key, Q K^T."
RESHAPED = "K is reshaped, not transposed. That mixes the numbers of different keys: use K.T."
KEYS_BLENDED = "You blended the keys. They only make the weights; what is blended are the values."
ADDITIVE = (
    "This is an additive mask (0 and a large negative number). Return True and False instead."
)


@dataclass(frozen=True, repr=False)
class Verdict:
    """What a checker says: true if the solution is right, and a message that tells why not."""

    right: bool
    message: str

    def __bool__(self):
        """Tell whether the solution is right."""
        return self.right

    def __repr__(self):
        """Return the message, which is what a notebook shows."""
        return self.message


# Chapter 1


def weighted_average(function):
    """Check a data-dependent average: y = A x with the weights A of Eq. (4) of chapter 1.

    Parameters
    ----------
    function : callable
        Takes a signal (n,), returns its averages (n,).

    Returns
    -------
    Verdict
    """

    def weights(x):
        return exact.softmax(np.outer(x, x))

    def right(signal):
        return weights(signal) @ signal

    def powers(x):
        return np.exp(np.outer(x, x))

    one_for_all = "There is one average for all. Each position i asks with its own scores x_i x_j."
    mistakes = [
        ("These are the weights. Multiply them by the signal: y = A x.", weights),
        (
            "A * x multiplies entry by entry. The matrix product A @ x also adds up each row.",
            lambda x: weights(x) * x,
        ),
        (
            "Your weights sum to 1 down the columns, not along the rows: wrong axis or transposed.",
            lambda x: weights(x).T @ x,
        ),
        (
            "Your weights sum to 1 over the whole matrix. Each row must sum to 1 by itself.",
            lambda x: powers(x) @ x / powers(x).sum(),
        ),
        (
            "Your weights are not normalised: divide each row of powers by its sum.",
            lambda x: powers(x) @ x,
        ),
        (
            "You used the scores as weights. Raise e to them, then divide each row by its sum.",
            lambda x: np.outer(x, x) @ x,
        ),
        (
            "You divided the scores by their sum. Raise e to each score first.",
            lambda x: (np.outer(x, x) / np.outer(x, x).sum(axis=1, keepdims=True)) @ x,
        ),
        (
            "This is the plain mean, the same share for each. Here the products x_i x_j decide.",
            lambda x: np.full_like(x, x.mean()),
        ),
        (one_for_all, lambda x: exact.softmax(x) @ x),
        (one_for_all, lambda x: np.full_like(x, exact.softmax(x) @ x)),
        (
            "You divided the scores by the square root of n. Eq. (4) of chapter 1 has no divisor.",
            lambda x: exact.softmax(np.outer(x, x) / math.sqrt(len(x))) @ x,
        ),
    ]
    cases = {
        "seven numbers": (draw(7) * 0.8,),
        "five numbers": (draw(5, seed=1) * 0.8,),
        "a single number": (np.array([0.7]),),
        "a signal of float32": (draw(3, seed=2).astype(np.float32),),
    }
    return judge(function, right, mistakes, cases, {"averages": "one for each number"})


# Chapter 2


def softmax(function):
    """Check softmax along the rows of a matrix, Eq. (5) of chapter 2, with the shift of Eq. (7).

    Parameters
    ----------
    function : callable
        Takes scores (n_q, n_k), returns weights (n_q, n_k). Scores of 10,000 must not overflow;
        a score of -inf has weight 0.

    Returns
    -------
    Verdict
    """

    def right(scores):
        return exact.softmax(scores)

    mistakes = [
        (COLUMNS, lambda scores: exact.softmax(scores, axis=0)),
        (EVERYTHING, lambda scores: exact.softmax(scores.ravel()).reshape(scores.shape)),
        (EVERYTHING, lambda scores: np.exp(scores) / np.exp(scores).sum()),
        (NOT_DIVIDED, lambda scores: np.exp(scores - scores.max(axis=-1, keepdims=True))),
        (NOT_DIVIDED, np.exp),
        (OVERFLOW, unshifted_softmax),
        (AXIS_LOST, lambda scores: scores - scores.max(axis=-1)),
        (
            "You subtracted the largest of all scores, and a row far below it underflows to 0 / 0: "
            "subtract each row's own largest score.",
            lambda scores: unshifted_softmax(scores - scores.max()),
        ),
        (
            "You subtracted the largest score of each column, which changes the weights: subtract "
            "the largest of each row.",
            lambda scores: unshifted_softmax(scores - scores.max(axis=0)),
        ),
        (
            "You subtracted the smallest score, so the largest still overflows: subtract that one.",
            lambda scores: unshifted_softmax(scores - scores.min(axis=-1, keepdims=True)),
        ),
        (
            "You subtracted the mean, so the largest score still overflows: subtract that one.",
            lambda scores: unshifted_softmax(scores - scores.mean(axis=-1, keepdims=True)),
        ),
        (
            "These are the logarithms of the weights: raise e to them.",
            lambda scores: np.log(exact.softmax(scores)),
        ),
        (
            "You divided the scores by the square root of n_k. Softmax alone does not scale.",
            lambda scores: exact.softmax(scores / math.sqrt(scores.shape[-1])),
        ),
    ]
    scores = draw(3, 5)
    far = np.array([[1e4, -1e4, 0.0], [-1e4, 1e4, 1e4 - 1]])
    cases = {
        "ordinary scores": (scores,),
        "more rows than columns": (draw(7, 2, seed=1),),
        "rows near 10,000, 0 and -10,000": (scores + np.array([[1e4], [0.0], [-1e4]]),),
        "scores from -10,000 to 10,000": (far,),
        "a score of -inf in each row": (np.where(np.eye(3, 5, k=1) == 1, -np.inf, scores),),
        "scores of float32": (scores.astype(np.float32),),
    }
    return judge(function, right, mistakes, cases, {"weights": "one for each query and key"})


def attention_for_one_query(function):
    """Check attention for one query, Eqs. (3) to (6) of chapter 2 with a single row.

    Parameters
    ----------
    function : callable
        Takes a query (d_k,), keys (n, d_k) and values (n, d_v), returns the output (d_v,).

    Returns
    -------
    Verdict
    """

    def right(query, keys, values):
        return exact.softmax(scaled(query, keys)) @ values

    def scaled(q, K):
        return K @ q / math.sqrt(len(q))

    def divided(divisor):
        """Return attention with another divisor, made of d_k, n and d_v."""
        return lambda q, K, V: exact.softmax(K @ q / divisor(len(q), *V.shape)) @ V

    transposed = "The keys are transposed once too often: keys @ query gives a score for each key."
    mistakes = [
        (UNSCALED, divided(lambda d_k, n, d_v: 1)),
        (BY_D_K, divided(lambda d_k, n, d_v: d_k)),
        (MULTIPLIED, divided(lambda d_k, n, d_v: 1 / math.sqrt(d_k))),
        (BY_N_K, divided(lambda d_k, n, d_v: math.sqrt(n))),
        (BY_D_V, divided(lambda d_k, n, d_v: math.sqrt(d_v))),
        (TOO_LATE, lambda q, K, V: exact.softmax(K @ q) / math.sqrt(len(q)) @ V),
        (KEYS_BLENDED, lambda q, K, V: exact.softmax(scaled(q, K)) @ K),
        (
            "These are the weights. Blend the values with them: weights @ values.",
            lambda q, K, V: exact.softmax(scaled(q, K)),
        ),
        (
            "You blended with the scores. Turn them into weights with softmax first.",
            lambda q, K, V: scaled(q, K) @ V,
        ),
        (
            "Your weights do not sum to 1: divide the powers by their sum.",
            lambda q, K, V: np.exp(scaled(q, K)) @ V,
        ),
        (
            "This is the plain mean of the values: the query plays no part.",
            lambda q, K, V: V.mean(axis=0),
        ),
        (
            "You took the value of the best key alone, a hard look-up. Attention blends them all.",
            lambda q, K, V: V[np.argmax(K @ q)],
        ),
        (transposed, lambda q, K, V: K.T @ q),
        (transposed, lambda q, K, V: q @ K),
        (
            "The weights stand on the wrong side: weights @ values, one weight for each value.",
            lambda q, K, V: V @ exact.softmax(scaled(q, K)),
        ),
        (OVERFLOW, lambda q, K, V: unshifted_softmax(scaled(q, K)) @ V),
    ]
    query, keys, values = draw(7), draw(5, 7, seed=1), draw(5, 3, seed=2)
    cases = {
        "ordinary numbers": (query, keys, values),
        "other sizes": (draw(3, seed=4), draw(2, 3, seed=5), draw(2, 5, seed=6)),
        "scores in the thousands": (query * 1e4, keys, values),
        "float32": tuple(array.astype(np.float32) for array in (query, keys, values)),
    }
    words = {"output": "one number for each dimension of the values"}
    return judge(function, right, mistakes, cases, words)


# Chapter 3


def attention(function):
    """Check scaled dot-product attention, Eq. (2) of chapter 2.

    Parameters
    ----------
    function : callable
        Takes Q (n_q, d_k), K (n_k, d_k) and V (n_k, d_v), returns Z (n_q, d_v) and A (n_q, n_k).

    Returns
    -------
    Verdict
    """

    def right(Q, K, V):
        return exact.scaled_dot_product_attention(Q, K, V)

    def scaled(Q, K):
        return Q @ K.T / math.sqrt(Q.shape[-1])

    def weighted(weights_of):
        """Return attention with other weights, made of the scaled scores."""
        return lambda Q, K, V: (weights_of(scaled(Q, K)) @ V, weights_of(scaled(Q, K)))

    def divided(divisor):
        """Return attention with another divisor, made of d_k, n_q, n_k and d_v."""

        def attend(Q, K, V):
            A = exact.softmax(Q @ K.T / divisor(Q.shape[-1], len(Q), *V.shape))
            return A @ V, A

        return attend

    mistakes = [
        (UNSCALED, divided(lambda d_k, n_q, n_k, d_v: 1)),
        (BY_D_K, divided(lambda d_k, n_q, n_k, d_v: d_k)),
        (MULTIPLIED, divided(lambda d_k, n_q, n_k, d_v: 1 / math.sqrt(d_k))),
        (BY_N_Q, divided(lambda d_k, n_q, n_k, d_v: math.sqrt(n_q))),
        (BY_N_K, divided(lambda d_k, n_q, n_k, d_v: math.sqrt(n_k))),
        (BY_D_V, divided(lambda d_k, n_q, n_k, d_v: math.sqrt(d_v))),
        (
            TOO_LATE,
            lambda Q, K, V: tuple(
                part / math.sqrt(Q.shape[-1])
                for part in (exact.softmax(Q @ K.T) @ V, exact.softmax(Q @ K.T))
            ),
        ),
        (COLUMNS, weighted(lambda scores: exact.softmax(scores, axis=0))),
        (EVERYTHING, weighted(lambda scores: np.exp(scores) / np.exp(scores).sum())),
        (EVERYTHING, weighted(lambda s: exact.softmax(s.ravel()).reshape(s.shape))),
        (NOT_DIVIDED, weighted(np.exp)),
        (OVERFLOW, weighted(unshifted_softmax)),
        (AXIS_LOST, weighted(lambda scores: scores - scores.max(axis=-1))),
        ("Softmax is missing: the scaled scores were used as weights.", weighted(np.copy)),
        (
            "The weights are transposed before they meet the values: Z = A V.",
            lambda Q, K, V: (right(Q, K, V)[1].T @ V, right(Q, K, V)[1]),
        ),
        (
            "The values stand on the wrong side: Z = A V, not V A.",
            lambda Q, K, V: (V @ right(Q, K, V)[1], right(Q, K, V)[1]),
        ),
        (SWAPPED, lambda Q, K, V: right(K, Q, V)),
        (
            SWAPPED,
            lambda Q, K, V: (exact.softmax(scaled(K, Q)) @ V, exact.softmax(scaled(K, Q))),
        ),
        (UPRIGHT, lambda Q, K, V: Q @ K),
        (UPRIGHT, lambda Q, K, V: np.dot(Q, K)),
        (RESHAPED, lambda Q, K, V: right(Q, K.reshape(K.shape[::-1]).T, V)),
        (KEYS_BLENDED, lambda Q, K, V: right(Q, K, K)),
        (
            "You blended the values with the scores. Use the weights: Z = A V.",
            lambda Q, K, V: (scaled(Q, K) @ V, right(Q, K, V)[1]),
        ),
        (
            "Z is right, but the second result holds the scaled scores, not the weights A.",
            lambda Q, K, V: (right(Q, K, V)[0], scaled(Q, K)),
        ),
        (
            "The two results are the wrong way round: return Z, A.",
            lambda Q, K, V: right(Q, K, V)[::-1],
        ),
        ("Z is right, but A is missing: return Z, A.", lambda Q, K, V: right(Q, K, V)[0]),
        ("A is right, but Z is missing: return Z, A.", lambda Q, K, V: right(Q, K, V)[1]),
    ]
    Q, K, V = draw(3, 7), draw(5, 7, seed=1), draw(5, 11, seed=2)
    cases = {
        "three queries and five keys": (Q, K, V),
        # A swap of Q and K fails above. Here it runs, so that it can be told from other failures.
        "as many queries as keys": (draw(5, 7, seed=3), K, V),
        "scores in the thousands": (Q * 1e4, K, V),
        "float32": tuple(array.astype(np.float32) for array in (Q, K, V)),
    }
    words = {"Z": "one blended value for each query", "A": "one weight for each query and key"}
    return judge(function, right, mistakes, cases, words)


# Chapter 4


def scaled_scores(function):
    """Check the scaled scores Q K^T / sqrt(d_k), Eqs. (3) and (4) of chapter 2.

    Parameters
    ----------
    function : callable
        Takes Q (n_q, d_k) and K (n_k, d_k), returns scores (n_q, n_k) in their dtype: float32
        stays float32.

    Returns
    -------
    Verdict
    """

    def right(Q, K):
        return Q @ K.T / math.sqrt(Q.shape[-1])

    mistakes = [
        (UNSCALED, lambda Q, K: Q @ K.T),
        (BY_D_K, lambda Q, K: Q @ K.T / Q.shape[-1]),
        (MULTIPLIED, lambda Q, K: Q @ K.T * math.sqrt(Q.shape[-1])),
        (BY_N_Q, lambda Q, K: Q @ K.T / math.sqrt(len(Q))),
        (BY_N_K, lambda Q, K: Q @ K.T / math.sqrt(len(K))),
        ("You took the square root of d_k twice.", lambda Q, K: Q @ K.T / Q.shape[-1] ** 0.25),
        (
            "// cuts off what stands after the point. Divide with /.",
            lambda Q, K: Q @ K.T // math.sqrt(Q.shape[-1]),
        ),
        (SWAPPED, lambda Q, K: right(K, Q)),
        (UPRIGHT, lambda Q, K: Q @ K),
        (UPRIGHT, lambda Q, K: np.dot(Q, K)),
        (RESHAPED, lambda Q, K: right(Q, K.reshape(K.shape[::-1]).T)),
        (
            "One step too far: these are the weights. The scaled scores come before softmax.",
            lambda Q, K: exact.softmax(right(Q, K)),
        ),
    ]
    Q, K = draw(3, 7), draw(5, 7, seed=1)
    cases = {
        "d_k = 7": (Q, K),
        "d_k = 11": (draw(2, 11, seed=2), draw(3, 11, seed=3)),
        "d_k = 1": (draw(3, 1, seed=4), draw(5, 1, seed=5)),
        "float32": (Q.astype(np.float32), K.astype(np.float32)),
    }
    words = {"scores": "one for each query and key"}
    return judge(function, right, mistakes, cases, words, keeps_dtype=True)


# Chapter 5


def causal_mask(function):
    """Check the causal mask: query i may attend to key j if j <= i.

    Parameters
    ----------
    function : callable
        Takes n_q and n_k, returns bool (n_q, n_k), True = may attend, aligned top-left.

    Returns
    -------
    Verdict
    """

    def right(n_q, n_k):
        return masks.causal_mask(n_q, n_k)

    def triangle(shift):
        return lambda n_q, n_k: np.tri(n_q, n_k, k=shift, dtype=bool)

    square = "Your mask is square. It has a row per query and a column per key; the two may differ."
    mistakes = [
        (
            "Your mask is inverted: here True means may attend. (nn.MultiheadAttention's boolean "
            "mask means the opposite.)",
            lambda n_q, n_k: ~right(n_q, n_k),
        ),
        (
            "In your mask a token does not see itself: the diagonal must be True, j <= i.",
            triangle(-1),
        ),
        (
            "Your mask shows the future and hides the past: keep the lower triangle, j <= i.",
            lambda n_q, n_k: ~triangle(-1)(n_q, n_k),
        ),
        (
            "Each query sees one token of the future: in row i, key i + 1 must be False.",
            triangle(1),
        ),
        (
            "Your triangle ends in the bottom right corner. Align it top-left, so that query 0 "
            "sees key 0 alone.",
            lambda n_q, n_k: np.tri(n_q, n_k, k=n_k - n_q, dtype=bool),
        ),
        (
            "Your mask hides nothing: query i must not see the keys after i.",
            lambda n_q, n_k: np.ones((n_q, n_k), dtype=bool),
        ),
        (square, lambda n_q, n_k: right(n_q, n_q)),
        (square, lambda n_q, n_k: right(n_k, n_k)),
        (
            "Rows and columns are exchanged: rows are queries, columns are keys.",
            lambda n_q, n_k: right(n_k, n_q),
        ),
        *additive_mistakes(right),
    ]
    cases = {
        "n_q = 5, n_k = 5": (5, 5),
        "n_q = 3, n_k = 7": (3, 7),
        "n_q = 7, n_k = 3": (7, 3),
        "n_q = 1, n_k = 1": (1, 1),
    }
    return judge(function, right, mistakes, cases, {"mask": "a row per query, a column per key"})


def padding_mask(function):
    """Check the padding mask: key j of sentence b may be seen if j < lengths[b].

    Parameters
    ----------
    function : callable
        Takes lengths (batch,) and n_k, returns bool (batch, 1, n_k), True = may attend.

    Returns
    -------
    Verdict
    """

    def right(lengths, n_k):
        return masks.padding_mask(lengths, n_k)

    misplaced = "The axis of length 1 stands in for the queries, in the middle: (batch, 1, n_k)."
    mistakes = [
        (
            "Your mask is inverted: here True means a real token, which may be seen, and False "
            "means padding.",
            lambda lengths, n_k: ~right(lengths, n_k),
        ),
        (
            "Off by one: your mask lets a token of padding in. The first key is 0, so j < length.",
            lambda lengths, n_k: np.arange(n_k) <= lengths[:, None, None],
        ),
        (
            "Off by one: your mask hides the last real token. Key j is real if j < length.",
            lambda lengths, n_k: np.arange(n_k) < lengths[:, None, None] - 1,
        ),
        (
            "The middle axis is missing: without it (batch, n_k) is taken for (n_q, n_k). Return "
            "(batch, 1, n_k).",
            lambda lengths, n_k: right(lengths, n_k)[:, 0],
        ),
        (misplaced, lambda lengths, n_k: right(lengths, n_k).swapaxes(1, 2)),
        (misplaced, lambda lengths, n_k: right(lengths, n_k).swapaxes(0, 1)),
        (
            "lengths (batch,) does not fit the positions (n_k,): give it axes, "
            "lengths[:, None, None].",
            lambda lengths, n_k: np.arange(n_k) < lengths,
        ),
        (
            "Your mask hides the front of each sentence. The padding stands at the end.",
            lambda lengths, n_k: np.arange(n_k) >= n_k - lengths[:, None, None],
        ),
        (
            "Your mask hides nothing: the keys from lengths[b] on are padding.",
            lambda lengths, n_k: np.ones((len(lengths), 1, n_k), dtype=bool),
        ),
        *additive_mistakes(right),
    ]
    cases = {
        "lengths 2, 5 and 4": (np.array([2, 5, 4]), 5),
        "an empty sentence": (np.array([3, 0, 7, 1, 5]), 7),
        "a single sentence": (np.array([2]), 3),
    }
    return judge(function, right, mistakes, cases, {"mask": "(batch, 1, n_k)"})


def masked_softmax(function):
    """Check a softmax that leaves out what a mask blocks: mask first, softmax second.

    Parameters
    ----------
    function : callable
        Takes scores (n_q, n_k) and a mask, bool (n_q, n_k), True = may attend; returns weights
        (n_q, n_k). A row with nothing to attend to gives zeros.

    Returns
    -------
    Verdict
    """

    def right(scores, mask):
        return exact.softmax(filled(scores, mask))

    def filled(scores, mask, low=-np.inf):
        return np.where(mask, scores, low)

    def after(scores, mask):
        return exact.softmax(scores) * mask

    def total(weights):
        return weights.sum(axis=-1, keepdims=True)

    empty_row = "A row with nothing to attend to must be zeros. "
    late = (
        "You mask after softmax and divide again. Beside a much larger blocked score that leaves "
        "0 / 0: mask first, softmax second."
    )
    mistakes = [
        (
            "The mask has no effect: blocked keys still take weight.",
            lambda scores, mask: exact.softmax(scores),
        ),
        (
            "Your mask is inverted: True means may attend, and you blocked those.",
            lambda scores, mask: right(scores, ~mask),
        ),
        (
            "You mask after softmax, so the rows no longer sum to 1: mask first, softmax second.",
            after,
        ),
        (
            "You multiplied the scores by the mask. A score of 0 takes weight, since e^0 = 1: "
            "a blocked score must be -inf.",
            lambda scores, mask: exact.softmax(scores * mask),
        ),
        (
            "You added True and False to the scores, as 1 and 0. A blocked score must be -inf.",
            lambda scores, mask: exact.softmax(scores + mask),
        ),
        (COLUMNS, lambda scores, mask: exact.softmax(filled(scores, mask), axis=0)),
        (
            EVERYTHING,
            lambda scores, mask: right(scores.ravel(), mask.ravel()).reshape(scores.shape),
        ),
        (NOT_DIVIDED, lambda scores, mask: np.exp(scores) * mask),
        (AXIS_LOST, lambda scores, mask: scores - scores.max(axis=-1)),
        (
            empty_row + "-1e9 in place of -inf makes it uniform.",
            lambda scores, mask: exact.softmax(filled(scores, mask, -1e9)),
        ),
        (
            empty_row + "-1e9 added to all of its scores changes nothing for softmax.",
            lambda scores, mask: exact.softmax(scores - 1e9 * ~mask),
        ),
        (
            empty_row + "In yours -inf - (-inf) is NaN.",
            lambda scores, mask: np.where(total(mask) > 0, right(scores, mask), np.nan),
        ),
        (
            "-10,000 is not low enough: a real score can be as low. A blocked score must be -inf.",
            lambda scores, mask: exact.softmax(filled(scores, mask, -1e4)),
        ),
        (late, lambda scores, mask: after(scores, mask) / total(after(scores, mask))),
        (
            late,
            lambda scores, mask: np.nan_to_num(after(scores, mask) / total(after(scores, mask))),
        ),
        (OVERFLOW, lambda scores, mask: unshifted_softmax(filled(scores, mask))),
        (
            OVERFLOW,
            lambda scores, mask: np.nan_to_num(unshifted_softmax(filled(scores, mask))),
        ),
    ]
    scores = draw(5, 7)
    mask = draw(5, 7, seed=1) > -0.5
    empty = mask & (np.arange(5) != 2)[:, None]
    cases = {
        "ordinary scores": (scores, mask),
        "a row with nothing to attend to": (scores, empty),
        "scores near -10,000": (scores - 1e4, mask),
        "scores near 10,000": (scores + 1e4, empty),
        "a blocked score of 10,000": (np.where(mask, scores, 1e4), mask),
        "a mask that blocks nothing": (draw(3, 2, seed=2), np.ones((3, 2), dtype=bool)),
        "scores of float32": (scores.astype(np.float32), empty),
    }
    return judge(function, right, mistakes, cases, {"weights": "one for each query and key"})


def leak_test(function):
    """Check a leak test, which tells whether any output before token j moves with token j.

    Parameters
    ----------
    function : callable
        Takes an attention function, which maps queries (n, d_k), keys (n, d_k) and values
        (n, d_v) to outputs (n, d_v). Returns True if the future leaks into the past, whichever
        token j is changed.

    Returns
    -------
    Verdict
    """

    def future(moved):
        return bool(np.triu(moved, k=1).any())  # row i before column j

    def right(attention):
        return future(moves(attention))

    hidden = " Leaks from other tokens stay hidden: move each token j in turn."
    mistakes = [
        (
            "Your test says True for every attention, also where nothing moves: compare the "
            "outputs before and after.",
            lambda attention: True,
        ),
        (
            "Your test says False for every attention, also without a mask: change token j in a "
            "copy, clearly, in all three inputs, and look at the outputs before j.",
            lambda attention: False,
        ),
        (
            "Your answers are the wrong way round: True means that the future leaks.",
            lambda attention: not right(attention),
        ),
        (
            "You look at the output of the moved token itself, which may move: look at those "
            "before it.",
            lambda attention: bool(moves(attention).diagonal().any()),
        ),
        (
            "You count the output of the moved token too, which may move: look at the rows "
            "before j, without j.",
            lambda attention: bool(np.triu(moves(attention)).any()),
        ),
        (
            "You look at the outputs after the moved token, which may move: look at those before.",
            lambda attention: bool(np.tril(moves(attention), k=-1).any()),
        ),
        (
            "You ask whether any output moves. The moved token's and those after it may: look at "
            "the rows before it.",
            lambda attention: bool(moves(attention).any()),
        ),
        (
            "You look only at the last output, which may see everything: look at the outputs "
            "before the moved token.",
            lambda attention: bool(moves(attention)[-1].any()),
        ),
        (
            "You move only the last token." + hidden,
            lambda attention: bool(moves(attention)[:-1, -1].any()),
        ),
        (
            "You move only one token in the middle." + hidden,
            lambda attention: bool(moves(attention)[:2, 2].any()),
        ),
        ("You move only token 1." + hidden, lambda attention: bool(moves(attention)[0, 1])),
        (
            "You look only at the first output. The future can leak into later ones: look at all "
            "rows before j.",
            lambda attention: bool(moves(attention)[0, 1:].any()),
        ),
        (
            "You look only at the output just before the moved token: look at all rows before j.",
            lambda attention: bool(moves(attention).diagonal(1).any()),
        ),
        (
            "You change only the values. The future can leak through the keys too, by way of the "
            "row sums: change token j in all three.",
            lambda attention: future(moves(attention, change=(0, 0, 1))),
        ),
        (
            "You change the keys but not the values. The future can leak through those too: "
            "change token j in all three.",
            lambda attention: future(moves(attention, change=(1, 1, 0))),
        ),
        (
            "A faint leak escapes your test: change the token by more, or tolerate less.",
            lambda attention: future(moves(attention, tolerance=0.1)),
        ),
    ]
    return judge(function, right, mistakes, leaky_and_tight(), {"answer": "for the whole test"})


# What the checkers are made of


def draw(*shape, seed=0):
    """Return numbers of mean 0 and variance 1, the same at every call: they saturate nothing."""
    return np.random.default_rng(seed).standard_normal(shape)


def unshifted_softmax(scores):
    """Return softmax as Eq. (5) of chapter 2 is written, without the shift: it overflows."""
    return np.exp(scores) / np.exp(scores).sum(axis=-1, keepdims=True)


def additive_mistakes(right):
    """Return the mistakes that give a mask to be added to the scores instead of a bool one."""
    return [
        (ADDITIVE, lambda *inputs, low=low: np.where(right(*inputs), 0.0, low))
        for low in (-np.inf, -1e9, -1e4)
    ]


def moves(attention, change=(1, 1, 1), tolerance=1e-9):
    """Tell which outputs (rows) move when token j (columns) is changed, each j in turn.

    `change` says by how much in queries, keys and values.
    """
    tokens = [draw(5, 7), draw(5, 7, seed=1), draw(5, 3, seed=2)]
    before = attention(*tokens)
    moved = np.zeros((5, 5), dtype=bool)
    for j in range(5):
        changed = [array.copy() for array in tokens]
        for array, amount in zip(changed, change, strict=True):
            array[j] += amount * (1 + draw(array.shape[-1], seed=3) ** 2)
        moved[:, j] = np.abs(attention(*changed) - before).max(axis=-1) > tolerance
    return moved


def leaky_and_tight():
    """Return attention functions, each under its name: some leak the future, some do not."""

    def masked(*leaks):
        """Return causal attention in which, for each pair (i, j), output i also sees token j."""

        def attention(queries, keys, values):
            n = queries.shape[-2]
            mask = masks.causal_mask(n)
            for i, j in leaks:
                mask[i % n, j % n] = True
            return exact.scaled_dot_product_attention(queries, keys, values, mask)[0]

        return attention

    def unmasked(queries, keys, values):
        return exact.scaled_dot_product_attention(queries, keys, values)[0]

    def masked_too_late(queries, keys, values):
        weights = exact.scaled_dot_product_attention(queries, keys, values)[1]
        return np.tril(weights) @ values

    def shifted(by):
        """Return an attention that hands each token the value `by` places before it."""
        return lambda queries, keys, values: np.eye(values.shape[-2], k=-by) @ values

    def faint(queries, keys, values):
        return masked()(queries, keys, values) + unmasked(queries, keys, values) / 100

    def tolerant(attention):
        """Return `attention` for lists and whole numbers too, which a learner may well use."""
        return lambda *tokens: attention(*(np.asarray(array, dtype=float) for array in tokens))

    named = {
        "causal attention": masked(),
        "attention without a mask": unmasked,
        "an attention whose output is always zero": lambda *tokens: 0 * tokens[-1],
        "an attention that hands each token its own value": shifted(0),
        "an attention that hands each token the value before it": shifted(1),
        "an attention that hands each token the value after it": shifted(-1),
        "an attention that masks after softmax": masked_too_late,
        "a causal attention in which token 1 leaks into output 0": masked((0, 1)),
        "a causal attention in which the last token leaks into output 0": masked((0, -1)),
        "a causal attention in which the last token leaks into the output before": masked((-2, -1)),
        "a causal attention with a faint leak": faint,
    }
    return {name: (tolerant(attention),) for name, attention in named.items()}


# The judge


def judge(function, right, mistakes, cases, returns, *, keeps_dtype=False):
    """Compare a learner's function with the right one and with every planned mistake.

    Parameters
    ----------
    function : callable
        The learner's, which takes what `right` takes.
    right : callable
        The right solution. The names of its parameters appear in the messages.
    mistakes : list of (str, callable)
        What to say, and a wrong solution that deserves it. The first that fits is taken.
    cases : dict of str to tuple
        The inputs, each under a name that fits after "For", the plain ones first.
    returns : dict of str to str
        The name of each result, and what its entries or axes are.
    keeps_dtype : bool
        Refuse a float64 result from float32. Otherwise it is only remarked upon.

    Returns
    -------
    Verdict
        The learner's code can make this neither raise nor warn.
    """
    if is_blank(function):
        return Verdict(False, "Not solved yet: there is no function to check.")
    if not callable(function):
        came = type(function).__name__
        return Verdict(False, f"Hand over the function itself, without calling it; got {came}.")
    inputs = [*cases.values()]
    attempts = [attempt(function, each) for each in inputs]
    expected = [attempt(right, each).result for each in inputs]
    names = [*inspect.signature(right).parameters]
    wrong = (i for i, tried in enumerate(attempts) if not same(tried.result, expected[i]))
    case = next(wrong, None)
    if case is None:
        return judge_manners(attempts, expected, names, keeps_dtype)

    tried, name = attempts[case], getattr(function, "__name__", "<lambda>")
    name = "your function" if name == "<lambda>" else name
    given = listed(map(describe, names, inputs[case]))
    crashed = isinstance(tried.result, Crash)
    if is_blank(tried.result):
        message = f"Not solved yet: {name} returned {tried.result}, so there is nothing to check."
    elif crashed and tried.result.kind == "NotImplementedError":
        message = f"Not solved yet: {name} raised NotImplementedError."
    elif words := diagnose([each.result for each in attempts], mistakes, inputs, case):
        message = words
        if crashed:
            message += f" ({name} raised {tried.result.kind} when given {given}.)"
    elif crashed:
        message = f"{name} raised {tried.result.text} when given {given}."
    else:
        message = difference(tried, expected[case], returns, given, [*cases][case])
    return Verdict(False, message)


@dataclass(frozen=True)
class Crash:
    """What is left of a function that raised: its error in words."""

    text: str

    @property
    def kind(self):
        """The name of the error."""
        return self.text.split(":")[0]


@dataclass(frozen=True)
class Attempt:
    """What a function did with its inputs: its result, or a Crash, and what else was seen."""

    result: object
    changed: tuple  # the positions of the inputs that it changed in place
    overflowed: bool


def attempt(function, inputs):
    """Run a function on copies of its inputs, and let neither an error nor a warning out."""
    given = [np.copy(value) if isinstance(value, np.ndarray) else value for value in inputs]
    with warnings.catch_warnings(record=True) as seen, np.errstate(all="warn"):
        warnings.simplefilter("always")
        try:
            result = kept(function(*given))
        except (Exception, SystemExit) as error:
            text = traceback.format_exception_only(error)[-1].strip().rstrip(".")
            # An address differs from run to run, and the stored output of a cell must not.
            result = Crash(re.sub(r"0x[0-9a-fA-F]+", "0x...", text)[:200])
    changed = tuple(
        i
        for i, (value, original) in enumerate(zip(given, inputs, strict=True))
        if isinstance(value, np.ndarray) and not np.array_equal(value, original, equal_nan=True)
    )
    return Attempt(result, changed, any("overflow" in str(item.message) for item in seen))


def kept(result):
    """Return a result as arrays that its maker cannot change any more; lists stay lists."""
    if isinstance(result, np.ndarray | np.generic | bool | int | float | complex):
        return np.array(result)
    return tuple(map(kept, result)) if isinstance(result, tuple) else result


def is_blank(thing):
    """Tell whether this is what a starting cell leaves: None, Ellipsis or NotImplemented."""
    return thing is None or thing is Ellipsis or thing is NotImplemented


def same(result, other):
    """Tell whether two results agree: in shape, in kind, and in numbers up to rounding."""
    if isinstance(result, Crash) or isinstance(other, Crash):
        return isinstance(result, Crash) and isinstance(other, Crash) and result == other
    if isinstance(result, tuple) and isinstance(other, tuple):
        return len(result) == len(other) and all(map(same, result, other))
    if not (isinstance(result, np.ndarray) and isinstance(other, np.ndarray)):
        return False
    if result.shape != other.shape or result.dtype.kind != other.dtype.kind:
        return False
    if result.dtype.kind not in "biuf":
        return False
    # Half of the digits: far above what another order of summation does, far below a mistake.
    spacing = [np.finfo(each.dtype).eps for each in (result, other) if each.dtype.kind == "f"]
    tolerance = math.sqrt(max(spacing, default=0))
    with np.errstate(all="ignore"):
        return bool(np.allclose(result, other, rtol=tolerance, atol=tolerance, equal_nan=True))


def diagnose(results, mistakes, inputs, case):
    """Return the words for the mistake that gives these results, or None.

    A mistake that agrees on all inputs goes before one that agrees on the first wrong result
    alone. A single True or False is too little for the latter: half of all mistakes give it.
    """
    for words, wrong in mistakes:
        answers = (attempt(wrong, each).result for each in inputs)
        if all(map(same, results, answers)):
            return words
    if isinstance(results[case], np.ndarray) and results[case].ndim == 0:
        return None
    for words, wrong in mistakes:
        if same(results[case], attempt(wrong, inputs[case]).result):
            return words
    return None


def difference(tried, expected, returns, given, case_name):
    """Return in words what is wrong with a result that belongs to no planned mistake."""
    names = [*returns]
    if len(parts(tried.result)) != len(parts(expected)):
        count = f" of {len(tried.result)}" if isinstance(tried.result, tuple) else ""
        came = type(tried.result).__name__ + count
        return f"Expected {listed(names)}: end with `return {', '.join(names)}`. Got {came}."
    # From the last result back: A is made before Z, so a mistake in both began there.
    name, part, wanted = next(
        (name, part, wanted)
        for name, part, wanted in reversed(
            [*zip(names, parts(tried.result), parts(expected), strict=True)]
        )
        if not same(part, wanted)
    )
    words = wrong_kind(part, wanted, name, returns[name], given)
    if not words:
        words = f"For {case_name}: {wrong_numbers(part, wanted, name)}"
        if tried.overflowed:
            words += " A power of e overflowed on the way."
    return words


def wrong_kind(part, wanted, name, meaning, given):
    """Return in words what is wrong with the type, shape or dtype of a result, or None."""
    if not isinstance(part, np.ndarray):
        needed = f"a NumPy array of shape {wanted.shape}" if wanted.ndim else "True or False"
        advice = " Wrap it in np.array." if isinstance(part, list) else ""
        return f"Expected {name}, {needed}; got {type(part).__name__}.{advice}"
    if part.shape != wanted.shape:
        if not wanted.ndim:
            return f"Expected one {name} {meaning}; got an array of shape {part.shape}."
        came = part.shape if part.ndim else "a single number"
        return f"Expected {name} of shape {wanted.shape}, {meaning}; got {came} for {given}."
    if part.dtype.kind != wanted.dtype.kind:
        kinds = {"b": "True and False", "f": "floats", "i": "whole numbers", "u": "whole numbers"}
        came = f"{kinds[part.dtype.kind]}, " if part.dtype.kind in kinds else ""
        advice = " .astype(bool) turns 1 and 0 into them." if wanted.dtype == bool else ""
        needed = kinds[wanted.dtype.kind] if wanted.ndim else "True or False"
        return f"Expected {needed}; got {came}{part.dtype}.{advice if wanted.ndim else ''}"
    return None


def wrong_numbers(part, wanted, name):
    """Return in words what is wrong with numbers of the right shape and kind."""
    if part.ndim == 0:
        return f"expected {wanted}, got {part}."
    if part.dtype == bool:
        wrong = np.argwhere(part != wanted)
        entry = tuple(wrong[0])
        return (
            f"{len(wrong)} of {part.size} entries are wrong, the first {place(entry)}: "
            f"expected {wanted[entry]}, got {part[entry]}."
        )
    if np.isnan(part).any():
        return f"there is NaN in your {name}, first {place(np.argwhere(np.isnan(part))[0])}."
    with np.errstate(all="ignore"):
        return (
            wrong_row_sums(part, wanted, name)
            or wrong_factor(part, wanted, name)
            or largest_difference(part, wanted)
        )


def wrong_row_sums(part, wanted, name):
    """Return the row that does not sum to 1 (or 0) although it should, in words, or None."""
    sums, right_sums = part.sum(axis=-1), wanted.sum(axis=-1)
    off = ~np.isclose(sums, right_sums, atol=1e-3)
    if part.ndim < 2 or not off.any() or not np.isin(right_sums.round(3), (0, 1)).all():
        return None
    row = int(off.argmax())
    words = f"row {row} of your {name} sums to {sums[row]:.4g} instead of {right_sums[row]:.4g}"
    if np.allclose(part.sum(axis=0), 1, atol=1e-3):
        words += ", but your columns sum to 1: softmax ran over the queries"
    return words + "."


def wrong_factor(part, wanted, name):
    """Return the one factor by which all numbers are off, in words, or None."""
    factor = (part * wanted).sum() / (wanted * wanted).sum()
    if part.size == 1 or not factor or not same(part, factor.astype(part.dtype) * wanted):
        return None
    return f"each entry of your {name} is {factor:.4g} times what it should be."


def largest_difference(part, wanted):
    """Return the entry that is furthest off, in words."""
    gap = np.abs(part - wanted)
    gap[part == wanted] = 0  # -inf - (-inf) is NaN
    entry = np.unravel_index(gap.argmax(), gap.shape)
    return (
        f"the largest difference is {gap[entry]:.4g}, {place(entry)}: "
        f"expected {wanted[entry]:.4g}, got {part[entry]:.4g}."
    )


def judge_manners(attempts, expected, names, keeps_dtype):
    """Return the verdict on right numbers: inputs must be left alone, and digits kept."""
    changed = [names[i] for tried in attempts for i in tried.changed]
    if changed:
        return Verdict(
            False,
            f"The numbers are right, but your function changes its input {changed[0]} in place, "
            "and its owner may still need it. Work on a new array.",
        )
    dtypes = [
        (came.dtype, needed.dtype)
        for tried, result in zip(attempts, expected, strict=True)
        for came, needed in zip(parts(tried.result), parts(result), strict=True)
    ]
    remark = ""
    for came, needed in dtypes:
        if came.kind == "f" and came.itemsize < needed.itemsize:
            return Verdict(False, f"Digits get lost: {needed} came in and {came} went out.")
        if came.kind == "f" and came.itemsize > needed.itemsize:
            remark = (
                f"{needed} came in and {came} went out. np.sqrt of a plain number gives a "
                "float64, and so does np.zeros; math.sqrt and np.zeros_like do not."
            )
    if remark and keeps_dtype:
        return Verdict(False, f"The numbers are right, but {remark}")
    passed = f"Right: all {len(attempts)} checks passed."
    return Verdict(True, f"{passed} One remark: {remark}" if remark else passed)


def parts(result):
    """Return the results of a function that gives several, or its only one, as a sequence."""
    return result if isinstance(result, tuple) else (result,)


def describe(name, value):
    """Return an input in a few words: the shape of an array of floats, else the value."""
    if isinstance(value, np.ndarray):
        return f"{name} {value.tolist() if value.dtype.kind == 'i' else value.shape}"
    return f"an {name} function" if callable(value) else f"{name} = {value}"


def listed(words):
    """Return words as "a, b and c"."""
    *first, last = words
    return f"{', '.join(first)} and {last}" if first else last


def place(entry):
    """Return the place of an entry in words; a matrix has rows and columns."""
    entry = tuple(map(int, entry))
    if len(entry) == 2:
        return f"in row {entry[0]}, column {entry[1]} (counted from 0)"
    return f"at {entry[0] if len(entry) == 1 else entry} (counted from 0)"
