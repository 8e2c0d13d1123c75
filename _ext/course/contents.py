"""What pages say of the chapters is made from the chapters: `:::{chapters} cards`.

`begin` is the start page's way in, `cards` are its parts with their chapters and `progress` is its
widget, `plan` and `short-plan` the teaching page's terms, `exercises` all exercises by chapter.
Within a line, {hours}`reading` and {hours}`practice` are how many hours all chapters take.
`chapters.py` reads the notebooks and writes the text.

The contents at the side of each page are Sphinx's, which forgets them there when a title changes.
There each chapter carries its questions, so that `book.js` can tick it when all are answered.
"""

import json
from html import escape
from pathlib import Path

from docutils import nodes
from sphinx.util.docutils import SphinxDirective, SphinxRole

from _ext.course import chapters as course
from _ext.state import of_build

MADE = {
    "begin": course.begin,
    "cards": course.cards,
    "progress": course.progress,
    "plan": course.term_plan,
    "short-plan": course.short_plan,
    "exercises": course.exercises,
}


class Chapters(SphinxDirective):
    """One of `MADE`, in the place of the directive."""

    required_arguments = 1

    def run(self):
        """Parse what is made as if it stood on the page, which depends on all chapters from now."""
        try:
            made = MADE[self.arguments[0]](chapters_for(self.env))
        except KeyError:
            raise self.error(f"needed one of {', '.join(MADE)}; got {self.arguments[0]}") from None
        return self.parse_text_to_nodes(made, allow_section_headings=True)


class Hours(SphinxRole):
    """How many hours all reading or all practice takes."""

    def run(self):
        return [nodes.Text(str(course.total(chapters_for(self.env), self.text)))], []


def chapters_of(app):
    """The chapters, read once in a build: each is a notebook."""
    build = of_build(app)
    if build.chapters is None:
        build.chapters = course.read(Path(app.srcdir))
    return build.chapters


def chapters_for(env):
    """The chapters, on which the page that is read depends from now on."""
    chapters = chapters_of(env.app)
    for file in ["_toc.yml", *(chapter.file for chapter in chapters)]:
        env.note_dependency(str(Path(env.srcdir, file)))
    return chapters


def chapter_at(app, page):
    return next((chapter for chapter in chapters_of(app) if chapter.page == page), None)


def titles(env):
    return {name: title.astext() for name, title in env.titles.items()}


def remember_titles(app):
    """Before anything is read: what the pages were called."""
    of_build(app).titles = titles(app.env)


def pages_to_write_again(app, env):
    """After reading: if a page has another title, all pages, whose contents name it."""
    return [] if titles(env) == of_build(app).titles else env.found_docs


def keep_questions(app, pagename, templatename, context, doctree):
    """Give the links to chapters in the contents what each of them asks: key and how many."""
    contents = context.get("furo_navigation_tree", "")  # another theme has none
    for chapter in filter(lambda chapter: chapter.questions, chapters_of(app)):
        link = f'href="{context["pathto"](chapter.page)}"'
        counted = (
            f'{link} data-asks="{escape(json.dumps(chapter.questions, separators=(",", ":")))}"'
        )
        contents = contents.replace(link, counted, 1)
    context["furo_navigation_tree"] = contents


def setup(app):
    app.add_directive("chapters", Chapters)
    app.add_role("hours", Hours())
    app.connect("builder-inited", remember_titles)
    app.connect("env-get-updated", pages_to_write_again)
    app.connect("html-page-context", keep_questions, priority=950)  # after theme.py
