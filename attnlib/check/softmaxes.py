"""The checkers of softmax, with and without a mask."""

import math

import numpy as np

from attnlib import attention as exact
from attnlib.check import advice
from attnlib.check.advice import unshifted_softmax
from attnlib.check.arrays import float32, random_array
from attnlib.check.checker import Checker


def top(scores):
    """Return the largest score of each row (n_q, 1)."""
    return scores.max(axis=-1, keepdims=True)


def total(weights):
    """Return the sum of each row (n_q, 1)."""
    return weights.sum(axis=-1, keepdims=True)


def divided(exponentials):
    """Return exponentials divided by the sum of their row; a row of zeros stays as it is."""
    return exponentials / np.where(total(exponentials) == 0, 1, total(exponentials))


SCORES = random_array(3, 5)
LARGEST_OF_ALL = (
    "You subtracted the largest score of the whole array, so the exponentials of a row far below "
    "it are all 0: subtract each row's own largest score."
)

softmax = Checker(
    """Check softmax along the rows, Eqs. (5) and (7) of "Queries, keys and values".

    The function takes scores (n_q, n_k) and returns weights (n_q, n_k). Scores of 10,000 must not
    overflow, and a score of -inf has weight 0.
    """,
    right=lambda scores: exact.softmax(scores),
    returns={"weights": "one for each query and key"},
    cases={
        "ordinary scores": (SCORES,),
        "more rows than columns": (random_array(7, 2, seed=1),),
        "rows near 10,000, 0 and -10,000": (SCORES + np.array([[1e4], [0.0], [-1e4]]),),
        "scores from -10,000 to 10,000": (np.array([[1e4, -1e4, 0.0], [-1e4, 1e4, 1e4 - 1]]),),
        "a score of -inf in each row": (np.where(np.eye(3, 5, k=1) == 1, -np.inf, SCORES),),
        "scores of float32": (SCORES.astype(np.float32),),
    },
    mistakes=[
        advice.COLUMNS,
        lambda scores: exact.softmax(scores, axis=0),
        advice.EVERYTHING,
        lambda scores: exact.softmax(scores.ravel()).reshape(scores.shape),
        lambda scores: np.exp(scores) / np.exp(scores).sum(),
        advice.NOT_DIVIDED,
        lambda scores: np.exp(scores - top(scores)),
        np.exp,
        advice.OVERFLOW,
        unshifted_softmax,
        advice.AXIS_LOST,
        lambda scores: scores - scores.max(axis=-1),
        LARGEST_OF_ALL,
        lambda scores: unshifted_softmax(scores - scores.max()),
        lambda scores: divided(np.exp(scores - scores.max())),
        "You subtracted the largest score of each column, which changes the weights: subtract the "
        "largest of each row.",
        lambda scores: unshifted_softmax(scores - scores.max(axis=0)),
        "You subtracted the smallest score, so the exponential of the largest still overflows: "
        "subtract the largest.",
        lambda scores: unshifted_softmax(scores - scores.min(axis=-1, keepdims=True)),
        "You subtracted the mean, so the exponential of the largest score still overflows: "
        "subtract the largest.",
        lambda scores: unshifted_softmax(scores - scores.mean(axis=-1, keepdims=True)),
        "These are the logarithms of the weights: take their exponentials.",
        lambda scores: np.log(exact.softmax(scores)),
        "You divided the scores by the square root of n_k. Softmax alone does not scale.",
        lambda scores: exact.softmax(scores / math.sqrt(scores.shape[-1])),
    ],
)


# With a mask


def filled(scores, mask, low=-np.inf):
    """Return the scores with a number in the place of those that are blocked."""
    return np.where(mask, scores, low)


def allowed(mask):
    """Tell for each row whether it has anything to attend to (n_q, 1)."""
    return mask.any(axis=-1, keepdims=True)


def masked(scores, mask):
    """Return the right answer."""
    return exact.softmax(filled(scores, mask))


def masked_late(scores, mask):
    """Return weights that are blocked after softmax."""
    return exact.softmax(scores) * mask


def shifted_exponentials(scores, mask):
    """Return the exponentials of each row, shifted by its largest allowed score, undivided."""
    return np.exp(filled(scores, mask) - np.where(allowed(mask), top(filled(scores, mask)), 0))


def unshifted(scores, mask):
    """Return masked softmax without a shift."""
    return divided(np.exp(filled(scores, mask)))


def not_low_enough():
    """Return softmaxes with a large negative number at blocked scores, set or added."""
    for low in (-1e2, -1e3, -1e4, -1e5):
        yield lambda scores, mask, low=low: exact.softmax(filled(scores, mask, low))
        yield lambda scores, mask, low=low: exact.softmax(filled(scores, mask, low)) * allowed(mask)
        yield lambda scores, mask, low=low: exact.softmax(scores + low * ~mask)
        yield lambda scores, mask, low=low: exact.softmax(scores + low * ~mask) * allowed(mask)
        yield lambda scores, mask, low=low: exact.softmax(scores + low * ~mask) * mask


def some_inputs():
    """Return the cases of masked softmax."""
    scores, mask = random_array(5, 7), random_array(5, 7, seed=1) > -0.5
    empty = mask & (np.arange(5) != 2)[:, None]
    blocked = np.array([[300], [900], [5e3], [5e4], [1e6]])
    wide = np.vstack([scores + 1e4 * np.arange(5)[:, None], 1e4 * scores[:1]])
    return {
        "ordinary scores": (scores, mask),
        "a row with nothing to attend to": (scores, empty),
        "allowed scores of 0": (
            np.where(random_array(3, 5, seed=3) > 0, 0.0, random_array(3, 5)),
            mask[:3, :5],
        ),
        "scores near -1,000,000": (scores - 1e6, mask),
        "scores near 1,000,000": (scores + 1e6, empty),
        "rows far from each other, the last one wide": (wide, np.vstack([mask, mask[:1]])),
        # Whatever is added to blocked scores leaves one of them above the others.
        "blocked scores up to 1,000,000": (np.where(mask, scores, blocked), mask),
        "a mask that blocks nothing": (random_array(3, 2, seed=2), np.ones((3, 2), dtype=bool)),
        "scores of float32": float32((scores, empty)),
    }


EMPTY_ROW = "A row with nothing to attend to must be zeros. "

masked_softmax = Checker(
    """Check a softmax that leaves out what a mask blocks: mask first, softmax second.

    The function takes scores (n_q, n_k) and a mask, bool (n_q, n_k), True = may attend; it returns
    weights (n_q, n_k). A row with nothing to attend to gives zeros.
    """,
    right=masked,
    returns={"weights": "one for each query and key"},
    cases=some_inputs(),
    mistakes=[
        "The mask has no effect: blocked keys still get weight.",
        lambda scores, mask: exact.softmax(scores),
        advice.INVERTED,
        lambda scores, mask: masked(scores, ~mask),
        advice.MASKED_LATE,
        masked_late,
        "Your blocked scores are 0. A score of 0 still gets weight, because e^0 = 1. A blocked "
        "score must be -inf.",
        lambda scores, mask: exact.softmax(scores * mask),
        "You treat every score of 0 as blocked, but an allowed score can be 0, too. Use the mask "
        "to decide, not the score.",
        lambda scores, mask: masked(scores, mask & (scores != 0)),
        "You added True and False to the scores, as 1 and 0. A blocked score must be -inf.",
        lambda scores, mask: exact.softmax(scores + mask),
        advice.COLUMNS,
        lambda scores, mask: exact.softmax(filled(scores, mask), axis=0),
        advice.EVERYTHING,
        lambda scores, mask: masked(scores.ravel(), mask.ravel()).reshape(scores.shape),
        advice.NOT_DIVIDED,
        lambda scores, mask: np.exp(scores) * mask,
        shifted_exponentials,
        "You divided by the number of allowed keys. Divide by the sum of the row's exponentials.",
        lambda scores, mask: shifted_exponentials(scores, mask) / np.maximum(total(mask), 1),
        "You divided the scores by the square root of n_k. Softmax alone does not scale.",
        lambda scores, mask: masked(scores / np.float32(np.sqrt(scores.shape[1])), mask),
        advice.AXIS_LOST,
        lambda scores, mask: scores - scores.max(axis=-1),
        EMPTY_ROW + "Yours is uniform, which is what a large negative number in the place of -inf "
        "makes of it.",
        lambda scores, mask: np.where(allowed(mask), masked(scores, mask), 1 / mask.shape[1]),
        EMPTY_ROW + "-1e9 added to all of its scores changes nothing for softmax.",
        lambda scores, mask: exact.softmax(scores - 1e9 * ~mask),
        EMPTY_ROW + "Yours holds NaN, from -inf - (-inf) or from 0 / 0.",
        lambda scores, mask: np.where(allowed(mask), masked(scores, mask), np.nan),
        "A blocked score must be -inf. A large negative number, in its place or added to it, is "
        "not low enough: other scores can be as low, or the blocked one as high.",
        *not_low_enough(),
        "Beside a much larger blocked score nothing is left of a row. Either you mask after "
        "softmax and divide again, or you shift by the largest score before you mask: mask first.",
        lambda scores, mask: masked_late(scores, mask) / total(masked_late(scores, mask)),
        lambda scores, mask: np.nan_to_num(
            masked_late(scores, mask) / total(masked_late(scores, mask))
        ),
        lambda scores, mask: unshifted(scores - top(scores), mask),
        LARGEST_OF_ALL,
        lambda scores, mask: unshifted(scores - filled(scores, mask).max(), mask),
        "Without a shift, the exponentials of large scores overflow, and those of scores far "
        "below 0 vanish: subtract each row's largest allowed score before you take exponentials.",
        lambda scores, mask: unshifted_softmax(filled(scores, mask)),
        lambda scores, mask: np.nan_to_num(unshifted_softmax(filled(scores, mask))),
        unshifted,
        lambda scores, mask: divided(np.exp(scores) * mask),
    ],
)
