"""The checkers of how a language model chooses its next token."""

from dataclasses import replace

import numpy as np

from attnlib import attention as exact
from attnlib.check.arrays import float32, random_array
from attnlib.check.checker import Checker

# A token at a temperature


def passed(probabilities, draws):
    """Return for each draw how many running sums of the probabilities it has reached."""
    sums = probabilities.cumsum()
    return (sums <= draws[:, None]).sum(axis=1).clip(max=len(sums) - 1)


def drawn(probabilities_at, token=passed, at_zero=lambda logits: logits.argmax()):
    """Return sampling with other probabilities at a temperature, another draw or another end."""

    def sample(logits, temperature, draws):
        if temperature == 0 and at_zero is not None:
            return np.full(len(draws), at_zero(logits))
        return token(probabilities_at(logits, temperature), draws)

    return sample


def heated(logits, temperature):
    """Return the probabilities at a temperature."""
    return exact.softmax(logits / temperature)


right = drawn(heated)


def in_order(probabilities, draws):
    """Return for each draw a place in the sorted list of the probabilities."""
    return passed(np.sort(probabilities)[::-1], draws)


def even_draws(n):
    """Return n numbers from 0 to 1, the same distance apart, and none of them at an end."""
    return (np.arange(n) + 0.5) / n


sample_tokens = Checker(
    """Check sampling at a temperature, Eq. (2) of "A model that writes".

    The function takes logits (n_tokens,), a temperature, and draws (n_draws,), numbers from 0 to 1.
    It returns a token for each draw: the first one at which the sum of the probabilities so far is
    above the draw. At temperature 0 this is the token of the largest logit for every draw.
    """,
    right=lambda logits, temperature, draws: right(logits, temperature, draws),
    returns={"tokens": "one for each draw"},
    cases={
        "temperature 0.5": (random_array(7), 0.5, even_draws(53)),
        "temperature 1": (random_array(11, seed=1), 1.0, even_draws(31)),
        "temperature 2": (random_array(5, seed=2), 2.0, even_draws(43)),
        "temperature 0": (random_array(7, seed=5), 0, even_draws(13)),
    },
    mistakes=[
        "You multiplied by the temperature. Divide the logits by it.",
        drawn(lambda logits, temperature: exact.softmax(logits * temperature)),
        drawn(lambda logits, temperature: exact.softmax(logits * temperature), at_zero=None),
        "The temperature plays no part. Divide the logits by it before softmax.",
        drawn(lambda logits, temperature: exact.softmax(logits)),
        drawn(lambda logits, temperature: exact.softmax(logits), at_zero=None),
        "You divided the probabilities by the temperature. Divide the logits, before softmax.",
        drawn(lambda logits, temperature: exact.softmax(logits) / temperature),
        "You divided twice by the temperature.",
        drawn(lambda logits, temperature: exact.softmax(logits / temperature**2)),
        "You divided by the square root of the temperature. Divide by the temperature itself.",
        drawn(lambda logits, temperature: exact.softmax(logits / temperature**0.5)),
        "You always took the most probable token. That is right at temperature 0 only; elsewhere "
        "the draw decides.",
        drawn(heated, lambda probabilities, draws: np.full(len(draws), probabilities.argmax())),
        "You divided by a temperature of 0, which gives NaN. Take the token of the largest logit "
        "there.",
        drawn(heated, at_zero=lambda logits: 0),
        "At temperature 0 you took the token of the smallest logit.",
        drawn(heated, at_zero=lambda logits: logits.argmin()),
        "At temperature 0 you gave all tokens the same probability. It is the other way round: the "
        "largest logit takes everything.",
        lambda logits, temperature, draws: (
            right(logits, temperature, draws)
            if temperature
            else passed(np.full(len(logits), 1 / len(logits)), draws)
        ),
        "You compared the draw with the probabilities themselves. Compare it with their running "
        "sums: np.cumsum.",
        drawn(heated, lambda probabilities, draws: (probabilities <= draws[:, None]).sum(axis=1)),
        drawn(heated, lambda probabilities, draws: (probabilities > draws[:, None]).argmax(axis=1)),
        "You counted the running sums above the draw. Count those that the draw has reached.",
        drawn(
            heated,
            lambda probabilities, draws: (probabilities.cumsum() > draws[:, None]).sum(axis=1),
        ),
        "Your tokens are one too large: the first token is number 0.",
        drawn(heated, lambda probabilities, draws: passed(probabilities, draws) + 1),
        "Your tokens are one too small.",
        drawn(heated, lambda probabilities, draws: passed(probabilities, draws) - 1),
        "You sorted the probabilities, so your numbers are places in the sorted list. Return the "
        "tokens: leave the order as it is.",
        drawn(heated, in_order),
        "You added up exponentials that do not sum to 1. Divide them by their sum first.",
        drawn(lambda logits, temperature: np.exp(logits / temperature)),
        "You added up the logits. Turn them into probabilities first, by softmax.",
        drawn(lambda logits, temperature: logits / temperature),
    ],
)

# The k most probable


def kept(probabilities, k):
    """Return where the k largest probabilities are; of equal ones, the first."""
    return np.isin(np.arange(len(probabilities)), np.argsort(-probabilities, kind="stable")[:k])


def cut(keeps, finish=lambda left: left / left.sum()):
    """Return top-k with other tokens kept, or finished otherwise."""
    return lambda probabilities, k: finish(np.where(keeps(probabilities, k), probabilities, 0))


class AnyOfEquals(Checker):
    """A checker that accepts any k tokens if several are equally probable.

    Where probabilities are equal, it moves the larger results to the first of these tokens.
    """

    def attempt(self, function, inputs):
        """Run a function on the inputs of one case, and sort its results for equal inputs."""
        tried, probabilities = super().attempt(function, inputs), inputs[0]
        result = tried.result
        if not isinstance(result, np.ndarray) or result.dtype.kind not in "biuf":
            return tried
        if result.shape != probabilities.shape:
            return tried
        result = result.copy()
        for each in np.unique(probabilities):
            equal = probabilities == each
            result[equal] = np.sort(result[equal])[::-1]
        return replace(tried, result=result)


top_k_right = cut(kept)
SEVEN = exact.softmax(2 * random_array(7))

top_k = AnyOfEquals(
    """Check top-k: only the k most probable tokens are left, and their probabilities sum to 1.

    The function takes probabilities (n_tokens,) and k; it returns the new probabilities
    (n_tokens,), 0 for all but the k most probable tokens. Where several are equally probable, any
    k of them will do.
    """,
    right=lambda probabilities, k: top_k_right(probabilities, k),
    returns={"probabilities": "one for each token"},
    cases={
        "k = 3": (SEVEN, 3),
        "k = 2": (exact.softmax(random_array(11, seed=1)), 2),
        "k = 1": (exact.softmax(random_array(5, seed=2)), 1),
        "k = n_tokens": (exact.softmax(random_array(3, seed=3)), 3),
        "float32": (*float32((SEVEN,)), 3),
        "equal probabilities": (np.array([2, 5, 3, 5, 1, 5, 2]) / 23, 2),
    },
    mistakes=[
        "What is left does not sum to 1. Divide it by its sum.",
        cut(kept, lambda left: left),
        "You kept one token too few.",
        cut(lambda probabilities, k: kept(probabilities, k - 1)),
        "You kept one token too many.",
        cut(lambda probabilities, k: kept(probabilities, k + 1)),
        "You kept more than k tokens where several are equally probable. Keep exactly k of them: "
        "np.argsort puts them into an order.",
        cut(lambda probabilities, k: probabilities >= np.sort(probabilities)[-k]),
        "You kept the least probable tokens. Keep the most probable ones.",
        cut(lambda probabilities, k: kept(-probabilities, k)),
        "You kept the tokens that you should take away.",
        cut(lambda probabilities, k: ~kept(probabilities, k)),
        "You kept the first k tokens of the vocabulary. Keep the k most probable ones.",
        cut(lambda probabilities, k: np.arange(len(probabilities)) < k),
        "You kept the most probable token alone, whatever k is.",
        cut(lambda probabilities, k: kept(probabilities, 1)),
        "All tokens are still there. Set those that are not among the k most probable to 0.",
        lambda probabilities, k: probabilities.copy(),
        "You took a second softmax. Its inputs are logits; probabilities are only divided by "
        "their sum.",
        lambda probabilities, k: exact.softmax(
            np.where(kept(probabilities, k), probabilities, -np.inf)
        ),
        "You took a second softmax, in which the tokens with 0 came back: e to the power of 0 is "
        "1. Divide what is left by its sum.",
        cut(kept, exact.softmax),
        "The tokens that are left have equal probabilities. They keep their proportions.",
        lambda probabilities, k: kept(probabilities, k) / k,
        "You sorted the probabilities. Each must stay at the place of its token.",
        lambda probabilities, k: np.sort(top_k_right(probabilities, k))[::-1],
        lambda probabilities, k: np.sort(top_k_right(probabilities, k)),
        "You divided by k. Divide by the sum of what is left.",
        cut(lambda probabilities, k: kept(probabilities, k), lambda left: left / (left > 0).sum()),
        "What was taken away went in equal parts to the tokens that are left. Each should grow in "
        "proportion: divide by the sum.",
        cut(
            kept,
            lambda left: np.where(left > 0, left + (1 - left.sum()) / (left > 0).sum(), 0),
        ),
    ],
)
