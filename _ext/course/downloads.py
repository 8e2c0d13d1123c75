"""What a chapter's page offers: its notebook to download, and places where to open it.

A chapter is written in MyST Markdown, which plain Jupyter and Colab show as raw text. The
download says the same in plain Markdown: an admonition is a quote, one that opens and closes is a
`<details>`, and every number and reference is the page's own. What has no plain form here, and
what MyST would still find in the result, is a warning, which ends a strict build.

Outputs are left out. Jupyter shows no SVG and no widget of a notebook that it has not run itself,
so they would be messages about trust in place of pictures; the page has them all.

The notebook's first code cell installs `attnlib` from a wheel that the site carries: from the
book's address, `html_baseurl`, if it is set. A book without an address offers a zip with both, and
the cell installs the wheel from beside the notebook; a browser saves a zip also from a page on
disk, where it would show a notebook as text. `repository_url` switches on the links to Binder,
Colab and GitHub.
"""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory
from urllib.parse import urljoin
from zipfile import ZIP_DEFLATED, ZipFile, ZipInfo

import nbformat
from docutils import nodes
from docutils.parsers.rst.directives.admonitions import Admonition, Note
from docutils.parsers.rst.states import MarkupError
from markdown_it import MarkdownIt
from myst_parser.mdit_to_docutils.sphinx_ import SphinxRenderer
from myst_parser.parsers.directives import parse_directive_text
from myst_parser.parsers.mdit import create_md_parser
from sphinx.addnodes import pending_xref
from sphinx.errors import ConfigError, SphinxError
from sphinx.locale import admonitionlabels
from sphinx.util import logging
from sphinx.util.nodes import split_explicit_title

from _ext.content.folding import ANSWER, Answer, Dropdown
from _ext.course.contents import chapters_of
from _ext.state import of_build

logger = logging.getLogger(__name__)

FOLDER = "_downloads"
PUBLISHED = "gh-pages"  # the branch of the repository that holds the built site

# --- MyST to Markdown ---------------------------------------------------------------------------

ADMONITIONS = {"admonition": Admonition, "dropdown": Dropdown, "answer": Answer}
ADMONITIONS |= dict.fromkeys(set(admonitionlabels) - {"versionadded"}, Note)  # Note: no title
TITLES = {name: str(label) for name, label in admonitionlabels.items()} | {"answer": ANSWER}
ROLES = {name: ("std", name) for name in ("numref", "ref", "doc", "term")}
ROLES |= {"eq": ("math", "eq"), "cite:p": ("cite", "p"), "cite:t": ("cite", "t")}

# What may look like a role or a reference and be one: code is code whatever stands in it, and a
# formula may run over several lines, which a quote would mark as its own.
INLINE = re.compile(
    r"(?:\{(?P<role>[\w:+-]+)\})?(?P<ticks>`+)(?P<text>.+?)(?<!`)(?P=ticks)(?!`)"
    r"|(?P<math>(?<!\\)\$[^$]+\$)"
    r"|(?<!!)\[(?P<label>[^\[\]]*)\]\((?P<target>(?![a-z]+:)[^()\s]+)\)",
    re.DOTALL,
)
# The kinds of token of what Jupyter and Colab show as it is meant.
PLAIN = set(
    "paragraph heading bullet_list ordered_list list_item blockquote table thead tbody tr th td "
    "inline text text_special softbreak hardbreak code_inline code_block fence hr em strong s link "
    "math_block math_inline math_inline_double".split()
)
BLOCKS = {"fence", "colon_fence", "code_block", "math_block", "math_block_label"}
OURS = re.compile(r"<details>\n<summary>.*</summary>\n|</details>\n?")


class PlainError(ValueError):
    """Something has no plain form; the message says what."""


class Plain:
    """Turns the Markdown of one page's cells into plain Markdown.

    Parameters
    ----------
    parser : MarkdownIt
        The parser of the book's own pages: what it takes for MyST is MyST.
    resolve : callable
        `resolve(role, text)` gives what the page shows for a role, and its address or None.
    follow : callable
        `follow(target)` gives the title of the page that a link leads to, and its address or None.
    """

    def __init__(self, parser, resolve, follow):
        self.parser, self.resolve, self.follow = parser, resolve, follow

    def cell(self, text):
        """The plain form of a cell.

        Raises
        ------
        PlainError
            For a construct that this module does not know, and for MyST that is left.
        """
        plain = self._blocks(text)
        self._check(self.parser.parse(plain, {}))
        return plain

    def _blocks(self, text):
        """The plain form of `text`, which may hold blocks within blocks."""
        lines, parts, done = text.split("\n"), [], 0
        for token in self.parser.parse(text, {}):
            if token.type in BLOCKS:
                start, end = token.map
                if start > done:
                    parts.append(self._inline("\n".join(lines[done:start])))
                block = self._block(token)
                whole = "\n".join(lines[start:end])
                parts.append(whole if block is None else nested(block, lines[start]))
                done = end
        if done < len(lines):
            parts.append(self._inline("\n".join(lines[done:])))
        return "\n".join(parts)

    def _block(self, token):
        """What stands for a block that is not running text; None if it may stay as it is."""
        if token.type == "math_block_label":
            number, _ = self.resolved("eq", token.info)
            return f"$$\n{token.content.strip()}\n\\tag{{{number.strip('()')}}}\n$$"
        directive = re.fullmatch(r"\{([^}]*)\}(.*)", token.info.strip())
        if not directive or token.type == "code_block":
            return None
        name, argument = directive.groups()
        if name not in ADMONITIONS:
            raise PlainError(f"the directive {{{name}}} has no plain form")
        try:
            parsed = parse_directive_text(ADMONITIONS[name], argument.strip(), token.content)
        except MarkupError as error:
            raise PlainError(f"the directive {{{name}}}: {error}") from error
        for warning in parsed.warnings:
            raise PlainError(f"the directive {{{name}}}: {warning.msg}")
        title = parsed.arguments[0] if parsed.arguments else TITLES[name]
        title = self._inline(title)
        body = self._blocks("\n".join(parsed.body)).strip()
        if name in {"dropdown", "answer"} or "dropdown" in parsed.options.get("class", []):
            summary = MarkdownIt().renderInline(title)
            return f"<details>\n<summary>{summary}</summary>\n\n{body}\n\n</details>"
        # Jupyter takes formulas out before it reads the marks of a quote: each on one line.
        body = re.sub(r"\$\$.+?\$\$", lambda match: " ".join(match[0].split()), body, flags=re.S)
        return "\n".join(f"> {line}".rstrip() for line in f"**{title}**\n\n{body}".split("\n"))

    def _inline(self, text):
        return INLINE.sub(self._replacement, text)

    def _replacement(self, match):
        if match["math"]:
            return " ".join(match["math"].split("\n"))
        if match["role"]:
            text, address = self.resolved(match["role"], match["text"])
            return f"[{text}]({address})" if address else text
        if match["target"]:
            title, address = self.follow(match["target"])
            label = self._inline(match["label"]) or title
            return f"[{label}]({address})" if address else label
        return match[0]

    def resolved(self, role, text):
        """What the page shows for a role, and its address or None."""
        if role not in ROLES:
            raise PlainError(f"the role {{{role}}} has no plain form")
        found = self.resolve(role, " ".join(text.split()))
        if found is None:
            raise PlainError(f"nothing has the name {text} of {{{role}}}")
        return found

    def _check(self, tokens):
        for token in tokens:
            kind = re.sub(r"_(?:open|close)$", "", token.type)
            plain = kind in PLAIN or (kind == "html_block" and OURS.fullmatch(token.content))
            if not plain or token.info.startswith("{") or "class" in token.attrs:
                raise PlainError(f"MyST is left ({kind}): {token.content or token.attrs}")
            self._check(token.children or [])


def nested(block, first):
    """The lines of `block` behind the marks that stand before it in its `first` line."""
    marks = re.match(r"(?:[\s>]|[-*+]\s|\d+[.)]\s)*", first)[0]
    later = re.sub(r"[^>\s]", " ", marks)  # a list has its mark once, a quote on every line
    start, *rest = block.split("\n")
    return "\n".join([marks + start, *((later + line).rstrip() for line in rest)])


# --- a notebook ---------------------------------------------------------------------------------

INSTALL = """\
This is a chapter of {book}. The next cell installs `attnlib`, the library of the course, and what \
this chapter needs besides. Run it first."""
BESIDE = """

It reads the file `{wheel}`, which came with this notebook: keep the two in one folder (in Colab, \
put it among the files of the session)."""
TORCH = """

This chapter uses PyTorch, a large package; where it is installed already, it is left as it is. On \
Linux the usual build holds gigabytes for graphics cards. Without such a card, install the CPU \
build first, as pytorch.org explains under "Start Locally"."""


def plain_notebook(notebook, plain, title, address, wheel):
    """The download made of a chapter.

    Parameters
    ----------
    notebook : NotebookNode
        The chapter; it is not changed.
    plain : Plain
    title : str
        The book's.
    address : str
        The book's, with a slash at its end; empty if it has none.
    wheel : str
        The name of the file that holds `attnlib`.

    Raises
    ------
    PlainError
        Naming the cell that has no plain form.
    """
    cells = []
    for cell in notebook.cells:
        try:
            cells += plain_cells(cell, plain)
        except PlainError as error:
            raise PlainError(f"cell {cell.id}: {error}") from None
    code = "\n".join(cell.source for cell in cells if cell.cell_type == "code")
    torch = re.search(r"^\s*(?:import|from) torch\b", code, re.MULTILINE)
    words = INSTALL.format(book=f"[{title}]({address})" if address else f"*{title}*")
    needed = f"attention-by-hand[notebooks] @ {address}{FOLDER}/{wheel}"
    if not address:
        words += BESIDE.format(wheel=wheel)
        needed = f"./{wheel}[notebooks]"
    install = f'%pip install -q "{needed}"'
    if torch:
        words += TORCH
        install += " torch"
    cells[:0] = [
        nbformat.v4.new_markdown_cell(words, id="install-note"),
        nbformat.v4.new_code_cell(install, id="install"),
    ]
    result = nbformat.v4.new_notebook(cells=cells, metadata=notebook.metadata)
    nbformat.validate(result)
    return result


def plain_cells(cell, plain):
    """The cells that stand for one: itself, and the caption if it ends in a figure."""
    if cell.cell_type == "markdown":
        return [nbformat.v4.new_markdown_cell(plain.cell(cell.source), id=cell.id)]
    myst = cell.metadata.get("mystnb", {})
    source, metadata = cell.source, {k: v for k, v in cell.metadata.items() if k != "mystnb"}
    if metadata.get("jupyter", {}).get("source_hidden"):
        # The one line that Jupyter and Colab show of a folded cell, each in its own way.
        source = f"# @title {myst.get('code_prompt_show', ANSWER)}\n{source}"
        metadata["cellView"] = "form"
    cells = [nbformat.v4.new_code_cell(source, id=cell.id, metadata=metadata)]
    if figure := myst.get("figure"):
        name, _ = plain.resolved("numref", figure["name"])
        caption = plain.cell(f"**{name}.** {figure['caption']}")
        cells.append(nbformat.v4.new_markdown_cell(caption, id=f"{cell.id}-caption"))
    return cells


# --- the wheel ----------------------------------------------------------------------------------


def build_wheel(root, folder):
    """Make the wheel of `attnlib` from the checkout at `root`, the same bytes each time.

    Setuptools works on a copy: it leaves its own folders beside what it reads.

    Returns
    -------
    Path
        The wheel, in `folder`.
    """

    def copy(source, target):
        shutil.copyfile(source, target)
        os.chmod(target, 0o644)  # a wheel holds the permissions too

    with TemporaryDirectory() as place:
        for name in ("pyproject.toml", "README.md", "LICENSE"):
            copy(root / name, Path(place, name))
        ignored = shutil.ignore_patterns("__pycache__")
        shutil.copytree(root / "attnlib", Path(place, "attnlib"), ignored, copy_function=copy)
        code = "from setuptools import build_meta; print(build_meta.build_wheel('.'))"
        done = subprocess.run(
            [sys.executable, "-c", code],
            cwd=place,
            env=os.environ | {"SOURCE_DATE_EPOCH": "315532800"},  # 1980, the first that zip knows
            capture_output=True,
            text=True,
        )
        if done.returncode:
            raise SphinxError(f"setuptools made no wheel: {done.stderr.strip().splitlines()[-1]}")
        name = done.stdout.split()[-1]
        folder.mkdir(parents=True, exist_ok=True)
        return shutil.copyfile(Path(place, name), folder / name)


def write_zip(path, *files):
    """Put `files` into one at `path`, the same bytes each time."""
    with ZipFile(path, "w", ZIP_DEFLATED) as archive:
        for file in files:
            archive.writestr(ZipInfo(file.name), file.read_bytes(), ZIP_DEFLATED)


# --- links --------------------------------------------------------------------------------------


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


# --- Sphinx -------------------------------------------------------------------------------------


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
    if app.builder.format == "html":
        made = [*Path(app.outdir, FOLDER).glob("*.whl")] if app.env.all_docs else []
        made = made or [build_wheel(Path(app.srcdir), Path(app.outdir, FOLDER))]
        of_build(app).wheel = made[0].name


def write_notebooks(app, exception):
    """After a build, when all numbers are known: the notebook of each chapter that was written."""
    if exception or app.builder.format != "html":
        return
    folder, address = Path(app.outdir, FOLDER), address_of(app.config)
    wheel = folder / of_build(app).wheel
    wanted = {wheel}
    for chapter in chapters_of(app):
        target, archive = (
            folder / f"{Path(chapter.page).name}.{kind}" for kind in ("ipynb", "zip")
        )
        wanted |= {target} if address else {target, archive}
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
    for old in set(folder.glob("*.*")) - wanted:
        old.unlink()


def add_links(app, pagename, templatename, context, doctree):
    """Give a chapter's page its links; `components/view-this-page.html` draws them."""
    if pagename not in {chapter.page for chapter in chapters_of(app)}:
        return
    of_build(app).written.add(pagename)
    suffix = "ipynb" if address_of(app.config) else "zip"
    context["download"] = context["pathto"](f"{FOLDER}/{Path(pagename).name}.{suffix}", 1)
    context["launches"] = launch_links(app.config.repository_url, pagename)


def setup(app):
    """Register with Sphinx."""
    app.add_config_value("repository_url", "", "html")
    app.connect("builder-inited", write_wheel)
    app.connect("build-finished", write_notebooks)
    app.connect("html-page-context", add_links)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
