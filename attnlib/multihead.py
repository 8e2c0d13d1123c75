"""Multi-head attention: the same attention several times side by side, each in its own space."""

import math
import weakref
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from attnlib.attention import attend
from attnlib.caches import KeyValueCache
from attnlib.inputs import (
    quiet_nan,
    read_array,
    read_flag,
    read_floats,
    read_function,
    read_mask,
    read_matrix,
    read_number,
    read_result,
    read_size,
    read_tokens,
    read_vector,
    scores_shape,
)
from attnlib.projections import project, xavier


def split_heads(x, n_heads):
    r"""Cut the last axis into heads and put the heads before the tokens.

    .. math:: X_h[i] = X[i,\; (h - 1) d : h d]

    Eq. (3) of "Many heads", where h counts from 1; here `X[..., h - 1, :, :]` is head h.

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
        If `x` is not a matrix, `n_heads` is below 1, or does not divide the last axis.

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
    x = read_array(x, "x")
    n_heads = read_size(n_heads, "n_heads", least=1)
    if x.ndim < 2:
        raise ValueError(f"x must be a matrix (..., n, n_heads * d); got shape {x.shape}")
    if x.shape[-1] % n_heads:
        raise ValueError(
            f"the last axis of x must be divisible by n_heads = {n_heads}; got shape {x.shape}"
        )
    return _split(x, n_heads)


def merge_heads(x):
    r"""Put the heads side by side again, token by token: the inverse of `split_heads`.

    .. math:: X[i] = \mathrm{Concat}(X_1[i], \dots, X_h[i])

    The Concat in Eq. (2) of "Many heads".

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
    x = read_array(x, "x")
    if x.ndim < 3:
        raise ValueError(f"x must have axes (..., n_heads, n, d); got shape {x.shape}")
    return _merge(x)


@dataclass(eq=False)
class MultiHeadAttention:
    r"""Attention in `n_heads` subspaces at once, joined by one last projection.

    .. math::

        \mathrm{head}_i &= \mathrm{Attention}(X W_Q^i, M W_K^i, M W_V^i) \\
        \mathrm{MultiHead}(X, M) &= \mathrm{Concat}(\mathrm{head}_1, \dots, \mathrm{head}_h) W_O

    Eqs. (1) and (2) of "Many heads". The columns of one head are adjacent in `w_q`, `w_k`
    and `w_v`: head i has columns i * d to (i + 1) * d. M is X itself in self-attention.

    With `scale` s, `cap` c and `sink` z_h, the weights of head h are

    .. math:: A_{ij} = \frac{e^{\tilde S_{ij}}}{e^{z_h} + \sum_m e^{\tilde S_{im}}}
        \quad\text{with}\quad \tilde S = c \tanh(s\, Q K^\top / c)

    Parameters
    ----------
    w_q : array, shape (d_model, n_heads * d_k)
    w_k : array, shape (d_memory, n_kv_heads * d_k)
    w_v : array, shape (d_memory, n_kv_heads * d_v)
    w_o : array, shape (n_heads * d_v, d_model)
        Used as x @ w. float16, float32 or float64.
    n_heads : int
    b_q, b_k, b_v, b_o : array, shape (columns of its w,), or None
        Added after the product.
    n_kv_heads : int, optional
        Heads of keys and values, `n_heads` unless given, which it must divide: query head i uses
        key head i // (n_heads // n_kv_heads). One alone is multi-query attention.
    turn : callable, optional
        Turns queries and keys (..., heads, n, d_k) by their positions, as `rotary` does. With a
        cache it is given the positions, (n,), as a second argument.
    norm_q, norm_k : callable, optional
        A norm of each query and each key (..., heads, n, d_k), before they are turned.
    scale : float, optional
        What the scores are multiplied by; `1 / sqrt(d_k)` unless given.
    cap : float, optional
        The largest size of a scaled score, which tanh bends towards it; none unless given. A mask
        and `score_bias` come after it.
    sink : array of float, shape (n_heads,), optional
        One more score in each sum of the softmax, with no value: a head whose sink is large hands
        over little. `-inf` has no effect.

    Raises
    ------
    TypeError
        If a weight, a bias or `sink` does not hold floats, a number of heads is not a whole
        number, `scale` or `cap` is not a number, or `turn`, `norm_q` or `norm_k` cannot be called.
    ValueError
        If the shapes do not fit each other or the numbers of heads, `scale` is not finite, `cap`
        is not finite and above 0, or `sink` holds NaN or +inf.

    Source
    ------
    Vaswani et al. 2017, *Attention Is All You Need*, section 3.2.2. The paper has no biases;
    torch.nn.MultiheadAttention does. `n_kv_heads` is Ainslie et al. 2023, *GQA*, section 2.2,
    `norm_q` and `norm_k` Dehghani et al. 2023, *Scaling Vision Transformers to 22 Billion
    Parameters*, section 2. `cap` is Gemma Team 2024, *Gemma 2*, section 2, `sink` OpenAI 2025,
    *gpt-oss-120b & gpt-oss-20b Model Card*, section 2.2.
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
    n_kv_heads: int | None = None
    turn: Callable | None = None
    norm_q: Callable | None = None
    norm_k: Callable | None = None
    scale: float | None = None
    cap: float | None = None
    sink: np.ndarray | None = None

    def __post_init__(self):
        self.n_heads = read_size(self.n_heads, "n_heads", least=1)
        self.n_kv_heads = _read_kv_heads(self.n_kv_heads, self.n_heads)
        self.w_q, self.b_q = _read_projection(self.w_q, self.b_q, "q")
        self.w_k, self.b_k = _read_projection(self.w_k, self.b_k, "k")
        self.w_v, self.b_v = _read_projection(self.w_v, self.b_v, "v")
        self.w_o, self.b_o = _read_projection(self.w_o, self.b_o, "o")
        for name, part in (("turn", self.turn), ("norm_q", self.norm_q), ("norm_k", self.norm_k)):
            if part is not None:
                read_function(part, name)
        if self.scale is not None:
            self.scale = read_number(self.scale, "scale")
        if self.cap is not None:
            self.cap = read_number(self.cap, "cap", "above 0")
        self.sink = _read_sink(self.sink, self.n_heads)
        self._check_shapes()

    def _check_shapes(self):
        """Refuse weights that do not fit each other or the heads."""
        w_q, w_k, w_v, w_o = self.w_q.shape, self.w_k.shape, self.w_v.shape, self.w_o.shape
        group, times = self.n_heads // self.n_kv_heads, ""
        shared, heads = "w_q and w_k must have the same columns", f"n_heads = {self.n_heads}"
        kv_heads = heads
        if group > 1:
            times, kv_heads = f"{group} times ", f"n_kv_heads = {self.n_kv_heads}"
            shared = f"w_q must have {times}the columns of w_k"
        for fits, needed, got in (
            (w_q[1] == group * w_k[1], shared, f"{w_q[1]} and {w_k[1]}"),
            (w_k[0] == w_v[0], "w_k and w_v must have the same rows", f"{w_k[0]} and {w_v[0]}"),
            (
                w_o[0] == group * w_v[1],
                f"w_o must have {times}as many rows as w_v columns",
                f"{w_v[1]} and {w_o[0]}",
            ),
            (
                w_q[1] and w_q[1] % self.n_heads == 0,
                f"w_q must have a multiple of {heads} columns",
                w_q[1],
            ),
            (
                w_v[1] and w_v[1] % self.n_kv_heads == 0,
                f"w_v must have a multiple of {kv_heads} columns",
                w_v[1],
            ),
        ):
            if not fits:
                raise ValueError(f"{needed}; got {got}")

    @property
    def widths(self):
        """The widths of the input and of the output, in dimensions."""
        return self.w_q.shape[0], self.w_o.shape[1]

    @classmethod
    def init(cls, d_model, n_heads, rng, *, bias=True, n_kv_heads=None, dtype=np.float32):
        """Return a layer with random weights (Xavier, uniform) and biases of 0.

        Parameters
        ----------
        d_model, n_heads : int
        rng : numpy.random.Generator
        bias : bool
            Whether to have the four biases.
        n_kv_heads : int, optional
            Heads of keys and values; `n_heads` unless given.
        dtype : float16, float32 or float64

        Raises
        ------
        TypeError
            If a size is not a whole number, `rng` is not a Generator, or `dtype` is not one of
            the three.
        ValueError
            If a size is below 1, `n_heads` does not divide `d_model`, or `n_kv_heads` does not
            divide `n_heads`.

        Source
        ------
        Glorot and Bengio 2010, section 4.2.1, Eq. (16).
        """
        d_model = read_size(d_model, "d_model", least=1)
        n_heads = read_size(n_heads, "n_heads", least=1)
        if d_model % n_heads:
            raise ValueError(
                f"d_model must be divisible by n_heads; got {d_model} and {n_heads} heads"
            )
        n_kv_heads, bias = _read_kv_heads(n_kv_heads, n_heads), read_flag(bias, "bias")
        d_kv = n_kv_heads * (d_model // n_heads)
        widths = d_model, d_kv, d_kv, d_model
        weights = [xavier(d_model, width, rng, dtype) for width in widths]
        biases = [np.zeros(width, dtype) if bias else None for width in widths]
        return cls(*weights, n_heads, *biases, n_kv_heads)

    @quiet_nan
    def __call__(self, x, memory=None, mask=None, *, score_bias=None, cache=None):
        """Let each token of `x` attend to `memory`, or to `x` itself.

        Parameters
        ----------
        x : array, shape (..., n_q, d_model)
        memory : array, shape (..., n_k, d_memory), optional
            Where keys and values come from; `x` unless given.
        mask : array, broadcasting to (..., n_q, n_k), optional
            bool, True = may attend; or float, added to the scores, but not zeros and ones.
            Shared by all heads: it has no axis for them.
        score_bias : array of float, broadcasting to (..., n_heads, n_q, n_k), optional
            Added to the scores of each head; `-inf` blocks.
        cache : KeyValueCache, optional
            The keys and values of the tokens before, to which those of `x` are added. Then n_k
            counts both, and no token attends to a later one, whatever `mask` says.

        Returns
        -------
        output : array, shape (..., n_q, d_model)
        weights : array, shape (..., n_heads, n_q, n_k)
            Each in the common dtype of the tokens and the parameters that it is made from, which
            `mask` and `score_bias` never change. Of float16, only attention itself is worked
            out in float32: a projection that passes 65504 becomes infinite. A token with nothing
            to attend to has zero weights, so its output is `b_o`.

        Raises
        ------
        TypeError
            If an array or `cache` is of the wrong kind.
        ValueError
            If a width is not the layer's, the shapes do not broadcast or do not fit the cache,
            `mask` or `score_bias` holds NaN or +inf, or there is a cache and a memory.
        """
        x = read_tokens(x, "x", self.w_q.shape[0])
        if cache is not None:
            _check_cache(cache, memory, self)
        memory = read_tokens(x if memory is None else memory, "memory", self.w_k.shape[0])
        *leading, n_q, n_k = scores_shape(x, memory)
        if cache is not None:
            n_k += cache.n_kept
        mask = read_mask(mask, (*leading, n_q, n_k))
        if score_bias is not None:
            score_bias = read_floats(score_bias, "score_bias")
            shape = (*leading, self.n_heads, n_q, n_k)
            read_mask(score_bias, shape, "score_bias", is_bias=True)
        queries = _split(project(x, self.w_q, self.b_q), self.n_heads)  # (..., n_heads, n_q, d_k)
        keys = _split(project(memory, self.w_k, self.b_k), self.n_kv_heads)
        values = _split(project(memory, self.w_v, self.b_v), self.n_kv_heads)
        # Keys are turned before they are kept: a position never changes. And they are kept before
        # they are repeated: fewer heads of keys make a smaller cache.
        positions = () if cache is None else (np.arange(cache.n, cache.n + n_q),)
        queries = _changed(queries, self.norm_q, "norm_q", self.turn, positions)
        keys = _changed(keys, self.norm_k, "norm_k", self.turn, positions)
        if cache is not None:
            mask = _join(cache.mask(n_q), mask)
            keys, values = cache.extend(keys, values)
            cache.attention = weakref.ref(self)
        if self.n_kv_heads < self.n_heads:  # (..., n_kv_heads, n_k, d) -> (..., n_heads, n_k, d)
            group = self.n_heads // self.n_kv_heads
            keys, values = keys.repeat(group, axis=-3), values.repeat(group, axis=-3)
        if mask is not None and mask.ndim > 2:
            mask = mask[..., None, :, :]  # or the batch would line up with the heads
        if score_bias is not None:
            mask = _join(mask, score_bias)
        scale = 1 / math.sqrt(queries.shape[-1]) if self.scale is None else self.scale
        heads, weights = attend(queries, keys, values, mask, False, scale, self.cap, self.sink)
        return project(_merge(heads), self.w_o, self.b_o), weights  # (..., n_q, d_model)


def _split(x, n_heads):
    x = x.reshape(*x.shape[:-1], n_heads, x.shape[-1] // n_heads)  # (..., n, n_heads, d)
    return x.swapaxes(-2, -3)  # (..., n_heads, n, d)


def _merge(x):
    *leading, n_heads, n, d = x.shape
    # The tokens come first before the reshape, or it would mix one token with the next.
    return x.swapaxes(-2, -3).reshape(*leading, n, n_heads * d)


def _join(mask, other):
    """Return two masks as one; either may be None, and bool comes first."""
    if mask is None or other is None:
        return other if mask is None else mask
    if other.dtype == bool:
        return mask & other
    if mask.dtype == bool:
        return np.where(mask, other, -np.inf)
    return np.add(other, mask, dtype=np.float64)  # a sum can pass float16's 65504


def _read_kv_heads(n_kv_heads, n_heads):
    """Return the number of heads of keys and values: one that divides `n_heads`, or all if None."""
    if n_kv_heads is None:
        return n_heads
    n_kv_heads = read_size(n_kv_heads, "n_kv_heads", least=1)
    if n_heads % n_kv_heads:
        raise ValueError(f"n_heads must be divisible by n_kv_heads; got {n_heads} and {n_kv_heads}")
    return n_kv_heads


def _read_sink(sink, n_heads):
    """Return the sinks as an array of floats (n_heads,); None stays None."""
    sink = read_vector(sink, "sink", n_heads)
    if sink is not None and not (sink < np.inf).all():
        raise ValueError(
            f"sink must hold finite numbers, or -inf for no effect; got {sink[~(sink < np.inf)][0]}"
        )
    return sink


def _changed(heads, norm, name, turn, positions):
    """Return queries or keys (..., heads, n, d_k) normed, then turned."""
    if norm is not None:
        heads = read_result(norm(heads), name, heads.shape)
    return heads if turn is None else read_result(turn(heads, *positions), "turn", heads.shape)


def _check_cache(cache, memory, attention):
    """Refuse what is not a cache of this attention, and a memory, which a cache does not keep."""
    if not isinstance(cache, KeyValueCache):
        raise TypeError(f"cache must be a KeyValueCache; got {type(cache).__name__}")
    if memory is not None:
        raise ValueError("memory must be None with a cache, which is for self-attention; got both")
    if cache.attention is not None and cache.attention() is not attention:
        raise ValueError("cache must be that of this attention; got that of another attention")


def _read_projection(w, b, letter):
    """Return a weight and its bias as arrays that fit together."""
    w = read_matrix(w, f"w_{letter}")
    if b is not None:
        b = read_floats(b, f"b_{letter}")
        if b.shape != w.shape[1:]:
            raise ValueError(
                f"b_{letter} must have shape {w.shape[1:]}, one entry per column of w_{letter}; "
                f"got {b.shape}"
            )
    return w, b
