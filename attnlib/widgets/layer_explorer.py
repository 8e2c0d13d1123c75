"""LayerExplorer: residual, norm, feed-forward, depth; what becomes of the token vectors."""

import functools
import math

import numpy as np
import traitlets

from attnlib.layers import feed_forward, layer_norm
from attnlib.multihead import MultiHeadAttention
from attnlib.widgets.attention_explorer import word_vector
from attnlib.widgets.base import CourseWidget, esm
from attnlib.widgets.still import element, line, moving, options, sheet, text

TOKENS = ("A", "cat", "sat", "on", "the", "warm", "mat")
N, D_MODEL, N_HEADS, D_FF = len(TOKENS), 16, 4, 64
MAX_DEPTH = 24
SEEDS = 1000
NORMS = {"post": "post", "pre": "pre", "none": "none"}
FULL = (True, "post", True)  # the block that the others are compared with
SAME = 1e-3  # below this distance the tokens count as one vector
NOISE = 1e-12  # what is left below this distance is rounding

# The sheet that everything is drawn on; layer_explorer.js draws on the same one.
WIDTH, HEIGHT = 360, 512
LEFT, WIDE = 52, 296
CELL, PITCH, ROWS = 18.5, 18, 24  # the vectors: 7 rows of 16 squares
SMALL, COSINES = 15, 208  # the cosines: 7 rows of 7 squares
_PLOTS = {
    # left, width, floor, height, and the powers of ten at the floor and at the top
    "distance": (LEFT, WIDE, 464, 92, -8, 0),
    "norm": (218, 132, 313, 105, -1, 2),
}


def relative_distance(x):
    r"""How far the rows of x are from being one and the same vector, between 0 and 1.

    .. math:: \frac{\lVert X - \mathbf{1}\bar{x}^\top \rVert}{\lVert X \rVert}

    with the mean row and Frobenius norms. 0 means that all rows are equal, so that x has rank 1;
    independent random rows give about sqrt(1 - 1/n).

    Parameters
    ----------
    x : array, shape (..., n, d_model)

    Returns
    -------
    array, shape (...)

    Source
    ------
    Dong, Cordonnier and Loukas 2021, *Attention is not all you need: pure attention loses rank
    doubly exponentially with depth*. They take the 1-norm and the infinity norm together.
    """
    rest = x - x.mean(axis=-2, keepdims=True)
    return np.linalg.norm(rest, axis=(-2, -1)) / np.linalg.norm(x, axis=(-2, -1))


class LayerExplorer(CourseWidget):
    """Seven tokens through a stack of encoder layers, with parts of the layer switched off.

    Each of the layers has weights of its own: 4 heads, d_model = 16, d_ff = 64, ReLU. They are
    uniform random numbers as wide as those that torch.nn.TransformerEncoderLayer starts with;
    the biases are 0, and there is no norm after the last layer. Without a residual a sublayer
    hands on its output alone. The widget shows the vectors after `depth` layers, the cosines
    between them, and how far they are apart and how long they are at every depth up to 24,
    beside the full block of the paper (residual, post-norm, feed-forward) with the same weights.

    Without a residual the tokens are one vector after two to four layers, whatever the rest. A
    feed-forward network with such weights does not stop that, and slows it for some seeds only.

    Parameters
    ----------
    residual : bool
        Whether each sublayer adds to what came in.
    norm : {"post", "pre", "none"}
        Layer norm after each sublayer and its residual, before each sublayer, or nowhere.
    feed_forward : bool
        Whether attention is followed by a feed-forward network.
    depth : int
        Number of layers, 1 to 24.
    seed : int
        Which random weights, 0 to 999.

    Raises
    ------
    ValueError
        For a depth or a seed outside its range.
    traitlets.TraitError
        For a value of the wrong type, or a norm that does not exist.
    """

    _esm = esm("layer_explorer")
    _name = "layer"
    _label = "Layer explorer"
    _shown = ("residual", "norm", "feed_forward", "depth", "seed")

    residual = traitlets.Bool(True).tag(sync=True)
    norm = traitlets.Enum(list(NORMS), "post").tag(sync=True)
    feed_forward = traitlets.Bool(True).tag(sync=True)
    depth = traitlets.Int(6).tag(sync=True)
    seed = traitlets.Int(0).tag(sync=True)

    @traitlets.validate("depth", "seed")
    def _check_number(self, proposal):
        name, value = proposal["trait"].name, proposal["value"]
        low, high = {"depth": (1, MAX_DEPTH), "seed": (0, SEEDS - 1)}[name]
        if isinstance(value, bool) or not low <= value <= high:
            raise ValueError(f"{name} needs a whole number from {low} to {high}; got {value}")
        return value

    @property
    def tokens(self):
        """The seven words."""
        return list(TOKENS)

    @property
    def states(self):
        """The token vectors before the first layer and after each one, (depth + 1, 7, 16)."""
        return self._all_states[: self.depth + 1]

    @property
    def distance(self):
        """Relative distance of the tokens from their mean, (depth + 1,): see `relative_distance`.

        What is below about 1e-15 is rounding.
        """
        return relative_distance(self.states)

    @property
    def norms(self):
        """Mean length of a token vector, (depth + 1,)."""
        return _mean_length(self.states)

    @property
    def cosines(self):
        """Cosine between any two of the last token vectors, (7, 7)."""
        last = self.states[-1]
        unit = last / np.linalg.norm(last, axis=-1, keepdims=True)
        return unit @ unit.T

    @property
    def curves(self):
        """Everything against depth, 0 to 24, as a dict of arrays (25,).

        "distance" and "norm" are those of this stack, "distance_full" and "norm_full" those of
        the full block with the same weights.
        """
        full = _states(*FULL, self.seed)
        return {
            "distance": relative_distance(self._all_states),
            "norm": _mean_length(self._all_states),
            "distance_full": relative_distance(full),
            "norm_full": _mean_length(full),
        }

    @property
    def _all_states(self):
        return _states(self.residual, self.norm, self.feed_forward, self.seed)

    def _html(self):
        count = {"min": 1, "max": MAX_DEPTH, "value": self.depth}
        tables = "".join(
            element("table", _table(caption, head, names, cells), data_part=f"{part}_table")
            for part, (caption, head, names, cells) in self._tables().items()
        )
        said = self._said()
        return f"""
<div class="controls">
<label class="main switch">
{element("input", type="checkbox", name="residual", checked=self.residual)}
<span>Residual: each sublayer adds to what came in</span></label>
<label class="wide"><span>Layers <b class="number" data-part="depth_value">{self.depth}</b></span>
{element("input", type="range", name="depth", **count)}</label>
<label><span>Layer norm</span>
{element("select", options(NORMS.items(), self.norm), name="norm")}</label>
<label class="switch">
{element("input", type="checkbox", name="feed_forward", checked=self.feed_forward)}
<span>Feed-forward</span></label>
</div>
<div class="readout">
<p><span class="big" data-part="distance">{said["distance"]}</span>
<span>distance of the tokens from their mean, ‖X − mean‖ / ‖X‖; 0: all one vector</span></p>
<p><span class="big" data-part="norm_value">{said["norm_value"]}</span>
<span>mean length of a token vector</span></p>
<p class="verdict" data-part="verdict">{said["verdict"]}</p>
<p class="buttons"><button type="button" name="renew">New weights</button>
<button type="button" name="copy">Copy as NumPy</button>
<button type="button" name="reset">Reset</button></p>
</div>
<div class="picture">{self._drawing()}</div>
<p class="cell">Random weights, number <span data-part="seed">{self.seed}</span>, as small as those
PyTorch starts with. {N_HEADS} heads, d<sub>model</sub> = {D_MODEL}, d<sub>ff</sub> = {D_FF}.</p>
<div class="visually-hidden">{tables}</div>
"""

    def _said(self):
        """The numbers of the readout, and whether the tokens ever become one vector."""
        distances = self.curves["distance"]
        low = np.flatnonzero(distances < SAME)
        return {
            "distance": _brief(self.distance[-1]),
            "norm_value": _size(self.norms[-1]),
            "verdict": (
                f"Distance below 0.001 at layer {low[0]}: one vector for all."
                if low.size
                else f"Distance above 0.001 in all {MAX_DEPTH} layers: the tokens differ."
            ),
        }

    def _drawing(self):
        """The sheet: what never changes, and the marks that follow the traits."""
        marks = self._marks()
        texts = {name: marks[name].pop("text") for name in ("title", "scale")}
        parts = [
            text(texts["title"], 2, 14, "ink", data_part="title"),
            text(texts["scale"], LEFT, 167, data_part="scale"),
            text("Cosine between tokens", 2, 194, "ink"),
            text("filled: 1, hollow: −1", LEFT, 329),
        ]
        for i, token in enumerate(TOKENS):
            parts.append(text(token, LEFT - 7, ROWS + (i + 0.5) * PITCH + 4, anchor="end"))
            parts.append(text(token, LEFT - 7, COSINES + (i + 0.5) * SMALL + 4, anchor="end"))
        for part in ("vectors", "cosines"):
            parts.append(moving("path", f"{part}_above", marks, fill="var(--ink)"))
            style = {"fill": "none", "stroke": "var(--ink)"}
            parts.append(moving("path", f"{part}_below", marks, **style))
        for name, title, x, y, ticks, depths in (
            ("norm", "Mean length", 186, 194, ("≤0.1", "1", "10", "100"), (0, 12, 24)),
            (
                "distance",
                "Distance from their mean, layer by layer",
                2,
                358,
                ("≤10⁻⁸", "10⁻⁶", "10⁻⁴", "10⁻²", "1"),
                (0, 6, 12, 18, 24),
            ),
        ):
            left, wide, floor, height, _, _ = _PLOTS[name]
            parts.append(text(title, x, y, "ink"))
            parts.append(line(f"M{left} {floor - height}V{floor}h{wide}"))
            for i, tick in enumerate(ticks):
                level = floor - height * i / (len(ticks) - 1)
                parts.append(text(tick, left - 5, level + 4, anchor="end"))
            for depth in depths:
                at = left + wide * depth / MAX_DEPTH
                parts.append(text(depth, at, floor + 16, anchor="middle"))
        dashes = {"fill": "none", "stroke": "var(--muted)", "stroke_dasharray": "5 3"}
        bold = {"fill": "none", "stroke": "var(--weight)", "stroke_width": 2.5}
        for name in _PLOTS:
            parts.append(moving("path", f"{name}_full", marks, **dashes, stroke_width=1.5))
            parts.append(moving("path", f"{name}_line", marks, **bold))
        parts.append(moving("path", "here", marks, stroke="var(--ink)", stroke_width=1))
        for name in _PLOTS:
            parts.append(moving("circle", f"{name}_dot", marks, r=4, fill="var(--weight)"))
        parts += [
            element("path", d="M0 499h22", **bold),
            text("as set", 28, 503, "ink"),
            element("path", d="M84 499h22", **dashes, stroke_width=1.5),
            text("residual, post-norm, feed-forward", 112, 503, "ink"),
        ]
        return sheet(
            parts,
            WIDTH,
            HEIGHT,
            "Token vectors, the cosines between them, and two curves against depth: "
            "mean length and distance from the mean; the tables below hold the numbers",
        )

    def _marks(self):
        """What follows the traits: the attributes of each moving part, as `marks` in the page."""
        last, curves = self.states[-1], self.curves
        largest = float(np.abs(last).max())
        layers = f"{self.depth} layer" + "s" * (self.depth > 1)
        found = {
            "title": {"text": f"Token vectors after {layers}: {N} tokens × {D_MODEL} numbers"},
            "scale": {"text": f"filled: above 0, hollow: below; largest {_size(largest)}"},
            **_squares("vectors", last / largest, ROWS, CELL, PITCH),
            **_squares("cosines", self.cosines, COSINES, SMALL, SMALL),
        }
        here = ""
        for name, (left, wide, floor, height, *_) in _PLOTS.items():
            x = left + wide * self.depth / MAX_DEPTH
            here += f"M{x:.1f} {floor - height}V{floor}"
            found[f"{name}_line"] = {"d": _polyline(name, curves[name])}
            found[f"{name}_full"] = {"d": _polyline(name, curves[f"{name}_full"])}
            dot = _level(name, curves[name][self.depth])
            found[f"{name}_dot"] = {"cx": f"{x:.1f}", "cy": f"{dot:.1f}"}
        found["here"] = {"d": here}
        return found

    def _tables(self):
        """The picture in words: for each part its caption, heads of columns and rows, cells."""
        curves = self.curves
        series = ("distance", "norm", "distance_full", "norm_full")
        return {
            "vectors": (
                "Token vectors after the last layer",
                [f"number {i + 1}" for i in range(D_MODEL)],
                TOKENS,
                [[_size(x) for x in row] for row in self.states[-1]],
            ),
            "cosines": (
                "Cosine between tokens after the last layer",
                TOKENS,
                TOKENS,
                [[_fixed(x) for x in row] for row in self.cosines],
            ),
            "curves": (
                "Layer by layer",
                ["distance", "mean length", "distance, full block", "mean length, full block"],
                [f"after layer {i}" if i else "at the start" for i in range(MAX_DEPTH + 1)],
                [
                    [(_size if "norm" in name else _brief)(curves[name][i]) for name in series]
                    for i in range(MAX_DEPTH + 1)
                ],
            ),
        }


def _weight(seed, layer, name, d_in, d_out, variance):
    """A weight (d_in, d_out) of independent uniform numbers with mean 0."""
    numbers = word_vector(f"{seed} {layer}", name, d_in * d_out)
    return math.sqrt(variance) * numbers.reshape(d_in, d_out)


@functools.lru_cache(maxsize=8)
def _layers(seed):
    """The attention, w_1 and w_2 of each of the 24 layers.

    The variances are those of torch.nn.TransformerEncoderLayer: Xavier over the three input
    projections together, 1 / (3 d_in) for the output and for the feed-forward network.
    """
    return [
        (
            MultiHeadAttention(
                *(
                    _weight(seed, i, name, D_MODEL, D_MODEL, 1 / (2 * D_MODEL))
                    for name in ("w_q", "w_k", "w_v")
                ),
                _weight(seed, i, "w_o", D_MODEL, D_MODEL, 1 / (3 * D_MODEL)),
                N_HEADS,
            ),
            _weight(seed, i, "w_1", D_MODEL, D_FF, 1 / (3 * D_MODEL)),
            _weight(seed, i, "w_2", D_FF, D_MODEL, 1 / (3 * D_FF)),
        )
        for i in range(1, MAX_DEPTH + 1)
    ]


@functools.lru_cache(maxsize=64)
def _states(residual, norm, with_feed_forward, seed):
    """The token vectors before and after each of 24 layers, (25, 7, 16)."""

    def before(x):
        return layer_norm(x) if norm == "pre" else x

    def joined(x, output):
        y = x + output if residual else output
        return layer_norm(y) if norm == "post" else y

    x = np.stack([word_vector(token, "token", D_MODEL) for token in TOKENS])
    states = [x]
    for attention, w_1, w_2 in _layers(seed):
        x = joined(x, attention(before(x))[0])
        if with_feed_forward:
            x = joined(x, feed_forward(before(x), w_1, None, w_2, None))
        states.append(x)
    states = np.stack(states)
    states.flags.writeable = False  # shared by all widgets
    return states


def _mean_length(x):
    return np.linalg.norm(x, axis=-1).mean(axis=-1)


def _squares(part, matrix, top, width, height):
    """A matrix as squares whose area is the size of each entry: filled above 0, hollow below."""
    drawn = {f"{part}_above": "", f"{part}_below": ""}
    most = 0.9 * min(width, height)
    for i, row in enumerate(matrix):
        for j, x in enumerate(row):
            side = most * math.sqrt(abs(x)) - (x < 0)  # the outline adds to a hollow one
            if side > 0:
                left = LEFT + (j + 0.5) * width - side / 2
                upper = top + (i + 0.5) * height - side / 2
                square = f"M{left:.1f} {upper:.1f}h{side:.1f}v{side:.1f}h-{side:.1f}Z"
                drawn[f"{part}_{'below' if x < 0 else 'above'}"] += square
    return {name: {"d": d} for name, d in drawn.items()}


def _level(name, value):
    """The height of a value in its plot, on a logarithmic scale that stops at floor and top."""
    _, _, floor, height, low, high = _PLOTS[name]
    power = min(max(math.log10(value), low), high)
    return floor - height * (power - low) / (high - low)


def _polyline(name, values):
    left, wide, *_ = _PLOTS[name]
    points = (
        f"{left + wide * i / MAX_DEPTH:.1f} {_level(name, value):.1f}"
        for i, value in enumerate(values)
    )
    return "M" + "L".join(points)


def _fixed(x):
    """Two decimals, and never a negative zero."""
    return f"{x:.2f}".replace("-0.00", "0.00")


def _power(x):
    """One digit and a power of ten: 7e-5."""
    digit, exponent = f"{x:.0e}".split("e")
    return f"{digit}e{int(exponent)}"


def _brief(distance):
    """A distance in few signs: 0.180, or 7e-5, or that only rounding is left."""
    if distance < NOISE:
        return "≈ 0"
    return f"{distance:.3f}" if distance >= 0.001 else _power(distance)


def _size(x):
    """A number of any size in few signs: 4.00, or 3e-9."""
    return _fixed(x) if x == 0 or 0.01 <= abs(x) < 1000 else _power(x)


def _table(caption, head, names, cells):
    """A table with named columns and rows; its cells are text already."""
    heads = "<td></td>" + "".join(element("th", name, scope="col") for name in head)
    rows = (
        element("th", name, scope="row") + "".join(element("td", cell) for cell in row)
        for name, row in zip(names, cells, strict=True)
    )
    return element("caption", caption) + "".join(element("tr", row) for row in (heads, *rows))
