"""PositionsExplorer: what each kind of position does to scores, and clocks that turn."""

import math

import numpy as np
import traitlets

from attnlib.attention import scaled_dot_product_attention
from attnlib.positions import (
    alibi_bias,
    relative_position_bias,
    rotary,
    sinusoidal_positions,
)
from attnlib.widgets.kit.base import CourseWidget, Number, Whole

N = 64  # positions, and words in the sentence
N_HEADS = 8
REACH = 8  # the largest offset in the table of the relative bias
KINDS = ("none", "sinusoidal", "rotary", "alibi", "relative")
SCENES = ("scores", "order", "clocks", "turned")
ROWS = ((2, 0, 1, 0), (0, 1, 2, 0), (0, 2, 0, 1))  # dog, bites, man: query, key and value alike
QUERY, KEY = (2, 0, 1, 1), (1, 1, 2, 0)  # what rotary turns in the scene "turned"


class PositionsExplorer(CourseWidget):
    """What positions do to the scores of one word that stands at 64 places.

    The same word stands 64 times, so whatever differs between two scores comes from the
    positions. The word is (1, 0, 1, 0, ...) at length 1. Queries and keys are the inputs times
    d_model^(1/4), which the division by √d_model takes back: a scaled score is the dot product
    of two inputs, and without positions all of them are 1. Sinusoids are added to the word,
    Eqs. (1) to (3) of "Where am I?"; rotary turns query and key, Eq. (5); ALiBi and the relative
    bias are added to the scaled score, Eqs. (6) and (7).

    That is the scene "scores". In "order" dog and man change places in "dog bites man"; in "clocks"
    the encodings of two positions are hands of clocks; in "turned" a query and a key turn with
    their positions.

    Parameters
    ----------
    kind : {"none", "sinusoidal", "rotary", "alibi", "relative"}
        How the score learns of the positions.
    position : int
        The position that is looked at, 0 to 63.
    d_model : int
        Width of the word and of the encoding, even, 2 to 128. There is one head that wide.
    base : float
        b of sinusoids and rotary, 2 to 1000000.
    head : int
        Which of 8 heads, 0 to 7, for ALiBi and relative. The page counts them from 1.
    scene : {"scores", "order", "clocks", "turned"}
        What is drawn.
    distance : int
        k, how far the second of two positions is from the first, 0 to 16: "clocks", "turned".
    swapped, placed : bool
        In "order": whether dog and man have changed places, and whether positions are added.

    Raises
    ------
    ValueError
        For a number outside its range, or an odd width.
    traitlets.TraitError
        For a value of the wrong type, or a kind that does not exist.

    Notes
    -----
    A relative table is learned. Here `table` stands for it, with numbers that are easy to check:
    T_h[o] = 2 - |o + h + 1| / 2 for offsets o from -8 to 8. So the first head likes the key one
    before best, the second the key two before, and so on; offsets beyond 8 count as 8.
    """

    kind = traitlets.Enum(KINDS, "sinusoidal").tag(sync=True)
    position = Whole(0, N - 1, 3).tag(sync=True)
    d_model = Whole(2, 128, 16).tag(sync=True)
    base = Number(2, 1_000_000, 10000.0).tag(sync=True)
    head = Whole(0, N_HEADS - 1, 0).tag(sync=True)
    scene = traitlets.Enum(SCENES, "scores").tag(sync=True)
    distance = Whole(0, 16, 2).tag(sync=True)
    swapped = traitlets.Bool(False).tag(sync=True)
    placed = traitlets.Bool(False).tag(sync=True)

    @traitlets.validate("d_model")
    def _check_width(self, proposal):
        if proposal["value"] % 2:
            raise ValueError(f"d_model needs an even number; got {proposal['value']}")
        return proposal["value"]

    @property
    def word(self):
        """The word that stands everywhere, (d_model,): (1, 0, 1, 0, ...) at length 1."""
        return np.tile([1.0, 0.0], self.d_model // 2) / math.sqrt(self.d_model / 2)

    @property
    def table(self):
        """What stands for a learned table of the relative bias, (8, 17)."""
        offsets, heads = np.arange(-REACH, REACH + 1), np.arange(N_HEADS)[:, None]
        return 2 - np.abs(offsets + heads + 1) / 2

    @property
    def encoding(self):
        """Position by position, (64, d_model).

        The sinusoids; for rotary (cos, sin) of the angle that each pair is turned by; zeros for
        the other kinds.
        """
        if self.kind == "sinusoidal":
            return sinusoidal_positions(N, self.d_model, base=self.base)
        if self.kind == "rotary":
            return rotary(np.tile([1.0, 0.0], (N, self.d_model // 2)), base=self.base)
        return np.zeros((N, self.d_model))

    @property
    def bias(self):
        """What is added to the scaled scores, (8, 64, 64): zeros but for ALiBi and relative."""
        if self.kind == "alibi":
            return alibi_bias(N_HEADS, N)
        if self.kind == "relative":
            return relative_position_bias(self.table, N)
        return np.zeros((N_HEADS, N, N))

    @property
    def scores(self):
        """Scaled scores of the picked head, bias included, (64, 64): queries by keys."""
        words = np.tile(self.word, (N, 1))  # (64, d_model)
        if self.kind == "sinusoidal":
            words = words + self.encoding
        elif self.kind == "rotary":
            words = rotary(words, base=self.base)
        return words @ words.T + self.bias[self.head]

    @property
    def inputs(self):
        """Scene "order": what goes in for dog, bites and man, (3, 4)."""
        places = [2, 1, 0] if self.swapped else [0, 1, 2]
        return np.array(ROWS) + self.placed * sinusoidal_positions(3, 4, base=self.base)[places]

    @property
    def outputs(self):
        """Scene "order": what comes out for dog, bites and man, (3, 4), and the weights, (3, 3)."""
        X = self.inputs
        return scaled_dot_product_attention(X, X, X)
