"""The same attention in linear memory: some queries at a time, every step in one small buffer."""

import math

import numpy as np

from attnlib.attention import block_scores, weighted_sum
from attnlib.inputs import quiet_nan, read_inputs, read_mask, read_scale, read_size

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
    wide = np.promote_types(dtype, np.float32)
    mask = read_mask(mask, (*leading, n_q, n_k))
    if mask is not None:
        mask = np.broadcast_to(mask, (*leading, n_q, n_k))
    scale = read_scale(scale, d_k)
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


def _longest(vectors, wide):
    """Return the length of the longest of some vectors (..., d); NaN if there is one in them."""
    return math.sqrt(np.einsum("...d,...d->...", vectors, vectors, dtype=wide).max(initial=0))
