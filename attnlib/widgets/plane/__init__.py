"""Plane: words are points; one of them asks, and moves to a blend of all."""

import math

import numpy as np
import traitlets

from attnlib.attention import softmax
from attnlib.widgets.kit.base import CourseWidget, Number, Whole
from attnlib.widgets.kit.constants import word_vector

MOST_SHARPNESS = 4
MOST_WORDS, LONGEST = 8, 12

DRINKS = ("tea", "coffee", "juice")
# The words of a scene in order; where several may stand, a tuple of them. Own words have no others.
SLOTS = {
    "bank": ("The", ("boat", "money"), "reached", "the", "bank"),
    "prices": DRINKS,
    "sharpness": DRINKS,
    "turned": ("Money", "reached", "the", "bank", "by", "boat"),
    "words": None,
    "learning": (),
}
PRICED = ("prices", "sharpness")
PRICES = np.array([2.0, 3.0, 5.0])  # the values of the price list
# In "bank", the next words that the smallest language model knows: a column for each of them says
# how much it goes with rivers and with money.
NEXT_WORDS = ("water", "loan", "and")
UNEMBEDDING = np.array([[1, 0, 0.5], [0, 1, 0.5]])
# How far a word or a query may go, either way.
BOUNDS = {
    "bank": (-0.8, 4.7),
    **dict.fromkeys(PRICED, (-2.2, 3.2)),
    "turned": (-0.8, 4.7),
    "words": (-3, 3),
}
STEPS = 100


def _rows_at(length, *degrees):
    """Points of this length at angles against the clock, a row each."""
    angles = np.radians(degrees)
    return length * np.stack([np.cos(angles), np.sin(angles)], axis=1)


# In "learning": chai, latte and lemonade, and the keys of the drinks that they should find.
LEARNERS, KEYS = _rows_at(2, 20, 60, 155), _rows_at(1, 90, 210, 330)
# What a scene begins with where that differs from the traits' own defaults.
BEGINNINGS = {
    **{scene: {"words": {"tea": [2, 0], "coffee": [1, 1], "juice": [0, 2]}} for scene in PRICED},
    "turned": {
        "words": {"money": [0, 4], "reached": [0, 0], "the": [0, 0], "bank": [1, 1], "by": [0, 0]}
        | {"boat": [4, 0]},
        "asks": 3,
        "turn": -25,
    },
    "learning": {"words": {}},
    "words": {
        "words": {"cat": [2, 1.5], "dog": [1.5, 2], "car": [-2, 1], "bus": [-2, -1], "it": [1, 0.5]}
    },
}


class Plane(CourseWidget):
    """Words are points of a plane; one of them asks, and moves to a blend of all.

    A score is the dot product of a query and a key, Eq. (3) of "Queries, keys and
    values". The scores are divided by
    the square root of 2 and multiplied by the sharpness, softmax makes weights of them, and the
    weights blend the values. In "bank" and "words" a word is its own query, key and value. In
    "turned" its query is turned and stretched by W_Q. In "prices" and "sharpness" the query is
    nobody's, the values are the prices 2, 3 and 5, and nothing is divided; "sharpness" shows the
    weights and the answer alone. In "bank" the output, times a column for each
    of three next words, gives their logits, and softmax makes probabilities of them.

    In "learning" the keys of tea, coffee and juice have length 1 and point to 90, 210 and 330
    degrees. The words chai, latte and lemonade, of length 2 at 20, 60 and 155 degrees, should find
    one each. W_Q begins small and random; each step of gradient descent takes the learning rate
    times the slope of the loss away from it. Weights and output then have a row for each word.

    Parameters
    ----------
    scene : {"bank", "prices", "sharpness", "turned", "words", "learning"}
        What is shown. It also says what the other traits begin with.
    words : dict of str to two floats
        Where each word or key is: the scene's own words, or in "words" 1 to 8 of any names. From
        -0.8 to 4.7 in "bank" and "turned", -2.2 to 3.2 with prices, -3 to 3 in "words".
    sentence : {"boat", "money"}
        In "bank", the word that stands in the sentence's open place.
    asks : int
        The place of the word that asks, 0 to 7; a place beyond the end is the last.
    sharpness : float
        What the scores are multiplied by, 0 to 4: 1 / temperature.
    query : two floats
        With prices, the query.
    turn : int
        In "turned", by how many degrees W_Q turns, -180 to 180, against the clock.
    stretch : float
        In "turned", how many times as long W_Q makes a query, 0 to 3.
    start : int
        In "learning", which random W_Q it begins with, 0 to 999.
    step : float
        In "learning", how many steps have been taken, 0 to 100; between two, W_Q lies between.
    rate : float
        In "learning", the learning rate, 0.01 to 30.
    teacher : {"entry", "cost"}
        In "learning", what the loss is made of: the right entry, and it is the mean of -ln of the
        weight of that entry; or only what the right entry costs, and it is the mean square of how
        far the average cost is off.
    axes : two str
        In "words", what the two numbers mean.
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
    query = traitlets.Any([2, 1]).tag(sync=True)
    turn = Whole(-180, 180, 0).tag(sync=True)
    stretch = Number(0, 3, 1).tag(sync=True)
    start = Whole(0, 999, 7).tag(sync=True)
    step = Number(0, STEPS, 0).tag(sync=True)
    rate = Number(0.01, 30, 1).tag(sync=True)
    teacher = traitlets.Enum(["entry", "cost"], "entry").tag(sync=True)
    axes = traitlets.List(
        traitlets.Unicode(), ["first number", "second number"], minlen=2, maxlen=2
    ).tag(sync=True)
    compact = traitlets.Bool(False).tag(sync=True)

    def __init__(self, scene="bank", **traits):
        super().__init__(scene=scene, **BEGINNINGS.get(scene, {}) | traits)
        self._made = True

    @traitlets.validate("scene")
    def _check_scene(self, proposal):
        if getattr(self, "_made", False) and proposal["value"] != self.scene:
            raise ValueError(f"scene stays {self.scene!r}; got {proposal['value']!r}")
        return proposal["value"]

    @traitlets.validate("words")
    def _check_words(self, proposal):
        value, slots = proposal["value"], SLOTS[self.scene]
        if not isinstance(value, dict):
            raise ValueError(f"words needs a dict of names and places; got {value!r}")
        if slots is None:
            named = all(isinstance(name, str) and is_name(name) for name in value)
            if not named or not 1 <= len(value) <= MOST_WORDS:
                needed = f"1 to {MOST_WORDS} names, none blank, long or a number"
                raise ValueError(f"words needs {needed}; got {list(value)}")
        elif set(value) != (names := {name.lower() for slot in slots for name in _texts(slot)}):
            raise ValueError(f"words needs a place for each of {sorted(names)}; got {list(value)}")
        return {
            name: _point(f"words[{name!r}]", place, *BOUNDS[self.scene])
            for name, place in value.items()
        }

    @traitlets.validate("query")
    def _check_query(self, proposal):
        return _point("query", proposal["value"], *BOUNDS["prices"])

    @property
    def tokens(self):
        """The words of the sentence, or of the list, in order."""
        if self.scene == "learning":
            return list(DRINKS)
        slots = SLOTS[self.scene] or self.words
        return [slot if isinstance(slot, str) else self.sentence for slot in slots]

    @property
    def points(self):
        """Where the tokens are, (n, 2): their keys."""
        if self.scene == "learning":
            return KEYS.copy()
        names = (name if name in self.words else name.lower() for name in self.tokens)
        return np.array([self.words[name] for name in names], dtype=float)

    @property
    def values(self):
        """The values of the tokens: their points, (n, 2), or their prices, (n, 1)."""
        return PRICES[:, None] if self.scene in PRICED else self.points

    @property
    def w_q(self):
        """W_Q, (2, 2), for rows: q = x W_Q. The identity where a word asks for what it is."""
        if self.scene == "learning":
            return _learned(self.start, self.rate, self.step, SLOPES[self.teacher])
        angle = math.radians(self.turn) if self.scene == "turned" else 0
        stretch = self.stretch if self.scene == "turned" else 1
        c, s = stretch * math.cos(angle), stretch * math.sin(angle)
        return np.array([[c, s], [-s, c]])

    @property
    def scores(self):
        """The dot product of the query with each key, (n,), as it is."""
        if self.scene == "learning":
            return LEARNERS @ self.w_q @ KEYS.T  # (3, 3)
        if self.scene in PRICED:
            return self.points @ np.array(self.query, dtype=float)
        return self.points @ (self.points[min(self.asks, len(self.tokens) - 1)] @ self.w_q)

    @property
    def _scaled(self):
        divisor = 1 if self.scene in PRICED else math.sqrt(2)
        return self.scores * (1 if self.scene == "learning" else self.sharpness) / divisor

    @property
    def weights(self):
        """Softmax of the divided, sharpened scores, (n,)."""
        return softmax(self._scaled)

    @property
    def output(self):
        """The values blended by the weights: a point, (2,), or a price, (1,)."""
        return self.weights @ self.values

    @property
    def probabilities(self):
        """In "bank", softmax of the output times a column for each of the next words, (3,)."""
        if self.scene != "bank":
            raise AttributeError(f"probabilities need the scene bank; this one is {self.scene}")
        return softmax(self.output @ UNEMBEDDING)

    @property
    def loss(self):
        """In "learning", what each step makes smaller, as `teacher` says."""
        if self.scene != "learning":
            raise AttributeError(f"loss needs the scene learning; this one is {self.scene}")
        if self.teacher == "cost":
            return float(((self.weights @ PRICES - PRICES) ** 2).mean())
        return float(-np.log(np.diag(self.weights)).mean())


def _learned(start, rate, step, slopes):
    """W_Q after so many steps of gradient descent; between two steps, between the two."""
    w_q = 0.35 * word_vector(f"start {start}", "W_Q", 4).reshape(2, 2)
    for done in range(math.ceil(step)):
        weights = softmax(LEARNERS @ w_q @ KEYS.T / math.sqrt(2))
        slope = LEARNERS.T @ slopes(weights) @ KEYS / math.sqrt(2)
        w_q = w_q - min(1, step - done) * rate * slope
    return w_q


def _slopes_of_entry(weights):
    """How the mean of -ln of the right weights moves with each scaled score, (3, 3)."""
    return (weights - np.eye(3)) / 3


def _slopes_of_cost(weights):
    """How the mean square of what the blended cost is off moves with each scaled score, (3, 3)."""
    cost = weights @ PRICES  # (3,)
    return 2 / 3 * (cost - PRICES)[:, None] * weights * (PRICES - cost[:, None])


SLOPES = {"entry": _slopes_of_entry, "cost": _slopes_of_cost}


def _texts(slot):
    return (slot,) if isinstance(slot, str) else slot


def is_name(name):
    """Whether a reader's own word may be called so."""
    # A page keeps its words by name, and there names that are numbers would come first.
    fits = name.strip() and name.isprintable() and len(name) <= LONGEST
    return bool(fits) and not name.isdecimal()


def _point(name, value, low, high):
    """Return `value` as two plain numbers from `low` to `high`."""
    needed = f"{name} needs two numbers from {low} to {high}; got {value!r}"
    try:
        point = np.asarray(value, dtype=float)
    except (TypeError, ValueError):
        raise ValueError(needed) from None
    if point.shape != (2,) or not ((point >= low) & (point <= high)).all():
        raise ValueError(needed)
    return [int(x) if x.is_integer() else x for x in point.tolist()]
