"""ScalingExplorer in a real browser: by keyboard, by a tap, between its stops."""

from attnlib.widgets import ScalingExplorer
from tests.site.harness import page_of, phone, showing, texts

PARTS = ("d_k_value", "spread", "theory", "largest", "slope")


addresses = page_of(ScalingExplorer())
shows = showing(ScalingExplorer, PARTS)


def test_keyboard_alone_moves_everything(live):
    press, slider = live.keyboard.press, live.get_by_role("slider", name="Query and key size")
    press("Tab")
    assert slider.evaluate("slider => slider === document.activeElement")
    press("End")
    assert shows(live, d_k=1024)
    assert slider.get_attribute("aria-valuetext") == "d_k = 1024"
    press("Tab")
    press("ArrowDown")
    assert shows(live, d_k=1024, divisor="none")
    press("Shift+Tab")
    press("Home")
    press("ArrowRight")
    assert shows(live, d_k=2, divisor="none")
    live.get_by_role("button", name="Reset").press("Enter")
    assert shows(live)


def test_a_tap_on_the_slider_moves_it(browser, addresses):
    with phone(browser, addresses["http"]) as page:
        box = page.get_by_role("slider").bounding_box()
        page.touchscreen.tap(box["x"] + box["width"] * 0.9, box["y"] + box["height"] / 2)
        assert int(texts(page, ["d_k_value"])["d_k_value"]) > 256
