"""What a link to a page shows elsewhere: its title, its description and a picture, made here.

The picture has the page's title and description, and beside them the drawing of its part of the
course; the start page's has the sentence of the start page below them. It is drawn anew only if one
of these has changed. A program that shows it needs its whole address, which only `html_baseurl` of
`_config.yml` can give: without it the address is the one from page to page, which some programs
understand and most do not.
"""

import html
import re
import textwrap
from pathlib import Path
from urllib.parse import urljoin

import resvg_py

from _ext.course import chapters as course
from _ext.course.contents import chapter_at, chapters_of
from _ext.files import digest, write
from _ext.pages import typeface
from _ext.widgets.page import engine
from attnlib import palette
from attnlib.widgets import Swap

WIDTH, HEIGHT = 1200, 630
FOLDER = "_static/previews"
FONT = "SourceSerif4[opsz,wght].ttf"
SIZES = ((32, 40), (28, 46), (24, 53), (20, 62))  # of letters, with how many stand in a line
CARD = """<svg xmlns="http://www.w3.org/2000/svg" width="1200" height="630" \
font-family="'Source Serif 4'" fill="var(--ink)">
<rect width="1200" height="630" fill="var(--page)"/>
<rect y="618" width="1200" height="12" fill="var(--query)"/>
<text x="70" y="105" font-size="34" fill="var(--muted)">{book}</text>
<g font-size="66" font-weight="600">{title}</g>
<g font-size="{size}" fill="var(--muted)">{description}</g>
<svg x="752" y="150" width="400" height="330" {drawing}
</svg>"""

START = """<svg xmlns="http://www.w3.org/2000/svg" width="1200" height="630" \
font-family="'Source Serif 4'" fill="var(--ink)">
<rect width="1200" height="630" fill="var(--page)"/>
<rect y="618" width="1200" height="12" fill="var(--query)"/>
<text x="70" y="110" font-size="72" font-weight="600">{title}</text>
<g font-size="32" fill="var(--muted)">{description}</g>
<svg x="70" y="256" width="1060" height="319" {drawing}
</svg>"""


def start_card(title, description):
    """The picture of the start page as SVG: the words, and below them a sentence and its curves."""
    drawing = engine("Swap")("widget.poster(dukpy.state)", state=Swap(word="tired").state)
    said = textwrap.wrap(description, 74, max_lines=2, placeholder=" …")
    return colored(
        START.format(
            title=html.escape(title),
            description=lines(said, 172, 44),
            drawing=drawing.removeprefix("<svg").strip(),
        )
    )


def card(book, title, description, drawing):
    """The picture as SVG: the words on the left, the drawing, another SVG, on the right."""
    heading = textwrap.wrap(title, 20)[:3]
    below = 185 + 76 * len(heading)
    # As large as there is room for all of it.
    for size, columns in SIZES:
        said, height = textwrap.wrap(description, columns), round(1.4 * size)
        if below + height * len(said) <= 590:
            break
    return colored(
        CARD.format(
            book=html.escape(book),
            title=lines(heading, 200, 76),
            size=size,
            description=lines(said, below, height),
            drawing=drawing.removeprefix("<svg").strip(),
        )
    )


def colored(svg):
    """An SVG with the colors of the roles for a light page."""
    light = {role.replace("_", "-"): pair[0] for role, pair in palette.ROLES.items()}
    return re.sub(r"var\(--([\w-]+)\)", lambda name: light[name[1]], svg)


def lines(texts, top, height):
    """Lines of text, one under the other."""
    return "".join(
        f'<text x="70" y="{top + height * i}">{html.escape(text)}</text>'
        for i, text in enumerate(texts)
    )


def drawing_for(app, pagename):
    """The drawing of the part to which a chapter belongs; that of the first part for the rest."""
    chapter = chapter_at(app, pagename) or chapters_of(app)[0]
    return course.picture_of(chapter.part).read_text(encoding="utf-8")


def write_picture(app, svg):
    """Draw a card unless it is there already, and return the name of its file."""
    name = f"{FOLDER}/{digest(svg)}.png"
    path = Path(app.outdir, name)
    if not path.exists():
        fonts = [str(typeface.source(FONT))]
        write(path, resvg_py.svg_to_bytes(svg_string=svg, skip_system_fonts=True, font_files=fonts))
    return name


def add_tags(app, pagename, templatename, context, doctree):
    """Give a page what a preview of its link needs."""
    tags, book = context["metatags"], app.config.html_title
    tag = re.search(r'<meta [^>]*name="description"[^>]*>', tags)[0]
    described = html.unescape(re.search(r'content="([^"]*)"', tag)[1])
    title = html.unescape(re.sub(r"<[^>]+>", "", context.get("title") or book))
    if pagename == app.config.root_doc:
        picture = start_card(title, described)
    else:
        picture = card(book, title, described, drawing_for(app, pagename))
    name = write_picture(app, picture)
    address = app.config.html_baseurl
    here = app.builder.get_target_uri(pagename)
    properties = {
        "og:type": "article" if doctree else "website",
        "og:title": title,
        "og:description": described,
        "og:image": urljoin(address, name) if address else context["pathto"](name, 1),
        "og:image:width": WIDTH,
        "og:image:height": HEIGHT,
    } | ({"og:url": urljoin(address, here)} if address else {})
    for name, value in properties.items():
        tags += f'\n<meta property="{name}" content="{html.escape(str(value))}">'
    context["metatags"] = f'{tags}\n<meta name="twitter:card" content="summary_large_image">'


def setup(app):
    app.connect("html-page-context", add_tags, priority=600)  # after head.py
