"""ScalingExplorer: d_k and a divisor; how far scores spread, the weights and their slope."""

import functools

import numpy as np
import traitlets

from attnlib.attention import softmax
from attnlib.widgets.kit.base import CourseWidget, Whole
from attnlib.widgets.kit.constants import DIVISORS, word_vector

MAX_D_K = 1024
N_KEYS = 64
N_QUERIES = 64
N_SETS = 16  # of keys behind the curves: rows that share their keys rise and fall together

# Where the d_k slider stops, and where the curves are measured: eight stops an octave.
STOPS = sorted({round(2 ** (eighth / 8)) for eighth in range(81)})


def jacobian_norm(weights):
    """Frobenius norm of the softmax Jacobian, Eq. (3) of "Why scores are divided".

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
    stands on the curves of the largest weight and of the slope against `d_k`.

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

    d_k = Whole(1, MAX_D_K, 64).tag(sync=True)
    divisor = traitlets.Enum(list(DIVISORS), "sqrt").tag(sync=True)
    curves_drawn = traitlets.Dict(read_only=True).tag(sync=True)

    @traitlets.default("curves_drawn")
    def _round_curves(self):
        """The curves as the page gets them: to five digits, more than a screen has pixels."""
        return {name: [float(f"{x:.5g}") for x in curve] for name, curve in _curves().items()}

    @property
    def curves(self):
        """Largest weight and slope over all stops of the slider, as a dict of arrays.

        "d_k" holds the stops; "largest_sqrt", "largest_none", "largest_d_k" and the same with
        "slope" hold the median of 1024 rows, for each divisor: 64 queries, 16 sets of 64 keys.
        """
        return dict(_curves())


@functools.cache
def _vectors(role, n):
    """Return the vectors of "key 1" to "key n" (or of queries) at full length."""
    rows = np.stack([word_vector(f"{role} {i + 1}", role, MAX_D_K) for i in range(n)])
    rows.flags.writeable = False  # shared by all widgets
    return rows


@functools.cache
def _curves():
    queries = _vectors("query", N_QUERIES)
    keys = _vectors("key", N_SETS * N_KEYS).reshape(N_SETS, N_KEYS, MAX_D_K)
    curves = {f"{name}_{divisor}": [] for name in ("largest", "slope") for divisor in DIVISORS}
    for d_k in STOPS:
        scores = queries[:, :d_k] @ keys[..., :d_k].mT  # (sets, queries, keys)
        for divisor in DIVISORS:
            weights = softmax(scores / DIVISORS[divisor](d_k))
            curves[f"largest_{divisor}"].append(np.median(weights.max(axis=-1)))
            curves[f"slope_{divisor}"].append(np.median(jacobian_norm(weights)))
    arrays = {"d_k": np.array(STOPS)} | {name: np.array(curve) for name, curve in curves.items()}
    for array in arrays.values():
        array.flags.writeable = False
    return arrays
