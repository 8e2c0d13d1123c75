"""All exercises of the course, each as learners solve it: wrongly in three ways, rightly in one.

`_ext/practice/exercises.py` finds the exercises. Wrong ones are the first three of `solutions.txt`,
under the name of the checker, also where it judges a part of the model that writes, or else of the
exercise; those of an exercise that is no function stand here. Right is the solution that the
chapter shows, under the name that the exercise asks for.
"""

import ast
import functools
import re
from pathlib import Path

from _ext.notebook import read
from _ext.practice.exercises import exercises as exercises_of
from tests.conftest import ROOT
from tests.test_check import table

IDLE = """
five = rng.normal(size=(5, 6))
idle = attnlib.EncoderLayer.init(6, 2, 24, rng, norm_first=True, dtype=np.float64)
"""
OWN = {
    "a-layer-that-does-nothing": [
        IDLE,
        IDLE + "idle.attention.w_q[:] = 0",
        IDLE + "idle.attention.w_o[:] = 0",
    ],
}
RIGHT = {
    "a-layer-that-does-nothing": IDLE + "idle.attention.w_o[:] = 0\nidle.feed_forward.w_2[:] = 0",
}


@functools.cache
def chapters():
    """The exercises that a page can have, by the path of their notebook."""
    found = {}
    for path in sorted((ROOT / "chapters").glob("*.ipynb")):
        found[path] = [each for each in exercises_of(read(path)) if not each.lacking]
    return found


def judged():
    """(chapter, exercise) for each that has a verdict."""
    rows = ((Path(path).stem, each) for path, found in chapters().items() for each in found)
    return [(chapter, each) for chapter, each in rows if each.judge]


def wrong(exercise):
    """Three wrong cells for an exercise, each with a part of what must be said."""
    checker = re.fullmatch(r"check\.(?:runs_the_writer\((\w+)=|(\w+)\()\w+\)", exercise.judge)
    if checker:
        parameters, rows = table()[checker[1] or checker[2]]
        refused = [(said, body) for sign, said, body in rows if sign == "-"][:3]
        return [(said, f"def {exercise.name}({parameters}):\n{body}") for said, body in refused]
    said = f"Not yet: {exercise.judge.splitlines()[-1]} is "
    if exercise.key in OWN:
        return [(said, cell) for cell in OWN[exercise.key]]
    assert exercise.key in table(), f"{exercise.key} has no checker: write it into solutions.txt"
    head = exercise.start.rstrip().rpartition("\n")[0]  # without its last line, `return ...`
    return [(said, f"{head}\n{body}") for _, _, body in table()[exercise.key][1]]


def right(exercise):
    """The chapter's own solution, as a learner's cell."""
    if exercise.key in RIGHT:
        return RIGHT[exercise.key]
    functions = [n for n in ast.parse(exercise.solution).body if isinstance(n, ast.FunctionDef)]
    renamed = re.compile(rf"\b{functions[-1].name}\b")
    return renamed.sub(exercise.name, "\n\n".join(map(ast.unparse, functions)))
