"""What each widget refuses, in which words, and that its state stays as it was."""

import math
import re

import numpy as np
import pytest
import traitlets

from attnlib import widgets
from attnlib.widgets import DotProduct, Encoder, Flow, Letters, MaskPainter, Plane
from attnlib.widgets.kit.base import bounds
from tests.widgets.samples import SAMPLES, simplest

# What MaskPainter shows of two models.
RUN = {"guesses": "ab", "weights": [[1, 0], [0, 1]], "learns": 100, "writes": 10}
TRIAL = {"letters": "abc", "off": RUN, "on": RUN}

# The least and the most of every number that has both.
NUMBERS = {
    "Backwards.row": (0, 1), "Backwards.column": (0, 1), "Backwards.nudge": (-1, 1),
    "ChainRule.price": (5, 19), "ChainRule.parameter": (-3, 3), "ChainRule.back": (0, 4),
    "ConfigReader.tokens": (1, 2**20), "CostCalculator.n": (1, 2**20),
    "CostCalculator.d_model": (1, 2**16), "CostCalculator.n_heads": (1, 1024),
    "CostCalculator.n_layers": (1, 1024), "CostCalculator.width": (0, 2**20),
    "CostCalculator.group": (1, 1024), "Encoder.after": (0, 6), "Encoder.only": (0, 6),
    "Encoder.layer": (0, 5), "Encoder.head": (0, 11), "Encoder.row": (0, 63), "Flow.heads": (1, 4),
    "Flow.head": (0, 3), "LayerExplorer.depth": (1, 24), "LayerExplorer.seed": (0, 999),
    "Letters.place": (0, 23), "MaskPainter.traced": (-1, 7), "LossCurve.probability": (0.01, 1),
    "Plane.asks": (0, 7), "Plane.sharpness": (0, 4), "Plane.turn": (-180, 180),
    "Plane.stretch": (0, 3), "Plane.start": (0, 999), "Plane.step": (0, 100),
    "Plane.rate": (0.01, 30), "PositionsExplorer.position": (0, 63),
    "PositionsExplorer.d_model": (2, 128), "PositionsExplorer.base": (2, 1000000),
    "PositionsExplorer.head": (0, 7), "PositionsExplorer.distance": (0, 16),
    "RecallExplorer.pairs": (1, 32), "RecallExplorer.d_k": (2, 16), "Server.users": (1, 256),
    "Server.rate": (1, 100), "Server.prompt": (10, 2000), "Server.output": (10, 500),
    "Server.shared": (0, 2000), "Server.requests": (1, 200), "Server.seed": (0, 99),
    "Server.at": (0, 1000), "Trainer.seed": (0, 999), "Trainer.rate": (0.0001, 1),
    "Trainer.steps": (20, 2000), "ScalingExplorer.d_k": (1, 256), "ScalingExplorer.toss": (1, 12),
    "ScalingExplorer.coins": (0, 255), "ScalingExplorer.gap": (-10, 10),
    "Inspector.away": (0, 4095), "Inspector.head": (0, 12), "Inspector.layer": (1, 3),
    "Writer.at": (0, 240), "Writer.temperature": (0, 2), "Writer.top_k": (0, 100),
    "Writer.top_p": (0.05, 1), "Writer.seed": (0, 9999), "Writer.head": (0, 12),
}  # fmt: skip
# What else does not fit: the trait, its value and the message; some only fit with other traits.
MATRIX = np.ones((1, 4))
REFUSED = [
    ("Backwards", "cell", "Q.2.0", r"cell needs an entry such as 'Q.0.1'; got 'Q.2.0'"),
    ("Backwards", "cell", "L", "cell needs an entry such as 'Q.0.1'; got 'L'"),
    ("Backwards", "x", [[1, 2]], r"x needs shape \(2, 4\); got \(1, 2\)"),
    ("Backwards", "w_q", [["a"]], r"w_q needs rows of numbers; got \[\['a'\]\]"),
    ("Backwards", "w_k", [[101, 0]] * 4, r"w_k needs entries from -100 to 100; got \[\[101"),
    ("ConfigReader", "config", "{", "config must be JSON; got Expecting property name"),
    ("ConfigReader", "config", "{}", "config must have the field model_type; got none"),
    ("CostCalculator", "n_heads", 7, "n_heads must divide d_model; got 7 and 512"),
    ("CostCalculator", "group", 3, "group must divide n_heads; got 3 and 8"),
    ("CostCalculator", "d_model", 100, "n_heads must divide d_model; got 8 and 100"),
    ("CostCalculator", "memory", 0.0, "memory must lie above 0 and up to 1e6; got 0"),
    ("CostCalculator", "memory", math.nan, "memory must lie above 0 and up to 1e6; got nan"),
    ("Flow", "x", [[1, math.nan, 0, 0], [0] * 4], "x needs entries from -100 to 100"),
    ("Flow", "x", np.ones((7, 4)).tolist(), r"at most 6 rows of 8 numbers; got shape \(7, 4\)"),
    ("Flow", "x", [], "x needs rows of numbers; got none"),
    ("Flow", "w_k", [[1, 2], [3]], "w_k needs rows of numbers"),
    ("Flow", "w_k", [[1, 2]], r"w_k needs shape \(4, 2\); got \(1, 2\)"),
    ("Flow", "w_v", [1, 2], r"w_v needs at most 8 rows of 8 numbers; got shape \(2,\)"),
    ("Flow", "heads", 3, "w_q needs columns for 3 heads; got 2"),
    ("Flow", "head", 1, "head needs a number from 0 to 0; got 1"),
    ("Flow", "stage", "heads", "stage needs one of rows, qkv, .*; got heads"),
    ("Flow", "layer", True, "layer needs w_o, w_1, b_1, w_2, b_2; there is no w_o"),
    ("Flow", "vocabulary", ["a", "b"], r"w_vocab needs shape \(2, 2\); got nothing"),
    *(("Letters", "text", text, "text needs 1 to 24 letters from a to p; got")
      for text in ("", "xyz", "ABC", "a b", "a" * 25, "<b>", "é")),
    ("Trainer", "text", "xyz", "text needs 1 to 24 letters from a to p; got"),
    *(("Letters", "off", off, "off needs some of")
      for off in ([[0, 2]], [[2, 0]], [[0, 0], [0, 0]], [[0]], [[-1, 0]])),
    ("MaskPainter", "tokens", ["a"], r"tokens needs a list of 2 to 8 names; got \['a'\]"),
    ("MaskPainter", "tokens", list("abcdefghi"), "tokens needs a list of 2 to 8 names; got"),
    ("MaskPainter", "tokens", "a b c", "tokens needs a list of 2 to 8 names; got 'a b c'"),
    ("MaskPainter", "tokens", ["a", " "], r"names that are not blank; got \['a', ' '\]"),
    ("MaskPainter", "mask", np.ones((5, 4), bool), r"mask needs shape \(5, 5\), queries by keys"),
    ("MaskPainter", "mask", np.ones((5, 5)), r"rows of True \(may attend\) and False; got"),
    ("MaskPainter", "mask", [[True], [True, False]], "mask needs rows of one length; got"),
    ("MaskPainter", "mask", "causal", r"rows of True \(may attend\) and False; got 'causal'"),
    ("MaskPainter", "length", 6, "length needs a whole number from 1 to 5; got 6"),
    *(("MaskPainter", name, 5, f"{name} needs a whole number from {least} to 4; got 5")
      for name, least in {"start": 1, "width": 0, "replaced": 0, "position": 0}.items()),
    ("MaskPainter", "start", 0, "start needs a whole number from 1 to 4; got 0"),
    ("MaskPainter", "replaced", -1, "replaced needs a whole number from 0 to 4; got -1"),
    ("MaskPainter", "trial", {"letters": "abc"}, 'trial needs "letters", "off" and "on"; got'),
    ("MaskPainter", "trial", TRIAL | {"letters": "ab"}, "trial needs 3 to 9 letters; got 2"),
    ("MaskPainter", "trial", TRIAL | {"on": {}}, 'a run of a trial needs "guesses"'),
    ("MaskPainter", "trial", TRIAL | {"on": RUN | {"weights": [[1]]}},
     r"weights of shape \(2, 2\); got \(1, 1\)"),
    ("MaskPainter", "trial", TRIAL | {"on": RUN | {"guesses": "abc"}}, "needs 2 guesses; got 3"),
    ("Plane", "words", {"boat": [4, 0]}, r"words needs a place for each of .*got \['boat'\]"),
    ("Plane", "words", Plane().words | {"bank": [1, math.nan]}, r"\['bank'\] needs two numbers"),
    ("Plane", "words", Plane().words | {"bank": [1, 5]}, r"from -0.8 to 4.7; got \[1, 5\]"),
    ("Plane", "words", Plane().words | {"bank": "near"}, "got 'near'"),
    ("Plane", "words", 7, "words needs a dict of names and places; got 7"),
    ("PositionsExplorer", "d_model", 7, "d_model needs an even number; got 7"),
    ("Encoder", "hidden", [64], "from 0 to 63; got 64"),
    ("Writer", "text", "a" * 601, "text needs at most 600 letters; got 601 of them"),
    ("Writer", "written", "a " * 241, "written needs at most 240 words and marks; got 241"),
    *(("Inspector", name, "a" * 401, f"{name} needs at most 400 letters; got 401 of them")
      for name in ("text", "other", "word", "against")),
]  # fmt: skip
# Whether a widget of this kind takes the wrong value at once is a matter of how it is made.
TOGETHER = [
    (Encoder, {"text": " "}, "text needs letters; got ' '"),
    (Encoder, {"text": "a" * 1001}, "text needs at most 1000 letters; got 1001"),
    (Encoder, {"text": 3}, "text"),
    (Encoder, {"sentences": ["a", ""]}, "sentences needs letters; got ''"),
    (Encoder, {"sentences": ["a"] * 25}, "sentences needs at most 24 of them; got 25"),
    (Encoder, {"readings": []}, "readings"),
    (Flow, {"tokens": ["one"]}, "tokens needs 2 words, one a row of x; got 1"),
    (Flow, {"memory": np.ones((3, 4))}, "memory_tokens needs 3 words, .* of memory; got 0"),
    (Flow, {"memory": np.ones((1, 3)), "memory_tokens": ["a"]}, r"shape \(1, 4\); got \(1, 3\)"),
    (Flow, {"memory": MATRIX, "memory_tokens": ["a"], "mask": "causal"}, "mask needs to be 'none'"),
    (Flow.gpt, {"tokens": ["tea", "very"]}, "a text needs 1 to 6 words out of"),
    (Flow.gpt, {"tokens": ["<end>"]}, "a text needs 1 to 6 words out of"),
    (Flow.gpt, {"known": ["tea"]}, "known needs 7 different words"),
    (Flow.gpt, {"mask": "causal"}, "no memory and no mask"),
    (Flow.gpt, {"columns": ["verdict"]}, "columns needs 5 names"),
    (MaskPainter, {"scene": "letters"}, '"letters" needs a trial; got None'),
    (Letters, {"text": 5}, "text"),
    (Letters, {"off": 3}, "off"),
    (Letters, {"models": {}}, "models"),
    (DotProduct, {"key": [1, 9]}, r"key needs two numbers from -1.3 to 3.0; got \[1, 9\]"),
    (DotProduct, {"query": "ab"}, "query needs two numbers from -1.3 to 3.0; got 'ab'"),
    (Plane, {"scene": "words", "words": {" ": [1, 1]}}, r"long or a number; got \[' '\]"),
    (Plane, {"scene": "words", "words": {}}, r"words needs 1 to 8 names, .*got \[\]"),
    (Plane, {"scene": "words", "words": {"12": [1, 1]}}, r"got \['12'\]"),
    (Plane, {"scene": "prices", "query": [1, 9]}, r"query needs two numbers from -2.2 to 3.2"),
]
ERRORS = (ValueError, TypeError, traitlets.TraitError)


def assert_refused(widget, trait, value, message):
    before = repr(widget)
    with pytest.raises(ERRORS, match=message):
        setattr(widget, trait, value)
    assert repr(widget) == before


def test_the_bounds_are_those_of_this_table():
    assert NUMBERS == {
        f"{kind.__name__}.{name}": (bound["least"], bound["most"])
        for kind in SAMPLES
        for name, bound in bounds(kind).items()
        if isinstance(bound, dict)
    }


@pytest.mark.parametrize("kind", SAMPLES, ids=lambda kind: kind.__name__)
def test_what_lies_beyond_the_bounds_or_is_of_another_kind_is_refused(kind):
    widget = simplest(kind)
    for name, bound in bounds(kind).items():
        if isinstance(bound, list):
            for value in ("rainbow", None):
                assert_refused(widget, name, value, name)
        elif isinstance(bound, dict):
            least, most, whole = (bound[part] for part in ("least", "most", "whole"))
            needed = f"^{name} needs a {'whole ' * whole}number from {least} to {most}; got"
            beyond = [least - 1, most + 1, True, 10**30] if whole else [most + 1.0, math.nan]
            for value in beyond:
                assert_refused(widget, name, value, f"{needed} {re.escape(repr(value))}$")
            for value in ["7", None, *([1.5, math.nan] if whole else [])]:
                assert_refused(widget, name, value, name)


@pytest.mark.parametrize(("kind", "trait", "value", "message"), REFUSED)
def test_what_does_not_fit_is_refused_once_made_and_as_it_is_made(kind, trait, value, message):
    make = getattr(widgets, kind)
    assert_refused(make(), trait, value, message)
    with pytest.raises(ERRORS, match=message):
        make(**{trait: value})


@pytest.mark.parametrize(("make", "traits", "message"), TOGETHER)
def test_what_does_not_fit_together_is_refused(make, traits, message):
    with pytest.raises(ERRORS, match=message):
        make(**traits)


def test_a_painter_keeps_the_number_of_its_names():
    assert_refused(MaskPainter(), "tokens", list("abc"), "tokens keeps its 5 names; got 3")
