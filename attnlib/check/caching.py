# ruff: noqa: N803 -- learners write X, W_Q and V as in the formula, and messages repeat them
"""The checker of causal self-attention with a cache of keys and values."""

import math

import numpy as np

from attnlib import attention as exact
from attnlib.check import advice
from attnlib.check.arrays import float32, random_arrays
from attnlib.check.checker import Checker


def last_rows(n_new, n_all):
    """Return the last rows of the square causal mask."""
    return np.tri(n_new, n_all, n_all - n_new, dtype=bool)


def joined(old, new):
    """Return what is kept, and what is new after it."""
    return np.vstack([old, new])


def only_old(old, new):
    """Return what is kept alone."""
    return old


def only_new(old, new):
    """Return what is new alone."""
    return new


def new_first(old, new):
    """Return what is kept behind what is new."""
    return np.vstack([new, old])


def root(d_k, **sizes):
    """Return the right divisor."""
    return math.sqrt(d_k)


def step(mask=last_rows, divisor=root, softmax=exact.softmax, kept=joined, attended=joined):
    """Return a step with another mask, divisor or softmax, or with others kept or attended."""

    def cached_attention(X, keys, values, W_Q, W_K, W_V):
        new_keys, new_values = X @ W_K, X @ W_V
        K, V = attended(keys, new_keys), attended(values, new_values)
        scores = X @ W_Q @ K.T / divisor(d_k=K.shape[1], n_k=len(K))
        weights = softmax(np.where(mask(len(X), len(K)), scores, -np.inf))
        return weights @ V, kept(keys, new_keys), kept(values, new_values)

    return cached_attention


right = step()


def projected_again(X, keys, values, W_Q, W_K, W_V):
    """Return a step that keeps tokens instead of their keys and values."""
    return right(X, keys, values, W_Q, np.eye(len(W_K)), np.eye(len(W_V)))


def masked_late(X, keys, values, W_Q, W_K, W_V):
    """Return a step that masks after softmax."""
    K, V = joined(keys, X @ W_K), joined(values, X @ W_V)
    weights = exact.softmax(X @ W_Q @ K.T / math.sqrt(K.shape[1]))
    return weights * last_rows(len(X), len(K)) @ V, K, V


def keys_averaged(X, keys, values, W_Q, W_K, W_V):
    """Return a step whose output is an average of keys."""
    _, K, V = right(X, keys, values, W_Q, W_K, W_V)
    return right(X, keys, keys, W_Q, W_K, W_K)[0], K, V


def tokens_and_cache(n_new, n_kept, d_model, d_k, d_v):
    """Return new tokens, what is kept, and the three matrices of weights."""
    widths = [(d_model, d) for d in (d_k, d_k, d_v)]
    X, keys, values, *matrices = random_arrays(
        (n_new, d_model), (n_kept, d_k), (n_kept, d_v), *widths
    )
    return X, keys, values, *(W / math.sqrt(d_model) for W in matrices)


PLAIN = tokens_and_cache(n_new=2, n_kept=5, d_model=3, d_k=11, d_v=13)

cached_attention = Checker(
    """Check causal self-attention of new tokens, with the keys and values of earlier ones kept.

    The function takes the new tokens X (n_new, d_model), the kept keys (n_kept, d_k) and values
    (n_kept, d_v), W_Q and W_K (d_model, d_k) and W_V (d_model, d_v). It returns the output
    Z (n_new, d_v) of the new tokens, and the keys and values that are kept now.
    """,
    right=right,
    returns={
        "Z": "one output for each new token",
        "keys": "those kept before, then the new ones",
        "values": "those kept before, then the new ones",
    },
    cases={
        "two new tokens and five kept": PLAIN,
        "one new token and seven kept": tokens_and_cache(
            n_new=1, n_kept=7, d_model=5, d_k=3, d_v=2
        ),
        "five new tokens and nothing kept": tokens_and_cache(
            n_new=5, n_kept=0, d_model=7, d_k=3, d_v=2
        ),
        # A swap fails above. Here each one runs, so that it differs from the others.
        "sizes that are equal": tokens_and_cache(n_new=3, n_kept=3, d_model=3, d_k=3, d_v=3),
        "float32": float32(PLAIN),
    },
    mistakes=[
        "A new token sees the new ones after it. Where several come at once they need a mask: each "
        "sees what is kept, the new ones before it, and itself.",
        step(mask=lambda n_new, n_all: True),
        "Your mask takes the new tokens for the first ones: new token 0 sees key 0 alone. They are "
        "the last. Take the last rows of the square causal mask.",
        step(mask=lambda n_new, n_all: np.tri(n_new, n_all, dtype=bool)),
        "A new token does not see itself. Its own key and value take part too.",
        step(mask=lambda n_new, n_all: np.tri(n_new, n_all, n_all - n_new - 1, dtype=bool)),
        "The new tokens see only each other. Append their keys and values to what is kept, then "
        "let them attend to all of it.",
        step(attended=only_new),
        "The new tokens see only what was kept before. Append their own keys and values first, "
        "then attend.",
        step(attended=only_old, mask=lambda n_new, n_all: True),
        "You return the keys and values that came in. The next step needs the new ones too.",
        step(kept=only_old),
        "You return the new keys and values alone. The next step needs those before them too.",
        step(kept=only_new),
        "You put new keys and values before those that are kept. A sentence goes on at its end: "
        "kept first, then new.",
        step(kept=new_first, attended=new_first),
        "W_K and W_V are exchanged: keys are X W_K, values are X W_V.",
        lambda X, keys, values, W_Q, W_K, W_V: right(X, keys, values, W_Q, W_V, W_K),
        "What is kept is projected once: join keys with X W_K and values with X W_V, not with X, "
        "and do not project again what is kept.",
        projected_again,
        advice.KEYS_BLENDED,
        keys_averaged,
        *advice.wrong_divisors(lambda divisor: step(divisor=divisor), "n_k"),
        advice.COLUMNS,
        step(softmax=lambda scores: exact.softmax(scores, axis=0)),
        advice.NOT_DIVIDED,
        step(softmax=np.exp),
        advice.MASKED_LATE,
        masked_late,
        advice.INVERTED,
        step(mask=lambda n_new, n_all: ~last_rows(n_new, n_all)),
        "You used the new keys as queries. The queries are X W_Q.",
        lambda X, keys, values, W_Q, W_K, W_V: right(X, keys, values, W_K, W_K, W_V),
    ],
)
