"""Exercises in the page: which a notebook has, what goes along, and how each run ends."""

import io
import json
import re
import subprocess
import sys
import zipfile
from types import SimpleNamespace

import numpy as np
import pytest
from bs4 import BeautifulSoup

from _ext.notebook import Cell, Notebook, read
from _ext.practice import modules, runner
from _ext.practice import page as practice
from _ext.practice.exercises import Exercise
from _ext.practice.exercises import exercises as exercises_of
from tests import exercises
from tests.conftest import ROOT

JUDGED = exercises.judged()
every_exercise = pytest.mark.parametrize(
    ("chapter", "exercise"), JUDGED, ids=[f"{c}-{e.key}" for c, e in JUDGED]
)


def run(source, exercise=None, before="", earlier=()):
    """Run a cell as the page does; what it answers, with what it prints."""
    name, judge = (exercise.name, exercise.judge) if exercise else ("", "")
    before = exercise.before if exercise else before
    pieces = []
    answer = runner.run(source, judge, name, before, list(earlier), pieces.append)
    return SimpleNamespace(**answer, output="".join(pieces))


@every_exercise
def test_each_solution_is_right_and_each_start_is_not(chapter, exercise):
    """And the page says of the start what the notebook shows."""
    assert run(exercises.right(exercise), exercise).passed
    start = run(exercise.start, exercise)
    assert start.passed is False and start.message.startswith("Not ")
    cells = read(ROOT / "chapters" / f"{chapter}.ipynb").cells
    (stored,) = (c.outputs for c in cells if c.source == exercise.judge)
    assert "".join(stored[-1]["data"]["text/plain"]) in start.message


@every_exercise
def test_each_wrong_solution_is_refused_in_its_own_words(chapter, exercise):
    for words, cell in exercises.wrong(exercise):
        answer = run(cell, exercise)
        assert answer.passed is False and words in answer.message


def test_all_are_solved_in_the_page():
    paths = (ROOT / "chapters").glob("*.ipynb")
    found = [e for p in paths for e in exercises_of(read(p))]
    assert [e.key for e in found if e.lacking] == []


def test_an_exercise_without_a_verdict_runs_as_it_stands():
    found = [e for each in exercises.chapters().values() for e in each if not e.judge]
    assert found
    for exercise in found:
        answer = run(exercise.start, exercise)
        assert answer.passed is None and answer.message == ""


def notebook(*sources):
    """A notebook; a source that begins with # is text, one that begins with % an answer."""
    cells = []
    for source in sources:
        kind = "markdown" if source.startswith("#") else "code"
        tags = {"tags": ["answer"]} if source.startswith("%") else {}
        cells.append(Cell(kind, source.lstrip("%"), tags, [], ""))
    return Notebook(cells, {})


FIRST = "import math\nimport torch\nfrom attnlib import check, plots\nplots.use_style()\na = 2"
TASK = "## Exercises\n\n### The double\n\nWrite it."
START = "def my_double(x):\n    return ..."


def found(*sources):
    (exercise,) = exercises_of(notebook(FIRST, *sources))
    return exercise


def test_an_exercise_takes_along_what_its_cells_need_and_no_more():
    chapter = "b = [0, a]\nb[0] += 5\nc = torch.ones(2)\nd = 7\nprint(b)\ndef right(x): return x"
    judge = "assert right(my_double(1)) == sum(b)\nTrue"
    exercise = found(chapter, TASK, START, judge, "%def solution(x):\n    return d * x")
    assert exercise.name == exercise.key == "my_double" and exercise.judge == judge
    assert exercise.lacking == ()
    assert exercise.before.splitlines() == [
        "import math",
        "from attnlib import check",
        "a = 2",
        "b = [0, a]",
        "b[0] += 5",
        "d = 7",
        "def right(x):",
        "    return x",
    ]


def test_what_a_page_has_not_is_named():
    judge = "def twice(x): return x + x\nmy_double(2) == twice(2)"
    inner = found("x = torch.ones(2)", TASK, START, judge)
    assert inner.lacking == ()  # a name inside of a function is not one of the chapter
    for needs in "torch.ones(2)", "c", "deep()":
        chapter = "c = torch.ones(2)\ndef deep(): return c"
        exercise = found(chapter, TASK, START, f"my_double(2) == {needs}")
        assert exercise.lacking == ("torch",)


def test_a_cell_to_change_has_the_name_of_its_task_and_no_verdict():
    exercise = found(TASK, "n = 3\nprint(n * a)", "#### A word\n\nThen this.", "%print(6)")
    assert (exercise.key, exercise.name, exercise.judge) == ("the-double", "", "")
    assert run(exercise.start, exercise).output == "6\n"
    assert exercises_of(notebook(FIRST, START, TASK, "%1 + 1", "## Quiz", "a + 1")) == []
    assert exercises_of(notebook(FIRST, TASK, "print(torch.ones(2))")) == []  # a demonstration


def test_the_archive_runs_where_there_is_nothing_but_numpy(tmp_path):
    """In a Python of its own, which finds what a page has and NumPy, and refuses all else."""
    content, path = modules.archive(), tmp_path / "site"
    assert content == modules.archive()
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        assert "attnlib/plots.py" not in archive.namelist()
        archive.extractall(path)
    for name in modules.data_for("check.runs_the_writer(softmax=f)"):  # as `worker.js` does
        path.joinpath(name).parent.mkdir(exist_ok=True)
        path.joinpath(name).write_bytes(ROOT.joinpath(name).read_bytes())
    code = f"""
import sys
sys.path = [{str(path)!r}] + [p for p in sys.path if {str(ROOT)!r} not in p or ".venv" in p]
for name in ("scipy", "matplotlib", "torch", "anywidget", "traitlets"):
    sys.modules[name] = None
import runner
from attnlib.models import induction
answer = runner.run("def f(x): return 1", "check.softmax(f)", "f", "", [], print)
print(runner.__file__.startswith({str(path)!r}), answer["passed"], answer["texts"])
judge = "check.runs_the_writer(softmax=f)"
answer = runner.run("def f(x): return attnlib.softmax(x, axis=0)", judge, "f", "", [], print)
print(answer["passed"], *(len(text) for text in answer["texts"]))
"""
    environment = {"PATH": "", "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert done.stdout == "True False []\nFalse 4 4\n", done.stderr


@pytest.mark.parametrize(
    ("supplied", "lacking", "note"),
    [
        (True, (), None),
        (False, (), practice.NO_PYTHON),
        (True, ("attnlib.bridge", "torch"), practice.LACKING.format("PyTorch")),
        (False, ("torch",), practice.LACKING.format("PyTorch")),
    ],
)
def test_a_page_without_what_it_takes_sends_readers_to_the_notebook(
    monkeypatch, supplied, lacking, note
):
    monkeypatch.setattr(practice, "site_files", lambda: {"manifest.json": b""} if supplied else {})
    exercise = Exercise("double", "double", 2, START, "double(1) < 3", "", "", lacking)
    page = SimpleNamespace(body=[])
    slot = practice.practice_slot(exercise=exercise, key="chapter/double")
    practice.visit_slot(page, slot)
    practice.depart_slot(page, slot)
    html = BeautifulSoup("".join(page.body), "html.parser")
    assert [p.text for p in html.select("p")] == ([note] if note else [])
    kept = html.div.get("data-exercise")
    assert (kept is None) == bool(note)
    assert note or json.loads(kept)["judge"] == "double(1) < 3"
    assert note or json.loads(kept)["data"] == []


@pytest.mark.parametrize(
    ("source", "message", "lines"),
    [
        ("def f():\n    return 1 / 0\n\nf()", "ZeroDivisionError: division by zero",
         ["Line 4: f()", "Line 2 in f: return 1 / 0"]),
        ("x = (1 +", "SyntaxError: '(' was never closed", ["Line 1: x = (1 +", " " * 12 + "^"]),
        ("raise ValueError", "ValueError", ["Line 1: raise ValueError"]),
        ("def f(): f()\nf()", "RecursionError: the function calls itself without end.",
         ["Line 2: f()", "Line 1 in f: def f(): f()"]),
        ("import sys\nsys.exit(3)",
         "Your code ends the program (exit or sys.exit). Leave that out: it ends by itself.",
         ["Line 2: sys.exit(3)"]),
        ("n = input('n? ')",
         "EOFError: input() has nobody to ask here: write the value into the code",
         ["Line 1: n = input('n? ')"]),
        ("raise MemoryError", "MemoryError: your code asks for more memory than a page may take",
         ["Line 1: raise MemoryError"]),
        ("import no_such_module",
         "no_such_module is not here. A page has NumPy, attnlib and Python's own modules.",
         ["Line 1: import no_such_module"]),
        ("raise KeyboardInterrupt", "KeyboardInterrupt", ["Line 1: raise KeyboardInterrupt"]),
    ],
)  # fmt: skip
def test_an_error_is_one_clear_line_and_the_learners_own_lines(source, message, lines):
    answer = run(source)
    assert (answer.passed, answer.message, answer.lines) == (False, message, lines)


def test_an_error_inside_of_the_checker_shows_the_line_too():
    exercise = next(e for _, e in JUDGED if e.key == "my_softmax" and "runs" not in e.judge)
    answer = run("def my_softmax(scores):\n    return scores[99]", exercise)
    assert answer.message.startswith("my_softmax raised IndexError: index 99 is out of bounds")
    assert answer.lines == ["Line 2 in my_softmax: return scores[99]"]
    absent = run("def my_softmax(scores):\n    import no_such_module", exercise)
    assert absent.message.endswith(" A page has NumPy, attnlib and Python's own modules.")
    assert absent.lines == ["Line 2 in my_softmax: import no_such_module"]
    missing = run("def softmax(scores): return 1", exercise)
    assert missing.message == "The checker looks for my_softmax, and there is none: keep that name."


def test_what_is_printed_is_shown_to_the_end_of_a_page():
    answer = run("print(1, end='')\nprint(2)\nnp.ones(2) / 0\nnp.arange(3)")
    assert answer.output.splitlines() == [
        "12", "Line 3: RuntimeWarning: divide by zero encountered in divide", "array([0, 1, 2])",
    ]  # fmt: skip
    end = "... the rest is left out."
    for many in "for i in range(999): print(i)", "print('\\n'.join(map(str, range(999))))":
        lines = run(many).output.splitlines()
        assert (len(lines), lines[-2:]) == (runner.MOST_LINES + 1, ["199", end])
    long = run("print('x' * 10**6)").output
    assert long == "x" * runner.MOST_CHARACTERS + f"\n{end}\n"


def test_a_run_builds_on_the_exercises_above_in_silence():
    above = ["def g(x): return 2 * x\nprint('above')", "def h(x): return g(x) + 1", "1 / 0"]
    assert run("h(3)", earlier=above).output == "7\n"
    assert run("def g(x): return 0\nprint(g(3))", earlier=above).output == "0\n"
    assert run("no_such(3)", earlier=above).message.startswith("NameError: name 'no_such'")


def test_a_run_leaves_nothing_behind():
    spoilt = f"import builtins, {runner.__name__} as runner\nrunner.judged = runner.mend = None\n"
    spoilt += "builtins.print = np.exp = check.softmax = None\nkept = 1"
    run(spoilt + "\nnp.set_printoptions(precision=1)\nimport sys\nsys.setrecursionlimit(60)")
    answer = run("print(np.exp(0.5), np.array([1 / 3]), check.softmax is None)\nkept")
    assert answer.output == f"{np.exp(0.5)} [0.33333333] False\n"
    assert None not in (runner.judged, runner.mend)
    assert answer.message == "NameError: name 'kept' is not defined"
    assert run("np.random.rand()").output == run("np.random.rand()").output
    rule = "def f(tokens, i):\n    attnlib.judging._best_fixed = attnlib.judge = None\n    return 0"
    run(f"{rule}\njudge(f, 'encoder', 0, 2)", before=JUDGE)
    answer = run("judge(lambda tokens, i: i - 1, 'encoder', 0, 2)", before=JUDGE)
    assert answer.passed is None and re.search(r"your rule +1\.00 +1\.00", answer.output)


JUDGE = "from attnlib import judge"


@pytest.mark.parametrize(
    ("rule", "message", "lines"),
    [
        ("return 'x'", "TypeError: rule must return a position", ["Line 3: "]),
        ("return -1", "ValueError: rule must return a position from 0 to", ["Line 3: "]),
        ("return i // 0", "ZeroDivisionError: ", ["Line 3: ", "Line 2 in f: return i // 0"]),
        ("tokens[i] = 'the'", "TypeError: 'tuple' object does not", ["Line 3: ", "Line 2 in f: "]),
        (
            "attnlib.judging._recorded('encoder').keys[0][:] = i",
            "ValueError: assignment destination is read-only",
            ["Line 3: ", "Line 2 in f: "],
        ),
    ],
)
def test_a_rule_that_is_none_ends_in_one_clear_line(rule, message, lines):
    answer = run(f"def f(tokens, i):\n    {rule}\njudge(f, 'encoder', 0, 2)", before=JUDGE)
    assert not answer.passed and answer.message.startswith(message)
    assert len(answer.lines) == len(lines)
    assert all(line.startswith(said) for line, said in zip(answer.lines, lines, strict=True))
