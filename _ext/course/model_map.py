"""The map of the whole model: drawn here once, small at the head of each chapter, large on a page.

A chapter's metadata name the parts that are lit at its head: `"map": ["queries", "keys"]`. On the
page with `:::{model-map}` every part leads to the first chapter that names it, and a list beside
it names each of these chapters with its parts.
"""

from html import escape

from docutils import nodes
from sphinx.util.docutils import SphinxDirective

from _ext.course.chapters import ChapterError
from _ext.course.contents import chapter_at, chapters_for

PAGE = "map"  # the page with the large one
WIDTH, HEIGHT = 340, 496
# Each part with its label and its boxes, (x, y, width, height). Of a frame the label stands at the
# top; the residual connection and the norm stand twice in a layer.
PARTS = {
    "tokens": ("Tokens", [(48, 8, 284, 30)]),
    "embedding": ("Embedding", [(48, 50, 136, 30)]),
    "positions": ("+ Positions", [(196, 50, 136, 30)]),
    "layers": ("Layer, N times", [(48, 92, 284, 304)]),
    "attention": ("Attention", [(58, 118, 252, 150)]),
    "queries": ("Queries", [(68, 144, 74, 30)]),
    "keys": ("Keys", [(147, 144, 74, 30)]),
    "values": ("Values", [(226, 144, 74, 30)]),
    "scores": ("Scores", [(68, 184, 74, 30)]),
    "scale": ("÷ √d", [(147, 184, 74, 30)]),
    "mask": ("Mask", [(226, 184, 74, 30)]),
    "softmax": ("Softmax", [(68, 224, 113, 30)]),
    "heads": ("Heads", [(187, 224, 113, 30)]),
    "residual": ("+ Residual", [(58, 278, 123, 30), (58, 356, 123, 30)]),
    "norm": ("Norm", [(187, 278, 123, 30), (187, 356, 123, 30)]),
    "feed-forward": ("Feed-forward network", [(58, 317, 252, 30)]),
    "unembedding": ("Unembedding", [(48, 408, 136, 30)]),
    "logits": ("Logits", [(196, 408, 136, 30)]),
    "probabilities": ("Softmax", [(48, 448, 136, 30)]),
    "next word": ("Next word", [(196, 448, 136, 30)]),
}
FRAMES = {"layers", "attention"}
# What flows: down from row to row, past attention and the network, and from the end to the start.
FLOW = "M190 38v12M190 80v12M190 396v12M184 423h12M190 438v10M184 463h12"
PAST = "M190 92v12h131v182h-11M321 300v64h-11"
AGAIN = "M264 478v12H22V23h26m-7-4 7 4-7 4"


def drawing(lit=(), links=None):
    """The map as SVG: small, with the parts in `lit` filled; or large, with words and `links`.

    Links are (address, name of the chapter) by part.
    """
    shapes = [drawn(part, lit, links) for part in PARTS]
    words, named = "", 'aria-hidden="true"'
    if links:
        words = '<text class="again" x="-257" y="15">append, and ask again</text>'
        named = 'role="group" aria-label="The whole model, from tokens to the next word"'
    return (
        f'<svg class="model-map" viewBox="0 0 {WIDTH} {HEIGHT}" {named}>'
        f'<path class="flow" d="{FLOW}{PAST}{AGAIN}"/>{words}{"".join(shapes)}</svg>'
    )


def drawn(part, lit, links):
    """One part of the map, with all its boxes."""
    label, boxes = PARTS[part]
    kind = f"part {part.replace(' ', '-')}{' frame' * (part in FRAMES)}{' lit' * (part in lit)}"
    made = []
    for x, y, width, height in boxes:
        box = f'<rect x="{x}" y="{y}" width="{width}" height="{height}" rx="4"/>'
        at = (x + 10, y + 18) if part in FRAMES else (x + width / 2, y + 20)
        words = f'<text x="{at[0]:g}" y="{at[1]:g}">{escape(label)}</text>'
        made.append(box + words if links else box)
    if not links:
        return f'<g class="{kind}">{"".join(made)}</g>'
    address, name = links[part]
    link = f'href="{escape(address)}" aria-label="{escape(label)}: {escape(name)}"'
    return "".join(f'<a class="{kind}" {link}>{each}</a>' for each in made)


def in_words(part):
    """The label of a part where it stands in a sentence."""
    return PARTS[part][0].lstrip("+ ").partition(",")[0]


def lit_by(chapter):
    """The parts that a chapter lights; one that the map does not have is an error."""
    parts = chapter.stored("map")
    if unknown := [part for part in parts if part not in PARTS]:
        raise ChapterError(f"{chapter.file}: the map has no part {unknown[0]!r}")
    return parts


def taught(chapters):
    """Where each part is taught first: {part: chapter}; one that no chapter lights is an error."""
    found = {}
    for chapter in chapters:
        found = dict.fromkeys(lit_by(chapter), chapter) | found
    if missing := [part for part in PARTS if part not in found]:
        raise ChapterError(f"no chapter lights {missing[0]!r} of the map in its metadata")
    return {part: found[part] for part in PARTS}


class ModelMap(SphinxDirective):
    """The large map, and its chapters as a list."""

    def run(self):
        found = taught(chapters_for(self.env))
        uri = self.env.app.builder.get_relative_uri
        here = self.env.docname
        links = {part: (uri(here, c.page), c.heading) for part, c in found.items()}
        parts = {}
        for part, chapter in found.items():
            parts.setdefault(chapter.file, []).append(in_words(part))
        chapters = sorted(parts)
        lines = [f"- []({file})<br>{', '.join(dict.fromkeys(parts[file]))}" for file in chapters]
        box = nodes.container(classes=["map-large"])
        box += nodes.raw("", drawing(links=links), format="html")
        box += self.parse_text_to_nodes("\n".join(lines))
        return [box]


def add_map(app, pagename, templatename, context, doctree):
    """Give a chapter's page its small map; `page.html` has the place for it."""
    chapter = chapter_at(app, pagename)
    if chapter is None:
        return
    lit = lit_by(chapter)
    words = ", ".join(map(in_words, lit))
    context["model_map"] = {"drawing": drawing(lit), "words": words, "page": PAGE}


def setup(app):
    app.add_directive("model-map", ModelMap)
    app.connect("html-page-context", add_map)
