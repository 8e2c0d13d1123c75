"""The model that writes, with a function of your own in the place of one of its parts."""

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace

import numpy as np

from attnlib.attention import softmax
from attnlib.inputs import read_function, read_result
from attnlib.masks import causal_mask
from attnlib.models.writing import writer
from attnlib.multihead import MultiHeadAttention, merge_heads, split_heads
from attnlib.positions import rotary


def sample_tokens(logits, temperature, draws):
    """Return the token that each of `draws`, (n_draws,) from 0 to 1, takes from `logits`."""
    sums = softmax(logits.astype(float) / temperature).cumsum()
    return (sums <= draws[:, None]).sum(axis=1).clip(max=len(sums) - 1)


@dataclass(frozen=True)
class Parts:
    """Five functions by which the writer computes; each has the form of its exercise.

    Parameters
    ----------
    softmax : callable
        Scores (n_q, n_k) to weights (n_q, n_k).
    causal_mask : callable
        n_q, n_k to bool (n_q, n_k), True = may attend.
    attention : callable
        Q (n_q, d_k), K (n_k, d_k) and V (n_k, d_v) to Z (n_q, d_v) and A (n_q, n_k). Its own
        softmax is `softmax` unless it is given.
    rotary : callable
        x (n, d) and positions (n,) to x turned, (n, d); neighbors are a pair.
    sample_tokens : callable
        logits (n_tokens,), a temperature and draws (n_draws,) from 0 to 1 to tokens (n_draws,).

    Raises
    ------
    TypeError
        If one of them cannot be called.
    """

    softmax: Callable = softmax
    causal_mask: Callable = causal_mask
    attention: Callable | None = None
    rotary: Callable = rotary
    sample_tokens: Callable = sample_tokens

    def __post_init__(self):
        if self.attention is None:
            object.__setattr__(self, "attention", self._attend)
        for name, part in vars(self).items():
            read_function(part, name)

    def _attend(self, queries, keys, values):
        scores = queries @ keys.T / math.sqrt(queries.shape[1])
        weights = result_of("softmax", self.softmax(scores), scores.shape)
        return weights @ values, weights


def result_of(name, result, shape, kinds="f"):
    """Return what a part has returned as an array, if it can be used in its place."""
    array = read_result(result, name, shape, kinds)
    if kinds == "f" and not np.isfinite(array).all():
        raise ValueError(f"{name} must return finite numbers; got NaN or infinity")
    return array


@dataclass(frozen=True)
class PartedAttention:
    """The attention of a layer that computes by given `parts`, one key head at a time.

    It stands in the place of a `MultiHeadAttention` whose heads turn by halves. The two numbers of
    a pair are put side by side before `rotary` gets them, which changes no score.
    """

    attention: MultiHeadAttention
    parts: Parts = field(default_factory=Parts)

    @property
    def widths(self):
        """The widths of the input and of the output, in dimensions."""
        return self.attention.widths

    def __call__(self, x, mask=None, *, cache):
        """Return the output (n, d_model) of the next tokens; no weights."""
        own, n = self.attention, len(x)
        positions = np.arange(cache.n, cache.n + n)
        queries = self._turned(split_heads(x @ own.w_q, own.n_heads), positions)
        keys = self._turned(split_heads(x @ own.w_k, own.n_kv_heads), positions)
        keys, values = cache.extend(keys, split_heads(x @ own.w_v, own.n_kv_heads))
        n_k = keys.shape[1]
        allowed = result_of("causal_mask", self.parts.causal_mask(n_k, n_k), (n_k, n_k), "b")
        queries = queries.reshape(own.n_kv_heads, -1, *queries.shape[1:])
        output = np.zeros((*queries.shape[:3], values.shape[2]), x.dtype)
        for head, token in np.ndindex(own.n_kv_heads, n):
            may = allowed[n_k - n + token]
            if may.any():
                output[head, :, token] = self._attended(
                    queries[head, :, token], keys[head, may], values[head, may]
                )
        return merge_heads(output.reshape(own.n_heads, n, -1)) @ own.w_o, None

    def _turned(self, heads, positions):
        """Return queries or keys (n_heads, n, d), each head turned by `rotary`."""
        d = heads.shape[2]
        pairs = np.arange(d).reshape(2, d // 2).T.ravel()  # 0, d / 2, 1, d / 2 + 1, ...
        turned = [self.parts.rotary(x, positions) for x in heads[..., pairs]]
        checked = [result_of("rotary", x, heads.shape[1:]) for x in turned]
        return np.array(checked, heads.dtype)

    def _attended(self, queries, keys, values):
        """Return the outputs (n_q, d_v) of the queries of one token that share their keys."""
        result = self.parts.attention(queries, keys, values)
        if not isinstance(result, tuple | list) or len(result) != 2:
            raise TypeError(f"attention must return Z, A; got {type(result).__name__}")
        return result_of("attention", result[0], (len(queries), values.shape[1]))


def write_with(parts, tokens, draws, *, temperature=0.8):
    """Return what the writer writes after `tokens`, computing by the given parts.

    Parameters
    ----------
    parts : Parts
    tokens : array of int, shape (n,)
        The beginning. It is read at once; after it each token is read alone, with a cache.
    draws : array of float, shape (n_draws,)
        Numbers from 0 to 1, one for each token that is to be written.
    temperature : float
        Above 0.

    Returns
    -------
    array of int
        The new tokens: as many as there are draws, or fewer if the story ends.

    Raises
    ------
    TypeError, ValueError
        If a part returns what cannot be used in its place, and whatever a part itself raises.
    """
    model = writer()
    layers = [
        replace(layer, attention=PartedAttention(layer.attention, parts)) for layer in model.layers
    ]
    model = replace(model, layers=layers)
    cache, new, written = model.cache(), tokens, []
    for draw in draws:
        logits = model(new, cache=cache)[-1]
        sampled = parts.sample_tokens(logits, temperature, np.array([draw]))
        new = result_of("sample_tokens", sampled, (1,), "iu")
        if new[0] == 0:  # the end of the story
            break
        written.append(int(new[0]))
    return np.array(written, int)
