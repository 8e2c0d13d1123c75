"""Runs a learner's code in the page: the worker hands it over, and each run ends in one clear line.

It stands in the archive that `practice.py` writes for the page, beside the part of `attnlib` that
needs NumPy alone. `worker.js` calls `run` for each click on Run.
"""

import ast
import builtins
import contextlib
import functools
import io
import linecache
import math
import sys
import traceback
import types
import warnings

import numpy as np

import attnlib
from attnlib import check

FILE = "your code"
MOST_CHARACTERS, MOST_LINES, LONGEST_VALUE, LONGEST_ERROR = 10_000, 200, 2_000, 300
LONGEST_LINE = 120  # of the learner's own, in an error
GIVEN = {"math": math, "np": np, "attnlib": attnlib, "check": check}
AVAILABLE = "A page has NumPy, attnlib and Python's own modules."
SPECIAL = {
    SystemExit: "Your code ends the program (exit or sys.exit). Leave that out: it ends by itself.",
    RecursionError: "RecursionError: the function calls itself without end.",
}


# --- what is printed ----------------------------------------------------------------------------


class Output(io.TextIOBase):
    """Hands what is printed to the page, a line at once, up to a limit."""

    def __init__(self, post):
        self.post, self.waiting, self.full = post, "", False
        self.characters, self.lines = MOST_CHARACTERS, MOST_LINES  # for which there is room

    def writable(self):
        """Tell `print` that it may write."""
        return True

    def write(self, text):
        """Take a piece of text; beyond the limit, nothing."""
        if not isinstance(text, str):
            raise TypeError(f"write() argument must be str, not {type(text).__name__}")
        if self.full:
            return len(text)
        piece = "".join(text[: self.characters].splitlines(keepends=True)[: self.lines])
        self.characters -= len(piece)
        self.lines -= piece.count("\n")
        self.full = len(piece) < len(text) or not (self.lines and self.characters)
        end = "" if piece.endswith("\n") else "\n"
        self.waiting += piece + (f"{end}... the rest is left out.\n" if self.full else "")
        if "\n" in self.waiting:  # at once, since a loop without end may follow
            self.flush()
        return len(text)

    def flush(self):
        """Send what waits."""
        if self.waiting:
            self.post(self.waiting)
        self.waiting = ""


def no_input(prompt=""):
    """Stand in for `input`, which without a keyboard raises the same."""
    raise EOFError("input() has nobody to ask here: write the value into the code")


# --- what went wrong ----------------------------------------------------------------------------


def shortened(text):
    """A line of code, or as much of it as is read."""
    return text if len(text) <= LONGEST_LINE else text[:LONGEST_LINE] + " ..."


def own_lines(error, source):
    """The learner's own lines on the way to an error; one that repeats itself, once."""
    lines, found = source.splitlines(), []
    for frame in traceback.extract_tb(error.__traceback__):
        if frame.filename != FILE:
            continue
        text = lines[frame.lineno - 1].strip() if frame.lineno <= len(lines) else ""
        inside = "" if frame.name == "<module>" else f" in {frame.name}"
        line = f"Line {frame.lineno}{inside}: {shortened(text)}"
        if not found or found[-1] != line:
            found.append(line)
    return found if len(found) <= 4 else [*found[:2], f"... {len(found) - 3} more ...", found[-1]]


def marked_line(error, source):
    """The line of a syntax error, and a mark below its place."""
    lines, number = source.splitlines(), error.lineno or 1
    head = f"Line {number}: "
    text = lines[number - 1] if number <= len(lines) else ""
    place = max((error.offset or 1) - 1, 0)
    mark = [" " * (len(head) + place) + "^"] if place < LONGEST_LINE else []
    return [head + shortened(text), *mark]


def explained(error, source):
    """An error as an answer: one clear line, and the learner's lines that lead to it."""
    name, said = type(error).__name__, str(error)
    lines = own_lines(error, source)
    message = f"{name}: {said[:LONGEST_ERROR]}" if said else name
    if isinstance(error, SyntaxError) and error.filename == FILE:
        lines, message = marked_line(error, source), f"{name}: {error.msg}"
    elif isinstance(error, MemoryError):
        message = f"MemoryError: {said or 'your code asks for more memory than a page may take'}"
    elif isinstance(error, ModuleNotFoundError):
        message = f"{error.name} is not here. {AVAILABLE}"
    for kind, words in SPECIAL.items():
        if isinstance(error, kind):
            message = words
    return {"passed": False, "message": message, "lines": lines}


def watched(function, source, lines):
    """The same function; the lines of the first error that it raises are put into `lines`."""
    if not isinstance(function, types.FunctionType):
        return function

    @functools.wraps(function)
    def same(*arguments, **named):
        try:
            return function(*arguments, **named)
        except BaseException as error:
            lines[:] = lines or own_lines(error, source)
            raise

    return same


# --- what a run may not leave behind ------------------------------------------------------------

OURS = ("numpy", "attnlib", "math", "builtins")
KEPT = []  # names and values of these modules and of this one, filled in its last lines


def mend():
    """Put back what a learner's code replaced in a module."""
    for now, kept in KEPT:
        for name, value in kept.items():
            if name not in now or now[name] is not value:
                now[name] = value


@contextlib.contextmanager
def world(out):
    """The world of a run: its output, no input, its own warnings; afterwards all is as before."""

    def warn(message, category, filename, lineno, file=None, line=None):
        where = f"Line {lineno}: " if filename == FILE else ""
        out.write(f"{where}{category.__name__}: {message}\n")

    limit, ask = sys.getrecursionlimit(), builtins.input
    with contextlib.ExitStack() as stack:
        stack.callback(mend)
        stack.callback(sys.setrecursionlimit, limit)
        stack.callback(setattr, builtins, "input", ask)
        stack.callback(out.flush)
        for keeper in (
            np.errstate(),
            np.printoptions(),
            warnings.catch_warnings(),
            contextlib.redirect_stdout(out),
            contextlib.redirect_stderr(out),
        ):
            stack.enter_context(keeper)
        warnings.simplefilter("default")
        warnings.showwarning = warn
        builtins.input = no_input
        np.random.seed(0)
        yield


# --- a run --------------------------------------------------------------------------------------


def executed(source, file, space):
    """Run a cell; the value of its last line, if that is an expression."""
    tree = ast.parse(source, file)
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    exec(compile(tree, file, "exec"), space)
    return last and eval(compile(ast.Expression(last.value), file, "eval"), space)


def names_of(source):
    """The names that a text defines at its top, and those that it mentions."""
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return set(), set()
    kinds = ast.FunctionDef | ast.ClassDef
    made = {node.name for node in tree.body if isinstance(node, kinds)}
    names = [node for node in ast.walk(tree) if isinstance(node, ast.Name)]
    made |= {name.id for name in names if isinstance(name.ctx, ast.Store)}
    return made, {name.id for name in names if isinstance(name.ctx, ast.Load)}


def needed(source, earlier):
    """Those of the earlier exercises that a text builds on, in their order."""
    made, wanted = names_of(source)
    wanted, chosen = wanted - made, []
    for text in reversed(earlier):
        made, mentioned = names_of(text)
        if made & wanted:
            chosen.insert(0, text)
            wanted = (wanted - made) | mentioned
    return chosen


def judged(judge, name, space, source):
    """What the cell below an exercise says of it, as an answer; None if there is no such cell."""
    if not judge:
        return {"passed": None, "message": "", "lines": []}
    if name and name not in space:
        message = f"The checker looks for {name}, and there is none: keep that name."
        return {"passed": False, "message": message, "lines": []}
    lines, texts = [], []
    space = space | GIVEN | ({name: watched(space[name], source, lines)} if name else {})
    verdict = executed(judge, "the checker", space)
    if isinstance(verdict, check.Verdict):
        passed, message = verdict.right, verdict.message
        texts = [list(text) for text in verdict.texts]
    else:  # True, or 1 as the share of what is right
        verdict = verdict.item() if isinstance(verdict, np.generic) else verdict
        passed, call = bool(verdict == 1), judge.strip().splitlines()[-1]
        message = f"{'Right' if passed else 'Not yet'}: {call} is {verdict!r}."
    if " raised ModuleNotFoundError" in message and not passed:
        message += f" {AVAILABLE}"
    # The lines are of an error that the checker caught, and speaks of.
    lines = lines if " raised " in message and not passed else []
    return {"passed": passed, "message": message, "lines": lines, "texts": texts}


def run(source, judge, name, before, earlier, post):
    """Run a learner's code, then the cell that judges it.

    Parameters
    ----------
    source : str
        The learner's code.
    judge : str
        The cell below the exercise, which ends in its verdict; empty if there is none.
    name : str
        The function that is judged.
    before : str
        What the chapter has defined that the exercise needs.
    earlier : list of str
        The code of the exercises above; those that `source` mentions run first, in silence.
    post : callable
        Takes each piece of the output.

    Returns
    -------
    dict
        `passed` (None if nothing is judged), `message`, and the learner's own `lines` that led to
        an error. A judge may add `texts` to compare, each as its title and three parts.
    """
    space = {"__name__": "__main__", **GIVEN}
    linecache.cache[FILE] = (len(source), None, source.splitlines(keepends=True), FILE)
    out = Output(post)
    try:
        with world(Output(lambda text: None)):
            exec(before, space)
            for text in needed(source, earlier):
                try:
                    exec(compile(text, "above", "exec"), space)
                except Exception:
                    continue  # then the name is missing, and Python says so
        with world(out):
            value = executed(source, FILE, space)
            if value is not None:
                print(repr(value)[:LONGEST_VALUE])
            return judged(judge, name, space, source)
    except BaseException as error:
        return explained(error, source)
    finally:
        linecache.cache.pop(FILE, None)


KEPT += [
    (vars(module), dict(vars(module)))
    for name, module in sys.modules.items()
    if name.partition(".")[0] in OURS or name == __name__
]
