"""PositionsExplorer: what each kind of position does to scores, and positions as clocks."""

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
# In the place of a learned table of the relative bias, (8, 17): numbers that are easy to check.
TABLE = 2 - np.abs(np.arange(-REACH, REACH + 1) + np.arange(1, N_HEADS + 1)[:, None]) / 2
KINDS = ("none", "sinusoidal", "rotary", "alibi", "relative")
SCENES = ("scores", "order", "clocks", "turned")
ROWS = ((2, 0, 1, 0), (0, 1, 2, 0), (0, 2, 0, 1))  # dog, bites, man: query, key and value alike
QUERY, KEY = (2, 0, 1, 1), (1, 1, 2, 0)  # what rotary turns in the scene "turned"


class PositionsExplorer(CourseWidget):
    """What positions do to the scores of one word that is repeated 64 times.

    All 64 words are the same, so whatever differs between two scores comes from the
    positions. The word is (1, 0, 1, 0, ...) at length 1. Queries and keys are the inputs times
    d_model^(1/4), which the division by √d_model undoes: a scaled score is the dot product
    of two inputs, and without positions all of them are 1. Sinusoids are added to the word,
    Eqs. (2) to (4) of "Where am I?"; rotary turns query and key, Eq. (1); ALiBi and the relative
    bias are added to the scaled score, Eqs. (6) and (7).

    That is the scene "scores". In "order" dog and man change places in "dog bites man"; in "clocks"
    the encodings of two positions are hands of clocks; in "turned" a query and a key turn with
    their positions.

    Parameters
    ----------
    kind : {"none", "sinusoidal", "rotary", "alibi", "relative"}
        How the positions enter the scores.
    position : int
        The position that is shown, 0 to 63.
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
    A relative table is learned. Here numbers that are easy to check take its place:
    T_h[o] = 2 - |o + h + 1| / 2 for offsets o from -8 to 8. So the first head prefers the key one
    before, the second the key two before, and so on; offsets beyond 8 count as 8.
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
    def scores(self):
        """Scaled scores of the picked head, bias included, (64, 64): queries by keys."""
        word = np.tile([1.0, 0.0], self.d_model // 2) / math.sqrt(self.d_model / 2)
        words = np.tile(word, (N, 1))  # (64, d_model)
        if self.kind == "sinusoidal":
            words = words + sinusoidal_positions(N, self.d_model, base=self.base)
        if self.kind == "rotary":
            words = rotary(words, base=self.base)
        scores = words @ words.T
        if self.kind == "alibi":
            scores = scores + alibi_bias(N_HEADS, N)[self.head]
        if self.kind == "relative":
            scores = scores + relative_position_bias(TABLE, N)[self.head]
        return scores

    @property
    def outputs(self):
        """Scene "order": the outputs for dog, bites and man, (3, 4), and the weights, (3, 3)."""
        places = [2, 1, 0] if self.swapped else [0, 1, 2]
        X = np.array(ROWS) + self.placed * sinusoidal_positions(3, 4, base=self.base)[places]
        return scaled_dot_product_attention(X, X, X)
