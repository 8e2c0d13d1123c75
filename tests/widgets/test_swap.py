"""Swap: what it shows is what the model answers, and what it says about it is true."""

import re

import numpy as np
import pytest
from hypothesis import strategies as st

from attnlib.widgets import Swap, swap
from tests.widgets.pictures import js, minilm, picture, texts
from tests.widgets.samples import every

WIDTH = 36  # of all curves together, where the sentence is one line


def widths(soup):
    return [float(path["stroke-width"]) for path in soup.select_one(".across").select("path")]


def top(widget):
    """The token with the largest weight."""
    return widget.tokens[widget.weights.argmax()]


def test_the_recording_is_what_the_model_answers():
    for one, other in zip(Swap().readings, swap.record(minilm()), strict=True):
        assert {**one, "weights": None} == {**other, "weights": None}
        # Four decimals, and the last digits of float32 depend on the machine.
        assert one["weights"] == pytest.approx(other["weights"], abs=2e-4)


@pytest.mark.parametrize("word", swap.WORDS)
def test_the_picture_says_which_word_it_is_and_how_much(word):
    widget = Swap(word=word)
    assert widget.weights.sum() == pytest.approx(1, abs=5e-4)
    soup = picture(widget)
    said = soup.select_one("[data-part=said]")
    assert said.select_one(".key").text == top(widget)
    assert said.select_one(".number").text == f"{widget.weights.max():.2f}"
    # The note names that word as well.
    assert top(widget) in {name.text for name in said.select("em")}
    rows = texts(soup, "table td")
    assert rows == [f"{weight + 1e-9:.2f}" for weight in widget.weights]
    n = len(widget.tokens)
    for form in ("across", "down"):
        written = texts(soup, f".picture .{form} svg text")
        assert [name.lower() for name in written[:n]] == [t.lower() for t in widget.tokens]
        assert written[n : 2 * n] == rows
    assert max(widths(soup)) == pytest.approx(WIDTH * widget.weights.max(), abs=0.01)


def test_without_a_script_a_second_reading_stands_below_the_first():
    first, second = picture(Swap()).select(".picture")
    for shown, word in ((first, "sour"), (second, "tired")):
        labels = [drawn["aria-label"] for drawn in shown.find_all("svg")]
        assert len(labels) == 2 and all(f"“{top(Swap(word=word))}”" in label for label in labels)


PAIRS = st.sampled_from(list(swap.SENTENCES.values())).flatmap(
    lambda words: st.tuples(st.sampled_from(words), st.sampled_from(words))
)


@every(PAIRS, st.floats(0, 1), examples=20)
def test_on_their_way_all_curves_together_keep_the_weight_of_1(words, part):
    start, end = (Swap(word=word) for word in words)
    lead, most, rest, weights = (
        (1 - part) * np.array(a) + part * np.array(b)
        for a, b in zip(js(start, "pose(state)"), js(end, "pose(state)"), strict=True)
    )
    assert most + rest.sum() == pytest.approx(1, abs=5e-4)
    assert weights == pytest.approx((1 - part) * start.weights + part * end.weights)
    moving = [float(lead), float(most), rest.tolist(), weights.tolist()]
    soup = picture(start, moving=moving)
    assert sum(widths(soup)) == pytest.approx(WIDTH, abs=0.6 * len(widths(soup)))
    for path in soup.select_one(".across").select("path"):
        *_, x, _ = re.findall(r"-?[\d.]+", path["d"])
        assert 0 <= float(x) <= 944
