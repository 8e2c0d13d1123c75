"""All chapters on one page, `whole.html`, to read without a click or to search with the browser.

It is made of the pages of the chapters as they were written: text, formulas, figures, and a picture
of each instrument. Nothing on it lives, so it weighs half a megabyte, compressed. It says nothing
that the chapters do not say, and asks search engines to leave it out.
"""

import re
from html import escape
from pathlib import Path

from _ext.course.contents import chapters_of
from _ext.state import of_pages
from _ext.whole.one_page import adopted, place
from _ext.widgets import page as widget_slot

NAME = "whole"
TITLE = "The whole course on one page"
DESCRIPTION = "All chapters of Attention by Hand in order, on one page: text, formulas, pictures."
TAG = re.compile(r"<[^>]*>")
# White space that says nothing, a fifth of all nodes, and the tags beside it.
BLOCKS = "div p section details summary h[2-6] ul ol li dl dt dd table thead tbody tr th td figure"
SHAPES = "svg g defs path use rect line circle text clipPath"
GAP = re.compile(rf"(</?(?:{'|'.join(f'{BLOCKS} {SHAPES}'.split())})\b[^>]*>)\s+(?=<)")
# What may be wider than its box. Where it is not, `book.js` takes the Tab stop back, but only once
# the chapter is laid out.
BOX = re.compile(r'<(?:pre|div class="(?:math-scroll|figure-scroll|table-wrapper))[^>]*')
ROBOTS = '<meta name="robots" content="noindex">'


def collect(app):
    """After the other pages: this one, of those that stand in the site."""
    chapters = chapters_of(app)
    pages = [chapter.page for chapter in chapters]
    listed = "".join(
        f'<li><a href="#{place(c.page)}">{escape(c.heading)}</a></li>' for c in chapters
    )
    body = [
        f"<h1>{TITLE}</h1>\n<p>Here the instruments stand still: on their own pages they move.</p>"
    ]
    body.append(f'<ul class="whole-list">{listed}</ul>')
    for page in pages:
        text = Path(app.outdir, f"{page}.html").read_text(encoding="utf-8")
        article = BOX.sub(r'\g<0> tabindex="0"', adopted(text, page, pages, lower=1))
        article = GAP.sub(r"\1", article)
        letters = len(TAG.sub("", article))
        body.append(
            f'<div class="whole" id="{place(page)}" style="--letters: {letters}">{article}</div>'
        )
    yield NAME, {"title": TITLE, "body": "\n".join(body)}, "page.html"


def add_files(app, pagename, templatename, context, doctree):
    if pagename != NAME:
        return
    pages = of_pages(app.env).items()
    used = set().union(*(state.widgets for name, state in pages if "/" in name))
    for name in widget_slot.assets(sorted(used)):
        if name.endswith(".css"):
            app.add_css_file(name)
    app.add_css_file("practice.css")
    app.add_css_file("whole.css", priority=910)
    app.add_js_file("whole.js", loading_method="defer")
    description = f'<meta name="description" content="{DESCRIPTION}">'
    context["metatags"] = f"{context.get('metatags', '')}\n{description}\n{ROBOTS}"


def setup(app):
    app.connect("html-collect-pages", collect)
    app.connect("html-page-context", add_files, priority=400)  # before head.py
