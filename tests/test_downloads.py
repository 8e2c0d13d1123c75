"""_ext/downloads: plain Markdown from MyST, the wheel, the links; downloads run."""

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from zipfile import ZipFile

import nbformat
import pytest
import yaml
from myst_parser.config.main import MdParserConfig
from myst_parser.mdit_to_docutils.sphinx_ import SphinxRenderer
from myst_parser.parsers.mdit import create_md_parser
from sphinx.errors import ConfigError

from _ext.downloads.markdown import Plain, PlainError
from _ext.downloads.notebook import plain_notebook
from _ext.downloads.page import address_of, launch_links
from _ext.downloads.wheel import build_wheel
from tests.conftest import ROOT, SITE
from tests.helpers import raises

CHAPTERS = sorted((ROOT / "chapters").glob("*.ipynb"))
EXTENSIONS = {"amsmath", "attrs_inline", "colon_fence", "deflist", "dollarmath"}
ADDRESS = "https://example.org/book/"
CONFIG = yaml.safe_load((ROOT / "_config.yml").read_text(encoding="utf-8"))["sphinx"]["config"]
PUBLIC = CONFIG["html_baseurl"] or CONFIG["repository_url"]
every_chapter = pytest.mark.parametrize("path", CHAPTERS, ids=lambda path: path.stem)


KNOWN = {
    ("eq", "eq-one"): ("(7)", None),
    ("eq", "eq-far"): ("(2)", f"{ADDRESS}far.html#eq-far"),
    ("numref", "fig-one"): ("Figure 3", None),
    ("term", "Keys <key>"): ("Keys", f"{ADDRESS}glossary.html#key"),
    ("cite:p", "a2017,b2018"): ("[A, 2017, B, 2018]", None),
}


@pytest.fixture(scope="module")
def plain():
    """Return what turns cells into plain Markdown in a book that knows a few names."""
    parser = create_md_parser(MdParserConfig(enable_extensions=EXTENSIONS), SphinxRenderer)
    pages = {"far.md": ("Far away", f"{ADDRESS}far.html"), "near.md": ("Near by", "")}
    return Plain(parser, lambda *name: KNOWN.get(name), pages.__getitem__)


@pytest.mark.parametrize(
    ("myst", "markdown"),
    [
        # Running text
        ("Eq. {eq}`eq-one`, {numref}`fig-one`.", "Eq. (7), Figure 3."),
        ("see {eq}`eq-far`", f"see [(2)]({ADDRESS}far.html#eq-far)"),
        ("**{term}`Keys\n<key>`** ask", f"**[Keys]({ADDRESS}glossary.html#key)** ask"),
        ("it is so {cite:p}`a2017,b2018`", "it is so [A, 2017, B, 2018]"),
        ("[the `x` of](far.md), [](far.md)", "[the `x` of]({0}), [Far away]({0})"),
        ("[there](near.md) and [](near.md)", "there and Near by"),
        ("[web](https://example.org/a.b)", "[web](https://example.org/a.b)"),
        ("so $a\nb$ is", "so $a b$ is"),
        ("| a |\n|---|\n| {eq}`eq-one` |", "| a |\n|---|\n| (7) |"),
        # What stays as it is
        ("code ``{eq}`eq-one` `` stays", "code ``{eq}`eq-one` `` stays"),
        ("```\n{eq}`eq-one`\n:::{note}\n```", "```\n{eq}`eq-one`\n:::{note}\n```"),
        ("$$\nx\n$$\n\n> quote\n\n1. one", "$$\nx\n$$\n\n> quote\n\n1. one"),
        ("", ""),
        # Equations
        ("so\n\n$$\nx\n$$ (eq-one)\n\nthen", "so\n\n$$\nx\n\\tag{7}\n$$\n\nthen"),
        ("- so\n\n  $$\n  x\n  $$ (eq-one)", "- so\n\n  $$\n  x\n  \\tag{7}\n  $$"),
        # Boxes
        (":::{admonition} So\n:class: takeaway\n\nab\n\ncd\n:::", "> **So**\n>\n> ab\n>\n> cd"),
        (":::{note}\n{eq}`eq-one`\n:::\nthen", "> **Note**\n>\n> (7)\nthen"),
        ("```{tip}\nab\n```", "> **Tip**\n>\n> ab"),
        (":::{div}\n:class: goals\n\n- ab\n- cd\n:::", "- ab\n- cd"),
        (":::{note}\n$$\nx\ny\n$$ (eq-one)\n:::", "> **Note**\n>\n> $$ x y \\tag{7} $$"),
        (
            ":::{admonition} `Q` & {eq}`eq-one`\n:class: dropdown\n\nab\n:::",
            "<details>\n<summary><code>Q</code> &amp; (7)</summary>\n\nab\n\n</details>",
        ),
        (
            ":::{dropdown} So\nab\n:::",
            "<details>\n<summary>So</summary>\n\nab\n\n</details>",
        ),
        (
            "::::{note}\nab\n\n:::{dropdown} So\n{eq}`eq-one`\n:::\n::::",
            "> **Note**\n>\n> ab\n>\n> <details>\n> <summary>So</summary>\n>\n> (7)\n"
            ">\n> </details>",
        ),
        ("1. ab\n\n   :::{note}\n   cd\n   :::", "1. ab\n\n   > **Note**\n   >\n   > cd"),
        ("> :::{note}\n> cd\n> :::", "> > **Note**\n> >\n> > cd"),
    ],
)
def test_each_construct_becomes_plain(plain, myst, markdown):
    assert plain.cell(myst) == markdown.replace("{0}", f"{ADDRESS}far.html")


@pytest.mark.parametrize(
    ("myst", "said"),
    [
        # What is unknown
        (":::{figure} a.png\n:::", "the directive {figure} has no plain form"),
        ("```{math}\nx\n```", "the directive {math} has no plain form"),
        ("> :::{note}\n> ```{glue} x\n> ```\n> :::", "the directive {glue} has no plain form"),
        ("{kbd}`x`", "the role {kbd} has no plain form"),
        ("{eq}`eq-none`", "nothing has the name eq-none of {eq}"),
        ("$$\nx\n$$ (eq-none)", "nothing has the name eq-none of {eq}"),
        # What is left
        ("(target)=\n# Title", "myst_target"),
        ("% a comment", "myst_line_comment"),
        ("[a]{.mark}", "span"),
        ("term\n: what it is", "dl"),
        ("+++\nab", "myst_block_break"),
        ("ab[^1]\n\n[^1]: cd", "footnote_ref"),
        ("\\begin{align}x\\end{align}", "amsmath"),
        ("![a](picture.png)", "image"),
        ("<div>ab</div>", "html_block"),
        (":::{note\nab\n:::", "colon_fence"),
        (":::{admonition}\n:class: x\nab\n:::", "directive"),
    ],
)
def test_what_has_no_plain_form_is_an_error_that_names_the_cell(plain, myst, said):
    cell = nbformat.v4.new_markdown_cell(myst, id="cell-7")
    with pytest.raises(PlainError, match=rf"^cell cell-7 \(`.*{re.escape(said)}"):
        plain_notebook(nbformat.v4.new_notebook(cells=[cell]), plain, "A Book", "", "a.whl")


def notebook(*sources):
    """Return a notebook of code cells."""
    return nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(text) for text in sources])


@pytest.mark.parametrize("address", ["", ADDRESS])
@pytest.mark.parametrize("code", ["import numpy", "import torchvision_of_mine", "import torch"])
def test_the_first_cells_install_what_is_needed(plain, address, code):
    made = plain_notebook(notebook(code), plain, "A Book", address, "a-1-any.whl")
    note, install = made.cells[:2]
    needed = f"attention-by-hand[notebooks] @ {ADDRESS}_downloads/a-1-any.whl"
    needed = needed if address else "./a-1-any.whl[notebooks]"
    assert shlex.split(install.source) == ["%pip", "install", "-q", needed] + ["torch"] * (
        code == "import torch"
    )
    assert ("a-1-any.whl" in note.source) == (not address)
    assert (f"[A Book]({ADDRESS})" in note.source) == bool(address)
    assert ("PyTorch" in note.source) == (code == "import torch")


def test_a_figure_gets_its_caption_and_a_folded_cell_its_name(plain):
    chapter = notebook("draw()", "solve()")
    chapter.cells[0].metadata.mystnb = {"figure": {"name": "fig-one", "caption": "So {eq}`eq-one`"}}
    chapter.cells[1].metadata |= {
        "jupyter": {"source_hidden": True},
        "mystnb": {"code_prompt_show": "Show a solution"},
    }
    made = plain_notebook(chapter, plain, "A Book", "", "a.whl").cells[2:]
    assert [cell.source for cell in made] == [
        "draw()",
        "**Figure 3.** So (7)",
        "# @title Show a solution\nsolve()",
    ]
    assert [cell.metadata for cell in made] == [
        {},
        {},
        {"jupyter": {"source_hidden": True}, "cellView": "form"},
    ]


def test_a_repository_switches_the_links_on():
    links = launch_links("https://github.com/someone/a-book", "chapters/04-scaling")
    assert [address for _, _, address in links] == [
        "https://mybinder.org/v2/gh/someone/a-book/HEAD?urlpath=lab/tree/chapters/04-scaling.ipynb",
        "https://colab.research.google.com/github/someone/a-book/blob/gh-pages/_downloads/"
        "04-scaling.ipynb",
        "https://github.com/someone/a-book/blob/HEAD/chapters/04-scaling.ipynb",
    ]
    assert (ROOT / "chapters/04-scaling.ipynb").is_file()
    assert launch_links("", "chapters/04-scaling") == []
    message = "repository_url must be like https://github.com/owner/name; got github.com/a/b"
    with raises(ConfigError, message):
        launch_links("github.com/a/b", "chapters/04-scaling")
    for baseurl, repository, address in (
        ("", "", ""),
        ("https://example.org/book", "", ADDRESS),
        (ADDRESS, "https://github.com/a/b", ADDRESS),
        ("", "https://github.com/a/b", "https://github.com/a/b/raw/gh-pages/"),
    ):
        config = SimpleNamespace(html_baseurl=baseurl, repository_url=repository)
        assert address_of(config) == address


def download(path):
    """Return the download of a chapter."""
    return nbformat.read(SITE / "_downloads" / path.name, as_version=4)


def wheel():
    """Return the one wheel of the site."""
    (found,) = (SITE / "_downloads").glob("*.whl")
    return found


RAW = re.compile(
    r"\{[\w:+-]+\}`|:::|```\{|^\$\$ ?\(|\(eq-|^\([\w-]+\)=|`fig-|\.ipynb\)|\.md\)", re.M
)


@every_chapter
def test_a_download_is_its_chapter_without_anything_raw(path):
    made, chapter = download(path), nbformat.read(path, as_version=4)
    nbformat.validate(made)
    texts = [cell.source for cell in made.cells if cell.cell_type == "markdown"]
    assert [found for text in texts for found in RAW.findall(text)] == []
    assert "mystnb" not in str([cell.metadata for cell in made.cells])
    codes = [
        [cell.source for cell in cells if cell.cell_type == "code"]
        for cells in (chapter.cells, made.cells[2:])
    ]
    assert [re.sub(r"^# @title .*\n", "", code) for code in codes[1]] == codes[0]
    # Numbers are those of the page.
    page = (SITE / "chapters" / f"{path.stem}.html").read_text(encoding="utf-8")
    text = "\n".join(cell.source for cell in made.cells)
    shown = re.findall(r'class="eqno">\((\d+)\)', page)
    assert re.findall(r"\\tag\{(\d+)\}", text) == shown
    captions = re.findall(r'class="caption-number">(Figure \d+)', page)
    assert re.findall(r"^\*\*(Figure \d+)\.\*\*", text, re.M) == captions
    assert shown or captions, "none of its equations and figures has a number"
    if not PUBLIC:  # a book with an address offers the notebook by itself
        with ZipFile(SITE / "_downloads" / f"{path.stem}.zip") as archive:
            contents = {name: archive.read(name) for name in archive.namelist()}
        files = [SITE / "_downloads" / path.name, wheel()]
        assert contents == {file.name: file.read_bytes() for file in files}


def test_the_wheel_holds_the_whole_library(tmp_path):
    with ZipFile(wheel()) as archive:
        packed = {name for name in archive.namelist() if name.startswith("attnlib/")}
        files = [path for path in (ROOT / "attnlib").rglob("*") if path.is_file()]
        files = [path for path in files if "__pycache__" not in path.parts]
        assert packed == {path.relative_to(ROOT).as_posix() for path in files}
        for path in files:
            assert archive.read(path.relative_to(ROOT).as_posix()) == path.read_bytes()
    again = build_wheel(ROOT, tmp_path)
    assert again.name == wheel().name and again.read_bytes() == wheel().read_bytes()


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    """Return a folder where the cell of a download has put attnlib, and nothing else."""
    target = tmp_path_factory.mktemp("installed")
    line = download(ROOT / "chapters" / "04-scaling.ipynb").cells[1].source
    line = re.sub(r"attention-by-hand(\[\w+\]) @ .*/(.*\.whl)", r"./\2\1", line)  # no network
    only_here = {"PIP_TARGET": str(target), "PIP_NO_DEPS": "1", "PIP_NO_INDEX": "1"}
    command = [sys.executable, "-m", *shlex.split(line.removeprefix("%"))]
    subprocess.run(command, cwd=SITE / "_downloads", env=os.environ | only_here, check=True)
    return target


# In one process, since what a kernel does with these cells nbval has seen.
RUN = """
import sys
from IPython.core.interactiveshell import InteractiveShell
sys.modules["torch"] = None
for path in sys.argv[1:]:
    InteractiveShell.instance().reset()
    InteractiveShell.instance().safe_execfile_ipy(path, raise_exceptions=True)
print(sys.modules["attnlib"].__file__)
"""


def test_what_installs_no_torch_runs_without_it_and_without_a_checkout(installed, tmp_path):
    """Run what every third imports and its quiz, which is data of the wheel; one runs whole."""
    paths = []
    for made in map(download, CHAPTERS[::3]):
        install, *cells = (cell for cell in made.cells if cell.cell_type == "code")
        if install.source.endswith(" torch"):
            continue
        quiz = [cell for cell in cells[1:] if "Quiz.for_chapter" in cell.source]
        made.cells = [cells[0], *quiz] if paths else cells
        paths.append(tmp_path / f"{len(paths)}.ipynb")
        nbformat.write(made, paths[-1])
    assert len(paths) > 1
    done = subprocess.run(
        [sys.executable, "-c", RUN, *paths],
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": str(installed)},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    assert Path(done.stdout.split()[-1]).is_relative_to(installed)
