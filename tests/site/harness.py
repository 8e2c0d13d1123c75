"""A widget in a browser, on a page of its own made as the site makes its pages."""

import functools
import json
import threading
from contextlib import contextmanager
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer

from axe_playwright_python.base import AXE_SCRIPT

from attnlib.widgets.base import css
from tests.conftest import ROOT

PAGE = """<!doctype html><html lang="en"><head><meta charset="utf-8"><title>A page</title>
<meta name="viewport" content="width=device-width, initial-scale=1">
<link rel="stylesheet" href="widgets.css"><link rel="icon" href="data:,">
<script defer src="widget_host.js"></script><script defer src="module.js"></script>
<style>body {{ max-width: 46rem; margin: 0 auto; padding: 0 0.5rem; background: var(--page);
color: var(--ink); }} .widget-slot {{ position: relative; }}</style></head>
<body><main><h1>A page</h1><div class="widget-slot" data-module="{name}">
<div class="widget-picture">{picture}</div></div>
<p id="after">What comes after.</p></main></body>"""
FRAMES = "new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))"
SHIFTS = """self.shifts = []; new PerformanceObserver(list => list.getEntries().forEach(
  entry => shifts.push(entry.value))).observe({type: "layout-shift", buffered: true});"""
TAGS = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]


class _Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *args):
        pass


def host():
    """The script of the site that brings widgets to life."""
    return (ROOT / "_ext" / "static" / "widget_host.js").read_text(encoding="utf-8")


def write_page(folder, widget):
    """Write a page with one widget, and what it refers to."""
    name = type(widget).__name__
    for file, text in {
        "page.html": PAGE.format(name=name, picture=widget._picture()),
        "widgets.css": css(),
        "widget_host.js": host(),
        "module.js": f"registerWidget({json.dumps(name)}, {json.dumps(widget._esm)});",
    }.items():
        (folder / file).write_text(text, encoding="utf-8")


@contextmanager
def served(folder):
    """Give the addresses of the page over http and from disk."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(_Quiet, directory=folder))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield {
        "http": f"http://127.0.0.1:{server.server_port}/page.html",
        "file": (folder / "page.html").as_uri(),
    }
    server.shutdown()


def wake(page, address):
    """Open the page and wait until its widget is alive."""
    page.goto(address)
    page.wait_for_selector("html[data-widgets=ready]")
    return page


def import_module(page, widget):
    """Load a widget's module as a notebook does, from a blob, as `widget` of the page."""
    page.evaluate(
        """async source => {
            const blob = new Blob([source], {type: "text/javascript"});
            self.widget = await import(URL.createObjectURL(blob));
        }""",
        widget._esm,
    )
    return page


def axe_findings(page):
    """What axe finds wrong, as (rule, element), in both themes and at two widths."""
    page.evaluate(AXE_SCRIPT)
    options = {"runOnly": TAGS, "rules": {"target-size": {"enabled": True}}}
    found = []
    for width in (1280, 360):
        page.set_viewport_size({"width": width, "height": 900})
        for theme in ("light", "dark"):
            page.evaluate("theme => { document.body.dataset.theme = theme }", theme)
            page.evaluate(FRAMES)
            rules = page.evaluate("options => axe.run(document, options)", options)["violations"]
            found += [(rule["id"], rule["nodes"][0]["html"]) for rule in rules]
    return found
