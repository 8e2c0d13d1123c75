"""Encoder: a trained sentence encoder reads the reader's own sentence, in the page."""

import contextlib
import functools
from typing import ClassVar

import numpy as np
import traitlets

from attnlib import models
from attnlib.widgets.encoder import views
from attnlib.widgets.heads_viewer import DIGITS
from attnlib.widgets.kit.base import CourseWidget, Whole

VIEWS = ("heads", "path", "search", "lengths", "parts")
N_LAYERS, N_HEADS = 6, 12
MAX_LETTERS, MAX_TOKENS, MAX_SENTENCES = 1000, 64, 24
TEXT = "The cat sat down because it was tired."
# The first state of a view, where it differs from the defaults of the traits.
START = {
    "path": dict(zip(("text", "other"), views.PAIRS[0], strict=True)),
    "search": {"question": views.QUESTIONS[0], "sentences": views.LIBRARY},
    "parts": {"text": views.EVEN[0][0], "other": views.EVEN[0][1], "layer": 5, "head": 11},
}


class Encoder(CourseWidget):
    """all-MiniLM-L6-v2 at work: its heads, a word's path, a search, a long text, its parts.

    The page shows what was recorded of the first state. When a reader asks for it, the page
    loads the model, which reads what is typed; in Jupyter the kernel reads. Layers, heads and
    positions count from 0 here, and from 1 on the page.

    Parameters
    ----------
    view : {"heads", "path", "search", "lengths", "parts"}
        All weights of all heads; one word's vectors through the layers, in two sentences; sentences
        by their similarity to a question; the weight on `[CLS]` and `[SEP]` against the length;
        what each part writes into the difference between a word of two sentences.
    compact : bool
        Only one head, as lines; for the view "heads".
    text : str
        The sentence: up to 1000 letters, for "heads" up to 64 tokens, not blank.
    other : str
        The second sentence of "path" and "parts".
    word : str
        The token that "path" and "parts" follow; one that a sentence has several times is
        numbered, "to (2)".
    after : int
        How many layers have been passed, in "path".
    only : int
        The layer that "lengths" counts, from 1; 0 for all.
    layer, head : int
        The head that is shown large, or swapped.
    swapped : {"head", "layer", "all"}
        What "parts" swaps for the second sentence's: this head, all heads of its layer, or all.
    row : int
        The token whose query is shown; the last one of a text that has fewer.
    hidden : list of int
        Tokens that no query may attend to. Positions that a text does not have are ignored.
    question : str
        The question of "search".
    sentences : list of str
        The sentences that are searched, up to 24.

    Raises
    ------
    ValueError
        If a text is blank or too long, or a number is out of its bounds.
    traitlets.TraitError
        For a value of the wrong type, or a view that does not exist.

    Notes
    -----
    The page gets recorded weights in whole hundredths, and with `compact` those of one head only.
    `weights` has them as they were read.
    """

    view_modules: ClassVar[dict] = {view: f"encoder_{view}" for view in VIEWS}

    view = traitlets.Enum(VIEWS, "heads").tag(sync=True)
    compact = traitlets.Bool(False).tag(sync=True)
    text = traitlets.Unicode(TEXT).tag(sync=True)
    other = traitlets.Unicode("").tag(sync=True)
    word = traitlets.Unicode(views.WORD).tag(sync=True)
    after = Whole(0, N_LAYERS, N_LAYERS).tag(sync=True)
    only = Whole(0, N_LAYERS, 0).tag(sync=True)
    layer = Whole(0, N_LAYERS - 1, 3).tag(sync=True)
    head = Whole(0, N_HEADS - 1, 1).tag(sync=True)
    swapped = traitlets.Enum(["head", "layer", "all"], "head").tag(sync=True)
    row = Whole(0, MAX_TOKENS - 1, 6).tag(sync=True)
    hidden = traitlets.List(Whole(0, MAX_TOKENS - 1, 0)).tag(sync=True)
    question = traitlets.Unicode("").tag(sync=True)
    sentences = traitlets.List(traitlets.Unicode()).tag(sync=True)
    readings = traitlets.List(read_only=True).tag(sync=True)
    trouble = traitlets.Unicode(read_only=True).tag(sync=True)
    kernel = traitlets.Bool(False, read_only=True).tag(sync=True)
    # The weights that a link brings to a page (seen.js); the same in all notebooks: nothing.
    seen = traitlets.Unicode("", read_only=True).tag(sync=True, constant=True)

    def __init__(self, view="heads", **traits):
        super().__init__(view=view, **START.get(view, {}) | traits)
        self.set_trait("kernel", True)
        self._read()
        self.observe(self._read, READ)

    @traitlets.validate("text", "other", "question", "sentences")
    def _check_text(self, proposal):
        name, value = proposal["trait"].name, proposal["value"]
        texts = value if name == "sentences" else [value]
        for text in texts:
            if len(text) > MAX_LETTERS:
                raise ValueError(
                    f"{name} needs at most {MAX_LETTERS} letters; got {len(text)} of them"
                )
            if name in ("text", "sentences") and not text.strip():
                raise ValueError(f"{name} needs letters; got {text!r}")
        if len(texts) > MAX_SENTENCES:
            raise ValueError(f"{name} needs at most {MAX_SENTENCES} of them; got {len(texts)}")
        return value

    @traitlets.validate("hidden")
    def _check_hidden(self, proposal):
        return sorted(set(proposal["value"]))

    @property
    def state(self):
        """The state as a page without a kernel gets it."""
        return {**super().state, "kernel": False}

    @property
    def tokens(self):
        """The tokens of the text, from [CLS] to [SEP]."""
        return list(self._reading().tokens)

    @property
    def weights(self):
        """The weights of the picked head, (n, n): queries in rows, keys in columns."""
        return self._reading().weights[self.layer, self.head]

    @property
    def embedding(self):
        """The vector of the sentence, of length 1, (d_model,): the mean of what is not hidden."""
        states = _reading(self.text, tuple(self._hides())).states[-1]
        kept = [i not in self.hidden for i in range(len(states))]
        return models.mean_pool(states, kept)

    def _reading(self):
        return _reading(self.text, tuple(self._hides()), states=False)

    def _hides(self):
        """The positions of `hidden` that the text has; none if they are all of its tokens."""
        if not self.hidden:
            return []
        n = len(_reading(self.text, states=False).tokens)
        places = [i for i in self.hidden if i < n]
        return places if len(places) < n else []

    def _read(self, change=None):
        """Read what is to be shown; if that fails, say why and keep what was shown."""
        try:
            readings, trouble = SHOWS[self.view](self), ""
        except (models.MissingModelError, ValueError) as error:
            if change is None and isinstance(error, ValueError):
                raise
            readings, trouble = self.readings or _recorded(self.view), str(error)
        self.set_trait("readings", readings)
        self.set_trait("trouble", trouble)


# What was read, as the page gets it.


def _recorded(view):
    """What was recorded for the first state of a view."""
    return [_packed(TEXT)] if view == "heads" else views.recorded()[view]


def _heads(widget):
    """The sentence, and the same without what is hidden; compact, no more than a head of it."""
    hidden = tuple(widget._hides())
    if widget.compact and not hidden:
        return [_packed(widget.text, only=[widget.layer, widget.head])]
    return [_packed(widget.text)] + ([_packed(widget.text, hidden)] if hidden else [])


def _packed(text, hidden=(), only=None):
    """A reading: its tokens, and the weights of all heads, or of one, in hundredths."""
    reading = _reading(text, hidden, states=False)
    if len(reading.tokens) > MAX_TOKENS:
        raise ValueError(f"text needs at most {MAX_TOKENS} tokens; got {len(reading.tokens)}")
    found = {"text": text, "hidden": list(hidden), "tokens": reading.tokens}
    if hidden:
        kept = [i not in hidden for i in range(len(reading.tokens))]
        before = models.mean_pool(_reading(text).states[-1], [True] * len(kept))
        found["cosine"] = round(float(before @ models.mean_pool(reading.states[-1], kept)), 4)
    if only:
        return {**found, "only": only, "weights": _hundredths(reading.weights[*only])}
    return {**found, "weights": _hundredths(reading.weights)}


def _hundredths(weights):
    """Weights as one character each, or two; those of a column follow each other."""
    numbers = np.floor(100 * weights.swapaxes(-1, -2) + 0.5 + 1e-9).astype(int)
    last = len(DIGITS) - 1
    return "".join(DIGITS[x] if x < last else DIGITS[last] + DIGITS[x - last] for x in numbers.flat)


def _path(widget):
    """What was recorded of paths, and the one that is chosen."""
    recorded = _recorded("path")
    texts, word = [widget.text, widget.other], widget.word
    if any(one["texts"] == texts and one["word"] == word for one in recorded):
        return recorded
    return [*recorded, views.packed_path(*map(_reading, texts), texts, word)]


def _parts(widget):
    """What was recorded of parts, and those of the word that is chosen."""
    recorded = _recorded("parts")
    texts, word = [widget.text, widget.other], widget.word
    if any(one["texts"] == texts and one["word"] == word for one in recorded):
        return recorded
    return [*recorded, _read_parts(*texts, word)]


@functools.lru_cache(1)  # another layer or head is chosen of the same parts
def _read_parts(text, other, word):
    return views.packed_parts(_loaded(models.load_minilm), [text, other], word)


def _search(widget):
    """What was recorded of a search, and the cosines of the one that is chosen."""
    recorded = _recorded("search")
    question, sentences = widget.question, widget.sentences
    if sentences == recorded[0]["sentences"] and question in recorded[0]["questions"]:
        return recorded
    return [*recorded, views.packed_search(_loaded(models.load_minilm), question, sentences)]


def _lengths(widget):
    """What was recorded of lengths, and each sentence that was read since."""
    known = widget.readings or _recorded("lengths")
    if any(one.get("text") == widget.text for one in known):
        return known
    row = views.packed_shares(_reading(widget.text, states=False))
    return [*known, {"text": widget.text, "row": row}]


# A view: what it shows of a widget, as plain values; ValueError or MissingModelError say why not.
SHOWS = {"heads": _heads, "path": _path, "search": _search, "lengths": _lengths, "parts": _parts}
READ = ["text", "other", "word", "hidden", "question", "sentences", "layer", "head", "compact"]


def _reading(text, hidden=(), states=True):
    """Return what was recorded of a text, the same on every machine, or what the model reads.

    Of many texts only tokens and weights were recorded, which is enough unless `states` is True.
    """
    recording = _loaded(models.load_recording)
    if not hidden and not states:
        with contextlib.suppress(models.MissingModelError):
            tokens, weights = recording.attention(text)
            return models.Reading(tokens, None, weights)
    if not hidden:
        with contextlib.suppress(models.MissingModelError):
            return recording.read(text)
    return _model_reading(_loaded(models.load_minilm), text, hidden)


@functools.lru_cache(4)
def _loaded(load):
    return load()


@functools.lru_cache(32)
def _model_reading(model, text, hidden):
    return model.read(text, hidden)
