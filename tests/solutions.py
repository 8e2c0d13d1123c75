# ruff: noqa: E501 -- a solution is a line of a table
"""Cells as learners write them: for each checker wrong ones with what must be said, and right ones.

A cell without indentation is what the learner's function returns.
"""

# What a learner's notebook has in its first cell, and the helpers of earlier cells.
NOTEBOOK = """
import math
import numpy as np

def row_softmax(S, axis=-1):
    with np.errstate(all="ignore"):
        powers = np.exp(S - S.max(axis=axis, keepdims=True))
        return powers / powers.sum(axis=axis, keepdims=True)

def moved_rows(attention, j, n=5, by=1.0, which="QKV", evenly=False):
    rng = np.random.default_rng(1)
    before = {"Q": rng.normal(size=(n, 3)), "K": rng.normal(size=(n, 3)), "V": rng.normal(size=(n, 2))}
    after = {name: array.copy() for name, array in before.items()}
    for name in which:
        after[name][j] += by if evenly else by * rng.normal(size=after[name].shape[1])
    return ~np.isclose(attention(*after.values()), attention(*before.values())).all(axis=1)
"""

# What the learner's function takes.
ARGUMENTS = {
    "weighted_average": "x",
    "softmax": "S",
    "attention_for_one_query": "q, K, V",
    "attention": "Q, K, V",
    "scaled_scores": "Q, K",
    "causal_mask": "n_q, n_k",
    "padding_mask": "lengths, n_k",
    "masked_softmax": "S, mask",
    "leak_test": "attention",
    "split_heads": "x, n_heads",
    "merge_heads": "heads",
    "sinusoidal_positions": "n, d_model",
    "relative_bias": "S, table",
    "layer_norm": "x, gamma, beta",
    "cross_attention": "X, M, W_Q, W_K, W_V",
    "cached_attention": "X, keys, values, W_Q, W_K, W_V",
    "online_softmax": "s, V, block",
    "mean_price": "model, sentence, start",
    "grouped_attention": "queries, keys, values",
    "softmax_backward": "A, dA",
}

# Right cells of several lines; many a wrong one differs from them in one place.
WAVES = """
    i = np.arange(d_model // 2)
    angles = np.arange(n)[:, None] / 10000 ** (2 * i / d_model)
    PE = np.zeros((n, d_model))
    PE[:, 0::2] = np.sin(angles)
    PE[:, 1::2] = np.cos(angles)
    return PE"""
BIAS = """
    n_q, n_k = S.shape
    m = len(table) // 2
    offset = np.arange(n_k) - np.arange(n_q)[:, None]
    return S + table[np.clip(offset, -m, m) + m]"""
NORM = """
    mean = x.mean(axis=1, keepdims=True)
    variance = x.var(axis=1, keepdims=True)
    xhat = (x - mean) / np.sqrt(variance + 1e-5)
    return gamma * xhat + beta"""
CROSS = """
    Q, K, V = X @ W_Q, M @ W_K, M @ W_V
    S = Q @ K.T / math.sqrt(K.shape[1])
    A = row_softmax(S)
    return A @ V"""
CACHED = """
    K, V = np.vstack([keys, X @ W_K]), np.vstack([values, X @ W_V])
    may = np.tri(len(X), len(K), len(keys)) > 0
    S = X @ W_Q @ K.T / math.sqrt(K.shape[1])
    A = row_softmax(np.where(may, S, -np.inf))
    return A @ V, K, V"""
ONLINE = """
    largest, total, z = -np.inf, 0, np.zeros_like(V[0])
    for i in range(0, len(s), block):
        scores, values = s[i:i + block], V[i:i + block]
        new = max(largest, scores.max())
        powers = np.exp(scores - new)
        shrink = np.exp(largest - new)
        total = total * shrink + powers.sum()
        z = z * shrink + powers @ values
        largest = new
    return z / total"""
BACKWARD = """
    share = (A * dA).sum(axis=-1, keepdims=True)
    return A * (dA - share)"""

PRICE = """
    fed = [start] + sentence[:-1]
    shares = row_softmax(model(fed))
    prices = -np.log(shares[np.arange(len(sentence)), sentence])
    return prices.mean()"""
GROUPED = """
    times = queries.shape[-3] // keys.shape[-3]
    keys = np.repeat(keys, times, axis=-3)
    values = np.repeat(values, times, axis=-3)
    S = queries @ keys.swapaxes(-2, -1) / math.sqrt(queries.shape[-1])
    A = row_softmax(S)
    return A @ values"""


def but(cell, *slips):
    """Return a cell in which, for each pair, the first text gave way to the second."""
    for meant, written in slips:
        assert meant in cell, meant
        cell = cell.replace(meant, written)
    return cell


# For each checker: (part of the message that must come, what the learner wrote).
WRONG = {
    "weighted_average": [
        ("These are the weights", "row_softmax(np.outer(x, x))"),
        ("entry by entry", "row_softmax(np.outer(x, x)) * x"),
        ("down the columns", "row_softmax(np.outer(x, x), axis=0) @ x"),
        ("wrong axis or transposed", "x @ row_softmax(np.outer(x, x))"),
        (
            "over the whole matrix",
            "(np.exp(np.outer(x, x)) / np.exp(np.outer(x, x)).sum()) @ x",
        ),
        ("not normalised", "np.exp(np.outer(x, x)) @ x"),
        ("used the scores as weights", "np.outer(x, x) @ x"),
        (
            "divided the scores by their sum",
            "np.array([(xi * x / (xi * x).sum()) @ x for xi in x])",
        ),
        ("plain mean", "np.ones(len(x)) * np.mean(x)"),
        ("one average for all", "row_softmax(x) @ x"),
        ("one average for all", "np.repeat(row_softmax(x) @ x, len(x))"),
        ("here d is 1", "row_softmax(np.outer(x, x) / np.sqrt(len(x))) @ x"),
        (
            "Expected averages, a NumPy array of shape (7,); got list. Wrap it in np.array.",
            "[sum(np.exp(a * b) * b for b in x) / sum(np.exp(a * b) for b in x) for a in x]",
        ),
        (
            "Expected averages of shape (7,), one for each number; got (7, 1)",
            "row_softmax(np.outer(x, x)) @ x[:, None]",
        ),
        ("each entry of your averages is 2 times", "2 * row_softmax(np.outer(x, x)) @ x"),
        ("the largest difference is", "row_softmax(np.outer(x, x)) @ x + (x > 1)"),
        (
            "changes its input signal in place",
            "    y = row_softmax(np.outer(x, x)) @ x\n    x[:] = y\n    return y",
        ),
        ("ValueError", "np.outer(x, x) @ x[:2]"),
    ],
    "softmax": [
        ("softmax ran over the queries (axis 0)", "np.exp(S) / np.exp(S).sum(axis=0)"),
        ("softmax ran over the queries (axis 0)", "row_softmax(S, axis=0)"),
        ("over all entries at once", "np.exp(S - S.max()) / np.exp(S - S.max()).sum()"),
        ("over all entries at once", "np.exp(S) / np.exp(S).sum()"),
        ("divide the powers of each row by their sum", "np.exp(S - S.max(axis=1, keepdims=True))"),
        ("divide the powers of each row by their sum", "np.exp(S)"),
        ("Large scores overflow", "np.exp(S) / np.exp(S).sum(axis=1, keepdims=True)"),
        ("Large scores overflow", "np.array([np.exp(row) / sum(np.exp(row)) for row in S])"),
        ("keep it with keepdims=True", "np.exp(S) / np.exp(S).sum(axis=1)"),
        ("keep it with keepdims=True", "S - S.max(axis=1)"),
        (
            "largest of all scores",
            "np.exp(S - S.max()) / np.exp(S - S.max()).sum(axis=1, keepdims=True)",
        ),
        (
            "largest score of each column",
            "np.exp(S - S.max(0)) / np.exp(S - S.max(0)).sum(axis=1, keepdims=True)",
        ),
        (
            "subtracted the smallest score",
            "    P = np.exp(S - S.min(axis=1, keepdims=True))\n    return P / P.sum(axis=1, keepdims=True)",
        ),
        (
            "subtracted the mean",
            "    P = np.exp(S - S.mean(axis=1, keepdims=True))\n    return P / P.sum(axis=1, keepdims=True)",
        ),
        (
            "logarithms",
            "S - S.max(-1, keepdims=True) - np.log(np.exp(S - S.max(-1, keepdims=True)).sum(-1, keepdims=True))",
        ),
        ("square root of n_k", "row_softmax(S / np.sqrt(S.shape[1]))"),
        (
            "changes its input scores in place",
            "    S -= S.max(axis=1, keepdims=True)\n    return np.exp(S) / np.exp(S).sum(axis=1, keepdims=True)",
        ),
        ("Wrap it in np.array", "row_softmax(S).tolist()"),
        (
            "Expected weights of shape (3, 5), one for each query and key; got (5, 3) for scores (3, 5)",
            "row_softmax(S).T",
        ),
        (
            "row 0 of your weights sums to 0",
            "np.nan_to_num(np.exp(S) / np.exp(S).sum(axis=1, keepdims=True))",
        ),
        ("row 0 of your weights sums to 0.5", "row_softmax(S) / 2"),
        ("but your columns sum to 1: softmax ran over the queries", "row_softmax(3 * S, axis=0)"),
        ("Expected floats; got whole numbers, int64", "row_softmax(S).round().astype(int)"),
        ("Digits get lost", "row_softmax(S).astype(np.float32)"),
        ("the largest difference is 0.3", "row_softmax(S)[:, ::-1]"),
        (
            "there is NaN in your weights, first in row 2, column 0 (counted from 0)",
            "np.where(np.arange(len(S))[:, None] == 2, np.nan, row_softmax(S))",
        ),
        ("TypeError", "row_softmax(S, 1, 2)"),
    ],
    "attention_for_one_query": [
        ("did not scale", "row_softmax(K @ q) @ V"),
        ("by d_k, not by its square root", "row_softmax(K @ q / len(q)) @ V"),
        ("multiplied by the square root", "row_softmax(K @ q * np.sqrt(len(q))) @ V"),
        ("number of keys", "row_softmax(K @ q / np.sqrt(len(K))) @ V"),
        ("square root of d_v", "row_softmax(K @ q / np.sqrt(V.shape[1])) @ V"),
        ("after softmax", "row_softmax(K @ q) @ V / np.sqrt(len(q))"),
        ("You blended the keys", "row_softmax(K @ q / np.sqrt(len(q))) @ K"),
        ("These are the weights", "row_softmax(K @ q / np.sqrt(len(q)))"),
        ("You blended with the scores", "(K @ q / np.sqrt(len(q))) @ V"),
        ("do not sum to 1: divide the powers", "np.exp(K @ q / np.sqrt(len(q))) @ V"),
        ("plain mean", "V.mean(axis=0)"),
        ("hard look-up", "V[(K @ q).argmax()]"),
        ("transposed once too often", "row_softmax(K.T @ q / np.sqrt(len(q))) @ V"),
        ("transposed once too often", "row_softmax(q @ K) @ V"),
        ("wrong side", "V @ row_softmax(K @ q / np.sqrt(len(q)))"),
        (
            "Large scores overflow",
            "    w = np.exp(K @ q / np.sqrt(len(q)))\n    return w / w.sum() @ V",
        ),
        (
            "got (1, 3) for query (7,), keys (5, 7) and values (5, 3)",
            "row_softmax(K @ q[:, None] / np.sqrt(len(q)), axis=0).T @ V",
        ),
        ("got list", "list(row_softmax(K @ q / np.sqrt(len(q))) @ V)"),
        ("got (5, 3)", "row_softmax(K @ q / np.sqrt(len(q)))[:, None] * V"),
        ("For other sizes", "row_softmax(K @ q / np.sqrt(7)) @ V"),
        (
            "changes its input query in place",
            "    q /= np.sqrt(len(q))\n    return row_softmax(K @ q) @ V",
        ),
    ],
    "attention": [
        ("did not scale", "    A = row_softmax(Q @ K.T)\n    return A @ V, A"),
        (
            "by d_k, not by its square root",
            "    A = row_softmax(Q @ K.T / K.shape[1])\n    return A @ V, A",
        ),
        (
            "multiplied by the square root",
            "    A = row_softmax(Q @ K.T * np.sqrt(K.shape[1]))\n    return A @ V, A",
        ),
        (
            "number of queries",
            "    A = row_softmax(Q @ K.T / np.sqrt(len(Q)))\n    return A @ V, A",
        ),
        ("number of keys", "    A = row_softmax(Q @ K.T / np.sqrt(len(K)))\n    return A @ V, A"),
        (
            "square root of d_v",
            "    A = row_softmax(Q @ K.T / np.sqrt(V.shape[1]))\n    return A @ V, A",
        ),
        (
            "after softmax",
            "    A = row_softmax(Q @ K.T) / np.sqrt(K.shape[1])\n    return A @ V, A",
        ),
        (
            "softmax ran over the queries",
            "    A = row_softmax(Q @ K.T / np.sqrt(K.shape[1]), axis=0)\n    return A @ V, A",
        ),
        (
            "over all entries at once",
            "    A = np.exp(Q @ K.T / np.sqrt(K.shape[1]))\n    A = A / A.sum()\n    return A @ V, A",
        ),
        (
            "divide the powers of each row",
            "    A = np.exp(Q @ K.T / np.sqrt(K.shape[1]))\n    return A @ V, A",
        ),
        (
            "Large scores overflow",
            "    A = np.exp(Q @ K.T / np.sqrt(K.shape[1]))\n    A = A / A.sum(axis=1, keepdims=True)\n    return A @ V, A",
        ),
        (
            "keepdims=True",
            "    A = np.exp(Q @ K.T / np.sqrt(K.shape[1]))\n    A = A / A.sum(axis=1)\n    return A @ V, A",
        ),
        ("Softmax is missing", "    A = Q @ K.T / np.sqrt(K.shape[1])\n    return A @ V, A"),
        (
            "weights are transposed before",
            "    A = row_softmax(Q @ K.T / np.sqrt(K.shape[1]))\n    return A.T @ V, A",
        ),
        (
            "values stand on the wrong side",
            "    A = row_softmax(Q @ K.T / np.sqrt(K.shape[1]))\n    return V @ A, A",
        ),
        (
            "Q and K are swapped",
            "    A = row_softmax(K @ Q.T / np.sqrt(K.shape[1]))\n    return A @ V, A",
        ),
        (
            "K is not transposed",
            "    A = row_softmax(Q @ K / np.sqrt(K.shape[1]))\n    return A @ V, A",
        ),
        (
            "K is not transposed",
            "    A = row_softmax(np.dot(Q, K) / np.sqrt(K.shape[1]))\n    return A @ V, A",
        ),
        (
            "K is reshaped, not transposed",
            "    A = row_softmax(Q @ K.reshape(K.shape[1], -1) / np.sqrt(K.shape[1]))\n    return A @ V, A",
        ),
        (
            "You blended the keys",
            "    A = row_softmax(Q @ K.T / np.sqrt(K.shape[1]))\n    return A @ K, A",
        ),
        (
            "You blended the values with the scores",
            "    S = Q @ K.T / np.sqrt(K.shape[1])\n    return S @ V, row_softmax(S)",
        ),
        (
            "second result holds the scaled scores",
            "    S = Q @ K.T / np.sqrt(K.shape[1])\n    return row_softmax(S) @ V, S",
        ),
        (
            "wrong way round: return Z, A",
            "    A = row_softmax(Q @ K.T / np.sqrt(K.shape[1]))\n    return A, A @ V",
        ),
        ("A is missing", "row_softmax(Q @ K.T / np.sqrt(K.shape[1])) @ V"),
        ("Z is missing", "row_softmax(Q @ K.T / np.sqrt(K.shape[1]))"),
        (
            "columns sum to 1: softmax ran over the queries",
            "    A = row_softmax(Q @ K.T, axis=0)\n    return A @ V, A",
        ),
        (
            "Expected Z and A: end with `return Z, A`. Got list.",
            "    A = row_softmax(Q @ K.T / np.sqrt(K.shape[1]))\n    return [A @ V, A]",
        ),
        (
            "Got tuple of 3",
            "    A = row_softmax(Q @ K.T / np.sqrt(K.shape[1]))\n    return A @ V, A, V",
        ),
        (
            "Expected A of shape (3, 5), one weight for each query and key; got (5, 3)",
            "    A = row_softmax(Q @ K.T / np.sqrt(K.shape[1]))\n    return A @ V, A.T",
        ),
        (
            "Expected Z, a NumPy array of shape (3, 11); got list",
            "    A = row_softmax(Q @ K.T / np.sqrt(K.shape[1]))\n    return list(A @ V), A",
        ),
        (
            "changes its input Q in place",
            "    Q /= np.sqrt(K.shape[1])\n    A = row_softmax(Q @ K.T)\n    return A @ V, A",
        ),
        (
            "each entry of your Z is 0.5 times",
            "    A = row_softmax(Q @ K.T / np.sqrt(K.shape[1]))\n    return A @ V / 2, A",
        ),
    ],
    "scaled_scores": [
        ("did not scale", "Q @ K.T"),
        ("by d_k, not by its square root", "Q @ K.T / Q.shape[1]"),
        ("multiplied by the square root", "math.sqrt(Q.shape[1]) * Q @ K.T"),
        ("number of queries", "Q @ K.T / np.sqrt(Q.shape[0])"),
        ("number of keys", "Q @ K.T / np.sqrt(K.shape[0])"),
        ("square root of d_k twice", "Q @ K.T / np.sqrt(np.sqrt(Q.shape[1]))"),
        ("Divide with /", "Q @ K.T // math.sqrt(Q.shape[1])"),
        ("swapped", "K @ Q.T / math.sqrt(Q.shape[1])"),
        ("not transposed", "Q @ K / math.sqrt(Q.shape[1])"),
        ("not transposed", "np.dot(Q, K) / math.sqrt(Q.shape[1])"),
        ("reshaped, not transposed", "Q @ K.reshape(Q.shape[1], len(K)) / math.sqrt(Q.shape[1])"),
        ("One step too far", "row_softmax(Q @ K.T / math.sqrt(Q.shape[1]))"),
        ("For d_k = 11: each entry of your scores is 1.254 times", "Q @ K.T / math.sqrt(7)"),
        ("got list", "[[q @ k / math.sqrt(len(q)) for k in K] for q in Q]"),
        ("changes its input Q in place", "    Q /= math.sqrt(Q.shape[1])\n    return Q @ K.T"),
        (
            "solution raised IndexError: list index out of range when given Q (3, 7) and K (5, 7).",
            "[][0]",
        ),
        ("ValueError", "Q * K / math.sqrt(Q.shape[1])"),
    ],
    "causal_mask": [
        ("inverted", "np.triu(np.ones((n_q, n_k), dtype=bool), k=1)"),
        ("does not see itself", "np.tril(np.ones((n_q, n_k), dtype=bool), k=-1)"),
        ("shows the future and hides the past", "np.triu(np.ones((n_q, n_k), dtype=bool))"),
        ("shows the future and hides the past", "np.arange(n_q)[:, None] <= np.arange(n_k)"),
        ("one token of the future", "np.tri(n_q, n_k, 1, dtype=bool)"),
        ("bottom right", "np.tril(np.ones((n_q, n_k), dtype=bool), k=n_k - n_q)"),
        ("hides nothing", "np.ones((n_q, n_k)) == 1"),
        ("square", "np.tri(n_q, dtype=bool)"),
        ("square", "np.tri(n_k, dtype=bool)"),
        ("Rows and columns are exchanged", "np.tri(n_k, n_q, dtype=bool)"),
        ("additive mask", "np.where(np.tri(n_q, n_k) == 1, 0.0, -np.inf)"),
        ("additive mask", "(1 - np.tri(n_q, n_k)) * -1e9"),
        ("additive mask", "(1 - np.tri(n_q, n_k)) * -1e4"),
        ("Expected True and False; got floats, float64. .astype(bool)", "np.tri(n_q, n_k)"),
        ("Expected True and False; got whole numbers, int64", "np.tri(n_q, n_k, dtype=int)"),
        ("got list", "[[j <= i for j in range(n_k)] for i in range(n_q)]"),
        ("got (1, 5, 5)", "np.tri(n_q, n_k, dtype=bool)[None]"),
        (
            "entries are wrong, the first in row 4, column 0",
            "np.tri(n_q, n_k, dtype=bool) & (np.arange(n_q) < 4)[:, None]",
        ),
        ("when given n_q = 5 and n_k = 5", "np.tri(n_q, n_k)[n_q, 0]"),
        ("TypeError", "np.tri(n_q, n_k, dtype=bool)()"),
    ],
    "padding_mask": [
        ("inverted", "np.arange(n_k) >= lengths[:, None, None]"),
        ("lets a token of padding in", "np.arange(n_k) <= lengths[:, None, None]"),
        ("hides the last real token", "np.arange(1, n_k + 1) < lengths[:, None, None]"),
        ("middle axis is missing", "np.arange(n_k) < lengths[:, None]"),
        ("in the middle", "(np.arange(n_k) < lengths[:, None])[:, :, None]"),
        ("in the middle", "(np.arange(n_k) < lengths[:, None])[None]"),
        ("give it axes", "np.arange(n_k) < lengths"),
        ("hides the front", "np.arange(n_k) >= n_k - lengths[:, None, None]"),
        ("hides nothing", "np.ones((len(lengths), 1, n_k), dtype=bool)"),
        ("additive mask", "np.where(np.arange(n_k) < lengths[:, None, None], 0, -np.inf)"),
        ("additive mask", "np.where(np.arange(n_k) < lengths[:, None, None], 0, -1e9)"),
        ("additive mask", "np.where(np.arange(n_k) < lengths[:, None, None], 0, -1e4)"),
        (
            "Expected True and False; got whole numbers",
            "(np.arange(n_k) < lengths[:, None, None]).astype(int)",
        ),
        ("Expected True and False; got floats", "(np.arange(n_k) < lengths[:, None, None]) * 1.0"),
        ("got list", "[[[j < length for j in range(n_k)]] for length in lengths]"),
        (
            "got (3, 5, 5) for lengths [2, 5, 4] and n_k = 5",
            "np.repeat(np.arange(n_k) < lengths[:, None, None], n_k, axis=1)",
        ),
        (
            "For an empty sentence: 1 of 35 entries",
            "np.arange(n_k) < np.maximum(lengths, 1)[:, None, None]",
        ),
        ("IndexError", "np.arange(n_k) < lengths[:, None, None, 0, 0]"),
        (
            "changes its input lengths in place",
            "    lengths += 1\n    return np.arange(1, n_k + 1) < lengths[:, None, None]",
        ),
    ],
    "masked_softmax": [
        ("no effect", "row_softmax(S)"),
        ("inverted", "row_softmax(np.where(mask, -np.inf, S))"),
        ("mask after softmax, so the rows", "row_softmax(S) * mask"),
        ("mask after softmax, so the rows", "np.where(mask, row_softmax(S), 0)"),
        ("multiplied the scores by the mask", "row_softmax(S * mask)"),
        ("multiplied the scores by the mask", "row_softmax(np.where(mask, S, 0))"),
        ("added True and False", "row_softmax(S + mask)"),
        (
            "softmax ran over the queries",
            "np.nan_to_num(row_softmax(np.where(mask, S, -np.inf), axis=0))",
        ),
        ("over all entries", "    P = np.where(mask, np.exp(S), 0)\n    return P / P.sum()"),
        ("divide the powers of each row", "np.exp(S) * mask"),
        ("keepdims=True", "    P = np.exp(S) * mask\n    return P / P.sum(axis=1)"),
        ("-1e9 in place of -inf makes it uniform", "row_softmax(np.where(mask, S, -1e9))"),
        ("-1e9 added to all of its scores", "row_softmax(S + (1 - mask) * -1e9)"),
        ("In yours -inf - (-inf) is NaN", "row_softmax(np.where(mask, S, -np.inf))"),
        ("-10,000 is not low enough", "row_softmax(np.where(mask, S, -1e4))"),
        (
            "mask after softmax and divide again",
            "    A = row_softmax(S) * mask\n    return A / A.sum(axis=1, keepdims=True)",
        ),
        (
            "mask after softmax and divide again",
            "    A = row_softmax(S) * mask\n    total = A.sum(axis=1, keepdims=True)\n    return A / np.where(total == 0, 1, total)",
        ),
        (
            "Large scores overflow",
            "    P = np.exp(np.where(mask, S, -np.inf))\n    return P / P.sum(axis=1, keepdims=True)",
        ),
        (
            "Large scores overflow",
            "    P = np.exp(np.where(mask, S, -np.inf))\n    return np.nan_to_num(P / P.sum(axis=1, keepdims=True))",
        ),
        (
            "changes its input scores in place",
            "    S[~mask] = -np.inf\n    return np.nan_to_num(row_softmax(S))",
        ),
        (
            "For a row with nothing to attend to: row 2 of your weights sums to 1 instead of 0",
            "np.where(mask.any(axis=1, keepdims=True), np.nan_to_num(row_softmax(np.where(mask, S, -np.inf))), np.eye(*S.shape))",
        ),
        ("got list", "np.nan_to_num(row_softmax(np.where(mask, S, -np.inf))).tolist()"),
        ("got (7, 5)", "np.nan_to_num(row_softmax(np.where(mask, S, -np.inf))).T"),
        ("Expected floats; got True and False, bool", "mask"),
        ("ValueError", "row_softmax(np.where(mask.T, S, -np.inf))"),
    ],
    "leak_test": [
        ("True for every attention", "True"),
        ("False for every attention", "False"),
        (
            "An attention that norms its tokens first escapes",
            "any(moved_rows(attention, j, evenly=True)[:j].any() for j in range(5))",
        ),
        (
            "Outputs that are not numbers pass",
            """
    rng = np.random.default_rng(1)
    X = rng.normal(size=(6, 4))
    before = attention(X, X, X)
    for j in range(6):
        moved = X.copy()
        moved[j] = rng.normal(size=4)
        if (np.abs(attention(moved, moved, moved)[:j] - before[:j]) > 1e-9).any():
            return True
    return False""",
        ),
        (
            "False for every attention",
            "any(moved_rows(attention, j, by=0)[:j].any() for j in range(5))",
        ),
        (
            "False for every attention",
            "any(moved_rows(attention, j, by=1e-12)[:j].any() for j in range(5))",
        ),
        ("False for every attention", "bool(moved_rows(attention, 0)[:0].any())"),
        (
            "False for every attention",
            "any(moved_rows(attention, j, which='Q')[:j].any() for j in range(5))",
        ),
        ("wrong way round", "not any(moved_rows(attention, j)[:j].any() for j in range(5))"),
        (
            "output of the moved token itself",
            "any(bool(moved_rows(attention, j)[j]) for j in range(5))",
        ),
        ("output of the moved token itself", "bool(moved_rows(attention, 4)[-1])"),
        (
            "count the output of the moved token too",
            "any(moved_rows(attention, j)[:j + 1].any() for j in range(5))",
        ),
        (
            "outputs after the moved token",
            "any(moved_rows(attention, j)[j + 1:].any() for j in range(5))",
        ),
        ("any output moves", "any(moved_rows(attention, j).any() for j in range(5))"),
        ("only at the last output", "any(bool(moved_rows(attention, j)[-1]) for j in range(5))"),
        ("move only the last token", "bool(moved_rows(attention, 4)[:-1].any())"),
        ("move only one token in the middle", "bool(moved_rows(attention, 5, n=11)[:5].any())"),
        ("move only token 1", "bool(moved_rows(attention, 1)[:1].any())"),
        ("only at the first output", "any(bool(moved_rows(attention, j)[0]) for j in range(1, 5))"),
        (
            "just before the moved token",
            "any(bool(moved_rows(attention, j)[j - 1]) for j in range(1, 5))",
        ),
        (
            "change only the values",
            "any(moved_rows(attention, j, which='V')[:j].any() for j in range(5))",
        ),
        ("not the values", "any(moved_rows(attention, j, which='K')[:j].any() for j in range(5))"),
        ("not the values", "any(moved_rows(attention, j, which='QK')[:j].any() for j in range(5))"),
        (
            "A faint leak escapes",
            "any(moved_rows(attention, j, by=1e-4)[:j].any() for j in range(5))",
        ),
        (
            "Expected True or False; got whole numbers, int64",
            "int(any(moved_rows(attention, j)[:j].any() for j in range(5)))",
        ),
        (
            "Expected one answer for the whole test; got an array of shape (5,)",
            "np.array([moved_rows(attention, j)[:j].any() for j in range(5)])",
        ),
        (
            "Expected answer, True or False; got list",
            "[moved_rows(attention, j)[:j].any() for j in range(5)]",
        ),
        ("Expected answer, True or False; got str", "'it leaks'"),
        (
            "For attention without a mask: expected True, got False",
            "bool(moved_rows(attention, 4)[3]) and not bool(moved_rows(attention, 4)[0])",
        ),
        ("when given an attention function", "moved_rows(attention, 5)"),
    ],
    "split_heads": [
        ("reshaped straight to (n_heads, n, d)", "x.reshape(n_heads, len(x), -1)"),
        (
            "reshaped straight to (n_heads, n, d)",
            "x.reshape(n_heads, x.shape[0], x.shape[1] // n_heads)",
        ),
        ("tokens still stand before the heads", "x.reshape(len(x), n_heads, -1)"),
        (
            "tokens still stand before the heads",
            "np.array([[row[h * len(row) // n_heads:(h + 1) * len(row) // n_heads] for h in range(n_heads)] for row in x])",
        ),
        ("swapped the last two axes", "np.swapaxes(x.reshape(len(x), n_heads, -1), -1, -2)"),
        (".T turns all three axes round", "x.reshape(len(x), n_heads, -1).T"),
        ("Each head is transposed", "x.T.reshape(n_heads, -1, len(x))"),
        ("like cards", "np.array([x[:, h::n_heads] for h in range(n_heads)])"),
        (
            "n_heads and d are exchanged",
            "x.reshape(len(x), x.shape[1] // n_heads, n_heads).transpose(1, 0, 2)",
        ),
        ("You cut the rows", "np.array(np.split(x, n_heads))"),
        ("Each head has all the columns", "np.repeat(x[None], n_heads, axis=0)"),
        (
            "not as wide as x",
            "    n, d = x.shape\n    return x.reshape(n, n_heads, d).swapaxes(0, 1)",
        ),
        ("not as wide as x", "    n, d = x.shape\n    return x.reshape(n_heads, n, d)"),
        (
            "Divide with //. (solution raised TypeError when given x (5, 21) and n_heads = 3.)",
            "    d = x.shape[1] / n_heads\n    return x.reshape(len(x), n_heads, d).swapaxes(0, 1)",
        ),
        ("got list. Wrap it in np.array", "np.split(x, n_heads, axis=1)"),
        (
            "Expected heads of shape (3, 5, 7), (n_heads, n, d); got (5, 21) for x (5, 21) and n_heads = 3",
            "x",
        ),
        (
            "For numbers that name their place (213: row 2, column 13): the largest difference is 7",
            "np.array(np.split(x, n_heads, axis=1))[[1, 0, 2]]",
        ),
        (
            "ValueError: cannot reshape array of size 45 into shape (3,3,7) when given x (3, 15)",
            "x.reshape(len(x), n_heads, 7).swapaxes(0, 1)",
        ),
        (
            "cannot reshape array of size 154 into shape (7,3,newaxis) when given x (7, 22) and n_heads = 2",
            "x.reshape(len(x), 3, -1).swapaxes(0, 1)",
        ),
        (
            "changes its input x in place",
            "    heads = np.array(np.split(x, n_heads, axis=1))\n    x *= 0\n    return heads",
        ),
        ("ValueError", "x.reshape(n_heads, -1, len(x) + 1)"),
    ],
    "merge_heads": [
        ("reshaped without swapping axes", "heads.reshape(heads.shape[1], -1)"),
        (
            "reshaped without swapping axes",
            "    n_heads, n, d = heads.shape\n    return heads.reshape(n, n_heads * d)",
        ),
        (
            "swapped the last two axes",
            "    n_heads, n, d = heads.shape\n    return heads.transpose(0, 2, 1).reshape(n, n_heads * d)",
        ),
        (".T turns all three axes round", "heads.T.reshape(heads.shape[1], -1)"),
        (
            "one column of each head in turn",
            "np.stack(list(heads), axis=-1).reshape(heads.shape[1], -1)",
        ),
        (
            "one column of each head in turn",
            "np.array([[head[i, c] for c in range(heads.shape[2]) for head in heads] for i in range(heads.shape[1])])",
        ),
        ("added the heads up", "sum(heads)"),
        ("mean of the heads", "heads.mean(axis=0)"),
        ("one below the other", "np.concatenate(heads)"),
        ("one below the other", "np.vstack(heads)"),
        ("Each of your rows is a head", "np.array([head.ravel() for head in heads])"),
        ("one step is left", "np.stack(heads, axis=1)"),
        ("Your result is transposed", "np.concatenate(heads.swapaxes(1, 2))"),
        ("Expected merged heads of shape (5, 21), a row per token", "heads"),
        ("got (1, 5, 21)", "np.concatenate(heads, axis=1)[None]"),
        ("got list", "np.concatenate(heads, axis=1).tolist()"),
        ("each entry of your merged heads is 2 times", "np.hstack(heads) + np.hstack(heads)"),
        ("the largest difference is 14, in row 0, column 0", "np.hstack(heads[::-1])"),
        (
            "shape (3, 15), a row per token, with the numbers of all heads; got (5, 9)",
            "heads.swapaxes(0, 1).reshape(5, -1)",
        ),
        (
            "IndexError: index 2 is out of bounds for axis 0 with size 2 when given heads (2, 7, 11).",
            "np.hstack([heads[0], heads[1], heads[2]])",
        ),
        ("AxisError", "np.concatenate(heads, axis=2)"),
        ("ValueError", "heads.swapaxes(0, 1).reshape(len(heads), heads.shape[1])"),
    ],
    "sinusoidal_positions": [
        ("exchanged", but(WAVES, ("0::2", "new"), ("1::2", "0::2"), ("new", "1::2"))),
        (
            "exchanged",
            but(WAVES, ("np.sin", "new"), ("np.cos", "np.sin"), ("new", "np.cos")),
        ),
        (
            "All sines stand before all cosines",
            but(WAVES, ("0::2", ":d_model // 2"), ("1::2", "d_model // 2:")),
        ),
        ("All your columns are sines", but(WAVES, ("cos", "sin"))),
        ("All your columns are cosines", but(WAVES, ("sin", "cos"))),
        ("Your exponent is i / d_model", but(WAVES, ("2 * i", "i"))),
        (
            "You put the column into 2i",
            """
    PE = np.zeros((n, d_model))
    for p in range(n):
        for j in range(d_model):
            angle = p / 10000 ** (2 * j / d_model)
            PE[p, j] = math.sin(angle) if j % 2 == 0 else math.cos(angle)
    return PE""",
        ),
        (
            "a wavelength of its own",
            """
    j = np.arange(d_model)
    angles = np.arange(n)[:, None] / 10000 ** (j / d_model)
    return np.where(j % 2, np.cos(angles), np.sin(angles))""",
        ),
        (
            "d_model / 2 - 1, as some libraries do",
            but(WAVES, ("2 * i / d_model", "i / np.maximum(d_model / 2 - 1, 1e-9)")),
        ),
        ("every exponent is 0", but(WAVES, ("2 * i /", "2 * i //"))),
        ("not 10,000", but(WAVES, ("10000", "1000"))),
        ("not 10,000", but(WAVES, ("10000", "100000"))),
        ("count from 1", but(WAVES, ("np.arange(n)", "np.arange(1, n + 1)"))),
        ("You multiplied the position", but(WAVES, ("None] /", "None] *"))),
        ("You multiplied the position", but(WAVES, ("(2 * i", "(-2 * i"))),
        (
            "np.sin takes radians",
            but(
                WAVES,
                ("sin(angles)", "sin(np.deg2rad(angles))"),
                ("cos(angles)", "cos(np.deg2rad(angles))"),
            ),
        ),
        (
            "np.sin takes radians",
            but(WAVES, ("(angles)", "(angles * 180 / np.pi)")),
        ),
        ("These are the angles", but(WAVES, ("np.sin", ""), ("np.cos", ""))),
        ("Your result is transposed", but(WAVES, ("return PE", "return PE.T"))),
        (
            "Expected positions of shape (7, 22), a row per position, a column per dimension; got (7, 11) for n = 7 and d_model = 22",
            but(WAVES, ("return PE", "return PE[:, 0::2]")),
        ),
        (
            "For n = 11, d_model = 6: the largest difference is",
            but(WAVES, ("/ d_model)", "/ 22)")),
        ),
        (
            "each entry of your positions is 1.414 times",
            but(WAVES, ("return PE", "return math.sqrt(2) * PE")),
        ),
        ("Digits get lost", but(WAVES, ("return PE", "return PE.astype(np.float32)"))),
        ("got list", but(WAVES, ("return PE", "return list(PE)"))),
        ("ValueError", but(WAVES, ("d_model // 2)", "d_model)"))),
    ],
    "relative_bias": [
        (
            "Your offsets are i - j",
            but(
                BIAS,
                (
                    "np.arange(n_k) - np.arange(n_q)[:, None]",
                    "np.arange(n_q)[:, None] - np.arange(n_k)",
                ),
            ),
        ),
        (
            "You did not clip",
            but(BIAS, ("np.clip(offset, -m, m)", "offset")),
        ),
        (
            "np.clip(j - i, -m, m). (solution raised IndexError when given S (5, 7) and table (3,).)",
            "np.array([[S[i, j] + table[j - i + len(table) // 2] for j in range(S.shape[1])] for i in range(len(S))])",
        ),
        (
            "clipped above m, not below -m",
            but(BIAS, ("np.clip(offset, -m, m)", "np.minimum(offset, m)")),
        ),
        (
            "clipped below -m, not above m",
            but(BIAS, ("np.clip(offset, -m, m)", "np.maximum(offset, -m)")),
        ),
        ("+ m is missing", but(BIAS, (" + m]", "]"))),
        (
            "to the length of the table without + m",
            but(BIAS, ("np.clip(offset, -m, m) + m", "np.clip(offset, 0, 2 * m)")),
        ),
        ("m is not the length of the table", but(BIAS, ("len(table) // 2", "len(table)"))),
        (
            "% lets far keys come round",
            but(BIAS, ("np.clip(offset, -m, m) + m", "(offset + m) % len(table)")),
        ),
        ("distance |j - i|", but(BIAS, ("np.clip(offset, -m, m)", "np.minimum(abs(offset), m)"))),
        (
            "distance |j - i|",
            but(BIAS, ("np.clip(offset, -m, m) + m", "np.minimum(abs(offset), m)")),
        ),
        (
            "Keys beyond m get no bias",
            """
    m = len(table) // 2
    biased = S.copy()
    for i in range(S.shape[0]):
        for j in range(S.shape[1]):
            if -m <= j - i <= m:
                biased[i, j] += table[j - i + m]
    return biased""",
        ),
        ("This is the bias alone", but(BIAS, ("S + table", "table"))),
        ("You multiplied the scores", but(BIAS, ("S + table", "S * table"))),
        ("away from the scores", but(BIAS, ("S + table", "S - table"))),
        (
            "The offsets have a row per key",
            but(
                BIAS,
                (
                    "np.arange(n_k) - np.arange(n_q)[:, None]",
                    "np.arange(n_q) - np.arange(n_k)[:, None]",
                ),
            ),
        ),
        (
            "One step too far",
            but(
                BIAS,
                (
                    "S + table[np.clip(offset, -m, m) + m]",
                    "row_softmax(S + table[np.clip(offset, -m, m) + m])",
                ),
            ),
        ),
        (
            "For a table that reaches every key: the largest difference",
            but(BIAS, ("-m, m)", "-1, 1)")),
        ),
        (
            "For keys beyond the table: the largest difference",
            but(BIAS, ("np.clip(offset, -m, m)", "np.where(abs(offset) <= m, offset, 0)")),
        ),
        (
            "got list",
            but(
                BIAS,
                (
                    "return S + table[np.clip(offset, -m, m) + m]",
                    "return (S + table[np.clip(offset, -m, m) + m]).tolist()",
                ),
            ),
        ),
        (
            "changes its input S in place",
            but(
                BIAS,
                (
                    "return S + table[np.clip(offset, -m, m) + m]",
                    "S += table[np.clip(offset, -m, m) + m]\n    return S",
                ),
            ),
        ),
        ("IndexError", but(BIAS, ("len(table) // 2", "len(table) / 2"))),
    ],
    "layer_norm": [
        ("down the columns", but(NORM, ("axis=1", "axis=0"))),
        ("down the columns", "gamma * (x - x.mean(0)) / np.sqrt(x.var(0) + 1e-5) + beta"),
        ("for all entries", "gamma * (x - x.mean()) / np.sqrt(x.var() + 1e-5) + beta"),
        (
            "outside of the root",
            but(NORM, ("np.sqrt(variance + 1e-5)", "(np.sqrt(variance) + 1e-5)")),
        ),
        (
            "outside of the root",
            "gamma * (x - x.mean(-1, keepdims=True)) / (x.std(-1, keepdims=True) + 1e-5) + beta",
        ),
        ("no ddof=1", but(NORM, ("var(axis=1,", "var(axis=1, ddof=1,"))),
        ("Epsilon is missing", but(NORM, (" + 1e-5", ""))),
        ("not 1e-5", but(NORM, ("1e-5", "1e-3"))),
        ("not 1e-5", but(NORM, ("1e-5", "1e-6"))),
        ("not 1e-5", but(NORM, ("1e-5", "1e-12"))),
        ("did not subtract the mean", but(NORM, ("(x - mean)", "x"))),
        (
            "RMSNorm",
            "gamma * x / np.sqrt((x * x).mean(axis=1, keepdims=True) + 1e-5) + beta",
        ),
        ("only subtracted the mean", but(NORM, (" / np.sqrt(variance + 1e-5)", ""))),
        (
            "by the variance, not by its root",
            but(NORM, ("np.sqrt(variance + 1e-5)", "(variance + 1e-5)")),
        ),
        (
            "the length of the row",
            but(
                NORM,
                ("x.var(axis=1, keepdims=True)", "((x - mean) ** 2).sum(axis=1, keepdims=True)"),
            ),
        ),
        ("gamma and beta are missing", but(NORM, ("gamma * xhat + beta", "xhat"))),
        ("gamma is missing", but(NORM, ("gamma * ", ""))),
        ("beta is missing", but(NORM, (" + beta", ""))),
        ("added beta before gamma", but(NORM, ("xhat + beta", "(xhat + beta)"))),
        ("gamma and beta are exchanged", but(NORM, ("gamma * xhat + beta", "beta * xhat + gamma"))),
        ("keep it with keepdims=True", but(NORM, (", keepdims=True", ""))),
        (
            "keep it with keepdims=True",
            "gamma * (x - x.mean(axis=1, keepdims=True)) / np.sqrt(x.var(axis=1) + 1e-5) + beta",
        ),
        ("float32 came in and float64 went out", but(NORM, ("x - mean", "x.astype(float) - mean"))),
        (
            "float32 came in and float64 went out",
            """
    y = np.zeros(x.shape)
    for i, row in enumerate(x):
        y[i] = gamma * (row - row.mean()) / math.sqrt(row.var() + 1e-5) + beta
    return y""",
        ),
        ("changes its input x in place", "    x -= x.mean(axis=1, keepdims=True)\n" + NORM[1:]),
        (
            "For more rows than columns: the largest difference",
            but(
                NORM,
                (
                    "x.var(axis=1, keepdims=True)",
                    "((x - mean) ** 2).sum(axis=1, keepdims=True) / 7",
                ),
            ),
        ),
        (
            "For rows of equal numbers: the largest difference",
            but(NORM, ("gamma * xhat + beta", "np.where(variance > 0, gamma * xhat + beta, 0)")),
        ),
        ("For ordinary rows: the largest difference", but(NORM, ("x.mean(", "np.median(x, "))),
        ("ValueError", but(NORM, ("gamma * xhat", "gamma[:, None] * xhat"))),
    ],
    "cross_attention": [
        ("Your keys come from X", but(CROSS, ("M @ W_K", "X @ W_K"))),
        ("Your values come from X", but(CROSS, ("M @ W_V", "X @ W_V"))),
        ("This is self-attention", but(CROSS, ("M @", "X @"))),
        ("X and M are exchanged", but(CROSS, ("X @", "new"), ("M @", "X @"), ("new", "M @"))),
        ("the memory asks itself", but(CROSS, ("X @", "M @"))),
        ("W_K and W_V are exchanged", but(CROSS, ("W_K", "new"), ("W_V", "W_K"), ("new", "W_V"))),
        ("You blended the memory as it is", but(CROSS, ("A @ V", "A @ M"))),
        ("You blended the keys", but(CROSS, ("A @ V", "A @ K"))),
        ("The scores compare what is projected", but(CROSS, ("M @ W_K", "M"))),
        ("The scores compare what is projected", but(CROSS, ("X @ W_Q", "X"))),
        ("K is not transposed", but(CROSS, ("K.T", "K"))),
        ("did not scale", but(CROSS, (" / math.sqrt(K.shape[1])", ""))),
        ("by d_k, not by its square root", but(CROSS, ("math.sqrt(K.shape[1])", "Q.shape[1]"))),
        ("multiplied by the square root", but(CROSS, ("K.T /", "K.T *"))),
        ("square root of d_v", but(CROSS, ("K.shape", "V.shape"))),
        ("number of queries", but(CROSS, ("K.shape[1]", "len(X)"))),
        ("number of keys", but(CROSS, ("K.shape[1]", "len(K)"))),
        ("square root of d_model", but(CROSS, ("K.shape", "X.shape"))),
        ("softmax ran over the queries", but(CROSS, ("row_softmax(S)", "row_softmax(S, axis=0)"))),
        ("over all entries at once", but(CROSS, ("row_softmax(S)", "np.exp(S) / np.exp(S).sum()"))),
        ("divide the powers of each row", but(CROSS, ("row_softmax(S)", "np.exp(S)"))),
        (
            "Large scores overflow",
            but(CROSS, ("row_softmax(S)", "np.exp(S) / np.exp(S).sum(axis=1, keepdims=True)")),
        ),
        ("Softmax is missing", but(CROSS, ("row_softmax(S)", "S"))),
        ("These are the weights", but(CROSS, ("A @ V", "A"))),
        (
            "Expected Z: end with `return Z`. Got tuple of 2.",
            but(CROSS, ("A @ V", "A @ V, A")),
        ),
        ("got (2, 3)", but(CROSS, ("A @ V", "(A @ V).T"))),
        ("each entry of your Z is 0.5 times", but(CROSS, ("A @ V", "A @ V / 2"))),
        ("For sizes that are equal: the largest difference", but(CROSS, ("K.shape[1]", "13"))),
        (  # two slips at once: several mistakes fail here in the same way, so none is named
            "solution raised ValueError: matmul: ",
            but(CROSS, ("M @ W_V", "X @ W_V"), (" / math.sqrt(K.shape[1])", "")),
        ),
        ("changes its input M in place", but(CROSS, ("    return", "    M *= 2\n    return"))),
        ("ValueError", but(CROSS, ("W_K", "W_K.T"))),
    ],
    "cached_attention": [
        ("sees the new ones after it", but(CACHED, ("np.where(may, S, -np.inf)", "S"))),
        (
            "sees the new ones after it",
            but(CACHED, ("may = np.tri(len(X), len(K), len(keys)) > 0", "may = True")),
        ),
        ("for the first ones", but(CACHED, ("len(K), len(keys))", "len(K))"))),
        ("for the first ones", but(CACHED, ("len(K), len(keys)) > 0", "len(K), k=0) == 1"))),
        ("does not see itself", but(CACHED, ("len(keys)) > 0", "len(keys) - 1) > 0"))),
        (
            "see only each other",
            """
    K, V = X @ W_K, X @ W_V
    S = np.where(np.tri(len(X)) > 0, X @ W_Q @ K.T / math.sqrt(K.shape[1]), -np.inf)
    return row_softmax(S) @ V, np.vstack([keys, K]), np.vstack([values, V])""",
        ),
        (
            "see only what was kept before",
            """
    S = X @ W_Q @ keys.T / math.sqrt(keys.shape[1])
    return row_softmax(S) @ values, np.vstack([keys, X @ W_K]), np.vstack([values, X @ W_V])""",
        ),
        ("the keys and values that came in", but(CACHED, ("@ V, K, V", "@ V, keys, values"))),
        (
            "the new keys and values alone",
            but(CACHED, ("@ V, K, V", "@ V, K[len(keys):], V[len(keys):]")),
        ),
        (
            "new keys and values before those that are kept",
            but(
                CACHED,
                ("[keys, X @ W_K]", "[X @ W_K, keys]"),
                ("[values, X @ W_V]", "[X @ W_V, values]"),
            ),
        ),
        ("W_K and W_V are exchanged", but(CACHED, ("W_K", "new"), ("W_V", "W_K"), ("new", "W_V"))),
        ("keep the tokens as they are", but(CACHED, ("X @ W_K", "X"), ("X @ W_V", "X"))),
        ("You blended the keys", but(CACHED, ("A @ V", "A @ K"))),
        ("did not scale", but(CACHED, (" / math.sqrt(K.shape[1])", ""))),
        ("by d_k, not by its square root", but(CACHED, ("math.sqrt(K.shape[1])", "K.shape[1]"))),
        ("multiplied by the square root", but(CACHED, ("K.T /", "K.T *"))),
        ("softmax ran over the queries", but(CACHED, ("-np.inf)", "-np.inf), axis=0"))),
        ("divide the powers of each row", but(CACHED, ("row_softmax", "np.exp"))),
        (
            "Large scores overflow",
            but(
                CACHED,
                ("A = row_softmax(np.where(may, S, -np.inf))", "P = np.where(may, np.exp(S), 0)"),
                ("A @ V", "P / P.sum(axis=1, keepdims=True) @ V"),
            ),
        ),
        ("end with `return Z, keys, values`", but(CACHED, ("@ V, K, V", "@ V"))),
        (
            "Expected Z of shape (2, 13), one output for each new token",
            but(CACHED, ("return A @ V", "return (A @ V)[-1:]")),
        ),
        ("raised IndexError", but(CACHED, ("A @ V", "A @ V[len(V)]"))),
    ],
    "online_softmax": [
        (
            "When the maximum rises, what you summed before",
            but(ONLINE, ("total * shrink", "total"), ("z * shrink", "z")),
        ),
        ("rescale the output but not the sum", but(ONLINE, ("total * shrink", "total"))),
        ("rescale the sum of the powers but not the output", but(ONLINE, ("z * shrink", "z"))),
        (
            "upside down",
            but(ONLINE, ("np.exp(largest - new)", "np.exp(new - largest) if i else 1")),
        ),
        ("upside down", but(ONLINE, ("* shrink", "/ (shrink or 1)"))),
        ("NaN from the first block on", but(ONLINE, ("largest - new", "new - largest"))),
        ("NaN from the first block on", but(ONLINE, ("scores - new", "scores - largest"))),
        (
            "Each block subtracts its own maximum",
            but(ONLINE, ("max(largest, scores.max())", "scores.max()"), (" * shrink", "")),
        ),
        (
            "Each block subtracts its own maximum",
            """
    total, z = 0, 0
    for i in range(0, len(s), block):
        powers = np.exp(s[i:i + block] - s[i:i + block].max())
        total, z = total + powers.sum(), z + powers @ V[i:i + block]
    return z / total""",
        ),
        ("Your maximum can fall", but(ONLINE, ("max(largest, scores.max())", "scores.max()"))),
        (
            "You keep the maximum of the first block",
            but(ONLINE, ("max(largest, scores.max())", "largest if i else scores.max()")),
        ),
        (
            "You keep the maximum of the first block",
            """
    total, z = 0, 0
    for i in range(0, len(s), block):
        powers = np.exp(s[i:i + block] - s[:block].max())
        total, z = total + powers.sum(), z + powers @ V[i:i + block]
    return z / total""",
        ),
        ("Your maximum starts too high", but(ONLINE, ("-np.inf, 0, ", "0, 0, "))),
        (
            "Large scores overflow: keep a running maximum",
            """
    total, z = 0, 0
    for i in range(0, len(s), block):
        powers = np.exp(s[i:i + block])
        total, z = total + powers.sum(), z + powers @ V[i:i + block]
    return z / total""",
        ),
        ("Large scores overflow: keep a running maximum", "np.exp(s) @ V / np.exp(s).sum()"),
        (
            "mean of the blocks' own softmaxes",
            "np.mean([row_softmax(s[i:i + block]) @ V[i:i + block] for i in range(0, len(s), block)], axis=0)",
        ),
        (
            "added up the blocks' own softmaxes",
            "sum(row_softmax(s[i:i + block]) @ V[i:i + block] for i in range(0, len(s), block))",
        ),
        (
            "last block is dropped",
            but(ONLINE, ("range(0, len(s), block)", "range(0, len(s) - block + 1, block)")),
        ),
        (
            "last block is dropped",
            but(ONLINE, ("range(0, len(s), block)", "[block * b for b in range(len(s) // block)]")),
        ),
        (
            "Only the last block is left",
            but(ONLINE, ("total * shrink + ", ""), ("z * shrink + ", "")),
        ),
        ("powers of the last block alone", but(ONLINE, ("total * shrink + ", ""))),
        ("The division is missing", but(ONLINE, ("z / total", "z"))),
        (
            "Expected output of shape (3,), one number for each dimension of the values; got (3, 1) for s (7,), V (7, 3) and block = 2",
            but(ONLINE, ("z / total", "(z / total)[:, None]")),
        ),
        ("For seven keys in blocks of 2: the largest difference", "V.mean(axis=0)"),
        (
            "For eleven keys in blocks of 3: the largest difference",
            "\n    s, V = s[:7], V[:7]" + ONLINE,
        ),
        (
            "number sections must be larger than 0 when given s (7,), V (7, 3) and block = 13.",
            """
    parts = zip(np.array_split(s, len(s) // block), np.array_split(V, len(s) // block))
    largest, total, z = s.max(), 0, 0
    for scores, values in parts:
        powers = np.exp(scores - largest)
        total, z = total + powers.sum(), z + powers @ values
    return z / total""",
        ),
        (
            "For one key at a time: the largest difference",
            but(ONLINE, ("len(s)", "len(s) - (block == 1)")),
        ),
        (
            "Your maximum starts too high",
            but(ONLINE, ("-np.inf, 0, ", "-5000, 0, ")),
        ),
        ("got list", but(ONLINE, ("z / total", "(z / total).tolist()"))),
        ("Digits get lost", but(ONLINE, ("z / total", "(z / total).astype(np.float32)"))),
        (
            "changes its input s in place",
            "    s -= s.max()\n    return np.exp(s) @ V / np.exp(s).sum()",
        ),
        ("IndexError", "sum(math.exp(s[i]) * V[i + 1] for i in range(len(s)))"),
    ],
    "softmax_backward": [
        ("only the diagonal of the Jacobian", "A * (1 - A) * dA"),
        ("only the diagonal of the Jacobian", "(A - A ** 2) * dA"),
        (
            "leaves out the diagonal",
            """
    dS = np.zeros_like(A)
    for i in range(A.shape[0]):
        for j in range(A.shape[1]):
            dS[i, j] = sum(-A[i, j] * A[i, m] * dA[i, m] for m in range(A.shape[1]) if m != j)
    return dS""",
        ),
        ("Nothing is subtracted", "A * dA"),
        ("plain sum of dA", but(BACKWARD, ("(A * dA).sum", "dA.sum"))),
        ("plain mean of dA", but(BACKWARD, ("(A * dA).sum", "dA.mean"))),
        ("runs down the columns", but(BACKWARD, ("axis=-1, keepdims=True", "axis=0"))),
        ("one sum for all rows", but(BACKWARD, ("axis=-1, keepdims=True", ""))),
        ("keep it with keepdims=True", but(BACKWARD, (", keepdims=True", ""))),
        ("meets every row with every other", "A * (dA - A @ dA.T)"),
        ("factor A in front is missing", but(BACKWARD, ("A * (dA - share)", "dA - share"))),
        ("sign is wrong", but(BACKWARD, ("dA - share", "share - dA"))),
        ("You added the sum", but(BACKWARD, ("dA - share", "dA + share"))),
        ("exchanged", but(BACKWARD, ("A * (dA - share)", "dA * (A - share)"))),
        ("Do not take their softmax once more", "    A = row_softmax(A)\n" + BACKWARD[1:]),
        (
            "This is the Jacobian",
            "np.stack([np.diag(row) - np.outer(row, row) for row in A])",
        ),
        (
            "square root of n_k",
            but(BACKWARD, ("(dA - share)", "(dA - share) / math.sqrt(A.shape[1])")),
        ),
        (
            "changes its input dA in place",
            "    dA -= (A * dA).sum(axis=1, keepdims=True)\n    return A * dA",
        ),
        ("Digits get lost", but(BACKWARD, ("A * (dA - share)", "np.float32(A * (dA - share))"))),
        ("each entry of your dS is 2 times", but(BACKWARD, ("A * (", "2 * A * ("))),
        ("row 0 of your dS sums to 0.2903 instead of 0.", "A * dA[:, ::-1]"),
        ("Expected dS of shape (3, 5)", "(A * dA).sum(axis=-1, keepdims=True)"),
        ("there is NaN in your dS", "A * A * dA / A - A * (A * dA).sum(axis=-1, keepdims=True)"),
    ],
    "mean_price": [
        ("without shifting", but(PRICE, ("[start] + sentence[:-1]", "sentence"))),
        (
            "one too late",
            but(PRICE, ("sentence[:-1]", "sentence"), ("model(fed)", "model(fed)[1:]")),
        ),
        (
            "shifted the wrong way",
            but(PRICE, ("[start] + sentence[:-1]", "sentence[1:] + [start]")),
        ),
        (
            "shifted the wrong way",
            but(
                PRICE,
                ("[start] + sentence[:-1]", "sentence + [start]"),
                ("model(fed)", "model(fed)[1:]"),
            ),
        ),
        ("rolled the sentence", but(PRICE, ("[start] + sentence[:-1]", "np.roll(sentence, 1)"))),
        (
            "start is missing",
            """
    shares = row_softmax(model(sentence[:-1]))
    return -np.mean([np.log(shares[i, word]) for i, word in enumerate(sentence[1:])])""",
        ),
        ("first word is missing", but(PRICE, ("return prices", "return prices[1:]"))),
        ("last word is missing", but(PRICE, ("return prices", "return prices[:-1]"))),
        ("priced the words that were fed", but(PRICE, (", sentence]", ", fed]"))),
        ("put 0 before", but(PRICE, ("[start]", "[0]"))),
        (
            "fed each word alone",
            """
    prices = []
    for before, word in zip([start] + sentence, sentence):
        prices.append(-np.log(row_softmax(model([before]))[0, word]))
    return sum(prices) / len(prices)""",
        ),
        (
            "its own guesses",
            """
    fed, prices = [start], []
    for word in sentence:
        shares = row_softmax(model(fed))[-1]
        prices.append(-math.log(shares[word]))
        fed.append(shares.argmax())
    return np.mean(prices)""",
        ),
        (
            "last row for every word",
            but(PRICE, ("[np.arange(len(sentence)), sentence]", "[-1, sentence]")),
        ),
        ("priced one word alone", but(PRICE, ("prices.mean()", "prices[-1]"))),
        ("priced one word alone", but(PRICE, ("prices.mean()", "prices[0]"))),
        ("from every row", but(PRICE, ("np.arange(len(sentence))", ":"))),
        ("all words of the vocabulary", but(PRICE, ("[np.arange(len(sentence)), sentence]", ""))),
        ("best word", but(PRICE, ("[np.arange(len(sentence)), sentence]", ".max(axis=1)"))),
        (
            "entropy",
            but(
                PRICE,
                ("shares[np.arange(len(sentence)), sentence]", "shares"),
                ("prices.mean()", "(shares * prices).sum(1).mean()"),
            ),
        ),
        ("axis 0", but(PRICE, ("model(fed))", "model(fed), axis=0)"))),
        (
            "all scores at once",
            but(
                PRICE, ("row_softmax(model(fed))", "np.exp(model(fed)) / np.exp(model(fed)).sum()")
            ),
        ),
        ("ln of the scores", but(PRICE, ("row_softmax(model(fed))", "model(fed)"))),
        ("mean of -score", but(PRICE, ("row_softmax", "np.exp"))),
        (
            "powers of e",
            but(
                PRICE,
                ("row_softmax(model(fed))", "model(fed) / model(fed).sum(axis=1, keepdims=True)"),
            ),
        ),
        (
            "softmax twice",
            but(PRICE, ("row_softmax(model(fed))", "row_softmax(row_softmax(model(fed)))")),
        ),
        ("sign is wrong", but(PRICE, ("-np.log", "np.log"))),
        ("base 2", but(PRICE, ("np.log", "np.log2"))),
        ("base 10", but(PRICE, ("np.log", "np.log10"))),
        ("sum of the prices", but(PRICE, ("mean", "sum"))),
        (
            "number of tokens that the model knows",
            but(PRICE, ("prices.mean()", "prices.sum() / shares.shape[1]")),
        ),
        ("one word too many", but(PRICE, ("prices.mean()", "prices.sum() / (len(sentence) + 1)"))),
        (
            "-ln of the mean share",
            but(PRICE, ("-np.log(", "("), ("prices.mean()", "-np.log(prices.mean())")),
        ),
        ("mean of the shares", but(PRICE, ("-np.log", ""))),
        ("mean of -share", but(PRICE, ("-np.log", "-"))),
        ("1 - share", but(PRICE, ("-np.log(", "(1 - "))),
        ("perplexity", but(PRICE, ("prices.mean()", "np.exp(prices.mean())"))),
        ("Expected one price", but(PRICE, ("prices.mean()", "prices"))),
        (
            "changes its input sentence in place",
            but(PRICE, ("prices.mean()", "(prices.mean(), sentence.pop())[0]")),
        ),
    ],
    "grouped_attention": [
        (
            "came in turn",
            but(
                GROUPED,
                ("np.repeat(keys, times, axis=-3)", "np.concatenate([keys] * times, axis=-3)"),
                ("np.repeat(values, times, axis=-3)", "np.concatenate([values] * times, axis=-3)"),
            ),
        ),
        (
            "divided h by n_kv_heads",
            """
    n_heads, n_kv = queries.shape[-3], keys.shape[-3]
    Z = np.zeros((*queries.shape[:-1], values.shape[-1]), values.dtype)
    for h in range(n_heads):
        K, V = keys[..., h // n_kv, :, :], values[..., h // n_kv, :, :]
        S = queries[..., h, :, :] @ K.swapaxes(-2, -1) / math.sqrt(K.shape[-1])
        Z[..., h, :, :] = row_softmax(S) @ V
    return Z""",
        ),
        (
            "the values in turn",
            but(
                GROUPED,
                ("np.repeat(values, times, axis=-3)", "np.concatenate([values] * times, axis=-3)"),
            ),
        ),
        (
            "the keys in turn",
            but(
                GROUPED,
                ("np.repeat(keys, times, axis=-3)", "np.concatenate([keys] * times, axis=-3)"),
            ),
        ),
        (
            "key head 0",
            but(
                GROUPED,
                ("np.repeat(keys, times, axis=-3)", "keys[..., :1, :, :]"),
                ("np.repeat(values, times, axis=-3)", "values[..., :1, :, :]"),
            ),
        ),
        ("groups run backwards", but(GROUPED, ("axis=-3)", "axis=-3)[..., ::-1, :, :]"))),
        (
            "mean over the key heads",
            but(
                GROUPED,
                ("np.repeat(keys, times, axis=-3)", "keys.mean(-3, keepdims=True)"),
                ("np.repeat(values, times, axis=-3)", "values.mean(-3, keepdims=True)"),
            ),
        ),
        (
            "mean of the queries",
            """
    n_kv, n_k, d_k = keys.shape[-3:]
    q = queries.reshape(*queries.shape[:-3], n_kv, -1, *queries.shape[-2:]).mean(axis=-3)
    return row_softmax(q @ keys.swapaxes(-2, -1) / math.sqrt(d_k)) @ values""",
        ),
        ("only without a batch", but(GROUPED, ("axis=-3", "axis=0"))),
        ("did not scale", but(GROUPED, (" / math.sqrt(queries.shape[-1])", ""))),
        (
            "not by its square root",
            but(GROUPED, ("math.sqrt(queries.shape[-1])", "queries.shape[-1]")),
        ),
        ("You multiplied", but(GROUPED, ("/ math", "* math"))),
        ("size of the values", but(GROUPED, ("(queries.shape[-1])", "(values.shape[-1])"))),
        ("number of keys", but(GROUPED, ("(queries.shape[-1])", "(keys.shape[-2])"))),
        ("number of queries", but(GROUPED, ("(queries.shape[-1])", "(queries.shape[-2])"))),
        ("number of heads", but(GROUPED, ("(queries.shape[-1])", "(queries.shape[-3])"))),
        (
            "number of key heads",
            but(
                GROUPED,
                ("times =", "n_kv = keys.shape[-3]\n    times ="),
                ("(queries.shape[-1])", "(n_kv)"),
            ),
        ),
        (
            "n_heads * d_k",
            but(GROUPED, ("(queries.shape[-1])", "(queries.shape[-1] * queries.shape[-3])")),
        ),
        ("over the queries", but(GROUPED, ("row_softmax(S)", "row_softmax(S, axis=-2)"))),
        ("over the heads", but(GROUPED, ("row_softmax(S)", "row_softmax(S, axis=-3)"))),
        ("Softmax is missing", but(GROUPED, ("row_softmax(S)", "S"))),
        ("These are the weights", but(GROUPED, ("A @ values", "A"))),
        ("Return the output alone", but(GROUPED, ("A @ values", "A @ values, A"))),
        (
            "You merged the heads",
            but(
                GROUPED,
                (
                    "return A @ values",
                    "Z = (A @ values).swapaxes(-3, -2)\n    return Z.reshape(*Z.shape[:-2], -1)",
                ),
            ),
        ),
        (
            "tokens stand before its heads",
            but(GROUPED, ("A @ values", "(A @ values).swapaxes(-3, -2)")),
        ),
        ("blended the keys", but(GROUPED, ("A @ values", "A @ keys"))),
        ("raised ValueError", but(GROUPED, ("np.repeat(keys, times, axis=-3)", "keys"))),
        ("raised ValueError", but(GROUPED, ("axis=-3", "axis=-2"))),
    ],
}

RIGHT = {
    "weighted_average": [
        "row_softmax(np.outer(x, x)) @ x",
        "np.array([(np.exp(xi * x) * x).sum() / np.exp(xi * x).sum() for xi in x], dtype=x.dtype)",
        "np.einsum('ij,j->i', row_softmax(x[:, None] * x), x)",
    ],
    "softmax": [
        "row_softmax(S)",
        "np.exp(S - np.logaddexp.reduce(S, axis=-1, keepdims=True))",
        """
    A = np.zeros_like(S)
    for i in range(S.shape[0]):
        largest = max(S[i])
        powers = [math.exp(s - largest) for s in S[i]]
        for j in range(S.shape[1]):
            A[i, j] = powers[j] / sum(powers)
    return A""",
    ],
    "attention_for_one_query": [
        "row_softmax(K @ q / math.sqrt(len(q))) @ V",
        "np.einsum('n,nv->v', row_softmax(np.einsum('nk,k->n', K, q) / math.sqrt(q.shape[0])), V)",
        """
    scores = [sum(a * b for a, b in zip(q, k)) / math.sqrt(len(q)) for k in K]
    powers = [math.exp(s - max(scores)) for s in scores]
    output = np.zeros_like(V[0])
    for power, value in zip(powers, V):
        output += power / sum(powers) * value
    return output""",
    ],
    "attention": [
        "    A = row_softmax(Q @ K.T / math.sqrt(Q.shape[1]))\n    return A @ V, A",
        "    A = row_softmax(np.einsum('qd,kd->qk', Q, K) * Q.shape[1] ** -0.5)\n    return np.einsum('qk,kv->qv', A, V), A",
        """
    A = np.zeros((len(Q), len(K)), Q.dtype)
    for i, q in enumerate(Q):
        scores = np.array([q @ k for k in K]) / math.sqrt(len(q))
        powers = np.exp(scores - scores.max())
        A[i] = powers / powers.sum()
    Z = np.array([sum(a * v for a, v in zip(row, V)) for row in A])
    return Z, A""",
    ],
    "scaled_scores": [
        "Q @ K.T / math.sqrt(Q.shape[-1])",
        "(Q / Q.shape[1] ** 0.25) @ (K / K.shape[1] ** 0.25).T",
        "np.einsum('qd,kd->qk', Q, K) * Q.shape[1] ** -0.5",
        "np.array([[q @ k / math.sqrt(len(q)) for k in K] for q in Q], dtype=Q.dtype)",
    ],
    "causal_mask": [
        "np.tri(n_q, n_k, dtype=bool)",
        "np.arange(n_k) <= np.arange(n_q)[:, None]",
        "~np.triu(np.ones((n_q, n_k), dtype=bool), k=1)",
        "np.array([[j <= i for j in range(n_k)] for i in range(n_q)])",
    ],
    "padding_mask": [
        "np.arange(n_k) < lengths[:, None, None]",
        "np.array([[[j < length for j in range(n_k)]] for length in lengths])",
        """
    mask = np.zeros((len(lengths), 1, n_k), dtype=bool)
    for b, length in enumerate(lengths):
        mask[b, 0, :length] = True
    return mask""",
    ],
    "masked_softmax": [
        "np.nan_to_num(row_softmax(np.where(mask, S, -np.inf)))",
        """
    low = np.where(mask, S, -np.inf)
    largest = low.max(axis=1, keepdims=True)
    powers = np.exp(low - np.where(np.isfinite(largest), largest, 0))
    total = powers.sum(axis=1, keepdims=True)
    return powers / np.where(total == 0, 1, total)""",
        """
    A = np.zeros_like(S)
    for i in range(len(S)):
        seen = S[i, mask[i]]
        if seen.size:
            A[i, mask[i]] = np.exp(seen - seen.max()) / np.exp(seen - seen.max()).sum()
    return A""",
        "np.where(mask, row_softmax(np.where(mask, S, -1e30)), 0)",
    ],
    "leak_test": [
        "any(moved_rows(attention, j)[:j].any() for j in range(5))",
        "bool(np.triu(np.array([moved_rows(attention, j, n=7) for j in range(7)]).T, k=1).any())",
        """
    X = np.random.default_rng(0).normal(size=(6, 4))
    before = attention(X, X, X)
    for j in range(6):
        moved = X.copy()
        moved[j] = -3 * moved[j]
        if not np.abs(attention(moved, moved, moved)[:j] - before[:j]).sum() <= 1e-9:
            return True
    return False""",
        """
    X = np.random.default_rng(1).integers(-2, 3, (4, 5)).tolist()
    for j in range(1, 4):
        moved = [list(row) for row in X]
        moved[j] = [9 - number for number in moved[j]]
        if not np.array_equal(attention(X, X, X)[:j], attention(moved, moved, moved)[:j]):
            return np.True_
    return np.False_""",
    ],
    "split_heads": [
        "x.reshape(len(x), n_heads, -1).swapaxes(0, 1)",
        "np.stack(np.split(x, n_heads, axis=1))",
        "np.einsum('nhd->hnd', x.reshape(len(x), n_heads, x.shape[1] // n_heads))",
        "x.T.reshape(n_heads, -1, len(x)).swapaxes(1, 2)",
        """
    d = x.shape[1] // n_heads
    heads = np.zeros((n_heads, len(x), d), x.dtype)
    for h in range(n_heads):
        heads[h] = x[:, h * d:(h + 1) * d]
    return heads""",
    ],
    "merge_heads": [
        "heads.swapaxes(0, 1).reshape(heads.shape[1], -1)",
        "np.concatenate(heads, axis=1)",
        "np.hstack(list(heads))",
        "np.array([np.concatenate([head[i] for head in heads]) for i in range(heads.shape[1])])",
    ],
    "sinusoidal_positions": [
        WAVES,
        """
    j = np.arange(d_model)
    angles = np.arange(n)[:, None] * np.exp(-math.log(10000) * (j // 2 * 2) / d_model)
    return np.sin(angles + j % 2 * np.pi / 2)""",
        """
    PE = []
    for p in range(n):
        row = []
        for i in range(d_model // 2):
            row += [math.sin(p / 10000 ** (2 * i / d_model)), math.cos(p / 10000 ** (2 * i / d_model))]
        PE.append(row)
    return np.array(PE)""",
    ],
    "relative_bias": [
        BIAS,
        """
    m = len(table) // 2
    biased = S.copy()
    for i in range(S.shape[0]):
        for j in range(S.shape[1]):
            biased[i, j] += table[max(0, min(2 * m, j - i + m))]
    return biased""",
        """
    n_q, n_k = S.shape
    wide = np.concatenate([np.repeat(table[0], n_q), table, np.repeat(table[-1], n_k)])
    middle = n_q + len(table) // 2
    return S + np.array([wide[middle - i:middle - i + n_k] for i in range(n_q)])""",
    ],
    "layer_norm": [
        NORM,
        """
    y = np.zeros_like(x)
    for i, row in enumerate(x):
        mean = sum(row) / len(row)
        variance = sum((row - mean) ** 2) / len(row)
        y[i] = gamma * (row - mean) / math.sqrt(variance + 1e-5) + beta
    return y""",
        """
    mean = np.mean(x, -1)[:, None]
    square = np.mean(x ** 2, -1)[:, None]
    return (x - mean) * (square - mean ** 2 + 1e-5) ** -0.5 * gamma + beta""",
    ],
    "cross_attention": [
        CROSS,
        "row_softmax(X @ (W_Q @ W_K.T) @ M.T / math.sqrt(W_Q.shape[1])) @ M @ W_V",
        """
    Z = np.zeros((len(X), W_V.shape[1]), X.dtype)
    for i, q in enumerate(X @ W_Q):
        scores = np.array([q @ k for k in M @ W_K]) / math.sqrt(len(q))
        powers = np.exp(scores - scores.max())
        Z[i] = powers / powers.sum() @ (M @ W_V)
    return Z""",
    ],
    "cached_attention": [
        CACHED,
        """
    outputs = []
    for x in X:
        keys, values = np.vstack([keys, x @ W_K]), np.vstack([values, x @ W_V])
        scores = keys @ (x @ W_Q) / math.sqrt(keys.shape[1])
        outputs.append(row_softmax(scores) @ values)
    return np.array(outputs), keys, values""",
        """
    n = len(keys)
    Q, K, V = X @ W_Q, np.concatenate([keys, X @ W_K]), np.concatenate([values, X @ W_V])
    S = Q @ K.T / math.sqrt(Q.shape[1])
    S[:, n:][np.triu_indices(len(X), 1)] = -np.inf
    return row_softmax(S) @ V, K, V""",
    ],
    "online_softmax": [
        ONLINE,
        but(ONLINE, ("-np.inf, 0, ", "s[0], 0, ")),
        """
    largest, total = s[:block].max(), 0
    output = 0 * V[0]
    while len(s):
        new = np.maximum(largest, s[:block].max())
        for score, value in zip(s[:block], V[:block]):
            output = output * np.exp(largest - new) + np.exp(score - new) * value
            total = total * np.exp(largest - new) + np.exp(score - new)
            largest = new
        s, V = s[block:], V[block:]
    return output / total""",
        """
    largest, output = -np.inf, np.zeros_like(V[0])
    for i in range(0, len(s), block):
        part = np.logaddexp.reduce(s[i:i + block])
        new = np.logaddexp(largest, part)
        output = np.exp(largest - new) * output + np.exp(s[i:i + block] - new) @ V[i:i + block]
        largest = new
    return output""",
    ],
    "softmax_backward": [
        BACKWARD,
        """
    dS = np.zeros_like(A)
    for i, (row, d_row) in enumerate(zip(A, dA)):
        dS[i] = (np.diag(row) - np.outer(row, row)) @ d_row
    return dS""",
        "A * dA - A * np.einsum('ij,ij->i', A, dA)[:, None]",
    ],
    "mean_price": [
        PRICE,
        """
    total = 0
    for i, word in enumerate(sentence):
        scores = model([start, *sentence[:i]])[-1]
        total -= scores[word] - np.log(np.exp(scores).sum())
    return float(total / len(sentence))""",
        """
    tokens = np.concatenate([[start], sentence])
    scores = model(tokens)[:-1]
    ln = scores - np.logaddexp.reduce(scores, axis=1, keepdims=True)
    return -np.take_along_axis(ln, tokens[1:, None], axis=1).mean()""",
        """
    scores = model(np.array([start] + sentence[:-1]))
    right = np.eye(scores.shape[1])[sentence]
    return -(right * np.log(row_softmax(scores))).sum() / len(right)""",
    ],
    "grouped_attention": [
        GROUPED,
        """
    *batch, n_heads, n_q, d_k = queries.shape
    Q = queries.reshape(*batch, keys.shape[-3], -1, n_q, d_k)
    S = np.einsum('...gtqd,...gkd->...gtqk', Q, keys) / math.sqrt(d_k)
    Z = np.einsum('...gtqk,...gkv->...gtqv', row_softmax(S), values)
    return Z.reshape(*batch, n_heads, n_q, -1)""",
        """
    size = queries.shape[-3] // keys.shape[-3]
    heads = []
    for h in range(queries.shape[-3]):
        K, V = keys[..., h // size, :, :], values[..., h // size, :, :]
        S = queries[..., h, :, :] @ np.swapaxes(K, -1, -2) / math.sqrt(K.shape[-1])
        heads.append(row_softmax(S) @ V)
    return np.stack(heads, axis=-3)""",
    ],
}
