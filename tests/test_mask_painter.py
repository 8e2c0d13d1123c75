"""MaskPainter on the Python side: its arrays, its verdicts, its picture, its errors."""

import json

import numpy as np
import pytest
from bs4 import BeautifulSoup
from hypothesis import given, settings
from hypothesis import strategies as st

import attnlib
from attnlib.widgets import MaskPainter
from attnlib.widgets.attention_explorer import word_vector

HOSTILE = '<img src=x onerror="document.title=1"> </script><!-- "&amp;\''
WORDS = ["The", "cat", "sat", "down", "on", "the", "mat"]


@st.composite
def painters(draw):
    n = draw(st.integers(2, 7))
    row = st.lists(st.booleans(), min_size=n, max_size=n)
    return MaskPainter(
        tokens=draw(st.permutations(WORDS))[:n],
        mask=draw(st.lists(row, min_size=n, max_size=n)),
        length=draw(st.integers(1, n)),
        nudge=draw(st.integers(0, n - 1)),
    )


def still(painter):
    data, _ = painter._repr_mimebundle_()
    return BeautifulSoup(data["text/html"], "html.parser")


def test_weights_and_output_are_those_of_the_library():
    mask = attnlib.causal_mask(5)
    painter = MaskPainter(tokens=WORDS[:5], mask=mask)
    Q, K, V = ([word_vector(t, r, 4) for t in WORDS[:5]] for r in ("query", "key", "value"))
    output, weights = attnlib.scaled_dot_product_attention(Q, K, V, mask)
    np.testing.assert_array_equal(painter.weights, weights)
    np.testing.assert_array_equal(painter.output, output)
    np.testing.assert_array_equal(painter.blocked, attnlib.blocked(mask))
    np.testing.assert_array_equal(painter.additive, attnlib.additive(mask))


@given(painters())
@settings(deadline=None)
def test_what_moves_is_what_may_look(painter):
    """The outputs are measured; the mask alone says the same, but for the nudged token's own."""
    mask, nudge = np.array(painter.mask), painter.nudge
    others = np.arange(len(mask)) != nudge
    np.testing.assert_array_equal(painter.moved[others], mask[others, nudge])
    # Its own output stays only if it has one key, not itself, or none: then no weight can change.
    own = mask[nudge, nudge] or mask[nudge].sum() > 1
    assert painter.moved[nudge] == own
    assert painter.leaks == bool(np.triu(mask, 1).any())
    assert painter.empty_rows == np.flatnonzero(~mask.any(1)).tolist()
    assert (painter.output[painter.empty_rows] == 0).all()
    said = painter.verdicts
    assert said[1].startswith("Leaks the future: " if painter.leaks else "Does not leak the future")
    assert said[2].startswith("No row is empty" if not painter.empty_rows else "Row")
    n_real = painter.length
    lead = "Lets padding in" if mask[:n_real, n_real:].any() else "Keeps padding out"
    assert said[3].startswith(lead if n_real < len(mask) else "There is no padding")


def test_verdicts_in_full():
    painter = MaskPainter()
    assert painter.verdicts == [
        "Nudging sat moves its own output, which is no leak: its query, key and value change. "
        "It also moves the outputs of The, cat, down and <pad>.",
        "Leaks the future: nudging sat moves the outputs of The and cat, which come before it. "
        "3 other tokens leak too.",
        "No row is empty: every token can attend to something.",
        "Lets padding in: the real tokens The, cat, sat and down attend to the filler <pad>.",
    ]
    painter.mask = attnlib.causal_mask(5)
    assert painter.verdicts[0].endswith("It also moves the outputs of down and <pad>.")
    assert painter.verdicts[1] == (
        "Does not leak the future: no token's nudge moves an output before it."
    )
    assert painter.verdicts[3] == ("Keeps padding out: no real token attends to the filler <pad>.")
    mask = attnlib.causal_mask(5)
    mask[1] = False
    mask[0, 4] = True
    painter.mask, painter.nudge = mask, 1
    assert painter.verdicts == [
        "Nudging cat leaves its own output at zeros: it can attend to nothing. "
        "It moves the outputs of sat, down and <pad>.",
        "Leaks the future: nudging <pad> moves the output of The, which comes before it.",
        "Row cat is empty: it can attend to nothing, so its output is zeros.",
        "Lets padding in: the real token The attends to the filler <pad>.",
    ]
    painter.mask, painter.length = np.eye(5, k=-1, dtype=bool), 5
    assert painter.verdicts[0] == (
        "Nudging cat leaves its own output as it was: its weights, all on other tokens, stay the "
        "same. It moves the output of sat."
    )
    assert painter.verdicts[3] == "There is no padding: all 5 tokens are real."
    painter.mask = np.zeros((5, 5), bool)
    assert painter.verdicts[2].startswith("Rows The, cat, sat, down and <pad> are empty: they")


def test_equal_tokens_are_numbered_and_long_ones_cut():
    painter = MaskPainter(tokens=["the", "cat", "the", "x" * 500], nudge=0)
    assert "the (3)" in painter.verdicts[0] and "xxxxxxxxxxx…" in painter.verdicts[0]
    assert "x" * 12 not in painter.verdicts[0]


@given(painters())
@settings(deadline=None, max_examples=30)
def test_room_is_kept_for_the_longest_verdict(painter):
    for line in still(painter).select(".verdicts li"):
        assert len(line.get_text()) <= len(line["data-room"])


@pytest.mark.parametrize(
    ("trait", "value", "message"),
    [
        ("tokens", ["a"], r"tokens needs a list of 2 to 8 names; got \['a'\]"),
        ("tokens", list("abcdefghi"), "tokens needs a list of 2 to 8 names; got"),
        ("tokens", "a b c", "tokens needs a list of 2 to 8 names; got 'a b c'"),
        ("tokens", ["a", " "], r"tokens needs names that are not blank; got \['a', ' '\]"),
        ("tokens", ["a", 3], r"tokens needs names that are not blank; got \['a', 3\]"),
        ("tokens", list("abc"), "tokens keeps its 5 names; got 3"),
        (
            "mask",
            np.ones((5, 4), bool),
            r"mask needs shape \(5, 5\), queries by keys; got \(5, 4\)",
        ),
        ("mask", np.ones((5, 5)), r"mask needs rows of True \(may attend\) and False; got"),
        ("mask", [[True], [True, False]], "mask needs rows of one length; got"),
        ("mask", "causal", r"mask needs rows of True \(may attend\) and False; got 'causal'"),
        ("length", 0, "length needs a whole number from 1 to 5; got 0"),
        ("length", 6, "length needs a whole number from 1 to 5; got 6"),
        ("nudge", -1, "nudge needs a whole number from 0 to 4; got -1"),
        ("nudge", 5, "nudge needs a whole number from 0 to 4; got 5"),
    ],
)
def test_absurd_values_are_refused_and_the_state_stays(trait, value, message):
    painter = MaskPainter()
    before = repr(painter)
    with pytest.raises(ValueError, match=message):
        setattr(painter, trait, value)
    assert repr(painter) == before
    if trait != "tokens" or len(value) != 3:
        with pytest.raises(ValueError, match=message):
            MaskPainter(**{trait: value})


def test_a_mask_from_the_library_becomes_plain_lists():
    painter = MaskPainter(tokens=["a", "b", "c"], mask=attnlib.causal_mask(3))
    assert painter.mask == [[True, False, False], [True, True, False], [True, True, True]]
    assert json.loads(json.dumps(painter.mask)) == painter.mask
    assert painter.length == 3
    assert eval(repr(painter)).mask == painter.mask


def test_picture_shows_the_starting_state():
    painter = MaskPainter(mask=attnlib.causal_mask(5))
    picture = still(painter)
    cells = picture.select("[role=grid] button")
    weights, mask = painter.weights.ravel(), np.ravel(painter.mask)
    assert [c.get_text() for c in cells] == [
        f"{w:.2f}" if may else "" for w, may in zip(weights, mask, strict=True)
    ]
    assert [c["aria-pressed"] == "true" for c in cells] == mask.tolist()
    assert [c["tabindex"] for c in cells].count("0") == 1
    assert [line.get_text() for line in picture.select(".verdicts li")] == painter.verdicts
    assert picture.select_one("[name=preset] [selected]")["value"] == "causal"
    additive = picture.select("[data-convention=additive] tr + tr td")
    assert [c.get_text() for c in additive] == ["0" if may else "-∞" for may in mask]


def test_hostile_token_is_text_in_the_picture():
    picture = still(MaskPainter(tokens=[HOSTILE, "b", "c"]))
    assert picture.find(["img", "script"]) is None
    assert HOSTILE in picture.get_text()
