"""HandCalculator: attention on matrices small enough for paper, one multiplication at a time."""

import numpy as np
import traitlets

from attnlib.attention import scaled_dot_product_attention
from attnlib.widgets.core import CourseWidget

LARGEST = 100
MOST = 4

# "Chai piyo", chapter 3.
_X = [[1.0, 0.0, 1.0, 0.0], [0.0, 1.0, 0.0, 1.0]]
_W_Q = [[1.0, 0.0], [0.0, 1.0], [1.0, 0.0], [0.0, 1.0]]
_W_K = [[0.0, 1.0], [1.0, 0.0], [0.0, 1.0], [1.0, 0.0]]
_GIVEN = {"X": _X, "W_Q": _W_Q, "W_K": _W_K, "W_V": _W_Q}


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

    X = traitlets.Any(_X).tag(sync=True)
    W_Q = traitlets.Any(_W_Q).tag(sync=True)
    W_K = traitlets.Any(_W_K).tag(sync=True)
    W_V = traitlets.Any(_W_Q).tag(sync=True)
    tokens = traitlets.List(traitlets.Unicode(), ["Chai", "piyo"]).tag(sync=True)
    step = traitlets.Int(0).tag(sync=True)

    def __init__(self, **traits):
        given = {name: _matrix(name, traits.get(name, _GIVEN[name])) for name in _GIVEN}
        self._shapes = {name: matrix.shape for name, matrix in given.items()}
        _check_shapes(**self._shapes)
        n = len(given["X"])
        names = ["Chai", "piyo"] if n == 2 else [f"token {i + 1}" for i in range(n)]
        super().__init__(**{"tokens": names, **given, **traits})

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
