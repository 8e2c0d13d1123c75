"""The model that writes: a small Llama that this course has trained on the stories of `World`.

The file `data/writer.npz` holds its configuration, its vocabulary and its weights. A matrix is
stored in 8 bits per weight: each of its rows is a row of whole numbers from -127 to 127, times one
scale.
"""

import difflib
import json
from dataclasses import dataclass, fields
from functools import cached_property
from pathlib import Path

import numpy as np

from attnlib.inputs import read_floats, read_ids
from attnlib.models.language import CausalLM
from attnlib.models.published import causal_lm
from attnlib.world import END, show, split

WEIGHTS = Path(__file__).resolve().parent.parent / "data" / "writer.npz"
FIGURES = WEIGHTS.with_name("writer.json")
SCALING = WEIGHTS.with_name("writer_scaling.json")
COMPARED = WEIGHTS.with_name("writer_compared.json")
LARGEST = 127  # the largest whole number that stands for a weight


def writer(*, dtype=np.float32):
    """Return the model of this course that writes short stories.

    Parameters
    ----------
    dtype : float16, float32 or float64
        In which the model computes.

    Returns
    -------
    Writer
        A `CausalLM` with a `vocabulary`, and with `encode` and `decode` between text and tokens.

    Raises
    ------
    TypeError
        If `dtype` is not one of the three.

    Examples
    --------
    >>> model = writer()
    >>> tokens = model.encode("Ada was a kind")
    >>> [model.vocabulary[token] for token in tokens]
    ['¶', 'Ada', 'was', 'a', 'kind']
    >>> model.decode(tokens)
    'Ada was a kind'
    """
    with np.load(WEIGHTS, allow_pickle=False) as stored:
        return unpack(dict(stored), dtype)


def measured():
    """Return what was measured when the model was trained, as a dictionary.

    Among it are "stories", how many it has read; "steps", a row for each measurement: steps, loss
    in training, loss on stories that it has not read, seconds; "held_out", its loss on such
    stories in all and by kind of dependency, beside the lowest possible one, "floor"; and "texts"
    of its early states.
    """
    return json.loads(FIGURES.read_text(encoding="utf-8"))


def scaling():
    """Return what was measured of smaller models and shorter trainings, as a dictionary.

    "sizes" has a row for each model, with its number of "parameters" and its "losses" on stories
    that it has not read, by steps of training; "floor" is the lowest possible loss on these
    stories. "few" and "new" are rows of steps, loss in training, and loss on stories not read: of a
    model that learns from a few stories, "stories" in number, and of one that always reads new
    ones.
    """
    return json.loads(SCALING.read_text(encoding="utf-8"))


def compared():
    """Return what the model was compared with, as a dictionary.

    "tables" says by kind of dependency how often a table of the last 1, 2 or 5 words would be right
    where one word is; "calibration" has a row for each bucket of probabilities between two "edges":
    how many there are, the model's mean, how often the word came, the mean of the true ones and the
    mean distance from them; "sampling" has a row for the world's own "stories", so many in number,
    and for those that the model writes with each setting: how many are without a fault, the kinds
    of the first "faults", and how many of their sequences of four words are different.
    """
    return json.loads(COMPARED.read_text(encoding="utf-8"))


@dataclass(eq=False, kw_only=True)
class Writer(CausalLM):
    """A `CausalLM` whose tokens are the words and marks of a vocabulary.

    Parameters
    ----------
    vocabulary : list of str
        The word of each token. Token 0 stands before and behind each story.
    """

    vocabulary: list

    def __post_init__(self):
        super().__post_init__()
        if len(self.vocabulary) != self.n_tokens:
            raise ValueError(
                f"vocabulary must have a word for each of the {self.n_tokens} embeddings; "
                f"got {len(self.vocabulary)}"
            )

    @cached_property
    def _tokens(self):
        return {word: token for token, word in enumerate(self.vocabulary)}

    def encode(self, text):
        """Return the tokens of a text: the one before every story, then one for each word and mark.

        A capital letter is made small where the vocabulary has only the word with a small one.
        Straight quotation marks and apostrophes become curly.

        Parameters
        ----------
        text : str

        Returns
        -------
        array of int, shape (n,)

        Raises
        ------
        TypeError
            If `text` is not a string.
        ValueError
            If it has words that the model does not know; the message says which ones, and which
            known words are spelled alike.
        """
        if not isinstance(text, str):
            raise TypeError(f"text must be a string; got {type(text).__name__}")
        words = split(text, self._tokens)
        unknown = [word for word in dict.fromkeys(words) if word not in self._tokens]
        if unknown:
            raise ValueError(
                f"text must be made of the {self.n_tokens} words and marks of the vocabulary; "
                f"got {', '.join(map(self._describe, unknown))}"
            )
        return np.array([self._tokens[word] for word in [END, *words]])

    def decode(self, tokens):
        """Return tokens as a text that people read: what `encode` has taken apart.

        Parameters
        ----------
        tokens : array of int, shape (n,)

        Returns
        -------
        str

        Raises
        ------
        TypeError
            If `tokens` holds no whole numbers.
        ValueError
            If it is not a vector, or a token is unknown.
        """
        tokens = read_ids(tokens, self.n_tokens)
        if tokens.ndim != 1:
            raise ValueError(f"tokens must be a vector (n,); got shape {tokens.shape}")
        return show([self.vocabulary[token] for token in tokens])

    def _describe(self, word):
        """Return an unknown word, and the known ones that are spelled like it."""
        near = difflib.get_close_matches(word, self.vocabulary, n=2)
        return f"{word!r} (spelled alike: {', '.join(near)})" if near else repr(word)


def pack(config, weights, vocabulary):
    """Return what `data/writer.npz` holds of a model, {name: array}.

    Parameters
    ----------
    config : dict
        As a config.json has it.
    weights : dict of str to array of float
        By their published names, as `causal_lm` takes them.
    vocabulary : list of str

    Returns
    -------
    dict
        "config", the configuration as JSON; "vocabulary"; each vector under its name; and each
        matrix under its name as int8, with one float32 a row, "<name>/scale", to multiply it by.
    """
    arrays = {"config": np.array(json.dumps(config)), "vocabulary": np.array(vocabulary)}
    for name, weight in weights.items():
        weight = read_floats(weight, name).astype(np.float32)
        if weight.ndim == 2:
            scale = np.abs(weight).max(axis=1) / np.float32(LARGEST)
            scale[scale == 0] = 1  # a row of zeros
            arrays[f"{name}/scale"] = scale
            weight = np.round(weight / scale[:, None]).astype(np.int8)
        arrays[name] = weight
    return arrays


def unpack(arrays, dtype=np.float32):
    """Return the `Writer` that `pack` has stored."""
    arrays = dict(arrays)
    config, vocabulary = json.loads(str(arrays.pop("config"))), arrays.pop("vocabulary").tolist()
    weights = {
        name: array * arrays[f"{name}/scale"][:, None] if array.dtype == np.int8 else array
        for name, array in arrays.items()
        if not name.endswith("/scale")
    }
    model = causal_lm(config, weights, dtype=dtype)
    parts = {field.name: getattr(model, field.name) for field in fields(CausalLM)}
    return Writer(**parts, vocabulary=vocabulary)
