"""Widgets in a page without a kernel.

A notebook keeps the state of a widget that it shows. From that the widget's own module draws its
picture here, in the embedded engine, as it would in a browser. `widget_host.js` brings each picture
to life; until then, and without JavaScript, it stands there. A page that is no notebook shows a
widget by a directive, with the traits that differ from their defaults as JSON:

    :::{widget} ScalingExplorer
    {"d_k": 16}
    :::

A widget that only a kernel can move stands in a cell with the tag `needs-kernel` and gets a plain
note. Each module and each style is written once, to a file that pages refer to; so is each file
that several modules import.
"""

import functools
import json
from collections import Counter
from html import escape
from itertools import chain
from pathlib import Path

from docutils import nodes
from sphinx.util.docutils import SphinxDirective
from traitlets import TraitError

import attnlib.widgets
from _ext.assets import minify
from _ext.content.outputs import cell_of
from _ext.engine import widget_engine
from _ext.files import clear, digest, write
from _ext.notebook import stored_widget
from _ext.state import of_page
from attnlib.widgets.kit import base, modules

_NOTE = """<div class="admonition note kernel-only">
<p class="admonition-title">Needs Jupyter</p>
<p>When you run this notebook in Jupyter,
<code class="literal">{name}</code> appears here.</p></div>"""


@functools.cache
def engine(name):
    """The engine in which the module of a widget has run."""
    return widget_engine(getattr(attnlib.widgets, name)._esm)


def mount_point(name, state):
    """A widget in its state as HTML: a picture, and what the host needs to bring it to life."""
    same = base.constant_traits(getattr(attnlib.widgets, name))
    picture = engine(name)("widget.still(dukpy.state)", state=same | state)
    different = {trait: value for trait, value in state.items() if trait not in same}
    data = escape(json.dumps(different, ensure_ascii=False))
    return f'<div class="widget-slot" data-widget="{name}" data-state="{data}">{picture}</div>'


def mount_widgets(app, doctree):
    """Replace what a notebook keeps of each widget by its slot."""
    for bundle in list(doctree.findall(nodes.container)):
        if bundle.get("nb_element") != "mime_bundle":
            continue
        outputs = {child["mime_type"]: child for child in bundle.children}
        html, text = (outputs.get(kind) for kind in ("text/html", "text/plain"))
        stored = stored_widget(html.astext()) if html else None
        if stored:
            name, state = stored
            of_page(app.env, app.env.docname).widgets.add(use(name, state))
            html.children = [nodes.raw("", mount_point(name, state), format="html")]
        elif "tag_needs-kernel" in cell_of(bundle)["classes"]:
            note = _NOTE.format(name=escape(text.astext().partition("(")[0]))
            text.children = [nodes.raw("", note, format="html")]


class Widget(SphinxDirective):
    """A widget of `attnlib.widgets`, with its traits as JSON."""

    required_arguments = 1
    has_content = True

    def run(self):
        name = self.arguments[0]
        try:
            made = getattr(attnlib.widgets, name)(**json.loads("\n".join(self.content) or "{}"))
        except (AttributeError, TypeError, ValueError, TraitError) as error:
            raise self.error(f"widget {name}: {error}") from error
        return [self.node(name, made.state)]

    def node(self, name, state):
        of_page(self.env, self.env.docname).widgets.add(use(name, state))
        return nodes.raw("", mount_point(name, state), format="html")


def use(name, state):
    """A widget as a page uses it: its name, and its view if each view has a file of its own."""
    return name, state["view"] if getattr(attnlib.widgets, name).view_modules else ""


@functools.cache
def shared_modules():
    """Return the modules that a page loads once or not at all.

    Several widgets import them, or one view of a widget, or a module that is shared itself.
    """
    kinds = [(name, getattr(attnlib.widgets, name)) for name in attnlib.widgets.__all__]
    counts = Counter(file for name, _ in kinds for file in modules.imported(name))
    views = {file for _, kind in kinds for file in kind.view_modules.values()}
    below = {other for file in views for other in modules.imported(file)}
    return {file for file, count in counts.items() if count > 1} | views | below


def scripts(uses):
    """The scripts that hand these widgets, and the shared modules, to the host: {stem: text}.

    With a widget goes what is the same in each of its kind.
    """
    files, names = set(), {name for name, _ in uses}
    for name, view in uses:
        other = {f for v, f in getattr(attnlib.widgets, name).view_modules.items() if v != view}
        files |= shared_modules().intersection(modules.imported(name, other))
    texts = {file: _call("registerFile", file, modules.source(file)) for file in sorted(files)}
    for name in sorted(names):
        kind = getattr(attnlib.widgets, name)
        module = modules.module(name, base.bounds(kind), shared_modules())
        texts[modules.stem(name)] = _call(
            "registerWidget", name, module, base.constant_traits(kind)
        )
    return texts


def _call(function, name, script, *values):
    others = "".join(f",{json.dumps(value)}" for value in values)
    return f"{function}({json.dumps(name)},{quoted(minify(script, '.js'))}{others});\n"


def quoted(script):
    """Return a script as a string of JavaScript, in the quotes that it has less often itself."""
    inner = json.dumps(script, ensure_ascii=False)[1:-1]
    return "'{}'".format(inner.replace('\\"', '"').replace("'", "\\'"))


def assets(uses):
    """The files under _static that these widgets need: {name: text}.

    A name changes with its content, so that a reader's browser never keeps an old one.
    """
    styles = chain.from_iterable(
        base.styles(getattr(attnlib.widgets, name), view) for name, view in sorted(uses)
    )
    texts = {(file, "css"): minify(modules.style(file), ".css") for file in ("kit", *styles)}
    texts |= {(file, "js"): text for file, text in scripts(uses).items()}
    return {
        f"widgets/{file}.{digest(text)}.{suffix}": text for (file, suffix), text in texts.items()
    }


def menu():
    """The script that "Share" loads: the menu of a picture, and what saves the picture."""
    return "".join(_call("registerFile", name, modules.source(name)) for name in ("save", "share"))


def write_assets(app, builder):
    """Before the first page is written: what all widgets need, and nothing else."""
    static = Path(app.outdir, "_static")
    kinds = {name: getattr(attnlib.widgets, name).view_modules for name in attnlib.widgets.__all__}
    wanted = assets([(name, view) for name, views in kinds.items() for view in views or [""]])
    clear(static.glob("widgets/*"), {Path(name).name for name in wanted})
    for name, text in (wanted | {"share.js": menu()}).items():
        write(static / name, text)


def add_files(app, pagename, templatename, context, doctree):
    """Give a page the host, the modules and the styles that its widgets need, and only those."""
    used = of_page(app.env, pagename).widgets
    if not used:
        return
    app.add_js_file("widget_host.js", loading_method="defer")
    for name in assets(used):
        if name.endswith(".css"):
            app.add_css_file(name)
        else:
            app.add_js_file(name, loading_method="defer")


def setup(app):
    app.add_directive("widget", Widget)
    app.connect("doctree-read", mount_widgets)
    app.connect("write-started", write_assets)
    app.connect("html-page-context", add_files)
