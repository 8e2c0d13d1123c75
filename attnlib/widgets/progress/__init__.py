"""Progress: what a reader has answered right, chapter by chapter, as this browser remembers it."""

import traitlets

from attnlib.widgets.kit.base import CourseWidget, check_key


class Progress(CourseWidget):
    """How much of each chapter is answered right; the reader can save, open, copy and erase it.

    What was answered right is known to the reader's browser alone.

    Parameters
    ----------
    chapters : dict of str to dict of str to int
        For each chapter's title the keys of its `Predict` and `Quiz` widgets, and how many
        questions each holds: `{"Chai piyo": {"chai-weight": 1, "chai-quiz": 3}}`.
    form : {"list", "bar", "keep"}
        A line for each chapter with the buttons, one bar with a piece for each chapter, or the sum
        with the buttons.

    Raises
    ------
    ValueError
        For no chapters, a key of the wrong form or used twice, or a number below 1.
    traitlets.TraitError
        For a form that does not exist.
    """

    chapters = traitlets.Dict().tag(sync=True)
    form = traitlets.Enum(["list", "bar", "keep"], "list").tag(sync=True)

    def __init__(self, chapters, **traits):
        tables = [chapters, *chapters.values()] if isinstance(chapters, dict) else [chapters]
        if not all(isinstance(table, dict) for table in tables):
            raise ValueError(f"chapters needs titles, each with keys; got {chapters}")
        keys = [check_key(key) for questions in chapters.values() for key in questions]
        if not keys or not all(chapters.values()):
            raise ValueError(f"chapters needs titles, each with keys; got {chapters}")
        twice = {key for key in keys if keys.count(key) > 1}
        if twice:
            raise ValueError(f"each key belongs to one chapter; twice: {', '.join(sorted(twice))}")
        for questions in chapters.values():
            for key, n in questions.items():
                if type(n) is not int or n < 1:
                    raise ValueError(f"{key} needs a whole number of questions from 1; got {n!r}")
        super().__init__(chapters=chapters, **traits)
