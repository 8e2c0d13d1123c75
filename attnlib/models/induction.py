"""A task whose attention is known in advance, and small models that this course trained on it.

"A model that learned to look back" shows both.
"""

import copy
import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from attnlib.feed_forward import FeedForward
from attnlib.inputs import read_dtype, read_flag, read_generator, read_ids, read_size
from attnlib.layers import Encoder, EncoderLayer
from attnlib.masks import causal_mask
from attnlib.multihead import MultiHeadAttention
from attnlib.norms import LayerNorm
from attnlib.positions import sinusoidal_positions

N_TOKENS, LENGTH = 16, 24  # the vocabulary, and how long the sentences in training were
NO_ANSWER = -1
FINENESS = 1024  # a stored weight is a whole number of these parts of 1: half of the bytes
DATA = Path(__file__).resolve().parent.parent / "data"
WEIGHTS = DATA / "induction.npz"
MEASURED = DATA / "trainer.json"

_ATTENTION = ("w_q", "w_k", "w_v", "w_o", "b_q", "b_k", "b_v", "b_o")
_MODEL = ("embedding", "w_out", "b_out")


def answers(tokens):
    """Return what followed each token the last time it occurred: the task of the models.

    Parameters
    ----------
    tokens : array of int, shape (..., n)

    Returns
    -------
    array of int, shape (..., n)
        `NO_ANSWER` where a token is there for the first time.

    Examples
    --------
    >>> answers([5, 2, 7, 5, 2, 5])
    array([-1, -1, -1,  2,  7,  2])
    """
    tokens = read_ids(tokens)
    last = _last_places(tokens)
    after = np.take_along_axis(tokens, last + 1, axis=-1) if tokens.size else tokens
    return np.where(last >= 0, after, NO_ANSWER)


def sentences(n_sentences, rng, *, n=LENGTH):
    """Return random sentences, each token drawn independently, and their `answers`.

    Parameters
    ----------
    n_sentences : int
    rng : numpy.random.Generator
    n : int
        Tokens in a sentence.

    Returns
    -------
    tokens, answers : arrays of int, shape (n_sentences, n)
    """
    shape = read_size(n_sentences, "n_sentences"), read_size(n, "n")
    tokens = read_generator(rng).integers(N_TOKENS, size=shape)
    return tokens, answers(tokens)


def held_out():
    """Return the sentences on which a page measures, and their answers, (200, 24)."""
    return sentences(200, np.random.default_rng(13))


@dataclass(eq=False)
class TokenModel:
    """An encoder that reads tokens and predicts tokens.

    Embeddings plus sinusoidal positions, Eq. (2) of "Where am I? Positions"; a causal encoder,
    Eq. (9) of "The encoder layer"; then one logit for each token of the vocabulary, Eq. (1) of
    "A model that learned to look back".

    Parameters
    ----------
    embedding : array, shape (n_tokens, d_model)
    encoder : Encoder
    w_out : array, shape (d_model, n_tokens)
    b_out : array, shape (n_tokens,)
    """

    embedding: np.ndarray
    encoder: Encoder
    w_out: np.ndarray
    b_out: np.ndarray

    def __call__(self, tokens):
        """Return the scores of the answers, and where each head attended.

        Parameters
        ----------
        tokens : array of int, shape (..., n)

        Returns
        -------
        scores : array, shape (..., n, n_tokens)
        weights : list of arrays, shape (..., n_heads, n, n), one per layer

        Raises
        ------
        TypeError, ValueError
            If `tokens` does not hold whole numbers below n_tokens.
        """
        tokens = read_ids(tokens, len(self.embedding))
        n, d_model = tokens.shape[-1], self.embedding.shape[1]
        positions = sinusoidal_positions(n, d_model, dtype=self.embedding.dtype)
        x = self.embedding[tokens] + positions  # (..., n, d_model)
        x, weights = self.encoder(x, causal_mask(n))
        return x @ self.w_out + self.b_out, weights

    def accuracy(self, tokens, answers):
        """Return the accuracy: how many of the answers that exist are right, from 0 to 1."""
        scores, _ = self(tokens)
        answered = answers != NO_ANSWER
        return float((scores.argmax(axis=-1) == answers)[answered].mean())


def looks(weights, tokens):
    """Return where each head looks: its mean weight on the token before, and on the answer.

    The answer of a token is the token after its previous occurrence.

    Parameters
    ----------
    weights : list of arrays, shape (n_sentences, n_heads, n, n), one per layer
        What a TokenModel returns for `tokens`.
    tokens : array of int, shape (n_sentences, n)

    Returns
    -------
    one_back, on_answer : arrays, shape (n_layers, n_heads)
    """
    last = _last_places(tokens)
    sentence, place = np.nonzero(last >= 0)
    of_all = np.stack(weights)  # (n_layers, n_sentences, n_heads, n, n)
    one_back = of_all.diagonal(-1, -2, -1).mean(axis=(1, 3))
    on_answer = of_all[:, sentence, :, place, last[sentence, place] + 1]  # (answers, layers, heads)
    return one_back, on_answer.mean(axis=0)


def without(model, *heads):
    """Return a copy of a TokenModel in which these heads, (layer, head) from 0, add nothing.

    Their rows of W_O are zeros, so what they attend to has no effect.

    Raises
    ------
    TypeError
        If the number of a layer or a head is not whole.
    ValueError
        If there is no such head.
    """
    reduced = copy.deepcopy(model)
    for layer, head in heads:
        layers = reduced.encoder.layers
        attention = layers[read_size(layer, "layer", below=len(layers))].attention
        head = read_size(head, "head", below=attention.n_heads)
        np.split(attention.w_o, attention.n_heads)[head][:] = 0
    return reduced


def load(n_layers=2, *, penalized=True, dtype=np.float32):
    """Return a model that `make train` trained, with one layer or with two.

    It was trained in float32; in float64 its answers are the same on every machine, to the digits
    that a page keeps.

    Parameters
    ----------
    n_layers : {1, 2}
    penalized : bool
        Of two layers, the model with a weight penalty on W_O in its training, or the one without.
    dtype : numpy.dtype

    Raises
    ------
    TypeError
        If `dtype` is not one of the three floats, `n_layers` is not a whole number, or `penalized`
        is not a bool.
    ValueError
        If there is no model with `n_layers`.
    """
    dtype, penalized = read_dtype(dtype), read_flag(penalized, "penalized")
    if read_size(n_layers, "n_layers") not in (1, 2):
        raise ValueError(f"n_layers must be 1 or 2; got {n_layers!r}")
    name = "1" if n_layers == 1 else "2" if penalized else "2 unpenalized"
    return unpack(stored(name), dtype)


def stored(name):
    """Return what the file of weights keeps under `name`, as {what: array}."""
    with np.load(WEIGHTS, allow_pickle=False) as file:
        names = [each for each in file if each.startswith(f"{name}/")]
        return {each.removeprefix(f"{name}/"): file[each] for each in names}


def trained_in_page():
    """Return what `benchmarks/trainer.py` measured of the widget `Trainer`: by setting, by seed.

    Each entry holds `accuracy` on new sentences, the step at which a smoothed accuracy passed 0.95
    as `learned` (or None), the first and the last step of the `drop` of the loss (or None), and the
    mean weights of the best heads, `one_back` in the first layer and `on_answer` in the last one.
    The first setting also has `of_seen`: the probability that the model gives to letters that have
    occurred, at step 0 and at step 90, and what equal probabilities would give.
    """
    return json.loads(MEASURED.read_text(encoding="utf-8"))


def unpack(arrays, dtype=np.float32):
    """Return the TokenModel whose weights are stored as int16; other arrays are ignored."""
    return from_arrays(
        {
            name: (array / FINENESS).astype(dtype) if array.dtype == np.int16 else array
            for name, array in arrays.items()
        }
    )


def to_arrays(model):
    """Return the weights of a TokenModel as a dict of arrays, which `from_arrays` reads."""
    arrays = {name: getattr(model, name) for name in _MODEL}
    arrays |= {"gamma": model.encoder.norm.gamma, "beta": model.encoder.norm.beta}
    for i, layer in enumerate(model.encoder.layers):
        network, norm_1, norm_2 = layer.feed_forward, layer.norm_1, layer.norm_2
        parts = {name: getattr(layer.attention, name) for name in _ATTENTION}
        parts |= {"n_heads": np.array(layer.attention.n_heads)}
        parts |= {"w_1": network.w_1, "b_1": network.b_1, "w_2": network.w_2, "b_2": network.b_2}
        parts |= {"gamma_1": norm_1.gamma, "beta_1": norm_1.beta}
        parts |= {"gamma_2": norm_2.gamma, "beta_2": norm_2.beta}
        arrays |= {f"{i}.{name}": array for name, array in parts.items()}
    return arrays


def from_arrays(arrays):
    """Return the TokenModel, pre-norm with ReLU, whose weights `to_arrays` gave."""
    layers = []
    while f"{len(layers)}.n_heads" in arrays:
        prefix = f"{len(layers)}."
        parts = {k.removeprefix(prefix): arrays[k] for k in arrays if k.startswith(prefix)}
        weights = {name: parts[name] for name in _ATTENTION}
        layer = EncoderLayer(
            MultiHeadAttention(**weights, n_heads=int(parts["n_heads"])),
            FeedForward(parts["w_1"], parts["b_1"], parts["w_2"], parts["b_2"]),
            LayerNorm(parts["gamma_1"], parts["beta_1"]),
            LayerNorm(parts["gamma_2"], parts["beta_2"]),
            norm_first=True,
        )
        layers.append(layer)
    encoder = Encoder(layers, LayerNorm(arrays["gamma"], arrays["beta"]))
    return TokenModel(arrays["embedding"], encoder, arrays["w_out"], arrays["b_out"])


def _last_places(tokens):
    """Return the position of each token's previous occurrence, or -1, as (..., n)."""
    same = tokens[..., :, None] == tokens[..., None, :]  # (..., n, n)
    n = tokens.shape[-1]
    return np.where(same & np.tri(n, k=-1, dtype=bool), np.arange(n), -1).max(-1, initial=-1)
