"""The frame of a chapter: what it takes, its question, its finding, and the goals at its end.

Beside the title stand, small, the minutes and what is needed before; the notebook's metadata have
them. The boxes are `:::{div}`, which JupyterLab knows too, and their class says which one it is:
`lead` holds one concrete sentence and the question, `finding` what the first picture shows, in a
sentence. `goals` is a list whose items a reader ticks off (`book.js`).
"""

from html import escape
from pathlib import PurePosixPath
from typing import ClassVar

from docutils import nodes
from docutils.parsers.rst import directives
from sphinx.util.docutils import SphinxDirective

from _ext.course.contents import chapter_at

KINDS = {"lead", "finding", "goals", "jump"}


class Box(SphinxDirective):
    """A box of the frame; its class says which one.

    The ticks of goals are kept under the name of their box.
    """

    has_content = True
    option_spec: ClassVar = {"class": directives.class_option}

    def run(self):
        kinds = self.options.get("class", [])
        if len(kinds) != 1 or kinds[0] not in KINDS:
            raise self.error(f"a div needs one class of {sorted(KINDS)}; got {kinds}")
        box = nodes.container(classes=kinds)
        box += self.parse_content_to_nodes()
        if kinds == ["goals"]:
            if [type(child) for child in box] != [nodes.bullet_list]:
                raise self.error("goals need one list and nothing else")
            name = PurePosixPath(self.env.docname).name
            box["ids"] = [f"{name.lstrip('0123456789-')}-goals"]
        return [box]


def facts(chapter):
    """What stands beside the title of a chapter, as HTML."""
    time = f"{chapter.reading} min to read, {chapter.practice} min to practice"
    return f'<p class="facts">{time}; {escape(chapter.needs)}</p>'


def add_facts(app, doctree):
    """Put the facts of a chapter behind its title."""
    chapter = chapter_at(app, app.env.docname)
    if chapter is None:
        return
    app.env.metadata[app.env.docname]["tocdepth"] = 2  # the contents at the side stay short
    title = next(doctree.findall(nodes.title))
    title.parent["classes"].append("chapter")
    title.parent.insert(1, nodes.raw("", facts(chapter), format="html"))


def setup(app):
    app.add_directive("div", Box)
    app.connect("doctree-read", add_facts)
