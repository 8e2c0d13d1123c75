"""The exercises of a chapter's notebook.

Each open code cell under one of the headings `TITLES` is one; the open cell right below it, if
there is one, judges it.
"""

import ast
import re
from dataclasses import dataclass
from itertools import chain

from _ext.practice.dependencies import dependencies, statements

HEADING = re.compile(r"^#{2,3} .+$", re.M)
TITLES = "Exercises", "Where does it look? Judge my hypothesis"


@dataclass(frozen=True)
class Exercise:
    """An exercise of a notebook; what it does not have is empty."""

    key: str  # its name in the chapter
    name: str  # the function that is to be written
    at: int  # the place of its cell in the notebook
    start: str  # what its cell holds
    judge: str  # the cell that judges it
    solution: str  # the first cell that answers it
    before: str  # the statements of the chapter on which these cells depend
    lacking: tuple  # the modules on which they depend, and that a page has not


def blank(source):
    """The function that a cell leaves to the learner, which returns `...`; empty if none does."""
    for node in ast.parse(source).body:
        if isinstance(node, ast.FunctionDef) and ast.unparse(node.body[-1]) == "return ...":
            return node.name
    return ""


def definitions(source):
    """The functions that a cell defines, without what shows them at work; all of it without any."""
    found = [node for node in ast.parse(source).body if isinstance(node, ast.FunctionDef)]
    return "\n".join(map(ast.unparse, found)) or source


def groups(cells):
    """Yield (heading, place of the start, judge or "", solution or "") of each exercise.

    The judge is the open cell right below the start, the solution the first that is not open.
    """
    inside, judgeable, heading, found = False, False, "", None
    for at, cell in enumerate(cells):
        source, tags = cell.source, cell.tags
        if cell.cell_type == "markdown":
            for line in HEADING.findall(source):
                heading = line.lstrip("# ")
                inside = heading in TITLES if line.startswith("## ") else inside
            judgeable = False
        elif not inside:
            continue
        elif not tags and judgeable:
            found[2], judgeable = source, False
        elif not tags:
            if found:
                yield tuple(found)
            found, judgeable = [heading, at, "", ""], True
        elif found and not found[3]:
            found[3], judgeable = source, False
    if found:
        yield tuple(found)


def exercises(notebook):
    """The exercises of a notebook, in their order.

    One that lacks a module is left out, unless it leaves a function to the learner.
    """
    cells = notebook.cells
    code = [[*statements(c.source)] if c.cell_type == "code" else [] for c in cells]
    given = len(next(filter(None, code), []))
    found = []
    for heading, at, judge, solution in groups(cells):
        start = cells[at].source
        name = blank(start)
        needed = [start, judge, definitions(solution)]
        before, lacks = dependencies(needed, [*chain(*code[:at])], given)
        if name or not lacks:
            key = name or re.sub(r"\W+", "-", heading.lower())
            found.append(Exercise(key, name, at, start, judge, solution, before, lacks))
    return found
