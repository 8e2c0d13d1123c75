"""Plane: words are points; one of them asks, and moves to a blend of all."""

import math

import numpy as np
import traitlets

from attnlib.attention import softmax
from attnlib.widgets.core import CourseWidget, Whole

MOST_SHARPNESS = 4

# The sentence of a scene: its words in order; where several may stand, a tuple of them.
SLOTS = {"bank": ("The", ("boat", "money"), "reached", "the", "bank")}
BOUNDS = {"bank": (-0.8, 4.7)}  # how far a word may go
# What a scene begins with where that differs from the traits' own defaults.
BEGINNINGS = {"bank": {}}


class Number(traitlets.Float):
    """A trait that holds a number from `least` to `most`; others are a ValueError."""

    def __init__(self, least, most, default, **metadata):
        super().__init__(default, **metadata)
        self.least, self.most = least, most

    def validate(self, obj, value):
        """Return `value` if it lies within the bounds."""
        value = super().validate(obj, value)
        if isinstance(value, bool) or not self.least <= value <= self.most:
            bounds = f"from {self.least} to {self.most}"
            raise ValueError(f"{self.name} needs a number {bounds}; got {value!r}")
        return value


class Plane(CourseWidget):
    """A sentence whose words are points of a plane; one of them asks, and moves.

    In the scene "bank" a word is its own query, key and value, so that a score is the dot product
    of two points, Eq. (3) of chapter 2. The scores are divided by the square root of 2 and
    multiplied by the sharpness; softmax makes weights of them, and the asking word becomes the
    blend of all words by these weights.

    Parameters
    ----------
    scene : {"bank"}
        What is shown.
    words : dict of str to two floats
        Where each word of the scene is, -0.8 to 4.7 across and up.
    sentence : {"boat", "money"}
        The word that stands in the sentence's open place.
    asks : int
        The place of the word that asks, 0 to 7; a place beyond the end is the last.
    sharpness : float
        What the scores are multiplied by, 0 to 4.
    ruler : bool
        Whether the dot product is shown, as the foot of a key on the line of the query.
    compact : bool
        Whether the sentence and the picture stand alone, without numbers and fields.

    Raises
    ------
    ValueError
        For words that are not those of the scene, and for numbers out of range.
    traitlets.TraitError
        For a value of the wrong type, or a choice that does not exist.
    """

    scene = traitlets.Enum(list(SLOTS), "bank").tag(sync=True)
    words = traitlets.Any(
        {"the": [0, 0], "boat": [4, 0], "money": [0, 4], "reached": [0, 0], "bank": [1, 1]}
    ).tag(sync=True)
    sentence = traitlets.Enum(["boat", "money"], "boat").tag(sync=True)
    asks = Whole(0, 7, 4).tag(sync=True)
    sharpness = Number(0, MOST_SHARPNESS, 1).tag(sync=True)
    ruler = traitlets.Bool(False).tag(sync=True)
    query = traitlets.Any([2, 1]).tag(sync=True)
    turn = Whole(-180, 180, 0).tag(sync=True)
    stretch = Number(0, 3, 1).tag(sync=True)
    start = Whole(0, 999, 31).tag(sync=True)
    step = Number(0, 100, 0).tag(sync=True)
    rate = Number(0.1, 4, 1).tag(sync=True)
    compact = traitlets.Bool(False).tag(sync=True)

    def __init__(self, scene="bank", **traits):
        super().__init__(scene=scene, **BEGINNINGS.get(scene, {}) | traits)

    @traitlets.validate("words")
    def _check_words(self, proposal):
        value = proposal["value"]
        names = {
            word.lower() for slot in SLOTS[self.scene] for word in np.atleast_1d(slot).tolist()
        }
        if not isinstance(value, dict) or set(value) != names:
            got = list(value) if isinstance(value, dict) else value
            raise ValueError(f"words needs a place for each of {sorted(names)}; got {got!r}")
        return {
            word: checked_point(place, *BOUNDS[self.scene], f"words[{word!r}]")
            for word, place in value.items()
        }

    @property
    def tokens(self):
        """The words of the sentence, in order."""
        slots = SLOTS[self.scene]
        return [slot if isinstance(slot, str) else self.sentence for slot in slots]

    @property
    def points(self):
        """Where the tokens are, (n, 2): their keys and values."""
        return np.array([self.words[token.lower()] for token in self.tokens], dtype=float)

    @property
    def scores(self):
        """The dot product of the asking word's query with each key, (n,), not yet divided."""
        return self.points @ self.points[min(self.asks, len(self.tokens) - 1)]

    @property
    def _scaled(self):
        return self.scores * self.sharpness / math.sqrt(2)

    @property
    def powers(self):
        """Powers of e with the divided, sharpened scores, (n,)."""
        return np.exp(self._scaled)

    @property
    def weights(self):
        """Softmax of the divided, sharpened scores, (n,)."""
        return softmax(self._scaled)

    @property
    def output(self):
        """What the asking word becomes, (2,): the values blended by the weights."""
        return self.weights @ self.points


def checked_point(value, low, high, name):
    """Return `value` as two plain numbers from `low` to `high`."""
    needed = f"{name} needs two numbers from {low} to {high}; got {value!r}"
    try:
        point = np.asarray(value, dtype=float)
    except (TypeError, ValueError):
        raise ValueError(needed) from None
    if point.shape != (2,) or not ((point >= low) & (point <= high)).all():
        raise ValueError(needed)
    return [int(x) if x.is_integer() else x for x in point.tolist()]
