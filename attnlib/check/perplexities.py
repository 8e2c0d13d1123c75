"""The checker of the perplexity of a text."""

import numpy as np

from attnlib import attention as exact
from attnlib.check.arrays import float32, random_array
from attnlib.check.checker import Checker
from attnlib.check.next_tokens import of_words


def scored(change=lambda p: np.exp(-np.log(p).mean()), rows=slice(-1), words=slice(1, None)):
    """Return something else made of the probabilities of the tokens, from other rows or tokens."""

    def perplexity(logits, tokens):
        return change(of_words(exact.softmax(logits)[rows], tokens[words]))

    return perplexity


def rescored(probabilities_of):
    """Return the perplexity with other probabilities than softmax."""
    return lambda logits, tokens: np.exp(
        -np.log(of_words(probabilities_of(logits[:-1]), tokens[1:])).mean()
    )


def of_rows(change):
    """Return something made of the rows of probabilities, whatever the tokens are."""
    return lambda logits, tokens: change(exact.softmax(logits[:-1]))


right = scored()


def text(n, n_tokens, seed=0):
    """Return random logits (n, n_tokens) and tokens (n,)."""
    tokens = np.random.default_rng(seed).integers(n_tokens, size=n)
    return random_array(n, n_tokens, seed=seed), tokens


FIVE = text(5, 7)

perplexity = Checker(
    """Check the perplexity of a text, Eq. (3) of "A model that writes".

    The function takes logits (n, n_tokens), in which row i is for the token after token i, and the
    tokens (n,) of the text. It returns one number, for all tokens but the first, which nothing
    predicts.
    """,
    right=lambda logits, tokens: right(logits, tokens),
    returns={"perplexity": "of the whole text"},
    cases={
        "a text of 5 tokens": FIVE,
        "a text of 7 tokens": text(7, 11, seed=1),
        "a text of 3 tokens": text(3, 5, seed=2),
        "a text of 2 tokens": text(2, 3, seed=3),
        "float32": float32(FIVE),
    },
    mistakes=[
        "You took from each row the token that it has just read. Row i is for the next token: "
        "logits[:-1] and tokens[1:].",
        scored(rows=slice(None), words=slice(None)),
        scored(rows=slice(-1), words=slice(-1)),
        scored(rows=slice(1, None), words=slice(1, None)),
        "You shifted the wrong way: row i is for token i + 1, so logits[:-1] goes with tokens[1:].",
        scored(rows=slice(1, None), words=slice(-1)),
        "You rolled the tokens, so the last row is asked for the first token. Nothing follows the "
        "last one: leave out its row.",
        lambda logits, tokens: scored(rows=slice(None), words=slice(None))(
            logits, np.roll(tokens, -1)
        ),
        "This is the loss. The perplexity is e to this power.",
        scored(lambda p: -np.log(p).mean()),
        "You took e to the sum of the losses. Take their mean.",
        scored(lambda p: np.exp(-np.log(p).sum())),
        "The sign is wrong: this is e to the mean of ln p, the inverse of the perplexity.",
        scored(lambda p: np.exp(np.log(p).mean())),
        "You averaged 1 / p. Average -ln p first, and then take e to that power.",
        scored(lambda p: (1 / p).mean()),
        "You took 1 / the mean probability. Average -ln p instead, then take e to that power.",
        scored(lambda p: 1 / p.mean()),
        "You mixed two bases: the loss is in nats (np.log), so raise e to it, not 2.",
        scored(lambda p: 2 ** -np.log(p).mean()),
        "You mixed two bases: a loss with log2 needs 2 to its power, not e.",
        scored(lambda p: np.exp(-np.log2(p).mean())),
        "You mixed two bases: a loss with log10 needs 10 to its power, not e.",
        scored(lambda p: np.exp(-np.log10(p).mean())),
        "You divided by the number of all tokens. The first one is not predicted, so there is one "
        "loss less.",
        scored(lambda p: np.exp(-np.log(p).sum() / (len(p) + 1))),
        "You took the probability of the model's best token. Take that of the token that came.",
        of_rows(lambda rows: np.exp(-np.log(rows.max(axis=1)).mean())),
        "This is e to the model's own entropy. Only the probabilities of the tokens that came "
        "count.",
        of_rows(lambda rows: np.exp(-(rows * np.log(rows)).sum(axis=1).mean())),
        "You averaged over all tokens of the vocabulary. Only the one that came counts.",
        of_rows(lambda rows: np.exp(-np.log(rows).mean())),
        "You took the loss of one token alone. Take the mean over all of them.",
        scored(lambda p: np.exp(-np.log(p[-1]))),
        scored(lambda p: np.exp(-np.log(p[0]))),
        "You took each token from every row. Row i is asked for one token alone: index the rows "
        "with np.arange beside the tokens.",
        lambda logits, tokens: np.exp(-np.log(exact.softmax(logits[:-1])[:, tokens[1:]]).mean()),
        "The softmax ran down the columns (axis 0). The probabilities of each row must sum to 1.",
        rescored(lambda rows: exact.softmax(rows, axis=0)),
        "Softmax ran over all logits at once. The probabilities of each row must sum to 1.",
        rescored(lambda rows: np.exp(rows) / np.exp(rows).sum()),
        "Softmax is missing, or its exponentials are not divided by the sum of their row.",
        rescored(np.exp),
        "You took softmax twice: what it is given must be logits.",
        rescored(lambda rows: exact.softmax(exact.softmax(rows))),
        "This is the square of the perplexity. Raise e to the mean loss, not to twice the mean.",
        scored(lambda p: np.exp(-2 * np.log(p).mean())),
    ],
)
