# ruff: noqa: N803 -- learners write S as in the formula, and messages repeat it
"""The checker of scores with a relative position bias."""

import numpy as np

from attnlib import attention as exact
from attnlib.check.arrays import float32, random_arrays
from attnlib.check.checker import Checker


def offsets(S):
    """Return the offset j - i of each key from each query."""
    return np.arange(S.shape[1]) - np.arange(len(S))[:, None]


def clipped(offset, r):
    """Return the index of an offset in the table."""
    return np.clip(offset, -r, r) + r


def looked_up(S, table, index=clipped):
    """Return the bias of each query and key."""
    return table[index(offsets(S), len(table) // 2)]


def right(S, table):
    """Return the scores with the bias added."""
    return S + looked_up(S, table)


def indexed(index):
    """Return the scores with another index into the table, made of the offsets and r."""
    return lambda S, table: S + looked_up(S, table, index)


relative_bias = Checker(
    """Check scores with a relative position bias, Eq. (7) of "Where am I? Positions" for one head.

    The function takes scores S (n_q, n_k) and a table (2 r + 1,), the bias of each offset j - i
    from -r to r; it returns the scores (n_q, n_k) with the bias added. Offsets beyond r take the
    last one.
    """,
    right=right,
    returns={"scores": "one for each query and key"},
    cases={
        "a table that reaches every key": random_arrays((3, 5), (11,)),
        "keys beyond the table": random_arrays((5, 7), (3,), seed=2),
        "more queries than keys": random_arrays((7, 3), (5,), seed=4),
        "many more keys than queries": random_arrays((2, 11), (7,), seed=6),
        "float32": float32(random_arrays((5, 7), (3,), seed=2)),
    },
    mistakes=[
        "The table is read backwards: your offsets are i - j, or the table is reversed. A key "
        "after the query has j - i above 0.",
        indexed(lambda offset, r: clipped(-offset, r)),
        "You did not clip. Offsets beyond r leave the table, and those far below 0 come round from "
        "its other end: np.clip(j - i, -r, r).",
        indexed(lambda offset, r: offset + r),
        "You clipped above r, not below -r: a negative index comes round from the other end of the "
        "table.",
        indexed(lambda offset, r: np.minimum(offset, r) + r),
        "You clipped below -r, not above r: the keys far after a query leave the table.",
        indexed(lambda offset, r: np.maximum(offset, -r) + r),
        "+ r is missing: offset -r stands at index 0 of the table, offset 0 in its middle.",
        indexed(lambda offset, r: np.clip(offset, -r, r)),
        "You clipped to the length of the table without + r: offset 0 stands in its middle.",
        indexed(lambda offset, r: np.clip(offset, 0, 2 * r)),
        "You read the entry before the right one: offset -r stands at index 0, so add r, and clip "
        "from -r to r.",
        indexed(lambda offset, r: clipped(offset, r) - 1),
        "r is not the length of the table, which is 2 r + 1: r = len(table) // 2.",
        indexed(lambda offset, r: clipped(offset, 2 * r + 1)),
        "% lets far keys come round to the other end of the table. They take its last entry: "
        "np.clip.",
        indexed(lambda offset, r: (offset + r) % (2 * r + 1)),
        "You looked up the distance |j - i|. A key before and a key after have two entries.",
        indexed(lambda offset, r: clipped(np.abs(offset), r)),
        indexed(lambda offset, r: np.minimum(np.abs(offset), r)),
        "Keys beyond r get no bias. They take the last entry of the table.",
        lambda S, table: (
            S + np.where(np.abs(offsets(S)) <= len(table) // 2, looked_up(S, table), 0)
        ),
        "This is the bias alone. Add it to the scores.",
        looked_up,
        "You multiplied the scores by the bias. Add it.",
        lambda S, table: S * looked_up(S, table),
        "You subtracted the bias from the scores. Add it.",
        lambda S, table: S - looked_up(S, table),
        "The offsets have a row per key. Rows are queries: j - i is "
        "np.arange(n_k) - np.arange(n_q)[:, None].",
        lambda S, table: S + looked_up(S.T, table),
        "You went one step too far: these are the weights. The bias is added before softmax.",
        lambda S, table: exact.softmax(right(S, table)),
    ],
)
