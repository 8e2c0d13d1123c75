"""The notebook that a chapter offers: plain Markdown, and a first cell that installs `attnlib`.

Outputs are left out. Jupyter shows no SVG and no widget of a notebook that it has not run itself,
so they would be messages about trust in place of pictures; the page has them all.
"""

import re

import nbformat

from _ext.content.folding import ANSWER
from _ext.downloads.markdown import PlainError

FOLDER = "_downloads"

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
    """The download made of a chapter, which is not changed.

    The book has the `title` and the `address`, which ends in a slash or is empty; `wheel` is the
    name of the file that holds `attnlib`. A PlainError names the cell that has no plain form.
    """
    cells = []
    for cell in notebook.cells:
        try:
            cells += plain_cells(cell, plain)
        except PlainError as error:
            first_line = cell.source.partition("\n")[0]
            raise PlainError(f"cell {cell.id} (`{first_line}`): {error}") from None
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
