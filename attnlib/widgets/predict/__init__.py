"""Predict: numbers to work out and type before they are shown; foreseen mistakes are named."""

import re
from collections.abc import Mapping
from itertools import combinations

import numpy as np
import traitlets

from attnlib.widgets.kit.base import CourseWidget, check_key

MOST = 12
# Relative, absolute: rounding to three digits moves a number by at most 0.5 %, rounding to three
# decimals by 0.0005, and a sum of three such numbers by 0.0015. Of a number from 0.1 on, two
# decimals are enough: 0.33 is as good a guess as 1/3 (predict.js).
TOLERANCE = (0.005, 0.0015)


class Predict(CourseWidget):
    """One or several numbers that the reader types before the answer is shown.

    Parameters
    ----------
    question : str
    answer : float, list of float, or dict of str to float
        The right numbers, 1 to 12 of them; a dict gives each its label. Compute it in the cell.
    key : str
        The name under which the reader's progress is kept: small letters, digits and dashes.
    labels : list of str
        What stands before each field, if `answer` is no dict.
    tolerance : float or (float, float)
        How far off a number may be: absolute, or the larger of relative and absolute.
    mistakes : dict of str to float or list of float
        What a mistake gives, under a clause that names it: "you did not divide by √d_k".
    unit : str
        What the numbers count; stands behind each field.
    worked : str
        The calculation in which the blanks stand, each as its label in braces, over one line or
        several: "0.016 · 0 + 0.117 · 1 + 0.867 · 2 = {output}". Shown with the numbers at the end.
    explanation : str
        Shown with the answer.

    Raises
    ------
    ValueError
        For numbers that are not finite or not as many as the labels, a key of the wrong form, a
        worked line without each of its blanks, or a mistake that cannot be told from the answer or
        from another mistake.
    """

    question = traitlets.Unicode().tag(sync=True)
    answer = traitlets.List(traitlets.Float()).tag(sync=True)
    labels = traitlets.List(traitlets.Unicode()).tag(sync=True)
    tolerance = traitlets.List(traitlets.Float()).tag(sync=True)
    mistakes = traitlets.Dict().tag(sync=True)
    unit = traitlets.Unicode().tag(sync=True)
    worked = traitlets.Unicode().tag(sync=True)
    explanation = traitlets.Unicode().tag(sync=True)
    key = traitlets.Unicode().tag(sync=True)
    typed = traitlets.List(traitlets.Float()).tag(sync=True)
    revealed = traitlets.Bool(False).tag(sync=True)

    def __init__(self, question, answer, *, key, **traits):
        if isinstance(answer, Mapping):
            traits["labels"], answer = list(answer), list(answer.values())
        answer = _numbers("answer", answer)
        n = len(answer)
        labels = traits.pop("labels", ["Your answer"] if n == 1 else None)
        if labels is None or len(set(labels)) != n or not all(map(str.strip, labels)):
            raise ValueError(f"answer needs {n} labels, each its own; got {labels}")
        tolerance = _tolerance(traits.pop("tolerance", TOLERANCE))
        mistakes = {
            clause: _numbers(f"mistake {clause!r}", value, n)
            for clause, value in traits.pop("mistakes", {}).items()
        }
        _check_apart({"the answer": answer} | mistakes, tolerance)
        blanks = re.findall(r"\{([^{}]+)\}", traits.get("worked", ""))
        if (blanks and sorted(blanks) != sorted(labels)) or (traits.get("worked") and not blanks):
            raise ValueError(f"worked needs each of {list(labels)} in braces, once; got {blanks}")
        super().__init__(
            question=question,
            answer=answer,
            labels=list(labels),
            tolerance=tolerance,
            mistakes=mistakes,
            key=check_key(key),
            **traits,
        )

    @traitlets.validate("typed")
    def _check_typed(self, proposal):
        if proposal["value"]:
            return _numbers("typed", proposal["value"], len(self.answer), digits=17)
        return []


def _numbers(name, value, n=None, digits=9):
    """Return `value` as a list of finite numbers, to so many digits that any machine agrees."""
    try:
        numbers = np.asarray(value, dtype=float).ravel()
    except (TypeError, ValueError):
        raise ValueError(f"{name} needs numbers; got {value!r}") from None
    if not np.isfinite(numbers).all():
        raise ValueError(f"{name} needs finite numbers; got {numbers.tolist()}")
    if not 1 <= len(numbers) <= MOST or n not in (None, len(numbers)):
        raise ValueError(f"{name} needs {n or f'1 to {MOST}'} numbers; got {len(numbers)}")
    return [float(f"{x:.{digits}g}") + 0.0 for x in numbers.tolist()]


def _tolerance(value):
    both = np.atleast_1d(np.asarray(value, dtype=float)).tolist()
    both = [0.0, *both] if len(both) == 1 else both
    if len(both) != 2 or not all(0 <= part < np.inf for part in both) or not any(both):
        raise ValueError(f"tolerance needs one or two numbers, not negative; got {value!r}")
    return both


def _check_apart(outcomes, tolerance):
    """Refuse two outcomes that the same typing could mean."""
    relative, absolute = tolerance
    for (one, a), (other, b) in combinations(outcomes.items(), 2):
        reach = (
            max(relative * abs(x), absolute) + max(relative * abs(y), absolute)
            for x, y in zip(a, b, strict=True)
        )
        if all(abs(x - y) <= r for x, y, r in zip(a, b, reach, strict=True)):
            raise ValueError(f"{other!r} gives {b}, which cannot be told from {one}: {a}")
