"""What MyST and Docutils write otherwise than a page needs it.

- A table with given widths keeps them: nothing moves while the rest of it arrives.
- A table of four or five columns, the last but one of them sentences, may stand in two lines a row.
- A long name of code may break behind its underscores and points, not in the middle of a word.
- The empty corner of a table heads nothing.
- A list of numbers in brackets stays on one line, and so do "2 · 4", "= 8", "head 2", "Eq. (1)".
- A word of a sample sentence, such as *it*, has a tint, so that nobody takes it for the pronoun.
- An entry of the bibliography has a role that a list may have.
"""

import re

from docutils import nodes
from sphinx import addnodes
from sphinx.transforms.post_transforms import SphinxPostTransform
from sphinx.writers.html5 import HTML5Translator

from _ext.pages.theme import amended

# The words of sample sentences that are written *in italics* when a page speaks of them.
SAMPLES = frozenset(
    "The the It it and cat dog milk sour tired sat down bank banks boat money reached water loan "
    "tea coffee juice chai latte Chai piyo drink man bites trophy suitcase big small old "
    "young".split()
)
VERBATIM = (nodes.FixedTextElement, nodes.literal, nodes.math, nodes.raw)
NAMES = (nodes.literal, addnodes.desc_name)
# As much as a line of a phone has room for.
VECTOR = re.compile(r"\([−\d.,+·/_ ]{3,28}\)")
# A product, what a sign gives, what a word counts, a number and its unit: no line starts within.
WHOLE = re.compile(
    r"(?<=[\d)]) · (?=[\d(])|[=≈½] (?=[−\d_(])|\b([Ll]ayer|[Hh]ead) (?=\d)|\bEqs?\. $"
    r"|(?<=\d) (?=(m?s|min|h|[KMG]i?B)\b)"
)


class Tables(SphinxPostTransform):
    """Widths that are given stand: MyST calls every table's widths automatic as well.

    Classes say of a table with a head whether it has 4, 5, 8 columns or more.
    A table whose sentences a phone would cut is marked: `book.css` gives them a line of their own.
    """

    default_priority = 198

    def run(self):
        for table in self.document.findall(nodes.table):
            if "colwidths-given" in table["classes"]:
                table["classes"].remove("colwidths-auto")
            rows = [row.children for row in table.findall(nodes.row)]
            if next(table.findall(nodes.thead), None):
                least = (4, 5, 8)
                table["classes"] += [f"columns-{n}" for n in least if len(rows[0]) >= n]
            if len(rows[0]) in (4, 5) and max(len(row[-2].astext()) for row in rows) > 30:
                table["classes"].append("two-lines")
            longest = [
                max(len(cell.astext()) for cell in column) for column in zip(*rows, strict=False)
            ]
            if len(longest) == 3 and longest[1] > 100 and longest[2] < 40:
                table["classes"].append("long-middle")


class SampleWords(SphinxPostTransform):
    """A word that is spoken of gets a class, and `book.css` a tint: italics are easily missed."""

    default_priority = 198

    def run(self):
        for word in self.document.findall(nodes.emphasis):
            if word.astext() in SAMPLES:
                word["classes"].append("sample")


class BreakableNames(SphinxPostTransform):
    """Let a long name of code end a line where a reader would."""

    default_priority = 198

    def run(self):
        for code in self.document.findall(lambda node: isinstance(node, NAMES)):
            words = re.split(r"(?<=[a-z][_.(])(?=\w)", code.astext())
            if max(map(len, code.astext().split()), default=0) > 16 and len(words) > 1:
                code.children = []
                for word in words:
                    code += [nodes.Text(word), nodes.raw("", "<wbr>", format="html")]
                code.pop()


def unbroken(found):
    """Return what was found, its spaces such that no line ends there."""
    return found[0].replace(" ", "\N{NO-BREAK SPACE}")


class WholeNumbers(SphinxPostTransform):
    """The spaces in (0.17, 2) and "= 8" do not break: half of it reads as a sentence cut off.

    Neither does the one behind the number in the link to a chapter: "in 16." would be an end.
    """

    default_priority = 199

    def run(self):
        for text in list(self.document.findall(nodes.Text)):
            if not isinstance(text.parent, VERBATIM):
                whole = WHOLE.sub(unbroken, VECTOR.sub(unbroken, text))
                if isinstance(text.parent.parent, nodes.reference):
                    whole = re.sub(r"^\d+\. ", unbroken, whole)
                if whole != text:
                    text.parent.replace(text, nodes.Text(whole))


def visit_entry(self, node):
    HTML5Translator.visit_entry(self, node)
    if isinstance(node.parent.parent, nodes.thead) and not node.astext():
        self.body[-1], self.context[-1] = "<td>", "</td>\n"


def visit_citation(self, node):
    HTML5Translator.visit_citation(self, node)
    changes = {"doc-biblioentry": "listitem"}
    self.body[-1] = amended(self.body[-1], changes, "Docutils' bibliography")


def setup(app):
    app.add_post_transform(BreakableNames)
    app.add_post_transform(SampleWords)
    app.add_post_transform(Tables)
    app.add_post_transform(WholeNumbers)
    app.add_node(nodes.entry, override=True, html=(visit_entry, None))
    app.add_node(nodes.citation, override=True, html=(visit_citation, None))
