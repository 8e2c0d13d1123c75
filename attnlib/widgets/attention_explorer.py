"""AttentionExplorer: a sentence, d_k, a mask and a divisor; the attention weights they give."""

import math
import re
from html import escape

import numpy as np
import traitlets

from attnlib.attention import softmax
from attnlib.masks import causal_mask, padding_mask, window_mask
from attnlib.widgets.base import CourseWidget, esm
from attnlib.widgets.still import element, heatmap, options, weight_table

MAX_TOKENS = 64
MAX_D_K = 512
MASKS = {
    "none": "none",
    "causal": "causal",
    "padding": "padding",
    "both": "causal + padding",
    "window": "window",
}
DIVISORS = {"sqrt": "√d_k", "none": "1 (not scaled)", "d_k": "d_k"}

# Where the d_k slider stops: eight stops an octave, so that small sizes get as much room as large.
_STOPS = sorted({round(2 ** (eighth / 8)) for eighth in range(73)})


def word_vector(word, role, d):
    """`d` numbers for a word, mean 0 and variance 1, always the same for the same word and role.

    Made by the same integer arithmetic as in the browser, so the two agree to the last bit.
    """
    seed = 0x811C9DC5
    for unit in np.frombuffer(f"{role}:{word}".encode("utf-16-le", "surrogatepass"), "<u2"):
        seed = ((seed ^ int(unit)) * 0x01000193) % 2**32
    bits = np.arange(d, dtype=np.uint32) * np.uint32(0x9E3779B9) + np.uint32(seed)
    for shift, factor in ((16, 0x85EBCA6B), (13, 0xC2B2AE35)):
        bits = (bits ^ (bits >> np.uint32(shift))) * np.uint32(factor)
    bits ^= bits >> np.uint32(16)
    return math.sqrt(12) * ((bits + 0.5) / 2**32 - 0.5)


class AttentionExplorer(CourseWidget):
    """Attention weights of a sentence whose words have random queries and keys.

    Every word gets a query and a key of `d_k` independent numbers with mean 0 and variance 1,
    always the same ones. Their dot products are divided, masked, and turned into weights row by
    row: Eqs. (3) to (5) of chapter 2. The vectors are random, so the picture shows how attention
    works, not what the words mean.

    Parameters
    ----------
    sentence : str
        1 to 64 words, parted by spaces.
    d_k : int
        Size of a query and of a key, 1 to 512.
    mask : {"none", "causal", "padding", "both", "window"}
        Who may attend to whom.
    length : int
        How many tokens are real under a padding mask; the others are filler.
    width : int
        How far a token sees under a window mask.
    divisor : {"sqrt", "none", "d_k"}
        What the scores are divided by: the square root of d_k, nothing, or d_k.
    row : int
        The token whose row is looked at, from 0.

    Raises
    ------
    ValueError
        For a sentence of no words or more than 64, or a number outside its range.
    traitlets.TraitError
        For a value of the wrong type, or a mask or divisor that does not exist.
    """

    _esm = esm("attention_explorer")
    _name = "explorer"
    _label = "Attention explorer"
    _shown = ("sentence", "d_k", "mask", "length", "width", "divisor", "row")

    sentence = traitlets.Unicode("The cat sat on the mat").tag(sync=True)
    d_k = traitlets.Int(16).tag(sync=True)
    mask = traitlets.Enum(list(MASKS), "none").tag(sync=True)
    length = traitlets.Int(4).tag(sync=True)
    width = traitlets.Int(1).tag(sync=True)
    divisor = traitlets.Enum(list(DIVISORS), "sqrt").tag(sync=True)
    row = traitlets.Int(0).tag(sync=True)

    @traitlets.validate("sentence")
    def _check_sentence(self, proposal):
        n = len(_words(proposal["value"]))
        if not 1 <= n <= MAX_TOKENS:
            raise ValueError(f"sentence needs 1 to {MAX_TOKENS} words; got {n}")
        return proposal["value"]

    @traitlets.validate("d_k", "length", "width", "row")
    def _check_number(self, proposal):
        name, value = proposal["trait"].name, proposal["value"]
        low, high = {
            "d_k": (1, MAX_D_K),
            "length": (1, MAX_TOKENS),
            "width": (0, MAX_TOKENS - 1),
            "row": (0, MAX_TOKENS - 1),
        }[name]
        if not low <= value <= high:
            raise ValueError(f"{name} needs a whole number from {low} to {high}; got {value}")
        return value

    @property
    def tokens(self):
        """The words of the sentence."""
        return _words(self.sentence)

    @property
    def Q(self):  # noqa: N802
        """One query a word, (n, d_k)."""
        return np.stack([word_vector(word, "query", self.d_k) for word in self.tokens])

    @property
    def K(self):  # noqa: N802
        """One key a word, (n, d_k)."""
        return np.stack([word_vector(word, "key", self.d_k) for word in self.tokens])

    @property
    def scores(self):
        """Dot products of queries and keys, not yet divided, (n, n)."""
        return self.Q @ self.K.T

    @property
    def allowed(self):
        """True where a query may attend to a key, (n, n)."""
        n = len(self.tokens)
        real = padding_mask([min(self.length, n)], n)[0]
        return {
            "none": np.ones((n, n), bool),
            "causal": causal_mask(n),
            "padding": np.broadcast_to(real, (n, n)),
            "both": causal_mask(n) & real,
            "window": window_mask(n, self.width),
        }[self.mask]

    @property
    def weights(self):
        """The attention weights, (n, n): each row sums to 1."""
        divisor = {"sqrt": math.sqrt(self.d_k), "none": 1.0, "d_k": float(self.d_k)}[self.divisor]
        return softmax(np.where(self.allowed, self.scores / divisor, -np.inf))

    def _html(self):
        tokens, weights, allowed = self.tokens, self.weights, self.allowed
        row = min(self.row, len(tokens) - 1)
        top = int(weights[row].argmax())
        n_allowed = int(allowed[row].sum())
        spread = -sum(w * math.log(w) for w in weights[row] if w > 0)
        stop = min(range(len(_STOPS)), key=lambda i: abs(_STOPS[i] - self.d_k))
        stops = {"max": len(_STOPS) - 1, "value": stop, "data_stops": " ".join(map(str, _STOPS))}
        rows = [(i, f"{i + 1}: {token}") for i, token in enumerate(tokens)]
        extent_label, extent = self._extent(len(tokens))
        text = {"value": self.sentence, "spellcheck": "false", "autocomplete": "off"}
        return f"""
<div class="controls">
<label class="main"><span>Size of queries and keys, <i>d<sub>k</sub></i>
<b class="number" data-part="d_k_value">{self.d_k}</b></span>
{element("input", type="range", name="d_k", min=0, **stops)}</label>
<label class="wide"><span>Sentence</span>
{element("input", type="text", name="sentence", **text)}</label>
<label><span>Divide scores by</span>
{element("select", options(DIVISORS.items(), self.divisor), name="divisor")}</label>
<label><span>Mask</span>
{element("select", options(MASKS.items(), self.mask), name="mask")}</label>
<label><span data-part="extent_label">{extent_label}</span>
<span class="with-value">{element("input", type="range", name="extent", **extent)}
<b class="number" data-part="extent_value">{extent["value"]}</b></span></label>
<label><span>Query row</span>
{element("select", options(rows, row), name="row")}</label>
</div>
<div class="readout">
<p><span class="big" data-part="largest">{weights[row, top]:.2f}</span>
<span>largest weight of <b class="query" data-part="row_word">{escape(tokens[row])}</b>,
on <b class="key" data-part="top_word">{escape(tokens[top])}</b></span></p>
<p><span class="big" data-part="entropy">{spread:.2f}</span>
<span>entropy in nats, of at most ln <span data-part="n">{n_allowed}</span> =
<span data-part="most">{math.log(n_allowed):.2f}</span></span></p>
<p class="buttons"><button type="button" name="copy">Copy as NumPy</button>
<button type="button" name="reset">Reset</button></p>
</div>
<div class="picture" data-part="picture">{heatmap(tokens, weights, allowed, row)}</div>
<p class="cell" data-part="cell">Tap a row to look at it. Hatched cells are forbidden by the mask.
</p>
<div class="visually-hidden">
{element("table", weight_table(tokens, weights, allowed), data_part="table")}</div>
"""

    def _extent(self, n):
        """The slider that sets how much a mask covers: its label and its attributes."""
        if self.mask == "window":
            return "Window width", {"min": 0, "max": n - 1, "value": self.width}
        unused = self.mask not in ("padding", "both")
        range_ = {"min": 1, "max": n, "value": min(self.length, n)}
        return "Real tokens", {**range_, "disabled": unused}


def _words(sentence):
    return [word for word in re.split(r"[ \t\r\n]+", sentence) if word]
