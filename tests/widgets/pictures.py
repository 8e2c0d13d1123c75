"""A widget's module in the engine that draws the book's pictures, held against the Python class."""

import functools
import re

import numpy as np
import pytest
from bs4 import BeautifulSoup

from _ext.widgets.page import engine
from attnlib import models
from attnlib.widgets.kit.base import bounds
from attnlib.widgets.writer import model_file


def js(widget, call, **changes):
    """The value of a call of what the widget's module exports: `js(w, "compute(state)")`."""
    name = type(widget).__name__
    return engine(name)(
        f"(({{state}}) => widget.{call})(dukpy)",
        state=widget.state | {"bounds": bounds(type(widget))} | changes,
    )


def drawn(widget, **changes):
    """The widget's picture as the book has it, as text; in its own state but for `changes`."""
    return js(widget, "still(state)", **changes)


def picture(widget, **changes):
    """The same, to look parts up in."""
    return parsed(drawn(widget, **changes))


def parsed(markup):
    """Markup to look parts up in; as in a browser, a line break in a text is a space."""
    soup = BeautifulSoup(markup, "html.parser")
    for text in soup.find_all(string=re.compile("\n")):
        if not text.find_parent(["pre", "textarea"]):
            text.replace_with(re.sub(r"\s+", " ", text))
    return soup


@functools.cache
def opened(name):
    """A widget's engine in which the trained writer is open, as `known`; it takes a while."""
    engine(name)("globalThis.known = writer_story.openFile(dukpy.file), 0", file=model_file())
    return engine(name)


@functools.cache
def minilm():
    """The published encoder; a test that needs it is skipped where it is not."""
    try:
        return models.load_minilm()
    except models.MissingModelError as missing:
        pytest.skip(str(missing))


def texts(soup, selector):
    """The texts of all parts that are found."""
    return [found.get_text() for found in soup.select(selector)]


def part(soup, name):
    """The text of a part that has a name."""
    return soup.select_one(f"[data-part={name}]").get_text()


def close(found, expected, atol=1e-9):
    """Assert that two arrays differ nowhere by more than this, however large they are."""
    np.testing.assert_allclose(found, expected, rtol=0, atol=atol)


def numbers(text):
    """The numbers that a text says, with a true minus."""
    return [float(x.replace("−", "-")) for x in re.findall(r"−?\d+(?:\.\d+)?", text)]


def shades(svg, shape):
    """What a small heatmap shows, and which of its cells are blocked.

    Its paths have runs of one shade: a column, the first row, and how many.
    """
    shown, blocked = np.zeros(shape), np.zeros(shape, bool)
    for path in svg.select("path"):
        for run_ in path["d"][1:].split("M"):
            j, i, n = map(int, run_.replace("v", " ").split())
            if "opacity" in path.attrs:
                shown[i : i + n, j] = path["opacity"]
            else:
                blocked[i : i + n, j] = True
    return shown, blocked


def run(lines):
    """Run copied lines of NumPy; return their names, with all they print as the list `printed`."""
    printed = []
    names = {"print": lambda *words: printed.append(" ".join(map(str, words)))}
    with np.errstate(all="raise", under="ignore"):
        exec("\n".join(lines), names)
    return names | {"printed": printed}
