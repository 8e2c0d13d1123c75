"""A notebook as the book reads it: once, for the build, the course, the exercises and the pages.

Tools that write notebooks, such as `tools/refresh.py`, use nbformat; here nothing is changed, and
to load nbformat would take longer than to read all chapters.
"""

import functools
import hashlib
import json
import re
from dataclasses import dataclass
from html import unescape
from pathlib import Path

STORED = re.compile(r'<p data-widget="(\w+)" data-state="([^"]*)">')


@dataclass(frozen=True)
class Cell:
    """A cell, with its source as one text."""

    cell_type: str
    source: str
    metadata: dict
    outputs: list
    id: str

    @property
    def tags(self):
        return self.metadata.get("tags", [])

    @functools.cached_property
    def widgets(self):
        """The widgets that it shows, as (name, state)."""
        shown = ("".join(each.get("data", {}).get("text/html", "")) for each in self.outputs)
        return [*filter(None, map(stored_widget, shown))]


@dataclass(frozen=True)
class Notebook:
    """The cells and the metadata of a notebook."""

    cells: list
    metadata: dict

    @property
    def code(self):
        """The source of each cell of code."""
        return [cell.source for cell in self.cells if cell.cell_type == "code"]

    @property
    def is_stale(self):
        """Whether its code is newer than its outputs, or has none."""
        shown = any(cell.outputs for cell in self.cells)
        return not shown or self.metadata.get("code_digest") != code_digest(self.code)


def stored_widget(html):
    """The (name, state) of the widget whose fallback is this HTML; None if it is no widget's."""
    found = STORED.match(html)
    return (found[1], json.loads(unescape(found[2]))) if found else None


def code_digest(sources):
    """A digest of a notebook's code, which `make refresh` stores beside the outputs."""
    return hashlib.sha256(json.dumps(sources).encode()).hexdigest()[:16]


def parse(text):
    """The notebook whose file holds this text."""
    data = json.loads(text)
    cells = [
        Cell(
            cell["cell_type"],
            "".join(cell["source"]),
            cell["metadata"],
            cell.get("outputs", []),
            cell.get("id", ""),
        )
        for cell in data["cells"]
    ]
    return Notebook(cells, data["metadata"])


def read(path):
    """The notebook at `path`, parsed again only when the file has changed."""
    path = Path(path)
    return _read(path, path.stat().st_mtime_ns)


@functools.cache
def _read(path, changed):
    return parse(path.read_text(encoding="utf-8"))
