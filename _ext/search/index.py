"""The index of the search: what the book says, line by line, under the anchor where it stands.

Sphinx's own index knows which page has a word. This one, in its place and of the same name, has the
text of each section, of each entry of the glossary and of the reference, so that `search.js` can
show the sentence and lead to it. It says where a term is met first, which is where it is explained.
Answers are not in it: a search would give them away.
"""

import json
import re
import unicodedata
from pathlib import Path

from docutils import nodes
from myst_nb.sphinx_ import HideCodeCellNode
from sphinx import addnodes
from sphinx.builders.html import StandaloneHTMLBuilder
from sphinx.search import IndexBuilder

from _ext.content.folding import details, is_answer

CALL = "self.setBookIndex("  # search.js has it
# What is read as one line, or split into sentences.
TEXTS = (nodes.paragraph, nodes.caption, nodes.row, nodes.math_block)
UNREAD = (nodes.raw, nodes.comment, nodes.title, nodes.term, addnodes.desc_signature)
UNREAD += (HideCodeCellNode, nodes.label)
LISTS = {"part", "begin", "jump"}  # of chapters on the start page, of the parts of a page
# Where a source is: nobody searches for it, and numbers are what compresses least.
PLACE = re.compile(r"( *arXiv:[\d.]+\d\.?|,? *https?://[^\s,]+)+")
SENTENCE = re.compile(r"(?<=[.!?:])\s+(?=[“\"(]?[A-Z])")

SYMBOLS = {
    "cdot": "·", "approx": "≈", "sqrt": "√", "top": "ᵀ", "times": "×", "infty": "∞", "sum": "∑",
    "dots": "…", "le": "≤", "ge": "≥", "ne": "≠", "lVert": "‖", "rVert": "‖", "lvert": "|",
    "rvert": "|", "ell": "l", "varepsilon": "ε", "to": "→", "in": "∈", "pm": "±", "odot": "⊙",
    "ln": "ln", "log": "log", "exp": "exp", "max": "max", "min": "min", "sin": "sin", "cos": "cos",
    "tanh": "tanh",
}  # fmt: skip


def symbol(match):
    """A command of TeX as a character or a word; one that only draws, as nothing."""
    name = match[1]
    size = "SMALL" if name.islower() else "CAPITAL"
    try:
        return SYMBOLS.get(name) or unicodedata.lookup(f"GREEK {size} LETTER {name.upper()}")
    except KeyError:
        return ""


def plain(tex):
    """A formula as a line of text: what is searched and shown of it."""
    tex = re.sub(r"\\textcolor\{[^}]*\}|\\tag\{[^}]*\}|\\[,;:!]", "", tex)
    tex = re.sub(r"\\tilde ?\{?(\w)\}?", "\\1\u0303", tex)
    tex = re.sub(r"\^\{?\\top\}?", "ᵀ", tex)
    tex = re.sub(r"\\frac\{([^{}]*)\}\{([^{}]*)\}", r"\1 / \2", tex)
    tex = re.sub(r"\\([A-Za-z]+)", symbol, tex)
    return re.sub(r"(?<=√) |[{}]|\\.", "", tex)


def words(node):
    """What a node says, formulas as lines of text; the cells of a row stand apart."""
    if isinstance(node, nodes.Text):
        return str(node)
    if isinstance(node, nodes.math | nodes.math_block):
        return plain(node.astext())
    if isinstance(node, nodes.raw):
        return ""
    return (" · " if isinstance(node, nodes.row) else "").join(map(words, node.children))


def line(node):
    """The same with single spaces."""
    return " ".join(words(node).split())


def is_unread(node):
    """Tell whether a node and all in it stay out: headings are read with what they head."""
    if isinstance(node, UNREAD) or is_answer(node) or LISTS & set(node.get("classes", ())):
        return True
    if isinstance(node, nodes.math_block):
        return "\\begin" in node.astext()  # matrices, number by number
    return isinstance(node, details) and bool({"answer", "code"} & set(node["classes"]))


def headed(node):
    """The anchor and the heading of what gets an entry of its own; else nothing."""
    heads = (nodes.title, nodes.term, addnodes.desc_signature, nodes.label)
    head = next((child for child in node.children if isinstance(child, heads)), None)
    if isinstance(node, nodes.section):
        return node["ids"][0], line(head)
    if isinstance(node, nodes.definition_list_item) and head["ids"]:
        return head["ids"][0], line(head)
    if isinstance(node, addnodes.desc) and head.get("ids"):
        return head["ids"][0], head["fullname"]
    if isinstance(node, nodes.citation):
        return node["ids"][0], re.split(r"(?<=\w\w)\. ", line(node[1]))[1]  # authors. title. ...
    return None


def gather(node, entry, found):
    """Read a node into the entry to which it belongs, and into new ones: `found`."""
    for child in node.children:
        if not isinstance(child, nodes.Element) or is_unread(child):
            continue
        if head := headed(child):
            found.append({"anchor": head[0], "heading": head[1], "lines": [], "terms": []})
            gather(child, found[-1], found)
        elif isinstance(child, nodes.literal_block):
            code = map(str.strip, child.astext().split("\n"))
            # How a result is laid out is nothing that a reader looks for.
            entry["lines"] += ["\t" + text for text in code if not text.startswith("print(")]
        elif "cell_output" in child.get("classes", ()):
            entry["lines"] += map(line, child.findall(nodes.caption))
        elif isinstance(child, TEXTS):
            said = line(child)
            if isinstance(node, nodes.citation):  # its heading is the title
                said = PLACE.sub("", said.replace(f"{entry['heading']}. ", ""))
                entry["lines"].append(said)
            else:
                entry["lines"] += SENTENCE.split(said)
            links = (link.get("refuri", "") for link in child.findall(nodes.reference))
            entry["terms"] += [link.partition("#")[2] for link in links if "#term-" in link]
        else:
            gather(child, entry, found)


def entries(doctree):
    """What a page says, by its sections, terms, functions and sources."""
    found = [{"anchor": "", "heading": "", "lines": [], "terms": []}]
    gather(doctree, found[0], found)
    for entry in found:
        entry["lines"] = [text for text in entry["lines"] if re.search(r"\w\w", text)]
    return [entry for entry in found if entry["heading"]]


class Index(IndexBuilder):
    """Sphinx's keeper of the index, which remembers the pages that are not written again."""

    def __init__(self, env, *options):
        super().__init__(env, *options)
        self.pages = {}

    def feed(self, docname, filename, title, doctree):
        """Read a page: its title, and its entries as (anchor, heading, lines, terms)."""
        found = [tuple(entry.values()) for entry in entries(doctree)]
        self.pages[docname] = (self.env.titles[docname].astext(), found)

    def prune(self, docnames):
        self.pages = {name: page for name, page in self.pages.items() if name in docnames}

    def load(self, stream, format):
        """Read what the last build has left."""
        pages = json.loads(stream.read().removeprefix(CALL).removesuffix(");\n"))
        self.pages = {name: tuple(page) for name, *page in pages}

    def dump(self, stream, format):
        root = self.env.config.root_doc
        order = [root, *self.env.toctree_includes[root]]
        pages = [(name, *self.pages[name]) for name in order if name in self.pages]
        stream.write(f"{CALL}{json.dumps(pages, ensure_ascii=False, separators=(',', ':'))});\n")


class Builder(StandaloneHTMLBuilder):
    """Sphinx's builder of the site, with this index."""

    def load_indexer(self, docnames):
        """Take our keeper instead of Sphinx's, and what it knows of the other pages."""
        options = self.config.html_search_options, self.config.html_search_scorer
        self.indexer = Index(self.env, self.config.language, *options)
        super().load_indexer(docnames)

    def copy_static_files(self):
        """Leave out the program that reads Sphinx's own index: no page loads it."""
        super().copy_static_files()
        Path(self.outdir, "_static", "searchtools.js").unlink(missing_ok=True)


def setup(app):
    app.add_builder(Builder, override=True)
