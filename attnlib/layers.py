"""The layers of a Transformer: attention and a feed-forward network, with residuals and norms."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from attnlib.feed_forward import FeedForward, relu
from attnlib.inputs import (
    quiet_nan,
    read_flag,
    read_function,
    read_list,
    read_mask,
    read_result,
    read_size,
    read_tokens,
    scores_shape,
)
from attnlib.multihead import MultiHeadAttention
from attnlib.norms import LayerNorm
from attnlib.projections import xavier


@dataclass(eq=False)
class EncoderLayer:
    r"""Self-attention, then a feed-forward network, each with a residual and a norm.

    .. math::

        X' &= \mathrm{Norm}(X + \mathrm{MultiHead}(X)) \\
        X'' &= \mathrm{Norm}(X' + \mathrm{FFN}(X'))

    Eqs. (5) and (6) of "The encoder layer": post-norm, as in the paper. With `norm_first`, its
    Eqs. (7) and (8): X' = X + MultiHead(Norm(X)) and X'' = X' + FFN(Norm(X')). With `after_1` and
    `after_2`, MultiHead(X) and FFN(X) are normed before they are added, wherever the others stand.

    Parameters
    ----------
    attention : MultiHeadAttention or any other callable
        Called with tokens (..., n, d_model) and with `mask` by its name, and with `cache` if the
        layer has one; it returns an output of the tokens' shape and its weights, or None for them.
    feed_forward : FeedForward, SwiGLU, MixtureOfExperts or any other callable on (..., n, d_model)
    norm_1, norm_2 : LayerNorm, RMSNorm or any other callable on (..., n, d_model), or None
        The norms of the attention and of the feed-forward network; None is no norm.
    norm_first : bool
    after_1, after_2 : LayerNorm, RMSNorm or any other callable on (..., n, d_model), or None
        The norms of what the attention and the feed-forward network add.

    Raises
    ------
    TypeError
        If a part is of the wrong kind, or `attention` returns something other than a pair.
    ValueError
        If the parts do not keep the width of the tokens, or `attention` not their shape.

    Source
    ------
    Vaswani et al. 2017, *Attention Is All You Need*, section 3.1. `norm_first` is Xiong et al.
    2020, *On Layer Normalization in the Transformer Architecture*, section 3. `after_1` and
    `after_2`, with no other norms, are OLMo Team 2025, *2 OLMo 2 Furious*, section 2.1; all four
    norms are those of Gemma Team 2024, *Gemma 2*, section 2.

    Examples
    --------
    Other parts make another layer. This one has the parts of a layer of Llama.

    >>> from attnlib import RMSNorm, SwiGLU
    >>> rng = np.random.default_rng(0)
    >>> heads = MultiHeadAttention.init(8, 4, rng, bias=False, n_kv_heads=2)
    >>> network = SwiGLU(*rng.normal(size=(2, 8, 16)), rng.normal(size=(16, 8)))
    >>> layer = EncoderLayer(heads, network, RMSNorm(), RMSNorm(), norm_first=True)
    >>> layer(np.ones((3, 8)), mask=np.tri(3, dtype=bool))[0].shape
    (3, 8)
    """

    attention: Callable
    feed_forward: Callable
    norm_1: Callable | None = None
    norm_2: Callable | None = None
    norm_first: bool = False
    after_1: Callable | None = None
    after_2: Callable | None = None

    def __post_init__(self):
        names = ["norm_1", "norm_2", "after_1", "after_2"]
        given = [name for name in names if getattr(self, name) is not None]
        _check_parts(self, ["attention"], given)

    @property
    def d_model(self):
        """The width of the layer, in dimensions; None if no part of it has weights to tell."""
        for part in vars(self).values():
            if widths := getattr(part, "widths", ()):
                return widths[0]
        return None

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
    def __call__(self, x, mask=None, *, cache=None):
        """Return the tokens after the layer, and where they attended.

        Parameters
        ----------
        x : array of float, shape (..., n, d_model)
        mask : array, broadcasting to (..., n, n), optional
            bool, True = may attend; or float, added to the scores, but not zeros and ones.
        cache : KeyValueCache, optional
            The keys and values of the tokens before; then n_k counts those, too.

        Returns
        -------
        x : array, shape (..., n, d_model)
        weights : array, shape (..., n_heads, n, n_k)
            Whatever another attention returns as such.

        Raises
        ------
        TypeError, ValueError
            As `MultiHeadAttention`.
        """
        x = read_tokens(x, "x", self.d_model)
        first = self.norm_first  # norm_1 and norm_2 come before their part, or after its sum
        attended, weights = self._attend(_part(self, "norm_1", x) if first else x, mask, cache)
        x = x + _part(self, "after_1", attended)
        x = x if first else _part(self, "norm_1", x)
        added = _part(self, "feed_forward", _part(self, "norm_2", x) if first else x)
        x = x + _part(self, "after_2", added)
        return (x if first else _part(self, "norm_2", x)), weights

    def _attend(self, x, mask, cache):
        """Return what the attention gives, if it is a pair and its output has the shape of `x`."""
        result = self.attention(x, mask=mask, **({} if cache is None else {"cache": cache}))
        if not isinstance(result, tuple) or len(result) != 2:
            raise TypeError(f"attention must return (output, weights); got {type(result).__name__}")
        return read_result(result[0], "attention", x.shape), result[1]


@dataclass(eq=False)
class Encoder:
    r"""Encoder layers, one after the other.

    .. math:: X_{l+1} = \mathrm{Layer}_l(X_l)

    Eq. (9) of "The encoder layer".

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
        self.layers = read_layers(self.layers)
        widths = [layer.d_model for layer in self.layers if layer.d_model is not None]
        if len(set(widths)) > 1:
            raise ValueError(f"layers must all have one width; got {widths}")
        if self.norm is not None:
            _check_norm(self.norm, "norm", widths[0] if widths else None)

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
        """Return a stack of `n_layers` random layers, with a final norm if `norm_first`.

        The other parameters and the errors are those of `EncoderLayer.init`.
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
        weights : list of arrays, shape (..., n_heads, n, n), one per layer

        Raises
        ------
        TypeError, ValueError
            As `MultiHeadAttention`.
        """
        weights = []
        for layer in self.layers:
            x, layer_weights = layer(x, mask)
            weights.append(layer_weights)
        return _part(self, "norm", x), weights


@dataclass(eq=False)
class DecoderLayer:
    r"""Self-attention, attention to a memory, then a feed-forward network.

    .. math::

        X^{(1)} &= \mathrm{Norm}(X + \mathrm{MultiHead}(X)) \\
        X^{(2)} &= \mathrm{Norm}(X^{(1)} + \mathrm{MultiHead}(X^{(1)}, M)) \\
        X^{(3)} &= \mathrm{Norm}(X^{(2)} + \mathrm{FFN}(X^{(2)}))

    Eqs. (2) to (4) of "Encoder and decoder". With `norm_first` each norm comes before its
    sublayer instead of after it.

    Parameters
    ----------
    attention, cross_attention : MultiHeadAttention
    feed_forward : FeedForward, SwiGLU or any other callable on (..., n, d_model)
    norm_1, norm_2, norm_3 : LayerNorm, RMSNorm or any other callable on (..., n, d_model)
        The norms of the self-attention, the cross-attention and the feed-forward network.
    norm_first : bool

    Raises
    ------
    TypeError, ValueError
        As `EncoderLayer`.

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
        attentions = ["attention", "cross_attention"]
        for name in attentions:
            if not isinstance(part := getattr(self, name), MultiHeadAttention):
                raise TypeError(f"{name} must be a MultiHeadAttention; got {type(part).__name__}")
        _check_parts(self, attentions, ["norm_1", "norm_2", "norm_3"])

    @property
    def d_model(self):
        """The width of the layer, in dimensions."""
        return self.attention.w_q.shape[0]

    @classmethod
    def init(
        cls, d_model, n_heads, d_ff, rng, *, norm_first=False, activation=relu, dtype=np.float32
    ):
        """Return a layer with random weights; parameters and errors as `EncoderLayer.init`."""
        return cls(
            MultiHeadAttention.init(d_model, n_heads, rng, dtype=dtype),
            MultiHeadAttention.init(d_model, n_heads, rng, dtype=dtype),
            _random_feed_forward(d_model, d_ff, rng, activation, dtype),
            *(_plain_norm(d_model, dtype) for _ in range(3)),
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
            bool, True = may attend; or float, added to the scores, but not zeros and ones.

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
        # The attention would call it "mask" in its errors.
        memory_mask = read_mask(memory_mask, scores_shape(x, memory), "memory_mask")
        if self.norm_first:
            attended, self_weights = self.attention(_part(self, "norm_1", x), mask=mask)
            x = x + attended
            normed = _part(self, "norm_2", x)
            attended, cross_weights = self.cross_attention(normed, memory, memory_mask)
            x = x + attended
            added = _part(self, "feed_forward", _part(self, "norm_3", x))
            return x + added, self_weights, cross_weights
        attended, self_weights = self.attention(x, mask=mask)
        x = _part(self, "norm_1", x + attended)
        attended, cross_weights = self.cross_attention(x, memory, memory_mask)
        x = _part(self, "norm_2", x + attended)
        x = _part(self, "norm_3", x + _part(self, "feed_forward", x))
        return x, self_weights, cross_weights


def read_layers(layers):
    """Return the layers of a model as a list of EncoderLayers, at least one."""
    layers = read_list(layers, "layers")
    if not layers:
        raise ValueError("layers must hold at least one EncoderLayer; got none")
    for layer in layers:
        if not isinstance(layer, EncoderLayer):
            raise TypeError(f"layers must hold EncoderLayers; got {type(layer).__name__}")
    return layers


def _check_parts(layer, attentions, norms):
    """Refuse parts of a layer that do not keep the width of the tokens; they are given by name."""
    layer.norm_first = read_flag(layer.norm_first, "norm_first")
    widths = set()
    for name in (*attentions, "feed_forward"):
        widths.update(getattr(read_function(getattr(layer, name), name), "widths", ()))
    if isinstance(layer.attention, MultiHeadAttention):
        widths.add(layer.attention.w_k.shape[0])  # tokens that attend to themselves
    if len(widths) > 1:
        raise ValueError(
            f"attention and feed-forward must lead from one width back to it; got {sorted(widths)}"
        )
    for name in norms:
        _check_norm(getattr(layer, name), name, layer.d_model)


def _check_norm(norm, name, d_model):
    """Refuse what is not a norm, or one of another width."""
    read_function(norm, name)
    for width in getattr(norm, "widths", ()):
        if d_model not in (width, None):
            raise ValueError(f"{name} must be as wide as the layer, {d_model}; got {width}")


def _part(layer, name, x):
    """Return what a norm or a network of a layer makes of the tokens: `x` itself if it has none.

    The part may be a reader's own function, so the shape of its result is checked: a single column
    would be broadcast without an error.
    """
    part = getattr(layer, name)
    return x if part is None else read_result(part(x), name, x.shape)


def _random_feed_forward(d_model, d_ff, rng, activation, dtype):
    d_ff = read_size(d_ff, "d_ff", least=1)
    w_1, b_1 = xavier(d_model, d_ff, rng, dtype), np.zeros(d_ff, dtype)
    w_2, b_2 = xavier(d_ff, d_model, rng, dtype), np.zeros(d_model, dtype)
    return FeedForward(w_1, b_1, w_2, b_2, activation)


def _plain_norm(d_model, dtype):
    return LayerNorm(np.ones(d_model, dtype), np.zeros(d_model, dtype))
