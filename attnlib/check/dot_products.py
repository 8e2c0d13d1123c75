# ruff: noqa: N803 -- learners write Q, K and V as in the formula, and messages repeat them
"""The checkers of scaled dot-product attention: its scores, one query, many, and a memory."""

import math

import numpy as np

from attnlib import attention as exact
from attnlib.check import advice
from attnlib.check.advice import wrong_divisors
from attnlib.check.arrays import float32, random_array, random_arrays
from attnlib.check.checker import Checker


def scaled(Q, K):
    """Return the scaled scores, Eqs. (3) and (4) of "Queries, keys and values"."""
    return Q @ K.T / math.sqrt(Q.shape[-1])


def attend(Q, K, V):
    """Return attention's output alone."""
    return exact.softmax(scaled(Q, K)) @ V


def sizes(Q, K, V=None):
    """Return the sizes that a learner may divide by."""
    found = {"d_k": K.shape[-1], "n_k": len(K), "n_q": len(Q)}
    return found if V is None else {**found, "d_v": V.shape[1]}


# The scores

scaled_scores = Checker(
    """Check the scaled scores Q K^T / sqrt(d_k), Eqs. (3) and (4) of "Queries, keys and values".

    The function takes Q (n_q, d_k) and K (n_k, d_k) and returns scores (n_q, n_k).
    """,
    right=scaled,
    returns={"scores": "one for each query and key"},
    cases={
        "d_k = 7": random_arrays((3, 7), (5, 7)),
        "d_k = 11": random_arrays((2, 11), (3, 11), seed=2),
        "d_k = 1": random_arrays((3, 1), (5, 1), seed=4),
        "float32": float32(random_arrays((3, 7), (5, 7))),
    },
    mistakes=[
        *wrong_divisors(
            lambda divisor: lambda Q, K: Q @ K.T / divisor(**sizes(Q, K)), "n_q", "n_k"
        ),
        "You took the square root of d_k twice.",
        lambda Q, K: Q @ K.T / Q.shape[-1] ** 0.25,
        "// cuts off what stands after the point. Divide with /.",
        lambda Q, K: Q @ K.T // math.sqrt(Q.shape[-1]),
        advice.SWAPPED,
        lambda Q, K: scaled(K, Q),
        advice.UPRIGHT,
        lambda Q, K: Q @ K,
        lambda Q, K: np.dot(Q, K),
        advice.RESHAPED,
        lambda Q, K: scaled(Q, K.reshape(K.shape[::-1]).T),
        "You went one step too far: these are the weights. The scaled scores come before softmax.",
        lambda Q, K: exact.softmax(scaled(Q, K)),
    ],
)


# One query

ONE_QUERY = random_arrays((7,), (5, 7), (5, 3))


def scores_of_one(query, keys):
    """Return the scaled scores of one query (n_k,)."""
    return keys @ query / math.sqrt(len(query))


attention_for_one_query = Checker(
    """Check attention for one query, Eqs. (3) to (6) of "Queries, keys and values" for one row.

    The function takes a query (d_k,), keys (n, d_k) and values (n, d_v) and returns the output
    (d_v,).
    """,
    right=lambda query, keys, values: exact.softmax(scores_of_one(query, keys)) @ values,
    returns={"output": "one number for each dimension of the values"},
    cases={
        "ordinary numbers": ONE_QUERY,
        "other sizes": random_arrays((3,), (2, 3), (2, 5), seed=4),
        "float32": float32(ONE_QUERY),
    },
    mistakes=[
        *wrong_divisors(
            lambda divisor: lambda q, K, V: exact.softmax(K @ q / divisor(**sizes(q, K, V))) @ V,
            "n_k",
            "d_v",
        ),
        advice.TOO_LATE,
        lambda q, K, V: exact.softmax(K @ q) / math.sqrt(len(q)) @ V,
        advice.KEYS_BLENDED,
        lambda q, K, V: exact.softmax(scores_of_one(q, K)) @ K,
        "These are the weights. Average the values with them: weights @ values.",
        lambda q, K, V: exact.softmax(scores_of_one(q, K)),
        "You used the scores as weights. Turn them into weights with softmax first.",
        lambda q, K, V: scores_of_one(q, K) @ V,
        "Your weights do not sum to 1: divide the exponentials by their sum.",
        lambda q, K, V: np.exp(scores_of_one(q, K)) @ V,
        "This is the plain mean of the values: the query plays no part.",
        lambda q, K, V: V.mean(axis=0),
        "You took the value of the best key alone, as a dictionary does. Attention averages all "
        "values.",
        lambda q, K, V: V[np.argmax(K @ q)],
        "The keys are transposed once too often: keys @ query gives a score for each key.",
        lambda q, K, V: K.T @ q,
        lambda q, K, V: q @ K,
        "The weights stand on the wrong side: weights @ values, one weight for each value.",
        lambda q, K, V: V @ exact.softmax(scores_of_one(q, K)),
    ],
)


# Many queries, and the weights too


def weighted(weights_of):
    """Return attention with other weights, made of the scaled scores."""
    return lambda Q, K, V: (weights_of(scaled(Q, K)) @ V, weights_of(scaled(Q, K)))


def divided(divisor):
    """Return attention with another divisor, made of the sizes."""

    def attention(Q, K, V):
        A = exact.softmax(Q @ K.T / divisor(**sizes(Q, K, V)))
        return A @ V, A

    return attention


def right(Q, K, V):
    """Return the output Z and the weights A."""
    return exact.scaled_dot_product_attention(Q, K, V)


def output_divided(Q, K, V):
    """Return attention that divides its output, too late, but not its weights."""
    A = exact.softmax(Q @ K.T)
    return A @ V / math.sqrt(Q.shape[-1]), A


def both_divided(Q, K, V):
    """Return attention that divides its output and its weights, too late."""
    A = exact.softmax(Q @ K.T) / math.sqrt(Q.shape[-1])
    return A @ V, A


def exchanged(Q, K, V):
    """Return attention whose weights have a row for each key."""
    A = exact.softmax(scaled(K, Q))
    return A @ V, A


THREE_QUERIES = random_arrays((3, 7), (5, 7), (5, 11))

attention = Checker(
    """Check scaled dot-product attention, Eq. (2) of "Queries, keys and values".

    The function takes Q (n_q, d_k), K (n_k, d_k) and V (n_k, d_v) and returns Z (n_q, d_v) and
    A (n_q, n_k).
    """,
    right=right,
    returns={"Z": "one averaged value for each query", "A": "one weight for each query and key"},
    cases={
        "three queries and five keys": THREE_QUERIES,
        # A swap of Q and K fails above. Here it runs, so that it differs from other failures.
        "as many queries as keys": (random_array(5, 7, seed=3), *THREE_QUERIES[1:]),
        "other sizes": random_arrays((7, 3), (2, 3), (2, 5), seed=4),
        "float32": float32(THREE_QUERIES),
    },
    mistakes=[
        *wrong_divisors(divided, "n_q", "n_k", "d_v"),
        advice.TOO_LATE,
        both_divided,
        output_divided,
        advice.COLUMNS,
        weighted(lambda scores: exact.softmax(scores, axis=0)),
        advice.EVERYTHING,
        weighted(lambda scores: np.exp(scores) / np.exp(scores).sum()),
        weighted(lambda scores: exact.softmax(scores.ravel()).reshape(scores.shape)),
        advice.NOT_DIVIDED,
        weighted(np.exp),
        advice.AXIS_LOST,
        weighted(lambda scores: scores - scores.max(axis=-1)),
        advice.NO_SOFTMAX,
        weighted(np.copy),
        "The weights are transposed before they are multiplied by the values: Z = A V.",
        lambda Q, K, V: (right(Q, K, V)[1].T @ V, right(Q, K, V)[1]),
        "The values stand on the wrong side: Z = A V, not V A.",
        lambda Q, K, V: (V @ right(Q, K, V)[1], right(Q, K, V)[1]),
        advice.SWAPPED,
        lambda Q, K, V: right(K, Q, V),
        exchanged,
        advice.UPRIGHT,
        lambda Q, K, V: Q @ K,
        lambda Q, K, V: np.dot(Q, K),
        advice.RESHAPED,
        lambda Q, K, V: right(Q, K.reshape(K.shape[::-1]).T, V),
        advice.KEYS_BLENDED,
        lambda Q, K, V: right(Q, K, K),
        "You averaged the values with the scores. Use the weights: Z = A V.",
        lambda Q, K, V: (scaled(Q, K) @ V, right(Q, K, V)[1]),
        "Z is right, but the second result holds the scaled scores, not the weights A.",
        lambda Q, K, V: (right(Q, K, V)[0], scaled(Q, K)),
        "The two results are the wrong way round: return Z, A.",
        lambda Q, K, V: right(Q, K, V)[::-1],
        "Z is right, but A is missing: return Z, A.",
        lambda Q, K, V: right(Q, K, V)[0],
        "A is right, but Z is missing: return Z, A.",
        lambda Q, K, V: right(Q, K, V)[1],
    ],
)


# Keys and values from a memory


def crossed(weights_of):
    """Return cross-attention with other weights, made of the scaled scores."""
    return lambda X, M, W_Q, W_K, W_V: weights_of(scaled(X @ W_Q, M @ W_K)) @ (M @ W_V)


def crossed_and_divided(divisor):
    """Return cross-attention with another divisor, made of the sizes."""

    def attention(X, M, W_Q, W_K, W_V):
        Q, K, V = X @ W_Q, M @ W_K, M @ W_V
        widths = {"d_model": X.shape[1], "d_memory": M.shape[1]}
        return exact.softmax(Q @ K.T / divisor(**sizes(Q, K, V), **widths)) @ V

    return attention


def projections(n_q, n_k, d_model, d_memory, d_k, d_v):
    """Return X, M and the three matrices of weights."""
    shapes = (n_q, d_model), (n_k, d_memory), (d_model, d_k), (d_memory, d_k), (d_memory, d_v)
    X, M, *matrices = random_arrays(*shapes)
    return X, M, *(W / math.sqrt(len(W)) for W in matrices)


MEMORY_OF_FIVE = projections(n_q=3, n_k=5, d_model=7, d_memory=11, d_k=13, d_v=2)

cross_attention = Checker(
    """Check cross-attention, Eq. (1) of "Encoder and decoder".

    The function takes X (n_q, d_model), which makes the queries, the memory M (n_k, d_memory),
    W_Q (d_model, d_k), W_K (d_memory, d_k) and W_V (d_memory, d_v); it returns the output
    Z (n_q, d_v).
    """,
    right=lambda X, M, W_Q, W_K, W_V: attend(X @ W_Q, M @ W_K, M @ W_V),
    returns={"Z": "one averaged value for each query"},
    cases={
        "three queries and a memory of five": MEMORY_OF_FIVE,
        # A swap fails above. Here each one runs, so that it differs from the others.
        "sizes that are equal": projections(n_q=5, n_k=5, d_model=7, d_memory=7, d_k=3, d_v=3),
        "float32": float32(MEMORY_OF_FIVE),
    },
    mistakes=[
        "Your keys come from X. Keys and values both come from the memory: K = M W_K.",
        lambda X, M, W_Q, W_K, W_V: attend(X @ W_Q, X @ W_K, M @ W_V),
        "Your values come from X. Keys and values both come from the memory: V = M W_V.",
        lambda X, M, W_Q, W_K, W_V: attend(X @ W_Q, M @ W_K, X @ W_V),
        "This is self-attention: queries, keys and values all come from X. Take keys and values "
        "from the memory M.",
        lambda X, M, W_Q, W_K, W_V: attend(X @ W_Q, X @ W_K, X @ W_V),
        "X and M are exchanged: X makes the queries, and M makes keys and values.",
        lambda X, M, W_Q, W_K, W_V: attend(M @ W_Q, X @ W_K, X @ W_V),
        "Your queries come from the memory too. They come from X: Q = X W_Q.",
        lambda X, M, W_Q, W_K, W_V: attend(M @ W_Q, M @ W_K, M @ W_V),
        "W_K and W_V are exchanged: K = M W_K, V = M W_V.",
        lambda X, M, W_Q, W_K, W_V: attend(X @ W_Q, M @ W_V, M @ W_K),
        "You averaged the memory as it is. Project it first: V = M W_V.",
        lambda X, M, W_Q, W_K, W_V: attend(X @ W_Q, M @ W_K, M),
        advice.KEYS_BLENDED,
        lambda X, M, W_Q, W_K, W_V: attend(X @ W_Q, M @ W_K, M @ W_K),
        "The scores compare what is projected, Q = X W_Q with K = M W_K, and no W is transposed.",
        lambda X, M, W_Q, W_K, W_V: attend(X @ W_Q, M, M @ W_V),
        lambda X, M, W_Q, W_K, W_V: attend(X, M @ W_K, M @ W_V),
        advice.UPRIGHT,
        lambda X, M, W_Q, W_K, W_V: (X @ W_Q) @ (M @ W_K),
        *wrong_divisors(crossed_and_divided, "d_v", "n_q", "n_k", "d_model", "d_memory"),
        advice.TOO_LATE,
        lambda X, M, W_Q, W_K, W_V: (
            exact.softmax(X @ W_Q @ (M @ W_K).T) @ (M @ W_V) / math.sqrt(W_K.shape[1])
        ),
        advice.COLUMNS,
        crossed(lambda scores: exact.softmax(scores, axis=0)),
        advice.EVERYTHING,
        crossed(lambda scores: np.exp(scores) / np.exp(scores).sum()),
        advice.NOT_DIVIDED,
        crossed(np.exp),
        advice.NO_SOFTMAX,
        crossed(np.copy),
        "These are the weights. Average the values with them: Z = A V.",
        lambda X, M, W_Q, W_K, W_V: exact.softmax(scaled(X @ W_Q, M @ W_K)),
    ],
)
