"""The model that the widgets `Writer` and `Inspector` need, as a file of the site.

A page with one of them gets `writer_loader.js`, which says `self.writer` and loads nothing until
the reader asks for it. The file is a script, because a page that was opened from disk may load no
other kind, and its name changes with its content.
"""

import functools
import json
from pathlib import Path

from _ext.files import clear, digest, write
from _ext.state import of_page
from attnlib.widgets.writer import model_file

WIDGETS = {"Writer", "Inspector"}


@functools.cache
def model_script():
    """The model as a script that hands it to the page: (name, text)."""
    text = f"writer.take({json.dumps(model_file(), ensure_ascii=False, separators=(',', ':'))});\n"
    return f"model.{digest(text)}.js", text


def write_files(app, builder):
    """Before the first page is written: the model, and no older one."""
    place, (name, text) = Path(app.outdir, "_static", "writer"), model_script()
    clear(place.glob("*"), {name})
    write(place / name, text)


def add_files(app, pagename, templatename, context, doctree):
    """Give a page with the widget what loads the model."""
    if WIDGETS & set(dict(of_page(app.env, pagename).widgets)):
        options = {"loading_method": "defer", "data-model": f"writer/{model_script()[0]}"}
        app.add_js_file("writer_loader.js", priority=400, **options)


def setup(app):
    app.connect("write-started", write_files)
    app.connect("html-page-context", add_files)
