"""MaskPainter: what each scene shows, held against attnlib, and its errors."""

import json

import numpy as np
import pytest
from hypothesis import strategies as st

import attnlib
from attnlib.widgets import MaskPainter
from attnlib.widgets.kit.constants import word_vector
from tests.widgets.pictures import close, js, part, picture, run, texts
from tests.widgets.samples import every, painters, trials

PATTERNS = ("causal", "padding", "window", "packed")


@every(trials(), st.booleans(), st.integers(-1, 7))
def test_letters_shows_where_the_model_looks_and_which_guesses_are_right(trial, masked, traced):
    painter = MaskPainter("letters", trial=trial, masked=masked, traced=traced)
    run_of = trial["on" if masked else "off"]
    letters, guesses = trial["letters"], run_of["guesses"]
    soup = picture(painter)
    expected = [guess == answer for guess, answer in zip(guesses, letters[1:], strict=True)]
    assert js(painter, "compute(state)") == expected
    texts = [text.get_text() for text in soup.svg.find_all("text")]
    assert [text == "✓" for text in texts if text in "✓✗"] == expected
    weights = np.array(run_of["weights"])
    drawn = [float(path["stroke-width"]) for path in soup.svg.find_all("path")]
    close(drawn, 5 * weights[weights >= 0.02], 0.006)
    faint = np.array([path.get("opacity") == "0.25" for path in soup.svg.find_all("path")])
    other = np.nonzero(weights >= 0.02)[0] != traced
    np.testing.assert_array_equal(faint, other & (traced >= 0))
    assert part(soup, "learns") == f"{run_of['learns']}%"
    assert part(soup, "writes") == f"{run_of['writes']}%"
    pressed = soup.select_one("[name=masked][aria-pressed=true]")
    assert pressed["value"] == str(masked).lower()
    assert run(js(painter, "code(state)"))["right"].tolist() == expected


def expected_mask(painter):
    n = len(painter.tokens)
    second = np.arange(n) >= painter.start
    return {
        "causal": attnlib.causal_mask(n),
        "padding": attnlib.causal_mask(n) & attnlib.padding_mask([painter.length], n)[0],
        "window": attnlib.window_mask(n, painter.width),
        "packed": attnlib.causal_mask(n) & (second[:, None] == second),
    }[painter.scene]


@every(painters(*PATTERNS))
def test_each_pattern_is_the_mask_of_attnlib(painter):
    mask = expected_mask(painter)
    np.testing.assert_array_equal(js(painter, "compute(state)"), mask)
    np.testing.assert_array_equal(run(js(painter, "code(state)"))["mask"], mask)
    soup = picture(painter)
    cells = soup.svg.find_all("rect", {"stroke-width": "0.7"})
    opened = [cell["fill"] != "none" for cell in cells]
    assert opened[-mask.size :] == mask.ravel().tolist()  # the strip of padding comes first
    strip = opened[: -mask.size]
    if painter.scene == "padding":
        assert strip == attnlib.padding_mask([painter.length], len(mask))[0, 0].tolist()
    else:
        assert strip == []
    if painter.scene in ("window", "packed"):
        assert part(soup, "open") == str(mask.sum())
    if painter.scene == "causal":  # a position reads the same in training and when it writes
        learns, writes = (line.select(".chip") for line in soup.select(".readings p"))
        read = [chip.get_text() for chip in learns if "blocked" not in chip["class"]]
        assert read == painter.tokens[: painter.position + 1]
        assert [chip.get_text() for chip in writes] == [*read, "?"]


def attend(painter, replaced=None):
    """Output and weights by the library, another word in place of the token `replaced`."""
    roles = ("query", "key", "value")
    vectors = np.array([[word_vector(t, r, 4) for t in painter.tokens] for r in roles])
    if replaced is not None:
        word = painter.tokens[replaced]
        vectors[:, replaced] = [word_vector(word, f"another {role}", 4) for role in roles]
    return attnlib.scaled_dot_product_attention(*vectors, np.array(painter.mask))


@every(painters("paint"))
def test_javascript_computes_what_attnlib_computes(painter):
    found = js(painter, "compute(state)")
    output, weights = attend(painter)
    close(found["weights"], weights)
    close(found["output"], output)
    after = np.array([attend(painter, j)[0] for j in range(len(weights))])
    np.testing.assert_array_equal(found["moves"], (abs(after - output) > 1e-9).any(-1))


@every(painters("paint"), st.data())
def test_the_picture_says_what_moves_and_what_is_looked_at(painter, data):
    """The outputs are measured; the mask alone says the same, but for the token's own."""
    mask, replaced, weights = np.array(painter.mask), painter.replaced, attend(painter)[1]
    n = len(mask)
    moved = np.array(js(painter, "compute(state)")["moves"][replaced])
    others = np.arange(n) != replaced
    np.testing.assert_array_equal(moved[others], mask[others, replaced])
    i, j = data.draw(st.integers(0, n - 1)), data.draw(st.integers(0, n - 1))
    soup = picture(painter, lens=[i, j])
    shown = np.array(texts(soup, "td.fate"))
    leaks, empty = moved & (np.arange(n) < replaced), ~mask.any(1)
    np.testing.assert_array_equal(shown == "leaks", leaks)
    np.testing.assert_array_equal(shown == "zeros", empty)
    np.testing.assert_array_equal(shown == "changes", moved & ~leaks)
    lines = soup.select(".verdicts li")
    early = moved[:replaced].any()
    assert [line["class"] == ["bad"] for line in lines] == [early, np.triu(mask, 1).any()]
    for line, room in zip(lines, soup.select(".verdicts.ghost p"), strict=True):
        assert len(line.get_text()) <= len(room["data-room"])

    cells = soup.select("[role=grid] button")
    assert [cell["aria-pressed"] == "true" for cell in cells] == mask.ravel().tolist()
    for cell, may, weight in zip(cells, mask.ravel(), weights.ravel(), strict=True):
        said = cell.get_text()
        assert abs(float(said) - weight) < 0.00501 if may else said == ""
        assert cell["aria-label"].endswith(f": {said}" if may else ": blocked")
    assert [cell["tabindex"] for cell in cells].count("0") == 1
    names = run(js(painter, "code(state)"))
    close(names["weights"], weights, 1e-6)

    # The microscope shows one weight, and whether it is blocked.
    panel = soup.select("[data-part=lens] .lens-lines p")
    told = dict([span.get_text() for span in line("span")] for line in panel)
    assert ("masked" in told) == (not mask[i, j])
    if mask[i].any():
        assert float(told["weight"].split(" = ")[-1]) == pytest.approx(weights[i, j], abs=1e-6)


def test_a_mask_from_the_library_becomes_plain_lists():
    painter = MaskPainter(tokens=["a", "b", "c"], mask=attnlib.causal_mask(3))
    assert painter.mask == [[True, False, False], [True, True, False], [True, True, True]]
    assert json.loads(json.dumps(painter.mask)) == painter.mask
