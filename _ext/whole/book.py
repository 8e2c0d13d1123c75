"""The printed book, `_build/book.html`: all pages of the site behind a title page and contents.

`python -m tools.pdf` prints it. It is not part of the site, so that no reader has to load it.
"""

import re
from html import escape
from pathlib import Path
from posixpath import dirname, join, normpath

from sphinx import addnodes

from _ext.whole.one_page import adopted, place

NAME = "book.html"
LICENSE = "Code: MIT. Text and figures: CC BY 4.0."
NOTE = (
    "In the online book the instruments move; here each stands as it starts. The code of pictures "
    "and proofs is in the notebooks."
)
BOOK = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>{title}</title>
{styles}</head><body class="book" data-theme="light">
<div class="title-page"><img src="{site}/_static/logo.svg" alt=""><p class="title">{title}</p>
<p class="subtitle">{subtitle}</p><p class="author">{author}</p><p class="note">{NOTE}</p>
<p class="note">{LICENSE}</p></div>
<nav class="toc-page" id="contents"><h1>Contents</h1>{contents}</nav>
{articles}
<script src="{site}/_static/book.js"></script></body></html>
"""
# What stands at the foot of the pages of one article.
FOOT = """article[id="{id}"] {{ page: p{number}; }}
@page p{number} {{ @bottom-left {{ content: "{title}"; }} }}"""
# The printer replaces the digits: they take the space that the number will need.
ENTRY = '<li><a href="#{id}"><span>{title}</span><span data-page="{id}">000</span></a></li>'
STYLESHEET = re.compile(r'<link rel="stylesheet"[^>]* href="([^"]+)"')
LINK = re.compile(r'<a\b[^>]* href="(?!#|https?:|mailto:)[^"]*"[^>]*>(.*?)</a>', re.DOTALL)


def write(app, exception):
    if exception:
        return
    env, site, root = app.env, Path(app.outdir), app.config.root_doc
    parts = [("", [root])]
    for toctree in env.get_doctree(root).findall(addnodes.toctree):
        parts.append((toctree["caption"], [page for _, page in toctree["entries"]]))
    pages = [page for _, listed in parts for page in listed]
    texts = {page: (site / f"{page}.html").read_text(encoding="utf-8") for page in pages}
    titles = {page: escape(env.titles[page].astext()) for page in pages}
    book = BOOK.format(
        title=titles[root],
        site=site.name,
        styles=styles(site, texts, titles),
        subtitle=re.search(r"</h1>\s*<p>(.*?)</p>", texts[root], re.DOTALL)[1],
        author=escape(app.config.author),
        NOTE=NOTE,
        LICENSE=LICENSE,
        contents="\n".join(contents(caption, listed, titles) for caption, listed in parts),
        articles="\n".join(article(texts[page], page, texts, site.name) for page in pages),
    )
    (site.parent / NAME).write_text(book, encoding="utf-8")


def styles(site, texts, titles):
    """The styles of all pages, those that the first page has inline, and a foot for each page."""
    names = (
        normpath(join(dirname(page), name))
        for page, text in texts.items()
        for name in STYLESHEET.findall(text)
    )
    # As on each page, the style that all share comes last: it says how widgets look on paper.
    names = sorted(dict.fromkeys(names), key=lambda name: "/shared." in name)
    links = [f'<link rel="stylesheet" href="{site.name}/{name}">' for name in names]
    first, *_ = texts
    # The start page alone arranges its sections in a grid.
    grid = (site / "_static" / "start.css").read_text(encoding="utf-8")
    rules = [f"@scope (body) to (article:not([id={first}])) {{ {grid} }}"]
    for number, (page, title) in enumerate(titles.items()):
        rules.append(FOOT.format(id=place(page), number=number, title=title.replace('"', r"\"")))
    inline = re.search(r"<style>.*?</style>", texts[first], re.DOTALL)[0]
    links = [link for link in links if "/start.css" not in link]
    return "\n".join([*links, "<style>", *rules, "</style>", inline])


def contents(caption, pages, titles):
    """The part of the table of contents that lists these pages."""
    entries = (ENTRY.format(id=place(page), title=titles[page]) for page in pages)
    return f"{caption and f'<p>{escape(caption)}</p>'}<ul>{''.join(entries)}</ul>"


def article(text, page, pages, site):
    """A page as an article of the book, where a link leads within the book or to the web."""
    text = LINK.sub(r"\1", adopted(text, page, pages))
    text = re.sub(r'(<img\b[^>]* src=")(?!data:)', rf"\1{site}/", text)
    return f'<article id="{place(page)}">{text}</article>'


def setup(app):
    app.connect("build-finished", write, priority=900)
