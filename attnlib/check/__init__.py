"""Checkers for the exercises: hand one your function, and it says in words what is wrong.

>>> import numpy as np
>>> softmax(lambda scores: np.exp(scores) / np.exp(scores).sum())
Softmax ran over all entries at once. Each row must sum to 1 by itself.

A checker is a list: the right answer, the mistakes that people make, and inputs on which no two
of them agree. `judge` makes a verdict of it and of the learner's function. To add a checker, copy
a short one such as `scaled_scores` into the module of its chapter, name it here, then put solutions
into `tests/solutions.txt`; `tests/test_check.py` proves that the inputs tell them apart.
"""

from attnlib.check.backwards import softmax_backward
from attnlib.check.basics import (
    attention,
    attention_for_one_query,
    scaled_scores,
    softmax,
    weighted_average,
)
from attnlib.check.costs import grouped_attention, online_softmax
from attnlib.check.heads import (
    merge_heads,
    relative_bias,
    sinusoidal_positions,
    split_heads,
)
from attnlib.check.layers import cached_attention, cross_attention, layer_norm
from attnlib.check.learning import mean_price
from attnlib.check.masking import causal_mask, leak_test, masked_softmax, padding_mask
from attnlib.check.verdict import Verdict, judge

__all__ = [
    "Verdict",
    "attention",
    "attention_for_one_query",
    "cached_attention",
    "causal_mask",
    "cross_attention",
    "grouped_attention",
    "judge",
    "layer_norm",
    "leak_test",
    "masked_softmax",
    "mean_price",
    "merge_heads",
    "online_softmax",
    "padding_mask",
    "relative_bias",
    "scaled_scores",
    "sinusoidal_positions",
    "softmax",
    "softmax_backward",
    "split_heads",
    "weighted_average",
]
