"""LossCurve and ChainRule in a real browser: dragged, pressed, and moved by keyboard."""

import pytest

from attnlib.widgets import ChainRule, LossCurve
from tests.site.harness import FRAME, wake, write_page

TRAITS = "document.querySelector('.widget-slot').model.traits"


@pytest.fixture
def opened(page, tmp_path):
    """Open a page with a widget, and wait until it lives."""

    def open_widget(widget):
        page.emulate_media(reduced_motion="reduce")
        write_page(tmp_path, widget)
        return wake(page, (tmp_path / "page.html").as_uri())

    return open_widget


def test_a_point_is_dragged_along_the_curve_as_far_as_it_goes(opened):
    page = opened(LossCurve())
    box = page.locator("[data-part=sheet]").bounding_box()
    unit = box["width"] / 340

    def at(p):
        return box["x"] + (34 + 292 * p) * unit, box["y"] + 100 * unit

    def probability():
        page.evaluate(FRAME)
        now = LossCurve(**page.evaluate(TRAITS))
        assert page.locator("[data-part=row-0]").inner_text() == f"{abs(now.loss):.2f} nats"
        return now.probability

    page.mouse.move(*at(0.3))
    page.mouse.down()
    page.mouse.move(*at(0.5), steps=3)
    assert probability() == 0.5
    page.mouse.move(*at(-0.1), steps=3)
    page.mouse.up()
    page.mouse.move(*at(0.8), steps=3)  # let go of
    assert probability() == 0.01
    page.get_by_role("slider").press("End")
    assert probability() == 1


def test_slopes_come_back_and_a_step_lowers_the_loss(opened):
    page = opened(ChainRule("model"))
    backward = page.get_by_role("button", name="Backward")
    for known in range(1, 5):
        backward.press("Enter")
        page.evaluate(FRAME)
        assert page.locator("[data-slope]").count() == known
    assert backward.is_disabled()
    page.get_by_role("button", name="Gradient step").click()
    page.evaluate(FRAME)
    before, after = ChainRule("model"), ChainRule(**page.evaluate(TRAITS))
    assert after.parameter == pytest.approx(0.5 - before.slopes["w"], abs=1e-6)
    assert after.values["L"] < 0.4 * before.values["L"]
    page.get_by_role("button", name="Forward again").click()
    page.evaluate(FRAME)
    assert page.locator("[data-slope]").count() == 3
