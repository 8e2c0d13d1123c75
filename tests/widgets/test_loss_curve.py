"""LossCurve: loss, bits, perplexity and slope, in Python, in JavaScript and in the picture."""

import numpy as np
import pytest

from attnlib.widgets import LossCurve
from tests.widgets.pictures import js, picture, run, texts
from tests.widgets.samples import every


def test_a_quarter_by_hand():
    """Two questions with yes or no, each answered right by chance: 2 bits, 4 words."""
    curve = LossCurve(probability=0.25)
    assert (curve.bits, curve.perplexity, curve.slope) == pytest.approx((2, 4, -4))
    assert curve.loss == pytest.approx(2 * 0.693147)
    rows = texts(picture(curve), "td")
    assert rows == ["1.39 nats", "2.00 bits", "4"]
    steep = picture(LossCurve("slope", probability=0.25))
    assert texts(steep, "td") == ["1.386", "−4.00", "−1"]
    certain = texts(picture(LossCurve(probability=1)), "td")
    assert certain == ["0.00 nats", "0.00 bits", "1"]


@every(LossCurve)
def test_the_slope_is_that_of_the_curve_and_javascript_has_it_too(curve):
    p, nudge = curve.probability, 1e-6
    change = -np.log(p + nudge) + np.log(p - nudge)
    assert curve.slope == pytest.approx(change / (2 * nudge), rel=1e-6)
    found = js(curve, "compute(state)")
    for name in ("probability", "loss", "bits", "perplexity", "slope"):
        assert found[name] == pytest.approx(getattr(curve, name), abs=1e-12)
    names = run(js(curve, "code(state)"))
    assert names["loss"] == pytest.approx(curve.loss)


@every(LossCurve)
def test_the_touching_line_has_the_slope_of_the_point(curve):
    steep = LossCurve("slope", probability=curve.probability)
    numbers = picture(steep).select_one(".touching")["d"].lstrip("M").replace("L", " ").split()
    x, y, u, v = map(float, numbers)
    wide, tall = 292, 210 / 4.8  # units of the sheet for 1 of the probability, 1 of the loss
    if abs(u - x) > 6:  # rounded to a tenth
        rise = -(v - y) / tall / ((u - x) / wide)
        assert rise == pytest.approx(steep.slope, rel=0.05)
    circle = picture(steep).select_one(".point")
    assert float(circle["cx"]) == pytest.approx((x + u) / 2, abs=0.1)
    assert float(circle["cy"]) == pytest.approx((y + v) / 2, abs=0.1)
