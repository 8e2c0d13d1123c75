"""All exercises of the course, each as learners solve it: wrongly in three ways, rightly in one.

`_ext/practice/exercises.py` finds the exercises. A checker's wrong ones are the first three of
`solutions.txt`, also where it judges a part of the model that writes; those of an exercise that
judges itself stand here. Right is the solution that the chapter shows, under the name that the
exercise asks for.
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
# What the learner wrote in the place of `...`, where the exercise has no checker of its own.
OWN = {
    "my_ablation": [
        "W_O",
        "W_O[h * 4:(h + 1) * 4] = 0; return W_O",
        "cut = W_O.copy(); cut[:, h * 4:(h + 1) * 4] = 0; return cut",
    ],
    "pre_norm_layer": [
        "norm_2(norm_1(x + attend(x)) + feed_forward(x))",
        "x + feed_forward(norm_2(x + attend(norm_1(x))))",
        "x = x + attend(x); return x + feed_forward(norm_2(x))",
    ],
    "my_mean_pool": [
        "states.mean(axis=1)",
        "m = states.mean(axis=1); return m / np.linalg.norm(m, axis=1, keepdims=True)",
        "np.where(mask[:, :, None], states, 0).sum(axis=2)",
    ],
    "my_previous_head": [
        "divmod(int(weights.mean(axis=(2, 3)).argmax()), weights.shape[1])",
        "divmod(int(weights.diagonal(1, 2, 3).mean(axis=-1).argmax()), weights.shape[1])",
        "int(weights.diagonal(-1, 2, 3).mean(axis=-1).argmax())",
    ],
    "my_rule": [
        "min(i + 1, len(tokens) - 1)",
        "0",
        "None",
    ],
    "my_sink_softmax": [
        "attnlib.softmax(scores)",
        "attnlib.softmax(scores - sink)",
        "p = np.exp(scores); return p / (p.sum(axis=1, keepdims=True) + sink)",
    ],
    "my_router": [
        "attnlib.softmax(logits)",
        "attnlib.softmax(logits) * attnlib.top_k_mask(logits, k)",
        "attnlib.softmax(np.where(attnlib.top_k_mask(logits, k), logits, 0))",
    ],
    "my_step": [
        "alpha * state + beta * np.outer(key, value)",
        "alpha * state + beta * np.outer(key, value - key @ state)",
        "state + beta * np.outer(key, value - key @ state)",
    ],
    "my_rolling_step": [
        "keys[p % len(keys)] = key; values[p % len(keys)] = value; "
        "return attnlib.softmax(keys @ query / 8**0.5) @ values, keys, values",
        "keys, values = np.vstack([keys[1:], key]), np.vstack([values[1:], value]); "
        "return attnlib.softmax(keys @ query / 8**0.5) @ values, keys, values",
        "keys[p % len(keys)] = key; values[p % len(keys)] = value; n = min(p, len(keys)); "
        "return attnlib.softmax(keys[:n] @ query / 8**0.5) @ values[:n], keys, values",
    ],
    "two_steps": [
        "np.roll(tokens, 1)",
        "S = 50 * X @ X.T; return (attnlib.softmax(S) @ X).argmax(axis=-1)",
        "S = 50 * X @ (np.eye(n, k=-1) @ X).T; return (attnlib.softmax(S) @ X).argmax(axis=-1)",
    ],
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


def written(start, body):
    """The cell `start` with a body in the place of its last line; one without return gives it."""
    *head, _ = start.rstrip().splitlines()
    lines = body.split("; ")
    if not lines[-1].startswith("return "):
        lines[-1] = f"return {lines[-1]}"
    return "\n".join([*head, *(f"    {line}" for line in lines)])


def wrong(exercise):
    """Three wrong cells for an exercise, each with a part of what must be said."""
    checker = re.fullmatch(r"check\.(?:runs_the_writer\((\w+)=|(\w+)\()\w+\)", exercise.judge)
    if not checker:
        said = f"Not yet: {exercise.judge.splitlines()[-1]} is "
        own = OWN.get(exercise.key)
        assert own, f"{exercise.key} has no checker: write three wrong solutions into OWN, here"
        cells = [written(exercise.start, body) if exercise.name else body for body in own]
        return [(said, cell) for cell in cells]
    parameters, rows = table()[checker[1] or checker[2]]
    refused = [(said, body) for sign, said, body in rows if sign == "-"][:3]
    return [(said, f"def {exercise.name}({parameters}):\n{body}") for said, body in refused]


def right(exercise):
    """The chapter's own solution, as a learner's cell."""
    if exercise.key in RIGHT:
        return RIGHT[exercise.key]
    functions = [n for n in ast.parse(exercise.solution).body if isinstance(n, ast.FunctionDef)]
    renamed = re.compile(rf"\b{functions[-1].name}\b")
    return renamed.sub(exercise.name, "\n\n".join(map(ast.unparse, functions)))
