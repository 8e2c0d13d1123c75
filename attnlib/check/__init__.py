"""Checkers for the exercises: call one with your function, and it says in words what is wrong.

>>> import numpy as np
>>> softmax(lambda scores: np.exp(scores) / np.exp(scores).sum())
The softmax ran over all entries at once. Each row must sum to 1 by itself.

Each checker is a `Checker`: the right answer, inputs to try, and the mistakes that people make,
each as advice beside a wrong answer. No two wrong answers agree on all inputs. To add a checker,
copy a short one such as `scaled_scores` into a module of its own, name it here, then put solutions
into `tests/solutions.txt`; `tests/test_check.py` proves that the inputs separate the mistakes.
"""

from attnlib.check.averaging import weighted_average
from attnlib.check.caching import cached_attention
from attnlib.check.checker import Checker, Verdict
from attnlib.check.dot_products import (
    attention,
    attention_for_one_query,
    cross_attention,
    scaled_scores,
)
from attnlib.check.gradients import softmax_backward
from attnlib.check.grouping import grouped_attention
from attnlib.check.heads import merge_heads, split_heads
from attnlib.check.inspecting import copying_score, ledger_of_row
from attnlib.check.leaks import leak_test
from attnlib.check.masks import causal_mask, padding_mask
from attnlib.check.next_tokens import mean_cross_entropy
from attnlib.check.next_words import next_word
from attnlib.check.norms import layer_norm
from attnlib.check.pairs import merge_pair
from attnlib.check.perplexities import perplexity
from attnlib.check.relative import relative_bias
from attnlib.check.running import runs_the_writer
from attnlib.check.sampling import sample_tokens, top_k
from attnlib.check.serving import accept_draft, count_pages, merge_parts
from attnlib.check.sinusoids import sinusoidal_positions
from attnlib.check.softmaxes import masked_softmax, softmax
from attnlib.check.streaming import online_softmax
from attnlib.check.turning import rotary
from attnlib.check.writing import write_with_cache

__all__ = [
    "Checker",
    "Verdict",
    "accept_draft",
    "attention",
    "attention_for_one_query",
    "cached_attention",
    "causal_mask",
    "copying_score",
    "count_pages",
    "cross_attention",
    "grouped_attention",
    "layer_norm",
    "leak_test",
    "ledger_of_row",
    "masked_softmax",
    "mean_cross_entropy",
    "merge_heads",
    "merge_pair",
    "merge_parts",
    "next_word",
    "online_softmax",
    "padding_mask",
    "perplexity",
    "relative_bias",
    "rotary",
    "runs_the_writer",
    "sample_tokens",
    "scaled_scores",
    "sinusoidal_positions",
    "softmax",
    "softmax_backward",
    "split_heads",
    "top_k",
    "weighted_average",
    "write_with_cache",
]
