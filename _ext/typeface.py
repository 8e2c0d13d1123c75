"""The book's own face for text: Source Serif 4, in `_static/text-*.woff2` and `typeface.css`.

With a face of its own a page has the same lines wherever it is read. Until the face is there, one
of the reader's stands in for it, as wide and as high, so that little moves. In Chromium nothing
does: `page.html` asks for the face first, and the browser waits for it a moment.
"""

import hashlib
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

from fonts import subset_font, woff2
from fontTools.varLib.instancer import instantiateVariableFont
from sphinx.errors import ExtensionError

PACKAGE = "fontpkg-source-serif-4"
# Its licence reserves the name for the whole face: a part of it goes by another.
FAMILY = "Text of the Book"
SIZE = 18  # what the letters are drawn for, in pixels
# Each style's file and weights: regular to semibold for text and headings, and regular italics.
STYLES = {
    "normal": ("SourceSerif4[opsz,wght].ttf", (400, 600)),
    "italic": ("SourceSerif4-Italic[opsz,wght].ttf", (400, 400)),
}
CHARACTERS = (
    *map(chr, [*range(0x20, 0x7F), *range(0xA0, 0x100)]),  # ASCII and Latin-1
    *"Łł‐–—‘’“”†…′⁰⁴⁵⁶⁷⁸⁹Δ←↑→↓−√∞≈≠≤≥■▶◀✓",
)
FEATURES = ["ccmp", "kern", "liga", "locl", "mark"]
# What stands in, and how much wider the text of the chapters is in our face.
STAND_INS = {
    'local("Times New Roman"), local("Liberation Serif"), local("Tinos")': 1.126,
    'local("Noto Serif")': 0.957,
    'local("DejaVu Serif")': 0.883,
}
ASCENT, DESCENT = 1.036, 0.335  # our face's, in parts of its size


def source(name):
    """Where a file of the whole face is.

    Raises
    ------
    ExtensionError
        Where it is not.
    """
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
    for style, (name, weights) in STYLES.items():
        made_of = source(name).read_bytes() + repr((CHARACTERS, FEATURES, SIZE, weights)).encode()
        file = f"text-{style}-{hashlib.sha256(made_of).hexdigest()[:8]}.woff2"
        faces.append({"style": style, "weight": "{} {}".format(*weights), "file": file})
    config.html_context["typeface"] = {"family": FAMILY, "faces": faces}


def draw(name, weights):
    """The bytes of a WOFF2 with our characters, at our size, and with the weights from and to."""
    font = subset_font(source(name), CHARACTERS, layout_features=FEATURES, name_IDs=[0, 13, 14])
    return woff2(instantiateVariableFont(font, {"opsz": SIZE, "wght": weights}))


def stylesheet(faces):
    """The rules of `typeface.css`: our faces, what stands in, and their order."""
    rules = [
        f'@font-face {{ font-family: "{FAMILY}"; font-style: {face["style"]}; '
        f"font-weight: {face['weight']}; font-display: swap; "
        f'src: url("{face["file"]}") format("woff2"); }}'
        for face in faces
    ]
    families = [FAMILY]
    for local, wider in STAND_INS.items():
        families.append(f"{FAMILY} {len(families)}")
        rules.append(
            f'@font-face {{ font-family: "{families[-1]}"; src: {local}; '
            f"size-adjust: {wider:.1%}; ascent-override: {ASCENT / wider:.1%}; "
            f"descent-override: {DESCENT / wider:.1%}; line-gap-override: 0%; }}"
        )
    stack = ", ".join(f'"{family}"' for family in families)
    return "\n".join([*rules, f":root {{ --font-text: {stack}, serif; }}\n"])


def write_face(app, builder):
    """Before the first page is written: the face and its rules."""
    if builder.format != "html":
        return
    folder = Path(app.outdir, "_static")
    folder.mkdir(parents=True, exist_ok=True)
    faces = app.config.html_context["typeface"]["faces"]
    for old in set(folder.glob("text-*.woff2")) - {folder / face["file"] for face in faces}:
        old.unlink()
    for face in faces:
        if not (folder / face["file"]).exists():
            (folder / face["file"]).write_bytes(draw(*STYLES[face["style"]]))
    (folder / "typeface.css").write_text(stylesheet(faces), encoding="utf-8")


def setup(app):
    """Register with Sphinx."""
    app.add_css_file("typeface.css", priority=100)
    app.connect("config-inited", find_face)
    app.connect("write-started", write_face)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
