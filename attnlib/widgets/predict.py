"""Predict: numbers to work out and type before they are shown; foreseen mistakes are named."""

from collections.abc import Mapping
from html import escape
from itertools import combinations

import numpy as np
import traitlets

from attnlib.widgets.base import CourseWidget, check_key, esm
from attnlib.widgets.still import element, reserved

MOST = 6
# Relative, absolute: rounding to three digits moves a number by at most 0.5 %, rounding to three
# decimals by 0.0005, and a sum of three such numbers by 0.0015.
TOLERANCE = (0.005, 0.0015)


def near(x, target, tolerance=TOLERANCE):
    """Tell whether `x` may stand for `target` after a calculation by hand."""
    relative, absolute = tolerance
    return abs(x - target) <= max(relative * abs(target), absolute)


class Predict(CourseWidget):
    """One or several numbers that the reader types before the answer is shown.

    Parameters
    ----------
    question : str
    answer : float, list of float, or dict of str to float
        The right numbers, 1 to 6 of them; a dict gives each its label. Compute it in the cell.
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
    explanation : str
        Shown with the answer.

    Raises
    ------
    ValueError
        For numbers that are not finite or not as many as the labels, a key of the wrong form, or
        a mistake that cannot be told from the answer or from another mistake.
    """

    _esm = esm("predict")
    _name = "predict"
    _shown = (
        "question", "answer", "labels", "tolerance", "mistakes", "unit", "explanation", "key",
    )  # fmt: skip

    question = traitlets.Unicode().tag(sync=True)
    answer = traitlets.List(traitlets.Float()).tag(sync=True)
    labels = traitlets.List(traitlets.Unicode()).tag(sync=True)
    tolerance = traitlets.List(traitlets.Float()).tag(sync=True)
    mistakes = traitlets.Dict().tag(sync=True)
    unit = traitlets.Unicode().tag(sync=True)
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

    @property
    def answered(self):
        """Whether numbers were typed and checked."""
        return bool(self.typed)

    @property
    def correct(self):
        """Whether all of them are right."""
        return self.answered and not self.diagnose(self.typed)[0]

    def diagnose(self, typed):
        """Which of the `typed` numbers are wrong, and the one mistake that gives them, or None."""

        def gives(numbers, places):
            return all(near(typed[i], numbers[i], self.tolerance) for i in places)

        everywhere = range(len(self.answer))
        wrong = [i for i in everywhere if not gives(self.answer, [i])]
        if not wrong:
            return [], None
        partly = [clause for clause, numbers in self.mistakes.items() if gives(numbers, wrong)]
        wholly = [clause for clause in partly if gives(self.mistakes[clause], everywhere)]
        found = wholly or partly
        return wrong, found[0] if len(found) == 1 else None

    @property
    def _label(self):
        return f"Predict: {self.question}"

    def _html(self):
        n = len(self.answer)
        fields = "".join(self._field(i, label) for i, label in enumerate(self.labels))
        hint = "; ".join(f"{label} is too small" for label in self.labels) if n > 1 else "too small"
        verdicts = {
            "right": "✓ Right.",
            "unkept": "✓ Right. Progress cannot be kept in this browser.",
            "needs": ("Type a number" if n == 1 else "Each field needs a number")
            + ", such as 0.5, -2 or 1/3.",
            "hint": f"Not yet: {escape(hint)}.",
        }
        for clause in self.mistakes:
            verdicts[f"mistake: {clause}"] = f"Not yet: {escape(clause.rstrip('.'))}."
        unit = f" {self.unit}" if self.unit else ""
        numbers = (_written(x) + unit for x in self.answer)
        if n > 1:
            numbers = (f"{label} = {x}" for label, x in zip(self.labels, numbers, strict=True))
        answer = element("b", escape(", ".join(numbers)) + ".") + f" {escape(self.explanation)}"
        return f"""
<p class="question">{escape(self.question)} <span class="done" data-part="done">✓ done</span></p>
<form class="ask" data-lm-suppress-shortcuts="true" autocomplete="off">{fields}
<p class="buttons"><button type="submit" name="check">Check</button>
<button type="button" name="reveal">Reveal</button>
<button type="button" name="reset">Reset</button></p></form>
{reserved("verdict", verdicts)}
{reserved("answer", {"answer": answer}, still=answer)}
"""

    def _field(self, i, label):
        # No inputmode: the decimal keys of a phone may have neither a minus nor a slash.
        field = element("input", type="text", name=f"value_{i}", spellcheck="false")
        unit = element("span", escape(self.unit)) if self.unit else ""
        inner = element("span", escape(label)) + element("span", field + unit, class_="with-value")
        return element("label", inner)


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
    """Refuse two outcomes that one and the same typing could mean."""
    relative, absolute = tolerance
    for (one, a), (other, b) in combinations(outcomes.items(), 2):
        reach = (
            max(relative * abs(x), absolute) + max(relative * abs(y), absolute)
            for x, y in zip(a, b, strict=True)
        )
        if all(abs(x - y) <= r for x, y, r in zip(a, b, reach, strict=True)):
            raise ValueError(f"{other!r} gives {b}, which cannot be told from {one}: {a}")


def _written(x):
    if x == 0 or 1e-4 <= abs(x) < 1e15:
        return f"{x:.6f}".rstrip("0").rstrip(".")
    return f"{x:.6g}"
