"""What stands at the end of a link goes with the page, for `book.js` to show at the link itself.

Terms lead to the glossary, and numbers of equations to another chapter: of these the page carries
what they say, each in a template, which a browser neither draws nor reads out. A source says itself
in the title of its link, and what stands on the same page is already there.
"""

import posixpath
from html import escape
from urllib.parse import unquote

from docutils import nodes

from _ext.state import of_build, of_page


def add_glimpses(app, pagename, templatename, context, doctree):
    """Put what the links of a page lead to behind its text."""
    if doctree is None:  # a page that Sphinx makes, like the search
        return
    links = dict.fromkeys(ref.get("refuri", "") for ref in doctree.findall(nodes.reference))
    said = ((link, say(app, pagename, link)) for link in links)
    context["body"] += "".join(
        f'<template data-of="{escape(link)}">{text}</template>\n' for link, text in said if text
    )


def say(app, pagename, link):
    """As HTML what a link of a page leads to, if it is a term or an equation of another page."""
    page, _, anchor = link.partition("#")
    name = posixpath.normpath(posixpath.join(posixpath.dirname(pagename), page))
    name, anchor = name.removesuffix(".html"), unquote(anchor)
    if not page or name not in app.env.found_docs:
        return None
    if equation := of_page(app.env, name).equations.get(anchor):
        return f'<div class="math">{of_build(app).formulas.get(*equation)}</div>'
    if not anchor.startswith("term-"):
        return None
    meaning = definitions(app, name).get(anchor)
    return meaning and app.builder.render_partial(meaning)["fragment"]


def definitions(app, name):
    """What the terms of a page mean: {anchor: paragraph}."""
    known = of_build(app).definitions
    if name not in known:
        known[name] = defined(app.env.get_doctree(name))
    return known[name]


def defined(doctree):
    """The paragraph that defines each term of a page, by its anchor."""
    found = {}
    for item in doctree.findall(nodes.definition_list_item):
        text = next(item.findall(nodes.paragraph), None)
        if text is not None:
            found |= dict.fromkeys((i for n in item.findall(nodes.term) for i in n["ids"]), text)
    for node in found.values():
        for link in [*node.findall(lambda n: isinstance(n, nodes.Element) and "reftarget" in n)]:
            link.replace_self(nodes.Text(link.astext()))  # in a glimpse nothing leads on
    return found


def setup(app):
    app.add_js_file("glimpses.js", loading_method="defer")
    app.connect("html-page-context", add_glimpses)
