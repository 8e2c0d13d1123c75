"""ThenAndNow in a real browser, on a page of its own."""

from attnlib.widgets import ThenAndNow
from attnlib.widgets.then_and_now import LLAMA, PARTS
from tests.site.harness import FRAME, page_of, phone, showing, wake

addresses = page_of(ThenAndNow())
shows = showing(ThenAndNow, ["verdict"])


def traits(page):
    """The state of the page's widget."""
    return page.evaluate("document.querySelector('.widget-slot').model.traits")


def changed(page):
    """Which parts are those of today."""
    return [part for part in PARTS if traits(page)[part]]


def test_five_steps_lead_to_llama_and_eight_around(page, addresses):
    wake(page, addresses["file"])
    for step, part in enumerate(PARTS, start=1):
        page.locator("[name=next]").click()
        assert changed(page) == list(PARTS[:step]) and traits(page)["part"] == part
        if step == len(LLAMA):
            assert shows(page, **dict.fromkeys(LLAMA, True))
    page.get_by_role("button", name="Back to 2017").click()
    assert changed(page) == []


def test_keyboard_alone_changes_and_changes_back(page, addresses):
    wake(page, addresses["file"])
    page.keyboard.press("Tab")  # the large button
    for _ in PARTS:
        page.keyboard.press("Tab")
        page.keyboard.press("Space")
    assert changed(page) == list(PARTS)
    page.keyboard.press("Space")
    page.evaluate(FRAME)
    assert changed(page) == list(PARTS[:-1])
    assert "causal_mask(n))" in page.locator("[data-part=expression]").inner_text()


def test_a_tap_lights_the_part_in_the_expression(browser, addresses):
    with phone(browser, addresses["http"]) as page:
        page.get_by_text("SwiGLU", exact=True).tap()
        page.evaluate(FRAME)
        assert page.locator(".expression .shown").inner_text().strip() == (
            "SwiGLU(w_gate, w_up, w_down),"
        )
        assert page.locator("[data-part=parameters]").inner_text() == "243.3 M"
