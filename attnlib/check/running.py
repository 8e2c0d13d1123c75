"""A judge that lets the model that writes compute with a learner's function."""

import functools

import numpy as np

from attnlib.check.attempts import Crash, as_arrays, attempt, is_blank, same
from attnlib.check.checker import Text, Verdict, name_of, noted
from attnlib.check.dot_products import attention
from attnlib.check.masks import causal_mask
from attnlib.check.sampling import sample_tokens
from attnlib.check.softmaxes import softmax
from attnlib.check.turning import rotary
from attnlib.models.own_parts import Parts, write_with
from attnlib.models.writing import writer
from attnlib.world import show

PARTS = {
    "softmax": softmax,
    "causal_mask": causal_mask,
    "attention": attention,
    "rotary": rotary,
    "sample_tokens": sample_tokens,
}
BEGINNING = "Ada lived in a cozy apartment near the farm. The farm was her favorite place."
N_WORDS, SEED = 40, 0


class Beside:
    """A function that counts at how many of its calls `ours` returns something else."""

    def __init__(self, function, ours, n_results):
        self.function, self.ours, self.n_results = function, ours, n_results
        self.calls = self.others = 0

    def __call__(self, *inputs):
        """Return what the function returns."""
        expected = as_arrays(self.ours(*inputs), self.n_results)
        result = self.function(*inputs)
        self.calls += 1
        self.others += not same(as_arrays(result, self.n_results), expected)
        return result


def runs_the_writer(**part):
    """Let the model that writes compute with your function, and say what becomes of its text.

    The model continues a story by 40 words, at a temperature of 0.8 and with the same random
    numbers each time. If your function does not return what ours does, the checker of the same name
    says which mistake it is.

    Parameters
    ----------
    part : callable
        Your function, under the name of the part that it replaces: `softmax`, `causal_mask`,
        `attention`, `rotary` or `sample_tokens`. It takes and returns what the checker of that name
        asks for.

    Returns
    -------
    Verdict
        True if your function returns what ours does wherever the model calls it. Its `texts` are
        the text that the model writes with our function, and the one that it writes with yours.

    Raises
    ------
    TypeError
        If there is not exactly one function.
    ValueError
        If the model has no such part.
    """
    if len(part) != 1:
        raise TypeError(f"runs_the_writer takes one function, named by its part; got {len(part)}")
    ((name, function),) = part.items()
    if name not in PARTS:
        raise ValueError(f"the part must be one of {', '.join(PARTS)}; got {name}")
    checker = PARTS[name]
    if is_blank(function) or not callable(function):
        return checker(function)
    ours()  # before the clock runs
    beside = Beside(function, getattr(Parts(), name), len(checker.returns))
    tried = attempt(lambda: written(Parts(**{name: beside})), ())
    if tried.stopped:
        words = f"{name_of(function)} {tried.result.text} while the model was writing."
        return Verdict(False, words)
    said = checker(function)
    if isinstance(tried.result, Crash):
        words = f"{name_of(function)} passes its checker, but the model raised {tried.result.text}."
        return Verdict(False, words) if said else said
    verdict = compared(name_of(function), said, beside, [*tried.result])
    return noted(verdict) if tried.printed and verdict else verdict


def written(parts):
    """Return the tokens that the model writes with these parts, after the beginning."""
    draws = np.random.default_rng(SEED).random(N_WORDS)
    return write_with(parts, writer().encode(BEGINNING), draws)


@functools.cache
def ours():
    """Return the tokens that it writes with its own parts."""
    return tuple(written(Parts()))


def compared(name, said, beside, yours):
    """Return the verdict on a function with which the model has written the tokens `yours`.

    `said` is what its checker says, and `beside` has counted its results.
    """
    pairs = enumerate(zip(ours(), yours, strict=False))
    least = min(len(ours()), len(yours))
    at = next((i for i, pair in pairs if pair[0] != pair[1]), least)
    changed = at < max(len(ours()), len(yours))
    if not changed and not beside.others:
        remark = "" if said else f" One remark: {said.message}"
        words = f"Right: with {name} the model writes the same {len(yours)} words.{remark}"
        return Verdict(True, words, (text("With both functions", yours, at),))
    texts = text("With our function", ours(), at), text("With your function", yours, at)
    wrong = said.message
    if said:
        wrong = f"{name} passes its checker, but in the model it returns something else."
    if changed:
        end = f"The text first changes at word {at + 1} of {len(ours())}."
    else:
        end = (
            f"{beside.others} of its {beside.calls} results are different in the model, too, but "
            f"they change none of these {len(yours)} words."
        )
    return Verdict(False, f"{wrong} {end}", texts)


def text(title, tokens, at):
    """Return a text that the model has written, with the word at which it first changes."""
    vocabulary = writer().vocabulary
    words = [vocabulary[token] for token in tokens]
    before, upto, whole = show(words[:at]), show(words[: at + 1]), show(words)
    before += " " * upto.startswith(f"{before} ")
    end = " (Here the story ends.)" if len(words) < N_WORDS else ""
    return Text(title, before, upto[len(before) :], whole[len(upto) :] + end)
