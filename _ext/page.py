"""What every page has, and what no page has.

- The palette is the first stylesheet; scripts of the search page stay on the search page.
- A Content-Security-Policy opens the head: nothing runs or loads from elsewhere.
- Each page says what it is about, in its own first sentence.
- A table with given widths keeps them: nothing moves while the rest of it arrives.
- Code has marks only where they show.
- `{dropdown}`, and an admonition with `:class: dropdown`, open and close without a script.
"""

import base64
import hashlib
import html
import re
import textwrap
from pathlib import Path

from docutils import nodes
from docutils.parsers.rst import directives
from docutils.parsers.rst.directives.admonitions import Admonition
from myst_nb.sphinx_ import HideCodeCellNode
from pygments.formatters import HtmlFormatter
from pygments.token import Text
from sphinx.highlighting import PygmentsBridge
from sphinx.jinja2glue import BuiltinTemplateLoader
from sphinx.locale import admonitionlabels
from sphinx.transforms.post_transforms import SphinxPostTransform
from sphinx.writers.html5 import HTML5Translator

from attnlib import palette

# --- colours ------------------------------------------------------------------------------------

HEX_TO_VAR = {pair[0]: f"var(--{role.replace('_', '-')})" for role, pair in palette.ROLES.items()}


def themed(markup):
    """The same markup with the palette's light colours replaced by the variables of their roles."""
    return re.sub(
        r"#[0-9a-fA-F]{6}\b", lambda match: HEX_TO_VAR.get(match[0].lower(), match[0]), markup
    )


def write_palette(app, builder):
    """Before the first page is written: the colours, from their one place."""
    if builder.format == "html":
        target = Path(app.outdir, "_static", "palette.css")
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(palette.css(), encoding="utf-8")


# --- the head -----------------------------------------------------------------------------------

POLICY = (
    "default-src 'self'; script-src 'self' blob:{hashes}; style-src 'self' 'unsafe-inline'; "
    "img-src 'self' data:; font-src 'self' data:; connect-src 'self'; object-src 'none'; "
    "base-uri 'self'; form-action 'self'"
)
ONLY_FOR_SEARCH = {"documentation_options.js", "doctools.js", "sphinx_highlight.js"}
REPLACED_BY_OURS = re.compile(r"mystnb\.\w+\.css|furo-extensions\.css")
# What a page lacks: without JavaScript nothing else says that it follows the reader's system; two
# landmarks of one kind need names; "Back to top" stands outside of all landmarks; a heading needs
# a level, and the parts of the contents are none; the empty corner of a table heads nothing; the
# search may be found by a search, like any other page.
AMENDMENTS = {
    "<body>": '<body data-theme="auto">',
    '<aside class="sidebar-drawer': '<aside aria-label="Chapters" class="sidebar-drawer',
    '<aside class="toc-drawer': '<aside aria-label="On this page" class="toc-drawer',
    '<div class="article-container">': '<div class="article-container" role="main">',
    '<article role="main"': "<article",
    '<p class="caption" role="heading">': '<p class="caption">',
    '<th class="head"><p></p></th>': "<td></td>",
    '<meta name="robots" content="noindex" />': "",
}


class Pages(BuiltinTemplateLoader):
    """Sphinx's templates; each finished page gets the policy that fits its inline scripts."""

    def render(self, template, context):
        """Render `template`, amend it, and put the policy first in the head."""
        page = super().render(template, context)
        for theirs, ours in AMENDMENTS.items():
            page = page.replace(theirs, ours)
        return with_policy(page)


def with_policy(page):
    """The page with its Content-Security-Policy, which allows the scripts it has, by digest."""
    inline = r"""<script(?![^>]*\b(?:src=|type=["']?application/))[^>]*>(.*?)</script>"""
    scripts = re.findall(inline, page, flags=re.S)
    digests = [hashlib.sha256(script.encode()).digest() for script in scripts]
    hashes = "".join(f" 'sha256-{base64.b64encode(d).decode()}'" for d in dict.fromkeys(digests))
    policy = html.escape(POLICY.format(hashes=hashes), quote=False)
    meta = f'<meta http-equiv="Content-Security-Policy" content="{policy}">'
    return page.replace("<head>", f"<head>\n    {meta}", 1)


def trim_assets(app, pagename, templatename, context, doctree):
    """Leave out the scripts and styles that this page does not use."""

    def unused(asset):
        name = Path(str(asset.filename).partition("?")[0]).name
        return REPLACED_BY_OURS.fullmatch(name) or (
            name in ONLY_FOR_SEARCH and pagename != "search"
        )

    for kind in ("script_files", "css_files"):
        context[kind][:] = [asset for asset in context[kind] if not unused(asset)]


def describe(app, pagename, templatename, context, doctree):
    """Give the page a description, unless its author did (`html_meta` in the front matter)."""
    # Docutils says the width of the page once more than Furo does.
    tags = re.sub(r'<meta [^>]*name="viewport"[^>]*>\s*', "", context.get("metatags", ""))
    if 'name="description"' not in tags:
        text = summary(doctree) if doctree else ""
        text = html.escape(text or f"{context.get('title', 'Search')} - {app.config.html_title}")
        tags += f'\n<meta name="description" content="{text}">'
    context["metatags"] = tags


def summary(doctree):
    """The first paragraph of running text, at most 160 characters of it."""
    for paragraph in doctree.findall(nodes.paragraph):
        if isinstance(paragraph.parent, nodes.section):
            plain = paragraph.deepcopy()
            for formula in list(plain.findall(nodes.math)):
                letters = re.sub(
                    r"\\textcolor\{[^}]*\}\{([^}]*)\}|\\\w+|[{}]", r"\1", formula.astext()
                )
                formula.replace_self(nodes.Text(letters))
            return textwrap.shorten(plain.astext(), 160, placeholder=" ...")
    return ""


# What Furo's files do to a page. The script tells the console to which theme the reader changed.
# Two rules of the style make the browser look at every element again where it need not: a rule for
# any list that has a class (each has one) when a class of <html> changes, as it does at the start
# and at each turn of the scrolling; a rule for all that is in an article, when a box gets a role.
THEME_AMENDMENTS = {
    "scripts/furo.js": {r"console\.log\(`[^`]*`\)": "0"},
    "styles/furo.css": {r"\bdl\[class\]": "dl", r",article\[role=main\] \*": ""},
}


def amend_theme(app, exception):
    """Change what disturbs in Furo's files, after Sphinx has copied them."""
    for name, amendments in THEME_AMENDMENTS.items():
        file = Path(app.outdir, "_static", name)
        if file.is_file():
            text = file.read_text(encoding="utf-8")
            for theirs, ours in amendments.items():
                text = re.sub(theirs, ours, text)
            file.write_text(text, encoding="utf-8")


# --- code ---------------------------------------------------------------------------------------


class PlainNames(HtmlFormatter):
    """Pygments' HTML without the spans that look like plain text: six of ten in a chapter."""

    def format_unencoded(self, tokensource, outfile):
        """Write the code, with a span for each token that has a look of its own."""
        text = self.style.style_for_token(Text)
        plain = {kind for kind, look in self.style if look == text}
        tokens = ((Text if kind in plain else kind, value) for kind, value in tokensource)
        super().format_unencoded(tokens, outfile)


# --- what opens and closes ----------------------------------------------------------------------


class Dropdown(Admonition):
    """An admonition that starts closed: `:::{dropdown} Answer`; with `:open:`, open."""

    option_spec = Admonition.option_spec | {"open": directives.flag}

    def run(self):
        """Make an admonition with the class that `FoldAdmonitions` looks for."""
        is_open = ["open"] if "open" in self.options else []
        self.options["class"] = [*self.options.get("class", []), "dropdown", *is_open]
        return super().run()


class details(nodes.General, nodes.Element):  # noqa: N801
    """A `<details>`; docutils names its nodes in lower case."""


class details_summary(nodes.General, nodes.TextElement):  # noqa: N801
    """The `<summary>` of a `details`."""


class FoldAdmonitions(SphinxPostTransform):
    """Turn each admonition with the class `dropdown` into a `details`."""

    default_priority = 300
    formats = ("html",)

    def run(self, **kwargs):
        """Go through the admonitions of the page."""
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


class GivenWidths(SphinxPostTransform):
    """A table with `:widths:` keeps them. MyST calls every table's widths automatic as well."""

    default_priority = 198

    def run(self):
        """Visit all tables."""
        for table in self.document.findall(nodes.table):
            if "colwidths-given" in table["classes"]:
                table["classes"].remove("colwidths-auto")


def visit_details(self, node):
    """Open a `<details>`."""
    opened = {"open": "open"} if "open" in node["classes"] else {}
    self.body.append(self.starttag(node, "details", **opened))


def depart_details(self, node):
    """Close a `<details>`."""
    self.body.append("</details>\n")


def visit_summary(self, node):
    """Open a `<summary>`."""
    self.body.append(self.starttag(node, "summary", "", CLASS="admonition-title"))


def depart_summary(self, node):
    """Close a `<summary>`."""
    self.body.append("</summary>\n")


def visit_hidden_cell(self, node):
    """Open a hidden part of a cell. MyST-NB's own summary is read out as other than it says."""
    classes = " ".join(["admonition", "dropdown", "hide", *node["classes"]])
    self.body.append(
        f'<details class="{classes}"><summary class="admonition-title">'
        f"{html.escape(node['prompt_show'])}</summary>\n"
    )


def visit_citation(self, node):
    """Open an entry of the bibliography, with a role that a list may have."""
    HTML5Translator.visit_citation(self, node)
    self.body[-1] = self.body[-1].replace("doc-biblioentry", "listitem")


def setup(app):
    """Register with Sphinx."""
    # Jupyter Book sets this for an extension that this site does not load.
    app.add_config_value("comments_config", {}, "")
    # The theme now rather than when the builder starts, so that its settings are known.
    app.setup_extension("furo")
    app.connect("build-finished", amend_theme)

    PygmentsBridge.html_formatter = PlainNames
    app.add_css_file("palette.css", priority=100)
    app.connect("write-started", write_palette)
    app.connect("html-page-context", describe)
    app.connect("html-page-context", trim_assets, priority=900)

    app.add_directive("dropdown", Dropdown)
    app.add_post_transform(FoldAdmonitions)
    app.add_post_transform(GivenWidths)
    app.add_node(details, html=(visit_details, depart_details))
    app.add_node(details_summary, html=(visit_summary, depart_summary))
    app.add_node(HideCodeCellNode, override=True, html=(visit_hidden_cell, depart_details))
    app.add_node(nodes.citation, override=True, html=(visit_citation, None))
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
