"""What the mathematics refuses, and in which words.

`refusals.txt` holds a call and what it raises on each line. The calls of a section `== test_masks`
use the names of that file; `<a | b>` in a call stands for each of the two.
"""

import importlib
import itertools
import re
from pathlib import Path

import pytest

from tests.helpers import raises

pytestmark = pytest.mark.filterwarnings("error")

ERRORS = {"TypeError": TypeError, "ValueError": ValueError}


def refusals():
    """Return (module, call, error, message) of each call of the file."""
    found = []
    text = Path(__file__).with_name("refusals.txt").read_text(encoding="utf-8")
    for section in re.split(r"^== ", text, flags=re.MULTILINE)[1:]:
        module, *lines = section.rstrip("\n").split("\n")
        for line in lines:
            call, error, message = re.fullmatch(r"(.*) -> (\w+): (.*)", line).groups()
            pieces = re.split(r"<([^<>]* \| [^<>]*)>", call)
            ways = itertools.product(*(piece.split(" | ") for piece in pieces))
            found += [(module, "".join(way), error, message) for way in ways]
    return found


def test_the_file_has_many_refusals():
    assert len(refusals()) > 250


@pytest.mark.parametrize(("module", "call", "error", "message"), refusals())
def test_refused_with_these_words(module, call, error, message):
    names = vars(importlib.import_module(f"tests.{module}"))
    with raises(ERRORS[error], message):
        eval(call, names)
