"""Furo, amended. A build stops if Furo no longer has what is amended here.

Otherwise the amendment would do nothing, and nobody would notice before a reader does.
"""

import functools
import re
from fnmatch import fnmatch
from pathlib import Path

import tinycss2
from sphinx.errors import ThemeError
from sphinx.jinja2glue import BuiltinTemplateLoader

from _ext.pages.head import with_policy

# What a page lacks: without JavaScript nothing else says that it follows the reader's system; two
# landmarks of one kind need names; "Back to top" stands outside of all landmarks; the search is a
# link, which opens a window (book.js) or leads to its page, and may be found like any other page.
TEMPLATES = {
    "base.html": {"<body>": '<body data-theme="auto">'},
    "page.html": {
        '<aside class="sidebar-drawer': '<aside aria-label="Chapters" class="sidebar-drawer',
        '<aside class="toc-drawer': '<aside aria-label="On this page" class="toc-drawer',
        '<div class="article-container">': '<div class="article-container" role="main">',
        '<article role="main"': "<article",
        # On a phone the header says which page this is, and leads back to its top.
        '<a href="{{ pathto(master_doc) }}"><div class="brand">'
        "{{ docstitle if docstitle else project }}</div></a>": (
            '<a href="{{ pathto(master_doc) }}"{% if pagename != master_doc %} class="above"'
            '{% endif %}><div class="brand">{{ docstitle }}</div></a>'
            '{% if pagename != master_doc %}<a class="here" href="#" '
            'aria-label="{{ title|striptags|e }}: to its top">{{ title }}</a>{% endif %}'
        ),
        '<div class="theme-toggle-container theme-toggle-header">': (
            '<a class="search-icon" href="{{ pathto("search") }}" aria-label="Search" data-search>'
            '<svg aria-hidden="true" viewBox="0 0 24 24"><path d="M16 16l5 5M3 10a7 7 0 1 0 14 0 7 '
            '7 0 1 0-14 0"/></svg></a>\n<div class="theme-toggle-container theme-toggle-header">'
        ),
    },
    "sidebar/search.html": {
        '<form class="sidebar-search-container" method="get" action="{{ pathto(\'search\') }}" '
        'role="search">': '<div class="sidebar-search-container">',
        '<input class="sidebar-search" placeholder="{{ _("Search") }}" name="q" '
        'aria-label="{{ _("Search" ) }}">': (
            '<a class="sidebar-search" href="{{ pathto("search") }}" aria-keyshortcuts="/" '
            "data-search>Search <kbd>/</kbd></a>"
        ),
        '<input type="hidden" name="check_keywords" value="yes">': "",
        '<input type="hidden" name="area" value="default">': "",
        '</form>\n<div id="searchbox"></div>': "</div>",
    },
    "search.html": {'<meta name="robots" content="noindex" />': ""},
}
# A heading needs a level, and the parts of the contents are none.
NAVIGATION = {'<p class="caption" role="heading">': '<p class="caption">'}
# Furo's script tells the console to which theme the reader changed.
SCRIPT = {"console.log(`Changed to ${e} mode.`)": "0"}
# Selectors and media queries of Furo's style. Two selectors make the browser match every element
# again where it need not: one for any list that has a class (each has one) when a class of <html>
# changes, as it does at the start and at each turn of the scrolling; one for all that is in an
# article, when a box gets a role. The contents of the page are in view from 1100 pixels on
# (book.css makes the room).
STYLE = {
    "dl[class]": "dl",
    ",article[role=main] *": "",
    "(max-width:82em)": "(max-width:68.74em)",
}
ICONS_OF_OTHERS = ["svg-pencil", "svg-eye"]  # of buttons that this site does not have
# Kinds of boxes that no page has: a page is lighter by a kilobyte without their rules.
BOXES_OF_OTHERS = re.compile(
    r"\.(attention|caution|danger|error|hint|important|seealso|tip|warning)\b"
)
OF_BOXES = re.compile(
    r'(--(?:icon|color-admonition)-[\w-]+)\s*:\s*(?:url\("(?:[^"\\]|\\.)*"\)|[^;}"])*;?'
)
FURO = "_static/scripts/furo.js"
REPLACED_BY_OURS = {"mystnb.*.css", "furo-extensions.css"}
ONLY_FOR_ITS_SEARCH = {"documentation_options.js", "doctools.js", "sphinx_highlight.js"}
BLOCK = r"{%-?\s*block (\w+)"


def amended(text, changes, name):
    """The text with each of `changes`; if it lacks what one of them changes, an error."""
    for theirs, ours in changes.items():
        if theirs not in text:
            raise ThemeError(f"{name} no longer has {theirs}, which _ext amends")
        text = text.replace(theirs, ours)
    return text


class Templates(BuiltinTemplateLoader):
    """Sphinx's templates, with Furo's amended; each finished page gets its policy."""

    def init(self, builder, theme=None, dirs=None):
        """Find the templates, and see before the first page that Furo has all that we count on."""
        super().init(builder, theme, dirs)
        self.ours = tuple(self.pathchain[: self.templatepathlen])
        for name in TEMPLATES:
            self.get_source(self.environment, f"!{name}")
        for folder in map(Path, self.ours):
            for file in sorted(folder.rglob("*.html")):
                self.check_use(file.relative_to(folder).as_posix(), file.read_text("utf-8"))

    def get_source(self, environment, template):
        """The text of a template; one of Furo's is amended."""
        text, file, uptodate = super().get_source(environment, template)
        name = template.removeprefix("!")
        if name in TEMPLATES and not file.startswith(self.ours):
            text = amended(text, TEMPLATES[name], f"Furo's {name}")
        return text, file, uptodate

    def check_use(self, name, text):
        """See that Furo has the blocks that a template of ours fills, or includes it."""
        if f'extends "!{name}"' in text:
            lacking = set(re.findall(BLOCK, text)) - self.blocks(f"!{name}")
            if lacking:
                raise ThemeError(
                    f"Furo's {name} no longer has block {min(lacking)}, which _ext fills"
                )
        elif f'include "{name}"' not in self.get_source(self.environment, "!page.html")[0]:
            raise ThemeError(f"Furo's page.html no longer includes {name}, which _ext replaces")

    def blocks(self, name):
        """The blocks of a template and of those that it extends."""
        text, *_ = self.get_source(self.environment, name)
        parents = re.findall(r'{%-?\s*extends "([^"]+)"', text)
        return set(re.findall(BLOCK, text)).union(*map(self.blocks, parents))

    def render(self, template, context):
        """Render a page and put its policy first in the head."""
        page = super().render(template, context)
        for name in ICONS_OF_OTHERS:
            page = re.sub(rf'<symbol id="{name}".*?</symbol>\s*', "", page, flags=re.DOTALL)
        return with_policy(page)


@functools.cache
def amended_style(text):
    """Furo's style with the heads of its rules amended; if no rule has such a head, an error."""
    rules = tinycss2.parse_stylesheet(text, skip_comments=True, skip_whitespace=True)
    missing = set(STYLE)
    for rule in rules:
        head = tinycss2.serialize(rule.prelude)
        for theirs in filter(head.__contains__, STYLE):
            head = head.replace(theirs, STYLE[theirs])
            missing.discard(theirs)
        rule.prelude = tinycss2.parse_component_value_list(head)
    if missing:
        raise ThemeError(f"Furo's styles/furo.css no longer has {min(missing)}, which _ext amends")
    style = tinycss2.serialize([rule for rule in rules if not is_of_others(rule)])
    used = set(re.findall(r"var\((--[\w-]+)", style))
    return OF_BOXES.sub(lambda found: found[0] if found[1] in used else "", style)


def is_of_others(rule):
    """Whether each selector of the rule is for a kind of box that no page has."""
    selectors = tinycss2.serialize(rule.prelude).split(",")
    return rule.type == "qualified-rule" and all(map(BOXES_OF_OTHERS.search, selectors))


def files_of(theme):
    """The text of each of Furo's files that is amended, amended, by its place under _static."""
    script, style = (
        Path(theme.get_theme_dirs()[0], "static", name).read_text(encoding="utf-8")
        for name in ("scripts/furo.js", "styles/furo.css")
    )
    return {
        "scripts/furo.js": amended(script, SCRIPT, "Furo's scripts/furo.js"),
        "styles/furo.css": amended_style(style),
    }


def check_files(app):
    """Before anything is read: Furo's files have what is amended in them."""
    files_of(app.builder.theme)


def write_files(app, exception):
    """After Sphinx has copied Furo's files: ours in their place."""
    if exception is None:
        for name, text in files_of(app.builder.theme).items():
            Path(app.outdir, "_static", name).write_text(text, encoding="utf-8")


def amend_page(app, pagename, templatename, context, doctree):
    """Leave out the scripts and styles that this page does not use; amend the contents.

    Furo's script waits until all of the page is there anyway, so the page does not wait for it.
    """
    leave_out(context["css_files"], REPLACED_BY_OURS)
    leave_out(context["script_files"], ONLY_FOR_ITS_SEARCH)
    for script in context["script_files"]:
        if script.filename == FURO:
            script.attributes["defer"] = "defer"
    contents = context["furo_navigation_tree"]
    context["furo_navigation_tree"] = amended(contents, NAVIGATION, "Sphinx's contents")


def style_start(app, pagename, templatename, context, doctree):
    """The start page, and no other, has a layout of its own."""
    if pagename == app.config.root_doc:
        app.add_css_file("start.css", priority=910)


def leave_out(assets, patterns):
    """Take those whose name fits one of `patterns` out of the assets of a page."""
    for pattern in patterns:
        unused = [asset for asset in assets if fnmatch(Path(str(asset.filename)).name, pattern)]
        if not unused:
            raise ThemeError(f"a page no longer has the file {pattern}, which _ext leaves out")
        for asset in unused:
            assets.remove(asset)


def setup(app):
    # Jupyter Book sets this for an extension that this site does not load.
    app.add_config_value("comments_config", {}, "")
    # The theme now rather than when the builder starts, so that its settings are known.
    app.setup_extension("furo")
    app.connect("builder-inited", check_files)
    app.connect("build-finished", write_files)
    app.connect("html-page-context", style_start)
    app.connect("html-page-context", amend_page, priority=900)
