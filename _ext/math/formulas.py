r"""Mathematics is typeset while the book is built: the pages need no script for it.

The MathJax that ships inside `sphinx-mathjax-offline` runs in an embedded JavaScript engine
(`dukpy`) and turns TeX into HTML and MathML. The HTML is drawn, the MathML is spoken. From
MathJax's stylesheet and fonts only what this book's formulas use is kept (see `math_fonts`).

Colors. Authors write a role's light color, as `attnlib.palette` gives it:

    $\textcolor{#0067a3}{Q}\,\textcolor{#b84a00}{K}^\top$

MathJax in JupyterLab and KaTeX in VS Code draw that as it stands. Here the color becomes the
CSS variable of its role, `var(--query)`, so that the formula follows the page into dark mode.

Formulas are kept between builds in `_build/formulas.json`. The file holds nothing that cannot be
made again: when it is missing, damaged or from another version, it is ignored.
"""

import functools
import hashlib
import html
import json
import os
import re
from pathlib import Path

from docutils import nodes
from sphinx.transforms.post_transforms import SphinxPostTransform
from sphinx.util import logging
from sphinx.util.math import get_node_equation_number

from _ext.engine import Engine
from _ext.math.stylesheet import MATHJAX, write_assets
from _ext.pages.colors import themed
from _ext.state import all_formulas, of_build, of_page
from attnlib import palette

logger = logging.getLogger(__name__)

IN_LINE = ["math", "notranslate", "nohighlight"]
PARTS = (
    "startup",
    "core",
    "adaptors/liteDOM",
    "input/tex-full",
    "output/chtml",
    "output/chtml/fonts/tex",
)

# The engine has no event loop, no console and no network: MathJax gets stand-ins, and neither
# loads packages on demand nor draws an unknown macro as red text (then bad TeX would pass).
BOOT = """
globalThis.setTimeout = f => { Promise.resolve().then(f) };
globalThis.clearTimeout = () => {};
globalThis.console = {log() {}, warn() {}, error() {}};
globalThis.MathJax = {
  startup: {typeset: false, ready() {}},
  loader: {load: []},
  chtml: {fontURL: 'fonts', adaptiveCSS: false},
  tex: {packages: {'[-]': ['noundefined', 'require', 'autoload']}},
};
"""
TYPESET = """
dukpy.formulas.map(([tex, display]) => {
  try {
    const drawn = MathJax.startup.adaptor.outerHTML(MathJax.tex2chtml(tex, {display}));
    const error = drawn.match(/data-mjx-error="([^"]*)"/);
    return error ? {error: error[1]} : {drawn, spoken: MathJax.tex2mml(tex, {display})};
  } catch (problem) { return {error: String(problem)}; }
})
"""


class TexError(ValueError):
    """MathJax cannot read a formula."""


class MathJax:
    """MathJax in the embedded engine, started when the first formula needs it."""

    @functools.cached_property
    def _engine(self):
        parts = ((MATHJAX / f"{part}.js").read_text(encoding="utf-8") for part in PARTS)
        return Engine(BOOT, *parts, "MathJax.startup.defaultReady()")

    def typeset(self, formulas):
        """The HTML of each (TeX, display), or the TexError that says why MathJax cannot read it.

        All at once take a quarter of the time: after each call the engine tidies its memory.
        """
        return [self._page_html(answer) for answer in self._engine(TYPESET, formulas=formulas)]

    @staticmethod
    def _page_html(answer):
        """A formula drawn for the eye and with MathML for the ear."""
        if "error" in answer:
            return TexError(html.unescape(answer["error"]))
        drawn = answer["drawn"].replace("<mjx-math", '<mjx-math aria-hidden="true"', 1)
        spoken = re.sub(r">\s+<", "><", answer["spoken"].strip())
        spoken = re.sub(r' (?:mathcolor|data-mjx-\w+)="[^"]*"', "", spoken)
        end = "</mjx-container>"
        drawn = drawn.removesuffix(end) + f"<mjx-assistive-mml>{spoken}</mjx-assistive-mml>{end}"
        return themed(drawn)

    def stylesheet(self):
        """All of MathJax's CSS, for every glyph that it knows."""
        return self._engine("MathJax.startup.adaptor.textContent(MathJax.chtmlStylesheet())")


class FormulaCache:
    """The formulas of the book and MathJax's stylesheet, kept in a file between builds."""

    def __init__(self, path):
        self.path = Path(path)
        self.mathjax = MathJax()
        self.formulas = {}
        self._stylesheet = None
        try:
            stored = json.loads(self.path.read_text(encoding="utf-8"))
            if stored["version"] == version():
                self.formulas = {(tex, display): text for tex, display, text in stored["formulas"]}
                self._stylesheet = str(stored["stylesheet"])
        except (OSError, ValueError, KeyError, TypeError):
            pass  # a cache may be lost at any time

    def get(self, tex, display):
        """The HTML of a formula, typeset now unless it is known. Raises TexError."""
        self.add([(tex, display)])
        drawn = self.formulas[tex, display]
        if isinstance(drawn, TexError):
            raise drawn
        return drawn

    def add(self, formulas):
        """Typeset each (TeX, display) that is not known yet."""
        if new := [each for each in dict.fromkeys(formulas) if each not in self.formulas]:
            self.formulas |= zip(new, self.mathjax.typeset(new), strict=True)

    @property
    def stylesheet(self):
        if not self._stylesheet:
            self._stylesheet = self.mathjax.stylesheet()
        return self._stylesheet

    def save(self, used):
        """Write the formulas that are `used`; a build that dies here leaves the old file."""
        kept = [[*each, self.formulas[each]] for each in sorted(used & self.formulas.keys())]
        stored = {"version": version(), "stylesheet": self.stylesheet, "formulas": kept}
        self.path.parent.mkdir(parents=True, exist_ok=True)
        draft = self.path.with_suffix(f".{os.getpid()}")
        draft.write_text(json.dumps(stored), encoding="utf-8")
        draft.replace(self.path)


@functools.cache
def version():
    """A digest of all that decides what a formula looks like: MathJax, this file, the colors."""
    sources = [MATHJAX / f"{part}.js" for part in PARTS] + [Path(__file__), Path(palette.__file__)]
    digest = hashlib.sha256()
    for source in sources:
        digest.update(source.read_bytes())
    return digest.hexdigest()


def tex_of(node):
    """The TeX of a math node, and whether it stands on a line of its own."""
    tex = node.astext()
    if isinstance(node, nodes.math):
        return tex, False
    if node.get("no-wrap", node.get("nowrap", False)):
        return tex, True
    # As Sphinx does for its own renderers: a blank line separates equations, `\\` lines.
    parts = [part for part in tex.split("\n\n") if part.strip()]
    parts = [rf"\begin{{split}}{p}\end{{split}}" if r"\\" in p else p for p in parts]
    if len(parts) == 1:
        return parts[0], True
    return r"\begin{aligned}" + r"\\".join(parts) + r"\end{aligned}", True


def open_cache(app):
    """Before reading: the formulas of earlier builds."""
    of_build(app).formulas = FormulaCache(Path(app.outdir).parent / "formulas.json")


def read_formulas(app, doctree):
    """After reading a page: typeset its formulas, and note which ones they are."""
    cache, page = of_build(app).formulas, of_page(app.env, app.env.docname)
    found = [*doctree.findall(nodes.math), *doctree.findall(nodes.math_block)]
    formulas = [tex_of(node) for node in found]
    cache.add(formulas)
    for node, (tex, display) in zip(found, formulas, strict=True):
        if node.get("label"):
            page.equations[f"equation-{node['label']}"] = tex, display
        try:
            cache.get(tex, display)
            page.formulas.add((tex, display))
        except TexError as error:
            logger.warning("bad TeX, %s: %s", error, tex, location=node, type="mathematics")


def used_formulas(app):
    """The HTML of all formulas of the book, by their (TeX, display), in the order of these."""
    cache, used = of_build(app).formulas, sorted(all_formulas(app.env))
    cache.add(used)  # those of unchanged pages, if the file was lost
    return {each: cache.formulas[each] for each in used}


def write_stylesheet(app, exception):
    """After all pages: what their formulas need, for the style that all pages share."""
    if exception:
        return
    drawn = used_formulas(app).values()
    write_assets(of_build(app).formulas.stylesheet, drawn, Path(app.outdir, "_static"))


def save_cache(app, exception):
    """After a build, good or not: the formulas stay good. Unused ones are left out."""
    cache = of_build(app).formulas
    if cache and cache.formulas and app.env is not None:
        cache.save(all_formulas(app.env))


def draw(translator, node):
    """The HTML of a math node; the TeX itself where it is bad (a warning was given)."""
    tex, display = tex_of(node)
    try:
        return of_build(translator.builder.app).formulas.get(tex, display)
    except TexError:
        return f"<code>{html.escape(tex)}</code>"


class WholeFormulas(SphinxPostTransform):
    """What touches a formula, a bracket or a full stop, goes into its box, which does not break.

    Browsers may end a line before and after what they draw as a box, whatever stands there.
    """

    default_priority = 900

    def run(self, **kwargs):
        for formula in list(self.document.findall(nodes.math)):
            line, at = formula.parent, formula.parent.index(formula)
            before, after = (line[i : i + 1] if i >= 0 else [] for i in (at - 1, at + 1))
            left, opens = split_text(before, r"\S*$")
            right, closes = split_text(after, r"^\S*")
            if opens or closes:
                box = nodes.inline("", "", *opens, formula, *closes, classes=IN_LINE)
                line[at - len(before) : at + 1 + len(after)] = [*left, box, *right]


def split_text(beside, pattern):
    """The text beside a formula without what matches, and what matches; lists of nodes."""
    if not beside or not isinstance(beside[0], nodes.Text):
        return beside, []
    found = re.search(pattern, beside[0])
    rest = beside[0][: found.start()] + beside[0][found.end() :]
    return ([nodes.Text(part)] if part else [] for part in (rest, found[0]))


def visit_math(self, node):
    drawn = draw(self, node)
    if node.parent.get("classes") != IN_LINE:
        drawn = self.starttag(node, "span", "", CLASS=" ".join(IN_LINE)) + drawn + "</span>"
    self.body.append(drawn)
    raise nodes.SkipNode


def visit_math_block(self, node):
    """Write a displayed formula in a box that scrolls, and its number outside of that box."""
    if node["ids"] and node.parent.get("ids") == node["ids"]:
        # Furo wraps each equation and copies its id: once on a page is enough.
        self.body.append('<div class="math notranslate nohighlight">')
    else:
        self.body.append(self.starttag(node, "div", "", CLASS="math notranslate nohighlight"))
    self.body.append(f'<div class="math-scroll">{draw(self, node)}</div>')
    if node["number"]:
        self.body.append(f'<span class="eqno">({get_node_equation_number(self, node)})')
        self.add_permalink_ref(node, "Link to this equation")
        self.body.append("</span>")
    self.body.append("</div>\n")
    raise nodes.SkipNode


def setup(app):
    """Register the renderer; `html_math_renderer: mathematics` in the configuration chooses it."""
    app.add_html_math_renderer("mathematics", (visit_math, None), (visit_math_block, None))
    app.add_post_transform(WholeFormulas)
    app.add_css_file("math.css", priority=300)
    app.connect("builder-inited", open_cache)
    app.connect("doctree-read", read_formulas)
    app.connect("build-finished", write_stylesheet)
    app.connect("build-finished", save_cache)
