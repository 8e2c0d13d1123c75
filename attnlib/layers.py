"""What stands around attention in a Transformer: norm, feed-forward, residuals, stacks."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from numbers import Real

import numpy as np
from scipy.special import erf

from attnlib.attention import as_floats, as_size, read_mask
from attnlib.multihead import MultiHeadAttention, project, read_tokens, scores_shape, xavier


@np.errstate(all="ignore")  # a row of NaN is valid input, so it must not warn
def layer_norm(x, gamma=None, beta=None, eps=1e-5):
    r"""Give each token mean 0 and variance 1 over its dimensions, then a learned scale and shift.

    .. math:: \mathrm{LayerNorm}(x) = \gamma \frac{x - \mu}{\sqrt{\sigma^2 + \varepsilon}} + \beta

    Eq. (1) of chapter 8. The variance is that of the row itself, divided by d.

    Parameters
    ----------
    x : array of float16, float32 or float64, shape (..., d)
    gamma, beta : array of float, shape (d,), optional
        1 and 0 unless given.
    eps : float
        Stands under the root, beside the variance.

    Returns
    -------
    array, shape and dtype of `x`
        float16 is worked out in float32 and rounded once.

    Raises
    ------
    TypeError
        If an array does not hold floats, or `eps` is not a number.
    ValueError
        If `x` has no axis or one of length 0, `gamma` or `beta` does not have shape (d,), or
        `eps` is below 0 or not finite.

    Source
    ------
    Ba, Kiros and Hinton 2016, *Layer Normalization*, section 3. The epsilon is that of
    torch.nn.LayerNorm.

    Examples
    --------
    >>> layer_norm([1.0, 3.0], eps=0)
    array([-1.,  1.])
    """
    x = as_floats(x, "x")
    if x.ndim == 0 or x.shape[-1] == 0:
        raise ValueError(f"x must have a last axis to take the mean of; got shape {x.shape}")
    gamma = _read_vector(gamma, "gamma", x.shape[-1])
    beta = _read_vector(beta, "beta", x.shape[-1])
    eps = _read_eps(eps)
    wide = x.astype(np.result_type(x, np.float32), copy=False)  # a square can pass float16's 65504
    normed = wide - wide.mean(-1, keepdims=True)
    variance = np.square(normed).mean(-1, keepdims=True)
    normed /= np.sqrt(variance + eps)
    if gamma is not None:
        normed *= gamma
    if beta is not None:
        normed += beta
    return normed.astype(x.dtype, copy=False)


def relu(x):
    r"""Keep what is positive: max(0, x), Eq. (3) of chapter 8.

    Parameters
    ----------
    x : array of float16, float32 or float64

    Returns
    -------
    array, shape and dtype of `x`

    Raises
    ------
    TypeError
        If `x` does not hold floats.

    Source
    ------
    Vaswani et al. 2017, *Attention Is All You Need*, section 3.3, Eq. (2).

    Examples
    --------
    >>> relu([-2.0, 3.0])
    array([0., 3.])
    """
    x = as_floats(x, "x")
    return np.maximum(x, x.dtype.type(0))


@np.errstate(all="ignore")  # -inf * 0 is NaN, in torch too, and valid input must not warn
def gelu(x):
    r"""Weigh x by the share of a standard normal that lies below it.

    .. math:: \mathrm{GELU}(x) = \frac{x}{2} \left(1 + \mathrm{erf}(x / \sqrt 2)\right)

    Eq. (4) of chapter 8, the exact form and not the tanh that stands in for it.

    Parameters
    ----------
    x : array of float16, float32 or float64

    Returns
    -------
    array, shape and dtype of `x`

    Raises
    ------
    TypeError
        If `x` does not hold floats.

    Source
    ------
    Hendrycks and Gimpel 2016, *Gaussian Error Linear Units*, section 2.

    Examples
    --------
    >>> gelu([-1.0, 0.0, 1.0]).round(4)
    array([-0.1587,  0.    ,  0.8413])
    """
    x = as_floats(x, "x")
    return (0.5 * x * (1 + erf(x * (1 / math.sqrt(2))))).astype(x.dtype, copy=False)


@np.errstate(all="ignore")  # NaN at a padded position is valid input, so it must not warn
def feed_forward(x, w_1, b_1, w_2, b_2, activation=relu):
    r"""Two products with a bend between them, for each token by itself.

    .. math:: \mathrm{FFN}(x) = \max(0, x W_1 + b_1) W_2 + b_2

    Eq. (2) of chapter 8.

    Parameters
    ----------
    x : array of float, shape (..., n, d_model)
    w_1 : array of float, shape (d_model, d_ff)
    b_1 : array of float, shape (d_ff,), or None
    w_2 : array of float, shape (d_ff, d_model)
    b_2 : array of float, shape (d_model,), or None
    activation : callable
        `relu`, `gelu`, or any other that works element by element.

    Returns
    -------
    array, shape (..., n, d_model)

    Raises
    ------
    TypeError
        If an array does not hold floats, or `activation` cannot be called.
    ValueError
        If the shapes do not fit.

    Source
    ------
    Vaswani et al. 2017, *Attention Is All You Need*, section 3.3, Eq. (2).

    Examples
    --------
    >>> identity = np.eye(2)
    >>> feed_forward([[1.0, -1.0]], identity, None, identity, None)
    array([[1., 0.]])
    """
    w_1, b_1, w_2, b_2 = _read_feed_forward(w_1, b_1, w_2, b_2, activation)
    x = read_tokens(x, "x", w_1.shape[0])
    return project(activation(project(x, w_1, b_1)), w_2, b_2)


@dataclass(eq=False, kw_only=True)
class _Layer:
    """The fields that encoder and decoder layers share, and what is done with them."""

    attention: MultiHeadAttention
    w_1: np.ndarray
    b_1: np.ndarray | None = None
    w_2: np.ndarray
    b_2: np.ndarray | None = None
    gamma_1: np.ndarray | None = None
    beta_1: np.ndarray | None = None
    gamma_2: np.ndarray | None = None
    beta_2: np.ndarray | None = None
    eps: float = 1e-5
    norm_first: bool = False
    activation: Callable = relu

    _attentions = ("attention",)
    _norms = (1, 2)

    def __post_init__(self):
        for name in self._attentions:
            if not isinstance(getattr(self, name), MultiHeadAttention):
                got = type(getattr(self, name)).__name__
                raise TypeError(f"{name} must be a MultiHeadAttention; got {got}")
        self.w_1, self.b_1, self.w_2, self.b_2 = _read_feed_forward(
            self.w_1, self.b_1, self.w_2, self.b_2, self.activation
        )
        attentions = [getattr(self, name) for name in self._attentions]
        widths = {self.w_1.shape[0], self.w_2.shape[1]}
        widths |= {width for a in attentions for width in (a.w_q.shape[0], a.w_o.shape[1])}
        widths.add(self.attention.w_k.shape[0])  # tokens that attend to themselves
        if len(widths) > 1:
            raise ValueError(
                "attention and feed-forward must lead from one width back to it; "
                f"got {sorted(widths)}"
            )
        for name in (f"{letter}_{norm}" for letter in ("gamma", "beta") for norm in self._norms):
            setattr(self, name, _read_vector(getattr(self, name), name, self.d_model))
        self.eps = _read_eps(self.eps)

    @property
    def d_model(self):
        """The width of the layer, in dimensions."""
        return self.w_1.shape[0]

    @classmethod
    def init(
        cls, d_model, n_heads, d_ff, rng, *, norm_first=False, activation=relu, dtype=np.float32
    ):
        """Return a layer with random weights (Xavier, uniform), biases of 0 and plain norms.

        Parameters
        ----------
        d_model, n_heads, d_ff : int
        rng : numpy.random.Generator
        norm_first : bool
        activation : callable
        dtype : float16, float32 or float64

        Raises
        ------
        TypeError, ValueError
            As `MultiHeadAttention.init`.
        """
        fields = {
            name: MultiHeadAttention.init(d_model, n_heads, rng, dtype=dtype)
            for name in cls._attentions
        }
        d_ff = as_size(d_ff, "d_ff", least=1)
        fields |= {"w_1": xavier(d_model, d_ff, rng, dtype), "b_1": np.zeros(d_ff, dtype)}
        fields |= {"w_2": xavier(d_ff, d_model, rng, dtype), "b_2": np.zeros(d_model, dtype)}
        for norm in cls._norms:
            fields |= {f"gamma_{norm}": np.ones(d_model, dtype)}
            fields |= {f"beta_{norm}": np.zeros(d_model, dtype)}
        return cls(**fields, norm_first=norm_first, activation=activation)

    def _norm(self, x, number):
        gamma, beta = getattr(self, f"gamma_{number}"), getattr(self, f"beta_{number}")
        return layer_norm(x, gamma, beta, self.eps)

    def _feed_forward(self, x):
        return feed_forward(x, self.w_1, self.b_1, self.w_2, self.b_2, self.activation)


@dataclass(eq=False, kw_only=True)
class EncoderLayer(_Layer):
    r"""Self-attention, then a feed-forward network, each with a residual and a norm.

    .. math::

        X' &= \mathrm{LayerNorm}(X + \mathrm{MultiHead}(X)) \\
        X'' &= \mathrm{LayerNorm}(X' + \mathrm{FFN}(X'))

    Eqs. (5) and (6) of chapter 8: post-norm, as in the paper. With `norm_first`, its Eqs. (7)
    and (8): X' = X + MultiHead(LayerNorm(X)) and X'' = X' + FFN(LayerNorm(X')).

    Parameters
    ----------
    attention : MultiHeadAttention
    w_1 : array, shape (d_model, d_ff)
    b_1 : array, shape (d_ff,), or None
    w_2 : array, shape (d_ff, d_model)
    b_2 : array, shape (d_model,), or None
        As in `feed_forward`.
    gamma_1, beta_1 : array, shape (d_model,), or None
        The norm of the attention; None counts as 1 and 0.
    gamma_2, beta_2 : array, shape (d_model,), or None
        The norm of the feed-forward network.
    eps : float
        Of both norms.
    norm_first : bool
    activation : callable

    Raises
    ------
    TypeError
        If a field is of the wrong kind.
    ValueError
        If the shapes do not fit.

    Source
    ------
    Vaswani et al. 2017, *Attention Is All You Need*, section 3.1. `norm_first` is Xiong et al.
    2020, *On Layer Normalization in the Transformer Architecture*, section 3.
    """

    @np.errstate(all="ignore")  # NaN at a padded position is valid input, so it must not warn
    def __call__(self, x, mask=None):
        """Return the tokens after the layer, and where they attended.

        Parameters
        ----------
        x : array of float, shape (..., n, d_model)
        mask : array, broadcasting to (..., n, n), optional
            bool, True = may attend; or float, added to the scores.

        Returns
        -------
        x : array, shape (..., n, d_model)
        weights : array, shape (..., n_heads, n, n)

        Raises
        ------
        TypeError, ValueError
            As `MultiHeadAttention`.
        """
        x = read_tokens(x, "x", self.d_model)
        if self.norm_first:
            attended, weights = self.attention(self._norm(x, 1), mask=mask)
            x = x + attended
            return x + self._feed_forward(self._norm(x, 2)), weights
        attended, weights = self.attention(x, mask=mask)
        x = self._norm(x + attended, 1)
        return self._norm(x + self._feed_forward(x), 2), weights


@dataclass(eq=False)
class Encoder:
    r"""Encoder layers, one after the other.

    .. math:: X_{l+1} = \mathrm{Layer}_l(X_l)

    Eq. (9) of chapter 8.

    Parameters
    ----------
    layers : list of EncoderLayer
        All of one width.
    gamma : array, shape (d_model,), or None
        Scale of a final norm; None for no final norm.
    beta : array, shape (d_model,), or None
        Shift of the final norm; None counts as 0.
    eps : float
        Of the final norm.

    Raises
    ------
    TypeError
        If `layers` holds something else, or `gamma` or `beta` no floats.
    ValueError
        If there are no layers, widths differ, or there is a `beta` without a `gamma`.

    Source
    ------
    Vaswani et al. 2017, *Attention Is All You Need*, section 3.1. The final norm comes with
    pre-norm: Radford et al. 2019, *Language Models are Unsupervised Multitask Learners*,
    section 2.3.
    """

    layers: list
    gamma: np.ndarray | None = None
    beta: np.ndarray | None = None
    eps: float = 1e-5

    def __post_init__(self):
        self.layers = list(self.layers)
        if not self.layers:
            raise ValueError("layers must hold at least one EncoderLayer; got none")
        for layer in self.layers:
            if not isinstance(layer, EncoderLayer):
                raise TypeError(f"layers must hold EncoderLayers; got {type(layer).__name__}")
        widths = [layer.d_model for layer in self.layers]
        if len(set(widths)) > 1:
            raise ValueError(f"layers must all have one width; got {widths}")
        if self.gamma is None and self.beta is not None:
            raise ValueError("beta belongs to a final norm, which needs gamma; got gamma = None")
        self.gamma = _read_vector(self.gamma, "gamma", widths[0])
        self.beta = _read_vector(self.beta, "beta", widths[0])
        self.eps = _read_eps(self.eps)

    @classmethod
    def init(
        cls,
        n_layers,
        d_model,
        n_heads,
        d_ff,
        rng,
        *,
        norm_first=False,
        activation=relu,
        dtype=np.float32,
    ):
        """Return a stack of random layers, with a final norm if `norm_first`.

        Parameters
        ----------
        n_layers, d_model, n_heads, d_ff : int
        rng : numpy.random.Generator
        norm_first : bool
        activation : callable
        dtype : float16, float32 or float64

        Raises
        ------
        TypeError, ValueError
            As `MultiHeadAttention.init`.
        """
        layers = [
            EncoderLayer.init(
                d_model,
                n_heads,
                d_ff,
                rng,
                norm_first=norm_first,
                activation=activation,
                dtype=dtype,
            )
            for _ in range(as_size(n_layers, "n_layers", least=1))
        ]
        if not norm_first:
            return cls(layers)
        return cls(layers, np.ones_like(layers[0].gamma_1), np.zeros_like(layers[0].beta_1))

    def __call__(self, x, mask=None):
        """Return the tokens after the last layer, and where they attended in each.

        Parameters
        ----------
        x : array of float, shape (..., n, d_model)
        mask : array, broadcasting to (..., n, n), optional
            The same for every layer.

        Returns
        -------
        x : array, shape (..., n, d_model)
        weights : list of arrays, shape (..., n_heads, n, n), one a layer

        Raises
        ------
        TypeError, ValueError
            As `MultiHeadAttention`.
        """
        weights = []
        for layer in self.layers:
            x, layer_weights = layer(x, mask)
            weights.append(layer_weights)
        if self.gamma is not None:
            x = layer_norm(x, self.gamma, self.beta, self.eps)
        return x, weights


@dataclass(eq=False, kw_only=True)
class DecoderLayer(_Layer):
    r"""Self-attention, attention to a memory, then a feed-forward network.

    .. math::

        X^{(1)} &= \mathrm{LayerNorm}(X + \mathrm{MultiHead}(X)) \\
        X^{(2)} &= \mathrm{LayerNorm}(X^{(1)} + \mathrm{MultiHead}(X^{(1)}, M)) \\
        X^{(3)} &= \mathrm{LayerNorm}(X^{(2)} + \mathrm{FFN}(X^{(2)}))

    Eqs. (2) to (4) of chapter 9. With `norm_first` each norm moves inside, before its sublayer.

    Parameters
    ----------
    attention, cross_attention : MultiHeadAttention
    w_1, b_1, w_2, b_2 : arrays, as in `EncoderLayer`
    gamma_1, beta_1 : array, shape (d_model,), or None
        The norm of the self-attention; None counts as 1 and 0.
    gamma_2, beta_2 : array, shape (d_model,), or None
        The norm of the cross-attention.
    gamma_3, beta_3 : array, shape (d_model,), or None
        The norm of the feed-forward network.
    eps : float
        Of all three norms.
    norm_first : bool
    activation : callable

    Raises
    ------
    TypeError
        If a field is of the wrong kind.
    ValueError
        If the shapes do not fit.

    Source
    ------
    Vaswani et al. 2017, *Attention Is All You Need*, sections 3.1 and 3.2.3.
    """

    cross_attention: MultiHeadAttention
    gamma_3: np.ndarray | None = None
    beta_3: np.ndarray | None = None

    _attentions = ("attention", "cross_attention")
    _norms = (1, 2, 3)

    @np.errstate(all="ignore")  # NaN at a padded position is valid input, so it must not warn
    def __call__(self, x, memory, mask=None, memory_mask=None):
        """Return the tokens after the layer, and where they attended in themselves and in memory.

        Nothing is causal by itself: pass `causal_mask(n)` as `mask` for a decoder that writes.

        Parameters
        ----------
        x : array of float, shape (..., n, d_model)
        memory : array of float, shape (..., n_memory, d_memory)
            What the encoder gave.
        mask : array, broadcasting to (..., n, n), optional
        memory_mask : array, broadcasting to (..., n, n_memory), optional
            bool, True = may attend; or float, added to the scores.

        Returns
        -------
        x : array, shape (..., n, d_model)
        self_weights : array, shape (..., n_heads, n, n)
        cross_weights : array, shape (..., n_heads, n, n_memory)

        Raises
        ------
        TypeError, ValueError
            As `MultiHeadAttention`.
        """
        x = read_tokens(x, "x", self.d_model)
        memory = read_tokens(memory, "memory", self.cross_attention.w_k.shape[0])
        memory_mask = read_mask(memory_mask, scores_shape(x, memory), "memory_mask")
        if self.norm_first:
            attended, self_weights = self.attention(self._norm(x, 1), mask=mask)
            x = x + attended
            attended, cross_weights = self.cross_attention(self._norm(x, 2), memory, memory_mask)
            x = x + attended
            return x + self._feed_forward(self._norm(x, 3)), self_weights, cross_weights
        attended, self_weights = self.attention(x, mask=mask)
        x = self._norm(x + attended, 1)
        attended, cross_weights = self.cross_attention(x, memory, memory_mask)
        x = self._norm(x + attended, 2)
        return self._norm(x + self._feed_forward(x), 3), self_weights, cross_weights


def _read_feed_forward(w_1, b_1, w_2, b_2, activation):
    """Return the arrays of a feed-forward network, which must fit together."""
    w_1, w_2 = as_floats(w_1, "w_1"), as_floats(w_2, "w_2")
    if w_1.ndim != 2 or w_2.ndim != 2 or w_1.shape[1] != w_2.shape[0]:
        raise ValueError(
            "w_1 (d_model, d_ff) and w_2 (d_ff, d_model) must be matrices that share d_ff; "
            f"got {w_1.shape} and {w_2.shape}"
        )
    if not callable(activation):
        raise TypeError(f"activation must be a function; got {type(activation).__name__}")
    b_1, b_2 = _read_vector(b_1, "b_1", w_1.shape[1]), _read_vector(b_2, "b_2", w_2.shape[1])
    return w_1, b_1, w_2, b_2


def _read_vector(vector, name, width):
    """Return `vector` as an array of floats (width,); None stays None."""
    if vector is None:
        return None
    vector = as_floats(vector, name)
    if vector.shape != (width,):
        raise ValueError(f"{name} must have shape ({width},); got {vector.shape}")
    return vector


def _read_eps(eps):
    """Return `eps` as a Python float, which never widens float32."""
    if not isinstance(eps, Real) or isinstance(eps, bool):
        raise TypeError(f"eps must be a number; got {type(eps).__name__}")
    if not (math.isfinite(eps) and eps >= 0):
        raise ValueError(f"eps must be finite and 0 or more; got {eps}")
    return float(eps)
