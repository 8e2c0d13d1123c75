"""Exercises that a reader solves in the page, without an installation.

Each open code cell under a chapter's "Exercises" is an exercise; the open cell right below it, if
there is one, judges it. Both become a slot, in which `practice.js` puts an editor. On the first
click on Run a worker starts Python (`tools/pyodide.py` supplies it), with NumPy, the part of
`attnlib` that needs no more, and `runner.py`. The exercise finds what it needs of the
chapter: the statements on which its cells or its solution depend are taken along. One that depends
on what a page has not, such as PyTorch, says so, as do all of them where Python is not supplied.
"""

import ast
import functools
import hashlib
import html
import io
import json
import re
import shutil
import symtable
import sys
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from zipfile import ZIP_DEFLATED, ZipFile, ZipInfo

from docutils import nodes
from sphinx.transforms.post_transforms import SphinxPostTransform

from _ext import ROOT
from _ext.notebook import read

HERE = Path(__file__).resolve().parent
PYTHON = ROOT / "_build" / "pyodide"
RUNNER = HERE / "runner.py"
WORKER = HERE / "worker.js"
ENTRIES = ["attnlib", "attnlib.check", "attnlib.models.induction"]
# Python imports it before `induction`, but what it loads itself needs files that a page does not
# have: an empty file takes its place.
PACKAGE = "attnlib.models"
STANDARD = {"numpy", *sys.stdlib_module_names}
# What a reader calls a module.
NAMES = {"torch": "PyTorch", "attnlib.bridge": "PyTorch", "matplotlib": "Matplotlib"}
HEADING = re.compile(r"^#{2,3} .+$", re.M)
TITLE = "Exercises"

ELSEWHERE = "open the notebook: it is at the top of the page."
NO_PYTHON = f"To solve this, {ELSEWHERE}"
LACKING = f"This needs {{}}, which a page has not. To solve it, {ELSEWHERE}"


@dataclass(frozen=True)
class Exercise:
    """An exercise of a notebook.

    Attributes
    ----------
    key : str
        Its name in the chapter.
    name : str
        The function that is to be written; empty if there is none.
    at : int
        The place of its cell in the notebook.
    start, judge, solution : str
        Its cell, the cell that judges it, and the first one that answers it; all but `start` may
        be empty.
    before : str
        The statements of the chapter on which they depend.
    lacking : tuple of str
        The modules on which they depend, and that a page has not.
    """

    key: str
    name: str
    at: int
    start: str
    judge: str
    solution: str
    before: str
    lacking: tuple


# --- what goes along: attnlib, as far as NumPy is enough -----------------------------------------


def module_file(name):
    """The file of a module of the checkout, if there is one."""
    path = ROOT.joinpath(*name.split("."))
    return next((f for f in (path / "__init__.py", path.with_suffix(".py")) if f.is_file()), None)


def modules_named(node):
    """The modules of `attnlib` that an import names, each by its own name."""
    names = [alias.name for alias in node.names]
    if isinstance(node, ast.ImportFrom):
        inner = [f"{node.module}.{name}" for name in names]
        names = [name if module_file(name) else node.module or "" for name in inner]
    return [name for name in names if name.partition(".")[0] == "attnlib" and module_file(name)]


@functools.cache
def modules():
    """The modules of `attnlib` in the page: the entries, and whatever they import."""
    found, ahead = {}, list(ENTRIES)
    while ahead:
        name = ahead.pop()
        if name not in found:
            found[name] = module_file(name)
            for node in ast.parse(found[name].read_text(encoding="utf-8")).body:
                if isinstance(node, ast.Import | ast.ImportFrom):
                    ahead += modules_named(node)
    return found


def archive():
    """These modules and the runner as a zip, the same bytes each time."""
    files = {path.relative_to(ROOT).as_posix(): path.read_bytes() for path in modules().values()}
    files[RUNNER.name] = RUNNER.read_bytes()
    files[module_file(PACKAGE).relative_to(ROOT).as_posix()] = b""
    sink = io.BytesIO()
    with ZipFile(sink, "w") as zipped:
        for name, content in sorted(files.items()):
            zipped.writestr(ZipInfo(name), content, ZIP_DEFLATED)
    return sink.getvalue()


# --- what an exercise depends on -----------------------------------------------------------------


@dataclass(frozen=True)
class Statement:
    """A statement of a chapter: the names that it reads, and those that it makes or changes."""

    source: str
    reads: frozenset
    makes: frozenset
    lacks: frozenset = frozenset()  # the module that it imports, if a page has not got it


def read_names(source):
    """The names that a piece of code expects to be there, Python's own among them."""
    found, tables = set(), [symtable.symtable(source, "", "exec")]
    for table in tables:
        tables += table.get_children()
        top = table.get_type() == "module"
        names = (name for name in table.get_symbols() if name.is_referenced())
        found |= {name.get_name() for name in names if top or name.is_global()}
    return frozenset(found)


def made_names(node):
    """The names that a statement binds, and those of what it changes in place."""
    if isinstance(node, ast.FunctionDef | ast.ClassDef):
        return frozenset([node.name])
    names = set()
    for part in ast.walk(node):
        if isinstance(getattr(part, "ctx", None), ast.Store):
            while isinstance(part, ast.Attribute | ast.Subscript):
                part = part.value
            names |= {part.id} if isinstance(part, ast.Name) else set()
    return frozenset(names)


def imports(node):
    """An import as statements of one name each."""
    for alias in node.names:
        one = ast.Import([alias])
        module = alias.name.partition(".")[0]
        if isinstance(node, ast.ImportFrom):
            one = ast.ImportFrom(node.module, [alias], node.level)
            module = node.module.partition(".")[0]
        there = modules().keys() | STANDARD
        lacks = set(modules_named(one) or [module]) - there
        makes = (alias.asname or alias.name).partition(".")[0]
        yield Statement(ast.unparse(one), frozenset(), frozenset([makes]), frozenset(lacks))


def statements(source):
    """The statements of a cell; none of one with IPython's own commands."""
    try:
        tree = ast.parse(source)
    except SyntaxError:
        return
    for node in tree.body:
        if isinstance(node, ast.Import | ast.ImportFrom):
            yield from imports(node)
        else:
            text = ast.unparse(node)
            yield Statement(text, read_names(text), made_names(node))


def dependencies(cells, chapter, given):
    """What the cells of an exercise need of the chapter, and what a page lacks for it.

    Parameters
    ----------
    cells : list of str
    chapter : list of Statement
        All that stands above them.
    given : int
        How many of these stand in the first cell. A learner counts on them: they are taken along
        wherever a page can run them.

    Returns
    -------
    (str, tuple of str)
        Python statements, and the names of modules.
    """
    lacking, needs = {}, []
    for one in chapter:
        needs.append(one.lacks.union(*(lacking.get(name, ()) for name in one.reads)))
        lacking |= dict.fromkeys(one.makes, needs[-1])
    own = frozenset().union(*(made_names(node) for cell in cells for node in ast.parse(cell).body))
    wanted = frozenset().union(*map(read_names, cells)) - own
    taken, lacks = [], frozenset()
    for at, one in reversed([*enumerate(chapter)]):
        if one.makes & wanted:
            wanted |= one.reads
            lacks |= needs[at]
        elif at >= given or needs[at]:
            continue
        taken.insert(0, one.source)
    return "\n".join(taken), tuple(sorted(lacks))


# --- the exercises of a notebook -----------------------------------------------------------------


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
                inside = heading == TITLE if line.startswith("## ") else inside
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


# --- the page ------------------------------------------------------------------------------------


class practice_slot(nodes.General, nodes.Element):  # noqa: N801
    """The cells of an exercise; docutils names its nodes in lower case."""


class MakeSlots(SphinxPostTransform):
    """Put the cells of each exercise into a slot."""

    default_priority = 5  # before cells are folded
    formats = ("html",)

    def run(self, **kwargs):
        """Go through the exercises of a notebook."""
        path = Path(self.env.doc2path(self.env.docname))
        if path.suffix != ".ipynb":
            return
        containers = [*self.document.findall(nodes.container)]
        cells = {node["cell_index"]: node for node in containers if "cell_index" in node}
        chapter = re.sub(r".*/(\d+-)?", "", self.env.docname)
        for exercise in exercises(read(path)):
            self.fill(cells[exercise.at], exercise, f"{chapter}/{exercise.key}")

    def fill(self, cell, exercise, key):
        """Put the slot of an exercise in the place of its cells."""
        parent, at = cell.parent, cell.parent.index(cell)
        slot = practice_slot(exercise=exercise, key=key)
        parent.insert(at, slot)
        for _ in range(2 if exercise.judge else 1):
            slot.append(parent.pop(at + 1))


def visit_slot(self, node):
    """Open a slot, with what `practice.js` needs to know of it."""
    exercise = node["exercise"]
    title = exercise.name or exercise.key.replace("-", " ")
    alive = own_files() and not exercise.lacking
    data = {"key": node["key"], "title": title, "name": exercise.name}
    data |= {"judge": exercise.judge, "before": exercise.before}
    attribute = f' data-exercise="{html.escape(json.dumps(data))}"' if alive else ""
    self.body.append(f'<div class="practice-slot"{attribute}>\n')


def depart_slot(self, node):
    """Close a slot; one that stays as it is says why."""
    lacking = sorted({NAMES.get(name, name) for name in node["exercise"].lacking})
    note = LACKING.format(" and ".join(lacking)) if lacking else "" if own_files() else NO_PYTHON
    self.body.append(f'<p class="practice-note">{note}</p></div>\n' if note else "</div>\n")


# --- the files of the site -----------------------------------------------------------------------


def supplied():
    """What `tools/pyodide.py` says of the Python that it has made ready; None without one."""
    manifest = PYTHON / "manifest.json"
    return json.loads(manifest.read_text(encoding="utf-8")) if manifest.is_file() else None


def digested(name, content):
    """A file name that changes with the content: a browser never keeps an old one."""
    stem, _, suffix = name.rpartition(".")
    return f"{stem}.{hashlib.sha256(content).hexdigest()[:8]}.{suffix}"


@functools.cache
def own_files():
    """What a page fetches on the first click: {name below practice/: content or folder}.

    The manifest, which names all the others, stands first.
    """
    python = supplied()
    if not python:
        return {}
    given = {"attnlib.zip": archive(), "worker.js": WORKER.read_bytes()}
    files = {digested(name, content): content for name, content in given.items()}
    folder = digested("pyodide.", json.dumps(python).encode()).rstrip(".")
    manifest = python | {"python": folder} | dict(zip(("attnlib", "worker"), files, strict=True))
    text = json.dumps(manifest).encode()
    return {digested("manifest.json", text): text} | files | {folder: PYTHON}


def write_files(app, builder):
    """Before the first page is written: Python and what goes along, and no older ones."""
    if builder.format != "html":
        return
    place, wanted = Path(app.outdir, "_static", "practice"), own_files()
    for old in place.glob("*"):
        if old.name not in wanted:
            shutil.rmtree(old) if old.is_dir() else old.unlink()
    for name, content in wanted.items():
        place.mkdir(parents=True, exist_ok=True)
        if isinstance(content, Path):
            shutil.copytree(content, place / name, dirs_exist_ok=True)
        else:
            (place / name).write_bytes(content)


def add_files(app, pagename, templatename, context, doctree):
    """Give a page with exercises the script and the style that they need."""
    slots = list(doctree.findall(practice_slot)) if doctree else []
    if not slots:
        return
    app.add_css_file("practice.css")
    if own_files() and not all(slot["exercise"].lacking for slot in slots):
        manifest = f"practice/{next(iter(own_files()))}"
        # After book.js, which gives names to what scrolls: the editors have their own.
        options = {"loading_method": "defer", "data-manifest": manifest}
        app.add_js_file("practice.js", priority=900, **options)


def setup(app):
    """Register with Sphinx."""
    app.add_node(practice_slot, html=(visit_slot, depart_slot))
    app.add_post_transform(MakeSlots)
    app.connect("write-started", write_files)
    app.connect("html-page-context", add_files)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
