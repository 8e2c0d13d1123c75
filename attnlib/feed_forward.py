"""Feed-forward networks and their activations: what a layer computes for each token by itself."""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from attnlib.inputs import (
    quiet_nan,
    read_floats,
    read_function,
    read_matrix,
    read_number,
    read_result,
    read_tokens,
    read_vector,
    widen,
)
from attnlib.projections import project

try:
    from scipy.special import erf
except ImportError:  # the same numbers, one at a time
    erf = np.vectorize(math.erf, otypes=[float])


def relu(x):
    r"""Keep what is positive: max(0, x), Eq. (3) of "The encoder layer".

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
    r"""Multiply x by the probability that a standard normal variable is smaller than x.

    .. math:: \mathrm{GELU}(x) = \frac{x}{2} \left(1 + \mathrm{erf}(x / \sqrt 2)\right)

    Eq. (4) of "The encoder layer": the exact form, not the approximation by a tanh.

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
    wide = widen(x)
    return (0.5 * wide * (1 + erf(wide * (1 / math.sqrt(2))))).astype(x.dtype, copy=False)


@quiet_nan
def gelu_tanh(x):
    r"""Approximate `gelu` by a tanh, as models do that were trained with this formula.

    .. math:: \frac{x}{2} \left(1 + \tanh\left(\sqrt{2 / \pi}\, (x + .044715 x^3)\right)\right)

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
    Hendrycks and Gimpel 2016, *Gaussian Error Linear Units*, section 2. Gemma has it.

    Examples
    --------
    >>> gelu_tanh([-1.0, 0.0, 1.0]).round(4)
    array([-0.1588,  0.    ,  0.8412])
    """
    x = read_floats(x, "x")
    wide = widen(x)
    inner = math.sqrt(2 / math.pi) * (wide + 0.044715 * (wide * wide * wide))
    return (0.5 * wide * (1 + np.tanh(inner))).astype(x.dtype, copy=False)


@quiet_nan
def silu(x):
    r"""Multiply x by its own sigmoid; also called swish.

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
    wide = widen(x)
    return (wide / (1 + np.exp(-wide))).astype(x.dtype, copy=False)


@quiet_nan
def feed_forward(x, w_1, b_1, w_2, b_2, activation=relu):
    r"""Apply two matrix products with an activation between them, to each token by itself.

    .. math:: \mathrm{FFN}(x) = \max(0, x W_1 + b_1) W_2 + b_2

    Eq. (2) of "The encoder layer".

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
        Of float16, only the activation is worked out in float32: a product that passes 65504
        becomes infinite.

    Raises
    ------
    TypeError
        If an array does not hold floats, or `activation` cannot be called.
    ValueError
        If the shapes do not fit, or `activation` changes them.

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
class FeedForward:
    """`feed_forward` with its parameters: call it with tokens (..., n, d_model).

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
        """The widths of the input and of the output, in dimensions."""
        return self.w_1.shape[0], self.w_2.shape[1]

    @quiet_nan
    def __call__(self, x):
        """Return what the network makes of each token, (..., n, d_model)."""
        x = read_tokens(x, "x", self.w_1.shape[0])
        hidden = project(x, self.w_1, self.b_1)  # (..., n, d_ff)
        hidden = read_result(self.activation(hidden), "activation", hidden.shape)
        return project(hidden, self.w_2, self.b_2)


@dataclass(eq=False)
class _GatedNetwork:
    """Weights of a network in which one product decides how much of another passes."""

    w_gate: np.ndarray
    w_up: np.ndarray
    w_down: np.ndarray
    b_gate: np.ndarray | None = None
    b_up: np.ndarray | None = None
    b_down: np.ndarray | None = None

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
        self.b_gate = read_vector(self.b_gate, "b_gate", gate[1])
        self.b_up = read_vector(self.b_up, "b_up", up[1])
        self.b_down = read_vector(self.b_down, "b_down", down[1])

    @property
    def widths(self):
        """The widths of the input and of the output, in dimensions."""
        return self.w_up.shape[0], self.w_down.shape[1]

    @quiet_nan
    def __call__(self, x):
        """Return what the network makes of each token, (..., n, d_model)."""
        x = read_tokens(x, "x", self.w_up.shape[0])
        gate, up = project(x, self.w_gate, self.b_gate), project(x, self.w_up, self.b_up)
        return project(self._pass(gate, up), self.w_down, self.b_down)


@dataclass(eq=False)
class SwiGLU(_GatedNetwork):
    r"""A feed-forward network with a gate: call it with tokens (..., n, d_model).

    .. math:: \mathrm{SwiGLU}(x) = (\mathrm{SiLU}(x W_{gate}) \odot x W_{up})\, W_{down}

    Eq. (2) of "The layer since 2017". One product decides how much of the other passes. Each
    product may have a bias; another activation makes a network of another name, such as GeGLU with
    GELU.

    Parameters
    ----------
    w_gate, w_up : array of float, shape (d_model, d_ff)
    w_down : array of float, shape (d_ff, d_model)
    b_gate, b_up : array of float, shape (d_ff,), or None
    b_down : array of float, shape (d_model,), or None
    activation : callable
        `silu`, `gelu_tanh`, or any other that works element by element.

    Raises
    ------
    TypeError
        If a weight or a bias does not hold floats, or `activation` cannot be called.
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

    activation: Callable = silu

    def __post_init__(self):
        super().__post_init__()
        read_function(self.activation, "activation")

    def _pass(self, gate, up):
        return read_result(self.activation(gate), "activation", gate.shape) * up


@dataclass(eq=False)
class ClampedSwiGLU(_GatedNetwork):
    r"""The network of gpt-oss: a `SwiGLU` whose numbers are kept within a limit.

    .. math::

        g &= \min(x W_{gate} + b_{gate},\; c) \\
        u &= \mathrm{clip}(x W_{up} + b_{up},\; -c,\; c) \\
        \mathrm{FFN}(x) &= \left(\frac{g}{1 + e^{-a g}} \odot (u + 1)\right) W_{down} + b_{down}

    Parameters
    ----------
    w_gate, w_up, w_down, b_gate, b_up, b_down
        As in `SwiGLU`.
    limit : float
        The bound c.
    slope : float
        The factor a, which is 1 in SiLU.

    Raises
    ------
    TypeError, ValueError
        As `SwiGLU`; also if `limit` or `slope` is not a finite number above 0.

    Source
    ------
    OpenAI 2025, *gpt-oss-120b & gpt-oss-20b Model Card*, section 2.2, and the code beside it.

    Examples
    --------
    >>> identity = np.eye(1)
    >>> ClampedSwiGLU(identity, identity, identity)([[100.0]]).round(3)
    array([[56.]])
    """

    limit: float = 7.0
    slope: float = 1.702

    def __post_init__(self):
        super().__post_init__()
        self.limit = read_number(self.limit, "limit", "above 0")
        self.slope = read_number(self.slope, "slope", "above 0")

    def _pass(self, gate, up):
        gate, up = np.minimum(gate, self.limit), np.clip(up, -self.limit, self.limit)
        return gate / (1 + np.exp(-self.slope * gate)) * (up + 1)
