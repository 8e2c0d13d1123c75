"""Copy the course without the solutions of its exercises: `python -m tools.sheets`.

The copy is a whole checkout in `_build/sheets`. Its notebooks can be handed out, and its pages are
built right away. The folded answers within a chapter and under "Find the bug" stay.
"""

import ast
import os
import re
import shutil
import subprocess
import sys

import nbformat

from _ext.course import chapters as course
from _ext.notebook import code_digest
from tools.build import BUILD
from tools.install import ROOT, say
from tools.pyodide import CACHE

SHEETS = BUILD / "sheets"
# What a checkout makes for itself.
MADE = shutil.ignore_patterns("_build", ".venv", ".git", "__pycache__", ".*_cache", ".hypothesis")
BOX = re.compile(r"^(:{3,})\{answer\}.*?^\1[ \t]*$\n*", re.MULTILINE | re.DOTALL)
PAGE = """# Exercises

Each exercise stands in its own chapter, and a checker tells you there what is wrong.

:::{chapters} exercises
:::
"""


def without_solutions(notebook):
    """Take the solutions out of a chapter, as nbformat has it; return how many cells and boxes.

    With a solution goes what is checked of it, and what else needs a function that it defines.
    """
    kept, dropped, lost, inside = [], 0, set(), False
    for cell in notebook.cells:
        if cell.cell_type == "markdown":
            parts = re.split(r"^(?=## )", cell.source, flags=re.MULTILINE)
            for i, part in enumerate(parts):
                if part.startswith("## "):
                    inside = part.splitlines()[0].removeprefix("## ").strip() == "Exercises"
                if inside:
                    parts[i], n = BOX.subn("", part)
                    dropped += n
            cell.source = "".join(parts)
            if cell.source.strip():
                kept.append(cell)
        elif (inside and answers(cell)) or lost & used(cell.source):
            lost |= defined(cell.source) - {name for c in kept for name in defined(c.source)}
            dropped += 1
        else:
            kept.append(cell)
    notebook.cells = kept
    code = [cell.source for cell in kept if cell.cell_type == "code"]
    notebook.metadata["code_digest"] = code_digest(code)
    return dropped


def answers(cell):
    """Tell whether a cell of the exercises is a solution, or what is checked of one."""
    prompt = cell.metadata.get("mystnb", {}).get("code_prompt_show", "")
    return "answer" in cell.metadata.get("tags", []) or prompt.startswith("Checked: ")


def parsed(source):
    """Return the syntax tree of a cell; that of nothing for what only Jupyter can run."""
    try:
        return ast.parse(source)
    except SyntaxError:
        return ast.parse("")


def defined(source):
    """Return the names of the functions that a cell defines."""
    return {node.name for node in parsed(source).body if isinstance(node, ast.FunctionDef)}


def used(source):
    """Return all names that a cell uses."""
    return {node.id for node in ast.walk(parsed(source)) if isinstance(node, ast.Name)}


def copy(target):
    """Copy the checkout to `target`, and take the solutions out of its chapters."""
    shutil.rmtree(target, ignore_errors=True)
    shutil.copytree(ROOT, target, ignore=MADE)
    (target / ".venv").mkdir()
    (target / ".venv" / CACHE.name).symlink_to(CACHE)  # Python for the pages, fetched already
    (target / "solutions.md").write_text(PAGE, encoding="utf-8")
    dropped = 0
    for chapter in course.read(target):
        notebook = nbformat.read(chapter.path, as_version=4)
        dropped += without_solutions(notebook)
        chapter.path.write_text(nbformat.writes(notebook) + "\n", encoding="utf-8")
    return dropped


def main():
    """Make the copy, build its pages, and say where both are; return what to exit with."""
    dropped = copy(SHEETS)
    say(f"Left out {dropped} solutions; building the pages ...")
    env = os.environ | {"PYTHONPATH": str(SHEETS)}
    if subprocess.run([sys.executable, "-m", "tools.build"], cwd=SHEETS, env=env).returncode:
        return "The pages could not be built: see the messages above."
    say(f"The notebooks without solutions are in {SHEETS / 'chapters'}.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
