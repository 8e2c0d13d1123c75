"""RecallExplorer: pairs are written into a memory, and each of them is asked for again."""

import numpy as np
import traitlets

from attnlib.attention import scaled_dot_product_attention
from attnlib.linear import delta_rule, linear_attention
from attnlib.widgets.kit.base import CourseWidget, Whole

KINDS = ("full", "window", "linear", "delta")
MOST_PAIRS, MOST_NUMBERS, N_VALUES, WINDOW = 32, 16, 8, 4
SHARPNESS = 60.0  # of the softmax: a key finds itself among 32
RECENCY = 0.1  # what a later pair scores more, as positions let a model prefer it


class RecallExplorer(CourseWidget):
    """What four kinds of attention recall of the pairs that were written, and what they keep.

    A pair is a key, a random vector of length 1, and one of eight values. After the last pair each
    key is asked for. It is recalled if its last value gets the largest number of the output.

    Parameters
    ----------
    kind : {"full", "window", "linear", "delta"}
        The softmax over all pairs; over the last four; the sum of linear attention; the delta rule.
    pairs : int
        How many are written, 1 to 32.
    d_k : int
        How many numbers a key has, 2 to 16.
    again : bool
        Whether the second half of the pairs has the keys of the first half, with new values.

    Raises
    ------
    ValueError
        If a number is out of bounds.
    traitlets.TraitError
        For a value of the wrong type, or a kind that does not exist.
    """

    kind = traitlets.Enum(KINDS, "linear").tag(sync=True)
    pairs = Whole(1, MOST_PAIRS, 6).tag(sync=True)
    d_k = Whole(2, MOST_NUMBERS, 8).tag(sync=True)
    again = traitlets.Bool(False).tag(sync=True)
    directions = traitlets.List(read_only=True).tag(sync=True, constant=True)
    letters = traitlets.List(read_only=True).tag(sync=True, constant=True)

    @traitlets.default("directions")
    def _directions(self):
        rng = np.random.default_rng(7)
        return rng.normal(size=(MOST_PAIRS, MOST_NUMBERS)).round(3).tolist()

    @traitlets.default("letters")
    def _letters(self):
        return np.random.default_rng(3).integers(N_VALUES, size=MOST_PAIRS).tolist()

    @property
    def n_keys(self):
        """How many different keys are written."""
        return -(-self.pairs // 2) if self.again else self.pairs

    @property
    def output(self):
        """What each key is answered with, shape (n_keys, 8): a number for each value."""
        keys = np.array(self.directions)[np.arange(self.pairs) % self.n_keys, : self.d_k]
        keys /= np.linalg.norm(keys, axis=1, keepdims=True)
        values = np.eye(N_VALUES)[self.letters[: self.pairs]]
        asked = keys[: self.n_keys]
        if self.kind == "linear":
            return linear_attention(asked, keys, values, causal=False)
        if self.kind == "delta":  # after the pairs the keys alone, of which nothing is written
            both, blank = np.concatenate([keys, asked]), np.zeros((self.n_keys, N_VALUES))
            written = np.repeat([1.0, 0.0], [self.pairs, self.n_keys])
            values = np.concatenate([values, blank])
            return delta_rule(both, both, values, written)[self.pairs :]
        held = slice(max(self.pairs - WINDOW, 0) if self.kind == "window" else 0, None)
        queries = SHARPNESS * np.sqrt(self.d_k) * asked
        later = np.broadcast_to(RECENCY * np.arange(self.pairs), (self.n_keys, self.pairs))
        return scaled_dot_product_attention(queries, keys[held], values[held], later[:, held])[0]

    @property
    def recalled(self):
        """Whether each key is answered with its last value, shape (n_keys,)."""
        last = np.arange(self.n_keys)
        last = np.where(last + self.n_keys < self.pairs, last + self.n_keys, last)
        return self.output.argmax(axis=1) == np.array(self.letters)[last]

    @property
    def kept(self):
        """How many numbers the memory holds."""
        if self.kind in ("linear", "delta"):
            return self.d_k * N_VALUES
        rows = min(self.pairs, WINDOW) if self.kind == "window" else self.pairs
        return rows * (self.d_k + N_VALUES)
