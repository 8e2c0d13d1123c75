"""What opens and closes on a page does so without a script.

`{dropdown}`, an admonition with `:class: dropdown` and a hidden part of a cell become `<details>`.
"""

import html

from docutils import nodes
from docutils.parsers.rst import directives
from docutils.parsers.rst.directives.admonitions import Admonition
from myst_nb.sphinx_ import HideCodeCellNode
from sphinx.locale import admonitionlabels
from sphinx.transforms.post_transforms import SphinxPostTransform


class Dropdown(Admonition):
    """An admonition that starts closed: `:::{dropdown} Answer`; with `:open:`, open."""

    option_spec = Admonition.option_spec | {"open": directives.flag}

    def run(self):
        """Make an admonition with the class that `FoldAdmonitions` looks for."""
        is_open = ["open"] if "open" in self.options else []
        self.options["class"] = [*self.options.get("class", []), "dropdown", *is_open]
        return super().run()


class details(nodes.General, nodes.Element):  # noqa: N801
    """A `<details>`; docutils names its nodes in lower case."""


class details_summary(nodes.General, nodes.TextElement):  # noqa: N801
    """The `<summary>` of a `details`."""


class FoldAdmonitions(SphinxPostTransform):
    """Turn each admonition with the class `dropdown` into a `details`."""

    default_priority = 300
    formats = ("html",)

    def run(self, **kwargs):
        """Go through the admonitions of the page."""
        for node in list(self.document.findall(nodes.Admonition)):
            if "dropdown" not in node.get("classes", ()):
                continue
            kind = node.tagname
            folded = details("", ids=node["ids"], classes=["admonition", kind, *node["classes"]])
            if isinstance(node[0], nodes.title):
                title, *body = node.children
                folded += details_summary("", "", *title.children)
            else:
                body = node.children
                folded += details_summary("", admonitionlabels[kind])
            folded += body
            node.replace_self(folded)


def visit_details(self, node):
    """Open a `<details>`."""
    opened = {"open": "open"} if "open" in node["classes"] else {}
    self.body.append(self.starttag(node, "details", **opened))


def depart_details(self, node):
    """Close a `<details>`."""
    self.body.append("</details>\n")


def visit_summary(self, node):
    """Open a `<summary>`."""
    self.body.append(self.starttag(node, "summary", "", CLASS="admonition-title"))


def depart_summary(self, node):
    """Close a `<summary>`."""
    self.body.append("</summary>\n")


def visit_hidden_cell(self, node):
    """Open a hidden part of a cell. MyST-NB's own summary is read out as other than it says."""
    classes = " ".join(["admonition", "dropdown", "hide", *node["classes"]])
    self.body.append(
        f'<details class="{classes}"><summary class="admonition-title">'
        f"{html.escape(node['prompt_show'])}</summary>\n"
    )


def setup(app):
    """Register with Sphinx."""
    app.add_directive("dropdown", Dropdown)
    app.add_post_transform(FoldAdmonitions)
    app.add_node(details, html=(visit_details, depart_details))
    app.add_node(details_summary, html=(visit_summary, depart_summary))
    app.add_node(HideCodeCellNode, override=True, html=(visit_hidden_cell, depart_details))
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
