"""What opens and closes on a page does so without a script.

`{dropdown}`, an admonition with `:class: dropdown` and a hidden part of a cell become `<details>`.
A hidden cell whose prompt begins with "Checked: " is a mark of one line. Neighbors with one prompt
are one, if only the last of them prints.

The code of a picture, and of hidden cells right before it that print nothing, stands behind one
word at its corner, which takes no room until it is opened.

What answers a question stays closed with all that it prints: cells with the tag `answer`, and boxes
`:::{answer}`. Neighbors become one `<details>`. It knows its question: on paper, where nothing
opens, `book.js` puts all answers at the end of the chapter. The first one after a `Predict` names
its key, so that `book.js` can open it once the prediction is made.
"""

import html
import re
from itertools import groupby

from docutils import nodes
from docutils.parsers.rst import directives
from docutils.parsers.rst.directives.admonitions import Admonition
from myst_nb.sphinx_ import HideCodeCellNode
from sphinx.locale import admonitionlabels
from sphinx.transforms.post_transforms import SphinxPostTransform

from _ext import notebook

ANSWER = "Answer"  # the title of one that has none of its own
CHECKED = "Checked: "
WIDE = re.compile(r'data-widget="(Flow|Writer)"')  # wider than the text, as `book.css` says


class Dropdown(Admonition):
    """An admonition that starts closed: `:::{dropdown} Answer`; with `:open:`, open."""

    option_spec = Admonition.option_spec | {"open": directives.flag}

    def run(self):
        is_open = ["open"] if "open" in self.options else []
        self.options["class"] = [*self.options.get("class", []), "dropdown", *is_open]
        return super().run()


class Answer(Admonition):
    """A closed answer to what stands above: `:::{answer}`, with a title if it needs another."""

    required_arguments, optional_arguments = 0, 1

    def run(self):
        self.arguments = self.arguments or [ANSWER]
        self.options["class"] = [*self.options.get("class", []), "answer"]
        return super().run()


class details(nodes.General, nodes.Element):  # noqa: N801
    """A `<details>`; docutils names its nodes in lower case."""


class details_summary(nodes.General, nodes.TextElement):  # noqa: N801
    """The `<summary>` of a `details`."""


def is_cell(node):
    return node.get("nb_element") == "cell_code" and "tag_answer" in node["classes"]


def is_answer(node):
    if not isinstance(node, nodes.Element):
        return False
    return is_cell(node) or (isinstance(node, nodes.admonition) and "answer" in node["classes"])


def prediction(node, path):
    """The state of the `Predict` that a node shows, if it is a cell of the notebook at `path`."""
    if node.get("nb_element") != "cell_code":
        return None
    shown = notebook.read(path).cells[node["cell_index"]].widgets
    return next((state for name, state in shown if name == "Predict"), None)


def prompt_of(node):
    """What a hidden cell is called by its notebook; None for what has no such name."""
    hidden = node.get("nb_element") == "cell_code" and node.get("hide_mode")
    return hidden and node["cell_metadata"].get("mystnb", {}).get("code_prompt_show")


class JoinHidden(SphinxPostTransform):
    """Let neighboring hidden cells with one prompt be one cell, before MyST-NB hides parts.

    A cell that checks has a class, because it stands closer to its neighbors.
    """

    default_priority = 197

    def run(self, **kwargs):
        """Move the code of each cell that prints nothing into the next one of its name."""
        cells = [node for node in self.document.findall(nodes.container) if prompt_of(node)]
        for cell in cells:
            after = cell.next_node(descend=False, siblings=True)
            same = after is not None and prompt_of(after) == prompt_of(cell)
            if same and len(cell) == 1 and not is_cell(cell):
                after[0].insert(0, cell[0].children)
                cell.parent.remove(cell)
            elif prompt_of(cell).startswith(CHECKED):
                cell["classes"].append("checks")


def hides_code(node):
    """Tell whether a node is a cell that hides its code."""
    return (
        isinstance(node, nodes.container)
        and node.get("nb_element") == "cell_code"
        and node.get("hide_mode") == "input"
    )


def is_picture(node):
    """Tell whether a node is a cell that hides its code and shows a widget or a figure."""
    if not hides_code(node) or "tag_answer" in node["classes"]:
        return False
    widgets = (raw for raw in node.findall(nodes.raw) if "widget-slot" in raw.astext())
    return any(widgets) or next(node.findall(nodes.image), None) is not None


class CodeOfPictures(SphinxPostTransform):
    """Put the code of each picture at its corner, with that of the cells right before it."""

    default_priority = 3  # before a figure becomes its drawing, and before anything is folded

    def run(self, **kwargs):
        for cell in list(self.document.findall(is_picture)):
            siblings = cell.parent
            first = last = siblings.index(cell)
            while first and hides_code(siblings[first - 1]) and len(siblings[first - 1]) == 1:
                first -= 1
            code = details("", details_summary("", "Code"), classes=["code"])
            for each in siblings[first : last + 1]:
                code += each.children.pop(0)
            del siblings[first:last], cell["hide_mode"]
            cell += code
            wide = any(WIDE.search(raw.astext()) for raw in cell.findall(nodes.raw))
            cell["classes"] += ["has-code", "wide"] if wide else ["has-code"]


class FoldAnswers(SphinxPostTransform):
    """Put each row of neighboring answers into one `details`, before MyST-NB hides parts."""

    default_priority = 198

    def run(self, **kwargs):
        found = list(self.document.findall(is_answer))
        for cell in filter(is_cell, found):
            if cell.get("hide_mode") == "all":
                del cell["hide_mode"]  # the answer itself is closed
            elif "hide_mode" in cell:
                cell["prompt_show"] = "The code of this answer"
        for parent in dict.fromkeys(node.parent for node in found):
            self.fold(parent)

    def fold(self, parent):
        made, question, path = [], None, self.env.doc2path(self.env.docname)
        for answers, group in groupby(parent.children, is_answer):
            if answers:
                made.append(self.joined(list(group), parent, question))
                question = None
                continue
            for node in group:
                question = prediction(node, path) or question
                made.append(node)
        parent.children = []
        parent.extend(made)

    def joined(self, answers, parent, question):
        """One `details` of neighbors, under the first title that one of them has."""
        titles = [title_of(answer) for answer in answers]
        named = [title for title in titles if title.astext() != ANSWER]
        folded = details("", classes=["answer"], after=question and question["key"])
        folded += details_summary("", "", *(named or titles)[0].children)
        folded += self.question(parent, question)
        for answer, title in zip(answers, titles, strict=True):
            if title in named[1:]:
                folded += nodes.paragraph("", "", nodes.strong("", "", *title.children))
            folded.extend([answer] if is_cell(answer) else answer.children[1:])
            folded["ids"] += [] if is_cell(answer) else answer["ids"]
        return folded

    def question(self, parent, question):
        """What is answered, for the page on paper where the answer stands far from it."""
        section = parent
        while not isinstance(section, nodes.section):
            section = section.parent
        name = nodes.reference("", section[0].astext(), refid=section["ids"][0], internal=True)
        rest = f". {question['question']}" if question else ""
        return nodes.paragraph("", "", name, nodes.Text(rest), classes=["answer-of"])


def title_of(answer):
    """The title of an answer: a box has one, a cell has a prompt."""
    if not is_cell(answer):
        return answer[0]
    prompt = answer["cell_metadata"].get("mystnb", {}).get("code_prompt_show", ANSWER)
    return nodes.title("", prompt)


class FoldAdmonitions(SphinxPostTransform):
    """Turn each admonition with the class `dropdown` into a `details`."""

    default_priority = 300

    def run(self, **kwargs):
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
    more = {"open": "open"} if "open" in node["classes"] else {}
    more |= {"data-after": node["after"]} if node.get("after") else {}
    self.body.append(self.starttag(node, "details", **more))


def depart_details(self, node):
    self.body.append("</details>\n")


def visit_summary(self, node):
    self.body.append(self.starttag(node, "summary", ""))


def depart_summary(self, node):
    self.body.append("</summary>\n")


def visit_hidden_cell(self, node):
    """Open a hidden part of a cell. MyST-NB's own summary is read out as other than it says."""
    kind = "checked" if node["prompt_show"].startswith(CHECKED) else "hide"
    self.body.append(
        f'<details class="{kind}"><summary>{html.escape(node["prompt_show"])}</summary>\n'
    )


def setup(app):
    app.add_directive("dropdown", Dropdown)
    app.add_directive("answer", Answer)
    app.add_post_transform(CodeOfPictures)
    app.add_post_transform(JoinHidden)
    app.add_post_transform(FoldAnswers)
    app.add_post_transform(FoldAdmonitions)
    app.add_node(details, html=(visit_details, depart_details))
    app.add_node(details_summary, html=(visit_summary, depart_summary))
    app.add_node(HideCodeCellNode, override=True, html=(visit_hidden_cell, depart_details))
