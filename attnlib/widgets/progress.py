"""Progress: what a reader has answered right, chapter by chapter, as this browser remembers it."""

from html import escape

import traitlets

from attnlib.widgets.base import CourseWidget, check_key, esm
from attnlib.widgets.still import element


class Progress(CourseWidget):
    """How much of each chapter is answered right; the reader can save, copy and erase it.

    What was answered right is known to the reader's browser alone.

    Parameters
    ----------
    chapters : dict of str to dict of str to int
        For each chapter's title the keys of its `Predict` and `Quiz` widgets, and how many
        questions each holds: `{"3. Chai piyo": {"chai-weight": 1, "chai-quiz": 3}}`.

    Raises
    ------
    ValueError
        For no chapters, a key of the wrong form or used twice, or a number below 1.
    """

    _esm = esm("progress")
    _name = "progress"
    _label = "Your progress"
    _shown = ("chapters",)

    chapters = traitlets.Dict().tag(sync=True)

    def __init__(self, chapters, **traits):
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

    def _html(self):
        rows = "".join(map(_row, self.chapters, self.chapters.values()))
        return f"""
<p class="note">What you answered right is kept in this browser alone. Nothing is sent.</p>
<ul>{rows}</ul>
<div class="reserved">
<p class="buttons" data-part="tools"><button type="button" name="save">Save as file</button>
<button type="button" name="copy">Copy as text</button>
<button type="button" name="erase">Erase</button></p>
<p class="buttons ghost" data-part="sure"><span>Erase it for good?</span>
<button type="button" name="yes">Erase it</button>
<button type="button" name="no">Keep it</button></p></div>
"""


def _row(title, questions):
    ids = [f"{key}/{i + 1}" for key, n in questions.items() for i in range(n)]
    bar = element("span", element("span", class_="filled"), class_="bar", aria_hidden="true")
    count = element("span", f"0 of {len(ids)}", class_="number")
    return element("li", element("span", escape(title)) + bar + count, data_ids=" ".join(ids))
