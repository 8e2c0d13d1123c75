"""The book's own face for text: Source Serif 4, in `_static/text-*.woff2`.

With a face of its own a page has the same lines wherever it is read. `page.html` asks for it before
all else, and the browser waits for it a moment. If it comes later still, as over a slow network, a
face of the reader's, made as wide and as high (`book.css`), stands in on that page: nothing moves,
and the next page has ours. Where no script runs, and on paper, `typeface.css` says where it is.
"""

from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

from sphinx.errors import ExtensionError

from _ext.files import clear, digest, write

PACKAGE = "fontpkg-source-serif-4"
# Its license reserves the name for the whole face: a part of it goes by another.
FAMILY = "Text of the Book"
SIZE = 18  # what the letters are drawn for, in pixels
# What the pages use, no more: each letter is paid for in every style.
ITALIC = "".join(map(chr, range(0x20, 0x7F))) + "\xa0ā·–—‘’“”…\u0303"
UPRIGHT = ITALIC + "¶°±²¼½¾⅓⅛×Í÷áäçéëñóöüĠŁμπ−√≈▶∞′″"
# Each style's file, weights and letters: regular to semibold for text and headings, and regular
# italics.
STYLES = {
    "normal": ("SourceSerif4[opsz,wght].ttf", (400, 600), UPRIGHT),
    "italic": ("SourceSerif4-Italic[opsz,wght].ttf", (400, 400), ITALIC),
}
FEATURES = ["kern", "mark"]  # ligatures, and letters that other languages make of these, cost 3 KB
RULE = """@font-face {{
  font-family: "{family}"; font-style: {style}; font-weight: {weight}; font-display: swap;
  src: url("{file}") format("woff2");
}}
"""


def source(name):
    """Where a file of the whole face is; if it is missing, an error."""
    try:
        path = Path(distribution(PACKAGE).locate_file(f"fontpkg_source_serif_4/files/{name}"))
    except PackageNotFoundError:
        path = None
    if not (path and path.is_file()):
        raise ExtensionError(f"the text face is missing: {PACKAGE} has no {name}")
    return path


def find_face(app, config):
    """Before anything is loaded: see that the face is there, and say what its parts are called.

    A name says what is inside. The names stand in each page: as one changes, all are written again.
    """
    faces = []
    for style, (name, weights, letters) in STYLES.items():
        made_of = source(name).read_bytes() + repr((letters, FEATURES, SIZE, weights)).encode()
        file = f"text-{style}-{digest(made_of)}.woff2"
        weight = "{} {}".format(*weights)
        faces.append({"family": FAMILY, "style": style, "weight": weight, "file": file})
    config.html_context["typeface"] = faces


def draw(name, weights, letters):
    """The bytes of a WOFF2 with these letters, at our size, and with the weights from and to.

    How far apart letters stand is that of the regular weight: to have it for each costs 2 KB.
    """
    # Loaded only here: fontTools takes a while, and most builds have the files already.
    from fontTools.varLib.instancer import instantiateVariableFont

    from _ext.fonts import subset_font, woff2

    font = subset_font(source(name), letters, layout_features=FEATURES, name_IDs=[0, 13, 14])
    regular = instantiateVariableFont(font, {"opsz": SIZE, "wght": weights[0]}, inplace=False)
    font = instantiateVariableFont(font, {"opsz": SIZE, "wght": weights})
    font["GPOS"] = regular["GPOS"]
    return woff2(font)


def write_face(app, builder):
    """Before the first page is written: the files of the face."""
    folder = Path(app.outdir, "_static")
    faces = app.config.html_context["typeface"]
    clear(folder.glob("text-*.woff2"), {face["file"] for face in faces})
    for face in faces:
        if not (folder / face["file"]).exists():
            write(folder / face["file"], draw(*STYLES[face["style"]]))
    write(folder / "typeface.css", "".join(map(RULE.format_map, faces)))


def setup(app):
    app.connect("config-inited", find_face)
    app.connect("write-started", write_face)
