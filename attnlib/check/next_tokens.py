"""The checker of the loss of a language model on a known sentence."""

import numpy as np

from attnlib import attention as exact
from attnlib.check.checker import Checker


def before(sentence, start):
    """Return the words that stand before each word of a sentence."""
    return [start, *sentence[:-1]]


def loss(probabilities, words):
    """Return the mean of -ln of the probability that each row gives to its word."""
    return -np.log(of_words(probabilities, words)).mean()


def of_words(rows, words):
    """Return from each row the entry of its word."""
    return rows[np.arange(len(words)), words]


def fed(tokens, rows=slice(None), words=lambda sentence, start: sentence):
    """Return the loss of other tokens, rows or words."""

    def mean_cross_entropy(model, sentence, start):
        probabilities = exact.softmax(model(tokens(sentence, start)))
        return loss(probabilities[rows], words(sentence, start))

    return mean_cross_entropy


right = fed(before)


def scored(change):
    """Return something else made of the rows of scores and the right words."""
    return lambda model, sentence, start: change(model(before(sentence, start)), np.array(sentence))


def weighed(change):
    """Return something else made of the probabilities of the right words."""
    return scored(lambda scores, words: change(of_words(exact.softmax(scores), words)))


def guesses(model, sentence, start):
    """Return the loss of a model that reads its own guesses."""
    tokens = [start]
    for _ in sentence:
        tokens.append(int(model(tokens)[-1].argmax()))
    return loss(exact.softmax(model(tokens[:-1])), sentence)


def each_alone(model, sentence, start):
    """Return the loss of a model that reads one word at a time."""
    rows = [exact.softmax(model([token]))[0] for token in before(sentence, start)]
    return loss(np.array(rows), sentence)


def entropy(scores, words):
    """Return the mean entropy of the rows."""
    probabilities = exact.softmax(scores)
    return -(probabilities * np.log(probabilities)).sum(axis=1).mean()


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

    return model


mean_cross_entropy = Checker(
    """Check teacher forcing: the mean of -ln p of the right next words of a known sentence.

    The function takes a causal model, a sentence (a list of n whole numbers) and the number of the
    word that stands before each sentence; it returns one number. `model(tokens)` takes a list or an
    array of n whole numbers and gives scores (n, n_tokens): row i is for what follows
    tokens[: i + 1].
    """,
    right=lambda model, sentence, start: right(model, sentence, start),
    returns={"loss": "of the whole sentence"},
    cases={
        "a sentence of 5 words": (causal_model(7), [3, 1, 4, 1, 5], 6),
        "a sentence of 7 words": (causal_model(11, seed=1), [2, 10, 7, 7, 0, 9, 4], 1),
        "a sentence of 3 words": (causal_model(5, seed=2), [1, 4, 2], 3),
        "a sentence of one word": (causal_model(3, seed=3), [1], 2),
    },
    mistakes=[
        "You fed the sentence without shifting it, so each row has already read the word that it "
        "should predict. Put start before it and leave out its last word.",
        fed(lambda sentence, start: sentence),
        "Your rows come one too late: the row that predicts a word is the one before it. Feed "
        "start and the sentence, and leave out the last row, not the first.",
        fed(lambda sentence, start: [start, *sentence], rows=slice(1, None)),
        "You shifted the wrong way: feed start first, then the sentence without its last word.",
        fed(lambda sentence, start: [*sentence[1:], start]),
        fed(lambda sentence, start: [*sentence, start], rows=slice(1, None)),
        "You rolled the sentence, so its last word comes first. What comes first is start.",
        fed(lambda sentence, start: [sentence[-1], *sentence[:-1]]),
        "Nothing predicts your first word: start is missing. The first word has a loss too.",
        fed(lambda sentence, start: sentence[:-1], words=lambda words, start: words[1:]),
        "The loss of the first word is missing. Row 0, which has read start, predicts it.",
        fed(before, rows=slice(1, None), words=lambda sentence, start: sentence[1:]),
        "The loss of the last word is missing. Only as input is that word not needed.",
        fed(
            lambda sentence, start: before(sentence, start)[:-1],
            words=lambda sentence, start: sentence[:-1],
        ),
        "You took the probabilities of the words that were fed. The right words are the next ones: "
        "the sentence.",
        fed(before, words=before),
        "You put 0 before the sentence. What comes first is start.",
        fed(lambda sentence, start: before(sentence, 0)),
        "You fed each word alone. The model must also read what was written before it.",
        each_alone,
        "You fed the model its own guesses. The sentence is known: feed its words.",
        guesses,
        "You took the last row for every word. Row i predicts word i.",
        scored(lambda scores, words: -np.log(exact.softmax(scores[-1])[words]).mean()),
        "You took the loss of one word alone. Take the mean over all words of the sentence.",
        weighed(lambda p: -np.log(p[-1])),
        weighed(lambda p: -np.log(p[0])),
        "You took each right word from every row. Row i predicts word i alone: index the rows with "
        "np.arange(n) beside the words.",
        scored(lambda scores, words: -np.log(exact.softmax(scores)[:, words]).mean()),
        "You averaged over all words of the vocabulary. Only the right one has a loss.",
        scored(lambda scores, words: -np.log(exact.softmax(scores)).mean()),
        "You took the probability of the model's best word. The loss is that of the right one.",
        scored(lambda scores, words: -np.log(exact.softmax(scores).max(axis=1)).mean()),
        "This is the model's entropy: each probability was weighed by itself. Only the probability "
        "of the right word counts.",
        scored(entropy),
        "The softmax ran down the columns (axis 0), over the words of the sentence. The "
        "probabilities of each row must sum to 1.",
        scored(lambda scores, words: loss(exact.softmax(scores, axis=0), words)),
        "Softmax ran over all scores at once. The probabilities of each row must sum to 1.",
        scored(
            lambda scores, words: loss(exact.softmax(scores.ravel()).reshape(scores.shape), words)
        ),
        "You took ln of the scores. Turn them into probabilities first, by softmax.",
        scored(loss),
        "This is the mean of -score: softmax is missing, or its exponentials are not divided by "
        "the sum of their row.",
        scored(lambda scores, words: -of_words(scores, words).mean()),
        "You divided scores by the sum of their row. Divide their exponentials instead: softmax.",
        scored(lambda scores, words: loss(scores / scores.sum(axis=1, keepdims=True), words)),
        "You took softmax twice: what it is given must be scores.",
        scored(lambda scores, words: loss(exact.softmax(exact.softmax(scores)), words)),
        "The sign is wrong. The logarithm of a probability is negative, and the loss is -ln.",
        weighed(lambda p: np.log(p).mean()),
        "You took the logarithm to base 2. The loss is -ln, to base e: np.log.",
        weighed(lambda p: -np.log2(p).mean()),
        "You took the logarithm to base 10. The loss is -ln, to base e: np.log.",
        weighed(lambda p: -np.log10(p).mean()),
        "This is the sum of the losses. Divide it by the number of words.",
        weighed(lambda p: -np.log(p).sum()),
        "You divided by the number of tokens that the model knows. Divide by the number of words "
        "in the sentence.",
        scored(
            lambda scores, words: loss(exact.softmax(scores), words) * len(words) / scores.shape[1]
        ),
        "You divided by one word too many: start has no loss.",
        weighed(lambda p: -np.log(p).sum() / (len(p) + 1)),
        "This is -ln of the mean probability. Take -ln of each probability, then the mean.",
        weighed(lambda p: -np.log(p.mean())),
        "This is the mean of the probabilities. Take -ln of each first.",
        weighed(lambda p: p.mean()),
        "This is the mean of -p. The loss of a probability p is -ln p.",
        weighed(lambda p: -p.mean()),
        "This is the mean of 1 - p. The loss of a probability p is -ln p.",
        weighed(lambda p: 1 - p.mean()),
        "This is e to the mean loss, the perplexity. Return the mean loss itself.",
        weighed(lambda p: np.exp(-np.log(p).mean())),
    ],
)
