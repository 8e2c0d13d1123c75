"""The same attention in linear memory: some queries at a time, or some keys, joined later."""

import math

import numpy as np

from attnlib.attention import block_scores, weighted_sum
from attnlib.inputs import (
    quiet_nan,
    read_axis,
    read_flag,
    read_floats,
    read_inputs,
    read_mask,
    read_scale,
    read_size,
    wide_dtype,
)

# e^30 is about 1e13: such exponentials, times values between these, stay inside float32, and so
# do their sums.
SAFE, LEAST, MOST = 30.0, 1e-18, 1e18


@quiet_nan
def blockwise_attention(queries, keys, values, mask=None, *, causal=False, scale=None, block=128):
    r"""Average the values as `scaled_dot_product_attention`, without storing the (n_q, n_k) scores.

    .. math::

        m_i &= \max_j \tilde S_{ij} \\
        Z_i &= \frac{\sum_j e^{\tilde S_{ij} - m_i} V_j}{\sum_j e^{\tilde S_{ij} - m_i}}

    Eq. (6) of "What it costs". The softmax needs a whole row of scores, but no row needs another,
    so `block` rows at a time share one buffer for their scores and then their exponentials. The
    division by the sum of the row comes last, where it takes d_v divisions a row instead of n_k.

    Parameters
    ----------
    queries : array, shape (..., n_q, d_k)
    keys : array, shape (..., n_k, d_k)
    values : array, shape (..., n_k, d_v)
    mask : array, broadcasting to (..., n_q, n_k), optional
    causal : bool
        Also skips the keys that no query of the block may attend to.
    scale : float, optional
        All as in `scaled_dot_product_attention`.
    block : int
        Number of queries worked on at a time; the buffer holds block * n_k numbers.

    Returns
    -------
    array, shape (..., n_q, d_v), dtype of queries, keys and values
        The same for every `block`, up to rounding.

    Raises
    ------
    TypeError, ValueError
        As `scaled_dot_product_attention`; also if `block` is not a whole number of at least 1.

    Source
    ------
    Rabe and Staats 2021, *Self-attention Does Not Need O(n^2) Memory*. They also cut the keys
    into blocks, with a running maximum (Milakov and Gimelshein 2018), which "What it costs" builds.

    Examples
    --------
    >>> Q, K, V = [[2., 0.], [0., 2.]], [[0., 2.], [2., 0.]], [[2., 0.], [0., 2.]]
    >>> blockwise_attention(Q, K, V, block=1).round(6)
    array([[0.111614, 1.888386],
           [1.888386, 0.111614]])
    """
    queries, keys, values = read_inputs(queries, keys, values)
    *leading, n_q, d_k = queries.shape
    n_k, d_v = values.shape[-2:]
    dtype = np.result_type(queries, keys, values)
    wide, causal = wide_dtype(dtype), read_flag(causal, "causal")
    mask = read_mask(mask, (*leading, n_q, n_k))
    if mask is not None:
        mask = np.broadcast_to(mask, (*leading, n_q, n_k))
    scale = read_scale(scale, queries, keys, values)
    block = read_size(block, "block", least=1)
    keys = np.broadcast_to(keys, (*leading, n_k, d_k))
    values = np.broadcast_to(values, (*leading, n_k, d_v))

    # No score is larger than the longest query times the longest key (Cauchy-Schwarz). If even
    # its exponential cannot overflow, the shift by the row's maximum changes nothing: leave it out.
    largest = abs(scale) * _longest(queries, wide) * _longest(keys, wide)
    shift = (
        not largest < SAFE
        or (mask is not None and mask.dtype != bool)
        or not LEAST < _longest(values, wide) < MOST
    )

    output = np.empty((*leading, n_q, d_v), dtype)
    buffer, ones = np.empty(min(block, n_q) * n_k, wide), np.ones(n_k, wide)
    for head in np.ndindex(*leading):
        head_keys = keys[head].astype(wide, copy=False)
        head_values = values[head].astype(wide, copy=False)
        for first in range(0, n_q, block):
            rows = slice(first, min(first + block, n_q))
            n_seen = min(rows.stop, n_k) if causal else n_k
            scaled = queries[head][rows].astype(wide, copy=False) * scale  # (rows, d_k)
            # Without gaps between its rows, or the product would go through a copy.
            scores = buffer[: len(scaled) * n_seen].reshape(len(scaled), n_seen)  # (rows, n_k)
            np.matmul(scaled, head_keys[:n_seen].T, out=scores)
            block_mask = None if mask is None else mask[head][rows, :n_seen]
            block_scores(scores, block_mask, causal, first)
            if shift:
                scores -= scores.max(-1, keepdims=True, initial=np.finfo(wide).min)
            exponentials = np.exp(scores, out=scores)
            total = (exponentials @ ones[:n_seen])[:, None]  # a sum, by the faster product
            total[total == 0] = 1  # a query with nothing to attend to keeps its zeros
            summed = weighted_sum(exponentials, head_values[:n_seen], block_mask, causal, first)
            np.divide(summed, total, out=output[head][rows], casting="same_kind")
    return output


@quiet_nan
def merge_partials(m, l, o, axis=0):  # noqa: E741 -- the letters of the papers
    r"""Join what several groups of keys have each found for the same queries.

    .. math::

        m &= \max_p m_p \\
        l &= \sum_p e^{m_p - m}\, l_p \\
        o &= \sum_p e^{m_p - m}\, o_p

    Group p has the scores S_pj and the values V_pj: m_p is the largest score of a query, l_p the
    sum of its e^(S_pj - m_p), and o_p the sum of e^(S_pj - m_p) V_pj. The attention's output is
    o / l at the end. Groups may be joined in any order, and joined groups again. A sink z is one
    group more, with m = z, l = 1 and o = 0.

    Parameters
    ----------
    m, l : array of float, shape (..., n_q), with one more axis for the groups
        A group without a key for a query has `-inf` and 0.
    o : array of float, shape (..., n_q, d_v), with the same axis for the groups
    axis : int
        The axis of `m` that counts the groups; the first unless given.

    Returns
    -------
    m, l : array, shape (..., n_q)
    o : array, shape (..., n_q, d_v)
        Without the axis of the groups, in the dtypes of what is given.

    Raises
    ------
    TypeError
        If an array does not hold floats.
    ValueError
        If `m` has no such axis, there is no group, or the shapes do not fit.

    Source
    ------
    Milakov and Gimelshein 2018, *Online normalizer calculation for softmax*, section 3.1; with the
    output, Dao 2023, *FlashAttention-2*, section 3.1. Liu, Zaharia and Abbeel 2023, *Ring
    Attention*, section 3, join the groups of several processors.

    Examples
    --------
    Two keys, each alone, with the scores 0 and ln 3 and the values 4 and 8.

    >>> m, l, o = merge_partials([[0.0], [np.log(3)]], [[1.0], [1.0]], [[[4.0]], [[8.0]]])
    >>> o / l
    array([[7.]])
    """
    m, l, o = read_floats(m, "m"), read_floats(l, "l"), read_floats(o, "o")  # noqa: E741
    axis = read_axis(axis, m, "m") % m.ndim
    if l.shape != m.shape or o.shape[:-1] != m.shape:
        raise ValueError(
            "m and l must have one shape, and o one axis more, of the values; "
            f"got {m.shape}, {l.shape} and {o.shape}"
        )
    if m.shape[axis] == 0:
        raise ValueError(f"there must be at least one group along axis {axis} of m; got {m.shape}")
    top = m.max(axis, keepdims=True)
    # Where no group has a key, -inf - (-inf) would be NaN.
    factors = np.exp(m - np.where(top == -np.inf, 0, top))
    total = (l * factors).sum(axis).astype(l.dtype, copy=False)
    output = (o * factors[..., None]).sum(axis).astype(o.dtype, copy=False)
    return top.squeeze(axis), total, output


def _longest(vectors, wide):
    """Return the length of the longest of some vectors (..., d); NaN if there is one in them."""
    return math.sqrt(np.einsum("...d,...d->...", vectors, vectors, dtype=wide).max(initial=0))
