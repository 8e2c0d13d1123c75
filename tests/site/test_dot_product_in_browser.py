"""DotProduct in a real browser: a tip is dragged, and moved by keyboard."""

import pytest

from attnlib.widgets import DotProduct
from tests.site.harness import FRAME, wake, write_page


@pytest.fixture
def dot(page, tmp_path):
    """Open a page with the widget, and wait until it lives."""
    page.emulate_media(reduced_motion="reduce")
    write_page(tmp_path, DotProduct())
    return wake(page, (tmp_path / "page.html").as_uri())


def shown(page):
    """Return the present state, once both columns show its score."""
    page.evaluate(FRAME)
    now = DotProduct(**page.evaluate("document.querySelector('.widget-slot').model.traits"))
    for part in ("score", "along"):
        text = page.locator(f"[data-part={part}]").inner_text().replace("−", "-")
        assert float(text) == pytest.approx(now.score, abs=0.006)
    return now


def test_a_tip_is_dragged_as_far_as_it_may_go(dot):
    box = dot.locator("[data-part=sheet]").bounding_box()
    unit = box["width"] / 320

    def at(x, y):
        return box["x"] + (96 + 66 * x) * unit, box["y"] + (222 - 66 * y) * unit

    dot.mouse.move(*at(0.5, 2))
    dot.mouse.down()
    dot.mouse.move(*at(2.98, 0.03), steps=5)
    assert shown(dot).key == [3, 0]
    dot.mouse.move(*at(-9, 1), steps=5)
    dot.mouse.up()
    assert shown(dot).key == [-1.3, 1]
    dot.mouse.move(*at(1, 1), steps=5)  # let go of
    assert shown(dot).key == [-1.3, 1]
    dot.get_by_role("button", name="Reset").click()
    assert shown(dot).state == DotProduct().state


def test_by_keyboard_alone(dot):
    key = dot.get_by_role("slider", name="key")
    key.focus()
    for press in ("ArrowRight", "Shift+ArrowDown"):
        key.press(press)
    assert shown(dot).key == [0.6, 1.5]
    assert key.get_attribute("aria-valuetext") == "0.6, 1.5"
    dot.get_by_role("slider", name="query").press("Shift+ArrowLeft")
    assert shown(dot).query == [1.5, 1]
