"""The checker of writing with a cache."""

import numpy as np

from attnlib.check.checker import Checker


class CountingModel:
    """A model of random numbers that refuses what a cache makes unnecessary.

    `model(tokens, cache)` reads tokens that follow those in the list `cache`, and adds them to it.
    """

    def __init__(self, n_tokens, n_start, seed=0):
        self.n_start = n_start
        self.table, self.early = np.random.default_rng(seed).normal(size=(2, n_tokens, n_tokens))

    def __call__(self, tokens, cache):
        """Return the logits (n_new, n_tokens) after each of the tokens."""
        tokens = np.asarray(tokens)
        if not isinstance(cache, list):
            raise TypeError(f"cache must be a list; got {type(cache).__name__}")
        if tokens.ndim != 1 or tokens.dtype.kind not in "iu" or not tokens.size:
            raise TypeError(
                "the model takes a list of at least one whole number; "
                f"got {tokens.dtype} of shape {tokens.shape}"
            )
        if not cache and len(tokens) > self.n_start:
            raise ValueError("with an empty cache the model reads the beginning alone")
        rows = []
        for token in tokens.tolist():
            fading = 0.8 ** np.arange(len(cache), 0, -1)
            early = fading @ self.early[cache] if cache else 0
            rows.append(self.table[token] + early)
            cache.append(token)
        return np.array(rows)


def written(after=lambda tokens, word: [word], first=lambda tokens: tokens, steps=0):
    """Return writing that feeds other tokens, first or after each word, or writes more words."""

    def write(model, tokens, n):
        cache, text, new = [], list(tokens), first(list(tokens))
        for _ in range(n + steps):
            text.append(int(model(new, cache)[-1].argmax()))
            new = after(text, text[-1])
        return np.array(text)

    return write


right = written()


def chosen(choice):
    """Return writing that chooses another word from the logits (n_new, n_tokens)."""

    def write(model, tokens, n):
        cache, text, new = [], list(tokens), list(tokens)
        for _ in range(n):
            new = [int(choice(model(new, cache)))]
            text += new
        return np.array(text)

    return write


def forgetful(model, tokens, n):
    """Return a text in which each word is written after the one before it alone."""
    text = list(tokens)
    text.append(int(model(text, [])[-1].argmax()))
    while len(text) < len(tokens) + n:
        text.append(int(model(text[-1:], [])[-1].argmax()))
    return np.array(text)


write_with_cache = Checker(
    """Check writing with a cache: the beginning is read once, then each new token alone.

    The function takes a model, the tokens of a beginning (a list of whole numbers) and n; it
    returns an array of the beginning and n more tokens, each the most probable one. The cache is a
    list, empty at first. `model(new, cache)` gives logits (n_new, n_tokens) for the new tokens,
    which follow those in the cache, and adds them to it.
    """,
    right=lambda model, tokens, n: right(model, tokens, n),
    returns={"text": "the beginning and n more tokens"},
    cases={
        "a beginning of 3 tokens": (CountingModel(11, 3), [3, 1, 4], 7),
        "a beginning of 5 tokens": (CountingModel(13, 5, seed=1), [2, 10, 7, 7, 0], 3),
        "a beginning of one token": (CountingModel(7, 1, seed=2), [5], 11),
        "one new token": (CountingModel(17, 2, seed=3), [5, 8], 1),
    },
    mistakes=[
        "You gave the model the whole text at each step, and the cache holds it already, so the "
        "model has read it more than once. After the beginning, give it the new token alone.",
        written(after=lambda text, word: list(text)),
        "You gave the model two tokens at each step, one of which it had read. Give it the new "
        "token alone.",
        written(after=lambda text, word: text[-2:]),
        "You gave the model the beginning again at each step. The cache holds it already: give it "
        "the new token alone.",
        lambda model, tokens, n: written(after=lambda text, word: list(tokens))(model, tokens, n),
        "You made a new cache at each step, so the model has forgotten what came before the new "
        "token. Make one cache, before the loop.",
        forgetful,
        "The model has read only the last token of the beginning. Give it the whole beginning in "
        "the first step.",
        written(first=lambda tokens: tokens[-1:]),
        "The model has read only the first token of the beginning. Give it the whole beginning in "
        "the first step.",
        written(first=lambda tokens: tokens[:1]),
        "The model has read the beginning backwards.",
        written(first=lambda tokens: tokens[::-1]),
        "You wrote one token too many.",
        written(steps=1),
        "You wrote one token too few.",
        written(steps=-1),
        "You chose the least probable token.",
        chosen(lambda logits: logits[-1].argmin()),
        "You took the row of the first new token. The last row is for the token that comes next.",
        chosen(lambda logits: logits[0].argmax()),
        "The largest number of all rows is not what you need, but the largest of the last row.",
        chosen(lambda logits: logits.argmax() % logits.shape[1]),
        chosen(lambda logits: logits.max(axis=0).argmax()),
        "You returned the new tokens alone. Return the beginning too.",
        lambda model, tokens, n: right(model, tokens, n)[len(tokens) :],
        "You returned the last token alone. Return the whole text.",
        lambda model, tokens, n: right(model, tokens, n)[-1],
        "You returned the logits. Return the text.",
        lambda model, tokens, n: model(tokens, []),
    ],
)
