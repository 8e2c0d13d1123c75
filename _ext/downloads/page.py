"""What a chapter's page offers: its notebook to download, and places where to open it.

The notebook's first code cell installs `attnlib` from a wheel that the site carries: from the
book's address, `html_baseurl`, if it is set. A book without an address offers a zip with both, and
the cell installs the wheel from beside the notebook; a browser saves a zip also from a page on
disk, where it would show a notebook as text. `repository_url` switches on the links to Binder,
Colab and GitHub. A chapter without a plain form is a warning, which ends a strict build.
"""

import os
import re
from pathlib import Path, PurePosixPath
from urllib.parse import urljoin

import nbformat
from docutils import nodes
from myst_parser.mdit_to_docutils.sphinx_ import SphinxRenderer
from myst_parser.parsers.mdit import create_md_parser
from sphinx.addnodes import pending_xref
from sphinx.errors import ConfigError
from sphinx.util import logging
from sphinx.util.nodes import split_explicit_title

from _ext.course.contents import chapters_of
from _ext.downloads.markdown import ROLES, Plain, PlainError
from _ext.downloads.notebook import FOLDER, plain_notebook
from _ext.downloads.wheel import build_wheel, write_zip
from _ext.files import clear
from _ext.state import of_build

logger = logging.getLogger(__name__)

PUBLISHED = "gh-pages"  # the branch of the repository that holds the built site


def address_of(config):
    """The book's public address, or the published branch of its repository, or nothing."""
    branch = config.repository_url and f"{config.repository_url}/raw/{PUBLISHED}"
    address = config.html_baseurl or branch
    return address.rstrip("/") + "/" if address else ""


def launch_links(repository, docname):
    """Where else a chapter can be opened, as (icon, name, address): nowhere without a repository.

    Colab gets the plain notebook, Binder the chapter itself: its JupyterLab understands MyST.
    """
    if not repository:
        return []
    found = re.fullmatch(r"https://github\.com/([\w.-]+/[\w.-]+)", repository)
    if not found:
        raise ConfigError(
            f"repository_url must be like https://github.com/owner/name; got {repository}"
        )
    name, file = found[1], f"{docname}.ipynb"
    download = f"{PUBLISHED}/{FOLDER}/{PurePosixPath(file).name}"
    binder = f"https://mybinder.org/v2/gh/{name}/HEAD?urlpath=lab/tree/{file}"
    colab = f"https://colab.research.google.com/github/{name}/blob/{download}"
    source = f"https://github.com/{name}/blob/HEAD/{file}"
    return [
        ("binder", "Run on Binder", binder),
        ("colab", "Open in Colab", colab),
        ("source", "Source on GitHub", source),
    ]


def plain_for(app, docname):
    """What turns the cells of a page into Markdown, with the numbers and names of this build."""
    env, base = app.env, address_of(app.config)
    here = app.builder.get_target_uri(docname)

    def resolve(role, text):
        (domain, kind), (explicit, title, target) = ROLES[role], split_explicit_title(text)
        wanted = pending_xref("", reftarget=target, refexplicit=explicit, refdoc=docname)
        found = env.get_domain(domain).resolve_xref(
            env, docname, app.builder, kind, target, wanted, nodes.inline(title, title)
        )
        if found is None:
            return None
        links = [node["refuri"] for node in found.findall(nodes.reference) if node.get("refuri")]
        elsewhere = base and links and not links[0].startswith("#")
        return found.astext(), urljoin(base + here, links[0]) if elsewhere else None

    def follow(target):
        path, _, anchor = target.partition("#")
        path = os.path.normpath(os.path.join(os.path.dirname(docname), path))
        other = os.path.splitext(path)[0]
        if other not in env.found_docs or anchor:
            raise PlainError(f"the link to {target} has no plain form")
        return env.titles[other].astext(), base and base + app.builder.get_target_uri(other)

    return Plain(create_md_parser(env.myst_config, SphinxRenderer), resolve, follow)


def write_wheel(app):
    """Before anything is read: the wheel. A build that goes on from an earlier one has it."""
    made = [*Path(app.outdir, FOLDER).glob("*.whl")] if app.env.all_docs else []
    made = made or [build_wheel(Path(app.srcdir), Path(app.outdir, FOLDER))]
    of_build(app).wheel = made[0].name


def write_notebooks(app, exception):
    """After a build, when all numbers are known: the notebook of each chapter that was written."""
    if exception:
        return
    folder, address = Path(app.outdir, FOLDER), address_of(app.config)
    wheel = folder / of_build(app).wheel
    wanted = {wheel.name}
    for chapter in chapters_of(app):
        target, archive = (
            folder / f"{Path(chapter.page).name}.{kind}" for kind in ("ipynb", "zip")
        )
        wanted |= {target.name} if address else {target.name, archive.name}
        if chapter.page not in of_build(app).written:
            continue
        plain, title = plain_for(app, chapter.page), app.config.html_title
        try:
            result = plain_notebook(chapter.notebook, plain, title, address, wheel.name)
        except PlainError as error:
            logger.warning("no download: %s", error, location=chapter.page, type="downloads")
            continue
        nbformat.write(result, target)
        if not address:
            write_zip(archive, target, wheel)
    clear(folder.glob("*.*"), wanted)


def add_links(app, pagename, templatename, context, doctree):
    """Give a chapter's page its links; `components/view-this-page.html` draws them."""
    if pagename not in {chapter.page for chapter in chapters_of(app)}:
        return
    of_build(app).written.add(pagename)
    suffix = "ipynb" if address_of(app.config) else "zip"
    context["download"] = context["pathto"](f"{FOLDER}/{Path(pagename).name}.{suffix}", 1)
    context["launches"] = launch_links(app.config.repository_url, pagename)


def setup(app):
    app.add_config_value("repository_url", "", "html")
    app.connect("builder-inited", write_wheel)
    app.connect("build-finished", write_notebooks)
    app.connect("html-page-context", add_links)
