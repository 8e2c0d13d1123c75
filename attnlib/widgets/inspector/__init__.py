"""Inspector: what each part of the model that writes adds to a word, and what it is needed for."""

import functools
import json
import random
from pathlib import Path

import numpy as np
import traitlets

from attnlib import inspection, models, world
from attnlib.attention import softmax
from attnlib.multihead import split_heads
from attnlib.widgets.kit.base import CourseWidget, Whole
from attnlib.widgets.writer import LoadsModel

RECORDED = Path(__file__).parents[2] / "data" / "inspector.json"
MAX_LETTERS, MAX_TOKENS = 400, 80
N_LAYERS, N_HEADS = 3, 4  # of the model that writes
N_TEXTS, FIRST_SEED = 20, 2_000_000  # the stories over which a head's outputs are averaged
N_WORDS = 6  # of those that are most probable
BANK = "Rosa was a brave sailor. Rosa had to bring the {0} to the bank. After an hour the"
STATE = BANK + " {0} reached the bank. The bank was"
WHO = (
    "{0} was a kind doctor. {0} had to bring the boat to the bank. After an hour the boat "
    "reached the bank. There"
)
# What is recorded: a name, a text, another one to swap from, a word whose logit is taken apart, and
# one with which it is compared; and the layer whose heads can be taken away in all combinations.
EXAMPLES = [
    ("boat", BANK.format("boat"), BANK.format("gold"), "boat", "gold", 2),
    ("muddy", STATE.format("boat"), STATE.format("gold"), "muddy", "busy", 2),
    ("she", WHO.format("Ada"), WHO.format("Ben"), "she", "he", 3),
]
HOWS, WHERES = ["zero", "mean", "swap"], ["all", "last"]


class Inspector(LoadsModel, CourseWidget):
    """What the parts of the model that writes do for the next word of a text.

    The page shows what was recorded of three texts. When a reader asks for more, the page loads
    the model of `attnlib.models.writer`, which reads the reader's text there; in a notebook the
    kernel sends it.

    Parameters
    ----------
    scene : {"heads", "ledger", "lens"}
        The heads and what happens without them; what each part adds to a logit; or the
        probabilities after each layer.
    text : str
        What the model reads, up to 400 letters.
    word : str
        The next word whose logit or probability is shown; "" for the most probable one.
    against : str
        The word whose logit is subtracted in the ledger; "" for none.
    other : str
        The text from which outputs are taken in a swap. It needs as many tokens as `text`.
    how : {"zero", "mean", "swap"}
        What the chosen heads pass on instead of their own outputs.
    where : {"all", "last"}
        At which tokens they do so: at all, or at the last one only.
    away : int
        The chosen heads, as a sum of powers of 2: head h of layer l is 2 ** (4 * l + h), both
        counted from 0.
    head : int
        Whose attention is marked, counted from 1 layer by layer; 0 for none.
    layer : int
        Whose heads are listed, 1 to 3.

    Raises
    ------
    ValueError
        If a text is too long, or a number is out of its bounds.
    traitlets.TraitError
        For a value of the wrong type.
    """

    scene = traitlets.Enum(["heads", "ledger", "lens"], "heads").tag(sync=True)
    text = traitlets.Unicode(EXAMPLES[0][1]).tag(sync=True)
    word = traitlets.Unicode("").tag(sync=True)
    against = traitlets.Unicode("").tag(sync=True)
    other = traitlets.Unicode(EXAMPLES[0][2]).tag(sync=True)
    how = traitlets.Enum(HOWS, "zero").tag(sync=True)
    where = traitlets.Enum(WHERES, "all").tag(sync=True)
    away = Whole(0, 2 ** (N_LAYERS * N_HEADS) - 1, 0).tag(sync=True)
    head = Whole(0, N_LAYERS * N_HEADS, 0).tag(sync=True)
    layer = Whole(1, N_LAYERS, 2).tag(sync=True)
    recorded = traitlets.List(read_only=True).tag(sync=True, constant=True)
    means = traitlets.List(read_only=True).tag(sync=True, constant=True)

    @traitlets.validate("text", "other", "word", "against")
    def _check_text(self, proposal):
        name, value = proposal["trait"].name, proposal["value"]
        if len(value) > MAX_LETTERS:
            raise ValueError(
                f"{name} needs at most {MAX_LETTERS} letters; got {len(value)} of them"
            )
        return value

    @traitlets.default("recorded")
    def _record(self):
        """What a page shows before it has the model."""
        return recording()["texts"]

    @traitlets.default("means")
    def _mean(self):
        """The mean outputs of all heads, [head][d_v]."""
        return recording()["means"]

    @property
    def tokens(self):
        """The tokens of the text, (n,), the one before its first word among them."""
        return tokens_of(self.text)

    @property
    def weights(self):
        """What the last token attends to, (n_layers, n_heads, n)."""
        return np.stack(_model().read(self.tokens).weights)[:, :, -1]

    @property
    def lens(self):
        """The probabilities of the next word after each layer, (n_layers + 1, n_tokens)."""
        return inspection.lens(_model(), self.tokens)[:, -1]

    @property
    def contributions(self):
        """What each part adds to the logit of `word`, less what it adds to that of `against`."""
        return contributions(self.tokens, self._word, self.against)

    @property
    def probabilities(self):
        """The probabilities of the next word, (n_tokens,), with the heads `away` changed."""
        heads = [head for head in range(N_LAYERS * N_HEADS) if self.away >> head & 1]
        other = tokens_of(self.other)
        return intervened(self.tokens, other, heads, self.how, self.where)

    @property
    def _word(self):
        vocabulary = _model().vocabulary
        if self.word in vocabulary:
            return self.word
        return vocabulary[_model()(self.tokens)[-1].argmax()]


_model = functools.cache(models.writer)


@functools.cache
def recording():
    """Return what tools/record_inspector.py has written: the means, and what is recorded."""
    return json.loads(RECORDED.read_text(encoding="utf-8"))


def mean_outputs():
    """Return the mean of what each head passes on in 20 stories, (n_layers * n_heads, d_v)."""
    telling, model = world.World(), _model()
    token_of = {word: token for token, word in enumerate(model.vocabulary)}
    stories = [telling.tell(random.Random(FIRST_SEED + i))[0] for i in range(N_TEXTS)]
    texts = [[0, *(token_of[word] for word in story)] for story in stories]
    return np.concatenate(inspection.mean_outputs(model, texts)).astype(np.float64).round(4)


def tokens_of(text):
    """Return the first tokens of a text; words that the model does not know are left out."""
    vocabulary = _model().vocabulary
    known = {word: token for token, word in enumerate(vocabulary)}
    words = world.split(text, vocabulary)
    return np.array([0, *(known[word] for word in words if word in known)][:MAX_TOKENS])


def contributions(tokens, word, against=""):
    """Return what each part adds to a logit, or to the difference of two, (1 + 3 * 5,)."""
    model = _model()
    found = inspection.ledger(model, tokens, -1, model.vocabulary.index(word))[1]
    if against in model.vocabulary:
        found = found - inspection.ledger(model, tokens, -1, model.vocabulary.index(against))[1]
    return found


def by_token(tokens, word, against=""):
    """Return how much of what each head adds came from each token, (n_layers * n_heads, n)."""
    model = _model()
    trace = model.read(tokens)
    column = model.unembedding[:, model.vocabulary.index(word)]
    if against in model.vocabulary:
        column = column - model.unembedding[:, model.vocabulary.index(against)]
    last = trace.states[-1, -1].astype(np.float64)
    column = column * model.norm.gamma / np.sqrt((last**2).mean() + model.norm.eps)
    found = []
    for layer, x, weights in zip(model.layers, trace.states, trace.weights, strict=False):
        attention = layer.attention
        values = split_heads(layer.norm_1(x) @ attention.w_v, attention.n_kv_heads)
        values = values.repeat(N_HEADS // attention.n_kv_heads, axis=0)  # (n_heads, n, d_v)
        strips = attention.w_o.reshape(N_HEADS, -1, len(column))
        found.append(weights[:, -1] * (values @ (strips @ column)[..., None])[..., 0])
    return np.concatenate(found)


def intervened(tokens, other, heads, how, where):
    """Return the probabilities of the next word when some heads pass on something else.

    Without heads, or if a swap is asked for from a text of another length, nothing is changed.
    """
    model = _model()
    if not heads or (how == "swap" and len(other) != len(tokens)):
        return softmax(model(tokens)[-1])
    own = _outputs(tuple(tokens))
    given = np.zeros_like(own)
    if how == "mean":
        given = given + np.array(recording()["means"], own.dtype)[:, None]
    if how == "swap":
        given = _outputs(tuple(other))
    if where == "last":
        given = np.concatenate([own[:, :-1], given[:, -1:]], axis=1)
    outputs = {divmod(head, N_HEADS): given[head] for head in heads}
    return softmax(inspection.replace_heads(model, outputs)(tokens)[-1])


@functools.lru_cache(maxsize=8)
def _outputs(tokens):
    """Return what the heads pass on, (n_layers * n_heads, n, d_v)."""
    return np.concatenate(inspection.head_outputs(_model(), np.array(tokens)))


# What is recorded


def record(name, text, other, word, against, layer):
    """Return what a page shows of a text before it has the model: as plain values.

    `rows` holds, for each set of heads and each intervention, the most probable words with their
    probabilities after it and before it.
    """
    model, tokens, swapped = _model(), tokens_of(text), tokens_of(other)
    trace = model.read(tokens)
    before = softmax(trace.logits[-1])
    weights = np.concatenate([layer[:, -1] for layer in trace.weights])
    rows = {}
    for heads, how, where in _interventions(layer):
        after = intervened(tokens, swapped, heads, how, where)
        key = f"{sum(1 << head for head in heads)} {how} {where}"
        rows[key] = _rows(after, before, model.vocabulary, word)
    return {
        "name": name,
        "text": text,
        "other": other,
        "word": word,
        "against": against,
        "words": [model.vocabulary[token] for token in tokens[1:]],
        "layer": layer,
        "weights": weights.astype(float).round(3).tolist(),
        "lens": [_top(p, model.vocabulary) for p in inspection.lens(model, tokens)[:, -1]],
        "ledgers": {
            f"{word} {minus}".strip(): {
                "parts": contributions(tokens, word, minus).round(3).tolist(),
                "byToken": by_token(tokens, word, minus).astype(float).round(3).tolist(),
            }
            for minus in ("", against)
        },
        "rows": rows,
    }


def _interventions(layer):
    """Yield the heads, the kinds and the places of the interventions that are recorded."""
    of_layer = range(N_HEADS * (layer - 1), N_HEADS * layer)
    subsets = [[h for h in of_layer if mask >> h % N_HEADS & 1] for mask in range(2**N_HEADS)]
    sets = subsets + [[h] for h in range(N_LAYERS * N_HEADS) if h not in of_layer]
    for how in HOWS:
        yield from ((heads, how, "all") for heads in sets)
    yield from ((heads, "swap", "last") for heads in sets if len(heads) in (0, 1, N_HEADS))


def _rows(after, before, vocabulary, word):
    """Return the words that are most probable before or after, [word, after, before]."""
    height = np.maximum(after, before)
    most = [int(token) for token in np.argsort(-height, kind="stable")[:N_WORDS]]
    if vocabulary.index(word) not in most:
        most[-1] = vocabulary.index(word)
    most = [token for token in most if height[token] >= 0.0005 or vocabulary[token] == word]
    most.sort(key=lambda token: -before[token])
    return [[vocabulary[t], round(float(after[t]), 3), round(float(before[t]), 3)] for t in most]


def _top(probabilities, vocabulary):
    """Return the most probable words, [word, probability]."""
    most = np.argsort(-probabilities, kind="stable")[:N_WORDS]
    return [[vocabulary[token], round(float(probabilities[token]), 3)] for token in most]
