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

def moved_rows(attention, j, n=5, by=1.0, which="QKV"):
    rng = np.random.default_rng(1)
    before = {"Q": rng.normal(size=(n, 3)), "K": rng.normal(size=(n, 3)), "V": rng.normal(size=(n, 2))}
    after = {name: array.copy() for name, array in before.items()}
    for name in which:
        after[name][j] += by
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
}

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
        ("no divisor", "row_softmax(np.outer(x, x) / np.sqrt(len(x))) @ x"),
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
        ("float32 came in and float64 went out", "Q @ K.T / np.sqrt(Q.shape[1])"),
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
        if np.abs(attention(moved, moved, moved)[:j] - before[:j]).sum() > 1e-9:
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
}
