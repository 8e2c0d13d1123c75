"""What every checker is made of, and how it reaches its verdict.

A `Checker` holds the right answer of an exercise, inputs to try it on, and common mistakes,
each as a wrong answer with one piece of advice. It runs a learner's function on the inputs.
If the results are those of a planned mistake, it gives the advice for that mistake;
otherwise it says what differs and where.
"""

import inspect
import textwrap
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from attnlib.check.attempts import Crash, attempt, is_blank, parts, same, type_name
from attnlib.check.differences import describe, difference, listed

SEQUENCE = (
    " One remark: you returned a {}, which was read as an array. np.array(...) makes one of it."
)
WIDER = (
    " One remark: {} came in and {} went out. np.sqrt of a plain number gives a float64, and so "
    "does np.zeros; math.sqrt and np.zeros_like do not."
)


class Text(NamedTuple):
    """A text that stands beside another one, in three parts: the second is where they differ."""

    title: str
    before: str
    word: str
    after: str

    def __str__(self):
        """Return its lines, with the word between arrows."""
        word = f">>{self.word}<<" if self.word else ""
        return textwrap.fill(f"{self.title}: {self.before}{word}{self.after}", 76)


@dataclass(frozen=True, repr=False)
class Verdict:
    """What a checker says: true if the solution is right, and a message that says why not.

    A judge that has two texts to compare puts them into `texts`.
    """

    right: bool
    message: str
    texts: tuple = ()

    def __bool__(self):
        """Tell whether the solution is right."""
        return self.right

    def __repr__(self):
        """Return the message and the texts, which is what a notebook shows."""
        return "\n\n".join([self.message, *map(str, self.texts)])


@dataclass(frozen=True, eq=False, repr=False)
class Checker:
    """A checker of one exercise, to be called with a learner's function.

    Parameters
    ----------
    task : str
        What the learner's function takes and returns; this is the checker's own docstring.
    right : callable
        The right answer. The names of its parameters appear in the messages.
    returns : dict of str to str
        The name of each result, and what its entries or axes are.
    cases : dict of str to tuple
        The inputs, each under a name that fits after "For", the plain ones first. Their sizes
        should differ, so that no size can be typed in.
    mistakes : list of str and callable
        Each piece of advice, followed by the wrong answer or answers that deserve it.

    Returns
    -------
    Verdict
        Calling a checker neither raises, nor warns, nor prints, whatever the learner's code does.
        Where the system has signals it does not run for ever either.

    Raises
    ------
    ValueError
        If there are no cases or no results.
    """

    task: str
    right: Callable
    returns: dict
    cases: dict
    mistakes: list

    def __post_init__(self):
        if not self.cases or not self.returns:
            counts = f"{len(self.cases)} and {len(self.returns)}"
            raise ValueError(f"a checker needs cases and returns; got {counts}")
        object.__setattr__(self, "__doc__", self.task)  # for help() and Jupyter's question mark

    def __call__(self, function):
        """Return the verdict on a learner's function."""
        if is_blank(function):
            return Verdict(False, "Not solved yet: there is no function to check.")
        if not callable(function):
            came = type_name(function)
            return Verdict(
                False, f"Pass the function itself, without calling it; you passed {came}."
            )
        attempts = []
        for inputs in self.cases.values():
            attempts.append(self.attempt(function, inputs))
            if attempts[-1].stopped:
                break  # the other inputs would take as long
        verdict = self.verdict(function, attempts)
        return noted(verdict) if any(each.printed for each in attempts) else verdict

    def attempt(self, function, inputs):
        """Run a function, the learner's or another one, on the inputs of one case."""
        return attempt(function, inputs, len(self.returns))

    def wrong_answers(self):
        """Yield (advice, wrong answer) for each planned mistake."""
        advice = None
        for each in self.mistakes:
            if isinstance(each, str):
                advice = each
            else:
                yield advice, each

    def names(self):
        """Return the names of the inputs."""
        return [*inspect.signature(self.right).parameters]

    def verdict(self, function, attempts):
        """Return the verdict on what a function did with the inputs."""
        inputs = [*self.cases.values()]
        expected = [self.attempt(self.right, each).result for each in inputs]
        for case, tried in enumerate(attempts):
            if not same(tried.result, expected[case]):
                return Verdict(False, self.refusal(name_of(function), attempts, expected, case))
        return self.verdict_on_habits(attempts, expected)

    def refusal(self, name, attempts, expected, case):
        """Return the message for a function that is wrong in this case."""
        tried, case_name = attempts[case], [*self.cases][case]
        given = listed(map(describe, self.names(), self.cases[case_name]))
        result = tried.result
        if is_blank(result):
            return self.refusal_of_nothing(name, attempts, case)
        if isinstance(result, Crash) and result.kind == "NotImplementedError":
            return f"Not solved yet: {name} raised NotImplementedError."
        if tried.stopped:
            return f"{name} {result.text} when given {given}."
        advice = self.diagnosis([each.result for each in attempts], case)
        if isinstance(result, Crash):
            # Many mistakes end in the same error, so the advice is no more than a guess.
            reason = f" A frequent reason: {advice}" if advice else ""
            return f"{name} raised {result.text} when given {given}.{reason}"
        return advice or difference(tried, expected[case], self.returns, given, case_name)

    def refusal_of_nothing(self, name, attempts, case):
        """Return the message for a function that returns nothing in this case."""
        result = attempts[case].result
        if not all(is_blank(each.result) for each in attempts):
            return (
                f"{name} returns {result} for {[*self.cases][case]}: a `return` is missing on the "
                "way that these inputs take."
            )
        if attempts[case].printed:
            return (
                f"{name} prints its result but returns {result}: end it with `return` instead of "
                "`print`."
            )
        shown = "..." if result is Ellipsis else result
        return f"Not solved yet: {name} returns {shown}, so there is nothing to check."

    def diagnosis(self, results, case):
        """Return the advice for the mistake that gives these results, or None.

        A mistake that agrees on all inputs goes before one that agrees up to the first wrong
        result. The latter must be the only one, and True, False and NaN alone prove nothing: many
        a mistake ends there.
        """
        inputs = [*self.cases.values()]

        def agrees(wrong, upto):
            answers = (self.attempt(wrong, each).result for each in inputs[:upto])
            return all(map(same, results[:upto], answers))

        if len(results) == len(inputs):
            for advice, wrong in self.wrong_answers():
                if agrees(wrong, len(inputs)):
                    return advice
        if not is_characteristic(results[case]):
            return None
        likely = {advice for advice, wrong in self.wrong_answers() if agrees(wrong, case + 1)}
        return likely.pop() if len(likely) == 1 else None

    def verdict_on_habits(self, attempts, expected):
        """Return the verdict on right numbers: inputs must be left alone, and digits kept."""
        names, remark = self.names(), ""
        for tried, result, inputs in zip(attempts, expected, self.cases.values(), strict=True):
            if tried.changed:
                words = (
                    f"The numbers are right, but your function changes its input "
                    f"{names[tried.changed[0]]} in place, and its owner may still need it. Work on "
                    "a new array."
                )
                return Verdict(False, words)
            floats = any(isinstance(each, np.ndarray) and each.dtype.kind == "f" for each in inputs)
            for came, needed in zip(parts(tried.result), parts(result), strict=True):
                least = needed.dtype.itemsize if floats else 4  # float32 will do if none came in
                if came.dtype.kind == "f" and came.dtype.itemsize < least:
                    words = f"Digits are lost: expected {needed.dtype}, but you returned"
                    return Verdict(False, f"{words} {came.dtype}.")
                if came.dtype.kind == "f" and came.dtype.itemsize > needed.dtype.itemsize:
                    remark = WIDER.format(needed.dtype, came.dtype)
        sequence = next((each.sequence for each in attempts if each.sequence), None)
        if sequence:  # which explains a wider dtype too
            remark = SEQUENCE.format(sequence)
        return Verdict(True, f"Right: all {len(attempts)} checks passed.{remark}")


def noted(verdict):
    """Return a verdict that says where to see what the function prints."""
    note = "What your function prints is not shown here; call it yourself to see it."
    return Verdict(verdict.right, f"{verdict.message} {note}", verdict.texts)


def name_of(function):
    """Return the name of a learner's function, or "your function"."""
    try:
        name = function.__name__
    except BaseException:  # an object whose own __getattr__ fails
        name = None
    return name if type(name) is str and name.isidentifier() else "your function"


def is_characteristic(result):
    """Tell whether a result is unlikely to come from two different mistakes."""
    if isinstance(result, Crash):
        return True  # its advice is worded as a guess
    return any(
        np.isfinite(part).any() if part.dtype.kind == "f" else part.size > 1
        for part in parts(result)
        if isinstance(part, np.ndarray)
    )
