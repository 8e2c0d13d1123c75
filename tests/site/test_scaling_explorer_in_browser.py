"""ScalingExplorer in a real browser: by keyboard, by a tap, and while it glides."""

from attnlib.widgets import ScalingExplorer
from tests.site.harness import page_of, phone, showing, texts

PARTS = ("d_k_value", "largest", "typical")


addresses = page_of(ScalingExplorer(), ScalingExplorer("coins"))
shows = showing(ScalingExplorer, PARTS)


def test_keyboard_alone_moves_everything(live):
    press, slider = live.keyboard.press, live.get_by_role("slider")
    press("Tab")
    assert slider.evaluate("slider => slider === document.activeElement")
    press("End")
    assert shows(live, d_k=256)
    assert slider.get_attribute("aria-valuetext") == "d_k = 256"
    press("Tab")
    press("Space")
    live.locator("[data-part=typical]", has_text="±1.0").wait_for()  # it glides for a second
    assert shows(live, d_k=256, divided=True)
    live.get_by_role("button", name="Toss all the coins again").press("Enter")
    assert shows(live, d_k=256, divided=True, toss=4)


def test_a_tap_moves_the_slider_and_turns_a_coin(browser, addresses):
    with phone(browser, addresses["http"]) as page:
        box = page.get_by_role("slider").bounding_box()
        page.touchscreen.tap(box["x"] + box["width"] * 0.9, box["y"] + box["height"] / 2)
        assert int(texts(page, ["d_k_value"])["d_k_value"]) > 64
        page.get_by_role("button", name="first number of the query").tap()
        assert texts(page, ["score"])["score"] == "0"
