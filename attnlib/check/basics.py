# ruff: noqa: N803 -- learners write Q, K and V as in the formula, and messages repeat them
"""Checkers of chapters 1 to 4: averages, softmax, attention and its scale."""

import math

import numpy as np

from attnlib import attention as exact
from attnlib.check import words
from attnlib.check.verdict import draw, judge

# Chapter 1


def weighted_average(function):
    """Check a data-dependent average: y = A x with the weights A of Eq. (2) of chapter 1, d = 1.

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
            "Your weights sum to 1 down the columns, not along the rows: a wrong axis, a "
            "transposed matrix, or a sum of rows without keepdims=True.",
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
            "You divided the scores by the square root of n. It is that of d, and here d is 1.",
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
        (words.COLUMNS, lambda scores: exact.softmax(scores, axis=0)),
        (words.EVERYTHING, lambda scores: exact.softmax(scores.ravel()).reshape(scores.shape)),
        (words.EVERYTHING, lambda scores: np.exp(scores) / np.exp(scores).sum()),
        (words.NOT_DIVIDED, lambda scores: np.exp(scores - scores.max(axis=-1, keepdims=True))),
        (words.NOT_DIVIDED, np.exp),
        (words.OVERFLOW, unshifted_softmax),
        (words.AXIS_LOST, lambda scores: scores - scores.max(axis=-1)),
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
        (words.UNSCALED, divided(lambda d_k, n, d_v: 1)),
        (words.BY_D_K, divided(lambda d_k, n, d_v: d_k)),
        (words.HALVED, divided(lambda d_k, n, d_v: d_k * 2)),
        (words.HALVED, divided(lambda d_k, n, d_v: d_k / 2)),
        (words.MULTIPLIED, divided(lambda d_k, n, d_v: 1 / math.sqrt(d_k))),
        (words.BY_N_K, divided(lambda d_k, n, d_v: math.sqrt(n))),
        (words.BY_D_V, divided(lambda d_k, n, d_v: math.sqrt(d_v))),
        (words.TOO_LATE, lambda q, K, V: exact.softmax(K @ q) / math.sqrt(len(q)) @ V),
        (words.KEYS_BLENDED, lambda q, K, V: exact.softmax(scaled(q, K)) @ K),
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
    ]
    query, keys, values = draw(7), draw(5, 7, seed=1), draw(5, 3, seed=2)
    cases = {
        "ordinary numbers": (query, keys, values),
        "other sizes": (draw(3, seed=4), draw(2, 3, seed=5), draw(2, 5, seed=6)),
        "float32": tuple(array.astype(np.float32) for array in (query, keys, values)),
    }
    returns = {"output": "one number for each dimension of the values"}
    return judge(function, right, mistakes, cases, returns)


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
        (words.UNSCALED, divided(lambda d_k, n_q, n_k, d_v: 1)),
        (words.BY_D_K, divided(lambda d_k, n_q, n_k, d_v: d_k)),
        (words.HALVED, divided(lambda d_k, n_q, n_k, d_v: d_k * 2)),
        (words.HALVED, divided(lambda d_k, n_q, n_k, d_v: d_k / 2)),
        (words.MULTIPLIED, divided(lambda d_k, n_q, n_k, d_v: 1 / math.sqrt(d_k))),
        (words.BY_N_Q, divided(lambda d_k, n_q, n_k, d_v: math.sqrt(n_q))),
        (words.BY_N_K, divided(lambda d_k, n_q, n_k, d_v: math.sqrt(n_k))),
        (words.BY_D_V, divided(lambda d_k, n_q, n_k, d_v: math.sqrt(d_v))),
        (
            words.TOO_LATE,
            lambda Q, K, V: tuple(
                part / math.sqrt(Q.shape[-1])
                for part in (exact.softmax(Q @ K.T) @ V, exact.softmax(Q @ K.T))
            ),
        ),
        (
            words.TOO_LATE,
            lambda Q, K, V: (
                exact.softmax(Q @ K.T) @ V / math.sqrt(Q.shape[-1]),
                exact.softmax(Q @ K.T),
            ),
        ),
        (words.COLUMNS, weighted(lambda scores: exact.softmax(scores, axis=0))),
        (words.EVERYTHING, weighted(lambda scores: np.exp(scores) / np.exp(scores).sum())),
        (words.EVERYTHING, weighted(lambda s: exact.softmax(s.ravel()).reshape(s.shape))),
        (words.NOT_DIVIDED, weighted(np.exp)),
        (words.AXIS_LOST, weighted(lambda scores: scores - scores.max(axis=-1))),
        ("Softmax is missing: the scaled scores were used as weights.", weighted(np.copy)),
        (
            "The weights are transposed before they meet the values: Z = A V.",
            lambda Q, K, V: (right(Q, K, V)[1].T @ V, right(Q, K, V)[1]),
        ),
        (
            "The values stand on the wrong side: Z = A V, not V A.",
            lambda Q, K, V: (V @ right(Q, K, V)[1], right(Q, K, V)[1]),
        ),
        (words.SWAPPED, lambda Q, K, V: right(K, Q, V)),
        (
            words.SWAPPED,
            lambda Q, K, V: (exact.softmax(scaled(K, Q)) @ V, exact.softmax(scaled(K, Q))),
        ),
        (words.UPRIGHT, lambda Q, K, V: Q @ K),
        (words.UPRIGHT, lambda Q, K, V: np.dot(Q, K)),
        (words.RESHAPED, lambda Q, K, V: right(Q, K.reshape(K.shape[::-1]).T, V)),
        (words.KEYS_BLENDED, lambda Q, K, V: right(Q, K, K)),
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
        "other sizes": (draw(7, 3, seed=4), draw(2, 3, seed=5), draw(2, 5, seed=6)),
        "float32": tuple(array.astype(np.float32) for array in (Q, K, V)),
    }
    returns = {"Z": "one blended value for each query", "A": "one weight for each query and key"}
    return judge(function, right, mistakes, cases, returns)


# Chapter 4


def scaled_scores(function):
    """Check the scaled scores Q K^T / sqrt(d_k), Eqs. (3) and (4) of chapter 2.

    Parameters
    ----------
    function : callable
        Takes Q (n_q, d_k) and K (n_k, d_k), returns scores (n_q, n_k).

    Returns
    -------
    Verdict
    """

    def right(Q, K):
        return Q @ K.T / math.sqrt(Q.shape[-1])

    mistakes = [
        (words.UNSCALED, lambda Q, K: Q @ K.T),
        (words.BY_D_K, lambda Q, K: Q @ K.T / Q.shape[-1]),
        (words.HALVED, lambda Q, K: Q @ K.T / (Q.shape[-1] * 2)),
        (words.HALVED, lambda Q, K: Q @ K.T / (Q.shape[-1] / 2)),
        (words.MULTIPLIED, lambda Q, K: Q @ K.T * math.sqrt(Q.shape[-1])),
        (words.BY_N_Q, lambda Q, K: Q @ K.T / math.sqrt(len(Q))),
        (words.BY_N_K, lambda Q, K: Q @ K.T / math.sqrt(len(K))),
        ("You took the square root of d_k twice.", lambda Q, K: Q @ K.T / Q.shape[-1] ** 0.25),
        (
            "// cuts off what stands after the point. Divide with /.",
            lambda Q, K: Q @ K.T // math.sqrt(Q.shape[-1]),
        ),
        (words.SWAPPED, lambda Q, K: right(K, Q)),
        (words.UPRIGHT, lambda Q, K: Q @ K),
        (words.UPRIGHT, lambda Q, K: np.dot(Q, K)),
        (words.RESHAPED, lambda Q, K: right(Q, K.reshape(K.shape[::-1]).T)),
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
    returns = {"scores": "one for each query and key"}
    return judge(function, right, mistakes, cases, returns)


# What the checkers are made of


def unshifted_softmax(scores):
    """Return softmax as Eq. (5) of chapter 2 is written, without the shift: it overflows."""
    return np.exp(scores) / np.exp(scores).sum(axis=-1, keepdims=True)
