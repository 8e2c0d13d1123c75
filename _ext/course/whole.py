"""All chapters on one page, `whole.html`, to read without a click or to search with the browser.

It is made of the pages of the chapters as they were written: text, formulas, figures, and a picture
of each instrument. Nothing on it lives, so it weighs half a megabyte, compressed. It says nothing
that the chapters do not say, and asks search engines to leave it out.
"""

import posixpath
import re
from html import escape
from pathlib import Path

from _ext.course.contents import chapters_of
from _ext.state import of_pages
from _ext.widgets import page as widget_slot

NAME = "whole"
TITLE = "The whole course on one page"
DESCRIPTION = "All chapters of Attention by Hand in order, on one page: text, formulas, pictures."
ROBOTS = '<meta name="robots" content="noindex">'
ARTICLE = re.compile(r'<article id="furo-main-content">(.*?)</article>', re.DOTALL)
# What only scripts read: the state of a widget, an exercise, what a link shows.
FOR_SCRIPTS = re.compile(
    r' data-(?:state|exercise)="[^"]*"|<template data-of.*?</template>\s*', re.DOTALL
)
OWN = re.compile(
    r'(?<= )(id|for|list|aria-labelledby|aria-describedby|aria-controls|headers)="([^"]+)"'
)
LINK = re.compile(r'(?<= )((?:xlink:)?href|src)="([^":]+)"')  # no other site's
PAINT = re.compile(r"url\((&quot;|&#39;)?#")
HEADING = re.compile(r"(</?h)([1-5])\b")


def place(page):
    """The id of a chapter in the whole: chapters/03-chai-piyo-by-hand is 03."""
    return f"chapter-{posixpath.basename(page)[:2]}"


def adopted(text, page, pages):
    """The article of a page, its ids and links those of the whole, its headings one level lower."""

    def own(match):
        names = " ".join(f"{place(page)}-{name}" for name in match[2].split())
        return f'{match[1]}="{names}"'

    def link(match):
        path, _, anchor = match[2].partition("#")
        if anchor.startswith("svg-"):  # an icon of every page
            return match[0]
        file = posixpath.normpath(
            posixpath.join(posixpath.dirname(page), path or f"../{page}.html")
        )
        target = file.removesuffix(".html")
        if target not in pages:
            return f'{match[1]}="{file}{anchor and "#"}{anchor}"'
        return f'{match[1]}="#{place(target)}{anchor and "-"}{anchor}"'

    text = FOR_SCRIPTS.sub("", text)
    text = LINK.sub(link, OWN.sub(own, text))
    text = PAINT.sub(rf"url(\1#{place(page)}-", text)
    return HEADING.sub(lambda match: f"{match[1]}{int(match[2]) + 1}", text)


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
        article = adopted(ARTICLE.search(text)[1], page, pages)
        body.append(f'<div class="whole" id="{place(page)}">{article}</div>')
    yield NAME, {"title": TITLE, "body": "\n".join(body)}, "page.html"


def add_files(app, pagename, templatename, context, doctree):
    """The styles of what stands on it, and what it says of itself."""
    if pagename != NAME:
        return
    pages = of_pages(app.env).items()
    used = set().union(*(state.widgets for name, state in pages if "/" in name))
    for name in widget_slot.assets(sorted(used)):
        if name.endswith(".css"):
            app.add_css_file(name)
    app.add_css_file("practice.css")
    app.add_css_file("whole.css", priority=910)
    description = f'<meta name="description" content="{DESCRIPTION}">'
    context["metatags"] = f"{context.get('metatags', '')}\n{description}\n{ROBOTS}"


def setup(app):
    """Register with Sphinx."""
    app.connect("html-collect-pages", collect)
    app.connect("html-page-context", add_files, priority=400)  # before head.py
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
