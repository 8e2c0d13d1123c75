"""Letters: the small GPT of attnlib.induction, live, with heads that can be switched off."""

import base64
import functools
import re

import numpy as np
import traitlets

from attnlib.attention import softmax
from attnlib.models import induction
from attnlib.widgets.kit.base import CourseWidget, Whole

LETTERS = "abcdefghijklmnop"


class Letters(CourseWidget):
    """Letters that a model of two layers reads, and what it makes of them.

    The model answers each letter with what followed it the last time. Lines show where its heads
    look, bars the probability of each letter; each head can be switched off, and the page measures
    the accuracy without it on test sentences. See `attnlib.models.induction`.

    Parameters
    ----------
    text : str
        1 to 24 letters from a to p.
    place : int
        The letter that is asked at, from 0; past the end of the text it is the last one.
    off : list of [layer, head]
        The heads that add nothing, both counted from 0.

    Raises
    ------
    ValueError
        For other letters, too many of them, a head that does not exist or stands there twice, or
        a place outside 0 to 23.
    traitlets.TraitError
        For a value of the wrong type.
    """

    text = traitlets.Unicode("cfakdcgbfaec").tag(sync=True)
    place = Whole(0, induction.LENGTH - 1, induction.LENGTH - 1).tag(sync=True)
    off = traitlets.List().tag(sync=True)
    model = traitlets.Dict(read_only=True).tag(sync=True, constant=True)
    tests = traitlets.Unicode(read_only=True).tag(sync=True, constant=True)

    @traitlets.validate("text")
    def _check_text(self, proposal):
        return check_letters(proposal["value"])

    @traitlets.validate("off")
    def _check_off(self, proposal):
        heads = [list(head) for head in proposal["value"]]
        known = [[layer, head] for layer in (0, 1) for head in (0, 1)]
        if any(head not in known or heads.count(head) > 1 for head in heads):
            raise ValueError(f"off needs some of {known}, each once; got {heads}")
        return heads

    @traitlets.default("model")
    def _pack(self):
        """The weights, in whole numbers of 1/1024."""
        return _packed()

    @traitlets.default("tests")
    def _draw_tests(self):
        """The sentences on which a page measures, one after the other."""
        return _written(induction.held_out()[0].ravel())

    @property
    def tokens(self):
        """The letters as numbers, (n,)."""
        return np.array([LETTERS.index(letter) for letter in self.text])

    @property
    def probabilities(self):
        """The probability of each letter as the next one, at each place, (n, 16)."""
        return softmax(self._reads()[0])

    @property
    def weights(self):
        """Where each head looks, (2, 2, n, n): by layer and head, queries by keys."""
        return np.stack(self._reads()[1])

    @property
    def says(self):
        """The most probable letter at the place that is asked at."""
        return LETTERS[self.probabilities[min(self.place, len(self.text) - 1)].argmax()]

    @property
    def score(self):
        """The accuracy on the test sentences."""
        return self._left().accuracy(*induction.held_out())

    def _left(self):
        return induction.without(_model(), *map(tuple, self.off))

    def _reads(self):
        return self._left()(self.tokens)


def check_letters(text):
    """Return `text` if the model can read it."""
    if not re.fullmatch(f"[{LETTERS}]{{1,{induction.LENGTH}}}", text):
        raise ValueError(f"text needs 1 to {induction.LENGTH} letters from a to p; got {text!r}")
    return text


def _written(tokens):
    return "".join(LETTERS[token] for token in tokens)


@functools.cache
def _model():
    return induction.load(2, dtype=np.float64)


@functools.cache
def _packed():
    """The stored model as the page gets it: shapes in order, and its 16-bit numbers in base64.

    All low bytes come first. The high ones are nearly all alike, so together they compress well.
    """
    arrays = induction.stored("2")
    weights = {name: array for name, array in arrays.items() if array.dtype == np.int16}
    numbers = np.concatenate([array.ravel() for array in weights.values()])
    data = (numbers & 255).astype(np.uint8).tobytes() + (numbers >> 8).astype(np.int8).tobytes()
    return {
        "n_heads": int(arrays["0.n_heads"]),
        "shapes": [[name, *array.shape] for name, array in weights.items()],
        "data": base64.b64encode(data).decode(),
    }
