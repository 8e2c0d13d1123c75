"""Norms: each token is brought to the same size before or after a sublayer."""

from dataclasses import dataclass

import numpy as np

from attnlib.inputs import quiet_nan, read_floats, read_number, read_vector, widen


@quiet_nan
def layer_norm(x, gamma=None, beta=None, eps=1e-5):
    r"""Give each token mean 0 and variance 1 over its dimensions, then a learned scale and shift.

    .. math:: \mathrm{LayerNorm}(x) = \gamma \frac{x - \mu}{\sqrt{\sigma^2 + \varepsilon}} + \beta

    Eq. (1) of "The encoder layer". The variance is that of the row itself, divided by d.

    Parameters
    ----------
    x : array of float16, float32 or float64, shape (..., d)
    gamma, beta : array of float, shape (d,), optional
        1 and 0 unless given.
    eps : float
        Added to the variance, under the root.

    Returns
    -------
    array, shape and dtype of `x`
        float16 is worked out in float32 and rounded once. Where the squares of a row pass the
        largest number of the dtype (in float32 from about 1e19 on), the row becomes zeros.

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

    Eq. (1) of "The layer since 2017": the layer norm without its mean and without its shift.

    Parameters
    ----------
    x : array of float16, float32 or float64, shape (..., d)
    gamma : array of float, shape (d,), optional
        1 unless given.
    eps : float
        Added to the mean square, under the root.

    Returns
    -------
    array, shape and dtype of `x`
        float16 is worked out in float32 and rounded once. Where the squares of a row pass the
        largest number of the dtype (in float32 from about 1e19 on), the row becomes zeros; where
        they and `eps` fall to 0, it becomes infinite.

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


@dataclass(eq=False)
class LayerNorm:
    """`layer_norm` with its parameters: call it with tokens (..., n, d_model).

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
        If `gamma` or `beta` is not a vector, the two differ in width, or `eps` is below 0 or not
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
        """The width of the tokens, in dimensions; empty if no weight gives it."""
        return tuple(vector.size for vector in (self.gamma, self.beta) if vector is not None)

    @quiet_nan
    def __call__(self, x):
        """Return the tokens normed, (..., n, d_model)."""
        return _layer_norm(_read_rows(x, self.gamma, self.beta), self.gamma, self.beta, self.eps)


@dataclass(eq=False)
class RMSNorm:
    """`rms_norm` with its parameters: call it with tokens (..., n, d_model).

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
        """The width of the tokens, in dimensions; empty if no weight gives it."""
        return () if self.gamma is None else (self.gamma.size,)

    @quiet_nan
    def __call__(self, x):
        """Return the tokens normed, (..., n, d_model)."""
        return _rms_norm(_read_rows(x, self.gamma), self.gamma, self.eps)


def _layer_norm(x, gamma, beta, eps):
    wide = widen(x)
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
    wide = widen(x)
    normed = wide / np.sqrt(np.square(wide).sum(-1, keepdims=True) / x.shape[-1] + eps)
    if gamma is not None:
        normed *= gamma
    return normed.astype(x.dtype, copy=False)


def _read_rows(x, *vectors):
    """Return `x` as an array of floats (..., d), as wide as the weights of its norm."""
    x = read_floats(x, "x")
    if x.ndim == 0 or x.shape[-1] == 0:
        raise ValueError(f"x must have a last axis to take the mean of; got shape {x.shape}")
    for vector in vectors:
        if vector is not None and vector.size != x.shape[-1]:
            raise ValueError(f"x must be as wide as the norm, {vector.size}; got shape {x.shape}")
    return x
