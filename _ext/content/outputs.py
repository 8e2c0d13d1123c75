"""What the outputs of a notebook may not show, and which of them may wrap."""

import re

from docutils import nodes
from sphinx.util import logging

logger = logging.getLogger(__name__)


def cell_of(node):
    while node is not None and node.get("nb_element") != "cell_code":
        node = node.parent
    return node


def warn_of_errors(app, doctree):
    """Warn of an error on the page: one inside a display hook does not fail its notebook.

    A cell tagged `raises-exception` shows its error on purpose.
    """
    for block in doctree.findall(nodes.literal_block):
        text = block.astext()
        if "traceback" not in block["classes"] and "Traceback (most recent call" not in text:
            continue
        cell = cell_of(block)
        if cell and "tag_raises-exception" not in cell["classes"]:
            last = text.strip().splitlines()[-1]
            logger.warning("an output shows an error: %s", last, location=block, type="outputs")


def mark_sentences(app, doctree):
    """Name the outputs without columns: `book.css` lets their lines wrap on a phone."""
    for block in doctree.findall(nodes.literal_block):
        text = block.astext().strip("\n")
        columns = "\n" in text and re.search(r"^\[|\S  ", text, re.MULTILINE)
        if "output" in block["classes"] and not columns:
            block["classes"].append("sentences")


def setup(app):
    app.connect("doctree-read", warn_of_errors)
    app.connect("doctree-read", mark_sentences)
