"""What stands around attention in a Transformer: norm, feed-forward, residuals, stacks."""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from attnlib.inputs import (
    quiet_nan,
    read_floats,
    read_function,
    read_mask,
    read_matrix,
    read_number,
    read_size,
    read_tokens,
    read_vector,
    scores_shape,
)
from attnlib.multihead import MultiHeadAttention, project, xavier

try:
    from scipy.special import erf
except ImportError:  # the same numbers, one at a time
    erf = np.vectorize(math.erf, otypes=[float])


@quiet_nan
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
    x = _read_rows(x)
    gamma = read_vector(gamma, "gamma", x.shape[-1])
    beta = read_vector(beta, "beta", x.shape[-1])
    return _layer_norm(x, gamma, beta, read_number(eps, "eps", "0 or more"))


@quiet_nan
def rms_norm(x, gamma=None, eps=1e-6):
    r"""Give each token a mean square of 1 over its dimensions, then a learned scale.

    .. math:: \mathrm{RMSNorm}(x) = \gamma \frac{x}{\sqrt{\frac{1}{d} \sum_j x_j^2 + \varepsilon}}

    Eq. (1) of chapter 15: the layer norm without its mean and without its shift.

    Parameters
    ----------
    x : array of float16, float32 or float64, shape (..., d)
    gamma : array of float, shape (d,), optional
        1 unless given.
    eps : float
        Stands under the root, beside the mean square.

    Returns
    -------
    array, shape and dtype of `x`
        float16 is worked out in float32 and rounded once.

    Raises
    ------
    TypeError, ValueError
        As `layer_norm`.

    Source
    ------
    Zhang and Sennrich 2019, *Root Mean Square Layer Normalization*, section 4. The epsilon is that
    of Llama.

    Examples
    --------
    >>> rms_norm([1.0, 7.0], eps=0)
    array([0.2, 1.4])
    """
    x = _read_rows(x)
    gamma = read_vector(gamma, "gamma", x.shape[-1])
    return _rms_norm(x, gamma, read_number(eps, "eps", "0 or more"))


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
    x = read_floats(x, "x")
    return np.maximum(x, x.dtype.type(0))


@quiet_nan
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
        float16 is worked out in float32 and rounded once.

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
    x = read_floats(x, "x")
    wide = _widen(x)
    return (0.5 * wide * (1 + erf(wide * (1 / math.sqrt(2))))).astype(x.dtype, copy=False)


@quiet_nan
def silu(x):
    r"""Weigh x by its own sigmoid; also called swish.

    .. math:: \mathrm{SiLU}(x) = \frac{x}{1 + e^{-x}}

    Parameters
    ----------
    x : array of float16, float32 or float64

    Returns
    -------
    array, shape and dtype of `x`
        float16 is worked out in float32 and rounded once.

    Raises
    ------
    TypeError
        If `x` does not hold floats.

    Source
    ------
    Hendrycks and Gimpel 2016, *Gaussian Error Linear Units*, section 2, where it is named.

    Examples
    --------
    >>> silu([-1.0, 0.0, 1.0]).round(4)
    array([-0.2689,  0.    ,  0.7311])
    """
    x = read_floats(x, "x")
    wide = _widen(x)
    return (wide / (1 + np.exp(-wide))).astype(x.dtype, copy=False)


@quiet_nan
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
    return FeedForward(w_1, b_1, w_2, b_2, activation)(x)


@dataclass(eq=False)
class LayerNorm:
    """`layer_norm` with what it has learned: call it with tokens (..., n, d_model).

    Parameters
    ----------
    gamma, beta : array of float, shape (d_model,), or None
        None counts as 1 and 0.
    eps : float

    Raises
    ------
    TypeError
        If `gamma` or `beta` does not hold floats, or `eps` is not a number.
    ValueError
        If `gamma` or `beta` is no vector, the two differ in width, or `eps` is below 0 or not
        finite.
    """

    gamma: np.ndarray | None = None
    beta: np.ndarray | None = None
    eps: float = 1e-5

    def __post_init__(self):
        self.gamma = read_vector(self.gamma, "gamma")
        self.beta = read_vector(self.beta, "beta", None if self.gamma is None else self.gamma.size)
        self.eps = read_number(self.eps, "eps", "0 or more")

    @property
    def widths(self):
        """The width of the tokens, in dimensions, as far as the weights tell it."""
        return tuple(vector.size for vector in (self.gamma, self.beta) if vector is not None)

    @quiet_nan
    def __call__(self, x):
        """Return the tokens normed, (..., n, d_model)."""
        return _layer_norm(_read_rows(x, self.gamma, self.beta), self.gamma, self.beta, self.eps)


@dataclass(eq=False)
class RMSNorm:
    """`rms_norm` with what it has learned: call it with tokens (..., n, d_model).

    Parameters
    ----------
    gamma : array of float, shape (d_model,), or None
        None counts as 1.
    eps : float

    Raises
    ------
    TypeError, ValueError
        As `LayerNorm`.
    """

    gamma: np.ndarray | None = None
    eps: float = 1e-6

    def __post_init__(self):
        self.gamma = read_vector(self.gamma, "gamma")
        self.eps = read_number(self.eps, "eps", "0 or more")

    @property
    def widths(self):
        """The width of the tokens, in dimensions, as far as the weights tell it."""
        return () if self.gamma is None else (self.gamma.size,)

    @quiet_nan
    def __call__(self, x):
        """Return the tokens normed, (..., n, d_model)."""
        return _rms_norm(_read_rows(x, self.gamma), self.gamma, self.eps)


@dataclass(eq=False)
class FeedForward:
    """`feed_forward` with what it has learned: call it with tokens (..., n, d_model).

    Parameters
    ----------
    w_1 : array of float, shape (d_model, d_ff)
    b_1 : array of float, shape (d_ff,), or None
    w_2 : array of float, shape (d_ff, d_model)
    b_2 : array of float, shape (d_model,), or None
    activation : callable

    Raises
    ------
    TypeError, ValueError
        As `feed_forward`.
    """

    w_1: np.ndarray
    b_1: np.ndarray | None
    w_2: np.ndarray
    b_2: np.ndarray | None
    activation: Callable = relu

    def __post_init__(self):
        self.w_1, self.w_2 = read_floats(self.w_1, "w_1"), read_floats(self.w_2, "w_2")
        if self.w_1.ndim != 2 or self.w_2.ndim != 2 or self.w_1.shape[1] != self.w_2.shape[0]:
            raise ValueError(
                "w_1 (d_model, d_ff) and w_2 (d_ff, d_model) must be matrices that share d_ff; "
                f"got {self.w_1.shape} and {self.w_2.shape}"
            )
        read_function(self.activation, "activation")
        self.b_1 = read_vector(self.b_1, "b_1", self.w_1.shape[1])
        self.b_2 = read_vector(self.b_2, "b_2", self.w_2.shape[1])

    @property
    def widths(self):
        """The widths that the network leads from and to, in dimensions."""
        return self.w_1.shape[0], self.w_2.shape[1]

    @quiet_nan
    def __call__(self, x):
        """Return what the network makes of each token, (..., n, d_model)."""
        x = read_tokens(x, "x", self.w_1.shape[0])
        return project(self.activation(project(x, self.w_1, self.b_1)), self.w_2, self.b_2)


@dataclass(eq=False)
class SwiGLU:
    r"""A feed-forward network with a gate: call it with tokens (..., n, d_model).

    .. math:: \mathrm{SwiGLU}(x) = (\mathrm{SiLU}(x W_{gate}) \odot x W_{up})\, W_{down}

    Eq. (2) of chapter 15. One product says how much of the other passes. It has no biases.

    Parameters
    ----------
    w_gate, w_up : array of float, shape (d_model, d_ff)
    w_down : array of float, shape (d_ff, d_model)

    Raises
    ------
    TypeError
        If a weight does not hold floats.
    ValueError
        If the shapes do not fit each other.

    Source
    ------
    Shazeer 2020, *GLU Variants Improve Transformer*, section 2.

    Examples
    --------
    >>> identity = np.eye(2)
    >>> SwiGLU(identity, identity, identity)([[1.0, -1.0]]).round(4)
    array([[0.7311, 0.2689]])
    """

    w_gate: np.ndarray
    w_up: np.ndarray
    w_down: np.ndarray

    def __post_init__(self):
        self.w_gate = read_matrix(self.w_gate, "w_gate")
        self.w_up = read_matrix(self.w_up, "w_up")
        self.w_down = read_matrix(self.w_down, "w_down")
        gate, up, down = self.w_gate.shape, self.w_up.shape, self.w_down.shape
        if gate != up:
            raise ValueError(f"w_gate and w_up must have one shape; got {gate} and {up}")
        if up[1] != down[0]:
            raise ValueError(
                f"w_up (d_model, d_ff) and w_down (d_ff, d_model) must share d_ff; "
                f"got {up} and {down}"
            )

    @property
    def widths(self):
        """The widths that the network leads from and to, in dimensions."""
        return self.w_up.shape[0], self.w_down.shape[1]

    @quiet_nan
    def __call__(self, x):
        """Return what the network makes of each token, (..., n, d_model)."""
        x = read_tokens(x, "x", self.w_up.shape[0])
        return (silu(x @ self.w_gate) * (x @ self.w_up)) @ self.w_down


@dataclass(eq=False)
class EncoderLayer:
    r"""Self-attention, then a feed-forward network, each with a residual and a norm.

    .. math::

        X' &= \mathrm{Norm}(X + \mathrm{MultiHead}(X)) \\
        X'' &= \mathrm{Norm}(X' + \mathrm{FFN}(X'))

    Eqs. (5) and (6) of chapter 8: post-norm, as in the paper. With `norm_first`, its Eqs. (7)
    and (8): X' = X + MultiHead(Norm(X)) and X'' = X' + FFN(Norm(X')).

    Parameters
    ----------
    attention : MultiHeadAttention
    feed_forward : FeedForward, SwiGLU or any other callable on (..., n, d_model)
    norm_1, norm_2 : LayerNorm, RMSNorm or any other callable on (..., n, d_model)
        The norms of the attention and of the feed-forward network.
    norm_first : bool

    Raises
    ------
    TypeError
        If a part is of the wrong kind.
    ValueError
        If the parts do not lead from one width back to it.

    Source
    ------
    Vaswani et al. 2017, *Attention Is All You Need*, section 3.1. `norm_first` is Xiong et al.
    2020, *On Layer Normalization in the Transformer Architecture*, section 3.

    Examples
    --------
    Other parts make another layer: this one is of the kind that Llama has.

    >>> rng = np.random.default_rng(0)
    >>> heads = MultiHeadAttention.init(8, 4, rng, bias=False, n_kv_heads=2)
    >>> network = SwiGLU(*rng.normal(size=(2, 8, 16)), rng.normal(size=(16, 8)))
    >>> layer = EncoderLayer(heads, network, RMSNorm(), RMSNorm(), norm_first=True)
    >>> layer(np.ones((3, 8)), mask=np.tri(3, dtype=bool))[0].shape
    (3, 8)
    """

    attention: MultiHeadAttention
    feed_forward: Callable
    norm_1: Callable
    norm_2: Callable
    norm_first: bool = False

    def __post_init__(self):
        _check_parts(
            {"attention": self.attention},
            self.feed_forward,
            {"norm_1": self.norm_1, "norm_2": self.norm_2},
        )

    @property
    def d_model(self):
        """The width of the layer, in dimensions."""
        return self.attention.w_q.shape[0]

    @classmethod
    def init(
        cls, d_model, n_heads, d_ff, rng, *, norm_first=False, activation=relu, dtype=np.float32
    ):
        """Return a layer with random weights (Xavier, uniform), biases of 0 and plain layer norms.

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
        return cls(
            MultiHeadAttention.init(d_model, n_heads, rng, dtype=dtype),
            _random_feed_forward(d_model, d_ff, rng, activation, dtype),
            _plain_norm(d_model, dtype),
            _plain_norm(d_model, dtype),
            norm_first,
        )

    @quiet_nan
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
        mask = read_mask(mask, scores_shape(x, x))
        if self.norm_first:
            normed = self.norm_1(x)
            attended, weights = self.attention.attend(normed, normed, mask)
            x = x + attended
            return x + self.feed_forward(self.norm_2(x)), weights
        attended, weights = self.attention.attend(x, x, mask)
        x = self.norm_1(x + attended)
        return self.norm_2(x + self.feed_forward(x)), weights


@dataclass(eq=False)
class Encoder:
    r"""Encoder layers, one after the other.

    .. math:: X_{l+1} = \mathrm{Layer}_l(X_l)

    Eq. (9) of chapter 8.

    Parameters
    ----------
    layers : list of EncoderLayer
        All of one width.
    norm : LayerNorm, RMSNorm or any other callable on (..., n, d_model), or None
        A final norm.

    Raises
    ------
    TypeError
        If `layers` holds something else, or `norm` cannot be called.
    ValueError
        If there are no layers, or widths differ.

    Source
    ------
    Vaswani et al. 2017, *Attention Is All You Need*, section 3.1. The final norm comes with
    pre-norm: Radford et al. 2019, *Language Models are Unsupervised Multitask Learners*,
    section 2.3.
    """

    layers: list
    norm: Callable | None = None

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
        if self.norm is not None:
            _check_norm(self.norm, "norm", widths[0])

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
        options = {"norm_first": norm_first, "activation": activation, "dtype": dtype}
        layers = [
            EncoderLayer.init(d_model, n_heads, d_ff, rng, **options)
            for _ in range(read_size(n_layers, "n_layers", least=1))
        ]
        return cls(layers, _plain_norm(d_model, dtype) if norm_first else None)

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
        return (x if self.norm is None else self.norm(x)), weights


@dataclass(eq=False)
class DecoderLayer:
    r"""Self-attention, attention to a memory, then a feed-forward network.

    .. math::

        X^{(1)} &= \mathrm{Norm}(X + \mathrm{MultiHead}(X)) \\
        X^{(2)} &= \mathrm{Norm}(X^{(1)} + \mathrm{MultiHead}(X^{(1)}, M)) \\
        X^{(3)} &= \mathrm{Norm}(X^{(2)} + \mathrm{FFN}(X^{(2)}))

    Eqs. (2) to (4) of chapter 10. With `norm_first` each norm moves inside, before its sublayer.

    Parameters
    ----------
    attention, cross_attention : MultiHeadAttention
    feed_forward : FeedForward, SwiGLU or any other callable on (..., n, d_model)
    norm_1, norm_2, norm_3 : LayerNorm, RMSNorm or any other callable on (..., n, d_model)
        The norms of the self-attention, the cross-attention and the feed-forward network.
    norm_first : bool

    Raises
    ------
    TypeError
        If a part is of the wrong kind.
    ValueError
        If the parts do not lead from one width back to it.

    Source
    ------
    Vaswani et al. 2017, *Attention Is All You Need*, sections 3.1 and 3.2.3.
    """

    attention: MultiHeadAttention
    cross_attention: MultiHeadAttention
    feed_forward: Callable
    norm_1: Callable
    norm_2: Callable
    norm_3: Callable
    norm_first: bool = False

    def __post_init__(self):
        _check_parts(
            {"attention": self.attention, "cross_attention": self.cross_attention},
            self.feed_forward,
            {"norm_1": self.norm_1, "norm_2": self.norm_2, "norm_3": self.norm_3},
        )

    @property
    def d_model(self):
        """The width of the layer, in dimensions."""
        return self.attention.w_q.shape[0]

    @classmethod
    def init(
        cls, d_model, n_heads, d_ff, rng, *, norm_first=False, activation=relu, dtype=np.float32
    ):
        """Return a layer with random weights (Xavier, uniform), biases of 0 and plain layer norms.

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
        return cls(
            MultiHeadAttention.init(d_model, n_heads, rng, dtype=dtype),
            MultiHeadAttention.init(d_model, n_heads, rng, dtype=dtype),
            _random_feed_forward(d_model, d_ff, rng, activation, dtype),
            _plain_norm(d_model, dtype),
            _plain_norm(d_model, dtype),
            _plain_norm(d_model, dtype),
            norm_first,
        )

    @quiet_nan
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
        mask = read_mask(mask, scores_shape(x, x))
        memory_mask = read_mask(memory_mask, scores_shape(x, memory), "memory_mask")
        own, cross = self.attention.attend, self.cross_attention.attend
        if self.norm_first:
            normed = self.norm_1(x)
            attended, self_weights = own(normed, normed, mask)
            x = x + attended
            attended, cross_weights = cross(self.norm_2(x), memory, memory_mask)
            x = x + attended
            return x + self.feed_forward(self.norm_3(x)), self_weights, cross_weights
        attended, self_weights = own(x, x, mask)
        x = self.norm_1(x + attended)
        attended, cross_weights = cross(x, memory, memory_mask)
        x = self.norm_2(x + attended)
        return self.norm_3(x + self.feed_forward(x)), self_weights, cross_weights


def _layer_norm(x, gamma, beta, eps):
    wide = _widen(x)
    d = x.shape[-1]
    normed = wide - wide.sum(-1, keepdims=True) / d
    variance = np.square(normed).sum(-1, keepdims=True) / d
    normed /= np.sqrt(variance + eps)
    if gamma is not None:
        normed *= gamma
    if beta is not None:
        normed += beta
    return normed.astype(x.dtype, copy=False)


def _rms_norm(x, gamma, eps):
    wide = _widen(x)
    normed = wide / np.sqrt(np.square(wide).sum(-1, keepdims=True) / x.shape[-1] + eps)
    if gamma is not None:
        normed *= gamma
    return normed.astype(x.dtype, copy=False)


def _widen(x):
    """Return `x` in float32 at least: a square or a power can pass float16's 65504."""
    return x.astype(np.promote_types(x.dtype, np.float32), copy=False)


def _read_rows(x, *vectors):
    """Return `x` as an array of floats (..., d), as wide as the weights of its norm."""
    x = read_floats(x, "x")
    if x.ndim == 0 or x.shape[-1] == 0:
        raise ValueError(f"x must have a last axis to take the mean of; got shape {x.shape}")
    for vector in vectors:
        if vector is not None and vector.size != x.shape[-1]:
            raise ValueError(f"x must be as wide as the norm, {vector.size}; got shape {x.shape}")
    return x


def _check_parts(attentions, feed_forward, norms):
    """Refuse parts of a layer that do not lead from one width back to it."""
    for name, attention in attentions.items():
        if not isinstance(attention, MultiHeadAttention):
            got = type(attention).__name__
            raise TypeError(f"{name} must be a MultiHeadAttention; got {got}")
    read_function(feed_forward, "feed_forward")
    own = attentions["attention"]
    widths = {own.w_k.shape[0]}  # tokens that attend to themselves
    for part in (*attentions.values(), feed_forward):
        widths.update(getattr(part, "widths", ()))
    if len(widths) > 1:
        raise ValueError(
            f"attention and feed-forward must lead from one width back to it; got {sorted(widths)}"
        )
    for name, norm in norms.items():
        _check_norm(norm, name, own.w_q.shape[0])


def _check_norm(norm, name, d_model):
    """Refuse what is no norm, or one of another width."""
    read_function(norm, name)
    for width in getattr(norm, "widths", ()):
        if width != d_model:
            raise ValueError(f"{name} must be as wide as the layer, {d_model}; got {width}")


def _random_feed_forward(d_model, d_ff, rng, activation, dtype):
    d_ff = read_size(d_ff, "d_ff", least=1)
    w_1, b_1 = xavier(d_model, d_ff, rng, dtype), np.zeros(d_ff, dtype)
    w_2, b_2 = xavier(d_ff, d_model, rng, dtype), np.zeros(d_model, dtype)
    return FeedForward(w_1, b_1, w_2, b_2, activation)


def _plain_norm(d_model, dtype):
    return LayerNorm(np.ones(d_model, dtype), np.zeros(d_model, dtype))
