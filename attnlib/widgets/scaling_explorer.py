"""ScalingExplorer: d_k and a divisor; the scores, the weights and the gradient they leave."""

import functools
import math

import numpy as np
import traitlets

from attnlib.attention import softmax
from attnlib.widgets.attention_explorer import DIVISORS, word_vector
from attnlib.widgets.base import CourseWidget, esm
from attnlib.widgets.still import element, line, moving, options, sheet, text

MAX_D_K = 1024
N_KEYS = 64
N_QUERIES = 64
ROW = 35  # the query whose row is shown: at every size close to the middle of many
N_SETS = 16  # of keys behind the curves: rows that share their keys rise and fall together

# Where the d_k slider stops, and where the curves are measured: eight stops an octave.
STOPS = sorted({round(2 ** (eighth / 8)) for eighth in range(81)})

# The sheet that everything is drawn on; scaling_explorer.js draws on the same one.
WIDTH, HEIGHT = 360, 476
LEFT, WIDE = 34, 312
HISTOGRAM, PEAK, REACH, BINS = 112, 68, 128, 32
BARS, TALLEST = 278, 100
PLOTS, PLOT, FLOOR, RISE = {"entropy": 34, "jacobian": 210}, 128, 420, 96
HIGHEST = {"entropy": math.log(N_KEYS), "jacobian": 0.5}  # no row can have more

_DASHES = {"sqrt": "none", "none": "5 3", "d_k": "1.5 2.5"}


def entropy(weights):
    """Entropy of each row in nats: 0 for a single weight of 1, ln n for n equal ones."""
    logarithms = np.log(weights, where=weights > 0, out=np.zeros_like(weights))
    return -(weights * logarithms).sum(axis=-1)


def jacobian_norm(weights):
    """Frobenius norm of the softmax Jacobian diag(a) - a a^T, for each row a.

    Its square is the sum over i of a_i^2 ((1 - a_i)^2 + the sum over j != i of a_j^2).
    """
    others = 1 - np.eye(weights.shape[-1])
    rest = weights @ others  # 1 - a_i as a sum: a difference loses a weight very close to 1
    return np.sqrt((weights**2 * (rest**2 + weights**2 @ others)).sum(axis=-1))


class ScalingExplorer(CourseWidget):
    """What becomes of softmax as queries and keys grow, with and without the division.

    Queries and keys are `d_k` independent numbers with mean 0 and variance 1, always the same
    ones, so a dot product has variance `d_k`. The widget shows how far 64 x 64 of them spread
    once divided, the row of weights that one query then has over 64 keys, and where that row
    stands on the curves of entropy and of the softmax Jacobian's norm against `d_k`.

    Parameters
    ----------
    d_k : int
        Size of a query and of a key, 1 to 1024.
    divisor : {"sqrt", "none", "d_k"}
        What the scores are divided by: the square root of d_k, nothing, or d_k.

    Raises
    ------
    ValueError
        For a size outside its range.
    traitlets.TraitError
        For a value of the wrong type, or a divisor that does not exist.
    """

    _esm = esm("scaling_explorer")
    _name = "scaling"
    _label = "Scaling explorer"
    _shown = ("d_k", "divisor")

    d_k = traitlets.Int(64).tag(sync=True)
    divisor = traitlets.Enum(list(DIVISORS), "sqrt").tag(sync=True)

    @traitlets.validate("d_k")
    def _check_d_k(self, proposal):
        value = proposal["value"]
        if isinstance(value, bool) or not 1 <= value <= MAX_D_K:
            raise ValueError(f"d_k needs a whole number from 1 to {MAX_D_K}; got {value}")
        return value

    @property
    def Q(self):  # noqa: N802
        """The queries, (64, d_k)."""
        return _vectors("query", N_QUERIES)[:, : self.d_k]

    @property
    def K(self):  # noqa: N802
        """The keys, (64, d_k)."""
        return _vectors("key", N_KEYS)[:, : self.d_k]

    @property
    def scores(self):
        """Dot products of all queries and keys, divided, (64, 64)."""
        return self.Q @ self.K.T / _divide(self.divisor, self.d_k)

    @property
    def spread(self):
        """Standard deviation of the scores, as measured."""
        return float(self.scores.std())

    @property
    def weights(self):
        """The row of weights that is shown, (64,): softmax of the scores of query 36."""
        return softmax(self.scores[ROW])

    @property
    def entropy(self):
        """Entropy of the row, in nats: at most ln 64."""
        return float(entropy(self.weights))

    @property
    def jacobian_norm(self):
        """Frobenius norm of the row's softmax Jacobian, diag(a) - a a^T: at most 1/2."""
        return float(jacobian_norm(self.weights))

    @property
    def curves(self):
        """Entropy and Jacobian norm over all stops of the slider, as a dict of arrays.

        "d_k" holds the stops; "entropy_sqrt", "entropy_none", "entropy_d_k" and the same with
        "jacobian" hold the median of 1024 rows, for each divisor: 64 queries, 16 sets of 64 keys.
        """
        return dict(_curves())

    def _html(self):
        weights = self.weights
        top = int(weights.argmax())
        stop = min(range(len(STOPS)), key=lambda i: abs(STOPS[i] - self.d_k))
        stops = {"max": len(STOPS) - 1, "value": stop, "data_stops": " ".join(map(str, STOPS))}
        tables = element("table", _row_table(self.scores[ROW], weights), data_part="table")
        return f"""
<div class="controls">
<label class="main"><span>Query and key size, <i>d<sub>k</sub></i>
<b class="number" data-part="d_k_value">{self.d_k}</b></span>
{element("input", type="range", name="d_k", min=0, **stops)}</label>
<label class="wide"><span>Divide scores by</span>
{element("select", options(DIVISORS.items(), self.divisor), name="divisor")}</label>
</div>
<div class="readout">
<p><span class="big" data-part="largest">{weights[top]:.2f}</span>
<span>largest weight of the row, on <b class="key" data-part="top_key">key {top + 1}</b></span></p>
<p><span class="big" data-part="entropy">{self.entropy:.2f}</span>
<span>entropy in nats, of at most ln {N_KEYS} = {math.log(N_KEYS):.2f}</span></p>
<p><span class="big" data-part="jacobian">{_brief(self.jacobian_norm)}</span>
<span>norm of the softmax Jacobian: how much of a gradient gets back through</span></p>
<p class="buttons"><button type="button" name="copy">Copy as NumPy</button>
<button type="button" name="reset">Reset</button></p>
</div>
<div class="picture">{self._drawing()}</div>
<p class="cell">Lines: the median of {N_SETS * N_QUERIES} rows.
Dots: the row above, of query {ROW + 1}.</p>
<div class="visually-hidden">{tables}{element("table", _curve_table())}</div>
"""

    def _drawing(self):
        """The sheet: what never changes, and the marks that follow the traits."""
        marks = self._marks()
        texts = {name: marks[name].pop("text") for name in ("spread", "top")}
        end = LEFT + WIDE
        middle = LEFT + WIDE / 2
        parts = [
            text(
                f"{N_QUERIES} × {N_KEYS} scores after the division: how far they spread",
                0,
                14,
                "ink",
            ),
            text(texts["spread"], 0, 31, "muted", data_part="spread"),
            moving("path", "histogram", marks, fill="var(--muted)", stroke="var(--muted)"),
            line(f"M{LEFT} {HISTOGRAM}H{end}"),
            *(
                text(f"{x}".replace("-", "−"), middle + x * WIDE / 2 / REACH, 127, anchor="middle")
                for x in (-100, -50, 0, 50, 100)
            ),
            text(f"One row of weights, {N_KEYS} keys, the largest first", 0, 158, "ink"),
            text("1", LEFT - 6, BARS - TALLEST + 4, anchor="end"),
            text("0", LEFT - 6, BARS + 4, anchor="end"),
            line(f"M{LEFT} {BARS - TALLEST}V{BARS}H{end}"),
            moving("path", "bars", marks, fill="var(--weight)"),
            moving("text", "top", marks, texts["top"], x=LEFT + 8, fill="var(--weight)"),
        ]
        for name, title in (
            ("entropy", "Entropy against d_k"),
            ("jacobian", "Jacobian norm against d_k"),
        ):
            left, floor = PLOTS[name], FLOOR + 4
            half = {"entropy": "2", "jacobian": ".25"}[name]
            middle = FLOOR - RISE * float(half) / HIGHEST[name]
            parts += [
                text(title, left - LEFT, 308, "ink"),
                text({"entropy": "4", "jacobian": ".5"}[name], left - 6, FLOOR - 88, anchor="end"),
                text(half, left - 6, middle + 4, anchor="end"),
                text("0", left - 6, floor, anchor="end"),
                line(f"M{left} {FLOOR - RISE}V{FLOOR}h{PLOT}"),
                *(
                    text(d, left + PLOT * math.log2(d) / 10, 436, anchor="middle")
                    for d in (1, 32, 1024)
                ),
            ]
        curves = _curves()
        for divisor, x, label in (
            ("sqrt", 34, "÷ √d_k"),
            ("none", 120, "not scaled"),
            ("d_k", 226, "÷ d_k"),
        ):
            d = "".join(
                _polyline(curves["d_k"], curves[f"{name}_{divisor}"], name) for name in PLOTS
            )
            dashes = {"fill": "none", "stroke_dasharray": _DASHES[divisor]}
            parts.append(moving("path", f"line_{divisor}", marks, d=f"{d}M{x} 464h22", **dashes))
            parts.append(text(label, x + 28, 468, "ink"))
        parts.append(moving("path", "here", marks, stroke="var(--ink)", stroke_width=1))
        for name in PLOTS:
            parts.append(moving("circle", f"dot_{name}", marks, r=4, fill="var(--weight)"))
        return sheet(
            parts,
            WIDTH,
            HEIGHT,
            "Spread of the scores, one row of weights, and the curves of entropy and "
            "Jacobian norm; the tables below hold the numbers",
        )

    def _marks(self):
        """What follows the traits: the attributes of each moving part, as `marks` in the page."""
        weights, scores = self.weights, self.scores
        theory = math.sqrt(self.d_k) / _divide(self.divisor, self.d_k)
        formula = {"sqrt": "", "none": f"√{self.d_k} = ", "d_k": f"1/√{self.d_k} = "}[self.divisor]
        steps = np.floor((scores / theory + 4) * (BINS / 8)).clip(0, BINS - 1).astype(int)
        counts = np.bincount(steps.ravel(), minlength=BINS)
        unit = WIDE / 2 / REACH
        edges = LEFT + WIDE / 2 + (np.arange(BINS + 1) * (8 / BINS) - 4) * theory * unit
        tops = HISTOGRAM - PEAK * counts / counts.max()
        histogram = "".join(f"V{y:.1f}H{x:.2f}" for x, y in zip(edges[1:], tops, strict=True))
        side = WIDE / N_KEYS
        row = np.sort(weights)[::-1]
        bars = "".join(
            f"M{LEFT + (j + 0.15) * side:.2f} {BARS}v{-TALLEST * w:.1f}h{0.7 * side:.2f}V{BARS}"
            for j, w in enumerate(row)
        )
        here = {name: left + PLOT * math.log2(self.d_k) / 10 for name, left in PLOTS.items()}
        heights = {"entropy": self.entropy, "jacobian": self.jacobian_norm}
        dots = {
            f"dot_{name}": {
                "cx": f"{here[name]:.1f}",
                "cy": f"{FLOOR - RISE * heights[name] / HIGHEST[name]:.1f}",
            }
            for name in PLOTS
        }
        lines = {
            f"line_{divisor}": {
                "stroke": "var(--weight)" if divisor == self.divisor else "var(--muted)",
                "stroke-width": "2.5" if divisor == self.divisor else "1.3",
            }
            for divisor in DIVISORS
        }
        return {
            "spread": {
                "text": f"standard deviation {self.spread:#.3g}; in theory {formula}{theory:.4g}"
            },
            "histogram": {"d": f"M{edges[0]:.2f} {HISTOGRAM}{histogram}V{HISTOGRAM}Z"},
            "bars": {"d": bars},
            "top": {"text": f"{row[0]:.2f}", "y": f"{BARS - TALLEST * row[0] - 6:.1f}"},
            "here": {"d": "".join(f"M{x:.1f} {FLOOR - RISE}V{FLOOR}" for x in here.values())},
            **dots,
            **lines,
        }


@functools.cache
def _vectors(role, n):
    """Return the vectors of "key 1" to "key n" (or of queries) at full length."""
    rows = np.stack([word_vector(f"{role} {i + 1}", role, MAX_D_K) for i in range(n)])
    rows.flags.writeable = False  # shared by all widgets
    return rows


def _divide(divisor, d_k):
    return {"sqrt": math.sqrt(d_k), "none": 1.0, "d_k": float(d_k)}[divisor]


@functools.cache
def _curves():
    queries = _vectors("query", N_QUERIES)
    keys = _vectors("key", N_SETS * N_KEYS).reshape(N_SETS, N_KEYS, MAX_D_K)
    curves = {f"{name}_{divisor}": [] for name in PLOTS for divisor in DIVISORS}
    for d_k in STOPS:
        scores = queries[:, :d_k] @ keys[..., :d_k].mT  # (sets, queries, keys)
        for divisor in DIVISORS:
            weights = softmax(scores / _divide(divisor, d_k))
            curves[f"entropy_{divisor}"].append(np.median(entropy(weights)))
            curves[f"jacobian_{divisor}"].append(np.median(jacobian_norm(weights)))
    arrays = {"d_k": np.array(STOPS)} | {name: np.array(curve) for name, curve in curves.items()}
    for array in arrays.values():
        array.flags.writeable = False
    return arrays


def _brief(x):
    """A small number in few signs: 0.180, or 7e-5."""
    if x >= 0.001:
        return f"{x:.3f}"
    digit, exponent = f"{x:.0e}".split("e")
    return f"{digit}e{int(exponent)}"


def _polyline(sizes, curve, name):
    points = (
        f"{PLOTS[name] + PLOT * math.log2(d) / 10:.1f} {FLOOR - RISE * y / HIGHEST[name]:.1f}"
        for d, y in zip(sizes, curve, strict=True)
    )
    return "M" + "L".join(points)


def _row_table(scores, weights):
    """The row as a table, for those who do not see the picture."""
    caption = f"Query {ROW + 1}: scores after the division, and weights"
    head = "".join(element("th", name, scope="col") for name in ("key", "score", "weight"))
    rows = [
        element("th", f"key {j + 1}", scope="row")
        + element("td", f"{score:.2f}")
        + element("td", f"{weight:.4f}")
        for j, (score, weight) in enumerate(zip(scores, weights, strict=True))
    ]
    return element("caption", caption) + "".join(element("tr", row) for row in [head, *rows])


def _curve_table():
    """The curves at six sizes, as a table."""
    curves = _curves()
    columns = [f"{name}_{divisor}" for name in PLOTS for divisor in DIVISORS]
    heads = [
        f"{name}, divided by {label}"
        for name in ("entropy", "Jacobian norm")
        for label in DIVISORS.values()
    ]
    rows = ["".join(element("th", head, scope="col") for head in ["d_k", *heads])]
    for d_k in (1, 4, 16, 64, 256, 1024):
        at = STOPS.index(d_k)
        cells = "".join(element("td", _brief(curves[column][at])) for column in columns)
        rows.append(element("th", d_k, scope="row") + cells)
    caption = element("caption", f"The curves: medians of {N_SETS * N_QUERIES} rows")
    return caption + "".join(element("tr", row) for row in rows)
