"""Exercises that a reader solves in the page, without an installation.

The cells of an exercise become a slot, in which `practice.js` puts an editor. On the first click on
Run a worker starts Python (`tools/pyodide.py` provides it), with NumPy, the part of `attnlib` that
needs no more, `runner.py`, and what the exercise needs of the chapter. An exercise that depends on
what a page does not have, such as PyTorch, says so, as do all of them in a site without Python.
"""

import functools
import html
import json
import re
import shutil
from pathlib import Path

from docutils import nodes
from sphinx.transforms.post_transforms import SphinxPostTransform

from _ext import ROOT
from _ext.files import clear, digest, write
from _ext.notebook import read
from _ext.practice.exercises import exercises
from _ext.practice.modules import DATA, archive, data_for

PYTHON = ROOT / "_build" / "pyodide"
WORKER = Path(__file__).parent / "worker.js"
# What a reader calls a module.
NAMES = {"torch": "PyTorch", "attnlib.bridge": "PyTorch", "matplotlib": "Matplotlib"}

# An exercise that calls `judge` can be sent to others: its code stands in the address.
SHARED = re.compile(r"\bjudge\(")

ELSEWHERE = "open the notebook: it is at the top of the page."
NO_PYTHON = f"To solve this, {ELSEWHERE}"
LACKING = f"This needs {{}}, which a page has not. To solve it, {ELSEWHERE}"


class practice_slot(nodes.General, nodes.Element):  # noqa: N801
    """The cells of an exercise; docutils names its nodes in lower case."""


class MakeSlots(SphinxPostTransform):
    """Put the cells of each exercise into a slot."""

    default_priority = 5  # before cells are folded

    def run(self, **kwargs):
        path = Path(self.env.doc2path(self.env.docname))
        if path.suffix != ".ipynb":
            return
        containers = [*self.document.findall(nodes.container)]
        cells = {node["cell_index"]: node for node in containers if "cell_index" in node}
        chapter = re.sub(r".*/(\d+-)?", "", self.env.docname)
        for exercise in exercises(read(path)):
            self.add_slot(cells[exercise.at], exercise, f"{chapter}/{exercise.key}")

    def add_slot(self, cell, exercise, key):
        parent, at = cell.parent, cell.parent.index(cell)
        slot = practice_slot(exercise=exercise, key=key)
        parent.insert(at, slot)
        for _ in range(2 if exercise.judge else 1):
            slot.append(parent.pop(at + 1))


def visit_slot(self, node):
    exercise = node["exercise"]
    title = exercise.name or exercise.key.replace("-", " ")
    alive = site_files() and not exercise.lacking
    data = {"key": node["key"], "title": title, "name": exercise.name}
    data |= {"judge": exercise.judge, "before": exercise.before}
    given = f"{exercise.start}\n{exercise.judge}"
    data |= {"data": data_for(given)}
    attribute = f' data-exercise="{html.escape(json.dumps(data))}"' if alive else ""
    if SHARED.search(given):
        attribute += f' data-name="{name_in_address(exercise.key)}"'
    self.body.append(f'<div class="practice-slot"{attribute}>\n')


def name_in_address(key):
    """The name of a slot in the page's address, of the form that widgets have there."""
    return f"practice-{re.sub('[^a-z0-9]+', '-', key.lower())}"


def depart_slot(self, node):
    """Close a slot; one that stays as it is says why."""
    lacking = sorted({NAMES.get(name, name) for name in node["exercise"].lacking})
    note = LACKING.format(" and ".join(lacking)) if lacking else "" if site_files() else NO_PYTHON
    self.body.append(f'<p class="practice-note">{note}</p></div>\n' if note else "</div>\n")


def python_manifest():
    """What `tools/pyodide.py` says of the Python that it has made ready; None without one."""
    manifest = PYTHON / "manifest.json"
    return json.loads(manifest.read_text(encoding="utf-8")) if manifest.is_file() else None


def name_with_digest(name, content):
    """A file name that changes with the content: a browser never keeps an old one."""
    stem, _, suffix = name.rpartition(".")
    return f"{stem}.{digest(content)}.{suffix}"


@functools.cache
def site_files():
    """What a page fetches on the first click: {name below practice/: content or folder}.

    The manifest, which names all the others, stands first.
    """
    python = python_manifest()
    if not python:
        return {}
    given = {"attnlib.zip": archive(), "worker.js": WORKER.read_bytes()}
    files = {name_with_digest(name, content): content for name, content in given.items()}
    read = {path: ROOT.joinpath(path).read_bytes() for path in DATA.values()}
    names = {path: name_with_digest(Path(path).name, content) for path, content in read.items()}
    folder = name_with_digest("pyodide.", json.dumps(python).encode()).rstrip(".")
    manifest = python | {"python": folder} | dict(zip(("attnlib", "worker"), files, strict=True))
    manifest |= {"data": names}
    files |= {names[path]: content for path, content in read.items()}
    text = json.dumps(manifest).encode()
    return {name_with_digest("manifest.json", text): text} | files | {folder: PYTHON}


def write_files(app, builder):
    """Before the first page is written: Python and what goes along, and no older ones."""
    place, wanted = Path(app.outdir, "_static", "practice"), site_files()
    clear(place.glob("*"), wanted)
    for name, content in wanted.items():
        if isinstance(content, Path):
            shutil.copytree(content, place / name, dirs_exist_ok=True)
        else:
            write(place / name, content)


def add_files(app, pagename, templatename, context, doctree):
    """Give a page with exercises the script and the style that they need."""
    slots = list(doctree.findall(practice_slot)) if doctree else []
    if not slots:
        return
    app.add_css_file("practice.css")
    if site_files() and not all(slot["exercise"].lacking for slot in slots):
        manifest = f"practice/{next(iter(site_files()))}"
        # After book.js, which gives names to what scrolls: the editors have their own.
        options = {"loading_method": "defer", "data-manifest": manifest}
        app.add_js_file("practice.js", priority=900, **options)


def setup(app):
    app.add_node(practice_slot, html=(visit_slot, depart_slot))
    app.add_post_transform(MakeSlots)
    app.connect("write-started", write_files)
    app.connect("html-page-context", add_files)
