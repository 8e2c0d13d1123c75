"""Built pages become parts of one document: `whole.html`, and the printed book.

Their ids and links become those of the document; what only scripts read goes.
"""

import posixpath
import re

ARTICLE = re.compile(r'<article id="furo-main-content">(.*?)</article>', re.DOTALL)
# What only scripts read: the state of a widget, an exercise, what a link shows.
FOR_SCRIPTS = re.compile(
    r' data-(?:state|exercise)="[^"]*"|<template data-of.*?</template>\s*', re.DOTALL
)
# A whole source for the pointer, once for each mention: the page of references has it.
SOURCE = re.compile(
    r'(<a class="reference internal" href="[^"]*references\.html#[^"]*") title="[^"]*"'
)
OWN = re.compile(r' (id|for|list|aria-labelledby|aria-describedby|aria-controls|headers)="([^"]+)"')
LINK = re.compile(r' ((?:xlink:)?href|src)="([^":]+)"')  # no other site's
PAINT = re.compile(r"url\((&quot;|&#39;)?#")
HEADING = re.compile(r"(</?h)([1-5])\b")


def place(page):
    """The id of a page among others: chapters/03-chai-piyo-by-hand is chapter-chai-piyo-by-hand."""
    return re.sub(r"^chapters/(?:\d+-)?", "chapter-", page)


def adopted(text, page, pages, lower=0):
    """The article of the built `page` with this HTML, for a document that holds all `pages`.

    Links to these stay within the document; others lead there from the folder of the site. Headings
    are lowered by so many levels.
    """

    def renamed(match):
        names = " ".join(f"{place(page)}-{name}" for name in match[2].split())
        return f' {match[1]}="{names}"'

    def link(match):
        path, _, anchor = match[2].partition("#")
        if anchor.startswith("svg-"):  # an icon of every page
            return match[0]
        file = posixpath.normpath(
            posixpath.join(posixpath.dirname(page), path or f"{posixpath.basename(page)}.html")
        )
        target = file.removesuffix(".html")
        if target not in pages:
            return f' {match[1]}="{file}{anchor and "#"}{anchor}"'
        return f' {match[1]}="#{place(target)}{anchor and "-"}{anchor}"'

    text = FOR_SCRIPTS.sub("", SOURCE.sub(r"\1", ARTICLE.search(text)[1]))
    text = LINK.sub(link, OWN.sub(renamed, text))
    text = PAINT.sub(rf"url(\1#{place(page)}-", text)
    return HEADING.sub(lambda match: f"{match[1]}{int(match[2]) + lower}", text)
