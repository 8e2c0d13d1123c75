"""Masks: who may attend to whom. Rows are queries, columns are keys, True = may attend.

A mask acts between Eqs. (4) and (5) of "Queries, keys and values": a blocked score becomes -inf, so
that its attention weight is 0. Masks combine with `&`. `additive` and `blocked` translate to the
two other conventions that a reader meets.
"""

import numpy as np

from attnlib.inputs import read_array, read_dtype, read_flag, read_floats, read_size


def causal_mask(n_q, n_k=None):
    """Let each query attend to its own position and to what came before: j <= i.

    Parameters
    ----------
    n_q : int
        Number of queries, in tokens.
    n_k : int, optional
        Number of keys, in tokens; `n_q` unless given. The two are aligned top-left, as in
        PyTorch: query 0 attends to key 0 alone.

    Returns
    -------
    array of bool, shape (n_q, n_k)

    Raises
    ------
    TypeError
        If a size is not a whole number.
    ValueError
        If a size is below 0.

    Source
    ------
    Vaswani et al. 2017, *Attention Is All You Need*, section 3.2.3.

    Examples
    --------
    >>> causal_mask(3).astype(int)
    array([[1, 0, 0],
           [1, 1, 0],
           [1, 1, 1]])
    """
    n_q = read_size(n_q, "n_q")
    n_k = n_q if n_k is None else read_size(n_k, "n_k")
    return np.tri(n_q, n_k, dtype=bool)


def padding_mask(lengths, n_k):
    """Hide the padding of a batch: key j of sentence b is real if j < lengths[b].

    Parameters
    ----------
    lengths : array of int, shape (batch,)
        Tokens in each sentence, without its padding.
    n_k : int
        Tokens in each padded sentence.

    Returns
    -------
    array of bool, shape (batch, 1, n_k)
        The middle axis broadcasts over the queries. With heads split, (batch, n_heads, n_q,
        n_k), pass `mask[:, None]`; otherwise batch lines up with the heads.

    Raises
    ------
    TypeError
        If `lengths` or `n_k` are not whole numbers.
    ValueError
        If `lengths` is not a vector, or holds a length below 0 or beyond `n_k`.

    Source
    ------
    `key_padding_mask` of torch.nn.MultiheadAttention, inverted so that True = may attend,
    and with an axis for the queries.

    Examples
    --------
    >>> padding_mask([1, 3], 3).astype(int)
    array([[[1, 0, 0]],
    <BLANKLINE>
           [[1, 1, 1]]])
    """
    n_k = read_size(n_k, "n_k")
    lengths = read_array(lengths, "lengths")
    if lengths.ndim != 1:
        raise ValueError(f"lengths must be a vector (batch,); got shape {lengths.shape}")
    if lengths.size == 0:
        return np.zeros((0, 1, n_k), dtype=bool)
    whole = lengths.dtype.kind in "iu" or all(type(length) is int for length in lengths)
    if not whole:
        raise TypeError(f"lengths must be whole numbers; got {lengths.dtype}")
    if lengths.min() < 0 or lengths.max() > n_k:
        raise ValueError(f"lengths must lie between 0 and n_k = {n_k}; got {lengths.tolist()}")
    return np.arange(n_k) < lengths[:, None, None]  # (batch, 1, n_k)


def window_mask(n, width, *, causal=False):
    """Let each token attend to its neighbors, those at most `width` tokens away.

    Parameters
    ----------
    n : int
        Number of tokens, queries and keys alike.
    width : int
        How many tokens away a key may be, on each side.
    causal : bool
        Keep only the left side, j <= i.

    Returns
    -------
    array of bool, shape (n, n)

    Raises
    ------
    TypeError
        If `n` or `width` is not a whole number.
    ValueError
        If `n` or `width` is below 0.

    Source
    ------
    Vaswani et al. 2017, *Attention Is All You Need*, section 4, suggest it; Beltagy et al. 2020,
    *Longformer*, section 3.1, whose window w is 2 * width here.

    Examples
    --------
    >>> window_mask(4, 1).astype(int)
    array([[1, 1, 0, 0],
           [1, 1, 1, 0],
           [0, 1, 1, 1],
           [0, 0, 1, 1]])
    """
    positions = np.arange(read_size(n, "n"))
    distance = positions[:, None] - positions  # (n, n): i - j
    near = np.abs(distance) <= read_size(width, "width")
    return near & (distance >= 0) if read_flag(causal, "causal") else near


def top_k_mask(scores, k):
    """Let each query attend to the keys of its k largest scores.

    Parameters
    ----------
    scores : array of float, shape (..., n_q, n_k)
        A score of `-inf` is never chosen. Of equal scores the first ones are, and NaN counts as the
        largest, so that it stays in sight.
    k : int
        The number of keys, in tokens; beyond n_k, all of them.

    Returns
    -------
    array of bool, shape of `scores`

    Raises
    ------
    TypeError
        If `scores` does not hold floats, or `k` is not a whole number.
    ValueError
        If `scores` is a single number, or `k` is below 0.

    Source
    ------
    Gupta et al. 2021, *Memory-efficient Transformers via Top-k Attention*. DeepSeek-AI
    2025, *DeepSeek-V3.2-Exp*, section 1, choose by the scores of a smaller attention, the indexer.

    Examples
    --------
    >>> top_k_mask([[0.3, 2.0, 1.0], [5.0, 5.0, 5.0]], 2).astype(int)
    array([[0, 1, 1],
           [1, 1, 0]])
    """
    scores, k = read_floats(scores, "scores"), read_size(k, "k")
    if scores.ndim == 0:
        raise ValueError("scores must have an axis of keys; got a single number")
    # Backwards, so that the last of equal scores in the sorted order is the first in the given one.
    order = np.argsort(scores[..., ::-1], axis=-1, kind="stable")
    largest = np.zeros(scores.shape, dtype=bool)
    n_k = scores.shape[-1]
    np.put_along_axis(largest, order[..., max(n_k - k, 0) :], True, axis=-1)
    return largest[..., ::-1] & (scores != -np.inf)


def additive(mask, dtype=np.float32):
    """Translate a mask into what is added to the scores: True -> 0, False -> `-inf`.

    Parameters
    ----------
    mask : array of bool
    dtype : float16, float32 or float64

    Returns
    -------
    array of `dtype`, shape of `mask`

    Raises
    ------
    TypeError
        If `mask` is not bool, or `dtype` is not one of the three.

    Source
    ------
    `attn_mask` of torch.nn.functional.scaled_dot_product_attention, given as floats.

    Examples
    --------
    >>> additive([True, False])
    array([  0., -inf], dtype=float32)
    """
    dtype = read_dtype(dtype)
    return np.where(_as_bool(mask), dtype(0), dtype(-np.inf))


def blocked(mask):
    """Translate a mask into one where True = may not attend.

    Parameters
    ----------
    mask : array of bool

    Returns
    -------
    array of bool, shape of `mask`

    Raises
    ------
    TypeError
        If `mask` is not bool.

    Source
    ------
    `attn_mask` and `key_padding_mask` of torch.nn.MultiheadAttention, given as bools.

    Examples
    --------
    >>> blocked([True, False])
    array([False,  True])
    """
    return ~_as_bool(mask)


def _as_bool(mask):
    """Return `mask` as an array of bool, and refuse all else."""
    mask = read_array(mask, "mask")
    if mask.dtype != bool:
        raise TypeError(f"mask must be bool (True = may attend); got {mask.dtype}")
    return mask
