"""Plane in a real browser: dragged, typed, tapped, by keyboard; on its way and without motion."""

import numpy as np
import pytest

from attnlib.widgets import Plane
from tests.site.harness import FRAME, assert_words_fit, drawn_texts, phone, texts, wake, write_page

UNIT, LEFT, FLOOR = 53, 58, 262  # the sheet of the bank
# The dot of the output in each frame, in the plane's units, until it has stood still for a while.
WATCH = """name => new Promise(done => {
  const seen = [];
  document.querySelector(`[data-sentence=${name}]`).click();
  const look = () => {
    const dot = document.querySelector(".moved circle");
    const at = ["cx", "cy"].map(side => Number(dot.getAttribute(side)));
    seen.push(at);
    const still = seen.slice(-20).every(([x, y]) => x === at[0] && y === at[1]);
    if (seen.length > 40 && still) done(seen); else requestAnimationFrame(look);
  };
  requestAnimationFrame(look);
})"""


@pytest.fixture
def open_plane(page, tmp_path):
    """Open a page with a plane, without motion unless asked for, and wait until it lives."""

    def go(scene="bank", motion="reduce", **traits):
        page.emulate_media(reduced_motion=motion)
        write_page(tmp_path, Plane(scene, **traits))
        return wake(page, (tmp_path / "page.html").as_uri())

    return go


def agrees(page):
    """The screen shows the picture of the present state; return that plane."""
    page.evaluate(FRAME)
    plane = Plane(**page.evaluate("document.querySelector('.widget-slot').model.traits"))
    assert texts(page, ["answer"]) == drawn_texts(plane, ["answer"])
    return plane


def on_screen(page, x, y):
    """Where a point of the bank's plane is on the screen."""
    box = page.locator("[data-part=sheet]").bounding_box()
    unit = box["width"] / 320
    return box["x"] + (LEFT + UNIT * x) * unit, box["y"] + (FLOOR - UNIT * y) * unit


def drag(page, start, end):
    page.mouse.move(*start)
    page.mouse.down()
    page.mouse.move(*end, steps=5)
    page.mouse.up()


def middle(locator):
    box = locator.bounding_box()
    return box["x"] + box["width"] / 2, box["y"] + box["height"] / 2


def test_a_word_is_dragged_tapped_and_exchanged(open_plane):
    page = open_plane()
    drag(page, on_screen(page, 1, 1), on_screen(page, 2, 2.52))
    plane = agrees(page)
    assert plane.words["bank"] == [2, 2.5] and plane.asks == 4
    drag(page, on_screen(page, 4, 0), on_screen(page, 9, -9))
    assert agrees(page).words["boat"] == [4.7, -0.8]  # no further than the sheet
    page.mouse.click(*on_screen(page, 4.7, -0.8))
    assert agrees(page).asks == 1
    page.mouse.click(*on_screen(page, 0, 4))  # the word that is not there
    assert agrees(page).sentence == "money"
    page.get_by_role("button", name="Reset").click()
    assert agrees(page).state == Plane().state


def test_the_next_words_follow_what_is_dragged(open_plane):
    page = open_plane()
    bars = page.locator("[data-part=next] .chance")
    full = page.locator("[data-part=next] li").first.bounding_box()["width"]

    def shown():
        plane = agrees(page)
        words = page.locator("[data-part=next] li").all_inner_texts()
        assert [word.split()[-1] for word in words] == [f"{p:.2f}" for p in plane.probabilities]
        wide = [bar.bounding_box()["width"] for bar in bars.all()]
        np.testing.assert_allclose(np.divide(wide, sum(wide)), plane.probabilities, atol=1e-3)
        assert sum(wide) < full
        return plane.probabilities

    assert shown()[0] == pytest.approx(0.7666, abs=5e-5)
    drag(page, on_screen(page, 4, 0), on_screen(page, 2, 1))
    assert shown()[0] < 0.6
    page.get_by_role("slider", name="Sharpness").press("End")
    page.get_by_role("button", name="money", exact=True).click()
    assert shown()[1] > 0.8


def test_at_first_sight_there_are_few_signs(open_plane):
    page = open_plane()
    hidden = "sign => getComputedStyle(sign).opacity === '0'"
    page.mouse.move(5, 5)
    for name in ("hull", "chain", "rival"):
        assert page.locator(f".{name}").first.evaluate(hidden), name
    page.mouse.move(*on_screen(page, 3, 3))
    page.wait_for_function("getComputedStyle(document.querySelector('.chain')).opacity === '1'")


def test_by_keyboard_alone(open_plane):
    page = open_plane()
    bank = page.get_by_role("slider", name="bank")
    bank.focus()
    for key in ("ArrowRight", "Shift+ArrowUp", "ArrowDown"):
        bank.press(key)
    assert agrees(page).words["bank"] == [1.1, 1.4]
    assert bank.get_attribute("aria-valuetext") == "1.1 about rivers, 1.4 about money"
    page.get_by_role("slider", name="boat").press("Enter")
    assert agrees(page).asks == 1
    page.get_by_role("button", name="money", exact=True).press("Enter")
    page.get_by_role("button", name="reached asks").press(" ")
    plane = agrees(page)
    assert plane.tokens[1] == "money" and plane.asks == 2
    page.get_by_role("slider", name="Sharpness").press("End")
    assert agrees(page).sharpness == 4
    bank.press("Enter")


def test_a_finger_drags_a_word_and_not_the_page(browser, tmp_path):
    write_page(tmp_path, Plane())
    with phone(browser, (tmp_path / "page.html").as_uri()) as page:
        touch = page.context.new_cdp_session(page)
        (x, y), (to_x, to_y) = on_screen(page, 4, 0), on_screen(page, 3, 2)
        where = [{"x": x + (to_x - x) * i / 8, "y": y + (to_y - y) * i / 8} for i in range(9)]
        for at, kind in zip(where, ["touchStart"] + 8 * ["touchMove"], strict=True):
            touch.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": [at]})
        touch.send("Input.dispatchTouchEvent", {"type": "touchEnd", "touchPoints": []})
        assert agrees(page).words["boat"] == [3, 2] and page.evaluate("scrollY") == 0
        small = """[...document.querySelectorAll('.abh :is(button, [type=text], label)')].map(
            e => e.getBoundingClientRect()).filter(b => b.height < 24)"""
        assert page.evaluate(small) == []


def test_a_typed_value_counts_and_nonsense_is_refused(open_plane):
    page = open_plane()
    field = page.get_by_label("boat, about rivers")
    field.fill("2,5")
    assert agrees(page).words["boat"] == [2.5, 0]
    for nonsense in ("NaN", "", "9", "<b>"):
        field.fill(nonsense)
        assert "needs a number from -0.8 to 4.7" in page.locator(".message").inner_text()
        assert agrees(page).words["boat"] == [2.5, 0]
    field.press("Tab")
    assert field.input_value() == "2.5" and page.locator(".message").inner_text() == ""


def test_table_and_picture_light_each_other(open_plane):
    page = open_plane()
    page.mouse.move(*on_screen(page, 2.2, 0.6))  # on the line to boat
    page.evaluate(FRAME)
    assert page.locator("tr.lit").get_attribute("data-place") == "1"
    assert "16.92 ÷ 24.03 = 0.704" in page.locator(".said").inner_text()
    page.locator("tr[data-place='4']").hover()
    page.evaluate(FRAME)
    assert page.locator(".ring.picked").count() == 1
    page.mouse.move(5, 5)
    page.evaluate(FRAME)
    assert page.locator(".lit, .picked").count() == 0


def test_a_line_opens_under_the_microscope_and_a_word_does_not(open_plane):
    page = open_plane()
    page.mouse.click(*on_screen(page, 4, 0))
    assert agrees(page).asks == 1 and not page.get_by_role("dialog").is_visible()
    page.mouse.click(*on_screen(page, 2.6, 0.5))  # between boat, which asks, and bank
    page.get_by_role("dialog").wait_for()
    assert "boat gives to bank" in page.locator(".lens-head").inner_text()


def test_every_picture_on_the_way_is_attention(open_plane):
    page = open_plane(motion="no-preference")
    seen = (np.array(page.evaluate(WATCH, "money")) - [LEFT, FLOOR]) / [UNIT, -UNIT]
    np.testing.assert_allclose(seen[-1], Plane(sentence="money").output, atol=0.01)
    between = seen[(np.linalg.norm(seen - seen[0], axis=1) > 0.05)]
    assert len(np.unique(between, axis=0)) > 3
    # A token that is partly there has that part of its power: all outputs, for all parts.
    part = np.linspace(0, 1, 4001)[:, None]
    points = np.array([[0, 0], [0, 0], [0, 0], [1, 1], [4, 0], [0, 4]])
    exponentials = np.exp(points @ [1, 1] / np.sqrt(2)) * np.where(
        np.arange(6) < 4, 1, np.where(np.arange(6) == 4, 1 - part, part)
    )
    true = exponentials @ points / exponentials.sum(axis=1, keepdims=True)
    off = np.linalg.norm(seen[:, None] - true, axis=-1).min(axis=1)
    assert off.max() < 0.01  # the page writes tenths of a unit of the sheet


def test_without_motion_it_is_there_at_once(open_plane):
    page = open_plane()
    seen = np.array(page.evaluate(WATCH, "money"))
    assert len(np.unique(seen, axis=0)) <= 2  # before and after


def test_the_price_list_is_asked_and_the_prices_become_sharp(open_plane):
    page = open_plane("prices")
    page.get_by_label("query, how hot").fill("1")
    page.get_by_label("query, how sweet").fill("2")
    assert agrees(page).query == [1, 2] and texts(page, ["answer"])["answer"] == "4.240"
    query = page.get_by_role("slider", name="query")
    query.press("Shift+ArrowLeft")
    assert agrees(page).query == [0.5, 2]
    x, y = middle(query)
    drag(page, (x, y), (x, y + 40))
    assert agrees(page).query[1] < 2
    page = open_plane("sharpness")
    page.get_by_role("slider", name="Sharpness").press("End")
    assert agrees(page).sharpness == 4
    page.locator(".balance").hover()
    assert texts(page, ["answer"])["answer"] == "2.019"


def test_a_question_is_turned_and_names_keep_clear_of_each_other(open_plane):
    page = open_plane("turned")
    for turn, stretch in ((0, 1), (0, 0), (45, 3), (-45, 3)):
        page.evaluate("to => { location.hash = to }", f"plane.turn={turn}&plane.stretch={stretch}")
        plane = agrees(page)
        assert (plane.turn, plane.stretch) == (turn, stretch)
        assert_words_fit(page)
    page.get_by_role("button", name="Reset").click()
    query = page.get_by_role("slider", name="query")
    query.press("ArrowRight")
    query.press("ArrowUp")
    plane = agrees(page)
    assert (plane.turn, plane.stretch) == (-26, 1.1)
    drag(page, middle(query), on_screen(page, 0, 2))
    plane = agrees(page)
    assert plane.turn == pytest.approx(45, abs=2)
    assert plane.stretch == pytest.approx(np.sqrt(2), abs=0.05)
    page.get_by_role("slider", name="Turn").press("Home")
    assert agrees(page).turn == -180


def test_own_words_are_named_added_and_removed(open_plane):
    page = open_plane("words")
    name = page.get_by_label("name of word 1")
    name.fill("<b>x</b>")
    assert agrees(page).tokens[0] == "<b>x</b>" and page.locator(".abh b b").count() == 0
    for nonsense in ("", "dog", "123", "far too long a name"):
        name.fill(nonsense)
        assert page.locator(".message").inner_text()
        assert agrees(page).tokens[0] == "<b>x</b>"
    name.press("Tab")
    assert name.input_value() == "<b>x</b>"
    page.get_by_role("button", name="remove dog").click()
    plane = agrees(page)
    assert plane.tokens[plane.asks] == "it" and len(plane.tokens) == 4
    add = page.get_by_role("button", name="Add a word")
    for _ in range(4):
        add.click()
    assert len(agrees(page).tokens) == 8 and add.is_disabled()
    assert_words_fit(page)


def test_queries_are_learned(open_plane):
    page = open_plane("learning")
    page.get_by_role("button", name="One step").click()
    assert agrees(page).step == 1
    page.get_by_role("slider", name="Step").press("End")
    assert agrees(page).step == 100 and texts(page, ["answer"])["answer"] == "0.03"
    rate = page.get_by_role("slider", name="Learning rate")
    rate.press("ArrowRight")
    rate.press("ArrowRight")
    plane = agrees(page)
    assert (plane.step, plane.rate) == (0, 10)
    page.get_by_role("combobox", name="Loss").select_option("cost")
    page.get_by_role("button", name="Train").click()
    plane = agrees(page)
    assert (plane.step, plane.teacher) == (100, "cost")
    assert texts(page, ["answer"])["answer"] == "0.33"
    page.get_by_role("button", name="New start").click()
    plane = agrees(page)
    assert (plane.step, plane.start) == (0, 8)
    seed = page.get_by_label("Seed")
    seed.fill("41")
    assert agrees(page).start == 41
    for nonsense in ("", "-1", "1000", "x"):
        seed.fill(nonsense)
        assert "whole number from 0 to 999" in page.locator(".message").inner_text()
        assert agrees(page).start == 41
    seed.press("Tab")
    assert seed.input_value() == "41" and page.locator(".message").inner_text() == ""


def test_learning_runs_and_pauses_and_takes_one_step(open_plane):
    page = open_plane("learning", motion="no-preference")
    step = "document.querySelector('.widget-slot').model.get('step')"
    page.get_by_role("button", name="Train").click()
    page.wait_for_function(f"{step} > 2")
    page.get_by_role("button", name="why latte gives it to coffee").press("Enter")
    head = page.locator(".lens-head")
    before = head.inner_text()
    assert "latte gives to coffee" in before
    page.wait_for_function(f"{step} > {page.evaluate(step) + 1}")
    assert head.inner_text() != before  # the panel follows
    page.get_by_role("button", name="Pause").click()  # and closes
    page.get_by_role("dialog").wait_for(state="hidden")
    plane = agrees(page)
    assert 2 <= plane.step < 100 and plane.step == int(plane.step)
    for after in (1, 2):
        page.get_by_role("button", name="One step").click()
        page.wait_for_function(f"{step} === {plane.step + after}", timeout=5000)
    page.evaluate(FRAME)
    assert agrees(page).step == plane.step + 2  # and there it stands
