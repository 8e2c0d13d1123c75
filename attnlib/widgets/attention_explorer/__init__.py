"""AttentionExplorer: a sentence, d_k, a mask and a divisor; the attention weights they give."""

import re

import numpy as np
import traitlets

from attnlib.attention import softmax
from attnlib.masks import causal_mask, padding_mask, window_mask
from attnlib.widgets.kit.base import CourseWidget, Whole
from attnlib.widgets.kit.constants import DIVISORS, word_vector

MAX_TOKENS = 64
MAX_D_K = 512
D_V = 4  # size of a value
MASKS = ("none", "causal", "padding", "both", "window")


class AttentionExplorer(CourseWidget):
    """Attention weights of a sentence whose words have random queries, keys and values.

    Every word gets a query and a key of `d_k` independent numbers with mean 0 and variance 1, and
    a value of four, always the same ones. The dot products of queries and keys are divided, masked,
    and turned into weights row by row, and by these the values are blended: Eqs. (3) to (6) of
    chapter 2. The vectors are random, so the picture shows how attention works, not what the words
    mean.

    Parameters
    ----------
    sentence : str
        1 to 64 words, parted by spaces.
    d_k : int
        Size of a query and of a key, 1 to 512.
    mask : {"none", "causal", "padding", "both", "window"}
        Who may attend to whom.
    length : int
        How many tokens are real under a padding mask; the others are filler.
    width : int
        How far a token sees under a window mask.
    divisor : {"sqrt", "none", "d_k"}
        What the scores are divided by: the square root of d_k, nothing, or d_k.
    row : int
        The token whose row is looked at, from 0.

    Raises
    ------
    ValueError
        For a sentence of no words or more than 64, or a number outside its range.
    traitlets.TraitError
        For a value of the wrong type, or a mask or divisor that does not exist.
    """

    sentence = traitlets.Unicode("The cat sat on the mat").tag(sync=True)
    d_k = Whole(1, MAX_D_K, 16).tag(sync=True)
    mask = traitlets.Enum(MASKS, "none").tag(sync=True)
    length = Whole(1, MAX_TOKENS, 4).tag(sync=True)
    width = Whole(0, MAX_TOKENS - 1, 1).tag(sync=True)
    divisor = traitlets.Enum(list(DIVISORS), "sqrt").tag(sync=True)
    row = Whole(0, MAX_TOKENS - 1, 0).tag(sync=True)

    @traitlets.validate("sentence")
    def _check_sentence(self, proposal):
        n = len(_words(proposal["value"]))
        if not 1 <= n <= MAX_TOKENS:
            raise ValueError(f"sentence needs 1 to {MAX_TOKENS} words; got {n}")
        return proposal["value"]

    @property
    def tokens(self):
        """The words of the sentence."""
        return _words(self.sentence)

    @property
    def Q(self):  # noqa: N802
        """One query a word, (n, d_k)."""
        return np.stack([word_vector(word, "query", self.d_k) for word in self.tokens])

    @property
    def K(self):  # noqa: N802
        """One key a word, (n, d_k)."""
        return np.stack([word_vector(word, "key", self.d_k) for word in self.tokens])

    @property
    def V(self):  # noqa: N802
        """One value a word, (n, 4)."""
        return np.stack([word_vector(word, "value", D_V) for word in self.tokens])

    @property
    def scores(self):
        """Dot products of queries and keys, not yet divided, (n, n)."""
        return self.Q @ self.K.T

    @property
    def allowed(self):
        """True where a query may attend to a key, (n, n)."""
        n = len(self.tokens)
        real = padding_mask([min(self.length, n)], n)[0]
        return {
            "none": np.ones((n, n), bool),
            "causal": causal_mask(n),
            "padding": np.broadcast_to(real, (n, n)),
            "both": causal_mask(n) & real,
            "window": window_mask(n, self.width),
        }[self.mask]

    @property
    def weights(self):
        """The attention weights, (n, n): each row sums to 1."""
        scaled = self.scores / DIVISORS[self.divisor](self.d_k)
        return softmax(np.where(self.allowed, scaled, -np.inf))

    @property
    def output(self):
        """What the weights make of the values, (n, 4)."""
        return self.weights @ self.V


def _words(sentence):
    return [word for word in re.split(r"[ \t\r\n]+", sentence) if word]
