"""What MyST and Docutils write otherwise than a page needs it.

- A table with given widths keeps them: nothing moves while the rest of it arrives.
- The empty corner of a table heads nothing.
- An entry of the bibliography has a role that a list may have.
"""

from docutils import nodes
from sphinx.transforms.post_transforms import SphinxPostTransform
from sphinx.writers.html5 import HTML5Translator
from theme import amended


class GivenWidths(SphinxPostTransform):
    """A table with `:widths:` keeps them. MyST calls every table's widths automatic as well."""

    default_priority = 198

    def run(self):
        """Visit all tables."""
        for table in self.document.findall(nodes.table):
            if "colwidths-given" in table["classes"]:
                table["classes"].remove("colwidths-auto")


def visit_entry(self, node):
    """Open a cell of a table."""
    HTML5Translator.visit_entry(self, node)
    if isinstance(node.parent.parent, nodes.thead) and not node.astext():
        self.body[-1], self.context[-1] = "<td>", "</td>\n"


def visit_citation(self, node):
    """Open an entry of the bibliography."""
    HTML5Translator.visit_citation(self, node)
    changes = {"doc-biblioentry": "listitem"}
    self.body[-1] = amended(self.body[-1], changes, "Docutils' bibliography")


def setup(app):
    """Register with Sphinx."""
    app.add_post_transform(GivenWidths)
    app.add_node(nodes.entry, override=True, html=(visit_entry, None))
    app.add_node(nodes.citation, override=True, html=(visit_citation, None))
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
