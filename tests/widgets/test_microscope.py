"""The microscope: what its panel says of a weight is what the widget's arrays give."""

import math
import re

import numpy as np
import pytest

from attnlib.widgets import HeadsViewer, Plane, PositionsExplorer
from attnlib.widgets.plane import KEYS, PRICES
from tests.widgets.pictures import close, picture


def panel(widget, i, j):
    soup = picture(widget, lens=[i, j])
    return soup.select_one("[data-part=lens]")


def lines(found):
    """What each line of the panel comes to, by its name."""
    said = [[span.get_text() for span in line("span")] for line in found.select(".lens-lines p")]
    return {name: text.replace("−", "-") for name, text in said}


def rows():
    for placed in (False, True):
        explorer = PositionsExplorer(scene="order", swapped=True, placed=placed)
        outputs, weights = explorer.outputs
        yield explorer, 2, weights[2], outputs[2]
    for plane in (
        Plane(sentence="money", asks=1),
        Plane("turned", turn=37, stretch=1.3),
        Plane("prices", sharpness=0.5),
        Plane("words", sharpness=0),
    ):
        yield plane, 0, plane.weights, plane.output
    for i, (teacher, values) in enumerate({"entry": KEYS, "cost": PRICES}.items()):
        plane = Plane("learning", step=6, teacher=teacher)
        yield plane, i, plane.weights[i], plane.weights[i] @ values


@pytest.mark.parametrize(("widget", "i", "weights", "output"), rows())
def test_the_way_to_a_weight_and_on_to_the_output(widget, i, weights, output):
    for j, weight in enumerate(weights):
        found = panel(widget, i, j)
        said = lines(found)
        score = float(re.split(" [=≈] ", said["score"])[-1])
        added = float(found.svg["aria-label"].split()[-1].replace("−", "-"))
        assert added == pytest.approx(score, rel=1e-4, abs=1e-6)
        assert float(said["weight"].split()[-1]) == pytest.approx(weight, abs=1e-6)
        power, _, total = said["weight"].replace(",", "").split()[:3]
        assert float(power) / float(total) == pytest.approx(weight, rel=1e-3, abs=1e-6)
        if weight:
            scaled = said["exponential"].partition("^")[2].split(" = ")[0]
            assert math.exp(float(scaled)) == pytest.approx(float(power), rel=1e-4)
        chosen = found.select_one("select [selected]")
        assert chosen["value"] == str(j) and len(found("option")) >= len(weights)
        if output is not None:
            ends = [text.get_text() for text in found("svg")[-1]("text")][1::2]
            ends = [float(end.replace("−", "-")) for end in ends]
            close(ends, np.atleast_1d(output), 1e-4)


def test_a_row_alone_tells_how_far_scores_are_apart():
    weights = [[0.5, 0.25, 0.25, 0], [0.9, 0.1, 0, 0], [0, 0, 0, 0], [0.25] * 4]
    mask = np.tri(4, dtype=bool)
    mask[0] = True
    mask[2] = False
    viewer = HeadsViewer([weights], "a b c d".split(), mask=mask)
    said = lines(panel(viewer, 0, 1))
    assert said["weight"] == "b gets 0.25"
    assert said["exponential"].startswith("0.25 ÷ 0.5 ≈ 0.5")
    assert said["divided"] == "ln 0.5: a score about 0.7 lower than that of a"
    assert "no queries and keys" in said["score"]
    ladder = [text.get_text() for text in panel(viewer, 0, 1).svg("text")][3:]
    assert ladder == ["a", "0.50", "0.7", "b", "0.25", "0", "c", "0.25", "0"]
    assert "too little to be recorded" in lines(panel(viewer, 0, 3))["weight"]
    assert "b may not attend to c" in lines(panel(viewer, 1, 2))["masked"]
    assert "c may not attend to a" in lines(panel(viewer, 2, 0))["masked"]
    assert panel(viewer, 3, 3).svg("rect")[-1]["opacity"] == "1"
