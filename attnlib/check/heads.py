"""The checkers of the way into heads and out of them."""

import numpy as np

from attnlib import multihead
from attnlib.check.arrays import float32, numbered, random_array
from attnlib.check.checker import Checker

NUMBERED = "numbers that name their place (213: row 2, column 13)"


def split(x, n_heads):
    """Return the heads (n_heads, n, d)."""
    return multihead.split_heads(x, n_heads)


def cut(x, n_heads):
    """Return the heads before axes are swapped, (n, n_heads, d)."""
    return x.reshape(len(x), n_heads, -1)


split_heads = Checker(
    """Check the cut into heads, Eq. (3) of "Many heads".

    The function takes x (n, n_heads * d) and n_heads and returns the heads (n_heads, n, d).
    """,
    right=split,
    returns={"heads": "(n_heads, n, d)"},
    cases={
        NUMBERED: (numbered(5, 21), 3),
        "as many tokens as heads": (numbered(3, 15), 3),
        "two heads": (numbered(7, 22), 2),
        "a single token": (random_array(1, 6), 2),
        "a single head": (random_array(3, 5), 1),
        "float32": float32((numbered(5, 21), 3)),
    },
    mistakes=[
        "You reshaped straight to (n_heads, n, d), which mixes the tokens. First reshape to "
        "(n, n_heads, d), then swap the first two axes.",
        lambda x, n_heads: x.reshape(n_heads, len(x), -1),
        "The tokens still stand before the heads, (n, n_heads, d): swap those two axes.",
        cut,
        "You swapped the last two axes, so the heads stand last. Swap the first two.",
        lambda x, n_heads: cut(x, n_heads).swapaxes(1, 2),
        ".T reverses all three axes, to (d, n_heads, n). Swap only the first two.",
        lambda x, n_heads: cut(x, n_heads).T,
        "Each head is transposed, (d, n). Its rows are the tokens: (n, d).",
        lambda x, n_heads: cut(x, n_heads).transpose(1, 2, 0),
        "You dealt the columns out like cards, column c to head c % n_heads. Head h owns the d "
        "columns from h * d on, side by side.",
        lambda x, n_heads: x.reshape(len(x), -1, n_heads).transpose(2, 0, 1),
        "The heads come in reverse: head 0 owns the first d columns.",
        lambda x, n_heads: split(x, n_heads)[::-1],
        ".squeeze() also drops an axis of one token or one head: the result has three axes for "
        "each input.",
        lambda x, n_heads: split(x, n_heads).squeeze(),
        "Every head has the columns of head 0. Head h owns those from h * d on.",
        lambda x, n_heads: split(x, n_heads)[[0] * n_heads],
        "n_heads and d are exchanged: n_heads says how many heads there are, not how wide one is.",
        lambda x, n_heads: x.reshape(len(x), -1, n_heads).swapaxes(0, 1),
        "You cut the rows, which are tokens. Every head sees all tokens: cut columns, axis 1.",
        lambda x, n_heads: np.stack(np.split(x, n_heads)),
        "Each head has all the columns. Divide them among the heads: d = x.shape[1] // n_heads.",
        lambda x, n_heads: np.stack([x] * n_heads),
        "A head is not as wide as x. Divide the columns among the heads: "
        "d = x.shape[1] // n_heads.",
        lambda x, n_heads: x.reshape(len(x), n_heads, x.shape[1]),
        lambda x, n_heads: x.reshape(n_heads, len(x), x.shape[1]),
        "/ gives a float, and a size must be a whole number. Divide with //.",
        lambda x, n_heads: x.reshape(len(x), n_heads, x.shape[1] / n_heads),
    ],
)


def heads_of(n, d, n_heads):
    """Return heads whose numbers name their place in the merged matrix."""
    return np.ascontiguousarray(split(numbered(n, n_heads * d), n_heads))


def merge(heads):
    """Return the heads side by side."""
    return multihead.merge_heads(heads)


merge_heads = Checker(
    """Check the way back from the heads, the Concat of Eq. (2) of "Many heads".

    The function takes heads (n_heads, n, d) and returns them side by side (n, n_heads * d).
    """,
    right=merge,
    returns={"merged heads": "a row per token, with the numbers of all heads"},
    cases={
        NUMBERED: (heads_of(5, 7, n_heads=3),),
        "as many tokens as heads": (heads_of(3, 5, n_heads=3),),
        "two heads": (heads_of(7, 11, n_heads=2),),
        "a single token": (random_array(5, 1, 3),),
        "heads of a single number": (random_array(3, 2, 1),),
        "float32": float32((heads_of(5, 7, n_heads=3),)),
    },
    mistakes=[
        "You reshaped without swapping axes, and the numbers of different tokens got mixed. Bring "
        "the tokens to the front first: heads.swapaxes(0, 1).",
        lambda heads: heads.reshape(heads.shape[1], -1),
        "You swapped the last two axes. Swap the first two, then reshape.",
        lambda heads: heads.swapaxes(1, 2).reshape(heads.shape[1], -1),
        ".T reverses all three axes. Swap only the first two, then reshape.",
        lambda heads: heads.T.reshape(heads.shape[1], -1),
        "You took one column of each head in turn. The d columns of a head stay side by side.",
        lambda heads: heads.transpose(1, 2, 0).reshape(heads.shape[1], -1),
        "The heads come in reverse: the numbers of head 0 stand first.",
        lambda heads: merge(heads[::-1]),
        "You sorted the numbers of each row. A head's numbers stay in their order.",
        lambda heads: np.sort(merge(heads), axis=1),
        ".squeeze() also drops the axis of a single token: the result is a matrix.",
        lambda heads: merge(heads).squeeze(),
        "You added the heads up. They stand side by side, so that W_O can weigh each of them.",
        lambda heads: heads.sum(axis=0),
        "You took the mean of the heads. They stand side by side, so that W_O can weigh each of "
        "them.",
        lambda heads: heads.mean(axis=0),
        "The heads stand one below the other. Put them side by side: join along axis 1.",
        lambda heads: heads.reshape(heads.shape[0] * heads.shape[1], -1),
        "Each of your rows is a head. Each row must be a token, with its numbers of all heads.",
        lambda heads: heads.reshape(heads.shape[0], -1),
        "The heads are not joined yet: one step is left, the reshape to (n, n_heads * d).",
        lambda heads: heads.swapaxes(0, 1),
        "Your result is transposed: rows are tokens, columns are the numbers of all heads.",
        lambda heads: merge(heads).T,
    ],
)
