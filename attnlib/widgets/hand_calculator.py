"""HandCalculator: attention on matrices small enough for paper, one multiplication at a time."""

from html import escape

import numpy as np
import traitlets

from attnlib.attention import scaled_dot_product_attention
from attnlib.widgets.base import CourseWidget, esm
from attnlib.widgets.still import element

LARGEST = 100
MOST = 4

# "Chai piyo", chapter 3.
_X = [[1.0, 0.0, 1.0, 0.0], [0.0, 1.0, 0.0, 1.0]]
_W_Q = [[1.0, 0.0], [0.0, 1.0], [1.0, 0.0], [0.0, 1.0]]
_W_K = [[0.0, 1.0], [1.0, 0.0], [0.0, 1.0], [1.0, 0.0]]

_GIVEN = ("X", "W_Q", "W_K", "W_V")
_CAPTIONS = {
    "X": "X",
    "W_Q": "W<sub>Q</sub>",
    "W_K": "W<sub>K</sub>",
    "W_V": "W<sub>V</sub>",
    "Q": "Q = X W<sub>Q</sub>",
    "K": "K = X W<sub>K</sub>",
    "V": "V = X W<sub>V</sub>",
    "S": "S = Q K<sup>T</sup>",
    "D": "S / √d<sub>k</sub>",
    "E": "e<sup>S / √d<sub>k</sub></sup>",
    "A": "A = e<sup>…</sup> / row sum",
    "Z": "Z = A V",
}
_ROLES = {
    "W_Q": "query",
    "W_K": "key",
    "W_V": "value",
    "Q": "query",
    "K": "key",
    "V": "value",
    "A": "weight",
}
_BUTTONS = {"D": "÷√d<sub>k</sub>", "E": "e<sup>x</sup>"}


class HandCalculator(CourseWidget):
    """Scaled dot-product attention as on paper: every product, the operands lit, down to Z.

    The reader changes any entry of X, W_Q, W_K and W_V and steps through the multiplications of
    Eqs. (1) and (3) to (6) of chapter 2. The matrices keep the shapes they start with.

    Parameters
    ----------
    X : array_like, shape (n, d_model)
        One row a token. Each size here is 1 to 4, each entry from -100 to 100.
    W_Q, W_K : array_like, shape (d_model, d_k)
    W_V : array_like, shape (d_model, d_v)
    tokens : list of str
        The name of each row of X.
    step : int
        Which multiplication is lit, from 0.

    Raises
    ------
    ValueError
        For matrices whose shapes do not fit, or an entry or a step outside its range.
    """

    _esm = esm("hand_calculator")
    _name = "hand"
    _label = "Hand calculator"
    _shown = ("X", "W_Q", "W_K", "W_V", "tokens", "step")

    X = traitlets.Any().tag(sync=True)
    W_Q = traitlets.Any().tag(sync=True)
    W_K = traitlets.Any().tag(sync=True)
    W_V = traitlets.Any().tag(sync=True)
    tokens = traitlets.List(traitlets.Unicode()).tag(sync=True)
    step = traitlets.Int(0).tag(sync=True)

    def __init__(self, **traits):
        defaults = {"X": _X, "W_Q": _W_Q, "W_K": _W_K, "W_V": _W_Q}
        given = {name: _matrix(name, traits.get(name, defaults[name])) for name in _GIVEN}
        self._shapes = {name: matrix.shape for name, matrix in given.items()}
        _check_shapes(**self._shapes)
        n = len(given["X"])
        names = ["Chai", "piyo"] if n == 2 else [f"token {i + 1}" for i in range(n)]
        super().__init__(**{"tokens": names, **defaults, **traits})

    @traitlets.validate("X", "W_Q", "W_K", "W_V")
    def _check_matrix(self, proposal):
        name = proposal["trait"].name
        matrix = _matrix(name, proposal["value"])
        if matrix.shape != self._shapes[name]:
            raise ValueError(f"{name} keeps its shape {self._shapes[name]}; got {matrix.shape}")
        return matrix.tolist()

    @traitlets.validate("tokens")
    def _check_tokens(self, proposal):
        needed = self._shapes["X"][0]
        if len(proposal["value"]) != needed:
            raise ValueError(
                f"tokens needs {needed} names, one a row of X; got {len(proposal['value'])}"
            )
        return proposal["value"]

    @traitlets.validate("step")
    def _check_step(self, proposal):
        if not 0 <= proposal["value"] < self.n_steps:
            raise ValueError(
                f"step needs a whole number from 0 to {self.n_steps - 1}; got {proposal['value']}"
            )
        return proposal["value"]

    @property
    def n_steps(self):
        """How many multiplications, divisions and exponentials lead from X to Z."""
        (n, d_model), (_, d_k), (_, d_v) = (self._shapes[name] for name in ("X", "W_Q", "W_V"))
        return n * d_model * (2 * d_k + d_v) + n * n * (d_k + 3 + d_v)

    @property
    def Q(self):  # noqa: N802
        """Q = X W_Q, (n, d_k)."""
        return np.array(self.X) @ np.array(self.W_Q)

    @property
    def K(self):  # noqa: N802
        """K = X W_K, (n, d_k)."""
        return np.array(self.X) @ np.array(self.W_K)

    @property
    def V(self):  # noqa: N802
        """V = X W_V, (n, d_v)."""
        return np.array(self.X) @ np.array(self.W_V)

    @property
    def scores(self):
        """S = Q K^T, not yet divided, (n, n)."""
        return self.Q @ self.K.T

    @property
    def weights(self):
        """A, the attention weights, (n, n)."""
        return scaled_dot_product_attention(self.Q, self.K, self.V)[1]

    @property
    def output(self):
        """Z = A V, (n, d_v)."""
        return scaled_dot_product_attention(self.Q, self.K, self.V)[0]

    def _html(self):
        divided = self.scores / np.sqrt(self._shapes["W_Q"][1])
        with np.errstate(over="ignore"):  # a power too large for a float shows as an infinity sign
            powers = np.exp(divided)
        results = {
            "Q": self.Q,
            "K": self.K,
            "V": self.V,
            "S": self.scores,
            "D": divided,
            "E": powers,
            "A": self.weights,
            "Z": self.output,
        }
        given = "".join(self._table(name, getattr(self, name), _entry) for name in _GIVEN)
        derived = "".join(self._table(name, matrix, _cell) for name, matrix in results.items())
        stages = "".join(
            element("button", _BUTTONS.get(name, name), type="button", data_stage=name)
            for name in results
        )
        steps = {"min": 0, "max": self.n_steps - 1, "value": self.step, "aria_label": "Step"}
        number = element("b", self.step + 1, class_="number", data_part="step_value")
        return f"""
<div class="stepper">
<div class="stages" role="group" aria-label="Go to a product">{stages}</div>
<div class="main"><span>Step {number} of {self.n_steps}</span>
<span class="with-value"><button type="button" name="back" aria-label="Step back">◀</button>
{element("input", type="range", name="step", **steps)}
<button type="button" name="forward" aria-label="Step forward">▶</button></span></div>
<p class="sum" data-part="sum">Every product from X to Z, one at a time.</p>
</div>
<div class="matrices">{given}</div>
<div class="matrices">{derived}</div>
<p class="buttons"><button type="button" name="copy">Copy as NumPy</button>
<button type="button" name="reset">Reset</button></p>
"""

    def _table(self, name, matrix, cell):
        """A matrix as a table, with the names of its tokens; `cell` writes one entry."""
        rows, columns = np.shape(matrix)
        title = element("b", _CAPTIONS[name], class_=_ROLES.get(name, False))
        lines = [f"<caption>{title} <span>{rows} × {columns}</span></caption>"]
        if name in ("S", "D", "E", "A"):
            keys = (element("th", escape(t), scope="col", class_="key") for t in self.tokens)
            lines.append(element("tr", "<td></td>" + "".join(keys)))
        for i, row in enumerate(matrix):
            label = escape(self.tokens[i]) if not name.startswith("W_") else None
            first = "" if label is None else element("th", label, scope="row")
            lines.append(
                element("tr", first + "".join(cell(name, i, j, x) for j, x in enumerate(row)))
            )
        return element("table", "".join(lines), data_matrix=name)


def _cell(name, i, j, x):
    return element("td", _plain(x), data_cell=f"{name}_{i}_{j}")


def _entry(name, i, j, x):
    """A cell to type in."""
    heard = f"{name.replace('_', ' ')}, row {i + 1}, column {j + 1}"
    kind = {"type": "text", "inputmode": "decimal", "autocomplete": "off"}
    field = {"name": f"{name}_{i}_{j}", "value": _plain(x), "aria_label": heard}
    return element("td", element("input", **kind, **field), data_cell=f"{name}_{i}_{j}")


def _matrix(name, value):
    """Return `value` as a small matrix of numbers, or say what was needed."""
    try:
        matrix = np.asarray(value, dtype=float)
    except (TypeError, ValueError):
        raise ValueError(f"{name} needs rows of numbers; got {value!r}") from None
    if matrix.ndim != 2 or not all(1 <= size <= MOST for size in matrix.shape):
        raise ValueError(f"{name} needs 1 to {MOST} rows and columns; got shape {matrix.shape}")
    if not (np.abs(matrix) <= LARGEST).all():
        raise ValueError(
            f"{name} needs entries from -{LARGEST} to {LARGEST}; got {matrix.tolist()}"
        )
    return matrix


def _check_shapes(X, W_Q, W_K, W_V):  # noqa: N803  the letters of the formula
    for name, shape in (("W_Q", W_Q), ("W_K", W_K), ("W_V", W_V)):
        if shape[0] != X[1]:
            raise ValueError(f"{name} needs as many rows as X has columns; got {shape} and {X}")
    if W_Q[1] != W_K[1]:
        raise ValueError(f"W_Q and W_K must share d_k; got {W_Q} and {W_K}")


def _plain(x):
    """A number as a person writes it, as `plain` does in the front end."""
    if not np.isfinite(x):
        return "∞" if x > 0 else "-∞"
    if abs(x) >= 1e6:
        digits, exponent = f"{x:.3e}".split("e")
        return f"{digits}e{int(exponent):+d}"
    return f"{round(float(x), 6) + 0:.6f}".rstrip("0").rstrip(".")
