"""Verdicts, and the judge that reaches them.

`judge` runs a learner's function on the inputs of an exercise. If the results are those of a
planned mistake, it answers with the words that stand beside that mistake; if they are nobody's, it
says what differs and where.
"""

import inspect
import math
import re
import traceback
import warnings
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True, repr=False)
class Verdict:
    """What a checker says: true if the solution is right, and a message that tells why not."""

    right: bool
    message: str

    def __bool__(self):
        """Tell whether the solution is right."""
        return self.right

    def __repr__(self):
        """Return the message, which is what a notebook shows."""
        return self.message


def judge(function, right, mistakes, cases, returns, *, keeps_dtype=False):
    """Compare a learner's function with the right one and with every planned mistake.

    Parameters
    ----------
    function : callable
        The learner's, which takes what `right` takes.
    right : callable
        The right solution. The names of its parameters appear in the messages.
    mistakes : list of (str, callable)
        What to say, and a wrong solution that deserves it. The first that fits is taken.
    cases : dict of str to tuple
        The inputs, each under a name that fits after "For", the plain ones first.
    returns : dict of str to str
        The name of each result, and what its entries or axes are.
    keeps_dtype : bool
        Refuse a float64 result from float32. Otherwise it is only remarked upon.

    Returns
    -------
    Verdict
        The learner's code can make this neither raise nor warn.
    """
    if is_blank(function):
        return Verdict(False, "Not solved yet: there is no function to check.")
    if not callable(function):
        came = type(function).__name__
        return Verdict(False, f"Hand over the function itself, without calling it; got {came}.")
    inputs = [*cases.values()]
    attempts = [attempt(function, each) for each in inputs]
    expected = [attempt(right, each).result for each in inputs]
    names = [*inspect.signature(right).parameters]
    wrong = (i for i, tried in enumerate(attempts) if not same(tried.result, expected[i]))
    case = next(wrong, None)
    if case is None:
        return judge_manners(attempts, expected, names, keeps_dtype)

    tried, name = attempts[case], getattr(function, "__name__", "<lambda>")
    name = "your function" if name == "<lambda>" else name
    given = listed(map(describe, names, inputs[case]))
    crashed = isinstance(tried.result, Crash)
    if is_blank(tried.result):
        message = f"Not solved yet: {name} returned {tried.result}, so there is nothing to check."
    elif crashed and tried.result.kind == "NotImplementedError":
        message = f"Not solved yet: {name} raised NotImplementedError."
    elif words := diagnose([each.result for each in attempts], mistakes, inputs, case):
        message = words
        if crashed:
            message += f" ({name} raised {tried.result.kind} when given {given}.)"
    elif crashed:
        message = f"{name} raised {tried.result.text} when given {given}."
    else:
        message = difference(tried, expected[case], returns, given, [*cases][case])
    return Verdict(False, message)


@dataclass(frozen=True)
class Crash:
    """What is left of a function that raised: its error in words."""

    text: str

    @property
    def kind(self):
        """The name of the error."""
        return self.text.split(":")[0]


@dataclass(frozen=True)
class Attempt:
    """What a function did with its inputs: its result, or a Crash, and what else was seen."""

    result: object
    changed: tuple  # the positions of the inputs that it changed in place
    overflowed: bool


def attempt(function, inputs):
    """Run a function on copies of its inputs, and let neither an error nor a warning out."""
    given = [each.copy() if isinstance(each, np.ndarray | list) else each for each in inputs]
    with warnings.catch_warnings(record=True) as seen, np.errstate(all="warn"):
        warnings.simplefilter("always")
        try:
            result = kept(function(*given))
        except (Exception, SystemExit) as error:
            text = traceback.format_exception_only(error)[-1].strip().rstrip(".")
            # An address differs from run to run, and the stored output of a cell must not.
            result = Crash(re.sub(r"0x[0-9a-fA-F]+", "0x...", text)[:200])
    changed = tuple(
        i
        for i, (value, original) in enumerate(zip(given, inputs, strict=True))
        if isinstance(value, np.ndarray | list)
        and not np.array_equal(value, original, equal_nan=True)
    )
    return Attempt(result, changed, any("overflow" in str(item.message) for item in seen))


def kept(result):
    """Return a result as arrays that its maker cannot change any more; lists stay lists."""
    if isinstance(result, np.ndarray | np.generic | bool | int | float | complex):
        return np.array(result)
    return tuple(map(kept, result)) if isinstance(result, tuple) else result


def is_blank(thing):
    """Tell whether this is what a starting cell leaves: None, Ellipsis or NotImplemented."""
    return thing is None or thing is Ellipsis or thing is NotImplemented


def same(result, other):
    """Tell whether two results agree: in shape, in kind, and in numbers up to rounding."""
    if isinstance(result, Crash) or isinstance(other, Crash):
        return isinstance(result, Crash) and isinstance(other, Crash) and result == other
    if isinstance(result, tuple) and isinstance(other, tuple):
        return len(result) == len(other) and all(map(same, result, other))
    if not (isinstance(result, np.ndarray) and isinstance(other, np.ndarray)):
        return False
    if result.shape != other.shape or result.dtype.kind != other.dtype.kind:
        return False
    if result.dtype.kind not in "biuf":
        return False
    # Half of the digits: far above what another order of summation does, far below a mistake.
    spacing = [np.finfo(each.dtype).eps for each in (result, other) if each.dtype.kind == "f"]
    tolerance = math.sqrt(max(spacing, default=0))
    with np.errstate(all="ignore"):
        return bool(np.allclose(result, other, rtol=tolerance, atol=tolerance, equal_nan=True))


def diagnose(results, mistakes, inputs, case):
    """Return the words for the mistake that gives these results, or None.

    A mistake that agrees on all inputs goes before one that agrees on the first wrong result
    alone. The latter must be the only one: an error, NaN or True can come from many a mistake.
    """
    for words, wrong in mistakes:
        answers = (attempt(wrong, each).result for each in inputs)
        if all(map(same, results, answers)):
            return words
    likely = {
        words
        for words, wrong in mistakes
        if same(results[case], attempt(wrong, inputs[case]).result)
    }
    return likely.pop() if len(likely) == 1 else None


def difference(tried, expected, returns, given, case_name):
    """Return in words what is wrong with a result that belongs to no planned mistake."""
    names = [*returns]
    if len(parts(tried.result)) != len(parts(expected)):
        count = f" of {len(tried.result)}" if isinstance(tried.result, tuple) else ""
        came = type(tried.result).__name__ + count
        return f"Expected {listed(names)}: end with `return {', '.join(names)}`. Got {came}."
    # From the last result back: A is made before Z, so a mistake in both began there.
    name, part, wanted = next(
        (name, part, wanted)
        for name, part, wanted in reversed(
            [*zip(names, parts(tried.result), parts(expected), strict=True)]
        )
        if not same(part, wanted)
    )
    words = wrong_kind(part, wanted, name, returns[name], given)
    if not words:
        words = f"For {case_name}: {wrong_numbers(part, wanted, name)}"
        if tried.overflowed:
            words += " A power of e overflowed on the way."
    return words


def wrong_kind(part, wanted, name, meaning, given):
    """Return in words what is wrong with the type, shape or dtype of a result, or None."""
    if not isinstance(part, np.ndarray):
        needed = f"a NumPy array of shape {wanted.shape}" if wanted.ndim else "True or False"
        advice = " Wrap it in np.array." if isinstance(part, list) else ""
        return f"Expected {name}, {needed}; got {type(part).__name__}.{advice}"
    if part.shape != wanted.shape:
        if not wanted.ndim:
            return f"Expected one {name} {meaning}; got an array of shape {part.shape}."
        came = part.shape if part.ndim else "a single number"
        return f"Expected {name} of shape {wanted.shape}, {meaning}; got {came} for {given}."
    if part.dtype.kind != wanted.dtype.kind:
        kinds = {"b": "True and False", "f": "floats", "i": "whole numbers", "u": "whole numbers"}
        came = f"{kinds[part.dtype.kind]}, " if part.dtype.kind in kinds else ""
        advice = " .astype(bool) turns 1 and 0 into them." if wanted.dtype == bool else ""
        needed = kinds[wanted.dtype.kind] if wanted.ndim else "True or False"
        return f"Expected {needed}; got {came}{part.dtype}.{advice if wanted.ndim else ''}"
    return None


def wrong_numbers(part, wanted, name):
    """Return in words what is wrong with numbers of the right shape and kind."""
    if part.ndim == 0:
        return f"expected {wanted}, got {part}."
    if part.dtype == bool:
        wrong = np.argwhere(part != wanted)
        entry = tuple(wrong[0])
        return (
            f"{len(wrong)} of {part.size} entries are wrong, the first {place(entry)}: "
            f"expected {wanted[entry]}, got {part[entry]}."
        )
    if np.isnan(part).any():
        return f"there is NaN in your {name}, first {place(np.argwhere(np.isnan(part))[0])}."
    with np.errstate(all="ignore"):
        return (
            wrong_row_sums(part, wanted, name)
            or wrong_factor(part, wanted, name)
            or largest_difference(part, wanted)
        )


def wrong_row_sums(part, wanted, name):
    """Return the row that does not sum to 1 (or 0) although it should, in words, or None."""
    sums, right_sums = part.sum(axis=-1), wanted.sum(axis=-1).round(3) + 0.0  # no minus zero
    off = ~np.isclose(sums, right_sums, atol=1e-3)
    if part.ndim < 2 or not off.any() or not np.isin(right_sums, (0, 1)).all():
        return None
    row = int(off.argmax())
    words = f"row {row} of your {name} sums to {sums[row]:.4g} instead of {right_sums[row]:.4g}"
    if np.allclose(part.sum(axis=0), 1, atol=1e-3):
        words += ", but your columns sum to 1: softmax ran over the queries"
    return words + "."


def wrong_factor(part, wanted, name):
    """Return the one factor by which all numbers are off, in words, or None."""
    factor = (part * wanted).sum() / (wanted * wanted).sum()
    if part.size == 1 or not factor or not same(part, factor.astype(part.dtype) * wanted):
        return None
    return f"each entry of your {name} is {factor:.4g} times what it should be."


def largest_difference(part, wanted):
    """Return the entry that is furthest off, in words."""
    gap = np.abs(part - wanted)
    gap[part == wanted] = 0  # -inf - (-inf) is NaN
    entry = np.unravel_index(gap.argmax(), gap.shape)
    return (
        f"the largest difference is {gap[entry]:.4g}, {place(entry)}: "
        f"expected {wanted[entry]:.4g}, got {part[entry]:.4g}."
    )


def judge_manners(attempts, expected, names, keeps_dtype):
    """Return the verdict on right numbers: inputs must be left alone, and digits kept."""
    changed = [names[i] for tried in attempts for i in tried.changed]
    if changed:
        return Verdict(
            False,
            f"The numbers are right, but your function changes its input {changed[0]} in place, "
            "and its owner may still need it. Work on a new array.",
        )
    dtypes = [
        (came.dtype, needed.dtype)
        for tried, result in zip(attempts, expected, strict=True)
        for came, needed in zip(parts(tried.result), parts(result), strict=True)
    ]
    remark = ""
    for came, needed in dtypes:
        if came.kind == "f" and came.itemsize < needed.itemsize:
            return Verdict(False, f"Digits get lost: expected {needed}, got {came}.")
        if came.kind == "f" and came.itemsize > needed.itemsize:
            remark = (
                f"{needed} came in and {came} went out. np.sqrt of a plain number gives a "
                "float64, and so does np.zeros; math.sqrt and np.zeros_like do not."
            )
    if remark and keeps_dtype:
        return Verdict(False, f"The numbers are right, but {remark}")
    passed = f"Right: all {len(attempts)} checks passed."
    return Verdict(True, f"{passed} One remark: {remark}" if remark else passed)


def parts(result):
    """Return the results of a function that gives several, or its only one, as a sequence."""
    return result if isinstance(result, tuple) else (result,)


def describe(name, value):
    """Return an input in a few words: the shape of an array of floats, else the value."""
    if isinstance(value, np.ndarray):
        return f"{name} {value.tolist() if value.dtype.kind == 'i' else value.shape}"
    article = "an" if name[0] in "aeiou" else "a"
    return f"{article} {name} function" if callable(value) else f"{name} = {value}"


def listed(words):
    """Return words as "a, b and c"."""
    *first, last = words
    return f"{', '.join(first)} and {last}" if first else last


def place(entry):
    """Return the place of an entry in words; a matrix has rows and columns."""
    entry = tuple(map(int, entry))
    if len(entry) == 2:
        return f"in row {entry[0]}, column {entry[1]} (counted from 0)"
    return f"at {entry[0] if len(entry) == 1 else entry} (counted from 0)"


def draw(*shape, seed=0):
    """Return numbers of mean 0 and variance 1, the same at every call: they saturate nothing."""
    return np.random.default_rng(seed).standard_normal(shape)
