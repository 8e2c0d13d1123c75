"""Quiz: single-choice questions where every option, right or wrong, has its explanation."""

import tomllib
from pathlib import Path

import traitlets

from attnlib.widgets.kit.base import CourseWidget, check_key


class Quiz(CourseWidget):
    """Single-choice questions; the reason is shown for the option that was chosen.

    Parameters
    ----------
    questions : list of dict
        Each `{"text": ..., "options": [{"text": ..., "right": True, "why": ...}, ...]}`, with at
        least two options of which exactly one is right, and a why for every one. Options stand
        in the order given; `right` may be left out where it is False.
    key : str
        The name under which the reader's progress is kept: small letters, digits and dashes.

    Raises
    ------
    ValueError
        For a question or an option that lacks something, or a key of the wrong form.
    """

    questions = traitlets.List(traitlets.Dict()).tag(sync=True)
    key = traitlets.Unicode().tag(sync=True)
    chosen = traitlets.List(traitlets.Int()).tag(sync=True)  # the option checked, or -1

    def __init__(self, questions, *, key, **traits):
        if not questions:
            raise ValueError("a quiz needs at least one question; got none")
        questions = [_question(question, i) for i, question in enumerate(questions, start=1)]
        super().__init__(questions=questions, key=check_key(key), **traits)

    @classmethod
    def for_chapter(cls, name):
        """Return the quiz of a chapter, by its file's name without the number.

        Raises
        ------
        ValueError
            If that chapter has no quiz.
        """
        path = Path(__file__).parent / "questions" / f"{name}.toml"
        if not path.is_file():
            file = f"attnlib/widgets/quiz/questions/{name}.toml"
            raise ValueError(f"the quiz of {name!r} needs {file}: write it")
        questions = tomllib.loads(path.read_text(encoding="utf-8"))["questions"]
        return cls(questions, key=f"{name}-quiz")

    @traitlets.default("chosen")
    def _nothing_chosen(self):
        return [-1] * len(self.questions)

    @traitlets.validate("chosen")
    def _check_chosen(self, proposal):
        sizes = [len(question["options"]) for question in self.questions]
        value = proposal["value"]
        if len(value) != len(sizes) or not all(
            -1 <= k < n for k, n in zip(value, sizes, strict=True)
        ):
            raise ValueError(f"chosen needs an option, or -1, for each question; got {value}")
        return value


def _question(question, i):
    """Return a question with nothing left out, or say what it lacks."""
    _check_fields(f"question {i}", question, {"text", "options"}, set())
    options = question["options"]
    if len(options) < 2:
        raise ValueError(f"question {i} needs at least two options; got {len(options)}")
    for k, option in enumerate(options, start=1):
        _check_fields(f"question {i}, option {k}", option, {"text", "why"}, {"right"})
    options = [
        {"text": option["text"], "right": bool(option.get("right")), "why": option["why"]}
        for option in options
    ]
    right = sum(option["right"] for option in options)
    if right != 1:
        raise ValueError(f"question {i} needs exactly one right option; got {right}")
    if len({option["text"] for option in options}) < len(options):
        raise ValueError(f"question {i} has the same option twice")
    return {"text": question["text"], "options": options}


def _check_fields(name, given, needed, possible):
    if not isinstance(given, dict):
        raise ValueError(f"{name} needs {', '.join(sorted(needed))}; got {given!r}")
    lacking = ", ".join(sorted(field for field in needed if not given.get(field)))
    if lacking:
        raise ValueError(f"{name} needs {lacking}; got {given}")
    unknown = ", ".join(sorted(set(given) - needed - possible))
    if unknown:
        raise ValueError(f"{name} takes {', '.join(sorted(needed | possible))}; got {unknown}")
    for field in needed - {"options"}:
        if not isinstance(given[field], str) or not given[field].strip():
            raise ValueError(f"{name} needs {field}; got {given[field]!r}")
