"""AttentionExplorer: a sentence, d_k, a mask and a divisor; the attention weights they give."""

import math
import re
from html import escape

import numpy as np
import traitlets

from attnlib import palette
from attnlib.attention import softmax
from attnlib.masks import causal_mask, padding_mask, window_mask
from attnlib.widgets.base import CourseWidget, esm, options

MAX_TOKENS = 64
MAX_D_K = 512
MASKS = {
    "none": "none",
    "causal": "causal: no looking ahead",
    "padding": "padding: the end is filler",
    "both": "causal and padding",
    "window": "window: near tokens only",
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
        stop = min(range(len(_STOPS)), key=lambda i: abs(_STOPS[i] - self.d_k))
        n = len(self.tokens)
        row = min(self.row, n - 1)
        weights = self.weights
        top = int(weights[row].argmax())
        spread = -sum(w * math.log(w) for w in weights[row] if w > 0)
        return f"""
<div class="controls">
<label class="main"><span>Size of queries and keys, <i>d<sub>k</sub></i>
<b class="number" data-part="d_k_value">{self.d_k}</b></span>
<input type="range" name="d_k" min="0" max="{len(_STOPS) - 1}" value="{stop}"
 data-stops="{" ".join(map(str, _STOPS))}"></label>
<label class="wide"><span>Sentence</span>
<input type="text" name="sentence" value="{escape(self.sentence)}" spellcheck="false" autocomplete="off"></label>
<label><span>Divide scores by</span><select name="divisor">{options(DIVISORS, self.divisor)}</select></label>
<label><span>Mask</span><select name="mask">{options(MASKS, self.mask)}</select></label>
<label><span data-part="extent_label">{"Window width" if self.mask == "window" else "Real tokens"}</span>
<span class="with-value"><input type="range" name="extent" {_extent(self, n)}>
<b class="number" data-part="extent_value">{_extent_value(self, n)}</b></span></label>
<label><span>Query row</span><select name="row">{_row_options(self.tokens, row)}</select></label>
</div>
<div class="readout">
<p><span class="big" data-part="largest">{weights[row, top]:.2f}</span>
<span>largest weight of <b class="query" data-part="row_word">{escape(self.tokens[row])}</b>,
on <b class="key" data-part="top_word">{escape(self.tokens[top])}</b></span></p>
<p><span class="big" data-part="entropy">{spread:.2f}</span>
<span>entropy in nats, of at most ln {n} = <span data-part="most">{math.log(n):.2f}</span></span></p>
<p class="buttons"><button type="button" name="copy">Copy as NumPy</button>
<button type="button" name="reset">Reset</button></p>
</div>
<div class="picture" data-part="picture">{_picture(self.tokens, weights, self.allowed, row)}</div>
<p class="cell" data-part="cell">Tap a row to look at it. Hatched cells are forbidden by the mask.</p>
<div class="visually-hidden"><table data-part="table">{_table(self.tokens, weights, self.allowed)}</table></div>
"""


def _words(sentence):
    return [word for word in re.split(r"[ \t\r\n]+", sentence) if word]


def _extent(widget, n):
    """The attributes of the slider that sets the length of the padding or the window's width."""
    window = widget.mask == "window"
    off = "" if window or widget.mask in ("padding", "both") else " disabled"
    return f'min="{0 if window else 1}" max="{max(n - 1, 0) if window else n}" value="{_extent_value(widget, n)}"{off}'


def _extent_value(widget, n):
    return widget.width if widget.mask == "window" else min(widget.length, n)


def _row_options(tokens, row):
    return "".join(
        f'<option value="{i}"{" selected" * (i == row)}>{i + 1}: {escape(word)}</option>'
        for i, word in enumerate(tokens)
    )


def _table(tokens, weights, allowed):
    """The weights in words, for those who do not see the picture."""
    head = "".join(f'<th scope="col">{escape(word)}</th>' for word in tokens)
    rows = "".join(
        f'<tr><th scope="row">{escape(word)}</th>'
        + "".join(f"<td>{w:.2f}</td>" if may else "<td>masked</td>" for w, may in zip(ws, mays, strict=True))
        + "</tr>"
        for word, ws, mays in zip(tokens, weights, allowed, strict=True)
    )
    return f"<caption>Attention weights: queries in rows, keys in columns</caption><tr><td></td>{head}</tr>{rows}"


def _short(word):
    return escape(word if len(word) < 10 else word[:8] + "…")


def _hatch(x, y, side):
    """Five diagonals across a cell."""
    steps = [side * part for part in (1 / 3, 2 / 3, 1)]
    upper = [f"M{x:.2f} {y + t:.2f}L{x + t:.2f} {y:.2f}" for t in steps]
    lower = [f"M{x + t:.2f} {y + side:.2f}L{x + side:.2f} {y + t:.2f}" for t in steps[:2]]
    return "".join(upper + lower)


def _picture(tokens, weights, allowed, row):
    """The drawing of the starting state; the front end draws the same on a canvas (`layout`)."""
    n = len(tokens)
    side = 280 / n
    left, top, bars = 74, 64, 442
    marks = []
    for i in range(n):
        for j in range(n):
            x, y = left + j * side, top + i * side
            box = f'x="{x:.2f}" y="{y:.2f}" width="{side:.2f}" height="{side:.2f}"'
            if not allowed[i, j]:
                marks.append(f'<path d="{_hatch(x, y, side)}" stroke="var(--line)" stroke-width="0.7"/>')
                continue
            marks.append(f'<rect {box} fill="var(--weight)" fill-opacity="{weights[i, j]:.4f}"/>')
            if side >= 27:
                ink = palette.cell_ink(weights[i, j]).replace("_", "-")
                marks.append(
                    f'<text x="{x + side / 2:.2f}" y="{y + side / 2 + 4:.2f}" text-anchor="middle"'
                    f' fill="var(--{ink})">{weights[i, j]:.2f}</text>'
                )
    for j in range(n):
        height = 70 * weights[row, j]
        marks.append(
            f'<rect x="{left + j * side + side * 0.15:.2f}" y="{bars - height:.2f}"'
            f' width="{side * 0.7:.2f}" height="{height:.2f}" fill="var(--weight)"/>'
        )
        if side >= 27:
            marks.append(
                f'<text x="{left + (j + 0.5) * side:.2f}" y="{bars - height - 5:.2f}" text-anchor="middle"'
                f' fill="var(--weight)">{weights[row, j]:.2f}</text>'
            )
    marks.append(
        f'<text x="{left - 8}" y="{bars}" text-anchor="end" fill="var(--query)" font-weight="bold">{_short(tokens[row])}</text>'
    )
    if side >= 10:
        for i, word in enumerate(tokens):
            short = _short(word)
            middle = i * side + side / 2
            bold = ' font-weight="bold"' if i == row else ""
            marks.append(
                f'<text x="{left - 8}" y="{top + middle + 4:.2f}" text-anchor="end" fill="var(--query)"{bold}>{short}</text>'
                f'<text transform="translate({left + middle + 3:.2f} {top - 7}) rotate(-50)" fill="var(--key)">{short}</text>'
            )
    return (
        '<svg viewBox="0 0 360 470" role="img" aria-label="Heatmap of the attention weights; the table below holds the numbers">'
        f"{''.join(marks)}"
        f'<rect x="{left}" y="{top + row * side:.2f}" width="280" height="{side:.2f}" fill="none" stroke="var(--query)" stroke-width="2"/>'
        f'<path d="M{left} {bars}H354" stroke="var(--line)"/></svg>'
    )
