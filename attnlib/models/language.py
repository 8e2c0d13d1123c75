"""A causal language model: tokens in, the logits of the next token out, with a cache."""

import weakref
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from attnlib.attention import softmax
from attnlib.caches import KeyValueCache
from attnlib.inputs import (
    quiet_nan,
    read_function,
    read_generator,
    read_ids,
    read_list,
    read_matrix,
    read_number,
    read_result,
    read_size,
    read_tokens,
)
from attnlib.layers import read_layers
from attnlib.masks import top_k_mask


@dataclass(eq=False)
class Cache:
    """What a `CausalLM` keeps of the tokens that it has read: a `KeyValueCache` for each layer.

    `model` refers to it: weakly, so that a copy of the cache is still that of the same model.
    """

    layers: list
    model: weakref.ref = field(repr=False)

    @property
    def n(self):
        """The number of tokens so far, which is the position of the next one."""
        return self.layers[0].n


@dataclass(frozen=True, eq=False)
class Trace:
    """What a `CausalLM` has computed for a text.

    Parameters
    ----------
    tokens : array of int, shape (..., n)
    logits : array, shape (..., n, n_tokens)
    states : array, shape (n_layers + 1, ..., n, d_model)
        The residual stream: the embeddings, then the tokens after each layer, before the last norm.
    weights : list of arrays, shape (..., n_heads, n, n), one per layer
    """

    tokens: np.ndarray
    logits: np.ndarray
    states: np.ndarray
    weights: list


@dataclass(eq=False)
class CausalLM:
    r"""A stack of layers between an embedding and an unembedding: a language model that writes.

    .. math::

        X_0 &= s\, E[\text{tokens}] \\
        X_{l+1} &= \mathrm{Layer}_l(X_l) \\
        \text{logits} &= \mathrm{Norm}(X_L)\, W_U

    Each token attends to itself and to the tokens before it, in layer l to the last `windows[l]` of
    them. The softmax of the logits is the probability of each next token.

    Parameters
    ----------
    embeddings : array, shape (n_tokens, d_model)
        E.
    layers : list of EncoderLayer
        Their attentions are called with a cache, which is causal by itself.
    norm : callable on (..., n, d_model), or None
        The last norm.
    unembedding : array, shape (d_model, n_tokens), or None
        W_U; None is the transpose of E (tied embeddings). With fewer columns, the model can write
        the first tokens only.
    windows : list of int or None, one per layer, optional
        How many tokens each one may attend to, itself among them; None is all before it, which it
        is for every layer unless given.
    scale : float
        s, what the embeddings are multiplied by.

    Raises
    ------
    TypeError
        If a part is of the wrong kind.
    ValueError
        If the parts do not fit each other.

    Source
    ------
    Radford et al. 2019, *Language Models are Unsupervised Multitask Learners*, section 2.3; tied
    embeddings are Press and Wolf 2017, *Using the Output Embedding to Improve Language Models*.

    Examples
    --------
    >>> from attnlib.layers import EncoderLayer
    >>> rng = np.random.default_rng(0)
    >>> layer = EncoderLayer.init(8, 2, 16, rng, norm_first=True)
    >>> model = CausalLM(rng.normal(size=(5, 8)).astype(np.float32), [layer])
    >>> model([3, 1, 4]).shape
    (3, 5)
    >>> model.write([3, 1, 4], 2, temperature=0).shape
    (5,)
    """

    embeddings: np.ndarray
    layers: list
    norm: Callable | None = None
    unembedding: np.ndarray | None = None
    windows: list | None = None
    scale: float = 1.0

    def __post_init__(self):
        self.embeddings = read_matrix(self.embeddings, "embeddings")
        n_tokens, d_model = self.embeddings.shape
        if self.unembedding is None:
            self.unembedding = self.embeddings.T
        self.unembedding = read_matrix(self.unembedding, "unembedding")
        rows, columns = self.unembedding.shape
        if rows != d_model or not 1 <= columns <= n_tokens:
            raise ValueError(
                f"unembedding must have the shape of the transpose of embeddings, "
                f"{(d_model, n_tokens)}, or fewer columns; got {self.unembedding.shape}"
            )
        self.layers = read_layers(self.layers)
        for layer in self.layers:
            if layer.d_model not in (d_model, None):
                raise ValueError(
                    f"layers must be as wide as the embeddings, {d_model}; got {layer.d_model}"
                )
        if self.norm is not None:
            read_function(self.norm, "norm")
        if self.windows is None:
            self.windows = [None] * len(self.layers)
        self.windows = read_list(self.windows, "windows")
        if len(self.windows) != len(self.layers):
            raise ValueError(
                f"windows must have one entry per layer, {len(self.layers)}; "
                f"got {len(self.windows)}"
            )
        self.scale = read_number(self.scale, "scale")
        self.cache()  # refuses what is not a window

    @property
    def n_tokens(self):
        """The number of tokens that the model knows."""
        return len(self.embeddings)

    def cache(self):
        """Return an empty cache for this model."""
        return Cache([KeyValueCache(window) for window in self.windows], weakref.ref(self))

    def __call__(self, tokens, *, cache=None):
        """Return the logits of the token after each token.

        Parameters
        ----------
        tokens : array of int, shape (..., n)
        cache : Cache, optional
            Of this model's `cache()`: the tokens are the next ones of the text that it holds, which
            is longer by them afterwards.

        Returns
        -------
        array, shape (..., n, n_tokens)
            Of the given tokens alone.

        Raises
        ------
        TypeError
            If `tokens` holds no whole numbers, or `cache` is of the wrong kind.
        ValueError
            If a token is unknown, or the cache is that of another model or of texts of another
            number.
        """
        x = self._embed(read_ids(tokens, self.n_tokens))
        for after, _ in self._pass_layers(x, self._read_cache(cache)):
            x = after
        return self.logits(x)

    def read(self, tokens):
        """Return all that the model computes for a text, as a `Trace`.

        Parameters and errors are those of a call.
        """
        tokens = read_ids(tokens, self.n_tokens)
        states, weights = [self._embed(tokens)], []
        for x, of_layer in self._pass_layers(states[0], self.cache()):
            states.append(x)
            weights.append(of_layer)
        return Trace(tokens, self.logits(states[-1]), np.stack(states), weights)

    def write(self, tokens, n, *, temperature=1.0, top_k=None, top_p=1.0, rng=None):
        r"""Write `n` more tokens, each drawn from the probabilities after those before.

        .. math:: p = \mathrm{softmax}(\text{logits} / T)

        Parameters
        ----------
        tokens : array of int, shape (..., n_before)
            The beginning, at least one token.
        n : int
        temperature : float
            T: below 1 the probable tokens become more probable; 0 takes the most probable one.
        top_k : int, optional
            Draw from the k most probable tokens only.
        top_p : float
            Draw from the most probable tokens only, the fewest that together have at least this
            probability (nucleus sampling, Holtzman et al. 2020); above 0, and 1 for all. It is
            counted before `top_k` leaves tokens out.
        rng : numpy.random.Generator, optional
            What draws; a new one unless given, so that each text is another.

        Returns
        -------
        array of int, shape (..., n_before + n)
            The beginning and what follows it.

        Raises
        ------
        TypeError
            If an argument is of the wrong kind.
        ValueError
            If `tokens` holds no token or an unknown one, a number is out of bounds, or the largest
            logit is not finite.
        """
        tokens = read_ids(tokens, self.n_tokens)
        if tokens.shape[-1] == 0:
            raise ValueError(f"tokens must hold a token to write after; got shape {tokens.shape}")
        temperature = read_number(temperature, "temperature", "0 or more")
        if top_k is not None:
            top_k = read_size(top_k, "top_k", least=1)
        top_p = read_number(top_p, "top_p", "above 0")
        if top_p > 1:
            raise ValueError(f"top_p must be at most 1; got {top_p}")
        rng = np.random.default_rng() if rng is None else read_generator(rng)
        cache, new = self.cache(), tokens
        for _ in range(read_size(n, "n")):
            logits = self(new, cache=cache)[..., -1, :]  # (..., n_tokens)
            new = _draw(logits, temperature, top_k, top_p, rng)[..., None]
            tokens = np.concatenate([tokens, new], axis=-1)
        return tokens

    def logits(self, states):
        """Return the logits of states of the residual stream (..., n, d_model): norm, then W_U."""
        states = read_tokens(states, "states", self.embeddings.shape[1])
        if self.norm is not None:
            states = read_result(self.norm(states), "norm", states.shape)
        return states @ self.unembedding

    def _embed(self, tokens):
        """Return the embeddings of tokens, (..., n, d_model)."""
        x = self.embeddings[tokens]
        return x if self.scale == 1 else x * self.scale

    def _pass_layers(self, x, cache):
        """Yield the tokens after each layer, and where they attended."""
        for layer, kept in zip(self.layers, cache.layers, strict=True):
            x, weights = layer(x, cache=kept)
            yield x, weights

    def _read_cache(self, cache):
        """Return a cache of this model, a new one for None."""
        if cache is None:
            return self.cache()
        if not isinstance(cache, Cache):
            raise TypeError(f"cache must be a Cache of the model; got {type(cache).__name__}")
        if cache.model() is not self:
            raise ValueError("cache must be that of this model; got that of another model")
        return cache


@quiet_nan
def _draw(logits, temperature, top_k, top_p, rng):
    """Return a token for each row of logits (..., n_tokens)."""
    logits = logits.astype(np.float64)
    top = logits.max(-1, keepdims=True)
    if not np.isfinite(top).all():
        raise ValueError(
            f"the largest logit must be finite to draw a token; got {top[~np.isfinite(top)][0]}"
        )
    if temperature == 0:
        return logits.argmax(-1)
    # Measured from the largest, however small the temperature is: no quotient of it overflows.
    scores = (logits - top) / temperature
    probabilities = softmax(scores)
    if top_k is not None:
        probabilities = np.where(top_k_mask(scores, top_k), probabilities, 0)
    if top_p < 1:
        order = np.argsort(-probabilities, axis=-1, kind="stable")
        falling = np.take_along_axis(probabilities, order, -1)
        before = falling.cumsum(-1) - falling  # what the more probable tokens have together
        np.put_along_axis(probabilities, order, np.where(before < top_p, falling, 0), -1)
    passed = probabilities.cumsum(-1)
    passed /= passed[..., -1:]  # 1 at its end, which no draw reaches
    return (passed <= rng.random((*logits.shape[:-1], 1))).sum(-1)
