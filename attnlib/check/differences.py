"""Say in one sentence how a result differs from the right one, where no planned mistake fits."""

import numpy as np

from attnlib.check.attempts import Other, parts, same

KINDS = {"b": "True and False", "f": "floats", "i": "whole numbers", "u": "whole numbers"}


def difference(tried, expected, returns, given, case):
    """Return in words what is wrong with the result of an attempt.

    Parameters
    ----------
    tried : Attempt
    expected : ndarray or tuple of ndarray
        The right result.
    returns : dict of str to str
        The name of each result, and what its entries or axes are.
    given, case : str
        The inputs in words, and the name of the case.
    """
    names = [*returns]
    if words := wrong_count(tried, expected, names):
        return words
    # The last wrong result is named: A is returned after Z but computed before it, so a mistake
    # in both begins in A.
    name, part, right = next(
        row
        for row in reversed([*zip(names, parts(tried.result), parts(expected), strict=True)])
        if not same(*row[1:])
    )
    if words := wrong_kind(part, right, name, returns[name], given):
        return words
    overflow = " An exponential overflowed on the way." if tried.overflowed else ""
    return f"For {case}: {wrong_numbers(part, right, name)}{overflow}"


def wrong_count(tried, expected, names):
    """Return in words how many results came instead of those that were expected, or None."""
    result, right = tried.result, parts(expected)
    several = isinstance(result, tuple)
    comma = several and len(result) == 1
    if len(names) == 1 and tried.sequence == "tuple" and len(result) == 1:
        comma = result.shape != expected.shape  # `return loss,`
    if comma:
        return (
            "The comma after what you return makes a tuple of it. "
            f"Return {listed(map(article, names))} without a comma at the end."
        )
    if several == isinstance(expected, tuple) and len(parts(result)) == len(right):
        return None
    if len(names) > 1:
        return (
            f"Return {listed(map(article, names))}: end your function with "
            f"`return {', '.join(names)}`. You returned {kind_of(result)}."
        )
    return (
        f"Return {article(names[0])} only, as {kind_expected(expected)}. "
        f"You returned {kind_of(result)}."
    )


def wrong_kind(part, right, name, meaning, given):
    """Return in words what is wrong with the type, shape or dtype of a result, or None."""
    if not isinstance(part, np.ndarray):
        return (
            f"Expected {article(name)} as {kind_expected(right)}, but you returned {kind_of(part)}."
        )
    if part.shape != right.shape and not right.ndim:
        return (
            f"Expected {kind_expected(right)}, {article(name)} {meaning}, "
            f"but you returned {kind_of(part)}."
        )
    if part.shape != right.shape:
        came = f"shape {part.shape}" if part.ndim else "a single number"
        return (
            f"Expected {name} of shape {right.shape}, {meaning}, "
            f"but you returned {came} for {given}."
        )
    if part.dtype.kind != right.dtype.kind:
        return wrong_dtype(part, right, name)
    return None


def wrong_dtype(part, right, name):
    """Return in words that a result of the right shape holds entries of another kind."""
    needed = KINDS[right.dtype.kind]
    if not right.ndim:
        needed = {"b": "True or False", "f": "a float"}.get(right.dtype.kind, "a whole number")
    if part.dtype.kind not in KINDS:
        return f"Expected {needed}, but {article(name)} has the dtype {part.dtype}."
    words = f"Expected {needed}, but you returned {KINDS[part.dtype.kind]} ({part.dtype})."
    if right.ndim and right.dtype == bool and part.dtype.kind in "iuf":
        words += " .astype(bool) turns 1 and 0 into True and False."
    return words


def wrong_numbers(part, right, name):
    """Return in words what is wrong with numbers of the right shape and kind."""
    if part.dtype == bool and part.ndim == 0:
        return f"expected {right}, got {part}."
    if part.dtype == bool:
        wrong = np.argwhere(part != right)
        entry = tuple(wrong[0])
        return (
            f"{len(wrong)} of {part.size} entries are wrong, the first {place(entry)}: "
            f"expected {right[entry]}, got {part[entry]}."
        )
    if part.ndim == 0:
        return f"{two_numbers(right, part)}."
    if np.isnan(part).any():
        return f"there is NaN in your {name}, first {place(np.argwhere(np.isnan(part))[0])}."
    with np.errstate(all="ignore"):
        return (
            wrong_row_sums(part, right, name)
            or wrong_factor(part, right, name)
            or largest_difference(part, right)
        )


def wrong_row_sums(part, right, name):
    """Return the row that does not sum to 1 (or 0) although it should, in words, or None."""
    sums, right_sums = part.sum(axis=-1), right.sum(axis=-1).round(3) + 0.0  # no minus zero
    off = ~np.isclose(sums, right_sums, atol=1e-3)
    if part.ndim != 2 or not off.any() or not np.isin(right_sums, (0, 1)).all():
        return None
    row = int(off.argmax())
    words = f"row {row} of your {name} sums to {sums[row]:.4g} instead of {right_sums[row]:.4g}"
    if np.allclose(part.sum(axis=0), 1, atol=1e-3):
        words += ", but your columns sum to 1: softmax ran over the queries"
    return words + "."


def wrong_factor(part, right, name):
    """Return the one factor by which all numbers are off, in words, or None."""
    factor = (part * right).sum() / (right * right).sum()
    if part.size == 1 or not factor or not same(part, factor.astype(part.dtype) * right):
        return None
    times = f"{factor:.4g}"
    if times == "1":
        return None
    return f"each entry of your {name} is {times} times what it should be."


def largest_difference(part, right):
    """Return the entry that is furthest off, in words."""
    gap = np.abs(part - right)
    gap[part == right] = 0  # -inf - (-inf) is NaN
    entry = np.unravel_index(gap.argmax(), gap.shape)
    return (
        f"the largest difference is {gap[entry]:.4g}, {place(entry)}: "
        f"{two_numbers(right[entry], part[entry])}."
    )


# Wording


def two_numbers(right, came):
    """Return two unequal numbers in words, with as many digits as are needed to differ."""
    for digits in (4, 6, 9, 17):
        shown = f"{right:.{digits}g}", f"{came:.{digits}g}"
        if shown[0] != shown[1]:
            break
    return f"expected {shown[0]}, got {shown[1]}"


def kind_expected(right):
    """Return in words what kind of result is expected."""
    if right.ndim:
        return f"one array of shape {right.shape}"
    return "True or False" if right.dtype == bool else "one number"


def kind_of(part):
    """Return in words what came in the place of a result."""
    if isinstance(part, np.ndarray):
        return f"an array of shape {part.shape}" if part.ndim else "a single number"
    if isinstance(part, tuple):
        arrays = all(isinstance(each, np.ndarray) and each.ndim for each in part)
        return f"a tuple of {len(part)} {'arrays' if part and arrays else 'results'}"
    return f"an object of type {part.kind}" if isinstance(part, Other) else "nothing"


def article(name):
    """Return the name of a result with its article; one with a capital letter, as Z, has none."""
    return f"the {name}" if name.islower() else name


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
