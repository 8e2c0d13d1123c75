"""Scaled dot-product attention, in the order of its equations.

`softmax` and `scaled_dot_product_attention` are the course. Below them stand the kernels that every
attention in this library shares: they trust their arrays, which `inputs` has read.
"""

import numpy as np

from attnlib.inputs import (
    quiet_nan,
    read_axis,
    read_flag,
    read_floats,
    read_inputs,
    read_mask,
    read_scale,
    wide_dtype,
)


@quiet_nan
def softmax(scores, axis=-1):
    r"""Turn scores into weights that sum to 1 along `axis`: positive, or 0 for a score of `-inf`.

    .. math:: A_{ij} = \frac{e^{\tilde S_{ij}}}{\sum_m e^{\tilde S_{im}}}

    Eq. (5) of "Queries, keys and values"; the shift by the largest score is its Eq. (7).

    Parameters
    ----------
    scores : array of float16, float32 or float64, shape (..., n, ...)
        A score of `-inf` is left out: its weight is 0.
    axis : int
        The axis whose weights sum to 1; the last one, the keys, unless given.

    Returns
    -------
    array, shape and dtype of `scores`
        A row of nothing but `-inf` gives zeros. A row with NaN or `+inf` gives NaN throughout:
        inf / inf has no value. float16 is worked out in float32 and rounded once.

    Raises
    ------
    TypeError
        If `scores` does not hold floats.
    ValueError
        If `scores` is a single number, or has no such `axis`.

    Source
    ------
    Vaswani et al. 2017, *Attention Is All You Need*, section 3.2.1. Subtracting the maximum
    is Goodfellow, Bengio and Courville 2016, *Deep Learning*, section 4.1.

    Examples
    --------
    >>> softmax([0.0, 2 * np.sqrt(2)]).round(6)
    array([0.055807, 0.944193])
    >>> softmax([-np.inf, -np.inf])
    array([0., 0.])
    """
    scores = read_floats(scores, "scores")
    axis = read_axis(axis, scores)
    wide = wide_dtype(scores.dtype)
    return softmax_in_place(scores.astype(wide), axis).astype(scores.dtype, copy=False)


@quiet_nan
def scaled_dot_product_attention(queries, keys, values, mask=None, *, causal=False, scale=None):
    r"""Average the values for each query, by how well it matches the keys.

    .. math:: \mathrm{Attention}(Q, K, V) = \mathrm{softmax}(Q K^\top / \sqrt{d_k})\, V

    Eq. (2) of "Queries, keys and values". Its four steps are S = Q K^T, Eq. (3);
    S / sqrt(d_k), Eq. (4); A = softmax of each row, Eq. (5); Z = A V, Eq. (6). A mask acts between
    (4) and (5).

    Parameters
    ----------
    queries : array, shape (..., n_q, d_k)
    keys : array, shape (..., n_k, d_k)
    values : array, shape (..., n_k, d_v)
        float16, float32 or float64. The leading axes broadcast against each other.
    mask : array, broadcasting to (..., n_q, n_k), optional
        bool, True = may attend; or float, added to the scaled scores. Blocked means False or
        exactly `-inf`. Floats that are all 0 or 1, with both among them, are refused.
    causal : bool
        Let query i attend to keys 0 ... i only, on top of `mask`.
    scale : float, optional
        What the scores are multiplied by; `1 / sqrt(d_k)` unless given.

    Returns
    -------
    output : array, shape (..., n_q, d_v)
    weights : array, shape (..., n_q, n_k)
        Both in the common dtype of queries, keys and values, which `mask` and `scale` never
        change; float16 is worked out in float32. A query with nothing to attend to has zero
        weights and a zero output. NaN or infinity in a blocked key or value reaches neither.

    Raises
    ------
    TypeError
        If queries, keys or values do not hold floats, `mask` is neither bool nor float, or
        `scale` is not a number.
    ValueError
        If the shapes do not fit, d_k is 0, `mask` holds NaN, +inf or only zeros and ones as floats,
        or `scale` is not finite in the dtype of the computation.

    Source
    ------
    Vaswani et al. 2017, *Attention Is All You Need*, section 3.2.1, Eq. (1).

    Examples
    --------
    >>> Q, K, V = [[2., 0.], [0., 2.]], [[0., 2.], [2., 0.]], [[2., 0.], [0., 2.]]
    >>> Z, A = scaled_dot_product_attention(Q, K, V)
    >>> Z.round(6)
    array([[0.111614, 1.888386],
           [1.888386, 0.111614]])
    """
    queries, keys, values = read_inputs(queries, keys, values)
    mask = read_mask(mask, (*queries.shape[:-1], keys.shape[-2]))
    scale = read_scale(scale, queries, keys, values)
    return attend(queries, keys, values, mask, read_flag(causal, "causal"), scale)


def attend(queries, keys, values, mask, causal, scale, cap=None, sink=None):
    """Return output and weights: what `scaled_dot_product_attention` gives.

    `cap` and `sink`, shape (n_heads,), are those of `MultiHeadAttention`.
    """
    dtype = np.result_type(queries, keys, values)
    wide = wide_dtype(dtype)
    keys, values = keys.astype(wide, copy=False), values.astype(wide, copy=False)
    # Scaling the queries gives the same scores as scaling S, with fewer products.
    scores = (queries.astype(wide, copy=False) * scale) @ keys.mT  # (..., n_q, n_k)
    if cap is not None:
        scores /= cap
        np.tanh(scores, out=scores)
        scores *= cap
    block_scores(scores, mask, causal)
    if sink is not None:  # a finite one stays finite in float32
        sink = np.minimum(sink, np.finfo(wide).max / 2).astype(wide)[:, None, None]
    weights = softmax_in_place(scores, sink=sink)
    output = weighted_sum(weights, values, mask, causal)  # (..., n_q, d_v)
    return output.astype(dtype, copy=False), weights.astype(dtype, copy=False)


def softmax_in_place(scores, axis=-1, sink=None):
    """Turn scores of float32 or float64 into weights, in place, and return them.

    Writing over a large array is faster than allocating a new one. `sink` is one more score in each
    sum, which keeps its weight to itself.
    """
    # exp cannot overflow, and softmax is unchanged by a shift. No row is shifted by -inf, even
    # where every score is -inf, because -inf - (-inf) would be NaN.
    top = scores.max(axis, keepdims=True, initial=-np.inf)
    top[top == -np.inf] = 0
    scores -= top
    np.exp(scores, out=scores)
    total = scores.sum(axis, keepdims=True)
    if sink is not None:
        total += np.exp(sink - top)  # infinity leaves weights of 0, which is what they round to
    scores /= total + (total == 0)  # a row of zeros stays one
    return scores


def weighted_sum(weights, values, mask, causal=False, first=0):
    """Return weights @ values, in which a blocked value has no effect, not even if it is NaN.

    Eq. (6) of "Queries, keys and values". `mask`, `causal` and `first` are those of `block_scores`.
    """
    output = weights @ values
    if np.isfinite(output).all():
        return output
    # 0 * NaN is NaN: leave out what is not finite, then add it where a query may attend to it.
    output = weights @ np.where(np.isfinite(values), values, 0)
    allowed = may_attend(weights.shape, mask, causal, first)
    for special, found in (
        (np.nan, np.isnan(values)),
        (np.inf, np.isposinf(values)),
        (-np.inf, np.isneginf(values)),
    ):
        output += np.where(allowed @ found, special, 0)
    return output


def may_attend(shape, mask, causal=False, first=0):
    """Return where a query may attend, as bool of `shape` (..., n_q, n_k).

    `mask`, `causal` and `first` are those of `block_scores`.
    """
    allowed = np.tri(*shape[-2:], first, dtype=bool) if causal else np.True_
    if mask is not None:
        allowed = allowed & (mask if mask.dtype == bool else mask > -np.inf)
    return np.broadcast_to(allowed, shape)


def block_scores(scores, mask, causal, first=0):
    """Set to -inf, in place, each score whose query may not attend to its key.

    `mask` is bool or float and broadcasts to `scores`. `causal` blocks on top of it; `first` is
    the position of the first query, so that every query may attend to the keys before it.
    """
    # -inf is written, not added, because a blocked score may be NaN and would stay NaN.
    if mask is not None:
        if mask.dtype != bool:
            # A finite number never blocks, not even one that scores of float32 cannot hold.
            most = np.finfo(scores.dtype).max / 2
            scores += np.clip(mask, -most, most)
        np.copyto(scores, -np.inf, where=~mask if mask.dtype == bool else mask == -np.inf)
    if causal:
        corner = scores[..., first:]
        np.copyto(corner, -np.inf, where=~np.tri(*corner.shape[-2:], dtype=bool))
