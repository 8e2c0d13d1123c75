"""The site's Sphinx extensions, as far as they are plain Python; a browser tests the rest."""

import base64
import hashlib
import html
import io
import json
import re
from xml.etree import ElementTree

import numpy as np
import pytest
from docutils import nodes
from docutils.parsers.rst import DirectiveError
from pygments import highlight as colored
from pygments.lexers import PythonLexer
from pygments.token import Comment, Keyword, Name, String, Text

from _ext.content import figures
from _ext.math import formulas as mathematics
from _ext.math import stylesheet as math_fonts
from _ext.pages import head, highlight
from _ext.widgets import page as widget_slot
from attnlib import palette
from tests.test_palette import contrast


@pytest.fixture(scope="module")
def drawing():
    """A Matplotlib figure as SVG: lines in two roles, a clip path, a hatch, a legend."""
    figure = pytest.importorskip("matplotlib.figure")
    import matplotlib

    with matplotlib.rc_context({"svg.fonttype": "none", "svg.hashsalt": "test"}):
        fig = figure.Figure(figsize=(5, 3))
        ax = fig.subplots()
        ax.plot([0, 2, 3], color=palette.light("query"), label="asks")
        ax.fill_between([0, 1], 1, color=palette.light("key"), hatch="//")
        ax.legend()
        out = io.StringIO()
        fig.savefig(out, format="svg")
    return out.getvalue()


def svg(inside, attributes='width="10pt" height="5pt"'):
    """A small SVG file around `inside`."""
    return f'<svg xmlns="http://www.w3.org/2000/svg" {attributes}>{inside}</svg>'


def test_a_figure_takes_the_roles_of_the_page_and_carries_no_metadata(drawing):
    inlined = figures.inline_svg(drawing, 'Says "A < B & C"', "f1-")
    root = ElementTree.fromstring(inlined)
    assert root.get("role") == "img" and root.get("aria-label") == 'Says "A < B & C"'
    assert (root.get("width"), root.get("height")) == ("480", "288")
    assert root.get("viewBox") == "0 0 360 216"
    assert not re.search(r"<\?xml|DOCTYPE|metadata|<style|matplotlib", inlined, re.I)
    assert "var(--query)" in inlined and "var(--key)" in inlined
    assert palette.light("query") not in inlined and palette.light("key") not in inlined
    assert "fill:var(--ink)" in inlined  # unsaid black
    assert "DejaVu" not in inlined and "var(--font-text)" in inlined


def test_two_figures_on_a_page_share_no_id(drawing):
    one, two = (figures.inline_svg(drawing, "x", prefix) for prefix in ("f1-", "f2-"))
    ids = [set(re.findall(r' id="([^"]*)"', text)) for text in (one, two)]
    assert ids[0] and not ids[0] & ids[1]
    used = set(re.findall(r"""(?:url\(|href=")#([^")]*)""", one))
    assert used == ids[0]  # each reference still arrives, and no other id is kept


@pytest.mark.parametrize(
    "inside",
    [
        "<script>alert(1)</script>",
        '<rect onclick="alert(1)"/>',
        '<image href="https://example.org/a.png"/>',
        '<use href="other.svg#a"/>',
        '<rect style="fill: url(https://example.org/#a)"/>',
        "<foreignObject/>",
        '<a href="#x"/>',
        "<style>rect { fill: red }</style>",
        "<style>@import 'https://example.org/a.css';</style>",
        '<rect style="fill: u\\72l(https://example.org)"/>',
        "<g>",
    ],
)
def test_what_is_no_drawing_is_refused(inside):
    with pytest.raises(figures.SvgError):
        figures.inline_svg(svg(inside), "x", "f1-")
    picture = '<image href="data:image/png;base64,AAAA"/>'
    assert "data:image/png;base64,AAAA" in figures.inline_svg(svg(picture), "x", "f1-")
    for attributes in ("", 'width="100%" height="5"'):
        with pytest.raises(figures.SvgError, match="width and a height"):
            figures.inline_svg(svg("", attributes), "x", "f1-")


@pytest.fixture(scope="module")
def mathjax():
    """One engine for all tests: it takes a moment to start."""
    return mathematics.MathJax()


@pytest.fixture
def cache(tmp_path, mathjax):
    """An empty cache of formulas."""
    cache = mathematics.FormulaCache(tmp_path / "formulas.json")
    cache.mathjax = mathjax
    return cache


def test_a_formula_is_drawn_and_spoken_in_the_color_of_its_role(mathjax):
    tex = r"\textcolor{#0067a3}{Q} \textcolor{#B84A00}{K}^\top"
    (text,) = mathjax.typeset([(tex, False)])
    drawn, spoken = text.split("<mjx-assistive-mml>")
    assert "var(--query)" in drawn and "var(--key)" in drawn and "#" not in drawn
    assert 'aria-hidden="true"' in drawn
    assert "<mi>Q</mi>" in spoken and "color" not in spoken


@pytest.mark.parametrize("tex", [r"\frac{1}{", r"\unknown", r"\begin{nothing} x \end{nothing}"])
def test_bad_tex_is_an_error_and_stops_no_other_formula(cache, tex):
    cache.add([("x", True), (tex, True), ("y", True)])
    with pytest.raises(mathematics.TexError):
        cache.get(tex, True)
    assert cache.get("x", True) != cache.get("y", True)


def test_the_cache_keeps_what_is_used(cache):
    cache.get("x", False), cache.get("y", True)
    cache.save({("x", False)})
    again = mathematics.FormulaCache(cache.path)
    assert again.formulas == {("x", False): cache.formulas["x", False]}
    assert again.stylesheet == cache.stylesheet
    assert "_engine" not in vars(again.mathjax)  # nothing had to start
    assert list(cache.path.parent.iterdir()) == [cache.path]
    other = json.dumps(json.loads(cache.path.read_text()) | {"version": "0"})
    for damaged in (other, "", "{", "[]", "null", '{"version": "other"}', "\0\0"):
        cache.path.write_text(damaged)
        assert mathematics.FormulaCache(cache.path).formulas == {}


def test_only_rules_that_can_match_are_kept():
    css = """
    mjx-c.mjx-c51.TEX-I::before { content: "Q"; }
    mjx-c.mjx-c51::before { content: "Q"; }
    mjx-c.mjx-c52.TEX-I::before { content: "R"; }
    mjx-mo, mjx-mi > mjx-c { display: block; }
    """
    formula = '<mjx-mi><mjx-c class="mjx-c51 TEX-I"></mjx-c></mjx-mi>'
    kept = [selector for selector, _ in math_fonts.used_rules(css, [formula])]
    assert kept == ["mjx-c.mjx-c51.TEX-I::before", "mjx-c.mjx-c51::before", "mjx-mi > mjx-c"]
    braces = 'a::before { content: "{"; } b { color: red; } c { content: "\\"}"; }'
    rules = math_fonts.parse_rules(braces)
    assert [selector for selector, _ in rules] == ["a::before", "b", "c"]


def test_the_stylesheet_is_small_complete_and_always_the_same(cache, tmp_path):
    for tex in (
        r"\begin{cases} Q \\ \sqrt{d_k} \end{cases}",
        r"\sum_{i=1}^n \mathbb{R} \in \mathcal{N}",
    ):
        cache.get(tex, True)
    css, formulas = cache.stylesheet, list(cache.formulas.values())
    math_fonts.write_assets(css, formulas, tmp_path / "a")
    ours = (tmp_path / "a" / "math.css").read_text()
    assert len(ours) < 0.1 * len(css)
    assert "will-change" in css and "will-change" not in ours
    named = set(re.findall(r'url\("([^"]*)"\)', ours))
    assert named == {path.name for path in (tmp_path / "a").glob("*.woff*")}
    families = set(re.findall(r"@font-face \{ font-family: ([\w-]+)", ours))
    assert {"MJXTEX", "MJXTEX-I", "MJXTEX-A", "MJXTEX-C", "MJXTEX-S2"} <= families
    assert r'content: "{"' in ours

    before = {p.name: p.read_bytes() for p in (tmp_path / "a").iterdir()}
    math_fonts.write_assets(css, formulas, tmp_path / "a")
    assert before == {p.name: p.read_bytes() for p in (tmp_path / "a").iterdir()}

    math_fonts.write_assets(css, [], tmp_path / "a")
    assert not list((tmp_path / "a").glob("*.woff2"))  # those of formulas that are gone


def test_lines_and_paragraphs_of_tex_become_rows():
    def tex(source):
        return mathematics.tex_of(nodes.math_block(source, source))[0]

    assert tex("a = b") == "a = b"
    assert tex(r"a \\ b") == r"\begin{split}a \\ b\end{split}"
    assert tex("a\n\nb") == r"\begin{aligned}a\\b\end{aligned}"
    assert mathematics.tex_of(nodes.math("x", "x")) == ("x", False)


def test_the_policy_allows_the_scripts_of_the_page_and_no_other():
    text = head.with_policy(
        "<html><head><meta charset='utf-8'></head><body><script>go();</script>"
        '<script type="application/json">{"data": 1}</script><script src="a.js"></script></body>'
    )
    digest = base64.b64encode(hashlib.sha256(b"go();").digest()).decode()
    assert re.match(r"<html><head>\s*<meta http-equiv=\"Content-Security-Policy\"", text)
    assert re.findall(r"'sha256-[^']*'", text) == [f"'sha256-{digest}'"]
    assert "unsafe-inline" not in re.search(r"script-src[^;]*", text)[0]


def test_the_summary_is_the_first_running_text():
    formula = r"\textcolor{#0067a3}{Q} \top"
    first = nodes.paragraph(
        "", "Each query ", nodes.math("", formula), nodes.Text(" asks. So. Long" + " x" * 150 + ".")
    )
    section = nodes.section(
        "", nodes.title("", "T"), nodes.note("", nodes.paragraph("", "no")), first
    )
    assert head.summary(section) == "Each query Q ᵀ asks. So."


def test_code_is_marked_where_it_shows_and_nowhere_else():
    code = 'def f(x):\n    return x.mean() not in ("a", 1.5, None)  # words & <more>\n'
    written = colored(code, PythonLexer(), highlight.PlainNames(style=highlight.Light))
    marked = re.findall(r'<span class="(\w+)">([^<]*)</span>', written)
    assert marked == [
        ("k", "def"), ("k", "return"), ("ow", "not"), ("ow", "in"), ("s2", '"a"'),
        ("c1", "# words &amp; &lt;more&gt;"),
    ]  # fmt: skip
    assert html.unescape(re.sub(r"<[^>]*>", "", written)) == code + "\n" * written.count("</pre>")


@pytest.mark.parametrize(
    ("style", "ground"), [(highlight.Light, "f5f5f5"), (highlight.Dark, "1b1c1e")]
)
def test_comments_are_softest_and_can_be_read(style, ground):
    def found(kind):
        colors = style.style_for_token(kind)["color"], ground
        return contrast(*(np.array([*bytes.fromhex(color)]) / 255 for color in colors))

    assert found(Text) > found(String) > found(Comment) == found(String.Doc) > 4.5
    by_day, by_night = (
        {kind for kind, look in each if look == each.style_for_token(Text)}
        for each in (highlight.Light, highlight.Dark)
    )
    assert by_day == by_night and Name in by_day and Keyword not in by_day
    roles = {
        color.strip("#")
        for role in ("query", "key", "value", "weight")
        for color in palette.ROLES[role]
    }
    assert not roles & {look["color"] for _, look in style}


@pytest.mark.parametrize(
    ("name", "traits"),
    [("Attention", "{}"), *(("ScalingExplorer", t) for t in ('{"d_k": "64"}', '{"d_k": 0}', "{"))],
)
def test_a_widget_that_cannot_be_is_named_with_what_is_wrong(name, traits):
    directive = widget_slot.Widget.__new__(widget_slot.Widget)
    directive.arguments, directive.content = [name], [traits]
    with pytest.raises(DirectiveError) as refused:
        directive.run()
    assert refused.value.msg.startswith(f"widget {name}: ")
