"""MaskPainter in a real browser, on a page of its own: keyboard, mouse and finger."""

import numpy as np
import pytest

import attnlib
from attnlib.widgets import MaskPainter
from tests.site.harness import FRAME, phone, tab_to, wake, write_page
from tests.widgets.pictures import picture
from tests.widgets.test_refusals import TRIAL


@pytest.fixture
def open_painter(page, tmp_path):
    """Open a page with a painter and wait until it lives."""

    def go(*scene, **traits):
        write_page(tmp_path, MaskPainter(*scene, **traits))
        return wake(page, (tmp_path / "page.html").as_uri())

    return go


def agrees(page):
    """The screen shows the picture of the present state; return that painter."""
    page.evaluate(FRAME)
    traits = page.evaluate("document.querySelector('.widget-slot').model.traits")
    painter = MaskPainter(**traits)
    soup = picture(painter)
    for part in ("[role=grid] button", "td.fate", ".verdicts li", ".chip", ".number", ".big"):
        drawn = [" ".join(part.get_text().split()) for part in soup.select(part)]
        shown = page.locator(part).all_text_contents()
        assert [" ".join(text.split()) for text in shown] == drawn
    pressed = page.locator("[role=grid] [aria-pressed=true]").count()
    assert pressed == (np.sum(painter.mask) if painter.scene == "paint" else 0)
    return painter


def cell(page, i, j):
    return page.locator("[role=grid] tr").nth(i + 1).locator("button").nth(j)


def press(page, *keys):
    for key in keys:
        page.keyboard.press(key)


def test_the_mask_of_the_letters_goes_on_and_off(open_painter):
    page = open_painter("letters", trial=TRIAL)
    tab_to(page, "[name=masked][value=true]")
    press(page, "Enter")
    assert agrees(page).masked
    page.locator("[name=masked][value=false]").click()
    assert not agrees(page).masked


@pytest.mark.parametrize(
    ("scene", "trait"),
    [("causal", "position"), ("padding", "length"), ("window", "width"), ("packed", "start")],
)
def test_each_pattern_follows_its_slider(open_painter, scene, trait):
    page = open_painter(scene)
    before = getattr(agrees(page), trait)
    tab_to(page, "[type=range]")
    press(page, "ArrowRight")
    assert getattr(agrees(page), trait) == before + 1
    page.locator("[name=reset]").click()
    assert getattr(agrees(page), trait) == before


def test_by_keyboard_alone_a_causal_and_a_leaking_mask(open_painter):
    page = open_painter()
    tab_to(page, "[name=start_from][value=causal]")
    press(page, "Enter")
    np.testing.assert_array_equal(agrees(page).mask, attnlib.causal_mask(5))
    assert page.locator(".verdicts li.bad").count() == 0

    tab_to(page, "[role=grid] button")
    press(page, "Control+Home", "ArrowRight", "ArrowRight", "Space")  # The may look at sat
    assert agrees(page).mask[0] == [True, False, True, False, False]
    assert page.locator("td.fate").first.inner_text() == "leaks"
    assert page.locator(".verdicts li.bad").count() == 2
    press(page, "Enter")
    assert agrees(page).mask[0] == [True, False, False, False, False]
    press(page, "Control+End", "ArrowDown", "ArrowRight", "ArrowUp", "Space", "Home", "End")
    assert agrees(page).mask[3][4]
    assert page.locator("[role=grid] [tabindex='0']").count() == 1
    assert page.locator("[role=grid] [tabindex='0']").get_attribute("aria-label")[:4] == "down"
    page.get_by_label("Put another word in place of").select_option("4")
    assert agrees(page).replaced == 4
    page.locator("[name=reset]").click()
    assert repr(agrees(page)) == repr(MaskPainter())


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

    def closed():
        panel.wait_for(state="hidden")
        return page.evaluate("document.activeElement.name")

    # By keyboard: from the picked cell to its button, and back to it.
    tab_to(page, "[role=grid] button")
    press(page, "Control+Home", "ArrowDown", "Tab", "Enter")
    panel.wait_for()
    press(page, "Escape")
    assert closed() == "why"
    np.testing.assert_array_equal(agrees(page).mask, attnlib.causal_mask(5))

    # A tap on a cell beside the panel closes it and paints nothing.
    cell(page, 3, 1).click()
    page.get_by_role("button", name="Why?").click()
    panel.wait_for()
    mask = agrees(page).mask
    box, lens = cell(page, 0, 4).bounding_box(), panel.bounding_box()
    x, y = box["x"] + box["width"] - 5, box["y"] + 5
    assert x > lens["x"] + lens["width"] or y < lens["y"]
    page.mouse.click(x, y)
    closed()
    assert agrees(page).mask == mask


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
