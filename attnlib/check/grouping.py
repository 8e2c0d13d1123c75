"""The checker of attention whose heads share keys and values in groups."""

import math

import numpy as np

from attnlib import attention as exact
from attnlib.check import advice
from attnlib.check.arrays import float32, random_arrays
from attnlib.check.checker import Checker


def group(queries, keys):
    """Return how many heads of queries use each head of keys."""
    return queries.shape[-3] // keys.shape[-3]


def repeated(queries, keys):
    """Return a head of keys, or of values, for each head of queries: 0 0 1 1 2 2."""
    return np.repeat(keys, group(queries, keys), axis=-3)


def tiled(queries, keys):
    """Return the same in turn: 0 1 2 0 1 2."""
    return np.concatenate([keys] * group(queries, keys), axis=-3)


def scaled(queries, keys):
    """Return the scaled scores of queries and as many heads of keys."""
    return queries @ keys.swapaxes(-2, -1) / math.sqrt(queries.shape[-1])


def attend(queries, keys, values, axis=-1):
    """Return attention of as many heads of keys as of queries."""
    return exact.softmax(scaled(queries, keys), axis) @ values


def grouped(keys_by=repeated, values_by=repeated, **options):
    """Return grouped attention that repeats keys and values in other ways."""
    return lambda queries, keys, values: attend(
        queries, keys_by(queries, keys), values_by(queries, values), **options
    )


right = grouped()


def with_heads(choose):
    """Return attention whose query head h uses key head choose(h, n_heads, n_kv_heads)."""

    def chosen(queries, keys):
        n_heads, n_kv_heads = queries.shape[-3], keys.shape[-3]
        return keys[..., [choose(h, n_heads, n_kv_heads) for h in range(n_heads)], :, :]

    return grouped(chosen, chosen)


def divided(divisor):
    """Return grouped attention with another divisor, made of the sizes."""

    def attention(queries, keys, values):
        *_, n_heads, n_q, d_k = queries.shape
        *_, n_kv_heads, n_k, d_v = values.shape
        root = divisor(d_k=d_k, d_v=d_v, n_k=n_k, n_q=n_q, n_heads=n_heads, n_kv_heads=n_kv_heads)
        scores = queries @ repeated(queries, keys).swapaxes(-2, -1) / root
        return exact.softmax(scores) @ repeated(queries, values)

    return attention


def along_first_axis(queries, keys):
    """Return the heads repeated along axis 0, which may be that of a batch."""
    return np.repeat(keys, group(queries, keys), axis=0)


def mean_of_heads(queries, keys):
    """Return the mean of all heads."""
    return keys.mean(axis=-3, keepdims=True)


def mean_of_group(queries, keys, values):
    """Return attention of the mean of each group of queries."""
    *batch, _, n_q, d_k = queries.shape
    groups = queries.reshape(*batch, keys.shape[-3], -1, n_q, d_k)
    return attend(groups.mean(axis=-3), keys, values)


def weights(queries, keys, values):
    """Return the weights."""
    return exact.softmax(scaled(queries, repeated(queries, keys)))


def merged(queries, keys, values):
    """Return the output with its heads side by side."""
    heads = right(queries, keys, values)
    return heads.swapaxes(-3, -2).reshape(*heads.shape[:-3], heads.shape[-2], -1)


def sizes(*batch, n_heads, n_kv_heads, n_q, n_k, d_k, d_v):
    """Return queries, keys and values of these sizes."""
    return random_arrays(
        (*batch, n_heads, n_q, d_k), (*batch, n_kv_heads, n_k, d_k), (*batch, n_kv_heads, n_k, d_v)
    )


grouped_attention = Checker(
    """Check attention of several heads of queries for each head of keys and values.

    The function takes queries (..., n_heads, n_q, d_k), keys (..., n_kv_heads, n_k, d_k) and values
    (..., n_kv_heads, n_k, d_v) and returns the output (..., n_heads, n_q, d_v). Query head h uses
    key head h // (n_heads // n_kv_heads).
    """,
    right=right,
    returns={"output": "(..., n_heads, n_q, d_v)"},
    cases={
        "6 heads with 3 of keys": sizes(n_heads=6, n_kv_heads=3, n_q=5, n_k=7, d_k=11, d_v=13),
        "6 heads with 2 of keys": sizes(n_heads=6, n_kv_heads=2, n_q=7, n_k=5, d_k=3, d_v=11),
        "a batch of 3": sizes(3, n_heads=4, n_kv_heads=2, n_q=3, n_k=5, d_k=7, d_v=2),
        "two axes before the heads": sizes(
            5, 2, n_heads=9, n_kv_heads=3, n_q=2, n_k=5, d_k=5, d_v=3
        ),
        "a head of keys for each of queries": sizes(
            n_heads=3, n_kv_heads=3, n_q=5, n_k=2, d_k=7, d_v=5
        ),
        "one head of keys for all": sizes(n_heads=5, n_kv_heads=1, n_q=2, n_k=3, d_k=5, d_v=7),
        "float32": float32(sizes(n_heads=4, n_kv_heads=2, n_q=3, n_k=5, d_k=2, d_v=3)),
    },
    mistakes=[
        "The heads of keys and values came in turn, 0 1 2 0 1 2, as from np.tile. Neighbors use "
        "the same: with 6 heads and 3 key heads 0 0 1 1 2 2, as from np.repeat along the heads' "
        "axis.",
        grouped(tiled, tiled),
        "You divided h by n_kv_heads, the number of groups. Divide it by the size of a group, "
        "n_heads // n_kv_heads.",
        with_heads(lambda h, n_heads, n_kv_heads: h // n_kv_heads),
        "The keys are repeated as they should be, the values in turn. Both need the same heads.",
        grouped(values_by=tiled),
        "The values are repeated as they should be, the keys in turn. Both need the same heads.",
        grouped(keys_by=tiled),
        "All query heads use key head 0. Only those of the first group do.",
        with_heads(lambda h, n_heads, n_kv_heads: 0),
        "The groups run backwards: the first query heads use the first key head.",
        with_heads(lambda h, n_heads, n_kv_heads: (n_heads - 1 - h) // (n_heads // n_kv_heads)),
        "You took the mean over the key heads. Each group keeps a key head of its own.",
        grouped(mean_of_heads, mean_of_heads),
        "You took the mean of the queries of a group. Each query head has weights of its own; only "
        "keys and values are shared.",
        mean_of_group,
        "Axis 0 is that of the heads only without a batch. Count from the end: axis=-3.",
        grouped(along_first_axis, along_first_axis),
        *advice.wrong_divisors(divided, "d_v", "n_k", "n_q", "n_heads", "n_kv_heads"),
        "You divided by the square root of n_heads * d_k. Use d_k, the width of one head.",
        divided(lambda d_k, n_heads, **sizes: math.sqrt(n_heads * d_k)),
        "Your rows do not sum to 1: softmax ran over the queries (axis=-2), not over the keys.",
        grouped(axis=-2),
        "Your rows do not sum to 1: softmax ran over the heads, not over the keys.",
        grouped(axis=-3),
        advice.NO_SOFTMAX,
        lambda queries, keys, values: (
            scaled(queries, repeated(queries, keys)) @ repeated(queries, values)
        ),
        "These are the weights. Average the values with them.",
        weights,
        "You returned the output and the weights. Return the output alone.",
        lambda queries, keys, values: (
            right(queries, keys, values),
            weights(queries, keys, values),
        ),
        "You merged the heads. Return them as they came, (..., n_heads, n_q, d_v).",
        merged,
        "The output's tokens stand before its heads. Return (..., n_heads, n_q, d_v).",
        lambda queries, keys, values: right(queries, keys, values).swapaxes(-3, -2),
        advice.KEYS_BLENDED,
        lambda queries, keys, values: right(queries, keys, keys),
    ],
)
