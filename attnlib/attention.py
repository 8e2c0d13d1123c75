"""Scaled dot-product attention, in the order of its equations.

`softmax` and `scaled_dot_product_attention` are the course. The functions below them hold
the rules that every attention in this library shares: what counts as input, as a mask and
as blocked.
"""

import math
from numbers import Integral, Real

import numpy as np

FLOATS = (np.float16, np.float32, np.float64)


@np.errstate(all="ignore")  # exp underflows to 0 by design, and NaN passes in silence
def softmax(scores, axis=-1):
    r"""Turn scores into weights that sum to 1 along `axis`: positive, or 0 for a score of -inf.

    .. math:: A_{ij} = \frac{e^{\tilde S_{ij}}}{\sum_m e^{\tilde S_{im}}}

    Eq. (5) of chapter 2; the shift by the largest score is its Eq. (7).

    Parameters
    ----------
    scores : array of float16, float32 or float64, shape (..., n, ...)
        -inf stands for a score that takes no part.
    axis : int
        The axis whose weights sum to 1; the last one, the keys, unless given.

    Returns
    -------
    array, shape and dtype of `scores`
        A row of nothing but -inf gives zeros. A row with NaN or +inf gives NaN throughout:
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
    >>> softmax([0.0, 2 * math.sqrt(2)]).round(6)
    array([0.055807, 0.944193])
    >>> softmax([-np.inf, -np.inf])
    array([0., 0.])
    """
    scores = as_floats(scores, "scores")
    if scores.ndim == 0:
        raise ValueError("scores must have at least one axis; got a single number")
    whole = isinstance(axis, Integral) and not isinstance(axis, bool)
    if not whole or not -scores.ndim <= axis < scores.ndim:
        raise ValueError(
            f"axis must be a whole number from {-scores.ndim} to {scores.ndim - 1} "
            f"for scores of shape {scores.shape}; got {axis!r}"
        )
    wide = np.result_type(scores, np.float32)  # a sum of exponentials can pass float16's 65504
    return softmax_in_place(scores.astype(wide), axis).astype(scores.dtype, copy=False)


@np.errstate(all="ignore")  # NaN behind a mask is valid input, so it must not warn
def scaled_dot_product_attention(queries, keys, values, mask=None, *, causal=False, scale=None):
    r"""Blend the values, each query by its own weights.

    .. math:: \mathrm{Attention}(Q, K, V) = \mathrm{softmax}(Q K^\top / \sqrt{d_k})\, V

    Eq. (2) of chapter 2. Its four steps are S = Q K^T, Eq. (3); S / sqrt(d_k), Eq. (4);
    A = softmax of each row, Eq. (5); Z = A V, Eq. (6). A mask acts between (4) and (5).

    Parameters
    ----------
    queries : array, shape (..., n_q, d_k)
    keys : array, shape (..., n_k, d_k)
    values : array, shape (..., n_k, d_v)
        float16, float32 or float64. The leading axes broadcast against each other.
    mask : array, broadcasting to (..., n_q, n_k), optional
        bool, True = may attend; or float, added to the scaled scores. Blocked means False or
        exactly -inf.
    causal : bool
        Let query i attend to keys 0 ... i only, on top of `mask`.
    scale : float, optional
        What the scores are multiplied by; 1 / sqrt(d_k) unless given.

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
        If the shapes do not fit, d_k is 0, `mask` holds NaN or +inf, or `scale` is not finite.

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
    dtype, n_k = queries.dtype, keys.shape[-2]
    mask = read_mask(mask, (*queries.shape[:-1], n_k))
    scale = read_scale(scale, d_k=queries.shape[-1])

    wide = np.result_type(dtype, np.float32)  # a score can pass float16's 65504
    queries, keys, values = (array.astype(wide, copy=False) for array in (queries, keys, values))
    # Scaling the queries gives the same scores as scaling S, with fewer products.
    scores = (queries * scale) @ keys.mT  # (..., n_q, n_k)
    block_scores(scores, mask, causal)
    weights = softmax_in_place(scores)
    output = weighted_sum(weights, values, mask, causal)  # (..., n_q, d_v)
    return output.astype(dtype, copy=False), weights.astype(dtype, copy=False)


def softmax_in_place(scores, axis=-1):
    """Turn scores of float32 or float64 into weights where they stand, and return them.

    Large arrays are faster to write over than to allocate anew.
    """
    # exp cannot overflow, and softmax is unchanged by a shift. The shift stays finite even
    # where every score is -inf, because -inf - (-inf) would be NaN.
    scores -= scores.max(axis, keepdims=True, initial=np.finfo(scores.dtype).min)
    np.exp(scores, out=scores)
    total = scores.sum(axis, keepdims=True)
    scores /= np.where(total == 0, 1, total)
    return scores


def weighted_sum(weights, values, mask=None, causal=False, first=0):
    """Return weights @ values, in which a blocked value counts for nothing, not even as NaN.

    Eq. (6) of chapter 2. `mask`, `causal` and `first` are those of `block_scores`.
    """
    output = weights @ values
    if np.isfinite(output).all():
        return output
    # 0 * NaN is NaN: leave out what is not finite, then give it back to those who may see it.
    output = weights @ np.where(np.isfinite(values), values, 0)
    allowed = may_attend(weights.shape, mask, causal, first)
    for special, found in (
        (np.nan, np.isnan(values)),
        (np.inf, np.isposinf(values)),
        (-np.inf, np.isneginf(values)),
    ):
        output += np.where(allowed @ found, special, 0)
    return output


def as_array(array, name):
    """Return `array` as a NumPy array; a list of rows counts if they have one length."""
    try:
        return np.asarray(array)
    except ValueError:
        raise ValueError(f"{name} must have rows of one length; got unequal rows") from None


def as_floats(array, name):
    """Return `array` as an array of float16, float32 or float64, and refuse all else."""
    array = as_array(array, name)
    if array.dtype.type not in FLOATS:
        raise TypeError(
            f"{name} must hold floats (float16, float32 or float64, so 1.0 and not 1); "
            f"got {array.dtype}"
        )
    return array


def read_dtype(dtype):
    """Return `dtype` as float16, float32 or float64, and refuse all else."""
    try:
        dtype = np.dtype(dtype).type
    except TypeError:
        pass  # no dtype at all is answered below, in the same words as a wrong one
    if dtype not in FLOATS:
        raise TypeError(f"dtype must be float16, float32 or float64; got {dtype!r}")
    return dtype


def as_size(number, name, least=0):
    """Return `number` if it can be a size: a whole number, `least` or more."""
    if not isinstance(number, Integral) or isinstance(number, bool):
        raise TypeError(f"{name} must be a whole number; got {number!r}")
    if number < least:
        raise ValueError(f"{name} must be {least} or more; got {number}")
    return int(number)


def read_inputs(queries, keys, values):
    """Return queries, keys and values as arrays of one dtype whose shapes fit together.

    The queries come with all the leading axes of the result, also those of the values. The
    arrays may be the caller's own, so they must not be written to.
    """
    queries = as_floats(queries, "queries")
    keys = as_floats(keys, "keys")
    values = as_floats(values, "values")
    for array, name, shape in (
        (queries, "queries", "(..., n_q, d_k)"),
        (keys, "keys", "(..., n_k, d_k)"),
        (values, "values", "(..., n_k, d_v)"),
    ):
        if array.ndim < 2:
            raise ValueError(f"{name} must be a matrix {shape}; got shape {array.shape}")
    if queries.shape[-1] != keys.shape[-1]:
        raise ValueError(f"queries and keys must share d_k; got {queries.shape} and {keys.shape}")
    if queries.shape[-1] == 0:
        raise ValueError(
            f"queries and keys must have d_k of at least 1; got {queries.shape} and {keys.shape}"
        )
    if keys.shape[-2] != values.shape[-2]:
        raise ValueError(f"keys and values must share n_k; got {keys.shape} and {values.shape}")
    try:
        leading = np.broadcast_shapes(queries.shape[:-2], keys.shape[:-2], values.shape[:-2])
    except ValueError:
        raise ValueError(
            "the leading axes of queries, keys and values must broadcast; "
            f"got {queries.shape}, {keys.shape} and {values.shape}"
        ) from None
    dtype = np.result_type(queries, keys, values)
    queries = np.broadcast_to(queries, leading + queries.shape[-2:])
    return tuple(array.astype(dtype, copy=False) for array in (queries, keys, values))


def read_mask(mask, shape, name="mask"):
    """Return `mask` as an array of bool or float that fits scores of `shape` (..., n_q, n_k).

    None stays None: nothing is blocked.
    """
    if mask is None:
        return None
    mask = as_array(mask, name)
    if mask.dtype != bool and mask.dtype.type not in FLOATS:
        raise TypeError(
            f"{name} must be bool (True = may attend) or float (added to the scores); "
            f"got {mask.dtype}"
        )
    try:
        np.broadcast_to(mask, shape)
    except ValueError:
        raise ValueError(
            f"{name} must broadcast to (..., n_q, n_k) = {shape}; got {mask.shape}"
        ) from None
    if mask.dtype != bool:
        unusable = np.isnan(mask) | np.isposinf(mask)
        if unusable.any():
            raise ValueError(
                f"{name} must hold finite numbers, or -inf to block; got {mask[unusable][0]}"
            )
    return mask


def may_attend(shape, mask=None, causal=False, first=0):
    """Return where a query may attend, as bool of `shape` (..., n_q, n_k).

    `mask`, `causal` and `first` are those of `block_scores`.
    """
    allowed = np.tri(*shape[-2:], first, dtype=bool) if causal else np.True_
    if mask is not None:
        allowed = allowed & (mask if mask.dtype == bool else mask > -np.inf)
    return np.broadcast_to(allowed, shape)


def block_scores(scores, mask=None, causal=False, first=0):
    """Set to -inf, in place, each score whose query may not attend to its key.

    `mask` is bool or float and broadcasts to `scores`. `causal` blocks on top of it; `first` is
    the position of the first query, so that the keys before it are seen by all.
    """
    # By writing -inf, not by adding it: what is blocked may be NaN, which has to go.
    if mask is not None and mask.dtype == bool:
        np.copyto(scores, -np.inf, where=~mask)
    elif mask is not None:
        # A finite number never blocks, not even one that scores of float32 cannot hold.
        most = np.finfo(scores.dtype).max / 2
        scores += np.clip(mask, -most, most)
        np.copyto(scores, -np.inf, where=mask == -np.inf)
    if causal:
        corner = scores[..., first:]
        np.copyto(corner, -np.inf, where=~np.tri(*corner.shape[-2:], dtype=bool))


def read_scale(scale, d_k):
    """Return `scale` as a Python float, 1 / sqrt(d_k) if None: it never widens float32."""
    if scale is None:
        return 1 / math.sqrt(d_k)
    if not isinstance(scale, Real) or isinstance(scale, bool):
        raise TypeError(f"scale must be a number; got {type(scale).__name__}")
    if not math.isfinite(scale):
        raise ValueError(f"scale must be finite; got {scale}")
    return float(scale)
