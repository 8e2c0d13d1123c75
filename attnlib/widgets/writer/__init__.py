"""Writer: a language model writes a story in the page, beside the true probability of each word."""

import base64
import functools

import numpy as np
import traitlets

from attnlib import models, world
from attnlib.attention import softmax
from attnlib.models import writing
from attnlib.widgets.kit.base import CourseWidget, Number, Whole

MAX_LETTERS, MAX_TOKENS = 600, 240
N_HEADS = 12  # of all layers
# The two stories that are recorded, how they begin and how they go on: the same but for one word,
# and so for all that follows from it.
STORIES = [
    (
        f"Rosa was a brave sailor. Rosa had to bring the {cargo} to the bank.",
        f"after an hour the {cargo} reached the bank . the bank was {state} , "
        f"and Rosa saw {sight} there .",
    )
    for cargo, state, sight in (("boat", "muddy", "a swan"), ("gold", "busy", "two clerks"))
]
CARGO, CHOSEN = 12, 29  # the words that differ: what is brought, and how the bank is
N_ROWS, LEAST = 6, 0.005  # so many words with at least this probability are shown


class LoadsModel(traitlets.HasTraits):
    """What a widget has whose page loads the model when a reader asks for it (`loading.js`)."""

    kernel = traitlets.Bool(False, read_only=True).tag(sync=True)
    wanted = traitlets.Bool(False).tag(sync=True)
    file = traitlets.Dict(read_only=True).tag(sync=True)

    def __init__(self, **traits):
        super().__init__(**traits)
        self.set_trait("kernel", True)
        self.observe(lambda _: self.set_trait("file", model_file()), "wanted")

    @property
    def state(self):
        """The state as a page without a kernel gets it."""
        return {**super().state, "kernel": False, "wanted": False, "file": {}}


class Writer(LoadsModel, CourseWidget):
    """A small language model that writes stories, word by word.

    The page shows what was recorded of two stories. When a reader asks for more, the page
    loads the model of `attnlib.models.writer`, which writes there; in a notebook the kernel hands
    it over. The stories are those of a small world, `attnlib.world.World`, so the true probability
    of each word is known, and stands beside that of the model.

    Parameters
    ----------
    text : str
        How the story begins: up to 600 letters.
    written : str
        How it goes on: words and marks with spaces between them, up to 240.
    at : int
        The word whose probabilities are shown, counted from 1; 0 for the next word.
    temperature : float
        0 to 2; 0 takes the most probable word.
    top_k : int
        Draw from so many words only; 0 for all.
    top_p : float
        Draw from as many words only as together have this probability.
    seed : int
        The same seed and the same settings write the same story.
    head : int
        Whose attention is shown: the mean of all heads, 0, or one of them, counted from 1 layer by
        layer.
    shows : {"attention", "surprise"}
        What is marked at each word: how much it was attended to, or how surprising it was.
    cache : bool
        Whether the model keeps the keys and values of the words that it has read.

    Raises
    ------
    ValueError
        If a text is too long, or a number is out of its bounds.
    traitlets.TraitError
        For a value of the wrong type.
    """

    text = traitlets.Unicode(STORIES[0][0]).tag(sync=True)
    written = traitlets.Unicode(STORIES[0][1]).tag(sync=True)
    at = Whole(0, MAX_TOKENS, CHOSEN).tag(sync=True)
    temperature = Number(0, 2, 1.0).tag(sync=True)
    top_k = Whole(0, 100, 0).tag(sync=True)
    top_p = Number(0.05, 1, 1.0).tag(sync=True)
    seed = Whole(0, 9999, 0).tag(sync=True)
    head = Whole(0, N_HEADS, 0).tag(sync=True)
    shows = traitlets.Enum(["attention", "surprise"], "attention").tag(sync=True)
    cache = traitlets.Bool(True).tag(sync=True)
    recorded = traitlets.List(read_only=True).tag(sync=True, constant=True)

    @traitlets.validate("text", "written")
    def _check_text(self, proposal):
        name, value = proposal["trait"].name, proposal["value"]
        if name == "text" and len(value) > MAX_LETTERS:
            raise ValueError(f"text needs at most {MAX_LETTERS} letters; got {len(value)} of them")
        if name == "written" and len(value.split()) > MAX_TOKENS:
            raise ValueError(
                f"written needs at most {MAX_TOKENS} words and marks; got {len(value.split())}"
            )
        return value

    @traitlets.default("recorded")
    def _record(self):
        """What a page shows before it has the model."""
        return [record(*story) for story in STORIES]

    @property
    def tokens(self):
        """The tokens of the story so far, (n,), the one before its first word among them."""
        return _tokens(self.text, self.written)

    @property
    def probabilities(self):
        """The model's probability of each word after each token, (n, n_tokens)."""
        return softmax(_model()(self.tokens))

    @property
    def weights(self):
        """What each token attends to, (n_layers, n_heads, n, n): queries by keys."""
        return np.stack(_model().read(self.tokens).weights)


_model = functools.cache(models.writer)


def _tokens(text, written):
    """Return the tokens of what was begun and what was written; unknown words are left out."""
    vocabulary = _model().vocabulary
    words = [*world.split(text, vocabulary), *written.split()]
    known = {word: token for token, word in enumerate(vocabulary)}
    return np.array([0, *(known[word] for word in words if word in known)])


def model_file():
    """Return what a page loads: the model as it is stored, as plain values, and its world.

    The arrays stand one after the other in `data`, in base64; of a matrix in 8 bits, whole numbers
    follow one scale for each row.
    """
    with np.load(writing.WEIGHTS, allow_pickle=False) as stored:
        kept = dict(stored)
    config, vocabulary = str(kept.pop("config")), kept.pop("vocabulary").tolist()
    arrays, data = [], b""
    for name, array in kept.items():
        if name.endswith("/scale"):
            continue
        in_bytes = array.dtype == np.int8
        arrays.append([name, list(array.shape), in_bytes])
        data += kept[f"{name}/scale"].astype("<f4").tobytes() if in_bytes else b""
        data += array.tobytes() if in_bytes else array.astype("<f4").tobytes()
    return {
        "config": config,
        "vocabulary": vocabulary,
        "world": world.FILE.read_text(encoding="utf-8"),
        "arrays": arrays,
        "data": base64.b64encode(data).decode(),
    }


# What is recorded


@functools.cache
def record(text, written):
    """Return what a page shows of a story before it has the model: as plain values.

    `words` are those of the story; `begun` of them are the reader's. For each of them, and for the
    next one, `rows` holds the most probable words with the model's probability and the true one,
    `kinds` and `deciders` what decides it in the world, and `attention` what the mean of all heads
    attended to, one digit of base 64 for each word before it.
    """
    tokens = _tokens(text, written)
    vocabulary = _model().vocabulary
    words = [vocabulary[token] for token in tokens[1:]]
    steps, reading = [], world.Reading(world.World())
    for word in words:
        steps.append(reading.read(word))
    trace = _model().read(tokens)
    attention = np.mean([layer.mean(0) for layer in trace.weights], axis=0)  # (n, n)
    true = [*(step.probabilities for step in steps), reading.probabilities]
    return {
        "text": text,
        "written": written,
        "at": CHOSEN,
        "cargo": words[CARGO - 1],
        "words": words,
        "begun": len(_tokens(text, "")) - 1,
        "rows": [
            _rows(dict(zip(vocabulary, map(float, row), strict=True)), truth, word)
            for row, truth, word in zip(softmax(trace.logits), true, [*words, None], strict=True)
        ],
        "kinds": [step.kind for step in steps],
        "deciders": [list(step.deciders) for step in steps],
        "attention": [
            "".join(DIGITS[round(63 * x)] for x in row[: i + 1]) for i, row in enumerate(attention)
        ],
    }


DIGITS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"


def _rows(probabilities, truth, word):
    """Return the rows of a word's bars, [word, the model's probability, the true one]."""
    height = {w: max(p, truth.get(w, 0)) for w, p in probabilities.items()}
    most = [w for w in sorted(height, key=lambda w: -height[w])[:N_ROWS] if height[w] >= LEAST]
    if word and word not in most:
        most[N_ROWS - 1 :] = [word]
    most.sort(key=lambda w: -probabilities[w])
    return [[w, round(probabilities[w], 4), round(truth.get(w, 0), 4)] for w in most]
