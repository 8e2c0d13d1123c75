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

KINDS = {"b": "True and False", "i": "whole numbers", "u": "whole numbers", "f": "floats"}


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

    def right(signal):
        return exact.softmax(np.outer(signal, signal)) @ signal

    def powers(signal):
        return np.exp(np.outer(signal, signal))

    mistakes = [
        (
            "These are the weights. Multiply them by the signal: y = A x.",
            lambda x: exact.softmax(np.outer(x, x)),
        ),
        (
            "The weights are multiplied by the signal entry by entry. The matrix product A @ x "
            "also adds up each row.",
            lambda x: exact.softmax(np.outer(x, x)) * x,
        ),
        (
            "Your weights sum to 1 down the columns, not along the rows: the sum ran over the "
            "wrong axis, or A is transposed.",
            lambda x: exact.softmax(np.outer(x, x), axis=0) @ x,
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
            "You used the scores as weights. Raise e to each score, then divide each row by its "
            "sum.",
            lambda x: np.outer(x, x) @ x,
        ),
        (
            "You divided the scores by their sum. Raise e to each score first.",
            lambda x: (np.outer(x, x) / np.outer(x, x).sum(axis=1, keepdims=True)) @ x,
        ),
        (
            "The plain mean gives every number the same share. Here the shares follow from the "
            "products x_i x_j.",
            lambda x: np.full_like(x, x.mean()),
        ),
        (
            "There is one average for all positions. Each position i asks with its own scores "
            "x_i x_j.",
            lambda x: exact.softmax(x) @ x,
        ),
        (
            "There is one average for all positions. Each position i asks with its own scores "
            "x_i x_j.",
            lambda x: np.full_like(x, exact.softmax(x) @ x),
        ),
        (
            "You divided the scores by the square root of n. Eq. (4) of chapter 1 has no divisor.",
            lambda x: exact.softmax(np.outer(x, x) / math.sqrt(len(x))) @ x,
        ),
    ]
    cases = {
        "seven numbers": (draw(7) * 0.8,),
        "five numbers": (draw(5, seed=1) * 0.8,),
        "a single number": (np.array([0.7]),),
        "a signal of float32": (draw(3, seed=2).astype(np.float32) * np.float32(0.8),),
    }
    return judge(function, right, mistakes, cases, {"averages": "one for each number"})


# Chapter 2


def softmax(function):
    """Check softmax along the last axis of a matrix, Eq. (5) of chapter 2, with its shift (7).

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
        (
            "Your rows do not sum to 1: softmax ran over the queries (axis 0), not over the keys.",
            lambda scores: exact.softmax(scores, axis=0),
        ),
        (
            "Softmax ran over all entries at once. Each row must sum to 1 by itself.",
            lambda scores: exact.softmax(scores.ravel()).reshape(scores.shape),
        ),
        (
            "Softmax ran over all entries at once. Each row must sum to 1 by itself.",
            lambda scores: np.exp(scores) / np.exp(scores).sum(),
        ),
        (
            "Your rows do not sum to 1: divide the powers of each row by their sum.",
            lambda scores: np.exp(scores - scores.max(axis=-1, keepdims=True)),
        ),
        (
            "Your rows do not sum to 1: divide the powers of each row by their sum.",
            lambda scores: np.exp(scores),
        ),
        (
            "Large scores overflow: subtract each row's largest score before you raise e to it.",
            unshifted_softmax,
        ),
        (
            "You subtracted the largest of all scores. A row far below it underflows to 0 / 0: "
            "subtract each row's own largest score.",
            lambda scores: unshifted_softmax(scores - scores.max()),
        ),
        (
            "You subtracted the largest score of each column. That changes the weights: only a "
            "shift that is the same along the row leaves them alone.",
            lambda scores: unshifted_softmax(scores - scores.max(axis=0)),
        ),
        (
            "You subtracted the smallest score of the row, so e to the largest still overflows: "
            "subtract the largest.",
            lambda scores: unshifted_softmax(scores - scores.min(axis=-1, keepdims=True)),
        ),
        (
            "You subtracted the mean of the row, so e to the largest still overflows: subtract "
            "the largest.",
            lambda scores: unshifted_softmax(scores - scores.mean(axis=-1, keepdims=True)),
        ),
        (
            "A maximum or a sum along the row has shape (n_q,), which does not fit the rows: keep "
            "its axis with keepdims=True.",
            lambda scores: scores - scores.max(axis=-1),
        ),
        (
            "These are the logarithms of the weights: raise e to them.",
            lambda scores: np.log(exact.softmax(scores)),
        ),
        (
            "You divided the scores by the square root of the row's length. Softmax itself "
            "scales nothing.",
            lambda scores: exact.softmax(scores / math.sqrt(scores.shape[-1])),
        ),
    ]
    scores = draw(3, 5)
    around = np.array([[1e4], [0.0], [-1e4]])
    hidden = np.where(np.eye(3, 5, k=1, dtype=bool), -np.inf, scores)
    far = np.array([[1e4, -1e4, 0.0], [-1e4, 1e4, 1e4 - 1]])
    cases = {
        "ordinary scores": (scores,),
        "more rows than columns": (draw(7, 2, seed=1),),
        "rows near 10,000, 0 and -10,000": (scores + around,),
        "scores from -10,000 to 10,000": (far,),
        "a score of -inf in each row": (hidden,),
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
        return exact.softmax(keys @ query / math.sqrt(len(query))) @ values

    def blend(weights_of):
        """Return attention whose weights are made from the scaled scores in another way."""
        return lambda q, K, V: weights_of(K @ q / math.sqrt(len(q))) @ V

    mistakes = [
        *scale_mistakes(
            lambda divisor: (
                lambda q, K, V: exact.softmax(K @ q / divisor(len(q), len(K), V.shape[-1])) @ V
            )
        ),
        (
            "You blended the keys. The weights come from the keys, but what is blended are the "
            "values.",
            lambda q, K, V: exact.softmax(K @ q / math.sqrt(len(q))) @ K,
        ),
        (
            "These are the weights. Blend the values with them: weights @ values.",
            lambda q, K, V: exact.softmax(K @ q / math.sqrt(len(q))),
        ),
        (
            "You blended with the scores. Turn them into weights with softmax first.",
            blend(lambda scores: scores),
        ),
        (
            "Your weights do not sum to 1: divide the powers by their sum.",
            blend(np.exp),
        ),
        (
            "Your weights do not sum to 1: divide the powers by their sum.",
            blend(lambda scores: np.exp(scores - scores.max())),
        ),
        (
            "You divided by the square root of d_k after softmax. Divide the scores, before it.",
            lambda q, K, V: exact.softmax(K @ q) / math.sqrt(len(q)) @ V,
        ),
        (
            "This is the plain mean of the values: the query plays no part.",
            lambda q, K, V: V.mean(axis=0),
        ),
        (
            "You took the value of the best key alone, a hard look-up. Attention blends all values.",
            lambda q, K, V: V[np.argmax(K @ q)],
        ),
        (
            "The keys are transposed one time too many: keys @ query gives one score for each key.",
            lambda q, K, V: K.T @ q,
        ),
        (
            "The keys are transposed one time too many: keys @ query gives one score for each key.",
            lambda q, K, V: q @ K,
        ),
        (
            "The weights stand on the wrong side: weights @ values, one weight for each value.",
            lambda q, K, V: V @ exact.softmax(K @ q),
        ),
        (
            "Large scores overflow: subtract the largest score before you raise e to it.",
            blend(unshifted_softmax),
        ),
    ]
    query, keys, values = draw(7), draw(5, 7, seed=1), draw(5, 3, seed=2)
    cases = {
        "ordinary numbers": (query, keys, values),
        "other sizes": (draw(3, seed=4), draw(2, 3, seed=5), draw(2, 5, seed=6)),
        "scores of 10,000": (query * 1e4, keys, values),
        "scores near 10,000": (
            np.append(query, 1e2),
            np.column_stack([keys, np.full(5, 1e2 * math.sqrt(8))]),
            values,
        ),
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

    def blend(weights_of):
        """Return attention whose weights are made from Q, K, V in another way."""
        return lambda Q, K, V: (weights_of(Q, K, V) @ V, weights_of(Q, K, V))

    def mistaken_softmax(weights_of):
        return blend(lambda Q, K, V: weights_of(scaled(Q, K)))

    mistakes = [
        *scale_mistakes(
            lambda divisor: blend(
                lambda Q, K, V: exact.softmax(
                    Q @ K.T / divisor(Q.shape[-1], len(K), V.shape[-1]),
                )
            )
        ),
        (
            "You divided by the square root of the number of queries. What is summed in each "
            "score has d_k terms: divide by the square root of d_k.",
            blend(lambda Q, K, V: exact.softmax(Q @ K.T / math.sqrt(len(Q)))),
        ),
        (
            "You divided by the square root of d_k after softmax. Divide the scores, before it.",
            blend(lambda Q, K, V: exact.softmax(Q @ K.T) / math.sqrt(Q.shape[-1])),
        ),
        (
            "Your rows do not sum to 1: softmax ran over the queries (axis 0), not over the keys.",
            mistaken_softmax(lambda scores: exact.softmax(scores, axis=0)),
        ),
        (
            "Softmax ran over all entries at once. Each row must sum to 1 by itself.",
            mistaken_softmax(lambda scores: np.exp(scores) / np.exp(scores).sum()),
        ),
        (
            "Softmax ran over all entries at once. Each row must sum to 1 by itself.",
            mistaken_softmax(lambda scores: exact.softmax(scores.ravel()).reshape(scores.shape)),
        ),
        (
            "Your rows do not sum to 1: divide the powers of each row by their sum.",
            mistaken_softmax(np.exp),
        ),
        (
            "Softmax is missing: the scaled scores were used as weights.",
            mistaken_softmax(lambda scores: scores),
        ),
        (
            "Large scores overflow: subtract each row's largest score before you raise e to it.",
            mistaken_softmax(unshifted_softmax),
        ),
        (
            "Q and K are swapped: rows ask, columns answer, so the scores are Q K^T.",
            blend(lambda Q, K, V: exact.softmax(scaled(K, Q))),
        ),
        (
            "The weights are transposed before they meet the values: Z = A V.",
            lambda Q, K, V: (exact.softmax(scaled(Q, K)).T @ V, exact.softmax(scaled(Q, K))),
        ),
        (
            "The values stand on the wrong side: Z = A V, not V A.",
            lambda Q, K, V: (V @ exact.softmax(scaled(Q, K)), exact.softmax(scaled(Q, K))),
        ),
        (
            "K is not transposed: each score is a query times a key, Q K^T.",
            lambda Q, K, V: Q @ K,
        ),
        (
            "K is reshaped, not transposed. That mixes the numbers of different keys: use K.T.",
            blend(
                lambda Q, K, V: exact.softmax(Q @ K.reshape(K.shape[::-1]) / math.sqrt(K.shape[1]))
            ),
        ),
        (
            "You blended the keys. The weights come from the keys, but what is blended are the "
            "values.",
            lambda Q, K, V: (exact.softmax(scaled(Q, K)) @ K, exact.softmax(scaled(Q, K))),
        ),
        (
            "You blended the values with the scores. Use the weights: Z = A V.",
            lambda Q, K, V: (scaled(Q, K) @ V, exact.softmax(scaled(Q, K))),
        ),
        (
            "Z is right, but the second result holds the scaled scores, not the weights A.",
            lambda Q, K, V: (right(Q, K, V)[0], scaled(Q, K)),
        ),
        (
            "The two results are the wrong way round: return Z, A.",
            lambda Q, K, V: right(Q, K, V)[::-1],
        ),
        (
            "Z is right, but A is missing: return Z, A.",
            lambda Q, K, V: right(Q, K, V)[0],
        ),
        (
            "A is right, but Z is missing: return Z, A.",
            lambda Q, K, V: right(Q, K, V)[1],
        ),
    ]
    Q, K, V = draw(3, 7), draw(5, 7, seed=1), draw(5, 11, seed=2)
    alike = draw(5, 7, seed=3)  # as many queries as keys, so that a swap of the two runs
    cases = {
        "three queries and five keys": (Q, K, V),
        "as many queries as keys": (alike, K, V),
        "scores of 10,000": (Q * 1e4, K, V),
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
        Takes Q (n_q, d_k) and K (n_k, d_k), returns scores (n_q, n_k) in their dtype.

    Returns
    -------
    Verdict
    """

    def right(Q, K):
        return Q @ K.T / math.sqrt(Q.shape[-1])

    mistakes = [
        (
            "You did not scale: divide the scores by the square root of d_k.",
            lambda Q, K: Q @ K.T,
        ),
        (
            "You divided by d_k, not by its square root.",
            lambda Q, K: Q @ K.T / Q.shape[-1],
        ),
        (
            "You multiplied by the square root of d_k. Divide by it.",
            lambda Q, K: Q @ K.T * math.sqrt(Q.shape[-1]),
        ),
        (
            "You took the square root twice: divide by the square root of d_k, once.",
            lambda Q, K: Q @ K.T / Q.shape[-1] ** 0.25,
        ),
        (
            "You divided by the square root of the number of keys, not of d_k.",
            lambda Q, K: Q @ K.T / math.sqrt(len(K)),
        ),
        (
            "You divided by the square root of the number of queries, not of d_k.",
            lambda Q, K: Q @ K.T / math.sqrt(len(Q)),
        ),
        (
            "// cuts off what stands after the point. Divide with /.",
            lambda Q, K: Q @ K.T // math.sqrt(Q.shape[-1]),
        ),
        (
            "Q and K are swapped: rows ask, columns answer, so the scores are Q K^T.",
            lambda Q, K: K @ Q.T / math.sqrt(Q.shape[-1]),
        ),
        (
            "K is not transposed: each score is a query times a key, Q K^T.",
            lambda Q, K: Q @ K,
        ),
        (
            "K is not transposed: each score is a query times a key, Q K^T.",
            lambda Q, K: np.dot(Q, K),
        ),
        (
            "K is reshaped, not transposed. That mixes the numbers of different keys: use K.T.",
            lambda Q, K: Q @ K.reshape(K.shape[::-1]) / math.sqrt(Q.shape[-1]),
        ),
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

    mistakes = [
        (
            "Your mask is inverted: here True means may attend. (nn.MultiheadAttention's masks "
            "mean the opposite.)",
            lambda n_q, n_k: ~right(n_q, n_k),
        ),
        (
            "A token does not see itself in your mask: the diagonal must be True, j <= i.",
            lambda n_q, n_k: np.tri(n_q, n_k, k=-1, dtype=bool),
        ),
        (
            "Your mask shows the future and hides the past: keep the lower triangle, j <= i.",
            lambda n_q, n_k: ~np.tri(n_q, n_k, k=-1, dtype=bool),
        ),
        (
            "Each token sees one token of the future: key i + 1 must be False in row i.",
            lambda n_q, n_k: np.tri(n_q, n_k, k=1, dtype=bool),
        ),
        (
            "Your triangle starts in the bottom right corner. Query 0 sees key 0 alone: align it "
            "top-left.",
            lambda n_q, n_k: np.tri(n_q, n_k, k=n_k - n_q, dtype=bool),
        ),
        (
            "Your mask hides nothing: query i must not see the keys after i.",
            lambda n_q, n_k: np.ones((n_q, n_k), dtype=bool),
        ),
        (
            "Your mask is square. It needs a row for each query and a column for each key, and "
            "the two numbers may differ.",
            lambda n_q, n_k: np.tri(n_q, dtype=bool),
        ),
        (
            "Your mask is square. It needs a row for each query and a column for each key, and "
            "the two numbers may differ.",
            lambda n_q, n_k: np.tri(n_k, dtype=bool),
        ),
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

    def positions(n_k):
        return np.arange(n_k)[None, None]  # (1, 1, n_k)

    mistakes = [
        (
            "Your mask is inverted: here True means a real token, which may be seen, and False "
            "means padding.",
            lambda lengths, n_k: ~right(lengths, n_k),
        ),
        (
            "Off by one: your mask lets one token of padding in. Counting starts at 0, so key j "
            "is real if j < length.",
            lambda lengths, n_k: positions(n_k) <= lengths[:, None, None],
        ),
        (
            "Off by one: your mask hides the last real token. Key j is real if j < length.",
            lambda lengths, n_k: positions(n_k) < lengths[:, None, None] - 1,
        ),
        (
            "The middle axis is missing: (batch, 1, n_k), so that the mask broadcasts over the "
            "queries and does not take the batch for them.",
            lambda lengths, n_k: right(lengths, n_k)[:, 0],
        ),
        (
            "The axis of length 1 belongs in the middle, in place of the queries: (batch, 1, n_k).",
            lambda lengths, n_k: right(lengths, n_k)[:, 0, :, None],
        ),
        (
            "The axis of length 1 belongs in the middle, in place of the queries: (batch, 1, n_k).",
            lambda lengths, n_k: right(lengths, n_k)[:, 0][None],
        ),
        (
            "Your mask hides the front of each sentence. The padding stands at the end.",
            lambda lengths, n_k: positions(n_k) >= n_k - lengths[:, None, None],
        ),
        (
            "Your mask hides nothing: keys from lengths[b] on are padding.",
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
        return exact.softmax(np.where(mask, scores, -np.inf))

    def after(scores, mask):
        return exact.softmax(scores) * mask

    def total(weights):
        return weights.sum(axis=-1, keepdims=True)

    late = (
        "You mask after softmax and divide again. A blocked score that is much larger leaves "
        "0 / 0: mask first, softmax second."
    )
    overflow = "Large scores overflow: subtract each row's largest score before you raise e to it."
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
        (late, lambda scores, mask: after(scores, mask) / total(after(scores, mask))),
        (
            late,
            lambda scores, mask: (
                after(scores, mask)
                / np.where(total(after(scores, mask)), total(after(scores, mask)), 1)
            ),
        ),
        (
            "You multiplied the scores by the mask. A score of 0 still takes weight, since "
            "e^0 = 1: a blocked score must be -inf.",
            lambda scores, mask: exact.softmax(scores * mask),
        ),
        (
            "You added True and False to the scores, which count as 1 and 0. A blocked score must "
            "be -inf.",
            lambda scores, mask: exact.softmax(scores + mask),
        ),
        (
            "A row with nothing to attend to must be zeros. -1e9 in place of -inf makes it "
            "uniform: every key is equally bad.",
            lambda scores, mask: exact.softmax(np.where(mask, scores, -1e9).astype(scores.dtype)),
        ),
        (
            "A row with nothing to attend to must be zeros. Adding -1e9 to all of its scores "
            "changes nothing for softmax.",
            lambda scores, mask: exact.softmax(scores - 1e9 * ~mask),
        ),
        (
            "A row with nothing to attend to must be zeros. In yours -inf - (-inf) is NaN.",
            lambda scores, mask: np.where(
                mask.any(axis=-1, keepdims=True), right(scores, mask), np.nan
            ),
        ),
        (
            "-10,000 is not low enough: a real score can be as low. A blocked score must be -inf.",
            lambda scores, mask: exact.softmax(np.where(mask, scores, -1e4).astype(scores.dtype)),
        ),
        (
            "Your rows do not sum to 1: softmax ran over the queries (axis 0), not over the keys.",
            lambda scores, mask: exact.softmax(np.where(mask, scores, -np.inf), axis=0),
        ),
        (
            "Softmax ran over all entries at once. Each row must sum to 1 by itself.",
            lambda scores, mask: exact.softmax(np.where(mask, scores, -np.inf).ravel()).reshape(
                scores.shape
            ),
        ),
        (
            "Your rows do not sum to 1: divide the powers of each row by their sum.",
            lambda scores, mask: np.exp(scores) * mask,
        ),
        (overflow, lambda scores, mask: unshifted_softmax(np.where(mask, scores, -np.inf))),
        (
            overflow,
            lambda scores, mask: np.nan_to_num(unshifted_softmax(np.where(mask, scores, -np.inf))),
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
    """Check a leak test: does any output before token j move when token j is changed?

    Parameters
    ----------
    function : callable
        Takes an attention function, which maps queries (n, d_k), keys (n, d_k) and values
        (n, d_v) to outputs (n, d_v); returns True if the future leaks into the past, whichever
        token j is changed.

    Returns
    -------
    Verdict
    """

    def right(attention):
        return bool(np.triu(moves(attention), k=1).any())  # row i before column j

    everything = "Your test says {} for every attention, also where {}: {}"
    mistakes = [
        (
            everything.format("True", "nothing moves", "compare the outputs before and after."),
            lambda attention: True,
        ),
        (
            everything.format(
                "False",
                "there is no mask",
                "change token j in a copy, by a clear amount, in queries, keys and values, and "
                "compare the outputs before j.",
            ),
            lambda attention: False,
        ),
        (
            "Your answers are the wrong way round: True means that the future leaks.",
            lambda attention: not right(attention),
        ),
        (
            "You look at the output of the moved token itself. It may move; the outputs before it "
            "may not.",
            lambda attention: bool(moves(attention).diagonal().any()),
        ),
        (
            "You count the output of the moved token too. It may move: look at the rows before j, "
            "without j.",
            lambda attention: bool(np.triu(moves(attention)).any()),
        ),
        (
            "You look at the outputs after the moved token. Those may move: look at the rows "
            "before it.",
            lambda attention: bool(np.tril(moves(attention), k=-1).any()),
        ),
        (
            "You ask whether any output moves. The moved token and those after it may: look at "
            "the rows before it.",
            lambda attention: bool(moves(attention).any()),
        ),
        (
            "You look only at the last output, which may see everything: look at the outputs "
            "before the moved token.",
            lambda attention: bool(moves(attention)[-1].any()),
        ),
        (
            "You move only the last token. A leak between earlier tokens stays hidden: move each "
            "token j in turn.",
            lambda attention: bool(moves(attention)[:-1, -1].any()),
        ),
        (
            "You move only one token in the middle. Leaks from the others stay hidden: move each "
            "token j in turn.",
            lambda attention: bool(moves(attention)[:2, 2].any()),
        ),
        (
            "You move only token 1. Leaks from the others stay hidden: move each token j in turn.",
            lambda attention: bool(moves(attention)[0, 1]),
        ),
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
            "You change only the values. The future also leaks through the keys, by way of the "
            "row sums: change token j in all three.",
            lambda attention: bool(np.triu(moves(attention, change=(0, 0, 1)), k=1).any()),
        ),
        (
            "You change the keys but not the values. The future also leaks through the values: "
            "change token j in all three.",
            lambda attention: bool(np.triu(moves(attention, change=(1, 1, 0)), k=1).any()),
        ),
        (
            "A faint leak escapes your test: change the token by more, or tolerate less.",
            lambda attention: bool(np.triu(moves(attention, tolerance=0.01), k=1).any()),
        ),
    ]
    return judge(function, right, mistakes, leaky_and_tight(), {"answer": "for the whole test"})


# What the checkers are made of


def draw(*shape, seed=0):
    """Return numbers of mean 0 and variance 1, the same at every call: they saturate nothing."""
    return np.random.default_rng(seed).standard_normal(shape)


def unshifted_softmax(scores):
    """Return softmax as Eq. (5) of chapter 2 stands there, which overflows."""
    return np.exp(scores) / np.exp(scores).sum(axis=-1, keepdims=True)


def scale_mistakes(attention_with):
    """Return the mistakes that divide the scores by something else than sqrt(d_k).

    `attention_with` turns a divisor, a function of d_k, n_k and d_v, into a solution.
    """
    divisors = {
        "You did not scale: divide the scores by the square root of d_k.": (
            lambda d_k, n_k, d_v: 1.0
        ),
        "You divided by d_k, not by its square root.": lambda d_k, n_k, d_v: d_k,
        "You multiplied by the square root of d_k. Divide by it.": (
            lambda d_k, n_k, d_v: 1 / math.sqrt(d_k)
        ),
        "You divided by the square root of d_v, the size of the values. The scores come from "
        "queries and keys: use d_k.": lambda d_k, n_k, d_v: math.sqrt(d_v),
        "You divided by the square root of the number of keys, not of d_k.": (
            lambda d_k, n_k, d_v: math.sqrt(n_k)
        ),
    }
    return [(words, attention_with(divisor)) for words, divisor in divisors.items()]


def additive_mistakes(right):
    """Return the mistakes that give a mask to be added to the scores instead of a bool one."""
    return [
        (
            "This is an additive mask (0 and a large negative number). Return the bool one: True "
            "where the token may be seen.",
            lambda *inputs, low=low: np.where(right(*inputs), 0.0, low),
        )
        for low in (-np.inf, -1e9, -1e4)
    ]


def moves(attention, change=(1, 1, 1), tolerance=1e-9):
    """Tell which outputs (rows) move when token j (columns) is changed, each j in turn.

    `change` says by how much in queries, keys and values; a change is never the same in all
    dimensions, lest a symmetry hide it.
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
    """Return attention functions, each with its name: some leak the future, some do not."""

    def leaking(*pairs):
        """Return causal attention that also lets output i see token j, for each pair (i, j)."""

        def attention(queries, keys, values):
            mask = masks.causal_mask(len(queries))
            for i, j in pairs:
                mask[i, j] = True
            return blend(queries, keys, values, mask)

        return attention

    def blend(queries, keys, values, mask=None):
        queries, keys, values = (np.asarray(array, float) for array in (queries, keys, values))
        return exact.scaled_dot_product_attention(queries, keys, values, mask)[0]

    def shifted(by):
        """Return attention that hands each token the value `by` places before it, or zeros."""

        def attention(queries, keys, values):
            return np.eye(len(values), k=-by) @ values

        return attention

    def masked_too_late(queries, keys, values):
        weights = exact.softmax(queries @ np.transpose(keys) / math.sqrt(np.shape(keys)[-1]))
        return np.tril(weights) @ values

    def faint(queries, keys, values):
        return leaking()(queries, keys, values) + blend(queries, keys, values) / 1000

    named = {
        "causal attention": leaking(),
        "attention without a mask": blend,
        "an attention whose output is always zero": lambda Q, K, V: np.zeros(np.shape(V)),
        "an attention that hands each token its own value": shifted(0),
        "an attention that hands each token the value before it": shifted(1),
        "an attention that hands each token the value after it": shifted(-1),
        "an attention that masks after softmax": masked_too_late,
        "a causal attention in which token 1 leaks into output 0": leaking((0, 1)),
        "a causal attention in which the last token leaks into output 0": leaking((0, -1)),
        "a causal attention in which the last token leaks into the output before it": (
            leaking((-2, -1))
        ),
        "a causal attention with a leak of a thousandth": faint,
    }
    return {name: (attention,) for name, attention in named.items()}


# The judge


def judge(function, right, mistakes, cases, returns, *, keeps_dtype=False):
    """Compare a learner's function with the right one and with every planned mistake.

    Parameters
    ----------
    function : callable
        The learner's, of the same parameters as `right`.
    right : callable
        The right solution. The names of its parameters appear in the messages.
    mistakes : list of (str, callable)
        What to say, and a wrong solution that this answers. The first that fits is taken.
    cases : dict of str to tuple
        The inputs, each under a name that fits after "For": the plain ones first.
    returns : dict of str to str
        The name of each result, and what its entries or its shape mean.
    keeps_dtype : bool
        Refuse a float64 result from float32. Otherwise it is only remarked upon.

    Returns
    -------
    Verdict
        The learner's code never makes this raise or warn.
    """
    if function is None or function is Ellipsis or function is NotImplemented:
        return Verdict(False, "Not solved yet: there is no function to check.")
    if not callable(function):
        came = type(function).__name__
        message = f"Hand over the function itself, by its name and without calling it; got {came}."
        return Verdict(False, message)

    name = getattr(function, "__name__", "your function")
    name = "your function" if name == "<lambda>" else name
    attempts = [attempt(function, inputs) for inputs in cases.values()]
    expected = [attempt(right, inputs).result for inputs in cases.values()]
    wrong = [i for i, result in enumerate(expected) if not same(attempts[i].result, result)]
    if not wrong:
        return judge_manners(attempts, expected, right, keeps_dtype)

    case = wrong[0]
    tried, inputs, case_name = attempts[case], [*cases.values()][case], [*cases][case]
    given = listed(map(describe, inspect.signature(right).parameters, inputs))
    if unsolved(tried.result):
        return Verdict(
            False, f"Not solved yet: {name} returned {tried.result}. Is its last line a return?"
        )
    if isinstance(tried.result, Crash) and tried.result.text.startswith("NotImplementedError"):
        return Verdict(False, f"Not solved yet: {name} raised NotImplementedError.")
    words = diagnose([each.result for each in attempts], mistakes, [*cases.values()], case)
    if isinstance(tried.result, Crash):
        if words:
            kind = tried.result.text.split(":")[0]
            return Verdict(False, f"{words} ({name} raised {kind} for {given}.)")
        return Verdict(False, f"{name} raised {tried.result.text} when it was given {given}.")
    words = words or difference(tried, expected[case], returns, given, case_name)
    return Verdict(False, words)


@dataclass(frozen=True)
class Crash:
    """What is left of a function that raised: the error in words."""

    text: str


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
            result = plain(function(*given))
        except (Exception, SystemExit) as error:
            text = traceback.format_exception_only(error)[-1].strip()
            # An address differs from run to run, and the stored output of a cell must not.
            result = Crash(re.sub(r"0x[0-9a-fA-F]+", "0x...", text).rstrip(".")[:200])
    changed = tuple(
        i
        for i, (value, original) in enumerate(zip(given, inputs, strict=True))
        if isinstance(value, np.ndarray) and not np.array_equal(value, original, equal_nan=True)
    )
    return Attempt(result, changed, any("overflow" in str(item.message) for item in seen))


def plain(result):
    """Return a result as arrays that its maker cannot change any more; lists stay lists."""
    if isinstance(result, np.ndarray | np.generic | bool | int | float | complex):
        return np.array(result)
    return tuple(map(plain, result)) if isinstance(result, tuple) else result


def unsolved(result):
    """Tell whether a function gave nothing back, as an empty starting cell does."""
    return result is None or result is Ellipsis or result is NotImplemented


def same(result, other):
    """Tell whether two results agree: in shape, kind of entries, and numbers up to rounding."""
    if isinstance(result, Crash) or isinstance(other, Crash):
        return isinstance(result, Crash) and isinstance(other, Crash) and result == other
    if isinstance(result, list | tuple) and isinstance(other, tuple):
        return len(result) == len(other) and all(map(same, result, other))
    if not (isinstance(result, np.ndarray) and isinstance(other, np.ndarray)):
        return False
    if result.shape != other.shape or result.dtype.kind != other.dtype.kind:
        return False
    if result.dtype.kind not in KINDS:
        return False
    # Half of the digits: far above what another order of summation does, far below a mistake.
    tolerance = math.sqrt(max(map(precision, (result, other))))
    with np.errstate(all="ignore"):
        return bool(np.allclose(result, other, rtol=tolerance, atol=tolerance, equal_nan=True))


def precision(array):
    """Return the spacing of floats near 1 in this dtype; that of float64 for other kinds."""
    return float(np.finfo(array.dtype if array.dtype.kind == "f" else float).eps)


def diagnose(results, mistakes, inputs, case):
    """Return the words for the mistake that gives these results, or None.

    A mistake that agrees on all inputs goes before one that agrees on the first wrong input
    alone. A single True or False is too little for the second: half of all mistakes share it.
    """
    answers = [
        (words, [attempt(wrong, each).result for each in inputs]) for words, wrong in mistakes
    ]
    for words, answer in answers:
        if all(map(same, results, answer)):
            return words
    if isinstance(results[case], np.ndarray) and results[case].ndim == 0:
        return None
    return next((words for words, answer in answers if same(results[case], answer[case])), None)


def difference(tried, expected, returns, given, case_name):
    """Return in words what is wrong with a result that belongs to no planned mistake."""
    result, names = tried.result, [*returns]
    if not isinstance(expected, tuple):
        result, expected = (result,), (expected,)
    elif not isinstance(result, list | tuple) or len(result) != len(expected):
        count = len(result) if isinstance(result, list | tuple) else type(result).__name__
        return f"Expected {len(expected)} results, {listed(names)}; got {count}."
    # The last result first: A is made before Z, so that is where a mistake in both began.
    for name, part, wanted in reversed([*zip(names, result, expected, strict=True)]):
        if same(part, wanted):
            continue
        return (
            wrong_kind(part, wanted, name, returns[name], given)
            or f"For {case_name}: {wrong_numbers(part, wanted, name)}"
            + " e to a large number overflowed on the way." * tried.overflowed
        )
    raise AssertionError("difference was asked about a right result")


def wrong_kind(part, wanted, name, meaning, given):
    """Return in words what is wrong with the type, shape or dtype of a result, or None."""
    single, wants = wanted.ndim == 0, KINDS[wanted.dtype.kind]
    if not isinstance(part, np.ndarray):
        needed = "True or False" if single else f"a NumPy array of shape {wanted.shape}"
        advice = " Wrap it in np.array." if isinstance(part, list) else ""
        return f"Expected {needed}; got {type(part).__name__}.{advice}"
    if part.shape != wanted.shape and single:
        return f"Expected a single True or False {meaning}; got an array of shape {part.shape}."
    if part.shape != wanted.shape:
        came = f"{part.shape}" if part.ndim else "a single number"
        return f"Expected {name} of shape {wanted.shape}, {meaning}; got {came}, for {given}."
    if part.dtype.kind != wanted.dtype.kind:
        came = KINDS.get(part.dtype.kind, "something else")
        advice = ", with .astype(bool) for instance" if wants == KINDS["b"] and not single else ""
        return f"Expected {name} of {wants}{advice}; got {came} ({part.dtype})."
    return None


def wrong_numbers(part, wanted, name):
    """Return in words what is wrong with numbers of the right shape and kind."""
    if part.ndim == 0:
        return f"expected {wanted}, got {part}."
    if part.dtype.kind == "b":
        where = tuple(map(int, np.argwhere(part != wanted)[0]))
        count = int((part != wanted).sum())
        entries = "1 entry differs" if count == 1 else f"{count} entries differ"
        return f"{entries}, the first {at(where)}: expected {wanted[where]}, got {part[where]}."
    if np.isnan(part).any():
        return f"your {name} hold NaN, first {at(np.argwhere(np.isnan(part))[0])}."

    with np.errstate(all="ignore"):
        sums = part.sum(axis=-1)
        should = wanted.sum(axis=-1)
        distribution = (wanted >= 0).all() and np.isin(should.round(6), (0, 1)).all()
        if part.ndim > 1 and distribution and not np.allclose(sums, should, atol=1e-3):
            columns = np.allclose(part.sum(axis=-2), 1, atol=1e-3)
            row = int(np.argmax(~np.isclose(sums, should, atol=1e-3)))
            cause = ", your columns do: softmax ran over the queries" if columns else ""
            return (
                f"row {row} of your {name} sums to {sums[row]:.4g} instead of "
                f"{should[row]:.4g}{cause}."
            )
        factor = (part * wanted).sum() / (wanted * wanted).sum()
        if part.size > 1 and factor and np.allclose(part, factor * wanted, rtol=1e-6, atol=1e-9):
            return f"each entry of your {name} is {factor:.4g} times what it should be."
        where = tuple(np.unravel_index(np.argmax(np.abs(part - wanted)), part.shape))
    gap = abs(part[where] - wanted[where])
    return (
        f"the largest difference is {gap:.4g}, {at(where)}: expected {wanted[where]:.4g}, "
        f"got {part[where]:.4g}."
    )


def judge_manners(attempts, expected, right, keeps_dtype):
    """Return the verdict on right numbers: inputs left alone, and no digit lost or invented."""
    for tried in attempts:
        if tried.changed:
            name = [*inspect.signature(right).parameters][tried.changed[0]]
            message = (
                f"The numbers are right, but your function changes its input {name} in place, "
                "and the caller still needs it: work on a new array."
            )
            return Verdict(False, message)
    remark = ""
    for tried, wanted in zip(attempts, expected, strict=True):
        parts = (
            zip(tried.result, wanted, strict=True)
            if isinstance(wanted, tuple)
            else [(tried.result, wanted)]
        )
        for part, target in parts:
            came, needed = part.dtype, target.dtype
            if came.kind == "f" and came.itemsize < needed.itemsize:
                message = f"The numbers lose digits: {needed} came in and {came} went out."
                return Verdict(False, message)
            if came.kind == "f" and came.itemsize > needed.itemsize:
                remark = (
                    f"{needed} came in and {came} went out. np.sqrt of a plain number and "
                    "np.zeros make float64; math.sqrt and np.zeros_like do not."
                )
    if remark and keeps_dtype:
        return Verdict(False, f"The numbers are right, but {remark}")
    passed = f"Right: all {len(attempts)} checks passed."
    return Verdict(True, f"{passed} One remark: {remark}" if remark else passed)


def describe(name, value):
    """Return an input in a few words: the shape of an array, or the number itself."""
    if isinstance(value, np.ndarray):
        return f"{name} {value.shape}" if value.dtype.kind == "f" else f"{name} {value.tolist()}"
    return f"an {name} function" if callable(value) else f"{name} = {value}"


def listed(words):
    """Return words as "a, b and c"."""
    *first, last = words
    return f"{', '.join(first)} and {last}" if first else last


def at(where):
    """Return a place in an array in words; a matrix has rows and columns."""
    where = tuple(map(int, where))
    if len(where) == 2:
        return f"in row {where[0]}, column {where[1]} (counted from 0)"
    return f"at entry {where[0] if len(where) == 1 else where} (counted from 0)"
