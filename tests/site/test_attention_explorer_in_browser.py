"""AttentionExplorer in a real browser: by keyboard, by hand, with any sentence."""

import re

import pytest

from attnlib.widgets import AttentionExplorer
from tests.site.harness import FRAME, page_of, phone, showing
from tests.widgets.pictures import js
from tests.widgets.samples import HOSTILE

PARTS = ("d_k_value", "largest", "row_word", "top_word", "entropy")


addresses = page_of(AttentionExplorer())
shows = showing(AttentionExplorer, PARTS)


def test_keyboard_alone_moves_everything(live):
    live.keyboard.press("Tab")
    live.keyboard.press("End")
    assert shows(live, d_k=512)
    slider = live.get_by_role("slider", name="Query and key size")
    assert slider.get_attribute("aria-valuetext") == "d_k = 512"
    live.get_by_label("Divide scores by").focus()
    live.keyboard.press("ArrowDown")
    assert shows(live, d_k=512, divisor="none")
    live.get_by_label("Mask").select_option("causal")
    live.get_by_label("Query row").select_option("3")
    assert shows(live, d_k=512, divisor="none", mask="causal", row=3)


def test_a_tap_picks_a_row(browser, addresses):
    with phone(browser, addresses["http"]) as page:
        page.locator("svg").scroll_into_view_if_needed()
        box = page.locator("svg").bounding_box()
        x, y = box["width"] / 2, box["height"] * (64 + 270 * 5.5 / 6) / 484
        page.touchscreen.tap(box["x"] + x, box["y"] + y)
        assert shows(page, row=5)


def test_what_is_pointed_at_is_said_until_the_pointer_leaves(live):
    cell = live.locator("[data-part=cell]")
    resting = cell.inner_text()
    live.locator("svg").hover(position={"x": 110, "y": 80})
    live.evaluate(FRAME)
    made = js(AttentionExplorer(), "compute(state)")
    expected = [f"{made['scores'][0][0]:.2f}", f"{made['weights'][0][0]:.4f}"]
    assert re.findall(r"-?\d+\.\d+", cell.inner_text()) == expected
    live.mouse.move(0, 0)
    live.evaluate(FRAME)
    assert cell.inner_text() == resting
    live.locator("svg").first.hover(position={"x": 110, "y": 80})
    live.get_by_label("Sentence").fill("two words")  # another cell is under the pointer now
    live.evaluate(FRAME)
    assert cell.inner_text() == resting


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "at least one word"),
        ("   ", "at least one word"),
        ("w " * 200, "That is 200 words; 64"),
    ],
)
def test_an_absurd_sentence_gets_a_plain_message_and_keeps_the_state(live, text, message):
    field = live.get_by_label("Sentence")
    field.fill(text)
    assert message in live.locator(".message").inner_text()
    assert shows(live)
    field.blur()
    assert field.input_value() == "The cat sat on the mat"


@pytest.mark.parametrize("text", ["w " * 64, "x" * 5000 + HOSTILE])
def test_any_other_sentence_is_drawn(live, text):
    live.get_by_label("Sentence").fill(text)
    live.get_by_label("Mask").select_option("window")
    assert shows(live, sentence=text, mask="window")
    assert live.locator(".widget-slot img").count() == 0 and live.title() == "A page"
    assert live.evaluate("document.documentElement.scrollWidth <= innerWidth")
