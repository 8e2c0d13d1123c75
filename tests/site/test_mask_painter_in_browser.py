"""MaskPainter in a real browser, on a page of its own: keyboard, mouse and finger paint."""

import numpy as np
import pytest

import attnlib
from attnlib.widgets import MaskPainter
from tests.site.harness import FRAME, phone, tab_to, wake, write_page
from tests.widgets.pictures import picture


@pytest.fixture
def open_painter(page, tmp_path):
    """Open a page with a painter and wait until it lives."""

    def go(**traits):
        write_page(tmp_path, MaskPainter(**traits))
        return wake(page, (tmp_path / "page.html").as_uri())

    return go


def agrees(page):
    """The screen shows the picture of the present state; return that painter."""
    page.evaluate(FRAME)
    traits = page.evaluate("document.querySelector('.widget-slot').model.traits")
    painter = MaskPainter(**traits)
    soup = picture(painter)
    for part in ("[role=grid] button", "td.fate", ".verdicts li", ".conventions td"):
        drawn = [" ".join(part.get_text().split()) for part in soup.select(part)]
        shown = page.locator(part).all_text_contents()
        assert [" ".join(text.split()) for text in shown] == drawn
    pressed = page.locator("[role=grid] [aria-pressed=true]").count()
    assert pressed == np.sum(painter.mask)
    return painter


def cell(page, i, j):
    return page.locator("[role=grid] tr").nth(i + 1).locator("button").nth(j)


def verdict(page, at):
    return page.locator(".verdicts li").nth(at).text_content()


def press(page, *keys):
    for key in keys:
        page.keyboard.press(key)


def test_by_keyboard_alone_causal_padding_and_a_leaking_mask(open_painter):
    page = open_painter()
    tab_to(page, "[name=preset]")
    page.keyboard.type("causal")
    np.testing.assert_array_equal(agrees(page).mask, attnlib.causal_mask(5))

    tab_to(page, "[role=grid] button")
    press(page, "Control+Home", "ArrowRight", "ArrowRight", "Space")  # The may look at sat
    assert agrees(page).mask[0] == [True, False, True, False, False]
    assert verdict(page, 1) == (
        "Leaks the future: another word for sat moves the output of The, which comes before it."
    )
    press(page, "Enter")
    assert agrees(page).mask[0] == [True, False, False, False, False]
    press(page, "Control+End", "ArrowDown", "ArrowRight", "ArrowUp", "Space", "Home", "End")
    assert agrees(page).mask[3][4]
    assert page.locator("[role=grid] [tabindex='0']").count() == 1
    assert page.locator("[role=grid] [tabindex='0']").get_attribute("aria-label")[:4] == "down"

    press(page, "Shift+Tab", "Shift+Tab", "Shift+Tab", "Shift+Tab", "Shift+Tab")
    assert page.evaluate("document.activeElement.name") == "preset"
    page.keyboard.type("padding")
    assert agrees(page).mask == [[True] * 4 + [False]] * 5
    tab_to(page, "[name=real]")
    press(page, "ArrowLeft")  # a padding preset goes with its length
    painter = agrees(page)
    assert painter.length == 3 and painter.mask == [[True] * 3 + [False] * 2] * 5
    tab_to(page, "[name=reset]")
    press(page, "Enter")
    assert repr(agrees(page)) == repr(MaskPainter())


def test_a_preset_keeps_its_name_until_the_mask_is_painted_by_hand(open_painter):
    page = open_painter(length=5)
    start = page.get_by_label("Start from")
    start.select_option("padding")  # no filler: the same mask as none
    agrees(page)
    assert start.input_value() == "padding"
    start.select_option("painted")
    assert start.input_value() == "padding"
    cell(page, 4, 0).click()
    agrees(page)
    assert start.input_value() == "painted"


def test_each_position_guesses_without_a_mask_and_with_one(open_painter):
    page = open_painter(tokens="The cat sat down".split(), scene="guess")

    def open_chips():
        return page.locator(".readings p").first.locator(".open").all_text_contents()

    tab_to(page, "[name=position]")
    press(page, "ArrowRight")
    assert agrees(page).position == 2
    assert open_chips() == ["The", "cat", "sat", "down"]
    assert verdict(page, 0).startswith("Position 3 can read its answer: down")
    press(page, "Shift+Tab", "Space")  # the causal mask stands just before
    np.testing.assert_array_equal(agrees(page).mask, attnlib.causal_mask(4))
    assert open_chips() == ["The", "cat", "sat"]
    assert verdict(page, 1).startswith("No position reads ahead")
    cell(page, 0, 1).click()
    assert agrees(page).position == 0  # the row that is painted is looked at
    assert verdict(page, 1).startswith("In view: 1 of 4 answers")
    assert page.locator("[data-part=start][aria-pressed=true]").count() == 0
    page.locator("[name=reset]").click()
    agrees(page)
    assert open_chips() == ["The", "cat", "sat", "down"]


def test_a_drag_paints_every_cell_on_its_way_once(open_painter):
    page = open_painter()
    start, end = (cell(page, *at).bounding_box() for at in ((1, 0), (1, 4)))
    y = start["y"] + start["height"] / 2
    page.mouse.move(start["x"] + 10, y)
    page.mouse.down()
    page.mouse.move(end["x"] + 10, y, steps=2)  # faster than the cells go by
    page.mouse.up()
    page.mouse.move(end["x"] + 10, y + 60)
    assert agrees(page).mask == [[i != 1] * 5 for i in range(5)]
    cell(page, 1, 2).click()
    assert agrees(page).mask[1] == [False, False, True, False, False]
    cell(page, 1, 2).evaluate("button => button.click()")  # as a screen reader clicks
    assert not any(agrees(page).mask[1])


def test_the_picked_weight_opens_under_the_microscope_and_the_mask_stays(open_painter):
    page = open_painter(mask=attnlib.causal_mask(5))
    panel = page.get_by_role("dialog", name="A weight under the microscope")

    def opened():
        panel.wait_for()
        page.evaluate(FRAME)
        return panel.inner_text().replace("\n", " ")

    def closed():
        panel.wait_for(state="hidden")
        return page.evaluate("document.activeElement.name")

    # By keyboard: from the picked cell to its button, and back to it.
    tab_to(page, "[role=grid] button")
    press(page, "Control+Home", "ArrowDown", "Tab")
    page.evaluate(FRAME)
    assert page.locator(".picked").inner_text().startswith("cat to The: 0.")
    press(page, "Enter")
    weight = page.locator("[role=grid] tr").nth(2).locator("button").first.inner_text()
    said = opened()
    assert f"cat asks, The answers: {weight}"[:-1] in said and "masked" not in said
    press(page, "Escape")
    assert closed() == "why"
    np.testing.assert_array_equal(agrees(page).mask, attnlib.causal_mask(5))

    # By click: a cell that is painted is the picked one; blocked, the panel says so.
    cell(page, 3, 1).click()
    page.get_by_role("button", name="Why?").click()
    said = opened()
    assert "down asks, cat answers: 0 " in said and "down may not look at cat" in said
    masks = [agrees(page).mask]
    page.get_by_role("button", name="Close").click()
    assert closed() == "why"

    # A tap on a cell beside the panel closes it and paints nothing.
    page.get_by_role("button", name="Why?").click()
    opened()
    box, lens = cell(page, 0, 4).bounding_box(), panel.bounding_box()
    x, y = box["x"] + box["width"] - 5, box["y"] + 5
    assert x > lens["x"] + lens["width"]
    page.mouse.click(x, y)
    closed()
    masks.append(agrees(page).mask)
    assert masks[0] == masks[1]


def test_a_finger_paints_too(browser, tmp_path):
    write_page(tmp_path, MaskPainter())
    with phone(browser, (tmp_path / "page.html").as_uri()) as page:
        cell(page, 0, 0).scroll_into_view_if_needed()
        boxes = [cell(page, 2, j).bounding_box() for j in (0, 2, 3)]
        touch = page.context.new_cdp_session(page)
        for kind, box in zip(("touchStart", "touchMove", "touchMove"), boxes, strict=True):
            point = {"x": box["x"] + 9, "y": box["y"] + 9}
            touch.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": [point]})
        touch.send("Input.dispatchTouchEvent", {"type": "touchEnd", "touchPoints": []})
        assert agrees(page).mask[2] == [False, False, False, False, True]
        box = cell(page, 0, 1).bounding_box()
        page.touchscreen.tap(box["x"] + 9, box["y"] + 9)
        assert agrees(page).mask[0] == [True, False, True, True, True]
