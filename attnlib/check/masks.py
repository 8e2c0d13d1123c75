"""The checkers of boolean masks: the future, and padding."""

import numpy as np

from attnlib import masks
from attnlib.check.checker import Checker

ADDITIVE = "This mask has numbers that could be added to the scores. Return True and False instead."
SQUARE = (
    "Your mask is square. It needs a row for each query and a column for each key, and their "
    "numbers may differ."
)


def additive(right):
    """Return masks that are to be added to the scores, instead of boolean ones."""
    return [
        lambda *inputs, low=low: np.where(right(*inputs), 0.0, low) for low in (-np.inf, -1e9, -1e4)
    ]


def causal(n_q, n_k):
    """Return the right causal mask."""
    return masks.causal_mask(n_q, n_k)


def triangle(shift):
    """Return a mask whose diagonal is shifted to the right by so many columns."""
    return lambda n_q, n_k: np.tri(n_q, n_k, k=shift, dtype=bool)


causal_mask = Checker(
    """Check the causal mask: query i may attend to key j if j <= i.

    The function takes n_q and n_k and returns bool (n_q, n_k), True = may attend, aligned
    top-left.
    """,
    right=causal,
    returns={"mask": "a row per query, a column per key"},
    cases={
        "n_q = 5, n_k = 5": (5, 5),
        "n_q = 3, n_k = 7": (3, 7),
        "n_q = 7, n_k = 3": (7, 3),
        "n_q = 1, n_k = 1": (1, 1),
    },
    mistakes=[
        "Your mask is inverted: here True means may attend. (nn.MultiheadAttention's boolean mask "
        "means the opposite.)",
        lambda n_q, n_k: ~causal(n_q, n_k),
        "In your mask, a word may not attend to itself. The diagonal must be True: j <= i.",
        triangle(-1),
        "Your mask shows the future and hides the past: keep the lower triangle, j <= i.",
        lambda n_q, n_k: ~triangle(-1)(n_q, n_k),
        "Each query may attend to one word of the future. In row i, key i + 1 must be False.",
        triangle(1),
        "Your triangle ends in the bottom right corner. It must begin in the top left corner, so "
        "that query 0 may attend to key 0 alone.",
        lambda n_q, n_k: triangle(n_k - n_q)(n_q, n_k),
        "Your mask blocks nothing. Query i may not attend to the keys after i.",
        lambda n_q, n_k: np.ones((n_q, n_k), dtype=bool),
        SQUARE,
        lambda n_q, n_k: causal(n_q, n_q),
        lambda n_q, n_k: causal(n_k, n_k),
        "Rows and columns are swapped. Rows are queries, and columns are keys.",
        lambda n_q, n_k: causal(n_k, n_q),
        ADDITIVE,
        *additive(causal),
    ],
)


def padding(lengths, n_k):
    """Return the right padding mask."""
    return masks.padding_mask(lengths, n_k)


padding_mask = Checker(
    """Check the padding mask: key j of sentence b may be attended to if j < lengths[b].

    The function takes an array of lengths (sentences,) and n_k and returns bool
    (sentences, 1, n_k), True = may attend.
    """,
    right=padding,
    returns={"mask": "(sentences, 1, n_k)"},
    cases={
        "lengths 2, 5 and 4": (np.array([2, 5, 4]), 7),
        "an empty sentence": (np.array([3, 0, 5, 1, 4]), 5),
        "a single sentence": (np.array([2]), 3),
    },
    mistakes=[
        "Your mask is inverted. Here True means a real word, which may be attended to, and False "
        "means padding.",
        lambda lengths, n_k: ~padding(lengths, n_k),
        "Off by one: your mask allows the first token of padding. Keys are counted from 0, so key "
        "j is real if j < length.",
        lambda lengths, n_k: np.arange(n_k) <= lengths[:, None, None],
        "Off by one: your mask blocks the last real word. Key j is real if j < length.",
        lambda lengths, n_k: np.arange(n_k) < lengths[:, None, None] - 1,
        "The axis in the middle is missing. Without it, NumPy takes (sentences, n_k) for (n_q, "
        "n_k). Return (sentences, 1, n_k).",
        lambda lengths, n_k: padding(lengths, n_k)[:, 0],
        "The axis of length 1 stands for the queries, so it belongs in the middle: "
        "(sentences, 1, n_k).",
        lambda lengths, n_k: padding(lengths, n_k).swapaxes(1, 2),
        lambda lengths, n_k: padding(lengths, n_k).swapaxes(0, 1),
        "The shapes of lengths (sentences,) and of the positions (n_k,) do not fit. Give lengths "
        "two more axes: lengths[:, None, None].",
        lambda lengths, n_k: np.arange(n_k) < lengths,
        "Your mask blocks the beginning of each sentence. The padding is at the end.",
        lambda lengths, n_k: np.arange(n_k) >= n_k - lengths[:, None, None],
        "Your mask blocks nothing. The keys from lengths[b] on are padding.",
        lambda lengths, n_k: np.ones((len(lengths), 1, n_k), dtype=bool),
        ADDITIVE,
        *additive(padding),
    ],
)
