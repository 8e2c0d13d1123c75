"""What the mathematics refuses, and in which words.

`refusals.txt` holds a call and what it raises on each line. The calls of a section `== test_masks`
use the names of that file, and those of attnlib; `<a | b>` in a call stands for each of the two.
"""

import functools
import importlib
import itertools
import re
from pathlib import Path

import numpy as np
import pytest

import attnlib
from tests.helpers import raises

pytestmark = pytest.mark.filterwarnings("error")

COMMON = vars(attnlib) | {"np": np, "partial": functools.partial}
ERRORS = {"TypeError": TypeError, "ValueError": ValueError}


def ways(call):
    """Return the calls that a line stands for."""
    pieces = re.split(r"<([^<>]* \| [^<>]*)>", call)
    choices = [each.split(" | ") if i % 2 else [each] for i, each in enumerate(pieces)]
    return ["".join(way) for way in itertools.product(*choices)]


def refusals():
    """Return (module, calls, error, message) of each line of the file."""
    found = []
    text = Path(__file__).with_name("refusals.txt").read_text(encoding="utf-8")
    for section in re.split(r"^== ", text, flags=re.MULTILINE)[1:]:
        module, *lines = section.rstrip("\n").split("\n")
        for line in lines:
            call, error, message = re.fullmatch(r"(.*) -> (\w+): (.*)", line).groups()
            found.append((module, ways(call), error, message))
    return found


@pytest.mark.parametrize(("module", "calls", "error", "message"), refusals())
def test_refused_with_these_words(module, calls, error, message):
    names = COMMON | vars(importlib.import_module(f"tests.{module}"))
    for call in calls:
        with raises(ERRORS[error], message):
            eval(call, names)
