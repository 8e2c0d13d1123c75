"""Backwards: slopes from one number of the output back to X, and what a change really does."""

import numpy as np
import traitlets

from attnlib.attention import softmax
from attnlib.gradients import attention_backward, softmax_backward
from attnlib.masks import causal_mask
from attnlib.widgets.kit.base import CourseWidget, Number, Whole
from attnlib.widgets.kit.constants import ACROSS, CHAI_PIYO, STRAIGHT

LARGEST = 100
MOST_NUDGE = 1

STAGES = ("forwards", "Z", "V", "A", "S", "Q", "K", "W", "X")
_SHAPES = {"x": (2, 4), "w_q": (4, 2), "w_k": (4, 2), "w_v": (4, 2)}
# The matrices by their letters, and how many rows and columns each has.
SHAPES = {name: (2, 2) for name in ("Q", "K", "V", "S", "A", "Z")} | {
    "X": (2, 4), "W_Q": (4, 2), "W_K": (4, 2), "W_V": (4, 2)
}  # fmt: skip


class Backwards(CourseWidget):
    """Backpropagation from one number of the output to X: each number with its slope below it.

    The loss is one entry of Z, the output of one head for "Chai piyo". The picture shows the slopes
    that have been found so far, and how: along a path they are multiplied, those of several paths
    are added, which gives Eqs. (2) to (8) of "Backpropagation by hand". Any entry can
    be nudged.

    Parameters
    ----------
    x : array_like, shape (2, 4)
        One row a word. Every entry of every matrix lies between -100 and 100.
    w_q, w_k, w_v : array_like, shape (4, 2)
    row, column : int
        Which entry of Z is the loss, each 0 or 1.
    causal : bool
        Whether Chai may not look at piyo, which comes later.
    stage : str
        How far back the slopes are known: "forwards", "Z", "V", "A", "S", "Q", "K", "W" or "X".
    cell : str
        The entry that is looked at: its matrix, row and column, as in "W_Q.3.1", counted from 0.
    nudge : float
        By how much that entry is raised, -1 to 1.

    Raises
    ------
    ValueError
        For a shape that does not fit, an entry that does not exist, or a number out of range.
    traitlets.TraitError
        For a value of the wrong type, or a stage that does not exist.
    """

    x = traitlets.List(default_value=CHAI_PIYO).tag(sync=True)
    w_q = traitlets.List(default_value=STRAIGHT).tag(sync=True)
    w_k = traitlets.List(default_value=ACROSS).tag(sync=True)
    w_v = traitlets.List(default_value=STRAIGHT).tag(sync=True)
    row = Whole(0, 1, 0).tag(sync=True)
    column = Whole(0, 1, 0).tag(sync=True)
    causal = traitlets.Bool(False).tag(sync=True)
    stage = traitlets.Enum(STAGES, "X").tag(sync=True)
    cell = traitlets.Unicode("Q.0.1").tag(sync=True)
    nudge = Number(-MOST_NUDGE, MOST_NUDGE, 0).tag(sync=True)

    def __init__(self, **traits):
        for name in set(traits) & set(_SHAPES):
            traits[name] = _read(name, traits[name])
        super().__init__(**traits)

    @traitlets.validate(*_SHAPES)
    def _check_matrix(self, proposal):
        return _read(proposal["trait"].name, proposal["value"])

    @traitlets.validate("cell")
    def _check_cell(self, proposal):
        name, *place = proposal["value"].split(".")
        rows, columns = SHAPES.get(name, (0, 0))
        if place not in [[str(i), str(j)] for i in range(rows) for j in range(columns)]:
            raise ValueError(f"cell needs an entry such as 'Q.0.1'; got {proposal['value']!r}")
        return proposal["value"]

    def _forwards(self, by=0.0):
        """All matrices by their letters, where the entry that is looked at is raised by `by`."""
        nudged, i, j = self.cell.split(".")
        allowed = causal_mask(2) if self.causal else np.ones((2, 2), dtype=bool)
        made = {}

        def put(name, matrix):
            made[name] = np.array(matrix, dtype=float)
            if name == nudged:
                made[name][int(i), int(j)] += by
            return made[name]

        tokens = put("X", self.x)
        queries = put("Q", tokens @ put("W_Q", self.w_q))  # (2, 2)
        keys = put("K", tokens @ put("W_K", self.w_k))
        values = put("V", tokens @ put("W_V", self.w_v))
        scores = put("S", queries @ keys.T / np.sqrt(2))
        weights = put("A", softmax(np.where(allowed, scores, -np.inf)))
        put("Z", np.where(allowed, weights, 0) @ values)
        return made

    @property
    def matrices(self):
        """Every matrix by its letter; "S" holds the scaled scores, before the mask."""
        return self._forwards()

    @property
    def loss(self):
        """The entry of Z that is followed."""
        return float(self._forwards()["Z"][self.row, self.column])

    @property
    def nudged_loss(self):
        """The same, once the entry that is looked at is nudged."""
        return float(self._forwards(self.nudge)["Z"][self.row, self.column])

    @property
    def gradients(self):
        """How the loss moves with every entry of every matrix, by the matrix's letter."""
        made = self._forwards()
        tokens, queries, keys, values = (made[name] for name in ("X", "Q", "K", "V"))
        found = {"Z": np.zeros((2, 2))}
        found["Z"][self.row, self.column] = 1
        backwards = attention_backward(queries, keys, values, found["Z"], causal=self.causal)
        found |= zip(("Q", "K", "V"), backwards, strict=True)
        allowed = causal_mask(2) if self.causal else True
        found["A"] = np.where(allowed, found["Z"] @ values.T, 0)
        found["S"] = softmax_backward(made["A"], found["A"])
        found |= {f"W_{name}": tokens.T @ found[name] for name in ("Q", "K", "V")}
        found["X"] = sum(found[name] @ made[f"W_{name}"].T for name in ("Q", "K", "V"))
        return found


def _read(name, value):
    """Return `value` as rows of numbers, or say what was needed."""
    try:
        matrix = np.asarray(value, dtype=float)
    except (TypeError, ValueError):
        raise ValueError(f"{name} needs rows of numbers; got {value!r}") from None
    if matrix.shape != _SHAPES[name]:
        raise ValueError(f"{name} needs shape {_SHAPES[name]}; got {matrix.shape}")
    if not (np.abs(matrix) <= LARGEST).all():
        raise ValueError(f"{name} needs entries from -{LARGEST} to {LARGEST}; got {value!r}")
    return (matrix + 0.0).tolist()
