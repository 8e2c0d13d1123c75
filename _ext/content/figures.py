"""The figures of notebooks become part of the page, in the page's colors and font.

A cell that ends in a Matplotlib figure carries its words in its metadata:

    "mystnb": {"image": {"alt": "What the picture shows, for those who cannot see it"},
               "figure": {"name": "fig-softmax", "caption": "What to see. $Q$ and *so on*."}}

`alt` is required. `name` is what `{numref}` takes. The SVG is written into the page itself, so
that its colors can follow the reader's theme: a light color of `attnlib.palette` becomes the
variable of its role. Only shapes, text and embedded pictures pass; a script, an event handler
or a foreign address is refused. Whatever is wrong is a warning, which ends a strict build.
"""

import re
from pathlib import Path
from xml.etree import ElementTree

from docutils import nodes
from sphinx.transforms.post_transforms import SphinxPostTransform
from sphinx.util import logging

from _ext.content.outputs import cell_of
from _ext.pages.colors import themed

logger = logging.getLogger(__name__)

SVG = "http://www.w3.org/2000/svg"
ElementTree.register_namespace("", SVG)

ALLOWED = set(
    "svg g defs use symbol path rect circle ellipse line polyline polygon text tspan image "
    "clipPath mask marker pattern linearGradient radialGradient stop title desc".split()
)
NUMERIC = {"d", "points", "x", "y", "x1", "y1", "x2", "y2", "cx", "cy", "r", "width", "height"}
TURNED_BY_NOTHING = re.compile(r"rotate\(-?0 [^()]*\)")  # what Matplotlib says of level text
PIXELS = {"": 1, "px": 1, "pt": 4 / 3, "in": 96}


class SvgError(ValueError):
    """An SVG holds what has no place in a page."""


def inline_svg(source, alt, prefix):
    """The SVG file `source` as an element of a page; who cannot see it is read `alt`.

    `prefix` stands before each id, so that two figures on a page do not share one. What is no SVG
    is an SvgError, and so is a script, an event handler, a style sheet or an address outside of it.
    """
    try:
        root = ElementTree.fromstring(source)
    except ElementTree.ParseError as error:
        raise SvgError(f"not well-formed: {error}") from error
    if root.tag != f"{{{SVG}}}svg":
        raise SvgError(f"needed an <svg>, got <{root.tag}>")
    referenced = set(re.findall(r"""(?:url\(['"]?|href=["'])#([^'")]+)""", source))
    inherited = _clean_children(root)
    for element in root.iter():
        _clean_attributes(element, prefix, referenced)
    width, height = (_pixels(root.get(side)) for side in ("width", "height"))
    root.attrib |= {
        "class": "figure-svg",
        "role": "img",
        "aria-label": alt,
        "width": f"{width:.0f}",
        "height": f"{height:.0f}",
        # Matplotlib leaves black, the default, unsaid; book.css keeps the text legible on phones.
        "style": f"fill:var(--ink);{inherited};--natural-width:{width:.0f}px",
    }
    root.attrib.setdefault("viewBox", f"0 0 {width:g} {height:g}")
    _tighten(root)
    return ElementTree.tostring(root, encoding="unicode")


def _clean_children(parent):
    """Drop metadata and refuse what is not drawing; return the declarations meant for all."""
    inherited = ""
    for child in list(parent):
        name = child.tag.removeprefix(f"{{{SVG}}}")
        if name == "style":
            # Matplotlib's one rule. In a page `*` would reach every element; set on the root,
            # the declarations are inherited by this figure alone.
            rule = re.fullmatch(r"\s*\*\s*\{([^{}]*)\}\s*", child.text or "")
            if not rule:
                raise SvgError("a style sheet other than `*{...}`")
            inherited += re.sub(r"\s+", "", rule[1])
        elif name in ALLOWED:
            inherited += _clean_children(child)
            continue
        elif name != "metadata":
            raise SvgError(f"<{name}> is not a drawing")
        parent.remove(child)
    return inherited


def _tighten(parent):
    """Drop the white space between elements, and groups that say nothing: a third of a figure."""
    kept = []
    for child in list(parent):
        _tighten(child)
        child.tail = _said(child.tail)
        empty = child.tag == f"{{{SVG}}}g" and not child.attrib and not child.tail
        kept += list(child) if empty else [child]
    parent[:] = kept
    if parent.tag not in {f"{{{SVG}}}{name}" for name in ("text", "tspan", "title", "desc")}:
        parent.text = _said(parent.text)


def _said(text):
    return text if text and text.strip() else None


def _clean_attributes(element, prefix, referenced):
    """Make the attributes of one element safe, themed, and unique in the page."""
    for key, value in list(element.attrib.items()):
        name = key.rpartition("}")[2]
        del element.attrib[key]
        if name.lower().startswith("on"):
            raise SvgError(f"the event handler {name}")
        if name == "href":
            if not value.startswith(("#", "data:image/png;base64,", "data:image/jpeg;base64,")):
                raise SvgError(f"the address {value[:60]}")
            value = value.replace("#", f"#{prefix}", 1) if value[0] == "#" else value
        elif name == "id":
            if value not in referenced:
                continue
            value = prefix + value
        elif "}" in key or name == "version" or TURNED_BY_NOTHING.fullmatch(value):
            continue
        elif re.search(r"""url\(\s*(?!['"]?#)|@import|\\""", value):
            raise SvgError(f"the address in {name}={value[:60]!r}")
        elif name in NUMERIC:
            value = " ".join(_rounded(value).split())
        else:
            value = _restyled(re.sub(r"""url\((['"]?)#""", rf"url(\1#{prefix}", value))
            value = re.sub(r"(?<=[:;]) +", "", value) if name == "style" else _rounded(value)
        element.set(name, value)


def _rounded(numbers):
    """The numbers of an attribute in hundredths of a point."""
    return re.sub(r"\d+\.\d{3,}", lambda number: f"{float(number[0]):.2f}", numbers)


def _restyled(style):
    """A style with the palette's colors and Matplotlib's font replaced by the page's."""
    style = re.sub(r"font-family:[^;]*", "font-family: var(--font-text)", themed(style))
    return re.sub(r"font:([^;]*?[\d.]+px)[^;]*", r"font:\1 var(--font-text)", style)


def _pixels(length):
    match = re.fullmatch(r"([\d.]+)\s*(px|pt|in|)", length or "")
    if not match:
        raise SvgError(f"needed a width and a height in pt or px, got {length!r}")
    return float(match[1]) * PIXELS[match[2]]


class InlineFigures(SphinxPostTransform):
    """Replace each local SVG image of a page by its drawing, and ask every image for its alt."""

    default_priority = 5  # MyST-NB has chosen between the SVG and the PNG of an output at 4

    def run(self, **kwargs):
        for number, image in enumerate(list(self.document.findall(nodes.image)), start=1):
            cell = cell_of(image)
            place = f" (cell {cell['cell_index']})" if cell else ""
            alt = " ".join(image.get("alt", "").split())
            if not alt:
                advice = '; the cell\'s metadata give it: {"mystnb": {"image": {"alt": "..."}}}'
                self._warn(f"a figure has no alt text{place}{advice if cell else ''}")
            uri = image["uri"]
            if "://" in uri or not uri.endswith(".svg"):
                continue
            try:
                source = Path(self.env.srcdir, uri.lstrip("/")).read_text(encoding="utf-8")
                svg = inline_svg(source, alt, f"svg{number}-")
            except (SvgError, OSError) as error:
                self._warn(f"a figure was refused{place}: {error}")
            else:
                box = f'<div class="figure-scroll">{svg}</div>'
                image.replace_self(nodes.raw("", box, format="html"))

    def _warn(self, message):
        logger.warning(message, location=self.env.docname, type="figures")


def setup(app):
    app.add_post_transform(InlineFigures)
