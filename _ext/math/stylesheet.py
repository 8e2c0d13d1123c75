"""The part of MathJax's stylesheet and fonts that the book's formulas need.

Of the rules those that can match, in `_static/math.css`; of the fonts the glyphs that they draw, in
`_static/math-*.woff2`.
"""

import re
from importlib.metadata import distribution
from pathlib import Path

from _ext.files import clear, digest, write

MATHJAX = Path(
    distribution("sphinx-mathjax-offline").locate_file("sphinx-mathjax-offline/static/mathjax")
)

# What MathJax would add when it runs in the page. The drawing is made of empty elements with
# generated content; the MathML beside it is off the screen, for screen readers.
HOUSE_CSS = """
mjx-container { position: relative; }
mjx-assistive-mml {
  position: absolute; width: 1px; height: 1px; overflow: hidden; content-visibility: auto;
  clip-path: inset(50%); white-space: nowrap;
}
/* Sets the height of a line of glyphs. A file would arrive late and move the page, so a local
   font with its metrics overridden takes the place of MathJax's own, which is the last resort. The
   space alone is in its range: that makes it the font that counts, and leaves the glyphs to the
   next one. */
@font-face {
  font-family: MJXZERO;
  src: local("Arial"), local("Liberation Sans"), local("DejaVu Sans"), local("Roboto"),
    local("Helvetica"), local("Noto Sans"), url("math-zero.woff") format("woff");
  ascent-override: 0%; descent-override: 0%; line-gap-override: 0%; unicode-range: U+20;
}
"""


def parse_rules(stylesheet):
    """The (selector, declarations) of a flat stylesheet, braces in its strings included."""
    rules_only = re.sub(r"/\*.*?\*/", "", stylesheet, flags=re.S)
    rules = re.findall(r"""([^{}]+)\{((?:"(?:[^"\\]|\\.)*"|[^{}"])*)\}""", rules_only)
    return [(selector.strip(), " ".join(body.split())) for selector, body in rules]


def used_rules(stylesheet, formulas):
    """The rules of `stylesheet` that can match an element of `formulas`, as HTML."""
    elements = set()
    for tag in set(re.findall(r"<mjx-[^>]*>", "".join(formulas))):
        classes = re.search(r'class="([^"]*)"', tag)
        name = re.match(r"<([\w-]+)", tag)[1]
        elements.add((name, frozenset(classes[1].split() if classes else ())))

    def matches(simple):
        """Whether one step of a selector, `mjx-c.TEX-I` say, fits an element."""
        name = re.match(r"[\w-]*", simple)[0]
        classes = set(re.findall(r"\.([\w-]+)", re.sub(r":not\([^)]*\)|\[[^]]*\]", "", simple)))
        return any((not name or name == tag) and classes <= has for tag, has in elements)

    def needed(selector):
        steps = selector.replace(">", " ").split()
        return all(matches(step) for step in steps if step != "*")

    return [
        (selector, body)
        for selectors, body in parse_rules(stylesheet)
        if "@" not in selectors
        for selector in [", ".join(s for s in map(str.strip, selectors.split(",")) if needed(s))]
        if selector
    ]


def used_glyphs(rules):
    """The characters that `rules` draw, per font family."""
    families = {
        selector: re.findall(r"MJXTEX[\w-]*", body)
        for selectors, body in rules
        for selector in selectors.split(", ")
        if "font-family" in body
    }
    glyphs = {}
    for selector, body in rules:
        content = re.search(r'content: "((?:[^"\\]|\\.)*)"', body)
        if not content:
            continue
        text = re.sub(r"\\([0-9A-Fa-f]+) ?", lambda m: chr(int(m[1], 16)), content[1])
        parts = re.match(r"mjx-c\.mjx-c\w+(\.[\w-]+)?::before", selector)
        if parts:
            fonts = families.get(parts[1] or ".MJX-TEX", [])
        else:  # a piece of a delimiter that grows: MathJax tries several fonts in turn
            fonts = [font for name in families if "stretchy" in name for font in families[name]]
        for font in fonts:
            glyphs.setdefault(font, set()).update(text)
    return glyphs


def font_files(stylesheet):
    """The font file of each family, from MathJax's `@font-face` rules."""
    return {
        re.search(r"font-family: ([\w-]+)", body)[1]: MATHJAX
        / "output/chtml/fonts/woff-v2"
        / re.search(r"([\w-]+\.woff)", body)[1]
        for selector, body in parse_rules(stylesheet)
        if selector.startswith("@font-face")
    }


def write_assets(stylesheet, formulas, folder):
    """Write `math.css` and its fonts for `formulas`, as HTML, from all of MathJax's CSS."""
    rules = used_rules(stylesheet, formulas)
    # MathJax asks for a layer of its own for each formula, in case it fades. None does here, and so
    # many layers make each change of a widget on the page dearer.
    rules = [(selector, body) for selector, body in rules if "will-change" not in body]
    files, faces, wanted = font_files(stylesheet), [], set()
    write(folder / "math-zero.woff", files["MJXZERO"].read_bytes())
    for family, characters in sorted(used_glyphs(rules).items()):
        # The name says what is inside, so that a font is made again only when that changes.
        inside = files[family].read_bytes() + "".join(sorted(characters)).encode()
        name = f"math-{family}-{digest(inside)}.woff2"
        if not (folder / name).exists():
            # Loaded only here: fontTools takes a while, and most builds have the files already.
            from _ext.fonts import subset_font, woff2

            font = subset_font(files[family], characters)
            if font is None:
                continue
            write(folder / name, woff2(font))
        wanted.add(name)
        faces.append(f'@font-face {{ font-family: {family}; src: url("{name}") format("woff2"); }}')
    clear(folder.glob("math-MJX*.woff2"), wanted)
    lines = [HOUSE_CSS, *faces, *(f"{selector} {{ {body} }}" for selector, body in rules)]
    write(folder / "math.css", "\n".join(lines) + "\n")
