"""MaskPainter: its weights, what another word moves, what it says of a mask, its errors."""

import json
import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import attnlib
from attnlib.widgets import MaskPainter
from attnlib.widgets.kit.constants import word_vector
from tests.helpers import steady
from tests.widgets.pictures import js, picture, run
from tests.widgets.samples import SAMPLES

HOSTILE = '<img src=x onerror="document.title=1"> </script><!-- "&amp;\''
samples = SAMPLES[MaskPainter]
LEAKING = attnlib.causal_mask(5)
LEAKING[1] = False  # an empty row
LEAKING[0, 4] = True


def in_scene(scene):
    """The same painters, all of them in one scene."""
    return samples.map(lambda painter: MaskPainter(**painter.state | {"scene": scene}))


painters = in_scene("paint")
some = settings(steady, max_examples=25)


def attend(painter, replaced=None):
    """Output and weights by the library, another word in place of the token `replaced`."""
    roles = ("query", "key", "value")
    vectors = np.array([[word_vector(t, r, 4) for t in painter.tokens] for r in roles])
    if replaced is not None:
        word = painter.tokens[replaced]
        vectors[:, replaced] = [word_vector(word, f"another {role}", 4) for role in roles]
    return attnlib.scaled_dot_product_attention(*vectors, np.array(painter.mask))


def assert_room_for(lines):
    """Behind the verdicts each has room for the longest that it can become."""
    rooms = lines[0].find_parent(class_="reserved").select(".ghost p")
    for line, room in zip(lines, rooms, strict=True):
        assert len(line.get_text()) <= len(room["data-room"])


def verdicts(painter):
    return [line.get_text() for line in picture(painter).select(".verdicts li")]


def fates(painter):
    return [cell.get_text() for cell in picture(painter).select("td.fate")]


@some
@given(painter=painters)
def test_javascript_computes_what_attnlib_computes(painter):
    found = js(painter, "compute(state)")
    output, weights = attend(painter)
    np.testing.assert_allclose(found["weights"], weights, rtol=0, atol=1e-9)
    np.testing.assert_allclose(found["output"], output, rtol=0, atol=1e-9)
    after = np.array([attend(painter, j)[0] for j in range(len(weights))])
    np.testing.assert_array_equal(found["moves"], (abs(after - output) > 1e-9).any(-1))


@some
@given(painter=painters)
def test_what_moves_is_what_may_look(painter):
    """The outputs are measured; the mask alone says the same, but for the token's own."""
    mask, replaced = np.array(painter.mask), painter.replaced
    found = js(painter, "compute(state)")
    moved, others = np.array(found["moves"][replaced]), np.arange(len(mask)) != replaced
    np.testing.assert_array_equal(moved[others], mask[others, replaced])
    # Its own output stays only if it has no key that differs: then no weight can change.
    keys = {token for token, may in zip(painter.tokens, mask[replaced], strict=True) if may}
    assert moved[replaced] == (mask[replaced, replaced] or len(keys) > 1)
    empty = ~mask.any(1)
    assert found["empty"] == np.flatnonzero(empty).tolist()
    shown = np.array(fates(painter))
    leaks = np.triu(mask, 1).any(1)  # every token is replaced in turn
    np.testing.assert_array_equal(shown == "leaks", leaks)
    np.testing.assert_array_equal(shown == "moved", moved & ~leaks)
    np.testing.assert_array_equal(shown == "zeros", empty)
    lets_in = mask[: painter.length, painter.length :].any()
    lines = picture(painter).select(".verdicts li")
    bad = [False, leaks.any(), empty.any(), lets_in]
    assert [line["class"] == ["bad"] for line in lines] == bad
    # What is said of every token does not contradict what is said of one.
    elsewhere = lines[1].get_text().startswith("Leaks the future, though not from ")
    assert elsewhere == (bad[1] and not moved[:replaced].any())
    assert_room_for(lines)


NAMED = [
    ({}, ["sat The cat down <pad>", "sat The cat 3", "", "The cat sat down <pad>"]),
    ({"mask": attnlib.causal_mask(5)}, ["sat down <pad>", "", "", "<pad>"]),
    (
        {"mask": LEAKING, "replaced": 1},
        ["cat sat down <pad>", "cat <pad> The", "cat", "The <pad>"],
    ),
    (
        {"mask": np.eye(5, k=-1, dtype=bool), "replaced": 1, "length": 5},
        ["cat sat", "", "The", "5"],
    ),
    ({"mask": np.zeros((5, 5), bool)}, [None, None, "The cat sat down <pad>", None]),
]
GUESSED = [
    ({}, ["2 sat", "3 4"]),
    ({"mask": attnlib.causal_mask(4)}, ["2 The cat", "4"]),
    ({"mask": attnlib.causal_mask(4) | np.eye(4, k=2, dtype=bool)}, ["2 down", "2 4"]),
    ({"mask": np.eye(4, dtype=bool)}, ["2 The", None]),
    ({"length": 3, "position": 3}, ["4", None]),
]
GUESS = {"tokens": "The cat sat down".split(), "scene": "guess"}


@pytest.mark.parametrize(
    ("traits", "named"), NAMED + [(GUESS | traits, named) for traits, named in GUESSED]
)
def test_the_verdicts_name_the_tokens_and_count_them(traits, named):
    lines = verdicts(MaskPainter(**traits))
    for line, names in zip(lines, named, strict=True):
        found = re.findall(r"\b(?:The|cat|sat|down|\d+)\b|<pad>", line)
        assert names in (None, " ".join(found)), line


def under_the_microscope(painter, i, j):
    """The panel on the weight of query i on key j: its lines by their names, and its pictures."""
    panel = picture(painter, lens=[i, j]).select_one("[data-part=lens]")
    lines = [[span.get_text() for span in p("span")] for p in panel.select(".lens-lines p")]
    return dict(lines), [drawing["aria-label"] for drawing in panel("svg")]


def number(text):
    return float(text.replace("−", "-"))


@some
@given(painter=samples, data=st.data())
def test_the_microscope_shows_why_a_weight_is_what_it_is(painter, data):
    n = len(painter.tokens)
    i, j = data.draw(st.integers(0, n - 1)), data.draw(st.integers(0, n - 1))
    mask = np.array(painter.mask)
    output, weights = attend(painter)
    places = {"query": i, "key": j, "value": j}
    query, key, value = (word_vector(painter.tokens[k], r, 4) for r, k in places.items())
    found = js(painter, "weightOf(state)", lens=[i, j])
    np.testing.assert_allclose(found["query"], query, rtol=0, atol=1e-12)
    np.testing.assert_allclose(found["key"], key, rtol=0, atol=1e-12)
    np.testing.assert_allclose(found["values"][j], value, rtol=0, atol=1e-12)
    np.testing.assert_allclose(found["weights"], weights[i], rtol=0, atol=1e-9)
    lines, pictures = under_the_microscope(painter, i, j)
    score = number(re.split(" [=≈] ", lines["score"])[-1])
    assert score == pytest.approx(query @ key, abs=1e-4)
    assert number(lines["divided"].split(" = ")[-1]) == pytest.approx(score / 2, abs=1e-4)
    assert ("masked" in lines) == (not mask[i, j])
    power = number(lines["powered"].split(" = ")[-1])
    assert power == pytest.approx(np.exp(query @ key / 2) * mask[i, j], rel=1e-4, abs=1e-5)
    if mask[i].any():
        assert number(lines["shared"].split(" = ")[-1]) == pytest.approx(weights[i, j], abs=1e-6)
    else:
        assert lines["shared"].startswith("nothing: ") and "may look at no key" in lines["shared"]
    shown = pictures[-1].removeprefix("The output: ").split("; in full colour")[0].split(", ")
    np.testing.assert_allclose([number(x) for x in shown], output[i], rtol=0, atol=1e-4)


def test_equal_tokens_are_numbered_and_long_ones_cut():
    said = verdicts(MaskPainter(tokens=["the", "cat", "the", "x" * 500], replaced=0))[0]
    assert "the (3)" in said and "xxxxxxxxxxx…" in said and "x" * 12 not in said


@some
@given(painter=painters)
def test_picture_shows_the_weights_and_the_mask_three_times(painter):
    soup = picture(painter)
    mask, weights = np.ravel(painter.mask), attend(painter)[1].ravel()
    cells = soup.select("[role=grid] button")
    assert [cell["aria-pressed"] == "true" for cell in cells] == mask.tolist()
    for cell, may, weight in zip(cells, mask, weights, strict=True):
        said = cell.get_text()
        assert abs(float(said) - weight) < 0.00501 if may else said == ""
        assert cell["aria-label"].endswith(f": {said}" if may else ": blocked")
    assert [cell["tabindex"] for cell in cells].count("0") == 1
    written = {
        name: [cell.get_text() for cell in soup.select(f"[data-convention={name}] tr + tr td")]
        for name in ("bool", "additive", "blocked")
    }
    additive = attnlib.additive(mask, np.float64)
    assert written["bool"] == ["T" if may else "F" for may in mask]
    assert written["additive"] == ["0" if x == 0 else "-∞" for x in additive]
    assert written["blocked"] == ["T" if x else "F" for x in attnlib.blocked(mask)]


@pytest.mark.parametrize("name", ["none", "causal", "padding", "both", "window"])
def test_presets(name):
    causal, real = attnlib.causal_mask(5), attnlib.padding_mask([3], 5)[0]
    mask = {
        "none": np.ones((5, 5), bool),
        "causal": causal,
        "padding": np.broadcast_to(real, (5, 5)),
        "both": causal & real,
        "window": attnlib.window_mask(5, 1),
    }[name]
    painter = MaskPainter(mask=mask, length=3)
    assert js(painter, f"preset('{name}', state)") == painter.mask
    assert picture(painter).select_one("[name=preset] [selected]")["value"] == name
    painter.mask = mask ^ np.eye(5, k=-3, dtype=bool)
    assert picture(painter).select_one("[name=preset] [selected]")["value"] == "painted"


@some
@given(painter=painters)
def test_copied_code_gives_the_mask_three_times_and_the_weights(painter):
    names = run(js(painter, "code(state)"))
    mask = np.array(painter.mask)
    assert names["tokens"] == painter.tokens
    np.testing.assert_array_equal(names["allowed"], mask)
    np.testing.assert_array_equal(names["additive"], attnlib.additive(mask, np.float64))
    np.testing.assert_array_equal(names["blocked"], attnlib.blocked(mask))
    np.testing.assert_allclose(names["weights"], attend(painter)[1], rtol=0, atol=1e-6)


def test_a_stroke_leaves_no_gap():
    cells = js(MaskPainter(), "stroke([0, 0], [7, 3])")
    assert cells[0] == [0, 0] and cells[-1] == [7, 3]
    assert np.abs(np.diff(cells, axis=0)).max() == 1
    assert js(MaskPainter(), "stroke([2, 3], [2, 3])")[0] == [2, 3]


def test_a_mask_from_the_library_becomes_plain_lists():
    painter = MaskPainter(tokens=["a", "b", "c"], mask=attnlib.causal_mask(3))
    assert painter.mask == [[True, False, False], [True, True, False], [True, True, True]]
    assert json.loads(json.dumps(painter.mask)) == painter.mask
    assert painter.length == 3
    assert eval(repr(painter)).mask == painter.mask


def test_hostile_token_is_text_in_the_picture():
    soup = picture(MaskPainter(tokens=[HOSTILE, "b", "c"]))
    assert soup.find(["img", "script"]) is None
    assert HOSTILE in soup.get_text()


@some
@given(painter=in_scene("guess"))
def test_each_position_is_told_what_it_reads_while_it_must_guess(painter):
    mask, real, n = np.array(painter.mask), painter.length, len(painter.tokens)
    soup = picture(painter)
    guessed = [cell.b.get_text() for cell in soup.select("td.fate")]
    assert guessed == [*painter.tokens[1:real], "<end>", *["–"] * (n - real)]
    said = [cell.span.get_text() for cell in soup.select("td.fate")]
    for i, row in enumerate(mask[:real]):
        in_view = i + 1 < real and row[i + 1]
        ahead = row[i + 1 :].any()
        assert (said[i] == "in view") == in_view
        assert (said[i] == "reads ahead") == (ahead and not in_view)
        assert (said[i] == "hidden") == (not ahead and row[: i + 1].all())
    framed = [bool(cell.get("class")) for cell in soup.select("[role=grid] td:has(button)")]
    answers = np.eye(n, k=1, dtype=bool) & (np.arange(n) < real)
    assert framed == answers.ravel().tolist()
    learns, writes = (
        [(chip.get_text(), chip["class"][1:]) for chip in line.select(".chip")]
        for line in soup.select(".readings p")
    )
    assert [token for token, _ in learns] == painter.tokens
    assert ["blocked" not in kinds for _, kinds in learns] == mask[painter.position].tolist()
    if painter.position < real:
        there = [token for token, _ in writes]
        assert there == [*painter.tokens[: painter.position + 1], "?"]
    lines = soup.select(".verdicts li")
    assert_room_for(lines)
    assert (lines[1]["class"] == ["bad"]) == np.triu(mask, 1)[:real].any()
