"""AttentionExplorer: a sentence, d_k, a mask and a divisor; the attention weights they give."""

import re

import traitlets

from attnlib.widgets.kit.base import CourseWidget, Whole
from attnlib.widgets.kit.constants import DIVISORS

MAX_TOKENS = 64
MAX_D_K = 512
MASKS = ("none", "causal", "padding", "both", "window")


class AttentionExplorer(CourseWidget):
    """Attention weights of a sentence whose words have random queries, keys and values.

    Every word gets a query and a key of `d_k` independent numbers with mean 0 and variance 1, and
    a value of four, always the same ones. The dot products of queries and keys are divided, masked,
    and turned into weights row by row, and by these the values are blended: Eqs. (3) to (6) of
    "Queries, keys and values". The vectors are random, so the picture shows how attention works,
    not what the words mean.

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
        n = len(re.findall(r"[^ \t\r\n]+", proposal["value"]))
        if not 1 <= n <= MAX_TOKENS:
            raise ValueError(f"sentence needs 1 to {MAX_TOKENS} words; got {n}")
        return proposal["value"]
