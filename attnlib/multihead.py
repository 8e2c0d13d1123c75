"""Multi-head attention: the same attention several times side by side, each in its own space."""

from dataclasses import dataclass

import numpy as np

from attnlib.attention import (
    as_array,
    as_floats,
    as_size,
    read_dtype,
    read_mask,
    scaled_dot_product_attention,
)


def split_heads(x, n_heads):
    r"""Cut the last axis into heads and put the heads before the tokens.

    .. math:: X_h[i] = X[i,\; h d : (h + 1) d]

    Eq. (3) of chapter 6.

    Parameters
    ----------
    x : array, shape (..., n, n_heads * d)
    n_heads : int

    Returns
    -------
    array, shape (..., n_heads, n, d)

    Raises
    ------
    TypeError
        If `n_heads` is not a whole number.
    ValueError
        If `x` is no matrix, `n_heads` is below 1, or does not divide the last axis.

    Source
    ------
    Vaswani et al. 2017, *Attention Is All You Need*, section 3.2.2.

    Examples
    --------
    >>> split_heads([[0, 1, 2, 3], [4, 5, 6, 7]], 2)
    array([[[0, 1],
            [4, 5]],
    <BLANKLINE>
           [[2, 3],
            [6, 7]]])
    """
    x = as_array(x, "x")
    n_heads = as_size(n_heads, "n_heads", least=1)
    if x.ndim < 2:
        raise ValueError(f"x must be a matrix (..., n, n_heads * d); got shape {x.shape}")
    if x.shape[-1] % n_heads:
        raise ValueError(
            f"the last axis of x must be divisible by n_heads = {n_heads}; got shape {x.shape}"
        )
    x = x.reshape(*x.shape[:-1], n_heads, x.shape[-1] // n_heads)  # (..., n, n_heads, d)
    return x.swapaxes(-2, -3)  # (..., n_heads, n, d)


def merge_heads(x):
    r"""Put the heads side by side again, token by token: the inverse of `split_heads`.

    .. math:: X[i] = \mathrm{Concat}(X_1[i], \dots, X_h[i])

    Eq. (2) of chapter 6, its Concat.

    Parameters
    ----------
    x : array, shape (..., n_heads, n, d)

    Returns
    -------
    array, shape (..., n, n_heads * d)

    Raises
    ------
    ValueError
        If `x` has fewer than three axes.

    Source
    ------
    Vaswani et al. 2017, *Attention Is All You Need*, section 3.2.2.

    Examples
    --------
    >>> merge_heads([[[0, 1], [4, 5]], [[2, 3], [6, 7]]])
    array([[0, 1, 2, 3],
           [4, 5, 6, 7]])
    """
    x = as_array(x, "x")
    if x.ndim < 3:
        raise ValueError(f"x must have axes (..., n_heads, n, d); got shape {x.shape}")
    *leading, n_heads, n, d = x.shape
    # The tokens come first before the reshape, or it would mix one token with the next.
    return x.swapaxes(-2, -3).reshape(*leading, n, n_heads * d)


@dataclass(eq=False)
class MultiHeadAttention:
    r"""Attention in `n_heads` subspaces at once, joined by one last projection.

    .. math::

        \mathrm{head}_i &= \mathrm{Attention}(X W_Q^i, M W_K^i, M W_V^i) \\
        \mathrm{MultiHead}(X, M) &= \mathrm{Concat}(\mathrm{head}_1, \dots, \mathrm{head}_h) W_O

    Eqs. (1) and (2) of chapter 6. The columns of one head stand side by side in `w_q`, `w_k`
    and `w_v`: head i owns columns i * d to (i + 1) * d. M is X itself in self-attention.

    Parameters
    ----------
    w_q : array, shape (d_model, n_heads * d_k)
    w_k : array, shape (d_memory, n_heads * d_k)
    w_v : array, shape (d_memory, n_heads * d_v)
    w_o : array, shape (n_heads * d_v, d_model)
        Used as x @ w. float16, float32 or float64.
    n_heads : int
    b_q, b_k, b_v, b_o : array, shape (columns of its w,), or None
        Added after the product.

    Raises
    ------
    TypeError
        If a weight or a bias does not hold floats, or `n_heads` is not a whole number.
    ValueError
        If the shapes do not fit each other or `n_heads`.

    Source
    ------
    Vaswani et al. 2017, *Attention Is All You Need*, section 3.2.2. The paper has no biases;
    torch.nn.MultiheadAttention does.
    """

    w_q: np.ndarray
    w_k: np.ndarray
    w_v: np.ndarray
    w_o: np.ndarray
    n_heads: int
    b_q: np.ndarray | None = None
    b_k: np.ndarray | None = None
    b_v: np.ndarray | None = None
    b_o: np.ndarray | None = None

    def __post_init__(self):
        self.n_heads = as_size(self.n_heads, "n_heads", least=1)
        for letter in "qkvo":
            self._read_projection(f"w_{letter}", f"b_{letter}")
        for one, two, what in (
            (self.w_q.shape[1], self.w_k.shape[1], "w_q and w_k must have the same columns"),
            (self.w_k.shape[0], self.w_v.shape[0], "w_k and w_v must have the same rows"),
            (self.w_v.shape[1], self.w_o.shape[0], "w_o must have as many rows as w_v columns"),
        ):
            if one != two:
                raise ValueError(f"{what}; got {one} and {two}")
        for name in ("w_q", "w_v"):
            columns = getattr(self, name).shape[1]
            if columns % self.n_heads or columns == 0:
                raise ValueError(
                    f"{name} must have a multiple of n_heads = {self.n_heads} columns; "
                    f"got {columns}"
                )

    def _read_projection(self, weight, bias):
        """Turn a weight and its bias into arrays that fit together."""
        w = as_floats(getattr(self, weight), weight)
        if w.ndim != 2:
            raise ValueError(f"{weight} must be a matrix (d_in, d_out); got shape {w.shape}")
        setattr(self, weight, w)
        if getattr(self, bias) is not None:
            b = as_floats(getattr(self, bias), bias)
            if b.shape != w.shape[1:]:
                raise ValueError(
                    f"{bias} must have shape {w.shape[1:]}, as {weight} has columns; got {b.shape}"
                )
            setattr(self, bias, b)

    @classmethod
    def init(cls, d_model, n_heads, rng, *, bias=True, dtype=np.float32):
        """Return a layer with random weights (Xavier, uniform) and biases of 0.

        Parameters
        ----------
        d_model, n_heads : int
        rng : numpy.random.Generator
        bias : bool
            Whether to have the four biases.
        dtype : float16, float32 or float64

        Raises
        ------
        TypeError
            If a size is not a whole number, `rng` is not a Generator, or `dtype` is not one of
            the three.
        ValueError
            If a size is below 1, or `n_heads` does not divide `d_model`.

        Source
        ------
        Glorot and Bengio 2010, section 4.2.1, Eq. (16).
        """
        d_model = as_size(d_model, "d_model", least=1)
        n_heads = as_size(n_heads, "n_heads", least=1)
        if d_model % n_heads:
            raise ValueError(
                f"d_model must be divisible by n_heads; got {d_model} and {n_heads} heads"
            )
        weights = [xavier(d_model, d_model, rng, dtype) for _ in range(4)]
        biases = [np.zeros(d_model, weights[0].dtype) if bias else None for _ in range(4)]
        return cls(*weights, n_heads, *biases)

    @np.errstate(all="ignore")  # NaN behind a mask is valid input, so it must not warn
    def __call__(self, x, memory=None, mask=None, *, score_bias=None):
        """Let each token of `x` attend to `memory`, or to `x` itself.

        Parameters
        ----------
        x : array, shape (..., n_q, d_model)
        memory : array, shape (..., n_k, d_memory), optional
            Where keys and values come from; `x` unless given.
        mask : array, broadcasting to (..., n_q, n_k), optional
            bool, True = may attend; or float, added to the scores. Shared by all heads: it has
            no axis for them.
        score_bias : array of float, broadcasting to (..., n_heads, n_q, n_k), optional
            Added to the scores of each head; -inf blocks.

        Returns
        -------
        output : array, shape (..., n_q, d_model)
        weights : array, shape (..., n_heads, n_q, n_k)
            Both in the common dtype of the tokens and the layer, which `mask` and `score_bias`
            never change. A token with nothing to attend to has zero weights, so its output is
            `b_o`.

        Raises
        ------
        TypeError
            If an array is of the wrong kind.
        ValueError
            If a width is not the layer's, the shapes do not broadcast, or `mask` or
            `score_bias` holds NaN or +inf.
        """
        x = read_tokens(x, "x", self.w_q.shape[0])
        memory = read_tokens(x if memory is None else memory, "memory", self.w_k.shape[0])
        queries = split_heads(project(x, self.w_q, self.b_q), self.n_heads)  # (..., h, n_q, d_k)
        keys = split_heads(project(memory, self.w_k, self.b_k), self.n_heads)  # (..., h, n_k, d_k)
        values = split_heads(project(memory, self.w_v, self.b_v), self.n_heads)
        mask = self._read_masks(mask, score_bias, x, memory)
        heads, weights = scaled_dot_product_attention(queries, keys, values, mask)
        return project(merge_heads(heads), self.w_o, self.b_o), weights  # (..., n_q, d_model)

    def _read_masks(self, mask, score_bias, x, memory):
        """Join `mask`, which has no axis for the heads, and `score_bias`, which has one."""
        *leading, n_q, n_k = shape = scores_shape(x, memory)
        mask = read_mask(mask, shape)
        if mask is not None and mask.ndim > 2:
            mask = mask[..., None, :, :]  # or the batch would line up with the heads
        if score_bias is None:
            return mask
        score_bias = as_floats(score_bias, "score_bias")
        read_mask(score_bias, (*leading, self.n_heads, n_q, n_k), "score_bias")
        if mask is None:
            return score_bias
        if mask.dtype == bool:
            return np.where(mask, score_bias, -np.inf)
        return np.add(score_bias, mask, dtype=np.float64)  # a sum can pass float16's 65504


def project(x, w, b):
    """Return x @ w + b, without b where there is none."""
    y = x @ w
    if b is not None:
        y += b  # in place: a second array of this size takes longer than the sum
    return y


def scores_shape(x, memory):
    """Return (..., n_q, n_k): the shape of the scores of one head."""
    try:
        leading = np.broadcast_shapes(x.shape[:-2], memory.shape[:-2])
    except ValueError:
        raise ValueError(
            f"the leading axes of x and memory must broadcast; got {x.shape} and {memory.shape}"
        ) from None
    return (*leading, x.shape[-2], memory.shape[-2])


def read_tokens(x, name, width):
    """Return `x` as an array of floats (..., n, width), and refuse all else."""
    x = as_floats(x, name)
    if x.ndim < 2:
        raise ValueError(f"{name} must be a matrix (..., n, {width}); got shape {x.shape}")
    if x.shape[-1] != width:
        raise ValueError(f"{name} must be as wide as the layer, {width}; got shape {x.shape}")
    return x


def xavier(d_in, d_out, rng, dtype):
    """Return a weight (d_in, d_out), uniform within +-sqrt(6 / (d_in + d_out))."""
    dtype = read_dtype(dtype)
    if not isinstance(rng, np.random.Generator):
        raise TypeError(f"rng must be a numpy.random.Generator; got {type(rng).__name__}")
    limit = np.sqrt(6 / (d_in + d_out))
    return rng.uniform(-limit, limit, (d_in, d_out)).astype(dtype)
