"""Checker of chapter 11: the price of a sentence."""

import numpy as np

from attnlib import attention as exact
from attnlib.check.verdict import judge


def mean_price(function):
    """Check teacher forcing: the mean price -ln p of the right next words of a known sentence.

    Parameters
    ----------
    function : callable
        Takes a causal model, a sentence (a list of n whole numbers) and the number of the word
        that stands before each sentence; returns one number. `model(tokens)` takes a list or an
        array of n whole numbers and gives scores (n, n_tokens): row i is for what follows
        tokens[: i + 1].

    Returns
    -------
    Verdict
    """

    def behind(start, sentence):
        return [start, *sentence[:-1]]

    def shares(model, tokens):
        return exact.softmax(model(tokens))

    def price(shares, words):
        return -np.log(shares[np.arange(len(words)), words]).mean()

    def right(model, sentence, start):
        return price(shares(model, behind(start, sentence)), sentence)

    def of(change):
        """Return the mistake that does this to the rows of scores and the right words."""
        return lambda model, sentence, start: change(
            model(behind(start, sentence)), np.array(sentence)
        )

    def right_shares(scores, words):
        return exact.softmax(scores)[np.arange(len(words)), words]

    def entropy(shares):
        return -(shares * np.log(shares)).sum(axis=1)

    def guesses(model, sentence, start):
        tokens = [start]
        for _ in sentence:
            tokens.append(int(model(tokens)[-1].argmax()))
        return tokens[:-1]

    def each_alone(model, sentence, start):
        rows = [shares(model, [token])[0] for token in behind(start, sentence)]
        return price(np.array(rows), sentence)

    def last_row(model, sentence, start):
        row = shares(model, behind(start, sentence))[-1]
        return -np.log(row[sentence]).mean()

    mistakes = [
        (
            "You fed the sentence without shifting it, so each row has already read the word that "
            "it should foretell. Put start before it and leave out its last word.",
            lambda model, sentence, start: price(shares(model, sentence), sentence),
        ),
        (
            "Your rows come one too late: the row that foretells a word is the one before it. "
            "Behind start and the sentence, leave out the last row, not the first.",
            lambda model, sentence, start: price(shares(model, [start, *sentence])[1:], sentence),
        ),
        (
            "You shifted the wrong way: feed start first, then the sentence without its last word.",
            lambda model, sentence, start: price(shares(model, [*sentence[1:], start]), sentence),
        ),
        (
            "You shifted the wrong way: feed start first, then the sentence without its last word.",
            lambda model, sentence, start: price(shares(model, [*sentence, start])[1:], sentence),
        ),
        (
            "You rolled the sentence, so its last word comes first. What comes first is start.",
            lambda model, sentence, start: price(
                shares(model, [sentence[-1], *sentence[:-1]]), sentence
            ),
        ),
        (
            "Nothing foretells your first word: start is missing. It has a price too.",
            lambda model, sentence, start: price(shares(model, sentence[:-1]), sentence[1:]),
        ),
        (
            "The price of the first word is missing. Row 0, which has read start, foretells it.",
            lambda model, sentence, start: price(
                shares(model, behind(start, sentence))[1:], sentence[1:]
            ),
        ),
        (
            "The price of the last word is missing. Only as input is it not needed.",
            lambda model, sentence, start: price(
                shares(model, behind(start, sentence)[:-1]), sentence[:-1]
            ),
        ),
        (
            "You priced the words that were fed. The right words are the next ones: the sentence.",
            lambda model, sentence, start: price(
                shares(model, behind(start, sentence)), behind(start, sentence)
            ),
        ),
        (
            "You put 0 before the sentence. What comes first is start.",
            lambda model, sentence, start: right(model, sentence, 0),
        ),
        (
            "You fed each word alone. The model must also read what was written before it.",
            each_alone,
        ),
        (
            "You fed the model its own guesses. The sentence is known: feed its words.",
            lambda model, sentence, start: price(
                shares(model, guesses(model, sentence, start)), sentence
            ),
        ),
        (
            "You took the last row for every word. Row i foretells word i.",
            last_row,
        ),
        (
            "You priced one word alone. Take the mean over all words of the sentence.",
            of(lambda scores, words: -np.log(right_shares(scores, words)[-1])),
        ),
        (
            "You priced one word alone. Take the mean over all words of the sentence.",
            of(lambda scores, words: -np.log(right_shares(scores, words)[0])),
        ),
        (
            "You took each right word from every row. Row i foretells word i alone: index the "
            "rows with np.arange(n) beside the words.",
            of(lambda scores, words: -np.log(exact.softmax(scores)[:, words]).mean()),
        ),
        (
            "You averaged over all words of the vocabulary. Only the right one has a price.",
            of(lambda scores, words: -np.log(exact.softmax(scores)).mean()),
        ),
        (
            "You took the share of the model's best word. The price is that of the right one.",
            of(lambda scores, words: -np.log(exact.softmax(scores).max(axis=1)).mean()),
        ),
        (
            "This is the model's entropy: each share was weighed by itself. Only the share of the "
            "right word counts.",
            of(
                lambda scores, words: (
                    -(p := exact.softmax(scores) * 1.0).ravel() @ np.log(p).ravel() / len(p)
                )
            ),
        ),
        (
            "The softmax ran down the columns (axis 0), over the words of the sentence. The shares "
            "of each row must sum to 1.",
            of(lambda scores, words: price(exact.softmax(scores, axis=0), words)),
        ),
        (
            "Softmax ran over all scores at once. The shares of each row must sum to 1.",
            of(
                lambda scores, words: price(
                    exact.softmax(scores.ravel()).reshape(scores.shape), words
                )
            ),
        ),
        (
            "You took ln of the scores. Make shares of them first, by softmax.",
            of(lambda scores, words: price(scores, words)),
        ),
        (
            "This is the mean of -score: softmax is missing, or its powers are not divided by "
            "the sum of their row.",
            of(lambda scores, words: -scores[np.arange(len(words)), words].mean()),
        ),
        (
            "You divided scores by the sum of their row. Shares come from powers of e: softmax.",
            of(lambda scores, words: price(scores / scores.sum(axis=1, keepdims=True), words)),
        ),
        (
            "You took softmax twice: what is handed to it must be scores.",
            of(lambda scores, words: price(exact.softmax(exact.softmax(scores)), words)),
        ),
        (
            "The sign is wrong. The logarithm of a share is negative, and the price is -ln.",
            of(lambda scores, words: np.log(right_shares(scores, words)).mean()),
        ),
        (
            "You took the logarithm to base 2. The price is -ln, to base e: np.log.",
            of(lambda scores, words: -np.log2(right_shares(scores, words)).mean()),
        ),
        (
            "You took the logarithm to base 10. The price is -ln, to base e: np.log.",
            of(lambda scores, words: -np.log10(right_shares(scores, words)).mean()),
        ),
        (
            "This is the sum of the prices. Divide it by the number of words.",
            of(lambda scores, words: -np.log(right_shares(scores, words)).sum()),
        ),
        (
            "You divided by the number of tokens that the model knows. Divide by the number of "
            "words in the sentence.",
            of(lambda scores, words: -np.log(right_shares(scores, words)).sum() / scores.shape[1]),
        ),
        (
            "You divided by one word too many: start has no price.",
            of(lambda scores, words: -np.log(right_shares(scores, words)).sum() / (len(words) + 1)),
        ),
        (
            "This is -ln of the mean share. Take -ln of each share, then the mean.",
            of(lambda scores, words: -np.log(right_shares(scores, words).mean())),
        ),
        (
            "This is the mean of the shares. Take -ln of each first.",
            of(lambda scores, words: right_shares(scores, words).mean()),
        ),
        (
            "This is the mean of -share. The price of a share is its -ln.",
            of(lambda scores, words: -right_shares(scores, words).mean()),
        ),
        (
            "This is the mean of 1 - share. The price of a share is its -ln.",
            of(lambda scores, words: 1 - right_shares(scores, words).mean()),
        ),
        (
            "This is e to the mean price, the perplexity. Return the mean price itself.",
            of(lambda scores, words: np.exp(-np.log(right_shares(scores, words)).mean())),
        ),
    ]
    cases = {
        "a sentence of 5 words": (causal_model(7), [3, 1, 4, 1, 5], 6),
        "a sentence of 7 words": (causal_model(11, seed=1), [2, 10, 7, 7, 0, 9, 4], 1),
        "a sentence of 3 words": (causal_model(5, seed=2), [1, 4, 2], 3),
        "a sentence of one word": (causal_model(3, seed=3), [1], 2),
    }
    return judge(function, right, mistakes, cases, {"price": "for the whole sentence"})


def causal_model(n_tokens, seed=0):
    """Return a model of random numbers that reads each word and all before it."""
    table, early = np.random.default_rng(seed).normal(size=(2, n_tokens, n_tokens))

    def model(tokens):
        tokens = np.asarray(tokens)
        if tokens.ndim != 1 or tokens.dtype.kind not in "iu":
            raise TypeError(
                "the model takes a list of whole numbers; "
                f"got {tokens.dtype} of shape {tokens.shape}"
            )
        if tokens.size and not (0 <= tokens.min() and tokens.max() < n_tokens):
            raise ValueError(
                f"the model knows the tokens 0 to {n_tokens - 1}; got {tokens.tolist()}"
            )
        place = np.arange(len(tokens))
        fading = np.tri(len(place), k=-1) * 0.8 ** np.abs(place - place[:, None])
        # Softmax does not see what is added to a row; ln of a score is a number.
        return 5.0 + table[tokens] + fading @ early[tokens]

    model.__name__ = "model"
    return model
