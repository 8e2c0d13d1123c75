"""The course without solutions: nothing of a solution is left, and all else is."""

import re

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

from _ext import notebook as stored
from _ext.course import chapters as course
from _ext.practice.exercises import exercises
from tools.sheets import BOX, without_solutions

CHAPTERS = course.read()


def code(source, *tags, prompt=""):
    return new_code_cell(source, metadata={"tags": [*tags], "mystnb": {"code_prompt_show": prompt}})


def test_solutions_go_with_what_needs_them_and_other_answers_stay():
    first = new_markdown_cell("## A section\n\n:::{answer}\nStays.\n:::")
    box = "::::{answer} Why\n:::{note}\nGoes.\n:::\n::::\n\n"
    task = f"## Exercises\n\n### Add\n\nAdd.\n\n{box}More."
    given = [
        first,
        code("stays = 1", "answer"),
        new_markdown_cell(task),
        code("def add(a, b):\n    return ..."),
        code("check(add)"),
        code("def add_solution(a, b):\n    return a + b", "answer"),
        code("assert 1 + 2 == 3", "hide-cell", prompt="Checked: the sum"),
        code("shown = 5", "hide-input"),
        new_markdown_cell(f"{box}## Find the bug\n\n{box}"),
        code("print(add_solution(2, 3))"),
        code("fixed = 7", "answer"),
    ]
    notebook = new_notebook(cells=given)
    assert without_solutions(notebook) == 5  # two boxes and three cells
    left = [cell.source for cell in notebook.cells]
    assert left[0] == first.source
    assert left[1:] == [
        "stays = 1",
        "## Exercises\n\n### Add\n\nAdd.\n\nMore.",
        "def add(a, b):\n    return ...",
        "check(add)",
        "shown = 5",
        f"## Find the bug\n\n{box}",
        "fixed = 7",
    ]
    sources = [cell.source for cell in notebook.cells if cell.cell_type == "code"]
    assert notebook.metadata["code_digest"] == stored.code_digest(sources)


@pytest.mark.parametrize("chapter", CHAPTERS, ids=lambda chapter: chapter.page.split("/")[1])
def test_a_chapter_keeps_its_exercises_and_loses_each_solution(chapter):
    before = exercises(chapter.notebook)
    solutions = [
        text
        for section, cell, text in chapter.cells
        if section == "Exercises" and "answer" in cell.tags
    ]
    boxes = [text for section, _, text in chapter.cells if section == "Exercises"]
    boxes = [box[0] for text in boxes for box in BOX.finditer(text)]
    notebook = nbformat.read(chapter.path, as_version=4)
    assert without_solutions(notebook) >= max(1, len(solutions) + len(boxes))
    after = stored.parse(nbformat.writes(notebook))
    left = "\n".join(cell.source for cell in after.cells)
    for solution in solutions + boxes:
        assert solution not in left
    names = set(re.findall(r"^def (\w+_solution)\b", "\n".join(solutions), re.MULTILINE))
    assert not [name for name in names if re.search(rf"\b{name}\b", left)]
    kept = [(exercise.key, exercise.start, exercise.judge) for exercise in exercises(after)]
    assert kept == [(exercise.key, exercise.start, exercise.judge) for exercise in before]
    assert not after.is_stale
