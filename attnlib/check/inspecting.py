"""The checkers of the ledger of a row, and of how much a head copies."""

import numpy as np

from attnlib import attention as exact
from attnlib.check.arrays import float32, random_arrays
from attnlib.check.checker import Checker

# The ledger


def mean_square(x, eps):
    """Return the root of the mean square of a row."""
    return np.sqrt((x**2).mean() + eps)


def booked(
    root=mean_square,
    of=lambda parts: parts.sum(axis=0),
    factors=lambda gamma, column: gamma * column,
    divide=lambda contributions, r: contributions / r,
    finish=lambda contributions: contributions,
):
    """Return a ledger in which a step may be another one."""

    def ledger(parts, gamma, column, eps):
        return finish(divide(parts @ factors(gamma, column), root(of(parts), eps)))

    return ledger


def each_by_itself(parts, gamma, column, eps):
    """Return a ledger in which each part has a norm of its own."""
    return parts @ (gamma * column) / np.sqrt((parts**2).mean(axis=1) + eps)


def centered(parts, gamma, column, eps):
    """Return a ledger with the norm that takes the mean away."""
    rows = parts - parts.mean(axis=1, keepdims=True)
    return booked()(rows, gamma, column, eps)


def of_parts(n_parts, d_model, eps, seed=0):
    """Return parts, factors and a column."""
    parts, gamma, column = random_arrays((n_parts, d_model), (d_model,), (d_model,), seed=seed)
    return parts, 1 + gamma / 3, column, eps


FIVE = of_parts(5, 7, 0.3)

ledger_of_row = Checker(
    """Check the ledger of a row, Eq. (2) of "What is a head doing?".

    The function takes parts (n_parts, d_model), which sum to a row, the factors of the last norm
    (d_model,), the column of a word in the unembedding (d_model,) and eps. It returns what each
    part adds to the logit of the word, with the size of the row held fixed.
    """,
    right=lambda parts, gamma, column, eps: booked()(parts, gamma, column, eps),
    returns={"contributions": "one for each part"},
    cases={
        "five parts": FIVE,
        "three parts": of_parts(3, 11, 0.1, seed=1),
        "one part": of_parts(1, 5, 0.2, seed=2),
        "no eps": of_parts(7, 3, 0.0, seed=3),
        "float32": (*float32(FIVE[:3]), 0.3),
    },
    mistakes=[
        "You gave each part a norm of its own. r is the size of the whole row, the sum of all "
        "parts.",
        each_by_itself,
        "You took r from all numbers of all parts. It is the size of their sum.",
        booked(of=lambda parts: parts),
        "You did not divide by r, the size of the row.",
        booked(divide=lambda contributions, r: contributions),
        "You multiplied by r. The norm divides by it.",
        booked(divide=lambda contributions, r: contributions * r),
        "The factors gamma of the norm are missing.",
        booked(factors=lambda gamma, column: column),
        "You divided by gamma. The norm multiplies by it.",
        booked(factors=lambda gamma, column: column / gamma),
        "The column of the word is missing.",
        booked(factors=lambda gamma, column: gamma),
        "r is the root of the mean square; the root is missing.",
        booked(root=lambda x, eps: (x**2).mean() + eps),
        "You took the root of the sum of squares. Take that of their mean.",
        booked(root=lambda x, eps: np.sqrt((x**2).sum() + eps)),
        "eps is missing: add it to the mean square, under the root.",
        booked(root=lambda x, eps: np.sqrt((x**2).mean())),
        "You added eps to the root. Add it to the mean square, under the root.",
        booked(root=lambda x, eps: np.sqrt((x**2).mean()) + eps),
        "You took the standard deviation, which subtracts the mean. This norm does not.",
        booked(root=lambda x, eps: np.sqrt(x.var() + eps)),
        "You subtracted means. This norm, an RMSNorm, does not.",
        centered,
        "This is the whole logit. Return what each part adds to it.",
        booked(finish=lambda contributions: contributions.sum()),
        "You added the parts up one after the other. Return what each adds by itself.",
        booked(finish=np.cumsum),
        "You took a softmax of the contributions. They are parts of one logit, as they are.",
        booked(finish=exact.softmax),
        "You divided by the logit. Return what each part adds, not which part of the whole it is.",
        booked(finish=lambda contributions: contributions / contributions.sum()),
        "You took sizes without their sign. A part may lower the logit.",
        booked(finish=np.abs),
        "You took r from the mean of the parts. It is the size of their sum.",
        booked(of=lambda parts: parts.mean(axis=0)),
    ],
)

# Copying


def copied(read=lambda logits: logits.diagonal().mean()):
    """Return a score that is read in another way from the logits that a head writes."""
    return lambda embeddings, w_v, w_o, unembedding: read(embeddings @ w_v @ w_o @ unembedding)


def off_diagonal(logits):
    """Return the mean of the logits of other words."""
    n = len(logits)
    return (logits.sum() - logits.trace()) / (n * (n - 1))


def of_words(n_words, d_model, d_v, seed=0):
    """Return embeddings, the two matrices of a head, and an unembedding."""
    return random_arrays(
        (n_words, d_model), (d_model, d_v), (d_v, d_model), (d_model, n_words), seed=seed
    )


ELEVEN = of_words(11, 5, 3)

copying_score = Checker(
    """Check how much a head copies.

    The function takes embeddings (n_words, d_model), the matrices of a head, (d_model, d_v) and
    (d_v, d_model), and an unembedding (d_model, n_words). It returns one number: what the head adds
    to the logit of a word when it looks at this word, averaged over all words.
    """,
    right=lambda embeddings, w_v, w_o, unembedding: copied()(embeddings, w_v, w_o, unembedding),
    returns={"score": "of this head"},
    cases={
        "eleven words": ELEVEN,
        "seven words": of_words(7, 13, 2, seed=1),
        "two words": of_words(2, 3, 5, seed=2),
        "float32": float32(ELEVEN),
    },
    mistakes=[
        "You averaged over all pairs of words. Take only the logit of the word that is looked at: "
        "the diagonal.",
        copied(lambda logits: logits.mean()),
        "You summed over the words. Take the mean.",
        copied(np.trace),
        "You counted the words that get their own largest logit. Average the logits themselves.",
        copied(lambda logits: (logits.argmax(axis=1) == np.arange(len(logits))).mean()),
        "You averaged the largest logit of each word, whichever word it belongs to.",
        copied(lambda logits: logits.max(axis=1).mean()),
        "You took probabilities. Average the logits, before a softmax.",
        copied(lambda logits: exact.softmax(logits).diagonal().mean()),
        "You subtracted the mean of the other words. Average the logits of the words themselves.",
        copied(lambda logits: logits.diagonal().mean() - off_diagonal(logits)),
        "This is the mean of the other words. Take the word that is looked at: the diagonal.",
        copied(off_diagonal),
        "You took sizes without their sign. A head may also lower the word that it reads.",
        copied(lambda logits: np.abs(logits.diagonal()).mean()),
        "You took the median. Take the mean.",
        copied(lambda logits: np.median(logits.diagonal())),
        "You took the largest over all words. Take the mean.",
        copied(lambda logits: logits.diagonal().max()),
        "You took the first word alone. Average over all words.",
        copied(lambda logits: logits[0, 0]),
        "You took squares. Average the logits as they are.",
        copied(lambda logits: (logits.diagonal() ** 2).mean()),
        "The head is missing: W_V and W_O stand between the embeddings and the unembedding.",
        lambda embeddings, w_v, w_o, unembedding: (embeddings @ unembedding).diagonal().mean(),
        "You used the embeddings twice. The logits are read with the unembedding.",
        lambda embeddings, w_v, w_o, unembedding: (
            ((embeddings @ w_v @ w_o) * embeddings).sum(axis=1).mean()
        ),
        "This is the trace of W_V W_O alone. Ask it about words: embeddings at its left, the "
        "unembedding at its right.",
        lambda embeddings, w_v, w_o, unembedding: np.trace(w_v @ w_o),
        "You added the word itself. The score is about what the head adds.",
        lambda embeddings, w_v, w_o, unembedding: (
            ((embeddings + embeddings @ w_v @ w_o) @ unembedding).diagonal().mean()
        ),
    ],
)
