"""A causal language model: tokens in, the logits of the next token out, with a cache."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from attnlib.attention import softmax
from attnlib.caches import KeyValueCache
from attnlib.inputs import (
    quiet_nan,
    read_array,
    read_function,
    read_matrix,
    read_number,
    read_size,
)
from attnlib.layers import EncoderLayer
from attnlib.masks import top_k_mask


@dataclass(eq=False)
class Cache:
    """What a `CausalLM` keeps of the tokens that it has read: a `KeyValueCache` for each layer."""

    layers: list

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
    weights : list of arrays, shape (..., n_heads, n, n), one a layer
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
    windows : list of int or None, one a layer, optional
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
        if rows != d_model or columns > n_tokens:
            raise ValueError(
                f"unembedding must have the shape of the transpose of embeddings, "
                f"{(d_model, n_tokens)}, or fewer columns; got {self.unembedding.shape}"
            )
        self.layers = list(self.layers)
        if not self.layers:
            raise ValueError("layers must hold at least one EncoderLayer; got none")
        for layer in self.layers:
            if not isinstance(layer, EncoderLayer):
                raise TypeError(f"layers must hold EncoderLayers; got {type(layer).__name__}")
            if layer.d_model not in (d_model, None):
                raise ValueError(
                    f"layers must be as wide as the embeddings, {d_model}; got {layer.d_model}"
                )
        if self.norm is not None:
            read_function(self.norm, "norm")
        self.windows = [None] * len(self.layers) if self.windows is None else list(self.windows)
        if len(self.windows) != len(self.layers):
            raise ValueError(
                f"windows must be one a layer, {len(self.layers)}; got {len(self.windows)}"
            )
        self.scale = read_number(self.scale, "scale")
        self.cache()  # refuses a window that is none

    @property
    def n_tokens(self):
        """The number of tokens that the model knows."""
        return len(self.embeddings)

    def cache(self):
        """Return an empty cache for this model."""
        return Cache([KeyValueCache(window) for window in self.windows])

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
        x = self._embed(self._read_tokens(tokens))
        for after, _ in self._pass_layers(x, self._read_cache(cache)):
            x = after
        return self.logits(x)

    def read(self, tokens):
        """Return all that the model computes for a text, as a `Trace`.

        Parameters and errors are those of a call.
        """
        tokens = self._read_tokens(tokens)
        states, weights = [self._embed(tokens)], []
        for x, of_layer in self._pass_layers(states[0], self.cache()):
            states.append(x)
            weights.append(of_layer)
        return Trace(tokens, self.logits(states[-1]), np.stack(states), weights)

    def write(self, tokens, n, *, temperature=1.0, top_k=None, rng=None):
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
            If `tokens` holds no token or an unknown one, or a number is out of bounds.
        """
        tokens = self._read_tokens(tokens)
        if tokens.shape[-1] == 0:
            raise ValueError(f"tokens must hold a token to write after; got shape {tokens.shape}")
        temperature = read_number(temperature, "temperature", "0 or more")
        if top_k is not None:
            top_k = read_size(top_k, "top_k", least=1)
        if rng is None:
            rng = np.random.default_rng()
        elif not isinstance(rng, np.random.Generator):
            raise TypeError(f"rng must be a numpy.random.Generator; got {type(rng).__name__}")
        cache, new = self.cache(), tokens
        for _ in range(read_size(n, "n")):
            logits = self(new, cache=cache)[..., -1, :]  # (..., n_tokens)
            new = _draw(logits, temperature, top_k, rng)[..., None]
            tokens = np.concatenate([tokens, new], axis=-1)
        return tokens

    def logits(self, states):
        """Return the logits of states of the residual stream (..., n, d_model): norm, then W_U."""
        return (states if self.norm is None else self.norm(states)) @ self.unembedding

    def _embed(self, tokens):
        """Return the embeddings of tokens, (..., n, d_model)."""
        x = self.embeddings[tokens]
        return x if self.scale == 1 else x * self.scale

    def _pass_layers(self, x, cache):
        """Yield the tokens after each layer, and where they attended."""
        for layer, kept in zip(self.layers, cache.layers, strict=True):
            x, weights = layer(x, cache=kept)
            yield x, weights

    def _read_tokens(self, tokens):
        """Return tokens as an array of whole numbers (..., n) that the model knows."""
        tokens = read_array(tokens, "tokens")
        if tokens.ndim == 0:
            raise ValueError("tokens must have an axis (..., n); got a single number")
        if tokens.size == 0:
            tokens = tokens.astype(int)  # an empty list counts as float
        if tokens.dtype.kind not in "iu":
            raise TypeError(f"tokens must be whole numbers; got {tokens.dtype}")
        unknown = (tokens < 0) | (tokens >= self.n_tokens)
        if unknown.any():
            raise ValueError(
                f"tokens must be from 0 to {self.n_tokens - 1}; got {tokens[unknown][0]}"
            )
        return tokens

    def _read_cache(self, cache):
        """Return a cache of this model, a new one for None."""
        if cache is None:
            return self.cache()
        if not isinstance(cache, Cache):
            raise TypeError(f"cache must be a Cache of the model; got {type(cache).__name__}")
        if [kept.window for kept in cache.layers] != self.windows:
            raise ValueError(
                f"cache must have the windows of the model's layers, {self.windows}; "
                f"got {[kept.window for kept in cache.layers]}"
            )
        return cache


@quiet_nan
def _draw(logits, temperature, top_k, rng):
    """Return a token for each row of logits (..., n_tokens)."""
    if temperature == 0:
        return logits.argmax(-1)
    logits = logits.astype(np.float64)
    # Measured from the largest, however small the temperature is: no quotient of it overflows.
    scores = (logits - logits.max(-1, keepdims=True)) / temperature
    if top_k is not None:
        scores = np.where(top_k_mask(scores, top_k), scores, -np.inf)
    passed = softmax(scores).cumsum(-1)
    passed /= passed[..., -1:]  # 1 at its end, which no draw reaches
    return (passed <= rng.random((*logits.shape[:-1], 1))).sum(-1)
