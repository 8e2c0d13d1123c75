# ruff: noqa: N803 -- learners write X, M, W_Q and V as in the formula, and messages repeat them
"""Checkers of chapters 8 and 10: layer norm, cross-attention, a cache."""

import math

import numpy as np

from attnlib import attention as exact
from attnlib import norms
from attnlib.check import words
from attnlib.check.verdict import draw, judge

# Chapter 8


def layer_norm(function):
    """Check layer norm, Eq. (1) of chapter 8, with an epsilon of 1e-5.

    Parameters
    ----------
    function : callable
        Takes x (..., d), gamma (d,) and beta (d,), returns an array of the shape of x.

    Returns
    -------
    Verdict
    """

    def right(x, gamma, beta):
        return norms.layer_norm(x, gamma, beta)

    def mean(x):
        return x.mean(axis=-1, keepdims=True)

    def variance(x, **options):
        return x.var(axis=-1, keepdims=True, **options)

    def root(x, eps=1e-5):
        return np.sqrt(variance(x) + eps)

    def normed(x, centre=mean, spread=root):
        return (x - centre(x)) / spread(x)

    def scaled(**how):
        """Return layer norm with another centre or spread, made of x."""
        return lambda x, gamma, beta: gamma * normed(x, **how) + beta

    def along(axis):
        """Return layer norm along another axis, or other axes."""

        def function(x, gamma, beta):
            centred = x - x.mean(axis=axis, keepdims=True)
            return gamma * centred / np.sqrt(x.var(axis=axis, keepdims=True) + 1e-5) + beta

        return function

    def by_matrix(x, gamma, beta):
        return np.stack([along(None)(each, gamma, beta) for each in x])

    only_matrices = (
        "For a matrix it is right, but there may be any number of axes before the last: axis=-1, "
        "not axis=1, and no loop over the first axis."
    )
    lost = "The mean or the variance of each row lost its axis: keep it with keepdims=True."
    not_1e5 = "Your epsilon is not 1e-5."
    mistakes = [
        (only_matrices, along(1)),
        (only_matrices, by_matrix),
        (
            "You took mean and variance down the columns, over the tokens. Each token is normed by "
            "itself: axis=-1.",
            scaled(centre=lambda x: x.mean(axis=0), spread=lambda x: np.sqrt(x.var(axis=0) + 1e-5)),
        ),
        (
            "You took one mean and one variance for all entries. Each row has its own: axis=-1.",
            scaled(centre=np.mean, spread=lambda x: np.sqrt(x.var() + 1e-5)),
        ),
        (
            "Epsilon stands outside of the root. It belongs under it: sqrt(variance + epsilon).",
            scaled(spread=lambda x: x.std(axis=-1, keepdims=True) + 1e-5),
        ),
        (
            "Your variance is divided by d - 1. Here it is divided by d: no ddof=1.",
            scaled(spread=lambda x: np.sqrt(variance(x, ddof=1) + 1e-5)),
        ),
        (
            "Epsilon is missing: a row of equal numbers gives 0 / 0.",
            scaled(spread=lambda x: root(x, eps=0)),
        ),
        *[
            (not_1e5, scaled(spread=lambda x, eps=eps: root(x, eps)))
            for eps in (1e-3, 1e-4, 1e-6, 1e-12)
        ],
        (
            "The root divides the mean alone. Brackets first: (x - mean) / root.",
            lambda x, gamma, beta: gamma * (x - mean(x) / root(x)) + beta,
        ),
        (
            "Your variance is the mean of x**2. It is that of (x - mean)**2.",
            scaled(spread=lambda x: np.sqrt(mean(x**2) + 1e-5)),
        ),
        (
            "You did not subtract the mean: divide x - mean, not x.",
            scaled(centre=lambda x: 0),
        ),
        (
            "This is RMSNorm: it divides by the root of the mean square and subtracts no mean.",
            scaled(centre=lambda x: 0, spread=lambda x: np.sqrt(mean(x**2) + 1e-5)),
        ),
        (
            "You only subtracted the mean. Divide by the root of the variance too.",
            scaled(spread=lambda x: 1),
        ),
        (
            "You divided by the variance, not by its root.",
            scaled(spread=lambda x: variance(x) + 1e-5),
        ),
        (
            "You divided by the length of the row. The variance is the mean of the squares, not "
            "their sum.",
            scaled(spread=lambda x: np.sqrt(x.shape[-1] * variance(x) + 1e-5)),
        ),
        ("gamma and beta are missing.", lambda x, gamma, beta: normed(x)),
        ("gamma is missing: multiply by it.", lambda x, gamma, beta: normed(x) + beta),
        ("beta is missing: add it at the end.", lambda x, gamma, beta: gamma * normed(x)),
        (
            "You added beta before gamma multiplied. First gamma, then beta.",
            lambda x, gamma, beta: gamma * (normed(x) + beta),
        ),
        (
            "gamma and beta are exchanged: gamma multiplies, beta is added.",
            lambda x, gamma, beta: beta * normed(x) + gamma,
        ),
        (lost, lambda x, gamma, beta: x - x.mean(axis=-1)),
    ]
    x, gamma, beta = draw(5, 7), 1 + draw(7, seed=1) / 2, draw(7, seed=2)
    short = draw(3, seed=3), draw(3, seed=4)
    cases = {
        "ordinary rows": (x, gamma, beta),
        # Where the variance is smaller than epsilon, the place of epsilon shows.
        "rows of small spread": (2 + x / 1e3, gamma, beta),
        "more rows than columns": (draw(7, 3, seed=5), *short),
        "rows of equal numbers": (np.full((2, 3), 2.0), *short),
        "three axes": (draw(2, 5, 3, seed=6), *short),
        "four axes": (draw(2, 3, 1, 5, seed=7), draw(5, seed=8), draw(5, seed=9)),
        "a single token, one axis": (draw(3, seed=10), *short),
        "float32": tuple(array.astype(np.float32) for array in (x, gamma, beta)),
    }
    returns = {"tokens": "as x"}
    return judge(function, right, mistakes, cases, returns)


# Chapter 10


def cross_attention(function):
    """Check cross-attention, Eq. (1) of chapter 10: X asks, the memory M answers.

    Parameters
    ----------
    function : callable
        Takes X (n_q, d_model), M (n_k, d_memory), W_Q (d_model, d_k), W_K (d_memory, d_k) and
        W_V (d_memory, d_v), returns the output Z (n_q, d_v).

    Returns
    -------
    Verdict
    """

    def right(X, M, W_Q, W_K, W_V):
        return attend(X @ W_Q, M @ W_K, M @ W_V)

    def scaled(Q, K):
        return Q @ K.T / math.sqrt(K.shape[1])

    def attend(Q, K, V):
        return exact.softmax(scaled(Q, K)) @ V

    def weighted(weights_of):
        """Return cross-attention with other weights, made of the scaled scores."""
        return lambda X, M, W_Q, W_K, W_V: weights_of(scaled(X @ W_Q, M @ W_K)) @ (M @ W_V)

    def divided(divisor):
        """Return cross-attention with another divisor, made of the sizes."""

        def function(X, M, W_Q, W_K, W_V):
            sizes = {"d_k": W_K.shape[1], "d_v": W_V.shape[1], "d_model": X.shape[1]}
            sizes |= {"n_q": len(X), "n_k": len(M), "d_memory": M.shape[1]}
            scores = X @ W_Q @ (M @ W_K).T / divisor(**sizes)
            return exact.softmax(scores) @ (M @ W_V)

        return function

    unprojected = (
        "The scores compare what is projected, Q = X W_Q with K = M W_K, and no W is transposed."
    )
    mistakes = [
        (
            "Your keys come from X. Keys and values both come from the memory: K = M W_K.",
            lambda X, M, W_Q, W_K, W_V: attend(X @ W_Q, X @ W_K, M @ W_V),
        ),
        (
            "Your values come from X. Keys and values both come from the memory: V = M W_V.",
            lambda X, M, W_Q, W_K, W_V: attend(X @ W_Q, M @ W_K, X @ W_V),
        ),
        (
            "This is self-attention: X asks X. Keys and values come from the memory M.",
            lambda X, M, W_Q, W_K, W_V: attend(X @ W_Q, X @ W_K, X @ W_V),
        ),
        (
            "X and M are exchanged: X asks, so it makes the queries; M makes keys and values.",
            lambda X, M, W_Q, W_K, W_V: attend(M @ W_Q, X @ W_K, X @ W_V),
        ),
        (
            "Here the memory asks itself. The queries come from X: Q = X W_Q.",
            lambda X, M, W_Q, W_K, W_V: attend(M @ W_Q, M @ W_K, M @ W_V),
        ),
        (
            "W_K and W_V are exchanged: K = M W_K, V = M W_V.",
            lambda X, M, W_Q, W_K, W_V: attend(X @ W_Q, M @ W_V, M @ W_K),
        ),
        (
            "You blended the memory as it is. Project it first: V = M W_V.",
            lambda X, M, W_Q, W_K, W_V: attend(X @ W_Q, M @ W_K, M),
        ),
        (
            words.KEYS_BLENDED,
            lambda X, M, W_Q, W_K, W_V: attend(X @ W_Q, M @ W_K, M @ W_K),
        ),
        (unprojected, lambda X, M, W_Q, W_K, W_V: attend(X @ W_Q, M, M @ W_V)),
        (unprojected, lambda X, M, W_Q, W_K, W_V: attend(X, M @ W_K, M @ W_V)),
        (words.UPRIGHT, lambda X, M, W_Q, W_K, W_V: (X @ W_Q) @ (M @ W_K)),
        (words.UNSCALED, divided(lambda **sizes: 1)),
        (words.BY_D_K, divided(lambda d_k, **sizes: d_k)),
        (words.HALVED, divided(lambda d_k, **sizes: d_k * 2)),
        (words.HALVED, divided(lambda d_k, **sizes: d_k / 2)),
        (words.MULTIPLIED, divided(lambda d_k, **sizes: 1 / math.sqrt(d_k))),
        (words.BY_D_V, divided(lambda d_v, **sizes: math.sqrt(d_v))),
        (words.BY_N_Q, divided(lambda n_q, **sizes: math.sqrt(n_q))),
        (words.BY_N_K, divided(lambda n_k, **sizes: math.sqrt(n_k))),
        (
            "You divided by the square root of d_model, the width of X. Use d_k, that of the keys.",
            divided(lambda d_model, **sizes: math.sqrt(d_model)),
        ),
        (
            "You divided by the square root of d_memory, the width of M. Use d_k, that of the "
            "keys.",
            divided(lambda d_memory, **sizes: math.sqrt(d_memory)),
        ),
        (
            words.TOO_LATE,
            lambda X, M, W_Q, W_K, W_V: (
                exact.softmax(X @ W_Q @ (M @ W_K).T) @ (M @ W_V) / math.sqrt(W_K.shape[1])
            ),
        ),
        (words.COLUMNS, weighted(lambda scores: exact.softmax(scores, axis=0))),
        (words.EVERYTHING, weighted(lambda scores: np.exp(scores) / np.exp(scores).sum())),
        (words.NOT_DIVIDED, weighted(np.exp)),
        ("Softmax is missing: the scaled scores were used as weights.", weighted(np.copy)),
        (
            "These are the weights. Blend the values with them: Z = A V.",
            lambda X, M, W_Q, W_K, W_V: exact.softmax(scaled(X @ W_Q, M @ W_K)),
        ),
    ]

    def drawn(n_q, n_k, d_model, d_memory, d_k, d_v):
        shapes = (n_q, d_model), (n_k, d_memory), (d_model, d_k), (d_memory, d_k), (d_memory, d_v)
        X, M, *projections = (draw(*shape, seed=seed) for seed, shape in enumerate(shapes))
        return X, M, *(W / math.sqrt(len(W)) for W in projections)

    plain = drawn(n_q=3, n_k=5, d_model=7, d_memory=11, d_k=13, d_v=2)
    cases = {
        "three queries and a memory of five": plain,
        # A swap fails above. Here each one runs, so that it can be told from the others.
        "sizes that are equal": drawn(n_q=5, n_k=5, d_model=7, d_memory=7, d_k=3, d_v=3),
        "float32": tuple(array.astype(np.float32) for array in plain),
    }
    return judge(function, right, mistakes, cases, {"Z": "one blended value for each query"})


def cached_attention(function):
    """Check causal self-attention of new tokens, with the keys and values of earlier ones kept.

    Parameters
    ----------
    function : callable
        Takes the new tokens X (n_new, d_model), the kept keys (n_kept, d_k) and values
        (n_kept, d_v), W_Q and W_K (d_model, d_k) and W_V (d_model, d_v). Returns the output
        Z (n_new, d_v) of the new tokens, and the keys and values that are kept now.

    Returns
    -------
    Verdict
    """

    def last_rows(n_new, n_all):
        return np.tri(n_new, n_all, n_all - n_new, dtype=bool)

    def kept(old, new):
        return np.vstack([old, new])

    def stepped(sees=last_rows, divisor=math.sqrt, softmax=exact.softmax, joined=kept, seen=kept):
        """Return a step with another mask, divisor or softmax, or with others kept or seen."""

        def function(X, keys, values, W_Q, W_K, W_V):
            new_keys, new_values = X @ W_K, X @ W_V
            K, V = seen(keys, new_keys), seen(values, new_values)
            scores = X @ W_Q @ K.T / divisor(K.shape[1])
            weights = softmax(np.where(sees(len(X), len(K)), scores, -np.inf))
            return weights @ V, joined(keys, new_keys), joined(values, new_values)

        return function

    right = stepped()

    def old(old, new):
        return old

    def new(old, new):
        return new

    def new_first(old, new):
        return np.vstack([new, old])

    def swapped(X, keys, values, W_Q, W_K, W_V):
        return right(X, keys, values, W_Q, W_V, W_K)

    def unprojected(X, keys, values, W_Q, W_K, W_V):
        return right(X, keys, values, W_Q, np.eye(len(W_K)), np.eye(len(W_V)))

    def masked_late(X, keys, values, W_Q, W_K, W_V):
        K, V = kept(keys, X @ W_K), kept(values, X @ W_V)
        weights = exact.softmax(X @ W_Q @ K.T / math.sqrt(K.shape[1]))
        return weights * last_rows(len(X), len(K)) @ V, K, V

    def keys_blended(X, keys, values, W_Q, W_K, W_V):
        K, V = kept(keys, X @ W_K), kept(values, X @ W_V)
        return right(X, keys, keys, W_Q, W_K, W_K)[0], K, V

    mistakes = [
        (
            "A new token sees the new ones after it. Where several come at once they need a mask: "
            "each sees what is kept, the new ones before it, and itself.",
            stepped(sees=lambda n_new, n_all: True),
        ),
        (
            "Your mask takes the new tokens for the first ones: new token 0 sees key 0 alone. They "
            "are the last. Take the last rows of the square causal mask.",
            stepped(sees=lambda n_new, n_all: np.tri(n_new, n_all, dtype=bool)),
        ),
        (
            "A new token does not see itself. Its own key and value take part too.",
            stepped(sees=lambda n_new, n_all: np.tri(n_new, n_all, n_all - n_new - 1, dtype=bool)),
        ),
        (
            "The new tokens see only each other. Append their keys and values to what is kept, "
            "then let them attend to all of it.",
            stepped(seen=new),
        ),
        (
            "The new tokens see only what was kept before. Append their own keys and values first, "
            "then attend.",
            stepped(seen=old, sees=lambda n_new, n_all: True),
        ),
        (
            "You return the keys and values that came in. The next step needs the new ones too.",
            stepped(joined=old),
        ),
        (
            "You return the new keys and values alone. The next step needs those before them too.",
            stepped(joined=new),
        ),
        (
            "You put new keys and values before those that are kept. A sentence goes on at its "
            "end: kept first, then new.",
            stepped(joined=new_first, seen=new_first),
        ),
        ("W_K and W_V are exchanged: keys are X W_K, values are X W_V.", swapped),
        (
            "What is kept is projected once: join keys with X W_K and values with X W_V, not with "
            "X, and do not project again what is kept.",
            unprojected,
        ),
        (words.KEYS_BLENDED, keys_blended),
        (words.UNSCALED, stepped(divisor=lambda d_k: 1)),
        (words.BY_D_K, stepped(divisor=lambda d_k: d_k)),
        (words.MULTIPLIED, stepped(divisor=lambda d_k: 1 / math.sqrt(d_k))),
        (words.COLUMNS, stepped(softmax=lambda scores: exact.softmax(scores, axis=0))),
        (words.NOT_DIVIDED, stepped(softmax=np.exp)),
        (
            "You mask after softmax, so the rows no longer sum to 1: mask first, softmax second.",
            masked_late,
        ),
        (
            "Your mask is inverted: True means may attend, and you blocked those.",
            stepped(sees=lambda n_new, n_all: ~last_rows(n_new, n_all)),
        ),
        (
            "You asked with the new keys. The queries are X W_Q.",
            lambda X, keys, values, W_Q, W_K, W_V: right(X, keys, values, W_K, W_K, W_V),
        ),
    ]

    def drawn(n_new, n_kept, d_model, d_k, d_v):
        shapes = (n_new, d_model), (n_kept, d_k), (n_kept, d_v)
        X, keys, values = (draw(*shape, seed=seed) for seed, shape in enumerate(shapes))
        widths = enumerate((d_k, d_k, d_v), start=3)
        projections = (draw(d_model, d, seed=seed) / math.sqrt(d_model) for seed, d in widths)
        return X, keys, values, *projections

    plain = drawn(n_new=2, n_kept=5, d_model=3, d_k=11, d_v=13)
    cases = {
        "two new tokens and five kept": plain,
        "one new token and seven kept": drawn(n_new=1, n_kept=7, d_model=5, d_k=3, d_v=2),
        "five new tokens and nothing kept": drawn(n_new=5, n_kept=0, d_model=7, d_k=3, d_v=2),
        # A swap fails above. Here each one runs, so that it can be told from the others.
        "sizes that are equal": drawn(n_new=3, n_kept=3, d_model=3, d_k=3, d_v=3),
        "float32": tuple(array.astype(np.float32) for array in plain),
    }
    returns = {
        "Z": "one output for each new token",
        "keys": "those kept before, then the new ones",
        "values": "those kept before, then the new ones",
    }
    return judge(function, right, mistakes, cases, returns)
