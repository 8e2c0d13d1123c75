"""_ext/pages/theme.py: Furo is amended, and a Furo without what is amended stops the build."""

import re
import shutil
from types import SimpleNamespace

import furo
import pytest
from sphinx.errors import ThemeError

from _ext.pages import theme
from tests.conftest import ROOT
from tests.helpers import raises

PIECES = [
    (folder, name, piece)
    for folder, amendments in (
        (".", theme.TEMPLATES),
        ("static", {"scripts/furo.js": theme.SCRIPT, "styles/furo.css": theme.STYLE}),
    )
    for name, changes in amendments.items()
    for piece in changes
]


@pytest.fixture
def sphinx(tmp_path):
    """As much of a Sphinx application as the theme looks at, with a Furo that may be spoilt."""
    planted = shutil.copytree(furo.THEME_PATH, tmp_path / "furo")
    config = SimpleNamespace(templates_path=["templates"])
    builder = SimpleNamespace(config=config, confdir=str(ROOT / "_ext" / "pages"), format="html")
    builder.app = SimpleNamespace(translator=None)
    builder.theme = SimpleNamespace(get_theme_dirs=lambda: [str(planted)])
    return SimpleNamespace(builder=builder, furo=planted, outdir=tmp_path)


def start(sphinx):
    """Do what a build does before it reads anything."""
    templates = theme.Templates()
    templates.init(sphinx.builder, sphinx.builder.theme)
    theme.check_files(sphinx)
    return templates


def test_furo_as_it_is_is_amended(sphinx):
    templates = start(sphinx)
    for name, changes in theme.TEMPLATES.items():
        text, *_ = templates.get_source(templates.environment, f"!{name}")
        assert all(ours in text for ours in changes.values())
    (sphinx.outdir / "_static" / "scripts").mkdir(parents=True)
    (sphinx.outdir / "_static" / "styles").mkdir()
    theme.write_files(sphinx, None)
    assert "console.log" not in (sphinx.outdir / "_static" / "scripts" / "furo.js").read_text()
    style = (sphinx.outdir / "_static" / "styles" / "furo.css").read_text()
    assert style and not re.search(r"dl\[class\]|article\[role=main\] \*", style)


@pytest.mark.parametrize(("folder", "name", "piece"), PIECES)
def test_a_furo_without_a_piece_that_is_amended_stops_the_build(sphinx, folder, name, piece):
    file = sphinx.furo / folder / name
    file.write_text(file.read_text("utf-8").replace(piece, "other"), "utf-8")
    with raises(ThemeError, f"Furo's {name} no longer has {piece}, which _ext amends"):
        start(sphinx)


@pytest.mark.parametrize(
    ("name", "old", "new", "message"),
    [
        ("page.html", "block footer", "block base", "Furo's page.html no longer has block footer"),
        ("base.html", "block extrahead", "", "Furo's page.html no longer has block extrahead"),
        ("page.html", '"components/', '"other/', "Furo's page.html no longer includes components/"),
    ],
)
def test_a_furo_that_has_no_use_for_our_templates_stops_the_build(sphinx, name, old, new, message):
    file = sphinx.furo / name
    file.write_text(file.read_text("utf-8").replace(old, new), "utf-8")
    with pytest.raises(ThemeError, match=f"^{message}.*, which _ext (?:fills|replaces)$"):
        start(sphinx)


@pytest.fixture
def context():
    """What Sphinx gives to the template of a page, as far as it is amended."""
    styles = ["palette.css", "mystnb.8ecb98da.css", "styles/furo-extensions.css"]
    scripts = [None, "documentation_options.js", "doctools.js", "sphinx_highlight.js", "furo.js"]
    return {
        "css_files": [SimpleNamespace(filename=name) for name in styles],
        "script_files": [SimpleNamespace(filename=name) for name in scripts],
        "furo_navigation_tree": '<p class="caption" role="heading">Chapters</p>',
    }


def test_a_page_loads_what_it_uses(context):
    theme.amend_page(None, "page", "page.html", context, None)
    assert [style.filename for style in context["css_files"]] == ["palette.css"]
    assert [script.filename for script in context["script_files"]] == [None, "furo.js"]
    assert context["furo_navigation_tree"] == '<p class="caption">Chapters</p>'


@pytest.mark.parametrize(
    ("kind", "name"), [("css_files", "mystnb.*.css"), ("script_files", "documentation_options.js")]
)
def test_a_page_without_a_file_that_is_left_out_stops_the_build(context, kind, name):
    context[kind].pop(1)
    with raises(ThemeError, f"a page no longer has the file {name}, which _ext leaves out"):
        theme.amend_page(None, "page", "page.html", context, None)


def test_contents_without_what_is_amended_stop_the_build(context):
    context["furo_navigation_tree"] = "<p>Chapters</p>"
    with raises(
        ThemeError,
        'Sphinx\'s contents no longer has <p class="caption" role="heading">, which _ext amends',
    ):
        theme.amend_page(None, "page", "page.html", context, None)
