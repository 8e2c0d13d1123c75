"""Widgets in a page without a kernel.

A notebook's output that shows a widget becomes a slot: the widget's still picture, which holds
the traits it starts with. `widget_host.js` brings each slot to life; until then, and without
JavaScript, the picture stands there. A widget that only a kernel can move gets a plain
note in its place. Each widget's module is written once, to a file that pages refer to.
"""

import hashlib
import json
from html import escape
from pathlib import Path

from docutils import nodes
from myst_nb.sphinx_ import NbMetadataCollector

VIEW = "application/vnd.jupyter.widget-view+json"

_SLOT = """<div class="widget-slot" data-module="{name}">
<div class="widget-picture">{picture}</div></div>"""

_NOTE = """<div class="admonition note kernel-only">
<p class="admonition-title">Needs a running kernel</p>
<p>Here stands <code>{name}</code>. It moves when you run this notebook in Jupyter.</p></div>"""


def fill_slots(app, doctree):
    """Replace every widget view of a page by its slot, and the page's bulk state by nothing."""
    docname = app.env.docname
    state = _take_state(app.env, docname)
    used = app.env.widget_modules.setdefault(docname, {})
    used.clear()
    bundles = [
        node for node in doctree.findall(nodes.container) if node.get("nb_element") == "mime_bundle"
    ]
    for bundle in bundles:
        outputs = {child["mime_type"]: child for child in bundle.children}
        if VIEW not in outputs:
            continue
        view = outputs[VIEW]
        model = state[json.loads(_script_text(view))["model_id"]]
        if model["model_module"] == "anywidget" and "text/html" in outputs:
            name = model["state"]["_anywidget_id"].rpartition(".")[2]
            used[name] = {"js": model["state"]["_esm"], "css": model["state"].get("_css", "")}
            html = _SLOT.format(name=escape(name), picture=outputs["text/html"].astext())
        else:
            html = _NOTE.format(name=escape(model["model_name"].removesuffix("Model")))
        view.children = [nodes.raw("", html, format="html")]
        if "text/html" in outputs:
            bundle.remove(outputs["text/html"])


def _take_state(env, docname):
    """The state of all models of a page, taken out of what MyST-NB would load and write whole."""
    files = NbMetadataCollector.get_js_files(env, docname)
    taken = {key: files.pop(key) for key in list(files) if key.startswith("ipywidgets")}
    if not taken:
        return {}
    _, script = taken["ipywidgets_state"]
    return json.loads(script["body"])["state"]


def _script_text(view):
    """The JSON of the script element that MyST-NB makes of a view."""
    return view.astext().partition(">")[2].rpartition("<")[0]


def assets(modules):
    """The files under _static that these modules need: {name: text}.

    A name changes with its content, so that a reader's browser never keeps an old one.
    """
    texts = {("widgets", "css"): "\n".join(sorted({module["css"] for module in modules.values()}))}
    for name, module in sorted(modules.items()):
        call = f"registerWidget({json.dumps(name)}, {json.dumps(module['js'])});\n"
        texts[name, "js"] = call
    return {
        f"widgets/{stem}.{hashlib.sha256(text.encode()).hexdigest()[:8]}.{suffix}": text
        for (stem, suffix), text in texts.items()
    }


def write_assets(app, builder):
    """Before the first page is written: the modules of all pages, and no others."""
    if builder.format != "html":
        return
    static = Path(app.outdir, "_static")
    wanted = {}
    for modules in app.env.widget_modules.values():
        wanted |= assets(modules)
    for old in static.glob("widgets/*"):
        if f"widgets/{old.name}" not in wanted:
            old.unlink()
    for name, text in wanted.items():
        (static / name).parent.mkdir(parents=True, exist_ok=True)
        (static / name).write_text(text, encoding="utf-8")


def add_files(app, pagename, templatename, context, doctree):
    """Give a page the host, the modules and the style that its widgets need, and only those."""
    modules = app.env.widget_modules.get(pagename)
    if not modules:
        return
    app.add_js_file("widget_host.js", loading_method="defer")
    for name in assets(modules):
        if name.endswith(".css"):
            app.add_css_file(name)
        else:
            app.add_js_file(name, loading_method="defer")


def _begin(app):
    if not hasattr(app.env, "widget_modules"):
        app.env.widget_modules = {}


def _forget(app, env, docname):
    env.widget_modules.pop(docname, None)


def setup(app):
    """Register with Sphinx."""
    app.connect("builder-inited", _begin)
    app.connect("env-purge-doc", _forget)
    app.connect("doctree-read", fill_slots)
    app.connect("write-started", write_assets)
    app.connect("html-page-context", add_files)
    return {"parallel_read_safe": False, "parallel_write_safe": True}
